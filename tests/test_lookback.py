"""Scans across blocks in one launch, by blocks that look back at those before them."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import prove_source

import loopkit as lk

LINE = "{ [i]: 0 <= i < n }"
ORDERS = ("ascending", "descending", "random")


def scan(bounds="0 <= j <= i", text="y[i] = sum(j, x[j])", types=None, **more):
    domains = [LINE, f"{{ [j]: {bounds} }}"]
    types = types or {"x, y": "float32"}
    return lk.make_kernel(domains, text, dtypes=types, **{"assumptions": "n >= 0"} | more)


def by_blocks(knl, length, **options):
    knl = knl.realize_reduction(force_scan=True, by="lookback")
    return knl.split_iname("i", length, outer_tag="g.0", inner_tag="l.0", **options)


def numbers(n, dtype=np.float32, low=0, high=9):
    return np.random.default_rng(n).integers(low, high, n).astype(dtype)


def agrees(knl, given_, expected, *, exactly=True):
    """Three orders of threads give what is expected; the program is proven, and so is its text."""
    for order in ORDERS:
        found = knl.executor("host", order=order)(**given_)
        np.testing.assert_allclose(found, expected, rtol=0 if exactly else 1e-5)
    found = knl.executor("reference")(**given_)
    np.testing.assert_allclose(found, expected, rtol=0 if exactly else 1e-5)
    for text in (False, True):
        proof = knl.prove(text=text)
        assert proof.ok, str(proof)


@pytest.mark.parametrize("length", [1, 5, 32, 113, 160])
def test_any_block(length):
    knl = by_blocks(scan(), length)
    for n in (0, 1, length, 2 * length + 3, 40 * length + 1):
        x = numbers(n)
        agrees(knl, {"x": x, "n": n}, x.cumsum())


def test_generated_texts(golden):
    knl = by_blocks(scan(), 256)
    small = by_blocks(scan(types={"x": "int32", "y": "int64"}), 4)
    golden("lookback.txt", "\n".join(f"{k}\n{k.cuda()}" for k in (knl, small)))
    assert "acc_tiles" in knl.cuda() and "acc_prefixes" in small.cuda()
    assert knl.launch_config(n=1000).grid == (4, 1, 1)
    assert "scan acc: running sum over i_outer, i_inner: 256 threads, by shuffles and shared " in (
        str(knl)
    )


@pytest.mark.parametrize(
    ("operation", "dtype", "result", "reference"),
    [
        ("sum", "float64", None, np.add),
        ("sum", "int32", "int64", np.add),
        ("product", "float64", None, np.multiply),
        ("max", "int8", None, np.maximum),
        ("sum", "float16", "float32", np.add),
        ("any", "int32", "bool", np.logical_or),
        ("min", "uint16", None, np.minimum),
        ("sum", "uint32", None, np.add),
        ("max", "float16", None, np.maximum),
        ("sum", "complex64", None, np.add),
    ],
)
def test_operations_and_types(operation, dtype, result, reference):
    types = {"x": dtype, "y": result or dtype}
    knl = by_blocks(scan(text=f"y[i] = {operation}(j, x[j])", types=types), 40)
    low = 0 if operation == "any" else 1
    x = numbers(123, dtype, low, 3)
    agrees(knl, {"x": x}, reference.accumulate(x.astype(result or dtype)))


def test_several_results():
    types = {"x": "float32"}
    knl = by_blocks(scan(text="v[i], k[i] = argmin(j, x[j], j)", types=types), 48)
    x = numbers(500, high=1000)
    for order in ORDERS:
        v, k = knl.executor("host", order=order)(x=x)
        np.testing.assert_array_equal(v, np.minimum.accumulate(x))
        np.testing.assert_array_equal(x[k], v)
    assert knl.prove().ok


@given(st.lists(st.tuples(st.integers(-9, 9), st.booleans()), max_size=150))
@settings(max_examples=10, deadline=None)
def test_segments(pairs):
    x = np.array([value for value, _ in pairs], np.int32)
    flag = np.array([start for _, start in pairs], np.bool_)
    text = "y[i] = reduce(segmented(sum), j, x[j], flag[j])"
    knl = by_blocks(scan(text=text, types={"x": "int32", "y": "int64", "flag": "bool"}), 16)
    expected, total = [], 0
    for value, start in pairs:
        total = value if start else total + value
        expected.append(total)
    agrees(knl, {"x": x, "flag": flag, "n": len(pairs)}, np.array(expected))


def test_exclusive_and_what_stands_in_front():
    types = {"x": "int32", "y": "int64"}
    x = numbers(300, np.int32)
    knl = by_blocks(scan("0 <= j < i + 3 and j < n", types=types), 64)
    whole = x.cumsum()
    agrees(knl, {"x": x}, np.concatenate([whole[2:], whole[-1:], whole[-1:]]))
    given_ = [lk.GlobalArg("x", "int32", shape="n"), ...]
    knl = by_blocks(
        lk.make_kernel([LINE, "{ [j]: 0 <= j < i }"], "y[i] = sum(j, x[j])", given_), 64
    )
    agrees(knl, {"x": x}, whole - x)


def test_items_of_a_thread():
    """A thread scans numbers of its own behind what all threads and blocks before have."""
    knl = lk.make_kernel(
        [
            "{ [t]: 0 <= t and 4*t < n }",
            "{ [u, v]: 0 <= u < t and 0 <= v < 4 }",
            "{ [k]: 0 <= k < 4 and 4*t + k < n }",
            "{ [l]: 0 <= l <= k }",
        ],
        """
        for t
            <> ahead = sum((u, v), x[4*u + v])
            for k
                y[4*t + k] = ahead + sum(l, x[4*t + l])
            end
        end
        """,
        [lk.GlobalArg("x, y", "float32", shape="n"), ...],
        assumptions="n >= 0",
    )
    knl = knl.realize_reduction("writes:ahead", force_scan=True, by="lookback")
    knl = knl.realize_reduction("writes:y", force_scan=True)
    knl = knl.split_iname("t", 32, outer_tag="g.0", inner_tag="l.0")
    for n in (0, 3, 129, 1001):
        x = numbers(n)
        agrees(knl, {"x": x, "n": n}, x.cumsum())


def test_two_scans_of_one_launch():
    types = {"x": "int32", "y, z": "int64"}
    text = """
    <> s = sum(j, x[j]) {id=s}
    y[i] = s
    z[i] = sum(k, x[k] * x[k]) {id=z}
    """
    domains = [LINE, "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k <= i }"]
    knl = by_blocks(lk.make_kernel(domains, text, dtypes=types, assumptions="n >= 0"), 32)
    x = numbers(333, np.int32)
    for order in ORDERS:
        y, z = knl.executor("host", order=order)(x=x)
        np.testing.assert_array_equal(y, x.cumsum())
        np.testing.assert_array_equal(z, (x * x).cumsum())
    assert knl.prove().ok
    assert knl.cuda().count("lk_await(&") == 2
    assert by_blocks(scan(), 32).cuda().count("lk_await_word(&") == 1


def test_two_axes_of_threads_and_any_order_of_steps():
    knl = scan().realize_reduction(force_scan=True, by="lookback").split_iname("i", 64)
    knl = knl.split_iname("i_inner", 8, outer_tag="l.1", inner_tag="l.0")
    knl = knl.tag_inames("i_outer: g.0")
    x = numbers(700)
    agrees(knl, {"x": x}, x.cumsum())
    late = scan().realize_reduction(force_scan=True).split_iname("i", 64, inner_tag="l.0")
    late = late.realize_reduction(by="lookback").tag_inames("i_outer: g.0")
    agrees(late, {"x": x}, x.cumsum())
    assert pickle.loads(pickle.dumps(late)) == late
    assert lk.verify(scan(), late)


def test_one_launch_among_several():
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k < n }"],
        """
        start[i] = sum(j, count[j]) - count[i] {id=scan}
        ... gbarrier
        out[start[k]] = k {if=count[k] > 0}
        """,
        [
            lk.GlobalArg("count", "int32", shape="n"),
            lk.GlobalArg("out", "int32", shape="n"),
            lk.TemporaryVariable("start", "int32", shape="n", address_space=lk.AddressSpace.GLOBAL),
            ...,
        ],
        assumptions="n >= 1",
        name="compact",
    )
    knl = knl.assume_in_bounds("start", 0, "n - 1") if hasattr(knl, "assume_in_bounds") else knl
    knl = by_blocks(knl, 32)
    assert "//   tickets = acc_flags = 0\n" in knl.cuda()
    count = (numbers(100, np.int32) > 4).astype(np.int32)
    for order in ORDERS:
        out = knl.executor("host", order=order)(count=count, out=np.full(100, -1, np.int32))
        np.testing.assert_array_equal(out[: count.sum()], np.flatnonzero(count))


def test_other_sums_stay_as_they_are():
    """What does not run along the loop is combined as it suits the block."""
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k < m }"],
        "y[i] = sum(j, x[j]) * sum(k, z[k])",
        dtypes={"x, y, z": "int64"},
        name="both",
    ).realize_reduction(force_scan=True, by="lookback")
    assert [t.combined_by for t in knl.temporaries] == ["lookback", None]
    assert knl.split_iname("k", 32, inner_tag="l.0").prove().ok


@pytest.mark.parametrize("length", [16, 32])
def test_launches_in_a_loop_and_of_other_scans(length):
    """Each launch finds what all share cleared, and as much of it as any of them has tiles."""
    text = lk.make_kernel(
        [
            "{ [t, i, k]: 0 <= t < m and 0 <= i, k < n }",
            "{ [j]: 0 <= j <= i }",
            "{ [l]: 0 <= l <= k }",
        ],
        """
        for t
            y[i] = sum(j, x[j]) + y[i]
            ... gbarrier
            x[k] = sum(l, y[l])
            ... gbarrier
        end
        """,
        dtypes={"x, y": "int64"},
        assumptions="n >= 1 and m >= 0",
        name="looped",
    )
    knl = text.realize_reduction(force_scan=True, by="lookback")
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    knl = knl.split_iname("k", length, outer_tag="g.1", inner_tag="l.0")
    given = {"m": 3, "x": numbers(100, np.int64), "y": np.zeros(100, np.int64)}
    runs = [("reference", text, {}), *(("host", knl, {"order": order}) for order in ORDERS)]
    expected, *found = (
        made.executor(name, **how)(**{n: np.copy(a) for n, a in given.items()})
        for name, made, how in runs
    )
    for one in found:
        np.testing.assert_array_equal(one, expected)
    assert knl.prove().ok and knl.prove(text=True).ok
    blocks = "{ [t, i]: 0 <= t < m and 0 <= i < n }"
    with pytest.raises(lk.IllegalTransformError, match="other blocks run for each 't'"):
        by_blocks(
            lk.make_kernel(
                [blocks.replace("< n", "<= t"), "{ [j]: 0 <= j <= i }"],
                "for t\n y[i] = sum(j, x[j])\n ... gbarrier\n x[i] = y[i]\nend",
                [lk.GlobalArg("x, y", "int64", shape="m"), ...],
            ),
            32,
        )


def test_called_again_and_bound():
    knl = by_blocks(scan(), 32)
    run = knl.executor("host")
    x = numbers(200)
    bound = run.bind(x=x, y=np.zeros_like(x))
    for _ in range(3):
        np.testing.assert_array_equal(run(x=x), x.cumsum())
        np.testing.assert_array_equal(bound(), x.cumsum())


def test_costs():
    costs = by_blocks(scan(), 256).costs(n=1000)
    (found,) = costs.combinations
    assert (found.times, found.each.published, found.each.looked_at) == (4, 16, 256)
    assert found.each.barriers == 2  # within the scan of the block, and behind the look-back
    assert [b.per_block for b in costs.barriers] == [1, 2]  # all of a block have its ticket


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (
            lambda: scan().realize_reduction(force_scan=True, by="lookback")
            .split_iname("i", 64, outer_tag="g.0"),
            "inside the loop over 'i_inner'",
        ),
        (
            lambda: scan().realize_reduction(force_scan=True)
            .split_iname("i", 64, outer_tag="g.0", inner_tag="l.0"),
            r"nothing orders the two(.|\n)*legal with blocks that look back at those before them: ",
        ),
        (
            lambda: by_blocks(scan(text="if f[0] > 0\n  y[i] = sum(j, x[j])\nend",
                                   types={"x, y": "float32", "f": "int32"},
                                   assumptions="n >= 1"), 32),
            "data decide whether a block comes to it",
        ),
        (
            lambda: by_blocks(lk.make_kernel(
                ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
                "y[r, i] = sum(j, x[r, j])", dtypes={"x, y": "float32"}), 32),
            "inside the loop over 'r', and a scan with look-back",
        ),
        (
            lambda: lk.make_kernel(LINE, "y[0] = sum(i, x[i])", dtypes={"x, y": "float32"})
            .split_iname("i", 64, inner_tag="l.0").realize_reduction(by="lookback"),
            "not running",
        ),
        (
            lambda: by_blocks(scan(text="x[i + 1] = sum(j, x[j])", types={"x": "float32"}), 32),
            "would read",
        ),
        (
            lambda: by_blocks(scan(text="<> s = sum(j, x[j])\ny[i] = s + z[i]\nz[i + 1] = s",
                                   types={"x, y, z": "float32"}), 32),
            "z",
        ),
    ],
)  # fmt: skip
def test_refused(step, says):
    with pytest.raises(lk.LoopkitError, match=says):
        step()


ROWS = ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"]


def rows(domains=None, text="y[r, i] = sum(j, x[r, j])", types=None, **more):
    types = types or {"x, y": "float32"}
    return lk.make_kernel(domains or ROWS, text, dtypes=types, **more)


@pytest.mark.parametrize("length", [1, 5, 32, 113])
def test_rows(length):
    """Each row is scanned for itself, by blocks along an axis of its own."""
    knl = by_blocks(rows().tag_inames("r: g.1"), length)
    for m, n in ((0, 7), (1, 1), (3, 0), (5, length), (7, 3 * length + 2)):
        x = numbers(m * n).reshape(m, n)
        agrees(knl, {"x": x}, x.cumsum(1))


def test_rows_in_any_order_of_axes_and_steps():
    x = numbers(5 * 200).reshape(5, 200)
    turned = rows().split_iname("i", 32, inner_tag="l.0").tag_inames("r: g.0")
    turned = turned.realize_reduction(force_scan=True, by="lookback")
    turned = turned.tag_inames("i_outer: g.1")
    assert "tickets[blockIdx.x]" in turned.cuda()
    agrees(turned, {"x": x}, x.cumsum(1))
    with pytest.raises(
        lk.IllegalTransformError, match="enumerates independent rows, another block axis"
    ):
        by_blocks(rows(), 32)


def test_rows_along_two_axes(golden):
    domains = ["{ [q, r, i]: 0 <= q < l and 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"]
    knl = rows(domains, "y[q, r, i] = sum(j, x[q, r, j])").tag_inames("q: g.2, r: g.0")
    knl = knl.realize_reduction(force_scan=True, by="lookback")
    knl = knl.split_iname("i", 32, outer_tag="g.1", inner_tag="l.0")
    golden("lookback_rows.txt", f"{knl}\n{knl.cuda()}")
    for shape in ((1, 1, 1), (3, 4, 100), (2, 5, 33)):
        x = numbers(int(np.prod(shape))).reshape(shape)
        agrees(knl, {"x": x}, x.cumsum(2))


def test_rows_of_different_lengths():
    """Some rows have blocks that scan nothing, and guards keep whole rows away."""
    domains = [
        "{ [r, i]: 0 <= r < m and 0 <= i <= r }",
        "{ [j]: 0 <= j <= i }",
        "{ [k]: 0 <= k < l }",
    ]
    text = """
    if r >= 2
        y[r, i] = sum(j, x[r, j]) {id=y}
    end
    z[k] = 2 * k
    """
    knl = rows(domains, text, {"x, y": "float32", "z": "int32"}, assumptions="m >= 1 and l >= 1")
    knl = knl.tag_inames("r: g.1, k: g.1")
    knl = by_blocks(knl, 16)
    assert knl.prove().ok
    for m, l in ((1, 9), (50, 3)):
        x = numbers(m * m).reshape(m, m)
        due = np.tril(x.cumsum(1))
        due[:2] = 0
        for order in ORDERS:
            run = knl.executor("host", order=order)
            y, z = run(x=x, y=np.zeros_like(x), l=l)
            np.testing.assert_array_equal(y, due)
            np.testing.assert_array_equal(z, 2 * np.arange(l))


def test_rows_called_again_and_bound():
    knl = by_blocks(rows().tag_inames("r: g.1"), 32)
    run = knl.executor("host")
    x = numbers(600).reshape(4, 150)
    bound = run.bind(x=x, y=np.zeros_like(x))
    for _ in range(3):
        np.testing.assert_array_equal(run(x=x), x.cumsum(1))
        np.testing.assert_array_equal(bound(), x.cumsum(1))


@pytest.mark.parametrize(
    ("knl", "says"),
    [
        (lambda: rows(["{ [r, i]: 0 <= r < 4 and 0 <= i < n }", ROWS[1]]).tag_inames("r: l.1"),
         "a block has several of them, along l.1 .'r'"),
        (lambda: rows().split_iname("r", 4, outer_tag="g.1", inner_tag="l.1"),
         "a block has several of them, along l.1 .'r_inner'"),
    ],
)  # fmt: skip
def test_rows_of_threads(knl, says):
    """A block looks back for one row."""
    with pytest.raises(lk.IllegalTransformError, match=says):
        by_blocks(knl(), 32)


def test_pieces_along_one_axis():
    knl = scan().realize_reduction(force_scan=True, by="lookback")
    knl = knl.split_iname("i", 128).split_iname("i_inner", 32, inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match=r"along g\.0, g\.1"):
        knl.tag_inames("i_outer: g.1, i_inner_outer: g.0")


SPOILED = {
    "a flag of one bit": ("unsigned int const acc_flag =", "bool const acc_flag ="),
    "a flag is overwritten": (
        "            acc_aggregates[tile] = acc;\n",
        "            acc_aggregates[tile] = acc;\n            acc_flags[tile] = acc;\n",
    ),
    "a flag before the value": (
        "            acc_aggregates[tile] = acc;\n            lk_publish(&acc_flags[tile], 1u);\n",
        "            lk_publish(&acc_flags[tile], 1u);\n            acc_aggregates[tile] = acc;\n",
    ),
    "a flag without a fence": ("lk_publish(&acc_flags[tile], 2u);", "acc_flags[tile] = 2u;"),
    "no ticket": ("unsigned int const tile = ticket;", "unsigned int const tile = blockIdx.x;"),
    "an aggregate as a prefix": ("&acc_flags[tile], 1u)", "&acc_flags[tile], 2u)"),
    "the tile before the last": ("(int)tile - 32 - acc_behind", "(int)tile - 33 - acc_behind"),
    "a window too far": ("acc_behind += 32", "acc_behind += 33"),
    "tiles before a prefix": ("(acc_ready >> acc_place) > 1u", "(acc_ready >> acc_place) > 2u"),
    "prefixes for aggregates": (
        "? acc_prefixes[acc_at] : acc_aggregates[acc_at]",
        "? acc_aggregates[acc_at] : acc_prefixes[acc_at]",
    ),
    "another tile's flag": ("lk_publish(&acc_flags[tile], 2u)", "lk_publish(&acc_flags[0], 2u)"),
    "an inclusive prefix ahead": (
        "acc_ahead[0] = acc_earlier;\n                acc_earlier += acc;",
        "acc_earlier += acc;\n                acc_ahead[0] = acc_earlier;",
    ),
    "no barrier": ("__syncthreads();\n        acc += acc_ahead[0];", "acc += acc_ahead[0];"),
    "the wait is not a wait": ("lk_await(&acc_flags[acc_at])", "acc_flags[acc_at]"),
    "never left": ("                if (acc_ready != 0u)\n                    break;\n", ""),
    "a fence less above": ("ld.acquire.gpu", "ld.relaxed.gpu"),
}  # fmt: skip


OF_WORDS = {
    "a word is stored by halves": (
        "lk_publish_word(&acc_tiles[tile], lk_flagged(2u, acc_earlier));",
        "acc_tiles[tile] = lk_flagged(2u, acc_earlier);",
    ),
    "a value without a flag": ("lk_flagged(1u, acc)", "(unsigned long long)acc"),
    "a flag without a value": ("lk_flagged(1u, acc)", "lk_flagged(1u, 0)"),
    "another value": ("lk_flagged(2u, acc_earlier)", "lk_flagged(2u, acc)"),
    "an aggregate as a prefix": ("lk_flagged(1u, acc)", "lk_flagged(2u, acc)"),
    "a prefix as an aggregate": ("lk_flagged(2u, acc_earlier)", "lk_flagged(1u, acc_earlier)"),
    "a value of another type": ("lk_value<float>(acc_word)", "lk_value<int>(acc_word)"),
    "the word as a value": ("lk_value<float>(acc_word)", "(float)acc_word"),
    "the wait is not a wait": ("lk_await_word(&acc_tiles[acc_at])", "acc_tiles[acc_at]"),
    "another tile's word": ("&acc_tiles[tile], lk_flagged(2u", "&acc_tiles[0], lk_flagged(2u"),
    "half of the word": ("unsigned long long const acc_word", "unsigned int const acc_word"),
    "the wrong half": ("(unsigned int)(acc_word >> 32)", "(unsigned int)acc_word"),
    "a bit of the flag": ("(unsigned int)(acc_word >> 32)", "(unsigned int)(acc_word >> 33)"),
    "tiles before a prefix": ("(acc_ready >> acc_place) > 1u", "(acc_ready >> acc_place) > 2u"),
    "a flag of one bit": ("unsigned int const acc_flag =", "bool const acc_flag ="),
    "a word is overwritten": (
        "acc_ahead[0] = acc_earlier;\n",
        "acc_ahead[0] = acc_earlier;\n                acc_tiles[tile] = acc;\n",
    ),
    "a load that is hoisted": ("asm volatile(\"ld.relaxed", "asm(\"ld.relaxed"),
}  # fmt: skip


OF_ROWS = {
    "one counter for all rows": ("&tickets[blockIdx.y]", "&tickets[0]"),
    "the counter of another row": ("&tickets[blockIdx.y]", "&tickets[blockIdx.x]"),
    "rows that overlap": ("(long long)gridDim.x * blockIdx.y", "(long long)gridDim.y * blockIdx.y"),
    "places in 32 bits": ("(long long)gridDim.x * blockIdx.y", "gridDim.x * blockIdx.y"),
    "one row for all": ("(long long)gridDim.x * blockIdx.y", "(long long)gridDim.x * blockIdx.x"),
    "a word of the first row": ("word(&acc_tiles[row + acc_at]", "word(&acc_tiles[acc_at]"),
    "a result of the first row": ("&acc_tiles[row + tile], lk", "&acc_tiles[tile], lk"),
    "the row is a row's place": ("int const r = blockIdx.y;", "int const r = row;"),
    "the grid is a row": ("int const r = blockIdx.y;", "int const r = gridDim.y;"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ROWS)
def test_spoiled_rows(name):
    knl = by_blocks(rows().tag_inames("r: g.1"), 64)
    old, new = OF_ROWS[name]
    source = knl.cuda()
    assert source.count(old) >= 1
    assert not prove_source(knl, source.replace(old, new)).ok


@pytest.mark.parametrize(
    ("dtype", "name"), [("float64", n) for n in SPOILED] + [("float32", n) for n in OF_WORDS]
)
def test_spoiled_texts(dtype, name):
    knl = by_blocks(scan(types={"x, y": dtype}), 64)
    old, new = (SPOILED if dtype == "float64" else OF_WORDS)[name]
    source = knl.cuda()
    assert source.count(old) >= 1
    assert not prove_source(knl, source.replace(old, new)).ok


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_compiled(arch):
    """Flags are stored with release and loaded with acquire; words need neither."""
    texts = ("y[i] = sum(j, x[j])", "y[i] = reduce(segmented(sum), j, x[j], flag[j])")
    for text in texts:
        types = {"x": "int32", "y": "int64"} | ({"flag": "bool"} if "flag" in text else {})
        knl = by_blocks(scan(text=text, types=types), 113)
        assert len(knl.cubin(arch=arch)) > 1000
        ptx = knl.ptx(arch=arch)
        assert ptx.count("st.release.gpu.u32") == 2 and "ld.acquire.gpu.u32" in ptx
        assert re.search(r"atom\.[\w.]*add\.u32", ptx)
        # What other blocks have written is not read as what nobody writes.
        assert "ld.global.nc" not in ptx[ptx.index("ld.acquire.gpu.u32") :]
    for dtype in ("float32", "int8", "bool", "float16", "bfloat16"):
        text = "y[i] = any(j, x[j])" if dtype == "bool" else "y[i] = max(j, x[j])"
        ptx = by_blocks(scan(text=text, types={"x, y": dtype}), 113).ptx(arch=arch)
        assert ptx.count("st.relaxed.gpu.u64") == 2 and "ld.relaxed.gpu.u64" in ptx


@pytest.mark.gpu
@pytest.mark.parametrize("length", [32, 113, 256, 1024])
def test_many_blocks_on_the_gpu(length):
    """More blocks than run at a time, again and again: nobody waits in vain, and none too short."""
    torch = pytest.importorskip("torch")
    knl = by_blocks(scan(types={"x": "int32", "y": "int64"}), length)
    run = knl.executor("cuda")
    for n in (1, length + 1, 1_000_003):
        x = torch.randint(-9, 9, (n,), dtype=torch.int32, device="cuda")
        due = x.cumsum(0)
        y = torch.empty_like(due)
        bound = run.bind(x=x, y=y)
        for _ in range(50):
            assert torch.equal(run(x=x), due)
            y.zero_()
            bound()
            assert torch.equal(y, due)


@pytest.mark.gpu
@pytest.mark.parametrize("tags", ["r: g.1", "r: g.0"])
def test_many_rows_on_the_gpu(tags):
    """More blocks than run at a time, in rows that go on at their own pace."""
    torch = pytest.importorskip("torch")
    knl = rows(types={"x": "int32", "y": "int64"}).tag_inames(tags)
    knl = knl.realize_reduction(force_scan=True, by="lookback")
    axis = "g.0" if tags == "r: g.1" else "g.1"
    run = knl.split_iname("i", 128, outer_tag=axis, inner_tag="l.0").executor("cuda")
    for m, n in ((1, 100_003), (513, 1_001), (3_000, 1)):
        x = torch.randint(-9, 9, (m, n), dtype=torch.int32, device="cuda")
        for _ in range(20):
            assert torch.equal(run(x=x), x.cumsum(1))


@pytest.mark.gpu
def test_other_types_on_the_gpu():
    torch = pytest.importorskip("torch")
    x = torch.rand(300_001, dtype=torch.float64, device="cuda")
    run = by_blocks(scan(types={"x, y": "float64"}), 256).executor("cuda")
    torch.testing.assert_close(run(x=x), x.cumsum(0))
    for dtype in ("float32", "float16", "int32", "int8"):
        few = (x * 100).to(getattr(torch, dtype))
        run = by_blocks(scan(text="y[i] = max(j, x[j])", types={"x, y": dtype}), 256)
        assert torch.equal(run.executor("cuda")(x=few), few.cummax(0).values)
    flag = torch.rand(300_001, device="cuda") < 0.01
    text = "y[i] = reduce(segmented(sum), j, x[j], flag[j])"
    types = {"x": "int32", "y": "int64", "flag": "bool"}
    ones = torch.ones(300_001, dtype=torch.int32, device="cuda")
    found = by_blocks(scan(text=text, types=types), 128).executor("cuda")(x=ones, flag=flag)
    at = torch.arange(300_001, device="cuda")
    first = torch.where(flag, at, 0).cummax(0).values
    torch.testing.assert_close(found, at - first + 1)
    least = by_blocks(scan(text="v[i], k[i] = argmin(j, x[j], j)", types={"x": "float32"}), 256)
    v, k = least.executor("cuda")(x=x.float())
    assert torch.equal(v, x.float().cummin(0).values) and torch.equal(x.float()[k.long()], v)


@pytest.mark.gpu
def test_streams_at_once_on_the_gpu():
    """Calls on several streams have tickets and flags of their own."""
    torch = pytest.importorskip("torch")
    run = by_blocks(scan(types={"x": "int32", "y": "int64"}), 256).executor("cuda")
    x = torch.randint(0, 9, (500_000,), dtype=torch.int32, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    found = []
    for number in range(40):
        with torch.cuda.stream(streams[number % 4]):
            found.append(run(x=x))
    torch.cuda.synchronize()
    due = x.cumsum(0)
    assert all(torch.equal(one, due) for one in found)


@pytest.mark.parametrize("condition", ["n > 5", "i < m", "i % 3 == 0"])
def test_conditions_that_inames_and_sizes_decide(condition):
    """All blocks come by, whatever they have to add."""
    text = f"if {condition}\n  y[i] = sum(j, x[j])\nend"
    arrays = [lk.GlobalArg(name, "float32", shape="n") for name in "xy"]
    knl = lk.make_kernel([LINE, "{ [j]: 0 <= j <= i }"], text, [*arrays, ...])
    given_ = {"x": numbers(100)} | ({"m": 40} if "m" in condition else {})
    where = {"n > 5": np.ones(100, bool), "i < m": np.arange(100) < 40}
    due = np.where(where.get(condition, np.arange(100) % 3 == 0), given_["x"].cumsum(), 0)
    knl = by_blocks(knl, 32)
    for order in ORDERS:
        found = knl.executor("host", order=order)(**given_ | {"y": np.zeros(100, np.float32)})
        np.testing.assert_array_equal(found, due)
    assert knl.prove().ok
