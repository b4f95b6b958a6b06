"""Changes of the arguments of substitution rules, so that a rule's value depends on these alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import chain, islice

import pymbolic.primitives as prim

from loopkit import _expression, _sets
from loopkit._expression import Mapped, mapped
from loopkit._footprint import Use
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._linear import Linear, linear_in_parts
from loopkit._nodes import Expression, tagged_like
from loopkit._rules import expand_in
from loopkit.transforms._rows import Index, Rows, ends_of
from loopkit.transforms._rule_uses import map_texts, use_of
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


@dataclass(frozen=True)
class _Rest:
    """The part of an argument that is no part of a rule: what its values have beyond a ``base``.

    Of what ``is_gone`` nothing is left, and the argument neither; without a base it stays.
    """

    base: Expression | None
    is_gone: bool
    integers: frozenset[str]

    def names(self, argument: str, fresh: Callable[[str], str]) -> list[str]:
        return [] if self.is_gone else [argument]

    def apart(self, value: Index) -> tuple[Index, ...] | None:
        if self.base is None:
            return (value,)
        if isinstance(value, slice):
            start, stop = value.start or 0, value.stop
            ends = (_apart(start, self.base), stop if stop is None else _apart(stop, self.base))
            return () if self.is_gone else (slice(*ends),)
        rest = _apart(value, self.base)
        if strange_parts(linear_in_parts(rest), self.integers):
            return None
        return () if self.is_gone else (rest,)

    def together(self, parts: Sequence[Expression]) -> Expression:
        if self.base is None:
            return parts[0]
        return self.base if self.is_gone else prim.Sum((self.base, parts[0]))


Parts = Sequence[Rows | _Rest]
"""How each argument of a rule is told by others: by row and column, or by what is left of it."""


def told_apart(
    kernel: Kernel,
    rule: SubstitutionRule,
    uses: Callable[[Kernel, SubstitutionRule], Sequence[Use]],
    swept: Collection[str],
    spanning: Given | None = None,
) -> Bound:
    """The kernel with a rule whose arguments are affine in all uses, as far as possible.

    ``uses`` finds the uses of a rule; ``spanning`` are invocations of it that the caller gave.
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
    columns = _columns(rule, uses, spanning)
    rows = [Rows(kernel, column) for column in columns or ()]
    if not any(row.lengths for row in rows):
        return Bound(kernel, rule, spanning)
    return _with_parts(kernel, rule, uses, spanning, rows, "rows")


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
    columns = _columns(rule, uses, spanning)
    if columns is None:
        return Bound(kernel, rule, spanning)  # which is told where they span a box
    rests: list[_Rest] = []
    for number, column in enumerate(columns):
        values = dict.fromkeys(ends_of(cell)[0] for cell in column)
        strange = [strange_parts(linear_in_parts(value), kernel.integers) for value in values]
        if not any(strange) or any(s != strange[0] for s in strange):
            rests.append(_Rest(None, False, kernel.integers))
            continue
        used = dict.fromkeys(use.indices[number] for use in uses)
        values |= {
            v: None
            for v in used
            if strange_parts(linear_in_parts(v), kernel.integers) == strange[0]
        }
        base = _base_of(list(values), Linear(strange[0]), swept)
        rests.append(_Rest(base, False, kernel.integers))
    if all(rest.base is None for rest in rests):
        return Bound(kernel, rule, spanning)
    agreeing = [use.indices for use in uses if _all_apart(rests, use.indices) is not None]
    for number, (rest, column) in enumerate(zip(rests, columns, strict=True)):
        starts = [*(i[number] for i in agreeing), *(ends_of(cell)[0] for cell in column)]
        if rest.base is not None and all(_apart(start, rest.base) == 0 for start in starts):
            rests[number] = replace(rest, is_gone=True)
    return _with_parts(kernel, rule, uses, spanning, rests, "rest")


def _columns(
    rule: SubstitutionRule, uses: Sequence[Use], spanning: Given | None
) -> list[list[Index]] | None:
    """The values of each argument in invocations that are given, or in all uses.

    None where these have more or fewer arguments.
    """
    rank = len(rule.arguments)
    invoked: Given = spanning or [use.indices for use in uses]
    if not all(len(cells) == rank for cells in invoked):
        return None
    return [[cells[number] for cells in invoked] for number in range(rank)]


def _all_apart(parts: Parts, old: Sequence[Index]) -> tuple[Index, ...] | None:
    """All arguments in parts; None where one has none."""
    found = [part.apart(index) for part, index in zip(parts, old, strict=True)]
    known = [part for part in found if part is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(found) else None


def _with_parts(
    kernel: Kernel,
    rule: SubstitutionRule,
    uses: Sequence[Use],
    spanning: Given | None,
    parts: Parts,
    suffix: str,
) -> Bound:
    """The kernel where a rule takes the parts of its arguments, as far as uses have these."""
    name = kernel.fresh_name(f"{rule.name}_{suffix}")
    fresh = kernel.fresh_names({*rule.arguments, name})
    names = [part.names(a, fresh) for part, a in zip(parts, rule.arguments, strict=True)]

    def together(now: Sequence[Expression]) -> Indices:
        left = iter(now)
        return tuple(
            part.together([*islice(left, len(its))]) for part, its in zip(parts, names, strict=True)
        )

    arguments = tuple(chain.from_iterable(names))
    values = dict(zip(rule.arguments, together([*map(prim.Variable, arguments)]), strict=True))
    new = SubstitutionRule(name, arguments, _expression.substitute(rule.expression, values))
    written: dict[Indices, Indices] = {}

    def use(old: Indices) -> Expression:
        now = _all_apart(parts, old)
        if now is None:
            return prim.Call(prim.Variable(rule.name), old)
        written.setdefault(now, old)
        return use_of(name, now)

    def before(now: Indices) -> Indices:
        now = now[: len(arguments)]  # behind them may be free inames
        return written[now] if now in written else together(now)

    changed = _with_uses(kernel, rule.name, use, {u.statement.id for u in uses})
    changed = changed.with_(substitutions=(*changed.substitutions, new))
    now = spanning and [_all_apart(parts, cells) or () for cells in spanning]
    return Bound(changed, new, now, before)


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


def replace_uses(expr: Expression, name: str, new: Callable[[Indices], Expression]) -> Expression:
    """``expr`` with the uses of a rule replaced by what ``new`` makes of their arguments."""

    def call(use: prim.Call, inside: Mapped) -> Expression:
        arguments = tuple(map(inside, use.parameters))
        if use.function.name == name:
            return tagged_like(use, new(arguments))
        return prim.Call(use.function, arguments)

    def variable(use: prim.Variable, inside: Mapped) -> Expression:
        return new(()) if use.name == name else use

    return mapped(expr, call=call, variable=variable)


def _with_uses(
    kernel: Kernel,
    name: str,
    new: Callable[[Indices], Expression],
    ids: Collection[str] | None = None,
) -> Kernel:
    """The kernel with other uses of a rule: everywhere, or in the statements ``ids`` alone."""

    def rewritten(expr: Expression) -> Expression:
        return replace_uses(expr, name, new) if name in _expression.called_names(expr) else expr

    return map_texts(kernel, rewritten, ids, rules=ids is None)
