"""Faults planted into transforms and passes, one at a time: each is caught.

For each fault: it is one (the kernel that comes out, unchecked, computes something else,
touches what is outside of an array, or waits at barriers for ever), the checker or the proof
of the printed program catches it, and without it the same schedule is accepted and right.
"""

from __future__ import annotations

import importlib

import pytest
from faults.judging import judge
from faults.planting import FAULTS, planted

import loopkit as lk

for part in ("loops", "staging", "storage", "anywhere"):
    importlib.import_module(f"faults.{part}")

# Faults that slip through, and why.  A fault that is caught must not be here.
KNOWN_OPEN: dict[str, str] = {
    "any: a sum starts from one": "what a reduction starts from is not compared",
    "any: a sum starts from an element": "what a reduction starts from is not compared",
    "any: a temporary gets a narrower type": "types of temporaries are not compared",
    "any: an argument gets an offset": "offsets of arguments are not compared",
    "any: an integer becomes a float": "literals are compared by value",
    "any: asserts of the data what nobody said": "assertions are taken as they come",
}


def test_catalogue() -> None:
    assert KNOWN_OPEN.keys() <= FAULTS.keys()
    assert len(FAULTS) >= 100


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str) -> None:
    verdict = judge(name)
    assert verdict.sound is None, f"without the fault: {verdict.sound}"
    assert verdict.evidence is not None, "it changes nothing that running shows"
    if name in KNOWN_OPEN:
        assert verdict.caught is None, f"it is caught by now: {verdict.caught}"
    else:
        assert verdict.caught is not None, f"it slips through: {verdict.evidence}"


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
