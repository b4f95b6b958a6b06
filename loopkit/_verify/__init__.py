"""Whether two kernels compute the same, with nothing known of how one came from the other.

``answer`` leads the way: ``discover`` guesses which statements correspond
(``tasks``, ``views``, ``solve`` and ``guesses`` help it, ``split`` cuts
statements that stand for several); ``prove`` hands a guess to the checker, in
the one form of ``forms``; ``differ`` runs both kernels at small sizes (``execute``,
``arithmetic``) and shows how a cell that differs came about (``render``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopkit._verify.verdict import Difference, Verdict

if TYPE_CHECKING:
    from loopkit._kernel import Kernel

__all__ = ["Difference", "Verdict", "verify"]


def verify(before: Kernel, after: Kernel) -> Verdict:
    """Whether two kernels compute the same from the same arguments.

    Nothing is known of how one came from the other.  Statements that may
    correspond are searched for, and the correspondence goes through the proof
    that every transform goes through.  Where no correspondence is proven, both
    kernels are run at small sizes, to find a cell in which they differ.

    Parameters
    ----------
    before, after
        Kernels over the same arguments (names, types, shapes), written by hand
        or scheduled.  They are compared for all sizes that both assume.

    Returns a :class:`Verdict`: *equal* is proven; *different* shows the first
    cell that differs, at the smallest sizes found, with how each kernel
    computes it; *undecided* says why.  Floating-point operations outside of
    reductions count as equal only in the same order.  Raises
    :class:`~loopkit.InvalidArgumentError` where the arguments do not match.
    """
    from loopkit._verify.answer import answer

    return answer(before, after)
