"""A kernel as sets: instances, the cells they touch, their order, and who wrote last.

Creation, transforms, the checker and lowering ask the same questions of a kernel; they
are answered here.  All sets are isl parameter sets over names.  Where a question is about
several statement instances, the inames of each carry that instance's label (``pairs``), so
that ``{ i·R, i·W, n : ... }`` is a relation between a reader and a writer.
"""
