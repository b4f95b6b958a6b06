"""Launches described in another way than the kernel is: found, whatever is said of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from proof_kernels import in_place, matmul
from seams import ArrayParam, Program, Proof, ValueParam, prove_program

from loopkit import Kernel


def changed(kernel: Kernel, program: Program, name: str, **changes: Any) -> Proof:
    params = tuple(replace(p, **changes) if p.name == name else p for p in program.params)
    assert params != program.params
    return prove_program(kernel, replace(program, params=params))


@pytest.mark.parametrize(
    ("name", "flag"), [("a", "is_written"), ("a", "is_read"), ("c", "is_written"), ("c", "is_read")]
)
def test_what_a_call_passes_and_takes_back(name: str, flag: str) -> None:
    kernel = matmul()
    program = kernel.program()
    (param,) = [p for p in program.params if p.name == name]
    proof = changed(kernel, program, name, **{flag: not getattr(param, flag)})
    assert [f.kind for f in proof.findings] == ["call"], str(proof)


@pytest.mark.parametrize("seed", range(40))
def test_any_description_has_an_answer(seed: int) -> None:
    r = random.Random(seed)
    kernel = r.choice([matmul, in_place])()
    arrays = [p.name for p in kernel.program().params if isinstance(p, ArrayParam)]
    program = kernel.program(frozenset(r.sample(arrays, r.randrange(2))))
    params = list(program.params)
    at = r.randrange(len(params))
    params[at] = _other(r, params[at], arrays)
    proof = prove_program(kernel, replace(program, params=tuple(params)))
    assert proof.ok == (params[at] == program.params[at]), f"{params[at]}: {proof}"


def _other(
    r: random.Random, param: ValueParam | ArrayParam, arrays: list[str]
) -> ValueParam | ArrayParam:
    if isinstance(param, ArrayParam):
        return r.choice(
            [
                replace(param, role="scratch"),
                replace(param, role="stride"),
                replace(param, shape=param.shape[:-1]),
                replace(param, strides=param.strides[1:]),
                replace(param, dtype=np.dtype(r.choice(["int8", "float64", "complex64", "bool"]))),
            ]
        )
    return r.choice(
        [
            replace(param, role="stride", array=r.choice([*arrays, "zz", None]), axis=7),
            replace(param, role="stride", array=r.choice([*arrays, None]), axis=None),
            replace(param, dtype=np.dtype(r.choice(["int8", "float64", "uint64", "bool"]))),
            replace(param, name=r.choice(["q", arrays[0]])),
        ]
    )
