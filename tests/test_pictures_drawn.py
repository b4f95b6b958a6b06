"""Pictures as marks: well-formed, escaped, nothing over anything else, the same in every writer."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from html_page import contrast
from seams import GROUND, ROLES, Box, Cell, Label, Stroke, boundary, runs, ticks

import loopkit as lk

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert('x')</script>&\"\x00\x1b[31m\u202e\ud800"


class Tags(HTMLParser):
    """The elements of a page, with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))

    @classmethod
    def of(cls, html: str) -> list[tuple[str, ...]]:
        reader = cls()
        reader.feed(html)
        return reader.tags


def tiled(n: int = 3) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }", "out[j, i] = a[i, j]", dtypes={"a": "float32"},
        assumptions="n >= 1",
    )  # fmt: skip
    return knl.split_iname("i", 4).split_iname("j", 4).prioritize_loops("i_outer,j_outer,i_inner")


def staged() -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }", "out[j, i] = a[i, j]", dtypes={"a": "float64"},
        assumptions="n >= 1",
    )  # fmt: skip
    return (
        knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.0")
        .split_iname("j", 8, outer_tag="g.0", inner_tag="l.1")
        .add_prefetch("a", ["i_inner", "j_inner"], default_tag="l.auto")
    )


def adding() -> lk.Kernel:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i] + 1", dtypes={"a": "float32"})
    return knl.split_iname("i", 256, outer_tag="g.0", inner_tag="l.0")


def pictures() -> dict[str, Any]:
    """Pictures of all kinds, small and large."""
    return {
        "domain": tiled().plot_domain(n=9),
        "one point": tiled().plot_domain(n=1),
        "large domain": tiled().plot_domain(n=36),
        "long names": tiled()
        .rename_iname("i_inner", "a_rather_long_name_of_rows")
        .rename_iname("j_inner", "another_long_name")
        .plot_domain(
            inames=["a_rather_long_name_of_rows", "another_long_name", "i_outer"],
            at={"j_outer": 0},
            n=9,
        ),
        "threads": staged().plot_domain("insn", n=20),
        "a far corner": tiled().plot_domain(n=10_000, at={"i": range(0, 10_000, 999), "j": 9_000}),
        "access": staged().plot_access("a", n=1000),
        "access of a block": staged().plot_access("a", n=64, warp=None),
        "banks": staged().plot_banks("a_s", "insn", n=64),
        "footprint": staged().plot_footprint("a", n=64, block=(1, 1)),
        "footprint of all": staged().plot_footprint("a", n=40),
        "a loop": tiled().plot_loop("j_outer", n=64),
        "roofline": adding().plot_roofline(n=2**20, device="H100", measured=1e-5),
    }


PICTURES = pictures()
each = pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES.keys())


def labels(scene: Any) -> list[Label]:
    return [mark for mark in scene.marks if isinstance(mark, Label) and mark.text.strip()]


@each
def test_no_text_lies_over_another_or_outside(picture: Any) -> None:
    scene = picture.scene()
    texts = labels(scene)
    for label in texts:
        left, top, right, bottom = label.box
        assert left >= 0 and top >= 0 and right <= scene.width and bottom <= scene.height, label
    # Neighbours in a grid of buckets are enough: no text is higher than one.
    buckets: dict[int, list[Label]] = {}
    for label in texts:
        for row in range(int(label.box[1] // 20), int(label.box[3] // 20) + 1):
            buckets.setdefault(row, []).append(label)
    for near in buckets.values():
        for one, two in combinations(sorted(near, key=lambda mark: mark.box), 2):
            a, b = one.box, two.box
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (one, two)


@each
def test_boxes_lie_beside_each_other(picture: Any) -> None:
    scene = picture.scene()
    rows: dict[float, set[tuple[float, float]]] = {}
    for mark in scene.marks:
        if isinstance(mark, Box):
            assert min(mark.x, mark.y) >= 0
            assert mark.x + mark.width <= scene.width and mark.y + mark.height <= scene.height
            rows.setdefault(mark.y, set()).add((mark.x, mark.x + mark.width))
    for boxes in rows.values():
        for a, b in pairwise(sorted(boxes)):
            assert a[1] <= b[0] + 1e-6, (a, b)


def test_arrows_lead_from_cell_to_cell() -> None:
    scene = PICTURES["domain"].scene()
    boxes: dict[str, Box] = {}
    for mark in scene.marks:
        if isinstance(mark, Box) and (turn := re.search(r"turn (\d+) of", mark.title)):
            boxes[turn[1]] = mark
    arrows = 0
    for mark in scene.marks:
        if isinstance(mark, Stroke) and mark.title.startswith("one thread, from turn"):
            ends = mark.pieces[0][0], mark.pieces[0][-1]
            for (x, y), turn in zip(ends, re.findall(r"\d+", mark.title), strict=True):
                box = boxes[turn]
                assert box.x < x < box.x + box.width and box.y < y < box.y + box.height
            arrows += 1
    assert arrows == 80


@each
def test_svg_is_well_formed_and_says_what_it_shows(picture: Any) -> None:
    for theme in ("auto", "light", "dark"):
        root = ET.fromstring(picture.svg(theme))
        assert root.tag == f"{SVG}svg" and root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None and title.text and root.get("aria-label") == title.text
        assert description is not None and description.text
        assert "var(" not in picture.svg("light")
        drawn = {e.text for e in root.iter(f"{SVG}text")}
        assert drawn == {mark.text for mark in picture.scene().marks if isinstance(mark, Label)}


@each
def test_html_is_one_element_with_nothing_from_elsewhere(picture: Any) -> None:
    html = picture.html()
    assert html.startswith('<div class="lk"') and html.endswith("</div>")
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|\son\w+=|url\(", html)
    bundle = picture._repr_mimebundle_()
    assert bundle == {"text/plain": str(picture), "text/html": html}
    assert picture._repr_mimebundle_(include=["text/plain"]).keys() == {"text/plain"}


def test_a_slider_has_a_step_for_each_turn() -> None:
    picture = PICTURES["domain"]
    frames = picture.figure().frames
    html = picture.html()
    assert html.count('type="radio"') == len(frames) == 81
    assert html.count('class="lk-frame"') == 81
    assert html.count(' checked=""') == 1
    for at in range(1, 82):
        assert f":nth-child({at}):checked) .lk-frame:nth-child(n+{at + 1}){{display:none}}" in html
    assert 'type="radio"' not in PICTURES["access"].html()


def test_names_cannot_break_out() -> None:
    def with_name(name: str) -> Any:
        return replace(
            PICTURES["domain"],
            statement=name,
            axes=(name, name),
            turns=(name,) * 81,
            tiles=(name,) * 9,
            at=((name, name),),
        )

    hostile = with_name(HOSTILE)
    plain = with_name(re.sub(r"[^\w\s-]", "x", HOSTILE))  # it takes as many lines
    tags = [[e.tag for e in ET.fromstring(one.svg()).iter()] for one in (hostile, plain)]
    assert tags[0] == tags[1]
    assert Tags.of(hostile.html()) == Tags.of(plain.html())
    assert "\x1b" not in hostile.html()
    assert "\x1b" not in str(hostile) and "\u202e" not in str(hostile)
    assert "alert" in str(hostile)  # it is shown, as text


def test_text_on_fills_is_readable() -> None:
    """The strongest fill under a label still leaves a contrast of 4.5, light and dark."""
    from seams import FILL, SERIES, mixed

    for dark in (False, True):
        text, ground = GROUND["text"].colour(dark), GROUND["ground"].colour(dark)
        for pair in SERIES:
            assert contrast(text, mixed(pair[dark], ground, FILL)) > 4.5


def test_colours_are_those_of_the_table() -> None:
    from seams import colour_of

    known = {*ROLES, *GROUND, *(f"series-{n}" for n in range(8)), ""}
    for picture in PICTURES.values():
        for mark in picture.scene().marks:
            for name in ("fill", "stroke", "colour"):
                assert getattr(mark, name, "") in known
    assert colour_of("series-0") != colour_of("series-0", dark=True)


def _cells(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from re.findall(r"\d+", line.partition(" ")[2])


def test_a_terminal_shows_the_same_cells() -> None:
    picture = tiled().plot_domain(n=5)
    expected = """\
     j →
i ↓   0   1   2   3    4
    ┌────────────────┬────┐
  0 │ 0   1   2   3  │16  │
  1 │ 4   5   6   7  │17  │
  2 │ 8   9  10  11  │18  │
  3 │12  13  14  15  │19  │
    ├────────────────┼────┤
  4 │20  21  22  23  │24  │
    └────────────────┴────┘
"""
    squeezed = [re.sub(r" +", " ", line).replace(" │", "│") for line in expected.splitlines()]
    shown = [re.sub(r" +", " ", line).replace(" │", "│") for line in str(picture).splitlines()]
    rule = re.compile("─+")
    assert [rule.sub("─", line) for line in squeezed] == [rule.sub("─", s) for s in shown[3:13]]


def test_files(tmp_path: Path) -> None:
    picture = PICTURES["access"]
    picture.save(tmp_path / "a.svg", theme="dark")
    assert (tmp_path / "a.svg").read_text() == picture.svg("dark")
    picture.save(tmp_path / "a.html")
    assert picture.html() in (tmp_path / "a.html").read_text()
    with pytest.raises(lk.InvalidArgumentError, match="no theme 'blue'"):
        picture.svg("blue")


def test_without_matplotlib_its_absence_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(lk.MissingDependencyError, match=r"pip install 'loopkit\[notebook\]'"):
        PICTURES["access"].plot()


@each
def test_matplotlib_draws_every_mark(picture: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    scene = picture.scene()
    figure = Figure()
    ax = figure.add_subplot()
    assert picture.plot(ax) is ax
    marks = [mark for mark in scene.marks if not mark.now]
    assert {t.get_text() for t in ax.texts} == {m.text for m in marks if isinstance(m, Label)}
    paths = [path for shapes in ax.collections for path in shapes.get_paths()]
    drawn = sum(int((path.codes == 1).sum()) for path in paths)
    expected = 0
    for mark in marks:
        pieces = len(mark.pieces) + mark.arrow if isinstance(mark, Stroke) else 1
        expected += 0 if isinstance(mark, Label) else pieces
    assert drawn == expected
    if picture is PICTURES["banks"]:
        picture.save(tmp_path / "a.png")
        assert (tmp_path / "a.png").stat().st_size > 1000


def test_holes_of_an_axis_are_left_out_where_they_are_long() -> None:
    assert ticks([5, 3, 8]) == ([3, 4, 5, 6, 7, 8], frozenset())
    assert ticks([0, 9, 11], most=3) == ([0, 9, 10, 11], frozenset({1}))
    assert ticks([]) == ([], frozenset())


def test_boundaries_and_runs() -> None:
    flat, upright = boundary([(0, 0), (0, 1)])
    assert flat == {(0, 0), (0, 1), (1, 0), (1, 1)} and upright == {(0, 0), (0, 2)}
    assert runs([3, 1, 2, 7]) == "1-3, 7" and runs([0, 2, 4, 6]) == "0, 2, ..., 6"
    assert Cell(row=0, column=0) == Cell(row=0, column=0)
