"""Running a program: arguments, compilation, caching, devices and launches.

``plan`` turns the arguments of a call into checked sizes, scalars and arrays, for
every executor alike; ``kinds`` knows the arrays of the libraries.  ``nvrtc`` and
``resources`` make binaries and say what they use, ``driver`` and ``module`` bring them to a
device.  ``executor`` holds the callables that run a program.  Nothing of CUDA is imported
before it is needed.
"""
