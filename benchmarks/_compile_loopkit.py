"""The cases of `compile_time.py`, as a user of loopkit writes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import _texts
from _steps import Steps, import_everything, main

import loopkit as lk

import_everything(lk)  # imports are not counted

# The passes of lowering that are told apart; what is left of `cuda()` is printing.
PASSES = (
    ("lower", "prepare", "prepare"),
    ("nest", "find_hardware", "hardware"),
    ("nest", "executed_instances", "instances"),
    ("nest", "place_barriers", "barriers"),
    ("nest", "make_nest", "nest"),
    ("lower", "lay_out", "storage"),
    ("lower", "Ranges", "widths"),
)


def make(step: Steps, domains: Any, text: str, **kwargs: Any) -> Any:
    types = kwargs.pop("types")
    return step(
        "create", lk.make_kernel, domains, text, dtypes=dict.fromkeys(types, "float32"), **kwargs
    )


def transform(step: Steps, knl: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return step(name, getattr(knl, name), *args, **kwargs)


def finish(step: Steps, knl: Any) -> str:
    for module, function, name in PASSES:
        step.wrap(importlib.import_module(f"loopkit.codegen.{module}"), function, name)
    return str(step("print", knl.cuda))


def vector_add(step: Steps) -> str:
    knl = make(step, *_texts.VECTOR_ADD, types="ab")
    knl = transform(step, knl, "split_iname", "i", 256, outer_tag="g.0", inner_tag="l.0")
    return finish(step, knl)


def sgemm_tiled(step: Steps) -> str:
    knl = make(step, *_texts.SGEMM, assumptions="n, m, l >= 1", types="ab")
    knl = transform(step, knl, "split_iname", "i", 16, outer_tag="g.1", inner_tag="l.1")
    knl = transform(step, knl, "split_iname", "j", 16, outer_tag="g.0", inner_tag="l.0")
    knl = transform(step, knl, "split_iname", "k", 16)
    for array, inames in (("a", ["i_inner", "k_inner"]), ("b", ["k_inner", "j_inner"])):
        knl = transform(step, knl, "add_prefetch", array, inames, default_tag="l.auto")
    return finish(step, knl)


def sgemm_registers(step: Steps) -> str:
    knl = make(step, *_texts.SGEMM, assumptions=_texts.FULL_TILES, types="ab")
    split = partial(transform, step)
    knl = split(knl, "split_iname", "i", 128, inner_iname="ii", outer_tag="g.1")
    knl = split(
        knl,
        "split_iname",
        "ii",
        8,
        outer_iname="it",
        inner_iname="ir",
        outer_tag="l.1",
    )
    knl = split(knl, "split_iname", "j", 128, inner_iname="jj", outer_tag="g.0")
    knl = split(
        knl,
        "split_iname",
        "jj",
        16,
        outer_iname="jr",
        inner_iname="jt",
        inner_tag="l.0",
    )
    knl = split(knl, "split_iname", "k", 8)
    knl = split(knl, "prioritize_loops", "k_outer,k_inner,ir,jr")
    knl = split(knl, "tag_inames", {"ir": "unr", "jr": "unr"})
    for array, inames in (("a", ["it", "ir", "k_inner"]), ("b", ["k_inner", "jr", "jt"])):
        knl = transform(step, knl, "add_prefetch", array, inames, default_tag="l.auto")
    return finish(step, knl)


def stencil(step: Steps) -> str:
    data = [
        lk.GlobalArg("u", "float32", shape=("n + 8",) * 3),
        lk.GlobalArg("v", "float32", shape=("n",) * 3),
        *(lk.ValueArg(f"c{d}", "float32") for d in range(5)),
        ...,
    ]
    knl = make(step, *_texts.STENCIL, kernel_data=data, assumptions="n >= 1", types="")
    knl = transform(step, knl, "split_iname", "i", 4, outer_tag="g.2")
    knl = transform(step, knl, "split_iname", "j", 8, outer_tag="g.1", inner_tag="l.1")
    knl = transform(step, knl, "split_iname", "k", 16, outer_tag="g.0", inner_tag="l.0")
    tile = ["i_inner", "j_inner", "k_inner"]
    knl = transform(
        step, knl, "add_prefetch", "u", tile, default_tag="l.auto", fetch_bounding_box=True
    )
    return finish(step, knl)


def dg_gradient(step: Steps) -> str:
    knl = make(step, *_texts.DG_GRADIENT, assumptions="ne >= 1", types="DGu")
    knl = transform(step, knl, "split_iname", "e", 12, outer_tag="g.0", inner_tag="l.1")
    tags = {"i": "l.0", "x": "unr", "y": "unr", "z": "unr"}
    knl = transform(step, knl, "tag_inames", tags)
    knl = transform(step, knl, "add_prefetch", "u", ["e_inner", "j"], default_tag="l.auto")
    knl = transform(step, knl, "add_prefetch", "D", ["x", "i", "j"], default_tag="l.auto")
    return finish(step, knl)


def one_loop(step: Steps, statements: int) -> str:
    knl = make(step, *_texts.many_statements(statements), types="a")
    knl = transform(step, knl, "split_iname", "i", 128, outer_tag="g.0", inner_tag="l.0")
    return finish(step, knl)


def chain(step: Steps, loops: int) -> str:
    knl = make(step, *_texts.chain_of_loops(loops), types="a")
    knl = transform(step, knl, "split_iname", "i", 128, outer_tag="g.0", inner_tag="l.0")
    return finish(step, knl)


CASES: dict[str, Callable[[Steps], str]] = {
    "vector add": vector_add,
    "SGEMM 16x16": sgemm_tiled,
    "SGEMM 8x8 a thread": sgemm_registers,
    "25-point stencil": stencil,
    "DG gradient": dg_gradient,
    **{f"{n} statements": partial(one_loop, statements=n) for n in _texts.STATEMENTS},
    **{f"chain of {n} loops": partial(chain, loops=n) for n in _texts.CHAINS},
}

if __name__ == "__main__":
    main(CASES)
