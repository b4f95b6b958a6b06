"""Bounds by sizes that are multiples of a number, expressed with fewer names."""

from __future__ import annotations

import islpy as isl
import pytest
from classics import CLASSICS, in_order, tag
from lane_kernels import DIGITS, EARLY, LANES, ORDER, ROUNDS, STAGED, TAGS, TILES
from seams import sets as _sets
from seams import tightened

LANE = "0 <= r < 2 and 0 <= lane < 32"


@pytest.mark.parametrize(
    ("assumed", "bound", "box", "left"),
    [
        ("n mod 64 = 0", "64b + t < n", "0 <= t < 64", "b n"),
        ("n mod 64 = 0", "64b + t <= n", "0 <= t < 64", "b n t"),
        ("n mod 64 = 5", "64b + t + 5 < n", "0 <= t < 64", "b n"),
        ("n mod 64 = 5", "64b + t < n", "0 <= t < 64", "b n t"),
        ("n mod 64 = 0", "8b + 2t + r < n", "0 <= t < 4 and 0 <= r < 2", "b n"),
        ("n mod 64 = 0 and m mod 32 = 0", "32b + t < n + 3m", "0 <= t < 32", "b m n"),
        ("n mod 64 = 0", "t < n - 64b", "0 <= t", "b n t"),
        ("n mod 64 = 0 and m mod 64 = n mod 64", "64b + t < m", "0 <= t < 64", "b m"),
        ("n mod 2 = m mod 2", "2b + t < m", "0 <= t < 2", "b m t"),
        ("n mod 64 = 0", "32b + 8w + 2*(lane mod 4) + r < n", f"{LANE} and 0 <= w < 4", "b n"),
        ("n >= 1", "64b + t < n", "0 <= t < 64", "b n t"),
    ],
)
def test_the_same_in_fewer_names(assumed: str, bound: str, box: str, left: str) -> None:
    space = "[n, m, b, t, r, w, lane] -> { :"
    assumptions = isl.Set(f"{space} {assumed} }}")
    inside = isl.Set(f"{space} {box} }}")
    domain = assumptions & inside & isl.Set(f"{space} {bound} and b >= 0 }}")
    found = tightened(domain, assumptions, ["n", "m"])
    assert found.is_equal(domain)
    again = found.gist(inside & assumptions)
    assert _sets.involved_names(again) == {*left.split()}


#: Orders in which the bounds of a lane's rows and columns meet before all others are known.
LATE = {
    "loops after lanes": [
        *ROUNDS, *TILES[::2], DIGITS[0], *TILES[1::2], DIGITS[1], LANES[0], *ORDER, LANES[1], *TAGS,
    ],
    "warps last": [
        *TILES[:3:2], *ROUNDS, TILES[4], DIGITS[0], *TILES[1::2], DIGITS[1], *ORDER, LANES[0],
        tag("lane: l.0"), LANES[1], tag("warp: l.1"),
    ],
    "warps after loops": [*EARLY[:-1], *ROUNDS, *ORDER, EARLY[-1], *TAGS],
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_lanes_of_full_tiles_in_other_orders(name: str) -> None:
    plain = CLASSICS["lanes, joined last"].make()
    for knl in in_order(plain, [*LATE[name], *STAGED]):
        assert knl.history[-1].verdict == "proven"
