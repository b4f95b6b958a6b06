"""A single memory request: the addresses that the threads of a warp or a block access together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._arrays import storage_shape
from loopkit._costs.accesses import (
    Access,
    AddressMap,
    itemsize_of,
    space_of,
    text_of,
)
from loopkit._costs.cost_values import SPACES
from loopkit._costs.traffic import WARP, with_warp
from loopkit._costs.warps import BANKS, SECTOR, WORD, turns_of
from loopkit._frozen import dataclass
from loopkit._hidden import is_hidden
from loopkit._kernel import Kernel
from loopkit._linear import Linear
from loopkit._points import smallest_point
from loopkit._poly.integer_points import enumerated, systems
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import index_name
from loopkit._target import CUDA
from loopkit.codegen.hardware import find_hardware

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Touch:
    """The access of one thread in a request.

    ``thread`` is its number in the block, ``index`` that on each axis (x, y, z), ``cell`` the
    subscripts of the element, ``address`` its first byte, from the array's first byte.
    """

    thread: int
    index: tuple[int, int, int]
    cell: tuple[int, ...]
    address: int

    @property
    def lane(self) -> int:
        """The thread's number in its warp."""
        return self.thread % CUDA.warp


@dataclass(frozen=True)
class Request:
    """One execution of an access by one warp, or by a whole block: its active threads.

    ``when`` are the values of blocks and loops.  ``position`` is that of the statement, ``threads``
    the number of threads of a block; the statement makes ``others`` further accesses to the array.
    """

    kernel: str
    statement: str
    position: int
    text: str
    array: str
    space: str
    shape: tuple[int, ...]
    itemsize: int
    is_write: bool
    sizes: tuple[tuple[str, int], ...]
    when: tuple[tuple[str, int], ...]
    warp: int | None
    threads: int
    touches: tuple[Touch, ...]
    others: tuple[str, ...] = ()

    @property
    def sectors(self) -> tuple[int, ...]:
        """The numbers of the sectors, of 32 bytes from the array's begin, that it touches."""
        return tuple(sorted({touch.address // SECTOR for touch in self.touches}))

    @property
    def turns(self) -> int:
        """The number of parts of a warp that shared memory serves one after the other.

        There are several for wide elements.
        """
        rows, used = np.zeros((1, CUDA.warp), np.int64), np.zeros((1, CUDA.warp), bool)
        for touch in self.touches:
            rows[0, touch.lane], used[0, touch.lane] = touch.address, True
        return int(turns_of(rows, used, self.itemsize, is_write=self.is_write)[0])

    @property
    def words(self) -> tuple[Mapping[int, tuple[int, ...]], ...]:
        """For each turn of shared memory: the threads that touch each word of 4 bytes."""
        turns = self.turns
        found: list[dict[int, list[int]]] = [{} for _ in range(turns)]
        for touch in self.touches:
            of = found[touch.lane * turns // CUDA.warp]
            for word in range(touch.address // WORD, -(-(touch.address + self.itemsize) // WORD)):
                of.setdefault(word, []).append(touch.thread)
        return tuple({word: tuple(threads) for word, threads in sorted(t.items())} for t in found)

    @property
    def wavefronts(self) -> int:
        """Passes that shared memory takes: the most words in one bank, summed over turns."""
        return sum(
            max((sum(word % BANKS == bank for word in turn) for bank in range(BANKS)), default=0)
            for turn in self.words
        )

    @property
    def title(self) -> str:
        """What is shown, in one line."""
        verb = "write" if self.is_write else "read"
        who = "all warps" if self.warp is None else f"warp {self.warp}"
        return f"{self.kernel}: {who} {verb}{'s' * (self.warp is not None)} {self.text}"

    def notes(self) -> Iterator[str]:
        """What is to be said below every picture of it."""
        if self.others:
            rest = ", ..." if len(self.others) > 6 else ""
            yield f"Other accesses: {', '.join(self.others[:6])}{rest}"


def request_in(
    domain: isl.Set,
    kernel: Kernel,
    model: Model,
    access: Access,
    where: AddressMap,
    sizes: Mapping[str, int],
    warp: int | None,
) -> Request | None:
    """The first request of an access in a part of its map's domain; None if there is none.

    Blocks count, z first, then loops, outermost first.  ``model`` is of a launch of ``kernel``.
    """
    extents = find_hardware(model.kernel).block
    if warp is not None:
        domain = _sets.at_values(with_warp(domain, where.lanes, extents, CUDA.warp), {WARP: warp})
    point = smallest_point(domain, _order(model, access, where))
    if point is None:
        return None
    when = {name: point[name] for name in where.requests}
    names = (*where.lane_names, *where.others)
    size = itemsize_of(model.kernel, access.array)
    touches = []
    for system in systems(_sets.at_values(domain, when), names, {}):
        for row in enumerated(system).tolist():
            at = {**when, **dict(zip(names, row, strict=False))}
            x, y, z = (0 if lane is None else at[lane[0]] - lane[1] for lane in where.lanes)
            number = x + extents[0] * (y + extents[1] * z)
            cell = tuple(_value(form, at) for form in where.cell)
            touches.append(Touch(number, (x, y, z), cell, size * _value(where.address, at)))
    # What lowering adds has no position in the whole kernel.
    ids = [*dict.fromkeys(s.id for k in (kernel, model.kernel) for s in k.statements)]
    return Request(
        kernel=model.kernel.name,
        statement=access.statement,
        position=ids.index(access.statement),
        text=text_of(access),
        array=access.array,
        space=SPACES.get(space_of(model.kernel, access.array), "private"),
        shape=tuple(
            _sets.value_at(extent, sizes) for extent in storage_shape(model.array(access.array))
        ),
        itemsize=size,
        is_write=access.is_write,
        sizes=tuple(sorted(sizes.items())),
        when=tuple((_name_of(model, access, n), v) for n, v in when.items()),
        warp=warp,
        threads=prod(extents),
        touches=tuple(sorted(touches, key=lambda touch: touch.thread)),
    )


def _order(model: Model, access: Access, where: AddressMap) -> list[str]:
    """Names that identify a request, most significant first: blocks, z first, then loops."""
    loops = model.order.loops(access.statement)
    blocks = [name for name in reversed(where.block_names) if name not in loops]
    rest = sorted({*where.requests} - {*loops, *blocks})
    return [*blocks, *rest, *(n for n in loops if n in where.requests)]


def _name_of(model: Model, access: Access, name: str) -> str:
    """The name of a block or loop that a person knows."""
    if not is_hidden(name):
        return name
    at = Instance(access.statement, "")
    return next(CUDA.index("g", n) for n in range(3) if index_name(("g", n), at) == name)


def _value(form: Linear, point: Mapping[str, int]) -> int:
    return form.constant + sum(c * point[v.name] for v, c in form.terms.items())
