"""Blocks at once, and what the last wave loses, are what NVIDIA's calculator and counting say."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seams import CAPABILITIES, DEVICES, Tail, blocks_at_once, counted

import loopkit as lk
from loopkit import ResourceError

#: Threads a block, registers a thread, bytes of shared memory a block, and the blocks at once that
#: `cudaOccMaxActiveBlocksPerMultiprocessor` of CUDA 13.0 answers; 0 where none fits.
KNOWN = {
    "7.0": """
          96 109      0   5
         749 255      0   0
         384  32  18057   5
         122  32      0  16
          32  16  72964   1
          96  16  98304   1
         212 154      0   1
         129 255  16267   1
         512 128  98304   1
    """,
    "7.5": """
         128 255  17210   2
         512 255   3869   0
         256 128      0   2
         256  64  19003   3
          64  64      0  16
         635 128  37303   0
         512  32      0   2
         192  41  13039   5
          64 128  52645   1
    """,
    "8.0": """
         384 255  72987   0
         128  16 166912   1
          32 255  47801   3
          96 255  96798   1
        1024 255  14964   0
         384  16      0   5
          64 128  42547   3
          64 255      0   4
         745  16 166912   1
    """,
    "8.6": """
         256  64      0   4
         512 128 101376   1
         256  64      0   4
        1024  32      0   1
          64  64 101376   1
         128 255 101376   1
         128 128 101376   1
         256  16   9156   6
         128 255  45126   2
    """,
    "8.7": """
          64  16 166912   1
         128 255     63   2
          64 221 166912   1
          96 119   2843   5
         384  16 166912   1
          96 128  19526   5
          96 255      0   2
        1024  32 166912   1
         192  64 131377   1
    """,
    "8.9": """
        1024  32  11593   1
        1024 255      0   0
          96  16 101376   1
         970  16  72939   1
          64 255 101376   1
          32  16      0  24
         512 255 101376   0
         512 255 101376   0
        1024  32   4494   1
    """,
    "9.0": """
         384  64   7886   2
         128  64 232448   1
          96  32      0  21
         512  49 232448   1
        1024  64 110436   1
          64  64  11075  16
          32  64      0  32
         128  16  22037  10
          96  32 214900   1
    """,
    "10.0": """
          96 255 149579   1
         192  22      0  10
          32  16      0  32
          64  16 118955   1
         192  32 232448   1
          96  16  47487   4
        1024  32 232448   1
         256  16      0   8
        1024  32 232448   1
    """,
    "12.0": """
          64 176  16221   4
         128  64   4579   8
          32  32   1869  24
          96  16  87193   1
         192 128  24295   2
          32  64  43114   2
          32  64 101376   1
         256  16 101376   1
        1024  16      0   1
    """,
    "12.1": """
         384  16  51640   1
         128 255   5088   2
         512  64      0   2
        1024 255      0   0
          64  16      0  24
         512  16 101376   1
         192 128      0   2
         512  16 101376   1
         512 128  10059   1
    """,
}
CASES = [
    (name, *map(int, line.split()))
    for name, table in KNOWN.items()
    for line in table.strip().splitlines()
]


@pytest.mark.parametrize(("name", "threads", "registers", "shared", "blocks"), CASES)
def test_blocks_at_once(name: str, threads: int, registers: int, shared: int, blocks: int) -> None:
    if not blocks:
        with pytest.raises(ResourceError, match="has no room for"):
            blocks_at_once(CAPABILITIES[name], threads, registers, shared)
        return
    found = blocks_at_once(CAPABILITIES[name], threads, registers, shared)
    assert found.blocks == blocks
    assert min(room for _, room in found.limits) == blocks
    assert found.limited_by == tuple(n for n, room in found.limits if room == blocks)
    assert 0 < found.share <= 1 and found.warps == blocks * -(-threads // 32)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_one_block_more_would_not_fit(name: str) -> None:
    """What is limited has no room: each resource is counted again, warp by warp."""
    limits = CAPABILITIES[name]
    for threads, registers, shared in itertools.product((32, 160, 512), (20, 97), (0, 9000)):
        found = blocks_at_once(limits, threads, registers, shared)
        warps = -(-threads // 32)
        bytes_each = -(-(shared + limits.reserved) // limits.shared_unit) * limits.shared_unit
        assert (found.shared, found.registers % 256) == (bytes_each, 0)
        for blocks in (found.blocks, found.blocks + 1):
            parts = [16384] * 4  # registers in each part, to which warps go one after the other
            for warp in range(blocks * warps):
                parts[warp % 4] -= -(-registers * 32 // 256) * 256
            fits = (
                min(parts) >= 0
                and blocks * warps <= limits.warps
                and blocks <= limits.blocks
                and blocks * bytes_each <= limits.shared[-1]
            )
            assert fits == (blocks == found.blocks)
        assert found.configured in limits.shared
        assert found.blocks * bytes_each <= found.configured


@given(st.integers(0, 5000), st.integers(1, 200), st.integers(1, 32))
def test_the_last_wave(blocks: int, multiprocessors: int, each: int) -> None:
    found = Tail(blocks, multiprocessors, each * multiprocessors)
    waves = [found.at_once] * (blocks // found.at_once) + [blocks % found.at_once]
    waves = [wave for wave in waves if wave]
    assert found.waves == len(waves)
    assert found.last == (waves[-1] if waves else 0)
    places = len(waves) * found.at_once
    assert found.places_lost == pytest.approx((places - blocks) / places if places else 0)
    busy = [
        blocks // multiprocessors + (n < blocks % multiprocessors) for n in range(multiprocessors)
    ]
    rounds = max(busy)
    lost = sum(rounds - b for b in busy) / (rounds * multiprocessors) if rounds else 0
    assert found.time_lost == pytest.approx(lost)
    assert str(found)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0, 1, 0), "threads must be at least 1"),
        ((64, -1, 0), "registers must be at least 0"),
        ((64, 32, "much"), "shared must be an integer"),
        ((64, 32, 1 << 20), "no room for 1048576 bytes of shared memory a block"),
    ],
)
def test_numbers_that_no_block_has(numbers: tuple[Any, ...], said: str) -> None:
    with pytest.raises(lk.LoopkitError, match=said):
        lk.Device.named("H100").occupancy(*numbers)


def test_one_is_singular() -> None:
    h100 = lk.Device.named("H100")
    assert str(h100.occupancy(1024, 64)).startswith("1 block a multiprocessor")
    assert counted(1, "axis", "axes") == "1 axis" and counted("n", "axis", "axes") == "n axes"
    assert counted(0, "block") == "0 blocks" and counted(1024, "block") == "1,024 blocks"


def test_it_says_what_limits() -> None:
    h100 = DEVICES["H100 SXM"]
    found = h100.occupancy(threads=256, registers=119, shared=8320)
    assert str(found) == (
        "2 blocks a multiprocessor, 16 of 64 warps (25%), limited by registers\n"
        "  blocks that there is room for: warps 8, blocks 32, registers 2, shared memory 24"
    )
    assert str(h100.tail(found, 300)) == (
        "2 waves of 264 blocks, the last of 36:\n"
        "  43.2% of the places for blocks stay empty, 24.2% of the multiprocessors' time"
    )


def test_both_of_two_limits_are_told() -> None:
    found = blocks_at_once(CAPABILITIES["9.0"], 128, 32, 14 * 1024 - 1024)
    assert found.limited_by == ("warps", "registers", "shared memory")


@pytest.mark.nvrtc
def test_spills_and_registers_come_from_the_compiled_code() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    knl = knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    costs = knl.costs(n=1 << 20, device="A100")
    assert costs.resources == knl.resources("sm_80")
    assert costs.occupancy == blocks_at_once(CAPABILITIES["8.0"], 128, costs.resources.registers, 0)
    assert costs.tail.blocks == 1 << 13
    assert knl.costs(n=128, device="RTX 4090", arch="sm_86").resources.arch == "sm_86"


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_the_driver_counts_as_many_blocks() -> None:
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    import matmul_registers
    import transpose
    from seams import device_here, driver, load

    device, here = driver.device(driver.current_device()), device_here()
    assert here is not None
    kernels = [*matmul_registers.make().values(), *transpose.make().values()]
    for kernel in kernels:
        with device.current():
            loaded = load(kernel.program(), device)
            threads = loaded.compiled.resources.threads
            told = driver.call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                loaded.function,
                threads,
                loaded.dynamic_shared,
            )
        used = loaded.compiled.resources
        found = blocks_at_once(here.capability, threads, used.registers, used.shared)
        assert found.blocks == int(told), kernel.name
