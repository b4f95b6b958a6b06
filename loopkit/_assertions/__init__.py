"""Assertions that a user makes about the data of index arrays.

Integer sets describe affine subscripts. They cannot describe ``x[perm[i]]``, whose cells depend on
data. An assertion states a property of the data that a proof needs. It is recorded with the
kernel, trusted by proofs, and checked on real arrays by the executors.

:mod:`.assertion_values` defines the assertions, :mod:`.asserted_cells` answers questions of
proofs, :mod:`.follow` traces temporaries back to index arrays, and :mod:`.check` compares
assertions with data.
"""
