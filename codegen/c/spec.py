"""What a tree must be to be C: every name is declared once, every operation has a type.

Lowering checks it on what it makes, and the proof before it proves anything.  The types of
expressions are found on the way, and what must be defined above the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from loopkit._frozen import dataclass
from loopkit._promotion import (
    FLOATS,
    INT32,
    INT64,
    UINT32,
    UINT64,
    DType,
    dtype_name,
)
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.arithmetic import converts
from loopkit.codegen.c.errors import ReadError, UnreadableError
from loopkit.codegen.c.expression_types import WHOLE, Typing, Variable

_ADDRESSES = {
    "+=": {INT32, UINT32, UINT64, *FLOATS},
    "max=": {INT32, UINT32, INT64, UINT64},
    "min=": {INT32, UINT32, INT64, UINT64},
    "|=": {INT32, UINT32, UINT64},
}
"""What the hardware's atomic updates change."""


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
        self.scopes: list[dict[str, Variable]] = [{w: Variable(UINT32) for w in c.HARDWARE}]
        self.needs: dict[str, int] = {}
        self.types: dict[int, DType] = {}
        self.line = 0
        self.typing = Typing(self.variable, self.need)

    # {{{ names

    def declare(self, name: str, ctype: str, rank: int = 0, *, is_place: bool = False) -> None:
        """A name from here to the end of its scope; none hides another."""
        if any(name in scope for scope in self.scopes):
            raise ReadError(self.line, f"'{name}' is declared twice")
        dtype = self.types[self.line] = self.typing.named(ctype)
        self.scopes[-1][name] = Variable(dtype, rank, is_place)

    def variable(self, name: str) -> Variable:
        """What a name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise ReadError(self.line, f"'{name}' is not declared")

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
                    self.typing.truth(self.typing.of(node.condition))
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
        dtype = self.types[self.line] = self.typing.of(target)
        if not self.variable(name).is_place:
            raise ReadError(self.line, f"'{name}' is no place in memory")
        value = self.typing.of(node.value)
        if node.atomic and dtype not in _ADDRESSES[node.operator]:
            raise ReadError(self.line, f"no atomic update of {dtype_name(dtype)}")
        if node.operator not in ("=", "max=", "min="):
            value = self.typing.binary(node.operator[:-1], dtype, value)
        if not converts(value, dtype):
            what = f"{dtype_name(value)} is no value of {dtype_name(dtype)}"
            raise ReadError(self.line, what)

    # }}}

    # {{{ expressions

    def integer(self, expr: c.CExpression) -> None:
        """An expression that computes with whole numbers alone, apart from what it casts."""
        if self.typing.of(expr) not in WHOLE:
            raise ReadError(self.line, "a whole number is expected")

    # }}}
