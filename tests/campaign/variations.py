"""What a drawn text is said with besides: functions, tables, strides.

A variation hangs on the text alone, so that the same kernels are drawn with and without it.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import pymbolic.primitives as prim

import loopkit as lk

from .drawn import Block, Drawn, Line, Node, is_in

INDEX_ARRAYS = ("col", "perm", "ptr")
TABLES = ("g", "gg", "o", "q")
"""Arrays of which index arrays choose elements."""
FILLED = (*INDEX_ARRAYS, *TABLES, "tab")
"""Arrays that get contents of their own, by name."""
BENT = ("int32", "float64")
"""Types that the function of a user's has overloads for."""

_BEND = (
    "lk.register_callable('bend', {{'x, y': '{0}'}}, '{0}', body='return x < y ? y - 1 : x;', "
    "meaning='y - 1 if x < y else x')"
)
_TABLE = (3, 1, 4, 0, 5)
_CALLS = {
    "shifted": ("<> t = 2*x[i]\\ny[i] = t - c if i > 0 else t", "['x', 'c', ...]", "0 <= i < l"),
    "turned": ("y[i] = x[l - 1 - i]", "['x', ...]", "0 <= i < l"),
    "running": ("y[i] = y[i - 1] + x[i]", "['x', 'y', ...]", "1 <= i < l"),
    "inner": (
        "r = sum(i, x[i]*y[i])",
        "['x', 'y', lk.GlobalArg('r', shape=()), ...]",
        "0 <= i < l",
    ),
}
"""Functions that are kernels: their texts, arguments and loops."""


def varied(drawn: Drawn) -> Drawn:
    """A kernel with some of the variations, or none of them."""
    r = random.Random(crc32(drawn.text.encode()))
    for variation in (_calling, _tabled, _strided, _inlined, _flattened, _paired):
        if r.random() < 0.12:
            drawn = variation(r, drawn)
    return _naming(_tagging(_with_infinity(drawn)))


def _with_infinity(drawn: Drawn) -> Drawn:
    """Some maxima of fractions are those of infinity below them, too."""
    fractions = all(dtype.startswith("float") for _, dtype in drawn.types)
    if not fractions or crc32(drawn.text.encode()) % 3:
        return drawn
    return _rewritten(drawn, lambda line: re.sub(r"\bmax\((?=[ab]\[)", "max(-inf, ", line))


def _tagging(drawn: Drawn) -> Drawn:
    """In some kernels every third use of an array or a rule has a tag."""
    if crc32(drawn.text.encode()) % 5:
        return drawn
    uses = itertools.count()

    def one(found: re.Match[str]) -> str:
        return found[0] + ("" if next(uses) % 3 else "$near")

    names = r"\b[a-z]\w*(?=\[)|\brule1\b(?!.*:=)"
    return _rewritten(drawn, lambda line: re.sub(names, one, line))


def _naming(drawn: Drawn) -> Drawn:
    """In some kernels arguments of rules and functions have their names."""
    if crc32(drawn.text.encode()) % 4:
        return drawn

    def named(line: str) -> str:
        if ":=" in line:
            return line
        line = re.sub(r"\b(rule1(?:\$\w+)?)\(", r"\1(x=", line)
        return re.sub(r"\bbend\((\w+(?:\$\w+)?\[[^\[\]]*\]), 3\)", r"bend(y=3, x=\1)", line)

    return _rewritten(drawn, named)


def _calling(r: random.Random, drawn: Drawn) -> Drawn:
    """A kernel of one type calls a function of a user's of what it reads first."""
    types = {dtype for name, dtype in drawn.types if name not in INDEX_ARRAYS}
    if not types <= {*BENT} or len(types) != 1:
        return drawn
    made = tuple(("bend", _BEND.format(t)) for t in BENT)
    return replace(_rewritten(drawn, _called), made=(*drawn.made, *made))


def _called(line: str) -> str:
    if any(word in line for word in ("atomic", ":=", *(f"{n}[" for n in INDEX_ARRAYS))):
        return line
    return re.sub(r"(?<= = )(\w+\[[^\[\]]*\])", r"bend(\1, 3)", line, count=1)


def _tabled(r: random.Random, drawn: Drawn) -> Drawn:
    """A table of constants in the place of an array that is only read."""
    types = dict(drawn.types)
    names = [n for n in ("a", "b") if n in types and types[n] != "bfloat16"]
    if not names or "tab" in types:
        return drawn
    name = r.choice(names)
    count = len(_TABLE)
    pattern = re.compile(rf"\b{name}\[([^\[\],]*)\]")

    def change(line: str) -> str:
        return line if ":=" in line else pattern.sub(rf"tab[(\1) % {count}]", line)

    values = f"np.array({list(_TABLE)}, {types[name]!r})"
    made = f"lk.TemporaryVariable('tab', initializer={values}, read_only=True)"
    return replace(_rewritten(drawn, change), made=(*drawn.made, ("tab", made)))


def _strided(r: random.Random, drawn: Drawn) -> Drawn:
    """Arrays whose strides are arguments, all of them or but for the last one."""
    text, found = drawn.text, []
    for name, _ in drawn.types:
        access = re.search(rf"\b{name}\[([^\[\]]*)\]", text)
        if access is None or name in INDEX_ARRAYS or r.random() < 0.6:
            continue
        rank = 1 + access[1].count(",")
        rows = ", ".join(["auto"] * (rank - 1) + ["1"])
        found.append((name, r.choice(["auto", rows]) if rank > 1 else "auto"))
    return replace(drawn, strides=tuple(found))


def _flattened(r: random.Random, drawn: Drawn) -> Drawn:
    """An array of two axes that is only read lies flat: ``c[i*(n + 1) + j]``."""
    name = r.choice(("c", "d"))
    text, found = drawn.text, re.findall(rf"\b{name}\[([^\[\]]*)\]", drawn.text)
    if name in dict(drawn.strides) or not found or len(found) != text.count(f"{name}["):
        return drawn
    try:
        shape = drawn.make().array(name).shape
    except lk.LoopkitError:
        return drawn
    if shape is None or len(shape) != 2:
        return drawn
    rows, columns = map(str, shape)

    def one(access: re.Match[str]) -> str:
        row, column = access[1].split(",")
        return f"{name}[({row})*({columns}) +{column}]"

    def flat(line: str) -> str:
        return re.sub(rf"\b{name}\[([^\[\]]*)\]", one, line)

    changed = _rewritten(drawn, flat, heads=True)
    return replace(changed, shapes=(*drawn.shapes, (name, f"({rows})*({columns})")))


def _paired(r: random.Random, drawn: Drawn) -> Drawn:
    """What index arrays choose are pairs of elements that lie side by side: ``gg``, not ``g``."""
    shapes = dict(drawn.shapes)
    if "g" not in shapes or drawn.text.count("g[") != len(re.findall(_GATHERED, drawn.text)):
        return drawn
    end = r.choice(("2*({}) + 1", "({})*2", "2*(1 + {}) - 1"))

    def pairs(line: str) -> str:
        return re.sub(_GATHERED, lambda found: f"gg[{end.format(found[1])}]", line)

    shapes["gg"] = f"2*({shapes.pop('g')})"
    return replace(
        _rewritten(drawn, pairs, heads=True),
        types=tuple(sorted(("gg" if name == "g" else name, dtype) for name, dtype in drawn.types)),
        shapes=tuple(sorted(shapes.items())),
    )


_GATHERED = r"\bg\[(\w+(?:\[[^\[\]]*\])?)\]"


def chosen_of(table: Any) -> Any:
    """How many elements, or pairs of them, index arrays choose from."""
    count = table.shape[0]
    return prim.FloorDiv(count, 2) if table.name == "gg" else count


def _inlined(r: random.Random, drawn: Drawn) -> Drawn:
    """Behind all else, or around it, a kernel is called with columns of what was written."""
    types, text = dict(drawn.types), drawn.text
    written = [n for n in ("u", "v", "w") if is_in(text, f"{n}[") and n in types]
    if not written or "called" in types:
        return drawn
    name, word = r.choice(written), r.choice([*_CALLS])
    size = "n"
    line = {
        "shifted": f"[called_at]: called[called_at] = shifted([called_at]: {name}[called_at], 3)",
        "turned": f"[called_at]: called[called_at] = turned([called_at]: {name}[called_at])",
        "running": f"[called_at]: called[called_at] = "
        f"running([called_at]: {name}[called_at], [called_at]: called[called_at])",
        "inner": f"called[0] = "
        f"inner([called_at]: {name}[called_at], [called_at]: {name}[called_at])",
    }[word]
    body, data, domain = _CALLS[word]
    made = f"lk.make_function('{{ [i]: {domain} }}', '{body}', {data}, name={word!r})"
    return replace(
        drawn,
        domains=(*drawn.domains, f"{{ [called_at]: 0 <= called_at < {size} }}"),
        body=(*drawn.body, Line(line)),
        types=tuple(sorted((*drawn.types, ("called", types[name])))),
        made=(*drawn.made, (word, made)),
    )


def _rewritten(drawn: Drawn, change: Callable[[str], str], *, heads: bool = False) -> Drawn:
    """A text with its instructions changed, and the ``heads`` of its blocks, if asked for."""
    return replace(drawn, body=tuple(_changed(node, change, heads) for node in drawn.body))


def _changed(node: Node, change: Callable[[str], str], heads: bool) -> Node:
    if isinstance(node, Line):
        return Line(change(node.text))
    parts = (node.body, node.otherwise)
    body, otherwise = (tuple(_changed(n, change, heads) for n in part) for part in parts)
    return Block(change(node.head) if heads else node.head, body, otherwise)
