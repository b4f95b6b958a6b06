"""Proof that signed arithmetic on data never overflows.

Signed overflow is undefined in C, so the text must use unsigned integers where values may become
too large. That the results then equal the kernel's modulo a power of two is proven by
:mod:`.value_check`; subscripts and bounds are checked by :mod:`.width_check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopkit import _intervals
from loopkit._algebra.polynomials import minus, plus
from loopkit._arrays import ArrayArg, TemporaryVariable, storage_shape, strides_of
from loopkit._intervals import Interval
from loopkit._promotion import INT32, INT64, INTEGERS, DType
from loopkit.codegen.c import tree as c
from loopkit.codegen.proof.forms import Form, is_data, names_of
from loopkit.codegen.proof.memory_layout import span
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf, Site
from loopkit.codegen.proof.typed_forms import limits
from loopkit.codegen.proof.width_check import WidthCheck


class OverflowCheck(Check):
    """Bounds all integers that right-hand sides and guards compute, by intervals."""

    def __init__(self, subject: Subject, recorder: Recorder, widths: WidthCheck) -> None:
        super().__init__(subject, recorder)
        self.widths = widths

    def run(self) -> None:
        """Check all lines that assign, all guards that test data, and subscripts made of data."""
        for site in self.subject.sites:
            if site.axis is not None and self.subject.names.reads_memory(site.expr):
                self.subscript(site, *site.axis)
        for leaf in self.subject.leaves:
            node = leaf.node
            if isinstance(node, c.Assign):
                whole = node.value
                # What is atomic wraps around.
                if not (node.atomic or node.operator in ("=", "max=", "min=")):
                    whole = c.Binary(node.operator[:-1], node.target, node.value)
                self.line(leaf, whole)
            elif isinstance(node, c.If):
                self.line(leaf, node.condition)

    def subscript(self, site: Site, array: str, axis: int) -> None:
        """Check a subscript, which as a whole lies in its array: the kernel's text says so."""
        form = self.widths.form(site.expr, site.scope)
        length = self.length(array, axis, site.scope)
        inside = ((form, (0, length - 1)), *self.indices(array, form, site.scope))
        bounds = _Bounds(site.scope, self.widths, data_alone=True, inside=inside)
        with self.recorder.question("width", f"whether a subscript of '{array}' overflows"):
            bounds.of(site.expr)
            if bounds.beyond is not None and not site.scope.set.is_empty():
                what = f"whether 32 bits hold what a subscript of '{array}' computes of data"
                self.recorder.open("width", what, line=site.line)

    def indices(self, array: str, offset: Form, scope: Scope) -> Iterator[tuple[Form, Interval]]:
        """The indices of the kernel's accesses at an offset: each lies in its axis."""
        meaning = self.subject.meaning
        for statement in self.subject.kernel.statements:
            for name, indices in statement.accesses:
                if name == array and indices and meaning.offset(name, indices) == offset:
                    shape = self.subject.kernel.array(name).shape or ()
                    for index, extent in zip(indices, shape, strict=True):
                        most = scope.range_of(meaning.form(extent))[1]
                        yield meaning.form(index), (0, most - 1)

    def length(self, array: str, axis: int, scope: Scope) -> int:
        """No fewer than the elements of an axis of an array as the text has it."""
        extent = self.subject.names.dimensions.get(array, (None,))[axis]
        if extent is not None:
            return extent
        held = self.subject.kernel.array(array)
        shape = storage_shape(held) if isinstance(held, TemporaryVariable) else held.shape
        elements = span(self.subject, shape or (), strides_of(held))
        if isinstance(held, ArrayArg):
            elements = plus(elements, self.subject.meaning.form(held.offset))
        return scope.range_of(elements)[1]

    def line(self, leaf: Leaf, expr: c.CExpression) -> None:
        """Check an expression of a line; the first that may overflow is reported."""
        # What guards make of inames and sizes alone is index arithmetic.
        data_alone = isinstance(leaf.node, c.If)
        bounds = _Bounds(leaf.scope, self.widths, data_alone)
        with self.recorder.question("width", "whether integers of the line may overflow", leaf):
            bounds.of(expr)
            if bounds.beyond is None or leaf.scope.set.is_empty():
                return
            dtype, is_data = bounds.beyond
            what = f"signed integers of {8 * dtype.itemsize} bits may overflow, which C leaves open"
            if is_data:
                self.recorder.wrong("width", what, leaf.line, leaf.statement)
            else:
                self.recorder.open("width", f"whether {what}", [leaf])


class _Bounds:
    """The ranges of expressions at one point of the text.

    ``inside`` are subscripts, and indices of axes, each with the range in which it is known to be.
    """

    def __init__(
        self,
        scope: Scope,
        widths: WidthCheck,
        data_alone: bool,
        inside: tuple[tuple[Form, Interval], ...] = (),
    ) -> None:
        self.names = widths.names
        self.scope = scope
        self.widths = widths
        self.data_alone = data_alone
        self.inside = inside
        self.bounding = widths.subject.kernel.bounding
        self.beyond: tuple[DType, bool] | None = None

    def of(self, expr: c.CExpression, *, exact: bool = False) -> Interval:
        """Bounds of an integer expression; those of its parts are looked at, too.

        Sets say how large names may be (``exact``) where intervals do not say enough.
        """
        self.is_exact = exact
        known: dict[int, Interval] = {}
        for part in c.postorder(expr, _operands):
            known[id(part)] = self.whole(part, [known[id(p)] for p in _operands(part)])
        if exact or self.beyond is None:
            return known[id(expr)]
        self.beyond = None
        return self.of(expr, exact=True)

    def whole(self, expr: c.CExpression, parts: list[Interval]) -> Interval:
        """The same, given the bounds of its parts."""
        if self.data_alone and isinstance(expr, c.Name) and expr.name in self.bounding:
            return _intervals.intersection(limits(self.names.type_of(expr)), _COUNTABLE)
        if isinstance(expr, c.Element):
            return limits(self.names.type_of(expr))
        if isinstance(expr, c.Number):
            return int(expr.value), int(expr.value)
        dtype = self.names.type_of(expr)
        own = limits(dtype)
        if dtype not in INTEGERS:
            return own
        if isinstance(expr, c.Name):
            if self.names.reads_memory(expr):
                return own
            span = self.widths.span(expr, self.scope, exact=self.is_exact)
            return _intervals.intersection(own, span)
        found = self.computed(expr, parts)
        if found is None:
            return own
        if _intervals.contains(own, found):
            return found
        computes = isinstance(expr, (c.Binary, c.Unary)) or (
            isinstance(expr, c.Call) and expr.function == "abs"
        )
        if computes and dtype in (INT32, INT64):
            is_data = self.names.reads_memory(expr)
            if not is_data and self.data_alone:
                return own
            if self.inside and dtype == INT64:
                return own  # no array has so many elements
            exact = self.of_data(expr, found) if is_data else self.widths.span(expr, self.scope)
            if not _intervals.contains(own, exact):
                self.beyond = self.beyond or (dtype, is_data)
            return _intervals.intersection(own, exact)
        return own

    def of_data(self, expr: c.CExpression, found: Interval) -> Interval:
        """The same, where a part and what no data enter make up a subscript."""
        for whole, bounds in self.inside:
            rest = minus(whole, self.widths.form(expr, self.scope))
            if not is_data(rest) and not names_of(rest) & self.widths.subject.data_names:
                own = _intervals.subtract(bounds, self.scope.range_of(rest))
                found = _intervals.intersection(found, own)
        return found

    def computed(self, expr: c.CExpression, parts: list[Interval]) -> Interval | None:
        """The exact result of an operation on values between bounds; None if it is not known."""
        if isinstance(expr, c.Cast):
            return parts[0] if self.names.is_integer(expr.operand) else None
        if isinstance(expr, c.Unary):
            return _intervals.negate(parts[0]) if expr.operator == "-" else None
        if isinstance(expr, c.Choice):
            return _intervals.hull(parts[1], parts[2])
        if not isinstance(expr, (c.Binary, c.Call)):
            return None
        word = expr.operator if isinstance(expr, c.Binary) else expr.function
        if word not in _RESULTS or (word in _LEAST and parts[1][0] < _LEAST[word]):
            return None
        return _RESULTS[word](*parts)


def _operands(expr: c.CExpression) -> tuple[c.CExpression, ...]:
    """An element's subscripts are sites of their own."""
    return () if isinstance(expr, c.Element) else c.children(expr)


# Guards of loops compute with the loaded bounds of these, which count elements as sizes do.
_COUNTABLE = (-(2**53), 2**53)
_RESULTS: dict[str, Callable[..., Interval]] = {
    "+": _intervals.add,
    "-": _intervals.subtract,
    "*": _intervals.multiply,
    "/": _intervals.truncating_divide,
    "%": _intervals.truncating_remainder,
    "&": _intervals.bitwise_and,
    "|": _intervals.bitwise_or,
    "^": _intervals.bitwise_or,
    ">>": _intervals.shift_right,
    "min": _intervals.least,
    "max": _intervals.greatest,
    "abs": _intervals.absolute,
    "lk_floordiv": _intervals.floor_divide,
    "lk_mod": lambda _, divisor: _intervals.floor_remainder(divisor),
}
"""What operators and functions of C do with operands for which it gives them a meaning."""
_LEAST = {"/": 1, "%": 1, ">>": 0, "lk_floordiv": 1, "lk_mod": 1}
"""The least second operand for which bounds are known."""
