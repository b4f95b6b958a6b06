"""Creation takes time in proportion to the text; limits are generous, for busy machines."""

from __future__ import annotations

import numpy as np
import pytest
from pace import seconds

import loopkit as lk
from loopkit import make_kernel


def creation(domain: str, text: str) -> float:
    """The seconds that a kernel takes."""
    return seconds(lambda: make_kernel(domain, text, dtypes={"a": "float32"}))


def many_statements(count: int) -> tuple[str, str]:
    lines = ["<> t0 = a[i]"]
    lines += [f"<> t{s} = t{s - 1} * t{s // 2} + {s}" for s in range(1, count - 1)]
    return "{ [i]: 0 <= i < n }", "\n".join([*lines, f"b[i] = t{count - 2}"])


def chain(count: int) -> tuple[str, str]:
    inames = [f"j{s}" for s in range(count)]
    lines = ["<> t0[j0] = a[i, j0]"]
    lines += [f"<> t{s}[j{s}] = 2 * t{s - 1}[j{s}] + 1" for s in range(1, count - 1)]
    lines += [f"b[i, j{count - 1}] = t{count - 2}[j{count - 1}]"]
    bounds = " and ".join(f"0 <= {iname} < 8" for iname in inames)
    return f"{{ [i, {', '.join(inames)}]: 0 <= i < n and {bounds} }}", "\n".join(lines)


def test_many_statements() -> None:
    assert creation(*many_statements(200)) < 0.3
    assert creation(*many_statements(400)) < 4 * creation(*many_statements(100)) * 2.5


def test_a_chain_of_loops() -> None:
    assert creation(*chain(160)) < 0.6
    assert creation(*chain(160)) < 4 * creation(*chain(40)) * 2.5


PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)

CASES = {
    "remainders of a domain": (
        " and ".join(f"(i + {q}) mod {p} != 0" for q, p in enumerate(PRIMES)),
        "y[i] = 1",
    ),
    "remainders of a statement": (
        "0 <= i",
        "if "
        + " and ".join(f"(i + {q}) % {p} != 0" for q, p in enumerate(PRIMES))
        + "\ny[i] = 1\nend",
    ),
    "sizes that are left out": (
        "0 <= i",
        "if " + " and ".join(f"i != p{q}" for q in range(8)) + "\ny[i] = 1\nend",
    ),
    "two cases of each condition": (
        "0 <= i",
        "if "
        + " and ".join(f"not (i % {p} == 1 and i > p{q})" for q, p in enumerate(PRIMES))
        + "\ny[i] = 1\nend",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_conditions_of_many_cases(case: str) -> None:
    """Conditions that exclude values make as many cases as their product: none is looked at."""
    condition, text = CASES[case]
    domain = f"{{ [i]: 0 <= i < n and {condition} }}"

    def schedule() -> lk.Kernel:
        return make_kernel(domain, text, dtypes={"y": "int32"}).split_iname(
            "i", 32, outer_tag="g.0", inner_tag="l.0"
        )

    assert seconds(schedule) < 4
    knl = schedule()
    sizes = {a.name: 3 * number for number, a in enumerate(knl.args) if a.name.startswith("p")}
    values = {"y": np.zeros(100, np.int32), "n": 100, **sizes}
    want = knl.executor("reference")(**{**values, "y": values["y"].copy()})
    np.testing.assert_array_equal(knl.executor("host")(**values), want)


def test_too_many_cases_are_a_named_error() -> None:
    conditions = " and ".join(f"(i < p{q} or i >= q{q})" for q in range(16))
    with pytest.raises(lk.UndecidedError, match="what the text touches"):
        make_kernel("{ [i]: 0 <= i < n }", f"if {conditions}\n y[i] = 1\nend")


def test_many_bits_of_one_iname() -> None:
    index = " | ".join(f"(i*{2 * bit + 3} & {1 << bit}) << {bit}" for bit in range(10))
    assert creation("{ [i]: 0 <= i < 1024 }", f"y[{index}] = a[i]") < 3
    knl = make_kernel("{ [i]: 0 <= i < 1024 }", f"y[{index}] = a[i]")
    assert knl.arg_by_name["y"].shape == (1 + max(eval(index, {"i": i}) for i in range(1024)),)  # type: ignore[union-attr]
    with pytest.raises(lk.OutOfBoundsError, match="is negative"):
        make_kernel("{ [i]: 0 <= i < 16 }", f"y[({index[: index.index(' << 5')]}) - 3] = a[i]")
