"""Rules that hold reductions: they stay rules, and are precomputed by loops of their own."""

import numpy as np
import pymbolic.primitives as prim
import pytest

import loopkit as lk

SIZES = [(1, 1), (2, 5), (16, 3), (37, 4)]


def rows(text="y[i] = f(i) + f(i + 1)\nz[i] = 2*f(i)", rule="f(x) := sum(k, a[x, k]*b[k])/m"):
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        f"{rule}\n{text}",
        [lk.GlobalArg("a", shape="(n + 1, m)"), lk.GlobalArg("b", shape="m"), ...],
        dtypes={n: "float32" for n in "abyz" if f"{n}[" in text + rule},
        assumptions="n, m >= 1",
    )


def same_as_text(text, knl):
    """Whether a schedule computes on the host, in three orders, what the text does."""
    assert knl.prove().ok
    for n, m in SIZES:
        r = np.random.default_rng(n)
        arrays = {"a": r.random((n + 1, m), np.float32), "b": r.random(m, np.float32)}
        arrays["u"] = r.random(m, np.float32)
        arrays = {name: array for name, array in arrays.items() if name in text.arg_by_name}
        sizes = {s: v for s, v in (("n", n), ("m", m)) if s in text.sizes}
        want = text.executor("reference")(**arrays, **sizes)
        for order in ("ascending", "descending", "random"):
            got = knl.executor("host", order=order, seed=1)(**arrays, **sizes)
            for one, two in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-5)


def names_of(knl):
    return [rule.name for rule in knl.substitutions]


def test_a_use_names_its_accumulators():
    knl = rows()
    assert names_of(knl) == ["f"]
    assert "f(x) := sum(k, a[x, k]*b[k]) / m" in str(knl)
    assert "y[i] = f(i, acc) + f(i + 1, acc_0)" in str(knl)
    assert "y[i] = acc / m + acc_0 / m" in str(knl.expand_subst())
    assert names_of(knl.expand_subst()) == []


@pytest.mark.host
@pytest.mark.parametrize(
    "schedule",
    [
        lambda k: k.split_iname("i", 16),
        lambda k: k.split_iname("k", 2).split_iname("i", 16, inner_tag="l.0"),
        lambda k: k.split_iname("i", 8).precompute("f", "i_inner", default_tag=None),
        lambda k: k.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").precompute(
            "f", "i_inner"
        ),
        lambda k: (
            k.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
            .precompute("f", "i_inner")
            .split_iname("k", 2)
            .add_prefetch("b", "k_inner", default_tag=None)
            .tag_inames("k_inner: unr")
        ),
        lambda k: (
            k.split_iname("i", 8)
            .precompute("f", "i_inner", within="writes:z", default_tag=None)
            .precompute("f", "i_inner", default_tag=None)
        ),
        lambda k: k.split_iname("i", 8).precompute("f(i)", "i_inner", default_tag=None),
    ],
)
def test_schedules(schedule):
    same_as_text(rows(), schedule(rows()))


@pytest.mark.host
@pytest.mark.parametrize(
    "rule",
    [
        "f(x) := max(k, a[x, k]*b[k]) - sum(k, a[x, k])",
        "h(x) := sin(a[x, 0])\nf(x) := h(x)*product(k, a[x, k] + b[k])",
        "g(x) := sum(k, a[x, k])\nf(x) := 2*g(x) + b[0]",
        "f(x) := sum(k, a[x, k] if k < x else b[k])",
    ],
)
def test_rules(rule):
    text = rows(rule=rule)
    knl = text.split_iname("i", 8).precompute("f", "i_inner", default_tag=None)
    assert "f" not in names_of(knl)
    same_as_text(text, knl)


NESTED = {
    "nested": ("f(x) := sum(j, u[j]*sum(k, a[x, k]*b[k]*u[j]))", "y[i] = f(i) + f(i + 1)"),
    "beside": (
        "f(x) := 1 + max(j, u[j]*sum(k, a[x, k]) + max(k, b[k]*a[x, k]))",
        "y[i] = f(i)*f(i + 1)\nz[i] = f(i)",
    ),
    "triangle": ("f(x) := max(l, u[l]*sum(h, a[x, h]))", "y[i] = f(i)\nz[i] = f(i + 1)"),
    "through": ("g(x, q) := sum(k, a[x, k]*u[q])\nf(x) := sum(j, b[j]*g(x, j))", "y[i] = f(i)"),
    "place": ("f(x) := argmax(k, a[x, k], k)", "y[i], z[i] = f(i)"),
    "one of two": (
        "f(x) := argmin(k, a[x, k]*b[k], k)",
        "<> v, <>_ = f(i)\n<>_, <> p = f(i + 1)\ny[i] = v\nz[i] = p",
    ),
    "place of sums": ("f(x) := argmax(j, sum(k, a[x, k]*u[j]), j)", "y[i], z[i] = f(i)"),
    "mean": ("f(x) := welford(k, a[x, k], 0*b[k], 1)", "y[i], z[i], <>_ = f(i)"),
    "segments": ("f(x) := 2*reduce(segmented(sum), k, a[x, k], b[k] < 0.5)", "y[i] = f(i)"),
    "segment": ("f(x) := reduce(segmented(max), k, a[x, k], b[k] < 0.5)", "y[i], z[i] = f(i)"),
}


def welford():
    """Means and sums of squared differences, of which any two parts make one."""

    def combine(a, b):
        (m1, s1, n1), (m2, s2, n2) = a, b
        n = n1 + n2
        d = m2 - m1
        share = prim.If(prim.Comparison(n, ">", 0), n2 / prim.Max((n, 1)), 0)
        return m1 + d * share, s1 + s2 + d * d * n1 * share, n

    return lk.register_reduction("welford", (0, 0, 0), combine)


def nested(rule):
    rule, text = NESTED[rule]
    return lk.make_kernel(
        [
            "{ [i, j, k]: 0 <= i < n and 0 <= j, k < m }",
            "{ [l]: 0 <= l < m }",
            "{ [h]: 0 <= h < l }",
        ],
        f"{rule}\n{text}",
        [
            lk.GlobalArg("a", shape="(n + 1, m)"),
            *(lk.GlobalArg(name, shape="m") for name in "bu" if f"{name}[" in rule),
            ...,
        ],
        dtypes={n: "float32" for n in "abu" if f"{n}[" in rule},
        assumptions="n, m >= 1",
        reductions=[welford()],
    )


@pytest.mark.share(2)
@pytest.mark.host
@pytest.mark.parametrize("rule", NESTED)
@pytest.mark.parametrize(
    "schedule",
    [
        lambda k: k.split_iname("i", 16, inner_tag="l.0").rename_iname("i_outer", "block"),
        lambda k: k.split_iname("i", 16).precompute("f", "i_inner", default_tag=None),
        lambda k: k.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").precompute(
            "f", "i_inner"
        ),
        lambda k: (
            k.split_iname("i", 4)
            .precompute("f", "i_inner", default_tag=None)
            .split_iname("i_outer", 4, inner_tag="l.0")
        ),
    ],
    ids=["kept", "precomputed", "shared", "scheduled"],
)
def test_nested_rules_and_those_with_several_results(rule, schedule):
    text = nested(rule)
    assert "f" in names_of(text)
    assert "f(i, acc" in str(text)
    knl = schedule(text)
    assert ("f" in names_of(knl)) == ("block" in knl.all_inames)
    same_as_text(text, knl)


@pytest.mark.parametrize("rule", NESTED)
def test_what_such_rules_become(rule, golden):
    text = nested(rule)
    knl = text.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").precompute("f", "i_inner")
    name = rule.replace(" ", "_")
    golden(f"rule_reductions_{name}.txt", f"{text}\n{knl}\n{knl.cuda()}")


@pytest.mark.host
@pytest.mark.parametrize("rule", [rule for rule in NESTED if "a[x, k]" in NESTED[rule][0]])
def test_rules_over_prefetched_arrays_stay_rules(rule):
    text = nested(rule).fix_parameters(m=4)
    knl = text.split_iname("i", 8).add_prefetch("a", "i_inner, k", default_tag=None)
    assert "f" in names_of(knl) and "f(8*i_outer + i_inner, acc" in str(knl)
    assert "a_r[x - 8*i_outer, k]" in str(knl) or "a_r[-8*i_outer + x, k]" in str(knl)
    later = knl.precompute("f", "i_inner", default_tag=None)
    assert all("a" not in s.names for s in later.statements if s.id.startswith("compute_f"))
    for one in (knl, later):
        assert one.prove().ok
        for n in (1, 8, 13):
            r = np.random.default_rng(n)
            arrays = {"a": r.random((n + 1, 4), np.float32), "b": r.random(4, np.float32)}
            arrays["u"] = r.random(4, np.float32)
            arrays = {name: array for name, array in arrays.items() if name in text.arg_by_name}
            want, got = (k.executor(e)(**arrays) for k, e in ((text, "reference"), (one, "host")))
            for mine, its in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-5)


def test_other_reads_of_a_rule_keep_it_as_it_was():
    """What a rule reads is exchanged in it where all that compute it read the copy."""
    text = nested("beside").fix_parameters(m=4).split_iname("i", 8)
    knl = text.add_prefetch("a", "i_inner, k", within="writes:acc_1", default_tag=None)
    assert "sum(k, a[x, k])" in str(knl) and "y[8*i_outer + i_inner] = f(" in str(knl)
    split = text.split_iname("k", 2).add_prefetch("a", "k_inner, k_outer", default_tag=None)
    assert "sum(k, a[x, k])" not in str(split) and split.prove().ok


@pytest.mark.parametrize("rule", NESTED)
def test_batches_of_rules(rule):
    text = nested(rule)
    many = lk.to_batched(text, "nb", "a")
    assert names_of(many) == names_of(text)
    assert "a[ibatch, x, " in str(many) and many.prove().ok
    later = many.split_iname("i", 8).precompute("f", "i_inner", default_tag=None)
    assert "f" not in names_of(later) and later.prove().ok


def test_several_results_in_an_expression():
    with pytest.raises(lk.ParseError, match="'argmax' has 2 results, and is no part"):
        rows("y[i] = f(i) + 1", "f(x) := argmax(k, a[x, k], k)")
    with pytest.raises(lk.ParseError, match="3 results are assigned, but 'argmax' has 2"):
        rows("y[i], <> s, <> t = f(i)", "f(x) := argmax(k, a[x, k], k)")


def test_bounds_that_differ_along_what_is_swept():
    for domains in (
        "{ [i, k]: 0 <= k <= i < 8 }",
        ["{ [i]: 0 <= i < 8 }", "{ [k]: 0 <= k <= i }"],
    ):
        knl = lk.make_kernel(
            domains, "f(x) := sum(k, a[x, k])\ny[i] = f(i)", dtypes={"a": "float32"}
        )
        with pytest.raises(lk.IllegalTransformError, match="differs along 'i' without an index"):
            knl.precompute("f", "i", default_tag=None)
        assert knl.precompute("f", default_tag=None).prove().ok


@pytest.mark.host
def test_a_rule_without_arguments():
    text = rows("y[i] = 2*f + f", "f := sum(k, a[i, k]*b[k])")
    same_as_text(text, text.split_iname("i", 8).precompute("f", "i_inner", default_tag=None))


@pytest.mark.host
def test_rules_of_which_a_use_decides_are_written_out():
    text = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 3 and 0 <= k < m }",
        "f(x) := max(k, a[x, k])\ny[i] = f(sum(j, j) - 3) + sum(j, f(0)*j)",
        [lk.GlobalArg("a", shape="(n + 1, m)"), ...],
        dtypes={"a, y": "float32"},
        assumptions="n, m >= 1",
    )
    assert str(text.statement_by_id["insn"].rhs).count("f(") == 0
    same_as_text(text, text.split_iname("i", 8))
    with pytest.raises(lk.ParseError, match="'sum' reduces over 'k' inside a reduction over 'k'"):
        rows("y[i] = sum(k, f(0)*b[k])", "f(x) := sum(k, a[x, k])")
    with pytest.raises(lk.ParseError, match="cannot reduce over 'k'"):
        rows("z[i, k] = b[k]*f(i)", "f(x) := sum(k, a[x, k])")


def test_types_may_come_later():
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        "f(x) := max(k, a[x, k])\ny[i] = f(i) + f(i + 1)",
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", 8).precompute("f", "i_inner", default_tag=None)
    typed = knl.add_and_infer_dtypes({"a": "int8"})
    assert typed.temporary_by_name["f_r"].dtype == np.int8
    assert typed.prove().ok


def test_what_is_written_between():
    text = """
    for i
        y[i] = f(i)                     {id=before}
        for j
            a[i, j] = 2*a[i, j]         {id=change}
        end
        z[i] = f(i)                     {id=after}
    end
    """
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < m }",
        f"f(x) := sum(k, a[x, k])\n{text}",
        dtypes={"a, y, z": "float32"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="before 'change'"):
        knl.precompute("f", "", default_tag=None)
    for one in ("before", "after"):
        assert knl.precompute("f", "", within=f"id:{one}", default_tag=None).prove().ok


def test_a_loop_that_is_gone():
    with pytest.raises(lk.IllegalTransformError, match="'f' reduces over 'k', which is no loop"):
        rows().split_iname("i", 8).split_iname("k", 2).precompute("f", "i_inner")


def test_kernels_of_such_rules_are_fused():
    both = lk.fuse_kernels([rows("y[i] = f(i)"), rows("z[i] = f(i)")], suffixes=["_a", "_b"])
    knl = both.split_iname("i", 8)
    for rule in names_of(knl):
        knl = knl.precompute(rule, "i_inner", default_tag=None)
    assert names_of(knl) == []
    assert knl.prove().ok


@pytest.mark.host
def test_what_rules_read_becomes_a_rule():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 8 }",
        """
        f(x) := 2*t[x]
        g(x) := sum(k, t[k])*t[x]
        for i
            for j
                <> t[j] = a[i, j]*2
            end
            y[i] = f(3) + t[2] + g(2)
        end
        """,
        dtypes={"a, y": "float32"},
        assumptions="n >= 1",
    )
    inlined = knl.assignment_to_subst("t")
    assert "t" not in inlined.temporary_by_name
    assert {"f", "g"} <= {*names_of(inlined)}
    a = np.random.default_rng(0).random((11, 8), np.float32)
    got = inlined.executor("host")(a=a)
    np.testing.assert_allclose(got, knl.executor("reference")(a=a), rtol=1e-5)
    assert inlined.prove().ok


def test_rules_of_another_kernel():
    rule = rows().substitutions[0]
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        "y[i] = f(i)",
        dtypes={"a, b, y": "float32"},
        assumptions="n, m >= 1",
        substitutions=[rule],
    )
    assert names_of(knl) == ["f"]
    assert [s.kind for s in knl.statements] == ["init", "update", "user"]


def test_a_type_to_sum_up_in():
    knl = rows("y[i] = f(i) + f(i + 1)", "f(x) := sum(k, a[x, k]*b[k], dtype=float64)")
    knl = knl.split_iname("i", 8).precompute("f", "i_inner", default_tag=None)
    assert {str(t.dtype) for t in knl.temporaries} == {"float64"}
    assert knl.prove().ok


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y[i] = f", "'f' is a substitution rule, and is used without arguments"),
        ("y[i] = f[i]", "'f' is a substitution rule, and is used without arguments"),
        ("y[i] = f(i, i)", "'f' takes 1 argument, but is used with 2"),
        ("y[i] = f(i, i, i)", "'f' takes 1 argument, but is used with 3"),
    ],
)
@pytest.mark.parametrize("rule", ["f(x) := sum(k, a[x, k])", "f(x) := a[x, 0]"])
def test_uses_with_other_arguments(text, message, rule):
    with pytest.raises(lk.ParseError, match=message):
        rows(text, rule)


@pytest.mark.host
@pytest.mark.parametrize("late", [False, True])
def test_threads_may_come_later(late):
    """A sum and what reads it are dealt out to threads together, whatever else is staged."""
    knl = rows().split_iname("i", 8)
    tags = "i_outer: g.0, i_inner: l.0"
    knl = knl if late else knl.tag_inames(tags)
    knl = knl.precompute("f", "i_inner")
    knl = knl.split_iname("k", 4) if late else knl
    knl = knl.tag_inames(tags) if late else knl
    assert knl.temporary_by_name["f_s"].address_space is not lk.AddressSpace.PRIVATE
    assert knl.prove().ok
    assert lk.auto_test_vs_ref(rows(), knl, parameters={"n": 21, "m": 7}, executor_name="host")


@pytest.mark.host
def test_copies_stand_in_front_of_what_waits_for_threads():
    knl = rows().fix_parameters(m=7).split_iname("i", 8, outer_tag="g.0").precompute("f", "i_inner")
    knl = knl.add_prefetch("b", "k").tag_inames("i_inner: l.0")
    assert knl.prove().ok


def test_what_cannot_be_dealt_out_is_neither_run_nor_proven(monkeypatch):
    """Statements that share a loop which waits for threads do not get a loop each."""
    monkeypatch.setattr("loopkit._deal_out._is_box", lambda *_: False)
    knl = rows().split_iname("i", 8)
    with pytest.raises(lk.IllegalTransformError, match="'acc_2' keeps one value"):
        knl.precompute("f", "i_inner")
    monkeypatch.setattr("loopkit._deal_out._has_place", lambda *_: True)
    again = rows().split_iname("i", 8).precompute("f", "i_inner")
    for text in (False, True):
        (found,) = again.prove(text=text).findings
        assert (
            "distribution of loops over threads is wrong" in found.what
            and "would read from acc_2" in found.what
        )
