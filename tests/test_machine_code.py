"""Machine code, executed as far as its loads and stores hang on it: what it asks of memory."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seams import memory_of

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
machine: Any = importlib.import_module("_machine")
words: Any = importlib.import_module("_machine_words")


def made(lines: str) -> list[Any]:
    """Instructions, a line each; lines that end with a colon are labels."""
    texts = [
        line if line.endswith(":") else f"/*{n:04x}*/ {line} ;"
        for n, line in enumerate(map(str.strip, lines.strip().splitlines()))
    ]
    found: list[Any] = words.read("\n".join(texts))
    return found


def run(lines: str, block: tuple[int, int, int] = (64, 1, 1)) -> list[Any]:
    return list(machine.Launch(made(lines), (1, 1, 1), block, {(0, 0): 7, (0, 1): 3}).run())


def test_threads_that_go_apart_come_together() -> None:
    odd, together = run("""
        S2R R0, SR_TID.X
        LOP3.LUT R1, R0, 0x1, RZ, 0xc0, !PT
        ISETP.NE.AND P0, PT, R1, RZ, PT
        BSSY B0, `(.L_2)
        @!P0 BRA `(.L_1)
        STS [R0], R9
        .L_1:
        BSYNC B0
        .L_2:
        IMAD.WIDE R4, R0, 0x4, RZ
        LDG.E.64 R6, desc[UR4][R4.64+0x10]
        EXIT
    """)
    assert odd.active.sum(axis=1).tolist() == [16, 16]
    assert together.active.all() and together.bytes == 8
    assert together.addresses.reshape(-1).tolist() == [4 * n + 16 for n in range(64)]


def test_loads_from_data_and_updates_where_they_say() -> None:
    lines = """
        S2R R0, SR_TID.X
        UMOV UR4, 0x0
        IMAD.WIDE R4, R0, 0x4, RZ
        LDG.E R6, desc[UR4][R4.64]
        IMAD.SHL.U32 R7, R6, 0x4, RZ
        ATOMS.POPC.INC.32 RZ, [R7+0x8]
        EXIT
    """
    places = np.arange(64, dtype=np.uint32)[::-1] % 5
    launch = machine.Launch(made(lines), (1, 1, 1), (64, 1, 1), {}, {0: places})
    loaded, updated = launch.run()
    assert loaded.addresses.reshape(-1).tolist() == [4 * n for n in range(64)]
    assert updated.instruction.op == "ATOMS"
    assert updated.addresses.reshape(-1).tolist() == [4 * int(p) + 8 for p in places]
    with pytest.raises(machine.UntoldError, match="data decide the address"):
        list(machine.Launch(made(lines), (1, 1, 1), (64, 1, 1), {}).run())


def test_branches_on_data_that_leave_out_sums_alone() -> None:
    lines = """
        S2R R0, SR_TID.X
        IMAD.WIDE R4, R0, 0x4, RZ
        LDG.E R6, desc[UR4][R4.64]
        FSETP.GT.AND P0, PT, R6, RZ, PT
        @!P0 BRA `(.L_1)
        FADD R6, R6, R6
        {}
        .L_1:
        STS [R0], R6
        EXIT
    """
    _, stored = run(lines.format("FMUL R6, R6, R6"))
    assert stored.active.all()
    with pytest.raises(machine.UntoldError, match="data decide"):
        run(lines.format("STS [R0+0x400], R6"))


def test_a_loop_and_a_predicate_that_stops_all() -> None:
    found = run("""
        S2R R0, SR_TID.X
        IMAD.SHL.U32 R1, R0, 0x4, RZ
        ISETP.GE.AND P1, PT, R0, 0x20, PT
        .L_1:
        @P1 LDS.128 R8, [R1+0x100]
        IADD3 R1, R1, -0x10, RZ
        ULDC UR4, c[0x0][0x4]
        IADD3 R5, R5, 0x1, RZ
        CS2R R6, SRZ
        IADD3 R2, R2, 0x1, RZ
        EXIT
    """)
    (both,) = found
    assert both.active.any(axis=1).tolist() == [False, True]
    assert both.addresses[1, 0] == 32 * 4 + 256


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("IADD3 R1, RZ, -0x1, RZ", -1),
        ("IADD3 R1, -R0, 0x5, RZ", 4),
        ("LEA R1, R0, 0x2, 0x4", 18),
        ("LEA.HI R1, R2, R0, RZ, 0x1", 2),
        ("SHF.R.S32.HI R1, RZ, 0x1f, R2", -1),
        ("SHF.R.U32.HI R1, RZ, 0x1f, R2", 1),
        ("IMAD.HI R1, R2, 0x4, RZ", -1),
        ("LOP3.LUT R1, RZ, R0, RZ, 0x33, !PT", -2),
        ("VIMNMX R1, R2, R0, PT", -5),
        ("VIADDMNMX R1, R2, 0x9, R0, !PT", 4),
        ("MOV R1, c[0x0][0x4]", 3),
        ("IABS R1, R2", 5),
        ("HFMA2.MMA R1, -RZ, RZ, 0, 5.9604644775390625e-08", 1),
    ],
)
def test_words(line: str, value: int) -> None:
    (found,) = run(f"""
        IADD3 R0, RZ, 0x1, RZ
        IADD3 R2, RZ, -0x5, RZ
        {line}
        STS [R1], R0
        EXIT
    """)
    assert (found.addresses & 0xFFFFFFFF == value & 0xFFFFFFFF).all()


@pytest.mark.parametrize(
    "lines",
    [
        "LDS R0, [RZ]\nSTS [R0], R1",
        "LDS R0, [RZ]\nISETP.GE.AND P0, PT, R0, RZ, PT\n@P0 EXIT",
        "CALL.REL.NOINC `(.L_1)",
        "MUFU.RCP R5, R1\nSTS [R5], R1",
        ".L_1:\nBRA `(.L_1)",
    ],
)
def test_what_data_decide_is_not_told(lines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "STEPS", 50)
    with pytest.raises(machine.UntoldError):
        run(f"{lines}\nEXIT")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_kernel_asks_for_what_is_counted(arch: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }", "b[j, i] = a[i, j]", dtypes={"a, b": "float32"}
    )
    knl = knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
    knl = knl.split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")
    sizes = {"n": 37, "m": 45}
    costs = knl.costs(n=37, m=45)
    found = {r.instruction.op: r for r in machine.requests_of(knl, sizes, arch)}
    for access in costs.accesses:
        asked = found["STG" if access.is_write else "LDG"]
        sectors = [
            len(set(row[on] // 32)) for row, on in zip(asked.addresses, asked.active, strict=True)
        ]
        assert access.counts is not None
        assert sum(sectors) == access.counts.pieces
        assert np.count_nonzero(asked.active) == access.counts.threads


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex64", "complex128"])
def test_wide_elements_are_wide_requests(dtype: str) -> None:
    """Of 8 and 16 bytes: one request of all lanes, which shared memory serves in turns."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }", "b[j, i] = a[i, j]", dtypes={"a, b": dtype}
    )
    knl = knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.0")
    knl = knl.split_iname("j", 16, outer_tag="g.0", inner_tag="l.1")
    knl = knl.add_prefetch("a", ["i_inner", "j_inner"], default_tag="l.auto")
    counted = {
        (a.space, a.is_write): (a.counts.pieces, a.counts.requests)
        for a in knl.costs(n=37, m=45).accesses
        if a.counts is not None
    }
    made: dict[tuple[str, bool], tuple[int, int]] = {}
    for found in machine.requests_of(knl, {"n": 37, "m": 45}, "sm_90a"):
        op = found.instruction.op
        key = "global" if op.endswith("G") else "shared", op.startswith("ST")
        some = found.active.any(axis=1)
        memory = memory_of(key[0], is_write=key[1])
        pieces, _ = memory.pieces(found.addresses[some], found.active[some], found.bytes)
        before = made.get(key, (0, 0))
        made[key] = before[0] + int(pieces.sum()), before[1] + int(some.sum())
        assert found.bytes == np.dtype(dtype).itemsize
    assert made == counted


def test_tables_of_constants_are_known() -> None:
    """Where a table's numbers are subscripts, they decide addresses."""
    turned = np.random.default_rng(3).permutation(40).astype(np.int32)
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 40 }",
        "b[turned[i]] = a[i]",
        [
            lk.GlobalArg("b", "float32", shape=40),
            lk.TemporaryVariable("turned", initializer=turned, read_only=True),
            ...,
        ],
        dtypes={"a": "float32"},
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    stores = [r for r in machine.requests_of(knl, {}, "sm_90a") if r.instruction.op == "STG"]
    places = np.concatenate([r.addresses[r.active] for r in stores])
    assert ((places - machine.ARRAY) // 4 == turned).all()
