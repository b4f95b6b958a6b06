"""``python -m tests.campaign.shortcuts``: short proofs, compared with whole ones.

Most steps are proven by what they leave alone (``loopkit/_check/step_proof.py``).
Here the whole proof is asked for as well: where it finds a step illegal,
the short one must have found it, too.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import click
from seams import Change, SpentError, checker
from seams import PolyUndecided as Undecided
from seams import schedule_proof as whole

import loopkit as lk

from . import kernels
from .steps import script
from .walk import Walk, walk


@dataclass
class Seen:
    """How many steps were proven in short, and where the whole proof says otherwise."""

    counts: Counter[str] = field(default_factory=Counter)
    differ: list[str] = field(default_factory=list)


@contextmanager
def compared(seen: Seen) -> Iterator[None]:
    """While this lasts, each step that is proven in short is proven as a whole, too."""
    short = checker.obligations_of

    def both(before: lk.Kernel, change: Change, lineage: Any) -> Any | None:
        obligations = short(before, change, lineage)
        seen.counts[
            "whole" if obligations is None else "in part" if obligations.moves else "short"
        ] += 1
        if obligations is not None:
            try:
                mine = whole.check_obligations(lineage, change.kernel, obligations)
            except Undecided:
                return obligations
            latest = whole.last_step(before, change)
            try:
                found = violations_of(lineage, change.kernel, last_step=latest)
            except Undecided:
                seen.counts["undecided as a whole"] += 1
                return obligations
            # Where data decide, the whole proof may only say what might be.
            kinds = ", ".join(sorted({v.kind for v in found if v.exact}))
            if kinds and not mine:
                seen.differ.append(f"{kinds}: {change.kernel}")
        return obligations

    violations_of = whole.violations_of

    def twice(*asked: Any) -> list[Any]:
        lineage, kernel, *_ = asked
        found: list[Any] = violations_of(*asked)
        if len(asked) > 4 and asked[4] and not found:
            seen.counts["as it was in part"] += 1
            with suppress(Undecided, SpentError):
                kinds = ", ".join(
                    sorted({v.kind for v in violations_of(lineage, kernel) if v.exact})
                )
                if kinds:
                    seen.differ.append(f"{kinds}, said to be as it was: {kernel}")
        return found

    checker.obligations_of, whole.violations_of = both, twice
    try:
        yield
    finally:
        checker.obligations_of, whole.violations_of = short, violations_of


def compare(seed: int, sequences: int = 5, steps: int = 8) -> Seen:
    """Random sequences on one random kernel."""
    seen = Seen()
    r = random.Random(seed)
    drawn, plain = kernels.draw(r)
    with compared(seen):
        for _ in range(sequences):
            before = len(seen.differ)
            found = walk(r, Walk(plain), steps)
            for number in range(before, len(seen.differ)):
                shown = f"{drawn.source()}\n{script(found.calls)}"
                seen.differ[number] = f"seed {seed}\n{shown}\n{seen.differ[number]}"
    return seen


@click.command()
@click.option("--kernels", "count", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", default=os.cpu_count(), show_default=True)
def main(count: int, seed: int, workers: int) -> None:
    """Compare short proofs with whole ones, and print where they differ."""
    total = Seen()
    with get_context("spawn").Pool(workers) as pool:
        for seen in pool.imap_unordered(compare, range(seed, seed + count)):
            total.counts += seen.counts
            for text in seen.differ:
                click.echo(f"{text}\n")
            total.differ += seen.differ
    click.echo(", ".join(f"{n} {kind}" for kind, n in sorted(total.counts.items())))
    click.echo(f"{len(total.differ)} differ")
    raise SystemExit(1 if total.differ else 0)


if __name__ == "__main__":
    main()
