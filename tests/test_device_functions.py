"""Users' functions: declared, called, computed, proven, carried along; and what is refused."""

from __future__ import annotations

import copy
import pickle
import re
import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import Golden
from gallery import load
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import digest_of, evaluator, parse_expression, prove_source
from seams import host_device_functions as on_host

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")


def shaded(x: Any, k: Any) -> Any:
    return x / np.float32(k) if k > 0 else np.float32(0)


@cache
def shade() -> Any:
    return declared()


def declared(**more: Any) -> Any:
    return lk.register_callable(
        "shade",
        {"x": "float32", "k": "int32"},
        "float32",
        "__device__ float shade(float x, int k) { return k > 0 ? x / k : 0.0f; }",
        **{"meaning": shaded, **more},
    )


@cache
def clipped(dtype: str) -> Any:
    """An overload for one type, of a definition that all of them share."""
    return lk.register_callable(
        "clipped",
        {"x, low, high": dtype},
        dtype,
        "template <class T>\n"
        "__device__ T clipped(T x, T low, T high)\n"
        "{\n"
        "    return x < low ? low : x > high ? high : x;\n"
        "}",
        meaning="low if x < low else (high if x > high else x)",
    )


def gather(**more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = shade(a[col[i]], i + 1) + 1",
        [lk.GlobalArg("a", shape="m"), ...],
        dtypes={"a, y": "float32", "col": "int32"},
        functions=[shade()],
        name="gather",
        **more,
    )


def agrees(knl: lk.Kernel, **arrays: Any) -> None:
    """All orders of threads give what the text means."""
    due = knl.executor("reference")(**arrays)
    for order in ORDERS:
        found = knl.executor("host", order=order, seed=1)(**arrays)
        np.testing.assert_allclose(found, due, rtol=1e-6)


def test_a_function(golden: Golden) -> None:
    knl = gather().assume_within("col", 0, "m")
    fast = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert fast.prove().ok
    assert fast.prove(text=True).ok
    generator = np.random.default_rng(0)
    for n in (0, 1, 31, 32, 77):
        a = generator.random(9, np.float32)
        agrees(fast, a=a, col=generator.integers(0, 9, n).astype("i4"))
    golden("device_function.txt", f"{knl}\n\n{fast}\n\n{fast.cuda()}")


def test_it_is_called_as_often_as_the_text_says() -> None:
    costs = gather().costs(n=77, m=9)
    assert dict(costs.operations)["shade", "float32"] == 77


def test_overloads_and_conversions() -> None:
    """A call takes the overload of its types, or the first that holds them."""
    functions = [clipped(dtype) for dtype in ("float32", "float64", "int32", "int8", "float16")]
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        a[i] = clipped(x[i], 0, 1)
        b[i] = clipped(d[i], -0.5, x[i])
        c[i] = clipped(i, 3, k[i])
        e[i] = clipped(s[i], 0, 3) + clipped(s[i], s[i], 4)
        f[i] = clipped(h[i], 0.25, 0.5)
        """,
        dtypes={
            "a, x": "float32",
            "b, d": "float64",
            "c, k": "int32",
            "e, s": "int8",
            "f, h": "float16",
        },
        functions=functions,
    )
    assert knl.cuda().count("template") == 1
    assert "clipped((double)" in knl.cuda() or "clipped(d[i], -0.5, (double)x[i])" in knl.cuda()
    generator = np.random.default_rng(1)
    arrays: dict[str, Any] = {
        "x": generator.normal(size=40).astype("f4"),
        "d": generator.normal(size=40),
        "k": generator.integers(-9, 50, 40).astype("i4"),
        "s": generator.integers(-9, 9, 40).astype("i1"),
        "h": generator.random(40).astype("f2"),
    }
    due = knl.executor("reference")(**arrays)
    found = knl.executor("host")(**arrays)
    for one, two in zip(found, due, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(due.a, np.clip(arrays["x"], 0, 1))
    assert knl.prove().ok


def test_all_types() -> None:
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        same = lk.register_callable(
            "same", {"x": dtype}, dtype, body="return x;", meaning=lambda x: x
        )
        knl = lk.make_kernel(
            "{ [i]: 0 <= i < n }", "y[i] = same(x[i])", dtypes={"x, y": dtype}, functions=[same]
        )
        x = np.arange(-5, 20).astype(dtype)
        np.testing.assert_array_equal(knl.executor("host")(x=x), x)
        np.testing.assert_array_equal(knl.executor("reference")(x=x), x)
        assert knl.prove().ok


@cache
def moebius() -> tuple[Any, ...]:
    turned = lk.register_callable(
        "turned",
        {"z, w": "complex64", "k": "int32"},
        "complex64",
        "__device__ lk_complex64 turned(lk_complex64 z, lk_complex64 w, int k)\n"
        "{\n"
        "    lk_complex64 const t = z * w;\n"
        "    return {t.re + k, t.im};\n"
        "}",
        meaning=lambda z, w, k: z * w + np.float32(k),
        within={"z": (-9, 9), "w": (-9, 9), "k": (-9, 9)},
    )
    square = lk.register_callable(
        "square",
        {"z": "complex128"},
        "float64",
        body="return z.re*z.re + z.im*z.im;",
        meaning="real(z)**2 + imag(z)**2",
    )
    return turned, square


def complex_calls() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        y[i] = turned(x[i], 2j, i) + turned(x[i], r[i], 1)
        s[i] = square(x[i]) + square(r[i])
        """,
        dtypes={"x, y": "complex64", "r": "float32", "s": "float64"},
        functions=moebius(),
        assumptions="n >= 1",
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_complex_arguments_and_results() -> None:
    """Real numbers become complex where they are passed, narrow ones wide."""
    knl = complex_calls()
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    source = knl.cuda()
    assert source.index("struct alignas") < source.index("turned(lk_complex64 z")
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 21)).astype("f4").T.copy().view("c8")[:, 0]
    r = generator.random(21, np.float32)
    y, s = knl.executor("host")(x=x, r=r)
    due = x * (2j + r) + np.arange(21) + 1
    np.testing.assert_allclose(y, due.astype("c8"), rtol=1e-5)
    np.testing.assert_allclose(s, np.abs(x.astype("c16")) ** 2 + r.astype("f8") ** 2)
    for one, other in zip(knl.executor("reference")(x=x, r=r), (y, s), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.nvrtc
def test_complex_functions_compile_for_every_architecture() -> None:
    for architecture in ("sm_80", "sm_90a", "sm_100"):
        assert ".entry" in complex_calls().ptx(architecture)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return {z.re, z.im + (z.re == 100.0f)};", "z="),
        ("return {z.im, z.re};", "z="),
        ("return {z.re, -z.im};", "z="),
    ],
)
def test_both_parts_of_complex_numbers_are_tested(body: str, given: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=f"is not what .* for {given}"):
        lk.register_callable("own", {"z": "complex64"}, "complex64", body=body, meaning="z")


def test_complex_functions_take_no_real_place() -> None:
    with pytest.raises(lk.LoopkitError, match="complex"):
        calling("y[i] = square(x[i])*turned(x[i], x[i], 1)", *moebius())
    with pytest.raises(lk.TypeInferenceError, match="not declared for arguments of the types"):
        calling("y[i] = real(turned(x[i], x[i], 1j))", *moebius())


def in_parts(x: Any, k: Any) -> Any:
    return x + np.float32(k), x - np.float32(k), 2 * k


@cache
def parted() -> Any:
    """Three results of three types, behind pointers."""
    return lk.register_callable(
        "parted",
        {"x": "float32", "k": "int32"},
        {"most": "float32", "least": "float64", "n": "int32"},
        "__device__ void parted(float x, int k, float *most, double *least, int *n)\n"
        "{\n"
        "    *most = x + k;\n"
        "    *least = x - k;\n"
        "    *n = 2 * k;\n"
        "}",
        meaning=in_parts,
        within={"x": (-9, 9), "k": (-9, 9)},
    )


@cache
def exchanged(dtype: str) -> Any:
    return lk.register_callable(
        "exchanged",
        {"a, b": dtype},
        {"p, q": dtype},
        body="p = b;\nq = a;",
        meaning=("b", "a"),
    )


def several(**more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        <> u, y[i], z[i] = parted(x[i], i)
        <> v = 2*x[i]
        u, v = exchanged(u, v)
        w[i] = u - v
        <>_, d[i], <>_ = parted(u, 1) {if=i > 0}
        e[i], f[i] = exchanged(c[i], 2j)
        """,
        [lk.GlobalArg("d", is_input=True), ...],
        dtypes={
            "x, w": "float32",
            "y, d": "float64",
            "z": "int32",
            "c, e, f": "complex64",
        },
        functions=[parted(), exchanged("float32"), exchanged("complex64")],
        assumptions="n >= 1",
        name="several",
        **more,
    )


def test_several_results(golden: Golden) -> None:
    """One call gives all of them, before any is assigned."""
    plain = several()
    fast = plain.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert fast.prove().ok
    assert fast.prove(text=True).ok
    assert lk.verify(plain, fast)
    golden("device_function_results.txt", f"{plain}\n\n{fast.cuda()}")
    generator = np.random.default_rng(0)
    for n in (1, 8, 21):
        x, d = generator.random(n, np.float32), generator.random(n)
        c = generator.random(n) + 1j * generator.random(n)
        arrays = {"x": x, "d": d, "c": c.astype("c8")}
        agrees(fast, **{k: v.copy() for k, v in arrays.items()})
        found = fast.executor("host")(**{k: v.copy() for k, v in arrays.items()})
        after, y, z, w, e, f = found
        i = np.arange(n)
        np.testing.assert_allclose(y, x - i, atol=1e-5)
        np.testing.assert_array_equal(z, 2 * i)
        np.testing.assert_allclose(w, 2 * x - (x + i), atol=1e-5)
        np.testing.assert_allclose(after[1:], 2 * x[1:] - 1, atol=1e-5)
        assert after[0] == d[0]
        np.testing.assert_array_equal(e, np.full(n, 2j))
        np.testing.assert_array_equal(f, arrays["c"])


def test_several_results_are_one_call() -> None:
    operations = dict(several().costs(n=77).operations)
    assert {k: v for k, v in operations.items() if k[0] == "parted"} == {
        ("parted", "(float32, float64, int32)"): 77 + 76
    }


def test_several_results_without_a_meaning() -> None:
    function = lk.register_callable(
        "turned", {"x": "float32"}, {"s": "int8", "c": "float64"}, body="s = x > 0; c = 2*x;"
    )
    knl = calling("y[i], d[i] = turned(x[i])", function)
    agrees(knl, x=np.array([-1, 0.5], "f4"))


def test_several_results_travel() -> None:
    """Schedules with them are stepped, saved, and joined to others."""
    knl = several()
    assert pickle.loads(pickle.dumps(knl)) == knl
    unrolled = knl.split_iname("i", 4, inner_tag="unr")
    assert unrolled.prove().ok
    wide = knl.split_iname("i", 4).privatize_temporaries_with_inames("i_inner", "results")
    assert wide.prove().ok


@pytest.mark.nvrtc
def test_several_results_compile_for_every_architecture() -> None:
    for architecture in ("sm_80", "sm_90a", "sm_100"):
        assert several().cubin(arch=architecture)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y[i], x[i] = parted(x[i], 1)", "2 results are assigned, but .* has 3"),
        ("y[i] = parted(x[i], 1)", "'parted' has 3 results, and is no part of an expression"),
        ("y[i] = 1 + parted(x[i], 1)", "'parted' has 3 results, and is no part of an expression"),
        ("y[i], x[i] = shade(x[i], 1)", "2 results are assigned, but .* has 1"),
        ("f(a) := parted(a, 1)\ny[i] = f(x[i])", "'parted' has 3 results"),
        ("y[i] = x[i] {if=parted(x[i], 1) > 0}", "'parted' has 3 results"),
        ("y[i] = reduce(sum, j, parted(x[j], 1))", "'parted' has 3 results"),
    ],
)
def test_several_results_stand_alone(text: str, why: str) -> None:
    with pytest.raises(lk.ParseError, match=why):
        lk.make_kernel(
            "{ [i, j]: 0 <= i, j < n }",
            text,
            dtypes={"x, y": "float32"},
            functions=[parted(), shade()],
        )


def test_results_that_do_not_fit() -> None:
    function = exchanged("complex64")
    with pytest.raises(lk.TypeInferenceError, match="lose its imaginary part in 'y'"):
        calling("y[i], x[i] = exchanged(x[i], x[i])", function)
    with pytest.raises(lk.ParseError, match="updates one variable"):
        calling("y[i], x[i] += exchanged(x[i], x[i])", function)


def test_declarations_of_several_results() -> None:
    refused("has 1 result by name", result={"s": "float32"})
    refused("has 0 results by name", result={})
    refused("'x' is an argument and a result", result={"x, y": "float32"})
    refused("declared twice", result={"s, s": "float32"})
    refused("made of letters and digits alone", result={"a_b, c": "float32"})
    refused("a function or 2 expressions", result={"a, b": "float32"}, meaning="x")
    refused("a function or 2 expressions", result={"a, b": "float32"}, meaning=("x",))
    both: dict[str, Any] = {"arguments": {"x": "float32"}, "result": {"a, b": "float32"}}
    body = "a = x; b = 2*x;"
    for meaning in (lambda x: (x, 3 * x), lambda x: (2 * x, x), ("x", "x")):
        with pytest.raises(lk.InvalidArgumentError, match="is not what it is declared to be"):
            lk.register_callable("own", **both, body=body, meaning=meaning)
    for meaning in (lambda x: x, lambda x: (x, x, x), lambda x: "ab"):
        with pytest.raises(lk.InvalidArgumentError, match="no tuple of 2 numbers"):
            lk.register_callable("own", **both, body=body, meaning=meaning)
    with pytest.raises(lk.CompileError, match=r"'void own\(float, float \*, float \*\)'"):
        lk.register_callable("own", **both, text="__device__ float own(float x) { return x; }")
    with pytest.raises(lk.InvalidArgumentError, match="have other results"):
        calling("y[i] = x[i]", exchanged("float32"), _of_other_results())


def _of_other_results() -> Any:
    return lk.register_callable(
        "exchanged", {"a, b": "int32"}, {"b1, a1": "int32"}, body="b1 = b; a1 = a;"
    )


def test_functions_have_names_of_numpys_too() -> None:
    """What the user declares is called, in the text and in rules beside it."""
    square = lk.register_callable("square", {"x": "float32"}, "float32", body="return x + 1;")
    rule = lk.SubstitutionRule("f", ("a",), parse_expression("square(a)"))
    knl = calling("y[i] = square(x[i]) + f(x[i])", square, substitutions=[rule])
    np.testing.assert_array_equal(knl.executor("host")(x=np.ones(3, "f4")), [4, 4, 4])


def test_without_a_meaning_the_text_is_compiled() -> None:
    own = lk.register_callable("twice", {"x": "float32"}, "float32", body="return 2*x;")
    assert evaluator(own)(np.float32(1.5)) == np.float32(3)
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = twice(x[i])", dtypes={"x, y": "float32"}, functions=[own]
    )
    agrees(knl, x=np.arange(5, dtype="f4"))


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said that nothing is tested, and what the reference cannot know."""
    monkeypatch.setattr("loopkit._host.compiler.find_compiler", lambda: None)
    monkeypatch.setattr("loopkit._called.warned", {})
    with pytest.warns(RuntimeWarning, match="'lonely' and what it means have not been tested"):
        own = lk.register_callable("lonely", {"x": "float32"}, "float32", body="return 3*x;")
    with pytest.raises(lk.MissingDependencyError, match="does not know what 'lonely' means"):
        evaluator(own)


def test_preambles_stand_there_once() -> None:
    table = "__device__ int const powers[4] = {1, 10, 100, 1000};\n#define LAST 3"
    pick, scale = (
        lk.register_callable(
            name,
            {"k": "int32"},
            "int32",
            body=f"return {factor}*powers[k > LAST ? LAST : k < 0 ? 0 : k];",
            preamble=table,
            meaning=lambda k, f=factor: f * 10 ** min(max(int(k), 0), 3),
        )
        for name, factor in (("pick", 1), ("scaled", 2))
    )
    knl = lk.make_kernel(
        "{ [i, LAST]: 0 <= i < n and 0 <= LAST < 2 }",
        """
        y[i] = pick(k[i]) + sum(LAST, scaled(k[i] + LAST))
        ... gbarrier
        z[i] = pick(y[i])
        """,
        [lk.GlobalArg("y", is_input=False), ...],
        dtypes={"k, y, z": "int32"},
        functions=[pick, scale],
    )
    source = knl.cuda()
    assert source.count("powers[4]") == source.count("#define LAST") == 1
    assert source.count("#undef LAST") == 1
    assert source.count("int pick(int k)") == 1
    k = np.array([-1, 0, 1, 2, 3, 4], "i4")
    for found in (knl.executor("host")(k=k), knl.executor("reference")(k=k)):
        once = 10 ** np.clip(k, 0, 3)
        np.testing.assert_array_equal(found.y, once + 2 * once + 2 * 10 ** np.clip(k + 1, 0, 3))
    assert knl.prove().ok
    assert knl.prove(text=True).ok


def test_what_is_not_called_is_not_printed() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = shade(x[i], 2)",
        dtypes={"x, y": "float32"},
        functions=[shade(), clipped("float32")],
    )
    assert "clipped" not in knl.cuda()
    assert "clipped(x: float32" in str(knl)


def test_rules_conditions_reductions_and_subscripts_call() -> None:
    place = lk.register_callable(
        "place", {"k": "int32"}, "int32", body="return (k*7 + 3) & 7;", meaning="(k*7 + 3) & 7"
    )
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        """
        dim(k, v) := shade(v, k)
        <> t = sum(j, dim(place(j + i), x[j]))
        y[i] = t                {if=shade(t, 2) > 0.5}
        y[i] = dim(3, t)        {if=not (shade(t, 2) > 0.5)}
        """,
        [lk.GlobalArg("x", shape=8), ...],
        dtypes={"x, y": "float32"},
        functions=[shade(), place],
    )
    fast = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").split_iname("j", 4)
    generator = np.random.default_rng(3)
    for n in (1, 16, 21):
        agrees(fast, x=generator.random(8, np.float32), n=n, y=np.zeros(n, "f4"))
    assert fast.prove().ok


def test_rules_that_call_are_computed_ahead() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        """
        dim(k) := shade(x[k], k)
        y[i] = sum(j, dim(i + j))
        """,
        dtypes={"x, y": "float32"},
        functions=[shade()],
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    staged = knl.precompute("dim", "i_inner, j", default_tag="l.auto")
    assert staged.prove().ok
    agrees(staged, x=np.random.default_rng(4).random(28, np.float32))


def test_calls_match_templates() -> None:
    """In a template a name means what it means in the text."""
    knl = calling("y[i] = shade(x[i], i) + square(x[i])", shade())
    named = knl.extract_subst("f", "shade(x[a], a)", ("a",)).extract_subst("g", "square(x[a])", "a")
    assert "f(i) + g(i)" in str(named)
    assert named.prove().ok
    x = np.ones(3, "f4")
    np.testing.assert_array_equal(named.executor("host")(x=x), [1, 2, 1.5])
    several = calling("<> u, <>_, y[i] = parted(x[i], i)\nz[i] = u", parted())
    named = several.extract_subst("f", "parted(x[a], a)", ("a",))
    assert "results = f(i)" in str(named)
    assert named.prove().ok


def test_subscripts_that_call_are_proven() -> None:
    """A text takes for granted that what it calls gives a place in the array."""
    place = lk.register_callable(
        "place", {"k": "int32"}, "int32", body="return (k*7 + 3) & 7;", meaning="(k*7 + 3) & 7"
    )
    for text in ("y[i] = x[place(i)]", "y[i] = x[place(col[i])]"):
        knl = lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            text,
            [lk.GlobalArg("x", shape=8), ...],
            dtypes={"x, y": "float32"} | ({"col": "int32"} if "col" in text else {}),
            functions=[place],
        ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
        proof = knl.prove()
        assert proof.ok and len(proof.trusted) == 1
        source = knl.cuda()
        wrong = source.replace("x[place(", "x[1 + place(")
        assert prove_source(knl, wrong).findings or prove_source(knl, wrong).undecided


def test_threads_that_store_where_a_function_says() -> None:
    places = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[place(i)] = x[i]",
        [lk.GlobalArg("y", shape=13), ...],
        dtypes={"x, y": "float32"},
        functions=[lk.register_callable("place", {"i": "int32"}, "int32", body="return i % 13;")],
    )
    with pytest.raises(lk.UndecidedError, match=r"may both write y\[place"):
        places.split_iname("i", 32, inner_tag="l.0")


def test_functions_are_called_for_what_was_computed() -> None:
    """A thread beyond the end computes what nobody sees, but no function of it."""
    ends = lk.register_callable(
        "ends",
        {"x": "float32"},
        "float32",
        body="while (x > 1) x *= 0.5f;\nreturn x;",
        within={"x": (0, 9)},
    )
    knl = calling("<> v = abs(x[i])\n<> t = ends(v)\ny[i] = t", ends)
    knl = knl.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert knl.prove().ok
    source = knl.cuda()
    guard = "    if (8 * i_outer + i_inner < n) {\n"
    *above, v, t, y, end, last = source.rstrip("\n").rsplit("\n", 5)
    assert above[-1].endswith(guard.rstrip("\n")) and end.strip() == "}"
    parts = [v, "    }", t.removeprefix("    "), guard.rstrip("\n"), y, end, last, ""]
    findings = prove_source(knl, "\n".join([*above, *parts])).findings
    assert any("calls 'ends' for what is no instance" in f.what for f in findings)


def test_numbers_that_a_call_converts() -> None:
    """An iname may be larger than what a function takes: its last bits are given."""
    knl = calling("y[i] = shade(x[i], 2*i + 1)", shade())
    assert knl.prove().ok
    wide = "(int)(2 * (long long)i + 1)"
    assert wide in knl.cuda()
    for other in ("2 * i + 1", "(int)(2 * (long long)i + 2)", "(int)(2 * (long long)i)"):
        assert not prove_source(knl, knl.cuda().replace(wide, other)).ok


def test_equal_arguments_give_equal_values() -> None:
    """Threads that call a function of the same arguments may store what it gives to one cell."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[j] = shade(x[j], j)",
        dtypes={"x, y": "float32"},
        functions=[shade()],
        assumptions="n <= 32",
    )
    loop = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[j] = shade(x[j], j) {inames=i:j}",
        dtypes={"x, y": "float32"},
        functions=[shade()],
        assumptions="n <= 32",
    )
    assert loop.tag_inames("i: l.0").prove().ok
    assert lk.verify(knl, loop.assume("n >= 1")).answer != "different"
    with pytest.raises(lk.RaceError):
        lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < m }",
            "y[j] = shade(x[j], i)",
            dtypes={"x, y": "float32"},
            functions=[shade()],
        ).tag_inames("i: l.0")


def test_verify_tells_functions_apart() -> None:
    def kernel(function: Any) -> lk.Kernel:
        return lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "y[i] = shade(x[i], 3)",
            dtypes={"x, y": "float32"},
            functions=[function],
        )

    other = lk.register_callable(
        "shade", {"x": "float32", "k": "int32"}, "float32", body="return x + k;", meaning="x + k"
    )
    assert lk.verify(kernel(shade()), kernel(shade())).answer == "equal"
    assert lk.verify(kernel(shade()), kernel(other)).answer == "different"


def test_values() -> None:
    """Equal ones are equal and have one key; kernels that call them travel."""
    assert shade() == declared()
    assert digest_of(shade()) == digest_of(declared())
    assert shade() != declared(meaning=None)
    knl = gather().split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    again = pickle.loads(pickle.dumps(knl))
    assert again == knl
    assert again.cuda() == knl.cuda()
    assert digest_of(again) == digest_of(knl)
    assert again != gather()
    assert lk.replay(gather(), knl.history) == knl
    scope: dict[str, Any] = {"knl": gather()}
    exec(knl.script(), scope)
    assert scope["knl"] == knl


def test_made_up_names_leave_functions_alone() -> None:
    own = lk.register_callable("x_fetch", {"v": "float32"}, "float32", body="return v;")
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "y[i] = sum(j, x_fetch(x[4*i + j]))",
        dtypes={"x, y": "float32"},
        functions=[own],
    )
    staged = knl.add_prefetch("x", "j")
    assert "x_fetch" not in staged.temporary_by_name
    agrees(staged, x=np.arange(12, dtype="f4"), n=3)
    with pytest.raises(lk.LoopkitError):
        knl.rename_iname("i", "x_fetch")


def test_fused_kernels_share_functions() -> None:
    first = gather()
    second = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "z[i] = shade(y[i], 2)",
        dtypes={"y, z": "float32"},
        functions=[shade()],
    )
    both = lk.fuse_kernels([first, second])
    assert both.cuda().count("float shade(") == 1
    assert both.prove().ok
    other = lk.register_callable("shade", {"x": "float32"}, "float32", body="return x;")
    third = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "w[i] = shade(y[i])", dtypes={"y, w": "float32"}, functions=[other]
    )
    with pytest.raises(lk.InvalidArgumentError, match="different functions 'shade'"):
        lk.fuse_kernels([first, third])


@pytest.mark.parametrize("name", ["a thread a point", "a warp a point"])
def test_the_example_of_the_gallery(name: str, golden: Golden) -> None:
    knl = load("neighbours").make()[name]
    assert not knl.prove().trusted
    assert knl.prove(text=True).ok
    costs = knl.costs(n=133, m=37, sources=7)
    assert dict(costs.operations)["pair", "float32"] == 133 * 37
    golden(f"device_function_{name.replace(' ', '_')}.txt", f"{knl}\n\n{knl.cuda()}\n{costs}\n")


# {{{ what is refused


def refused(match: str, error: type[Exception] = lk.InvalidArgumentError, **given: Any) -> None:
    made: dict[str, Any] = {
        "name": "own",
        "arguments": {"x": "float32"},
        "result": "float32",
        "text": "__device__ float own(float x) { return x; }",
    }
    made |= given
    with pytest.raises(error, match=match):
        lk.register_callable(**made)


def test_a_meaning_that_the_text_does_not_have() -> None:
    with pytest.raises(lk.InvalidArgumentError) as caught:
        declared(meaning=lambda x, k: x / np.float32(k) if k >= 0 else 0.0)
    assert re.search(
        r"'shade' is not what it is declared to be: for x=\S+, k=0 the text gives 0.0, and the "
        r"meaning gives (-?inf|nan)",
        str(caught.value),
    )
    refused("the text gives", meaning="2*x")
    refused("the text gives", meaning=lambda x: x + np.float32(1e-3))
    refused("raised ZeroDivisionError", meaning=lambda x: 1 // 0)
    refused("gives 'x', and no number", meaning=lambda x: "x")
    lk.register_callable(
        "own", {"x": "float32"}, "float32", body="return x;", meaning="x + 0.001", tolerance=0.01
    )
    declared(meaning=lambda x, k: x / np.float32(k) if k >= 0 else 0.0, within={"k": (1, 50)})


BREAKING = {
    "nan": ("x != x ? 0.0f : x", "x", "x=nan"),
    "infinity": ("x > 1e38f && x * 2.0f == x ? 1.0f : x", "x", "x=inf"),
    "minus infinity": ("x < 0 && x * 2.0f == x ? 1.0f : x", "x", "x=-inf"),
    "the largest": ("x > 3.402823e38f && x * 0.5f < x ? 0.0f : x", "x", "x=3.4028234663852886e+38"),
    "subnormal": ("x > 0 && x < 1e-40f ? 1.0f : x", "x", "x=1.401298464324817e-45"),
    "minus zero": ("signbit(x) && x == 0 ? 5.0f : x", "x", "x=-0.0"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_meaning_that_fails_at_the_ends_of_a_type(name: str) -> None:
    text, meaning, witness = BREAKING[name]
    more = {"body": f"return {text};", "meaning": meaning}
    with pytest.raises(lk.InvalidArgumentError, match="is not what it is declared to be") as caught:
        lk.register_callable("broken", {"x": "float32"}, "float32", **more)
    assert f"for {witness} the text gives" in str(caught.value)
    if name != "minus zero":
        kept = lk.register_callable(
            "broken", {"x": "float32"}, "float32", within={"x": (-4, 4)}, **more
        )
        assert kept.name == "broken"


@settings(max_examples=12, deadline=None)
@given(
    dtype=st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint32"]),
    end=st.sampled_from(["min", "max"]),
)
def test_the_ends_of_integers_are_tested(dtype: str, end: str) -> None:
    value = int(getattr(np.iinfo(dtype), end))
    shown = f"{value}u" if dtype == "uint32" else "(-9223372036854775807LL - 1)"
    shown = shown if value == np.iinfo("int64").min or dtype == "uint32" else f"{value}LL"
    with pytest.raises(lk.InvalidArgumentError, match=f"for x={value} the text gives"):
        lk.register_callable(
            "ended", {"x": dtype}, dtype, body=f"return x == {shown} ? 1 : x;", meaning="x"
        )


def test_a_function_that_remembers() -> None:
    refused(
        "the text gives .*, and .* later",
        text="#define KEPT(name) __device__ float name\nKEPT(last) = 0;\n"
        "__device__ float own(float x) { float was = last; last = x; return was; }",
        meaning=lambda x: x,
    )


def test_a_function_that_ends_its_process_or_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(
        "for x=.*, k=0 the text ends its process",
        arguments={"x": "int32", "k": "int32"},
        result="int32",
        text="__device__ int own(int x, int k) { return x / k; }",
        meaning=lambda x, k: x // k,
    )
    monkeypatch.setattr(on_host, "SECONDS", 0.5)
    refused(
        "does not end within",
        text="__device__ float own(float x) { for (volatile int i = 0; i < 1;) ; return x; }",
        meaning="x",
    )


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float own(float x) { return y; }",
        "__device__ float own(float x) { return x }",
        "__device__ float other(float x) { return x; }",
        "__device__ double own(float x) { return x; }",
        "__device__ float own(double x) { return x; }",
        "__device__ float own(float &x) { return x = 1; }",
        "__device__ float own(float x, float y = 0) { return x; }",
        "#define own(x) (x)\n__device__ int const one = 1;",
    ],
)
def test_what_does_not_compile(text: str) -> None:
    with pytest.raises(lk.CompileError) as caught:
        lk.register_callable("own", {"x": "float32"}, "float32", text)
    assert "does not compile, or does not define 'float own(float)'" in str(caught.value)
    assert "error" in caught.value.log
    assert text.split("\n")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#include <vector>\n", "it contains '#include <vector>'"),
        ("#pragma once\n", "it contains '#pragma once'"),
        ("#line 7\n", "it contains '#line 7'"),
        ("#define float double\n", "the name is a word of C\\+\\+"),
        ("#define threadIdx 1\n", "the name is a word of CUDA C"),
        ("#define sqrtf(x) x\n", "the name is a function that generated code calls"),
        ("#undef __CUDA_ARCH__\n", "the name is reserved"),
        ("# define\\\n int long\n", "the name is a word of C"),
        ("/**/ #define lk_mod(a, b) a\n", "the name is reserved|loopkit's own"),
        ("%: define int long\n", "compilers interpret differently"),
        ("??=define int long\n", "compilers interpret differently"),
        ("#if 1\n", "an #if in it has no #endif"),
        ("#endif\n#if 1\n", "an #endif in it ends nothing"),
        ("}\n", "it has {} without }|or the other way round"),
        ("/* \n", "has no end"),
        (f"__device__ float g(float x) {{ return {'x + ' * 200_000}x; }}", "200,000 operators"),
        ("__device__ int lk_floordiv(int a, int b);\n", "loopkit's own"),
        ("__global__ void other() {}\n", "another kernel"),
        ("__device__ int who() { return threadIdx.x; }\n", "not on who calls it"),
        ("__device__ void wait() { __syncthreads(); }\n", "cannot wait for other threads"),
        ("__device__ void add(int *p) { atomicAdd(p, 1); }\n", "cannot wait for other threads"),
        ("__device__ float lk_complex6(float x);\n", "loopkit's own"),
        ("#define lk_complex64 float2\n", "the name is reserved"),
        (
            "__device__ lk_complex64 *operator&(lk_complex64 &z) { return nullptr; }\n",
            "what an operator does with complex numbers",
        ),
        ("// caf\N{LATIN SMALL LETTER E WITH ACUTE}\n", "no plain ASCII"),
    ],
)
def test_what_cannot_stand_above_a_kernel(text: str, why: str) -> None:
    whole = f"{text}__device__ float own(float x) {{ return x; }}"
    with pytest.raises(lk.InvalidArgumentError, match=why):
        lk.register_callable("own", {"x": "float32"}, "float32", whole)


def test_other_arguments() -> None:
    refused("a function that generated code calls", name="sqrt")
    refused("already a function of the language", name="argmin")
    refused("already a function of the language", name="float32")
    refused("CUDA's headers declare it", name="printf")
    refused("it is a word of C", name="while")
    refused("is a function that generated code calls", c_name="sinf")
    refused("is no function that C can have", c_name="lk_mod")
    refused("has an argument", arguments={})
    refused("is complex64, and its result float32", arguments={"x": "complex64"}, meaning="x")
    refused("gives .*j.*, and its result is float32", meaning=lambda x: np.complex64(x))
    refused("declared twice", arguments={"x": "float32", "x, y": "float32"})
    refused("has a text and a body", body="return x;")
    refused("has no definition", text="")
    refused("marked __device__", text="float own(float x) { return x; }")
    refused("is declared as not pure", pure=False)
    refused("'y', which is no argument", meaning="y + 1")
    refused("a function or an expression", meaning=3)
    refused("no argument", within={"y": (0, 1)})
    refused("smaller one first", within={"x": (1, 0)})
    refused("tolerance is a number", tolerance=-1)
    refused("there is no function 'f'", error=lk.TypeInferenceError, meaning="f(x)")


def calling(text: str, *functions: Any, **more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        dtypes=dict.fromkeys(re.findall(r"\b[xy]\b", text), "float32")
        | dict.fromkeys(re.findall(r"\bd\b", text), "float64"),
        functions=functions,
        **more,
    )


def test_calls_that_fit_nothing() -> None:
    with pytest.raises(lk.TypeInferenceError, match="'shade' takes 2 arguments, not 1"):
        calling("y[i] = shade(x[i])", shade())
    with pytest.raises(
        lk.TypeInferenceError, match=r"types \(float64, int\)|declared for"
    ) as caught:
        calling("y[i] = shade(d[i], 1)", shade())
    assert "float32(x) says where a value is rounded" in str(caught.value)
    with pytest.raises(lk.TypeInferenceError, match="is not declared for"):
        calling("y[i] = shade(x[i], 1.5)", shade())
    with pytest.raises(lk.TypeInferenceError, match="is not a value of int32"):
        calling("y[i] = shade(x[i], 3000000000)", shade())
    with pytest.raises(lk.TypeInferenceError, match="there is no function 'shade'"):
        calling("y[i] = shade(x[i], 1)")


def test_definitions_that_would_change_each_other() -> None:
    def helped(name: str, helper: str, **more: Any) -> Any:
        text = f"{helper}\n__device__ float {name}(float x) {{ return helper(x); }}"
        return lk.register_callable(name, {"x": "float32"}, "float32", text, **more)

    one = helped("one", "__device__ float helper(double x) { return 1; }")
    two = helped("two", "__device__ float helper(float x) { return 2; }")
    with pytest.raises(
        lk.InvalidArgumentError, match="hold the word 'helper', which those of 'one"
    ):
        calling("y[i] = one(x[i]) + two(x[i])", one, two)
    macro = helped("macro", "#define result 1\n__device__ float helper(float x) { return result; }")
    named = lk.register_callable(
        "named", {"x": "float32"}, "float32", body="float result = x; return result;"
    )
    with pytest.raises(lk.InvalidArgumentError, match="hold the word 'result'"):
        calling("y[i] = macro(x[i]) + named(x[i])", named, macro)
    assert "#undef result" in calling("y[i] = macro(x[i])", macro).cuda()


def test_names_that_are_taken() -> None:
    for text in ("y[i] = shade + x[i]", "shade[i] = x[i]", "<> shade = x[i]\ny[i] = shade"):
        with pytest.raises(lk.InvalidArgumentError, match=r"'shade' is .* and a function"):
            calling(text, shade())
    with pytest.raises(lk.InvalidArgumentError, match="the name of the kernel and a function"):
        calling("y[i] = shade(x[i], 1)", shade(), name="shade")
    with pytest.raises(lk.InvalidArgumentError, match="a substitution rule and a function"):
        calling("shade(v) := v\ny[i] = x[i]", shade())
    with pytest.raises(lk.InvalidArgumentError, match="same C function, declared twice"):
        calling("y[i] = shade(x[i], 1)", shade(), declared(meaning=None))


# }}}


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_calls_in_random_expressions(data: st.DataObject) -> None:
    """Whatever calls stand in an expression, the source is proven to compute it."""

    def expression(depth: int) -> str:
        leaves = st.sampled_from(["x[i]", "x[2*i]", "1.5", "2"])
        if depth == 0:
            return data.draw(leaves)
        form = data.draw(
            st.sampled_from(
                [
                    "{} + {}",
                    "({})*({})",
                    "shade({}, i - 2)",
                    "clipped({}, {}, 2)",
                    "({} if i > 3 else {})",
                ]
            )
        )
        return form.format(*(expression(depth - 1) for _ in range(form.count("{}"))))

    text = f"y[i] = float32({expression(3)})"
    data_of = [lk.GlobalArg("x", shape="2*n"), ...] if "x" in text else None
    knl = calling(text, shade(), clipped("float32"), kernel_data=data_of).tag_inames("i: g.0")
    assert knl.prove().ok
    x = np.linspace(-3, 3, 14, dtype="f4")
    agrees(knl, **({"x": x} if data_of else {}), n=7)


NAMED = {
    "b[i] = curve(gain=a[i], x=2)": "b[i] = curve(2, a[i])",
    "b[i] = curve(2, gain=curve(gain=1, x=a[i]))": "b[i] = curve(2, curve(a[i], 1))",
    "f(p, q) := p - q\nb[i] = f(q=a[i], p=2)": "b[i] = f(2, a[i])",
    "b[i] = a[i] {if=curve(gain=a[i], x=2) > 0}": "if curve(2, a[i]) > 0",
}
"""Calls whose arguments have names, and what a kernel holds."""


def _of_named(text: str) -> lk.Kernel:
    curve = lk.register_callable(
        "curve", {"x, gain": "float32"}, "float32", body="return x - gain;", meaning="x - gain"
    )
    line = lk.make_function(
        "{ [k]: 0 <= k < l }", "y[k] = w*x[k] + c", ["x", "w", "c", ...], name="line"
    )
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
        functions=[curve, line],
    )


@pytest.mark.parametrize("text", NAMED)
def test_arguments_by_their_names(text: str) -> None:
    assert NAMED[text] in str(_of_named(text))


def test_arguments_of_kernels_by_their_names() -> None:
    plain = _of_named("[i]: b[i] = line([i]: a[i], 3, 2)")
    for arguments in ("c=2, w=3, x=[i]: a[i]", "[i]: a[i], c=2, w=3"):
        knl = _of_named(f"[i]: b[i] = line({arguments})")
        assert lk.verify(plain, knl)
        a = np.arange(5, dtype=np.float32)
        np.testing.assert_array_equal(knl.executor("host")(a=a), 3 * a + 2)
        np.testing.assert_array_equal(knl.executor("reference")(a=a), 3 * a + 2)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("curve(2, x=a[i])", "'curve' takes no arguments by the names x"),
        ("curve(x=2, x=a[i])", "takes no arguments by the names x, x"),
        ("curve(x=2)", "takes 2 arguments, not 1"),
        ("curve(gain=2)", "takes no arguments by the names gain"),
        ("curve(x=2, a[i])", "an argument without a name follows one that has a name"),
        ("sin(x=a[i])", "those of rules and of functions of one's own have names"),
        ("max(x=a[i])", "arguments cannot be named"),
        ("a[i=2]", "arguments cannot be named"),
    ],
)
def test_names_that_arguments_do_not_have(call: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as caught:
        _of_named(f"b[i] = {call}")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int c; __device__ float f(float x) { return x + c++; }",
        "__device__ float f(float x) { static int c; return x + c++; }",
        "__device__ float f(float x) { static int c[2] = {1, 2}; return x + c[0]++; }",
        "static __device__ int c = 3; __device__ float f(float x) { return x + c++; }",
        "__managed__ int c; __device__ float f(float x) { return x + c; }",
    ],
)
def test_functions_keep_nothing(text: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="'c' would be kept from one call to the ne"):
        lk.register_callable("f", {"x": "float32"}, "float32", text)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float const c[2] = {1, 2}; __device__ float f(float x) { return x + c[1]; }",
        "__constant__ float c[2] = {1, 2}; __device__ float f(float x) { return x + c[1]; }",
        """static __device__ float g(float x) { return x; }
        __device__ float f(float x) { static float const c = 1; return g(x) + c; }""",
        """struct Pair { float a; static __device__ float of(float x) { return x; } };
        __device__ float f(float x) { Pair p = {x}; return Pair::of(p.a); }""",
    ],
)
def test_constants_may_be_kept(text: str) -> None:
    assert lk.register_callable("f", {"x": "float32"}, "float32", text).name == "f"


def test_a_body_ends_where_it_ends() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="the body of 'f' cannot be put"):
        lk.register_callable(
            "f", {"x": "float32"}, "float32", body="return x; } __device__ void g() {"
        )


def test_meanings_have_no_subscripts() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="has subscripts, and its arguments are num"):
        lk.register_callable("f", {"x": "float32"}, "float32", body="return x;", meaning="x[0]")


def test_a_meaning_that_cannot_be_pickled():
    def doubled(x):
        return x + x

    twice = lk.register_callable(
        "twice", {"x": "float32"}, "float32", body="return 2*x;", meaning=doubled
    )
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = twice(x[i])", dtypes={"x": "float32"}, functions=[twice]
    ).split_iname("i", 4)
    assert copy.copy(knl) == copy.deepcopy(knl) == knl
    with pytest.raises(lk.InvalidArgumentError, match="the meaning of 'twice' cannot be pickled"):
        pickle.dumps(knl)
