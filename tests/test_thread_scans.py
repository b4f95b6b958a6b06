"""Running reductions whose loop is a thread axis: scans that the threads of a block make."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymbolic.primitives import Comparison, If, Max
from seams import evaluate, prove_source

import loopkit as lk

LINE = "{ [i]: 0 <= i < n }"
ORDERS = ("ascending", "descending", "random")


def scan(bounds="0 <= j <= i", text="y[i] = sum(j, x[j])", types=None, **more):
    domains = [LINE, f"{{ [j]: {bounds} }}"]
    types = types or {"x, y": "float32"}
    return lk.make_kernel(domains, text, dtypes=types, **{"assumptions": "n >= 0"} | more)


def rows(text="y[r, i] = sum(j, x[r, j])", **types):
    domains = ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }"]
    return lk.make_kernel(domains, text, dtypes={"x, y": "float32"} | types, name="rows")


def forced(knl, *args, **options):
    return knl.realize_reduction(*args, force_scan=True, **options)


def by_threads(knl, length, **options):
    return forced(knl, **options).split_iname("i", length, inner_tag="l.0")


def meets(knl, lines):
    """The lines of a nest that say what threads do together."""
    found = [line.strip("- ") for line in str(knl).split("\n") if " ---- " in line]
    assert [line.split(":")[0] for line in found] == lines
    return found


def agrees(knl, given_, expected):
    """Three orders of threads give what is expected; the program is proven."""
    for order in ORDERS:
        found = knl.executor("host", order=order)(**given_)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(knl.executor("reference")(**given_), expected, rtol=1e-5)
    proof = knl.prove()
    assert proof.ok, str(proof)


def numbers(n, dtype=np.float32, low=0, high=9):
    return np.random.default_rng(n).integers(low, high, n).astype(dtype)


@pytest.mark.parametrize(
    ("length", "by"),
    [*((length, None) for length in (1, 5, 32, 113, 160, 1024)), (5, "shared"), (113, "shared")],
)
def test_any_block(length, by):
    knl = by_threads(scan(), length, by=by)
    for n in (0, 1, 2 * length + 3):
        x = numbers(n)
        agrees(knl, {"x": x, "n": n}, x.cumsum())
    meets(knl, ["scan acc", "carry acc"])


def test_texts_and_golden(golden):
    plain = by_threads(scan(), 64)
    warps = forced(rows()).split_iname("r", 4, outer_tag="g.0", inner_tag="l.1")
    warps = warps.split_iname("i", 32, inner_tag="l.0")
    once = forced(scan(assumptions="0 <= n <= 96"), by="shared").tag_inames("i: l.0")
    many = by_threads(scan(), 256)
    texts = [f"{knl}\n{knl.cuda()}" for knl in (plain, warps, once, many)]
    golden("thread_scans.txt", "\n".join(texts))
    for knl in (plain, warps, once, many):
        assert knl.prove(text=True).ok


@pytest.mark.parametrize(
    ("axes", "count", "length", "says"),
    [
        (("l.1", "l.0"), 4, 32, "by shuffles"),
        (("l.1", "l.0"), 3, 8, "by shuffles"),
        (("l.0", "l.1"), 8, 4, "by shuffles"),
        (("l.0", "l.1"), 32, 8, "by shared memory"),
        (("l.1", "l.0"), 2, 64, "by shuffles and shared memory"),
        (("l.1", "l.0"), 2, 160, "by shuffles and shared memory"),
        (("l.1", "l.0"), 2, 48, "by shared memory"),
    ],
)
def test_rows_side_by_side(axes, count, length, says):
    knl = forced(rows()).split_iname("r", count, outer_tag="g.0", inner_tag=axes[0])
    knl = knl.split_iname("i", length, inner_tag=axes[1])
    for n in (0, length, 2 * length + 3):
        x = numbers((count + 1) * n).reshape(count + 1, n)
        agrees(knl, {"x": x}, x.cumsum(1))
    assert meets(knl, ["scan acc", "carry acc"])[0].endswith(f": {length} threads, {says}")


def test_two_axes_and_loops_around():
    knl = forced(rows()).split_iname("i", 64).split_iname("i_inner", 32, inner_tag="l.0")
    knl = knl.tag_inames("i_inner_outer: l.1")
    x = numbers(3 * 150).reshape(3, 150)
    agrees(knl, {"x": x}, x.cumsum(1))
    meets(knl, ["scan acc", "carry acc"])


@pytest.mark.parametrize(
    ("operation", "dtype", "result", "reference"),
    [
        ("sum", "float64", None, np.add),
        ("sum", "int32", "int64", np.add),
        ("product", "float64", None, np.multiply),
        ("max", "int8", None, np.maximum),
        ("min", "float32", None, np.minimum),
        ("sum", "float16", "float32", np.add),
        ("any", "int32", "bool", np.logical_or),
        ("all", "int32", "bool", np.logical_and),
        ("sum", "complex64", None, np.add),
    ],
)
@pytest.mark.parametrize("length", [32, 70])
def test_operations_and_types(operation, dtype, result, reference, length):
    types = {"x": dtype, "y": result or dtype}
    knl = by_threads(scan(text=f"y[i] = {operation}(j, x[j])", types=types), length)
    x = numbers(2 * length + 1, dtype, 0 if operation in ("any", "all") else 1, 3)
    agrees(knl, {"x": x}, reference.accumulate(x.astype(result or dtype)))


def test_an_operation_of_ones_own():
    def either(a, b):
        return a + b - a * b

    operation = lk.register_reduction("either", 0.0, either, either)
    types = {"x, y": "float64"}
    knl = scan(text="y[i] = either(j, x[j])", types=types, reductions=[operation])
    x = numbers(100, np.float64) / 100
    agrees(by_threads(knl, 40), {"x": x}, 1 - np.cumprod(1 - x))


@pytest.mark.parametrize("length", [32, 70])
def test_the_smallest_so_far_and_its_place(length):
    types = {"x, v": "float32", "k": "int32"}
    knl = by_threads(scan(text="v[i], k[i] = argmin(j, x[j], j)", types=types), length)
    x = numbers(150, high=200)[::-1].copy()
    for order in ORDERS:
        v, k = knl.executor("host", order=order)(x=x)
        np.testing.assert_array_equal(v, np.minimum.accumulate(x))
        assert k.tolist() == [int(x[: i + 1].argmin()) for i in range(150)]
    assert knl.prove().ok


@pytest.mark.parametrize(
    "bounds", ["0 <= j < i", "0 <= j <= i + 2", "0 <= j < 2*i", "0 <= j <= 3*i + 1", "2 <= j <= i"]
)
def test_what_each_thread_adds(bounds):
    text = scan(bounds)
    knl = by_threads(text, 32)
    for n in (1, 40, 75):
        size = evaluate(text.arg_by_name["x"].shape[0], {"n": n})
        given_ = {"x": numbers(max(0, int(size))), "n": n}
        agrees(knl, given_, text.executor("reference")(**given_))


# {{{ segmented ones


def segments(operation="sum", left="y[i]", **types):
    text = f"{left} = reduce(segmented({operation}), j, x[j], f[j])"
    return scan(text=text, types={"x, y": "float32", "f": "int32"} | types)


def segment_by_segment(x, f, function):
    found = []
    for value, restarts in zip(x, f, strict=True):
        found.append(value if restarts or not found else function(found[-1], value))
    return np.array(found, x.dtype)


@pytest.mark.parametrize(
    ("operation", "function", "length", "by"),
    [
        ("sum", np.add, 5, None),
        ("sum", np.add, 32, None),
        ("max", np.maximum, 70, None),
        ("product", np.multiply, 70, "shared"),
        ("max", np.maximum, 113, None),
        ("sum", np.add, 256, None),
    ],
)
def test_segments(operation, function, length, by):
    knl = by_threads(segments(operation), length, by=by)
    x = numbers(2 * length + 3, low=1, high=2 if operation == "product" else 9)
    f = (np.random.default_rng(length).random(len(x)) < 0.2).astype(np.int32)
    x[::30] = 2
    agrees(knl, {"x": x, "f": f}, segment_by_segment(x, f, function))
    agrees(knl, {"x": x, "f": f * 0}, function.accumulate(x))
    assert meets(knl, ["scan acc", "carry acc"])[0].startswith(
        f"scan acc: running segmented {operation} over i_inner: {length} threads"
    )


def test_segments_text_and_results(golden):
    both = by_threads(segments(left="y[i], z[i]", z="bool"), 64)
    golden("thread_scans_segmented.txt", f"{both}\n{both.cuda()}")
    x, f = numbers(150), (numbers(150, np.int32) == 0).astype(np.int32)
    y, z = both(x=x, f=f)
    np.testing.assert_array_equal(y, segment_by_segment(x, f, np.add))
    np.testing.assert_array_equal(z, np.logical_or.accumulate(f))
    assert both.prove(text=True).ok


def test_two_segmented_ones_and_one_of_ones_own():
    operation = lk.register_reduction("larger", -1, lambda a, b: Max((a, b)), within=(0, 200))
    knl = scan(
        text="y[i] = reduce(segmented(larger), j, x[j], f[j]) "
        "+ reduce(segmented(sum), j, x[j], f[j]) + reduce(segmented(sum), j, 2*x[j], x[j] < 2)",
        types={"x, y": "float64", "f": "int32"},
        reductions=[operation],
    )
    x, f = numbers(100, np.float64), (numbers(100, np.int32) == 0).astype(np.int32)
    parts = [(x, f, np.maximum), (x, f, np.add), (2 * x, x < 2, np.add)]
    agrees(by_threads(knl, 40), {"x": x, "f": f}, sum(segment_by_segment(*p) for p in parts))


@pytest.mark.parametrize("peeled", [{"first": 2}, {"last": 3}, {"first": 2, "last": 2}])
def test_segments_of_threads_with_code_of_their_own(peeled):
    text = segments().fix_parameters(n=13)
    knl = text.realize_reduction(force_scan=True).tag_inames("i: l.0").peel_iname("i", **peeled)
    assert knl.prove().ok
    x, f = numbers(13), (numbers(13, np.int32) == 0).astype(np.int32)
    agrees(knl, {"x": x, "f": f}, segment_by_segment(x, f, np.add))


def test_an_operation_that_a_user_calls_so():
    operation = lk.register_reduction("sum_of_segments", 0, lambda a, b: a + b)
    knl = scan(
        text="y[i] = reduce(segmented(sum), j, x[j], f[j]) + sum_of_segments(j, x[j])",
        types={"x, y": "float32", "f": "int32"},
        reductions=[operation],
    )
    x, f = numbers(100), (numbers(100, np.int32) == 0).astype(np.int32)
    expected = segment_by_segment(x, f, np.add) + x.cumsum()
    agrees(by_threads(knl, 40), {"x": x, "f": f}, expected)


def test_terms_in_their_order():
    """Threads and blocks scan what does not commute: each joins what comes before with its own."""
    last = lk.register_reduction(
        "last", 0, lambda a, b: If(Comparison(b, "!=", 0), b, a), ordered=True
    )
    lines = lk.register_reduction(
        "lines", (1, 0), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), ordered=True
    )
    for text, types, operation in (
        ("y[i] = last(j, x[j])", {"x, y": "int32"}, last),
        ("_[i], y[i] = lines(j, x[j], x[j] + j)", {"x": "int32"}, lines),
    ):
        knl = scan(text=text.replace("_[i]", "<>_"), types=types, reductions=[operation])
        x = numbers(100, np.int32, -1, 2)
        expected, so_far = [], 0
        for place, value in enumerate(x):
            so_far = (value or so_far) if operation is last else so_far * value + value + place
            expected.append(so_far)
        for length in (32, 40):
            agrees(by_threads(knl, length), {"x": x}, expected)
        blocks = by_threads(knl, 32).realize_reduction(by="lookback").tag_inames("i_outer: g.0")
        agrees(blocks, {"x": x}, expected)
        assert lk.verify(knl, blocks)


def test_an_atomic_update_leaves_no_running_results():
    """Whichever comes first, the threads or how they combine."""
    running = forced(scan())
    threads, atomic = {"inner_tag": "l.0"}, {"by": "atomic"}
    with pytest.raises(lk.IllegalTransformError, match="leaves no running results"):
        running.split_iname("i", 64, **threads).realize_reduction(**atomic)
    with pytest.raises(lk.IllegalTransformError, match="leaves no running results"):
        running.realize_reduction(**atomic).split_iname("i", 64, **threads)


@pytest.mark.parametrize("length", [32, 64, 256])
def test_the_proof_finds_parts_in_another_order(length):
    knl = by_threads(segments(), length)
    source = knl.cuda()
    old, new = "_of_two(acc_other, acc)", "_of_two(acc, acc_other)"
    found = prove_source(knl, source.replace(old, new, 1)).findings
    assert any("in another order" in str(one) for one in found)


def test_segments_that_no_thread_reads():
    knl = segments().assume("n <= 64")
    with pytest.raises(lk.LoopkitError):
        forced(knl.duplicate_inames("j", "id:insn")).tag_inames("j: l.0")


# }}}


def test_several_that_one_statement_reads():
    knl = scan(text="y[i] = sum(j, x[j]) / (1 + max(j, x[j]))")
    done = by_threads(knl, 64)
    assert str(done).count("---- scan") == str(done).count("---- carry") == 2
    x = numbers(200)
    agrees(done, {"x": x}, x.cumsum() / (1 + np.maximum.accumulate(x)))


def test_one_that_reads_another():
    text = """
    for i
        <> t = sum(j, x[j]) {id=first}
        y[i] = t - max(j, x[j])
    end
    """
    x = numbers(100)
    agrees(by_threads(scan(text=text), 40), {"x": x}, x.cumsum() - np.maximum.accumulate(x))


def test_a_whole_beside_it():
    knl = lk.make_kernel(
        ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k < n }"],
        """
        for r
            <> whole = sum(k, x[r, k])
            y[r, i] = sum(j, x[r, j]) / whole
        end
        """,
        dtypes={"x, y": "float32"},
        assumptions="n, m >= 1",
    )
    done = forced(knl).split_iname("k", 64, inner_tag="l.0").split_iname("i", 64, inner_tag="l.0")
    done = done.tag_inames("r: g.0")
    x = numbers(3 * 150).reshape(3, 150) + 1
    agrees(done, {"x": x}, x.cumsum(1) / x.sum(1)[:, None])
    meets(done, ["combine acc", "scan acc_0", "carry acc_0"])


def test_each_thread_adds_up_a_piece():
    """A thread's numbers: what stands before them by a scan, and then one after the other."""
    knl = pieces()
    for n in (1, 100, 300):
        x = numbers(2 * n).reshape(2, n)
        agrees(knl, {"x": x}, x.cumsum(1))
    assert meets(knl, ["scan acc", "carry acc"])[0].endswith("16 threads, by shuffles")


def pieces(threads=16, items=4):
    knl = lk.make_kernel(
        [
            f"{{ [r, t]: 0 <= r < m and 0 <= t and {items}*t < n }}",
            f"{{ [u, v]: 0 <= u < t and 0 <= v < {items} }}",
            f"{{ [k]: 0 <= k < {items} and {items}*t + k < n }}",
            "{ [l]: 0 <= l <= k }",
        ],
        f"""
        for r, t
            <> ahead = sum((u, v), x[r, {items}*u + v]) {{id=before}}
            for k
                y[r, {items}*t + k] = ahead + sum(l, x[r, {items}*t + l]) {{id=run}}
            end
        end
        """,
        [lk.GlobalArg(name, "float32", shape="m, n") for name in "xy"] + [...],
        assumptions="n, m >= 1",
        name="pieces",
    )
    knl = forced(forced(knl, "id:before*"), "id:run*")
    return knl.tag_inames("r: g.0").split_iname("t", threads, inner_tag="l.0")


@pytest.mark.parametrize("end", [{"first": 1}, {"last": 1}])
def test_rounds_apart(end):
    """Each part of a loop has a scan of its own, and hands on what it has."""
    knl = by_threads(scan(assumptions="n >= 1"), 64).peel_iname("i_outer", **end)
    for n in (1, 64, 150):
        x = numbers(n)
        agrees(knl, {"x": x}, x.cumsum())
    meets(knl, ["scan acc", "carry acc"] * 2)
    assert knl.prove(text=True).ok


def test_full_rounds_have_no_guards(golden):
    knl = forced(scan(assumptions="n >= 1"))
    knl = knl.split_iname("i", 32, inner_tag="l.0", slabs=(0, 1))
    golden("thread_scans_slabs.txt", f"{knl}\n{knl.cuda()}")
    x = numbers(100)
    agrees(knl, {"x": x}, x.cumsum())


def test_copies_in_shared_memory():
    knl = forced(rows()).tag_inames("r: g.0").split_iname("i", 64, inner_tag="l.0")
    knl = knl.add_prefetch("x", ["i_inner"], default_tag="l.auto")
    x = numbers(2 * 150).reshape(2, 150)
    agrees(knl, {"x": x}, x.cumsum(1))


def test_order_of_steps_does_not_matter():
    one = by_threads(scan(), 64)
    assert one.cuda() == forced(scan()).split_iname("i", 64).tag_inames("i_inner: l.0").cuda()


@pytest.mark.parametrize("bounds", ["0 <= j <= i", "0 <= j < i", "0 <= j <= i + 2"])
def test_threads_before_it_is_known_to_run(bounds):
    text = scan(bounds, assumptions="1 <= n <= 300")
    split = text.split_iname("i", 64).split_iname("i_inner", 16)
    for tagged in (
        text.tag_inames("i: l.0"),
        text.split_iname("i", 64, inner_tag="l.0"),
        split.tag_inames("i_inner_outer: l.1, i_inner_inner: l.0"),
    ):
        knl = forced(tagged)
        size = evaluate(text.arg_by_name["x"].shape[0], {"n": 150})
        given_ = {"x": numbers(int(size)), "n": 150}
        agrees(knl, given_, text.executor("reference")(**given_))
        assert str(knl).count("---- scan") == 1


def test_history_keys_and_what_is_forgotten():
    done = by_threads(scan(), 32)
    again = pickle.loads(pickle.dumps(done))
    assert again == done and again.key == done.key
    assert lk.replay(scan(), done.history) == done
    x = numbers(70)
    np.testing.assert_array_equal(again(x=x), x.cumsum())
    forgotten = done.with_(lineage=None, history=())
    assert lk.verify(scan(), forgotten).answer == "equal"
    assert done.untag_inames("i_inner") == forced(scan()).split_iname("i", 32)


def test_costs():
    (made, carried) = by_threads(scan(), 256).costs(n=1000).combinations
    # Of 8 warps: 5 steps in each, 3 among what they left, and one to fetch it.
    assert (made.times, made.each.shuffles, made.each.barriers) == (4, 8 * 9, 1)
    assert (carried.times, carried.each.shuffles, carried.each.barriers) == (4, 0, 1)
    (made, carried) = by_threads(scan(), 32).costs(n=1000).combinations
    assert (made.each.shuffles, made.each.barriers, made.each.operations) == (5, 0, 129)
    assert (carried.each.shuffles, carried.each.barriers) == (1, 0)


@pytest.mark.parametrize("together", [False, True])
def test_rows_that_data_choose(together: bool):
    knl = chosen().tag_inames("r: g.0")
    if together:  # in a block with rows that make running results of nothing
        knl = chosen().split_iname("r", 4, outer_tag="g.0", inner_tag="l.1")
    knl = knl.split_iname("i", 32, inner_tag="l.0")
    x, flag = numbers(3 * 70).reshape(3, 70), np.array([1, 0, 2], np.int32)
    y = np.zeros_like(x)
    expected = np.where(flag[:, None] > 0, x.cumsum(1), 0)
    for order in ORDERS:
        found = knl.executor("host", order=order)(x=x, flag=flag, y=y.copy())
        np.testing.assert_array_equal(found, expected)
    assert knl.prove().ok


def chosen():
    knl = rows(text="y[r, i] = sum(j, x[r, j]) {if=flag[r] > 0}", flag="int32")
    return forced(knl.assume("n >= 1"))


# {{{ what is refused


@pytest.mark.parametrize(
    "steps",
    [
        lambda knl: knl.split_iname("i", 32, outer_tag="l.0"),  # pieces, in the order of numbers
        lambda knl: knl.split_iname("i", 4).split_iname("i_outer", 32, inner_tag="l.0"),
        lambda knl: (
            knl.split_iname("i", 64)
            .split_iname("i_inner", 8)
            .tag_inames("i_inner_outer: l.0, i_inner_inner: l.1")
        ),
    ],
)
def test_threads_in_another_order_are_refused(steps):
    knl = forced(scan(assumptions="0 <= n <= 1024"))
    with pytest.raises(lk.IllegalTransformError, match="would overwrite acc before") as caught:
        steps(knl)
    assert caught.value.witness is not None


def test_terms_that_threads_share_among_them_are_refused():
    knl = forced(scan("0 <= j < 4*i", assumptions="1 <= n <= 64")).tag_inames("i: l.0")
    with pytest.raises(lk.IllegalTransformError, match="would overwrite acc before") as caught:
        knl.tag_inames("j: l.1")
    assert caught.value.witness is not None


def test_blocks_are_refused():
    with pytest.raises(lk.RaceError, match="nothing orders blocks") as caught:
        forced(scan()).split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
    assert caught.value.witness is not None


def test_a_plain_loop_is_none():
    knl = lk.make_kernel(
        LINE,
        """
        <> t = 0.0 {id=start}
        for i
            t = t + x[i] {id=step}
            y[i] = t
        end
        """,
        dtypes={"x, y": "float32", "t": "float32"},
        assumptions="1 <= n <= 64",
    )
    with pytest.raises(lk.IllegalTransformError) as caught:
        knl.tag_inames("i: l.0")
    assert caught.value.witness is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x[i + 1] = sum(j, x[j])", r"would read x\[1\] before 'insn' \(i=0\) has written it"),
        ("y[i] = sum(j, x[j])\nx[i + 1] = y[i]", "would read x"),
    ],
)
def test_terms_that_earlier_threads_write(text, says):
    knl = forced(scan(text=text, types={"x, y": "float32"} if "y" in text else {"x": "float32"}))
    with pytest.raises(lk.IllegalTransformError, match=says) as caught:
        knl.split_iname("i", 32, inner_tag="l.0")
    assert caught.value.witness is not None


def test_what_cannot_be_built():
    apart = forced(rows()).split_iname("i", 64).split_iname("r", 4, outer_tag="g.0")
    apart = apart.split_iname("i_inner", 8, outer_tag="l.2", inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match="neighbouring axes"):
        apart.tag_inames("r_inner: l.1").cuda()
    uneven = forced(rows(), by="shuffle").split_iname("r", 2, outer_tag="g.0", inner_tag="l.1")
    with pytest.raises(lk.IllegalTransformError, match="neither within a warp"):
        uneven.split_iname("i", 48, inner_tag="l.0").cuda()


# }}}
# {{{ the proof of the program


@pytest.mark.parametrize(
    ("length", "old", "new", "finding"),
    [
        (64, "acc_lane >= 4", "acc_lane >= 3", "does not get each"),
        (64, "__shfl_up_sync(~0u, acc, 8)", "__shfl_up_sync(~0u, acc, 7)", "does not get each"),
        (64, "__shfl_up_sync(~0u, acc, 2)", "__shfl_down_sync(~0u, acc, 2)", "does not get"),
        (64, "threadIdx.x >= 32", "threadIdx.x >= 31", "does not get each"),
        (64, "acc_lane == 31", "acc_lane == 30", "does not get each"),
        (64, "threadIdx.x == 63", "threadIdx.x == 62", "does not get each"),
        (64, "threadIdx.x == 0 ? acc_all[0] : 0.0f", "acc_all[0]", "does not get each"),
        (64, "acc_all[0] : 0.0f", "acc_all[0] : acc", "does not get each"),
        (256, "acc_slot >= 2", "acc_slot >= 1", "does not get each"),
        (256, "acc_warp - 1 : 0", "acc_warp : 0", "does not get each"),
        (256, "__syncthreads();", "__syncwarp();", "with no barrier between"),
    ],
)
def test_the_proof_finds_faults_in_a_scan(length, old, new, finding):
    knl = by_threads(scan(), length)
    source = knl.cuda()
    assert old in source and prove_source(knl, source).ok
    found = prove_source(knl, source.replace(old, new, 1)).findings
    assert any(finding in str(one) for one in found), found


def test_the_proof_finds_a_scan_that_is_lost_or_repeated():
    knl = by_threads(scan(), 32)
    source = knl.cuda()
    head, rest = source.split("        {", 1)
    made, rest = rest.split("        }\n", 1)
    made = f"        {{{made}        }}\n"
    write, rest = rest.split("        {", 1)
    carried, tail = rest.split("        }\n", 1)
    carried = f"        {{{carried}        }}\n"
    assert head + made + write + carried + tail == source
    for wrong in (
        head + write + carried + tail,
        head + made + write + tail,
        head + write + made + carried + tail,
        head + made + carried + write + tail,
        head + made + made + write + carried + tail,
        head + carried + made + write + tail,
    ):
        assert prove_source(knl, wrong).findings


# }}}


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([1, 3, 8, 32, 33, 64, 100]),
    st.integers(0, 150),
    st.sampled_from(["0 <= j <= i", "0 <= j < i"]),
    st.sampled_from([None, "shared"]),
)
def test_any_length(length, n, bounds, by):
    knl = by_threads(scan(bounds), length, by=by)
    x = numbers(n)
    expected = x.cumsum() if "<= i" in bounds else x.cumsum() - x
    size = n if "<= i" in bounds else max(0, n - 1)
    np.testing.assert_array_equal(knl(x=x[:size], n=n), expected)


def test_hostile_names():
    knl = lk.make_kernel(
        ["{ [acc_lane]: 0 <= acc_lane < thread }", "{ [j]: 0 <= j <= acc_lane }"],
        "acc_other[acc_lane] = sum(j, acc_scan[j]) {id=acc_carry}",
        dtypes={"acc_other, acc_scan": "float32"},
        assumptions="thread >= 1",
    )
    knl = forced(knl).split_iname("acc_lane", 64, inner_iname="acc_warps", inner_tag="l.0")
    x = numbers(100)
    agrees(knl, {"acc_scan": x}, x.cumsum())


@pytest.mark.parametrize("slabs", [(0, 1), (1, 0), (1, 1)])
def test_segments_below_peeled_iterations(slabs):
    """The peeled iterations go on from the others, and each starts anew where a flag says so."""
    x, f = numbers(77, np.int32, -9), (numbers(78)[:77] < 3).astype(np.int32)
    knl = forced(
        scan(text="y[i] = reduce(segmented(sum), j, x[j], f[j])", types={"x, y, f": "int32"})
    )
    expected = np.zeros(77, np.int32)
    for i in range(77):
        expected[i] = x[i] + (0 if f[i] or not i else expected[i - 1])
    knl = knl.assume("n >= 1").split_iname("i", 32, inner_tag="l.0", slabs=slabs)
    agrees(knl, {"x": x, "f": f}, expected)


@pytest.mark.parametrize("text", ["y[i] = sum(j, x[j])", "y[i] = sum(j, x[i] - x[j])"])
@pytest.mark.parametrize("tag", ["l.0", None])
def test_a_scan_of_one_element(text, tag):
    """Where the loop has one iteration, what is added is all there is."""
    knl = scan(text=text).fix_parameters(n=1).tag_inames({"i": tag})
    x = numbers(1)
    agrees(forced(knl), {"x": x}, x if text.startswith("y[i] = sum(j, x[j])") else x - x)
    with pytest.raises(lk.IllegalTransformError, match="no loop around it bounds"):
        forced(scan("0 <= j < 3").fix_parameters(n=2))


def test_two_scans_of_a_plane_of_threads():
    """Each has an accumulator of its own, and threads of two axes come in their order."""
    knl = forced(scan(text="y[i] = sum(j, x[j])\nz[i] = max(j, x[j])", types={"x, y, z": "int32"}))
    knl = knl.fix_parameters(n=24).split_iname("i", 4, outer_tag="l.1", inner_tag="l.0")
    x = numbers(24, np.int32)
    for executor in ("host", "reference"):
        y, z = knl.executor(executor)(x=x)
        np.testing.assert_array_equal([y, z], [x.cumsum(), np.maximum.accumulate(x)])
