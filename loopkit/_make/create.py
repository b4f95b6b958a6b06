"""From text to a kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

import islpy as isl

from loopkit import _arguments as kind
from loopkit import _budget
from loopkit._arguments import flag, values_of
from loopkit._arrays import Argument, ArrayArg, ConstantTable, TemporaryVariable
from loopkit._assertions.tables import facts_of_tables
from loopkit._budget import SpentError, in_turn, within
from loopkit._called import fitting
from loopkit._device_functions import DeviceFunction, by_name
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    SourcePosition,
    UndecidedError,
    check_known,
)
from loopkit._expression import accesses, substitute, variable_names
from loopkit._functions import FUNCTIONS
from loopkit._kernel import Kernel, Options, Statement, SubstitutionRule
from loopkit._launches import broken_launches
from loopkit._make import infer_arguments
from loopkit._make.breaks import with_flags
from loopkit._make.call_extents import extents_of_the_call
from loopkit._make.check_bounds import check_in_bounds, check_may_settle
from loopkit._make.check_initialized import check_initialized
from loopkit._make.check_sense import check_sense
from loopkit._make.check_types import check_types
from loopkit._make.disjoint_bits import with_sums_of_bits
from loopkit._make.domain_factors import make_assumptions
from loopkit._make.drafts import Draft, Drafting, Nop, check_names, targets_of
from loopkit._make.enclosing_loops import Inames, Nest, check_sources, find_inames
from loopkit._make.flat_subscripts import with_all_indices
from loopkit._make.free_names import RuleBook
from loopkit._make.given_data import Given, as_offset, read_kernel_data
from loopkit._make.kernel_functions import KernelFunction, check_dtypes, check_together
from loopkit._make.launch_conditions import check_launch_conditions
from loopkit._make.link import Linked, linked, with_due
from loopkit._make.needless_guards import without_needless_guards
from loopkit._make.numpy_names import in_own_words
from loopkit._make.operation import ReductionOperation
from loopkit._make.own_calls import (
    check_function_names,
    expressions_of,
    with_expressions,
    with_own_calls,
)
from loopkit._make.reduction_operations import operations_of
from loopkit._make.shapes import Shapes
from loopkit._make.shared_loops import with_parts
from loopkit._make.split_reductions import Splitter
from loopkit._make.statement_order import in_order
from loopkit._make.tagged_uses import check_tagged_uses, with_names_first
from loopkit._make.type_inference import infer_known_types
from loopkit._rules import check_rules, expand_rules
from loopkit._spelling import check_kernel_name, shown
from loopkit._syntax.instruction_parser import parse_instructions
from loopkit._syntax.items import (
    RawAssignment,
    RawBreak,
    RawItem,
    RawNop,
    RawSubstitution,
    position_of_name,
)
from loopkit._syntax.reduction_calls import with_segmented
from loopkit._tree import Entry, LaunchBarrier, Tree, build

D = TypeVar("D", ArrayArg, TemporaryVariable)


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
    functions: Iterable[DeviceFunction | KernelFunction] = (),
    owe_bounds: bool = False,
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
        The layout of arrays that do not say otherwise, ``"C"`` or ``"F"``, and their offset, 0 or
        ``"auto"``: arrays say themselves where they begin.
    options
        :class:`Options`, or a mapping of its fields.
    substitutions
        More substitution rules.
    temporary_variables
        More temporaries.
    reductions
        Operations made by :func:`register_reduction`.
    functions
        Functions made by :func:`register_callable`, those of one name overloads, and by
        :func:`make_function`: what these say is in the place of their calls.
    owe_bounds
        Leave the proof that accesses lie in their arrays to whatever makes code: ``assume`` and
        ``fix_parameters`` may still say that sizes are what they must be. Accesses that lie
        outside for all sizes are refused all the same. Sizes of domains need not be declared then.

    Returns
    -------
    Kernel
        The text's own schedule, with no step taken.

    Raises
    ------
    ParseError
        Where a text is malformed; the message points at the place.
    UnknownNameError
        For names that nothing declares.
    TypeInferenceError
        Where types do not fit.
    OutOfBoundsError
        Where an access leaves its array.
    UninitializedReadError
        Where a temporary is read that nothing has written.
    UndecidedError
        Where the sets of the text are too hard for isl.
    InvalidArgumentError
        For other arguments than these.
    """
    check_kernel_name(name)
    if not isinstance(default_order, str) or default_order not in ("C", "F"):
        raise InvalidArgumentError(f"default_order is 'C' or 'F', not {shown(default_order)}")
    as_offset(default_offset, "default_offset")  # it is 0, if it is anything
    fixed: dict[str, int] = {}
    if fixed_parameters is not None:
        fixed = kind.integers_by_name("fixed_parameters", fixed_parameters)
    given = read_kernel_data(kernel_data, temporary_variables)
    own = values_of("reductions", reductions, ReductionOperation)
    items = items_of(instructions)
    domains = [*domains] if isinstance(domains, Iterator) else domains

    def make() -> Kernel:
        text = linked(items, domains, given, fixed, assumptions, own, functions)
        return Maker(text, given, fixed).kernel(
            name,
            assumptions,
            with_due(infer_arguments.read_dtypes(dtypes), text, given),
            values_of("substitutions", substitutions, SubstitutionRule),
            default_order,
            _options(options),
            flag("owe_bounds", owe_bounds),
        )

    allowed = _budget.for_statements(_budget.CREATION, len(items))
    try:
        return within(allowed, make)
    except SpentError:
        raise UndecidedError(
            f"isl did not work out what the text touches within {allowed:,} operations",
            instead="fewer conditions that exclude values, or that say 'or', leave simpler sets",
        ) from None


def _options(given: Options | Mapping[str, Any] | None) -> Options:
    if given is None:
        return Options()
    if isinstance(given, Options):
        return given
    if not isinstance(given, Mapping):
        raise kind.unfit("options", "an Options or a mapping of its fields", given)
    check_known("option", given, Options.__dataclass_fields__)
    return Options(**given)


def items_of(instructions: str | Iterable[Any]) -> tuple[RawItem, ...]:
    """The items of a text, or of a list of lines."""
    if isinstance(instructions, str):
        return parse_instructions(kind.program("instructions", instructions))
    lines = kind.items("instructions", instructions, "text or a list of lines")
    return parse_instructions([kind.program("an instruction", line) for line in lines])


class Maker:
    """Makes a kernel: drafts of the text, statements in a tree, then arguments, shapes, types."""

    def __init__(self, text: Linked, given: Given, fixed: dict[str, int]) -> None:
        items: Sequence[RawItem] = text.items
        self.items = [_with_numbers(item, fixed) for item in items] if fixed else items
        if text.functions:
            self.items = [with_own_calls(item, by_name(text.functions)) for item in self.items]
        self.text = text
        self.domains = text.domains
        self.inames = frozenset(text.domains.inames)
        self.given = given
        self.fixed = fixed
        self.reductions = text.reductions
        self.functions = text.functions
        self.operations = operations_of(text.reductions)

    def kernel(
        self,
        name: str,
        assumptions: Any,
        dtypes: dict[str, Any],
        substitutions: tuple[SubstitutionRule, ...],
        default_order: str,
        options: Options,
        owes_bounds: bool,
    ) -> Kernel:
        known = make_assumptions(assumptions, self.domains.condition, self.fixed)
        declared = {*self.given.arguments, *self.given.temporaries, *dtypes}
        declared.update(name for name in self.given.order if name is not None)
        own = {*self.operations, *by_name(self.functions)}
        self.items, rules = in_own_words(self.items, substitutions, own, declared)
        self.items = with_names_first(self.items, declared.union(r.name for r in rules))
        self.items = with_all_indices(
            self.items, self.given, self.fixed, self.domains, known.set, default_order
        )
        self.items = with_sums_of_bits(self.items, self.domains.domains, known.set)
        book = self._rules(rules)
        taken = self._taken(book)
        drafting = Drafting(self.inames, book, taken, book.components)
        drafts = drafting.drafts(with_flags(self.items, taken))
        check_names(drafts, self.inames)
        temporaries = self._temporaries([d for d in drafts if isinstance(d, Draft)], book)
        inames = Inames(self.domains, temporaries)
        statements, tree = self._nested(drafts, drafting, inames, temporaries)
        kernel = Kernel(
            name=name,
            domains=self.domains.domains,
            statements=statements,
            args=(),
            temporaries=tuple(temporaries.values()),
            tree=tree,
            assumptions=known,
            substitutions=book.kept,
            options=options,
            reductions=self.reductions,
            functions=self.functions,
        )
        expanded = expand_rules(kernel)
        names = inames.order.keys()
        self._check_uses(expanded, book)
        own.update(book.rules)
        check_sense(expanded.statements, names, own, declared)
        uses = infer_arguments.find_uses(expanded.statements, names)
        args = infer_arguments.ArgumentMaker(
            self.given,
            uses,
            self.domains,
            known,
            temporaries,
            dtypes,
            self._position_of,
            default_order,
            self.fixed,
            owes_bounds,
        ).arguments()
        integers = [a.name for a in args if infer_arguments.is_integer(a)]
        shapes = Shapes(expanded, inames, temporaries, integers, owes_bounds)
        taken = {*drafting.taken, *(a.name for a in args)}
        least = extents_of_the_call(args, self.given.of_the_call, shapes, uses, taken)
        inferred = self._shape(shapes, uses, args, temporaries)
        # Shapes that were declared may have named sizes that are fixed.
        args = [a for a in args if a.name not in self.fixed]
        kernel = replace(
            kernel,
            args=tuple(args),
            temporaries=tuple(temporaries.values()),
            assumptions=replace(known, set=known.set & least),
            assertions=facts_of_tables(
                a for a in args if isinstance(a, ConstantTable) and a.name in uses.in_indices
            ),
        )
        check_function_names(kernel)
        check_tagged_uses(self.items, kernel, book.rules)
        check_launch_conditions(drafts, kernel)
        if broken := broken_launches(kernel):
            raise InvalidArgumentError(broken, instead="end the loop above '... gbarrier'")
        typed = {d.name for d in (*args, *temporaries.values()) if d.dtype is not None}
        kernel = infer_known_types(kernel)
        initialized = check_initialized(kernel, self.text.results)
        kernel = without_needless_guards(replace(kernel, args=initialized))
        if owes_bounds:
            check_may_settle(kernel, frozenset(uses.accesses))
            kernel = replace(kernel, owes_bounds=True)
        else:
            check_in_bounds(kernel, frozenset(uses.accesses) - inferred)
        check_types(kernel, typed, literals=not self.fixed)
        check_dtypes(kernel, self.text.due)
        return kernel

    def _rules(self, more: Sequence[SubstitutionRule]) -> RuleBook:
        rules = {rule.name: with_own_calls(rule, by_name(self.functions)) for rule in more}
        for item in self.items:
            if isinstance(item, RawSubstitution):
                if item.name in rules:
                    raise ParseError(
                        f"there are two substitution rules '{item.name}'",
                        position=position_of_name(item, item.name),
                    )
                rules[item.name] = SubstitutionRule(item.name, item.arguments, item.expression)
        for name in rules:
            if name in self.inames:
                raise InvalidArgumentError(f"'{name}' is an iname and a substitution rule")
            if name in FUNCTIONS or name in self.operations:
                raise InvalidArgumentError(
                    f"the substitution rule '{name}' hides a function of the same name",
                    instead="give the rule another name",
                )
        check_rules(rules)
        components = with_segmented({n: o.components for n, o in self.operations.items()})
        return RuleBook(rules, components, self.inames)

    def _check_uses(self, kernel: Kernel, book: RuleBook) -> None:
        """No rule that takes arguments is used without; ``kernel`` has its rules expanded."""
        due = {name: r.arguments for name, r in book.rules.items() if r.arguments}
        for statement in kernel.statements if due else ():
            for name in sorted(due.keys() & statement.names):
                raise ParseError(
                    f"'{name}' is a substitution rule, and is used without arguments",
                    position=statement.position,
                    instead=f"{name}({', '.join(due[name])}) is a use; what else is called "
                    f"'{name}' needs another name",
                )

    def _taken(self, book: RuleBook) -> set[str]:
        """All names that something has."""
        taken = {*self.inames, *self.domains.parameters, *book.rules, *self.given.arguments}
        taken.update(n for n in self.given.order if n is not None)
        expressions = [rule.expression for rule in book.rules.values()]
        for item in self.items:
            if isinstance(item, (RawAssignment, RawBreak)):
                expressions += expressions_of(item)
        return taken.union(*map(variable_names, expressions))

    def _temporaries(self, drafts: Sequence[Draft], book: RuleBook) -> dict[str, TemporaryVariable]:
        """The temporaries, in order of declaration; shapes are still missing.

        Raises where the drafts write what they cannot.
        """
        declaring = [
            (draft, accesses(target)[0][0], declared)
            for draft in drafts
            for target, declared in draft.item.targets
            if declared is not None
        ]
        loaded = {*self.given.temporaries, *(name for _, name, _ in declaring)}
        for draft in drafts:
            for target in draft.targets:
                self._check_write(draft, accesses(target)[0][0], book, loaded)
        temporaries = dict(self.given.temporaries)
        for draft, name, declared in declaring:
            dtype = None if declared == "auto" else declared
            before = temporaries.get(name)
            if name in self.given.order:
                raise ParseError(
                    f"'{name}' is declared as a temporary here and as an argument in kernel_data",
                    position=draft.position_of(name),
                )
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

    def _check_write(
        self, draft: Draft, name: str, book: RuleBook, loaded: Collection[str]
    ) -> None:
        instead = ""
        if name in self.inames:
            what = "an iname"
        elif name in book.rules:
            what = "a substitution rule"
        elif isinstance(self.given.arguments.get(name), ConstantTable):
            what = "a table of constants"
        elif name in self.domains.parameters and name not in loaded:
            what = "a size of a domain"
            instead = f"'<> {name} = ...' declares a temporary that bounds may use"
        else:
            return
        raise ParseError(
            f"'{name}' is {what} and cannot be assigned to",
            position=draft.position_of(name),
            instead=instead,
        )

    def _nested(
        self,
        drafts: Sequence[Draft | Nop],
        drafting: Drafting,
        inames: Inames,
        temporaries: dict[str, TemporaryVariable],
    ) -> tuple[tuple[Statement, ...], Tree]:
        """The statements in order and their tree; adds accumulators to ``temporaries``."""
        written = [d for d in drafts if isinstance(d, Draft)]
        sources = find_inames(written, inames, temporaries)
        if self.text.called_inames:
            check_together(written, self.text.called_inames)
        numbers = count(1)
        splitter = Splitter(inames, self.operations, drafting, numbers, temporaries)
        ordered = in_order(drafts, inames, temporaries)
        split = [(d, splitter.split(d) if isinstance(d, Draft) else ()) for d in ordered]
        nest = Nest(inames, numbers)
        entries: list[Entry] = []
        made = {s.id: s for _, parts in split for s, _ in parts}
        for draft, parts in split:
            if isinstance(draft, Nop):
                draft.inames = inames.closure(draft.given_inames)
                end = LaunchBarrier(draft.id, frozenset(draft.item.tags))
                entries.append((end, nest.path(draft)))
                continue
            entries = with_parts(entries, made, draft, nest.path(draft), parts)
        paths = {leaf: path for leaf, path in entries if isinstance(leaf, str)}
        check_sources(sources, paths)
        temporaries.update((a.name, a) for a in splitter.accumulators)
        return tuple(made[leaf] for leaf in paths), build(entries)

    def _position_of(self, name: str) -> SourcePosition | None:
        for item in self.items:
            if isinstance(item, (RawAssignment, RawSubstitution)):
                position = position_of_name(item, name)
                if position is not item.position:
                    return position
        return None

    def _shape(
        self,
        shapes: Shapes,
        uses: infer_arguments.Uses,
        args: list[Argument],
        temporaries: dict[str, TemporaryVariable],
    ) -> frozenset[str]:
        """Fill in shapes; returns the names of arrays whose shape follows from their accesses."""
        inferred: set[str] = set()
        sizes = {a.name for a in args if infer_arguments.is_integer(a)} - shapes.names

        def shaped(data: D, is_open: bool) -> D:
            shape = data.shape
            if is_open and data.name in uses.accesses:
                shape = shapes.shape_of(uses.accesses[data.name])
                inferred.add(data.name)
            if self.fixed and shape is not None:
                shape = tuple(substitute(extent, self.fixed) for extent in shape)
            if others := sorted(frozenset().union(*map(variable_names, shape or ())) - sizes):
                why = f"the shape of '{data.name}' uses {', '.join(others)}"
                raise InvalidArgumentError(why, instead="shapes may use sizes only")
            return data if shape is data.shape else replace(data, shape=shape)

        for position, argument in enumerate(args):
            if isinstance(argument, ArrayArg):
                args[position] = shaped(argument, argument.shape is None)
        for name, temporary in temporaries.items():
            axes = uses.axes.get(name)
            is_open = bool(axes) and (name in self.given.unshaped or not temporary.shape)
            if not is_open and axes is not None and len(temporary.shape) != axes:
                raise infer_arguments.other_axes(name, len(temporary.shape), axes)
            temporaries[name] = shaped(temporary, is_open)
        return frozenset(inferred)


def _with_numbers(item: RawItem, fixed: Mapping[str, int]) -> RawItem:
    """An item with its fixed parameters as numbers."""
    if isinstance(item, RawNop):
        return item
    if isinstance(item, RawAssignment):
        arrays = {name for e in expressions_of(item) for name, indices in accesses(e) if indices}
        targets = {accesses(target)[0][0] for target in targets_of(item.lhs)}
        for name in sorted((targets | arrays) & fixed.keys()):
            raise InvalidArgumentError(
                f"fixed_parameters gives a value to '{name}', which is an array or written",
                asked=item.position.caret(),
                instead="fixed parameters are sizes",
            )
    return with_expressions(item, lambda e: substitute(e, fixed))
