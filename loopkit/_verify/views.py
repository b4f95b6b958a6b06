"""A kernel as the search for a correspondence sees it: which write a read sees, roughly.

Nothing here needs to be exact.  What the search finds is proven afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.model import Instance, Model
from loopkit._check.sources import READER, WRITER
from loopkit._expression import index_tuple, variable_names
from loopkit._kernel import Statement
from loopkit._nodes import Expression

Access = tuple[str, tuple[Expression, ...]]


@dataclass(frozen=True, eq=False)
class Source:
    """A statement whose writes a read may see.

    ``relation`` holds inames of the writer (suffix ``__W``) and of the reader
    (suffix ``__R``), for the writes nearest in time.
    """

    writer: Statement
    relation: isl.Set


class View:
    """Questions about one kernel, answered roughly and remembered."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.kernel = model.kernel
        self._sources: dict[tuple[str, Access], tuple[Source, ...]] = {}
        self._values: dict[tuple[str, Access, str], dict[str, Expression] | None] = {}

    def access(self, expr: Expression) -> Access | None:
        """An expression that is one use of an array or scalar of data."""
        if isinstance(expr, prim.Variable):
            return (expr.name, ()) if expr.name in self.model.data else None
        if isinstance(expr, prim.Subscript):
            return expr.aggregate.name, index_tuple(expr)
        return None

    def is_temporary(self, name: str) -> bool:
        """Whether a name is no argument."""
        return name in self.kernel.temporary_by_name

    def is_move(self, statement: Statement) -> bool:
        """Whether a statement only carries a value from one place to another."""
        return statement.operation is None and self.access(statement.rhs) is not None

    def sources(self, reader: str, access: Access) -> tuple[Source, ...]:
        """The statements whose writes a read may see, the last in the text first."""
        key = (reader, access)
        if key not in self._sources:
            self._sources[key] = tuple(self._find(reader, access))[::-1]
        return self._sources[key]

    def _find(self, reader: str, access: Access) -> Sequence[Source]:
        model = self.model
        at = Instance(reader, READER)
        cell = model.cell(access[0], [model.named(i, READER) for i in access[1]], at)
        found = []
        for writer in model.writers(access[0]):
            source = Instance(writer.id, WRITER)
            both = model.domain(at) & model.domain(source)
            both = both & model.same_cell(model.write_cell(source), cell)
            for piece in model.earlier(source, at):
                nearest = both & piece
                if not nearest.is_empty():
                    found.append(Source(writer, nearest))
                    break
        return found

    def values(self, reader: str, access: Access, source: Source) -> Mapping[str, Expression] | None:
        """The writer's inames as expressions of the reader's, or None where there are none."""
        key = (reader, access, source.writer.id)
        if key not in self._values:
            inames = self.model.statement[reader].inames
            known = {i + READER: i for i in inames}
            self._values[key] = solved(
                source.relation,
                {i + WRITER: i for i in source.writer.inames},
                known,
                self.kernel.sizes,
            )
        return self._values[key]


def solved(
    relation: isl.Set,
    wanted: Mapping[str, str],
    known: Mapping[str, str],
    sizes: Sequence[str],
) -> dict[str, Expression] | None:
    """Each wanted name as an expression of the known ones (smallest value where it is free).

    ``wanted`` and ``known`` map names of ``relation`` to those of the result.
    """
    from loopkit._expression import substitute

    names = {k: prim.Variable(v) for k, v in known.items()}
    found = {}
    for name, result in wanted.items():
        onto = _sets.project_onto(relation, [name, *known, *sizes])
        value = _by_equality(onto, name)
        if value is None:
            value = _smallest(onto, name)
        if value is None or not variable_names(value) <= names.keys() | set(sizes):
            return None
        found[result] = substitute(value, names)
    return found


def _by_equality(relation: isl.Set, name: str) -> Expression | None:
    """The value of ``name`` where an equality with coefficient one gives it."""
    for constraint in relation.affine_hull().get_constraints():
        if not constraint.is_equality():
            continue
        terms, constant = _sets.constraint_terms(constraint)
        factor = 0
        rest: list[tuple[int, Expression]] = []
        for coefficient, atom in terms:
            if isinstance(atom, prim.Variable) and atom.name == name:
                factor = coefficient
            else:
                rest.append((coefficient, atom))
        if abs(factor) != 1 or any(name in _sets.names_in(atom) for _, atom in rest):
            continue
        return _sets.linear_sum([(-factor * c, a) for c, a in rest], -factor * constant)
    return None


def _smallest(relation: isl.Set, name: str) -> Expression | None:
    """The smallest value of ``name``, by cases where it has some."""
    if not _sets.involves(relation, name):
        return None
    try:
        pieces = _sets.minimum(relation, name).coalesce().get_pieces()
        values = [(where, _sets.from_affine(aff)) for where, aff in pieces]
    except (isl.Error, _sets.NotAffineError):
        return None
    if not values or len(values) > 4:
        return None
    result = values[-1][1]
    for where, value in reversed(values[:-1]):
        try:
            result = prim.If(_sets.conditions(_sets.project_onto(where, _sets.names_of(where))), value, result)
        except _sets.NotAffineError:
            return None
    return result
