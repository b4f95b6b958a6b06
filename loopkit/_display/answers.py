"""Results as HTML: errors with their witnesses, verdicts of comparisons, and proofs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, inline, marked, output, suggested, table
from loopkit._errors import Instance, LoopkitError, UndecidedError, Witness, WitnessError
from loopkit._kernel import Kernel

if TYPE_CHECKING:
    from loopkit._verify.verdict import Difference, Verdict
    from loopkit.codegen.proof.report import Finding, Proof, Trusted, Undecided


_ANSWERS = {"equal": "ok", "different": "refused", "undecided": "undecided"}


def _title(role: str, word: str, *parts: Part) -> Element:
    return element("div", marked(role, word), parts, class_="lk-title")


def verdict_html(verdict: Verdict) -> Element:
    """What was found of two kernels, and the first cell in which they differ."""
    title = _title(_ANSWERS[verdict.answer], verdict.answer)
    why = element("div", verdict.why, class_="lk-wrapped") if verdict.why else None
    return output(title, None if verdict.witness is None else _difference(verdict.witness), why)


def difference_html(difference: Difference) -> Element:
    """The first cell in which two kernels differ."""
    return output(_difference(difference))


def _difference(difference: Difference) -> Part:
    head, *_ = str(difference).splitlines()
    rows = [
        (inline("comment", "before"), element("code", difference.before)),
        (inline("comment", "after"), element("code", difference.after)),
    ]
    order = element("div", difference.order) if difference.order else None
    return [element("div", element("code", head)), table(("", "how it is computed"), rows), order]


def proof_html(proof: Proof) -> Element:
    """What was proven of a program; each finding with its case and its lines of the source."""
    took = inline("comment", f"{1e3 * proof.seconds:.0f} ms")
    if proof.ok:
        if_ = "if the data is as the kernel's text needs it:" if proof.trusted else ""
        title = _title("ok", "proven", " ", proof.kernel, " ", took, " ", if_)
        return output(title, [element("div", str(entry)) for entry in proof.trusted])
    role = "refused" if proof.refuted else "undecided"
    counts = f"{len(proof.findings)} found, {len(proof.undecided)} undecided"
    return output(_title(role, counts, " ", proof.kernel, " ", took), list(_entries(proof)))


def _entries(proof: Proof) -> Iterator[Element]:
    lines = proof.source.split("\n")
    entries: tuple[Finding | Undecided | Trusted, ...] = (*proof.findings, *proof.undecided)
    for entry in entries:
        yield element("pre", str(entry), class_="lk-wrapped")
        shown = [n for n in entry.lines if 0 < n <= len(lines)]
        rows = (element("span", lines[number - 1], data_n=number) for number in shown)
        yield element("pre", rows, class_="lk-source")


def error_html(error: LoopkitError) -> Element:
    """An error as one output: its message, and the witness as a table where there is one."""
    role = "undecided" if isinstance(error, UndecidedError) else "refused"
    lines = str(error).splitlines()
    head = lines.pop(0) if lines and not lines[0].startswith(" ") else ""
    title = _title(role, _spaced(type(error).__name__), element("code", head))
    witness = getattr(error, "witness", None)
    if not isinstance(witness, Witness):
        return output(title, element("pre", "\n".join(lines), class_="lk-wrapped"))
    lines = [line for line in lines if line not in witness.suggestions]
    suggestions = [*map(suggested, witness.suggestions)]
    text = element("pre", "\n".join(lines), class_="lk-wrapped")
    shown, kernel = _shown(error, witness)
    return output(title, text, shown, suggestions, kernel=kernel)


def case_html(error: WitnessError) -> Element:
    """What the message of a refusal does not show: its two instances as a picture, or a table."""
    if error.witness is None:
        return output()
    shown, kernel = _shown(error, error.witness)
    return output(shown, kernel=kernel)


def _shown(error: LoopkitError, witness: Witness) -> tuple[Part, Kernel | None]:
    picture, kernel = _picture(error) if isinstance(error, WitnessError) else (None, None)
    return (_case(witness) if picture is None else picture), kernel


def _picture(refusal: WitnessError | Witness) -> tuple[Part, Kernel | None]:
    """The two instances in their space, and the kernel that they are of; nothing for others."""
    try:
        drawn = replace(refusal.picture(), has_words=False)
        return drawn.element(), drawn.kernel
    except LoopkitError:
        return None, None


def _spaced(name: str) -> str:
    """``RaceError`` as ``race``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Error")).lower()


def witness_html(witness: Witness) -> Element:
    """One concrete case of why a schedule is wrong, drawn where it is one of a step."""
    title = element("div", inline("refused", witness.kind), class_="lk-title")
    picture, kernel = _picture(witness)
    suggestions = [*map(suggested, witness.suggestions)]
    return output(title, list(_case(witness)), picture, suggestions, kernel=kernel)


def witness_text(witness: Witness) -> str:
    """The same for terminals."""
    lines = [witness.kind]
    lines += [f"  {what:<8} {text}" for what, text in _facts(witness)]
    return "\n".join([*lines, *witness.suggestions])


def _facts(witness: Witness) -> Iterator[tuple[str, str]]:
    for what, instance in _instances(witness):
        yield what, str(instance)
    if witness.array is not None:
        index = ", ".join(map(str, witness.cell or ()))
        yield "cell", f"{witness.array}[{index}]" if index else witness.array
    if witness.parameters:
        yield "sizes", ", ".join(f"{name} = {n}" for name, n in witness.parameters.items())


def _instances(witness: Witness) -> list[tuple[str, Instance]]:
    found = [i for i in (witness.source, witness.sink) if i is not None]
    return list(zip(("first", "second") if len(found) == 2 else ("at",), found, strict=False))


def _case(witness: Witness) -> Iterator[Part]:
    """The two instances under each other, the cell, and the sizes."""
    instances = _instances(witness)
    inames = tuple(dict.fromkeys(name for _, i in instances for name in i.inames))
    if instances:
        rows = [_row(what, instance, inames) for what, instance in instances]
        yield table(("", "statement", *inames), rows, numbers=range(2, 2 + len(inames)))
    for what, text in _facts(witness):
        if what in ("cell", "sizes"):
            yield element("div", inline("comment", f"{what}  "), element("code", text))


def _row(name: str, instance: Instance, inames: tuple[str, ...]) -> tuple[Part, ...]:
    values = (str(instance.inames.get(iname, "")) for iname in inames)
    return inline("comment", name), element("code", instance.statement), *values
