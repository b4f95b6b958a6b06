"""``python -m tests.campaign.orders``: one schedule, its steps in other orders and groups.

Accepted sequences, those of the gallery and random ones, are taken apart and put
together again: neighbours change places, tags go one by one or together, a split
is tagged afterwards.  A step that is refused on the way is a defect where the
kernel that it makes was accepted before, or where running that kernel in many
orders shows nothing wrong.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import click

import loopkit as lk

from . import kernels
from .brute_force import UnsupportedError, has_dead_code, try_to_break
from .data import Truth
from .explanations import explanation
from .steps import Call, script
from .walk import Walk, blanked, fixed_by, walk

Calls = tuple[Call, ...]


@dataclass(frozen=True)
class Found:
    """A refusal that depends on order: what kind, which message, and how to see it again."""

    kind: str
    bucket: str
    page: str


@dataclass
class Seen:
    """What became of other orders."""

    counts: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)


# {{{ other orders and groups


def variants(calls: Calls) -> Iterator[Calls]:
    """The same steps otherwise: neighbours swapped, tags apart or together."""
    for number in range(len(calls) - 1):
        yield (*calls[:number], calls[number + 1], calls[number], *calls[number + 2 :])
    for number in range(2, len(calls)):
        yield (calls[number], *calls[:number], *calls[number + 1 :])
    for number, call in enumerate(calls):
        for group in _apart(call):
            yield (*calls[:number], *group, *calls[number + 1 :])
    for number in range(len(calls) - 1):
        joined = _joined(calls[number], calls[number + 1])
        if joined is not None:
            yield (*calls[:number], joined, *calls[number + 2 :])


def _apart(call: Call) -> Iterator[Calls]:
    given = dict(call.arguments)
    if call.transform == "tag_inames" and isinstance(given.get("iname_to_tag"), dict):
        tags = given.pop("iname_to_tag")
        if len(tags) > 1:
            singles = tuple(
                Call("tag_inames", {"iname_to_tag": {i: t}, **given}) for i, t in tags.items()
            )
            yield singles
            yield singles[::-1]
    if call.transform == "split_iname" and not given.get("within"):
        tags = {
            str(given.get(f"{side}_iname") or f"{given['split_iname']}_{side}"): given.pop(
                f"{side}_tag"
            )
            for side in ("outer", "inner")
            if given.get(f"{side}_tag")
        }
        if tags:
            later = [Call("tag_inames", {"iname_to_tag": {i: t}}) for i, t in tags.items()]
            yield (Call("split_iname", given), Call("tag_inames", {"iname_to_tag": tags}))
            yield (Call("split_iname", given), *later)
            yield (Call("split_iname", given), *later[::-1])


def _joined(first: Call, second: Call) -> Call | None:
    both = [c.arguments.get("iname_to_tag") for c in (first, second)]
    if {first.transform, second.transform} != {"tag_inames"}:
        return None
    if not all(
        isinstance(tags, dict) and len(c.arguments) == 1
        for tags, c in zip(both, (first, second), strict=True)
    ):
        return None
    return Call("tag_inames", {"iname_to_tag": {**both[0], **both[1]}})  # type: ignore[dict-item]


# }}}
# {{{ judging


def unlabelled(kernel: lk.Kernel) -> lk.Kernel:
    """A kernel without what says how it was made."""
    return kernel.with_(
        statements=tuple(s.__class__(**{**_fields(s), "made_by": None}) for s in kernel.statements)
    )


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]


class Orders:
    """Tries other orders of accepted sequences on one kernel."""

    def __init__(self, plain: lk.Kernel, seen: Seen, about: str, seed: int) -> None:
        self.plain = plain
        self.seen = seen
        self.about = about
        self.seed = seed
        self.truth: Truth | None = None

    def compare(self, calls: Calls) -> None:
        """Try all variants of a sequence that is accepted."""
        accepted = {}
        kernel = self.plain
        for call in calls:
            kernel = call.apply(kernel)
            accepted[unlabelled(kernel)] = True
        for variant in variants(calls):
            self.seen.counts["orders"] += 1
            self.variant(variant, accepted)

    def variant(self, calls: Calls, accepted: dict[lk.Kernel, bool]) -> None:
        """Replay a sequence up to the first step that is refused."""
        kernel = self.plain
        for number, call in enumerate(calls):
            try:
                kernel = call.apply(kernel)
            except (lk.IllegalTransformError, lk.UndecidedError, lk.RaceError) as error:
                self.refused(kernel, calls[: number + 1], error, accepted)
                return
            except lk.LoopkitError:
                # The step has no meaning here: it names what another one makes.
                self.seen.counts["without meaning"] += 1
                return
        self.seen.counts["accepted"] += 1

    def refused(
        self,
        before: lk.Kernel,
        calls: Calls,
        error: lk.LoopkitError,
        accepted: dict[lk.Kernel, bool],
    ) -> None:
        """Judge a step that was refused in another order."""
        try:
            kernel = calls[-1].apply(before, unchecked=True)
        except lk.LoopkitError:
            self.seen.counts["without meaning"] += 1
            return
        if unlabelled(kernel) in accepted:
            self.note("accepted otherwise", calls, error)
        elif self.is_right(kernel, calls):
            self.seen.counts["refused: wrong at this point"] += 1
        else:
            self.note("needless", calls, error)

    def is_right(self, kernel: lk.Kernel, calls: Calls) -> bool:
        """Whether running shows that the step is wrong, or nothing can be run."""
        if has_dead_code(self.plain):
            return True
        self.truth = self.truth or Truth(self.plain, self.seed)
        try:
            cases = self.truth.cases(kernel, 6, fixed_by(calls))
            return not cases or try_to_break(kernel, cases, 1, text=self.plain) is not None
        except UnsupportedError:
            return True

    def note(self, kind: str, calls: Calls, error: lk.LoopkitError) -> None:
        """Remember a refusal that should not be."""
        bucket = f"{calls[-1].transform} | {type(error).__name__} | {blanked(error.why)}"
        known = explanation(f"{type(error).__name__} {blanked(error.why)}")
        self.seen.counts[f"{kind}{' (explained)' if known and kind == 'needless' else ''}"] += 1
        page = f"{self.about}\n{script(calls)}\n{error}\n"
        self.seen.found.append(Found(kind, bucket, page))


# }}}


def explore(seed: int, sequences: int = 6, steps: int = 8) -> Seen:
    """Random sequences on one random kernel, in other orders."""
    seen = Seen()
    r = random.Random(seed)
    drawn, plain = kernels.draw(r)
    orders = Orders(plain, seen, f"seed {seed}\n{drawn.source()}", seed)
    for _ in range(sequences):
        found = walk(r, Walk(plain), steps)
        if len(found.calls) > 1:
            orders.compare(found.calls)
    return seen


def replayed(kernel: lk.Kernel, seen: Seen, about: str) -> None:
    """The steps of a schedule, in other orders; its first kernel is the text."""
    if kernel.lineage is None:
        return
    calls = tuple(Call(s.transform, dict(s.arguments)) for s in kernel.history)
    Orders(kernel.lineage.root, seen, about, 0).compare(calls)


def gallery(example: str) -> Seen:
    """The schedules of one script in ``examples/``, in other orders."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    seen = Seen()
    for name, kernel in importlib.import_module(example).make().items():
        replayed(kernel, seen, f"examples/{example}.py, {name}")
    return seen


def report(found: Sequence[Found], most: int) -> None:
    """Print how often each message came, and pages of the first ones."""
    buckets: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        buckets.setdefault((one.kind, one.bucket), []).append(one)
    for (kind, bucket), them in sorted(buckets.items(), key=lambda b: -len(b[1])):
        click.echo(f"{len(them):5} {kind}: {bucket}")
        for one in them[:most]:
            click.echo("\n".join(f"          {line}" for line in one.page.splitlines()))


@click.command()
@click.option("--kernels", "count", default=200, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", default=os.cpu_count(), show_default=True)
@click.option("--example", multiple=True, help="A script in examples/, instead of random kernels.")
@click.option("--pages", default=1, show_default=True, help="Shown of each kind of refusal.")
def main(count: int, seed: int, workers: int, example: tuple[str, ...], pages: int) -> None:
    """Permute and regroup accepted steps, and print refusals that depend on it."""
    total = Seen()
    with get_context("spawn").Pool(workers) as pool:
        random_ones = pool.imap_unordered(explore, range(seed, seed + count))
        for seen in pool.imap_unordered(gallery, example) if example else random_ones:
            total.counts += seen.counts
            total.found += seen.found
    report(total.found, pages)
    click.echo(", ".join(f"{n} {kind}" for kind, n in sorted(total.counts.items())))
    raise SystemExit(1 if total.counts["accepted otherwise"] else 0)


if __name__ == "__main__":
    main()
