"""The text of a kernel with the functions that it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopkit import _arguments as kind
from loopkit._device_functions import DeviceFunction, OwnFunction, joined_functions, own_functions
from loopkit._errors import InvalidArgumentError
from loopkit._expression import accesses
from loopkit._frozen import dataclass
from loopkit._make.domain_factors import Domains, make_assumptions, make_domains
from loopkit._make.given_data import Given
from loopkit._make.inline_calls import Inlining
from loopkit._make.kernel_functions import KernelFunction, calls_in, check_no_parts
from loopkit._make.named_arguments import with_arguments_in_order
from loopkit._make.operation import ReductionOperation
from loopkit._syntax.items import RawAssignment, RawItem


@dataclass(frozen=True, eq=False)
class Linked:
    """A text without calls of kernels, and all that it needs; ``due`` are types of arrays.

    ``results`` are the arrays that calls write.
    """

    items: tuple[RawItem, ...]
    domains: Domains
    reductions: tuple[ReductionOperation, ...]
    functions: tuple[OwnFunction, ...]
    due: tuple[tuple[str, Any, str], ...] = ()
    called_inames: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()


def linked(
    items: Sequence[RawItem],
    domains: Any,
    given: Given,
    fixed: Mapping[str, int],
    assumptions: Any,
    reductions: tuple[ReductionOperation, ...],
    functions: Any,
) -> Linked:
    """What a text says with its calls of kernels written out.

    ``given`` gets their temporaries, and their tables of constants.
    """
    takes = "a list of what register_callable and make_function have made"
    several = kind.items("functions", functions, takes)
    if not all(isinstance(f, (DeviceFunction, KernelFunction)) for f in several):
        raise kind.unfit("functions", takes, functions)
    own = own_functions(f for f in several if isinstance(f, DeviceFunction))
    kernels = {f.name: f for f in several if isinstance(f, KernelFunction)}
    if len(kernels) + sum(isinstance(f, DeviceFunction) for f in several) < len(several):
        raise InvalidArgumentError("two kernels in functions= have one name")
    made = make_domains(domains, fixed)
    taken_by = {f.name: [tuple(p.name for p in f.parameters)] for f in kernels.values()}
    taken_by |= {f.name: [tuple(dict(o.arguments)) for o in f.overloads] for f in own}
    items = with_arguments_in_order(items, taken_by)
    if not any(True for _ in calls_in(items, kernels)):
        check_no_parts(items, kernels)
        return Linked(tuple(items), made, reductions, own)
    known = make_assumptions(assumptions, made.condition, dict(fixed)).set
    taken = {*given.arguments, *given.temporaries, *(n for n in given.order if n)}
    found = Inlining(items, kernels, made, known, taken)
    check_no_parts(found.items, kernels)
    given.temporaries.update((t.name, t) for t in found.temporaries)
    given.arguments.update((t.name, t) for t in found.tables.values())
    given.order.extend(t.name for t in found.tables.values())
    return Linked(
        found.items,
        make_domains([*made.domains, *_condition(made), *found.domains], fixed),
        _joined(reductions, found),
        joined_functions([own, *(f.functions for f in found.called.values())]),
        tuple(found.dtypes),
        frozenset(i for d in found.domains for i in d.inames),
        frozenset(found.results),
    )


def _condition(made: Domains) -> list[Any]:
    return [] if made.condition.plain_is_universe() else [made.condition]


def _joined(
    reductions: tuple[ReductionOperation, ...], found: Inlining
) -> tuple[ReductionOperation, ...]:
    by_name = {r.name: r for r in reductions}
    for function in found.called.values():
        for one in function.reductions:
            if by_name.setdefault(one.name, one) != one:
                raise InvalidArgumentError(
                    f"'{function.name}' means another reduction by '{one.name}' than its caller"
                )
    return tuple(by_name.values())


def with_due(dtypes: Mapping[str, Any], text: Linked, given: Given) -> dict[str, Any]:
    """Types by name, those among them that functions declare for arrays nobody else declares."""
    declared = {*dtypes, *given.arguments, *given.temporaries}
    for item in text.items:
        if isinstance(item, RawAssignment):
            declared.update(accesses(t)[0][0] for t, how in item.targets if how is not None)
    return {**dtypes, **{n: dtype for n, dtype, _ in text.due if n not in declared}}
