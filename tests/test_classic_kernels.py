"""The classic texts are lowered and proven within the time that they may take."""

from __future__ import annotations

import pytest
from classics import CLASSICS, scheduled
from pace import timed

QUICK = [name for name in CLASSICS if not name.startswith(("bitonic", "lanes"))]


@pytest.mark.parametrize("name", QUICK)
def test_source_and_proof(name: str) -> None:
    knl = scheduled(name)
    assert all(step.verdict in ("proven", "assumed") for step in knl.history)
    source, lowered = timed(knl.cuda)
    assert source
    report, proven = timed(knl.prove)
    assert report.ok
    assert lowered < 0.5
    assert proven < 2
