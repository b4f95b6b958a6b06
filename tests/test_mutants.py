"""A bounded piece of the campaign of mutants, and that it finds what it looks for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from campaign import mutant_judge
from campaign.children import DeadError, told
from campaign.data import Truth
from campaign.mutant_crew import Count
from campaign.mutant_edits import EDITS, mutant
from campaign.mutant_judge import Mutant, judged, mutants
from campaign.mutant_subjects import Subject, subjects
from seams import Proof

import loopkit as lk

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def programs() -> list[Subject]:
    found = subjects(11)
    return [next(found) for _ in range(6)]


@pytest.mark.slow
def test_nothing_harmful_is_proven(programs: list[Subject]) -> None:
    count = Count()
    for number, subject in enumerate(programs):
        r = random.Random(number)
        for found in judged(subject, mutants(r, subject, 15), r, share=1.0):
            count.add(subject.name, found)
            assert not found.failure, found.page
    assert count.total > 60 and count.harmful >= 5 and count.killed == 1


def test_every_edit_changes_something(programs: list[Subject]) -> None:
    together = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }", "y[i] = sum(j, x[i, j])", dtypes={"x, y": "int32"}
    ).split_iname("j", 64, inner_tag="l.0")
    r = random.Random(3)
    made: set[str] = set()
    for _ in range(60):
        for text in (*(s.program.source for s in programs), together.cuda()):
            made.update(mutant(r, text)[1].split())
    assert made == {edit.__name__ for edit, _ in EDITS}


def test_what_a_proof_misses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that says yes to everything proves harmful texts, and some that do not compile."""
    monkeypatch.setattr(mutant_judge, "prove_program", lambda *_: Proof("yes", (), ()))
    kernel = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a": "int32"})
    scheduled = kernel.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    case = Truth(kernel, 7).cases(scheduled, 1, {})
    subject = Subject("doubled", scheduled, scheduled.program(), tuple(case))
    source = subject.program.source
    wrong = source.replace(" < ", " <= ")
    changed = [
        Mutant(replace(subject.program, source=text, lines=()), "by hand")
        for text in (source, wrong, source.replace("int", "lint"))
    ]
    found = [f.failure for f in judged(subject, changed, random.Random(0), share=1.0)]
    assert found == ["", "proven, and wrong", "proven, and rejected"]


def test_a_process_that_dies_or_hangs_is_told() -> None:
    def dies() -> Iterator[int]:
        yield 1
        raise SystemExit(3)

    def hangs() -> Iterator[int]:
        yield 1
        while True:
            pass

    for work, what in ((dies, "died"), (hangs, "in time")):
        heard = []
        with pytest.raises(DeadError, match=what):
            for item in told(work, 0.5):
                heard.append(item)
        assert heard == [1]
    assert list(told(lambda: iter("ab"), 5.0)) == ["a", "b"]
