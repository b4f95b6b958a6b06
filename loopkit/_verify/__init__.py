"""Equivalence of two kernels, without knowledge of how one was derived from the other.

``equivalence`` is the driver. ``cells`` expresses what each kernel leaves in the cells of
arguments as terms of the algebra; ``agree`` compares these terms, and ``totals`` the sums in them.
If values have no such term, ``canonicalize`` normalises both kernels, and ``search`` looks for a
correspondence of their statements, from the outputs backwards over the writes that are read, using
a ``kernel_view`` of each; ``solve_images`` determines the relation of inames.
``correspondence_proof`` passes a correspondence to the checker, and ``out_of_bounds`` looks for
accesses out of bounds.

``find_difference`` runs both kernels (:mod:`loopkit._replay`) in several orders of threads, and
``provenance`` shows how a differing value was computed.
"""

from __future__ import annotations

from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._spelling import shown
from loopkit._verify.verdict import Difference, Verdict

__all__ = ["Difference", "Verdict", "verify"]


@fitting
@in_turn
def verify(before: Kernel, after: Kernel) -> Verdict:
    """Decide whether two kernels compute the same from the same arguments.

    Nothing is known of how one came from the other.  Statements that may
    correspond are searched for, and the correspondence goes through the proof
    that every transform goes through.  Where no correspondence is proven, both
    kernels are run at small sizes, to find a cell in which they differ.

    ``before`` and ``after`` are kernels over the same arguments (names, types,
    shapes, offsets), written by hand or scheduled.  They are compared for all
    sizes that both assume and all data of which holds what either asserts; the
    verdict names both.

    Returns a :class:`Verdict`: *equal* is proven; *different* shows the first
    cell that differs, at the smallest sizes found, with how each kernel
    computes it, or a cell outside of an array that only one of them touches;
    *undecided* says why, and names the budget where isl was given up.
    Floating-point operations outside of reductions count as equal only in the
    same order.  Raises :class:`~loopkit.InvalidArgumentError` where the
    arguments do not match.

    What is compared is what the cells of the arguments hold at the end.  How a
    kernel is called is not: the order of its arguments, defaults of sizes, the
    strides that arrays are passed with.  Nor is whether it can be lowered, and
    subscripts that data decide are taken to lie in their arrays.
    """
    from loopkit._verify.equivalence import decide

    for kernel in (before, after):
        if not isinstance(kernel, Kernel):
            raise InvalidArgumentError(f"verify compares kernels, not {shown(kernel)}")
    return decide(before, after)
