"""Loops exchanged, tiled and joined against a dependence."""

from __future__ import annotations

from loopkit import IllegalTransformError
from refusals import kernels as k
from refusals.case import Case, do, message, pair

NM = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 7, "m": 9}, {"n": 12, "m": 5})
SKEW = do("map_domain", "{ [i, j] -> [w, i]: w = i + j }")

CASES = (
    Case(
        "exchange against (1, -1)",
        k.wave,
        do("prioritize_loops", "j, i"),
        IllegalTransformError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=0]", m=2, n=3),
        (SKEW,),
        NM,
    ),
    Case(
        "tiles against (1, -1)",
        k.wave,
        do("prioritize_loops", "i_outer, j_outer, i_inner, j_inner"),
        IllegalTransformError,
        pair("a", (2, 2), "s[i=2, j=2]", "s[i=3, j=1]", m=3, n=4),
        (
            SKEW,
            do("split_iname", "i", 2),
            do("split_iname", "w", 2),
            do("prioritize_loops", "i_outer, w_outer, i_inner, w_inner"),
        ),
        NM,
        chain=(do("split_iname", "i", 2), do("split_iname", "j", 2)),
    ),
    Case(
        "strips of columns against (1, -1)",
        k.wave,
        do("prioritize_loops", "j_outer, i, j_inner"),
        IllegalTransformError,
        pair("a", (1, 4), "s[i=1, j=4]", "s[i=2, j=3]", m=5, n=3),
        (SKEW, do("split_iname", "w", 4), do("prioritize_loops", "w_outer, i, w_inner")),
        NM,
        chain=(do("split_iname", "j", 4),),
    ),
    Case(
        "skewed the wrong way",
        k.wave,
        do("map_domain", "{ [i, j] -> [w, i]: w = j - i }"),
        IllegalTransformError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=0]", m=2, n=3),
        (SKEW, do("split_iname", "w", 4), do("prioritize_loops", "w_outer, i, w_inner")),
        NM,
    ),
    Case(
        "joined columns first",
        k.wave_16,
        do("join_inames", "j, i"),
        IllegalTransformError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=0]", m=2),
        (do("join_inames", "i, j"),),
        ({"m": 1}, {"m": 5}),
        legal_kernel=k.wave_narrow,
    ),
    Case(
        "time inside of space",
        k.history,
        do("prioritize_loops", "i, t"),
        IllegalTransformError,
        pair("u", (1, 2), "s[t=0, i=2]", "s[t=1, i=1]", n=3, steps=2),
        (do("map_domain", "{ [t, i] -> [w, t]: w = t + i }"),),
        ({"steps": 1, "n": 2}, {"steps": 3, "n": 7}, {"steps": 6, "n": 4}),
    ),
    Case(
        "time inside of space, in place",
        k.gauss_seidel,
        do("prioritize_loops", "i, t"),
        IllegalTransformError,
        pair("u", (1,), "s[t=0, i=2]", "s[t=1, i=1]", n=3, steps=2),
        (
            do("map_domain", "{ [t, i] -> [w, t]: w = 2*t + i }"),
            do("split_iname", "t", 2),
            do("split_iname", "w", 4),
            do("prioritize_loops", "t_outer, w_outer, t_inner, w_inner"),
        ),
        ({"steps": 1, "n": 2}, {"steps": 3, "n": 11}, {"steps": 5, "n": 9}),
    ),
    Case(
        "tiles of a sweep in place that is not skewed",
        k.gauss_seidel,
        do("prioritize_loops", "i_outer, t, i_inner"),
        IllegalTransformError,
        pair("u", (3,), "s[t=0, i=4]", "s[t=1, i=3]", n=5, steps=2),
        (
            do("map_domain", "{ [t, i] -> [w, t]: w = t + i }"),
            do("split_iname", "w", 4),
            do("prioritize_loops", "w_outer, t, w_inner"),
        ),
        ({"steps": 1, "n": 2}, {"steps": 3, "n": 11}, {"steps": 5, "n": 9}),
        chain=(do("split_iname", "i", 4),),
    ),
    Case(
        "factors, columns outside of steps",
        k.factors,
        do("prioritize_loops", "q, k"),
        IllegalTransformError,
        pair("a", (1, 1), "rest[k=0, p=1, q=1]", "column[k=1, i=2]", n=3),
        (do("prioritize_loops", "q, p"),),
        ({"n": 1}, {"n": 7}),
    ),
    Case(
        "iterations peeled off of nothing",
        k.wave,
        do("peel_iname", "i"),
        IllegalTransformError,
        message("first="),
        (do("peel_iname", "i", first=1, last=1), do("peel_iname", "j", last=1)),
        NM,
        is_wrong=False,
    ),
    Case(
        "distributed around a scalar",
        k.scalar_pair,
        do("prioritize_loops", "j, i"),
        IllegalTransformError,
        pair("t", (), "use[i=0, j=0]", "load[i=1]", m=1, n=2),
        (
            do("fix_parameters", n=7),
            do("privatize_temporaries_with_inames", "i", "t"),
            do("prioritize_loops", "j, i"),
        ),
        ({"n": 7, "m": 1}, {"n": 7, "m": 5}),
    ),
    Case(
        "distributed around an array",
        k.running_total,
        do("prioritize_loops", "j, i"),
        IllegalTransformError,
        pair("r", (0,), "use[i=0, j=0]", "step[i=1]", m=1, n=2),
        (do("split_iname", "j", 4),),
        NM,
    ),
)
