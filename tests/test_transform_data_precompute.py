import numpy as np
import pytest
from data_kernels import global_args, run_on_host

import loopkit as lk
from loopkit._arrays import AddressSpace
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError
from loopkit._expression import to_text
from loopkit._places import space_of
from loopkit._tree import path_inames, statements_in


def text_of(knl, statement):
    s = knl.statement_by_id[statement]
    return f"{to_text(s.lhs)} = {to_text(s.rhs)}"


def windows(**more):
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := a[x]*a[x] + 1\nout[i, j] = 2*f(i + j)",
        [*global_args("a", "n + 7"), ...],
        dtypes={"out": "float32"},
        assumptions="n >= 1",
        **more,
    )


def blocked():
    return windows().split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_into_private_memory():
    knl = windows().precompute("f", ["j"], default_tag=None)
    assert text_of(knl, "compute_f") == ("f_r[f_dim_0] = a[i + f_dim_0]*a[i + f_dim_0] + 1")
    assert text_of(knl, "insn") == "out[i, j] = 2*f_r[j]"
    assert path_inames(knl.paths["compute_f"]) == ("i", "f_dim_0")
    temporary = knl.temporary_by_name["f_r"]
    assert (temporary.shape, temporary.dtype) == ((8,), np.float32)
    assert space_of(knl, temporary) is AddressSpace.PRIVATE
    assert knl.substitutions == ()
    assert knl.statement_by_id["compute_f"].made_by == "precompute('f')"


def test_into_shared_memory_with_a_halo():
    knl = blocked().precompute("f", ["i_inner", "j"], temporary_name="squares")
    temporary = knl.temporary_by_name["squares"]
    assert (temporary.shape, temporary.address_space) == ((23,), AddressSpace.LOCAL)
    assert text_of(knl, "insn").endswith("2*squares[i_inner + j]")


@pytest.mark.host
def test_it_runs():
    a = np.random.default_rng(0).random(45, dtype=np.float32)
    want = 2 * (np.lib.stride_tricks.sliding_window_view(a, 8)[:38] ** 2 + 1)
    arrays = {"a": a, "out": np.zeros((38, 8), np.float32)}
    for knl in (
        blocked().precompute("f", ["i_inner", "j"]),
        blocked().precompute("f", ["j"], default_tag="unr", temporary_address_space="private"),
    ):
        found = run_on_host(knl, arrays, {"n": 38})
        np.testing.assert_allclose(found["out"], want, rtol=1e-6)


def test_names_and_tags():
    knl = blocked().precompute(
        "f",
        ["i_inner", "j"],
        precompute_inames=["p"],
        storage_axis_to_tag={"x": "unr"},
        default_tag=None,
        compute_insn_id="fill",
        dtype="float64",
        unchecked=True,
    )
    assert knl.temporary_by_name["f_s"].dtype == np.float64
    assert str(knl.iname_tags["p"]) == "unr"
    assert knl.statement_by_id["fill"].written == "f_s"


def test_storage_axes():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x, y) := a[x, y]\nout[i, j] = f(i, j)",
        dtypes={"a, out": "float32"},
        assumptions="n >= 1",
    )
    kept = knl.precompute("f", ["j"], storage_axes=["x", "y"], default_tag=None)
    assert kept.temporary_by_name["f_r"].shape == (1, 8)
    with pytest.raises(InvalidArgumentError, match="argument 'y' of 'f' takes 8 values"):
        knl.precompute("f", ["j"], storage_axes=["x"], default_tag=None)
    with pytest.raises(UnknownNameError):
        knl.precompute("f", ["j"], storage_axes=["z"], default_tag=None)


def test_rules_in_rules():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := a[x]\ng(x) := f(x) + f(x + 1)\nout[i, j] = g(i + j)",
        [*global_args("a", "n + 8"), ...],
        dtypes={"out": "float32"},
        assumptions="n >= 1",
    )
    inner = knl.precompute("f", ["j"], default_tag=None)
    assert inner.temporary_by_name["f_r"].shape == (9,)
    assert text_of(inner, "insn") == "out[i, j] = f_r[j] + f_r[j + 1]"
    outer = knl.precompute("g", ["j"], default_tag=None)
    assert text_of(outer, "compute_g") == "g_r[g_dim_0] = f(i + g_dim_0) + f(i + g_dim_0 + 1)"
    assert [r.name for r in outer.substitutions] == ["f"]


def test_rule_with_a_free_iname():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := a[i, x]\nout[i, j] = f(j)",
        dtypes={"a, out": "float32"},
        assumptions="n >= 1",
    )
    staged = knl.precompute("f", ["j"], default_tag=None)
    assert path_inames(staged.paths["compute_f"]) == ("i", "f_dim_0")
    with pytest.raises(IllegalTransformError, match="differs along 'ii'"):
        knl.split_iname("i", 4).rename_iname("i_inner", "ii").precompute(
            "f", ["ii", "j"], default_tag=None
        )


def test_computed_after_what_it_reads():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        """
        f(x) := t*b[x]
        for i
            <> t = a[i] {id=first}
            out[i, j] = f(j) {id=use}
        end
        """,
        dtypes={"a, b, out": "float32"},
        assumptions="n >= 1",
    )
    staged = knl.precompute("f", ["j"], default_tag=None)
    assert list(statements_in(staged.tree)) == ["first", "compute_f", "use"]
    assert path_inames(staged.paths["compute_f"])[0] == "i"


def test_only_what_is_in_bounds_is_computed():
    knl = blocked().precompute("f", ["i_inner", "j"], fetch_bounding_box=True)
    domain = knl.statement_domain("compute_f")
    statement = knl.statement_by_id["compute_f"]
    from loopkit import _sets

    index = next(i for n, i in statement.reads if n == "a")[0]
    for predicate in statement.predicates:
        domain = domain & _sets.condition_set(predicate)
    out = _sets.pw_affine(index).ge_set(_sets.pw_affine(knl.arg_by_name["a"].shape[0]))
    assert (domain & out).is_empty()


def test_refusals():
    with pytest.raises(UnknownNameError, match="no substitution rule 'g'"):
        windows().precompute("g", ["j"])
    with pytest.raises(IllegalTransformError, match="depends on 'i_inner'"):
        blocked().precompute("f", ["j"])
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 8 }",
        "f(x) := a[x]\nout[i] = a[i]",
        dtypes={"a, out": "float32"},
    )
    with pytest.raises(IllegalTransformError, match="would replace nothing"):
        knl.precompute("f", ["i"])
