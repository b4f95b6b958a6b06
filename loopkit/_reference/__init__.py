"""The reference executor: a kernel's meaning, executed instance by instance in NumPy.

It shares nothing with code generation: evaluation of expressions, enumeration of loops and
application of types are implemented here independently.
"""

from loopkit._reference.run import run_reference

__all__ = ["run_reference"]
