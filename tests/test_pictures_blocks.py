"""Footprints and loops of one block, against plain Python that runs all blocks."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopkit as lk

Cell = tuple[int, ...]


@given(
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    tile=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    offsets=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4, unique=True
    ),
    data=st.data(),
)
@settings(max_examples=15, deadline=None)
def test_footprints_and_halos(
    n: int,
    m: int,
    tile: tuple[int, int],
    offsets: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    terms = " + ".join(f"u[i + {a}, j + {b}]" for a, b in offsets)
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"v[i, j] = {terms}",
        [lk.GlobalArg("u", "float32", shape="n + 2, m + 2"), ...],
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", tile[0], outer_tag="g.1", inner_tag="l.1")
    knl = knl.split_iname("j", tile[1], outer_tag="g.0", inner_tag="l.0")
    y, x = (
        data.draw(st.integers(0, (size - 1) // step))
        for size, step in zip((n, m), tile, strict=True)
    )
    picture = knl.plot_footprint("u", n=n, m=m, block=(x, y))
    counts: dict[tuple[int, int], Counter[Cell]] = {}
    for i, j in product(range(n), range(m)):
        mine = counts.setdefault((j // tile[1], i // tile[0]), Counter())
        mine.update((i + a, j + b) for a, b in offsets)
    mine = counts.pop((x, y))
    others = set().union(*counts.values()) if counts else set()
    assert {c.index: c.reads for c in picture.cells} == mine
    assert {c.index for c in picture.halo} == others & mine.keys()
    assert not any(c.writes for c in picture.cells)
    written = knl.plot_footprint("v", n=n, m=m, block=(x, y))
    assert {c.index: c.writes for c in written.cells} == {
        (i, j): 1 for i, j in product(range(n), range(m)) if (j // tile[1], i // tile[0]) == (x, y)
    }
    assert not written.halo
    drawn = [cell for grid in picture.figure().grids for cell in grid.cells]
    assert len(drawn) == len(picture.cells)


def product_of(n: int = 4) -> lk.Kernel:
    return (
        lk.make_kernel(
            "{ [i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k < l }",
            "c[i, j] = sum(k, a[i, k] * b[k, j])",
            dtypes={"a, b": "float32"},
            assumptions="n, l >= 1",
            name="product",
        )
        .split_iname("i", n, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", n, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", n)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def test_a_footprint_of_iterations() -> None:
    knl = product_of()
    picture = knl.plot_footprint("a", n=8, l=12, block=(1, 0), at={"k_outer": 2})
    assert {c.index for c in picture.cells} == set(product(range(4), range(8, 12)))
    assert picture.halo == picture.cells  # of the block beside it
    assert knl.plot_footprint("a", n=8, l=12, at={"k_outer": 2}).halo == ()
    whole = knl.plot_footprint("a", n=8, l=12)
    assert {(c.index, c.reads) for c in whole.cells} == {
        ((i, k), 2) for i, k in product(range(8), range(12))
    }


@given(n=st.integers(1, 9), l=st.integers(1, 19), x=st.integers(0, 2), y=st.integers(0, 2))
@settings(max_examples=12, deadline=None)
def test_the_events_of_a_loop(n: int, l: int, x: int, y: int) -> None:
    x, y = min(x, (n - 1) // 4), min(y, (n - 1) // 4)
    knl = product_of()
    picture = knl.plot_loop("k_outer", n=n, l=l, block=(x, y), iterations=3)
    rows = min(4, n - 4 * y)
    columns = min(4, n - 4 * x)
    blocks = -(-l // 4)
    assert picture.iterations == blocks
    found = [(e.iteration, dict(e.statements), len(e.barriers)) for e in picture.events]
    expected: list[tuple[int | None, dict[str, int], int]] = [
        (None, {"insn_init": rows * columns}, 0)
    ]
    for k in range(min(blocks, 3)):
        width = min(4, l - 4 * k)
        expected += [
            (k, {"fetch_a": rows * width}, 0),
            (k, {"fetch_b": width * columns}, 0),
            (k, {}, 1),
            (k, {"insn_update": rows * columns * width}, 0),
            (k, {}, 1),
        ]
    if blocks <= 3:
        expected.append((None, {"insn": rows * columns}, 0))
    assert found == expected
    lives = {(life.array, life.written): (life.read, life.cells) for life in picture.lives}
    for k in range(min(blocks, 3)):
        width = min(4, l - 4 * k)
        assert lives.pop(("a_s", 1 + 5 * k)) == (4 + 5 * k, rows * width)
        assert lives.pop(("b_s", 2 + 5 * k)) == (4 + 5 * k, width * columns)
    assert not lives


def two_stages() -> lk.Kernel:
    return lk.make_kernel(
        "{ [k, i]: 0 <= k < n and 0 <= i < 32 }",
        """
        for k
            t[k % 2, i] = a[k, i] {id=load}
            if k >= 1
                b[k, i] = t[(k + 1) % 2, 31 - i] {id=work}
            end
        end
        """,
        [lk.TemporaryVariable("t", "float32", shape=(2, 32), address_space="local"), ...],
        dtypes={"a": "float32"},
        assumptions="n >= 1",
        name="two_stages",
    ).tag_inames("i:l.0")


def test_two_buffers_are_alive_at_once() -> None:
    picture = two_stages().plot_loop("k", n=9, iterations=4)
    works = {e.iteration: n for n, e in enumerate(picture.events) if ("work", 32) in e.statements}
    loads = {e.iteration: n for n, e in enumerate(picture.events) if ("load", 32) in e.statements}
    assert sorted(works) == [1, 2, 3] and sorted(loads) == [0, 1, 2, 3]
    lives = {life.written: life for life in picture.lives}
    for k in range(3):
        assert lives[loads[k]].read == works[k + 1]
    assert lives[loads[3]].read >= len(picture.events)
    grid = picture.figure().grids[0]
    assert grid.rows == ("load", "work", "t", "t")
    spans = [cell for cell in grid.cells if cell.fill == "shared"]
    assert {cell.row for cell in spans} == {2, 3}
    for row in (2, 3):
        mine = sorted((c.column, c.column + c.span) for c in spans if c.row == row)
        assert all(a[1] <= b[0] for a, b in pairwise(mine))


def test_a_bar_reaches_to_the_last_of_several_reads() -> None:
    knl = lk.make_kernel(
        "{ [k, i, j, l]: 0 <= k < n and 0 <= i, j, l < 32 }",
        """
        for k
            for i
                t[i] = a[k, i] {id=load}
            end
            for j
                b[k, j] = t[31 - j] {id=first}
            end
            for l
                c[k, l] = t[(l + 1) % 32] {id=second}
            end
        end
        """,
        [lk.TemporaryVariable("t", "float32", shape=(32,), address_space="local"), ...],
        dtypes={"a": "float32"},
        assumptions="n >= 1",
    ).tag_inames("i:l.0,j:l.0,l:l.0")
    picture = knl.plot_loop("k", n=3)
    at = {(e.iteration, s): n for n, e in enumerate(picture.events) for s, _ in e.statements}
    assert [(life.written, life.read, life.cells) for life in picture.lives] == [
        (at[k, "load"], at[k, "second"], 32) for k in range(3)
    ]


def test_bad_input_is_refused() -> None:
    knl = product_of()
    with pytest.raises(lk.InvalidArgumentError, match=r"'i_inner' is no loop: it is tagged l\.1"):
        knl.plot_loop("i_inner", n=4, l=4)
    with pytest.raises(lk.UnknownNameError, match="there is no iname 'z'"):
        knl.plot_loop("z", n=4, l=4)
    with pytest.raises(lk.InvalidArgumentError, match="plot_loop needs the sizes n, l"):
        knl.plot_loop("k_outer")
    with pytest.raises(lk.InvalidArgumentError, match="between 1 and 64"):
        knl.plot_loop("k_outer", n=4, l=4, iterations=0)
    with pytest.raises(lk.InvalidArgumentError, match="up to three indices"):
        knl.plot_footprint("a", n=4, l=4, block=(0, 0, 0, 0))
    with pytest.raises(lk.UnknownNameError, match="there is no iname 'q'"):
        knl.plot_footprint("a", n=4, l=4, at={"q": 1})
    with pytest.raises(lk.InvalidArgumentError, match="block=\\(0, 0\\)"):
        knl.plot_footprint("a", n=400, l=400)
    with pytest.raises(lk.InvalidArgumentError, match="no statement accesses 'acc' by subscripts"):
        knl.plot_footprint("acc", n=4, l=4)
    gather = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[x[i]]",
        [lk.GlobalArg("a", "float32", shape="n"), ...],
        dtypes={"x": "int32"},
    )
    with pytest.raises(lk.InvalidArgumentError, match="data decide"):
        gather.plot_footprint("a", n=4)
