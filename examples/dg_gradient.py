"""The gradient of a discontinuous Galerkin method, with an element's geometric factors.

On each element ``e``: derivatives along the reference directions by small dense
matrices, then their combination into derivatives along the axes of space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain(nodes: int = 20) -> lk.Kernel:
    """``D[x]`` derives along direction ``x``; ``G[y, z, e]`` are the factors of element ``e``."""
    return lk.make_kernel(
        f"{{ [e, i, j, x, y, z]: 0 <= e < ne and 0 <= i, j < {nodes} and 0 <= x, y, z < 3 }}",
        """
        for e, i
            <> r[x] = sum(j, D[x, i, j] * u[e, j])
            g[y, e, i] = sum(z, G[y, z, e] * r[z])
        end
        """,
        name="dg_gradient",
        dtypes={"D, u, G, g": "float32"},
        assumptions="1 <= ne <= 16777216",
    )


def staged() -> lk.Kernel:
    """A thread per node of an element; matrices and elements in shared memory."""
    return (
        plain()
        .split_iname("e", 12, outer_tag="g.0", inner_tag="l.1")
        .tag_inames({"i": "l.0", "x": "unr", "y": "unr", "z": "unr"})
        .add_prefetch("u", ["e_inner", "j"], default_tag="l.auto")
        .add_prefetch("D", ["x", "i", "j"], default_tag="l.auto")
        .pad_temporary("D_s", 2)
    )


def registers(together: int = 8, rounds: int = 16) -> lk.Kernel:
    """A thread keeps its rows of the matrices in registers, and meets many elements."""
    return (
        plain()
        .split_iname("e", together * rounds, inner_iname="e_block", outer_tag="g.0")
        .split_iname(
            "e_block", together, outer_iname="e_round", inner_iname="e_thread", inner_tag="l.1"
        )
        .tag_inames({"i": "l.0", "j": "unr", "x": "unr", "y": "unr", "z": "unr"})
        .add_prefetch("D", ["x", "j"], default_tag="unr")
        .add_prefetch("u", ["e_round", "e_thread", "j"], default_tag="l.auto")
        .add_prefetch("G", ["e_round", "e_thread", "y", "z"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "staged": staged(), "registers": registers()}


def inputs(ne: int = 77, nodes: int = 20, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    shapes = {"D": (3, nodes, nodes), "u": (ne, nodes), "G": (3, 3, ne)}
    return {name: rng.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}


def expected(D: Any, u: Any, G: Any) -> Any:
    """The same by NumPy."""
    r = np.einsum("xij,ej->xei", D.astype(np.float64), u)
    return np.einsum("yze,zei->yei", G, r)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
