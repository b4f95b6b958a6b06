"""Loops written out, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._change import Change
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text
from loopkit._guarded import conjuncts
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._transform import transform
from loopkit._tree import Path
from loopkit.transforms._common import (
    check_is_loop,
    is_parallel,
    simplified,
    then,
    with_inames,
    with_statements,
)
from loopkit.transforms._loop_nests import extent, hull
from loopkit.transforms.slabs import Part, in_parts, inames_around

MOST = 1024


@transform
def unroll(kernel: Kernel, iname: kind.Name, *, unchecked: bool = False) -> Change:
    """Write a loop out: a copy of its statements for each iteration, and no loop.

    Before: for i in [0, 3): S(i)        After: S(0)  and then  S(1)  and then  S(2)

    A loop that is tagged ``unr`` stays one, which the generated code writes out; here the
    iterations become statements of their own, which further steps can tell apart.

    :arg iname: a loop whose values lie between two constants, at most 1,024 of them.
    :raises IllegalTransformError: where the values have no such bounds.
    """
    kernel.check_iname(iname)
    check_is_loop(kernel, iname)
    if not any(iname in s.inames for s in kernel.statements):
        raise IllegalTransformError(f"no statement is inside '{iname}'")
    values = _values(kernel, iname)
    parts = [Part(f"_{n}" if n else "", _sets.equality(iname, v)) for n, v in enumerate(values)]
    axes = [i for i in inames_around(kernel, iname) if is_parallel(kernel, i)]
    change = in_parts(kernel, iname, parts, axes)
    plain = prim.Variable(iname)
    old = {s.id for s in kernel.statements if iname in s.inames}
    copies = {m.values.get(iname, plain).name for m in change.instances if m.old in old}
    constants = {i: change.kernel.range_around(i)[0] for i in sorted(copies)}
    return then(kernel, change, _without(change.kernel, constants))


def _values(kernel: Kernel, iname: str) -> list[int]:
    """The values that the loop takes."""
    low, high = kernel.range_around(iname)
    if low is None or high is None:
        found = extent(kernel, iname)
        shown = f" but {to_text(found[1])}" if found else ""
        raise IllegalTransformError(
            f"loop '{iname}' has no constant number of iterations{shown}",
            instead=f"a part of it has: split_iname('{iname}', 4).unroll('{iname}_inner')",
        )
    if high - low >= MOST:
        raise IllegalTransformError(
            f"loop '{iname}' has {high - low + 1:,} iterations",
            instead=f"at most {MOST:,} are written out",
        )
    taken = hull(kernel, iname)
    return [v for v in range(low, high + 1) if not (taken & _sets.equality(iname, v)).is_empty()]


def _without(kernel: Kernel, values: Mapping[str, int | None]) -> Change:
    """A kernel without loops that have one iteration, the inames of which have ``values``."""

    def path(id_: str, old: Path) -> Path:
        return tuple(key for key in old if key[0] not in values)

    fixed = _sets.universe()
    for iname, value in values.items():
        fixed = fixed & _sets.equality(iname, value)
    domains = []
    for domain in kernel.domains:
        rest = tuple(i for i in domain.inames if i not in values)
        whole = _sets.project_out(domain.set & fixed, values).coalesce()
        if rest:
            domains.append(Domain(rest, whole))
    ids = {s.id for s in kernel.statements if s.inames & values.keys()}
    tags = tuple((i, t) for i, t in kernel.tags if i not in values)
    slabs = tuple(row for row in kernel.slabs if row[0] not in values)
    changes = {"domains": tuple(domains), "tags": tags, "slabs": slabs}
    change = with_inames(kernel, ids, values, (), path, **changes)
    guarded = {id_: _guarded(kernel, change.kernel, id_, values, fixed) for id_ in ids}
    new = with_statements(change.kernel, guarded)
    return Change(simplified(new, ids), change.instances)


def _guarded(old: Kernel, new: Kernel, id_: str, gone: Iterable[str], fixed: isl.Set) -> Statement:
    """A statement under the conditions that were those of its loops, as far as it lost them."""
    statement = new.statement_by_id[id_]
    mine = old.statement_by_id[id_].inames
    wanted = _sets.project_out(old.domain_of(mine) & fixed, gone)
    known = new.domain_of(statement.inames) & new.assumptions.set
    condition = _sets.conditions(wanted.gist(known))
    if condition is True:
        return statement
    return replace(statement, predicates=conjuncts(condition) + statement.predicates)
