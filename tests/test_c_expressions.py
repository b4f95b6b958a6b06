"""Expressions as C: golden texts, values against NumPy, preamble through NVRTC."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import (
    C_TYPES,
    DTYPES,
    NARROW,
    Assign,
    Checker,
    Element,
    ExpressionLowering,
    Name,
    RunTime,
    TypeCast,
    Value,
    Variable,
    dtype_of,
    expression_text,
    host,
    include_directory,
    parse_expression,
    preamble,
    statement_text,
    subtrahend,
)
from seams import preamble_device_functions as device_functions

from loopkit import TypeInferenceError

TYPES = {
    "b": "bool",
    "i8": "int8",
    "j8": "int8",
    "i16": "int16",
    "i": "int32",
    "j": "int32",
    "l": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u": "uint32",
    "ul": "uint64",
    "h": "float16",
    "g": "float16",
    "bf": "bfloat16",
    "x": "float32",
    "y": "float32",
    "a": "float32",
    "d": "float64",
    "z": "complex64",
    "w": "complex128",
}
ENV = {name: DTYPES[dtype] for name, dtype in TYPES.items()}


class Lowering(ExpressionLowering):
    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)

    def dtype_of(self, name: str) -> Any:
        return ENV[name]

    def named(self, name: str, indices: tuple[Any, ...] = ()) -> Any:
        listed = tuple(Name(str(index)) for index in indices)
        return Element(name, listed) if indices else Name(name)


def printed(text: str, dtype: str | None = None, **options: Any) -> str:
    lowered = Lowering(**options)(parse_expression(text), DTYPES[dtype] if dtype else None)
    return expression_text(lowered)


TEXTS = """
x + 1
2*x - 3*y + 0.5
x - -y
x - (y - a[i])
-x**2
-(x*y)
-x*y
1 - x
x*(y*2)
x*y*2
x/(y*2)
x*(1e308*10) - y
x*(1/3)
sqrt(2)*x
i8 + j8
(i8 + j8)*2 + 1
(i8 + j8)//2
(i8 + j8)/2
i8 + j8 < 3
u8 - 2
-u8
~i8
i8 << 1
i*x
i + d
i + u
l + ul
x*b
b + b
b*b
b + 1
i/2
i/j
i//2
i//3
i//j
i % 8
i % 3
i*4//2
x//y
x % 2
u//3
x**2
x**3
(x + y)**2
a[i]**2
x**0.5
x**-1
x**y
i**2
i**j
d**2.5
h + g*2
h + x
h + d
h < 0.1
h/g
-h
abs(h)
exp(h)
bf*x + bf
z*w
z*2
x*2j
z/x
abs(z)
z == 1
real(z) + imag(z)
conj(z)
exp(z)
z**2
z**w
round(x)
floor(i)
sign(x)
sqrt(i)
atan2(x, 1)
hypot(x, y)
fma(x, y, 1)
isnan(x)
isnan(i)
max(x, y)
max(x, 0)
max(i, 3)
max(l, 3, i)
min(h, g)
fmin(x, y)
b and x < 3 or not b
not (x == y)
0 <= i < j
x if i < 3 else 0
if(i < 3, 1., 0.)*x
x + (y if b else d)
i << 3
i << j
l >> 2
(i & 3 | j) + 1
u8 < 300
u < -1
i == 1099511627776
l < ul
u < i
b == 1
float32(i)*x
int8(x)
int8(300)
uint32(3000000000) + u
float16(1)/3
bool(x)
complex64(x)
complex128(z)
"""


def test_generated_texts(golden: Any) -> None:
    lines = [f"{line:28} {printed(line)}" for line in TEXTS.strip().splitlines()]
    golden("c_expressions/texts.txt", "\n".join(lines))


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("i8 + j8", "int8", "i8 + j8"),
        ("i8 + j8", "int32", "(signed char)(i8 + j8)"),
        ("i8 + j8", "bool", "(signed char)(i8 + j8)"),
        ("u8 + 1", "int16", "(unsigned char)(u8 + 1)"),
        ("2", "float32", "2.0f"),
        ("2.5", "int32", "2"),
        ("-1", "int64", "-1"),
        ("2**40", "int64", "1099511627776LL"),
        ("d*x", "float32", "d * x"),
        ("i", "float32", "i"),
        ("x", "float16", "__float2half(x)"),
        ("d", "float16", "__double2half(d)"),
        ("d", "bfloat16", "__float2bfloat16((float)d)"),
        ("h*g", "float32", "__half2float(h * g)"),
        ("x", "complex64", "lk_complex64{x, 0.0f}"),
        ("if(b, 1, 2)", "float32", "b ? 1.0f : 2.0f"),
        ("i + j - 3", "int32", "(unsigned)i + j - 3"),
        ("3 - i", "int32", "3 - (unsigned)i"),
        ("i*j + i", "int32", "(unsigned)i * j + i"),
        ("-i", "int32", "-(unsigned)i"),
        ("i + j", "int64", "(int)((unsigned)i + j)"),
        ("l*i", "int64", "(unsigned long long)l * i"),
        ("l + i*j", "int64", "(unsigned long long)l + (int)((unsigned)i * j)"),
        ("i + j & 7", "int32", "((unsigned)i + j) & 7"),
        ("~(i + j)", "int32", "~((unsigned)i + j)"),
        ("abs(i)", "int32", "lk_abs(i)"),
        ("abs(i % 7)", "int32", "abs(lk_mod(i, 7))"),
        ("i % 7 + i//4", "int32", "lk_mod(i, 7) + (i >> 2)"),
        ("i**5", "int32", "lk_power<5>((unsigned)i)"),
        ("i8*j8*i16", "int16", "(signed char)(i8 * j8) * i16"),
        ("i16**3", "int16", "(unsigned)i16 * i16 * i16"),
        ("u16*u16", "uint16", "(unsigned)u16 * u16"),
        ("u*u + 1", "uint32", "u * u + 1"),
        (
            "(u % 8 - 5)*(i % 2**20)*(i % 2**20)",
            "int64",
            "(unsigned long long)((long long)(u % 8 - 5) * (i & 1048575)) * (i & 1048575)",
        ),
    ],
)
def test_assigned(text: str, dtype: str, expected: str) -> None:
    assert printed(text, dtype) == expected


def test_division_of_what_is_never_negative() -> None:
    def is_nonnegative(expr: Any) -> bool:
        return expr in (prim.Variable("i"), prim.Sum((prim.Variable("j"), -1)))

    assert printed("i//16 + i%16", is_nonnegative=is_nonnegative) == "i / 16 + i % 16"
    assert printed("i//j", is_nonnegative=is_nonnegative) == "i / j"
    assert printed("j//16", is_nonnegative=is_nonnegative) == "j >> 4"
    assert printed("j//i", is_nonnegative=is_nonnegative) == "lk_floordiv(j, i)"


def test_what_cannot_overflow_is_computed_as_it_stands() -> None:
    def largest(expr: Any) -> int | None:
        if expr == prim.Variable("i"):
            return 2**20
        return 2**31 - 1 if expr == parse_expression("2048*i - 1") else None

    assert printed("1000*i + 5", "int32", largest=largest) == "1000 * i + 5"
    assert printed("2048*i - 1", "int32", largest=largest) == "2048 * (unsigned)i - 1"
    assert printed("2047*i + 1", "int32", largest=largest) == "2047 * i + 1"
    assert printed("i*j", "int32", largest=largest) == "(unsigned)i * j"


@pytest.mark.parametrize(
    ("operation", "dtype", "text", "expected"),
    [
        ("sum", "float32", "x*y", "acc += x * y;"),
        ("product", "float32", "x", "acc *= x;"),
        ("max", "float32", "x", "acc = lk_max(acc, x);"),
        ("min", "int64", "i", "acc = min(acc, (long long)i);"),
        ("any", "bool", "x < 1 and b", "acc = acc || (x < 1.0f && b);"),
        ("all", "bool", "x < 1", "acc = acc && x < 1.0f;"),
        ("sum", "float16", "x", "acc += __float2half(x);"),
        ("sum", "int32", "x", "acc += x;"),
        ("sum", "int32", "l", "acc += (unsigned)l;"),
        ("sum", "int32", "1", "acc += 1u;"),
        ("sum", "int64", "2", "acc += 2ULL;"),
        ("sum", "int32", "-2", "acc += (unsigned)-2;"),
        ("sum", "int32", "i*j", "acc += (unsigned)i * j;"),
        ("product", "int64", "i", "acc *= (unsigned long long)i;"),
        ("sum", "int16", "i16", "acc += i16;"),
        ("product", "uint16", "u16", "acc *= (unsigned)u16;"),
        ("sum", "uint32", "u", "acc += u;"),
    ],
)
def test_update(operation: str, dtype: str, text: str, expected: str) -> None:
    target = Name("acc")
    operator, value = Lowering().update(target, DTYPES[dtype], operation, parse_expression(text))
    assert statement_text(Assign(target, operator, value, "s")) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x & y", "'&' is not defined for float32"),
        ("x << 2", "'<<' is not defined for float32"),
        ("z < w", "'<' is not defined for complex64"),
        ("z // 2", "'//' is not defined for complex64"),
        ("cbrt(z)", "'cbrt' is not defined for complex64"),
        ("i ** -1", "an integer to the power of -1"),
        ("b - b", "'-' is not defined for bool"),
        ("sqqrt(x)", "did you mean 'sqrt'"),
        ("sqrt(x, y)", "'sqrt' takes 1 argument, not 2"),
    ],
)
def test_type_errors(text: str, message: str) -> None:
    expr = parse_expression(text)
    with pytest.raises(TypeInferenceError) as from_types:
        dtype_of(expr, ENV.__getitem__)
    with pytest.raises(TypeInferenceError) as from_lowering:
        Lowering()(expr)
    assert message in str(from_types.value)
    assert str(from_types.value) == str(from_lowering.value)


def test_complex_is_not_stored_as_real() -> None:
    with pytest.raises(TypeInferenceError, match="lose its imaginary part"):
        printed("z", "float32")


def test_preamble_is_minimal_and_in_a_fixed_order() -> None:
    assert preamble([]) == ""
    text = preamble(["lk_mod", "lk_floordiv", "cuda_fp16.h"])
    assert text.index("cuda_fp16.h") < text.index("lk_floordiv(") < text.index("lk_mod(")
    assert "lk_max" not in text
    assert preamble(reversed(device_functions())) == preamble(device_functions())
    assert "struct" in preamble(["lk_complex64.functions"])


# {{{ the same values as NumPy's


def value(expr: Any, env: dict[str, Any]) -> Any:
    """An expression on NumPy arrays."""

    def rec(e: Any) -> Any:
        return value(e, env)

    match expr:
        case prim.Variable():
            return env[expr.name]
        case prim.Sum():
            result = rec(expr.children[0])
            for child in expr.children[1:]:
                subtracted = subtrahend(child)
                result = result + rec(child) if subtracted is None else result - rec(subtracted)
            return result
        case prim.Product():
            first, second, *rest = expr.children
            if type(first) is int and first == -1:
                result = -rec(second)
            else:
                result = rec(first) * rec(second)
            for child in rest:
                result = result * rec(child)
            return result
        case prim.Quotient():
            return rec(expr.numerator) / rec(expr.denominator)
        case prim.FloorDiv():
            return rec(expr.numerator) // rec(expr.denominator)
        case prim.Remainder():
            return rec(expr.numerator) % rec(expr.denominator)
        case prim.Power():
            return rec(expr.base) ** rec(expr.exponent)
        case prim.LeftShift():
            return rec(expr.shiftee) << rec(expr.shift)
        case prim.RightShift():
            return rec(expr.shiftee) >> rec(expr.shift)
        case prim.BitwiseAnd():
            return rec(expr.children[0]) & rec(expr.children[1])
        case prim.BitwiseOr():
            return rec(expr.children[0]) | rec(expr.children[1])
        case prim.BitwiseXor():
            return rec(expr.children[0]) ^ rec(expr.children[1])
        case prim.BitwiseNot():
            return ~rec(expr.child)
        case prim.Min():
            a, b = map(rec, expr.children)
            return np.minimum(a, b) if hasattr(a, "dtype") or hasattr(b, "dtype") else min(a, b)
        case prim.Max():
            a, b = map(rec, expr.children)
            return np.maximum(a, b) if hasattr(a, "dtype") or hasattr(b, "dtype") else max(a, b)
        case prim.Comparison():
            left, right = rec(expr.left), rec(expr.right)
            return {
                "<": np.less,
                "<=": np.less_equal,
                ">": np.greater,
                ">=": np.greater_equal,
                "==": np.equal,
                "!=": np.not_equal,
            }[expr.operator](left, right)
        case prim.LogicalAnd():
            return np.logical_and(rec(expr.children[0]), rec(expr.children[1]))
        case prim.LogicalOr():
            return np.logical_or(rec(expr.children[0]), rec(expr.children[1]))
        case prim.LogicalNot():
            return np.logical_not(rec(expr.child))
        case prim.If():
            then, else_ = rec(expr.then), rec(expr.else_)
            common = np.result_type(then, else_)
            then, else_ = np.asarray(then).astype(common), np.asarray(else_).astype(common)
            return np.where(rec(expr.condition), then, else_)
        case prim.Call():
            function = {"abs": np.abs, "sign": np.sign, "round": np.round, "conj": np.conj}.get(
                expr.function.name, getattr(np, expr.function.name, None)
            )
            return function(*map(rec, expr.parameters))
        case TypeCast():
            return np.asarray(rec(expr.operand)).astype(expr.dtype)
        case _:
            return expr


REAL = ["b", "i8", "j8", "i16", "i", "j", "l", "u8", "u16", "u", "ul", "h", "g", "x", "y", "d"]
INTEGERS = REAL[:11]


def random_text(random: Random, names: list[str], depth: int) -> str:
    def inner() -> str:
        return random_text(random, names, depth - 1)

    kind = random.randrange(16) if depth > 0 else 0
    if kind < 2:
        return random.choice([*names, *names, "2", "3", "0.5" if "x" in names else "5"])
    if kind < 7:
        return f"({inner()} {random.choice('+-*')} {inner()})"
    if kind < 9:
        return f"({inner()} {random.choice(['/', '//', '%'])} {inner()})"
    if kind == 9:
        return f"({inner()} {random.choice(['&', '|', '^'])} {inner()})"
    if kind == 10:
        return f"({random.choice(names)} {random.choice(['<<', '>>'])} {random.choice('0239')})"
    if kind == 11:
        return f"{random.choice(['-', '~'])}{inner()}"
    if kind == 12:
        return f"{random.choice(['max', 'min'])}({inner()}, {inner()})"
    if kind == 13:
        comparison = random.choice(["<", "<=", "==", "!=", ">", ">="])
        return f"({inner()} if {inner()} {comparison} {inner()} else {random.choice(names)})"
    if kind == 14:
        return f"{random.choice(names[1:])}**{random.choice('12')}"
    return f"{random.choice(['int16', 'float32', 'int64', 'float64'])}({random.choice(names)})"


SIZE = 64


def inputs() -> dict[str, Any]:
    random = np.random.default_rng(7)
    env = {}
    for name, dtype in ENV.items():
        kind = dtype.kind
        if dtype == np.bool_:
            array = random.integers(0, 2, SIZE).astype(dtype)
        elif kind in "iu":
            info = np.iinfo(dtype)
            array = random.integers(max(info.min, -9), 10, SIZE).astype(dtype)
            array[:8] = np.array([0, 1, 2, 3, 5, 7, info.max, info.min], dtype)
            random.shuffle(array)
        elif kind == "c":
            array = (random.normal(size=SIZE) + 1j * random.normal(size=SIZE)).astype(dtype)
        else:
            array = (random.normal(size=SIZE) * 4).astype(dtype)
            array[:4] = np.array([0.0, 1.0, np.inf, np.nan]).astype(dtype)
            random.shuffle(array)
        env[name] = array
    return env


@functools.cache
def overflow_flags() -> tuple[str, ...]:
    """What has a program name signed overflow when it happens, if the compiler can do that."""
    flags = ("-fsanitize=signed-integer-overflow",)
    command = ["g++", *flags, "-x", "c++", "-shared", "-fPIC", "-o", os.devnull, "-"]
    done = subprocess.run(command, input=b"int f(int a) { return a + 1; }", capture_output=True)
    return flags if done.returncode == 0 else ("-fwrapv",)


def compute(texts: list[str], env: dict[str, Any], folder: Path) -> list[np.ndarray[Any, Any]]:
    """The values of expressions by way of C, all compiled at once."""
    out: list[np.ndarray[Any, Any]] = []
    functions = []
    names = list(TYPES)
    for number, text in enumerate(texts):
        expr = parse_expression(text)
        dtype = dtype_of(expr, ENV.__getitem__)
        assert not isinstance(dtype, RunTime)
        p = Lowering(named=lambda n: Element(f"{n}_", (Name("at"),)))
        c_text = expression_text(p(expr, dtype))
        arguments = ", ".join(f"{C_TYPES[ENV[n]]} const *{n}_" for n in names)
        functions.append(
            f'extern "C" __attribute__((visibility("default"))) void f{number}({arguments}, '
            f"{C_TYPES[dtype]} *out) {{\n"
            f"    for (int at = 0; at < {SIZE}; ++at) out[at] = {c_text};\n}}\n"
        )
        out.append(np.zeros(SIZE, dtype))
    source = folder / "values.cpp"
    source.write_text(
        '#include "cuda_words.h"\n' + preamble(device_functions()) + "\n".join(functions)
    )
    library = folder / "values.so"
    subprocess.run(
        [
            "g++",
            *("-std=c++17", "-shared", "-fPIC", "-O0", "-ffp-contract=off", "-w"),
            *overflow_flags(),
            f"-I{Path(host.__file__).parent}",
            *("-o", str(library), str(source)),
        ],
        check=True,
    )
    code = ctypes.CDLL(str(library))
    for number, array in enumerate(out):
        pointers = [ctypes.c_void_p(env[n].ctypes.data) for n in names]
        getattr(code, f"f{number}")(*pointers, ctypes.c_void_p(array.ctypes.data))
    return out


def assert_same(text: str, got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    assert got.dtype == expected.dtype, (text, got.dtype, expected.dtype)
    if got.dtype.kind in "biu":
        same = got == expected
    else:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-12, 16: 1e-12}[got.dtype.itemsize]
        if got.dtype == DTYPES["complex64"]:
            tolerance = 1e-5
        if got.dtype == DTYPES["bfloat16"]:
            tolerance = 2e-2
        same = np.isclose(
            got.astype(wide), expected.astype(wide), rtol=tolerance, atol=1e-37, equal_nan=True
        )
    assert same.all(), (text, printed(text), got[~same], expected[~same], np.flatnonzero(~same))


def values(texts: list[str], tmp_path: Path) -> None:
    env = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            expected = [
                np.broadcast_to(np.asarray(value(parse_expression(t), env)), SIZE) for t in texts
            ]
    for text, got, want in zip(texts, compute(texts, env, tmp_path), expected, strict=True):
        assert_same(text, got, want)


@pytest.fixture(autouse=True)
def no_overflow(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No text computes what C has no meaning for."""
    yield
    said = capfd.readouterr().err
    assert "runtime error" not in said, said


@pytest.mark.host
def test_overflow_shows_here(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if overflow_flags() == ("-fwrapv",):
        pytest.skip("the compiler comes without its sanitizer")
    source, library = tmp_path / "over.cpp", tmp_path / "over.so"
    source.write_text('extern "C" int f(int a) { return a + 1; }')
    flags = ["-shared", "-fPIC", *overflow_flags()]
    subprocess.run(["g++", *flags, "-o", str(library), str(source)], check=True)
    assert ctypes.CDLL(str(library)).f(2**31 - 1) == -(2**31)
    assert "signed integer overflow" in capfd.readouterr().err


@pytest.mark.host
@pytest.mark.parametrize("names", [REAL, INTEGERS], ids=["all", "integers"])
def test_random_expressions_have_numpys_values(names: list[str], tmp_path: Path) -> None:
    random = Random(2)
    env = inputs()
    texts: list[str] = []
    refused = 0
    while len(texts) < 150:
        text = random_text(random, names, 3)
        expr = parse_expression(text)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = np.asarray(value(expr, env))
            except (TypeError, OverflowError, ZeroDivisionError, ValueError):
                expected = None
        try:
            dtype = dtype_of(expr, ENV.__getitem__)
        except TypeInferenceError:
            assert expected is None, text
            refused += 1
            continue
        if isinstance(dtype, RunTime) or expected is None:
            continue
        assert dtype == expected.dtype, (text, dtype, expected.dtype)
        texts.append(text)
    assert refused
    values(texts, tmp_path)


@pytest.mark.host
def test_functions_have_numpys_values(tmp_path: Path) -> None:
    texts = [
        f"{name}({argument})"
        for name in (
            *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin"),
            *("cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc"),
            *("round", "abs", "sign", "isnan", "isinf", "isfinite"),
        )
        for argument in ("h", "x", "d", "i + 0.0")
    ]
    texts += ["hypot(x, y)", "copysign(x, y)", "fmod(x, y)", "fmin(x, y)", "fmax(d, x)"]
    texts += ["abs(i8)", "abs(l)", "abs(u8)", "sign(i16)", "floor(i)", "x**-2", "d**0.5", "x**y"]
    texts += ["i**u8 % 7", "l << j8", "i >> u8", "i8 << j8", "x**4", "i8**3", "u8 == 300"]
    texts += ["abs(i)", "abs(i + j)", "i**2", "i**3", "l**5 - i", "i16**3 + i16*j8*i16", "u16*u16"]
    texts += ["-(i*j) + 7", "3 - (i - j)*l", "(i + j)//3", "(i - 3*j) % 5", "u16**2*u16 - i16"]
    texts += ["(u % 8 - u % 5)*(i % 2**20)*(i % 2**20)", "(-(u % 3))*(i % 2**20)*(i % 2**20)"]
    texts += [
        "(u8 % 4 - u8 % 3)*(i % 2**13)*(j % 2**13)",
        "int64(u % 8 - u % 5)*(i % 2**20)*(i % 2**20)",
    ]
    texts += ["u < -1", "-1 < u", "i < 2**40", "l < ul", "ul <= l", "u > i", "l == ul"]
    values(texts, tmp_path)


@pytest.mark.host
def test_complex_numbers_have_numpys_values(tmp_path: Path) -> None:
    texts = ["z + w", "z*w", "z/w", "z - x", "2*z + 1", "z*2j", "1/z", "x/w", "-z", "conj(z)"]
    texts += ["abs(z)", "real(w)", "imag(z)", "exp(z)", "log(w)", "sqrt(z)", "sqrt(w)", "sin(z)"]
    texts += ["cos(w)", "z**2", "z**3", "w**-1", "w**2.5", "z == w", "z != z", "isnan(z*x)"]
    texts += ["z if b else w", "d*1j", "complex64(w)", "complex128(z)*1j", "complex64(i)"]
    finite = inputs()
    for name in ("x", "d"):
        finite[name] = np.nan_to_num(finite[name], posinf=3.0) + finite[name].dtype.type(0.5)
    with np.errstate(all="ignore"):
        expected = [np.asarray(value(parse_expression(t), finite)) for t in texts]
    for text, got, want in zip(texts, compute(texts, finite, tmp_path), expected, strict=True):
        assert_same(text, got, want)


@pytest.mark.host
def test_bfloat16_rounds_after_each_operation(tmp_path: Path) -> None:
    env = inputs()
    bf = env["bf"]
    small = bf.dtype.type
    got = compute(["bf*bf + bf", "bf + 0.3", "bf*i8", "bf + h", "bf < 0.5"], env, tmp_path)
    with np.errstate(all="ignore"):
        assert_same("bf*bf + bf", got[0], bf * bf + bf)
        assert_same("bf + 0.3", got[1], bf + small(0.3))
        assert_same("bf*i8", got[2], bf * env["i8"].astype(ml_dtypes.bfloat16))
        assert_same("bf + h", got[3], bf.astype(np.float32) + env["h"].astype(np.float32))
        assert_same("bf < 0.5", got[4], bf < small(0.5))


# }}}


def test_float_constants_round_trip() -> None:
    random = Random(3)
    for _ in range(300):
        number = math.ldexp(random.uniform(1, 2), random.randint(-140, 120))
        text = printed(f"x*{number!r}").removeprefix("x * ")
        assert text.endswith("f")
        assert np.float32(text[:-1]) == np.float32(number)
        assert float(printed(f"d*{number!r}").removeprefix("d * ")) == number


def test_types_are_those_in_which_c_computes() -> None:
    """What lowering takes a type for is what the rules of C say of the tree that it made."""
    variables = {name: Variable(dtype) for name, dtype in ENV.items()}
    random = Random(11)
    texts = TEXTS.strip().splitlines()
    texts += [random_text(random, REAL, 3) for _ in range(600)]
    for text in texts:
        try:
            value = Lowering().rec(parse_expression(text))
        except TypeInferenceError:
            continue
        if not isinstance(value, Value):
            continue
        variables["a"] = Variable(ENV["a"], int("a[" in text))
        kind = Checker(variables).of(value.node)
        if value.unsigned:
            assert kind in (DTYPES["uint32"], DTYPES["uint64"]), text
        elif value.dtype in NARROW:
            assert kind in (value.dtype, DTYPES["int32"]), text
        else:
            assert kind == value.dtype, text


@pytest.mark.nvrtc
def test_everything_compiles_with_nvrtc() -> None:
    from cuda.bindings import nvrtc

    functions = []
    for number, line in enumerate(TEXTS.strip().splitlines()):
        p = Lowering()
        expr = parse_expression(line.replace("a[i]", "a"))
        text = expression_text(p(expr))
        dtype = dtype_of(expr, ENV.__getitem__)
        assert not isinstance(dtype, RunTime)
        arguments = ", ".join(f"{C_TYPES[ENV[n]]} {n}" for n in TYPES)
        functions.append(
            f'extern "C" __global__ void f{number}({C_TYPES[dtype]} *out, {arguments}) '
            f"{{ *out = {text}; }}"
        )
    source = preamble(device_functions()) + "\n".join(functions)
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"all.cu", 0, [], [])
    assert int(error) == 0
    options = [b"--gpu-architecture=sm_80", f"--include-path={include_directory()}".encode()]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(size)  # not b" " * size: one blank is the same object for the whole process
    nvrtc.nvrtcGetProgramLog(program, log)
    assert int(error) == 0, log.decode()
