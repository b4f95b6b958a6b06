"""Names in expressions under construction, seen through substitution rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pymbolic.primitives as prim

from loopkit._expression import ExpressionMapper, _NameCollector, is_constant, variable_names
from loopkit._kernel import Statement, SubstitutionRule
from loopkit._nodes import Expression, Reduction
from loopkit._rules import expand_in
from loopkit._spelling import candidates
from loopkit._syntax import REDUCTIONS

Rules = Mapping[str, SubstitutionRule]


class _FunctionCollector(_NameCollector):
    def map_variable(self, expr: prim.Variable) -> None:
        self.found.add(expr.name)

    def map_call(self, expr: prim.Call) -> None:
        self.found.add(expr.function.name)
        super().map_call(expr)


class _FreeNames(_NameCollector):
    def map_reduction(self, expr: Reduction) -> None:
        inside: set[str] = set()
        _FreeNames(inside)(expr.operand)
        self.found.update(inside.difference(expr.inames))


class _OutsideReductions(_NameCollector):
    """Names that stand outside of everything that could be a reduction."""

    def __init__(self, found: set[str], operations: frozenset[str]) -> None:
        super().__init__(found)
        self.operations = operations

    def map_call(self, expr: prim.Call) -> None:
        if expr.function.name not in self.operations:
            super().map_call(expr)

    def map_max(self, expr: prim.Max) -> None:
        if len(expr.children) != 2 or not isinstance(expr.children[0], prim.Variable):
            for child in expr.children:
                self.rec(child)

    map_min = map_max


class _ReductionFinder(_NameCollector):
    """Whether something could be a reduction, and whether something is one."""

    def __init__(self, operations: frozenset[str]) -> None:
        super().__init__(set())
        self.operations = operations
        self.is_one = False
        self.could_be_one = False

    def map_call(self, expr: prim.Call) -> None:
        if expr.function.name in self.operations:
            self.could_be_one = True
        if expr.parameters and isinstance(expr.parameters[0], tuple):
            self.could_be_one = True
            return
        super().map_call(expr)

    def map_max(self, expr: prim.Max) -> None:
        if len(expr.children) == 2 and isinstance(expr.children[0], prim.Variable):
            self.could_be_one = True
        for child in expr.children:
            self.rec(child)

    map_min = map_max

    def map_reduction(self, expr: Reduction) -> None:
        self.is_one = True


class _ReductionCollector(ExpressionMapper):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Reduction] = []

    def map_reduction(self, expr: Reduction) -> Expression:
        self.found.append(expr)
        return super().map_reduction(expr)


class _ValueNames(_NameCollector):
    def map_subscript(self, expr: prim.Subscript) -> None:
        return None


def names_in_values(statement: Statement) -> frozenset[str]:
    """The names that a statement's conditions and value use, other than in subscripts."""
    found: set[str] = set()
    for expr in (*statement.predicates, statement.rhs):
        if not is_constant(expr):
            _ValueNames(found)(expr)
    return frozenset(found)


_INDEXING = (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder, prim.Min, prim.Max)


def _is_index(expr: Expression) -> bool:
    """Whether an expression is what indices are computed with: names, integers, no division."""
    if isinstance(expr, prim.FloorDiv | prim.Remainder):
        return _is_index(expr.numerator) and _is_index(expr.denominator)
    if isinstance(expr, _INDEXING):
        return all(_is_index(child) for child in expr.children)
    return isinstance(expr, prim.Variable) or type(expr) is int


class _Compared(_NameCollector):
    """Names in comparisons of index expressions in which an iname stands."""

    def __init__(self, found: set[str], inames: Collection[str]) -> None:
        super().__init__(found)
        self.inames = inames

    def map_variable(self, expr: prim.Variable) -> None:
        return None

    def map_reduction(self, expr: Reduction) -> None:
        self.rec(expr.operand)

    def map_comparison(self, expr: prim.Comparison) -> None:
        if _is_index(expr.left) and _is_index(expr.right):
            names = variable_names(expr.left) | variable_names(expr.right)
            if any(name in self.inames for name in names):
                self.found.update(names.difference(self.inames))
        self.rec(expr.left)
        self.rec(expr.right)


def names_beside_inames(statement: Statement, inames: Collection[str]) -> frozenset[str]:
    """The names that a statement compares with inames, as it would compare sizes."""
    found: set[str] = set()
    for expr in (*statement.predicates, statement.rhs):
        if not is_constant(expr):
            _Compared(found, inames)(expr)
    return frozenset(found)


def reductions_in(expr: Expression) -> list[Reduction]:
    """All reductions in ``expr``, outer ones before those inside them."""
    if is_constant(expr):
        return []
    collector = _ReductionCollector()
    collector(expr)
    return collector.found


def functions_and_names(expr: Expression) -> frozenset[str]:
    """All names in ``expr``, those of functions and rules included."""
    if is_constant(expr):
        return frozenset()
    found: set[str] = set()
    _FunctionCollector(found)(expr)
    return frozenset(found)


def free_names(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, without the inames that its reductions run over."""
    if is_constant(expr):
        return frozenset()
    if not has_reduction(expr):
        return variable_names(expr)
    found: set[str] = set()
    _FreeNames(found)(expr)
    return frozenset(found)


def names_outside_reductions(expr: Expression, operations: frozenset[str]) -> frozenset[str]:
    """The names that stand outside of every call that could be a reduction."""
    if is_constant(expr):
        return frozenset()
    found: set[str] = set()
    _OutsideReductions(found, operations)(expr)
    return frozenset(found)


def has_reduction(expr: Expression) -> bool:
    """Whether a :class:`Reduction` node stands in ``expr``."""
    if is_constant(expr):
        return False
    finder = _ReductionFinder(frozenset())
    finder(expr)
    return finder.is_one


def could_reduce(expr: Expression, operations: frozenset[str] = REDUCTIONS) -> bool:
    """Whether some call in ``expr`` could be a reduction."""
    if is_constant(expr):
        return False
    finder = _ReductionFinder(operations)
    finder(expr)
    return finder.could_be_one


class RuleBook:
    """Substitution rules, with those that hold reductions told apart.

    A rule that reduces cannot stay a rule: its loops belong to the statement
    that uses it, so it is expanded when the statement is made.
    """

    def __init__(self, rules: Rules, operations: frozenset[str]) -> None:
        self.rules = rules
        self.names = frozenset(rules)
        reducing = {n for n, r in rules.items() if could_reduce(r.expression, operations)}
        uses = {n: functions_and_names(r.expression) & self.names for n, r in rules.items()}
        changed = True
        while changed and reducing:
            more = {n for n in rules if uses[n] & reducing} - reducing
            reducing |= more
            changed = bool(more)
        self.reducing: Rules = {n: rules[n] for n in rules if n in reducing}

    @property
    def kept(self) -> tuple[SubstitutionRule, ...]:
        """The rules that stay rules."""
        return tuple(r for n, r in self.rules.items() if n not in self.reducing)

    def without_reductions(self, expr: Expression) -> Expression:
        """``expr`` with the uses of reducing rules expanded."""
        if not self.reducing or not functions_and_names(expr) & self.reducing.keys():
            return expr
        return expand_in(expr, self.reducing)

    def expanded(self, expr: Expression) -> Expression:
        """``expr`` with all rules expanded."""
        if not self.rules or not functions_and_names(expr) & self.names:
            return expr
        return expand_in(expr, self.rules)


def fresh_names(base: str, taken: set[str]) -> Iterator[str]:
    """``base``, ``base_0``, ``base_1``, ...: those not in ``taken``, which grows."""
    for name in candidates(base):
        if name not in taken:
            taken.add(name)
            yield name
