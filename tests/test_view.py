"""The page that stands alone: what it holds, and how it behaves in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seams import CAPABILITIES, blocks_at_once, device_here, listing_of, machine_code, running

import loopkit as lk
from loopkit import InvalidArgumentError, LoopkitError, UnknownNameError

pytestmark = pytest.mark.nvrtc


def staged() -> lk.Kernel:
    """A product of neighbours, staged in shared memory: a barrier, two statements."""
    return (
        lk.make_kernel("{ [i] : 0 <= i < n }", "z[i] = x[i] * x[i + 1]", name="neighbours")
        .add_dtypes({"x": np.float32})
        .split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("x", ["i_inner"], default_tag="l.auto")
    )


def unrolled(count: int) -> lk.Kernel:
    """Machine code as long as one likes."""
    return (
        lk.make_kernel(
            f"{{ [i, j] : 0 <= i < n and 0 <= j < {count} }}",
            "y[i, j] = sin(x[i, j]) + x[i, j]",
            name="unrolled",
        )
        .add_dtypes({"x": np.float32})
        .tag_inames({"i": "g.0", "j": "unr"})
    )


class Opened:
    """A page in the browser, and what it did that it should not."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1500, "height": 900}, **options)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.requested: list[str] = []
        self.page.goto(path.as_uri())

    def rows(self, pane: str, selector: str = "") -> Any:
        return self.page.locator(
            f'section:not([hidden]) [data-pane="{pane}"] .lk-line:not(.lk-top){selector}'
        )

    def lit(self, pane: str) -> list[str]:
        """The gutters of the rows that are lit."""
        return [
            text.strip() for text in self.rows(pane, ".lk-is-lit >> .lk-gutter").all_inner_texts()
        ]

    def hover(self, pane: str, selector: str) -> None:
        self.rows(pane, selector).first.locator(".lk-gutter").hover()

    def focused(self) -> str:
        script = 'document.activeElement.closest(".lk-column")?.dataset.pane ?? ""'
        return str(self.page.evaluate(script))

    def close(self) -> None:
        self.page.close()
        assert self.complaints == []
        assert len(self.requested) == 1  # the page itself


@pytest.fixture(scope="module")
def kernel() -> lk.Kernel:
    return staged()


@pytest.fixture(scope="module")
def listing(kernel: lk.Kernel) -> Any:
    return listing_of(kernel.program(), "sm_90a")


@pytest.fixture(scope="module")
def written(kernel: lk.Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kernel.view(tmp_path_factory.mktemp("view") / "out.html", arch="sm_90a", n=1000)


@pytest.fixture
def opened(browser: Any, written: Path) -> Iterator[Opened]:
    page = Opened(browser, written)
    yield page
    page.close()


def test_each_step_has_its_machine_code(written: Path) -> None:
    text = written.read_text()
    assert text.count('class="lk-column" data-pane="sass"') == 3
    assert text.count(">SASS for sm_90a, ") == 3


def test_each_step_says_what_it_uses(written: Path, listing: Any) -> None:
    """Registers, shared memory and spills, and what limits the warps that are there at once."""
    (used,) = listing.resources
    held = blocks_at_once(CAPABILITIES["9.0"], used.threads, used.registers, used.shared)
    text = written.read_text()
    assert text.count(f"{used}; {held.warps} of 64 warps ({held.share:.0%}), limited by ") == 1
    assert text.count(" registers a thread, ") == 3


def test_the_roofline_is_of_a_device_that_runs_the_code(kernel: lk.Kernel, tmp_path: Path) -> None:
    for arch, device in (("sm_80", "A100 40GB"), ("sm_100", "B200"), ("sm_89", "RTX 4090")):
        text = kernel.view(tmp_path / "out.html", arch=arch, n=1000).read_text()
        assert f"the roofline on {device}" in text
    assert running("sm_50").name == "H100 SXM"
    here = device_here()
    if here is None or here.capability != CAPABILITIES["9.0"]:
        assert running("sm_90a").name == "H100 SXM"
    else:
        assert running("sm_90a") == here


def test_what_is_not_shown_is_not_compiled(
    kernel: lk.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first source for which there is no room ends it."""
    asked: list[str] = []

    def listed(program: Any, arch: str) -> Any:
        asked.append(program.source)
        return listing_of(program, arch)

    monkeypatch.setattr(machine_code, "listing_of", listed)
    monkeypatch.setattr(machine_code, "LINES", 0)
    text = kernel.view(tmp_path / "out.html", arch="sm_90a").read_text()
    assert text.count(">SASS for sm_90a, ") == 1
    assert asked[0] == kernel.program().source and len(asked) <= 3


def test_many_sources_are_not_all_compiled(
    kernel: lk.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last ones are; steps that change no source share one."""
    monkeypatch.setattr(machine_code, "COMPILED", 1)
    asked = kernel.assume("n >= 2")
    assert asked.program().source == kernel.program().source
    text = asked.view(tmp_path / "out.html", arch="sm_90a").read_text()
    assert text.count(">SASS for sm_90a, ") == 2
    assert text.count("machine code is shown for the last") == 2


def test_the_page_refers_to_nothing_outside(written: Path) -> None:
    text = written.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text)
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in text


@pytest.mark.browser
def test_every_pane_fills(opened: Opened, kernel: lk.Kernel, listing: Any) -> None:
    page = opened.page
    assert page.locator("nav button").count() == len(kernel.history) + 1
    assert opened.rows("source").count() == len(kernel.cuda().splitlines())
    assert opened.rows("sass").count() == len(listing.sass)
    assert opened.rows("ptx").count() == sum(".loc" not in line.text for line in listing.ptx)
    nest = page.locator('section:not([hidden]) [data-pane="nest"]').inner_text()
    assert "for i_outer" in nest or "blockIdx.x" in nest
    assert "barrier" in nest
    below = page.locator("section:not([hidden]) .lk-below")
    below.locator("summary", has_text="costs").click()
    assert "bytes read" in below.inner_text()
    assert below.locator("table [data-lk-s]").count()
    below.locator("summary", has_text="roofline").click()
    assert below.locator("svg").first.is_visible()
    below.locator("summary", has_text="which threads touch what").click()
    below.locator("summary", has_text="reads x[").first.click()
    assert below.locator("svg").first.is_visible()
    assert "sector" in below.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280, 1600])
def test_panes_have_room_at_any_width(browser: Any, written: Path, width: int, scheme: Any) -> None:
    """Nothing is wider than the page; heads are whole; panes stand side by side where they fit."""
    opened = Opened(browser, written, color_scheme=scheme)
    opened.page.set_viewport_size({"width": width, "height": 900})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    columns = opened.page.locator("section:not([hidden]) .lk-column")
    boxes = [columns.nth(n).bounding_box() for n in range(columns.count())]
    heads = [one.bounding_box()["height"] for one in columns.locator("h2").all()]
    assert len(boxes) == 4 and min(heads) >= 18
    assert all(box["width"] >= (300 if width < 1280 else 200) for box in boxes)
    assert len({box["y"] for box in boxes}) == {390: 4, 800: 2, 1280: 1, 1600: 1}[width]
    if width >= 1280:
        first = opened.rows("source").filter(has_text='extern "C"').first
        words = first.locator(":scope > span").last.bounding_box()
        letter = words["width"] / len('extern "C" __global__ void __launch_bounds__(128)')
        assert boxes[1]["x"] + boxes[1]["width"] - words["x"] >= 40 * letter
    opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off(browser: Any, written: Path, width: int) -> None:
    """Lines wrap in all panes, as do steps on a telephone; heads of columns stand apart."""
    opened = Opened(browser, written)
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    excess = "all => Math.max(...all.map(e => e.scrollWidth - e.clientWidth))"
    for part in (".lk-pane", ".lk-line > :last-child", ".lk-step", "nav"):
        shown = page.locator(f"section:not([hidden]) {part}" if part != "nav" else part)
        assert shown.evaluate_all(excess) <= 0, part
    heads = page.locator('section:not([hidden]) [data-pane="source"] .lk-top .lk-extra')
    assert {"sectors", "wavefr."} <= set(heads.all_inner_texts())
    ends: list[list[float]] = heads.evaluate_all(
        """all => all.map(e => {
        const range = document.createRange();
        range.selectNodeContents(e);
        const box = range.getBoundingClientRect();
        return [box.left, box.right];
        })"""
    )
    assert all(b[0] - a[1] >= 6 for a, b in pairwise(ends))
    opened.close()


@pytest.mark.browser
def test_lines_that_come_from_each_other_light_up(opened: Opened, listing: Any) -> None:
    line = next(n for n, text in enumerate(listing.source, 1) if "z[" in text and "=" in text)
    opened.hover("source", f'[data-line="{line}"]')
    assert opened.lit("source") == [str(line)]
    assert opened.lit("sass") == [
        f"{one.address:04x}" for one in listing.sass if one.line == line and one.address is not None
    ]
    assert opened.lit("ptx") == [
        str(number) for number, one in enumerate(listing.ptx, 1) if one.line == line
    ]
    barrier = next(one for one in listing.sass if one.opcode == "BAR")
    opened.hover("sass", f':has-text("{barrier.text}")')
    assert opened.lit("sass") == [
        f"{one.address:04x}" for one in listing.sass if one.ptx_line == barrier.ptx_line
    ]
    assert opened.lit("ptx") == [str(barrier.ptx_line)]
    assert opened.lit("source") == [str(barrier.line)]
    opened.page.locator("header h1").hover()
    assert opened.lit("source") == []
    nest = opened.page.locator('section:not([hidden]) [data-pane="nest"]')
    nest.locator('[data-lk-s]:has-text("z[")').hover()
    assert opened.lit("source") == [str(line)] and opened.lit("sass")
    assert nest.locator(".lk-is-lit").count() == 1


@pytest.mark.browser
def test_keys_do_all_that_the_pointer_does(opened: Opened, kernel: lk.Kernel) -> None:
    keys = opened.page.keyboard
    last = len(kernel.history)
    assert opened.page.locator('[aria-current="step"]').inner_text().startswith(str(last))
    keys.press("[")
    assert opened.page.locator('[aria-current="step"]').inner_text().startswith(str(last - 1))
    assert opened.rows("sass").count() > 0
    keys.press("]")
    keys.press("]")
    assert opened.page.locator('[aria-current="step"]').inner_text().startswith(str(last))
    keys.press("2")
    assert opened.focused() == "source"
    for _ in range(3):
        keys.press("ArrowDown")
    assert opened.lit("source")[0] == "3"
    keys.press("ArrowUp")
    assert opened.lit("source")[0] == "2"
    keys.press("Escape")
    assert opened.lit("source") == []
    keys.press("4")
    assert opened.focused() == "sass"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser: Any, written: Path, scheme: Any) -> None:
    opened = Opened(browser, written, color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = opened.page.evaluate(ground)
    assert (before == "rgb(255, 255, 255)") == (scheme == "light")
    opened.page.keyboard.press("d")
    assert opened.page.evaluate(ground) != before
    opened.close()


@pytest.mark.browser
def test_panes_can_be_put_away(opened: Opened) -> None:
    ptx = opened.page.locator('section:not([hidden]) [data-pane="ptx"]')
    button = opened.page.locator('[data-toggle="ptx"]')
    assert ptx.is_visible()
    button.click()
    assert not ptx.is_visible() and button.get_attribute("aria-pressed") == "false"
    button.click()
    assert ptx.is_visible()


def widths(opened: Opened) -> dict[str, float]:
    """How wide each pane is that is there."""
    columns = opened.page.locator("section:not([hidden]) .lk-column:visible").all()
    return {one.get_attribute("data-pane"): one.bounding_box()["width"] for one in columns}


@pytest.mark.browser
def test_borders_move_by_keyboard(opened: Opened, kernel: lk.Kernel) -> None:
    """One pane takes what its neighbour loses, in each step; what is put away has no border."""
    page, keys = opened.page, opened.page.keyboard
    first = widths(opened)
    border = page.get_by_role("separator", name="between source and ptx")
    assert border.get_attribute("aria-orientation") == "vertical"
    assert border.get_attribute("aria-valuenow") == "70"  # 38 of 38 + 16
    keys.press("3")
    keys.press("Shift+Tab")
    assert border.evaluate("one => one === document.activeElement")
    for _ in range(3):
        keys.press("ArrowRight")
    wider = widths(opened)
    assert wider["source"] > first["source"] + 50 and wider["ptx"] < first["ptx"] - 50
    assert abs(wider["nest"] - first["nest"]) < 1 and abs(wider["sass"] - first["sass"]) < 1
    assert border.get_attribute("aria-valuenow") == "81"  # 44 of 54
    assert page.locator('[aria-current="step"]').inner_text().startswith(str(len(kernel.history)))
    keys.press("[")
    assert widths(opened) == wider
    keys.press("]")
    border.focus()
    keys.press("End")
    assert border.get_attribute("aria-valuenow") == border.get_attribute("aria-valuemax") == "91"
    assert widths(opened)["ptx"] >= 50
    keys.press("ArrowRight")
    assert border.get_attribute("aria-valuenow") == "91"
    keys.press("Home")
    assert border.get_attribute("aria-valuenow") == border.get_attribute("aria-valuemin") == "9"
    keys.press("Enter")
    assert widths(opened) == first
    page.locator('[data-toggle="ptx"]').click()
    names = page.locator("section:not([hidden]) .lk-grip:visible").all()
    said = [one.get_attribute("aria-label") for one in names]
    assert said == ["between nest and source", "between source and sass"]


@pytest.mark.browser
def test_borders_move_by_pointer(opened: Opened) -> None:
    page, first = opened.page, widths(opened)
    page.locator('[data-toggle="ptx"]').click()
    before = widths(opened)
    border = page.get_by_role("separator", name="between source and sass")
    box = border.bounding_box()
    at = box["x"] + box["width"] / 2, box["y"] + 100
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0] + 40, at[1])
    page.mouse.move(at[0] + 120, at[1])
    page.mouse.up()
    after = widths(opened)
    assert abs(after["source"] - before["source"] - 120) < 2
    assert abs(before["sass"] - after["sass"] - 120) < 2
    page.mouse.move(at[0] + 300, at[1])
    assert widths(opened) == after  # it was let go
    border.dblclick()
    page.locator('[data-toggle="ptx"]').click()
    assert widths(opened) == first


@pytest.mark.browser
def test_two_thousand_instructions_are_no_burden(browser: Any, tmp_path: Path) -> None:
    kernel = unrolled(24)
    opened = Opened(browser, kernel.view(tmp_path / "long.html", arch="sm_80"))
    assert opened.rows("sass").count() > 2000
    line = next(n for n, text in enumerate(kernel.cuda().splitlines(), 1) if "y[" in text)
    opened.hover("source", f'[data-line="{line}"]')  # makes the index
    assert len(opened.lit("sass")) > 1500
    took = opened.page.evaluate(
        """() => {
            const rows = document.querySelectorAll('[data-pane="source"] .lk-line[data-line]');
            const start = performance.now();
            const event = () => new PointerEvent("pointerover", { bubbles: true });
            for (const row of rows) row.dispatchEvent(event());
            return (performance.now() - start) / rows.length;
        }"""
    )
    assert took < 100  # milliseconds a line; some 5 on a machine without other work
    opened.close()


@pytest.mark.browser
def test_what_cannot_be_lowered_says_so(browser: Any, tmp_path: Path) -> None:
    untyped = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = 2 * x[i]")
    opened = Opened(browser, untyped.view(tmp_path / "untyped.html", arch="sm_90a"))
    said = opened.page.locator('[data-pane="source"]').inner_text()
    assert "the type of 'x'" in said
    opened.close()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"arch": "sm_1"}, InvalidArgumentError, "is no architecture"),
        ({"arch": "sm_90a", "m": 3}, UnknownNameError, "no size 'm'"),
        ({"arch": "sm_90a", "n": "many"}, InvalidArgumentError, "'n' is a whole number"),
    ],
)
def test_bad_input_leaves_the_old_page(
    kernel: lk.Kernel,
    tmp_path: Path,
    arguments: dict[str, Any],
    error: type[LoopkitError],
    says: str,
) -> None:
    target = tmp_path / "out.html"
    target.write_text("before")
    with pytest.raises(error, match=says):
        kernel.view(target, **arguments)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("path", [3, None, "nowhere/out.html", "."])
def test_a_path_that_cannot_be_written(kernel: lk.Kernel, path: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        kernel.view(path)


def swept_for_view() -> lk.Kernel:
    """Two launches in a loop, of one staged in shared memory."""
    return (
        lk.make_kernel(
            "{ [t, i, j]: 0 <= t < steps and 1 <= i, j < n - 1 }",
            """
            for t
                u[i] = 0.5*(v[i - 1] + v[i + 1]) {id=there}
                ... gbarrier
                v[j] = 0.25*(u[j - 1] + u[j + 1]) {id=back}
            end
            """,
            name="jacobi",
            dtypes={"u, v": "float32"},
            assumptions="n >= 3 and steps >= 0",
        )
        .split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", 64, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("u", ["j_inner"], default_tag="l.auto")
    )


@pytest.mark.browser
def test_lines_of_several_launches_are_linked(browser: Any, tmp_path: Path) -> None:
    kernel = swept_for_view()
    path = kernel.view(tmp_path / "several.html", arch="sm_90a", n=1000, steps=3)
    listing = listing_of(kernel.program(), "sm_90a")
    opened = Opened(browser, path)
    assert opened.page.locator("nav button").count() == len(kernel.history) + 1
    assert opened.rows("source").count() == len(kernel.cuda().splitlines())
    assert opened.rows("sass").count() == len(listing.sass)
    assert [one.text for one in listing.sass if one.text in ("jacobi:", "jacobi_2:")]
    nest = opened.page.locator('section:not([hidden]) [data-pane="nest"]')
    assert "launch 1: jacobi" in nest.inner_text() and "launch 2: jacobi_2" in nest.inner_text()
    for text in ("u[32*i_outer", "v[64*j_outer"):
        nest.locator(f'[data-lk-s]:has-text("{text}")').last.hover()
        lit = [int(line) for line in opened.lit("source")]
        spaced = text.replace("*", " * ")
        assert lit and all(spaced in listing.source[line - 1] for line in lit)
        addresses = [
            f"{s.address:04x}" for s in listing.sass if s.line in lit and s.address is not None
        ]
        assert opened.lit("sass") == addresses and addresses
        assert nest.locator(".lk-is-lit").count() == 1
    below = opened.page.locator("section:not([hidden]) .lk-below")
    below.locator("summary", has_text="resources of each launch").click()
    rows = [row.split("\t")[0] for row in below.locator("tbody tr:visible").all_inner_texts()]
    assert rows == ["jacobi", "jacobi_2"]
    below.locator("summary", has_text="costs").click()
    assert "6 launches in a call" in below.inner_text()
    below.locator("summary", has_text="roofline").click()
    assert below.locator("svg").first.is_visible()
    below.locator("summary", has_text="which threads touch what").click()
    below.locator("summary", has_text="back reads u_s[").first.click()
    assert below.locator("svg").first.is_visible()
    opened.close()
