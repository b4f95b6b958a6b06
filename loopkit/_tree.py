"""The loop tree, and its other face: statements in order, each with its path of loops.

A tree is a tuple of nodes; a node is a statement id or a :class:`Loop`.
Transforms reshape it through :func:`flatten` and :func:`build`: a path is a
tuple of keys ``(iname, number)``, where the number tells apart loops that
carry the same iname.  Neighbours share a loop exactly if their paths begin
with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loopkit._frozen import dataclass

Key = tuple[str, int]
Path = tuple[Key, ...]
Entry = tuple[str, Path]


@dataclass(frozen=True)
class Loop:
    """A sequential loop over ``iname``."""

    iname: str
    body: tuple[Node, ...]


Node = Loop | str
Tree = tuple[Node, ...]


def flatten(tree: Tree) -> list[Entry]:
    """``[(statement id, path), ...]`` in execution order."""
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
        statement, path = entries[position]
        if len(path) == depth:
            nodes.append(statement)
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
    """The tree after ``rewrite(statement, path)`` gave every statement a new path."""
    return build([(statement, rewrite(statement, path)) for statement, path in flatten(tree)])


def statements_in(nodes: Node | Tree) -> Iterator[str]:
    """Statement ids below, in order."""
    if isinstance(nodes, str):
        yield nodes
    elif isinstance(nodes, Loop):
        yield from statements_in(nodes.body)
    else:
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
