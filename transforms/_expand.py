"""Accumulators that must hold many values at once, because a loop around them was cut in two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import TemporaryVariable
from loopkit._change import Change, InstanceMap
from loopkit._errors import IllegalTransformError
from loopkit._expression import replace_accesses, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import OTHER, variable
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._tree import common_prefix
from loopkit.transforms._loop_nests import extent


@dataclass(frozen=True)
class _Use:
    """A statement that touches a temporary, before and after the change."""

    statement: Statement
    old: str
    values: Mapping[str, Expression]

    def value(self, iname: str) -> Expression:
        """An old iname in terms of the new ones."""
        return self.values.get(iname, prim.Variable(iname))


def expand_accumulators(old: Kernel, change: Change) -> Change:
    """Give each temporary that needs it an axis per loop that its accesses no longer share.

    Two statements that touch a temporary inside one loop pass it on within an
    iteration.  If the change leaves them in different loops (or iterations), the
    temporary must hold one value per iteration.  Accumulators that loopkit made
    get an axis for that; for a temporary of the person's own this raises
    :class:`IllegalTransformError`, which names the call that makes it legal.
    """
    new = change.kernel
    maps = {m.new: m for m in change.instances}
    for temporary in new.temporaries:
        if temporary.name not in old.temporary_by_name:
            continue
        uses = _uses(old, new, temporary.name, maps)
        lost = _lost_inames(old, new, temporary, uses)
        lost = [i for i in lost if not _is_separated(new, temporary, uses, i)]
        if not lost:
            continue
        if temporary.accumulates is None:
            _refuse(old, new, temporary, uses, lost[0])
        new = _expanded(old, new, temporary, uses, lost)
    return replace(change, kernel=new)


def _uses(old: Kernel, new: Kernel, name: str, maps: Mapping[str, InstanceMap]) -> list[_Use]:
    statements = {s.id: s for s in (*new.writers.get(name, ()), *new.readers.get(name, ()))}
    result = []
    for id_, statement in statements.items():
        step = maps.get(id_, InstanceMap(id_, id_))
        if step.old in old.statement_by_id:
            result.append(_Use(statement, step.old, step.values))
    return result


def _pairs(name: str, uses: list[_Use]) -> Iterable[tuple[_Use, _Use]]:
    for writer in uses:
        if writer.statement.written == name:
            for other in uses:
                if other is not writer:
                    yield writer, other


def _lost_inames(
    old: Kernel, new: Kernel, temporary: TemporaryVariable, uses: list[_Use]
) -> list[str]:
    """Old inames whose loops two accesses shared and no longer share, outermost first."""
    lost: dict[str, int] = {}
    # Statements in the same loops, before and after, are alike.
    alike: dict[object, _Use] = {}
    for use in sorted(uses, key=lambda u: u.statement.written != temporary.name):
        paths = old.paths[use.old], new.paths[use.statement.id]
        alike.setdefault((*paths, frozenset(use.values.items())), use)
    for writer, other in _pairs(temporary.name, list(alike.values())):
        old_paths = old.paths[writer.old], old.paths[other.old]
        new_paths = new.paths[writer.statement.id], new.paths[other.statement.id]
        shared_before = [iname for iname, _ in common_prefix(old_paths)]
        shared_after = {iname for iname, _ in common_prefix(new_paths)}
        for depth, iname in enumerate(shared_before):
            if not _is_kept(new, iname, shared_after, writer, other):
                lost[iname] = min(depth, lost.get(iname, depth))
    return sorted(lost, key=lambda iname: (lost[iname], iname))


def _is_kept(new: Kernel, iname: str, shared: set[str], writer: _Use, other: _Use) -> bool:
    """Whether ``iname`` has one value where both statements run, without an order between."""
    axes: dict[str, Expression] = {}
    for use in (writer, other):
        for name in use.statement.inames:
            tag = new.iname_tags.get(name)
            if tag is not None and tag.is_parallel:
                axes[name] = prim.Variable(str(tag))
    first, second = (substitute(u.value(iname), axes) for u in (writer, other))
    loops = variable_names(first) & new.home_domain.keys()
    return bool(first == second) and loops <= shared


def _is_separated(new: Kernel, temporary: TemporaryVariable, uses: list[_Use], iname: str) -> bool:
    """Whether different values of ``iname`` use different cells already."""
    if not temporary.shape:
        return False
    for writer, other in _pairs(temporary.name, uses):
        marks = {i: variable(i, OTHER) for i in other.statement.inames}
        names = {i: v.name for i, v in marks.items()}
        here = new.statement_domain(writer.statement)
        there = _sets.rename(new.statement_domain(other.statement), names)
        clash = here & there & new.assumptions.set
        try:
            clash = clash & _sets.condition_set(
                prim.Comparison(writer.value(iname), "!=", substitute(other.value(iname), marks))
            )
            for mine in _indices(writer.statement, temporary.name):
                for its in _indices(other.statement, temporary.name):
                    cells = clash
                    for a, b in zip(mine, its, strict=True):
                        same = prim.Comparison(a, "==", substitute(b, marks))
                        cells = cells & _sets.condition_set(same)
                    if not cells.is_empty():
                        return False
        except _sets.NotAffineError:
            return False
    return True


def _indices(statement: Statement, name: str) -> list[tuple[Expression, ...]]:
    found = (statement.write, *statement.reads)
    return list(dict.fromkeys(i for n, i in found if n == name and i))


def _refuse(
    old: Kernel, new: Kernel, temporary: TemporaryVariable, uses: list[_Use], iname: str
) -> None:
    for writer, other in _pairs(temporary.name, uses):
        before = common_prefix([old.paths[writer.old], old.paths[other.old]])
        after = common_prefix([new.paths[writer.statement.id], new.paths[other.statement.id]])
        if iname in {i for i, _ in before} and not _is_kept(
            new, iname, {i for i, _ in after}, writer, other
        ):
            what = "uses" if other.statement.written != temporary.name else "writes"
            raise IllegalTransformError(
                f"temporary '{temporary.name}' would have to hold one value for each "
                f"'{iname}': statement '{writer.old}' writes it and statement '{other.old}' "
                f"{what} it, and they would no longer be in one loop over '{iname}'",
                instead=f"first give it an axis: "
                f'privatize_temporaries_with_inames("{iname}", "{temporary.name}")',
            )


def _expanded(
    old: Kernel, new: Kernel, temporary: TemporaryVariable, uses: list[_Use], lost: list[str]
) -> Kernel:
    axes: list[tuple[str, Expression, Expression]] = []
    for iname in lost:
        found = extent(old, iname)
        if found is None:
            raise IllegalTransformError(
                f"accumulator '{temporary.name}' would have to hold one value for each "
                f"'{iname}', and the number of these does not follow from the sizes"
            )
        axes.append((iname, *found))
    by_id = {use.statement.id: use for use in uses}
    name = temporary.name
    for rule in new.substitutions:
        if name in variable_names(rule.expression):
            raise IllegalTransformError(
                f"accumulator '{name}' would have to hold one value for each '{lost[0]}', and "
                f"substitution rule '{rule.name}' uses it without saying which",
                instead=f"write the rule out first: expand_subst() puts '{rule.name}' in place",
            )
    for use in uses:
        for iname in lost:
            if iname not in old.statement_by_id[use.old].inames:
                raise IllegalTransformError(
                    f"accumulator '{name}' would have to hold one value for each '{iname}', but "
                    f"statement '{use.old}' uses it outside of '{iname}'"
                )

    def rewrite(statement: Statement) -> Statement:
        use = by_id.get(statement.id)
        if use is None:
            return statement
        domain = new.statement_domain(statement)
        added = tuple(
            simplify(prim.Sum((use.value(i), prim.Product((-1, low)))), domain)
            for i, low, _ in axes
        )

        def access(found: str, indices: tuple[Expression, ...]) -> Expression | None:
            return (
                prim.Subscript(prim.Variable(name), (*indices, *added)) if found == name else None
            )

        return statement.map_expressions(lambda e: replace_accesses(e, access))

    shape = (*temporary.shape, *(length for _, _, length in axes))
    padding = (*temporary.padding, *(0 for _ in axes)) if temporary.padding else ()
    changed = replace(temporary, shape=shape, padding=padding, dim_tags=None)
    return new.with_(
        statements=tuple(rewrite(s) for s in new.statements),
        temporaries=tuple(changed if t.name == name else t for t in new.temporaries),
    )
