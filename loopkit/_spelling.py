"""How names from outside may be spelled: the one check that all of them pass.

A name becomes C, Python that is compiled, and text that people read.  So a name is an ASCII
identifier of some length at most and no word that C takes (:mod:`loopkit._words`); an id or a tag,
which stands in comments, is made of letters, digits and a few signs.  The values that hold names
check them when they are made, whoever makes them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
import pymbolic.primitives as prim

from loopkit import _words
from loopkit._errors import InvalidArgumentError
from loopkit._errors import shown as shown
from loopkit._hidden import is_hidden
from loopkit._nodes import (
    Component,
    Expression,
    Record,
    Reduction,
    TaggedVariable,
    TypeCast,
    TypeName,
    segments_of,
)

LONGEST = 200
"""Characters that a name may have."""
MOST = 10**6
"""As many names may begin alike."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAG = re.compile(r"[A-Za-z0-9_.$-]+")
_NOTE = re.compile(r"[ -\[\]-~]*")


def is_name(name: object) -> bool:
    """Whether ``name`` is an ASCII identifier."""
    return isinstance(name, str) and len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def check_name(name: object, what: str = "a name") -> str:
    """``name``, if an iname, an array, a size or a rule may be called so."""
    word = check_identifier(name, what)
    meaning = _words.meaning(word)
    if meaning:
        raise InvalidArgumentError(
            f"'{word}' cannot be {what}: it is {meaning}", instead="another name is free"
        )
    return word


def check_kernel_name(name: object) -> str:
    """``name``, if a kernel may be called so: its function shares a scope with C's library."""
    return _check_global(name, "the name of a kernel", "_kernel")


def check_function_name(name: object) -> str:
    """``name``, if a user's function may be called so: it, too, shares that scope."""
    return _check_global(name, "the name of a function", "_of_mine")


def _check_global(name: object, what: str, ending: str) -> str:
    word = check_name(name, what)
    if word in _words.LIBRARY or word == "_":
        why = "a letter must be in it" if word == "_" else "CUDA's headers declare it"
        raise InvalidArgumentError(
            f"'{word}' cannot be {what}: {why}", instead=f"for example '{word.strip('_')}{ending}'"
        )
    return word


def check_identifier(name: object, what: str) -> str:
    """``name``, if it is an ASCII identifier: what ids of statements and operations are."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{what} is text, not {shown(name)}")
    if not is_name(name):
        long = len(name) > LONGEST
        length = f": it has {len(name)} characters" if long else ""
        raise InvalidArgumentError(
            f"{shown(name)} cannot be {what}{length}",
            instead=f"at most {LONGEST} are possible"
            if long
            else "it is made of the letters a to z, digits and '_', and begins with no digit",
        )
    return str(name)


def check_declared(names: object, what: str) -> str:
    """What a declaration declares: a name, or several with commas between, none of them twice."""
    if not isinstance(names, str) or "," not in names:
        return check_name(names, what)
    several = [
        check_name(name.strip(), what) for name in names.strip().removesuffix(",").split(",")
    ]
    for place, name in enumerate(several):
        if name in several[:place]:
            raise InvalidArgumentError(f"{shown(names)} declares '{name}' twice")
    return ", ".join(several)


def check_component(name: object) -> str:
    """``name``, if a component of a record may be called so: C names types by them."""
    word = check_name(name, "a component")
    if "_" in word:
        raise InvalidArgumentError(
            f"{shown(word)} cannot be a component: it is made of letters and digits alone"
        )
    return word


def check_names(names: object, what: str) -> None:
    """Every one of several names, which stand in a tuple or a frozenset."""
    for name in _items(names, what):
        check_name(name, what)


def check_inside(name: object, what: str) -> None:
    """A name inside of a value: from outside, or one that loopkit made up for a while.

    What loopkit makes up is no name from outside (:mod:`loopkit._hidden`), and is as harmless.
    """
    if not _is_made_up(name):
        check_name(name, what)


def _is_made_up(name: object) -> bool:
    return isinstance(name, str) and is_hidden(name) and name.isidentifier()


def candidates(base: str) -> Iterator[str]:
    """``base``, ``base_0``, ``base_1``, ...: names that C takes, for what loopkit adds to a kernel.

    The one place that makes such names; whoever asks takes the first that nobody else has.
    """
    if base.startswith("__"):
        base = "_" + base.lstrip("_")
    room = LONGEST - len(f"own__{MOST}")
    if len(base) > room:  # what tells names apart stands at their ends
        base = base[: room // 2] + base[-(room - room // 2) :]
    stem = "" if base == "_" else base  # two at the beginning are not for anybody
    if _words.meaning(f"{stem}_0"):  # the beginning is reserved, as that of lk_0 is
        stem = f"own_{stem}"
    numbered = (f"{stem}_{n}" for n in range(MOST))
    for name in itertools.chain([base, stem or base], numbered):
        if not _words.meaning(name):
            yield name


def check_tags(tags: object, what: str = "a tag") -> None:
    """Tags of a statement: letters, digits, and ``. $ - _``."""
    for tag in _items(tags, what):
        if not isinstance(tag, str) or len(tag) > LONGEST or not _TAG.fullmatch(tag):
            raise InvalidArgumentError(
                f"{shown(tag)} cannot be {what}",
                instead="it is made of the letters a to z, digits and '_', '.', '$', '-'",
            )


def check_note(note: object, what: str) -> None:
    """Text that may stand in a comment of one line, or None."""
    if note is None or (isinstance(note, str) and _NOTE.fullmatch(note)):
        return
    raise InvalidArgumentError(
        f"{shown(note)} cannot be {what}", instead="it is one line of plain ASCII without '\\'"
    )


def check_flag(value: object, what: str) -> None:
    """A choice of two: True or False, and no other value that Python takes for one of them."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{what} is True or False, not {shown(value)}")


def _items(names: object, what: str) -> Iterable[object]:
    if not isinstance(names, (tuple, frozenset)):
        raise InvalidArgumentError(f"names stand in a tuple or a frozenset, not in {shown(names)}")
    return names


_NODES = (
    *(prim.Variable, prim.Subscript, prim.Call, prim.Sum, prim.Product, prim.Quotient),
    *(prim.FloorDiv, prim.Remainder, prim.Power, prim.Comparison, prim.LogicalAnd),
    *(prim.LogicalOr, prim.LogicalNot, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor),
    *(prim.BitwiseNot, prim.LeftShift, prim.RightShift, prim.If, prim.Min, prim.Max),
    *(Reduction, TypeCast, TypeName, Record, Component),
)
_CONSTANTS = (int, float, complex, bool, np.number, np.bool_)
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def check_expression(expr: object, what: str = "an expression") -> Expression:
    """``expr``, if it is made of the nodes that :mod:`loopkit._nodes` lists, and of good names."""
    if isinstance(expr, _CONSTANTS):
        return expr
    if not isinstance(expr, prim.ExpressionNode):
        raise InvalidArgumentError(f"{shown(expr)} cannot be {what}")
    try:
        _check_tree(expr)
    except (TypeError, AttributeError):  # what it holds has no hash, or is no part of a tree
        raise InvalidArgumentError(f"{what} holds what no expression can") from None
    except RecursionError:
        raise InvalidArgumentError(f"{what} is nested too deeply") from None
    return expr


@lru_cache(maxsize=1 << 14)
def _check_tree(expr: Expression) -> None:
    waiting: list[Any] = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _CONSTANTS):
            continue
        if isinstance(node, tuple):
            waiting += node
            continue
        if not isinstance(node, _NODES):
            raise InvalidArgumentError(f"{shown(node)} cannot be part of an expression")
        if isinstance(node, prim.Variable):
            if not _is_made_up(node.name):
                check_identifier(node.name, "a name in an expression")
            if isinstance(node, TaggedVariable):
                check_identifier(node.tag, "the tag of a use")
            continue
        if isinstance(node, prim.Comparison) and node.operator not in _COMPARISONS:
            raise InvalidArgumentError(f"{shown(node.operator)} compares nothing")
        if isinstance(node, TypeName):
            continue
        if isinstance(node, Reduction):
            check_identifier(segments_of(node.operation) or node.operation, "a reduction")
            for iname in _items(node.inames, "an iname"):
                check_inside(iname, "an iname")
            waiting.append(node.operand)
        elif isinstance(node, Record):
            for name in _items(node.names, "a component"):
                check_component(name)
            waiting += node.parts
        elif isinstance(node, Component):
            check_component(node.name)
            waiting.append(node.operand)
        elif isinstance(node, TypeCast):
            waiting.append(node.operand)
        elif isinstance(node, (prim.Subscript, prim.Call)):
            head = node.aggregate if isinstance(node, prim.Subscript) else node.function
            if not isinstance(head, prim.Variable):
                raise InvalidArgumentError("only a name is called, or has subscripts")
            if isinstance(node, prim.Call) and (whole := segments_of(head.name)) is not None:
                head = prim.Variable(whole)  # a segmented reduction of a text
            waiting += [head, node.index if isinstance(node, prim.Subscript) else node.parameters]
        else:
            waiting += [getattr(node, field) for field in _fields(cast(Hashable, type(node)))]


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, kind)) if f.name != "operator")
