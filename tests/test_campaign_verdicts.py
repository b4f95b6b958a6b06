"""A bounded piece of ``python -m tests.campaign.verdicts``, and that it finds what it looks for."""

from __future__ import annotations

import random

import pytest
from campaign.judged import judge
from campaign.pairs import EDITS, draw_text, edited
from campaign.verdicts import campaign, summary

import loopkit as lk
from loopkit import Difference, Verdict


def _ignored(text: str) -> None:
    """Nobody watches."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_verdict_is_wrong(seed):
    counts = judge(seed, 6, _ignored)
    assert not counts.found, "\n\n".join(f.page() for f in counts.found)
    assert counts.pairs == 6
    assert "wrong, equal: 0" in summary(counts, 1.0)


def test_pairs_are_many_and_deep():
    r = random.Random(0)
    done, deepest = set(), 0
    for _ in range(60):
        text = draw_text(r)
        depth = most = 0
        for character in text.text:
            depth += {"(": 1, ")": -1}.get(character, 0)
            most = max(most, depth)
        deepest = max(deepest, most)
        for _ in range(4):
            change = edited(r, text)
            if change is not None:
                done.add(change[0])
    assert done == {edit.__name__.lstrip("_") for edit, _ in EDITS}
    assert deepest > 10


def test_wrong_verdicts_are_found(monkeypatch):
    monkeypatch.setattr(lk, "verify", lambda one, two: Verdict("equal", "as they say"))
    counts = judge(0, 8, _ignored)
    assert {f.kind for f in counts.found} == {"equal"}

    def different(one: lk.Kernel, two: lk.Kernel) -> Verdict:
        name = next(n for n in one.writers if n in one.arg_by_name)
        rank = len(one.arg_by_name[name].shape)
        witness = Difference({"n": 1, "m": 1}, name, (0,) * rank, "one", "another")
        return Verdict("different", "", witness)

    monkeypatch.setattr(lk, "verify", different)
    counts = judge(0, 8, _ignored)
    assert {f.kind for f in counts.found} == {"different"}

    answers = iter([Verdict("equal", ""), different(draw_text(random.Random(0)).make(), None)] * 8)  # type: ignore[arg-type]
    monkeypatch.setattr(lk, "verify", lambda one, two: next(answers))
    assert {f.kind for f in judge(0, 4, _ignored).found} == {"disagree"}

    def crashed(one: lk.Kernel, two: lk.Kernel) -> Verdict:
        raise RecursionError

    monkeypatch.setattr(lk, "verify", crashed)
    assert {f.kind for f in judge(0, 2, _ignored).found} == {"crash"}


def test_pairs_that_hang_are_findings():
    for counts in campaign(0, 1, 1, patience=-1.0, seconds=60):
        assert [f.kind for f in counts.found] == ["hang"]
