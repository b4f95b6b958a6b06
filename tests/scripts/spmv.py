"""A sparse matrix in compressed rows times a vector: loop bounds that are loaded."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < length }"],
    """
    for i
        <> rowstart = rowstarts[i]
        <> rowend = rowstarts[i + 1]
        <> length = rowend - rowstart
        y[i] = sum(j, values[rowstart + j]*x[colindices[rowstart + j]])
    end
    """,
    [
        lp.GlobalArg("values", np.float64, shape=("nnz",)),
        lp.GlobalArg("colindices", np.int32, shape=("nnz",)),
        lp.GlobalArg("rowstarts", np.int32, shape=("n + 1",)),
        lp.GlobalArg("x", np.float64, shape=("m",)),
        lp.GlobalArg("y", np.float64, shape=("n",)),
        "...",
    ],
    assumptions="n, m, nnz >= 1",
    name="spmv",
)
knl = lp.split_iname(knl, "i", 128, outer_tag="g.0", inner_tag="l.0")

rng = np.random.default_rng(0)
dense = rng.uniform(size=(300, 40)) * (rng.uniform(size=(300, 40)) < 0.1)
rows, columns = np.nonzero(dense)
starts = np.searchsorted(rows, np.arange(301)).astype(np.int32)
x = rng.uniform(size=40)
evt, (y,) = knl(
    None, values=dense[rows, columns], colindices=columns.astype(np.int32), rowstarts=starts, x=x
)
assert np.allclose(y, dense @ x)
