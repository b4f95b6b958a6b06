"""A statement must not write one cell from several threads at once."""

from __future__ import annotations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._errors import Instance, RaceError, Witness
from loopkit._kernel import Kernel, Statement
from loopkit.codegen.barriers import Access, Conflicts


def check_writes(conflicts: Conflicts) -> None:
    """Refuse a statement whose instances on different threads write the same cell unordered.

    Only instances of one statement in the same iteration of its loops are
    looked at: no barrier can stand between them.  Subscripts that are not
    affine are trusted.
    """
    for statement in conflicts.kernel.statements:
        for access in conflicts.accesses[statement.id]:
            if access.is_write and statement.operation is None:
                _check(conflicts, statement, access)


def _check(conflicts: Conflicts, statement: Statement, access: Access) -> None:
    kernel, hardware = conflicts.kernel, conflicts.hardware
    temporary = kernel.temporary_by_name.get(access.array)
    in_block = temporary is not None and temporary.address_space is AddressSpace.LOCAL
    one, one_indices = conflicts.side(access, "__1")
    two, two_indices = conflicts.side(access, "__2")
    for a, b in zip(one_indices, two_indices, strict=True):
        if not (_sets.is_affine(a) and _sets.is_affine(b)):
            return
    both = one & two & kernel.assumptions.set
    for iname, _ in kernel.paths[statement.id]:
        both = both & _sets.equality(f"{iname}__1", prim.Variable(f"{iname}__2"))
    if in_block:
        for axis in hardware.used_axes("g"):
            both = both & _sets.equality(f"_g{axis}__1", prim.Variable(f"_g{axis}__2"))
    for a, b in zip(one_indices, two_indices, strict=True):
        both = both & _sets.affine_equality(a, b)
    for kind in "l" if in_block else "gl":
        for axis in hardware.used_axes(kind):
            before = prim.Comparison(
                prim.Variable(f"_{kind}{axis}__1"), "<", prim.Variable(f"_{kind}{axis}__2")
            )
            race = both & _sets.condition_set(before)
            if not race.is_empty():
                raise _race(kernel, statement, access, race, f"{kind}.{axis}")


def _race(
    kernel: Kernel, statement: Statement, access: Access, race: isl.Set, axis: str
) -> RaceError:
    values = _sets.sample(race)
    sides = [
        Instance(
            statement.id,
            {
                i: values[f"{i}__{side}"]
                for i in kernel.all_inames
                if i in statement.inames and f"{i}__{side}" in values
            },
        )
        for side in (1, 2)
    ]
    sizes = {n: values[n] for n in kernel.sizes if n in values}
    where = {**sides[0].inames, **sizes}
    cell = tuple(_sets.value_at(i, where) for i in access.indices)
    shown = f"{access.array}[{', '.join(map(str, cell))}]" if cell else access.array
    given = ", ".join(f"{n}={v}" for n, v in sizes.items())
    witness = Witness("race", access.array, cell, sides[0], sides[1], sizes)
    return RaceError(
        f"{sides[0]} and {sides[1]} both write {shown} on different threads (along {axis}) "
        f"in no order{f', for example when {given}' if given else ''}",
        witness=witness,
        instead=f"keep the iname that {axis} stands for sequential here, or give "
        f"'{access.array}' an axis for it",
    )
