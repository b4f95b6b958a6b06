"""Renaming, reordering and removal of arguments, and renaming of a kernel's own names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arrays import Argument, ConstantTable, TemporaryVariable, with_expressions
from loopkit._assertions.assertion_values import in_order
from loopkit._assertions.assertion_values import renamed as with_names
from loopkit._change import Change
from loopkit._check.argument_names import names_needed
from loopkit._errors import (
    InvalidArgumentError,
    NothingToDoError,
    check_known,
)
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Statement, SubstitutionRule
from loopkit._nodes import Expression
from loopkit._slabs import slabs_named
from loopkit._spelling import candidates
from loopkit._transform import transform
from loopkit._tree import LaunchBarrier, Loop, Node, entries_of
from loopkit.transforms import _common
from loopkit.transforms._loop_nests import renamed_domain
from loopkit.transforms._rule_uses import rename_functions


@dataclass(frozen=True)
class Renaming:
    """Other names of what is a kernel's own: variables, rules and storage, and statements' ids."""

    names: Mapping[str, str]
    ids: Mapping[str, str]

    def of(self, name: str) -> str:
        """The name of what was called ``name``."""
        return self.names.get(name, name)

    def id_of(self, id_: str) -> str:
        """The id of the statement, or the barrier, that had ``id_``."""
        return self.ids.get(id_, id_)


def free_names(
    kernels: Sequence[Kernel], suffixes: Sequence[str], texts: Sequence[Kernel] = ()
) -> list[Renaming]:
    """New names for the private names of each kernel that another kernel uses as well.

    Inames of the original ``texts`` are shared between the kernels; all other inames are private.
    """
    arguments = {n for k in kernels for n in (*k.arg_by_name, *k.sizes)}
    taken, ids = set(arguments), set[str]()
    result: list[Renaming] = []
    everything = arguments.union(*(k.all_names for k in kernels))
    everything |= {a for k in kernels for rule in k.substitutions for a in rule.arguments}
    all_ids = frozenset(id_ for k in kernels for id_ in ids_of(k))
    inames = [_apart(k.all_inames, arguments, everything) for k in kernels]
    for names, own in zip(inames, _made_apart(kernels, texts or kernels, everything), strict=True):
        names |= own
    for kernel, names in zip(kernels, inames, strict=True):
        taken.update(names.get(i, i) for i in kernel.all_inames)
    for kernel, names, suffix in zip(kernels, inames, suffixes, strict=True):
        storages = {t.base_storage for t in kernel.temporaries if t.base_storage}
        wanted = {name: name + suffix for name in kernel.temporary_by_name}
        for name in (*wanted, *sorted(storages), *kernel.rule_by_name):
            new = wanted.get(name, name)
            is_free = new not in taken and (new == name or new not in everything)
            names[name] = new if is_free else fresh(new, taken | everything)
            taken.add(names[name])
        new_ids: dict[str, str] = {}
        for id_ in ids_of(kernel):
            new_ids[id_] = id_ if id_ not in ids else fresh(id_, ids | all_ids)
            ids.add(new_ids[id_])
        result.append(Renaming(_changed(names), _changed(new_ids)))
    return result


def tables_apart(
    texts: Sequence[Kernel], scheduled: Sequence[Kernel], suffixes: Sequence[str]
) -> list[dict[str, str]]:
    """New names for tables of constants whose names other kernels use for something else."""
    taken = {n for k in (*texts, *scheduled) for n in (*k.all_names, *k.arg_by_name)}
    meant: dict[str, Argument] = {}
    for kernel in texts:
        for data in kernel.passed:
            meant.setdefault(data.name, data)
    result: list[dict[str, str]] = []
    for kernel, suffix in zip(texts, suffixes, strict=True):
        names: dict[str, str] = {}
        for table in (a for a in kernel.args if isinstance(a, ConstantTable)):
            if meant.setdefault(table.name, table) != table:
                names[table.name] = fresh(table.name + suffix, taken)
                taken.add(names[table.name])
        result.append(names)
    return result


def _made_apart(
    kernels: Sequence[Kernel], texts: Sequence[Kernel], taken: Iterable[str]
) -> list[dict[str, str]]:
    """New names for inames made by steps that another kernel uses with different values."""
    of_texts = {i for k in texts for i in k.all_inames}
    used = set(taken)
    seen: list[Domain] = []
    result: list[dict[str, str]] = []
    for kernel in kernels:
        names: dict[str, str] = {}
        for domain in kernel.domains:
            made = [i for i in domain.inames if i not in of_texts]
            for iname in made:
                if not all(_alike(d, domain) for d in seen if iname in d.inames):
                    names[iname] = fresh(iname, used)
                    used.add(names[iname])
        seen += kernel.domains
        result.append(names)
    return result


def _alike(one: Domain, other: Domain) -> bool:
    """Whether the inames that two domains share have the same values in both."""
    shared = frozenset(one.inames).intersection(other.inames)
    mine, its = (d.without(frozenset(d.inames) - shared) for d in (one, other))
    return bool(mine.is_equal(its))


def _apart(own: Iterable[str], others: Collection[str], taken: Iterable[str]) -> dict[str, str]:
    """New names for those of ``own`` that are also in ``others``."""
    return {name: fresh(name, taken) for name in own if name in others}


def _changed(names: Mapping[str, str]) -> dict[str, str]:
    return {old: new for old, new in names.items() if old != new}


def ids_of(kernel: Kernel) -> list[str]:
    """The ids of statements and barriers, in order."""
    leaves = (leaf for leaf, _ in entries_of(kernel.tree))
    return [leaf.id if isinstance(leaf, LaunchBarrier) else leaf for leaf in leaves]


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, or a name like it that is not taken."""
    used = frozenset(taken)
    return next(name for name in candidates(wanted) if name not in used)


def renamed(kernel: Kernel, new: Renaming) -> Kernel:
    """A kernel with other names."""
    if not new.names and not new.ids:
        return kernel

    def within(expression: Expression, bound: Iterable[str] = ()) -> Expression:
        names = {old: name for old, name in new.names.items() if old not in bound}
        renamed = substitute(expression, {old: prim.Variable(n) for old, n in names.items()})
        return rename_functions(renamed, names)

    def statement(old: Statement) -> Statement:
        return replace(
            old.map_expressions(within),
            id=new.id_of(old.id),
            inames=frozenset(map(new.of, old.inames)),
            depends_on=frozenset(map(new.id_of, old.depends_on)),
        )

    def node(old: Node) -> Node:
        if isinstance(old, Loop):
            return Loop(new.of(old.iname), tuple(map(node, old.body)))
        return replace(old, id=new.id_of(old.id)) if not isinstance(old, str) else new.id_of(old)

    def temporary(old: TemporaryVariable) -> TemporaryVariable:
        storage = None if old.base_storage is None else new.of(old.base_storage)
        return replace(old, name=new.of(old.name), base_storage=storage)

    def rule(old: SubstitutionRule) -> SubstitutionRule:
        value = within(old.expression, old.arguments)
        return replace(old, name=new.of(old.name), expression=value)

    return kernel.with_(
        domains=tuple(renamed_domain(domain, new.names) for domain in kernel.domains),
        statements=tuple(map(statement, kernel.statements)),
        temporaries=tuple(map(temporary, kernel.temporaries)),
        tree=tuple(map(node, kernel.tree)),
        tags=tuple((new.of(i), t) for i, t in kernel.tags),
        slabs=slabs_named(kernel.slabs, new.names),
        substitutions=tuple(map(rule, kernel.substitutions)),
    )


@transform
def rename_argument(
    kernel: Kernel, old_name: kind.Name, new_name: kind.NeededName, *, unchecked: bool = False
) -> Change:
    """Rename an argument, in the text and in the schedule.

    Before: ``scale(n; a[n]) -> b[n]``        After (``"a", "x"``): ``scale(n; x[n]) -> b[n]``

    Callers pass it by its new name.

    :arg old_name: an array, a size or another number.
    :arg new_name: a name that is free.
    :raises IllegalTransformError: where something else is called so.
    """
    check_known("argument", [old_name], kernel.arg_by_name)
    name = _common.new_name(kernel, new_name, new_name)
    names = {n: name if n == old_name else n for n in kernel.arg_by_name}
    return Change(with_arguments_named(kernel, {old_name: name}), arguments=names)


def with_arguments_named(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """The kernel with arguments by other names."""
    variables = {old: prim.Variable(new) for old, new in names.items()}

    def declared(data: Any) -> Any:
        data = with_expressions(data, lambda e: substitute(e, variables))
        return replace(data, name=names.get(data.name, data.name))

    return renamed(kernel, Renaming(names, {})).with_(
        args=tuple(map(declared, kernel.args)),
        temporaries=tuple(map(declared, kernel.temporaries)),
        assumptions=Domain((), _sets.rename(kernel.assumptions.set, names)),
        assertions=in_order(tuple(with_names(a, names) for a in kernel.assertions)),
    )


@transform
def set_argument_order(kernel: Kernel, arg_names: kind.Names, *, unchecked: bool = False) -> Change:
    """Set the order of the arguments of the generated function.

    Before: ``scale(n; a[n]) -> b[n]``, ``scale(int n, float *a, float *b)``
    After (``"b, a, n"``): ``scale(float *b, float *a, int n)``

    :arg arg_names: all arguments, in their new order.
    :raises IllegalTransformError: where that is their order already.
    """
    wanted = kind.names_in(arg_names)
    check_known("argument", wanted, kernel.arg_by_name)
    missing = [n for n in kernel.arg_by_name if n not in wanted]
    if missing or len(set(wanted)) < len(wanted):
        raise InvalidArgumentError(
            "arg_names names each argument once, and "
            + (f"lacks {', '.join(map(repr, missing))}" if missing else "one of them twice"),
            instead=f"all of them: {', '.join(kernel.arg_by_name)}",
        )
    if wanted == tuple(kernel.arg_by_name):
        raise NothingToDoError(
            "the arguments have this order already", instead="any other order of the same names"
        )
    new = kernel.with_(args=tuple(kernel.arg_by_name[n] for n in wanted))
    return Change(new, arguments={n: n for n in wanted})


@transform
def remove_unused_arguments(kernel: Kernel, *, unchecked: bool = False) -> Change:
    """Remove unused arguments.

    Before: ``scale(n, m; a[n], c[m]) -> b[n]``, ``b[i] = 2*a[i]``
    After: ``scale(n; a[n]) -> b[n]``

    :raises IllegalTransformError: where all are needed.
    """
    idle: frozenset[str] = frozenset()
    while more := kernel.arg_by_name.keys() - names_needed(kernel, idle) - idle:
        idle |= more
    if not idle:
        raise NothingToDoError(
            "the kernel needs all of its arguments",
            instead="remove_instructions first, where nobody needs what some statements make",
        )
    kept = tuple(a for a in kernel.args if a.name not in idle)
    return Change(kernel.with_(args=kept), arguments={a.name: a.name for a in kept})
