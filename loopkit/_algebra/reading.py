"""Translation of expressions and sets to terms, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import (
    conjunction,
    disjunction,
    is_nonnegative,
    is_zero,
)
from loopkit._algebra.make import make_term
from loopkit._algebra.terms import Term, UnreadableError, name, number, truth
from loopkit._nodes import Expression, is_integer

OPERATIONS: dict[type, str] = {
    prim.Sum: "add",
    prim.Product: "mul",
    prim.FloorDiv: "fdiv",
    prim.Remainder: "mod",
    prim.LeftShift: "shl",
    prim.RightShift: "shr",
    prim.BitwiseAnd: "and",
    prim.BitwiseOr: "or",
    prim.BitwiseXor: "xor",
    prim.BitwiseNot: "inv",
    prim.Min: "min",
    prim.Max: "max",
    prim.LogicalAnd: "all",
    prim.LogicalOr: "any",
    prim.LogicalNot: "not",
    prim.If: "select",
}
_ASKING = ("all", "any", "not", "select")
_COMPARISONS = {"<": "lt", "<=": "le", "==": "eq"}
_TURNED = {">": "<", ">=": "<="}


def term_of(expr: Expression, known: Callable[[Expression], Term | None] | None = None) -> Term:
    """The term of an expression whose names are whole numbers, but for parts that are ``known``.

    Raises :class:`UnreadableError` for other accesses, casts, floating-point numbers and calls,
    and for truth values that are computed with: a sum of two is a truth value in NumPy.
    """
    if known is not None and (found := known(expr)) is not None:
        return found
    if isinstance(expr, bool):
        return truth(expr)
    if is_integer(expr):
        return number(int(expr))
    if isinstance(expr, prim.Variable):
        return name(expr.name)
    if isinstance(expr, prim.Comparison):
        left, right = term_of(expr.left, known), term_of(expr.right, known)
        if "B" in (left.sort, right.sort):
            raise UnreadableError(expr)
        return compared(expr.operator, left, right)
    op = OPERATIONS.get(type(expr))
    if op is None:
        raise UnreadableError(expr)
    operands = getattr(expr, "children", None)
    if operands is None:
        operands = (getattr(expr, field) for field in type(expr).__match_args__)
    parts = [term_of(operand, known) for operand in operands]
    first, *others = (part.sort for part in parts)
    wanted = "B" if op in _ASKING else "Z"
    alike = others[-1] if op == "select" else wanted
    if first != wanted or any(sort != alike for sort in others):
        raise UnreadableError(expr)
    return make_term(op, *parts)


def compared(operator: str, left: Term, right: Term) -> Term:
    """The condition that a comparison of two values is true."""
    if operator == "!=":
        return make_term("not", make_term("eq", left, right, sort="B"))
    if operator in _TURNED:
        return compared(_TURNED[operator], right, left)
    return make_term(_COMPARISONS[operator], left, right, sort="B")


def condition_of(where: isl.Set) -> Term:
    """The condition that the names of a set have the values of one of its points.

    It is weaker than the set if the set has existential variables that are not quotients of names.
    """
    pieces = where.compute_divs().get_basic_sets()
    return disjunction(*(conjunction(*_constraints_of(piece)) for piece in pieces))


def _constraints_of(piece: isl.BasicSet) -> Iterator[Term]:
    for constraint in piece.get_constraints():
        try:
            value = term_of(_sets.form_of(constraint).expression)
        except _sets.NotAffineError:
            continue
        yield is_zero(value) if constraint.is_equality() else is_nonnegative(value)


def expression_of(term: Term) -> Expression:
    """The expression of a term that sets may hold.

    Raises :class:`UnreadableError` for others, among them products.
    """
    match term.op:
        case "constant":
            return term.data
        case "name":
            return prim.Variable(term.data[0])
        case "sum":
            parts = zip(term.data, term.args, strict=True)
            return prim.Sum(tuple(prim.Product((c, expression_of(t))) for c, t in parts))
        case "ge0" | "eq0":
            operator = ">=" if term.op == "ge0" else "=="
            return prim.Comparison(expression_of(term.args[0]), operator, 0)
        case "fdiv" | "select":
            return _KINDS[term.op](*map(expression_of, term.args))
        case "min" | "max" | "and" | "or" | "xor":
            return _KINDS[term.op](tuple(map(expression_of, term.args)))
        case "if":
            first, yes, no = map(expression_of, term.args)
            inside = prim.LogicalAnd((first, yes))
            return prim.LogicalOr((inside, prim.LogicalAnd((prim.LogicalNot(first), no))))
    raise UnreadableError(term)


_KINDS = {op: kind for kind, op in OPERATIONS.items()}
