"""Pictures of requests to memory against threads and addresses that plain Python works out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import Label

import loopkit as lk


def copy(dtype: str, row: str, column: str, block: tuple[int, int], pad: int = 0) -> lk.Kernel:
    """Block (x, y) of threads (x, y); thread x reads along ``column``, thread y along ``row``."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"out[i, j] = a[{row}, {column}]",
        [lk.GlobalArg("a", dtype, shape=f"3*n + 3*m, 3*n + 3*m + {pad}"), ...],
        name="some",
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", block[1], outer_tag="g.1", inner_tag="l.1")
    return knl.split_iname("j", block[0], outer_tag="g.0", inner_tag="l.0")


SUBSCRIPTS = {
    ("i", "j"): lambda i, j: (i, j),
    ("j", "i"): lambda i, j: (j, i),
    ("i", "2*j"): lambda i, j: (i, 2 * j),
    ("i", "j + 1"): lambda i, j: (i, j + 1),
    ("i", "0"): lambda i, j: (i, 0),
    ("j // 4", "j % 4 + i"): lambda i, j: (j // 4, j % 4 + i),
}


@given(
    dtype=st.sampled_from(["int8", "float16", "float32", "float64", "complex128"]),
    subscripts=st.sampled_from(sorted(SUBSCRIPTS)),
    block=st.sampled_from([(32, 1), (16, 4), (8, 8), (24, 2)]),
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    warp=st.sampled_from([0, 1, None]),
    pad=st.integers(0, 3),
)
@settings(max_examples=20, deadline=None)
def test_threads_elements_and_sectors(
    dtype: str,
    subscripts: tuple[str, str],
    block: tuple[int, int],
    n: int,
    m: int,
    warp: int | None,
    pad: int,
) -> None:
    knl = copy(dtype, *subscripts, block, pad)
    width, high = block
    at = (n - 1) // high, (m - 1) // width  # the last block: one that may not be full
    expected = []
    for thread in range(width * high):
        y, x = divmod(thread, width)
        i, j = at[0] * high + y, at[1] * width + x
        if i < n and j < m and warp in (None, thread // 32):
            expected.append((thread, (x, y, 0), SUBSCRIPTS[subscripts](i, j)))
    if warp is not None and warp >= -(-width * high // 32):
        with pytest.raises(lk.InvalidArgumentError, match="there is no warp"):
            knl.plot_access("a", n=n, m=m, warp=warp)
        return
    if not expected:
        with pytest.raises(lk.InvalidArgumentError, match="no thread"):
            knl.plot_access("a", n=n, m=m, block=at[::-1], warp=warp)
        return
    picture = knl.plot_access("a", n=n, m=m, block=at[::-1], warp=warp)
    found = [(t.thread, t.index, t.cell) for t in picture.request.touches]
    assert found == expected
    size = lk_size(dtype)
    row = 3 * n + 3 * m + pad
    address = {thread: (r * row + c) * size for thread, _, (r, c) in expected}
    assert {t.thread: t.address for t in picture.request.touches} == address
    sectors: dict[int, set[int]] = {}
    for thread, byte in address.items():
        sectors.setdefault(thread // 32, set()).add(byte // 32)
    assert {w: set(s) for w, s in picture.sectors} == sectors
    assert picture.elements == len({(thread // 32, byte) for thread, byte in address.items()})
    (grid,) = picture.figure().grids
    filled = [cell for cell in grid.cells if cell.fill]
    assert len(filled) == len(set(address.values()))
    assert len(grid.outlines) == len(set().union(*sectors.values()))
    assert len(grid.cells) == len(grid.outlines) * 32 // size
    named = {cell.title.partition(":")[0] for cell in filled}
    assert named == {f"a[{r}, {c}]" for _, _, (r, c) in expected}


def lk_size(dtype: str) -> int:
    return {"int8": 1, "float16": 2, "float32": 4, "float64": 8, "complex128": 16}[dtype]


@given(
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    tile=st.sampled_from([(8, 8), (16, 16), (32, 4), (4, 16)]),
    pad=st.integers(0, 1),
    turned=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_banks_and_wavefronts(dtype: str, tile: tuple[int, int], pad: int, turned: bool) -> None:
    rows, columns = tile
    first, second = ("l.0", "l.1") if turned else ("l.1", "l.0")
    knl = (
        lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < n }",
            "out[i, j] = a[i, j]",
            dtypes={"a": dtype},
            assumptions="n >= 64",
        )
        .split_iname("i", rows, outer_tag="g.1", inner_tag=first)
        .split_iname("j", columns, outer_tag="g.0", inner_tag=second)
        .add_prefetch("a", ["i_inner", "j_inner"], default_tag="l.auto")
    )
    if pad:
        knl = knl.pad_temporary("a_s", 1)
    picture = knl.plot_banks("a_s", "insn", n=64)
    size = lk_size(dtype)
    words: dict[int, dict[int, set[int]]] = {}
    turns = max(size // 4, 1)
    for thread in range(min(32, rows * columns)):
        high, low = divmod(thread, rows if turned else columns)
        i, j = (low, high) if turned else (high, low)
        byte = (i * (columns + pad) + j) * size
        for word in {(byte + b) // 4 for b in range(size)}:
            words.setdefault(thread // (32 // turns), {}).setdefault(word % 32, set()).add(word)
    assert {(w.turn, w.bank, w.word) for w in picture.words} == {
        (turn, bank, word)
        for turn, banks in words.items()
        for bank in banks
        for word in banks[bank]
    }
    assert picture.wavefronts == sum(max(map(len, banks.values())) for banks in words.values())
    for turn, banks in words.items():
        for bank, mine in banks.items():
            found = [w for w in picture.words if (w.turn, w.bank) == (turn, bank)]
            assert sorted(w.wavefront for w in found) == list(range(len(mine)))
    feet = [grid.column_feet for grid in picture.figure().grids]
    assert feet == [
        tuple(str(len(banks.get(b, ())) or "") for b in range(32))
        for _, banks in sorted(words.items())
    ]


def test_pictures_and_costs_agree() -> None:
    """What the pictures of all requests show is what the costs sum up."""
    knl = copy("float32", "j", "i", (16, 4))
    (counts,) = [a.counts for a in knl.costs(n=8, m=32).accesses if a.array == "a"]
    sectors = 0
    for x in range(2):
        for y in range(2):
            picture = knl.plot_access("a", n=8, m=32, block=(x, y), warp=None)
            sectors += sum(len(s) for _, s in picture.sectors)
    assert counts is not None and sectors == counts.pieces


def test_one_of_several_accesses_is_chosen_by_its_text() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[i] = a[i] + a[i + 2]", dtypes={"a": "float32"}
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    second = knl.plot_access("a", n=64, access="a[32*i_outer+i_inner+2]")
    assert second == knl.plot_access("a", n=64, access=1)
    assert [t.cell for t in second.request.touches] == [(i + 2,) for i in range(32)]
    assert "Other accesses: a[32*i_outer + i_inner]" in str(second)
    for wrong in ("a[i]", 2, -1, True):
        with pytest.raises(lk.LoopkitError):
            knl.plot_access("a", n=64, access=wrong)


def test_without_a_choice_it_is_an_access_that_some_thread_makes() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            if i >= 2000
                b[i] = a[i] {id=never}
            end
            c[i] = a[i + 1] {id=always}
        end
        """,
        [lk.GlobalArg("a", "float32", shape="n + 1"), ...],
        assumptions="n >= 1",
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    picture = knl.plot_access("a", n=100)
    assert picture.request.statement == "always"
    assert knl.plot_access("a", n=4000, at={"i_outer": 63}).request.statement == "never"
    with pytest.raises(lk.InvalidArgumentError, match="no thread of warp 0 makes the access"):
        knl.plot_access("a", "never", n=100)
    with pytest.raises(lk.UnknownNameError, match="there is no iname 'z'"):
        knl.plot_access("a", n=100, at={"z": 1})


def test_what_has_no_such_picture_says_so() -> None:
    knl = copy("float32", "i", "j", (8, 8))
    with pytest.raises(lk.InvalidArgumentError, match="has no banks"):
        knl.plot_banks("a", n=4, m=4)
    with pytest.raises(lk.UnknownNameError, match="there is no array 'z'"):
        knl.plot_access("z", n=4, m=4)
    with pytest.raises(lk.UnknownNameError, match="there is no statement 'z'"):
        knl.plot_access("a", "z", n=4, m=4)
    with pytest.raises(lk.InvalidArgumentError, match="plot_access needs the sizes n"):
        knl.plot_access("a", m=4)
    with pytest.raises(lk.InvalidArgumentError, match="no thread of warp 1 makes the access"):
        knl.plot_access("a", n=4, m=4, warp=1)
    with pytest.raises(lk.InvalidArgumentError, match="no thread of warp 0 makes the access"):
        knl.plot_access("a", n=4, m=4, block=(5, 0))
    gather = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[x[i]]",
        [lk.GlobalArg("a", "float32", shape="n"), ...],
        dtypes={"x": "int32"},
    )
    with pytest.raises(lk.InvalidArgumentError, match="data decide"):
        gather.plot_access("a", n=4)


def test_a_name_and_its_value_stand_in_one_line() -> None:
    """However long a name is, a line of the picture ends behind a value."""
    for letters in range(18, 30):
        size = "n" * letters
        knl = lk.make_kernel(
            f"{{ [row, column]: 0 <= row < height and 0 <= column < {size} }}",
            "turned[column, row] = a[row, column]",
            dtypes={"a": "float32"},
        )
        cut = knl.split_iname("row", 8, outer_tag="g.1", inner_tag="l.1")
        cut = cut.split_iname("column", 32, outer_tag="g.0", inner_tag="l.0")
        marks = cut.plot_access("a", **{"height": 64, size: 64}).scene().marks
        said = [mark.text for mark in marks if isinstance(mark, Label)]
        first = next(n for n, text in enumerate(said) if text.startswith("height = "))
        assert said[first].endswith(",") and said[first + 1].endswith(" = 0")
