"""Assertions about index arrays: saying them, and checking them on real data."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Golden
from seams import obeying_data, parse_expression, show_history, step_from_json, violation

import loopkit as lk


def gather(**options: Any) -> lk.Kernel:
    """``y[perm[i]] = x[col[i]]``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[perm[i]] = x[col[i]]",
        [
            lk.GlobalArg("x", "float32", shape="m"),
            lk.GlobalArg("y", "float32", shape="n"),
            lk.GlobalArg("perm", "int32", shape="n"),
            lk.GlobalArg("col", "int64", shape="n"),
            ...,
        ],
        name="gather",
        **options,
    )


def asserted() -> lk.Kernel:
    return (
        gather()
        .assume_injective("perm")
        .assume_within("perm", 0, "n")
        .assume_within("col", 0, "m")
        .assume_disjoint("perm", "col")
        .assume_increasing("col")
    )


# {{{ saying them


def test_history_script_and_print(golden: Golden) -> None:
    knl = asserted().assume_increasing("perm", strictly=True)
    golden("assertions.txt", f"{knl}\n\n{knl.script()}")
    assert show_history(knl.history).count("assume_") == 6


def test_history_as_json_replays() -> None:
    knl = asserted()
    text = json.dumps([step.to_json() for step in knl.history])
    again = lk.replay(gather(), tuple(step_from_json(s) for s in json.loads(text)))
    assert again == knl and again.key == knl.key and again.assertions == knl.assertions
    scope = {"knl": gather()}
    exec(knl.script(), scope)
    assert scope["knl"] == knl


def test_they_are_part_of_the_kernel_in_one_order() -> None:
    knl = asserted()
    assert knl != gather() and knl.key != gather().key
    one = gather().assume_injective("perm").assume_within("col", 0, "m")
    other = gather().assume_within("col", 0, "m").assume_injective("perm")
    assert one == other and one.key == other.key
    assert pickle.loads(pickle.dumps(knl)).assertions == knl.assertions


def test_free_functions_are_the_methods() -> None:
    knl = lk.assume_disjoint(gather(), "perm", "col")
    assert knl.assertions == (lk.Disjoint("col", "perm"),)
    assert lk.assume_increasing(gather(), "col").assertions == (lk.Increasing("col", False),)


def test_stronger_ones_replace_weaker_ones() -> None:
    knl = gather().assume_increasing("perm").assume_increasing("perm", strictly=True)
    assert knl.assertions == (lk.Increasing("perm", True),)
    knl = gather().assume_injective("perm").assume_increasing("perm", strictly=True)
    assert knl.assertions == (lk.Increasing("perm", True),)
    knl = gather().assume_within("perm", -1, "n + 1").assume_within("perm", 0, "n")
    assert [a.text for a in knl.assertions] == ["0 <= perm[...] < n"]


def test_fixed_sizes_are_fixed_in_bounds() -> None:
    knl = asserted().fix_parameters(n=4)
    assert lk.Within("perm", 0, 4) in knl.assertions
    assert asserted().split_iname("i", 16).assertions == asserted().assertions


def test_bounds_may_be_any_integer_expression() -> None:
    knl = gather().assume_within("perm", "-n", "n*m + min(n, 3)")
    assert knl.assertions[0].text == "-n <= perm[...] < n*m + min(n, 3)"
    assert gather().assume_within("perm", np.int64(1), "(n + 1) // 2").assertions == (
        lk.Within("perm", 1, parse_expression("(n + 1) // 2")),
    )


def untyped() -> lk.Kernel:
    text = "{ [i]: 0 <= i < n }", "<int32> t = p[i] \n y[i] = 2.0*t \n w[i] = t"
    return lk.make_kernel(*text, dtypes={"p, w": "int32", "y": "float32"})


REFUSED: dict[str, Callable[[], object]] = {
    "unknown array": lambda: gather().assume_injective("prem"),
    "an iname": lambda: gather().assume_injective("i"),
    "a size": lambda: gather().assume_within("n", 0, 10),
    "a temporary": lambda: untyped().assume_injective("t"),
    "not of integers": lambda: gather().assume_injective("x"),
    "written": lambda: untyped().assume_injective("w"),
    "no name": lambda: gather().assume_injective(["perm"]),
    "with itself": lambda: gather().assume_disjoint("perm", "perm"),
    "said before": lambda: asserted().assume_injective("perm"),
    "said before, the other way": lambda: asserted().assume_disjoint("perm", "col"),
    "implied by bounds": lambda: asserted().assume_within("perm", 0, "n + 1"),
    "implied by two": lambda: (
        asserted().assume_increasing("perm").assume_increasing("perm", strictly=True)
    ),
    "disjoint by their bounds": lambda: (
        gather()
        .assume_within("perm", 0, "n")
        .assume_within("col", "n", "2*n")
        .assume_disjoint("perm", "col")
    ),
    "empty bounds": lambda: gather().assume_within("perm", 5, 5),
    "bounds apart": lambda: gather().assume_within("perm", 0, 5).assume_within("perm", 5, 9),
    "too few values": lambda: asserted().assume_within("perm", 1, "n"),
    "unknown size": lambda: gather().assume_within("col", 0, "k"),
    "a fraction": lambda: gather().assume_within("col", 0, "n/2"),
    "no integer": lambda: gather().assume_within("col", 0, 2.5),
    "reads data": lambda: gather().assume_within("col", 0, "perm[0]"),
    "two axes": lambda: lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }", "y[i, j] = p[i, j]", dtypes={"p, y": "int32"}
    ).assume_increasing("p"),
    "too few arguments": lambda: gather().assume_within("col", 3),
}


def test_refusals(golden: Golden) -> None:
    texts = []
    for name, attempt in REFUSED.items():
        with pytest.raises(lk.LoopkitError) as caught:
            attempt()
        texts.append(f"-- {name}: {type(caught.value).__name__}\n{caught.value}\n")
    golden("assertions_refused.txt", "\n".join(texts))


# }}}

# {{{ checking them

F32, I32, I64 = np.float32, np.int32, np.int64
GOOD = {
    "x": np.arange(9, dtype=F32),
    "perm": np.array([3, 1, 0, 2], I32),
    "col": np.array([4, 4, 5, 8], I64),
}
EXPECTED = np.array([5, 4, 8, 4], F32)

BROKEN = {
    "perm": (
        {"perm": np.array([3, 1, 3, 1], I32)},
        (
            "gather assumes that the values of perm all differ, but perm[0] = perm[2] = 3 "
            "(and 1 more value comes again)"
        ),
    ),
    "perm below": (
        {"perm": np.array([3, -1, 0, 2], I32)},
        "gather assumes that 0 <= perm[...] < n, but perm[1] = -1 is below 0",
    ),
    "perm above": (
        {"perm": np.array([3, 1, 0, 4], I32), "col": np.array([5, 5, 5, 8], I64)},
        "gather assumes that 0 <= perm[...] < n, but perm[3] = 4 is not below n = 4",
    ),
    "col": (
        {"col": np.array([4, 10, 11, 12], I64)},
        (
            "gather assumes that 0 <= col[...] < m, but col[1] = 10 is not below m = 9 "
            "(and 2 more such values)"
        ),
    ),
    "both": (
        {"col": np.array([2, 4, 5, 8], I64)},
        "gather assumes that col and perm have no value in common, but col[0] = perm[3] = 2",
    ),
    "order": (
        {"col": np.array([4, 6, 5, 8], I64)},
        (
            "gather assumes that the values of col never go down, "
            "but col[1] = 6 is followed by col[2] = 5"
        ),
    ),
}

host = pytest.mark.host
CHECKING = [
    pytest.param("reference", {}, id="reference"),
    pytest.param("host", {"sanitize": True}, id="sanitize", marks=host),
    pytest.param("host", {"check_assertions": True}, id="host", marks=host),
]


@pytest.mark.parametrize(("name", "options"), CHECKING)
def test_executors_check_data(name: str, options: dict[str, Any]) -> None:
    run = asserted().executor(name, **options)
    np.testing.assert_array_equal(run(**GOOD), EXPECTED)
    for changes, message in BROKEN.values():
        with pytest.raises(lk.AssumptionError) as caught:
            run(**{**GOOD, **changes})
        assert str(caught.value) == message
    # Broken calls leave the next one alone, and arguments may come by position.
    by_position = [GOOD.get(name) for name in run.plan.names]
    np.testing.assert_array_equal(run(*by_position), EXPECTED)


def test_a_bound_needs_its_sizes() -> None:
    within = lk.Within("col", 0, parse_expression("m"))
    with pytest.raises(lk.LaunchError, match="the value of 'm' is needed to check the bound m"):
        violation(within, {"col": GOOD["col"]}, {})


def test_the_error_holds_the_cells() -> None:
    with pytest.raises(lk.AssumptionError) as caught:
        asserted().executor("reference")(**{**GOOD, **BROKEN["both"][0]})
    assert caught.value.assertion == lk.Disjoint("col", "perm")
    assert caught.value.cells == (("col", (0,), 2), ("perm", (3,), 2))


@pytest.mark.host
def test_others_do_not_check() -> None:
    shifted = {**GOOD, "col": GOOD["col"] - 1}  # meets perm, and does no harm
    for options in ({}, {"sanitize": True, "check_assertions": False}):
        run = asserted().executor("host", **options)
        np.testing.assert_array_equal(run(**shifted), EXPECTED - 1)
    plain = gather().executor("host", check_assertions=True)
    np.testing.assert_array_equal(plain(**shifted), EXPECTED - 1)
    np.testing.assert_array_equal(asserted()(**shifted), EXPECTED - 1)


@pytest.mark.host
def test_bound_calls_check_at_every_call() -> None:
    arguments = {name: value.copy() for name, value in GOOD.items()}
    run = asserted().executor("host", check_assertions=True).bind(**arguments)
    np.testing.assert_array_equal(run(), EXPECTED)
    arguments["perm"][0] = 0
    with pytest.raises(lk.AssumptionError, match=r"perm\[0\] = perm\[2\] = 0"):
        run()


def test_the_reference_always_checks() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="always checks"):
        asserted().executor("reference", check_assertions=False)
    asserted().executor("reference", check_assertions=True)(**GOOD)


def test_arrays_without_a_type_are_checked() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[p[i]]",
        [lk.GlobalArg("x", shape="n"), lk.GlobalArg("p", shape="n"), ...],
        dtypes={"x, y": "float32"},
    ).assume_injective("p")
    run = knl.executor("reference")
    x = np.arange(3, dtype=F32)
    np.testing.assert_array_equal(run(x=x, p=np.array([2, 0, 1])), [2, 0, 1])
    with pytest.raises(lk.AssumptionError, match=r"p\[0\] = p\[1\] = 2"):
        run(x=x, p=np.array([2, 2, 1], np.uint8))


def test_a_size_that_only_a_bound_needs() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = p[i]",
        ["...", lk.ValueArg("m", "int32")],
        dtypes={"p, y": "int32"},
    ).assume_within("p", 0, "m")
    p = np.arange(4, dtype=I32)
    np.testing.assert_array_equal(knl.executor("reference")(p=p, m=4), p)
    with pytest.raises(lk.AssumptionError, match=r"p\[3\] = 3 is not below m = 3"):
        knl.executor("reference")(p=p, m=3)


def test_data_of_other_types_and_shapes() -> None:
    square = np.array([[0, 1], [2, 1]], np.uint8)
    found = violation(lk.Injective("p"), {"p": square}, {})
    assert found is not None and found[0] == "p[0, 1] = p[1, 1] = 1"
    assert violation(lk.Injective("p"), {"p": square[:, 0]}, {}) is None
    assert violation(lk.Injective("p"), {"p": square[:0]}, {}) is None
    # As float64, which NumPy compares these types in, the two are equal.
    big = {"p": np.array([2**53], I64), "q": np.array([2**53 + 1], np.uint64)}
    assert violation(lk.Disjoint("p", "q"), big, {}) is None
    assert violation(lk.Disjoint("q", "p"), {"p": big["p"] + 1, "q": big["q"]}, {}) is not None
    negative = {"p": np.array([-1], I64), "q": np.array([2**64 - 1], np.uint64)}
    assert violation(lk.Disjoint("p", "q"), negative, {}) is None
    small = {"p": np.array([-128, 127], np.int8)}
    assert violation(lk.Within("p", -1000, 1000), small, {}) is None
    found = violation(lk.Within("p", 300, 1000), small, {})
    assert found is not None and found[0] == "p[0] = -128 is below 300 (and 1 more such value)"
    found = violation(lk.Increasing("p", True), {"p": np.array([0, 3, 3, 3])}, {})
    assert found is not None
    assert found[0] == "p[1] = 3 is followed by p[2] = 3 (and 1 more such place)"


# }}}

# {{{ what they settle


def blocks(knl: lk.Kernel, iname: str = "i") -> lk.Kernel:
    return knl.split_iname(iname, 32, outer_tag="g.0", inner_tag="l.0")


@pytest.mark.host
def test_injective_subscripts_may_be_written_in_parallel() -> None:
    with pytest.raises(lk.UndecidedError, match=r"y\[perm\["):
        blocks(gather())
    knl = gather().assume_injective("perm").assume_within("perm", 0, "n")
    knl = knl.assume_within("col", 0, "m")
    fast = blocks(knl)
    assert fast.history[-1].verdict == "proven"
    lk.auto_test_vs_ref(knl, fast, parameters={"n": 77, "m": 20}, executor_name="host")
    # One index beside another is another question.
    shifted = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[perm[i]] = y[perm[i] + 1]",
        [
            lk.GlobalArg("y", "float32", shape="n + 1"),
            lk.GlobalArg("perm", "int32", shape="n"),
            ...,
        ],
    )
    with pytest.raises(lk.UndecidedError):
        blocks(shifted.assume_injective("perm"))


@pytest.mark.host
def test_disjoint_subscripts_may_be_written_in_any_order() -> None:
    text = ["x[red[i]] = 2*x[red[i]] {id=r}", "x[black[i]] = x[black[i]] + 1 {id=b}"]
    arrays = [lk.GlobalArg(name, "int32", shape="n") for name in ("red", "black")]
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", text, [lk.GlobalArg("x", "float32", shape="m"), *arrays, ...]
    )
    for name in ("red", "black"):
        knl = knl.assume_injective(name).assume_within(name, 0, "m")
    with pytest.raises(lk.UndecidedError):
        blocks(knl)
    knl = knl.assume_disjoint("red", "black")
    fast = blocks(knl)
    lk.auto_test_vs_ref(knl, fast, parameters={"n": 40, "m": 100}, executor_name="host")


# }}}

# {{{ data that obeys them


def test_random_data_obeys() -> None:
    rng = np.random.default_rng(0)
    arrays = {"p": ((6,), np.dtype(I32)), "q": ((3, 2), np.dtype(np.uint8))}
    n = parse_expression("n")
    choices = [
        (lk.Injective("p"), lk.Within("p", 0, n)),
        (lk.Increasing("p", True), lk.Within("p", 0, 6)),
        (lk.Disjoint("p", "q"), lk.Within("p", 0, n), lk.Within("q", 0, n)),
        (lk.Disjoint("p", "q"), lk.Injective("p"), lk.Injective("q"), lk.Within("q", 3, 20)),
        (lk.Increasing("p"), lk.Within("p", -3, -1)),
    ]
    for assertions in choices:
        for _ in range(5):
            data = obeying_data(assertions, arrays, {"n": 7}, rng)
            assert all(violation(a, data, {"n": 7}) is None for a in assertions)
            assert all((data[k].shape, data[k].dtype) == arrays[k] for k in data)
    with pytest.raises(lk.AssumptionError, match="no data for 'p'"):
        obeying_data((lk.Injective("p"), lk.Within("p", 0, 5)), arrays, {}, rng)


@pytest.mark.host
def test_comparison_draws_data_that_obeys() -> None:
    fast = gather().split_iname("i", 32).assume_injective("perm").assume_within("perm", 0, "n")
    fast = fast.assume_within("col", 0, "m")
    lk.auto_test_vs_ref(gather(), fast, parameters={"n": 50, "m": 20}, executor_name="host")


# }}}


# {{{ where a condition holds, and of temporaries


def compaction(flag: str = "keep[m]") -> lk.Kernel:
    """Those of ``x`` that are to be kept, where the kernel itself finds their places."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [m]: 0 <= m < n }", "[i] -> { [j]: 0 <= j < i }"],
        f"place[i] = sum(j, keep[j], dtype=int32)\nout[place[m]] = x[m] {{if={flag}}}",
        [lk.GlobalArg("out", shape="n"), ...],
        dtypes={"out, x": "float32", "keep": "int32"},
        temporary_variables=[lk.TemporaryVariable("place", "int32", "n", address_space="global")],
        assumptions="n >= 1",
    )


def given_places() -> lk.Kernel:
    return lk.make_kernel(
        "{ [m]: 0 <= m < n }",
        "out[place[m]] = x[m] {if=keep[m]}",
        [lk.GlobalArg("out", shape="n"), ...],
        dtypes={"out, x": "float32", "keep, place": "int32"},
        assumptions="n >= 1",
    )


CONDITION = {"array": "place[i]", "where": "keep[i] != 0"}
KEPT = {"x": np.arange(6, dtype=F32), "keep": np.array([1, 0, 1, 1, 0, 1], I32)}
PLACES = np.array([0, 1, 1, 2, 3, 3], I32)
SCHEDULES: dict[str, Callable[[lk.Kernel], lk.Kernel]] = {
    "threads": lambda k: k.split_iname("m", 4, inner_tag="l.0"),
    "fetched": lambda k: (
        k.split_iname("m", 4, inner_tag="l.0")
        .add_prefetch("keep", "m_inner", default_tag="l.auto", within="writes:out")
        .split_iname("m_outer", 2)
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("make", [compaction, given_places])
def test_values_that_differ_where_a_condition_holds(
    make: Callable[[], lk.Kernel], schedule: str
) -> None:
    knl = make().assume_injective(**CONDITION).assume_within("place", 0, "n")
    knl = SCHEDULES[schedule](knl)
    assert knl.prove().ok and not knl.prove().trusted
    more = {} if make is compaction else {"place": PLACES}
    for executor in ("reference", "host"):
        out = knl.executor(executor)(**KEPT, **more, out=np.zeros(6, F32))
        assert np.array_equal(out, np.array([0, 2, 3, 5, 0, 0], F32))


@pytest.mark.parametrize("where", ["keep[i + 1] != 0", "keep[i] == 0", "keep[i] != 0 and i >= 1"])
def test_another_condition_says_nothing(where: str) -> None:
    for knl in (compaction(), given_places()):
        with pytest.raises(lk.UndecidedError):
            knl.assume_injective("place[i]", where=where).split_iname("m", 4, inner_tag="l.0")


def test_conditions_are_looked_at_in_data() -> None:
    knl = given_places().assume_injective(**CONDITION)
    step = step_from_json(json.loads(json.dumps(knl.history[-1].to_json())))
    assert pickle.loads(pickle.dumps(knl)) == knl and step.call() == knl.history[-1].call()
    assert knl.rename_argument("keep", "k").assertions[0].where == parse_expression("k[i] != 0")
    run = knl.executor("host", check_assertions=True)
    run(**KEPT, place=PLACES, out=np.zeros(6, F32))
    with pytest.raises(lk.AssumptionError, match=r"place\[1\] = place\[2\] = 1"):
        run(x=KEPT["x"], keep=np.ones(6, I32), place=PLACES, out=np.zeros(6, F32))
    # What the kernel computes itself, the reference executor looks at.
    run = compaction().assume_injective(**CONDITION).executor("reference")
    with pytest.raises(lk.AssumptionError, match=r"place\[0\] = place\[2\] = 0"):
        run(x=KEPT["x"], keep=np.array([1, -1, 1, 0, 0, 1], I32), out=np.zeros(6, F32))


def test_what_is_said_of_a_temporary_ends_with_it() -> None:
    knl = compaction().assume_injective(**CONDITION).assume_within("place", 0, "n")
    assert knl.fix_parameters(n=64).split_array_dim(("place", 0), 4).assertions == ()
    with pytest.raises(lk.IllegalTransformError, match="written more than once"):
        untyped().assume_injective("t")
    assert untyped().assume_within("t", 0, 9).assertions == (lk.Within("t", 0, 9),)


@pytest.mark.parametrize(
    ("array", "where"),
    [("place[i]", None), ("place", "keep[i]"), ("place[n]", "keep[n]"), ("place[i]", "nope[i]")],
)
def test_conditions_that_say_nothing(array: str, where: str | None) -> None:
    with pytest.raises(lk.LoopkitError):
        given_places().assume_injective(array, where=where)


@pytest.mark.parametrize("end", ["<", "<="])
def test_what_is_asserted_is_not_suggested(end: str) -> None:
    """Nor is what would not help: rows that share their last element are not apart."""
    rows = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", f"{{ [j]: first <= j {end} last }}"],
        """
        for i
            <> first = start[i]
            <> last = start[i + 1]
            for j
                values[j] = 2*values[j]
            end
        end
        """,
        [lk.GlobalArg("values", shape="m"), ...],
        dtypes={"values": "float32", "start": "int32"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.LoopkitError) as before:
        rows.tag_inames("i: g.0")
    assert ("assume_increasing('start')" in str(before.value)) == (end == "<")
    asserted = rows.assume_increasing("start")
    if end == "<":
        assert asserted.tag_inames("i: g.0").prove().ok
    else:
        with pytest.raises(lk.LoopkitError) as after:
            asserted.tag_inames("i: g.0")
        assert "assume_increasing" not in str(after.value)


# }}}
