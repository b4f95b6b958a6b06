"""Decides whether a condition on integers holds for all values of its names.

``decide`` asks isl first, and z3 if isl leaves a question open. ``simpler_questions`` simplifies
questions, ``by_isl`` and ``smt`` translate them, ``by_solver`` runs z3, and ``one_to_one`` decides
whether numbers determine names.
"""

from loopkit._decide.decide import Decision, Open, Proven, Refuted, decide

__all__ = ["Decision", "Open", "Proven", "Refuted", "decide"]
