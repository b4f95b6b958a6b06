"""Sums that are written out: ``s = s + e`` of whole numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._check.value_types import ValueTypes
from loopkit._expression import variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, TypeCast, subtrahend
from loopkit._poly.model import Model
from loopkit._promotion import INTEGERS
from loopkit._same import same


def as_updates(kernel: Kernel) -> Kernel:
    """A kernel in which ``s = s + e`` of temporaries of whole numbers is an update of a sum."""
    types = ValueTypes(Model(kernel))

    def changed(statement: Statement) -> Statement:
        name, rhs = statement.written, statement.rhs
        is_plain = statement.operation is None and statement.kind == "user"
        if not is_plain or name not in kernel.temporary_by_name or not isinstance(rhs, prim.Sum):
            return statement
        dtype = types.array(name)
        own = [n for n, child in enumerate(rhs.children) if same(child, statement.lhs)]
        rest = [c for n, c in enumerate(rhs.children) if own[:1] != [n]]
        is_sum = len(own) == 1 and not any(name in variable_names(c) for c in rest)
        if dtype not in INTEGERS or not is_sum or types.of(rhs) not in INTEGERS:
            return statement
        value = prim.Sum((0, *(_in_bits(types, term, types.of(rhs)) for term in rest)))
        return replace(statement, rhs=value, operation="sum", kind="update")

    statements = tuple(map(changed, kernel.statements))
    return kernel if statements == kernel.statements else kernel.with_(statements=statements)


def _in_bits(types: ValueTypes, term: Expression, dtype: Any) -> Expression:
    """A term of a sum of some type in that type."""
    subtracted = subtrahend(term)
    if subtracted is not None:
        return prim.Product((-1, _in_bits(types, subtracted, dtype)))
    is_other = isinstance(types.of(term), np.dtype) and types.of(term) != dtype
    return TypeCast(dtype, term) if is_other else term
