"""The devices that costs are told for: what NVIDIA publishes of them, or what the GPU here says.

Sources, by the letters that stand behind the numbers of a device, in their order
(multiprocessors, clock, bandwidth, L2, bytes that L2 delivers a clock):

- A: NVIDIA A100 Tensor Core GPU Architecture, whitepaper V1.0, 2020, tables 1, 4 and 5 (V100, too;
  L2 is said to be read at 5120 bytes a clock, 2.3 times as fast as that of V100);
- B: NVIDIA A100 data sheet, 2021 (80 GB models);
- C: NVIDIA H100 Tensor Core GPU Architecture, whitepaper V1.04, 2023, tables 2 to 4;
- D: NVIDIA H200 data sheet, 2024: memory; its other numbers are those of the same chip in C;
- E: NVIDIA L40S data sheet, 2023;
- F: NVIDIA Ada GPU Architecture, whitepaper V2.01, 2023 (RTX 4090, L4, and the L40, whose chip is
  that of the L40S);
- G: NVIDIA DGX B200 data sheet, 2024, an eighth of it;
- c: computed: the clock at which the multiprocessors reach the published peaks of float32 (H100
  66.9 and 51.2 TFLOP/s, C; L40S 91.6, E; L4 30.3, F) or of float64 (B200 37, G);
- m: no document says it: what drivers tell of such a device;
- P: CUDA C++ Programming Guide 12.9, "Throughput of Native Arithmetic Instructions" (results a
  clock and multiprocessor) and "Technical Specifications per Compute Capability";
- O: `cuda_occupancy.h` of CUDA 13.0: allocation units, configurations of shared memory.

Shared memory and L1 deliver 128 bytes a clock and multiprocessor: a word of each of 32 banks (P).
Clocks are the highest that a device boosts to: rates are at most those told here.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace

from loopkit._arguments import at_least
from loopkit._costs.occupancy import Occupancy, Tail, blocks_at_once
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._frozen import dataclass
from loopkit._printed import Printed
from loopkit._spelling import shown

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Capability:
    """What multiprocessors of one compute capability hold and do (P, O).

    ``warps`` and ``blocks`` are the most that are there at once; ``registers`` of 32 bits are
    allocated in units of ``register_unit`` for a warp.  ``shared`` are the sizes in bytes that its
    shared memory may have, the rest of the same memory being L1; a block takes ``reserved`` bytes
    beside its own, all in units of ``shared_unit``.  ``rates`` are results a clock: additions and
    multiplications, or both fused, in a type (two at once in those of 16 bits), other integer
    operations and comparisons (``int32``), reciprocals, square roots, exponentials (``special``).
    """

    name: str
    warps: int
    blocks: int
    shared: tuple[int, ...]
    reserved: int
    shared_unit: int
    rates: tuple[tuple[str, int], ...]
    registers: int = 1 << 16
    register_unit: int = 256
    registers_thread: int = 255
    block_threads: int = 1024
    shared_clock: int = 128

    @property
    def arch(self) -> str:
        """What code is compiled for: ``sm_80``, ``sm_90a``."""
        number = self.name.replace(".", "")
        return f"sm_{number}a" if int(number) >= 90 else f"sm_{number}"

    @property
    def shared_block(self) -> int:
        """The most bytes of shared memory that a block can ask for."""
        return self.shared[-1] - self.reserved


_SMALL, _MIDDLE = "0 8 16 32 64 100", "0 8 16 32 64 100 132 164"
_LARGE = f"{_MIDDLE} 196 228"
_TYPES = ("float16", "bfloat16", "float32", "float64", "int32")

#: Of what 7.x has no bfloat16, float32 does the work.  Of 10.0, what is not published is as in 9.0.
CAPABILITIES: Mapping[str, Capability] = {
    name: Capability(
        name,
        warps,
        blocks,
        tuple(int(size) * KIB for size in shared.split()),
        reserved=0 if name.startswith("7.") else KIB,
        shared_unit=256 if name.startswith("7.") else 128,
        rates=(*zip(_TYPES, rates, strict=True), ("special", 16)),
    )
    for name, warps, blocks, shared, rates in (
        ("7.0", 64, 32, "0 8 16 32 64 96", (128, 64, 64, 32, 64)),
        ("7.5", 32, 16, "32 64", (128, 64, 64, 2, 64)),
        ("8.0", 64, 32, _MIDDLE, (256, 128, 64, 32, 64)),
        ("8.6", 48, 16, _SMALL, (128, 128, 128, 2, 64)),
        ("8.7", 48, 16, _MIDDLE, (128, 128, 128, 2, 64)),
        ("8.9", 48, 24, _SMALL, (128, 128, 128, 2, 64)),
        ("9.0", 64, 32, _LARGE, (256, 256, 128, 64, 64)),
        ("10.0", 64, 32, _LARGE, (256, 256, 128, 64, 64)),
        ("12.0", 48, 24, _SMALL, (128, 128, 128, 2, 128)),
        ("12.1", 48, 24, _SMALL, (128, 128, 128, 2, 128)),
    )
}


def capability_of(arch: str) -> Capability | None:
    """What multiprocessors hold that run code for ``sm_90a``; None where that is not known."""
    number = int(re.sub(r"\D", "", arch) or 0)
    return CAPABILITIES.get(f"{number // 10}.{number % 10}")


@dataclass(frozen=True)
class Device(Printed):
    """A GPU, as far as costs depend on it.

    ``clock`` is in Hz, ``bandwidth`` of its memory in bytes a second, ``l2`` in bytes,
    ``l2_clock`` in bytes that L2 delivers a clock, where that is known.  ``note`` says how this
    device came to be taken.  One with other numbers is made of one that has a name:
    ``dataclasses.replace(Device.named("H100"), clock=1.4e9)``.
    """

    name: str
    capability: Capability
    multiprocessors: int
    clock: float
    bandwidth: float
    l2: int
    l2_clock: int | None = None
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.capability, Capability):
            raise InvalidArgumentError(
                f"the capability of a device is a Capability, and {shown(self.capability)} is none",
                instead='Device.named("H100").capability is one',
            )
        for name in ("multiprocessors", "clock", "bandwidth", "l2"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise InvalidArgumentError(
                    f"{name} of a device is a number above 0, and {shown(value)} is none"
                )

    @classmethod
    def named(cls, name: str) -> Device:
        """The device that NVIDIA calls so; raises :class:`UnknownNameError` for other names."""
        return chosen(str(name))

    @property
    def cycles(self) -> float:
        """Clocks a second of all multiprocessors together."""
        return self.multiprocessors * self.clock

    def occupancy(self, threads: int, registers: int, shared: int = 0) -> Occupancy:
        """How many blocks a multiprocessor holds at once, and what limits that.

        :arg threads: of a block.
        :arg registers: of a thread.
        :arg shared: bytes of shared memory of a block, static and dynamic.
        :raises ResourceError: if not even one block fits.
        """
        return blocks_at_once(
            self.capability,
            at_least(1)("threads", threads),
            at_least(0)("registers", registers),
            at_least(0)("shared", shared),
        )

    def tail(self, occupancy: Occupancy, blocks: int) -> Tail:
        """In how many waves the blocks of a grid run, and what the last one leaves idle."""
        at_once = occupancy.blocks * self.multiprocessors
        return Tail(at_least(0)("blocks", blocks), self.multiprocessors, at_once)

    def __str__(self) -> str:
        text = (
            f"{self.name}: {self.multiprocessors} multiprocessors of compute capability "
            f"{self.capability.name} at up to {self.clock / 1e6:.0f} MHz, "
            f"{self.bandwidth / 1e9:,.0f} GB/s, {self.l2 / MIB:.3g} MiB of L2"
        )
        return f"{text} ({self.note})" if self.note else text


DEVICES: Mapping[str, Device] = {
    name: Device(name, CAPABILITIES[of], count, mhz * 1e6, gb * 1e9, mib * MIB, l2_clock)
    for name, of, count, mhz, gb, mib, l2_clock in (
        ("V100", "7.0", 80, 1530, 900, 6, 2048),  # A A A A A
        ("A100 40GB", "8.0", 108, 1410, 1555, 40, 5120),  # A A A A A
        ("A100 80GB", "8.0", 108, 1410, 2039, 40, 5120),  # A A B A A
        ("A100 80GB PCIe", "8.0", 108, 1410, 1935, 40, 5120),  # A A B A A
        ("RTX 4090", "8.9", 128, 2520, 1008, 72, None),  # F F F F
        ("L4", "8.9", 58, 2040, 300, 48, None),  # F c F F
        ("L40S", "8.9", 142, 2520, 864, 96, None),  # E c E F
        ("H100 SXM", "9.0", 132, 1980, 3352, 50, None),  # C c C C
        ("H100 PCIe", "9.0", 114, 1755, 2039, 50, None),  # C c C C
        ("H200", "9.0", 132, 1980, 4800, 60, None),  # C c D m
        ("B200", "10.0", 148, 1965, 8000, 126, None),  # m c G m
    )
}
"""Devices by name, as published; A100 and H100 without PCIe are those of SXM modules."""

_SHORT = {"h10080gb": "H100 SXM", "a100": "A100 80GB", "4090": "RTX 4090"}
DEFAULT = "H100 SXM"


def chosen(device: Device | str | None) -> Device:
    """The device of a name, or the one given; for None the GPU here, or else an H100.

    ``note`` of what is returned says what was taken where nobody named it.  Raises
    :class:`UnknownNameError` for a name that there is not, :class:`InvalidArgumentError` for what
    is no name.
    """
    if isinstance(device, Device):
        return device
    if device is None:
        here = device_here()
        if here is not None:
            return here
        return replace(DEVICES[DEFAULT], note="assumed: there is no GPU here, and none was named")
    if not isinstance(device, str):
        raise InvalidArgumentError(
            f"device is a name or a Device, and {shown(device)} is neither",
            instead=f"names: {', '.join(DEVICES)}",
        )
    found = _named(device)
    if found is None:
        plain, known = _plain(device), {_plain(name): name for name in DEVICES}

        def is_part(other: str) -> bool:
            return bool(plain) and (plain in other or other in plain)

        near = [*filter(is_part, known)] or difflib.get_close_matches(plain, known, cutoff=0.5)
        name = device if device.isprintable() and len(device) < 80 else shown(device)
        error = UnknownNameError("device", name, DEVICES)
        if near:
            error.instead = "did you mean " + " or ".join(f"'{known[n]}'" for n in near) + "?"
        raise error
    return found


def running(arch: str) -> Device:
    """The GPU here if code for ``sm_90a`` is made for it; else one that it is made for.

    An H100 where no device is known that it is made for; ``note`` says so.
    """
    here = chosen(None)
    if here.capability == capability_of(arch):
        return here
    made_for = (d for d in DEVICES.values() if d.capability == capability_of(arch))
    found = next(made_for, DEVICES[DEFAULT])
    return replace(found, note=f"assumed: none was named, and code is for {arch}")


def _named(name: str) -> Device | None:
    known = {_plain(name): made for name, made in DEVICES.items()}
    plain = _plain(name)
    return known.get(_plain(_SHORT.get(plain, plain)))


def _plain(name: str) -> str:
    """A name without what people write now and then."""
    return re.sub(r"nvidia|geforce|tesla|sxm[0-9]?|hbm[0-9]e?|[\s_-]", "", name.lower())


def device_here() -> Device | None:
    """The GPU of this thread, as its driver describes it; None where there is none."""
    from loopkit._run import driver

    if not driver.has_gpu():
        return None
    index = driver.current_device()
    here = driver.device(index)
    name = ".".join(map(str, here.capability))
    if name not in CAPABILITIES:
        raise InvalidArgumentError(
            f"{here.name} is of compute capability {name}, of which no rates are known",
            instead=f"device= names another one: {', '.join(DEVICES)}",
        )
    # Memory moves data at both edges of its clock; clocks are told in kHz, the bus in bits.
    edges = 2e3 * attribute("MEMORY_CLOCK_RATE", index)
    bandwidth = edges * attribute("GLOBAL_MEMORY_BUS_WIDTH", index) / 8
    published = _named(here.name)
    if not bandwidth and published is not None:
        bandwidth = published.bandwidth
    return Device(
        here.name,
        CAPABILITIES[name],
        attribute("MULTIPROCESSOR_COUNT", index),
        attribute("CLOCK_RATE", index) * 1e3,
        bandwidth,
        attribute("L2_CACHE_SIZE", index),
        None if published is None else published.l2_clock,
        note="the GPU here",
    )


def attribute(name: str, index: int) -> int:
    """An attribute of the GPU with this index from the driver, such as ``"L2_CACHE_SIZE"``."""
    from loopkit._run import driver

    asked = getattr(driver.api().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(driver.call("cuDeviceGetAttribute", asked, driver.call("cuDeviceGet", index)))
