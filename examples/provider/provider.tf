terraform {
  required_providers {
    spark = {
      source = "spark-stack/spark"
    }
  }
}

# Every attribute may come from the environment instead (SPARK_SSH_USER, …); then no provider block is needed.
provider "spark" {}
