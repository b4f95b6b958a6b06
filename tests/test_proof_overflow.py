"""Integers wrap around, so the text computes them unsigned; the proof says where it does not."""

from __future__ import annotations

import re

import pytest
from seams import prove, prove_source

import loopkit as lk

TEXT = """
y[i] = y[i] + max(h, d[h, i])
z[i] = sum(h, d[h, i]*i, dtype=int32) - y[i]
if y[i] + 1 > 3
    w[i] = -y[i]
end
v[i] = l[i] + sum(h, 2)
"""


def knl() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, h]: 0 <= i < m and 1 <= h < n }",
        TEXT,
        dtypes={"d, y, z, w": "int32", "l, v": "int64"},
        assumptions="n, m >= 1",
    )


def test_every_cast_is_needed() -> None:
    source = str(knl().cuda())
    assert prove(knl()).ok, str(prove(knl()))
    casts = list(re.finditer(r"\(unsigned( long long)?\)", source))
    assert len(casts) == 6
    for cast in casts:
        faulty = source[: cast.start()] + source[cast.end() :]
        found = prove_source(knl(), faulty)
        assert [f.kind for f in found.findings] == ["width"], f"{faulty}\n{found}"
        assert "overflow" in found.findings[0].what


def test_a_constant_of_half_the_width_helps_nothing() -> None:
    source = str(knl().cuda())
    assert source.count("+= 2ULL;") == 1
    found = prove_source(knl(), source.replace("2ULL", "2u"))
    assert [f.kind for f in found.findings] == ["width"]


@pytest.mark.parametrize(("most", "cast"), [(46340, ""), (46342, "(long long)")])
def test_inames_are_as_wide_as_they_must_be(most: int, cast: str) -> None:
    """46340 squared is the largest square of 31 bits."""
    small = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        "b[i, j] = i*j",
        dtypes={"b": "int32"},
        assumptions=f"1 <= n <= {most}",
    )
    source = str(small.cuda())
    assert f"= {cast}i * j;" in source
    assert prove(small).ok
    bare = prove_source(small, source.replace("= (long long)i", "= i"))
    assert bare.ok == (not cast)


def test_bounds_with_divisions_are_found() -> None:
    """Where a loop is split twice, and its first tile peeled, names are bounded by divisions."""
    split = (
        lk.make_kernel(
            ["{ [i]: 0 <= i < m }", "{ [j]: i <= j < i + 3 }"],
            "v[j + 1] = c[j, i] + i + j + g[j]",
            dtypes={"c, g, v": "int32"},
            assumptions="m >= 1",
        )
        .split_iname("i", 4, inner_tag="unr")
        .split_iname("j", 4, inner_tag="ilp", slabs=(1, 0))
        .split_iname("j_outer", 4, inner_tag="l.2")
    )
    assert prove(split).ok, str(prove(split))


def test_guards_between_loaded_bounds_are_index_arithmetic() -> None:
    ragged = (
        lk.make_kernel(
            ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
            """
            <> lo = ptr[i]
            <> hi = ptr[i + 1]
            x[i] = x[i] + g[r]
            """,
            [lk.GlobalArg("g", shape="n + 2"), ...],
            dtypes={"g, x": "float64", "ptr": "int32"},
            assumptions="n >= 1",
        )
        .assume_increasing("ptr")
        .split_iname("r", 4, inner_tag="ilp")
    )
    assert "if (lo <= r_inner + 4LL * r_outer" in str(ragged.cuda())
    assert not [u for u in prove(ragged).undecided if u.kind == "width"]


@pytest.mark.parametrize(("above", "kinds"), [(2000, set()), (500, {"width"})])
def test_lines_that_never_run_are_not_asked(above: int, kinds: set[str]) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "x[i] = i*i*i",
        dtypes={"x": "int32"},
        assumptions="1 <= n <= 1000",
    )
    source = str(knl.cuda())
    assert "= i * i * i;" in source and prove(knl).ok
    line = next(text for text in source.splitlines() if "= i * i * i;" in text)
    more = source.replace(line, f"{{ if (i > {above}) x[i] = i * i * i * i;\n{line}\n}}")
    found = prove_source(knl, more)
    assert {u.kind for u in found.undecided if "overflow" in u.what} == kinds, str(found)


def test_sets_say_how_large_names_may_be() -> None:
    """In front of the cut, 2*j is less than a size: neither bound of the loop says so alone."""
    peeled = lk.make_kernel(
        ["{ [i]: 0 <= i < m }", "{ [j]: 0 <= j and j + i < n }"],
        "u[i] = u[2*j + 1] + d[2*i, j] + j",
        dtypes={"d": "uint8", "u": "uint16"},
    ).peel_iname("j", at="i + 1")
    source = peeled.cuda()
    assert prove_source(peeled, source).ok
    assert source.count("+ j_first;") == source.count("(unsigned)") == 1
    for old, new in (("(unsigned)", ""), ("+ j_first;", "+ (j_first + j_first + j_first);")):
        found = prove_source(peeled, source.replace(old, new))
        assert "width" in {f.kind for f in (*found.findings, *found.undecided)}, found
