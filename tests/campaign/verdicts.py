"""``python -m tests.campaign.verdicts``: what ``lk.verify`` says of pairs that differ by one edit.

Kernels are drawn and edited anywhere, deep inside as well.  Both ways round, ``equal`` is compared
with runs at several sizes, and the cell of ``different`` must differ for some data.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path

import click
from effort import DiaryWatch

from .judged import WRONG, Counts, Found, judge

BATCH = 12


def _work(pipe: Connection, diary: str) -> None:
    def note(text: str) -> None:
        Path(diary).write_text(text, encoding="utf-8")

    while True:
        seed, pairs = pipe.recv()
        pipe.send(judge(seed, pairs, note))


class _Worker:
    """One process, and the file in which it says what it is about to ask."""

    def __init__(self, folder: str, number: int) -> None:
        self.diary = Path(folder) / f"diary{number}"
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, str(self.diary)), daemon=True)
        self.process.start()
        theirs.close()
        self.watch = DiaryWatch(self.process.pid or 0, self.diary)

    def give(self, seed: int, pairs: int) -> None:
        """Let it judge a batch."""
        self.diary.write_text(f"{seed}\n", encoding="utf-8")
        self.pipe.send((seed, pairs))

    def last_words(self, kind: str, detail: str) -> Counts:
        """The pair that it was at, as a finding; the rest of its batch is lost."""
        seed, _, source = self.diary.read_text(encoding="utf-8").partition("\n")
        return Counts(pairs=1, found=[Found(kind, source, detail, seed)])

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def campaign(
    seed: int, pairs: int, workers: int, patience: float, seconds: float
) -> Iterator[Counts]:
    """Counts of one batch after another; ``patience`` is what one pair may take."""
    end = time.monotonic() + seconds
    batches = -(-pairs // BATCH)
    with tempfile.TemporaryDirectory(prefix="loopkit-verdicts-") as folder:
        crew = [_Worker(folder, number) for number in range(min(workers, batches))]
        try:
            for worker in crew:
                worker.give(seed, BATCH)
                seed += 1
            given, done = len(crew), 0
            while done < batches and time.monotonic() < end:
                ready = wait([w.pipe for w in crew], timeout=1.0)
                for number, worker in enumerate(crew):
                    counts = _news(worker, worker.pipe in ready, patience)
                    if counts is None:
                        continue
                    if any(f.kind in ("hang", "died") for f in counts.found):
                        worker.stop()
                        worker = crew[number] = _Worker(folder, number)
                    done += 1
                    yield counts
                    if given < batches:
                        worker.give(seed, BATCH)
                        seed, given = seed + 1, given + 1
                    else:
                        worker.diary.write_text("", encoding="utf-8")
        finally:
            for worker in crew:
                worker.stop()


def _news(worker: _Worker, is_ready: bool, patience: float) -> Counts | None:
    """What a worker counted; None where it is still at it."""
    if is_ready:
        try:
            counts: Counts = worker.pipe.recv()
        except EOFError:
            worker.process.join(5)
            return worker.last_words("died", f"the process ended with {worker.process.exitcode}")
        return counts
    if worker.diary.read_text(encoding="utf-8") and worker.watch.worked() > patience:
        return worker.last_words("hang", f"no answer after {patience:.0f} s of work")
    return None


def summary(counts: Counts, seconds: float) -> str:
    """What a run printed at its end."""
    lines = [f"{counts.pairs:,} pairs in {seconds:.0f} s ({counts.pairs / seconds:.1f}/s)"]
    lines += [f"  {answer:<32}{n:>8,}" for answer, n in counts.answers.most_common()]
    lines.append(f"runs compared: {counts.runs:,}; witnesses too large to run: {counts.unshown:,}")
    edits = ", ".join(f"{edit} {n:,}" for edit, n in counts.edits.most_common())
    lines.append(f"edits: {edits}")
    shares = ", ".join(f"{phase} {n:.0f} s" for phase, n in counts.seconds.most_common())
    lines.append(f"time: {shares}")
    lines += [f"wrong, {kind}: {counts.count(kind):,}" for kind in WRONG]
    return "\n".join(lines)


@click.command()
@click.option("--pairs", default=20_000, show_default=True, help="How many pairs to judge.")
@click.option("--seed", default=0, show_default=True, help="Of the first batch.")
@click.option("--workers", default=os.cpu_count(), show_default=True, help="Processes.")
@click.option("--seconds", default=float("inf"), help="Stop after this time in any case.")
@click.option("--patience", default=60.0, show_default=True, help="Seconds of work for one pair.")
@click.option("--pages", type=click.Path(path_type=Path), help="A folder for a page per finding.")
@click.option("--out", type=click.Path(path_type=Path), help="A JSON file for all counts.")
def main(
    pairs: int,
    seed: int,
    workers: int,
    seconds: float,
    patience: float,
    pages: Path | None,
    out: Path | None,
) -> None:
    """Judge verdicts of lk.verify by running what it says is equal, or is not."""
    counts = Counts()
    start = said = time.monotonic()
    for part in campaign(seed, pairs, workers, patience, seconds):
        counts.add(part)
        for finding in part.found:
            click.echo(finding.page())
            if pages is not None:
                pages.mkdir(parents=True, exist_ok=True)
                name = f"{finding.kind}_{finding.seed.replace('.', '_')}.md"
                (pages / name).write_text(finding.page(), encoding="utf-8")
        if time.monotonic() - said > 30:
            said = time.monotonic()
            click.echo(f"{counts.pairs:,} pairs, {len(counts.found)} wrong", err=True)
    click.echo(summary(counts, time.monotonic() - start))
    if out is not None:
        counted = vars(counts) | {"found": [asdict(finding) for finding in counts.found]}
        out.write_text(json.dumps(counted, indent=1), encoding="utf-8")
    raise SystemExit(1 if counts.found else 0)


if __name__ == "__main__":
    main()
