"""Running a program: arguments, compilation, caching, devices and launches.

``plan`` turns the arguments of a call into checked sizes, scalars and arrays, for
every executor alike; ``kinds`` knows the arrays of the libraries.  ``nvrtc`` makes
binaries and says what they use, ``driver`` and ``module`` bring them to a
device.  ``executor`` and ``host`` hold the callables that run a program, on a GPU and on the
CPU.  Nothing of CUDA is imported before it is needed.
"""
