"""Loops cut in two, and made one."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from conftest import Golden
from seams import Loop, entries_of

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def chain() -> lk.Kernel:
    """Each loop uses what the one before it made; the sum is whole only after its loop."""
    return lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i, j, k, l < n }",
        """
        a[i] = x[i] + 1          {id=a}
        b[j] = 2*a[j]            {id=b}
        total[0] = sum(k, b[k])  {id=total}
        c[l] = b[l]/total[0]     {id=c}
        """,
        dtypes={"x, a, b, c, total": "float64"},
        name="chain",
    )


def together() -> lk.Kernel:
    """One loop with three statements and a sum."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            b[i] = 2*x[i]                       {id=b}
            <> s = sum(j, y[i, j]*b[i])         {id=s}
            c[i] = s + b[i]                     {id=c}
        end
        """,
        dtypes={"x, y, b, c": "float64"},
        name="together",
    )


def is_right(knl: lk.Kernel, n: int) -> bool:
    """Whether a schedule of :func:`chain` computes what the text says."""
    x = np.random.default_rng(n).uniform(1, 2, n)
    b = 2 * (x + 1)
    results = [
        knl.executor("host", order=o, seed=1)(x=x, a=np.zeros(n), b=np.zeros(n)) for o in ORDERS
    ]
    return all(
        np.allclose(total, b.sum()) and np.allclose(c, b / b.sum()) for _, _, total, c in results
    )


def loops(knl: lk.Kernel) -> list[str]:
    """The statements of each outermost loop."""
    return [
        " ".join(str(leaf) for leaf, _ in entries_of(node.body))
        for node in knl.tree
        if isinstance(node, Loop)
    ]


def test_candidates_are_fused(golden: Golden) -> None:
    batches = lk.get_kennedy_unweighted_fusion_candidates(chain(), "i, j, k, l")
    assert batches == {"ifused": frozenset("ijk"), "ifused_0": frozenset("l")}
    knl = chain().rename_inames_in_batch(batches)
    assert loops(knl) == ["a b total_update", "c"]
    golden("fusion.txt", f"{knl}\n\n{knl.script()}\n\n{knl.cuda()}")
    assert knl.prove().ok


@pytest.mark.parametrize("name", ["total", "last"])
def test_what_reads_a_sum_stays_behind_it_whatever_it_is_called(name: str) -> None:
    """A statement may be called as the array that it writes."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        f"""
        total[0] = sum(i, x[i])   {{id={name}}}
        y[j] = x[j] / total[0]
        """,
        dtypes={"x": "float32"},
    )
    with pytest.raises(lk.IllegalTransformError, match="would read acc before"):
        knl.rename_iname("j", "i", existing_ok=True).fuse_loops("i")


@pytest.mark.host
@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_fused_and_cut_loops_run(n: int) -> None:
    fused = chain().rename_inames_in_batch({"i": "i, j, k", "l": ["l"]} | {"i": ("j", "k")})
    assert loops(fused) == ["a b total_update", "c"]
    apart = fused.fission("i", "id:b")
    assert loops(apart) == ["a", "b", "total_update", "c"]
    again = apart.fuse_loops("i")
    assert again.tree == fused.tree
    assert pickle.loads(pickle.dumps(again)) == again
    assert all(is_right(knl, n) for knl in (fused, apart, again))


def test_candidates_of_one_depth() -> None:
    nested = lk.make_kernel("{ [i, j]: 0 <= i, j < n }", "a[i, j] = 1", dtypes={"a": "float32"})
    with pytest.raises(lk.InvalidArgumentError, match="'i' and 'j' are both around statement"):
        lk.get_kennedy_unweighted_fusion_candidates(nested, "i, j")
    with pytest.raises(lk.UnknownNameError, match="there is no iname 'q'"):
        lk.get_kennedy_unweighted_fusion_candidates(nested, "q")


def test_candidates_that_are_kept_apart() -> None:
    batches = lk.get_kennedy_unweighted_fusion_candidates(
        chain(), ["k", "j", "i"], prefix="both", force_infusible=lambda one, other: one == "i"
    )
    assert batches == {"both": frozenset("i"), "both_0": frozenset("jk")}


def test_candidates_of_other_lengths_or_tags() -> None:
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i, j < n }", "{ [k]: 0 <= k <= n }"],
        """
        a[i] = 1
        b[j] = 2
        c[k] = 3
        """,
        dtypes={"a, b, c": "float32"},
    )
    found = lk.get_kennedy_unweighted_fusion_candidates(knl, "i, j, k")
    assert [set(v) for v in found.values()] == [{"i", "j"}, {"k"}]
    blocks = knl.tag_inames("i: g.0, j: g.0")
    found = lk.get_kennedy_unweighted_fusion_candidates(blocks, "i, j")
    assert [set(v) for v in found.values()] == [{"i", "j"}]
    one = blocks.rename_inames_in_batch(found)
    assert {i for s in one.statements for i in s.inames} == {"ifused", "k"}
    found = lk.get_kennedy_unweighted_fusion_candidates(knl.tag_inames("i: g.0"), "i, j")
    assert [set(v) for v in found.values()] == [{"i"}, {"j"}]


def test_sums_are_cut(golden: Golden) -> None:
    """An accumulator gets an axis where its loop is cut; a scalar of the person's is in the way."""
    knl = together().fission("i", "id:b").fission("i", "id:s_init or id:s_update")
    assert loops(knl)[0] == "b"
    golden("fission.txt", f"{knl}\n\n{knl.script()}\n\n{knl.fix_parameters(n=64).cuda()}")
    with pytest.raises(lk.IllegalTransformError) as refused:
        together().fission("i", "id:c")
    assert refused.value.witness is not None
    assert "would overwrite s before" in str(refused.value)
    strips = (
        "legal in strips, if 's' has an axis for 'i_inner': .split_iname('i', 16)"
        ".privatize_temporaries_with_inames('i_inner', only_var_names='s')"
        ".fission('i_inner', 'id:c')"
    )
    assert strips in str(refused.value)


def test_backward_reads_are_refused() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n - 1 }",
        """
        a[i] = x[i]       {id=a}
        b[j] = a[j + 1]   {id=b}
        """,
        [lk.GlobalArg("a", "float64", ("n",)), ...],
        dtypes={"x, b": "float64"},
        assumptions="n >= 3",
    )
    one_name = knl.rename_iname("j", "i", existing_ok=True)
    assert loops(one_name) == ["a", "b"]
    with pytest.raises(lk.IllegalTransformError) as refused:
        one_name.fuse_loops("i")
    assert refused.value.witness is not None
    assert "would read a[1] before 'a' (i=1) has written it" in str(refused.value)
    carried = lk.make_kernel(
        "{ [i]: 0 <= i < n - 1 }",
        """
        for i
            a[i + 1] = b[i]      {id=a}
            b[i + 1] = a[i] + 1  {id=b}
        end
        """,
        dtypes={"a, b": "float64"},
        assumptions="n >= 3",
    )
    with pytest.raises(lk.IllegalTransformError, match="before 'b'"):
        carried.fission("i", "id:b")


def test_nothing_to_cut_or_fuse() -> None:
    knl = chain()
    with pytest.raises(
        lk.IllegalTransformError, match="no two loops over 'i' are in the same place"
    ):
        knl.fuse_loops("i")
    with pytest.raises(lk.IllegalTransformError, match="holds both statements that match"):
        knl.fission("i", "id:a")
    with pytest.raises(lk.IllegalTransformError, match=r"is tagged g\.0, and is no loop"):
        together().tag_inames("i: g.0").fission("i", "id:b")
    with pytest.raises(lk.IllegalTransformError, match="no statement matches"):
        knl.fission("i", "id:nothing")
    for step in (knl.fuse_loops, partial(knl.fission, within="id:a")):
        with pytest.raises(lk.InvalidArgumentError, match="inames names no iname"):
            step("")
    with pytest.raises(lk.InvalidArgumentError):
        knl.rename_inames_in_batch(["i", "j"])  # type: ignore[arg-type]


def test_loops_that_are_one_stay_so() -> None:
    """What is left to be fused is, or is refused with a witness."""

    def fused(index: str) -> lk.Kernel:
        knl = lk.make_kernel(
            "{ [i, j, p, q]: 0 <= i, p < n and 0 <= j, q < m }",
            f"b[i, j] = 2*a[i, j] {{id=b}}\nc[p, q] = b[p, {index}] {{id=c}}",
            dtypes={"a, b, c": "float32"},
            assumptions="n, m >= 2",
        )
        outer = knl.rename_iname("p", "i", existing_ok=True)
        return outer.rename_iname("q", "j", existing_ok=True)

    parted = fused("q").fission("j", "id:c")
    assert [str(parted).count(f"for {i}") for i in "ij"] == [1, 2]
    assert str(parted.fuse_loops("i, j")) == str(fused("q"))
    with pytest.raises(lk.IllegalTransformError) as caught:
        fused("m - 1 - q").fuse_loops("i, j")
    assert caught.value.witness is not None
    assert "'c' (p=0, q=0) would read b[0, 1] before" in str(caught.value)


def test_unchecked_wishes_are_not_granted() -> None:
    knl = chain().rename_iname("j", "i", existing_ok=True, unchecked=True)
    assert loops(knl)[:2] == ["a", "b"]


def test_nested_loops() -> None:
    """What is inside of a cut loop is cut with it, and fused loops keep what was around them."""
    knl = lk.make_kernel(
        "{ [t, i, j]: 0 <= t < 4 and 0 <= i, j < n }",
        """
        for t
            for i
                for j
                    a[t, i, j] = x[i, j] + t      {id=a}
                    b[t, i, j] = 2*a[t, i, j]     {id=b}
                end
            end
        end
        """,
        dtypes={"x, a, b": "float64"},
    )
    cut = knl.fission("i", "id:b")
    (outer,) = cut.tree
    assert isinstance(outer, Loop)
    assert [n.iname for n in outer.body if isinstance(n, Loop)] == ["i", "i"]
    assert cut.fuse_loops("i, j").tree == knl.tree
    assert cut.fuse_loops("i").tree == knl.fission("j", "id:b").tree


def test_loops_around_launches() -> None:
    """A barrier for all blocks comes to stand between the parts that it parted."""
    knl = lk.make_kernel(
        "{ [t, i, j]: 0 <= t < 3 and 0 <= i, j < n }",
        """
        for t
            a[t, i] = x[i] + t    {id=a}
            ... gbarrier          {id=wait}
            b[t, j] = a[t, n - 1 - j]  {id=b}
        end
        """,
        dtypes={"x, a, b": "float64"},
    )
    cut = knl.fission("t", "id:b")
    assert [getattr(n, "iname", "wait") for n in cut.tree] == ["t", "wait", "t"]
    with pytest.raises(lk.IllegalTransformError, match="no two loops"):
        cut.fuse_loops("t")
    one = cut.remove_barrier("wait").fuse_loops("t")
    assert loops(one) == ["a b"]
