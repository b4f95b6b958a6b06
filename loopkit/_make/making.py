"""The state of a kernel under construction: the user's arguments, and the results of the passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from loopkit._arrays import Argument, TemporaryVariable
from loopkit._cached import cached_property
from loopkit._device_functions import OwnFunction, by_name
from loopkit._errors import InvalidArgumentError, SourcePosition, caret_at, counted
from loopkit._expression import accesses, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Domain, Kernel, Options, Statement, SubstitutionRule
from loopkit._make.domain_factors import Domains, Inames
from loopkit._make.free_names import RuleBook
from loopkit._make.given_data import Given
from loopkit._make.operation import ReductionOperation
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression, Record, Reduction
from loopkit._syntax.items import (
    RawAssignment,
    RawItem,
    RawNop,
    RawSubstitution,
    position_of_name,
)


class _Placed:
    """An instruction with the blocks around it."""

    item: RawAssignment | RawNop

    @cached_property
    def scoped(self) -> tuple[str, ...]:
        """The inames of the ``for`` blocks around it, outermost first."""
        return tuple(iname for _, inames in self.item.scopes for iname in inames)

    @property
    def given_inames(self) -> frozenset[str]:
        """The inames that ``for`` blocks and the option ``inames`` name."""
        return (self.item.inames or frozenset()).union(self.scoped)

    def position_of(self, name: str) -> SourcePosition:
        """Where ``name`` stands in the text."""
        return position_of_name(self.item, name)


@dataclass(eq=False)
class Held:
    """A temporary that reductions of a draft read, which is written in loops over ``inames``.

    ``writers`` are the statements that write it.
    """

    name: str
    inames: frozenset[str]
    writers: tuple[Draft, ...]


@dataclass(eq=False)
class Draft(_Placed):
    """One instruction on its way to a statement; ``item`` says all that stays as it was written.

    ``inames`` grows until it holds all loops around the statement, ``resolved`` are the ids that
    ``dep`` patterns name, ``reductions`` are all that its expressions hold, outer ones first, and
    ``whole`` is the one that its right side is, or that the rule holds which is used there.
    ``held`` are temporaries that only reductions read, over loops in which they have their values.
    """

    id: str
    item: RawAssignment
    lhs: Expression
    rhs: Expression
    predicates: tuple[Expression, ...] = ()
    made_by: str | None = None
    names: frozenset[str] = frozenset()
    inames: frozenset[str] = frozenset()
    resolved: frozenset[str] = frozenset()
    reductions: tuple[Reduction, ...] = ()
    whole: Reduction | None = None
    held: tuple[Held, ...] = ()

    @cached_property
    def targets(self) -> tuple[Expression, ...]:
        """What it assigns to."""
        return targets_of(self.lhs)

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of what is written."""
        return frozenset(accesses(target)[0][0] for target in self.targets)

    @cached_property
    def reduced(self) -> frozenset[str]:
        """The inames that its reductions run over."""
        return frozenset(iname for r in self.reductions for iname in r.inames)


def targets_of(lhs: Expression) -> tuple[Expression, ...]:
    """The targets of an assignment: the parts of a record, or one."""
    return lhs.parts if isinstance(lhs, Record) else (lhs,)


@dataclass(eq=False)
class Nop(_Placed):
    """A marker in the order of statements, possibly the end of a launch."""

    id: str
    item: RawNop
    inames: frozenset[str] = frozenset()
    resolved: frozenset[str] = frozenset()
    reductions: tuple[Reduction, ...] = ()

    @property
    def ends_launch(self) -> bool:
        """Whether it is a grid-wide barrier."""
        return self.item.word == "gbarrier"


@dataclass(frozen=True, eq=False)
class Use:
    """One access: a statement, a name with indices, and the conditions under which it happens."""

    statement: Statement
    name: str
    indices: tuple[Expression, ...]
    guards: tuple[Expression, ...] = ()


@dataclass
class Uses:
    """How names are used: number of indices, kinds of uses, first writer, and all accesses."""

    axes: dict[str, int] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    in_indices: set[str] = field(default_factory=set)
    in_values: set[str] = field(default_factory=set)
    beside_inames: set[str] = field(default_factory=set)
    accesses: dict[str, list[Use]] = field(default_factory=dict)

    def add(self, use: Use) -> None:
        """Record one access."""
        known = self.axes.setdefault(use.name, len(use.indices))
        if known != len(use.indices):
            raise InvalidArgumentError(
                f"'{use.name}' is used with {known} and with "
                f"{counted(len(use.indices), 'index', 'indices')}",
                asked=caret_at(use.statement.position),
                instead="an array is always used with all its indices",
            )
        self.accesses.setdefault(use.name, []).append(use)
        self.in_indices.update(*map(variable_names, use.indices))


class _Found:
    """The results of the passes, in the order in which they are computed.

    ``domains`` and ``known`` are the domains and assumptions, ``results`` the arrays that called
    kernels write, ``called_inames`` the inames of their loops, and ``due`` the types that they
    require of arrays.  ``names`` are all names in use, ``ids`` those of instructions.  ``expanded``
    is the kernel without its rules, from which its arguments were inferred, and ``inferred`` are
    the arrays whose shapes follow from their accesses.
    """

    domains: Domains
    known: Domain
    called_inames: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    due: tuple[tuple[str, Any, str], ...] = ()
    book: RuleBook
    names: set[str]
    ids: set[str]
    drafts: list[Draft | Nop]
    temporaries: dict[str, TemporaryVariable]
    inames: Inames
    kernel: Kernel
    expanded: Kernel
    uses: Uses
    args: list[Argument]
    inferred: frozenset[str]


@dataclass(eq=False)
class Making(_Found):
    """A kernel under construction.

    The fields are the user's arguments.  Passes change some of them: ``items`` becomes a text
    without calls of kernels, with canonical names, and one index for each axis; ``functions`` are
    the C functions among the ``given_functions``.
    """

    name: str
    items: Sequence[RawItem]
    given_domains: Any
    given: Given
    fixed: Mapping[str, int]
    assumptions: Any = None
    dtypes: dict[str, Any] = field(default_factory=dict)
    substitutions: tuple[SubstitutionRule, ...] = ()
    default_order: str = "C"
    options: Options = Options()
    reductions: tuple[ReductionOperation, ...] = ()
    functions: tuple[OwnFunction, ...] = ()
    given_functions: Any = ()
    owes_bounds: bool = False

    @property
    def declared(self) -> set[str]:
        """The names that are declared outside of the text."""
        return self.given.names.union(self.dtypes)

    @property
    def operations(self) -> Mapping[str, ReductionOperation]:
        """The reduction operations that the text may use."""
        return operations_of(self.reductions)

    @property
    def callable(self) -> set[str]:
        """The names of reductions and of functions in C."""
        return {*self.operations, *by_name(self.functions)}

    def position_of(self, name: str) -> SourcePosition | None:
        """The position of a name's first occurrence in the text."""
        for item in self.items:
            if isinstance(item, (RawAssignment, RawSubstitution)):
                position = position_of_name(item, name)
                if position is not item.position:
                    return position
        return None
