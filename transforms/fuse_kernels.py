"""Fusion of several kernels into one, which runs them in sequence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arrays import Argument, ArrayArg, ConstantTable, Strided
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._change import Change, InstanceMap
from loopkit._check import check_change
from loopkit._check.instance_maps import lineage_of
from loopkit._contents import Contents
from loopkit._device_functions import joined_functions
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UndecidedError, counted
from loopkit._expression import substitute
from loopkit._kernel import Domain, Kernel
from loopkit._make import infer_known_types
from loopkit._make.check_initialized import check_initialized
from loopkit._polynomials import are_one_polynomial
from loopkit._rules import expand_rules
from loopkit._slabs import slabs_named
from loopkit._spelling import check_identifier
from loopkit._tree import LaunchBarrier, Node
from loopkit.transforms._loop_nests import ordered_domains
from loopkit.transforms.arguments import (
    Renaming,
    free_names,
    fresh,
    ids_of,
    renamed,
    tables_apart,
    with_arguments_named,
)
from loopkit.transforms.rename import without_inames


@fitting
@in_turn
def fuse_kernels(
    kernels: Iterable[Kernel],
    suffixes: Sequence[str] | None = None,
    data_flow: Iterable[tuple[str, int, int]] | None = None,
    *,
    separate_launches: bool = False,
) -> Kernel:
    """Make one kernel that runs several in sequence.

    Before: for i: b[i] = 2*a[i]    and    for i: c[i] = b[i] + 1
    After: for i: b[i] = 2*a[i]  and then  for i: c[i] = b[i] + 1

    Arguments, sizes and inames of the same name are shared; :func:`rename_iname` before the fusion
    separates inames, and :func:`fuse_loops` afterwards merges their loops.  Temporaries, tables of
    constants with different contents, rules and statement ids are renamed if names collide, and so
    are inames made by steps, if their values differ.  The schedules of the kernels are kept, and
    proven again for the fused kernel.

    :arg kernels: at least one, in their order.
    :arg suffixes: what is appended to the names of the temporaries of each kernel.
    :arg data_flow: triples ``(name, one, other)``: array ``name`` is written by kernel number
        ``one`` and read, or written anew, by ``other``, which comes later, wherever it stands in
        ``kernels``.
    :arg separate_launches: end a launch behind each kernel but the last.
    :returns: the kernel, with no step taken.  What one of them surely writes before another reads
        it, no call need pass.
    :raises InvalidArgumentError: where arguments or inames of one name differ.
    :raises IllegalTransformError: where the schedules do not fit each other, with a witness.
    """
    given = kind.values_of("kernels", kernels, Kernel)
    if not given:
        raise InvalidArgumentError(
            "fuse_kernels needs at least one kernel", instead="fuse_kernels([first, then])"
        )
    flows = () if data_flow is None else kind.items("data_flow", data_flow, "a list of triples")
    order = _in_order(given, flows)
    endings = _suffixes(suffixes, len(given))
    scheduled = [given[n] for n in order]
    ends = [endings[n] for n in order]
    roots = [lineage_of(k).root for k in scheduled]
    tables = tables_apart(roots, scheduled, ends)
    texts = list(map(with_arguments_named, roots, tables))
    apart = kind.flag("separate_launches", separate_launches)
    text_names = free_names(texts, ends)
    text = _joined(texts, text_names, apart)
    if all(a is b for a, b in zip(roots, scheduled, strict=True)):
        return text
    fixed = _fixed_sizes(scheduled)
    parts = list(map(with_arguments_named, scheduled, tables))
    names = free_names(parts, ends, texts)
    change = _as_change(_joined(parts, names, apart), scheduled, names, text_names, fixed)
    try:
        lineage = check_change(text, change)
    except (IllegalTransformError, UndecidedError) as error:
        error.asked = "the schedules of these kernels do not fit each other:"
        if not apart:
            error.instead = "separate_launches=True ends a launch behind each kernel"
        raise
    return replace(change.kernel, lineage=lineage)


def _in_order(kernels: Sequence[Kernel], flows: Sequence[Any]) -> list[int]:
    """The numbers of the kernels, each behind those whose results it takes."""
    count = len(kernels)
    before: dict[int, set[int]] = {n: set() for n in range(count)}
    for flow in flows:
        if not isinstance(flow, (tuple, list)) or len(flow) != 3:
            raise kind.unfit("data_flow", "triples (name, number, number)", flow)
        name = kind.name("a name in data_flow", flow[0])
        one, other = (kind.integer("a number in data_flow", n) for n in flow[1:])
        if not (0 <= one < count and 0 <= other < count) or one == other:
            raise InvalidArgumentError(
                f"data_flow says '{name}' goes from kernel {one} to kernel {other}",
                instead=f"the kernels are numbers 0 to {count - 1}",
            )
        for number, uses, verb in (
            (one, kernels[one].writers, "writes"),
            (other, _users(kernels[other]), "uses"),
        ):
            if name not in uses or name not in kernels[number].arg_by_name:
                listed = ", ".join(sorted(n for n in uses if n in kernels[number].arg_by_name))
                raise InvalidArgumentError(
                    f"kernel {number} {verb} no argument '{name}'",
                    instead=f"it {verb} {listed}" if listed else "",
                )
        before[other].add(one)
    order: list[int] = []
    while len(order) < count:
        ready = [n for n in before if n not in order and before[n] <= set(order)]
        if not ready:
            raise InvalidArgumentError(
                "data_flow has a cycle",
                instead="each kernel runs once, behind those whose results it reads",
            )
        order.append(ready[0])
    return order


def _users(kernel: Kernel) -> Collection[str]:
    """What a kernel reads or writes."""
    return {*expand_rules(kernel).readers, *kernel.writers}


def _suffixes(given: Any, count: int) -> Sequence[str]:
    if given is None:
        return [""] * count
    found = [kind.text("a suffix", s) for s in kind.items("suffixes", given, "a list of texts")]
    if len(found) != count:
        raise InvalidArgumentError(
            f"{counted(count, 'kernel')}, but {counted(len(found), 'suffix', 'suffixes')}",
            instead="suffixes has one for each kernel; it can be empty, ''",
        )
    for suffix in found:
        check_identifier(f"a{suffix}", "a name with its suffix")
    return found


def _joined(kernels: Sequence[Kernel], names: Sequence[Renaming], apart: bool) -> Kernel:
    """All statements of all kernels, renamed, in order; with ``apart`` in separate launches."""
    first, *others = parts = [
        _with_used_inames(renamed(k, n)) for k, n in zip(kernels, names, strict=True)
    ]
    for other in others:
        if other.options != first.options:
            raise InvalidArgumentError(
                f"the options of '{first.name}' and '{other.name}' differ",
                instead="give both the same options where they are made",
            )
    assumptions = first.assumptions.set
    for other in others:
        assumptions = assumptions & other.assumptions.set
    tree: list[Node] = list(first.tree)
    ids = {id_ for k in parts for id_ in ids_of(k)}
    for other in others:
        if apart:
            barrier = LaunchBarrier(fresh("gbarrier", ids))
            ids.add(barrier.id)
            tree.append(barrier)
        tree += other.tree
    name = "_and_".join(dict.fromkeys(k.name for k in kernels))[:100]
    kernel = Kernel(
        name=fresh(name, {n for k in parts for n in k.all_names} - {name}),
        domains=_domains(parts),
        statements=tuple(s for k in parts for s in k.statements),
        args=_arguments(parts),
        temporaries=tuple(t for k in parts for t in k.temporaries),
        tree=tuple(tree),
        tags=_tags(parts),
        assumptions=Domain((), assumptions.coalesce()),
        substitutions=tuple(r for k in parts for r in k.substitutions),
        options=first.options,
        reductions=_operations(parts),
        functions=joined_functions(k.functions for k in parts),
        assertions=tuple(dict.fromkeys(a for k in parts for a in k.assertions)),
        owes_bounds=any(k.owes_bounds for k in parts),
        slabs=slabs_named(tuple(row for k in parts for row in k.slabs), {}),
    )
    kernel = infer_known_types(kernel)
    shared = [a.name for a in kernel.args if sum(a.name in k.arg_by_name for k in parts) > 1]
    return replace(kernel, args=check_initialized(kernel, shared))


def _with_used_inames(kernel: Kernel) -> Kernel:
    used = frozenset[str]().union(*(s.inames for s in kernel.statements))
    unused = [i for i in kernel.all_inames if i not in used]
    return without_inames(kernel, unused) if unused else kernel


def _operations(kernels: Sequence[Kernel]) -> tuple[Any, ...]:
    found: dict[str, Any] = {}
    for operation in (o for k in kernels for o in k.reductions):
        if found.setdefault(operation.name, operation) != operation:
            raise InvalidArgumentError(
                f"two kernels have different reductions '{operation.name}'",
                instead="another name for one of them, where it is registered",
            )
    return tuple(found.values())


def _tags(kernels: Sequence[Kernel]) -> tuple[Any, ...]:
    found: dict[str, Any] = {}
    for kernel in kernels:
        for iname in kernel.all_inames:
            tag = kernel.iname_tags.get(iname)
            if found.setdefault(iname, tag) != tag:
                raise InvalidArgumentError(
                    f"iname '{iname}' is tagged {found[iname] or 'nothing'} in one kernel, and "
                    f"{tag or 'nothing'} in another",
                    instead=f"rename_iname('{iname}', ...) in one of them",
                )
    return tuple((iname, tag) for iname, tag in found.items() if tag is not None)


def _arguments(kernels: Sequence[Kernel]) -> tuple[Argument, ...]:
    found: dict[str, Argument] = {}
    for argument in (a for k in kernels for a in k.args):
        before = found.get(argument.name)
        found[argument.name] = argument if before is None else _one_argument(before, argument)
    return tuple(found.values())


def _one_argument(one: Argument, other: Argument) -> Argument:
    """The argument that two kernels mean by one name."""
    if type(one) is not type(other):
        raise InvalidArgumentError(
            f"'{one.name}' is an array in one kernel, and a number in another",
            instead=f"rename_argument('{one.name}', ...) in one of them",
        )
    merged: dict[str, Any] = {}
    for what in ("dtype", "shape", "dim_tags", "offset", "default", "contents"):
        mine, its = getattr(one, what, None), getattr(other, what, None)
        if mine is not None and its is not None and not _are_one(mine, its):
            shown = (f"{value}" for value in (_shown(mine), _shown(its)))
            raise InvalidArgumentError(
                f"the {what.replace('_', ' ')} of '{one.name}' is {' and '.join(shown)}",
                instead="arguments of the same name are identified: declare them alike, or "
                f"rename one:  rename_argument('{one.name}', ...)",
            )
        if hasattr(one, what):
            merged[what] = its if mine is None else mine
    if isinstance(one, ArrayArg) and not isinstance(one, ConstantTable):
        merged |= {"is_input": None, "is_output": None}
    return replace(one, **merged)


def _are_one(mine: Any, its: Any) -> bool:
    """Whether two parts of declarations are equal, however their integers are spelled."""
    if mine == its:
        return True
    if isinstance(mine, tuple) and isinstance(its, tuple) and len(mine) == len(its):
        return all(map(_are_one, mine, its))
    if isinstance(mine, Strided) and isinstance(its, Strided):
        return _are_one(mine.stride, its.stride)
    return are_one_polynomial(mine, its)


def _shown(value: Any) -> str:
    if isinstance(value, Contents):
        return f"{value.array}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return str(value)


def _domains(kernels: Sequence[Kernel]) -> tuple[Domain, ...]:
    """Domains of all kernels; those that share inames are one."""
    merged: list[Domain] = []
    for domain in (d for k in kernels for d in k.domains):
        alike = [d for d in merged if not set(d.inames).isdisjoint(domain.inames)]
        whole = domain
        for other in alike:
            both = tuple(dict.fromkeys((*other.inames, *whole.inames)))
            whole = Domain(both, (other.set & whole.set).coalesce())
        for part in (*alike, domain):
            _check_alike(whole, part)
        position = merged.index(alike[0]) if alike else len(merged)
        merged = [d for d in merged if d not in alike]
        merged.insert(position, whole)
    return ordered_domains(merged)


def _check_alike(whole: Domain, part: Domain) -> None:
    """The inames of a part have the values that they had."""
    names = {*part.inames, *part.parameters}
    gone = [i for i in whole.inames if i not in names]
    if not _sets.project_out(whole.set, gone).is_equal(part.set):
        shown = ", ".join(f"'{i}'" for i in part.inames)
        raise InvalidArgumentError(
            f"iname {shown} has other values in one kernel than in another",
            instead="rename one of them with rename_iname",
        )


def _as_change(
    kernel: Kernel,
    scheduled: Sequence[Kernel],
    names: Sequence[Renaming],
    text_names: Sequence[Renaming],
    fixed: Mapping[str, int],
) -> Change:
    """The scheduled kernels together, as a change of their texts together."""
    maps: list[InstanceMap] = []
    for part, mine, its in zip(scheduled, names, text_names, strict=True):
        lineage = lineage_of(part)
        variables = {old: prim.Variable(new) for old, new in mine.names.items()}
        for image in lineage.images:
            values = {its.of(i): substitute(e, variables) for i, e in image.values}
            maps.append(InstanceMap(mine.id_of(image.statement), its.id_of(image.origin), values))
    mapped = {m.new for m in maps}
    moves = frozenset(s.id for s in kernel.statements if s.id not in mapped)
    return Change(kernel, tuple(maps), moves, fixed)


def _fixed_sizes(kernels: Sequence[Kernel]) -> dict[str, int]:
    """Sizes that have become numbers, in all kernels that have them."""
    fixed = {size: value for k in kernels for size, value in lineage_of(k).fixed}
    for kernel in kernels:
        its = dict(lineage_of(kernel).fixed)
        for size, value in fixed.items():
            if its.get(size, value) != value or (size in kernel.sizes and size not in its):
                shown = its.get(size, "open")
                raise InvalidArgumentError(
                    f"size '{size}' is {value} in one kernel, and {shown} in '{kernel.name}'",
                    instead=f"fix_parameters({size}={value}) in both, or in what comes out",
                )
    return fixed
