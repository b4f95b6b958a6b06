"""The parsed form of instruction text: one frozen value per instruction or rule."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np

from loopkit._errors import SourcePosition
from loopkit._expression import accesses
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._syntax.tokens import position_in


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one instruction, or those that a ``with`` block gives to all inside.

    ``depends_on`` holds ids that may contain wildcards; ``atomic`` makes an instruction an update
    that any number of instances may make at any time.
    """

    id: str | None = None
    id_prefix: str | None = None
    depends_on: tuple[str, ...] = ()
    inames: frozenset[str] | None = None
    inames_is_final: bool = False
    predicates: tuple[Expression, ...] = ()
    tags: tuple[str, ...] = ()
    atomic: bool = False

    def inside(self, outer: Options) -> Options:
        """These options for an instruction in a ``with`` block that has ``outer``."""
        inames, is_final = self.inames, self.inames_is_final
        if inames is None:
            inames, is_final = outer.inames, outer.inames_is_final
        elif not is_final and outer.inames is not None:
            inames, is_final = inames | outer.inames, outer.inames_is_final
        return Options(
            id=self.id,
            id_prefix=self.id_prefix or outer.id_prefix,
            depends_on=_joined(outer.depends_on, self.depends_on),
            inames=inames,
            inames_is_final=is_final,
            predicates=outer.predicates + self.predicates,
            tags=_joined(outer.tags, self.tags),
            atomic=outer.atomic or self.atomic,
        )


NO_OPTIONS = Options()


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(first + second))


@dataclass(frozen=True, slots=True, kw_only=True)
class RawStatement(Options):
    """The common part of all instructions: options, with the enclosing blocks folded in.

    ``scopes`` are the enclosing ``for`` blocks, outermost first: the number of the block in the
    text and its inames (two blocks over one iname are two loops).  ``predicates`` are the
    conditions, outermost first; ``predicate_blocks`` gives for each the number of its ``if`` block,
    0 for the option ``if=``: the condition of a block is evaluated once, before its body.
    ``flags`` are those of the blocks that a ``break`` leaves, with the blocks' numbers: they are
    tested before each execution of the instruction, before all other conditions.
    """

    predicate_blocks: tuple[int, ...] = ()
    scopes: tuple[tuple[int, tuple[str, ...]], ...] = ()
    flags: tuple[tuple[int, Expression], ...] = ()
    text: str
    position: SourcePosition


Declared = np.dtype[Any] | Literal["auto"] | None
"""None, ``"auto"`` for ``<> t = ...``, or the type of ``<float32> t = ...``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAssignment(RawStatement):
    """``lhs = rhs``.

    ``declared`` says whether the target is declared here.  For ``a[i] += x``, ``rhs`` is
    ``a[i] + x``.  Of ``v, k = ...``, ``lhs`` is a record of the targets, ``declared`` has a place
    for each, and ``results`` says which of the results they take; there are ``count`` of these.
    ``made_by`` says what the assignment stands for, where the text holds another word.
    """

    lhs: Expression
    rhs: Expression
    declared: Declared | tuple[Declared, ...] = None
    results: tuple[int, ...] = ()
    count: int = 1
    made_by: str | None = None

    @property
    def targets(self) -> tuple[tuple[Expression, Declared], ...]:
        """What is assigned to, and how it is declared."""
        if isinstance(self.declared, tuple):
            return tuple(zip(self.lhs.parts, self.declared, strict=True))
        return ((self.lhs, self.declared),)

    @property
    def written(self) -> list[str]:
        """The names of what is assigned to, in order."""
        return [accesses(target)[0][0] for target, _ in self.targets]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawNop(RawStatement):
    """A marker in the order of statements, without work: ``... nop``.

    ``... gbarrier`` ends a launch.  ``... lbarrier`` has no effect: barriers within a block follow
    from the data that threads share.
    """

    word: Literal["nop", "lbarrier", "gbarrier"] = "nop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBreak(RawStatement):
    """``break if c``: the loop of the innermost ``for`` block ends here.

    The condition is the last of the ``predicates``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSubstitution:
    """``name(arguments) := expression``."""

    name: str
    arguments: tuple[str, ...]
    expression: Expression
    text: str
    position: SourcePosition


RawItem = RawAssignment | RawBreak | RawNop | RawSubstitution


def position_of_name(item: RawItem, name: str) -> SourcePosition:
    """Where ``name`` first stands in an item's text; the item's own place if it does not."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", item.text)
    if found is None:
        return item.position
    inner = position_in(item.text, found.start(), len(name))
    column = inner.column + (item.position.column - 1 if inner.line == 1 else 0)
    return SourcePosition(
        item.position.text, item.position.line + inner.line - 1, column, len(name)
    )
