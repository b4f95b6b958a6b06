"""What a person asserts about the data of index arrays.

Sets decide what affine subscripts touch.  For ``x[perm[i]]`` they cannot: which
cells are touched stands in the data.  An assertion says so much of the data as
a proof needs.  It is recorded with the kernel, trusted by proofs, and checked on
real arrays by the executors.

:mod:`.values` holds the assertions, :mod:`.cells` what proofs ask of them,
:mod:`.follow` the way from temporaries back to index arrays, :mod:`.check` the
comparison with data.
"""
