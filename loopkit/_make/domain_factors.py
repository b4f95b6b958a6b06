"""Domains of a kernel under construction: from text or isl sets to independent factors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import islpy as isl

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._cached import cached_property, once
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Domain
from loopkit._relations import reachable
from loopkit._spelling import check_name
from loopkit._syntax.condition_parser import LARGEST
from loopkit._syntax.domain_parser import DomainText, Piece, parse_assumptions, read_domain
from loopkit._syntax.isl_text import Condition

PARAM = isl.dim_type.param
SET = isl.dim_type.set

_WRITTEN = "a domain is written '{ [i]: 0 <= i < n }'"
_LARGE = re.compile(r"[0-9]{7}")
"""What a text holds where products of its numbers could be too large."""


@dataclass(frozen=True)
class Domains:
    """All domains of a kernel, in order, with the sizes in order of appearance.

    ``condition`` is what domains without inames say about the sizes.
    """

    domains: tuple[Domain, ...]
    parameters: tuple[str, ...]
    condition: isl.Set

    @cached_property
    def inames(self) -> tuple[str, ...]:
        """All inames, in order of declaration."""
        return tuple(i for d in self.domains for i in d.inames)


class Inames:
    """All inames with their order, and with the inames and temporaries that their domains name."""

    def __init__(self, domains: Domains, temporaries: Collection[str]) -> None:
        self.order: Mapping[str, int] = {n: p for p, n in enumerate(domains.inames)}
        self._parents: dict[str, frozenset[str]] = {}
        self._loaded: dict[str, frozenset[str]] = {}
        for domain in domains.domains:
            parents = frozenset(domain.parameters & self.order.keys())
            self._parents.update(dict.fromkeys(domain.inames, parents))
            loaded = domain.parameters.intersection(temporaries)
            self._loaded.update(dict.fromkeys(domain.inames, loaded))
        self.any_parents = any(self._parents.values())
        self._closed: dict[frozenset[str], frozenset[str]] = {}

    def closure(self, inames: frozenset[str]) -> frozenset[str]:
        """``inames`` and all inames that their domains depend on."""
        if not self.any_parents:
            return inames
        return once(self._closed, inames, reachable, inames, self._parents.__getitem__)

    def loaded(self, inames: frozenset[str]) -> frozenset[str]:
        """The temporaries that bounds of ``inames`` read."""
        return frozenset().union(*(self._loaded[i] for i in inames))

    def nested(self, wanted: frozenset[str], first: Sequence[str] = ()) -> list[str]:
        """``wanted`` as loops, outermost first: ``first``, then as declared; parents first."""
        ordered: list[str] = []
        rest = sorted(wanted.difference(first), key=self.order.__getitem__)
        if not self.any_parents:
            return [*(i for i in first if i in wanted), *rest]

        def visit(iname: str) -> None:
            if iname in ordered or iname not in wanted:
                return
            for parent in sorted(self._parents[iname], key=self.order.__getitem__):
                visit(parent)
            ordered.append(iname)

        for iname in (*first, *rest):
            visit(iname)
        return ordered


def make_domains(
    given: str | isl.Set | isl.BasicSet | Domain | Iterable[Any], fixed: Mapping[str, int]
) -> Domains:
    """The domains that a user gave as strings or sets, split into independent factors."""
    if isinstance(given, (str, isl.Set, isl.BasicSet, Domain)):
        given = [given]
    if not isinstance(given, Iterable):
        raise InvalidArgumentError(
            f"domains are texts or isl sets, not {type(given).__name__}", instead=_WRITTEN
        )
    parameters: dict[str, None] = {}
    domains: list[Domain] = []
    condition = _sets.universe()
    for number, one in enumerate(kind.items("domains", given, "text, an isl set, or a list")):
        for inames, domain in _pieces(one, number, parameters):
            domain = _sets.at_values(domain, fixed)
            # A text shows whether it could hold a number that no index can be.
            if fixed or not isinstance(one, str) or _LARGE.search(one):
                check_numbers(domain, f"domain {number + 1}")
            if inames:
                domains.append(Domain(inames, domain))
            else:
                condition = condition & domain
    owner: set[str] = set()
    for domain_ in domains:
        for iname in domain_.inames:
            if iname in owner:
                raise InvalidArgumentError(
                    f"iname '{iname}' is declared by two domains",
                    instead="each iname belongs to one domain; give the second one another name",
                )
            if iname in fixed:
                raise InvalidArgumentError(f"'{iname}' is an iname and cannot be fixed")
            owner.add(iname)
    outer = [p for p in parameters if p not in owner and p not in fixed]
    found = Domains(tuple(domains), tuple(outer), condition)
    _check_acyclic(found)
    return found


def _check_acyclic(found: Domains) -> None:
    home = {iname: number for number, d in enumerate(found.domains) for iname in d.inames}
    needs = [sorted({home[p] for p in d.parameters & home.keys()}) for d in found.domains]
    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError as error:
        names = " -> ".join(", ".join(found.domains[n].inames) for n in reversed(error.args[1]))
        raise InvalidArgumentError(
            f"domains use each other's inames as parameters: {names}",
            instead="put these inames into one domain",
        ) from None


def _pieces(
    given: Any, number: int, parameters: dict[str, None]
) -> list[tuple[tuple[str, ...], isl.Set]]:
    if isinstance(given, str):
        text = read_domain(kind.text("a domain", given))
        parameters.update(dict.fromkeys(text.parameters))
        sets = _unlinked(text)
        return [f for s in sets for f in _factors(*_as_parameters(s, number), parameters)]
    if isinstance(given, Domain):
        return _factors(given.inames, given.set, parameters)
    if isinstance(given, isl.BasicSet):
        given = given.to_set()
    if not isinstance(given, isl.Set):
        raise InvalidArgumentError(
            f"a domain is a string or an isl set, not {type(given).__name__}", instead=_WRITTEN
        )
    return _factors(*_as_parameters(given, number), parameters)


def check_numbers(domain: isl.Set, what: str) -> None:
    """Raise if a constraint holds a number that no index can be."""
    for basic in domain.compute_divs().get_basic_sets():
        for constraint in basic.get_constraints():
            form = _sets.form_of(constraint)
            largest = max(map(abs, (form.constant, *form.terms.values())))
            if largest > LARGEST:
                raise InvalidArgumentError(
                    f"the number {largest} in {what} is larger than any index",
                    instead="indices have 64 bits; a bound that nothing reaches can be left out",
                )


def _as_parameters(given: isl.Set, number: int) -> tuple[tuple[str, ...], isl.Set]:
    """The inames of a set, and the set with inames as parameters."""
    count = given.dim(SET)
    inames = tuple(given.get_dim_name(SET, i) for i in range(count))
    for name in inames + tuple(given.get_dim_name(PARAM, i) for i in range(given.dim(PARAM))):
        if name is not None:
            check_name(name, "an iname or a size")
    if None in inames:
        raise InvalidArgumentError(
            f"domain {number + 1} has a dimension without a name: {given}",
            instead="name every dimension, as in { [i, j]: ... }",
        )
    domain = given.move_dims(PARAM, given.dim(PARAM), SET, 0, count) if count else given
    return inames, domain.params()


def _factors(
    inames: tuple[str, ...], domain: isl.Set, parameters: dict[str, None]
) -> list[tuple[tuple[str, ...], isl.Set]]:
    mine = set(inames)
    parameters.update(dict.fromkeys(n for n in _sets.names_of(domain) if n not in mine))
    if len(inames) <= 1:
        return [(inames, domain)]
    return _sets.factors(domain, inames)


def _unlinked(text: DomainText) -> list[isl.Set]:
    """The sets over groups of inames that no condition of ``text`` links.

    isl takes quadratic time in the number of inames to parse one large conjunction, and does not
    split a union; the text shows which conditions ``and`` joins.
    """
    piece = text.pieces[0]
    if len(text.pieces) > 1 or not piece.is_plain or len(piece.entries) < 2:
        return [text.set()]
    inames, parts = piece.entries, piece.condition.parts
    links = [part.names & frozenset(inames) for part in parts]
    result = []
    for group in _sets.linked(inames, links):
        mine = frozenset(group)  # conditions on sizes alone stay with every group
        own = tuple(part for part, link in zip(parts, links, strict=True) if link <= mine)
        result.append(DomainText(text.parameters, (Piece(group, group, Condition(own)),)).set())
    return result


def make_assumptions(given: Any, condition: isl.Set, fixed: Mapping[str, int]) -> Domain:
    """What is known about the sizes, from text or an isl set."""
    if given is None or (isinstance(given, str) and not given.strip()):
        known = _sets.universe()
    elif isinstance(given, Domain):
        known = given.set
    elif isinstance(given, str):
        known = parse_assumptions(kind.text("assumptions", given))
    elif isinstance(given, (isl.Set, isl.BasicSet)):
        known = given.to_set() if isinstance(given, isl.BasicSet) else given
        if known.dim(SET) and not known.is_params():
            raise InvalidArgumentError("assumptions are about sizes, and hold no inames")
        known = known.params()
    else:
        raise InvalidArgumentError(
            f"assumptions are a string or an isl set, not {type(given).__name__}",
            instead="they are written 'n >= 1 and m >= 1'",
        )
    whole = _sets.at_values(known & condition, fixed)
    check_numbers(whole, "the assumptions")
    if whole.is_empty():
        raise InvalidArgumentError(
            "no sizes meet the assumptions",
            asked=f"assumptions: {given}",
            instead="the conditions contradict each other, or the fixed parameters",
        )
    return Domain((), whole)
