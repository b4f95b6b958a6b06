"""Choices of a schedule: what comes of each, as data and as text."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_page import Page
from launch_kernels import jacobi
from seams import MOST, PRINTED, Costs, Failure, controls_of
from seams import explorer as explorers

import loopkit as lk

HOSTILE = "</pre><script>alert('x')</script>&\"\x00\x1b[31m\u202e\ud800"


@functools.cache
def skewed() -> lk.Kernel:
    """Each row comes from the row above: its loops cannot be exchanged."""
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < m - 1 }",
        "a[i, j] = (a[i - 1, j] + a[i - 1, j + 1]) / 2 {id=step}",
        dtypes={"a": "float32"},
    )


@pytest.fixture(autouse=True)
def _no_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured unasked, wherever the tests run."""
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setattr(explorers, "_has_gpu", lambda: False)


def tiled(tile: int = 16, order: str = "i,j") -> lk.Kernel:
    knl = skewed().split_iname("j", tile)
    return knl.prioritize_loops("j_outer,i" if order == "j,i" else "i,j_outer")


SIZES = {"n": 100, "m": 200}


def explored(**more: Any) -> lk.Explorer:
    return lk.explore(tiled, tile=[8, 16, 32], order=["i,j", "j,i"], **more)


@pytest.mark.parametrize(
    ("given", "kind", "options", "start"),
    [
        ([8, 16], "slider", [8, 16], 0),
        ([1, 2.5], "slider", [1, 2.5], 0),
        ((1, 4), "slider", [1, 2, 3, 4], 0),
        ((3, 3), "slider", [3], 0),
        (True, "checkbox", [False, True], 1),
        (False, "checkbox", [False, True], 0),
        (["a", "b"], "menu", ["a", "b"], 0),
        ([7], "menu", [7], 0),
        ([True, 1, 1.0, None], "menu", [True, 1, 1.0, None], 0),
        ([[1], {"a": 2}, np.arange(2)], "menu", None, 0),
    ],
)
def test_what_becomes_of_options(given: Any, kind: str, options: Any, start: int) -> None:
    (control,) = controls_of(lambda x: skewed(), {"x": given})
    assert (control.name, control.kind, control.start) == ("x", kind, start)
    if options is not None:
        assert [(type(o), o) for o in control.options] == [(type(o), o) for o in options]
    for position, option in enumerate(control.options):
        assert control.position(option) == position


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "a list has 1 to 10,000 options, and not 0"),
        ([0] * (MOST + 1), "and not 10,001"),
        ([1, 2, 1], "options 0 and 2 look alike"),
        ((1, 2, 3), "the least and the greatest of whole numbers"),
        ((1, 2.0), "the least and the greatest of whole numbers"),
        ((True, 3), "the least and the greatest of whole numbers"),
        ((4, 1), "the least comes first"),
        ((0, 1 << 40), "32 bits"),
        ("abc", "that is no list of options"),
        (4, "that is no list of options"),
        (None, "that is no list of options"),
        ({1, 2}, "that is no list of options"),
    ],
)
def test_options_that_cannot_be(given: Any, says: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=says) as caught:
        lk.explore(lambda x: skewed(), x=given)
    assert "'x'" in str(caught.value)


def test_arguments_are_those_of_the_function() -> None:
    with pytest.raises(lk.UnknownNameError, match="did you mean 'tile'"):
        lk.explore(tiled, tiles=[1])
    with pytest.raises(lk.InvalidArgumentError, match="needs 'x', of which nothing is said"):
        lk.explore(lambda x, y: skewed(), y=[1, 2])
    with pytest.raises(lk.InvalidArgumentError, match="takes a function"):
        lk.explore(skewed(), x=[1])  # type: ignore[arg-type]
    with pytest.raises(lk.InvalidArgumentError, match="does not say which arguments"):
        lk.explore(type, x=[1])  # type: ignore[arg-type]
    with pytest.raises(lk.InvalidArgumentError, match="tile was given twice"):
        lk.explore(tiled, {"tile": [1, 2]}, tile=[1, 2])
    with pytest.raises(lk.InvalidArgumentError, match="have names, and 3 is none"):
        lk.explore(lambda **more: skewed(), {3: [1, 2]})  # type: ignore[dict-item]
    for wrong in ({"sizes": [1]}, {"arrays": 3}, {"sizes": {"n": 2.0}}, {"sizes": {"n": True}}):
        with pytest.raises(lk.InvalidArgumentError, match=r"maps names|whole number"):
            explored(**wrong)
    with pytest.raises(lk.UnknownNameError, match="no device"):
        explored(device="Z80")


def test_arguments_with_any_names() -> None:
    given = {"sizes": [1, 2], "device": [1], "n": [1], "self": [1], "make": [1], "class": [1]}
    seen: list[dict[str, Any]] = []

    def make(n: int, /, make: int, **others: int) -> lk.Kernel:
        seen.append({"n": n, "make": make, **others})
        return skewed()

    found = lk.explore(make, given)
    assert found.set({"sizes": 2}).kernel == skewed()
    assert seen == [{"n": 1, "make": 1, "sizes": 2, "device": 1, "self": 1, "class": 1}]


def test_defaults_come_first() -> None:
    assert lk.explore(tiled, tile=[8, 16], order=["j,i", "i,j"]).choice == {
        "tile": 16,
        "order": "i,j",
    }
    assert lk.explore(tiled, tile=(1, 40)).choice == {"tile": 16}
    assert lk.explore(tiled).choice == {}


def test_an_outcome_holds_all_that_was_asked() -> None:
    found = explored(sizes=SIZES)
    outcome = found.set(tile=32).outcome
    assert outcome.choice == (("tile", 32), ("order", "i,j"))
    assert outcome.kernel == found.kernel == tiled(32)
    assert outcome.source == tiled(32).cuda()
    assert isinstance(outcome.costs, Costs) and outcome.costs == tiled(32).costs(**SIZES)
    assert outcome.proof is not None and not isinstance(outcome.proof, Failure) and outcome.proof.ok
    assert outcome.measurement is None and outcome.left == ()
    assert 0 < outcome.seconds < 60
    assert "steps and source proven" in str(found) and "for j_inner" in str(found)


def test_stages_come_in_order() -> None:
    found = explored(sizes=SIZES)
    assert found.so_far.left == ("source", "costs", "proof", "script")
    assert found.so_far.kernel is not None and found.so_far.source is None
    assert found.advance().source is not None
    assert found.so_far.costs is None
    assert found.advance().costs is not None
    assert found.so_far.left == ("proof", "script")
    assert explored(sizes=SIZES, device="A100").so_far.left[2:] == ("proof", "device", "script")


def test_schedules_of_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(tile: int = 32) -> lk.Kernel:
        return jacobi().split_iname("i", tile, outer_tag="g.0", inner_tag="l.0")

    found = lk.explore(make, tile=[32, 64], sizes={"n": 100, "steps": 2})
    outcome = found.outcome
    assert isinstance(outcome.costs, Costs) and outcome.costs.times == 4
    assert outcome.proof is not None and not isinstance(outcome.proof, Failure)
    assert "4 launches in a call" in str(found)
    page = Page(found._repr_mimebundle_()["text/html"])
    assert "launch 2: jacobi_2" in page.text and "4 launches" in page.text


def test_a_refusal_shows_its_witness() -> None:
    found = explored(sizes=SIZES).set(tile=8, order="j,i")
    first = found.so_far
    assert first.kernel is None and first.failure is not None
    assert first.failure.picture is not None and first.failure.picture.witness.array == "a"
    assert first.failure.at.endswith('return knl.prioritize_loops("j_outer,i" '
                                     'if order == "j,i" else "i,j_outer")')  # fmt: skip
    assert first.left == ("suggestions",) and not first.failure.remedies
    assert found.outcome.failure is not None and found.outcome.failure.remedies
    assert "would read a[" in str(found) and "IllegalTransformError" in str(found)
    with pytest.raises(lk.IllegalTransformError):
        _ = found.kernel
    with pytest.raises(lk.IllegalTransformError):
        found.script()
    assert found.set(order="i,j").kernel == tiled(8)


def test_what_cannot_be_lowered_still_has_a_nest() -> None:
    def make(width: int) -> lk.Kernel:
        return skewed().split_iname("j", width, inner_tag="l.0")

    outcome = lk.explore(make, width=[4096], sizes=SIZES).outcome
    assert outcome.kernel is not None and isinstance(outcome.source, Failure)
    assert outcome.source.kind == "ResourceError"
    assert (outcome.costs, outcome.proof, outcome.left) == (None, None, ())


def test_what_other_sizes_say() -> None:
    def make(fixed: bool) -> lk.Kernel:
        return skewed().fix_parameters(m=200) if fixed else skewed()

    found = lk.explore(make, fixed=False, sizes=SIZES)
    free = found.outcome.costs
    fixed = found.set(fixed=True).outcome.costs
    assert isinstance(free, Costs) and isinstance(fixed, Costs)
    assert free.operations == fixed.operations and fixed.sizes == (("n", 100),)
    for sizes, says in (({"n": 100, "m": 200, "k": 3}, "'k'"), ({"n": 100}, "needs the sizes m")):
        failure = lk.explore(make, fixed=False, sizes=sizes).outcome.costs
        assert isinstance(failure, Failure) and says in failure.said


def test_measured_with_arrays() -> None:
    arrays = {"a": np.ones((20, 30), np.float32)}
    outcome = lk.explore(tiled, tile=[8], arrays=arrays).outcome
    assert outcome.measurement is not None and not isinstance(outcome.measurement, Failure)
    assert outcome.measurement.sizes == (("m", 30), ("n", 20))
    assert np.array_equal(arrays["a"], np.ones((20, 30), np.float32))
    wrong = lk.explore(tiled, tile=[8], arrays={"b": 3}).outcome.measurement
    assert isinstance(wrong, Failure) and "'b'" in wrong.said


def nothing(x: int) -> Any:
    return None


def broken(x: int) -> lk.Kernel:
    raise ValueError(HOSTILE)


def leaving(x: int) -> lk.Kernel:
    sys.exit(3)


def deep(x: int) -> lk.Kernel:
    return deep(x + 1)


@pytest.mark.parametrize(
    ("make", "kind", "says", "at"),
    [
        (nothing, "TypeError", "returns None, and no kernel", ""),
        (broken, "ValueError", "alert", "raise ValueError(HOSTILE)"),
        (leaving, "SystemExit", "3", "sys.exit(3)"),
        (deep, "RecursionError", "recursion", "return deep(x + 1)"),
    ],
)
def test_functions_that_fail(
    make: Callable[[int], lk.Kernel], kind: str, says: str, at: str
) -> None:
    found = lk.explore(make, x=[1, 2])
    failure = found.outcome.failure
    assert failure is not None and not failure.is_refusal
    assert failure.kind == kind and says in failure.said and failure.at.endswith(at)
    assert failure.error.__traceback__ is None
    assert "the function failed" in str(found)
    page = Page(found._repr_mimebundle_()["text/html"])
    assert kind in page.text and "the function failed" in page.text


def test_what_the_function_prints_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    def make(x: int) -> lk.Kernel:
        print("hello", x)
        print("!" * 10_000_000, file=sys.stderr)
        return skewed()

    found = lk.explore(make, x=[1, 2])
    assert found.outcome.printed.startswith("hello 1\n!!!")
    assert len(found.outcome.printed) <= PRINTED + 1
    assert capsys.readouterr() == ("", "")


def test_interrupting_reaches_the_caller() -> None:
    def make(x: int) -> lk.Kernel:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _ = lk.explore(make, x=[1]).outcome


def test_hostile_options_inject_nothing() -> None:
    found = lk.explore(lambda x: skewed(), x=[HOSTILE, "", " ", "b" * 500, [1], object()])
    for option in found.choice["x"], "", " ", "b" * 500:
        found.set(x=option)
        page = Page(found._repr_mimebundle_()["text/html"])
        assert "\x1b" not in page.text and "\u202e" not in page.text
        str(found).encode()
    Page(found.table()._repr_mimebundle_()["text/html"])
    with pytest.raises(lk.InvalidArgumentError, match="'x' cannot be 3 here"):
        found.set(x=3)
    with pytest.raises(lk.UnknownNameError, match="no argument 'y'"):
        found.set(y=3)


def test_many_options() -> None:
    found = lk.explore(lambda x: skewed(), x=list(range(MOST)))
    assert found.set(x=MOST - 1).choice == {"x": MOST - 1}
    assert "9993 others" in str(found)


def test_a_table_of_all_outcomes() -> None:
    found = explored(sizes=SIZES, device="A100")
    for order in ("i,j", "j,i"):
        for tile in (8, 16):
            _ = found.set(tile=tile, order=order).outcome
    shown = found.table()
    assert [o.choice[0][1] for o in shown.outcomes] == [8, 16, 8, 16]
    assert shown.columns()[:4] == ("", "tile", "order", "verdict")
    rows = shown.rows()
    assert [row[0] for row in rows] == ["", "", "", "▸"]
    assert [row[3] for row in rows[2:]] == ["IllegalTransformError"] * 2
    costs = tiled(8).costs(**SIZES, device="A100")
    assert rows[0][4] == f"{costs.blocks:,} x {costs.threads:,}"
    assert len(str(shown).splitlines()) == 5
    assert "steps and source proven" in Page(shown._repr_mimebundle_()["text/html"]).text


def test_no_more_than_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorers, "KEPT", 3)
    calls: list[int] = []

    def make(x: int) -> lk.Kernel:
        calls.append(x)
        return skewed()

    found = lk.explore(make, x=(0, 9))
    for x in (0, 1, 2, 3, 3, 0):
        _ = found.set(x=x).so_far
    assert calls == [0, 1, 2, 3, 0]
    shown = found.table()
    assert len(shown.outcomes) == 3 and "2 older ones are forgotten" in str(shown)


# What a script is made of.

FILE = '''"""A schedule in a file."""

from __future__ import annotations

import functools

import loopkit as lk

print("this is not needed")
WIDTH = 3
WIDTH = 4


def widened(x: int) -> int:
    return x * WIDTH


def same(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call


knl = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = 2 * x[i]", dtypes={"x": "float32"})
knl = knl.assume("n >= 1")


def plain(tile, tag="l.0", **more) -> lk.Kernel:
    made = knl.split_iname("i", widened(tile))
    return made.tag_inames({"i_inner": tag})


def enclosing():
    here = knl

    def enclosed(tile):
        return here.split_iname("i", tile)

    return enclosed


def changing(tile):
    global WIDTH
    WIDTH += 1
    return knl.split_iname("i", WIDTH)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    (tmp_path / "schedules.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "schedules", raising=False)
    return importlib.import_module("schedules")


def run(text: str, **names: Any) -> lk.Kernel:
    exec(compile(text, "<script>", "exec", dont_inherit=True), names)
    found = names["knl"]
    assert isinstance(found, lk.Kernel)
    return found


def test_a_script_runs_alone(module: types.ModuleType) -> None:
    found = lk.explore(module.plain, {"tile": [2, 4], "class": ["a"]})
    text = found.set(tile=4).script()
    assert text.startswith("# `plain` for one choice: run alone, this gives the kernel")
    assert text.count("WIDTH = ") == 1 and "WIDTH = 3" not in text
    assert "not needed" not in text and "enclosing" not in text and "def same" not in text
    assert text.endswith("knl = plain(tile=4, **{'class': 'a'})\n")
    assert run(text) == found.kernel
    assert found.outcome.script == text


@pytest.mark.parametrize("which", ["enclosed", "lambda", "partial", "object", "changing"])
def test_where_the_function_does_not_run_alone(module: types.ModuleType, which: str) -> None:
    made: dict[str, Any] = {
        "enclosed": module.enclosing(),
        "lambda": lambda tile: module.knl.split_iname("i", tile),
        "partial": functools.partial(module.plain, tag="l.0"),
        "object": lambda tile: module.knl.split_iname("i", tile.x),
        "changing": module.changing,
    }
    module.changing(0)  # and so the next call makes what the first one alone does not
    tile: Any = types.SimpleNamespace(x=8) if which == "object" else 8
    found = lk.explore(made[which], tile=[tile])
    text = found.script()
    assert text.startswith("# The steps of the function, which does not run alone")
    assert "# `knl` is the kernel as it was made" in text
    text_of = 'knl = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = 2 * x[i]", '
    root = run(f'import loopkit as lk\n{text_of}dtypes={{"x": "float32"}})')
    assert run(text, knl=root) == found.kernel


@pytest.mark.gpu
def test_measured_where_there_is_a_gpu() -> None:
    """Sizes are enough there: arrays are made, and the time is that of the GPU."""
    explorer = lk.explore(tiled, tile=[16, 32], sizes={"n": 2048, "m": 2048})
    found = explorer.outcome.measurement
    assert found is not None and not isinstance(found, Failure)
    assert found.executor == "cuda" and 0 < found.seconds < 10
