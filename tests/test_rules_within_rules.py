"""Rules that hold sums, used within others that do: all stay rules, and each is precomputed."""

import itertools
import pickle

import numpy as np
import pytest

import loopkit as lk

TEXT = """
ur(e, a) := sum(q, D[a, q]*u[e, q])
fr(e, a) := G[e, a]*ur(e, a)
out[e, b] = sum(a, D[a, b]*fr(e, a))
"""
WITHIN = """
ur(e, a) := sum(q, D[a, q]*u[e, q])
fr(e, c) := sum(a, D[a, c]*G[e, a]*ur(e, a))
out[e, b] = 2*fr(e, b)
"""


def factors(text=TEXT):
    return lk.make_kernel(
        "{ [e, b, a, q]: 0 <= e < n and 0 <= a, b, q < 4 }",
        text,
        dtypes={"D, u, G": "float32"},
        assumptions="n >= 1",
        name="factors",
    )


def check(knl, factor=1):
    assert knl.prove().ok
    for n in (1, 5, 8, 13):
        r = np.random.default_rng(n)
        D, u, G = (r.random(shape, np.float32) for shape in ((4, 4), (n, 4), (n, 4)))
        want = factor * (G * (u @ D.T)) @ D
        for order in ("ascending", "descending", "random"):
            got = knl.executor("host", order=order, seed=1)(D=D, u=u, G=G)
            np.testing.assert_allclose(got, want, rtol=1e-5)


def ahead(knl, rule, sweep="a", **options):
    return knl.precompute(rule, sweep, default_tag=None, **options)


SCHEDULES = {
    "kept": lambda k: k.split_iname("e", 8),
    "inner": lambda k: ahead(k, "ur"),
    "outer": lambda k: ahead(k, "fr"),
    "split, inner": lambda k: ahead(k.split_iname("e", 8, outer_tag="g.0", inner_tag="l.0"), "ur"),
    "inner, split": lambda k: ahead(k, "ur").split_iname("e", 8, outer_tag="g.0", inner_tag="l.0"),
    "prefetched, inner": lambda k: ahead(k.add_prefetch("D", "a, b, q", default_tag=None), "ur"),
    "outer, inner": lambda k: ahead(ahead(k, "fr"), "ur", "fr_dim_1"),
    "inner, outer": lambda k: ahead(ahead(k, "ur"), "fr"),
    "inner, a copy of u by its first name": lambda k: ahead(
        k.split_iname("e", 8), "ur"
    ).add_prefetch("u[e, :]", default_tag=None),
    "blocks, in shared memory": lambda k: (
        k.split_iname("e", 8, outer_tag="g.0", inner_tag="l.0")
        .precompute("ur", "e_inner, a")
        .precompute("fr", "e_inner, a")
    ),
}


@pytest.mark.host
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_rule_of_a_sum_times_a_factor(schedule):
    check(SCHEDULES[schedule](factors()))


@pytest.mark.host
@pytest.mark.parametrize(
    "schedule",
    [
        lambda k: k.split_iname("e", 8),
        lambda k: ahead(k, "ur"),
        lambda k: ahead(k, "fr", "b"),
        lambda k: ahead(ahead(k, "fr", "b"), "ur"),
        lambda k: ahead(ahead(k, "ur"), "fr", "b"),
        lambda k: (
            k.split_iname("e", 8, outer_tag="g.0", inner_tag="l.0")
            .precompute("ur", "e_inner, a")
            .precompute("fr", "e_inner, b")
        ),
    ],
    ids=["kept", "inner", "outer", "outer, inner", "inner, outer", "shared"],
)
def test_a_sum_of_a_rule_of_a_sum(schedule):
    check(schedule(factors(WITHIN)), factor=2)


def test_what_they_become(golden):
    text = factors()
    assert "fr(e, a) := G[e, a]*ur(e, a)\n" in str(text)
    knl = ahead(text.split_iname("e", 8, outer_tag="g.0", inner_tag="l.0"), "ur")
    golden("rules_within_rules.txt", f"{text}\n{knl}\n{knl.cuda()}")


CHAIN = """
ur(e, a) := sum(q, D[a, q]*u[e, q])
fr(e, a) := G[e, a]*ur(e, a)
hr(e, a) := 2*fr(e, a) + ur(e, a)
out[e, b] = sum(a, D[a, b]*fr(e, a)) {id=one}
more[e, b] = hr(e, b)                {id=two}
"""
TOGETHER = {"ur": "a, b", "fr": "a, b", "hr": "b"}


def same_as_text(text, knl):
    assert knl.prove().ok
    for n in (1, 7, 8):
        r = np.random.default_rng(n)
        arrays = {"D": r.random((4, 4), np.float32), "place": r.integers(0, 3, n, np.int32)}
        arrays |= {name: r.random((n, 4), np.float32) for name in "uG"}
        arrays = {name: array for name, array in arrays.items() if name in text.arg_by_name}
        want = text.executor("reference")(**arrays)
        for order in ("ascending", "descending", "random"):
            got = knl.executor("host", order=order, seed=1)(**arrays)
            for mine, its in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-5)


@pytest.mark.host
@pytest.mark.parametrize("order", [*itertools.permutations(TOGETHER)], ids="-".join)
def test_a_chain_in_any_order(order):
    """Whichever is computed ahead first, what the others say of it is exchanged in them."""
    text = knl = factors(CHAIN)
    for rule in order:
        around = [i for i in knl.all_inames if i.startswith(("fr_dim", "hr_dim"))]
        knl = ahead(knl, rule, [*TOGETHER[rule].split(", "), *around])
    assert not knl.substitutions
    assert sum(s.kind == "update" for s in knl.statements) == 2
    same_as_text(text, knl)


@pytest.mark.host
def test_others_use_it_as_it_was():
    text = factors(CHAIN)
    one = ahead(text, "ur", "a", within="writes:acc")
    assert [r.name for r in one.substitutions] == ["fr", "fr_0", "hr", "ur"]
    assert "fr_0(e, a) := G[e, a]*ur_r[a]" in str(one) and "hr(e, b, acc_1, acc_2)" in str(one)
    two = ahead(text, "ur", "b", within="id:two")
    assert "hr(e, a) := 2*fr_0(e, a) + ur_r[a]" in str(two) and str(two).endswith("= hr(e, b)")
    both = ahead(text, "fr", "a, b")
    assert "hr(e, a) := 2*fr_r[a] + ur(e, a)" in str(both) and "hr(e, b, acc_2)" in str(both)
    for knl in (one, two, both, ahead(two, "hr", "b")):
        same_as_text(text, knl)


USES = {
    "every third": ("fr(e, a) := G[e, a]*ur(e, 3*a)", "sum(r, D[r, b]*fr(e, r))", "ur_r[a]"),
    "of every third": (
        "fr(e, a) := G[e, a]*ur(e, a)",
        "sum(r, D[r, b]*fr(e, 3*r))",
        "ur_r[a // 3]",
    ),
    "backwards": ("p(x) := 3 - x\nfr(e, a) := G[e, a]*ur(e, p(a))", "sum(r, fr(e, r))", "[-a + 1]"),
    "in a sum": ("fr(e, c) := sum(r, D[r, c]*ur(e, 3*r))", "fr(e, 2)", "D[r, c]*ur_r[r]"),
    "in a sum backwards": (
        "p(x) := 3 - x\nfr(e, c) := sum(r, D[r, c]*ur(e, p(r)))",
        "2*fr(e, 2)",
        "D[r, c]*ur_r[-r + 1]",
    ),
}


def using(rule, statement):
    text = f"ur(e, a) := sum(q, D[a, q]*u[e, q])\n{rule}\nout[e, b] = {statement}"
    matrices = (name for name in "uG" if f"{name}[" in text)
    knl = lk.make_kernel(
        "{ [e, b, r, q]: 0 <= e < n and 0 <= r < 2 and 0 <= b, q < 4 }",
        text,
        [
            lk.GlobalArg("D", shape=(4, 4)),
            *(lk.GlobalArg(name, shape="(n, 4)") for name in matrices),
            *([lk.GlobalArg("place", "int32", shape="n")] if "place" in text else []),
            ...,
        ],
        dtypes={name: "float32" for name in "DuG" if f"{name}[" in text},
        assumptions="n >= 1",
    )
    return knl.assume_within("place", 0, 3) if "place" in text else knl


@pytest.mark.host
@pytest.mark.parametrize("use", USES)
def test_what_a_rule_uses_of_another(use):
    rule, statement, exchanged = USES[use]
    text = using(rule, statement)
    knl = ahead(text, "ur", "r")
    assert exchanged in str(knl)
    same_as_text(text, knl)
    both = ahead(knl, "fr", "r" if "r" in knl.statement_by_id["insn"].inames else "")
    assert "fr" not in both.rule_by_name
    same_as_text(text, both)


@pytest.mark.host
def test_rules_without_sums_in_a_sum():
    """What a rule's sum reads of another rule is exchanged like what it reads of an array."""
    text = using("g(x) := 2*D[x, 1]\nh(x) := sum(r, g(x + r))", "h(b % 2) + ur(e, b)")
    knl = ahead(text, "g", "b, r")
    assert "h(x) := sum(r, g_r[x + r])" in str(knl)
    same_as_text(text, ahead(knl, "h", "b"))


def test_where_data_decide_which_values_are_used():
    """Of a rule that another one uses at a place that data choose, the other is the first."""
    beside = using("fr(e, a) := G[e, a]*ur(e, place[e] + a)", "sum(r, D[r, b]*fr(e, r))")
    assert ahead(ahead(beside, "fr", "r"), "ur", "fr_dim_1").prove().ok
    with pytest.raises(lk.IllegalTransformError, match="precompute 'fr' before 'ur', which it"):
        ahead(ahead(beside, "ur", "r"), "fr", "r")
    within = using("fr(e, c) := sum(r, D[r, c]*ur(e, place[e] + r))", "2*fr(e, b)")
    assert ahead(ahead(within, "fr", "b"), "ur", "r").prove().ok
    with pytest.raises(lk.IllegalTransformError, match="where the rule has a sum over q\nprecom"):
        ahead(ahead(within, "ur", "r"), "fr", "b")


def test_arguments_that_are_called_as_loops_are():
    """A copy that moves with a loop is named in a rule whose argument had that loop's name."""
    for rule, mine in (
        ("fr(e_outer, c) := D[0, c]*ur(e_outer, c)", "ur_r[e_outer_0 - 4*e_outer, c]"),
        ("fr(e_outer, c) := sum(r, D[r, c]*ur(e_outer, r))", "ur_r[e_outer_0 - 4*e_outer, r]"),
    ):
        text = using(rule, "fr(e, b)")
        knl = text.split_iname("e", 4)
        knl = ahead(knl, "ur", [i for i in ("e_inner", "b", "r") if i in knl.all_inames])
        assert mine in str(knl) and "fr(e_outer_0, c) :=" in str(knl)
        same_as_text(text, knl)
        same_as_text(text, ahead(knl, "fr", "e_inner, b"))


def test_names_of_loops_that_were_split_stay_known():
    knl = ahead(factors().split_iname("e", 8), "ur")
    for one in (knl, pickle.loads(pickle.dumps(knl)), knl.assume("n <= 99"), ahead(knl, "fr")):
        fetched = one.add_prefetch("u[e, :]", default_tag=None)
        assert "u_r[u_dim_1] = u[8*e_outer + e_inner, u_dim_1]" in str(fetched)


SUMS_OF_RULES = """
f0(e, a) := sum(q, D[a, q]*u[e, q])
f1(e, a) := G[e, a]*f0(e, a)
f3(e, a) := sum(q3, D[q3, a]*f1(e, q3))
"""


def sums_of_rules(*statements):
    return lk.make_kernel(
        "{ [e, b, q, q3]: 0 <= e < n and 0 <= b, q, q3 < 4 }",
        SUMS_OF_RULES + "\n".join(statements),
        [
            lk.GlobalArg("D", "float32", "4, 4"),
            *(lk.GlobalArg(a, "float32", "n, 4") for a in "uG"),
            ...,
        ],
        assumptions="n >= 1",
    )


@pytest.mark.host
@pytest.mark.parametrize(
    "others", [(), ("p[e, b] = f1(e, b) {id=two}",), ("f2(x, y) := 2*f1(x, y)",)]
)
@pytest.mark.parametrize("order", [*itertools.permutations(["f0", "f1", "f3"])], ids="-".join)
def test_a_rule_within_a_sum_of_another(others, order):
    """What a sum reads of a rule is exchanged where that is, though others use it or none do."""
    text = knl = sums_of_rules(*others, "o[e, b] = f3(e, b)")
    for rule in order:
        sweep = [i for i in knl.all_inames if i in ("b", "q3") or "_dim_1" in i]
        knl = ahead(knl, rule, sweep)
    assert {r.name for r in knl.substitutions} <= {"f0", "f1", "f1_0", "f2"}
    assert sum(s.kind == "update" for s in knl.statements) == 2
    same_as_text(text, knl)


@pytest.mark.host
def test_a_sum_that_some_compute_with_a_copy():
    text = sums_of_rules("o[e, b] = f3(e, b)", "p[e, b] = f1(e, b) {id=two}")
    knl = ahead(text, "f0", "q3", within="not id:two")
    assert "f3(e, a) := sum(q3, D[q3, a]*f1_0(e, q3))" in str(knl)
    for rule in ("f1", "f1_0", "f3"):
        same_as_text(text, ahead(knl, rule, "b, q3"))


def test_what_nothing_uses_means_what_it_meant():
    text = sums_of_rules("f2(x, y) := 2*f1(x, y)", "o[e, b] = f3(e, b)")
    knl = ahead(text, "f0", "q3")
    assert "f1_0(e, a) := G[e, a]*f0(e, a)" in str(knl)
    assert "f2(x, y) := 2*f1_0(x, y)" in str(knl)
    with pytest.raises(lk.IllegalTransformError, match=r"anywhere$"):
        ahead(text, "f2", "b")


@pytest.mark.host
def test_a_rule_that_is_called_by_a_line_alone():
    """``_`` is a name like others: what is made of it is ``_0``, as two lines are C's own."""
    text = lk.make_kernel(
        "{ [e, b, q]: 0 <= e < n and 0 <= b, q < 4 }",
        "_(a) := sum(q, D[a, q]*u[e, q])\nf(a) := 2*_(a)\nout[e, b] = f(b)",
        dtypes={"D, u": "float32"},
        assumptions="n >= 1",
    )
    assert text.fresh_name("_") == "_0" and text.fresh_name("__") == "_0"
    for knl in (ahead(text, "_", "b"), ahead(ahead(text, "f", "b"), "_", "f_dim_0")):
        same_as_text(text, knl)


@pytest.mark.host
@pytest.mark.parametrize(
    ("first", "argument"),
    [("f0", "f0"), ("f0", "f2"), ("f1", "f0"), ("f1", "f2"), ("f2", "f0"), ("f2", "f2")],
)
def test_arguments_that_are_called_as_rules_are(first, argument):
    text = lk.make_kernel(
        "{ [e, b, q]: 0 <= e < n and 0 <= b, q < 4 }",
        f"""
        f0(e, a) := sum(q, D[a, q]*u[e, q])
        f1(e, {argument}) := G[e, {argument}]*f0(e, {argument})
        f2(e, a) := f1(e, a) + f0(e, a)
        o[e, b] = f2(e, b)
        """,
        [
            lk.GlobalArg("D", "float32", "4, 4"),
            *(lk.GlobalArg(a, "float32", "n, 4") for a in "uG"),
            ...,
        ],
        assumptions="n >= 1",
    )
    same_as_text(text, ahead(text, first, "b"))
