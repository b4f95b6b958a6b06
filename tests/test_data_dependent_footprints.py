"""Footprints of data-dependent accesses: what is known of the data bounds them."""

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk


def gather(index: str = "i + near[j]", low: object = 0, end: object = 8, **more) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        f"out[i, j] = x[{index}]" + more.pop("rest", ""),
        [lk.GlobalArg("x", shape="n + 8"), lk.GlobalArg("near", shape=16), ...],
        dtypes={"x, out": "float32", "near": "int32"},
        assumptions="n >= 1",
        name="gather",
    )
    return knl.assume_within("near", low, end) if end is not None else knl


def tiled(knl: lk.Kernel) -> lk.Kernel:
    return knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


def rows() -> lk.Kernel:
    """Rows of a matrix, each chosen twice."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 5 }",
        "out[i, k] = x[place[i], k]*w[i] + x[place[n - 1 - i], k]",
        [lk.GlobalArg("x", shape="m, 5"), lk.GlobalArg("place", shape="n"), ...],
        dtypes={"x, out, w": "float32", "place": "int32"},
        assumptions="n >= 1 and m >= 9",
        name="rows",
    ).assume_within("place", 2, 9)


def ruled() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        "f(q) := sin(x[q])\nout[i, j] = f(i + near[j])*i + f(i + near[15 - j])",
        [lk.GlobalArg("x", shape="n + 8"), lk.GlobalArg("near", shape=16), ...],
        dtypes={"x, out": "float32", "near": "int32"},
        assumptions="n >= 1",
        name="ruled",
    ).assume_within("near", 0, 8)


def table() -> lk.Kernel:
    """A table that the kernel makes itself, for each row anew."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 16 }",
        """
        for i
            t[k] = 2*x[i] + k
            out[i, j] = t[near[j]]
        end
        """,
        [lk.GlobalArg("near", shape=16), lk.TemporaryVariable("t", shape=16), ...],
        dtypes={"x, out": "float32", "near": "int32", "t": "float32"},
        assumptions="n >= 1",
        name="table",
    ).assume_within("near", 0, 8)


def scatter() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 16 }",
        "out[i + near[j]] = out[i + near[j]] + x[i, j] {atomic}",
        [lk.GlobalArg("out", shape="n + 8"), lk.GlobalArg("near", shape=16), ...],
        dtypes={"x, out": "float32", "near": "int32"},
        assumptions="n >= 1",
        name="scatter",
    ).assume_within("near", 2, 7)


EITHER = "i + (near[j] if near[j] >= 2 else 7)"
ROW = {"sweep_inames": "j", "default_tag": None}
TILE = {"sweep_inames": "i_inner, j"}
SCHEDULES = {
    "one row": (lambda: gather().add_prefetch("x", **ROW), (8,)),
    "a tile": (lambda: tiled(gather()).add_prefetch("x", **TILE), (39,)),
    "split after": (
        lambda: (
            gather()
            .split_iname("i", 32)
            .add_prefetch("x", **TILE)
            .split_iname("j", 5)
            .tag_inames("i_outer: g.0, i_inner: l.0")
        ),
        (39,),
    ),
    "index array, too": (
        lambda: tiled(gather()).add_prefetch("x", **TILE).add_prefetch("near", "j"),
        (39,),
    ),
    "index array first": (
        lambda: tiled(gather()).add_prefetch("near", "j").add_prefetch("x", **TILE),
        (39,),
    ),
    "beside another": (
        lambda: tiled(gather("near[j] + i", rest=" + x[i + 3]")).add_prefetch("x", **TILE),
        (39,),
    ),
    "remainder": (
        lambda: tiled(gather("i + near[15 - j] % 4", 0, 90)).add_prefetch("x", **TILE),
        (35,),
    ),
    "clamped": (
        lambda: tiled(gather("min(i + max(near[j], 0), n + 7)", -5, 12)).add_prefetch("x", **TILE),
        (43,),
    ),
    "chosen by the chosen": (
        lambda: tiled(gather("i + near[near[j]]")).add_prefetch("x", **TILE),
        (39,),
    ),
    "either": (
        lambda: tiled(gather(EITHER, -9, 8)).add_prefetch("x", **TILE),
        (37,),
    ),
    "all of a short array": (
        lambda: gather("near[j]", 0, "n + 8").fix_parameters(n=5).add_prefetch("x", **ROW),
        (13,),
    ),
    "rows": (
        lambda: (
            rows()
            .split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
            .add_prefetch("x", "i_inner, k")
        ),
        (7, 5),
    ),
    "columns of rows": (
        lambda: rows().prioritize_loops("k, i").add_prefetch("x", default_tag="unr"),
        (7,),
    ),
    "rule": (lambda: tiled(ruled()).precompute("f", "i_inner, j"), (39,)),
    "a rule's row": (lambda: ruled().precompute("f", "j", default_tag="unr"), (8,)),
    "table": (lambda: table().add_prefetch("t", "j", default_tag=None), (8,)),
    "table of a block": (
        lambda: (
            table()
            .set_temporary_address_space("t", "shared")
            .split_iname("i", 3, outer_tag="g.0")
            .tag_inames("j: l.0, k: l.0")
            .add_prefetch("t", "j")
        ),
        (8,),
    ),
    "partial results": (
        lambda: scatter().buffer_array("out", "j", default_tag=None, partial=True),
        (5,),
    ),
    "a tile's partial results": (
        lambda: tiled(scatter()).buffer_array("out", "i_inner, j", partial=True),
        (36,),
    ),
}


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_it_runs(name: str) -> None:
    make, shape = SCHEDULES[name]
    knl = make()
    assert shape in [t.shape for t in knl.temporaries]
    assert knl.prove().ok
    for n in (1, 5, 32, 37):
        random = np.random.default_rng(n)
        given: dict[str, object] = {"n": n} if "n" in knl.sizes else {}
        for arg in knl.args:
            if isinstance(arg, lk.ArrayArg) and arg.name not in ("out", "near", "place"):
                extents = [eval(str(e), {"n": n, "m": 11}) for e in arg.shape]
                given[arg.name] = random.random(extents, np.float32)
        if "near" in knl.arg_by_name:
            low, end = (2, 7) if knl.name == "scatter" else (0, 8)
            given["near"] = random.integers(low, end, 16).astype(np.int32)
        else:
            given["place"] = random.integers(2, 9, n).astype(np.int32)
        if knl.name == "scatter":
            given["out"] = np.zeros(n + 8, np.float32)
        copies = [{k: np.copy(v) for k, v in given.items()} for _ in range(4)]
        want = knl.executor("reference")(**copies[3])
        for order, mine in zip(("ascending", "descending", "random"), copies, strict=False):
            found = knl.executor("host", order=order, seed=1)(**mine)
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_generated_texts(golden: Golden) -> None:
    texts = [f"{name}\n{(knl := make())}\n\n{knl.cuda()}" for name, (make, _) in SCHEDULES.items()]
    golden("chosen_cells.txt", "\n\n".join(texts))


@pytest.mark.parametrize(
    "knl, why",
    [
        (gather(end=None), r"x\[i \+ near\[j\]\] along axis 0.*assume_within\('near', 0, 64\)"),
        (gather(end="n"), r"fix_parameters\(\.\.\.\) makes sizes numbers"),
        (gather("i + near[j]*near[j]"), r"nothing says that they are a constant number"),
    ],
)
def test_of_no_constant_size(knl: lk.Kernel, why: str) -> None:
    with pytest.raises(lk.IllegalTransformError, match="(?s)" + why):
        knl.add_prefetch("x", "j", default_tag=None)


def test_what_is_written_meanwhile_is_fetched_anew() -> None:
    """The text reads a table that changes: one copy does not serve both uses."""
    knl = lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j, k, l < 16 }",
        """
        for i
            t[k] = x[i] + k {id=first}
            out[i, j] = t[near[j]] {id=one}
            t[l] = x[i]*l {id=second}
            more[i, j] = t[near[j]] {id=two}
        end
        """,
        [lk.GlobalArg("near", shape=16), lk.TemporaryVariable("t", shape=16), ...],
        dtypes={"x, out, more": "float32", "near": "int32", "t": "float32"},
        assumptions="n >= 1",
    ).assume_within("near", 0, 8)
    assert knl.add_prefetch("t", "j", default_tag=None, within="id:two").prove().ok
    with pytest.raises(lk.IllegalTransformError, match="'two'"):
        knl.add_prefetch("t", "j", default_tag=None)


def test_of_what_nothing_is_asserted_the_whole_axis_is_copied() -> None:
    knl = gather("near[j]", end=None).fix_parameters(n=9).add_prefetch("x", **ROW)
    assert knl.temporary_by_name["x_r"].shape == (17,)
    proof = knl.prove()
    assert not proof.findings and "only data decides it" in str(proof)


def test_buffers_that_data_may_leave_alone() -> None:
    """Which cells are written, data decide: the others must be stored as they were."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 8 }",
        "h[c[i]] = x[i]",
        [lk.GlobalArg("h", shape=16), lk.GlobalArg("c", shape=8), ...],
        dtypes={"x, h": "float32", "c": "int32"},
    ).assume_within("c", 2, 10)
    buffered = knl.buffer_array("h", "i", default_tag=None, unchecked=True)
    assert "h_buf[h_init_dim_0] = h[h_init_dim_0 + 2]" in str(buffered)
    with pytest.raises(lk.UndecidedError, match="written where data decide"):
        knl.buffer_array("h", "i", default_tag=None)


@pytest.mark.parametrize("tag", (None, "l.auto"))
def test_a_copy_of_a_copy_loads_what_the_first_one_holds(tag: str | None) -> None:
    """The first copy has room for all that data may choose, but the array may be shorter."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < m }",
        "out[i] = x[near[i]]",
        [lk.GlobalArg("x", shape="n"), ...],
        dtypes={"x, out": "float32", "near": "uint8"},
        assumptions="n, m >= 1",
    ).assume_within("near", 0, "n")
    knl = knl.add_prefetch("x", default_tag=None).add_prefetch("x_r", default_tag=tag)
    assert knl.cuda().count("_dim_0 < min(") == 2
    assert knl.prove().ok


@pytest.mark.parametrize(
    ("value", "written", "read"),
    (
        ("t[k]", "j < n", "k < n"),
        ("t[k]", "(j + n) % 2 == 0", "(k + n) % 2 == 0"),
        ("f(k)", "j < n", "k < n"),
        ("f(k)", "j > n", "k > n + 1"),
        ("g(k)", "j < n", "k < min(n - 1, 7)"),
    ),
)
def test_a_box_of_a_temporary_is_loaded_where_something_writes_it(
    value: str, written: str, read: str
) -> None:
    """A bounding box has cells that are never read, and maybe never written."""
    knl = lk.make_kernel(
        "{ [i, j, k, q]: 0 <= i < m and 0 <= j < 8 and 0 <= k < 8 and 0 <= q < 2 }",
        f"""
        f(x) := 2*t[x]
        g(x) := sum(q, t[x + q])
        for i
            for j
                t[j] = a[i, j]        {{if={written}}}
            end
            for k
                o[i, k] = {value}     {{if={read}}}
            end
        end
        """,
        [lk.TemporaryVariable("t", shape=8), ...],
        dtypes={"a, o, t": "float32"},
        assumptions="n, m >= 1",
    )
    take = knl.add_prefetch if value == "t[k]" else knl.precompute
    fast = take(value[0], "k", default_tag=None, fetch_bounding_box=True)
    assert fast.prove().ok
