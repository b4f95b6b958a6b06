"""Typed computations as forms and conditions.

A form counts in mathematical integers.  What is computed of data in a type of so many
bits is a form where it cannot leave its type, by the ranges of its operands; every
other operation is opaque: it is equal to the same operation, in the same types, on
equal operands, and to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopkit import _intervals
from loopkit._intervals import Interval
from loopkit._promotion import BOOL, INT64, INTEGERS, DType
from loopkit._same import key_of
from loopkit.codegen.proof import conditions, forms
from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.forms import Form
from loopkit.codegen.proof.terms import Read, Term

RangeOf = Callable[[str], Interval]
"""Bounds of an iname, a size or a hardware index."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of a term: its form, and bounds of its value.

    ``is_exact``: the value is that of the form, in mathematical integers.  ``of_data``:
    data enter.  ``condition``: when a truth value holds.
    """

    form: Form
    range: Interval
    is_exact: bool
    of_data: bool
    condition: Condition | None = None


class TypedForms:
    """Makes forms of terms.

    ``read`` gives the form of what a term reads from memory, ``range_of_name`` the bounds
    of a variable that has no place in memory.
    """

    def __init__(self, read: Callable[[Read], Form], range_of_name: RangeOf) -> None:
        self.read = read
        self.range_of_name = range_of_name

    def form(self, term: Term) -> Form:
        """A term's value, exact or opaque."""
        return self.known(term).form

    def condition(self, term: Term) -> Condition:
        """When a truth value holds."""
        found = self.known(term).condition
        assert found is not None
        return found

    def known(self, term: Term) -> Known:
        """All that is known of a term."""
        done: dict[int, Known] = {}
        pending = [term]  # sums may be deeper than Python's stack
        while pending:
            part = pending[-1]
            missing = [a for a in part.args if id(a) not in done]
            if missing:
                pending += missing
                continue
            done[id(part)] = self._made(part, [done[id(a)] for a in part.args])
            pending.pop()
        return done[id(term)]

    def _made(self, term: Term, parts: list[Known]) -> Known:
        if term.op in _LEAVES:
            return self._leaf(term)
        of_data = any(p.of_data for p in parts)
        if term.dtype == BOOL:
            return self._truth(term, parts, of_data)
        exact = None
        if term.dtype in INTEGERS and all(p.is_exact for p in parts):
            exact = _exact(term, parts)
        if exact is not None and self.fits(term, *exact, of_data):
            return Known(*exact, True, of_data)
        is_exact = term.dtype in INTEGERS
        return Known(_opaque(term, parts), limits(term.dtype), is_exact, of_data)

    def fits(self, term: Term, form: Form, bounds: Interval, of_data: bool) -> bool:
        """Whether a result that is exact without end is one in its type."""
        # What is made of inames and sizes alone is computed in 64 bits, which hold it.
        is_index = term.dtype == INT64 and not of_data and term.op != "cast"
        return is_index or _intervals.contains(limits(term.dtype), bounds)

    def _leaf(self, term: Term) -> Known:
        if term.op == "read":
            form = self.read(term.data)
            condition = None
            if term.dtype == BOOL:
                condition = conditions.comparison("!=", form, forms.ZERO, is_integer=True)
            is_exact = term.dtype in INTEGERS or term.dtype == BOOL
            return Known(form, limits(term.dtype), is_exact, True, condition)
        if term.op == "name":
            bounds = _intervals.intersection(self.range_of_name(term.data), limits(term.dtype))
            return Known(forms.variable(term.data), bounds, term.dtype in INTEGERS, False)
        if term.dtype == BOOL:
            value = int(term.data)
            condition = conditions.TRUE if term.data else conditions.FALSE
            return Known(forms.constant(value), (value, value), True, False, condition)
        if term.dtype in INTEGERS:
            return Known(forms.constant(term.data), (term.data, term.data), True, False)
        word = ("number", term.dtype, key_of(term.data), str(term.data))
        return Known(forms.opaque(word), limits(term.dtype), False, False)

    def _truth(self, term: Term, parts: list[Known], of_data: bool) -> Known:
        known = [p.condition for p in parts if p.condition is not None]
        if term.op == "cmp":
            left, right = (p.form for p in parts)
            is_integer = all(p.is_exact for p in parts)
            condition = conditions.comparison(term.data, left, right, is_integer=is_integer)
        elif term.op in ("all", "any") and len(known) == len(parts):
            condition = conditions.joined("and" if term.op == "all" else "or", known)
        elif term.op == "not" and known:
            condition = conditions.negated(known[0])
        elif term.op == "choice" and len(known) == 3:
            asked, then, other = known
            sides = [
                conditions.joined("and", [asked, then]),
                conditions.joined("and", [conditions.negated(asked), other]),
            ]
            condition = conditions.joined("or", sides)
        else:
            condition = conditions.Unknown("!=", forms.ZERO, _opaque(term, parts))
        return Known(forms.opaque("condition", condition), (0, 1), True, of_data, condition)


def _opaque(term: Term, parts: list[Known]) -> Form:
    """An operation as a whole; sums and products that lean to the left are of many operands."""
    word = (term.op, term.dtype, term.data if term.op in _NAMED else None)
    nodes: tuple[forms.Node, ...] = tuple(p.form for p in parts)
    if term.op == "power" and term.dtype in INTEGERS:
        return forms.opaque(("mul", term.dtype, None), *nodes * term.data)
    if term.op in ("add", "mul"):
        first = parts[0].form.only
        if isinstance(first, forms.Opaque) and first.word == word:
            nodes = (*first.inside, *nodes[1:])
    return forms.opaque(word, *nodes)


def limits(dtype: DType) -> Interval:
    """All values of a type of integers; of what are no integers nothing is known."""
    return _intervals.of_dtype(dtype) if dtype in INTEGERS else (0, 1)


def _exact(term: Term, parts: list[Known]) -> tuple[Form, Interval] | None:
    """An operation on integers without end: its form, and bounds; None where there is no form."""
    values, ranges = [p.form for p in parts], [p.range for p in parts]
    if term.op == "power":
        return forms.power(values[0], term.data), _intervals.power(
            ranges[0], (term.data, term.data)
        )
    if term.op == "choice":
        asked = parts[0].condition
        whole = None if asked is None else forms.choice(asked, *values[1:])
        return None if whole is None else (whole, _intervals.hull(*ranges[1:]))
    if term.op == "xor":
        bits, (low, high) = forms.bits_of(values[1]), ranges[1]
        if bits is None and low >= 0:
            bits = high.bit_length()
        left, right = values
        if bits is None or bits > _MOST_BITS:
            whole = forms.of_bits("^", left, right)
        else:
            whole = forms.exclusive_or(left, right, bits)
        return whole, _intervals.bitwise_or(*ranges)
    rules = _RULES.get(term.data if term.op == "call" else term.op)
    if rules is None:
        return None
    of_forms, of_ranges = rules
    whole = of_forms(*values)
    return None if whole is None else (whole, of_ranges(*ranges))


def _divided(word: str, rule: Callable[[Form, int], Form]) -> Callable[[Form, Form], Form]:
    """A quotient or remainder: by a number as a form, by anything else as a whole."""
    return lambda form, by: rule(form, by.constant) if by.constant else forms.opaque(word, form, by)


_RULES: dict[str, tuple[Callable[..., Form | None], Callable[..., Interval]]] = {
    "cast": (lambda x: x, lambda x: x),
    "neg": (lambda x: x.scaled(-1), _intervals.negate),
    "add": (Form.plus, _intervals.add),
    "mul": (Form.times, _intervals.multiply),
    "fdiv": (_divided("//", forms.floored), _intervals.floor_divide),
    "mod": (_divided("%", forms.remainder), lambda _, by: _intervals.floor_remainder(by)),
    "shr": (lambda x, by: forms.bitwise(">>", x, by), _intervals.shift_right),
    "shl": (lambda x, by: forms.bitwise("<<", x, by), _intervals.shift_left),
    "and": (lambda x, mask: forms.of_bits("&", x, mask), _intervals.bitwise_and),
    "or": (lambda x, mask: forms.of_bits("|", x, mask), _intervals.bitwise_or),
    "min": (lambda *parts: forms.extreme("min", parts), _intervals.least),
    "max": (lambda *parts: forms.extreme("max", parts), _intervals.greatest),
    "abs": (forms.absolute, _intervals.absolute),
    "sign": (
        lambda x: forms.extreme(
            "max", (forms.constant(-1), forms.extreme("min", (forms.constant(1), x)))
        ),
        lambda _: (-1, 1),
    ),
}
_MOST_BITS = 16
"""Bits of an exclusive or that is looked into; no more tell the cells of a block's arrays apart."""
_LEAVES = frozenset(("const", "name", "read"))
_NAMED = frozenset(("call", "part", "power"))
