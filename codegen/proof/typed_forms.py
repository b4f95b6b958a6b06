"""Typed computations as forms and conditions.

A form counts in mathematical integers.  What is computed of data in a type of so many
bits is a form where it cannot leave its type, by the ranges of its operands; every
other operation is opaque: it is equal to the same operation, in the same types, on
equal operands, and to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from loopkit import _intervals
from loopkit._intervals import Interval
from loopkit._promotion import BOOL, INT64, INTEGERS, DType
from loopkit._same import key_of
from loopkit.codegen.proof.conditions import (
    FALSE,
    TRUE,
    Condition,
    Unknown,
    comparison,
    joined,
    negated,
)
from loopkit.codegen.proof.forms import (
    ZERO,
    Form,
    Opaque,
    choice,
    constant,
    extreme,
    floor,
    opaque,
    variable,
)
from loopkit.codegen.proof.nodes import Node
from loopkit.codegen.proof.terms import Read, Term

RangeOf = Callable[[str], Interval]
"""Bounds of an iname, a size or a hardware index."""
_MOST_BITS = 64


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
        return self._known(term).form

    def condition(self, term: Term) -> Condition:
        """When a truth value holds."""
        found = self._known(term).condition
        assert found is not None
        return found

    def _known(self, term: Term) -> Known:
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
            rule = _EXACT.get(term.op)
            exact = rule(term, parts) if rule is not None else None
        if exact is not None:
            form, bounds = exact
            # What is made of inames and sizes alone is computed in 64 bits, which hold it.
            is_index = term.dtype == INT64 and not of_data and term.op != "cast"
            if is_index or _intervals.contains(limits(term.dtype), bounds):
                return Known(form, bounds, True, of_data)
        whole = _opaque(term, parts)
        return Known(whole, limits(term.dtype), False, of_data)

    def _leaf(self, term: Term) -> Known:
        if term.op == "read":
            form = self.read(term.data)
            condition = None
            if term.dtype == BOOL:
                condition = comparison("!=", form, ZERO, is_integer=True)
            is_exact = term.dtype in INTEGERS or term.dtype == BOOL
            return Known(form, limits(term.dtype), is_exact, True, condition)
        if term.op == "name":
            bounds = _intervals.intersection(self.range_of_name(term.data), limits(term.dtype))
            return Known(variable(term.data), bounds, term.dtype in INTEGERS, False)
        if term.dtype == BOOL:
            value = int(term.data)
            condition = TRUE if term.data else FALSE
            return Known(constant(value), (value, value), True, False, condition)
        if term.dtype in INTEGERS:
            return Known(constant(term.data), (term.data, term.data), True, False)
        word = ("number", term.dtype, key_of(term.data))
        return Known(opaque(word), limits(term.dtype), False, False)

    def _truth(self, term: Term, parts: list[Known], of_data: bool) -> Known:
        conditions = [p.condition for p in parts if p.condition is not None]
        if term.op == "cmp":
            left, right = (p.form for p in parts)
            is_integer = all(p.is_exact for p in parts)
            condition = comparison(term.data, left, right, is_integer=is_integer)
        elif term.op in ("all", "any") and len(conditions) == len(parts):
            condition = joined("and" if term.op == "all" else "or", conditions)
        elif term.op == "not" and conditions:
            condition = negated(conditions[0])
        elif term.op == "choice" and len(conditions) == 3:
            asked, then, other = conditions
            sides = [joined("and", [asked, then]), joined("and", [negated(asked), other])]
            condition = joined("or", sides)
        else:
            condition = Unknown("!=", ZERO, _opaque(term, parts))
        return Known(opaque("condition", condition), (0, 1), True, of_data, condition)


def _opaque(term: Term, parts: list[Known]) -> Form:
    """An operation as a whole; sums and products that lean to the left are of many operands."""
    word = (term.op, term.dtype, term.data if term.op in _NAMED else None)
    forms: tuple[Node, ...] = tuple(p.form for p in parts)
    if term.op == "power" and term.dtype in INTEGERS:
        return opaque(("mul", term.dtype, None), *forms * term.data)
    if term.op in ("add", "mul"):
        first = next(iter(parts[0].form.terms), ())
        is_same = len(first) == 1 and isinstance(first[0], Opaque) and first[0].word == word
        if is_same and parts[0].form.terms == {first: 1}:
            forms = (*first[0].inside, *forms[1:])
    return opaque(word, *forms)


def limits(dtype: DType) -> Interval:
    """All values of a type of integers; of what are no integers nothing is known."""
    return _intervals.of_dtype(dtype) if dtype in INTEGERS else (0, 1)


def absolute(form: Form) -> Form:
    """The absolute value."""
    return extreme("max", (form, form.scaled(-1)))


# {{{ exact arithmetic

Exact = tuple[Form, Interval]


def _cast(term: Term, parts: list[Known]) -> Exact:
    return parts[0].form, parts[0].range


def _neg(term: Term, parts: list[Known]) -> Exact:
    return parts[0].form.scaled(-1), _intervals.negate(parts[0].range)


def _add(term: Term, parts: list[Known]) -> Exact:
    one, two = parts
    return one.form.plus(two.form), _intervals.add(one.range, two.range)


def _mul(term: Term, parts: list[Known]) -> Exact:
    one, two = parts
    return one.form.times(two.form), _intervals.multiply(one.range, two.range)


def _power(term: Term, parts: list[Known]) -> Exact:
    form = reduce(Form.times, [parts[0].form] * term.data)
    return form, _intervals.power(parts[0].range, (term.data, term.data))


def _quotient(term: Term, parts: list[Known]) -> Exact | None:
    by = parts[1].form.constant
    return _rounded(parts[0], by) if by else None


def _remainder(term: Term, parts: list[Known]) -> Exact | None:
    by = parts[1].form.constant
    return _left_over(parts[0], by) if by else None


def _shift_right(term: Term, parts: list[Known]) -> Exact | None:
    by = parts[1].form.constant
    return _rounded(parts[0], 1 << by) if by is not None and 0 <= by < _MOST_BITS else None


def _shift_left(term: Term, parts: list[Known]) -> Exact | None:
    by = parts[1].form.constant
    if by is None or not 0 <= by < _MOST_BITS:
        return None
    return parts[0].form.scaled(1 << by), _intervals.shift_left(parts[0].range, (by, by))


def _masked(term: Term, parts: list[Known]) -> Exact | None:
    mask = parts[1].form.constant
    if mask is None or mask <= 0 or mask & (mask + 1):
        return None
    return _left_over(parts[0], mask + 1)


def _rounded(part: Known, by: int) -> Exact:
    bounds = _intervals.floor_divide(part.range, (by, by))
    return (floor(part.form, by) if by > 0 else floor(part.form.scaled(-1), -by)), bounds


def _left_over(part: Known, by: int) -> Exact:
    quotient, _ = _rounded(part, by)
    return part.form.minus(quotient.scaled(by)), _intervals.floor_remainder((by, by))


def _extremum(term: Term, parts: list[Known]) -> Exact:
    combined = _intervals.least if term.op == "min" else _intervals.greatest
    return extreme(term.op, [p.form for p in parts]), combined(*(p.range for p in parts))


def _choice(term: Term, parts: list[Known]) -> Exact | None:
    asked, then, other = parts
    if asked.condition is None:
        return None
    form = choice(asked.condition, then.form, other.form)
    return form, _intervals.hull(then.range, other.range)


def _call(term: Term, parts: list[Known]) -> Exact | None:
    form = parts[0].form
    if term.data == "abs":
        return absolute(form), _intervals.absolute(parts[0].range)
    if term.data == "sign":
        return extreme("max", (constant(-1), extreme("min", (constant(1), form)))), (-1, 1)
    return None


_EXACT: dict[str, Callable[[Term, list[Known]], Exact | None]] = {
    "cast": _cast,
    "neg": _neg,
    "add": _add,
    "mul": _mul,
    "power": _power,
    "fdiv": _quotient,
    "mod": _remainder,
    "shr": _shift_right,
    "shl": _shift_left,
    "and": _masked,
    "min": _extremum,
    "max": _extremum,
    "choice": _choice,
    "call": _call,
}
_LEAVES = frozenset(("const", "name", "read"))
_NAMED = frozenset(("call", "part", "power"))

# }}}
