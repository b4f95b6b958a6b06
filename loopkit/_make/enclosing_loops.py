"""The loops around each statement, their nesting order, and the order of the statements."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter

from loopkit._errors import InvalidArgumentError, ParseError, UnknownNameError
from loopkit._expression import accesses, variable_names
from loopkit._frozen import dataclass
from loopkit._make.domain_factors import Inames
from loopkit._make.making import Draft, Held, Nop
from loopkit._make.shared_loops import fail_at_held, read_outside
from loopkit._nodes import Expression
from loopkit._relations import grouped, reachable
from loopkit._syntax.items import position_of_name
from loopkit._tree import Path


@dataclass(frozen=True, eq=False)
class Source:
    """The origin of a value that a statement reads in a temporary.

    The reader is inside ``inames`` because the statements in ``writers`` are.
    """

    reader: Draft
    name: str
    writers: tuple[Draft, ...]
    inames: frozenset[str]


def find_inames(
    drafts: Sequence[Draft], inames: Inames, temporaries: Collection[str]
) -> list[Source]:
    """Set ``inames`` of every draft; returns the sources of the temporaries that statements read.

    A statement is inside the inames that its text uses, those that its ``for`` blocks and options
    name, and those that their domains depend on.  If it reads a temporary, it is also inside the
    inames that all writers of the temporary share, except those in the written subscripts (an
    element of ``t[j]`` is live after the loop over ``j``).
    """
    names = inames.order.keys()
    temporaries = frozenset(temporaries)
    for draft in drafts:
        needed = inames.closure(draft.reduced) - draft.reduced
        draft.inames = inames.closure(draft.given_inames | (draft.names & names) | needed)
    reads = {d: _temporaries_read(d, inames, temporaries) for d in drafts}
    readers = grouped((name, d) for d in drafts for name in reads[d])
    writers = grouped((name, d) for d in drafts for name in sorted(d.written & temporaries))
    sources = {
        # What a statement makes of the variable's own value does not say where it lives.
        name: tuple(d for d in them if name not in reads[d]) or them
        for name, them in writers.items()
    }

    def home(name: str) -> frozenset[str]:
        """The inames that all writers of a temporary share."""
        lives = [
            w.inames.difference(*map(variable_names, _indices(w, name)))
            for w in sources.get(name, ())
        ]
        return frozenset.intersection(*lives) if lives else frozenset()

    def held(draft: Draft, name: str) -> frozenset[str]:
        """Those of the inames over which every reduction runs that reads the temporary."""
        parts = (draft.rhs, *draft.predicates, *_indices(draft))
        return frozenset(
            i
            for i in home(name) & draft.reduced
            if name not in read_outside(draft, parts, i, inames.loaded)
        )

    waiting = dict.fromkeys(drafts)
    while waiting:
        draft = next(iter(waiting))
        del waiting[draft]
        if draft.item.inames_is_final:
            continue
        more = frozenset().union(*(home(n) - held(draft, n) for n in reads[draft]))
        if more <= draft.inames:
            continue
        draft.inames = inames.closure(draft.inames | more)
        for name in sorted(draft.written):
            waiting.update((r, None) for r in readers.get(name, ()) if r is not draft)
    for draft in drafts:
        by_name = {name: held(draft, name) for name in reads[draft]} if draft.reduced else {}
        draft.held = tuple(Held(n, its, sources[n]) for n, its in by_name.items() if its)
        clash = draft.reduced & draft.inames
        if clash:
            iname = min(clash)
            _fail_at_clash(draft, iname, [name for name in reads[draft] if iname in home(name)])
    return [
        Source(draft, name, sources[name], home(name))
        for draft in drafts
        for name in reads[draft]
        if home(name) and draft not in sources[name]
    ]


def check_sources(sources: Iterable[Source], paths: Mapping[str, Path]) -> None:
    """Check that a temporary is read in the same loops in which it is written.

    Two loops over one iname are different loops; unless the user wrote them as blocks, reading in
    the second loop what the last iteration of the first one left is taken for a mistake.
    """
    for source in sources:
        reader = source.reader
        wanted = (source.inames & reader.inames).difference(reader.scoped)
        if not wanted or reader.item.inames_is_final:
            continue
        mine = dict(paths[reader.id])
        for iname in sorted(wanted):
            if any(dict(paths[w.id]).get(iname) == mine[iname] for w in source.writers):
                continue
            writer = source.writers[0]
            raise ParseError(
                f"'{source.name}' is given its value by '{writer.id}' in one loop over '{iname}' "
                f"and read by '{reader.id}' in another, where only the last value is left",
                position=reader.position_of(source.name),
                instead=f"put both into one block 'for {iname} ... end' (loops nest as domains "
                f"declare them, and statements between two others part their loops), or "
                f"store a value for each: {source.name}[{iname}] = ...",
            )


def _temporaries_read(draft: Draft, inames: Inames, temporaries: frozenset[str]) -> list[str]:
    found = draft.names & temporaries
    if found & draft.written:
        parts = (draft.rhs, *draft.predicates, *_indices(draft))
        found -= draft.written.difference(*map(variable_names, parts))
    return sorted(found | inames.loaded(draft.inames | draft.reduced))


def _indices(draft: Draft, written: str | None = None) -> tuple[Expression, ...]:
    """The subscripts of what a draft assigns to; or of one name alone."""
    found = [accesses(target)[0] for target in draft.targets]
    return tuple(i for name, indices in found if written in (None, name) for i in indices)


def _fail_at_clash(draft: Draft, iname: str, read: Sequence[str]) -> None:
    """Report a reduction over ``iname``, where the temporaries ``read`` have their values."""
    for name in read:
        fail_at_held(draft, Held(name, frozenset([iname]), ()))
    raise ParseError(
        f"statement '{draft.id}' reduces over '{iname}' but is inside '{iname}' already",
        position=draft.item.position,
        instead="give the reduction a separate iname",
    )


@dataclass
class _Open:
    """A loop that contains the preceding statement.

    ``block`` is the number of its ``for`` block; 0 while it has only statements outside of blocks.
    """

    iname: str
    block: int
    number: int


class Nest:
    """Assigns a path to every statement; neighbours share the loops that both are in.

    Two ``for`` blocks are two loops, even over one iname.  A statement that is in a loop only
    because its text uses the iname joins an adjacent loop over it.
    """

    def __init__(self, inames: Inames, numbers: Iterator[int]) -> None:
        self.inames = inames
        self.numbers = numbers
        self.open: list[_Open] = []

    def path(self, draft: Draft | Nop) -> Path:
        """The loops around a draft, those that are open already first."""
        blocks = {iname: number for number, group in draft.item.scopes for iname in group}
        wanted = self.inames.nested(draft.inames, draft.scoped)
        depth = 0
        while depth < len(wanted) and depth < len(self.open):
            loop = self.open[depth]
            block = blocks.get(wanted[depth], 0)
            if loop.iname != wanted[depth] or (block and loop.block and block != loop.block):
                break
            loop.block = loop.block or block
            depth += 1
        del self.open[depth:]
        for iname in wanted[depth:]:
            self.open.append(_Open(iname, blocks.get(iname, 0), next(self.numbers)))
        return tuple((loop.iname, loop.number) for loop in self.open)


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

    Explicit dependencies are respected first, then that a temporary with one writer is written
    before it is read.  All other statements that access the same data keep the order of the text.
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
    """Add edges to ``before`` for common data, unless the opposite order is required."""
    demanded = [frozenset(b) for b in before]

    @cache
    def all_before(position: int) -> frozenset[int]:
        """Everything that is required to come before ``position``."""
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
    """The dependencies that a node without work passes on; none for statements."""
    return node.resolved if isinstance(node, Nop) else frozenset()
