"""Which steps are proven by what they leave alone, and that each condition of that is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pymbolic.primitives as prim
import pytest
from campaign.shortcuts import Seen, compare, compared

import loopkit as lk
from loopkit._check.alike import Changes
from loopkit._check.check import examine
from loopkit._check.refine import Step
from loopkit._kernel import Domain
from loopkit._sets import condition_set
from loopkit._transform import Change


def matmul() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def scaled() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }", "x[i, j] = 2*x[i, j]", dtypes={"x": "float32"}
    )


def tiled() -> lk.Kernel:
    return (
        matmul()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
    )


def running() -> lk.Kernel:
    return lk.make_kernel("{ [i]: 1 <= i < n }", "x[i] = x[i - 1] + 1", dtypes={"x": "float32"})


def carried() -> lk.Kernel:
    """Each iteration reads what the one before left in ``t``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 0 {if=i == 0}
            y[i] = t
            t = x[i]
        end
        """,
        dtypes={"x, y": "float32"},
    )


def two_nests() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        "x[i] = a[i]\ny[j] = x[n - 1 - j]",
        dtypes={"a, x, y": "float32"},
    )


def how(kernel: lk.Kernel, *call: object, **arguments: object) -> str:
    """Whether a step is proven in ``"short"``, ``"in part"`` or as a ``"whole"``."""
    seen = Seen()
    with compared(seen):
        getattr(kernel, str(call[0]))(*call[1:], **arguments)
    assert not seen.differ
    (found,) = (name for name in ("short", "in part", "whole") if seen.counts[name])
    return found


@pytest.mark.parametrize(
    ("make", "call", "arguments"),
    [
        (matmul, ("split_iname", "i", 16), {"outer_tag": "g.0", "inner_tag": "l.0"}),
        (matmul, ("split_iname", "k", 16), {}),
        (matmul, ("rename_iname", "i", "row"), {}),
        (matmul, ("tag_inames", {"i": "g.0", "j": "g.1"}), {}),
        (matmul, ("assume", "n >= 4"), {}),
        (scaled, ("map_domain", "{ [i, j] -> [d, i2]: d = i + j and i2 = i }"), {}),
        (tiled, ("tag_inames", {"k_inner": "unr"}), {}),
        (running, ("split_iname", "i", 8), {}),
        (carried, ("split_iname", "i", 8), {}),
    ],
)
def test_in_short(
    make: Callable[[], lk.Kernel], call: tuple[object, ...], arguments: dict[str, object]
) -> None:
    assert how(make(), *call, **arguments) == "short"


@pytest.mark.parametrize("array", ["a", "b"])
def test_in_part(array: str) -> None:
    inames = ["i_inner", "k_inner"] if array == "a" else ["k_inner", "j_inner"]
    assert how(tiled(), "add_prefetch", array, inames, default_tag="l.auto") == "in part"


def test_as_a_whole() -> None:
    assert how(matmul(), "prioritize_loops", "k,i,j") == "whole"
    assert how(carried(), "fix_parameters", n=7) == "whole"


def cut_short(kernel: lk.Kernel) -> Change:
    """The last iteration is gone."""
    (domain,) = kernel.domains
    last = condition_set(prim.Comparison(prim.Variable("i"), "<", prim.Variable("n") - 1))
    return Change(kernel.with_(domains=(Domain(domain.inames, domain.set & last),)))


def other_sum(kernel: lk.Kernel) -> Change:
    """One statement computes something else."""
    changed = tuple(
        replace(s, rhs=s.rhs.children[0]) if s.id == "insn" else s for s in kernel.statements
    )
    return Change(kernel.with_(statements=changed))


@pytest.mark.parametrize(
    ("condition", "value", "make", "call"),
    [
        ("keeps_order", True, running, ("map_domain", "{ [i] -> [r]: r = n - i }")),
        ("keeps_order", True, two_nests, ("tag_inames", {"i": "g.0", "j": "g.0"})),
        ("flows_inside", True, carried, ("tag_inames", {"i": "g.0"})),
        ("changes", Changes(), running, other_sum),
        ("same_instances", True, running, cut_short),
    ],
)
def test_each_condition_is_needed(
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    value: object,
    make: Callable[[], lk.Kernel],
    call: object,
) -> None:
    """Without it, a step would pass that the whole proof refuses."""
    kernel = make()

    def step() -> None:
        if callable(call):
            _, found = examine(kernel, call(kernel))
            if found:
                raise lk.IllegalTransformError("found")
        else:
            getattr(kernel, call[0])(*call[1:])

    with pytest.raises(lk.LoopkitError):
        step()
    monkeypatch.setattr(Step, condition, lambda self, *args: value)
    seen = Seen()
    with compared(seen):
        step()
    assert seen.differ


def test_short_and_whole_agree_on_random_steps() -> None:
    for seed in range(300, 308):
        assert not compare(seed, sequences=3).differ
