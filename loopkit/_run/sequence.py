"""The launches of one call, in order: one of them, or several that hand arrays to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._program import (
    ArrayParam,
    Launches,
    Program,
    ProgramIf,
    ProgramLoop,
    ValueParam,
    check_grid,
)
from loopkit._run.sizes import compile_tuple

if TYPE_CHECKING:
    from loopkit._run.module import LoadedProgram
    from loopkit._run.plan import Resolved


@dataclass(frozen=True)
class Turn:
    """One launch of a call: what runs, on how many blocks, in which iterations of loops around."""

    program: Program
    grid: tuple[int, int, int]
    values: Mapping[str, int]


def turns_of(program: Program, values: Mapping[str, Any]) -> Iterator[Turn]:
    """All launches of a call whose sizes are ``values``, in order, without those of no blocks."""
    turns = _turns(program.launches or (program,), dict(values), ())
    return (turn for turn in turns if 0 not in turn.grid)


def _turns(launches: Launches, known: dict[str, Any], loops: tuple[str, ...]) -> Iterator[Turn]:
    for one in launches:
        if isinstance(one, Program):
            x, y, z = (max(int(extent), 0) for extent in _grid(one)(known))
            yield Turn(one, (x, y, z), {iname: known[iname] for iname in loops})
            continue
        if isinstance(one, ProgramIf):
            if _holds(one)(known)[0]:
                yield from _turns(one.body, known, loops)
            continue
        lower, upper = map(int, _ends(one)(known))
        for value in range(lower, upper, one.step):
            yield from _turns(one.body, {**known, one.iname: value}, (*loops, one.iname))


@memoised
def _grid(program: Program) -> Callable[[Mapping[str, int]], Any]:
    return compile_tuple(program.grid)


@memoised
def _ends(loop: ProgramLoop) -> Callable[[Mapping[str, int]], Any]:
    return compile_tuple((loop.lower, loop.upper))


@memoised
def _holds(guard: ProgramIf) -> Callable[[Mapping[str, int]], Any]:
    return compile_tuple((guard.condition,))


def own_arguments(program: Program, turn: Turn, arguments: Sequence[Any]) -> list[Any]:
    """What a launch takes of the ``arguments`` of the whole program, and of loops around it."""
    given = {_key(p): a for p, a in zip(program.params, arguments, strict=True)}
    return [
        turn.values[p.name] if p.name in turn.values else given[_key(p)]
        for p in turn.program.params
    ]


def _key(param: ValueParam | ArrayParam) -> object:
    """What tells parameters apart, whatever strides are called."""
    if isinstance(param, ValueParam) and param.role == "stride":
        return param.array, param.axis
    return param.name


Call = tuple["LoadedProgram", tuple[int, int, int], list[Any]]
"""A loaded function, its grid, and its arguments."""


def calls_of(loaded: LoadedProgram, resolved: Resolved, arguments: Sequence[Any]) -> list[Call]:
    """What a call launches on a GPU; ``arguments`` are those of the whole program.

    Raises :class:`ResourceError` for a grid that the device cannot have.
    """
    target = loaded.device.target
    if not loaded.parts:
        check_grid(loaded.program, resolved.grid, target)
        return [] if 0 in resolved.grid else [(loaded, resolved.grid, [*arguments])]
    calls: list[Call] = []
    for turn in turns_of(loaded.program, resolved.values):
        check_grid(turn.program, turn.grid, target)
        part = loaded.parts[turn.program.name]
        calls.append((part, turn.grid, own_arguments(loaded.program, turn, arguments)))
    return calls
