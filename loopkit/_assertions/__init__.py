"""What a person asserts about the data of index arrays.

Sets decide what affine subscripts touch.  For ``x[perm[i]]`` they cannot: which
cells are touched stands in the data.  An assertion says so much of the data as
a proof needs.  It is recorded with the kernel, trusted by proofs, and checked on
real arrays by the executors.
"""

from loopkit._assertions.values import Assertion, Disjoint, Increasing, Injective, Within

__all__ = ["Assertion", "Disjoint", "Increasing", "Injective", "Within"]
