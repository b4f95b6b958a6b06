import numpy as np
import pytest
from data_kernels import global_args, run_on_host
from seams import path_inames, statements_in, to_text
from staging_checks import check_accesses_of_copy, instances

import loopkit as lk
from loopkit import AddressSpace, IllegalTransformError, InvalidArgumentError


def text_of(knl, statement):
    s = knl.statement_by_id[statement]
    return f"{to_text(s.lhs)} = {to_text(s.rhs)}"


def updates(start=""):
    return lk.make_kernel(
        "{ [i, k, j, j0]: 0 <= i < n and 0 <= k < l and 0 <= j < 8 and 0 <= j0 < 8 }",
        f"""
        for i
            {start}
            for k, j
                c[i, j] = c[i, j] + a[i, k]*b[k, j] {{id=add}}
            end
        end
        """,
        [*global_args("c", "n, 8"), *global_args("a", "n, l"), *global_args("b", "l, 8"), ...],
        assumptions="n >= 1 and l >= 1",
    )


def test_load_and_store():
    knl = updates().buffer_array("c", ["j"], default_tag=None)
    assert list(statements_in(knl.tree)) == ["load_c", "add", "store_c"]
    assert text_of(knl, "load_c") == "c_buf[c_init_dim_1] = c[i, c_init_dim_1]"
    assert text_of(knl, "add") == "c_buf[j] = c_buf[j] + a[i, k]*b[k, j]"
    assert text_of(knl, "store_c") == "c[i, c_store_dim_1] = c_buf[c_store_dim_1]"
    assert path_inames(knl.paths["load_c"]) == ("i", "c_init_dim_1")
    assert {s.kind for s in knl.statements if s.id != "add"} == {"move"}
    assert knl.temporary_by_name["c_buf"].address_space is AddressSpace.PRIVATE
    check_accesses_of_copy(knl, "c_buf")


def test_no_load_where_all_is_overwritten():
    zeroed = updates("c[i, j0] = 0 {id=zero}")
    for init in (None, "base"):
        knl = zeroed.buffer_array("c", ["j", "j0"], default_tag=None, init_expression=init)
        assert list(statements_in(knl.tree)) == ["zero", "add", "store_c"]
    partly = updates("c[i, j0] = 0 {id=zero, if=j0 >= 1}")
    knl = partly.buffer_array("c", ["j", "j0"], default_tag=None)
    assert list(statements_in(knl.tree)) == ["load_c", "zero", "add", "store_c"]


def test_init_and_store_expressions():
    knl = updates().buffer_array(
        "c",
        ["j"],
        init_expression="0.0",
        store_expression="base + 2*buffer",
        default_tag=None,
        unchecked=True,
    )
    assert text_of(knl, "init_c") == "c_buf[c_init_dim_1] = 0.0"
    assert text_of(knl, "store_c") == (
        "c[i, c_store_dim_1] = c[i, c_store_dim_1] + 2*c_buf[c_store_dim_1]"
    )
    assert knl.statement_by_id["store_c"].kind == "user"
    knl = updates().buffer_array(
        "c", ["j"], store_expression=False, default_tag=None, unchecked=True
    )
    assert list(statements_in(knl.tree)) == ["load_c", "add"]
    with pytest.raises(InvalidArgumentError, match="init_expression uses 'buffer'"):
        updates().buffer_array("c", ["j"], init_expression="buffer", default_tag=None)


def threads():
    return updates().split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_private_where_each_thread_has_its_cells():
    knl = threads().buffer_array("c", ["j"])
    assert knl.temporary_by_name["c_buf"].shape == (8,)
    assert knl.temporary_by_name["c_buf"].address_space is AddressSpace.PRIVATE


def test_shared_where_threads_are_swept():
    knl = threads().buffer_array("c", ["i_inner", "j"])
    copy = knl.temporary_by_name["c_buf"]
    assert (copy.shape, copy.address_space) == ((16, 8), AddressSpace.LOCAL)
    assert instances(knl, "store_c", n=37, l=3, i_outer=0) == 128
    assert instances(knl, "store_c", n=37, l=3, i_outer=2) == 5 * 8


@pytest.mark.host
@pytest.mark.parametrize("swept", [["j"], ["i_inner", "j"]])
def test_it_runs(swept):
    rng = np.random.default_rng(1)
    a, b, c = (rng.random(s, dtype=np.float32) for s in [(37, 11), (11, 8), (37, 8)])
    knl = threads().buffer_array("c", swept)
    found = run_on_host(knl, {"a": a, "b": b, "c": c}, {"n": 37, "l": 11})
    np.testing.assert_allclose(found["c"], c + a @ b, rtol=1e-5)


def test_only_written_cells_are_stored():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "c[i, 2*j] = c[i, 2*j] + c[i, 2*j + 1]",
        [*global_args("c", "n, 16"), ...],
        assumptions="n >= 1",
    ).buffer_array("c", ["j"], default_tag=None)
    assert instances(knl, "load_c", n=5, i=0) == 16
    assert instances(knl, "store_c", n=5, i=0) == 8


@pytest.mark.host
@pytest.mark.parametrize("guard", ["j % 2 == 0", "j >= 5", "i + j >= 3", "i > 2 or j % 3 == 1"])
@pytest.mark.parametrize("swept", [[], ["j"]], ids=["cells", "rows"])
@pytest.mark.parametrize("text", ["c[i, j] = i + 3*j", "c[i, j] = 2*c[i, j] + 1"])
def test_guarded_writes(text, swept, guard):
    """What a guard keeps from being written is neither loaded nor stored."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        f"c[i, j] = 0 {{id=zero}}\n{text} {{id=one, if={guard}}}",
        dtypes={"c": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.duplicate_inames("i, j", "id:zero")
    buffered = knl.buffer_array("c", swept, default_tag=None, within="id:one")
    written = instances(knl, "one", n=5)
    assert instances(buffered, "store_c", n=5) == written
    if "2*c" in text:
        load = next(s.id for s in buffered.statements if s.id.startswith("load_c"))
        assert instances(buffered, load, n=5) >= written
    for n in (1, 5):
        expected = knl.executor("reference")(n=n)
        for executor in ("reference", "host"):
            assert (buffered.executor(executor)(n=n) == expected).all()


def test_cells_beyond_an_inferred_shape_are_not_stored():
    knl = lk.make_kernel(
        "{ [j]: 0 <= j < 2 }", "<> s[j] = a[j + 1] {if=j % 2 == 0}", dtypes={"a": "int32"}
    )
    assert knl.temporary_by_name["s"].shape == (1,)
    buffered = knl.buffer_array("s", [], default_tag="unr")
    assert instances(buffered, "store_s") == 1


def test_data_decide_what_is_written():
    """Cells that may not be written are stored as they were."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "c[i] = 1 {id=one, if=a[i] > 3}", dtypes={"a, c": "int32"}
    )
    buffered = knl.buffer_array("c", [], default_tag=None, unchecked=True)
    assert list(statements_in(buffered.tree)) == ["load_c", "one", "store_c"]


def test_refusals():
    with pytest.raises(IllegalTransformError, match="no selected statement reads or writes 'a'"):
        updates("c[i, j0] = 0 {id=zero}").buffer_array("a", ["j"], within="id:zero")
    with pytest.raises(IllegalTransformError, match=r"'zero' .* would not find what 'one'") as info:
        knl = lk.make_kernel(
            "{ [k, i]: 0 <= k < n and 0 <= i < 8 }",
            """
            for k
                c[i] = c[i] + 1 {id=one}
                c[i] = 2*c[i] {id=zero}
                c[i] = c[i] + 3 {id=three}
            end
            """,
            [*global_args("c", "8"), ...],
            assumptions="n >= 1",
        )
        knl.buffer_array("c", ["i"], within="id:one or id:three", default_tag=None)
    assert "'one' (k=0, i=0) writes to 'c_buf' instead" in str(info.value)
    assert "legal around all statements: .buffer_array('c', buffer_inames=['i']" in str(info.value)
    with pytest.raises(InvalidArgumentError, match="shared or private"):
        updates().buffer_array("c", ["j"], temporary_scope="global")


@pytest.mark.parametrize("argument", ["init_expression", "store_expression"])
def test_nothing_is_computed_of_a_value_and_its_place(argument: str) -> None:
    knl = lk.make_kernel(
        "{ [k, h]: 0 <= k < 3 and 0 <= h < n }",
        "x[k], v[k] = argmin(h, c[k, h], h)",
        dtypes={"c, x": "float32", "v": "int32"},
    )
    with pytest.raises(InvalidArgumentError, match=f"leave {argument} out"):
        knl.buffer_array("acc", [], **{argument: "2*base"})
    assert "acc_buf" in knl.buffer_array("acc", []).cuda()


@pytest.mark.parametrize("staged", [False, True])
def test_tags_come_before_a_buffer_or_behind_it(staged):
    """Loops that the buffered cells depend on move out of those that are buffered."""
    split = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = c[i, j] + a[i, k]*b[k, j]",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )
    for iname in "ijk":
        split = split.split_iname(iname, 8)
    tags = "i_outer: g.1, i_inner: l.1, j_outer: g.0, j_inner: l.0"

    def kept(knl):
        knl = knl.buffer_array("c", "i_inner, j_inner")
        if staged:
            knl = knl.add_prefetch("a", "i_inner, k_inner").add_prefetch("b", "k_inner, j_inner")
        return knl

    early, late = kept(split.tag_inames(tags)), kept(split).tag_inames(tags)
    assert early.prove().ok
    assert late.prove().ok
    at = {"n": 20, "m": 9, "l": 17}
    assert early.costs(**at).moved == late.costs(**at).moved


@pytest.mark.host
def test_statements_that_wait_for_threads_run_one_after_the_other():
    """Without threads, the store waits until all that it stores is there."""
    text = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 7 }",
        "y[i] = x[i] - i*i",
        [lk.GlobalArg("x, y", "float32", shape="n"), ...],
        assumptions="0 <= n <= 60",
    )
    knl = text.split_iname("i", 33).buffer_array("y", ["i_outer", "i_inner"])
    knl = knl.add_inames_to_insn(["y_store_dim_0", "j"], "id:insn")
    knl = knl.add_prefetch("x", ["y_store_dim_0"])
    assert knl.prove().ok and lk.verify(text, knl)
    for threads in (knl, knl.tag_inames("j: l.0")):
        for n in (0, 1, 2, 5, 34):
            x = np.arange(1, n + 1, dtype="f4")
            for order in ("ascending", "random"):
                y = threads.executor("host", order=order)(x=x)
                np.testing.assert_array_equal(y, x - np.arange(n, dtype="f4") ** 2)


def test_what_is_stored_has_been_written():
    """A store of cells that nobody has written yet is refused, though a later one mends it."""
    knl = lk.make_kernel(
        "{ [b, k]: 0 <= b < n and 0 <= k < 5 }",
        "y[b, k] = x[b, k] + 1",
        [lk.GlobalArg("x, y", "int32", shape="n, 5"), ...],
        assumptions="n >= 0",
    ).buffer_array("y", "k", default_tag=None, temporary_scope="shared")
    knl = knl.add_inames_to_insn("k", "id:store*")
    assert knl.prove().ok
    with pytest.raises(
        lk.IllegalTransformError, match=r"would read y_buf\[1\], which nothing"
    ) as e:
        knl.fuse_loops("k")
    assert e.value.witness.sink.statement == "store_y"
    assert e.value.witness.parameters == {"n": 1}


def test_what_could_not_be_dealt_out_is_refused_at_once():
    """A private value would be handed from one loop to the next, which no code can do."""
    knl = lk.make_kernel(
        ["{ [j]: 0 <= j < 3 }", "{ [i]: 0 <= i < m and i mod 3 = 1 }"],
        """
        for i
            for j
                y[i // 2, j] = y[j + 1, i] + x[i, j] - y[i // 2, j]
                u[j + i] = c[j, 2*i + 1] + b[i + 1]
            end
        end
        """,
        dtypes={"b, c, u, x, y": "int32"},
    )
    knl = knl.buffer_array("u", "j").add_inames_to_insn("u_store_dim_0", "id:insn_0")
    knl = knl.add_prefetch("b", [], default_tag=None, temporary_address_space="private")
    assert knl.prove().ok
    with pytest.raises(lk.IllegalTransformError, match="'b_r' keeps one value"):
        knl.add_inames_to_insn("u_store_dim_0", "id:fetch_b")
