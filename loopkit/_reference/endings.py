"""Loops with data-dependent exits, enumerated in pieces, without the iterations after the exit.

A loop may have far more iterations in its domain than are executed (:mod:`loopkit._guarded`).  The
instances of its statements are enumerated for some of its values at a time, until the loop exits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import islpy as isl

from loopkit import _sets
from loopkit._cached import once
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._guarded import flags_of
from loopkit._kernel import Kernel
from loopkit._points import range_in
from loopkit._reference.compile_statement import Compiled
from loopkit._reference.memory import Memory
from loopkit._tree import Loop, Tree, statements_in

_FIRST, _LONGEST = 64, 1 << 16
"""How many values of an iname the first piece has, and the longest; each is four times the last."""

Row = tuple[int, ...]


@dataclass(eq=False)
class Ending:
    """A loop with a data-dependent exit: it runs while the flag of any thread is set.

    ``depth`` is the number of loops around it.  ``members`` are the statements in it that are in no
    such loop inside of it.
    """

    iname: str
    depth: int
    flag: Memory
    members: list[Compiled] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether the flag is set for any thread."""
        return self.flag.holds_true


def endings_of(
    kernel: Kernel, memories: Mapping[str, Memory], compiled: Mapping[str, Compiled]
) -> dict[int, Ending]:
    """The loops of a kernel with data-dependent exits, by identity, with their own statements."""
    flags = {flag.start.id: flag for flag in flags_of(kernel).values()}
    found: dict[int, Ending] = {}
    homes: dict[str, Ending] = {}
    for nodes, depth in _bodies(kernel.tree, 0) if flags else ():
        for flag in (flags[node] for node in nodes if isinstance(node, str) and node in flags):
            users = {s.id for s in kernel.users(flag.name)} - {flag.start.id}
            loops = [n for n in nodes if isinstance(n, Loop) and users & set(statements_in(n))]
            if len(loops) != 1:
                continue
            inside = set(statements_in(loops[0]))
            if (
                inside == users
                and all(flag.guards(kernel.statement_by_id[s]) for s in inside)
                and not kernel.loaded_bounds(
                    [loops[0].iname]
                )  # these say when there is nothing left
            ):
                ending = Ending(loops[0].iname, depth, memories[flag.name])
                found[id(loops[0])] = ending
                homes.update(dict.fromkeys(inside, ending))
    for statement, ending in homes.items():
        ending.members.append(compiled[statement])
        compiled[statement].least = ending.depth
    return found


def _bodies(nodes: Tree, depth: int) -> Iterator[tuple[Tree, int]]:
    """All bodies of a tree, outer ones first, and how many loops are around each."""
    yield nodes, depth
    for node in nodes:
        if isinstance(node, Loop):
            yield from _bodies(node.body, depth + 1)


class Pieces:
    """Finds the instances of statements below a prefix, for some values of an iname.

    Where they are the same below all prefixes, they are found below one of them. ``rows`` gives
    those of a statement, for given values of names, within the ``piece``.
    """

    def __init__(
        self,
        kernel: Kernel,
        sizes: Mapping[str, int],
        rows: Callable[[Compiled, Mapping[str, int]], list[Row]],
    ) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.rows = rows
        self.piece: dict[str, tuple[int, int]] = {}
        self._all: dict[tuple[str, int], isl.Set | None] = {}
        self._first: dict[tuple[str, int], Row] = {}
        self._ends: dict[object, tuple[int, int] | None] = {}
        self._rows: dict[object, list[Row]] = {}

    def run(self, ending: Ending, prefix: Row, execute: Callable[[], None]) -> None:
        """Call ``execute`` for each piece of a loop, until no thread goes on."""
        found = [self._range(m, ending.iname, prefix) for m in ending.members]
        ends = [one for one in found if one is not None]
        low = min((first for first, _ in ends), default=0)
        high = max((last for _, last in ends), default=-1)
        length = _FIRST
        outer = self.piece
        while low <= high and ending.goes_on:
            self.piece = {**outer, ending.iname: (low, low + length - 1)}
            for member in ending.members:
                # Those with loaded bounds find their own when these are known.
                member.prefix, member.position = None, 0
                if not member.loaded:
                    member.rows = self._below(member, prefix)
            execute()
            low, length = low + length, min(4 * length, _LONGEST)
        self.piece = outer

    def _below(self, compiled: Compiled, prefix: Row) -> list[Row]:
        at = self._alike(compiled, prefix)
        if at is None:
            return []
        key = (compiled.statement.id, at, *self.piece.items())
        found = once(self._rows, key, self.rows, compiled, _named(compiled, at))
        depth = len(prefix)
        return found if at == prefix else [(*prefix, *row[depth:]) for row in found]

    def _range(self, compiled: Compiled, iname: str, prefix: Row) -> tuple[int, int] | None:
        at = self._alike(compiled, prefix)
        if at is None:
            return None
        key = (compiled.statement.id, at)
        return once(self._ends, key, self._find_range, compiled, iname, at)

    def _find_range(self, compiled: Compiled, iname: str, prefix: Row) -> tuple[int, int] | None:
        domain = self.kernel.statement_domain(compiled.statement)
        domain = _sets.at_values(domain, {**self.sizes, **_named(compiled, prefix)})
        if domain.is_empty():
            return None
        found = range_in(domain, iname)
        if found is None:
            raise InvalidArgumentError(
                f"the loop over '{iname}' has no end: its domain is unbounded",
                instead="give the iname a lower and an upper bound in its domain",
            )
        return found

    def _alike(self, compiled: Compiled, prefix: Row) -> Row | None:
        """A prefix with the same instances of a statement as ``prefix``; None if it has none."""
        key = (compiled.statement.id, len(prefix))
        every = once(self._all, key, self._prefixes, compiled, len(prefix))
        if every is None:
            return prefix
        if _sets.at_values(every, _named(compiled, prefix)).is_empty():
            return None
        return self._first.setdefault(key, prefix)

    def _prefixes(self, compiled: Compiled, depth: int) -> isl.Set | None:
        """All prefixes of a statement, if it has the same instances below each."""
        domain = _sets.at_values(self.kernel.statement_domain(compiled.statement), self.sizes)
        around = list(compiled.columns[:depth])
        inside = sorted(compiled.statement.inames.difference(around))
        outer, inner = _sets.project_out(domain, inside), _sets.project_out(domain, around)
        return outer if domain.is_equal(outer & inner) else None


def _named(compiled: Compiled, prefix: Row) -> dict[str, int]:
    return dict(zip(compiled.columns, prefix, strict=False))
