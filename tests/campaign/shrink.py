"""Making what was found small: fewer steps, fewer lines of the kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from seams import ProofFinding as Finding
from seams import prove

import loopkit as lk

from .brute_force import UnsupportedError, has_dead_code, try_to_break
from .compiled import compile_all, first_wrong
from .data import Truth, reference_of
from .kernels import Drawn
from .steps import Call
from .walk import Crash, blanked, fixed_by, is_owed

_SIZES = 6


@dataclass(frozen=True)
class Reproducer:
    """A kernel and steps that show something."""

    drawn: Drawn
    calls: tuple[Call, ...]
    kind: str
    bucket: str
    detail: str

    def smaller(self) -> Iterator[Reproducer]:
        """Copies with less in them: steps first."""
        for at in range(len(self.calls)):
            yield replace(self, calls=(*self.calls[:at], *self.calls[at + 1 :]))
        # Without its loops around it a statement may write equal values again and again.
        for drawn in self.drawn.smaller(dissolve=self.kind != "needless"):
            yield replace(self, drawn=drawn)


def shrunk(found: Reproducer, seed: int, seconds: float) -> Reproducer:
    """The smallest that leaving things out leads to within some time."""
    end = time.perf_counter() + seconds
    while True:
        for candidate in found.smaller():
            if time.perf_counter() > end:
                return found
            detail = shows(candidate, seed)
            if detail:
                found = replace(candidate, detail=detail)
                break
        else:
            return found


def shows(candidate: Reproducer, seed: int) -> str:
    """What a reproducer shows, if it is what it should show; else an empty text."""
    try:
        return _shows(candidate, candidate.drawn.make(), seed)
    except Exception:  # whatever it is, it is something else
        return ""


def _shows(candidate: Reproducer, kernel: lk.Kernel, seed: int) -> str:
    if candidate.kind in ("wrong", "schedule", "reference", "late", "compiler", "proof"):
        return _after_all_steps(candidate, kernel, seed)
    return _at_last_step(candidate, kernel, seed)


def _applied(kernel: lk.Kernel, calls: tuple[Call, ...]) -> lk.Kernel | None:
    for call in calls:
        try:
            kernel = call.apply(kernel)
        except Exception:
            return None
    return kernel


def _after_all_steps(candidate: Reproducer, plain: lk.Kernel, seed: int) -> str:
    kernel = _applied(plain, candidate.calls)
    if kernel is None:
        return ""
    cases = Truth(plain, seed).cases(kernel, _SIZES, fixed_by(candidate.calls))
    if candidate.kind == "reference":
        return reference_of(kernel, cases)
    if candidate.kind == "schedule":
        try:
            broken = try_to_break(kernel, cases, 1)
        except UnsupportedError:
            return ""
        return f"{broken.sizes}, {broken.way}: {broken.what}" if broken else ""
    try:
        program = kernel.program()
    except lk.LoopkitError as error:
        same = f"{type(error).__name__}: {blanked(error.why)}" == candidate.bucket
        late = candidate.kind == "late" and not is_owed(error, kernel)
        return str(error) if late and same else ""
    except Exception:
        return ""
    if candidate.kind == "late":
        return ""
    if candidate.kind == "proof":
        return _refuted(candidate, kernel)
    try:
        (binary,) = compile_all([program])
    except lk.CompileError as error:
        return f"{error.log}\n{program.source}" if candidate.kind == "compiler" else ""
    _, wrong = first_wrong(binary, cases, 1)
    if candidate.kind == "compiler" or wrong is None:
        return ""
    return f"{wrong.sizes}, {wrong.order}: {wrong.what}\n\n{program.source}"


def proof_bucket(finding: Finding) -> str:
    """What a proof's findings are counted under."""
    return finding.kind if finding.kind == "width" else f"{finding.kind}: {blanked(finding.what)}"


def _refuted(candidate: Reproducer, kernel: lk.Kernel) -> str:
    try:
        proof = prove(kernel)
    except Exception:
        return ""
    same = [f for f in proof.findings if proof_bucket(f) == candidate.bucket]
    return "\n".join(map(str, same)) + f"\n\n{kernel.cuda()}" if same else ""


def _at_last_step(candidate: Reproducer, plain: lk.Kernel, seed: int) -> str:
    """Crashes and needless refusals happen at the last step, or at lowering."""
    if candidate.kind == "needless" and has_dead_code(plain):
        return ""
    proving = candidate.kind == "crash" and candidate.bucket.startswith("proof ")
    at_lowering = proving or (
        candidate.kind == "crash" and candidate.bucket.startswith("lowering ")
    )
    calls = candidate.calls if at_lowering else candidate.calls[:-1]
    if not at_lowering and not candidate.calls:
        return ""
    before = _applied(plain, calls)
    if before is None:
        return ""
    unchecked = " unchecked " in candidate.bucket
    try:
        if proving:
            prove(before)
        elif at_lowering:
            before.program()
        else:
            last = candidate.calls[-1]
            kernel = last.apply(before, unchecked=unchecked)
            if unchecked:
                cases = Truth(plain, seed).cases(kernel, _SIZES, fixed_by(candidate.calls))
                try_to_break(kernel, cases, 1)
        return ""
    except lk.LoopkitError as error:
        if candidate.kind != "needless":
            return ""
        key = f"{last.transform} | {type(error).__name__} | {blanked(error.why)}"
        same = key == candidate.bucket and _is_needless(candidate, plain, before, error, seed)
        return str(error) if same else ""
    except UnsupportedError:
        return ""
    except Exception as error:
        crash = Crash(calls, None if at_lowering else candidate.calls[-1], error)
        return repr(error)[:2000] if candidate.bucket.endswith(crash.where) else ""


def _is_needless(
    candidate: Reproducer, plain: lk.Kernel, before: lk.Kernel, error: Exception, seed: int
) -> bool:
    witness = getattr(error, "witness", None)
    sizes = dict(witness.parameters) if witness else None
    try:
        kernel = candidate.calls[-1].apply(before, unchecked=True)
        cases = Truth(plain, seed).cases(kernel, _SIZES, fixed_by(candidate.calls), sizes)
        return bool(cases) and try_to_break(kernel, cases, 1, text=plain) is None
    except Exception:
        return False
