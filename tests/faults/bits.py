"""Faults where operations on bits choose cells."""

from __future__ import annotations

from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import algebra, one_to_one, sets

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


def _without_the_last(original: Any) -> Any:
    """Where a loop runs, but for its last iteration."""

    def condition(where: Any) -> Any:
        last = sets.maximum(where, "i").eq_set(sets.pw_affine(prim.Variable("i")))
        return original(where - last)

    return condition


def _always_proven(_: Any) -> Any:
    """All names are determined, whatever the numbers."""
    return lambda *_: one_to_one.Proven("nothing")


def _with_the_next(original: Any) -> Any:
    """Each place is compared with the one behind it, and with no others."""

    def decided(claim: Any, context: Any) -> Any:
        names = algebra.terms.names_in(claim)
        following = algebra.polynomials.plus(names["i"], algebra.terms.ONE)
        return original(claim, (*context, one_to_one.are_equal(following, names["i'"])))

    return decided


def _no_point(_: Any) -> Any:
    """Solvers say that nothing refutes a claim."""
    return lambda *_: iter([None])


BLIND: dict[str, tuple[Patch, ...]] = {
    "": (),
    ", the last place not looked at": (Patch("_determined:condition_of", _without_the_last),),
    ", places taken to be all different": (Patch("_determined:decide_one_to_one", _always_proven),),
    ", places compared with their neighbours": (
        Patch("_decide.one_to_one:decide", _with_the_next),
    ),
    ", points that refute thrown away": (
        Patch("_decide.by_isl:refuting_point", lambda _: lambda *_: None),
        Patch("_decide.by_solver:refuting_points", _no_point),
    ),
}
for kernel, places in ((gray, "33 places in Gray's order"), (swizzled, "50 swizzled places")):
    for what, patches in BLIND.items():
        fault(
            f"tag_inames: another loop, over {places}{what}",
            kernel,
            do("tag_inames", "b: l.0"),
            tagged_instead("i"),
            *patches,
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
