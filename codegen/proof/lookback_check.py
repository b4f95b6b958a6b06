"""Proof of scans across blocks: each block adds the totals of exactly the preceding tiles.

The proof is an induction over tiles. Assume that each preceding tile has published, with a nonzero
flag, either its own total or its inclusive prefix. Then a block finds the exclusive prefix of its
tile, and publishes what its flags say. It publishes its own total before it waits for any other
block, so that no wait is endless as lower tiles belong to blocks that have started
(:mod:`.tickets`).

Within a block the proof is an induction over windows of as many tiles as a warp has lanes. If
``r`` tiles are left, and the total of those behind them is known, one iteration adds the last of
them. It is executed symbolically for each ``r`` up to a window, and for each position of the last
tile in the window with a published prefix, or none. The flags of earlier tiles are left unknown,
and must not affect the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loopkit._program import ArrayParam, Program
from loopkit._promotion import UINT32, UINT64
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import PUBLISH, PUBLISH_WORD
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.lockstep import Ints, Lockstep, Mask, Sums, WrongError
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.tickets import parts_of, tiles_in

Joins = Callable[[c.Assign, list[c.CExpression]], bool]
Neutral = Callable[[c.CExpression], bool]


@dataclass(frozen=True)
class _Published:
    """A flag that a thread has set, and what it had stored before."""

    flags: str
    value: int
    stored: dict[str, Sums]
    line: int
    is_before: bool


@dataclass(frozen=True)
class _Read:
    """What a block reads of preceding tiles: ``prefixes`` if a flag is ``ready``, else totals.

    Both are one array if each flag shares a word with its value.
    """

    flags: str
    ready: int
    prefixes: str
    aggregates: str

    @property
    def arrays(self) -> set[str]:
        return {self.flags, self.prefixes, self.aggregates}


class LookBack(Lockstep):
    """The threads of one block in a scan across blocks; ``tile`` names the number of its tile.

    The first column of a value counts the total of all preceding tiles.
    """

    def __init__(
        self,
        names: Names,
        block: tuple[int, int, int],
        target: c.Name | c.Element,
        operation: str,
        joins: Joins,
        is_neutral: Neutral,
        is_ordered: bool,
        tile: str,
    ) -> None:
        super().__init__(names, block, target, operation, joins, is_neutral, is_ordered, 1)
        self.tile = c.Name(tile)
        self.stored: dict[str, Sums] = {}
        self.published: list[_Published] = []
        self.read: _Read | None = None

    def assign(self, node: c.Assign, active: Mask) -> None:
        target = node.target
        is_global = isinstance(target, c.Element) and self.names.places[target.array] == "global"
        if not is_global or not isinstance(target, c.Element):
            super().assign(node, active)
            return
        if target.indices != (self.tile,):
            raise self.wrong(f"a block changes a cell of '{target.array}' that is another tile's")
        if active.sum() != 1:
            raise self.wrong(f"several threads change one cell of '{target.array}', or none does")
        if node.atomic == PUBLISH and isinstance(node.value, c.Number):
            earlier, stored = self.read is None, dict(self.stored)
            value = int(node.value.value)
            self.published.append(_Published(target.array, value, stored, node.line, earlier))
            return
        if node.atomic == PUBLISH_WORD:
            self.published.append(self.word(target.array, node, active))
            return
        if node.atomic or node.operator != "=" or target.array in self.stored:
            raise self.wrong(f"'{target.array}' is changed, which other blocks may read by now")
        self.stored[target.array] = self.value(node.value, active).at(np.flatnonzero(active))

    def word(self, array: str, node: c.Assign, active: Mask) -> _Published:
        """A flag that a thread publishes in one word with a value."""
        call = node.value
        if not isinstance(call, c.Call) or call.function != "lk_flagged":
            raise self.wrong("what is published is no flag with a value")
        flag, value = call.arguments
        if not isinstance(flag, c.Number) or self.names.type_of(value) != self.dtype:
            raise self.wrong("what is published is no flag with a value")
        stored = {array: self.value(value, active).at(np.flatnonzero(active))}
        return _Published(array, int(flag.value), stored, node.line, self.read is None)

    def loop(self, node: c.For, active: Mask) -> None:
        """The loop over windows of tiles; others are executed."""
        if node.upper != c.Cast("int", self.tile):
            super().loop(node, active)
            return
        lanes = np.flatnonzero(active)
        warp = self.warp[lanes]
        if not len(lanes) or (warp != warp[0]).any() or (self.warp == warp[0]).sum() != len(lanes):
            raise self.wrong("the threads that look back are not one warp")
        if self.read is not None:
            raise self.wrong("a block looks back twice")
        changed = [n.target for n in c.statements(node.body) if isinstance(n, c.Assign)]
        begun = [
            target
            for target in dict.fromkeys(changed)
            if target in self.values and self.is_nothing(target, lanes)
        ]
        if len(begun) != 1 or not isinstance(begun[0], c.Name):
            raise self.wrong("what tiles before have is not added to what changes nothing")
        window = _Window(self, node, begun[0], lanes)
        self.read = window.checked()
        for target in changed:
            if target in self.values:
                self.values[target] = self.nothing(is_known=False)
        self.values[begun[0]].counts[lanes[-1], 0] = 1
        self.values[begun[0]].known[lanes[-1]] = True

    def is_nothing(self, name: c.Name | c.Element, lanes: Ints) -> bool:
        """Whether lanes know that a variable holds no partial result."""
        value = self.values[name]
        return bool(value.known[lanes].all() and not value.counts[lanes].any())

    def finish(self, program: Program, line: int) -> None:
        """Check the published values against the assumption that the induction makes about them.

        No other memory may change than the arrays through which tiles publish.
        """
        read = self.read
        if read is None:
            raise WrongError("a block does not look back at those before it", line)
        if not any(one.is_before for one in self.published):
            raise WrongError("a block waits for others before it has published anything", line)
        if not any(one.value == read.ready for one in self.published):
            raise WrongError("no block ever publishes what all up to it have", line)
        others = set(self.stored) - (read.arrays - {read.flags})
        if others:
            raise WrongError(f"'{min(others)}' is changed, and holds no values of tiles", line)
        own = np.ones(self.columns, np.int16)
        for one in self.published:
            is_whole = one.value == read.ready
            due = own if is_whole else np.where(np.arange(self.columns) > 0, own, 0)
            found = one.stored.get(read.prefixes if is_whole else read.aggregates)
            if one.flags != read.flags or one.value == 0:
                raise WrongError("what is raised is no flag that others wait for", one.line)
            if found is None:
                raise WrongError(
                    "a flag is set before the value that it announces is stored", one.line
                )
            if not found.known.all() or (found.counts != due).any():
                raise WrongError(
                    "a flag is raised, and what is stored is not what it says", one.line
                )
        self.check_arrays(program, read, line)

    def check_arrays(self, program: Program, read: _Read, line: int) -> None:
        """Flags are cleared before each launch, and arrays have a cell for each tile of a row."""
        count = tiles_in(program, self.tile.name)
        given = {p.name: p for p in program.params if isinstance(p, ArrayParam)}
        is_of_words = len(read.arrays) == 1
        for name in sorted(read.arrays):
            param = given.get(name)
            is_flag = name == read.flags
            dtype = (UINT64 if is_of_words else UINT32) if is_flag else self.dtype
            if param is None or param.dtype != dtype or param.shape != (count,):
                raise WrongError(f"'{name}' has no cell for each tile", line)
            if param.role != ("cleared" if is_flag else "state"):
                raise WrongError(
                    f"no call clears '{name}'" if is_flag else f"'{name}' is not kept", line
                )
        if not is_of_words and len(read.arrays) < 3:
            raise WrongError("what tiles publish lies in one array", line)


class _Window(Lockstep):
    """One iteration of the loop over windows, for many cases at once: one case per warp.

    In a case, ``left`` tiles remain to be added, and ``stop`` is the last lane that finds a
    published prefix; -1 for none. The columns are the tiles before a window, one for each lane's
    tile in it, and the tiles behind it.
    """

    def __init__(self, outer: LookBack, node: c.For, total: c.Name, lanes: Ints) -> None:
        self.width = width = len(lanes)
        cases = [
            (left, stop)
            for left in range(1, width + 1)
            for stop in (-1, *range(width - left, width))
        ]
        threads = len(cases) * CUDA.warp
        how = outer.joins, outer.is_neutral, outer.is_ordered, width + 2 - threads
        super().__init__(outer.names, (threads, 1, 1), total, outer.operation, *how)
        self.node, self.total = node, total
        self.active = self.lane < width
        rows = np.minimum(self.lane, width - 1)
        self.integers = {name: value[lanes][rows] for name, value in outer.integers.items()}
        left, stop = (np.repeat([case[n] for case in cases], CUDA.warp) for n in (0, 1))
        self.tile, self.name = outer.tile, c.Name(node.name)
        self.at = left - width + self.lane
        self.left = left
        # Where there is no tile, the text may go on as if all before had been published.
        self.stop = stop
        self.values = {name: self.nothing(is_known=False) for name in outer.values}
        behind = self.nothing(is_known=True)
        behind.counts[:, -1] = 1
        self.values[total] = behind
        self.reads: _Read | None = None
        self.ended = np.zeros(self.threads, np.bool_)
        self.gone = False
        self.spot: c.Name | None = None
        self.word: tuple[c.Name, str, Ints] | None = None
        self.flag: tuple[c.Name, str, Ints] | None = None
        self.ready: tuple[c.Name, int] | None = None

    def checked(self) -> _Read:
        """What it reads, where each case adds what it should; raises :class:`WrongError`."""
        node, width = self.node, self.width
        self.line = node.line
        if node.lower != c.Number(0, "int") or node.inclusive or node.step != width:
            raise self.wrong("blocks do not look back window by window")
        first, *rest = node.body or (None,)
        if not isinstance(first, c.Let) or not self.is_place(first.value):
            raise self.wrong("lanes do not look at the tiles before, one each")
        self.spot = c.Name(first.name)
        if not all(
            self.uses_place(expr) for n in c.statements(tuple(rest)) for expr in parts_of(n)
        ):
            raise self.wrong("what is added depends on how many tiles there are")
        self.run(tuple(rest), self.active)
        if self.reads is None:
            raise self.wrong("nothing of the tiles before is read")
        self.result()
        return self.reads

    def is_place(self, expr: c.CExpression) -> bool:
        """``tile - width - name + lane``."""
        tile = c.Cast("int", self.tile)
        if not isinstance(expr, c.Binary) or expr.operator != "+":
            return False
        start = c.Binary("-", tile, c.Number(self.width, "int"))
        if expr.left != c.Binary("-", start, self.name):
            return False
        return bool((self.whole(expr.right) == self.lane)[self.active].all())

    def uses_place(self, expr: c.CExpression) -> bool:
        """Whether places are compared with 0 alone, and tiles are not named."""
        if isinstance(expr, c.Binary) and expr.left == self.spot and expr.operator in ("<", ">="):
            return expr.right == c.Number(0, "int")
        if isinstance(expr, c.Element) and expr.indices == (self.spot,):
            return self.names.places[expr.array] == "global"
        if isinstance(expr, c.Name):
            return expr not in (self.spot, self.tile, self.name)
        return all(map(self.uses_place, c.children(expr)))

    def run(self, nodes: tuple[c.Node, ...], active: Mask) -> None:
        for node in nodes:
            self.line = node.line
            if self.gone:
                raise self.wrong("something is done behind where the loop is left")
            if isinstance(node, c.Let) and self.takes_flags(node, active):
                continue
            if isinstance(node, c.Break):
                self.ended |= active
            else:
                super().run((node,), active)
        self.gone = self.gone or bool(self.ended.any())

    def gathered(self, mask: c.CExpression, active: Mask) -> None:
        """The mask of the lanes that exist, the same for all warps."""
        if (active != self.active).any() or (
            self.whole(mask)[active] != (1 << self.width) - 1
        ).any():
            raise self.wrong("a shuffle waits for lanes that do not come, or not for all")

    def takes_flags(self, node: c.Let, active: Mask) -> bool:
        """A flag that a lane awaits, or which lanes of the warp find everything published."""
        value, dtype = node.value, TYPES[node.ctype]
        awaited = isinstance(value, c.Choice) and _awaited(value.then)
        if isinstance(value, c.Choice) and awaited:
            there, other = self.whole(value.condition) != 0, value.other
            is_word = awaited == "lk_await_word"
            if is_word and isinstance(other, c.Call) and other.function == "lk_flagged":
                other = other.arguments[0]
            if self.flag is not None or self.word is not None or not isinstance(other, c.Number):
                raise self.wrong("flags are awaited twice")
            if (there & (self.at < 0))[active].any() or not active[self.active].all():
                raise self.wrong("a lane awaits the flag of a tile that there is not")
            if dtype != (UINT64 if is_word else UINT32):
                raise self.wrong(f"a flag is held as {node.ctype}")
            found = c.Name(node.name), _flags(value.then), np.where(there, -1, int(other.value))
            self.word, self.flag = (found, None) if is_word else (None, found)
            return True
        if self.word is not None and value == _flag_in(self.word[0]):
            if dtype != UINT32:
                raise self.wrong(f"a flag is held as {node.ctype}")
            self.flag = c.Name(node.name), *self.word[1:]
            return True
        if isinstance(value, c.Call) and value.function == "__ballot_sync":
            mask, test = value.arguments
            self.gathered(mask, active)
            level = self.level(test)
            is_for_all = bool(active[self.active].all()) and dtype == UINT32
            if self.ready is not None or level is None or not is_for_all:
                raise self.wrong("lanes do not agree on who finds everything published")
            self.ready = c.Name(node.name), level
            return True
        return False

    def level(self, expr: c.CExpression) -> int | None:
        """The value of which ``flag == value`` asks."""
        if self.flag is None or not isinstance(expr, c.Binary) or expr.operator != "==":
            return None
        is_it = expr.left == self.flag[0] and isinstance(expr.right, c.Number)
        return int(expr.right.value) if is_it and isinstance(expr.right, c.Number) else None

    @property
    def highest(self) -> Ints:
        """The last lane of a warp whose flag says that all up to it is published; -1 for none."""
        assert self.flag is not None and self.ready is not None
        value = self.flag[2]
        beyond = np.where(value == self.ready[1], self.lane, -1)
        beyond = np.where(self.active, beyond, -1).reshape(-1, CUDA.warp).max(axis=1)
        found: Ints = np.maximum(np.repeat(beyond, CUDA.warp), self.stop)
        return found

    def whole(self, expr: c.CExpression) -> Ints:
        if self.spot is not None and isinstance(expr, c.Binary) and expr.left == self.spot:
            found = self.at >= 0 if expr.operator == ">=" else self.at < 0
            return found.astype(np.int64)
        if self.ready is not None and isinstance(expr, c.Binary):
            name, one, none = self.ready[0], c.Number(1, "uint"), c.Number(0, "uint")
            if expr == c.Binary("!=", name, none):
                return (self.highest >= 0).astype(np.int64)
            left = expr.left
            if expr.operator == ">" and expr.right == one and isinstance(left, c.Binary):
                is_lane = left.operator == ">>" and left.left == name
                if is_lane and (super().whole(left.right) == self.lane)[self.active].all():
                    return (self.highest > self.lane).astype(np.int64)
        return super().whole(expr)

    def is_value(self, expr: c.CExpression) -> bool:
        return self.is_in_word(expr) or super().is_value(expr)

    def is_in_word(self, expr: c.CExpression) -> bool:
        """Whether an expression is the value in the word that a lane awaited."""
        if self.word is None or not isinstance(expr, c.Call):
            return False
        return expr.function.startswith("lk_value<") and expr.arguments == (self.word[0],)

    def is_whole(self, expr: c.CExpression) -> bool:
        known = {self.spot, self.flag and self.flag[0], self.ready and self.ready[0]}
        parts = (p for p in c.walk(expr) if isinstance(p, (c.Name, c.Element, c.Call)))
        return all(isinstance(p, c.Name) and (p in known or p.name in self.integers) for p in parts)

    def value(self, expr: c.CExpression, active: Mask) -> Sums:
        if self.is_in_word(expr):
            return self.in_word(expr, active)
        if isinstance(expr, c.Choice) and self.level(expr.condition) is not None:
            return self.chosen(expr, active)
        return super().value(expr, active)

    def in_word(self, expr: c.CExpression, active: Mask) -> Sums:
        """What a tile has published together with its flag."""
        if self.ready is None or self.word is None:
            raise self.wrong(
                "a value is taken before lanes agree on who finds everything published"
            )
        if self.names.type_of(expr) != self.dtype:
            raise self.wrong("a value is taken for one of another type")
        array = self.word[1]
        return self.found(_Read(array, self.ready[1], array, array), active)

    def chosen(self, expr: c.Choice, active: Mask) -> Sums:
        """What a tile has published in one of two arrays, as its flag says."""
        level, then, other = self.level(expr.condition), expr.then, expr.other
        assert self.flag is not None and level is not None
        if self.ready is None or level != self.ready[1] or self.word is not None:
            raise self.wrong("flags are taken for something else than lanes agreed on")
        if not isinstance(then, c.Element) or not isinstance(other, c.Element):
            raise self.wrong("what a tile has published is not read")
        if {then.indices, other.indices} != {(self.spot,)}:
            raise self.wrong("what another tile has published is read")
        return self.found(_Read(self.flag[1], level, then.array, other.array), active)

    def found(self, read: _Read, active: Mask) -> Sums:
        """What tiles have published, as their flags say."""
        if self.reads not in (None, read):
            raise self.wrong("what another tile has published is read")
        assert self.flag is not None
        self.reads = read
        is_awaited = (self.flag[2] == -1) & (self.at >= 0)
        if (active & ~is_awaited).any():
            raise self.wrong("something is read that nobody waited for")
        counts = np.zeros((self.threads, self.columns), np.int16)
        rows = np.arange(self.threads)
        counts[rows, 1 + np.minimum(self.lane, self.width - 1)] = 1
        columns = np.arange(self.columns)[None, :] - 1
        there = (columns >= (self.width - self.left)[:, None]) & (columns <= self.lane[:, None])
        before = (columns == -1) & (self.left == self.width)[:, None]
        all_ = (there & (columns >= 0)) | before
        counts = np.where((self.lane == self.stop)[:, None], all_, counts).astype(np.int16)
        return Sums(counts, self.lane >= self.stop)

    def result(self) -> None:
        """The last lane has taken in the window, and leaves the loop with everything alone."""
        value = self.values[self.total]
        last = self.lane == self.width - 1
        ended = self.ended.reshape(-1, CUDA.warp)[:, : self.width]
        if (ended.any(axis=1) != ended.all(axis=1)).any():
            raise self.wrong("some lanes leave the loop, and others go on")
        columns = np.arange(self.columns)[None, :] - 1
        due = columns >= (self.width - self.left)[:, None]
        before = (columns == -1) & (self.left == self.width)[:, None]
        due = due | (before & self.ended[:, None])
        bad = last & (~value.known | (value.counts != due).any(axis=1))
        if bad.any():
            case = int(np.argmax(bad))
            left, stop = int(self.left[case]), int(self.stop[case])
            known = (
                f"of which number {stop - self.width + left + 1} knows all"
                if stop >= 0
                else ("none of which knows all before it")
            )
            raise self.wrong(f"a block adds up other things than the {left} tiles before, {known}")


def _awaited(expr: c.CExpression) -> str:
    """The function that waits for a flag; "" where none does."""
    is_it = isinstance(expr, c.Call) and expr.function in ("lk_await", "lk_await_word")
    return expr.function if is_it and isinstance(expr, c.Call) else ""


def _flag_in(word: c.Name) -> c.CExpression:
    """The flag of a word with a value."""
    return c.Cast("unsigned int", c.Binary(">>", word, c.Number(32, "int")))


def _flags(expr: c.CExpression) -> str:
    """The array of the flag that is awaited; subscripts were looked at before."""
    cell = next(part for part in c.walk(expr) if isinstance(part, c.Element))
    return cell.array
