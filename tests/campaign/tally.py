"""What a campaign counted and found, in a form that adds up over processes."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

#: The most serious first.
KINDS = (
    *("wrong", "schedule", "verify", "reference", "hang", "crash"),
    *("compiler", "late", "proof", "needless"),
)
EXPLANATIONS = {
    "wrong": "accepted, and the results differ from the text's",
    "schedule": "accepted, and some order of blocks and threads makes it wrong",
    "verify": "lk.verify says what runs disprove",
    "reference": "runs right, and the reference of the schedule says otherwise",
    "hang": "a step or the lowering did not end",
    "crash": "an exception that is no error of loopkit's own",
    "compiler": "the C++ compiler rejects the generated source",
    "late": "every step accepted, and lowering finds a race, a read of nothing, or what is no C",
    "proof": "runs right, and the proof of its source finds fault",
    "lowering": "refused only at lowering",
    "needless": "refused, and no size and order tried makes it wrong",
}


@dataclass
class Finding:
    """Something to look at, with all that it takes to see it again."""

    kind: str
    bucket: str
    source: str
    script: str
    detail: str
    seed: str

    def text(self) -> str:
        """A page about it."""
        return (
            f"# {self.kind}: {self.bucket}\n\n{EXPLANATIONS[self.kind]} (seed {self.seed})\n\n"
            f"```python\nimport loopkit as lk\n\n{self.source}\n{self.script}\n```\n\n"
            f"```\n{self.detail}\n```\n"
        )


@dataclass
class Bucket:
    """Alike refusals: how many, how many of them were tried by brute force, to what end."""

    count: int = 0
    tried: int = 0
    broken: int = 0
    needless: int = 0
    unjudged: int = 0  # wrong at sizes that take too long to run, or that have no data
    impossible: int = 0  # refused unchecked as well: the transform itself cannot do it

    @property
    def judged(self) -> int:
        """How many of those that were tried tell whether the refusal is right."""
        return self.tried - self.impossible - self.unjudged


@dataclass
class Tally:
    """Counts of a campaign."""

    kernels: int = 0
    sequences: int = 0
    cpu: float = 0.0  # seconds, compilers included
    steps: Counter[str] = field(default_factory=Counter)  # "transform/verdict"
    lowered: int = 0
    owed: int = 0  # schedules whose nest says which lengths a later step has to settle
    verdicts: Counter[str] = field(default_factory=Counter)  # of lk.verify: "right: equal", ...
    late: Counter[str] = field(default_factory=Counter)  # refused at lowering
    examples: dict[str, str] = field(default_factory=dict)  # of what is refused at lowering
    runs: int = 0
    interpreted: int = 0
    parallel: int = 0  # lowered schedules with blocks or threads
    refusals: dict[str, Bucket] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)  # "kind|bucket"
    seconds: dict[str, list[float]] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)

    def needless_share(self) -> float:
        """The share of needless refusals among all that can be judged.

        Only some refusals of each kind are tried: the others count like these.
        """
        kinds = [(b, b.count / b.tried) for b in self.refusals.values() if b.tried]
        judged = sum(weight * b.judged for b, weight in kinds)
        return sum(weight * b.needless for b, weight in kinds) / judged if judged else 0.0

    def bucket(self, key: str) -> Bucket:
        """The refusals counted under ``key``."""
        return self.refusals.setdefault(key, Bucket())

    def add(self, other: Tally) -> None:
        """Add what another process counted."""
        self.kernels += other.kernels
        self.sequences += other.sequences
        self.cpu += other.cpu
        self.lowered += other.lowered
        self.owed += other.owed
        self.runs += other.runs
        self.interpreted += other.interpreted
        self.parallel += other.parallel
        self.steps.update(other.steps)
        self.late.update(other.late)
        self.verdicts.update(other.verdicts)
        self.found.update(other.found)
        self.phases.update(other.phases)
        self.findings += other.findings
        self.examples = other.examples | self.examples
        for name, seconds in other.seconds.items():
            self.seconds.setdefault(name, []).extend(seconds)
        for key, theirs in other.refusals.items():
            mine = self.bucket(key)
            for name, value in asdict(theirs).items():
                setattr(mine, name, getattr(mine, name) + value)

    def total(self, kind: str) -> int:
        """How many findings of a kind there were."""
        return sum(n for key, n in self.found.items() if key.split("|", 1)[0] == kind)

    def to_json(self) -> dict[str, Any]:
        """Everything but single timings, as plain data."""
        plain = {
            name: getattr(self, name)
            for name in (
                "kernels",
                "sequences",
                "cpu",
                "lowered",
                "owed",
                "runs",
                "interpreted",
                "parallel",
            )
        }
        counters = {
            name: dict(getattr(self, name))
            for name in ("steps", "verdicts", "late", "found", "phases")
        }
        return {
            **plain,
            **counters,
            "refusals": {key: asdict(bucket) for key, bucket in self.refusals.items()},
            "examples": self.examples,
            "findings": [asdict(finding) for finding in self.findings],
            "seconds": {name: quantiles(values) for name, values in self.seconds.items()},
        }


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds: median, 99th percentile, largest."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    high = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    middle = ordered[len(ordered) // 2]
    return {
        "count": len(ordered),
        "median": 1e3 * middle,
        "p99": 1e3 * high,
        "max": 1e3 * ordered[-1],
    }
