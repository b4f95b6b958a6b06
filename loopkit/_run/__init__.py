"""Execution of a program: arguments, compilation, caching, devices and launches.

``plan`` turns the arguments of a call into checked sizes, scalars and arrays, for all executors.
``kinds`` supports the array types of the libraries.  ``nvrtc`` makes binaries and reports the
resources that they use; ``driver`` and ``module`` load them on a device.  ``executor`` and ``host``
hold the callables that run a program, on a GPU and on the CPU.  CUDA libraries are imported on
first use.
"""
