"""Repairs that keep the step and change one of its arguments."""

from __future__ import annotations

from collections.abc import Iterator

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Strided, strides_of
from loopkit._check.suggest_calls import requires, with_arguments, without
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._check.violation import Violation

_EXTRA = {
    "within": "around all statements",
    "init_expression": "with the values that the array has",
    "store_expression": "with what the buffer holds",
    "precompute_outer_inames": "inside of the loops that it needs",
    "fetch_outer_inames": "inside of the loops that it needs",
    "temporary_address_space": "in memory that its readers share",
    "temporary_scope": "in memory that its readers share",
}


def by_arguments(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same step without something that was asked for in particular, or with more of it."""
    step, kernel = refusal.step, refusal.kernel
    given = dict(step.arguments)
    for name, what in _EXTRA.items():
        if name not in given or given[name] is None:
            continue
        if not requires(step, name):
            other = without(step, name)
            if trials.after(kernel, [other]) is not None:
                yield Suggestion(what, (other,))
        elif name == "within":
            yield from _around_all(refusal, trials)
    if step.transform == "tag_array_axes":
        yield from _strides(refusal, trials)
    if given.get("existing_ok"):
        name = kernel.fresh_name(str(given["new_iname"]))
        other = without(with_arguments(step, new_iname=name), "existing_ok")
        if trials.after(kernel, [other]) is not None:
            yield Suggestion("under a name of its own", (other,))


def _around_all(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A ``within`` that must be given, with all statements that are concerned."""
    if len(refusal.statements) < 2:
        return
    ids = [s.id for s in refusal.statements]
    other = with_arguments(refusal.step, within=" or ".join(f"id:{i}" for i in ids))
    if trials.after(refusal.kernel, [other]) is not None:
        yield Suggestion("around " + " and ".join(f"'{i}'" for i in ids), (other,))


def _strides(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Strides that leave room for the axes that vary faster."""
    change, step = refusal.change, refusal.step
    if change is None or len(refusal.arrays) != 1:
        return
    array = change.kernel.array(refusal.arrays[0])
    shape, tags = array.shape or (), array.dim_tags or ()
    if not all(isinstance(n, int) for n in shape) or not all(isinstance(t, Strided) for t in tags):
        return
    strides = list(strides_of(array))
    if not all(isinstance(s, int) for s in strides):
        return
    needed = 1
    for axis in sorted(range(len(shape)), key=lambda a: (strides[a], -a)):
        strides[axis] = max(strides[axis], needed)
        needed = strides[axis] * shape[axis]
    other = with_arguments(step, dim_tags=", ".join(f"stride:{s}" for s in strides))
    if trials.after(refusal.kernel, [other]) is not None:
        yield Suggestion("with room for each cell", (other,))


def by_numbers(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A tile that is short enough to hold no two iterations that need each other."""
    step = refusal.step
    if step.transform != "split_iname":
        return
    given = dict(step.arguments)
    length, iname = given["inner_length"], given["split_iname"]
    reach = _shortest_distance(refusal, str(iname))
    if reach is None or not 2 <= reach < length:
        return
    for shorter in dict.fromkeys((reach, _power_of_two(reach))):
        other = with_arguments(step, inner_length=shorter)
        if trials.after(refusal.kernel, [other]) is not None:
            yield Suggestion(f"with inner_length {shorter}", (other,))
            return


def _power_of_two(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def _shortest_distance(refusal: Refusal, iname: str) -> int | None:
    """The fewest iterations between two instances of a violation."""
    found: list[int] = []
    for violation in refusal.violations:
        found += _distances(refusal, violation, iname)
    return min(found, default=None)


def _distances(refusal: Refusal, violation: Violation, iname: str) -> Iterator[int]:
    first = violation.source or violation.other
    if first is None:
        return
    one, two = refusal.value(first, iname), refusal.value(violation.sink, iname)
    if one is None or two is None:
        return
    for a, b in ((one, two), (two, one)):
        apart = prim.Sum((b, prim.Product((-1, a))))
        ahead = violation.where & _sets.condition_set(prim.Comparison(a, "<", b))
        if not ahead.is_empty():
            least = _sets.minimum_value(ahead, apart)
            if least is not None:
                yield least
