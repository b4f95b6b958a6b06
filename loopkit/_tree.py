"""The loop tree, and an equivalent form: statements in order, each with the path of its loops.

A tree is a tuple of nodes; a node is a statement id, a :class:`Loop`, or a
:class:`LaunchBarrier`.  Transforms change it through :func:`entries_of` and :func:`build`.  A path
is a tuple of keys ``(iname, number)``; the number distinguishes loops over the same iname.
Neighbouring statements share a loop exactly if their paths begin with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from loopkit import _spelling
from loopkit._frozen import dataclass

Key = tuple[str, int]
Path = tuple[Key, ...]


@dataclass(frozen=True)
class Loop:
    """A sequential loop over ``iname``."""

    iname: str
    body: tuple[Node, ...]


@dataclass(frozen=True)
class LaunchBarrier:
    """A grid-wide barrier: the end of a launch.

    All instances before it, in all blocks, come before everything that follows.  It is at the top
    of the tree, or inside of host loops around launches.
    """

    id: str
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _spelling.check_identifier(self.id, "the id of a barrier")
        _spelling.check_tags(self.tags)


Node = Loop | LaunchBarrier | str
Tree = tuple[Node, ...]
Entry = tuple[LaunchBarrier | str, Path]


def flatten(tree: Tree) -> list[tuple[str, Path]]:
    """``[(statement id, path), ...]`` in execution order."""
    return [(node, path) for node, path in entries_of(tree) if isinstance(node, str)]


def entries_of(tree: Tree) -> list[Entry]:
    """Like :func:`flatten`, with barriers among the statements."""
    entries: list[Entry] = []
    count = 0

    def visit(nodes: Tree, path: Path) -> None:
        nonlocal count
        for node in nodes:
            if isinstance(node, Loop):
                count += 1
                visit(node.body, (*path, (node.iname, count)))
            else:
                entries.append((node, path))

    visit(tree, ())
    return entries


def build(entries: Sequence[Entry], depth: int = 0) -> Tree:
    """The tree in which neighbours share the loops whose keys are equal."""
    nodes: list[Node] = []
    position = 0
    while position < len(entries):
        leaf, path = entries[position]
        if len(path) == depth:
            nodes.append(leaf)
            position += 1
            continue
        key = path[depth]
        end = position + 1
        while end < len(entries) and len(entries[end][1]) > depth and entries[end][1][depth] == key:
            end += 1
        nodes.append(Loop(key[0], build(entries[position:end], depth + 1)))
        position = end
    return tuple(nodes)


def rewrite_paths(tree: Tree, rewrite: Callable[[str, Path], Path]) -> Tree:
    """The tree after ``rewrite(statement, path)`` gave every statement a new path.

    A barrier stays inside what became of its loops, as far as all statements share that.
    """
    entries = [(leaf, path, _rewritten(leaf, path, rewrite)) for leaf, path in entries_of(tree)]
    result: list[Entry] = []
    for leaf, path, new in entries:
        if isinstance(leaf, LaunchBarrier) and path:
            inside = [(s, its) for s, old, its in entries if isinstance(s, str) and path[-1] in old]
            shared = common_prefix([rewrite(s, path) for s, _ in inside])
            new = common_prefix([shared, *(its for _, its in inside)])
        result.append((leaf, new))
    return build(result)


def _rewritten(leaf: LaunchBarrier | str, path: Path, rewrite: Callable[[str, Path], Path]) -> Path:
    return rewrite(leaf, path) if isinstance(leaf, str) else path


def nodes_in(nodes: Iterable[Any], leaf: type) -> Iterator[Any]:
    """All nodes, those around others before these; what is inside of a ``leaf`` is none."""
    for node in nodes:
        yield node
        if not isinstance(node, leaf):
            yield from nodes_in(node.body, leaf)


def statements_in(nodes: Node | Tree) -> Iterator[str]:
    """Statement ids below, in order."""
    if isinstance(nodes, str):
        yield nodes
    elif isinstance(nodes, Loop):
        yield from statements_in(nodes.body)
    elif isinstance(nodes, tuple):
        for node in nodes:
            yield from statements_in(node)


def common_prefix(paths: Sequence[Path]) -> Path:
    """The loops that all paths share."""
    if not paths:
        return ()
    first, *rest = paths
    length = len(first)
    for path in rest:
        length = min(length, len(path))
        while path[:length] != first[:length]:
            length -= 1
    return first[:length]


def path_inames(path: Path) -> tuple[str, ...]:
    """The inames of a path, outermost first."""
    return tuple(iname for iname, _ in path)
