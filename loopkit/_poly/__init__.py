"""A kernel as integer sets: instances, access relations, execution order, and last writers.

Creation, transforms, the checker and lowering share these. All sets are isl parameter sets over
names. In a set over several statement instances, the inames of each carry that instance's label
(``pairs``), so that ``{ i·R, i·W, n : ... }`` is a relation between a reader and a writer.
"""
