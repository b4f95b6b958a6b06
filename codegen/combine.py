"""How the threads of a block combine their partial results: one C node per combination.

The threads that combine differ only along some axes. In the block's linear numbering they are
``count`` threads with distance ``stride``: a :class:`Group`. Each entry of :data:`WAYS` is one
method by which all threads of a group get the combined result:

- ``lanes``: the group lies within one warp; threads exchange values by shuffles;
- ``warps``: the group consists of whole warps, or is the whole block; each warp reduces by
  shuffles, stores its result in shared memory, and all threads read the results of all warps;
- ``shared``: a tree reduction in shared memory, for any group;
- ``atomic``: all threads add to one cell of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from loopkit import _promotion as dt
from loopkit._collectives import LOOKBACK
from loopkit._errors import IllegalTransformError, counted
from loopkit._frozen import dataclass
from loopkit._promotion import dtype_name
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.combining import Combining, Operation, Words, of_number


@dataclass(frozen=True)
class Group:
    """``count`` threads with distance ``stride`` in a block of ``threads``, which combine."""

    stride: int
    count: int
    threads: int

    @property
    def span(self) -> int:
        """The number of consecutive threads that contain ``stride`` groups."""
        return self.stride * self.count

    @property
    def is_in_a_warp(self) -> bool:
        """Whether each group lies within one warp."""
        return self.threads <= CUDA.warp or CUDA.warp % self.span == 0

    @property
    def is_of_warps(self) -> bool:
        """Whether a group consists of whole warps, or is the whole block."""
        return self.stride == 1 and (self.count % CUDA.warp == 0 or self.count == self.threads)

    @property
    def warps(self) -> int:
        """The number of warps in a group that consists of whole warps."""
        return -(-self.count // CUDA.warp)


def groups(block: tuple[int, int, int], axes: tuple[int, ...]) -> tuple[Group, ...]:
    """The groups that combine one after another; axes that are adjacent form one group."""
    threads, stride = prod(block), 1
    found: list[Group] = []
    for axis, extent in enumerate(block):
        if extent > 1 and axis in axes:
            first = found.pop().stride if found and found[-1].span == stride else stride
            found.append(Group(first, stride * extent // first, threads))
        stride *= extent
    return tuple(found)


def way_of(group: Group, operation: Operation, by: str | None) -> str:
    """The method by which a group combines: the one requested, or the one that suits the group.

    Raises :class:`IllegalTransformError` if the requested method is impossible for the group.
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
    """The number of elements of shared memory that a method needs."""
    return {
        "lanes": 0,
        "warps": group.threads // CUDA.warp if group.threads % CUDA.warp == 0 else group.warps,
        "shared": group.threads,
        "atomic": group.threads // group.count,
    }[way]


def described(block: tuple[int, int, int], axes: tuple[int, ...], ways: tuple[str, ...]) -> str:
    """The threads that combine and their method, in words."""
    count = prod(block[axis] for axis in axes)
    words = " then ".join(dict.fromkeys(_WORDS[way] for way in ways)) or "alone"
    return f"{counted(count, 'thread')}, {words}"


_WORDS = {
    "lanes": "by shuffles",
    "warps": "by shuffles and shared memory",
    "shared": "by shared memory",
    "atomic": "by atomics in shared memory",
}


def halves(count: int) -> Iterator[int]:
    """The powers of two below ``count``, the largest first."""
    step = 1 << (count - 1).bit_length()
    while step > 1:
        step //= 2
        yield step


Ways = dict[str, Callable[[Combining, Group], str]]
"""The text of what the threads of a group do, for each way."""


def words_of(group: Group, number: c.CExpression, text: str) -> Words:
    """The C expressions for the words in capitals that a text uses, for one thread of a group.

    ``RANK`` is the thread's number in its group, ``CELL`` the number of the group, ``FIRST`` the
    number, or the lane, of the group's first thread, ``BASE`` that of its first warp; ``LANES`` is
    the mask of the lanes that exist in the thread's warp.
    """
    stride, count, span, threads = group.stride, group.count, group.span, group.threads
    is_all = count == threads
    rank = f"NUMBER / {stride}" + f" % {count}" * (span < threads)
    cell, inner = f"NUMBER / {span}", f"NUMBER % {stride}"
    if stride > 1:
        cell = inner if span == threads else f"{cell} * {stride} + {inner}"
    words = {
        "RANK": rank,
        "CELL": "0" if is_all else cell,
        "FIRST": "0" if is_all else f"NUMBER - {stride} * ({rank})",
        "BASE": "0" if is_all else f"NUMBER / {count} * {group.warps}",
        "LANES": lanes_of(threads),
    }
    found = {w: of_number(spelled, number) for w, spelled in words.items() if w in text}
    return {"NUMBER": number, **found}


def lanes_of(threads: int) -> str:
    """The mask of the lanes that exist in the warp of thread ``NUMBER``."""
    rest = threads % CUDA.warp
    some = f"{(1 << rest) - 1}u"
    if not rest:
        return "~0u"
    return some if threads < CUDA.warp else f"NUMBER < {threads - rest} ? ~0u : {some}"


def in_slots(group: Group, slot: str) -> str:
    """Reads what the warps of a group have stored in ``warps``: one slot per lane.

    Lanes without a slot get the neutral element.
    """
    value = f"warps[BASE + {slot}]"
    is_full = group.warps.bit_count() == 1
    return value if is_full else f"{slot} < {group.warps} ? {value} : NEUTRAL"


def _exchange(combining: Combining, lanes: str, count: int, stride: int = 1) -> str:
    """Butterfly shuffles, or a vote, in groups of a power of two of lanes; all get the result."""
    operation = combining.operation.name
    if count == CUDA.warp and operation in ("any", "all"):
        return f"TARGET = __{operation}_sync({lanes}, TARGET);"
    return "".join(
        f"TARGET = JOIN(TARGET, __shfl_xor_sync({lanes}, TARGET, {step * stride}));"
        for step in halves(count)
    )


def _gather(lanes: str, count: int, stride: int, rank: str, end: int) -> str:
    """Shuffles between lanes of groups of any size; the first lane gets the result."""
    return "".join(
        f"OTHER = __shfl_down_sync({lanes}, TARGET, {step * stride});"
        f"if ({rank} + {step} < {end}) TARGET = JOIN(TARGET, OTHER);"
        for step in halves(count)
    )


def _lanes(combining: Combining, group: Group) -> str:
    if group.span & (group.span - 1) == 0:
        return _exchange(combining, "LANES", group.count, group.stride)
    # All of the block is in one warp.
    found = _gather("LANES", group.count, group.stride, "RANK", group.count)
    return f"{found} TARGET = __shfl_sync(LANES, TARGET, FIRST);"


def _warps(combining: Combining, group: Group) -> str:
    warp, count, threads = CUDA.warp, group.warps, group.threads
    is_whole = threads % warp == 0
    found = f"__shared__ {combining.ctype} warps[{scratch_of(group, 'warps')}];"
    found += "unsigned int const lanes = LANES;"
    if is_whole:
        found += _exchange(combining, "lanes", warp)
    else:
        found += _gather("lanes", warp, 1, "NUMBER", threads)
    found += f"{combining.again} if (NUMBER % {warp} == 0) warps[NUMBER / {warp}] = TARGET;"
    found += "__syncthreads();"
    if is_whole and count > 4:
        slots = 1 << (count - 1).bit_length()
        found += f"TARGET = {in_slots(group, f'NUMBER % {slots}')};"
        return found + _exchange(combining, "lanes", slots)
    found += "TARGET = warps[BASE];"
    if count <= 4:
        taken = (f"TARGET = JOIN(TARGET, warps[BASE + {w}]);" for w in range(1, count))
        return found + "".join(taken)
    each = f"for (int warp = 1; warp < {count}; ++warp)"
    return f"{found} {each} TARGET = JOIN(TARGET, warps[BASE + warp]);"


def _shared(combining: Combining, group: Group) -> str:
    found = f"__shared__ {combining.ctype} parts[{scratch_of(group, 'shared')}];"
    found += f"{combining.again} parts[NUMBER] = TARGET;"
    left = group.count
    for step in halves(group.count):
        found += f"""__syncthreads();
            if (RANK < {left - step}) {{
                TARGET = JOIN(TARGET, parts[NUMBER + {step * group.stride}]);
                parts[NUMBER] = TARGET;
            }}"""
        left = step
    return f"{found} __syncthreads(); TARGET = parts[FIRST];"


def _atomic(combining: Combining, group: Group) -> str:
    assert combining.operation.atomic is not None
    _, function = combining.operation.atomic
    return f"""__shared__ {combining.ctype} whole[{scratch_of(group, "atomic")}]; {combining.again}
        if (RANK == 0) whole[CELL] = NEUTRAL;
        __syncthreads();
        {function}(&whole[CELL], TARGET);
        __syncthreads();
        TARGET = whole[CELL];"""


WAYS: Ways = {"lanes": _lanes, "warps": _warps, "shared": _shared, "atomic": _atomic}
