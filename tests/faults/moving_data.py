"""Faults where data move: buffers of rows that lie flat, copies dealt out, loops that move out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Change, GroupAxis, in_order
from seams import sets as _sets

import loopkit as lk
from faults.making import total
from faults.planting import Patch, fault
from faults.staging import box_becomes, cells_lack, without_first, without_last

# {{{ flat arrays, as rows


def added_to_rows() -> lk.Kernel:
    """Sums into rows that are laid out by hand."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < 2 }",
        "for i, j, k\n c[i*m + j] = c[i*m + j] + a[i, j, k] {id=s}\nend",
        [lk.GlobalArg("c", "float32", "n*m"), lk.GlobalArg("a", "float32", "n, m, 2"), ...],
        assumptions="n, m >= 1",
    )


def backwards() -> lk.Kernel:
    """The same, from the end of each row on."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < 2 }",
        "for i, j, k\n c[(i + 1)*m - 1 - j] = c[(i + 1)*m - 1 - j] + a[i, j, k] {id=s}\nend",
        [lk.GlobalArg("c", "float32", "n*m"), lk.GlobalArg("a", "float32", "n, m, 2"), ...],
        assumptions="n, m >= 1",
    )


def overlapping() -> lk.Kernel:
    """Rows of which each begins with the last two elements of the one before."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m + 2 }",
        "for i, j\n c[i*m + j] = 2*c[i*m + j] + a[i, j] {id=s}\nend",
        [
            lk.GlobalArg("c", "float32", "(n + 2)*m"),
            lk.GlobalArg("a", "float32", "n, m + 2"),
            ...,
        ],
        assumptions="n >= 1 and m >= 2",
    )


ROWS = (do("split_iname", "j", 4), do("prioritize_loops", "i, j_outer, k, j_inner"))
BUFFER = do("buffer_array", "c", ["k", "j_inner"], default_tag=None)


def _with(change: Callable[[Any], dict[str, Any]]) -> Patch:
    """Rows of other lengths are laid flat."""

    def make(original: Any) -> Any:
        return lambda self, expr: original(dataclasses.replace(self, **change(self)), expr)

    return Patch("_poly.rows:Rows._flatly", make)


def _as_before(original: Any) -> Any:
    """Statements that use the buffer are what they were."""

    def laid_flat(self: Any, kernel: Any, before: Any) -> Any:
        found, old = original(self, kernel, before), before.statement_by_id
        kept = (
            dataclasses.replace(s, lhs=old[s.id].lhs, rhs=old[s.id].rhs) if s.id in old else s
            for s in found.statements
        )
        return found.with_(statements=tuple(kept))

    return laid_flat


for what, patch in (
    ("a row is one longer", _with(lambda r: {"lengths": (total(r.lengths[0], 1),)})),
    ("rows are as long as there are rows", _with(lambda r: {"lengths": (r.extent,)})),
    ("what is added goes past the buffer", Patch("_poly.rows:Rows.laid_flat", _as_before)),
    ("the last cell is not moved", cells_lack("last")),
    ("the tile lacks its last column", box_becomes(without_last, 1)),
    ("the tile lacks its first column", box_becomes(without_first, 1)),
):
    fault(
        f"buffer_array in rows: {what}",
        added_to_rows,
        BUFFER,
        patch,
        chain=ROWS,
        sizes={"n": 2, "m": 6},
    )


def _turned(original: Any) -> Any:
    """A column that is moved into its row is moved by the same to the other side of the row."""

    def in_row(column: Any, length: Any, where: Any) -> Any:
        place, shift = original(column, length, where)
        return place, -shift

    return in_row


def _anywhere(original: Any) -> Any:
    """Nobody asks whether a column is one."""
    return lambda column, length, where: (original.__globals__["_affine"](column), 0)


fault(
    "buffer_array in rows: columns from the end on are those of another row",
    backwards,
    BUFFER,
    Patch("_poly.rows:_in_row", _turned),
    chain=ROWS,
    sizes={"n": 3, "m": 6},
)
fault(
    "tag_inames: blocks in place of an unrolled loop, and nobody asks whether rows overlap",
    overlapping,
    do("tag_inames", "i: unr"),
    Patch("transforms.tag:_retagged", lambda f: lambda kernel, _: f(kernel, {"i": GroupAxis(0)})),
    Patch("_poly.rows:_in_row", _anywhere),
    chain=(do("fix_parameters", n=2, m=3),),
)

# }}}

# {{{ numbers that threads spell


def halo() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        "b[i, j] = a[i, j] + a[i + 1, j + 2]",
        [lk.GlobalArg("a", "float32", "n + 1, n + 2"), lk.GlobalArg("b", "float32", "n, n"), ...],
        assumptions="n >= 1",
    )


def steps_in_time() -> lk.Kernel:
    """Two steps, of which each needs a halo of the one before."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        u(x, y) := a[x, y] + a[x + 1, y + 2]
        v(x, y) := u(x, y) - u(x + 2, y + 1)
        b[i, j] = v(i, j) + v(i + 1, j + 1)
        """,
        [lk.GlobalArg("a", "float32", "n + 4, n + 4"), lk.GlobalArg("b", "float32", "n, n"), ...],
        assumptions="n >= 1",
    )


TILES = (
    do("split_iname", "i", 2, outer_tag="g.1", inner_tag="l.1"),
    do("split_iname", "j", 4, outer_tag="g.0", inner_tag="l.0"),
)
FETCH = do("add_prefetch", "a", ["i_inner", "j_inner"], default_tag="l.auto")


def _but(forgotten: str) -> Callable[[Any], Any]:
    """Of the numbers dealt out, some are not."""

    def make(original: Any) -> Any:
        def layout(*given: Any) -> Any:
            found = original(*given)
            one = next(p for p in found.parts if forgotten in str(p.tag))
            last = prim.Comparison(prim.Variable(one.iname), "!=", one.extent - 1)
            return dataclasses.replace(found, cells=found.cells & _sets.condition_set(last))

        return layout

    return make


def _whole_rounds(original: Any) -> Any:
    """The number of rounds is rounded down."""

    def layout(*given: Any) -> Any:
        found = original(*given)
        first = dataclasses.replace(found.parts[0], extent=found.parts[0].extent - 1)
        return dataclasses.replace(found, parts=(first, *found.parts[1:]))

    return layout


for axis in ("l.0", "l.1"):
    fault(
        f"add_prefetch: the last thread along {axis} fetches nothing",
        halo,
        FETCH,
        Patch("transforms._transfer_loops:thread_layout", _but(axis)),
        chain=TILES,
        sizes={"n": 5},
    )
fault(
    "add_prefetch: the last round, which is not full, is left out",
    halo,
    FETCH,
    Patch("transforms._transfer_loops:thread_layout", _whole_rounds),
    chain=TILES,
    sizes={"n": 5},
)


def _short(where: Callable[[int], bool]) -> Callable[[Any], Any]:
    """What is left of numbers that threads spell is one less, in constraints of some sign."""

    def make(original: Any) -> Any:
        def image(*given: Any) -> Any:
            found = original(*given)
            rows = [
                (*row, constant - where(sum(row))) for *row, constant in found.inequalities.tolist()
            ]
            return dataclasses.replace(found, inequalities=np.array(rows))

        return image

    return make


VALUES = do("precompute", "u", ["v_dim_0", "v_dim_1"])
AHEAD = (*TILES, do("precompute", "v", ["i_inner", "j_inner"]))
for what, bound in (
    ("ends too early, or begins too late", _short(lambda sign: True)),
    ("ends too early", _short(lambda sign: sign < 0)),
    ("begins too late", _short(lambda sign: sign > 0)),
):
    fault(
        f"precompute: a number that threads spell {what}",
        steps_in_time,
        VALUES,
        Patch("_poly.projection:image", bound),
        chain=AHEAD,
        sizes={"n": 5},
    )
fault(
    "precompute: of a halo of a halo, the last round is left out",
    steps_in_time,
    VALUES,
    Patch("transforms._transfer_loops:thread_layout", _whole_rounds),
    chain=AHEAD,
    sizes={"n": 5},
)

# }}}

# {{{ loops that move out of those that a copy serves


def carried() -> lk.Kernel:
    """Steps of time, each from the neighbours before, in several planes."""
    return lk.make_kernel(
        "{ [t, p, i]: 0 <= t < 3 and 0 <= p < 2 and 0 <= i < n }",
        """
        f(q) := 2*b[t, q, i]
        for t, p, i
            a[t + 1, p, i] = a[t, p, i + 1] + f(p) {id=s}
        end
        """,
        [lk.GlobalArg("a", "float32", "4, 2, n + 1"), lk.GlobalArg("b", "float32", "3, 2, n"), ...],
        assumptions="n >= 1",
    )


def diagonal() -> lk.Kernel:
    """Each element from the one above, and to the right."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < 3 and 0 <= k < n }",
        "for i, k\n a[i + 1, k] = a[i, k + 1] + b[i] {id=s}\nend",
        [lk.GlobalArg("a", "float32", "4, n + 1"), lk.GlobalArg("b", "float32", "3"), ...],
        assumptions="n >= 1",
    )


def below() -> lk.Kernel:
    """Half of a matrix, and its rows' first elements."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k < 4 }"],
        "for i\n for k, j\n y[i, j, k] = x[j, k] + i {id=s}\n end\n end",
        [lk.GlobalArg("y", "float32", "n, n, 4"), lk.GlobalArg("x", "float32", "n, 4"), ...],
        assumptions="n >= 1",
    )


def _out(wrong: Callable[[list[str], Any], list[str]]) -> Callable[[Any], Any]:
    """The loops come to stand in another order."""

    def make(original: Any) -> Any:
        def moved(kernel: Any, users: Any, swept: Any, *_: Any) -> Any:
            path = [i for i, _ in kernel.paths[next(iter(users)).id]]
            wanted = wrong(path, swept)
            return Change(kernel) if wanted == path else in_order(kernel, wanted)

        return moved

    return make


def _all_others_first(path: list[str], swept: Any) -> list[str]:
    return sorted(path, key=lambda i: i in swept)


def _last_first(path: list[str], swept: Any) -> list[str]:
    return [*(i for i in reversed(path) if i not in swept), *(i for i in path if i in swept)]


OUT = (
    ("add_prefetch", do("add_prefetch", "b", "p", default_tag=None, fetch_outer_inames="t, i")),
    ("precompute", do("precompute", "f", "p", default_tag=None, precompute_outer_inames="t, i")),
)
for part, step in OUT:
    fault(
        f"{part}: loops that move out change places",
        carried,
        step,
        Patch("transforms._spanning:moved_out", _out(_last_first)),
        chain=(do("expand_subst"),) if part == "add_prefetch" else (),
        sizes={"n": 3},
    )
fault(
    "add_prefetch: a loop that the copy does not need moves out",
    diagonal,
    do("add_prefetch", "b", "i", default_tag=None),
    Patch("transforms._spanning:moved_out", _out(_all_others_first)),
    sizes={"n": 3},
)


def _without_bounds(original: Any) -> Any:
    """The one domain of loops that changed places is that of the first of them alone."""

    def domains(kernel: Any, inames: Any, outside: Any, names: Any) -> Any:
        found = original(kernel, inames, outside, names)
        mine = next(d for d in found if {*d.inames} == {*inames})
        box = _sets.universe()
        for iname in mine.inames:
            box = box & _sets.project_onto(mine.set, {iname, *kernel.sizes})
        wider = dataclasses.replace(mine, set=box)
        return tuple(wider if d is mine else d for d in found)

    return domains


fault(
    "add_prefetch: a loop that moves out runs as far as it ever does",
    below,
    do("add_prefetch", "x", "k", default_tag=None, fetch_outer_inames="j"),
    Patch("transforms._expand:_with_one_domain", _without_bounds),
    sizes={"n": 4},
)

# }}}
