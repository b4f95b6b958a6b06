"""What a block does in shared memory, written by hand: accepted in any order of its tags."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import block_kernels as kernels
import numpy as np
import pytest
from pace import timed

import loopkit as lk

Build = Callable[[], lk.Kernel]

BLOCK: dict[str, Build] = {
    "tree, halves": lambda: kernels.tree("halves"),
    "tree, doubled steps": lambda: kernels.tree("doubled"),
    "tree in a loop": kernels.tree_in_a_loop,
    "Hillis-Steele, one line": lambda: kernels.hillis_steele("one"),
    "Hillis-Steele, two lines": lambda: kernels.hillis_steele("two"),
    "Blelloch, products": lambda: kernels.blelloch("products"),
    "Blelloch, remainders": lambda: kernels.blelloch("remainders"),
}


def tags_of(knl: lk.Kernel) -> dict[str, str]:
    """Blocks for rows, and a thread for each element."""
    return {i: "g.0" if i == "b" else "l.0" for i in sorted(knl.all_inames) if i != "level"}


def results(knl: lk.Kernel, x: np.ndarray, order: str) -> np.ndarray:
    return np.asarray(knl.executor("host", order=order, seed=3)(x=x))


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1).integers(-9, 9, (3, kernels.SIZE)).astype(np.float32)


def expected(name: str, x: np.ndarray) -> np.ndarray:
    if name.startswith("tree"):
        return x.sum(axis=1)
    sums = x.cumsum(axis=1)
    return sums if name.startswith("Hillis") else sums - x


@pytest.mark.parametrize("name", BLOCK)
def test_all_tags_in_one_call(name: str, rows: np.ndarray) -> None:
    knl = BLOCK[name]()
    knl = knl.tag_inames(tags_of(knl))
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    for order in ("ascending", "descending", "random"):
        assert (results(knl, rows, order) == expected(name, rows)).all()


@pytest.mark.parametrize("name", BLOCK)
def test_tags_in_any_order(name: str) -> None:
    knl = BLOCK[name]()
    calls = [*tags_of(knl).items()]
    random.Random(name).shuffle(calls)
    for iname, tag in calls:
        knl = knl.tag_inames({iname: tag})
        assert knl.history[-1].verdict == "proven"
    assert knl.cuda() == BLOCK[name]().tag_inames(tags_of(knl)).cuda()


def steps(knl: lk.Kernel) -> Iterator[float]:
    """How long each tag takes, in seconds of this process."""
    for iname, tag in tags_of(knl).items():
        knl, taken = timed(partial(knl.tag_inames, {iname: tag}))
        yield taken


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCK)
def test_a_tag_takes_milliseconds(name: str) -> None:
    """Ten times less than before; the bound is generous, for machines that do other things."""
    times = sorted(steps(BLOCK[name]()))
    assert times[len(times) // 2] < 0.1


def test_a_level_without_its_condition_is_refused() -> None:
    """Threads above the half read what others write in the same level."""
    with pytest.raises(lk.RaceError, match="nothing orders the two"):
        kernels.tree("reckless").tag_inames({"b": "g.0", "t0": "l.0"})


def test_a_double_buffer() -> None:
    tags = {"io": "g.1", "jo": "g.0", "ii": "l.1", "jj": "l.0"}
    knl = kernels.double_buffer().tag_inames(tags)
    assert knl.prove().ok
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 4, (32, 48)).astype(np.float32)
    b = rng.integers(-4, 4, (48, 16)).astype(np.float32)
    for order in ("ascending", "descending", "random"):
        c = knl.executor("host", order=order, seed=1)(a=a, b=b)
        assert (np.asarray(c) == a @ b).all()
    one_by_one = kernels.double_buffer()
    for iname, tag in reversed(tags.items()):
        one_by_one = one_by_one.tag_inames({iname: tag})
    assert one_by_one.cuda() == knl.cuda()


@pytest.mark.parametrize("form", ["bits", "remainders"])
def test_a_sorting_network(form: str) -> None:
    size = 64
    knl = kernels.bitonic(form, size)
    knl = knl.tag_inames(tags_of(knl))
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    x = np.random.default_rng(3).permutation(3 * size).astype(np.float32).reshape(3, size)
    for order in ("ascending", "descending", "random"):
        assert (results(knl, x, order) == np.sort(x, axis=1)).all()


@pytest.mark.parametrize("form", ["bits", "remainders"])
def test_a_sorting_network_in_launches(form: str) -> None:
    """Each stage gets its blocks by a step of its own, while others have none yet."""
    size = 64
    knl = kernels.bitonic_in_launches(form, size)
    for t in sorted(knl.all_inames):
        knl = knl.split_iname(t, 8, outer_tag="g.0", inner_tag="l.0")
        assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    x = np.random.default_rng(4).permutation(size).astype(np.float32)
    for order in ("ascending", "descending", "random"):
        run = knl.executor("host", order=order, seed=5)
        assert (np.asarray(run(s=x.copy())) == np.sort(x)).all()


def test_a_stage_in_the_launch_of_another_is_refused() -> None:
    knl = kernels.bitonic_in_launches("bits", 64, barrier="")
    with pytest.raises(lk.RaceError, match="nothing orders"):
        knl.split_iname("t3", 8, outer_tag="g.0", inner_tag="l.0")
