"""Repairs of parallel steps: fewer or other tags, or several launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace, ValueArg
from loopkit._check.suggest_calls import (
    Slot,
    call,
    quoted,
    retagged,
    tag_slots,
    with_arguments,
    without,
)
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._collectives import LOOKBACK
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._make.check_initialized import check_initialized
from loopkit._places import decide_address_spaces
from loopkit._target import CUDA
from loopkit._tree import Loop, build, entries_of, statements_in


def by_tags(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same step with as few tags as possible left out."""
    slots = tag_slots(refusal.step)
    chosen = [s for s in slots if s[2].startswith("ilp")]
    unrolled = retagged(refusal.step, dict.fromkeys(chosen, "unr")) if chosen else None
    if unrolled is not None:
        what = f"with {quoted(s[1] for s in chosen)} unrolled, one after the other"
        yield Suggestion(what, (unrolled,))
    if len(slots) > 6:
        return
    for count in range(1, len(slots) + 1):
        fewer = _without_tags(refusal, slots, count)
        is_found = False
        for suggestion in trials.legal(refusal.kernel, fewer):
            is_found = True
            yield suggestion
        if is_found:
            return


def _without_tags(refusal: Refusal, slots: list[Slot], count: int) -> Iterator[Suggestion]:
    """The step without ``count`` of its tags."""
    for dropped in combinations(slots, count):
        which = quoted(dict.fromkeys(slot[1] for slot in dropped))
        if dropped[0][0] == "default_tag":
            which = dropped[0][1]
        what = f"with {which} sequential"
        step = retagged(refusal.step, dict.fromkeys(dropped))
        if step is not None:
            yield Suggestion(what, (step,), is_weak=count == len(slots))
        elif refusal.violations:
            # A transform that does not even apply says so itself.
            tags = "tags" if len(dropped) > 1 else "tag"
            what = f"{what} (leave the {tags} out)"
            yield Suggestion(what, is_weak=True, is_tried=True)


def by_threads(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Threads of one block, which barriers order, in the place of blocks."""
    kernel = refusal.kernel
    slots = [s for s in tag_slots(refusal.step) if s[0] == "iname_to_tag"]
    blocks = [s for s in slots if s[2].startswith("g.")]
    if not 1 <= len(blocks) <= 4 or not refusal.crosses_blocks:
        return
    axes = {s[2]: "l." + s[2].removeprefix("g.") for s in blocks}
    if set(axes.values()) & ({s[2] for s in slots} | {str(tag) for _, tag in kernel.tags}):
        return
    what = "on threads of one block, which can wait for each other"
    threads = 1
    for iname in {s[2]: s[1] for s in blocks}.values():
        threads *= _longest(kernel, iname)
    if threads <= CUDA.block_threads:
        other = retagged(refusal.step, {s: axes[s[2]] for s in blocks})
        if other is not None:
            yield Suggestion(what, (other,))
    elif len(blocks) == len(slots) and len(axes) == 1:
        (tag,) = axes.values()
        splits = (call("split_iname", s[1], CUDA.warp, inner_tag=tag) for s in blocks)
        yield Suggestion(what, tuple(splits))


def by_atomic_sums(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Blocks that add to a sum what each of them has found."""
    step, kernel = refusal.step, refusal.kernel
    if not refusal.crosses_blocks or step.transform not in ("tag_inames", "split_iname"):
        return
    updates = [s for s in kernel.statements if s.kind == "update"]
    updates = [s for s in updates if s.written in refusal.temporaries]
    reduced = {i for s in updates for i in kernel.reduced_inames(s)}
    slots = [s for s in tag_slots(step) if s[2].startswith("g.")]
    blocks = [i for _, i, _ in slots if refusal.given.get("split_iname", i) in reduced]
    if not blocks:
        return
    combine = call("realize_reduction", by="atomic", inames=", ".join(blocks))
    what = "with sums of blocks, added atomically"
    if step.transform == "tag_inames":
        yield Suggestion(what, (combine, step))
    else:
        tags = ", ".join(f"{iname}: {tag}" for _, iname, tag in tag_slots(step))
        plain = without(step, "outer_tag", "inner_tag")
        yield Suggestion(what, (plain, combine, call("tag_inames", tags)))


def by_looking_back(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Running results that blocks make by looking back at those before them."""
    step, kernel = refusal.step, refusal.kernel
    if not refusal.crosses_blocks or step.transform not in ("tag_inames", "split_iname"):
        return
    running = [t for t in kernel.temporaries if t.is_running and t.name in refusal.temporaries]
    if running and not any(t.combined_by == LOOKBACK for t in running):
        only = " or ".join(f"writes:{t.name}" for t in running)
        looking = call("realize_reduction", only, by=LOOKBACK)
        yield Suggestion("with blocks that look back at those before them", (looking, step))


def _longest(kernel: Kernel, iname: str) -> int:
    """The largest number of values of an iname; more than a block has where that is unknown."""
    if iname in kernel.home_domain:
        domain = kernel.domain_around([iname]) & kernel.assumptions.set
        low, high = _sets.value_range(domain, prim.Variable(iname))
        if low is not None and high is not None:
            return high - low + 1
    return CUDA.block_threads + 1


def by_other_loops(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same tags on other loops around the same statements."""
    step, kernel = refusal.step, refusal.kernel
    slots = tag_slots(step)
    is_split = step.transform == "split_iname"
    if not slots or not (is_split or (step.transform == "tag_inames" and len(slots) == 1)):
        return
    if is_split and refusal.given.keys() & {"within", "outer_iname", "inner_iname"}:
        return
    mine, tag = refusal.given["split_iname"] if is_split else slots[0][1], slots[0][2]
    for iname in refusal.inames(loops=True):
        if iname == mine or iname in kernel.iname_tags:
            continue
        if is_split:
            other = with_arguments(step, split_iname=iname)
        elif tag[0] == "l" and _longest(kernel, iname) > CUDA.block_threads:
            other = call("split_iname", iname, CUDA.warp, inner_tag=tag)
        else:
            other = call("tag_inames", f"{iname}:{tag}")
        yield Suggestion(f"along '{iname}' instead", (other,))


MOST = 8
"""Outermost loops of a kernel that is looked at."""
_NUMBERS = {2: "two", 3: "three", 4: "four"}


def by_launches(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A launch for each part of the kernel, or for each iteration of an outer loop.

    Launches run one after the other, and the next one sees all that the last one wrote.
    Where they end is found on the parts, each as a kernel of its own.
    """
    if not refusal.crosses_blocks or refusal.kernel.substitutions:
        return
    kernel, step = refusal.kernel.with_(history=(), lineage=None), refusal.step
    if step.transform in ("add_barrier", "remove_barrier") or not is_one_launch(kernel):
        return
    parts = _parts(kernel, step, trials)
    if len(parts) > 1:
        yield Suggestion(_in_turn(parts), (*_barriers(parts), step))
        return
    one = _one_iteration(kernel, step)
    if one is None:
        return
    body, iname = one
    parts = _parts(body, step, trials)
    if len(parts) == 1:
        last = call("add_barrier", f"id:{body.statements[-1].id}", within_inames=iname)
        yield Suggestion(f"with a launch for each '{iname}'", (last, step))
    elif parts:
        yield Suggestion(_in_turn(parts, f" for each '{iname}'"), (*_barriers(parts), step))


def _in_turn(parts: Sequence[Kernel], per: str = "") -> str:
    return f"in {_NUMBERS.get(len(parts), str(len(parts)))} launches{per}"


def _barriers(parts: Sequence[Kernel]) -> Iterator[Step]:
    """The steps that end a launch behind each part but the last."""
    for part, after in pairwise(parts):
        first = next((s for s in after.statements if s.kind == "user"), after.statements[0])
        yield call("add_barrier", f"id:{part.statements[-1].id}", f"id:{first.id}")


def _parts(kernel: Kernel, step: Step, trials: Trials) -> list[Kernel]:
    """The fewest parts, in order, on each of which the step is legal; none if there are none."""
    parts: list[Kernel] = []
    start, count = 0, len(kernel.tree)
    if count > MOST:
        return []
    while start < count:
        legal = None
        for end in range(start + 1, count + 1):
            tree = kernel.tree[start:end]
            statements = tuple(kernel.statement_by_id[s] for s in statements_in(tree))
            part = replace(kernel, tree=tree, statements=statements)
            mine = _on_part(part, step)
            if mine is not None and not trials.is_legal(part, [mine]):
                break
            legal, after = part, end
        if legal is None:
            return []
        parts.append(legal)
        start = after
    return parts


def _on_part(part: Kernel, step: Step) -> Step | None:
    """The step on a part, without tags of inames that it does not use; None if nothing is left."""
    used = frozenset().union(*(s.inames for s in part.statements))
    if step.transform == "tag_inames":
        gone = [slot for slot in tag_slots(step) if slot[1] not in used]
        return retagged(step, dict.fromkeys(gone)) if gone else step
    return step if _inames_of(part, step) & used else None


def _inames_of(kernel: Kernel, step: Step) -> set[str]:
    """The inames that a step names."""
    words = {slot[1] for slot in tag_slots(step)}
    for _, value in step.arguments:
        words |= {str(n) for n in names_in(value if isinstance(value, Iterable) else ())}
    return words & set(kernel.all_inames)


def _one_iteration(kernel: Kernel, step: Step) -> tuple[Kernel, str] | None:
    """The body of the outermost loop, if all is in one, with its iname as a size."""
    if len(kernel.tree) != 1 or not isinstance(kernel.tree[0], Loop):
        return None
    iname = kernel.tree[0].iname
    if iname in _inames_of(kernel, step) or iname in kernel.iname_tags:
        return None
    spaces = decide_address_spaces(kernel).temporaries
    if any(t.address_space is AddressSpace.GLOBAL for t in spaces):
        return None
    domains = (replace(d, inames=tuple(i for i in d.inames if i != iname)) for d in kernel.domains)
    body = replace(
        kernel,
        domains=tuple(d for d in domains if d.inames),
        statements=tuple(replace(s, inames=s.inames - {iname}) for s in kernel.statements),
        tree=build([(leaf, path[1:]) for leaf, path in entries_of(kernel.tree)]),
        args=(*kernel.args, ValueArg(iname, np.dtype("int32"))),
    )
    check_initialized(body)
    return body, iname
