"""Typed computations as terms of the algebra.

An integer operation is exact if the ranges of its operands show that the result fits its type, and
wraps around otherwise. Operations on floating-point numbers are uninterpreted: two are equal if
they are the same operation, in the same type, on equal operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from loopkit import _intervals
from loopkit._algebra.make import make_term
from loopkit._algebra.terms import ONE, SORTS, ZERO, constant, is_constant, number, truth
from loopkit._intervals import Interval
from loopkit._promotion import BOOL, INT64, INTEGERS, DType
from loopkit.codegen.proof.form_ranges import Ranges
from loopkit.codegen.proof.forms import Form, choice, is_data, names_of, opaque, variable
from loopkit.codegen.proof.proof_conditions import Condition, comparison, joined, negated
from loopkit.codegen.proof.typed_computations import Read, Term

RangeOf = Callable[[str], Interval]
"""Bounds of an iname, a size or a hardware index."""


class TypedForms(Ranges):
    """Makes forms of terms.

    ``read`` gives the form of what a term reads from memory, ``range_of_named`` the bounds
    of a variable that has no place in memory.
    """

    def __init__(self, read: Callable[[Read], Form], range_of_named: RangeOf) -> None:
        self.read = read
        self.range_of_named = range_of_named
        self.types: dict[str, DType] = {}
        self.data_names: set[str] = set()

    def range_of_name(self, name: str) -> Interval:
        """Bounds of a name, which its type has."""
        known = self.range_of_named(name)
        return _intervals.intersection(known, limits(self.types[name]))

    def form(self, term: Term) -> Form:
        """A term's value; that of a condition is 1 or 0."""
        found = self.value(term)
        return _whole(found) if found.sort == "B" else found

    def condition(self, term: Term) -> Condition:
        """When a truth value holds."""
        return self.value(term)

    def value(self, term: Term) -> Form | Condition:
        """A term's value, in its sort."""
        done: dict[int, Form | Condition] = {}
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

    def _made(self, term: Term, parts: list[Form]) -> Form | Condition:
        if not term.args:
            return self._leaf(term)
        if term.op == "choice" and parts[1].sort == parts[2].sort:
            return choice(*parts)
        if term.dtype == BOOL:
            return self._truth(term, parts)
        if term.dtype in INTEGERS and all(p.sort in ("Z", "B") for p in parts):
            exact = self._exact(term, [_whole(p) if p.sort == "B" else p for p in parts])
            if exact is not None and self.fits(term, exact):
                return exact
            if exact is not None:
                return make_term("wrap", exact, data=_name_of(term.dtype))
        return _opaque(term, parts)

    def fits(self, term: Term, form: Form) -> bool:
        """Whether a result that is exact without end is one in its type."""
        # What is made of inames and sizes alone is computed in 64 bits, which hold it.
        is_index = term.dtype == INT64 and not self.is_data(form) and term.op != "cast"
        return is_index or _intervals.contains(limits(term.dtype), self.range_of(form))

    def is_data(self, form: Form) -> bool:
        """Whether what lies in memory enters."""
        return is_data(form) or not names_of(form).isdisjoint(self.data_names)

    def _leaf(self, term: Term) -> Form | Condition:
        if term.op == "const":
            if term.dtype == BOOL:
                return truth(term.data)
            return number(term.data) if term.dtype in INTEGERS else constant(term.data, _sort(term))
        form = self.read(term.data) if term.op == "read" else variable(term.data)
        if term.dtype == BOOL:
            return comparison("!=", form, ZERO)
        if term.dtype not in INTEGERS:
            return opaque(("value", _name_of(term.dtype)), form, sort=_sort(term))
        if form.op == "name":
            self.types[form.data[0]] = term.dtype
            self.data_names.update(names_of(form) if term.op == "read" else ())
        return form

    def _truth(self, term: Term, parts: list[Form | Condition]) -> Condition:
        if term.op == "cmp":
            return comparison(term.data, *(_whole(p) if p.sort == "B" else p for p in parts))
        if term.op in ("all", "any"):
            return joined("and" if term.op == "all" else "or", parts)
        if term.op == "not":
            return negated(*parts)
        return opaque((term.op, *_named(term), _name_of(term.dtype)), *parts, sort="B")

    def _exact(self, term: Term, parts: list[Form]) -> Form | None:
        """An operation on integers without end; None where that is not looked into."""
        op = term.data if term.op == "call" else term.op
        if op == "cast":
            return parts[0]
        if op == "power":
            return make_term("mul", *parts * term.data)
        if op in _BITS:
            return self.of_bits(_BITS[op], *parts)
        is_known = op in _EXACT or (op in ("shl", "shr") and is_constant(parts[1]))
        return make_term(op, *parts) if is_known else None


def _whole(condition: Condition) -> Form:
    return choice(condition, ONE, ZERO)


def _opaque(term: Term, parts: list[Form]) -> Form:
    """An operation as a whole; sums and products that lean to the left are of many operands."""
    word = (term.op, *_named(term), _name_of(term.dtype))
    first, *rest = parts
    if term.op in ("add", "mul") and first.op == "call" and first.data == word:
        parts = [*first.args, *rest]
    return opaque(word, *parts, sort=_sort(term))


@lru_cache
def _name_of(dtype: DType) -> str:
    """The name of a type, which NumPy puts together each time."""
    return str(dtype.name)


def _named(term: Term) -> tuple[object, ...]:
    """The further parameters of an operation; for functions also the types of operands."""
    if term.op == "call":
        return term.data, *(_name_of(part.dtype) for part in term.args)
    return (term.data,) if term.op in ("part", "power") else ()


def _sort(term: Term) -> str:
    """The sort of a term's value; records have that of numbers of which nothing is known."""
    return _SORTS.get(term.dtype, "Z")


@lru_cache
def limits(dtype: DType) -> Interval:
    """All values of a type of integers; of what are no integers nothing is known."""
    return _intervals.of_dtype(dtype) if dtype in INTEGERS else (0, 1)


_SORTS: Final = {dtype: sort for sort, dtype in SORTS.items()}
_BITS: Final = {"and": "&", "or": "|", "xor": "^"}
_EXACT: Final = frozenset(("neg", "add", "mul", "fdiv", "mod", "inv", "min", "max", "abs", "sign"))
