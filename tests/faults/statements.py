"""Faults in the transforms of statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from refusals.case import do
from seams import build, entries_of

from faults import kernels
from faults.planting import Patch, fault


def _neighbour_too(original: Any) -> Any:
    """What stands behind a statement that goes, goes with it."""

    def without(kernel: Any, gone: Any) -> Any:
        ids = [s.id for s in kernel.statements]
        more = {ids[ids.index(g) + 1] for g in gone if ids.index(g) + 1 < len(ids)}
        return original(kernel, {*gone, *more})

    return without


def _turned_round(original: Any) -> Any:
    """The statements of the kernel, the last one first."""

    def renamed(kernel: Any, new: Any) -> Any:
        found = original(kernel, new)
        return found.with_(tree=_reversed(found.tree))

    return renamed


def _reversed(nodes: Any) -> Any:
    turned = (n if isinstance(n, str) else replace(n, body=_reversed(n.body)) for n in nodes)
    return tuple(reversed(tuple(turned)))


fault(
    "remove_instructions: what stands behind goes, too",
    kernels.with_idle,
    do("remove_instructions", "idle"),
    Patch("transforms.statements:_without", _neighbour_too),
    sizes={"n": 2},
)


fault(
    "replace_instruction_ids: two statements change places",
    kernels.with_idle,
    do("replace_instruction_ids", {"idle": "spare"}),
    Patch("transforms.statements:renamed", _turned_round),
    sizes={"n": 2},
)


def _one_too_far(original: Any) -> Any:
    """A statement that moves goes behind all others."""

    def moved(entries: Any, id_: str, earlier: Any) -> Any:
        found = original(entries, id_, earlier)
        (mine,) = (entry for entry in found if entry[0] == id_)
        return [*(entry for entry in found if entry[0] != id_), mine]

    return moved


fault(
    "add_dependency: moved behind what needs it",
    kernels.with_idle,
    do("add_dependency", "first", "idle"),
    Patch("transforms.statements:_moved", _one_too_far),
    sizes={"n": 2},
)


def _loop_behind(original: Any) -> Any:
    """The new loop of the first statement stands behind what needs it."""

    def settled(kernel: Any) -> Any:
        found = original(kernel)
        first, *rest = entries_of(found.tree)
        return found.with_(tree=build([*rest, first]))

    return settled


fault(
    "add_inames: the statement inside of more loops stands behind what needs it",
    kernels.with_idle,
    do("add_inames_to_insn", "i", "id:first"),
    Patch("transforms.fusion:settled_tree", _loop_behind),
    sizes={"n": 2},
)


def _updates_too(original: Any) -> Any:
    """Every statement gets the inames, one that adds to an argument, too."""

    def inside(kernel: Any, added: Any) -> Any:
        more = frozenset().union(*added.values())
        every = {s.id: more - s.inames for s in kernel.statements if more - s.inames}
        return original(kernel, every)

    return inside


fault(
    "add_inames: what adds to an argument is made for each thread, too",
    kernels.with_count,
    do("add_inames_for_unused_hw_axes"),
    Patch("transforms.fusion:_inside", _updates_too),
)


fault(
    "remove_inames_from_insn: the statement stands behind the loop that needs it",
    kernels.repeated_in_a_loop,
    do("remove_inames_from_insn", "i", "id:second"),
    Patch("transforms.fusion:_stands_behind", lambda _: lambda *_: True),
    sizes={"n": 2},
)
fault(
    "remove_inames_from_insn: it runs where the loop has no iteration",
    kernels.repeated_in_a_loop,
    do("remove_inames_from_insn", "i", "id:first"),
    Patch("transforms.fusion:conjuncts", lambda _: lambda _: ()),
    sizes={"n": 0},
)
