"""Faults in the room that data get: which memory, where in it, how much, and of which type."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import ArrayParam

import loopkit as lk
from faults import kernels, programs
from faults.memory import LARGE, OBLONG
from faults.planting import Patch, fault
from faults.printing import text
from faults.rewording import reworded
from loopkit import AddressSpace


def written(change: Callable[[str], str]) -> Patch:
    """Declarations are printed in another way."""

    def make(original: Any) -> Any:
        return lambda self: [reworded(node, change) for node in original(self)]

    return Patch("codegen.functions:BodyLowering.declarations", make)


fault(
    "memory: a shared array is declared in each thread",
    programs.oblong,
    None,
    written(lambda line: line.replace("__shared__ __align__(16) ", "")),
    chain=OBLONG,
    by_running=True,
)
fault(
    "memory: what threads exchange is taken for private everywhere",
    programs.staged_anywhere,
    None,
    Patch("_places:space_of", lambda f: lambda kernel, temporary: AddressSpace.PRIVATE),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
)


def _needed_by_all() -> lk.Kernel:
    """One value that every block needs."""
    return kernels.make(
        "{ [i]: 0 <= i < n }",
        """
        <> t = c[0] {id=one}
        b[i] = a[i] + t {id=all}
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def _always_the_first(_original: Any) -> Any:
    return lambda kernel: {t.name: frozenset(range(3)) for t in kernel.temporaries}


fault(
    "memory: what all blocks need is fetched in the first alone",
    _needed_by_all,
    None,
    Patch("_places:first_block_alone", _always_the_first),
    Patch("_poly.parallel_axes:first_block_alone", _always_the_first),
    chain=(
        do("split_iname", "i", 16, outer_tag="g.0", inner_tag="l.0"),
        do("set_temporary_address_space", "t", "shared"),
    ),
    sizes={"n": 40},
)


def _doubles() -> lk.Kernel:
    """Two temporary arrays of double precision that need more than 48 KiB together."""
    return lk.make_kernel(
        ["{ [i, j]: 0 <= i < 64 and 0 <= j < 64 }", "{ [k, l]: 0 <= k < 64 and 0 <= l < 64 }"],
        """
        <> s[i, j] = a[i, j] {id=one}
        <> r[i, j] = 2*a[i, j] {id=two}
        b[k, l] = s[63 - k, l] + r[63 - k, 63 - l] {id=three}
        """,
        dtypes={"a, b": "float64"},
    )


def _after_four_bytes(original: Any) -> Any:
    """Arrays begin four bytes behind what their type asks for."""

    def lay_out(kernel: Any, reserved: int) -> Any:
        found = original(kernel, reserved)
        return dataclasses.replace(
            found,
            dynamic_shared=found.dynamic_shared + 4,
            declared={
                name: d if d.offset is None else dataclasses.replace(d, offset=d.offset + 4)
                for name, d in found.declared.items()
            },
        )

    return lay_out


def _misaligned(kernel: lk.Kernel) -> str | None:
    """A pointer to doubles that the hardware refuses to follow."""
    offsets = [int(n) for n in re.findall(r"\(shared_memory \+ (\d+)\)", kernel.cuda())]
    bad = [n for n in offsets if n % 8]
    return f"doubles begin at byte {bad[0]}" if bad else None


fault(
    "memory: a shared array begins where none of its type may",
    _doubles,
    None,
    Patch("codegen.lower:lay_out", _after_four_bytes),
    chain=LARGE,
    evidence=_misaligned,
)


def _rowless(original: Any) -> Any:
    """A row too few is allocated."""

    def parameter(kernel: Any, array: Any, role: str) -> Any:
        found = original(kernel, array, role)
        if role != "scratch":
            return found
        return dataclasses.replace(found, shape=(prim.Sum((found.shape[0], -1)), *found.shape[1:]))

    return parameter


fault(
    "calls: a row too few for a global temporary of any size",
    programs.through_matrix,
    None,
    Patch("codegen.functions:_array_parameter", _rowless),
    sizes={"n": 3, "m": 5},
    sanitize=True,
)


def _smaller(original: Any) -> Any:
    """Memory is allocated for elements of two bytes, where they have four."""

    def lower(kernel: Any, strided: frozenset[str] = frozenset()) -> Any:
        found = original(kernel, strided)
        params = [
            dataclasses.replace(p, dtype=np.dtype("int16"))
            if isinstance(p, ArrayParam) and p.role == "scratch"
            else p
            for p in found.params
        ]
        return dataclasses.replace(found, params=tuple(params))

    return lower


fault(
    "calls: a global temporary is allocated with smaller elements",
    programs.through_global,
    None,
    Patch("codegen.lower:lower", _smaller),
    sanitize=True,
)

fault(
    "values: a shared array is declared with another type",
    programs.oblong,
    None,
    written(lambda line: line.replace("float s", "int s")),
    chain=OBLONG,
)
fault(
    "values: indices are declared too narrow",
    kernels.added,
    None,
    Patch("codegen.functions:BodyLowering.iname_type", lambda f: lambda self, iname: "signed char"),
    chain=(do("split_iname", "i", 256, outer_tag="g.0", inner_tag="l.0"),),
    sizes={"n": 256},
    sanitize=True,
)
fault(
    "values: a subscript is cast to what is too narrow",
    kernels.added,
    None,
    text(r"a\[i\]", "a[(signed char)i]"),
    sizes={"n": 200},
    sanitize=True,
)
