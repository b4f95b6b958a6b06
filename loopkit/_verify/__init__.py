"""Whether two kernels compute the same, with nothing known of how one came from the other.

``discover`` guesses which statements correspond (``views`` and ``solve`` help
it, ``split`` cuts statements that stand for several); ``prove`` hands a guess
to the checker; ``differ`` runs both kernels at small sizes (``execute``,
``arithmetic``) and shows how a cell that differs came about (``render``).
"""

from loopkit._verify.answer import verify
from loopkit._verify.verdict import Difference, Verdict

__all__ = ["Difference", "Verdict", "verify"]
