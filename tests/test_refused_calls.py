"""Calls that are refused: what was asked, why not, what would do; and that it would.

Steps, which are refused where a schedule would compute something else, are in test_refusals.
"""

from __future__ import annotations

import pytest
from conftest import Golden
from refusals.calls import CALLS, Call
from refusals.running import check_schedule

import loopkit as lk

FUNCTIONS = tuple(dict.fromkeys(call.function for call in CALLS))


def refusal(call: Call) -> lk.LoopkitError:
    with pytest.raises(call.error) as caught:
        call.refused()
    return caught.value


@pytest.mark.parametrize("call", [pytest.param(c, id=c.name) for c in CALLS])
def test_refused(call: Call) -> None:
    """The message says what would be taken; a schedule that does not fit comes with a witness."""
    error = refusal(call)
    assert error.instead or getattr(error, "suggestions", ()), str(error)
    witness = getattr(error, "witness", None)
    if call.of is not None:
        assert witness is not None and witness.array == call.of
        assert witness.source is not None and witness.sink is not None


@pytest.mark.host
@pytest.mark.parametrize("call", [pytest.param(c, id=c.name) for c in CALLS])
def test_taken(call: Call) -> None:
    found = call.taken()
    assert found is not None
    assert isinstance(found, lk.Kernel) or not call.sizes
    if call.sizes:
        check_schedule(call.name, found, (), call.sizes)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_message(function: str, golden: Golden) -> None:
    texts = []
    for call in CALLS:
        if call.function == function:
            error = refusal(call)
            texts.append(f"# {call.name}\n{type(error).__name__}\n{error}\n")
    golden(f"refusals/calls/{function}.txt", "\n".join(texts))
