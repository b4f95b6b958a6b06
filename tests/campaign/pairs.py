"""Pairs of kernels that differ by one small edit, anywhere in their text.

A kernel is drawn as nested tuples of words and parts.  An edit replaces one part of the nest by
another; nothing is said about whether the edited kernel computes the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import loopkit as lk

Part = Any
"""A word, or a tuple whose first item names its kind: ``("+", left, right)``, ``("read", ...)``."""

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
INPUTS = ("a", "b", "c", "d")
OUTPUTS = ("u", "v")
_OPERATORS = ("+", "+", "-", "*", "*")
_WHOLE = ("//", "%")
_BITS = ("&", "|", "^")
_DECLARED = ("<>", *(f"<{dtype}>" for dtype in (*INTEGERS, *FLOATS)))
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_FUNCTIONS = ("max", "min")
_ROOM = "4*n + 4*m + 40"


@dataclass(frozen=True)
class Text:
    """A kernel in parts: domains, instructions, the types of its arrays, and its functions.

    A function is ``("function", name, dtype, value)``, its value an expression of ``x``.
    """

    domains: tuple[Part, ...]
    rules: tuple[Part, ...]
    body: tuple[Part, ...]
    types: tuple[tuple[str, str], ...]
    functions: tuple[Part, ...] = ()

    def make(self) -> lk.Kernel:
        """The kernel, by ``lk.make_kernel``."""
        own = [
            lk.register_callable(*args, **named) for args, named in map(_declared, self.functions)
        ]
        domains = [shown(d) for d in self.domains]
        return lk.make_kernel(
            domains, self.text, self.data(), assumptions="n, m >= 1", functions=own
        )

    @property
    def text(self) -> str:
        """The instructions."""
        return "\n".join(shown(line) for line in (*self.rules, *self.body))

    def data(self) -> list[Any]:
        """The arrays with their types and shapes; sizes are found by themselves."""
        return [*(lk.GlobalArg(n, t, shape=_shape(n)) for n, t in self.types), ...]

    def source(self, name: str) -> str:
        """Python source that makes the kernel."""
        data = ", ".join(f"lk.GlobalArg({n!r}, {t!r}, shape={_shape(n)!r})" for n, t in self.types)
        lines = [f"{name} = lk.make_kernel(", f"    {[shown(d) for d in self.domains]!r},"]
        lines += ['    """', *(f"    {line}" for line in self.text.split("\n")), '    """,']
        calls = (
            f"lk.register_callable(*{args!r}, **{named!r})"
            for args, named in map(_declared, self.functions)
        )
        lines += [f"    [{data}, ...],", '    assumptions="n, m >= 1",']
        return "\n".join([*lines, f"    functions=[{', '.join(calls)}],", ")"])


def _declared(function: Part) -> tuple[tuple[Any, ...], dict[str, str]]:
    """The arguments of ``lk.register_callable`` that make a function."""
    _, name, dtype, value = function
    body, meaning = f"return {shown(value)};", shown(value)
    return (name, {"x": dtype}, dtype), {"body": body, "meaning": meaning}


def _shape(name: str) -> str:
    return "n, m + 3" if name == "w" else _ROOM


def shown(part: Part) -> str:
    """The text of a part; all parentheses are written."""
    if not isinstance(part, tuple):
        return str(part)
    kind, *rest = part
    inner = [shown(p) for p in rest]
    if kind == "read":
        return f"{inner[0]}[{', '.join(inner[1:])}]"
    if kind in ("call", "reduce"):
        return f"{inner[0]}({', '.join(inner[1:])})"
    if kind == "not":
        return f"(not {inner[0]})"
    if kind == "if":
        return f"({inner[1]} if {inner[0]} else {inner[2]})"
    if kind == "domain":
        name, low, under, high, more = inner
        return f"{{ [{name}]: {low} <= {name} {under} {high}{more} }}"
    if kind == "rule":
        return f"{inner[0]}(x) := {inner[1]}"
    if kind == "set":
        declared, target, value, guard = inner
        options = f" {{if={guard}}}" if guard else ""
        return f"{declared} {target} = {value}{options}".strip()
    if kind == "block":
        return "\n".join([inner[0], *_indented(inner[1:]), "end"])
    if kind == "branch":
        asked, then, other = inner
        return "\n".join([f"if {asked}", *_indented([then]), "else", *_indented([other]), "end"])
    if kind == "segmented":
        operation, name, value, flag = inner
        return f"reduce(segmented({operation}), {name}, {value}, {flag})"
    return f"({inner[0]} {kind} {inner[1]})"


def _indented(parts: list[str]) -> list[str]:
    return [f"    {line}" for part in parts for line in part.split("\n")]


# {{{ drawing


class _Drawing:
    """One kernel being drawn."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        kind = r.random()
        self.whole = kind < 0.55
        if kind < 0.25:
            self.types = {n: r.choice(INTEGERS) for n in (*INPUTS, *OUTPUTS, "w")}
        elif self.whole:
            self.types = dict.fromkeys((*INPUTS, *OUTPUTS, "w"), r.choice(INTEGERS))
        elif kind < 0.75:
            self.types = dict.fromkeys((*INPUTS, *OUTPUTS, "w"), r.choice(FLOATS))
        else:
            self.types = {n: r.choice(FLOATS) for n in (*INPUTS, *OUTPUTS, "w")}
        self.rules: list[str] = []
        self.functions: list[Part] = []
        self.scalars: list[str] = []
        self.reduced = 0

    def index(self, inames: tuple[str, ...], depth: int = 2) -> Part:
        """A subscript that is never negative and at most ``2*n + 2*m + 20`` or so."""
        r, kind = self.r, self.r.random()
        if depth == 0 or kind < 0.35:
            return r.choice([*inames, *inames, r.randrange(4)])
        if kind < 0.75:
            return ("+", self.index(inames, 0), self.index(inames, depth - 1))
        if kind < 0.88:
            return ("//", self.index(inames, depth - 1), r.randint(1, 4))
        return ("%", self.index(inames, depth - 1), r.randint(1, 4))

    def read(self, inames: tuple[str, ...]) -> Part:
        name = self.r.choice(INPUTS if self.r.random() < 0.85 else OUTPUTS)
        return ("read", name, self.index(inames))

    def literal(self) -> Part:
        if self.whole or self.r.random() < 0.6:
            return self.r.randint(1, 5)
        return self.r.choice(["0.5", "2.0", "1.5", "3.0", "0.25"])

    def leaf(self, inames: tuple[str, ...]) -> Part:
        kind = self.r.random()
        if self.scalars and kind < 0.25:
            return self.r.choice(self.scalars)
        if kind < 0.75:
            return self.read(inames)
        if kind < 0.9:
            return self.literal()
        return self.r.choice(inames)

    def value(self, inames: tuple[str, ...], depth: int) -> Part:
        """An expression nested ``depth`` deep on one side at least."""
        r = self.r
        if depth == 0:
            return self.leaf(inames)
        kind = r.random()
        if kind < 0.7:
            operator = r.choice(_OPERATORS)
            if self.whole and r.random() < 0.25:
                operator = r.choice(_BITS)
            elif not self.whole and r.random() < 0.1:
                operator = "/"
            sides = [self.value(inames, depth - 1), self.value(inames, r.randrange(min(depth, 3)))]
            if r.random() < 0.3:
                sides.reverse()
            return (operator, *sides)
        if kind < 0.8:
            sides = [self.value(inames, depth - 1), self.leaf(inames)]
            return ("call", r.choice(_FUNCTIONS), *sides)
        if kind < 0.86 and self.whole:
            return (r.choice(_WHOLE), self.value(inames, depth - 1), r.randint(2, 5))
        if kind < 0.92:
            return ("if", self.condition(inames), self.value(inames, depth - 1), self.leaf(inames))
        if kind < 0.96 and (self.rules or self.functions):
            name = r.choice([*self.rules, *(f[1] for f in self.functions)])
            return ("call", name, self.value(inames, depth - 1))
        return ("+", self.value(inames, depth - 1), self.leaf(inames))

    def condition(self, inames: tuple[str, ...]) -> Part:
        r, kind = self.r, self.r.random()
        compared = r.choice(_COMPARED)
        if kind < 0.5:
            found = (compared, self.index(inames), self.index(inames))
        else:
            found = (compared, self.read(inames), r.randint(0, 4))
        if kind > 0.85:
            found = (r.choice(["and", "or"]), found, self.condition(inames))
        elif kind > 0.8:
            found = ("not", found)
        return found

    def right(self, inames: tuple[str, ...]) -> Part:
        """A right-hand side; sometimes with a reduction."""
        depth = self.r.choice([1, 2, 2, 3, 4, 6, 9, 12])
        if self.r.random() < 0.2 and not self.reduced:
            self.reduced += 1
            inner = self.value((*inames, "k"), min(depth, 3))
            if self.r.random() < 0.25:
                flag = self.condition((*inames, "k"))
                return ("segmented", self.r.choice(["sum", "max"]), "k", inner, flag)
            found = ("reduce", self.r.choice(["sum", "sum", "max", "min"]), "k", inner)
            return found if self.r.random() < 0.5 else ("+", found, self.leaf(inames))
        return self.value(inames, depth)

    def target(self, inames: tuple[str, ...]) -> Part:
        if len(inames) == 2:
            return ("read", "w", "i", self.r.choice(["j", "j", ("+", "j", self.r.randint(0, 2))]))
        index = self.r.choice(["i", "i", ("+", "i", self.r.randint(1, 3)), ("*", 2, "i")])
        return ("read", self.r.choice(OUTPUTS), index)

    def guard(self, inames: tuple[str, ...]) -> Part:
        """A condition, often several that hold together."""
        found = self.condition(inames)
        while self.r.random() < 0.4:
            found = ("and", found, self.condition(inames))
        return found

    def line(self, inames: tuple[str, ...]) -> Part:
        kind, target = self.r.random(), self.target(inames)
        if kind < 0.1:  # data decide which of two values a cell gets
            sides = (("set", "", target, self.right(inames), "") for _ in range(2))
            return ("branch", self.guard(inames), *sides)
        guard = self.guard(inames) if kind < 0.3 else ""
        return ("set", "", target, self.right(inames), guard)

    def lines(self, inames: tuple[str, ...]) -> tuple[Part, ...]:
        """Some instructions of one loop nest; temporaries are computed first."""
        self.scalars, found = [], []
        if self.r.random() < 0.35:
            declared = "<>" if self.r.random() < 0.6 else f"<{self.types['a']}>"
            value = ("set", declared, "t", self.right(inames), "")
            if self.r.random() < 0.3:
                other = ("set", "", "t", self.right(inames), "")
                value = ("branch", self.guard(inames), value, other)
            found.append(value)
            self.scalars.append("t")
        found += [self.line(inames) for _ in range(self.r.choice([1, 1, 1, 2, 3]))]
        return tuple(found)

    def text(self) -> Text:
        r = self.r
        rules: tuple[Part, ...] = ()
        if r.random() < 0.2:
            operator = r.choice(_OPERATORS)
            rules = (("rule", "f", (operator, "x", ("read", r.choice(INPUTS), r.randrange(3)))),)
            self.rules.append("f")
        if r.random() < 0.3:
            operators = [r.choice(_OPERATORS) for _ in range(2)]
            value = (operators[0], (operators[1], "x", r.randint(1, 4)), r.randint(0, 4))
            self.functions.append(("function", "g", self.types["a"], value))
        two = r.random() < 0.3
        inames = ("i", "j") if two else ("i",)
        high = r.choice(["n", "n", "n", "n + 1", 7])
        more = r.choice(["", "", "", " and i mod 2 = 0"])
        domains: list[Part] = [("domain", "i", 0, "<", "n" if two else high, more)]
        if two:
            bound = r.choice([("<", "m"), ("<", "m"), ("<", "m + 1"), ("<", 3)])
            domains.append(("domain", "j", r.choice([0, 0, 1]), *bound, ""))
        body: list[Part] = [("block", f"for {', '.join(inames)}", *self.lines(inames))]
        if r.random() < 0.15:
            body.append(("block", "for h", ("set", "", ("read", "v", "h"), ("read", "u", "h"), "")))
            domains.append(("domain", "h", 0, "<", r.choice(["n", "m"]), ""))
        if self.reduced:
            domains.append(("domain", "k", 0, "<", r.choice(["m", "n", 4]), ""))
        used = "\n".join(map(shown, (*rules, *body)))
        types = tuple((n, t) for n, t in sorted(self.types.items()) if f"{n}[" in used)
        functions = tuple(f for f in self.functions if f"{f[1]}(" in used)
        return Text(tuple(domains), rules, tuple(body), types, functions)


def draw_text(r: random.Random) -> Text:
    """A kernel's text; ``make`` may still refuse it."""
    return _Drawing(r).text()


# }}}

# {{{ edits

Edit = Callable[[random.Random, Part], Part | None]


def _other(r: random.Random, word: str, words: tuple[str, ...]) -> str:
    return r.choice([w for w in dict.fromkeys(words) if w != word])


def _operator(r: random.Random, part: Part) -> Part | None:
    """Another operation."""
    if not isinstance(part, tuple):
        return None
    for words in (("+", "-", "*"), _WHOLE, _BITS, _COMPARED, ("and", "or")):
        if part[0] in words:
            return (_other(r, part[0], words), *part[1:])
    if part[0] in ("call", "reduce") and part[1] in ("max", "min", "sum"):
        words = _FUNCTIONS if part[0] == "call" else ("max", "min", "sum")
        return (part[0], _other(r, part[1], words), *part[2:])
    if part[0] == "domain":
        return (*part[:3], _other(r, part[3], ("<", "<=")), *part[4:])
    return None


def _constant(r: random.Random, part: Part) -> Part | None:
    """Another number, or the same of another type."""
    if isinstance(part, int):
        return r.choice([part + 1, max(0, part - 1), part + r.randint(1, 9), f"{part}.0"])
    if isinstance(part, str) and part[:1].isdigit():
        return r.choice([str(float(part) * 2), str(float(part) + 1), int(float(part))])
    return None


def _name(r: random.Random, part: Part) -> Part | None:
    """Another array, loop or size."""
    for names in (INPUTS, OUTPUTS, ("i", "j"), ("n", "m")):
        if part in names:
            return _other(r, part, names)
    return None


def _swapped(r: random.Random, part: Part) -> Part | None:
    """Operands in the other order."""
    if isinstance(part, tuple) and len(part) == 3 and part[0] in (*_OPERATORS, *_BITS, *_COMPARED):
        return (part[0], part[2], part[1])
    if isinstance(part, tuple) and part[0] == "call" and len(part) == 4:
        return (*part[:2], part[3], part[2])
    if isinstance(part, tuple) and part[0] == "if":
        return (part[0], part[1], part[3], part[2])
    return None


def _regrouped(r: random.Random, part: Part) -> Part | None:
    """Parentheses elsewhere: ``(x + y) + z`` is ``x + (y + z)``, rounding left aside."""
    if not isinstance(part, tuple) or len(part) != 3:
        return None
    operator, left, right = part
    if isinstance(left, tuple) and len(left) == 3 and left[0] in _OPERATORS and operator in "+-*":
        return (left[0], left[1], (operator, left[2], right))
    if (
        isinstance(right, tuple)
        and len(right) == 3
        and right[0] in _OPERATORS
        and operator in "+-*"
    ):
        return (right[0], (operator, left, right[1]), right[2])
    return None


def _shorter(r: random.Random, part: Part) -> Part | None:
    """One operand alone."""
    if isinstance(part, tuple) and len(part) == 3 and part[0] in (*_OPERATORS, *_BITS, "and", "or"):
        return r.choice(part[1:])
    if isinstance(part, tuple) and part[0] == "not":
        return part[1]
    if isinstance(part, tuple) and part[0] == "set" and part[4]:
        return (*part[:4], "")
    return None


def _longer(r: random.Random, part: Part) -> Part | None:
    """Something that may change nothing: ``x + 0``, ``x*1``, ``x - x``."""
    if not isinstance(part, tuple) or part[0] not in (*_OPERATORS, "read"):
        return None
    return r.choice([("+", part, 0), ("*", part, 1), ("*", part, "1.0"), ("-", part, 0)])


def _type(r: random.Random, part: Part) -> Part | None:
    """Another type of a temporary."""
    return _other(r, part, _DECLARED) if part in _DECLARED else None


def _lines(r: random.Random, part: Part) -> Part | None:
    """Two instructions in the other order, or one left out, or one twice."""
    if not isinstance(part, tuple) or part[0] != "block" or len(part) < 4:
        return None
    at = r.randrange(2, len(part) - 1)
    kind = r.random()
    if kind < 0.7:
        return (*part[:at], part[at + 1], part[at], *part[at + 2 :])
    if kind < 0.9:
        return (*part[:at], *part[at + 1 :])
    return (*part[: at + 1], part[at], *part[at + 1 :])


EDITS: tuple[tuple[Edit, int], ...] = (
    *((_operator, 4), (_constant, 4), (_name, 4), (_swapped, 3), (_regrouped, 2)),
    *((_shorter, 2), (_longer, 2), (_lines, 2), (_type, 1)),
)


def _places(part: Part, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Part]]:
    yield path, part
    if isinstance(part, tuple):
        for at, inner in enumerate(part[1:], 1):
            yield from _places(inner, (*path, at))


def _at(part: Part, path: tuple[int, ...], new: Part) -> Part:
    if not path:
        return new
    return (*part[: path[0]], _at(part[path[0]], path[1:], new), *part[path[0] + 1 :])


def edited(r: random.Random, text: Text) -> tuple[str, Text] | None:
    """What was done, and the kernel after one edit; None where the edit drawn does not fit."""
    (edit,) = r.choices([e for e, _ in EDITS], [w for _, w in EDITS])
    whole = ("all", text.domains, text.rules, text.body, text.functions)
    nested = ("all", *(("some", *parts) for parts in whole[1:]))
    found = [(path, new) for path, part in _places(nested) if (new := edit(r, part)) is not None]
    if not found:
        return None
    path, new = r.choice(found)
    _, *groups = _at(nested, path, new)
    names = ("domains", "rules", "body", "functions")
    changed = {name: group[1:] for name, group in zip(names, groups, strict=True)}
    return edit.__name__.lstrip("_"), replace(text, **changed)


# }}}
