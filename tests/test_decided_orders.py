"""Schedules of several steps, in other orders: accepted, proven at the end, and soon enough."""

from __future__ import annotations

import pytest
import test_atomics_partial as partial_sums
from classics import OTHERS, Classic, Step, in_order, listed, sorts, split, tag
from gallery import load
from pace import timed

import loopkit as lk


def factors() -> lk.Kernel:
    """Derivatives along two of three axes, geometric factors, and the way back: a sum at a time."""
    return lk.make_kernel(
        [
            "{ [e]: 0 <= e < n }",
            "{ [i, j, k, a, b, c]: 0 <= i, j, k, a, b, c < 8 }",
            "{ [l, m, o]: 0 <= l, m, o < 8 }",
            "{ [i2, j2, k2, i3, j3, k3]: 0 <= i2, j2, k2, i3, j3, k3 < 8 }",
        ],
        """
        for e
            <> ur[i, j, k] = sum(l, d[i, l]*u[e, l, j, k])
            <> us[a, b, c] = sum(m, d[b, m]*u[e, a, m, c])
            <> f[i2, j2, k2] = g[e, 0, i2, j2, k2]*ur[i2, j2, k2] \
                + g[e, 1, i2, j2, k2]*us[i2, j2, k2]
            out[e, i3, j3, k3] = sum(o, d[o, i3]*f[o, j3, k3])
        end
        """,
        dtypes={"d, u, g, out": "float32"},
        assumptions="n >= 1",
    )


def keys(array: str) -> Step:
    block = load("attention").BLOCK
    footprint = f"{array}[head, {block}*b : {block}*b + {block}, :]"
    return lambda k: k.add_prefetch(footprint, default_tag="l.auto")


IN_SHARED: Step = lambda k: k.set_temporary_address_space("ur, us, f", "shared")  # noqa: E731

#: The classics, sorts of fewer numbers, and others.
FREE: dict[str, Classic] = {
    **OTHERS,
    **sorts(256),
    "blocked elimination": listed(
        lambda: load("lu").blocked(),
        [
            split("i", 256, None, "l.0"),
            split("p", 256, None, "l.0"),
            split("q", 64, "g.0", "l.0"),
            split("i_below", 16, "g.1", "l.1"),
            split("j_right", 16, "g.0", "l.0"),
            split("p_first", 16, None, "l.0"),
        ],
    ),
    "blocked Cholesky": listed(
        lambda: load("cholesky").blocked(),
        [
            split("i", 256, None, "l.0"),
            split("p", 256, None, "l.0"),
            split("i_below", 16, "g.1", "l.1"),
            split("j_right", 16, "g.0", "l.0"),
        ],
    ),
    "attention": listed(
        lambda: load("attention").plain(),
        [
            tag("head: g.1"),
            split("i", 128, "g.0", "l.0"),
            lambda k: k.add_prefetch("query[head, i, :]", default_tag="unr"),
            tag("c: unr"),
            tag("d: unr"),
            tag("d0: unr, d1: unr"),
            keys("key"),
            keys("value"),
            tag("j: unr, l: unr"),
            tag("p: unr, q: unr"),
        ],
    ),
    "a transform of 64 points": listed(
        lambda: load("fft").plain(),
        [split("e", 64, "g.0", "l.0"), tag("i: unr, k: unr")]
        + [tag(f"p{half}: unr") for half in load("fft").HALVES],
    ),
    "registers that rotate": listed(
        lambda: load("stencil_sweep").plain(),
        [split("x", 32, "g.0", "l.0"), split("y", 8, "g.1", "l.1")],
    ),
    "sum factors, a thread a point": listed(
        factors,
        [tag("e: g.0"), IN_SHARED]
        + [
            tag(f"{i}: l.{axis}")
            for inames in ("i j k", "a b c", "i2 j2 k2", "i3 j3 k3")
            for axis, i in enumerate(inames.split())
        ],
    ),
    "sum factors, a thread a column": listed(
        factors,
        [tag("e: g.0"), IN_SHARED, tag("i: unr, a: unr"), tag("l: unr, m: unr, o: unr")]
        + [
            tag(f"{i}: l.{axis}")
            for inames in ("j k", "b c", "j2 k2", "j3 k3")
            for axis, i in enumerate(inames.split())
        ],
    ),
    "histogram in parts": listed(
        partial_sums.histogram,
        [split("i", 256), split("i_inner", 64), *partial_sums.STEPS.values()],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FREE)
def test_steps_in_any_order(name: str) -> None:
    plain = FREE[name].make()
    for steps in FREE[name].orders(plain, name).values():
        for knl in in_order(plain, steps):
            assert knl.history[-1].verdict == "proven"
        source, lowered = timed(knl.cuda)
        report, proven = timed(knl.prove)
        assert source and report.ok
        assert lowered < 0.5
        assert proven < 3


def test_all_tags_of_sum_factors_in_one_call() -> None:
    tags = {"e": "g.0"}
    for inames in ("ijk", "abc"):
        tags |= {i: f"l.{axis}" for axis, i in enumerate(inames)}
    tags |= {f"{i}{n}": f"l.{axis}" for n in (2, 3) for axis, i in enumerate("ijk")}
    knl = IN_SHARED(factors()).tag_inames(tags)
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
