"""The memory accesses of a schedule: which threads access which addresses, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, strides_of
from loopkit._cached import memoised
from loopkit._costs.launch_counts import Calls
from loopkit._expression import substitute, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, guarded_reads
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._linear import Linear, NotAffineError, linear, total
from loopkit._nodes import Expression
from loopkit._poly.dataflow import is_update
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import Axis
from loopkit._poly.places import places_of
from loopkit._same import key_of
from loopkit._simplify import simplify
from loopkit.codegen.bounds import determined_value
from loopkit.codegen.hardware import find_hardware
from loopkit.codegen.instances import executed_instances

THREADS: tuple[Axis, ...] = (("l", 0), ("l", 1), ("l", 2))
BLOCKS: tuple[Axis, ...] = (("g", 0), ("g", 1), ("g", 2))


@dataclass(frozen=True)
class Access:
    """One read or write in a statement: each thread that executes it accesses one element.

    An atomic update is one write, which also reads (``is_atomic``).  ``guards`` are the conditions
    in the statement's text under which the access happens.
    """

    statement: str
    array: str
    indices: tuple[Expression, ...]
    is_write: bool
    guards: Guards = ()
    is_atomic: bool = False


@dataclass(frozen=True, eq=False)
class AddressMap:
    """``{ blocks, threads, loops, others, sizes : the access happens }`` and its address.

    ``requests`` are the names that distinguish the requests of one thread.  ``lanes`` are the
    thread index on each axis: a name and its first value, or None where only index 0 runs;
    ``blocks`` is the same for the block index, whose names are among the requests.  ``others`` are
    functions of all these.  ``cell`` and ``address``, in elements of the array, are linear forms
    over all names.  Maps of one kernel at the same sizes with equal ``key`` have one domain.
    """

    key: object

    domain: isl.Set
    requests: tuple[str, ...]
    lanes: tuple[tuple[str, int] | None, ...]
    others: tuple[str, ...]
    blocks: tuple[tuple[str, int] | None, ...]
    cell: tuple[Linear, ...]
    address: Linear
    at_most: bool = False
    """Whether data decide where in the domain the access is made."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the domain."""
        return (*self.requests, *self.lane_names, *self.others)

    @property
    def lane_names(self) -> tuple[str, ...]:
        """The names of a thread's index in its block."""
        return tuple(lane[0] for lane in self.lanes if lane is not None)

    @property
    def block_names(self) -> tuple[str, ...]:
        """The names of a block's index in the grid."""
        return tuple(block[0] for block in self.blocks if block is not None)


def accesses_of(kernel: Kernel) -> Iterator[Access]:
    """What the statements of a kernel without rules access: each once a statement."""
    for statement in kernel.statements:
        known: dict[object, Access] = {}
        name, indices = statement.write
        reads = guarded_reads(statement)
        is_atomic = statement.is_atomic and space_of(kernel, name) is not AddressSpace.PRIVATE
        if is_update(statement) and not is_atomic:
            reads = [(name, indices, ()), *reads]
        for array, subscripts, guards in reads:
            if kernel.is_array(array) and subscripts:
                key = key_of((array, subscripts))
                first = known.setdefault(
                    key, Access(statement.id, array, subscripts, False, guards)
                )
                if first.guards and not guards:
                    known[key] = Access(statement.id, array, subscripts, False)
        yield from known.values()
        if indices:
            yield Access(statement.id, name, indices, True, is_atomic=is_atomic)


def text_of(access: Access) -> str:
    """An access as it is written."""
    return f"{access.array}[{', '.join(map(to_text, access.indices))}]"


def space_of(kernel: Kernel, array: str) -> AddressSpace:
    """Where an array lies; arguments lie in global memory."""
    declared = kernel.array(array)
    if isinstance(declared, ArrayArg):
        return AddressSpace.GLOBAL
    return declared.address_space


def itemsize_of(kernel: Kernel, array: str) -> int:
    """The bytes of an element of an array."""
    dtype = kernel.array(array).dtype
    assert dtype is not None  # all types are inferred by now
    return dtype.itemsize


def address_map(
    model: Model,
    access: Access,
    sizes: Mapping[str, int],
    array: ArrayArg | TemporaryVariable | None = None,
    *,
    as_if: bool = False,
) -> AddressMap:
    """Which threads make an access to which addresses, at these sizes, as the code runs.

    ``array`` is the accessed one, laid out in another way.  ``as_if`` takes conditions on data to
    hold: threads make it at most where the map says so.  Raises :class:`NotAffineError` where data
    decide that, or, with ``as_if``, the address.
    """
    statement = model.statement[access.statement]
    at_most = _is_at_most(model, statement, access)
    if model.bounds_from_data(access.statement) or (
        not as_if and (at_most or model.conditions_on_data(statement))
    ):
        raise NotAffineError
    if any(variable_names(index) & model.data for index in access.indices):
        raise NotAffineError
    domain = executed_by(model, statement.id)
    if access.guards:
        domain = domain & model.where_evaluated(access.guards, "")
    cell, quotients = _cell(access.indices, sizes)
    array = array or model.array(access.array)
    strides = [_sets.value_at(s, sizes) for s in strides_of(array)]
    for name, atom in quotients.items():
        domain = domain & _sets.equality(name, atom)
    places = places_of(array, [form.expression for form in cell])
    if places.digits:
        domain = domain & places.tied
    lanes, blocks = lanes_and_blocks(model, statement.id)
    return AddressMap(
        (access.statement, key_of((access.guards, tuple(quotients.items()), places.tying))),
        domain,
        requests_around(model, statement.id),
        lanes,
        (*sorted(_tied(model, statement.id)), *quotients, *places.digits),
        blocks,
        cell,
        total([linear(p) * stride for p, stride in zip(places.along, strides, strict=True)]),
        at_most,
    )


def in_calls(where: AddressMap, calls: Calls) -> AddressMap:
    """The map for all calls of a launch, in which each call has requests of its own."""
    if not calls.loops:
        return where
    requests = (*calls.loops, *where.requests)
    return replace(where, domain=calls.among(where.domain), requests=requests)


def _is_at_most(model: Model, statement: Statement, access: Access) -> bool:
    """Whether it depends on data if an access happens where its statement's domain allows it.

    A data access inside the first such condition is not guarded by it, and happens for all
    instances.
    """
    return any(model.condition(c) is None for c in conditions_of(statement, access))


def conditions_of(statement: Statement, access: Access) -> Guards:
    """Under which conditions an access is made, beside those that its statement's domain knows."""
    return (*access.guards, *(statement.predicates if is_target(statement, access) else ()))


def is_target(statement: Statement, access: Access) -> bool:
    """Whether an access is of the cell that its statement writes: all conditions are for it."""
    return access.is_write or (
        is_update(statement) and key_of(statement.write) == key_of((access.array, access.indices))
    )


@memoised
def executed_by(model: Model, name: str) -> isl.Set:
    """``{ inames, sizes : the code executes the statement }``, with the threads that all run it.

    That is the statement's domain, or more: what computes on private data alone may run where
    the domain leaves it out, which keeps guards out of inner loops, and reads shared memory there.
    """
    statement, at = model.statement[name], Instance(name, "")
    bounds, _ = model.everywhere(at)
    written = model.kernel.temporary_by_name.get(statement.written)
    if written is None or written.address_space is not AddressSpace.PRIVATE:
        return model.domain(at) & bounds
    domain = _instances(model.kernel)[statement.id] & model.kernel.assumptions.set
    conditions = map(model.condition, statement.predicates)
    return reduce(isl.Set.intersect, (c for c in conditions if c is not None), domain) & bounds


@memoised
def _instances(kernel: Kernel) -> Mapping[str, isl.Set]:
    return executed_instances(kernel, find_hardware(kernel)).of


@memoised
def _tied(model: Model, name: str) -> frozenset[str]:
    """Inames of a statement that are no loops: functions of its other inames."""
    kernel, statement = model.kernel, model.statement[name]
    visible = {iname for iname in statement.inames if model.axis_of(iname) is not None}
    found = set()
    for iname, _ in kernel.paths[statement.id]:
        domain = kernel.domains[kernel.home_domain[iname]]
        hidden_inames = frozenset(domain.inames) - visible - {iname}
        if iname not in visible and determined_value(domain.set, iname, hidden_inames) is not None:
            found.add(iname)
        visible.add(iname)
    return frozenset(found)


Indices = tuple[tuple[str, int] | None, ...]


@memoised
def requests_around(model: Model, name: str) -> tuple[str, ...]:
    """The names that distinguish the requests of one thread in a statement: blocks and loops."""
    lanes, blocks = lanes_and_blocks(model, name)
    taken = {lane[0] for lane in lanes if lane is not None} | _tied(model, name)
    others = {block[0] for block in blocks if block is not None}
    return tuple(sorted((model.statement[name].inames | others) - taken))


@memoised
def lanes_and_blocks(model: Model, name: str) -> tuple[Indices, Indices]:
    """The names of a thread's and of a block's index on each axis, and the values of index 0."""
    statement, (_, everywhere) = model.statement[name], model.everywhere(Instance(name, ""))
    lanes, blocks = (
        tuple(_index(model, statement, axis, everywhere) for axis in axes)
        for axes in (THREADS, BLOCKS)
    )
    return lanes, blocks


def _index(
    model: Model, statement: Statement, axis: Axis, everywhere: Mapping[Axis, Expression]
) -> tuple[str, int] | None:
    """The name of a thread's or a block's index on an axis, and the value that index 0 has."""
    for iname in model.inames_on.get(axis, ()):
        if iname in statement.inames:
            return iname, model.lower(iname)
    return (everywhere[axis].name, 0) if axis in everywhere else None


def _cell(
    indices: Sequence[Expression], sizes: Mapping[str, int]
) -> tuple[tuple[Linear, ...], dict[str, Expression]]:
    """The subscripts of an element, and the meaning of names for their quotients and extrema."""
    forms = []
    quotients: dict[str, Expression] = {}
    for index in indices:
        index = simplify(substitute(index, sizes))
        try:
            form = linear(index)
        except NotAffineError:
            if not _sets.is_pw_affine(index):
                raise
            form = Linear({index: 1})
        terms: dict[Expression, int] = {}
        for atom, coefficient in form.terms.items():
            if not isinstance(atom, prim.Variable):
                name = hidden("quotient", len(quotients))
                quotients[name] = atom
                atom = prim.Variable(name)
            terms[atom] = coefficient
        forms.append(Linear(terms, form.constant))
    return tuple(forms), quotients
