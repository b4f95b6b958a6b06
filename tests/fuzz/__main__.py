"""``python -m tests.fuzz``: hostile calls for a time, with a report at the end."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import click

from .areas import AREAS
from .runner import Crew, replay


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long.")
@click.option("--seed", default=0, show_default=True, help="The number of the first case.")
@click.option("--workers", default=1, show_default=True, help="Processes.")
@click.option(
    "--limit", default=20.0, show_default=True, help="Seconds of work until a call hangs."
)
@click.option(
    "--area", "areas", multiple=True, type=click.Choice(sorted(AREAS)), help="Only these."
)
@click.option("--out", type=click.Path(path_type=Path), help="A JSON file for what was found.")
@click.option("--replay", "again", help="AREA:NUMBER of one case to see again.")
def main(
    seconds: float,
    seed: int,
    workers: int,
    limit: float,
    areas: tuple[str, ...],
    out: Path | None,
    again: str | None,
) -> None:
    """Call the public interface with hostile arguments: only LoopkitErrors may come back."""
    if again is not None:
        area, _, number = again.partition(":")
        sys.exit(replay(area, int(number)))
    report = Crew(seed, workers, limit, areas).run(seconds)
    found = sorted(report.findings.values(), key=lambda f: -f.count)
    if out is not None:
        out.write_text(json.dumps([dataclasses.asdict(f) for f in found], indent=1))
    print(f"\n{report.cases} calls, {len(found)} kinds of findings")
    for finding in found:
        print(f"  {finding.count:>5}  {finding.kind} at {finding.where}")
    sys.exit(bool(found))


def main_with_fixed_hashes() -> None:
    """Run in a process in which sets of words have one order, so that a case stays what it is."""
    if os.environ.get("PYTHONHASHSEED") is None:
        again = [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    main()


if __name__ == "__main__":
    main_with_fixed_hashes()
