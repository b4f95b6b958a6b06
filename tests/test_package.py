"""The package as users get it: what the wheel holds, what can be imported, how tests compare."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import Golden

ROOT = Path(__file__).resolve().parent.parent
PACKAGED = {".py", ".css", ".html", ".js", ".h", ".hpp", ".cuh", ".inc", ".cpp", ".S", ".typed"}


def _copy_of_the_checkout(target: Path) -> Path:
    """What a build needs and nothing else, with the links as links."""
    target.mkdir()
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    for folder in ("loopkit", "transforms", "codegen"):
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=skip)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, target / file)
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("wheel")
    source = _copy_of_the_checkout(work / "source")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = work.glob("*.whl")
    return built


def _files_that_belong_in() -> set[str]:
    found = set()
    for top, inside in (
        ("loopkit", "loopkit"),
        ("transforms", "loopkit/transforms"),
        ("codegen", "loopkit/codegen"),
    ):
        for folder, _, files in os.walk(ROOT / top):  # does not follow the links
            if "__pycache__" in folder:
                continue
            relative = Path(folder).relative_to(ROOT / top)
            found |= {
                (inside / relative / file).as_posix()
                for file in files
                if Path(file).suffix in PACKAGED
            }
    return found


def test_wheel_holds_every_file_and_only_loopkit(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {name for name in names if ".dist-info/" not in name}
    assert code == _files_that_belong_in()
    assert {name.split("/")[0] for name in code} == {"loopkit"}
    assert "loopkit/py.typed" in code
    assert "loopkit/transforms/__init__.py" in code
    assert "loopkit/codegen/__init__.py" in code


def test_wheel_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata_name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    metadata = archive.read(metadata_name).decode()
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: MIT" in metadata
    (entry_points,) = (n for n in archive.namelist() if n.endswith("/entry_points.txt"))
    assert "loopkit = loopkit._cli:main" in archive.read(entry_points).decode()


def test_installed_wheel_brings_no_top_level_transforms_or_codegen(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = (
        "import importlib, importlib.util, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import loopkit\n"
        "assert loopkit.__file__.startswith(sys.argv[1]), loopkit.__file__\n"
        "for name in ('loopkit.transforms', 'loopkit.codegen'):\n"
        "    importlib.import_module(name)\n"
        "for name in ('transforms', 'codegen'):\n"
        "    assert importlib.util.find_spec(name) is None, name\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(site)],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_links_are_relative_and_lead_to_the_folders() -> None:
    for name in ("transforms", "codegen"):
        link = ROOT / "loopkit" / name
        assert link.is_symlink()
        assert os.readlink(link) == f"../{name}"
        assert link.resolve() == ROOT / name


def test_every_import_of_the_package_is_declared() -> None:
    """No module of the package imports something that pyproject does not ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w-]", text, maxsplit=1)[0] for text in project["dependencies"]}
    brought = {
        "cuda-python": {"cuda"},
        "pymbolic": {"pymbolic", "pytools", "constantdict"},
        "z3-solver": {"z3"},
    }
    allowed = set().union(*(brought.get(name, {name}) for name in declared))
    # What shows things in notebooks comes with an extra; where it is not there, that is said.
    extra = project["optional-dependencies"]["notebook"]
    allowed |= {re.split(r"[^\w-]", text, maxsplit=1)[0] for text in extra}
    # Used where they are there, or only to talk to the user's own arrays.
    allowed |= {
        "IPython",
        "ipywidgets",
        "cupy",
        "jax",
        "numba",
        "torch",
        "loopkit",
        "typing_extensions",
    }
    allowed |= set(sys.stdlib_module_names)
    for name in sorted(_files_that_belong_in()):
        if name.endswith(".py"):
            tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
            strangers = {top for node in ast.walk(tree) for top in _imported(node)} - allowed
            assert not strangers, f"{name} imports {sorted(strangers)}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.split(".")[0]]
    return []


class TestGolden:
    def test_equal_text_passes(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("one\ntwo\n")
        Golden(False, tmp_path)("a.txt", "one\ntwo")

    def test_difference_is_shown_as_a_diff(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("one\ntwo\n")
        with pytest.raises(pytest.fail.Exception, match=r"-two\n\+three"):
            Golden(False, tmp_path)("a.txt", "one\nthree\n")

    def test_missing_file_fails(self, tmp_path: Path) -> None:
        with pytest.raises(pytest.fail.Exception, match=r"no golden text b\.txt"):
            Golden(False, tmp_path)("b.txt", "text")

    def test_regenerating_writes(self, tmp_path: Path) -> None:
        Golden(True, tmp_path)("sub/a.txt", "new")
        assert (tmp_path / "sub" / "a.txt").read_text() == "new\n"
