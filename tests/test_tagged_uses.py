"""Uses with a tag, ``x$near[i]``: transforms select them, and nothing else knows of them."""

import json
import pickle
import re

import numpy as np
import pytest
from data_kernels import run_on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import completions, expand_rules, step_from_json, to_text, without_tags
from seams import matching_statements as matching

import loopkit as lk

TEXT = """
f(p) := 2*a$low[p]
out$mine[i] = x$near[i] + x[i + 1] + f$one(i) + f(i + 1) + x$near[i + 2]
"""


def made(text=TEXT, **more):
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        dtypes={n: "float32" for n in ("a", "x", "out") if re.search(rf"\b{n}[$\[]", text)},
        assumptions="n >= 1",
        name="tagged",
        **more,
    )


def tiled(knl=None):
    return (knl or made()).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def prefetched():
    return tiled().add_prefetch("x$near", "i_inner")


SCHEDULES = {
    "text": made,
    "prefetch": prefetched,
    "prefetch_all": lambda: tiled().add_prefetch("x", "i_inner"),
    "prefetch_in_a_rule": lambda: tiled().add_prefetch("a$low", "i_inner"),
    "precompute": lambda: tiled().precompute("f$one", "i_inner"),
    "precompute_all": lambda: tiled().precompute("f", "i_inner"),
    "buffer": lambda: tiled().buffer_array("out$mine", "i_inner"),
    "extract": lambda: tiled(made().extract_subst("g", "x$near[p]", "p")).precompute(
        "g", "i_inner"
    ),
    "range": lambda: (
        made()
        .split_iname("i", 16)
        .add_prefetch("x$near[16*i_outer:16*i_outer + 18]", default_tag=None)
    ),
}


def test_nest_and_source(golden):
    knl = prefetched().precompute("f$one", "i_inner")
    golden("tagged_uses.txt", f"{made()}\n\n{knl}\n\n{knl.cuda()}")


def test_only_selected_uses_change():
    knl = prefetched()
    text = to_text(knl.statement_by_id["insn"].rhs)
    assert text.startswith("x_near_s[i_inner] + x[16*i_outer + i_inner + 1] + f$one(")
    assert knl.temporary_by_name["x_near_s"].shape == (18,)
    assert knl.statement_by_id["fetch_x_near"].made_by == "add_prefetch('x$near')"
    assert {a.name for a in knl.args} == {"n", "a", "x", "out"}
    once = tiled().precompute("f$one", "i_inner")
    assert [r.name for r in once.substitutions] == ["f"]
    assert once.temporary_by_name["f_one_s"].shape == (16,)
    held = SCHEDULES["prefetch_in_a_rule"]()
    assert to_text(held.rule_by_name["f"].expression) == "2*a_low_s[p - 16*i_outer]"
    named = made().extract_subst("g", "x$near[p]", "p")
    assert to_text(named.rule_by_name["g"].expression) == "x$near[p]"
    assert to_text(named.statements[0].rhs) == "g(i) + x[i + 1] + f$one(i) + f(i + 1) + g(i + 2)"
    every = made().extract_subst("g", "x[p]", "p")
    assert to_text(every.statements[0].rhs) == "g(i) + g(i + 1) + f$one(i) + f(i + 1) + g(i + 2)"


def test_what_is_left_keeps_its_tag():
    knl = made("out[i] = x$near[i] + x$near[i + 40]").split_iname("i", 16)
    knl = knl.add_prefetch("x$near", "i_inner", default_tag=None, footprint_subscripts="i")
    assert to_text(knl.statement_by_id["insn"].rhs) == (
        "x_near_r[i_inner] + x$near[16*i_outer + i_inner + 40]"
    )
    knl = made("f(p) := a[p]*a[p]\nout[i] = f$u(i) + f$v(i + 40) + f$u(i + 40)").split_iname(
        "i", 16
    )
    knl = knl.precompute("f$u(i)", "i_inner", default_tag=None)
    assert to_text(knl.statement_by_id["insn"].rhs) == (
        "f_u_r[i_inner] + f$v(16*i_outer + i_inner + 40) + f$u(16*i_outer + i_inner + 40)"
    )


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n", [1, 15, 37])
def test_they_run(name, n):
    rng = np.random.default_rng(n)
    a, x = rng.random(n + 1, dtype=np.float32), rng.random(n + 2, dtype=np.float32)
    want = x[:n] + x[1 : n + 1] + 2 * a[:n] + 2 * a[1:] + x[2:]
    knl = SCHEDULES[name]()
    arrays = {"a": a, "x": x}
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order, seed=1)(**arrays)
        np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(knl.executor("reference")(**arrays), want, rtol=1e-5)


@pytest.mark.parametrize("name", SCHEDULES)
def test_they_mean_nothing_to_the_value(name):
    plain = made(re.sub(r"\$[a-z]+", "", TEXT))
    knl = SCHEDULES[name]()
    assert lk.verify(plain, knl)
    assert knl.prove() and knl.prove(text=True)
    if name == "text":
        assert expand_rules(knl).statements == expand_rules(plain).statements
        assert knl.cuda() == plain.cuda()
        assert knl != plain and knl.key != plain.key


def test_round_trips():
    knl = prefetched().extract_subst("g", "x_near_s[p] + x[q]", "p, q")
    assert pickle.loads(pickle.dumps(knl)) == knl
    steps = [step_from_json(json.loads(json.dumps(step.to_json()))) for step in knl.history]
    assert lk.replay(made(), steps) == knl
    assert ".add_prefetch('x$near', sweep_inames='i_inner')" in knl.script()


def test_names_that_change_keep_their_tags():
    knl = made().rename_argument("x", "y").split_iname("i", 16)
    assert "y$near[16*i_outer + i_inner] + " in to_text(knl.statements[0].rhs)
    both = lk.fuse_kernels([made(), made()], ["", "_2"], data_flow=[])
    assert [sorted(s.tagged) for s in both.statements] == [
        [("f", "one"), ("out", "mine"), ("x", "near")],
        [("f_0", "one"), ("out", "mine"), ("x", "near")],
    ]


def test_match_strings():
    knl = made("out[i] = x$near[i] {id=p}\nx[i] = a[i] {id=q}\nx$near[i] = x[i] + a[i] {id=r}")
    for match, ids in {
        "reads:x$near": {"p"},
        "writes:x$near": {"r"},
        "reads:x": {"p", "r"},
        "writes:x": {"q", "r"},
    }.items():
        assert matching(knl, match) == ids


def test_updates():
    text = "h$mine[c[i]] = h[c[i]] + 1 {atomic}"
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", text, [lk.GlobalArg("h", shape=64), ...], dtypes={"h, c": "int32"}
    )
    assert "h$mine[c[i]] += 1" in str(knl)
    private = (
        knl.assume_within("c", 0, 64)
        .split_iname("i", 256, outer_tag="g.0")
        .split_iname("i_inner", 64, inner_tag="l.0")
        .buffer_array("h$mine", ["i_inner_outer", "i_inner_inner"], partial=True)
    )
    assert "h_mine_buf" in private.temporary_by_name
    c = np.random.default_rng(0).integers(0, 64, 300, dtype=np.int32)
    found = run_on_host(private, {"h": np.zeros(64, np.int32), "c": c}, {"n": 300})
    np.testing.assert_array_equal(found["h"], np.bincount(c, minlength=64))


def test_the_tag_first():
    for data in ([lk.GlobalArg("x, out", "float32", "n"), lk.ValueArg("n", "int32")], None):
        knl = lk.make_kernel(
            "{ [i]: 0 <= i < n }", "out[i] = near$x[i]", data, dtypes={"x, out": "float32"}
        )
        assert knl.statements[0].tagged == {("x", "near")}
    first = lk.make_kernel("{ [i]: 0 <= i < n }", "out[i] = near$x[i]", dtypes={"out": "float32"})
    assert first.statements[0].tagged == {("near", "x")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("out[i] = sin$fast(x[i])", "'sin' is a function"),
        ("out[i$k] = x[i]", "'i' is an iname"),
        ("out[i] = n$k*x[i]", "'n' is a number"),
        ("f(p) := p$k*2\nout[i] = f(x[i])", "'p' is an argument"),
        ("out[i] = x$ near[i]", "without blanks"),
        ("out[i] = x$1[i]", "without blanks"),
        ("out[i] = x$near$far[i]", "without blanks"),
    ],
)
def test_texts_that_are_refused(text, why):
    with pytest.raises(lk.LoopkitError, match=why.replace("$", r"\$")):
        made(text)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (lambda k: k.add_prefetch("x$far", "i_inner"), "has the tag 'far'\ntagged uses are x$near"),
        (lambda k: k.precompute("f$two", "i_inner"), "has the tag 'two'\ntagged uses are f$one"),
        (lambda k: k.buffer_array("out$my", "i_inner"), "the tag 'my'\ntagged uses are out$mine"),
        (lambda k: k.add_prefetch("a$near", "i_inner"), "the tag 'near'\ntagged uses are a$low"),
        (lambda k: k.add_prefetch("out$mine", "i_inner"), "no use of 'out' that could be meant"),
        (lambda k: k.add_prefetch("y$near", "i_inner"), "there is no array 'y'"),
        (lambda k: k.extract_subst("g", "x$far[p]", "p"), "no expression matches the template"),
        (lambda k: k.add_prefetch("x$", "i_inner"), "a name, or one with a tag"),
        (lambda k: k.rename_argument("x$near", "y"), "is a name, not"),
    ],
)
def test_selections_that_are_refused(step, why):
    with pytest.raises(lk.LoopkitError) as caught:
        step(tiled())
    assert why in str(caught.value)


def test_a_copy_must_hold_what_the_tagged_use_reads():
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n - 1 }",
        "a[i + 1] = a$before[i] + b[i] {id=step}",
        dtypes={"a, b": "float32"},
        assumptions="n >= 2",
    )
    with pytest.raises(lk.IllegalTransformError) as caught:
        knl.split_iname("i", 16).add_prefetch("a$before", "i_inner", default_tag=None)
    assert "'step' (i=1) would read a[1] before 'step' (i=0) has written it" in str(caught.value)
    assert "buffer_array" not in str(caught.value) or "a$before" not in str(caught.value)


def test_completion():
    names = {"k": made()}
    assert ("x$near", "array") in completions('k.add_prefetch("x', names)[1]
    assert completions('k.precompute("f$', names) == ("f$", [("f$one", "rule")])
    assert completions('k.buffer_array("out$', names) == ("out$", [("out$mine", "array")])


WORDS = st.sampled_from(["", "$u", "$v", "$u2"])


@settings(max_examples=15, deadline=None)
@given(tags=st.lists(WORDS, min_size=4, max_size=4), chosen=st.sampled_from(["u", "v", "u2"]))
def test_any_choice_of_tags_is_the_same_program(tags, chosen):
    form = "out[i] = x{}[i] + 3*x{}[i + 1] + x{}[i]*x{}[i + 2]"
    knl, plain = made(form.format(*tags)), made(form.format("", "", "", ""))
    assert without_tags(knl.statements[0].rhs) == plain.statements[0].rhs
    if f"${chosen}" not in tags:
        with pytest.raises(lk.IllegalTransformError, match=f"has the tag '{chosen}'"):
            tiled(knl).add_prefetch(f"x${chosen}", "i_inner")
        return
    staged = tiled(knl).add_prefetch(f"x${chosen}", "i_inner")
    assert not {t for s in staged.statements for _, t in s.tagged} & {chosen}
    left = sum(t != f"${chosen}" for t in tags)
    assert [n for n, _ in staged.statement_by_id["insn"].reads].count("x") == left


STEPS = {
    "prefetch": lambda k, near, one: k.add_prefetch(near, "i_inner"),
    "precompute": lambda k, near, one: k.precompute(one, "i_inner"),
    "invocation": lambda k, near, one: k.precompute(f"{one}(i)", "i_inner"),
    "template": lambda k, near, one: k.extract_subst("g", f"{near}[p]", "p"),
    "match": lambda k, near, one: k.tag_instructions("load", f"reads:{near}"),
    "buffer": lambda k, near, one: k.buffer_array(
        near.replace("x", "out").replace("near", "mine"), "i_inner"
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_tags_in_front_of_names(step):
    """As in texts: where one of the two words is an array or a rule, the other is the tag."""
    behind = STEPS[step](tiled(), "x$near", "f$one")
    front = STEPS[step](tiled(), "near$x", "one$f")
    said = str(front).replace("'near$x'", "'x$near'").replace("'mine$out'", "'out$mine'")
    assert said.replace("one$f", "f$one") == str(behind)
    with pytest.raises(lk.LoopkitError):
        STEPS[step](tiled(), "near$z", "one$h")
