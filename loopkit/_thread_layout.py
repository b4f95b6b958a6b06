"""Cells of a box dealt out to the threads of a block.

With ``T`` threads and ``N`` cells, cell ``T*round + thread`` goes to ``thread``
in each round; neighbouring threads get neighbouring cells, so that reads of
rows are coalesced, and no thread idles but in the last round.  Where the box
and the block have matching axes, this gives each cell axis its thread axis.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._footprint import box_set
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import Linear, Ranges, total, variable
from loopkit._nodes import Expression
from loopkit._open_lengths import thread_inames, thread_range
from loopkit._tags import LocalAxis, Tag, Unroll

# Longer loops over rounds are left to the compiler.
UNROLLED_ROUNDS = 64


def block_shape(kernel: Kernel) -> tuple[int, int, int]:
    """The number of threads along l.0, l.1 and l.2, as tags say it."""
    shape = [1, 1, 1]
    for iname, tag in thread_inames(kernel):
        low, high = thread_range(kernel, iname, tag)
        shape[tag.axis] = max(shape[tag.axis], high - low + 1)
    return shape[0], shape[1], shape[2]


@dataclass(frozen=True)
class Part:
    """One iname of a nest, with values from 0 to ``extent - 1``."""

    iname: str
    extent: int
    tag: Tag | None


@dataclass(frozen=True, eq=False)
class Layout:
    """Which cell each thread handles in each round.

    ``parts`` are the inames, sequential ones first.  Those in ``given`` have one value
    each, once these are known; ``ties`` says which.  ``{ parts, given }`` with a cell is
    ``cells``, exactly, and ``positions`` along the axes of the box are forms over both.
    """

    parts: tuple[Part, ...]
    positions: tuple[Linear, ...]
    given: tuple[str, ...]
    ties: isl.Set
    cells: isl.Set


def thread_layout(
    kernel: Kernel, extents: Sequence[int], names: Sequence[str], base: str, taken: Collection[str]
) -> Layout:
    """Deal out a box; the last axis is the one that neighbouring threads go along.

    ``names`` name the axes of the box, ``base`` is the beginning of the names of
    inames that belong to no single axis.
    """
    block = block_shape(kernel)
    cells, threads = math.prod(extents), math.prod(block)
    rounds = -(-cells // threads)
    digits: list[tuple[Part, int]] = []  # an iname whose name is found below, and its weight
    if rounds > 1:
        tag = Unroll() if rounds <= UNROLLED_ROUNDS else None
        digits.append((Part("round", rounds, tag), threads))
    weight = threads
    for axis in (2, 1, 0):
        weight //= block[axis]
        if block[axis] > 1:
            digits.append((Part(f"thread_{axis}", block[axis], LocalAxis(axis)), weight))
    ranges: Ranges = {part.iname: (0, part.extent - 1) for part, _ in digits}
    number = total(variable(part.iname) * weight for part, weight in digits)
    positions: list[Linear] = []
    weights: list[int] = []
    below = cells
    for axis, extent in enumerate(extents):
        below //= extent
        weights.append(below)
        quotient = number.floor_div(below, ranges)
        positions.append(quotient.remainder(extent, ranges) if axis else quotient)
    renamed = {digit: f"{base}_{digit}" for digit in ranges} | _readable(positions, names)
    for digit, name in renamed.items():
        if name not in names:
            others = (new for old, new in renamed.items() if old != digit)
            renamed[digit] = kernel.fresh_name(name, {*taken, *others})
    values = {old: variable(new) for old, new in renamed.items()}
    number = number.substitute(values)
    positions = [p.substitute(values) for p in positions]
    # Positions with quotients become inames with one value each: what is said of them then
    # needs no quotients.
    given = [
        k for k, p in enumerate(positions) if any(isinstance(a, prim.FloorDiv) for a in p.terms)
    ]
    for k in given:
        positions[k] = variable(names[k])
    ties = _sets.universe()
    if given:
        row_major = total(p * w for p, w in zip(positions, weights, strict=True))
        ties = _sets.pw_affine((number - row_major).expression).zero_set()
        bounded = [k for k in given if k > 0]
        ties = ties & box_set([names[k] for k in bounded], [extents[k] for k in bounded])
    dealt = ties
    if cells < rounds * threads:
        dealt = ties & _sets.pw_affine((number * -1 + (cells - 1)).expression).nonneg_set()
    parts = tuple(Part(renamed[p.iname], p.extent, p.tag) for p, _ in digits)
    return Layout(parts, tuple(positions), tuple(names[k] for k in given), ties, dealt)


def _readable(positions: Sequence[Linear], names: Sequence[str]) -> dict[str, str]:
    """Inames that alone give a position are called after its axis."""
    renamed: dict[str, str] = {}
    for position, name in zip(positions, names, strict=True):
        atoms = sorted(position.terms.items(), key=lambda item: -item[1])
        used = [a.name for a, _ in atoms if isinstance(a, prim.Variable)]
        elsewhere = frozenset().union(*(p.names for p in positions if p is not position))
        if len(used) != len(atoms) or elsewhere & set(used) or len(used) > 2:
            continue
        endings = ("_outer", "_inner") if len(used) == 2 else ("",)
        renamed |= {old: name + ending for old, ending in zip(used, endings, strict=False)}
    return renamed


def dealt_domain(
    parts: Sequence[Part],
    layout: Layout | None,
    cells: isl.Set,
    positions: Mapping[str, Linear],
    context: isl.Set,
) -> tuple[isl.Set, Expression]:
    """The domain of some parts that run over ``cells``, and a condition beside it.

    ``positions`` say where the names of the cells are, ``context`` is what holds around them.
    """
    if layout is not None:
        cells = cells & layout.cells
    for name, form in positions.items():
        if form.expression != prim.Variable(name):
            position = _sets.equality(name, form.expression)
            cells = _sets.project_out(cells & position, [name])
    full = box_set([p.iname for p in parts], [p.extent for p in parts])
    domain = (cells & full).gist(context)
    if layout is not None and _leaves_threads_out(domain & context, parts):
        full = full & layout.ties
        return full, _sets.conditions(domain.gist(full & context))
    return domain, True


def _leaves_threads_out(domain: isl.Set, parts: Sequence[Part]) -> bool:
    """Whether a thread axis would appear shorter than the block is, were this the domain."""
    threads = [p for p in parts if isinstance(p.tag, LocalAxis)]
    for corner in (0, 1):
        at = [_sets.equality(p.iname, (p.extent - 1) * corner) for p in threads]
        everywhere = domain
        for one in at:
            everywhere = everywhere & one
        if everywhere.is_empty() and any((domain & one).is_empty() for one in at):
            return True
    return False
