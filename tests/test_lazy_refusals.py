"""Messages of refusals are computed when they are read; the refusal and its class at once."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import islpy as isl
import pytest
from refusals.case import Step, do
from seams import Aim, Change, WitnessError, examine, smallest_point, violation_report
from suggestion_kernels import BLOCKS, corner, grid, recurrence, refusal, tile
from test_decided import two_parts

import loopkit as lk


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every case that is written out."""
    cases: list[object] = []
    real = violation_report.smallest_case

    def counted(*args: object) -> object:
        cases.append(args)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(violation_report, "smallest_case", counted)
    return cases


READ: dict[str, Callable[[WitnessError], object]] = {
    "its message": str,
    "the reason": lambda e: e.why,
    "the witness": lambda e: e.witness,
    "its picture": lambda e: e.picture(),
    "a copy": lambda e: pickle.dumps(e),
    "as a value": repr,
}


@pytest.mark.parametrize("how", READ)
def test_nothing_is_told_until_it_is_read(how: str, told: list[object]) -> None:
    error = refusal(corner(), BLOCKS)
    assert type(error) is lk.RaceError and not told
    assert READ[how](error)
    count = len(told)
    assert count and READ[how](error) and len(told) == count
    assert error.witness is not None and error.witness.kind == "race"
    assert error.args == (error.why,)
    with pytest.raises(AttributeError, match="no attribute 'wherefore'"):
        error.wherefore  # noqa: B018


def test_a_refusal_that_nobody_has_read_travels() -> None:
    sent, kept = (refusal(recurrence(), BLOCKS) for _ in range(2))
    came = pickle.loads(pickle.dumps(sent))
    assert type(came) is lk.RaceError
    assert str(came) == str(kept)
    assert came.witness == kept.witness


WRONG: dict[str, tuple[Callable[[], lk.Kernel], Step]] = {
    "threads and blocks": (corner, do("tag_inames", "i: l.0, j: g.0")),
    "backwards": (corner, do("affine_map_inames", "j", "w", "w = -j")),
    "exchanged": (grid, do("prioritize_loops", "j, i")),
    "values of other threads": (tile, do("tag_inames", "i: l.0, j: l.0")),
    "in two parts": (two_parts, do("split_iname", "i", 16, outer_tag="g.0", slabs=(0, 1))),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_told_is_of_the_kind_that_was_raised(name: str) -> None:
    """Several things are wrong with most steps, of several kinds."""
    make, step = WRONG[name]
    error = refusal(make(), step)
    assert error.witness is not None
    assert (error.witness.kind == "race") == isinstance(error, lk.RaceError)


def test_deciding_ends_with_what_is_certain() -> None:
    """One violation is found, of those that telling compares."""
    knl = two_parts()
    change = Change(knl.tag_inames("i: l.0", unchecked=True).with_(history=knl.history))
    first, every = (examine(knl, change, aim=aim)[1] for aim in (Aim.DECIDE, Aim.TELL))
    assert len(first) == 1 < len(every) and first[0].exact


@pytest.mark.parametrize("most", [(3, 1), (3, 2), (3, 1, 7), (4,)])
def test_a_point_behind_another_is_not_looked_for(most: tuple[int, ...]) -> None:
    where = isl.Set("[n, i, j] -> { : n >= 3 and 2 <= i < n and j > i }")
    found = smallest_point(where, ["n", "i"], most)
    assert found == (None if most < (3, 2) else {"n": 3, "i": 2, "j": 3})
