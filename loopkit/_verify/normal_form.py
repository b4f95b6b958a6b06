"""What a kernel is brought to where its text as it stands has no counterpart.

Stores that nothing sees go, of statements whose other stores are seen as well: in a kernel
without threads, whose order is known.  ``x + x`` is ``2*x``.  A choice of two values that is
stored is two statements, each under its condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import DType
from loopkit._check.value_types import ValueTypes
from loopkit._expression import is_constant, variable_names
from loopkit._guarded import conjuncts
from loopkit._hidden import READER, WRITER, instance
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._poly.dataflow import Dataflow, dataflow_of
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._promotion import FLOATS
from loopkit._types import Kind
from loopkit._verify.canonicalize import (
    with_binary_operations,
    with_parts,
    without_dead_statements,
)
from loopkit._verify.forwarded import with_forwarded
from loopkit._verify.gated import with_values
from loopkit._verify.multiples import Multiples
from loopkit._verify.overwritten import (
    in_one_order,
    with_opposites,
    with_sorted_conditions,
    without_overwritten,
)


def normal_form(kernel: Kernel, *, is_sequential: bool) -> Kernel:
    """A kernel that computes the same, without what others write in another way.

    Where threads run, that holds if they do not race.
    """
    kernel = with_values(with_forwarded(kernel), is_sequential=is_sequential)
    kernel = _with_multiples(with_binary_operations(kernel))
    kernel = in_one_order(with_opposites(without_overwritten(_with_branches(kernel))))
    kernel = with_sorted_conditions(kernel)
    if not shared_storage(kernel):
        kernel = without_dead_statements(_without_dead_stores(kernel) if is_sequential else kernel)
    return kernel


def _with_multiples(kernel: Kernel) -> Kernel:
    """A kernel in which sums of like terms are multiples of these."""
    mapper = Multiples(ValueTypes(Model(kernel)))

    def changed(statement: Statement) -> Statement:
        now = [e if is_constant(e) else mapper(e) for e in (statement.rhs, *statement.predicates)]
        return replace(statement, rhs=now[0], predicates=tuple(now[1:]))

    return kernel.with_(statements=tuple(map(changed, kernel.statements)))


def _with_branches(kernel: Kernel) -> Kernel:
    """A kernel in which stored choices are statements under conditions."""
    types = ValueTypes(Model(kernel))
    parts = {s.id: found for s in kernel.statements if len(found := _branches(types, s)) > 1}
    taken = {s.id for s in kernel.statements}

    def named(id_: str, found: Sequence[Statement]) -> Iterator[Statement]:
        for number, one in enumerate(found):
            taken.add(new := kernel.fresh_name(f"{id_}_branch_{number}", taken))
            yield replace(one, id=new)

    return with_parts(kernel, {i: (*named(i, p),) for i, p in parts.items()})


def _branches(types: ValueTypes, statement: Statement) -> list[Statement]:
    """A statement for each value of a choice that it stores; itself where it is none."""
    choice = statement.rhs
    if not isinstance(choice, prim.If) or statement.operation is not None:
        return [statement]
    sides = (choice.then, choice.else_)
    asked = (choice.condition, *sides, *statement.predicates, *statement.write[1])
    changes = statement.written in {name for e in asked for name in variable_names(e)}
    if statement.kind != "user" or changes or not _stored_alike(types, statement.written, choice):
        return [statement]
    conditions = (choice.condition, prim.LogicalNot(choice.condition))
    return [
        part
        for side, condition in zip(sides, conditions, strict=True)
        for part in _branches(
            types,
            replace(
                statement,
                rhs=_stored(types, statement.written, side),
                predicates=(*statement.predicates, *conjuncts(condition)),
            ),
        )
    ]


def _stored(types: ValueTypes, array: str, value: Expression) -> Expression:
    """A value as it is stored: of a number, how it was written does not matter."""
    dtype = types.array(array)
    return np.asarray(value).astype(dtype)[()] if is_constant(value) and dtype else value


def _stored_alike(types: ValueTypes, array: str, choice: prim.If) -> bool:
    """Whether values of a choice are stored as they would be without it.

    It gives both one type: a value of another may be rounded on its way.
    """
    kind, held = types.of(choice), types.array(array)
    if held is None or kind is None:
        return False
    return all(
        (kind == types.of(side) and isinstance(kind, np.dtype))
        or (is_constant(side) and _is_stored_alike(kind, held, side))
        for side in _sides(types, choice)
    )


def _sides(types: ValueTypes, choice: prim.If) -> Iterator[Expression]:
    """The values of a choice, and of choices of numbers inside of it."""
    for side in (choice.then, choice.else_):
        if isinstance(side, prim.If) and not isinstance(types.of(side), np.dtype):
            yield from _sides(types, side)
        else:
            yield side


def _is_stored_alike(kind: Kind, held: DType, number: Expression) -> bool:
    """Whether a number is stored as it is, if it is one of ``kind`` before."""
    if kind == held or (isinstance(kind, np.dtype) and not _is_in(kind, number)):
        return kind == held
    return _is_in(held, number) or (held in FLOATS and type(number) is float)


def _is_in(dtype: DType, number: Expression) -> bool:
    """Whether a type has exactly this number."""
    try:
        same = dtype.type(number)
    except (OverflowError, TypeError, ValueError):
        return False
    if dtype in FLOATS:
        return bool(float(same) == number)
    return bool(same.item() == number)


def _without_dead_stores(kernel: Kernel) -> Kernel:
    """A kernel whose statements run where somebody may see what they store."""
    flow = dataflow_of(kernel)
    found = {
        s.id: _where_seen(flow, s)
        for s in kernel.statements
        if s.operation is None and s.kind == "user" and s.written not in kernel.bounding
    }
    return kernel.with_(
        statements=tuple(
            replace(s, predicates=(*s.predicates, *found.get(s.id, ()))) for s in kernel.statements
        )
    )


def _where_seen(flow: Dataflow, writer: Statement) -> tuple[Expression, ...]:
    """The condition under which a store may be seen; none where it is always."""
    model = flow.model
    kept = {*writer.inames, *model.kernel.sizes}
    domain = model.domain(Instance(writer.id, ""))
    seen = domain - domain
    if writer.written in model.kernel.arg_by_name:
        left = _sets.rename(flow.at_end(writer.id)[0], _plain(writer, READER))
        seen = seen | _sets.project_onto(left, kept)
    for reader in model.kernel.statements:
        # An update reads the cell that it changes.
        accesses = reader.reads if reader.operation is None else reader.accesses
        for access in (a for a in accesses if a[0] == writer.written):
            relation = flow.of_read(reader.id, access).writes.get(writer.id)
            if relation is not None:
                mine = _sets.rename(relation, _plain(writer, WRITER))
                seen = seen | _sets.project_onto(mine, kept)
    if domain.is_subset(seen):
        return ()
    known = (seen & domain).gist(domain).coalesce().remove_redundancies().compute_divs()
    try:
        return (_sets.conditions(known),)
    except _sets.NotAffineError:
        return ()


def _plain(statement: Statement, label: str) -> dict[str, str]:
    return {instance(name, label): name for name in statement.inames}
