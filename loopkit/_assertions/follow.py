"""Subscripts that read temporaries, traced back to the arguments from which they were copied.

With ``t = perm[i]`` and ``y[t]``, or a prefetched ``perm_s[i_inner]``, assertions about ``perm``
apply to ``t`` only where ``t`` is known to equal ``perm[i]``. That is so if a temporary has one
writer, which only copies, and which has written the cell earlier in the same iteration of all
common loops.

This module assumes that reads of the temporary see the last preceding write in the tree, which the
checker proves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _expression, _sets
from loopkit._assertions.assertion_values import Injective
from loopkit._determined import determined_by
from loopkit._guarded import conjuncts, decided, running
from loopkit._hidden import SOURCE, hidden, instance, instances
from loopkit._nodes import Expression
from loopkit._same import Key, key_of, same
from loopkit._simplify import simplify
from loopkit._tree import common_prefix, path_inames

if TYPE_CHECKING:
    from loopkit._kernel import Kernel, Statement


def followed(kernel: Kernel, statement: Statement, index: Expression) -> Expression:
    """``index`` of ``statement``, with temporaries replaced by index arrays where that is safe."""
    if (
        _expression.is_constant(index)
        or not _expression.variable_names(index) & kernel.temporary_by_name.keys()
    ):
        return index

    def value(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        if name not in kernel.temporary_by_name:
            return None
        return _copied(kernel, statement, name, indices)

    return _expression.replace_accesses(index, value)


def asserted(kernel: Kernel, statement: Statement, index: Expression) -> Expression:
    """:func:`followed`, over arrays as they are known to be where the statement runs.

    Of arrays whose values differ where a condition holds, which is one of the statement's.
    """
    found = followed(kernel, statement, index)
    told = [a for a in kernel.assertions if isinstance(a, Injective) and a.where is not None]
    if not told or _expression.is_constant(found):
        return found
    known = {
        _truth(followed(kernel, statement, part))
        for predicate in statement.predicates
        for part in conjuncts(predicate)
    }

    def value(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        for one in told:
            if one.array == name and len(indices) == len(one.index):
                here = _expression.substitute(one.where, dict(zip(one.index, indices, strict=True)))
                if {*map(_truth, conjuncts(here))} <= known:
                    return prim.Subscript(prim.Variable(one.told), indices)
        return None

    return _expression.replace_accesses(found, value)


def _truth(condition: Expression) -> Key:
    """What tells a condition from others; ``x != 0`` is ``x``."""
    found = simplify(condition)
    if isinstance(found, prim.Comparison) and found.operator == "!=" and same(found.right, 0):
        found = found.left
    return key_of(found)


def is_written_once(kernel: Kernel, name: str) -> bool:
    """Whether each cell of a temporary gets one value, for as long as the kernel runs."""
    writers = kernel.writers.get(name, ())
    if name not in kernel.temporary_by_name or len(writers) != 1:
        return False
    [writer] = writers
    if writer.operation is not None or writer.kind != "user":
        return False
    return writer.inames <= determined_by(kernel, writer.write[1])


def _copied(
    kernel: Kernel, reader: Statement, name: str, indices: tuple[Expression, ...]
) -> Expression | None:
    """What was copied into the cell of a temporary that ``reader`` reads, or None."""
    writers = kernel.writers.get(name, ())
    if len(writers) != 1:
        return None
    [writer] = writers
    order = [s.id for s in kernel.statements]
    if writer.operation is not None or order.index(writer.id) >= order.index(reader.id):
        return None
    source = followed(kernel, writer, writer.rhs)
    if not _is_copy(kernel, source, name):
        return None
    chosen = _instance(kernel, writer, reader, indices)
    if chosen is None or not _has_run(kernel, writer, reader, chosen):
        return _by_cell(kernel, writer, reader, source, indices)
    return _expression.substitute(source, chosen)


def _by_cell(
    kernel: Kernel,
    writer: Statement,
    reader: Statement,
    source: prim.Subscript,
    indices: tuple[Expression, ...],
) -> Expression | None:
    """What was copied, whichever instance did it: a cell is the place of one element alone.

    So it is where rounds of threads fill a copy, ``t_s[4*round + thread] = t[4*round + thread]``.
    """
    target, places = writer.write[1], _expression.index_tuple(source)
    if not all(map(_sets.is_affine, (*target, *places, *indices))):
        return None
    common = _common_loops(kernel, writer, reader)
    named = frozenset().union(*map(_expression.variable_names, target))
    other = {*path_inames(kernel.paths[writer.id]), *named, *(writer.inames - reader.inames)}
    own = writer.inames & other - common
    needed, known = _where_it_ran(kernel, writer, own, reader), running(kernel, reader)
    if needed is None:
        return None
    labels = instances(own, SOURCE)
    variables = {name: prim.Variable(label) for name, label in labels.items()}
    needed = _sets.rename(needed, labels)
    for at, index in zip(target, indices, strict=True):
        needed = needed & _sets.affine_equality(_expression.substitute(at, variables), index)
    if not known.is_subset(_sets.project_out(needed, labels.values())):
        return None
    found = []
    for place in places:
        name = hidden("place")
        value = _sets.equality(name, _expression.substitute(place, variables))
        held = _sets.project_out(known & needed & value, labels.values())
        found.append(_sets.value_by_equality(held, name))
    return None if None in found else prim.Subscript(source.aggregate, tuple(found))


def _is_copy(kernel: Kernel, source: Expression, name: str) -> bool:
    """Whether ``source`` reads an argument that nobody writes, and the temporary holds it whole."""
    if not isinstance(source, prim.Subscript):
        return False
    array = kernel.arg_by_name.get(source.aggregate.name)
    to = kernel.temporary_by_name[name].dtype
    if array is None or array.dtype is None or to is None or to.kind not in "iu":
        return False
    inside = frozenset().union(
        *(_expression.variable_names(i) for i in _expression.index_tuple(source))
    )
    if ({array.name} | inside) & kernel.changing:
        return False
    return array.dtype.kind in "iu" and bool(np.can_cast(array.dtype, to, "safe"))


def _instance(
    kernel: Kernel, writer: Statement, reader: Statement, indices: tuple[Expression, ...]
) -> Mapping[str, Expression] | None:
    """The inames of the writer's instance that wrote a cell, where they differ from the reader's.

    Loops that are around both are in the same iteration.
    """
    common = _common_loops(kernel, writer, reader)
    own = frozenset(path_inames(kernel.paths[writer.id])) - common
    target = writer.write[1]
    chosen: dict[str, Expression] = {}
    for at, index in zip(target, indices, strict=True):
        if not isinstance(at, prim.Variable) or at.name in chosen:
            return None
        if at.name not in writer.inames or not _sets.is_affine(index):
            return None
        chosen[at.name] = index
    for iname in writer.inames:
        mine = chosen.get(iname)
        if mine is None and (iname in own or iname not in reader.inames):
            return None  # which instance wrote last is another question
        if mine is not None and iname in common and mine != prim.Variable(iname):
            return None  # an earlier iteration wrote the cell, or a later one
    return chosen


def _has_run(
    kernel: Kernel, writer: Statement, reader: Statement, chosen: Mapping[str, Expression]
) -> bool:
    """Whether the writer has that instance for every instance of the reader."""
    needed, known = _where_it_ran(kernel, writer, chosen, reader), running(kernel, reader)
    if needed is None:
        return False
    needed = _sets.rename(needed, instances(chosen, SOURCE))
    for iname, index in chosen.items():
        known = known & _sets.equality(instance(iname, SOURCE), index)
    return bool(known.is_subset(needed))


def _common_loops(kernel: Kernel, one: Statement, other: Statement) -> frozenset[str]:
    """The loops that are around two statements."""
    return frozenset(path_inames(common_prefix([kernel.paths[one.id], kernel.paths[other.id]])))


def _where_it_ran(
    kernel: Kernel, writer: Statement, own: Collection[str], reader: Statement
) -> isl.Set | None:
    """``{ inames, sizes : the writer runs }`` where the reader does, or None where data decide.

    ``own`` are inames of other values than the reader's.
    """
    needed = kernel.statement_domain(writer)
    changing = kernel.changing.union(own)
    for predicate in writer.predicates:
        if predicate in reader.predicates and not _expression.variable_names(predicate) & changing:
            continue  # it is the reader's condition, too
        condition = decided(predicate, kernel.integers)
        if condition is None:
            return None
        needed = needed & condition
    return needed
