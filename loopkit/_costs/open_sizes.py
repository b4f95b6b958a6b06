"""Costs of a launch whose sizes are left open: every number as a polynomial of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from math import gcd, lcm, prod
from typing import TYPE_CHECKING, Any, TypeVar

from loopkit import _budget, _sets
from loopkit._arrays import ValueArg, strides_of
from loopkit._budget import in_turn
from loopkit._costs.barrier_counts import BarrierCosts, barriers_of
from loopkit._costs.costs import Costs, Counts, costs_of_counts, counts_at
from loopkit._costs.devices import Device
from loopkit._costs.interpolation import Lattice, NoLaunchError, NotPolynomialError, interpolated
from loopkit._costs.layouts import Layouts
from loopkit._costs.on_demand import Change, OnDemand, Part, Value, part
from loopkit._costs.polynomial import QuasiPolynomial
from loopkit._costs.reuse import Reuse
from loopkit._costs.sizes import check_names
from loopkit._costs.values import AccessCosts, Footprint
from loopkit._costs.warps import LINE, WarpCosts
from loopkit._errors import InvalidArgumentError
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._points import smallest_point

if TYPE_CHECKING:
    from loopkit._costs.text_table import Table

C = TypeVar("C", bound=Costs)


@dataclass(frozen=True)
class OpenCosts(Costs):
    """What a launch does, by sizes: where :class:`Costs` has a count, a
    :class:`~loopkit._costs.polynomial.QuasiPolynomial`.

    ``sizes`` are those that were given; ``open_sizes`` the others.  Which layout would help, and
    what a device makes of it, is only known of numbers.
    """

    open_sizes: tuple[str, ...] = ()
    waits: tuple[BarrierCosts, ...] = ()

    @property
    def blocks(self) -> Any:
        """The blocks of the grid."""
        return prod(self.grid)

    @property
    def launched_open(self) -> str:
        """What is launched, in words."""
        return f"blocks: {self.blocks}"

    @property
    def barriers(self) -> tuple[BarrierCosts, ...]:
        """Where threads wait for each other, and how often."""
        return self.waits

    @property
    def layouts(self) -> tuple[Layouts, ...]:
        """What would remove bank conflicts: not known of open sizes."""
        raise InvalidArgumentError(
            f"which layout helps is only known of numbers, and {', '.join(self.open_sizes)} "
            "were left open",
            instead=f"costs({', '.join(f'{n}=...' for n in self.source.sizes)}).layouts",
        )

    def at(self, /, **sizes: int) -> dict[str, int]:
        """All counts at sizes, by what they count.

        Raises :class:`InvalidArgumentError` where one of them says nothing of these sizes.
        """
        return {
            what: value(**sizes) if isinstance(value, QuasiPolynomial) else value
            for what, value in numbers_of(self)
            if value is not None
        }

    def parts(self) -> Iterator[Table | str]:
        """The tables, and the remarks between them."""
        from loopkit._costs.table import open_parts

        return open_parts(self)


@in_turn
def open_costs(
    kernel: Kernel,
    given: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> OpenCosts:
    """The costs of a launch of which only some sizes are given, or none.

    Raises :class:`InvalidArgumentError` where a number is no polynomial of the sizes, and says
    which; and what :func:`~loopkit._costs.costs.costs` raises.
    """
    given = check_names(kernel, given)
    seen: list[Counts] = []

    def parts(sizes: Mapping[str, int]) -> Iterator[Part]:
        seen.append(found := counts_at(kernel, sizes))
        yield from parts_of_counts(found)
        yield part(partial(changed_barriers, partial(barriers_at, kernel, found)))

    names, found = polynomials(kernel, given, parts)
    values = iter(found)

    def change(_what: str, _value: Value) -> Any:
        return next(values)

    sizes = seen[0].counter.sizes
    first = aligned(costs_of_counts(kernel, sizes, seen[0], device, arch), seen)
    made = changed(first, change)
    waits = changed_barriers(lambda: first.barriers, change)
    whole = {f.name: getattr(made, f.name) for f in fields(Costs)}
    whole["sizes"] = tuple(sorted(given.items()))
    return OpenCosts(**whole, open_sizes=names, waits=waits)


def parts_of_counts(found: Counts) -> Iterator[Part]:
    """The numbers of a launch but its barriers, as :func:`changed` lists them."""

    def requests(number: int, change: Change) -> object:
        return _changed_requests(found.requests(number), change)

    def reuse(number: int, change: Change) -> object:
        return _changed_reuse(found.access(number), change)

    yield part(partial(_changed_whole, found))
    for number in range(len(found.listed)):
        yield part(partial(requests, number))
        yield part(partial(reuse, number))
    yield part(lambda change: changed_footprints(found.footprints, change))


def barriers_at(kernel: Kernel, found: Counts) -> tuple[BarrierCosts, ...]:
    """The barriers of a launch with the sizes of some counts."""
    counter = found.counter
    return barriers_of(kernel, counter.sizes, found.grid, counter.block, counter.calls)


def polynomials(
    kernel: Kernel,
    given: Mapping[str, int],
    count: Callable[[Mapping[str, int]], Iterable[Part]],
) -> tuple[tuple[str, ...], list[QuasiPolynomial | None]]:
    """The sizes that are not given, and all numbers that *count* gives at sizes, by them.

    *count* says of each what it is, too; parts of which no number is asked for are not counted.
    Raises :class:`InvalidArgumentError` where a number is no polynomial of the sizes, and says
    which.
    """
    known = {*given, *kernel.computed_sizes}
    names = tuple(name for name in kernel.sizes if name not in known)
    lattice = _lattice(kernel, given, names)
    seen: dict[tuple[int, ...], OnDemand] = {}

    def sample(sizes: Mapping[str, int]) -> OnDemand:
        key = tuple(sizes[name] for name in names)
        if key not in seen:
            where = kernel.with_computed({**given, **sizes})
            if _sets.at_values(kernel.assumptions.set, where).is_empty():
                raise NoLaunchError(where)
            first = next(iter(seen.values()), None)
            seen[key] = OnDemand(count(where), None if first is None else first.places)
        return seen[key]

    try:
        try:
            found = interpolated(sample, lattice)
        except NotPolynomialError:
            # Small sizes may be a case of their own.
            found = interpolated(sample, lattice.later(2))
    except NoLaunchError as error:
        raise _unsampled(kernel, error.sizes) from None
    except NotPolynomialError as error:
        what = next(iter(seen.values())).what(error.number)
        raise InvalidArgumentError(
            f"the {what} of '{kernel.name}' cannot be told for all sizes: {error.why}",
            instead=f"costs({', '.join(f'{n}=...' for n in kernel.sizes)}) counts it at numbers",
        ) from None
    return names, found


def aligned(costs: C, seen: Sequence[Counts]) -> C:
    """Costs with the alignment that accesses have at all sizes at which they were counted."""
    found = []
    for number, access in enumerate(costs.accesses):
        if access.counts is not None:
            every = [c.known[number].counts for c in seen if number in c.known]
            least = min(c.alignment for c in every if c is not None)
            access = replace(access, counts=replace(access.counts, alignment=least))
        found.append(access)
    return replace(costs, accesses=tuple(found))


def _unsampled(kernel: Kernel, sizes: Mapping[str, int]) -> InvalidArgumentError:
    shown = ", ".join(f"{n} = {v}" for n, v in sizes.items())
    return InvalidArgumentError(
        f"costs of open sizes are found at some of them, but no launch of '{kernel.name}' has "
        f"{shown}: it assumes {kernel.assumptions.text}",
        instead="give the sizes that may take few values numbers",
    )


def numbers_of(costs: Costs) -> Sequence[tuple[str, Any]]:
    """All counts, with words for what they count, in a fixed order."""

    def all_of(change: Change) -> None:
        changed(costs, change)
        changed_barriers(lambda: costs.barriers, change)

    return part(all_of)()


def changed(costs: Costs, change: Change) -> Costs:
    """Costs with every count changed."""
    return replace(
        costs,
        **_changed_whole(costs, change),
        accesses=tuple(_changed_access(a, change) for a in costs.accesses),
        footprints=changed_footprints(costs.footprints, change),
    )


def _changed_whole(costs: Costs | Counts, change: Change) -> dict[str, Any]:
    """What is counted of no array."""
    return {
        "grid": tuple(
            change(f"blocks along {axis}", n) for axis, n in zip("xyz", costs.grid, strict=True)
        ),
        "instances": tuple(
            (name, change(f"instances of {name}", n)) for name, n in costs.instances
        ),
        "operations": tuple(
            ((kind, dtype), change(f"{kind} of {dtype}", n))
            for (kind, dtype), n in costs.operations
        ),
    }


def changed_footprints(footprints: Iterable[Footprint], change: Change) -> tuple[Footprint, ...]:
    """Footprints with every count changed."""
    return tuple(
        replace(
            f,
            read=change(f"bytes read of {f.array}", f.read),
            written=change(f"bytes written of {f.array}", f.written),
        )
        for f in footprints
    )


def _changed_access(access: AccessCosts, change: Change) -> AccessCosts:
    counts = _changed_requests(access, change)
    return replace(access, counts=counts, reuse=_changed_reuse(access, change))


def _changed_requests(access: AccessCosts, change: Change) -> Any:
    pieces = "sectors" if access.space == "global" else "wavefronts"
    words = {
        "pieces": pieces,
        "least_pieces": f"least {pieces}",
        "most_pieces": f"most {pieces} of a request",
    }
    return _changed_fields(access, WarpCosts, access.counts, words, change)


def _changed_reuse(access: AccessCosts, change: Change) -> Any:
    words = {"times": "accesses", "cells": "cells"}
    return _changed_fields(access, Reuse, access.reuse, words, change)


def _changed_fields(
    access: AccessCosts, kind: type, value: Any, words: Mapping[str, str], change: Change
) -> Any:
    where = f"{access.text} ({access.verb}, {access.statement})"
    parts = {
        f.name: change(f"{words.get(f.name, f.name)} of {where}", getattr(value, f.name, None))
        for f in fields(kind)
        if f.name != "alignment"
    }
    return None if value is None or None in parts.values() else replace(value, **parts)


def changed_barriers(
    barriers: Callable[[], Iterable[BarrierCosts]], change: Change
) -> tuple[BarrierCosts, ...]:
    """Barriers with every count changed."""
    return tuple(
        replace(
            barrier,
            times=change(f"executions of the {what}", barrier.times),
            blocks=change(f"blocks at the {what}", barrier.blocks),
        )
        for barrier in barriers()
        for what in (f"barrier between {barrier.after} and {barrier.before}",)
    )


def _lattice(kernel: Kernel, given: Mapping[str, int], names: tuple[str, ...]) -> Lattice:
    """Sizes at which costs are counted: the smallest ones that tiles and sectors divide."""
    computed = kernel.computed_sizes.items()
    periods = tuple(
        lcm(
            *(
                _period(kernel, n)
                for n in (name, *(c for c, v in computed if name in variable_names(v)))
            )
        )
        for name in names
    )
    where = _sets.at_values(kernel.assumptions.set, given)
    low = smallest_point(_sets.project_onto(where, names), names) or {}
    first = {}
    open_ = where
    for name, period in zip(names, periods, strict=True):
        lowest = low.get(name, 1)
        start = -(-max(lowest, 1) // period) * period
        position = open_.find_dim_by_name(_sets.PARAM, name)
        if position >= 0:
            offset = next(
                (
                    n
                    for n in range(period)
                    if not _sets.at_values(open_, {name: start + n}).is_empty()
                ),
                0,
            )
            start += offset
            open_ = _sets.at_values(open_, {name: start})
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
            f"counts of '{kernel.name}' have a period of {found:,} in '{size}': too long to tell "
            "them for all sizes",
            instead=f"give '{size}' a number",
        )
    return found
