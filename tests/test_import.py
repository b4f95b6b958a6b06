"""What ``import loopkit`` costs and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pace import slowness_now

ROOT = Path(__file__).resolve().parent.parent

MEASURE = """
import json, sys, time
before = set(sys.modules)
start = time.process_time()
import loopkit
seconds = time.process_time() - start
print(json.dumps({
    "seconds": seconds,
    "file": loopkit.__file__,
    "modules": sorted(set(sys.modules) - before),
}))
"""

LIMIT = 0.25
"""Seconds of a processor, of a loopkit whose files are compiled."""

MODULES = 60
"""How many of its modules loopkit may import at once; the others wait until they are used."""

OURS = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
"""What the environment of the tests says, and that of a user does not."""


def _measure(*, cwd: Path, **environment: str) -> dict[str, object]:
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        cwd=cwd,
        env=env | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def test_import_is_quick(tmp_path: Path) -> None:
    where = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    _measure(cwd=tmp_path, **where)  # once to have everything compiled and in memory
    seconds = []
    for _ in range(5):
        pace = slowness_now()
        taken = float(str(_measure(cwd=tmp_path, **where)["seconds"]))
        seconds.append(2 * taken / (pace + slowness_now()))
    assert min(seconds) <= LIMIT, f"import loopkit took {seconds} s"


def test_import_leaves_the_heavy_packages_alone(tmp_path: Path) -> None:
    modules = _measure(cwd=tmp_path, PYTHONPATH=str(ROOT))["modules"]
    assert isinstance(modules, list)
    heavy = {"cuda", "torch", "cupy", "jax", "numba", "rich", "click", "IPython", "matplotlib"}
    heavy |= {"ipywidgets", "jupyterlab"}
    assert not heavy & {str(name).split(".")[0] for name in modules}


def test_import_loads_few_modules(tmp_path: Path) -> None:
    modules = _measure(cwd=tmp_path, PYTHONPATH=str(ROOT))["modules"]
    assert isinstance(modules, list)
    ours = [name for name in modules if str(name).split(".")[0] == "loopkit"]
    assert len(ours) <= MODULES, ours


def test_works_from_a_checkout_without_installing(tmp_path: Path) -> None:
    assert _measure(cwd=tmp_path, PYTHONPATH=str(ROOT))["file"] == str(
        ROOT / "loopkit" / "__init__.py"
    )


def test_works_with_the_checkout_as_current_folder() -> None:
    assert Path(str(_measure(cwd=ROOT)["file"])).resolve() == ROOT / "loopkit" / "__init__.py"
