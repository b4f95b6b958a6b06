"""Schedules of several steps, in other orders: accepted, proven at the end, and soon enough."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence

import block_kernels as block
import lane_kernels as lanes
import pytest
import test_atomics_partial as partial_sums
from gallery import load
from pace import timed

import loopkit as lk

Step = Callable[[lk.Kernel], lk.Kernel]


def split(iname: str, length: int, outer: str | None = None, inner: str | None = None) -> Step:
    return lambda k: k.split_iname(iname, length, outer_tag=outer, inner_tag=inner)


def tag(tags: str) -> Step:
    return lambda k: k.tag_inames(tags)


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


def in_a_block(knl: lk.Kernel) -> list[Step]:
    """A block for each row, and a thread for each of its elements: a step for each iname."""
    inames = sorted({*knl.all_inames} - {"level"})
    return [tag(f"{i}: {'g.0' if i == 'b' else 'l.0'}") for i in inames]


def in_launches(knl: lk.Kernel) -> list[Step]:
    """Blocks of threads for each stage, which is a launch of its own."""
    return [split(t, 64, "g.0", "l.0") for t in sorted(knl.all_inames)]


IN_SHARED: Step = lambda k: k.set_temporary_address_space("ur, us, f", "shared")  # noqa: E731

BLOCKS = [split("i", 128), tag("i_outer: g.0"), tag("i_inner: l.0")]
LANES = [tag("lane: l.0"), tag("warp: l.1")]

Steps = list[Step] | Callable[[lk.Kernel], list[Step]]

#: A kernel, and steps, listed or made for it, of which each may come before each other that makes
#: none of the names that it needs.
FREE: dict[str, tuple[Callable[[], lk.Kernel], Steps]] = {
    "blocked elimination": (
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
    "blocked Cholesky": (
        lambda: load("cholesky").blocked(),
        [
            split("i", 256, None, "l.0"),
            split("p", 256, None, "l.0"),
            split("i_below", 16, "g.1", "l.1"),
            split("j_right", 16, "g.0", "l.0"),
        ],
    ),
    "attention": (
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
    "a transform of 64 points": (
        lambda: load("fft").plain(),
        [split("e", 64, "g.0", "l.0"), tag("i: unr, k: unr")]
        + [tag(f"p{half}: unr") for half in load("fft").HALVES],
    ),
    "registers that rotate": (
        lambda: load("stencil_sweep").plain(),
        [split("x", 32, "g.0", "l.0"), split("y", 8, "g.1", "l.1")],
    ),
    "sum factors, a thread a point": (
        factors,
        [tag("e: g.0"), IN_SHARED]
        + [
            tag(f"{i}: l.{axis}")
            for inames in ("i j k", "a b c", "i2 j2 k2", "i3 j3 k3")
            for axis, i in enumerate(inames.split())
        ],
    ),
    "sum factors, a thread a column": (
        factors,
        [tag("e: g.0"), IN_SHARED, tag("i: unr, a: unr"), tag("l: unr, m: unr, o: unr")]
        + [
            tag(f"{i}: l.{axis}")
            for inames in ("j k", "b c", "j2 k2", "j3 k3")
            for axis, i in enumerate(inames.split())
        ],
    ),
    "gather": (block.gather, BLOCKS),
    "scatter": (block.scatter, BLOCKS),
    "histogram of a block": (block.histogram, in_a_block),
    "histogram in parts": (
        partial_sums.histogram,
        [split("i", 256), split("i_inner", 64), *partial_sums.STEPS.values()],
    ),
    "tree, halves": (lambda: block.tree("halves"), in_a_block),
    "tree, doubled steps": (lambda: block.tree("doubled"), in_a_block),
    "tree in a loop": (block.tree_in_a_loop, in_a_block),
    "Hillis-Steele, one line": (lambda: block.hillis_steele("one"), in_a_block),
    "Hillis-Steele, two lines": (lambda: block.hillis_steele("two"), in_a_block),
    "Blelloch, products": (lambda: block.blelloch("products"), in_a_block),
    "Blelloch, remainders": (lambda: block.blelloch("remainders"), in_a_block),
    "bitonic, bits": (lambda: block.bitonic("bits", 256), in_a_block),
    "bitonic, remainders": (lambda: block.bitonic("remainders", 256), in_a_block),
    "bitonic launches, bits": (lambda: block.bitonic_in_launches("bits", 256), in_launches),
    "bitonic launches, remainders": (
        lambda: block.bitonic_in_launches("remainders", 256),
        in_launches,
    ),
    **{
        f"lanes, {name}": (lanes.product, [s for s in steps if s not in lanes.TAGS] + LANES)
        for name, steps in lanes.SCHEDULES.items()
    },
}

#: Steps for which the loops must have their order.
LAST: dict[str, list[Step]] = {f"lanes, {name}": lanes.STAGED for name in lanes.SCHEDULES}


def orders(count: int, name: str) -> list[list[int]]:
    """So many numbers in their order, backwards, and shuffled."""
    shuffled = random.Random(name).sample(range(count), count)
    return [[*range(count)], [*range(count)][::-1], shuffled]


def in_order(knl: lk.Kernel, steps: Sequence[Step]) -> Iterator[lk.Kernel]:
    """The kernel after each of the steps; one whose names a later one makes waits for it."""
    left = [*steps]
    while left:
        for step in left:
            with warnings.catch_warnings():
                warnings.simplefilter("error", lk.LoopkitWarning)
                try:
                    knl = step(knl)
                except (lk.UnknownNameError, lk.LoopkitWarning):
                    continue
            left.remove(step)
            yield knl
            break
        else:
            raise AssertionError("no step makes the names that these need")


@pytest.mark.slow
@pytest.mark.parametrize("name", FREE)
def test_steps_in_any_order(name: str) -> None:
    make, listed = FREE[name]
    plain = make()
    steps = listed(plain) if callable(listed) else listed
    for order in orders(len(steps), name):
        ordered = [steps[number] for number in order] + LAST.get(name, [])
        for knl in in_order(plain, ordered):
            assert knl.history[-1].verdict == "proven"
        source, lowered = timed(knl.cuda)
        report, proven = timed(knl.prove)
        assert source and report.ok
        assert lowered < 0.5
        assert proven < 2


def test_all_tags_of_sum_factors_in_one_call() -> None:
    tags = {"e": "g.0"}
    for inames in ("ijk", "abc"):
        tags |= {i: f"l.{axis}" for axis, i in enumerate(inames)}
    tags |= {f"{i}{n}": f"l.{axis}" for n in (2, 3) for axis, i in enumerate("ijk")}
    knl = IN_SHARED(factors()).tag_inames(tags)
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
