"""Subscripts and conditions that data decide, and what is assumed of sizes and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit import IllegalTransformError, InvalidArgumentError, RaceError, UndecidedError
from refusals import kernels as k
from refusals.case import Case, Sizes, do, message, pair

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})
NM = ({"n": 1, "m": 3}, {"n": 7, "m": 4}, {"n": 45, "m": 9})
BLOCKS = do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0")


def all_the_same(sizes: Sizes) -> Mapping[str, Any]:
    """Index arrays whose entries are all zero: the worst that can happen."""
    zeros = np.zeros(sizes["n"] + 1, np.int32)
    return {"p": zeros[:-1], "q": zeros[:-1], "bin": zeros[:-1]}


def shuffled(sizes: Sizes) -> Mapping[str, Any]:
    """Two permutations with no value in common; the second one is even, the first one odd."""
    order = np.random.default_rng(sizes["n"]).permutation(sizes["n"]).astype(np.int32)
    return {"p": 2 * order + 1, "q": 2 * order[::-1]}


def random_bins(sizes: Sizes) -> Mapping[str, Any]:
    """Entries below ``m``."""
    found = np.random.default_rng(sizes["n"]).integers(0, sizes["m"], sizes["n"])
    return {"bin": found.astype(np.int32)}


def even(sizes: Sizes) -> Mapping[str, Any]:
    """The even numbers, for rows that begin at each."""
    return {"start": np.arange(sizes["n"] + 1, dtype=np.int32) * 2}


def ones(sizes: Sizes) -> Mapping[str, Any]:
    """Numbers that end a loop after some iterations, and not after the first."""
    return {"x": np.ones(sizes["n"], np.int32)}


CASES = (
    Case(
        "a loop that data end, its iterations on threads",
        k.counted_down,
        do("tag_inames", "t: l.0"),
        IllegalTransformError,
        message("'stop' (i=0, t=0) writes t_goes_on", "n = 1"),
        (BLOCKS,),
        N,
        worst=ones,
    ),
    Case(
        "a loop that data end, from behind",
        k.counted_down,
        do("affine_map_inames", "t", "u", "u = 7 - t"),
        IllegalTransformError,
        message("'less' (i=0, t=1) would read t_goes_on before 'stop' (i=0, t=0) has written it"),
        (do("affine_map_inames", "t", "u", "u = t + 7"), BLOCKS),
        N,
        worst=ones,
    ),
    Case(
        "a loop that data end, cut behind where it ends",
        k.counted_down,
        do("fission", "t", "id:keep"),
        IllegalTransformError,
        message("'stop' (i=0, t=1) would overwrite t_goes_on before 'keep' (i=0, t=0)"),
        (do("split_iname", "t", 3), BLOCKS),
        N,
        worst=ones,
    ),
    Case(
        "a histogram over threads",
        k.histogram,
        BLOCKS,
        UndecidedError,
        message("bin", "assume_injective"),
        (do("split_iname", "i", 8),),
        NM,
        data=random_bins,
        worst=all_the_same,
    ),
    Case(
        "a scatter over threads",
        k.scatter,
        BLOCKS,
        UndecidedError,
        message("assume_injective", "p"),
        (do("assume_injective", "p"), BLOCKS),
        N,
        data=shuffled,
        worst=all_the_same,
    ),
    Case(
        "a scatter through two arrays over threads",
        k.scatter_two,
        BLOCKS,
        UndecidedError,
        message("assume_disjoint"),
        (
            do("assume_injective", "p"),
            do("assume_injective", "q"),
            do("assume_disjoint", "p", "q"),
            BLOCKS,
        ),
        N,
        chain=(do("assume_injective", "p"), do("assume_injective", "q")),
        data=shuffled,
        worst=all_the_same,
    ),
    Case(
        "a scatter backwards",
        k.scatter,
        do("map_domain", "{ [i] -> [j]: j = n - 1 - i }"),
        UndecidedError,
        message("assume_injective", "p"),
        (do("assume_injective", "p"), do("map_domain", "{ [i] -> [j]: j = n - 1 - i }")),
        N,
        data=shuffled,
        worst=all_the_same,
    ),
    Case(
        "a gather from what is written",
        k.gather_in_place,
        BLOCKS,
        UndecidedError,
        message("p"),
        (BLOCKS,),
        N,
        legal_kernel=k.gather,
        data=shuffled,
        worst=lambda sizes: {"p": np.arange(sizes["n"], dtype=np.int32) + 1},
    ),
    Case(
        "a recurrence where data say so",
        k.masked,
        BLOCKS,
        RaceError,
        pair("a", (1,), "s[i=1]", "s[i=2]", n=3),
        (do("split_iname", "i", 8, inner_tag="unr"),),
        N,
        worst=lambda sizes: {"m": np.ones(sizes["n"], np.int32)},
    ),
    Case(
        "segments that may overlap",
        k.segments,
        do("tag_inames", "i:g.0"),
        UndecidedError,
        message("assume_increasing", "start"),
        (do("assume_increasing", "start"), do("tag_inames", "i:g.0")),
        N,
        data=even,
        is_wrong=False,
    ),
    Case(
        "two values beside each other, as long as there are but two",
        k.recurrence,
        do("tag_inames", "i:g.0"),
        RaceError,
        pair("a", (1,), "s[i=1]", "s[i=2]", n=3),
        (do("assume", "n <= 2"), do("tag_inames", "i:g.0")),
        ({"n": 1}, {"n": 2}),
        chain=(do("assume", "n <= 3"),),
    ),
    Case(
        "a shift by a distance that may be short",
        k.shift_by,
        do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
        RaceError,
        pair("a", (1,), "s[i=0]", "s[i=1]", d=1, n=2),
        (do("assume", "d >= n"), BLOCKS),
        ({"n": 7, "d": 7}, {"n": 20, "d": 31}),
        largest=3,
    ),
    Case(
        "a recurrence of a length that is fixed too late",
        k.recurrence,
        do("tag_inames", "i:l.0"),
        RaceError,
        pair("a", (1,), "s[i=1]", "s[i=2]", n=9),
        (do("fix_parameters", n=2), do("tag_inames", "i:l.0")),
        ({"n": 2},),
        chain=(do("fix_parameters", n=9),),
    ),
    Case(
        "sizes that cannot be",
        k.short_recurrence,
        do("assume", "n >= 65"),
        InvalidArgumentError,
        message("no sizes satisfy"),
        (do("assume", "n <= 32"),),
        ({"n": 1}, {"n": 32}),
        is_wrong=False,
    ),
    Case(
        "a size fixed against its assumptions",
        k.short_recurrence,
        do("fix_parameters", n=100),
        IllegalTransformError,
        message("100"),
        (do("fix_parameters", n=64),),
        ({"n": 64},),
        is_wrong=False,
    ),
    Case(
        "a type that is narrower than the one declared",
        k.recurrence,
        do("add_dtypes", {"a": "float16"}),
        InvalidArgumentError,
        message("'a'", "float32"),
        (do("add_dtypes", {"a": "float32"}),),
        N,
        is_wrong=False,
    ),
    Case(
        "a type that is narrower than the one inferred",
        k.scalar,
        do("add_and_infer_dtypes", {"t": "float16"}),
        InvalidArgumentError,
        message("'t'", "float32"),
        (do("add_and_infer_dtypes", {"t": "float32"}),),
        N,
        is_wrong=False,
    ),
    Case(
        "an iname that is used",
        k.recurrence,
        do("remove_unused_inames", "i"),
        IllegalTransformError,
        message("'i'", "'s' is inside"),
        (do("split_iname", "i", 4), do("remove_unused_inames", "z")),
        N,
        legal_kernel=k.spare_iname,
        is_wrong=False,
    ),
    Case(
        "ranges of an array with two axes",
        k.gather_rows,
        do("assume_increasing", "p"),
        InvalidArgumentError,
        message("2 axes"),
        (do("assume_increasing", "start"), do("tag_inames", "i:g.0")),
        N,
        legal_kernel=k.segments,
        data=even,
        is_wrong=False,
    ),
    Case(
        "an array that shares nothing with itself",
        k.scatter,
        do("assume_disjoint", "p", "p"),
        InvalidArgumentError,
        message("itself"),
        (do("assume_injective", "p"), BLOCKS),
        N,
        data=shuffled,
        is_wrong=False,
    ),
    Case(
        "a scatter kept in bounds by what the kernel writes",
        k.written_index,
        do("assume_within", "p", 0, "n"),
        IllegalTransformError,
        message("writes 'p'"),
        (do("assume_within", "p", 0, "2*n"), do("assume_injective", "p"), BLOCKS),
        N,
        legal_kernel=k.scatter,
        data=shuffled,
        is_wrong=False,
    ),
    Case(
        "an assertion about what the kernel writes",
        k.written_index,
        do("assume_injective", "p"),
        IllegalTransformError,
        message("writes 'p'"),
        (do("assume_within", "q", 0, "n"),),
        N,
        data=lambda sizes: {"q": np.arange(sizes["n"], dtype=np.int32)},
        is_wrong=False,
    ),
)
