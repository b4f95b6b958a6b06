"""What a ticket means: the number of its block, in the order in which blocks have begun.

Each block takes another ticket, and all are below the number of blocks.  So the proof looks at the
text in which blocks have those numbers as their indices: which block does what, nobody promised.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loopkit._collectives import scanned_blocks
from loopkit._kernel import Kernel
from loopkit._program import ArrayParam, Program
from loopkit._promotion import UINT32
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.renamed import renamed
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
    counter = _taken(function, program, tuple(start)) if isinstance(let, c.Let) else None
    if counter is None or not isinstance(let, c.Let) or not isinstance(start[0], c.Declaration):
        raise ReadError(
            function.line,
            "blocks wait for others, and take no tickets in the order in which they begin",
        )
    if let.value != c.Name(start[0].name) or let.ctype != "unsigned int":
        raise ReadError(let.line, f"'{let.name}' is not the ticket of the block")
    _counted(program, function, counter, word)
    used = _named(function.body[4:])
    for name in {word, start[0].name, counter} & used:
        raise ReadError(let.line, f"'{name}' is used behind the ticket of the block")
    return replace(function, body=renamed(function.body[4:], {let.name: word}))


def _taken(function: c.Function, program: Program, nodes: tuple[c.Node | None, ...]) -> str | None:
    """The counter from which one thread takes a ticket, which all threads wait for."""
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
    return cell.array if isinstance(cell, c.Element) and _is_first(cell) else None


def _no(node: c.Assign, operands: list[c.CExpression]) -> bool:
    return False


def _is_first(cell: c.Element) -> bool:
    return cell.indices == (c.Number(0, "int"),)


def _counted(program: Program, function: c.Function, counter: str, word: str) -> None:
    """The counter is cleared before each launch, and counts all of its blocks."""
    given = next((p for p in program.params if p.name == counter), None)
    line = next((p.line for p in function.parameters if p.name == counter), function.line)
    if not isinstance(given, ArrayParam) or given.role != "cleared" or given.shape != (1,):
        raise ReadError(line, f"no call clears the counter '{counter}'")
    if given.dtype != UINT32:
        raise ReadError(line, f"the counter '{counter}' holds no whole numbers of 32 bits")
    extents = zip(CUDA.block_index, program.grid, strict=True)
    if any(extent != 1 for other, extent in extents if other != word):
        raise ReadError(line, f"tickets from '{counter}' count blocks along other axes, too")


def _named(nodes: tuple[c.Node, ...]) -> frozenset[str]:
    """All names that are used."""
    parts = (p for n in c.statements(nodes) for e in _expressions(n) for p in c.walk(e))
    return frozenset(
        part.name if isinstance(part, c.Name) else part.array
        for part in parts
        if isinstance(part, (c.Name, c.Element))
    )


def _expressions(node: c.Node) -> tuple[c.CExpression, ...]:
    return (node.target,) if isinstance(node, c.Combine) else c.expressions(node)
