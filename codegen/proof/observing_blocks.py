"""Which blocks look at what private and shared arrays hold.

A statement without an iname on a block axis runs in every block that has a copy
of what it writes.  Where the text reads that in one block alone, it need not
run in others.
"""

from __future__ import annotations

import islpy as isl

from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.forms import constant, variable
from loopkit.codegen.proof.spaces import equal
from loopkit.codegen.proof.subject import Subject


class ObservingBlocks:
    """Answers, per array and block axis, whether one block alone reads."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._known: dict[tuple[str, str], bool] = {}

    def seen(self, array: str, where: isl.Set, words: frozenset[str]) -> isl.Set:
        """Those of some instances that run in blocks which read ``array``, along ``words``."""
        for word in sorted(words & set(self.subject.block_words)):
            if self.in_first_alone(array, word):
                where = where & self.subject.space.where(_first(word))
        return where

    def in_first_alone(self, array: str, word: str) -> bool:
        """Whether all reads of ``array`` are made by the first block along an axis."""
        key = (array, word)
        if key not in self._known:
            first = self.subject.space.where(_first(word))
            # Each guard, loop and constant that reads has a leaf of its own.  In `a && x[i]`,
            # x[i] is read where `a` holds: it is the access's scope that says where.
            touches = (t for leaf in self.subject.leaves for t in leaf.touches)
            scopes = {id(t.scope): t.scope for t in touches if t.array == array and not t.is_write}
            self._known[key] = all(s.set.is_subset(first) for s in scopes.values())
        return self._known[key]


def _first(word: str) -> Condition:
    return equal(variable(word), constant(0))
