"""Python source that is made anew for each run, compiled once."""

from __future__ import annotations

from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=1 << 11)
def code_of(text: str, name: str) -> CodeType:
    """The code of a definition; ``name`` stands where tracebacks have a file.

    Sizes and extents are names in such texts, not numbers: one text serves for all of them.
    """
    return compile(text, name, "exec")
