"""What scripts import from ``loopy.types``: types are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._promotion import as_dtype


def to_loopy_type(dtype: Any, *args: Any, **kwargs: Any) -> np.dtype[Any]:
    """NumPy's type."""
    return as_dtype(dtype)


NumpyType = to_loopy_type

__all__ = ["NumpyType", "to_loopy_type"]
