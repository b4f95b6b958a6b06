"""Check that every cell of a temporary, or of an unpassed array, is written before it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import islpy as isl

from loopkit._arrays import AddressSpace, Argument, ArrayArg, ConstantTable
from loopkit._cached import cached_property
from loopkit._errors import UninitializedReadError, caret_at
from loopkit._expression import Access
from loopkit._guarded import Guarded, Guards, all_guarded_reads
from loopkit._kernel import Kernel, Statement
from loopkit._places import is_plainly_written
from loopkit._poly.dataflow import Dataflow
from loopkit._poly.model import Model
from loopkit._poly.program_order import ProgramOrder
from loopkit._poly.smallest_case import smallest_access
from loopkit._relations import grouped
from loopkit._rules import expand_rules


def check_initialized(kernel: Kernel, handed_on: Collection[str] = ()) -> tuple[Argument, ...]:
    """Raise :class:`UninitializedReadError` for a read of a cell that was not written or passed.

    Returns the arguments with ``is_input`` and ``is_output``: which may be read before they are
    written, and which are written; exact for those ``handed_on``.  The check is exact for affine
    accesses and conditions.  Where an access or its execution depends on data, the read is
    accepted: the reference executor checks it.
    """
    checker = Checker(kernel, handed_on)
    checker.check_temporaries()
    return tuple(checker.described(a) for a in kernel.args)


class Checker:
    """Compares what is read with what is written before, in the order of the tree."""

    def __init__(self, kernel: Kernel, handed_on: Collection[str] = ()) -> None:
        self.handed_on = handed_on
        self.kernel = expand_rules(kernel)
        self.order = ProgramOrder(self.kernel)
        self.unpassed = {*kernel.temporary_by_name, *filter(self._is_unpassed, kernel.arg_by_name)}
        self.reads = [(s, read) for s in self.kernel.statements for read in self._reads(s)]
        self.reads_of = grouped((read[0], (s, read[:2], read[2])) for s, read in self.reads)

    @cached_property
    def dataflow(self) -> Dataflow:
        """The exact dataflow (last writers), computed only if the syntactic test fails."""
        return Dataflow(Model(self.kernel))

    def check_temporaries(self) -> None:
        """Raise for the first read of a cell of unpassed data that was not written before."""
        for statement, (name, indices, guards) in self.reads:
            access = (name, indices)
            if name not in self.unpassed or self._is_plainly_written(statement, access):
                continue
            bad = self.dataflow.unwritten(statement.id, access, guards)
            if bad is not None:
                raise self._error(statement, access, bad)

    def described(self, argument: Argument) -> Argument:
        """An array argument with ``is_input`` and ``is_output`` filled in."""
        if not isinstance(argument, ArrayArg):
            return argument
        written, is_input = argument.name in self.kernel.writers, argument.is_input
        if is_input is None:
            is_input = any(
                not (written and self._is_written(statement, access, guards))
                for statement, access, guards in self.reads_of.get(argument.name, ())
            )
        is_output = written if argument.is_output is None else argument.is_output
        return replace(argument, is_input=is_input, is_output=is_output)

    def _is_unpassed(self, name: str) -> bool:
        argument = self.kernel.arg_by_name[name]
        if not isinstance(argument, ArrayArg) or isinstance(argument, ConstantTable):
            return False
        return argument.is_input is False

    def _is_written(self, reader: Statement, access: Access, guards: Guards) -> bool:
        """Whether a cell has surely been written when it is read."""
        if self._is_plainly_written(reader, access):
            return True
        model = self.dataflow.model if access[0] in self.handed_on else None
        if model is None or not all(map(model.is_exact, self.kernel.writers[access[0]])):
            return False
        if any(map(model.is_beyond_sets, access[1])) or model.bounds_from_data(reader.id):
            return False
        known = all(model.condition(guard) is not None for guard in guards)
        return known and self.dataflow.unwritten(reader.id, access, guards) is None

    def _reads(self, statement: Statement) -> Iterable[Guarded]:
        """The distinct reads of a statement; one per array if the kernel does not write it."""
        reads = all_guarded_reads(self.kernel, statement)
        if len(reads) < 2:
            return reads
        return {(r if r[0] in self.kernel.changing else r[0]): r for r in reads}.values()

    def _is_plainly_written(self, reader: Statement, access: Access) -> bool:
        """Whether a syntactic test finds a write of the cell, in the same launch if required."""
        temporary = self.kernel.temporary_by_name.get(access[0])
        own = temporary is not None and temporary.address_space in (
            AddressSpace.PRIVATE,
            AddressSpace.LOCAL,
        )
        return is_plainly_written(self.kernel, reader, access, earlier=not own)

    def _error(self, reader: Statement, access: Access, bad: isl.Set) -> UninitializedReadError:
        name, indices = access
        case = smallest_access("uninitialized read", self.kernel, reader, name, indices, bad)
        writers = self.kernel.writers.get(name, ())
        if not writers:
            how = f"no statement writes '{name}'"
            instead = "write it first, or declare it as an argument in kernel_data"
        elif not any(self.order.is_above(w.id, reader.id) for w in writers):
            how = f"'{writers[0].id}' writes it only afterwards"
            instead = f"move '{writers[0].id}' in front of '{reader.id}'"
        else:
            names = ", ".join(f"'{w.id}'" for w in writers[:4])
            how = f"what {names} wrote before does not reach that cell"
            instead = "initialise it, or say in the assumptions which sizes are possible"
        return UninitializedReadError(
            f"statement '{reader.id}' reads {case.cell} before anything has been written "
            f"there{case.where}: {how}",
            witness=replace(case.witness, suggestions=(instead,)),
            asked=caret_at(reader.position),
            instead=instead,
        )
