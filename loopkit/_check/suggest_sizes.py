"""Repairs by assumptions: the sizes for which nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.suggest_calls import call
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._expression import to_text
from loopkit._nodes import Expression

_ROUNDS = 3


def by_sizes(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The complement of the sizes for which there is a violation, if it is simple."""
    kernel = refusal.kernel
    if not refusal.violations or refusal.is_open or refusal.step.transform == "fix_parameters":
        return
    known = kernel.assumptions.set
    left = known
    now: Refusal = refusal
    for _ in range(_ROUNDS):
        if not now.violations:
            return
        for violation in now.violations:
            left = left - _sets.project_onto(violation.where, kernel.sizes)
        left = left.coalesce()
        said = _simple(left, known)
        if said is None or not _runs(refusal, left):
            return
        steps = (call("assume", said), refusal.step)
        found = trials.found(kernel, steps)
        if not isinstance(found, Refusal):
            if trials.is_emitted(kernel, found):
                yield Suggestion(f"for {said}", steps, is_special=_is_bounded(left, known))
            return
        now = found


def _runs(refusal: Refusal, sizes: isl.Set) -> bool:
    """Whether any of the statements that violations are about runs for some of these sizes."""
    kernel = refusal.kernel
    near = refusal.statements or kernel.statements
    return any(not (kernel.statement_domain(s) & sizes).is_empty() for s in near)


def _is_bounded(left: isl.Set, known: isl.Set) -> bool:
    """Whether only small values are left of all sizes that conditions are about."""
    names = _sets.involved_names(left.gist(known))
    return all(_sets.maximum_value(left, prim.Variable(n)) is not None for n in names)


def _simple(left: isl.Set, known: isl.Set) -> str | None:
    """Conditions of a set of sizes beyond what is known, as text; None if they are not simple."""
    if left.is_empty():
        return None
    beyond = left.gist(known).compute_divs().coalesce()
    if len(beyond.get_basic_sets()) != 1:
        return None
    condition = _sets.conditions(beyond)
    parts = condition.children if isinstance(condition, prim.LogicalAnd) else (condition,)
    if len(parts) > 2 or not all(isinstance(p, prim.Comparison) for p in parts):
        return None
    texts = [_text(p) for p in parts]
    return " and ".join(texts) if all(texts) else None


def _text(part: Expression) -> str:
    if any(_has_quotient(side) for side in (part.left, part.right)):
        return ""
    return to_text(part).replace("==", "=")


def _has_quotient(expr: Expression) -> bool:
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
        return True
    children = getattr(expr, "children", ())
    return any(_has_quotient(c) for c in children)
