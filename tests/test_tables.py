"""Tables of constants: arrays whose elements stand in the source."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import Golden
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from seams import DTYPES, ReadError, element_texts, read_elements, tokens

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def table(name: str, values: Any, **more: Any) -> lk.TemporaryVariable:
    return lk.TemporaryVariable(name, initializer=values, read_only=True, **more)


def filtered(values: Any = (0.25, 0.5, 0.25), **more: Any) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 3 }",
        "y[i] = sum(j, c[j]*x[i + j])",
        [table("c", values, dtype="float32"), ...],
        dtypes={"x, y": "float32"},
        name="filtered",
        **more,
    )
    return knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def permuted(values: Any = (2, 0, 3, 1)) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < 4 }",
        "y[p[i]] = x[i]",
        [table("p", values), lk.GlobalArg("y", shape=4), ...],
        dtypes={"x, y": "float32"},
    )


def test_tables_stand_in_the_source(golden: Golden) -> None:
    knl = filtered()
    golden("tables_filtered.txt", f"{knl}\n\n{knl.cuda()}")
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    assert [a.name for a in knl.passed] == ["n", "x", "y"]
    assert pickle.loads(pickle.dumps(knl)) == knl
    assert knl != filtered((0.25, 0.5, 0.5))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_tables_are_read_as_arguments_are(n: int) -> None:
    x = np.arange(n + 2, dtype=np.float32)
    due = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    knl = filtered()
    np.testing.assert_array_equal(knl.executor("reference")(x=x), due)
    for order in ORDERS:
        np.testing.assert_array_equal(knl.executor("host", order=order)(x=x), due)


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_tables_of_all_types_keep_every_bit(name: str) -> None:
    dtype = DTYPES[name]
    few: list[Any]
    if dtype.kind in "iu":
        few = [np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max]
    else:
        few = [0, 1, -0.0, 0.1, 1e4, np.inf, -np.inf, np.nan, 1e-7]
    if dtype.kind == "b":
        few = [True, False]
    values = np.array(few * 9, dtype if dtype.kind in "iu" else None)
    if dtype.kind == "c":
        values = values + np.array([1j, 2, -1j]).repeat(27)
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < m }",
        "y[i] = c[i]",
        [table("c", values.astype(dtype)), ...],
        fixed_parameters={"m": len(values)},
    ).tag_inames("i: l.0")
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    for executor in ("host", "reference"):
        assert knl.executor(executor)().tobytes() == values.astype(dtype).tobytes()


@given(st.data())
def test_elements_read_back_as_they_are_printed(data: st.DataObject) -> None:
    own = [d for d in DTYPES.values() if d != ml_dtypes.bfloat16]
    dtype = data.draw(st.sampled_from(own))
    values = data.draw(arrays.arrays(dtype, st.integers(1, 5)))
    texts = element_texts(dtype, values.tobytes())
    found, _ = tokens([", ".join(texts)], 1)
    assert read_elements(dtype, [t.text for t in found[:-1]], 1) == values.tobytes()


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32", "1.00f"),
        ("float32", "1.0"),
        ("float32", "1"),
        ("float32", "0.100000001f"),
        ("float32", "0x3ff"),
        ("float32", ""),
        ("int32", "1u"),
        ("int32", "2147483648"),
        ("int32", "01"),
        ("int8", "128"),
        ("int64", "1"),
        ("bool", "1"),
        ("complex64", "{1.0f}"),
        ("float16", "__half_raw{0x3C00}"),
        ("float16", "1.0f"),
        ("float32", "__builtin_bit_cast(float, 0x3f800000)"),
    ],
)
def test_other_spellings_are_no_elements(dtype: str, text: str) -> None:
    found, _ = tokens([text], 1)
    with pytest.raises(ReadError):
        read_elements(DTYPES[dtype], [t.text for t in found[:-1]], 1)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("abc", "is an array of numbers"),
        ([], "no elements"),
        ([[1], [2, 3]], "is an array of numbers"),
        (object(), "is an array of numbers"),
        (np.array(["a"]), "is an array of numbers"),
        (np.ma.array([1, 2], mask=[0, 1]), "is an array of numbers"),
        (np.zeros(2, [("a", "i4")]), "is an array of numbers"),
        (2**70, "is an array of numbers"),
        (np.zeros(2**20), "at most"),
    ],
)
def test_what_is_no_table_is_refused(values: Any, why: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=why):
        table("c", values)


def test_a_table_has_an_initializer_and_is_read_only() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="not read only"):
        lk.TemporaryVariable("c", initializer=[1.0])
    with pytest.raises(lk.InvalidArgumentError, match="no initializer"):
        lk.TemporaryVariable("c", read_only=True)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"dtype": "int8"}, "does not hold 1.5"),
        ({"dtype": "bool"}, "does not hold"),
        ({"shape": 3}, "the shape of 'c'"),
        ({"address_space": "shared"}, "global memory|no address space"),
        ({"dim_tags": "N0"}, "that of its initializer"),
    ],
)
def test_declarations_that_contradict_the_elements(more: Any, why: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=why):
        lk.make_kernel("{ [i]: 0 <= i < 2 }", "y[i] = c[i]", [table("c", [1.5, 300], **more), ...])


@pytest.mark.parametrize(
    "text", ["c[i] = 1", "c[i] = c[i] + 1 {atomic}", "<> c = 1", "c[i] += x[i]"]
)
def test_tables_are_never_written(text: str) -> None:
    with pytest.raises(lk.ParseError, match="a table of constants"):
        lk.make_kernel("{ [i]: 0 <= i < 2 }", text, [table("c", [1, 2]), ...])


def test_reads_outside_of_a_table_are_refused() -> None:
    with pytest.raises(lk.OutOfBoundsError, match=r"c\[3\].*n=2|i=3"):
        lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = c[i]", [table("c", [1, 2, 3]), ...])


@pytest.mark.parametrize("index", ["place[i]", "place[place[i]] + 1", "2*place[7 - i]"])
def test_elements_outside_of_another_array_are_refused(index: str) -> None:
    place = lk.TemporaryVariable("place", initializer=[3, 0, 2, 1, 7, 6, 5, 4], read_only=True)

    def made(extent: int) -> lk.Kernel:
        arrays = [place, lk.GlobalArg("y", shape=extent), ...]
        return lk.make_kernel(
            "{ [i]: 0 <= i < 8 }", f"y[{index}] = 1", arrays, dtypes={"y": "int8"}
        )

    most = 15 if index.startswith("2") else 8
    with pytest.raises(lk.OutOfBoundsError, match=rf"at y\[{most - 1}\] for i="):
        made(most - 1)
    made(most + 1).cuda()


def test_tables_are_no_arguments_of_a_call() -> None:
    for executor in ("host", "reference"):
        with pytest.raises(lk.UnknownNameError, match="no argument 'c'"):
            filtered().executor(executor)(x=np.ones(3, "f4"), c=np.ones(3, "f4"))


def test_permutations_that_are_tables_are_proven() -> None:
    knl = permuted().tag_inames("i: l.0")
    assert str(knl.prove()).startswith("kernel: proven")
    assert "if the data" not in str(knl.prove())
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(knl.executor("host")(x=x, y=np.zeros(4, "f4")), [1, 3, 0, 2])
    with pytest.raises(lk.RaceError, match=r"i=1.* both write"):
        permuted((2, 0, 3, 0)).tag_inames("i: l.0")


def test_what_tables_hold_is_not_assumed() -> None:
    knl = permuted()
    with pytest.raises(lk.InvalidArgumentError, match="is known"):
        knl.assume_injective("p")
    with pytest.raises(lk.InvalidArgumentError, match="nothing says"):
        knl.assume_within("p", 0, 3)


def test_tables_are_prefetched_and_never_laid_out_anew() -> None:
    knl = filtered().add_prefetch("c", ["j"], default_tag="l.auto")
    assert knl.prove().ok
    x = np.arange(40, dtype="f4")
    np.testing.assert_array_equal(knl.executor("host")(x=x), filtered().executor("reference")(x=x))
    for unchecked in (False, True):
        for step in (
            lambda u: knl.tag_array_axes("c", "N0", unchecked=u),
            lambda u: knl.split_array_dim(("c", 0), 2, unchecked=u),
            lambda u: knl.concatenate_arrays("c, c_s", unchecked=u),
            lambda u: knl.add_padding("c", 0, 16, unchecked=u),
            lambda u: knl.pad_temporary("c", 0, 1, unchecked=u),
        ):
            with pytest.raises(lk.IllegalTransformError, match="'c' is a table of constants"):
                step(unchecked)


def test_launches_have_the_tables_that_they_read() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        y[i] = c[i % 2]*x[i]
        ... gbarrier
        z[j] = c[j % 2]*y[n - 1 - j] + d[j % 2]
        """,
        [table("c, d", np.array([1.5, 300], "f4")), ...],
        dtypes={"x, y, z": "float32"},
    ).tag_inames("i: g.0, j: g.0")
    assert str(knl.cuda()).count("static float const c[2]") == 2
    assert str(knl.cuda()).count("static float const d[2]") == 1
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    x = np.ones(3, "f4")
    both = [knl.executor(e)(x=x, y=np.zeros(3, "f4")) for e in ("host", "reference")]
    np.testing.assert_array_equal(both[0].z, both[1].z)


def test_tables_tell_kernels_apart() -> None:
    assert lk.verify(filtered(), filtered())
    with pytest.raises(lk.InvalidArgumentError, match="do not agree on the elements of 'c'"):
        lk.verify(filtered(), filtered((1, 2, 3)))
    both = lk.fuse_kernels([filtered(), filtered((1, 2, 3)).rename_argument("y", "z")])
    assert [a.name for a in both.args if a not in both.passed] == ["c", "c_0"]
    assert lk.fuse_kernels([filtered(), filtered()]).arg_by_name.keys() == {*filtered().arg_by_name}


def test_a_table_may_be_called_otherwise() -> None:
    """Calls do not say its name: it is its elements."""
    assert lk.verify(filtered(), filtered().rename_argument("c", "d"))
    assert lk.verify(filtered().rename_argument("c", "d"), filtered())
    with pytest.raises(lk.InvalidArgumentError, match="only 'before' has c"):
        lk.verify(filtered(), filtered((1, 2, 3)).rename_argument("c", "d"))


@pytest.mark.parametrize("suffixes", [None, ["_a", "_b", "_c"]])
@pytest.mark.parametrize("scheduled", [False, True])
def test_kernels_that_are_fused_keep_their_tables(suffixes: Any, scheduled: bool) -> None:
    back, rolled = np.arange(8)[::-1].copy(), np.roll(np.arange(8), 3)

    def moved(iname: str, source: str, to: str, places: Any) -> lk.Kernel:
        knl = lk.make_kernel(
            f"{{ [{iname}]: 0 <= {iname} < 8 }}",
            f"{to}[place[{iname}]] = {source}[{iname}]",
            [table("place", places), lk.GlobalArg(f"{source}, {to}", "float32", shape=8), ...],
            name=f"moved_{iname}",
        )
        if not scheduled:
            return knl
        return knl.split_iname(iname, 4, outer_tag="g.0", inner_tag="l.0").add_prefetch("place[:]")

    parts = [moved("i", "x", "y", back), moved("j", "y", "z", rolled), moved("k", "z", "w", back)]
    knl = lk.fuse_kernels(parts, suffixes=suffixes, separate_launches=True)
    names = [a.name for a in knl.args if a not in knl.passed]
    assert names == ["place", "place_b" if suffixes else "place_0"]
    assert knl.prove().ok
    x = np.arange(8, dtype="f4")
    found = knl.executor("host")(x=x, y=np.zeros_like(x), z=np.zeros_like(x), w=np.zeros_like(x))
    np.testing.assert_array_equal(found.y[back], x)
    np.testing.assert_array_equal(found.z[rolled], found.y)
    np.testing.assert_array_equal(found.w[back], found.z)


def test_what_another_kernel_calls_like_a_table_is_something_else() -> None:
    added = lk.make_kernel("{ [i]: 0 <= i < n }", "z[i] = c[i] + i", dtypes={"c, z": "float32"})
    for parts in ([filtered(), added], [added, filtered()]):
        knl = lk.fuse_kernels(parts)
        assert [a.name for a in knl.args if a not in knl.passed] == ["c_0"]
        assert "c_0[j]*x" in str(knl) and "c[i] + i" in str(knl)


def test_functions_bring_their_tables(golden: Golden) -> None:
    """Once for all calls of a function, also from inside of another one."""
    smooth = lk.make_function(
        "{ [i, j]: 0 <= i < n and 0 <= j < 3 }",
        """
        taken(k) := tap[k]
        y[i] = sum(j, taken(j)*x[i + j])
        """,
        [lk.GlobalArg("x", shape="n + 2"), table("tap", np.array([0.25, 0.5, 0.25], "f4")), ...],
        name="smooth",
    )
    assert str(smooth) == "smooth(x, n) -> y"
    twice = lk.make_function(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < n + 2 }", "{ [l]: 0 <= l < n + 4 }"],
        """
        [k]: <> t[k] = smooth([l]: x[l])                   {id=first}
        [i]: y[i] = smooth([k]: t[k])                      {dep=first}
        y[i] = tap[i % 2]*y[i]                             {dep=*}
        """,
        [
            lk.GlobalArg("x", shape="n + 4"),
            lk.GlobalArg("y", is_input=False),
            table("tap", np.array([2, 3], "f4")),
            ...,
        ],
        name="twice",
        functions=[smooth],
    )
    knl = lk.make_kernel(
        ["{ [b, i]: 0 <= b < nb and 0 <= i < 8 }", "{ [l]: 0 <= l < 12 }"],
        "[i]: z[b, i] = twice([l]: a[b, l])   {id=go}\nz[b, 0] = twice_tap*z[b, 0]   {dep=go}",
        dtypes={"a, z, twice_tap": "float32"},
        functions=[twice],
        name="batched",
    ).split_iname("b", 32, outer_tag="g.0", inner_tag="l.0")
    golden("tables_of_functions.txt", f"{knl}\n\n{knl.cuda()}")
    assert knl.prove().ok
    assert pickle.loads(pickle.dumps(knl)) == knl
    a = np.random.default_rng(0).random((37, 12), np.float32)
    once = 0.25 * (a[:, :-2] + a[:, 2:]) + 0.5 * a[:, 1:-1]
    due = 0.25 * (once[:, :-2] + once[:, 2:]) + 0.5 * once[:, 1:-1]
    due *= np.array([2, 3] * 4, "f4")
    due[:, 0] *= 5
    for executor in ("reference", "host"):
        found = knl.executor(executor)(a=a, twice_tap=5)
        np.testing.assert_allclose(found, due, rtol=1e-6)


def test_large_tables() -> None:
    values = np.random.default_rng(0).random(2**15, dtype="f4")
    knl = lk.make_kernel("{ [i]: 0 <= i < 32768 }", "y[i] = c[i]", [table("c", values), ...])
    assert knl.prove(text=True).ok
    assert max(map(len, str(knl.cuda()).splitlines())) < 110
    np.testing.assert_array_equal(knl.executor("host")(), values)


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize(
    "name", ["float32", "float16", "bfloat16", "complex64", "float64", "int64"]
)
def test_tables_compile(arch: str, name: str) -> None:
    from seams import compile_program

    values = np.array([1, 0, -3, 7]) if name == "int64" else np.array([1, np.inf, np.nan, -0.0])
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = c[i % 4]", [table("c", values.astype(DTYPES[name])), ...]
    )
    assert compile_program(knl.program(), arch)


def test_elements_that_stand_there_twice_are_a_race() -> None:
    """Which threads store to one cell, the table says, and nothing can be asserted of it."""
    place = lk.TemporaryVariable("place", initializer=[3, 0, 2, 1, 7, 6, 5, 6], read_only=True)
    arrays = [place, lk.GlobalArg("y", shape="n, 8"), ...]
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "y[i, place[j]] = x[i, j]",
        arrays,
        dtypes={"x, y": "float32"},
    )
    with pytest.raises(lk.RaceError) as refused:
        knl.tag_inames("j: l.0")
    witness = refused.value.witness
    assert witness is not None and witness.array == "y"
    assert {witness.source.inames["j"], witness.sink.inames["j"]} == {5, 7}
    assert "assume_injective" not in str(refused.value)
    assert knl.tag_inames("i: g.0").prove().ok


@pytest.mark.host
@pytest.mark.parametrize("space", [lk.AddressSpace.PRIVATE, lk.AddressSpace.GLOBAL, "private"])
def test_a_table_may_be_said_to_be_each_threads(space: Any) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 3 }",
        "y[i] = 2*c[i]",
        [table("c", [1.5, 2.5, 3.5], address_space=space), ...],
    )
    assert np.array_equal(knl.split_iname("i", 3, inner_tag="l.0")(), [3.0, 5.0, 7.0])
