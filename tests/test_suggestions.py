"""What a refusal suggests is legal: each suggestion, taken by its word, is accepted."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

import pytest
from refusals.case import Case
from refusals.everything import CASES

import loopkit as lk
from loopkit._check import suggest
from loopkit._errors import WitnessError

FROM_TEXT = "from the text on"


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found must not hang on how busy the machine is."""
    monkeypatch.setattr(suggest, "SECONDS", 60.0)


def refusal(kernel: lk.Kernel, step: Callable[[lk.Kernel], object]) -> WitnessError:
    """The error of a step that is refused."""
    with pytest.raises(WitnessError) as caught:
        step(kernel)
    return caught.value


def apply(kernel: lk.Kernel, line: str) -> lk.Kernel:
    """The kernel after what a suggestion says, as one who copies it would write it."""
    what, colon, calls = line.partition(": .")
    assert what.startswith("legal ")
    if not colon:
        return kernel
    if FROM_TEXT in what:
        assert kernel.lineage is not None
        kernel = kernel.lineage.root
    found = eval(f"kernel.{calls}", {"kernel": kernel})
    assert isinstance(found, lk.Kernel)
    assert all(step.verdict == "proven" for step in found.history)
    return found


def lines(case: Case) -> tuple[str, ...]:
    """The suggestions for a case of the catalogue; none for errors of another kind."""
    before = case.before()
    try:
        case.illegal.apply(before)
    except WitnessError as error:
        return tuple(error.suggestions)
    except lk.LoopkitError:
        return ()
    raise AssertionError("the step is not refused")


@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_suggestions_are_accepted(case: Case) -> None:
    before = case.before()
    found = lines(case)
    assert len(found) <= suggest.MOST
    assert len(set(found)) == len(found)
    for line in found:
        apply(before, line)


def test_catalogue(golden: Callable[[str, str], None]) -> None:
    """All suggestions of the catalogue; nearly all that the checker refuses has one."""
    text = []
    lacking = []
    for name, case in CASES.items():
        found = lines(case)
        text += [f"{name}: {case.illegal}", *(f"  {line}" for line in found), ""]
        if not found and case.is_wrong:
            lacking.append(name)
    golden("suggestions.txt", "\n".join(text))
    assert lacking == []
