"""Arithmetic on inames and sizes is that of mathematical integers, however large the sizes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import largest_size

import loopkit as lk

N = largest_size(np.dtype("int32"))
DOMAIN = "{ [i, j]: n - 3 <= i < n and 0 <= j < 4 }"
# Three iterations at the end of what sizes may be; texts that 64 bits hold.
TEXTS = """
j << 1
i << 1
(n - i) << 3
(i << 1) | 1
i*2 ^ n
~(i*2)
i*i
i*n
i**2
i*i & 7
i*3 & 255
i + n + i
-(i*2)
i*4 // 3
-i*4 % 7
i*4 >> 1
-i*4 >> 1
1 << j
i << j
max(i*2, n)
min(i*4, n*3)
abs(i - 3*n)
i*2 if i*2 > n else n*3
(i if i > 5 else n)*4
(i + j)**2
2**j
i + 3000000000
(i*n)//n
(i*n) % 7
fmin(i*2, n)
""".strip().splitlines()
# Texts that 64 bits do not hold for all sizes, unless only their last bits are asked.
LARGE = ["i*i*i", "i**3", "i*n*m", "i << 40", "2**i", "i*i*i*i - 5"]
# What is asked of a value: what follows from only its last bits is another list.
PLACES = [
    "y[i - n + 3, j] = 1 {if=(T) > 1000}",
    "y[i - n + 3, j] = 1 {if=(T) % 5 == 1}",
    "y[i - n + 3, j] = 1 if (T) > 1000 else 2",
    "y[i - n + 3, j] = x[j] < (T)",
    "y[i - n + 3, j] = x[(T) % 4]",
    "y[i - n + 3, j] = 0.5*(T)",
]
LAST_BITS = ["y[i - n + 3, j] = T", "y[i - n + 3, j] = x[j] + (T)", "y[i - n + 3, j] = int32(T)"]


def kernel(place: str, *texts: str, assumptions: str = "n >= 3") -> lk.Kernel:
    """One line for each text."""
    outputs = [lk.GlobalArg(f"y{k}", "int64", (3, 4)) for k in range(len(texts))]
    lines = [
        place.replace("T", text).replace("y[", f"y{k}[", 1).replace("{if", f"{{id=s{k}, if")
        for k, text in enumerate(texts)
    ]
    whole = "\n".join(lines)
    data = [lk.GlobalArg("x", "int64", (4,))] * ("x[" in whole)
    sizes = [lk.ValueArg(name, "int32") for name in "nm" if name == "n" or "m" in "".join(texts)]
    return lk.make_kernel(DOMAIN, whole, [*outputs, *data, *sizes], assumptions=assumptions)


def run(knl: lk.Kernel, executor: str, n: int) -> list[np.ndarray]:
    names = [a.name for a in knl.args if a.name.startswith("y")]
    arguments: dict[str, Any] = {name: np.zeros((3, 4), np.int64) for name in names}
    if "x" in knl.arg_by_name:
        arguments["x"] = np.array([5, -7, 11, 100000])
    if "m" in knl.arg_by_name:
        arguments["m"] = 5
    knl.executor(executor)(**arguments, n=n)
    return [arguments[name] for name in names]


def compare(texts: list[str], knl: lk.Kernel, n: int) -> None:
    found, expected = (run(knl, executor, n) for executor in ("host", "reference"))
    for text, one, other in zip(texts, found, expected, strict=True):
        assert np.array_equal(one, other), text


@pytest.mark.host
@pytest.mark.parametrize("place", [*PLACES, *LAST_BITS])
def test_64_bits_are_taken_where_32_end(place: str) -> None:
    compare(TEXTS, kernel(place, *TEXTS), N)


@pytest.mark.parametrize("place", PLACES)
def test_what_64_bits_may_not_hold_is_refused(place: str) -> None:
    for text in LARGE:
        if (place, text) == (PLACES[0], "i << 40"):  # a bound of the loop over i
            continue
        with pytest.raises(lk.AssumptionError, match=r"(?s)64 bits may not hold '.*assumptions"):
            kernel(place, text).cuda()


@pytest.mark.host
def test_an_affine_condition_is_a_bound_whatever_64_bits_hold() -> None:
    knl = kernel(PLACES[0], "i << 40")
    assert "i = max(n - 3, 1); i < n" in knl.cuda()
    assert knl.prove().ok
    for n in (3, 5, N):
        compare(["i << 40"], knl, n)


@pytest.mark.host
@pytest.mark.parametrize("place", PLACES)
def test_assumptions_make_it_fit(place: str) -> None:
    few = LARGE[:3]
    compare(few, kernel(place, *few, assumptions="3 <= n <= 2000 and 0 <= m <= 2000"), 1999)


@pytest.mark.host
@pytest.mark.parametrize("place", LAST_BITS)
def test_what_is_converted_to_integers_wraps_around(place: str) -> None:
    texts = [*LARGE[:3], "i << 40"]
    compare(texts, kernel(place, *texts), N)


@pytest.mark.host
def test_conditions_that_compute_with_floats() -> None:
    texts = ["i/2 % 5 == 1", "sqrt(i*4) % 5 == 1", "i*0.5 % 2 == 1.5", "2.5 < i*0.5"]
    knl = kernel("y[i - n + 3, j] = 1 {if=T}", *texts)
    for n in (5, 30, N):
        compare(texts, knl, n)


@pytest.mark.parametrize("text", ["i*0.5", "(i*4)/2", "float64(i)", "sqrt(i*4)"])
def test_no_index_is_a_float(text: str) -> None:
    with pytest.raises(lk.TypeInferenceError, match="an index is an integer"):
        kernel("y[i - n + 3, j] = x[(T) % 4]", text)


@pytest.mark.parametrize("text", ["i*m*l + j*l + k", "i*n*m*l + j"])
def test_offsets_in_memory_are_as_small_as_memory(text: str) -> None:
    """What is computed to address a cell needs no bounds on sizes: the array has that cell."""
    shapes = {"x": ("n*n*m*l",), "y": ("n", "m", "l")}
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        f"y[i, j, k] = x[{text}]",
        [*(lk.GlobalArg(name, "float32", shape) for name, shape in shapes.items()), ...],
    )
    assert "(long long)" in str(knl.cuda())
