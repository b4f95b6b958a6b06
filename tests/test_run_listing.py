"""Machine code and PTX, line by line beside the source."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest
from seams import lines_of, listing_of, nvrtc

import loopkit as lk

pytestmark = pytest.mark.nvrtc

SAXPY = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = a * x[i] + y[i]", name="saxpy").add_dtypes(
    {"a": np.float32, "x": np.float32, "y": np.float32}
)
STAGED = (
    lk.make_kernel("{ [i] : 0 <= i < n }", "z[i] = x[i] * x[i + 1]")
    .add_dtypes({"x": np.float32})
    .split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    .add_prefetch("x", ["i_inner"], default_tag="l.auto")
)
HALF = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = x[i] * x[i] + sin(x[i])").add_dtypes(
    {"x": np.float16}
)


@functools.cache
def listing(kernel: lk.Kernel, arch: str = "sm_90a") -> Any:
    return listing_of(kernel.program(), arch)


@pytest.mark.parametrize(
    ("kernel", "arch"), [(STAGED, "sm_80"), (STAGED, "sm_100"), (HALF, "sm_90a")]
)
def test_the_table_of_lines_changes_no_instruction(kernel: lk.Kernel, arch: str) -> None:
    plain = re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?)\s*;", kernel.sass(arch))
    assert [one.text for one in listing(kernel, arch).sass if one.address is not None] == plain


def test_instructions_know_their_lines() -> None:
    found = listing(SAXPY)
    statement = next(n for n, line in enumerate(found.source, 1) if "y[i] =" in line)
    loop = next(n for n, line in enumerate(found.source, 1) if "for (" in line)
    of_statement = {found.sass[p].opcode for p in lines_of(found)[statement]}
    assert {"FFMA", "STG"} <= of_statement
    assert "STG" not in {found.sass[p].opcode for p in lines_of(found)[loop]}
    assert "BRA" in {found.sass[p].opcode for p in lines_of(found)[loop]}


def test_barriers_and_copies_know_their_lines() -> None:
    found = listing(STAGED)
    by_opcode = {one.opcode: one.line for one in found.sass}
    barrier = by_opcode["BAR"]
    copy = by_opcode["STS"]
    assert barrier is not None and "__syncthreads" in found.source[barrier - 1]
    assert copy is not None and "x_s[" in found.source[copy - 1]


@pytest.mark.parametrize("kernel", [SAXPY, STAGED, HALF], ids=["saxpy", "staged", "half"])
def test_ptx_and_machine_code_agree_on_the_source(kernel: lk.Kernel) -> None:
    found = listing(kernel)
    for one in found.sass:
        assert one.line is None or 1 <= one.line <= len(found.source)
        assert one.ptx_line is None or 1 <= one.ptx_line <= len(found.ptx)
    memory = [one for one in found.sass if one.opcode in ("LDG", "STG", "LDS", "STS")]
    assert memory
    for one in memory:
        assert one.ptx_line is not None
        origin = found.ptx[one.ptx_line - 1]
        assert re.search(r"\b(ld|st)\.(global|shared)", origin.text), (one, origin)
        assert origin.line == one.line


def test_addresses_ascend_and_registers_are_counted() -> None:
    found = listing(STAGED)
    addresses = [one.address for one in found.sass if one.address is not None]
    assert addresses == [16 * n for n in range(len(addresses))]
    last = max(n for n, one in enumerate(found.sass) if one.opcode == "EXIT")
    live = [one.live for one in found.sass[: last + 1] if one.address is not None]
    assert None not in live  # what follows is padding
    assert 0 < max(n for n in live if n is not None) <= found.resources[0].registers


def test_inlined_functions_count_to_the_line_that_calls_them() -> None:
    found = listing(HALF)
    statement = next(n for n, line in enumerate(found.source, 1) if "y[i] =" in line)
    assert len(lines_of(found)[statement]) > len(found.sass) // 2


def test_a_program_without_work() -> None:
    nothing = lk.make_kernel("{ [i] : 0 <= i < n and n < 0 }", "y[i] = i", name="idle")
    assert any(one.opcode == "EXIT" for one in listing(nothing).sass)


def test_the_two_compilations_are_kept_apart() -> None:
    program = SAXPY.program()
    plain = nvrtc.compile_program(program, "sm_90a")
    lined = nvrtc.compile_program(program, "sm_90a", with_lines=True)
    assert ".loc" in lined.ptx and ".loc" not in plain.ptx
    assert plain.resources == lined.resources
