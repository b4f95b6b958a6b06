"""Reductions whose inames are thread axes: what threads do together."""

import re

import numpy as np
import pytest
from gallery import load
from seams import prove_source

import loopkit as lk

ROWS = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


def rows(operation="sum", dtype="float32", result=None, text="y[i] = {}(j, x[i, j])"):
    types = {"x": dtype, "y": result or dtype}
    return lk.make_kernel(
        ROWS, text.format(operation), dtypes=types, assumptions="n, m >= 0", name="rows"
    )


def check(knl, reference, sizes=((3, 5), (9, 100), (0, 3), (2, 0)), dtype=np.float32):
    """Runs in three orders of threads agree with a reference; the program is proven."""
    rng = np.random.default_rng(3)
    for n, m in sizes:
        x = (7 * rng.random((n, m)) - 3).astype(dtype)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order)(x=x)
            expected = reference(x)
            if np.issubdtype(expected.dtype, np.inexact):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(found, expected)
    proof = knl.prove()
    assert proof.ok, str(proof)


def sums(x):
    return x.sum(1)


@pytest.mark.parametrize("length", [1, 5, 32, 113, 160, 1024])
@pytest.mark.parametrize("by", [None, "shared", "atomic"])
def test_one_block_a_row(length, by):
    knl = rows().split_iname("j", length, inner_tag="l.0").tag_inames("i: g.0")
    if by is not None:
        knl = knl.realize_reduction(by=by)
    check(knl, sums, sizes=((2, 5), (3, 2000)))


@pytest.mark.parametrize(("length", "count"), [(32, 8), (8, 7), (5, 6), (5, 13), (64, 3)])
@pytest.mark.parametrize("axes", [("l.0", "l.1"), ("l.1", "l.0")])
def test_rows_side_by_side(length, count, axes):
    knl = rows().split_iname("j", length, inner_tag=axes[0])
    knl = knl.split_iname("i", count, outer_tag="g.0", inner_tag=axes[1])
    check(knl, sums)


def test_loop_of_rows_text_and_golden(golden):
    knl = rows().split_iname("j", 64, inner_tag="l.0")
    golden("collective_rows.txt", f"{knl}\n{knl.cuda()}")
    check(knl, sums)
    assert knl.prove(text=True).ok


def test_order_of_steps_does_not_matter():
    split = rows().split_iname("j", 32, inner_tag="l.0").split_iname("i", 4, inner_tag="l.1")
    tagged = rows().split_iname("i", 4).split_iname("j", 32)
    tagged = tagged.tag_inames("j_inner: l.0, i_inner: l.1")
    assert split.cuda() == tagged.cuda()


@pytest.mark.parametrize(
    ("operation", "dtype", "result", "reference"),
    [
        ("sum", "float64", None, sums),
        ("sum", "int32", "int64", lambda x: x.sum(1, dtype=np.int64)),
        ("sum", "float16", "float32", lambda x: x.sum(1, dtype=np.float32)),
        ("product", "float32", None, lambda x: x.prod(1)),
        ("max", "int8", None, lambda x: x.max(1, initial=-128)),
        ("min", "float32", None, lambda x: x.min(1, initial=np.inf)),
        ("max", "uint64", None, lambda x: x.max(1, initial=0)),
        ("max", "float16", None, lambda x: x.max(1, initial=-np.inf)),
        ("any", "int32", "bool", lambda x: (x != 0).any(1)),
        ("all", "int32", "bool", lambda x: (x != 0).all(1)),
        ("sum", "complex64", None, sums),
    ],
)
@pytest.mark.parametrize("length", [5, 64])
def test_operations_and_types(operation, dtype, result, reference, length):
    knl = rows(operation, dtype, result).split_iname("j", length, inner_tag="l.0")
    check(knl, reference, sizes=((3, 70), (2, 3)), dtype=dtype)
    if length == 5:
        check(knl.realize_reduction(by="atomic"), reference, sizes=((2, 7),), dtype=dtype)
    if result == "bool":  # a lane that takes no part gives anything
        x = np.full((2, 7), 3, dtype)
        assert knl.executor("host", sanitize=True, order="random")(x=x).all()


def test_a_maximum_keeps_nan_wherever_it_comes_from():
    knl = rows("max").split_iname("j", 64, inner_tag="l.0")
    x = np.zeros((2, 100), np.float32)
    x[1, 77] = np.nan
    for order in ("ascending", "descending"):
        found = knl.executor("host", order=order)(x=x)
        assert found[0] == 0 and np.isnan(found[1])


def own(dtype="float64"):
    def either(a, b):
        return a + b - a * b

    return lk.make_kernel(
        ROWS,
        "y[i] = either(j, x[i, j])",
        dtypes={"x, y": dtype},
        reductions=[lk.register_reduction("either", 0.0, either, either)],
        assumptions="n, m >= 0",
    )


def test_an_operation_of_ones_own():
    knl = own().split_iname("j", 64, inner_tag="l.0")
    check(knl, lambda x: 1 - np.prod(1 - x, axis=1), sizes=((3, 90),), dtype=np.float64)


def test_records():
    knl = lk.make_kernel(
        ROWS,
        "v[i], p[i] = argmin(j, x[i, j], j)",
        dtypes={"x, v": "float32", "p": "int32"},
        assumptions="n >= 0 and m >= 1",
    )
    x = np.random.default_rng(0).integers(0, 9, (3, 170)).astype(np.float32)
    for length in (5, 64):
        threads = knl.split_iname("j", length, inner_tag="l.0")
        for order in ("ascending", "random"):
            found = threads.executor("host", order=order)(x=x)
            np.testing.assert_array_equal(found.v, x.min(1))
            np.testing.assert_array_equal(found.p, x.argmin(1))
        assert threads.prove().ok


def test_two_axes_and_one_left():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < 9 }",
        "y[i] = sum((j, k), x[i, j, k])",
        dtypes={"x, y": "float32"},
        assumptions="n, m >= 0",
    )
    for tags in ("k: l.0, j_inner: l.1", "k: l.0, j_inner: l.2, i_inner: l.1"):
        threads = knl.split_iname("j", 8).split_iname("i", 3).tag_inames(tags)
        x = np.random.default_rng(0).random((4, 21, 9), dtype=np.float32)
        for order in ("ascending", "random"):
            found = threads.executor("host", order=order)(x=x)
            np.testing.assert_allclose(found, x.sum((1, 2)), rtol=1e-5)
        assert threads.prove().ok


def test_every_thread_that_reads_it_sees_the_whole():
    knl = lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j, k, l < m }",
        """
        for i
            <> top = max(j, x[i, j])
            <> total = sum(k, exp(x[i, k] - top))
            y[i, l] = exp(x[i, l] - top) / total
        end
        """,
        dtypes={"x, y": "float32"},
        assumptions="n >= 0 and m >= 1",
        name="softmax",
    )
    for iname in "jkl":
        knl = knl.split_iname(iname, 64, inner_tag="l.0")

    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    check(knl, softmax, sizes=((3, 5), (2, 200)))
    check(knl.tag_inames("i: g.0"), softmax, sizes=((3, 5), (2, 200)))


# {{{ what is refused


def test_blocks_do_not_add_to_one_sum():
    with pytest.raises(lk.RaceError) as caught:
        rows().split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")
    assert caught.value.witness.kind == "race"
    assert "would both add to acc" in str(caught.value)


def chosen(condition):
    return lk.make_kernel(
        ROWS,
        f"""
        for i
            if {condition}
                y[i] = sum(j, x[i, j])
                z[i] = max(j, x[i, j]) - y[i]
            end
        end
        """,
        dtypes={"x, c" if "c[" in condition else "x": "int32"},
        assumptions="n, m >= 1",
    )


BLOCK = ("split_iname", ("j", 32), {"inner_tag": "l.0"})
ROW = ("split_iname", ("i", 4), {"inner_tag": "l.1"})


@pytest.mark.host
@pytest.mark.parametrize("steps", [(BLOCK, ROW), (ROW, BLOCK)])
@pytest.mark.parametrize("length", [8, 32, 48])
@pytest.mark.parametrize("condition", ["c[i] > 0", "c[i] > 0 and y[i] < 2 and i % 3 < 2"])
def test_threads_combine_whatever_data_of_others_decide(steps, length, condition):
    """What a row under its condition makes is used; what others make together, nobody looks at."""
    plain = knl = chosen(condition)
    for name, (iname, inner), options in steps:
        knl = getattr(knl, name)(iname, length if iname == "j" else inner, **options)
    assert knl.prove().ok and knl.prove(text=True).ok
    rng = np.random.default_rng(3)
    x, c = rng.integers(-9, 9, (7, 130), "int32"), rng.integers(-2, 3, 7, "int32")
    start = rng.integers(0, 4, 7)
    due = plain.executor("reference")(x=x, c=c, y=start.copy(), z=start.copy())
    for order in ("ascending", "descending", "random"):
        run = knl.executor("host", order=order, seed=5)
        found = run(x=x, c=c, y=start.copy(), z=start.copy())
        for mine, its in zip(due, found, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_the_tree_of_c_holds_no_combination_to_which_some_threads_do_not_come(monkeypatch):
    monkeypatch.setattr("loopkit._combined.spares", lambda *_: False)
    knl = chosen("c[i] > 0").split_iname("j", 32, inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match="one may wait for the other"):
        knl.split_iname("i", 4, inner_tag="l.1")
    knl = knl.split_iname("i", 4, inner_tag="l.1", unchecked=True)
    monkeypatch.setattr("loopkit.codegen.convergence.partings", lambda kernel: iter(()))
    with pytest.raises(lk.CompileError, match="no CUDA C"):
        knl.cuda()


def test_a_combination_is_used_where_a_condition_in_shared_memory_held():
    """The line that uses the smallest changes what its own condition reads, for the next round."""
    knl = lk.make_kernel(
        "{ [t, k]: 0 <= t < m and 0 <= k < 32 }",
        "for t\nif u[0] > 2\nu[0], p[t] = argmin(k, a[t, k], k)\nend\nend",
        dtypes={"a, u": "int32", "p": "int64"},
        assumptions="m >= 1",
    ).tag_inames("k: l.0")
    assert knl.prove().ok
    a = np.array([[9] * 31 + [5], [3] + [7] * 31, [8, 1] + [2] * 30, [6] * 32], "int32")
    for order in ("ascending", "random"):
        u, p = np.array([4], "int32"), np.full(4, -1)
        knl.executor("host", order=order)(a=a, u=u, p=p)
        expected = knl.executor("reference")(a=a, u=np.array([4], "int32"), p=np.full(4, -1))
        assert (u[0], p.tolist()) == (expected.u[0], expected.p.tolist())


def test_no_combination_in_a_loop_as_long_as_data_of_a_thread_say():
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < count }", "{ [j]: 0 <= j < m }"],
        """
        for i
            <> count = c[i]
            for k
                y[i, k] = sum(j, x[i, j])
            end
        end
        """,
        [lk.GlobalArg("y", shape="n, n"), ...],
        dtypes={"x": "float32", "c": "int32"},
        assumptions="n, m >= 1",
    ).split_iname("j", 32, inner_tag="l.0")
    assert knl.prove().ok
    with pytest.raises(lk.IllegalTransformError, match="that 'count' decides") as caught:
        knl.split_iname("i", 2, inner_tag="l.1")
    witness = caught.value.witness
    assert witness.kind == "divergent" and witness.array == "acc"
    knl = knl.split_iname("i", 2, inner_tag="l.1", unchecked=True)
    with pytest.raises(lk.IllegalTransformError, match="some would wait for others"):
        knl.cuda()


@pytest.mark.host
@pytest.mark.parametrize("condition", ["i > 2", "i % 2 == 0", "n > 3", "i + m > 7", "c[0] > 0"])
@pytest.mark.parametrize("length", [5, 64])
def test_conditions_that_keep_no_thread_away(condition, length):
    knl = chosen(condition).split_iname("j", length, inner_tag="l.0")
    rng = np.random.default_rng(2)
    x, c = rng.integers(-9, 9, (7, 130)), rng.integers(1, 3, 1)
    arrays = {"x": x.astype("int32"), "c": c.astype("int32")}
    start = {"y": np.zeros(7, "int64"), "z": np.zeros(7, "int64")}
    for one in (knl, knl.split_iname("i", 3, inner_tag="l.1"), knl.tag_inames("i: g.0")):
        given = {a.name: arrays[a.name] for a in one.args if a.name in arrays}
        given |= {"n": 7, "m": 130}
        due = one.executor("reference")(**given, **{k: v.copy() for k, v in start.items()})
        for order in ("ascending", "random"):
            run = one.executor("host", order=order, seed=5)
            found = run(**given, **{k: v.copy() for k, v in start.items()})
            for mine, its in zip(due, found, strict=True):
                np.testing.assert_array_equal(mine, its)
        assert one.prove().ok


def test_shuffles_that_do_not_reach():
    knl = rows().split_iname("j", 8, inner_tag="l.1").split_iname("i", 7, inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match="shuffles do not reach"):
        knl.realize_reduction(by="shuffle").cuda()
    with pytest.raises(lk.IllegalTransformError, match="does not exchange complex64"):
        rows(dtype="complex64").tag_inames("i: g.0").split_iname(
            "j", 32, inner_tag="l.0"
        ).realize_reduction(by="shuffle").cuda()
    knl = own().split_iname("j", 32, inner_tag="l.0")
    with pytest.raises(lk.IllegalTransformError, match="by either, of which there is no atomic"):
        knl.realize_reduction(by="atomic")


def test_realize_reduction_refuses_what_it_does_not_know():
    with pytest.raises(lk.InvalidArgumentError, match="combine their partial results by 'magic'"):
        rows().realize_reduction(by="magic")
    with pytest.raises(lk.IllegalTransformError, match="no reduction"):
        rows().realize_reduction()
    chosen = rows().realize_reduction("id:insn", by="shared")
    assert "realize_reduction(insn_id_filter='id:insn', by='shared')" in chosen.script()


# }}}
# {{{ faults in the text


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("acc, 8)", "acc, 4)", "does not get each partial result once"),
        ("~0u", "65535u", "waits for lanes that do not come"),
        ("        __syncthreads();\n", "", "no barrier between"),
        ("        __syncthreads();\n", "        __syncwarp();\n", "no barrier between"),
        ("    acc = 0.0f; ", "    acc = 1.0f; ", "the line gives acc = 1.0"),
        ("% 32 == 0", "% 16 == 0", "two threads write one cell"),
        ("threadIdx.x % 32]", "threadIdx.x % 16]", "does not get each partial result once"),
        ("acc_warps[32]", "acc_warps[16]", "is outside of 'acc_warps'"),
        ("acc += __shfl", "acc = __shfl", "does not get each partial result once"),
        ("acc += __shfl", "acc *= __shfl", "no combination of two partial results"),
    ],
)
def test_the_proof_finds_faults_in_a_combination(old, new, finding):
    knl = rows().split_iname("j", 1024, inner_tag="l.0").tag_inames("i: g.0")
    source = knl.cuda()
    assert old in source
    proof = prove_source(knl, source.replace(old, new, 1))
    assert finding in str(proof)


@pytest.mark.parametrize(
    ("length", "by", "old", "new"),
    [
        (7, None, "long long acc_other", "int acc_other"),
        (7, None, "long long acc_other", "unsigned long long acc_other"),
        (64, None, "__shared__ long long", "__shared__ int"),
        (64, "shared", "__shared__ long long", "__shared__ double"),
    ],
)
def test_the_proof_finds_partial_results_of_another_type(length, by, old, new):
    """What is kept in a narrower type on the way is not the sum any more."""
    knl = rows(dtype="int32", result="int64").split_iname("j", length, inner_tag="l.0")
    knl = knl if by is None else knl.realize_reduction(by=by)
    assert knl.prove().ok and old in knl.cuda()
    assert "holds partial results as" in str(prove_source(knl, knl.cuda().replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("int const acc_thread", "signed char const acc_thread", "held as|more than"),
        ("acc, 16)", "acc, 48)", "from a lane that there is not"),
    ],
)
def test_the_proof_finds_numbers_of_threads_that_do_not_fit(old, new, finding):
    knl = rows().split_iname("j", 96, inner_tag="l.0").split_iname("i", 2, inner_tag="l.1")
    source = knl.cuda()
    assert old in source and knl.prove().ok
    assert re.search(finding, str(prove_source(knl, source.replace(old, new, 1))))


def test_the_proof_finds_a_combination_that_is_lost_or_misplaced():
    knl = rows().split_iname("j", 64, inner_tag="l.0").tag_inames("i: g.0")
    source = knl.cuda()
    start = source.index("    {   ")
    end = source.index("    }\n", start) + 6
    lost = source[:start] + source[end:]
    assert "no line of the text belongs to 'acc_combine'" in str(prove_source(knl, lost))
    loop = source.index("    for (int j_outer")
    early = source[:loop] + source[start:end] + source[loop:start] + source[end:]
    assert "expected 'insn_update', but found 'acc_combine'" in str(prove_source(knl, early))
    twice = source[:end] + source[start:end] + source[end:]
    assert "goes on as a partial result" in str(prove_source(knl, twice))


def test_the_proof_finds_scratch_memory_that_is_used_again_too_early():
    knl = rows().split_iname("j", 64, inner_tag="l.0")
    source = knl.cuda()
    assert source.count("__syncthreads") == 2
    proof = prove_source(knl, source.replace("            __syncthreads();\n", "", 1))
    assert "no barrier between" in str(proof)


# }}}


# {{{ costs


@pytest.mark.parametrize(
    ("by", "operations", "shuffles", "wavefronts", "barriers"),
    [
        # Five exchanges of two warps, then two values of which each thread reads both.
        ("shuffle", 5 * 64 + 64, 10, 2 + 4, 1),
        # All store and read once; half of them, a quarter, ... take in one and store.
        ("shared", 63, 0, 2 + 2 * (1 + 1 + 1 + 1 + 1 + 1) + 2, 7),
        # Each thread adds by itself: 32 of a warp take turns.
        ("atomic", 64, 0, 1 + 64 + 2, 2),
    ],
)
def test_costs_of_a_combination(by, operations, shuffles, wavefronts, barriers):
    knl = rows().tag_inames("i: g.0").split_iname("j", 64, inner_tag="l.0")
    costs = knl.realize_reduction(by=by).costs(n=10, m=1000)
    (found,) = costs.combinations
    assert found.times == 10
    each = found.each
    counts = (each.operations, each.shuffles, each.wavefronts, each.barriers)
    assert counts == (operations, shuffles, wavefronts, barriers)
    assert sum(barrier.times for barrier in costs.barriers) == 10 * barriers
    assert "acc_combine" in str(costs)


# }}}


# {{{ examples


@pytest.mark.parametrize("name", ["softmax", "layernorm", "full_sum", "spmv", "bitonic"])
def test_examples(name, golden):
    example = load(name)
    for label, knl in example.make().items():
        proof = knl.prove()
        assert proof.ok, f"{label}: {proof}"
        if label != "plain":
            title = "_".join(re.findall(r"\w+", label))
            golden(f"collective_{name}_{title}.txt", f"{knl}\n{knl.cuda()}")


# }}}


# {{{ accumulators that start elsewhere


def test_a_start_in_loops_and_on_axes_of_its_own():
    knl = rows().split_iname("i", 8).duplicate_inames("i_inner", "id:insn_init")
    knl = knl.split_iname("j", 4, inner_tag="l.0")
    check(knl, sums)
    threads = knl.tag_inames("i_inner: l.1, i_inner_0: l.1, i_outer: g.0")
    assert "combine acc: sum over j_inner: 4 threads" in str(threads)
    check(threads, sums)


def test_tiles_of_accumulators_in_registers():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )
    knl = knl.split_iname("k", 32, inner_tag="l.0")
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 70), dtype=np.float32), rng.random((70, 3), dtype=np.float32)
    for tag in ("unr", "ilp"):
        tiled = knl.split_iname("i", 2, inner_tag=tag, outer_tag="g.0")
        tiled = tiled.split_iname("j", 2, inner_tag=tag, outer_tag="g.1")
        np.testing.assert_allclose(tiled.executor("host")(a=a, b=b), a @ b, rtol=1e-4)
        assert tiled.prove().ok
    last = knl.split_iname("k_outer", 2, slabs=(0, 1)).tag_inames("i: g.0, j: g.1")
    np.testing.assert_allclose(last.executor("host")(a=a, b=b), a @ b, rtol=1e-4)
    assert last.prove().ok


# }}}


# {{{ accumulators of many cells


def buffered(cell="i", more="", shape=20):
    """Partial results of each block in an array of its own, of which threads hold parts."""
    return lk.make_kernel(
        "{ [b, i, k]: 0 <= b < n and 0 <= i < 16 and 0 <= k < 4 }",
        f"h[{cell}] = h[{cell}] + x[b, i, k] {{atomic, id=up}}\n{more}",
        [
            lk.GlobalArg("h", shape=shape),
            lk.GlobalArg("x", shape="n, 16, 4"),
            lk.GlobalArg("c", shape="n, 16"),
            ...,
        ],
        dtypes={"h, x, c": "int32"},
        assumptions="n >= 1",
    ).buffer_array("h", ["i", "k"], partial=True)


AGAIN = "h[i + 2] = h[i + 2] + 3*x[b, i, k] {atomic, id=again}"
CELLS = {
    "a cell for each": lambda: buffered("15 - i"),
    "cells are met twice": lambda: buffered("i // 2"),
    "cells are met later": lambda: buffered("i % 8"),
    "the first is peeled": lambda: buffered().peel_iname("i", first=1),
    "two lines, other cells": lambda: buffered(more=AGAIN),
    "two lines, one for some": lambda: buffered(more=f"if i > 3\n{AGAIN}\nend"),
    "one cell, and a line for some blocks": lambda: buffered(
        "0", "if b > 1\nh[0] = h[0] + 3*x[b, i, k] {atomic, id=upon}\nend"
    ),
    "cells are unrolled": lambda: buffered("i // 2").split_iname("i", 4, inner_tag="unr"),
}


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_is_combined_once(name):
    plain = CELLS[name]()
    knl = plain.tag_inames("b: g.0, k: l.0")
    assert "combine" in str(knl) and knl.prove().ok and knl.prove(text=True).ok
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, (3, 16, 4)).astype("int32")
    given = {"x": x, "c": np.zeros((3, 16), "int32")}
    given = {n: a for n, a in given.items() if n in knl.arg_by_name}
    want = plain.executor("reference")(h=np.arange(20, dtype="int32"), **given)
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order)(h=np.arange(20, dtype="int32"), **given)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", [*CELLS][1:])
def test_the_proof_finds_cells_that_are_combined_twice_or_never(name, monkeypatch):
    """Where the combination follows one of the updates, whatever cells that has."""
    placement = "loopkit._combined._Placement"
    monkeypatch.setattr(f"{placement}.is_once", lambda *_: True)
    monkeypatch.setattr(f"{placement}.is_of_all", lambda *_: True)
    proof = CELLS[name]().tag_inames("b: g.0, k: l.0").prove()
    assert {finding.kind for finding in proof.findings} & {"combination", "instances"}


def test_threads_without_an_instance_start_no_result_that_another_loop_reads():
    """Thread ``i`` has a sum for ``s = i`` alone; all threads would start theirs for each ``s``."""
    knl = lk.make_kernel(
        ["{ [s]: 0 <= s < 4 }", "{ [i]: 0 <= i < 4 and i = s }", "{ [j]: 0 <= j < 8 }"],
        """
        for s
            for i
                y[i] = sum(j, x[j, i])
            end
        end
        """,
        dtypes={"x": "float32"},
    )
    together = knl.tag_inames({"i": "l.0", "j": "l.1"})
    assert together.prove().ok
    knl = knl.privatize_temporaries_with_inames(["i"], only_var_names=["acc"])
    knl = knl.duplicate_inames(["s", "i"], "id:insn")
    assert knl.tag_inames({"i": "l.0", "i_0": "l.0"}).prove().ok
    with pytest.raises(lk.IllegalTransformError, match="combined once"):
        knl.tag_inames({"i": "l.0", "i_0": "l.0", "j": "l.1"})


def test_an_accumulator_that_starts_on_an_axis_is_its_threads_own():
    """The start and the updates name the axis otherwise: nothing is added up over threads."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 6 and 0 <= j < n }", "y[i] = sum(j, x[j, i])", dtypes={"x": "int32"}
    )
    knl = knl.tag_inames("i: l.0").rename_iname("i", "k", within="id:insn_update")
    assert "sum over j" in str(knl)
    x = np.arange(30, dtype=np.int32).reshape(5, 6)
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(knl.executor(executor)(x=x), x.sum(0))
    assert knl.prove().ok


def test_threads_beyond_a_loop_combine_no_cells_that_there_are_not():
    """Three cells of a row of six lie on a block's four threads: the fourth has no cell."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 6 and 0 <= j < 8 and 0 <= k < 4 }",
        """
        y[i] = sum(j, x[j, i])
        w[k] = k
        """,
        dtypes={"x": "float32", "y": "float32", "w": "int32"},
    ).tag_inames({"j": "l.1", "k": "l.0"})
    private = knl.privatize_temporaries_with_inames(["i"], only_var_names=["acc"])
    with pytest.raises(lk.IllegalTransformError, match="may lie outside of the array"):
        private.split_iname("i", 3, inner_tag="l.0")
    for split in (knl.split_iname("i", 3, inner_tag="l.0"), private.split_iname("i", 3)):
        x = np.arange(48, dtype=np.float32).reshape(8, 6)
        np.testing.assert_array_equal(split.executor("host")(x=x)[0], x.sum(0))
        assert split.prove().ok


@pytest.mark.parametrize("tags", ["k: l.0", "i: l.0", "i: l.0, k: l.1"])
def test_cells_that_data_choose_are_not_combined(tags):
    """Nobody knows which they are; an array that all threads share needs no combination."""
    knl = buffered("c[b, i] % 8", shape=8)
    with pytest.raises(lk.LoopkitError, match="would not go where it belongs"):
        knl.tag_inames(tags)
    shared = knl.set_temporary_address_space("h_buf", "shared").tag_inames(tags)
    assert "atomicAdd(&h_buf" in shared.cuda()


def test_lines_that_run_for_more_than_they_must_need_no_combination_there():
    """Rows beyond the last one, of which nothing is read."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        """
        <> t, <>_ = argmin(j, x[i, j], j)
        y[i] = max(j, t + j)
        """,
        dtypes={"x, y": "float64"},
    )
    knl = knl.tag_inames("j: l.0").split_iname("i", 2, inner_tag="ilp", outer_tag="g.0")
    assert knl.prove().ok


# }}}
