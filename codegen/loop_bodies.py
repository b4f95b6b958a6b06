"""The bodies of a loop tree, the gaps between their nodes, and their iterations."""

from __future__ import annotations

from dataclasses import field
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property, memoised
from loopkit._frozen import dataclass
from loopkit._guarded import flags_of
from loopkit._poly.pairs import inside
from loopkit._tree import Loop, Tree, statements_in
from loopkit._uniform import divergent_bounds
from loopkit.codegen.conflicts import Conflicts, thread_word


@dataclass(eq=False)
class Body:
    """The nodes of one loop, or of the whole kernel, with a gap before each and one at the end.

    Gaps are numbered through all bodies; ``gap(i)`` is the one before node ``i``.
    """

    nodes: Tree
    loops: tuple[str, ...]
    parent: Body | None
    place: int
    first_gap: int
    children: dict[int, Body] = field(default_factory=dict)

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """All statements below."""
        return tuple(statements_in(self.nodes))

    def gap(self, position: int) -> int:
        """The number of a gap."""
        return self.first_gap + position

    def gaps(self, first: int, last: int) -> int:
        """The gaps from ``first`` to ``last``, both included, as bits."""
        return ((1 << (last - first + 1)) - 1) << self.gap(first) if last >= first else 0

    @cached_property
    def own_gaps(self) -> int:
        """All gaps of this body."""
        return self.gaps(0, len(self.nodes))

    @cached_property
    def chain(self) -> tuple[Body, ...]:
        """This body and those around it, outermost first."""
        return (*(self.parent.chain if self.parent else ()), self)

    def child_towards(self, inner: Body) -> int:
        """The position of the node that ``inner``, a body below this one, lies in."""
        return inner.chain[len(self.chain)].place


class Bodies:
    """All bodies of a kernel's tree, each after those below it."""

    def __init__(self, conflicts: Conflicts) -> None:
        self.conflicts = conflicts
        self.all: list[Body] = []
        self.of_statement: dict[str, tuple[Body, int]] = {}
        self.gap_count = 0
        self.root = self._make(conflicts.kernel.tree, (), None, 0)
        places = ((body, position) for body in self.all for position in range(len(body.nodes) + 1))
        self.owner = {body.gap(position): body for body, position in places}

    def _make(self, nodes: Tree, loops: tuple[str, ...], parent: Body | None, place: int) -> Body:
        body = Body(nodes, loops, parent, place, self.gap_count)
        self.gap_count += len(nodes) + 1
        for position, node in enumerate(nodes):
            if isinstance(node, Loop):
                inner = self._make(node.body, (*loops, node.iname), body, position)
                body.children[position] = inner
            elif isinstance(node, str):
                self.of_statement[node] = (body, position)
        self.all.append(body)
        return body

    def position_in(self, body: Body, statement: str) -> int:
        """The position of the node of ``body`` that a statement below it lies in."""
        own, position = self.of_statement[statement]
        return position if own is body else body.child_towards(own)

    def common(self, body: Body, statement: str) -> Body:
        """The innermost body around both ``body``'s gaps and a statement."""
        found = self.root
        for mine, its in zip(body.chain, self.of_statement[statement][0].chain, strict=False):
            if mine is not its:
                break
            found = mine
        return found

    @memoised
    def iterations(self, body: Body) -> isl.Set:
        """The iterations that execute, over the enclosing loops, block indices and sizes.

        If the body contains a barrier, all threads of a block execute all of these: the iterations
        in which some thread of the block has an instance.
        """
        hardware, instances = self.conflicts.hardware, self.conflicts.instances
        if body.parent is None:
            return self._launched()
        kernel = self.conflicts.kernel
        found: list[isl.Set] = []
        for statement in {instances.keys[s]: s for s in body.statements}.values():
            domain = instances.of[statement]
            blocks = [
                c
                for c in hardware.coordinates
                if c.kind == "g" and c.iname in kernel.statement_by_id[statement].inames
            ]
            kept = {*body.loops, *(c.iname for c in blocks)}
            others = set(_sets.names_of(domain)) & set(kernel.all_inames) - kept
            domain = _sets.project_out(domain, sorted(others))
            for c in blocks:
                word = prim.Variable(thread_word("g", c.axis, "", False))
                value = prim.Sum((word, c.lower)) if c.lower else word
                domain = _sets.project_out(domain & _sets.equality(c.iname, value), [c.iname])
            found.append(domain)
        return (reduce(isl.Set.union, found) & self._launched()).coalesce()

    def _launched(self) -> isl.Set:
        """The set of blocks of a launch."""
        found = self.conflicts.kernel.assumptions.set
        hardware = self.conflicts.hardware
        for axis in hardware.used_axes("g"):
            word = prim.Variable(thread_word("g", axis, "", False))
            found = found & inside(word, hardware.grid[axis])
        return found

    @memoised
    def always_runs(self, body: Body) -> bool:
        """Whether the body executes at least once in each iteration of the enclosing body."""
        if body.parent is None:
            return True
        if self.data_names(body):
            return False
        inner = _sets.project_out(self.iterations(body), [body.loops[-1]])
        return bool(self.iterations(body.parent).is_subset(inner))

    def data_names(self, body: Body) -> tuple[str, ...]:
        """The computed or loaded values on which the number of iterations depends."""
        return self.conflicts.kernel.loaded_bounds(body.loops)

    def divergent_names(self, body: Body) -> tuple[str, ...]:
        """Those of :meth:`data_names` that may differ between the threads of a block."""
        return divergent_bounds(self.conflicts.kernel, body.loops)

    @memoised
    def exits(self, body: Body) -> tuple[str, ...]:
        """The statements that, depending on data, end the loop of a body or an enclosing one."""
        found: dict[str, None] = {}
        for flag in flags_of(self.conflicts.kernel).values():
            for outer in body.chain:
                if flag.start.id not in outer.statements:
                    found.update((s.id, None) for s in flag.stops if s.id in outer.statements)
        return tuple(found)
