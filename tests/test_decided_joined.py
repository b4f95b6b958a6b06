"""Loops of sizes that are joined, and what becomes of them: decided, and wrong with numbers."""

import itertools

import numpy as np
import pytest

import loopkit as lk

SIZES = [(1, 1), (2, 3), (5, 4), (7, 19), (33, 2)]


def plane(text="b[i, j] = 2*a[i, j]", low=0, **options):
    return lk.make_kernel(
        f"{{ [i, j]: {low} <= i < n and 0 <= j < m }}",
        text,
        [lk.GlobalArg("a", "float32", "n, m"), ...],
        assumptions="n, m >= 1",
        **options,
    )


def check(text, knl):
    assert knl.prove().ok
    for n, m in SIZES:
        a = np.random.default_rng(n).random((n, m), np.float32)
        want = text.executor("reference")(a=a, n=n, m=m)
        for order in ("ascending", "descending", "random"):
            got = knl.executor("host", order=order, seed=1)(a=a, n=n, m=m)
            for mine, its in zip(
                *(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True
            ):
                np.testing.assert_array_equal(mine, its)


STEPS = {
    "chunk": lambda k: k.chunk_iname("q", 5),
    "block": lambda k: k.tag_inames("q_outer: g.0"),
    "split": lambda k: k.split_iname("q_inner", 32),
    "thread": lambda k: k.tag_inames("q_inner_inner: l.0"),
}
ORDERS = [
    order
    for order in itertools.permutations(STEPS)
    if order[0] == "chunk" and order.index("split") < order.index("thread")
]


@pytest.mark.host
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize(
    "text",
    [
        "b[i, j] = 2*a[i, j]",
        "for i, j\n <> t = 2*a[i, j]\n b[i, j] = t + a[i, j]\n c[j, i] = t\nend",
        "b[i*m + j] = 2*a[i, j]",
    ],
    ids=["one", "two", "flat"],
)
def test_a_joined_loop_in_chunks(text, order):
    flat = [lk.GlobalArg("a", "float32", "n, m"), lk.GlobalArg("b", "float32", "n*m"), ...]
    plain = (
        lk.make_kernel("{ [i, j]: 0 <= i < n and 0 <= j < m }", text, flat, assumptions="n, m >= 1")
        if "*m" in text
        else plane(text)
    )
    knl = plain.join_inames("i, j", "q")
    for step in order:
        knl = STEPS[step](knl)
    check(plain, knl)


@pytest.mark.parametrize("tags", [("i: g.1",), ("i: g.1", "late")])
def test_beside_a_block_axis(tags):
    knl = lk.make_kernel(
        "{ [i, j, l]: 0 <= i < n and 0 <= j < m and 0 <= l < p }",
        "b[i, j, l] = 2*a[i, j, l]",
        dtypes={"a": "float32"},
        assumptions="n, m, p >= 1",
    )
    first, *late = tags
    knl = knl if late else knl.tag_inames(first)
    knl = knl.join_inames("j, l", "q").chunk_iname("q", 5, outer_tag="g.0")
    knl = knl.tag_inames(first) if late else knl
    assert knl.prove().ok


def test_three_joined():
    knl = lk.make_kernel(
        "{ [i, j, l]: 0 <= i < n and 0 <= j < m and 0 <= l < p }",
        "b[i, j, l] = 2*a[i, j, l]",
        dtypes={"a": "float32"},
        assumptions="n, m, p >= 1",
    )
    assert knl.join_inames("i, j, l", "q").chunk_iname("q", 5, outer_tag="g.0").prove().ok
    twice = knl.join_inames("j, l", "r").join_inames("i, r", "q")
    assert twice.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0").prove().ok


@pytest.mark.host
def test_sizes_that_come_later():
    """Numbers for sizes change nothing, whatever was made of the loops before."""
    plain = plane()
    knl = plain.join_inames("i, j", "q").chunk_iname("q", 5)
    for n, m in ((5, 6), (2, 3), (7, 4)):
        for one in (
            knl.fix_parameters(n=n, m=m).tag_inames("q_outer: g.0"),
            knl.tag_inames("q_outer: g.0").fix_parameters(n=n, m=m),
        ):
            a = np.random.default_rng(n).random((n, m), np.float32)
            np.testing.assert_array_equal(one.executor("host")(a=a), 2 * a)
            assert one.prove().ok


def test_rows_and_columns_of_flat_arrays_are_one_count():
    data = [lk.GlobalArg(name, "float32", "n*m") for name in "ab"]
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i*m + j] = 2*a[m*i + j] {id=s}",
        [*data, ...],
        assumptions="n, m >= 1",
    ).join_inames("i, j", "q")
    assert "b[q] = 2*a[q]" in str(knl)
    assert knl.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0").prove().ok


@pytest.mark.parametrize("shape", ["n*m", "n*n", "n*m + 1", "n + n*m"])
def test_as_many_as_a_product(shape):
    """An index below ``n`` lies in an array of ``n*m``, where ``m`` is above zero."""
    knl = lk.make_kernel(
        "{ [q]: 0 <= q < n }",
        "b[q] = 2*a[q]",
        [lk.GlobalArg("a", "float32", shape), lk.GlobalArg("b", "float32", "n*m"), ...],
        assumptions="n, m >= 1",
    )
    proof = knl.split_iname("q", 64, outer_tag="g.0", inner_tag="l.0").prove()
    assert proof.ok and "if the data" not in str(proof)


WRONG = {
    "one cell a row": ("a[i, 0] = b[i, j]", 0),
    "the row above": ("a[i, j] = a[i - 1, j]", 1),
    "the cell before": ("a[i, j] = a[i, j - 1] if j > 0 else 1", 0),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "schedule",
    [
        lambda k: k.split_iname("q", 2, outer_tag="g.0"),
        lambda k: k.split_iname("q", 64).tag_inames("q_outer: g.0"),
        lambda k: k.chunk_iname("q", 5, outer_tag="g.0"),
        lambda k: k.chunk_iname("q", 5).tag_inames("q_outer: g.0"),
        lambda k: k.tag_inames("q: g.0"),
    ],
    ids=["split", "late tag", "chunk", "chunk, late tag", "tag"],
)
def test_what_is_wrong_has_numbers(wrong, schedule):
    """Where sets do not tell cells apart, the case that is shown is one of numbers, and real."""
    text, low = WRONG[wrong]
    joined = lk.make_kernel(
        f"{{ [i, j]: {low} <= i < n and 0 <= j < m }}",
        text,
        [lk.GlobalArg(name, "float32", "n, m") for name in "ab" if f"{name}[" in text] + [...],
        assumptions="n, m >= 1",
    ).join_inames("i, j", "q")
    with pytest.raises(lk.IllegalTransformError) as refused:
        schedule(joined)
    numbers = refused.value.witness.parameters
    product = (numbers["n"] - low) * numbers["m"]
    assert numbers.get("n_m", product) == product
    sizes = {name: numbers[name] for name in "nm"}
    with pytest.raises(lk.IllegalTransformError):
        schedule(joined.fix_parameters(**sizes))


def test_what_data_decide_stays_open():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "a[p[i], j] = b[i, j]",
        [lk.GlobalArg("a", "float32", "n, m"), ...],
        dtypes={"b": "float32", "p": "int32"},
        assumptions="n, m >= 1",
    ).join_inames("i, j", "q")
    with pytest.raises(lk.UndecidedError):
        knl.split_iname("q", 64, outer_tag="g.0")


@pytest.mark.parametrize(
    "cell", ["q // m, q % 2", "q // 2, q % m", "q // m, 2*q % m", "q % m, q % m"]
)
def test_rows_and_columns_of_other_counts(cell):
    """A row and a column that do not count alike are not one count."""
    knl = lk.make_kernel(
        "{ [q]: 0 <= q < n }",
        f"b[{cell}] = a[q]",
        [lk.GlobalArg("a", "float32", "n"), lk.GlobalArg("b", "float32", "n + 9, n + m + 2"), ...],
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.RaceError):
        knl.tag_inames("q: g.0")
    legal = lk.make_kernel(
        "{ [q]: 0 <= q < n }",
        "b[q // m, q % m] = a[q]",
        [lk.GlobalArg("a", "float32", "n"), lk.GlobalArg("b", "float32", "n, m"), ...],
        assumptions="n, m >= 1",
    )
    assert legal.tag_inames("q: g.0").history[-1].verdict == "proven"


def test_copies_behind_a_join_of_sizes():
    """Quotients by a size are terms like others: what has a length is copied, the rest refused."""
    joined = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = a[i, j + 1]",
        [lk.GlobalArg("a", "int32", shape="n, m + 1"), lk.GlobalArg("b", "int32"), ...],
        assumptions="n, m >= 0",
    ).join_inames("i, j", "w")
    knl = joined.split_iname("w", 32).add_prefetch("a", "w_inner", default_tag=None)
    for n, m in itertools.product((0, 1, 5), (1, 7, 33)):
        a = np.arange(n * (m + 1), dtype="int32").reshape(n, m + 1)
        np.testing.assert_array_equal(knl.executor("host")(a=a, n=n, m=m), a[:, 1:])
    rule = lk.make_kernel(
        "{ [e, b]: 0 <= e < n and 0 <= b < m }",
        "f(x) := u[x] + 1\no[e, b] = f(e) + f(e + 1)",
        dtypes={"u, o": "int32"},
        assumptions="n, m >= 0",
    ).join_inames("e, b", "w")
    with pytest.raises(lk.IllegalTransformError, match="no footprint of constant size"):
        rule.precompute("f", "w", default_tag=None)
    triangle = lk.make_kernel(
        "{ [i, j]: 0 <= j <= i < n }",
        "b[i*(i + 1)//2 + j] = a[i*(i + 1)//2 + j] + 1",
        [lk.GlobalArg("a, b", "int32", shape="n*(n + 1)//2 + 1"), ...],
        assumptions="n >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="no footprint of constant size"):
        triangle.peel_iname("j", last=3).add_prefetch("a", "j, j_last")


JOINED_TILES = [("g", "jb", "r"), ("g", "r", "jb"), ("jb", "g", "r")]


@pytest.mark.share(2)
@pytest.mark.host
@pytest.mark.parametrize("late", [False, True], ids=["blocks first", "blocks last"])
@pytest.mark.parametrize("tiles", JOINED_TILES, ids="-".join)
def test_copies_of_joined_tiles(tiles, late):
    """Copies for tiles that a joined loop counts have the axes of their arrays, named as asked."""
    text = lk.make_kernel(
        "{ [g, r, i, jb, j, k]: 0 <= g < groups and 0 <= r < 2 and 0 <= i < 8 and "
        "0 <= jb < columns and 0 <= j < 4 and 0 <= k < 4*steps }",
        "c[16*g + 8*r + i, 4*jb + j] = sum(k, a[16*g + 8*r + i, k]*b[4*jb + j, k])",
        dtypes={"a, b, c": "float32"},
        assumptions="groups, columns, steps >= 1",
    )
    knl = text.split_iname("k", 4).prioritize_loops([*tiles, "k_outer", "i", "j", "k_inner"])
    knl = knl.join_inames(tiles, "tile").tag_inames("i: l.1, j: l.0")
    if not late:
        knl = knl.split_iname("tile", 6, inner_tag="g.0")
    for array, row in (("a", "i"), ("b", "j")):
        names = [f"{array}_row", f"{array}_column"]
        knl = knl.add_prefetch(array, [row, "k_inner"], dim_arg_names=names)
    if late:
        knl = knl.split_iname("tile", 6, inner_tag="g.0")
    shapes = {t.name: t.shape for t in knl.temporaries}
    assert (shapes["a_s"], shapes["b_s"]) == ((8, 4), (4, 4))
    assert "acc += a_s[i, k_inner]*b_s[j, k_inner]" in str(knl)
    assert knl.prove().ok
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((48, 12), (20, 12)))
    for order in ("descending", "random"):
        np.testing.assert_array_equal(knl.executor("host", order=order, seed=1)(a=a, b=b), a @ b.T)


TILES = {
    "two": ("i_outer", "j_outer"),
    "swapped": ("j_outer", "i_outer"),
    "three": ("i_outer", "j_outer", "e"),
    "inner first": ("e", "j_outer", "i_outer"),
}


def tiled(assumptions):
    text = lk.make_kernel(
        "{ [e, i, j, k]: 0 <= e < p and 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[e, i, j] = sum(k, a[e, i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions=assumptions,
    )
    return text.split_iname("i", 8).split_iname("j", 4).split_iname("k", 4)


@pytest.mark.share(2)
@pytest.mark.host
@pytest.mark.parametrize(
    "sizes", ["n, m, l, p >= 1", "n % 8 = 0 and m % 4 = 0 and n, m, l, p >= 1"]
)
@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize(
    "blocks",
    [{"inner_tag": "g.0"}, {"outer_tag": "g.0", "inner_tag": "unr"}, None],
    ids=["strided", "runs", "one each"],
)
def test_split_loops_are_tiles(sizes, tiles, blocks):
    """Tiles of split loops are counted by one loop, at ragged edges too."""
    names = TILES[tiles]
    around = [*({"e"} - {*names}), *names]
    knl = tiled(sizes).prioritize_loops([*around, "i_inner", "j_inner", "k_outer", "k_inner"])
    knl = knl.join_inames(names, "tile")
    assert {"i_inner", "j_inner"} <= {*knl.all_inames}
    is_ragged = "%" not in sizes
    assert is_ragged == any(s.predicates for s in knl.statements)
    knl = knl.split_iname("tile", 3, **blocks) if blocks else knl.tag_inames("tile: g.0")
    knl = knl.tag_inames("i_inner: l.1, j_inner: l.0")
    proof = knl.prove()
    assert proof.ok and "if the data" not in str(proof)
    rng = np.random.default_rng(1)
    for n, m in ((8, 4), (24, 20), *(((1, 1), (19, 9)) if is_ragged else ())):
        a = rng.integers(-4, 5, (2, n, 7)).astype("float32")
        b = rng.integers(-4, 5, (7, m)).astype("float32")
        np.testing.assert_array_equal(knl.executor("host", order="random", seed=1)(a=a, b=b), a @ b)


@pytest.mark.share(2)
@pytest.mark.host
@pytest.mark.parametrize("threads", ["first", "last"])
@pytest.mark.parametrize("tiles", TILES)
def test_copies_of_ragged_tiles(tiles, threads):
    """What a tile at the edge has not is not fetched; what is read there was."""
    names = TILES[tiles]
    around = [*({"e"} - {*names}), *names]
    order = [*around, "k_outer", "i_inner", "j_inner", "k_inner"]
    knl = tiled("n, m, l, p >= 1").prioritize_loops(order).join_inames(names, "tile")
    steps = [
        lambda k: k.split_iname("tile", 3, inner_tag="g.0"),
        lambda k: k.tag_inames("i_inner: l.1, j_inner: l.0"),
        lambda k: k.add_prefetch("a", "i_inner, k_inner"),
        lambda k: k.add_prefetch("b", "j_inner, k_inner"),
    ]
    for step in steps if threads == "first" else steps[2:] + steps[:2]:
        knl = step(knl)
    proof = knl.prove()
    assert proof.ok and "if the data" not in str(proof)
    rng = np.random.default_rng(1)
    for n, m in ((8, 4), (1, 1), (19, 9), (24, 6)):
        a = rng.integers(-4, 5, (2, n, 7)).astype("float32")
        b = rng.integers(-4, 5, (7, m)).astype("float32")
        run = knl.executor("host", order="random", seed=1, sanitize=True)
        np.testing.assert_array_equal(run(a=a, b=b), a @ b)


STENCIL = [
    lambda k: k.add_prefetch("a", "i_inner, j_inner", default_tag=None),
    lambda k: k.join_inames("i_outer, j_outer", "tile"),
    lambda k: k.split_iname("tile", 3, inner_tag="g.0"),
]


@pytest.mark.host
@pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (0, 1, 2)], ids=str)
def test_halos_of_ragged_tiles(order):
    """A halo is fetched as far as the array goes, which is more than what is read of it needs."""
    text = lk.make_kernel(
        "{ [i, j]: 1 <= i < n - 1 and 1 <= j < m - 1 }",
        "b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4*a[i, j]",
        [lk.GlobalArg(name, "float32", "n, m") for name in "ab"] + [...],
        assumptions="n, m >= 3",
    )
    knl = text.split_iname("i", 4).split_iname("j", 4)
    knl = knl.prioritize_loops("i_outer, j_outer, i_inner, j_inner")
    for step in order:
        knl = STENCIL[step](knl)
    proof = knl.prove()
    assert proof.ok and "if the data" not in str(proof)
    rng = np.random.default_rng(1)
    for n, m in ((3, 3), (6, 10), (9, 13)):
        data = {name: rng.integers(-4, 5, (n, m)).astype("float32") for name in "ab"}
        want = text.executor("reference")(**{k: v.copy() for k, v in data.items()})
        got = knl.executor("host", order="random", seed=1)(**data)
        np.testing.assert_array_equal(got, want)
    # Quotients of numbers are numbers, of which sets know all.
    fixed = knl.fix_parameters(n=9, m=13)
    assert "//" not in str(fixed) and fixed.prove().ok
