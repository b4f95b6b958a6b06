"""Programs of several launches: each launch becomes a kernel of its own.

A launch is lowered, proven and counted like any other kernel. The inames of loops around it become
sizes, and temporaries that live longer than it become arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _intervals, _sets
from loopkit._arrays import (
    AddressSpace,
    Argument,
    ArrayArg,
    TemporaryVariable,
    ValueArg,
    storage_shape,
    strides_of,
)
from loopkit._cached import memoised
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._history import History
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._launches import Launch, Launches, LaunchLoop, launch_of, launches_in, launches_of
from loopkit._make.type_inference import infer_types
from loopkit._nodes import Expression
from loopkit._places import decide_address_spaces
from loopkit._poly.pairs import between
from loopkit._relations import reachable
from loopkit._rules import expand_rules
from loopkit._same import key_of
from loopkit._tree import nodes_in, statements_in
from loopkit.codegen.bounds import Bounds, loop_bounds
from loopkit.codegen.widths import EVERYTHING, INT32, INT64, largest_size


@dataclass(frozen=True, eq=False)
class Part:
    """One launch, and its kernel.

    ``where`` is ``{ inames of loops around it, sizes : the call executes it }``.
    """

    launch: Launch
    kernel: Kernel
    where: isl.Set


@dataclass(frozen=True, eq=False)
class PartLoop:
    """A loop around launches, with bounds over sizes and the loops around it."""

    iname: str
    dtype: np.dtype[np.integer]
    bounds: Bounds
    body: Parts


@dataclass(frozen=True, eq=False)
class PartIf:
    """What the call runs where a condition on sizes and the loops around it holds."""

    condition: Expression
    body: Parts


Parts = tuple[Part | PartLoop | PartIf, ...]


def parts_in(parts: Parts) -> Iterator[Part]:
    """All launches, each once, in the order of the text."""
    return (node for node in nodes_in(parts, Part) if isinstance(node, Part))


@memoised
def parts_of(kernel: Kernel) -> Parts:
    """The launches of a kernel, as kernels, in loops that the call runs (memoised).

    Raises :class:`TypeInferenceError` where types are missing, and
    :class:`IllegalTransformError` for a loop around launches that has no end.
    """
    return parted(with_spaces(kernel))


def with_spaces(kernel: Kernel) -> Kernel:
    """A kernel of several launches with types, and with a place for each temporary."""
    return decide_address_spaces(infer_types(expand_rules(kernel)))


def parted(kernel: Kernel) -> Parts:
    """The launches of a kernel whose address spaces are decided, otherwise as it is."""
    return _Parting(kernel).parts(launches_of(kernel), kernel.assumptions.set)


def guarded(body: Parts, where: isl.Set, context: isl.Set) -> Parts:
    """What runs in a part of the context, with a condition around it unless that is all of it."""
    if context.is_subset(where):
        return body
    return (PartIf(_sets.conditions(where.gist(context)), body),)


def _append(found: list[Part | PartLoop | PartIf], more: Parts) -> None:
    """Add what runs next; under one condition with what is before, if it has the same."""
    for node in more:
        last = found[-1] if found else None
        if (
            isinstance(node, PartIf)
            and isinstance(last, PartIf)
            and key_of(node.condition) == key_of(last.condition)
        ):
            found[-1] = PartIf(node.condition, (*last.body, *node.body))
        else:
            found.append(node)


class _Parting:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[int, str] = {}
        for launch in launches_in(launches_of(kernel)):
            taken = self.names.values()
            wanted = kernel.name if not taken else f"{kernel.name}_{launch.number + 1}"
            free = wanted if not taken else kernel.fresh_name(wanted, taken)
            self.names[launch.number] = free
        self.loops: dict[str, np.dtype[np.integer]] = {}

    def parts(self, launches: Launches, context: isl.Set, outer: tuple[str, ...] = ()) -> Parts:
        """Some launches inside ``outer`` loops; ``context`` holds of these and of sizes."""
        found: list[Part | PartLoop | PartIf] = []
        for node in launches:
            if isinstance(node, Launch):
                tested = self.tested(node)
                where = reduce(isl.Set.intersect, map(_sets.condition_set, tested), context)
                part = Part(node, self.part(node, where, tested), where)
                _append(found, guarded((part,), where, context))
            elif (loop := self.loop(node, context, outer)) is not None:
                found.append(loop)
        return tuple(found)

    def tested(self, launch: Launch) -> tuple[Expression, ...]:
        """The conditions of all statements of a launch that the call can test.

        They are about sizes and inames around the launch alone, and sets can say them.
        """
        own = [self.kernel.statement_by_id[s] for s in statements_in(launch.body)]
        known = {*self.kernel.sizes, *launch.loops}
        common = frozenset.intersection(*(frozenset(map(key_of, s.predicates)) for s in own))
        return tuple(
            p
            for p in own[0].predicates
            if key_of(p) in common and variable_names(p) <= known and _sets.is_condition(p)
        )

    def loop(self, node: LaunchLoop, context: isl.Set, outer: tuple[str, ...]) -> PartLoop | None:
        """A loop around launches; None where it never runs."""
        inames = (*outer, node.iname)
        reach = self.reach(node, {*inames}) & context
        if reach.is_empty():
            return None
        bounds = loop_bounds(reach, node.iname, context)
        inner = context & bounds.enforced
        where = self.domain(inames)
        self.loops[node.iname] = dtype = self.dtype_of(node.iname, inner)
        body = self.parts(node.body, inner & where, inames)
        return PartLoop(node.iname, dtype, bounds, guarded(body, where, inner))

    def domain(self, loops: tuple[str, ...]) -> isl.Set:
        """``{ inames of loops, sizes : what their domains say, for some values of others }``."""
        own = (
            _sets.project_out(domain.set, sorted(self.inames_in(domain) - {*loops}))
            for domain in self.homes(loops)
        )
        return _sets.intersection(own)

    def homes(self, inames: Iterable[str]) -> Iterator[Domain]:
        """The domains in which some inames stand."""
        kernel = self.kernel
        return (kernel.domains[n] for n in sorted({kernel.home_domain[i] for i in inames}))

    def inames_in(self, domain: Domain) -> frozenset[str]:
        """All inames that a domain speaks of: its own, and those that bound them."""
        return _sets.involved_names(domain.set) & frozenset(self.kernel.all_inames)

    def within(self, inames: frozenset[str], outer: frozenset[str]) -> tuple[Expression, ...]:
        """What a launch tests itself of the loops around it: where inames inside bound them.

        ``inames`` are a statement's, ``outer`` those of the loops around its launch.
        """
        found: list[Expression] = []
        for domain in self.homes(inames & outer):
            bounding = self.inames_in(domain)
            if outer.issuperset(domain.inames) and not outer >= bounding:
                others = sorted(bounding - inames)  # some instance stands for them all
                around = self.kernel.domain_around(domain.inames) if others else domain.set
                found.append(_sets.conditions(_sets.project_out(around, others)))
        return tuple(found)

    def reach(self, node: LaunchLoop, inames: set[str]) -> isl.Set:
        """``{ inames of loops around launches, sizes : some statement executes }``."""
        inside = self.kernel.statement_by_id
        ids = (s for launch in launches_in(node.body) for s in statements_in(launch.body))
        kinds = dict.fromkeys(inside[s].inames for s in ids)
        domains = [
            _sets.project_out(self.kernel.domain_around(mine), sorted(mine - inames))
            for mine in kinds
        ]
        return reduce(isl.Set.union, domains).coalesce()

    def dtype_of(self, iname: str, context: isl.Set) -> np.dtype[np.integer]:
        """The type of a size that holds all values of a loop's iname."""
        for argument in self.kernel.args:
            if isinstance(argument, ValueArg) and argument.name in self.kernel.sizes:
                most = largest_size(argument.dtype or INT32)
                least = _intervals.of_dtype(argument.dtype or INT32)[0]
                context = context & between(argument.name, least, most)
        values = _sets.bounds(context, prim.Variable(iname), EVERYTHING)
        narrow = (_intervals.of_dtype(INT32)[0], largest_size(INT32))
        return INT32 if _intervals.contains(narrow, values) else INT64

    def part(self, launch: Launch, context: isl.Set, tested: tuple[Expression, ...]) -> Kernel:
        """The kernel of one launch, whose statements need not test what the call does."""
        kernel, outer = self.kernel, frozenset(launch.loops)
        done = {*map(key_of, tested)}
        ids = {*statements_in(launch.body)}
        statements = tuple(
            replace(
                s,
                inames=s.inames - outer,
                depends_on=s.depends_on & ids,
                predicates=(
                    *self.within(s.inames, outer),
                    *(p for p in s.predicates if key_of(p) not in done),
                ),
            )
            for s in kernel.statements
            if s.id in ids
        )
        inames = reachable(frozenset().union(*(s.inames for s in statements)), kernel.parents_of)
        homes = {kernel.home_domain[i] for i in inames}
        domains = tuple(
            domain if own == domain.inames else Domain(own, domain.set)
            for number, domain in enumerate(kernel.domains)
            if number in homes and (own := tuple(i for i in domain.inames if i not in outer))
        )
        kept = frozenset(i for domain in domains for i in domain.inames)
        args, temporaries = self.data(launch, statements, domains)
        sizes = {a.name for a in args if isinstance(a, ValueArg)}
        known = _sets.project_out(context, sorted(_sets.involved_names(context) - sizes))
        arrays = {*(a.name for a in args), *(t.name for t in temporaries)}
        return replace(
            kernel,
            name=self.names[launch.number],
            domains=domains,
            statements=statements,
            args=args,
            temporaries=temporaries,
            tree=launch.body,
            tags=tuple((i, tag) for i, tag in kernel.tags if i in kept),
            slabs=tuple(row for row in kernel.slabs if row[0] in kept),
            assumptions=Domain((), known),
            assertions=tuple(a for a in kernel.assertions if arrays.issuperset(a.arrays)),
            history=History(),
            lineage=None,
        )

    def data(
        self, launch: Launch, statements: Iterable[Statement], domains: Iterable[Domain]
    ) -> tuple[tuple[Argument, ...], tuple[TemporaryVariable, ...]]:
        """The arguments and the temporaries that a launch uses."""
        kernel = self.kernel
        used = frozenset().union(*(s.names for s in statements), *(d.parameters for d in domains))
        held = [t for t in kernel.temporaries if t.name in used]
        passed = [t for t in held if self.is_passed(launch, t)]
        arrays = [ArrayArg(t.name, t.dtype, storage_shape(t), t.dim_tags) for t in passed]
        arrays += [a for a in kernel.args if isinstance(a, ArrayArg) and a.name in used]
        extents = [e for a in arrays for e in (*(a.shape or ()), *strides_of(a), a.offset)]
        extents += [e for t in held for e in t.shape]
        used = used.union(*map(variable_names, extents))
        args: list[Argument] = [
            replace(a, is_input=None, is_output=None) if isinstance(a, ArrayArg) else a
            for a in kernel.args
            if a.name in used
        ]
        args += arrays[: len(passed)]
        args += [ValueArg(i, self.loops[i]) for i in launch.loops if i in used]
        return tuple(args), tuple(t for t in held if t not in passed)

    def is_passed(self, launch: Launch, temporary: TemporaryVariable) -> bool:
        """Whether a temporary in global memory is used by several launches."""
        if temporary.address_space is not AddressSpace.GLOBAL:
            return False
        launches = launch_of(self.kernel)
        users = {launches[s.id].number for s in self.kernel.users(temporary.name)}
        return bool(launch.loops) or users != {launch.number}
