"""The histogram, charge deposited and a field gathered: nests, sources, proofs, costs."""

from __future__ import annotations

import pytest
from conftest import Golden
from gallery import kernels, load

SCHEDULES = {
    "histogram": ("global atomics", "shared memory"),
    "scatter": ("scheduled",),
    "gather": ("scheduled",),
}
PARTICLES = {"particles": 1001, "n": 20, "m": 35}
SIZES = {"histogram": {"n": 10001}, "scatter": PARTICLES, "gather": PARTICLES}


@pytest.mark.parametrize("example", SCHEDULES)
def test_generated_texts(example: str, golden: Golden) -> None:
    texts = []
    for name in SCHEDULES[example]:
        kernel = kernels(example)[name]
        texts.append(f"{kernel}\n\n{kernel.cuda()}\n{kernel.costs(**SIZES[example])}\n")
    golden(f"atomics_example_{example}.txt", "\n".join(texts))


@pytest.mark.parametrize("example", SCHEDULES)
def test_proven(example: str) -> None:
    for name in SCHEDULES[example]:
        kernel = kernels(example)[name]
        assert kernel.prove().ok and kernel.prove(text=True).ok
        assert not kernel.prove().trusted, "the assertions say all that is needed"
        verdicts = [step.verdict for step in kernel.history]
        assert set(verdicts) == {"assumed", "proven"}


def test_costs_of_the_histogram() -> None:
    """What data do not decide is exact."""
    n, bins, tile = 10001, 256, 4096
    found = {a.text: a for a in kernels("histogram")["shared memory"].costs(n=n).accesses}
    blocks = -(-n // tile)
    flush = found["counts[counts_store_dim_0]"]
    assert flush.is_atomic and flush.counts is not None
    assert flush.counts.threads == blocks * bins and flush.collisions == 0
    assert flush.counts.pieces == blocks * bins * 4 // 32
    (values,) = [a for a in found.values() if a.array == "values"]
    assert values.counts is not None and values.counts.threads == n
    assert values.counts.pieces == sum(-(-min(32, n - w) * 4 // 32) for w in range(0, n, 32))
    by_data = [a for a in found.values() if a.counts is None]
    assert [a.verb for a in by_data] == ["update"] and by_data[0].why == "data decide"


@pytest.mark.host
def test_small_results() -> None:
    assert load("histogram").small() == [0, 1, 0, 3]
    assert load("scatter").small() == [0.25] * 4
