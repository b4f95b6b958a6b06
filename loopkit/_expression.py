"""Small mappers over expressions, one operation each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from pymbolic.mapper import CombineMapper, IdentityMapper, Mapper
from pymbolic.mapper.stringifier import PREC_NONE

from loopkit._hidden import is_hidden, plain
from loopkit._nodes import Expression, Reduction, TypeCast, TypeName
from loopkit._same import Key, key_of, remembered
from loopkit._stringify import Stringifier

Constant = int | float | complex | bool | np.generic


def is_constant(expr: Expression) -> bool:
    """Whether ``expr`` is a literal number."""
    return isinstance(expr, (int, float, complex, np.generic))


def variable_names(expr: Expression) -> frozenset[str]:
    """All names of variables, arrays and inames in ``expr`` (not those of functions)."""
    if is_constant(expr):
        return frozenset()
    return _variable_names(expr)


@remembered(1 << 14)
def _variable_names(expr: Expression) -> frozenset[str]:
    return names_found(NameCollector, expr)


def names_found(
    collector: Callable[[set[str]], NameCollector], *exprs: Expression
) -> frozenset[str]:
    """The names that one kind of collector finds in several expressions."""
    found: set[str] = set()
    for expr in exprs:
        if not is_constant(expr):
            collector(found)(expr)
    return frozenset(found)


class Walker(CombineMapper):  # type: ignore[misc]
    """Visits every child; results are thrown away."""

    def combine(self, values: Iterable[Any]) -> None:
        for _ in values:
            pass

    def map_constant(self, expr: Expression) -> None:
        return None

    def map_variable(self, expr: prim.Variable) -> None:
        return None

    def map_call(self, expr: prim.Call) -> None:
        for parameter in expr.parameters:
            self.rec(parameter)

    def map_reduction(self, expr: Reduction) -> None:
        self.rec(expr.operand)

    def map_type_name(self, expr: TypeName) -> None:
        return None

    def map_type_cast(self, expr: TypeCast) -> None:
        self.rec(expr.operand)


class NameCollector(Walker):
    """Collects all names of variables in ``found``."""

    def __init__(self, found: set[str]) -> None:
        super().__init__()
        self.found = found

    def map_variable(self, expr: prim.Variable) -> None:
        self.found.add(expr.name)

    def map_reduction(self, expr: Reduction) -> None:
        self.found.update(expr.inames)
        self.rec(expr.operand)


class _OuterNameCollector(NameCollector):
    def map_subscript(self, expr: prim.Subscript) -> None:
        pass


def names_outside_accesses(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, but for arrays and what stands in their subscripts."""
    return names_found(_OuterNameCollector, expr)


class _AccessCollector(Walker):
    def __init__(self, found: list[tuple[str, tuple[Expression, ...]]]) -> None:
        super().__init__()
        self.found = found

    def map_variable(self, expr: prim.Variable) -> None:
        self.found.append((expr.name, ()))

    def map_subscript(self, expr: prim.Subscript) -> None:
        self.found.append((expr.aggregate.name, index_tuple(expr)))
        for index in index_tuple(expr):
            self.rec(index)


class _DivisionCollector(Walker):
    def __init__(self, found: dict[Key, Expression]) -> None:
        super().__init__()
        self.found = found

    def _division(self, expr: Expression) -> None:
        self.rec(expr.numerator)
        self.found.setdefault(key_of(expr), expr)

    map_floor_div = _division
    map_remainder = _division


_INTEGER_CALLS = frozenset(("abs", "sign", "fmin", "fmax", "pow"))
"""Functions whose results are integers where their arguments are."""


class _TypedFinder(Walker):
    """Finds what is no arithmetic of integers: calls, casts, quotients, other literals."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = False
        self.typed = False

    def map_constant(self, expr: Any) -> None:
        self.typed = self.typed or not isinstance(expr, (int, np.integer, np.bool_))

    def map_call(self, expr: prim.Call) -> None:
        self.calls = True
        self.typed = self.typed or expr.function.name not in _INTEGER_CALLS
        super().map_call(expr)

    def map_type_cast(self, expr: TypeCast) -> None:
        self.typed = True

    def map_quotient(self, expr: prim.Quotient) -> None:
        self.typed = True


@remembered(1 << 14)
def _typed(expr: Expression) -> tuple[bool, bool]:
    finder = _TypedFinder()
    finder(expr)
    return finder.typed, finder.calls


def is_integer_arithmetic(expr: Expression, *, calls: bool = True) -> bool:
    """Whether integers alone are computed in ``expr`` if all names in it are integers.

    ``calls`` says whether functions may be called for that.
    """
    if is_constant(expr):
        return isinstance(expr, (int, np.integer, np.bool_))
    typed, has_calls = _typed(expr)
    return not typed and (calls or not has_calls)


def divisions_in(expr: Expression) -> tuple[Expression, ...]:
    """All quotients ``a // b`` and remainders ``a % b`` in ``expr``, inner ones first."""
    found: dict[Key, Expression] = {}
    if not is_constant(expr):
        _DivisionCollector(found)(expr)
    return tuple(found.values())


def index_tuple(expr: prim.Subscript) -> tuple[Expression, ...]:
    """The subscript's indices, always as a tuple."""
    return expr.index if isinstance(expr.index, tuple) else (expr.index,)


@remembered(1 << 14)
def _accesses(expr: Expression) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    found: list[tuple[str, tuple[Expression, ...]]] = []
    _AccessCollector(found)(expr)
    return tuple(found)


def accesses(expr: Expression) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    """Every use of a name in ``expr`` as ``(name, indices)``; ``()`` for a bare name.

    Inames and sizes appear too, as bare names; the caller knows which is what.
    """
    return () if is_constant(expr) else _accesses(expr)


class ExpressionMapper(IdentityMapper):  # type: ignore[misc]
    """Rebuilds an expression; subclasses override what they change."""

    def map_reduction(self, expr: Reduction) -> Expression:
        return Reduction(expr.operation, expr.inames, self.rec(expr.operand), expr.dtype)

    def map_type_name(self, expr: TypeName) -> Expression:
        return expr

    def map_type_cast(self, expr: TypeCast) -> Expression:
        return TypeCast(expr.dtype, self.rec(expr.operand))

    def map_call(self, expr: prim.Call) -> Expression:
        return prim.Call(expr.function, tuple(self.rec(p) for p in expr.parameters))

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        return prim.Subscript(
            self.rec(expr.aggregate), tuple(self.rec(i) for i in index_tuple(expr))
        )


class _Substituter(ExpressionMapper):
    def __init__(self, values: Mapping[str, Expression]) -> None:
        super().__init__()
        self.values = values

    def map_variable(self, expr: prim.Variable) -> Expression:
        return self.values.get(expr.name, expr)

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
    return _Substituter(values)(expr)


def unlabelled(expr: Expression) -> Expression:
    """``expr`` with the names that the user gave, whichever instances they are of: for messages."""
    names = {n: prim.Variable(plain(n)) for n in variable_names(expr) if is_hidden(n)}
    return substitute(expr, names)


class _AccessReplacer(ExpressionMapper):
    def __init__(self, replace: Callable[[str, tuple[Expression, ...]], Expression | None]) -> None:
        super().__init__()
        self.replace = replace

    def map_variable(self, expr: prim.Variable) -> Expression:
        new = self.replace(expr.name, ())
        return expr if new is None else new

    def map_subscript(self, expr: prim.Subscript) -> Expression:
        indices = tuple(self.rec(i) for i in index_tuple(expr))
        new = self.replace(expr.aggregate.name, indices)
        return prim.Subscript(expr.aggregate, indices) if new is None else new


def replace_accesses(
    expr: Expression, replace: Callable[[str, tuple[Expression, ...]], Expression | None]
) -> Expression:
    """``expr`` with each access ``name[indices]`` replaced by what ``replace`` returns.

    ``replace`` sees indices already rewritten, ``()`` for a bare name, and
    returns None to keep an access.
    """
    return expr if is_constant(expr) else _AccessReplacer(replace)(expr)


def to_text(expr: Expression) -> str:
    """``expr`` as the user would write it in an instruction."""
    return str(Stringifier()(expr, PREC_NONE))


class PythonPrinter(Mapper):  # type: ignore[misc]
    """Prints integer expressions over sizes as Python source; ``spelled`` prints a name."""

    def __init__(self, spelled: Callable[[str], str]) -> None:
        super().__init__()
        self.spelled = spelled

    def joined(self, expr: Any, symbol: str) -> str:
        """Operands with a symbol between them."""
        return "(" + symbol.join(self.rec(c) for c in expr.children) + ")"

    def map_constant(self, expr: Expression) -> str:
        return repr(expr.item() if isinstance(expr, np.generic) else expr)

    def map_variable(self, expr: prim.Variable) -> str:
        return self.spelled(expr.name)

    def map_sum(self, expr: prim.Sum) -> str:
        return self.joined(expr, " + ")

    def map_product(self, expr: prim.Product) -> str:
        return self.joined(expr, " * ")

    def map_floor_div(self, expr: prim.FloorDiv) -> str:
        return f"({self.rec(expr.numerator)} // {self.rec(expr.denominator)})"

    def map_remainder(self, expr: prim.Remainder) -> str:
        return f"({self.rec(expr.numerator)} % {self.rec(expr.denominator)})"

    def map_min(self, expr: prim.Min) -> str:
        return ("min" if len(expr.children) > 1 else "") + self.joined(expr, ", ")

    def map_max(self, expr: prim.Max) -> str:
        return ("max" if len(expr.children) > 1 else "") + self.joined(expr, ", ")

    def map_comparison(self, expr: prim.Comparison) -> str:
        return f"({self.rec(expr.left)} {expr.operator} {self.rec(expr.right)})"

    def map_logical_and(self, expr: prim.LogicalAnd) -> str:
        return self.joined(expr, " and ")

    def map_logical_or(self, expr: prim.LogicalOr) -> str:
        return self.joined(expr, " or ")

    def map_logical_not(self, expr: prim.LogicalNot) -> str:
        return f"(not {self.rec(expr.child)})"

    def map_if(self, expr: prim.If) -> str:
        return f"({self.rec(expr.then)} if {self.rec(expr.condition)} else {self.rec(expr.else_)})"


def python_source(expr: Expression, spelled: Callable[[str], str]) -> str:
    """An integer expression over sizes as Python source, names as ``spelled`` prints them."""
    return str(PythonPrinter(spelled)(expr))


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
