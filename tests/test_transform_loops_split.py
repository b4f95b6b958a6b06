"""Splitting loops: split_iname, slabs, chunk_iname."""

from __future__ import annotations

import pickle

import numpy as np
import pymbolic.primitives as prim
import pytest
from loop_instances import all_sizes, check_change, executed, results
from loop_kernels import (
    error_of,
    make_product,
    make_scalar,
    make_triangle,
    outline,
    text,
)
from seams import Loop, step_from_json, to_text
from seams import sets as _sets

import loopkit as lk
import loopkit.transforms as tr
from loopkit import Kernel, make_kernel, replay


@pytest.fixture(scope="module")
def product() -> Kernel:
    return make_product()


@pytest.fixture(scope="module")
def scalar() -> Kernel:
    return make_scalar()


@pytest.fixture(scope="module")
def triangle() -> Kernel:
    return make_triangle()


# {{{ split


def test_split(product: Kernel) -> None:
    new = product.split_iname("k", 16)
    assert outline(new) == text(
        """
        i
          j
            acc = 0
            k_outer
              k_inner
                acc += a[i, 16*k_outer + k_inner]*b[16*k_outer + k_inner, j]
            c[i, j] = acc
        """
    )
    assert new.domains[2].inames == ("k_outer", "k_inner")
    assert "k" not in new.all_names
    for sizes in all_sizes(["n", "m", "l"], [1, 3]):
        check_change(tr.split_iname, product, "k", 2, sizes=sizes)


def test_split_names_and_tags(product: Kernel) -> None:
    new = product.split_iname(
        "i", 8, outer_iname="block", inner_iname="lane", outer_tag="g.0", inner_tag="l.0"
    )
    assert [(i, str(t)) for i, t in new.tags] == [("block", "g.0"), ("lane", "l.0")]
    assert outline(new).split("\n")[:2] == ["j", "  acc = 0"]
    again = product.split_iname("i", 8).rename_iname("i_outer", "i").split_iname("i", 2)
    assert {"i_outer", "i_inner_0"} <= set(again.all_inames)


def test_split_of_a_parent_reaches_its_children(triangle: Kernel) -> None:
    new = triangle.split_iname("i", 4)
    assert new.domains[1].parameters == {"i_outer", "i_inner"}
    for n in (1, 3, 6):
        check_change(tr.split_iname, triangle, "i", 4, sizes={"n": n})
        check_change(tr.split_iname, triangle, "j", 4, sizes={"n": n})


def test_split_within(scalar: Kernel) -> None:
    new = (
        scalar.fix_parameters(n=6)
        .privatize_temporaries_with_inames("i", "t")
        .split_iname("i", 4, within="id:last")
    )
    assert outline(new) == text(
        """
        i
          t[i] = x[i]*2
          j
            y[i, j] = t[i] + x[j]
        i_outer
          i_inner
            z[4*i_outer + i_inner] = t[4*i_outer + i_inner]
        """
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            ("ii", 4),
            {},
            ("UnknownNameError: split_iname('ii', 4): there is no iname 'ii'\ndid you mean 'i'?"),
        ),
        (
            ("i", 0),
            {},
            ("InvalidArgumentError: split_iname('i', 0): inner_length must be at least 1, not 0"),
        ),
        (
            ("i", "n"),
            {},
            (
                "InvalidArgumentError: split_iname('i', "
                "'n'): inner_length "
                "must be an integer, not 'n'\nsizes are not constants: fix_parameters makes them so"
            ),
        ),
        (
            ("i", 4),
            {"outer_iname": "a"},
            (
                "InvalidArgumentError: split_iname('i', "
                "4, outer_iname='a'): "
                "the name 'a' is taken\n'a_0' is free"
            ),
        ),
        (
            ("i", 4),
            {"slabs": 1},
            (
                "InvalidArgumentError: split_iname('i', "
                "4, slabs=1): slabs "
                "are two counts, of iterations at the start and at the end, not 1\n"
                "slabs=(0, 1) separates the last iteration"
            ),
        ),
        (
            ("i", 4),
            {"inner_tag": "l.7"},
            (
                "UnknownNameError: split_iname('i', 4, inner_tag='l.7'): "
                "there is no tag 'l.7'\ndid you mean 'l.2' or 'l.1' or 'l.0'?"
            ),
        ),
    ],
)
def test_split_errors(
    product: Kernel, args: tuple[object, ...], kwargs: dict[str, object], message: str
) -> None:
    assert error_of(product.split_iname, *args, **kwargs) == message


def test_split_of_a_tagged_iname(product: Kernel) -> None:
    tagged = product.tag_inames("i:l.0")
    assert error_of(tagged.split_iname, "i", 4) == (
        "IllegalTransformError: split_iname('i', 4): cannot split iname "
        "'i': it is tagged l.0\nuntag it first: untag_inames('i')"
    )


def test_split_within_needs_private_temporaries(scalar: Kernel) -> None:
    refusal = error_of(scalar.split_iname, "i", 4, within="id:last")
    assert "'load' (i=1) would overwrite t before 'last' (i=0) has read it" in refusal


# }}}

# {{{ slabs


def test_slabs_are_set_apart_last(product: Kernel) -> None:
    """A prefetch, renamings and tags find one loop; what would lose it peels it first."""
    tiled = product.split_iname("k", 4, slabs=(0, 1))
    plain = product.split_iname("k", 4)
    assert tiled.statements == plain.statements
    assert tiled != plain
    assert tiled.key != plain.key
    assert "peeling the last of k_outer" in str(tiled)
    staged = tiled.add_prefetch("a", ["k_inner"]).rename_iname("k_outer", "t")
    assert staged.slabs == (("t", 0, 1),)
    assert staged.duplicate_inames("j", within="id:*").slabs == (("t", 0, 1),)
    assert pickle.loads(pickle.dumps(staged)) == staged
    assert replay(product, [step_from_json(s.to_json()) for s in staged.history]) == staged
    for knl in (staged, staged.tag_inames("i: g.0, j: g.1"), staged.fix_parameters(l=3)):
        assert knl.prove().ok
    assert "t_last" in staged.cuda()
    assert "t_last" not in staged.fix_parameters(l=3).cuda()
    again = tiled.split_iname("k_outer", 2)
    assert [s.transform for s in again.history[-2:]] == ["peel_iname", "split_iname"]
    assert "k_outer_last" in again.all_inames
    assert not again.slabs
    assert not tiled.peel_iname("k_outer", first=1).slabs
    whole = product.fix_parameters(l=9).split_iname("k", 2, slabs=(0, 1)).unroll("k_outer")
    assert not whole.slabs
    assert len(whole.history) == 3


@pytest.mark.host
def test_slabs_around_a_prefetch(golden) -> None:
    """The tile that is not full has a fetch and threads of its own, whatever runs first."""
    knl = make_product().split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
    knl = knl.split_iname("j", 8, outer_tag="g.0", inner_tag="l.0").split_iname(
        "k", 8, slabs=(0, 1)
    )
    knl = knl.add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
    knl = knl.add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    golden("slabs_prefetch.txt", f"{knl}\n\n{knl.cuda()}")
    assert knl.prove(text=True).ok
    rng = np.random.default_rng(0)
    for n, m, l in ((1, 1, 1), (9, 17, 8), (8, 5, 23)):
        a, b = rng.random((n, l), dtype=np.float32), rng.random((l, m), dtype=np.float32)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order, seed=1)(a=a, b=b)
            np.testing.assert_allclose(found, a @ b, rtol=1e-5)


def test_slabs_of_a_loop(product: Kernel) -> None:
    new = product.split_iname("k", 16, slabs=(0, 1)).peel_iname("k_outer")
    assert outline(new) == text(
        """
        i
          j
            acc = 0
            k_outer
              k_inner
                acc += a[i, 16*k_outer + k_inner]*b[16*k_outer + k_inner, j]
            k_outer_last
              k_inner_last
                acc += a[i, 16*k_outer_last + k_inner_last]*b[16*k_outer_last + k_inner_last, j]
            c[i, j] = acc
        """
    )
    full = _sets.project_out(new.domain_of(["k_outer", "k_inner"]), ["k_inner"])
    tile = _sets.condition_set(
        prim.LogicalAnd(
            (
                prim.Comparison(0, "<=", prim.Variable("k_inner")),
                prim.Comparison(prim.Variable("k_inner"), "<", 16),
            )
        )
    )
    assert (full & tile).is_subset(new.domain_of(["k_outer", "k_inner"]))
    for sizes in all_sizes(["n", "m", "l"], [1, 2, 5]):
        for slabs in ((0, 1), (1, 0), (1, 1), (2, 1)):
            tiled = product.split_iname("k", 2, slabs=slabs)
            check_change(tr.peel_iname, tiled, "k_outer", sizes=sizes)


def test_slabs_of_an_outer_loop_copy_accumulators(product: Kernel) -> None:
    new = product.split_iname("i", 4, slabs=(1, 1)).peel_iname("i_outer")
    assert {t.name for t in new.temporaries} == {"acc", "acc_first", "acc_last"}
    assert [node.iname for node in new.tree if isinstance(node, Loop)] == [
        "i_outer_first",
        "i_outer",
        "i_outer_last",
    ]
    assert results(new, {"n": 9, "m": 2, "l": 2}) == results(product, {"n": 9, "m": 2, "l": 2})


@pytest.mark.parametrize("joined", [("i", "k"), ("k", "i")])
def test_slabs_beside_a_join_of_sizes(product: Kernel, joined: tuple[str, str]) -> None:
    # The joined loop adds to cells whose row is a quotient with a size.
    tiled = product.split_iname("j", 1, slabs=(0, 1)).join_inames(joined, within="id:insn_update")
    new = tiled.peel_iname("j_outer")
    assert {t.name for t in new.temporaries} == {"acc", "acc_last"}
    assert results(new, {"n": 3, "m": 2, "l": 4}) == results(product, {"n": 3, "m": 2, "l": 4})


def test_slabs_of_blocks_are_predicates(product: Kernel) -> None:
    new = product.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))
    new = new.peel_iname("i_outer")
    assert outline(new) == text(
        """
        j
          acc = 0 if 16*i_outer + 16 < n
          k
            acc += a[16*i_outer + i_inner, k]*b[k, j] if 16*i_outer + 16 < n
          c[16*i_outer + i_inner, j] = acc if 16*i_outer + 16 < n
        j
          acc = 0 if n <= 16*i_outer + 16
          k
            acc += a[16*i_outer + i_inner, k]*b[k, j] if n <= 16*i_outer + 16
          c[16*i_outer + i_inner, j] = acc if n <= 16*i_outer + 16
        """
    )
    tiled = product.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))
    for n in (1, 4, 5, 8, 9):
        check_change(tr.peel_iname, tiled, "i_outer", sizes={"n": n, "m": 2, "l": 2})


def test_peel(triangle: Kernel) -> None:
    new = triangle.peel_iname("i", last=1)
    assert outline(new) == text(
        """
        i
          j
            c[i, j] = a[i] + a[j]
        i_last
          j_last
            c[i_last, j_last] = a[i_last] + a[j_last]
        """
    )
    for n in (1, 2, 4):
        check_change(tr.peel_iname, triangle, "i", first=1, last=1, sizes={"n": n})
        check_change(tr.peel_iname, triangle, "j", first=1, last=1, sizes={"n": n})
    assert error_of(triangle.peel_iname, "i") == (
        "IllegalTransformError: peel_iname('i'): no iteration of 'i' is to be peeled\n"
        "give first=, last= or at="
    )


def test_cut_at_a_bound_of_another_loop(triangle: Kernel) -> None:
    tiled = triangle.split_iname("i", 4)
    new = tiled.peel_iname("j", at="4*i_outer")
    assert "for j_first in [0, 4*i_outer)" in str(new) and "for j in [4*i_outer, " in str(new)
    assert new.fission("i_inner", "id:s").prioritize_loops("j_first, i_inner").prove().ok
    for n in (1, 4, 6, 9):
        check_change(tr.peel_iname, tiled, "j", at="4*i_outer", sizes={"n": n})
    error = error_of(triangle.peel_iname, "j", at="n")
    assert "the cut at n has all iterations of 'j' on one side" in error
    assert "there is no size or iname around the loop 'x'" in error_of(
        triangle.peel_iname, "j", at="x + 1"
    )
    assert "at: i*n is not affine" in error_of(triangle.peel_iname, "j", at="i*n")
    assert "give either, or peel twice" in error_of(triangle.peel_iname, "j", first=1, at="i")


def test_cut_of_blocks(triangle: Kernel) -> None:
    new = triangle.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0").peel_iname(
        "i_outer", at="2"
    )
    assert len(new.statements) == 2 and new.prove().ok


def test_an_iname_that_other_loops_have_too_keeps_its_values_there() -> None:
    """The loop over ``h`` bounds ``p`` inside of it, and as a whole elsewhere."""
    domains = ["{ [g]: 0 <= g < 4 }", "{ [h]: 0 <= h < 5 }", "{ [p]: 0 <= p <= h and p <= g }"]
    knl = make_kernel(
        [*domains, "{ [q]: 0 <= q < 5 and q <= g }"],
        """
        for g
            for h, p
                y[g, h, p] = c[p] + h
            end
            s[g, q] = c[q]
        end
        """,
        dtypes={"c, s, y": "int32"},
    ).rename_iname("q", "p", existing_ok=True)
    check_change(tr.peel_iname, knl, "h", first=1, last=1, sizes={})
    check_change(tr.peel_iname, knl, "h", at="g", sizes={})
    check_change(tr.unroll, knl, "h", sizes={})
    for new in (
        knl.peel_iname("h", first=1, last=1),
        knl.peel_iname("h", at="g"),
        knl.unroll("h"),
        knl.split_iname("h", 2, slabs=(0, 1)),
        knl.tag_inames("p: l.0").split_iname("h", 2, slabs=(1, 0)),
    ):
        assert new.prove().ok


def test_peel_with_rules() -> None:
    """The rules that peeled statements use say what these say: copies for their inames."""
    knl = make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        f(x) := 3*a[x, i]
        g(x) := f(x) + f(x + 1)
        b[i, j] = g(j)
        """,
        assumptions="n >= 1",
        dtypes={"a, b": "int32"},
    )
    new = knl.assume("n >= 3").peel_iname("i", first=1, last=1)
    rules = {r.name: to_text(r.expression) for r in new.substitutions}
    assert rules["f"] == "3*a[x, i]"
    assert sorted(rules.values()).count("3*a[x, i_last]") == 1
    assert "f(x) + f(x + 1)" in rules.values()
    for n in (1, 2, 4):
        check_change(tr.peel_iname, knl, "i", first=1, last=1, sizes={"n": n})
        check_change(tr.peel_iname, knl, "j", first=1, last=1, sizes={"n": n})
        tiled = knl.split_iname("i", 2, slabs=(0, 1))
        check_change(tr.peel_iname, tiled, "i_outer", sizes={"n": n})


def test_peeling_all(product: Kernel) -> None:
    short = product.fix_parameters(n=3)
    assert error_of(short.peel_iname, "i", 2, 2) == (
        "IllegalTransformError: peel_iname('i', first=2, last=2): loop 'i' has no "
        "iterations between its first 2 and last 2\npeel fewer iterations"
    )


# }}}

# {{{ chunk


@pytest.mark.parametrize(("length", "chunks"), [(10, 3), (9, 3), (2, 3), (7, 1), (8, 5)])
def test_chunk(product: Kernel, length: int, chunks: int) -> None:
    fixed = product.fix_parameters(n=length)
    new = check_change(tr.chunk_iname, fixed, "i", chunks, sizes={"m": 1, "l": 1})
    sizes: dict[int, int] = {}
    for statement, point in executed(new, {"m": 1, "l": 1}):
        if statement.kind == "init":
            sizes[point["i_outer"]] = sizes.get(point["i_outer"], 0) + 1
    found = [sizes.get(chunk, 0) for chunk in range(chunks)]
    assert found == sorted(found, reverse=True)
    assert sum(found) == length
    assert max(found) - min(found) <= 1
    assert len(new.domains[0].set.get_basic_sets()) == 1


def test_chunk_of_a_strided_loop() -> None:
    kernel = make_kernel("{ [i]: 0 <= i < 11 and i mod 2 = 0 }", "a[i] = i", dtypes={"a": "int32"})
    check_change(tr.chunk_iname, kernel, "i", 3, sizes={})


# }}}


@pytest.mark.host
def test_axes_for_all_threads_are_joined_to_one():
    """It is for all threads, too, and dealt out once it is known which there are."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 16 }", "b[i, j] = 2*a[i, j]", dtypes={"a": "float32"}
    )
    knl = knl.add_prefetch("a", "i, j", default_tag="l.auto")
    joined = knl.join_inames("a_dim_0, a_dim_1")
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    for new in (joined, joined.tag_inames("i:l.1, j:l.0"), joined.tag_inames("j:l.0")):
        assert new.prove().ok and np.array_equal(new(a=a), 2 * a)
    alone = knl.join_inames("a_dim_0, a_dim_1", "cell", tag="l.0")
    assert str(alone.iname_tags["cell"]) == "l.0"
    with pytest.raises(lk.IllegalTransformError, match=r"it is tagged l\.auto"):
        joined.join_inames("a_dim_1_and_a_dim_0, i")
