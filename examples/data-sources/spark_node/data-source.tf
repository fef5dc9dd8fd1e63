# An inventory of machines, some of which may be off.
data "spark_node" "rack" {
  for_each    = toset(["10.1.230.180", "10.1.230.181", "10.1.230.182"])
  host        = each.key
  unreachable = "keep"
}

output "drivers" {
  value = { for host, machine in data.spark_node.rack : host => machine.driver if machine.reachable }
}

output "in_the_way" {
  value = { for host, machine in data.spark_node.rack : coalesce(machine.name, host) => machine.findings }
}
