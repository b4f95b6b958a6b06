"""Small mappers over expressions, one operation each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from pymbolic.mapper import IdentityMapper
from pymbolic.mapper.stringifier import (
    PREC_COMPARISON,
    PREC_NONE,
    PREC_PRODUCT,
    PREC_SUM,
    PREC_UNARY,
    StringifyMapper,
)

from loopkit._hidden import is_hidden, plain
from loopkit._nodes import (
    SYMBOLS,
    Component,
    Expression,
    FlatIndex,
    Node,
    Record,
    Reduction,
    TaggedVariable,
    TypeCast,
    TypeName,
    head_of,
    renamed,
    segments_of,
    tagged_like,
)
from loopkit._same import fields_of, remembered, unique

Access = tuple[str, tuple[Expression, ...]]
"""A name and the subscripts that it has, none for a scalar."""
Constant = int | float | complex | bool | np.generic


def is_constant(expr: Expression) -> bool:
    """Whether ``expr`` is a literal number."""
    return isinstance(expr, (int, float, complex, np.generic))


def is_literal(expr: Expression) -> bool:
    """Whether ``expr`` is a literal number, or a record of these."""
    return all(map(is_constant, expr.parts)) if isinstance(expr, Record) else is_constant(expr)


def nodes_of(
    expr: Expression, into: Callable[[Expression], bool] | None = None
) -> Iterator[Expression]:
    """All nodes and numbers of an expression, from left to right, each before its parts.

    The names of arrays and of functions are no parts.  ``into`` says of a node whether its parts
    are wanted; without it all are.
    """
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        kind: Any = type(node)
        if kind is tuple:
            waiting += node[::-1]
        elif (names := places_of_parts(kind)) is not None:
            yield node
            if names and (into is None or into(node)):
                for name in names:
                    waiting.append(getattr(node, name))


@cache
def places_of_parts(kind: Any) -> tuple[str, ...] | None:
    """Where a node of some type has its parts, the last one first; None for what is no node."""
    if issubclass(kind, (prim.Call, prim.Subscript)):
        return ("parameters",) if issubclass(kind, prim.Call) else ("index",)
    if issubclass(kind, prim.ExpressionNode) and not issubclass(kind, prim.Variable):
        return fields_of(kind)
    is_leaf = issubclass(kind, (prim.Variable, int, float, complex, np.generic))
    return () if is_leaf else None


def parts_of(node: Expression) -> list[Expression]:
    """The parts of a node, from left to right; those of a tuple in its place."""
    found: list[Expression] = []
    kind: Any = type(node)
    for name in reversed(places_of_parts(kind) or ()):
        part = getattr(node, name)
        found += part if type(part) is tuple else [part]
    return [p for p in found if isinstance(p, prim.ExpressionNode) or is_constant(p)]


def is_no_access(node: Expression) -> bool:
    """Whether a node is no element of an array: to leave out what stands in subscripts."""
    return not isinstance(node, prim.Subscript)


def names_among(nodes: Iterable[Expression]) -> frozenset[str]:
    """The names of variables and arrays among some nodes, and of inames that reductions run over.

    Not those that stand inside of the nodes.
    """
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, prim.Variable):
            found.add(node.name)
        elif isinstance(node, prim.Subscript) and isinstance(node.aggregate, prim.Variable):
            found.add(node.aggregate.name)
        elif isinstance(node, prim.Subscript):  # of what a rule stands for: refused later
            found |= variable_names(node.aggregate)
        elif isinstance(node, Reduction):
            found.update(node.inames)
    return frozenset(found)


@remembered(1 << 14)
def _variable_names(expr: Expression) -> frozenset[str]:
    return names_among(nodes_of(expr))


def variable_names(expr: Expression) -> frozenset[str]:
    """All names of variables, arrays and inames in ``expr`` (not those of functions)."""
    return frozenset() if is_constant(expr) else _variable_names(expr)


def names_outside_accesses(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, but for arrays and what stands in their subscripts."""
    nodes = nodes_of(expr, into=is_no_access)
    return frozenset(node.name for node in nodes if isinstance(node, prim.Variable))


def unbound_names(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, without the inames that its reductions run over."""
    nodes = list(nodes_of(expr, into=lambda node: not isinstance(node, Reduction)))
    inner = [node for node in nodes if isinstance(node, Reduction)]
    outer = names_among(node for node in nodes if not isinstance(node, Reduction))
    return outer.union(*(unbound_names(r.operand).difference(r.inames) for r in inner))


@remembered(1 << 12)
def called_names(expr: Expression) -> frozenset[str]:
    """Names of all functions that ``expr`` calls, and of all variables."""
    calls = (node for node in nodes_of(expr) if isinstance(node, prim.Call))
    return variable_names(expr).union(call.function.name for call in calls)


_INTEGER_CALLS = frozenset(("abs", "sign", "fmin", "fmax", "pow"))
"""Functions whose results are integers where their arguments are."""


def _is_integer(node: Expression) -> bool:
    """Whether a node gives an integer where all its parts are integers."""
    if isinstance(node, prim.Call):
        return node.function.name in _INTEGER_CALLS
    if is_constant(node):
        return isinstance(node, (int, np.integer, np.bool_))
    return not isinstance(node, (TypeCast, prim.Quotient, Record, Component))


@remembered(1 << 14)
def _integer_arithmetic(expr: Expression) -> tuple[bool, bool]:
    """Whether integers alone are computed, and whether functions are called for that."""
    nodes = list(nodes_of(expr))
    return all(map(_is_integer, nodes)), any(isinstance(node, prim.Call) for node in nodes)


def is_integer_arithmetic(expr: Expression, *, calls: bool = True) -> bool:
    """Whether integers alone are computed in ``expr`` if all names in it are integers.

    ``calls`` says whether functions may be called for that.
    """
    if is_constant(expr):
        return _is_integer(expr)
    of_integers, has_calls = _integer_arithmetic(expr)
    return of_integers and (calls or not has_calls)


def divisions_in(expr: Expression) -> tuple[Expression, ...]:
    """All quotients ``a // b`` and remainders ``a % b`` in ``expr``, inner ones first."""
    nodes = [n for n in nodes_of(expr) if isinstance(n, (prim.FloorDiv, prim.Remainder))]
    return tuple(unique(nodes[::-1]))


def index_tuple(expr: prim.Subscript) -> tuple[Expression, ...]:
    """The subscript's indices, always as a tuple."""
    return expr.index if isinstance(expr.index, tuple) else (expr.index,)


@remembered(1 << 14)
def _accesses(expr: Expression) -> tuple[Access, ...]:
    found: list[Access] = []
    for node in nodes_of(expr):
        if isinstance(node, prim.Variable):
            found.append((node.name, ()))
        elif isinstance(node, prim.Subscript):
            found.append((node.aggregate.name, index_tuple(node)))
    return tuple(found)


def accesses(expr: Expression) -> tuple[Access, ...]:
    """Every use of a name in ``expr`` as ``(name, indices)``; ``()`` for a bare name.

    Inames and sizes appear too, as bare names; the caller knows which is what.
    """
    return () if is_constant(expr) else _accesses(expr)


def access_of(expr: Expression, data: Collection[str]) -> Access | None:
    """An expression that is one use of an array, or of a scalar among ``data``; None for others."""
    if isinstance(expr, prim.Variable):
        return (expr.name, ()) if expr.name in data else None
    if isinstance(expr, prim.Subscript):
        return expr.aggregate.name, index_tuple(expr)
    return None


class ExpressionMapper(IdentityMapper):  # type: ignore[misc]
    """Rebuilds an expression; subclasses override what they change."""

    def rec_arith(self, expr: Expression, *args: Any, **kwargs: Any) -> Expression:
        return self.rec(expr, *args, **kwargs)  # truth values are operands like others

    def map_node(self, expr: Node) -> Expression:
        """A node of loopkit's own: its expressions are rebuilt, and all else stays."""
        return type(expr)(*(self._rebuilt(getattr(expr, name)) for name in expr.__match_args__))

    map_reduction = map_type_name = map_sub_array = map_flat_index = map_node
    map_type_cast = map_record = map_component = map_node

    def _rebuilt(self, part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(self._rebuilt, part))
        is_expression = isinstance(part, prim.ExpressionNode) or is_constant(part)
        return self.rec(part) if is_expression else part

    def map_call(self, expr: prim.Call) -> Expression:
        return prim.Call(expr.function, tuple(self.rec(p) for p in expr.parameters))

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        return prim.Subscript(
            self.rec(expr.aggregate), tuple(self.rec(i) for i in index_tuple(expr))
        )


def mapped(expr: Expression, **rules: Callable[[Any, Mapped], Expression]) -> Expression:
    """``expr`` with what rules make of its nodes: ``variable=`` of variables, ``call=`` of calls.

    A rule gets the node, and a function that gives what becomes of a part of it.
    """
    if is_constant(expr):
        return expr
    mapper = ExpressionMapper()
    for kind, rule in rules.items():
        setattr(mapper, f"map_{kind}", lambda node, rule=rule: rule(node, mapper.rec))
    return mapper(expr)


Mapped = Callable[[Expression], Expression]
"""What becomes of an expression."""


class Substituter(ExpressionMapper):
    """Puts values in the places of names."""

    def __init__(self, values: Mapping[str, Expression]) -> None:
        super().__init__()
        self.values = values

    def map_variable(self, expr: prim.Variable) -> Expression:
        new = self.values.get(expr.name, expr)
        if type(expr) is TaggedVariable and type(new) is prim.Variable:
            return renamed(expr, new.name)
        return new

    def map_reduction(self, expr: Reduction) -> Expression:
        inames = []
        for iname in expr.inames:
            new = self.values.get(iname, prim.Variable(iname))
            inames.append(new.name if isinstance(new, prim.Variable) else iname)
        return Reduction(expr.operation, tuple(inames), self.rec(expr.operand), expr.dtype)


def substitute(expr: Expression, values: Mapping[str, Expression]) -> Expression:
    """``expr`` with every variable named in ``values`` replaced, and sums folded."""
    if is_constant(expr) or not (variable_names(expr) & values.keys()):
        return expr
    return Substituter(values)(expr)


def unlabelled(expr: Expression) -> Expression:
    """``expr`` with the names that the user gave, whichever instances they are of: for messages."""
    names = {n: prim.Variable(plain(n)) for n in variable_names(expr) if is_hidden(n)}
    return substitute(expr, names)


def replace_accesses(
    expr: Expression, replace: Callable[[str, tuple[Expression, ...]], Expression | None]
) -> Expression:
    """``expr`` with each access ``name[indices]`` replaced by what ``replace`` returns.

    ``replace`` sees indices already rewritten, ``()`` for a bare name, and
    returns None to keep an access.
    """

    def variable(expr: prim.Variable, inside: Mapped) -> Expression:
        new = replace(expr.name, ())
        return expr if new is None else tagged_like(expr, new)

    def subscript(expr: prim.Subscript, inside: Mapped) -> Expression:
        same = with_indices(expr, inside)
        new = replace(expr.aggregate.name, same.index)
        return same if new is None else tagged_like(same, new)

    return mapped(expr, variable=variable, subscript=subscript)


NUMBERS: Mapping[str, float] = {"inf": math.inf, "nan": math.nan, "M_PI": math.pi, "M_E": math.e}
"""Names of numbers: of what no digits spell, and those of C's header math.h."""


def with_numbers(expr: Expression, names: Collection[str] = ()) -> Expression:
    """``expr`` with the numbers ``inf`` and ``nan`` in it, where these are none of ``names``."""
    if is_constant(expr) or not variable_names(expr) & NUMBERS.keys():
        return expr

    def variable(expr: prim.Variable, inside: Mapped) -> Expression:
        return expr if expr.name in names else NUMBERS.get(expr.name, expr)

    def product(expr: prim.Product, inside: Mapped) -> Expression:
        sign, *rest = parts = tuple(map(inside, expr.children))
        is_negated = sign == -1 and len(rest) == 1 and type(rest[0]) is float
        return -rest[0] if is_negated else prim.Product(parts)

    return mapped(expr, variable=variable, subscript=with_indices, product=product)


def with_indices(expr: prim.Subscript, inside: Mapped) -> Expression:
    """A rule of :func:`mapped`: of an access only the indices are mapped, and not the array."""
    return prim.Subscript(expr.aggregate, tuple(map(inside, index_tuple(expr))))


def map_heads(expr: Expression, new: Callable[[prim.Variable], prim.Variable]) -> Expression:
    """``expr`` with another name for each variable, array and function, itself a variable."""

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        return prim.Call(new(expr.function), tuple(map(inside, expr.parameters)))

    return mapped(expr, variable=lambda head, _: new(head), call=call)


@remembered(1 << 12)
def _tagged_uses(expr: Expression) -> frozenset[tuple[str, str]]:
    heads = map(head_of, nodes_of(expr))
    return frozenset((h.name, h.tag) for h in heads if isinstance(h, TaggedVariable))


def tagged_uses(expr: Expression) -> frozenset[tuple[str, str]]:
    """The names in ``expr`` that have a tag, each with it."""
    return frozenset() if is_constant(expr) else _tagged_uses(expr)


def without_tags(expr: Expression) -> Expression:
    """``expr`` as it is computed: tags of uses mean nothing to that."""
    if not tagged_uses(expr):
        return expr
    return map_heads(expr, lambda h: prim.Variable(h.name) if type(h) is TaggedVariable else h)


# All that reads expressions calls itself for the parts of what it reads, as Python's own
# compiler does.  What is deeper than they go is refused where a kernel is made.

MOST_NESTED = 100
"""As many operations, subscripts, calls and parentheses may stand inside of each other."""

TOO_DEEP = f"an expression may nest {MOST_NESTED} operations deep"
INSTEAD = "name a part of it: <> t = ..."


def nesting(expr: Expression, *, in_pairs: bool = False) -> int:
    """How many operations stand inside of each other; a sum counts once, however long it is.

    With ``in_pairs`` it counts as the operations of two operands each that it stands for.
    """
    deepest = 0
    waiting: list[tuple[Expression, int]] = [(expr, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, prim.ExpressionNode) and not isinstance(node, prim.Variable):
            is_long = in_pairs and isinstance(node, (prim.Sum, prim.Product))
            step = len(node.children) - 1 if is_long else 1
            waiting += [(part, depth + step) for part in parts_of(node)]
    return deepest


_DIVISIONS = (prim.Quotient, prim.FloorDiv, prim.Remainder)


def _negated(expr: Expression) -> Expression | None:
    """``x`` if ``expr`` is ``-x``, else None."""
    if isinstance(expr, (int, float)) and not isinstance(expr, bool) and expr < 0:
        return -expr
    if isinstance(expr, prim.Product) and expr.children:
        first, *rest = expr.children
        if isinstance(first, int) and first < 0:
            if first == -1 and rest:
                return rest[0] if len(rest) == 1 else prim.Product(tuple(rest))
            return prim.Product((-first, *rest))
    return None


class _Stringifier(StringifyMapper):  # type: ignore[misc]
    """Writes ``a - b`` for ``a + -1*b`` and leaves no blanks inside products."""

    def map_sum(self, expr: prim.Sum, enclosing_prec: int, *args: Any) -> str:
        text = ""
        for position, child in enumerate(expr.children):
            positive = _negated(child)
            if position == 0:
                text = self.rec(child, PREC_SUM, *args)
            elif positive is None:
                text += " + " + self.rec(child, PREC_SUM, *args)
            else:
                text += " - " + self.rec(positive, PREC_PRODUCT, *args)
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_SUM))

    def map_product(self, expr: prim.Product, enclosing_prec: int, *args: Any) -> str:
        positive = _negated(expr)
        if positive is not None:
            text = "-" + self.rec(positive, PREC_UNARY, *args)
            return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_UNARY))
        first, *rest = expr.children
        # `2*(i % 8)` is not `2*i % 8`.
        text = self.rec(first, PREC_PRODUCT, *args)
        text += "".join(
            "*" + self.rec(c, PREC_UNARY if isinstance(c, _DIVISIONS) else PREC_PRODUCT, *args)
            for c in rest
        )
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_PRODUCT))

    def map_subscript(self, expr: prim.Subscript, enclosing_prec: int, *args: Any) -> str:
        inner = ", ".join(self.rec(i, PREC_NONE, *args) for i in index_tuple(expr))
        return f"{self.rec(expr.aggregate, PREC_NONE, *args)}[{inner}]"

    def map_variable(self, expr: prim.Variable, enclosing_prec: int, *args: Any) -> str:
        return f"{expr.name}${expr.tag}" if type(expr) is TaggedVariable else str(expr.name)

    def map_flat_index(self, expr: FlatIndex, enclosing_prec: int, *args: Any) -> str:
        return f"[{self.rec(expr.offset, PREC_NONE, *args)}]"

    def map_if(self, expr: prim.If, enclosing_prec: int, *args: Any) -> str:
        parts = (expr.condition, expr.then, expr.else_)
        return "if(" + ", ".join(self.rec(p, PREC_NONE, *args) for p in parts) + ")"

    def map_comparison(self, expr: prim.Comparison, enclosing_prec: int, *args: Any) -> str:
        left = self.rec(expr.left, PREC_SUM - 1, *args)
        right = self.rec(expr.right, PREC_SUM - 1, *args)
        text = f"{left} {expr.operator} {right}"
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_COMPARISON))

    def map_reduction(self, expr: Reduction, enclosing_prec: int, *args: Any) -> str:
        inames = expr.inames[0] if len(expr.inames) == 1 else "(" + ", ".join(expr.inames) + ")"
        dtype = "" if expr.dtype is None else f", dtype={expr.dtype.name}"
        parts = expr.operand.parts if isinstance(expr.operand, Record) else (expr.operand,)
        operands = ", ".join(self.rec(part, PREC_NONE, *args) for part in parts)
        of = f"{inames}, {operands}{dtype}"
        if segments_of(expr.operation) is not None:
            return f"reduce({expr.operation}, {of})"
        return f"{expr.operation}({of})"

    def map_type_name(self, expr: TypeName, enclosing_prec: int, *args: Any) -> str:
        return f"dtype={expr.dtype.name}"

    def map_type_cast(self, expr: TypeCast, enclosing_prec: int, *args: Any) -> str:
        return f"cast({expr.dtype.name}, {self.rec(expr.operand, PREC_NONE, *args)})"

    def map_record(self, expr: Record, enclosing_prec: int, *args: Any) -> str:
        return f"({', '.join(self.rec(part, PREC_NONE, *args) for part in expr.parts)})"

    def map_component(self, expr: Component, enclosing_prec: int, *args: Any) -> str:
        return f"{self.rec(expr.operand, PREC_UNARY, *args)}.{expr.name}"


def to_text(expr: Expression) -> str:
    """``expr`` as the user would write it in an instruction."""
    return str(_Stringifier()(expr, PREC_NONE))


def python_source(expr: Expression, spelled: Callable[[str], str]) -> str:
    """An integer expression over sizes as Python source, names as ``spelled`` prints them."""
    if is_constant(expr):
        return repr(expr.item() if isinstance(expr, np.generic) else expr)
    if isinstance(expr, prim.Variable):
        return spelled(expr.name)
    return python_node(expr, [python_source(part, spelled) for part in parts_of(expr)])


def python_node(expr: Expression, parts: Sequence[str]) -> str:
    """An integer operation as Python source, its operands being ``parts``."""
    if isinstance(expr, prim.Comparison):
        return f"({parts[0]} {expr.operator} {parts[1]})"
    if isinstance(expr, prim.LogicalNot):
        return f"(not {parts[0]})"
    if isinstance(expr, prim.BitwiseNot):
        return f"(~{parts[0]})"
    if isinstance(expr, prim.If):
        condition, then, else_ = parts
        return f"({then} if {condition} else {else_})"
    if isinstance(expr, prim.Power) and type(expr.exponent) is int and expr.exponent >= 0:
        return f"({parts[0]} ** {expr.exponent})"
    if type(expr) not in SYMBOLS:
        raise NotImplementedError(f"'{to_text(expr)}' is no integer expression over sizes")
    word = SYMBOLS[type(expr)]
    if isinstance(expr, prim.Min | prim.Max):
        return f"{word if len(parts) > 1 else ''}({', '.join(parts)})"
    return f"({f' {word} '.join(parts)})"


BUILTINS: Mapping[str, Any] = {"__builtins__": {}, "min": min, "max": max}
"""What Python source of expressions takes for granted."""


def evaluate(expr: Expression, values: Mapping[str, int]) -> Any:
    """The value of an integer expression over sizes; a name without a value is a ``KeyError``."""
    if is_constant(expr):
        return expr
    return eval(_compiled(expr), {**BUILTINS, "of": values})


@remembered(1 << 12)
def _compiled(expr: Expression) -> Any:
    # By text: a name may be a word of Python, and is never code.
    source = python_source(expr, lambda name: f"of[{name!r}]")
    return compile(source, "<loopkit expression>", "eval")
