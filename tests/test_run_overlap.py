"""Arrays that overlap themselves or others: found exactly, and only then refused."""

from __future__ import annotations

import itertools
import random
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from seams import HOST, NUMPY, ArrayInfo, Layout, overlap
from seams import budget as _budget

import loopkit as lk
from loopkit import InvalidArgumentError, LaunchError

as_strided = np.lib.stride_tricks.as_strided


def places(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    steps = [[i * s for i in range(n)] for n, s in zip(shape, strides, strict=True)]
    return [sum(each) for each in itertools.product(*steps)]


def info(shape: tuple[int, ...], strides: tuple[int, ...], pointer: int, dtype: str) -> ArrayInfo:
    return ArrayInfo(NUMPY, None, pointer, shape, strides, np.dtype(dtype), HOST)


def drawn(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = rng.randint(0, 4)
    shape = tuple(rng.choice([0, 1, 2, 3, 4, 5]) for _ in range(axes))
    return shape, tuple(rng.choice([-7, -3, -1, 0, 1, 2, 3, 4, 6, 9, 12, 30]) for _ in shape)


def test_overlaps_within_are_found_exactly() -> None:
    rng, found = random.Random(0), [0, 0]
    for _ in range(400):
        shape, strides = drawn(rng)
        all_places = places(shape, strides)
        twice = len(set(all_places)) < len(all_places)
        pair = overlap.same_place(shape, strides)
        assert (pair is not None) == twice, (shape, strides)
        found[twice] += 1
        if pair is not None:
            one, other = (sum(np.multiply(index, strides)) for index in pair)
            assert one == other and pair[0] != pair[1]
            assert all(0 <= i < n for index in pair for i, n in zip(index, shape, strict=True))
    assert min(found) > 50


@pytest.mark.parametrize("work", [10_000, 1])
def test_overlaps_with_others_are_found_exactly(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy, and by isl where that is too much work for NumPy."""
    monkeypatch.setattr(_budget, "OVERLAP_NUMPY", work)
    rng, found = random.Random(1), [0, 0]
    for _ in range(200):
        arrays, bytes_of = [], []
        for start in (0, rng.randint(-40, 40)):
            shape, strides = drawn(rng)
            dtype = rng.choice(["i1", "f2", "f4", "f8"])
            size = np.dtype(dtype).itemsize
            arrays.append(info(shape, strides, 10_000 + start, dtype))
            first = [start + size * at for at in places(shape, strides)]
            bytes_of.append({at + i for at in first for i in range(size)})
        both = bool(bytes_of[0] & bytes_of[1])
        assert overlap.overlaps(*arrays) == both, arrays
        found[both] += 1
    assert min(found) > 40


def output(shape: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    n, m = shape
    whole = np.zeros((2 * n, 2 * m), np.float32)
    return {
        "plain": np.zeros(shape, np.float32),
        "transposed": np.zeros((m, n), np.float32).T,
        "backwards": np.zeros(shape, np.float32)[::-1, ::-1],
        "sliced": whole[::2, 1::2],
        "sliced backwards and transposed": np.zeros((2 * m, 3 * n), np.float32).T[::-3, ::-2],
        "of three axes": np.zeros((n, 3, m), np.float32)[:, 1],
        "folded without meeting": as_strided(np.zeros(99, np.float32), shape, (8, 12)),
    }


def copied() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "c[i, j] = a[i, j]",
        dtypes={"a, c": "float32"},
    ).tag_inames("i: g.0")


@pytest.mark.host
@pytest.mark.parametrize("name", ["host", "reference"])
@pytest.mark.parametrize("kind", [*output((2, 3))])
def test_views_that_do_not_meet_themselves_are_written(name: str, kind: str) -> None:
    a, c = np.arange(6, dtype="f4").reshape(2, 3), output((2, 3))[kind]
    assert copied().executor(name)(a=a, c=c) is c
    assert (c == a).all()
    broadcast = np.broadcast_to(np.float32(7), (2, 3))
    assert (copied().executor(name)(a=broadcast, c=c) == 7).all()


@pytest.mark.host
@pytest.mark.parametrize("name", ["host", "reference"])
@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4, 4), (4, 4)),
        ((4, 4), (8, 4)),
        ((4, 4), (4, -4)),
        ((4, 4), (0, 4)),
        ((4, 4), (0, 0)),
        ((3, 4), (12, 8)),
    ],
)
def test_outputs_that_meet_themselves_are_refused(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    memory = np.zeros(64, np.float32)
    c = as_strided(memory[32:], shape, strides)
    with pytest.raises(InvalidArgumentError) as caught:
        copied().executor(name)(a=np.ones(shape, np.float32), c=c)
    shown = re.fullmatch(
        r"c: c\[(\d), (\d)\] and c\[(\d), (\d)\] are the same place in memory, but kernel "
        r"writes them: its shape is .*, its strides are .* elements\npass a copy of it",
        str(caught.value),
    )
    assert shown is not None
    i, j, k, l = map(int, shown.groups())
    assert (i, j) != (k, l) and np.dot((i, j), strides) == np.dot((k, l), strides)
    assert not memory.any()
    # To be read as often as one likes.
    assert (copied().executor(name)(a=c, c=np.ones(shape, np.float32)) == 0).all()


def test_what_cannot_be_decided_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*args: Any) -> None:
        raise _budget.SpentError

    monkeypatch.setattr(overlap, "reaching", spent)
    monkeypatch.setattr(_budget, "OVERLAP_NUMPY", 1)
    plan: Any = SimpleNamespace(outputs=("c",), name="k")
    folded = info((3, 4), (3, 2), 4096, "f4")
    with pytest.raises(InvalidArgumentError, match="could not be decided within"):
        overlap.check(plan, {"c": folded}, {})
    a, c = info((5, 7, 3), (31, 17, 11), 4096, "f4"), info((50, 3), (3, 200), 4100, "f4")
    with pytest.raises(LaunchError, match="whether c shares memory with a could not be decided"):
        overlap.check(plan, {"c": c, "a": a}, {})
    made = Layout((3, 4), (3, 2))
    with pytest.raises(InvalidArgumentError, match="could not be decided within"):
        overlap.check(plan, {}, {"c": made})


def test_hard_questions_are_answered() -> None:
    """As many axes as NumPy has, with strides that reach over each other."""
    strides = tuple(3**10 + 7 * i * i + i for i in range(12))
    assert overlap.same_place((3,) * 12, strides) is not None
    strides = tuple(2**i * (10**6 + 1) for i in range(20))
    assert overlap.same_place((2,) * 20, strides[::-1]) is None
    a = info((3,) * 10, tuple(5**10 + 13 * i for i in range(10)), 1 << 20, "f4")
    b = info((3,) * 10, tuple(5**10 + 26 * i for i in range(10)), (1 << 20) + 4, "f4")
    assert isinstance(overlap.overlaps(a, b), bool)
