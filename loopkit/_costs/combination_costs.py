"""The cost of combining partial results across threads: operations, shuffles, barriers, memory.

The number of threads of a block is a constant, so one combination is simulated for all threads, and
its operations are counted on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from loopkit._cached import memoised
from loopkit._costs.warps import memory_of
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._promotion import UINT32
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.calls import SHUFFLES, VOTES
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.lookback import PREFIX
from loopkit.codegen.proof.lockstep import Ints, Lockstep, Mask, Sums
from loopkit.codegen.proof.names import Names


@dataclass(frozen=True)
class Combination:
    """What one block does to combine the partial results of its threads once.

    ``operations`` are those that join two values, of all threads; ``shuffles`` and votes are of
    warps, ``requests`` and ``wavefronts`` those of shared memory, some of which store;
    ``barriers`` how often the block waits.  A block that looks back at those before it stores
    ``published`` bytes for others, and reads ``looked_at`` of theirs in a window; its operations
    and shuffles are those of one window, which is all where blocks come one by one.
    """

    operations: int
    shuffles: int
    requests: int
    wavefronts: int
    barriers: int
    requests_stored: int
    wavefronts_stored: int
    published: int = 0
    looked_at: int = 0


class _Counting(Lockstep):
    """Counts what threads do."""

    def __init__(self, names: Names, block: tuple[int, int, int], node: c.Combine, size: int):
        super().__init__(names, block, node.target, "", lambda *_: True, lambda _: False)
        self.size = size
        self.total: Counter[str] = Counter()

    def _warps(self, active: Mask) -> int:
        return len(np.unique(self.warp[active]))

    def is_neutral_value(self, expr: c.CExpression) -> bool:
        """Whether an expression is a constant: the only ones here are neutral."""
        return not any(isinstance(part, (c.Name, c.Element, c.Choice)) for part in c.walk(expr))

    def run(self, nodes: tuple[c.Node, ...], active: Mask) -> None:
        """Nodes; a block looks back at one window, of which lanes look at a tile each."""
        for node in nodes:
            if isinstance(node, c.For) and _is_of_tiles(node):
                self.run(node.body, active)
            elif isinstance(node, c.Let) and _awaits(node.value):
                size = TYPES[node.ctype].itemsize
                self.total["looked_at"] += int(active.sum()) * size
                flag = PREFIX << 32 if size > UINT32.itemsize else PREFIX
                self.integers[node.name] = np.full(self.threads, flag)
            elif isinstance(node, c.Let) and isinstance(node.value, c.Call):
                self.total["shuffles"] += self._warps(active)
                self.integers[node.name] = np.zeros(self.threads, np.int64)
            elif isinstance(node, c.Let) and not self.is_whole(node.value):
                self.integers[node.name] = self.lane  # the place of a tile
            elif not isinstance(node, c.Break):
                super().run((node,), active)

    def value(self, expr: c.CExpression, active: Mask) -> Sums:
        if isinstance(expr, c.Element) and self.names.places[expr.array] == "global":
            self.total["looked_at"] += int(active.sum()) * self.size
            return self.nothing(is_known=True)
        if _is_in_word(expr):
            return self.nothing(is_known=True)
        return super().value(expr, active)

    def is_value(self, expr: c.CExpression) -> bool:
        is_global = isinstance(expr, c.Element) and self.names.places[expr.array] == "global"
        return is_global or _is_in_word(expr) or super().is_value(expr)

    def assign(self, node: c.Assign, active: Mask) -> None:
        target = node.target
        if isinstance(target, c.Element) and self.names.places[target.array] == "global":
            own = self.names.type_of(target).itemsize
            self.total["published"] += int(active.sum()) * own
            return
        calls = (part for part in c.walk(node.value) if isinstance(part, c.Call))
        exchanges = sum(call.function in SHUFFLES or call.function in VOTES for call in calls)
        self.total["shuffles"] += exchanges * self._warps(active)
        found = self.operands(node.value)
        if node.operator != "=" or found != [node.value]:
            self.total["operations"] += int(active.sum())
        super().assign(node, active)

    def voted(self, call: c.Call, active: Mask) -> Sums:
        everywhere = np.ones((self.threads, self.threads), np.int16)
        return Sums(everywhere, np.ones(self.threads, np.bool_))

    def wait(self, scope: str, active: Mask) -> None:
        self.total["barriers"] += scope == "block"
        super().wait(scope, active)

    def load(self, element: c.Element, active: Mask) -> Sums:
        self._request(element, active, is_write=False)
        return super().load(element, active)

    def store(self, element: c.Element, value: Sums, active: Mask) -> None:
        self._request(element, active, is_write=True)
        super().store(element, value, active)

    def add(self, target: c.Name | c.Element, value: Sums, active: Mask) -> None:
        assert isinstance(target, c.Element)
        self._request(target, active, is_write=True, is_atomic=True)
        super().add(target, value, active)

    def _request(
        self, element: c.Element, active: Mask, *, is_write: bool, is_atomic: bool = False
    ) -> None:
        cells: Ints = self.whole(element.indices[0])
        shape = -(-self.threads // CUDA.warp), CUDA.warp
        addresses, used = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        addresses[self.warp, self.lane], used[self.warp, self.lane] = cells * self.size, active
        runs = used.any(axis=1)
        requests, memory = int(runs.sum()), memory_of("shared", is_write=is_write)
        passes = int(memory.pieces(addresses[runs], used[runs], self.size)[0].sum())
        for row, lanes in zip(addresses, used, strict=True) if is_atomic else ():
            # Updates of one cell take turns.
            passes += max(Counter(row[lanes].tolist()).values(), default=1) - 1
        self.total.update(requests=requests, wavefronts=passes)
        if is_write:
            self.total.update(requests_stored=requests, wavefronts_stored=passes)


def _is_of_tiles(node: c.For) -> bool:
    """Whether a loop is over windows of tiles."""
    parts = (p for expr in c.expressions(node) for p in c.walk(expr))
    return any(isinstance(part, c.Cast) for part in parts)


def _awaits(expr: c.CExpression) -> bool:
    waits = ("lk_await", "lk_await_word")
    return any(isinstance(p, c.Call) and p.function in waits for p in c.walk(expr))


def _is_in_word(expr: c.CExpression) -> bool:
    return isinstance(expr, c.Call) and expr.function.startswith("lk_value<")


@memoised
def combinations_in(kernel: Kernel) -> Mapping[str, Combination]:
    """What one block does for each combination of a kernel, by its statement (memoised)."""
    program = kernel.program()
    function = program.tree
    if function is None:
        return {}
    nodes = [n for n in c.statements(function.body) if isinstance(n, c.Combine)]
    names = Names(function) if nodes else None
    found: dict[str, Combination] = {}
    for node in nodes:
        assert names is not None and node.statement is not None
        target = node.target.name if isinstance(node.target, c.Name) else node.target.array
        size = TYPES[names.declarations[target].ctype].itemsize
        counting = _Counting(names, program.block, node, size)
        counting.is_neutral = counting.is_neutral_value
        counting.run(node.body, np.ones(counting.threads, np.bool_))
        found[node.statement] = Combination(
            **{field: counting.total[field] for field in Combination.__dataclass_fields__}
        )
    return found
