"""loopkit inside of IPython: what is shown, refusals, and completion inside of strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from seams import SPELLINGS, completions, place_of, shell

import loopkit as lk
from loopkit import Kernel

pytest.importorskip("IPython")


def kernel() -> Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "<> t = a[i, j] {id=load}\nb[i, j] = 2*t {id=store, tags=out}",
        dtypes={"a, b": "float32"},
    )


SESSION: dict[str, Any] = {"knl": kernel(), "lk": lk, "held": {"x": kernel()}, "other": object()}

INAMES = {"i", "j"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('knl.split_iname("', INAMES),
        ("knl.split_iname('", INAMES),
        ('knl.split_iname(  # a "remark"\n  "', INAMES),
        ('fast = knl.split_iname("', INAMES),
        ('fast, slow = knl.split_iname("', INAMES),
        ('x = 1\nif knl.split_iname("', INAMES),
        ('lk.split_iname(knl, "', INAMES),
        ('print("done", knl.split_iname("', INAMES),
        ('held["x"].split_iname("', INAMES),
        ('knl.prioritize_loops("j,', INAMES),
        ('knl.prioritize_loops(["j", "', INAMES),
        ('knl.join_inames(inames="', INAMES),
        ('knl.tag_inames("', INAMES),
        ('knl.tag_inames("i: g.0, ', INAMES),
        ('knl.tag_inames({"', INAMES),
        ('knl.tag_inames({"i": "', set(SPELLINGS)),
        ('knl.tag_inames("i: ', set(SPELLINGS)),
        ('knl.tag_inames("i: g', {"g.0", "g.1", "g.2"}),
        ('knl.split_iname("i", 4, inner_tag="l.', {"l.auto", "l.0", "l.1", "l.2"}),
        ('knl.split_iname("i", 4).tag_inames("i_', {"i_outer", "i_inner"}),
        (
            '(knl\n  .split_iname("i", 4)\n  .split_iname("i_inner", 2)\n  .tag_inames("i_inner_',
            {"i_inner_outer", "i_inner_inner"},
        ),
        ('knl.add_prefetch("', {"a", "b", "t"}),
        ('knl.set_temporary_address_space("', {"t"}),
        ('knl.concatenate_arrays("', {"t"}),
        ('knl.remove_instructions("', {"load", "store"}),
        ('knl.rename_argument("', {"n", "a", "b"}),
        ('knl.add_dependency("id:', {"load", "store"}),
        ('knl.add_inames_to_insn("', INAMES),
        ('knl.set_temporary_address_space("t", "', {"private", "shared", "global"}),
        ('knl.split_iname("i", 4, within="', {"id:", "iname:", "reads:", "writes:", "tag:"}),
        ('knl.split_iname("i", 4, within="id:', {"load", "store"}),
        ('knl.split_iname("i", 4, within="id:load and tag:', {"out"}),
        ('knl.split_iname("i", 4, within="reads:', {"a", "t"}),
        ("knl.costs(", {"n="}),
        ("knl.fix_parameters(", {"n="}),
        ("knl.launch_config(", {"n="}),
        ('knl.split_iname("i", 4).history.at(', {"n="}),
        ("knl(", {"n=", "a=", "b="}),
        ("knl(a=a, ", {"n=", "a=", "b="}),
        ("knl.bind(b", {"b="}),
        ('knl.plot_domain("', {"load", "store"}),
        ('knl.plot_domain("load", at={"', {"i", "j"}),
        ('knl.plot_domain(colour="w', {"warp"}),
        ('knl.plot_access("', {"a", "b", "t"}),
        ('knl.plot_access("a", "', {"load", "store"}),
        ('knl.plot_loop("', {"i", "j"}),
        ('knl.plot_access("a", ', {"n="}),
        ("knl.plot_roofline(", {"n="}),
        ('knl.view("page.html", ', {"n="}),
    ],
)  # fmt: skip
def test_names_that_fit(text: str, expected: set[str]) -> None:
    fragment, found = completions(text, SESSION)
    assert {name for name, _ in found} == expected
    assert text.endswith(fragment)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "knl",
        "knl.",
        '"knl.split_iname(',
        'knl.split_iname("i", ',
        'knl.split_iname("i"',
        'knl.split_iname("i", 4, outer_iname="',
        'knl.split_iname("i", 4, "',
        'knl.no_such_transform("',
        'other.split_iname("',
        'nothing.split_iname("',
        'open("f").split_iname("',
        'knl.split_iname(open("x"), 4).tag_inames("',
        'knl.split_iname("q", 4).tag_inames("',
        'held["y"].split_iname("',
        'knl.split_iname("i\n',
        'knl.split_iname("i", 4, inner_tag="l.0")',
        '# knl.split_iname("',
        "(" * 500,
        "knl.costs(n=",
    ],
)
def test_where_no_name_is_offered(text: str) -> None:
    assert completions(text, SESSION)[1] == []


def test_nothing_is_run_but_transforms() -> None:
    class Trap:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __call__(self, *given: Any) -> Any:
            raise AssertionError(given)

        __getitem__ = __call__

    for text in (
        'trap.tag_inames("',
        'trap().tag_inames("',
        'trap["x"].tag_inames("',
        'f(trap).x("',
    ):
        assert completions(text, {"trap": Trap(), "f": Trap()}) == ("", [])


def test_every_prefix_of_a_cell_is_read() -> None:
    cell = '''fast = (knl  # "a remark
    .split_iname("i", 16, outer_tag='g.0')
    .tag_inames({"i_inner": """l.0"""}, force=[x for x in (1, 2)]))
'''
    for end in range(len(cell) + 1):
        place_of(cell[:end])
        completions(cell[:end], SESSION)


@pytest.fixture
def ipython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    running = InteractiveShell.instance(config=config)
    running.user_ns.update(SESSION)
    yield running
    InteractiveShell.clear_instance()


def test_a_terminal_shows_the_nest_and_makes_no_html(
    ipython: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seams import nest

    monkeypatch.setattr(nest, "kernel_html", lambda kernel: pytest.fail("made for nobody"))
    assert shell() is ipython
    ipython.display_formatter.active_types = ["text/plain"]
    knl = SESSION["knl"]
    assert ipython.display_formatter.format(knl)[0] == {"text/plain": str(knl)}


def test_a_notebook_shows_both(ipython: Any) -> None:
    ipython.display_formatter.active_types = ["text/plain", "text/html"]
    for value in (
        SESSION["knl"],
        SESSION["knl"].cuda(),
        SESSION["knl"].split_iname("i", 4).history,
    ):
        found = ipython.display_formatter.format(value)[0]
        assert found["text/plain"] == str(value)
        assert Page(found["text/html"]).text


def test_the_first_kernel_that_is_shown_registers_completion(ipython: Any) -> None:
    assert not ipython.Completer.custom_matchers
    ipython.display_formatter.format(SESSION["knl"])
    ipython.display_formatter.format(SESSION["knl"])
    assert len(ipython.Completer.custom_matchers) == 1


def test_the_extension_loads_and_unloads(ipython: Any) -> None:
    ipython.run_line_magic("load_ext", "loopkit")
    text = 'knl.split_iname("'
    ipython.Completer.use_jedi = False
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        found = [c.text for c in ipython.Completer.completions(text, len(text))]
        assert found == ["i", "j"]
        many = 'knl = (knl\n .tag_inames("i: l'
        assert {c.text for c in ipython.Completer.completions(many, len(many))} == {
            *("l.auto", "l.0", "l.1", "l.2")
        }
        ipython.run_line_magic("unload_ext", "loopkit")
        assert [c.text for c in ipython.Completer.completions(text, len(text))] != ["i", "j"]
    assert not ipython.Completer.custom_matchers


def test_a_question_mark_shows_before_and_after(ipython: Any) -> None:
    for of in ("knl.split_iname", "lk.split_iname", "held['x'].join_inames"):
        found = ipython.inspector.info(eval(of, SESSION), of)
        assert "Before" in found["docstring"] and "After" in found["docstring"]
        assert "kernel" not in found["definition"].split(",")[0] or of.startswith("lk")


RACE = """
def mine():
    return wide.tag_inames("j: l.0")
wide = lk.make_kernel("{ [i, j]: 0 <= i < n and 1 <= j < n }", "a[i, j] = a[i, j-1] + 1",
                      dtypes={"a": "float32"})
mine()
"""


def test_a_refusal_has_a_short_traceback(ipython: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ipython.run_cell(RACE)
    plain = capsys.readouterr().out
    assert "mine()" in plain and 'wide.tag_inames("j: l.0")' in plain
    assert "would break the kernel" in plain and "in the text:" in plain
    assert "_transform.py" not in plain and "_budget.py" not in plain
    ipython.run_line_magic("xmode", "Verbose")
    capsys.readouterr()
    ipython.run_cell("mine()")
    assert "_transform.py" in capsys.readouterr().out


def test_a_refusal_shows_its_witness_below_the_cell(ipython: Any) -> None:
    shown: list[dict[str, Any]] = []
    ipython.display_pub.publish = lambda data, *args, **kwargs: shown.append(data)
    ipython.run_line_magic("load_ext", "loopkit")
    ipython.display_formatter.active_types = ["text/plain"]
    ipython.run_cell(RACE)
    assert shown == []
    ipython.display_formatter.active_types = ["text/plain", "text/html"]
    ipython.run_cell("mine()")
    [data] = shown
    page = Page(data["text/html"])
    assert data.keys() == {"text/html"}
    # The message stands above, in the traceback: below the cell is what it does not show.
    assert "as scheduled" in page.text and "the cell a[" in page.text
    assert "would break the kernel" not in page.text and "legal with" not in page.text
    ipython.run_cell("1/0\n")
    ipython.run_cell("knl.split_iname('q', 4)")
    assert len(shown) == 1


def test_errors_outside_of_ipython_have_their_whole_traceback() -> None:
    try:
        kernel().split_iname("q", 4)
    except lk.LoopkitError as error:
        text = "".join(error._render_traceback_())  # type: ignore[attr-defined]
        assert "_transform.py" in text and "there is no iname 'q'" in text


def _errors() -> Iterator[lk.LoopkitError]:
    line = lk.make_kernel("{ [i]: 1 <= i < n }", "a[i] = a[i-1] + 1", dtypes={"a": "float32"})
    for call in (
        lambda: line.tag_inames("i: l.0"),
        lambda: line.split_iname("q", 4),
        lambda: lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i+1"),
        lambda: lk.make_kernel(
            "{ [i]: 0 <= i < n }", "c[i+1] = 0", [lk.GlobalArg("c", "float32", ("n",)), ...]
        ),
    ):
        with pytest.raises(lk.LoopkitError) as caught:
            call()
        yield caught.value
    yield lk.LoopkitError("<script>alert('&')</script>\x1b", asked="<b>", instead="\ud800")
    yield lk.IllegalTransformError("", witness=lk.Witness("<i>", "<a>", (), None, None, {"<n>": 1}))


def test_errors_say_in_html_what_they_say_in_text() -> None:
    for error in _errors():
        bundle = error._repr_mimebundle_()  # type: ignore[attr-defined]
        assert bundle["text/plain"] == str(error)
        words = re.findall(r"\w+", " ".join(Page(bundle["text/html"]).texts))
        assert set(re.findall(r"\w+", str(error).replace("\x1b", " "))) <= {*words}
        witness = getattr(error, "witness", None)
        if witness is not None:
            bundle = witness._repr_mimebundle_()
            assert Page(bundle["text/html"]).text and witness.kind in bundle["text/plain"]


def test_verdicts_and_proofs() -> None:
    one = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    other = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 3*a[i]", dtypes={"a, b": "float32"})
    values = [lk.verify(one, one.split_iname("i", 4)), lk.verify(one, other), one.prove()]
    values.append(values[1].witness)  # type: ignore[union-attr]
    for value, word in zip(values, ("equal", "different", "proven", "differs"), strict=True):
        bundle = value._repr_mimebundle_()  # type: ignore[union-attr]
        assert bundle["text/plain"] == str(value)
        assert word in Page(bundle["text/html"]).text


def test_findings_show_their_lines() -> None:
    from dataclasses import replace

    from seams import Place, Proof
    from seams import ProofFinding as Finding
    from seams import ProofUndecided as Undecided

    found = Finding("order", "<b>", Place(2, "s", {"i": 1}), None, "a", (1,), {"n": 2})
    open_ = Undecided("bounds", "who knows", (9,), ("s",))
    proof = Proof("k", (found,), (open_,), (), 0.1, "one\n<two>\nthree")
    page = Page(proof._repr_mimebundle_()["text/html"])
    assert "1 found, 1 undecided" in page.text and "<two>" in page.text
    assert page.values("data-n") == ["2"]
    undecided = replace(proof, findings=())
    assert "lk-undecided" in undecided._repr_mimebundle_()["text/html"]
