"""The kernel: an immutable value that holds domains, statements, data and loop tree.

Only data and simple queries are here; transforms, checks and code generation are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets, _spelling
from loopkit._arrays import (
    Argument,
    ArrayArg,
    ConstantTable,
    TemporaryVariable,
    ValueArg,
    is_computed,
)
from loopkit._assertions.assertion_values import Assertion
from loopkit._cached import ANSWERS, answers_of, cached_property, memoised
from loopkit._called import fitting_type
from loopkit._device_functions import OwnFunction, names_of
from loopkit._errors import InvalidArgumentError, SourcePosition, UnknownNameError, check_known
from loopkit._expression import Access, accesses, evaluate, tagged_uses, variable_names
from loopkit._frozen import dataclass
from loopkit._history import History, Step
from loopkit._linear import plain_terms
from loopkit._nodes import Expression
from loopkit._relations import grouped
from loopkit._same import Exact, digest_of
from loopkit._tags import Tag
from loopkit._tree import LaunchBarrier, Loop, Path, Tree, entries_of, flatten

if TYPE_CHECKING:
    from loopkit._check.instance_maps import Lineage
    from loopkit._methods import Methods
else:
    Methods = object


@dataclass(frozen=True, eq=False)
class Statement(Exact):
    """One instruction: ``lhs = rhs``, executed once per value of ``inames``.

    ``inames`` holds all loops and parallel coordinates around it.  With
    ``operation`` set, the statement updates instead:
    ``lhs = operation(lhs, rhs)``, and all updates of one accumulator may run in
    any order.  ``kind`` is ``"user"`` for what the text spells, ``"init"`` and
    ``"update"`` for the parts of a reduction, ``"atomic"`` for updates that any
    instances may make at the same time, ``"move"`` for statements that
    only carry data (fetches, stores).  ``made_by`` names the step that made it.
    """

    id: str
    lhs: Expression
    rhs: Expression
    inames: frozenset[str] = frozenset()
    predicates: tuple[Expression, ...] = ()
    operation: str | None = None
    depends_on: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    kind: str = "user"
    made_by: str | None = None
    position: SourcePosition | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _spelling.check_identifier(self.id, "the id of a statement")
        for iname in self.inames:
            _spelling.check_inside(iname, "an iname")
        for expr in self.expressions:
            _spelling.check_expression(expr, "a part of a statement")
        if self.operation is not None:
            _spelling.check_identifier(self.operation, "a reduction")
        _spelling.check_tags(self.tags)
        _spelling.check_note(self.made_by, "the step that made a statement")

    @cached_property
    def written(self) -> str:
        """The name of what is written."""
        return self.write[0]

    @cached_property
    def write(self) -> Access:
        """``(name, indices)`` of the access that is written."""
        return accesses(self.lhs)[0]

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """``(name, indices)`` of all that is read: arrays, scalars, inames and sizes alike."""
        found = list(accesses(self.rhs))
        for predicate in self.predicates:
            found += accesses(predicate)
        found += [a for index in self.write[1] for a in accesses(index)]
        if self.operation is not None:
            found.append(self.write)
        return tuple(found)

    @property
    def is_atomic(self) -> bool:
        """Whether it is an atomic update, which needs no order among the updates of its cell."""
        return self.kind == "atomic"

    @property
    def accesses(self) -> tuple[Access, ...]:
        """What is written, then all that is read."""
        return (self.write, *self.reads)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Both sides, and the conditions."""
        return (self.lhs, self.rhs, *self.predicates)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that occur."""
        return frozenset().union(*map(variable_names, self.expressions))

    @cached_property
    def tagged(self) -> frozenset[tuple[str, str]]:
        """The names whose uses have tags, each with one of these."""
        return frozenset().union(*map(tagged_uses, self.expressions))

    def map_expressions(self, function: Any) -> Statement:
        """A copy with ``function`` applied to lhs, rhs and predicates."""
        return replace(
            self,
            lhs=function(self.lhs),
            rhs=function(self.rhs),
            predicates=tuple(function(p) for p in self.predicates),
        )


@dataclass(frozen=True, eq=False)
class Domain(Exact):
    """A set of values of ``inames``, given sizes and the inames of other domains."""

    compared_by: ClassVar[tuple[str, ...]] = ("text",)

    inames: tuple[str, ...]
    set: isl.Set

    def __post_init__(self) -> None:
        for iname in self.inames:
            _spelling.check_inside(iname, "an iname")

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names that the set uses beside its inames."""
        return _sets.involved_names(self.set) - frozenset(self.inames)

    @cached_property
    def text(self) -> str:
        """The constraints in a form that does not depend on how they came about."""
        return f"[{', '.join(self.inames)}]: {_sets.canonical_text(self.set)}"

    @memoised
    def without(self, inames: frozenset[str]) -> isl.Set:
        """The set with some of its inames projected out (memoised)."""
        return _sets.project_out(self.set, sorted(inames)).coalesce() if inames else self.set

    @memoised
    def range_of(self, iname: str, assumptions: isl.Set) -> tuple[int | None, int | None]:
        """The smallest and largest value of an iname, whatever the others are (memoised)."""
        values = self.without(frozenset(self.inames) - {iname}) & assumptions
        return _sets.value_range(values, prim.Variable(iname))


@fitting_type
@dataclass(frozen=True, eq=False)
class SubstitutionRule(Exact):
    """An expression with a name: ``name(arguments) := expression``."""

    name: str
    arguments: tuple[str, ...]
    expression: Expression

    def __post_init__(self) -> None:
        _spelling.check_name(self.name, "the name of a substitution rule")
        _spelling.check_names(self.arguments, "an argument of a substitution rule")
        _spelling.check_expression(self.expression, "the right side of a substitution rule")


@fitting_type
@dataclass(frozen=True)
class Options:
    """Options of code generation that belong to the kernel.

    ``fast_math`` permits reassociation and approximate functions.
    """

    fast_math: bool = False

    def __post_init__(self) -> None:
        _spelling.check_flag(self.fast_math, "fast_math")


Slabs = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, eq=False)
class Kernel(Exact, Methods):
    """A program with its schedule: an immutable value.

    :func:`make_kernel` makes one, transforms make others of it; two are equal where they mean
    the same.  ``domains`` are the sets of values of inames, and ``statements`` what is executed for
    them, in the order of ``tree``, the nest of loops; ``tags`` say which inames are mapped to what.
    ``args`` are what a call passes, ``temporaries`` what lives inside only.  ``substitutions``
    are the rules, ``reductions`` operations of :func:`register_reduction`, ``functions`` those of
    :func:`register_callable`.  ``assumptions`` is a set over sizes; ``assertions`` say what the
    data of index arrays have in common.  ``slabs`` are ``(iname, first, last)``: so many iterations
    at the ends of a loop get code of their own.  With ``owes_bounds`` its accesses are proven to
    lie in their arrays where code is made.  ``history`` holds the steps that made the kernel.
    """

    name: str
    domains: tuple[Domain, ...]
    statements: tuple[Statement, ...]
    args: tuple[Argument, ...]
    temporaries: tuple[TemporaryVariable, ...]
    tree: Tree
    tags: tuple[tuple[str, Tag], ...] = ()
    assumptions: Domain = field(default_factory=lambda: Domain((), _sets.universe()))
    substitutions: tuple[SubstitutionRule, ...] = ()
    options: Options = Options()
    reductions: tuple[Any, ...] = ()
    functions: tuple[OwnFunction, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    slabs: Slabs = ()
    owes_bounds: bool = False
    history: History = field(default=History(), compare=False)
    lineage: Lineage | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _spelling.check_kernel_name(self.name)
        for data in (*self.args, *self.temporaries):
            if "," in data.name:  # as declarations may have it, and no kernel
                _spelling.check_name(data.name, "a name")
        steps: tuple[Step, ...] = self.history
        if not isinstance(steps, History):
            object.__setattr__(self, "history", History(steps))

    @cached_property
    def passed(self) -> tuple[Argument, ...]:
        """The arguments that a call passes: all but tables of constants."""
        return tuple(a for a in self.args if not isinstance(a, ConstantTable))

    @cached_property
    def statement_by_id(self) -> Mapping[str, Statement]:
        """Statements by id."""
        return {s.id: s for s in self.statements}

    @cached_property
    def iname_tags(self) -> Mapping[str, Tag]:
        """The tag of each tagged iname."""
        return dict(self.tags)

    @cached_property
    def home_domain(self) -> Mapping[str, int]:
        """The index of the domain that an iname belongs to."""
        return {iname: i for i, d in enumerate(self.domains) for iname in d.inames}

    @cached_property
    def all_inames(self) -> tuple[str, ...]:
        """All inames, in the order of the domains."""
        return tuple(iname for d in self.domains for iname in d.inames)

    @cached_property
    def arg_by_name(self) -> Mapping[str, Argument]:
        """Arguments by name."""
        return {a.name: a for a in self.args}

    @cached_property
    def temporary_by_name(self) -> Mapping[str, TemporaryVariable]:
        """Temporaries by name."""
        return {t.name: t for t in self.temporaries}

    @cached_property
    def rule_by_name(self) -> Mapping[str, SubstitutionRule]:
        """Substitution rules by name."""
        return {r.name: r for r in self.substitutions}

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Integer value arguments."""
        return tuple(
            a.name
            for a in self.args
            if isinstance(a, ValueArg) and (a.dtype is None or a.dtype.kind in "iu")
        )

    @cached_property
    def computed_sizes(self) -> Mapping[str, Expression]:
        """The sizes that are computed from others, and how."""
        return {a.name: a.default for a in self.args if isinstance(a, ValueArg) and is_computed(a)}

    def with_computed(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Sizes with those that can be computed from them.

        :arg sizes: numbers by name; what is no whole number is left alone.
        :returns: all of them, the computed ones behind the others.
        """
        if not isinstance(sizes, Mapping):
            raise InvalidArgumentError(f"sizes are numbers by name, not {_spelling.shown(sizes)}")
        found = dict(sizes)
        for name, value in self.computed_sizes.items():
            with suppress(KeyError, TypeError):
                if name not in found:
                    known = {n: index(found[n]) for n in variable_names(value)}
                    found[name] = evaluate(value, known)
        return found

    @cached_property
    def computed_facts(self) -> isl.Set:
        """``{ sizes : each computed size has its value }``, as far as affine sets allow."""
        known = ((n, v) for n, v in self.computed_sizes.items() if _sets.is_affine(v))
        return _sets.intersection(_sets.equality(name, value) for name, value in known)

    @cached_property
    def integers(self) -> frozenset[str]:
        """The names of integers that sets know: inames and sizes."""
        return frozenset((*self.all_inames, *self.sizes))

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        """The loops around each statement, outermost first."""
        return dict(flatten(self.tree))

    @cached_property
    def writers(self) -> Mapping[str, tuple[Statement, ...]]:
        """The statements that write each name, in order."""
        return grouped((s.written, s) for s in self.statements)

    @cached_property
    def readers(self) -> Mapping[str, tuple[Statement, ...]]:
        """The statements that read each array or temporary, in order."""
        return grouped((n, s) for s in self.statements for n in dict(self.reads_of(s)))

    def reads_of(self, statement: Statement) -> tuple[Access, ...]:
        """``(name, indices)`` of all reads of a statement: loaded loop bounds, then its own."""
        bounds = self.loaded_bounds(statement.inames)
        return (*((name, ()) for name in bounds), *statement.reads) if bounds else statement.reads

    @cached_property
    def bounding(self) -> frozenset[str]:
        """The computed or loaded values that occur in the bounds of any loop."""
        return frozenset().union(*(d.parameters for d in self.domains)) - self.integers

    def loaded_bounds(self, inames: Iterable[str]) -> tuple[str, ...]:
        """The computed or loaded values in the bounds of loops over ``inames``, sorted."""
        if not self.bounding:
            return ()
        # Of inames that a step is about to take away nothing is known.
        around = self.domain_around(self.home_domain.keys() & {*inames})
        return tuple(sorted(_sets.involved_names(around) & self.bounding))

    def users(self, name: str) -> tuple[Statement, ...]:
        """The statements that write the array ``name``, then those that only read it.

        None for a name that nothing uses.
        """
        if not isinstance(name, str):
            raise UnknownNameError("array", name, self.arrays)
        writers = self.writers.get(name, ())
        return (*writers, *(s for s in self.readers.get(name, ()) if s.written != name))

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of temporaries and of arguments that are arrays."""
        arguments = (a.name for a in self.args if isinstance(a, ArrayArg))
        return (*self.temporary_by_name, *arguments)

    @cached_property
    def changing(self) -> frozenset[str]:
        """The names whose values may change: everything that is written, and temporaries."""
        return frozenset((*self.writers, *self.temporary_by_name))

    def reduced_inames(self, statement: Statement) -> tuple[str, ...]:
        """The inames that an update runs over: those without a loop around the initialization.

        Inames in the subscripts of the accumulator are left out, too: its initialization may be in
        separate loops.
        """
        starts = [s for s in self.writers.get(statement.written, ()) if s.kind == "init"]
        outer = frozenset().union(*(s.inames for s in starts))
        outer |= {i for index in statement.write[1] for i in plain_terms(index)}
        return tuple(i for i in self.all_inames if i in statement.inames - outer)

    def array(self, name: str) -> ArrayArg | TemporaryVariable:
        """The array argument or temporary called ``name``.

        Raises :class:`UnknownNameError` where there is none.
        """
        found = None
        if isinstance(name, str):
            found = self.temporary_by_name.get(name) or self.arg_by_name.get(name)
        if found is None or isinstance(found, ValueArg):
            raise UnknownNameError("array", name, self.arrays)
        return found

    def is_array(self, name: str) -> bool:
        """Whether ``name`` is an array argument or a temporary (scalars included)."""
        return isinstance(name, str) and (
            name in self.temporary_by_name or isinstance(self.arg_by_name.get(name), ArrayArg)
        )

    def check_iname(self, iname: str) -> str:
        """``iname`` itself; raises :class:`UnknownNameError` where there is no such iname."""
        if not isinstance(iname, str) or iname not in self.home_domain:
            raise UnknownNameError("iname", iname, self.all_inames)
        return iname

    def _inames(self, inames: Iterable[str]) -> frozenset[str]:
        """Inames that exist, from outside."""
        if type(inames) is frozenset and inames <= self.home_domain.keys():
            return inames
        try:
            names: list[Any] = [inames] if isinstance(inames, str) else [*inames]
        except TypeError:
            names = [inames]  # which is refused
        return frozenset(map(self.check_iname, names))

    @cached_property
    def all_names(self) -> frozenset[str]:
        """Every name that is taken."""
        return frozenset(
            [
                *self.all_inames,
                *self.arg_by_name,
                *self.temporary_by_name,
                *(s.id for s in self.statements),
                *(leaf.id for leaf, _ in entries_of(self.tree) if isinstance(leaf, LaunchBarrier)),
                *(r.name for r in self.substitutions),
                *names_of(self.functions),
                self.name,
            ]
        )

    def fresh_name(self, base: str, taken: Iterable[str] = ()) -> str:
        """``base``, or ``base_0``, ``base_1``, ... if that is taken."""
        if not isinstance(base, str):
            raise InvalidArgumentError(f"a name is text, not {_spelling.shown(base)}")
        used = self.all_names.union(taken)
        return next(name for name in _spelling.candidates(base) if name not in used)

    def fresh_names(self, taken: Iterable[str] = ()) -> Callable[[str], str]:
        """A function like :meth:`fresh_name` that gives no name twice, and none of ``taken``."""
        held = [*taken]

        def fresh(base: str) -> str:
            held.append(self.fresh_name(base, held))
            return held[-1]

        return fresh

    def domain_of(self, inames: Iterable[str]) -> isl.Set:
        """All values of ``inames``: their domains intersected, other inames projected out.

        Inames that a domain uses as parameters stay in the set as names.
        """
        return _domain_of(self, self._inames(inames))

    def statement_domain(self, statement: Statement | str) -> isl.Set:
        """The instances of a statement, or of the one with this id, predicates left aside.

        Returns a set over the names of its inames and of sizes.  Raises
        :class:`UnknownNameError` for an id that there is not.
        """
        if not isinstance(statement, Statement):
            statement = self.statement(statement)
        return self.domain_around(statement.inames)

    def statement(self, name: str) -> Statement:
        """The statement whose id is ``name``; raises :class:`UnknownNameError` without one."""
        check_known("statement", [name], self.statement_by_id)
        return self.statement_by_id[name]

    def parents_of(self, iname: str) -> frozenset[str]:
        """The inames that the bounds of ``iname`` depend on (parameters of its domain)."""
        home = self.home_domain[self.check_iname(iname)]
        return self.domains[home].parameters & self.home_domain.keys()

    def range_of(self, iname: str) -> tuple[int | None, int | None]:
        """The smallest and largest value of an iname for all sizes; None where it has none.

        Bounds that are other inames are taken as any numbers.
        """
        home = self.home_domain[self.check_iname(iname)]
        return self.domains[home].range_of(iname, self.assumptions.set)

    def range_around(self, iname: str) -> tuple[int | None, int | None]:
        """Like :meth:`range_of`, but within the values that the surrounding loops allow.

        A hardware index starts at the first of these values.
        """
        if not self.parents_of(iname):
            return self.range_of(iname)
        values = self.domain_around([iname]) & self.assumptions.set
        return _sets.value_range(values, prim.Variable(iname))

    def domain_around(self, inames: Iterable[str]) -> isl.Set:
        """Like :meth:`domain_of`, with all other inames projected out.

        They differ where a domain has a parameter that is an iname not in
        ``inames``: a loop that some thread enters is one that the block enters.
        """
        return _domain_around(self, self._inames(inames))

    def with_(self, **changes: Any) -> Kernel:
        """A copy with some fields changed; statements follow the order of the tree.

        Nothing is proven: this is what transforms are made of.  ``changes`` are fields and their
        new values.  Raises :class:`InvalidArgumentError` for what a field cannot hold.
        """
        for field_name, value in changes.items():
            _check_field(field_name, value)
        if "tree" in changes or "statements" in changes:
            tree = changes.get("tree", self.tree)
            by_id = {s.id: s for s in changes.get("statements", self.statements)}
            changes["statements"] = tuple(_of_tree(tree, by_id))
        if "tags" in changes:
            changes["tags"] = tuple(sorted(changes["tags"]))
        if "slabs" in changes:
            changes["slabs"] = tuple(sorted(changes["slabs"]))
        return replace(self, **changes)

    def recorded(self, history: History, lineage: Lineage | None) -> Kernel:
        """A copy with another history, which shares the cached results of this kernel."""
        copy = replace(self, history=history, lineage=lineage)
        copy.__dict__[ANSWERS] = answers_of(self)
        for name in _LOOK_UPS & self.__dict__.keys():
            copy.__dict__[name] = self.__dict__[name]
        return copy

    def __dir__(self) -> list[str]:
        own = (name for name in super().__dir__() if name not in _INTERNAL)
        return [n for n in own if n.startswith("__") or not n.startswith("_")]

    @cached_property
    def key(self) -> str:
        """A digest that equal kernels share, in every process."""
        return digest_of(self)


_LOOK_UPS = frozenset(n for n, value in vars(Kernel).items() if isinstance(value, cached_property))

_INTERNAL = frozenset(
    [
        *("all_names", "check_iname", "compared_by", "domain_around", "domain_of", "fresh_name"),
        *("home_domain", "is_array", "key", "lineage", "parents_of", "paths", "range_around"),
        *("bounding", "loaded_bounds", "reads_of", "fresh_names"),
        *("range_of", "recorded", "reduced_inames", "with_computed", "computed_facts"),
    ]
)
"""What transforms and proofs look up, and nobody else needs to."""


@memoised
def _domain_of(kernel: Kernel, inames: frozenset[str]) -> isl.Set:
    homes = sorted({kernel.home_domain[i] for i in inames})
    domains = [kernel.domains[index] for index in homes]
    parts = [d.without(frozenset(d.inames) - inames) for d in domains]
    found = parts[0] if parts else _sets.universe()
    for part in parts[1:]:
        found = found & part
    return found


@memoised
def _domain_around(kernel: Kernel, inames: frozenset[str]) -> isl.Set:
    found = kernel.domain_of(inames)
    all_inames = set(kernel.all_inames)
    missing = all_inames & _sets.involved_names(found) - inames
    closure = set(inames)
    while missing:
        closure |= missing
        found = kernel.domain_of(closure)
        missing = all_inames & _sets.involved_names(found) - closure
    return _sets.project_out(found, sorted(closure - inames))


_HELD: dict[str, Any] = {
    "domains": Domain,
    "statements": Statement,
    "args": (ArrayArg, ValueArg),
    "temporaries": TemporaryVariable,
    "substitutions": SubstitutionRule,
    "tree": (Loop, LaunchBarrier, str),
}


def _of_tree(tree: Tree, by_id: Mapping[str, Statement]) -> Iterator[Statement]:
    """The statements in the order of the tree, which names them."""
    for id_, _ in flatten(tree):
        if id_ not in by_id:
            raise InvalidArgumentError(
                f"the tree holds '{id_}', which is none of the statements",
                instead="with_(tree=..., statements=...) changes both",
            )
        yield by_id[id_]


def _check_field(name: str, value: object) -> None:
    """An error for a field that kernels do not have, or that holds what it cannot."""
    check_known("field of a kernel", [name], Kernel.__dataclass_fields__)
    held = _HELD.get(name)
    fits = True
    if held is not None:
        fits = isinstance(value, tuple) and all(isinstance(item, held) for item in value)
    elif name == "tags":
        fits = isinstance(value, (tuple, list)) and all(
            isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
            for item in value
        )
    elif name == "slabs":
        fits = isinstance(value, tuple) and all(
            isinstance(item, tuple) and [*map(type, item)] == [str, int, int] for item in value
        )
    if not fits:
        raise InvalidArgumentError(f"the {name} of a kernel cannot be {_spelling.shown(value)}")
