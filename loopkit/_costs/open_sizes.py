"""Costs with symbolic sizes, as quasi-polynomials of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, lcm

from loopkit import _budget, _sets
from loopkit._arrays import ValueArg, strides_of
from loopkit._costs.interpolation import (
    Lattice,
    NoLaunchError,
    NotPolynomialError,
    Numbers,
    Sample,
    interpolated,
)
from loopkit._costs.polynomial import QuasiPolynomial
from loopkit._costs.warps import LINE
from loopkit._errors import InvalidArgumentError
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._points import smallest_point


def polynomials(
    kernel: Kernel,
    given: Mapping[str, int],
    count: Sample,
    words: Sequence[str],
) -> list[QuasiPolynomial | None]:
    """All numbers that *count* gives at sizes, as polynomials of those that are not given.

    *words* say what each of them is, once one was counted.  Raises :class:`InvalidArgumentError`
    where a number is no polynomial of the sizes, and says which.
    """
    names = open_names(kernel, given)
    lattice = _lattice(kernel, given, names)
    seen: dict[tuple[int, ...], Numbers] = {}

    def sample(sizes: Mapping[str, int]) -> Numbers:
        key = tuple(sizes[name] for name in names)
        if key not in seen:
            where = kernel.with_computed({**given, **sizes})
            if _sets.at_values(kernel.assumptions.set, where).is_empty():
                raise NoLaunchError(where)
            seen[key] = count(where)
        return seen[key]

    try:
        try:
            return interpolated(sample, lattice)
        except NotPolynomialError:
            # Small sizes may be a case of their own.
            return interpolated(sample, lattice.later(2))
    except NoLaunchError as error:
        shown = ", ".join(f"{n} = {v}" for n, v in error.sizes.items())
        raise InvalidArgumentError(
            f"costs of open sizes are found at some of them, but no launch of '{kernel.name}' has "
            f"{shown}: it assumes {kernel.assumptions.text}",
            instead="give the sizes that may take few values numbers",
        ) from None
    except NotPolynomialError as error:
        what = words[error.number]
        raise InvalidArgumentError(
            f"the {what} of '{kernel.name}' cannot be determined for all sizes: {error.why}",
            instead=f"costs({', '.join(f'{n}=...' for n in kernel.sizes)}) counts it at numbers",
        ) from None


def open_names(kernel: Kernel, given: Mapping[str, int]) -> tuple[str, ...]:
    """The sizes that are not given, and are not computed of others."""
    known = {*given, *kernel.computed_sizes}
    return tuple(name for name in kernel.sizes if name not in known)


def _lattice(kernel: Kernel, given: Mapping[str, int], names: tuple[str, ...]) -> Lattice:
    """Sizes at which costs are counted: the smallest ones that tiles and sectors divide."""
    computed = kernel.computed_sizes.items()
    with_computed = {n: [n, *(c for c, v in computed if n in variable_names(v))] for n in names}
    periods = tuple(lcm(*(_period(kernel, n) for n in with_computed[name])) for name in names)
    where = _sets.at_values(kernel.assumptions.set, given)
    low = smallest_point(_sets.project_onto(where, names), names) or {}
    first = {}
    open_ = where
    for name, period in zip(names, periods, strict=True):
        lowest = low.get(name, 1)
        start = -(-max(lowest, 1) // period) * period
        position = open_.find_dim_by_name(_sets.PARAM, name)
        if position >= 0:
            tried = ((n, _sets.at_values(open_, {name: n})) for n in range(start, start + period))
            there = next(((n, left) for n, left in tried if not left.is_empty()), None)
            start, open_ = there or (start, _sets.at_values(open_, {name: start}))
        first[name] = start
    smallest = tuple(max(low.get(name, 1), 1) for name in names)
    return Lattice(names, tuple(first[name] for name in names), periods, smallest)


def _period(kernel: Kernel, size: str) -> int:
    """A period of all counts in a size: what loops are split by, and the elements of a line."""
    found = 1
    for statement in kernel.statements:
        domain = kernel.statement_domain(statement) & kernel.assumptions.set
        for basic in domain.compute_divs().get_basic_sets():
            for constraint in basic.get_constraints():
                try:
                    form = _sets.form_of(constraint)
                except NotAffineError:
                    continue
                own = [c for atom, c in form.terms.items() if variable_names(atom) == {size}]
                if not any(size in variable_names(atom) for atom in form.terms):
                    continue
                by = gcd(*own) if own else 1
                for atom, c in form.terms.items():
                    if variable_names(atom) != {size}:
                        found = lcm(found, abs(c) // gcd(c, by))
    for array in (*kernel.args, *kernel.temporaries):
        if isinstance(array, ValueArg) or array.shape is None:
            continue
        itemsize = 1 if array.dtype is None else array.dtype.itemsize
        if any(size in variable_names(s) for s in strides_of(array)):
            found = lcm(found, LINE // gcd(LINE, itemsize))
    if found > _budget.PERIOD:
        raise InvalidArgumentError(
            f"counts of '{kernel.name}' have a period of {found:,} in '{size}': too long to give "
            "them for all sizes",
            instead=f"give '{size}' a number",
        )
    return found
