"""Creation of a kernel from its text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import islpy as isl

from loopkit import _arguments as kind
from loopkit import _budget
from loopkit._arguments import flag, values_of
from loopkit._arrays import ConstantTable, TemporaryVariable
from loopkit._budget import SpentError, in_turn, within
from loopkit._called import fitting
from loopkit._device_functions import DeviceFunction, by_name
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    UndecidedError,
    check_known,
)
from loopkit._expression import accesses, substitute, variable_names
from loopkit._functions import FUNCTIONS
from loopkit._kernel import Kernel, Options, SubstitutionRule
from loopkit._make.check_bounds import check_in_bounds, check_may_settle, without_needless_guards
from loopkit._make.check_initialized import check_initialized
from loopkit._make.check_sense import check_names, check_text
from loopkit._make.check_types import check_types
from loopkit._make.domain_factors import Inames
from loopkit._make.drafts import find_drafts
from loopkit._make.enclosing_loops import Nest, check_sources, find_inames, in_order
from loopkit._make.free_names import RuleBook
from loopkit._make.given_data import as_offset, read_kernel_data
from loopkit._make.infer_arguments import find_arguments, find_uses, read_dtypes
from loopkit._make.kernel_functions import KernelFunction, check_dtypes, check_together
from loopkit._make.link import link
from loopkit._make.making import Draft, Making, Nop
from loopkit._make.operation import ReductionOperation
from loopkit._make.shapes import find_shapes
from loopkit._make.shared_loops import with_parts
from loopkit._make.split_reductions import Splitter
from loopkit._make.text_names import (
    expressions_of,
    in_own_words,
    with_expressions,
    with_names_first,
)
from loopkit._make.text_subscripts import with_all_indices, with_sums_of_bits
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
from loopkit._tree import Entry, LaunchBarrier, build


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
    """Make a kernel from loop domains and instructions.

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
        making = Making(
            name,
            items,
            domains,
            given,
            fixed,
            assumptions,
            read_dtypes(dtypes),
            values_of("substitutions", substitutions, SubstitutionRule),
            default_order,
            _options(options),
            own,
            given_functions=functions,
            owes_bounds=flag("owe_bounds", owe_bounds),
        )
        for one in PASSES:
            one(making)
        return making.kernel

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


def use_own_words(making: Making) -> None:
    """Put numbers in the place of fixed parameters, functions in C in that of their names.

    The language's own words come in the place of NumPy's, and names in front of their tags.
    """
    if making.fixed:
        making.items = [_with_numbers(item, making.fixed) for item in making.items]
    declared, functions = making.declared, by_name(making.functions)
    making.items, making.substitutions = in_own_words(
        making.items, making.substitutions, functions, making.operations, declared
    )
    rules = (rule.name for rule in making.substitutions)
    making.items = with_names_first(making.items, declared.union(rules))


def read_rules(making: Making) -> None:
    """Find the substitution rules, and all names that something has."""
    inames, operations = making.domains.inames, making.operations
    rules = {rule.name: rule for rule in making.substitutions}
    for item in making.items:
        if isinstance(item, RawSubstitution):
            if item.name in rules:
                raise ParseError(
                    f"there are two substitution rules '{item.name}'",
                    position=position_of_name(item, item.name),
                )
            rules[item.name] = SubstitutionRule(item.name, item.arguments, item.expression)
    for name in rules:
        if name in inames:
            raise InvalidArgumentError(f"'{name}' is an iname and a substitution rule")
        if name in FUNCTIONS or name in operations:
            raise InvalidArgumentError(
                f"the substitution rule '{name}' hides a function of the same name",
                instead="give the rule another name",
            )
    check_rules(rules)
    components = with_segmented({n: o.components for n, o in operations.items()})
    making.book = RuleBook(rules, components, frozenset(inames))
    expressions = [rule.expression for rule in rules.values()]
    for item in making.items:
        if isinstance(item, (RawAssignment, RawBreak)):
            expressions += expressions_of(item)
    making.names = {*inames, *making.domains.parameters, *rules, *making.given.arguments}
    making.names.update(n for n in making.given.order if n is not None)
    making.names.update(*map(variable_names, expressions))


def find_temporaries(making: Making) -> None:
    """Find the temporaries, in order of declaration; shapes are still missing.

    Raises where the drafts write what they cannot.
    """
    given, drafts = making.given, [d for d in making.drafts if isinstance(d, Draft)]
    declaring = [
        (draft, name, declared)
        for draft in drafts
        for name, (_, declared) in zip(draft.item.written, draft.item.targets, strict=True)
        if declared is not None
    ]
    loaded = {*given.temporaries, *(name for _, name, _ in declaring)}
    for draft in drafts:
        for target in draft.targets:
            _check_write(making, draft, accesses(target)[0][0], loaded)
    making.temporaries = temporaries = dict(given.temporaries)
    for draft, name, declared in declaring:
        dtype = None if declared == "auto" else declared
        before = temporaries.get(name)
        if name in given.order:
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
    making.inames = Inames(making.domains, temporaries)


def _check_write(making: Making, draft: Draft, name: str, loaded: Collection[str]) -> None:
    instead = ""
    if name in making.domains.inames:
        what = "an iname"
    elif name in making.book.rules:
        what = "a substitution rule"
    elif isinstance(making.given.arguments.get(name), ConstantTable):
        what = "a table of constants"
    elif name in making.domains.parameters and name not in loaded:
        what = "a size of a domain"
        instead = f"'<> {name} = ...' declares a temporary that bounds may use"
    else:
        return
    raise ParseError(
        f"'{name}' is {what} and cannot be assigned to",
        position=draft.position_of(name),
        instead=instead,
    )


def nest(making: Making) -> None:
    """Make statements in a tree of the drafts; accumulators come to the temporaries."""
    inames, temporaries = making.inames, making.temporaries
    written = [d for d in making.drafts if isinstance(d, Draft)]
    sources = find_inames(written, inames, temporaries)
    if making.called_inames:
        check_together(written, making.called_inames)
    numbers = count(1)
    splitter = Splitter(making, numbers)
    ordered = in_order(making.drafts, inames, temporaries)
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
    making.kernel = Kernel(
        name=making.name,
        domains=making.domains.domains,
        statements=tuple(made[leaf] for leaf in paths),
        args=(),
        temporaries=tuple(temporaries.values()),
        tree=build(entries),
        assumptions=making.known,
        substitutions=making.book.kept,
        options=making.options,
        reductions=making.reductions,
        functions=making.functions,
    )
    making.expanded = expand_rules(making.kernel)


def check_meaning(making: Making) -> None:
    """Find types, and check them, what is read before it is written, and bounds."""
    kernel, uses = making.kernel, making.uses
    typed = {d.name for d in (*kernel.args, *kernel.temporaries) if d.dtype is not None}
    kernel = infer_known_types(kernel)
    initialized = check_initialized(kernel, making.results)
    kernel = without_needless_guards(replace(kernel, args=initialized))
    if making.owes_bounds:
        check_may_settle(kernel, frozenset(uses.accesses))
        kernel = replace(kernel, owes_bounds=True)
    else:
        check_in_bounds(kernel, frozenset(uses.accesses) - making.inferred)
    check_types(kernel, typed, literals=not making.fixed)
    check_dtypes(kernel, making.due)
    making.kernel = kernel


TEXT_PASSES: tuple[Callable[[Making], None], ...] = (
    link,
    use_own_words,
    with_all_indices,
    with_sums_of_bits,
)
"""What makes of a text one that calls no kernels, in the language's own words."""

PASSES: tuple[Callable[[Making], None], ...] = (
    *TEXT_PASSES,
    read_rules,
    find_drafts,
    find_temporaries,
    nest,
    check_text,
    find_uses,
    find_arguments,
    find_shapes,
    check_names,
    check_meaning,
)
"""What makes a kernel, one after another: each reads what those before it have found."""


def _with_numbers(item: RawItem, fixed: Mapping[str, int]) -> RawItem:
    """An item with its fixed parameters as numbers."""
    if isinstance(item, RawNop):
        return item
    if isinstance(item, RawAssignment):
        arrays = {name for e in expressions_of(item) for name, indices in accesses(e) if indices}
        for name in sorted(arrays.union(item.written) & fixed.keys()):
            raise InvalidArgumentError(
                f"fixed_parameters gives a value to '{name}', which is an array or written",
                asked=item.position.caret(),
                instead="fixed parameters are sizes",
            )
    return with_expressions(item, lambda e: substitute(e, fixed))
