"""Notebooks as files: executed from top to bottom, and written in one form, the same everywhere.

A cell tagged ``varies`` shows times, or what depends on the machine: of its outputs nothing is
compared.  A cell tagged ``raises-exception`` may end in an error, of which type and message are
compared, while the look of the traceback, which is Python's, is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
Cell = dict[str, Any]
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook as it lies there."""
    found: Notebook = nbformat.read(path, as_version=4)
    return found


def executed(path: Path, scratch: Path) -> Notebook:
    """The notebook with new outputs, of a fresh process that starts in the notebook's folder.

    It imports this copy of loopkit and reads no settings of the person's, only those in *scratch*.
    """
    around = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "IPYTHONDIR": str(scratch),
        "JUPYTER_CONFIG_DIR": str(scratch),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    notebook = read(path)
    folder = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=folder, coalesce_streams=True
    )
    with patch.dict(os.environ, around):
        client.execute()
    return plain(notebook)


def plain(notebook: Notebook) -> Notebook:
    """A notebook without what differs from run to run, and from editor to editor."""
    cells: list[Cell] = []
    for cell in notebook["cells"]:
        kept: Cell = {"cell_type": cell["cell_type"], "source": cell["source"].strip()}
        tags = cell["metadata"].get("tags")
        kept["metadata"] = {"tags": list(tags)} if tags else {}
        digest = hashlib.sha256(f"{kept['cell_type']} {kept['source']}".encode())
        kept["id"] = digest.hexdigest()[:8]
        if kept["cell_type"] == "code":
            kept["execution_count"] = None
            kept["outputs"] = [_output(output) for output in cell["outputs"]]
        cells.append(kept)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _output(output: Cell) -> Cell:
    kept = {key: value for key, value in output.items() if key != "transient"}
    if "execution_count" in kept:
        kept["execution_count"] = None
    if "text/html" in (data := kept.get("data", {})):  # it holds the same picture
        kept["data"] = {kind: text for kind, text in data.items() if kind != "image/svg+xml"}
    return kept


def varying(cell: Cell) -> bool:
    """Whether what the cell shows is another one on another machine."""
    return "varies" in cell["metadata"].get("tags", ())


def settled(fresh: Notebook, kept: Notebook) -> Notebook:
    """*fresh* as it is written anew: varying outputs stay as they are where only numbers differ."""
    was = {cell["id"]: cell["outputs"] for cell in plain(kept)["cells"] if "outputs" in cell}
    cells = []
    for cell in fresh["cells"]:
        old = was.get(cell["id"])
        if old and varying(cell) and _without_numbers(old) == _without_numbers(cell["outputs"]):
            cell = {**cell, "outputs": old}
        cells.append(cell)
    return {**fresh, "cells": cells}


def _without_numbers(outputs: list[Cell]) -> str:
    return re.sub(
        r"[\d.,]+|\s+|[nµm]?s\b", "", json.dumps(outputs, ensure_ascii=False, sort_keys=True)
    )


def masked(fresh: Notebook, kept: Notebook) -> Notebook:
    """*fresh* with those outputs of *kept*, the same notebook, that need not be the same."""
    cells = []
    for new, old in zip(fresh["cells"], kept["cells"], strict=True):
        if new["cell_type"] == "code" and varying(new):
            new = {**new, "outputs": old["outputs"]}
        elif new["cell_type"] == "code":
            outputs = list(new["outputs"])
            for n, (made, was) in enumerate(zip(outputs, old["outputs"], strict=False)):
                if made["output_type"] == was["output_type"] == "error":
                    outputs[n] = {**made, "traceback": was["traceback"]}
            new = {**new, "outputs": outputs}
        cells.append(new)
    return {**fresh, "cells": cells}


def written(notebook: Notebook) -> str:
    """The text of the file: keys sorted, one line of text a line of the file."""
    for_file = nbformat.v4.rwbase.split_lines(nbformat.from_dict(json.loads(json.dumps(notebook))))
    return json.dumps(for_file, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
