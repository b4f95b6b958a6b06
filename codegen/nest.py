"""From the loop tree to nested loops, guards and barriers, still without C types and names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from typing import TypeVar

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._budget import SpentError, in_turn, within
from loopkit._cached import memoised
from loopkit._collectives import TOGETHER, is_collective
from loopkit._errors import UndecidedError
from loopkit._expression import divisions_in, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import conjuncts
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.pairs import between
from loopkit._tags import InstructionParallel, Unroll
from loopkit._target import CUDA
from loopkit._uniform import varying
from loopkit.codegen.barriers import GuardedLoop, PlacedNode, leaves, place_barriers
from loopkit.codegen.bounds import (
    Bounds,
    conjunction,
    determined_value,
    guard,
    guard_with_quotients,
    loop_bounds,
    one_value,
    single_basic_set,
)
from loopkit.codegen.combinations import is_combined, is_shuffled
from loopkit.codegen.complements import guarded_all, with_branches
from loopkit.codegen.conflicts import Conflicts
from loopkit.codegen.convergence import check_meetings, converged
from loopkit.codegen.exits import Exits, exits_of
from loopkit.codegen.hardware import Hardware, find_hardware
from loopkit.codegen.instances import Instances, executed_instances, split_predicates
from loopkit.codegen.ir import (
    Barrier,
    Code,
    Do,
    For,
    If,
    Leave,
    Let,
    of_whole_numbers,
    walk,
)
from loopkit.codegen.races import check_races

R = TypeVar("R")


@dataclass(frozen=True)
class Nest:
    """A kernel's code, its launch configuration, and whether its threads use barriers.

    ``gone`` are flags that need no code, because the loops that they end are left early.
    """

    code: tuple[Code, ...]
    hardware: Hardware
    instances: Instances
    has_barrier: bool
    gone: frozenset[str] = frozenset()


@in_turn
@memoised
def nest_of(kernel: Kernel) -> Nest:
    """The nest of a prepared kernel (memoised), for printing, lowering and counting.

    Raises :class:`~loopkit.UndecidedError` if isl exceeds its budget for bounds, guards and
    barriers.
    """
    return in_time(kernel, partial(make_nest, kernel))


def in_time(kernel: Kernel, work: Callable[[], R]) -> R:
    """The result of a part of lowering, computed within the budget that all such parts share."""
    allowed = _budget.LOWERING * len(kernel.statements)
    try:
        return within(allowed, work)
    except SpentError:
        raise UndecidedError(
            f"isl did not work out the loops of '{kernel.name}' within {allowed:,} operations",
            instead="fewer conditions on one iname, or splits by constants that divide each "
            "other, leave simpler bounds",
        ) from None


def make_nest(kernel: Kernel) -> Nest:
    """Loops, guards and barriers of a kernel whose address spaces are decided."""
    hardware = find_hardware(kernel)
    instances = executed_instances(kernel, hardware)
    conflicts = Conflicts(kernel, hardware, instances)
    check_races(conflicts)
    check_meetings(conflicts.kernel)
    placed = place_barriers(conflicts)
    walker = _Walker(kernel, hardware, instances)
    walker.exits = exits_of(kernel, placed, lambda s: not walker.chosen_thread(s))
    code = walker.sequence(placed, walker.untold(), frozenset(hardware.by_iname))
    shuffles, meet = (partial(f, kernel, block=hardware.block) for f in (is_shuffled, is_combined))
    code = converged(kernel, code, shuffles, meet)
    waits = any(isinstance(node, Barrier) for node in walk(code))
    return Nest(code, hardware, instances, waits, walker.exits.flags)


def statements_of(node: PlacedNode) -> tuple[str, ...]:
    """Statement ids below a placed node."""
    return tuple(leaf for leaf in leaves(node) if isinstance(leaf, str))


def has_barrier(node: PlacedNode) -> bool:
    """Whether a barrier stands below a placed node."""
    return any(isinstance(leaf, Barrier) for leaf in leaves(node))


def index_divisions(statement: Statement) -> list[Expression]:
    """The affine quotients and remainders in a statement's subscripts."""
    found: dict[Expression, None] = {}
    for _, indices in statement.accesses:
        for index in indices:
            found.update(dict.fromkeys(d for d in divisions_in(index) if _sets.is_affine(d)))
    return list(found)


def loosened(domain: isl.Set) -> isl.Set:
    """A superset of ``domain`` that is one conjunction without integer divisions.

    What stands outside a loop may test less than the statements inside, and
    should be cheap and short.
    """
    # Divisions go first: making them explicit can take isl seconds, and most pieces of a
    # union then differ in nothing else.
    return single_basic_set(domain.remove_divs()).remove_redundancies().to_set()


class _Walker:
    def __init__(self, kernel: Kernel, hardware: Hardware, instances: Instances) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self.instances = instances
        self.domains = {instances.keys[s]: domain for s, domain in instances.of.items()}
        self.meetings = {s.id for s in kernel.statements if s.kind in TOGETHER}
        self.exits = Exits()
        self.loops: list[GuardedLoop] = []
        self.held: list[Expression] = []

    def untold(self) -> isl.Set:
        """The assumptions on sizes, with names in the order in which conditions list them."""
        inames = frozenset(self.hardware.by_iname)
        sizes = self.kernel.assumptions.set
        return sizes.align_params((sizes & self._launch(inames)).get_space())

    def context(self, told: isl.Set, statements: Collection[str]) -> isl.Set:
        """What holds for hardware indices and sizes where some statements execute, within
        ``told``.

        Hardware axes that these statements do not use are left out, to make the question easier
        for isl.
        """
        inames = frozenset().union(*(self.kernel.statement_by_id[s].inames for s in statements))
        inames |= _sets.involved_names(told)
        launched = self._launch(inames.intersection(self.hardware.by_iname))
        return (launched & told).drop_unused_params()

    @memoised
    def _launch(self, inames: frozenset[str]) -> isl.Set:
        """What holds for the hardware indices of some inames in every thread of the launch."""
        context = _sets.universe()
        for coordinate in self.hardware.coordinates:
            if coordinate.iname not in inames:
                continue
            variable = prim.Variable(coordinate.iname)
            low = prim.Comparison(variable, ">=", coordinate.lower)
            context = context & _sets.condition_set(low)
            if coordinate.is_exact:
                end = prim.Sum((coordinate.extent, coordinate.lower))
                context = context & _sets.condition_set(prim.Comparison(variable, "<", end))
        return context

    def reach(self, statements: tuple[str, ...], known: frozenset[str]) -> isl.Set:
        """The points, over the names ``known``, at which some of the statements execute."""
        numbers = dict.fromkeys(self.instances.keys[s] for s in statements)
        return reduce(isl.Set.union, [self._projected(n, known) for n in numbers]).coalesce()

    @memoised
    def _projected(self, number: int, known: frozenset[str]) -> isl.Set:
        """The instances of that number, over the inames in ``known``."""
        domain = self.domains[number]
        hidden = set(_sets.names_of(domain)).intersection(self.kernel.all_inames) - known
        return _sets.project_out(domain, sorted(hidden)).coalesce()

    def sequence(
        self, nodes: tuple[PlacedNode, ...], told: isl.Set, known: frozenset[str]
    ) -> tuple[Code, ...]:
        """The code of consecutive nodes; ``told`` is what enclosing loops and guards enforce."""
        made: list[tuple[Expression, tuple[Code, ...], PlacedNode]] = []
        for node in nodes:
            if isinstance(node, Barrier):
                made.append((True, (node,), node))
                continue
            condition, code = self.node(node, told, known)
            if condition is not False:
                made.append((condition, code, node))
        groups: list[tuple[Expression, list[Code]]] = []
        for place, (condition, code, node) in enumerate(made):
            if condition is True and groups:
                around = groups[-1][0]
                after = (c for c, _, n in made[place:] if c is not True or isinstance(n, Barrier))
                behind = next(after, True)
                if {*conjuncts(around)} <= {*conjuncts(behind)}:
                    holds = self.room_in(node, around)
                    if holds is not None:
                        condition, code = around, self.node(node, told & holds, known)[1]
            if (
                groups
                and condition is not True
                and groups[-1][0] == condition
                and not self.changed(condition, groups[-1][1])
            ):
                groups[-1][1].extend(code)
            else:
                groups.append((condition, list(code)))

        def guarded(condition: Expression, members: Sequence[Code]) -> Code:
            inside = (s for n in nodes for s in statements_of(n))
            return If(self.data_last(condition), tuple(members), (self.context(told, {*inside}),))

        return tuple(guarded_all(with_branches(groups, guarded), guarded))

    def room_in(self, node: PlacedNode, condition: Expression) -> isl.Set | None:
        """The set where a guard holds, if code in it may execute for more threads than it must.

        None for collective code, barriers, and conditions that are not affine or not implied by
        domains.
        """
        if condition is True or has_barrier(node):
            return None
        statements = [self.kernel.statement_by_id[s] for s in statements_of(node)]
        if any(is_collective(self.kernel, s) or s.kind in TOGETHER for s in statements):
            return None
        try:
            holds = _sets.condition_set(condition)
        except _sets.NotAffineError:
            return None
        domains = map(self.kernel.statement_domain, statements)
        return holds if all(d.is_subset(holds) for d in domains) else None

    def changed(self, condition: Expression, code: list[Code]) -> bool:
        """Whether code writes a variable that a condition reads: then it is evaluated again."""
        read = frozenset(filter(self.kernel.is_array, variable_names(condition)))
        inside = walk(tuple(code)) if read else ()
        return any(isinstance(n, Do) and n.statement.written in read for n in inside)

    def data_last(self, condition: Expression) -> Expression:
        """A conjunction ordered so that conditions precede the data reads that they make valid."""
        if not isinstance(condition, prim.LogicalAnd):
            return condition
        return prim.LogicalAnd(tuple(sorted(condition.children, key=self.data_read)))

    def data_read(self, expr: Expression) -> int:
        """0 if a condition reads no data, 2 if it is about loaded loop bounds, 1 for all others.

        The others may guard the loads of the bounds.
        """
        inames = variable_names(expr) & self.kernel.home_domain.keys()
        by_bounds = self.kernel.bounding & variable_names(expr) or self.kernel.loaded_bounds(inames)
        return 2 if by_bounds else int(self.reads_data(expr))

    def reads_data(self, expr: Expression) -> bool:
        return any(map(self.kernel.is_array, variable_names(expr)))

    def node(
        self, node: PlacedNode, told: isl.Set, known: frozenset[str]
    ) -> tuple[Expression, tuple[Code, ...]]:
        """The guard of a node, and its code."""
        assert not isinstance(node, Barrier)
        statements = statements_of(node)
        context = self.context(told, statements)
        uniform = has_barrier(node) or not self.meetings.isdisjoint(statements)
        visible = known - self.hardware.local_inames if uniform else known
        if isinstance(node, str):
            if node in self.exits.starts:
                return False, ()
            statement = self.kernel.statement_by_id[node]
            reach = self.reach(statements, visible)
            condition = guard_with_quotients(reach, context, index_divisions(statement))
            condition = of_whole_numbers(condition)
            _, rest = split_predicates(self.kernel, statement)
            if is_collective(self.kernel, statement):
                # What inames decide leaves out instances, which all threads run.
                rest = tuple(filter(self.reads_data, rest))
            chosen = self.chosen_thread(statement)
            rest = tuple(p for p in (*chosen, *rest) if p not in self.held)
            whole = conjunction(condition, *(p for p in rest if p not in self.exits.conditions))
            if statement.written in self.exits.flags:
                return whole, (Leave(statement, (context, reach), self.left_by(statement)),)
            return whole, (Do(statement, (context, reach)),)
        reach = self.reach(statements, visible | {node.iname})
        if reach.is_empty():
            return False, ()
        where = self.reach(statements, visible)
        data = [name for name in _sets.involved_names(reach) if self.kernel.is_array(name)]
        # Data are read for the bounds, and may have been written only where the loop runs, which
        # those that bound loops around may decide.
        around = self.kernel.loaded_bounds(known - self.hardware.by_iname.keys())
        where = _sets.project_out(where, {*data}.difference(around)) if data else loosened(where)
        alone = self.bounds(node, reach, context)
        flags = self.exits.loops.get(id(node), ())
        if alone.value is None and not flags:
            alone = self.tied(node, reach, visible) or alone
        # What is left has to be a loop, however often it runs.
        if alone.value is not None and not flags:
            # One value: what the domain asks beyond it is tested inside.
            # Data are read for it, which are written only where the loop runs.
            tested = where if self.reads_data(alone.value) else _sets.universe()
            condition, enforced = guard(tested, context)
            inside = told & enforced & alone.enforced
            body = self.sequence(node.body, inside, known | {node.iname})
            if not body or condition is False:
                return False, ()
            let = Let(node.iname, alone.value, body, (context, enforced))
            return of_whole_numbers(condition), (let,)
        runs = context if data else context & alone.enforced
        condition, enforced, bounds = self.entry(node, reach, where, context, runs, alone)
        if condition is False:
            return False, ()
        by_data = self.shared_conditions(statements, visible, uniform) if data else ()
        self.loops.append(node)
        self.held += by_data
        inside = told & enforced & bounds.enforced
        body = self.sequence(node.body, inside, known | {node.iname})
        self.loops.pop()
        del self.held[len(self.held) - len(by_data) :]
        if not body:
            return False, ()
        unroll, ends = self.is_unrolled(node.iname), (bounds.lower, bounds.upper)
        loop = For(node.iname, *ends, bounds.step, unroll, body, (context, enforced), flags)
        return conjunction(of_whole_numbers(condition), *by_data), (loop,)

    def shared_conditions(
        self, statements: Sequence[str], known: frozenset[str], uniform: bool
    ) -> tuple[Expression, ...]:
        """Conditions under which all of some statements execute, and which none of them changes.

        They select the threads that enter a loop, and guard the loads of its bounds. With
        ``uniform``, only conditions that have one value for all threads of a block.
        """
        inside = [self.kernel.statement_by_id[s] for s in statements]
        chosen = [() if uniform else self.chosen_thread(s) for s in inside]
        tested = [
            [*mine, *split_predicates(self.kernel, s)[1]]
            for mine, s in zip(chosen, inside, strict=True)
        ]
        changed = {s.written for s in inside} | ({*self.kernel.all_inames} - known)
        return tuple(
            p
            for p in tested[0]
            if all(p in its for its in tested)
            and variable_names(p).isdisjoint(changed)
            and not (uniform and varying(self.kernel, variable_names(p)))
            and p not in (*self.exits.conditions, *self.held)
        )

    def left_by(self, statement: Statement) -> str:
        """The loop that a statement ends, if it is not the innermost enclosing one; else ""."""
        *outer, inner = self.loops
        flags = self.exits.loops
        if statement.written in flags.get(id(inner), ()):
            return ""
        return next(o.iname for o in outer if statement.written in flags.get(id(o), ()))

    def tied(self, node: GuardedLoop, reach: isl.Set, visible: frozenset[str]) -> Bounds | None:
        """The single value of an iname that an equality with other names determines."""
        if self.is_unrolled(node.iname):
            return None
        domain = self.kernel.domains[self.kernel.home_domain[node.iname]]
        hidden = frozenset(domain.inames) - visible - {node.iname}
        value = determined_value(domain.set, node.iname, hidden)
        bounds = None if value is None else one_value(node.iname, value)
        return bounds if bounds is not None and reach.is_subset(bounds.enforced) else None

    def entry(
        self,
        node: GuardedLoop,
        reach: isl.Set,
        where: isl.Set,
        context: isl.Set,
        known: isl.Set,
        alone: Bounds,
    ) -> tuple[Expression, isl.Set, Bounds]:
        """The guard of a loop, the set that it enforces, and the loop's bounds under it.

        What is ``known`` needs no guard: where it fails, the loop has no iterations. ``alone`` are
        the bounds if there were no guard.
        """
        condition, enforced = guard(where, known)
        if condition is True:
            return True, enforced, alone
        if node.iname in variable_names(condition):
            # Said shorter with the loop's own iname, which has no value out here.
            condition, enforced = guard(where, _sets.project_out(known, [node.iname]))
        inner = context & enforced
        bounds = self.bounds(node, reach, inner)
        if bounds.enforced.plain_is_equal(alone.enforced):
            return condition, enforced, bounds  # in these bounds, the guard leaves ``where`` alone
        if not (inner & bounds.enforced).is_subset(where):
            condition, enforced = guard(where, context)
            bounds = self.bounds(node, reach, context & enforced)
        return condition, enforced, bounds

    def is_unrolled(self, iname: str) -> bool:
        """Whether a loop is to be written out whole."""
        return isinstance(self.kernel.iname_tags.get(iname), (Unroll, InstructionParallel))

    def bounds(self, node: GuardedLoop, reach: isl.Set, context: isl.Set) -> Bounds:
        if self.is_unrolled(node.iname):
            # Where the bounds of all copies are constants, guards do the rest.
            for low, high in (
                f(node.iname) for f in (self.kernel.range_of, self.kernel.range_around)
            ):
                if low is not None and high is not None:
                    return Bounds(low, high + 1, 1, between(node.iname, low, high))
        return loop_bounds(reach, node.iname, context)

    def chosen_thread(self, statement: Statement) -> list[Expression]:
        """Conditions that select one thread along axes for which the statement has no iname."""
        return [
            prim.Comparison(prim.Variable(CUDA.index(*axis)), "==", 0)
            for axis in self.hardware.alone(self.kernel, statement)
        ]
