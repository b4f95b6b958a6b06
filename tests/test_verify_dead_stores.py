"""`verify` ignores dead stores, and knows that `x + x` is `2*x`."""

from __future__ import annotations

from typing import Any

import pytest

import loopkit as lk


def make(text: str, domain: str = "{ [i, j]: 0 <= i, j < n }", dtype: str = "float32") -> lk.Kernel:
    data: list[Any] = [lk.GlobalArg(a, dtype, shape="n + 1") for a in "xyz"]
    used = [a for a in data if a.name in "xy" or "z[" in text]
    return lk.make_kernel(domain, text, [*used, ...], assumptions="n >= 1")


def both_ways(one: lk.Kernel, two: lk.Kernel) -> set[str]:
    return {lk.verify(one, two).answer, lk.verify(two, one).answer}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64"])
@pytest.mark.parametrize("text", ["y[i] = x[i] + x[i]", "y[i] = x[i]*2"])
def test_twice_is_a_sum(dtype: str, text: str) -> None:
    assert both_ways(make("y[i] = 2*x[i]", dtype=dtype), make(text, dtype=dtype)) == {"equal"}


def test_twice_inside_of_a_schedule() -> None:
    one = make("y[i] = (2*x[i] + x[i + 1])*3")
    two = make("y[i] = (x[i] + x[i] + x[i + 1])*3").split_iname("i", 8, inner_tag="l.0")
    assert both_ways(one, two) == {"equal"}


MULTIPLES = {
    "3*x[i]": ("x[i] + x[i] + x[i]", "x[i] + 2*x[i]", "4*x[i] - x[i]"),
    "8*x[i]": ("x[i] << 3", "x[i]*8", "2*(4*x[i])", "(x[i] << 1 << 1)*2", "9*x[i] - x[i]"),
    "2*(x[i] + z[i])": ("z[i] + x[i] + (z[i] + x[i])", "(x[i] + z[i]) << 1"),
    "3*x[i]*z[i] + 4": ("2 + z[i]*(2*x[i]) + x[i]*z[i] + 2", "4 + 4*z[i]*x[i] - x[i]*z[i]"),
    "z[i]*(x[i] + 5)": ("5*z[i] + x[i]*z[i]", "x[i]*z[i] + (z[i] << 2) + z[i]"),
    "0*x[i] + z[i]": ("z[i] + x[i] - x[i]",),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize(("one", "two"), [(a, b) for a, bs in MULTIPLES.items() for b in bs])
def test_multiples_of_whole_numbers(one: str, two: str, dtype: str) -> None:
    kernels = (make(f"y[i] = {e}", dtype=dtype) for e in (one, two))
    assert both_ways(*kernels) == {"equal"}


ROUNDED_ONCE = {
    3: ("x[i] + x[i] + x[i]", "x[i]*2 + x[i]"),
    4: ("2*(2*x[i])", "(x[i] + x[i]) + (x[i] + x[i])", "x[i] + x[i] + x[i] + x[i]"),
    5: ("x[i] + x[i] + x[i] + x[i] + x[i]", "x[i] + 2*(2.0*x[i])"),
    -4: ("-x[i] - 3*x[i]", "(-2*x[i])*2.0"),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("n", "text"), [(n, t) for n, ts in ROUNDED_ONCE.items() for t in ts])
def test_multiples_that_are_rounded_once(n: int, text: str, dtype: str) -> None:
    kernels = (make(f"y[i] = {e}", dtype=dtype) for e in (f"{n}*x[i]", text))
    assert both_ways(*kernels) == {"equal"}


OTHERS = [
    ("float32", "6*x[i]", "x[i] + x[i] + x[i] + x[i] + x[i] + x[i]"),
    ("float32", "9*x[i]", "3*(3*x[i])"),
    ("float32", "x[i]", "0.5*(2*x[i])"),
    ("float32", "0.125*x[i]", "0.5*(0.25*x[i])"),
    ("float32", "3*x[i]", "4*x[i] - x[i]"),
    ("float32", "x[i] + z[i] + x[i]", "2*x[i] + z[i]"),
    ("float16", "0*x[i]", "x[i] - x[i]"),
    ("int8", "x[i] << 8", "0*x[i]"),
    ("int8", "x[i] << 3", "x[i] >> 3 << 6"),
    ("int8", "x[i]*x[i]", "2*x[i]"),
    ("int8", "4*x[i] // 2", "2*x[i]"),
    ("uint8", "(x[i] << 4) >> 4", "x[i]"),
]


@pytest.mark.parametrize(("dtype", "one", "two"), OTHERS)
def test_other_multiples(dtype: str, one: str, two: str) -> None:
    assert "equal" not in both_ways(*(make(f"y[i] = {e}", dtype=dtype) for e in (one, two)))


@pytest.mark.parametrize(
    ("text", "is_equal"), [("3*x[i]", True), ("3*int64(x[i])", False), ("int64(x[i]) << 1", False)]
)
def test_multiples_wrap_around_in_the_type_of_their_operands(text: str, *, is_equal: bool) -> None:
    def made(text: str) -> lk.Kernel:
        data = [lk.GlobalArg("x", "int8"), lk.GlobalArg("y", "int64"), ...]
        return lk.make_kernel("{ [i]: 0 <= i < 9 }", f"y[i] = {text}", data)

    same = "x[i] + x[i]" if "1" in text else "x[i] + x[i] + x[i]"
    assert ("equal" in both_ways(made(text), made(same))) == is_equal


def test_twice_a_complex_number_is_left_open() -> None:
    kernels = (make(t, dtype="complex64") for t in ("y[i] = 2*x[i]", "y[i] = x[i] + x[i]"))
    assert "equal" not in both_ways(*kernels)


PLAIN = "y[i] = x[i]"
DEAD = {
    "in the same iteration": (PLAIN, "for i\n  y[i] = 0\n  y[i] = x[i]\nend"),
    "in a loop before": (PLAIN, "y[j] = x[j] + 1\ny[i] = x[i]"),
    "one after the other": (PLAIN, "for i\n  y[i] = 1\n  y[i] = 2*x[i]\n  y[i] = x[i]\nend"),
}


@pytest.mark.parametrize("case", DEAD)
def test_dead_stores(case: str) -> None:
    one, two = map(make, DEAD[case])
    assert both_ways(one, two) == {"equal"}


def test_stores_that_are_dead_in_part() -> None:
    one = make("if i > 0\n  y[i] = x[i]\nelse\n  y[i] = 7\nend")
    two = make("y[i] = 7\ny[j] = x[j]", "{ [i, j]: 0 <= i < n and 1 <= j < n }")
    assert both_ways(one, two) == {"equal"}


def test_a_store_that_is_read_first_is_no_dead_one() -> None:
    one = make("for i\n  y[i] = 5\n  z[i] = y[i]\n  y[i] = x[i]\nend")
    two = make("for i\n  z[i] = y[i]\n  y[i] = x[i]\nend")
    assert both_ways(one, two) == {"different"}


def test_a_store_that_data_may_leave_is_no_dead_one() -> None:
    one = make("for i\n  y[i] = 5\n  if x[i] > 0\n    y[i] = x[i]\n  end\nend")
    two = make("for i\n  if x[i] > 0\n    y[i] = x[i]\n  end\nend")
    assert both_ways(one, two) == {"different"}


def test_an_update_sees_what_was_stored() -> None:
    one = make("y[i] = 5\ny[j] = y[j] + x[j]")
    assert both_ways(one, make("y[j] = y[j] + x[j]")) == {"different"}


DATA = [lk.GlobalArg("x, y", "float32", shape="n + 2"), ...]


def window(reach: int = 2) -> lk.Kernel:
    text = f"""
    <> a = x[0]
    <> b = x[1]
    for i
      <> c = x[i + {reach}]
      y[i] = a + b + c
      a = b
      b = c
    end
    """
    return lk.make_kernel("{ [i]: 0 <= i < n }", text, DATA, assumptions="n >= 1")


def test_registers_that_rotate() -> None:
    text = "y[i] = x[i] + x[i + 1] + x[i + 2]"
    plain = lk.make_kernel("{ [i]: 0 <= i < n }", text, DATA, assumptions="n >= 1")
    assert both_ways(plain, window()) == {"equal"}
    assert both_ways(plain, window(reach=1)) == {"different"}


@pytest.mark.parametrize(("last", "answer"), [("b[t % 2, i]", "equal"), ("b[0, i]", "different")])
def test_a_double_buffer(last: str, answer: str) -> None:
    domain = "{ [t, i, j, k]: 0 <= t < m and 0 <= i, j, k < 16 }"
    data = [lk.GlobalArg("x, y", "float32", shape="m, 16"), ...]
    buffer = lk.TemporaryVariable("b", "float32", shape=(2, 16))
    text = f"""
    b[0, j] = x[0, j]
    for t
      if t + 1 < m
        b[(t + 1) % 2, k] = x[t + 1, k]
      end
      y[t, i] = 2*{last}
    end
    """
    plain = lk.make_kernel(domain, "y[t, i] = 2*x[t, i]", data, assumptions="m >= 1")
    buffered = lk.make_kernel(domain, text, [buffer, *data], assumptions="m >= 1")
    assert both_ways(plain, buffered) == {answer}


BRANCH = "if x[i] > z[i]\n  y[i] = x[i]\nelse\n  y[i] = {}\nend"
CHOICE = "y[i] = x[i] if x[i] > z[i] else {}"


@pytest.mark.parametrize(
    ("number", "kinds", "is_equal"),
    [
        # On its way through the type of the choice a number may be rounded, or not.
        ("2049.0000001", ("float32", "float16"), False),
        ("16777217", ("float32", "float64"), False),
        ("0.1", ("float16", "float32"), False),
        ("0.1", ("float32", "float32"), True),
        ("2048", ("float32", "float64"), True),
        ("inf", ("float32", "float64"), True),
        ("-1", ("float32", "uint8"), False),
    ],
)
def test_numbers_that_are_stored_as_they_are(
    number: str, kinds: tuple[str, str], *, is_equal: bool
) -> None:
    data = [lk.GlobalArg(a, k, shape="n") for a, k in zip("xy", kinds, strict=True)]
    choice = f"y[i] = {number} if x[i] > 0 else x[i]"
    branch = f"y[i] = {number} {{if=x[i] > 0}}\ny[i] = x[i] {{if=not x[i] > 0}}"
    if number == "-1":  # no text may store it there
        branch = "y[i] = 1 {if=x[i] > 0}\ny[i] = x[i] {if=not x[i] > 0}"
    one, two = (
        lk.make_kernel("{ [i]: 0 <= i < n }", text, [*data, ...], assumptions="n >= 1")
        for text in (choice, branch)
    )
    assert (both_ways(one, two) == {"equal"}) == is_equal


def test_choices_of_numbers_are_branches() -> None:
    one = make("y[i] = 1 if x[i] > 0 else (2 if x[i + 1] > 0 else 0.1)")
    two = make("if x[i] > 0\ny[i] = 1\nelif x[i + 1] > 0\ny[i] = 2\nelse\ny[i] = 0.1\nend")
    assert both_ways(one, two) == {"equal"}


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("other", ["-z[i]", "0", "(z[i] if z[i] > 0 else x[i + 1])"])
def test_a_branch_is_a_choice_that_is_stored(dtype: str, other: str) -> None:
    one, two = (make(text.format(other), dtype=dtype) for text in (BRANCH, CHOICE))
    tiled = two.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert both_ways(one, two) == both_ways(one, tiled) == {"equal"}


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = x[i] if x[i] >= z[i] else -z[i]",
        "y[i] = -z[i] if x[i] > z[i] else x[i]",
        # What comes behind the first branch asks again.
        "if x[i] > z[i]\n  y[i] = x[i]\nend\ny[i] = -z[i] {if=x[i] < z[i]}",
    ],
)
def test_other_branches_are_no_choice(text: str) -> None:
    assert "equal" not in both_ways(make(BRANCH.format("-z[i]")), make(text))


@pytest.mark.parametrize(
    ("choice", "branch"),
    [
        # It asks for what it changes: the second condition would see the first store.
        ("y[i] = 0 if y[i] > 0 else 1", "y[i] = 0 {if=y[i] > 0}\ny[i] = 1 {if=not y[i] > 0}"),
        # A choice gives both one type: whole numbers of 32 bits are rounded in float64.
        (
            "y[i] = k[i] if x[i] > 0 else d[i]",
            "y[i] = k[i] {if=x[i] > 0}\ny[i] = d[i] {if=not x[i] > 0}",
        ),
    ],
)
def test_choices_that_stay(choice: str, branch: str) -> None:
    kernels = [
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            text,
            [lk.GlobalArg("y, x", "float32"), ...],
            dtypes={"k": "int64", "d": "float64"} if "k[" in text else {},
        )
        for text in (choice, branch)
    ]
    assert "equal" not in both_ways(*kernels)


OVERWRITTEN = {
    "a choice": (
        "y[i] = x[i] if x[i] > 0 else -x[i]",
        "for i\n  y[i] = -x[i]\n  y[i] = x[i] {if=x[i] > 0}\nend",
    ),
    "a choice of three": (
        "y[i] = 1 if x[i] > z[i] else (x[i] if z[i] > 0 else z[i])",
        "for i\n  y[i] = z[i]\n  y[i] = x[i] {if=z[i] > 0}\n  y[i] = 1 {if=x[i] > z[i]}\nend",
    ),
    "under a condition of its own": (
        "if x[i] > 1\n  y[i] = x[i] if z[i] > 0 else z[i]\nend",
        "if x[i] > 1\n  y[i] = z[i]\n  y[i] = x[i] {if=z[i] > 0}\nend",
    ),
    "branches in the other order": (
        "if x[i] == z[i]\n  y[i] = 1\nelse\n  y[i] = 2\nend",
        "if x[i] != z[i]\n  y[i] = 2\nend\nif x[i] == z[i]\n  y[i] = 1\nend",
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("case", OVERWRITTEN)
def test_a_store_that_is_replaced_under_a_condition(case: str, dtype: str) -> None:
    one, two = (make(text, dtype=dtype) for text in OVERWRITTEN[case])
    tiled = two.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert both_ways(one, two) == both_ways(one, tiled) == {"equal"}


NOT_REPLACED = {
    "what is replaced is read": (
        "for i\n  y[i] = 2\n  z[i] = y[i]\n  y[i] = x[i] {if=x[i] > 0}\nend",
        "for i\n  z[i] = y[i]\n  y[i] = x[i] if x[i] > 0 else 2\nend",
    ),
    "the condition reads it": (
        "for i\n  y[i] = x[i]\n  y[i] = -x[i] {if=y[i] > 0}\nend",
        "y[i] = -x[i] if y[i] > 0 else x[i]",
    ),
    "what it reads changes": (
        "for i\n  y[i] = x[i]\n  z[i] = -z[i]\n  y[i] = 2 {if=z[i] > 0}\nend",
        "for i\n  y[i] = 2 if z[i] > 0 else x[i]\n  z[i] = -z[i]\nend",
    ),
    "another cell": (
        "for i\n  y[i] = x[i]\n  y[i + 1] = 2 {if=x[i] > 0}\nend",
        "for i\n  y[i] = 2 if x[i] > 0 else x[i]\nend",
    ),
    "the other condition": (
        "for i\n  y[i] = -x[i]\n  y[i] = x[i] {if=x[i] > 0}\nend",
        "y[i] = -x[i] if x[i] > 0 else x[i]",
    ),
    "the wrong one wins": (
        "for i\n  y[i] = 3\n  y[i] = 1 {if=x[i] > 0}\n  y[i] = 2 {if=z[i] > 0}\nend",
        "y[i] = 1 if x[i] > 0 else (2 if z[i] > 0 else 3)",
    ),
    "an update in between": (
        "for i\n  y[i] = x[i]\n  y[i] = y[i] + 1\n  y[i] = 2 {if=x[i] > 0}\nend",
        "for i\n  y[i] = 2 if x[i] > 0 else x[i]\nend",
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("case", NOT_REPLACED)
def test_stores_that_nothing_replaces(case: str, dtype: str) -> None:
    assert both_ways(*(make(text, dtype=dtype) for text in NOT_REPLACED[case])) == {"different"}


MOVED_ON = {
    "by a store": ("{ [i]: 0 <= i < n }", "p[i]", "p[i] = q[i]"),
    "by a scalar": ("{ [i]: 0 <= i < n }", "s", "s = q[i]"),
    "by the store itself": ("{ [i]: 0 <= i < n }", "y[i]", "z[i] = z[i]"),
}


@pytest.mark.parametrize("case", MOVED_ON)
def test_a_store_whose_cell_moved_on_replaces_nothing(case: str) -> None:
    """No data that a search draws fulfil the condition: the proof must see it."""
    domain, cell, between = MOVED_ON[case]

    def kernel(condition: str) -> lk.Kernel:
        lines = ["for i", f"y[{cell}] = 1{condition}", between, f"y[{cell}] = 2 {{if={RARE}}}"]
        if cell == "s":
            lines.insert(1, "<int32> s = p[i]")
        arrays = [lk.GlobalArg("y, p, q, z", "int32", shape="n"), ...]
        text = "\n    ".join(lines) + "\nend"
        return lk.make_kernel(domain, text, arrays, assumptions="n >= 1", owe_bounds=True)

    assert both_ways(kernel(""), kernel(f" {{if=not ({RARE})}}")) == {"undecided"}


RARE = "z[i] == 1234567890"


@pytest.mark.parametrize(
    ("dtype", "then", "otherwise", "answer"),
    [
        ("int16", ">", "<=", "equal"),
        ("int16", "<=", ">", "equal"),
        ("uint8", "==", "!=", "equal"),
        ("int16", ">", "<", "different"),
        ("float32", "!=", "==", "equal"),
        # What is no number is neither.
        ("float32", ">", "<=", "undecided"),
        ("float64", ">=", "<", "undecided"),
    ],
)
def test_opposite_conditions(dtype: str, then: str, otherwise: str, answer: str) -> None:
    branches = (
        f"if x[i] {then} z[i]\n  y[i] = x[i]\nend\nif x[i] {otherwise} z[i]\n  y[i] = z[i]\nend"
    )
    choice = f"y[i] = x[i] if x[i] {then} z[i] else z[i]"
    assert both_ways(make(choice, dtype=dtype), make(branches, dtype=dtype)) == {answer}


PASSED_ON = [
    ("y[i] = 4*x[i]", "<> t = 2*x[i]\ny[i] = 2*t"),
    ("y[i] = 3*x[i]", "<> t = x[i] + x[i]\ny[i] = t + x[i]"),
    ("y[i] = 3*x[i] + z[i]", "<> t = 2*x[i]\n<> s = x[i] + t\ny[i] = s + z[i]"),
]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize(("one", "two"), PASSED_ON)
def test_multiples_that_a_temporary_holds(one: str, two: str, dtype: str) -> None:
    kernels = [make(text, dtype=dtype) for text in (one, two)]
    tiled = kernels[1].split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert both_ways(*kernels) == both_ways(kernels[0], tiled) == {"equal"}


@pytest.mark.parametrize(
    "text",
    [
        "<float16> t = 2*x[i]\ny[i] = 2*t",
        "for i\n  <> t = 2*x[i]\n  t = x[i] + 1 {if=x[i] > 0}\n  y[i] = 2*t\nend",
        "for i\n  <> t = 2*x[i]\n  x[i] = 1\n  y[i] = 2*x[i]\nend",
    ],
)
def test_values_that_are_not_passed_on(text: str) -> None:
    plain = "for i\n  y[i] = 4*x[i]\n  x[i] = 1\nend" if "x[i] = 1" in text else "y[i] = 4*x[i]"
    assert "equal" not in both_ways(make(plain), make(text))
