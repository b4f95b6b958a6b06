"""The syntax tree of C: expressions, statements, and one function.

Lowering builds these nodes, :mod:`.printer` prints them, :mod:`.reader` parses printed text back
into them, and the proof reasons about them. Nodes are plain data; :mod:`.spec` determines types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from loopkit._frozen import dataclass
from loopkit._target import CUDA


@dataclass(frozen=True, slots=True)
class Number:
    """A literal, which has no sign; ``ctype`` is what its spelling says.

    That is bool, int, uint, long, ulong, float or double.  A ``float`` has the value of a
    number of 32 bits.
    """

    value: int | float
    ctype: str


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a hardware index such as ``threadIdx.x``."""

    name: str


@dataclass(frozen=True, slots=True)
class Element:
    """``array[i][j]``."""

    array: str
    indices: tuple[CExpression, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """``function(arguments)``."""

    function: str
    arguments: tuple[CExpression, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x``, ``!x``, ``~x`` or ``&x``."""

    operator: str
    operand: CExpression


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator right``."""

    operator: str
    left: CExpression
    right: CExpression


@dataclass(frozen=True, slots=True)
class Choice:
    """``condition ? then : other``."""

    condition: CExpression
    then: CExpression
    other: CExpression


@dataclass(frozen=True, slots=True)
class Cast:
    """``(ctype)operand``."""

    ctype: str
    operand: CExpression


@dataclass(frozen=True, slots=True)
class Member:
    """``operand.name``."""

    operand: CExpression
    name: str


@dataclass(frozen=True, slots=True)
class Braces:
    """``ctype{a, b}``."""

    ctype: str
    parts: tuple[CExpression, ...]


CExpression = Number | Name | Element | Call | Unary | Binary | Choice | Cast | Member | Braces


_PARTS: dict[type, str | tuple[str, ...]] = {
    **dict.fromkeys((Number, Name), ()),
    **dict.fromkeys((Unary, Cast, Member), ("operand",)),
    Element: "indices",
    Call: "arguments",
    Binary: ("left", "right"),
    Choice: ("condition", "then", "other"),
    Braces: "parts",
}
"""The fields that hold an expression's operands, or the one that holds all of them."""


def _getter(fields: str | tuple[str, ...]) -> Callable[[Any], tuple[CExpression, ...]]:
    """A function that returns the expressions in some fields of a node."""
    if isinstance(fields, str):
        return attrgetter(fields)
    if len(fields) > 1:
        return attrgetter(*fields)
    get: Callable[[Any], Any] = attrgetter(*fields) if fields else type
    return (lambda node: (get(node),)) if fields else (lambda node: ())


_CHILDREN = {kind: _getter(fields) for kind, fields in _PARTS.items()}


def children(expr: CExpression) -> tuple[CExpression, ...]:
    """The operands of an expression, in the order of the text."""
    return _CHILDREN[type(expr)](expr)


def with_children(expr: CExpression, parts: tuple[CExpression, ...]) -> CExpression:
    """The same operation applied to other operands."""
    fields = _PARTS[type(expr)]
    made = {fields: parts} if isinstance(fields, str) else dict(zip(fields, parts, strict=True))
    return replace(expr, **made)


def walk(expr: CExpression) -> Iterator[CExpression]:
    """An expression and all its subexpressions in pre-order, left to right."""
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(children(part)))


def postorder(
    expr: CExpression, parts: Callable[[CExpression], tuple[CExpression, ...]] = children
) -> Iterator[CExpression]:
    """An expression and all its subexpressions in post-order, operands from left to right."""
    found, pending = [], [expr]
    while pending:
        part = pending.pop()
        found.append(part)
        pending.extend(parts(part))
    return reversed(found)


HARDWARE = CUDA.block_index + CUDA.thread_index
"""The names that every function has: the indices of blocks and threads."""
GRID = CUDA.grid_size
"""The names of how many blocks there are along each axis."""


@dataclass(frozen=True, eq=False, slots=True)
class Declaration:
    """A shared or private variable; ``dimensions`` as C has them, () for a scalar.

    Arrays in dynamic shared memory know the byte at which they begin; their first
    dimension is None, because the text does not say it.  ``alignment`` is what the text
    asks for beyond the type's own.
    """

    space: str  # "shared" or "private"
    ctype: str
    name: str
    dimensions: tuple[int | None, ...]
    line: int = 0
    offset: int | None = None
    alignment: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class Let:
    """``ctype const name = value;``: a constant, in scope for the rest of the block."""

    ctype: str
    name: str
    value: CExpression
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class For:
    """``for (ctype name = lower; name < upper; name += step)``; with ``is_unrolled``, after a
    pragma.

    ``label`` is placed after the loop, for a ``goto`` out of a nested loop.
    """

    ctype: str
    name: str
    lower: CExpression
    upper: CExpression
    inclusive: bool
    step: int
    body: tuple[Node, ...]
    is_unrolled: bool = False
    line: int = 0
    label: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class If:
    """``if (condition) ...``."""

    condition: CExpression
    body: tuple[Node, ...]
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Braces that only limit a scope."""

    body: tuple[Node, ...]
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Assign:
    """``target operator value;``, or an atomic update ``atomic(&target, value);``.

    ``atomic`` is the name of the atomic function, "" for a plain assignment (:mod:`.atomics`).
    ``statement`` is the id of the kernel's statement that this executes.
    """

    target: Name | Element
    operator: str
    value: CExpression
    statement: str | None
    atomic: str = ""
    comment: str = ""
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Wait:
    """A barrier for the threads of a ``block`` or of a ``warp``."""

    scope: str
    comment: str = ""
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Combine:
    """The code with which threads combine their partial results in ``target``: ``body``, in
    braces.

    Names declared in ``body`` are local to it. ``statement`` is the id of the combination.
    """

    target: Name | Element
    body: tuple[Node, ...]
    statement: str | None
    comment: str = ""
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Break:
    """``break;``, or ``goto label;`` to the end of the enclosing loop that has the label.

    ``statement`` is the id of the kernel's statement that ends the loop.
    """

    label: str | None
    statement: str | None
    comment: str = ""
    line: int = 0


Node = Declaration | Let | For | If | Block | Assign | Wait | Combine | Break


def left_by(node: Break, loops: Sequence[For]) -> For | None:
    """The enclosing loop that a break leaves, from ``loops``, outermost first; None if there is
    none.
    """
    if node.label is None:
        return loops[-1] if loops else None
    return next((loop for loop in loops if loop.label == node.label), None)


def nested(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, int]]:
    """All statements of a body in the order of the text, each with its nesting depth."""
    pending = [(node, 0) for node in reversed(nodes)]
    while pending:
        node, level = pending.pop()
        yield node, level
        if isinstance(node, (For, If, Block, Combine)):
            pending += ((inner, level + 1) for inner in reversed(node.body))


def statements(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """All statements of a body in the order of the text."""
    return (node for node, _ in nested(nodes))


EXPRESSIONS: dict[type, tuple[str, ...]] = {
    Let: ("value",),
    For: ("lower", "upper"),
    If: ("condition",),
    Assign: ("target", "value"),
}
"""The fields that hold the expressions of a statement."""
_EXPRESSIONS = {kind: _getter(fields) for kind, fields in EXPRESSIONS.items()}


def expressions(node: Node) -> tuple[CExpression, ...]:
    """The expressions of a statement, without those of statements inside of it."""
    get = _EXPRESSIONS.get(type(node))
    return () if get is None else get(node)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the function: a value, or a pointer to global memory."""

    name: str
    ctype: str
    is_pointer: bool
    is_const: bool
    is_restrict: bool = False
    line: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Join:
    """A function above the kernel's own, which joins two records ``a`` and ``b`` to ``value``."""

    name: str
    ctype: str
    value: CExpression
    line: int = 0


@dataclass(frozen=True, slots=True)
class Own:
    """A user's device function, defined in the lines above: what is needed to type its calls."""

    name: str
    ctype: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """``static const ctype name[] = {...};``: an array with the elements that ``data`` holds."""

    name: str
    ctype: str
    data: bytes
    line: int = 0


JOIN_LINES = 6
"""How many lines one takes, with the blank one behind it."""


def join_name(operation: str) -> str:
    """The name of the device function that joins two records by an operation."""
    return f"lk_{operation}_of_two"


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """The kernel function, and the lines of text ``above`` it: comments, headers, helpers.

    ``threads`` is the number of threads in its launch bounds, ``alignment`` the alignment of
    dynamic shared memory, if there is any. ``own`` are the users' device functions that it may
    call, and ``tables`` the constant tables at its top.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    threads: int
    alignment: int | None = None
    above: tuple[str, ...] = ()
    joins: tuple[Join, ...] = ()
    own: tuple[Own, ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def line(self) -> int:
        """The line number at which the function begins."""
        return len(self.above) + JOIN_LINES * len(self.joins) + 1
