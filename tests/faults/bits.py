"""Faults where operations on bits choose cells, of which all are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refusals.case import do

import loopkit as lk
from faults.barriers import dropped, placed, within
from faults.planting import Patch, fault


def tagged_instead(iname: str) -> Patch:
    """A tag goes to another loop than the one that was named."""

    def make(original: Any) -> Any:
        return lambda kernel, tags: original(
            kernel, dict.fromkeys([iname], next(iter(tags.values())))
        )

    return Patch("transforms.tag:_retagged", make)


def gray() -> lk.Kernel:
    """Of 33 places in Gray's order, the first and the last one are the same."""
    return lk.make_kernel(
        "{ [b, i]: 0 <= b < n and 0 <= i < 33 }",
        "y[b, (i ^ i >> 1) % 48] = x[b, i]",
        [lk.GlobalArg("y", "float32", "n, 48"), lk.GlobalArg("x", "float32", "n, 33"), ...],
        assumptions="n >= 1",
    )


def swizzled() -> lk.Kernel:
    """Rows of 8, of which two each are one in what they are with exclusive or."""
    return lk.make_kernel(
        "{ [b, i]: 0 <= b < n and 0 <= i < 50 }",
        "y[b, i // 16, i % 8 ^ i // 8] = x[b, i]",
        [lk.GlobalArg("y", "float32", "n, 4, 16"), lk.GlobalArg("x", "float32", "n, 50"), ...],
        assumptions="n >= 1",
    )


def _all_but_the_last(original: Any) -> Any:
    def listed(*given: Any) -> Any:
        found = original(*given)
        return None if found is None else found[:-1]

    return listed


def _each_alone(original: Any) -> Any:
    """All names are told, whatever the values."""
    return lambda columns, values: frozenset(columns)


def _before_the_first(original: Any) -> Any:
    """Values are compared with those at the point before, and with no others."""

    def told(columns: Any, values: Any) -> Any:
        keys = [*zip(*values, strict=True)]
        alike = [n for n in range(1, len(keys)) if keys[n] == keys[n - 1]]
        return frozenset(
            name
            for name, column in columns.items()
            if all(column[n] == column[n - 1] for n in alike)
        )

    return told


BLIND: dict[str, Callable[[Any], Any]] = {
    "": lambda original: original,
    ", the last place not looked at": _all_but_the_last,
    ", places taken to be all different": _each_alone,
    ", places compared with their neighbours": _before_the_first,
}
for kernel, places in ((gray, "33 places in Gray's order"), (swizzled, "50 swizzled places")):
    for what, told in BLIND.items():
        name = "listed" if told is _all_but_the_last else "_told"
        fault(
            f"tag_inames: another loop, over {places}{what}",
            kernel,
            do("tag_inames", "b: l.0"),
            tagged_instead("i"),
            *((Patch(f"_told_by_points:{name}", told),) if what else ()),
            chain=(do("fix_parameters", n=3),),
            by_running=True,
            sizes={"n": 3},
        )


def handed_on() -> lk.Kernel:
    """What 16 threads put into places in Gray's order, 48 threads take out."""
    return lk.make_kernel(
        "{ [b, i, j]: 0 <= b < n and 0 <= i < 16 and 0 <= j < 48 }",
        """
        for b
            for i
                s[(i ^ i >> 1) & 15] = x[b, i]         {id=put}
            end
            for j
                y[b, j] = 2*s[(j ^ j >> 1) & 15]       {id=take}
            end
        end
        """,
        [
            lk.TemporaryVariable("s", "float32", "16", address_space="local"),
            lk.GlobalArg("y", "float32", "n, 48"),
            lk.GlobalArg("x", "float32", "n, 16"),
            ...,
        ],
        assumptions="n >= 1",
    )


for number, where in enumerate(("before they are taken out", "before others are put there")):
    fault(
        f"barriers: nobody waits {where}, in Gray's order",
        handed_on,
        None,
        placed(within("b", dropped(number))),
        chain=(do("tag_inames", "i: l.0, j: l.0"),),
        sizes={"n": 3},
    )
