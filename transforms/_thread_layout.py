"""Cells of a box dealt out to the threads of a block.

With ``T`` threads and ``N`` cells, cell ``T*round + thread`` goes to ``thread``
in each round; neighbouring threads get neighbouring cells, so that reads of
rows are coalesced, and no thread idles but in the last round.  Where the box
and the block have matching axes, this gives each cell axis its thread axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pymbolic.primitives as prim

from loopkit._errors import IllegalTransformError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import Linear, Ranges, total, variable
from loopkit._tags import LocalAxis, Tag, Unroll

# Longer loops over rounds are left to the compiler.
UNROLLED_ROUNDS = 64


def block_shape(kernel: Kernel) -> tuple[int, int, int]:
    """The number of threads along l.0, l.1 and l.2, as tags say it."""
    shape = [1, 1, 1]
    used = frozenset().union(*(s.inames for s in kernel.statements))
    threads = [(i, t) for i, t in kernel.tags if isinstance(t, LocalAxis) and i in used]
    if not threads:
        raise IllegalTransformError(
            "l.auto lays a fetch over the threads of a block, but no iname is tagged l.0, l.1 "
            "or l.2",
            instead="tag the threads first; default_tag=None gives plain loops",
        )
    for iname, tag in threads:
        low, high = kernel.range_of(iname)
        if low is None or high is None:
            raise IllegalTransformError(
                f"iname '{iname}' is tagged {tag}, but has no constant length: it is open how "
                "many threads a block has",
                instead=f"split_iname('{iname}', 128, inner_tag='{tag}') gives it 128",
            )
        shape[tag.axis] = max(shape[tag.axis], high - low + 1)
    return shape[0], shape[1], shape[2]


@dataclass(frozen=True, eq=False)
class Layout:
    """Which cell each thread handles in each round.

    ``inames`` are ``(name, extent, tag)``, sequential ones first.  ``number`` is
    the running number of the cell, a form over them, of which the first
    ``cells`` are cells; a step along axis ``i`` counts ``weights[i]`` cells, and
    the position along it is ``positions[i]``.
    """

    positions: tuple[Linear, ...]
    weights: tuple[int, ...]
    inames: tuple[tuple[str, int, Tag | None], ...]
    number: Linear
    cells: int

    @property
    def is_even(self) -> bool:
        """Whether every combination of the inames is a cell."""
        return self.cells == math.prod(extent for _, extent, _ in self.inames)

    def has_quotient(self, axis: int) -> bool:
        """Whether the position along an axis is more than a sum of multiples of inames."""
        return any(not isinstance(atom, prim.Variable) for atom in self.positions[axis].terms)


def thread_layout(
    extents: Sequence[int], block: tuple[int, int, int], names: Sequence[str], base: str
) -> Layout:
    """Deal out a box; the last axis is the one that neighbouring threads go along.

    ``names`` name the axes of the box, ``base`` is the beginning of the names of
    inames that belong to no single axis.
    """
    cells, threads = math.prod(extents), math.prod(block)
    rounds = -(-cells // threads)
    digits: list[tuple[str, int, int, Tag | None]] = []  # placeholder, extent, weight, tag
    if rounds > 1:
        digits.append(("round", rounds, threads, Unroll() if rounds <= UNROLLED_ROUNDS else None))
    weight = threads
    for axis in (2, 1, 0):
        weight //= block[axis]
        if block[axis] > 1:
            digits.append((f"thread_{axis}", block[axis], weight, LocalAxis(axis)))
    ranges: Ranges = {name: (0, extent - 1) for name, extent, _, _ in digits}
    number = total(variable(name) * weight for name, _, weight, _ in digits)
    positions: list[Linear] = []
    weights: list[int] = []
    below = cells
    for axis, extent in enumerate(extents):
        below //= extent
        weights.append(below)
        part = number.floor_div(below, ranges)
        positions.append(part.remainder(extent, ranges) if axis else part)
    renamed = _readable_names([d[0] for d in digits], positions, names, base)
    values = {old: variable(new) for old, new in renamed.items()}
    return Layout(
        tuple(p.substitute(values) for p in positions),
        tuple(weights),
        tuple((renamed[name], extent, tag) for name, extent, _, tag in digits),
        number.substitute(values),
        cells,
    )


def _readable_names(
    digits: Sequence[str], positions: Sequence[Linear], names: Sequence[str], base: str
) -> dict[str, str]:
    """An iname that alone gives a position is called after its axis."""
    renamed = {digit: f"{base}_{digit}" for digit in digits}
    for position, name in zip(positions, names, strict=True):
        atoms = sorted(position.terms.items(), key=lambda item: -item[1])
        used = [a.name for a, _ in atoms if isinstance(a, prim.Variable)]
        elsewhere = frozenset().union(*(p.names for p in positions if p is not position))
        if len(used) != len(atoms) or elsewhere & set(used) or len(used) > 2:
            continue
        if len(used) == 1:
            renamed[used[0]] = name
        elif len(used) == 2:
            renamed[used[0]], renamed[used[1]] = f"{name}_outer", f"{name}_inner"
    return renamed
