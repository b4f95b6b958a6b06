"""Costs from counts, at given sizes or as quasi-polynomials of symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from loopkit._budget import in_turn
from loopkit._costs.cost_values import AccessCosts, Footprint
from loopkit._costs.costs import Costs
from loopkit._costs.counts import Asked, CallCounts, Numbers, added
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.devices import Device, chosen
from loopkit._costs.open_sizes import open_names, polynomials
from loopkit._costs.sizes import check_names, check_sizes
from loopkit._kernel import Kernel
from loopkit._slabs import settled


@in_turn
def costs_of(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
    data: Data = NO_DATA,
) -> Costs:
    """What a call with these sizes does: operations, bytes, sectors and bank conflicts, exactly.

    Counted from the kernel's sets, without a GPU and without enumerating instances: a product
    of 4096 takes no longer than one of 64.  Operations are those of the text: arithmetic of
    subscripts, bounds and guards, which code generation adds or saves, is not among them.

    *sizes* are the kernel's integer parameters, each a number; *data* are arguments that decide
    which cells are touched, and when: what they decide is counted with them.  *device* is what
    ``resources``, ``occupancy``, ``tail`` and ``roofline`` are of (a name, such as ``"H100"``, or
    a :class:`Device`; the GPU here or else an H100 if it is left out), *arch* what its code is
    compiled for.

    Returns a :class:`Costs`, which prints as tables.  Raises
    :class:`~loopkit.InvalidArgumentError` for sizes that are missing or that no call may have,
    :class:`~loopkit.UnknownNameError` for others and for devices, and what lowering raises.
    """
    asked = None if device is None else chosen(device)  # refused before anything is counted
    kernel = settled(kernel)
    sizes = check_sizes(kernel, sizes, "costs")
    counts = CallCounts(kernel, sizes, data)
    return _made([counts], Asked(counts), sizes, asked, arch)


@in_turn
def open_costs_of(
    kernel: Kernel,
    given: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> Costs:
    """The costs of a call of which only some sizes are given, or none.

    Raises :class:`InvalidArgumentError` where a number is no polynomial of the sizes, and says
    which; and what :func:`costs_of` raises.
    """
    asked = None if device is None else chosen(device)
    kernel = settled(kernel)
    given = check_names(kernel, given)
    names = open_names(kernel, given)
    seen: list[CallCounts] = []
    noted: list[Asked] = []
    words: list[str] = []

    def count(sizes: Mapping[str, int]) -> Numbers:
        seen.append(call := CallCounts(kernel, sizes))
        if not noted:
            noted.append(first := Asked(call))
            words.extend(what for what, _ in _made(seen, first, given, asked, arch, names).numbers)
        return Numbers(call, noted[0].places)

    values = polynomials(kernel, given, count, words)
    return _made(seen, Asked(seen[0], values), given, asked, arch, names)


def _made(
    seen: Sequence[CallCounts],
    asks: Asked,
    sizes: Mapping[str, int],
    device: Device | None,
    arch: str | None,
    open_sizes: tuple[str, ...] = (),
) -> Costs:
    """The costs of a call that was counted at some sizes."""
    call = seen[0]
    known: dict[str, Any] = {
        "sizes": tuple(sorted(sizes.items())),
        "asked": device,
        "arch": arch,
        "open_sizes": open_sizes,
    }
    launches = [_launch(seen, number, asks, known) for number in range(len(call.launches))]
    if call.is_one_launch:
        return launches[0]

    def every(what: str) -> Iterator[Any]:
        return chain.from_iterable(getattr(one, what) for one in launches)

    footprints = _footprints(asks, len(launches), " by the whole call")
    before = "bytes read of {} from before the whole call".format
    return Costs(
        **known,
        kernel=call.kernel.name,
        grid=(0, 0, 0),
        block=(0, 0, 0),
        shared_bytes=max((one.shared_bytes for one in launches), default=0),
        instances=tuple(every("instances")),
        operations=tuple(sorted(added(every("operations")).items())),
        accesses=tuple(every("accesses")),
        footprints=footprints,
        from_before=asks.by_key(len(launches), lambda call: call.from_before, before),
        source=call.kernel,
        at_most=tuple(every("at_most")),
        needs=tuple(sorted(set(every("needs")))),
        times=sum(one.times for one in launches),
        all_blocks=sum(one.blocks for one in launches),
        launches=tuple(launches),
        numbers=(
            *((f"{one.kernel}: {what}", n) for one in launches for what, n in one.numbers),
            *asks.numbers[-1],
        ),
    )


def _launch(seen: Sequence[CallCounts], part: int, asks: Asked, known: Mapping[str, Any]) -> Costs:
    """The costs of a launch of a call that was counted at some sizes."""
    first = seen[0].launches[part]
    kernel = first.launch.kernel
    made = kernel.program()
    times, blocks, waits = 1, None, None
    grid = asks.of(part, lambda one: one.grid, [f"blocks along {axis}" for axis in "xyz"])
    instances = asks.by_key(part, lambda one: one.instances, "instances of {}".format)
    operations = asks.by_key(part, lambda one: one.operations, "{0[0]} of {0[1]}".format)
    numbers = range(len(first.listed))
    accesses = tuple(_access(seen, part, number, asks) for number in numbers)
    footprints = _footprints(asks, part)
    if not seen[0].is_one_launch:
        times, blocks = asks.of(part, lambda one: (one.times, one.blocks), ["launches", "blocks"])
    if known["open_sizes"]:
        where = [f"the barrier between {b.after} and {b.before}" for b in first.barriers]
        words = {"times": "executions of", "blocks": "blocks at"}
        waits = tuple(asks.fields(part, lambda one: one.barriers, where, **words))
    return Costs(
        **known,
        kernel=kernel.name,
        grid=tuple(grid),
        block=made.block,
        shared_bytes=made.static_shared + made.dynamic_shared,
        instances=instances,
        operations=operations,
        accesses=accesses,
        footprints=footprints,
        source=kernel,
        at_most=first.at_most,
        needs=first.needs,
        number=first.launch.number,
        times=times,
        all_blocks=blocks,
        waits=waits,
        calls=first.launch.calls,
        numbers=tuple(asks.numbers[part]),
    )


def _footprints(asks: Asked, part: int, where: str = "") -> tuple[Footprint, ...]:
    arrays = [f"{f.array}{where}" for f in asks.parts[part].footprints]
    words = {"read": "bytes read of", "written": "bytes written of"}
    return tuple(asks.fields(part, lambda one: one.footprints, arrays, **words))


def _access(seen: Sequence[CallCounts], part: int, number: int, asks: Asked) -> AccessCosts:
    """What an access costs, with the alignment that it has at all sizes where it was counted."""
    access = seen[0].launches[part].requests(number)
    where = [f"of {access.text} ({access.verb}, {access.statement})"]
    pieces = "sectors" if access.space == "global" else "wavefronts"
    words = {name: name for name in ("requests", "threads", "elements")}
    words |= {"pieces": pieces, "least_pieces": f"least {pieces}"}
    words["most_pieces"] = f"most {pieces} of a request"
    [counts] = asks.fields(part, lambda one: [one.requests(number).counts], where, **words)
    words = {name: name for name in ("threads", "warps", "blocks", "cells")}
    words = {"times": "accesses", **words}
    [reuse] = asks.fields(part, lambda one: [one.access(number).reuse], where, **words)
    if counts is not None:
        known = [call.launches[part].known.get(number) for call in seen]
        every = [access.counts for access in known if access is not None]
        counts = replace(counts, alignment=min(c.alignment for c in every if c is not None))
    return replace(seen[0].launches[part].access(number), counts=counts, reuse=reuse)
