"""The oracle: a kernel's meaning, executed instance by instance in NumPy.

Nothing in here is shared with code generation: expressions are evaluated, loops
enumerated and types applied by this package's own means.
"""

from loopkit._reference.run import run_reference

__all__ = ["run_reference"]
