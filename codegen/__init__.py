"""From a kernel to CUDA C: lowering, passes, and the printer."""
