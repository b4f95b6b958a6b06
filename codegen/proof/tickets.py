"""The meaning of a ticket: the number of a block in the order in which blocks start.

Each block takes a distinct ticket of its row, less than the number of blocks in the row. The proof
therefore analyses the text with the ticket in place of the block index, since CUDA does not
specify which block starts when. Data that tiles pass to each other are stored row by row, so the
text is analysed for a single row.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from loopkit._collectives import scanned_blocks
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._program import ArrayParam, Program
from loopkit._promotion import UINT32
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.renamed import changed, renamed
from loopkit.codegen.proof.lockstep import Lockstep, WrongError
from loopkit.codegen.proof.names import Names


def scanned_word(kernel: Kernel) -> str | None:
    """The index of blocks that look back at those before; None where none do."""
    axes = {axis for t in kernel.temporaries for axis in scanned_blocks(kernel, t.name)}
    return CUDA.block_index[min(axes)] if axes else None


def with_tickets(kernel: Kernel, program: Program, function: c.Function) -> c.Function:
    """The function in which the index of a block is its ticket.

    Raises :class:`ReadError` where blocks look back, and their numbers are no tickets: nothing
    says that a block with a lower number has begun, and one that waits for it may keep it out.
    """
    word = scanned_word(kernel)
    if word is None:
        return function
    *start, let = function.body[:4] if len(function.body) > 3 else (None, None, None, None)
    row = _row(program, word)
    counter = _taken(function, program, tuple(start), row) if isinstance(let, c.Let) else None
    if counter is None or not isinstance(let, c.Let) or not isinstance(start[0], c.Declaration):
        raise ReadError(
            function.line,
            "blocks wait for others, and take no tickets in the order in which they begin",
        )
    if let.value != c.Name(start[0].name) or let.ctype != "unsigned int":
        raise ReadError(let.line, f"'{let.name}' is not the ticket of the block")
    _counted(program, function, counter, word)
    body, unused = function.body[4:], {word, start[0].name, counter, *c.GRID}
    if row is not None:
        first, *others = body or (None,)
        if not isinstance(first, c.Let) or not _is_first_of(first, word, row):
            raise ReadError(let.line, "nothing says where what the tiles of a row leave begins")
        state = {p.name for p in program.params if isinstance(p, ArrayParam) and p.is_state}
        body = _of_one_row(tuple(others), first.name, state)
        unused.add(first.name)
    for name in sorted(unused & _named(body)):
        raise ReadError(let.line, f"'{name}' is used behind the ticket of the block")
    return replace(function, body=renamed(body, {let.name: word}))


def rows_of(program: Program, word: str) -> tuple[str, ...]:
    """The block indices that identify a row; each row has tickets of its own."""
    extents = zip(CUDA.block_index, program.grid, strict=True)
    return tuple(other for other, extent in extents if extent != 1 and other != word)


def tiles_in(program: Program, word: str) -> Expression:
    """How many tiles there are in all rows."""
    return prod(_extents(program, (word, *rows_of(program, word))))


def _extents(program: Program, words: tuple[str, ...]) -> list[Any]:
    """How many blocks there are along each of some axes."""
    return [program.grid[CUDA.block_index.index(word)] for word in words]


def _row(program: Program, word: str) -> c.CExpression | None:
    """The number of a block's row; None where there is but one."""
    found: c.CExpression | None = None
    for other in reversed(rows_of(program, word)):
        own = c.Name(other)
        found = own if found is None else c.Binary("+", own, c.Binary("*", _along(other), found))
    return found


def _along(word: str) -> c.CExpression:
    """How many blocks there are along an axis, in 64 bits: so is the product with it."""
    return c.Cast("long long", c.Name(CUDA.grid_size[CUDA.block_index.index(word)]))


def _is_first_of(let: c.Let, word: str, row: c.CExpression) -> bool:
    """Whether a constant is the place of the first tile of a row."""
    return let.ctype == "long long" and let.value == c.Binary("*", _along(word), row)


def _of_one_row(nodes: tuple[c.Node, ...], first: str, state: Set[str]) -> tuple[c.Node, ...]:
    """What a block of one row does, to what the tiles of its row leave: the cells from ``first``.

    As places of tiles are below the number of tiles, rows have no cell in common.
    """
    start = c.Name(first)
    for node in c.statements(nodes):
        for cell in (p for expr in parts_of(node) for p in c.walk(expr)):
            if isinstance(cell, c.Element) and cell.array in state and not _is_from(cell, start):
                raise ReadError(node.line, f"'{cell.array}' is used at the place of another row")

    def own(expr: c.CExpression) -> c.CExpression:
        if not isinstance(expr, c.Element) or expr.array not in state:
            return expr
        (index,) = expr.indices
        assert isinstance(index, c.Binary)
        return c.Element(expr.array, (index.right,))

    return changed(nodes, own)


def _is_from(cell: c.Element, start: c.Name) -> bool:
    """Whether a cell has a place in its row."""
    index = cell.indices[0] if len(cell.indices) == 1 else None
    return isinstance(index, c.Binary) and (index.operator, index.left) == ("+", start)


def _taken(
    function: c.Function,
    program: Program,
    nodes: tuple[c.Node | None, ...],
    row: c.CExpression | None,
) -> str | None:
    """The counter from which one thread takes a ticket of a row, which all threads wait for."""
    drawn, taking, wait = nodes
    if not isinstance(drawn, c.Declaration) or (drawn.space, drawn.dimensions) != ("shared", ()):
        return None
    if not isinstance(wait, c.Wait) or wait.scope != "block":
        return None
    threads = int(np.prod(program.block))
    if isinstance(taking, c.If) and len(taking.body) == 1:
        names = Names(function)
        number = Lockstep(names, program.block, c.Name(drawn.name), "", _no, lambda _: False)
        try:
            threads = int((number.whole(taking.condition) != 0).sum())
        except WrongError:
            return None
        (taking,) = taking.body
    if threads != 1 or not isinstance(taking, c.Assign) or taking.operator != "=":
        return None
    call = taking.value
    if taking.target != c.Name(drawn.name) or not isinstance(call, c.Call) or taking.atomic:
        return None
    address, *rest = call.arguments
    if call.function != "atomicAdd" or rest != [c.Number(1, "uint")]:
        return None
    cell = address.operand if isinstance(address, c.Unary) else None
    place = c.Number(0, "int") if row is None else row
    return cell.array if isinstance(cell, c.Element) and cell.indices == (place,) else None


def _no(node: c.Assign, operands: list[c.CExpression]) -> bool:
    return False


def _counted(program: Program, function: c.Function, counter: str, word: str) -> None:
    """The counter is cleared before each launch, and counts the blocks of each row."""
    given = next((p for p in program.params if p.name == counter), None)
    line = next((p.line for p in function.parameters if p.name == counter), function.line)
    if not isinstance(given, ArrayParam) or given.role != "cleared":
        raise ReadError(line, f"no call clears the counter '{counter}'")
    if given.dtype != UINT32:
        raise ReadError(line, f"the counter '{counter}' holds no whole numbers of 32 bits")
    if given.shape != (prod(_extents(program, rows_of(program, word))),):
        raise ReadError(line, f"there are not as many counters '{counter}' as rows")


def _named(nodes: tuple[c.Node, ...]) -> frozenset[str]:
    """All names that are used."""
    parts = (p for n in c.statements(nodes) for e in parts_of(n) for p in c.walk(e))
    return frozenset(
        part.name if isinstance(part, c.Name) else part.array
        for part in parts
        if isinstance(part, (c.Name, c.Element))
    )


def parts_of(node: c.Node) -> tuple[c.CExpression, ...]:
    """The expressions of a statement; of lines that combine, what they combine."""
    return (node.target,) if isinstance(node, c.Combine) else c.expressions(node)
