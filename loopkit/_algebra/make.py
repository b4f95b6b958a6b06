"""Construction of terms, each in its normal form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from typing import Any

from loopkit._algebra import conditions
from loopkit._algebra.floats import conditions_in
from loopkit._algebra.floors import floor, quotient
from loopkit._algebra.polynomials import minus, plus, polynomial, scaled, sum_of, times
from loopkit._algebra.ranges import INTEGERS, is_within, range_of
from loopkit._algebra.rules import rules_of
from loopkit._algebra.terms import FALSE, SORTS, Term, constant, is_constant, node, number


def make_term(op: str, *args: Term, data: Any = None, sort: str = "Z") -> Term:
    """The normal form of an operation on normal terms, whose value is of a sort.

    Of whole numbers: ``add sub mul neg fdiv mod inv and or xor shl shr min max abs sign``,
    and ``wrap`` to the type ``data``; of floating-point numbers: ``add mul div neg``, ``cast`` to
    the sort, ``tofloat`` of whole numbers, ``toint`` to the type ``data``, and functions by name;
    of any: ``select``; conditions: ``lt le eq ge0 eq0 if not all any``.
    """
    if op in _CHOICES:
        return _CHOICES[op](*args)
    if op in _OF_SIDES and args[0].op == "select":
        condition, *sides = args[0].args
        now = (make_term(op, side, data=data, sort=sort) for side in sides)
        return conditions.choose(condition, *now)
    if sort in SORTS or any(a.sort in SORTS for a in args):
        ordered = sorted(args, key=lambda t: t.key) if op in ("add", "mul", "eq") else args
        made = node(op, sort, ordered, data)
        is_simple = args and not any(t.sort[0] == "C" for t in (made, *args))
        return _rewritten(made) if is_simple else made
    if op in _MAKERS:
        return _MAKERS[op](*args)
    if op in _ATOMS or sort != "Z":
        return node(op, sort, args, data)
    if op == "wrap":
        return wrapped(args[0], data)
    if op in ("and", "or", "xor"):
        return _of_bits(op, args)
    if op in ("min", "max"):
        return _extreme(op, args)
    if op == "fdiv" and not is_constant(args[1]) and (found := quotient(*args)) is not None:
        whole, rest = found
        return plus(whole, make_term("fdiv", rest, args[1]))
    return _rewritten(node(op, "Z", args))


def _rewritten(term: Term) -> Term:
    """The result of the first rewrite rule that matches a term."""
    first = term.args[0].sort
    is_float = first in SORTS or term.sort in SORTS
    words = _words_of(term.sort, first) if is_float else _WORDS
    for rule in rules_of(term.op, is_float=is_float):
        if (found := rule.rewritten(term, {**words, "T": term.data})) is not None:
            return found
    return term


def wrapped(term: Term, dtype: str) -> Term:
    """The number of a type that has the same low bits as a whole number."""
    bits = int(dtype.lstrip("uint"))
    for now in (term, low_bits(term, bits)):
        if is_within(now, dtype):
            return now
    if is_constant(now):
        low = int(INTEGERS[dtype][0])
        return number((now.data - low) % (1 << bits) + low)
    return node("wrap", "Z", (now,), dtype)


@lru_cache(1 << 14)
def low_bits(term: Term, bits: int) -> Term:
    """A simpler integer with the same low bits: nested wraps are dropped, coefficients reduced."""
    half = 1 << (bits - 1)
    found = sum_of({})
    for monomial, coefficient in polynomial(term).items():
        low = (coefficient + half) % (2 * half) - half
        atoms = (_low_bits_of_atom(atom, bits) for atom in monomial)
        found = plus(found, scaled(reduce(times, atoms, number(1)), low))
    is_small = found.op != "sum" or all(-half <= c < half for c in found.data)
    return found if found is term or is_small else low_bits(found, bits)


def _low_bits_of_atom(atom: Term, bits: int) -> Term:
    if atom.op == "wrap" and int(atom.data.lstrip("uint")) >= bits:
        return low_bits(atom.args[0], bits)
    if atom.op in ("and", "or", "xor"):
        return make_term(atom.op, *(low_bits(a, bits) for a in atom.args))
    if atom.op == "select":
        condition, *sides = atom.args
        return conditions.choose(condition, *(low_bits(a, bits) for a in sides))
    return atom


_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_NEUTRAL, _ABSORBING = {"and": -1, "or": 0, "xor": 0}, {"and": 0, "or": -1}


def _of_bits(op: str, args: Sequence[Term]) -> Term:
    """``&``, ``|`` or ``^`` of many operands: constants are merged, duplicates removed."""
    flat = [part for a in args for part in (a.args if a.op == op else (a,))]
    constant = reduce(_FOLDED[op], (a.data for a in flat if is_constant(a)), _NEUTRAL[op])
    kept: dict[Term, None] = {}
    for part in flat:
        if not is_constant(part):
            if part in kept and op == "xor":
                del kept[part]
            else:
                kept[part] = None
    if not kept or constant == _ABSORBING.get(op):
        return number(constant)
    ordered = sorted(kept, key=lambda t: t.key)
    if op == "xor" and constant == -1:
        return make_term("inv", _of_bits(op, ordered))
    if constant != _NEUTRAL[op]:
        ordered.append(number(constant))
    return ordered[0] if len(ordered) == 1 else _rewritten(node(op, "Z", ordered))


def _extreme(op: str, args: Sequence[Term]) -> Term:
    """``min`` or ``max`` without operands that can never be the result."""
    flat = {part: None for a in args for part in (a.args if a.op == op else (a,))}
    ordered = sorted(flat, key=lambda t: t.key)
    kept = [*ordered]
    for term in reversed(ordered):
        others = (range_of(minus(term, other)) for other in kept if other is not term)
        if any(low >= 0 if op == "min" else high <= 0 for low, high in others):
            kept.remove(term)
    return kept[0] if len(kept) == 1 else node(op, "Z", kept)


_ATOMS = frozenset(("read", "reduce", "call", "pow"))
"""Values of which nothing is known but their range."""

_OF_SIDES = frozenset(("cast", "toint", "tofloat"))
"""Conversions, of which a choice is a choice."""

_CHOICES: Mapping[str, Callable[..., Term]] = {
    "select": conditions.choose,
    "if": conditions.choose,
    "not": conditions.negation,
    "all": conditions.conjunction,
    "any": conditions.disjunction,
}

_MAKERS: Mapping[str, Callable[..., Term]] = {
    "add": plus,
    "sub": minus,
    "mul": lambda *args: reduce(times, args, number(1)),
    "neg": lambda a: scaled(a, -1),
    "lt": conditions.is_below,
    "le": conditions.is_at_most,
    "eq": conditions.are_equal,
    "ge0": conditions.is_nonnegative,
    "eq0": conditions.is_zero,
}

_WORDS: Mapping[str, Callable[..., Any]] = {
    "plus": plus,
    "minus": minus,
    "times": times,
    "scaled": scaled,
    "number": number,
    "floor": floor,
    "low": lambda term: range_of(term)[0],
    **{op: lambda *args, op=op: make_term(op, *args) for op in ("fdiv", "mod", "min", "max")},
}


@cache
def _words_of(sort: str, first: str) -> Mapping[str, Any]:
    """What rules of floating-point numbers call, for a term of a sort whose operand has another."""

    def making(op: str, sort: str) -> Callable[..., Term]:
        return lambda *args: make_term(op, *args, sort=sort)

    operations = ("add", "mul", "div", "neg", "cast", "tofloat", "abs", "copysign", "floor")
    return {
        **conditions_in(sort),
        **{op: making(op, sort) for op in operations},
        **{op: making(op, "B") for op in ("lt", "le")},
        "K": lambda value: constant(value, sort),
        "FALSE": FALSE,
        "S": sort,
        "R": first,
    }


def substitute_names(term: Term, values: Mapping[str, Term]) -> Term:
    """A term with names replaced by terms."""
    return replace_terms(term, lambda t: values.get(t.data[0]) if t.op == "name" else None)


def replace_terms(term: Term, value: Callable[[Term], Term | None]) -> Term:
    """A term in which nodes are replaced where ``value`` is not None."""
    done: dict[Term, Term] = {}

    def replaced(node_: Term) -> Term:
        if node_ not in done:
            found = value(node_)
            done[node_] = _remade(node_, replaced) if found is None else found
        return done[node_]

    return replaced(term)


def _remade(term: Term, replaced: Callable[[Term], Term]) -> Term:
    """An operation on other operands."""
    args = [*map(replaced, term.args)]
    if all(a is b for a, b in zip(args, term.args, strict=True)):
        return term
    if term.op == "sum":
        return plus(*(scaled(a, c) for a, c in zip(args, term.data, strict=True)))
    if term.op == "product":
        return reduce(times, args)
    return make_term(term.op, *args, data=term.data, sort=term.sort)
