"""Measuring: the time that kernels take, each launch on its own, beside what the roofline says."""
