"""Whether steps that no affine map describes do what they claim, and nothing else.

A step that renumbers iterations is compared literally: the tree must have the new loops in place
of the old ones, directly nested, and every statement must be unchanged but for the old inames'
values. That the new loops run through the old iterations in order is an arithmetic fact for all
sizes (:mod:`loopkit._change`), which is checked by enumeration for small ones.

After a step that takes a factor out of a sum, reads see other values than before: what is added
equals the factor times the new summand, and what is read is multiplied by the factor. The factor
must have the same value at each addition and each read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product, zip_longest
from typing import TYPE_CHECKING

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, ValueArg, is_computed
from loopkit._change import (
    Factored,
    Joined,
    Renumbered,
    added_by,
    known_of_count,
    known_of_sizes,
    multiplied,
)
from loopkit._check.value_types import ValueTypes
from loopkit._expression import accesses, evaluate, is_constant, substitute, variable_names
from loopkit._nodes import Expression
from loopkit._points import points_of
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._polynomials import NoPolynomialError, are_one_polynomial, polynomial
from loopkit._promotion import INTEGER, dtype_name
from loopkit._tree import Loop, Node, Tree

if TYPE_CHECKING:
    from loopkit._kernel import Domain, Kernel, Statement


def not_renumbered(before: Kernel, after: Kernel, claim: Renumbered) -> str:
    """Why ``after`` is not ``before`` with loops renumbered as claimed; empty if it is."""
    old, new = frozenset(claim.old), frozenset(claim.new)
    if new & before.all_names or len(new) < len(claim.new):
        return "a new iname has a name that there is already"
    if old & before.iname_tags.keys():
        return f"'{min(old & before.iname_tags.keys())}' is tagged"
    if old & {iname for iname, _, _ in before.slabs}:
        return "a loop has slabs"
    if any(old & variable_names(r.expression) - {*r.arguments} for r in before.substitutions):
        return "a rule uses the inames"
    if any(0 < len(old & s.inames) < len(old) for s in before.statements):
        return "a statement is inside some of the loops only"
    for wrong in (_in_sizes, _in_domains, _in_numbers):
        if why := wrong(before, after, claim):
            return why
    expected = before.with_(
        args=after.args,
        assumptions=after.assumptions,
        domains=after.domains,
        statements=tuple(_renumbered(s, claim) for s in before.statements),
        tree=_with_loops(before.tree, claim.old, claim.new),
    )
    return "" if expected == after else "more would change than the numbers of these loops"


def _in_sizes(before: Kernel, after: Kernel, claim: Renumbered) -> str:
    """What is wrong with the sizes: at most one new one is allowed, computed and nonnegative."""
    more = after.args[len(before.args) :]
    names = {a.name for a in more}
    allowed = variable_names(claim.count) if isinstance(claim, Joined) else frozenset()
    is_new = names <= allowed - before.all_names
    if after.args[: len(before.args)] != before.args or not is_new:
        return "the arguments would be others"
    known = known_of_sizes(before)
    if isinstance(claim, Joined):
        count, counts = claim.count, after.computed_sizes
        made = counts.get(count.name, count) if isinstance(count, prim.Variable) else count
        whole = substitute(claim.product, before.computed_sizes)
        if not are_one_polynomial(whole, made):
            return "the count is not the product of the lengths"
        for size in more:
            if not is_computed(size) or size.dtype is None or size.dtype.kind not in "iu":
                return "the count is no computed size"
            known = known_of_count(known, claim, size.name)
    return "" if known.is_subset(after.assumptions.set) else "more would be assumed of sizes"


def _in_domains(before: Kernel, after: Kernel, claim: Renumbered) -> str:
    """What is wrong with the domains: those of the inames must be boxes of their own."""
    old, new = frozenset(claim.old), frozenset(claim.new)
    whole, rest = _taken(before, old)
    its, others = _taken(after, new)
    if whole is None or its is None:
        return "the loops have a domain together with others"
    if [d.text for d in rest] != [d.text for d in others]:
        return "other domains would change"
    if any(d.parameters & (old | new) for d in (*rest, *others)):
        return "bounds of other loops depend on these"
    if not (_sets.involved_names(whole) - old) <= frozenset(before.sizes):
        return "the bounds of the loops depend on more than sizes"
    # There may be none for some sizes, whatever the bounds are.
    known, some = known_of_sizes(before), _sets.project_out(whole, sorted(old))
    if not (whole & known).is_equal(claim.before & some & known):
        return "their bounds depend on each other, or their domain has holes"
    # What is known of computed sizes is known of the new loops as well.
    known = after.assumptions.set & some
    if not (its & after.assumptions.set).is_equal(claim.after & known):
        return "the new loops are not as long as claimed"
    return ""


def _in_numbers(before: Kernel, after: Kernel, claim: Renumbered) -> str:
    """What is wrong with the values for small sizes: they must be all old ones, in order."""
    names = sorted({n for count in claim.counts for n in variable_names(count)})
    base = [n for n in names if n not in before.computed_sizes]
    known = known_of_sizes(before)
    for numbers in islice(product(_SMALL, repeat=len(base)), _TRIED):
        sizes = after.with_computed(dict(zip(base, numbers, strict=True)))
        if _sets.at_values(known, sizes).is_empty() or not {*names} <= sizes.keys():
            continue
        old, new = (
            points_of(_sets.at_values(domain, sizes), inames, {}).tolist()
            for domain, inames in ((claim.before, claim.old), (claim.after, claim.new))
        )
        values = [claim.values[iname] for iname in claim.old]
        for row, iteration in zip_longest(old, new):
            at = {**sizes, **dict(zip(claim.new, iteration or (), strict=False))}
            if row is None or iteration is None or row != [evaluate(v, at) for v in values]:
                return "the values of the old inames are not theirs, or not in their order"
    return ""


_SMALL, _TRIED = (0, 1, 2, 3, 5), 125


def _taken(kernel: Kernel, inames: frozenset[str]) -> tuple[isl.Set | None, list[Domain]]:
    """The domain of some inames, None where others are in it, and all other domains."""
    homes = {kernel.home_domain[i] for i in inames if i in kernel.home_domain}
    rest = [d for number, d in enumerate(kernel.domains) if number not in homes]
    own = [kernel.domains[number] for number in sorted(homes)]
    if {i for d in own for i in d.inames} != inames:
        return None, rest
    whole = own[0].set
    for domain in own[1:]:
        whole = whole & domain.set
    return whole, rest


def _renumbered(statement: Statement, claim: Renumbered) -> Statement:
    """A statement of other numbers, if it is inside of the loops."""
    if statement.inames.isdisjoint(claim.old):
        return statement
    moved = statement.map_expressions(lambda e: substitute(e, claim.values))
    return replace(moved, inames=statement.inames.difference(claim.old) | {*claim.new})


def _with_loops(tree: Tree, old: tuple[str, ...], new: tuple[str, ...]) -> Tree:
    """The tree with the loops over ``old``, one directly inside the other, exchanged."""

    def changed(node: Node) -> Node:
        if not isinstance(node, Loop):
            return node
        body: Tree = (node,)
        for iname in old:
            match body:
                case (Loop() as loop,) if loop.iname == iname:
                    body = loop.body
                case _:
                    return Loop(node.iname, tuple(map(changed, node.body)))
        for iname in reversed(new):
            body = (Loop(iname, body),)
        return body[0]

    return tuple(map(changed, tree))


def not_factored(before: Kernel, after: Kernel, claim: Factored) -> str:
    """Why ``after`` is not ``before`` with a factor taken out as claimed; empty if it is."""
    name = claim.name
    if name not in before.temporary_by_name:
        return "it is no temporary, and callers see what is left in it"
    if {n for n, _ in claim.axes} & before.all_names:
        return "the names given to its axes are taken"
    if any(name in variable_names(rule.expression) for rule in before.substitutions):
        return "a rule reads it"
    if any(name in domain.parameters for domain in before.domains):
        return "it bounds a loop"
    if any(name in assertion.arrays for assertion in before.assertions):
        return "something is asserted of its values"
    if before.with_(statements=after.statements) != after:
        return "something else would change"
    reasons = (
        *_varying(before, claim),
        *_of_other_types(before, after, claim),
        *_changed(before, after, claim),
    )
    return next(iter(reasons), "")


def _varying(kernel: Kernel, claim: Factored) -> Iterator[str]:
    """Where the factor may differ between the read of a value and the additions to it."""
    axes = {name for name, _ in claim.axes}
    for read, _ in accesses(claim.factor):
        if read in axes or read in kernel.home_domain:
            continue
        argument = kernel.arg_by_name.get(read)
        if not isinstance(argument, (ArrayArg, ValueArg)) or read in kernel.writers:
            yield f"'{read}', which the factor reads, may have changed when the sum is read"
    inames = variable_names(claim.factor) & kernel.home_domain.keys()
    flow = dataflow_of(kernel)
    for statement in kernel.statements:
        own = claim.name == statement.written
        if own and added_by(statement) is not None and not inames <= statement.inames:
            yield f"'{statement.id}' is not inside '{min(inames - statement.inames)}'"
        for access in dict.fromkeys(a for a in statement.reads if a[0] == claim.name):
            if own:
                continue
            for source, agreed in flow.agreeing(statement.id, access).items():
                if added_by(kernel.statement_by_id[source]) is not None and inames - agreed:
                    yield (
                        f"'{statement.id}' reads what '{source}' has added for other values of "
                        f"'{min(inames - agreed)}', of which the factor is made"
                    )


def _of_other_types(before: Kernel, after: Kernel, claim: Factored) -> Iterator[str]:
    """The arithmetic in which a factor must not be taken out of a sum, if there is any."""
    dtype = before.temporary_by_name[claim.name].dtype
    if dtype is None:
        yield "its type is still open: add_dtypes gives it one"
        return
    if dtype.kind not in "iu" and not (dtype.kind in "fc" and before.options.fast_math):
        yield (
            f"sums of {dtype_name(dtype)} round, and would round in another way: "
            "Options(fast_math=True) permits that"
        )
    types = ValueTypes(model_of(before))
    for mine, its in zip(before.statements, after.statements, strict=True):
        if mine.written != claim.name:
            continue
        terms = [added_by(mine), added_by(its)]
        for term in terms:
            kind = None if term is None else types.of(term)
            if kind is not None and kind not in (dtype, INTEGER):
                yield f"what '{mine.id}' adds is computed in another type than {dtype_name(dtype)}"
    whole = types.of(prim.Product((_anywhere(before, claim), _element(before, claim))))
    if not (isinstance(whole, np.dtype) and whole == dtype):
        yield f"the factor times the sum would be of another type than {dtype_name(dtype)}"


def _element(kernel: Kernel, claim: Factored) -> Expression:
    shape = kernel.temporary_by_name[claim.name].shape
    name = prim.Variable(claim.name)
    return prim.Subscript(name, (0,) * len(shape)) if shape else name


def _anywhere(kernel: Kernel, claim: Factored) -> Expression:
    shape = kernel.temporary_by_name[claim.name].shape
    return claim.at((0,) * len(shape))


def _changed(before: Kernel, after: Kernel, claim: Factored) -> Iterator[str]:
    """Statements that are not what the claim makes of them."""
    for mine, its in zip(before.statements, after.statements, strict=True):
        if mine.written != claim.name:
            if multiplied(mine, claim) != its:
                yield f"'{its.id}' would be another statement"
            continue
        indices = (*mine.write[1], *mine.predicates)
        added, now = added_by(mine), added_by(its)
        reads_itself = any(claim.name in variable_names(e) for e in (*indices, added))
        if reads_itself:
            yield f"'{mine.id}' reads it while it adds to it"
        elif added is None:
            is_zero = is_constant(mine.rhs) and not isinstance(mine.rhs, bool) and mine.rhs == 0
            if not is_zero or mine.operation is not None or mine != its:
                yield f"'{mine.id}' sets it to something else than 0"
        elif now is None or replace(mine, rhs=its.rhs) != its:
            yield f"'{its.id}' would be another statement"
        elif not _is_product(added, claim.at(mine.write[1]), now):
            yield f"'{its.id}' does not add what '{mine.id}' does, without the factor"


def _is_product(whole: Expression, factor: Expression, rest: Expression) -> bool:
    """Whether ``whole = factor*rest`` follows from the laws of sums and products."""
    difference = prim.Sum((whole, prim.Product((-1, factor, rest))))
    try:
        return not polynomial(difference, lambda atom: atom)
    except NoPolynomialError:
        return False
