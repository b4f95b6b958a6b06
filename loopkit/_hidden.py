"""Names that loopkit makes for its own use inside of sets, and that no user can write.

Where a question concerns several instances of a statement, each instance has a *label*: ``i·b`` is
the ``i`` of the instance *b*.  Other names denote a cell, a hardware index or a quotient:
``cell··0``.  Both contain a middle dot.  Python allows this character in identifiers, so that
expressions over such names can be evaluated, and isl allows any name.  loopkit's language, the
checks of names from outside, and C do not.  Hence such a name never collides with a size (which all
instances share), an iname or an array.  Neither isl's parser nor loopkit's reads these names: sets
and expressions with them are built directly, never from text.

New names in kernels, which a user sees and may use, are made by ``Kernel.fresh_name`` instead.
"""

from __future__ import annotations

from collections.abc import Iterable

import pymbolic.primitives as prim

_DOT = "\N{MIDDLE DOT}"


BASE, OTHER = "b", "x"
"""The instance that a question is about, and one that may get in its way."""
SOURCE, SURE = "w", "s"
"""The write that a read sees, and one that surely sets the cell."""
END = "e"
"""An instance of the text whose value is left at the end."""
READER, WRITER, KILLER, SIBLING = "R", "W", "K", "Q"
"""Instances of the text: of a read, of what it sees, of a write in between, and of a sibling."""
UPDATE, FLUSH = "u", "f"
"""An update of a partial sum, and what adds that sum where it goes."""
ONE, TWO = "1", "2"
"""Two instances that may be of one statement."""
STANDS = "t"
"""One of several instances of the text that an instance of the schedule stands for."""
OLD, NEW = "o", "n"
"""The instances of a pair of statements of two kernels."""
OLD_SOURCE, NEW_SOURCE = "p", "q"
"""Those of the statements that wrote what such a pair reads."""
EARLIER, BETWEEN = "earlier", "between"
"""An iteration before, and one between two instances."""


def copied(depth: int) -> str:
    """The label of a statement whose copy was read, after ``depth`` other copies."""
    return f"m{depth}"


def inlined(depth: int) -> str:
    """The label of a statement of the text that is computed in place, inside ``depth`` others."""
    return f"i{depth}"


def instance(name: str, label: str) -> str:
    """``name`` with the label of an instance; unchanged if the label is empty."""
    return f"{name}{_DOT}{label}" if label else name


def variable(name: str, label: str) -> prim.Variable:
    """:func:`instance` as an expression."""
    return prim.Variable(instance(name, label))


def instances(names: Iterable[str], label: str) -> dict[str, str]:
    """:func:`instance` of each name."""
    return {name: instance(name, label) for name in names}


def hidden(word: str, *which: object) -> str:
    """A name that no user can write: ``hidden("cell", 0)``."""
    return (2 * _DOT).join((word, *map(str, which or (0,))))


_NUMBER = "number"


def number(*which: object) -> str:
    """A name for an integer that depends on data: one value for all instances of a question."""
    return hidden(_NUMBER, *which)


def is_number(name: str) -> bool:
    """Whether a name is one of :func:`number`."""
    return name.startswith(hidden(_NUMBER, ""))


def is_hidden(name: str) -> bool:
    """Whether a name was made by this module."""
    return _DOT in name


def label_of(name: str) -> str:
    """The label of a name's instance; empty where it has none."""
    head, dot, label = name.rpartition(_DOT)
    return label if dot and not head.endswith(_DOT) else ""


def plain(name: str) -> str:
    """The name without the label of its instance."""
    return name.rpartition(_DOT)[0] if label_of(name) else name


def labelled(names: Iterable[str], *labels: str) -> list[str]:
    """Those of some names that are of instances with these labels."""
    return [name for name in names if label_of(name) in labels]
