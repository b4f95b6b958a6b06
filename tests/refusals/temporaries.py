"""Temporaries: given an axis, put elsewhere in memory, laid out anew."""

from __future__ import annotations

from loopkit import IllegalTransformError, InvalidArgumentError, RaceError
from refusals import kernels as k
from refusals.case import Case, do, message, pair

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 16})
NM = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 7, "m": 8}, {"n": 19, "m": 5})
CONSTANT: tuple[dict[str, int], ...] = ({},)
ON_THREADS = (do("tag_inames", "i:l.0, j:l.0"),)

CASES = (
    Case(
        "an axis for a value that the next iteration needs",
        k.carried_16,
        do("privatize_temporaries_with_inames", "i", "t"),
        IllegalTransformError,
        pair("t", (), "keep[i=0]", "use[i=1]", n=2),
        (do("privatize_temporaries_with_inames", "i", "t"),),
        N,
        legal_kernel=k.scalar_16,
    ),
    Case(
        "an axis for a sum along itself",
        k.inner_sums,
        do("privatize_temporaries_with_inames", "j", "t"),
        IllegalTransformError,
        message("outside of 'j'", "'t'"),
        (do("split_iname", "i", 4), do("privatize_temporaries_with_inames", "i_inner", "t")),
        NM,
        is_wrong=False,
    ),
    Case(
        "an axis for a value that the same loop carries",
        k.inner_carried,
        do("privatize_temporaries_with_inames", "j", "t"),
        IllegalTransformError,
        pair("t", (), "keep[i=0, j=0]", "use[i=0, j=1]", m=2, n=1),
        (do("split_iname", "i", 4), do("privatize_temporaries_with_inames", "i_inner", "t")),
        NM,
    ),
    Case(
        "private memory for a tile that threads exchange",
        k.turned,
        do("set_temporary_address_space", "t", "private"),
        IllegalTransformError,
        pair("t", (0,), "load[i=0]", "use[j=15]"),
        (*ON_THREADS, do("set_temporary_address_space", "t", "shared")),
        CONSTANT,
        chain=ON_THREADS,
    ),
    Case(
        "one shared scalar for all threads",
        k.scalar,
        do("set_temporary_address_space", "t", "shared"),
        RaceError,
        pair("t", (), "make[i=0]", "make[i=1]", n=2),
        (
            do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
            do("privatize_temporaries_with_inames", "i_inner", "t"),
            do("set_temporary_address_space", "t", "shared"),
        ),
        ({"n": 1}, {"n": 7}, {"n": 45}),
        chain=(do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),),
    ),
    Case(
        "one global tile for all blocks",
        k.turned_rows,
        do("set_temporary_address_space", "t", "global"),
        RaceError,
        pair("t", (0,), "load[r=0, i=0]", "load[r=1, i=0]", n=2),
        (do("tag_inames", "r:g.0, i:l.0, j:l.0"),),
        ({"n": 1}, {"n": 5}),
        chain=(do("tag_inames", "r:g.0, i:l.0, j:l.0"),),
    ),
    Case(
        "threads over a tile that one of them fills",
        k.turned_private,
        do("tag_inames", "i:l.0, j:l.0"),
        IllegalTransformError,
        pair("t", (0,), "load[i=0]", "use[j=15]"),
        (do("set_temporary_address_space", "t", "shared"), do("tag_inames", "i:l.0, j:l.0")),
        CONSTANT,
    ),
    Case(
        "cells of a tile on top of each other",
        k.turned,
        do("tag_array_axes", "t", "stride:0"),
        IllegalTransformError,
        message("'t'"),
        (do("tag_array_axes", "t", "stride:3"),),
        CONSTANT,
        is_wrong=False,
    ),
    Case(
        "rows of a tile on top of each other",
        k.turned_tile,
        do("tag_array_axes", "t", "stride:4, stride:1"),
        IllegalTransformError,
        message("'t'"),
        (do("tag_array_axes", "t", "stride:9, stride:1"),),
        CONSTANT,
        is_wrong=False,
    ),
    Case(
        "a swizzle beyond the end of its axis",
        k.turned_tile,
        do("swizzle_array", "t", 1, 0, 3, base=1),
        IllegalTransformError,
        message("'t'", "would have no place"),
        (do("swizzle_array", "t", 1, 0, 3, base=1, pad=True),),
        CONSTANT,
        is_wrong=False,
    ),
    Case(
        "a swizzle of an axis by itself",
        k.turned_tile,
        do("swizzle_array", "t", 1, 1, 2),
        IllegalTransformError,
        message("'t'", "would lie in the same place"),
        (do("swizzle_array", "t", 1, 0, 2),),
        CONSTANT,
        is_wrong=False,
    ),
    Case(
        "padding with less than nothing",
        k.turned_tile,
        do("pad_temporary", "t", 1, -1),
        InvalidArgumentError,
        message("-1"),
        (do("pad_temporary", "t", 1, 1),),
        CONSTANT,
        is_wrong=False,
    ),
    Case(
        "padding that moves nothing",
        k.turned_tile,
        do("add_padding", "t", 0, 16),
        IllegalTransformError,
        message("stay as it is"),
        (do("add_padding", "t", 0, 48),),
        CONSTANT,
        is_wrong=False,
    ),
)
