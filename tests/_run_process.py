"""Code in a Python process of its own, which a test may spoil."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

#: The folder of the tests.
HERE = Path(__file__).parent
_HEAD = f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]\n"


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code``, for which this folder and the package can be imported."""
    return subprocess.run(
        [sys.executable, "-c", _HEAD + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
