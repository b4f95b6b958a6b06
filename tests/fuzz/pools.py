"""Values to call with: hostile ones that fit nowhere, and nearly valid ones."""

from __future__ import annotations

import random
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

import loopkit as lk


class NoHash:
    """Cannot stand in a set, and is equal to everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


class NoEq:
    """Cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparison")

    def __hash__(self) -> int:
        return 0


class NoRepr:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class NoBool:
    """Is neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("no truth")

    def __repr__(self) -> str:
        return "NoBool()"


class Str(str):
    """A kind of text."""


def hostile(rng: random.Random) -> Any:
    """A value that hardly any argument can have."""
    return rng.choice(_HOSTILE)()


_HOSTILE = [
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 2**31,
    lambda: 2**63,
    lambda: 2**64,
    lambda: -(2**63) - 1,
    lambda: 10**30,
    lambda: 1.5,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 1j,
    lambda: "",
    lambda: " ",
    lambda: "\n",
    lambda: ",",
    lambda: "x\ny",
    lambda: "\ud800",
    lambda: "\0",
    lambda: "é",
    lambda: "x" * 5000,
    lambda: "(" * 500,
    lambda: "__import__('os')",
    lambda: "lambda",
    lambda: "__half",
    lambda: b"i",
    lambda: bytearray(b"i"),
    lambda: (),
    list,
    dict,
    lambda: set(),
    lambda: (None,),
    lambda: [[]],
    lambda: [["i"]],
    lambda: {"i": None},
    lambda: {None: "l.0"},
    lambda: {1: 2},
    lambda: object(),
    lambda: object,
    lambda: lambda x: x,
    lambda: (i for i in "ij"),
    lambda: iter(()),
    lambda: range(3),
    lambda: np.int32(4),
    lambda: np.int64(2**40),
    lambda: np.uint64(2**63),
    lambda: np.float32(2),
    lambda: np.bool_(True),
    lambda: np.str_("i"),
    lambda: np.array("i"),
    lambda: np.array(4),
    lambda: np.array([1, 2]),
    lambda: np.array([], dtype="float32"),
    lambda: np.zeros((2, 2)),
    lambda: np.ma.masked,
    lambda: np.dtype([("x", "f4")]),
    lambda: NoHash(),
    lambda: NoEq(),
    lambda: NoRepr(),
    lambda: NoBool(),
    lambda: Str("i"),
    lambda: [NoHash()],
    lambda: (NoRepr(), NoEq()),
    lambda: prim.Variable("i"),
    lambda: prim.Variable("no such name"),
    lambda: prim.Variable("n") + 1,
    lambda: prim.Sum((prim.Variable("n"), "x")),
    lambda: prim.Subscript(prim.Variable("a"), prim.Variable("i")),
    lambda: prim.Quotient(1, 0),
    lambda: isl.Set("{ [i] : 0 <= i < 4 }"),
    lambda: isl.Set("{ [i] : false }"),
    lambda: isl.Map("{ [i] -> [j] : i = j }"),
    lambda: lk.AddressSpace.LOCAL,
    lambda: lk.GlobalArg("a"),
    lambda: lk.make_kernel("{ [i]: 0 <= i < 4 }", "a[i] = 1"),
    lambda: Exception("x"),
    lambda: type("Meta", (), {})(),
    lambda: NotImplemented,
    lambda: ...,
]

WORDS = {
    "iname": ["i", "j", "k", "i_inner", "i_outer", "j_inner", "k_inner", "ii", "I", "n"],
    "array": ["a", "b", "c", "x", "y", "t", "acc", "col", "row", "A"],
    "id": ["insn", "insn_0", "insn_update", "fetch_a", "w", "init"],
    "size": ["n", "m", "l", "N"],
    "new": ["p", "q", "i_new", "n", "i", "for", "int", "x_", "_", "u0"],
    "tag": ["l.0", "l.1", "l.2", "g.0", "g.1", "g.2", "unr", "ilp", "for", "l.auto", "l.3", "vec"],
    "dtype": [
        "float32",
        "float64",
        "float16",
        "int32",
        "int64",
        "uint8",
        "bool",
        "complex64",
        "f4",
    ],
    "space": ["private", "local", "global", "auto", "shared"],
    "match": ["id:*", "id:insn*", "writes:c", "reads:a and not id:x", "iname:i", "tag:t", "*", "("],
    "text": [
        "i",
        "n - 1",
        "a[i]",
        "2*i + 1",
        "a[i, j]*b[j, k]",
        "acc",
        "f(x)",
        "0.5",
        "1/0",
        "base",
    ],
    "cond": ["n >= 1", "n mod 16 = 0 and m > 3", "n = 2*m", "n < 0", "n >= 1 or m >= 1", "i >= 0"],
}


def _words(text: str) -> list[str]:
    return text.split()


HEADERS = _words("""
    abort abs acos acosf acosh asin asinh atan atan2 atan2f atanh atoi bsearch calloc cbrt ceil
    clock copysign cos cosh cospi cyl_bessel_i0 difftime div erf erfc erfcinv erfcx erfinv exit
    exp exp10 exp2 expm1 fabs fdim fdivide fma fmax fmin fmod free frexp getenv hypot ilogb
    isalpha isfinite isinf isnan isnormal j0 j0f j1 jn jnf labs ldexp lgamma llabs llrint
    llround log log10 log1p log2 logb lrint lround malloc memcmp memcpy memmove memset modf nan
    nanf nearbyint nextafter nexttoward norm norm3d normcdf normcdfinv printf putchar puts qsort
    rand rcbrt realloc remainder remquo remquof rhypot rint rnorm round rsqrt scalbln scalblnf
    scalbn scalbnf sigaction signbit sin sincos sincosf sincospi sinh sinpi snprintf sprintf
    sqrt srand stderr stdin stdout strcmp strcpy strlen strtod system tan tanh tgamma time trunc
    umax umin vprintf y0 y1 yn ynf errno EOF INFINITY NAN M_PI HUGE_VAL CHAR_BIT INT_MAX FLT_MAX
    DBL_EPSILON assert cudaMalloc cudaError dim3 threadIdx atomicAdd atomicCAS clock64 __ldg
    __syncthreads warpSize half float2 int4 size_t ptrdiff_t int8_t uint32_t complex I std main
    NULL va_list
""")
"""Names that C's library, CUDA's headers and compilers declare."""
BEGINNINGS = ["lk", "LK", "CU", "NV", "CUDA", "cuda", "LOOPKIT", "_", "__", "_A", "lk_", "for"]
"""What reserved names begin with, alone."""


def word(rng: random.Random, kind: str) -> Any:
    """A word of a kind, sometimes of another."""
    return rng.choice(WORDS[kind if rng.random() < 0.9 else rng.choice(sorted(WORDS))])


def names(rng: random.Random, kind: str) -> Any:
    """Several words, in one of the forms that arguments take."""
    some = [word(rng, kind) for _ in range(rng.randrange(4))]
    form = rng.randrange(6)
    if form == 0:
        return ", ".join(map(str, some))
    if form == 1:
        return tuple(some)
    if form == 2:
        return frozenset(some)
    if form == 3:
        return word(rng, kind)
    return some


def number(rng: random.Random) -> int:
    """A small number mostly."""
    return rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 33, 64, 100, 1024, -1, -3, 2**20, 2**31 - 1])
