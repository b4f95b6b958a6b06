"""Proof that 32-bit integer arithmetic in subscripts, bounds and guards never overflows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from loopkit import _intervals, _sets
from loopkit._algebra.polynomials import minus, plus, scaled
from loopkit._algebra.terms import ZERO, number
from loopkit._intervals import Interval
from loopkit._promotion import INT32, INTEGERS, UINT32, UINT64, DType
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.types import C_TYPES, TYPES, common, in_registers
from loopkit.codegen.proof.form_ranges import FAR
from loopkit.codegen.proof.forms import (
    Form,
    NotAffineError,
    is_affine,
    is_data,
    names_of,
    number_in,
    value_at,
    variable,
)
from loopkit.codegen.proof.proof_conditions import Condition
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.report import Finding, Place
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import at_most
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Site, narrowed
from loopkit.codegen.proof.value_text import COMPARISONS

_NARROW = (INT32, UINT32)
_UNSIGNED = (UINT32, UINT64)
_COMPUTING = ("+", "-", "*", "/", "%", "<<")
_EXACT: dict[str, Callable[[Interval, Interval], Interval]] = {
    "+": _intervals.add,
    "-": _intervals.subtract,
    "*": _intervals.multiply,
}
_WRAPPING = ("+", "-", "*", "<<")
_BITWISE = ("&", "|", "^")


@dataclass(frozen=True, slots=True)
class _Part:
    """An operand, the type it is converted to, and whether only its bits matter."""

    expr: c.CExpression
    into: DType
    bits: bool


class WidthCheck(Check):
    """Checks every printed subscript, bound, guard and constant.

    Arithmetic on data in right-hand sides is checked by :mod:`.overflow`.
    """

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        super().__init__(subject, recorder)
        self.names = subject.names
        self._seen: set[tuple[Scope, Form, DType]] = set()

    def run(self) -> None:
        """Check all computations."""
        for site in self.subject.sites:
            self.expression(site)
            if site.ctype is not None:
                self.stored(site)
        for loop, around in self.subject.loops:
            self.counter(loop, around)

    def stored(self, site: Site) -> None:
        """A value must fit the variable that it is stored in."""
        kind = in_registers(TYPES[site.ctype or ""])
        if kind in _NARROW and self.names.computed_in(site.expr) != kind:
            what = f"variable of type {C_TYPES[kind]}"
            self.fits(self.form(site.expr, site.scope), kind, site, what)

    def counter(self, loop: c.For, outer: Scope) -> None:
        """A loop's variable must hold its last value, and the one that ends the loop."""
        kind = in_registers(TYPES[loop.ctype])
        against = self.names.computed_in(loop.upper)
        for own, expr in ((kind, loop.lower), (against, loop.upper)):
            if own != (meeting := common(kind, against)):
                self.converted(expr, own, meeting, Site(expr, outer, loop.line))
        if kind not in _NARROW:
            return
        upper = self.form(loop.upper, outer)
        last = plus(upper, number(loop.step if loop.inclusive else loop.step - 1))
        site = Site(loop.upper, outer, loop.line)
        if against == kind and loop.step == 1 and not loop.inclusive:
            return  # what it is compared with fits, and so does what ends it
        if is_affine(upper):
            self.fits(last, kind, site, f"counter '{loop.name}'", above_only=True)
        else:
            what = f"whether '{loop.name}' reaches the end of its loop as {C_TYPES[kind]}"
            self.recorder.open("width", what, line=loop.line)

    def expression(self, site: Site) -> None:
        """Check an expression and all that it is computed from."""
        own = self.names.computed_in(site.expr)
        kind = in_registers(TYPES[site.ctype]) if site.ctype else own
        # What is stored is looked at as a whole.
        pending = [(_Part(site.expr, kind, kind in _NARROW and kind != own), site)]
        while pending:
            part, at = pending.pop()
            expr = part.expr
            is_own = isinstance(expr, c.Call) and expr.function in self.names.own
            if isinstance(expr, c.Call) and not is_own and not self.names.is_integer(expr):
                continue
            kind = self.names.computed_in(expr)
            keeps_bits = part.bits and kind in INTEGERS and part.into.itemsize <= kind.itemsize
            if not part.bits:
                self.converted(expr, kind, part.into, at)
            # An element's subscripts are sites of their own.
            if not isinstance(expr, (c.Number, c.Name, c.Element)):
                found = self.operands(expr, kind, at, keeps_bits)
                scopes = self.scopes(expr, at.scope, len(found))
                inside = (at if s is at.scope else replace(at, scope=s) for s in scopes)
                pending += reversed([*zip(found, inside, strict=True)])

    def scopes(self, expr: c.CExpression, scope: Scope, count: int) -> list[Scope]:
        """Where the operands of an expression are computed: C may skip some of them."""

        def where(condition: c.CExpression, *, holds: bool) -> Scope:
            return narrowed(self.subject.text, scope, condition, holds=holds)

        if isinstance(expr, c.Choice):
            sides = (where(expr.condition, holds=holds) for holds in (True, False))
            return [scope, *sides]
        if isinstance(expr, c.Binary) and expr.operator in ("&&", "||"):
            return [scope, where(expr.left, holds=expr.operator == "&&")]
        return [scope] * count

    def converted(self, expr: c.CExpression, kind: DType, into: DType, site: Site) -> None:
        """What is made unsigned is not negative."""
        if (
            into not in _UNSIGNED
            or kind in _UNSIGNED
            or self._is_narrow_data(expr)
            or (site.is_guard and self.names.reads_memory(site.expr))
        ):
            return
        self.fits(self.form(expr, site.scope), into, site, "conversion to unsigned")

    def _is_narrow_data(self, expr: c.CExpression) -> bool:
        """Whether something of an unsigned type is widened as it is, and nothing computed of it."""
        is_computed = isinstance(expr, (c.Binary, c.Unary, c.Call, c.Choice))
        return not is_computed and np.dtype(self.names.type_of(expr)).kind in "bu"

    def operands(
        self, expr: c.CExpression, kind: DType, site: Site, keeps_bits: bool
    ) -> list[_Part]:
        """Check one operation, and what its operands are converted to.

        Unsigned integers wrap around.  That is no harm where only the bits of the result
        count (``keeps_bits``): there it is the last step alone whose value must fit.
        """
        if isinstance(expr, c.Cast):
            return self.cast(expr, kind, site, keeps_bits)
        if isinstance(expr, c.Choice):
            sides = [_Part(side, kind, keeps_bits) for side in (expr.then, expr.other)]
            return [self.part(expr.condition), *sides]
        if isinstance(expr, c.Unary) and expr.operator == "-":
            self.computed(expr, kind, site, keeps_bits)
            return [_Part(expr.operand, kind, kind in _UNSIGNED)]
        if isinstance(expr, c.Call) and expr.function in self.names.own:
            # What is given is converted to the declared type, whatever its value.
            given = (a.operand if isinstance(a, c.Cast) else a for a in expr.arguments)
            return [self.part(a) for a in given]
        if isinstance(expr, c.Call):
            if expr.function.startswith("lk_power<"):
                self.computed(expr, kind, site, keeps_bits)
            return [_Part(a, kind, False) for a in expr.arguments]
        if not isinstance(expr, c.Binary) or expr.operator in ("&&", "||"):
            return [self.part(child) for child in c.children(expr)]
        if expr.operator in COMPARISONS:
            kind = common(*map(self.names.type_of, (expr.left, expr.right)))
        elif expr.operator in _COMPUTING:
            self.computed(expr, kind, site, keeps_bits)
        are_bits = expr.operator in _WRAPPING or self.is_masked(expr, site)
        bits = kind in _UNSIGNED and (are_bits or (keeps_bits and expr.operator in _BITWISE))
        if expr.operator in ("<<", ">>"):
            self.shift(expr, kind, site)
            return [_Part(expr.left, kind, bits), self.part(expr.right)]
        return [_Part(side, kind, bits) for side in (expr.left, expr.right)]

    def is_masked(self, expr: c.Binary, site: Site) -> bool:
        """Whether all but some low bits are cleared: what is above them does not count."""
        sides = (number_in(self.form(side, site.scope)) for side in (expr.left, expr.right))
        return expr.operator == "&" and any(side is not None and side >= 0 for side in sides)

    def part(self, expr: c.CExpression) -> _Part:
        """An operand that keeps its type and must have its value."""
        return _Part(expr, self.names.computed_in(expr), False)

    def cast(self, expr: c.Cast, kind: DType, site: Site, keeps_bits: bool) -> list[_Part]:
        """A cast to fewer values than there may be.

        What it makes of data, and in guards, is compared, types and all.
        """
        inner = self.names.computed_in(expr.operand)
        if self.names.reads_memory(expr.operand):
            return [self.part(expr.operand)]
        loses = kind in _NARROW and inner in INTEGERS and inner != kind
        if loses and not keeps_bits and not site.is_guard:
            what = f"cast to {C_TYPES[kind]}"
            self.fits(self.form(expr.operand, site.scope), kind, site, what)
        loses |= inner in _UNSIGNED and kind in INTEGERS and kind not in _UNSIGNED
        return [_Part(expr.operand, kind, loses and inner.itemsize >= kind.itemsize)]

    def computed(self, expr: c.CExpression, kind: DType, site: Site, keeps_bits: bool) -> None:
        """The result of arithmetic, which 64 bits with a sign always hold."""
        is_bounded = kind in _NARROW or kind in _UNSIGNED
        if not is_bounded or self.names.reads_memory(expr) or (keeps_bits and kind in _UNSIGNED):
            return
        if isinstance(expr, c.Binary) and expr.operator in ("/", "%"):
            by = self.form(expr.right, site.scope)
            if number_in(by) is None and site.scope.never_below_zero(minus(by, number(1))):
                return  # no larger than what is divided
        what = f"{8 * kind.itemsize}-bit integer"
        self.fits(self.form(expr, site.scope), kind, site, what, expr)

    def shift(self, expr: c.Binary, kind: DType, site: Site) -> None:
        """C shifts by less than there are bits, and says nothing of other shifts."""
        count, bits = number_in(self.form(expr.right, site.scope)), 8 * kind.itemsize
        if count is None:
            self.recorder.open("width", "by how many bits is shifted", line=site.line)
        elif not 0 <= count < bits:
            what = f"a shift of {bits} bits by {count}"
            self.recorder.wrong("width", what, site.line, self._statement(site))

    def form(self, expr: c.CExpression, scope: Scope) -> Form:
        """The exact value of an expression."""
        return self.subject.text.form(expr, scope)

    def fits(
        self,
        form: Form,
        kind: DType,
        site: Site,
        what: str,
        expr: c.CExpression | None = None,
        *,
        above_only: bool = False,
    ) -> None:
        """Whether a value stays inside its type wherever it is computed."""
        low, high = _intervals.of_dtype(kind)
        least, most = site.scope.range_of(form)
        if most <= high and (above_only or least >= low):
            return
        key = (site.scope, form, kind)
        if key in self._seen:
            return
        self._seen.add(key)
        with self.recorder.question(
            "width", f"whether {shown(form)} fits {8 * kind.itemsize} bits (line {site.line})"
        ):
            beyond = [at_most(number(high + 1), form)]
            if not above_only:
                beyond.append(at_most(form, number(low - 1)))
            if is_data(form) or names_of(form) & self.subject.data_names:
                # Loops and guards around may leave no room, whatever the data.
                space = site.scope.space
                if not is_affine(form) or not all(
                    (site.scope.set & space.where(part)).is_empty() for part in beyond
                ):
                    self.recorder.open("width", f"{shown(form)}: data decides", line=site.line)
            elif is_affine(form):
                self.affine(form, beyond, site, what)
            # The exact ranges of the factors of products may show that a value fits.
            elif expr is None or (span := self.span(expr, site.scope)) != (
                max(span[0], low),
                min(span[1], high),
            ):
                self.product(form, (low, high), site, what)

    def span(self, expr: c.CExpression, scope: Scope, *, exact: bool = True) -> Interval:
        """Bounds of a value: exact where it is affine, else from those of its operands."""
        form = self.form(expr, scope)
        rough = scope.range_of(form)
        if exact and is_affine(form):
            return _intervals.intersection(rough, self.exact_range(form, scope))
        if isinstance(expr, c.Binary) and expr.operator in _EXACT:
            left, right = self.span(expr.left, scope), self.span(expr.right, scope)
            return _intervals.intersection(rough, _EXACT[expr.operator](left, right))
        return rough

    @staticmethod
    def exact_range(form: Form, scope: Scope) -> Interval:
        """The least and greatest value of an affine form where a scope is reached."""
        try:
            aff = scope.space.aff(form)
        except NotAffineError:
            return -FAR, FAR
        low, high = _extreme(scope.set, aff.neg()), _extreme(scope.set, aff)
        return -FAR if low is None else -low, FAR if high is None else high

    def affine(self, form: Form, beyond: list[Condition], site: Site, what: str) -> None:
        """The exact answer for an affine value."""
        for condition in beyond:
            overflow = site.scope.set & site.scope.space.where(condition)
            if not overflow.is_empty():
                point = self.recorder.point(
                    overflow, (*self.subject.sizes, *sorted(names_of(form)))
                )
                self.place(form, value_at(form, point), point, site, what)
                return

    def product(self, form: Form, limits: Interval, site: Site, what: str) -> None:
        """Products of names: a concrete overflow, or nothing decided.

        The value is driven up, then down: the factors of products of sizes as
        far as they go, then the sizes, then the rest; and in another order.
        """
        parts = self.subject.coefficients(form)
        rest = parts.pop((), ZERO)
        sizes = [variable(n) for n in sorted(names_of(form) & self.subject.shared_names)]
        scope = site.scope
        for sign in (1, -1):
            factors = [scaled(p, sign) for p in parts.values() if is_affine(p)]
            last = scaled(rest, sign)
            for pushes in ([*factors, *sizes, last], [*sizes, *factors, last], [*sizes, last]):
                where = scope.set
                for push in pushes:
                    where = _driven_up(scope, where, push)
                point = self.recorder.point(where, (*self.subject.sizes, *sorted(names_of(form))))
                value = value_at(form, point)
                if not limits[0] <= value <= limits[1]:
                    self.place(form, value, point, site, what)
                    return
        self.recorder.open("width", f"whether {shown(form)} fits 32 bits", line=site.line)

    def place(self, form: Form, value: int, point: dict[str, int], site: Site, what: str) -> None:
        """A finding at a point."""
        subject = self.subject
        values = {n: v for n, v in point.items() if n not in subject.sizes and n in names_of(form)}
        at = Place(site.line, self._statement(site), values)
        text = f"{shown(form)} is {value}, too large for a {what}"
        self.recorder.found(Finding("width", text, at, sizes=subject.sizes_at(point)))

    def _statement(self, site: Site) -> str | None:
        return next((f.statement for f in self.subject.leaves if f.line == site.line), None)


def _extreme(domain: isl.Set, aff: isl.Aff) -> int | None:
    """The greatest value of an affine function; None where there is none."""
    values = isl.Set.from_pw_aff(isl.PwAff.from_aff(aff).intersect_domain(domain))
    found = values.project_out_all_params().dim_max_val(0)
    if found.is_infty() or found.is_nan() or found.is_neginfty():
        return None
    return _sets.integer(found)


def _driven_up(scope: Scope, where: isl.Set, form: Form) -> isl.Set:
    """The part of a set where an affine form is greatest."""
    try:
        greatest = _extreme(where, scope.space.aff(form))
        if greatest is None:
            return where
        return where & scope.space.where(at_most(number(greatest), form))
    except NotAffineError:
        return where
