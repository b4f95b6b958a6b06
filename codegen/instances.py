"""Which instances each statement executes: its domain, or a superset where that is safe.

A statement that computes on private data only may execute for instances outside its domain (the
ragged edge of a tile), if the results are never used and the reads are in bounds. This avoids
guards in inner loops. Users' functions are never called for such instances, since their arguments
would be undefined. Collective operations execute on all threads of a block: initialisations of
partial results and combinations, even where the result is not used.

A *location* of a private temporary is a thread of a block together with the positions of a cell
along those axes whose index is, in every access, an iname of constant length. Each location owns
its cells. If all accesses of the temporary touch the same set of locations, then executing the
writers for other locations as well changes only cells that no statement reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, ValueArg
from loopkit._cached import memoised
from loopkit._collectives import is_collective
from loopkit._device_functions import own_calls
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._intervals import Interval, contains
from loopkit._intervals import of_expression as interval_of
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.pairs import between, is_inside
from loopkit._same import key_of, remembered
from loopkit.codegen.hardware import Hardware


@dataclass(frozen=True)
class Instances:
    """The instances that each statement executes, as sets over sizes and inames.

    Equal ``keys`` mean equal sets.
    """

    of: Mapping[str, isl.Set]
    keys: Mapping[str, int]


def split_predicates(
    kernel: Kernel, statement: Statement
) -> tuple[isl.Set, tuple[Expression, ...]]:
    """The predicates that are linear constraints on inames and sizes as one set, and the rest."""
    affine, rest = _sets.universe(), []
    for predicate in statement.predicates:
        condition = _convex(predicate) if variable_names(predicate) <= kernel.integers else None
        if condition is None:
            rest.append(predicate)
        else:
            affine = affine & condition
    return affine, tuple(rest)


@remembered(1 << 10)
def _convex(predicate: Expression) -> isl.Set | None:
    """The predicate as one conjunction of linear constraints.

    None for others: unions and congruences read better as the user wrote them,
    and no bound of a loop follows from them.
    """
    try:
        condition = _sets.condition_set(predicate).coalesce()
    except _sets.NotAffineError:
        return None
    basics = condition.get_basic_sets()
    if len(basics) > 1 or any(basic.dim(isl.dim_type.div) for basic in basics):
        return None
    return condition


def executed_instances(kernel: Kernel, hardware: Hardware) -> Instances:
    """For each statement, the set of instances that the generated code executes."""
    enlarger = _Enlarger(kernel, hardware)
    sets: dict[str, isl.Set] = {}
    keys: dict[str, int] = {}
    numbers: dict[tuple[object, ...], int] = {}
    known: dict[int, isl.Set] = {}
    for statement in kernel.statements:
        is_common = is_collective(kernel, statement)
        locations = frozenset() if is_common else enlarger.locations(statement)
        predicates = tuple(p for p in statement.predicates if variable_names(p) <= kernel.integers)
        key = (statement.inames, key_of(predicates), locations, is_common)
        number = numbers.setdefault(key, len(numbers))
        if number not in known:
            domain = kernel.statement_domain(statement)
            if locations:
                domain = enlarger.enlarged(statement.inames, locations)
            condition, rest = split_predicates(kernel, statement)
            has_conditions = len(rest) < len(statement.predicates)
            known[number] = domain & condition if has_conditions else domain
            if is_common:
                known[number] = enlarger.on_all_threads(known[number], statement)
            # What was enlarged for nothing is as it was.
            alike = (n for n, s in known.items() if n != number and s.plain_is_equal(known[number]))
            numbers[key] = number = next(alike, number)
        if is_common:
            enlarger.check_cells(statement, known[number])
        sets[statement.id], keys[statement.id] = known[number], number
    return Instances(sets, keys)


_ANYWHERE = (-(2**64), 2**64)


class _Enlarger:
    def __init__(self, kernel: Kernel, hardware: Hardware) -> None:
        self.kernel = kernel
        self.hardware = hardware

    def locations(self, statement: Statement) -> frozenset[str]:
        """The location inames along which the statement may execute outside its domain."""
        name = statement.written
        parallel, axes = self._shared(name)
        indices = statement.write[1]
        inames = parallel | {indices[a].name for a in axes}
        if not inames or not self._reads_are_safe(statement, inames):
            return frozenset()
        return inames

    @memoised
    def _shared(self, name: str) -> tuple[frozenset[str], tuple[int, ...]]:
        """Parallel inames and axes of a temporary that make up its locations."""
        nothing, kernel = (frozenset[str](), ()), self.kernel
        temporary = kernel.temporary_by_name.get(name)
        if temporary is None or temporary.address_space is not AddressSpace.PRIVATE:
            return nothing
        uses = [(s, i) for s in kernel.users(name) for n, i in s.accesses if n == name]
        parallel = self.hardware.local_inames | self.hardware.group_inames
        for statement, _ in uses:
            parallel &= statement.inames
        axes = tuple(
            axis
            for axis in range(len(temporary.shape))
            if all(self._stands_alone(s, indices[axis]) for s, indices in uses)
        )
        if not parallel and not axes:
            return nothing
        cells = {(s.inames, tuple(indices[a] for a in axes)): s for s, indices in uses}
        places = [self._places(s, cell, parallel) for (_, cell), s in cells.items()]
        if any(not one.is_equal(places[0]) for one in places[1:]):
            everywhere = reduce(isl.Set.union, places)
            # A loop that is empty for some sizes (a peeled one, say) touches nothing then.
            if any(not one.is_equal(everywhere & self._sizes_of(one)) for one in places):
                return nothing
        return parallel, axes

    def _stands_alone(self, statement: Statement, index: Expression) -> bool:
        """Whether an index is an iname of constant length, which then determines the position."""
        return (
            isinstance(index, prim.Variable)
            and index.name in statement.inames
            and self._box(index.name) is not None
        )

    def _places(
        self, statement: Statement, cell: tuple[Expression, ...], parallel: frozenset[str]
    ) -> isl.Set:
        """The locations of one access, over its parallel inames and its cell."""
        domain = self.kernel.statement_domain(statement)
        for position, index in enumerate(cell):
            domain = domain & _sets.equality(hidden("cell", position), index)
        others = sorted(set(self.kernel.all_inames) - parallel)
        return _sets.project_out(domain, others) & self.kernel.assumptions.set

    def _sizes_of(self, places: isl.Set) -> isl.Set:
        """The sizes for which some location exists."""
        names = set(_sets.names_of(places)) - set(self.kernel.sizes)
        return _sets.project_out(places, sorted(names))

    @memoised
    def _box(self, iname: str) -> tuple[int, int] | None:
        """The smallest and largest value of an iname of constant length."""
        coordinate = self.hardware.by_iname.get(iname)
        if coordinate is not None and coordinate.kind == "l":
            return coordinate.lower, coordinate.lower + int(coordinate.extent) - 1
        low, high = self.kernel.range_of(iname)
        return None if low is None or high is None else (low, high)

    @memoised
    def enlarged(self, inames: frozenset[str], locations: frozenset[str]) -> isl.Set:
        """The domain extended to all locations of the launch."""
        domain = self.kernel.domain_around(inames)
        places = _sets.project_out(domain, sorted(set(self.kernel.all_inames) - locations))
        others = sorted(locations - self.hardware.group_inames)
        launched = _sets.project_out(places, others)
        for iname in others:
            box = self._box(iname)
            if box is not None:
                launched = launched & between(iname, *box)
        return domain.gist(places) & launched & self._sizes_of(places)

    def on_all_threads(self, domain: isl.Set, statement: Statement) -> isl.Set:
        """A superset of ``domain``: what one thread executes, all threads of its block execute."""
        threads = sorted(statement.inames & self.hardware.local_inames)
        domain = _sets.project_out(domain, threads)
        for iname in threads:
            domain = domain & between(iname, *(self._box(iname) or (0, 0)))
        return domain

    def check_cells(self, statement: Statement, domain: isl.Set) -> None:
        """Raise if collective execution by all threads would be out of bounds."""
        name, indices = statement.write
        domain = domain & self.kernel.assumptions.set
        shape = self.kernel.temporary_by_name[name].shape
        if not all(is_inside(domain, *pair) for pair in zip(indices, shape, strict=False)):
            raise IllegalTransformError(
                f"threads without an instance of '{statement.id}' combine partial results, too, "
                f"and their '{to_text(statement.lhs)}' may lie outside of the array",
                instead=f"threads that do not index '{name}'; loops that fill the block; or the "
                "thread axis of the reduction a sequential loop",
            )

    def _reads_are_safe(self, statement: Statement, locations: frozenset[str]) -> bool:
        """Whether all accesses of the enlarged statement are in bounds."""
        kernel = self.kernel
        if any(any(own_calls(expr)) for expr in statement.expressions):
            # A function of the user's need not end for arguments that nothing has computed.
            return False
        if any(variable_names(p) & kernel.temporary_by_name.keys() for p in statement.predicates):
            # Where nothing has written a condition, it may be anything.
            return False
        if kernel.loaded_bounds(statement.inames):
            return False  # nor has anything loaded the bounds of its loops
        domain = None
        boxes = {i: self._box(i) for i in locations - self.hardware.group_inames}

        def ends_of(name: str) -> Interval:
            return boxes.get(name) or _ANYWHERE

        for name, indices in dict.fromkeys(statement.accesses):
            array = kernel.temporary_by_name.get(name)
            if array is None:
                if name in kernel.home_domain or isinstance(kernel.arg_by_name.get(name), ValueArg):
                    continue
                return False
            if array.address_space is AddressSpace.GLOBAL:
                return False
            for index, extent in zip(indices, array.shape, strict=False):
                if isinstance(extent, int) and variable_names(index) <= boxes.keys():
                    ends = interval_of(index, ends_of, _ANYWHERE, may_wrap=False)
                    if contains((0, extent - 1), ends):
                        continue
                if domain is None:
                    domain = self.enlarged(statement.inames, locations)
                    domain = domain & kernel.assumptions.set
                if not is_inside(domain, index, extent):
                    return False
        return True
