"""Atomic updates that are none, schedules that lose one, and programs that drop what is atomic."""

from __future__ import annotations

import pytest
from seams import ATOMICS, prove_source
from test_atomics import histogram, on_blocks

import loopkit as lk

# {{{ what is no atomic update


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s[0] = x[i] {atomic}", "is no update that could be atomic"),
        ("s[0] = s[0]/x[i] {atomic}", "is no update that could be atomic"),
        ("s[0] = x[i] - s[0] {atomic}", "is no update that could be atomic"),
        ("s[0] = s[0] + x[i] + 1 {atomic}", "is no update that could be atomic"),
        ("s[0] = s[1] + x[i] {atomic}", "is no update that could be atomic"),
        ("s[0] = s[0] + s[0]*x[i] {atomic}", "cannot read 's[0]' again"),
        ("<> t = t + x[i] {atomic}", "before anything has been written"),
    ],
)
def test_texts(text: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError, match=r".") as caught:
        lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"x": "float32"})
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "value", "text", "why"),
    [
        ("int32", "float32", "s[0] + x[i]", "'x[i]' makes it float64, and 's' is int32"),
        ("float32", "float64", "s[0] + x[i]", "makes it float64"),
        ("uint32", "int32", "s[0] + x[i]", "makes it int64"),
        ("int32", "int8", "s[0] - x[i]", "makes it int8"),
        ("int32", "bool", "s[0] or x[i]", "makes it bool"),
        ("complex64", "complex64", "s[0]*x[i]", "nothing updates 's' atomically"),
        ("float32", "float32", "s[0] & x[i]", "'&' is not defined for float32"),
    ],
)
def test_types(cell: str, value: str, text: str, why: str) -> None:
    def kernel(text: str, options: str) -> lk.Kernel:
        types = {"s": cell, "x": value}
        return lk.make_kernel("{ [i]: 0 <= i < n }", f"s[0] = {text} {options}", dtypes=types)

    with pytest.raises(lk.TypeInferenceError) as caught:
        kernel(text, "{atomic}")
    assert why in str(caught.value)


def test_a_cast_says_when_to_round() -> None:
    types = {"s": "float32", "x": "float64"}
    text = "s[0] = s[0] + float32(x[i]) {atomic}"
    assert (
        "atomicAdd(&s[0], (float)x["
        in on_blocks(lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes=types)).cuda()
    )


@pytest.mark.parametrize("name", [n for n in ATOMICS if not n.startswith("lk_")])
def test_names_of_functions(name: str) -> None:
    """A variable of that name would hide what is called."""
    with pytest.raises(lk.InvalidArgumentError, match="a function that generated code calls"):
        lk.make_kernel("{ [i]: 0 <= i < n }", f"{name}[0] = {name}[0] + 1 {{atomic}}")


# }}}

# {{{ schedules


def sums(*texts: str, types: str = "s, x") -> lk.Kernel:
    return lk.make_kernel("{ [i, j]: 0 <= i, j < n }", list(texts), dtypes={types: "float32"})


def refused(kernel: lk.Kernel, tags: str) -> lk.IllegalTransformError:
    with pytest.raises(lk.IllegalTransformError) as caught:
        kernel.fix_parameters(n=64).tag_inames(tags)
    assert caught.value.witness is not None
    return caught.value


ADD = "s[0] = s[0] + x[i] {atomic, id=add}"


def test_a_plain_read_beside_it() -> None:
    error = refused(sums(ADD, "y[j] = s[0] {id=look}", types="s, x, y"), "i: g.0, j: g.0")
    assert isinstance(error, lk.RaceError)
    witness = error.witness
    assert witness.array == "s" and witness.cell == (0,)
    assert {witness.source.statement, witness.sink.statement} == {"add", "look"}


def test_a_plain_read_in_its_loop() -> None:
    refused(sums(ADD, "y[i] = s[0] {id=look}", types="s, x, y"), "i: l.0")


def test_a_plain_read_of_a_neighbour() -> None:
    """What the value reads is an ordinary read, though the array is the update's own."""
    kernel = sums("s[i] = s[i] + s[i + 1] {atomic, id=add}", types="s")
    error = refused(kernel, "i: l.0")
    assert error.witness.source.statement == error.witness.sink.statement == "add"


def test_a_plain_write_beside_it() -> None:
    error = refused(sums("s[0] = 1 {id=start}", ADD), "i: g.0")
    assert {error.witness.source.statement, error.witness.sink.statement} == {"start", "add"}


def test_another_operation() -> None:
    other = "s[0] = max(s[0], x[j]) {atomic, id=top}"
    error = refused(sums(ADD, other), "i: g.0, j: g.0")
    assert isinstance(error, lk.RaceError)
    assert {error.witness.source.statement, error.witness.sink.statement} == {"top", "add"}
    assert sums(ADD, other).fix_parameters(n=64).tag_inames("i: l.0, j: l.0").prove().ok


def test_an_update_that_is_not_atomic() -> None:
    """One plain update among atomic ones is no part of their set."""
    refused(sums(ADD, "s[0] = s[0] + x[j] {id=plain}"), "i: g.0, j: g.0")


def test_a_histogram_that_is_looked_up() -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < m }",
        "h[c[i]] = h[c[i]] + 1 {atomic, id=count}\ny[j] = h[j] {id=look}",
        [lk.GlobalArg("h", shape="m"), ...],
        dtypes={"h, c, y": "int32"},
    )
    with pytest.raises(lk.UndecidedError) as caught:
        kernel.tag_inames("i: g.0, j: g.0")
    assert {caught.value.witness.source.statement, caught.value.witness.sink.statement} == {
        "count",
        "look",
    }


def test_reordering_is_free() -> None:
    kernel = sums("s[i % 4] = s[i % 4] + x[j] {atomic, id=add}")
    assert kernel.prioritize_loops("j, i").history[-1].verdict == "proven"
    plain = sums("s[i % 4] = s[i % 4] + x[j] {id=add}")
    with pytest.raises(lk.IllegalTransformError):
        plain.prioritize_loops("j, i")


# }}}

# {{{ programs


def shared() -> lk.Kernel:
    """A histogram of each row, in shared memory."""
    return (
        lk.make_kernel(
            "{ [b, i, j, k]: 0 <= b < n and 0 <= i, j, k < 64 }",
            """
        for b
            t[j] = 0 {id=start}
            t[c[b, i]] = t[c[b, i]] + 1 {atomic, id=count, dep=start}
            y[b, k] = t[k] {id=store, dep=count}
        end
        """,
            [lk.TemporaryVariable("t", "int32", shape=64, address_space="local"), ...],
            dtypes={"c, y": "int32"},
        )
        .assume_within("c", 0, 64)
        .tag_inames("b: g.0, i: l.0, j: l.0, k: l.0")
    )


def two_sums() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < 64 }",
        "s[0] = s[0] + x[i] {atomic, id=add}\nt[i] = t[i]*x[i] {atomic, id=times}",
        dtypes={"s, t, x": "float32"},
    ).tag_inames("i: l.0")


LINE = "atomicAdd(&h[c[32 * i_outer + i_inner]], 1);"
FAULTS = {
    "dropped": (histogram, LINE, "h[c[32 * i_outer + i_inner]] += 1;"),
    "spelled out": (
        histogram,
        LINE,
        "h[c[32 * i_outer + i_inner]] = h[c[32 * i_outer + i_inner]] + 1;",
    ),
    "another operation": (histogram, "atomicAdd(", "atomicMax("),
    "another value": (histogram, "], 1);", "], 2);"),
    "another cell": (histogram, "&h[c[32 * i_outer + i_inner]]", "&h[c[32 * i_outer]]"),
    "of the index array": (histogram, "atomicAdd(&h[c[", "atomicAdd(&c[h["),
    "done twice": (histogram, LINE, f"{LINE}  // count\n        {LINE}"),
    "in a loop": (histogram, LINE, f"for (int k = 0; k < 2; ++k)\n            {LINE}"),
    "by every thread": (histogram, "if (32 * i_outer + i_inner < n)", "if (32 * i_outer < n)"),
    "no barrier before": (shared, "    __syncthreads();", ""),
    "shared, dropped": (
        shared,
        "atomicAdd(&t[c[64LL * b + i]], 1)",
        "t[c[64LL * b + i]] += 1",
    ),
    "a plain line made atomic": (shared, "t[j] = 0;", "atomicAdd(&t[j], 0);"),
    "swapped for another": (two_sums, "lk_atomic_mul(&t[i]", "lk_atomic_mul(&s[0]"),
    "an unknown helper": (two_sums, "lk_atomic_mul(&t[i]", "lk_atomic_div(&t[i]"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_the_text(name: str) -> None:
    make, old, new = FAULTS[name]
    kernel = on_blocks(histogram()) if make is histogram else make()
    assert kernel.prove(text=True).ok
    source = kernel.cuda()
    assert old in source
    assert not prove_source(kernel, source.replace(old, new, 1)).ok, new


def test_a_helper_that_does_something_else() -> None:
    kernel = two_sums()
    source = kernel.cuda()
    for old, new in (
        ("} while (seen != old);", "} while (false);"),
        ("1ull * old * T(value)", "old"),
    ):
        assert old in source
        assert not prove_source(kernel, source.replace(old, new)).ok


# }}}


# {{{ what a mark would make possible


def of_scatter(text: str) -> str:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        [lk.GlobalArg("y", shape="n"), ...],
        dtypes={"x, y": "float32", "p": "int32"},
    )
    with pytest.raises((lk.RaceError, lk.UndecidedError)) as caught:
        knl.tag_inames("i: g.0")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("y[p[i]] = y[p[i]] + x[i]", "y[p[i]] = y[p[i]] + x[i] {atomic}"),
        ("y[p[i]] += x[i]", "y[p[i]] = y[p[i]] + x[i] {atomic}"),
        ("y[p[i]] = max(x[i], y[p[i]])", "y[p[i]] = max(y[p[i]], x[i]) {atomic}"),
        ("y[p[i]] = y[p[i]] + x[i] + x[i]*x[i]", "y[p[i]] = y[p[i]] + (x[i] + x[i]*x[i]) {atomic}"),
    ],
)
def test_a_refused_scatter_names_the_mark_and_the_assertion(text: str, marked: str) -> None:
    message = of_scatter(text)
    assert f"is marked: {marked}" in message and "assume_injective('p')" in message
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        marked,
        [lk.GlobalArg("y", shape="n"), ...],
        dtypes={"x, y": "float32", "p": "int32"},
    )
    assert knl.tag_inames("i: g.0").prove().ok


@pytest.mark.parametrize(
    "text",
    ["y[p[i]] = x[i]", "y[p[i]] = x[i] - y[p[i]]", "y[p[i]] = y[p[i]] + x[i]*y[p[i]]"],
)
def test_what_is_no_update_is_not_told_to_be_marked(text: str) -> None:
    assert "atomic" not in of_scatter(text)


def test_a_sum_into_one_cell_names_the_mark() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "s[0] = s[0] + x[i]", dtypes={"s, x": "float32"})
    with pytest.raises(lk.RaceError, match=r"is marked: s\[0\] = s\[0\] \+ x\[i\] {atomic}"):
        knl.tag_inames("i: g.0")


# }}}
