"""What the scripts of the gallery share: comparing with NumPy, and showing a kernel at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def check(result: Any, expected: Any, tolerance: float = 1e-4) -> float:
    """The largest error, relative to the largest value expected; raises where it is too large."""
    got, want = precise(result), precise(expected)
    if got.shape != want.shape:
        raise AssertionError(f"the result has shape {got.shape}, not {want.shape}")
    if not want.size:
        return 0.0
    error = float(np.abs(got - want).max() / max(float(np.abs(want).max()), 1e-30))
    if not error <= tolerance:
        raise AssertionError(f"the result differs from NumPy's by {error:.1e}")
    return error


def precise(numbers: Any) -> Any:
    """The same in double precision, complex numbers as such."""
    array = np.asarray(numbers)
    return array.astype(np.result_type(array, np.float64))


def present(kernels: Mapping[str, Any], inputs: Mapping[str, Any], expected: Any) -> None:
    """Print the nest of every schedule and its CUDA C, run it, compare with NumPy."""
    for title, kernel in kernels.items():
        print(f"# {title}\n\n{kernel}\n")
        print(kernel.cuda())
        # Kernels may update their arguments in place.
        arrays = {n: np.array(v) if np.ndim(v) else v for n, v in inputs.items()}
        print(f"agrees with NumPy: error {check(kernel(**arrays), expected):.1e}\n")
