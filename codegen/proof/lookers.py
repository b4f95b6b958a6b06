"""Which blocks look at what private and shared arrays hold.

A statement without an iname on a block axis runs in every block that has a copy
of what it writes.  Where the text reads that in one block alone, it need not
run in others.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.forms import constant, variable
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.syntax import CExpression, Element, For, If, Let, Name, walk
from loopkit.codegen.proof.tree import Leaf


class Lookers:
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
            scopes = {id(s): s for leaf in self.subject.leaves for s in _scopes(leaf, array)}
            self._known[key] = all(s.set.is_subset(first) for s in scopes.values())
        return self._known[key]


def _first(word: str) -> Condition:
    return equal(variable(word), constant(0))


def _scopes(leaf: Leaf, array: str) -> Iterator[Scope]:
    """Where a line, or a guard, loop or constant around it, reads an array."""
    if any(t.array == array and not t.is_write for t in leaf.touches):
        yield leaf.scope
    seen: set[int] = set()
    for scope in leaf.scope.chain():
        node = scope.node
        # A guard has a scope for each of its parts, which C tests in order.
        if node is None or scope.parent is None or id(node) in seen:
            continue
        seen.add(id(node))
        if any(_reads(expr, array) for expr in _expressions(node)):
            yield scope.parent


def _expressions(node: For | If | Let) -> tuple[CExpression, ...]:
    if isinstance(node, For):
        return node.lower, node.upper
    return (node.condition,) if isinstance(node, If) else (node.value,)


def _reads(expr: CExpression, array: str) -> bool:
    return any(
        (isinstance(part, Name) and part.name == array)
        or (isinstance(part, Element) and part.array == array)
        for part in walk(expr)
    )
