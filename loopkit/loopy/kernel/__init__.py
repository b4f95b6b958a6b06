"""``loopy.kernel`` in the import of a script: see :mod:`loopkit.loopy.kernel.data`."""
