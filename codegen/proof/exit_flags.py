"""The meaning of leaving a loop, as a flag that guards everything in the loop.

Leaving a loop has the same effects, in the same order, as a loop in which each line is guarded by
a variable that is set before the loop and cleared where the loop is left. The proof analyses this
second form, which has no jumps. The variable is not in the text; it has the name of the flag in
the kernel that the leaving statement writes, so that the kernel's statements say where it must be
set, where it is cleared, and which statements it guards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import takewhile

import pymbolic.primitives as prim

from loopkit._kernel import Kernel
from loopkit._same import same
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.renamed import changed
from loopkit.codegen.proof.text_tree import and_parts

_DECIDING = (c.Assign, c.Combine, c.If, c.Wait, c.Break)
"""What does something, or reads what may not be there."""


def with_flags(kernel: Kernel, function: c.Function) -> c.Function:
    """The function with flags in place of jumps.

    Raises :class:`ReadError` for jumps of which the kernel knows nothing.
    """
    if not any(isinstance(node, c.Break) for node in c.statements(function.body)):
        return function
    writer = _Writer(kernel)
    body = writer.body(function.body, ())
    names = {p.name for p in function.parameters}
    names |= {n.name for n in c.statements(function.body) if isinstance(n, (c.Declaration, c.Let))}
    declared = []
    for name, line in writer.flags.items():
        if name in names:
            raise ReadError(line, f"a loop is left, and '{name}' is there as well")
        declared.append(c.Declaration("private", "bool", name, (), line))
    return replace(function, body=(*declared, *body))


class _Writer:
    """Rewrites bodies; ``flags`` collects the names of flags, each with a line."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.flags: dict[str, int] = {}
        self.temporaries = kernel.temporary_by_name.keys()
        self.places = {s.id: place for place, s in enumerate(kernel.statements)}

    def body(self, nodes: tuple[c.Node, ...], loops: tuple[c.For, ...]) -> tuple[c.Node, ...]:
        """Nodes with flags; ``loops`` are those around."""
        found: list[c.Node] = []
        for node in nodes:
            if isinstance(node, c.For):
                *starts, left = self.loop(node, loops)
                self.insert(found, starts)
                found.append(left)
            elif isinstance(node, (c.If, c.Block)):
                for inside in self.pieces(node, self.body(node.body, loops)):
                    starts = list(takewhile(self.is_start, inside))
                    if starts and (
                        self.place_of(starts[0], found) < len(found) or self.is_plain(node)
                    ):
                        del inside[: len(starts)]
                        self.insert(found, starts)
                    found.append(replace(node, body=tuple(inside)))
            elif isinstance(node, c.Break):
                flag = self.flag_of(node)
                found.append(_assigned(flag, 0, node.statement, node.line))
            else:
                jumps = _exits(node.body, ()) if isinstance(node, c.Combine) else ()
                if any(c.left_by(jump, inside) is None for jump, inside in jumps):
                    raise ReadError(node.line, "a loop is left where threads combine")
                found.append(node)
        return tuple(found)

    def pieces(self, node: c.If | c.Block, body: tuple[c.Node, ...]) -> list[list[c.Node]]:
        """The body of a guard, split before the point where a flag is set without the guard."""
        pieces: list[list[c.Node]] = []
        for inside in body:
            if not pieces or (self.is_plain(node) and self.is_start(inside)):
                pieces.append([])
            pieces[-1].append(inside)
        return pieces

    def insert(self, found: list[c.Node], starts: list[c.Node]) -> None:
        """Insert the statements that set flags at their place in the kernel's order.

        The text does not mention the flags, so any place between the same statements is
        equivalent.
        """
        at = self.place_of(starts[0], found) if starts else 0
        found[at:at] = starts

    def place_of(self, start: c.Node, nodes: list[c.Node]) -> int:
        """The position among the nodes at which a flag is set: before all later statements."""
        at = len(nodes)
        for place in reversed(range(len(nodes))):
            if self.is_late(nodes[place], start):
                at = place
            elif _ids(nodes[place]):  # a barrier has no place in the kernel
                break
        return at

    def is_plain(self, node: c.If | c.Block) -> bool:
        """Whether a flag may be set outside a guard, because the guard reads only names.

        The guard may say that the loop has no iterations, and the kernel sets the flag anyway. If
        it says that nothing executes, the flag is set needlessly, without effect.
        """
        lets = any(isinstance(inside, c.Let) for inside in node.body)
        return isinstance(node, c.If) and not lets and not _loads(node, self.temporaries)

    def is_start(self, node: c.Node) -> bool:
        """Whether a node sets a flag."""
        node = _within(node)
        target = node.target if isinstance(node, c.Assign) else None
        return isinstance(target, c.Name) and target.name in self.flags

    def is_late(self, node: c.Node, start: c.Node) -> bool:
        """Whether all that a node executes comes later in the kernel than what sets a flag."""
        ids = _ids(node)
        due = self.places.get(_set_by(start), 0)
        return bool(ids) and all(self.places.get(i, 0) > due for i in ids)

    def loop(self, loop: c.For, loops: tuple[c.For, ...]) -> list[c.Node]:
        """A loop, after the statements that set the flags of jumps out of it."""
        inner = (*loops, loop)
        flags = dict.fromkeys(
            self.flag_of(node)
            for node, around in _exits(loop.body, inner)
            if c.left_by(node, around) is loop
        )
        body = self.body(loop.body, inner)
        found: list[c.Node] = []
        around: list[c.CExpression] = []
        for flag in flags:
            if flag in self.flags:
                raise ReadError(loop.line, f"two loops are left by what clears '{flag}'")
            self.flags[flag] = loop.line
            start = self.start_of(flag, loop.line)
            around += self.conditions_of(start, loop)
            found.append(_assigned(flag, 1, start, loop.line))
            body = _guarded(body, flag, self.temporaries)
        found.append(replace(loop, body=body))
        for condition in reversed(dict.fromkeys(around)):
            found = [c.If(condition, (node,), node.line) for node in found]
        return found

    def conditions_of(self, start: str, loop: c.For) -> Iterator[c.CExpression]:
        """The flags of other loops without which the loop of this flag does nothing.

        Setting the flag may then be guarded by them, as it is in the kernel.
        """
        predicates = self.kernel.statement_by_id[start].predicates
        known: list[c.CExpression] = []  # read in front of all that follows
        inside = [*c.statements(loop.body)]
        written = {_name_of(n.target) for n in inside if isinstance(n, (c.Assign, c.Combine))}
        parts = [p for n in inside if isinstance(n, c.If) for p in and_parts(n.condition)]
        for name in (p.name for p in predicates if isinstance(p, prim.Variable)):
            flag = next((part for part in parts if _name_of(part) == name), None)
            if flag is None or name in written:
                continue
            nodes = changed((loop,), lambda e: c.Number(1, "bool") if e in known else e)
            if _is_idle(nodes, flag, self.temporaries):
                yield flag
                known.append(flag)

    def flag_of(self, node: c.Break) -> str:
        """The flag that the kernel's statement of a jump clears."""
        statement = self.kernel.statement_by_id.get(node.statement or "")
        name = statement.written if statement is not None else ""
        temporary = self.kernel.temporary_by_name.get(name)
        if temporary is None or temporary.shape:
            raise ReadError(node.line, "the loop is left, and no statement says so")
        return name

    def start_of(self, flag: str, line: int) -> str:
        """The statement that sets a flag."""
        starts = [s.id for s in self.kernel.writers[flag] if same(s.rhs, True)]
        if len(starts) != 1:
            raise ReadError(line, f"what sets '{flag}' is not one statement")
        return starts[0]


def _assigned(flag: str, value: int, statement: str | None, line: int) -> c.Assign:
    return c.Assign(c.Name(flag), "=", c.Number(value, "bool"), statement, line=line)


def _guarded(nodes: tuple[c.Node, ...], flag: str, memory: Collection[str]) -> tuple[c.Node, ...]:
    """Nodes guarded by a flag; ``memory`` are names of temporaries.

    Bounds and conditions that read no memory are evaluated outside the guard.
    """
    found: list[c.Node] = []
    for node in nodes:
        if isinstance(node, (c.For, c.If, c.Block)):
            node = replace(node, body=_guarded(node.body, flag, memory))
        if isinstance(node, c.If):
            parts = and_parts(node.condition)
            plain = [*takewhile(lambda part: not _reads(part, memory), parts)]
            if plain != parts:
                parts.insert(len(plain), c.Name(flag))
            for number, part in enumerate(reversed(parts)):
                node = replace(node, condition=part, body=(node,) if number else node.body)
        elif isinstance(node, _DECIDING) or (isinstance(node, c.For) and _loads(node, memory)):
            node = c.If(c.Name(flag), (node,), node.line)
        found.append(node)
    return tuple(found)


def _ids(node: c.Node) -> set[str]:
    """The kernel's statements that a node executes; a barrier has none."""
    inside = (n for n in c.statements((node,)) if isinstance(n, (c.Assign, c.Combine)))
    return {n.statement for n in inside if n.statement is not None}


def _within(node: c.Node) -> c.Node:
    """The guard under which a flag is set, without the flags of other enclosing loops."""
    while isinstance(node, c.If) and _name_of(node.condition) and len(node.body) == 1:
        (node,) = node.body
    return node


def _set_by(start: c.Node) -> str:
    """The statement that sets a flag, of the node that does."""
    start = _within(start)
    assert isinstance(start, c.Assign)
    return start.statement or ""


def _name_of(expr: c.CExpression) -> str:
    """The variable or array that an expression is a cell of."""
    if isinstance(expr, c.Element):
        return expr.array
    return expr.name if isinstance(expr, c.Name) else ""


def _is_idle(nodes: tuple[c.Node, ...], flag: c.CExpression, memory: Collection[str]) -> bool:
    """Whether nodes neither write nor read anything if a flag is not set."""
    for node in nodes:
        parts = and_parts(node.condition) if isinstance(node, c.If) else ()
        before = [*takewhile(lambda part: part != flag, parts)]
        if len(before) < len(parts) and not any(_reads(part, memory) for part in before):
            continue
        if isinstance(node, (c.For, c.If, c.Block)):
            if _loads(node, memory) or not _is_idle(node.body, flag, memory):
                return False
        elif isinstance(node, _DECIDING):
            return False
    return True


def _loads(node: c.Node, memory: Collection[str]) -> bool:
    """Whether the bounds of a loop, or the condition of a guard, lie in memory."""
    return any(_reads(expr, memory) for expr in c.expressions(node))


def _reads(expr: c.CExpression, memory: Collection[str]) -> bool:
    """Whether an expression reads memory."""
    return any(isinstance(p, c.Element) or _name_of(p) in memory for p in c.walk(expr))


def _exits(
    nodes: tuple[c.Node, ...], loops: tuple[c.For, ...]
) -> Iterator[tuple[c.Break, tuple[c.For, ...]]]:
    """All jumps, each with its enclosing loops."""
    for node in nodes:
        if isinstance(node, c.Break):
            yield node, loops
        elif isinstance(node, c.For):
            yield from _exits(node.body, (*loops, node))
        elif isinstance(node, (c.If, c.Block)):
            yield from _exits(node.body, loops)
