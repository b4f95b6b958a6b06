"""Repairs of orders of loops: permuted, skewed, or run as wavefronts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations

from loopkit._arguments import names_in
from loopkit._check import suggest_calls
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._kernel import Kernel
from loopkit._target import CUDA
from loopkit._tree import path_inames

_FACTORS = (1, 2, -1, 3, -2)


def by_order(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The named loops in another order that is near to the one asked for."""
    argument = {"prioritize_loops": "loop_priority", "join_inames": "inames"}.get(
        refusal.step.transform, ""
    )
    asked = refusal.names(argument)
    if not 2 <= len(asked) <= 4:
        return
    now = _nest(refusal.kernel, asked)
    # What is outside of what stays so, where the step did not mean to change it.
    kept = [p for p in combinations(asked, 2) if _inversions(p, now) == 0]
    others = [p for p in permutations(asked) if not any(_inversions(k, p) for k in kept)]
    others = [p for p in others if p != asked and (p != now or argument == "inames")]
    for order in sorted(others, key=lambda p: _inversions(asked, p)):
        other = suggest_calls.with_arguments(
            refusal.step, **{argument: suggest_calls.like(refusal.given[argument], order)}
        )
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
    if refusal.step.transform == "affine_map_inames":
        yield from _forwards(refusal)
    text = refusal.given.get("transform_map")
    found = _MAP.fullmatch(text) if isinstance(text, str) else None
    if found is None or not refusal.violations:
        return
    old, new, body = names_in(found[1]), names_in(found[2]), found[3].strip()
    for what, other in _other_maps(old, new, body):
        yield Suggestion(what, (suggest_calls.with_arguments(refusal.step, transform_map=other),))


def _forwards(refusal: Refusal) -> Iterator[Suggestion]:
    """A loop that was to run backwards, moved as far without being turned around."""
    (old, *others), equations = refusal.names("old_inames"), refusal.given.get("equations")
    if others or not isinstance(equations, str):
        return
    other = re.sub(rf"-\s*{re.escape(old)}\b", f"+ {old}", equations)
    if other != equations:
        yield Suggestion("forwards", (suggest_calls.with_arguments(refusal.step, equations=other),))


def _other_maps(old: Sequence[str], new: tuple[str, ...], body: str) -> Iterator[tuple[str, str]]:
    fresh = [n for n in new if n not in old]
    if len(old) == len(new) == 2 and len(fresh) == 1:
        # Another combination of the two loops in the place of w = a*i + b*j.
        found = re.fullmatch(rf"{re.escape(fresh[0])}\s*=([^=]*)", body)
        if found is not None and set(old) <= set(re.findall(r"\w+", found[1])):
            for one, two in ((1, 1), (2, 1), (1, 2), (3, 1), (1, 3)):
                value = f"{fresh[0]} = {_term(one, old[0])} + {_term(two, old[1])}"
                yield f"with {value}", _map(old, new, value)
    if len(old) == len(new) == 2:
        # The same done to the other one of the two loops.
        swap = {old[0]: old[1], old[1]: old[0]}
        *turned, other = (suggest_calls.with_names(text, swap) for text in (new[1], new[0], body))
        yield "with the loops exchanged in the map", _map(old, turned, other)
    if 2 <= len(new) <= 3:
        for order in permutations(new):
            if order != new:
                yield f"in the order {', '.join(order)}", _map(old, order, body)


def _map(old: Sequence[str], new: Sequence[str], body: str) -> str:
    return f"{{ [{', '.join(old)}] -> [{', '.join(new)}]: {body} }}"


def _term(factor: int, name: str) -> str:
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}*{name}")


def by_skewing(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """One loop shifted by a multiple of another one first, so that the two may be exchanged."""
    kernel, step = refusal.kernel, refusal.step
    if step.transform not in ("prioritize_loops", "join_inames") or not refusal.violations:
        return
    asked = refusal.names("loop_priority") or refusal.names("inames")
    name = kernel.fresh_name("w")
    for outer, inner in _pairs(refusal):
        if not {outer, inner} <= {*asked} or asked.index(inner) > asked.index(outer):
            continue
        after = suggest_calls.renamed(step, {inner: name})
        is_done = names_in(dict(after.arguments).get("loop_priority")) == (name, outer)
        for factor in _FACTORS:
            sign = " - " if factor < 0 else " + "
            value = f"{name} = {inner}{sign}{_term(abs(factor), outer)}"
            skew = suggest_calls.call("map_domain", _map([outer, inner], [name, outer], value))
            steps = (skew,) if is_done else (skew, after)
            yield Suggestion(f"after skewing '{inner}' by '{outer}'", steps)


def _pairs(refusal: Refusal) -> list[tuple[str, str]]:
    """Pairs of loops, one in the other, around the statements of violations."""
    paths, tagged = refusal.kernel.paths, refusal.kernel.iname_tags.keys()
    pairs = (pair for s in refusal.statements for pair in combinations(path_inames(paths[s.id]), 2))
    return list(dict.fromkeys(pair for pair in pairs if tagged.isdisjoint(pair)))


def by_own_loops(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Statements that the step would put side by side, each in a loop of its own first."""
    step = refusal.step
    if step.transform not in ("untag_inames", "prioritize_loops") or refusal.is_race:
        return
    if not 2 <= len(refusal.statements) <= 3:
        return
    for iname in reversed(refusal.inames()):
        for statement in refusal.statements:
            apart = suggest_calls.call("duplicate_inames", iname, f"id:{statement.id}")
            what = f"if '{statement.id}' has a separate loop over '{iname}'"
            yield Suggestion(what, (apart, step))


def by_wavefronts(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """Threads along the diagonals of two loops that each carry values."""
    if not refusal.is_race:
        return
    kernel, length = refusal.kernel, refusal.given.get("inner_length")
    length = length if isinstance(length, int) else CUDA.warp
    mine = {slot[1] for slot in suggest_calls.tag_slots(refusal.step)} | {
        refusal.given.get("split_iname")
    }
    paths = [path_inames(kernel.paths[s.id]) for s in refusal.statements]
    near = {pair for path in paths for pair in pairwise(path)}
    name = kernel.fresh_name("w")
    for outer, inner in _pairs(refusal):
        if (outer, inner) not in near or not mine & {outer, inner}:
            continue
        for one, two in ((1, 1), (2, 1), (1, 2), (3, 1)):
            value = f"{name} = {_term(one, outer)} + {_term(two, inner)}"
            for kept in (inner, outer):
                mapped = suggest_calls.call("map_domain", _map([outer, inner], [name, kept], value))
                dealt = suggest_calls.call("split_iname", kept, length, inner_tag="l.0")
                yield Suggestion(
                    f"as a wavefront over {suggest_calls.quoted((outer, inner))}", (mapped, dealt)
                )
