variable "revision" {
  description = "Commit of Qwen/Qwen3.5-122B-A10B-FP8 on the Hugging Face hub."
  type        = string
  # No default: a commit is chosen once, by a person, and then stays. Branches such as main move, and two nodes with two
  # revisions answer nonsense. Find it in the history of the repository's "Files" page, or with
  #   git ls-remote https://huggingface.co/Qwen/Qwen3.5-122B-A10B-FP8 refs/heads/main

  validation {
    condition     = can(regex("^[0-9a-f]{40}$", var.revision))
    error_message = "The revision must be a commit, 40 hexadecimal digits, not a branch or a tag."
  }
}
