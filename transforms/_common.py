"""Helpers that the loop transforms share: names, statements, and instance maps."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import islpy as isl
import pymbolic.primitives as prim

from loopkit._arguments import names_in
from loopkit._arrays import Argument, ArrayArg, ConstantTable, TemporaryVariable
from loopkit._change import Change, InstanceMap
from loopkit._check.instance_maps import descend, lineage_of, own_lineage
from loopkit._check.value_types import ValueTypes
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    LoopkitError,
    UnknownNameError,
    Witness,
)
from loopkit._expression import variable_names
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._relations import reachable
from loopkit._rules import expand_in
from loopkit._simplify import simplify_indices
from loopkit._spelling import check_name
from loopkit._tree import Path, build, entries_of, rewrite_paths
from loopkit._types import Kind, dtype_of, known_types
from loopkit.transforms._rule_uses import Values, rename_functions, with_rewritten_rules


def new_name(kernel: Kernel, given: str | None, default: str, taken: Iterable[str] = ()) -> str:
    """The name of something new: ``given``, which must be free, or one like ``default``."""
    if given is None:
        return kernel.fresh_name(default, taken)
    given = check_name(given)
    if given in kernel.all_names or given in set(taken):
        free = kernel.fresh_name(given, taken)
        raise InvalidArgumentError(f"the name '{given}' is taken", instead=f"'{free}' is free")
    return given


def inames_in(
    kernel: Kernel, given: str | Iterable[str] | None, argument: str = ""
) -> tuple[str, ...]:
    """The inames that an argument names, each of which exists; one at least, if that has a name."""
    found = tuple(kernel.check_iname(iname) for iname in names_in(given))
    if argument and not found:
        raise InvalidArgumentError(f"{argument} names no iname")
    return found


def swept_in(kernel: Kernel, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """The inames that an argument names; one that has been split means all of its parts.

    An iname of the original text is identified through the text.  Any other is identified by the
    names of its parts: ``u_dim_0`` of a copy, whose axis was split for threads, by
    ``u_dim_0_outer`` and ``u_dim_0_inner``.
    """
    found: dict[str, None] = {}
    for name in names_in(given):
        parts = () if name in kernel.home_domain else _parts_of(kernel, name)
        found |= dict.fromkeys(parts or (kernel.check_iname(name),))
    return tuple(found)


def _parts_of(kernel: Kernel, name: str) -> tuple[str, ...]:
    """The inames that a split one has become; none where that is not known."""
    lineage = lineage_of(kernel)
    values = (lineage.value_of(i.statement).get(name) for i in lineage.images)
    told = frozenset().union(*(variable_names(value) for value in values if value is not None))
    if not told:
        part = re.compile(re.escape(name) + "(_outer|_inner)+")
        told = frozenset(filter(part.fullmatch, kernel.all_inames))
        if len({i.removeprefix(name).split("_")[1] for i in told}) < 2:
            return ()
    return tuple(i for i in kernel.all_inames if i in told)


def statements_with(kernel: Kernel, inames: Iterable[str]) -> frozenset[str]:
    """Ids of the statements that are inside any of ``inames``."""
    wanted = set(inames)
    return frozenset(s.id for s in kernel.statements if s.inames & wanted)


def refuse_tagged(kernel: Kernel, iname: str, verb: str) -> None:
    """An error if ``iname`` has a tag: what it becomes would have none."""
    tag = kernel.iname_tags.get(iname)
    if tag is not None:
        raise IllegalTransformError(
            f"cannot {verb} iname '{iname}': it is tagged {tag}",
            instead=f"untag it first: untag_inames('{iname}')",
        )


def is_parallel(kernel: Kernel, iname: str) -> bool:
    """Whether ``iname`` is a hardware coordinate."""
    tag = kernel.iname_tags.get(iname)
    return tag is not None and tag.is_parallel


def check_is_loop(kernel: Kernel, iname: str) -> None:
    """An error if ``iname`` is a hardware coordinate."""
    if is_parallel(kernel, iname):
        tag = kernel.iname_tags[iname]
        raise IllegalTransformError(f"iname '{iname}' is tagged {tag}, and is no loop")


def temporary_of(kernel: Kernel, name: str) -> TemporaryVariable:
    """The temporary called ``name``; an error for what is none, such as an argument."""
    found = kernel.temporary_by_name.get(name)
    if found is not None:
        return found
    if isinstance(kernel.arg_by_name.get(name), ArrayArg):
        raise fixed_layout(kernel.array(name))
    raise UnknownNameError("temporary", name, kernel.temporary_by_name)


def temporaries_in(
    kernel: Kernel, only: str | Iterable[str] | None
) -> tuple[TemporaryVariable, ...]:
    """The temporaries that an argument names, in the order of the kernel; all where it is None."""
    if only is None:
        return kernel.temporaries
    named = [temporary_of(kernel, name).name for name in names_in(only)]
    return tuple(t for t in kernel.temporaries if t.name in named)


def fixed_layout(array: ArrayArg | TemporaryVariable) -> IllegalTransformError:
    """The error for a step that takes temporaries, and is given an argument or a table."""
    if isinstance(array, ConstantTable):
        why = f"'{array.name}' is a table of constants, whose layout is that of its initializer"
        return IllegalTransformError(why, instead="add_prefetch makes a copy, which may be changed")
    return IllegalTransformError(
        f"'{array.name}' is an argument: the caller decides its memory layout",
        witness=Witness("layout", array.name, (0,) * len(array.shape or ())),
        instead="temporaries, which add_prefetch and buffer_array make, are the kernel's own",
    )


def then(kernel: Kernel, first: Change, second: Change) -> Change:
    """Two changes as one: the first of ``kernel``, the second of what the first made of it."""
    lineage = descend(descend(own_lineage(kernel), kernel, first), first.kernel, second)
    mapped = {m.new for m in (*first.instances, *second.instances)}
    maps = [
        InstanceMap(
            image.statement,
            image.origin,
            {i: e for i, e in image.values if e != prim.Variable(i)},
            frozenset(lineage.every(image)),
        )
        for image in lineage.images
        if image.statement in mapped
    ]
    moves = (first.moves | second.moves) & second.kernel.statement_by_id.keys()
    return Change(second.kernel, tuple(maps), moves, wishes=(*first.wishes, *second.wishes))


def maps_for(kernel: Kernel, values: Mapping[str, Values]) -> tuple[InstanceMap, ...]:
    """Maps of statements, each with those of its ``values`` that concern it."""
    maps = []
    for id_, its in sorted(values.items()):
        gone = its.keys() & kernel.statement_by_id[id_].inames
        if gone:
            maps.append(InstanceMap(id_, id_, {n: e for n, e in its.items() if n in gone}))
    return tuple(maps)


def with_statements(kernel: Kernel, changed: Mapping[str, Statement]) -> Kernel:
    """The kernel with some statements exchanged, by their ids."""
    if not changed:
        return kernel
    return kernel.with_(statements=tuple(changed.get(s.id, s) for s in kernel.statements))


def without_statements(
    kernel: Kernel, gone: Collection[str], temporaries: Collection[str]
) -> Kernel:
    """The kernel without some statements, by their ids, and without some temporaries.

    What depended on a statement that goes depends on what that depended on.
    """
    by_id = kernel.statement_by_id

    def left(ids: frozenset[str]) -> frozenset[str]:
        if ids.isdisjoint(gone):
            return ids
        passed = reachable(ids, lambda id_: by_id[id_].depends_on if id_ in gone else ())
        return passed.difference(gone)

    return kernel.with_(
        statements=tuple(
            replace(s, depends_on=left(s.depends_on)) for s in kernel.statements if s.id not in gone
        ),
        tree=build([entry for entry in entries_of(kernel.tree) if entry[0] not in gone]),
        temporaries=tuple(t for t in kernel.temporaries if t.name not in temporaries),
    )


def with_arrays(kernel: Kernel, changed: Mapping[str, Argument | TemporaryVariable]) -> Kernel:
    """The kernel with some arguments and temporaries exchanged, by their names."""
    args = tuple(changed.get(a.name, a) for a in kernel.args)
    temporaries = tuple(changed.get(t.name, t) for t in kernel.temporaries)
    return kernel.with_(args=args, temporaries=temporaries)


def rewrite_statements(
    kernel: Kernel,
    values: Mapping[str, Values],
    new_inames: Iterable[str],
    inside: Callable[[Statement], Iterable[str]] | None = None,
) -> tuple[tuple[Statement, ...], tuple[SubstitutionRule, ...]]:
    """Statements and rules after values replace inames: those of each statement's id.

    A statement gets those of ``new_inames`` that the values of its inames use, or that ``inside``
    names.
    A rule that mentions a replaced iname, and that other statements use too, is copied.
    """
    fresh = frozenset(new_inames)
    kernel, names = with_rewritten_rules(kernel, values)
    types, statements = ValueTypes(Model(kernel)), []
    for statement in kernel.statements:
        its = values.get(statement.id, {})
        gone = statement.inames & its.keys()
        if not gone:
            statements.append(statement)
            continue
        used = frozenset().union(*(variable_names(its[name]) for name in gone))
        changed = statement.map_expressions(lambda e, its=its: types.substituted(e, its))
        if renamed := names.get(statement.id):
            changed = changed.map_expressions(lambda e, new=renamed: rename_functions(e, new))
        more = used & fresh if inside is None else inside(statement)
        statements.append(replace(changed, inames=(statement.inames - gone).union(more)))
    return tuple(statements), kernel.substitutions


def with_inames(
    kernel: Kernel,
    values: Mapping[str, Values],
    new_inames: Iterable[str],
    path: Callable[[str, Path], Path],
    inside: Callable[[Statement], Iterable[str]] | None = None,
    **changes: Any,
) -> Change:
    """Statements over new inames; ``values`` of each, by id, are old ones in terms of these.

    ``path`` gives the path of each of them anew; ``changes`` are to other fields of the kernel.
    A statement is inside those of ``new_inames`` that it comes to use, or that ``inside`` names.
    """
    statements, rules = rewrite_statements(kernel, values, new_inames, inside)
    tree = rewrite_paths(kernel.tree, lambda id_, old: path(id_, old) if id_ in values else old)
    new = kernel.with_(statements=statements, substitutions=rules, tree=tree, **changes)
    return Change(new, maps_for(kernel, values))


def with_names(
    kernel: Kernel, ids: Collection[str], names: Mapping[str, str], **changes: Any
) -> Change:
    """The statements ``ids`` inside inames of other names."""
    values = {old: prim.Variable(new) for old, new in names.items()}

    def path(id_: str, old: Path) -> Path:
        return tuple((names.get(iname, iname), number) for iname, number in old)

    return with_inames(kernel, dict.fromkeys(ids, values), names.values(), path, **changes)


def known_dtype(kernel: Kernel, expr: Expression) -> Kind | None:
    """The type of an expression, whatever rules stand in it; None where that is not known."""
    try:
        whole = expand_in(expr, kernel.rule_by_name)
        return dtype_of(whole, known_types(kernel).__getitem__)
    except (KeyError, LoopkitError):
        return None


def simplified(kernel: Kernel, ids: Iterable[str]) -> Kernel:
    """The kernel with the subscripts and conditions of some statements simplified."""
    integers = kernel.integers

    @cache
    def context(inames: frozenset[str]) -> isl.Set:
        return kernel.domain_of(inames) & kernel.assumptions.set

    def simpler(statement: Statement) -> Statement:
        around = partial(context, statement.inames)
        return statement.map_expressions(lambda e: simplify_indices(e, integers, around))

    return with_statements(kernel, {i: simpler(kernel.statement_by_id[i]) for i in ids})
