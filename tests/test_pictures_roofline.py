"""The plane of the roofline: every mark stands where its numbers are."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from math import log10
from typing import Any

import pytest
from seams import Box, Label, Stroke

import loopkit as lk


def product_of(work: str = "sum(k, a[i, k] * b[k, j])") -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k < n }",
        f"c[i, j] = {work}",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
        name="product",
    )
    knl = knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
    return knl.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")


def numbers(picture: Any) -> tuple[dict[float, float], dict[float, float]]:
    """Where the ticks of both axes stand, by their decimal logarithms."""
    prefixes = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
    across, up = {}, {}
    for mark in picture.scene().marks:
        if isinstance(mark, Label) and mark.colour == "comment" and mark.size == 10:
            if mark.anchor == "middle":
                across[log10(float(mark.text))] = mark.x
            else:
                number, _, prefix = mark.text.partition(" ")
                up[log10(float(number)) + prefixes[prefix]] = mark.y
    return across, up


def place(axis: dict[float, float], value: float) -> float:
    (a, x), (b, y) = sorted(axis.items())[0], sorted(axis.items())[-1]
    return x + (y - x) * (log10(value) - a) / (b - a)


@pytest.mark.parametrize("n", [64, 500, 4096])
@pytest.mark.parametrize("measured", [None, 0.25])
def test_marks_stand_where_their_numbers_are(n: int, measured: float | None) -> None:
    knl = product_of()
    picture = knl.plot_roofline(n=n, device="H100", measured=measured)
    costs = knl.costs(n=n, device="H100")
    assert costs.plot_roofline(measured=measured) == picture
    roofline = costs.roofline
    operations = sum(times for _, times in costs.operations)
    assert roofline.operations == operations and operations == 2 * n**3
    intensity = operations / (3 * 4 * n * n)
    across, up = numbers(picture)
    seconds = [roofline.seconds, *([measured] if measured else [])]
    expected = [(place(across, intensity), place(up, operations / s)) for s in seconds]
    dots = [m for m in picture.scene().marks if isinstance(m, Box) and m.rounded == 5]
    found = [(dot.x + 5, dot.y + 5) for dot in dots]
    assert len(found) == 2 * len(expected)  # each has one beside the plane, too
    for x, y in expected:
        assert any(abs(x - a) < 1e-6 and abs(y - b) < 1e-6 for a, b in found)
    strokes = [m for m in picture.scene().marks if isinstance(m, Stroke) and m.title]
    (roof,) = [m for m in strokes if m.title == "the roof"]
    ridge = roof.pieces[0][1]
    speed = min(s for _, s in picture.roofs)
    assert ridge == pytest.approx(
        (place(across, speed / roofline.device.bandwidth), place(up, speed))
    )
    for name, most in picture.roofs:
        (line,) = [m for m in strokes if m.title.startswith(f"{name}:")]
        assert line.pieces[0][0][1] == line.pieces[0][1][1] == pytest.approx(place(up, most))


def test_bars_are_as_long_as_their_times() -> None:
    picture = product_of().plot_roofline(n=512, device="A100")
    bars = {
        m.title: m.width for m in picture.scene().marks if isinstance(m, Box) and m.rounded == 1
    }
    terms = picture.roofline.terms
    longest = max(term.seconds for term in terms)
    assert len(bars) == len(terms)
    for term in terms:
        (width,) = [w for title, w in bars.items() if title.startswith(f"{term.name}")]
        assert width == pytest.approx(max(240 * term.seconds / longest, 1))


def test_what_computes_nothing_has_bars_alone() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a": "float32"})
    picture = knl.plot_roofline(n=64, device="H100")
    assert picture.roofline.operations == 0
    assert not any(isinstance(m, Stroke) for m in picture.scene().marks)
    assert "0 operations a byte" in str(picture)
    ET.fromstring(picture.svg("light"))


def test_bad_input_is_refused() -> None:
    knl = product_of()
    with pytest.raises(lk.UnknownNameError, match="Z80"):
        knl.plot_roofline(n=64, device="Z80")
    with pytest.raises(lk.InvalidArgumentError, match="seconds above 0"):
        knl.plot_roofline(n=64, device="H100", measured=0.0)
    with pytest.raises(lk.InvalidArgumentError, match="needs the sizes n"):
        knl.plot_roofline(device="H100")


def test_dashes_are_explained_where_there_are_any() -> None:
    one_roof = product_of().plot_roofline(n=64, device="H100")
    more = product_of("sum(k, a[i, k] / b[k, j])").plot_roofline(n=64, device="H100")
    for picture, is_explained in ((one_roof, False), (more, True)):
        assert (len({speed for _, speed in picture.roofs}) > 1) == is_explained
        texts = [mark.text for mark in picture.scene().marks if isinstance(mark, Label)]
        assert any(text.startswith("Dashed: ") for text in texts) == is_explained
