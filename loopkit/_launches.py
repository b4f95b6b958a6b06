"""Division of a kernel at grid-wide barriers: launches, and host loops around launches.

A launch consists of everything between two such barriers.  A loop that contains one runs on the
host, which starts the launches inside it in each iteration.  Hence every instance of one launch
comes before every instance of the next, whatever its block and thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._tags import Unroll
from loopkit._tree import LaunchBarrier, Loop, Node, Tree, entries_of, nodes_in, statements_in


@dataclass(frozen=True)
class Launch:
    """One launch: its number in the text, from 0, the loops around it, and its body."""

    number: int
    loops: tuple[str, ...]
    body: Tree


@dataclass(frozen=True)
class LaunchLoop:
    """A loop around launches: in each iteration all of them run, in order."""

    iname: str
    body: Launches


Launches = tuple[Launch | LaunchLoop, ...]
"""Launches in the order in which they run."""


@memoised
def launches_of(kernel: Kernel) -> Launches:
    """The launches of a kernel (memoised); one if it has no grid-wide barrier."""
    return tuple(_parted(kernel.tree, (), count()))


def _parted(
    nodes: Tree, loops: tuple[str, ...], numbers: Iterator[int]
) -> Iterator[Launch | LaunchLoop]:
    body: list[Node] = []
    for node in (*nodes, None):
        around = isinstance(node, Loop) and _holds_barrier(node)
        if not (node is None or around or isinstance(node, LaunchBarrier)):
            body.append(node)
            continue
        if body:
            yield Launch(next(numbers), loops, tuple(body))
            body = []
        if around:
            assert isinstance(node, Loop)
            inside = tuple(_parted(node.body, (*loops, node.iname), numbers))
            if inside:
                yield LaunchLoop(node.iname, inside)


def _holds_barrier(loop: Loop) -> bool:
    return any(isinstance(leaf, LaunchBarrier) for leaf, _ in entries_of(loop.body))


def launches_in(launches: Launches) -> Iterator[Launch]:
    """All launches, each once, in the order of the text."""
    return (node for node in nodes_in(launches, Launch) if isinstance(node, Launch))


@memoised
def launch_of(kernel: Kernel) -> Mapping[str, Launch]:
    """The launch of each statement (memoised)."""
    return {s: one for one in launches_in(launches_of(kernel)) for s in statements_in(one.body)}


@memoised
def inames_by_launch(kernel: Kernel) -> tuple[frozenset[str], ...]:
    """The inames of the statements of each launch (memoised)."""
    inames = {s.id: s.inames for s in kernel.statements}
    return tuple(
        frozenset().union(*(inames[s] for s in statements_in(one.body)))
        for one in launches_in(launches_of(kernel))
    )


def is_one_launch(kernel: Kernel) -> bool:
    """Whether a call is a single launch."""
    found = launches_of(kernel)
    return not found or (len(found) == 1 and isinstance(found[0], Launch))


def broken_launches(kernel: Kernel) -> str:
    """The reason why a call cannot run the loops around launches; empty if it can."""
    ids = [leaf.id for leaf, _ in entries_of(kernel.tree) if isinstance(leaf, LaunchBarrier)]
    if len({*ids, *kernel.statement_by_id}) < len(ids) + len(kernel.statement_by_id):
        return "a barrier would have the id of a statement, or of another barrier"
    for launch in launches_in(launches_of(kernel)):
        for depth, iname in enumerate(launch.loops):
            if iname in kernel.iname_tags:
                tag = kernel.iname_tags[iname]
                instead = f"; unroll('{iname}') writes them out" * isinstance(tag, Unroll)
                return (
                    f"the loop over '{iname}' contains launches, which the call runs one after "
                    f"the other: it cannot be tagged {tag}{instead}"
                )
            known = {*kernel.sizes, *launch.loops[: depth + 1]}
            needs = _sets.involved_names(kernel.domain_around(launch.loops[: depth + 1]))
            for name in sorted(needs - known):
                return (
                    f"the loop over '{iname}' contains launches, and is run by the call: its "
                    f"bounds cannot depend on '{name}', which is no size"
                )
    return ""
