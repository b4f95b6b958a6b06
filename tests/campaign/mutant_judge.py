"""What the proof says of changed texts, and what running them shows."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from seams import Program, Proof, prove_program

import loopkit as lk

from .children import DeadError, told
from .compiled import compile_all, first_wrong
from .mutant_edits import mutant
from .mutant_launches import relaunched
from .mutant_subjects import Subject

FAILURES = {
    "proven, and wrong": "the results differ, or memory is touched that is none of the arrays'",
    "proven, and rejected": "the compiler does not take the text",
    "crash": "the proof raises what is no error of its own",
    "hang": "the proof does not end",
}
_SILENCE = 60.0
_RUNNING = 10.0


@dataclass(frozen=True)
class Mutant:
    """A changed program."""

    program: Program
    edits: str


@dataclass(frozen=True)
class Judged:
    """A mutant's verdict (proven, refuted, undecided), and what its runs show.

    ``outcome`` is same, harmful, rejected, or empty where it was not run.
    """

    verdict: str
    outcome: str
    edits: str
    failure: str = ""
    page: str = ""


def mutants(r: random.Random, subject: Subject, count: int) -> list[Mutant]:
    """Different changed programs."""
    found: dict[object, Mutant] = {}
    for _ in range(2 * count):
        if len(found) == count:
            break
        if r.random() < (0.2 if subject.program.launches else 0.04):
            program = relaunched(r, subject.program)
            made = Mutant(program, "launch")
        else:
            source, edits = mutant(r, subject.program.source)
            made = Mutant(replace(subject.program, source=source, lines=()), edits)
        if made.program != subject.program and made.program.source != subject.program.source:
            found.setdefault(made.program.source, made)
        elif made.edits == "launch" and made.program != subject.program:
            program = made.program
            found.setdefault((program.block, program.grid, program.params, program.launches), made)
    return list(found.values())


def judged(
    subject: Subject, changed: Sequence[Mutant], r: random.Random, share: float
) -> Iterator[Judged]:
    """All mutants, proven in another process; ``share`` of what is refuted is run, too."""
    waiting: list[tuple[Mutant, str, str]] = []
    at = 0
    while at < len(changed):
        rest = changed[at:]
        try:
            for verdict, detail in told(lambda rest=rest: _proofs(subject, rest), _SILENCE):  # type: ignore[misc]
                made, at = changed[at], at + 1
                if verdict == "crash":
                    yield _failed(subject, made, "crash", detail)
                elif verdict == "proven" or r.random() < (0.1 * share if detail else share):
                    waiting.append((made, verdict, detail))
                else:
                    yield Judged(verdict, "", made.edits)
        except DeadError as error:
            kind = "hang" if "in time" in str(error) else "crash"
            yield _failed(subject, changed[at], kind, str(error))
            at += 1
    yield from _run(subject, waiting)


def _proofs(subject: Subject, changed: Sequence[Mutant]) -> Iterator[tuple[str, str]]:
    """Verdicts; of what is refuted, whether the text is not understood at all."""
    for made in changed:
        try:
            proof = prove_program(subject.kernel, made.program)
        except Exception as error:
            yield "crash", f"{type(error).__name__}: {error}"
            continue
        yield _verdict(proof), "text" if any(f.kind == "text" for f in proof.findings) else ""


def _verdict(proof: Proof) -> str:
    return "refuted" if proof.findings else "undecided" if proof.undecided else "proven"


def _run(subject: Subject, waiting: Sequence[tuple[Mutant, str, str]]) -> Iterator[Judged]:
    for verdict in ("proven", "undecided", "refuted"):
        group = [made for made, own, _ in waiting if own == verdict]
        for start in range(0, len(group), 8):
            for made, (outcome, detail) in _outcomes(subject, group[start : start + 8]):
                failure = ""
                if verdict == "proven" and outcome in ("harmful", "rejected"):
                    failure = f"proven, and {'wrong' if outcome == 'harmful' else 'rejected'}"
                page = _page(subject, made, failure, detail) if failure else ""
                yield Judged(verdict, outcome, made.edits, failure, page)


def _outcomes(
    subject: Subject, group: Sequence[Mutant]
) -> Iterator[tuple[Mutant, tuple[str, str]]]:
    """What becomes of programs that are compiled together, or one by one."""
    try:
        found = list(told(lambda: _compiled(subject, group), _SILENCE))
        assert len(found) == len(group)
        yield from zip(group, found, strict=True)
    except (DeadError, AssertionError):
        if len(group) == 1:
            yield group[0], ("rejected", "")
            return
        for made in group:
            yield from _outcomes(subject, [made])


def _compiled(subject: Subject, group: Sequence[Mutant]) -> Iterator[tuple[str, str]]:
    try:
        binaries = compile_all([made.program for made in group])
    except lk.CompileError as error:
        if len(group) == 1:
            yield "rejected", str(error.log)[:2000]
        return
    for binary in binaries:

        def run(binary=binary) -> Iterator[tuple[str, str]]:  # type: ignore[no-untyped-def]
            _, wrong = first_wrong(binary, subject.cases, 1)
            yield ("same", "") if wrong is None else ("harmful", str(wrong))

        try:
            yield from list(told(run, _RUNNING))
        except DeadError as error:
            yield "harmful", str(error)


def _failed(subject: Subject, made: Mutant, kind: str, detail: str) -> Judged:
    return Judged(kind, "", made.edits, kind, _page(subject, made, kind, detail))


def _page(subject: Subject, made: Mutant, failure: str, detail: str) -> str:
    before, after = (p.source.split("\n") for p in (subject.program, made.program))
    changed = "\n".join(difflib.unified_diff(before, after, "printed", "changed", lineterm=""))
    launch = ""
    if made.edits == "launch":
        launch = f"\nblock {made.program.block}, grid {made.program.grid}, {made.program.params}\n"
    return (
        f"# {failure}: {made.edits} in {subject.name}\n\n{FAILURES.get(failure, '')}\n{launch}\n"
        f"```diff\n{changed}\n```\n\n```\n{detail}\n```\n\n```cuda\n{made.program.source}\n```\n\n"
        f"```python\n{subject.kernel.script()}\n```\n"
    )
