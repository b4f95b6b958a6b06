"""One request at a time, all of them together: what `costs` counts without enumerating."""

from __future__ import annotations

import importlib
import pickle
import sys
from contextlib import suppress
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from seams import chosen_request

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

EXAMPLES = {
    ("transpose", "scheduled"): {"n": 35, "m": 33},
    ("stencil_5", "scheduled"): {"n": 5, "m": 33},
    ("axpy", "in one block"): {"n": 70},
}


def transposed() -> lk.Kernel:
    """A transpose through shared memory: columns of 33 elements."""
    return importlib.import_module("transpose").make()["scheduled"]


def request_at(
    knl: lk.Kernel,
    access: Any,
    sizes: dict[str, int],
    block: tuple[int, ...] = (0, 0, 0),
    warp: int = 0,
    loops: dict[str, int] | None = None,
    number: int | None = None,
) -> Any:
    """What one warp touches in one execution of an access, the number it has among its like."""
    which = {"access": access.text if number is None else number, "block": block, "warp": warp}
    where = access.array, access.statement
    return chosen_request(knl, *where, sizes=sizes, asked="plot_access", at=loops, **which)  # type: ignore[arg-type]


def all_requests(knl: lk.Kernel, access: Any, sizes: dict[str, int]) -> list[Any]:
    """Every block, every warp, and all values of loops, found by trying them."""
    costs = knl.costs(**sizes)
    where = access.array, access.statement
    number = [a for a in costs.accesses if (a.array, a.statement) == where].index(access)
    blocks = {name for name, tag in knl.iname_tags.items() if str(tag).startswith("g")}
    found = []
    for block in product(*map(range, costs.grid)):
        for warp in range(-(-prod(costs.block) // 32)):
            with suppress(lk.InvalidArgumentError):
                first = request_at(knl, access, sizes, block, warp, number=number)
                loops = [n for n, _ in first.when if n in knl.all_inames and n not in blocks]
                for values in product(range(9), repeat=len(loops)):
                    at = dict(zip(loops, values, strict=True))
                    with suppress(lk.InvalidArgumentError):
                        found.append(request_at(knl, access, sizes, block, warp, at, number))
    return found


@pytest.mark.parametrize(("example", "schedule"), EXAMPLES)
def test_requests_together_are_the_counts(example: str, schedule: str) -> None:
    knl = importlib.import_module(example).make()[schedule]
    sizes = {n: v for n, v in EXAMPLES[example, schedule].items() if n in knl.sizes}
    for access in knl.costs(**sizes).accesses[:2]:
        found = all_requests(knl, access, sizes)
        counts = access.counts
        assert counts is not None
        pieces = [len(r.sectors) if r.space == "global" else r.wavefronts for r in found]
        assert (len(found), sum(len(r.touches) for r in found), sum(pieces)) == (
            counts.requests,
            counts.threads,
            counts.pieces,
        )


def test_lanes_of_a_request() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[2*i + 1]", dtypes={"a, b": "float32"})
    knl = knl.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
    read = next(a for a in knl.costs(n=100).accesses if a.array == "a")
    request = request_at(knl, read, {"n": 100}, block=(1,), warp=1)
    assert [t.lane for t in request.touches] == list(range(4))
    assert [t.cell for t in request.touches] == [(2 * i + 1,) for i in range(96, 100)]
    assert [t.address for t in request.touches] == [4 * (2 * i + 1) for i in range(96, 100)]
    assert request.sectors == (24, 25)[: len(request.sectors)]
    assert pickle.loads(pickle.dumps(request)) == request


def test_banks_of_a_column() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 32 }", "b[j, i] = a[i, j]", dtypes={"a, b": "float32"}
    )
    knl = knl.tag_inames({"i": "l.0", "j": "unr"}).add_prefetch("a", ["i", "j"])
    read = next(a for a in knl.costs().accesses if a.array == "a_s" and not a.is_write)
    request = request_at(knl, read, {}, loops={"j": 3})
    assert request.wavefronts == 32
    (turn,) = request.words
    assert {word % 32 for word in turn} == {3} and len(turn) == 32
    assert turn[3] == (0,)


@pytest.mark.parametrize(
    "wrong", [{"block": (9, 0)}, {"warp": 99}, {"loops": {"nothing": 1}}, {"block": (0, 0, 0, 0)}]
)
def test_what_there_is_not(wrong: dict[str, object]) -> None:
    knl = transposed()
    sizes = {"n": 35, "m": 33}
    access = knl.costs(**sizes).accesses[0]
    with pytest.raises(lk.LoopkitError):
        request_at(knl, access, sizes, **wrong)  # type: ignore[arg-type]
    with pytest.raises(lk.InvalidArgumentError, match="sizes m"):
        knl.plot_access(access.array, n=35)
