"""Swizzled arrays: what is a bijection is taken, lowered, proven and run; all else is refused."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import Golden
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import Swizzle, WitnessError, prove_source, storage_shape
from swizzled_kernels import on_threads, product, transpose, turned

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def shown(knl: lk.Kernel) -> str:
    return f"{knl}\n\n{knl.script()}\n\n{knl.cuda()}"


def test_a_column_of_threads(golden: Golden) -> None:
    golden("swizzled_transpose.txt", shown(transpose().swizzle_array("a_s")))


def test_all_arguments(golden: Golden) -> None:
    knl = product("float16").swizzle_array("a_s", bits=2, base=1, skip=1)
    golden("swizzled_product.txt", shown(knl.swizzle_array("b_s", axis=0, by=1)))


# {{{ what is computed


def run(knl: lk.Kernel, order: str, **arrays: Any) -> Any:
    return knl.executor("host", order=order, seed=1)(**arrays)


@pytest.mark.host
@pytest.mark.parametrize("tile, across", [(32, 32), (64, 32)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_transpose_runs(tile: int, across: int, dtype: str) -> None:
    knl = transpose(tile, across, dtype=dtype).swizzle_array("a_s")
    assert knl.prove().ok
    for order in ORDERS:
        a = np.random.default_rng(3).integers(-99, 99, (75, 70)).astype(dtype)
        np.testing.assert_array_equal(run(knl, order, a=a), a.T)


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_product_runs(dtype: str) -> None:
    knl = product(dtype).swizzle_array("a_s").swizzle_array("b_s", axis=0, by=1, bits=3, base=1)
    assert knl.prove().ok
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 4, shape).astype(dtype) for shape in ((20, 37), (37, 18)))
    for order in ORDERS:
        np.testing.assert_array_equal(run(knl, order, a=a, b=b), a @ b)


@pytest.mark.host
def test_flat_and_private_arrays_run() -> None:
    a = np.arange(12 * 20, dtype=np.float32).reshape(12, 20)
    flat = on_threads(turned(12, 20)).tag_array_axes("t", "stride:40, stride:1")
    private = turned(12, 20).set_temporary_address_space("t", "private")
    by_column = on_threads(turned(12, 20)).tag_array_axes("t", "f")
    for knl in (
        flat.swizzle_array("t", bits=2, base=1, pad=True),
        private.swizzle_array("t", pad=True),
        by_column.swizzle_array("t", axis=0, pad=True).pad_temporary("t", 0, 5),
    ):
        assert knl.prove().ok
        np.testing.assert_array_equal(run(knl, "random", a=a), a.T)


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64"])
def test_indices_that_data_decide(dtype: str) -> None:
    t = lk.TemporaryVariable("t", shape=(16, 16))
    knl = lk.make_kernel(
        [
            "{ [i, j]: 0 <= i < 16 and 0 <= j < 16 }",
            "{ [k, l]: 0 <= k < n and 0 <= l < 16 }",
        ],
        "<> t[i, j] = a[i, j]\nb[k, l] = t[p[k], l] + t[l, p[k]]",
        [t, ...],
        dtypes={"a, b": "float32", "p": dtype},
        assumptions="n >= 1",
    ).assume_within("p", 0, 16)
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    p = np.array([3, 15, 0, 7, 9], dtype)
    for options in ({}, {"bits": 2, "base": 1, "skip": 1}):
        after = knl.swizzle_array("t", **options)
        assert after.prove().ok and after.prove(text=True).ok
        np.testing.assert_array_equal(run(after, "ascending", a=a, p=p), a[p] + a[:, p].T)


@pytest.mark.host
def test_indices_in_registers() -> None:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 8 and 0 <= j < 8 and 0 <= k < 8 }",
        """
        for i, j
            t[i, j] = a[i, j]
        end
        for k
            <int32> c = p[k]
            b[k] = t[c, k]
        end
        """,
        [lk.TemporaryVariable("t", shape=(8, 8)), ...],
        dtypes={"a, b, t": "float32", "p": "int32"},
    ).assume_within("p", 0, 8)
    after = knl.swizzle_array("t", bits=3).swizzle_array("t", bits=5, pad=True)
    open_before, open_after = (k.prove().undecided for k in (knl, after))
    assert [u.what for u in open_after] == [u.what for u in open_before]
    a, p = (
        np.arange(64, dtype=np.float32).reshape(8, 8),
        np.array([3, 1, 0, 7, 2, 5, 5, 6], "int32"),
    )
    np.testing.assert_array_equal(run(after, "ascending", a=a, p=p), a[p, range(8)])


def test_subscripts_are_folded() -> None:
    """What is known is no operation; what the other index has is not masked."""
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i < 8 and 0 <= j < 8 }", "{ [k, l]: 0 <= k < 8 and 0 <= l < 8 }"],
        "<> t[i, j] = a[i, j]\nb[k, l] = t[5, l] + t[k, 3] + t[5, 3] + t[4, 3]",
        dtypes={"a, b": "float32"},
    )
    text = knl.swizzle_array("t", bits=2).cuda()
    assert "t[5][l ^ 1] + t[k][3 ^ (k & 3)] + t[5][2] + t[4][3]" in text
    assert "t[i][j ^ i]" in knl.swizzle_array("t").cuda()


@pytest.mark.nvrtc
def test_swizzled_code_compiles() -> None:
    knl = transpose(dtype="float16").swizzle_array("a_s", bits=3, base=1, skip=1)
    for arch in ("sm_80", "sm_90a", "sm_100"):
        assert knl.cubin(arch)


# }}}

# {{{ data of a kernel


def test_a_swizzle_is_data_of_the_array() -> None:
    plain = transpose()
    knl = plain.swizzle_array("a_s", bits=3)
    assert knl.temporary_by_name["a_s"].swizzles == (Swizzle(1, 0, 3),)
    assert knl.key != plain.key
    assert knl.swizzle_array("a_s", bits=0).key == plain.key
    assert pickle.loads(pickle.dumps(knl)).key == knl.key
    assert lk.replay(_text(), knl.history).key == knl.key
    assert lk.verify(plain, knl)
    names: dict[str, Any] = {"lk": lk, "knl": _text()}
    exec(knl.script(), names)
    assert names["knl"].key == knl.key


def _text() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "out[j, i] = a[i, j]",
        name="transpose",
        dtypes={"a, out": "float32"},
        assumptions="n, m >= 1",
    )


def test_defaults_take_what_there_is() -> None:
    def swizzles(knl: lk.Kernel, **arguments: Any) -> tuple[Swizzle, ...]:
        return knl.swizzle_array("t", **arguments).temporary_by_name["t"].swizzles

    assert swizzles(turned(32, 64)) == (Swizzle(1, 0, 5),)
    assert swizzles(turned(64, 32)) == (Swizzle(1, 0, 5),)
    assert swizzles(turned(32, 64), base=2) == (Swizzle(1, 0, 4, 2),)
    assert swizzles(turned(32, 64), skip=2) == (Swizzle(1, 0, 3, 0, 2),)
    assert swizzles(turned(32, 64), axis=0) == (Swizzle(0, 1, 5),)


def test_a_swizzle_that_is_declared() -> None:
    t = lk.TemporaryVariable("t", "float32", shape=(4, 4), swizzles=(Swizzle(1, 0, 2),))
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 4 }",
        "t[i, j] = a[i, j]\nb[j, i] = t[i, j]",
        [t, ...],
        dtypes={"a, b": "float32"},
    )
    assert "t[i][j ^ i]" in knl.cuda()
    with pytest.raises(lk.InvalidArgumentError, match="2 axes"):
        lk.TemporaryVariable("t", "float32", shape=(4, 4), swizzles=(Swizzle(2, 0, 2),))
    with pytest.raises(lk.InvalidArgumentError, match="twice"):
        lk.TemporaryVariable("t", shape=(4, 4), swizzles=(Swizzle(1, 0, 2), Swizzle(1, 0, 1)))
    with pytest.raises(lk.InvalidArgumentError, match="bits"):
        Swizzle(1, 0, 0)


# }}}

# {{{ what is refused


def test_places_beyond_the_axis() -> None:
    with pytest.raises(lk.IllegalTransformError) as caught:
        turned(12, 20).swizzle_array("t")
    witness = caught.value.witness
    assert (witness.kind, witness.array, witness.cell) == ("outside", "t", (4, 16))
    text = str(caught.value)
    assert "t[4, 16] would have no place: axis 1 has 20 places" in text
    assert "swizzle_array('t', pad=True)" in text
    assert turned(12, 20).swizzle_array("t", bits=2).history[-1].verdict == "proven"
    padded = turned(12, 20).swizzle_array("t", pad=True).temporary_by_name["t"]
    assert storage_shape(padded) == (12, 32)


@pytest.mark.parametrize(
    "steps, cells",
    [
        (({"axis": 1}, {"axis": 0}), ((0, 0), (1, 1))),
        (({"by": 1, "bits": 2},), ((0, 0), (0, 1))),
    ],
)
def test_two_cells_in_one_place(steps: Any, cells: Any) -> None:
    knl = turned(16, 16)
    for step in steps[:-1]:
        knl = knl.swizzle_array("t", **step)
    with pytest.raises(WitnessError, match="would lie in the same place") as caught:
        knl.swizzle_array("t", **steps[-1])
    assert caught.value.witness.kind == "overlap"
    assert caught.value.witness.cell == cells[0]
    assert f"t{list(cells[1])}" in str(caught.value)
    wrong = knl.swizzle_array("t", **steps[-1], unchecked=True)
    assert any("have one place" in f.what for f in wrong.prove().findings)


def test_misuses() -> None:
    knl = turned(32, 32)
    with pytest.raises(lk.IllegalTransformError, match="'a' is an argument: the caller decides"):
        knl.swizzle_array("a")
    with pytest.raises(lk.UnknownNameError, match="no temporary 'tt'"):
        knl.swizzle_array("tt")
    with pytest.raises(lk.InvalidArgumentError, match="there is no axis 2"):
        knl.swizzle_array("t", axis=2)
    with pytest.raises(lk.InvalidArgumentError, match="bits"):
        knl.swizzle_array("t", bits=-1)
    with pytest.raises(lk.InvalidArgumentError, match="no bits are left"):
        knl.swizzle_array("t", skip=5)
    with pytest.raises(lk.IllegalTransformError, match="would not change"):
        knl.swizzle_array("t", bits=0)
    with pytest.raises(lk.IllegalTransformError, match="would not change"):
        knl.swizzle_array("t").swizzle_array("t")
    with pytest.raises(lk.IllegalTransformError, match="global memory"):
        knl.set_temporary_address_space("t", "global").swizzle_array("t")
    with pytest.raises(lk.IllegalTransformError, match="swizzled"):
        knl.swizzle_array("t").set_temporary_address_space("t", "global")
    apart = lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i, j, k, l < 8 }",
        "<> t[i, j] = a[i, j]\nb[k, l] = t[l, k]",
        dtypes={"a, b": "float32"},
    )
    with pytest.raises(lk.IllegalTransformError, match=r"swizzled.*bits=0"):  # across launches
        apart.swizzle_array("t").add_barrier("writes:t", "reads:t")


def test_empty_axes() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "<> t[i, j] = a[i, j]\nb[i, j] = t[i, j]",
        dtypes={"a, b": "float32"},
        assumptions="n >= 0",
    ).fix_parameters(n=0)
    assert knl.swizzle_array("t", bits=2).prove().ok


# }}}

# {{{ wrong texts


@pytest.mark.parametrize(
    "new",
    [
        "[j_inner_place]",
        "[j_inner_place ^ (i_inner >> 1)]",
        "[j_inner_place | i_inner]",
        "[(j_inner_place ^ i_inner) + 1]",
    ],
)
def test_a_wrong_subscript_is_found(new: str) -> None:
    knl = transpose().swizzle_array("a_s")
    place = "8 * j_inner_outer + j_inner_inner"
    old = f"[({place}) ^ i_inner]"
    text = knl.cuda()
    assert old in text
    found = prove_source(knl, text.replace(old, new.replace("j_inner_place", f"({place})")))
    assert not found.ok and any(f.kind == "access" for f in found.findings)


def test_other_spellings_are_proven() -> None:
    knl = transpose().swizzle_array("a_s", bits=3, base=2, skip=1)
    text, old = knl.cuda(), "(((i_inner >> 1) & 7) << 2)"
    assert old in text
    assert prove_source(knl, text.replace(old, "((i_inner / 2) % 8 * 4)")).ok
    assert prove_source(knl, text).ok and knl.prove(text=True).ok


# }}}

# {{{ what it costs


def test_banks_and_wavefronts() -> None:
    sizes = {"n": 100, "m": 70}
    swizzled = transpose().swizzle_array("a_s")
    taken = []
    for knl in (transpose(), swizzled):
        picture = knl.plot_banks("a_s", "insn", **sizes)
        (access,) = (a for a in knl.costs(**sizes).accesses if a.text.startswith("a_s[i_inner"))
        assert access.counts is not None
        taken.append((picture.wavefronts, access.counts.most_pieces))
    assert taken == [(32, 32), (1, 1)]
    touches = swizzled.plot_banks("a_s", "insn", **sizes).request.touches
    for touch in touches:
        i, j = touch.cell
        assert touch.address == 4 * (32 * i + (j ^ i))


def test_costs_of_open_sizes() -> None:
    knl = transpose(16, 16, 4).swizzle_array("a_s", bits=3, base=1)
    found = knl.costs(m=48)
    for n in (64, 80, 1000):
        exact = {
            (a.text, a.is_write): a.counts.pieces
            for a in knl.costs(m=48, n=n).accesses
            if a.counts is not None and a.space == "shared"
        }
        some = {(a.text, a.is_write): a for a in found.accesses if a.space == "shared"}
        assert exact.keys() == some.keys()
        for key, access in some.items():
            assert access.counts is not None
            assert access.counts.pieces(n=n) == exact[key]


# }}}

# {{{ random layouts


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, int], list[Swizzle]]:
    shape = draw(st.tuples(st.integers(1, 13), st.integers(1, 13)))
    swizzles = []
    for axis in draw(st.sampled_from([(0,), (1,), (1,), (0, 1)])):
        numbers = draw(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)))
        swizzles.append(Swizzle(axis, draw(st.sampled_from([1 - axis, 1 - axis, axis])), *numbers))
    return shape, swizzles


def places(shape: tuple[int, int], swizzles: list[Swizzle]) -> dict[tuple[int, ...], list[int]]:
    found = {}
    for cell in itertools.product(*map(range, shape)):
        place = list(cell)
        for s in swizzles:
            place[s.axis] = cell[s.axis] ^ ((cell[s.by] >> s.skip) % 2**s.bits) << s.base
        found[cell] = place
    return found


@given(layouts())
@settings(max_examples=30)
def test_exactly_bijections_are_taken(drawn: tuple[tuple[int, int], list[Swizzle]]) -> None:
    shape, swizzles = drawn
    expected = places(shape, swizzles)
    is_inside = all(p < n for place in expected.values() for p, n in zip(place, shape, strict=True))
    is_apart = len(set(map(tuple, expected.values()))) == len(expected)
    knl = on_threads(turned(*shape))
    steps = [
        {"axis": s.axis, "by": s.by, "bits": s.bits, "base": s.base, "skip": s.skip}
        for s in swizzles
    ]
    try:
        for step in steps[:-1]:
            knl = knl.swizzle_array("t", **step, unchecked=True)
        done = knl.swizzle_array("t", **steps[-1])
    except WitnessError as error:
        witness = error.witness
        assert not (is_inside and is_apart)
        assert witness.kind == "overlap" or not is_inside
        if witness.kind == "outside":
            place = expected[witness.cell]
            assert any(p >= n for p, n in zip(place, shape, strict=True))
        return
    assert is_inside and is_apart
    assert done.prove().ok
    (drain,) = (a for a in done.costs().accesses if a.statement == "drain" and a.array == "t")
    taken = 0
    for column in range(shape[1]):
        touched = [place for cell, place in expected.items() if cell[1] == column]
        banks = [(place[0] * shape[1] + place[1]) % 32 for place in touched]
        taken += max(map(banks.count, banks))
    assert drain.counts is not None and drain.counts.pieces == taken


# }}}
