"""Splitting one loop into two."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel
from loopkit._match import Match
from loopkit._nodes import Expression
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit._tree import Path, rewrite_paths
from loopkit.transforms._common import (
    maps_for,
    new_name,
    refuse_tagged,
    rewrite_statements,
    simplified,
    statements_with,
    then,
)
from loopkit.transforms._loop_nests import replace_inames
from loopkit.transforms._tagging import with_tags
from loopkit.transforms.duplicate import chosen_statements, duplicate_for
from loopkit.transforms.slabs import peeled

TagLike = str | Tag | None


def _replaced(
    kernel: Kernel,
    iname: str,
    outer: str,
    inner: str,
    value: Expression,
    box: isl.Set,
    *,
    box_is_all: bool = False,
) -> Change:
    """``iname`` replaced by two inames, of which it is ``value``; see :func:`replace_inames`."""
    ids = statements_with(kernel, [iname])
    values = {iname: value}
    statements, rules = rewrite_statements(kernel, ids, values, [outer, inner])
    name = prim.Variable(iname)
    graph = _sets.condition_set(prim.Comparison(name, "==", value))

    def divide(statement: str, path: Path) -> Path:
        result: list[tuple[str, int]] = []
        for key in path:
            result += [(outer, key[1]), (inner, key[1])] if key[0] == iname else [key]
        return tuple(result)

    changed = kernel.with_(
        domains=replace_inames(kernel, [iname], [outer, inner], graph, box, box_is_all=box_is_all),
        statements=statements,
        substitutions=rules,
        tree=rewrite_paths(kernel.tree, divide),
    )
    return Change(simplified(changed, ids), maps_for(kernel, ids, values))


def _between(low: Expression, name: str, high: Expression) -> isl.Set:
    """``low <= name < high``."""
    variable = prim.Variable(name)
    above = prim.Comparison(low, "<=", variable)
    return _sets.condition_set(prim.LogicalAnd((above, prim.Comparison(variable, "<", high))))


def _isolated(
    kernel: Kernel, iname: str, within: str | Match | None, verb: str
) -> tuple[Change, str]:
    """A kernel where the loops to be treated have an iname of their own, and that iname."""
    kernel.check_iname(iname)
    refuse_tagged(kernel, iname, verb)
    ids = chosen_statements(kernel, [iname], within)
    if ids == statements_with(kernel, [iname]):
        return Change(kernel), iname
    duplicate = kernel.fresh_name(f"{iname}_0")
    return duplicate_for(kernel, [iname], ids, {iname: duplicate}), duplicate


def _with_tags_and_slabs(
    change: Change,
    kernel: Kernel,
    inames: tuple[str, str],
    tags: tuple[TagLike, TagLike],
    slabs: tuple[int, int],
) -> Change:
    parsed = {i: parse_tag(t) for i, t in zip(inames, tags, strict=True)}
    wanted = {i: t for i, t in parsed.items() if t is not None}
    if wanted:
        change = Change(with_tags(change.kernel, wanted), change.instances, change.moves)
    if slabs != (0, 0):
        change = then(kernel, change, lambda k: peeled(k, inames[0], *slabs))
    return change


@transform(
    split_iname=kind.name,
    inner_length=kind.at_least(1),
    outer_iname=kind.new_name,
    inner_iname=kind.new_name,
    outer_tag=kind.tag,
    inner_tag=kind.tag,
    slabs=kind.counts,
    do_tagged_check=kind.flag,
    within=kind.within,
)
def split_iname(
    kernel: Kernel,
    split_iname: str,
    inner_length: int,
    *,
    outer_iname: str | None = None,
    inner_iname: str | None = None,
    outer_tag: TagLike = None,
    inner_tag: TagLike = None,
    slabs: Sequence[int] = (0, 0),
    do_tagged_check: bool = True,
    within: str | Match | None = None,
    unchecked: bool = False,
) -> Change:
    """Split a loop in two.

    Before: for i: S(i)        After: for i_outer: for i_inner: S(16*i_outer + i_inner)

    Tiles start at multiples of ``inner_length``, whatever the loop's bounds are.

    :arg inner_length: the length of the inner loop, a positive integer.
    :arg outer_iname: the new outer iname; ``<iname>_outer`` if not given.
    :arg inner_iname: the new inner iname; ``<iname>_inner`` if not given.
    :arg outer_tag: see :func:`tag_inames`.
    :arg inner_tag: see :func:`tag_inames`.
    :arg slabs: ``(first, last)``: that many iterations of the outer loop get code
        of their own, so that the rest needs no guards; see :func:`peel_iname`.
    :arg do_tagged_check: accepted; splitting a tagged iname is always an error.
    :arg within: a match string: split only around these statements, which gives
        them a loop of their own.
    """
    iname = split_iname
    length = inner_length
    isolated, iname = _isolated(kernel, iname, within, "split")

    names: list[str] = []

    def divide(current: Kernel) -> Change:
        base = split_iname
        names.append(new_name(current, outer_iname, f"{base}_outer"))
        names.append(new_name(current, inner_iname, f"{base}_inner", names))
        outer, inner = names
        product: Expression = prim.Variable(outer)
        if length > 1:
            product = prim.Product((length, product))
        value = prim.Sum((product, prim.Variable(inner)))
        return _replaced(current, iname, outer, inner, value, _between(0, inner, length))

    change = then(kernel, isolated, divide)
    return _with_tags_and_slabs(
        change, kernel, (names[0], names[1]), (outer_tag, inner_tag), (slabs[0], slabs[1])
    )


@transform(
    split_iname=kind.name,
    num_chunks=kind.at_least(1),
    outer_iname=kind.new_name,
    inner_iname=kind.new_name,
    outer_tag=kind.tag,
    inner_tag=kind.tag,
    slabs=kind.counts,
    do_tagged_check=kind.flag,
    within=kind.within,
)
def chunk_iname(
    kernel: Kernel,
    split_iname: str,
    num_chunks: int,
    outer_iname: str | None = None,
    inner_iname: str | None = None,
    outer_tag: TagLike = None,
    inner_tag: TagLike = None,
    slabs: Sequence[int] = (0, 0),
    do_tagged_check: bool = True,
    within: str | Match | None = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Split a loop into a number of chunks whose lengths differ by one at most.

    Before: for i in [0, 10): S(i)
    After (3 chunks): for i_outer in [0, 3): for i_inner in [0, 4 or 3):
    S(3*i_outer + min(i_outer, 1) + i_inner)

    Longer chunks come first.  The loop's length must be a constant, because a
    product of two sizes is not affine.  Other arguments as in
    :func:`split_iname`.
    """
    chunks = num_chunks
    isolated, iname = _isolated(kernel, split_iname, within, "chunk")
    names: list[str] = []

    def divide(current: Kernel) -> Change:
        low, high = _constant_range(current, iname)
        short, longer = divmod(high - low + 1, chunks)
        names.append(new_name(current, outer_iname, f"{split_iname}_outer"))
        names.append(new_name(current, inner_iname, f"{split_iname}_inner", names))
        outer, inner = (prim.Variable(n) for n in names)
        terms: list[Expression] = [prim.Product((short, outer))] if short > 1 else []
        terms += [outer] if short == 1 else []
        terms += [prim.Min((outer, longer))] if longer else []
        terms += [inner] + ([low] if low else [])
        value = prim.Sum(tuple(terms)) if len(terms) > 1 else terms[0]
        # Longer chunks: the quotient is 1 where i_outer < longer, else 0.
        extra = prim.FloorDiv(prim.Sum((longer - 1 + chunks, prim.Product((-1, outer)))), chunks)
        length: Expression = prim.Sum((short, extra)) if longer else short
        box = _between(0, names[0], chunks) & _between(0, names[1], length)
        home = current.domains[current.home_domain[iname]]
        every = _between(low, iname, high + 1) & _sets.project_out(home.set, [iname])
        alone = home.inames == (iname,) and every.is_subset(home.set)
        return _replaced(current, iname, names[0], names[1], value, box, box_is_all=alone)

    change = then(kernel, isolated, divide)
    return _with_tags_and_slabs(
        change, kernel, (names[0], names[1]), (outer_tag, inner_tag), (slabs[0], slabs[1])
    )


def _constant_range(kernel: Kernel, iname: str) -> tuple[int, int]:
    domain = kernel.domain_of([iname]) & kernel.assumptions.set
    variable = prim.Variable(iname)
    low = _sets.minimum_value(domain, variable)
    high = _sets.maximum_value(domain, variable)
    whole = domain.is_empty() or low is None or high is None
    if whole or not _is_always(kernel, domain, iname, low, high):
        sizes = sorted(_sets.involved_names(kernel.domain_of([iname])) & set(kernel.sizes))
        advice = f"split_iname('{iname}', length) takes any loop"
        if sizes:
            advice += f"; fix_parameters({', '.join(f'{s}=...' for s in sizes)}) makes it constant"
        raise IllegalTransformError(
            f"loop '{iname}' cannot be cut into a number of chunks: its length is not a constant, "
            f"and the start of a chunk would be a product of two unknowns",
            instead=advice,
        )
    assert low is not None and high is not None
    return low, high


def _is_always(
    kernel: Kernel, domain: isl.Set, iname: str, low: int | None, high: int | None
) -> bool:
    """Whether the loop runs from ``low`` to ``high`` for all sizes."""
    if low is None or high is None:
        return False
    context = _sets.project_out(domain, [iname])
    ends = [
        _sets.condition_set(prim.Comparison(prim.Variable(iname), "==", e)) for e in (low, high)
    ]
    return all(context.is_subset(_sets.project_out(domain & end, [iname])) for end in ends)
