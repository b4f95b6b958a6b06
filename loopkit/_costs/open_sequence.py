"""Costs of several launches whose sizes are left open: every number as a polynomial of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from loopkit._budget import in_turn
from loopkit._costs.devices import Device
from loopkit._costs.on_demand import Change, Part, Value, part
from loopkit._costs.open_sizes import (
    OpenCosts,
    aligned,
    barriers_at,
    changed,
    changed_barriers,
    changed_footprints,
    parts_of_counts,
    polynomials,
)
from loopkit._costs.polynomial import QuasiPolynomial
from loopkit._costs.sequence import (
    CountedLaunch,
    LaunchCosts,
    SequenceCosts,
    bytes_from_before,
    call_at,
    costs_of_call,
    footprints_of_call,
)
from loopkit._costs.sizes import check_names
from loopkit._costs.values import Footprint
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel

if TYPE_CHECKING:
    from loopkit._costs.text_table import Table


@dataclass(frozen=True)
class OpenLaunchCosts(OpenCosts, LaunchCosts):
    """What one launch of several does, by sizes."""

    @property
    def blocks(self) -> Any:
        """The blocks of all its grids."""
        return self.total_blocks

    @property
    def launched_open(self) -> str:
        """What is launched, in words."""
        if not self.loops:
            return super().launched_open
        around = ", ".join(self.loops)
        return f"times, in a loop over {around}: {self.times}\nblocks in all: {self.blocks}"


@dataclass(frozen=True)
class OpenSequenceCosts(SequenceCosts):
    """What a call of several launches does, by sizes: where :class:`SequenceCosts` has a count, a
    :class:`~loopkit._costs.polynomial.QuasiPolynomial`.

    ``sizes`` are those that were given; ``open_sizes`` the others.
    """

    launches: tuple[OpenLaunchCosts, ...]
    open_sizes: tuple[str, ...] = ()

    def at(self, /, **sizes: int) -> dict[str, int]:
        """All counts at sizes, by the name of a launch and what they count.

        Raises :class:`InvalidArgumentError` where one of them says nothing of these sizes.
        """
        return {
            what: value(**sizes) if isinstance(value, QuasiPolynomial) else value
            for what, value in _numbers_of(self)
            if value is not None
        }

    def parts(self) -> Iterator[Table | str]:
        """The tables, and the remarks between them."""
        from loopkit._costs.sequence_table import open_sequence_parts

        return open_sequence_parts(self)


@in_turn
def open_sequence_costs(
    kernel: Kernel,
    given: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> OpenSequenceCosts:
    """The costs of a call of several launches of which only some sizes are given, or none.

    Arguments and errors are those of :func:`~loopkit._costs.open_sizes.open_costs`.
    """
    given = check_names(kernel, given)
    seen: list[tuple[Mapping[str, int], tuple[CountedLaunch, ...]]] = []

    def parts(sizes: Mapping[str, int]) -> Iterator[Part]:
        call = call_at(kernel, sizes)
        seen.append((sizes, call))
        for one in call:
            yield from (_of_launch(one.launch.kernel.name, p) for p in _parts_of_launch(one))
        footprints = cache(lambda: footprints_of_call(call))
        yield part(lambda change: _changed_footprints(footprints(), change))

        def before(change: Change) -> object:
            return _changed_before(bytes_from_before(kernel, footprints(), sizes), change)

        yield part(before)

    names, found = polynomials(kernel, given, parts)
    values = iter(found)
    sizes, call = seen[0]
    first = costs_of_call(kernel, sizes, call, device, arch)
    launches = tuple(
        aligned(one, [call[number].counts for _, call in seen])
        for number, one in enumerate(first.launches)
    )
    made = _changed(replace(first, launches=launches), lambda _what, _value: next(values))
    known = tuple(sorted(given.items()))
    own = (replace(one, sizes=known, open_sizes=names) for one in made.launches)
    return replace(made, launches=tuple(own), sizes=known, open_sizes=names)


def _fields(value: Any, kind: type) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(kind)}


def _numbers_of(costs: SequenceCosts) -> Sequence[tuple[str, Any]]:
    """All counts, with words for what they count, in a fixed order."""
    return part(partial(_changed, costs))()


def _changed(costs: SequenceCosts, change: Change) -> OpenSequenceCosts:
    """Costs with every count changed."""
    made = _fields(costs, SequenceCosts)
    made["launches"] = tuple(_changed_launch(one, change) for one in costs.launches)
    made["footprints"] = _changed_footprints(costs.footprints, change)
    made["from_before"] = _changed_before(costs.from_before, change)
    return OpenSequenceCosts(**made)


_WHOLE = "the whole call"


def _changed_footprints(footprints: Iterable[Footprint], change: Change) -> tuple[Footprint, ...]:
    return changed_footprints(footprints, lambda what, n: change(f"{what} by {_WHOLE}", n))


def _changed_before(
    before: Iterable[tuple[str, Value]], change: Change
) -> tuple[tuple[str, Any], ...]:
    words = "bytes read of {} from before {}"
    return tuple((array, change(words.format(array, _WHOLE), n)) for array, n in before)


def _changed_launch(launch: LaunchCosts, change: Change) -> OpenLaunchCosts:
    def in_launch(what: str, value: Value) -> Any:
        return change(f"{launch.kernel}: {what}", value)

    made = _fields(changed(launch, in_launch), LaunchCosts)
    made["times"], made["total_blocks"] = _changed_times(launch.times, launch.blocks, in_launch)
    waits = changed_barriers(lambda: launch.barriers, in_launch)
    return OpenLaunchCosts(**made, waits=waits)


def _changed_times(times: int, blocks: int, change: Change) -> tuple[Any, Any]:
    return change("launches", times), change("blocks", blocks)


def _parts_of_launch(one: CountedLaunch) -> Iterator[Part]:
    """The numbers of a launch, as :func:`_changed_launch` lists them."""
    kernel, counts = one.launch.kernel, one.counts
    yield from parts_of_counts(counts)
    yield part(partial(_changed_times, one.times, one.blocks))
    yield part(partial(changed_barriers, partial(barriers_at, kernel, counts)))


def _of_launch(name: str, own: Part) -> Part:
    """A part with the name of the launch in what it says."""
    return part(lambda change: [change(f"{name}: {what}", value) for what, value in own()])
