"""Resolution of names in a text: keyword arguments, C functions, NumPy's names, constants, tags.

The result has no trace of them: ``clip(x, 0, 1)`` becomes ``min(max(x, 0), 1)``, and
``curve(x[i], gain=2)`` gets its arguments in order.  A rule, a reduction or a user-defined function
takes precedence over a name of NumPy's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pymbolic.primitives as prim

from loopkit._device_functions import OwnFunction, by_name
from loopkit._errors import InvalidArgumentError, SourcePosition, caret_at, counted
from loopkit._expression import (
    Mapped,
    is_constant,
    map_heads,
    mapped,
    nodes_of,
    tagged_uses,
    with_numbers,
)
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._make.reduction_operations import operations_of
from loopkit._match import name_first
from loopkit._nodes import Expression, Named, TaggedVariable, TypeCast, head_of
from loopkit._promotion import UINT8
from loopkit._syntax.items import RawAssignment, RawItem, RawStatement, RawSubstitution

T = TypeVar("T", RawItem, SubstitutionRule)


def with_expressions(item: T, called: Callable[[Expression], Expression]) -> T:
    """A part of a text, or a rule, with all of its expressions changed that are no constants."""

    def changed(expr: Expression) -> Expression:
        return expr if is_constant(expr) else called(expr)

    if isinstance(item, (RawSubstitution, SubstitutionRule)):
        return replace(item, expression=changed(item.expression))
    if isinstance(item, RawStatement):
        item = replace(item, predicates=tuple(map(changed, item.predicates)))
    if isinstance(item, RawAssignment):
        item = replace(item, lhs=changed(item.lhs), rhs=changed(item.rhs))
    return item


def expressions_of(item: RawItem) -> list[Expression]:
    """The expressions of a part of a text."""
    found: list[Expression] = []
    if isinstance(item, RawSubstitution):
        found.append(item.expression)
    if isinstance(item, RawStatement):
        found += item.predicates
    if isinstance(item, RawAssignment):
        found += (item.lhs, item.rhs)
    return [e for e in found if not is_constant(e)]


Signatures = Mapping[str, Sequence[tuple[str, ...]]]
"""The names of the arguments that functions take, in order, of each overload."""

_NAMED = re.compile(r"[(,]\s*[A-Za-z_]\w*\s*=(?!=)")


def with_arguments_in_order(items: Iterable[RawItem], taken: Signatures) -> list[RawItem]:
    """A text whose calls give their arguments in order; rules of the text are called so, too.

    Raises :class:`InvalidArgumentError` for names that what is called does not have.
    """
    items = list(items)
    if not any(_NAMED.search(item.text) for item in items):
        return items
    rules = {i.name: [i.arguments] for i in items if isinstance(i, RawSubstitution)}
    found: Signatures = {**taken, **rules}
    return [
        with_expressions(i, partial(mapped, call=partial(_in_order, found, i.position)))
        if _NAMED.search(i.text)
        else i
        for i in items
    ]


def _in_order(
    taken: Signatures, position: SourcePosition, expr: prim.Call, inside: Mapped
) -> Expression:
    """A call with its arguments in order."""
    values = [inside(p.operand if isinstance(p, Named) else p) for p in expr.parameters]
    names = [p.name for p in expr.parameters if isinstance(p, Named)]
    if not names:
        return prim.Call(expr.function, tuple(values))
    name, first = expr.function.name, len(values) - len(names)
    by_name = dict(zip(names, values[first:], strict=True))
    for signature in taken.get(name, ()):
        rest = signature[first : len(values)]
        if len(names) == len(rest) and by_name.keys() == {*rest}:
            return prim.Call(expr.function, (*values[:first], *(by_name[n] for n in rest)))
    listed = [f"{name}({', '.join(signature)})" for signature in taken.get(name, ())]
    known = {n for signature in taken.get(name, ()) for n in signature[first:]}
    strange = [n for n in names if n not in known or names.count(n) > 1]
    raise InvalidArgumentError(
        f"'{name}' takes no arguments by the names {', '.join(strange or names)}",
        asked=caret_at(position),
        instead=f"it is {' or '.join(listed)}"
        if listed
        else "those of rules and of functions of one's own have names",
    )


def _call(name: str) -> Callable[..., Expression]:
    return lambda *arguments: prim.Call(prim.Variable(name), arguments)


def _chain(kind: Callable[..., Expression]) -> Callable[..., Expression]:
    return lambda a, b: kind((a, b))


def _compare(operator: str) -> Callable[..., Expression]:
    return lambda a, b: prim.Comparison(a, operator, b)


def _multiplied_by(above: float, below: float) -> Callable[..., Expression]:
    return lambda x: prim.Product((x, prim.Quotient(above, below)))


def _logaddexp(a: Expression, b: Expression) -> Expression:
    apart = _call("abs")(prim.Sum((a, _negated(b))))
    rest = _call("log1p")(_call("exp")(_negated(apart)))
    both = prim.Sum((prim.Max((a, b)), rest))
    return prim.If(prim.Comparison(a, "==", b), prim.Sum((a, _call("log")(2))), both)


def _negated(x: Expression) -> Expression:
    return prim.Product((-1, x))


MEANINGS: dict[str, tuple[int, Callable[..., Expression]]] = {
    "where": (3, prim.If),
    "clip": (3, lambda x, low, high: prim.Min((prim.Max((x, low)), high))),
    "maximum": (2, _chain(prim.Max)),
    "minimum": (2, _chain(prim.Min)),
    "add": (2, _chain(prim.Sum)),
    "subtract": (2, lambda a, b: prim.Sum((a, _negated(b)))),
    "multiply": (2, _chain(prim.Product)),
    **dict.fromkeys(("divide", "true_divide"), (2, prim.Quotient)),
    "floor_divide": (2, prim.FloorDiv),
    **dict.fromkeys(("mod", "remainder"), (2, prim.Remainder)),
    "power": (2, prim.Power),
    "square": (1, lambda x: prim.Power(x, 2)),
    "negative": (1, _negated),
    "positive": (1, lambda x: x),
    "logical_and": (2, _chain(prim.LogicalAnd)),
    "logical_or": (2, _chain(prim.LogicalOr)),
    "logical_xor": (2, lambda a, b: _compare("!=")(prim.LogicalNot(a), prim.LogicalNot(b))),
    "logical_not": (1, prim.LogicalNot),
    "bitwise_and": (2, _chain(prim.BitwiseAnd)),
    "bitwise_or": (2, _chain(prim.BitwiseOr)),
    "bitwise_xor": (2, _chain(prim.BitwiseXor)),
    **dict.fromkeys(("bitwise_not", "bitwise_invert", "invert"), (1, prim.BitwiseNot)),
    **dict.fromkeys(("left_shift", "bitwise_left_shift"), (2, prim.LeftShift)),
    **dict.fromkeys(("right_shift", "bitwise_right_shift"), (2, prim.RightShift)),
    "equal": (2, _compare("==")),
    "not_equal": (2, _compare("!=")),
    "less": (2, _compare("<")),
    "less_equal": (2, _compare("<=")),
    "greater": (2, _compare(">")),
    "greater_equal": (2, _compare(">=")),
    **{
        f"arc{name}": (1, _call(f"a{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "arctan2": (2, _call("atan2")),
    "absolute": (1, _call("abs")),
    "conjugate": (1, _call("conj")),
    "angle": (1, lambda z: _call("atan2")(_call("imag")(z), _call("real")(z))),
    "signbit": (1, lambda x: prim.Comparison(_call("copysign")(1, x), "<", 0)),
    "isposinf": (1, lambda x: prim.Comparison(x, "==", math.inf)),
    "isneginf": (1, lambda x: prim.Comparison(x, "==", -math.inf)),
    **dict.fromkeys(("degrees", "rad2deg"), (1, _multiplied_by(180, math.pi))),
    **dict.fromkeys(("radians", "deg2rad"), (1, _multiplied_by(math.pi, 180))),
    "logaddexp": (2, _logaddexp),
    "rint": (1, _call("round")),
    "fix": (1, _call("trunc")),
    "popc": (1, _call("popcount")),
    # NumPy counts those of the absolute value.
    "bitwise_count": (1, lambda x: TypeCast(UINT8, _call("popcount")(_call("abs")(x)))),
}
"""How many arguments each takes, and what it makes of them."""


def in_own_words(
    items: Sequence[RawItem],
    rules: Iterable[SubstitutionRule],
    functions: Mapping[str, OwnFunction],
    others: Collection[str],
    declared: Collection[str] = (),
) -> tuple[list[RawItem], tuple[SubstitutionRule, ...]]:
    """A text and more rules, with functions in C for their names, and own words for NumPy's.

    Names of rules, of ``functions`` and of ``others``, which are reductions and more rules, mean
    these; ``inf`` and ``nan`` are numbers where nothing is ``declared`` to be called so.  Raises
    :class:`InvalidArgumentError` where a name of NumPy's has another number of arguments.
    """
    rules = tuple(rules)
    own = {*functions, *others, *(rule.name for rule in rules)}
    own |= {item.name for item in items if isinstance(item, RawSubstitution)}
    names = own.union(declared)
    for item in items:
        if isinstance(item, RawAssignment):
            names.update(item.written)

    def read(item: T) -> T:
        position, data = (
            getattr(item, "position", None),
            names.union(getattr(item, "arguments", ())),
        )

        def call(expr: prim.Call, inside: Mapped) -> Expression:
            function = functions.get(expr.function.name, expr.function)
            name, parameters = function.name, tuple(map(inside, expr.parameters))
            if name not in MEANINGS or name in own or not isinstance(function, prim.Variable):
                return prim.Call(function, parameters)
            count, meaning = MEANINGS[name]
            if len(parameters) != count or any(isinstance(p, tuple) for p in parameters):
                raise InvalidArgumentError(
                    f"'{name}' takes {counted(count, 'argument')}, not {len(parameters)}",
                    asked=caret_at(position),
                )
            return meaning(*parameters)

        return with_expressions(item, lambda expr: with_numbers(mapped(expr, call=call), data))

    return [read(item) for item in items], tuple(read(rule) for rule in rules)


def with_names_first(items: Sequence[RawItem], declared: Collection[str]) -> list[RawItem]:
    """A text in which names come before their tags.

    Where ``x`` is ``declared``, and ``near`` is nothing but a tag, ``near$x[i]`` is ``x$near[i]``.
    """
    if not any(tagged_in(item) for item in items):
        return [*items]
    known = {*declared, *(i.name for i in items if isinstance(i, RawSubstitution))}
    heads = [head_of(node) for i in items for e in expressions_of(i) for node in nodes_of(e)]
    taken = known.union(h.name for h in heads if type(h) is prim.Variable)

    def one(head: prim.Variable) -> prim.Variable:
        if type(head) is TaggedVariable and head.name not in taken and head.tag in known:
            return TaggedVariable(head.tag, head.name)
        return head

    return [with_expressions(item, lambda e: map_heads(e, one)) for item in items]


def tagged_in(item: RawItem) -> set[tuple[str, str]]:
    """The uses in an item that have a tag: their names, and the tags."""
    return {use for e in expressions_of(item) for use in tagged_uses(e)}


def as_in_text(kernel: Kernel, template: Expression, arguments: Sequence[str]) -> Expression:
    """A template of ``arguments`` whose functions mean what they mean in the kernel's text."""
    functions = by_name(kernel.functions)
    others = {*operations_of(kernel.reductions), *kernel.rule_by_name}
    declared = {a.name for a in (*kernel.args, *kernel.temporaries)}

    def one(head: prim.Variable) -> prim.Variable:
        if type(head) is not TaggedVariable:
            return head
        return TaggedVariable(*name_first(kernel, f"{head.name}${head.tag}").split("$"))

    template = map_heads(template, one)
    given = SubstitutionRule(kernel.fresh_name("template"), tuple(arguments), template)
    _, (rule,) = in_own_words((), (given,), functions, others, declared)
    return rule.expression
