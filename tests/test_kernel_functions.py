"""Kernels that other kernels call: what they say is in the place of their calls."""

from __future__ import annotations

import pickle
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
IJ = "{ [i, j]: 0 <= i < n and 0 <= j < m }"
TYPES = {"a, b, c, x, y, z": "float32"}


def scaled() -> Any:
    return lk.make_function(
        "{ [i]: 0 <= i < n }",
        """
        <> t = c*x[i]       {id=load}
        y[i] = t + t*t      {id=store, dep=load}
        """,
        ["x", "c", ...],
        name="scaled",
    )


def dot() -> Any:
    return lk.make_function(
        "{ [k]: 0 <= k < l }",
        "r = sum(k, u[k]*v[k])",
        [lk.GlobalArg("r", shape=()), ...],
        name="dot",
    )


def caller(text: str, *functions: Any, domain: str = IJ, **more: Any) -> lk.Kernel:
    names = set(re.findall(r"\w+", text)) & set("abcxyz")
    return lk.make_kernel(
        domain, text, dtypes=dict.fromkeys(names, "float32"), functions=functions, **more
    )


def agrees(knl: lk.Kernel, due: Any, **arrays: Any) -> None:
    np.testing.assert_allclose(knl.executor("reference")(**arrays), due, rtol=1e-5, atol=1e-6)
    for order in ORDERS:
        found = knl.executor("host", order=order, seed=3)(**arrays)
        np.testing.assert_allclose(found, due, rtol=1e-5, atol=1e-6)


def test_a_call(golden: Golden) -> None:
    """Columns of one array, computed to rows of another."""
    knl = caller(
        "[i]: b[j, i] = scaled([i]: a[i, j], 2) {id=go}\nc[j] = b[j, 0] {dep=go}",
        scaled(),
        kernel_data=[lk.GlobalArg("b", is_input=False), ...],
        assumptions="n >= 1",
    )
    fast = knl.split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")
    assert fast.prove().ok
    generator = np.random.default_rng(0)
    for n, m in product((1, 5), (1, 32, 41)):
        a = generator.random((n, m), np.float32)
        found = fast.executor("host")(a=a)
        np.testing.assert_allclose(found.b, (2 * a + 4 * a * a).T, rtol=1e-6)
        np.testing.assert_allclose(found.c, found.b[:, 0])
    golden("kernel_function.txt", f"{knl}\n\n{fast}\n\n{fast.cuda()}")


def test_it_is_the_kernel_of_the_text_that_is_inlined() -> None:
    knl = caller(
        "c[i, j] = dot([k]: a[i, k], [k]: b[k, j])",
        dot(),
        domain="{ [i, j, k]: 0 <= i, j < n and 0 <= k < m }",
    )
    plain = caller(
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        domain="{ [i, j, k]: 0 <= i, j < n and 0 <= k < m }",
    )
    assert lk.verify(plain, knl)
    tiled = (
        knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("dot_k", 16)
        .add_prefetch("a", ["i_inner", "dot_k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["dot_k_inner", "j_inner"], default_tag="l.auto")
    )
    assert tiled.prove().ok
    a, b = np.random.default_rng(1).random((2, 19, 19), np.float32)
    agrees(tiled, a @ b, a=a, b=b)


def test_scalars_are_results() -> None:
    """A result without axes is a variable, which a call may declare."""
    knl = caller(
        """
        for i
            <> s = dot([j]: a[i, j], [j]: a[i, j])
            b[i] = s**0.5
        end
        """,
        dot(),
    )
    a = np.random.default_rng(2).random((7, 5), np.float32)
    agrees(knl.tag_inames("i: g.0"), np.sqrt((a * a).sum(axis=1)), a=a)
    assert knl.prove().ok


def test_several_results_and_what_is_read_and_written() -> None:
    swapped = lk.make_function(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = x[i]
            x[i] = y[i]
            y[i] = t
        end
        """,
        ["x", "y", ...],
        name="swapped",
    )
    assert str(swapped) == "swapped(x, y, n) -> x, y"
    text = "[i]: a[i], [i]: b[i] = swapped([i]: a[i], [i]: b[i])"
    knl = caller(text, swapped, domain="{ [i]: 0 <= i < n }")
    a, b = np.arange(5, dtype="f4"), np.ones(5, "f4")
    found = knl.executor("host")(a=a.copy(), b=b.copy())
    np.testing.assert_array_equal(found.a, b)
    np.testing.assert_array_equal(found.b, a)
    with pytest.raises(lk.ParseError, match="'x' is read and written: both are one part"):
        caller(
            "[i]: c[i], [i]: b[i] = swapped([i]: a[i], [i]: b[i])",
            swapped,
            domain="{ [i]: 0 <= i < n }",
        )


def test_functions_call_functions() -> None:
    normed = lk.make_function(
        "{ [p]: 0 <= p < l }",
        """
        <> s = dot([p]: x[p], [p]: x[p])
        y[p] = x[p]/s
        """,
        ["x", ...],
        name="normed",
        functions=[dot()],
    )
    knl = caller("[j]: b[i, j] = normed([j]: a[i, j])", normed)
    a = np.random.default_rng(3).random((4, 6), np.float32)
    agrees(knl.tag_inames("i: g.0"), a / (a * a).sum(axis=1, keepdims=True), a=a)
    assert knl.prove().ok


def test_one_function_twice() -> None:
    knl = caller(
        """
        [i]: b[i] = scaled([i]: a[i], 2)
        [i]: c[i] = scaled([i]: b[i], 3)
        """,
        scaled(),
        domain="{ [i]: 0 <= i < n }",
        kernel_data=[lk.GlobalArg("b", is_input=False), ...],
    )
    a = np.random.default_rng(4).random(9, np.float32)
    once = 2 * a + 4 * a * a
    found = knl.executor("host")(a=a)
    np.testing.assert_allclose(found.c, 3 * once + 9 * once * once, rtol=1e-5)
    assert len({s.id for s in knl.statements}) == 4
    assert knl.rename_iname("scaled_i_0", "scaled_i", existing_ok=True).prove().ok


def test_conditions_rules_loops_and_launches() -> None:
    """All of the language is in a function, in names of its own."""
    f = lk.make_function(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k <= i }"],
        """
        sq(v) := v*x[v]
        for i
            <> t = sum(k, sq(k))
            if x[i] > w
                y[i] = t
            else
                y[i] = -t   {id=other}
            end
        end
        ... gbarrier
        y[0] = y[0] + 1     {dep=other}
        """,
        ["x", "w", lk.GlobalArg("y", is_input=False), ...],
        name="f",
        dtypes={"w": "float32"},
        assumptions="n >= 1",
    )
    knl = caller(
        "[t]: b[t] = f([t]: a[t], a[v])",
        f,
        domain="{ [t]: 0 <= t < v }",
        assumptions="v >= 1",
        kernel_data=[lk.GlobalArg("a", shape="v + 1"), lk.GlobalArg("b", is_input=False), ...],
    )
    generator = np.random.default_rng(5)
    for v in (1, 6):
        a = generator.random(v + 1, np.float32)
        sums = np.cumsum(np.arange(v) * a[:-1])
        due = np.where(a[:-1] > a[v], sums, -sums)
        due[0] += 1
        agrees(knl, due, a=a, v=v)
    assert knl.prove().ok


def test_under_a_condition() -> None:
    knl = caller(
        """
        for j
            if a[0, j] > 0.5
                [i]: b[i, j] = scaled([i]: a[i, j], 1)
            end
        end
        """,
        scaled(),
        kernel_data=[lk.GlobalArg("b", shape="n, m"), ...],
        assumptions="n >= 1",
    )
    a = np.random.default_rng(6).random((3, 8), np.float32)
    b = np.zeros_like(a)
    agrees(knl, np.where(a[0] > 0.5, a + a * a, 0), a=a, b=b)


def test_sizes_may_be_given() -> None:
    knl = caller("[i]: b[i, j] = scaled([i]: a[i, j], 2, n)", scaled())
    again = caller("[i]: b[i, j] = scaled([i]: a[i, j], 2)", scaled())
    assert knl == again
    triangle = caller(
        "[i]: b[i, j] = scaled([i]: a[i, j], 2)",
        scaled(),
        domain="{ [j, i]: 0 <= j < m and 0 <= i <= j }",
        kernel_data=[lk.GlobalArg("b", shape="m, m", is_input=True), ...],
    )
    a = np.random.default_rng(7).random((5, 5), np.float32)
    agrees(triangle, np.triu(2 * a + 4 * a * a), a=a, b=np.zeros_like(a))


def test_temporaries_and_devices_functions_come_along() -> None:
    own = lk.register_callable("own", {"x": "float32"}, "float32", body="return x + 1;")
    f = lk.make_function(
        "{ [i, j]: 0 <= i, j < n }",
        "t[i] = own(x[i])\ny[j] = t[j]*t[n - 1 - j]",
        ["x", lk.TemporaryVariable("t", "float32", shape="n"), ...],
        name="f",
        functions=[own],
    )
    knl = caller("[i]: b[i] = f([i]: a[i])", f, domain="{ [i]: 0 <= i < 8 }")
    assert "own(float" in knl.cuda()
    a = np.random.default_rng(8).random(8, np.float32)
    agrees(knl, (a + 1) * (a + 1)[::-1], a=a)


def test_names_of_the_caller_are_left_alone() -> None:
    """What a function calls its own never meets what the caller has."""
    text = """
        <> scaled_t = a[0]
        for scaled_i
            [i]: b[i, scaled_i] = scaled([i]: a[i], scaled_t)
        end
    """
    knl = caller(
        text,
        scaled(),
        domain="{ [i, scaled_i]: 0 <= i < n and 0 <= scaled_i < 2 }",
        assumptions="n >= 1",
    )
    a = np.random.default_rng(9).random(5, np.float32)
    once = a[0] * a + (a[0] * a) ** 2
    agrees(knl, np.stack([once, once], axis=1), a=a)


def test_values() -> None:
    knl = caller("[i]: b[i, j] = scaled([i]: a[i, j], 2)", scaled())
    assert pickle.loads(pickle.dumps(knl)) == knl
    assert knl == caller("[i]: b[i, j] = scaled([i]: a[i, j], 2)", scaled())
    assert all("call.scaled" in s.tags for s in knl.statements)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[i]: b[i, j] = scaled([i]: a[i, j])", "takes 2 arguments, and is given 1"),
        ("[i]: b[i, j] = scaled([i]: a[i, j], 2, n, m)", "takes 2 arguments, and is given 4"),
        ("[i]: b[i], [i]: c[i] = scaled([i]: a[i, j], 2)", "has 1 result, and is assigned to 2"),
        ("[i]: b[i, j] = scaled(a, 2)", "'x' has 1 axis, and what is given has 0"),
        ("[i, j]: b[i, j] = scaled([i]: a[i, j], 2)", "'y' has 1 axis, and what is given has 2"),
        ("[i]: b[i, j] = scaled([i]: a[i, j], [i]: a[i, j])", "'c' is a value, and a part"),
        ("[i]: b[i, j] = scaled([j]: a[i, j], 2)", "where 'i' runs over another range"),
        ("[q]: b[q, j] = scaled([q]: a[q, j], 2)", "the iname 'q' of a part has no domain"),
        ("for i\n[i]: b[i, j] = scaled([i]: a[i, j], 2)\nend", "the iname 'i' of a part is around"),
        (
            "[i]: b[i, j] = scaled([i]: a[i, j], 2) + 1",
            "is a kernel that is called by an instruction",
        ),
        ("[i]: b[i, j] = other([i]: a[i, j], 2)", "there is no function 'other' that takes parts"),
        ("b[i, j] = sqrt([i]: a[i, j])", "there is no function 'sqrt' that takes parts"),
        ("[i]: b[i, j] = 2*a[i, j]", "part of an array is given to a function alone"),
        ("[i]: b = scaled([i]: a[i, j], 2)", r"\[i\]: x\[i, j\]"),
        ("[i, i]: b[i, i] = scaled([i]: a[i, j], 2)", "these brackets contain inames, each once"),
        ("[2]: b[i, j] = scaled([i]: a[i, j], 2)", "brackets contain inames"),
        ("[i]: b[i, j] += scaled([i]: a[i, j], 2)", "is a kernel that is called by an instruction"),
    ],
)
def test_calls_that_do_not_fit(text: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError, match=why):
        caller(text, scaled())


def test_what_a_function_assumes_must_hold() -> None:
    f = lk.make_function(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]", ["x", ...], name="f", assumptions="n mod 4 = 0"
    )
    with pytest.raises(lk.ParseError, match="it assumes n % 4 == 0, which does not follow"):
        caller("[i]: b[i] = f([i]: a[i])", f, domain="{ [i]: 0 <= i < k }")
    text, domain = "[i]: b[i] = f([i]: a[i])", "{ [i]: 0 <= i < 4*k }"
    assert caller(text, f, domain=domain, assumptions="k >= 1").prove().ok


def test_types_that_a_function_declares() -> None:
    f = lk.make_function(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]", ["x", ...], name="f", dtypes={"x, y": "float64"}
    )
    with pytest.raises(lk.InvalidArgumentError, match="'a' is float32, and 'f' takes float64"):
        caller("[i]: b[i] = f([i]: a[i])", f, domain="{ [i]: 0 <= i < k }")
    knl = lk.make_kernel("{ [i]: 0 <= i < k }", "[i]: b[i] = f([i]: a[i])", functions=[f])
    assert knl.arg_by_name["a"].dtype == np.float64


def test_all_of_a_call_is_in_one_loop() -> None:
    """A scalar may be in a loop that the call's text does not name."""
    shifted = lk.make_function(
        "{ [i, k]: 0 <= i, k < n }",
        "y[i] = x[i]\ny[k] = y[k] + w",
        ["x", "w", lk.GlobalArg("y", is_input=False), ...],
        name="shifted",
        dtypes={"w": "float32"},
    )
    text = "<> s = a[0, j]\n[i]: b[i] = shifted([i]: c[i], s)"
    with pytest.raises(lk.ParseError, match="some of the calls here are inside the loop") as e:
        caller(text, shifted)
    assert "'for j' around the call" in str(e.value)
    assert caller(f"for j\n{text}\nend", shifted).prove().ok


def test_a_function_is_checked_by_itself() -> None:
    with pytest.raises(lk.OutOfBoundsError):
        lk.make_function(
            "{ [i]: 0 <= i < n }",
            "y[i] = x[i + 1]",
            [lk.GlobalArg("x", shape="n"), ...],
            name="f",
        )
    with pytest.raises(lk.InvalidArgumentError, match="CUDA's headers declare it"):
        lk.make_function("{ [i]: 0 <= i < n }", "y[i] = 1", name="printf")


def test_merge() -> None:
    """A text may be made before the functions that it calls."""
    text = "[i]: b[i, j] = scaled([i]: a[i, j], 2)"
    knl = lk.make_kernel(IJ, text, dtypes={"a, b": "float32"})
    assert str(knl) == "a text that calls 'scaled', which merge([...]) brings"
    with pytest.raises(lk.ParseError, match=r"merge\(\[kernel, f\]\)"):
        knl.cuda()
    assert lk.merge([knl, scaled()]) == caller(text, scaled())
    outer: Any = lk.make_function(
        "{ [i]: 0 <= i < n }", "[i]: y[i] = scaled([i]: x[i], 3)", ["x", ...], name="outer"
    )
    both = lk.make_kernel(IJ, "[i]: b[i, j] = outer([i]: a[i, j])", dtypes={"a, b": "float32"})
    a = np.random.default_rng(10).random((4, 3), np.float32)
    agrees(lk.merge([scaled(), both, outer]), 3 * a + 9 * a * a, a=a)
    for given, why in (
        ([knl], "there is no function 'scaled'"),
        ([knl, dot()], "there is no function 'scaled'"),
        ([knl, scaled(), dot()], "nobody calls 'dot'"),
        ([scaled()], "one text that calls functions, and none is there"),
        ([knl, knl, scaled()], "and 2 are there"),
        ([both, outer], "there is no function 'scaled'"),
        ([knl, scaled(), 3], "and not 3"),
    ):
        with pytest.raises(lk.LoopkitError, match=why):
            lk.merge(given)


def test_inline_callable_kernel() -> None:
    knl = caller("[i]: b[i, j] = scaled([i]: a[i, j], 2)", scaled())
    assert str(knl).count("of scaled") == 2
    inlined = knl.inline_callable_kernel("scaled")
    assert "of scaled" not in str(inlined)
    assert inlined.history[-1].verdict == "proven"
    assert inlined.cuda() == knl.cuda()
    with pytest.raises(lk.UnknownNameError, match="scald"):
        knl.inline_callable_kernel("scald")
    with pytest.raises(lk.UnknownNameError):
        inlined.inline_callable_kernel("scaled")


@pytest.mark.parametrize("order", [1, -1])
def test_functions_that_call_functions_come_in_any_order(order: int) -> None:
    inner = lk.make_function("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", ["x", ...], name="inner")
    outer = lk.make_function(
        "{ [i]: 0 <= i < n }", "[i]: y[i] = inner([i]: x[i])", ["x", ...], name="outer"
    )
    text = "{ [i]: 0 <= i < n }", "[i]: y[i] = outer([i]: x[i])"
    knl = lk.make_kernel(*text, functions=[inner, outer][::order], dtypes={"x, y": "float32"})
    np.testing.assert_array_equal(knl.executor("reference")(x=np.float32([1, 2])), [2, 4])
    with pytest.raises(lk.ParseError, match="there is no function 'inner'"):
        lk.make_kernel(*text, functions=[outer])
    own = lk.make_function(
        "{ [i]: 0 <= i < n }", "[i]: y[i] = again([i]: x[i])", ["x", ...], name="again"
    )
    with pytest.raises(lk.InvalidArgumentError, match="'again' calls itself"):
        lk.make_kernel(text[0], text[1].replace("outer", "again"), functions=[own])


def test_parts_of_temporaries_are_declared() -> None:
    """In front of the part, or of the array in it."""
    rows = ["{ [i]: 0 <= i < n }", "{ [j, k]: 0 <= j, k < 6 }"]
    found = []
    for text in (
        "for i\n <> [j]: t[j] = scaled([j]: a[i, j], 2)\n b[i, k] = t[5 - k]\nend",
        "for i\n [j]: <> t[j] = scaled([j]: a[i, j], 2)\n b[i, k] = t[5 - k]\nend",
        "for i\n [j]: <float32> t[j] = scaled([j]: a[i, j], 2)\n b[i, k] = t[5 - k]\nend",
    ):
        knl = caller(text, scaled(), domain=rows)
        found.append(str(knl))
        assert "t" in knl.temporary_by_name
        a = np.random.default_rng(0).random((4, 6), np.float32)
        agrees(knl.tag_inames("i: g.0"), (2 * a + 4 * a * a)[:, ::-1], a=a)
    assert len({*found}) == 1
    with pytest.raises(lk.ParseError, match="expected a value but found '<'"):
        caller("<> [j]: <> t[j] = scaled([j]: a[0, j], 2)", scaled(), domain=rows)
    with pytest.raises(lk.ParseError, match="'<' is never closed"):
        caller("[j]: <float t[j] = scaled([j]: a[0, j], 2)", scaled(), domain=rows)


def test_a_size_is_what_any_part_says() -> None:
    """The extent of a result says n, though what is longer stands in front of it."""
    pairs = lk.make_function(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[i] + x[i + 1]",
        [lk.GlobalArg("x", shape="n + 1"), ...],
        name="pairs",
    )
    domains = ["{ [j]: 0 <= j < n + 3 }", "{ [k]: 0 <= k < n + 2 }", "{ [l]: 0 <= l < n }"]
    knl = caller("[k]: b[k] = pairs([j]: a[j])", pairs, domain=domains)
    a = np.random.default_rng(0).random(9, np.float32)
    agrees(knl, a[:-1] + a[1:], a=a)
    assert knl.prove().ok
    # The caller's n is another: that of the function is n + 2 here, or 0 + n there.
    with pytest.raises(lk.ParseError, match=r"'x' has the extent n \+ 1 where 'k'"):
        caller("[l]: b[l] = pairs([k]: a[k])", pairs, domain=domains)


def test_what_one_call_hands_to_another_no_call_passes() -> None:
    knl = caller(
        """
        [i]: b[i] = scaled([i]: a[i], 2)
        [i]: c[i] = scaled([i]: b[n - 1 - i], 3)
        """,
        scaled(),
        domain="{ [i]: 0 <= i < n }",
    )
    assert [a.name for a in knl.passed if getattr(a, "is_input", False)] == ["a"]
    a = np.random.default_rng(4).random(9, np.float32)
    once = 2 * a + 4 * a * a
    found = knl.executor("host")(a=a)
    np.testing.assert_allclose(found.c, (3 * once + 9 * once * once)[::-1], rtol=1e-5)
    half = caller(
        "[j]: b[2*j] = scaled([j]: a[j], 2)\n[i]: c[i] = scaled([i]: b[i], 3)",
        scaled(),
        domain=["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n/2 }"],
        assumptions="n mod 2 = 0",
    )
    assert half.arg_by_name["b"].is_input


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[i]: b[i] = scaled([i]: a[i], 2) {atomic}", "an atomic update is of one cell"),
        ("[i]: b[i] = scaled([i]: a[i], 2) + 1", "'scaled' is a kernel that is called by an"),
        ("b[i] = 1 {if=scaled([i]: a[i], 2) > 0}", "'scaled' is a kernel that is called by an"),
        ("b[i] = 1 {if=f([i]: a[i]) > 0}", "a part of an array is given to a function alone"),
        ("f(v) := scaled(v, 2)\nb[i] = f(a[i])", "'scaled' is a kernel that is called by an"),
        ("[i]: b[i] = scaled([i]: a[i], d=2)", "takes no arguments by the names d\n"),
    ],
)
def test_calls_that_are_none(text: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        caller(text, scaled(), domain="{ [i]: 0 <= i < n }")
    assert why in str(refused.value)
    assert "SubArray" not in str(refused.value)


@pytest.mark.parametrize("name", ["sum", "argmax", "float32", "int8"])
def test_functions_have_names_of_their_own(name: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="is already a function of the language"):
        lk.make_function("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", name=name)


def test_functions_give_something() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="'f' gives nothing"):
        lk.make_function("{ [i]: 0 <= i < n }", "<> t = 2*x[i]", name="f")


def test_functions_that_call_themselves() -> None:
    domain = "{ [i]: 0 <= i < n }"

    def calling(name: str, other: str) -> Any:
        return lk.make_function(domain, f"[i]: y[i] = {other}([i]: x[i])", ["x", ...], name=name)

    text = lk.make_kernel(domain, "[i]: b[i] = f([i]: a[i])", dtypes={"a, b": "float32"})
    with pytest.raises(lk.InvalidArgumentError, match="'f' calls itself: calls are inlined"):
        lk.merge([text, calling("f", "f")])
    with pytest.raises(lk.InvalidArgumentError, match="'f', 'g' call each other in a cyc"):
        lk.merge([text, calling("f", "g"), calling("g", "f")])
    with pytest.raises(lk.ParseError, match="there is no function 'h'"):
        lk.merge([text, calling("f", "g"), calling("g", "h")])
