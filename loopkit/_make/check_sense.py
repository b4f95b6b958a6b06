"""What a text may say and no kernel can mean: found when a kernel is made, not later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._device_functions import OwnFunction
from loopkit._errors import InvalidArgumentError, ParseError, TypeInferenceError, caret_at
from loopkit._functions import FUNCTIONS, check_call, unknown_function
from loopkit._kernel import Statement
from loopkit._linear import NotAffineError, linear
from loopkit._make.type_inference import located
from loopkit._nodes import Expression
from loopkit._promotion import Typed
from loopkit._same import remembered
from loopkit._syntax.condition_parser import LARGEST
from loopkit._types import asked_of, dtype_of

_NO_TYPES: Mapping[str, Typed] = {}
_LARGE = 10**6
"""Numbers from here on could have products larger than any index."""


def _check_sides(expr: prim.Comparison) -> None:
    """Raise if linear forms of names are compared that hold a number which no index can be."""
    try:
        difference = linear(prim.Sum((expr.left, prim.Product((-1, expr.right)))))
    except NotAffineError:
        return
    numbers = [abs(difference.constant), *(abs(c) for c in difference.terms.values())]
    if difference.terms and max(numbers) > LARGEST:
        raise InvalidArgumentError(
            f"the number {max(numbers)} in '{_expression.to_text(expr)}' is larger than any index",
            instead="indices have 64 bits; compare with a floating-point number",
        )


def _check_divisor(expr: prim.Quotient | prim.FloorDiv | prim.Remainder) -> None:
    """Raise if a number is divided by a zero that is written there; data may be."""
    is_zero = _expression.is_constant(expr.denominator) and expr.denominator == 0
    nodes = _expression.nodes_of(expr.numerator) if is_zero else ()
    if is_zero and not any(isinstance(n, prim.Subscript) for n in nodes):
        raise TypeInferenceError("this is a division by zero", asked=asked_of(expr)())


def _largest(expr: Expression) -> int:
    """The largest of the integers in an expression."""
    return max(
        (abs(node) for node in _expression.nodes_of(expr) if isinstance(node, int)), default=0
    )


@remembered(1 << 12)
def _check(expr: Expression) -> None:
    """Raise where a call has no meaning, or a number none that any type or index could hold."""
    for node in _expression.nodes_of(expr):
        match node:
            case prim.Call() if isinstance(node.function, OwnFunction):
                node.function.check_count(len(node.parameters), asked_of(node))
            case prim.Call():
                check_call(node.function.name, len(node.parameters), asked_of(node))
            case prim.Power() | prim.LeftShift():
                with suppress(KeyError):  # a name stands in it
                    dtype_of(node, _NO_TYPES.__getitem__)
            case prim.Quotient() | prim.FloorDiv() | prim.Remainder():
                _check_divisor(node)
            case prim.Comparison() if _largest(node) > _LARGE:
                _check_sides(node)
            case prim.Subscript() if _largest(node.index) > LARGEST:
                why = f"{_largest(node.index)} is larger than any index"
                raise InvalidArgumentError(why, instead="indices have 64 bits")


def _called_wrongly(
    error: TypeInferenceError, statement: Statement, own: Collection[str], data: Collection[str]
) -> TypeInferenceError:
    """The error of a call, with what else it may have meant: all that the kernel itself has."""
    for expr in statement.expressions:
        for node in () if _expression.is_constant(expr) else _expression.nodes_of(expr):
            if not isinstance(node, prim.Call) or isinstance(node.function, OwnFunction):
                continue
            if (name := node.function.name) in FUNCTIONS:
                continue
            found = unknown_function(name, asked_of(node)(), own)
            if name in data:
                found.instead = f"'{name}' is no function: {name}[...] is an element of an array"
            return found
    return error


def check_sense(
    statements: Iterable[Statement],
    inames: Collection[str],
    own: Collection[str],
    data: Collection[str],
) -> None:
    """Nothing is nested too deeply, functions exist, constants and indices are not too large.

    Rules are expanded already.  ``own`` are the names of what texts of this kernel may call
    besides the functions that there are, ``data`` those of its arrays and values.
    """
    for statement in statements:
        depth = max(map(_expression.nesting, statement.expressions))
        if depth > _expression.MOST_NESTED:
            raise ParseError(
                f"'{statement.id}' nests {depth} operations, rules written out: "
                f"{_expression.TOO_DEEP}",
                position=statement.position,
                instead=_expression.INSTEAD,
            )
        for name, indices in statement.accesses:
            if indices and name in inames:
                raise InvalidArgumentError(
                    f"'{name}' is an iname and has no elements",
                    asked=caret_at(statement.position),
                    instead="another name is free for an array",
                )
        try:
            for expr in (*statement.predicates, statement.lhs, statement.rhs):
                if not _expression.is_constant(expr):
                    _check(expr)
        except TypeInferenceError as error:
            raise located(_called_wrongly(error, statement, own, data), statement) from None
        except InvalidArgumentError as error:
            where = caret_at(statement.position) or error.asked
            raise InvalidArgumentError(error.why, asked=where, instead=error.instead) from None
