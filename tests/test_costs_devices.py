"""Devices by name; what is published of them fits together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from seams import CAPABILITIES, DEVICES, attribute, chosen, driver

import loopkit as lk

#: TFLOP/s of float32, a multiplication and an addition counted as two, in the same data sheets.
PEAKS = {
    "V100": 15.7,
    "A100 40GB": 19.5,
    "A100 80GB": 19.5,
    "A100 80GB PCIe": 19.5,
    "RTX 4090": 82.6,
    "L4": 30.3,
    "L40S": 91.6,
    "H100 SXM": 66.9,
    "H100 PCIe": 51.2,
    "H200": 66.9,
}
#: The same of float64.
DOUBLE = {"V100": 7.8, "A100 80GB": 9.7, "H100 SXM": 33.5, "H100 PCIe": 25.6, "B200": 37}


@pytest.mark.parametrize("name", DEVICES)
def test_rates_give_the_published_peaks(name: str) -> None:
    device = DEVICES[name]
    for dtype, peaks in (("float32", PEAKS), ("float64", DOUBLE)):
        if name in peaks:
            peak = 2 * dict(device.capability.rates)[dtype] * device.cycles
            assert peak / 1e12 == pytest.approx(peaks[name], rel=0.01)
    assert device.name in str(device)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("H100", "H100 SXM"),
        ("h100-sxm5", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200"),
        ("a100", "A100 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("Tesla V100-SXM2", "V100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("4090", "RTX 4090"),
    ],
)
def test_names_as_people_and_drivers_write_them(asked: str, name: str) -> None:
    assert chosen(asked) is DEVICES[name]
    assert chosen(DEVICES[name]) is DEVICES[name]


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("H1OO", "H100 SXM"),
        ("A100 PCIe", "A100 80GB PCIe"),
        ("RTX 409", "RTX 4090"),
        ("b20", "B200"),
    ],
)
def test_an_unknown_device_is_told_with_its_neighbours(asked: str, near: str) -> None:
    with pytest.raises(lk.UnknownNameError, match=f"there is no device '{asked}'") as caught:
        chosen(asked)
    assert f"'{near}'" in str(caught.value)


@pytest.mark.parametrize("asked", ["", "<script>", "Cray-1", "\x00", "x" * 500])
def test_hostile_names(asked: str) -> None:
    with pytest.raises(lk.UnknownNameError):
        chosen(asked)


@pytest.mark.parametrize("asked", [90, True, ["H100"], {}])
def test_what_is_no_name(asked: object) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="device is a name or a Device"):
        chosen(asked)  # type: ignore[arg-type]


def test_devices_with_other_numbers() -> None:
    slow = replace(lk.Device.named("H100"), name="slow", clock=1e9)
    fast, slow_costs = (small().costs(n=1 << 20, device=d).roofline for d in ("H100", slow))
    ratios = {
        a.name: b.seconds / a.seconds for a, b in zip(fast.terms, slow_costs.terms, strict=True)
    }
    assert ratios["memory"] == 1 and ratios["float32"] == pytest.approx(1.98)
    for wrong in ({"clock": 0}, {"bandwidth": "fast"}, {"l2": -1}, {"multiprocessors": np.nan}):
        with pytest.raises(lk.InvalidArgumentError, match="is a number above 0"):
            replace(slow, **wrong)
    with pytest.raises(lk.InvalidArgumentError, match="capability of a device"):
        replace(slow, capability="9.0")


def test_without_a_gpu_the_one_assumed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "has_gpu", lambda: False)
    found = chosen(None)
    assert found == DEVICES["H100 SXM"]
    assert "assumed: there is no GPU here" in str(found)


def small() -> lk.Kernel:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    return knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")


def test_costs_take_a_device() -> None:
    assert small().costs(n=300, device="L4").device is DEVICES["L4"]
    with pytest.raises(lk.UnknownNameError, match="there is no device 'L5'"):
        small().costs(n=300, device="L5")
    with pytest.raises(lk.InvalidArgumentError, match="is no architecture"):
        small().costs(n=300, arch="sm_x")
    for arch in ("sm_80", "sm_100a", "sm_90"):
        costs = small().costs(n=300, device="L4", arch=arch)
        if arch == "sm_80":
            continue  # an L4 runs it
        with pytest.raises(lk.InvalidArgumentError, match=f"L4 does not run .* for {arch}"):
            costs.resources  # noqa: B018


def test_sizes_may_be_called_so() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < device + arch }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"}
    )
    assert dict(knl.costs(device=3, arch=4).instances) == {"insn": 7}


@pytest.mark.gpu
def test_the_gpu_here() -> None:
    found = chosen(None)
    assert found.note == "the GPU here"
    limits, index = found.capability, driver.current_device()

    def told(name: str) -> int:
        return attribute(name, index)

    assert limits is CAPABILITIES[limits.name]
    assert limits.warps * 32 == told("MAX_THREADS_PER_MULTIPROCESSOR")
    assert limits.blocks == told("MAX_BLOCKS_PER_MULTIPROCESSOR")
    assert limits.registers == told("MAX_REGISTERS_PER_MULTIPROCESSOR")
    assert limits.shared[-1] == told("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
    assert limits.shared_block == told("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    assert limits.reserved == told("RESERVED_SHARED_MEMORY_PER_BLOCK")
    try:
        published = chosen(found.name)
    except lk.UnknownNameError:
        return
    assert found.multiprocessors == published.multiprocessors
    assert found.clock == pytest.approx(published.clock, rel=0.05)
    assert found.bandwidth == pytest.approx(published.bandwidth, rel=0.05)
    assert found.l2 == pytest.approx(published.l2, rel=0.05)
