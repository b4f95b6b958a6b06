"""Kernels of what threads do together: rows that are reduced, staged, updated, and handed on.

Each is some stages on the same rows, drawn from few, so that they meet: sums that the next stage
reads, temporaries of a row that are filled, turned round and folded in half, histograms, prefixes,
lists of neighbours, branches, conditions on what was reduced, barriers for all blocks.  Half of
them are right on threads as they are, the others race or lose an order somewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .dtypes import Theme, draw_theme
from .kernels import Block, Drawn, Line, Node

_LENGTHS = (2, 3, 4, 5, 8, 8, 33)
_INNER = "jkhpqdvw"


class _Rows:
    """One kernel being drawn: ``n`` rows of ``length`` cells, whose stages have loops of their own.

    ``made`` are the cells of temporaries that a row may read, ``scalars`` the values of a row.
    """

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.theme: Theme = draw_theme(r)
        while self.theme.is_complex:
            self.theme = draw_theme(r)
        self.length = r.choice(_LENGTHS)
        self.inames: list[str] = []
        self.domains = ["{ [i]: 0 <= i < n }"]
        self.types: dict[str, str] = {}
        self.scalars: list[str] = []
        self.made: list[str] = []
        self.count = 0

    def chance(self, probability: float) -> bool:
        return self.r.random() < probability

    def iname(self, condition: str = "0 <= {i} < {l}") -> str:
        """A loop of the row's length, or one that an earlier stage had."""
        usual = condition == "0 <= {i} < {l}"
        if usual and self.inames and self.chance(0.3):
            return self.r.choice(self.inames)
        name = f"{_INNER[len(self.domains) % len(_INNER)]}{len(self.domains)}"
        self.domains.append(f"{{ [{name}]: {condition.format(i=name, l=self.length)} }}")
        if usual:
            self.inames.append(name)
        return name

    def fresh(self, word: str) -> str:
        self.count += 1
        return f"{word}{self.count}"

    def array(self, name: str, written: bool = False) -> str:
        self.types.setdefault(
            name, self.r.choice((self.theme.written, self.theme.read)[not written])
        )
        return name

    def column(self, iname: str) -> str:
        last = self.length - 1
        turned = f"{last} - {iname}"
        return self.r.choice([iname, iname, turned, f"({iname} + 1) % {self.length}"])

    def term(self, iname: str | None) -> str:
        """Something that a row can read at ``iname``."""
        found = [f"{self.array('b')}[i]", *self.scalars[-2:]]
        if iname is not None:
            found += [f"{self.array('c')}[i, {self.column(iname)}]"] * 3
            found += [f"{name}[{self.column(iname)}]" for name in self.made for _ in range(2)]
            found.append(iname)
        return self.r.choice(found)

    # {{{ stages

    def reduced(self) -> list[Node]:
        """A value of the row, of all its cells or of those that a condition leaves."""
        iname, name = self.iname(), self.fresh("t")
        term = self.term(iname)
        if self.chance(0.15):
            cell = f"{self.array('c')}[i, {iname}]"
            term = f"if({cell} > 2, {term}, {self.term(iname)})"
        if self.chance(0.2):
            word = self.r.choice(["argmin", "argmax"])
            other = self.fresh("t")
            line = Line(f"<> {name}, <> {other} = {word}({iname}, {term}, {iname})")
            self.scalars += [name, other]
            return [line, self.out(f"{other} + {name}")]
        words = ["sum", "sum", "max", "min", *["product"][: self.length < 6]]
        word = self.r.choice(words)
        more = self.chance(0.15)
        inner = self.iname() if more else None
        if inner is not None and inner != iname:
            line = Line(f"<> {name} = {word}(({iname}, {inner}), {term} + {self.term(inner)})")
        else:
            line = Line(f"<> {name} = {word}({iname}, {term})")
        self.scalars.append(name)
        if self.chance(0.3):
            return [line, self.out(name)]
        return [line]

    def prefix(self) -> list[Node]:
        """A reduction of what lies before."""
        outer = self.iname()
        inner = f"{_INNER[len(self.domains) % len(_INNER)]}{len(self.domains)}"
        self.domains.append(f"{{ [{inner}]: 0 <= {inner} <= {outer} }}")
        word = self.r.choice(["sum", "max"])
        target = f"{self.array('x', True)}[i, {outer}]"
        if self.chance(0.4):
            name = self.fresh("s")
            self.made.append(name)
            target = f"<> {name}[{outer}]"
        cell = f"{self.array('c')}[i, {inner}]"
        terms = [cell, cell, *(f"{name}[{inner}]" for name in self.made[:-1])]
        term = self.r.choice(terms)
        if self.chance(0.3):
            term = f"if({self.r.choice([cell, inner])} > 1, {term}, 0)"
        flag = f"{self.array('b')}[{inner}] > 2"
        made = f"reduce(segmented({word}), {inner}, {term}, {flag})"
        body: Node = Line(f"{target} = {made if self.chance(0.2) else f'{word}({inner}, {term})'}")
        if self.chance(0.15) and not target.startswith("<"):
            body = Block(f"if {self.condition(outer)}", (body,))
        return [Block(f"for {outer}", (body,))]

    def ended(self) -> list[Node]:
        """A loop of each row that data end."""
        iname, name = self.iname(), self.fresh("t")
        cell = f"{self.array('c')}[i, {iname}]"
        first = f"<> {name} = {self.array('b')}[i]"
        end = self.r.choice([f"{cell} > 3", f"{name} > 9", f"{self.array('b')}[i] > {iname}"])
        body: list[Node] = [Line(f"break if {end}"), Line(f"{name} = {name} + {self.term(iname)}")]
        if self.chance(0.4):
            body.append(Line(f"{self.array('x', True)}[i, {self.column(iname)}] = {name}"))
        self.r.shuffle(body)
        self.scalars.append(name)
        return [Line(first), Block(f"for {iname}", tuple(body))]

    def accumulated(self) -> list[Node]:
        """A value that several loops add to, and that may be used in between."""
        name = self.fresh("t")
        found: list[Node] = [Line(f"<> {name} = {self.term(None)}")]
        for _ in range(self.r.choice([1, 2, 3])):
            iname = self.iname()
            form = self.r.choice(["{t} + {e}", "{t} + {e}", "{e} - {t}", "max({t}, {e})"])
            line = Line(f"{name} = {form.format(t=name, e=self.term(iname))}")
            found.append(Block(f"for {iname}", (line,)))
            if self.chance(0.3):
                found.append(self.out(name))
        self.scalars.append(name)
        return found

    def branched(self) -> list[Node]:
        """A value that the branches of a condition on data give, or some of them change."""
        name = self.fresh("t")
        first, second = (f"{self.term(None)}{more}" for more in ("", " - 2"))
        if self.chance(0.3):
            first_line = Line(f"<> {name} = {first}")
            changed = (Line(f"{name} = {name} + {second}"),)
            nodes = [first_line, Block(f"if {self.condition(None)}", changed)]
        else:
            otherwise: tuple[Node, ...] = (Line(f"{name} = {second}"),)
            if self.chance(0.2):
                last = (Line(f"{name} = {self.term(None)}"),)
                otherwise = (Block(f"if {self.condition(None)}", otherwise, last),)
            begin = (Line(f"<> {name} = {first}"),)
            nodes = [Block(f"if {self.condition(None)}", begin, otherwise)]
        self.scalars.append(name)
        return nodes

    def boxed(self) -> list[Node]:
        """The neighbours of a place that data give, and what a list says of each."""
        at, name, own = self.fresh("at"), self.fresh("t"), self.fresh("w")
        cell = f"y{len(self.domains)}"
        last = self.length - 1
        box = self.r.choice(
            ["max(0, {p} - 1) <= {c} <= min({l}, {p} + 1)", "{p} - 1 <= {c} <= {p}"]
        )
        self.domains.append(f"{{ [{cell}]: {box.format(p=at, c=cell, l=last)} }}")
        place = f"{self.array('col')}[i] % {self.length}"
        place = place if "max" in box else f"1 + {self.array('col')}[i] % {max(1, last)}"
        read = f"{self.array('c')}[i, {cell}]" if self.length > 1 else f"{self.array('b')}[i]"
        inner: list[Node] = [
            Line(f"<> {own} = {read} - {self.term(None)}"),
            Line(f"{name} = {name} + {own}*{own}"),
        ]
        if self.chance(0.4):
            low, high, entry = self.fresh("lo"), self.fresh("hi"), f"z{len(self.domains)}"
            self.domains.append(f"{{ [{entry}]: {low} <= {entry} < {high} }}")
            inner[0] = Line(f"<> {own} = {self.array('g')}[{entry}] + {self.term(None)}")
            bounds = [Line(f"<> {low} = ptr[{cell}]"), Line(f"<> {high} = ptr[{cell} + 1]")]
            self.types["ptr"] = "int32"
            inner = [*bounds, Block(f"for {entry}", tuple(inner))]
        self.scalars.append(name)
        return [
            Line(f"<> {at} = {place}"),
            Line(f"<> {name} = {self.array('b')}[i]"),
            Block(f"for {cell}", tuple(inner)),
        ]

    def marked(self) -> list[Node]:
        """Stores of one value, which may come in any order; now and then of different ones."""
        iname = self.iname()
        place = f"{self.array('col')}[i] % {self.length}"
        target = f"{self.array('e', True)}[{self.r.choice(['0', place, iname])}]"
        value = self.r.choice(["1", "1", "3", f"{self.array('b')}[0]", iname])
        condition = f"{self.array('c')}[i, {iname}] > 2"
        condition = self.r.choice([condition, condition, self.condition(iname)])
        return [Block(f"for {iname}", (Block(f"if {condition}", (Line(f"{target} = {value}"),)),))]

    def filled(self) -> list[Node]:
        """A temporary of the row."""
        iname, name = self.iname(), self.fresh("s")
        kind = self.r.choice(self.theme.written) if self.chance(0.3) else ""
        line = Line(f"<{kind}> {name}[{iname}] = {self.term(iname)} + {self.term(iname)}")
        self.made.append(name)
        return [Block(f"for {iname}", (line,))]

    def changed(self) -> list[Node]:
        """A temporary is written anew, in place or from another one."""
        if not self.made:
            return self.filled()
        iname, name = self.iname(), self.r.choice(self.made)
        cell = f"{name}[{self.r.choice([iname, iname, self.column(iname)])}]"
        form = self.r.choice(["{c} + {t}", "{t} - {c}", "{t}"])
        line = Line(f"{cell} = {form.format(c=cell, t=self.term(iname))}")
        return [Block(f"for {iname}", (line,))]

    def folded(self) -> list[Node]:
        """Half of a temporary is added to the other half, once or until one cell is left."""
        if not self.made:
            return self.filled()
        name, step, found = self.r.choice(self.made), (self.length + 1) // 2, []
        left = self.length
        for _ in range(self.r.choice([1, 2, 3])):
            if left < 2:
                break
            iname = self.iname(f"0 <= {{i}} < {left - step}")
            shift = step if self.chance(0.85) else max(1, step - 1)
            cell, other = f"{name}[{iname}]", f"{name}[{iname} + {shift}]"
            found.append(Block(f"for {iname}", (Line(f"{cell} = {cell} + {other}"),)))
            left, step = step, (step + 1) // 2
        return [*found, self.out(f"{name}[0]")]

    def stored(self) -> list[Node]:
        """The row is written out."""
        iname = self.iname()
        target = f"{self.array('x', True)}[i, {self.r.choice([iname, self.column(iname)])}]"
        body: Node = Line(f"{target} = {self.term(iname)} - {self.term(iname)}")
        if self.chance(0.2):
            body = Block(f"if {self.condition(iname)}", (body,))
        return [Block(f"for {iname}", (body,))]

    def counted(self) -> list[Node]:
        """Atomic updates, of cells that all rows share or of the row's own."""
        iname = self.iname()
        place = f"{self.array('col')}[i] % {self.length}"
        kind = self.r.random()
        if kind < 0.4 and self.made:
            target = f"{self.r.choice(self.made)}[{self.r.choice([iname, place, '0'])}]"
        else:
            target = f"{self.array('h', True)}[{self.r.choice([iname, place, '0', 'i % 3'])}]"
            self.made = (
                [*self.made, "h"] if self.chance(0.2) and "h" not in self.made else self.made
            )
        form = self.r.choice(["{c} + {t}", "{c} + {t}", "{c} - {t}", "max({c}, {t})"])
        value = self.term(iname)
        line = Line(f"{target} = {form.format(c=target, t=value)} {{atomic}}")
        return [Block(f"for {iname}", (line,))]

    def out(self, value: str) -> Line:
        return Line(f"{self.array('u', True)}[i] = {value}")

    def condition(self, iname: str | None) -> str:
        found = [f"{self.array('b')}[i] > 2", "i % 2 == 0"]
        found += [f"{t} > 3" for t in self.scalars[-1:]]
        found += [f"{iname} > 1"] if iname is not None else []
        return self.r.choice(found)

    # }}}

    def row(self) -> Node:
        """Some stages of each row."""
        self.scalars, self.made = [], []
        stages: tuple[tuple[Callable[[], list[Node]], int], ...] = (
            (self.reduced, 6),
            (self.filled, 5),
            (self.changed, 3),
            (self.folded, 2),
            (self.stored, 4),
            (self.counted, 3),
            (self.prefix, 2),
            (self.ended, 1),
            (self.accumulated, 2),
            (self.branched, 2),
            (self.boxed, 1),
            (self.marked, 1),
        )
        drawers, weights = zip(*stages, strict=True)
        body: list[Node] = []
        for draw in self.r.choices(drawers, weights, k=self.r.choice([1, 2, 3, 3, 4])):
            nodes = draw()
            if self.chance(0.12):
                inside = [n for n in nodes if "<" not in _text(n)]
                if len(inside) == len(nodes):
                    nodes = [Block(f"if {self.condition(None)}", tuple(nodes))]
            body += nodes
        body += [Block(f"for {(i := self.iname())}", (self.shown(i),))] if self.made else []
        body += [self.out(" + ".join(self.scalars))] if self.scalars else []
        return Block("for i", tuple(body))

    def shown(self, iname: str) -> Line:
        """What temporaries hold is written out: what is never used may be computed wrongly."""
        cells = " + ".join(f"{name}[{self.column(iname)}]" for name in self.made)
        return Line(f"{self.array('x', True)}[i, {iname}] = {cells}")

    def drawn(self) -> Drawn:
        body = [self.row()]
        for _ in range(self.r.choice([0, 0, 0, 1, 1, 2])):
            if self.chance(0.6):
                body.append(Line("... gbarrier"))
            body.append(self.row())
        nodes = tuple(body)
        if self.chance(0.12):
            self.domains.append("{ [time]: 0 <= time < m }")
            nodes = (Block("for time", nodes),)
        self.types["col"] = "int32"
        types = tuple(sorted(self.types.items()))
        sizes = "n, m" if "time" in self.domains[-1] else "n"
        assumed = self.r.choice([None, f"{sizes} >= 1"])
        shapes = (
            ("c", f"n, {self.length}"),
            ("e", str(self.length)),
            ("g", "n + 2"),
            ("h", str(self.length + 3)),
            ("ptr", str(self.length + 1)),
            ("x", f"n, {self.length}"),
        )
        return Drawn(tuple(self.domains), nodes, types, shapes, assumed)


def _text(node: Node) -> str:
    if isinstance(node, Line):
        return node.text if node.text.startswith("<") else ""
    return "".join(map(_text, (*node.body, *node.otherwise)))


def draw_text(r: random.Random) -> Drawn:
    """A kernel's text; ``make`` may still refuse it."""
    return _Rows(r).drawn()
