"""A statement as a function of the values of its inames."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopkit._hidden import hidden
from loopkit._kernel import Statement
from loopkit._make.operations import operations_of
from loopkit._reference.places import Axis
from loopkit._reference.source import code_of
from loopkit._verify import exact_numbers
from loopkit._verify.execution_orders import Order
from loopkit._verify.kernel_at_sizes import KernelAtSizes, UnsupportedError
from loopkit._verify.python_source import LOAD, USED, Printer

_VALUE = hidden("value")


class CompiledStatement:
    """A statement as a function of the values of its inames."""

    def __init__(
        self,
        at_sizes: KernelAtSizes,
        statement: Statement,
        numbers: Sequence[int | str],
        columns: tuple[str, ...],
        rows: list[list[int]],
        missing: list[Axis],
    ) -> None:
        self.statement = statement
        self.columns = columns
        self.rows = rows
        self.missing = missing
        extra = {a.key: hidden("axis", n) for n, a in enumerate(missing)}
        self.names = (*columns, *extra.values())
        number = {name: n for n, name in enumerate(self.names)}
        self.loops = [part if isinstance(part, int) else number[part] for part in numbers]
        self.is_value = [isinstance(part, str) for part in numbers]
        self.blocks: list[tuple[int | None, int]] = []
        self.threads: list[tuple[int | None, int]] = []
        for axis in at_sizes.axes.values():
            iname = axis.iname_of(statement)
            column = number[iname] if iname is not None else number.get(extra.get(axis.key, ""))
            first = axis.first[iname] if iname is not None else 0
            if axis.key[0] == "ilp":
                self.loops.append(number.get(iname or "", 0))
                self.is_value.append(iname is not None)
            else:
                (self.blocks if axis.key[0] == "g" else self.threads).append((column, first))
        self.function = _compiled(at_sizes, statement, self.names, extra)

    def all_rows(self) -> list[tuple[int, ...]]:
        """The values of all inames, and of the axes that the statement runs on all of."""
        if not self.missing:
            return [tuple(row) for row in self.rows]
        more = list(itertools.product(*(range(a.extent) for a in self.missing)))
        return [(*row, *m) for row in self.rows for m in more]

    def time(self, row: tuple[int, ...], order: Order) -> tuple[tuple[int, ...], ...]:
        """When the instance runs: tuples in lexicographic order."""
        sign = -1 if order.backwards else 1
        blocks = tuple(0 if c is None else sign * (row[c] - f) for c, f in self.blocks)
        threads = tuple(0 if c is None else sign * (row[c] - f) for c, f in self.threads)
        tree = tuple(
            row[part] if value else part
            for part, value in zip(self.loops, self.is_value, strict=True)
        )
        return (blocks, tree, threads) if order.by_block else (tree, blocks, threads)


def _compiled(
    at_sizes: KernelAtSizes, statement: Statement, names: tuple[str, ...], extra: Mapping[Any, str]
) -> Callable[..., Any]:
    printer = Printer(at_sizes, statement, extra)
    conditions = [printer(p) for p in statement.predicates]
    value = printer(statement.rhs)
    name, indices = statement.write
    if statement.operation is not None:
        own = printer.load(name, indices)
        operation = statement.operation
        combine = exact_numbers.REDUCTIONS.get(operation)
        if combine is None:
            combine = operations_of(at_sizes.kernel.reductions)[operation].reference
        value = f"{printer.bind(combine)}({own}, {value})"
    place = printer.place(name, indices)
    lines = [f"def run({LOAD}, {USED}, {', '.join(names)}):"]
    lines += [f"    if not {c}: return None" for c in conditions]
    lines.append(f"    {_VALUE} = {value}")
    lines.append(f"    return {place}, {_VALUE}")
    space = dict(printer.space)
    try:
        exec(code_of("\n".join(lines), f"<{statement.id}>"), space)
    except (SyntaxError, RecursionError, MemoryError):
        raise UnsupportedError(f"'{statement.id}' is nested too deeply to be run") from None
    function: Callable[..., Any] = space["run"]
    return function
