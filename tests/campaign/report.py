"""What a campaign prints."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from .explanations import explanation
from .tally import EXPLANATIONS, KINDS, Tally, quantiles


def show(tally: Tally, console: Console, seconds: float, rows: int = 40) -> None:
    """The summary: sequences, steps, findings, refusals, times."""
    console.print(_summary(tally, seconds))
    console.print(_steps(tally))
    console.print(_refusals(tally, rows))
    console.print(_needless(tally))
    for page in needless_pages(tally):
        console.rule()
        console.print(page, markup=False, highlight=False)
    if tally.late:
        console.print(_late(tally))
    for finding in sorted(tally.findings, key=lambda f: KINDS.index(f.kind)):
        if finding.kind != "needless":
            console.rule()
            console.print(finding.text(), markup=False, highlight=False)


def _summary(tally: Tally, seconds: float) -> Table:
    table = Table(title="Campaign", show_header=False)
    verdicts = {"accepted": 0, "refused": 0, "undecided": 0, "crashed": 0}
    for key, count in tally.steps.items():
        if not key.startswith("proof/"):
            verdicts[key.rsplit("/", 1)[1]] += count
    rate = tally.sequences / seconds if seconds else 0.0
    table.add_row("kernels", f"{tally.kernels:,}")
    table.add_row("sequences", f"{tally.sequences:,} ({rate:.1f}/s)")
    each = 1e3 * tally.cpu / tally.sequences if tally.sequences else 0.0
    table.add_row("processor time for each sequence", f"{each:.0f} ms")
    for verdict, count in verdicts.items():
        table.add_row(f"steps {verdict}", f"{count:,}")
    table.add_row("schedules lowered", f"{tally.lowered:,}")
    table.add_row("of these with blocks or threads", f"{tally.parallel:,}")
    table.add_row("schedules that owe constant lengths", f"{tally.owed:,}")
    table.add_row("runs compared with the text", f"{tally.runs:,}")
    table.add_row("schedules interpreted in adverse orders", f"{tally.interpreted:,}")
    proofs = [tally.steps[f"proof/{v}"] for v in ("accepted", "refused", "undecided")]
    proven = f"{proofs[0]:,} proven, {proofs[1]:,} refuted, {proofs[2]:,} open"
    table.add_row("sources read back", proven)
    for answer, count in sorted(tally.verdicts.items()):
        table.add_row(f"verify of a schedule that is {answer}", f"{count:,}")
    tried = sum(b.judged for b in tally.refusals.values())
    needless = sum(b.needless for b in tally.refusals.values())
    share = needless / tried if tried else 0.0
    table.add_row("refusals of the checker tried by brute force", f"{tried:,}")
    table.add_row("of these nothing made wrong", f"{needless:,} ({share:.1%})")
    # At most so many of a kind are tried, and the frequent kinds are those that are right.
    table.add_row("so, of all refusals, needless", f"{tally.needless_share():.1%}")
    for kind in KINDS:
        if kind != "needless":
            table.add_row(f"{kind}: {EXPLANATIONS[kind]}", f"{tally.total(kind):,}")
    return table


def _steps(tally: Tally) -> Table:
    table = Table("transform", "accepted", "refused", "undecided", "median ms", "p99", "max")
    transforms = {key.rsplit("/", 1)[0] for key in tally.steps} - {"proof"}
    rows = {name: (name,) for name in sorted(transforms | tally.seconds.keys())}
    for title, names in (rows | {"all steps": tuple(transforms)}).items():
        times = quantiles([s for name in names for s in tally.seconds.get(name, [])])
        shown = [f"{times.get(q, 0.0):.1f}" for q in ("median", "p99", "max")]
        verdicts = ("accepted", "refused", "undecided")
        counts = [sum(tally.steps[f"{name}/{v}"] for name in names) for v in verdicts]
        table.add_row(title, *map(str, counts), *shown)
    return table


def _refusals(tally: Tally, rows: int) -> Table:
    table = Table(
        *("refused", "times", "tried", "wrong", "needless", "not judged", "cannot be forced"),
        title="Refusals",
    )
    ordered = sorted(tally.refusals.items(), key=lambda item: (-item[1].needless, -item[1].count))
    for key, b in ordered[:rows]:
        counts = (b.count, b.tried, b.broken, b.needless, b.unjudged, b.impossible)
        table.add_row(key, *map(str, counts))
    return table


def _needless(tally: Tally) -> Table:
    """Each kind of refusal that nothing made wrong, explained or to be mended."""
    table = Table("kind", "needless", "explained by", title="Refusals that nothing made wrong")
    for key, bucket in sorted(tally.refusals.items(), key=lambda item: -item[1].needless):
        if bucket.needless:
            table.add_row(key, str(bucket.needless), explanation(key) or "NOT EXPLAINED")
    return table


def _late(tally: Tally) -> Table:
    table = Table("refused at lowering", "times")
    for key, count in tally.late.most_common(20):
        table.add_row(key, str(count))
    return table


def needless_pages(tally: Tally) -> Iterator[str]:
    """One example of each kind of refusal that nothing made wrong."""
    seen = set()
    for finding in tally.findings:
        if finding.kind == "needless" and finding.bucket not in seen:
            seen.add(finding.bucket)
            yield finding.text()
