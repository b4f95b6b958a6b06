"""Kernels drawn at random, as text that can be pasted into a test.

All data are small whole numbers, so that results are compared exactly: integers, which
wrap around the same everywhere, or floating-point numbers far below where they round.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import loopkit as lk

from .composed import Composed, draw_composed
from .drawn import Block, Drawn, Line, Node, lines_of
from .dtypes import INDICES, draw_theme
from .naming import Renaming, chosen
from .variations import FILLED, INDEX_ARRAYS, varied

MADE = ("acc", "acc_0", "insn", "insn_0", "insn_init", "insn_update", "cond", "cond_set", "i_and_j")
"""What transforms and creation call what they make."""


# {{{ drawing


@dataclass(frozen=True)
class Iname:
    """A loop variable and what is known of its values."""

    name: str
    domain: str
    parents: tuple[str, ...] = ()
    low: int = 0
    high: str | None = None  # exclusive, where it is a size
    constant: bool = False


_READ = {1: ("a", "b"), 2: ("c", "d"), 3: ("e",)}
_WRITTEN = {1: ("u", "v", "w"), 2: ("x", "y", "z"), 3: ("f",)}
#: What cannot stand beside other conditions without parentheses.
_ODD = re.compile(r"\b(mod|or|exists)\b")
_NAMES = ("i", "j", "k", "h", "i2", "j2", "k2", "h2", "i3", "j3", "k3", "h3")


class _Drawing:
    """One kernel being drawn."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.inames: dict[str, Iname] = {}
        self.left = r.choices([1, 2, 3, 4, 5, 6], [3, 4, 4, 3, 2, 2])[0]
        self.theme = draw_theme(r)
        self.index_type = r.choice(INDICES)
        self.sizes = (
            ("n",) if r.random() < 0.35 else ("n", "m") if r.random() < 0.7 else ("n", "m", "p")
        )
        # Few arrays, so that statements share them.
        self.written = {rank: names[: r.randint(1, len(names))] for rank, names in _WRITTEN.items()}
        self.ranks: dict[str, int] = {}
        self.shapes: dict[str, str] = {}
        self.temporaries = 0
        self.rules: list[str] = []
        self.special = r.random()
        # Statements that write cells of their own: loops around them can run in parallel.
        self.apart = r.random() < 0.45

    def chance(self, probability: float) -> bool:
        return self.r.random() < probability

    # {{{ loops

    def iname(self, scope: list[Iname]) -> Iname:
        """An iname for a loop inside ``scope``: a new one, or one that another loop has."""
        names = {s.name for s in scope}
        old = [
            i for i in self.inames.values() if i.name not in names and names.issuperset(i.parents)
        ]
        if old and (self.chance(0.2) or len(self.inames) >= len(_NAMES)):
            return self.r.choice(old)
        made = self.new_iname(_NAMES[len(self.inames)], scope)
        self.inames[made.name] = made
        return made

    def new_iname(self, name: str, scope: list[Iname]) -> Iname:
        size = self.r.choice(self.sizes)
        above = [i for i in scope if i.low >= 0]
        outer = self.r.choice(above) if above else None
        kind = self.r.random()
        if outer is not None and kind < 0.16:
            o = outer.name
            condition = self.r.choice(
                [
                    f"0 <= {name} <= {o}",
                    f"0 <= {name} < {o}",
                    f"{o} <= {name} < {size}",
                    f"{o} < {name} < {size}",
                    f"{o} <= {name} < {o} + 3",
                    f"0 <= {name} and {name} + {o} < {size}",
                    f"0 <= 2*{name} <= {o}",
                    f"0 <= {name} < {size} and {name} <= 2*{o} + 1",
                ]
            )
            return Iname(name, f"{{ [{name}]: {condition} }}", (o,))
        if kind < 0.28:
            length = self.r.choice([2, 3, 4, 5, 8])
            return Iname(name, f"{{ [{name}]: 0 <= {name} < {length} }}", constant=True)
        if kind < 0.38:
            low, high = self.r.choice([("1", f"< {size}"), ("1", f"<= {size}"), ("2", f"< {size}")])
            return Iname(name, f"{{ [{name}]: {low} <= {name} {high} }}", low=int(low))
        if kind < 0.40:
            other = self.r.choice([*self.sizes, "2*n"])
            domain = f"{{ [{name}]: 0 <= {name} < {size} and {name} < {other} }}"
            return Iname(name, domain)
        if kind < 0.42:
            # Subscripts add what is below zero.
            return Iname(name, f"{{ [{name}]: -2 <= {name} < {size} }}", low=-2)
        if kind < 0.48:
            stride = self.r.choice([2, 2, 3])
            rest = self.r.randrange(stride)
            return Iname(
                name, f"{{ [{name}]: 0 <= {name} < {size} and {name} mod {stride} = {rest} }}"
            )
        if kind < 0.56:
            return self.odd_iname(name, size, outer)
        return Iname(name, f"{{ [{name}]: 0 <= {name} < {size} }}", high=size)

    def odd_iname(self, name: str, size: str, outer: Iname | None) -> Iname:
        """Unions, existentials, equalities, quotients of what is below zero."""
        bounds = f"0 <= {name} < {size}"
        conditions = [
            f"0 <= {name} < 2 or 4 <= {name} < {size}",
            f"0 <= {name} < 2 or {size} <= {name} < {size} + 2",
            f"{bounds} and ({name} < 3 or {name} mod 2 = 1)",
            f"{bounds} and exists (e: {name} = 3*e + 1)",
            f"exists (e: 0 <= e < {size} and {name} = 2*e)",
            f"{bounds} and ({name} - 5) mod 3 = 1",
            f"{bounds} and floor(({name} - 4)/3) >= -1",
            f"{bounds} and {name} & 5 != 1 and {name} >> 1 != 3",
            f"{name} = 2",
            f"{name} = {size}",
        ]
        if outer is not None and self.chance(0.5):
            o = outer.name
            conditions = [
                f"{name} = {o}",
                f"{name} = 2*{o} + 1",
                f"2*{name} = {o} and {o} >= 0",
                f"0 <= {name} <= {o} or {o} + 2 <= {name} < {size}",
                f"{bounds} and {name} != {o}",
                f"{bounds} and ({name} - {o}) mod 3 = 0",
            ]
            return Iname(name, f"{{ [{name}]: {self.r.choice(conditions)} }}", (o,))
        return Iname(name, f"{{ [{name}]: {self.r.choice(conditions)} }}")

    # }}}
    # {{{ expressions

    def index(self, scope: list[Iname], used: list[str]) -> str:
        """One subscript: never negative, whatever the inames are."""
        if not scope:
            return str(self.r.choice([0, 0, 1]))
        fresh = [i for i in scope if i.name not in used] or scope
        iname = self.r.choice(fresh if self.chance(0.9) else scope)
        used.append(iname.name)
        name = iname.name
        if iname.low < 0:
            return f"{name} + {self.r.choice([2, 2, 3])}"
        kind = self.r.random()
        if kind < 0.5:
            return name
        if kind < 0.72:
            return f"{name} + {self.r.choice([1, 1, 2])}"
        if kind < 0.82:
            return f"{name} - {iname.low}" if iname.low else name
        if kind < 0.87 and iname.high:
            return f"{iname.high} - 1 - {name}"
        if kind < 0.91:
            return f"2*{name} + {self.r.choice([0, 1])}"
        others = [i for i in scope if i is not iname and i.low >= 0]
        if kind < 0.95 and others:
            return f"{name} + {self.r.choice(others).name}"
        if kind < 0.97:
            return self.r.choice(
                [
                    f"{name} // 2",
                    f"{name} % 3",
                    f"({name} + 1) % 2",
                    f"({name} - 3) // 2 + 2",
                    f"({name} - 7) % 4",
                    f"(-{name}) % 3",
                    f"{name} % -3 + 2",
                    f"{name} - {name} // -2",
                ]
            )
        return str(self.r.choice([0, 1]))

    def access(self, name: str, scope: list[Iname]) -> str:
        used: list[str] = []
        return f"{name}[{', '.join(self.index(scope, used) for _ in range(self.ranks[name]))}]"

    def array(self, scope: list[Iname], written: bool) -> str:
        weights = {0: [6, 2, 0], 1: [6, 2, 0], 2: [3, 6, 0]}.get(len(scope), [2, 5, 2])
        rank = self.r.choices([1, 2, 3], weights)[0]
        name = self.r.choice((self.written if written else _READ)[rank])
        self.ranks[name] = rank
        return name

    def term(self, scope: list[Iname], scalars: list[str]) -> str:
        kind = self.r.random()
        if scalars and kind < 0.3:
            return self.r.choice(scalars)
        if self.rules and scope and self.chance(0.3):
            return f"{self.r.choice(self.rules)}({self.index(scope, [])})"
        if kind < 0.55:
            return self.access(self.array(scope, False), scope)
        if kind < (0.58 if self.apart else 0.8):
            return self.access(self.array(scope, True), scope)
        if self.apart and kind < 0.8:
            return self.access(self.array(scope, False), scope)
        if kind < 0.85 and scope:
            return self.r.choice(scope).name
        if kind < 0.90:
            return str(self.r.randint(1, 5))
        if kind < 0.95 and scope:
            return self.gathered(scope)
        if scope and self.chance(0.6):
            return self.guarded(scope)
        one, two = (self.access(self.array(scope, False), scope) for _ in range(2))
        if self.theme.is_integer and self.chance(0.4):
            divided = [f"{one} // 3", f"{one} % 4", f"({one} + {two}) // 5", f"({one} - 3) % 7"]
            if not self.theme.is_unsigned:
                divided += [f"{one} // -2", f"{one} % -4", f"({one} - 5) // 2"]
            return f"({self.r.choice(divided)})"
        if not self.theme.is_integer and self.chance(0.3):
            return f"{self.r.choice(['2.5', '0.5', '3.0'])}*{one}"
        if scope and self.chance(0.3):
            return f"if({self.condition(scope)}, {one}, {two})"
        return self.r.choice([f"max({one}, {two})", f"min({one}, {two})", f"({one} - {two})"])

    def guarded(self, scope: list[Iname]) -> str:
        """A neighbour, where there is one: subscripts are never negative where they are read."""
        iname = self.r.choice(scope)
        written = not self.apart and self.chance(0.5)
        name = self.r.choice((self.written if written else _READ)[1])
        self.ranks[name] = 1
        back = self.r.choice([1, 1, 2]) - iname.low
        read = f"{name}[{iname.name} - {back}]" if back > 0 else f"{name}[{iname.name} + {-back}]"
        conditions = [f"{iname.name} >= {back}"]
        if self.chance(0.3):
            conditions.append(self.r.choice([f"{read} > 1", f"{iname.name} % 2 == 1"]))
        if self.chance(0.2):
            conditions.append(f"{iname.name} <= {self.r.choice([4, self.sizes[0]])}")
        other = self.access(self.array(scope, False), scope)
        if self.chance(0.3):
            opposite = " or ".join(f"not ({c})" for c in conditions)
            return f"if({opposite}, {other}, {read})"
        return f"if({' and '.join(conditions)}, {read}, {other})"

    def gathered(self, scope: list[Iname]) -> str:
        """An indirect read."""
        self.declare("g", f"{self.sizes[0]} + 2")
        return f"g[{self.index_value('col', scope)}]"

    def index_value(self, name: str, scope: list[Iname]) -> str:
        self.ranks[name] = 1
        iname = self.r.choice(scope)
        if iname.low < 0:
            self.ranks["col"] = 1
            return f"col[{iname.name} + 2]"
        if name == "perm" and iname.high:
            # As long as what it permutes.
            self.shapes.setdefault("perm", f"{iname.high}")
            self.shapes.setdefault("o", f"{iname.high}")
            if self.shapes["perm"] == iname.high:
                return f"perm[{iname.name}]"
        if name == "perm":
            name = "col"
            self.ranks[name] = 1
        return f"{name}[{iname.name}{self.r.choice(['', '', ' + 1'])}]"

    def declare(self, name: str, shape: str) -> None:
        self.ranks[name] = 1
        self.shapes.setdefault(name, shape)

    def sum_of_terms(self, scope: list[Iname], scalars: list[str]) -> str:
        count = self.r.choices([1, 2, 3], [4, 4, 1])[0]
        text = self.term(scope, scalars)
        if text.isdigit():  # equal values would hide in which order they are written
            text = f"{self.access(self.array(scope, False), scope)} + {text}"
        for _ in range(count - 1):
            text += f" {self.r.choice(['+', '+', '-'])} {self.term(scope, scalars)}"
        return text

    def value(self, scope: list[Iname], scalars: list[str]) -> str:
        """A right-hand side; sometimes a reduction."""
        if self.chance(0.2) and len(scope) < 4:
            inames = [self.iname(scope)]
            if len(scope) < 2 and self.chance(0.2):
                inames.append(self.iname([*scope, *inames]))
            inner = [*scope, *inames]
            names = ", ".join(i.name for i in inames)
            names = f"({names})" if len(inames) > 1 else names
            term = self.term(inner, scalars)
            if self.chance(0.4):
                term = f"{term} * {self.access(self.array(inner, False), inner)}"
            if len(inner) < 4 and self.chance(0.15):
                deeper = self.iname(inner)
                below = self.term([*inner, deeper], scalars)
                term = f"{term} + {self.r.choice(['sum', 'max'])}({deeper.name}, {below})"
            if self.chance(0.15):
                held = self.condition(inner)
                choices = (f"if({held}, {term}, 0)", f"where({held}, {term}, 0)")
                term = self.r.choice((*choices, f"clip({term}, -3, 5)", f"minimum({term}, 4)"))
            operations = ("sum", "sum", "max", "min", "max" if self.theme.has_halves else "product")
            reduced = f"{self.r.choice(operations)}({names}, {term})"
            return reduced if self.chance(0.7) else f"{reduced} + {self.term(scope, scalars)}"
        return self.sum_of_terms(scope, scalars)

    # }}}
    # {{{ statements

    def statement(self, scope: list[Iname], scalars: list[str], own: list[str]) -> Line:
        """One instruction; new temporaries are added to ``own``."""
        if not self.theme.is_complex and len(scope) < 4 and self.chance(0.08):
            return self.extremum(scope, scalars, own)
        text = self.assignment(scope, scalars, own).text
        if text.endswith("{atomic}"):
            return Line(text)
        target, _, _ = text.partition(" = ")
        # What iterations write into one cell differs, so that it shows which came last.
        for iname in scope:
            if not re.search(rf"\b{iname.name}\b", target) and self.chance(0.8):
                text += f" + {iname.name}"
        return Line(text)

    def extremum(self, scope: list[Iname], scalars: list[str], own: list[str]) -> Line:
        """A reduction with two results, one of which may be dropped."""
        self.left -= 1
        iname = self.iname(scope)
        inner = [*scope, iname]
        places = [iname.name, f"3 - {iname.name}", f"2*{iname.name} + {self.r.choice(inner).name}"]
        term, place = self.term(inner, scalars), self.r.choice(places)
        dropped = self.r.choice([None, None, None, 0, 1])
        targets = []
        for result in range(2):
            if result == dropped:
                targets.append("<>_")
            elif self.chance(0.4):
                self.temporaries += 1
                targets.append(f"<> t{self.temporaries}")
            else:
                targets.append(self.access(self.array(scope, True), scope))
        own += [t.removeprefix("<> ") for t in targets if t.startswith("<> ")]
        word = self.r.choice(["argmin", "argmax"])
        return Line(f"{', '.join(targets)} = {word}({iname.name}, {term}, {place})")

    def assignment(self, scope: list[Iname], scalars: list[str], own: list[str]) -> Line:
        self.left -= 1
        kind = self.r.random()
        if kind < 0.16:
            self.temporaries += 1
            name = f"t{self.temporaries}"
            line = Line(f"<> {name} = {self.value(scope, scalars)}")
            own.append(name)
            return line
        if own and kind < 0.24:
            name = self.r.choice(own)
            form = self.r.choice(["{e} - {t}", "{t} + {e}", "max({t}, {e})"])
            return Line(f"{name} = {form.format(t=name, e=self.term(scope, scalars))}")
        if scope and scope[-1].constant and kind < 0.32:
            self.temporaries += 1
            name = f"s{self.temporaries}"
            line = Line(f"<> {name}[{scope[-1].name}] = {self.value(scope, scalars)}")
            own.append(f"{name}[{scope[-1].name}]")
            return line
        if scope and kind < 0.36:
            target = f"o[{self.index_value('perm', scope)}]"
            self.declare("o", f"{self.sizes[0]}")
            return Line(f"{target} = {self.sum_of_terms(scope, scalars)}")
        if scope and kind < 0.39:
            self.declare("q", f"{self.sizes[0]} + 2")
            target = f"q[{self.index_value('col', scope)}]"
            if self.chance(0.5):
                return self.update(target, scope, scalars)
            return Line(f"{target} = {self.term(scope, scalars)} - {target}")
        if self.apart and scope and self.chance(0.85):
            return Line(f"{self.own_cell(scope)} = {self.value(scope, scalars)}")
        name = self.array(scope, True)
        target = self.access(name, scope)
        if kind < 0.43:
            return self.update(target, scope, scalars)
        if kind < 0.56:
            # Differences show the order of updates; sums would come out the same in any.
            form = self.r.choice(["{e} - {t}", "{e} - {t}", "{t} + {e}"])
            return Line(f"{target} = {form.format(t=target, e=self.value(scope, scalars))}")
        if kind < 0.70:
            # In place: a recurrence or a shift, as the subscripts fall.
            other = self.access(name, scope)
            return Line(f"{target} = {other} + {self.term(scope, scalars)}")
        return Line(f"{target} = {self.value(scope, scalars)}")

    def update(self, target: str, scope: list[Iname], scalars: list[str]) -> Line:
        """An atomic update; of two operations on one cell the order shows."""
        forms = ("{t} + {e}", "{t} + {e}", "{t} - {e}", "max({t}, {e})")
        form = self.r.choice((*forms, "{t} + {e}" if self.theme.has_halves else "{t}*{e}"))
        return Line(f"{target} = {form.format(t=target, e=self.term(scope, scalars))} {{atomic}}")

    def own_cell(self, scope: list[Iname]) -> str:
        """A cell that no other iteration writes, if there are no more than three loops."""
        inames = scope[-3:]
        self.r.shuffle(inames)
        name = self.r.choice(self.written[len(inames)])
        self.ranks[name] = len(inames)
        shift = self.r.choice(["", "", " + 1"])
        indices = [f"{i.name} + 2" if i.low < 0 else i.name + shift for i in inames]
        return f"{name}[{', '.join(indices)}]"

    def condition(self, scope: list[Iname]) -> str:
        iname = self.r.choice(scope).name
        other = self.r.choice(scope).name
        size = self.r.choice(self.sizes)
        return self.r.choice(
            [
                f"{iname} > 0",
                f"{iname} % 2 == 0",
                f"{iname} + {other} < {size}",
                f"{iname} != {other}" if iname != other else f"{iname} < {size} - 1",
                f"{self.access(self.array(scope, False), scope)} > 3",
                f"{self.access(self.array(scope, True), scope)} > 2",
            ]
        )

    def body(self, scope: list[Iname], scalars: list[str], depth: int) -> tuple[Node, ...]:
        """The nodes inside ``scope``; a loop may go ``depth`` further loops down."""
        nodes: list[Node] = []
        visible = list(scalars)
        own: list[str] = []
        count = self.r.choices([1, 2, 3], [5, 4, 2])[0]
        for _ in range(count):
            if self.left <= 0:
                break
            kind = self.r.random()
            if depth > 0 and (kind < 0.5 or not scope):
                iname = self.iname(scope)
                inner = self.body([*scope, iname], visible, depth - 1)
                if inner and 0.9 < self.special < 0.95:
                    inner = self.ending(inner, [*scope, iname])
                if inner:
                    nodes.append(Block(f"for {iname.name}", inner))
            elif scope and kind > 0.9:
                condition = self.condition(scope)
                inner = (self.statement(scope, visible, []),)
                rest: tuple[Node, ...] = ()
                if self.chance(0.4) and self.left > 0:
                    rest = (self.statement(scope, visible, []),)
                nodes.append(Block(f"if {condition}", inner, rest))
            else:
                before = len(own)
                nodes.append(self.statement(scope, visible, own))
                visible += own[before:]
        # A temporary is there to be read: what is never used may be computed wrongly.
        text = "\n".join(lines_of(tuple(nodes)))
        for name in own:
            if not any(name in line.split("=", 1)[1] for line in text.split("\n") if "=" in line):
                nodes.append(self.reader(scope, name))
        return tuple(nodes)

    def ending(self, body: tuple[Node, ...], scope: list[Iname]) -> tuple[Node, ...]:
        """A body that may end its loop, somewhere, or in some branch."""
        at = self.r.randint(0, len(body))
        end: Node = Line(f"break if {self.condition(scope)}")
        if self.chance(0.2):
            end = Block(f"if {self.condition(scope)}", (self.statement(scope, [], []), end))
        return (*body[:at], end, *body[at:])

    def reader(self, scope: list[Iname], name: str) -> Line:
        self.left -= 1
        target = self.access(self.array(scope, True), scope)
        return Line(f"{target} = {name} + {self.term(scope, [name])}")

    def sparse(self) -> tuple[Node, ...]:
        """A loop whose bounds are loaded: for each row or once, here or in an earlier launch."""
        self.left -= 3
        self.ranks["ptr"] = 1
        self.declare("g", f"{self.sizes[0]} + 2")
        row = self.new_rows()
        low = self.r.choice(["0", "lo", "lo"])
        self.inames["r"] = Iname("r", f"{{ [r]: {low} <= r < hi }}", (row.name,))
        once = self.chance(0.3)
        inside = [] if once else [row]
        target = self.access(self.array([row], True), [row])
        read = self.r.choice(
            ["g[r]", "g[r]*3", f"g[r] + {self.access(self.array(inside, False), inside)}"]
        )
        place = "0" if once else row.name
        loads: list[Node] = [Line(f"<> hi = ptr[{place} + 1]")]
        if low == "lo":
            loads.insert(self.r.randrange(2), Line(f"<> lo = ptr[{place}]"))
        if self.chance(0.4):
            loads.insert(self.r.randint(1, len(loads)), Line("... gbarrier"))
        body: Node = Line(f"{target} = {self.r.choice(['sum', 'max'])}(r, {read})")
        if self.chance(0.4):
            body = Block("for r", (Line(f"{target} = {target} + {read}"),))
        if once:
            body = Block(f"for {row.name}", (body,))
        lines = [*loads, body]
        if self.chance(0.15):
            lines.append(Line(f"{target} = {target} + hi"))
        if self.chance(0.2) and not any("gbarrier" in n.text for n in loads):
            condition = self.r.choice(["hi > 1", f"{self.condition([row])}", "ptr[0] > 0"])
            lines = [*loads, Block(f"if {condition}", tuple(lines[len(loads) :]))]
            if "hi" not in condition and self.chance(0.6):
                lines = [Block(f"if {condition}", (*loads, *lines[len(loads) :]))]
        if once:
            return tuple(lines)
        return (Block(f"for {row.name}", tuple(lines)),)

    def new_rows(self) -> Iname:
        name = _NAMES[len(self.inames)]
        size = self.sizes[0]
        self.inames[name] = Iname(name, f"{{ [{name}]: 0 <= {name} < {size} }}", high=size)
        return self.inames[name]

    # }}}

    def some_rules(self, nodes: list[Node], several: bool) -> tuple[str, ...]:
        """Rules, and the domains of what they reduce over; ``several``: one uses another."""
        self.ranks |= {"a": 1, "b": 1}
        nested = "sum(r9, b[r9]*max(r8, a[x + r8 + r9]))"
        reduced = self.r.choice(["sum(r9, a[x + r9])", "2*max(r9, a[x + r9]*b[r9])", nested])
        said = {"rule1(x)": self.r.choice(["2*a[x]", "a[x] - b[x + 1]", "a[x + 1] + x", reduced])}
        if several:
            said["rule1(x)"] = self.r.choice([said["rule1(x)"], reduced])
            plain = self.r.choice(["b[y]*rule1(y)", "rule1(y + 1) - 2*rule1(y)", "rule1(2*y)"])
            added = self.r.choice(["b[r7]*rule1(y + r7)", "rule1(2*r7 + y)", "a[y]*rule1(1 - r7)"])
            said["rule2(y)"] = self.r.choice([plain, f"sum(r7, {added})"])
        nodes += (Line(f"{use} := {meaning}") for use, meaning in said.items())
        self.rules += (use.partition("(")[0] for use in said)
        text = " ".join(said.values())
        lengths = {"r9": 3, "r8": 2, "r7": 2}
        return tuple(f"{{ [{i}]: 0 <= {i} < {n} }}" for i, n in lengths.items() if i in text)

    def kernel(self, rules: bool = False) -> Drawn:
        """A kernel; ``rules``: surely with rules that use others."""
        nodes: list[Node] = []
        more: tuple[str, ...] = ()
        if rules or self.chance(0.08):
            more = self.some_rules(nodes, several=rules or self.chance(0.4))
        if self.special < 0.08:
            nodes += self.sparse()
        while self.left > 0 and len(nodes) < 3 + len(self.rules):
            depth = self.r.choices([1, 2, 3, 4], [4, 6, 4, 1])[0]
            nodes += self.body([], [], depth)
        types = tuple((n, self.type_of(n)) for n in sorted(self.ranks))
        assumed = self.r.choice([None, 1, 1, 1, 2])
        drawn = Drawn(
            (*self.domains(), *more),
            tuple(nodes),
            types,
            tuple(sorted(self.shapes.items())),
            None if assumed is None else f"{', '.join(self.sizes)} >= {assumed}",
        )
        return drawn.renamed(self.names()) if self.chance(0.3) else drawn

    def names(self) -> Renaming:
        """Other names for all but the arrays that data are made for by name."""
        others = [*self.sizes, *self.rules]
        others += [f"{t}{n + 1}" for n in range(self.temporaries) for t in "st"]
        others += [n for n in self.ranks if n not in FILLED] + ["lo", "hi"]
        inames = list(self.inames)
        more = [f"{i}_{end}" for i in inames for end in ("outer", "inner", "0", "first")]
        more += [f"{a}_{end}" for a in self.ranks for end in ("s", "r", "buf", "dim_0", "init")]
        more += [*MADE, "_", "_a", "long_" * 38]
        found = chosen(self.r, inames, others, more)
        return Renaming({n: new for n, new in found.items() if new not in FILLED})

    def type_of(self, name: str) -> str:
        if name in INDEX_ARRAYS:
            return self.index_type
        is_read = any(name in names for names in _READ.values()) or name == "g"
        return self.r.choice(self.theme.read if is_read else self.theme.written)

    def domains(self) -> tuple[str, ...]:
        """One domain for each iname; sometimes neighbours that ask nothing of others share one."""
        found: list[str] = []
        together: list[Iname] = []
        share = self.chance(0.4)
        for iname in self.inames.values():
            if share and not iname.parents and not _ODD.search(iname.domain):
                together.append(iname)
            else:
                found.append(iname.domain)
        if together:
            names = ", ".join(i.name for i in together)
            conditions = " and ".join(
                i.domain.split(": ", 1)[1].removesuffix(" }") for i in together
            )
            found.insert(0, f"{{ [{names}]: {conditions} }}")
        return tuple(found)


# }}}


def draw_text(r: random.Random) -> Drawn | Composed:
    """A kernel's text; ``make`` may still refuse it."""
    kind = r.random()
    if kind < 0.08:
        return draw_composed(r, lambda: _Drawing(r).kernel())
    return varied(_Drawing(r).kernel())


def draw_rules(r: random.Random) -> Drawn:
    """The same, with rules that use others."""
    return varied(_Drawing(r).kernel(rules=True))


def draw(
    r: random.Random,
    on_crash: Callable[[Drawn | Composed, Exception], None] | None = None,
    text: Callable[[random.Random], Drawn | Composed] = draw_text,
) -> tuple[Drawn | Composed, lk.Kernel]:
    """A kernel that can be made, and its text, which ``text`` draws.

    What is refused at creation is drawn again.  Anything but an error of
    loopkit's own goes to ``on_crash``, or is raised.
    """
    while True:
        drawn = text(r)
        try:
            return drawn, drawn.make()
        except lk.LoopkitError:
            continue
        except Exception as error:
            if on_crash is None:
                raise
            on_crash(drawn, error)
