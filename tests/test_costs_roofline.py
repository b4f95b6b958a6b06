"""The roofline of a launch: its terms are counted again, by hand or one by one."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from seams import DEVICES, bytes_to_move, wavefronts_at_least
from seams import instructions as _instructions

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

H100 = DEVICES["H100 SXM"]


def terms(costs: object) -> dict[str, tuple[float, float]]:
    found = costs.roofline.terms  # type: ignore[attr-defined]
    return {t.name: (t.amount, t.rate) for t in found}


def copy(dtype: str = "float32") -> lk.Kernel:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i] + 1", dtypes={"a, b": dtype})
    return knl.split_iname("i", 256, outer_tag="g.0", inner_tag="l.0")


def test_a_copy_is_bound_by_memory() -> None:
    n = 1 << 26
    found = copy().costs(n=n, device="H100").roofline
    assert found.bound.name == "memory"
    assert found.moved == 8 * n
    assert found.seconds == pytest.approx(8 * n / 3.352e12)
    assert found.intensity == pytest.approx(2 / 8)
    assert not found.fits_l2 and copy().costs(n=100, device="H100").roofline.fits_l2
    assert "set by memory" in str(found) and "measured" not in str(found)


def test_a_product_is_bound_by_arithmetic() -> None:
    import matmul_registers

    knl = matmul_registers.make()["full tiles"]
    costs = knl.costs(n=2048, m=4096, l=1024, device="H100")
    found = costs.roofline
    products = 2048 * 4096 * 1024
    assert terms(costs)["float32"] == (products, 128 * 132 * 1.98e9)
    assert terms(costs)["memory"][0] == 4 * (2048 * 1024 + 1024 * 4096 + 2048 * 4096)
    assert found.bound.name == "float32"
    assert found.operations == 2 * products
    sectors = sum(a.counts.pieces for a in costs.accesses if a.counts and a.space == "global")
    assert terms(costs)["L1"][0] == 32 * sectors
    assert "L2" not in terms(costs)  # nobody publishes what that of an H100 delivers
    assert terms(knl.costs(n=128, m=128, l=16, device="A100"))["L2"][1] == 5120 * 1.41e9


def test_what_shared_memory_must_carry() -> None:
    """Each warp gets each element once between barriers: in the product, once a step along k."""
    import matmul_registers
    import transpose

    knl = matmul_registers.make()["full tiles"]
    steps, blocks, warps = 512 // 8, (256 // 128) * (384 // 128), 8
    written = 2 * 8 * 128  # a and b, by a block in a step
    read = 8 * (16 + 128)  # 16 rows of a and all columns of b, by a warp in a step
    wavefronts = steps * blocks * (written + warps * read) * 4 / 128
    costs = knl.costs(n=256, m=384, l=512)
    assert wavefronts_at_least(costs) == wavefronts
    asked = sum(a.counts.pieces for a in costs.accesses if a.counts and a.space == "shared")
    assert wavefronts < asked
    knl = transpose.make()["scheduled"]  # nothing is read twice there
    assert wavefronts_at_least(knl.costs(n=512, m=256)) == 2 * 512 * 256 * 4 / 128
    assert wavefronts_at_least(copy().costs(n=1000)) == 0


def test_few_blocks_use_few_multiprocessors() -> None:
    one, many = (copy().costs(n=256 * blocks, device="H100") for blocks in (1, 1000))
    assert terms(one)["float32"][1] == 128 * 1.98e9
    assert terms(many)["float32"][1] == 132 * 128 * 1.98e9
    assert terms(one)["memory"][1] == terms(many)["memory"][1]


def test_a_time_beside_it() -> None:
    found = copy().costs(n=1 << 26, device="H100").roofline
    beside = found.beside(2 * found.seconds)
    assert beside.share == pytest.approx(0.5)
    assert "50.0% of the roofline" in str(beside)
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(lk.InvalidArgumentError, match="seconds above 0"):
            found.beside(wrong)


@pytest.mark.parametrize(
    ("operations", "instructions"),
    [
        ({("add", "float32"): 5, ("mul", "float32"): 3}, {"float32": 5}),
        ({("add", "float64"): 5, ("mul", "float32"): 3}, {"float64": 5, "float32": 3}),
        ({("mul", "complex64"): 1}, {"float32": 4}),
        ({("add", "complex64"): 1, ("mul", "complex64"): 1}, {"float32": 4}),
        ({("add", "complex128"): 3}, {"float64": 6}),
        ({("div", "float32"): 2, ("sqrt", "float32"): 3}, {"special": 5}),
        ({("div", "float64"): 2}, {"float64": 2}),
        ({("min", "float32"): 2, ("compare", "float64"): 1}, {"int32": 3}),
        ({("add", "int8"): 2, ("mul", "int64"): 3}, {"int32": 6 + 2}),
        ({("atan2", "float32"): 2, ("add", "float16"): 1}, {"float32": 2, "float16": 1}),
        ({}, {}),
    ],
)
def test_the_least_instructions(
    operations: dict[tuple[str, str], int], instructions: dict[str, int]
) -> None:
    found, total = _instructions(operations.items())
    assert +found == instructions
    assert total == sum(operations.values())


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            "b[i] = a[i]",
            lambda n: [("r", "a", i) for i in range(n)] + [("w", "b", i) for i in range(n)],
        ),
        ("b[i] = b[i] + 1", lambda n: [(k, "b", i) for i in range(n) for k in "rw"]),
        (
            "b[i + 1] = b[i] + 1",
            lambda n: [(k, "b", i + (k == "w")) for i in range(n) for k in "rw"],
        ),
        (
            "b[i] = b[i + 1] + 1",
            lambda n: [(k, "b", i + (k == "r")) for i in range(n) for k in "rw"],
        ),
        ("b[0] = b[i] + 1", lambda n: [(k, "b", i * (k == "r")) for i in range(n) for k in "rw"]),
        (
            "b[i] = a[2*i]\nc[i] = b[i] + c[0]",
            lambda n: [
                step
                for i in range(n)
                for step in (
                    *(("r", "a", 2 * i), ("w", "b", i), ("r", "b", i)),
                    *(("r", "c", 0), ("w", "c", i)),
                )
            ],
        ),
    ],
)
def test_bytes_that_must_move(text: str, steps: object, n: int) -> None:
    """A cell that was written before it is read need not come from memory."""
    names = {name for name in "abc" if f"{name}[" in text}
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", text, dtypes=dict.fromkeys(names, np.float64), assumptions="n >= 1"
    )
    written: set[object] = set()
    moved: set[object] = set()
    for kind, array, cell in steps(n):  # type: ignore[operator]
        if kind == "w":
            written.add((array, cell))
        elif (array, cell) not in written:
            moved.add((array, cell))
    assert bytes_to_move(knl.costs(n=n)) == 8 * (len(moved) + len(written))


INTERMEDIATE = """
    t[i] = 2*x[i]
    y[j] = t[j] + 1 {if=m[j] > 0}
"""


@pytest.mark.parametrize("is_argument", [False, True])
def test_what_a_launch_hands_on_is_no_input(is_argument: bool) -> None:
    """An argument must be written, and a temporary may stay in a cache; neither is read."""
    made = lk.TemporaryVariable("t", shape="n", address_space="global")
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        INTERMEDIATE,
        [lk.GlobalArg("t", shape="n") if is_argument else made, ...],
        dtypes={"t, x, y": np.float32, "m": np.int32},
        assumptions="n >= 1",
    )
    assert bytes_to_move(knl.costs(n=100)) == 4 * 100 * (3 + is_argument)
    knl = knl.split_iname("j", 32, inner_tag="l.0").split_iname("i", 32, inner_tag="l.0")
    assert bytes_to_move(knl.costs(n=100)) == 4 * 100 * (3 + is_argument)
    knl = knl.add_barrier("id:insn", "id:insn_0")
    assert knl.costs(n=100).must_move == 4 * 100 * (3 + is_argument)


def test_where_data_decide_there_is_none() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[col[i]]",
        [lk.GlobalArg("a", np.float32, shape="m"), ...],
        dtypes={"b": "float32", "col": "int32"},
    )
    costs = knl.costs(n=10, m=10, device="H100")
    with pytest.raises(lk.InvalidArgumentError, match=r"bytes of 'a' .* is not known: data"):
        costs.roofline  # noqa: B018
    assert "no roofline: the number of bytes of 'a'" in str(costs)


CASES = {
    "b[i] = a[i] {if=i % 3 == 0}": (4 * 34, 4 * 34, ()),
    "b[i] = a[i] {if=m[i] > 0}": (4 * 200, 4 * 100, ("insn",)),
    "b[i] = if(m[i] > 0, a[i], 0)": (4 * 200, 4 * 100, ("insn",)),
    "b[i] = b[i] + a[i] {if=m[i] > 0}": (4 * 300, 4 * 100, ("insn",)),
    "b[i] = if(i < 50, a[i], 0)": (4 * 50, 4 * 100, ()),
    "if m[i] > 0 and i < 10\n b[i] = a[i]\nend": (4 * 20, 4 * 10, ("insn",)),
    "b[i] = a[i] {if=i*i < n}": (4 * 100, 4 * 100, ("insn",)),
}


@pytest.mark.parametrize("text", CASES)
def test_masks_have_a_roofline(text: str) -> None:
    """Exact where conditions are affine; where data decide, what moves if they hold."""
    read, written, at_most = CASES[text]
    names = ", ".join(name for name in "abm" if f"{name}[" in text)
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={names: "float32"})
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    costs = knl.costs(n=100, device="H100")
    assert sum(f.read or 0 for f in costs.footprints) == read
    assert sum(f.written or 0 for f in costs.footprints) == written
    assert costs.at_most == at_most
    assert costs.roofline.moved == read + written
    assert ("if all conditions on data hold" in str(costs)) == bool(at_most)
    masked = {f.array for f in costs.footprints if f.at_most}
    assert masked == {a.array for a in costs.accesses if a.at_most} and bool(masked) == bool(
        at_most
    )
    assert "m" not in masked  # what a condition reads is read for all


def test_a_halo_that_is_staged_is_known() -> None:
    knl = importlib.import_module("stencil_5").make()["scheduled"]
    costs = knl.costs(n=4096, m=4096, device="H100")
    assert {f.array: f.read for f in costs.footprints} == {"u": 4 * 4098**2, "v": 0}
    assert costs.roofline.moved == 4 * (4098**2 + 4096**2)


def test_no_block_at_all() -> None:
    costs = copy().costs(n=0, device="H100")
    assert costs.roofline.seconds == 0
    assert costs.roofline.intensity is None
    assert "no blocks" in str(costs) or "not known" in str(costs)


def test_the_table_says_it_where_a_device_was_asked_for() -> None:
    plain, asked = copy().costs(n=1000), copy().costs(n=1000, device="H100")
    assert "roofline" not in str(plain)
    assert "roofline of H100 SXM" in str(asked)
    assert plain != asked and plain == copy().costs(n=1000)
    assert len({hash(plain), hash(asked), hash(asked.roofline)}) == 3
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert repr(asked.roofline) == str(asked.roofline)
