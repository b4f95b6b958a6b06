"""Reductions of partial results: each term in one of them, and each of these taken in once."""

from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import Change, build, check_change, examine, flatten

import loopkit as lk

PART = "insn_update_part"


def rows(operation="sum", dtype="float32"):
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"y[i] = {operation}(j, x[i, j])",
        dtypes={"x, y": dtype},
        assumptions="n, m >= 1",
        name="rows",
    )


def check(knl, reference=lambda x: x.sum(1)):
    rng = np.random.default_rng(0)
    for n, m in ((3, 5), (2, 200)):
        x = rng.random((n, m), dtype=np.float32)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order)(x=x)
            np.testing.assert_allclose(found, reference(x), rtol=1e-5)
    proof = knl.prove()
    assert proof.ok, str(proof)


def test_inward_and_outward(golden):
    split = rows().split_iname("j", 32)
    inward, outward = (
        split.split_reduction_inward("j_inner"),
        split.split_reduction_outward("j_inner"),
    )
    golden("partial_sums.txt", f"{inward}\n{outward}\n")
    assert inward == split.split_reduction_outward("j_outer")
    assert [s.verdict for s in inward.history] == ["proven", "proven"]
    check(inward)
    check(outward)


@pytest.mark.parametrize("direction", ["split_reduction_inward", "split_reduction_outward"])
@pytest.mark.parametrize("tags", ["j_inner: l.0", "j_inner: l.0, i: l.1", "i: g.0, j_inner: l.1"])
def test_with_threads_before_and_after(direction, tags):
    split = rows().fix_parameters(n=3).split_iname("j", 32)
    for knl in (
        getattr(split.tag_inames(tags), direction)("j_inner"),
        getattr(split, direction)("j_inner").tag_inames(tags),
    ):
        x = np.random.default_rng(0).random((3, 200), dtype=np.float32)
        for order in ("ascending", "random"):
            found = knl.executor("host", order=order)(x=x)
            np.testing.assert_allclose(found, x.sum(1), rtol=1e-5)
        assert knl.prove().ok


def test_in_shared_memory_for_each_thread():
    knl = rows().split_iname("j", 32).split_reduction_outward("j_inner")
    knl = knl.privatize_temporaries_with_inames("j_inner", "acc_part")
    knl = knl.set_temporary_address_space("acc_part", "shared")
    first = knl.duplicate_inames("j_inner", "id:insn_update_part", new_inames="last")
    threads = first.tag_inames("j_inner: l.0")
    assert "barrier" in str(threads)
    check(threads)


def test_two_warps_of_a_row():
    knl = rows("max").split_iname("j", 64).split_iname("j_inner", 32)
    knl = knl.split_reduction_outward("j_inner_outer")
    check(knl.tag_inames("j_inner_inner: l.0, j_inner_outer: l.1"), lambda x: x.max(1))


def test_records_are_split_alike():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "v[i], p[i] = argmax(j, x[i, j], j)",
        dtypes={"x, v": "float32", "p": "int64"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("j", 16).split_reduction_outward("j_inner").tag_inames("j_inner: l.0")
    x = np.random.default_rng(0).integers(0, 5, (3, 90)).astype(np.float32)
    np.testing.assert_array_equal(knl.executor("host")(x=x).p, x.argmax(1))
    assert knl.prove().ok


def test_what_is_split_is_over_more_than_that():
    with pytest.raises(lk.IllegalTransformError, match="no reduction is over 'j' and other inames"):
        rows().split_reduction_inward("j")
    with pytest.raises(lk.UnknownNameError):
        rows().split_reduction_inward("k")


def test_a_term_as_a_rule():
    knl = rows().split_iname("j", 8).split_reduction_inward("j_inner")
    ruled = knl.reduction_arg_to_subst_rule("j_inner", subst_rule_name="term")
    assert "term(j_inner) := x[i, 8*j_outer + j_inner]" in str(ruled)
    assert ruled.expand_subst().cuda() == knl.cuda()
    check(ruled.precompute("term", "j_inner", default_tag=None))
    named = rows().reduction_arg_to_subst_rule("j")
    assert "red_j_arg(j) := x[i, j]" in str(named)
    with pytest.raises(lk.IllegalTransformError, match="no reduction is over 'i'"):
        rows().reduction_arg_to_subst_rule("i")


# {{{ wrong claims


def moved(knl, statement, place):
    """The kernel with a statement in other loops: those of a path's first keys."""
    entries = [(i, place(p) if i == statement else p) for i, p in flatten(knl.tree)]
    return knl.with_(tree=build(entries))


def reordered(knl, *order):
    paths = dict(flatten(knl.tree))
    return knl.with_(tree=build([(i, paths[i]) for i in order]))


def changed(knl, statement, **fields):
    return knl.with_(
        statements=tuple(replace(s, **fields) if s.id == statement else s for s in knl.statements)
    )


TAMPERED = [
    # The partial result is taken in before it has its terms.
    (
        lambda k: reordered(
            k, "insn_init", "insn_update_init", "insn_update_part", "insn_update", "insn"
        ),
        "would not go where it belongs",
    ),
    # It is started once for all.
    (
        lambda k: changed(
            moved(k, "insn_update_init", lambda p: p[:1]),
            "insn_update_init",
            inames=frozenset({"i"}),
        ),
        "would be added more than once",
    ),
    (lambda k: changed(k, "insn_update_init", rhs=1), "would read from acc_part"),
    (lambda k: changed(k, "insn_update", operation="max"), "would not find what"),
    (
        lambda k: changed(k, "insn_update_part", rhs=2 * k.statement_by_id["insn_update_part"].rhs),
        "would not find what",
    ),
    (lambda k: changed(k, "insn_update_part", operation=None), "would not find what"),
]


@pytest.mark.parametrize(("tamper", "why"), TAMPERED)
def test_the_checker_finds_terms_that_are_lost_or_added_twice(tamper, why):
    before = rows().split_iname("j", 32)
    after = before.split_reduction_inward("j_inner")
    claim = {"moves": frozenset(("insn_update_init", PART))}
    assert not examine(before, Change(after, **claim))[1]
    with pytest.raises(lk.LoopkitError, match=why):
        check_change(before, Change(tamper(after), **claim))


LOADED = ["{ [i]: 0 <= i < n }", "{ [j]: a <= j < b }"]


def asked(knl, statement):
    """The kernel with a condition on data for a statement."""
    old = knl.statement_by_id[statement].predicates
    new = prim.Comparison(prim.Subscript(prim.Variable("x"), (prim.Variable("i"),)), ">", 0)
    return changed(knl, statement, predicates=(*old, new))


@pytest.mark.parametrize("direction", ["split_reduction_inward", "split_reduction_outward"])
@pytest.mark.parametrize(
    "tamper",
    [
        *(tamper for tamper, _ in TAMPERED),
        lambda k: asked(k, "insn_update_init"),
        lambda k: asked(k, PART),
        lambda k: asked(asked(k, PART), "insn_update_init"),
        lambda k: changed(moved(k, PART, lambda p: p[:1]), PART, inames=frozenset({"i"})),
    ],
)
def test_terms_of_rows_of_loaded_length_are_not_lost(direction, tamper):
    before = lk.make_kernel(
        LOADED,
        "for i\n <> a = ptr[i] {id=a}\n <> b = ptr[i + 1] {id=b}\n"
        "y[i] = sum(j, x[j]) {id=insn}\nend",
        [lk.GlobalArg("x", "float32", shape="m"), lk.GlobalArg("ptr", "int32", shape="n + 1"), ...],
        assumptions="n >= 1 and m >= 0",
    ).assume_within("ptr", 0, "m + 1")
    before = before.split_iname("j", 32)
    after = getattr(before, direction)("j_inner")
    claim = {"moves": frozenset(("insn_update_init", PART))}
    assert not examine(before, Change(after, **claim))[1]
    with pytest.raises(lk.LoopkitError, match=r"insn|acc_part"):
        check_change(before, Change(tamper(after), **claim))


# }}}


@pytest.mark.parametrize("operation", ["sum", "product", "max", "any", "argmax"])
def test_partial_results_of_types_that_nobody_knows_yet(operation: str) -> None:
    text = f"b = {operation}((i, j), a[i, j])"
    if operation == "argmax":
        text = "b, c = argmax((i, j), a[i, j], i)"
    knl = lk.make_kernel("{ [i, j]: 0 <= i, j < n }", text)
    for new in (knl.split_reduction_outward("j"), knl.split_reduction_inward("j")):
        assert new.add_dtypes({"a": "int32"}).prove().ok


@pytest.mark.parametrize("tag", ["l.0", "l.1"])
@pytest.mark.parametrize("removed", ["i_inner", "i_outer_inner"])
def test_threads_add_what_they_have_to_what_is_theirs(tag: str, removed: str) -> None:
    """Without an iname of threads, each of them adds its partial sum to a sum of its own."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "r = sum(i, u[i])", dtypes={"r, u": "int32"}, assumptions="n >= 1"
    )
    knl = knl.split_iname("i", 4).split_iname("i_outer", 2).tag_inames({removed: tag})
    knl = knl.split_reduction_inward("i_outer_outer")
    with pytest.raises(lk.IllegalTransformError, match="would not go where it belongs") as caught:
        knl.remove_inames_from_insn(removed, "id:insn_update_part")
    assert caught.value.witness.parameters["n"] >= 2


@pytest.mark.parametrize("start", ["q", "s"])
def test_each_thread_starts_the_partial_sum_that_it_adds(start: str) -> None:
    """All four threads compute where they look up, and those of ``q`` are the first two."""
    knl = lk.make_kernel(
        "{ [i, k, q, s]: 0 <= i < n and 0 <= k, q < 2 and 0 <= s < 4 }",
        """
        for i
            <> at = sum(k, c[i, k])
            <> found = g[at]
            u[i] = found
            x[i, q] = c[i, q]
            y[i, s] = c[i, 0]
        end
        """,
        [lk.GlobalArg("g", "int32", shape="64"), ...],
        dtypes={"c, g, u, x, y": "int32"},
    )
    knl = knl.buffer_array("acc", ["k"], partial=True).add_inames_to_insn(start, "id:init_acc")
    axes = {"i": "g.0", "q": "l.0", "s": "l.0"}
    if start == "q":
        with pytest.raises(lk.IllegalTransformError, match=r"'store_acc' .* would read acc_buf"):
            knl.tag_inames(axes)
        return
    knl = knl.tag_inames(axes)
    c, g = np.arange(10, dtype="int32").reshape(5, 2), np.arange(64, dtype="int32")[::-1].copy()
    for executor in ("reference", "host"):
        np.testing.assert_array_equal(knl.executor(executor)(c=c, g=g).u, g[c.sum(1)])
