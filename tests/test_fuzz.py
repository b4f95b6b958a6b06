"""Hostile calls of the public interface: a fixed sample, and the crew that runs long ones."""

import pytest
from fuzz.areas import AREAS, case
from fuzz.runner import Crew, attempt

SAMPLE = 40


@pytest.mark.parametrize("area", sorted(AREAS))
def test_hostile_calls_raise_nothing_foreign(area):
    found = [f for f in (attempt(area, number) for number in range(SAMPLE)) if f is not None]
    assert not found, "\n".join(map(str, found))


def test_cases_are_the_same_each_time():
    for area in AREAS:
        assert case(area, 3).text.split(" at 0x")[0] == case(area, 3).text.split(" at 0x")[0]


def test_the_crew_runs_cases_and_comes_back():
    crew = Crew(seed=0, workers=1, limit=60, areas=("matches",))
    report = crew.run(10, shows=False)
    assert not any(worker.process.is_alive() for worker in crew.workers)
    assert report.findings == {}
