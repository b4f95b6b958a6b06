"""Verdicts and proofs as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, inline, output, table
from loopkit._display.style import ROLES

if TYPE_CHECKING:
    from loopkit._verify.verdict import Difference, Verdict
    from loopkit.codegen.proof.report import Finding, Proof, Trusted, Undecided

_ANSWERS = {"equal": "ok", "different": "refused", "undecided": "undecided"}


def _title(role: str, word: str, *parts: Part) -> Element:
    return element("div", inline(role, f"{ROLES[role].mark} {word}"), parts, class_="lk-title")


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
