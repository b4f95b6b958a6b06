"""The order of statements: that of the text, except where something else is demanded."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter

from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._make.domain_factors import Inames
from loopkit._make.making import Draft, Nop
from loopkit._relations import grouped, reachable
from loopkit._syntax.items import position_of_name

Node = Draft | Nop
_WILD = frozenset("*?[")


def resolve_dependencies(nodes: Sequence[Node]) -> None:
    """Set ``resolved`` of every draft: the ids that its ``dep`` patterns name."""
    ids = [n.id for n in nodes]
    known = set(ids)
    for node in nodes:
        found: set[str] = set()
        for pattern in node.item.depends_on:
            if not _WILD.isdisjoint(pattern):
                found.update(i for i in ids if fnmatchcase(i, pattern))
            elif pattern in known:
                found.add(pattern)
            else:
                position = position_of_name(node.item, pattern)
                raise UnknownNameError("statement", pattern, ids, position=position)
        node.resolved = frozenset(found - {node.id})


def in_order(nodes: Sequence[Node], inames: Inames, temporaries: Collection[str]) -> list[Node]:
    """The statements, and the ends of launches, in execution order.

    Explicit dependencies come first, and a temporary with one writer is written
    before it is read.  All other statements that share data keep the order of
    the text.
    """
    resolve_dependencies(nodes)
    number = {node.id: position for position, node in enumerate(nodes)}
    before = [{number[i] for i in node.resolved} for node in nodes]
    reads = [
        node.names | inames.loaded(node.inames) if isinstance(node, Draft) else frozenset()
        for node in nodes
    ]
    writers = grouped(
        (name, position)
        for position, node in enumerate(nodes)
        if isinstance(node, Draft)
        for name in sorted(node.written)
    )
    for name in temporaries:
        if len(writers.get(name, ())) != 1:
            continue
        (writer,) = writers[name]
        if any(name in reads[position] for position in range(writer)):
            for position in range(len(nodes)):
                if name in reads[position] and position != writer:
                    before[position].add(writer)
    backward = any(other > position for position, them in enumerate(before) for other in them)
    order: Sequence[int] = range(len(nodes))
    if backward:
        _keep_text_order(nodes, reads, before)
        order = _sorted(nodes, before)
    result: list[Node] = []
    for position in order:
        node = nodes[position]
        if isinstance(node, Nop):
            result += [node] if node.ends_launch else []
        else:
            # Of places without work, what these wait for counts.
            named = reachable(node.resolved, lambda i: _through(nodes[number[i]]))
            node.resolved = frozenset(i for i in named if isinstance(nodes[number[i]], Draft))
            result.append(node)
    return result


def _keep_text_order(
    nodes: Sequence[Node], reads: Sequence[frozenset[str]], before: list[set[int]]
) -> None:
    """Add to ``before`` what shares data, where nothing demands the opposite order."""
    demanded = [frozenset(b) for b in before]

    @cache
    def all_before(position: int) -> frozenset[int]:
        """Everything that must come before ``position``, by demand."""
        return reachable(demanded[position], demanded.__getitem__)

    last_write: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for position, node in enumerate(nodes):
        if isinstance(node, Nop):
            continue
        earlier: set[int] = set()
        for name in reads[position]:
            if name in last_write:
                earlier.add(last_write[name])
            readers.setdefault(name, []).append(position)
        for name in node.written:
            if name in last_write:
                earlier.add(last_write[name])
            earlier.update(readers.get(name, ()))
        earlier.discard(position)
        before[position].update(e for e in earlier if position not in all_before(e))
        for name in node.written:
            last_write[name] = position
            readers[name] = [position] if name in reads[position] else []


def _sorted(nodes: Sequence[Node], before: Sequence[set[int]]) -> list[int]:
    sorter = TopologicalSorter(dict(enumerate(before)))
    try:
        sorter.prepare()
    except CycleError as error:
        names = " after ".join(f"'{nodes[p].id}'" for p in reversed(error.args[1]))
        raise InvalidArgumentError(
            f"statements wait for each other: {names}",
            instead="remove one of the dependencies, or write the text in the order that is meant",
        ) from None
    order: list[int] = []
    ready: list[int] = []
    while sorter.is_active():
        for position in sorter.get_ready():
            heapq.heappush(ready, position)
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
    return order


def _through(node: Node) -> frozenset[str]:
    """What else those depend on that depend on a node: nothing, unless it is without work."""
    return node.resolved if isinstance(node, Nop) else frozenset()
