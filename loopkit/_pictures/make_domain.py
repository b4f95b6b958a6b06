"""Construction of a picture of a domain from the statement's instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopkit._budget import in_turn
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError, UnknownNameError, check_known
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError, linear
from loopkit._pictures.domain import DomainPicture, DomainPoint
from loopkit._pictures.shown_instances import (
    CELLS,
    At,
    Instances,
    at_texts,
    check_statement,
    first_values,
    fixing,
    instances_of,
)
from loopkit._spelling import shown
from loopkit._target import CUDA
from loopkit.codegen.hardware import find_hardware

COLOURS = ("order", "thread", "warp", "block")


@in_turn
def domain_picture(
    kernel: Kernel,
    statement: str | None,
    inames: Sequence[str] | None,
    at: At | None,
    colour: str | None,
    tiles: Sequence[str] | None,
    sizes: Mapping[str, int],
) -> DomainPicture:
    """See ``knl.plot_domain``."""
    sizes = check_sizes(kernel, sizes, "plot_domain")
    name = check_statement(kernel, statement)
    at = {} if at is None else at
    if not isinstance(at, Mapping):
        raise InvalidArgumentError(
            f"at is a mapping of inames to values, not {shown(at)}", instead="at={'i': 0}"
        )
    if inames is None:
        at = {**at, **first_values(kernel, name, sizes, at, keep=2)}
    found = instances_of(kernel, name, sizes, at)
    axes = _axes(found, inames, at)
    tiled_by = _known(found, tiles, "tiles") if tiles is not None else _tile_names(found)
    coloured_by, colours, names = _colours(found, colour)
    numbers, places = _numbered(found, tiled_by), _places(found, axes)
    points = _points(found, places, numbers.tolist(), colours.tolist())
    blocks = set(found.coordinates("g"))
    return DomainPicture(
        kernel=kernel,
        statement=name,
        position=[s.id for s in kernel.statements].index(name),
        sizes=tuple(sorted(sizes.items())),
        at=at_texts(at),
        axes=axes,
        points=points,
        turns=_texts(found, found.loops, found.time, "the only one"),
        tiles=_texts(found, tiled_by, numbers, ""),
        colours=names,
        coloured_by=coloured_by,
        tiled_by=tiled_by,
        tile_role="block" if set(tiled_by) <= blocks and tiled_by else "loop",
        has_threads=bool(found.coordinates("l") or blocks),
        by_data=bool(found.model.conditions_on_data(found.model.statement[name])),
    )


def _places(found: Instances, axes: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The place of each instance on the axes."""
    columns = [found.column(name).tolist() for name in axes]
    places: list[tuple[int, ...]] = list(zip(*columns, strict=True)) or [()] * len(found)
    if (count := len(set(places))) > CELLS:
        raise InvalidArgumentError(
            f"'{found.statement}' has {count:,} points over {', '.join(axes)}, and a "
            f"picture shows {CELLS:,} at most",
            instead=f"smaller sizes, or {fixing(axes[::-1])}",
        )
    return places


def _points(
    found: Instances, places: list[tuple[int, ...]], tiles: list[int], colours: list[int]
) -> tuple[DomainPoint, ...]:
    actors = (map(tuple, found.index(kind).tolist()) for kind in "gl")
    rows = zip(places, found.time.tolist(), *actors, tiles, colours, strict=True)
    counted, made = Counter(places), dict[tuple[int, ...], DomainPoint]()
    for place, time, block, thread, tile, colour in rows:
        if place not in made:
            made[place] = DomainPoint(place, time, block, thread, tile, colour, counted[place])
    return tuple(made.values())


def _axes(found: Instances, inames: Sequence[str] | None, at: At) -> tuple[str, ...]:
    """The inames on the axes: those asked for, or all of the text that ``at`` leaves open."""
    if inames is not None:
        axes = _known(found, inames, "inames")
        if not 1 <= len(axes) <= 3:
            raise InvalidArgumentError(
                f"a picture has rows, columns and slices: one to three inames, not {len(axes)}"
            )
        return axes
    axes = found.text or found.names
    fixed = {n for n in axes if n in at and not isinstance(at[n], range)}
    left = tuple(n for n in axes if n not in fixed)
    # Of a copy, the outermost iname is that of slices.
    return left if found.text or len(left) < 3 else (*left[1:], left[0])


def _known(found: Instances, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Names of inames; raises for others."""
    is_sequence = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_sequence or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"{what} are a sequence of inames, not {shown(names)}")
    check_known("iname", names, found.values)
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"{what} names one iname twice: {', '.join(names)}")
    return tuple(names)


def _tile_names(found: Instances) -> tuple[str, ...]:
    """Inames that have one value in each tile: of those that make up one of the text, the outer."""
    outer: dict[str, None] = {}
    for name in found.text:
        try:
            terms = linear(found.values[name]).terms
        except NotAffineError:
            continue
        parts = {str(atom): abs(factor) for atom, factor in terms.items()}
        if len(parts) > 1 and len(set(parts.values())) > 1 and parts.keys() <= set(found.names):
            outer[max(parts, key=lambda name: parts[name])] = None
    blocks = found.coordinates("g")
    several = [n for n in found.names if len(np.unique(found.column(n))) > 1]
    return tuple(n for n in several if n in outer or n in blocks)


def _numbered(found: Instances, names: Sequence[str]) -> Any:
    """The number of each row among those that differ in ``names``, in the order of these."""
    rows = (
        np.stack([found.column(n) for n in names], axis=1) if names else np.zeros((len(found), 1))
    )
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _texts(found: Instances, names: Sequence[str], number: Any, none: str) -> tuple[str, ...]:
    """What the inames are where a number is 0, 1, ..."""
    first = np.unique(number, return_index=True)[1]
    columns = [found.column(name)[first].tolist() for name in names]
    if not columns:
        return (none,) * len(first)
    return tuple(
        ", ".join(f"{n} = {v}" for n, v in zip(names, values, strict=True))
        for values in zip(*columns, strict=True)
    )


def _colours(found: Instances, colour: str | None) -> tuple[str, Any, tuple[str, ...]]:
    """The meaning of colours, the number of each instance's colour, and the names of colours.

    Without a requested colour: warps, threads, blocks, or the order where there are none.
    """
    blocks, threads = found.coordinates("g")[::-1], found.coordinates("l")
    thread = _linear_thread(found)
    if colour is None:
        several = len(np.unique(thread // CUDA.warp)) > 1
        colour = ("warp" if several else "thread") if threads else "block" if blocks else "order"
    if colour in ("thread", "warp"):
        numbers = thread // (CUDA.warp if colour == "warp" else 1)
        count = int(numbers.max(initial=-1)) + 1
        return colour, numbers, tuple(f"{colour} {n}" for n in range(count))
    if colour == "order":
        return colour, np.zeros(len(found), np.int64), ()
    if colour == "block":
        index = found.index("g")[:, ::-1]
        numbers = np.unique(index, axis=0, return_inverse=True)[1].reshape(-1)
        return colour, numbers, _texts(found, blocks, numbers, "block") if len(found) else ()
    if colour not in found.values:
        raise UnknownNameError("colour", str(colour), [*COLOURS, *found.values])
    numbers = _numbered(found, (colour,))
    return colour, numbers, _texts(found, (colour,), numbers, "") if len(found) else ()


def _linear_thread(found: Instances) -> Any:
    block = find_hardware(found.model.kernel).block
    x, y, z = found.index("l").T
    return x + block[0] * (y + block[1] * z)
