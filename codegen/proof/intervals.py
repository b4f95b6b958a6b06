"""Arithmetic on ranges of integers: the least and the greatest value, both of them reached."""

from __future__ import annotations

Range = tuple[int, int]


def computed(operator: str, left: Range, right: Range) -> Range:
    """The range of a sum, a difference or a product (``+``, ``-`` or ``*``)."""
    (a, b), (c, d) = left, right
    if operator == "+":
        return a + c, b + d
    if operator == "-":
        return a - d, b - c
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def meet(one: Range, two: Range) -> Range:
    """Where a value lies that lies in two ranges."""
    return max(one[0], two[0]), min(one[1], two[1])


def holds(outer: Range, inner: Range) -> bool:
    """Whether one range lies in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]
