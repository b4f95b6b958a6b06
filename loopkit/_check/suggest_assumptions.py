"""Repairs by assumptions: of sizes for which nothing is wrong, of data that settle what is open."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.suggest_calls import call
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._expression import divisions_in, to_text
from loopkit._guarded import conjuncts
from loopkit._history import Step

_ROUNDS = 3
"""As often are sizes left out for which something else is wrong."""
_ASSERTIONS = 4
"""As many assertions together at most."""


def by_sizes(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The complement of the sizes for which there is a violation, if it is simple."""
    kernel = refusal.kernel
    if refusal.is_open or refusal.step.transform == "fix_parameters":
        return
    known = left = kernel.assumptions.set
    near = refusal.statements or kernel.statements
    now: Refusal = refusal
    for _ in range(_ROUNDS):
        if not now.violations:
            return
        for violation in now.violations:
            left = left - _sets.project_onto(violation.where, kernel.sizes)
        left = left.coalesce()
        said = _simple(left, known)
        if said is None or all((kernel.statement_domain(s) & left).is_empty() for s in near):
            return
        steps = (call("assume", said), refusal.step)
        found = trials.found(kernel, steps)
        if not isinstance(found, Refusal):
            if trials.is_emitted(kernel, found):
                is_special = _is_bounded(left, known)
                yield Suggestion(f"for {said}", steps, is_special=is_special, is_tried=True)
            return
        now = found


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
    parts = conjuncts(condition)
    if len(parts) > 2 or not all(isinstance(p, prim.Comparison) for p in parts):
        return None
    if divisions_in(condition):
        return None
    return " and ".join(to_text(part).replace("==", "=") for part in parts)


def by_assertions(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """What would have to hold of index arrays, where one assertion alone is not enough.

    One that is enough is named in the message already.
    """
    said: list[Step] = []
    now = refusal
    while now.is_open and len(said) < _ASSERTIONS:
        settling = next((a for v in now.violations for a in v.settling), None)
        if settling is None:
            return
        said.append(settling.step)
        found = trials.found(refusal.kernel, [*said, refusal.step])
        if not isinstance(found, Refusal):
            if len(said) > 1:
                yield Suggestion("if the data allows it", (*said, refusal.step), is_tried=True)
            return
        if found.step != refusal.step:
            return
        now = found
