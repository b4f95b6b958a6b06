"""What makes transforms faulty: other statements, other maps, other kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Change

from faults.planting import Patch, fault
from loopkit import Kernel

Values = Mapping[str, Any]


def var(name: str) -> Any:
    return prim.Variable(name)


def total(*terms: Any) -> Any:
    return prim.Sum(terms)


# {{{ what is wrong with the values of inames


def statements_get(wrong: Callable[[Values], Values]) -> Patch:
    """Statements are rewritten with other values than the transform means."""

    def make(original: Any) -> Any:
        def rewrite(kernel: Any, values: Any, *rest: Any) -> Any:
            return original(kernel, {id_: wrong(its) for id_, its in values.items()}, *rest)

        return rewrite

    return Patch("transforms._common:rewrite_statements", make)


def maps_say(wrong: Callable[[Values], Values]) -> Patch:
    """The transform says the same of what it did."""

    def make(original: Any) -> Any:
        return lambda kernel, values: original(
            kernel, {id_: wrong(its) for id_, its in values.items()}
        )

    return Patch("transforms._common:maps_for", make)


def each(change: Callable[[Any], Any]) -> Callable[[Values], Values]:
    """The same change to all values."""
    return lambda values: {name: change(value) for name, value in values.items()}


def with_both(
    name: str, wrong: Callable[[Values], Values], kernel: Any, step: Any, **more: Any
) -> None:
    """Two faults: the instance map is the right one, or as wrong as the statements."""
    statements = statements_get(wrong)
    fault(f"{name}, said to be right", kernel, step, statements, **more)
    fault(f"{name}, and said so", kernel, step, statements, maps_say(wrong), **more)


def shifted(value: Any) -> Any:
    return total(value, 1)


def shorter_tiles(value: Any) -> Any:
    """``4*outer + inner`` as ``3*outer + inner``."""
    product, inner = value.children
    return total(prim.Product((product.children[0] - 1, *product.children[1:])), inner)


# }}}


# {{{ what comes out of a transform

RENAME = do("rename_iname", "i", "row")


def changed(change: Callable[[Kernel], Kernel]) -> Patch:
    """The kernel that comes out is another one; the map stays."""

    def make(original: Any) -> Any:
        def renamed(kernel: Kernel, old: str, new: str) -> Change:
            right = original(kernel, old, new)
            return dataclasses.replace(right, kernel=change(right.kernel))

        return renamed

    return Patch("transforms.rename:_renamed", make)


def statement(id_: str, change: Callable[[Any], Any]) -> Patch:
    """One statement comes out changed."""
    return changed(
        lambda kernel: kernel.with_(
            statements=tuple(change(s) if s.id == id_ else s for s in kernel.statements)
        )
    )


def claimed(change: Callable[[Change], Change]) -> Patch:
    """The map is another one, the kernel too if need be."""

    def make(original: Any) -> Any:
        return lambda kernel, old, new: change(original(kernel, old, new))

    return Patch("transforms.rename:_renamed", make)


# }}}
