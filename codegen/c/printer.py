"""The printer: from the tree to CUDA C text, with parentheses decided by one precedence table.

Parentheses are written where C requires them, and where a person would otherwise have to think:
around ``&&`` inside ``||``, around operands of bitwise operators, shifts and comparisons, and
around ``-x`` after ``*``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.branches import is_else
from loopkit.codegen.c.tables import table_lines
from loopkit.codegen.c.types import TYPES

_INDENT = "    "
_COMMENT_COLUMN = 72
_LONGEST_HEAD = 80

# Levels of precedence, loosest first.
_CHOICE, _OR, _AND, _BITS, _EQUAL, _LESS, _SHIFT, _ADD, _MULTIPLY, _UNARY, _POSTFIX = range(11)

_BINARY: dict[str, tuple[int, int, int]] = {
    "||": (_OR, _BITS, _BITS),
    "&&": (_AND, _BITS, _BITS),
    **dict.fromkeys("|^&", (_BITS, _UNARY, _UNARY)),
    **dict.fromkeys(("==", "!="), (_EQUAL, _ADD, _ADD)),
    **dict.fromkeys(("<", "<=", ">", ">="), (_LESS, _ADD, _ADD)),
    **dict.fromkeys(("<<", ">>"), (_SHIFT, _UNARY, _UNARY)),
    **dict.fromkeys("+-", (_ADD, _ADD, _MULTIPLY)),
    **dict.fromkeys("*/%", (_MULTIPLY, _MULTIPLY, _UNARY)),
}
"""An operator's own level, and the least that it leaves bare at its left and at its right."""
_CHAINS = frozenset(("||", "&&", "|", "^", "&"))
"""Operators that need no parentheses around a left operand of the same operator."""

_SUFFIXES = {"int": "", "uint": "u", "long": "LL", "ulong": "ULL"}
_WAITS = {"block": CUDA.block_barrier, "warp": CUDA.warp_barrier}


def expression_text(expr: c.CExpression) -> str:
    """An expression as C text."""
    return _EXPRESSIONS[type(expr)](expr)


def _level(expr: c.CExpression) -> int:
    """The precedence of an expression's outermost operator."""
    if isinstance(expr, c.Binary):
        return _BINARY[expr.operator][0]
    return _LEVELS.get(type(expr), _POSTFIX)


_LEVELS: dict[type, int] = {c.Choice: _CHOICE, c.Unary: _UNARY, c.Cast: _UNARY}


def is_enclosed(whole: c.CExpression, position: int) -> bool:
    """Whether an operand, one of :func:`.tree.children`, is printed in parentheses."""
    part = c.children(whole)[position]
    if isinstance(part, (c.Name, c.Number, c.Element)):
        return False
    if isinstance(whole, c.Binary):
        _, left, right = _BINARY[whole.operator]
        if position == 0:
            is_chain = isinstance(part, c.Binary) and part.operator == whole.operator in _CHAINS
            return not is_chain and _level(part) < left
        return _level(part) < right or (right == _UNARY and _is_minus(part))
    if isinstance(whole, c.Choice):
        return position == 0 and isinstance(part, c.Choice)
    if isinstance(whole, c.Unary) and whole.operator == "-":
        return _level(part) < _UNARY or _is_minus(part)
    if isinstance(whole, (c.Unary, c.Cast)):
        return _level(part) < _UNARY
    return isinstance(whole, c.Member) and _level(part) < _POSTFIX


def _is_minus(expr: c.CExpression) -> bool:
    return isinstance(expr, c.Unary) and expr.operator == "-"


def _operand(whole: c.CExpression, position: int = 0) -> str:
    text = expression_text(c.children(whole)[position])
    return f"({text})" if is_enclosed(whole, position) else text


def _listed(parts: Iterable[c.CExpression]) -> str:
    return ", ".join(map(expression_text, parts))


def _number(expr: c.Number) -> str:
    if expr.ctype == "bool":
        return "true" if expr.value else "false"
    if expr.ctype in _SUFFIXES:
        return f"{expr.value}{_SUFFIXES[expr.ctype]}"
    return _fraction(expr.value, expr.ctype == "float")


@lru_cache(maxsize=4096)
def _fraction(value: float, is_single: bool) -> str:
    """The shortest text that reads back as the same floating-point number."""
    text = str(np.float32(value)) if is_single else repr(value)
    return (text if "." in text or "e" in text else text + ".0") + "f" * is_single


def _binary(expr: c.Binary) -> str:
    # Long sums lean to the left: no call for each of their operators.
    spine = [expr]
    while isinstance(spine[-1].left, c.Binary):
        spine.append(spine[-1].left)
    pieces = [_operand(spine[-1])]
    for whole, around in zip(reversed(spine), [*reversed(spine[:-1]), None], strict=True):
        pieces.append(f" {whole.operator} {_operand(whole, 1)}")
        if around is not None and is_enclosed(around, 0):
            pieces = ["(", *pieces, ")"]
    return "".join(pieces)


def _choice(expr: c.Choice) -> str:
    then, other = expression_text(expr.then), expression_text(expr.other)
    return f"{_operand(expr)} ? {then} : {other}"


_EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    c.Number: _number,
    c.Name: lambda e: e.name,
    c.Element: lambda e: e.array + "".join(f"[{expression_text(i)}]" for i in e.indices),
    c.Call: lambda e: f"{e.function}({_listed(e.arguments)})",
    c.Unary: lambda e: f"{e.operator}{_operand(e)}",
    c.Binary: _binary,
    c.Choice: _choice,
    c.Cast: lambda e: f"({e.ctype}){_operand(e)}",
    c.Member: lambda e: f"{_operand(e)}.{e.name}",
    c.Braces: lambda e: f"{e.ctype}{{{_listed(e.parts)}}}",
}


def printed(function: c.Function) -> tuple[c.Function, str]:
    """The function with the line number of each statement, and its text."""
    head = _head(function)
    lines = [*function.above]
    joins = []
    for join in function.joins:
        joins.append(replace(join, line=len(lines) + 4))
        lines += _join(join)
    lines += head
    tables = []
    for table in function.tables:
        tables.append(replace(table, line=len(lines) + 1))
        count = len(table.data) // TYPES[table.ctype].itemsize
        opened = f"static {table.ctype} const {table.name}[{count}]"
        lines += [_INDENT + line for line in table_lines(opened, TYPES[table.ctype], table.data)]
    if function.alignment is not None:
        aligned = f"__align__({function.alignment})"
        lines.append(f"{_INDENT}extern __shared__ {aligned} unsigned char shared_memory[];")
    first, step = (function.line + 2, 1) if len(head) > 3 else (function.line + 1, 0)
    parameters = tuple(
        replace(p, line=first + step * number) for number, p in enumerate(function.parameters)
    )
    body = _printed(function.body, 1, lines)
    text = "\n".join([*lines, "}", ""])
    function = replace(function, tables=tuple(tables), joins=tuple(joins))
    return replace(function, parameters=parameters, body=body), text


def _join(join: c.Join) -> list[str]:
    return [
        f"__device__ __forceinline__ {join.ctype}",
        f"{join.name}({join.ctype} a, {join.ctype} b)",
        "{",
        f"{_INDENT}return {expression_text(join.value)};",
        "}",
        "",
    ]


def _printed(nodes: tuple[c.Node, ...], level: int, lines: list[str]) -> tuple[c.Node, ...]:
    """Statements with their line numbers, given the lines that precede them."""
    found: list[c.Node] = []
    indent = _INDENT * level
    has_else = False
    for number, node in enumerate(nodes):
        if has_else:
            has_else = False  # printed with the guard before it
            continue
        if isinstance(node, c.If):
            behind = nodes[number + 1] if number + 1 < len(nodes) else None
            has_else = isinstance(behind, c.If) and is_else(node, behind)
            guards = (node, behind) if isinstance(behind, c.If) and has_else else (node,)
            found += _guards(guards, level, lines, has_braces=any(map(_has_braces, _chain(guards))))
            continue
        text = statement_text(node)
        if isinstance(node, (c.For, c.Block, c.Combine)):
            if isinstance(node, c.For) and node.is_unrolled:
                lines.append(f"{indent}#pragma unroll")
            brace = " {" * _has_braces(node)
            opened = indent + (text + brace).lstrip()
            comment = node.comment if isinstance(node, c.Combine) else ""
            lines.append(f"{opened:<{_COMMENT_COLUMN - 2}}  // {comment}" if comment else opened)
            line = len(lines)
            found.append(replace(node, body=_printed(node.body, level + 1, lines), line=line))
            if brace:
                lines.append(indent + "}")
            if isinstance(node, c.For) and node.label is not None:
                lines.append(f"{indent}{node.label}:;")
            continue
        comment = node.comment if isinstance(node, (c.Assign, c.Wait, c.Break)) else ""
        text = indent + text
        lines.append(f"{text:<{_COMMENT_COLUMN - 2}}  // {comment}" if comment else text)
        found.append(replace(node, line=len(lines)))
    return tuple(found)


def _guards(
    guards: tuple[c.If, ...],
    level: int,
    lines: list[str],
    *,
    has_braces: bool,
    lead: str = "",
) -> tuple[c.If, ...]:
    """A guard, with its ``else`` branch if it has one."""
    first, *others = guards
    found = [_branch(first, lead + statement_text(first), level, lines, has_braces)]
    for other in others:
        inner = _else_if(other)
        if inner:
            line = len(lines) + (not has_braces)
            body = _guards(inner, level, lines, has_braces=has_braces, lead="else ")
            found.append(replace(other, body=body, line=line))
        else:
            found.append(_branch(other, "else", level, lines, has_braces))
    return tuple(found)


def _branch(node: c.If, head: str, level: int, lines: list[str], has_braces: bool) -> c.If:
    indent, brace = _INDENT * level, " {" * has_braces
    if has_braces and head.startswith("else"):
        lines[-1] += f" {head} {{"  # behind the brace that closes the other branch
    else:
        lines.append(indent + head + brace)
    line = len(lines)
    body = _printed(node.body, level + 1, lines)
    if brace:
        lines.append(indent + "}")
    return replace(node, body=body, line=line)


def _else_if(node: c.If) -> tuple[c.If, ...]:
    """The only node of an ``else`` branch if that is a guard, with its own ``else``."""
    match node.body:
        case (c.If() as only,):
            return (only,)
        case (c.If() as first, c.If() as second) if is_else(first, second):
            return first, second
    return ()


def _chain(guards: tuple[c.If, ...]) -> list[c.If]:
    """All branches of ``if``, ``else if`` and ``else``."""
    inner = _else_if(guards[1]) if len(guards) == 2 else ()
    return [guards[0], *_chain(inner)] if inner else [*guards]


def _head(function: c.Function) -> list[str]:
    texts = list(map(_parameter, function.parameters))
    first = f'extern "C" __global__ void __launch_bounds__({function.threads})'
    joined = ", ".join(texts)
    if len(joined) < _LONGEST_HEAD:
        return [first, f"{function.name}({joined})", "{"]
    listed = [f"{_INDENT}{text}{',' if text is not texts[-1] else ')'}" for text in texts]
    return [first, f"{function.name}(", *listed, "{"]


def _parameter(parameter: c.Parameter) -> str:
    constant = " const" if parameter.is_const else ""
    if not parameter.is_pointer:
        return f"{parameter.ctype}{constant} {parameter.name}"
    alone = "__restrict__ " if parameter.is_restrict else ""
    return f"{parameter.ctype}{constant} *{alone}{parameter.name}"


def _has_braces(node: c.For | c.If | c.Block | c.Combine) -> bool:
    """Whether braces stand around a body: one plain statement or loop needs none."""
    if isinstance(node, (c.Block, c.Combine)) or len(node.body) != 1:
        return True
    (only,) = node.body
    return not isinstance(only, (c.Assign, c.Wait, c.Break, c.For)) or (
        isinstance(only, c.For) and (only.is_unrolled or only.label is not None)
    )


def statement_text(node: c.Node) -> str:
    """A statement in one line, without what stands in it."""
    return _STATEMENTS[type(node)](node)


def _declaration(node: c.Declaration) -> str:
    kind, name = node.ctype, node.name
    dimensions = "".join(f"[{n}]" for n in node.dimensions)
    if node.offset is None:
        aligned = f"__align__({node.alignment}) " if node.alignment > 1 else ""
        shared = f"__shared__ {aligned}" if node.space == "shared" else ""
        return f"{shared}{kind} {name}{dimensions};"
    place = f"(shared_memory + {node.offset})"
    if not node.dimensions:
        return f"{kind} &{name} = *({kind} *){place};"
    inner = dimensions.removeprefix("[None]")
    if not inner:
        return f"{kind} *{name} = ({kind} *){place};"
    return f"{kind} (*{name}){inner} = ({kind} (*){inner}){place};"


def _for(node: c.For) -> str:
    name, lower = node.name, expression_text(node.lower)
    test = c.Binary("<=" if node.inclusive else "<", c.Name(name), node.upper)
    step = f"++{name}" if node.step == 1 else f"{name} += {node.step}"
    return f"for ({node.ctype} {name} = {lower}; {expression_text(test)}; {step})"


def _assign(node: c.Assign) -> str:
    target, value = expression_text(node.target), expression_text(node.value)
    if node.atomic:
        return f"{node.atomic}(&{target}, {value});"
    return f"{target} {node.operator} {value};"


_STATEMENTS: dict[type, Callable[[Any], str]] = {
    c.Declaration: _declaration,
    c.Let: lambda n: f"{n.ctype} const {n.name} = {expression_text(n.value)};",
    c.For: _for,
    c.If: lambda n: f"if ({expression_text(n.condition)})",
    **dict.fromkeys((c.Block, c.Combine), lambda n: ""),
    c.Assign: _assign,
    c.Wait: lambda n: f"{_WAITS[n.scope]}();",
    c.Break: lambda n: "break;" if n.label is None else f"goto {n.label};",
}
