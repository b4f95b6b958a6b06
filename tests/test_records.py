"""Reductions with several results: argmin, argmax, and those that users make."""

from __future__ import annotations

import itertools
import pickle
import textwrap
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernel_outline import outline
from seams import C_TYPES, DTYPES, TYPES, components_of, prove_source, record_of

import loopkit as lk

ROWS = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


def least(word: str = "argmin", dtype: str = "float32") -> lk.Kernel:
    """The extremum of each row, and where it stands."""
    return lk.make_kernel(
        ROWS,
        f"v[i], k[i] = {word}(j, x[i, j], j)",
        dtypes={"x": dtype},
        assumptions="n, m >= 0",
    )


def combined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Welford's means and sums of squares, of two parts."""
    (count, mean, square), (others, their_mean, their_square) = a, b
    both, apart = count + others, their_mean - mean
    share = prim.If(prim.Comparison(both, ">", 0), others / both, 0.0)
    return both, mean + apart * share, square + their_square + apart * apart * count * share


def welford() -> Any:
    """The number of values, their mean, and the sum of the squares of what they differ by."""
    return lk.register_reduction(
        "welford", (0, 0.0, 0.0), combined, components=("count", "mean", "square")
    )


def both(kernel: lk.Kernel, **given_: Any) -> Any:
    """What a kernel computes, which the executors agree on in three orders of threads."""
    wanted = kernel.executor("reference")(**given_)
    for order in ("ascending", "descending", "random"):
        found = kernel.executor("host", order=order)(**given_)
        for a, b in zip(found, wanted, strict=True):
            # A GPU may round a product and a sum once.
            few = 16 * np.finfo(a.dtype).eps if np.asarray(a).dtype.kind == "f" else 0
            np.testing.assert_allclose(a, b, rtol=few, equal_nan=True)
    return wanted


def test_the_statements_of_an_argmin() -> None:
    expected = """
    i:
      acc = (inf, 9223372036854775807)
      j:
        acc argmin= (x[i, j], j)
      v[i] = acc.value
      k[i] = acc.index
    """
    kernel = least()
    assert outline(kernel) == textwrap.dedent(expected).strip()
    assert [s.id for s in kernel.statements] == ["insn_init", "insn_update", "insn", "insn_index"]
    accumulator = kernel.temporary_by_name["acc"]
    assert accumulator.dtype == record_of({"value": DTYPES["float32"], "index": DTYPES["int64"]})
    assert (accumulator.dtype.itemsize, accumulator.accumulates) == (16, "argmin")
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@pytest.mark.parametrize("name", ["argmin", "welford"])
def test_the_nest_and_the_source(name: str, golden: Any) -> None:
    kernel = least() if name == "argmin" else moments()
    kernel = kernel.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").split_iname("j", 4)
    golden(f"records_{name}.txt", f"{kernel}\n\n{kernel.cuda()}")


def test_targets_are_declared_dropped_and_typed() -> None:
    kernel = lk.make_kernel(
        ROWS,
        """
        <> most, <>_ = argmax(j, x[i, j], j)     {id=top}
        <>_, <int32> place = argmin(j, x[i, j], j)
        out[i] = most - x[i, place]
        """,
        [lk.GlobalArg("x", "float32", shape="n, m"), ...],
        assumptions="n, m >= 1",
    )
    assert kernel.temporary_by_name["most"].dtype == np.float32
    assert kernel.temporary_by_name["place"].dtype == np.int32
    assert kernel.statement_by_id["top"].written == "most"
    x = np.array([[3, 1, 2], [0, 0, 5]], "f")
    assert kernel.executor("reference")(x=x).tolist() == [2, 5]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint64"])
@pytest.mark.parametrize("word", ["argmin", "argmax"])
def test_types_and_ties(dtype: str, word: str) -> None:
    kernel = least(word, dtype)
    values = np.array([[3, 1, 1, 3], [2, 2, 2, 2], [0, 3, 0, 3]]).astype(DTYPES[dtype])
    value, index = both(kernel, x=values)
    assert value.dtype == DTYPES[dtype]
    assert index.dtype == np.int64
    assert index.tolist() == getattr(values, word)(axis=1).tolist()
    assert kernel.prove().ok


SOME = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, np.inf, -np.inf, np.nan])


@settings(deadline=None, max_examples=40)
@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=SOME))
def test_as_numpy_has_it(x: np.ndarray[Any, Any]) -> None:
    for word in ("argmin", "argmax"):
        value, index = _compiled(word)(x=x)
        assert index.tolist() == getattr(x, word)(axis=1).tolist()
        np.testing.assert_array_equal(value, np.take_along_axis(x, index[:, None], 1)[:, 0])


_KNOWN: dict[str, Any] = {}


def _compiled(word: str) -> Any:
    if word not in _KNOWN:
        kernel = least(word).split_iname("i", 2, outer_tag="g.0", inner_tag="l.0")
        _KNOWN[word] = kernel.split_iname("j", 3).executor("host", order="random")
    return _KNOWN[word]


@settings(deadline=None, max_examples=60)
@given(*[st.tuples(SOME, st.integers(0, 3))] * 3)
def test_the_first_of_pairs_is_associative_and_commutative(a: Any, b: Any, c: Any) -> None:
    from seams import operations_of

    for word in ("argmin", "argmax"):
        operation = operations_of(())[word]
        a, b, c = ((np.float32(v), np.int64(k)) for v, k in (a, b, c))
        join = operation.on_values
        assert _text(join(a, b)) == _text(join(b, a))
        assert _text(join(join(a, b), c)) == _text(join(a, join(b, c)))
        nothing = operation.neutral([DTYPES["float32"], DTYPES["int64"]])
        assert _text(join(a, tuple(map(np.array, nothing)))) == _text(a)


def _text(pair: tuple[Any, Any]) -> str:
    return f"{float(pair[0]) + 0.0} {int(pair[1])}"


def test_an_empty_range_leaves_the_neutral_element() -> None:
    value, index = both(least(), x=np.zeros((2, 0), "f"))
    assert value.tolist() == [np.inf] * 2
    assert index.tolist() == [2**63 - 1] * 2
    value, index = both(least("argmax", "int16"), x=np.zeros((2, 0), "i2"))
    assert value.tolist() == [-(2**15)] * 2


def moments(dtype: str = "float32") -> lk.Kernel:
    """The mean and the variance of each row."""
    return lk.make_kernel(
        ROWS,
        """
        <> count, mean[i], <> square = welford(j, 1, x[i, j], 0)
        variance[i] = square / float32(count)
        """,
        dtypes={"x": dtype},
        assumptions="n, m >= 1",
        reductions=[welford()],
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_welford(dtype: str) -> None:
    kernel = moments(dtype)
    x = np.random.default_rng(0).normal(size=(5, 7), scale=9).astype(dtype)
    kernel = kernel.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0").split_iname("j", 3)
    mean, variance = both(kernel, x=x)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-5)
    np.testing.assert_allclose(variance, x.var(1, dtype="d"), rtol=1e-5)
    for text in (False, True):
        assert kernel.prove(text=text).ok


def test_partial_results_and_staged_operands() -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 50)).astype("f")
    split = least().split_iname("j", 8)
    for kernel in (
        split.split_reduction_inward("j_inner"),
        split.buffer_array("acc", ["j_inner"], partial=True),
        split.reduction_arg_to_subst_rule("j_inner").precompute(
            "red_j_inner_arg", ["j_inner"], temporary_address_space="private"
        ),
        split.split_iname("i", 2, inner_tag="ilp").tag_inames("j_inner: unr"),
    ):
        _, index = both(kernel, x=x)
        assert index.tolist() == x.argmin(1).tolist()
        assert kernel.prove(text=True).ok
    # What is staged has the types of the operands, and is converted where it is added.
    staged = moments().split_iname("j", 8).reduction_arg_to_subst_rule("j_inner")
    staged = staged.precompute("red_j_inner_arg", ["j_inner"], temporary_address_space="private")
    mean, _ = both(staged, x=x)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-6)
    assert staged.prove().ok


def test_records_in_other_memory() -> None:
    x = np.random.default_rng(0).integers(0, 9, (10, 7)).astype("f")
    kernel = least().fix_parameters(n=10).privatize_temporaries_with_inames("i", {"acc"})
    for one in (
        kernel.set_temporary_address_space("acc", "local").tag_inames("i: l.0"),
        kernel.set_temporary_address_space("acc", "global").tag_inames("i: g.0"),
    ):
        _, index = both(one, x=x)
        assert index.tolist() == x.argmin(1).tolist()
        assert one.prove(text=True).ok


@pytest.mark.parametrize("name", ["value_f32_index_i64", "floordiv", "complex64", "isnan", "a"])
def test_hostile_names(name: str) -> None:
    own = lk.register_reduction(name, (0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]))
    kernel = lk.make_kernel(
        "{ [a, b]: 0 <= a < value and 0 <= b < index }",
        f"acc[a], r0[a] = reduce({name}, b, x[a, b], b)",
        dtypes={"x": "int32"},
        reductions=[own],
    )
    sums, _ = both(kernel, x=np.arange(6, dtype="i4").reshape(2, 3))
    assert sums.tolist() == [3, 12]
    assert kernel.prove(text=True).ok


def test_operations_that_differ_in_a_number_have_other_keys() -> None:
    def kernel(number: int) -> lk.Kernel:
        own = lk.register_reduction("own", -number, lambda a, b: a + b + number)
        return lk.make_kernel(ROWS, "y[i] = own(j, x[i, j])", reductions=[own])

    assert kernel(1).key == kernel(1).key != kernel(2).key


@pytest.mark.parametrize("length", [1, 5, 32, 113, 256])
def test_threads_combine_records(length: int) -> None:
    x = np.random.default_rng(length).integers(0, 9, (3, 170)).astype("f")
    x[1, 20::31] = np.nan
    kernel = least().split_iname("j", length, inner_tag="l.0").tag_inames("i: g.0")
    by = [kernel, kernel.realize_reduction(by="shared")] if length > 1 else [kernel]
    for one in by:
        value, index = both(one, x=x)
        assert index.tolist() == x.argmin(1).tolist()
        np.testing.assert_array_equal(value, x.min(1))
        assert one.prove(text=True).ok
    if length > 1:
        with pytest.raises(lk.IllegalTransformError, match="no atomic update"):
            kernel.realize_reduction(by="atomic")


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", "float64"])
def test_threads_exchange_components_of_any_type(dtype: str) -> None:
    kernel = least("argmax", dtype).split_iname("j", 8, inner_tag="l.0")
    kernel = kernel.split_iname("i", 4, outer_tag="g.0", inner_tag="l.1")
    x = np.random.default_rng(0).integers(0, 5, (7, 21)).astype(dtype)
    _, index = both(kernel, x=x)
    assert index.tolist() == x.argmax(1).tolist()
    assert "__shfl_xor_sync" in kernel.cuda()
    assert kernel.prove(text=True).ok


def test_threads_combine_means() -> None:
    kernel = moments("float64").split_iname("j", 64, inner_tag="l.0").tag_inames("i: g.0")
    x = np.random.default_rng(0).normal(size=(3, 201), scale=9)
    for one in (kernel, kernel.realize_reduction(by="shared")):
        for order in ("ascending", "random"):
            mean, variance = one.executor("host", order=order)(x=x)
            np.testing.assert_allclose(mean, x.mean(1))
            np.testing.assert_allclose(variance, x.var(1), rtol=1e-6)
        assert one.prove().ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__shfl_xor_sync(~0u, acc.index, 8)", "acc.index"),
        ("__shfl_xor_sync(~0u, acc.index, 8)", "__shfl_xor_sync(~0u, acc.index, 4)"),
        ("__shfl_xor_sync(~0u, acc.index, 8)", "__shfl_down_sync(~0u, acc.index, 8)"),
        ("__shfl_xor_sync(~0u, acc.value, 8)", "__shfl_xor_sync(~0u, (float)acc.index, 8)"),
        (
            "acc, lk_value_f32_index_i64{__shfl_xor_sync(~0u, acc.value, 8)",
            "acc, lk_value_f32_index_i64{__shfl_xor_sync(~0u, acc.value, 4)",
        ),
        ("b.index < a.index", "b.index > a.index"),
    ],
)
def test_faulty_exchanges_are_found(old: str, new: str) -> None:
    kernel = least().split_iname("j", 32, inner_tag="l.0").tag_inames("i: g.0")
    source = kernel.cuda()
    assert old in source
    assert prove_source(kernel, source).ok
    assert prove_source(kernel, source.replace(old, new)).findings


def test_a_line_that_gives_a_record_where_a_number_is_due() -> None:
    kernel = least()
    source = kernel.cuda()
    first, _, rest = source.partition("  // insn_update: argmin over j\n")
    proof = prove_source(kernel, f"{first} {rest.lstrip()}")
    assert proof.findings
    assert not prove_source(kernel, source.replace("acc.value;", "acc;")).ok


def test_pairs_of_ones_own_with_a_reference() -> None:
    def multiplied(a: Any, b: Any) -> Any:
        return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]

    product = lk.register_reduction("turned", (1, 0), multiplied, multiplied)
    assert product.components == ("r0", "r1")
    kernel = lk.make_kernel(
        ROWS,
        "re[i], im[i] = turned(j, x[i, j], y[i, j])",
        dtypes={"x, y": "float64"},
        reductions=[product],
    )
    x, y = np.random.default_rng(1).normal(size=(2, 3, 4))
    re, im = kernel.executor("host")(x=x, y=y)
    np.testing.assert_allclose(re + 1j * im, (x + 1j * y).prod(1))
    np.testing.assert_allclose(kernel.executor("reference")(x=x, y=y), (re, im))


def test_assigned_from_left_to_right() -> None:
    kernel = lk.make_kernel(
        "{ [j]: 0 <= j < 4 }",
        """
        <> k = 0
        k, out[k] = turned(j, j, x[j])
        """,
        dtypes={"x": "int64"},
        reductions=[
            lk.register_reduction("turned", (0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]))
        ],
        kernel_data=[lk.GlobalArg("out", "int64", shape=8), ...],
    )
    assert kernel.executor("reference")(x=np.arange(4))[6] == 6


def test_a_condition_that_the_targets_change_is_decided_before() -> None:
    kernel = lk.make_kernel(
        ROWS,
        "v[i], k[i] = argmin(j, x[i, j], j)  {if=v[i] > 0}",
        dtypes={"x, v": "float32"},
        assumptions="n, m >= 1",
    )
    v, k = np.array([1, -1], "f"), np.array([7, 7])
    v, k = kernel.executor("reference")(x=np.array([[0, -3], [0, -3]], "f"), v=v, k=k)
    assert (v.tolist(), k.tolist()) == ([-3, -1], [1, 7])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("y[i] = argmin(j, x[i, j], j)", "'argmin' has 2 results, and is no part of an expression"),
        ("a[i], b[i] = argmin(j, x[i, j], j) + 1", "2 results are assigned, but this is one value"),
        ("a[i], b[i] = sum(j, x[i, j])", "2 results are assigned, but 'sum' has 1"),
        ("a[i], b[i] = x[i, 0]", "2 results are assigned, but this is one value"),
        ("a[i], b[i] = sqrt(x[i, 0])", "2 results are assigned, but 'sqrt(x[i, 0])' has 1"),
        ("a[i], b[i], c[i] = argmin(j, x[i, j], j)", "3 results are assigned, but 'argmin' has 2"),
        ("a[i], b[i] = argmin(j, x[i, j])", "takes an iname, or a tuple of inames, and 2 express"),
        ("a[i], b[i] = argmin(j, x[i, j], 1.5)", "last operand of 'argmin' is float64"),
        ("a[i], b[i] = argmin(j, complex64(x[i, j]), j)", "complex numbers have no order"),
        ("a[i], b[i] = argmin(j, x[i, j], j, dtype=int32)", "takes no dtype"),
        ("a[i], b[i] += argmin(j, x[i, j], j)", "'+=' updates one variable"),
        ("a[i], b[i] = argmin(j, x[i, j], j) {atomic}", "an atomic update is of one cell"),
        ("<>_, <>_ = argmin(j, x[i, j], j)", "all results are dropped"),
        ("<>_ = x[i, 0]", "only to drop one of several results"),
        ("a[i], 3 = argmin(j, x[i, j], j)", "only a variable or an element of an array"),
        ("a[i] = 1 {if=argmin(j, x[i, j], j) > 0}", "is no part of an expression"),
    ],
)
def test_what_is_refused(line: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as caught:
        lk.make_kernel(ROWS, line, dtypes={"x": "float32"})
    assert why in str(caught.value)


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"neutral": (0,)}, "a tuple of 1 neutral element"),
    ({"neutral": (0, "x")}, "neutral is a number"),
    ({"components": ("a", "a")}, "give each a different name"),
    ({"components": ("a", "b_c")}, "letters and digits alone"),
    ({"components": ("int", "b")}, "'int' cannot be a component"),
    ({"components": "ab"}, "components"),
    ({"combine": lambda a, b: a[0]}, "no tuple of 2 expressions"),
    ({"combine": lambda a, b: (a[0], None)}, "gives no expression"),
    ({"combine": lambda a, b: (a[0], prim.Variable("z"))}, "uses 'z', which is no operand"),
    ({"combine": lambda a, b: 1 // 0}, "combine of the reduction 'own' raised ZeroDivisionError"),
    ({"combine": 3}, "combine is a function"),
    ({"reference": 3}, "reference is a function"),
    ({"name": "argmin"}, "'argmin' is already a reduction"),
]


@pytest.mark.parametrize(("changed", "why"), NONSENSE)
def test_operations_that_are_none(changed: dict[str, Any], why: str) -> None:
    made = {"name": "own", "neutral": (0, 0), "combine": lambda a, b: a}
    with pytest.raises(lk.LoopkitError) as caught:
        lk.register_reduction(**{**made, **changed})
    assert why in str(caught.value)


def test_what_functions_give_is_named_where_it_is_nonsense() -> None:
    own = lk.register_reduction(
        "own", (0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda a, b: "?"
    )
    kernel = lk.make_kernel(
        ROWS, "a[i], b[i] = own(j, x[i, j], j)", dtypes={"x": "int32"}, reductions=[own]
    )
    with pytest.raises(lk.LoopkitError, match=r"reference of the reduction 'own' gives '[?]', and"):
        kernel.executor("reference")(x=np.ones((1, 2), "i4"))
    own = lk.register_reduction("own", lambda dtype: "?", lambda a, b: a + b, np.add)
    with pytest.raises(
        lk.LoopkitError, match=r"neutral of the reduction 'own' gives '[?]', and no"
    ):
        lk.make_kernel(ROWS, "a[i] = own(j, x[i, j])", dtypes={"x": "int32"}, reductions=[own])
    with pytest.raises(lk.LoopkitError, match="combine of the reduction 'own' gives no expression"):
        lk.register_reduction("own", 0, lambda a, b: "?", np.add)


@pytest.mark.parametrize("word", ["any", "all", "product", "max", "min", "sum"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "float16"])
def test_the_type_that_is_asked_for(word: str, dtype: str) -> None:
    kernel = lk.make_kernel(ROWS, f"y[i] = {word}(j, x[i, j], dtype={dtype})", dtypes={"x": "int8"})
    x = np.array([[1, 2, 3], [0, 2, -1]], "i1")
    wanted = getattr(np, {"product": "prod"}.get(word, word))(x, axis=1).astype(dtype)
    found = kernel.executor("host")(x=x)
    assert found.dtype == dtype
    assert found.tolist() == wanted.tolist() == kernel.executor("reference")(x=x).tolist()
    assert kernel.prove().ok


def test_the_names_of_records() -> None:
    kinds = [*DTYPES.values()]
    for first, second in itertools.pairwise(kinds):
        record = record_of({"a1": first, "f32": second})
        assert TYPES[C_TYPES[record]] == record
        assert [*components_of(record).values()] == [first, second]
    for name in (
        "lk_f32",
        "lk_a_f32",
        "lk_a_f32_b",
        "lk_a_f32_a_i8",
        "lk_a_f32_b_x9",
        "a_f32_b_i8",
    ):
        with pytest.raises(KeyError):
            TYPES[name]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("uint8", "bfloat16", "bfloat16"),
        ("int16", "bfloat16", "float32"),
        ("int8", "int16", "int16"),
    ],
)
def test_components_grow_as_numbers_do(one: str, other: str, both: str) -> None:
    """A record of components that grow is laid out as C does it, too."""
    kernel = lk.make_kernel(
        ROWS,
        """
        for i
            <> t = b[i]
            t = t + x[i, j]
            v[i], k[i] = argmin(j, t, j)
        end
        """,
        dtypes={"b": one, "x": other},
    )
    record = record_of({"value": DTYPES[both], "index": DTYPES["int64"]})
    assert kernel.temporary_by_name["acc"].dtype == record
    assert kernel.prove().ok
