"""A kernel as a person reads it: signature, coordinates, and the loop nest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg, storage_shape
from loopkit._budget import in_turn
from loopkit._errors import LoopkitError
from loopkit._expression import to_text
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import decide_address_spaces
from loopkit._tree import Loop, Tree
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Let
from loopkit.codegen.nest import make_nest

_SYMBOLS = {"sum": "+=", "product": "*="}
_COLUMN = 80


@in_turn
def show(kernel: Kernel) -> str:
    """The kernel's loop nest as text, with what each line is for beside it."""
    lines = [_signature(kernel)]
    lines += _temporaries(kernel)
    lines += _rules(kernel)
    lines += _assumptions(kernel)
    lines += _nest(kernel)
    return "\n".join(lines)


def _array(name: str, shape: tuple[Expression, ...] | None) -> str:
    if shape is None:
        return f"{name}[?]"
    return f"{name}[{', '.join(to_text(s) for s in shape)}]" if shape else name


def _signature(kernel: Kernel) -> str:
    values = [a.name for a in kernel.args if isinstance(a, ValueArg)]
    arrays = [a for a in kernel.args if isinstance(a, ArrayArg)]
    written = {a.name for a in arrays if a.name in kernel.writers}
    inputs = [
        _array(a.name, a.shape) for a in arrays if a.name not in written or a.name in kernel.readers
    ]
    outputs = [_array(a.name, a.shape) for a in arrays if a.name in written]
    inside = "; ".join(p for p in (", ".join(values), ", ".join(inputs)) if p)
    head = f"{kernel.name}({inside}) -> {', '.join(outputs)}"
    dtypes = {str(a.dtype) if a.dtype is not None else "untyped" for a in arrays}
    if len(dtypes) == 1:
        return _beside(head, dtypes.pop())
    return _beside(head, ", ".join(f"{a.name}: {a.dtype or 'untyped'}" for a in arrays))


def _temporaries(kernel: Kernel) -> list[str]:
    return [
        _beside(f"  {_array(t.name, storage_shape(t))}", _where(t))
        for t in kernel.temporaries
        if t.shape or t.address_space is AddressSpace.LOCAL
    ]


def _where(temporary: TemporaryVariable) -> str:
    words = {
        AddressSpace.PRIVATE: "private",
        AddressSpace.LOCAL: "shared",
        AddressSpace.GLOBAL: "global",
        AddressSpace.AUTO: "temporary",
    }
    return f"{words[temporary.address_space]} {temporary.dtype or ''}".rstrip()


def _rules(kernel: Kernel) -> list[str]:
    return [
        f"  {r.name}{'(' + ', '.join(r.arguments) + ')' if r.arguments else ''}"
        f" := {to_text(r.expression)}"
        for r in kernel.substitutions
    ]


def _assumptions(kernel: Kernel) -> list[str]:
    condition = _sets.conditions(kernel.assumptions.set)
    lines = [] if condition is True else [f"  assuming {to_text(condition)}"]
    return lines + [f"  assuming {assertion.text}" for assertion in kernel.assertions]


def _beside(text: str, note: str, column: int = _COLUMN) -> str:
    return f"{text:<{column - 1}} {note}".rstrip() if note else text


def _note(kernel: Kernel, statement: Statement) -> str:
    if statement.kind == "update":
        return f"{statement.operation} over {', '.join(kernel.reduced_inames(statement))}"
    if statement.kind == "move":
        return statement.made_by or "move"
    return ""


def statement_text(statement: Statement) -> str:
    """``lhs = rhs`` with updates spelled ``+=`` or ``max=``."""
    symbol = "="
    if statement.operation is not None:
        symbol = _SYMBOLS.get(statement.operation, f"{statement.operation}=")
    return f"{to_text(statement.lhs)} {symbol} {to_text(statement.rhs)}"


def _nest(kernel: Kernel) -> list[str]:
    try:
        nest = make_nest(decide_address_spaces(kernel))
    except LoopkitError as error:
        return [*_plain(kernel, kernel.tree, "  "), f"  (no code can be made of this: {error.why})"]
    lines = []
    coordinates = [
        f"{c.iname} = {c.word}" + (f" + {c.lower}" if c.lower else "")
        for c in nest.hardware.coordinates
    ]
    if coordinates:
        lines.append("  " + "   ".join(coordinates))
    return [*lines, *_lines(kernel, nest.code, "  ", ())]


def _plain(kernel: Kernel, nodes: Tree, pad: str) -> Iterator[str]:
    """The tree, as nothing is known of its bounds."""
    for node in nodes:
        if isinstance(node, Loop):
            yield f"{pad}for {node.iname}"
            yield from _plain(kernel, node.body, pad + "  ")
        else:
            yield pad + statement_text(kernel.statement_by_id[node])


def _lines(
    kernel: Kernel, codes: Iterable[Code], pad: str, conditions: tuple[str, ...]
) -> Iterator[str]:
    """The nest; ``conditions`` guard it, and are not yet shown."""
    for code in codes:
        if isinstance(code, For):
            step = f" step {code.step}" if code.step != 1 else ""
            note = "unrolled" if code.unroll else ""
            head = f"{pad}for {code.iname} in [{to_text(code.lower)}, {_ceil(code.upper)}){step}"
            yield _beside(head, _if(conditions, note))
            yield from _lines(kernel, code.body, pad + "  ", ())
        elif isinstance(code, Let):
            yield f"{pad}for {code.iname} = {to_text(code.value)}"
            yield from _lines(kernel, code.body, pad + "  ", conditions)
        elif isinstance(code, If):
            more = (*conditions, to_text(code.condition))
            yield from _lines(kernel, code.body, pad, more)
        elif isinstance(code, Barrier):
            yield f"{pad}---- {'warp barrier' if code.of_warp else 'barrier'}: {code.reason}"
        elif isinstance(code, Do):
            note = _note(kernel, code.statement)
            yield _beside(pad + statement_text(code.statement), _if(conditions, note))


def _if(conditions: tuple[str, ...], note: str) -> str:
    condition = "if " + " and ".join(conditions) if conditions else ""
    return "   ".join(p for p in (note, condition) if p)


def _ceil(expr: Expression) -> str:
    """``(n + 15) // 16`` as ``ceil(n/16)``."""
    if isinstance(expr, prim.FloorDiv) and isinstance(expr.denominator, int):
        numerator = expr.numerator
        last = numerator.children[-1] if isinstance(numerator, prim.Sum) else None
        if last == expr.denominator - 1 and isinstance(numerator, prim.Sum):
            rest = numerator.children[:-1]
            inner = to_text(rest[0] if len(rest) == 1 else prim.Sum(rest))
            inner = f"({inner})" if len(rest) > 1 else inner
            return f"ceil({inner}/{expr.denominator})"
    return to_text(expr)
