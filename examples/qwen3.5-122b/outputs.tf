output "endpoint" {
  description = "Base URL of the OpenAI-compatible API."
  value       = vllm_deployment.qwen.endpoint
}

output "drift" {
  description = "What differs from the declaration, in sentences; empty on a good day."
  value = concat(
    spark_node.a.drift, spark_node.b.drift,
    ray_cluster.pair.drift, vllm_deployment.qwen.drift,
  )
}
