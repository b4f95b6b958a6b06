"""Faults in the transforms that cut loops."""

from __future__ import annotations

import dataclasses
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain, substitute
from seams import sets as _sets

from faults import kernels
from faults.making import each, shifted, shorter_tiles, total, var, with_both
from faults.planting import Patch, fault

# {{{ split_iname

SPLIT = do("split_iname", "i", 4)
RAGGED = ({"n": 6}, {"n": 9})

with_both("split_iname: index one too large", each(shifted), kernels.added, SPLIT, sizes=RAGGED)
with_both(
    "split_iname: tiles one too short",
    each(shorter_tiles),
    kernels.added,
    SPLIT,
    sizes=RAGGED,
)


def _longer(original: Any) -> Any:
    return lambda low, name, high: original(low, name, high + 1)


fault(
    "split_iname: inner loop one too long",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", _longer),
    sizes=RAGGED,
)
fault(
    "split_iname: inner loop one too short",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", lambda f: lambda low, n, high: f(low, n, high - 1)),
    sizes=RAGGED,
)
fault(
    "split_iname: inner loop begins at one",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", lambda f: lambda low, n, high: f(low + 1, n, high)),
    sizes=RAGGED,
)


def _whole_tiles(original: Any) -> Any:
    """The bound of the last, ragged tile is lost."""

    def replace(kernel: Any, old: Any, new: Any, graph: Any, box: Any, **more: Any) -> Any:
        found = original(kernel, old, new, graph, box, **more)
        return tuple(
            Domain(d.inames, _sets.project_out(d.set, [new[-1]]) & box)
            if new[-1] in d.inames
            else d
            for d in found
        )

    return replace


fault(
    "split_iname: the last tile is whole",
    kernels.added,
    SPLIT,
    Patch("transforms.split:replace_inames", _whole_tiles),
    sizes=RAGGED,
)


def _one_statement_only(original: Any) -> Any:
    """The second statement keeps the value of the inner iname alone."""

    def rewrite(kernel: Any, values: Any, *rest: Any) -> Any:
        statements, rules = original(kernel, values, *rest)
        wrong = {rest[0][0]: 0}
        last = statements[-1]
        return (*statements[:-1], last.map_expressions(lambda e: substitute(e, wrong))), rules

    return rewrite


fault(
    "split_iname: one statement forgets the outer index",
    kernels.handed_on,
    SPLIT,
    Patch("transforms._common:rewrite_statements", _one_statement_only),
    sizes=RAGGED,
)


def _loops_swapped(original: Any) -> Any:
    """The inner loop is put outside of the outer one."""

    def rewrite(tree: Any, function: Any) -> Any:
        def swapped(statement: str, path: Any) -> Any:
            found = list(function(statement, path))
            for at, (iname, _) in enumerate(found[:-1]):
                if iname.endswith("_outer"):
                    found[at], found[at + 1] = found[at + 1], found[at]
            return tuple(found)

        return original(tree, swapped)

    return rewrite


fault(
    "split_iname: inner loop outside of the outer one",
    kernels.recurrence,
    do("split_iname", "j", 4),
    Patch("transforms._common:rewrite_paths", _loops_swapped),
)

# }}}

# {{{ slabs and peeling


def _parts_apart(original: Any) -> Any:
    """Neither part of a cut loop has the iteration at the cut."""

    def in_parts(kernel: Any, iname: str, parts: Any, *rest: Any) -> Any:
        first, others = parts
        after = prim.Comparison(var(iname), ">", prim.Product((4, var("i_outer"))))
        others = dataclasses.replace(others, where=_sets.condition_set(after))
        return original(kernel, iname, [first, others], *rest)

    return in_parts


fault(
    "peel_iname: the iteration at a cut is lost",
    kernels.turned,
    do("peel_iname", "j", at="4*i_outer"),
    Patch("transforms.slabs:in_parts", _parts_apart),
    chain=(do("split_iname", "i", 4),),
    sizes={"n": 6},
)


def _mirrored(original: Any) -> Any:
    """What has a name of its own is counted from the other end."""

    def with_inames(kernel: Any, values: Any, *rest: Any, **changes: Any) -> Any:
        def mirrored(value: Any) -> Any:
            return prim.Sum((7, prim.Product((-1, value))))

        wrong = {
            id_: {i: mirrored(v) if i == "j" else v for i, v in its.items()}
            for id_, its in values.items()
        }
        return original(kernel, wrong, *rest, **changes)

    return with_inames


fault(
    "peel_iname: what is set apart runs on other threads",
    kernels.gathered_rows,
    do("peel_iname", "b", last=1),
    Patch("transforms._common:with_inames", _mirrored),
    sizes={"n": 3},
)


def _part(suffix: str, distance: int) -> Patch:
    """A part begins (or ends) some iterations away from where it should."""

    def make(original: Any) -> Any:
        def parts(kernel: Any, iname: str, domain: Any, first: int, last: int) -> Any:
            found = original(kernel, iname, domain, first, last)
            moved = {p.suffix: p for p in original(kernel, iname, domain, first, last)}
            if suffix == "_last":
                other = original(kernel, iname, domain, first, last + distance)
            else:
                other = original(kernel, iname, domain, first + distance, last)
            moved |= {p.suffix: p for p in other if p.suffix == suffix}
            return [moved[p.suffix] for p in found]

        return parts

    return Patch("transforms.slabs:_parts", make)


SLABS = (do("split_iname", "i", 4, slabs=(1, 1)),)
PEELED = do("peel_iname", "i_outer")
LONG = ({"n": 14},)

for suffix, name in (("_first", "first"), ("_last", "last")):
    fault(
        f"split_iname: {name} slab one too long",
        kernels.added,
        PEELED,
        _part(suffix, 1),
        sizes=LONG,
        chain=SLABS,
    )
fault(
    "split_iname: last slab one too short",
    kernels.added,
    PEELED,
    _part("_last", -1),
    sizes=LONG,
    chain=(do("split_iname", "i", 4, slabs=(0, 2)),),
)
fault(
    "split_iname: slabs overlap in short loops",
    kernels.added,
    PEELED,
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda kernel, iname, domain, first, last: [
                *f(kernel, iname, domain, first, 0)[:1],
                *f(kernel, iname, domain, first, last)[1:2],
                *f(kernel, iname, domain, 0, last)[1:],
            ]
        ),
    ),
    sizes=({"n": 3},),
    chain=SLABS,
)
fault(
    "peel_iname: last iteration twice",
    kernels.added,
    do("peel_iname", "i", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=_sets.universe()) if not p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    sizes=({"n": 5},),
)
fault(
    "peel_iname: last iteration never",
    kernels.added,
    do("peel_iname", "i", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=isl_empty()) if p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    sizes=({"n": 5},),
)


def isl_empty() -> Any:
    return _sets.universe() - _sets.universe()


def _parts_swapped(original: Any) -> Any:
    """The iterations at the end run first."""
    return lambda k, i, d, first, last: list(reversed(original(k, i, d, first, last)))


fault(
    "peel_iname: last iteration runs first",
    kernels.recurrence,
    do("peel_iname", "j", last=1),
    Patch("transforms.slabs:_parts", _parts_swapped),
)


def _first_accumulator(original: Any) -> Any:
    """What is left of the last part is the sum of another one."""

    def with_copies(kernel: Any, iname: str, parts: Any, parallel: bool) -> Any:
        change, copies = original(kernel, iname, parts, parallel)
        new, old = [
            next(
                t.name for t in kernel.temporaries if t.accumulates and ("_last" in t.name) == last
            )
            for last, kernel in ((True, change.kernel), (False, kernel))
        ]
        changed = [
            s if s.written == new else s.map_expressions(lambda e: substitute(e, {new: var(old)}))
            for s in change.kernel.statements
        ]
        return dataclasses.replace(
            change, kernel=change.kernel.with_(statements=tuple(changed))
        ), copies

    return with_copies


fault(
    "peel_iname: a part takes the sum of another one",
    kernels.row_sums,
    do("peel_iname", "i", last=1),
    Patch("transforms.slabs:_with_copies", _first_accumulator),
    sizes={"n": 3},
)
fault(
    "peel_iname: blocks at the edge run both copies",
    kernels.added,
    do("peel_iname", "i_outer", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=_sets.universe()) if not p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    chain=(do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0"),),
    sizes=LONG,
)

# }}}

# {{{ chunk_iname

CHUNK = do("chunk_iname", "i", 3)


def _without_longer(value: Any) -> Any:
    """The start of a chunk as if all of them had the same length."""
    return total(*(c for c in value.children if not isinstance(c, prim.Min)))


with_both(
    "chunk_iname: starts ignore the longer chunks",
    each(_without_longer),
    kernels.added_ten,
    CHUNK,
)
fault(
    "chunk_iname: all chunks are long",
    kernels.added_ten,
    CHUNK,
    Patch(
        "transforms.split:_between",
        lambda f: lambda low, n, high: f(low, n, 4 if n.endswith("inner") else high),
    ),
)
fault(
    "chunk_iname: one chunk too few",
    kernels.added_ten,
    CHUNK,
    Patch(
        "transforms.split:_between",
        lambda f: lambda low, n, high: f(low, n, high - 1 if n.endswith("outer") else high),
    ),
)

# }}}
