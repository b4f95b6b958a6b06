"""Tags on inames, and what hardware can carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._tags import InstructionParallel, LocalAuto, LocalAxis, Tag, Unroll
from loopkit.transforms._loop_nests import extent, hull, is_bounded, longest_run, settled_tree


def reduction_inames(kernel: Kernel) -> Mapping[str, str]:
    """Inames over which an accumulator is updated, each with the id of such an update."""
    found: dict[str, str] = {}
    for statement in kernel.statements:
        if statement.kind != "update":
            continue
        starts = [s for s in kernel.writers[statement.written] if s.kind == "init"]
        outer = frozenset().union(*(s.inames for s in starts))
        for iname in statement.inames - outer:
            found.setdefault(iname, statement.id)
    return found


def with_tags(kernel: Kernel, tags: Mapping[str, Tag | None]) -> Kernel:
    """The kernel with tags set (None removes one), checked, and loops adjusted."""
    merged = {**kernel.iname_tags, **{i: t for i, t in tags.items() if t is not None}}
    for iname, tag in tags.items():
        if tag is None:
            merged.pop(iname, None)
        elif isinstance(tag, LocalAuto):
            merged[iname] = _free_axis(kernel, iname, merged)
    new = kernel.with_(tags=tuple(merged.items()))
    _check_tags(new, [i for i, t in tags.items() if t is not None])
    return settled_tree(new)


def _free_axis(kernel: Kernel, iname: str, tags: Mapping[str, Tag]) -> Tag:
    """The lowest thread axis that no iname beside ``iname`` has."""
    beside = {i for s in kernel.statements if iname in s.inames for i in s.inames} - {iname}
    taken = {t.axis for i in beside if isinstance(t := tags.get(i), LocalAxis)}
    for axis in range(3):
        if axis not in taken:
            return LocalAxis(axis)
    raise IllegalTransformError(
        f"iname '{iname}' cannot be tagged l.auto: all three thread axes are taken around it",
        instead="join inames first: join_inames",
    )


def _check_tags(kernel: Kernel, inames: Iterable[str]) -> None:
    reductions: Mapping[str, str] | None = None
    length = cache(partial(_length, kernel, used_inames(kernel)))
    for iname in inames:
        tag = kernel.iname_tags[iname]
        if tag.is_parallel or isinstance(tag, InstructionParallel):
            if reductions is None:
                reductions = reduction_inames(kernel)
            if iname in reductions:
                _refuse_reduction(kernel, iname, tag, reductions)
        if tag.is_parallel:
            _check_axis_bounds(kernel, iname, tag)
            _check_clashes(kernel, iname, tag, length)
        elif isinstance(tag, (Unroll, InstructionParallel)):
            _check_constant_length(kernel, iname, tag)
        if isinstance(tag, InstructionParallel):
            _check_loaded_bounds(kernel, iname)


def _refuse_reduction(kernel: Kernel, iname: str, tag: Tag, reductions: Mapping[str, str]) -> None:
    update = kernel.statement_by_id[reductions[iname]]
    others = [
        i
        for i in kernel.all_inames
        if i in update.inames and i not in reductions and i not in kernel.iname_tags
    ]
    instead = f"leave '{iname}' a loop (it may be tagged unr)"
    if others:
        names = " or ".join(f"'{i}'" for i in others)
        instead += f", and tag {names} {tag} instead"
    raise IllegalTransformError(
        f"iname '{iname}' cannot be tagged {tag}: statement '{update.id}' reduces over it, and "
        f"the threads would all update one accumulator '{update.written}'",
        instead=instead,
    )


def _check_axis_bounds(kernel: Kernel, iname: str, tag: Tag) -> None:
    domain = hull(kernel, [iname])
    if not kernel.parents_of(iname) and is_bounded(domain, iname):
        return
    if domain.is_empty() or extent(kernel, iname) is not None:
        return
    sizes = {a.name for a in kernel.args if isinstance(a, ValueArg)}
    whole = kernel.domains[kernel.home_domain[iname]]
    loaded = sorted(whole.parameters - sizes - kernel.home_domain.keys())
    if loaded:
        raise IllegalTransformError(
            f"iname '{iname}' cannot be tagged {tag}: its length depends on data "
            f"('{loaded[0]}'), and the number of threads is fixed when a kernel starts",
            instead=f"bound it by a size as well, or split it: "
            f"split_iname('{iname}', 32, inner_tag='{tag}')",
        )
    raise IllegalTransformError(
        f"iname '{iname}' cannot be tagged {tag}: it has no bounds",
        instead="give its domain a lower and an upper bound that depend on sizes alone",
    )


def used_inames(kernel: Kernel) -> frozenset[str]:
    """The inames that any statement is inside."""
    return frozenset().union(*(s.inames for s in kernel.statements))


def _length(kernel: Kernel, used: frozenset[str], iname: str) -> Expression | None:
    """How many values an iname has; None where that is unknown, or nothing is inside."""
    found = extent(kernel, iname) if iname in used else None
    return None if found is None else found[1]


def _check_clashes(
    kernel: Kernel, iname: str, tag: Tag, length: Callable[[str], Expression | None]
) -> None:
    same = [i for i, t in kernel.tags if t == tag and i != iname]
    for statement in kernel.statements:
        if iname not in statement.inames:
            continue
        for other in same:
            if other in statement.inames:
                raise IllegalTransformError(
                    f"inames '{other}' and '{iname}' cannot both be tagged {tag}: "
                    f"statement '{statement.id}' is inside both",
                    instead=f"use another axis, or join them: join_inames(['{other}', '{iname}'])",
                )
    if not same:
        return
    mine = length(iname)
    for other in same:
        its = length(other)
        if mine is None or its is None or _same_length(kernel, mine, its):
            continue
        raise IllegalTransformError(
            f"inames '{other}' and '{iname}' cannot both be tagged {tag}: "
            f"'{other}' has {to_text(its)} values and '{iname}' has {to_text(mine)}",
            instead="split or pad the longer one, or say by assume(...) that they are equal",
        )


def _same_length(kernel: Kernel, first: object, second: object) -> bool:
    if first == second:
        return True
    differs = _sets.condition_set(prim.Comparison(first, "!=", second))
    return bool((differs & kernel.assumptions.set).is_empty())


def _check_loaded_bounds(kernel: Kernel, iname: str) -> None:
    """Copies side by side cannot each have a bound of their own for one loop."""
    for domain in kernel.domains:
        for name in sorted(domain.parameters & kernel.temporary_by_name.keys()):
            if any(iname in w.inames for w in kernel.writers.get(name, ())):
                raise IllegalTransformError(
                    f"iname '{iname}' cannot be tagged ilp: each of its copies would have a "
                    f"'{name}' of its own, and '{name}' bounds the loop over "
                    f"'{domain.inames[0]}', which all copies share",
                    instead=f"tag '{iname}' unr: its copies then follow each other",
                )


def _check_constant_length(kernel: Kernel, iname: str, tag: Tag) -> None:
    if longest_run(kernel, iname) is None:
        found = extent(kernel, iname)
        what = f"has {to_text(found[1])} iterations" if found else "has no bounds"
        raise IllegalTransformError(
            f"iname '{iname}' cannot be tagged {tag}: it {what}, and only a constant number of "
            f"copies can be written out",
            instead=f"split it: split_iname('{iname}', 4, inner_tag='{tag}')",
        )


def describe(tag: Tag | None) -> str:
    """A tag as a message names it."""
    return "for" if tag is None else str(tag)
