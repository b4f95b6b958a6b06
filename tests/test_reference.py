"""The reference interpreter against NumPy."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from seams import as_dtype, code_of, parse_tag, run_reference

import loopkit as lk
from loopkit import (
    AddressSpace,
    AssumptionError,
    GlobalArg,
    LaunchError,
    OutOfBoundsError,
    UninitializedReadError,
    UnknownNameError,
    make_kernel,
)

ONE = "{ [i]: 0 <= i < n }"
RNG = np.random.default_rng(1)


def value_of(text: str, dtypes: dict[str, str], **arrays: object) -> np.ndarray:  # type: ignore[type-arg]
    kernel = make_kernel(ONE, f"c[i] = {text}", dtypes=dtypes)
    given = {n: v for n, v in arrays.items() if n in kernel.arg_by_name}
    result: np.ndarray = run_reference(kernel, given)["c"]  # type: ignore[type-arg]
    return result


# {{{ expressions

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "complex64", "complex128"])
@pytest.mark.parametrize("text", ["a[i] + b[i]", "a[i] - b[i]", "a[i]*b[i]", "a[i]/b[i]", "-a[i]"])
def test_arithmetic(dtype: str, text: str) -> None:
    a = np.array([0, 1, 7, 100, 3]).astype(as_dtype(dtype))
    b = np.array([1, 3, 2, 50, 7]).astype(as_dtype(dtype))
    used = {n: dtype for n in "ab" if f"{n}[" in text}
    with np.errstate(all="ignore"):
        expected = eval(text.replace("[i]", ""), {"a": a, "b": b})
    found = value_of(text, used, a=a, b=b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int32", "int8", "float32", "float64"])
def test_division_rounds_down(dtype: str) -> None:
    a = np.array([7, -7, 7, -7], dtype)
    b = np.array([2, 2, -2, -2], dtype)
    types = {"a, b": dtype}
    assert value_of("a[i] // b[i]", types, a=a, b=b).tolist() == [3, -4, -4, 3]
    assert value_of("a[i] % b[i]", types, a=a, b=b).tolist() == [1, 1, -1, -1]


def test_types_of_mixed_operands() -> None:
    a = np.array([1, 2, 3], "i4")
    b = np.array([0.5, 1.5, 2.5], "f4")
    assert value_of("a[i] * b[i]", {"a": "int32", "b": "float32"}, a=a, b=b).dtype == np.float64
    assert value_of("2*b[i] + 0.5", {"b": "float32"}, b=b).dtype == np.float32
    assert value_of("i + b[i]", {"b": "float32"}, b=b).tolist() == [0.5, 2.5, 4.5]
    assert value_of("i / 2", {}, n=3).tolist() == [0, 0.5, 1]


def test_integers_wrap() -> None:
    a = np.array([200, 100], "u1")
    assert value_of("a[i] + a[i]", {"a": "uint8"}, a=a).tolist() == [144, 200]


def test_choices_take_one_side_only() -> None:
    a = np.array([1, 2, 3], "f4")
    found = value_of("if(i > 0, a[i - 1], 0)", {"a": "float32"}, a=a[:2], n=3)
    assert found.tolist() == [0, 1, 2]
    found = value_of("a[i] if i < 2 and a[i] > 1 else 7", {"a": "float32"}, a=a[:2], n=3)
    assert found.tolist() == [7, 2, 7]


def test_maximum_propagates_what_is_not_a_number() -> None:
    a = np.array([1, np.nan, 3, np.nan], "f4")
    b = np.array([2, 2, np.nan, np.nan], "f4")
    found = value_of("max(a[i], b[i])", {"a, b": "float32"}, a=a, b=b)
    np.testing.assert_array_equal(found, np.maximum(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name",
    ["sqrt", "exp", "log1p", "sin", "atan", "tanh", "floor", "round", "abs", "exp2", "cbrt"],
)
def test_functions(dtype: str, name: str) -> None:
    a = np.array([0.25, 0.5, 1.5, 2.5]).astype(as_dtype(dtype))
    wide = a.astype("float32") if a.dtype.itemsize == 2 else a
    function = getattr(np, {"round": "rint", "atan": "arctan"}.get(name, name))
    expected = function(wide).astype(a.dtype)
    found = value_of(f"{name}(a[i])", {"a": dtype}, a=a)
    assert found.dtype == a.dtype
    np.testing.assert_array_equal(found, expected)


def test_casts() -> None:
    a = np.array([-1.7, 2.9, 300.2], "f4")
    assert value_of("int32(a[i])", {"a": "float32"}, a=a).tolist() == [-1, 2, 300]
    found = value_of("bfloat16(a[i])", {"a": "float32"}, a=a)
    np.testing.assert_array_equal(found, a.astype(ml_dtypes.bfloat16))


# }}}

# {{{ kernels


def test_a_matrix_product() -> None:
    kernel = make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b": "float32"},
        assumptions="n, m, l >= 1",
    )
    a, b = RNG.normal(size=(5, 7)).astype("f"), RNG.normal(size=(7, 3)).astype("f")
    found = run_reference(kernel, {"a": a, "b": b})
    assert list(found) == ["c"] and found["c"].dtype == np.float32
    expected = np.zeros((5, 3), "f")
    for k in range(7):  # in the same order
        expected += a[:, k, None] * b[k]
    np.testing.assert_array_equal(found["c"], expected)


def test_sums_are_computed_in_the_type_of_the_accumulator() -> None:
    kernel = make_kernel(ONE, "c = sum(i, a[i])", dtypes={"a": "float16"})
    a = np.full(4096, 1, np.float16)
    assert run_reference(kernel, {"a": a})["c"] == 4096
    narrow = make_kernel(ONE, "c = sum(i, a[i], dtype=float16)", dtypes={"a": "float16"})
    assert run_reference(narrow, {"a": a})["c"] == 2048


def test_order_matters() -> None:
    kernel = make_kernel(
        "{ [i, j]: 1 <= i < n and 1 <= j < n }",
        "a[i, j] = a[i - 1, j] + a[i, j - 1]",
        [GlobalArg("a", "int64", "n, n"), ...],
    )
    a = np.ones((6, 6), "i8")
    found = run_reference(kernel, {"a": a})["a"]
    expected = a.copy()
    for i in range(1, 6):
        for j in range(1, 6):
            expected[i, j] = expected[i - 1, j] + expected[i, j - 1]
    np.testing.assert_array_equal(found, expected)
    assert (a == 1).all()


def test_shared_loops_run_side_by_side() -> None:
    kernel = make_kernel(
        ONE,
        """
        for i
          <> t = a[i]
          b[i] = if(i > 0, b[i - 1], 0) + t
          if b[i] > 4
            c[i] = 1
          elif b[i] > 1
            c[i] = 2
          else
            c[i] = 3
          end
        end
        """,
        dtypes={"a": "int32", "b": "int32"},
    )
    found = run_reference(kernel, {"a": np.array([1, 1, 3, 4], "i4"), "b": np.zeros(4, "i4")})
    assert found["b"].tolist() == [1, 2, 5, 9]
    assert found["c"].tolist() == [3, 2, 1, 1]


def test_branches_and_reductions() -> None:
    kernel = make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k <= i }",
        """
        for i
          <> t = x[i]
          if t > 0 and i > 1
            y[i] = sum(k, a[i, k]) + max(t, 0.5)
            x[i] = 3
          elif any(k, a[i, k] < 0)
            y[i] = min(k, a[i, k])
          else
            y[i] = product(k, a[i, k])
          end
        end
        """,
        dtypes={"a, x": "float64"},
    )
    a = RNG.integers(-4, 9, (9, 9)).astype("f8")
    x = RNG.normal(size=9)
    found = run_reference(kernel, {"a": a, "x": x})
    y, x_after = np.zeros(9), x.copy()
    for i in range(9):
        row = a[i, : i + 1]
        if x[i] > 0 and i > 1:
            y[i], x_after[i] = row.sum() + max(x[i], 0.5), 3
        else:
            y[i] = row.min() if (row < 0).any() else row.prod()
    np.testing.assert_array_equal(found["y"], y)
    np.testing.assert_array_equal(found["x"], x_after)


def test_a_condition_is_decided_once() -> None:
    kernel = make_kernel(
        ONE,
        "if a[i] > 0\n a[i] = -1\n b[i] = 1\nelse\n b[i] = 2\nend",
        dtypes={"a": "int32"},
    )
    found = run_reference(kernel, {"a": np.array([3, 0], "i4")})
    assert found["b"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("domain", "points"),
    [
        (
            "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
            lambda n: [(i, j) for i in range(n) for j in range(i + 1)],
        ),
        ("{ [i, j]: 0 <= i < n and 0 <= j < n and (i + j) mod 3 = 1 }", None),
        ("{ [i, j]: 0 <= i < n and j = 2*i and j < n }", None),
        ("{ [i, j]: exists k: 0 <= i < n and i = 2*k and 0 <= j < k }", None),
        ("{ [i, j]: (0 <= i < 2 or 4 <= i < n) and 0 <= j < n }", None),
        ("{ [i, j]: 0 <= i < n and i < j < i }", None),
        ("{ [i, j]: 0 <= i < n and i // 2 <= j < n }", None),
    ],
)
def test_domains_of_all_kinds(domain: str, points: object) -> None:
    import islpy as isl
    from seams import parse_domain

    n = 7
    data = [GlobalArg("c", "int32", "n, 2*n"), ...]
    kernel = make_kernel(domain, "c[i, j] = c[i, j] + 1", data, assumptions="n >= 7")
    found = run_reference(kernel, {"c": np.zeros((n, 2 * n), "i4"), "n": n})["c"]
    wanted: list[tuple[int, ...]] = []
    fixed = parse_domain(domain).fix_val(isl.dim_type.param, 0, isl.Val(n))
    fixed.project_out(isl.dim_type.param, 0, 1).foreach_point(
        lambda p: wanted.append(
            tuple(p.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(2))
        )
    )
    assert found.max(initial=0) <= 1
    assert sorted(zip(*np.nonzero(found), strict=True)) == sorted(wanted)
    if callable(points):
        assert sorted(wanted) == points(n)


def test_bounds_that_are_loaded() -> None:
    kernel = make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: start <= j < end }"],
        """
        for i
          <> start = rows[i]
          <> end = rows[i + 1]
          y[i] = sum(j, x[col[j]])
        end
        """,
        [GlobalArg("x", "float64", "m"), GlobalArg("col", "int32", "nonzeros"), ...],
        dtypes={"rows": "int32"},
    )
    x = np.arange(1.0, 5.0)
    given = {
        "x": x,
        "rows": np.array([0, 2, 2, 3], "i4"),
        "col": np.array([1, 3, 0], "i4"),
        "n": 3,
    }
    assert run_reference(kernel, given)["y"].tolist() == [6, 0, 1]


def test_bounds_that_each_thread_loads() -> None:
    """Threads have bounds of their own, and those beyond the last row load none."""
    kernel = make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: start <= j < end }"],
        """
        for i
          <> start = rows[i]
          <> end = rows[i + 1]
          for j
            y[i] = y[i] - x[j]
          end
          z[i] = sum(j, x[j])
        end
        """,
        [GlobalArg("x", "float64", "m"), ...],
        dtypes={"rows": "int32", "y, z": "float64"},
    )
    given = {
        "x": np.arange(1.0, 5.0),
        "rows": np.array([0, 2, 1, 4, 4, 4], "i4"),
        "y": np.zeros(5),
        "n": 5,
    }
    expected = run_reference(kernel, given)
    assert expected["y"].tolist() == [-3, 0, -9, 0, 0]
    halves = lk.split_iname(kernel, "i", 2, inner_tag="l.0")
    for scheduled in (
        halves,
        lk.split_iname(kernel, "i", 2, outer_tag="g.0", inner_tag="l.0"),
        lk.split_iname(halves, "j", 2),
    ):
        found = run_reference(scheduled, given)
        assert {n: v.tolist() for n, v in found.items()} == {
            n: v.tolist() for n, v in expected.items()
        }


def test_rules_are_expanded() -> None:
    kernel = make_kernel(
        ONE, "f(x) := a[x] + g\ng := 2*b[0]\nc[i] = f(n - 1 - i)", dtypes={"a, b": "float32"}
    )
    found = run_reference(kernel, {"a": np.arange(3, dtype="f"), "b": np.ones(1, "f")})
    assert found["c"].tolist() == [4, 3, 2]


# }}}

# {{{ parallel inames


def with_tags(kernel, **tags):  # type: ignore[no-untyped-def]
    """The kernel with inames tagged and taken out of the tree's loops."""
    from seams import rewrite_paths

    parsed = {name: parse_tag(tag.replace("_", ".")) for name, tag in tags.items()}
    parallel = {name for name, tag in parsed.items() if tag is not None and tag.is_parallel}
    tree = rewrite_paths(
        kernel.tree, lambda _, path: tuple(key for key in path if key[0] not in parallel)
    )
    return kernel.with_(tags=tuple(parsed.items()), tree=tree)


def test_threads_have_private_and_blocks_shared_memory() -> None:
    kernel = make_kernel(
        "{ [g, l, l2, k]: 0 <= g < 3 and 0 <= l, l2, k < 4 }",
        """
        <> s[l] = a[g, l]
        c[g, l2] = sum(k, s[k]) + s[l2]
        """,
        dtypes={"a": "int32"},
    )
    # Both statements are inside g; l and l2 are the same axis of threads.
    kernel = with_tags(kernel, g="g_0", l="l_0", l2="l_0")
    a = np.arange(12, dtype="i4").reshape(3, 4)
    found = run_reference(kernel, {"a": a})["c"]
    np.testing.assert_array_equal(found, a.sum(axis=1, keepdims=True) + a)


def test_what_all_threads_do() -> None:
    # `u = 2*t` has no coordinate: each thread computes it from its own `t`.
    kernel = make_kernel(
        "{ [l]: 0 <= l < 4 }", "<> t = a[l]\n<> u = 2*t\nc[l] = u", dtypes={"a": "int32"}
    )
    kernel = with_tags(kernel, l="l_0")
    statements = [
        replace(s, inames=frozenset()) if s.written == "u" else s for s in kernel.statements
    ]
    found = run_reference(
        kernel.with_(statements=tuple(statements)), {"a": np.arange(4, dtype="i4")}
    )
    assert found["c"].tolist() == [0, 2, 4, 6]


def test_temporaries_may_be_global() -> None:
    kernel = make_kernel(
        "{ [g, g2]: 0 <= g, g2 < 4 }",
        "<> t[g] = a[g]\nc[g2] = t[3 - g2]",
        dtypes={"a": "int32"},
    )
    kernel = with_tags(kernel, g="g_0", g2="g_0")
    assert kernel.temporary_by_name["t"].address_space is AddressSpace.AUTO
    found = run_reference(kernel, {"a": np.arange(4, dtype="i4")})["c"]
    assert found.tolist() == [3, 2, 1, 0]


# }}}

# {{{ errors


def test_an_access_outside_of_its_array() -> None:
    kernel = make_kernel(
        ONE, "c[i] = a[b[i]]", [GlobalArg("a", "float32", "m"), ...], dtypes={"b": "int32"}
    )
    with pytest.raises(OutOfBoundsError) as caught:
        run_reference(kernel, {"a": np.zeros(3, "f"), "b": np.array([0, 3], "i4")})
    assert str(caught.value) == (
        "c[i] = a[b[i]]\ninsn[i=1]: a[3] is outside of the array: its shape is (3)"
    )
    assert caught.value.witness is not None
    assert caught.value.witness.sink is not None


def test_a_read_of_what_was_not_written() -> None:
    kernel = make_kernel(ONE, "<> t = 1 {if=a[i] > 0}\nb[i] = t", dtypes={"a": "float32"})
    assert run_reference(kernel, {"a": np.ones(2, "f")})["b"].tolist() == [1, 1]
    with pytest.raises(UninitializedReadError, match=r"insn_0\[i=0\]: t is read before"):
        run_reference(kernel, {"a": np.zeros(2, "f")})


@pytest.mark.parametrize("divisor", ["(n - n)", "z[0]"])
@pytest.mark.parametrize("symbol", ["//", "%"])
def test_index_divided_by_zero_is_zero(symbol: str, divisor: str) -> None:
    text = f"y[i] = a[i + (i + 1) {symbol} {divisor}]"
    arguments = [GlobalArg("a", "int32", shape="n"), GlobalArg("z", "int8", shape="1"), ...]
    kernel = make_kernel(ONE, text, arguments)
    given = {"a": np.arange(5, 10, dtype="int32"), "z": np.zeros(1, "int8")}
    assert run_reference(kernel, given)["y"].tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("base", ["i", "b[i]", "2"])
def test_an_integer_to_a_negative_power_is_zero(base: str) -> None:
    used = ("a", "y", "b") if base == "b[i]" else ("a", "y")
    kernel = make_kernel(ONE, f"y[i] = {base}**a[i]", dtypes=dict.fromkeys(used, "int32"))
    given = {"a": np.array([-1, 0, -2, 3, 2], "int32")}
    if base == "b[i]":
        given["b"] = np.array([-1, 0, -2, 3, -4], "int32")
    assert run_reference(kernel, given)["y"].tolist() == kernel.executor("host")(**given).tolist()
    assert run_reference(kernel, given)["y"][[0, 1, 2]].tolist() == [0, 1, 0]


def test_arguments() -> None:
    kernel = make_kernel(ONE, "c[i] = a[i]", dtypes={"a": "float32"}, assumptions="n >= 2")
    with pytest.raises(AssumptionError, match="the kernel assumes n >= 2, but n=1"):
        run_reference(kernel, {"a": np.zeros(1, "f")})
    with pytest.raises(LaunchError, match="'a' is of type float64, but float32 is expected"):
        run_reference(kernel, {"a": np.zeros(3)})
    with pytest.raises(LaunchError, match=r"'a' has the shape \(3,\), but \(4,\) is expected"):
        run_reference(kernel, {"a": np.zeros(3, "f"), "n": 4})
    with pytest.raises(LaunchError, match="the array 'a' is missing"):
        run_reference(kernel, {"n": 4})
    with pytest.raises(UnknownNameError, match="there is no argument 'b'"):
        run_reference(kernel, {"b": 4})


# }}}


def test_statements_are_compiled_once_for_all_sizes() -> None:
    kernel = make_kernel(ONE, "c[i] = a[n - 1 - i] + n", dtypes={"a": "float32"})
    assert run_reference(kernel, {"a": np.ones(2, "f")})["c"].tolist() == [3, 3]
    made = code_of.cache_info().misses
    assert run_reference(kernel, {"a": np.ones(3, "f")})["c"].tolist() == [4, 4, 4]
    assert code_of.cache_info().misses == made


def test_points_where_coalescing_leaves_numbers_that_are_no_quotients() -> None:
    """Half of the numbers are peeled, split and buffered: the reference still enumerates them."""
    kernel = lk.make_kernel(
        ["{ [j]: -2 <= j < m }", "{ [i]: exists (e: 0 <= e < m and i = 2*e) }"],
        "x[j + 2, i] = g[i + 1] + c[i + 1, j + 2]",
        dtypes={"c, x, g": "float32"},
    )
    made = (
        kernel.split_iname("i", 3, inner_tag="l.0", outer_tag="g.0")
        .split_iname("j", 1, inner_tag="l.1", outer_tag="g.1")
        .buffer_array("x", ["i_inner", "j_inner"], default_tag=None)
        .split_iname("x_store_dim_1", 2)
        .split_iname("x_store_dim_1_outer", 16, inner_tag="ilp", outer_tag="l.1")
        .tag_inames({"x_store_dim_0": "g.2"})
        .peel_iname("x_store_dim_1_outer_inner", first=0, last=1)
    )
    rng = np.random.default_rng(5)
    g, c = rng.random(12, np.float32), rng.random((12, 8), np.float32)
    left = []
    for one in (kernel, made):
        left.append(x := np.zeros((8, 11), np.float32))
        one.executor("reference")(g=g, c=c, x=x, m=6)
    np.testing.assert_array_equal(*left)
    assert left[0][:, ::2].all() and not left[0][:, 1::2].any()


def test_copies_may_carry_what_nothing_has_written() -> None:
    """A store of a whole buffer comes before all of it is filled, and once more behind."""
    text = "<> s[h] = b[h] + 5\nx[h] = 2*s[h]"
    knl = lk.make_kernel("{ [h]: 0 <= h < 8 }", text, dtypes={"b, x": "float64"})
    knl = knl.split_iname("h", 4).buffer_array("s", ["h_inner"], init_expression="base")
    knl = knl.add_inames_to_insn("h_inner", "id:store_s")
    b = np.arange(8.0)
    np.testing.assert_array_equal(knl.executor("reference")(b=b), 2 * b + 10)


def test_what_a_step_computes_of_nothing_is_nothing() -> None:
    """Nobody looks at it; who does in the text is told."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "<> t = b[i]\nu[i] = b[i]", dtypes={"b": "int32"})
    knl = knl.buffer_array("t", [], init_expression="0", store_expression="base + buffer")
    b = np.arange(4, dtype="int32")
    assert np.array_equal(run_reference(knl, {"b": b})["u"], b)
    text = "for j\n<> s[j] = b[j]\nend\nfor i\nu[i] = s[i]\nend"
    knl = lk.make_kernel("{ [i, j]: 0 <= i, j < n }", text, dtypes={"b": "int32"})
    added = {"init_expression": "0", "store_expression": "base + buffer", "within": "writes:s"}
    with pytest.raises(lk.LoopkitError):
        knl.buffer_array("s", [], **added)
    with pytest.raises(UninitializedReadError, match="read before anything has been written"):
        run_reference(knl.buffer_array("s", [], **added, unchecked=True), {"b": b})


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("y[j] = sum(k, b[j] + b[k])\nz[i] = b[i]", "id:insn_init"),
        ("<> u = b[0]\nu = u + b[1]\ny[0] = u\nz[i] = b[i]", "id:insn"),
        ("<> u = b[0]\nif u < 3\nu = u + b[2]\nend\ny[0] = u\nz[i] = b[i]", "id:insn"),
    ],
)
@pytest.mark.parametrize("outer", ["g.0", "l.1"])
def test_threads_of_a_ragged_tile_compute_nothing_of_what_they_lack(
    text: str, statement: str, outer: str
) -> None:
    """All threads run a statement without a coordinate; the first one is asked what it computed."""
    domain = "{ [i, j, k]: 0 <= i, j, k < n }"
    knl = lk.make_kernel(domain, text, dtypes={"b, y, z": "float32"}, assumptions="3 <= n <= 20")
    tiled = knl.add_inames_to_insn("i", statement)
    tiled = tiled.split_iname("i", 4, inner_tag="l.0", outer_tag=outer, unchecked=True)
    b = np.arange(1, 8, dtype="float32")
    expected, found = (run_reference(k, {"b": b}) for k in (knl, tiled))
    assert {n: v.tolist() for n, v in found.items()} == {n: v.tolist() for n, v in expected.items()}


@pytest.mark.parametrize(
    "text",
    [
        "<> m = c[0] {id=one}\ny[0] = sum(k, b[k])\nz[i] = b[i]",
        "<> m = c[0] {id=one}\n<> t = b[m]\ny[0] = t\nz[i] = b[i]",
        "<> m = c[0] {id=one}\n<> t = 0\nif m > 2\nt = b[2]\nend\ny[0] = t\nz[i] = b[i]",
    ],
)
def test_idle_threads_of_a_block_must_have_what_they_read(text: str) -> None:
    """A block has four threads for three elements, too; the last one would read any element."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "[m] -> { [k]: 0 <= k < m }"],
        text,
        [lk.GlobalArg("b", "float32", shape="n"), lk.GlobalArg("c", "int32", shape=1), ...],
        dtypes={"y, z": "float32"},
        assumptions="n >= 1",
    ).add_inames_to_insn("i", "id:one")
    with pytest.raises(lk.LoopkitError, match="each thread has its own 'm'"):
        knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")


def test_the_first_thread_must_have_what_it_reads() -> None:
    """The tile of the first thread begins behind it."""
    text = "<> t = 2*b[1]\n<> u = t + 1\ny[0] = u\nz[i] = b[i]"
    dtypes = {"b, y, z": "float32"}
    knl = lk.make_kernel("{ [i]: 2 <= i < n }", text, dtypes=dtypes, assumptions="n >= 3")
    knl = knl.add_inames_to_insn("i", "writes:t")
    tiled = {"split_iname": "i", "inner_length": 4, "inner_tag": "l.0", "outer_tag": "g.0"}
    with pytest.raises(lk.IllegalTransformError, match="each thread has its own 't'"):
        knl.split_iname(**tiled)
    b = np.arange(7, dtype="float32")
    with pytest.raises(UninitializedReadError, match="t is read before anything has been written"):
        run_reference(knl.split_iname(**tiled, unchecked=True), {"b": b})


def test_idle_threads_look_at_no_condition() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        "<> hi = ptr[i]\nif x[i] > 2\nv[i] = sum(r, g[r])\nend",
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"ptr, v, x": "int32"},
    )
    ptr, x = np.array([[3, 4, 2, 0, 4], [3, 0, 4, 3, 3]], "int32")
    given = {"g": np.arange(7, dtype="int32"), "ptr": ptr, "x": x, "lo": 0}
    tiled = knl.split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
    expected = [0 + 1 + 2, 0, 0 + 1, 0, 0 + 1 + 2 + 3]
    assert run_reference(tiled, {**given, "v": np.zeros(5, "int32")})["v"].tolist() == expected


def test_bounds_of_threads_and_of_inner_loops_are_read_where_they_are() -> None:
    """What a condition or an outer loop keeps a thread from, it reads no bounds for."""
    domains = ["{ [r]: 0 <= r < 3 }", "{ [t]: 0 <= t < c }", "{ [s]: 0 <= s < d }"]
    text = "<> c = cnt[r]\nfor t\n<> d = cnt[t]\nfor s\nres[r, s] = res[r, s] + t\nend\nend"
    for body in (text, f"if cnt[r] > 1\n{text}\nend"):
        knl = lk.make_kernel(
            domains,
            f"for r\n{body}\nend",
            [
                lk.GlobalArg("cnt", "int32", shape=3),
                lk.GlobalArg("res", "int32", shape=(3, 3)),
                ...,
            ],
        )
        given = {"cnt": np.array([3, 0, 1], np.int32), "res": np.ones((3, 3), np.int32)}
        expected = run_reference(knl, given)["res"]
        found = run_reference(knl.tag_inames("r: l.0"), given)["res"]
        assert expected.tolist() == found.tolist() == [[3, 1, 1], [1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("threads", [False, True])
def test_sums_of_a_fetch_that_waits_for_threads(threads: bool) -> None:
    """Each element of a fetch that is tagged ``l.auto`` has an accumulator of its own."""
    knl = lk.make_kernel(
        "{ [i, j, r]: 0 <= i < 3 and 0 <= j < 2 and 0 <= r < 3 }",
        "rule(x, y) := sum(r, a[x + r, y])\nw[i, j] = 2*rule(i, j)",
        dtypes={"a, w": "int64"},
    ).precompute("rule", ["i", "j"], default_tag="l.auto")
    if threads:
        knl = knl.tag_inames("i: l.0")
    a = np.random.default_rng(0).integers(-9, 9, (5, 2))
    expected = 2 * (a[:3] + a[1:4] + a[2:])
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(knl.executor(executor)(a=a), expected)


@pytest.mark.parametrize("copied", ["k", "d", "kd"])
def test_statements_of_one_loop_of_copies_do_not_take_turns(copied: str) -> None:
    """Under ``ilp`` a statement is executed for all values before the next one."""
    read = ", ".join(f"({n} + 3) % 8" if n in copied else n for n in "kd")
    knl = lk.make_kernel(
        "{ [i, h, e, k, d]: 0 <= i < 3 and 0 <= h, e, k, d < 8 }",
        f"""
        for i
            <int32> s[h, e] = c[i, h] + e
            for k, d
                s[k, d] = 3*s[k, d]
            end
            for k, d
                x[i, k, d] = s[{read}]
            end
        end
        """,
        dtypes={"c, x": "int32"},
    )
    new = knl.tag_inames(dict.fromkeys(copied, "ilp"))
    new = new.fuse_loops(["d", "k"] if copied == "k" else ["k", "d"])
    c = np.random.default_rng(3).integers(0, 99, (3, 8), dtype="int32")
    expected = 3 * (c[:, :, None] + np.arange(8, dtype="int32"))
    for axis, name in enumerate("kd", 1):
        expected = np.roll(expected, -3, axis) if name in copied else expected
    np.testing.assert_array_equal(run_reference(knl, {"c": c})["x"], expected)
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(new.executor(executor)(c=c), expected)


@pytest.mark.parametrize("operation", ["sum", "product"])
@pytest.mark.parametrize("tags", [("l.0", "g.0"), ("l.0", None), (None, "g.0")])
def test_bounds_of_statements_that_run_once_along_an_axis(
    tags: tuple[str | None, str | None], operation: str
) -> None:
    """Each thread loads a bound, and a peeled iteration runs on the first of them alone."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: 0 <= r < hi }"],
        f"<> hi = cnt[0]\nu[i] = {operation}(r, g[r] + i)",
        [lk.GlobalArg("g", "int32", shape=4), ...],
        dtypes={"cnt": "int32", "u": "int64"},
    )
    peeled = knl.split_iname("i", 1, slabs=(1, 1))
    peeled = peeled.split_iname("i_outer", 4, inner_tag=tags[0], outer_tag=tags[1])
    data = {"cnt": np.array([3], np.int32), "g": np.arange(1, 5, dtype="int32")}
    expected = run_reference(knl, {"n": 7, **data})["u"]
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(peeled.executor(executor)(n=7, **data), expected)


def test_copies_side_by_side_and_what_is_outside_of_them() -> None:
    """Each of two loops of copies leaves those of the other alone."""
    knl = lk.make_kernel(
        "{ [k]: 0 <= k < 4 }",
        "<> t = b[k + 1] + k\nw[k] = t + g[k]",
        dtypes={"b, g, w": "int32"},
    )
    new = knl.split_iname("k", 4, inner_tag="ilp").peel_iname("k_inner", first=1, last=1)
    b, g = np.random.default_rng(5).integers(0, 99, (2, 5), dtype="int32")
    expected = b[1:] + np.arange(4, dtype="int32") + g[:4]
    for executor in ("reference", "host"):
        for made in (knl, new):
            assert np.array_equal(made.executor(executor)(b=b, g=g[:4]), expected)
