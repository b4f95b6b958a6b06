"""Forms and conditions for people: nothing is decided by these texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopkit.codegen.proof import forms
from loopkit.codegen.proof.conditions import Compare, Joined, Unknown
from loopkit.codegen.proof.forms import Form, Node
from loopkit.codegen.proof.operations import OWN


def shown(node: Node) -> str:
    """A form, ``16*i_outer + i_inner - n``, or a condition."""
    if isinstance(node, Form):
        return _form(node)
    return _RULES[type(node)](node)


def _form(form: Form) -> str:
    parts = sorted((("*".join(sorted(map(shown, m))), c) for m, c in form.terms.items()), key=_late)
    text = ""
    for atoms, value in parts:
        sign = "-" if value < 0 else "+"
        size = abs(value)
        term = (atoms if size == 1 else f"{size}*{atoms}") if atoms else str(size)
        if text:
            text += f" {sign} {term}"
        else:
            text = f"-{term}" if sign == "-" else term
    return text or "0"


def _late(part: tuple[str, int]) -> tuple[bool, bool, str]:
    """What is subtracted comes after what is added, numbers come last."""
    return not part[0], part[1] < 0, part[0]


def _listed(nodes: tuple[Any, ...]) -> str:
    return ", ".join(map(shown, nodes))


def _several(node: forms.Extreme | Joined) -> str:
    return f"{node.word}({', '.join(sorted(map(shown, node.parts)))})"


def _opaque(atom: forms.Opaque) -> str:
    op, *more = atom.word
    symbol = _SYMBOLS.get(op)
    if symbol is not None:
        return symbol.join(f"({t})" if " " in t else t for t in map(shown, atom.parts))
    if op == "cast" or (more and more[-1] is not None):  # a type, a function, a number
        op = str(more[0 if op == "cast" else -1]).removeprefix(OWN)
    return f"{op}({_listed(atom.parts)})" if atom.parts else str(op)


_SYMBOLS: dict[Any, str] = {
    "add": " + ",
    "mul": "*",
    "div": "/",
    "fdiv": "//",
    "mod": " % ",
    "*": "*",
    "//": "//",
    "%": " % ",
    "condition": "",
}


def _unknown(condition: Unknown) -> str:
    texts = [_form(condition.right.minus(condition.left))]
    if condition.operator in ("==", "!="):
        texts.append(_form(condition.left.minus(condition.right)))
    return f"{'not ' * condition.is_negated}0 {condition.operator} {min(texts)}"


_RULES: dict[type, Callable[[Any], str]] = {
    forms.Variable: lambda atom: str(atom.name),
    forms.Floor: lambda atom: f"floor(({_form(atom.of)})/{atom.by})",
    forms.Extreme: _several,
    forms.Xor: lambda atom: f"({_form(atom.left)} ^ ({_form(atom.right)}) % {1 << atom.bits})",
    forms.Loaded: lambda atom: f"{atom.array}[{_form(atom.offset)}]",
    forms.Choice: lambda atom: f"if({_listed(atom.inside)})",
    forms.Opaque: _opaque,
    Compare: lambda condition: f"{_form(condition.form)} {condition.operator} 0",
    Joined: _several,
    Unknown: _unknown,
}
