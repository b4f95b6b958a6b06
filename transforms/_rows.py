"""Rule arguments that are flattened row indices, split into row and column: ``f(i*m + j)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._linear import Linear
from loopkit._nodes import Expression
from loopkit._polynomials import Monomial, NoPolynomialError, Polynomial, polynomial

Index = Expression | slice


class Rows:
    """A split of a rule's argument into the coefficients of products of sizes, its ``lengths``.

    For ``(i*m + j)*n + k`` these are ``i`` for ``m*n``, ``j`` for ``n``, and ``k``.
    ``values`` are the values of the argument in all uses.  Without lengths it is not split.
    """

    def __init__(self, kernel: Kernel, values: Sequence[Index]) -> None:
        self._integers, self._sizes = kernel.integers, frozenset(kernel.sizes)
        ends = [end for value in values for end in ends_of(value)]
        found = [self._terms(end) for end in ends]
        moving = {length: None for terms in found for length in _moving(terms)}
        fixed = {length: None for terms in found for length in terms if len(length) > 1}
        self.lengths: tuple[Monomial, ...] = ()
        if moving.keys() - {()}:
            self.lengths = tuple(sorted({**moving, **fixed, (): None}, key=lambda f: -len(f)))
        if any(self.apart(value) is None for value in values):
            self.lengths = ()

    def _terms(self, value: Expression) -> dict[Monomial, dict[Monomial, int]]:
        """The terms of a value by the sizes in them; none where it is no polynomial."""
        found: dict[Monomial, dict[Monomial, int]] = {}
        if not variable_names(value) <= self._integers:
            return found  # data are computed in types that wrap around
        try:
            terms: Polynomial = polynomial(value)
        except NoPolynomialError:
            return found
        for factors, coefficient in terms.items():
            length = tuple(f for f in factors if self._is_size(f))
            rest = tuple(f for f in factors if not self._is_size(f))
            found.setdefault(length, {})[rest] = coefficient
        return found

    def _is_size(self, factor: Expression) -> bool:
        return isinstance(factor, prim.Variable) and factor.name in self._sizes

    def names(self, argument: str, fresh: Callable[[str], str]) -> list[str]:
        """The names of the parts of an argument."""
        lengths = self.lengths[:-1]
        return [*(fresh("_".join([argument, *(f.name for f in n)])) for n in lengths), argument]

    def apart(self, value: Index) -> tuple[Index, ...] | None:
        """The parts of a value, one for each length; None if it has terms with other lengths."""
        if not self.lengths:
            return (value,)
        if isinstance(value, slice):
            start, stop = map(self._parts, ends_of(value))
            if not value.stop or start is None or stop is None or start[:-1] != stop[:-1]:
                return None
            return (*start[:-1], slice(start[-1], stop[-1]))
        return self._parts(value)

    def _parts(self, value: Expression) -> tuple[Expression, ...] | None:
        terms = self._terms(value)
        if not terms and value != 0:
            return None
        for length in [length for length in terms if length not in self.lengths]:
            # A single size with a constant coefficient is part of the column.
            if len(length) > 1 or terms[length].keys() != {()}:
                return None
            terms.setdefault((), {})[length] = terms.pop(length)[()]
        return tuple(_expression(terms.get(length, {})) for length in self.lengths)

    def together(self, parts: Sequence[Expression]) -> Expression:
        """The value that has the given parts."""
        value, last = parts[0], self.lengths[0] if self.lengths else ()
        for part, length in zip(parts[1:], self.lengths[1:], strict=True):
            between = Counter(last)
            between.subtract(length)
            if any(count < 0 for count in between.values()):
                return sum_of(map(product_of, parts, self.lengths))
            value = sum_of([product_of(value, tuple(between.elements())), part])
            last = length
        return value


def product_of(value: Expression, factors: Monomial) -> Expression:
    """A value times factors, written as short as can be."""
    if value in (0, 1):
        factors = factors or (1,)
        return 0 if value == 0 else prim.Product(factors) if factors[1:] else factors[0]
    return prim.Product((value, *factors)) if factors else value


def sum_of(values: Iterable[Expression]) -> Expression:
    """A sum, written as short as can be."""
    left = tuple(value for value in values if value != 0)
    return prim.Sum(left) if len(left) > 1 else left[0] if left else 0


def ends_of(value: Index) -> tuple[Expression, ...]:
    """An index, or where a range of them begins and ends."""
    return (value.start or 0, value.stop or 0) if isinstance(value, slice) else (value,)


def _moving(terms: Mapping[Monomial, Mapping[Monomial, int]]) -> list[Monomial]:
    """The products of sizes whose coefficients are not constant."""
    return [length for length, rest in terms.items() if rest.keys() - {()}]


def _expression(terms: Mapping[Monomial, int]) -> Expression:
    """Terms as an expression; a linear form where they are one."""
    if all(len(factors) <= 1 for factors in terms):
        form = {factors[0]: c for factors, c in terms.items() if factors}
        return Linear(form, terms.get((), 0)).expression
    return sum_of(product_of(c, factors) for factors, c in terms.items())
