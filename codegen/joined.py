"""The source of a program of several launches: common definitions, then one function for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from loopkit._expression import to_text
from loopkit._program import Launches, Program, ProgramIf, SourceLine, cleared_in
from loopkit.codegen.c.printer import printed
from loopkit.codegen.c.spec import needs_of
from loopkit.codegen.preamble import preamble

_NOWHERE = SourceLine(None, None)


def joined(
    program: Program, notes: Iterable[str], defined: Iterable[str]
) -> tuple[str, tuple[SourceLine, ...]]:
    """The source, and where each of its lines comes from.

    ``notes`` stand on top, and definitions of the user's, ``defined``, below those of loopkit's.
    """
    trees = [part.tree for part in program.parts if part.tree is not None]
    needs = dict.fromkeys(need for tree in trees for need in needs_of(tree))
    above = [*notes, "// One call, in this order:", *_listed(program.launches, "//   "), ""]
    if needs:
        above += preamble(needs).split("\n")
    above += defined
    joins = {(join.name, join.ctype): join for tree in trees for join in tree.joins}
    lines, origins = above, list[SourceLine]()
    for number, (part, tree) in enumerate(zip(program.parts, trees, strict=True)):
        own = replace(tree, above=(), joins=() if number else tuple(joins.values()))
        lines += [*[""] * bool(number), *printed(own)[1].split("\n")[:-1]]
        mine = part.lines[tree.line - 1 :]
        origins += [_NOWHERE] * (len(lines) - len(origins) - len(mine))
        origins += mine
    return "\n".join([*lines, ""]), tuple(origins)


def _listed(launches: Launches, pad: str) -> Iterator[str]:
    """What a call runs, as comments."""
    for one in launches:
        if isinstance(one, Program):
            cleared = " = ".join((*cleared_in(one.params), "0"))
            if cleared != "0":
                yield f"{pad}{cleared}"
            grid, block = _extents(one.grid), _extents(one.block)
            yield f"{pad}{one.name}<<<{grid}, {block}>>>"
            continue
        if isinstance(one, ProgramIf):
            yield f"{pad}if {to_text(one.condition)}"
            yield from _listed(one.body, pad + "  ")
            continue
        step = f" step {one.step}" if one.step != 1 else ""
        yield f"{pad}for {one.iname} in [{to_text(one.lower)}, {to_text(one.upper)}){step}"
        yield from _listed(one.body, pad + "  ")


def _extents(extents: tuple[object, ...]) -> str:
    """Three extents, those at the end left out that are 1."""
    count = max((axis + 1 for axis in range(3) if extents[axis] != 1), default=1)
    texts = [to_text(extent) for extent in extents[:count]]
    return texts[0] if count == 1 else f"({', '.join(texts)})"
