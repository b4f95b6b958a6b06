"""Programs that are launched in another way than they were made for."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim
from seams import ArrayParam, Program, ProgramIf, ProgramLoop


def relaunched(r: random.Random, program: Program) -> Program:
    """Other extents, or other parameters; of several launches another order, or other loops."""
    if program.launches:
        return replace(program, launches=_reordered(r, program.launches))
    return _changed(r, program)


def _reordered(r: random.Random, launches: Any) -> Any:
    """One launch or loop less, twice, elsewhere, or changed."""
    at = r.randrange(len(launches))
    one, others = launches[at], [*launches[:at], *launches[at + 1 :]]
    how = r.randrange(6)
    if how == 0:
        return tuple(others)
    if how == 1:
        others.insert(r.randrange(len(launches)), one)
        return tuple(others)
    if how == 2:
        return (*launches[:at], one, *launches[at:])
    if isinstance(one, Program):
        changed: Program | ProgramLoop | ProgramIf = _changed(r, one)
    elif how == 3 or isinstance(one, ProgramIf):
        changed = replace(one, body=_reordered(r, one.body))
    else:
        lower, upper, step = one.lower, one.upper, one.step
        bounds = [
            (prim.Sum((lower, 1)), upper, step),
            (lower, prim.Sum((upper, -1)), step),
            (lower, prim.Sum((upper, 1)), step),
            (prim.Sum((lower, -1)), upper, step),
            (lower, upper, step + 1),
            (upper, lower, step),
        ]
        lower, upper, step = r.choice(bounds)
        changed = replace(one, lower=lower, upper=upper, step=step)
    return (*launches[:at], changed, *launches[at + 1 :])


def _changed(r: random.Random, program: Program) -> Program:
    """Other extents, or other parameters."""
    how = r.randrange(4)
    axis = r.randrange(3)
    if how == 0:
        block = list(program.block)
        block[axis] = max(1, r.choice([block[axis] + 1, block[axis] - 1, block[axis] * 2]))
        return replace(program, block=(block[0], block[1], block[2]))
    if how == 1:
        grid = list(program.grid)
        old = grid[axis]
        grid[axis] = r.choice([prim.Sum((old, 1)), 1, prim.Sum((old, -1)), grid[axis - 1]])
        return replace(program, grid=(grid[0], grid[1], grid[2]))
    params = list(program.params)
    if how == 2 and len(params) > 1:
        one, two = r.sample(range(len(params)), 2)
        params[one], params[two] = params[two], params[one]
        return replace(program, params=tuple(params))
    number = r.randrange(len(params))
    param = params[number]
    if isinstance(param, ArrayParam) and param.strides:
        strides = [*param.strides]
        strides[r.randrange(len(strides))] = r.choice([1, 2, *strides])
        params[number] = replace(param, strides=tuple(strides))
    return replace(program, params=tuple(params))
