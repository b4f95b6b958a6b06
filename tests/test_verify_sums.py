"""`verify` of sums in other groups: equal only where each cell has the same terms, each once."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from seams import PolyUndecided as Undecided
from seams import same_cells

import loopkit as lk

PIECES = [
    "{ [b]: 0 <= b and 4*b < n }",
    "[b, n] -> { [h]: 4*b <= h < 4*b + 4 and h < n }",
    "{ [c]: 0 <= c and 4*c < n }",
    "[c] -> { [e]: 0 <= e < c }",
    "{ [d]: 0 <= d and 4*d < n }",
    "[d, n] -> { [k]: 0 <= k < 4 and 4*d + k < n }",
    "[k] -> { [l]: 0 <= l <= k }",
]
THREE = """
total[b] = sum(h, x[h])
... gbarrier
before[c] = sum(e, total[e])
... gbarrier
for d, k
    y[4*d + k] = before[d] + sum(l, x[4*d + l])
end
"""
WHOLE = "y[i] = sum(j, x[j])"
TRIANGLE = "{ [i, j]: 0 <= i < n and 0 <= j <= i }"


def make(text: str, domains: Any = TRIANGLE, **options: Any) -> lk.Kernel:
    """A kernel over ``x`` and ``y`` of ``n + 1`` numbers, and temporaries of as many."""
    kinds = {"x": "float32", "y": "float32", "total": "float32", "before": "float32"}
    kinds |= options.pop("types", {})
    arrays: list[Any] = [lk.GlobalArg(name, kinds[name], shape="n + 1") for name in "xy"]
    arrays += [
        lk.TemporaryVariable(name, kinds[name], shape="n + 1")
        for name in ("total", "before")
        if name in text
    ]
    return lk.make_kernel(domains, text, [*arrays, ...], assumptions="n >= 1", **options)


def in_pieces(old: str = "", new: str = "", **options: Any) -> lk.Kernel:
    """Running sums by pieces of four, in which something may stand instead of something else."""
    assert old in THREE or any(old in line for line in PIECES)
    domains = [line.replace(old, new) if old else line for line in PIECES]
    return make(THREE.replace(old, new) if old else THREE, domains, **options)


RIGHT = {
    "as they are": ("", ""),
    "a sum backwards": ("total[e]", "total[c - 1 - e]"),
    "what was before behind": (
        "before[d] + sum(l, x[4*d + l])",
        "sum(l, x[4*d + l]) + before[d]",
    ),
}
WRONG = {
    "a piece counts itself": ("0 <= e < c", "0 <= e <= c"),
    "the first piece does not count": ("0 <= e < c", "0 < e < c"),
    "a number of each piece is left out": ("h < 4*b + 4", "h < 4*b + 3"),
    "a number counts in two pieces": ("4*b <= h < 4*b + 4", "4*b <= h <= 4*b + 4"),
    "numbers before alone": ("0 <= l <= k", "0 <= l < k"),
    "one number, again and again": ("x[4*d + l]", "x[4*d + k]"),
    "one piece, again and again": ("total[e]", "total[0]"),
    "taken off": ("+ sum(l", "- sum(l"),
    "another operation": ("sum(e", "max(e"),
    "of another piece": ("before[d]", "before[d // 2]"),
    "scaled": ("before[d]", "2*before[d]"),
    "twice": ("before[d]", "before[d] + before[d]"),
    "one more": ("before[d]", "before[d] + x[n]"),
    "fewer cells": ("4*d + k < n", "4*d + k < n - 1"),
    "other cells": ("y[4*d + k]", "y[4*d + k + 1]"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_terms(name: str) -> None:
    pieces, whole = in_pieces(*RIGHT[name]), make(WHOLE)
    for one, two in ((pieces, whole), (whole, pieces), (pieces, in_pieces())):
        verdict = lk.verify(one, two)
        assert verdict.answer == "equal", str(verdict)


LONG = {"one piece, again and again"}
"""What shows in the third piece alone."""


@pytest.mark.parametrize(
    "name", [pytest.param(w, marks=[pytest.mark.slow] if w in LONG else []) for w in WRONG]
)
def test_other_terms(name: str) -> None:
    wrong = in_pieces(*WRONG[name])
    for right in (make(WHOLE), in_pieces()):
        assert lk.verify(wrong, right).answer == "different"
        assert lk.verify(right, wrong).answer == "different"


@pytest.mark.parametrize(
    "types",
    [{"total": "float16"}, {"before": "float64"}, {"total": "int32"}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::loopkit.LoopkitWarning")
def test_what_rounds_on_the_way_is_another_sum(types: dict[str, str]) -> None:
    pieces = in_pieces(types=types)
    assert lk.verify(pieces, make(WHOLE)).answer != "equal"


@pytest.mark.filterwarnings("ignore::loopkit.LoopkitWarning")
def test_a_sum_that_is_rounded_in_its_own_type_before_it_is_stored() -> None:
    types = {"y": "float64"}
    assert lk.verify(in_pieces(types=types), make(WHOLE, types=types)).answer == "equal"


SUM = "{ [i, j]: 0 <= i, j < n }"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        # No operand is a sum's result: these are rounded one after the other.
        ("y[i] = (x[0] + x[n]) + x[i]", "y[i] = x[0] + (x[n] + x[i])"),
        ("y[i] = (x[0] + x[n]) + sum(j, x[j])", "y[i] = x[0] + (x[n] + sum(j, x[j]))"),
        ("y[i] = x[0] + x[n] + sum(j, x[j])", "y[i] = x[0] + (x[n] + sum(j, x[j]))"),
        # A factor of a sum and of its terms.
        ("y[i] = 3*sum(j, x[j])", "y[i] = sum(j, 3*x[j])"),
        # Some cells of ``total`` are sums; where others are read, two numbers are added first.
        (
            "total[i] = x[i]\ntotal[0] = sum(j, x[j])\ny[i] = (total[i] + x[0]) + x[n]",
            "total[i] = x[i]\ntotal[0] = sum(j, x[j])\ny[i] = (total[i] + x[n]) + x[0]",
        ),
    ],
)
def test_nothing_else_is_regrouped(one: str, two: str) -> None:
    domain = "{ [i, j]: 0 <= i < n and 1 <= j < n }"
    before, after = (make(text, domain) for text in (one, two))
    assert lk.verify(before, after).answer == "undecided"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("y[0] = sum(i, x[i]) + sum(j, x[j])", "y[0] = sum(i, x[i])"),
        ("y[0] = sum((i, j), x[i])", "y[0] = sum(i, x[i])"),
        ("y[i] = sum(j, x[j])", "y[i] = sum(j, x[i])"),
        ("y[i] = sum(j, x[j])", "y[i] = max(j, x[j])"),
        ("x[i] = 2*x[i]\ny[0] = sum(j, x[j])", "y[0] = sum(j, x[j])\nx[i] = 2*x[i]"),
        ("y[i] = y[i] + sum(j, x[j])", "y[i] = sum(j, x[j])"),
        ("y[i] = sum(j, x[j])", "y[i] = sum(j, x[j]) if x[i] > 0 else 0.0"),
        ("y[i] = sum(j, x[j])", "y[i] = sum(j, x[j]) {if=x[i] > 0}"),
    ],
)
def test_near_misses(one: str, two: str) -> None:
    before, after = (make(text, SUM) for text in (one, two))
    assert lk.verify(before, after).answer == "different"
    assert lk.verify(after, before).answer == "different"


def test_a_sum_of_nothing_is_stored_all_the_same() -> None:
    stored = make(WHOLE, ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < i }"])
    left = make(WHOLE, "{ [i, j]: 0 <= i < n and 0 <= j < i }")  # row 0 has no j, and no i
    assert lk.verify(stored, left).answer == "different"
    assert lk.verify(left, stored).answer == "different"


ONE = ["{ [i]: 0 <= i < n }", "[i] -> { [j]: i <= j <= i }"]


@pytest.mark.parametrize(
    ("one", "two", "domains"),
    [
        ("y[i] = x[i]", "y[i] = sum(j, x[j])", ONE),
        ("y[i] = x[i]", "y[i] = x[i] + sum(j, x[j + n + 1])", [ONE[0], "{ [j]: 0 <= j < 0 }"]),
        ("y[i] = x[i] {if=i < 1}\ny[i] = sum(j, x[j]) {if=i > 0}", "y[i] = sum(j, x[j])", ONE),
    ],
)
def test_a_negative_zero_is_lost_where_a_sum_starts_from_zero(
    one: str, two: str, domains: list[str]
) -> None:
    """Of integers it is one number; of others what is copied keeps its sign, and a sum does not."""
    for kind, expected in (("int64", "equal"), ("float32", "undecided")):
        types = {"x": kind, "y": kind}
        copy, added = (make(text, domains, types=types) for text in (one, two))
        assert lk.verify(copy, added).answer == expected
        assert lk.verify(added, copy).answer == expected
    x = np.full(8, -0.0, np.float32)
    signs = [np.signbit(np.asarray(k.executor("reference")(x=x))[0]) for k in (copy, added)]
    assert signs == [True, False]


@pytest.mark.filterwarnings("ignore::loopkit.LoopkitWarning")
def test_terms_that_an_accumulator_rounds() -> None:
    inside = "{ [i, j]: 0 <= i < n and 0 <= j <= n }"
    first = make("y[i] = x[n] + sum(j, x[j], dtype=float32)", SUM, types={"x": "float64"})
    whole = make("y[i] = sum(j, x[j], dtype=float32)", inside, types={"x": "float64"})
    assert lk.verify(first, whole).answer != "equal"


def test_functions_of_one_name_are_other_terms() -> None:
    def kernel(factor: int, text: str) -> lk.Kernel:
        meaning = f"{factor}*a"
        body = f"return {meaning};"
        f = lk.register_callable("f", {"a": "float32"}, "float32", body=body, meaning=meaning)
        return make(text, SUM, functions=[f])

    first, last = "y[i] = x[n] + sum(j, f(x[j]))", "y[i] = sum(j, f(x[j])) + x[n]"
    assert lk.verify(kernel(2, first), kernel(2, last)).answer == "equal"
    assert lk.verify(kernel(2, first), kernel(3, last)).answer != "equal"


@pytest.mark.slow
@pytest.mark.parametrize("tags", ["b: g.0", "c: g.0", "d: g.0, b: g.0", "e: g.0", "h: g.0, l: l.0"])
def test_a_race_is_no_sum(tags: str) -> None:
    """In one launch blocks may read what others have not added up yet."""
    one_launch = in_pieces("... gbarrier", "").tag_inames(tags, unchecked=True)
    racing = one_launch.with_(lineage=None, history=())
    for right in (make(WHOLE), in_pieces()):
        assert lk.verify(right, racing).answer != "equal"
        assert lk.verify(racing, right).answer != "equal"


def test_cells_of_one_place_hold_one_sum() -> None:
    pieces = in_pieces()
    mixed = pieces.tag_array_axes("y", "stride:0", unchecked=True)
    assert lk.verify(make(WHOLE), mixed.with_(lineage=None, history=())).answer != "equal"


RANGES = ("0 <= {j} < n", "0 <= {j} <= i", "0 <= {j} < i", "i <= {j} < n", "i < {j} < n")


def drawn(rng: random.Random) -> lk.Kernel:
    """A sum of up to three sums, some of sums or stored before, and perhaps a number more."""
    domains, lines, parts = ["{ [i]: 0 <= i < n }"], [], []
    for number in range(rng.randint(1, 3)):
        j, k = f"j{number}", f"k{number}"
        domains.append(f"[i, n] -> {{ [{j}]: {rng.choice(RANGES).format(j=j)} }}")
        index = rng.choice([j, j, f"n - 1 - {j}", f"{j} + 1", "i"])
        part = f"sum({j}, x[{index}])"
        if rng.random() < 0.3:
            domains.append(f"[{j}] -> {{ [{k}]: {rng.choice(['0 <=', '1 <='])} {k} < 3 }}")
            term = f"x[3*{j} + {k}]"
            nested = [f"sum(({j}, {k}), {term})", f"sum({j}, sum({k}, {term}))"]
            part = rng.choice(nested)
        if rng.random() < 0.3:
            lines.append(f"t{number}[i] = {part}")
            part = f"t{number}[i]"
        parts.append(part)
    if rng.random() < 0.5:
        parts.insert(rng.randint(0, len(parts)), f"x[{rng.choice(['i', 'i', '0', 'n'])}]")
    stored = [lk.TemporaryVariable(line[:2], "int64", shape="n") for line in lines]
    text = "\n".join(["for i", *lines, f"y[i] = {' + '.join(parts)}", "end"])
    arrays = [lk.GlobalArg("x", "int64", shape="4*n + 4"), lk.GlobalArg("y", "int64", shape="n")]
    return lk.make_kernel(domains, text, [*arrays, *stored, ...], assumptions="n >= 1")


def results(knl: lk.Kernel) -> list[list[int]]:
    """Of numbers that add up to one thing only if they are the same."""
    run = knl.executor("reference")
    found = []
    for n in (1, 2, 3, 5, 8):
        x = np.random.default_rng(n).integers(1, 2**40, 4 * n + 4)
        found.append(np.asarray(run(x=x)).tolist())
    return found


@pytest.mark.slow
def test_drawn_sums_are_the_same_where_their_results_are() -> None:
    rng = random.Random(7)
    known = []
    for knl in (drawn(rng) for _ in range(150)):
        try:
            assert same_cells(knl, knl, knl.assumptions.set)
        except Undecided:
            continue
        known.append((knl, results(knl)))
    pairs = [*itertools.combinations(known, 2)]
    said = [same_cells(one, two, one.assumptions.set) for (one, _), (two, _) in pairs]
    assert said == [one == two for (_, one), (_, two) in pairs]
    assert 5 < sum(said) < len(said) - 5
