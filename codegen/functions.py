"""From the loops, guards and statements of a nest to the body of the C function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopkit._arrays import (
    AddressSpace,
    ArrayArg,
    ConstantTable,
    TemporaryVariable,
    ValueArg,
    storage_shape,
    strides_of,
)
from loopkit._collectives import TOGETHER, reduction_text
from loopkit._kernel import Kernel, Statement
from loopkit._make.free_names import fresh_names
from loopkit._nodes import Expression
from loopkit._program import ArrayParam, ValueParam
from loopkit.codegen import ir
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.renamed import renamed
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.combinations import CombinationLowering
from loopkit.codegen.index import IndexLowering
from loopkit.codegen.ir import names_of, walk
from loopkit.codegen.lookback import tiles_of
from loopkit.codegen.nest import Nest
from loopkit.codegen.operands import integer
from loopkit.codegen.storage import ALIGNMENT, Storage
from loopkit.codegen.values import ValueLowering
from loopkit.codegen.widths import INT64, Ranges


class BodyLowering:
    """Lowers the nest of a kernel to the body of a function."""

    def __init__(self, kernel: Kernel, nest: Nest, storage: Storage, ranges: Ranges) -> None:
        self.kernel = kernel
        self.nest = nest
        self.storage = storage
        self.ranges = ranges
        self.values = ValueLowering(kernel, ranges, self.access)
        self.index = IndexLowering(self.values)
        self.tiles = tiles_of(kernel, nest.hardware)
        self.combinations = CombinationLowering(
            kernel, nest.hardware.block, self.values, self.tiles
        )

        # Two loops over one iname have two labels.
        self.labels: dict[str, str] = {}
        taken: set[str] = set()
        for node in walk(nest.code):
            if isinstance(node, ir.For) and node.flags:
                label = next(fresh_names(f"after_{node.iname}", taken))
                self.labels.update(dict.fromkeys(node.flags, label))

    def body(self) -> tuple[c.Node, ...]:
        """Declarations, hardware coordinates, and the code of the nest."""
        body = (*self.declarations(), *self.coordinates(), *self.code(self.nest.code))
        if self.tiles is None:
            return body
        taken = self.tiles.taking(self.nest.hardware.block)
        return (*taken, *renamed(body, {self.tiles.word: self.tiles.tile}))

    def access(self, name: str, indices: tuple[Expression, ...]) -> c.Name | c.Element:
        """An element of an array."""
        declared = self.storage.declared.get(name)
        if declared is not None:
            if not indices:
                return c.Name(name)
            if declared.order is None:
                return c.Element(name, (self.linear(declared.temporary, indices),))
            places = self.index.places(declared.temporary, indices)
            return c.Element(name, tuple(places[axis].node for axis in declared.order))
        array = self.kernel.array(name)
        if not indices:
            return c.Element(name, (integer(0),))
        offset = array.offset if isinstance(array, ArrayArg) else 0
        return c.Element(name, (self.linear(array, indices, offset),))

    def linear(
        self,
        array: ArrayArg | TemporaryVariable,
        indices: tuple[Expression, ...],
        offset: Expression = 0,
    ) -> c.CExpression:
        """The distance of an element from the first one."""
        return self.index.linear(strides_of(array), self.index.places(array, indices), offset)

    def declarations(self) -> Iterator[c.Declaration]:
        """Shared temporaries, then private ones."""
        for space, word in ((AddressSpace.LOCAL, "shared"), (AddressSpace.PRIVATE, "private")):
            for name, declared in self.storage.declared.items():
                if declared.temporary.address_space is not space or name in self.nest.gone:
                    continue
                ctype, offset = C_TYPES[self.values.dtype_of(name)], declared.offset
                shape: tuple[int | None, ...] = declared.dimensions
                if offset is not None and shape:
                    shape = (None, *shape[1:])
                aligned = ALIGNMENT if word == "shared" and offset is None else 1
                yield c.Declaration(word, ctype, name, shape, offset=offset, alignment=aligned)

    def coordinates(self) -> Iterator[c.Let]:
        """``int const i = blockIdx.x;`` for the parallel inames that occur."""
        used = frozenset().union(*map(names_of, walk(self.nest.code)))
        for coordinate in self.nest.hardware.coordinates:
            if coordinate.iname not in used:
                continue
            ctype, lower = self.iname_type(coordinate.iname), coordinate.lower
            value: c.CExpression = c.Name(coordinate.word)
            if lower:
                # CUDA's words are unsigned: what is less than 0 of them is large in 64 bits.
                value = c.Cast(ctype, value) if ctype == "long long" else value
                far = integer(abs(lower), "long" if abs(lower) >= 2**31 else "int")
                value = c.Binary("+" if lower > 0 else "-", value, far)
            yield c.Let(ctype, coordinate.iname, value)

    def iname_type(self, iname: str) -> str:
        """``int`` or ``long long``."""
        return "long long" if self.ranges.dtype_of(iname) == INT64 else "int"

    def code(self, nodes: tuple[ir.Code, ...]) -> tuple[c.Node, ...]:
        """All nodes, in order."""
        found: list[c.Node] = []
        for node in nodes:
            if isinstance(node, ir.Barrier):
                within = ", within a warp" * node.of_warp
                found.append(c.Wait("warp" if node.of_warp else "block", node.reason + within))
                continue
            self.ranges.enter(node.context)
            if isinstance(node, ir.Do) and node.statement.kind in TOGETHER:
                found.append(self.combinations.node(node.statement))
                continue
            if isinstance(node, ir.Do):
                found.append(self.values.assignment(node.statement, self.note(node.statement)))
                continue
            if isinstance(node, ir.Leave):
                label = self.labels[node.statement.written] if node.loop else None
                found.append(c.Break(label, node.statement.id, node.statement.id))
                continue
            if isinstance(node, ir.If):
                condition = self.index(node.condition)
                found.append(c.If(condition, self.code(node.body)))
                continue
            ctype, name = self.iname_type(node.iname), node.iname
            if isinstance(node, ir.Let):
                inside = (c.Let(ctype, name, self.index(node.value)), *self.code(node.body))
                # In braces unless nothing else is in scope.
                found += inside if len(nodes) == 1 else (c.Block(inside),)
                continue
            lower, upper = self.index(node.lower), self.index(node.upper)
            body = self.code(node.body)
            found.append(
                c.For(
                    *(ctype, name, lower, upper, False, node.step, body, node.unroll),
                    label=_label_in(body, frozenset(map(self.labels.get, node.flags))),
                )
            )
        return tuple(found)

    def note(self, statement: Statement) -> str:
        """The comment that names a statement."""
        if statement.kind == "update":
            return f"{statement.id}: {reduction_text(self.kernel, statement)}"
        if statement.made_by is None:
            return statement.id
        return f"{statement.id}, by {statement.made_by}"


def _label_in(body: tuple[c.Node, ...], labels: frozenset[str | None]) -> str | None:
    """The label, of those given, to which code in a body jumps, if any."""
    jumps = (node.label for node in c.statements(body) if isinstance(node, c.Break))
    return next((label for label in jumps if label in labels), None)


def parameters(kernel: Kernel, scratch: list[TemporaryVariable]) -> list[ValueParam | ArrayParam]:
    """The parameters of the generated function, in the kernel's order, sizes as they come."""
    result: list[ValueParam | ArrayParam] = []
    for argument in kernel.passed:
        if isinstance(argument, ValueArg):
            dtype = argument.dtype or np.dtype(np.int32)
            result.append(ValueParam(argument.name, dtype, default=argument.default))
        else:
            result.append(_array_parameter(kernel, argument, "argument"))
    result += [_array_parameter(kernel, t, "scratch") for t in scratch]
    return result


def _array_parameter(kernel: Kernel, array: ArrayArg | TemporaryVariable, role: str) -> ArrayParam:
    # An array may be read without being an input: where all that is read was written before.
    is_input = array.is_input if isinstance(array, ArrayArg) else None
    return ArrayParam(
        name=array.name,
        dtype=array.dtype or np.dtype(np.float32),
        shape=storage_shape(array),
        strides=strides_of(array),
        is_read=array.name in kernel.readers if is_input is None else is_input,
        is_written=array.name in kernel.writers,
        role=role,
    )


def tables_of(kernel: Kernel) -> tuple[c.Table, ...]:
    """The tables of constants that a kernel reads, in its order."""
    return tuple(
        c.Table(a.name, C_TYPES[a.contents.dtype], a.contents.data)
        for a in kernel.args
        if isinstance(a, ConstantTable) and a.contents is not None and a.name in kernel.readers
    )


def exchanged_arrays(kernel: Kernel, nest: Nest) -> frozenset[str]:
    """Arrays through which threads may communicate; their pointers get no ``__restrict__``.

    With ``__restrict__`` the compiler could keep an element in a register across a barrier,
    although other threads write it through their own pointers.
    """
    if not nest.has_barrier:
        return frozenset()
    return frozenset(kernel.readers) & frozenset(kernel.writers)


def signature(
    params: list[ValueParam | ArrayParam], exchanged: frozenset[str]
) -> tuple[c.Parameter, ...]:
    """The parameters in C; the pointers to ``exchanged`` arrays may be aliases."""
    return tuple(
        c.Parameter(p.name, C_TYPES[p.dtype], False, True)
        if isinstance(p, ValueParam)
        else c.Parameter(p.name, C_TYPES[p.dtype], True, not p.is_written, p.name not in exchanged)
        for p in params
    )
