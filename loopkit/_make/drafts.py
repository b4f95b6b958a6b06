"""Drafts of statements, with ids and conditions, from the items of a text.

A ``break`` becomes a flag, which is set in front of a loop, cleared by each ``break``, and part of
the condition of every statement in the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._device_functions import OwnFunction, own_calls
from loopkit._errors import ParseError, UnknownNameError
from loopkit._expression import accesses, to_text, unbound_names, variable_names
from loopkit._guarded import BREAK, conjuncts
from loopkit._make import free_names
from loopkit._make.free_names import fresh_names
from loopkit._make.making import Draft, Making, Nop
from loopkit._nodes import Expression, Record, segments_of
from loopkit._rules import reductions_in
from loopkit._same import Key, key_of
from loopkit._syntax.items import (
    RawAssignment,
    RawBreak,
    RawItem,
    RawNop,
    RawSubstitution,
    position_of_name,
)
from loopkit._syntax.reduction_calls import resolve_reductions


class Drafting:
    """Turns raw items into drafts, in the order of the text."""

    def __init__(self, making: Making) -> None:
        self.inames = frozenset(making.domains.inames)
        self.book = making.book
        self.operations = making.book.components
        self.taken = making.names
        self.ids = making.ids

    def drafts(self, items: Iterable[Any]) -> list[Draft | Nop]:
        """A draft for each instruction, with one more in front of some for conditions."""
        items = [i for i in items if not isinstance(i, RawSubstitution)]
        ids = self._ids(items)
        blocks = self._changing_blocks(items)
        found: list[Draft | Nop] = []
        conditions: dict[tuple[int, Key], Expression] = {}
        for item, id_ in zip(items, ids, strict=True):
            if isinstance(item, RawNop):
                found.append(Nop(id_, item))
                continue
            predicates: list[Expression] = []
            for block, predicate in zip(item.predicate_blocks, item.predicates, strict=True):
                if (
                    block in blocks
                    or self._reduces(item, predicate)
                    or (item.results and not self._read(predicate).isdisjoint(item.written))
                ):
                    predicate = self._decided_before(
                        item, block, predicate, predicates, conditions, found
                    )
                predicates += conjuncts(predicate)
            guards = (*(flag for _, flag in item.flags), *predicates)
            found.append(self._resolve(Draft(id_, item, item.lhs, item.rhs, guards, item.made_by)))
        return found

    def _ids(self, items: list[Any]) -> list[str]:
        for item in items:
            if item.id is not None:
                if item.id in self.ids:
                    raise ParseError(
                        f"there are two instructions '{item.id}'",
                        position=position_of_name(item, item.id),
                        instead="every instruction needs a unique id",
                    )
                self.ids.add(item.id)
        sources: dict[str, Any] = {}
        ids = []
        for item in items:
            if item.id is not None:
                ids.append(item.id)
                continue
            prefix = item.id_prefix or (item.word if isinstance(item, RawNop) else "insn")
            if prefix not in sources:
                sources[prefix] = free_names.fresh_names(prefix, self.ids)
            ids.append(next(sources[prefix]))
        return ids

    def _changing_blocks(self, items: list[Any]) -> set[int]:
        """The ``if`` blocks whose bodies write names that their conditions read."""
        reads: dict[int, set[str]] = {}
        writes: dict[int, set[str]] = {}
        for item in items:
            if isinstance(item, RawNop):
                continue
            for block, predicate in zip(item.predicate_blocks, item.predicates, strict=True):
                if block:
                    reads.setdefault(block, set()).update(self._read(predicate))
                    writes.setdefault(block, set()).update(item.written)
        return {block for block, names in reads.items() if names & writes[block]}

    def _read(self, predicate: Expression) -> set[str]:
        """The names that a condition reads."""
        return {name for name, _ in accesses(self.book.expanded(predicate))}

    def _reduces(self, item: RawAssignment, predicate: Expression) -> bool:
        """Whether a condition holds a reduction."""
        if not free_names.could_reduce(self.book.without_reductions(predicate), self.operations):
            return False
        return bool(self._resolve(Draft("", item, item.lhs, predicate)).reductions)

    def _decided_before(
        self,
        item: RawAssignment,
        block: int,
        predicate: Expression,
        outer: Sequence[Expression],
        conditions: dict[tuple[int, Key], Expression],
        found: list[Draft | Nop],
    ) -> Expression:
        """A temporary with the value of ``predicate``, computed in front of the block.

        It is computed only where the ``outer`` conditions are true, as in the text: otherwise its
        reads might be invalid.
        """
        negated = isinstance(predicate, prim.LogicalNot)
        condition = predicate.child if negated else predicate
        variable = conditions.get((block, key_of(condition))) if block else None
        if variable is None:
            name = next(free_names.fresh_names("cond", self.taken))
            variable = prim.Variable(name)
            conditions[block, key_of(condition)] = variable
            id_ = next(free_names.fresh_names(f"{name}_set", self.ids))
            # Blocks are numbered as they open: the smaller numbers are around this one.
            scopes = tuple(s for s in item.scopes if s[0] < block or not block)
            flags = tuple(flag for number, flag in item.flags if number < block or not block)
            before = RawAssignment(
                lhs=variable,
                rhs=condition,
                declared="auto",
                scopes=scopes,
                text=item.text,
                position=item.position,
            )
            guards = (*flags, *outer)
            found.append(
                self._resolve(Draft(id_, before, variable, condition, guards, "condition"))
            )
        return prim.LogicalNot(variable) if negated else variable

    def _resolve(self, draft: Draft) -> Draft:
        """Find the reductions of a draft and the names that it uses."""
        book, operations = self.book, self.operations
        parts = [draft.lhs, draft.rhs, *draft.predicates]
        raw = [book.without_reductions(p) for p in parts] if book.rules else parts
        if any(free_names.could_reduce(p, operations) for p in raw):
            # The inames that the statement is inside of, whatever its reductions are.
            uses = [free_names.names_outside_reductions(book.expanded(p), operations) for p in raw]
            outside = draft.given_inames.union(*uses)
            parts = [book.with_reductions(p, outside) for p in parts] if book.reducing else raw

            def is_iname(name: str) -> bool:
                return name in self.inames and name not in outside

            parts = [
                resolve_reductions(p, is_iname, reductions=operations, position=draft.item.position)
                for p in parts
            ]
            draft.reductions = tuple(r for p in parts for r in reductions_in(p))
        else:
            parts = raw
        draft.whole = book.reduction_of(parts[1])
        self._check_results(draft, parts)
        draft.lhs, draft.rhs, *predicates = parts
        draft.predicates = tuple(predicates)
        names = unbound_names if draft.reductions else variable_names
        draft.names = frozenset().union(*(names(book.expanded(p)) for p in parts))
        return draft

    def _check_results(self, draft: Draft, parts: list[Expression]) -> None:
        """What has several results is a right side of its own, with a target for each."""
        count = draft.item.count if isinstance(draft.lhs, Record) else 1
        rhs, whole = parts[1], draft.whole
        own = _own_results(rhs)
        components = self.operations[whole.operation] if whole is not None else own
        if count > 1 and len(components) != count:
            given = whole.operation if whole is not None else to_text(draft.rhs)
            raise ParseError(
                f"{count} results are assigned, but '{given}' has {len(components) or 1}",
                position=draft.item.position,
                instead="reductions with several results give them: v, k = argmax(k, x[k], k)",
            )
        for part in parts:
            for call in own_calls(self.book.expanded(part)):
                if call.function.results and (call is not rhs or count == 1):
                    raise _is_no_part(draft, call.function.name, call.function.results)
        for reduction in draft.reductions:
            components = self.operations[reduction.operation]
            if segments_of(reduction.operation) and count == 1:
                continue
            if components and (reduction is not whole or count == 1):
                raise _is_no_part(draft, reduction.operation, components)


def _is_no_part(draft: Draft, name: str, results: Collection[str]) -> ParseError:
    """The error of what has several results, and stands within an expression."""
    return ParseError(
        f"'{name}' has {len(results)} results, and is no part of an expression",
        position=draft.item.position,
        instead="call it in a separate instruction that names them; '<>_' drops one: <> "
        f"{', <> '.join(results)} = {name}(...)",
    )


def _own_results(expr: Expression) -> tuple[str, ...]:
    """The results of a call of a user's function, if it has several."""
    if isinstance(expr, prim.Call) and isinstance(expr.function, OwnFunction):
        return expr.function.results
    return ()


def find_drafts(making: Making) -> None:
    """A draft for each instruction; ``for`` blocks and ``inames=`` name inames that exist."""
    making.ids = set()
    making.drafts = Drafting(making).drafts(with_flags(making.items, making.names))
    inames = making.domains.inames
    for draft in making.drafts:
        for name in (*draft.scoped, *sorted(draft.item.inames or ())):
            if name not in inames:
                raise UnknownNameError("iname", name, inames, position=draft.position_of(name))


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
                instead="the call would have to read data on the device: end the launch outside "
                "of the loop, or leave the loop by a condition on sizes",
            )
        own: tuple[tuple[int, prim.Variable], ...] = ()
        for scope in scopes:
            if scope not in started:
                started.add(scope)
                found.append(_start(left[scope], flags[scope], own))
            own = (*own, (scope[0], flags[scope]))
        item = replace(item, flags=own)
        if isinstance(item, RawBreak):
            fields = {name: getattr(item, name) for name in RawBreak.__dataclass_fields__}
            if item.id is None and item.id_prefix is None:
                fields["id_prefix"] = "stop"
            item = _assigned(flags[item.scopes[-1]], False, **fields)
        found.append(item)
    return found


def _start(
    item: RawBreak, flag: prim.Variable, outer: tuple[tuple[int, prim.Variable], ...]
) -> RawAssignment:
    """The item that sets a flag, in front of the loop."""
    number, inames = item.scopes[-1]
    around = ((number, inames[:-1]),) if len(inames) > 1 else ()
    scopes, text, position = (*item.scopes[:-1], *around), item.text, item.position
    return _assigned(
        flag, True, id_prefix="start", scopes=scopes, flags=outer, text=text, position=position
    )


def _assigned(flag: prim.Variable, value: bool, **options: Any) -> RawAssignment:
    return RawAssignment(lhs=flag, rhs=value, declared=np.dtype(bool), made_by=BREAK, **options)
