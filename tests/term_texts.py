"""Terms of texts: whole numbers and conditions as Python writes them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from seams import algebra, typed_terms

assert typed_terms, "what makes terms is loaded"
importlib.import_module("loopkit._algebra.evaluate")
terms, ranges, rules = algebra.terms, algebra.ranges, algebra.rules
make_term, substitute_names = algebra.make.make_term, algebra.make.substitute_names

_OPERATIONS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "fdiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.Invert: "inv",
    ast.USub: "neg",
    ast.And: "all",
    ast.Or: "any",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Eq: "eq",
}


@contextmanager
def in_the_table(table: str, rule: Any) -> Iterator[None]:
    """Another rule in the place of the one that has its name, or before all others."""
    kept = (r.text for r in rules.rules_in(getattr(rules, table)) if r.name != rule.name)
    caches = rules.rules_of, algebra.make.low_bits
    try:
        with mock.patch.object(rules, table, "\n".join([rule.text, *kept])):
            for known in caches:
                known.cache_clear()
            yield
    finally:
        for known in caches:
            known.cache_clear()


def read_term(text: str, bounds: Mapping[str, tuple[float, float]] | None = None) -> Any:
    """The term of a text; names have ``bounds``, if any, and ``wrap(int8, x)`` wraps."""
    known = bounds or {}

    def compared(op: ast.cmpop, left: Any, right: Any) -> Any:
        match op:
            case ast.NotEq():
                return make_term("not", make_term("eq", left, right))
            case ast.Gt() | ast.GtE():
                return make_term("lt" if isinstance(op, ast.Gt) else "le", right, left)
        return make_term(_OPERATIONS[type(op)], left, right)

    def term(e: ast.expr) -> Any:
        match e:
            case ast.Constant():
                return terms.number(e.value)
            case ast.Name():
                return terms.name(e.id, *known.get(e.id, ()))
            case ast.UnaryOp(op=ast.Not()):
                return make_term("not", term(e.operand))
            case ast.UnaryOp():
                return make_term(_OPERATIONS[type(e.op)], term(e.operand))
            case ast.BinOp():
                return make_term(_OPERATIONS[type(e.op)], term(e.left), term(e.right))
            case ast.BoolOp():
                return make_term(_OPERATIONS[type(e.op)], *map(term, e.values))
            case ast.Compare():
                sides = [*map(term, (e.left, *e.comparators))]
                return make_term("all", *map(compared, e.ops, sides, sides[1:]))
            case ast.IfExp():
                return make_term("select", *map(term, (e.test, e.body, e.orelse)))
            case ast.Call(func=ast.Name("wrap"), args=[ast.Name() as dtype, inner]):
                assert dtype.id in ranges.INTEGERS
                return make_term("wrap", term(inner), data=dtype.id)
            case ast.Call(func=ast.Name() as function):
                return make_term(function.id, *map(term, e.args))
        raise TypeError(ast.dump(e))

    return term(ast.parse(text.strip(), mode="eval").body)
