"""Validation of a tree: each name is declared once, and each operation has a type.

Lowering validates what it generates, and the proof validates its input first. The walk also
collects the helpers that must be defined above the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from loopkit import _promotion as dt
from loopkit._frozen import dataclass
from loopkit._promotion import DType, dtype_name
from loopkit._spelling import meaning
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import ATOMICS
from loopkit.codegen.c.calls import ADDRESSES, CONSTANTS, result_of
from loopkit.codegen.c.errors import ReadError, UnreadableError
from loopkit.codegen.c.types import LITERALS, PIECES, TYPES, WHOLE, common, converts, in_registers


def needs_of(function: c.Function) -> Mapping[str, int]:
    """The helpers that must be defined above a function, each with the first line that needs it.

    Raises :class:`ReadError` for what C++ rejects.
    """
    checker = Checker({word: Variable(dt.UINT32) for word in c.HARDWARE + c.GRID}, own=function.own)
    try:
        checker.function(function)
    except UnreadableError as error:
        raise ReadError(checker.line, str(error)) from None
    return checker.needs


def check(function: c.Function) -> Mapping[str, int]:
    """Check a generated function: it is valid C++, and no barrier is in visibly divergent code.

    Returns what :func:`needs_of` does. Raises :class:`ReadError` if the tree itself shows a fault.
    """
    needs = needs_of(function)
    if any(isinstance(node, (c.Wait, c.Combine)) for node in c.statements(function.body)):
        _check_barriers(function.body, frozenset(CUDA.thread_index), is_varying=False)
    return needs


def _check_barriers(
    nodes: tuple[c.Node, ...], varying: frozenset[str], *, is_varying: bool
) -> None:
    """Refuse a combination, or a barrier for the block, in a loop or guard that depends on the
    thread.
    """
    for node in nodes:
        if is_varying and (
            isinstance(node, c.Combine) or (isinstance(node, c.Wait) and node.scope == "block")
        ):
            raise ReadError(node.line, "threads may disagree on whether they reach the barrier")
        is_assigned = isinstance(node, c.Assign)
        depends = not is_assigned and any(_uses(e, varying) for e in c.expressions(node))
        own = {node.name} if depends and isinstance(node, (c.Let, c.For)) else set()
        inside = varying | own
        if isinstance(node, c.Let):
            varying = inside
        if isinstance(node, (c.For, c.If, c.Block, c.Combine)):
            _check_barriers(node.body, inside, is_varying=is_varying or depends)


def _uses(expr: c.CExpression, names: frozenset[str]) -> bool:
    return any(isinstance(part, c.Name) and part.name in names for part in c.walk(expr))


@dataclass(frozen=True)
class Variable:
    """A declared name: its type, how many subscripts it takes, whether it may change."""

    dtype: DType
    rank: int = 0
    is_place: bool = False


class Checker:
    """A walk over a function with the names that are in scope."""

    def __init__(
        self,
        known: Mapping[str, Variable],
        joins: Iterable[c.Join] = (),
        own: Iterable[c.Own] = (),
    ) -> None:
        self.scopes = [dict(known)]
        self.own = {
            (one.name, tuple(TYPES[t] for t in one.arguments)): TYPES[one.ctype] for one in own
        }
        self.called = {name for name, _ in self.own}
        self.joins = {(join.name, TYPES[join.ctype]) for join in joins}
        self.needs: dict[str, int] = {}
        self.loops: list[c.For] = []
        self.labels: set[str] = set()
        self.line = 0

    def declare(self, name: str, ctype: str, rank: int = 0, *, is_place: bool = False) -> None:
        """Add a name to the current scope; it must not shadow another one."""
        self.free(name)
        if name in self.called or any(name in scope for scope in self.scopes):
            raise ReadError(self.line, f"'{name}' is declared twice")
        self.scopes[-1][name] = Variable(self.named(ctype), rank, is_place)

    def free(self, name: str) -> None:
        """Check that a name has no other meaning in C++ or CUDA."""
        if taken := meaning(name):
            raise ReadError(self.line, f"'{name}' is {taken}")

    def variable(self, name: str) -> Variable:
        """The variable that a name refers to."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise ReadError(self.line, f"'{name}' is not declared")

    def named(self, ctype: str) -> DType:
        """A type that the code names."""
        dtype = TYPES[ctype]
        components = dt.components_of(dtype)
        for kind in (dtype, *components.values()):
            if kind in PIECES:
                self.need(PIECES[kind])
        if components:
            self.need(ctype)
        return dtype

    def need(self, piece: str) -> None:
        """Record a helper that must be defined above the function."""
        self.needs.setdefault(piece, self.line)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope whose names end with the block."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    def function(self, function: c.Function) -> None:
        """The parameters and the body, which are one scope."""
        self.free(function.name)
        for own in function.own:
            for ctype in (own.ctype, *own.arguments):
                self.named(ctype)
        for join in function.joins:
            self.join(join)
        for parameter in function.parameters:
            self.line = parameter.line
            if not parameter.is_pointer and not parameter.is_const:
                raise ReadError(self.line, f"the value '{parameter.name}' is not constant")
            is_array = parameter.is_pointer
            self.declare(parameter.name, parameter.ctype, int(is_array), is_place=is_array)
        for table in function.tables:
            self.line = table.line
            if not table.data:
                raise ReadError(self.line, f"'{table.name}' has no elements")
            self.declare(table.name, table.ctype, 1)
        self.body(function.body, at_top=True)

    def join(self, join: c.Join) -> None:
        """Check a function above the kernel that joins two records of one type."""
        self.line = join.line
        dtype = self.named(join.ctype)
        if not dt.components_of(dtype):
            raise ReadError(self.line, f"'{join.name}' joins no records")
        inner = Checker({name: Variable(dtype) for name in ("a", "b")}, ())
        if inner.of(join.value) != dtype:
            raise ReadError(self.line, f"'{join.name}' gives no {join.ctype}")
        for piece in inner.needs:
            self.need(piece)
        if (join.name, dtype) in self.joins:
            raise ReadError(self.line, f"'{join.name}' is defined twice")
        self.joins.add((join.name, dtype))

    def body(self, nodes: tuple[c.Node, ...], *, at_top: bool = False) -> None:
        """Check a sequence of statements."""
        for node in nodes:
            self.line = node.line
            if isinstance(node, c.Declaration):
                if not at_top:  # of the function, or of what has memory of its own
                    raise ReadError(node.line, f"'{node.name}' is declared inside of a block")
                if 0 in node.dimensions:
                    raise ReadError(node.line, f"'{node.name}' has no elements")
                self.declare(node.name, node.ctype, len(node.dimensions), is_place=True)
            elif isinstance(node, c.Let):
                self.integer(node.value)
                self.declare(node.name, node.ctype)
            elif isinstance(node, (c.For, c.If, c.Block, c.Combine)):
                if isinstance(node, c.If):
                    self.truth(self.of(node.condition))
                elif isinstance(node, c.For):
                    # Its variable is in scope in its bounds, too, but the printer uses it in none.
                    for bound in (node.lower, node.upper):
                        self.binary("<", TYPES[node.ctype], self.integer(bound))
                with self.scope():
                    if isinstance(node, c.For):
                        self.declare(node.name, node.ctype)
                        self.enter(node)
                    self.body(node.body, at_top=isinstance(node, c.Combine))
                    if isinstance(node, c.For):
                        self.loops.pop()
            elif isinstance(node, c.Assign):
                self.assignment(node)
            elif isinstance(node, c.Break):
                self.exit(node)

    def enter(self, loop: c.For) -> None:
        """Enter a loop."""
        if loop.label in self.labels:
            raise ReadError(loop.line, f"the label '{loop.label}' is defined twice")
        if loop.label is not None:
            self.free(loop.label)
            self.labels.add(loop.label)
        self.loops.append(loop)

    def exit(self, node: c.Break) -> None:
        """Check that a ``break`` or ``goto`` leaves an enclosing loop."""
        if c.left_by(node, self.loops) is None:
            raise ReadError(
                node.line,
                f"no loop around has the label '{node.label}'"
                if node.label
                else "this leaves no loop",
            )

    def assignment(self, node: c.Assign) -> None:
        """Check that the target is an lvalue whose type accepts the value."""
        target = node.target
        name = target.name if isinstance(target, c.Name) else target.array
        dtype = self.of(target)
        if not self.variable(name).is_place:
            raise ReadError(self.line, f"'{name}' is no place in memory")
        value = self.of(node.value)
        if node.atomic:
            self.atomic(node, dtype)
        if node.operator not in ("=", "max=", "min="):
            value = self.binary(node.operator[:-1], dtype, value)
        self.convert(value, dtype)

    def atomic(self, node: c.Assign, dtype: DType) -> None:
        """Check that the function performs the node's operation, on a cell of shared or global
        memory.
        """
        found = ATOMICS.get(node.atomic)
        if found is None or found.operator != node.operator or dtype not in found.dtypes:
            raise ReadError(self.line, f"no atomic update of {dtype_name(dtype)}")
        for piece in found.needs:
            self.needs.setdefault(piece, self.line)

    def integer(self, expr: c.CExpression) -> DType:
        """The type of an expression, which must be an integer type."""
        dtype = self.of(expr)
        if dtype not in WHOLE:
            raise ReadError(self.line, "a whole number is expected")
        return dtype

    def of(self, root: c.CExpression) -> DType:
        """The type of an expression; raises :class:`UnreadableError` where C++ has none for it."""
        found: list[DType] = []
        for expr in c.postorder(root):
            count = len(c.children(expr))
            parts = found[len(found) - count :]
            del found[len(found) - count :]
            found.append(self.whole(expr, parts))
        return found[0]

    def whole(self, expr: c.CExpression, parts: list[DType]) -> DType:
        """The type of an expression, given the types of its operands."""
        if not _ADDRESSES.isdisjoint(parts) and not isinstance(expr, c.Call):
            raise UnreadableError("an address is no value")
        return _TYPES[type(expr)](self, expr, parts)

    def _number(self, expr: c.Number, _: list[DType]) -> DType:
        return LITERALS[expr.ctype]

    def _name(self, expr: c.Name, _: list[DType]) -> DType:
        if expr.name in CONSTANTS:
            self.need(expr.name)
            return dt.FLOAT32
        found = self.variable(expr.name)
        if found.rank:
            raise UnreadableError(f"'{expr.name}' has no subscripts")
        return found.dtype

    def _element(self, expr: c.Element, parts: list[DType]) -> DType:
        found = self.variable(expr.array)
        if found.rank != len(parts) or not set(parts) <= WHOLE:
            raise UnreadableError(f"the subscripts of '{expr.array}' are none of an array")
        return found.dtype

    def _unary(self, expr: c.Unary, parts: list[DType]) -> DType:
        (dtype,) = parts
        if expr.operator == "!":
            return self.truth(dtype)
        is_record = bool(dt.components_of(dtype))
        if (expr.operator == "~" and dtype in WHOLE) or (expr.operator == "-" and not is_record):
            return in_registers(dtype)
        if expr.operator == "&" and isinstance(expr.operand, c.Element) and dtype in ADDRESSES:
            return ADDRESSES[dtype]
        raise UnreadableError(f"'{expr.operator}' of {dtype_name(dtype)}")

    def _binary(self, expr: c.Binary, parts: list[DType]) -> DType:
        return self.binary(expr.operator, *parts)

    def binary(self, operator: str, a: DType, b: DType) -> DType:
        """``a operator b``."""
        if operator in ("&&", "||"):
            self.truth(a)
            return self.truth(b)
        if operator in ("<<", ">>", "%", "&", "|", "^") and not {a, b} <= WHOLE:
            raise _undefined(operator, a, b)
        if operator in ("<<", ">>"):
            return in_registers(a)
        kind = common(a, b)
        if operator in ("<", "<=", ">", ">=", "==", "!="):
            if kind in dt.COMPLEXES and (a != b or operator not in ("==", "!=")):
                raise UnreadableError("complex numbers have no order")
            return dt.BOOL
        if kind in dt.COMPLEXES and not {a, b} <= {kind, dt.real_of(kind)}:
            raise _undefined(operator, a, b)
        return kind

    def truth(self, dtype: DType) -> DType:
        """Check a condition."""
        if dtype in dt.COMPLEXES or dtype in dt.SMALL_FLOATS or dt.components_of(dtype):
            raise UnreadableError(f"{dtype_name(dtype)} is no condition")
        return dt.BOOL

    def convert(self, source: DType, target: DType) -> DType:
        """Check that a value converts implicitly to the expected type."""
        if not converts(source, target):
            raise UnreadableError(f"{dtype_name(source)} is no value of {dtype_name(target)}")
        return target

    def _choice(self, _: c.Choice, parts: list[DType]) -> DType:
        condition, then, other = parts
        self.truth(condition)
        return then if then == other else common(then, other)

    def _cast(self, expr: c.Cast, parts: list[DType]) -> DType:
        return self.convert(parts[0], self.named(expr.ctype))

    def _member(self, expr: c.Member, parts: list[DType]) -> DType:
        components = dt.components_of(parts[0])
        if expr.name in components:
            return components[expr.name]
        if parts[0] not in dt.COMPLEXES or expr.name not in ("re", "im"):
            raise UnreadableError(f"'.{expr.name}' is not understood")
        return dt.real_of(parts[0])

    def _braces(self, expr: c.Braces, parts: list[DType]) -> DType:
        dtype = self.named(expr.ctype)
        # What is in braces is converted where nothing is lost alone.
        due = [*dt.components_of(dtype).values()] or [dt.real_of(dtype)] * 2
        if not (dtype in dt.COMPLEXES or dtype.names) or parts != due:
            raise UnreadableError(f"the parts of a {expr.ctype} are not understood")
        return dtype

    def _call(self, expr: c.Call, parts: list[DType]) -> DType:
        if len({*parts}) == 1 and len(parts) == 2 and (expr.function, parts[0]) in self.joins:
            return parts[0]
        if expr.function in self.called:
            found = self.own.get((expr.function, tuple(parts)))
            if found is None:
                listed = ", ".join(map(dtype_name, parts))
                raise UnreadableError(f"'{expr.function}' is not declared for ({listed})")
            return found
        dtype, pieces = result_of(expr.function, parts)
        for piece in pieces:
            self.need(piece)
        return dtype


_ADDRESSES = frozenset(ADDRESSES.values())


def _undefined(operator: str, a: DType, b: DType) -> UnreadableError:
    return UnreadableError(f"'{operator}' of {dtype_name(a)} and {dtype_name(b)}")


_TYPES: dict[type, Callable[[Checker, Any, list[DType]], DType]] = {
    c.Number: Checker._number,
    c.Name: Checker._name,
    c.Element: Checker._element,
    c.Call: Checker._call,
    c.Unary: Checker._unary,
    c.Binary: Checker._binary,
    c.Choice: Checker._choice,
    c.Cast: Checker._cast,
    c.Member: Checker._member,
    c.Braces: Checker._braces,
}
