"""The cases of `compile_time.py`, as a user of Loopy writes them. Needs Loopy and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import _texts
import loopy as lp
import numpy as np
from _steps import Steps, import_everything, main
from loopy.version import MOST_RECENT_LANGUAGE_VERSION

warnings.simplefilter("ignore")
lp.set_caching_enabled(False)
import_everything(lp)  # imports are not counted

F32 = np.float32


def make(step: Steps, domains: Any, text: str, **kwargs: Any) -> Any:
    types = kwargs.pop("types")
    knl = step(
        "create",
        lp.make_kernel,
        domains,
        text,
        target=lp.CudaTarget(),
        lang_version=MOST_RECENT_LANGUAGE_VERSION,
        **kwargs,
    )
    return step("create", lp.add_dtypes, knl, dict.fromkeys(types, F32))


def finish(step: Steps, knl: Any) -> str:
    knl = step("lower", lp.preprocess_program, knl)
    generated = step("lower", lp.generate_code_v2, knl)
    return str(step("print", generated.device_code))


def vector_add(step: Steps) -> str:
    knl = make(step, *_texts.VECTOR_ADD, types="ab")
    knl = step("split_iname", lp.split_iname, knl, "i", 256, outer_tag="g.0", inner_tag="l.0")
    return finish(step, knl)


def sgemm_tiled(step: Steps) -> str:
    knl = make(step, *_texts.SGEMM, assumptions="n, m, l >= 1", types="ab")
    split = partial(step, "split_iname", lp.split_iname)
    fetch = partial(step, "add_prefetch", lp.add_prefetch)
    around = "i_outer,j_outer,k_outer"
    knl = split(knl, "i", 16, outer_tag="g.1", inner_tag="l.1")
    knl = split(knl, "j", 16, outer_tag="g.0", inner_tag="l.0")
    knl = split(knl, "k", 16)
    for array, inames in (("a", ["i_inner", "k_inner"]), ("b", ["k_inner", "j_inner"])):
        knl = fetch(knl, array, inames, fetch_outer_inames=around, default_tag="l.auto")
    return finish(step, knl)


def sgemm_registers(step: Steps) -> str:
    knl = make(step, *_texts.SGEMM, assumptions=_texts.FULL_TILES, types="ab")
    split = partial(step, "split_iname", lp.split_iname)
    fetch = partial(step, "add_prefetch", lp.add_prefetch)
    around = "i_outer,j_outer,k_outer"
    knl = split(knl, "i", 128, inner_iname="ii", outer_tag="g.1")
    knl = split(
        knl, "ii", 8, outer_iname="it", inner_iname="ir", outer_tag="l.1", inner_tag="ilp.unr"
    )
    knl = split(knl, "j", 128, inner_iname="jj", outer_tag="g.0")
    knl = split(
        knl, "jj", 16, outer_iname="jr", inner_iname="jt", outer_tag="ilp.unr", inner_tag="l.0"
    )
    knl = split(knl, "k", 8)
    for array, inames in (("a", ["it", "ir", "k_inner"]), ("b", ["k_inner", "jr", "jt"])):
        knl = fetch(knl, array, inames, fetch_outer_inames=around, default_tag="l.auto")
    return finish(step, knl)


def stencil(step: Steps) -> str:
    data = [
        lp.GlobalArg("u", F32, shape=("n + 8",) * 3),
        lp.GlobalArg("v", F32, shape=("n",) * 3),
        *(lp.ValueArg(f"c{d}", F32) for d in range(5)),
        ...,
    ]
    knl = make(step, *_texts.STENCIL, kernel_data=data, assumptions="n >= 1", types="")
    split = partial(step, "split_iname", lp.split_iname)
    knl = split(knl, "i", 4, outer_tag="g.2")
    knl = split(knl, "j", 8, outer_tag="g.1", inner_tag="l.1")
    knl = split(knl, "k", 16, outer_tag="g.0", inner_tag="l.0")
    tile = ["i_inner", "j_inner", "k_inner"]
    knl = step(
        "add_prefetch",
        lp.add_prefetch,
        knl,
        "u",
        tile,
        default_tag="l.auto",
        fetch_bounding_box=True,
    )
    return finish(step, knl)


def dg_gradient(step: Steps) -> str:
    knl = make(step, *_texts.DG_GRADIENT, assumptions="ne >= 1", types="DGu")
    knl = step("split_iname", lp.split_iname, knl, "e", 12, outer_tag="g.0", inner_tag="l.1")
    tags = {"i": "l.0", "x": "unr", "y": "unr", "z": "unr"}
    knl = step("tag_inames", lp.tag_inames, knl, tags)
    fetch = partial(step, "add_prefetch", lp.add_prefetch)
    knl = fetch(knl, "u", ["e_inner", "j"], default_tag="l.auto")
    knl = fetch(knl, "D", ["x", "i", "j"], fetch_outer_inames="e_outer", default_tag="l.auto")
    return finish(step, knl)


def one_loop(step: Steps, statements: int) -> str:
    knl = make(step, *_texts.many_statements(statements), types="a")
    knl = step("split_iname", lp.split_iname, knl, "i", 128, outer_tag="g.0", inner_tag="l.0")
    return finish(step, knl)


def chain(step: Steps, loops: int) -> str:
    knl = make(step, *_texts.chain_of_loops(loops), types="a")
    knl = step("split_iname", lp.split_iname, knl, "i", 128, outer_tag="g.0", inner_tag="l.0")
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
