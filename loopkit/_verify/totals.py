"""The terms of a sum: each term with the set of points at which it is added.

Summation order is free, the initial value is part of the sum, and nested sums are flattened. A
value is decomposed into *parts*: a form, which is a term with slots in place of its subscripts,
and the set of the slots' values, for each cell. For integers, products are expanded and
coefficients are added modulo a power of two; for floating-point numbers equal terms are counted.
Nothing else is reassociated: a sum without a reduction among its operands is a single term,
rounded as written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.make import low_bits, substitute_names
from loopkit._algebra.polynomials import polynomial
from loopkit._algebra.reading import expression_of, term_of
from loopkit._algebra.terms import Term, UnreadableError, is_constant, name, names_in
from loopkit._hidden import hidden
from loopkit._poly.pairs import Undecided, equal
from loopkit._poly.program_order import all_equal, before

_PARTS = 400
"""So many parts may a value have."""

_FORGETFUL = frozenset(("max", "min", "all", "any", "bit_and", "bit_or"))
"""Operations that do not count how often a value occurs."""

_SLOT = "a subscript"

Forms = tuple[Hashable, ...]
Totals = dict[Forms, dict[int, isl.Set]]
"""For each product of forms its coefficients, with where they stand and what the slots are."""


class Points:
    """The points of a reduction: a set over ``bound`` names, ``parameters`` and sizes."""

    def __init__(self, where: isl.Set, bound: tuple[str, ...], parameters: tuple[str, ...]) -> None:
        self.where, self.bound, self.parameters = where, bound, parameters

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and (self.bound, self.parameters) == (other.bound, other.parameters)
            and bool(self.where.is_equal(other.where))
        )

    def __hash__(self) -> int:
        return hash((self.bound, self.parameters))

    def __repr__(self) -> str:
        return f"{self.bound} {self.parameters} {_sets.canonical_text(self.where)}"


@dataclass(frozen=True)
class _Part:
    """A number times factors, at each of some points over cells, sizes and ``bound`` names."""

    number: int
    factors: tuple[Term, ...]
    where: isl.Set
    bound: tuple[str, ...] = ()


def lengths(where: isl.Set, text: str) -> list[tuple[isl.Set, Term]] | None:
    """How many values a name has, by pieces of the others; None where it leaves some out."""
    try:
        low, high = (end(where, text) for end in (_sets.minimum, _sets.maximum))
    except _sets.UnboundedError:
        return None
    rest, own = _sets.project_out(where, [text]), _sets.pw_affine(prim.Variable(text))
    if not where.is_equal(rest & low.le_set(own) & high.ge_set(own)):
        return None
    pieces = high.sub(low).get_pieces()
    return [(rest & w, term_of(prim.Sum((1, _sets.from_affine(a))))) for w, a in pieces]


def is_total(term: Term, operation: str) -> bool:
    """Whether a value is a reduction's result, or is added to one."""
    if term.op == "reduce":
        return bool(term.data[0] == operation)
    return operation == "sum" and term.op == "add" and any(is_total(a, "sum") for a in term.args)


def totals(term: Term, operation: str, where: isl.Set, bits: int | None = None) -> Totals:
    """The parts of a value, of integers modulo a power of two if ``bits`` are given.

    Raises :class:`~loopkit._poly.pairs.Undecided` if sets cannot represent the slots.
    """
    collector = _Collector(operation, bits)
    is_whole = operation == "sum" and term.sort == "Z"
    taken_apart = collector.whole if is_whole else collector.others
    try:
        for part in taken_apart(term, _Part(1, (), where)):
            for one in collector.counted(part) if is_whole else [part]:
                collector.keep(one)
    except (UnreadableError, _sets.NotAffineError, _sets.UnboundedError):
        raise Undecided("a term has subscripts that are beyond sets") from None
    return {
        forms: left
        for forms, numbers in collector.found.items()
        if (left := {n: s for n, s in numbers.items() if n and not s.is_empty()})
    }


class _Collector:
    def __init__(self, operation: str, bits: int | None) -> None:
        self.operation, self.bits = operation, bits
        self.found: Totals = {}
        self.names = (hidden("point", at) for at in count())
        self.left = _PARTS

    def whole(self, term: Term, part: _Part) -> Iterator[_Part]:
        """The parts of a whole number times another part."""
        value = term if self.bits is None else low_bits(term, self.bits)
        for monomial, coefficient in polynomial(value).items():
            parts = [replace(part, number=self.reduced(part.number * coefficient))]
            for atom in monomial:
                parts = [one for known in parts for one in self.times(atom, known)]
            yield from (one for one in parts if one.number)

    def times(self, atom: Term, part: _Part) -> Iterator[_Part]:
        self.left -= 1
        if self.left < 0:
            raise Undecided("a value has too many terms")
        bits = int(atom.data.lstrip("uint")) if atom.op == "wrap" else 0
        if atom.op == "wrap" and self.bits is not None and bits >= self.bits:
            yield from self.whole(atom.args[0], part)
        elif atom.op == "reduce" and atom.data[0] == "sum":
            start, body, inside = self.inside(atom, part)
            yield from self.whole(start, part)
            yield from self.whole(body, inside)
        else:
            yield replace(part, factors=(*part.factors, atom))

    def others(self, term: Term, part: _Part) -> Iterator[_Part]:
        """The parts of another value, at the points of a part."""
        if not is_total(term, self.operation):
            yield replace(part, factors=(term,))
        elif term.op == "add":
            for operand in term.args:
                yield from self.others(operand, part)
        else:
            start, body, inside = self.inside(term, part)
            yield from self.others(start, part)
            yield from self.others(body, inside)

    def inside(self, term: Term, part: _Part) -> tuple[Term, Term, _Part]:
        """What a reduction starts from, what it adds, and the part at each of its points."""
        start, body, *values = term.args
        points: Points = term.data[1]
        fresh = {text: next(self.names) for text in points.bound}
        where = _sets.rename(points.where, fresh)
        for text, value in zip(points.parameters, values, strict=True):
            where = where & equal(prim.Variable(text), expression_of(value))
        where = part.where & _sets.project_out(where, points.parameters)
        body = substitute_names(body, {text: name(now) for text, now in fresh.items()})
        inside = replace(part, where=where, bound=(*part.bound, *fresh.values()))
        return start, body, inside

    def reduced(self, number: int) -> int:
        """A coefficient in as many bits as count."""
        return number if self.bits is None else number % (1 << self.bits)

    def counted(self, part: _Part) -> Iterator[_Part]:
        """A part times the number of values of a name that occurs in none of its factors."""
        unused = [n for n in part.bound if n not in names_in(*part.factors)]
        if part.where.is_empty() or not unused:
            yield part
            return
        first, *_ = unused
        counts = lengths(part.where, first)
        bound = tuple(n for n in part.bound if n != first)
        for where, length in counts or ():
            for one in self.whole(length, replace(part, where=where, bound=bound)):
                yield from self.counted(one)
        if counts is None:
            yield part

    def keep(self, part: _Part) -> None:
        """Add a part to what is found."""
        pairs = []
        for factor in part.factors:
            slots: list[Term] = []
            pairs.append((_form(factor, slots), slots))
        pairs.sort(key=lambda pair: repr(pair[0]))
        where, places = part.where, list[list[str]]()
        for _, slots in pairs:
            first = sum(map(len, places))
            places.append([hidden("slot", first + at) for at in range(len(slots))])
            for text, slot in zip(places[-1], slots, strict=True):
                where = where & equal(prim.Variable(text), expression_of(slot))
        forms = tuple(form for form, _ in pairs)
        where = self.without(forms, part.bound, where)
        alike = [n for n in range(len(forms) - 1) if forms[n] == forms[n + 1]]
        for one in _in_one_order(where, [(places[n], places[n + 1]) for n in alike]):
            self.add(forms, part.number, one)

    def is_zero(self, forms: Forms) -> bool:
        """Whether a sum starts from zero: where it does twice, it is the same sum."""
        first = forms[0] if len(forms) == 1 else None
        return self.operation == "sum" and isinstance(first, Term) and first.data == 0

    def without(self, forms: Forms, bound: tuple[str, ...], where: isl.Set) -> isl.Set:
        """A set without the names of a part's points, where slots say which point it is."""
        if self.operation in _FORGETFUL or self.is_zero(forms):
            return _sets.project_out(where, bound)
        moved = where
        for text in set(bound).intersection(_sets.names_of(where)):
            position = moved.find_dim_by_name(isl.dim_type.param, text)
            last = moved.dim(isl.dim_type.set)
            moved = moved.move_dims(isl.dim_type.set, last, isl.dim_type.param, position, 1)
        if moved.is_singleton():
            return moved.params()
        kept = {text: hidden("kept", at) for at, text in enumerate(bound)}
        return _sets.rename(where, kept)

    def add(self, forms: Forms, number: int, where: isl.Set) -> None:
        """Add a coefficient where a term stands, to what there is."""
        known = self.found.get(forms, {})
        if self.operation in _FORGETFUL or self.is_zero(forms):
            self.found[forms] = {1: reduce(isl.Set.union, known.values(), where)}
            return
        parts = [(before, cells - where) for before, cells in known.items()]
        parts += [(before + number, cells & where) for before, cells in known.items()]
        parts.append((number, reduce(isl.Set.subtract, known.values(), where)))
        now: dict[int, isl.Set] = {}
        for value, cells in parts:
            value = self.reduced(value)
            now[value] = now[value] | cells if value in now else cells
        self.found[forms] = now


def _in_one_order(where: isl.Set, pairs: list[tuple[list[str], list[str]]]) -> Iterator[isl.Set]:
    """A set with factors that are alike in one order, by what their slots are."""
    steps = {
        (*one, *two): [(prim.Variable(a), prim.Variable(b)) for a, b in zip(one, two, strict=True)]
        for one, two in pairs
    }
    apart = {names: s for names, s in steps.items() if not where.is_subset(all_equal(s))}
    if not apart:
        yield where
        return
    if len(apart) > 1:
        raise Undecided("factors may be in many orders")
    ((names, between),) = apart.items()
    half = len(names) // 2
    swapped = _sets.rename(where, dict(zip(names, names[half:] + names[:half], strict=True)))
    ahead = before(between)
    yield reduce(isl.Set.union, [*ahead, all_equal(between)]) & where
    yield reduce(isl.Set.union, ahead) & swapped


def _form(term: Term, slots: list[Term]) -> Hashable:
    """A term with slots in the place of its subscripts, and of other whole numbers of names."""
    if is_constant(term):
        return term
    if term.sort == "Z" and _is_of_sets(term):
        slots.append(term)
        return _SLOT
    if term.op == "read":
        return (term.op, term.data, *(_subscript(a, slots) for a in term.args))
    if term.op == "reduce":
        raise Undecided("a term is a reduction's result")
    return (term.op, term.sort, term.data, *(_form(a, slots) for a in term.args))


def _subscript(term: Term, slots: list[Term]) -> Hashable:
    if _is_of_sets(term):
        slots.append(term)
        return _SLOT
    return _form(term, slots)


def _is_of_sets(term: Term) -> bool:
    try:
        return _sets.is_pw_affine(expression_of(term))
    except UnreadableError:
        return False
