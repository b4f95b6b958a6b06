"""Flat arrays ``a[i*m + j]`` with ``0 <= j < m``, rewritten as arrays of rows ``a[i, j]``.

If every access is known to stay in its row, elements correspond one to one, and results about one
kind of access hold for the other. The rewritten subscripts contain no products of names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Argument, ArrayArg, ConstantTable
from loopkit._expression import accesses, replace_accesses, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import running
from loopkit._kernel import Kernel, Statement
from loopkit._linear import Linear
from loopkit._nodes import Expression
from loopkit._poly.pairs import is_inside
from loopkit._polynomials import Monomial, NoPolynomialError, Polynomial, polynomial

_MOST_AXES = 4


class _FlatError(Exception):
    """An access is not known to stay in a row."""


@dataclass(frozen=True, eq=False)
class Rows:
    """How a flat array is divided: into rows of ``lengths``, the innermost last."""

    flat: ArrayArg
    lengths: tuple[Expression, ...]
    extent: Expression

    @property
    def array(self) -> ArrayArg:
        """The array of rows."""
        return replace(self.flat, shape=(self.extent, *self.lengths), dim_tags=None)

    def of(self, kernel: Kernel) -> Kernel:
        """The kernel with the array of rows in place of the flat one."""
        return self._with(kernel, self.array, tuple(self._told(kernel)))

    def laid_flat(self, kernel: Kernel, before: Kernel) -> Kernel:
        """A kernel that has the array of rows, with the flat one.

        Statements that are still those of ``before`` in rows are what they were.
        """
        old = {
            s.id: (told, s) for told, s in zip(self._told(before), before.statements, strict=True)
        }
        statements = []
        for statement in kernel.statements:
            told, was = old.get(statement.id, (None, statement))
            if told is not None and told.lhs == statement.lhs and told.rhs == statement.rhs:
                statement = replace(statement, lhs=was.lhs, rhs=was.rhs)
            statements.append(statement.map_expressions(self._flatly))
        return self._with(kernel, self.flat, tuple(statements))

    def _with(self, kernel: Kernel, array: ArrayArg, statements: Sequence[Statement]) -> Kernel:
        args = tuple(
            replace(a, shape=array.shape, dim_tags=array.dim_tags)
            if isinstance(a, ArrayArg) and a.name == array.name
            else a
            for a in kernel.args
        )
        return kernel.with_(args=args, statements=tuple(statements))

    def _told(self, kernel: Kernel) -> Iterator[Statement]:
        for statement in kernel.statements:
            uses_it = self.flat.name in statement.names
            yield self._told_of(kernel, statement) if uses_it else statement

    def _told_of(self, kernel: Kernel, statement: Statement) -> Statement:
        where, array = running(kernel, statement), prim.Variable(self.flat.name)

        def of_rows(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            if name != self.flat.name:
                return None
            return prim.Subscript(array, self._places(kernel, indices[0], where))

        return statement.map_expressions(lambda expr: replace_accesses(expr, of_rows))

    def _places(self, kernel: Kernel, index: Expression, where: isl.Set) -> tuple[Expression, ...]:
        if not variable_names(index) <= kernel.integers:
            raise _FlatError
        left, places = _terms(index), list[Expression]()
        for length in reversed(self.lengths):
            if length == 0:
                raise _FlatError
            rows, column = _divided(left, length)
            place, shift = _in_row(column, length, where)
            places.insert(0, place)
            left = _sum(rows, 1, -shift)
        return (_affine(left), *places)

    def _flatly(self, expr: Expression) -> Expression:
        def flat(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            if name != self.flat.name or len(indices) != 1 + len(self.lengths):
                return None
            value = indices[0]
            for length, place in zip(self.lengths, indices[1:], strict=True):
                whole = _times(value, length)
                parts = [part for part in (whole, place) if part != 0] or [0]
                value = prim.Sum(tuple(parts)) if len(parts) > 1 else parts[0]
            return prim.Subscript(prim.Variable(name), (value,))

        return replace_accesses(expr, flat)


def _times(value: Expression, length: Expression) -> Expression:
    if value in (0, 1):
        return length if value == 1 else 0
    return prim.Product((value, length))


def rows_of(
    kernels: Sequence[Kernel], name: str, fixed: Mapping[str, int] | None = None
) -> list[Rows] | None:
    """How a flat array is one of rows in each of some kernels; None where that is not known.

    The first one says of which lengths; others may have numbers for sizes that are ``fixed``.
    """
    arrays = [a for k in kernels if _is_flat(a := k.arg_by_name.get(name))]
    if len(arrays) < len(kernels) or any(_is_said_of(k, name) for k in kernels):
        return None
    try:
        [extent] = arrays[0].shape or ()
        shape = _terms(extent)
        indices = [_terms(i) for i in _indices(kernels[0], name)]
    except _FlatError:
        return None
    if all(_is_affine(terms) for terms in indices):
        return None
    for lengths, extent in _divisions(shape, indices):
        numbers = [
            {n: v for n, v in (fixed or {}).items() if n not in kernel.arg_by_name}
            for kernel in kernels
        ]
        rows = [
            Rows(array, tuple(substitute(n, own) for n in lengths), substitute(extent, own))
            for array, own in zip(arrays, numbers, strict=True)
        ]
        try:
            for told, kernel in zip(rows, kernels, strict=True):
                told.of(kernel)
        except _FlatError:
            continue
        return rows
    return None


def _is_flat(array: Argument | None) -> TypeGuard[ArrayArg]:
    if not isinstance(array, ArrayArg) or isinstance(array, ConstantTable):
        return False
    return len(array.shape or ()) == 1 and not array.dim_tags and not array.dim_names


def flat_arrays(kernels: Sequence[Kernel]) -> list[str]:
    """Arrays of one axis with subscripts that multiply names."""
    found: dict[str, None] = {}
    for kernel in kernels:
        for statement in kernel.statements:
            for name, indices in (statement.write, *statement.reads):
                if len(indices) == 1 and not _sets.is_pw_affine(indices[0]):
                    found[name] = None
    return [name for name in found if name in kernels[0].arg_by_name]


def kernels_in_rows(
    kernels: Sequence[Kernel], fixed: Mapping[str, int] | None = None
) -> list[Kernel] | None:
    """Kernels with rows in place of those flat arrays that have some in all; None without any."""
    found = None
    for name in flat_arrays(kernels):
        told = found or kernels
        rows = rows_of(told, name, fixed)
        if rows is not None:
            found = [one.of(kernel) for one, kernel in zip(rows, told, strict=True)]
    return found


def _is_said_of(kernel: Kernel, name: str) -> bool:
    """Whether rules or assertions speak of an array, whose axes these know."""
    rules = (r.expression for r in kernel.substitutions)
    said = {n for r in rules for n in variable_names(r)}
    return name in said or any(name in a.arrays for a in kernel.assertions)


def _indices(kernel: Kernel, name: str) -> Iterator[Expression]:
    for statement in kernel.statements:
        for expr in (statement.lhs, statement.rhs, *statement.predicates):
            for array, indices in accesses(expr):
                if array == name:
                    if len(indices) != 1:
                        raise _FlatError
                    yield indices[0]


def _terms(expr: Expression) -> Polynomial:
    try:
        return polynomial(expr)
    except NoPolynomialError:
        raise _FlatError from None


def _divisions(
    shape: Polynomial, indices: Sequence[Polynomial]
) -> Iterator[tuple[tuple[prim.Variable, ...], Expression]]:
    """Lengths of rows that make an extent, and all indices, affine: the innermost last."""
    waiting: list[tuple[tuple[prim.Variable, ...], Polynomial, list[Polynomial]]]
    waiting = [((), shape, list(indices))]
    while waiting:
        lengths, extent, left = waiting.pop(0)
        if lengths and _is_affine(extent) and all(map(_is_affine, left)):
            yield lengths, _affine(extent)
            continue
        if len(lengths) == _MOST_AXES - 1:
            continue
        for length in dict.fromkeys(f for factors in extent for f in factors):
            rows, rest = _divided(extent, length)
            divided = [_divided(terms, length) for terms in left]
            if (
                not rest
                and isinstance(length, prim.Variable)
                and all(_is_affine(column) for _, column in divided)
            ):
                waiting.append(((length, *lengths), rows, [row for row, _ in divided]))


def _divided(terms: Polynomial, length: Expression) -> tuple[Polynomial, Polynomial]:
    """What is multiplied by a length, and the rest."""
    rows: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for factors, coefficient in terms.items():
        if isinstance(length, int):
            where = rows if coefficient % length == 0 else rest
            where[factors] = coefficient // length if where is rows else coefficient
        elif length in factors:
            left = list(factors)
            left.remove(length)
            rows[tuple(left)] = coefficient
        else:
            rest[factors] = coefficient
    return rows, rest


def _is_affine(terms: Polynomial) -> bool:
    return all(len(factors) <= 1 for factors in terms)


def _affine(terms: Polynomial) -> Expression:
    if not _is_affine(terms):
        raise _FlatError
    form = {factors[0]: c for factors, c in terms.items() if factors}
    found = Linear(form, terms.get((), 0)).expression
    if not _sets.is_pw_affine(found):
        raise _FlatError
    return found


def _in_row(column: Polynomial, length: Expression, where: isl.Set) -> tuple[Expression, int]:
    """A column from 0 up to the length of a row, and how many rows it was moved by."""
    for shift in (0, 1, -1):
        moved = _affine(_sum(column, length, shift))
        if is_inside(where, moved, length):
            return moved, shift
    raise _FlatError


def _sum(terms: Polynomial, length: Expression, times: int) -> Polynomial:
    factors, by = ((), times * length) if isinstance(length, int) else ((length,), times)
    found = {**terms, factors: terms.get(factors, 0) + by}
    return {factors: coefficient for factors, coefficient in found.items() if coefficient}
