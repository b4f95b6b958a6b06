"""Reductions in parts, and arrays that lie over each other."""

from __future__ import annotations

from faults.kernels import stages

from loopkit import IllegalTransformError
from refusals import kernels as k
from refusals.case import Case, do, message

NM = ({"n": 1, "m": 1}, {"n": 9, "m": 5}, {"n": 33, "m": 32})
SHARED = do("set_temporary_address_space", "t, r, s", "shared")
IN_PARTS = do("split_iname", "j", 4)

CASES = (
    Case(
        "an array over the one that it is made of",
        stages,
        do("alias_temporaries", "t, r"),
        IllegalTransformError,
        message("'r' (b=0, k=0, j=0) would write r[0]", "in the place of t[0]"),
        (SHARED, do("alias_temporaries", "t, s")),
        ({"n": 1}, {"n": 2}),
        chain=(SHARED,),
        is_wrong=False,
    ),
    Case(
        "partial sums over no part of a sum",
        k.row_dots,
        do("split_reduction_outward", "i"),
        IllegalTransformError,
        message("no reduction is over 'i' and other inames"),
        (IN_PARTS, do("split_reduction_outward", "j_outer")),
        NM,
        is_wrong=False,
    ),
    Case(
        "partial sums over all of a sum",
        k.row_dots,
        do("split_reduction_inward", "j"),
        IllegalTransformError,
        message("no reduction is over 'j' and other inames"),
        (IN_PARTS, do("split_reduction_inward", "j_outer")),
        NM,
        is_wrong=False,
    ),
    Case(
        "a rule for what no sum is over",
        k.row_dots,
        do("reduction_arg_to_subst_rule", "i"),
        IllegalTransformError,
        message("no reduction is over 'i'"),
        (do("reduction_arg_to_subst_rule", "j"),),
        NM,
        is_wrong=False,
    ),
)
