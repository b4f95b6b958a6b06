"""Whether a temporary holds a value exactly, or rounds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import DType
from loopkit._cached import cached_property
from loopkit._errors import IllegalTransformError, TypeInferenceError
from loopkit._expression import Substituter, evaluate, nodes_of, substitute, to_text, variable_names
from loopkit._nodes import Expression, subtrahend
from loopkit._poly.model import Model
from loopkit._promotion import BOOL, COMPLEXES, FLOATS, INTEGER, INTEGERS, RunTime, Typed
from loopkit._types import Kind, dtype_of, known_types


class ValueTypes:
    """The types of expressions in one kernel, as far as they are known."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def known(self) -> dict[str, Typed]:
        """The types of names."""
        return known_types(self.model.kernel)

    def array(self, name: str) -> DType | None:
        """The type of an array's elements."""
        found = self.known.get(name)
        return found if isinstance(found, np.dtype) else None

    def of(self, expr: Expression) -> Kind | None:
        """The type of an expression; None where it is unknown."""
        try:
            return dtype_of(expr, self.known.__getitem__)
        except (KeyError, TypeInferenceError):
            return None

    def substituted(self, expr: Expression, values: Mapping[str, Expression]) -> Expression:
        """``expr`` with numbers of inames and sizes for names, each term still added as it was.

        Where ``i`` is -1, ``z + i*x`` is ``z + 1*(-x)`` if ``z - x`` would be something else.

        :raises IllegalTransformError: where a power of whole numbers would become a fraction.
        """
        now = substitute(expr, values)
        if now is expr:
            return now
        for power in _fractions(expr, values):
            raise IllegalTransformError(
                f"'{to_text(power)}' would be the fraction that a literal is, and no integer: "
                "an integer to a negative power is 0",
                instead="a base such as 2.0 is a fraction with and without the step",
            )
        if not any(v == -1 or subtrahend(v) is not None for v in values.values()):
            return now
        return _Terms(self, values)(expr)

    def is_negated(self, terms: Sequence[Expression]) -> bool:
        """Whether subtracting the last of some terms, ``-1*x``, is adding ``-x``.

        It is not where ``-x`` wraps around in fewer bits than the sum, or is a zero without a sign.
        """
        _, *factors = terms[-1].children
        whole = self.of(prim.Sum(tuple(terms)))
        return not isinstance(whole, np.dtype) or all(self._is_negated(f, whole) for f in factors)

    def _is_negated(self, factor: Expression, whole: DType) -> bool:
        kind = self.of(factor)
        if kind is None:
            return True  # it is asked again when there are types
        if isinstance(kind, np.dtype):
            return _is_as_wide(kind, whole)
        is_number = type(factor) is float or (type(factor) is int and factor != 0)
        return is_number or (kind == INTEGER and whole in INTEGERS)

    def rounds(self, array: str, expr: Expression) -> str:
        """How a value changes when it is kept in ``array``; empty where it does not."""
        here, there = self.array(array), self.of(expr)
        if here is None or there is None or here == there:
            return ""
        if there == INTEGER:
            return ""  # exact; what it does to the types of a whole line is asked there
        if isinstance(there, RunTime):
            return f"'{array}' holds {here}, and what is kept there is a number without a type"
        return f"'{array}' holds {here}, and what is kept there is {there}"


class _Terms(Substituter):
    """Puts numbers in the places of names, and subtracts nothing that was added."""

    def __init__(self, types: ValueTypes, values: Mapping[str, Expression]) -> None:
        super().__init__(values)
        self.types = types

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        return substitute(expr, self.values)  # of whole numbers -j may be subtracted

    def map_sum(self, expr: prim.Sum) -> Expression:
        done: list[Expression] = []
        for place in expr.children:
            term = self.rec(place)
            is_new = subtrahend(term) is not None and subtrahend(place) is None
            if is_new and done and not self.is_negated(expr.children[: len(done) + 1]):
                term = prim.Product((1, term))
            done.append(term)
        return prim.Sum(tuple(done))

    def is_negated(self, places: Sequence[Expression]) -> bool:
        """Whether a negative value in the place of the last term may as well be subtracted."""
        whole, kind = self.of(prim.Sum(tuple(places))), self.of(places[-1])
        if isinstance(whole, np.dtype) and isinstance(kind, np.dtype):
            return _is_as_wide(kind, whole)
        return kind != INTEGER or whole not in FLOATS | COMPLEXES  # -0.0 - 0 is not 0 + -0.0

    def of(self, expr: Expression) -> Kind | None:
        """The type of an expression, in which an unknown name is an iname's or a size's."""
        known = self.types.known
        try:
            return dtype_of(expr, lambda name: known.get(name, INTEGER))
        except TypeInferenceError:
            return None


def _fractions(expr: Expression, values: Mapping[str, Expression]) -> Iterator[Expression]:
    """The powers of whole numbers that are fractions where literals stand for names."""
    for node in nodes_of(expr):
        if isinstance(node, prim.Power) and variable_names(node) & values.keys():
            power = substitute(node, values)
            with suppress(NotImplementedError, KeyError, ArithmeticError):
                base, exponent = (evaluate(e, {}) for e in (power.base, power.exponent))
                if type(base) is type(exponent) is int and exponent < 0:
                    yield power


def _is_as_wide(kind: DType, whole: DType) -> bool:
    """Whether what is negated in one type is as when it is negated in that of a sum."""
    return kind == whole or (kind not in INTEGERS and kind != BOOL)
