"""Whether a term of the text and one of the kernel are the same computation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from loopkit import _intervals
from loopkit._algebra.polynomials import minus
from loopkit._algebra.terms import ZERO, number, subterms
from loopkit._promotion import INTEGERS
from loopkit.codegen.c.tree import CExpression
from loopkit.codegen.proof.forms import DATA, Form, is_data, loaded
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import narrowed
from loopkit.codegen.proof.typed_computations import Read, Term
from loopkit.codegen.proof.typed_forms import TypedForms, limits

Context = tuple[tuple[CExpression, bool], ...]
"""Conditions of the text under which an operand is computed, and whether they hold there."""

Pair = tuple[Term, Term]

_NAMED = frozenset(("name", "cmp", "part", "call", "power"))
"""Operations of which there are several, told apart by their data."""
_WIDTHLESS = frozenset(("min", "max", "choice", "and", "or", "xor", "inv"))


class Comparison:
    """Compares terms at one point of the text."""

    def __init__(
        self, subject: Subject, scope: Scope, is_zero: Callable[[Scope, Form], bool]
    ) -> None:
        self.subject = subject
        self.scope = scope
        self.is_zero = is_zero
        self._scopes: dict[tuple[tuple[int, bool], ...], Scope] = {}

    def difference(self, text: Term, kernel: Term, context: Context = ()) -> Pair | None:
        """The first operands that differ, from the outside; None if the terms are the same."""
        # Long sums lean to the left.
        spine: list[Pair] = []
        while text.op == kernel.op and text.op in ("add", "mul") and text.dtype == kernel.dtype:
            spine.append((text, kernel))
            text, kernel = text.args[0], kernel.args[0]
        found = self.innermost(text, kernel, context)
        for text, kernel in reversed(spine):
            found = found or self.difference(text.args[1], kernel.args[1], context)
            if found is not None and self._as_integers(text, kernel, context) is None:
                found = None
        return found

    def innermost(self, text: Term, kernel: Term, context: Context) -> Pair | None:
        """The same for what is no sum or product in both."""
        if kernel.op == "power" and text.op == "mul":
            if self.is_power(text, kernel, context):
                return None
            return self._as_integers(text, kernel, context)
        if (
            text.op != kernel.op
            or text.dtype != kernel.dtype
            or (text.op in _NAMED and text.data != kernel.data)
        ):
            whole = self._as_integers(text, kernel, context)
            if whole is None or not _same_in_any_width(text, kernel):
                return whole
        if text.op == "const":
            return None if _same_number(text.data, kernel.data) else (text, kernel)
        if text.op == "read":
            return None if self.same_cell(text.data, kernel.data, context) else (text, kernel)
        if len(text.args) != len(kernel.args):
            return text, kernel
        for position, (one, two) in enumerate(zip(text.args, kernel.args, strict=True)):
            found = self.difference(one, two, (*context, *_asked(text, position)))
            if found is not None:
                whole = self._as_integers(text, kernel, context)
                return found if whole is not None else None
        return None

    def is_power(self, text: Term, kernel: Term, context: Context) -> bool:
        """Whether a product is made of as many equal factors as a power has."""
        factors = _factors(text)
        (base,) = kernel.args
        return len(factors) == kernel.data and all(
            f.dtype == kernel.dtype and self.difference(f, base, context) is None for f in factors
        )

    def same_cell(self, text: Read, kernel: Read, context: Context) -> bool:
        """Whether two reads are of one element, wherever the text reads it."""
        if text.array != kernel.array:
            return False
        subject = self.subject
        indices = tuple(subject.text.form(i, self.scope) for i in text.indices)
        found = subject.text.offset_of(text.array, indices)
        due = subject.meaning.offset(kernel.array, kernel.indices)
        difference = minus(found, due)
        if difference is ZERO:
            return True
        return self.is_zero(self.scope, difference) or (
            bool(context) and self.is_zero(self._narrowed(context), difference)
        )

    def _narrowed(self, context: Context) -> Scope:
        """The scope in which a branch of the text is computed."""
        key = tuple((id(expr), holds) for expr, holds in context)
        if key not in self._scopes:
            scope = self.scope
            for expr, holds in context:
                scope = narrowed(self.subject.text, scope, expr, holds=holds)
            self._scopes[key] = scope
        return self._scopes[key]

    def _as_integers(self, text: Term, kernel: Term, context: Context) -> Pair | None:
        """Arithmetic on loop variables and sizes: equal as integers, and none too large."""
        if {text.dtype, kernel.dtype} <= INTEGERS:
            scope = self._narrowed(context) if context else self.scope
            one, two = map(_OfNames(scope).form, (text, kernel))
            is_exact = all(part.op not in (*DATA, "wrap") for part in subterms(one, two))
            if is_exact and self.is_zero(scope, minus(one, two)):
                return None
        return text, kernel


class _OfNames(TypedForms):
    """Integer arithmetic on loop variables and sizes, exact where no operation overflows."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(lambda read: loaded(read.array, ZERO), scope.range_of_name)
        self.scope = scope

    def fits(self, term: Term, form: Form) -> bool:
        own = limits(term.dtype)
        if is_data(form) or _intervals.contains(own, self.range_of(form)):
            return not is_data(form)
        # The exact answer, where rough ones fail.
        ends = (minus(form, number(own[0])), minus(number(own[1]), form))
        return all(self.scope.never_below_zero(end) for end in ends)


def _same_in_any_width(text: Term, kernel: Term) -> bool:
    """Whether an operation on signed integers gives the same for equal operands of other widths."""
    kinds = {text.dtype, kernel.dtype}
    signed = kinds <= INTEGERS and all(kind.kind == "i" for kind in kinds)
    return signed and text.op == kernel.op and text.op in _WIDTHLESS


def _asked(text: Term, position: int) -> Context:
    """What holds where an operand of a choice, or of ``&&`` and ``||``, is computed."""
    if text.op == "choice" and text.data is not None and position:
        return ((text.data, position == 1),)
    if text.op in ("all", "any") and text.data and None not in text.data[:position]:
        return tuple((expr, text.op == "all") for expr in text.data[:position])
    return ()


def _same_number(a: Any, b: Any) -> bool:
    """Whether two constants are the same, zeros of different signs being different."""
    if isinstance(a, complex) or isinstance(b, complex):
        a, b = complex(a), complex(b)
        return _same_number(a.real, b.real) and _same_number(a.imag, b.imag)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return bool(a == b) and math.copysign(1, a) == math.copysign(1, b)


def _factors(term: Term) -> list[Term]:
    if term.op != "mul":
        return [term]
    return [f for a in term.args for f in _factors(a)]
