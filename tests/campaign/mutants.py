"""Faults drawn at random in printed texts, run against what the proof says of them.

``python -m tests.campaign.mutants`` changes texts in many small ways, proves each,
compiles and runs it.  A text that is proven and computes something else, or does not
compile, is a fault of the proof.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from .mutant_crew import Count, judgements


@click.command()
@click.option("--mutants", default=40_000, show_default=True, help="How many to judge.")
@click.option("--seed", default=0, show_default=True, help="Of the first worker.")
@click.option("--workers", default=os.cpu_count(), show_default=True, help="Processes.")
@click.option("--seconds", default=float("inf"), help="Stop after this time in any case.")
@click.option("--share", default=0.5, show_default=True, help="Of what is not proven, that is run.")
@click.option("--each", default=60, show_default=True, help="Mutants of one program.")
@click.option("--pages", type=click.Path(path_type=Path), help="A folder for a page per failure.")
def main(
    mutants: int,
    seed: int,
    workers: int,
    seconds: float,
    share: float,
    each: int,
    pages: Path | None,
) -> None:
    """Change printed texts, and look for harmful ones that the proof does not find."""
    start = time.monotonic()
    count = Count()
    for name, found in judgements(seed, workers, each, share, seconds):
        count.add(name, found)
        if found.failure:
            print(f"{found.failure}: {found.edits} in {name}", flush=True)
            if pages is not None:
                pages.mkdir(parents=True, exist_ok=True)
                kind = found.failure.replace(", ", "_").replace(" ", "_")
                page = pages / f"{kind}_{count.failures[found.failure]:03}.md"
                page.write_text(found.page, encoding="utf-8")
            elif count.failures[found.failure] <= 3:
                print(found.page, flush=True)
        if count.total >= mutants or time.monotonic() - start > seconds:
            break
    print(count.shown(time.monotonic() - start))
    raise SystemExit(1 if count.failures else 0)


if __name__ == "__main__":
    main()
