"""Faults planted into transforms and passes, one at a time: each is caught.

For each fault: it is one (the kernel that comes out, unchecked, computes something else,
touches what is outside of an array, or waits at barriers for ever), the checker or the proof
of the printed program catches it, and without it the same schedule is accepted and right.
"""

from __future__ import annotations

import pytest
from faults.catalogue import load
from faults.judging import judge
from faults.planting import FAULTS, planted

import loopkit as lk

load()

# Faults that slip through, and why.  A fault that is caught must not be here.
KNOWN_OPEN: dict[str, str] = {}


# Faults outside of verify's meaning, and why: every output cell stays as it is, and what a text
# reads where data decide is its own.
EQUAL_TO_VERIFY: dict[str, str] = {
    "any: arguments change places": "the cells are the same, a call is not",
    "any: a size gets a default": "the cells are the same, a call is not",
    "set_argument_order: two arguments are exchanged": "the cells are the same, a call is not",
    "any: asserts of the data what nobody said": "equal for such data, as the verdict says",
    "precompute: what lies between values of a[place[x]] is read, too": "all values are the same",
    "precompute: what lies between values of sum(k, a[place[x]] * k) is read, too": (
        "all values are the same"
    ),
}


def test_catalogue() -> None:
    assert KNOWN_OPEN.keys() | EQUAL_TO_VERIFY.keys() <= FAULTS.keys()
    assert len(FAULTS) >= 200


def _marked(name: str) -> object:
    """Most faults show without a compiler."""
    one = FAULTS[name]
    needs_host = one.step is None or one.by_running
    return pytest.param(name, marks=[pytest.mark.host] if needs_host else [])


@pytest.mark.share(5)
@pytest.mark.parametrize("name", [_marked(name) for name in FAULTS])
def test_fault(name: str) -> None:
    verdict = judge(name)
    assert verdict.sound is None, f"without the fault: {verdict.sound}"
    assert verdict.evidence is not None, "it changes nothing that running shows"
    if name in KNOWN_OPEN:
        assert verdict.caught is None, f"it is caught by now: {verdict.caught}"
    else:
        assert verdict.caught is not None, f"it slips through: {verdict.evidence}"
    assert verdict.equal == (name in EQUAL_TO_VERIFY), "what verify says of it has changed"


def test_switch() -> None:
    """A fault is there while it is planted, and no longer."""
    kernel = FAULTS["split_iname: inner loop one too long"].before()
    sound = lk.split_iname(kernel, "i", 4)
    with planted("split_iname: inner loop one too long"):
        faulty = lk.split_iname(kernel, "i", 4, unchecked=True)
        with pytest.raises(lk.IllegalTransformError):
            lk.split_iname(kernel, "i", 4)
    assert faulty.domains != sound.domains
    assert lk.split_iname(kernel, "i", 4).domains == sound.domains
