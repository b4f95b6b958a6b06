"""Collects findings and open questions, and limits the effort per question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import islpy as isl

from loopkit import _budget, _sets
from loopkit._budget import SpentError, at_most
from loopkit._points import smallest_point
from loopkit.codegen.proof.forms import NotAffineError
from loopkit.codegen.proof.report import KINDS, Finding, Place, Trusted, Undecided
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf


class Recorder:
    """Findings and open questions of one proof."""

    def __init__(self, operations: int = _budget.PROGRAM_QUESTION) -> None:
        self.operations = operations
        self._findings: dict[Finding | tuple[object, ...], Finding] = {}
        self._undecided: dict[Undecided, None] = {}
        self._trusted: dict[Trusted, None] = {}

    def found(self, finding: Finding) -> None:
        """Note something wrong; the same thing at the same lines once."""
        key = (finding.kind, finding.lines, finding.array)
        self._findings.setdefault(key, finding)

    def wrong(
        self,
        kind: str,
        what: str,
        line: int,
        statement: str | None = None,
        *,
        array: str | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Record an error of a line that does not depend on the thread or iteration."""
        self.found(Finding(kind, what, Place(line, statement), array=array, sizes=sizes or {}))

    def open(
        self, kind: str, what: str, leaves: Sequence[Leaf] = (), line: int | None = None
    ) -> None:
        """Note what could not be proven."""
        lines = dict.fromkeys(leaf.line for leaf in leaves) if line is None else (line,)
        statements = dict.fromkeys(leaf.statement for leaf in leaves if leaf.statement)
        self._undecided[Undecided(kind, what, tuple(lines), tuple(statements))] = None

    def trust(self, what: str, data: Iterable[str], leaf: Leaf) -> None:
        """Record an assumption that is taken from the kernel's text, and the data it depends on."""
        statements = (leaf.statement,) if leaf.statement else ()
        self._trusted[Trusted(what, tuple(data), (leaf.line,), statements)] = None

    def include(self, other: Recorder, shift: int) -> None:
        """Note all that was found about a launch whose text begins ``shift`` lines further down."""

        def moved(place: Place | None) -> Place | None:
            return None if place is None else replace(place, line=place.line + shift)

        for finding in other.findings:
            first, second = moved(finding.first), moved(finding.second)
            self.found(replace(finding, first=first, second=second))
        for open_ in other.undecided:
            self._undecided[replace(open_, lines=tuple(n + shift for n in open_.lines))] = None
        for trusted in other.trusted:
            self._trusted[replace(trusted, lines=tuple(n + shift for n in trusted.lines))] = None

    @contextmanager
    def question(self, kind: str, what: str, *leaves: Leaf) -> Iterator[None]:
        """Run a check that may exceed its budget, which leaves the question open."""
        try:
            with at_most(self.operations):
                yield
        except SpentError:
            self.open(kind, f"{what}: isl needs more than {self.operations} operations", leaves)
            if self.operations > _budget.PROGRAM_QUESTION_LATER:
                # One hard question may take its time; many of them may not.
                self.operations //= 2
        except NotAffineError as error:
            self.open(kind, f"{what}: {shown(error.node)} is not affine", leaves)

    def point(self, domain: isl.Set, names: Iterable[str]) -> dict[str, int]:
        """The smallest point of a set that is not empty, by ``names`` in their order.

        Names that may have any value are 0.
        """
        used, known = _sets.involved_names(domain), set(_sets.names_of(domain))
        wanted = [n for n in dict.fromkeys(names) if n in known]
        order = [n for n in wanted if n in used]
        domain = _sets.project_onto(domain, order)
        try:
            with at_most(self.operations):
                found = smallest_point(domain, order) or {}
        except (SpentError, isl.Error):
            # There is no smallest, or it is hard to find.
            with at_most(self.operations):
                found = _sets.sample(domain)
        return {**dict.fromkeys(wanted, 0), **found}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, by kind and line."""
        return tuple(sorted(self._findings.values(), key=lambda f: (KINDS.index(f.kind), f.lines)))

    @property
    def trusted(self) -> tuple[Trusted, ...]:
        """All that is taken from the kernel's text, by line."""
        return tuple(sorted(self._trusted, key=lambda t: (t.lines, t.what)))

    @property
    def undecided(self) -> tuple[Undecided, ...]:
        """All open questions, by kind and line."""
        return tuple(sorted(self._undecided, key=lambda u: (KINDS.index(u.kind), u.lines)))


class Check:
    """Something that is proven of a program."""

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        self.subject = subject
        self.recorder = recorder

    def point(self, domain: isl.Set, *names: str) -> dict[str, int]:
        """The smallest point of a set: sizes first, then hardware indices, then ``names``."""
        return self.recorder.point(domain, (*self.subject.sizes, *self.subject.words, *names))

    def found(
        self,
        kind: str,
        what: str,
        leaf: Leaf,
        point: Mapping[str, int],
        *,
        second: Place | None = None,
        array: str | None = None,
        cell: tuple[int, ...] | None = None,
    ) -> None:
        """Note what is wrong with a line where names have the values of a point."""
        first, sizes = self.subject.place(leaf, point), self.subject.sizes_at(point)
        self.recorder.found(Finding(kind, what, first, second, array, cell, sizes))
