"""Programs that are launched in another way than they were made for."""

from __future__ import annotations

import random
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._program import ArrayParam, Program


def relaunched(r: random.Random, program: Program) -> Program:
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
