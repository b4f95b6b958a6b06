"""Running reductions: one accumulator that lasts through the loop along which it grows."""

import numpy as np
import pytest
from gallery import load
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_instances import change_of
from pymbolic.primitives import Max
from seams import examine, step_from_json

import loopkit as lk

LINE = "{ [i]: 0 <= i < n }"


def scan(bounds="0 <= j <= i", text="y[i] = sum(j, x[j])", dtype="float32", result=None, **more):
    types = {"x": dtype, "y": result or dtype}
    domains = [LINE, f"{{ [j]: {bounds} }}"]
    return lk.make_kernel(domains, text, dtypes=types, **{"assumptions": "n >= 0"} | more)


def forced(knl, *args, **options):
    return knl.realize_reduction(*args, force_scan=True, **options)


def agrees(knl, text, sizes=(0, 1, 2, 7), dtype=np.float32):
    """A schedule computes what the text says, for whole numbers bit by bit, and is proven."""
    rng = np.random.default_rng(5)
    for n in sizes:
        length = max(1, n + 9) * 3
        x = rng.integers(1, 3 if dtype == np.float32 else 9, length).astype(dtype)
        shape = text.arg_by_name["x"].shape
        x = x[: max(0, int(lk_size(shape[0], n)))]
        expected = text.executor("reference")(x=x, n=n)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order)(x=x, n=n)
            np.testing.assert_array_equal(found, expected)
    proof = knl.prove()
    assert proof.ok, str(proof)


def lk_size(extent, n):
    from seams import evaluate

    return evaluate(extent, {"n": n})


@pytest.mark.parametrize(
    ("bounds", "added"),
    [
        ("0 <= j <= i", "acc += x[i]"),
        ("0 <= j < i", "acc += x[i - 1]"),
        ("3 <= j <= i + 2", "acc += x[i + 2]"),
        ("0 <= j <= i + 2", "for j in [0, 2)"),
        ("0 <= j < 2*i", "for j in [max(2*i - 2, 0), 2*i)"),
        ("0 <= j <= 3*i + 1", "for j in [max(3*i - 1, 0), 3*i + 2)"),
        ("0 <= j <= i and j mod 2 = 0", "acc += x[i]"),
        ("0 <= j <= i and (j <= 2 or j >= 5)", "acc += x[i]"),
        ("0 <= j <= i // 2", "acc += x[i // 2]"),
    ],
)
def test_what_grows_is_added_as_it_comes(bounds, added):
    knl = scan(bounds)
    done = forced(knl)
    assert added in str(done)
    assert "acc = 0\n" in str(done).split("for ")[0]
    agrees(done, knl, sizes=(0, 1, 2, 3, 4, 9))


def test_texts_and_golden(golden):
    plain, front = forced(scan()), forced(scan("0 <= j <= i + 2"))
    rows = lk.make_kernel(
        ["{ [r, i]: 0 <= r < m and 0 <= i < n }", "{ [j]: 0 <= j < i }"],
        "y[r, i] = sum(j, x[r, j]) / (1 + max(j, x[r, j]))",
        dtypes={"x, y": "float32"},
    )
    both = forced(rows).split_iname("r", 32, outer_tag="g.0", inner_tag="l.0").split_iname("i", 4)
    texts = [str(part) for knl in (plain, front, both) for part in (knl, knl.cuda())]
    golden("scans.txt", "\n".join(texts))
    assert "running sum over i" in str(plain)
    assert both.prove(text=True).ok


@pytest.mark.parametrize(
    ("operation", "dtype", "result"),
    [
        ("sum", "float64", None),
        ("sum", "int32", "int64"),
        ("product", "float32", None),
        ("max", "int8", None),
        ("min", "float32", None),
        ("sum", "float16", "float32"),
        ("any", "int32", "bool"),
        ("all", "int32", "bool"),
        ("sum", "complex64", None),
    ],
)
def test_operations_and_types(operation, dtype, result):
    knl = scan(text=f"y[i] = {operation}(j, x[j])", dtype=dtype, result=result)
    agrees(forced(knl), knl, dtype=np.dtype(dtype))


def test_an_operation_of_ones_own():
    def either(a, b):
        return a + b - a * b

    operation = lk.register_reduction("either", 0.0, either, either)
    knl = scan(text="y[i] = either(j, x[j])", dtype="float64", reductions=[operation])
    agrees(forced(knl), knl, dtype=np.float64)


def test_the_smallest_so_far_and_its_place():
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }"],
        "v[i], k[i] = argmin(j, x[j], j)",
        dtypes={"x, v": "float32", "k": "int32"},
    )
    done = forced(knl)
    x = np.array([3, 2, 5, 2, 1, 1], np.float32)
    for order in ("ascending", "random"):
        v, k = done.executor("host", order=order)(x=x)
        assert v.tolist() == [3, 2, 2, 2, 1, 1] and k.tolist() == [0, 1, 1, 1, 4, 4]
    assert done.prove().ok


def test_several_reductions_some_of_which_grow():
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }", "{ [k]: 0 <= k < n }"],
        "y[i] = sum(j, x[j]) + max(j, x[j]) - min(k, x[k])",
        dtypes={"x, y": "float32"},
    )
    done = forced(knl)
    assert str(done).count("running") == 2 and "min over k" in str(done)
    agrees(done, knl)
    alone = forced(knl, "writes:acc_0")
    assert str(alone).count("running") == 1
    with pytest.raises(lk.IllegalTransformError, match="no loop around it bounds"):
        forced(knl, "id:*")


def test_conditions_rules_and_what_else_the_loop_holds():
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }"],
        """
        f(q) := 2*x[q] + 1
        <> t = x[i] {if=i > 1}
        y[i] = sum(j, f(j)) {id=sums, if=i >= 2}
        z[i] = f(i) - y[i] + t {if=i >= 2}
        """,
        dtypes={"x, y, z": "float32"},
    )
    done = forced(knl)
    assert "for j in [0, 2)" in str(done) and "f(i)" in str(done)
    x = np.arange(9, dtype=np.float32)
    given = {"y": np.zeros(9, np.float32), "z": np.zeros(9, np.float32)}
    expected = knl.executor("reference")(x=x, **{k: v.copy() for k, v in given.items()})
    found = done(x=x, **given)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert done.prove().ok


def test_loops_that_were_split_before():
    knl = scan()
    for done in (
        forced(knl.split_iname("i", 4)),
        forced(knl.split_iname("j", 4).split_iname("i", 8)),
    ):
        assert "running sum over i_outer, i_inner" in str(done)
        agrees(done, knl, sizes=(0, 3, 4, 17))
    with pytest.raises(lk.UndecidedError, match=r"'i' of the text is .* 'i_outer'"):
        forced(knl.split_iname("i", 4), force_outer_iname_for_scan="i_inner")


def test_what_grows_in_a_plane_grows_along_its_inner_loop():
    knl = lk.make_kernel(
        ["{ [a, b]: 0 <= a < n and 0 <= b < n }", "{ [j, k]: 0 <= j <= a and 0 <= k <= b }"],
        "y[a, b] = sum((j, k), x[j, k])",
        dtypes={"x, y": "float32"},
    )
    done = forced(knl)
    assert "running sum over b, j\n" in str(done)
    x = np.arange(25, dtype=np.float32).reshape(5, 5)
    np.testing.assert_array_equal(done(x=x), x.cumsum(0).cumsum(1))
    with pytest.raises(lk.IllegalTransformError):
        forced(knl, force_outer_iname_for_scan="a")
    other = knl.prioritize_loops("b, a")
    assert "running sum over a, k\n" in str(forced(other))


def test_history_script_and_json():
    done = forced(scan(), force_outer_iname_for_scan="i")
    assert ".realize_reduction(force_scan=True, force_outer_iname_for_scan='i')" in done.script()
    step = step_from_json(done.history[-1].to_json())
    again = lk.replay(scan(), (step,))
    assert again == done and again.key == done.key


# {{{ segmented reductions

FLAGS = {"x, y": "float32", "f": "int32"}


def segments(operation="sum", left="y[i]", types=None, **more):
    return lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }"],
        f"{left} = reduce(segmented({operation}), j, x[j], f[j])",
        dtypes=types or FLAGS,
        **more,
    )


def segment_by_segment(x, f, operation=np.add):
    found = []
    for value, restarts in zip(x, f, strict=True):
        found.append(value if restarts or not found else operation(found[-1], value))
    return np.array(found)


@pytest.mark.parametrize(
    ("operation", "function"), [("sum", np.add), ("max", np.maximum), ("product", np.multiply)]
)
def test_segments_start_anew(operation, function):
    rng = np.random.default_rng(4)
    knl = segments(operation)
    split = forced(knl).split_iname("i", 4)
    for done in (knl, knl.split_iname("j", 4), forced(knl), split):
        for n in (0, 1, 9):
            x = rng.integers(1, 4, n).astype(np.float32)
            f = rng.integers(0, 2, n).astype(np.int32)
            expected = segment_by_segment(x, f, function)
            for executor in ("reference", "host"):
                np.testing.assert_array_equal(done.executor(executor)(x=x, f=f, n=n), expected)
        assert done.prove().ok and done.prove(text=True).ok


def test_segments_text_and_results(golden):
    both = segments(left="y[i], z[i]", types=FLAGS | {"z": "bool"})
    dropped = segments(left="y[i], <>_", types={"x": "int32", "f": "int32", "y": "int64"})
    done = [forced(both), forced(dropped)]
    golden("scans_segmented.txt", "\n".join(f"{knl}\n{knl.cuda()}" for knl in (both, *done)))
    x, f = np.arange(1, 7, dtype=np.float32), np.array([0, 0, 1, 0, 1, 0], np.int32)
    y, z = done[0](x=x, f=f)
    assert y.tolist() == [1, 3, 3, 7, 5, 11] and z.tolist() == [0, 0, 1, 1, 1, 1]
    assert done[1].temporary_by_name["acc"].dtype == np.int64
    assert done[1](x=x.astype(np.int32), f=f).tolist() == [1, 3, 3, 7, 5, 11]


def test_segments_of_an_operation_of_ones_own_within_an_expression():
    operation = lk.register_reduction("larger", -1, lambda a, b: Max((a, b)), within=(0, 200))
    knl = lk.make_kernel(
        [LINE, "{ [j]: 0 <= j <= i }"],
        "y[i] = 1 + 2*reduce(segmented(larger), j, x[j], x[j] < 2)",
        dtypes={"x, y": "float64"},
        reductions=[operation],
    )
    x = np.array([3, 5, 1, 4, 4, 0, 2.0])
    expected = 1 + 2 * segment_by_segment(x, x < 2, np.maximum)
    np.testing.assert_array_equal(forced(knl)(x=x), expected)


def test_segments_have_an_order():
    knl = segments().assume("n <= 64")
    with pytest.raises(lk.IllegalTransformError, match="would read acc before"):
        knl.map_domain("{ [j] -> [q]: q = -j }")
    with pytest.raises(lk.IllegalTransformError, match="would not see what"):
        knl.split_iname("j", 4, inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match="no reduction is over 'j'"):
        knl.split_reduction_inward("j")
    assert knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").prove().ok


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("y[q] = reduce(segmented(argmin), j, x[j], f[j])", "is not a reduction"),
        ("y[q] = reduce(segmented(sum), j, x[j])", r"reduce\(segmented\(sum\), k, x, flag\)"),
        ("y[q] = reduce(segmented(sum), (j, i), x[j], f[j])", "runs over one iname"),
        ("y[q] = reduce(segmented(", "is the name of a reduction"),
        ("y[q], z[q], v[q] = reduce(segmented(sum), j, x[j], f[j])", "has 2"),
    ],
)
def test_segments_that_are_misspelt(text, says):
    with pytest.raises(lk.ParseError, match=says):
        lk.make_kernel(["{ [q]: 0 <= q < n }", "{ [i, j]: 0 <= j <= i < n }"], text, dtypes=FLAGS)


# }}}
# {{{ what is refused


@pytest.mark.parametrize(
    ("bounds", "text", "says"),
    [
        ("0 <= j <= i", "y[i] = sum(j, x[i, j])", r"i=1, j=0\) would compute something else"),
        ("0 <= j <= i", "y[i] = sum(j, x[j]*i)", "has one value for every 'i'"),
        ("i <= j < n", "y[i] = sum(j, x[j])", r"'insn' \(i=1\) would read from acc .* \(j=0\)"),
        ("max(0, i - 3) <= j <= i", "y[i] = sum(j, x[j])", r"\(i=4\) would read from acc"),
        ("0 <= j < n - i", "y[i] = sum(j, x[j])", "would read from acc"),
        ("0 <= j <= i and j != i - 2", "y[i] = sum(j, x[j])", "would"),
        ("0 <= j <= i and (i + j) mod 2 = 0", "y[i] = sum(j, x[j])", "would"),
    ],
)
def test_what_does_not_grow_is_refused_with_a_witness(bounds, text, says):
    with pytest.raises(lk.IllegalTransformError, match=says) as caught:
        forced(scan(bounds, text))
    assert caught.value.witness is not None


def test_terms_that_are_written_meanwhile_are_refused():
    knl = scan(text="y[i] = sum(j, x[j])\nx[i] = 0")
    with pytest.raises(lk.IllegalTransformError, match=r"would read x\[0\] before"):
        forced(knl)


@pytest.mark.parametrize(
    ("step", "error", "says"),
    [
        (("tag_inames", "i: g.0"), lk.RaceError, "nothing orders the two"),
        (("split_iname", "i", 4, "outer_tag", "g.0"), lk.RaceError, "nothing orders the two"),
        (("map_domain", "{ [i] -> [q]: q = n - 1 - i }"), lk.IllegalTransformError, "would"),
    ],
)
def test_a_scan_in_another_order_is_refused(step, error, says):
    name, *args = step
    options = dict([args[2:]]) if name == "split_iname" else {}
    with pytest.raises(error, match=says) as caught:
        getattr(forced(scan()), name)(*args[:2], **options)
    assert caught.value.witness is not None


def test_what_cannot_be_built_is_refused():
    knl = scan()
    with pytest.raises(lk.IllegalTransformError, match=r"tagged g\.0, and its iterations"):
        forced(knl.tag_inames("i: g.0"))
    with pytest.raises(lk.UnknownNameError):
        forced(knl, force_outer_iname_for_scan="q")
    rows = lk.make_kernel(
        ["{ [i, r]: 0 <= i < n and 0 <= r < n }", "{ [j]: 0 <= j <= i }"],
        "y[i, r] = sum(j, x[r, j])",
        dtypes={"x, y": "float32"},
    )
    with pytest.raises(lk.IllegalTransformError, match="inside the loop over 'i'"):
        forced(rows)
    assert "running" in str(forced(rows.prioritize_loops("r, i")))
    data = scan(text="y[i] = sum(j, x[j]) {if=x[i] > 0}")
    with pytest.raises(lk.IllegalTransformError, match="data decide for which 'i'"):
        forced(data)


# }}}
# {{{ claims


def claims(change, **values):
    """The violations of a change, some of whose instance maps lie."""
    from dataclasses import replace

    maps = tuple(replace(m, **values[m.new]) if m.new in values else m for m in change.instances)
    return {v.kind for v in examine(scan(), replace(change, instances=maps))[1]}


def test_claims_that_are_too_large_or_too_small_are_found():
    from pymbolic.primitives import Sum, Variable
    from seams import registered_transforms as transforms

    change = change_of(transforms["realize_reduction"], scan(), force_scan=True)
    assert claims(change) == set()
    every = frozenset(["i"])
    shifted = {"values": {"j": Sum((Variable("i"), 1))}, "every": every}
    assert "extra" in claims(change, insn_update=shifted)
    both = {"values": {}, "every": frozenset(["i", "j"])}
    assert claims(change, insn_update=both) >= {"repeated", "merged"}
    one = {"values": {"j": Variable("i")}, "every": frozenset()}
    assert "dropped" in claims(change, insn_update=one)
    assert claims(change, insn_init={"values": {"i": 0}, "every": frozenset()}) != set()


# }}}


@pytest.mark.parametrize("name", ["scan_rows", "scan_rows_blocks", "scan_vector"])
def test_examples(name, golden):
    for label, knl in load(name).make().items():
        proof = knl.prove()
        assert proof.ok, f"{label}: {proof}"
        if label != "plain":
            golden(f"{name}_{label.replace(' ', '_')}.txt", f"{knl}\n{knl.cuda()}")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(-2, 2),
    st.sampled_from(["<", "<="]),
    st.integers(1, 3),
    st.sampled_from(["0", "2", "n // 2"]),
    st.sampled_from(["", " and j mod 2 = 0", " and j != 3"]),
)
def test_any_growing_range(shift, relation, step, low, gaps):
    knl = scan(f"{low} <= j {relation} {step}*i + {shift}{gaps}")
    agrees(forced(knl), knl, sizes=(0, 1, 5))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(-2, 2),
    st.integers(-2, 2),
    st.sampled_from(["0", "i", "i // 2", "i - 2", "-i", "n - i"]),
    st.sampled_from(["i", "2*i", "i // 2", "n - i", "n", "3"]),
)
def test_any_range_is_right_or_refused(first, last, low, high):
    knl = scan(f"0 <= j and {low} + {first} <= j <= {high} + {last}")
    try:
        done = forced(knl)
    except lk.IllegalTransformError:
        return
    agrees(done, knl, sizes=(0, 1, 5))


@pytest.mark.parametrize("bounds", ["0 <= j <= i", "0 <= j < i", "0 <= j <= i + 2", "0 <= j < 2*i"])
def test_verify_finds_what_one_update_stands_for(bounds):
    knl = scan(bounds)
    done = forced(knl).split_iname("i", 4)
    forgotten = done.with_(lineage=None, history=())
    assert lk.verify(knl, forgotten).answer == "equal"
    assert lk.verify(forgotten, knl).answer == "equal"
    other = scan(bounds, "y[i] = sum(j, x[j]) + 1")
    assert lk.verify(other, forgotten).answer == "different"
