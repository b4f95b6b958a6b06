"""Making kernels of few words."""

from __future__ import annotations

from typing import Any

import loopkit as lk


def make(
    domains: str | list[str], text: str, assumptions: str, floats: str, *data: Any
) -> lk.Kernel:
    """A kernel with arrays ``floats`` of float32; ``data`` declares what is not to be inferred."""
    return lk.make_kernel(
        domains,
        text,
        [*data, ...],
        dtypes={floats: "float32"} if floats else {},
        assumptions=assumptions,
    )


def array(name: str, shape: str, dtype: str = "float32") -> lk.ArrayArg:
    """A declared array; its shape as ``"n, m"``."""
    return lk.GlobalArg(name, dtype, shape=tuple(part.strip() for part in shape.split(",")))
