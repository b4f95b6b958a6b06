"""CUDA C text from code: names, declarations, one line per instruction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg, strides_of
from loopkit._expression import variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._program import ArrayParam, SourceLine, ValueParam
from loopkit.codegen.index import IndexPrinter
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Let
from loopkit.codegen.nest import Nest
from loopkit.codegen.storage import ALIGNMENT, Storage
from loopkit.codegen.values import ValuePrinter, c_type
from loopkit.codegen.widths import INT64, Ranges

_INDENT = "    "
_NOTE_COLUMN = 72


@dataclass
class Lines:
    """Source lines with where each comes from."""

    text: list[str] = field(default_factory=list)
    origins: list[SourceLine] = field(default_factory=list)

    def add(self, text: str, statement: str | None = None, step: str | None = None) -> None:
        """Append a line."""
        for line in text.split("\n"):
            self.text.append(line)
            self.origins.append(SourceLine(statement, step))


class BodyWriter:
    """Writes the body of the generated function."""

    def __init__(self, kernel: Kernel, nest: Nest, storage: Storage, ranges: Ranges) -> None:
        self.kernel = kernel
        self.nest = nest
        self.storage = storage
        self.ranges = ranges
        self.values = ValuePrinter(kernel, ranges, self.access)
        self.index = IndexPrinter(ranges, self.values)
        self.lines = Lines()

    # {{{ memory

    def access(self, name: str, indices: tuple[Expression, ...]) -> str:
        """C text of one element."""
        declared = self.storage.declared.get(name)
        if declared is not None:
            if not indices:
                return name
            if declared.order is None:
                return f"{name}[{self.linear(declared.temporary, indices)}]"
            shape = declared.temporary.shape
            return name + "".join(
                f"[{self.index.subscript(indices[axis], shape[axis])}]" for axis in declared.order
            )
        array = self.kernel.array(name)
        if not indices:
            return f"{name}[0]"
        offset = array.offset if isinstance(array, ArrayArg) else 0
        return f"{name}[{self.linear(array, indices, offset)}]"

    def linear(
        self,
        array: ArrayArg | TemporaryVariable,
        indices: tuple[Expression, ...],
        offset: Expression = 0,
    ) -> str:
        """How far an element is from the first one."""
        axes = list(zip(strides_of(array), indices, array.shape or (), strict=True))
        return self.index.linear(axes, offset)

    def declarations(self) -> None:
        """Shared and private temporaries."""
        shared = [
            d
            for d in self.storage.declared.values()
            if d.temporary.address_space is AddressSpace.LOCAL
        ]
        if self.storage.dynamic_shared:
            self.line(1, f"extern __shared__ __align__({ALIGNMENT}) unsigned char shared_memory[];")
        for d in shared:
            name, kind = d.temporary.name, c_type(self.values.dtype_of(d.temporary.name))
            dims = "".join(f"[{n}]" for n in d.dimensions)
            if not self.storage.dynamic_shared:
                self.line(1, f"__shared__ __align__({ALIGNMENT}) {kind} {name}{dims};")
            elif not d.dimensions:
                self.line(1, f"{kind} &{name} = *({kind} *)(shared_memory + {d.offset});")
            else:
                inner = "".join(f"[{n}]" for n in d.dimensions[1:])
                pointer = f"(*{name}){inner}" if inner else f"*{name}"
                cast = f"{kind} (*){inner}" if inner else f"{kind} *"
                self.line(1, f"{kind} {pointer} = ({cast})(shared_memory + {d.offset});")
        for d in self.storage.declared.values():
            if d.temporary.address_space is AddressSpace.PRIVATE:
                dims = "".join(f"[{n}]" for n in d.dimensions)
                self.line(
                    1, f"{c_type(self.values.dtype_of(d.temporary.name))} {d.temporary.name}{dims};"
                )

    # }}}

    def line(
        self, depth: int, text: str, note: str = "", statement: Statement | None = None
    ) -> None:
        """One line, with a note behind it."""
        whole = _INDENT * depth + text
        if note:
            whole = f"{whole:<{_NOTE_COLUMN - 2}}  // {note}"
        if statement is None:
            self.lines.add(whole)
        else:
            self.lines.add(whole, statement.id, statement.made_by)

    def coordinates(self, used: frozenset[str]) -> None:
        """``int const i = blockIdx.x;`` for the parallel inames that occur."""
        for c in self.nest.hardware.coordinates:
            if c.iname in used:
                kind, value = self.iname_type(c.iname), c.word
                if c.lower:
                    # CUDA's words are unsigned: what is less than 0 of them is large in 64 bits.
                    value = f"(long long){value}" if kind == "long long" else value
                    far = f"{abs(c.lower)}{'LL' if abs(c.lower) >= 2**31 else ''}"
                    value += f" + {far}" if c.lower > 0 else f" - {far}"
                self.line(1, f"{kind} const {c.iname} = {value};")

    def iname_type(self, iname: str) -> str:
        """``int`` or ``long long``."""
        return "long long" if self.ranges.dtype_of(iname) == INT64 else "int"

    def code(self, nodes: tuple[Code, ...], depth: int) -> None:
        """All nodes, in order."""
        for node in nodes:
            if not isinstance(node, Barrier):
                self.ranges.enter(node.context)
            if isinstance(node, Do):
                self.statement(node.statement, depth)
            elif isinstance(node, Barrier):
                if node.of_warp:
                    self.line(depth, "__syncwarp();", f"{node.reason}, within a warp")
                else:
                    self.line(depth, "__syncthreads();", node.reason)
            elif isinstance(node, If):
                self.line(depth, f"if ({self.index(node.condition)})" + self.opening(node.body))
                self.block(node.body, depth)
            elif isinstance(node, Let):
                self.let(node, depth, alone=len(nodes) == 1)
            else:
                self.loop(node, depth)

    def let(self, node: Let, depth: int, *, alone: bool) -> None:
        """A name for the one value of a loop; in braces unless nothing else is in scope."""
        kind = self.iname_type(node.iname)
        inside = depth if alone else depth + 1
        if not alone:
            self.line(depth, "{")
        self.line(inside, f"{kind} const {node.iname} = {self.index(node.value)};")
        self.code(node.body, inside)
        if not alone:
            self.line(depth, "}")

    @staticmethod
    def opening(body: tuple[Code, ...]) -> str:
        return " {" if _needs_braces(body) else ""

    def block(self, body: tuple[Code, ...], depth: int) -> None:
        self.code(body, depth + 1)
        if _needs_braces(body):
            self.line(depth, "}")

    def loop(self, node: For, depth: int) -> None:
        """A ``for`` statement."""
        name, kind = node.iname, self.iname_type(node.iname)
        step = f"++{name}" if node.step == 1 else f"{name} += {node.step}"
        if node.unroll:
            self.line(depth, "#pragma unroll")
        lower, upper = (self.index(e) for e in (node.lower, node.upper))
        head = f"for ({kind} {name} = {lower}; {name} < {upper};"
        self.line(depth, f"{head} {step})" + self.opening(node.body))
        self.block(node.body, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        """One instruction."""
        text = self.values.assignment(statement)
        note = (
            statement.id if statement.made_by is None else f"{statement.id}, by {statement.made_by}"
        )
        if statement.kind == "update":
            note = f"{statement.id}: {statement.operation} over " + ", ".join(
                self.kernel.reduced_inames(statement)
            )
        self.line(depth, text, note, statement)


def _needs_braces(body: tuple[Code, ...]) -> bool:
    if len(body) != 1:
        return True
    (only,) = body
    return not (
        isinstance(only, (Do, Barrier, For)) and not (isinstance(only, For) and only.unroll)
    )


def names_in(nodes: tuple[Code, ...]) -> frozenset[str]:
    """All names that the code uses."""
    found: set[str] = set()

    def visit(nodes: tuple[Code, ...]) -> None:
        for node in nodes:
            if isinstance(node, Do):
                found.update(node.statement.names)
            elif isinstance(node, For):
                found.update(variable_names(node.lower) | variable_names(node.upper))
                visit(node.body)
            elif isinstance(node, If):
                found.update(variable_names(node.condition))
                visit(node.body)
            elif isinstance(node, Let):
                found.update(variable_names(node.value))
                visit(node.body)

    visit(nodes)
    return frozenset(found)


def parameters(kernel: Kernel, scratch: list[TemporaryVariable]) -> list[ValueParam | ArrayParam]:
    """The parameters of the generated function, in the kernel's order, sizes as they come."""
    result: list[ValueParam | ArrayParam] = []
    for argument in kernel.args:
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
        shape=array.shape or (),
        strides=strides_of(array),
        is_read=array.name in kernel.readers if is_input is None else is_input,
        is_written=array.name in kernel.writers,
        role=role,
    )


def exchanged_arrays(kernel: Kernel, nest: Nest) -> frozenset[str]:
    """Arrays through which threads may pass values to each other.

    ``__restrict__`` would let the compiler keep what a thread has read across a barrier:
    other threads write through pointers of their own.
    """
    if not nest.has_barrier:
        return frozenset()
    return frozenset(kernel.readers) & frozenset(kernel.writers)


def signature(
    kernel: Kernel,
    params: list[ValueParam | ArrayParam],
    threads: int,
    exchanged: frozenset[str] = frozenset(),
) -> list[str]:
    """``extern "C" __global__ void ...`` up to the opening brace."""
    texts = []
    for p in params:
        if isinstance(p, ValueParam):
            texts.append(f"{c_type(p.dtype)} const {p.name}")
        else:
            constant = " const" if not p.is_written else ""
            alone = "" if p.name in exchanged else "__restrict__ "
            texts.append(f"{c_type(p.dtype)}{constant} *{alone}{p.name}")
    head = f'extern "C" __global__ void __launch_bounds__({threads})'
    joined = ", ".join(texts)
    if len(joined) < 80:
        return [head, f"{kernel.name}({joined})", "{"]
    return [
        head,
        f"{kernel.name}(",
        *[f"{_INDENT}{t}," for t in texts[:-1]],
        f"{_INDENT}{texts[-1]})",
        "{",
    ]
