"""Faults in where data lie, and in the arithmetic that finds them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import evaluate

from faults import kernels, programs
from faults.planting import Patch, fault
from faults.rewording import reworded_expression

# {{{ memory


def _pitch(original: Any) -> Any:
    """Rows lie one element further apart."""

    def access(self: Any, name: str, indices: Any) -> Any:
        if len(indices) == 2:
            indices = (indices[0], prim.Sum((indices[1], indices[0])))
        return original(self, name, indices)

    return access


fault(
    "memory: rows lie one element further apart",
    kernels.moved,
    None,
    Patch("codegen.functions:BodyLowering.access", _pitch),
    sizes={"n": 3},
    sanitize=True,
)
fault(
    "memory: indices in reverse order",
    kernels.moved,
    None,
    Patch(
        "codegen.functions:BodyLowering.access",
        lambda f: (
            lambda self, name, indices: f(
                self, name, tuple(reversed(indices)) if name == "a" else indices
            )
        ),
    ),
    sizes={"n": 4},
)


def declared(change: Callable[[Any], Any], name: str = "s") -> Patch:
    """A temporary is declared in another way."""
    return Patch(
        "codegen.storage:_declare",
        lambda f: lambda t: change(f(t)) if t.name == name else f(t),
    )


def swizzled(change: Callable[..., Any]) -> Patch:
    """What index and swizzle become one, for each access."""
    return Patch("codegen.index:IndexLowering._swizzled", change)


def _is_read(by: Any) -> bool:
    """Whether the other index is that of the loop that reads."""
    return bool(by.node.name == "l")


SQUARE = (do("swizzle_array", "t", 1, 0, 2),)
fault(
    "memory: one access of a swizzled array is not",
    kernels.squares,
    None,
    swizzled(
        lambda f: lambda self, s, index, by, n: index if _is_read(by) else f(self, s, index, by, n)
    ),
    chain=SQUARE,
)
fault(
    "memory: one access of a swizzled array by fewer bits",
    kernels.squares,
    None,
    swizzled(
        lambda f: (
            lambda self, s, index, by, n: f(
                self, dataclasses.replace(s, bits=1) if _is_read(by) else s, index, by, n
            )
        )
    ),
    chain=SQUARE,
)
fault(
    "memory: one access of a swizzled array by higher bits",
    kernels.squares,
    None,
    swizzled(
        lambda f: (
            lambda self, s, index, by, n: f(
                self, dataclasses.replace(s, skip=1) if _is_read(by) else s, index, by, n
            )
        )
    ),
    chain=SQUARE,
)
fault(
    "memory: one access of a swizzled array by its own index",
    kernels.squares,
    None,
    swizzled(
        lambda f: lambda self, s, index, by, n: f(self, s, index, index if _is_read(by) else by, n)
    ),
    chain=SQUARE,
)


def _or(original: Any) -> Any:
    def changed(*given: Any) -> Any:
        found = original(*given)
        return dataclasses.replace(found, node=dataclasses.replace(found.node, operator="|"))

    return changed


fault("memory: bits are set, not changed", kernels.squares, None, swizzled(_or), chain=SQUARE)


OBLONG = (
    do("tag_inames", "i:l.1, j:l.0, k:l.1, l:l.0"),
    do("set_temporary_address_space", "s", "shared"),
)
fault(
    "memory: a shared array is one row short",
    programs.oblong,
    None,
    declared(lambda d: dataclasses.replace(d, dimensions=(d.dimensions[0] - 1, *d.dimensions[1:]))),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: a shared array is one column short",
    programs.oblong,
    None,
    declared(
        lambda d: dataclasses.replace(d, dimensions=(*d.dimensions[:-1], d.dimensions[-1] - 1))
    ),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: axes of a shared array exchanged",
    programs.oblong,
    None,
    declared(lambda d: dataclasses.replace(d, order=tuple(reversed(d.order)))),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: a private array is one element short",
    kernels.row_sums,
    None,
    declared(lambda d: dataclasses.replace(d, dimensions=(d.dimensions[0] - 1,)), "acc"),
    chain=(do("fix_parameters", n=6), do("prioritize_loops", "k, i")),
    sizes={"n": 6},
    sanitize=True,
)


def _at_zero(original: Any) -> Any:
    """All shared arrays begin at the same place."""

    def lay_out(kernel: Any, reserved: int) -> Any:
        found = original(kernel, reserved)
        return dataclasses.replace(
            found,
            declared={
                name: d if d.offset is None else dataclasses.replace(d, offset=0)
                for name, d in found.declared.items()
            },
        )

    return lay_out


LARGE = (
    do("split_iname", "i", 8, inner_tag="l.1"),
    do("split_iname", "j", 16, inner_tag="l.0"),
    do("split_iname", "k", 8, inner_tag="l.1"),
    do("split_iname", "l", 16, inner_tag="l.0"),
    do("set_temporary_address_space", "s, r", "shared"),
)
fault(
    "memory: two shared arrays laid over each other",
    programs.large_tiles,
    None,
    Patch("codegen.lower:lay_out", _at_zero),
    chain=LARGE,
)


def _overlapping(original: Any) -> Any:
    """The second array begins before the first one ends."""

    def lay_out(kernel: Any, reserved: int) -> Any:
        found = original(kernel, reserved)
        return dataclasses.replace(
            found,
            declared={
                name: dataclasses.replace(d, offset=d.offset - 16) if d.offset else d
                for name, d in found.declared.items()
            },
        )

    return lay_out


fault(
    "memory: two shared arrays overlap by a little",
    programs.large_tiles,
    None,
    Patch("codegen.lower:lay_out", _overlapping),
    chain=LARGE,
)
fault(
    "memory: less shared memory asked for than used",
    programs.large_tiles,
    None,
    Patch(
        "codegen.lower:lay_out",
        lambda f: lambda *a: dataclasses.replace(s := f(*a), dynamic_shared=s.dynamic_shared - 512),
    ),
    chain=LARGE,
    sanitize=True,
)

# }}}

# {{{ arithmetic


def _wraps(kernel: Any) -> str | None:
    """The index of a cell that exists, in the arithmetic that the source spells."""
    found = re.search(r"= 2\.0f \* a\[(.*)\];", kernel.cuda())
    assert found is not None
    text = found[1].replace("(long long)", "1*long*")
    i, j, m = 50_000, 50_000, 60_000

    class Int(int):
        """A 32-bit integer."""

        def __mul__(self, other: Any) -> Any:
            return _wrapped(self, other, int(self) * int(other))

        def __add__(self, other: Any) -> Any:
            return _wrapped(self, other, int(self) + int(other))

    class Long(int):
        """A 64-bit integer."""

        def __mul__(self, other: Any) -> Any:
            return Long(int(self) * int(other))

        def __add__(self, other: Any) -> Any:
            return Long(int(self) + int(other))

    def _wrapped(a: Any, b: Any, value: int) -> Any:
        if isinstance(b, Long):
            return Long(value)
        return Int((value + 2**31) % 2**32 - 2**31)

    text = text.replace("1*long*", "long*")
    got = int(eval(text, {"i": Int(i), "j": Int(j), "m": Int(m), "long": Long(1)}))
    return None if got == i * m + j else f"a[{i}, {j}] of {m} columns is looked for at {got}"


fault(
    "arithmetic: 32 bits where 64 are needed",
    programs.wide,
    None,
    Patch(
        "codegen.functions:BodyLowering.access",
        lambda f: (
            lambda self, *a: reworded_expression(
                f(self, *a), lambda text: text.replace("(long long)", "")
            )
        ),
    ),
    sizes={"n": 2, "m": 3},
    evidence=_wraps,
)


def _overflows(kernel: Any) -> str | None:
    """The bound of a loop for the largest size that calls admit."""
    n = 2**31 - 1
    if "(n + 3) / 4" in kernel.cuda() and all(
        evaluate(check.condition, {"n": n}) for check in kernel.program().checks
    ):
        return f"for n = {n}, n + 3 is no 32-bit integer"
    return None


def _signed(pattern: str) -> Callable[[Any], str | None]:
    """What the source computes with signed integers, however large the data are."""

    def look(kernel: Any) -> str | None:
        found = re.search(pattern, kernel.cuda())
        return f"{found[0]} may overflow as int" if found else None

    return look


fault(
    "arithmetic: sums of data are computed with signed integers",
    programs.integers,
    None,
    Patch("codegen.wrapping:unsigned", lambda f: lambda value, dtype: value),
    sizes={"n": 3},
    evidence=_signed(r"= c\[i\] \+ acc;"),
)
fault(
    "arithmetic: an update of integers is computed with signed ones",
    programs.integers,
    None,
    Patch(
        "codegen.wrapping:addend",
        lambda f: lambda symbol, dtype, value, operand: value,
    ),
    sizes={"n": 3},
    evidence=_signed(r"acc \+= a\["),
)
fault(
    "arithmetic: inames are taken to be small",
    programs.integers,
    None,
    Patch("codegen.values:ValueLowering.largest", lambda f: lambda self, expr: 1),
    sizes={"n": 3},
    evidence=_signed(r"= i \* j;"),
)


fault(
    "arithmetic: sizes may be as large as integers get",
    kernels.added,
    None,
    Patch("codegen.lower:size_checks", lambda f: lambda kernel: ()),
    chain=(do("split_iname", "i", 4),),
    sizes={"n": 7},
    evidence=_overflows,
)
fault(
    "arithmetic: division of negative numbers rounds towards zero",
    programs.below_zero,
    None,
    Patch("codegen.widths:Ranges.is_nonnegative", lambda f: lambda self, expr: True),
)

# }}}
