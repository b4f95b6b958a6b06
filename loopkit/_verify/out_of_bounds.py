"""Accesses outside of arrays.

What such an access does nobody says, so that it is not the same as none, whether
or not what it reads is used.  The proof judges those of statements that a
schedule adds; here all are.
"""

from __future__ import annotations

from loopkit._arrays import ValueArg
from loopkit._errors import OutOfBoundsError
from loopkit._kernel import Kernel
from loopkit._make.bounds import check_in_bounds
from loopkit._verify.verdict import Difference, Verdict


def out_of_bounds(before: Kernel, after: Kernel) -> Verdict | None:
    """The verdict on kernels of which one leaves its arrays, or both do; None where neither does.

    Both assume the same.
    """
    mine, its = _first(before), _first(after)
    if mine is not None and its is not None:
        return Verdict("undecided", f"neither kernel stays inside of its arrays: {its.why}")
    found = mine or its
    if found is None:
        return None
    witness = found.witness
    assert witness is not None and witness.array is not None
    assert witness.sink is not None
    point = ", ".join(f"{n}={v}" for n, v in witness.sink.inames.items())
    who = f"'{witness.sink.statement}'" + (f" ({point})" if point else "")
    words = f"{who} touches it", "nothing outside of an array is touched"
    one, two = words if found is mine else words[::-1]
    difference = Difference(
        dict(witness.parameters), witness.array, witness.cell or (), one, two, outside=True
    )
    return Verdict("different", "", difference)


def _first(kernel: Kernel) -> OutOfBoundsError | None:
    """The first access outside of an array by an instance that runs whatever data hold."""
    arrays = [a for a in (*kernel.args, *kernel.temporaries) if not isinstance(a, ValueArg)]
    try:
        check_in_bounds(kernel, frozenset(a.name for a in arrays))
    except OutOfBoundsError as error:
        return error
    return None
