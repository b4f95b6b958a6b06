"""From text to a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import islpy as isl

from loopkit import _arguments as kind
from loopkit._arguments import values_of
from loopkit._arrays import Argument, ArrayArg, TemporaryVariable
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    SourcePosition,
    UnknownNameError,
    caret_at,
)
from loopkit._expression import accesses, substitute, variable_names
from loopkit._kernel import Domain, Kernel, Options, Statement, SubstitutionRule
from loopkit._make.arguments import (
    Given,
    Uses,
    apply_dtypes,
    check_assumptions,
    check_sizes,
    find_uses,
    is_integer,
    make_arguments,
    read_dtypes,
    read_kernel_data,
)
from loopkit._make.bounds import check_in_bounds
from loopkit._make.check_types import check_types
from loopkit._make.data import as_expression
from loopkit._make.domains import Domains, make_assumptions, make_domains
from loopkit._make.drafts import Draft, Drafting, Nop, check_scopes, check_supported
from loopkit._make.infer import infer_known_types
from loopkit._make.initialized import check_initialized
from loopkit._make.names import RuleBook
from loopkit._make.operations import ReductionOperation, operations_of
from loopkit._make.order import in_order
from loopkit._make.reductions import Splitter
from loopkit._make.scopes import Inames, Nest, check_sources, find_inames
from loopkit._make.sense import check_sense
from loopkit._make.shapes import Shapes
from loopkit._promotion import FUNCTIONS
from loopkit._rules import check_rules, expand_rules
from loopkit._spelling import check_kernel_name, shown
from loopkit._syntax import (
    RawAssignment,
    RawItem,
    RawNop,
    RawSubstitution,
    parse_instructions,
    position_of_name,
)
from loopkit._tree import Entry, build


@fitting
@in_turn
def make_kernel(
    domains: str | isl.Set | Iterable[Any],
    instructions: str | Iterable[Any],
    kernel_data: Any = None,
    *,
    name: str = "kernel",
    assumptions: Any = None,
    dtypes: Mapping[str, Any] | None = None,
    fixed_parameters: Mapping[str, int] | None = None,
    default_order: str = "C",
    default_offset: Any = 0,
    options: Options | Mapping[str, Any] | None = None,
    substitutions: Iterable[SubstitutionRule] = (),
    temporary_variables: Iterable[TemporaryVariable] | Mapping[str, TemporaryVariable] = (),
    reductions: Iterable[ReductionOperation] = (),
) -> Kernel:
    """A kernel from what it computes.

    Parameters
    ----------
    domains
        Sets of iname values in isl's notation, ``"{ [i, j]: 0 <= i < n and 0 <= j <= i }"``,
        or a list of such strings or isl sets.
    instructions
        The text, or a list of lines: assignments, declarations, ``for``, ``if`` and ``with``
        blocks, substitution rules.
    kernel_data
        Arguments and temporaries in order: ``GlobalArg``, ``ValueArg``, ``TemporaryVariable``,
        names, and ``...`` for all that is to be inferred. Left out, everything is inferred.
    name
        The name of the generated function.
    assumptions
        What holds for the sizes, ``"n, m >= 1 and n mod 16 = 0"``; checked at every call.
    dtypes
        Types by name: ``{"a, b": "float32"}``.
    fixed_parameters
        Sizes that are constants.
    default_order, default_offset
        The layout (``"C"`` or ``"F"``) and offset of arrays that do not say otherwise.
    options
        :class:`Options`, or a mapping of its fields.
    substitutions
        More substitution rules.
    temporary_variables
        More temporaries.
    reductions
        Operations made by :func:`register_reduction`.
    """
    check_kernel_name(name)
    if not isinstance(default_order, str) or default_order not in ("C", "F"):
        raise InvalidArgumentError(f"default_order is 'C' or 'F', not {shown(default_order)}")
    return _Maker(
        _items(instructions),
        make_domains(domains, _fixed(fixed_parameters)),
        read_kernel_data(kernel_data, temporary_variables),
        _fixed(fixed_parameters),
        values_of("reductions", reductions, ReductionOperation),
    ).kernel(
        name,
        assumptions,
        read_dtypes(dtypes),
        values_of("substitutions", substitutions, SubstitutionRule),
        default_order,
        as_expression(default_offset, "default_offset"),
        _options(options),
    )


def _fixed(given: Mapping[str, int] | None) -> dict[str, int]:
    if given is None:
        return {}
    values: dict[str, int] = kind.integers_by_name("fixed_parameters", given)
    return values


def _options(given: Options | Mapping[str, Any] | None) -> Options:
    if given is None:
        return Options()
    if isinstance(given, Options):
        return given
    if not isinstance(given, Mapping):
        raise kind.unfit("options", "an Options or a mapping of its fields", given)
    for key in given:
        if key not in Options.__dataclass_fields__:
            raise UnknownNameError("option", shown(key), Options.__dataclass_fields__)
    return Options(**given)


def _items(instructions: str | Iterable[Any]) -> list[RawItem]:
    if isinstance(instructions, str):
        return list(parse_instructions(kind.program("instructions", instructions)))
    lines: list[str] = []
    items: list[RawItem] = []
    for entry in kind.items("instructions", instructions, "text or a list of lines"):
        if isinstance(entry, (RawAssignment, RawNop, RawSubstitution)):
            items.append(entry)
        else:
            lines.append(kind.program("an instruction", entry))
    return [*items, *parse_instructions("\n".join(lines))]


class _Maker:
    def __init__(
        self,
        items: list[RawItem],
        domains: Domains,
        given: Given,
        fixed: dict[str, int],
        reductions: tuple[ReductionOperation, ...],
    ) -> None:
        self.items = items
        self.domains = domains
        self.given = given
        self.fixed = fixed
        self.reductions = reductions
        self.operations = dict(operations_of(reductions))

    def kernel(
        self,
        name: str,
        assumptions: Any,
        dtypes: dict[str, Any],
        substitutions: tuple[SubstitutionRule, ...],
        default_order: str,
        default_offset: Any,
        options: Options,
    ) -> Kernel:
        known = make_assumptions(assumptions, self.domains.condition, self.fixed)
        book = self._rules(substitutions)
        drafts, temporaries = self._drafts(book)
        inames = Inames(self.domains, temporaries)
        sources = find_inames([d for d in drafts if isinstance(d, Draft)], inames, temporaries)
        statements, entries = self._split(in_order(drafts, inames, temporaries), inames)
        check_sources(sources, dict(entries))
        temporaries.update((a.name, a) for a in self.accumulators)
        kernel = Kernel(
            name=name,
            domains=self.domains.domains,
            statements=statements,
            args=(),
            temporaries=tuple(temporaries.values()),
            tree=build(entries),
            assumptions=known,
            substitutions=book.kept,
            options=options,
            reductions=self.reductions,
        )
        expanded = expand_rules(kernel)
        names = inames.order.keys()
        check_sense(expanded.statements, names)
        uses = find_uses(expanded.statements, names)
        tiles = {n for t in temporaries.values() for s in t.shape for n in variable_names(s)}
        args = make_arguments(
            self.given,
            uses,
            self._sizes(known, temporaries),
            names,
            temporaries,
            self._position_of,
            default_order,
            default_offset,
            {*dtypes, *tiles},
        )
        apply_dtypes(dtypes, args, temporaries, names)
        check_sizes(self.domains.parameters, args)
        mentioned = {*self.domains.parameters, *uses.axes, *uses.in_indices, *tiles}
        mentioned.update(n for n in self.given.order if n is not None)
        check_assumptions(known.parameters, args, temporaries, names, mentioned)
        inferred = self._shape(expanded, inames, uses, args, temporaries)
        # Shapes that were declared may have named sizes that are fixed.
        args = [a for a in args if a.name not in self.fixed]
        kernel = replace(kernel, args=tuple(args), temporaries=tuple(temporaries.values()))
        declared = {d.name for d in (*args, *temporaries.values()) if d.dtype is not None}
        kernel = infer_known_types(kernel)
        kernel = replace(kernel, args=check_initialized(kernel))
        check_in_bounds(kernel, frozenset(uses.accesses) - inferred)
        check_types(kernel, declared)
        return kernel

    # {{{ rules and drafts

    def _rules(self, more: Sequence[SubstitutionRule]) -> RuleBook:
        rules = {rule.name: rule for rule in more}
        for item in self.items:
            if isinstance(item, RawSubstitution):
                if item.name in rules:
                    raise ParseError(
                        f"there are two substitution rules '{item.name}'",
                        position=position_of_name(item, item.name),
                    )
                rules[item.name] = SubstitutionRule(
                    item.name, item.arguments, self._fix(item.expression)
                )
        for name in rules:
            if name in self.domains.inames:
                raise InvalidArgumentError(f"'{name}' is an iname and a substitution rule")
            if name in FUNCTIONS or name in self.operations:
                raise InvalidArgumentError(
                    f"the substitution rule '{name}' hides a function of the same name",
                    instead="give the rule another name",
                )
        check_rules(rules)
        return RuleBook(rules, frozenset(self.operations))

    def _fix(self, expr: Any) -> Any:
        return substitute(expr, self.fixed) if self.fixed else expr

    def _drafts(self, book: RuleBook) -> tuple[list[Draft | Nop], dict[str, TemporaryVariable]]:
        items = self.items
        if self.fixed:
            items = [self._fixed_item(i) for i in items]
        assigned = [i for i in items if isinstance(i, RawAssignment)]
        taken = {*self.domains.inames, *self.domains.parameters, *book.rules, *self.given.arguments}
        taken.update(n for n in self.given.order if n is not None)
        for item in assigned:
            taken |= _names_of(item)
        for rule in book.rules.values():
            taken |= variable_names(rule.expression)
        self.taken = taken
        drafting = Drafting(self.domains.inames, book, taken, self.operations)
        drafts = drafting.drafts(items)
        self.ids = drafting.ids
        real = [d for d in drafts if isinstance(d, Draft)]
        check_scopes(real, frozenset(self.domains.inames))
        check_supported(real, self.operations.keys())
        self._check_writes(real, book)
        return drafts, self._declared(real)

    def _fixed_item(self, item: RawItem) -> RawItem:
        if not isinstance(item, RawAssignment):
            return item
        for name in sorted(_arrays_in(item) & self.fixed.keys()):
            raise InvalidArgumentError(
                f"fixed_parameters gives a value to '{name}', which is an array or written",
                asked=caret_at(item.position),
                instead="fixed parameters are sizes",
            )
        return replace(
            item,
            lhs=self._fix(item.lhs),
            rhs=self._fix(item.rhs),
            predicates=tuple(self._fix(p) for p in item.predicates),
        )

    def _check_writes(self, drafts: Sequence[Draft], book: RuleBook) -> None:
        inames = frozenset(self.domains.inames)
        for draft in drafts:
            if draft.written in inames:
                what = "an iname"
            elif draft.written in book.rules:
                what = "a substitution rule"
            elif draft.written in self.domains.parameters and draft.item.declared is None:
                if any(d.written == draft.written and d.item.declared is not None for d in drafts):
                    continue
                if draft.written in self.given.temporaries:
                    continue
                what = "a size of a domain"
            else:
                continue
            raise ParseError(
                f"'{draft.written}' is {what} and cannot be assigned to",
                position=draft.position_of(draft.written),
                instead=f"'<> {draft.written} = ...' declares a temporary that bounds may use"
                if what == "a size of a domain"
                else "",
            )

    def _declared(self, drafts: Sequence[Draft]) -> dict[str, TemporaryVariable]:
        """The temporaries, in order of declaration; shapes are still missing."""
        temporaries = dict(self.given.temporaries)
        for draft in drafts:
            if draft.item.declared is None:
                continue
            name = draft.written
            dtype = None if draft.item.declared == "auto" else draft.item.declared
            if name in self.given.order:
                raise ParseError(
                    f"'{name}' is declared as a temporary here and as an argument in kernel_data",
                    position=draft.position_of(name),
                )
            before = temporaries.get(name)
            if before is None:
                temporaries[name] = TemporaryVariable(name, dtype, made_by=draft.made_by)
            elif dtype is not None and before.dtype is not None and before.dtype != dtype:
                raise ParseError(
                    f"'{name}' is declared as {dtype} here and as {before.dtype} before",
                    position=draft.position_of(name),
                )
            elif dtype is not None:
                temporaries[name] = replace(before, dtype=dtype)
        return temporaries

    # }}}

    def _split(
        self, drafts: Sequence[Draft], inames: Inames
    ) -> tuple[tuple[Statement, ...], list[Entry]]:
        numbers = count(1)
        splitter = Splitter(inames, self.operations, self.taken, self.ids, numbers)
        parts = [(draft, splitter.split(draft)) for draft in drafts]
        nest = Nest(inames, numbers)
        entries: list[Entry] = []
        for draft, them in parts:
            path = nest.path(draft)
            entries += [(part.statement.id, (*path, *part.loops)) for part in them]
        self.accumulators = splitter.accumulators
        return tuple(p.statement for _, them in parts for p in them), entries

    def _sizes(self, assumptions: Domain, temporaries: Mapping[str, Any]) -> list[str]:
        used = frozenset().union(*(d.parameters for d in self.domains.domains))
        sizes = [p for p in self.domains.parameters if p not in temporaries]
        sizes += sorted((assumptions.parameters | used) - set(sizes) - set(temporaries))
        inames = set(self.domains.inames)
        return [s for s in sizes if s not in inames]

    def _position_of(self, name: str, statement: str) -> SourcePosition | None:
        for item in self.items:
            if isinstance(item, (RawAssignment, RawSubstitution)):
                position = position_of_name(item, name)
                if position is not item.position:
                    return position
        return None

    def _shape(
        self,
        expanded: Kernel,
        inames: Inames,
        uses: Uses,
        args: list[Argument],
        temporaries: dict[str, TemporaryVariable],
    ) -> frozenset[str]:
        """Fill in shapes; returns the names of arrays whose shape follows from their accesses."""
        inferred: set[str] = set()
        shapes: Shapes | None = None
        integers = [a.name for a in args if is_integer(a)]
        for position, argument in enumerate(args):
            if isinstance(argument, ArrayArg):
                if argument.shape is None and argument.name in uses.accesses:
                    shapes = shapes or Shapes(expanded, inames, temporaries, integers)
                    shape = shapes.shape_of(argument.name, uses.accesses[argument.name])
                    argument = replace(argument, shape=shape)
                    inferred.add(argument.name)
                if self.fixed and argument.shape is not None:
                    argument = replace(argument, shape=tuple(self._fix(s) for s in argument.shape))
                args[position] = argument
        for name, temporary in temporaries.items():
            axes = uses.axes.get(name)
            if axes and (name in self.given.unshaped or not temporary.shape):
                shapes = shapes or Shapes(expanded, inames, temporaries, integers)
                shape = shapes.shape_of(name, uses.accesses[name])
                temporaries[name] = replace(temporary, shape=shape)
                inferred.add(name)
            elif axes is not None and len(temporary.shape) != axes:
                raise InvalidArgumentError(
                    f"'{name}' is declared with {len(temporary.shape)} axes, "
                    f"but used with {axes} indices"
                )
            elif self.fixed:
                shape = tuple(self._fix(s) for s in temporary.shape)
                temporaries[name] = replace(temporary, shape=shape)
        return frozenset(inferred)


def _arrays_in(item: RawAssignment) -> frozenset[str]:
    """The names that have subscripts, and the one that is written."""
    found = [a for e in (item.lhs, item.rhs, *item.predicates) for a in accesses(e)]
    written = accesses(item.lhs)[0][0]
    return frozenset([written, *(name for name, indices in found if indices)])


def _names_of(item: RawAssignment) -> frozenset[str]:
    parts = (item.lhs, item.rhs, *item.predicates)
    return frozenset().union(*(variable_names(p) for p in parts))
