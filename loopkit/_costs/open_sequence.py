"""Costs of several launches whose sizes are left open: every number as a polynomial of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from loopkit._budget import in_turn
from loopkit._costs.devices import Device
from loopkit._costs.open_sizes import (
    Change,
    OpenCosts,
    Value,
    aligned,
    changed,
    changed_barrier,
    polynomials,
)
from loopkit._costs.polynomial import QuasiPolynomial
from loopkit._costs.sequence import LaunchCosts, SequenceCosts, sequence_costs
from loopkit._costs.sizes import check_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel

if TYPE_CHECKING:
    from loopkit._costs.table import Table


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
    seen: list[SequenceCosts] = []

    def sample(sizes: Mapping[str, int]) -> Iterator[tuple[str, Value]]:
        seen.append(sequence_costs(kernel, sizes, device, arch))
        return _numbers_of(seen[-1])

    names, found = polynomials(kernel, given, sample)
    values = iter(found)
    first = seen[0]
    launches = tuple(
        aligned(one, [costs.launches[number] for costs in seen])
        for number, one in enumerate(first.launches)
    )
    made = _changed(replace(first, launches=launches), lambda _what, _value: next(values))
    sizes = tuple(sorted(given.items()))
    own = (replace(one, sizes=sizes, open_sizes=names) for one in made.launches)
    return replace(made, launches=tuple(own), sizes=sizes, open_sizes=names)


def _fields(value: Any, kind: type) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(kind)}


def _numbers_of(costs: SequenceCosts) -> Iterator[tuple[str, Any]]:
    """All counts, with words for what they count, in a fixed order."""
    found: list[tuple[str, Any]] = []

    def note(what: str, value: Any) -> Any:
        found.append((what, value))
        return value

    _changed(costs, note)
    return iter(found)


def _changed(costs: SequenceCosts, change: Change) -> OpenSequenceCosts:
    """Costs with every count changed."""
    whole = "the whole call"
    made = _fields(costs, SequenceCosts)
    made["launches"] = tuple(_changed_launch(one, change) for one in costs.launches)
    made["footprints"] = tuple(
        replace(
            f,
            read=change(f"bytes read of {f.array} by {whole}", f.read),
            written=change(f"bytes written of {f.array} by {whole}", f.written),
        )
        for f in costs.footprints
    )
    made["from_before"] = tuple(
        (array, change(f"bytes read of {array} from before {whole}", n))
        for array, n in costs.from_before
    )
    return OpenSequenceCosts(**made)


def _changed_launch(launch: LaunchCosts, change: Change) -> OpenLaunchCosts:
    def in_launch(what: str, value: Value) -> Any:
        return change(f"{launch.kernel}: {what}", value)

    made = _fields(changed(launch, in_launch), LaunchCosts)
    made["times"] = in_launch("launches", launch.times)
    made["total_blocks"] = in_launch("blocks", launch.total_blocks)
    waits = tuple(changed_barrier(barrier, in_launch) for barrier in launch.barriers)
    return OpenLaunchCosts(**made, waits=waits)
