"""What a schedule gets wrong, by comparing two machines: pairs out of order, wrong results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import islpy as isl
from loop_instances import value
from seams import Change
from seams import sets as _sets

from loopkit import Kernel
from refusals.machine import Cell, Data, Event, Machine, Point, Touch


def is_wrong(before: Kernel, after: Kernel, sizes: Point, data: Data | None = None) -> bool:
    """Whether some order of ``after`` leaves something else in the arguments than ``before``."""
    expected = Machine(before, sizes, data).results()[0]
    return any(found != expected for found in Machine(after, sizes, data).results())


@dataclass(frozen=True)
class Pair:
    """Two old instances that share a cell, and that the new schedule does not keep in order."""

    array: str
    cell: Cell
    source: str
    sink: str


def broken_pairs(
    before: Kernel, change: Change, sizes: Point, data: Data | None = None
) -> list[Pair]:
    """Pairs that conflict, and that the new kernel does not keep in the order of ``before``.

    Sorted by source, then by sink, in the order of the old kernel.
    """
    old, new = Machine(before, sizes, data), Machine(change.kernel, sizes, data)
    old.run(old.in_order())
    new.run(new.in_order())
    originals = _Originals(old, new, change)
    found: set[tuple[int, int, str, Cell]] = set()
    starved: set[tuple[int, str]] = set()
    for first, second, touch, is_flow in _conflicts(old):
        sources, sinks = originals.images(first), originals.images(second)
        if _is_broken(new, sources, sinks, touch, is_flow):
            numbers = (originals.number[id(first)], originals.number[id(second)])
            found.add((*numbers, touch.array, touch.cell))
            if is_flow:
                starved.add((numbers[1], touch.array))
    for first, second, touch, is_flow in _conflicts(new):
        ends = originals.of(first), originals.of(second)
        if ends[0] is None or ends[1] is None or ends[0] is ends[1]:
            continue
        numbers = (originals.number[id(ends[0])], originals.number[id(ends[1])])
        unordered = not is_ordered(first, second)
        # Where nobody races, a value that comes from elsewhere than before is what is wrong.
        alien = is_flow and touch.array in old.kernel.temporary_by_name
        alien = alien and (numbers[1], touch.array) not in starved
        if unordered or (alien and not originals.flows(ends[0], ends[1], touch.array)):
            found.add((min(numbers), max(numbers), touch.array, touch.cell))
    texts = [e.text(old.kernel) for [e] in old.in_order()]
    return [Pair(array, cell, texts[a], texts[b]) for a, b, array, cell in sorted(found)]


class _Originals:
    """Which old instance each new event executes, and the other way round."""

    def __init__(self, old: Machine, new: Machine, change: Change) -> None:
        self.number = {id(event): n for n, [event] in enumerate(old.in_order())}
        self._images = _images(old, new, change)
        # Of an instance that several threads execute for themselves, the first stands for all.
        by_key: dict[Any, Event] = {}
        for [event] in old.in_order():
            by_key.setdefault((event.statement.id, _key(event.point)), event)
        self._old_of = {
            id(event): by_key[key]
            for key, events in self._images.items()
            for event in events
            if key in by_key
        }
        self._flows = {
            (id(by_key[_instance(a)]), id(by_key[_instance(b)]), touch.array)
            for a, b, touch, is_flow in _conflicts(old)
            if is_flow
        }

    def images(self, event: Event) -> list[Event]:
        return self._images.get(_instance(event), [])

    def of(self, event: Event) -> Event | None:
        return self._old_of.get(id(event))

    def flows(self, a: Event, b: Event, array: str) -> bool:
        return (id(a), id(b), array) in self._flows


def _instance(event: Event) -> tuple[str, tuple[tuple[str, int], ...]]:
    return event.statement.id, _key(event.point)


def _key(point: Point) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(point.items()))


def _images(old: Machine, new: Machine, change: Change) -> dict[Any, list[Event]]:
    """New events by old instance."""
    maps = {m.new: m for m in change.instances}
    statements = old.kernel.statement_by_id
    images: dict[Any, list[Event]] = {}
    for event in new.events:
        step = maps.get(event.statement.id)
        name = step.old if step else event.statement.id
        if name not in statements:
            continue
        env = {**new.sizes, **event.point}
        values = dict(step.values) if step else {}
        every = step.every if step else frozenset()
        image = {
            i: value(values[i], env, {}) if i in values else event.point[i]
            for i in statements[name].inames - every
        }
        # One that stands for several stands for all that agree in the rest.
        all_of = [e.point for e in old.events if e.statement.id == name] if every else [image]
        for point in all_of:
            if image.items() <= point.items():
                images.setdefault((name, _key(point)), []).append(event)
    return images


def _conflicts(machine: Machine) -> Iterator[tuple[Event, Event, Touch, bool]]:
    """Pairs that touch one cell, one of them writing: whether the second reads the first's."""
    by_cell: dict[tuple[Any, ...], list[tuple[Event, Touch]]] = {}
    numbers: dict[int, int] = {}
    for number, [event] in enumerate(machine.in_order()):
        numbers[id(event)] = number
        for touch in event.touches:
            key = (touch.array, touch.place)
            by_cell.setdefault(key, []).append((event, touch))
    found: list[tuple[int, int, Event, Event, Touch, bool]] = []
    for uses in by_cell.values():
        last: Event | None = None
        for position, (event, touch) in enumerate(uses):
            for earlier, other in uses[:position]:
                if earlier is event or not (touch.is_write or other.is_write):
                    continue
                both_update = (
                    earlier.statement.operation is not None
                    and earlier.statement.operation == event.statement.operation
                    and earlier.statement.written == event.statement.written == touch.array
                )
                if both_update:
                    continue
                is_flow = not touch.is_write and other.is_write and earlier is last
                a, b = numbers[id(earlier)], numbers[id(event)]
                found.append((a, b, earlier, event, touch, is_flow))
            if touch.is_write:
                last = event
    found.sort(key=lambda f: (f[0], f[1], f[4].array, f[4].cell))
    for _, _, first, second, touch, is_flow in found:
        yield first, second, touch, is_flow


def _is_broken(
    new: Machine, sources: list[Event], sinks: list[Event], touch: Touch, is_flow: bool
) -> bool:
    name = touch.array
    if name in new.kernel.arg_by_name:
        return any(not is_ordered(a, b) for a in sources for b in sinks)
    if name not in new.kernel.temporary_by_name:
        return False  # it went with what computed it: no order is left to keep

    def copies(event: Event) -> set[Any]:
        return {t.place for t in event.touches if t.array == name}

    if is_flow:
        # A value may be computed by several threads, each for itself.
        return any(
            copies(b) and not any(copies(a) & copies(b) and is_ordered(a, b) for a in sources)
            for b in sinks
        )
    return any(copies(a) & copies(b) and not is_ordered(a, b) for a in sources for b in sinks)


def is_ordered(a: Event, b: Event) -> bool:
    """Whether ``a`` is sure to run before ``b``, with a barrier between if need be."""
    if a.launch != b.launch:
        return a.launch < b.launch
    return a.block == b.block and a.time < b.time


def smallest_sizes(
    names: Iterable[str], largest: int, fixed: Mapping[str, int] | None = None
) -> Iterator[Point]:
    """All sizes up to ``largest``, in lexicographic order of the sorted names."""
    ordered = sorted(names)
    given = fixed or {}
    choices = [[given[n]] if n in given else range(largest + 1) for n in ordered]
    for values in itertools.product(*choices):
        yield dict(zip(ordered, values, strict=True))


def admitted(kernel: Kernel, sizes: Point) -> bool:
    """Whether the assumptions hold for these sizes."""
    domain = kernel.assumptions.set
    for name, number in sizes.items():
        position = domain.find_dim_by_name(_sets.PARAM, name)
        if position >= 0:
            domain = domain.fix_val(_sets.PARAM, position, isl.Val(number))
    return not domain.is_empty()
