"""The uses of an array or a rule that a copy replaces: their selection, and the cells they read.

Selected uses with a tag, ``x$near[i]``, get a separate name while a transform works on them.  A
data-dependent index, ``x[place[j]]``, ranges over all values that assertions about the index array
allow, within the bounds of the array.  Any other index that is not affine (``x[i*j]``) ranges over
the whole axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _footprint, _sets
from loopkit._arrays import ArrayArg, TemporaryVariable
from loopkit._assertions.asserted_cells import data_of, index_range
from loopkit._assertions.assertion_values import facts_of
from loopkit._assertions.follow import followed
from loopkit._errors import IllegalTransformError
from loopkit._expression import map_heads, replace_accesses, tagged_uses, to_text, variable_names
from loopkit._footprint import Axis, FootprintError, Range, Use, relative_range
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, are_decided, guarded_reads, where_all_hold
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._linear import Linear
from loopkit._match import name_first
from loopkit._nodes import Expression, TaggedVariable
from loopkit._poly.pairs import between, inside
from loopkit.transforms._rule_uses import map_reads, map_texts

Indices = tuple[Expression, ...]
Given = Sequence[tuple[Expression | slice, ...]]
"""Subscripts as :func:`loopkit._arguments.subscripts` gives them."""


def element(name: str, cells: Indices) -> Expression:
    """``name[cells]``, or the bare name of a scalar."""
    return prim.Subscript(prim.Variable(name), cells) if cells else prim.Variable(name)


def replace_reads(
    statement: Statement, name: str, new: Callable[[Indices], Expression | None]
) -> Statement:
    """The statement with reads of an array replaced; what it writes stays."""

    def one(found: str, indices: Indices) -> Expression | None:
        return new(indices) if found == name else None

    return map_reads(statement, lambda e: replace_accesses(e, one))


def uses_of(
    kernel: Kernel, statement: Statement, name: str, found: Sequence[tuple[Indices, Guards]]
) -> list[Use]:
    """Uses of ``name`` with these indices, under these conditions of the statement's text.

    Where data decide whether one happens, it may happen; where they choose an index, it may be
    all that is known of them.
    """
    if not found:
        return []
    domain = kernel.statement_domain(statement) & kernel.assumptions.set
    around = domain & where_all_hold(statement.predicates, kernel.integers)
    from_data = not _sets.involved_names(domain) <= kernel.integers
    domains: dict[Guards, isl.Set] = {(): around}
    shape = kernel.array(name).shape if kernel.is_array(name) else None
    uses = []
    for indices, guards in found:
        inner = tuple(g for g in guards if g not in statement.predicates)
        if inner not in domains:
            domains[inner] = around & where_all_hold(inner, kernel.integers)
        text = to_text(element(name, indices))
        by_data = from_data or not are_decided((*statement.predicates, *inner), kernel.integers)
        use = Use(statement, indices, text, domains[inner], around, by_data)
        uses.append(with_ranges(kernel, use, shape))
    return uses


def reads_in(statement: Statement, name: str) -> list[tuple[Indices, Guards]]:
    """The reads of an array in a statement's text (not the one that an update implies)."""
    return list(dict.fromkeys((i, g) for n, i, g in guarded_reads(statement) if n == name))


def reads_of(kernel: Kernel, statement: Statement, name: str) -> list[Use]:
    """The uses that :func:`reads_in` finds."""
    return uses_of(kernel, statement, name, reads_in(statement, name))


def find_box(
    kernel: Kernel,
    uses: Sequence[Use],
    swept: Sequence[str],
    what: str,
    more: Mapping[str, Range] = MappingProxyType({}),
) -> tuple[Axis, ...]:
    """The bounding box of the cells that ``uses`` access; its errors propose what to do.

    ``more`` holds further names that are not inames, and their ranges.
    """
    try:
        check_ranges(kernel, uses)
        ranges = _footprint.iname_ranges(kernel, swept)
        return _footprint.bounding_box(uses, {**ranges, **more})
    except _footprint.FootprintError as error:
        raise IllegalTransformError(
            f"{what} has no footprint of constant size: {error.why}", instead=error.instead
        ) from None


@dataclass(frozen=True, eq=False)
class Selected:
    """The selected uses of the array or rule ``of``: in ``kernel`` they are uses of ``name``.

    Without a tag all uses are selected, and ``name`` is the original name.
    """

    kernel: Kernel
    given: str
    name: str
    of: str
    tag: str | None = None

    def users(self, kernel: Kernel) -> list[str]:
        """The statements with selected uses, in a kernel where these have the original name."""
        if self.tag is None:
            return [s.id for s in kernel.readers.get(self.of, ())]
        return [s.id for s in kernel.statements if (self.of, self.tag) in s.tagged]

    def restored(self, new: Kernel) -> Kernel:
        """The kernel in which remaining uses have their name and, in old statements, their tag."""
        if self.tag is None:
            return new
        mine, left = (k.rule_by_name.get(self.name) for k in (self.kernel, new))
        if mine is not None and left is not None and left.arguments != mine.arguments:
            return new  # which inames its value depends on, other uses of it say, too
        tagged, plain = TaggedVariable(self.of, self.tag), prim.Variable(self.of)
        new = map_texts(new, partial(_called, {self.name: tagged}), self.kernel.statement_by_id)
        new = map_texts(new, partial(_called, {self.name: plain}), rules=False)
        return new.with_(
            substitutions=tuple(r for r in new.substitutions if r.name != self.name),
            args=tuple(a for a in new.args if a.name != self.name),
            temporaries=tuple(t for t in new.temporaries if t.name != self.name),
        )


def _called(heads: Mapping[str, prim.Variable], expr: Expression) -> Expression:
    """An expression with other heads of what is accessed or used."""
    return map_heads(expr, lambda head: heads.get(head.name, head))


def uses_of_array(kernel: Kernel, given: str, *, writes: bool = False) -> Selected:
    """The accesses that ``"x"`` or ``"x$near"`` means; what is written only with ``writes``.

    Raises :class:`IllegalTransformError` where none has the tag.
    """
    of, _, tag = name_first(kernel, given).partition("$")
    return _selected(kernel, given, kernel.array(of), tag, reads=not writes)


def uses_of_rule(kernel: Kernel, given: str) -> Selected:
    """The uses of a rule that ``"f"`` or ``"f$near"`` means.

    Raises :class:`IllegalTransformError` where none has the tag.
    """
    of, _, tag = given.partition("$")
    return _selected(kernel, given, kernel.rule_by_name[of], tag, reads=True)


def _selected(
    kernel: Kernel,
    given: str,
    own: ArrayArg | TemporaryVariable | SubstitutionRule,
    tag: str,
    *,
    reads: bool,
) -> Selected:
    """The kernel in which uses of ``own`` with a tag are of another name, which means the same."""
    of = own.name
    if not tag:
        return Selected(kernel, given, of, of)
    bound = {a for rule in kernel.substitutions for a in rule.arguments}
    head = prim.Variable(kernel.fresh_name(f"{of}_{tag}", bound))
    wanted = TaggedVariable(of, tag)

    def chosen(expr: Expression) -> Expression:
        return map_heads(expr, lambda found: head if found == wanted else found)

    renamed = map_texts(kernel, chosen, reads=reads)
    if renamed == kernel:
        raise _no_such_tag(kernel, of, tag)
    alike = replace(own, name=head.name)
    if isinstance(alike, SubstitutionRule):
        renamed = renamed.with_(substitutions=(*renamed.substitutions, alike))
    elif isinstance(alike, ArrayArg):
        renamed = renamed.with_(args=(*renamed.args, alike))
    else:
        renamed = renamed.with_(temporaries=(*renamed.temporaries, alike))
    return Selected(renamed, given, head.name, of, tag)


def _no_such_tag(kernel: Kernel, of: str, tag: str) -> IllegalTransformError:
    found = frozenset().union(*(s.tagged for s in kernel.statements))
    found = found.union(*(tagged_uses(rule.expression) for rule in kernel.substitutions))
    tags = sorted(t for name, t in found if name == of)
    return IllegalTransformError(
        f"no use of '{of}' that could be meant has the tag '{tag}'",
        instead=f"tagged uses are {', '.join(f'{of}${t}' for t in tags)}"
        if tags
        else f"a use is tagged in the text: {of}${tag}[...]",
    )


def with_ranges(kernel: Kernel, use: Use, shape: Sequence[Expression] | None) -> Use:
    """A use of what has ``shape`` (None for a rule), with ranges of the indices that data choose.

    Those of which nothing is known that gives them a constant range stay as they are.
    """
    domain, around = use.domain, use.around
    chosen: dict[int, tuple[str, Range]] = {}
    for axis, index in enumerate(use.indices):
        if not _is_chosen(kernel, index):
            continue
        name = hidden("chosen", use.statement.id, axis, to_text(index))
        extent = None if shape is None else shape[axis]
        there = _sets.universe()
        if extent is not None and _sets.is_pw_affine(extent):
            there = inside(prim.Variable(name), extent)
        source = followed(kernel, use.statement, index)
        known = there & (domain if around is None else around)
        values = index_range(kernel.assertions, source, name, data_of(kernel), known)
        found = _range_in(values, name)
        if found is None:
            continue
        chosen[axis] = name, found
        first = found.lower
        where = between(name, first.expression, (first + found.span).expression) & there
        domain = domain & where
        around = None if around is None else around & where
    if not chosen:
        return use
    return replace(use, domain=domain, around=around, by_data=True, chosen=chosen)


def check_ranges(kernel: Kernel, uses: Sequence[Use]) -> None:
    """Raise :class:`FootprintError` where a data-dependent index has no known range."""
    for use in uses:
        for axis, index in enumerate(use.indices):
            if axis in use.chosen or not _reads_data(kernel, index):
                continue
            names = variable_names(followed(kernel, use.statement, index))
            bounded = facts_of(kernel.assertions).bounds
            arrays = sorted(n for n in names if isinstance(kernel.arg_by_name.get(n), ArrayArg))
            open_ = next((n for n in arrays if n not in bounded), None)
            said = f"assume_within('{open_}', 0, 64) would say that they are among 64; " * bool(
                open_
            )
            raise FootprintError(
                f"data choose the cells of {use.text} along axis {axis}, and nothing says that "
                "they are a constant number",
                f"{said}fix_parameters(...) makes sizes numbers that are in extents and bounds; "
                "`within` can leave this access out",
            )


def _reads_data(kernel: Kernel, index: Expression) -> bool:
    return any(map(kernel.is_array, variable_names(index)))


def _is_chosen(kernel: Kernel, index: Expression) -> bool:
    """Whether an index is not affine, so that sets do not describe it."""
    return _reads_data(kernel, index) or not _sets.is_pw_affine(index)


def _range_in(domain: isl.Set, name: str) -> Range | None:
    """Constants between which a name is, or how far it is from other names: what is closer."""
    low, high = _sets.value_range(domain, prim.Variable(name))
    relative = relative_range(domain.simple_hull().to_set(), name)
    if low is None or high is None:
        return relative
    alone = Range(Linear({}, low), high - low)
    return relative if relative is not None and relative.span < alone.span else alone
