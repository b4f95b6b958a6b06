"""From ``break`` to a flag: set in front of a loop, cleared by each ``break``, asked by all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import ParseError
from loopkit._guarded import BREAK
from loopkit._make.free_names import fresh_names
from loopkit._syntax.items import (
    RawAssignment,
    RawBreak,
    RawItem,
    RawNop,
    RawStatement,
    RawSubstitution,
)

Scope = tuple[int, tuple[str, ...]]


def with_flags(items: Sequence[RawItem], taken: set[str]) -> list[RawItem]:
    """Items without ``break``; ``taken`` are names that no flag may have, and gets theirs.

    A ``break`` ends the innermost loop around it.  Raises :class:`ParseError` where a launch
    would end in such a loop.
    """
    left = {item.scopes[-1]: item for item in items if isinstance(item, RawBreak)}
    if not left:
        return list(items)
    flags = {
        scope: prim.Variable(next(fresh_names(f"{scope[1][-1]}_goes_on", taken))) for scope in left
    }
    found: list[RawItem] = []
    started: set[Scope] = set()
    for item in items:
        if isinstance(item, RawSubstitution):
            found.append(item)
            continue
        scopes = [scope for scope in item.scopes if scope in flags]
        if scopes and isinstance(item, RawNop) and item.word == "gbarrier":
            raise ParseError(
                f"a launch cannot end in the loop over '{scopes[0][1][-1]}', which data end",
                position=item.position,
                instead="the call would have to read what lies on the device: end the launch "
                "outside of the loop, or leave the loop by a condition on sizes",
            )
        own: tuple[tuple[int, prim.Variable], ...] = ()
        for scope in scopes:
            if scope not in started:
                started.add(scope)
                found.append(_start(left[scope], flags[scope], own))
            own = (*own, (scope[0], flags[scope]))
        item = replace(item, flags=own)
        if isinstance(item, RawBreak):
            item = _assigned(item, flags[item.scopes[-1]], False)
        found.append(item)
    return found


def _start(
    item: RawBreak, flag: prim.Variable, outer: tuple[tuple[int, prim.Variable], ...]
) -> RawAssignment:
    """What sets a flag, in front of the loop."""
    (number, inames) = item.scopes[-1]
    around = ((number, inames[:-1]),) if len(inames) > 1 else ()
    bare = RawBreak(
        id_prefix="start",
        scopes=(*item.scopes[:-1], *around),
        flags=outer,
        text=item.text,
        position=item.position,
    )
    return _assigned(bare, flag, True)


def _assigned(item: RawBreak, flag: prim.Variable, value: bool) -> RawAssignment:
    fields = {name: getattr(item, name) for name in _FIELDS}
    if item.id is None and item.id_prefix is None:
        fields["id_prefix"] = "stop"
    return RawAssignment(lhs=flag, rhs=value, declared=np.dtype(bool), made_by=BREAK, **fields)


_FIELDS = tuple(RawStatement.__dataclass_fields__)
