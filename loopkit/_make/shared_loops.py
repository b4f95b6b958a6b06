"""Reductions over loops that are in the text already and that compute the reduced values.

In ``sum(j, p)``, ``p`` may be a temporary that is assigned inside of the loop over ``j``.  Then the
terms are the values of ``p`` in the iterations of that loop: the accumulator starts in front of the
loop, and is updated at the end of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from loopkit._errors import InvalidArgumentError
from loopkit._expression import Mapped, mapped, variable_names
from loopkit._kernel import Statement
from loopkit._make.making import Draft, Held
from loopkit._nodes import Expression, Reduction
from loopkit._same import key_of
from loopkit._tree import Entry, Path

Part = tuple[Statement, Path]
"""A statement with the reduction loops around it, inside the loops of its user."""


def read_outside(
    draft: Draft,
    parts: Iterable[Expression],
    iname: str,
    loaded: Callable[[frozenset[str]], frozenset[str]],
) -> frozenset[str]:
    """The names that the expressions of a draft read outside of reductions over an iname.

    Reads of rules that are used there count, too; ``loaded`` gives the names that bounds of inames
    read.
    """
    parts = tuple(parts)
    in_bounds: set[str] = set()

    def reduction(expr: Reduction, inside: Mapped) -> Expression:
        if iname in expr.inames:
            return 0
        in_bounds.update(loaded(frozenset(expr.inames)))
        return Reduction(expr.operation, expr.inames, inside(expr.operand), expr.dtype)

    found = frozenset().union(*(variable_names(mapped(p, reduction=reduction)) for p in parts))
    of_rules = draft.names.difference(*map(variable_names, parts))
    return found.union(of_rules, in_bounds, loaded(draft.inames))


def _loops_of(held: Held, draft: Draft, path: Path, paths: Mapping[str, Path]) -> Path | None:
    """The loops, directly inside of ``path``, in which a temporary is written.

    None where there are none, or several, or where not every iteration writes it.
    """
    found: Path | None = None
    for writer in held.writers:
        around = paths.get(writer.id, ())
        loops = around[len(path) : len(path) + len(held.inames)]
        if around[: len(path)] != path or _inames(loops) != held.inames:
            return None
        if found not in (None, loops):
            return None
        found = loops
    own = set(map(key_of, draft.predicates))
    always = any(own.issuperset(map(key_of, w.predicates)) for w in held.writers)
    return found if always else None


def with_parts(
    entries: Sequence[Entry],
    statements: Mapping[str, Statement],
    draft: Draft,
    path: Path,
    parts: Sequence[Part],
) -> list[Entry]:
    """All entries, with those of the ``parts`` of a draft that is inside of ``path``.

    Raises :class:`InvalidArgumentError` where a part must be in a loop of the ``entries``, and
    cannot be moved there, because statements in between change what it reads.
    """
    if not draft.held:
        return [*entries, *((s.id, (*path, *inner)) for s, inner in parts)]
    paths = {leaf: at for leaf, at in entries if isinstance(leaf, str)}
    within: dict[str, Path] = {}
    groups: dict[frozenset[str], Path] = {}
    for held in draft.held:
        loops = _loops_of(held, draft, path, paths)
        if loops is None or groups.setdefault(held.inames, (*path, *loops)) != (*path, *loops):
            fail_at_held(draft, held)
        within[held.name] = (*path, *loops)
    first = min(_first_inside(entries, place[: len(path) + 1]) for place in within.values())
    places = _places(parts, groups)
    if None in places.values() or _is_changed(entries[first:], statements, parts, places, within):
        fail_at_held(draft, draft.held[0])
    result = list(entries)
    for statement, inner in parts:
        place = places.get(statement.written)
        if place is None:
            continue
        if _inames(inner).isdisjoint(_inames(place[len(path) :])):  # it starts the accumulator
            at = _first_inside(result, place[: len(path) + 1])
            result.insert(at, (statement.id, (*path, *inner)))
        else:
            own = tuple(loop for loop in inner if loop[0] not in _inames(place))
            at = _last_inside(result, place) + 1
            result.insert(at, (statement.id, (*place, *own)))
    rest = [(s.id, (*path, *inner)) for s, inner in parts if s.written not in places]
    return [*result, *rest]


def _places(parts: Sequence[Part], groups: Mapping[frozenset[str], Path]) -> dict[str, Path | None]:
    """The loops of the text in which accumulators are updated, None for those that are not there.

    ``groups`` are such loops by their inames; accumulators updated elsewhere are left out.
    """
    shared = frozenset().union(*groups)
    found: dict[str, Path | None] = {}
    for statement, inner in parts:
        if group := _inames(inner) & shared:
            place = groups.get(group)
            found[statement.written] = (
                place if found.get(statement.written, place) == place else None
            )
    return found


def _is_changed(
    entries: Iterable[Entry],
    statements: Mapping[str, Statement],
    parts: Sequence[Part],
    places: Collection[str],
    within: Mapping[str, Path],
) -> bool:
    """Whether a name that the updates read is also written outside of the loop that assigns it.

    The end of a launch counts as a write of everything.
    """
    read = frozenset().union(*(s.names for s, _ in parts if s.written in places))
    for leaf, at in entries:
        if not isinstance(leaf, str):
            return True
        name = statements[leaf].written
        if name in read and (name not in within or at[: len(within[name])] != within[name]):
            return True
    return False


def _inames(path: Path) -> frozenset[str]:
    return frozenset(iname for iname, _ in path)


def _first_inside(entries: Sequence[Entry], path: Path) -> int:
    return next(n for n, (_, at) in enumerate(entries) if at[: len(path)] == path)


def _last_inside(entries: Sequence[Entry], path: Path) -> int:
    return next(n for n in reversed(range(len(entries))) if entries[n][1][: len(path)] == path)


def fail_at_held(draft: Draft, held: Held) -> NoReturn:
    """Report a reduction over an iname that reads a temporary which is written inside that loop."""
    name, iname = held.name, min(held.inames)
    raise InvalidArgumentError(
        f"statement '{draft.id}' reduces over '{iname}', but reads '{name}', which has "
        f"its value only inside the loop over '{iname}'",
        asked=draft.item.position.caret(),
        instead="end that loop in front of this statement, with nothing between that changes "
        f"what it reads, write the value of '{name}' inside the reduction, as a substitution rule "
        f"if need be, or store it per '{iname}': {name}[{iname}] = ...",
    )
