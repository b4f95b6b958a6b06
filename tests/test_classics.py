"""The classic texts are lowered and proven within the time that they may take."""

from __future__ import annotations

import time

import pytest
from classics import CLASSICS, scheduled

QUICK = [name for name in CLASSICS if not name.startswith(("bitonic", "lanes"))]


@pytest.mark.parametrize("name", QUICK)
def test_source_and_proof(name: str) -> None:
    knl = scheduled(name)
    assert all(step.verdict in ("proven", "assumed") for step in knl.history)
    begin = time.process_time()
    knl.cuda()
    lowered = time.process_time()
    assert knl.prove().ok
    assert lowered - begin < 0.5
    assert time.process_time() - lowered < 2
