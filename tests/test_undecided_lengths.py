"""Lengths that later steps settle: steps do not wait for them, the nest says what is owed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from seams import open_lengths

import loopkit as lk


def scaled(domain: str = "0 <= i < n") -> lk.Kernel:
    return lk.make_kernel(
        f"{{ [i]: {domain} }}",
        "<> t[i] = a[i]\nb[i] = 2*t[i]",
        [lk.GlobalArg("a, b", "float32", shape="2*n + 64"), ...],
        assumptions="n >= 1",
    )


def owed(knl: lk.Kernel) -> list[str]:
    """What is owed, which the nest says, and the first of which lowering refuses."""
    found = [error.why for error in open_lengths(knl)]
    text = str(knl)
    if not found:
        assert "no code can be made" not in text
        assert knl.cuda()
        return []
    with pytest.raises(lk.LoopkitError) as refused:
        knl.cuda()
    assert refused.value.why in found
    assert refused.value.why in text
    return found


SPLIT = "split_iname('i', 128, inner_tag='l.1') in its place gives 128 threads; "


def test_an_axis_is_settled_by_a_later_step() -> None:
    knl = scaled().set_temporary_address_space("t", "global").tag_inames("i: l.1")
    assert owed(knl) == ["iname 'i' is tagged l.1, but has no constant length"]
    with pytest.raises(lk.IllegalTransformError) as refused:
        knl.cuda()
    assert refused.value.instead == SPLIT + "fix_parameters(n=...) or assume may make it constant"
    assert owed(knl.fix_parameters(n=16)) == []
    assert owed(knl.assume("n <= 64")) == []
    untagged = knl.untag_inames("i")
    assert owed(untagged) == []
    assert owed(untagged.split_iname("i", 128, inner_tag="l.1", outer_tag="g.0")) == []


def test_sizes_that_settle_it_are_those_that_a_call_passes() -> None:
    """Not the one that is computed from them, nor those that others' bounds speak of."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < p }",
        "b[i, j] = 2*a[i, j]\nc[k] = 1",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, p >= 1",
    )
    with pytest.raises(lk.IllegalTransformError) as refused:
        knl.join_inames("i, j", "q").tag_inames("q: l.0").cuda()
    assert "fix_parameters(n=..., m=...)" in refused.value.instead


def test_an_array_of_a_thread_is_settled_by_a_later_step() -> None:
    knl = scaled()
    [why] = owed(knl)
    assert why == "temporary 't' in private memory has n elements, which is not a constant"
    assert owed(knl.fix_parameters(n=16)) == []
    assert owed(knl.set_temporary_address_space("t", "global")) == []
    shared = knl.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
    assert owed(shared) == []


def test_shared_fetches_are_dealt_out_to_axes_that_loops_around_bound() -> None:
    """The length of an axis is what the loops around let its iname be, for all who ask."""
    knl = lk.make_kernel(
        ["{ [i, k]: 0 <= i < 8 and 0 <= k < 16 }", "{ [j]: 0 <= j <= i }"],
        "b[i, j] = sum(k, a[i, k])",
        dtypes={"a, b": "float32"},
    ).tag_inames("j: l.0, i: g.0")
    assert owed(knl.add_prefetch("a", "k", default_tag="l.auto")) == []


def test_axes_that_each_thread_has_for_itself_are_not_owed() -> None:
    """An accumulator holds a value per iteration, until the loops are those of threads."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        "c[i] = sum(k, a[i, k])",
        dtypes={"a, c": "float32"},
        assumptions="n, m >= 1",
    ).split_iname("i", 16)
    turned = knl.prioritize_loops("k, i_outer, i_inner")
    (why,) = owed(turned)
    assert why.startswith("temporary 'acc' in private memory has (n + 15) // 16 x 16 elements")
    assert owed(turned.tag_inames("i_outer: g.0, i_inner: l.0")) == []


def test_blocks_that_begin_at_a_size_are_owed() -> None:
    knl = scaled().map_domain("{ [i] -> [k]: k = -i }").tag_inames("k: g.0")
    assert owed(knl) == ["iname 'k' is tagged g.0, but has no constant lower bound"]
    assert owed(knl.fix_parameters(n=5)) == []


def test_what_is_owed_is_said_of_the_loops_of_the_schedule() -> None:
    """Launches and iterations with code of their own have loops that no step can name."""
    knl = lk.make_kernel(
        ["{ [j]: 0 <= j < n }", "{ [k]: 0 <= k <= j }"],
        "for j\n b[j] = 3\n ... gbarrier\n c[j] = sum(k, a[k]) + b[n - 1 - j]\nend",
        dtypes={"a, b, c": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("k", 2).tag_inames("k_outer: l.0")
    knl = knl.split_iname("j", 16, slabs=(1, 1))
    assert owed(knl) == ["iname 'k_outer' is tagged l.0, but has no constant length"]
    with pytest.raises(lk.IllegalTransformError) as refused:
        knl.cuda()
    assert refused.value.instead.endswith("fix_parameters(n=...) or assume may make it constant")


STARTS = {"n": True, "2*n + 1": True, "n // 2": True, "3*n - 2": True, "j": False, "s": False}


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("start", STARTS)
def test_copies_side_by_side_are_counted_from_what_sizes_say(start: str, length: int) -> None:
    """What one loop has for each of its iterations becomes code, or is refused at the step."""
    knl, without = (
        lk.make_kernel(
            ["{ [j]: 0 <= j < n }", f"{{ [k]: {start} <= k < {start} + {length} }}"],
            f"for j\n <> s = st[j]\n for k\n {inner}\n end\n end",
            [lk.GlobalArg("a", "int32", shape="l"), lk.GlobalArg("b", "int32", shape="n, l"), ...],
            dtypes={"st": "int32"},
            assumptions="1 <= n and 3*n + 5 <= l",
        )
        for inner in ("<> t = a[k] + 1\n b[j, k] = t*t + s", "b[j, k] = a[k] + s")
    )
    assert owed(without.tag_inames("k: ilp")) == []
    if not STARTS[start]:
        cannot = (
            "gives a kernel for which no code can be generated(?s:.*)first value depends on '[js]'"
        )
        with pytest.raises(lk.IllegalTransformError, match=cannot):
            knl.tag_inames("k: ilp")
        return
    copied = knl.tag_inames("k: ilp")
    assert owed(copied) == [] and copied.prove().ok
    made = []
    for schedule, executor in ((knl, "reference"), (copied, "host")):
        b = np.zeros((4, 20), "int32")
        st, a = np.array([4, 5, 6, 7], "int32"), np.arange(20, dtype="int32")
        schedule.executor(executor)(a=a, b=b, st=st)
        made.append(b)
    np.testing.assert_array_equal(*made)


DOMAINS = ("0 <= k < 8", "0 <= k < n", "k = n", "n <= k < n + 4", "j <= k < j + 4", "0 <= k <= j")
LATER = (
    lambda knl: knl,
    lambda knl: knl.assume("n <= 16"),
    lambda knl: knl.fix_parameters(n=8),
    lambda knl: knl.split_iname("k", 4, slabs=(1, 1)),
    lambda knl: knl.split_iname("j", 4, slabs=(1, 1)),
    lambda knl: knl.join_inames("j, k", "jk"),
    lambda knl: knl.affine_map_inames("k", "kk", "kk = k + n"),
    lambda knl: knl.affine_map_inames("k", "kk", "kk = k + j"),
    lambda knl: knl.peel_iname("k", first=1),
    lambda knl: knl.peel_iname("j", last=1),
    lambda knl: knl.duplicate_inames("k", within="*"),
    lambda knl: knl.prioritize_loops("k, j"),
)


@pytest.mark.parametrize("tag", ["l.0", "g.0", "unr", "ilp", "l.auto"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_what_steps_accept_becomes_code_or_is_owed(domain: str, tag: str) -> None:
    plain = lk.make_kernel(
        ["{ [j]: 0 <= j < n }", f"{{ [k]: {domain} }}"],
        "for j\n for k\n <> t = a[j, k] + 1\n b[j, k] = t*t\n end\n end",
        dtypes={"a, b": "int32"},
        assumptions="n >= 1",
    )
    for later, tag_first in product(LATER, (True, False)):
        try:
            knl = plain.tag_inames({"k": tag}) if tag_first else later(plain)
            knl = later(knl) if tag_first else knl.tag_inames({"k": tag})
        except lk.LoopkitError:
            continue
        owed(knl)
