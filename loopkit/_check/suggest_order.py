"""Repairs of orders of loops: permuted, skewed, or run as wavefronts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations

from loopkit._arguments import names_in
from loopkit._check.suggest_calls import (
    call,
    like,
    quoted,
    renamed,
    tag_slots,
    with_arguments,
)
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._target import CUDA
from loopkit._tree import path_inames

_ORDERS = {"prioritize_loops": "loop_priority"}
_FACTORS = (1, 2, -1, 3, -2)

# {{{ permutations


def by_order(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The named loops in another order that is near to the one asked for."""
    step = refusal.step
    argument = _ORDERS.get(step.transform, "inames" if step.transform == "join_inames" else "")
    if not argument:
        return
    asked = names_in(dict(step.arguments)[argument])
    if not 2 <= len(asked) <= 4:
        return
    now = _nest(refusal.kernel, asked)
    # What is outside of what stays so, where the step did not mean to change it.
    kept = [p for p in combinations(asked, 2) if _inversions(p, now) == 0]
    others = [p for p in permutations(asked) if not any(_inversions(k, p) for k in kept)]
    others = [p for p in others if p != asked and (p != now or argument == "inames")]
    for order in sorted(others, key=lambda p: _inversions(asked, p)):
        other = with_arguments(step, **{argument: like(dict(step.arguments)[argument], order)})
        if trials.after(refusal.kernel, [other]) is not None:
            yield Suggestion(f"in the order {', '.join(order)}", (other,))


def _nest(kernel: Kernel, inames: Sequence[str]) -> tuple[str, ...]:
    """The order in which loops stand now."""
    for path in kernel.paths.values():
        order = tuple(i for i in path_inames(path) if i in inames)
        if len(order) == len(inames):
            return order
    return ()


def _inversions(one: Sequence[str], two: Sequence[str]) -> int:
    place = {name: number for number, name in enumerate(two)}
    return sum(place.get(a, 0) > place.get(b, 0) for a, b in combinations(one, 2))


_MAP = re.compile(r"\s*\{\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]\s*:(.*)\}\s*")


def by_maps(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The new loops of a map in another order, other loops in it, or another skew."""
    step = refusal.step
    text = dict(step.arguments).get("transform_map")
    found = _MAP.fullmatch(text) if isinstance(text, str) else None
    if found is None or not refusal.violations:
        return
    old, new, body = names_in(found[1]), names_in(found[2]), found[3].strip()
    yield from _other_skews(refusal, trials, old, new, body)
    yield from _other_loop(refusal, trials, old, new, body)
    if not 2 <= len(new) <= 3:
        return
    for order in permutations(new):
        step = with_arguments(refusal.step, transform_map=_map(old, order, body))
        if order != new and trials.after(refusal.kernel, [step]) is not None:
            yield Suggestion(f"in the order {', '.join(order)}", (step,))


def _other_skews(
    refusal: Refusal, trials: Trials, old: Sequence[str], new: Sequence[str], body: str
) -> Iterator[Suggestion]:
    """Another combination of two loops in the place of one that is ``w = a*i + b*j``."""
    fresh = [n for n in new if n not in old]
    if len(old) != 2 or len(new) != 2 or len(fresh) != 1 or body.count("=") != 1:
        return
    found = re.fullmatch(rf"{re.escape(fresh[0])}\s*=(.*)", body)
    if found is None or not set(old) <= set(re.findall(r"\w+", found[1])):
        return
    for one, two in ((1, 1), (2, 1), (1, 2), (3, 1), (1, 3)):
        value = f"{_term(one, old[0])} + {_term(two, old[1])}"
        step = with_arguments(refusal.step, transform_map=_map(old, new, f"{fresh[0]} = {value}"))
        if trials.after(refusal.kernel, [step]) is not None:
            yield Suggestion(f"with {fresh[0]} = {value}", (step,))
            return


def _other_loop(
    refusal: Refusal, trials: Trials, old: Sequence[str], new: Sequence[str], body: str
) -> Iterator[Suggestion]:
    """The same done to the other one of two loops."""
    if len(old) != 2 or len(new) != 2:
        return
    swap = {old[0]: old[1], old[1]: old[0]}

    def exchanged(text: str) -> str:
        return re.sub(r"[A-Za-z_]\w*", lambda name: swap.get(name[0], name[0]), text)

    other = _map(old, [exchanged(n) for n in reversed(new)], exchanged(body))
    step = with_arguments(refusal.step, transform_map=other)
    if trials.after(refusal.kernel, [step]) is not None:
        yield Suggestion("with the loops exchanged in the map", (step,))


def _map(old: Sequence[str], new: Sequence[str], body: str) -> str:
    return f"{{ [{', '.join(old)}] -> [{', '.join(new)}]: {body} }}"


def _term(factor: int, name: str) -> str:
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}*{name}")


# }}}

# {{{ skewing


def by_skewing(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """One loop shifted by a multiple of another one first, so that the two may be exchanged."""
    kernel, step = refusal.kernel, refusal.step
    if step.transform not in (*_ORDERS, "join_inames") or not refusal.violations:
        return
    for outer, inner in _pairs(refusal, kernel):
        if not _is_turned(step, outer, inner):
            continue
        name = kernel.fresh_name("w")
        for factor in _FACTORS:
            steps = (_skew(outer, inner, name, factor), *_after_skewing(step, outer, inner, name))
            if trials.after(kernel, steps) is not None:
                yield Suggestion(f"after skewing '{inner}' by '{outer}'", steps)
                return


def _is_turned(step: Step, outer: str, inner: str) -> bool:
    """Whether a step wants the second loop outside of the first."""
    given = dict(step.arguments)
    asked = names_in(given.get("loop_priority", given.get("inames", ())))
    return outer in asked and inner in asked and asked.index(inner) < asked.index(outer)


def _after_skewing(step: Step, outer: str, inner: str, name: str) -> tuple[Step, ...]:
    """What is left of the step once ``inner`` is ``name``, which stands outside of ``outer``."""
    after = renamed(step, lambda word: name if word == inner else word)
    asked = names_in(dict(after.arguments).get("loop_priority", ()))
    return () if asked == (name, outer) else (after,)


def _skew(outer: str, inner: str, name: str, factor: int) -> Step:
    sign = " - " if factor < 0 else " + "
    value = inner + sign + _term(abs(factor), outer)
    return call("map_domain", _map([outer, inner], [name, outer], f"{name} = {value}"))


def _pairs(refusal: Refusal, kernel: Kernel) -> list[tuple[str, str]]:
    """Pairs of loops, one in the other, around the statements of violations."""
    ids = {s.id for s in refusal.statements}
    found: dict[tuple[str, str], None] = {}
    for statement in kernel.statements:
        if statement.id not in ids:
            continue
        for pair in combinations(path_inames(kernel.paths[statement.id]), 2):
            if not any(i in kernel.iname_tags for i in pair):
                found[pair] = None
    return list(found)


# }}}

# {{{ loops of their own


def by_own_loops(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Statements that the step would put side by side, each in a loop of its own first."""
    if refusal.step.transform not in ("untag_inames", *_ORDERS) or refusal.is_race:
        return
    if not 2 <= len(refusal.statements) <= 3:
        return
    for iname in reversed(refusal.inames()):
        for statement in refusal.statements:
            apart = call("duplicate_inames", iname, f"id:{statement.id}")
            steps = (apart, refusal.step)
            if trials.after(refusal.kernel, steps) is not None:
                what = f"if '{statement.id}' has a loop over '{iname}' of its own"
                yield Suggestion(what, steps)


def by_turning(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Two loops exchanged together with their bounds, of which one needs the other."""
    step, kernel = refusal.step, refusal.kernel
    asked = names_in(dict(step.arguments).get("loop_priority", ()))
    if refusal.violations or len(asked) != 2 or _nest(kernel, asked) != asked[::-1]:
        return
    new = (kernel.fresh_name("outer"), kernel.fresh_name("inner"))
    body = f"{new[0]} = {asked[0]} and {new[1]} = {asked[1]}"
    turned = call("map_domain", _map(asked[::-1], new, body))
    if trials.after(kernel, [turned]) is not None:
        yield Suggestion("with bounds that are turned over, too", (turned,))


# }}}

# {{{ wavefronts


def by_wavefronts(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Threads along the diagonals of two loops that each carry values."""
    if not refusal.is_race:
        return
    step, kernel = refusal.step, refusal.kernel
    mine = {slot[1] for slot in tag_slots(step)} | {str(dict(step.arguments).get("split_iname"))}
    paths = [path_inames(kernel.paths[s.id]) for s in refusal.statements]
    near = {pair for path in paths for pair in pairwise(path)}
    for outer, inner in _pairs(refusal, kernel):
        if (outer, inner) not in near or not mine & {outer, inner}:
            continue
        name = kernel.fresh_name("w")
        for one, two in ((1, 1), (2, 1), (1, 2), (3, 1)):
            for kept in (inner, outer):
                value = f"{_term(one, outer)} + {_term(two, inner)}"
                mapped = call("map_domain", _map([outer, inner], [name, kept], f"{name} = {value}"))
                dealt = call("split_iname", kept, _length(step), inner_tag="l.0")
                if trials.after(kernel, [mapped, dealt]) is not None:
                    what = f"as a wavefront over {quoted((outer, inner))}"
                    yield Suggestion(what, (mapped, dealt))
                    return


def _length(step: Step) -> int:
    length = dict(step.arguments).get("inner_length")
    return length if isinstance(length, int) else CUDA.warp


# }}}
