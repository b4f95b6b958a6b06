"""Time measurements of kernels, per launch, compared with the roofline."""
