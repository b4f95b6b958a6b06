"""One request: what the threads of one warp touch together, each of them by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._budget import in_turn
from loopkit._costs.accesses import (
    Access,
    AddressMap,
    accesses_of,
    address_map,
    space_of,
    text_of,
)
from loopkit._costs.sizes import check_sizes
from loopkit._costs.values import SPACES, AccessCosts
from loopkit._costs.warps import BANKS, SECTOR, WORD, turns_of_touches
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import Linear, NotAffineError
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._poly.integer_points import enumerated, systems
from loopkit._poly.model import model_of
from loopkit._target import CUDA


@dataclass(frozen=True)
class Touch:
    """What one thread of a request touches.

    ``lane`` is its number in the warp, ``thread`` its index in the block (x, y, z), ``cell`` the
    subscripts of the element, ``address`` the first byte of it from the array's begin.
    """

    lane: int
    thread: tuple[int, int, int]
    cell: tuple[int, ...]
    address: int


@dataclass(frozen=True)
class Request:
    """One execution of an access by one warp: those of its lanes that take part, in order.

    ``loops`` are the values of the loops around it.
    """

    array: str
    space: str
    is_write: bool
    itemsize: int
    block: tuple[int, int, int]
    warp: int
    loops: tuple[tuple[str, int], ...]
    touches: tuple[Touch, ...]

    @property
    def sectors(self) -> tuple[int, ...]:
        """The numbers of the sectors, of 32 bytes from the array's begin, that it touches."""
        return tuple(sorted({touch.address // SECTOR for touch in self.touches}))

    @property
    def turns(self) -> int:
        """In how many turns shared memory serves it: parts of the warp, of wide elements."""
        return turns_of_touches(
            {touch.lane: touch.address for touch in self.touches}, self.itemsize, self.is_write
        )

    @property
    def words(self) -> tuple[Mapping[int, tuple[int, ...]], ...]:
        """For each turn of shared memory: the different words of 4 bytes in each bank."""
        turns, words = self.turns, -(-self.itemsize // WORD)
        found: list[dict[int, set[int]]] = [{} for _ in range(turns)]
        for touch in self.touches:
            for n in range(words):
                word = touch.address // WORD + n
                found[touch.lane * turns // CUDA.warp].setdefault(word % BANKS, set()).add(word)
        return tuple({b: tuple(sorted(w)) for b, w in sorted(t.items())} for t in found)

    @property
    def wavefronts(self) -> int:
        """Passes that shared memory takes: the most words in one bank, summed over turns."""
        return sum(max(map(len, turn.values()), default=0) for turn in self.words)


@in_turn
def request_at(
    kernel: Kernel,
    access: AccessCosts | Access,
    sizes: Mapping[str, int],
    *,
    block: tuple[int, ...] = (0, 0, 0),
    warp: int = 0,
    loops: Mapping[str, int] | None = None,
) -> Request:
    """What one warp touches in one execution of an access, thread by thread.

    *access* is one of ``kernel.costs(...).accesses``; *block* is the block's index (x, y, z),
    *warp* the number of the warp in it; *loops* gives loops around the access values: those that
    are left out take the first at which the warp makes it.

    The request has no touches where the warp does not make the access.  Raises
    :class:`InvalidArgumentError` for an access, a block, a warp or loops that there are not, and
    where data decide what is touched.
    """
    from loopkit.codegen.prepare import prepare

    check_sizes(kernel, sizes, "request_at")
    model = model_of(prepare(kernel))
    found = [a for a in accesses_of(model.kernel) if _is_same(a, access)]
    if not found:
        raise InvalidArgumentError(
            f"'{kernel.name}' has no such access", instead="take one of kernel.costs(...).accesses"
        )
    launch = kernel.launch_config(**sizes)
    assert not isinstance(launch, tuple)
    block = _index_in(block, launch.grid, "block")
    if not 0 <= warp * CUDA.warp < prod(launch.block) or isinstance(warp, bool):
        raise InvalidArgumentError(
            f"a block of {prod(launch.block)} threads has no warp {warp}",
            instead=f"warps are 0 to {(prod(launch.block) - 1) // CUDA.warp}",
        )
    try:
        where = address_map(model, found[0], sizes)
    except NotAffineError:
        raise InvalidArgumentError(
            f"data decide what '{text_of(found[0])}' touches, and when"
        ) from None
    chosen, touches = _touches(where, sizes, launch.block, block, warp, loops or {})
    array = model.array(found[0].array)
    assert array.dtype is not None  # all types are inferred by now
    size = array.dtype.itemsize
    return Request(
        found[0].array,
        SPACES[space_of(model.kernel, found[0].array)],
        found[0].is_write,
        size,
        block,
        warp,
        tuple(sorted(chosen.items())),
        tuple(Touch(t.lane, t.thread, t.cell, t.address * size) for t in touches),
    )


def _is_same(one: Access, other: AccessCosts | Access) -> bool:
    text = other.text if isinstance(other, AccessCosts) else text_of(other)
    mine = one.statement, one.is_write, text_of(one)
    return mine == (other.statement, other.is_write, text)


def _index_in(
    index: tuple[int, ...], extents: tuple[int, int, int], what: str
) -> tuple[int, int, int]:
    """An index with an entry for each axis, if it lies in the extents."""
    x, y, z = (*index, 0, 0, 0)[:3]
    if len(index) > 3 or any(
        not 0 <= n < extent for n, extent in zip((x, y, z), extents, strict=True)
    ):
        raise InvalidArgumentError(
            f"there is no {what} {tuple(index)}", instead=f"there are {extents} (x, y, z)"
        )
    return x, y, z


def _touches(
    where: AddressMap,
    sizes: Mapping[str, int],
    extents: tuple[int, int, int],
    block: tuple[int, int, int],
    warp: int,
    loops: Mapping[str, int],
) -> tuple[dict[str, int], list[Touch]]:
    """The values of the loops, and what threads touch; addresses are in elements."""
    names = [name for name in where.requests if name not in where.block_names]
    for name in loops:
        if name not in names:
            raise InvalidArgumentError(
                f"'{name}' is no loop around the access", instead=f"its loops are {names}"
            )
    if any(index and axis is None for index, axis in zip(block, where.blocks, strict=True)):
        return dict(loops), []
    fixed = dict(sizes)
    for index, group in zip(block, where.blocks, strict=True):
        if group is not None:
            fixed[group[0]] = group[1] + index
    domain = _sets.at_values(where.domain, {**fixed, **loops})
    thread: list[Expression] = [0]
    for axis, lane in enumerate(where.lanes):
        if lane is not None:
            stride = prod(extents[:axis])
            thread += [prim.Product((stride, prim.Variable(lane[0]))), -stride * lane[1]]
    number = prim.Sum(tuple(thread))
    for comparison, end in ((">=", warp * CUDA.warp), ("<", (warp + 1) * CUDA.warp)):
        domain = domain & _sets.condition_set(prim.Comparison(number, comparison, end))
    open_ = [name for name in names if name not in loops]
    first = smallest_point(_sets.project_onto(domain, open_), open_) if open_ else {}
    if first is None:
        return dict(loops), []
    chosen = {**loops, **{name: first[name] for name in open_ if name in first}}
    domain = _sets.at_values(domain, chosen)
    rest = (*where.lane_names, *where.others)
    known = {**fixed, **chosen}
    found = []
    for system in systems(domain, rest, {}):
        for row in enumerated(system).tolist():
            point = {**known, **dict(zip(rest, row, strict=False))}
            found.append(_touch(where, point, extents))
    return chosen, sorted(found, key=lambda t: t.lane)


def _touch(where: AddressMap, point: Mapping[str, int], extents: Sequence[int]) -> Touch:
    x, y, z = (0 if lane is None else point[lane[0]] - lane[1] for lane in where.lanes)
    number = x + extents[0] * (y + extents[1] * z)
    cell = tuple(_value(form, point) for form in where.cell)
    return Touch(number % CUDA.warp, (x, y, z), cell, _value(where.address, point))


def _value(form: Linear, point: Mapping[str, int]) -> int:
    return form.constant + sum(c * point[v.name] for v, c in form.terms.items())
