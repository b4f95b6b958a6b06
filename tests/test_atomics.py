"""Atomic updates: what they mean, on all executors and in the source, for each type of a cell."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import Golden
from seams import History, prove_source, step_from_json

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
OPERATIONS = {
    "add": "{} + x[i]",
    "less": "{} - x[i]",
    "times": "{}*x[i]",
    "top": "max({}, x[i])",
    "low": "min(x[i], {})",
    "both": "{} & x[i]",
    "one": "x[i] | {}",
    "odd": "{} ^ x[i]",
    "some": "{} or x[i]",
    "every": "x[i] and {}",
}
TYPES = {
    **dict.fromkeys(
        ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        ("add", "less", "times", "top", "low", "both", "one", "odd"),
    ),
    **dict.fromkeys(
        ("float16", "bfloat16", "float32", "float64"), ("add", "less", "times", "top", "low")
    ),
    **dict.fromkeys(("complex64", "complex128"), ("add", "less")),
    "bool": ("add", "times", "top", "low", "both", "one", "odd", "some", "every"),
}


def histogram() -> lk.Kernel:
    """How often each number occurs."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + 1 {atomic, id=count}",
        [lk.GlobalArg("h", shape="m"), ...],
        name="histogram",
        dtypes={"h, c": "int32"},
        assumptions="n, m >= 1",
    )


def on_blocks(kernel: lk.Kernel, threads: int = 32) -> lk.Kernel:
    return kernel.split_iname("i", threads, outer_tag="g.0", inner_tag="l.0")


def scattered(dtype: str, names: tuple[str, ...]) -> lk.Kernel:
    """One array for each operation, whose cells data choose."""
    lines = [
        f"{name}[c[i]] = {OPERATIONS[name].format(f'{name}[c[i]]')} {{atomic}}" for name in names
    ]
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        lines,
        [*(lk.GlobalArg(name, shape="m") for name in names), ...],
        dtypes={", ".join((*names, "x")): dtype, "c": "int32"},
        assumptions="n, m >= 1",
    )


def numbers(dtype: str, count: int, seed: int) -> Any:
    """Whole numbers whose sums and products floating-point types hold exactly."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        return rng.integers(1, 3, count).astype(ml_dtypes.bfloat16)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-100 if dtype[0] == "i" else 0, 100, count).astype(dtype)
    found = rng.integers(-2, 3, count).astype(dtype)
    return found + 1j * found[::-1] if dtype[0] == "c" else found


@pytest.mark.host
@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype: str) -> None:
    kernel = on_blocks(scattered(dtype, TYPES[dtype]))
    assert kernel.prove().ok
    data = {"x": numbers(dtype, 45, 1), "c": numbers("uint8", 45, 2).astype("int32") % 7}
    cells = {name: numbers(dtype, 7, 3) for name in TYPES[dtype]}
    due = kernel.executor("reference")(**data, **{n: a.copy() for n, a in cells.items()})
    for order in ORDERS:
        run = kernel.executor("host", order=order, seed=5)
        found = run(**data, **{n: a.copy() for n, a in cells.items()})
        for name, one, two in zip(TYPES[dtype], found, due, strict=True):
            np.testing.assert_array_equal(one, two, err_msg=name)


@pytest.mark.nvrtc
@pytest.mark.parametrize("dtype", ("int8", "int64", "bfloat16", "float32", "complex64", "bool"))
def test_compiles(dtype: str) -> None:
    kernel = on_blocks(scattered(dtype, TYPES[dtype]))
    for architecture in ("sm_80", "sm_90a", "sm_100"):
        assert kernel.cubin(arch=architecture)


@pytest.mark.parametrize("dtype", ("int16", "int64", "float16", "float64", "complex128", "bool"))
def test_text_is_read_back(dtype: str) -> None:
    assert on_blocks(scattered(dtype, TYPES[dtype])).prove(text=True).ok


def test_generated_texts(golden: Golden) -> None:
    kernel = on_blocks(histogram(), 128)
    golden("atomics_histogram.txt", f"{kernel}\n\n{kernel.cuda()}")
    lines = scattered("float32", ("add", "top", "times"))
    golden("atomics_floats.txt", on_blocks(lines).cuda())


@pytest.mark.host
@pytest.mark.parametrize("n", (1, 31, 100))
def test_histogram(n: int) -> None:
    kernel = on_blocks(histogram())
    c = (numbers("uint8", n, n) % 5).astype("int32")
    for order in ORDERS:
        start = np.arange(5, dtype="int32")
        found = kernel.executor("host", order=order)(c=c, h=start.copy())
        np.testing.assert_array_equal(found, start + np.bincount(c, minlength=5))


@pytest.mark.host
def test_many_workers() -> None:
    """Blocks on several threads of the machine lose no update."""
    kernel = on_blocks(histogram(), 64)
    c = np.zeros(1 << 14, "int32")
    for _ in range(3):
        assert kernel.executor("host")(c=c, h=np.zeros(2, "int32"))[0] == 1 << 14


@pytest.mark.host
def test_nan_stays() -> None:
    kernel = on_blocks(scattered("float32", ("top", "low")))
    x = np.array([1, np.nan, 3], "float32")
    cells = {name: np.zeros(2, "float32") for name in ("top", "low")}
    for order in ORDERS:
        top, low = kernel.executor("host", order=order)(x=x, c=np.zeros(3, "int32"), **cells)
        assert np.isnan(top[0]) and np.isnan(low[0]) and top[1] == low[1] == 0


def test_one_sum_of_all() -> None:
    """Which cell is no question of data here: a sum by atomics."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "s[0] += x[i] {atomic}", dtypes={"s, x": "float32"}
    )
    fast = on_blocks(kernel)
    assert "atomicAdd(&s[0], x[" in fast.cuda() and fast.prove().ok
    assert [step.verdict for step in fast.history] == ["proven"]


@pytest.mark.parametrize("sign", ["-", "!", "~"])
def test_the_proof_reads_no_other_sign_as_an_address(sign: str) -> None:
    knl = histogram().tag_inames("i: g.0")
    source = knl.cuda().replace("atomicAdd(&", f"atomicAdd({sign}")
    assert source != knl.cuda() and "is not understood" in str(prove_source(knl, source))


def test_tags_in_any_order() -> None:
    split = histogram().split_iname("i", 32)
    one = split.tag_inames("i_outer: g.0").tag_inames("i_inner: l.0")
    two = split.tag_inames("i_inner: l.0").tag_inames("i_outer: g.0")
    assert one == two == split.tag_inames("i_outer: g.0, i_inner: l.0") == on_blocks(histogram())
    assert histogram().tag_inames("i: g.0").prove().ok


def test_once_where_a_coordinate_is_missing() -> None:
    """What all threads could do is done by one."""
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = 2*x[i]\nh[c[j]] = h[c[j]] + 1 {atomic}",
        [lk.GlobalArg("h", shape="q"), ...],
        dtypes={"x, y": "float32", "h, c": "int32"},
    )
    fast = on_blocks(kernel)
    assert "if (blockIdx.x == 0 && threadIdx.x == 0)\n" in fast.cuda()
    assert fast.prove().ok


def test_private_cells_need_no_hardware() -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "for i\n<float32> t = 0\nt = t + a[i, j] {atomic}\ny[i] = t\nend",
        dtypes={"a, y": "float32"},
    )
    fast = on_blocks(kernel)
    assert "t += a[" in fast.cuda() and fast.prove().ok


def test_no_barrier_between_updates() -> None:
    """Updates by one operation need no order; another operation, or a plain read, does."""
    texts = {
        "s[0] = s[0] + x[i] {atomic}": 0,
        "s[0] = s[0]*x[i] {atomic}": 1,
        "y[i] = s[0]": 1,
    }
    for text, barriers in texts.items():
        kernel = lk.make_kernel(
            "{ [i, j]: 0 <= i, j < 64 }",
            f"s[0] = s[0] + x[j] {{atomic}}\n{text}",
            dtypes={"s, x": "float32", **({"y": "float32"} if "y" in text else {})},
        ).tag_inames("i: l.0, j: l.0")
        assert kernel.cuda().count("__syncthreads();") == barriers
        assert kernel.prove().ok


@pytest.mark.host
def test_initialised_updated_and_read_in_shared_memory() -> None:
    """Each block's histogram of a row, over barriers."""
    kernel = lk.make_kernel(
        "{ [b, i, j, k]: 0 <= b < n and 0 <= i, j, k < 64 }",
        """
        for b
            t[j] = 0 {id=start}
            t[c[b, i]] = t[c[b, i]] + 1 {atomic, id=count, dep=start}
            y[b, k] = t[k] {dep=count}
        end
        """,
        [lk.TemporaryVariable("t", "int32", shape=64, address_space="local"), ...],
        dtypes={"c, y": "int32"},
    )
    fast = kernel.assume_within("c", 0, 64).tag_inames("b: g.0, i: l.0, j: l.0, k: l.0")
    assert fast.cuda().count("__syncthreads();") == 2
    assert fast.prove().ok
    c = np.random.default_rng(3).integers(0, 64, (3, 64)).astype("int32")
    due = np.stack([np.bincount(row, minlength=64) for row in c])
    for order in ORDERS:
        np.testing.assert_array_equal(fast.executor("host", order=order)(c=c), due)


def test_keys_and_records() -> None:
    fast = on_blocks(histogram())
    assert pickle.loads(pickle.dumps(fast)) == fast
    again = History(step_from_json(json.loads(json.dumps(s.to_json()))) for s in fast.history)
    assert lk.replay(histogram(), again) == fast
    plain = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "h[c[i]] = h[c[i]] + 1 {id=count}",
        [lk.GlobalArg("h", shape="m"), ...],
        name="histogram",
        dtypes={"h, c": "int32"},
        assumptions="n, m >= 1",
    )
    assert plain != histogram() and plain.key != histogram().key


def test_loopy_spellings() -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 10 }",
        """
        out[j] = 0 {id=start, atomic=init}
        out[c[i]] = out[c[i]] + 2*x[i] {atomic, dep=start}
        """,
        [lk.GlobalArg("out", "float32", shape=10, for_atomic=True), ...],
        dtypes={"x": "float32", "c": "int32"},
    )
    assert [s.kind for s in kernel.statements] == ["user", "atomic"]


def test_costs() -> None:
    """An update is one access; those of one request to one cell wait for each other."""
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "s[i // 5 % 4] += x[i] {atomic}", dtypes={"s, x": "float32"}
    )
    costs = on_blocks(kernel, 64).costs(n=1000)
    (update,) = [a for a in costs.accesses if a.array == "s"]
    assert update.is_atomic and update.verb == "update"
    warps = [range(start, min(start + 32, 1000)) for start in range(0, 1000, 32)]
    assert update.counts is not None and update.counts.requests == len(warps)
    assert update.collisions == sum(len(w) - len({i // 5 % 4 for i in w}) for w in warps)
    assert costs.moved["s"] == 32 * len(warps)
    (footprint,) = [f for f in costs.footprints if f.array == "s"]
    assert footprint.read == footprint.written == 16
    assert "update, insn" in str(costs)


def test_verify_knows_them() -> None:
    kernel = histogram()
    assert lk.verify(kernel, on_blocks(kernel))
    text = "{ [i]: 0 <= i < n }", "s[0] = {} {{atomic}}", {"s, x": "float32"}

    def made(value: str) -> lk.Kernel:
        return lk.make_kernel(text[0], text[1].format(value), dtypes=text[2])

    total = made("s[0] + x[i]")
    assert lk.verify(total, on_blocks(total))
    assert lk.verify(total, on_blocks(made("x[i] + s[0]")))
    assert lk.verify(total, on_blocks(made("s[0] + 2*x[i]"))).answer == "different"
    assert lk.verify(total, on_blocks(made("max(s[0], x[i])"))).answer == "different"
