"""What a person asserts about the data of index arrays.

Sets decide what affine subscripts touch.  For ``x[perm[i]]`` they cannot: which
cells are touched stands in the data.  An assertion says so much of the data as
a proof needs.  It is recorded with the kernel, trusted by proofs, and checked on
real arrays by the executors.

:mod:`.values` holds the assertions, :mod:`.cells` what proofs ask of them,
:mod:`.follow` the way from temporaries back to index arrays, :mod:`.check` the
comparison with data.
"""

from loopkit._assertions.cells import (
    data_of,
    equal_cells,
    index_range,
    settling,
    surely_inside,
)
from loopkit._assertions.constraints import Data
from loopkit._assertions.follow import followed
from loopkit._assertions.values import (
    Assertion,
    Disjoint,
    Facts,
    Increasing,
    Injective,
    Within,
    facts_of,
    in_order,
    map_bounds,
)

__all__ = [
    "Assertion",
    "Data",
    "Disjoint",
    "Facts",
    "Increasing",
    "Injective",
    "Within",
    "data_of",
    "equal_cells",
    "facts_of",
    "followed",
    "in_order",
    "index_range",
    "map_bounds",
    "settling",
    "surely_inside",
]
