"""`verify` of simple pairs, as people write one thing in two ways: most are decided."""

from __future__ import annotations

from typing import Any

import pytest

import loopkit as lk

BOX = "{ [i, j, k]: 0 <= i, j < n and 0 <= k < 4 }"
Pair = tuple[lk.Kernel, lk.Kernel]


def make(text: str, dtype: str, domain: Any = BOX) -> lk.Kernel:
    """A kernel over vectors ``x y z w``, square ``a b c``, whole ``p`` and ``h``."""
    if "\n" not in text and " = " not in text:
        text = f"y[i] = {text}"
    kinds = {"p": "int32", "h": "int32", "d": "float64", "q": "int8"}
    data = [
        lk.GlobalArg(
            name, kinds.get(name, dtype), shape="n + 8, n + 8" if name in "abc" else "2*n + 4"
        )
        for name in "xyzwabcphdq"
        if f"{name}[" in text
    ]
    return lk.make_kernel(domain, text, [*data, ...], assumptions="n >= 1", owe_bounds=True)


FLOATS = {
    "double negation": ("-(-x[i])", "x[i]"),
    "times one": ("x[i]*1.0", "x[i]"),
    "divided by one": ("x[i]/1", "x[i]"),
    "a half": ("x[i]/2", "0.5*x[i]"),
    "a quarter": ("x[i]/4.0", "x[i]*0.25"),
    "a difference": ("x[i] - z[i]", "x[i] + (-z[i])"),
    "a negative factor": ("x[i]*(-z[i])", "-(x[i]*z[i])"),
    "another negative factor": ("(-x[i])*z[i]", "x[i]*(-z[i])"),
    "a negative number": ("x[i]*(-2.0)", "-(2*x[i])"),
    "a quotient of a negative": ("(-x[i])/z[i]", "-(x[i]/z[i])"),
    "a negative divisor": ("x[i]/(-z[i])", "-(x[i]/z[i])"),
    "the size of a negative": ("abs(-x[i])", "abs(x[i])"),
    "a size of a size": ("abs(abs(x[i]))", "abs(x[i])"),
    "a square": ("x[i]**2", "x[i]*x[i]"),
    "a root": ("x[i]**0.5", "sqrt(x[i])"),
    "there and back": ("float32(float64(x[i]))", "x[i]"),
    "a wide negative": ("d[i] = float64(-x[i])", "d[i] = -float64(x[i])"),
    "twice": ("x[i] + x[i]", "2*x[i]"),
    "three times": ("x[i] + x[i] + x[i]", "3*x[i]"),
    "a power of two": ("2*(4*x[i])", "x[i]*8"),
    "the larger of one": ("max(x[i], x[i])", "x[i]"),
    "rounded down twice": ("floor(floor(x[i]))", "floor(x[i])"),
    "negatives compared": ("x[i] if -x[i] < -z[i] else w[i]", "x[i] if z[i] < x[i] else w[i]"),
    "widened and compared": (
        "x[i] if float64(x[i]) < float64(z[i]) else w[i]",
        "x[i] if x[i] < z[i] else w[i]",
    ),
    "terms": ("x[i] + z[i]", "z[i] + x[i]"),
    "factors": ("x[i]*z[i]*w[i]", "w[i]*(z[i]*x[i])"),
    "sides of a choice": ("x[i] if x[i] > 0 else z[i]", "z[i] if not x[i] > 0 else x[i]"),
    "conditions in a choice": (
        "x[i] if x[i] > 0 and z[i] > 0 else w[i]",
        "(x[i] if z[i] > 0 else w[i]) if x[i] > 0 else w[i]",
    ),
    "inames the other way round": ("y[0] = sum((i, j), a[i, j])", "y[0] = sum((j, i), a[i, j])"),
    "a sum of sums": ("y[0] = sum(i, sum(j, a[i, j]))", "y[0] = sum((i, j), a[i, j])"),
    "a sum backwards": ("sum(j, x[j])", "sum(j, x[n - 1 - j])"),
    "the largest backwards": ("max(j, x[j])", "max(j, x[n - 1 - j])"),
    "the largest of each": ("max(j, x[i + j])", "max((j, k), x[i + j])"),
    "a mean": ("sum(j, x[j])/4", "0.25*sum(j, x[j])"),
    "a size of a sum": ("abs(-sum(j, x[j]))", "abs(sum(j, x[j]))"),
    "a temporary": ("<> t = x[i] + z[i]\ny[i] = t*t", "(x[i] + z[i])*(x[i] + z[i])"),
    "a chain of temporaries": ("<> t = -x[i]\n<> s = -t\ny[i] = s", "x[i]"),
    "a stored half": ("<> t = x[i]/2\ny[i] = t + z[i]", "z[i] + 0.5*x[i]"),
    "two loops": ("y[i] = -x[i]\nz[i] = 2*y[i]", "z[j] = -2.0*x[j]\ny[i] = -x[i]"),
    "stored twice": ("for i\ny[i] = 2*z[i]\ny[i] = -(-z[i])\nend", "z[i]"),
    "changed under a condition": (
        "for i\n<> t = x[i]\nif z[i] > 0\nt = -x[i]\nend\ny[i] = t*w[i]\nend",
        "(-x[i] if z[i] > 0 else x[i])*w[i]",
    ),
}
WHOLE = {
    "a shift": ("x[i] >> 2", "x[i]//4"),
    "a mask": ("x[i] & 7", "x[i] % 8"),
    "a complement": ("~x[i]", "-x[i] - 1"),
    "twice exclusive": ("(x[i] ^ 5) ^ 5", "x[i]"),
    "itself": ("x[i] & x[i] | 0", "x[i]"),
    "the least of three": ("min(x[i], min(z[i], w[i]))", "min(w[i], min(x[i], z[i]))"),
    "a size": ("abs(x[i])", "max(x[i], -x[i])"),
    "in wider numbers": ("q[i] = int8(int32(q[i]) + int32(q[i]))", "q[i] = 2*q[i]"),
    "squares": ("(x[i] + z[i])*(x[i] - z[i])", "x[i]*x[i] - z[i]*z[i]"),
    "a common factor": ("x[i]*(z[i] + w[i])", "x[i]*z[i] + w[i]*x[i]"),
    "a quotient of a quotient": ("x[i]//2//3", "x[i]//6"),
    "quotient and rest": ("x[i]//4*4 + x[i] % 4", "x[i]"),
    "not less": ("x[i] if not x[i] < z[i] else w[i]", "x[i] if z[i] <= x[i] else w[i]"),
    "neither": (
        "x[i] if not (x[i] < z[i] and z[i] < w[i]) else 0",
        "x[i] if z[i] <= x[i] or w[i] <= z[i] else 0",
    ),
    "the same so often": ("sum(j, x[i])", "n*x[i]"),
    "a sum in two": ("sum(j, x[j] + z[j])", "sum(j, x[j]) + sum(j, z[j])"),
    "a factor of a sum": ("sum(j, x[i]*z[j])", "x[i]*sum(j, z[j])"),
    "four terms": ("sum(k, x[k])", "x[0] + x[1] + x[2] + x[3]"),
    "none or not": ("any(j, x[j] < 0)", "not all(j, x[j] >= 0)"),
    "positive terms": ("sum(j, x[j] if x[j] > 0 else 0)", "sum(j, max(x[j], 0))"),
    "a sum by hand": (
        "for i\n<> s = 0*x[i]\nfor j\ns = s + x[j]\nend\ny[i] = s\nend",
        "sum(j, x[j])",
    ),
    "a counter": ("<int32> c = 0\nfor i\ny[i] = x[c]\nc = c + 1\nend", "x[i]"),
    "a counter of twos": ("<int64> c = 0\nfor i\ny[i] = x[c + 1]\nc = c + 2\nend", "x[2*i + 1]"),
    "a histogram backwards": ("h[p[i]] = h[p[i]] + 1", "h[p[n - 1 - i]] = h[p[n - 1 - i]] + 1"),
    "a matrix product": ("c[i, j] = sum(k, a[i, k]*b[k, j])", "c[j, i] = sum(k, b[k, i]*a[j, k])"),
}
LOOPS: dict[str, tuple[str, str, Any]] = {
    "a guard": ("y[i] = -x[i] {if=i < 5}", "y[j] = -x[j]", "{ [i, j]: 0 <= i, j < n and j < 5 }"),
    "the first one apart": (
        "y[i] = -x[i]",
        "y[0] = -x[0]\ny[j] = -x[j]",
        "{ [i, j]: 0 <= i < n and 1 <= j < n }",
    ),
    "even and odd": (
        "y[i] = 2*x[i]",
        "y[2*j] = x[2*j] + x[2*j]\ny[2*k + 1] = 2*x[2*k + 1]",
        "{ [i, j, k]: 0 <= i < n and 0 <= 2*j < n and 0 <= 2*k + 1 < n }",
    ),
    "tiles by hand": (
        "y[i] = x[i]/2",
        "y[16*j + k] = 0.5*x[16*j + k]",
        "{ [i, j, k]: 0 <= i < n and 0 <= 16*j + k < n and 0 <= k < 16 }",
    ),
    "one loop of two": (
        "c[i, j] = a[i, j] - b[i, j]",
        "c[k // 8, k % 8] = a[k // 8, k % 8] + (-b[k // 8, k % 8])",
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 8 and 0 <= k < 8*n }",
    ),
    "backwards": (
        "y[i] = -(x[i]*z[i])",
        "y[n - 1 - j] = x[n - 1 - j]*(-z[n - 1 - j])",
        "{ [i, j]: 0 <= i, j < n }",
    ),
    "a copy handed on": (
        "y[0] = x[0]\ny[i] = y[i - 1]",
        "y[0] = x[0]\ny[j] = x[0]",
        "{ [i, j]: 1 <= i, j < n }",
    ),
    "a first product": (
        (
            "for i\nfor k\nc[i, 0] = a[i, 0]*b[0, 0] if k == 0 "
            "else c[i, 0] + a[i, k]*b[k, 0]\nend\nend"
        ),
        "c[i, 0] = sum(k, a[i, k]*b[k, 0])",
        "{ [i, k]: 0 <= i < n and 0 <= k < n }",
    ),
    "a choice of places": (
        "y[i] = x[i] if i < 5 else z[i]",
        "y[j] = x[j] {if=j < 5}\ny[k] = z[k] {if=k >= 5}",
        "{ [i, j, k]: 0 <= i, j, k < n }",
    ),
}
OPEN = ("a histogram backwards", "a copy handed on", "a first product")
"""Equal pairs about which nothing is said: iterations go on with what others have computed."""
PAIRS: dict[str, Pair] = {
    **{n: (make(a, "float32"), make(b, "float32")) for n, (a, b) in FLOATS.items()},
    **{n: (make(a, "int32"), make(b, "int32")) for n, (a, b) in WHOLE.items()},
    **{n: (make(a, "float32", d), make(b, "float32", d)) for n, (a, b, d) in LOOPS.items()},
}


@pytest.mark.parametrize("name", PAIRS)
def test_simple_pairs_are_equal(name: str) -> None:
    one, two = PAIRS[name]
    answers = {lk.verify(one, two).answer, lk.verify(two, one).answer}
    assert answers == {"undecided" if name in OPEN else "equal"}


OTHER = {
    "a narrow counter": (
        "float32",
        "<int32> c = 0\nfor i\ny[i] = x[c + 1]\nc = c + 2\nend",
        "x[2*i + 1]",
    ),
    "a zero": ("float32", "x[i] + 0.0", "x[i]"),
    "a difference": ("float32", "x[i] - x[i]", "0*x[i]"),
    "another quotient": ("float32", "x[i]/3", "x[i]*(1/3)"),
    "half of twice": ("float32", "(2*x[i])*0.5", "x[i]"),
    "factors that get infinite": (
        "float64",
        f"(x[i]*{2.0**1000})*{2.0**100}",
        f"(x[i]*{2.0**1000})*{2.0**110}",
    ),
    "terms that get infinite": (
        "float64",
        f"x[i]*{2.0**1023} + x[i]*{2.0**1023}",
        f"x[i]*{2.0**1022} + x[i]*{2.0**1023}",
    ),
    "another order": ("float32", "(x[i] + z[i]) + w[i]", "x[i] + (z[i] + w[i])"),
    "negative terms": ("float32", "-x[i] - z[i]", "-(x[i] + z[i])"),
    "a root of a square": ("float32", "sqrt(x[i]*x[i])", "abs(x[i])"),
    "the larger of two": ("float32", "max(x[i], z[i])", "max(z[i], x[i])"),
    "the opposite": (
        "float32",
        "x[i] if not x[i] < z[i] else w[i]",
        "x[i] if z[i] <= x[i] else w[i]",
    ),
    "a narrower type": ("float64", "float64(float32(x[i]))", "x[i]"),
    "as a choice": ("float32", "max(x[i], z[i])", "x[i] if z[i] < x[i] else z[i]"),
    "bits that are lost": ("int32", "(x[i]*2)//2", "x[i]"),
    "another shift": ("int32", "x[i] >> 2", "-(-x[i] >> 2)"),
    "fewer times": ("int32", "sum(j, x[i])", "(n - 1)*x[i]"),
    "one term less": ("int32", "sum(k, x[k])", "x[0] + x[1] + x[2]"),
    "all and any": ("int32", "any(j, x[j] < 0)", "all(j, x[j] < 0)"),
    "a guard that changes": (
        "float32",
        "for i\n<> t = x[i]\nt = -t {if=t > 0}\nt = -t {if=t < 0}\ny[i] = t\nend",
        "-x[i] if x[i] > 0 else x[i]",
    ),
    "a transposition in place": (
        "float32",
        "a[i, j] = a[j, i]",
        "for i, j\n<> t = a[j, i]\na[j, i] = a[i, j]\na[i, j] = t\nend",
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_different_pairs_are_not_equal(name: str) -> None:
    dtype, *texts = OTHER[name]
    one, two = (make(text, dtype) for text in texts)
    found = {lk.verify(one, two).answer, lk.verify(two, one).answer}
    assert "equal" not in found
