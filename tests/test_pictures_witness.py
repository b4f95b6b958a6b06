"""Refusals as pictures: the two instances, the orders, the cell, against loops of plain Python."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from refusals.everything import CASES
from seams import NEAR, WitnessError

import loopkit as lk

Key = tuple[int, ...]


def refused(kernel: lk.Kernel, transform: str, *arguments: Any) -> WitnessError:
    with pytest.raises(WitnessError) as caught:
        getattr(kernel, transform)(*arguments)
    return caught.value


def skewed() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < 40 and 0 <= j < 30 }", "t[i, j] = t[i - 1, j + 1] + w[i, j]",
        dtypes={"t, w": "float32"},
    )  # fmt: skip


def near(points: Iterable[Key], pair: Iterable[Mapping[str, int]]) -> set[Key]:
    """The points around two instances."""
    centres = [tuple(one.values()) for one in pair]
    return {
        point
        for point in points
        if any(
            all(abs(a - b) <= NEAR for a, b in zip(point, centre, strict=True))
            for centre in centres
        )
    }


def ranked(keys: Mapping[Key, Key]) -> dict[Key, int]:
    """The turn of each point: how many different times come before its own."""
    times = sorted(set(keys.values()))
    return {point: times.index(time) for point, time in keys.items()}


def turns(picture: Any, which: str) -> dict[Key, int]:
    runs = getattr(picture, which)
    return {tuple(v for _, v in run.values): run.time for run in runs}


def test_an_order_that_is_turned_around() -> None:
    error = refused(skewed(), "prioritize_loops", "j,i")
    picture = error.picture()
    assert error.witness is not None and error.witness.source and error.witness.sink
    pair = [error.witness.source.inames, error.witness.sink.inames]
    points = near(itertools.product(range(1, 40), range(30)), pair)
    assert turns(picture, "in_text") == ranked({(i, j): (i, j) for i, j in points})
    assert turns(picture, "scheduled") == ranked({(i, j): (j, i) for i, j in points})
    html = error._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]
    assert html.count("<svg") == 1 and "has written it" in html.partition("<svg")[0]
    alone = error.witness._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]
    assert alone.count("<svg") == 1 and "<table" in alone
    assert error.witness.picture().figure().grids == picture.figure().grids
    first, second = (tuple(inames.values()) for inames in pair)
    text, schedule, cell = picture.figure().grids
    (have,), (get,) = text.arrows, schedule.arrows
    assert have.head and get.head and have.through == get.through[::-1]
    seat = {(c.row, c.column): c for c in text.cells}
    labels = [seat[place].label for place in have.through]
    assert labels == [str(turns(picture, "in_text")[p]) for p in (first, second)]
    (outline,) = cell.outlines
    ((row, column),) = outline.cells
    assert (int(cell.rows[row]), int(cell.columns[column])) == error.witness.cell == first


def test_tiles_that_cut_a_dependence() -> None:
    tiled = skewed().split_iname("j", 4)
    error = refused(tiled, "prioritize_loops", "j_outer,i,j_inner")
    picture = error.picture()
    assert error.witness is not None and error.witness.source and error.witness.sink
    pair = [error.witness.source.inames, error.witness.sink.inames]
    points = near(itertools.product(range(1, 40), range(30)), pair)
    assert turns(picture, "scheduled") == ranked({(i, j): (j // 4, i, j) for i, j in points})


def test_instances_at_the_same_time_have_no_order() -> None:
    columns = lk.make_kernel(
        "{ [i, j]: 1 <= i < 20 and 0 <= j < 9 }", "t[i, j] = t[i - 1, j] + w[i, j]",
        dtypes={"t, w": "float32"},
    )  # fmt: skip
    error = refused(columns, "tag_inames", "i:l.0")
    picture = error.picture()
    assert error.witness is not None and error.witness.kind == "race"
    _, schedule, _ = picture.figure().grids
    (line,) = schedule.arrows
    assert not line.head and line.dash
    for run in picture.scheduled:
        i, _ = (value for _, value in run.values)
        assert run.thread == (i - 1, 0, 0)
    assert "nothing orders them" in [key.meaning for key in picture.figure().legend]


def test_statements_of_different_loops() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        for i
            b[i] = 2*a[i] {id=first}
        end
        for j
            c[j] = b[n - 1 - j] {id=second}
        end
        """,
        dtypes={"a": "float32"},
        assumptions="n >= 1",
    )
    picture = refused(knl, "tag_inames", "i:g.0,j:g.0").picture()
    assert {(r.statement, *r.values, r.time) for r in picture.in_text} == {
        ("first", ("i", 0), 0), ("first", ("i", 1), 1),
        ("second", ("j", 0), 2), ("second", ("j", 1), 3),
    }  # fmt: skip
    assert [run.block for run in picture.scheduled] == [(0, 0, 0), (1, 0, 0)] * 2


def test_an_error_without_a_case_has_no_picture() -> None:
    knl = skewed()
    with pytest.raises(lk.LoopkitError) as caught:
        knl.split_iname("i", 4).tag_inames("i_inner:l.0,i_outer:l.0")
    error = caught.value
    if isinstance(error, WitnessError):
        with pytest.raises(lk.InvalidArgumentError, match="no two instances"):
            error.picture()
    made = lk.IllegalTransformError("because")
    with pytest.raises(lk.InvalidArgumentError, match="no two instances"):
        made.picture()
    found = lk.Witness("race", "a", (0,))
    with pytest.raises(lk.InvalidArgumentError, match="no two instances"):
        found.picture()
    assert "<svg" not in found._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]


def test_a_refusal_can_be_sent_elsewhere() -> None:
    error = refused(skewed(), "prioritize_loops", "j,i")
    again = pickle.loads(pickle.dumps(error.picture()))
    assert str(again) == str(error.picture())


@pytest.mark.parametrize("case", list(CASES.values())[::3], ids=list(CASES)[::3])
def test_every_kind_of_refusal_has_its_picture(case: Any) -> None:
    with pytest.raises(lk.LoopkitError) as caught:
        case.illegal.apply(case.before())
    error = caught.value
    if not isinstance(error, WitnessError) or error.witness is None or error.refused is None:
        return
    picture = error.picture()
    assert picture.svg() and picture.html()
    shown = {run.name for run in (*picture.in_text, *picture.scheduled)}
    for instance in (error.witness.source, error.witness.sink):
        if instance is not None and instance.statement != "?":
            assert (instance.statement, tuple(instance.inames.items())) in shown
