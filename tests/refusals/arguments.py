"""Arguments by names that are taken, in no full order, and functions that nobody calls."""

from __future__ import annotations

from seams import NothingToDoError

from loopkit import InvalidArgumentError, UnknownNameError
from refusals import kernels as k
from refusals.case import Case, do, message

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})
NM = ({"n": 1, "m": 1}, {"n": 5, "m": 3}, {"n": 33, "m": 18})

CASES = (
    Case(
        "an argument with the name of a temporary",
        k.scalar,
        do("rename_argument", "a", "t"),
        InvalidArgumentError,
        message("the name 't' is taken", "'t_0' is free"),
        (do("rename_argument", "a", "x"), do("split_iname", "i", 4, inner_tag="l.0")),
        N,
        is_wrong=False,
    ),
    Case(
        "an argument with the name of an iname",
        k.scalar,
        do("rename_argument", "n", "i"),
        InvalidArgumentError,
        message("the name 'i' is taken"),
        (do("rename_argument", "n", "count"), do("rename_argument", "b", "n")),
        N,
        is_wrong=False,
    ),
    Case(
        "an order that lacks an argument",
        k.scalar,
        do("set_argument_order", "b, a"),
        InvalidArgumentError,
        message("lacks 'n'", "all of them: n, a, b"),
        (do("set_argument_order", "b, a, n"),),
        N,
        is_wrong=False,
    ),
    Case(
        "an order in which the arguments are already",
        k.scalar,
        do("set_argument_order", "b, n, a"),
        NothingToDoError,
        message("have this order already"),
        (do("set_argument_order", "b, n, a"), do("set_argument_order", "n, a, b")),
        N,
        chain=(do("set_argument_order", "b, n, a"),),
        is_wrong=False,
    ),
    Case(
        "arguments that are all needed",
        k.spare_argument,
        do("remove_unused_arguments"),
        NothingToDoError,
        message("needs all of its arguments"),
        (do("remove_unused_arguments"),),
        N,
        chain=(do("remove_unused_arguments"),),
        is_wrong=False,
    ),
    Case(
        "a function that is called no more",
        k.calling,
        do("inline_callable_kernel", "halved"),
        UnknownNameError,
        message("there is no called function 'halved'"),
        (do("inline_callable_kernel", "halved"), do("split_iname", "j", 4, inner_tag="l.0")),
        NM,
        chain=(do("inline_callable_kernel", "halved"),),
        is_wrong=False,
    ),
)
