"""Illegal schedules are refused with the right witness; the nearest legal ones are right.

What a witness must say comes from enumeration (``refusals.oracle``), which shares no
code with the checker; that the illegal step is wrong is shown by running it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from refusals import bounds, still_open
from refusals.accepted import SCHEDULES, Accepted
from refusals.case import Case, Step, schedule
from refusals.enumeration import assert_right, enumerate_case
from refusals.everything import CASES, FAMILIES
from refusals.messages import MESSAGES
from refusals.running import check_legal, check_schedule
from seams import Trials
from seams import registered_transforms as transforms

import loopkit as lk
from loopkit import Witness


def marked(names: Iterable[str], unsolved: dict[str, str]) -> list[Any]:
    """Names as parameters; those that are open must fail."""
    names = list(names)
    assert unsolved.keys() <= set(names)
    return [
        pytest.param(
            name,
            id=name,
            marks=[pytest.mark.xfail(reason=unsolved[name], strict=True)]
            if name in unsolved
            else [],
        )
        for name in names
    ]


def refusal(case: Case) -> lk.LoopkitError:
    """The error that the illegal step raises."""
    before = case.before()
    with pytest.raises(lk.LoopkitError) as caught:
        case.illegal.apply(before)
    return caught.value


def ends(witness: Witness) -> set[str]:
    """The two instances of a witness."""
    return {str(witness.source), str(witness.sink)}


def test_catalogue() -> None:
    assert len(CASES) == sum(map(len, FAMILIES.values())) >= 60
    refused = {case.illegal.transform for case in CASES.values()}
    accepted = {step.transform for case in CASES.values() for step in case.legal}
    assert refused >= transforms.keys()
    assert accepted >= transforms.keys()


@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_enumeration(case: Case) -> None:
    """The expected witness is the smallest one, and the step does change a result."""
    expected = case.expected
    if not case.is_wrong:
        return
    found = enumerate_case(case)
    assert found.wrong is not None, "no size shows a wrong result"
    if expected.array is None:
        return
    if found.sizes != dict(expected.sizes):
        # The first pairs out of order have equal values: nothing is wrong there.
        assert found.wrong == dict(expected.sizes)
        return
    first = found.pairs[0]
    assert (first.array, first.cell) == (expected.array, expected.cell)
    assert (first.source, first.sink) == (expected.source, expected.sink)


@pytest.mark.parametrize("name", marked(CASES, still_open.REFUSALS))
def test_refused(name: str) -> None:
    case = CASES[name]
    expected = case.expected
    error = refusal(case)
    assert isinstance(error, case.error), f"{type(error).__name__}: {error}"
    for words in expected.named:
        assert words in str(error)
    if expected.array is None:
        return
    witness = error.witness
    assert witness is not None, str(error)
    assert ends(witness) == {expected.source, expected.sink}, str(error)
    assert dict(witness.parameters) == dict(expected.sizes), str(error)
    if (witness.array, witness.cell) != (expected.array, expected.cell):
        # The two may share several cells.
        pairs = enumerate_case(case).pairs
        shared = {(p.array, p.cell) for p in pairs if {p.source, p.sink} == ends(witness)}
        assert (witness.array, witness.cell) in shared, str(error)


def test_unchecked_shows() -> None:
    """A step that nobody proved is named in the history and in the source."""
    case = CASES["exchange against (1, -1)"]
    knl = case.illegal.apply(case.before(), unchecked=True)
    assert knl.history[-1].verdict == "unchecked"
    first = knl.cuda().splitlines()[0]
    assert "not proven" in first and "prioritize_loops('j, i')" in first
    proven = case.legal[0].apply(case.before())
    assert proven.history[-1].verdict == "proven"
    assert "not proven" not in proven.cuda()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suggestions are tried until their number is over, however busy the machine is."""
    first = Trials.__init__

    def begin(self: Trials, seconds: float, *args: Any, **options: Any) -> None:
        first(self, 600.0, *args, **options)

    monkeypatch.setattr(Trials, "__init__", begin)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str, golden: Callable[[str, str], None]) -> None:
    error = refusal(CASES[name])
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    golden(f"refusals/{slug}.txt", f"{type(error).__name__}\n{error}\n")


SUGGESTED = re.compile(r": (\.\w+\(.*\))$", re.MULTILINE)


@pytest.mark.share(4)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_suggestions(case: Case) -> None:
    """What a message says is legal is accepted, and right."""
    before = case.before()
    for call in SUGGESTED.findall(str(refusal(case))):
        mended = eval(f"before{call}", {"before": before})
        assert mended.history[-1].verdict != "unchecked", call
        assert_right(before, mended, case)


@pytest.mark.host
@pytest.mark.parametrize("name", marked(CASES, still_open.ACCEPTANCES))
def test_accepted(name: str) -> None:
    check_legal(CASES[name])


@pytest.mark.host
@pytest.mark.parametrize("one", [pytest.param(a, id=a.name) for a in SCHEDULES])
def test_suspicious_but_right(one: Accepted) -> None:
    check_schedule(one.name, one.kernel(), one.legal, one.sizes)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in bounds.CASES])
def test_enumeration_of_bounds(case: bounds.Outside) -> None:
    assert bounds.smallest(case, largest=9) == (dict(case.sizes), case.instance, case.cell)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in bounds.CASES])
def test_out_of_bounds(case: bounds.Outside) -> None:
    with pytest.raises(lk.OutOfBoundsError) as caught:
        case.kernel().cuda()
    witness = caught.value.witness
    assert witness is not None
    assert (witness.array, witness.cell) == ("a", case.cell)
    assert case.instance in ends(witness)
    assert dict(witness.parameters) == dict(case.sizes)
    if case.legal:
        case.kernel(case.legal).cuda()


def keeps_arguments(steps: tuple[Step, ...]) -> bool:
    """Whether the arguments of a kernel stay what they are, so that ``verify`` takes it."""
    others = {"fix_parameters", "rename_argument", "remove_unused_arguments"}
    return not any(step.transform in others for step in steps)


VERIFIED = {
    **{c.name: (c.legal_plain, c.legal) for c in CASES.values()},
    **{a.name: (a.kernel, a.legal) for a in SCHEDULES},
}


@pytest.mark.parametrize(
    "name",
    marked([n for n, (_, steps) in VERIFIED.items() if keeps_arguments(steps)], still_open.EQUAL),
)
def test_verify_proves(name: str) -> None:
    """``verify`` proves the legal schedules without having seen the transforms."""
    make, steps = VERIFIED[name]
    verdict = lk.verify(make(), schedule(make(), steps))
    assert verdict.answer == "equal", str(verdict)


@pytest.mark.parametrize(
    "name",
    marked(
        [
            n
            for n, c in CASES.items()
            if c.is_wrong and c.arguments_stay and keeps_arguments((*c.chain, c.illegal))
        ],
        still_open.DIFFERENT,
    ),
)
def test_verify_refutes(name: str) -> None:
    """``verify`` shows where the illegal ones differ."""
    case = CASES[name]
    wrong = case.illegal.apply(case.before(), unchecked=True)
    verdict = lk.verify(case.kernel(), wrong)
    assert verdict.answer == "different", str(verdict)
