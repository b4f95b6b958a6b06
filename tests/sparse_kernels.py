"""Products with sparse matrices, and rows of loaded lengths: bounds and cells that data decide."""

from __future__ import annotations

import loopkit as lk

ROWS = {
    "csr": (
        ["{ [i]: 0 <= i < n }", "{ [j]: first <= j < last }"],
        """
        for i
            <> first = start[i]
            <> last = start[i + 1]
            y[i] = sum(j, value[j]*x[column[j]])
        end
        """,
        {"start": "n + 1", "value": "nnz", "column": "nnz", "x": "m"},
    ),
    "jagged": (
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < length }"],
        """
        for i
            <> length = lengths[i]
            for j
                y[i, j] = 2*x[i, j]
            end
        end
        """,
        {"lengths": "n", "x": "n, m", "y": "n, m"},
    ),
    "coo": (
        ["{ [e]: 0 <= e < nnz }"],
        "y[row[e]] = y[row[e]] + value[e]*x[column[e]] {atomic}",
        {"row": "nnz", "value": "nnz", "column": "nnz", "x": "m", "y": "n"},
    ),
}
INTEGERS = ("start", "column", "lengths", "row")


def kernel(name: str) -> lk.Kernel:
    """One of them."""
    domains, text, shapes = ROWS[name]
    arrays = [
        lk.GlobalArg(a, "int32" if a in INTEGERS else "float32", shape=shape)
        for a, shape in shapes.items()
    ]
    return lk.make_kernel(domains, text, [*arrays, ...], dtypes={"y": "float32"})
