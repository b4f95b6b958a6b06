"""Decisions by z3: each question is a text in a fresh context, so that answers are independent.

z3 is imported at the first question that isl leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopkit._algebra.terms import Term, is_constant, subterms
from loopkit._decide.by_isl import BITWISE, ForeignError
from loopkit._decide.smt import question_text

_WHOLE_ATTEMPTS = (
    (0, 200_000, "plain"),
    (0, 200_000, "lemmas"),
    (0, 400_000, "bounds"),
    (1, 400_000, "lemmas"),
    (1, 400_000, "plain"),
    (2, 1_000_000, "lemmas"),
    (3, 1_000_000, "bounds"),
)
"""Seeds, resources, and what is stated besides the question.

Products of names are a matter of luck, so that several ways are tried, always the same ones:
numbers that bound names hinder some proofs, and help others.
"""

_BITS_ATTEMPT = (0, 2_000_000, "bounds")
"""With bit-vectors luck does not help: what takes longer is open with five times as much, too."""

_MOST_FACTORS = 8
"""Of products with more factors z3 may think for minutes, whatever its resources."""


def refuting_points(claim: Term, context: Sequence[Term]) -> Iterator[dict[str, int] | None]:
    """Points at which a claim may not hold, to be tried; None at last where it surely holds.

    Raises :class:`ForeignError` where no attempt gave an answer.
    """
    import z3

    if any(len(t.args) > _MOST_FACTORS for t in subterms(claim, *context) if t.op == "product"):
        raise ForeignError(f"products of more than {_MOST_FACTORS} factors")
    why: dict[str, None] = {}
    for bits, seed, resources, how in _attempts(claim, context):
        try:
            text, names = question_text(
                claim, context, bits=bits, bounds=how == "bounds", lemmas=how == "lemmas"
            )
        except ForeignError as error:
            why[str(error)] = None
            continue
        own = z3.Context()
        solver = z3.SolverFor("QF_BV", ctx=own) if bits else z3.Solver(ctx=own)
        solver.set("rlimit", resources)
        solver.set("random_seed", seed)
        solver.add(z3.parse_smt2_string(text, ctx=own))
        answer = solver.check()
        if answer == z3.unsat:
            yield None
            return
        if answer == z3.sat:
            model = solver.model()
            values = {d.name(): model[d] for d in model.decls()}
            yield {
                name: (values[word].as_signed_long() if bits else values[word].as_long())
                if word in values
                else 0
                for name, word in names.items()
            }
        why[solver.reason_unknown() if answer == z3.unknown else "a point beyond bounds"] = None
    raise ForeignError("; ".join(why))


def _attempts(claim: Term, context: Sequence[Term]) -> Iterator[tuple[bool, int, int, str]]:
    """What is tried: whether with bit-vectors, the seed, resources, and what is stated besides.

    Bit-vectors come first where there are operations on bits, or many quotients by powers of two,
    and are no help with quotients by names.
    """
    every = [*subterms(claim, *context)]
    divisors = [t.args[1] for t in every if t.op in ("fdiv", "mod")]
    are_powers = all(is_constant(t) and t.data & (t.data - 1) == 0 for t in divisors)
    has_bits = any(t.op in BITWISE for t in every) or (
        len(divisors) > 3 and are_powers and not any(t.op == "product" for t in every)
    )
    attempts = [(False, *attempt) for attempt in _WHOLE_ATTEMPTS]
    if has_bits or all(map(is_constant, divisors)):
        attempts.insert(0 if has_bits else 1, (True, *_BITS_ATTEMPT))
    yield from attempts
