"""What statements touch of memory that threads share, and which of it sets describe exactly."""

from __future__ import annotations

from dataclasses import replace

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._cached import cached_property
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, decided, guarded_reads
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import runs_once_along
from loopkit.codegen.instances import Instances, split_predicates

Cell = tuple[Expression, ...]


@dataclass(frozen=True)
class Access:
    """What a statement reads of an array, or writes to it: index tuples, one per access.

    All of them happen under ``guards`` alone, conditions within the statement's expressions.
    """

    statement: str
    array: str
    cells: tuple[Cell, ...]
    is_write: bool
    guards: Guards = ()


class Accesses:
    """The accesses of all statements to shared and global arrays that the kernel writes."""

    def __init__(self, kernel: Kernel, instances: Instances) -> None:
        self.kernel = kernel
        self.instances = instances
        self.accesses = {s.id: self._find(s) for s in kernel.statements}
        self.by_array: dict[str, list[Access]] = {}
        for accesses in self.accesses.values():
            for access in accesses:
                self.by_array.setdefault(access.array, []).append(access)

    @cached_property
    def integers(self) -> frozenset[str]:
        """The names that mean the same integer to all threads, or one that sets know."""
        return frozenset(self.kernel.home_domain).union(self.kernel.sizes)

    def is_global(self, array: str) -> bool:
        """Whether all blocks share ``array``."""
        temporary = self.kernel.temporary_by_name.get(array)
        return temporary is None or temporary.address_space is AddressSpace.GLOBAL

    def crosses_threads(self, name: str) -> bool:
        """Whether several threads share ``name``, and the kernel writes it."""
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is not None:
            return temporary.address_space in (AddressSpace.LOCAL, AddressSpace.GLOBAL)
        array = self.kernel.arg_by_name.get(name)
        return isinstance(array, ArrayArg) and bool(self.kernel.writers.get(name))

    def _find(self, statement: Statement) -> tuple[Access, ...]:
        name, indices = statement.write
        found = [Access(statement.id, name, (indices,), True)]
        reads: dict[str, dict[Cell, None]] = {}
        for name, indices in statement.reads:
            reads.setdefault(name, {})[indices] = None
        found += [Access(statement.id, name, tuple(cells), False) for name, cells in reads.items()]
        return tuple(access for access in found if self.crosses_threads(access.array))

    def by_guards(self, access: Access) -> tuple[Access, ...]:
        """An access taken apart by the conditions under which the expressions make it."""
        if access.is_write:
            return (access,)
        statement = self.kernel.statement_by_id[access.statement]
        found: dict[Guards, dict[Cell, None]] = {}
        for name, indices, guards in guarded_reads(statement):
            if name == access.array:
                inner = tuple(g for g in guards if g not in statement.predicates)
                found.setdefault(inner, {})[indices] = None
        if statement.operation is not None and statement.written == access.array:
            found.setdefault((), {})[statement.write[1]] = None
        return tuple(replace(access, cells=(*c,), guards=g) for g, c in found.items())

    def kind(self, access: Access) -> tuple[object, ...]:
        """What decides an access's conflicts; statements that differ elsewhere share it."""
        statement = self.kernel.statement_by_id[access.statement]
        number = self.instances.keys[access.statement]
        placed = runs_once_along(self.kernel, statement)
        conditions = self.conditions(statement) + access.guards
        return (access.array, access.cells, number, statement.inames, placed, conditions)

    def conditions(self, statement: Statement) -> tuple[Expression, ...]:
        """Predicates that the statement's instances leave out although sets can hold them."""
        if not statement.predicates:
            return ()
        _, rest = split_predicates(self.kernel, statement)
        return tuple(
            p for p in rest if variable_names(p) <= self.integers and _sets.is_condition(p)
        )

    def is_plain_access(self, *accesses: Access) -> bool:
        """Whether sets hold exactly the instances and the cells of accesses."""
        return all(
            self._has_plain_instances(access)
            and all(self.is_plain(index) for cell in access.cells for index in cell)
            for access in accesses
        )

    def _has_plain_instances(self, access: Access) -> bool:
        statement = self.kernel.statement_by_id[access.statement]
        _, rest = split_predicates(self.kernel, statement)
        names = _sets.involved_names(self.instances.of[access.statement])
        if len(self.conditions(statement)) < len(rest) or not names <= self.integers:
            return False
        return all(decided(guard, self.integers) is not None for guard in access.guards)

    def is_plain(self, index: Expression) -> bool:
        """Whether an index is affine in inames and sizes."""
        return variable_names(index) <= self.integers and _sets.is_pw_affine(index)
