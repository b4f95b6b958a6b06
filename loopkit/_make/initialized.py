"""Whether every cell of a temporary is written before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Argument, ArrayArg
from loopkit._cached import cached_property
from loopkit._errors import Instance, UninitializedReadError, Witness
from loopkit._expression import to_text, variable_names
from loopkit._guarded import Guarded, guarded_reads
from loopkit._hidden import EARLIER, hidden, variable
from loopkit._kernel import Kernel, Statement
from loopkit._make.arguments import is_integer
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._rules import expand_rules
from loopkit._sets import NotAffineError
from loopkit._tree import Path, common_prefix, path_inames


@dataclass(frozen=True, eq=False)
class _Placed:
    statement: Statement
    position: int
    path: Path


@dataclass(frozen=True, eq=False)
class _Read:
    reader: _Placed
    name: str
    indices: tuple[Expression, ...]
    guards: tuple[Expression, ...]

    @property
    def text(self) -> str:
        if not self.indices:
            return self.name
        return f"{self.name}[{', '.join(to_text(i) for i in self.indices)}]"


def check_initialized(kernel: Kernel) -> tuple[Argument, ...]:
    """Raise :class:`UninitializedReadError` where a temporary is read that nothing wrote.

    Returns the arguments with what is known of them: which are written, and
    which may be read before they are.  The answer is exact for affine accesses
    and conditions.  Where data decide what is accessed or whether a statement
    runs, the read passes: the reference executor finds it.
    """
    checker = Checker(kernel)
    checker.check_temporaries()
    return tuple(checker.described(a) for a in kernel.args)


class Checker:
    """Compares what is read with what is written before, in the order of the tree."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = expand_rules(kernel)
        self.paths = kernel.paths
        self.temporaries = kernel.temporary_by_name
        self.inames = frozenset(kernel.all_inames)
        self.data = frozenset(self.temporaries).union(
            a.name for a in kernel.args if not is_integer(a)
        )
        self.placed = [
            _Placed(s, position, self.paths[s.id])
            for position, s in enumerate(self.kernel.statements)
        ]
        self._reads_of: dict[str, Sequence[Guarded]] = {}
        self.writers: dict[str, list[_Placed]] = {}
        for placed in self.placed:
            self.writers.setdefault(placed.statement.written, []).append(placed)

    def check_temporaries(self) -> None:
        """Raise for the first read of a temporary that nothing wrote before."""
        for placed in self.placed:
            for name, indices, guards in self._reads(placed.statement):
                if name not in self.temporaries:
                    continue
                read = _Read(placed, name, indices, guards)
                bad = self.uninitialized(read)
                if bad is not None:
                    raise self._error(read, bad)

    def described(self, argument: Argument) -> Argument:
        """An array argument with ``is_input`` and ``is_output`` filled in."""
        if not isinstance(argument, ArrayArg):
            return argument
        written, is_input = argument.name in self.writers, argument.is_input
        if is_input is None:
            is_input = any(
                not (written and self._is_plainly_written(_Read(placed, name, indices, guards)))
                for placed in self.readers.get(argument.name, ())
                for name, indices, guards in self._reads(placed.statement)
                if name == argument.name
            )
        is_output = written if argument.is_output is None else argument.is_output
        return replace(argument, is_input=is_input, is_output=is_output)

    @cached_property
    def readers(self) -> dict[str, list[_Placed]]:
        found: dict[str, list[_Placed]] = {}
        for placed in self.placed:
            for name in dict.fromkeys(r[0] for r in self._reads(placed.statement)):
                found.setdefault(name, []).append(placed)
        return found

    def _reads(self, statement: Statement) -> Sequence[Guarded]:
        """All reads of a statement, that of an update's target included."""
        found = self._reads_of.get(statement.id)
        if found is None:
            reads = guarded_reads(statement)
            if statement.operation is not None:
                reads.append((*statement.write, statement.predicates))
            found = list(self._once(reads)) if len(reads) > 1 else reads
            self._reads_of[statement.id] = found
        return found

    def _once(self, reads: Iterable[Guarded]) -> Iterable[Guarded]:
        """Different reads; one alone of what the kernel does not write."""
        ours = self.temporaries.keys() | self.writers.keys()
        return {(r if r[0] in ours else r[0]): r for r in reads}.values()

    # {{{ one read

    def uninitialized(self, read: _Read) -> isl.Set | None:
        """The instances, and sizes, for which a read finds nothing written; None without any.

        Inames and sizes keep their names; cells are called ``hidden("cell", 0)`` and so on.
        """
        writers = self.writers.get(read.name, [])
        if writers and self._is_plainly_written(read):
            return None
        try:
            left = self._read_set(read, exact=bool(writers))
        except NotAffineError:
            return None if writers else self._everything(read)
        before = [w for w in writers if w.position < read.reader.position]
        for writer in reversed(before):
            left = self._minus(left, read, writer, None)
            if left is None:
                return None
        for writer in writers:
            shared = common_prefix([writer.path, read.reader.path])
            for level in reversed(range(len(shared))):
                left = self._minus(left, read, writer, level)
                if left is None:
                    return None
        left = left & self.kernel.assumptions.set
        return None if left.is_empty() else left

    def _is_plainly_written(self, read: _Read) -> bool:
        """Whether one look shows a write of the same cell, just before in the same loops."""
        reader = read.reader
        for writer in reversed(self.writers.get(read.name, ())):
            if writer.position >= reader.position:
                continue
            statement = writer.statement
            if statement.write[1] != read.indices:
                continue
            length = len(writer.path)
            if reader.path[:length] != writer.path:
                continue
            if all(p in reader.statement.predicates for p in statement.predicates):
                return True
        return False

    def _everything(self, read: _Read) -> isl.Set:
        return self._domain(read.reader.statement) & self.kernel.assumptions.set

    def _domain(self, statement: Statement) -> isl.Set:
        """The instances of a statement; raises where data decide about them."""
        domain = self.kernel.statement_domain(statement)
        if _sets.involved_names(domain) & self.data:
            raise NotAffineError(statement.id)
        return domain

    def _conditions(self, guards: Sequence[Expression]) -> isl.Set:
        condition = _sets.universe()
        for guard in guards:
            part = _sets.condition_set(guard)
            if _sets.involved_names(part) & (
                self.temporaries.keys() | self.kernel.arg_by_name.keys() - set(self.kernel.sizes)
            ):
                raise NotAffineError(guard)
            condition = condition & part
        return condition

    def _read_set(self, read: _Read, *, exact: bool) -> isl.Set:
        """Instances and cells of a read; what data decide raises, or counts as true."""
        result = self._domain(read.reader.statement)
        try:
            result = result & self._conditions(read.guards)
        except NotAffineError:
            if exact:
                raise
        return result & self._cells(read.indices)

    def _cells(self, indices: Sequence[Expression]) -> isl.Set:
        result = _sets.universe()
        for number, index in enumerate(indices):
            if variable_names(index) & self.data:
                raise NotAffineError(index)
            cell = isl.PwAff.from_aff(_sets.affine(prim.Variable(hidden("cell", number))))
            result = result & cell.eq_set(_sets.pw_affine(index))
        return result

    def _minus(
        self, left: isl.Set, read: _Read, writer: _Placed, level: int | None
    ) -> isl.Set | None:
        """``left`` without the cells that ``writer`` has written; None if nothing is left.

        With a ``level``, by iterations of the shared loop at that depth that came
        before; without, in the same iteration of all shared loops.
        """
        statement = writer.statement
        shared = path_inames(common_prefix([writer.path, read.reader.path]))
        try:
            written = self._domain(statement) & self._cells(statement.write[1])
        except NotAffineError:
            return None
        for predicate in statement.predicates:
            try:
                written = written & self._conditions([predicate])
            except NotAffineError:
                continue
        same = shared if level is None else shared[:level]
        own = [i for i in _sets.names_of(written) if i in self.inames and i not in same]
        if level is not None:
            loop = shared[level]
            before = variable(loop, EARLIER)
            written = _sets.rename(written, {loop: before.name})
            own = [i for i in own if i != loop]
            earlier = prim.Comparison(before, "<", prim.Variable(loop))
            written = written & _sets.condition_set(earlier)
            own.append(before.name)
        written = _sets.project_out(written, own)
        left = left.subtract(written)
        return None if (left & self.kernel.assumptions.set).is_empty() else left

    # }}}

    def _error(self, read: _Read, bad: isl.Set) -> UninitializedReadError:
        statement = read.reader.statement
        kernel = self.kernel
        inames = [i for i in kernel.all_inames if i in statement.inames]
        cells = [hidden("cell", n) for n in range(len(read.indices))]
        sizes = sorted(set(_sets.names_of(bad)) - self.inames - set(cells))
        point = smallest_point(bad, [*sizes, *inames, *cells]) or {}
        whole = tuple(point[c] for c in cells if c in point)
        cell = f"{read.name}[{', '.join(map(str, whole))}]" if whole else read.text
        values = [f"{n}={point[n]}" for n in (*inames, *sizes) if n in point]
        where = f" for {', '.join(values)}" if values else ""
        writers = self.writers.get(read.name, [])
        if not writers:
            how = f"no statement writes '{read.name}'"
            instead = "write it first, or declare it as an argument in kernel_data"
        elif all(w.position > read.reader.position for w in writers):
            how = f"'{writers[0].statement.id}' writes it only afterwards"
            instead = f"move '{writers[0].statement.id}' in front of '{statement.id}'"
        else:
            names = ", ".join(f"'{w.statement.id}'" for w in writers[:4])
            how = f"what {names} wrote before does not reach that cell"
            instead = "initialise it, or say in the assumptions which sizes are possible"
        asked = statement.position.caret() if statement.position else ""
        return UninitializedReadError(
            f"statement '{statement.id}' reads {cell} before anything has been written "
            f"there{where}: {how}",
            witness=Witness(
                kind="uninitialized read",
                array=read.name,
                cell=whole if len(whole) == len(cells) else None,
                sink=Instance(statement.id, {i: point[i] for i in inames if i in point}),
                parameters={s: point[s] for s in sizes if s in point},
                suggestions=(instead,),
            ),
            asked=asked,
            instead=instead,
        )
