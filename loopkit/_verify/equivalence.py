"""The driver of ``verify``: tries to prove a correspondence, otherwise looks for a difference."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import islpy as isl

from loopkit import _budget
from loopkit._budget import SpentError, at_most
from loopkit._check.alias_check import overlaid
from loopkit._check.instance_maps import own_lineage
from loopkit._check.violation import Violation, smallest_case
from loopkit._check.violation_report import error_for
from loopkit._errors import UninitializedReadError
from loopkit._expression import to_text
from loopkit._intervals import of_dtype
from loopkit._kernel import Kernel
from loopkit._make.check_initialized import check_initialized
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Undecided, between, intersection
from loopkit._poly.rows import kernels_in_rows
from loopkit._replay.examples import Sizes
from loopkit._sets import conditions
from loopkit._tags import GroupAxis, InstructionParallel, LocalAuto, LocalAxis
from loopkit._verify import canonicalize
from loopkit._verify.agree import same_cells
from loopkit._verify.by_names import by_names, is_step, may_be_step
from loopkit._verify.comparable import prepared
from loopkit._verify.correspondence_proof import ProofResult, data_dependent_race, prove
from loopkit._verify.find_difference import look_for_difference, quick_difference
from loopkit._verify.kernel_view import KernelView
from loopkit._verify.out_of_bounds import out_of_bounds
from loopkit._verify.search import Search
from loopkit._verify.verdict import Difference, Verdict, in_words

_ATTEMPTS = 6
_CHEAP = 4
_WITNESSES = 12
_GIVE_UP = 2


def decide(before: Kernel, after: Kernel) -> Verdict:
    """What :func:`loopkit.verify` returns."""
    one, two, context = prepared(before, after)
    if one.options.fast_math != two.options.fast_math:
        which = "before" if one.options.fast_math else "after"
        return Verdict("undecided", f"only '{which}' permits approximate arithmetic (fast_math)")
    foreign = _operations(one, two)
    if foreign:
        return Verdict("undecided", foreign)
    case = _Comparison(one, two, context)
    if not (_holds_in_rows(one, two, context) or case.proven()):
        return case.refuted()
    outside = out_of_bounds(one, two)
    return Verdict("equal", _for_which(case)) if outside is None else outside


def _holds_in_rows(one: Kernel, two: Kernel, context: isl.Set) -> bool:
    """Whether kernels are equal that have the rows of flat arrays, where each has some."""
    told = kernels_in_rows([one, two])
    if told is None:
        return False
    mine, its = told
    return _Comparison(mine, its, context).proven()


def _operations(one: Kernel, two: Kernel) -> str:
    """Reductions of one name that are not the same operation."""
    mine, its = ({o.name: o for o in k.reductions} for k in (one, two))
    used = {s.operation for s in (*one.statements, *two.statements)}
    for name in sorted(used & (mine.keys() | its.keys()), key=str):
        if mine.get(str(name)) != its.get(str(name)):
            return f"the kernels mean different operations by '{name}'"
    return ""


def _for_which(case: _Comparison) -> str:
    """For which sizes and data the kernels are equal."""
    words = "every output cell has the same value"
    if not case.context.plain_is_universe():
        words += f" for all sizes with {to_text(conditions(case.context))}"
    assertions = sorted({a.text for k in (case.before, case.after) for a in k.assertions})
    if assertions:
        words += f", for data with {', '.join(assertions)}"
    return words


@dataclass(eq=False)
class _Comparison:
    """Two kernels over the same arguments, and the results about them so far."""

    before: Kernel
    after: Kernel
    context: isl.Set
    reasons: list[str] = field(default_factory=list)
    violations: list[tuple[Violation, Model, Model]] = field(default_factory=list)
    exhausted: bool = False
    glanced: bool = False
    difference: Difference | None = None

    def proven(self) -> bool:
        """Whether a correspondence was found and proven, in either direction."""
        if not all(map(self.keeps_storage, (self.before, self.after))):
            return False
        simple = [*map(_simple, (self.before, self.after))]
        has_sums = any(s.operation == "sum" for k in simple for s in k.statements)
        if self.proven_as_step() or (has_sums and self.proven_by_cells()):
            return True
        return self.proven_equal(simple) or (not has_sums and self.proven_by_cells())

    def proven_as_step(self) -> bool:
        """Whether one is proven to come from the other, whose statements have the same names."""
        for root, new in ((self.before, self.after), (self.after, self.before)):
            if not may_be_step(root, new):
                continue
            search = Search(KernelView(root), KernelView(new), self.context)
            with suppress(SpentError, Undecided), at_most(_budget.EQUIVALENCE):
                named = by_names(search, root)
                if named is not None and is_step(named, new) and self.has_one_meaning(root):
                    return True
        return False

    def proven_by_cells(self) -> bool:
        """Whether each cell has the same final value in both, as a term over initial values."""
        both = self.before, self.after
        with suppress(SpentError, Undecided, RecursionError), at_most(_budget.EQUIVALENCE):
            known = self.context & _within_types(self.before)
            return same_cells(*both, known) and all(map(self.has_one_meaning, both))
        return False

    def proven_equal(self, simple: Iterable[Kernel]) -> bool:
        """Whether two kernels that compute what the two do are proven equal."""
        one, two = sorted(simple, key=lambda kernel: (_parallel(kernel), len(kernel.statements)))
        mine, its = map(canonicalize.structure_key, (one, two))
        if not _parallel(one) and mine == its:
            return self.is_initialized(one)
        for root, new in ((one, two), (two, one)):
            try:
                with at_most(_budget.EQUIVALENCE // (2 if self.exhausted else 1)):
                    if self.proven_from(root, new):
                        return True
            except SpentError:
                self.exhausted = True
            except Undecided as open_:
                self.reasons.append(open_.why)
            if self.quick_difference():
                return False
        return False

    def keeps_storage(self, kernel: Kernel) -> bool:
        """Whether arrays that share storage leave each other's values alone."""
        text = model_of(kernel)
        try:
            with at_most(_budget.EQUIVALENCE):
                self.violations += [(found, text, text) for found in overlaid(kernel)]
        except SpentError:
            self.exhausted = True
        except Undecided as open_:
            self.reasons.append(open_.why)
            return False
        return not (self.violations or self.exhausted)

    def quick_difference(self) -> bool:
        """Whether a difference shows at the smallest sizes; looked for only once."""
        if not self.glanced:
            self.glanced = True
            self.difference = quick_difference(Model(self.before), Model(self.after), self.context)
        return self.difference is not None

    def proven_from(self, root: Kernel, new: Kernel) -> bool:
        """Whether ``new`` is proven to be a schedule of ``root``."""
        search = Search(KernelView(root), KernelView(new), self.context)
        if self.attempted(search, root):
            return self.has_one_meaning(root)
        if search.farthest[1]:
            self.reasons.append(search.farthest[1])
        return False

    def attempted(self, search: Search, root: Kernel) -> bool:
        """Try correspondences one after the other."""
        attempts = 0
        named = by_names(search, root)
        if named is not None and prove(search.new.model, named).holds:
            return True
        for lineage, ordered in search.lineages(root):
            finding = prove(ordered, lineage)
            if finding.holds:
                return True
            self.note(finding, search.root.model, ordered)
            if self.quick_difference():
                return False
            attempts += 1 if finding.cheap else _CHEAP
            if attempts >= _ATTEMPTS * _CHEAP:
                break
        return False

    def has_one_meaning(self, kernel: Kernel) -> bool:
        """Whether a kernel's result is determined: no race, and no read of an uninitialised cell.

        A schedule that was not checked may have either.
        """
        if not self.is_initialized(kernel):
            return False
        text = model_of(kernel)
        finding = prove(Model(kernel), own_lineage(kernel))
        if finding.holds:
            finding = ProofResult(open=data_dependent_race(text))
        self.note(finding, text, text)
        return finding.holds

    def is_initialized(self, kernel: Kernel) -> bool:
        """Whether it reads no uninitialised cell, also in memory that lasts only for one launch."""
        try:
            check_initialized(kernel)
        except UninitializedReadError as error:
            self.reasons.append(error.why)
            return False
        return True

    def note(self, finding: ProofResult, root: Model, new: Model) -> None:
        """Record why a correspondence failed."""
        if finding.open:
            self.reasons.append(finding.open)
        self.violations += [(v, root, new) for v in finding.violations]

    def refuted(self) -> Verdict:
        """A difference if one is found, else why the question is undecided."""
        if self.difference is not None:
            return Verdict("different", "", self.difference)
        found = look_for_difference(
            Model(self.before), Model(self.after), self.context, self.witnesses()
        )
        if found.difference is not None:
            return Verdict("different", "", found.difference)
        outside = out_of_bounds(self.before, self.after)
        if outside is not None:
            return outside
        why = []
        if found.ambiguous:
            why.append(f"'before' has no one meaning: {found.ambiguous}")
        reason = self.reason()
        if self.exhausted:
            why.append(f"isl did not find a proof within {_budget.EQUIVALENCE:,} operations")
        if reason:
            why.append(f"no proof was found: {reason}")
        elif not self.exhausted:
            why.append("no statements of the two kernels correspond")
        if found.tried:
            ends = dict.fromkeys(map(in_words, (found.tried[0], found.tried[-1])))
            shown = " to ".join(filter(None, ends))
            why.append(f"no difference shows{f' at {shown}' if shown else ''}")
        elif found.hindrance:
            why.append(f"the kernels cannot be compared on examples: {found.hindrance}")
        return Verdict("undecided", "; ".join(why))

    def witnesses(self) -> list[Sizes]:
        """Sizes at which a correspondence fails."""
        found: list[Sizes] = []
        for number, (violation, root, new) in enumerate(self.violations[:_WITNESSES]):
            with suppress(SpentError, Undecided, isl.Error), at_most(_budget.EQUIVALENCE_WITNESS):
                if case := smallest_case(violation, root, new):
                    found.append(case.sizes)
            if number + 1 - len(found) == _GIVE_UP:
                break
        return found

    def reason(self) -> str:
        """Why the most promising correspondence failed, in words."""
        with suppress(SpentError, Undecided, isl.Error), at_most(_budget.EQUIVALENCE_WITNESS):
            for violation, root, new in self.violations[:1]:
                return error_for([violation], root, new).why.splitlines()[0]
        return self.reasons[0] if self.reasons else ""


def _within_types(kernel: Kernel) -> isl.Set:
    """That sizes are numbers of their types."""
    dtypes = {a.name: a.dtype for a in kernel.args if a.name in kernel.sizes}
    return intersection(between(n, *of_dtype(d)) for n, d in dtypes.items() if d is not None)


def _simple(kernel: Kernel) -> Kernel:
    """A kernel as the proof sees it."""
    return canonicalize.with_typed_constants(canonicalize.without_dead_statements(kernel))


def _parallel(kernel: Kernel) -> bool:
    kinds = (GroupAxis, LocalAxis, LocalAuto, InstructionParallel)
    return any(isinstance(tag, kinds) for _, tag in kernel.tags)
