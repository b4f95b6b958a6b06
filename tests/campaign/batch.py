"""A batch: some kernels, some sequences for each, compiled together and run."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from seams import Program, Strided, broken_structure, prove

import loopkit as lk

from . import kernels, together
from .brute_force import FEW_WAYS, UnsupportedError, has_dead_code, try_to_break
from .compiled import Compiled, compile_all, first_wrong
from .data import WIDE, Case, Truth, in_words_of, reference_of
from .kernels import Drawn
from .shrink import Reproducer, proof_bucket, shrunk
from .steps import Call, script
from .tally import Finding, Tally
from .walk import Crash, Refusal, Walk, blanked, fixed_by, is_owed, walk

Note = Callable[[Drawn, Sequence[Call], str], None]


@dataclass(frozen=True)
class Limits:
    """How much a batch does."""

    kernels: int = 4
    sequences: int = 10  # for each kernel
    steps: int = 10  # for each sequence, refused ones included
    sizes: int = 4
    refusals: int = 25  # of a bucket that are tried by brute force, in one process
    pages: int = 3  # of a bucket that are shrunk and written down, in one process
    shrink_seconds: float = 20.0
    together: float = 0.3  # the share of kernels of what threads do together
    proofs: float = 0.2  # the share of schedules whose source is proven, every other one read back
    verifications: float = 0.1  # the share of accepted and of wrong schedules that are compared


@dataclass(frozen=True)
class _Job:
    drawn: Drawn
    truth: Truth
    walk: Walk
    program: Program
    seed: str


def _were_tried(sizes: Mapping[str, int], cases: Sequence[Case]) -> bool:
    """Whether sizes, those of a witness, are among those that were run."""
    return any(all(c.sizes.get(n, v) == v for n, v in sizes.items()) for c in cases)


# Lowering may refuse what no step has looked at, such as too many threads.  These it may not find:
# the steps were proven, and what cannot become code is refused by the step that causes it.
_LATE = (
    lk.IllegalTransformError,
    lk.RaceError,
    lk.OutOfBoundsError,
    lk.UninitializedReadError,
    lk.UndecidedError,
    lk.CompileError,
)


class Batches:
    """Runs batches one after another and counts."""

    def __init__(self, limits: Limits, note: Note | None = None) -> None:
        self.limits = limits
        self.note = note
        self.tally = Tally()
        self.random = random.Random()
        # Over all batches of the process.
        self._tried: dict[str, int] = {}
        self._pages: dict[str, int] = {}

    def run(self, seed: int) -> Tally:
        """One batch; returns what it counted."""
        self.tally = Tally()
        used = sum(os.times()[:4])  # by this process and the compilers that it ran
        r = random.Random(seed)
        self.random = random.Random(f"proofs {seed}")
        jobs: list[_Job] = []
        for number in range(self.limits.kernels):
            name = f"{seed}.{number}"
            with self._phase("kernels"):
                is_of_threads = r.random() < self.limits.together
                drawn, kernel = kernels.draw(
                    r,
                    lambda d, e, n=name: self._creation(d, e, n),  # type: ignore[misc]
                    together.draw_text if is_of_threads else kernels.draw_text,
                )
            self.tally.kernels += 1
            truth = Truth(kernel, r.randrange(1 << 30))
            pool: list[Walk] = []
            for sequence in range(self.limits.sequences):
                # Most sequences go on from where an earlier one was.
                start = r.choice(pool) if pool and r.random() < 0.65 else Walk(kernel)
                found, job = self._sequence(
                    r, drawn, truth, start, f"{name}.{sequence}", is_of_threads
                )
                if found.calls:
                    pool.append(found)
                if job is not None:
                    jobs.append(job)
        self._execute(jobs)
        self.tally.cpu = sum(os.times()[:4]) - used
        return self.tally

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.tally.phases[name] += time.perf_counter() - start  # type: ignore[assignment]

    # {{{ one sequence

    def _sequence(
        self,
        r: random.Random,
        drawn: Drawn,
        truth: Truth,
        start: Walk,
        seed: str,
        together: bool,
    ) -> tuple[Walk, _Job | None]:
        self.tally.sequences += 1

        def note(calls: Sequence[Call]) -> None:
            if self.note is not None:
                self.note(drawn, calls, seed)

        with self._phase("steps"):
            most = self.limits.steps if not start.calls else self.limits.steps // 3
            found = walk(r, start, most, note, together)
        for name, seconds in found.seconds:
            self.tally.seconds.setdefault(name, []).append(seconds)
        for call in found.calls[len(start.calls) :]:
            self.tally.steps[f"{call.transform}/accepted"] += 1
        for refusal in found.refusals:
            undecided = isinstance(refusal.error, lk.UndecidedError)
            verdict = "undecided" if undecided else "refused"
            self.tally.steps[f"{refusal.call.transform}/{verdict}"] += 1
            with self._phase("brute force"):
                self._refused(drawn, truth, refusal, seed)
        for crash in found.crashes:
            assert crash.call is not None
            self.tally.steps[f"{crash.call.transform}/crashed"] += 1
            self._crashed(drawn, truth, crash, seed)
        program = self._lower(drawn, truth, found, seed)
        return found, _Job(drawn, truth, found, program, seed) if program else None

    def _lower(self, drawn: Drawn, truth: Truth, found: Walk, seed: str) -> Program | None:
        start = time.perf_counter()
        try:
            program = found.kernel.program(self._strided(found.kernel))
        except lk.LoopkitError as error:
            if is_owed(error, found.kernel):
                self.tally.owed += 1  # some later step may have settled it, and the nest says so
                return None
            key = f"{type(error).__name__}: {blanked(error.why)}"
            self.tally.late[key] += 1
            if isinstance(error, _LATE):
                self._find("late", key, drawn, truth, found.calls, str(error), seed)
            else:
                page = Finding(
                    "lowering", key, drawn.source(), script(found.calls), str(error), seed
                )
                self.tally.examples.setdefault(key, page.text())
            return None
        except Exception as error:
            self._crashed(drawn, truth, Crash(found.calls, None, error), seed)
            return None
        finally:
            seconds = time.perf_counter() - start
            self.tally.seconds.setdefault("lowering", []).append(seconds)
            self.tally.phases["lowering"] += seconds  # type: ignore[assignment]
        self.tally.lowered += 1
        self.tally.parallel += any(tag.is_parallel for _, tag in found.kernel.tags)
        return program if not any(part.dynamic_shared for part in program.parts) else None

    def _strided(self, kernel: lk.Kernel) -> frozenset[str]:
        """Arrays that are passed with strides of their own."""
        arrays = [a for a in kernel.passed if isinstance(a, lk.ArrayArg) and a.shape]
        plain = [
            a.name for a in arrays if not any(isinstance(t, Strided) for t in a.dim_tags or ())
        ]
        if self.random.random() < 0.8:
            return frozenset()
        return frozenset(name for name in plain if self.random.random() < 0.5)

    def _refused(self, drawn: Drawn, truth: Truth, refusal: Refusal, seed: str) -> None:
        """Run a refused step unchecked, if there have not been enough like it."""
        error = refusal.error
        key = f"{refusal.call.transform} | {type(error).__name__} | {blanked(error.why)}"
        bucket = self.tally.bucket(key)
        bucket.count += 1
        if self._tried.get(key, 0) >= self.limits.refusals or has_dead_code(truth.kernel):
            return
        self._tried[key] = self._tried.get(key, 0) + 1
        bucket.tried += 1
        try:
            kernel = refusal.call.apply(refusal.before, unchecked=True)
        except Exception:
            bucket.impossible += 1
            return
        if error.why == broken_structure(kernel):
            bucket.impossible += 1  # by definition, whatever a run would show
            return
        calls = (*refusal.calls, refusal.call)
        if self.note is not None:
            self.note(drawn, calls, f"{seed} by brute force")
        try:
            witness = getattr(error, "witness", None)
            sizes = dict(witness.parameters) if witness else None
            fixed = fixed_by(calls)
            cases = truth.cases(kernel, 2 * self.limits.sizes, fixed, sizes)
            cases += truth.cases(kernel, self.limits.sizes, fixed, sizes, adverse=True)
            # A refusal may be of what the step leaves to be done: that is of another kernel.
            lineage, refused = getattr(error, "refused", None) or (None, kernel)
            lineage = lineage if refused.all_inames == kernel.all_inames else None
            broken = try_to_break(kernel, cases, 1, text=truth.kernel, lineage=lineage)
        except UnsupportedError:
            bucket.tried -= 1
            return
        except Exception as other:
            bucket.impossible += 1
            self._crashed(
                drawn, truth, Crash(refusal.calls, refusal.call, other), seed, "unchecked"
            )
            return
        if broken is not None or not cases:
            bucket.broken += 1
            may_run = broken is not None and broken.runs and not fixed_by(calls)
            if may_run and self.random.random() < self.limits.verifications:
                self._verify(drawn, truth, kernel, calls, seed, "equal")
            return
        if not _were_tried(sizes or {}, cases):
            bucket.unjudged += 1
            return
        bucket.needless += 1
        self._find("needless", key, drawn, truth, calls, str(error), seed)

    def _creation(self, drawn: Drawn, error: Exception, seed: str) -> None:
        crash = Crash((), None, error)
        self._find("crash", f"make_kernel: {crash.where}", drawn, None, (), repr(error), seed)

    def _crashed(self, drawn: Drawn, truth: Truth, crash: Crash, seed: str, how: str = "") -> None:
        name = crash.call.transform if crash.call else "lowering"
        calls = (*crash.calls, crash.call) if crash.call else crash.calls
        bucket = " ".join(p for p in (name, how, crash.where) if p)
        self._find("crash", bucket, drawn, truth, calls, repr(crash.error)[:2000], seed)

    # }}}
    # {{{ running what was accepted

    def _execute(self, jobs: list[_Job]) -> None:
        different: dict[tuple[int, str], _Job] = {}
        for job in jobs:
            different.setdefault((id(job.truth), job.program.source), job)
        jobs = list(different.values())
        if not jobs:
            return
        with self._phase("compiling"):
            try:
                compiled = compile_all([job.program for job in jobs])
            except lk.CompileError:
                jobs, compiled = self._one_by_one(jobs)
        for job, binary in zip(jobs, compiled, strict=True):
            if self.note is not None:
                self.note(job.drawn, job.walk.calls, f"{job.seed} running")
            with self._phase("truth"):
                wide = WIDE if any(prod(p.block) > 32 for p in job.program.parts) else None
                kernel = job.walk.kernel
                found = job.truth.cases(kernel, self.limits.sizes, job.walk.fixed, wide)
                cases = [replace(c, sizes=kernel.with_computed(c.sizes)) for c in found]
            with self._phase("running"):
                count, wrong = first_wrong(binary, cases, 1)
            self.tally.runs += count
            if wrong is not None:
                what = blanked(wrong.what) if "\n" in wrong.what else ""
                detail = f"{wrong.sizes}, {wrong.order}: {wrong.what}\n\n{job.program.source}"
                self._find("wrong", what, job.drawn, job.truth, job.walk.calls, detail, job.seed)
                continue
            with self._phase("reference"):
                detail = reference_of(kernel, cases[:1] if self.random.random() < 0.5 else ())
            if detail:
                what = blanked(detail.partition(": ")[2]) if "Error" in detail else ""
                self._find(
                    "reference", what, job.drawn, job.truth, job.walk.calls, detail, job.seed
                )
            with self._phase("interpreting"):
                self._interpret(job)
            if self.random.random() < self.limits.verifications and not job.walk.fixed:
                self._verify(
                    job.drawn, job.truth, job.walk.kernel, job.walk.calls, job.seed, "different"
                )
            if self.random.random() < self.limits.proofs:
                with self._phase("proving"):
                    self._prove(job)

    def _verify(
        self,
        drawn: Drawn,
        truth: Truth,
        kernel: lk.Kernel,
        calls: Sequence[Call],
        seed: str,
        impossible: str,
    ) -> None:
        """Compare a schedule with its text; the answer cannot be ``impossible``."""
        start = time.perf_counter()
        if self.note is not None:
            self.note(drawn, calls, f"{seed} verify")
        try:
            verdict = lk.verify(in_words_of(truth.kernel, kernel), kernel)
        except lk.LoopkitError:
            return
        except Exception as error:
            crash = Crash(tuple(calls), None, error)
            bucket = f"verify {crash.where}"
            self._find("crash", bucket, drawn, None, calls, repr(error), seed)
            return
        finally:
            seconds = time.perf_counter() - start
            self.tally.seconds.setdefault("verify", []).append(seconds)
            self.tally.phases["verifying"] += seconds  # type: ignore[assignment]
        self.tally.verdicts[
            f"{'wrong' if impossible == 'equal' else 'right'}: {verdict.answer}"
        ] += 1
        if verdict.answer == impossible:
            self._find("verify", impossible, drawn, None, calls, str(verdict), seed)

    def _prove(self, job: _Job) -> None:
        """What ran right must not be refuted by the proof of its source."""
        try:
            # Every other source is read back; else the proof is about its tree.
            count = len(self.tally.seconds.get("proof", ()))
            proof = prove(job.walk.kernel, text=count % 2 == 1)
        except lk.LoopkitError:
            return
        except Exception as error:
            crash = Crash(job.walk.calls, None, error)
            bucket = f"proof {crash.where}"
            self._find("crash", bucket, job.drawn, job.truth, crash.calls, repr(error), job.seed)
            return
        self.tally.seconds.setdefault("proof", []).append(proof.seconds)
        verdict = "refused" if proof.findings else "undecided" if proof.undecided else "accepted"
        self.tally.steps[f"proof/{verdict}"] += 1
        for open_ in proof.undecided:
            self.tally.late[f"proof undecided: {open_.kind}: {blanked(open_.what)}"] += 1
        if proof.findings:
            first = proof.findings[0]
            bucket = proof_bucket(first)
            detail = "\n".join(map(str, proof.findings)) + f"\n\n{job.program.source}"
            self._find("proof", bucket, job.drawn, job.truth, job.walk.calls, detail, job.seed)

    def _one_by_one(self, jobs: list[_Job]) -> tuple[list[_Job], list[Compiled]]:
        kept: list[_Job] = []
        compiled: list[Compiled] = []
        for job in jobs:
            try:
                compiled += compile_all([job.program])
                kept.append(job)
            except lk.CompileError as error:
                detail = f"{error.log}\n{job.program.source}"
                self._find("compiler", "", job.drawn, job.truth, job.walk.calls, detail, job.seed)
        return kept, compiled

    def _interpret(self, job: _Job) -> None:
        """What the host's order of threads cannot show: updates that are lost, for example."""
        if not any(tag.is_parallel for _, tag in job.walk.kernel.tags):
            return
        try:
            cases = job.truth.cases(job.walk.kernel, 1, job.walk.fixed)
            broken = try_to_break(job.walk.kernel, cases, 1, FEW_WAYS)
        except UnsupportedError:
            return
        self.tally.interpreted += 1
        if broken is not None:
            detail = f"{broken.sizes}, {broken.way}: {broken.what}"
            what = blanked(broken.what) if "Error" in broken.what else ""
            self._find("schedule", what, job.drawn, job.truth, job.walk.calls, detail, job.seed)

    # }}}

    def _find(
        self,
        kind: str,
        bucket: str,
        drawn: Drawn,
        truth: Truth | None,
        calls: Sequence[Call],
        detail: str,
        seed: str,
    ) -> None:
        """Count a finding; shrink and keep it if there have not been enough like it."""
        seen = f"{kind}|{bucket}"
        pages = self.limits.pages
        serious = kind in ("wrong", "schedule")
        enough = self._pages.get(seen, 0) >= (4 * pages if serious else pages)
        if not enough:
            self._pages[seen] = self._pages.get(seen, 0) + 1
        if truth is not None and not enough:
            with self._phase("shrinking"):
                small = shrunk(
                    Reproducer(drawn, tuple(calls), kind, bucket, detail),
                    truth.seed,
                    self.limits.shrink_seconds * (1.0 if serious else 0.2),
                )
            drawn, calls, detail = small.drawn, small.calls, small.detail
            if kind in ("wrong", "schedule"):
                bucket = bucket or " ".join(c.transform for c in calls)
        self.tally.found[f"{kind}|{bucket}"] += 1
        if not enough:
            page = Finding(kind, bucket, drawn.source(), script(calls), detail, seed)
            self.tally.findings.append(page)
