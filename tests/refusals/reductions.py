"""Reductions in parts, and arrays that lie over each other."""

from __future__ import annotations

from faults.kernels import stages

import loopkit as lk
from loopkit import IllegalTransformError
from refusals import kernels as k
from refusals.case import Case, do, message

NM = ({"n": 1, "m": 1}, {"n": 9, "m": 5}, {"n": 33, "m": 32})
SHARED = do("set_temporary_address_space", "t, r, s", "shared")
IN_PARTS = do("split_iname", "j", 4)

PIECES = do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0")


def prefix() -> lk.Kernel:
    """The running sum of a vector."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, x[j])",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )


CASES = (
    Case(
        "one accumulator for sums that start anew in each row",
        k.row_dots,
        do("realize_reduction", force_outer_iname_for_scan="i"),
        IllegalTransformError,
        message(
            "'s_update' (i=1, j=0) would compute something else: it now has one value for every 'i'"
        ),
        (do("split_iname", "j", 4, inner_tag="l.0"), do("realize_reduction", by="shared")),
        NM,
    ),
    Case(
        "a running sum along no loop that bounds it",
        k.row_dots,
        do("realize_reduction", force_scan=True),
        IllegalTransformError,
        message("no loop around it bounds what it runs over", "0 <= j <= i"),
        (do("realize_reduction", force_scan=True),),
        ({"n": 1}, {"n": 9}, {"n": 33}),
        is_wrong=False,
        legal_kernel=prefix,
    ),
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
        "an array in global memory that lies over others",
        stages,
        do("set_temporary_address_space", "t", "global"),
        IllegalTransformError,
        message("'t' shares its storage with 's'", "only arrays in shared memory"),
        (SHARED, do("alias_temporaries", "t, s"), do("set_temporary_address_space", "r", "global")),
        ({"n": 1}, {"n": 2}),
        chain=(SHARED, do("alias_temporaries", "t, s")),
        is_wrong=False,
    ),
    Case(
        "blocks that look back around a loop that goes on",
        prefix,
        do("split_iname", "i", 4, outer_tag="g.0"),
        IllegalTransformError,
        message("inside the loop over 'i_inner'", "a single pass"),
        (do("realize_reduction", force_scan=True, by="lookback"), PIECES),
        ({"n": 1}, {"n": 9}, {"n": 33}),
        chain=(do("realize_reduction", force_scan=True, by="lookback"),),
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
    Case(
        "inames of their own for reductions that have them",
        k.row_dots,
        do("make_reduction_inames_unique"),
        IllegalTransformError,
        message("no such reduction shares an iname with anything"),
        (do("make_reduction_inames_unique"),),
        NM,
        is_wrong=False,
        legal_kernel=k.two_row_sums,
    ),
    Case(
        "a factor that the terms of a sum have not in common",
        k.row_dots,
        do("collect_common_factors_on_increment", "acc"),
        IllegalTransformError,
        message("no factor is common to all that is added to 'acc'"),
        (do("collect_common_factors_on_increment", "acc"),),
        NM,
        is_wrong=False,
        legal_kernel=k.weighted_rows,
    ),
)
