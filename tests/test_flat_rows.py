"""Flat arrays that a kernel itself writes, told apart by rows: buffers, copies, threads, verify."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden
from seams import rows_of, to_text

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
SIZES = ((1, 1, 1), (5, 7, 6), (17, 9, 20))


def product(**more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        """
        for i, j, k
            c[i*m + j] = c[i*m + j] + a[i*l + k]*b[k*m + j]
        end
        """,
        [
            lk.GlobalArg("a", "float32", shape="n*l"),
            lk.GlobalArg("b", "float32", shape="l*m"),
            lk.GlobalArg("c", "float32", shape="n*m"),
            ...,
        ],
        assumptions="n, m, l >= 1",
        name="product",
        **more,
    )


def tiled(knl: lk.Kernel) -> lk.Kernel:
    return (
        knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 8)
    )


def multiplies(knl: lk.Kernel, **fixed: int) -> None:
    generator = np.random.default_rng(0)
    for n, m, l in SIZES:
        m = fixed.get("m", m)
        a, b, c = (generator.random(s, np.float32) for s in (n * l, l * m, n * m))
        due = (c.reshape(n, m) + a.reshape(n, l) @ b.reshape(l, m)).ravel()
        sizes = {"n": n, "m": m, "l": l}
        given = {name: value for name, value in sizes.items() if name not in fixed}
        for order in ORDERS:
            run = knl.executor("host", order=order, seed=1)
            np.testing.assert_allclose(run(a=a, b=b, c=c.copy(), **given), due, rtol=1e-5)


def test_a_flat_array_is_buffered(golden: Golden) -> None:
    knl = tiled(product()).buffer_array("c", ["i_inner", "j_inner"])
    golden("flat_rows_buffer.txt", f"{knl}\n\n{knl.cuda()}")
    assert knl.prove().ok
    assert lk.verify(product(), knl)
    multiplies(knl)


@pytest.mark.parametrize("swept", [["k_inner"], ["i_inner", "j_inner", "k_inner"]])
def test_buffers_of_parts_of_a_tile(swept: list[str]) -> None:
    knl = tiled(product()).buffer_array("c", swept, default_tag="l.auto" if swept[1:] else None)
    assert knl.prove().ok
    multiplies(knl)


def test_buffers_beside_copies_and_in_any_order() -> None:
    one = (
        tiled(product())
        .add_prefetch("a", ["i_inner", "k_inner"])
        .add_prefetch("b", ["k_inner", "j_inner"])
        .buffer_array("c", ["i_inner", "j_inner"])
    )
    two = (
        product()
        .split_iname("i", 8)
        .split_iname("j", 8)
        .split_iname("k", 8)
        .prioritize_loops("i_outer, j_outer, k_outer, i_inner, j_inner, k_inner")
        .buffer_array("c", ["i_inner", "j_inner"], default_tag=None)
    )
    for knl in (one, two):
        assert knl.prove().ok
        multiplies(knl)
        assert lk.replay(product(), knl.history) == knl


def test_lengths_that_have_become_numbers() -> None:
    """The text has rows of m, and the schedule of 7."""
    fixed = product().fix_parameters(m=7)
    knl = (
        fixed.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
        .prioritize_loops("k, j")
        .buffer_array("c", ["j"], default_tag=None)
    )
    assert knl.prove().ok
    multiplies(knl, m=7)


def test_a_row_is_fetched_while_the_next_is_written() -> None:
    text = lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < m }",
        """
        for i, j
            u[i*m + j] = 0.5*u[(i - 1)*m + j] + v[j]    {id=step}
        end
        """,
        [lk.GlobalArg("u", "float32", shape="n*m"), lk.GlobalArg("v", "float32", "m"), ...],
        assumptions="n >= 2 and m >= 1",
        name="rows",
    )
    threads = text.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    fetched = threads.add_prefetch("u", ["j_inner"])
    buffered = threads.split_iname("i", 4).buffer_array("u", ["i_inner", "j_inner"])
    generator = np.random.default_rng(0)
    for knl in (fetched, buffered):
        assert knl.prove().ok
        assert lk.verify(text, knl)
        for n, m in ((2, 1), (5, 16), (9, 37)):
            u, v = generator.random((n, m), np.float32), generator.random(m, np.float32)
            due = u.copy()
            for i in range(1, n):
                due[i] = np.float32(0.5) * due[i - 1] + v
            for order in ORDERS:
                found = knl.executor("host", order=order)(u=u.ravel().copy(), v=v, n=n)
                np.testing.assert_allclose(found, due.ravel(), rtol=1e-6)
    # Rows of the same tile are written and read.
    with pytest.raises((lk.IllegalTransformError, lk.UndecidedError)):
        threads.split_iname("i", 4).add_prefetch("u", ["i_inner", "j_inner"])
    assert lk.verify(text, _changed(text)).answer == "different"


def _changed(knl: lk.Kernel) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < m }",
        "for j, i\n u[i*m + j] = 0.5*u[(n - 1 - i)*m + j] + v[j]\nend",
        [lk.GlobalArg("u", "float32", shape="n*m"), lk.GlobalArg("v", "float32", "m"), ...],
        assumptions="n >= 2 and m >= 1",
    )


def test_rows_in_rows() -> None:
    text = lk.make_kernel(
        "{ [h, i, j]: 0 <= h < q and 0 <= i < n and 0 <= j < m }",
        """
        for h, i, j
            u[(h*n + i)*m + j] = 2*u[(h*n + i)*m + j] + v[h]
        end
        """,
        [lk.GlobalArg("u", "float32", shape="q*n*m"), ...],
        dtypes={"v": "float32"},
        assumptions="q, n, m >= 1",
    )
    knl = (
        text.split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")
        .split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
        .buffer_array("u", ["i_inner", "j_inner"])
    )
    assert knl.prove().ok
    assert lk.verify(text, knl)
    u, v = np.random.default_rng(0).random((3, 5, 9), np.float32), np.arange(3, dtype="f4")
    found = knl.executor("host", order="random")(u=u.ravel().copy(), v=v, n=5, m=9)
    np.testing.assert_allclose(found, (2 * u + v[:, None, None]).ravel(), rtol=1e-6)


def test_reversed_rows_stay_in_their_threads() -> None:
    """Another column of the same row, counted from its end."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < m }",
        """
        for i
            for j
                u[i*m + j] = 2*u[i*m + j] + 1
            end
            for k
                w[i*m + k] = u[i*m + (m - 1 - k)]
            end
        end
        """,
        [lk.GlobalArg("u, w", "float32", shape="n*m"), ...],
        assumptions="n, m >= 1",
    ).split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    u = np.random.default_rng(0).random((11, 5), np.float32)
    for order in ORDERS:
        found = knl.executor("host", order=order)(u=u.ravel().copy(), n=11, m=5)
        np.testing.assert_allclose(found.w.reshape(11, 5), (2 * u + 1)[:, ::-1], rtol=1e-6)


def flat(index: str, domain: str = "0 <= i < n and 0 <= j < m", **more: Any) -> lk.Kernel:
    return lk.make_kernel(
        f"{{ [i, j]: {domain} }}",
        f"for i, j\n u[{index}] = u[{index}] + i\nend",
        [lk.GlobalArg("u", "float32", shape=more.pop("shape", "n*m")), ...],
        owe_bounds=True,
        **more,
    )


@pytest.mark.parametrize(
    ("index", "more", "cells"),
    [
        ("i*m + j", {}, "u[i, j]"),
        ("(i + 1)*m - 1 - j", {}, "u[i, m - j - 1]"),
        ("m*i + m + j", {}, "u[i + 1, j]"),
        ("i*m + j", {"shape": "3*n*m"}, "u[i, j]"),
        ("i*m + j + 1", {}, None),
        ("i*m + 2*j", {}, None),
        ("i*m + j", {"domain": "0 <= i < n and 0 <= j <= m"}, None),
        ("i*m + j", {"domain": "0 <= i < n and -1 <= j < m"}, None),
        ("i*m + j", {"domain": "0 <= i < n and 0 <= j < n"}, None),
        ("i*m + j", {"shape": "n*n"}, None),
        ("i*m + j", {"shape": "q"}, None),
        ("i*i + j", {}, None),
        ("8*i + j", {"domain": "0 <= i < n and 0 <= j < 8"}, None),
    ],
)
def test_what_is_known_to_stay_in_its_row(index: str, more: Any, cells: str | None) -> None:
    knl = flat(index, **more)
    rows = rows_of([knl], "u")
    if cells is None:
        assert rows is None
        return
    assert rows is not None
    told = rows[0].of(knl)
    assert to_text(told.statements[0].lhs) == cells
    assert rows[0].laid_flat(told, knl) == knl
    assert rows_of([knl, flat("i*m + j + 1")], "u") is None


def test_rules_and_assertions_speak_of_flat_arrays() -> None:
    types = {"u": "int32"}
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "f(x) := u[x]\nfor i, j\n u[i*m + j] = f(i*m + j) + 1\nend",
        [lk.GlobalArg("u", shape="n*m"), ...],
        dtypes=types,
    )
    assert rows_of([knl], "u") is None
    assert rows_of([knl.expand_subst()], "u") is not None
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i, j] = x[p[i*m + j]]",
        [lk.GlobalArg("p", "int32", shape="n*m"), lk.GlobalArg("x", shape=9), ...],
        dtypes={"x, y": "float32"},
    )
    assert rows_of([knl], "p") is not None
    assert rows_of([knl.assume_within("p", 0, 9)], "p") is None
