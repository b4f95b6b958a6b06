"""Rules that hold reductions: they stay rules, and are precomputed by loops of their own."""

import numpy as np
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


def test_no_threads_yet():
    with pytest.raises(lk.IllegalTransformError, match="there are no threads yet"):
        rows().split_iname("i", 8).precompute("f", "i_inner")


def test_what_cannot_be_dealt_out_is_neither_run_nor_proven(monkeypatch):
    """Statements that share a loop which waits for threads do not get a loop each."""
    monkeypatch.setattr("loopkit.transforms._rule_results.LocalAuto", type("Never", (), {}))
    knl = rows().split_iname("i", 8).precompute("f", "i_inner")
    with pytest.raises(lk.IllegalTransformError, match="'acc_2' keeps one value"):
        knl.cuda()
    monkeypatch.setattr("loopkit._deal_out._has_place", lambda *_: True)
    again = rows().split_iname("i", 8).precompute("f", "i_inner")
    for text in (False, True):
        (found,) = again.prove(text=text).findings
        assert "dealt out wrongly" in found.what and "would read from acc_2" in found.what
