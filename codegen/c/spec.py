"""What a tree must be to be C: every name is declared once, every operation has a type.

Lowering checks it on what it makes, and the proof before it proves anything.  The types of
expressions are found on the way, and what must be defined above the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    INT32,
    INT64,
    INTEGERS,
    SMALL_FLOATS,
    UINT32,
    UINT64,
    DType,
    dtype_name,
    real_of,
)
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.arithmetic import common, converts, in_registers
from loopkit.codegen.c.calls import CONSTANTS, result_of
from loopkit.codegen.c.errors import ReadError, UnreadableError
from loopkit.codegen.c.types import LITERALS, PIECES, TYPES

_WHOLE = INTEGERS | {BOOL}
_ADDRESSES = {
    "+=": {INT32, UINT32, UINT64, *FLOATS},
    "max=": {INT32, UINT32, INT64, UINT64},
    "min=": {INT32, UINT32, INT64, UINT64},
    "|=": {INT32, UINT32, UINT64},
}
"""What the hardware's atomic updates change."""


@dataclass(frozen=True)
class _Variable:
    """A declared name: its type, how many subscripts it takes, whether it may change."""

    dtype: DType
    rank: int = 0
    is_place: bool = False


def specified(function: c.Function) -> Specified:
    """What a function needs and computes; raises :class:`ReadError` for what C++ rejects."""
    checked = _Checked()
    try:
        checked.function(function)
    except UnreadableError as error:
        raise ReadError(checked.line, str(error)) from None
    return Specified(checked.needs, checked.types)


@dataclass(frozen=True)
class Specified:
    """What the check of a function finds out.

    ``needs`` names what must be defined above, with the first line that needs it; ``types``
    has the type of what each line computes, assigns or declares.
    """

    needs: Mapping[str, int]
    types: Mapping[int, DType]


def check(function: c.Function) -> Specified:
    """What lowering makes: C++ takes it, and barriers stand where all threads come by.

    Raises :class:`ReadError` where the tree itself shows that it is not so.
    """
    found = specified(function)
    if any(isinstance(node, c.Wait) for node in c.statements(function.body)):
        _check_barriers(function.body, frozenset(CUDA.thread_index), is_varying=False)
    return found


def _check_barriers(
    nodes: tuple[c.Node, ...], varying: frozenset[str], *, is_varying: bool
) -> None:
    """No loop or guard around a block's barrier is another one for another thread."""
    for node in nodes:
        if isinstance(node, c.Wait) and node.scope == "block" and is_varying:
            raise ReadError(node.line, "threads may disagree on whether they reach the barrier")
        depends = any(_uses(expr, varying) for expr in c.expressions(node))
        if depends and isinstance(node, (c.Let, c.For)):
            varying |= {node.name}
        if isinstance(node, (c.For, c.If, c.Block)):
            _check_barriers(node.body, varying, is_varying=is_varying or depends)


def _uses(expr: c.CExpression, names: frozenset[str]) -> bool:
    return any(isinstance(part, c.Name) and part.name in names for part in c.walk(expr))


class _Checked:
    """A walk over a function with the names that are in scope."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, _Variable]] = [{w: _Variable(UINT32) for w in c.HARDWARE}]
        self.needs: dict[str, int] = {}
        self.types: dict[int, DType] = {}
        self.line = 0

    # {{{ names

    def declare(self, name: str, ctype: str, rank: int = 0, *, is_place: bool = False) -> None:
        """A name from here to the end of its scope; none hides another."""
        if any(name in scope for scope in self.scopes):
            raise ReadError(self.line, f"'{name}' is declared twice")
        dtype = self.types[self.line] = self.type_of(ctype)
        self.scopes[-1][name] = _Variable(dtype, rank, is_place)

    def variable(self, name: str) -> _Variable:
        """What a name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise ReadError(self.line, f"'{name}' is not declared")

    def type_of(self, ctype: str) -> DType:
        """A type that the text names."""
        dtype = TYPES[ctype]
        if dtype in PIECES:
            self.need(PIECES[dtype])
        return dtype

    def need(self, piece: str) -> None:
        """Note what must stand above."""
        self.needs.setdefault(piece, self.line)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that end with a block."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    # }}}

    # {{{ statements

    def function(self, function: c.Function) -> None:
        """The parameters and the body, which are one scope."""
        for parameter in function.parameters:
            self.line = parameter.line
            if parameter.is_pointer:
                self.declare(parameter.name, parameter.ctype, 1, is_place=True)
            elif not parameter.is_const:
                raise ReadError(self.line, f"the value '{parameter.name}' is not constant")
            else:
                self.declare(parameter.name, parameter.ctype)
        self.body(function.body, at_top=True)

    def body(self, nodes: tuple[c.Node, ...], *, at_top: bool = False) -> None:
        """Statements one after another."""
        for node in nodes:
            self.line = node.line
            if isinstance(node, c.Declaration):
                if not at_top:
                    raise ReadError(node.line, f"'{node.name}' is declared inside of a block")
                self.declaration(node)
            elif isinstance(node, c.Let):
                self.integer(node.value)
                self.line = node.line
                self.declare(node.name, node.ctype)
            elif isinstance(node, c.For):
                self.loop(node)
            elif isinstance(node, (c.If, c.Block)):
                if isinstance(node, c.If):
                    self.truth(self.expression(node.condition))
                with self.scope():
                    self.body(node.body)
            elif isinstance(node, c.Assign):
                self.assignment(node)

    def declaration(self, node: c.Declaration) -> None:
        """A shared or private variable."""
        if 0 in node.dimensions:
            raise ReadError(node.line, f"'{node.name}' has no elements")
        self.declare(node.name, node.ctype, len(node.dimensions), is_place=True)

    def loop(self, node: c.For) -> None:
        """A loop's variable is in scope in its bounds, too, but the printer uses it in none."""
        self.integer(node.lower)
        self.integer(node.upper)
        with self.scope():
            self.line = node.line
            self.declare(node.name, node.ctype)
            self.body(node.body)

    def assignment(self, node: c.Assign) -> None:
        """What is assigned is a place in memory, of a type that takes the value."""
        target = node.target
        name = target.name if isinstance(target, c.Name) else target.array
        dtype = self.types[self.line] = self.expression(target)
        if not self.variable(name).is_place:
            raise ReadError(self.line, f"'{name}' is no place in memory")
        value = self.expression(node.value)
        if node.atomic and dtype not in _ADDRESSES[node.operator]:
            raise ReadError(self.line, f"no atomic update of {dtype_name(dtype)}")
        if node.operator not in ("=", "max=", "min="):
            value = self.binary(node.operator[:-1], dtype, value)
        if not converts(value, dtype):
            what = f"{dtype_name(value)} is no value of {dtype_name(dtype)}"
            raise ReadError(self.line, what)

    # }}}

    # {{{ expressions

    def integer(self, expr: c.CExpression) -> None:
        """An expression that computes with whole numbers alone, apart from what it casts."""
        if self.expression(expr) not in _WHOLE:
            raise ReadError(self.line, "a whole number is expected")

    def expression(self, root: c.CExpression) -> DType:
        """The type of an expression."""
        found: list[DType] = []
        for expr in c.postorder(root):
            count = len(c.children(expr))
            parts = found[len(found) - count :]
            del found[len(found) - count :]
            found.append(_RULES[type(expr)](self, expr, parts))
        return found[0]

    def number(self, expr: c.Number, _: list[DType]) -> DType:
        return LITERALS[expr.ctype]

    def name(self, expr: c.Name, _: list[DType]) -> DType:
        if expr.name in CONSTANTS:
            self.need(expr.name)
            return FLOAT32
        found = self.variable(expr.name)
        if found.rank:
            raise ReadError(self.line, f"'{expr.name}' has no subscripts")
        return found.dtype

    def element(self, expr: c.Element, parts: list[DType]) -> DType:
        found = self.variable(expr.array)
        if found.rank != len(parts) or not set(parts) <= _WHOLE:
            raise ReadError(self.line, f"the subscripts of '{expr.array}' are none of an array")
        return found.dtype

    def unary(self, expr: c.Unary, parts: list[DType]) -> DType:
        (dtype,) = parts
        if expr.operator == "!":
            return self.truth(dtype)
        if (expr.operator == "~" and dtype in _WHOLE) or expr.operator == "-":
            return in_registers(dtype)
        raise ReadError(self.line, f"'{expr.operator}' of {dtype_name(dtype)}")

    def binary_of(self, expr: c.Binary, parts: list[DType]) -> DType:
        return self.binary(expr.operator, *parts)

    def binary(self, operator: str, a: DType, b: DType) -> DType:
        """``a operator b``."""
        if operator in ("&&", "||"):
            self.truth(a)
            return self.truth(b)
        both_whole = {a, b} <= _WHOLE
        if operator in ("<<", ">>", "%", "&", "|", "^") and not both_whole:
            what = f"'{operator}' of {dtype_name(a)} and {dtype_name(b)}"
            raise ReadError(self.line, what)
        if operator in ("<<", ">>"):
            return in_registers(a)
        kind = common(a, b)
        if operator in ("<", "<=", ">", ">=", "==", "!="):
            if kind in COMPLEXES and (a != b or operator not in ("==", "!=")):
                raise ReadError(self.line, "complex numbers have no order")
            return BOOL
        if kind in COMPLEXES and not {a, b} <= {kind, real_of(kind)}:
            raise ReadError(self.line, f"'{operator}' of {dtype_name(a)} and {dtype_name(b)}")
        return kind

    def truth(self, dtype: DType) -> DType:
        """A condition."""
        if dtype in COMPLEXES or dtype in SMALL_FLOATS:
            raise ReadError(self.line, f"{dtype_name(dtype)} is no condition")
        return BOOL

    def choice(self, _: c.Choice, parts: list[DType]) -> DType:
        condition, then, other = parts
        self.truth(condition)
        return then if then == other else common(then, other)

    def cast(self, expr: c.Cast, parts: list[DType]) -> DType:
        dtype = self.type_of(expr.ctype)
        if not converts(parts[0], dtype):
            what = f"{dtype_name(parts[0])} is no value of {dtype_name(dtype)}"
            raise ReadError(self.line, what)
        return dtype

    def member(self, expr: c.Member, parts: list[DType]) -> DType:
        if parts[0] not in COMPLEXES or expr.name not in ("re", "im"):
            raise ReadError(self.line, f"'.{expr.name}' is not understood")
        return real_of(parts[0])

    def braces(self, expr: c.Braces, parts: list[DType]) -> DType:
        dtype = self.type_of(expr.ctype)
        # What is in braces is converted where nothing is lost alone.
        if dtype not in COMPLEXES or parts != [real_of(dtype)] * 2:
            raise ReadError(self.line, f"the parts of a {expr.ctype} are not understood")
        return dtype

    def call(self, expr: c.Call, parts: list[DType]) -> DType:
        dtype, pieces = result_of(expr.function, parts)
        for piece in pieces:
            self.need(piece)
        return dtype

    # }}}


_RULES: dict[type, Callable[[_Checked, Any, list[DType]], DType]] = {
    c.Number: _Checked.number,
    c.Name: _Checked.name,
    c.Element: _Checked.element,
    c.Call: _Checked.call,
    c.Unary: _Checked.unary,
    c.Binary: _Checked.binary_of,
    c.Choice: _Checked.choice,
    c.Cast: _Checked.cast,
    c.Member: _Checked.member,
    c.Braces: _Checked.braces,
}
