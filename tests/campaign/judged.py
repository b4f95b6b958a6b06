"""Whether what ``lk.verify`` says of a pair of kernels is true, by running both."""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from seams import ExampleData, KernelAtSizes, run_reference

import loopkit as lk

from .pairs import Text, draw_text, edited

Arrays = dict[str, Any]
Note = Callable[[str], None]

SIZES = ({"n": 3, "m": 2}, {"n": 6, "m": 5}, {"n": 1, "m": 4}, {"n": 9, "m": 3})
STYLES = ("small", "wide", "special")
EDITS_OF_A_KERNEL = 6
_TRIALS = 40


@dataclass
class Found:
    """One verdict that is wrong, or one pair that went wrong, with all that it takes to see it."""

    kind: str  # one of WRONG
    source: str
    detail: str
    seed: str

    def page(self) -> str:
        """A page about it."""
        code = f"import loopkit as lk\n\n{self.source}\n\nprint(lk.verify(before, after))"
        head = f"# {self.kind} (seed {self.seed})"
        return f"{head}\n\n```python\n{code}\n```\n\n```\n{self.detail}\n```\n"


WRONG = ("equal", "different", "disagree", "crash", "died", "hang")


@dataclass
class Counts:
    """What was counted; it adds up over processes."""

    pairs: int = 0
    runs: int = 0
    unshown: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add what another process counted."""
        self.pairs += other.pairs
        self.runs += other.runs
        self.unshown += other.unshown
        self.answers.update(other.answers)
        self.edits.update(other.edits)
        self.found += other.found
        self.seconds.update(other.seconds)

    def count(self, kind: str) -> int:
        """How many findings of a kind there are."""
        return sum(f.kind == kind for f in self.found)


def judge(seed: int, pairs: int, note: Note) -> Counts:
    """Draw some pairs and judge what is said of them; ``note`` hears of each before it is asked."""
    counts = Counts()
    r = random.Random(f"verdicts {seed}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        while counts.pairs < pairs:
            text = draw_text(r)
            before = _made(text, counts, str(seed))
            for _ in range(EDITS_OF_A_KERNEL if before is not None else 0):
                change = edited(r, text)
                if change is None or counts.pairs >= pairs:
                    continue
                _pair(text, before, *change, counts, f"{seed}.{counts.pairs}", note)
    return counts


def _made(text: Text, counts: Counts, seed: str) -> lk.Kernel | None:
    start = time.perf_counter()
    try:
        return text.make()
    except lk.LoopkitError:
        return None
    except Exception:
        counts.found.append(Found("crash", text.source("before"), traceback.format_exc(), seed))
        return None
    finally:
        counts.seconds["make"] += time.perf_counter() - start  # type: ignore[assignment]


def _pair(
    text: Text,
    before: lk.Kernel,
    edit: str,
    other: Text,
    counts: Counts,
    seed: str,
    note: Note,
) -> None:
    after = _made(other, counts, seed)
    if after is None:
        counts.answers["refused when made"] += 1
        return
    source = f"{text.source('before')}\n{other.source('after')}"
    note(f"{seed}\n{source}")
    try:
        kind, detail = _judged(before, after, counts, seed)
    except Exception:
        kind, detail = "crash", traceback.format_exc()
    counts.pairs += 1
    counts.edits[edit] += 1
    if kind:
        counts.found.append(Found(kind, source, f"{edit}\n{detail}", seed))


def _judged(before: lk.Kernel, after: lk.Kernel, counts: Counts, seed: str) -> tuple[str, str]:
    """What is wrong with the verdicts on two kernels, asked both ways; empty where nothing is."""
    start = time.perf_counter()
    said: list[lk.Verdict] = []
    for one, two in ((before, after), (after, before)):
        try:
            said.append(lk.verify(one, two))
        except lk.LoopkitError as error:
            counts.answers[f"refused: {type(error).__name__}"] += 1
            return "", ""
    counts.seconds["verify"] += time.perf_counter() - start  # type: ignore[assignment]
    start = time.perf_counter()
    answers = {verdict.answer for verdict in said}
    for verdict in said:
        counts.answers[verdict.answer] += 1
    try:
        if answers >= {"equal", "different"}:
            return "disagree", "\n".join(map(str, said))
        if "equal" in answers:
            shown = _difference(before, after, counts, seed)
            if shown:
                return "equal", f"{said[0]}\n{said[1]}\n{shown}"
        for (one, two), verdict in zip(((before, after), (after, before)), said, strict=True):
            if verdict.answer == "different" and not _is_real(one, two, verdict, counts, seed):
                return "different", f"{verdict}\nno data of {_TRIALS} trials shows it"
    finally:
        counts.seconds["run"] += time.perf_counter() - start  # type: ignore[assignment]
    return "", ""


# {{{ running


def _data(kernel: lk.Kernel, sizes: Mapping[str, int], style: str, seed: str) -> Arrays:
    """Contents for every array: small numbers, numbers as large as they get, or strange ones."""
    digits = random.Random(f"{seed} {style} {sorted(sizes.items())}").randrange(1 << 30)
    rng = np.random.default_rng(digits)
    found: Arrays = {}
    for argument in kernel.args:
        if not isinstance(argument, lk.ArrayArg):
            continue
        dtype: Any = argument.dtype
        rank = len(argument.shape or ())
        shape = (sizes["n"], sizes["m"] + 3) if rank == 2 else (4 * (sizes["n"] + sizes["m"]) + 40,)
        low, high = (0, 8) if dtype.kind == "u" else (-4, 8)
        values = rng.integers(low, high, shape).astype(dtype)
        if style == "wide" and dtype.kind in "iu":
            info = np.iinfo(dtype)
            values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        elif style != "small" and dtype.kind == "f":
            values = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
            if style == "special":
                strange = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30], dtype)
                picked = rng.integers(0, len(strange), shape)
                values = np.where(rng.random(shape) < 0.4, strange[picked], values)
        found[argument.name] = values
    return found


def _run(kernel: lk.Kernel, sizes: Mapping[str, int], given: Arrays) -> Arrays:
    known = {n: v for n, v in sizes.items() if n in kernel.sizes}
    return run_reference(kernel, {**known, **given})


def _run_or_none(kernel: lk.Kernel, sizes: Mapping[str, int], given: Arrays) -> Arrays | None:
    try:
        return _run(kernel, sizes, given)
    except lk.LoopkitError:
        return None


def _difference(before: lk.Kernel, after: lk.Kernel, counts: Counts, seed: str) -> str:
    """In words, where two kernels that are said to be equal are not."""
    for sizes in SIZES[:3]:
        for style in STYLES:
            given = _data(before, sizes, style, seed)
            counts.runs += 1
            try:
                mine, its = _run(before, sizes, given), _run(after, sizes, given)
            except lk.LoopkitError as error:
                return f"{error}, {sizes}, {style} data"
            for name in dict.fromkeys((*mine, *its)):
                a, b = mine.get(name, given[name]), its.get(name, given[name])
                cell = _first_cell(a, b, exact=not _reassociates(before, after))
                if cell is not None:
                    return f"{name}{list(cell)}: {a[cell]} and {b[cell]}, {sizes}, {style} data"
    return ""


def _reassociates(before: lk.Kernel, after: lk.Kernel) -> bool:
    """Whether a sum of floats over a set, whose order is free, may round differently."""
    statements = (*before.statements, *after.statements)
    return any(s.operation in ("sum", "product") for s in statements)


def _first_cell(a: Any, b: Any, *, exact: bool) -> tuple[int, ...] | None:
    """The first cell in which two arrays differ."""
    if a.dtype.kind != "f" or exact:
        same = (a == b) | ((a != a) & (b != b))
    else:
        scale = np.maximum(np.abs(a), np.abs(b))
        eps = 1e4 * float(np.finfo(a.dtype).eps)
        near = np.abs(a - b) <= eps * np.maximum(scale, 1.0)
        # Sums that cancel, or that meet no numbers, are left aside.
        same = near | ~np.isfinite(a) | ~np.isfinite(b) | (scale > 1e6)
    places = np.argwhere(~same)
    return tuple(int(p) for p in places[0]) if len(places) else None


def _trials(kernel: lk.Kernel, sizes: Mapping[str, int], seed: str) -> Iterator[Arrays]:
    """The data in which verify looks for a difference, and others."""
    known = {n: v for n, v in sizes.items() if n in kernel.sizes}
    for trial in range(2):
        theirs = KernelAtSizes(kernel, known).given(ExampleData(trial))
        yield {n: v for n, v in theirs.items() if n not in known}
    for trial in range(_TRIALS - 2):
        style = ("small", "small", "wide", "special")[trial % 4]
        yield _data(kernel, sizes, style, f"{seed} {trial}")


def _is_real(
    before: lk.Kernel, after: lk.Kernel, verdict: lk.Verdict, counts: Counts, seed: str
) -> bool:
    """Whether the cell of a witness differs for some data."""
    witness = verdict.witness
    if witness is None or witness.outside:
        return witness is not None
    sizes = {"n": 1, "m": 1, **witness.sizes}
    if max(sizes.values()) > 64:
        counts.unshown += 1
        return True
    ran = _TRIALS
    for given in _trials(before, sizes, seed):
        counts.runs += 1
        mine, its = _run_or_none(before, sizes, given), _run_or_none(after, sizes, given)
        if mine is None and its is None:  # data that the kernels do not allow
            ran -= 1
            continue
        if mine is None or its is None:
            return True
        name, cell = witness.array, witness.cell
        if any(at >= extent for at, extent in zip(cell, given[name].shape, strict=True)):
            counts.unshown += 1  # data alone keep the kernels inside of the array
            return True
        a, b = mine.get(name, given[name])[cell], its.get(name, given[name])[cell]
        if not (a == b or (a != a and b != b)):
            return True
    counts.unshown += not ran
    return not ran


# }}}
