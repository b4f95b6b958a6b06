"""Launches: what one leaves to the next, and what only they order."""

from __future__ import annotations

from loopkit import IllegalTransformError, RaceError
from refusals import kernels as k
from refusals.case import Case, do, message, pair

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})
LAUNCHES = do("add_barrier", "id:make", "id:use")
BLOCKS = do("tag_inames", "i:g.0, j:g.0")

CASES = (
    Case(
        "a private value that a later launch reads",
        k.through_temporary,
        LAUNCHES,
        IllegalTransformError,
        pair("s", (0,), "make[i=0]", "use[j=0]", n=1),
        (LAUNCHES,),
        N,
        chain=(do("set_temporary_address_space", "s", "private"),),
    ),
    Case(
        "a shared value that a later launch reads",
        k.through_temporary,
        do("set_temporary_address_space", "s", "local"),
        IllegalTransformError,
        pair("s", (0,), "make[i=0]", "use[j=0]", n=1),
        (LAUNCHES, do("set_temporary_address_space", "s", "global")),
        N,
        chain=(LAUNCHES,),
    ),
    Case(
        "a barrier taken away that blocks wait at",
        k.through_temporary,
        do("remove_barrier", "gbarrier"),
        RaceError,
        pair("s", (0,), "make[i=0]", "use[j=1]", n=2),
        (
            LAUNCHES,
            do("add_barrier", insn_after="id:use"),
            do("remove_barrier", "gbarrier"),
            BLOCKS,
        ),
        N,
        chain=(LAUNCHES, BLOCKS),
    ),
    Case(
        "a loop parted by a barrier, one value for all",
        k.through_scalar,
        do("add_barrier", "id:make", "id:use", within_inames=()),
        IllegalTransformError,
        pair("s", (), "use[i=0]", "make[i=1]", n=2),
        (LAUNCHES,),
        N,
    ),
    Case(
        "a barrier behind what follows it",
        k.through_temporary,
        do("add_barrier", "id:use", "id:make"),
        IllegalTransformError,
        message("'make' comes before 'use'"),
        (LAUNCHES,),
        N,
        is_wrong=False,
    ),
    Case(
        "values saved for a launch that is not there",
        k.through_scalar,
        do("save_and_reload_temporaries"),
        IllegalTransformError,
        message("a call of the kernel is one launch"),
        (do("save_and_reload_temporaries", "id:make", "id:use", within_inames=()),),
        N,
        is_wrong=False,
    ),
)
