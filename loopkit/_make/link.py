"""The text of a kernel, with its calls of other kernels inlined."""

from __future__ import annotations

from loopkit import _arguments as kind
from loopkit._device_functions import DeviceFunction, joined_functions, own_functions
from loopkit._errors import InvalidArgumentError
from loopkit._make.domain_factors import make_assumptions, make_domains
from loopkit._make.inline_calls import Inlining
from loopkit._make.kernel_functions import KernelFunction, calls_in, check_no_parts
from loopkit._make.making import Making
from loopkit._make.operation import ReductionOperation
from loopkit._make.text_names import with_arguments_in_order
from loopkit._syntax.items import RawAssignment


def link(making: Making) -> None:
    """Find the domains and functions of a text, and write its calls of kernels out.

    What is given gets the temporaries of these, their tables of constants and their types.
    """
    takes = "a list of what register_callable and make_function have made"
    several = kind.items("functions", making.given_functions, takes)
    in_c = [f for f in several if isinstance(f, DeviceFunction)]
    called = [f for f in several if isinstance(f, KernelFunction)]
    if len(in_c) + len(called) < len(several):
        raise kind.unfit("functions", takes, making.given_functions)
    making.functions = own_functions(in_c)
    kernels = {f.name: f for f in called}
    if len(kernels) < len(called):
        raise InvalidArgumentError("two kernels in functions= have one name")
    making.domains = make_domains(making.given_domains, making.fixed)
    _assume(making)
    taken_by = {f.name: [tuple(p.name for p in f.parameters)] for f in called}
    taken_by |= {f.name: [tuple(dict(o.arguments)) for o in f.overloads] for f in making.functions}
    making.items = with_arguments_in_order(making.items, taken_by)
    if any(True for _ in calls_in(making.items, kernels)):
        _write_out(making, Inlining(making, kernels))
    check_no_parts(making.items, kernels)


def _assume(making: Making) -> None:
    making.known = make_assumptions(making.assumptions, making.domains.condition, making.fixed)


def _write_out(making: Making, found: Inlining) -> None:
    made = making.domains
    making.items = found.items
    condition = [] if made.condition.plain_is_universe() else [made.condition]
    making.domains = make_domains([*made.domains, *condition, *found.domains], making.fixed)
    _assume(making)
    making.reductions = _joined(making.reductions, found)
    making.functions = joined_functions(
        [making.functions, *(f.functions for f in found.called.values())]
    )
    making.called_inames = frozenset(i for d in found.domains for i in d.inames)
    making.results = frozenset(found.results)
    # Types that functions declare for arrays without another declaration.
    making.due = tuple(found.dtypes)
    declared = making.declared
    for item in found.items:
        if isinstance(item, RawAssignment):
            told = zip(item.written, item.targets, strict=True)
            declared.update(name for name, (_, how) in told if how is not None)
    making.dtypes |= {name: dtype for name, dtype, _ in found.dtypes if name not in declared}


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
