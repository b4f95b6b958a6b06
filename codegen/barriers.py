"""Where threads of a block must wait for each other.

A conflict is a pair of accesses to one cell of shared or global memory, one
of them a write, by different threads of one block.  Each conflict needs a
barrier between its two sides: in the loop body that both sit in, or at the
end of a loop's body when the second side belongs to a later iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._expression import substitute
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._tree import Loop, Node, Tree, statements_in
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.instances import Instances


@dataclass(frozen=True)
class BarrierNode:
    """A barrier between two nodes of a tree; ``reason`` says what it orders."""

    reason: str


@dataclass(frozen=True)
class GuardedLoop:
    """A loop whose body holds barriers among its nodes."""

    iname: str
    body: tuple[PlacedNode, ...]


PlacedNode = str | BarrierNode | GuardedLoop
Placed = tuple[PlacedNode, ...]


@dataclass(frozen=True)
class Access:
    """One use of an array by a statement."""

    statement: str
    array: str
    indices: tuple[Expression, ...]
    is_write: bool


class Conflicts:
    """Decides whether two accesses may meet on different threads of one block."""

    def __init__(self, kernel: Kernel, hardware: Hardware, instances: Instances) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self.instances = instances
        self.accesses = {s.id: self._accesses_of(s) for s in kernel.statements}
        self.accesses_by_array: dict[str, list[Access]] = {}
        for accesses in self.accesses.values():
            for access in accesses:
                self.accesses_by_array.setdefault(access.array, []).append(access)
        self._known: dict[tuple[object, ...], bool] = {}
        self._sides: dict[tuple[object, ...], tuple[isl.Set, tuple[Expression, ...]]] = {}
        self.single_thread = hardware.block == (1, 1, 1)
        self._owned: dict[str, bool] = {}

    def _crosses_threads(self, name: str) -> bool:
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is not None:
            return temporary.address_space in (AddressSpace.LOCAL, AddressSpace.GLOBAL)
        array = self.kernel.arg_by_name.get(name)
        return isinstance(array, ArrayArg) and bool(self.kernel.writers.get(name))

    def _accesses_of(self, statement: Statement) -> tuple[Access, ...]:
        found: dict[Access, None] = {}
        name, indices = statement.write
        if self._crosses_threads(name):
            found[Access(statement.id, name, indices, True)] = None
        for name, indices in statement.reads:
            if self._crosses_threads(name):
                found[Access(statement.id, name, indices, False)] = None
        return tuple(found)

    def between(
        self, first: Access, second: Access, shared: frozenset[str], carried: str | None
    ) -> bool:
        """Whether ``first`` conflicts with ``second``.

        ``shared`` are sequential inames with equal values on both sides;
        ``carried`` the iname that is larger on the second side.
        """
        if self.single_thread or first.array != second.array:
            return False
        if not (first.is_write or second.is_write):
            return False
        if self._is_owned(first.array):
            return False
        key = (self._kind(first), self._kind(second), shared, carried)
        if key not in self._known:
            self._known[key] = self._meet(first, second, shared, carried)
        return self._known[key]

    def _kind(self, access: Access) -> tuple[object, ...]:
        """What decides an access's conflicts; statements that differ elsewhere share it."""
        number = self.instances.keys[access.statement]
        inames = self.kernel.statement_by_id[access.statement].inames
        return (access.array, access.indices, access.is_write, number, inames)

    def _is_owned(self, array: str) -> bool:
        """Whether the indices that all accesses of ``array`` share already tell threads apart.

        Then no cell is ever touched by two threads of a block, and no pair needs a look.
        """
        if array not in self._owned:
            found = self.accesses_by_array[array]
            statements = self.kernel.statement_by_id
            alike = len({self._parallel(statements[a.statement].inames) for a in found}) == 1
            columns = list(zip(*(a.indices for a in found), strict=True))
            same = [axis for axis, column in enumerate(columns) if len(set(column)) == 1]
            owned = alike and bool(same) and len(found) > 1
            if owned:
                kept = tuple(found[0].indices[axis] for axis in same)
                kinds = {self._kind(a)[3:]: a for a in found}.values()
                probes = [Access(a.statement, array, kept, True) for a in kinds]
                pairs = [(a, b) for i, a in enumerate(probes) for b in probes[i:]]
                owned = len(pairs) <= 10 and not any(
                    self._meet(a, b, frozenset(), None) for a, b in pairs
                )
            self._owned[array] = owned
        return self._owned[array]

    def _parallel(self, inames: frozenset[str]) -> frozenset[str]:
        return inames & (self.hardware.local_inames | self.hardware.group_inames)

    def side(self, access: Access, suffix: str) -> tuple[isl.Set, tuple[Expression, ...]]:
        """The access's instances and indices, with ``suffix`` behind every iname (memoised)."""
        key = (*self._kind(access), suffix)
        if key not in self._sides:
            self._sides[key] = self._make_side(access, suffix)
        return self._sides[key]

    def _make_side(self, access: Access, suffix: str) -> tuple[isl.Set, tuple[Expression, ...]]:
        statement = self.kernel.statement_by_id[access.statement]
        domain = self.instances.of(access.statement)
        names = {i: i + suffix for i in self.kernel.all_inames}
        inames: Mapping[str, Expression] = {i: prim.Variable(n) for i, n in names.items()}
        domain = _sets.rename(domain, names)
        parallel = set(statement.inames)
        for kind in "gl":
            axes: tuple[Expression, ...]
            axes = self.hardware.grid if kind == "g" else self.hardware.block
            for axis in self.hardware.used_axes(kind):
                domain = domain & self._axis_value(parallel, access, kind, axis, axes, suffix)
        return domain, tuple(substitute(i, inames) for i in access.indices)

    def _axis_value(
        self,
        inames: set[str],
        access: Access,
        kind: str,
        axis: int,
        extents: tuple[Expression, ...],
        suffix: str,
    ) -> isl.Set:
        """The value of a hardware axis: an iname's, any thread's, or the one chosen thread's."""
        word = prim.Variable(f"_{kind}{axis}{suffix}")
        for coordinate in self.hardware.coordinates:
            if (coordinate.kind, coordinate.axis) == (kind, axis) and coordinate.iname in inames:
                shifted = prim.Sum((prim.Variable(coordinate.iname + suffix), -coordinate.lower))
                return _sets.equality(word.name, shifted)
        if access.is_write:
            return _sets.equality(word.name, 0)
        inside = prim.LogicalAnd(
            (
                prim.Comparison(word, ">=", 0),
                prim.Comparison(word, "<", extents[axis]),
            )
        )
        return _sets.condition_set(inside)

    def _meet(
        self, first: Access, second: Access, shared: frozenset[str], carried: str | None
    ) -> bool:
        one, one_indices = self.side(first, "__1")
        two, two_indices = self.side(second, "__2")
        both = one & two & self.kernel.assumptions.set
        for axis in self.hardware.used_axes("g"):
            both = both & _sets.equality(f"_g{axis}__1", prim.Variable(f"_g{axis}__2"))
        for iname in shared:
            both = both & _sets.equality(f"{iname}__1", prim.Variable(f"{iname}__2"))
        if carried is not None:
            later = prim.Comparison(
                prim.Variable(f"{carried}__1"), "<", prim.Variable(f"{carried}__2")
            )
            both = both & _sets.condition_set(later)
        for a, b in zip(one_indices, two_indices, strict=True):
            try:
                both = both & _sets.pw_affine(a).eq_set(_sets.pw_affine(b))
            except _sets.NotAffineError:
                continue  # may be any cell along this axis
        if both.is_empty():
            return False
        for axis in self.hardware.used_axes("l"):
            differ = prim.Comparison(
                prim.Variable(f"_l{axis}__1"), "!=", prim.Variable(f"_l{axis}__2")
            )
            if not (both & _sets.condition_set(differ)).is_empty():
                return True
        return False


class _Placer:
    def __init__(self, conflicts: Conflicts) -> None:
        self.conflicts = conflicts

    def accesses(self, nodes: Node | Tree) -> list[Access]:
        return [a for s in statements_in(nodes) for a in self.conflicts.accesses[s]]

    def clash(
        self,
        earlier: list[Access],
        later: list[Access],
        shared: frozenset[str],
        carried: str | None = None,
    ) -> list[tuple[Access, Access]]:
        if not earlier or not later:
            return []
        by_array: dict[str, list[Access]] = {}
        for access in earlier:
            by_array.setdefault(access.array, []).append(access)
        return [
            (a, b)
            for b in later
            for a in by_array.get(b.array, ())
            if self.conflicts.between(a, b, shared, carried)
        ]

    def place(
        self, nodes: Tree, outer: frozenset[str]
    ) -> tuple[list[PlacedNode], list[Access], list[Access], bool]:
        """The nodes with barriers, the accesses before the first and after the last of them."""
        placed: list[PlacedNode] = []
        head: list[Access] = []
        tail: list[Access] = []
        any_barrier = False
        for node in nodes:
            own = self.accesses(node)
            clashes = self.clash(tail, own, outer)
            if clashes:
                placed.append(BarrierNode(_reason(clashes)))
                tail = []
                any_barrier = True
            if isinstance(node, Loop):
                body, body_head, body_tail, inner = self.loop(node, outer)
                placed.append(GuardedLoop(node.iname, tuple(body)))
                if not any_barrier:
                    head += body_head if inner else own
                # The loop may not run at all, so what came before it stays pending.
                tail = tail + (body_tail if inner else own)
                any_barrier = any_barrier or inner
            else:
                placed.append(node)
                if not any_barrier:
                    head += own
                tail = tail + own
        return placed, head, tail, any_barrier

    def loop(
        self, node: Loop, outer: frozenset[str]
    ) -> tuple[list[PlacedNode], list[Access], list[Access], bool]:
        body, head, tail, inner = self.place(node.body, outer | {node.iname})
        clashes = self.clash(tail, head, outer, node.iname)
        if clashes:
            body.append(BarrierNode(_reason(clashes, node.iname)))
            # The loop is left through this barrier, but entered without one.
            return body, head, [], True
        return body, head, tail, inner


def _reason(clashes: list[tuple[Access, Access]], carried: str | None = None) -> str:
    parts: dict[tuple[str, str], list[str]] = {}
    for before, after in clashes:
        key = ("written" if before.is_write else "read", "written" if after.is_write else "read")
        arrays = parts.setdefault(key, [])
        if before.array not in arrays:
            arrays.append(before.array)
    where = "below" if carried is None else f"in the next {carried}"
    texts = [f"{', '.join(a)} {first} above, {then} {where}" for (first, then), a in parts.items()]
    return "; ".join(texts)


def place_barriers(conflicts: Conflicts) -> Placed:
    """The kernel's tree with a barrier wherever data crosses threads of a block."""
    placed, _, _, _ = _Placer(conflicts).place(conflicts.kernel.tree, frozenset())
    return tuple(placed)
