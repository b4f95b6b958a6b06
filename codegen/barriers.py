"""Placement of barriers between the threads of a block.

Two accesses to one cell of shared or global memory by different threads of a block, at least one
of them a write, need a barrier between them. The placement separates all such pairs with the
fewest barriers: fewest in the innermost loops first, then in the loops around them. Where only
threads of one warp access a common cell, a warp-level barrier is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopkit._errors import IllegalTransformError
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit._tree import Loop
from loopkit.codegen.conflicts import Conflicts, Reach
from loopkit.codegen.dependences import Dependence, Dependences
from loopkit.codegen.ir import Barrier
from loopkit.codegen.loop_bodies import Bodies, Body
from loopkit.codegen.set_cover import bits, cheapest_cover


@dataclass(frozen=True)
class GuardedLoop:
    """A loop whose body contains barriers."""

    iname: str
    body: tuple[PlacedNode, ...]


PlacedNode = str | Barrier | GuardedLoop
Placed = tuple[PlacedNode, ...]


def leaves(node: PlacedNode) -> Iterator[str | Barrier]:
    """The statements and the barriers below a placed node, in order."""
    if isinstance(node, GuardedLoop):
        for inner in node.body:
            yield from leaves(inner)
    else:
        yield node


def place_barriers(conflicts: Conflicts) -> Placed:
    """The kernel's tree with a barrier wherever data crosses threads of a block."""
    needs = Dependences(conflicts)
    chosen = choose_gaps(needs)
    everywhere = sum(1 << gap for gap in chosen)
    of_block = sum(1 << gap for gap, strong in chosen.items() if strong)
    only: dict[int, list[Dependence]] = {gap: [] for gap in chosen}
    for need in needs.found:
        serving = bits(need.gaps & (of_block if need.reach is Reach.BLOCK else everywhere))
        if len(serving) == 1:
            only[serving[0]].append(need)
    barriers = {}
    for gap, strong in chosen.items():
        cut = only[gap] or [need for need in needs.found if need.gaps >> gap & 1]
        barriers[gap] = Barrier(_reason(cut), of_warp=not strong)
    return _with_barriers(needs.bodies.root, barriers)


def choose_gaps(needs: Dependences) -> dict[int, bool]:
    """The gaps that get a barrier, and whether it is one of the whole block."""
    bodies = needs.bodies
    open_gaps = 0
    for body in bodies.all if needs.found else ():
        if not (bodies.divergent_names(body) or bodies.exits(body)):
            open_gaps |= body.own_gaps
    for need in needs.found:
        if not need.gaps & open_gaps:
            raise _divergent(bodies, need)
    wanted = [(need.gaps & open_gaps, need.reach is Reach.BLOCK) for need in needs.found]
    many = bodies.gap_count + 1
    deepest = max(len(body.loops) for body in bodies.all)

    def cost(gap: int, strong: bool) -> int:
        # One barrier in a loop outweighs all outside of it, one more all that are weak.
        depth = len(bodies.owner[gap].loops)
        return int(many ** (deepest + 1 + depth) + (many**depth if strong else 0))

    return cheapest_cover(wanted, cost)


def _divergent(bodies: Bodies, need: Dependence) -> IllegalTransformError:
    body = bodies.owner[bits(need.gaps)[0]]
    array, loop = need.before.array, body.loops[-1]
    exits = bodies.exits(body)
    names = exits or bodies.divergent_names(body)
    listed = (" and " if exits else ", ").join(f"'{name}'" for name in names)
    if exits:
        why = f"{listed} ends the loop for each thread when its data say so, and nobody waits for "
        why += "those that have left"
        instead = "keep what is exchanged within one thread, or go through the whole loop under a "
        instead += "condition in place of the 'break'"
    else:
        decide = "decides" if len(names) == 1 else "decide"
        why = f"{listed}, which each thread computes, {decide} how often it passes"
        instead = f"give '{loop}' bounds that depend on sizes and loops only, or keep "
        instead += f"what is exchanged through '{array}' within one thread"
    return IllegalTransformError(
        f"threads exchange '{array}' inside the loop over '{loop}', between "
        f"'{need.before.statement}' and '{need.after.statement}', and would have to wait for "
        f"each other there; but {why}",
        instead=instead,
    )


def _with_barriers(body: Body, barriers: dict[int, Barrier]) -> Placed:
    placed: list[PlacedNode] = []
    for position, node in enumerate((*body.nodes, None)):
        if body.gap(position) in barriers:
            placed.append(barriers[body.gap(position)])
        if isinstance(node, Loop):
            inner = _with_barriers(body.children[position], barriers)
            placed.append(GuardedLoop(node.iname, inner))
        elif isinstance(node, str):
            placed.append(node)
    return tuple(placed)


def _reason(needs: list[Dependence]) -> str:
    """The dependences that only this barrier orders, as text for the comment on its line."""
    places: dict[tuple[str, bool, bool], dict[str, None]] = {}
    for need in needs:
        key = (need.before.array, need.before.is_write, need.after.is_write)
        where = "below" if need.carried is None else f"in the next {need.carried}"
        places.setdefault(key, {})[where] = None
    arrays = grouped(
        ((first, then, " or ".join(sorted(found, key=lambda where: where != "below"))), array)
        for (array, first, then), found in places.items()
    )
    texts = [
        f"{', '.join(names)} {_DONE[first]} above, {_DONE[then]} {where}"
        for (first, then, where), names in arrays.items()
    ]
    return "; ".join(texts)


_DONE = {True: "written", False: "read"}
