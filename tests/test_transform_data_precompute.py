from itertools import permutations

import numpy as np
import pytest
from data_kernels import global_args, run_on_host
from seams import address_space_of as space_of
from seams import path_inames, statements_in, to_text

import loopkit as lk
from loopkit import AddressSpace, IllegalTransformError, InvalidArgumentError, UnknownNameError


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
    assert text_of(inner, "insn") == "out[i, j] = g(i + j)"
    [rule] = inner.substitutions
    assert to_text(rule.expression) == "f_r[x - i] + f_r[x - i + 1]"
    assert "f_r[j] + f_r[j + 1]" in inner.cuda()
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
    tiled = knl.split_iname("i", 4).precompute("f", ["i_inner", "j"], default_tag=None)
    assert text_of(tiled, "insn") == "out[4*i_outer + i_inner, j] = f_r[j, i_inner]"
    assert tiled.temporary_by_name["f_r"].shape == (8, 4) and tiled.prove().ok
    assert list(statements_in(tiled.tree)) == ["compute_f", "insn"]
    kept = knl.precompute("f", [], storage_axes=["x", "i"], default_tag=None)
    assert kept.temporary_by_name["f_r"].shape == (1, 1)


def test_a_common_subexpression_without_arguments():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "out[i, j] = sin(a[i]*b[j]) + 2*sin(a[i]*b[j])",
        dtypes={"a, b, out": "float32"},
        assumptions="n >= 1",
    ).extract_subst("wave", "sin(a[i]*b[j])")
    once = knl.precompute("wave")
    assert text_of(once, "insn") == "out[i, j] = wave_r + 2*wave_r"
    row = knl.precompute("wave", "j", default_tag=None)
    assert text_of(row, "compute_wave") == "wave_r[wave_dim_0] = sin(a[i]*b[wave_dim_0])"
    assert once.prove().ok and row.prove().ok


@pytest.mark.host
def test_arguments_that_data_decide():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x, y) := sin(a[x]) + y\nout[i, j] = f(place[j], j)*i + f(place[j], j + 1)",
        [*global_args("a", "m"), ...],
        dtypes={"out": "float32", "place": "int32"},
        assumptions="n, m >= 1",
    )
    staged = knl.precompute("f", "j", default_tag=None)
    assert staged.temporary_by_name["f_r"].shape == (9, 8)
    assert text_of(staged, "insn") == "out[i, j] = f_r[j, j]*i + f_r[j + 1, j]"
    assert staged.substitutions == () and not staged.prove().findings
    a = np.random.default_rng(0).random(5, dtype=np.float32)
    place = np.array([0, 4, 2, 2, 1, 3, 0, 4], np.int32)
    given = {"a": a, "place": place, "n": 3}
    want = knl.executor("reference")(**given)
    for order in ("ascending", "descending", "random"):
        run = staged.executor("host", order=order, seed=1)
        np.testing.assert_allclose(run(**given), want, rtol=1e-5)
    with pytest.raises(IllegalTransformError, match="nothing says that they are a constant number"):
        lk.make_kernel(
            "{ [j]: 0 <= j < 8 }",
            "f(x) := a[x]\nout[j] = f(place[j]) + f(place[7 - j])",
            [*global_args("a", "m"), ...],
            dtypes={"out": "float32", "place": "int32"},
        ).precompute("f", "j", default_tag=None)


def test_invocations_span_the_footprint():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(x) := sin(a[x])\nout[i, j] = f(i + j) + f(8*j)",
        [*global_args("a", "n + 64"), ...],
        dtypes={"out": "float32"},
        assumptions="n >= 1",
    )
    one = knl.precompute("f(i + j)", "j", default_tag=None)
    assert text_of(one, "insn") == "out[i, j] = f_r[j] + f(8*j)"
    two = knl.precompute(["f(0:64)"], default_tag=None)
    assert text_of(two, "insn") == "out[i, j] = f(i + j) + f_r[8*j]"
    assert one.prove().ok and two.prove().ok
    assert [r.name for r in one.substitutions] == ["f"]
    with pytest.raises(InvalidArgumentError, match="invocations of one rule"):
        knl.precompute(["f(i)", "g(i)"], "j")
    with pytest.raises(InvalidArgumentError, match="has 2 indices"):
        knl.precompute("f(i, j)", "j")


def test_uses_that_another_one_covers():
    """d(j) stays among the values d(i) of a whole loop or tile over i."""
    text = "d(b) := 2*q[b]\nout[i, j] = d(i)*d(j)"
    for domain, swept, more in (
        ("{ [i, j]: 0 <= i, j < 8 }", "i", "m = 8"),
        ("{ [i, j]: 0 <= i < 9 and 2 <= j < 5 }", "i", "m = 9"),
        ("{ [i, j]: 0 <= i < m and i - i%4 <= j < i - i%4 + 4 and j < m }", "i_inner", ""),
    ):
        data = [*global_args("q", "m"), ...]
        knl = lk.make_kernel(domain, text, data, dtypes={"out": "float32"}, assumptions=more)
        knl = knl.split_iname("i", 4) if swept == "i_inner" else knl
        new = knl.precompute("d", swept, default_tag=None)
        assert len(new.temporary_by_name["d_r"].shape) == 1 and new.prove().ok
        assert not new.substitutions
    knl = lk.make_kernel("{ [i, j]: 0 <= i < 4 and 0 <= j < 8 }", text, dtypes={"q": "float32"})
    with pytest.raises(IllegalTransformError, match="do not differ by a constant"):
        knl.precompute("d", "i", default_tag=None)


def test_loops_outside_of_the_computation_move_out():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 8 }",
        "f(x, y) := sin(a[x, y])\nout[i, j] = sum(k, f(j, k)*b[k])",
        dtypes={"a, b, out": "float32"},
        assumptions="n >= 1",
    )
    new = knl.precompute("f", "j", precompute_outer_inames="i, k", default_tag=None)
    assert path_inames(new.paths["compute_f"]) == ("i", "k", "f_dim_0") and new.prove().ok


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
    from seams import sets as _sets

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


def heat(steps):
    rules = ["u0(i) := a[i]"]
    rules += [f"u{t}(i) := {heat_step(f'u{t - 1}')}" for t in range(1, steps)]
    return lk.make_kernel(
        f"{{ [i]: {steps} <= i < n + {steps} }}",
        "\n".join([*rules, f"b[i - {steps}] = {heat_step(f'u{steps - 1}')}"]),
        [*global_args("a", f"n + {2 * steps}"), ...],
        dtypes={"b, c": "float32"},
        assumptions="n >= 1",
    ).split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")


def heat_step(u):
    return f"{u}(i) + c*({u}(i - 1) - 2*{u}(i) + {u}(i + 1))"


@pytest.mark.host
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_chains_in_any_order_hold_no_more_than_is_read(order):
    knl, staged = heat(3), []
    for time in order:
        later = min((t for t in staged if t > time), default=None)
        axis = f"u{later}_dim_0"
        knl = knl.precompute(
            f"u{time}", "i_inner" if later is None else f"{axis}_outer, {axis}_inner"
        )
        staged.append(time)
    assert [knl.temporary_by_name[f"u{t}_s"].shape for t in range(3)] == [(134,), (132,), (130,)]
    assert knl.substitutions == () and knl.prove().ok
    rng = np.random.default_rng(0)
    for n in (1, 128, 200):
        a = rng.random(n + 6, dtype=np.float32)
        want = a
        for _ in range(3):
            want = want[1:-1] + 0.25 * (want[:-2] - 2 * want[1:-1] + want[2:])
        for order_of_threads in ("ascending", "descending", "random"):
            run = knl.executor("host", order=order_of_threads, seed=3)
            np.testing.assert_allclose(run(a=a, c=np.float32(0.25)), want, atol=1e-5)


def test_rules_that_others_use_too_get_copies():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        """
        f(x) := a[x]
        g(x) := f(x) + f(x + 1)
        out[i, j] = g(i + j) {id=one}
        two[i, j] = g(j) {id=two}
        """,
        [*global_args("a", "n + 8"), ...],
        dtypes={"out, two": "float32"},
        assumptions="n >= 1",
    )
    staged = knl.precompute("f", "j", within="id:one", default_tag=None)
    assert text_of(staged, "one") == "out[i, j] = g_0(i + j)"
    assert text_of(staged, "two") == "two[i, j] = g(j)"
    assert {r.name for r in staged.substitutions} == {"f", "g", "g_0"} and staged.prove().ok


def test_across_a_write_to_what_it_reads():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        """
        for i, j
            out[i, j] = a[i]*a[i] + j {id=use}
            a[i] = out[i, j] {id=put}
        end
        """,
        dtypes={"a, out": "float32"},
        assumptions="n >= 1",
    ).extract_subst("square", "a[x]*a[x]", "x")
    with pytest.raises(IllegalTransformError, match="before 'put'") as found:
        knl.precompute("square", "j", default_tag=None)
    witness = found.value.witness
    assert (witness.array, witness.source.statement, witness.sink.statement) == ("a", "put", "use")
    assert knl.precompute("square", default_tag=None).prove().ok


# {{{ inames that exist


def rows(length=8, text="out[i, j] = f(8*i + j) + t[j]", **more):
    return lk.make_kernel(
        f"{{ [i, j, p, q]: 0 <= i < n and 0 <= j < 8 and 0 <= p < {length} and 3 <= q < 11 }}",
        f"f(x) := sin(a[x])\nfor i\nfor p\n<> t[p] = b[i, p] {{id=fill}}\nend\n{text}\n"
        "w[i, q] = 2 {id=two}\nend",
        dtypes={"a, b, w, out": "float32"},
        assumptions="n >= 1",
        name="rows",
        **more,
    )


def _runs(knl, length=8, n=5):
    rng = np.random.default_rng(n)
    a = rng.random(8 * n + 2 * (length > 8), dtype=np.float32)
    shapes = {"a": a, "b": rng.random((n, length), dtype=np.float32)}
    # Of what is not written, there is something to compare.
    shapes |= {"w": np.zeros((n, 11), np.float32)} if "w" in knl.arg_by_name else {}
    want = knl.executor("reference")(**shapes)
    for order in ("ascending", "descending", "random"):
        for one, other in zip(knl.executor("host", order=order)(**shapes), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    assert knl.prove() and knl.prove(text=True)


REUSED = {
    "p": "f_r[p] = sin(a[8*i + p])",
    "j": "f_r[j] = sin(a[8*i + j])",
    "q": "f_r[q - 3] = sin(a[8*i + q - 3])",
    "fresh": "f_r[fresh] = sin(a[8*i + fresh])",
}


@pytest.mark.host
@pytest.mark.parametrize("iname", REUSED)
def test_inames_that_exist_are_used_again(iname, golden):
    before = rows()
    knl = before.precompute("f", "j", precompute_inames=iname, default_tag=None)
    assert text_of(knl, "compute_f") == REUSED[iname]
    assert len(knl.all_inames) == 4 + (iname == "fresh")
    same_loop = knl.paths["compute_f"] == knl.paths["fill"]
    assert same_loop == (iname == "p")
    assert lk.verify(before, knl)
    _runs(knl)
    if iname == "p":
        golden("precompute_reused_iname.txt", f"{knl}\n\n{knl.cuda()}")


@pytest.mark.host
def test_an_iname_that_is_longer_is_guarded():
    knl = rows(12, "out[i, j] = f(8*i + j) + f(8*i + j + 2) + t[j]")
    knl = knl.precompute("f", "j", precompute_inames="p", default_tag=None)
    assert [to_text(p) for p in knl.statement_by_id["compute_f"].predicates] == ["p <= 9"]
    _runs(knl, 12)


@pytest.mark.host
def test_threads_that_exist_are_used_again():
    knl = rows().split_iname("i", 4, outer_tag="g.0").tag_inames("p: l.0, j: l.0, q: l.0")
    for iname in ("p", "j", "q"):
        again = knl.precompute("f", "j", precompute_inames=iname)
        temporary = again.temporary_by_name["f_s"]
        assert (temporary.shape, temporary.address_space) == ((8,), AddressSpace.LOCAL)
        _runs(again)


@pytest.mark.host
def test_a_loop_in_front_is_not_that_of_what_is_read():
    knl = lk.make_kernel(
        "{ [i, j, p]: 0 <= i < n and 0 <= j, p < 8 }",
        "f(x) := 2*t[x]\nfor i\nfor p\n<> t[p] = b[i, p] {id=fill}\nend\n"
        "out[i, j] = f(j) + f(7 - j)\nend",
        dtypes={"b, out": "float32"},
        assumptions="n >= 1",
    ).precompute("f", "j", precompute_inames="p", default_tag=None)
    assert knl.paths["compute_f"] != knl.paths["fill"]
    b = np.random.default_rng(0).random((3, 8), dtype=np.float32)
    found = run_on_host(knl, {"b": b, "out": np.zeros((3, 8), np.float32)}, {"n": 3})
    np.testing.assert_allclose(found["out"], 2 * b + 2 * b[:, ::-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"precompute_inames": "i"}, "'i' runs around what is to be computed"),
        ({"precompute_inames": "p"}, "'p' does not run over all that is to be computed"),
        ({"precompute_inames": "insn"}, "the name 'insn' is taken"),
        (
            {"precompute_inames": "q", "storage_axis_to_tag": {"x": "unr"}},
            "'q' exists, and has its own tag or none",
        ),
    ],
)
def test_inames_that_cannot_be_used_again(options, why):
    knl = rows(6, "out[i, j] = f(8*i + j)")
    with pytest.raises(lk.LoopkitError) as caught:
        knl.precompute("f", "j", default_tag=None, **options)
    assert why in str(caught.value)


def test_one_iname_is_not_along_two_axes():
    knl = lk.make_kernel(
        "{ [i, j, k, p]: 0 <= i < n and 0 <= j, k, p < 8 }",
        "f(x, y) := sin(a[x, y])\nout[i, j, k] = f(i + j, k)\nw[p] = 1",
        dtypes={"a, w, out": "float32"},
        assumptions="n >= 1",
    )
    with pytest.raises(InvalidArgumentError, match="'p' is given for two axes"):
        knl.precompute("f", "j, k", precompute_inames="p, p", default_tag=None)
    threads = knl.tag_inames("p: l.0")
    with pytest.raises(InvalidArgumentError, match="of which 'p' is one"):
        threads.precompute("f", "j, k", precompute_inames="fresh, p")
    assert knl.precompute("f", "j, k", precompute_inames="fresh, p", default_tag=None)


# }}}


def flat(text, **more):
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        text,
        [lk.GlobalArg("a", "float32", shape="n*m + m + 1"), lk.ValueArg("n, m", "int32"), ...],
        dtypes={"b": "float32"},
        assumptions="n, m >= 1",
        **more,
    )


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("f(x) := sin(a[x])\nb[i, j] = f(i*m + j)", (16,)),
        ("f(x) := sin(a[x])\nb[i, j] = f(i*m + j) + f(j + 1 + i*m)", (17,)),
        ("f(x) := sin(a[x])\nb[i, j] = f(m*i + 2*j + m - j) + f(m*i + m + j)", (16,)),
        ("f(x) := a[x]*x\nb[i, j] = f(i*m + j) + f(i*m + j + 1)", (17,)),
    ],
)
def test_arguments_that_are_not_affine(text, shape):
    """What is not affine is part of the rule; what is spans the footprint."""
    knl = flat(text)
    staged = knl.split_iname("j", 16).precompute("f", "j_inner", default_tag=None)
    [temporary] = (t for t in staged.temporaries if t.name.startswith("f_"))
    assert temporary.shape == shape
    assert staged.prove().ok and lk.verify(knl, staged)
    a = np.random.default_rng(1).random(5 * 37 + 38, dtype=np.float32)
    want = knl.executor("reference")(a=a, n=5, m=37)
    found = staged.executor("host")(a=a, n=5, m=37)
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_data_and_neighbours():
    """Each use adds a constant to what data choose."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(x) := 2*a[x]\nb[i] = f(p[i])*f(p[i] + 1)",
        [lk.GlobalArg("a", "float32", shape="m"), lk.GlobalArg("p", "int32", shape="n"), ...],
        dtypes={"b": "float32"},
    ).assume_within("p", 0, "m - 1")
    staged = knl.split_iname("i", 16).precompute("f", "i_inner", default_tag=None)
    assert staged.temporary_by_name["f_r"].shape == (2, 16)
    assert staged.prove().ok
    rng = np.random.default_rng(2)
    given = {"a": rng.random(9, dtype=np.float32), "p": rng.integers(0, 8, 37).astype(np.int32)}
    np.testing.assert_allclose(
        staged.executor("host")(**given), knl.executor("reference")(**given), rtol=1e-6
    )


def test_values_of_narrow_data_stay_as_they_are_computed():
    """Bytes that are added up outside of subscripts wrap around: they are no whole numbers."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "f(x) := 2*x\nb[i] = f(p[i]) + f(p[i] + 1)",
        dtypes={"p": "uint8", "b": "float32"},
    )
    with pytest.raises(IllegalTransformError):
        knl.precompute("f", "i", default_tag=None)


def test_invocations_in_one_text():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "f(a, b) := x[a, b]*2\ny[i, j] = f(i, j) + f(i + 2, j) + f(j, i)",
        [lk.GlobalArg("x", shape="n + 8, n + 8"), ...],
        dtypes={"x, y": "float32"},
    ).split_iname("i", 8)
    several = ["f(i, j)", "f(i + 2, j)"]
    one, two = (
        knl.precompute(given, "i_inner, j", default_tag=None)
        for given in (several, ", ".join(several))
    )
    assert str(one) == str(two)
    assert "f_r[10, 8]" in str(one)


def test_copies_that_rules_read_are_where_they_are_said_to_be():
    """Whose threads read a copy, the arguments of rules say."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(i) := x[i] + x[i + 1]\ng(i) := f(i) + f(i + 1)\ny[i] = g(i)",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    late = knl.split_iname("i", 16).precompute("f", "i_inner", default_tag=None)
    late = late.tag_inames("i_outer: g.0, i_inner: l.0")
    assert "__shared__ __align__(16) float f_r[17]" in late.cuda()
    assert "f_r[17]" in str(late) and "shared float32" in str(late)
    assert late.prove().ok
