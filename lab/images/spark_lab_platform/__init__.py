"""vLLM platform plug-in of the lab: the CPU, placed by Ray as if it were a GPU."""


def register():
    return "spark_lab_platform.platform.SparkLabPlatform"
