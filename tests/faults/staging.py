"""Faults in add_prefetch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import sets as _sets

from faults import kernels
from faults.planting import Patch, fault
from loopkit import AddressSpace

# {{{ what is fetched


def box_becomes(change: Callable[[Any], Any], number: int = 0) -> Patch:
    """One axis of the footprint is another one than it should be."""

    def make(original: Any) -> Any:
        def find(*arguments: Any) -> Any:
            box = list(original(*arguments))
            box[number] = change(box[number])
            return tuple(box)

        return find

    return Patch("transforms._uses:find_box", make)


def without_last(axis: Any) -> Any:
    return dataclasses.replace(axis, extent=axis.extent - 1)


def without_first(axis: Any) -> Any:
    return dataclasses.replace(axis, lower=axis.lower + axis.stride, extent=axis.extent - 1)


def cells_lack(end: str) -> Patch:
    """The copy has room for all cells, but one at an end is not moved."""

    def make(original: Any) -> Any:
        def cells(kernel: Any, uses: Any, box: Any, positions: Any, place: Any, **more: Any) -> Any:
            found = original(kernel, uses, box, positions, place, **more)
            for name, axis in zip(positions, box, strict=True):
                if name is not None:
                    edge = 0 if end == "first" else axis.extent - 1
                    other = prim.Comparison(prim.Variable(name), "!=", edge)
                    return found & _sets.condition_set(other)
            return found

        return cells

    return Patch("transforms._placement:cells_in_use", make)


THREADS = (do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0"),)
LOOPS = (do("split_iname", "i", 4),)
SHARED = do("add_prefetch", "a", "i_inner")
PRIVATE = do("add_prefetch", "a", "i_inner", default_tag=None)
RAGGED = ({"n": 7}, {"n": 10})

for end, change in (("last", without_last), ("first", without_first)):
    fault(
        f"add_prefetch: footprint lacks its {end} cell",
        kernels.stencil,
        PRIVATE,
        box_becomes(change),
        chain=LOOPS,
        sizes=RAGGED,
    )
    fault(
        f"add_prefetch: footprint of threads lacks its {end} cell",
        kernels.stencil,
        SHARED,
        box_becomes(change),
        chain=THREADS,
        sizes=RAGGED,
    )
    fault(
        f"add_prefetch: the {end} cell is not fetched",
        kernels.stencil,
        PRIVATE,
        cells_lack(end),
        chain=LOOPS,
        sizes=({"n": 10},),
    )
    fault(
        f"add_prefetch: the {end} cell is not fetched by any thread",
        kernels.stencil,
        SHARED,
        cells_lack(end),
        chain=THREADS,
        sizes=({"n": 10},),
    )


def _first_writes_alone(original: Any) -> Any:
    """What the first of several statements writes counts as all that is ever written."""

    def there(kernel: Any, name: str, indices: Any) -> Any:
        low = prim.Comparison(indices[0], "<", 4)
        return original(kernel, name, indices) & _sets.condition_set(low)

    return there


fault(
    "add_prefetch: cells are not fetched that a second statement writes",
    kernels.table_of_two,
    do("add_prefetch", "t", default_tag=None),
    Patch("transforms._placement:where_written", _first_writes_alone),
    sizes={"n": 9},
    by_running=True,
    values=lambda _: {"p": np.arange(9, dtype="i4") % 8, "a": np.arange(8, dtype="f4")},
)


def _guards_turned(module: str) -> Patch:
    """What is read where a condition holds counts as read where it does not."""

    def make(original: Any) -> Any:
        return lambda guards, names: original([prim.LogicalNot(g) for g in guards], names)

    return Patch(f"transforms.{module}:where_all_hold", make)


fault(
    "add_prefetch: what a condition lets be read is not fetched",
    kernels.guarded,
    SHARED,
    _guards_turned("_uses"),
    chain=(*THREADS, do("expand_subst")),
    sizes=RAGGED,
)
fault(
    "precompute: what a condition lets be read is not computed",
    kernels.guarded,
    do("precompute", "f", "i_inner"),
    _guards_turned("_placement"),
    chain=THREADS,
    sizes=RAGGED,
)


def _range_after(original: Any) -> Any:
    """A range begins behind its first cell."""

    def slice_range(*args: Any) -> Any:
        found = original(*args)
        return dataclasses.replace(found, lower=found.lower + 1)

    return slice_range


fault(
    "add_prefetch: a range begins behind its first cell",
    kernels.ruled_row,
    do("add_prefetch", "a[i:i + 4]", default_tag=None, temporary_address_space="private"),
    Patch("transforms._spanning:_slice_range", _range_after),
    Patch("transforms._spanning:is_inside", lambda f: lambda *_: True),
    chain=(do("expand_subst"),),
    sizes={"n": 3},
)


def _first_use_only(original: Any) -> Any:
    return lambda kernel, uses, *rest: original(kernel, uses[:1], *rest)


fault(
    "add_prefetch: no halo",
    kernels.stencil,
    PRIVATE,
    Patch("transforms._uses:find_box", _first_use_only),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "add_prefetch: footprint and cells are off by different amounts",
    kernels.stencil,
    PRIVATE,
    box_becomes(lambda axis: dataclasses.replace(axis, lower=axis.lower - 1)),
    Patch(
        "transforms._staging:element",
        lambda f: lambda name, cells: f(name, tuple(prim.Sum((c, 2)) for c in cells)),
    ),
    chain=LOOPS,
    sizes=RAGGED,
)
fault(
    "add_prefetch: fetched from one cell further on",
    kernels.stencil,
    SHARED,
    Patch(
        "transforms._staging:element",
        lambda f: lambda name, cells: f(name, tuple(prim.Sum((c, 1)) for c in cells)),
    ),
    chain=THREADS,
    sizes=RAGGED,
)
fault(
    "add_prefetch: reads beyond the array at its edge",
    kernels.stencil,
    do("add_prefetch", "a", "i_inner", fetch_bounding_box=True),
    Patch("transforms._placement:inside_array", lambda f: lambda *_: _sets.universe()),
    chain=THREADS,
    sizes=RAGGED,
)
fault(
    "add_prefetch: the guard at the edge is one too tight",
    kernels.stencil,
    do("add_prefetch", "a", "i_inner", fetch_bounding_box=True),
    Patch(
        "transforms._placement:inside_array",
        lambda f: lambda shape, cells: f(tuple(prim.Sum((s, -1)) for s in shape), cells),
    ),
    chain=THREADS,
    sizes=({"n": 9},),
)

TILED = (
    do("split_iname", "i", 2, outer_tag="g.1", inner_tag="l.1"),
    do("split_iname", "j", 2, outer_tag="g.0", inner_tag="l.0"),
    do("split_iname", "k", 2),
)
TILE = do("add_prefetch", "a", ["i_inner", "k_inner"])
ODD = {"n": 3, "m": 3, "l": 5}


def _axes_exchanged(original: Any) -> Any:
    """The copy is filled row by column, and read the right way round."""
    return lambda self, box: list(reversed(original(self, box)))


fault(
    "add_prefetch: the tile is stored transposed",
    kernels.product,
    TILE,
    Patch("transforms._transfer_loops:Nest.kept", _axes_exchanged),
    chain=TILED,
    sizes=ODD,
)
fault(
    "add_prefetch: footprint of a tile one column short",
    kernels.product,
    TILE,
    box_becomes(without_last, 1),
    chain=TILED,
    sizes=ODD,
)


def _range_lacks(end: str) -> Any:
    """Of what data may choose, the first or the last is forgotten."""

    def make(original: Any) -> Any:
        def found(domain: Any, name: str) -> Any:
            known = original(domain, name)
            lower = known.lower + 1 if end == "first" else known.lower
            return dataclasses.replace(known, lower=lower, span=known.span - 1)

        return found

    return make


def near(sizes: Any) -> Any:
    return {"near": [3, 0, 1, 3]}


CHOSEN = {
    "add_prefetch": do("add_prefetch", "a", "i_inner, j"),
    "precompute": do("precompute", "f", "i_inner, j"),
}
for step in CHOSEN:
    for end in ("first", "last"):
        fault(
            f"{step}: the {end} cell that data may choose is not in the footprint",
            kernels.chosen_by_data,
            CHOSEN[step],
            Patch("transforms._uses:_range_in", _range_lacks(end)),
            chain=THREADS,
            sizes={"n": 6},
            by_running=True,
            values=near,
        )
fault(
    "precompute: what data choose is read one cell beside",
    kernels.chosen_by_data,
    CHOSEN["precompute"],
    Patch(
        "transforms._staging:element",
        lambda f: (
            lambda name, cells: f(
                name, tuple(prim.Sum((c, -1)) if "near" in str(c) else c for c in cells)
            )
        ),
    ),
    chain=THREADS,
    sizes={"n": 6},
    by_running=True,
    values=near,
)

# }}}

# {{{ what is read instead


def _shifted_reads(original: Any) -> Any:
    def replacement(copy: Any, accesses: Any, statement: str) -> Any:
        right = original(copy, accesses, statement)

        def wrong(indices: Any) -> Any:
            found = right(indices)
            if found is None:
                return None
            *rest, last = found.index_tuple
            return prim.Subscript(found.aggregate, (*rest, prim.Sum((last, 1))))

        return wrong

    return replacement


fault(
    "add_prefetch: replaced reads are one cell off",
    kernels.stencil,
    PRIVATE,
    Patch("transforms._staging:_by_copy", _shifted_reads),
    chain=LOOPS,
    sizes=RAGGED,
)


def _same_for_all(original: Any) -> Any:
    """All replaced reads become the first one."""

    def replacement(copy: Any, accesses: Any, statement: str) -> Any:
        right = original(copy, accesses, statement)
        return lambda indices: right(indices) and copy.at(accesses[0].indices)

    return replacement


fault(
    "add_prefetch: all reads get the first neighbour",
    kernels.stencil,
    PRIVATE,
    Patch("transforms._staging:_by_copy", _same_for_all),
    chain=LOOPS,
    sizes=RAGGED,
)

# }}}

# {{{ where it is fetched


def no_writers(original: Any) -> Any:
    """The place is inside the loops that the footprint needs, whoever writes what is fetched."""
    return lambda *arguments, **more: original(*arguments, **{**more, "writers": ()})


fault(
    "add_prefetch: fetched outside of the loop that writes it",
    kernels.ping_pong,
    do("add_prefetch", "a", "i", default_tag=None),
    Patch("transforms._staging:find_place", no_writers),
    sizes={"T": 3},
)


def _after_use(original: Any) -> Any:
    def place(*arguments: Any, **more: Any) -> Any:
        found = original(*arguments, **more)
        return dataclasses.replace(found, first=found.last + 1)

    return place


fault(
    "add_prefetch: fetched after it is used",
    kernels.stencil,
    SHARED,
    Patch("transforms._staging:find_place", _after_use),
    chain=THREADS,
    sizes=RAGGED,
)


def one_loop_out(original: Any) -> Any:
    """Outside of the innermost loop that it needs, for that loop's first value."""

    def make(kernel: Any, statement: Any, nest: Any, place: Any, entry: int, *_: Any) -> Any:
        gone = place.path[-1][0]
        first = {gone: 0}
        from seams import substitute

        wrong = statement.map_expressions(lambda e: substitute(e, first))
        domain = nest.domain
        if domain is not None and gone in domain.parameters:
            fixed = _sets.project_out(domain.set & _sets.equality(gone, 0), [gone])
            domain = dataclasses.replace(domain, set=fixed)
        wrong = dataclasses.replace(wrong, inames=wrong.inames - {gone})
        return original(
            kernel,
            wrong,
            dataclasses.replace(nest, domain=domain),
            dataclasses.replace(place, path=place.path[:-1]),
            entry,
        )

    return make


fault(
    "add_prefetch: fetched once, outside of the loop that changes what is fetched",
    kernels.product,
    TILE,
    Patch("transforms._staging:with_nest", one_loop_out),
    chain=TILED,
    sizes=ODD,
)


def _each_its_own(original: Any) -> Any:
    """Every thread fetches the one cell that it needs, all of them to the same place."""

    def found(kernel: Any, users: Any, swept: Any, needed: Any, space: Any) -> Any:
        return original(kernel, users, swept, needed, AddressSpace.PRIVATE)

    return found


fault(
    "add_prefetch: sweeps over no thread although the copy is shared",
    kernels.stencil,
    do("add_prefetch", "a", temporary_address_space="private"),
    Patch("transforms._placement:coordinates", _each_its_own),
    Patch("transforms._computed_ahead:choose_space", lambda f: lambda *_: AddressSpace.LOCAL),
    Patch(
        "transforms._staging:make_nest", lambda f: lambda *a, **m: f(*a, **{**m, "together": False})
    ),
    chain=THREADS,
    sizes=RAGGED,
)
fault(
    "add_prefetch: threads fill private memory together",
    kernels.stencil,
    SHARED,
    Patch("transforms._staging:TemporaryVariable", lambda f: _in_private(f)),
    chain=THREADS,
    sizes=({"n": 10},),
)


def _in_private(original: Any) -> Any:
    def make(name: str, dtype: Any, shape: Any, space: Any, **more: Any) -> Any:
        return original(name, dtype, shape, AddressSpace.PRIVATE, **more)

    return make


# }}}
