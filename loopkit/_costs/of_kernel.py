"""The costs of a kernel, whether a call of it is one launch or several."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit._costs.costs import Costs, costs
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.devices import Device, chosen
from loopkit._costs.open_sequence import OpenSequenceCosts, open_sequence_costs
from loopkit._costs.open_sizes import OpenCosts, open_costs
from loopkit._costs.sequence import SequenceCosts, sequence_costs
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._slabs import settled

AnyCosts = Costs | SequenceCosts


def costs_of(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
    data: Data = NO_DATA,
) -> AnyCosts:
    """What a call with these sizes does: see :func:`~loopkit._costs.costs.costs`."""
    device = None if device is None else chosen(device)  # refused before anything is counted
    kernel = settled(kernel)
    count = costs if is_one_launch(kernel) else sequence_costs
    return count(kernel, sizes, device, arch, data)


def open_costs_of(
    kernel: Kernel,
    given: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> OpenCosts | OpenSequenceCosts:
    """The costs of a call of which only some sizes are given, or none."""
    device = None if device is None else chosen(device)
    kernel = settled(kernel)
    count = open_costs if is_one_launch(kernel) else open_sequence_costs
    return count(kernel, given, device, arch)
