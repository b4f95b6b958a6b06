"""Index expressions, simplified as far as that is sure and no further.

Sums are flattened, equal terms merged, constants folded and multiplied into
sums.  A quotient or remainder loses what divides evenly; what is left goes
away where isl proves its range: ``(16*i_outer + i_inner) // 16`` is
``i_outer`` where ``0 <= i_inner < 16``.  Anything else keeps the form that the
person gave it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import ExpressionMapper, is_constant, variable_names
from loopkit._nodes import Expression

Context = Callable[[], isl.Set]
"""The set where an expression is evaluated, made only if it is needed."""

Terms = dict[Expression, int]


def simplify(expr: Expression, context: isl.Set | Context | None = None) -> Expression:
    """An expression that equals the integer expression ``expr`` in ``context``, and is simpler."""
    return _Simplifier(context)(expr)


def simplify_indices(
    expr: Expression, integer_names: Collection[str], context: isl.Set | Context | None = None
) -> Expression:
    """``expr`` with its subscripts, and comparisons between integers, simplified.

    ``integer_names`` are inames and sizes: values computed in other types keep
    the order of their operations.
    """
    return expr if is_constant(expr) else _IndexSimplifier(integer_names, context)(expr)


class _Simplifier:
    def __init__(self, context: isl.Set | Context | None) -> None:
        self._context = context

    @property
    def context(self) -> isl.Set | None:
        if callable(self._context):
            self._context = self._context()
        return self._context

    def __call__(self, expr: Expression) -> Expression:
        if isinstance(expr, prim.Variable) or is_constant(expr):
            return expr
        if isinstance(expr, (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder)):
            return _rebuild(*self.linear(expr))
        if isinstance(expr, (prim.Min, prim.Max)):
            return self._extreme(expr)
        if isinstance(expr, prim.If):
            return prim.If(expr.condition, self(expr.then), self(expr.else_))
        if isinstance(expr, prim.Comparison):
            return prim.Comparison(self(expr.left), expr.operator, self(expr.right))
        if isinstance(expr, prim.Subscript):
            index = expr.index if isinstance(expr.index, tuple) else (expr.index,)
            return prim.Subscript(expr.aggregate, tuple(self(i) for i in index))
        return expr

    def linear(self, expr: Expression) -> tuple[Terms, int]:
        """``expr`` as terms with coefficients, in the order in which they occur, and a constant."""
        if isinstance(expr, (int, np.integer)) and not isinstance(expr, (bool, np.bool_)):
            return {}, int(expr)
        if isinstance(expr, prim.Sum):
            terms: Terms = {}
            constant = 0
            for child in expr.children:
                more, number = self.linear(child)
                _add(terms, more, 1)
                constant += number
            return _with_remainders_folded(terms, constant)
        if isinstance(expr, prim.Product):
            return self._product(expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr)
        return {self(expr): 1}, 0

    def _product(self, expr: prim.Product) -> tuple[Terms, int]:
        factor = 1
        others: list[Expression] = []
        for child in expr.children:
            terms, constant = self.linear(child)
            if not terms:
                factor *= constant
                continue
            rebuilt = _rebuild(terms, constant)
            if isinstance(rebuilt, prim.Product):
                # 2*n inside a product: the number goes to the front
                numbers = [c for c in rebuilt.children if isinstance(c, (int, np.integer))]
                factor *= math.prod(int(c) for c in numbers)
                others += [c for c in rebuilt.children if not isinstance(c, (int, np.integer))]
            else:
                others.append(rebuilt)
        if not others or factor == 0:
            return {}, factor if not others else 0
        if len(others) == 1:
            terms, constant = self.linear(others[0])
            return {atom: c * factor for atom, c in terms.items()}, constant * factor
        return {prim.Product(tuple(others)): factor}, 0

    def _division(self, expr: prim.FloorDiv | prim.Remainder) -> tuple[Terms, int]:
        is_floor = isinstance(expr, prim.FloorDiv)
        terms, constant = self.linear(expr.numerator)
        below, divisor = self.linear(expr.denominator)
        if below or divisor <= 0:
            kind = prim.FloorDiv if is_floor else prim.Remainder
            return {kind(_rebuild(terms, constant), _rebuild(below, divisor)): 1}, 0
        if divisor == 1:
            return (terms, constant) if is_floor else ({}, 0)
        whole = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
        rest = {a: c for a, c in terms.items() if c % divisor}
        quotient, remainder = divmod(constant, divisor)
        value = self._quotient(rest, remainder, divisor)
        if value is not None:
            if is_floor:
                return whole, quotient + value
            return rest, remainder - value * divisor
        if not is_floor:
            return {prim.Remainder(_rebuild(rest, remainder), divisor): 1}, 0
        _add(whole, {_floor(rest, remainder, divisor): 1}, 1)
        return whole, quotient

    def _quotient(self, rest: Terms, constant: int, divisor: int) -> int | None:
        """The value of ``(rest + constant) // divisor`` where that is one number."""
        if not rest:
            return constant // divisor
        context = self.context
        if context is None:
            return None
        quotient = prim.FloorDiv(_rebuild(rest, constant), divisor)
        if not _sets.is_affine(quotient):
            return None
        low = _sets.minimum_value(context, quotient)
        if low is None or low != _sets.maximum_value(context, quotient):
            return None
        return low

    def _extreme(self, expr: prim.Min | prim.Max) -> Expression:
        kind = type(expr)
        parts: list[Expression] = []
        constants: list[int] = []
        for child in expr.children:
            part = self(child)
            for one in part.children if isinstance(part, kind) else (part,):
                if isinstance(one, (int, np.integer)):
                    constants.append(int(one))
                elif one not in parts:
                    parts.append(one)
        if constants:
            parts.append(min(constants) if kind is prim.Min else max(constants))
        if len(parts) > 1 and self.context is not None:
            parts = needed_parts(kind, parts, self.context)
        return parts[0] if len(parts) == 1 else kind(tuple(parts))


def needed_parts(
    kind: type[prim.Min | prim.Max], parts: Sequence[Expression], context: isl.Set
) -> list[Expression]:
    """The parts of a minimum or maximum without those that decide it nowhere in ``context``.

    The last ones go first: of equals, the first stays.  What is not affine stays.
    """
    better = "<" if kind is prim.Min else ">"
    kept = list(parts)
    for part in reversed(parts):
        rivals = [r for r in kept if r is not part and _sets.is_pw_affine(r)]
        if not rivals or not _sets.is_pw_affine(part):
            continue
        if _sets.is_nowhere(context, [prim.Comparison(part, better, r) for r in rivals]):
            kept = [r for r in kept if r is not part]
    return kept


class _IndexSimplifier(ExpressionMapper):
    def __init__(
        self, integer_names: Collection[str], context: isl.Set | Context | None = None
    ) -> None:
        super().__init__()
        self.integer_names = integer_names
        self.simplify = _Simplifier(context)

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        index = expr.index if isinstance(expr.index, tuple) else (expr.index,)
        return prim.Subscript(expr.aggregate, tuple(self.simplify(i) for i in index))

    def map_comparison(self, expr: prim.Comparison) -> Expression:
        if variable_names(expr) <= set(self.integer_names) and _sets.is_affine(
            prim.Sum((expr.left, expr.right))
        ):
            return self.simplify(expr)
        return prim.Comparison(self.rec(expr.left), expr.operator, self.rec(expr.right))


def _add(terms: Terms, more: Terms, factor: int) -> None:
    for atom, coefficient in more.items():
        total = terms.get(atom, 0) + coefficient * factor
        if total:
            terms[atom] = total
        else:
            del terms[atom]


def _rebuild(terms: Terms, constant: int) -> Expression:
    parts: list[tuple[int, Expression]] = []
    for atom, coefficient in terms.items():
        parts.append((coefficient, atom))
    if len(parts) == 1 and not constant:
        coefficient, atom = parts[0]
        if isinstance(atom, prim.Product) and coefficient != 1:
            return prim.Product((coefficient, *atom.children))
    if constant > 0 and parts and all(c < 0 for c, _ in parts):
        return prim.Sum((constant, *(_sets.linear_sum([part], 0) for part in parts)))
    return _sets.linear_sum(parts, constant)


def _floor(rest: Terms, constant: int, divisor: int) -> Expression:
    """``(rest + constant) // divisor`` with common factors cancelled and quotients merged."""
    common = math.gcd(divisor, *rest.values())
    if common > 1:
        rest = {a: c // common for a, c in rest.items()}
        constant, divisor = constant // common, divisor // common
    if len(rest) == 1 and not constant:
        [(atom, coefficient)] = rest.items()
        if coefficient == 1 and isinstance(atom, prim.FloorDiv):
            inner = atom.denominator
            if isinstance(inner, (int, np.integer)):
                return prim.FloorDiv(atom.numerator, int(inner) * divisor)
    return prim.FloorDiv(_rebuild(rest, constant), divisor)


def _with_remainders_folded(terms: Terms, constant: int) -> tuple[Terms, int]:
    """``m*(x//m) + x%m`` is ``x``."""
    for atom in list(terms):
        if not isinstance(atom, prim.Remainder) or atom not in terms:
            continue
        quotient = prim.FloorDiv(atom.numerator, atom.denominator)
        factor = terms[atom]
        if isinstance(atom.denominator, int) and terms.get(quotient) == factor * atom.denominator:
            del terms[atom], terms[quotient]
            more, number = _Simplifier(None).linear(atom.numerator)
            _add(terms, more, factor)
            constant += number * factor
    return terms, constant
