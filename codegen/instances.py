"""Which instances each statement executes: its domain, or a little more where that is safe.

A statement that only computes on private data may run for instances that its
domain leaves out (the ragged edge of a tile), if what it then writes is never
used and what it then reads exists.  That keeps guards out of inner loops.

Let *location inames* be the block and thread coordinates, and those inames of
constant length that stand alone in a subscript of the temporary that is
written.  Each location owns its cells.  If all statements that touch the
temporary have the same set of locations, then running the writers for other
locations, too, changes only cells that nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, TemporaryVariable, ValueArg
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit.codegen.hardware import Hardware


@dataclass(frozen=True)
class Instances:
    """The instances that each statement executes, as sets over sizes and inames."""

    sets: dict[str, isl.Set]
    keys: dict[str, int]

    def of(self, statement: str) -> isl.Set:
        """The instances of one statement; equal ``keys`` mean equal sets."""
        return self.sets[statement]


def split_predicates(statement: Statement) -> tuple[isl.Set | None, tuple[Expression, ...]]:
    """The affine predicates as one set, and the rest."""
    affine: isl.Set | None = None
    rest = []
    for predicate in statement.predicates:
        try:
            condition = _sets.condition_set(predicate)
        except _sets.NotAffineError:
            rest.append(predicate)
        else:
            affine = condition if affine is None else affine & condition
    return affine, tuple(rest)


def executed_instances(kernel: Kernel, hardware: Hardware) -> Instances:
    """The set of instances that the emitted code executes, per statement."""
    enlarger = _Enlarger(kernel, hardware)
    sets: dict[str, isl.Set] = {}
    keys: dict[str, int] = {}
    numbers: dict[tuple[object, ...], int] = {}
    known: dict[int, isl.Set] = {}
    array_names = kernel.temporary_by_name.keys() | kernel.arg_by_name.keys()
    sizes = frozenset(kernel.sizes)
    for statement in kernel.statements:
        locations = enlarger.locations(statement)
        predicates = tuple(
            p for p in statement.predicates if not (_names(p) & (array_names - sizes))
        )
        key = (statement.inames, predicates, locations)
        number = numbers.setdefault(key, len(numbers))
        if number not in known:
            domain = kernel.statement_domain(statement)
            if locations:
                domain = enlarger.enlarged(domain, locations)
            condition, _ = split_predicates(statement)
            known[number] = domain if condition is None else domain & condition
        sets[statement.id], keys[statement.id] = known[number], number
    return Instances(sets, keys)


def _names(expr: Expression) -> frozenset[str]:
    from loopkit._expression import variable_names

    return variable_names(expr)


class _Enlarger:
    def __init__(self, kernel: Kernel, hardware: Hardware) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self._locations: dict[str, frozenset[str]] = {}

    def locations(self, statement: Statement) -> frozenset[str]:
        """The location inames along which the statement may run too often; may be empty."""
        name = statement.written
        if name not in self._locations:
            self._locations[name] = self._locations_of(name)
        inames = self._locations[name] & statement.inames
        if not inames or not self._reads_are_safe(statement, inames):
            return frozenset()
        return inames

    def _locations_of(self, name: str) -> frozenset[str]:
        kernel = self.kernel
        temporary = kernel.temporary_by_name.get(name)
        if temporary is None or temporary.address_space is not AddressSpace.PRIVATE:
            return frozenset()
        touching = {s.id: s for s in (*kernel.writers.get(name, ()), *kernel.readers.get(name, ()))}
        parallel = self.hardware.local_inames | self.hardware.group_inames
        shared: frozenset[str] | None = None
        for statement in touching.values():
            own = (statement.inames & parallel) | self._index_inames(statement, temporary)
            shared = own if shared is None else shared & own
        if not shared:
            return frozenset()
        domains = {s.inames: kernel.statement_domain(s) for s in touching.values()}
        places = [self._places(d, shared) for d in domains.values()]
        if any(not places[0].is_equal(p) for p in places[1:]):
            return frozenset()
        return shared

    def _places(self, domain: isl.Set, locations: frozenset[str]) -> isl.Set:
        outer = set(self.kernel.all_inames) - locations
        return _sets.project_out(domain, sorted(outer)) & self.kernel.assumptions.set

    def _index_inames(self, statement: Statement, temporary: TemporaryVariable) -> frozenset[str]:
        """Inames of constant length that stand alone in every access of the temporary."""
        found: frozenset[str] | None = None
        uses = [i for n, i in (statement.write, *statement.reads) if n == temporary.name]
        for indices in uses:
            alone = frozenset(i.name for i in indices if isinstance(i, prim.Variable))
            found = alone if found is None else found & alone
        return frozenset(
            i for i in (found or frozenset()) & statement.inames if self._box(i) is not None
        )

    def _box(self, iname: str) -> tuple[int, int] | None:
        coordinate = self.hardware.by_iname.get(iname)
        if coordinate is not None and coordinate.kind == "l":
            return coordinate.lower, coordinate.lower + int(coordinate.extent) - 1
        domain = self.kernel.domain_of([iname])
        low = _sets.minimum_value(domain, prim.Variable(iname))
        high = _sets.maximum_value(domain, prim.Variable(iname))
        return None if low is None or high is None else (low, high)

    def enlarged(self, domain: isl.Set, locations: frozenset[str]) -> isl.Set:
        """``domain`` for all locations of the launch, not only those of the domain."""
        places = _sets.project_out(domain, sorted(set(self.kernel.all_inames) - locations))
        return domain.gist(places) & self._launched(places, locations)

    def _launched(self, places: isl.Set, locations: frozenset[str]) -> isl.Set:
        blocks = sorted(locations - self.hardware.group_inames)
        launched = _sets.project_out(places, blocks)
        for iname in blocks:
            box = self._box(iname)
            if box is None:
                continue
            variable = prim.Variable(iname)
            launched = launched & _sets.condition_set(
                prim.LogicalAnd(
                    (
                        prim.Comparison(variable, ">=", box[0]),
                        prim.Comparison(variable, "<=", box[1]),
                    )
                )
            )
        return launched

    def _reads_are_safe(self, statement: Statement, locations: frozenset[str]) -> bool:
        """Whether all that the enlarged statement reads and writes exists."""
        kernel = self.kernel
        domain = None
        for name, indices in (statement.write, *statement.reads):
            array = kernel.temporary_by_name.get(name)
            if array is None:
                if name in kernel.home_domain or isinstance(kernel.arg_by_name.get(name), ValueArg):
                    continue
                return False
            if array.address_space is AddressSpace.GLOBAL:
                return False
            for index, extent in zip(indices, array.shape, strict=False):
                if domain is None:
                    domain = self.enlarged(kernel.statement_domain(statement), locations)
                    domain = domain & kernel.assumptions.set
                if not in_range(domain, index, extent):
                    return False
        return True


def in_range(domain: isl.Set, index: Expression, extent: Expression) -> bool:
    """Whether ``0 <= index < extent`` everywhere in ``domain``."""
    try:
        value, end = _sets.pw_affine(index), _sets.pw_affine(extent)
    except _sets.NotAffineError:
        return False
    zero = _sets.pw_affine(0)
    outside = value.lt_set(zero) | value.ge_set(end)
    return bool((domain & outside).is_empty())
