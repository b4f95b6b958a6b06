"""The sequence of launches of one call, which may pass arrays to each other."""

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
from loopkit._run.inferred_sizes import compile_tuple

if TYPE_CHECKING:
    from loopkit._run.module import LoadedProgram


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
            yield Turn(one, grid_of(one, known), {iname: known[iname] for iname in loops})
        elif isinstance(one, ProgramIf):
            if _decides(one)(known)[0]:
                yield from _turns(one.body, known, loops)
        else:
            lower, upper = map(int, _decides(one)(known))
            for value in range(lower, upper, one.step):
                yield from _turns(one.body, {**known, one.iname: value}, (*loops, one.iname))


def grid_of(program: Program, values: Mapping[str, Any]) -> tuple[int, int, int]:
    """How many blocks run along x, y and z; no extent is negative."""
    x, y, z = (max(int(extent), 0) for extent in _decides(program)(values))
    return x, y, z


@memoised
def _decides(one: Program | ProgramLoop | ProgramIf) -> Callable[[Mapping[str, int]], Any]:
    """The extents of a grid, the bounds of a loop, or whether a condition holds."""
    if isinstance(one, Program):
        return compile_tuple(one.grid)
    return compile_tuple((one.condition,) if isinstance(one, ProgramIf) else (one.lower, one.upper))


def own_arguments(program: Program, turn: Turn, arguments: Sequence[Any]) -> list[Any]:
    """What a launch takes of the ``arguments`` of the whole program, and of loops around it."""
    given = {_key(p): a for p, a in zip(program.params, arguments, strict=True)}
    return [
        turn.values[p.name] if p.name in turn.values else given[_key(p)]
        for p in turn.program.params
    ]


def _key(param: ValueParam | ArrayParam) -> object:
    """The identity of a parameter, independent of the names of strides."""
    if isinstance(param, ValueParam) and param.role == "stride":
        return param.array, param.axis
    return param.name


Call = tuple["LoadedProgram", tuple[int, int, int], list[Any]]
"""A loaded function, its grid, and its arguments."""


def calls_of(
    loaded: LoadedProgram, values: Mapping[str, Any], arguments: Sequence[Any]
) -> list[Call]:
    """What a call with these sizes launches on a GPU; ``arguments`` are of the whole program.

    Raises :class:`ResourceError` for a grid that the device cannot have.
    """
    calls: list[Call] = []
    for turn in turns_of(loaded.program, values):
        check_grid(turn.program, turn.grid, loaded.device.target)
        part = loaded.parts.get(turn.program.name, loaded)
        calls.append((part, turn.grid, own_arguments(loaded.program, turn, arguments)))
    return calls
