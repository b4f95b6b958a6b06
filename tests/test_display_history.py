"""A history: each step can be opened, and what changed is what really did."""

from __future__ import annotations

import copy
import functools
import importlib
import pickle
import sys
from collections import Counter
from pathlib import Path

import pytest
from html_page import Page
from seams import (
    ANSWERS,
    Diff,
    History,
    Step,
    beside,
    changes,
    diff_html,
    html_text,
    step_from_json,
)
from seams import show as _show

import loopkit as lk
from loopkit import Kernel

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))


@functools.cache
def tiled() -> Kernel:
    made: Kernel = importlib.import_module("matmul").make()["tiled"]
    return made


def product(**options: object) -> Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "<> t = a[i, j]\nb[i, j] = 2*t",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        **options,  # type: ignore[arg-type]
    )


def test_each_step_knows_its_kernels() -> None:
    knl = tiled()
    assert isinstance(knl.history, History)
    made = knl.history[0].before
    assert made == knl.lineage.root and made.history == ()  # type: ignore[union-attr]
    for number, step in enumerate(knl.history):
        assert step.before == made and step.before.history == knl.history[:number]
        made = lk.replay(made, [step])
        assert step.kernel == made and step.kernel.history == knl.history[: number + 1]
    assert knl.history[-1].kernel == knl


def test_a_step_opened_can_be_scheduled_on_and_is_proven() -> None:
    opened = tiled().history[1].kernel
    assert opened.lineage is not None
    other = opened.split_iname("k", 8)
    assert [s.verdict for s in other.history] == ["proven"] * 3
    with pytest.raises(lk.IllegalTransformError):
        other.tag_inames("k_inner: l.0").tag_inames("k_outer: g.0")


def test_slices_and_kernels_without_steps() -> None:
    knl = tiled()
    assert isinstance(knl.history[1:3], History) and len(knl.history[1:3]) == 2
    assert isinstance(product().history, History) and product().history == ()
    assert repr(product().history) == "no step so far"
    assert product().with_(history=()).history == ()
    assert isinstance(knl.with_(history=tuple(knl.history)).history, History)


def test_kernels_of_steps_are_not_compared_and_not_stored() -> None:
    knl = tiled()
    bare = [step_from_json(step.to_json()) for step in knl.history]
    assert [s.kernels for s in bare] == [None] * len(bare)
    assert tuple(s.transform for s in bare) == tuple(s.transform for s in knl.history)
    for again in (pickle.loads(pickle.dumps(knl)), copy.deepcopy(knl)):
        assert again == knl and again.key == knl.key
        assert again.history == knl.history
        assert all(step.kernels is None for step in again.history)
        with pytest.raises(lk.InvalidArgumentError, match="stored without its kernels"):
            again.history[0].diff()
        assert str(again.history).splitlines()[0] == str(knl.history).splitlines()[0]
        assert Page(again.history._repr_mimebundle_()["text/html"]).text
        assert Page(again.history[0]._repr_mimebundle_()["text/html"]).text


def test_a_history_keeps_nothing_that_its_kernels_remember() -> None:
    knl = product().split_iname("i", 4)
    str(knl), knl.cuda()
    assert knl.history[0].kernels is not None
    assert all(ANSWERS not in kernel.__dict__ for kernel in knl.history[0].kernels)


def names(kernel: Kernel) -> dict[str, set[str]]:
    return {
        "iname": {*kernel.all_inames},
        "array": {a.name for a in (*kernel.args, *kernel.temporaries)} - {*kernel.sizes},
        "statement": {s.id for s in kernel.statements},
        "rule": {r.name for r in kernel.substitutions},
        "size": {*kernel.sizes},
    }


@pytest.mark.parametrize("example", ["matmul_registers", "stencil_25", "segmented_sum", "matmul"])
def test_changes_are_those_of_the_names(example: str) -> None:
    for knl in importlib.import_module(example).make().values():
        for step in knl.history:
            old, new = names(step.before), names(step.kernel)
            found = step.changes()
            assert len(set(found)) == len(found)
            for kind in old:
                of = {
                    what: {c.name for c in found if (c.kind, c.what) == (kind, what)}
                    for what in ("new", "gone", "changed")
                }
                assert of["new"] == new[kind] - old[kind]
                assert of["gone"] == old[kind] - new[kind]
                assert of["changed"] <= old[kind] & new[kind]
            assert found or step.kernel == step.before, step


def test_changes_in_words() -> None:
    knl = product().split_iname("i", 4, outer_tag="g.0").prioritize_loops("j,i_inner")
    knl = knl.fix_parameters(m=8).set_temporary_address_space("t", "private").assume("n >= 3")
    text = str(knl.history)
    for line in (
        "+ inames i_outer (g.0), i_inner",
        "- iname i",
        "~ statements insn, insn_0",
        "~ loops their order",
        "- size m",
        "+ assumption n >= 3",
    ):
        assert f"       {line}\n" in text + "\n", text
    first = text.splitlines()[0]
    assert first.startswith("  0  proven ")
    assert first.endswith(" ms  split_iname('i', 4, outer_tag='g.0')")
    assert changes(knl, knl) == ()


@pytest.mark.parametrize("what", ["diff", "source_diff"])
def test_a_diff_says_what_went_and_what_came(what: str) -> None:
    for step in tiled().history:
        diff: Diff = getattr(step, what)()
        text = [str, lambda k: str(k.cuda())][what == "source_diff"]
        assert diff.before == text(step.before) and diff.after == text(step.kernel)
        old, new = Counter(diff.before.splitlines()), Counter(diff.after.splitlines())
        said = str(diff).splitlines()[2:]
        assert Counter(s[1:] for s in said if s[0] == "-") - (old - new) <= new
        assert (old - new) <= Counter(s[1:] for s in said if s[0] == "-")
        assert (new - old) <= Counter(s[1:] for s in said if s[0] == "+")
        page = Page(html_of(diff))
        came = "".join(s[1:] for s in said if s[0] == "+").split()
        assert set("".join(came)) <= set(page.text)


def html_of(value: Diff) -> str:
    return value._repr_mimebundle_()["text/html"]


def test_a_diff_marks_the_words() -> None:
    page = html_of(Diff("nest", "a\nfor i in [0, n)\nb", "a\nfor i_outer in [0, n)\nb"))
    assert "<del>i</del>" in page and "<ins>i_outer</ins>" in page
    assert not Diff("nest", "a", "a") and str(Diff("nest", "a", "a")) == "the nest stays as it is"
    assert "stays as it is" in Page(html_of(Diff("source", "", ""))).text
    hostile = Diff("nest", "<script>x</script>", "<script>y</script>\x1b")
    assert Page(html_of(hostile)).text.count("<script>") == 2
    long = Diff("nest", "\n".join(map(str, range(3000))), "\n".join(map(str, range(1, 3001))))
    assert len(Page(html_of(long)).tags) < 30
    other = Diff(
        "nest", "\n".join(f"a{n}" for n in range(900)), "\n".join(f"b{n}" for n in range(900))
    )
    assert len(Page(html_of(other)).tags) == 1800 + 3


def test_costs_of_each_step() -> None:
    knl = tiled()
    found = knl.history.at(n=64, m=48, l=32)
    kernels = [knl.history[0].before, *(s.kernel for s in knl.history)]
    assert [s.step for s in found.stages] == [None, *knl.history]
    for stage, kernel in zip(found.stages, kernels, strict=True):
        costs = kernel.costs(n=64, m=48, l=32)
        assert stage.costs is not None and stage.costs.operations == costs.operations
        assert stage.operations == 2 * 64 * 48 * 32
        assert stage.moved == sum(v or 0 for v in costs.moved.values())
    assert found.stages[-1].wavefronts and not found.stages[0].wavefronts
    page = Page(found._repr_mimebundle_()["text/html"])
    assert page.tags.count("details") == len(knl.history)
    assert str(found).splitlines()[0] == "l = 32, m = 48, n = 64"
    assert "0  split_iname('i', 16" in str(found)


def test_sizes_that_a_step_fixes_are_left_out() -> None:
    knl = product().fix_parameters(m=8).split_iname("i", 4)
    found = knl.history.at(n=16, m=8)
    assert [s.costs is not None for s in found.stages] == [True, True, True]
    assert dict(found.stages[-1].costs.sizes) == {"n": 16}  # type: ignore[union-attr]


def test_steps_of_which_nothing_can_be_counted_say_why() -> None:
    knl = product().tag_inames("i: l.0")
    found = knl.history.at(n=4, m=4)
    assert found.stages[1].costs is None and found.stages[1].why
    assert found.stages[1].why.splitlines()[0] in str(found)
    assert "no source" in Page(found._repr_mimebundle_()["text/html"]).text


def test_sizes_that_are_wrong() -> None:
    with pytest.raises(lk.UnknownNameError, match="size 'q'"):
        tiled().history.at(n=1, m=1, l=1, q=1)
    with pytest.raises(lk.InvalidArgumentError, match=r"history\.at needs the sizes m, l"):
        tiled().history.at(n=1)
    with pytest.raises(lk.InvalidArgumentError, match="no step"):
        product().history.at(n=1, m=1)


def test_hostile_steps() -> None:
    step = Step("add_prefetch", (("a", '<script>alert("&")</script>\x00'),), "unchecked", 0.1)
    for shown in (step, History((step,))):
        page = Page(shown._repr_mimebundle_()["text/html"])
        assert "<script>alert(" in page.text and "unchecked" in page.text


def test_unchecked_and_assumed_steps_show_on_the_kernel() -> None:
    def said(knl: Kernel) -> str:
        return Page(knl._repr_mimebundle_()["text/html"]).text

    assert "1 step, proven" in said(product().split_iname("i", 4))
    assert "not all checked" in said(product().split_iname("i", 4, unchecked=True))
    assert "2 steps, proven, with assumptions" in said(
        product().assume("n >= 2").split_iname("i", 4)
    )


def test_each_kernel_of_a_table_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though one step made it, and the next began with it."""
    knl = importlib.import_module("matmul").make()["tiled"]
    made: list[Kernel] = []
    signature = _show._signature
    monkeypatch.setattr(_show, "_signature", lambda k: made.append(k) or signature(k))
    knl.history._repr_mimebundle_()
    assert made == [knl.history[0].before, *(step.kernel for step in knl.history)]
    assert diff_html(Diff("nest", "", "")).tag == "div"


def test_each_step_of_a_table_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    knl = tiled()
    page = Page(knl.history._repr_mimebundle_()["text/html"])
    assert page.tags.count("details") == len(knl.history)
    for step in knl.history:
        for diff in (step.diff(), step.source_diff()):
            came = [s[1:].strip() for s in str(diff).splitlines()[2:] if s[0] == "+"]
            assert all(part in page.text for line in came for part in line.split("    "))
    monkeypatch.setattr("loopkit._display.history.OPENED", 2)
    page = Page(knl.history._repr_mimebundle_()["text/html"])
    assert page.tags.count("details") == 2 and "history[0] opens a step above" in page.text
    stored = pickle.loads(pickle.dumps(knl)).history
    assert Page(stored._repr_mimebundle_()["text/html"]).tags.count("details") == 0


def test_lines_that_only_moved_sideways_count_as_equal() -> None:
    page = html_text(beside(Diff("nest", "for i\n  a\n  b\nc", "a\nb\nfor j\n  c")))
    rows = page.split("<tr>")[2:]
    assert ["lk-removed" in row for row in rows] == [True, False, False, False, False]
    assert "<pre>    a</pre>" in rows[1] and "<pre>  a</pre>" in rows[1]
    only = html_text(beside(Diff("nest", "a\nb", "a\n  b")))
    assert "lk-added" in only


def test_a_step_opens_before_and_after_beside_each_other() -> None:
    """Rows of the table: lines that stay on both sides, those that are alike together."""
    step = tiled().history[-1]
    diff = step.diff()
    page = Page(html_text(beside(diff)))
    assert page.tags.count("th") == 2 and page.tags.count("td") % 2 == 0
    shown = "".join(page.texts)
    for _, old, new in (part for hunk in diff.hunks() for part in hunk):
        for line in (*old, *new):
            assert all(part in shown for part in line.split("    "))
    cells = html_text(beside(Diff("nest", "a = 1\nb = x + 1\nc", "a = 1\nb = y + 1\nd\nc")))
    rows = cells.split("<tr>")[2:]
    assert ["lk-removed" in row for row in rows] == [False, True, False, False]
    assert ["lk-added" in row for row in rows] == [False, True, True, False]
    assert "<del>x</del>" in rows[1] and "<ins>y</ins>" in rows[1]
    assert "stays as it is" in html_text(beside(Diff("nest", "a", "a")))
    opened = step._repr_mimebundle_()["text/html"]
    assert opened.count('class="lk-beside"') == 2
    assert "nest, before and after" in opened and "source, before and after" in opened
