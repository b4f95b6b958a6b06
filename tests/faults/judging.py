"""What becomes of a fault: is it one, is the schedule accepted without it, who catches it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from seams import Proof, prove

import loopkit as lk
from faults.evidence import wrong_instances, wrong_run
from faults.planting import FAULTS, Fault, planted

CHECKER, PROOF, LOWERING = "the checker", "the proof", "lowering"


@dataclass(frozen=True)
class Verdict:
    """``sound``: what is wrong without the fault; ``evidence``: what is wrong with it.

    ``caught`` says by whom, and with which words; None where the fault slips through.
    ``equal`` tells whether ``verify`` takes the kernels with and without it for equal.
    """

    sound: str | None
    evidence: str | None
    caught: tuple[str, str] | None
    equal: bool = False


def judge(name: str) -> Verdict:
    """Plant a fault, and see."""
    one = FAULTS[name]
    return _judge_transform(one) if one.step is not None else _judge_lowering(one)


def refusal(fault: Fault, before: lk.Kernel) -> str | None:
    """Why the checker refuses the step, in one line; None where it accepts it.

    An error that is none of the checker's is no refusal.
    """
    assert fault.step is not None
    try:
        fault.step.apply(before)
    except (lk.IllegalTransformError, lk.OutOfBoundsError, lk.UndecidedError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    except Exception:
        if fault.step.apply(before, unchecked=True) is None:
            raise
    return None


def asked_before(kernel: lk.Kernel) -> lk.Kernel:
    """The kernel after a step that changes nothing: all is proven of it that there is to prove."""
    array = next(a for a in kernel.args if isinstance(a, lk.ArrayArg))
    return lk.add_dtypes(kernel, {array.name: array.dtype})


def taken_for_equal(before: lk.Kernel, after: lk.Kernel) -> bool:
    """Whether ``verify``, which has not seen the step, says that nothing has changed."""
    try:
        return bool(lk.verify(before, after))
    except lk.InvalidArgumentError:
        return False


def unproven(proof: Proof) -> str | None:
    """The first finding of a proof, else what it leaves open, in one line."""
    for one in (*proof.findings, *proof.undecided):
        return " ".join(str(one).split())
    return None


def _judge_transform(fault: Fault) -> Verdict:
    assert fault.step is not None
    before = fault.before()
    sound = refusal(fault, before)
    if sound is None:
        sound = _wrong(fault, before, fault.step.apply(before))
    asked = asked_before(before)  # its own step is without the fault
    with planted(fault.name):
        faulty = fault.step.apply(before, unchecked=True)
        why = refusal(fault, before)
        again = refusal(fault, asked) if why is not None else None
        accepted = fault.step.apply(before) if why is None and fault.then is not None else None
    caught = None if why is None else (CHECKER, why)
    assert (why is None) == (again is None), f"accepted after a step that changes nothing: {why}"
    if caught is None and fault.then is None:
        with planted(fault.name):
            caught = _by_the_program(faulty.with_(name=faulty.name))
    if fault.then is not None:
        faulty = fault.then.apply(faulty, unchecked=True)
        if accepted is not None:
            why = refusal(dataclasses.replace(fault, step=fault.then), accepted)
            caught = None if why is None else (CHECKER, why)
    evidence = _wrong(fault, before, faulty)
    return Verdict(sound, evidence, caught, taken_for_equal(before, faulty))


def _by_the_program(kernel: lk.Kernel) -> tuple[str, str] | None:
    """Who catches what is wrong with a program that the checker lets be made."""
    try:
        proof = prove(kernel)
    except lk.RaceError as error:
        return LOWERING, " ".join(str(error).split())
    return (PROOF, unproven(proof) or "") if proof.findings else None


def _wrong(fault: Fault, before: lk.Kernel, after: lk.Kernel) -> str | None:
    """What a kernel gets wrong for the sizes of a fault."""
    if fault.evidence is not None:
        return fault.evidence(after)
    if fault.by_running:
        plain = fault.kernel()
        return _first(
            wrong_run(plain, after, sizes, fault.values, sanitize=fault.sanitize)
            for sizes in fault.sizes
        )
    return _first(wrong_instances(before, after, sizes) for sizes in fault.sizes)


def _judge_lowering(fault: Fault) -> Verdict:
    kernel = fault.before()
    plain = fault.kernel()
    sound = unproven(prove(kernel, fault.strided)) or _first(
        wrong_run(plain, kernel, sizes, fault.values) for sizes in fault.sizes
    )
    with planted(fault.name):
        faulty = kernel.with_(name=kernel.name)
        try:
            faulty.program()
            proof = prove(faulty, fault.strided)
        except lk.LoopkitError as error:
            return Verdict(sound, "not lowered", (LOWERING, " ".join(str(error).split())))
        program = faulty.program(fault.strided)
    if fault.evidence is not None:
        assert fault.evidence(kernel) is None
        evidence = fault.evidence(faulty)
    else:
        evidence = _first(
            wrong_run(plain, faulty, sizes, fault.values, sanitize=fault.sanitize)
            for sizes in fault.sizes
        )
    assert program != kernel.program(fault.strided), "the fault does not show in the program"
    return Verdict(sound, evidence, (PROOF, unproven(proof) or "") if proof.findings else None)


def _first(found: Iterable[str | None]) -> str | None:
    return next((text for text in found if text is not None), None)
