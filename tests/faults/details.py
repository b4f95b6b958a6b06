"""Faults that leave most of a schedule right: memory, expressions, calls."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain, substitute
from seams import sets as _sets

import loopkit as lk
from faults import kernels
from faults.making import RENAME, changed, statement, var
from faults.planting import Patch, fault
from faults.staging import THREADS
from loopkit import AddressSpace, Kernel

# {{{ memory

fault(
    "set_temporary_address_space: private, although threads read from their neighbours",
    kernels.one_apart,
    do("set_temporary_address_space", "t", "shared"),
    Patch("transforms.storage:parse_address_space", lambda f: lambda _: AddressSpace.PRIVATE),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
)
fault(
    "pad_temporary: rows get shorter",
    kernels.squares,
    do("pad_temporary", "t", 1),
    Patch(
        "transforms.storage:with_arrays",
        lambda f: (
            lambda kernel, arrays: f(
                kernel, {n: dataclasses.replace(a, padding=(0, -1)) for n, a in arrays.items()}
            )
        ),
    ),
    Patch("_arrays:_check_padding", lambda _: lambda _: None),
    by_running=True,
)
fault(
    "prioritize_loops: the accumulator's axis is one short",
    kernels.row_sums,
    do("prioritize_loops", "k, i"),
    Patch(
        "transforms._expand:extent_or",
        lambda f: lambda *given: (f(*given)[0], prim.Sum((f(*given)[1], -1))),
    ),
    sizes={"n": 3},
)

# }}}

# {{{ expressions

fault(
    "any: a sum of three is taken in another order",
    kernels.three_terms,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s, rhs=prim.Sum((s.rhs.children[0], prim.Sum(s.rhs.children[1:])))
        ),
    ),
    sizes={"n": 1},
    by_running=True,
    values=lambda sizes: {"a": [1e8], "b": [-1e8], "c": [1.0]},
)
fault(
    "any: a choice takes its other branch",
    kernels.chosen,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(s, rhs=prim.If(s.rhs.condition, s.rhs.else_, s.rhs.then)),
    ),
    sizes={"n": 3},
    by_running=True,
)
fault(
    "any: a choice is made at another place",
    kernels.chosen,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s,
            rhs=prim.If(
                substitute(s.rhs.condition, {"row": prim.Sum((var("row"), 1))}),
                s.rhs.then,
                s.rhs.else_,
            ),
        ),
    ),
    sizes={"n": 3},
    by_running=True,
)

# }}}

# {{{ staging

fault(
    "add_prefetch: of a copy, one cell off",
    kernels.stencil,
    do("add_prefetch", "a_s", [], default_tag=None),
    Patch(
        "transforms._staging:element",
        lambda f: lambda name, cells: f(name, tuple(prim.Sum((c, 1)) for c in cells)),
    ),
    chain=(*THREADS, do("add_prefetch", "a", "i_inner")),
    sizes={"n": 10},
)


def _fewer_rounds(original: Any) -> Any:
    """Threads that fill a copy stop one round too early."""

    def lay(*arguments: Any) -> Any:
        found = original(*arguments)
        parts = tuple(
            dataclasses.replace(p, extent=p.extent - p.iname.endswith(("round", "_outer")))
            for p in found.parts
        )
        return dataclasses.replace(found, parts=parts)

    return lay


fault(
    "add_prefetch: threads stop one round too early",
    kernels.stencil,
    do("add_prefetch", "a", "i_inner"),
    Patch("transforms._transfer_loops:thread_layout", _fewer_rounds),
    chain=THREADS,
    sizes={"n": 10},
)

fault(
    "add_prefetch: threads that are tagged later stop one round too early",
    kernels.stencil,
    None,
    Patch("_deal_out:thread_layout", _fewer_rounds),
    chain=(
        do("split_iname", "i", 4),
        do("add_prefetch", "a", "i_inner"),
        do("tag_inames", "i_inner: l.0"),
    ),
    sizes={"n": 10},
)


# }}}

# {{{ inames


def _emptiness_lost(original: Any) -> Any:
    """A statement also runs where the iname that goes has no values."""

    def without(kernel: Kernel, inames: Any) -> Kernel:
        found = original(kernel, inames)
        bounds = prim.LogicalAnd(
            (
                prim.Comparison(var("i"), ">=", 0),
                prim.Comparison(var("i"), "<=", prim.Sum((var("n"), -1))),
            )
        )
        return found.with_(
            domains=tuple(Domain(d.inames, _sets.condition_set(bounds)) for d in found.domains)
        )

    return without


fault(
    "remove_unused_inames: runs where the iname had no values",
    kernels.maybe_never,
    do("remove_unused_inames", "j"),
    Patch("transforms.rename:without_inames", _emptiness_lost),
    sizes={"n": 3, "m": 1},
)

# }}}

# {{{ what a call sees


def _swapped_arguments(kernel: Kernel) -> Kernel:
    a, b = (i for i, x in enumerate(kernel.args) if x.name in ("a", "b"))
    args = list(kernel.args)
    args[a], args[b] = args[b], args[a]
    return kernel.with_(args=tuple(args))


def _by_position(kernel: Kernel) -> str | None:
    """A call without names."""
    values = {"a": np.ones(3, "f4"), "b": np.zeros(3, "f4"), "n": 3}
    names = [x.name for x in kernels.added().args]
    kernel.executor("reference")(*(values[n] for n in names))
    return None if values["b"].all() else "b, in its place, is not written"


fault(
    "any: arguments change places",
    kernels.added,
    RENAME,
    changed(_swapped_arguments),
    evidence=_by_position,
)


def _with_default(kernel: Kernel) -> Kernel:
    return kernel.with_(
        args=tuple(
            dataclasses.replace(x, default=2) if x.name == "scale" else x for x in kernel.args
        )
    )


def _without_scale(kernel: Kernel) -> str | None:
    """A call that forgets an argument."""
    b = np.zeros(3, "f4")
    try:
        kernel.executor("reference")(a=np.ones(3, "f4"), b=b)
    except lk.LoopkitError:
        return None
    return f"b is {b} for no scale at all"


fault(
    "any: a size gets a default",
    kernels.scaled,
    RENAME,
    changed(_with_default),
    evidence=_without_scale,
)
fault(
    "any: fast mathematics are turned on",
    kernels.waves,
    RENAME,
    changed(
        lambda kernel: kernel.with_(options=dataclasses.replace(kernel.options, fast_math=True))
    ),
    evidence=lambda kernel: " ".join(kernel.program().options) or None,
)

# }}}

# {{{ bounds that data decide


def _one_longer(kernel: Kernel) -> Kernel:
    """Rows of a sparse matrix are one entry longer."""
    return kernel.with_(
        domains=tuple(
            dataclasses.replace(
                d,
                set=_sets.condition_set(
                    prim.LogicalAnd(
                        (
                            prim.Comparison(var("lo"), "<=", var("j")),
                            prim.Comparison(var("j"), "<=", var("hi")),
                        )
                    )
                ),
            )
            if "j" in d.inames
            else d
            for d in kernel.domains
        )
    )


SPARSE = {"n": 3}


def _rows(sizes: Any) -> Any:
    return {"start": [0, 2, 5, 6], "x": np.arange(8.0)}


fault(
    "bounds: rows that data describe are one entry longer",
    kernels.sparse,
    RENAME,
    changed(_one_longer),
    sizes=SPARSE,
    by_running=True,
    values=_rows,
)
fault(
    "bounds: the end of a row is read where its start is",
    kernels.sparse,
    RENAME,
    statement(
        "end",
        lambda s: dataclasses.replace(
            s, rhs=substitute(s.rhs, {"row": prim.Sum((var("row"), -1))})
        ),
    ),
    sizes=SPARSE,
    by_running=True,
    values=_rows,
)

# }}}
