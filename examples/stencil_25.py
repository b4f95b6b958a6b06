"""A 25-point stencil: four neighbours to each side in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

#: Index arithmetic fits 32 bits.
SMALL = "n, m, l >= 1 and n, m, l <= 1024"


def text() -> str:
    """Neighbours above and below come from ``column``, those in the same plane from ``plane``."""
    lines = ["column(x, y, z) := u[x, y, z]", "plane(x, y, z) := u[x, y, z]"]
    terms = ["c0 * column(i + 4, j + 4, k + 4)"]
    for r in range(1, 5):
        near, far = 4 - r, 4 + r
        ring = [f"column(i + {at}, j + 4, k + 4)" for at in (near, far)]
        ring += [f"plane(i + 4, j + {at}, k + 4)" for at in (near, far)]
        ring += [f"plane(i + 4, j + 4, k + {at})" for at in (near, far)]
        terms.append(f"c{r} * ({' + '.join(ring)})")
    return "\n".join([*lines, f"v[i, j, k] = {' + '.join(terms)}"])


def plain() -> lk.Kernel:
    """A weight per distance; ``u`` has a margin of four points on every side."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        text(),
        [lk.GlobalArg("u", "float32", shape="n + 8, m + 8, l + 8"), ...],
        name="stencil_25",
        dtypes={"v, c0, c1, c2, c3, c4": "float32"},
        assumptions=SMALL,
    )


def tiled() -> lk.Kernel:
    """A cube of points and its halo in shared memory."""
    return (
        plain()
        .split_iname("i", 4, outer_tag="g.2", inner_tag="unr")
        .split_iname("j", 8, outer_tag="g.1", inner_tag="l.1")
        .split_iname("k", 32, outer_tag="g.0", inner_tag="l.0")
        .expand_subst()
        .add_prefetch("u", ["i_inner", "j_inner", "k_inner"], fetch_bounding_box=True)
    )


def planes(
    depth: int = 8,
    height: int = 32,
    width: int = 32,
    per_thread: int = 4,
    *,
    together: bool = True,
    full_tiles: bool = False,
) -> lk.Kernel:
    """Planes and their halos in shared memory; each thread's columns of points in registers.

    A thread computes neighbouring rows of points, which share most of the
    neighbours that they read.  ``together`` stages all planes of a block at once,
    else one after the other.  ``full_tiles`` is for sizes that tiles divide.
    """
    knl = plain()
    if full_tiles:
        knl = knl.assume(f"n mod {depth} = 0 and m mod {height} = 0 and l mod {width} = 0")
    knl = (
        knl.split_iname("i", depth, outer_tag="g.2", inner_tag="unr")
        .split_iname("j", height, outer_tag="g.1")
        .split_iname(
            "j_inner",
            per_thread,
            outer_iname="j_thread",
            inner_iname="j_one",
            outer_tag="l.1",
            inner_tag="unr",
        )
        .split_iname("k", width, outer_tag="g.0", inner_tag="l.0")
        .precompute("column", ["i_inner", "j_one"], default_tag="unr")
        .precompute(
            "plane",
            ["j_thread", "j_one", "k_inner", *(["i_inner"] if together else [])],
            precompute_inames=["layer", "row", "cell"],
            default_tag=None,
            temporary_address_space="shared",
        )
        .split_iname("row", height // per_thread, outer_tag="unr", inner_tag="l.1")
        .split_iname("cell", width, outer_tag="unr", inner_tag="l.0")
    )
    return knl.tag_inames({"layer": "unr"}) if together else knl


def columns(
    depth: int = 16, height: int = 8, width: int = 32, rows: int = 1, *, full_tiles: bool = False
) -> lk.Kernel:
    """Columns of points in registers; neighbours in the plane straight from the caches.

    Unrolling a column lets neighbouring points share what they read above and below.
    """
    knl = plain()
    if full_tiles:
        knl = knl.assume(f"n mod {depth} = 0 and m mod {height * rows} = 0 and l mod {width} = 0")
    return (
        knl.split_iname("i", depth, outer_tag="g.2", inner_tag="unr")
        .split_iname("j", height * rows, outer_tag="g.1")
        .split_iname("j_inner", rows, outer_tag="l.1", inner_tag="unr")
        .split_iname("k", width, outer_tag="g.0", inner_tag="l.0")
        .precompute("column", ["i_inner", "j_inner_inner"], default_tag="unr")
        .expand_subst()
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {
        "plain": plain(),
        "tiled": tiled(),
        "planes": planes(),
        "planes, full tiles": planes(full_tiles=True),
        "columns": columns(),
    }


def inputs(n: int = 16, m: int = 32, l: int = 64, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (n + 8, m + 8, l + 8)).astype(np.float32)
    return {"u": u, **{f"c{r}": np.float32(1 / (1 + r)) for r in range(5)}}


def expected(u: Any, **c: Any) -> Any:
    """The same by NumPy."""
    u = u.astype(np.float64)
    n, m, l = (extent - 8 for extent in u.shape)

    def at(x: int, y: int, z: int) -> Any:
        return u[4 + x : 4 + x + n, 4 + y : 4 + y + m, 4 + z : 4 + z + l]

    result = c["c0"] * at(0, 0, 0)
    for r in range(1, 5):
        for s in (-r, r):
            result = result + c[f"c{r}"] * (at(s, 0, 0) + at(0, s, 0) + at(0, 0, s))
    return result


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
