"""The checker itself: what its cases elsewhere (refusals, faults, campaign) do not single out."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest
from proof_kernels import peeled_over_blocks

import loopkit as lk
from loopkit._budget import SpentError, at_most
from loopkit._change import Change
from loopkit._check.checker import examine
from loopkit._tree import Loop


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
