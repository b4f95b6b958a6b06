"""Guards that test data are compared as what they compute, types and all."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from seams import prove, prove_source

import loopkit as lk

NARROW = ("int8", "uint8", "int16", "uint16")
INTEGERS = (*NARROW, "int32", "uint32", "int64", "uint64")


def asking(predicate: str, *, private: bool = True, **dtypes: str) -> lk.Kernel:
    """``y[i] = 1`` where a predicate on ``t`` and ``u`` holds: scalars, or elements of arrays."""
    names = sorted(dtypes)
    if private:
        first = [f"<> {name} = {name}_in[i]" for name in names]
    else:
        first = []
        predicate = re.sub(rf"\b({'|'.join(names)})\b", r"\1_in[i]", predicate)
    lines = [*first, f"if {predicate}", "    y[i] = 1", "end"]
    types = {f"{name}_in": dtype for name, dtype in dtypes.items()}
    return lk.make_kernel("{ [i]: 0 <= i < n }", "\n".join(lines), dtypes={**types, "y": "float32"})


def guard_of(source: str) -> str:
    """The one condition of a text."""
    [found] = re.findall(r"if \((.*)\)$", source, re.M)
    return str(found)


def edited(knl: lk.Kernel, guard: str) -> lk.Proof:
    """The proof of a text that asks for something else."""
    source = knl.cuda()
    return prove_source(knl, source.replace(f"if ({guard_of(source)})", f"if ({guard})"))


PREDICATES = (
    "t + 1 < 5",
    "t < 5",
    "t == i",
    "t + i < n",
    "t*t > 3",
    "t - u < 2",
    "t < u",
    "-t > 2 and u != 0",
    "t // 3 == u % 4",
    "not (t + u < 7 or t > n)",
    "int64(t) + int64(u) < n",
    "int8(t) < int8(u) + 1",
    "min(t, u) + 1 < max(t, 3)",
    "(t if t < u else u) + 1 < 4",
    "int32(i*4) < t",
)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_is_printed_is_proven(dtype: str, predicate: str, private: bool) -> None:
    knl = asking(predicate, private=private, t=dtype, **({"u": dtype} if "u" in predicate else {}))
    proof = prove(knl)
    assert proof.ok, f"{knl.cuda()}\n{proof}"


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    "predicate", ["t // -3 < 2", "t % -3 < 0", "t // -1 < 2", "t << 2 < 5", "bool(t)", "abs(t) < 3"]
)
def test_what_is_printed_of_signed_integers_is_proven(
    dtype: str, predicate: str, private: bool
) -> None:
    proof = prove(asking(predicate, private=private, t=dtype))
    assert proof.ok, str(proof)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("predicate", ["t + 1 < 5", "t*u < 2", "int32(t*2) < i", "t < i + 0.5"])
def test_numbers_with_fractions_are_proven(dtype: str, predicate: str, private: bool) -> None:
    dtypes = {"t": dtype, **({"u": dtype} if "u" in predicate else {})}
    proof = prove(asking(predicate, private=private, **dtypes))
    assert proof.ok, str(proof)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize(
    ("predicate", "dtypes", "guard"),
    [
        ("t + 1 < 5", {"t": "int8"}, "{t} + 1 < 5"),
        ("t + 1 < 5", {"t": "int8"}, "(unsigned char)({t} + 1) < 5"),
        ("t + 1 < 5", {"t": "int8"}, "{t} < 4"),
        ("t - 1 < 5", {"t": "uint16"}, "{t} - 1 < 5"),
        ("t + 1 < 5", {"t": "int32"}, "(long long){t} + 1 < 5"),
        ("t + 1 < 5", {"t": "int32"}, "(int)((unsigned){t} + 2) < 5"),
        ("t + i < n", {"t": "int32"}, "(long long){t} + i < n"),
        ("t - 1 < n", {"t": "uint32"}, "(long long){t} - 1 < n"),
        ("t < u", {"t": "int32", "u": "uint32"}, "{t} < {u}"),
        ("t < u", {"t": "uint8", "u": "uint8"}, "(signed char){t} < (signed char){u}"),
        ("int32(t) < 5", {"t": "int64"}, "{t} < 5"),
        ("t < 5", {"t": "int64"}, "(int){t} < 5"),
        ("t + 1 < u", {"t": "float32", "u": "float32"}, "{t} < {u} - 1"),
        ("t*2 < u", {"t": "float32", "u": "float32"}, "(double){t} * 2.0 < {u}"),
        ("t*2 < u", {"t": "float32", "u": "float32"}, "{t} + {t} + 0.0f < {u}"),
        ("int32(t)*2 < 5", {"t": "float32"}, "(int)({t} * 2.0f) < 5"),
        ("int32(t*2) < 5", {"t": "float32"}, "(int){t} * 2 < 5"),
        ("t < 2", {"t": "float32"}, "{t} < 2.5f"),
        ("t // 2 < 0", {"t": "int32"}, "{t} / 2 < 0"),
        ("int64(t)*4 < 5", {"t": "int32"}, "({t} << 2) < 5"),
        ("int64(t) << 2 < 5", {"t": "int32"}, "({t} << 2u) < 5"),
        ("abs(t) < 3 and abs(int64(t)) < 3", {"t": "int32"}, "lk_abs({t}) < 3"),
        ("abs(t) < 3 or t < 0", {"t": "int32"}, "abs({t}) < 3 || {t} < 0"),
        ("abs(t) < 3 or abs(int64(t)) < 3", {"t": "int8"}, "abs({t}) < 3 || lk_abs({t}) < 3"),
        (
            "t // 3 < 5 or -int64(t) < 5",
            {"t": "int32"},
            "lk_floordiv({t}, 3) < 5 || lk_floordiv({t}, -1) < 5",
        ),
    ],
)
def test_other_guards_are_not_proven(
    predicate: str, dtypes: dict[str, str], guard: str, private: bool
) -> None:
    knl = asking(predicate, private=private, **dtypes)
    assert prove(knl).ok
    spelled = {name: name if private else f"{name}_in[i]" for name in dtypes}
    assert not edited(knl, guard.format(**spelled)).ok


@pytest.mark.parametrize(
    ("index", "dtype", "guard"),
    [
        ("int32(x_in[i]*16)", "float32", ("* 16.0f", "* 16.5f")),
        ("int32(x_in[i]*16)", "float32", ("(int)(x_in[i] * 16.0f)", "(int)x_in[i] * 16")),
        ("int8(x_in[i] + 1)", "uint32", ("(signed char)", "(short)")),
        ("int8(x_in[i] + 1)", "uint32", ("(signed char)", "")),
        ("int32(x_in[i])", "int64", ("(int)", "")),
    ],
)
def test_subscripts_that_are_cast(index: str, dtype: str, guard: tuple[str, str]) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = h[{index}]",
        [lk.GlobalArg("h", np.float32, shape=1000), ...],
        dtypes={"x_in": dtype},
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    assert guard[0] in source
    assert not prove_source(knl, source.replace(*guard)).ok


@pytest.mark.parametrize("index", ["i**2 % 4", "sign(i*2) % 4", "abs(i - 3) % 4"])
def test_functions_of_inames_in_subscripts(index: str) -> None:
    held = lk.GlobalArg("x", np.float32, shape=4)
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = x[{index}]", [held, ...])
    assert prove(knl).ok, f"{knl.cuda()}\n{prove(knl)}"


def test_a_size_of_another_type_is_found() -> None:
    """Checks of sizes are conditions of what is no integer then."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[perm[i]]",
        [lk.GlobalArg("x", np.float32, shape="n"), ...],
        dtypes={"perm": "int16"},
        assumptions="n >= 2",
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    source = knl.cuda()
    assert not prove_source(knl, source.replace("int const n", "double const n")).ok


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("index", "other"),
    [("t[i] << 2 >> 2", "t[i]"), ("t[i]**2 // 2", "(long long)t[i] * t[i] / 2"), ("abs(t[i])", "")],
)
def test_subscripts_computed_in_the_type_of_data(index: str, other: str, dtype: str) -> None:
    """Shifts, powers and functions wrap around in subscripts, too."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[{index}]",
        [lk.GlobalArg("x", np.float32, shape="m"), ...],
        dtypes={"t": dtype},
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    [subscript] = re.findall(r" = x\[(.*)\];", source)
    if other:
        assert not prove_source(knl, source.replace(subscript, other)).ok


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize("index", ["t[i], i", "4*t[i] - 3*t[i]"])
def test_subscripts_made_of_data_that_overflow(index: str, dtype: str) -> None:
    shape = "m, n" if "," in index else "m"
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[{index}]",
        [lk.GlobalArg("x", np.float32, shape=shape), ...],
        dtypes={"t": dtype},
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    narrow = source.replace("(long long)", "").replace("LL", "")
    if narrow != source:
        assert not prove_source(knl, narrow).ok


@pytest.mark.parametrize("index", ["t[i] + 1", "2*t[i]", "3*t[i] - i"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_subscripts_made_of_data_that_lie_in_their_array(index: str, dtype: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[{index}, i]",
        [lk.GlobalArg("x", np.float32, shape="m, 8"), ...],
        dtypes={"t": dtype},
        assumptions="n <= 8",
    )
    assert prove(knl).ok, f"{knl.cuda()}\n{prove(knl)}"
    near = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[{index}]",
        [lk.GlobalArg("x", np.float32, shape="m"), ...],
        dtypes={"t": dtype},
    )
    assert prove(near).ok, f"{near.cuda()}\n{prove(near)}"


# {{{ elements that a guard reads


def that_reads(text: str, *more: Any, domain: str = "{ [i]: 0 <= i < n }") -> lk.Kernel:
    arrays = [lk.GlobalArg("keys", "int32", shape=64), *more, ...]
    types = {"q, y": "int32"}
    return lk.make_kernel(domain, text, arrays, dtypes=types, assumptions="n >= 1")


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = 1 {if=keys[q[i]] > 3}",
        "y[i] = 1 {if=q[i] >= 0 and keys[q[i]] > 3}",
        "<int32> at = (q[i]*7) % 64\ny[i] = 1 {if=keys[at] > 3}",
        "y[i] = 1 {if=keys[q[i]] > 3 or keys[q[i] + 1] > 3}",
        "y[i] = 1 {if=(keys[q[i]] if q[i] > 3 else 2) > 3}",
        "if keys[q[i]] > 3\n y[i] = 1\nelif keys[q[i] + 1] > 3\n y[i] = 2\nelse\n y[i] = 3\nend",
    ],
)
def test_what_a_guard_reads_is_taken_from_the_text(text: str) -> None:
    """As it is where a line reads it: data decide, and they do so for the text as well."""
    for knl in (
        that_reads(text),
        that_reads(text).split_iname("i", 4, outer_tag="g.0", inner_tag="l.0"),
    ):
        proof = knl.prove()
        assert proof.ok, proof
        assert bool(proof.trusted) == ("% 64" not in text)
        assert not knl.assume_within("q", 0, 60).prove().trusted


def test_a_guard_that_reads_more_than_the_text_is_open() -> None:
    knl = that_reads("y[i] = 1 {if=q[i] >= 0 and keys[q[i]] > 3}")
    turned = knl.cuda().replace("q[i] >= 0 && keys[q[i]] > 3", "keys[q[i]] > 3 && q[i] >= 0")
    assert turned != knl.cuda()
    assert not prove_source(knl, turned).ok
    inner = "{ [i, j]: 0 <= i < n and 0 <= j < m }"
    knl = that_reads("y[i] = 1 + j {if=keys[q[i]] > 3}", domain=inner)
    assert knl.prove().ok
    earlier = knl.cuda().replace("if (m >= 1)\n", "\n")
    assert earlier != knl.cuda()
    lines = earlier.split("\n")
    at = next(k for k, line in enumerate(lines) if "int j" in line)
    guard = next(k for k, line in enumerate(lines) if "keys[" in line and "if" in line)
    lines[at], lines[guard] = lines[guard], lines[at]
    assert not prove_source(knl, "\n".join(lines)).ok


# }}}
