"""Loops that are split or distributed: only the changed statements are proven again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from gallery import load
from seams import schedule_proof

import loopkit as lk

LOOPS = ["head", "i", "b", "c", "d", "d0", "d1", "j", "l", "p", "q"]


@pytest.fixture
def in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is proven as a whole: nearly all statements are known to be as they were."""
    violations_of = schedule_proof.violations_of

    def whole(*asked: Any) -> Any:
        _, kernel, *_, untouched = asked
        asked_of = {s.id for s in kernel.statements} - untouched.statements
        assert 4 * len(asked_of) < len(kernel.statements)
        return violations_of(*asked)

    monkeypatch.setattr(schedule_proof, "violations_of", whole)


@pytest.mark.usefixtures("in_short")
@pytest.mark.parametrize("iname", LOOPS)
def test_each_loop_of_attention_is_peeled(iname: str) -> None:
    plain = load("attention").plain()
    ends = plain.peel_iname(iname, last=1)
    assert ends.history[-1].verdict == "proven"
    assert plain.peel_iname(iname, first=1).history[-1].verdict == "proven"


@pytest.mark.parametrize("iname", ["b", "q"])
def test_parts_of_attention_are_what_it_is(iname: str) -> None:
    module = load("attention")
    knl = module.registers().peel_iname(iname, last=1)
    given = module.inputs(heads=1, n=3, m=37)
    np.testing.assert_allclose(knl(**given), module.expected(**given), rtol=1e-4, atol=1e-5)
    assert knl.prove().ok


@pytest.mark.usefixtures("in_short")
@pytest.mark.parametrize("ends", [{"first": 1}, {"last": 1}])
def test_blocks_of_attention_that_threads_stage_are_peeled(ends: dict[str, int]) -> None:
    """The threads that copy a block are those of another block under another name."""
    knl = load("attention").staged().peel_iname("b", **ends)
    assert knl.history[-1].verdict == "proven"
    assert f"for b_{next(iter(ends))} " in str(knl)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(70, 45), (3, 16), (129, 5)])
def test_peeled_blocks_of_attention_are_what_it_is(n: int, m: int) -> None:
    module = load("attention")
    knl = module.staged().peel_iname("b", last=1)
    given = module.inputs(heads=1, n=n, m=m)
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order)(**given)
        np.testing.assert_allclose(found, module.expected(**given), rtol=1e-4, atol=1e-5)
    assert knl.prove().ok


STEPS = {
    "head": lambda k: k.tag_inames("head: g.1"),
    "split": lambda k: k.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0"),
    "query": lambda k: k.add_prefetch("query[head, i, :]", default_tag="unr"),
    "key": lambda k: k.add_prefetch("key[head, 16*b : 16*b + 16, :]", default_tag="l.auto"),
    "value": lambda k: k.add_prefetch("value[head, 16*b : 16*b + 16, :]", default_tag="l.auto"),
    "unr": lambda k: k.tag_inames("c: unr, d: unr, j: unr, l: unr, p: unr, q: unr"),
}


@pytest.mark.usefixtures("in_short")
@pytest.mark.parametrize("seed", range(6))
def test_attention_is_staged_in_any_order(seed: int) -> None:
    knl = load("attention").plain()
    for name in random.Random(seed).sample([*STEPS], len(STEPS)):
        knl = STEPS[name](knl)
    assert knl.history[-1].verdict == "proven"


def rows() -> lk.Kernel:
    """Blocks share a row: threads read what other threads wrote."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 32 }",
        "<> t[j] = a[i, j] {id=fill}\nb[i, k] = t[31 - k] {id=use}",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
    ).set_temporary_address_space("t", "shared")


@pytest.mark.usefixtures("in_short")
def test_blocks_at_the_edge_run_statements_of_their_own() -> None:
    knl = rows().tag_inames("i: g.0, j: l.0, k: l.0").peel_iname("i", last=1)
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok


def test_threads_at_the_edge_are_not_ahead_of_what_they_read() -> None:
    # The last thread's copy of 'use' stands below 'fill' of all others, or nothing is right.
    knl = rows().tag_inames("i: g.0, j: l.0, k: l.0")
    knl = knl.peel_iname("j", last=1).peel_iname("k", last=1)
    a = np.arange(96, dtype=np.float32).reshape(3, 32)
    for order in ("ascending", "descending", "random"):
        np.testing.assert_array_equal(knl.executor("host", order=order)(a=a), a[:, ::-1])
    assert knl.prove().ok


@pytest.mark.usefixtures("in_short")
def test_an_accumulator_of_each_part_is_its_own() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = sum(j, a[i, j]*x[j])",
        dtypes={"a, x, y": "float32"},
        assumptions="n >= 2 and m >= 1",
    ).peel_iname("i", last=1)
    assert knl.history[-1].verdict == "proven"
    assert len([t for t in knl.temporaries if t.accumulates]) == 2
    a, x = np.ones((3, 5), np.float32), np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(knl(a=a, x=x), a @ x)


def test_a_launch_of_its_own_does_not_see_what_another_one_keeps() -> None:
    # Each launch has shared memory of its own: what it holds is not what was written before.
    knl = lk.make_kernel(
        "{ [c, i]: 0 <= c < 5 and 0 <= i < n }",
        """
        for c
            <> t[c] = q[c] {id=fill}
            o[c] = t[c] {id=use}
        end
        for i
            x[i] = x[i] + 1 {id=one}
            y[i] = x[i] {id=two}
        end
        """,
        dtypes={"q, o, x, y": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.set_temporary_address_space("t", "shared")
    knl = knl.add_barrier(insn_before="id:one", insn_after="id:two")
    with pytest.raises(lk.IllegalTransformError):
        knl.add_dependency("id:fill", "id:use or id:two")
