"""Execution of the loop tree, one statement instance at a time."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, ConstantTable, ValueArg, is_computed
from loopkit._assertions.check import check_data
from loopkit._budget import in_turn
from loopkit._errors import (
    AssumptionError,
    Instance,
    LaunchError,
    LoopkitError,
    OutOfBoundsError,
    UninitializedReadError,
    UnknownNameError,
    Witness,
)
from loopkit._expression import evaluate, to_text
from loopkit._kernel import Kernel
from loopkit._make.type_inference import infer_types
from loopkit._points import points_of
from loopkit._poly.pairs import between
from loopkit._reference.compile_statement import Compiled, Store, compile_statement
from loopkit._reference.copy_axes import column_of, copies_of, find_axes, loops_as_tagged
from loopkit._reference.endings import Ending, Pieces, endings_of
from loopkit._reference.memory import Memory, temporary
from loopkit._rules import expand_rules
from loopkit._tree import Loop, Tree, statements_in


@in_turn
def run_reference(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a kernel computes, by executing its tree instance by instance.

    Parameters
    ----------
    kernel
        Any kernel, transformed or not. Parallel inames, and those tagged ``ilp``,
        count as loops around each statement: a statement is executed for all its
        coordinates before the next one in the tree. Private temporaries exist once
        per thread, shared ones once per block.
    given
        Arrays and sizes by name. Sizes that are the extent of an array may be
        left out, and so may arrays that are only written.

    Returns the arrays that are written, by name, in the order of the
    arguments; what was given is not changed. Raises :class:`AssumptionError`
    where sizes or data are not what the kernel assumes,
    :class:`OutOfBoundsError` and :class:`UninitializedReadError` with the
    instance that goes wrong.
    """
    kernel = infer_types(expand_rules(kernel))
    sizes, values = _values(kernel, given)
    if _sets.at_values(kernel.assumptions.set, sizes).is_empty():
        text = to_text(_sets.conditions(kernel.assumptions.set))
        shown = ", ".join(f"{n}={v}" for n, v in sizes.items())
        raise AssumptionError(f"the kernel assumes {text}, but {shown}")
    memories = {
        a.name: _array(kernel, a, given, sizes) for a in kernel.args if isinstance(a, ArrayArg)
    }
    check_data(kernel.name, kernel.assertions, {n: m.data for n, m in memories.items()}, sizes)
    axes = find_axes(kernel, sizes)
    copies = {t.name: copies_of(kernel, t, axes) for t in kernel.temporaries}
    dtypes = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries) if d.dtype is not None}
    for t in kernel.temporaries:
        # A negative extent means no element: the loops that would reach for one are empty.
        shape = tuple(max(0, int(evaluate(extent, sizes))) for extent in t.shape)
        extents = [a.extent + (a.outside is not None) for a in copies[t.name]]
        memories[t.name] = temporary(t.name, dtypes[t.name], shape, extents)
    with np.errstate(all="ignore"):
        kernel = loops_as_tagged(kernel)
        store = Store(memories, copies, sizes, values, dtypes)
        try:
            Walker(kernel, store).run()
        except OverflowError as error:
            raise AssumptionError(
                f"{kernel.name} computes with inames, which are int32 then, and for these sizes "
                f"one is too large: {error}"
            ) from error
    held = {
        n: m.data for n, m in memories.items() if not m.axes and (not m.watched or m.written.all())
    }
    check_data(kernel.name, kernel.assertions, held, sizes)
    return {a.name: memories[a.name].data for a in kernel.args if a.name in kernel.writers}


def _values(kernel: Kernel, given: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
    """Integer values as numbers, and all values with their types."""
    for name in given:
        if name not in {a.name for a in kernel.passed}:
            raise UnknownNameError("argument", name, [a.name for a in kernel.passed])
    lengths: dict[str, int] = {}
    for argument in kernel.args:
        if isinstance(argument, ArrayArg) and argument.name in given and argument.shape:
            actual = np.shape(given[argument.name])
            for extent, length in zip(argument.shape, actual, strict=False):
                if isinstance(extent, prim.Variable):
                    lengths.setdefault(extent.name, length)
    sizes: dict[str, int] = {}
    values: dict[str, Any] = {}
    for argument in sorted(kernel.args, key=is_computed):
        if not isinstance(argument, ValueArg):
            continue
        name, dtype = argument.name, argument.dtype
        value = given.get(name, argument.default)
        if value is argument.default and is_computed(argument):
            value = evaluate(value, sizes)
        value = lengths.get(name) if value is None else value
        if value is None:
            raise LaunchError(f"the value of '{name}' is missing")
        assert dtype is not None
        values[name] = np.asarray(value).astype(dtype)[()]
        if dtype.kind in "iu":
            sizes[name] = int(value)
    return sizes, values


def _array(
    kernel: Kernel, argument: ArrayArg, given: Mapping[str, Any], sizes: Mapping[str, int]
) -> Memory:
    name, dtype = argument.name, argument.dtype
    assert dtype is not None and argument.shape is not None
    if isinstance(argument, ConstantTable):
        return Memory(name, argument.array, None)
    shape = tuple(max(0, int(evaluate(extent, sizes))) for extent in argument.shape)
    if name not in given or given[name] is None:
        if name not in kernel.writers or argument.is_input:
            raise LaunchError(f"the array '{name}' is missing")
        return Memory(name, np.zeros(shape, dtype), None)
    data = np.asarray(given[name])
    if data.dtype != dtype:
        raise LaunchError(f"'{name}' is of type {data.dtype}, but {dtype} is expected")
    if data.shape != shape:
        raise LaunchError(f"'{name}' has the shape {data.shape}, but {shape} is expected")
    return Memory(name, np.array(data) if name in kernel.writers else data, None)


class Walker:
    """Executes a kernel's tree; looks at no more than ``most`` points of a statement's domain."""

    def __init__(self, kernel: Kernel, store: Store, most: int | None = None) -> None:
        self.kernel = kernel
        self.store = store
        self.most = most
        self.compiled = {s.id: compile_statement(kernel, s, store) for s in kernel.statements}
        self.members: dict[int, list[Compiled]] = {}
        self.endings = endings_of(kernel, store.memories, self.compiled)
        self.pieces = Pieces(kernel, store.sizes, self._rows)
        for compiled in self.compiled.values():
            self._prepare(compiled)

    def run(self) -> None:
        """Execute all statements, from the first one."""
        for compiled in self.compiled.values():
            compiled.position, compiled.prefix = 0, None
        self.execute(self.kernel.tree, ())

    def _prepare(self, compiled: Compiled) -> None:
        """Fill in the rows of a statement whose bounds are known."""
        if not compiled.loaded:
            compiled.rows = [] if compiled.least >= 0 else self._rows(compiled, {})
        compiled.ready = max(compiled.least, compiled.ready)

    def _rows(self, compiled: Compiled, known: Mapping[str, int]) -> list[tuple[int, ...]]:
        names = [c for c in compiled.columns if c in compiled.statement.inames]
        free = [n for n in names if n not in known]
        domain = self.kernel.statement_domain(compiled.statement)
        for iname, ends in self.pieces.piece.items():
            if iname in free:
                domain = domain & between(iname, *ends)
        found = points_of(
            domain,
            free,
            {**self.store.sizes, **known},
            self.most,
        )
        rows: list[tuple[int, ...]] = [tuple(row) for row in found.tolist()]
        if len(free) < len(names):
            whole = ({**known, **dict(zip(free, row, strict=True))} for row in rows)
            rows = [tuple(point[name] for name in names) for point in whole]
        if compiled.extra:
            ranges = (
                (known[name],) if name in known else range(extent)
                for name, extent in compiled.extra
            )
            copies = list(product(*ranges))
            rows = [(*row, *copy) for row in rows for copy in copies]
        return rows

    def _load_bounds(self, compiled: Compiled, prefix: tuple[int, ...]) -> None:
        """Find the rows of a statement whose bounds the temporaries say now.

        Threads that have temporaries of their own have bounds of their own.
        """
        statement, copies = compiled.statement, self.store.copies
        domain = self.kernel.statement_domain(statement)
        axes = {a.key: a for name in compiled.loaded for a in copies.get(name, ())}
        named = {a.iname_of(statement) or column_of(a): a for a in axes.values()}
        # Where it has no place on an axis it runs once, with what the first thread has loaded.
        own = [(column, named[column]) for column in compiled.columns if column in named]
        prefixed = dict(zip(compiled.columns, prefix, strict=False))
        rows: list[tuple[int, ...]] = []
        for place in product(*(range(a.extent) for _, a in own)):
            at = {a.key: n for (_, a), n in zip(own, place, strict=True)}
            known = {c: a.first.get(c, 0) + n for (c, a), n in zip(own, place, strict=True)}
            elsewhere = any(prefixed.get(name, value) != value for name, value in known.items())
            known |= prefixed
            given = {name: known[name] for name in compiled.columns if name in known}
            # Only who comes to a loop looks at conditions, and has loaded its bounds.
            here = ChainMap(known, dict(self.store.sizes))
            elsewhere = elsewhere or bool(_sets.at_values(domain, here).is_empty())
            if elsewhere or (compiled.guard is not None and not compiled.guard(**given)):
                continue
            for name in compiled.loaded:
                copy = (at.get(a.key, a.outside or 0) for a in copies.get(name, ()))
                known[name] = int(self.store.memories[name].loader()(*copy))
                if _sets.at_values(domain, here).is_empty():
                    break
            else:
                rows += self._rows(compiled, known)
        compiled.rows = sorted(rows) if own else rows
        compiled.position = 0
        compiled.prefix = prefix

    def _is_ready(self, compiled: Compiled, prefix: tuple[int, ...]) -> bool:
        if len(prefix) < compiled.least:
            return False
        if not compiled.loaded:
            return True
        if len(prefix) < compiled.ready:
            return False
        if compiled.prefix != prefix[: compiled.ready]:
            self._load_bounds(compiled, prefix[: compiled.ready])
        return True

    def execute(self, nodes: Tree, prefix: tuple[int, ...]) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                self.loop(node, prefix)
            elif isinstance(node, str):
                self.statement(self.compiled[node], prefix)

    def loop(self, loop: Loop, prefix: tuple[int, ...]) -> None:
        ending = self.endings.get(id(loop))
        if ending is None:
            self.iterate(loop, prefix)
        else:
            self.pieces.run(ending, prefix, partial(self.iterate, loop, prefix, ending))

    def iterate(self, loop: Loop, prefix: tuple[int, ...], ending: Ending | None = None) -> None:
        """Execute the iterations of a loop that are known, or those until data end it."""
        members = self.members.get(id(loop))
        if members is None:
            members = self.members[id(loop)] = [self.compiled[s] for s in statements_in(loop)]
        if len(members) == 1 and self._is_ready(members[0], prefix):
            self.statement(members[0], prefix)
            return
        depth = len(prefix)
        while True:
            smallest = None
            for compiled in members:
                if not self._is_ready(compiled, prefix):
                    continue
                rows = compiled.rows
                if compiled.position < len(rows):
                    row = rows[compiled.position]
                    if row[:depth] == prefix and (smallest is None or row[depth] < smallest):
                        smallest = row[depth]
            if smallest is None:
                return
            self.execute(loop.body, (*prefix, smallest))
            if ending is not None and not ending.goes_on:
                return

    def statement(self, compiled: Compiled, prefix: tuple[int, ...]) -> None:
        """Execute a statement for all its instances below ``prefix``."""
        if not self._is_ready(compiled, prefix):
            raise AssertionError("bounds are loaded after they are needed")
        rows, position, depth = compiled.rows, compiled.position, len(prefix)
        function, end = compiled.function, len(rows)
        try:
            while position < end and rows[position][:depth] == prefix:
                function(*rows[position])
                position += 1
        except LoopkitError as error:
            raise self._located(error, compiled, rows[position]) from None
        compiled.position = position

    def _located(
        self, error: LoopkitError, compiled: Compiled, row: tuple[int, ...]
    ) -> LoopkitError:
        if not isinstance(error, (OutOfBoundsError, UninitializedReadError)):
            return error
        statement = compiled.statement
        inames = dict(zip(compiled.columns, row, strict=True))
        instance = Instance(statement.id, {n: inames[n] for n in inames if n in statement.inames})
        kind = "out of bounds" if isinstance(error, OutOfBoundsError) else "uninitialized read"
        return type(error)(
            f"{instance}: {error.why}",
            asked=f"{to_text(statement.lhs)} = {to_text(statement.rhs)}",
            witness=Witness(kind=kind, sink=instance, parameters=dict(self.store.sizes)),
        )
