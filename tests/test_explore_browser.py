"""The explorer in JupyterLab, in a real browser: controls are moved, and what follows is read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jupyterlab")
pytest.importorskip("ipywidgets")

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 120
"""Seconds to wait for anything: machines may be busy."""

CELL = """\
import loopkit as lk

knl = lk.make_kernel(
    "{ [i, j]: 1 <= i < n and 0 <= j < m - 1 }",
    "a[i, j] = (a[i - 1, j] + a[i - 1, j + 1]) / 2 {id=step}",
    dtypes={"a": "float32"},
)

def make(tile, order):
    made = knl.split_iname("j", tile)
    return made.prioritize_loops("j_outer,i" if order == "columns" else "i,j_outer")

ex = lk.explore(make, tile=[8, 16, 32], order=["rows", "columns"], sizes={"n": 100, "m": 4096})
ex
"""


@dataclass(frozen=True)
class Lab:
    """A JupyterLab that runs."""

    port: int
    token: str

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in a folder of its own, which knows nothing of the user's settings."""
    home = tmp_path_factory.mktemp("lab")
    settings = home / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    (home / "work").mkdir()
    (home / "work" / "explore.ipynb").write_text(json.dumps(_notebook(CELL)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        lab = Lab(probe.getsockname()[1], os.urandom(16).hex())
    options = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={lab.port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={home / 'work'}",
        f"--IdentityProvider.token={lab.token}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]
    environment = {
        **os.environ,
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "PYTHONPATH": str(ROOT),
    }
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(server, lab, home / "log")
        yield lab
    finally:
        _end(server)


def _notebook(source: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "source": source}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": [{**cell, "execution_count": None}],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _wait_for(server: subprocess.Popen[bytes], lab: Lab, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(lab.url("api/status"), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server, which ends its kernels; what does not listen is killed with its group."""
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


class Opened:
    """The notebook in the browser, its cell run."""

    def __init__(self, browser: Any, lab: Lab) -> None:
        self.page = browser.new_page(viewport={"width": 1500, "height": 1300})
        self.page.set_default_timeout(1e3 * PATIENCE)
        self.outside: list[str] = []
        self.page.on("request", lambda request: self._note(request.url))
        self.page.goto(lab.url("lab/tree/explore.ipynb"))
        self.page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
            " === 'idle'"
        )
        self.run("notebook:run-all-cells")
        self.box = self.page.locator(".jp-OutputArea-output .widget-vbox").first
        self.box.wait_for()

    def _note(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")):
            self.outside.append(url)

    def run(self, command: str) -> None:
        self.page.evaluate("name => { void window.jupyterapp.commands.execute(name) }", command)

    def part(self, place: int) -> Any:
        """The status line, the note, nest and source, from the top."""
        return self.box.locator(":scope > .widget-html").nth(place)

    def waits_for(self, text: str, place: int = 0) -> None:
        self.part(place).get_by_text(text).first.wait_for()

    def tab(self, title: str) -> str:
        self.box.locator(".lm-TabBar-tabLabel", has_text=title).click()
        return str(self.box.locator(".widget-tab-contents").inner_text())


@pytest.fixture
def opened(browser: Any, lab: Lab) -> Iterator[Opened]:
    found = Opened(browser, lab)
    yield found
    found.page.close()


def test_a_notebook_made_into_a_page_shows_the_choice(browser: Any, tmp_path: Path) -> None:
    """Without a kernel there are no widgets, and what stands for them is seen."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    from nbconvert import HTMLExporter

    made = nbformat.from_dict(_notebook(CELL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("IPYTHONDIR", str(tmp_path))
        nbclient.NotebookClient(made, timeout=PATIENCE, kernel_name="python3").execute()
    file = tmp_path / "page.html"
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jupyter_widgets_base_url="")
    file.write_text(exporter.from_notebook_node(made)[0], encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    output = page.locator(".jp-OutputArea-output:visible")
    shown = "\n".join(output.all_inner_texts())
    assert "for j_inner in [0, min(8" in shown and "8 * j_outer" in shown
    assert "tile = 8" in shown and "blocks x threads" in shown
    page.close()


@pytest.mark.slow
@pytest.mark.timeout(5 * PATIENCE)
def test_a_slider_is_moved(opened: Opened) -> None:
    opened.waits_for("steps and source proven")
    assert opened.page.locator("[class^=lk-stand-in]").count() == 1
    assert opened.page.locator("[class^=lk-stand-in]:visible").count() == 0
    opened.waits_for("for j_inner in [0, min(8", 2)
    source = opened.part(2).locator(".lk-source")
    assert "8 * j_outer" in source.inner_text()
    costs = opened.tab("costs")
    assert "global memory" in costs and "8*j_outer" in costs

    handle = opened.box.locator(".noUi-handle").first
    handle.focus()
    opened.page.keyboard.press("ArrowRight")
    opened.waits_for("tile = 16")
    opened.waits_for("steps and source proven")
    assert "16 * j_outer" in source.inner_text() and "[0, min(8" not in opened.part(2).inner_text()
    after = opened.tab("costs")
    assert "16*j_outer" in after and "tile = 8" in after and after != costs
    assert "tile: 8 → 16" in opened.tab("changes")
    assert "knl = make(tile=16, order='rows')" in opened.tab("script")

    opened.box.locator("select").select_option("columns")
    opened.waits_for("IllegalTransformError")
    witness = opened.part(2).locator("svg text:visible", has_text="would read a[")
    witness.first.wait_for()
    opened.waits_for("legal after skewing", 2)
    assert opened.part(2).locator(".lk-source").count() == 0
    rows = opened.tab("all so far")
    assert rows.count("steps and source proven") == 2 and "IllegalTransformError" in rows

    # A narrow window shows every title whole, and what is wide scrolls in a box of its own.
    opened.page.set_viewport_size({"width": 480, "height": 1300})
    opened.page.evaluate("() => { window.jupyterapp.shell.collapseLeft() }")
    opened.page.wait_for_function("() => document.querySelector('.widget-tab').clientWidth > 300")
    fits = "e => e.scrollWidth <= e.clientWidth + 1"
    titles = opened.box.locator(".lm-TabBar-tabLabel").all()
    assert len(titles) == 6 and all(title.evaluate(fits) for title in titles)
    assert opened.box.locator(".widget-tab-contents").evaluate(fits)
    opened.page.set_viewport_size({"width": 1500, "height": 1300})

    # What is shown when the pointer moves fast is what was chosen last.
    opened.box.locator("select").select_option("rows")
    handle.focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        opened.page.keyboard.press(key)
    opened.waits_for("tile = 8")
    opened.waits_for("steps and source proven")
    opened.waits_for("min(8, m - 8 * j_outer", 2)
    assert opened.part(1).inner_text().strip() == ""
    assert opened.outside == []
