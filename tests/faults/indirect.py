"""Faults where index arrays and loaded bounds are copied."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import build, flatten, substitute
from seams import sets as _sets

from faults import kernels
from faults.copies import fetched, under
from faults.making import RENAME, changed, var
from faults.planting import Patch, fault
from faults.staging import LOOPS, THREADS, box_becomes, cells_lack, without_last
from loopkit import Kernel, SubstitutionRule

FETCH = do("add_prefetch", "p", "i_inner", default_tag=None)
TOGETHER = do("add_prefetch", "p", "i_inner")
N = {"n": 8}


def _turned(sizes: Any) -> Any:
    return {"p": np.arange(sizes["n"])[::-1].copy()}


def shifted_by(distance: int) -> Patch:
    """Fetched from some cells further on, around the end of the array."""
    return fetched(
        lambda s: dataclasses.replace(
            s,
            rhs=prim.Subscript(
                s.rhs.aggregate,
                (prim.Min((prim.Sum((s.rhs.index_tuple[0], distance)), prim.Sum((var("n"), -1)))),),
            ),
        )
    )


for what, kernel in (("gather", kernels.gathered), ("scatter", kernels.scattered)):
    fault(
        f"indices: of a {what}, fetched one cell further on",
        kernel,
        FETCH,
        shifted_by(1),
        chain=LOOPS,
        sizes=N,
        by_running=True,
        values=_turned,
    )
    fault(
        f"indices: of a {what}, fetched where data allow",
        kernel,
        FETCH,
        fetched(under(prim.Comparison(prim.Subscript(var("p"), (0,)), "<", 0))),
        chain=LOOPS,
        sizes=N,
        by_running=True,
        sanitize=True,
        values=_turned,
    )
fault(
    "indices: the last one of a tile not fetched",
    kernels.gathered,
    FETCH,
    cells_lack("last"),
    chain=LOOPS,
    sizes=N,
    by_running=True,
    sanitize=True,
    values=_turned,
)
fault(
    "indices: room for one too few",
    kernels.gathered,
    FETCH,
    box_becomes(without_last),
    chain=LOOPS,
    sizes=N,
    by_running=True,
    sanitize=True,
    values=_turned,
)
fault(
    "indices: fetched by one thread for all, where each needs its own",
    kernels.gathered,
    TOGETHER,
    fetched(
        lambda s: dataclasses.replace(
            s, predicates=(*s.predicates, prim.Comparison(var("p_dim_0"), "==", 0))
        )
    ),
    chain=THREADS,
    sizes=N,
    by_running=True,
    sanitize=True,
    values=_turned,
)


def _before_it_is_computed(original: Any) -> Any:
    """The copy is made at the very beginning."""

    def place(*arguments: Any, **more: Any) -> Any:
        return dataclasses.replace(original(*arguments, **more), first=0)

    return place


fault(
    "indices: fetched before they are computed",
    kernels.indexed,
    do("add_prefetch", "p", "j", default_tag=None),
    Patch("transforms._staging:find_place", _before_it_is_computed),
    chain=(do("fix_parameters", n=4),),
    sizes={"n": 4},
    by_running=True,
)


def _bounds_exchanged(kernel: Kernel) -> Kernel:
    """The first row begins where the second one does: the loads change places with another row."""
    shifted = {"row": prim.Min((prim.Sum((var("row"), 1)), prim.Sum((var("n"), -1))))}
    return kernel.with_(
        statements=tuple(
            dataclasses.replace(s, rhs=substitute(s.rhs, shifted)) if s.id == "begin" else s
            for s in kernel.statements
        )
    )


SPARSE = {"n": 3}


def _rows(sizes: Any) -> Any:
    return {"start": [0, 2, 5, 6], "x": np.arange(8.0)}


fault(
    "bounds: the start of a row is that of the next one",
    kernels.sparse,
    RENAME,
    changed(_bounds_exchanged),
    sizes=SPARSE,
    by_running=True,
    values=_rows,
)


def _loaded_after(kernel: Kernel) -> Kernel:
    """The end of a row is loaded when the row is done."""
    entries = flatten(kernel.tree)
    late = [e for e in entries if e[0] == "end"]
    order = [e for e in entries if e[0] != "end"] + late
    by_id = kernel.statement_by_id
    return kernel.with_(tree=build(order), statements=tuple(by_id[id_] for id_, _ in order))


fault(
    "bounds: the end of a row is loaded when the row is done",
    kernels.sparse,
    RENAME,
    changed(_loaded_after),
    sizes=SPARSE,
    sanitize=True,
    by_running=True,
    values=_rows,
)


def _one_entry_less(kernel: Kernel) -> Kernel:
    conditions = prim.LogicalAnd(
        (
            prim.Comparison(prim.Sum((var("lo"), 1)), "<=", var("j")),
            prim.Comparison(var("j"), "<", var("hi")),
        )
    )
    return kernel.with_(
        domains=tuple(
            dataclasses.replace(d, set=_sets.condition_set(conditions)) if "j" in d.inames else d
            for d in kernel.domains
        )
    )


fault(
    "bounds: the first entry of each row is left out",
    kernels.sparse,
    RENAME,
    changed(_one_entry_less),
    sizes=SPARSE,
    by_running=True,
    values=_rows,
)
fault(
    "any: a rule takes the name of a function",
    kernels.waves,
    RENAME,
    Patch("_kernel:SubstitutionRule.__post_init__", lambda f: lambda rule: None),
    changed(
        lambda kernel: kernel.with_(
            substitutions=(
                *kernel.substitutions,
                SubstitutionRule("sin", ("x",), prim.Product((2, var("x")))),
            )
        )
    ),
    sizes={"n": 3},
    by_running=True,
)
