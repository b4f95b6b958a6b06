"""Simplification of index expressions, as far as it is proven to be exact.

Sums are flattened, equal terms merged, constants folded and distributed over sums.  Terms that the
divisor divides are taken out of quotients and remainders.  The remaining quotient is replaced by
its value where isl proves its range: ``(16*i_outer + i_inner) // 16`` is ``i_outer`` where
``0 <= i_inner < 16``.  Anything else keeps the form in which the user wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import Mapped, index_tuple, is_constant, mapped, variable_names
from loopkit._intervals import Interval
from loopkit._linear import Linear, linear_sum, total, without_small_terms
from loopkit._nodes import Expression, is_integer

Context = Callable[[], isl.Set]
"""The set where an expression is evaluated, made only if it is needed."""


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
    simplifier = _Simplifier(context)

    def comparison(expr: prim.Comparison, inside: Mapped) -> Expression:
        sides = expr.left, expr.right
        if variable_names(expr) <= set(integer_names) and _sets.is_affine(prim.Sum(sides)):
            return simplifier(expr)
        return prim.Comparison(inside(expr.left), expr.operator, inside(expr.right))

    return mapped(expr, subscript=lambda access, _: simplifier(access), comparison=comparison)


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
            return _rebuild(self.linear(expr))
        if isinstance(expr, (prim.Min, prim.Max)):
            return self._extreme(expr)
        if isinstance(expr, prim.If):
            return prim.If(expr.condition, self(expr.then), self(expr.else_))
        if isinstance(expr, prim.Comparison):
            return prim.Comparison(self(expr.left), expr.operator, self(expr.right))
        if isinstance(expr, prim.Subscript):
            return prim.Subscript(expr.aggregate, tuple(map(self, index_tuple(expr))))
        return expr

    def linear(self, expr: Expression) -> Linear:
        """``expr`` as a linear form; what is no sum, multiple or division is an atom of it."""
        if is_integer(expr):
            return Linear({}, int(expr))
        if isinstance(expr, prim.Sum):
            return _with_remainders_folded(total(map(self.linear, expr.children)))
        if isinstance(expr, prim.Product):
            return self._product(expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr)
        value = self(expr)
        is_decided = isinstance(expr, (prim.Min, prim.Max)) and not isinstance(value, type(expr))
        return self.linear(value) if is_decided else Linear({value: 1})

    def _product(self, expr: prim.Product) -> Linear:
        factor = 1
        others: list[Expression] = []
        for child in expr.children:
            form = self.linear(child)
            if not form.terms:
                factor *= form.constant
                continue
            rebuilt = _rebuild(form)
            if isinstance(rebuilt, prim.Product):
                # 2*n inside a product: the number goes to the front
                numbers = [c for c in rebuilt.children if isinstance(c, (int, np.integer))]
                factor *= math.prod(int(c) for c in numbers)
                others += [c for c in rebuilt.children if not isinstance(c, (int, np.integer))]
            else:
                others.append(rebuilt)
        if not others or factor == 0:
            return Linear({}, factor)
        if len(others) == 1:
            return self.linear(others[0]) * factor
        return Linear({prim.Product(tuple(others)): factor})

    def _division(self, expr: prim.FloorDiv | prim.Remainder) -> Linear:
        is_floor = isinstance(expr, prim.FloorDiv)
        above, below = self.linear(expr.numerator), self.linear(expr.denominator)
        divisor = below.constant
        if below.terms or divisor <= 0:
            return Linear({type(expr)(_rebuild(above), _rebuild(below)): 1})
        if divisor == 1:
            return above if is_floor else Linear({})
        whole, rest = above.split(divisor)
        value = self._quotient(rest, divisor)
        if value is not None:
            return whole + value if is_floor else rest - value * divisor
        rest, smaller, small = without_small_terms(rest, divisor, self._range)
        if is_floor:
            return whole + (rest if smaller == 1 else Linear({_floor(rest, smaller): 1}))
        if smaller == 1:
            return small
        return Linear({prim.Remainder(_rebuild(rest), smaller): divisor // smaller}) + small

    def _range(self, form: Linear) -> Interval | None:
        """The least and the greatest value of a form, where they are known."""
        if not form.terms:
            return form.constant, form.constant
        expr = _rebuild(form)
        if self.context is None or not _sets.is_affine(expr):
            return None
        low, high = _sets.value_range(self.context, expr)
        return None if low is None or high is None else (low, high)

    def _quotient(self, rest: Linear, divisor: int) -> int | None:
        """The value of ``rest // divisor`` where that is one number."""
        if not rest.terms:
            return rest.constant // divisor
        quotient = prim.FloorDiv(_rebuild(rest), divisor)
        if self.context is None or not _sets.is_affine(quotient):
            return None
        low, high = _sets.value_range(self.context, quotient)
        return low if low == high else None

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


def _rebuild(form: Linear) -> Expression:
    parts = [(coefficient, atom) for atom, coefficient in form.terms.items()]
    if len(parts) == 1 and not form.constant:
        coefficient, atom = parts[0]
        if isinstance(atom, prim.Product) and coefficient != 1:
            return prim.Product((coefficient, *atom.children))
    if form.constant > 0 and parts and all(c < 0 for c, _ in parts):
        return prim.Sum((form.constant, *(linear_sum([part], 0) for part in parts)))
    return linear_sum(parts, form.constant)


def _floor(rest: Linear, divisor: int) -> Expression:
    """``rest // divisor`` with common factors cancelled and quotients merged."""
    common = math.gcd(divisor, *rest.terms.values())
    if common > 1:
        rest, divisor = rest.divided(common), divisor // common
    if len(rest.terms) == 1 and not rest.constant:
        [(atom, coefficient)] = rest.terms.items()
        if coefficient == 1 and isinstance(atom, prim.FloorDiv):
            inner = atom.denominator
            if isinstance(inner, (int, np.integer)):
                return prim.FloorDiv(atom.numerator, int(inner) * divisor)
    return prim.FloorDiv(_rebuild(rest), divisor)


def _with_remainders_folded(form: Linear) -> Linear:
    """``m*(x//m) + x%m`` is ``x``."""
    for atom, factor in form.terms.items():
        if not isinstance(atom, prim.Remainder):
            continue
        whole = prim.Product((prim.FloorDiv(atom.numerator, atom.denominator), atom.denominator))
        multiple = _Simplifier(None).linear(whole) * factor
        if len(multiple.terms) != 1 or multiple.constant:
            continue
        [(quotient, count)] = multiple.terms.items()
        found = next((a for a in form.terms if _are_same_factors(a, quotient)), None)
        if found is not None and form.terms[found] == count:
            folded = form - Linear({atom: factor, found: count})
            return _with_remainders_folded(
                folded + _Simplifier(None).linear(atom.numerator) * factor
            )
    return form


def _are_same_factors(a: Expression, b: Expression) -> bool:
    """Whether two terms are one product, in whatever order its factors are."""
    if not (isinstance(a, prim.Product) and isinstance(b, prim.Product)):
        return bool(a == b)
    left = list(b.children)
    for factor in a.children:
        if factor not in left:
            return False
        left.remove(factor)
    return not left
