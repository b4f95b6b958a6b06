"""Loops that get other numbers: one for several, several for one, of whatever lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import reduce

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._change import Change, Joined, Renumbered, known_of_count, known_of_sizes
from loopkit._errors import IllegalTransformError
from loopkit._expression import substitute, variable_names
from loopkit._guarded import conjuncts_of
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._nodes import Expression
from loopkit._polynomials import are_one_polynomial
from loopkit._tree import Key, Path
from loopkit.transforms._common import simplified, statements_with, with_inames, with_statements
from loopkit.transforms._loop_nests import ordered_domains

INT32 = np.dtype(np.int32)


def joined(
    kernel: Kernel,
    old: tuple[str, ...],
    lows: tuple[Expression, ...],
    lengths: tuple[Expression, ...],
    name: str,
) -> Change:
    """Loops of whatever lengths as one, which counts to a size that is computed."""
    claim = Joined(old, lows, lengths, name, 0)
    whole = substitute(claim.product, kernel.computed_sizes)
    if _sets.is_affine(whole):
        return renumbered(kernel, replace(claim, count=whole))
    known = (n for n, e in kernel.computed_sizes.items() if are_one_polynomial(e, whole))
    size = next(known, None)
    if size is not None:
        return renumbered(kernel, replace(claim, count=prim.Variable(size)))
    parts = [n for length in lengths for n in sorted(variable_names(length))]
    size = kernel.fresh_name("_".join(dict.fromkeys(parts)), {name})
    types = [a.dtype or INT32 for n in parts if isinstance(a := kernel.arg_by_name[n], ValueArg)]
    argument = ValueArg(size, max(types, key=lambda t: (t.itemsize, t.kind == "i")), whole)
    claim = replace(claim, count=prim.Variable(size))
    return renumbered(kernel, claim, argument)


def apart(kernel: Kernel, inames: Collection[str]) -> Change:
    """Loops whose values hang on those of ``inames`` run as far as they ever do.

    Before: for i_outer: for i_inner in [0, min(16, n - 16*i_outer)): S
    After: for i_outer: for i_inner in [0, 16): S if 16*i_outer + i_inner < n
    """
    gone, domains = frozenset(inames), list[Domain]()
    for domain in kernel.domains:
        mine = tuple(i for i in domain.inames if i in gone)
        others = tuple(i for i in domain.inames if i not in gone)
        links = gone & {*mine, *domain.parameters}
        if not (others and links):
            domains.append(domain)
            continue
        if mine:
            domains.append(Domain(mine, domain.without(frozenset(others))))
        values = _sets.project_out(kernel.domain_of({*others, *links}), sorted(links)).coalesce()
        constant = _sets.project_out(values & kernel.assumptions.set, kernel.sizes).coalesce()
        ends = [end for i in others for end in _sets.value_range(constant, prim.Variable(i))]
        domains.append(Domain(others, values if None in ends else constant))
    new = kernel.with_(domains=ordered_domains(domains))
    changed: dict[str, Statement] = {}
    for statement in kernel.statements:
        known = new.statement_domain(statement) & new.assumptions.set
        lost = conjuncts_of(kernel.statement_domain(statement).gist(known))
        if lost:
            guards = (*lost, *statement.predicates)
            changed[statement.id] = replace(statement, predicates=guards)
    return Change(with_statements(new, changed))


def renumbered(kernel: Kernel, claim: Renumbered, size: ValueArg | None = None) -> Change:
    """The kernel with loops renumbered, and a size more that is computed."""
    old = frozenset(claim.old)
    ids = statements_with(kernel, claim.old)
    homes = {kernel.home_domain[iname] for iname in claim.old}
    domains = [d for number, d in enumerate(kernel.domains) if number not in homes]
    whole = reduce(isl.Set.intersect, (kernel.domains[number].set for number in homes))
    some, known = _sets.project_out(whole, claim.old), known_of_sizes(kernel)
    bounded = [i for domain in domains if domain.parameters & old for i in domain.inames]
    if bounded or not (whole & known).is_equal(claim.before & some & known):
        mine = [i for number in sorted(homes) for i in kernel.domains[number].inames]
        names = ", ".join((*mine, *bounded))
        raise IllegalTransformError(
            f"{' and '.join(map(repr, claim.old))} cannot be counted in another way: values of "
            f"{names} hang on each other or leave some out, and sizes are among their bounds",
            instead="fix_parameters makes bounds numbers; split_iname takes any loop",
        )
    domains.insert(min(homes), Domain(claim.new, claim.after & some))
    args = kernel.args
    if size is not None:
        args = (*args, size)
        known = known_of_count(known, claim, size.name)

    def path(_: str, given: Path) -> Path:
        found: list[Key] = []
        inside = [key for key in given if key[0] in old]
        for key in given:
            if key[0] not in old:
                found.append(key)
            elif key == inside[-1]:  # the innermost one tells apart what is not all inside
                found += [(iname, key[1]) for iname in claim.new]
        return tuple(found)

    changes = {"domains": ordered_domains(domains), "args": args, "assumptions": Domain((), known)}
    values = dict.fromkeys(ids, claim.values)
    new = with_inames(kernel, values, claim.new, path, **changes).kernel
    statements = {
        id_: replace(
            new.statement_by_id[id_],
            inames=(kernel.statement_by_id[id_].inames - old) | set(claim.new),
        )
        for id_ in ids
    }
    return Change(with_statements(new, statements), claim=claim, is_text=True)


def with_short_subscripts(kernel: Kernel, inames: Iterable[str]) -> Change:
    """What is left to do: terms of the subscripts inside of new loops are put together."""
    return Change(simplified(kernel, statements_with(kernel, inames)))
