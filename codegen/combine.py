"""How the threads of a block combine their partial results: one C node for a combination.

The threads that combine are those that differ along some axes.  Numbered through the block, they
are ``count`` threads, ``stride`` apart: a :class:`Group`.  Each :data:`WAYS` entry is one way in
which the threads of a group get the whole:

- ``lanes``: all of a group are in one warp; they exchange by shuffles;
- ``warps``: a group is whole warps, or the whole block; each warp exchanges by shuffles, and leaves
  its result in shared memory, from where all read those of all warps;
- ``shared``: a tree in shared memory, for any group;
- ``atomic``: one cell of shared memory, to which all add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from loopkit import _promotion as dt
from loopkit._collectives import LOOKBACK
from loopkit._errors import IllegalTransformError, counted
from loopkit._frozen import dataclass
from loopkit._promotion import DType, dtype_name
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import OPERATORS, function_of, operator_of
from loopkit.codegen.c.types import C_TYPES, in_registers


@dataclass(frozen=True)
class Group:
    """``count`` threads of a block of ``threads``, ``stride`` apart, that combine."""

    stride: int
    count: int
    threads: int

    @property
    def span(self) -> int:
        """How many consecutive threads hold ``stride`` groups."""
        return self.stride * self.count

    @property
    def is_in_a_warp(self) -> bool:
        """Whether no group reaches into two warps."""
        return self.threads <= CUDA.warp or CUDA.warp % self.span == 0

    @property
    def is_of_warps(self) -> bool:
        """Whether a group is whole warps, or all of the block."""
        return self.stride == 1 and (self.count % CUDA.warp == 0 or self.count == self.threads)

    @property
    def warps(self) -> int:
        """How many warps a group is in, if it is of warps."""
        return -(-self.count // CUDA.warp)


def groups(block: tuple[int, int, int], axes: tuple[int, ...]) -> tuple[Group, ...]:
    """The groups that threads combine in, one after another: a group for neighbouring axes."""
    threads, stride = prod(block), 1
    found: list[Group] = []
    for axis, extent in enumerate(block):
        if extent > 1 and axis in axes:
            first = found.pop().stride if found and found[-1].span == stride else stride
            found.append(Group(first, stride * extent // first, threads))
        stride *= extent
    return tuple(found)


@dataclass(frozen=True)
class Operation:
    """What is combined: the operation's name, and the type."""

    name: str
    dtype: DType

    @property
    def atomic(self) -> tuple[str, str] | None:
        """The operator and the function of an atomic update; None where there is none."""
        operator = operator_of(self.name, self.dtype) if self.name in OPERATORS else ""
        function = function_of(operator, self.dtype)
        return None if function is None else (operator, function)


def way_of(group: Group, operation: Operation, by: str | None) -> str:
    """The way in which a group combines, as it was asked for, or as it suits the group.

    Raises :class:`IllegalTransformError` for what cannot be had as it was asked for.
    """
    dtype = operation.dtype
    if by == LOOKBACK:
        raise IllegalTransformError(
            f"a {operation.name} that is not running has nothing to look back at",
            instead="by='shuffle' or by='shared'; across blocks, by='atomic' with inames",
        )
    is_shuffled = dt.COMPLEXES.isdisjoint((dtype, *dt.components_of(dtype).values()))
    if by == "atomic":
        if operation.atomic is None:
            raise IllegalTransformError(
                f"no atomic update is {operation.name} of {dtype_name(dtype)}",
                instead="by='shared'",
            )
        return "atomic"
    fits = "lanes" if group.is_in_a_warp else "warps" if group.is_of_warps else ""
    if by == "shuffle" and not is_shuffled:
        raise IllegalTransformError(
            f"a shuffle does not exchange {dtype_name(dtype)}", instead="by='shared'"
        )
    if by == "shuffle" and not fits:
        apart = f", each {group.stride} apart" if group.stride > 1 else ""
        raise IllegalTransformError(
            f"{group.count} threads{apart} of a block of {group.threads} are neither within a warp "
            "nor all of some warps, so shuffles do not reach all of them",
            instead="by='shared', or l.0 for the reduction with a length that divides "
            f"{CUDA.warp} or is a multiple of it",
        )
    return fits if fits and is_shuffled and by in (None, "shuffle") else "shared"


def scratch_of(group: Group, way: str) -> int:
    """How many elements of shared memory a way takes."""
    return {
        "lanes": 0,
        "warps": group.threads // CUDA.warp if group.threads % CUDA.warp == 0 else group.warps,
        "shared": group.threads,
        "atomic": group.threads // group.count,
    }[way]


def described(block: tuple[int, int, int], axes: tuple[int, ...], ways: tuple[str, ...]) -> str:
    """Who combines, and how, in words."""
    count = prod(block[axis] for axis in axes)
    words = " then ".join(dict.fromkeys(_WORDS[way] for way in ways)) or "alone"
    return f"{counted(count, 'thread')}, {words}"


_WORDS = {
    "lanes": "by shuffles",
    "warps": "by shuffles and shared memory",
    "shared": "by shared memory",
    "atomic": "by atomics in shared memory",
}


def integer(value: int) -> c.Number:
    """A number of C."""
    return c.Number(value, "int")


def binary(operator: str, left: c.CExpression, right: c.CExpression | int) -> c.CExpression:
    """``left operator right``, without what changes nothing."""
    if type(right) is int and (operator, right) in (("*", 1), ("/", 1), ("+", 0), ("-", 0)):
        return left
    if operator == "+" and left == integer(0):
        return integer(right) if isinstance(right, int) else right
    return c.Binary(operator, left, integer(right) if isinstance(right, int) else right)


def halves(count: int) -> Iterator[int]:
    """The powers of two below ``count``, the largest first."""
    step = 1 << (count - 1).bit_length()
    while step > 1:
        step //= 2
        yield step


_ALL_LANES = c.Unary("~", c.Number(0, "uint"))


@dataclass(frozen=True, eq=False)
class Combining:
    """What is known where one combination is written.

    ``update`` gives the operator and the right side by which a place takes in a value, ``neutral``
    is the value that changes nothing, ``fresh`` makes a name, ``other`` is that of a variable for
    what comes from another lane, ``is_repeated`` says that it may run again, and ``is_ordered``
    that operands have an order.
    """

    target: c.Name | c.Element
    operation: Operation
    block: tuple[int, int, int]
    update: Callable[[c.Name | c.Element, c.CExpression], tuple[str, c.CExpression]]
    neutral: c.CExpression
    fresh: Callable[[str], str]
    other: str
    is_repeated: bool
    is_ordered: bool = False

    @property
    def ctype(self) -> str:
        """The type of what is combined."""
        return C_TYPES[self.operation.dtype]

    def takes(self, value: c.CExpression) -> c.Assign:
        """``target = operation(target, value)``."""
        return c.Assign(self.target, *self.update(self.target, value), None)

    def takes_before(self, value: c.Name | c.Element) -> c.Assign:
        """The same with ``value`` on the left, where that is another result."""
        both = (value, self.target) if self.is_ordered else (self.target, value)
        return c.Assign(self.target, *self.update(*both), None)

    def takes_from(self, shuffle: c.CExpression) -> list[c.Node]:
        """``target = operation(target, what another lane has)``: every lane asks, and once."""
        taken = self.takes(shuffle)
        if shuffle in _certain(taken.value) and [*c.walk(taken.value)].count(shuffle) == 1:
            return [taken]
        other = c.Name(self.other)
        return [self.stores(shuffle, other), self.takes(other)]

    def shuffle(self, word: str, mask: c.CExpression, lane: c.CExpression) -> c.CExpression:
        """What another lane has; of a record component by component, of complex numbers, too."""
        dtype = self.operation.dtype
        components = dt.components_of(dtype)
        if dtype in dt.COMPLEXES:
            components = dict.fromkeys(("re", "im"), dt.real_of(dtype))
        function = f"__shfl{word}_sync"
        if not components:
            return c.Call(function, (mask, self.target, lane))
        parts: list[c.CExpression] = []
        for name, kind in components.items():
            part = c.Call(function, (mask, c.Member(self.target, name), lane))
            parts.append(part if in_registers(kind) == kind else c.Cast(C_TYPES[kind], part))
        return c.Braces(self.ctype, tuple(parts))

    def stores(self, value: c.CExpression, place: c.Name | c.Element | None = None) -> c.Assign:
        """``target = value``."""
        return c.Assign(place or self.target, "=", value, None)

    def scratch(self, word: str, length: int) -> c.Declaration:
        """An array in shared memory."""
        return c.Declaration("shared", self.ctype, self.fresh(word), (length,))

    def named(
        self, ctype: str, word: str, value: c.CExpression
    ) -> tuple[list[c.Node], c.CExpression]:
        """A value under a name, unless it is as short itself."""
        if isinstance(value, (c.Name, c.Number, c.Unary)):
            return [], value
        let = c.Let(ctype, self.fresh(word), value)
        return [let], c.Name(let.name)

    def again(self) -> tuple[c.Node, ...]:
        """What keeps a thread from writing what others have yet to read, of the time before."""
        return (c.Wait("block"),) if self.is_repeated else ()


Ways = dict[str, Callable[["Combining", Group, c.CExpression], list[c.Node]]]


def combined(
    combining: Combining,
    chosen: tuple[tuple[Group, str], ...],
    statement: str,
    comment: str,
    ways: Ways,
    behind: Callable[[c.CExpression], list[c.Node]] | None = None,
) -> c.Combine:
    """The node of a combination: of ``ways``, for each group in turn, the one that was chosen.

    ``behind`` it stands what is made of the number of a thread.
    """
    body: list[c.Node] = []
    number = thread_number(combining.block)
    let = c.Let("int", combining.fresh("thread"), number)
    number = number if isinstance(number, c.Name) else c.Name(let.name)
    for group, way in chosen:
        body += ways[way](combining, group, number)
    if behind is not None:
        body += behind(number)
    used = {part.name for part in _parts(body) if isinstance(part, c.Name)}
    if let.name in used:
        body.insert(0, let)
    if combining.other in used:
        body.append(c.Declaration("private", combining.ctype, combining.other, ()))
    body = body or [combining.stores(combining.target)]  # one thread has it all
    declared = [node for node in body if isinstance(node, c.Declaration)]
    rest = [node for node in body if not isinstance(node, c.Declaration)]
    return c.Combine(combining.target, (*declared, *rest), statement, comment)


def _certain(expr: c.CExpression) -> Iterator[c.CExpression]:
    """What of an expression is computed in any case, on whatever values."""
    yield expr
    parts = c.children(expr)
    if isinstance(expr, c.Choice) or (isinstance(expr, c.Binary) and expr.operator in ("&&", "||")):
        parts = parts[:1]
    for part in parts:
        yield from _certain(part)


def _parts(nodes: list[c.Node]) -> Iterator[c.CExpression]:
    """All expressions of some nodes, and what they are made of."""
    for node in c.statements(tuple(nodes)):
        for whole in c.expressions(node):
            yield from c.walk(whole)


def thread_number(block: tuple[int, int, int]) -> c.CExpression:
    """The number of a thread in its block."""
    total: c.CExpression | None = None
    stride = 1
    for word, extent in zip(CUDA.thread_index, block, strict=True):
        if extent > 1:
            own = c.Name(word)
            term = own if stride == 1 else c.Binary("*", integer(stride), own)
            total = term if total is None else c.Binary("+", total, term)
        stride *= extent
    return integer(0) if total is None else total


def rank_of(group: Group, number: c.CExpression) -> c.CExpression:
    """The number of a thread in its group."""
    rank = binary("/", number, group.stride)
    return binary("%", rank, group.count) if group.span < group.threads else rank


def lanes_of(group: Group, number: c.CExpression) -> c.CExpression:
    """The lanes of a thread's warp that there are."""
    rest = group.threads % CUDA.warp
    some = c.Number((1 << rest) - 1, "uint")
    if not rest:
        return _ALL_LANES
    if group.threads < CUDA.warp:
        return some
    return c.Choice(binary("<", number, group.threads - rest), _ALL_LANES, some)


def cell_of(group: Group, number: c.CExpression) -> c.CExpression:
    """The number of a thread's group: the cell of an array with one element for each group."""
    if group.count == group.threads:
        return integer(0)
    which = binary("/", number, group.span)
    if group.stride == 1:
        return which
    inner = binary("%", number, group.stride)
    is_one = group.span == group.threads
    return inner if is_one else c.Binary("+", binary("*", which, group.stride), inner)


def _first_of(group: Group, number: c.CExpression, rank: c.CExpression) -> c.CExpression:
    """The number, or the lane, of the first thread of a group."""
    if group.count == group.threads:
        return integer(0)
    behind = rank if group.stride == 1 else c.Binary("*", integer(group.stride), rank)
    return c.Binary("-", number, behind)


def first_warp(group: Group, number: c.CExpression) -> c.CExpression:
    """The place of the first warp of a group, of an array with an element for each warp."""
    if group.count == group.threads:
        return integer(0)
    return binary("*", binary("/", number, group.count), group.warps)


def in_slots(
    combining: Combining,
    scratch: c.Declaration,
    group: Group,
    first: c.CExpression,
    slot: c.CExpression,
) -> c.CExpression:
    """What the warps of a group have left from ``first`` on, one after another in as many lanes.

    Lanes behind these have what changes nothing.
    """
    value = c.Element(scratch.name, (binary("+", first, slot),))
    if group.warps.bit_count() == 1:
        return value
    return c.Choice(binary("<", slot, group.warps), value, combining.neutral)


def _exchange(combining: Combining, mask: c.CExpression, count: int, stride: int) -> list[c.Node]:
    """Lanes of groups of a power of two, all of which get the whole."""
    target, operation = combining.target, combining.operation.name
    if count == CUDA.warp and operation in ("any", "all"):
        return [combining.stores(c.Call(f"__{operation}_sync", (mask, target)))]
    shuffles = (combining.shuffle("_xor", mask, integer(s * stride)) for s in halves(count))
    return [node for shuffle in shuffles for node in combining.takes_from(shuffle)]


def _gather(
    combining: Combining,
    mask: c.CExpression,
    steps: list[tuple[int, int]],
    rank: c.CExpression,
    count: int,
) -> list[c.Node]:
    """Lanes of any groups, the first of which gets the whole; ``steps`` in ranks and in lanes."""
    other = c.Name(combining.other)
    found: list[c.Node] = []
    for step, lanes in steps:
        shuffle = combining.shuffle("_down", mask, integer(lanes))
        found.append(combining.stores(shuffle, other))
        reaches = binary("<", binary("+", rank, step), count)
        found.append(c.If(reaches, (combining.takes(other),)))
    return found


def _lanes(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    mask = lanes_of(group, number)
    if group.span & (group.span - 1) == 0:
        return _exchange(combining, mask, group.count, group.stride)
    # All of the block is in one warp.
    rank = rank_of(group, number)
    steps = [(step, step * group.stride) for step in halves(group.count)]
    found = _gather(combining, mask, steps, rank, group.count)
    first = _first_of(group, number, rank)
    return [*found, combining.stores(combining.shuffle("", mask, first))]


def _warps(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    warp, count = CUDA.warp, group.warps
    is_whole = group.threads % warp == 0
    scratch = combining.scratch("warps", scratch_of(group, "warps"))
    lane = binary("%", number, warp)
    lets, mask = combining.named("unsigned int", "lanes", lanes_of(group, number))
    found = [scratch, *lets]
    if is_whole:
        found += _exchange(combining, mask, warp, 1)
    else:
        steps = [(step, step) for step in halves(warp)]
        found += _gather(combining, mask, steps, number, group.threads)
    own = c.Element(scratch.name, (binary("/", number, warp),))
    found += combining.again()
    stored = combining.stores(combining.target, own)
    found += [c.If(c.Binary("==", lane, integer(0)), (stored,)), c.Wait("block")]
    first = first_warp(group, number)
    if is_whole and count > 4:
        slots = 1 << (count - 1).bit_length()
        slot = binary("%", number, slots)
        found.append(combining.stores(in_slots(combining, scratch, group, first, slot)))
        return found + _exchange(combining, mask, slots, 1)
    found.append(combining.stores(c.Element(scratch.name, (first,))))
    if count <= 4:
        for w in range(1, count):
            found.append(combining.takes(c.Element(scratch.name, (binary("+", first, w),))))
        return found
    each = c.Name(combining.fresh("warp"))
    taken = combining.takes(c.Element(scratch.name, (binary("+", first, each),)))
    return [*found, c.For("int", each.name, integer(1), integer(count), False, 1, (taken,))]


def _shared(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    scratch = combining.scratch("parts", scratch_of(group, "shared"))
    rank = rank_of(group, number)
    own = c.Element(scratch.name, (number,))
    found: list[c.Node] = [scratch, *combining.again(), combining.stores(combining.target, own)]
    left = group.count
    for step in halves(group.count):
        place = binary("+", number, step * group.stride)
        taken = combining.takes(c.Element(scratch.name, (place,)))
        body = (taken, combining.stores(combining.target, own))
        found += [c.Wait("block"), c.If(binary("<", rank, left - step), body)]
        left = step
    first = c.Element(scratch.name, (_first_of(group, number, rank),))
    return [*found, c.Wait("block"), combining.stores(first)]


def _atomic(combining: Combining, group: Group, number: c.CExpression) -> list[c.Node]:
    scratch = combining.scratch("whole", scratch_of(group, "atomic"))
    rank = rank_of(group, number)
    cell = c.Element(scratch.name, (cell_of(group, number),))
    assert combining.operation.atomic is not None
    operator, function = combining.operation.atomic
    start = c.If(c.Binary("==", rank, integer(0)), (combining.stores(combining.neutral, cell),))
    added = c.Assign(cell, operator, combining.target, None, function)
    return [
        scratch,
        *combining.again(),
        start,
        c.Wait("block"),
        added,
        c.Wait("block"),
        combining.stores(cell),
    ]


WAYS: Ways = {
    "lanes": _lanes,
    "warps": _warps,
    "shared": _shared,
    "atomic": _atomic,
}
"""What threads do, for each way: the nodes for one group."""
