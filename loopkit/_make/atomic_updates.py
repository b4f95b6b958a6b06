"""Assignments with the option ``atomic``, split into an operation and its operand.

Atomic updates of one cell by one operation may run in any order: like the updates of a reduction,
they are unordered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import ParseError, SourcePosition, TypeInferenceError
from loopkit._expression import accesses, is_constant, to_text, without_tags
from loopkit._kernel import Statement
from loopkit._make.reduction_operations import OPERATIONS, ScalarOperation, operations_of
from loopkit._nodes import SYMBOLS, Expression
from loopkit._promotion import COMPLEXES, DType, Typed, dtype_name
from loopkit._same import same

_FORM = (
    "an atomic update is 'x = x + e', with one of + - * & | ^ max min or and; "
    "parentheses make several operands one: x + (a + b)"
)


def atomic_update(
    lhs: Expression, rhs: Expression, position: SourcePosition | None
) -> tuple[str, Expression]:
    """The operation of ``lhs = rhs``, and the operand that it combines ``lhs`` with.

    Raises :class:`ParseError` where it is no update of ``lhs``, or reads ``lhs`` twice.
    """
    operation = OPERATIONS.get(type(rhs))
    operands: tuple[Expression, ...] = rhs.children if operation is not None else ()
    lhs, operands = without_tags(lhs), tuple(map(without_tags, operands))
    if len(operands) != 2 or not any(same(operand, lhs) for operand in operands):
        why = f"'{to_text(lhs)} = {to_text(rhs)}' is no update that could be atomic"
        raise ParseError(why, position=position, instead=_FORM)
    assert operation is not None
    first, second = operands
    value = second if same(first, lhs) else first
    if any(same(access, accesses(lhs)[0]) for access in accesses(value)):
        why = f"the value of an atomic update cannot read '{to_text(lhs)}' again"
        raise ParseError(why, position=position, instead=_FORM)
    return operation, value


_SIGNS = {o: SYMBOLS[kind] for kind, o in OPERATIONS.items() if kind not in (prim.Min, prim.Max)}


def as_update(statement: Statement) -> tuple[Statement, str] | None:
    """The atomic update that is equivalent to an assignment, and its text.

    Several operands are combined into one.  None for other statements.
    """
    lhs, rhs = statement.lhs, statement.rhs
    if statement.kind != "user" or statement.operation is not None:
        return None
    if (
        type(rhs) in OPERATIONS
        and len(rhs.children) > 2
        and same(without_tags(rhs.children[0]), without_tags(lhs))
    ):
        rhs = type(rhs)((lhs, type(rhs)(rhs.children[1:])))
    try:
        operation, value = atomic_update(lhs, rhs, None)
    except ParseError:
        return None
    update = replace(statement, rhs=value, operation=operation, kind="atomic")
    cell, more = to_text(lhs), to_text(value)
    if operation not in _SIGNS:
        return update, f"{cell} = {operation}({cell}, {more}) {{atomic}}"
    is_plain = is_constant(value) or isinstance(value, (prim.Variable, prim.Subscript))
    more = more if is_plain else f"({more})"
    return update, f"{cell} = {cell} {_SIGNS[operation]} {more} {{atomic}}"


def check_update(statement: Statement, typer: Callable[[Expression], Typed], cell: DType) -> None:
    """Raise :class:`TypeInferenceError` where an update is not computed in the type of its cell.

    The value would then be rounded, or wrap, before it is combined, instead of afterwards.
    """
    operation, value = statement.operation, statement.rhs
    assert operation is not None
    combining = operations_of(())[operation]
    assert isinstance(combining, ScalarOperation)
    found = typer(combining.combine(statement.lhs, value))
    if found == cell and isinstance(value, prim.Product) and value.children[0] == -1:
        # What is subtracted is subtracted in the type of the cell.
        of = typer(value.children[1])
        found = found if not isinstance(of, np.dtype) or of == cell else of
    name = dtype_name(cell)
    if found != cell:
        computed = dtype_name(found) if isinstance(found, np.dtype) else "a number of Python's"
        raise TypeInferenceError(
            f"an atomic update computes in the type of its cell: '{to_text(value)}' makes it "
            f"{computed}, and '{statement.written}' is {name}",
            instead=f"write {name}(...) around the value",
        )
    if cell in COMPLEXES and operation != "sum":
        raise TypeInferenceError(
            f"nothing updates '{statement.written}' atomically by a {operation} of {name}",
            instead="sums of complex numbers are atomic part by part, other operations are not",
        )
