"""Rules as functions of all that their values depend on: of free inames, not of data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import pymbolic.primitives as prim

from loopkit import _expression, _sets
from loopkit._footprint import Use
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._linear import Linear, linear_in_parts
from loopkit._nodes import Expression, tagged_like
from loopkit._rules import expand_in
from loopkit.transforms._rows import Rows
from loopkit.transforms._uses import Given, Indices


def with_free_inames(
    kernel: Kernel, rule: SubstitutionRule, wanted: Collection[str]
) -> tuple[Kernel, SubstitutionRule]:
    """The kernel where a rule takes those of the ``wanted`` inames that its value depends on.

    Before: f(x) := a[i, x], used as f(j)      After: f(x, i) := a[i, x], used as f(j, i)
    """
    body = expand_in(rule.expression, kernel.rule_by_name)
    free = _expression.unbound_names(body) - {*rule.arguments}
    added = tuple(i for i in kernel.all_inames if i in free and i in wanted)
    if not added:
        return kernel, rule
    more = tuple(map(prim.Variable, added))
    new = replace(rule, arguments=(*rule.arguments, *added), expression=body)
    renamed = _with_uses(kernel, rule.name, lambda old: prim.Call(_function(rule), (*old, *more)))
    rules = tuple(new if r.name == rule.name else r for r in renamed.substitutions)
    return renamed.with_(substitutions=rules), new


@dataclass(frozen=True, eq=False)
class Bound:
    """A rule with other arguments than it had, and uses of that.

    ``spanning`` are the invocations that a footprint is spanned by, of the ``rule`` now.  ``old``
    makes of its arguments those of the rule that it was, which may have been another ``before``.
    """

    kernel: Kernel
    rule: SubstitutionRule
    spanning: Given | None
    old: Callable[[Indices], Indices] | None = None
    before: Bound | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules that were made, the last one first."""
        mine = () if self.old is None else (self.rule.name,)
        return mine if self.before is None else (*mine, *self.before.names)

    def arguments(self, now: Indices) -> Indices:
        """The arguments of a use of the rule as it was."""
        cells = self.old(now) if self.old else now
        return cells if self.before is None else self.before.arguments(cells)

    def restored(self, kernel: Kernel, name: str) -> Kernel:
        """The kernel where uses that are left are of the rule ``name`` again, as they were."""
        if self.old is None:
            return kernel

        def use(now: Indices) -> Expression:
            return prim.Call(prim.Variable(name), self.arguments(now))

        kernel = _with_uses(kernel, self.rule.name, use)
        return kernel if self.before is None else self.before.restored(kernel, name)


def told_apart(
    kernel: Kernel,
    rule: SubstitutionRule,
    uses: Callable[[Kernel, SubstitutionRule], Sequence[Use]],
    swept: Collection[str],
    spanning: Given | None = None,
) -> Bound:
    """The kernel where a rule has arguments that are affine, as far as uses let it.

    ``uses`` finds those of a rule; ``spanning`` are invocations of it.
    """
    rows = in_rows(kernel, rule, uses(kernel, rule), spanning)
    kernel, rule = rows.kernel, rows.rule
    bound = without_data(kernel, rule, uses(kernel, rule), swept, rows.spanning)
    if rows.old is None or bound.old is None:
        return bound if rows.old is None else rows
    return replace(bound, before=rows)


def in_rows(
    kernel: Kernel, rule: SubstitutionRule, uses: Sequence[Use], spanning: Given | None = None
) -> Bound:
    """The kernel where a rule that counts through rows of any length takes row and column.

    Before: f(x) := sin(a[x]), used as f((i + 1)*n + j)
    After: f(x_n, x) := sin(a[x_n*n + x]), used as f(i + 1, j)

    Where invocations are given, ``spanning``, these say which rows; other uses stay.
    """
    rank = len(rule.arguments)
    invoked: Given = spanning or [use.indices for use in uses]
    if not all(len(cells) == rank for cells in invoked):
        return Bound(kernel, rule, spanning)
    rows = [Rows(kernel, [cells[number] for cells in invoked]) for number in range(rank)]

    def apart(old: Sequence[Expression | slice]) -> tuple[Expression | slice, ...] | None:
        parts = [row.apart(index) for row, index in zip(rows, old, strict=True)]
        known = [part for part in parts if part is not None]
        return tuple(chain.from_iterable(known)) if len(known) == rank else None

    if not any(row.lengths for row in rows):
        return Bound(kernel, rule, spanning)
    new_name = kernel.fresh_name(f"{rule.name}_rows")
    taken = {*rule.arguments, new_name}
    names: list[str] = []
    values: dict[str, Expression] = {}
    for row, argument in zip(rows, rule.arguments, strict=True):
        mine = [argument]
        for length in reversed(row.lengths[:-1]):
            name = kernel.fresh_name("_".join([argument, *(f.name for f in length)]), taken)
            mine.insert(0, name)
            taken.add(name)
        values[argument] = row.together([*map(prim.Variable, mine)])
        names += mine
    expression = _expression.substitute(rule.expression, values)
    new = SubstitutionRule(new_name, tuple(names), expression)

    written: dict[Indices, Indices] = {}

    def use(old: Indices) -> Expression:
        now = apart(old)
        if now is None:
            return prim.Call(prim.Variable(rule.name), old)
        written.setdefault(now, old)
        return prim.Call(prim.Variable(new.name), now)

    def before(now: Indices) -> Indices:
        if now in written:
            return written[now]
        left, whole = [*now], []
        for row in rows:
            count = len(row.lengths) or 1
            whole.append(row.together(left[:count]))
            left = left[count:]
        return tuple(whole)

    changed = _with_uses(kernel, rule.name, use, {u.statement.id for u in uses})
    changed = changed.with_(substitutions=(*changed.substitutions, new))
    now = spanning and [apart(cells) or () for cells in spanning]
    return Bound(changed, new, now, before)


def without_data(
    kernel: Kernel,
    rule: SubstitutionRule,
    uses: Sequence[Use],
    swept: Collection[str],
    spanning: Given | None = None,
) -> Bound:
    """The kernel where what is not affine in arguments is part of a rule, if all uses agree on it.

    Before: f(x) := sin(a[x]), used as f(place[j])         After: f := sin(a[place[j]]), used as f
    Before: f(x) := sin(a[x]), used as f(p[i] + j + 1)     After: f(x) := sin(a[p[i] + x]), f(j + 1)

    Where invocations are given, ``spanning``, these are to agree; uses that do not stay.
    """
    invoked = spanning or [use.indices for use in uses]
    if not all(len(cells) == len(rule.arguments) for cells in invoked):
        return Bound(kernel, rule, spanning)  # which is told where they span a box
    bases: dict[int, Expression] = {}
    for number in range(len(rule.arguments)):
        values = dict.fromkeys(_start(cells[number]) for cells in invoked)
        strange = [strange_parts(linear_in_parts(value), kernel.integers) for value in values]
        if not any(strange) or any(s != strange[0] for s in strange):
            continue
        alike = {u.indices[number]: None for u in uses} if spanning else {}
        values |= {
            v: None
            for v in alike
            if strange_parts(linear_in_parts(v), kernel.integers) == strange[0]
        }
        bases[number] = _base_of(list(values), Linear(strange[0]), swept)
    if not bases:
        return Bound(kernel, rule, spanning)

    def rest(old: Expression, number: int) -> Expression:
        return _apart(old, bases[number]) if number in bases else old

    def agrees(old: Indices) -> bool:
        return all(
            not strange_parts(linear_in_parts(rest(old[n], n)), kernel.integers) for n in bases
        )

    given = [u.indices for u in uses if agrees(u.indices)]
    given += [tuple(map(_start, cells)) for cells in invoked]
    gone = {n for n in bases if all(rest(old[n], n) == 0 for old in given)}
    kept = [n for n in range(len(rule.arguments)) if n not in gone]
    values_of = {
        (name := rule.arguments[n]): base if n in gone else prim.Sum((base, prim.Variable(name)))
        for n, base in bases.items()
    }
    name = kernel.fresh_name(f"{rule.name}_rest")
    expression = _expression.substitute(rule.expression, values_of)
    new = SubstitutionRule(name, tuple(rule.arguments[n] for n in kept), expression)

    def use(old: Indices) -> Expression:
        if not agrees(old):
            return prim.Call(prim.Variable(rule.name), old)
        now = tuple(rest(old[n], n) for n in kept)
        return prim.Call(prim.Variable(name), now) if kept else _function(new)

    def before(now: Indices) -> Indices:
        whole = dict(bases)
        for number, index in zip(kept, now, strict=False):  # behind them may be free inames
            if number in bases:
                index = (linear_in_parts(bases[number]) + linear_in_parts(index)).expression
            whole[number] = index
        return tuple(whole[number] for number in range(len(rule.arguments)))

    ids = {u.statement.id for u in uses}
    changed = _with_uses(kernel, rule.name, use, ids)
    changed = changed.with_(substitutions=(*changed.substitutions, new))
    now = spanning and [tuple(_each(c[n], partial(rest, number=n)) for n in kept) for c in spanning]
    return Bound(changed, new, now, before)


def _start(index: Expression | slice) -> Expression:
    """An index, or where a range of them begins."""
    return (index.start or 0) if isinstance(index, slice) else index


def _each(
    index: Expression | slice, change: Callable[[Expression], Expression]
) -> Expression | slice:
    """An index changed, or both ends of a range."""
    if not isinstance(index, slice):
        return change(index)
    ends = [None if end is None else change(end) for end in (index.start or 0, index.stop)]
    return slice(*ends)


def _base_of(values: Sequence[Expression], strange: Linear, swept: Collection[str]) -> Expression:
    """What of an argument of a rule becomes part of its value: what is ``strange`` in all uses.

    All of the first value, where others are constants away and nothing is swept that what is not
    affine does not move with: the argument is that constant, and not one more axis that moves.
    """
    forms = [linear_in_parts(value) for value in values]
    first = forms[0]
    has_own = not (first - strange).names.intersection(swept) <= strange.names
    if has_own or not all(first.same_terms(form) for form in forms):
        return strange.expression
    return values[0]


def _apart(value: Expression, base: Expression) -> Expression:
    """What a value is more than what it begins with."""
    return (linear_in_parts(value) - linear_in_parts(base)).expression


def strange_parts(form: Linear, integers: frozenset[str]) -> dict[Expression, int]:
    """The terms of a form that are not affine in inames and sizes, nor made of such pieces."""
    return {
        atom: c
        for atom, c in form.terms.items()
        if not (_expression.variable_names(atom) <= integers and _sets.is_pw_affine(atom))
    }


def _function(rule: SubstitutionRule) -> prim.Variable:
    return prim.Variable(rule.name)


class Uses(_expression.ExpressionMapper):
    """Replaces the uses of a rule by what ``new`` makes of their arguments."""

    def __init__(self, name: str, new: Callable[[Indices], Expression]) -> None:
        super().__init__()
        self.name = name
        self.new = new

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name == self.name:
            return tagged_like(expr, self.new(arguments))
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        return self.new(()) if expr.name == self.name else expr


def _with_uses(
    kernel: Kernel,
    name: str,
    new: Callable[[Indices], Expression],
    ids: Collection[str] | None = None,
) -> Kernel:
    """The kernel with other uses of a rule: everywhere, or in the statements ``ids`` alone."""
    uses = Uses(name, new)

    def rewritten(expr: Expression) -> Expression:
        return uses(expr) if name in _expression.called_names(expr) else expr

    statements = tuple(
        s.map_expressions(rewritten) if ids is None or s.id in ids else s for s in kernel.statements
    )
    rules = kernel.substitutions
    if ids is None:
        rules = tuple(
            r if r.name == name else replace(r, expression=rewritten(r.expression)) for r in rules
        )
    return kernel.with_(statements=statements, substitutions=rules)
