"""Loops reversed, interleaved and skewed; wavefronts."""

from __future__ import annotations

from loopkit import IllegalTransformError, RaceError
from refusals import kernels as k
from refusals.case import Case, do, message, pair

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})
NM = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 7, "m": 9}, {"n": 40, "m": 5})
LINES = ({"steps": 1, "n": 2}, {"steps": 3, "n": 7}, {"steps": 6, "n": 4})

CASES = (
    Case(
        "recurrence backwards",
        k.recurrence,
        do("map_domain", "{ [i] -> [j]: j = n - 1 - i }"),
        IllegalTransformError,
        pair("a", (1,), "s[i=1]", "s[i=2]", n=3),
        (do("map_domain", "{ [i] -> [j]: j = i + 3 }"),),
        N,
    ),
    Case(
        "shift in place backwards",
        k.shift_left,
        do("affine_map_inames", "i", "j", "j = n - i"),
        IllegalTransformError,
        pair("a", (1,), "s[i=0]", "s[i=1]", n=2),
        (do("affine_map_inames", "i", "j", "j = n - i"),),
        N,
        legal_kernel=k.copied_shift,
    ),
    Case(
        "recurrence in strides",
        k.recurrence,
        do("map_domain", "{ [i] -> [r, q]: i = 4*q + r and 0 <= r < 4 }"),
        IllegalTransformError,
        pair("a", (3,), "s[i=3]", "s[i=4]", n=5),
        (do("map_domain", "{ [i] -> [q, r]: i = 4*q + r and 0 <= r < 4 }"),),
        N,
    ),
    Case(
        "two steps apart in strides of three",
        k.every_other,
        do("map_domain", "{ [i] -> [r, q]: i = 3*q + r and 0 <= r < 3 }"),
        IllegalTransformError,
        pair("a", (3,), "s[i=1]", "s[i=3]", n=4),
        (do("map_domain", "{ [i] -> [r, q]: i = 2*q + r and 0 <= r < 2 }"),),
        N,
    ),
    Case(
        "time backwards",
        k.history,
        do("map_domain", "{ [t, i] -> [t', i]: t' = -t }"),
        IllegalTransformError,
        pair("u", (1, 1), "s[t=0, i=1]", "s[t=1, i=2]", n=3, steps=2),
        (do("map_domain", "{ [t, i] -> [t, i']: i' = -i }"),),
        LINES,
    ),
    Case(
        "two iterations in one",
        k.recurrence,
        do("map_domain", "{ [i] -> [j]: j = floor(i/2) }"),
        IllegalTransformError,
        message("one", "i=2", "i=3"),
        (do("map_domain", "{ [i] -> [j, r]: j = floor(i/2) and r = i mod 2 }"),),
        N,
        is_wrong=False,
    ),
    Case(
        "iterations left out",
        k.recurrence,
        do("map_domain", "{ [i] -> [j]: j = i and i < 5 }"),
        IllegalTransformError,
        message("i=5", "no image"),
        (do("map_domain", "{ [i] -> [j]: j = i - 1 }"),),
        N,
        is_wrong=False,
    ),
    Case(
        "a triangle's rows from the right",
        k.substitution_by_hand,
        do("map_domain", "{ [i, j] -> [i, q]: q = i - j }"),
        IllegalTransformError,
        pair("x", (2,), "s[i=2, j=0]", "s[i=2, j=1]", n=3),
        (do("map_domain", "{ [i, j] -> [q, p]: q = j and p = i }"),),
        N,
    ),
    Case(
        "both axes of a wavefront at once",
        k.corner,
        do("tag_inames", "i:g.0, j:g.1"),
        RaceError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=1]", m=2, n=3),
        (
            do("map_domain", "{ [i, j] -> [w, i]: w = i + j }"),
            do("split_iname", "i", 32, inner_tag="l.0"),
        ),
        NM,
    ),
    Case(
        "a wavefront's diagonals at once",
        k.corner,
        do("tag_inames", "w:g.0"),
        RaceError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=1]", m=2, n=3),
        (
            do("map_domain", "{ [i, j] -> [w, i]: w = i + j }"),
            do("split_iname", "i", 4, inner_tag="l.0"),
        ),
        NM,
        chain=(do("map_domain", "{ [i, j] -> [w, i]: w = i + j }"),),
    ),
    Case(
        "a wavefront over blocks",
        k.corner,
        do("split_iname", "i", 2, outer_tag="g.0", inner_tag="l.0"),
        RaceError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=2, j=1]", m=2, n=3),
        (
            do("map_domain", "{ [i, j] -> [w, i]: w = i + j }"),
            do("split_iname", "i", 2, inner_tag="l.0"),
        ),
        NM,
        chain=(do("map_domain", "{ [i, j] -> [w, i]: w = i + j }"),),
    ),
    Case(
        "a wavefront skewed the wrong way",
        k.corner,
        do("map_domain", "{ [i, j] -> [w, i]: w = i - j }"),
        IllegalTransformError,
        pair("a", (1, 1), "s[i=1, j=1]", "s[i=1, j=2]", m=3, n=2),
        (
            do("map_domain", "{ [i, j] -> [w, i]: w = 2*i + j }"),
            do("split_iname", "i", 4, inner_tag="l.0"),
        ),
        NM,
    ),
    Case(
        "sweeps in place, skewed too little",
        k.gauss_seidel,
        do("split_iname", "t", 8, inner_tag="l.0"),
        RaceError,
        pair("u", (1,), "s[t=0, i=2]", "s[t=1, i=1]", n=3, steps=2),
        (
            do("map_domain", "{ [t, i] -> [w, t]: w = 2*t + i }"),
            do("split_iname", "t", 8, inner_tag="l.0"),
        ),
        LINES,
        chain=(do("map_domain", "{ [t, i] -> [w, t]: w = t + i }"),),
    ),
    Case(
        "steps of a stencil in one launch",
        k.history,
        do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0"),
        RaceError,
        pair("u", (1, 3), "s[t=0, i=3]", "s[t=1, i=4]", n=5, steps=2),
        (do("split_iname", "i", 4, inner_tag="l.0"),),
        LINES,
    ),
    Case(
        "steps of a stencil at once",
        k.history,
        do("tag_inames", "t:g.0"),
        RaceError,
        pair("u", (1, 1), "s[t=0, i=1]", "s[t=1, i=2]", n=3, steps=2),
        (
            do("map_domain", "{ [t, i] -> [w, t]: w = 2*t + i }"),
            do("split_iname", "t", 4, inner_tag="l.0"),
        ),
        LINES,
    ),
)
