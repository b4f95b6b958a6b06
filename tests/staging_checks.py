"""What must hold of any staged copy, decided with isl on the kernels before and after."""

from __future__ import annotations

import islpy as isl
from seams import accesses
from seams import sets as _sets

from loopkit import Kernel, Statement


def cells_of(kernel: Kernel, statement: Statement, indices, keep) -> isl.Set:
    """The cells that a statement touches, over ``cell_0``, ... and the names in ``keep``."""
    domain = kernel.statement_domain(statement) & kernel.assumptions.set
    for predicate in statement.predicates:
        domain = domain & _sets.condition_set(predicate)
    names = [f"cell_{i}" for i in range(len(indices))]
    for name, index in zip(names, indices, strict=True):
        domain = domain & _sets.equality(name, index)
    return _sets.project_onto(domain, {*names, *keep, *kernel.sizes})


def reads(statement: Statement, name: str):
    return [i for n, i in accesses(statement.rhs) if n == name]


def check_fetch(before: Kernel, after: Kernel, fetch_id: str, name: str) -> None:
    """The fetch covers what was read, stays in bounds and fills the copy once per cell."""
    fetch = after.statement_by_id[fetch_id]
    place = fetch.inames & frozenset(before.all_inames)
    (indices,) = reads(fetch, name)
    fetched = cells_of(after, fetch, indices, place)
    copy = after.temporary_by_name[fetch.written]
    for old in before.statements:
        new = after.statement_by_id[old.id]
        if any(n == copy.name for n, _ in new.reads):
            for read in set(reads(old, name)) - set(reads(new, name)):
                assert cells_of(before, old, read, place).is_subset(fetched), (old.id, read)
    for axis, extent in enumerate(after.array(name).shape):
        inside = _sets.pw_affine(_sets.prim.Variable(f"cell_{axis}")).nonneg_set()
        end = _sets.pw_affine(extent)
        inside = inside & _sets.pw_affine(_sets.prim.Variable(f"cell_{axis}")).lt_set(end)
        assert fetched.is_subset(inside), f"axis {axis} of {name}"
    check_accesses_of_copy(after, copy.name)


def check_accesses_of_copy(kernel: Kernel, name: str) -> None:
    """Every access of a temporary lies in its shape."""
    shape = kernel.temporary_by_name[name].shape
    for statement in kernel.statements:
        domain = kernel.statement_domain(statement) & kernel.assumptions.set
        for predicate in statement.predicates:
            domain = domain & _sets.condition_set(predicate)
        for found, indices in (statement.write, *statement.reads):
            if found != name:
                continue
            assert len(indices) == len(shape)
            for index, extent in zip(indices, shape, strict=True):
                low, high = _sets.minimum_value(domain, index), _sets.maximum_value(domain, index)
                assert low is not None and low >= 0, (statement.id, index)
                assert high is not None and high < extent, (statement.id, index)


def instances(kernel: Kernel, statement_id: str, **values: int) -> int:
    """How many instances a statement has, for given sizes and outer inames."""
    statement = kernel.statement_by_id[statement_id]
    domain = kernel.statement_domain(statement)
    for predicate in statement.predicates:
        domain = domain & _sets.condition_set(predicate)
    for name, value in values.items():
        domain = domain & _sets.equality(name, value)
    free = [n for n in _sets.names_of(domain) if n not in values]
    domain = _sets.project_out(domain, list(values))
    lifted = isl.Set.from_params(domain)
    for name in free:
        position = lifted.find_dim_by_name(_sets.PARAM, name)
        lifted = lifted.move_dims(
            isl.dim_type.set, lifted.dim(isl.dim_type.set), _sets.PARAM, position, 1
        )
    return int(lifted.count_val().to_python())
