"""One kernel at one choice of sizes: where its data lie, and what they hold at first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit._arrays import ValueArg
from loopkit._expression import evaluate
from loopkit._kernel import Kernel
from loopkit._reference.places import copies_of, find_axes
from loopkit._verify.example_data import ExampleData, Place, TracedValue

Sizes = Mapping[str, int]


class UnsupportedError(Exception):
    """The kernel cannot be run here."""


class DataDependentError(UnsupportedError):
    """Data decide how often some statement runs."""


class KernelAtSizes:
    """A kernel whose sizes are numbers."""

    def __init__(self, kernel: Kernel, sizes: Sizes) -> None:
        from loopkit._make.infer import infer_types

        self.kernel = infer_types(kernel)
        self.sizes = {n: sizes[n] for n in self.kernel.sizes}
        self.axes = find_axes(self.kernel, self.sizes)
        self.copies = {
            t.name: copies_of(self.kernel, t, self.axes) for t in self.kernel.temporaries
        }
        self.dtypes: dict[str, np.dtype[Any]] = {
            d.name: d.dtype
            for d in (*self.kernel.args, *self.kernel.temporaries)
            if d.dtype is not None
        }
        self.shapes = {
            a.name: tuple(max(0, int(evaluate(e, self.sizes))) for e in a.shape or ())
            for a in (*self.kernel.args, *self.kernel.temporaries)
            if not isinstance(a, ValueArg)
        }
        arguments = self.kernel.arg_by_name.keys() & self.shapes.keys()
        extents = [e for name in arguments for e in self.shapes[name] if e > 0]
        self.limit = min(extents, default=1)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that are written, in the order of the arguments."""
        return tuple(a.name for a in self.kernel.args if a.name in self.kernel.writers)

    def initial(self, data: ExampleData, name: str, place: Place) -> TracedValue:
        """What a cell holds that no statement has written."""
        argument = self.kernel.arg_by_name.get(name)
        if argument is None:
            return TracedValue(math.nan, name, place, None)
        dtype = self.dtypes[name]
        if isinstance(argument, ValueArg):
            if name in self.sizes:
                return TracedValue(self.sizes[name], name, place)
            return TracedValue(data.cell(name, (), dtype, self.limit), name, ())
        if not all(0 <= i < e for i, e in zip(place, self.shapes[name], strict=True)):
            return TracedValue(math.nan, name, place)
        # What a kernel leaves alone keeps what was passed, in outputs too.
        return TracedValue(data.cell(name, place, dtype, self.limit), name, place)
