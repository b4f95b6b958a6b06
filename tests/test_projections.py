"""Projections of numbers that threads and rounds spell: the same as isl's, in fewer unknowns."""

from __future__ import annotations

import islpy as isl
import pytest
from seams import project_onto
from seams import sets as _sets

THREADS = "0 <= x < 16 and 0 <= y < 8 and 0 <= z < 4"
CELLS = "0 <= column < 18 and 0 <= row < 10"


@pytest.mark.parametrize(
    ("condition", "gone", "unknown"),
    [
        ("180plane + 18row + column = x + 16y + 128z + 512r and 0 <= r < 3", "x y z r", 0),
        ("180plane + 18row + column = x + 16y + 128z + 512r and 0 <= r <= n", "x y z r", 0),
        ("180plane + 18row + column = n - x - 16y - 128z and r = 0", "x y z", 0),
        ("180plane + 18row + column = x + 16y + 128z + 512r and n >= r >= 1", "x y z r", 0),
        ("180plane + 18row + column = x + 16y + 128z and y < 7 and r = 0", "x y z", 1),
        ("180plane + 18row + column = x + 16y + 128z + 512r and 0 <= 2r <= n", "x y z r", 1),
        ("column = x + y + n", "x y", 0),
        # What cannot be eliminated exactly stays as isl has it.
        ("180plane + 18row + column = x + 16y + 128z + 512r and 0 <= r <= n", "y z r", 2),
        ("180plane + 18row + column = x + 16y + 128z and x + y <= n and r = 0", "x y z", 2),
        ("180plane + 18row + column = x + 17y + 128z and r = 0", "x y z", 3),
    ],
)
def test_as_isl_projects(condition: str, gone: str, unknown: int) -> None:
    names = "n, plane, row, column, x, y, z, r"
    where = f"{THREADS} and {CELLS} and plane >= 0"
    domain = isl.Set(f"[{names}] -> {{ : {condition} and {where} }}")
    keep = {*names.split(", ")} - {*gone.split()}
    found = project_onto(domain, keep)
    assert found.is_equal(_sets.project_onto(domain, keep))
    assert _unknown(found) <= unknown


def _unknown(domain: isl.Set) -> int:
    """How many numbers a set has that are no names."""
    return sum(piece.dim(isl.dim_type.div) for piece in domain.compute_divs().get_basic_sets())


def test_each_piece_is_asked_alone() -> None:
    pieces = "a = x + 16y and 0 <= x < 16 or a = x + 15y + 100 and 0 <= x < 16"
    domain = isl.Set(f"[a, x, y] -> {{ : ({pieces}) and 0 <= y < 4 }}")
    found = project_onto(domain, ["a"])
    assert found.is_equal(isl.Set("[a] -> { : 0 <= a < 64 or 100 <= a < 161 }"))
