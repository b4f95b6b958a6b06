"""Running a program: arguments, compilation, caching, devices and launches.

``plan`` turns the arguments of a call into checked sizes, scalars and arrays, for
every executor alike.  ``nvrtc`` and ``resources`` make binaries and say
what they use.  ``executor`` holds the callables that run a program, and ``relaunch``
carries on in another process when this one's CUDA context is lost.  Nothing of CUDA is
imported before it is needed.
"""
