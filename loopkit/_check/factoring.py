"""Whether a step that takes a factor out of a sum does that and nothing else.

No read sees the same value before and after, so that nothing is left to compare with.  The step is
read back instead: what is added is the factor times what is added now, what is read is multiplied
by it, and it is the same number wherever a value is added, and wherever that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import ArrayArg, ValueArg
from loopkit._change import Factored, added_by, multiplied
from loopkit._check.value_types import ValueTypes
from loopkit._expression import accesses, is_constant, variable_names
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._polynomials import NoPolynomialError, polynomial
from loopkit._promotion import INTEGER, dtype_name

if TYPE_CHECKING:
    from loopkit._kernel import Kernel


def not_factored(before: Kernel, after: Kernel, claim: Factored) -> str:
    """Why ``after`` is not ``before`` with a factor taken out as claimed; empty where it is."""
    name = claim.name
    if name not in before.temporary_by_name:
        return "it is no temporary, and callers see what is left in it"
    if {n for n, _ in claim.axes} & before.all_names:
        return "names that stand for its axes are taken"
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
    """Where the factor may be another number where a value is read than where it was added."""
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
    """Where arithmetic is none in which a factor may leave a sum."""
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
