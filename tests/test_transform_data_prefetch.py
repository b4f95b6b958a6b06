import numpy as np
import pytest
from data_kernels import (
    five_point,
    global_args,
    matmul,
    register_tiled,
    run_on_host,
    sgemm,
    staged_matmul,
    star,
    star_of,
    tiled_matmul,
    transpose,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_instances import results
from seams import address_space_of as space_of
from seams import path_inames, statements_in, to_text
from staging_checks import check_fetch, instances

import loopkit as lk
from loopkit import AddressSpace, IllegalTransformError, InvalidArgumentError, UnknownNameError


def text_of(knl, statement):
    s = knl.statement_by_id[statement]
    return f"{to_text(s.lhs)} = {to_text(s.rhs)}"


def loops_of(knl, statement):
    return path_inames(knl.paths[statement])


def tags_of(knl, statement):
    return {i: str(t) for i, t in knl.tags if i in knl.statement_by_id[statement].inames}


# {{{ tiled product


def test_tiled_matmul():
    before = tiled_matmul()
    knl = before.add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
    assert text_of(knl, "fetch_a") == (
        "a_s[a_dim_0, a_dim_1] = a[16*i_outer + a_dim_0, 16*k_outer + a_dim_1]"
    )
    fetch = knl.statement_by_id["fetch_a"]
    assert (fetch.kind, fetch.made_by) == ("move", "add_prefetch('a')")
    assert loops_of(knl, "fetch_a") == ("k_outer",)
    assert tags_of(knl, "fetch_a") == {
        "i_outer": "g.1",
        "j_outer": "g.0",
        "a_dim_0": "l.1",
        "a_dim_1": "l.0",
    }
    copy = knl.temporary_by_name["a_s"]
    assert (copy.shape, copy.address_space) == ((16, 16), AddressSpace.LOCAL)
    assert copy.dtype == np.float32
    assert "a_s[i_inner, k_inner]*b[" in text_of(knl, "insn_update")
    assert list(statements_in(knl.tree)) == ["insn_init", "fetch_a", "insn_update", "insn"]
    check_fetch(before, knl, "fetch_a", "a")
    second = knl.add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    assert list(statements_in(second.tree))[1:4] == ["fetch_a", "fetch_b", "insn_update"]
    check_fetch(knl, second, "fetch_b", "b")


def test_only_cells_in_use_are_fetched():
    knl = staged_matmul()
    at = {"n": 37, "m": 45, "l": 29, "j_outer": 0}
    assert instances(knl, "fetch_a", i_outer=0, k_outer=0, **at) == 256
    assert instances(knl, "fetch_a", i_outer=2, k_outer=0, **at) == 5 * 16
    assert instances(knl, "fetch_a", i_outer=2, k_outer=1, **at) == 5 * 13


def test_default_is_over_threads_and_history_replays():
    knl = tiled_matmul().add_prefetch("a", ["i_inner", "k_inner"])
    assert knl == tiled_matmul().add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
    assert knl.history[-1].call() == (".add_prefetch('a', sweep_inames=['i_inner', 'k_inner'])")
    assert tiled_matmul().add_prefetch("a", "i_inner, k_inner").key == knl.key


def test_names_can_be_chosen():
    knl = tiled_matmul().add_prefetch(
        "a",
        ["i_inner", "k_inner"],
        dim_arg_names=["ai", "ak"],
        temporary_name="tile",
        prefetch_insn_id="load_tile",
    )
    assert text_of(knl, "load_tile") == "tile[ai, ak] = a[16*i_outer + ai, 16*k_outer + ak]"


def test_plain_and_unrolled_fetch_loops():
    knl = tiled_matmul().add_prefetch("a", ["k_inner"], default_tag=None)
    assert text_of(knl, "fetch_a") == (
        "a_r[a_dim_1] = a[16*i_outer + i_inner, 16*k_outer + a_dim_1]"
    )
    assert loops_of(knl, "fetch_a") == ("k_outer", "a_dim_1")
    assert space_of(knl, knl.temporary_by_name["a_r"]) is AddressSpace.PRIVATE
    assert tags_of(knl, "fetch_a")["i_inner"] == "l.1"
    check_fetch(tiled_matmul(), knl, "fetch_a", "a")
    knl = tiled_matmul().add_prefetch("a", ["k_inner"], default_tag="unr")
    assert tags_of(knl, "fetch_a")["a_dim_1"] == "unr"


def test_private_memory_is_filled_by_its_thread():
    knl = tiled_matmul().add_prefetch("a", ["k_inner"], temporary_address_space="private")
    assert loops_of(knl, "fetch_a") == ("k_outer", "a_dim_1")


THREADS = "i_outer: g.1, i_inner: l.1, j_outer: g.0, j_inner: l.0"
FETCHES = "a_dim_0: l.1, a_dim_1: l.0, b_dim_0: l.1, b_dim_1: l.0"


@pytest.mark.host
@pytest.mark.parametrize(
    "tags", [(f"{THREADS}, {FETCHES}",), (THREADS, FETCHES), (FETCHES, *THREADS.split(", "))]
)
def test_the_memory_of_a_copy_follows_from_later_tags(tags, rng):
    """Private while there are no threads, shared once they fill it; accumulators stay scalars."""
    knl = (
        matmul()
        .split_iname("i", 16)
        .split_iname("j", 16)
        .split_iname("k", 16)
        .prioritize_loops("i_outer, j_outer, k_outer, i_inner, j_inner, k_inner")
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag=None)
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag=None)
    )
    copy = knl.temporary_by_name["a_r"]
    assert space_of(knl, copy) is AddressSpace.PRIVATE
    for one in tags:
        knl = knl.tag_inames(one)
    assert space_of(knl, copy) is AddressSpace.LOCAL
    source = knl.cuda()
    assert "__shared__ __align__(16) float a_r[16][16];" in source and "float acc;" in source
    assert knl.prove().ok
    a, b = rng((37, 21)), rng((21, 50))
    for order in ("ascending", "descending", "random"):
        np.testing.assert_allclose(knl.executor("host", order=order)(a=a, b=b), a @ b, rtol=1e-5)


@pytest.mark.host
def test_copies_side_by_side_are_innermost_at_once(rng):
    """Loops tagged ilp leave the loops outside of them to a later fetch."""
    knl = (
        matmul()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 64, outer_tag="g.0")
        .split_iname("j_inner", 16, outer_tag="ilp", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"])
        .add_prefetch("b", ["k_inner", "j_inner_outer", "j_inner_inner"])
    )
    assert loops_of(knl, "insn_update") == ("k_outer", "k_inner", "j_inner_outer")
    assert loops_of(knl, "fetch_b")[0] == "k_outer"
    assert knl.temporary_by_name["b_s"].shape == (16, 64)
    assert knl.prove().ok
    a, b = rng((37, 21)), rng((21, 150))
    for order in ("ascending", "descending", "random"):
        np.testing.assert_allclose(knl.executor("host", order=order)(a=a, b=b), a @ b, rtol=1e-5)


@pytest.mark.host
def test_tiled_matmul_runs(rng):
    a, b = rng((37, 29)), rng((29, 45))
    arrays = {"a": a, "b": b, "c": np.full((37, 45), np.nan, np.float32)}
    found = run_on_host(staged_matmul(), arrays, {"n": 37, "m": 45, "l": 29})
    np.testing.assert_allclose(found["c"], a @ b, rtol=1e-5)


@pytest.fixture
def rng():
    generator = np.random.default_rng(3)
    return lambda shape: generator.random(shape, dtype=np.float32)


# }}}

# {{{ register tiles


def test_register_tiled_sgemm():
    knl = sgemm()
    before = register_tiled()
    assert knl.temporary_by_name["acc"].shape == (8, 8)
    assert [knl.temporary_by_name[t].shape for t in ("a_s", "b_s", "a_s_r", "b_s_r")] == [
        (128, 8),
        (8, 128),
        (8,),
        (8,),
    ]
    assert space_of(knl, knl.temporary_by_name["a_s_r"]) is AddressSpace.PRIVATE
    assert loops_of(knl, "fetch_a") == ("k_outer", "a_round", "a_dim_0", "a_dim_1")
    assert tags_of(knl, "fetch_a") == {
        "i_outer": "g.1",
        "j_outer": "g.0",
        "a_round": "unr",
        "a_thread_0": "l.0",
        "a_thread_1": "l.1",
    }
    assert loops_of(knl, "fetch_a_s") == ("k_outer", "k_inner", "a_s_dim_0")
    assert text_of(knl, "fetch_a_s") == "a_s_r[a_s_dim_0] = a_s[8*i_t + a_s_dim_0, k_inner]"
    assert text_of(knl, "insn_update").endswith("a_s_r[i_reg]*b_s_r[j_reg]")
    order = list(statements_in(knl.tree))
    assert order == ["insn_init", "fetch_a", "fetch_b", "fetch_a_s", "fetch_b_s", *order[5:]]
    first = before.add_prefetch("a", ["i_t", "i_reg", "k_inner"])
    check_fetch(before, first, "fetch_a", "a")
    at = {"n": 500, "m": 500, "l": 61, "j_outer": 0}
    # Every one of 256 threads loads 4 of the 1024 cells.
    assert instances(knl, "fetch_a", i_outer=0, k_outer=0, **at) == 1024
    assert instances(knl, "fetch_a", i_outer=0, k_outer=0, a_thread_0=3, a_thread_1=9, **at) == 4
    assert instances(knl, "fetch_a", i_outer=3, k_outer=7, **at) == (500 - 384) * 5


def test_loops_that_a_copy_depends_on_move_out_of_swept_ones():
    knl = (
        matmul()
        .split_iname("i", 16, outer_tag="g.0")
        .split_iname("k", 16)
        .prioritize_loops("i_inner,j,k_outer,k_inner")
    )
    new = knl.add_prefetch("a", ["i_inner", "k_inner"], default_tag=None)
    assert loops_of(new, "fetch_a") == ("j", "k_outer", "a_dim_0", "a_dim_1")
    assert loops_of(new, "insn_update") == ("j", "k_outer", "i_inner", "k_inner")
    assert new.prove().ok


def test_tags_come_before_a_prefetch_or_behind_it():
    tags = {"i_outer": "g.1", "i_inner": "l.1", "j_outer": "g.0", "j_inner": "l.0"}
    split = five_point().untag_inames(list(tags))
    early = split.tag_inames(tags).add_prefetch("u", "i_inner, j_inner")
    late = split.add_prefetch("u", "i_inner, j_inner").tag_inames(tags)
    assert late.prove().ok
    at = {"n": 100, "m": 70}
    assert late.costs(**at).moved == early.costs(**at).moved


def test_outer_loops_of_a_fetch_move_out_of_all_others():
    """Also of a loop that moves nothing of the copy, whichever of two copies comes first."""
    knl = matmul()
    for iname in ("i", "j"):
        knl = knl.split_iname(iname, 8, outer_tag="g.0" if iname == "j" else "g.1")
    knl = knl.split_iname("k", 8)
    where = {"fetch_outer_inames": "i_outer, j_outer, k_outer", "default_tag": None}
    first = knl.add_prefetch("a", ["i_inner", "k_inner"], **where)
    second = knl.add_prefetch("b", ["j_inner", "k_inner"], **where)
    for new, fetch in ((first, "fetch_a"), (second, "fetch_b")):
        assert loops_of(new, fetch)[0] == "k_outer"
        assert loops_of(new, "insn_update") == ("k_outer", "i_inner", "j_inner", "k_inner")


def test_a_loop_that_may_not_move_out_is_refused_with_a_witness():
    knl = lk.make_kernel(
        "{ [x, t]: 1 <= x < n and 0 <= t < m }",
        "u[x, t] = u[x - 1, t + 1] + a[t, x] {id=step}",
        [lk.GlobalArg("u", "float32", shape="n, m + 1"), ...],
        dtypes={"a": "float32"},
        assumptions="n, m >= 1",
    ).split_iname("x", 16)
    with pytest.raises(IllegalTransformError) as info:
        knl.add_prefetch("a", "x_inner", default_tag=None)
    assert info.value.witness.cell == (1, 1)
    assert "'step' (x=2, t=0) would read u[1, 1] before 'step' (x=1, t=1)" in str(info.value)


@pytest.mark.parametrize("order", ["i_inner,j,k_outer,k_inner", "i_inner,j,k_inner,k_outer"])
def test_what_a_fetch_depends_on_moves_out_of_swept_loops(order):
    """So does a schedule whose tags come late what it does where they come early."""
    tiles = matmul().split_iname("i", 16).split_iname("k", 16)
    early = tiles.tag_inames("i_outer: g.0, i_inner: l.0").add_prefetch("a", "i_inner, k_inner")
    late = tiles.prioritize_loops(order).add_prefetch("a", "i_inner, k_inner")
    late = late.tag_inames("i_outer: g.0, i_inner: l.0")
    for knl in (early, late):
        assert knl.temporary_by_name["a_s"].shape == (16, 16)
        path = loops_of(knl, "insn_update")
        assert path.index("k_outer") < path.index("k_inner")
        assert "k_outer" in loops_of(knl, "fetch_a")
        assert "k_inner" not in loops_of(knl, "fetch_a")
        assert knl.prove().ok


def test_a_fetch_that_no_legal_order_of_loops_allows():
    knl = lk.make_kernel(
        "{ [x, y]: 0 < x < 16 and 0 <= y < n }",
        "a[x, y] = a[x - 1, y + 1] + b[x, y] {id=step}",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
    )
    with pytest.raises(IllegalTransformError, match="has written it"):
        knl.add_prefetch("b", "x", default_tag=None)


@pytest.mark.host
@pytest.mark.parametrize("tile", [(32, 32, 8, 2), (32, 16, 4, 2), (24, 40, 5, 2)])
def test_register_tiles_run(rng, tile):
    a, b = rng((37, 29)), rng((29, 45))
    arrays = {"a": a, "b": b, "c": np.full((37, 45), np.nan, np.float32)}
    found = run_on_host(sgemm(*tile), arrays, {"n": 37, "m": 45, "l": 29})
    np.testing.assert_allclose(found["c"], a @ b, rtol=1e-5)


# }}}

# {{{ stencils


def test_five_point_halo():
    before = five_point()
    knl = before.add_prefetch("u", ["i_inner", "j_inner"])
    assert knl.temporary_by_name["u_s"].shape == (18, 18)
    text = text_of(knl, "fetch_u")
    assert text == "u_s[u_dim_0, u_dim_1] = u[16*i_outer + u_dim_0 - 1, 16*j_outer + u_dim_1 - 1]"
    assert "u_s[i_inner, j_inner + 1] + u_s[i_inner + 2, j_inner + 1]" in text_of(knl, "insn")
    check_fetch(before, knl, "fetch_u", "u")
    at = {"n": 100, "m": 100, "i_outer": 2, "j_outer": 3}
    assert instances(knl, "fetch_u", **at) == 18 * 18
    # 324 cells on 256 threads: each thread has one or two.
    counts = {
        instances(knl, "fetch_u", u_thread_0=x, u_thread_1=y, **at)
        for x in (0, 15)
        for y in (0, 4, 15)
    }
    assert counts == {1, 2}


def test_halo_at_the_rim_stays_inside_the_array():
    knl = five_point().add_prefetch("u", ["i_inner", "j_inner"])
    at = {"n": 20, "m": 100, "j_outer": 1}
    # Rows 0 to 16 of 20, then 15 to 19.
    assert instances(knl, "fetch_u", i_outer=0, **at) == 17 * 18
    assert instances(knl, "fetch_u", i_outer=1, **at) == 5 * 18


def plane_of_star():
    knl = (
        star()
        .split_iname("x", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("y", 8, outer_tag="g.1", inner_tag="l.1")
    )
    y, x = "8*y_outer + y_inner", "16*x_outer + x_inner"
    spread = [f"z, {y} - 4, {x}", f"z, {y} + 4, {x}", f"z, {y}, {x} - 4", f"z, {y}, {x} + 4"]
    return knl, knl.add_prefetch("u", ["x_inner", "y_inner"], footprint_subscripts=spread)


def tile_of_star():
    knl = (
        star()
        .split_iname("x", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("y", 4, outer_tag="g.1", inner_tag="l.1")
        .split_iname("z", 4, outer_tag="g.2", inner_tag="l.2")
    )
    return knl, knl.add_prefetch("u", ["x_inner", "y_inner", "z_inner"])


def test_streamed_plane():
    before, knl = plane_of_star()
    assert knl.temporary_by_name["u_s"].shape == (16, 24)
    assert loops_of(knl, "fetch_u")[0] == "z"
    text = text_of(knl, "insn")
    assert "u_s[y_inner + 4, x_inner + 8]" in text
    assert "u[z + 4, 8*y_outer + y_inner, 16*x_outer + x_inner]" in text
    assert text.count("u_s[") == 17
    check_fetch(before, knl, "fetch_u", "u")


def test_three_dimensional_tile():
    before, knl = tile_of_star()
    assert knl.temporary_by_name["u_s"].shape == (12, 12, 24)
    assert set(tags_of(knl, "fetch_u").values()) >= {"l.0", "l.1", "l.2", "unr"}
    check_fetch(before, knl, "fetch_u", "u")


@pytest.mark.host
@pytest.mark.parametrize("schedule", [plane_of_star, tile_of_star])
def test_stars_run(rng, schedule):
    u = rng((13, 21, 37))
    arrays = {"u": u, "o": np.zeros_like(u)}
    found = run_on_host(schedule()[1], arrays, {"n": 13, "m": 21, "l": 37})
    np.testing.assert_allclose(found["o"], star_of(u), rtol=1e-4, atol=1e-5)


@pytest.mark.host
def test_five_point_runs(rng):
    u = rng((37, 45))
    knl = five_point().add_prefetch("u", ["i_inner", "j_inner"])
    found = run_on_host(knl, {"u": u, "o": np.zeros_like(u)}, {"n": 37, "m": 45})["o"]
    want = np.zeros_like(u)
    want[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    want[1:-1, 1:-1] -= 4 * u[1:-1, 1:-1]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


# }}}

# {{{ transposition


def padded_transpose():
    sweep = ["i_inner", "j_step", "j_row"]
    return transpose().add_prefetch("a", sweep).pad_temporary("a_s", 1)


def test_transpose_reads_rows_and_writes_rows():
    knl = padded_transpose()
    # Fetched along a's rows by neighbouring threads, read along columns.
    assert text_of(knl, "fetch_a") == (
        "a_s[8*a_dim_0_outer + a_dim_0_inner, a_dim_1]"
        " = a[32*i_outer + 8*a_dim_0_outer + a_dim_0_inner, 32*j_outer + a_dim_1]"
    )
    assert tags_of(knl, "fetch_a")["a_dim_1"] == "l.0"
    assert "a_s[i_inner, 8*j_step + j_row]" in text_of(knl, "insn")
    assert knl.temporary_by_name["a_s"].padding == (0, 1)
    check_fetch(transpose(), knl, "fetch_a", "a")


def test_fastest_axis_follows_the_layout_of_the_array():
    knl = transpose().tag_array_axes("a", "f").add_prefetch("a", ["i_inner", "j_step", "j_row"])
    assert tags_of(knl, "fetch_a")["a_dim_0"] == "l.0"


@pytest.mark.host
def test_transpose_runs(rng):
    a = rng((45, 70))
    arrays = {"a": a, "o": np.zeros((70, 45), np.float32)}
    found = run_on_host(padded_transpose(), arrays, {"n": 45, "m": 70})
    np.testing.assert_array_equal(found["o"], a.T)


# }}}

# {{{ other footprints


def one_loop(text, shape_a="n", where="0 <= i < n", **more):
    return lk.make_kernel(
        f"{{ [i]: {where} }}",
        text,
        [*global_args("a", shape_a), ...],
        dtypes={"b": "float32"},
        assumptions="n >= 1",
        **more,
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_strided_footprint_is_compressed():
    before = one_loop("b[i] = a[2*i + 1] + a[2*i + 5]", "2*n + 6")
    knl = before.add_prefetch("a", ["i_inner"])
    assert knl.temporary_by_name["a_s"].shape == (18,)
    assert "a[32*i_outer + 32*a_dim_0_outer + 2*a_dim_0_inner + 1]" in text_of(knl, "fetch_a")
    assert "a_s[i_inner] + a_s[i_inner + 2]" in text_of(knl, "insn")
    check_fetch(before, knl, "fetch_a", "a")


def test_triangle():
    before = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k <= i }"],
        "b[i] = sum(k, a[i, k])",
        [*global_args("a", "n, n"), ...],
        dtypes={"b": "float32"},
        assumptions="n >= 1",
    )
    before = before.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").split_iname("k", 16)
    knl = before.add_prefetch("a", ["i_inner", "k_inner"])
    assert knl.temporary_by_name["a_s"].shape == (16, 16)
    assert loops_of(knl, "fetch_a")[0] == "k_outer"
    check_fetch(before, knl, "fetch_a", "a")
    at = {"n": 64, "i_outer": 1}
    assert instances(knl, "fetch_a", k_outer=0, **at) == 256
    assert instances(knl, "fetch_a", k_outer=1, **at) == 16 * 17 // 2


@pytest.mark.host
def test_triangle_runs(rng):
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k <= i }",
        "b[i] = sum(k, a[i, k])",
        [*global_args("a", "n, n"), ...],
        dtypes={"b": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0").split_iname("k", 8)
    knl = knl.add_prefetch("a", ["i_inner", "k_inner"])
    a = rng((37, 37))
    found = run_on_host(knl, {"a": a, "b": np.zeros(37, np.float32)}, {"n": 37})
    np.testing.assert_allclose(found["b"], np.tril(a).sum(axis=1), rtol=1e-5)


def test_small_box_keeps_whole_thread_axes():
    # 5 cells on 16 threads: the fetch still is on an axis of 16 threads.
    before = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        "b[i] = sum(j, a[j])",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    knl = before.add_prefetch("a", ["j"])
    assert knl.temporary_by_name["a_s"].shape == (5,)
    assert instances(knl, "fetch_a", n=100, i_outer=0) == 5
    check_fetch(before, knl, "fetch_a", "a")
    assert knl.cuda()


def test_predicates_bound_the_fetch():
    before = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[i - 3] {if=i >= 3}",
        [*global_args("a b", "n"), ...],
        assumptions="n >= 1",
    ).split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    knl = before.add_prefetch("a", ["i_inner"])
    check_fetch(before, knl, "fetch_a", "a")
    assert instances(knl, "fetch_a", n=100, i_outer=0) == 13


def test_whole_bounding_box():
    before = five_point()
    plain = before.add_prefetch("u", ["i_inner", "j_inner"])
    whole = before.add_prefetch("u", ["i_inner", "j_inner"], fetch_bounding_box=True)
    at = {"n": 19, "m": 100, "i_outer": 1, "j_outer": 0}
    assert instances(whole, "fetch_u", **at) == 4 * 17
    assert instances(plain, "fetch_u", **at) <= 4 * 17
    check_fetch(before, whole, "fetch_u", "u")


def test_scalar_copy():
    before = one_loop("b[i] = 2*a[7]", "n + 8")
    knl = before.add_prefetch("a", [])
    assert knl.temporary_by_name["a_s"].shape == ()
    assert text_of(knl, "fetch_a") == "a_s = a[7]"
    assert instances(knl, "fetch_a", n=64, i_outer=1) == 1


def test_invariant_fetch_is_hoisted():
    knl = lk.make_kernel(
        "{ [e, i, j]: 0 <= e < n and 0 <= i < 8 and 0 <= j < 8 }",
        "b[e, i] = sum(j, d[i, j]*u[e, j])",
        dtypes={"b, d, u": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("e", 4, outer_tag="g.0").tag_inames({"i": "l.0"})
    hoisted = knl.add_prefetch("d", ["i", "j"])
    assert loops_of(hoisted, "fetch_d")[0] != "e_inner"
    kept = knl.add_prefetch("d", ["i", "j"], fetch_outer_inames=["e_outer", "e_inner"])
    assert loops_of(kept, "fetch_d")[0] == "e_inner"


def test_temporaries_are_fetched_after_they_are_written():
    knl = lk.make_kernel(
        "{ [k, i, j]: 0 <= k < n and 0 <= i < 8 and 0 <= j < 8 }",
        """
        for k
            t[i] = a[k, i] {id=w}
            b[k, j] = t[j] + t[7 - j] {id=r}
        end
        """,
        [*global_args("a b", "n, 8"), lk.TemporaryVariable("t", np.float32, shape=(8,)), ...],
        assumptions="n >= 1",
    )
    staged = knl.add_prefetch("t", ["j"], default_tag=None)
    assert list(statements_in(staged.tree)) == ["w", "fetch_t", "r"]
    # The index does not depend on k, but what is in t does.
    assert loops_of(staged, "fetch_t")[0] == "k"


def test_rules_that_read_the_array_are_looked_through():
    before = one_loop("twice(x) := 2*a[x]\nb[i] = twice(i) + twice(i + 1)", "n + 1")
    knl = before.add_prefetch("a", ["i_inner"])
    assert "twice" in text_of(knl, "insn") and knl.cuda().count("2.0f * a_s[") == 2


@pytest.mark.host
def test_axes_with_and_without_quotients(rng):
    knl = lk.make_kernel(
        "{ [e, x, i, j]: 0 <= e < n and 0 <= x < 3 and 0 <= i < 20 and 0 <= j < 20 }",
        "g[x, e, i] = sum(j, d[x, i, j]*u[e, j])",
        dtypes={"g, d, u": "float32"},
        assumptions="n >= 1",
    )
    before = knl.split_iname("e", 16, outer_tag="g.0", inner_tag="l.1").tag_inames({"i": "l.0"})
    first = before.add_prefetch("u", ["e_inner", "j"])
    knl = first.add_prefetch("d", ["x", "i", "j"])
    check_fetch(first, knl, "fetch_d", "d")
    assert loops_of(knl, "fetch_d") == ("d_round", "d_dim_0", "d_dim_1")
    assert str(knl.iname_tags["d_dim_2"]) == "l.0"
    d, u = rng((3, 20, 20)), rng((37, 20))
    arrays = {"d": d, "u": u, "g": np.zeros((3, 37, 20), np.float32)}
    found = run_on_host(knl, arrays, {"n": 37})
    np.testing.assert_allclose(found["g"], np.einsum("xij,ej->xei", d, u), rtol=1e-5)


@pytest.mark.host
def test_two_copies_of_one_array(rng):
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "p[i] = sum(j, (q[i] - q[j])*(q[i] - q[j]))",
        dtypes={"p, q": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").split_iname("j", 32)
    with pytest.raises(IllegalTransformError, match="do not differ by a constant"):
        knl.add_prefetch("q", ["i_inner", "j_inner"])
    knl = knl.add_prefetch("q", ["j_inner"], footprint_subscripts="32*j_outer + j_inner")
    # The fetch that is there already is not fetched again.
    knl = knl.add_prefetch("q", [], default_tag=None)
    assert text_of(knl, "insn_update").endswith("(q_r - q_s[j_inner])*(q_r - q_s[j_inner])")
    assert loops_of(knl, "fetch_q_0") == ()
    q = rng(77)
    found = run_on_host(knl, {"q": q, "p": np.zeros(77, np.float32)}, {"n": 77})
    np.testing.assert_allclose(found["p"], ((q[:, None] - q) ** 2).sum(axis=1), rtol=1e-4)


def test_within_selects():
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "for i\n b[i] = a[i] {id=one}\n c[i] = a[15 - i] {id=two}\nend",
        dtypes={"a, b, c": "float32"},
    ).tag_inames({"i": "l.0"})
    staged = knl.add_prefetch("a", ["i"], within="id:two")
    assert "a_s" in text_of(staged, "two") and "a_s" not in text_of(staged, "one")


# }}}

# {{{ refusals


def refused(error, function):
    with pytest.raises(error) as info:
        function()
    return str(info.value)


def test_unknown_names():
    knl = tiled_matmul()
    assert "did you mean" in refused(
        UnknownNameError, lambda: knl.add_prefetch("a", ["i_iner", "k_inner"])
    )
    assert "there is no array 'aa'" in refused(
        UnknownNameError, lambda: knl.add_prefetch("aa", ["i_inner"])
    )
    assert "there is no tag" in refused(
        UnknownNameError, lambda: knl.add_prefetch("a", ["i_inner"], default_tag="l.7")
    )


def test_nothing_to_replace():
    knl = tiled_matmul()
    text = refused(IllegalTransformError, lambda: knl.add_prefetch("c", ["i_inner"]))
    assert "would replace nothing" in text and "read are" in text and "a, " in text
    text = refused(
        IllegalTransformError, lambda: knl.add_prefetch("a", ["i_inner"], within="id:insn")
    )
    assert "'a' is read by insn_update" in text


def test_unbounded_sweep():
    knl = matmul().split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    text = refused(IllegalTransformError, lambda: knl.add_prefetch("a", ["i_inner", "k"]))
    assert "'k' has no constant length" in text and "split_iname('k', 16)" in text


def test_access_that_data_choose_is_named():
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "b[i] = a[p[i]]",
        [*global_args("a", "n"), lk.GlobalArg("p", np.int32, shape=(16,)), ...],
        dtypes={"b": "float32"},
    ).tag_inames({"i": "l.0"})
    text = refused(IllegalTransformError, lambda: knl.add_prefetch("a", ["i"]))
    assert "a[p[i]]" in text and "assume_within('p', 0, 64)" in text
    assert "p_s" in knl.add_prefetch("p", ["i"]).temporary_by_name


def test_footprint_of_another_thread():
    text = refused(IllegalTransformError, lambda: tiled_matmul().add_prefetch("a", ["k_inner"]))
    assert "'i_inner' (l.1)" in text and "sweep 'i_inner' too" in text


def test_swept_blocks():
    text = refused(
        IllegalTransformError, lambda: tiled_matmul().add_prefetch("a", ["i_outer", "k_inner"])
    )
    assert "iname 'i_outer' has no constant length" in text
    rows = lk.make_kernel("{ [i]: 0 <= i < 64 }", "y[i] = a[i]", dtypes={"a, y": "float32"})
    knl = rows.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    all_rows = knl.add_prefetch("a", ["i_inner", "i_outer"])
    assert all_rows.temporary_by_name["a_s"].shape == (64,)
    assert all_rows.prove().ok


@pytest.mark.host
@pytest.mark.parametrize("tags", [[THREADS], THREADS.split(", "), THREADS.split(", ")[::-1]])
def test_threads_come_after_the_fetch(tags, rng):
    """What is tagged l.auto is dealt out over the threads that there are in the end."""
    text = (
        matmul()
        .split_iname("i", 16)
        .split_iname("j", 16)
        .split_iname("k", 16)
        .prioritize_loops("i_outer, j_outer, k_outer, i_inner, j_inner, k_inner")
    )
    knl = text.add_prefetch("a", ["i_inner", "k_inner"]).add_prefetch("b", ["k_inner", "j_inner"])
    assert tags_of(knl, "fetch_a") == {"a_dim_0": "l.auto", "a_dim_1": "l.auto"}
    a, b = rng((37, 21)), rng((21, 50))
    np.testing.assert_allclose(knl.executor("host")(a=a, b=b), a @ b, rtol=1e-5)
    assert "for (int a_dim_1 = 0;" in knl.cuda() and knl.prove().ok
    for one in tags:
        knl = knl.tag_inames(one)
    assert knl.prove().ok and knl.launch_config(n=37, m=50, l=21).block == (16, 16, 1)
    assert "int const a_dim_1 = threadIdx.x;" in knl.cuda()
    for order in ("ascending", "descending", "random"):
        np.testing.assert_allclose(knl.executor("host", order=order)(a=a, b=b), a @ b, rtol=1e-5)
    assert lk.replay(matmul(), knl.history).key == knl.key


@pytest.mark.host
@settings(max_examples=20)
@given(
    st.integers(1, 40), st.integers(1, 12), st.sampled_from([1, 3, 8, 32, 64]), st.integers(1, 3)
)
def test_any_box_is_dealt_out(width, height, threads, halo):
    """As many threads as one likes fill any box, in rounds if need be."""
    knl = lk.make_kernel(
        f"{{ [b, i, j]: 0 <= b < n and 0 <= i < {height} and 0 <= j < {width} }}",
        f"y[b, i, j] = x[b, i, j] + x[b, i + 1, j + {halo}]",
        [lk.GlobalArg("x", shape=f"n, {height + 1}, {width + halo}"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("j", threads).prioritize_loops("b, i, j_outer, j_inner")
    knl = knl.add_prefetch("x", ["i", "j_outer", "j_inner"])
    knl = knl.tag_inames("b: g.0, j_inner: l.0")
    assert knl.prove().ok
    x = np.random.default_rng(0).random((2, height + 1, width + halo), dtype=np.float32)
    want = x[:, :height, :width] + x[:, 1:, halo:]
    np.testing.assert_array_equal(knl.executor("host", order="random")(x=x), want)


def overwriting(cell):
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < 16 and 0 <= k < n }",
        f"""
        for k
            b[i] = a[i] {{id=r}}
            a[{cell}] = 2*b[i] {{id=w}}
        end
        """,
        [*global_args("a b", "16"), ...],
        assumptions="n >= 1",
    )


def test_overwritten_between_fetch_and_read():
    knl = overwriting("15 - i")
    text = refused(IllegalTransformError, lambda: knl.add_prefetch("a", ["i"], default_tag=None))
    assert "'r' (i=15, k=0) would read a[15] before 'w' (i=0, k=0) has written it" in text
    assert (
        "legal with a buffer" in text
        and ".buffer_array('a', buffer_inames=['i'], default_tag=None)" in text
    )


def test_overwritten_after_its_last_read():
    """Each cell is written after it is read for the last time: its copy need not know."""
    staged = overwriting("i").add_prefetch("a", ["i"], default_tag=None)
    assert list(statements_in(staged.tree)) == ["fetch_a", "r", "w"]
    assert results(staged, {"n": 3}) == results(overwriting("i"), {"n": 3})


def test_writes_elsewhere_are_no_obstacle():
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "for i\n b[i] = a[i] {id=r}\n a[i + 16] = b[i] {id=w}\nend",
        [*global_args("a", "32"), ...],
        dtypes={"b": "float32"},
    )
    staged = knl.add_prefetch("a", ["i"], default_tag=None)
    assert list(statements_in(staged.tree)) == ["fetch_a", "r", "w"]


def test_private_copy_and_thread_axis():
    text = refused(
        InvalidArgumentError,
        lambda: tiled_matmul().add_prefetch(
            "a", ["k_inner"], default_tag="l.0", temporary_address_space="private"
        ),
    )
    assert "private to each thread" in text


def test_two_axes_on_one_thread_axis():
    text = refused(
        InvalidArgumentError,
        lambda: tiled_matmul().add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.0"),
    )
    assert "would both be l.0" in text


def test_global_memory_is_not_shared_by_blocks():
    text = refused(
        IllegalTransformError,
        lambda: tiled_matmul().add_prefetch(
            "a", ["i_inner", "k_inner"], temporary_address_space="global"
        ),
    )
    assert "depends on 'i_outer' (g.1), but global memory exists once for all blocks" in text
    row = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }", "y[i, j] = a[j]", dtypes={"a, y": "float32"}
    )
    text = refused(
        lk.RaceError,
        lambda: row.tag_inames("i: g.0").add_prefetch(
            "a", "j", default_tag=None, temporary_address_space="global"
        ),
    )
    assert "nothing orders" in text


def test_footprint_subscripts_must_cover_something():
    knl = tiled_matmul()
    text = refused(
        IllegalTransformError,
        lambda: knl.add_prefetch(
            "a", ["i_inner", "k_inner"], footprint_subscripts="i_inner, k_inner"
        ),
    )
    assert "would replace nothing" in text
    assert "2 axes" in refused(
        InvalidArgumentError,
        lambda: knl.add_prefetch("a", ["i_inner"], footprint_subscripts="i_inner"),
    )


def test_wrong_number_of_names():
    text = refused(
        InvalidArgumentError,
        lambda: tiled_matmul().add_prefetch("a", ["i_inner", "k_inner"], dim_arg_names=["x"]),
    )
    assert "1 name for 2 axes" in text


# }}}

# {{{ any tile, any access


@st.composite
def schedules(draw):
    """A 2-D gather with random accesses and tiles."""
    rows = [
        (draw(st.sampled_from([(1, 0), (0, 1), (2, 0), (1, 1), (-1, 0)])), draw(st.integers(0, 3)))
        for _ in range(2)
    ]
    shifts = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
    terms = []
    for shift in shifts:
        axes = [
            f"{c[0]}*i + {c[1]}*j + {o + s + 60}" for (c, o), s in zip(rows, shift, strict=True)
        ]
        terms.append(f"a[{', '.join(axes)}]")
    tile = draw(st.sampled_from([(4, 4), (8, 3), (5, 6)]))
    tags = draw(st.sampled_from([("l.1", "l.0"), ("l.0", None), (None, "l.0"), (None, None)]))
    return " + ".join(terms), tile, tags


@given(schedules())
@settings(max_examples=40)
def test_random_footprints(schedule):
    text, tile, tags = schedule
    before = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"b[i, j] = {text}",
        [*global_args("a", "n + m + n + 70, n + m + n + 70"), ...],
        dtypes={"b": "float32"},
        assumptions="1 <= n <= 50 and 1 <= m <= 50",
    )
    before = before.split_iname("i", tile[0], outer_tag="g.1", inner_tag=tags[0])
    before = before.split_iname("j", tile[1], outer_tag="g.0", inner_tag=tags[1])
    auto = None if tags == (None, None) else "l.auto"
    knl = before.add_prefetch("a", ["i_inner", "j_inner"], default_tag=auto)
    check_fetch(before, knl, "fetch_a", "a")
    copy = knl.temporary_by_name["a_r" if auto is None else "a_s"]
    cells = int(np.prod(copy.shape))
    whole = instances(knl, "fetch_a", n=40, m=40, i_outer=1, j_outer=1)
    assert whole <= cells


# }}}


def test_loops_that_must_be_outside_of_a_fetch():
    knl = lk.make_kernel(
        "{ [t, i, j]: 0 <= t < n and 0 <= i, j < 8 }",
        """
        for t
            for i
                u[i] = t {id=write}
            end
            for j
                v[t, j] = u[j] {id=read}
            end
        end
        """,
        dtypes={"u, v": "int32"},
    )
    with pytest.raises(IllegalTransformError) as info:
        knl.add_prefetch("u", ["j"], default_tag=None, fetch_outer_inames=())
    assert (
        "what is copied is written inside of loop 't', so the prefetch of 'u' must be filled "
        "there, too; but fetch_outer_inames does not name 't'\nadd 't' there"
    ) in str(info.value)


def element_products():
    knl = lk.make_kernel(
        "{ [e, i, k]: 0 <= e < n and 0 <= i, k < 8 }",
        "c[e, i] = sum(k, d[i, k]*u[e, k])",
        [lk.GlobalArg("d", "float32", "8, 8"), lk.GlobalArg("u", "float32", "n, 8"), ...],
        dtypes={"c": "float32"},
        assumptions="n >= 1",
    )
    return knl, knl.split_iname("e", 32, outer_tag="g.0", inner_tag="l.0")


def test_ranges_span_the_footprint():
    _, knl = element_products()
    whole = knl.add_prefetch("d[:, :]")
    assert whole.temporary_by_name["d_s"].shape == (8, 8)
    assert whole == knl.add_prefetch("d", footprint_subscripts=":, 0:8")
    assert whole.history[-1].call() == ".add_prefetch('d[:, :]')"
    assert path_inames(whole.paths["fetch_d"])[0] == "d_round"
    rows = knl.add_prefetch("u[32*e_outer:32*e_outer + 32, :]")
    assert rows.temporary_by_name["u_s"].shape == (32, 8)
    assert whole.prove().ok and rows.prove().ok


@pytest.mark.host
def test_ranges_at_ragged_sizes():
    plain, knl = element_products()
    staged = knl.add_prefetch("d[:, :]").add_prefetch("u[e, :]", default_tag=None)
    rng = np.random.default_rng(0)
    for n in (1, 32, 45):
        given = {"d": rng.random((8, 8), np.float32), "u": rng.random((n, 8), np.float32)}
        want = plain.executor("reference")(**given)
        for order in ("ascending", "descending", "random"):
            run = staged.executor("host", order=order, seed=1)
            np.testing.assert_allclose(run(**given), want, rtol=1e-5)


def test_split_inames_in_footprints():
    _, knl = element_products()
    staged = knl.add_prefetch("u[e, k]", ["e_inner", "k"])
    written_out = knl.add_prefetch("u[32*e_outer + e_inner, k]", ["e_inner", "k"])
    assert staged == written_out and staged.temporary_by_name["u_s"].shape == (32, 8)


@pytest.mark.parametrize(
    ("used", "more", "said"),
    [
        ("u[:, :]", {}, "axis 0 of 'u' has no constant length\ngive both ends"),
        ("d[0:4, :]", {}, "no access lies in the footprint"),
        ("d[4:4, :]", {}, "the range of axis 0 of 'd' is empty"),
        ("d[0:8:2, :]", {}, "has a step\na range is written lower:upper"),
        ("d[:]", {}, "has 1 index, but 'd' has 2 axes"),
        ("d[:", {}, "a name, or one use of it such as 'd"),
        ("d[:-1, :]", {}, "begins or ends at -1, and no index counts from behind"),
        ("d[:, :]", {"footprint_subscripts": "i, k"}, "is given twice"),
        ("d[:, :]", {"fetch_outer_inames": "zz"}, "there is no iname 'zz'"),
        ("u", {"sweep_inames": "e_inner, k", "fetch_outer_inames": "k"}, "and swept"),
    ],
)
def test_ranges_that_span_nothing(used, more, said):
    with pytest.raises(lk.LoopkitError, match=said):
        element_products()[1].add_prefetch(used, **more)


def test_loops_outside_of_a_fetch_move_out():
    knl, _ = element_products()
    new = knl.add_prefetch("d", "i", fetch_outer_inames="e, k", default_tag=None)
    assert path_inames(new.paths["fetch_d"]) == ("e", "k", "d_dim_0") and new.prove().ok
    carried = lk.make_kernel(
        "{ [e, i]: 1 <= e < n and 0 <= i < 8 }",
        "c[e, i] = c[e - 1, i + 1] + d[e] {id=s}",
        [lk.GlobalArg("c", "float32", "n, 9"), ...],
        dtypes={"d": "float32"},
        assumptions="n >= 2",
    ).split_iname("e", 4)
    with pytest.raises(IllegalTransformError, match="before 's'") as found:
        carried.add_prefetch("d", "e_inner", fetch_outer_inames="e_outer, i", default_tag=None)
    assert found.value.witness.array == "c"


def test_threads_that_cancel_in_a_rule_do_not_share_a_copy():
    """A rule's arguments take the place of a thread's iname: each thread has its own copy."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "f(a) := x[a] + 1\ny[i] = sum(j, f(i)*j)",
        dtypes={"x, y": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 32).split_iname("i_inner", 32, inner_tag="l.0")
    knl = knl.tag_inames("i_outer: g.0").add_prefetch("x", "i_inner_outer", default_tag=None)
    assert "private" in str(knl)
    assert knl.prove().ok


# {{{ what stands outside


def products():
    knl = lk.make_kernel(
        "{ [c, i, j, q]: 0 <= c < n and 0 <= i, j < 6 and 0 <= q < 7 }",
        "a[c, i, j] = sum(q, w[c]*d[q, i]*d[q, j])",
        dtypes={"a, w, d": "float64"},
        assumptions="n >= 1",
        name="products",
    )
    return knl.tag_inames("c: g.0, i: l.0")


@pytest.mark.host
def test_loops_that_are_not_outer_are_swept():
    knl = products()
    with pytest.raises(IllegalTransformError, match="do not differ by a constant"):
        knl.add_prefetch("d", "q")
    covered = knl.add_prefetch("d", "q, i")
    assert covered.temporary_by_name["d_s"].shape == (7, 6) and covered.prove().ok
    whole = knl.add_prefetch("d", "q, i", fetch_outer_inames="c")
    assert whole.temporary_by_name["d_s"].shape == (7, 6)
    assert whole == knl.add_prefetch("d", "q, i, j", fetch_outer_inames="c")
    assert whole.prove().ok
    rng = np.random.default_rng(0)
    w, d = rng.uniform(size=3), rng.uniform(size=(7, 6))
    found = whole.executor("host")(w=w, d=d)
    assert np.allclose(found, np.einsum("c,qi,qj->cij", w, d, d))


@pytest.mark.host
def test_threads_that_are_not_outer_share_a_copy():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        for i
            <> own = x[i]
            y[i] = sum(j, own*x[j])
        end
        """,
        dtypes={"x, y": "float64"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").split_iname("j", 32)
    asked = {"sweep_inames": "j_inner", "dim_arg_names": "f", "default_tag": None}
    # The subscript is of the text, and of an iname that the first reader has not.
    own = knl.add_prefetch("x[j]", **asked)
    assert space_of(own, own.temporaries[-1]) is AddressSpace.PRIVATE
    shared = knl.add_prefetch("x[j]", **asked, fetch_outer_inames="i_outer, j_outer")
    assert space_of(shared, shared.temporaries[-1]) is AddressSpace.LOCAL
    assert text_of(shared, "fetch_x") == "x_s[f] = x[32*j_outer + f]"
    fast = shared.tag_inames("f: l.0")
    x = np.random.default_rng(0).uniform(size=70)
    for one in (own, shared, fast):
        assert one.prove().ok
        assert np.allclose(one.executor("host")(x=x), x * x.sum())
    # What depends on a thread is a copy of each thread's.
    each = knl.add_prefetch("x[i]", default_tag=None, fetch_outer_inames="i_outer")
    assert space_of(each, each.temporaries[-1]) is AddressSpace.PRIVATE


# }}}


def test_a_fetch_and_its_reader_that_share_an_iname_have_a_loop_each() -> None:
    """Where no threads take it, each statement is done for all its values before the next."""
    knl = lk.make_kernel(
        "{ [i, k, p]: 0 <= i < n and 0 <= k, p < 8 }",
        "<> s[k] = c[i, 7 - k] + k\nx[i, p] = s[(p + 1) % 8]",
        dtypes={"c, x": "int32"},
    )
    new = knl.add_prefetch("s", ["p"]).rename_iname("p", "s_dim_0", existing_ok=True)
    assert new.prove().ok
    data = np.arange(24, dtype=np.int32).reshape(3, 8)
    want, found = (k.executor("host")(c=data) for k in (knl, new))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("line", ["t = t + c[i, k]", "t = c[i, k]"])
def test_what_a_thread_keeps_is_not_changed_where_threads_are_not_known(line: str) -> None:
    """It would be changed once on each thread, and how often where there is one, nothing says."""
    knl = lk.make_kernel(
        "{ [i, k, p]: 0 <= i < n and 0 <= k, p < 4 }",
        f"<> t = b[i]\n{line}\nx[i, p] = c[i, p]\nu[i] = t",
        dtypes={"b, c, u, x": "int32"},
    ).buffer_array("x", ["p"])
    with pytest.raises(lk.IllegalTransformError, match=r"\(l.auto\) cannot be distributed.*'t'"):
        knl.add_inames_to_insn("x_store_dim_1", "id:insn_0")
