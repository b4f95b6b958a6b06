"""The explorer's widgets, without a browser: set from Python, and read."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from seams import outcome as outcomes
from test_explore import HOSTILE, SIZES, explored, skewed, tiled

import loopkit as lk

ipywidgets = pytest.importorskip("ipywidgets")


def texts(panel: Any) -> dict[str, str]:
    """What stands in each part, read back from its HTML."""
    parts = {"status": panel.status, "note": panel.note, "main": panel.main, **panel.tabs}
    return {name: Page(widget.value).text for name, widget in parts.items()}


def control(panel: Any, name: str) -> Any:
    return next(w for w in panel.controls if w.description == name)


def test_a_moved_control_changes_everything() -> None:
    panel = explored(sizes=SIZES).panel()
    panel.show()
    before = texts(panel)
    assert "for j_inner in [0, min(16" in before["main"] and "float" in before["main"]
    assert before["status"].startswith("tile = 16, order = i,j")
    assert "steps and source proven" in before["status"] and "…" not in before["status"]
    assert "bytes read" in before["costs"] and "proven" in before["proof"]
    control(panel, "tile").value = 2
    after = texts(panel)
    assert panel.explorer.choice == {"tile": 32, "order": "i,j"}
    assert "for j_inner in [0, min(32" in after["main"]
    assert "tile: 16 → 32" in after["changes"]
    assert after["costs"] != before["costs"] and "tile = 16" in after["costs"]
    assert "tile=32" in after["script"] and "▸" in after["all so far"]
    assert after["note"] == ""


def test_a_witness_appears_and_goes() -> None:
    panel = explored(sizes=SIZES).panel()
    panel.show()
    control(panel, "order").value = 1
    shown = texts(panel)
    assert "✗ IllegalTransformError" in shown["status"]
    assert "would read a[" in shown["main"] and "svg" in Page(panel.main.value).tags
    assert "there is no kernel" in shown["costs"]
    control(panel, "order").value = 0
    assert "✗" not in texts(panel)["status"]


def test_a_choice_without_code_shows_no_costs_of_another() -> None:
    def make(tile: int) -> lk.Kernel:
        return skewed().split_iname("j", tile, inner_tag="l.0")

    panel = lk.explore(make, tile=[16, 4096], sizes=SIZES).panel()
    panel.show()
    assert "bytes read" in texts(panel)["costs"]
    control(panel, "tile").value = 1
    shown = texts(panel)
    assert "ResourceError" in shown["status"] and "for i" in shown["main"]
    for title in ("costs", "time", "script"):
        assert shown[title] == "no code can be made of this choice"
    assert "bytes moved" not in shown["status"]


def test_controls_follow_what_is_set() -> None:
    found = explored()
    panel = found.panel()
    assert found.panel() is panel
    found.set(tile=32)
    assert control(panel, "tile").value == 2
    assert "min(32" in texts(panel)["main"]


def test_each_kind_has_its_control() -> None:
    found = lk.explore(
        lambda **more: skewed(),
        {"a": [1, 2], "b": ["x", "y"], "c": (1, 9), "d": True, "<i>e</i>": ["<b>", HOSTILE]},
    )
    panel = found.panel()
    kinds = [type(w).__name__ for w in panel.controls]
    assert kinds == ["SelectionSlider", "Dropdown", "IntSlider", "Checkbox", "Dropdown"]
    for widget, value in zip(panel.controls, (1, 1, 7, False, 1), strict=True):
        widget.value = value
    assert list(found.choice.values()) == [2, "y", 7, False, HOSTILE]
    assert not panel.controls[4].description_allow_html
    assert "alert" in texts(panel)["status"]


def test_what_is_shown_is_a_widget_and_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explored(sizes=SIZES)
    plain = found._repr_mimebundle_()
    assert set(plain) == {"text/plain", "text/html"}
    shell = types.SimpleNamespace(
        kernel=object(), display_formatter=types.SimpleNamespace(active_types=list(plain))
    )
    monkeypatch.setitem(
        sys.modules,
        "IPython",
        types.SimpleNamespace(get_ipython=lambda: shell),  # type: ignore[arg-type]
    )

    found = explored(sizes=SIZES)

    async def show() -> Any:
        return found._repr_mimebundle_()  # where there is a loop, as in Jupyter

    shown = asyncio.run(show())
    assert found.so_far.left and "bytes read" in texts(found.panel())["costs"]
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert "bytes read" in Page(shown["text/html"]).text and "…" not in shown["text/html"]
    assert "min(16" in Page(shown["text/html"]).text and "min(16" in shown["text/plain"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = found._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    for form in shown.values():
        assert "pip install 'loopkit[notebook]'" in form and "min(16" in form


def test_a_newer_choice_ends_what_an_older_one_began(monkeypatch: pytest.MonkeyPatch) -> None:
    proven: list[str] = []
    prove = outcomes._FINDERS["proof"]

    def noted(outcome: outcomes.Outcome, asked: outcomes.Asked) -> Any:
        proven.append(outcome.words)
        return prove(outcome, asked)

    monkeypatch.setitem(outcomes._FINDERS, "proof", noted)  # type: ignore[arg-type]

    async def use() -> Any:
        panel = explored(sizes=SIZES).panel()
        panel.show()
        # Nest and source are there before anything else is begun.
        first = texts(panel)
        assert "for j_inner in [0, min(16" in first["main"] and "float" in first["main"]
        assert "counting costs …" in first["status"] and "counting costs …" in first["costs"]
        control(panel, "tile").value = 0
        await asyncio.sleep(0)
        control(panel, "tile").value = 2
        while panel.explorer.so_far.left:
            await asyncio.sleep(0.01)
        return panel

    panel = asyncio.run(use())
    assert proven == ["tile = 32, order = i,j"]
    assert "steps and source proven" in texts(panel)["status"]


@pytest.fixture
def plain_interrupts() -> Iterator[None]:
    """Jupyter ignores interrupts between cells."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("plain_interrupts")
def test_what_takes_forever_can_be_interrupted() -> None:
    def make(slow: bool) -> lk.Kernel:
        if slow:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        return tiled()

    panel = lk.explore(make, slow=False).panel()
    panel.show()
    control(panel, "slow").value = True
    shown = texts(panel)
    assert shown["note"].startswith("interrupted after") and "min(16" in shown["main"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    control(panel, "slow").value = False
    assert texts(panel)["note"] == ""


IN_JUPYTER = """
import time
import loopkit as lk

knl = lk.make_kernel("{ [i] : 0 <= i < n }", "y[i] = x[i]", dtypes={"x": "float32"})

def make(slow):
    if slow:
        time.sleep(600)
    return knl.split_iname("i", 4)

ex = lk.explore(make, slow=False)
panel = ex.panel()
panel.show()
print(panel.controls[0].model_id)
"""


def test_a_kernel_of_jupyter_is_interrupted() -> None:
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    root = str(Path(__file__).resolve().parent.parent)
    started, client = manager.start_new_kernel(
        kernel_name="python3", startup_timeout=120, env={**os.environ, "PYTHONPATH": root}
    )

    def said(code: str) -> str:
        found: list[str] = []

        def note(message: Any) -> None:
            assert message["msg_type"] != "error", message["content"]
            found.append(message["content"].get("text", ""))

        client.execute_interactive(code, timeout=120, output_hook=note)
        return "".join(found)

    try:
        model = said(IN_JUPYTER).strip()
        update = {"method": "update", "state": {"value": True}, "buffer_paths": []}
        message = client.session.msg("comm_msg", {"comm_id": model, "data": update})
        client.shell_channel.send(message)
        while "calling the function" not in str(client.get_iopub_msg(timeout=120)["content"]):
            pass
        started.interrupt_kernel()
        shown = Page(said("print(panel.note.value, panel.status.value)")).text
        assert "interrupted after" in shown and "slow = True  interrupted" in shown
        assert "True" in said("ex.set(slow=False); print(ex.outcome.source is not None)")
    finally:
        client.stop_channels()
        started.shutdown_kernel(now=True)


def test_errors_of_callbacks_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = explored().panel()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("loopkit._explore.panes.main", fail)
    control(panel, "tile").value = 0
    assert "ZeroDivisionError: planted" in texts(panel)["note"]

    def broken(outcome: outcomes.Outcome, asked: outcomes.Asked) -> Any:
        raise ZeroDivisionError("planted below")

    monkeypatch.undo()
    monkeypatch.setitem(outcomes._FINDERS, "proof", broken)  # type: ignore[arg-type]
    control(panel, "tile").value = 2
    assert "planted below" in texts(panel)["proof"]
