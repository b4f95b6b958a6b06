"""What a refusal suggests: each suggestion, taken by its word, is accepted.

That they are right is shown in ``test_refusals`` by enumeration; here is what they
say, and that looking for them costs nobody anything who does not read them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pace import timed
from refusals.case import Case, Step, do
from refusals.everything import CASES
from seams import Refusal, Trials, WitnessError, refused, suggest
from seams import Step as Recorded
from seams import budget as _budget
from suggestion_kernels import BLOCKS, applied, corner, making, recurrence, refusal, stencil

import loopkit as lk


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


# {{{ the catalogue


@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_accepted(case: Case) -> None:
    before = case.before()
    found = lines(case)
    assert len(found) <= suggest.MOST
    assert len(set(found)) == len(found)
    for line in found:
        applied(before, line)


# What data decide, as the message tells already; and no cut is right behind where a loop may end.
TOLD = {"a scatter backwards", "a loop that data end, cut behind where it ends"}


def test_catalogue(golden: Callable[[str, str], None]) -> None:
    """All suggestions of the catalogue; whatever the checker refuses has one."""
    text: list[str] = []
    lacking = set()
    for name, case in CASES.items():
        found = lines(case)
        text += [f"{name}: {case.illegal}", *(f"  {line}" for line in found), ""]
        if not found and case.is_wrong:
            lacking.add(name)
    golden("suggestions.txt", "\n".join(text))
    assert lacking == TOLD


# }}}

# {{{ the search


def families_alone(case: Case) -> Iterator[tuple[Refusal, Any]]:
    before = case.before()
    step = case.illegal
    recorded = Recorded(step.transform, _bound(step))
    found = refused(before, recorded)
    if isinstance(found, Refusal):
        for family in suggest.FAMILIES:
            for suggestion in family.find(found, Trials(10_000, 1000)):
                yield found, suggestion


def _bound(step: Step) -> tuple[tuple[str, object], ...]:
    from seams import call

    return call(step.transform, *step.args, **step.options).arguments


@pytest.mark.parametrize("name", list(CASES)[::7])
def test_no_family_fails(name: str) -> None:
    """Errors in the search are hidden from those who read messages, but not from here."""
    for found, suggestion in families_alone(CASES[name]):
        assert found.kernel is not None
        assert suggestion.line().startswith("legal ")


def test_nothing_is_sought_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(refusal: Refusal, trials: Trials, found: dict[str, int]) -> None:
        asked.append(refusal)
        found["legal so"] = 0

    monkeypatch.setattr(suggest, "_search", counted)
    error = refusal(recurrence(), BLOCKS)
    assert error.witness is not None
    assert error.witness.array == "a"
    assert not asked
    assert str(error).endswith("\nlegal so")
    assert error.witness.suggestion == "legal so"
    assert len(asked) == 1


def test_tries_seek_nothing_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    real = suggest._search

    def counted(refusal: Refusal, trials: Trials, found: dict[str, int]) -> None:
        begun.append(refusal)
        real(refusal, trials, found)

    monkeypatch.setattr(suggest, "_search", counted)
    assert str(refusal(corner(), BLOCKS))
    assert len(begun) == 1


def test_the_same_every_time() -> None:
    texts = {str(refusal(corner(), BLOCKS)) for _ in range(3)}
    assert len(texts) == 1


def test_an_error_in_the_search_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(refusal: Refusal, trials: Trials) -> Iterator[Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(suggest, "FAMILIES", (suggest.FAMILIES[1], suggest.Family(failing, 0)))
    error = refusal(recurrence(), BLOCKS)
    assert error.suggestions[:] == (
        "legal with 'i_outer' and 'i_inner' sequential: .split_iname('i', 8)",
    )


def test_no_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = stencil()
    error = refusal(kernel, BLOCKS)
    monkeypatch.setattr(_budget, "TRIES_EFFORT", 0)
    assert error.suggestions[:] == ()
    assert "would break the kernel" in str(error)


def test_a_large_kernel_ends_in_time() -> None:
    count = 40
    inames = [f"i{k}" for k in range(count)]
    bounds = " and ".join(f"0 <= {i} < n" for i in inames)
    text = "\n".join(
        f"for i{k}\n a{k + 1}[i{k}] = a{k}[n-1-i{k}] {{id=s{k}}}\nend" for k in range(count)
    )
    arrays = ", ".join(f"a{k}" for k in range(count + 1))
    kernel = making(f"{{ [{', '.join(inames)}]: {bounds} }}", text, arrays)
    error = refusal(kernel, do("tag_inames", "i20:g.0"))
    found, taken = timed(lambda: error.suggestions)
    assert found
    assert taken < 10.0


def test_errors_travel() -> None:
    error = refusal(recurrence(), BLOCKS)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.witness.suggestion == error.witness.suggestion  # type: ignore[union-attr]


# }}}

# {{{ calls


# }}}
