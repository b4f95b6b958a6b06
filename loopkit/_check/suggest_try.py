"""Checks whether a suggested schedule is legal, within a budget."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pymbolic.primitives as prim

from loopkit import _budget
from loopkit._arguments import names_in, normal
from loopkit._budget import SpentError, within
from loopkit._cached import cached_property
from loopkit._change import Change, InstanceMap
from loopkit._check.checker import examine
from loopkit._check.violation import Aim, Side, Violation
from loopkit._errors import LoopkitError, UndecidedError
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import variable
from loopkit._history import Step
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._registry import transform_named
from loopkit.codegen.lower import lower


class OutOfTriesError(Exception):
    """The budget for suggestions is spent."""


@dataclass(frozen=True)
class Suggestion:
    """What would be legal: ``legal {what}: {calls}``; ``steps`` stand in place of the refused one.

    Advice that no transform carries out has no steps.  ``is_weak`` marks what
    gives up all that the step was for, ``is_special`` what is worth a word only where
    nothing better is known, ``is_tried`` what is known to be legal.
    """

    what: str
    steps: tuple[Step, ...] = ()
    is_weak: bool = False
    is_special: bool = False
    is_tried: bool = False

    def line(self) -> str:
        """The suggestion as the message shows it."""
        calls = "".join(step.call() for step in self.steps)
        return f"legal {self.what}" + (f": {calls}" if calls else "")


class Trials:
    """Tries steps on kernels, until their effort or a number of tries is over.

    ``asked`` is the kernel that the refused step made: what keeps it from being
    written out is no fault of a suggestion.
    """

    def __init__(self, effort: int, tries: int, asked: Kernel | None = None) -> None:
        self.effort = effort
        self.left = tries
        self.asked = asked

    def legal(self, kernel: Kernel, candidates: Iterable[Suggestion]) -> Iterator[Suggestion]:
        """Those of some candidates that are legal, tried one by one as they are asked for."""
        for candidate in candidates:
            if candidate.is_tried or self.is_legal(kernel, candidate.steps):
                yield replace(candidate, is_tried=True)

    def is_legal(self, kernel: Kernel, steps: Sequence[Step]) -> bool:
        """Whether no step is refused, and there still is code for the kernel after them."""
        found = self.found(kernel, steps) if steps else kernel
        return not isinstance(found, Refusal) and self.is_emitted(kernel, found)

    def found(self, kernel: Kernel, steps: Sequence[Step]) -> Kernel | Refusal:
        """The kernel after some steps, or the first refusal."""
        if self.left <= 0:
            raise OutOfTriesError
        self.left -= 1
        for step in steps:
            if self.effort <= 0:
                raise OutOfTriesError
            self.effort -= len(kernel.statements)
            tried = refused(kernel, step, Aim.TRY)
            if isinstance(tried, Refusal):
                if tried.is_spent:
                    self.effort -= _budget.TRIES_SPENT
                return tried
            kernel = tried
        return kernel

    def is_emitted(self, before: Kernel, after: Kernel) -> bool:
        """Whether there is code for a kernel; large ones pass.

        A hindrance that was there before, or that the refused step brings too, counts
        for nothing: sizes may be fixed later.
        """
        if len(after.statements) > _budget.TRIES_LOWERED:
            return True
        hindrance = _hindrance(after)
        if not hindrance or _hindrance(before):
            return True
        return self.asked is not None and _hindrance(self.asked) == hindrance


def _hindrance(kernel: Kernel) -> str:
    """Why a kernel cannot be written out; empty where it can."""
    try:
        # Not what the kernel remembers, which may have taken more.
        within(_budget.TRY, partial(lower, kernel))
    except LoopkitError as error:
        return error.why
    except SpentError:
        return "isl did not end"
    return ""


def refused(kernel: Kernel, step: Step, aim: Aim = Aim.TELL) -> Kernel | Refusal:
    """The kernel after a step, or why the step is refused."""
    function = inspect.unwrap(transform_named(step.transform))
    given = dict(step.arguments)
    options = given.pop("value_dict", {}) if step.transform == "fix_parameters" else {}
    try:
        options = {**options, **normal(function, given)}
        change: Change = within(_budget.TRY, partial(function, kernel, **options))
        lineage, found = examine(kernel, change, _budget.TRY, aim)
    except (SpentError, UndecidedError):
        return Refusal(kernel, step, None, (), is_spent=True)
    except Exception:
        # No such use of the transform, or a fault: nothing to suggest.
        return Refusal(kernel, step, None, ())
    if found:
        return Refusal(kernel, step, change, tuple(found))
    return change.kernel.with_(history=(*kernel.history, step), lineage=lineage)


@dataclass(frozen=True, eq=False)
class Refusal:
    """A step that is refused: ``violations`` is empty where it does not even apply.

    Sides of violations are instances of the kernel after the step; what is
    asked here is about the kernel before it.  ``is_spent`` says that nothing was
    decided, after a long search.
    """

    kernel: Kernel
    step: Step
    change: Change | None
    violations: tuple[Violation, ...]
    is_spent: bool = False

    @cached_property
    def given(self) -> Mapping[str, Any]:
        """The arguments of the step."""
        return dict(self.step.arguments)

    def names(self, argument: str) -> tuple[str, ...]:
        """The names that an argument of the step lists."""
        return names_in(self.given.get(argument, ()))

    @cached_property
    def is_open(self) -> bool:
        """Whether only data decide that it is refused."""
        return bool(self.violations) and not any(v.exact for v in self.violations)

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that violations are about."""
        names = (n for v in self.violations for n in (v.array, v.meant[0] if v.meant else None))
        return tuple(dict.fromkeys(n for n in names if n is not None))

    @cached_property
    def temporaries(self) -> tuple[str, ...]:
        """Those of them that are temporaries of the kernel before the step."""
        return tuple(a for a in self.arrays if a in self.kernel.temporary_by_name)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements before the step that violations are about, in order."""
        ids = {
            self.statement_of(side)
            for violation in self.violations
            for side in (violation.source, violation.other, violation.sink)
            if side is not None
        }
        return tuple(s for s in self.kernel.statements if s.id in ids)

    @cached_property
    def _maps(self) -> Mapping[str, InstanceMap]:
        return {m.new: m for m in self.change.instances} if self.change else {}

    def statement_of(self, side: Side) -> str | None:
        """The statement before the step that a side executes."""
        if side.at is None or side.at.statement is None:
            return side.origin
        step = self._maps.get(side.at.statement)
        return step.old if step is not None else side.at.statement

    def value(self, side: Side, iname: str) -> Expression | None:
        """The value of an iname of the kernel before, over the names of a violation."""
        if side.at is None or side.at.statement is None or self.change is None:
            return None
        named = {i: variable(i, side.at.label) for i in self.change.kernel.all_inames}
        step = self._maps.get(side.at.statement)
        values = step.values if step is not None else {}
        return substitute(values.get(iname, prim.Variable(iname)), named)

    @cached_property
    def is_race(self) -> bool:
        """Whether instances that run side by side are what is wrong."""
        return any(v.how in ("together", "blocks") for v in self.violations)

    @property
    def crosses_blocks(self) -> bool:
        """Whether different blocks touch one cell."""
        return any(v.how == "blocks" for v in self.violations)

    def inames(self, *, loops: bool = False) -> tuple[str, ...]:
        """The inames around all statements of violations, or only those that are loops."""
        near = self.statements or self.kernel.statements
        shared = frozenset.intersection(*(s.inames for s in near))
        tags = self.kernel.iname_tags
        return tuple(
            i
            for i in self.kernel.all_inames
            if i in shared and not (loops and i in tags and tags[i].is_parallel)
        )
