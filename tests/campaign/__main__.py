"""``python -m tests.campaign``: a long run, with a report at the end."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .batch import Limits
from .report import show
from .tally import Finding, Tally
from .workers import campaign


@click.command()
@click.option("--sequences", default=20_000, show_default=True, help="How many sequences to run.")
@click.option("--seed", default=0, show_default=True, help="Of the first batch.")
@click.option("--workers", default=os.cpu_count(), show_default=True, help="Processes.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="A JSON file for all that was counted."
)
@click.option("--pages", type=click.Path(path_type=Path), help="A folder for a page per finding.")
@click.option("--patience", default=90.0, show_default=True, help="Seconds of work for one step.")
@click.option("--refusals", default=25, show_default=True, help="Alike refusals that are forced.")
@click.option("--examples", default=3, show_default=True, help="Pages for alike findings.")
@click.option("--proofs", default=0.2, show_default=True, help="Share of sources proven.")
@click.option("--verifications", default=0.1, show_default=True, help="Share that is verified.")
@click.option("--together", default=0.3, show_default=True, help="Share that threads share.")
@click.option("--seconds", default=float("inf"), help="Stop after this time in any case.")
def main(
    sequences: int,
    seed: int,
    workers: int,
    out: Path | None,
    pages: Path | None,
    patience: float,
    refusals: int,
    examples: int,
    proofs: float,
    verifications: float,
    together: float,
    seconds: float,
) -> None:
    """Run random sequences of transforms on random kernels, and report what breaks."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    limits = Limits(
        refusals=refusals,
        pages=examples,
        proofs=proofs,
        verifications=verifications,
        together=together,
    )
    tally = Tally()
    start = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=sequences)
        for part in campaign(seed, workers, limits, patience):
            tally.add(part)
            for finding in part.findings:
                if finding.kind != "needless":
                    progress.console.print(f"{finding.kind}: {finding.bucket}", markup=False)
                if pages is not None and tally.found[f"{finding.kind}|{finding.bucket}"] <= 12:
                    _write(pages, finding)
            description = f"{tally.sequences:,} sequences, {tally.runs:,} runs"
            progress.update(task, completed=tally.sequences, description=description)
            if tally.sequences >= sequences or time.monotonic() - start > seconds:
                break
    show(tally, console, time.monotonic() - start)
    if out is not None:
        out.write_text(json.dumps(tally.to_json(), indent=1), encoding="utf-8")
    wrong = sum(tally.total(kind) for kind in ("wrong", "schedule", "verify", "reference"))
    raise SystemExit(1 if wrong else 0)


def _write(folder: Path, finding: Finding) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-zA-Z0-9]+", "_", finding.bucket)[:70].strip("_")
    (folder / f"{finding.kind}_{name}_{finding.seed}.md".replace("__", "_")).write_text(
        finding.text(), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
