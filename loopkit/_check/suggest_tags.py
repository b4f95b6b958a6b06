"""Repairs of steps that put iterations side by side: fewer tags, other ones, other loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.suggest_calls import Slot, call, quoted, retagged, tag_slots
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._target import CUDA


def by_tags(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same step with as few tags as possible left out."""
    slots = tag_slots(refusal.step)
    yield from _unrolled(refusal, trials, slots)
    if len(slots) > 6:
        return
    for count in range(1, len(slots) + 1):
        is_found = False
        for dropped in combinations(slots, count):
            found = _without_tags(refusal, trials, dropped, is_weak=count == len(slots))
            if found is not None:
                is_found = True
                yield found
        if is_found:
            return


def _unrolled(refusal: Refusal, trials: Trials, slots: list[Slot]) -> Iterator[Suggestion]:
    """Copies of the loop's body one after the other, not statement by statement."""
    chosen = [s for s in slots if s[2].startswith("ilp")]
    step = retagged(refusal.step, dict.fromkeys(chosen, "unr")) if chosen else None
    if step is not None and trials.after(refusal.kernel, [step]) is not None:
        yield Suggestion(
            f"with {quoted(s[1] for s in chosen)} unrolled, one after the other", (step,)
        )


def _without_tags(
    refusal: Refusal, trials: Trials, dropped: tuple[Slot, ...], *, is_weak: bool
) -> Suggestion | None:
    which = quoted(dict.fromkeys(slot[1] for slot in dropped))
    if dropped[0][0] == "default_tag":
        which = dropped[0][1]
    what = f"with {which} sequential"
    step = retagged(refusal.step, dict.fromkeys(dropped))
    if step is None:
        if not refusal.violations:
            return None  # a transform that does not apply says so itself
        tags = "tags" if len(dropped) > 1 else "tag"
        return Suggestion(f"{what} (leave the {tags} out)", is_weak=True)
    if trials.after(refusal.kernel, [step]) is None:
        return None
    return Suggestion(what, (step,), is_weak)


def by_threads(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Threads of one block, which barriers order, in the place of blocks."""
    step, kernel = refusal.step, refusal.kernel
    slots = [s for s in tag_slots(step) if s[0] == "iname_to_tag"]
    blocks = [s for s in slots if s[2].startswith("g.")]
    if not 1 <= len(blocks) <= 4 or not any(v.how == "blocks" for v in refusal.violations):
        return
    taken = {s[2] for s in slots} | {str(tag) for _, tag in kernel.tags}
    what = "on threads of one block, which can wait for each other"
    axes = {s[2]: "l." + s[2].removeprefix("g.") for s in blocks}
    if taken & set(axes.values()):
        return
    threads = 1
    for iname in {s[2]: s[1] for s in blocks}.values():
        threads *= _longest(kernel, iname) or CUDA.block_threads + 1
    if threads <= CUDA.block_threads:
        other = retagged(step, {s: axes[s[2]] for s in blocks})
        if other is not None and trials.after(kernel, [other]) is not None:
            yield Suggestion(what, (other,))
    elif len(blocks) == len(slots) and len(axes) == 1:
        tag = next(iter(axes.values()))
        splits = tuple(call("split_iname", s[1], CUDA.warp, inner_tag=tag) for s in blocks)
        if trials.after(kernel, splits) is not None:
            yield Suggestion(what, splits)


def _longest(kernel: Kernel, iname: str) -> int | None:
    """The largest number of values that an iname has."""
    if iname not in kernel.home_domain:
        return None
    domain = kernel.domain_around([iname]) & kernel.assumptions.set
    name = prim.Variable(iname)
    low, high = _sets.minimum_value(domain, name), _sets.maximum_value(domain, name)
    return None if low is None or high is None else high - low + 1


def by_other_loops(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same tags on other loops around the same statements."""
    step, kernel = refusal.step, refusal.kernel
    slots = tag_slots(step)
    mine = {s[1] for s in slots}
    if step.transform == "split_iname":
        mine = {str(dict(step.arguments)["split_iname"])}
    elif step.transform != "tag_inames" or len(slots) != 1:
        return
    for iname in refusal.inames(loops=True):
        if iname in mine or iname in kernel.iname_tags:
            continue
        other = _moved(step, slots[0] if slots else None, iname)
        if other is not None and slots[0][2][0] == "l" and step.transform == "tag_inames":
            longest = _longest(kernel, iname)
            if longest is None or longest > CUDA.block_threads:
                other = call("split_iname", iname, CUDA.warp, inner_tag=slots[0][2])
        if other is not None and trials.after(kernel, [other]) is not None:
            yield Suggestion(f"along '{iname}' instead", (other,))


def _moved(step: Step, slot: Slot | None, iname: str) -> Step | None:
    if slot is None:
        return None
    if step.transform == "tag_inames":
        return call("tag_inames", f"{iname}:{slot[2]}")
    given = dict(step.arguments)
    if "within" in given or "outer_iname" in given or "inner_iname" in given:
        return None
    given["split_iname"] = iname
    return Step(step.transform, tuple(given.items()))
