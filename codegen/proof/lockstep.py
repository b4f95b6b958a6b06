"""Symbolic execution of a combination by all threads of a block in lockstep.

The number of threads is a constant, so the code is executed for all of them at once. A value is
represented by how often it contains the partial result of each thread. Lockstep hides no errors:
accesses by two threads to one cell without a barrier in between are reported, and so are shuffles
in which a requested lane does not take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from loopkit._promotion import COMPLEXES, INT32, INTEGERS, UINT32, components_of, real_of
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.calls import SHUFFLES, VOTES
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.names import Names

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "<<": np.left_shift,
    ">>": np.right_shift,
}


class WrongError(Exception):
    """Threads combine wrong values; ``what`` happens, and in which line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


class Sums:
    """Values, one per row: how often each contains each thread's result, and which are known."""

    def __init__(self, counts: npt.NDArray[np.int16], known: Mask) -> None:
        self.counts = counts
        self.known = known

    def at(self, rows: Ints) -> Sums:
        """The values of some rows."""
        return Sums(self.counts[rows], self.known[rows])

    def with_rows(self, rows: Mask, others: Sums) -> Sums:
        """The same with some rows replaced."""
        counts = np.where(rows[:, None], others.counts, self.counts)
        return Sums(counts, np.where(rows, others.known, self.known))

    @property
    def first(self) -> Ints:
        """For each value the first thread that contributes; the number of threads if none does."""
        held, (_, count) = self.counts != 0, self.counts.shape
        found: Ints = np.where(held.any(axis=1), held.argmax(axis=1), count)
        return found

    @property
    def last(self) -> Ints:
        """For each value the last thread that contributes; -1 if none does."""
        held, (_, count) = self.counts[:, ::-1] != 0, self.counts.shape
        found: Ints = np.where(held.any(axis=1), count - 1 - held.argmax(axis=1), -1)
        return found

    def plus(self, others: Sums) -> Sums:
        """The combination of both."""
        return Sums(self.counts + others.counts, self.known & others.known)


class Scratch:
    """A shared array: the values of its cells, and the last thread that accessed each, and when."""

    def __init__(self, size: int, columns: int) -> None:
        self.cells = Sums(np.zeros((size, columns), np.int16), np.zeros(size, np.bool_))
        # Rows: written, read, added to; columns: which thread, at which block and warp barriers.
        self.last = {way: np.full((size, 3), -1) for way in ("write", "read", "atomic")}


class Lockstep:
    """The threads of one block in one combination.

    ``joins`` says whether an expression combines two operands, once each, the first on the left;
    ``is_neutral`` whether one is the neutral element; ``is_ordered`` that the operation is not
    commutative. Values may also contain ``earlier`` partial results, which precede the threads'
    own.
    """

    def __init__(
        self,
        names: Names,
        block: tuple[int, int, int],
        target: c.Name | c.Element,
        operation: str,
        joins: Callable[[c.Assign, list[c.CExpression]], bool],
        is_neutral: Callable[[c.CExpression], bool],
        is_ordered: bool = False,
        earlier: int = 0,
    ) -> None:
        self.names = names
        self.dtype = names.type_of(target)
        self.operation = operation
        self.joins = joins
        self.is_neutral = is_neutral
        self.is_ordered = is_ordered
        self.threads = int(np.prod(block))
        numbers = np.arange(self.threads, dtype=np.int64)
        self.lane, self.warp = numbers % CUDA.warp, numbers // CUDA.warp
        self.integers: dict[str, Ints] = {}
        stride = 1
        for word, extent in zip(CUDA.thread_index, block, strict=True):
            self.integers[word] = numbers // stride % extent
            stride *= extent
        self.columns = earlier + self.threads
        own = np.eye(self.threads, self.columns, earlier, dtype=np.int16)
        everywhere = own, np.ones(self.threads, np.bool_)
        self.values: dict[c.CExpression, Sums] = {target: Sums(*everywhere)}
        self.shared: dict[str, Scratch] = {}
        self.at_block = 0
        self.at_warp = np.zeros(self.threads, np.int64)
        self.line = 0

    def run(self, nodes: tuple[c.Node, ...], active: Mask) -> None:
        """Execute nodes on some of the threads."""
        for node in nodes:
            self.line = node.line
            if isinstance(node, c.Declaration):
                self.declare(node)
            elif isinstance(node, c.Let):
                self.integers[node.name] = self.held(node.ctype, self.whole(node.value))
            elif isinstance(node, c.If):
                self.run(node.body, active & (self.whole(node.condition) != 0))
            elif isinstance(node, c.For):
                self.loop(node, active)
            elif isinstance(node, c.Wait):
                self.wait(node.scope, active)
            elif isinstance(node, c.Assign):
                self.assign(node, active)
            elif isinstance(node, c.Break):
                raise self.wrong("a loop is left here")
            else:
                self.run(node.body, active)

    def wrong(self, what: str) -> WrongError:
        return WrongError(what, self.line)

    def held(self, ctype: str, values: Ints) -> Ints:
        """The values of a variable, all of which its type holds."""
        dtype = TYPES[ctype]
        if dtype not in INTEGERS:
            raise self.wrong(f"a number of threads is held as {ctype}")
        limits = np.iinfo(dtype)
        if not int(limits.min) <= int(values.min()) <= int(values.max()) <= int(limits.max):
            raise self.wrong(f"a number of threads is more than {ctype} holds")
        return values

    def declare(self, node: c.Declaration) -> None:
        if TYPES[node.ctype] != self.dtype:
            raise self.wrong(f"'{node.name}' holds partial results as {node.ctype}")
        if node.space == "shared":
            if node.name not in self.shared:
                size = int(np.prod([extent or 0 for extent in node.dimensions]))
                self.shared[node.name] = Scratch(size, self.columns)
            return
        self.values[c.Name(node.name)] = self.nothing(is_known=False)

    def nothing(self, *, is_known: bool) -> Sums:
        """An empty value for each thread, which may be unknown."""
        known = np.full(self.threads, is_known, np.bool_)
        return Sums(np.zeros((self.threads, self.columns), np.int16), known)

    def loop(self, node: c.For, active: Mask) -> None:
        lower, upper = self.whole(node.lower), self.whole(node.upper)
        if len({*lower[active], *upper[active]}) > 2:
            raise self.wrong("threads pass a loop for different numbers of times")
        if active.any():
            first, last = int(lower[active][0]), int(upper[active][0]) + node.inclusive
            for value in range(first, last, node.step):
                own = np.full(self.threads, value, np.int64)
                self.integers[node.name] = self.held(node.ctype, own)
                self.run(node.body, active)

    def wait(self, scope: str, active: Mask) -> None:
        if scope == "block":
            if not active.all():
                raise self.wrong("some threads do not reach the barrier")
            self.at_block += 1
            return
        waiting = np.isin(self.warp, self.warp[active])
        if (waiting & ~active).any():
            raise self.wrong("some threads of a warp do not reach the barrier")
        self.at_warp = self.at_warp + waiting

    def whole(self, expr: c.CExpression) -> Ints:
        """The value of an integer expression on each thread."""
        if isinstance(expr, c.Number):
            return np.full(self.threads, int(expr.value), np.int64)
        if isinstance(expr, c.Name) and expr.name in self.integers:
            return self.integers[expr.name]
        if isinstance(expr, c.Choice):
            condition = self.whole(expr.condition) != 0
            return np.where(condition, self.whole(expr.then), self.whole(expr.other))
        if isinstance(expr, c.Cast) and TYPES[expr.ctype] in (INT32, UINT32):
            found = self.whole(expr.operand)
        elif isinstance(expr, c.Unary) and expr.operator in ("~", "-"):
            value = self.whole(expr.operand)
            found = ~value if expr.operator == "~" else -value
        elif isinstance(expr, c.Binary):
            left, right = self.whole(expr.left), self.whole(expr.right)
            if expr.operator in ("/", "%"):
                if (right <= 0).any() or (left < 0).any():
                    raise self.wrong("a division is not understood")
                found = left // right if expr.operator == "/" else left % right
            elif expr.operator in _INTEGERS:
                found = _INTEGERS[expr.operator](left, right).astype(np.int64)
            else:
                raise self.wrong(f"'{expr.operator}' is not understood")
        else:
            raise self.wrong("what decides is not a number of the thread")
        dtype = self.names.type_of(expr)
        if dtype == UINT32:
            return found & (2**32 - 1)
        if dtype == INT32 and (found != found.astype(np.int32)).any():
            raise self.wrong("a number of threads is more than int holds")
        return found

    def assign(self, node: c.Assign, active: Mask) -> None:
        """Assign to a place a value, or the combination of its own value with another."""
        if any(self.is_exchange(part) for part in _skipped(node.value)):
            raise self.wrong("some lanes may skip a shuffle")
        found = self.operands(node.value)
        if node.operator == "=" and found == [node.value]:
            value = self.value(node.value, active)
        else:
            if node.operator != "=" or node.atomic:
                found = [node.target, *(x for x in found if x != node.target)]
            if len(found) > 2:  # the operation itself may name its neutral element
                found = [x for x in found if not self.is_neutral(x)]
            ways = [found] if node.atomic else [found, found[::-1]]
            ways = [way for way in ways if len(way) == 2 and self.joins(node, way)]
            if not ways:
                raise self.wrong("the line is no combination of two partial results")
            found = ways[0]
            if node.atomic:
                self.add(node.target, self.value(found[1], active), active)
                return
            first, second = (self.value(part, active) for part in found)
            if self.is_ordered and (first.last > second.first)[active].any():
                raise self.wrong("partial results are combined in another order")
            value = first.plus(second)
        if isinstance(node.target, c.Element) and node.target.array in self.shared:
            self.store(node.target, value, active)
        elif node.target in self.values:
            self.values[node.target] = self.values[node.target].with_rows(active, value)
        else:
            raise self.wrong("the line changes something else")

    def operands(self, expr: c.CExpression) -> list[c.CExpression]:
        """The partial results in an expression: places, exchanged values, choices of them."""
        found: dict[c.CExpression, None] = {}
        if self.is_value(expr):
            return [expr]
        if isinstance(expr, c.Braces) and any(map(self.is_exchange, c.walk(expr))):
            raise self.wrong("a record is made of what different lanes have")
        for child in c.children(expr):
            found.update(dict.fromkeys(self.operands(child)))
        return [*found]

    def is_value(self, expr: c.CExpression) -> bool:
        """Whether an expression is a single partial result."""
        return (
            expr in self.values
            or (isinstance(expr, c.Element) and expr.array in self.shared)
            or self.is_exchange(expr)
            or (isinstance(expr, c.Choice) and self.is_whole(expr.condition))
            or self.is_neutral(expr)
        )

    def is_whole(self, expr: c.CExpression) -> bool:
        """Whether an expression is computed from integers known on each thread."""
        named = (p for p in c.walk(expr) if isinstance(p, (c.Name, c.Element, c.Call)))
        return all(isinstance(part, c.Name) and part.name in self.integers for part in named)

    @staticmethod
    def is_exchange(expr: c.CExpression) -> bool:
        """Whether an expression reads from other lanes."""
        is_vote = isinstance(expr, c.Call) and expr.function in VOTES
        return is_vote or _shuffle(expr) is not None

    def value(self, expr: c.CExpression, active: Mask) -> Sums:
        """The partial results in an expression, on each thread."""
        if expr in self.values:
            return self.values[expr]
        if isinstance(expr, c.Element) and expr.array in self.shared:
            return self.load(expr, active)
        if isinstance(expr, c.Call) and expr.function in VOTES:
            return self.voted(expr, active)
        shuffle = _shuffle(expr)
        if shuffle is not None:
            return self.exchanged(shuffle, active)
        if isinstance(expr, c.Choice):
            first = self.whole(expr.condition) != 0
            one = self.value(expr.then, active & first)
            return self.value(expr.other, active & ~first).with_rows(first, one)
        if self.is_neutral(expr):
            return self.nothing(is_known=True)
        raise self.wrong("a value is no partial result")

    def exchanged(self, call: c.Call, active: Mask) -> Sums:
        """What lanes get by a shuffle; all lanes that they read must take part."""
        value = self.value(call.arguments[1], active)
        self.gathered(call.arguments[0], active)
        by = self.whole(call.arguments[2])
        if ((by < 0) | (by >= CUDA.warp))[active].any():
            raise self.wrong("a shuffle is from a lane that there is not")
        source = {
            "__shfl_sync": by,
            "__shfl_xor_sync": self.lane ^ by,
            "__shfl_up_sync": np.where(self.lane >= by, self.lane - by, self.lane),
            "__shfl_down_sync": np.where(self.lane + by < CUDA.warp, self.lane + by, self.lane),
        }[call.function]
        source = np.where(source < CUDA.warp, source, self.lane)
        giver = CUDA.warp * self.warp + source
        exists = giver < self.threads
        giver = np.where(exists, giver, 0)
        found = value.at(giver)
        return Sums(found.counts, found.known & exists & active[giver])

    def voted(self, call: c.Call, active: Mask) -> Sums:
        """The combination over all lanes of a warp, by a vote."""
        if VOTES[call.function] != self.operation:
            raise self.wrong(f"'{call.function}' is no {self.operation}")
        value = self.value(call.arguments[1], active)
        self.gathered(call.arguments[0], active)
        warps = (self.warp[:, None] == self.warp[None, :]) & active[None, :]
        counts = (warps.astype(np.int32) @ value.counts).astype(np.int16)
        return Sums(counts, ~(warps & ~value.known[None, :]).any(axis=1))

    def gathered(self, mask: c.CExpression, active: Mask) -> None:
        """Check that exactly the lanes in a mask take part."""
        lanes = self.whole(mask)
        for warp in np.unique(self.warp[active]):
            mine = active & (self.warp == warp)
            there = int(np.bitwise_or.reduce(np.int64(1) << self.lane[mine]))
            if set(lanes[mine]) != {there}:
                raise self.wrong("a shuffle waits for lanes that do not come, or not for all")

    def place(self, element: c.Element, active: Mask) -> tuple[Scratch, Ints]:
        """A shared array, and the cell that each thread accesses."""
        scratch = self.shared[element.array]
        (index,) = element.indices
        cells = self.whole(index)
        if ((cells < 0) | (cells >= len(scratch.cells.known)))[active].any():
            raise self.wrong(f"a thread is outside of '{element.array}'")
        return scratch, np.where(active, cells, 0)

    def load(self, element: c.Element, active: Mask) -> Sums:
        scratch, cells = self.place(element, active)
        self.meet(scratch, cells, active, ("write", "atomic"), element.array)
        self.touch(scratch, cells, active, "read")
        return scratch.cells.at(cells)

    def store(self, element: c.Element, value: Sums, active: Mask) -> None:
        scratch, cells = self.place(element, active)
        self.meet(scratch, cells, active, ("write", "atomic", "read"), element.array)
        if len(np.unique(cells[active])) < active.sum():
            raise self.wrong(f"two threads write one cell of '{element.array}'")
        self.touch(scratch, cells, active, "write")
        scratch.cells.counts[cells[active]] = value.counts[active]
        scratch.cells.known[cells[active]] = value.known[active]

    def add(self, target: c.Name | c.Element, value: Sums, active: Mask) -> None:
        """Combine atomic updates of cells by threads."""
        if not isinstance(target, c.Element) or target.array not in self.shared:
            raise self.wrong("the line adds to something else")
        scratch, cells = self.place(target, active)
        self.meet(scratch, cells, active, ("write", "read"), target.array)
        self.touch(scratch, cells, active, "atomic")
        np.add.at(scratch.cells.counts, cells[active], value.counts[active])
        np.logical_and.at(scratch.cells.known, cells[active], value.known[active])

    def meet(
        self, scratch: Scratch, cells: Ints, active: Mask, ways: tuple[str, ...], array: str
    ) -> None:
        """Raise if another thread has accessed a cell since the last barrier."""
        for way in ways:
            thread, block, warp = scratch.last[way][cells].T
            own = np.arange(self.threads)
            others = active & (thread >= 0) & (thread != own) & (block == self.at_block)
            many = thread >= self.threads  # of several threads
            apart = many | (self.warp[np.where(many, 0, thread)] != self.warp)
            bad = others & (apart | (warp == self.at_warp))
            if bad.any():
                raise self.wrong(f"two threads meet in '{array}' with no barrier between")

    def touch(self, scratch: Scratch, cells: Ints, active: Mask, way: str) -> None:
        """Record accesses to cells: by one thread, or by several since the last barrier."""
        last = scratch.last[way]
        own = np.arange(self.threads)[active]
        mine = cells[active]
        several = np.bincount(mine, minlength=len(last)) > 1
        before = (last[mine, 1] == self.at_block) & (last[mine, 0] >= 0)
        several[mine] |= before & (last[mine, 0] != own)
        last[mine, 0] = own
        last[several, 0] = self.threads
        last[mine, 1] = self.at_block
        last[mine, 2] = self.at_warp[active]


def _shuffle(expr: c.CExpression) -> c.Call | None:
    """An exchange of one value: a shuffle, or a record of shuffles of all components of one."""
    if isinstance(expr, c.Call) and expr.function in SHUFFLES:
        return expr
    if not isinstance(expr, c.Braces):
        return None
    found = set()
    dtype = TYPES[expr.ctype]
    kinds = components_of(dtype)
    if dtype in COMPLEXES:
        kinds = dict.fromkeys(("re", "im"), real_of(dtype))
    for part, (name, kind) in zip(expr.parts, kinds.items(), strict=False):
        if isinstance(part, c.Cast) and TYPES[part.ctype] == kind:
            part = part.operand
        if not isinstance(part, c.Call) or part.function not in SHUFFLES:
            return None
        mask, value, lane = part.arguments
        if not isinstance(value, c.Member) or value.name != name:
            return None
        found.add(c.Call(part.function, (mask, value.operand, lane)))
    return found.pop() if len(found) == 1 else None


def _skipped(expr: c.CExpression) -> Iterator[c.CExpression]:
    """The subexpressions that C may leave unevaluated."""
    parts = c.children(expr)
    if isinstance(expr, c.Binary) and expr.operator in ("&&", "||"):
        yield from c.walk(expr.right)
        parts = parts[:1]
    elif isinstance(expr, c.Choice):
        yield from c.walk(expr.then)
        yield from c.walk(expr.other)
        parts = parts[:1]
    for part in parts:
        yield from _skipped(part)
