"""join_inames and chunk_iname where lengths are sizes: one loop for several, several for one."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import (
    Change,
    Chunked,
    Joined,
    check_change,
    evaluate,
    parse_expression,
    points_of,
    renumbered,
)

import loopkit as lk


def scaled(**more) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = 2*a[j, i]",
        [lk.GlobalArg("a", "float32", "m, n"), lk.GlobalArg("b", "float32", "n, m"), ...],
        **{"assumptions": "n, m >= 1", "name": "scaled", **more},
    )


def rows() -> lk.Kernel:
    """A loop between the two that are joined, and a sum."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 1 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        [lk.GlobalArg("a", "float32", "n, l"), lk.GlobalArg("b", "float32", "l, m"), ...],
        dtypes={"c": "float32"},
        assumptions="n, l >= 1 and m >= 2",
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 4)), min_size=2, max_size=3),
    st.integers(1, 6),
)
def test_numbers_run_through_the_old_ones_in_their_order(
    loops: list[tuple[int, int]], chunks: int
) -> None:
    old = ("i", "j", "k")[: len(loops)]
    lows, lengths = zip(*loops, strict=True)
    joined = Joined(old, lows, lengths, "q", int(np.prod(lengths)))
    claims = [joined, Chunked("i", lows[0], lengths[0], chunks, "o", "r")]
    for claim in claims:
        before = points_of(claim.before, claim.old, {}).tolist()
        after = points_of(claim.after, claim.new, {}).tolist()
        values = [claim.values[iname] for iname in claim.old]
        found = [[evaluate(v, dict(zip(claim.new, p, strict=True))) for v in values] for p in after]
        assert found == before


def test_the_text(golden) -> None:
    joined = scaled().join_inames("i, j", "k").split_iname("k", 256)
    joined = joined.tag_inames("k_outer: g.0, k_inner: l.0")
    cut = scaled().chunk_iname("i", 3, outer_tag="g.0").split_iname("j", 32, inner_tag="l.0")
    golden("renumbered.txt", "\n\n".join(f"{k}\n\n{k.cuda()}" for k in (joined, cut)))


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_it_compiles(arch: str) -> None:
    joined = scaled(assumptions="").join_inames("i, j", "k")
    for knl in (
        joined.split_iname("k", 256, outer_tag="g.0", inner_tag="l.0"),
        scaled().chunk_iname("i", 132, outer_tag="g.0").split_iname("j", 32, inner_tag="l.0"),
    ):
        assert knl.cubin(arch=arch)
        assert knl.prove(text=True).ok


STEPS = {
    "split": lambda k: k.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0"),
    "twice": lambda k: (
        k.split_iname("q", 64)
        .split_iname("q_inner", 8)
        .tag_inames("q_outer: g.0, q_inner_outer: l.1, q_inner_inner: l.0")
    ),
    "unrolled": lambda k: k.split_iname("q", 128, outer_tag="g.0").split_iname(
        "q_inner", 32, inner_tag="l.0", outer_tag="unr"
    ),
    "backwards": lambda k: k.split_iname("q", 32).prioritize_loops("q_inner, q_outer"),
}


@pytest.mark.parametrize("order", ["i, j", "j, i"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("made", [scaled, rows])
def test_schedules_of_a_joined_loop(made, name: str, order: str) -> None:
    knl = made()
    new = STEPS[name](knl.join_inames(order, "q"))
    assert new.prove().ok
    r = np.random.default_rng(0)
    arrays = {"a": r.random((37, 5) if made is scaled else (5, 3), dtype=np.float32)}
    if made is rows:
        arrays["b"] = r.random((3, 37), dtype=np.float32)
    want = knl.executor("reference")(**arrays)
    for how in ("host", "reference"):
        # Of some there is no first column.
        np.testing.assert_allclose(new.executor(how)(**arrays)[:, 1:], want[:, 1:], rtol=1e-5)


@pytest.mark.parametrize("order", permutations("ijk"))
def test_three_loops(order: tuple[str, ...]) -> None:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 1 <= j < m and 0 <= k < l }",
        "b[i, j, k] = 2*a[k, j, i]",
        [lk.GlobalArg("a", "float32", "l, m, n"), lk.GlobalArg("b", "float32", "n, m, l"), ...],
        assumptions="n, m, l >= 1",
    )
    at_once = knl.join_inames(order, "q")
    in_two = knl.join_inames(order[:2], "p").join_inames(("p", order[2]), "q")
    a = np.random.default_rng(0).random((3, 4, 5), dtype=np.float32)
    want = knl.executor("reference")(a=a)
    for new in (at_once, in_two):
        new = new.split_iname("q", 16, outer_tag="g.0", inner_tag="l.0")
        assert new.prove().ok
        np.testing.assert_array_equal(new.executor("host")(a=a)[:, 1:], want[:, 1:])


@pytest.mark.parametrize("tags", [{}, {"outer_tag": "g.0"}, {"inner_tag": "l.0"}])
@pytest.mark.parametrize("chunks", [1, 3, 40])
def test_chunks(chunks: int, tags: dict[str, str]) -> None:
    knl = scaled()
    new = knl.chunk_iname("i", chunks)
    if tags.get("inner_tag"):
        new = new.split_iname("i_inner", 8, inner_tag="l.0")
    elif tags:
        new = knl.chunk_iname("i", chunks, **tags)
    assert new.prove().ok
    for n in (1, 5, 41):
        a = np.random.default_rng(0).random((3, n), dtype=np.float32)
        for how in ("host", "reference"):
            np.testing.assert_array_equal(new.executor(how)(a=a), 2 * a.T)


def test_what_a_call_passes() -> None:
    new = scaled().join_inames("i, j", "q").split_iname("q", 64, outer_tag="g.0", inner_tag="l.0")
    assert new.computed_sizes.keys() == {"n_m"}
    a = np.random.default_rng(0).random((37, 5), dtype=np.float32)
    for how in ("host", "reference"):
        np.testing.assert_array_equal(new.executor(how)(a=a, n_m=185), 2 * a.T)
        with pytest.raises(lk.AssumptionError, match=r"n_m = n\*m, but .* n_m = 186 \(as passed\)"):
            new.executor(how)(a=a, n_m=186)
    assert new.launch_config(n=5, m=37).grid == (3, 1, 1)
    assert "185" in str(new.costs(n=5, m=37))
    assert new.signature.parameters.keys() >= {"n_m"} if hasattr(new, "signature") else True


def test_costs_of_open_sizes() -> None:
    """Computed sizes are no sizes of their own: all is told by those that are passed."""
    new = scaled().join_inames("i, j", "q").split_iname("q", 64, outer_tag="g.0", inner_tag="l.0")
    shown = str(new.costs())
    assert "scaled, by n, m\n" in shown and "n_m" not in shown
    assert "blocks: n*m/64 for n % 64 == 0 and m % 64 == 0" in shown
    counts = lk.get_op_map(new)
    assert counts.eval_and_sum({"n": 5, "m": 37}) == 185
    cut = str(scaled().chunk_iname("i", 4, outer_tag="g.0").costs(n=10, m=32))
    assert "4 blocks of 1 thread" in cut and "not known" not in cut


def test_products_that_do_not_fit_are_refused() -> None:
    new = scaled().join_inames("i, j", "q", tag="g.0")
    with pytest.raises(lk.LoopkitError, match=r"n_m = .* does not fit int32"):
        new.executor("host").plan.complete({"n": 1 << 20, "m": 1 << 20})


def test_no_elements() -> None:
    knl = scaled(assumptions="")
    new = knl.join_inames("i, j", "q").split_iname("q", 64, outer_tag="g.0", inner_tag="l.0")
    assert new.prove().ok
    for shape in ((0, 0), (0, 3), (3, 0), (2, 3)):
        a = np.ones(shape, np.float32)
        for how in ("host", "reference"):
            np.testing.assert_array_equal(new.executor(how)(a=a), 2 * a.T)


def test_sizes_become_numbers() -> None:
    joined = scaled().join_inames("i, j", "q")
    some = joined.fix_parameters(m=16)
    assert str(some.computed_sizes["n_m"]).replace(" ", "") in ("16*n", "n*16")
    assert some.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0").prove().ok
    assert joined.fix_parameters(m=16, n=5).sizes == ()
    with pytest.raises(lk.IllegalTransformError, match="'n_m' is computed: it is n\\*m"):
        joined.fix_parameters(n_m=16)
    late = joined.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0").fix_parameters(m=16)
    assert late.prove().ok


def test_other_names() -> None:
    new = scaled().join_inames("i, j", "q").split_iname("q", 64, outer_tag="g.0", inner_tag="l.0")
    for old, name in (("m", "columns"), ("n_m", "count")):
        other = new.rename_argument(old, name)
        assert other.prove().ok and name in str(other.computed_sizes) + str(other.sizes)
    assert lk.verify(new, new.rename_iname("q_inner", "t"))
    assert lk.verify(scaled(), new).answer != "different"
    wrong = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = if(i*j == 6, 0, 2*a[j, i])",
        [lk.GlobalArg("a", "float32", "m, n"), lk.GlobalArg("b", "float32", "n, m"), ...],
        assumptions="n, m >= 1",
    )
    assert lk.verify(wrong, new).answer == "different"


@pytest.mark.parametrize(
    ("text", "order", "why"),
    [
        ("{ [i, j]: 0 <= i < n and 0 <= j <= i }", "i, j", "depend on each other"),
        ("{ [i, j]: 0 <= i < n and 0 <= j < n and (i + j) % 2 = 0 }", "i, j", "have holes"),
        ("{ [i, j]: 0 <= i < n and 0 <= j < n and i % 2 = 0 }", "i, j", "have holes"),
    ],
)
def test_loops_that_are_no_box(text: str, order: str, why: str) -> None:
    knl = lk.make_kernel(text, "b[i, j] = 1", [lk.GlobalArg("b", "float32", "n, n"), ...])
    with pytest.raises(lk.IllegalTransformError, match=why):
        knl.join_inames(order)


def test_chunks_of_loops_that_others_bound() -> None:
    knl = lk.make_kernel("{ [i, j]: 0 <= i < n and i <= j < n }", "b[i, j] = 1")
    for iname in "ij":
        with pytest.raises(lk.IllegalTransformError, match="depend on each other"):
            knl.chunk_iname(iname, 3)


def test_statements_between_are_refused() -> None:
    with pytest.raises(lk.IllegalTransformError, match="is inside some of the loops only"):
        rows().join_inames("i, k")


def carried() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = if(i > 0, b[i - 1, j] + 1, 0) {id=s}",
        [lk.GlobalArg("b", "float32", "n, m"), ...],
        assumptions="n, m >= 1",
    )


@pytest.mark.parametrize("late", [True, False])
def test_a_race_of_numbers(late: bool) -> None:
    """The witness is one: its sizes, too, belong together."""
    with pytest.raises(lk.RaceError) as caught:
        if late:
            carried().join_inames("i, j", "q").tag_inames("q: g.0")
        else:
            carried().join_inames("i, j", "q", tag="g.0")
    sizes = caught.value.witness.parameters
    assert sizes["n_m"] == sizes["n"] * sizes["m"]
    ends = [
        dict(end.inames)["q"] for end in (caught.value.witness.source, caught.value.witness.sink)
    ]
    assert max(ends) < sizes["n_m"] and ends[1] - ends[0] == sizes["m"]


def test_an_order_that_would_break_the_kernel_comes_first() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = if(i > 0 and j + 1 < m, b[i - 1, j + 1] + 1, 0) {id=s}",
        [lk.GlobalArg("b", "float32", "n, m"), ...],
        assumptions="n, m >= 1",
    )
    knl.join_inames("i, j")
    with pytest.raises(lk.IllegalTransformError, match="would read"):
        knl.join_inames("j, i")


def test_what_is_claimed_is_read_back() -> None:
    """A step that says that it counts loops in another way, and does more, is found out."""
    knl = scaled()
    n, m = map(parse_expression, "nm")
    claim = Joined(("i", "j"), (0, 0), (n, m), "q", parse_expression("n_m"))
    size = lk.ValueArg("n_m", np.dtype("int32"), parse_expression("n*m"))
    good = renumbered(knl, claim, size)
    check_change(knl, good)
    other = good.kernel.statements[0]
    wrong: list[Change] = [
        replace(good, kernel=good.kernel.with_(statements=(replace(other, rhs=other.lhs),))),
        replace(good, kernel=good.kernel.with_(tags=(("q", lk.Unroll()),)))
        if hasattr(lk, "Unroll")
        else replace(good, kernel=knl),
        renumbered(knl, claim, replace(size, default=parse_expression("n*m + 1"))),
        renumbered(knl, claim, replace(size, default=parse_expression("n*n"))),
        replace(good, claim=replace(claim, lengths=(m, n))),
        replace(good, claim=replace(claim, lows=(1, 0))),
        replace(good, claim=replace(claim, old=("j", "i"))),
        replace(good, kernel=knl),
    ]
    for change in wrong:
        with pytest.raises(lk.IllegalTransformError, match="cannot be counted in another way"):
            check_change(knl, change)


def test_a_fetch_in_some_of_the_loops_keeps_them_from_being_joined() -> None:
    knl = lk.make_kernel(
        "{ [g, r, jb, k]: 0 <= g < n and 0 <= r < 2 and 0 <= jb < m and 0 <= k < 4*l }",
        "c[2*g + r, jb] = sum(k, a[2*g + r, k]*b[jb, k])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )
    knl = knl.split_iname("k", 4).prioritize_loops(["k_outer", "jb", "k_inner"])
    knl = knl.add_prefetch("a", ["k_inner"], default_tag=None)
    with pytest.raises(lk.IllegalTransformError, match="inside some of the loops only, 'g' and"):
        knl.join_inames(["g", "jb", "r"], "tile")


@pytest.mark.host
@pytest.mark.parametrize("order", ["i, j", "j, i"])
def test_sizes_that_may_be_negative(order: str) -> None:
    """Where a loop has less than no iterations there are none at all, also where both have."""
    plain = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = 2*a[j, i]",
        [lk.GlobalArg("a, b", "float32", "p, p"), ...],
        assumptions="n, m <= p",
    )
    joined = plain.join_inames(order, "q")
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    for knl in (joined, joined.split_iname("q", 4, inner_tag="l.0", outer_tag="g.0")):
        assert knl.prove().ok
        for n, m in product((-3, -1, 0, 1, 4), repeat=2):
            expected, b = np.zeros_like(a), np.zeros_like(a)
            expected[: max(n, 0), : max(m, 0)] = 2 * a.T[: max(n, 0), : max(m, 0)]
            knl.executor("host")(a=a, b=b, n=n, m=m)
            np.testing.assert_array_equal(b, expected)


def test_an_argument_of_a_rule_may_have_the_name_of_a_loop() -> None:
    """Within the rule it is another name."""
    knl = scaled().extract_subst("entry", "2*a[j, i]", ["j", "i"])
    assert knl.join_inames("i, j", "q").prove().ok
    assert knl.chunk_iname("i", 4).prove().ok
    with pytest.raises(lk.IllegalTransformError, match="a rule uses the inames"):
        scaled().extract_subst("entry", "2*a[j, i]", ["j"]).chunk_iname("i", 4)
