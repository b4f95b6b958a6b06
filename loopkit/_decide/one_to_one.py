"""Whether some numbers determine names (injectivity), with :func:`~loopkit._decide.decide`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import gcd

from loopkit._algebra.conditions import are_equal, conjunction, is_at_most, is_below
from loopkit._algebra.make import make_term, substitute_names
from loopkit._algebra.polynomials import Monomial, polynomial, sum_of
from loopkit._algebra.ranges import range_of
from loopkit._algebra.terms import (
    Term,
    UnreadableError,
    is_constant,
    name,
    names_in,
    number,
    subterms,
)
from loopkit._decide.by_isl import BITWISE
from loopkit._decide.decide import Decision, Open, Proven, decide
from loopkit._decide.simpler_questions import with_bounds

_OTHER = "'"
"""What is added to a name for its value in a second instance."""

_MANY_QUOTIENTS = 8


def decide_one_to_one(
    cells: Sequence[Term], context: Sequence[Term], inames: Collection[str], asked: Collection[str]
) -> Decision:
    """Decide whether equal cells have equal values of the ``asked`` names.

    ``cells`` and ``context`` are of one instance; ``inames`` differ from instance to instance,
    other names, such as sizes, do not.
    """
    try:
        question = _question(cells, context, inames, asked)
    except UnreadableError as error:
        return Open(str(error))
    return decide(*question)


def _question(
    cells: Sequence[Term], context: Sequence[Term], inames: Collection[str], asked: Collection[str]
) -> tuple[Term, tuple[Term, ...]]:
    """What is claimed of two instances with equal cells, and in which context."""
    peeled = _peeled(cells, context, inames)
    cells = [digit for cell in peeled for digit in _digits(cell, context)]
    own = {text: t for text, t in names_in(*cells, *context).items() if text in inames}
    others = {text: name(text + _OTHER, *t.data[1:]) for text, t in own.items()}
    same = [are_equal(cell, substitute_names(cell, others)) for cell in cells]
    claim = conjunction(*(are_equal(own[text], others[text]) for text in sorted(asked)))
    return claim, (*context, *(substitute_names(c, others) for c in context), *same)


def determined_by_ranges(
    cells: Iterable[Term], inames: Collection[str]
) -> tuple[frozenset[Term], list[Term]]:
    """The numbers that cells determine, as far as ranges of names say, and cells that are left.

    ``16*a + b`` determines both ``a`` and ``b`` where ``b`` has at most 16 values.  The numbers
    are names, quotients of names, and the like.
    """
    known: set[Term] = set()
    left, seen = [*cells], set(cells)
    while True:
        left = [part for cell in left for part in _parts(cell, known, inames)]
        found = [atom for part in left if (atom := _single_atom(part)) is not None]
        known.update(found)
        bits = (t.args for t in known if t.op == "xor")
        operands = ([a for a in args if _is_open(a, known, inames)] for args in bits)
        alone = {a for a, *others in filter(None, operands) if not others} - seen
        if not found and not alone:
            return frozenset(known), left
        left += sorted(alone, key=lambda t: t.key)
        seen |= alone


def _is_open(term: Term, known: Collection[Term], inames: Collection[str]) -> bool:
    """Whether a number may differ between instances in which known ones are the same."""
    if term.op == "name":
        return term.data[0] in inames and term not in known
    return term not in known and any(_is_open(a, known, inames) for a in term.args)


def _parts(cell: Term, known: Collection[Term], inames: Collection[str]) -> Iterator[Term]:
    """The parts of a cell that may differ: each is the same where the whole cell is."""
    every = polynomial(cell).items()
    terms = {m: c for m, c in every if any(_is_open(atom, known, inames) for atom in m)}
    ordered = sorted(terms, key=lambda m: abs(terms[m]))
    for count in range(1, len(ordered)):
        step = gcd(*(terms[m] for m in ordered[count:]))
        below = sum_of({m: terms[m] for m in ordered[:count]})
        low, high = range_of(below)
        if high - low < step:
            yield below
            yield from _parts(sum_of({m: terms[m] // step for m in ordered[count:]}), known, inames)
            return
    if terms:
        yield sum_of(terms)


def _single_atom(cell: Term) -> Term | None:
    """What a cell is a multiple of, if it is one of an atom."""
    monomials = [*polynomial(cell)]
    return monomials[0][0] if len(monomials) == 1 == len(monomials[0]) else None


def _peeled(
    cells: Sequence[Term], context: Sequence[Term], inames: Collection[str]
) -> Iterator[Term]:
    """Cells, where ``p*a + b`` with ``0 <= b < p`` is two, ``a`` and ``b``: these say as much.

    ``p`` is none of the ``inames``, and so the same number in both instances.
    """
    for cell in cells:
        found = next(_splits(cell, context, inames), None)
        if found is None:
            yield cell
        else:
            above, below = found
            yield below
            yield from _peeled([above], context, inames)


def _splits(
    cell: Term, context: Sequence[Term], inames: Collection[str]
) -> Iterator[tuple[Term, Term]]:
    terms = polynomial(cell)
    names = {atom for monomial in terms for atom in monomial if atom.op == "name"}
    factors = (factor for factor in names if factor.data[0] not in inames)
    for factor in sorted(factors, key=lambda t: (-sum(t in m for m in terms), t.key)):
        above = {_without(m, factor): c for m, c in terms.items() if factor in m}
        below = sum_of({m: c for m, c in terms.items() if factor not in m})
        if len(above) == len(terms) or factor.data[0] in names_in(below):
            continue
        fits = conjunction(is_at_most(number(0), below), is_below(below, factor))
        if isinstance(decide(fits, context), Proven):
            yield sum_of(above), below


def _without(monomial: Monomial, factor: Term) -> Monomial:
    at = monomial.index(factor)
    return monomial[:at] + monomial[at + 1 :]


def _digits(cell: Term, context: Sequence[Term]) -> Iterator[Term]:
    """A cell that is made of bits alone, as its bits, which say as much; others as they are."""
    value, *_ = with_bounds(cell, context)
    low, high = range_of(value)
    every = [*subterms(value)]
    divisors = [t.args[1] for t in every if t.op == "fdiv"]
    are_powers = all(is_constant(t) and t.data & (t.data - 1) == 0 for t in divisors)
    is_of_bits = are_powers and not any(t.op in (*BITWISE, "product") for t in every)
    if len(divisors) <= _MANY_QUOTIENTS or not is_of_bits or low < 0 or high >= 1 << 64:
        yield cell
        return
    for bit in range(int(high).bit_length()):
        shifted = make_term("fdiv", value, number(1 << bit))
        yield make_term("mod", shifted, number(2))
