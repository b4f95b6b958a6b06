"""Decides whether a condition on whole numbers holds for all values of its names.

``decide`` asks isl first and z3 where isl leaves a question open; ``prepare`` makes questions
simpler, ``by_isl`` and ``smt`` print them, ``by_solver`` asks z3, ``one_to_one`` asks whether
numbers determine names.
"""

from loopkit._decide.decide import Decision, Open, Proven, Refuted, decide

__all__ = ["Decision", "Open", "Proven", "Refuted", "decide"]
