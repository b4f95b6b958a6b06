"""The checker itself: what its cases elsewhere (refusals, faults, campaign) do not single out."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest
from proof_kernels import peeled_over_blocks
from seams import Change, Loop, SpentError, at_most, examine

import loopkit as lk


def test_copies_are_there_in_every_block_that_reads() -> None:
    """A fetch by the last block alone serves no statement that all blocks run."""
    knl = peeled_over_blocks()
    fetched = knl.add_prefetch(
        "a", ["k_inner_first_inner", "k_inner"], temporary_address_space="shared"
    )
    moves = frozenset(fetched.statement_by_id.keys() - knl.statement_by_id.keys())
    in_one_block = tuple(
        replace(s, inames=s.inames | {"k_outer_last"}) if s.id in moves else s
        for s in fetched.statements
    )
    for statements, kinds in ((fetched.statements, set()), (in_one_block, {"missing"})):
        change = Change(fetched.with_(statements=statements), moves=moves)
        assert {v.kind for v in examine(knl, change)[1]} == kinds


def stores(value: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"for i\ny[0] = {value}\nend",
        [lk.GlobalArg("y", "int32", shape=1), lk.GlobalArg("x", "int32", shape="n"), ...],
    )


def test_what_no_run_shows_is_undecided() -> None:
    """By sets another store comes last; by values it does not matter."""
    turned = "{ [i] -> [r]: r = -i }"
    for value in ("0*x[i]", "x[i] % 1", "x[i] - x[i]"):
        with pytest.raises(lk.UndecidedError, match="a run of this case shows no difference"):
            stores(value).map_domain(turned)
    with pytest.raises(lk.IllegalTransformError, match="n = 2"):
        stores("x[i]").map_domain(turned)


def test_what_is_too_large_to_run_is_said() -> None:
    knl = lk.make_kernel(
        "{ [i]: 1000000 <= i < n }", "a[i] = a[i - 1000000] + 1", dtypes={"a": "float32"}
    )
    with pytest.raises(lk.RaceError, match="not replayed: n = 2000001 is too large to run"):
        knl.tag_inames("i: g.0")


def test_an_atomic_update_is_named_where_it_helps() -> None:
    """All of a sum may be added at any time; a cell that others read on the way may not."""
    hint = "an update that any may make at any time is marked"
    for text, helps in (
        ("for i\ny[0] = y[0] + x[i]\nend", True),
        ("for k, i, j\nd[i, j] = min(d[i, j], d[i, k] + d[k, j])\nend", False),
    ):
        knl = lk.make_kernel(
            "{ [k, i, j]: 0 <= k, i, j < n }",
            text,
            dtypes={"y, x": "float32"} if helps else {"d": "float32"},
            assumptions="n >= 1",
        )
        with pytest.raises(lk.RaceError) as caught:
            knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
        assert (hint in str(caught.value)) == helps


def test_a_budget_ends_as_undecided() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        "a[i, j] = a[i - j + n, i] + 1",
        [lk.GlobalArg("a", shape="2*n, n"), ...],
        dtypes={"a": "float32"},
    )
    with pytest.raises(lk.UndecidedError, match="within 100 operations"):
        swapped = (Loop("j", (Loop("i", ("insn",)),)),)
        examine(knl, Change(knl.with_(tree=swapped)), budget=100)


def test_unchecked_steps_show() -> None:
    knl = lk.make_kernel(
        "{ [i]: 1 <= i < n }", "x[i] = x[i - 1] + 1", dtypes={"x": "float32"}
    ).split_iname("i", 4, unchecked=True)
    assert "unchecked" in str(knl.history)
    assert knl.cuda().startswith("// not proven to keep the kernel's meaning: split_iname('i', 4)")
    assert "proven" in str(knl.split_iname("i_inner", 2).history)


def test_what_a_transform_asks_of_isl_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopkit._budget.CHANGE", 10)
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "a[i] = b[i]", dtypes={"a, b": "float32"})
    with pytest.raises(lk.UndecidedError, match="within 10 operations"):
        knl.split_iname("i", 16)
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_a_message_without_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where looking for the smallest case takes too long, the step is refused all the same."""
    monkeypatch.setattr("loopkit._budget.REFUSAL", 10)
    knl = lk.make_kernel("{ [i]: 1 <= i < n }", "x[i] = x[i - 1] + 1", dtypes={"x": "float32"})
    with pytest.raises(lk.IllegalTransformError, match="no example of it within 10 operations"):
        knl.tag_inames({"i": "g.0"})


def test_a_bound_holds_inside_and_ends() -> None:
    """The inner bound holds alone; the outer one is back afterwards."""
    one = isl.Set("[n] -> { : exists e: n = 3e and 0 <= n < 100 }")
    other = isl.Set("[n] -> { : exists e: n = 7e and 5 <= n < 90 }")
    with pytest.raises(SpentError), at_most(5):
        with at_most(1_000_000):
            assert not (one - other).is_empty()
        assert isl.DEFAULT_CONTEXT.get_max_operations() == 5
        (one - other).is_empty()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
