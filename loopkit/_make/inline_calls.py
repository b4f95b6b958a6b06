"""Inlining of called kernels: a call is replaced by the function's statements with new names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, ConstantTable, ValueArg
from loopkit._device_functions import tag_of
from loopkit._errors import ParseError, counted
from loopkit._expression import accesses, nodes_of, substitute, to_text, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Domain
from loopkit._make.extents import extents
from loopkit._make.kernel_functions import KernelFunction, Parts, in_names_of_caller
from loopkit._make.making import Making
from loopkit._nodes import Expression, Record, SubArray, TypeCast
from loopkit._spelling import candidates
from loopkit._syntax.items import RawAssignment, RawItem, RawNop, RawStatement, RawSubstitution

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _behind_calls(item: RawItem, prefixes: Mapping[str, str]) -> RawItem:
    """An item that comes behind all statements of the calls that its ``dep`` names."""
    if isinstance(item, RawSubstitution) or not prefixes.keys() & {*item.depends_on}:
        return item
    more = tuple(f"{prefixes[d]}_*" if d in prefixes else d for d in item.depends_on)
    return replace(item, depends_on=more)


class Inlining:
    """A text with each call replaced by what its function says: its ``items``, and what these need.

    ``domains`` are those that calls brought, ``dtypes`` the types that arrays must have, with the
    function that says so, and ``results`` the arrays that calls write.  What is given gets the
    temporaries of functions, and their tables of constants.
    """

    def __init__(self, making: Making, functions: Mapping[str, KernelFunction]) -> None:
        """Raises :class:`ParseError` where a call does not fit its function."""
        items, domains = making.items, making.domains
        self.given = making.given
        self.functions = functions
        self.home = {i: d for d in domains.domains for i in d.inames}
        self.known = making.known.set
        self.used = {*making.given.names, *domains.inames, *domains.parameters}
        for item in items:
            self.used.update(_WORD.findall(item.text))
        self.domains: list[Domain] = []
        self.dtypes: list[tuple[str, Any, str]] = []
        self.called: dict[str, KernelFunction] = {}
        self.results: set[str] = set()
        self.prefixes: dict[str, str] = {}
        self.tables: dict[tuple[str, str], str] = {}
        self.ids = self.used - functions.keys()
        numbers = [n for i in items if isinstance(i, RawStatement) for n in _numbers(i)]
        self.numbers = count(max(numbers, default=0) + 1)
        found = [one for item in items for one in self.one(item)]
        self.items = tuple(_behind_calls(item, self.prefixes) for item in found)

    def fresh(self, base: str) -> str:
        name = next(n for n in candidates(base) if n not in self.used)
        self.used.add(name)
        return name

    def table(self, function: KernelFunction, table: ConstantTable) -> str:
        """What a table of constants of a function is called here, once for all of its calls."""
        key = function.name, table.name
        if key not in self.tables:
            name = self.tables[key] = self.fresh(f"{function.name}_{table.name}")
            self.given.arguments[name] = replace(table, name=name)
            self.given.order.append(name)
        return self.tables[key]

    def one(self, item: RawItem) -> Iterator[RawItem]:
        if not isinstance(item, RawAssignment) or not isinstance(item.rhs, prim.Call):
            yield item
            return
        function = self.functions.get(item.rhs.function.name)
        if function is None:
            yield item
            return
        self.called[function.name] = function
        yield from _Call(self, item, function).items()


def _numbers(item: RawStatement) -> list[int]:
    return [*item.predicate_blocks, *(number for number, _ in item.scopes)]


class _Call:
    """One call, with the caller's names and expressions for the names of the function."""

    def __init__(self, owner: Inlining, item: RawAssignment, function: KernelFunction) -> None:
        self.owner = owner
        self.item = item
        self.function = function
        self.arrays: dict[str, SubArray | Expression] = {}
        self.declared: dict[str, Any] = {}
        self.values: dict[str, Expression] = {}
        self.around = frozenset(i for _, inames in item.scopes for i in inames)
        given = (item.rhs.parameters, *(target for target, _ in item.targets))
        parts = (n for e in given for n in nodes_of(e) if isinstance(n, SubArray))
        self.swept = frozenset(i for part in parts for i in part.inames)
        self.bind()
        self.check_assumptions()

    def fail(self, why: str, instead: str = "") -> ParseError:
        return ParseError(
            f"the call of '{self.function.name}': {why}",
            position=self.item.position,
            instead=instead or f"it is {self.function}",
        )

    def bind(self) -> None:
        item, function = self.item, self.function
        if item.atomic:
            raise self.fail(
                "an atomic update is of one cell",
                "write {atomic} after an update in the text of the function",
            )
        targets = item.targets
        results, parameters = function.results, function.parameters
        if item.count != len(results) or len(targets) != len(results):
            raise self.fail(
                f"it has {counted(len(results), 'result')}, and is assigned to {len(targets)}"
            )
        given = item.rhs.parameters
        if len(given) != len(parameters):
            parameters = tuple(p for p in parameters if p.name not in function.given_sizes)
        if len(given) != len(parameters):
            raise self.fail(
                f"it takes {counted(len(parameters), 'argument')}, and is given {len(given)}"
            )
        passed = list(zip(parameters, given, strict=True))
        for parameter, expr in passed:
            if isinstance(parameter, ValueArg):
                self.value(parameter, expr)
        arrays = [(p, e) for p, e in passed if isinstance(p, ArrayArg)]
        for (target, declared), result in zip(targets, results, strict=True):
            if declared is not None:
                self.declared[result.name] = declared
            arrays.append((result, target))
            self.owner.results.update(name for name, _ in accesses(target)[:1])
        for parameter, expr in arrays:
            if self.arrays.setdefault(parameter.name, expr) != expr:
                raise self.fail(
                    f"'{parameter.name}' is read and written: both are one part of an array"
                )
        for name, expr in self.arrays.items():
            self.check_part(name, expr)
        pairs = [
            (name, iname, extent)
            for name, expr in self.arrays.items()
            if isinstance(expr, SubArray)
            for iname, extent in zip(expr.inames, self.shape_of(name), strict=True)
        ]
        for _, iname, extent in pairs:
            if isinstance(extent, prim.Variable) and extent.name not in self.values:
                self.values[extent.name] = self.extent_of(iname)
        for name, iname, extent in pairs:
            self.check_extent(name, iname, extent)
        for size in self.function.kernel.sizes:
            if size not in self.values:
                raise self.fail(f"its size '{size}' cannot be determined", "it can be an argument")

    def value(self, parameter: ValueArg, expr: Expression) -> None:
        if isinstance(expr, SubArray):
            raise self.fail(f"'{parameter.name}' is a value, and a part of an array is given")
        name, kernel = parameter.name, self.function.kernel
        if name in kernel.sizes:
            in_sets = any(name in d.parameters for d in self.function.domains.domains)
            if in_sets and not _sets.is_affine(expr):
                raise self.fail(f"its size '{name}' bounds loops, and {to_text(expr)} is no size")
        elif parameter.dtype is not None:
            expr = TypeCast(parameter.dtype, expr)
        self.values[name] = expr

    def check_part(self, name: str, expr: Expression) -> None:
        """A part has as many axes as the argument, and inames of its own for them."""
        argument, shape = self.function.kernel.array(name), self.shape_of(name)
        inames = expr.inames if isinstance(expr, SubArray) else ()
        if len(shape) != len(inames):
            raise self.fail(
                f"'{name}' has {counted(len(shape), 'axis', 'axes')}, and what is given "
                f"has {len(inames)}",
                "a part of an array is written [i, j]: x[i, k, j], with an iname for each axis",
            )
        array = expr.subscript if inames else expr
        if not isinstance(array, (prim.Variable, prim.Subscript)):
            raise self.fail(f"'{name}' is an array, and {to_text(expr)} is none")
        for iname in inames:
            if iname in self.around or iname not in self.owner.home:
                what = "is around it" if iname in self.around else "has no domain"
                raise self.fail(f"the iname '{iname}' of a part {what}")
        if argument.dtype is not None:
            whole, _ = accesses(array)[0]
            self.owner.dtypes.append((whole, argument.dtype, self.function.name))

    def shape_of(self, name: str) -> tuple[Expression, ...]:
        return self.function.kernel.array(name).shape or ()

    def values_of(self, iname: str) -> isl.Set:
        """``{ iname, sizes, inames that stay : the iname takes this value }``."""
        domain = self.owner.home[iname]
        fixed = (*self.around, *(variable_names_of(self.item) - self.swept), iname)
        return domain.without(frozenset(domain.inames).difference(fixed)) & self.owner.known

    def extent_of(self, iname: str) -> Expression:
        """The length of a part along an iname, which determines a size of the function."""
        found = extents(self.values_of(iname), iname, self.owner.known)
        if found is None or len(found) != 1:
            raise self.fail(f"the extent of '{iname}' is no one expression")
        return found[0]

    def check_extent(self, name: str, iname: str, extent: Expression) -> None:
        """A part has the extent of its argument along an axis."""
        alone = self.values_of(iname)
        due = substitute(extent, self.values)
        variable = prim.Variable(iname)
        ends = (prim.Comparison(variable, ">=", 0), prim.Comparison(variable, "<", due))
        inside = prim.LogicalAnd(ends)
        where = _sets.project_out(alone, [iname])
        if not _sets.is_condition(inside) or not alone.is_equal(
            _sets.condition_set(inside) & where
        ):
            raise self.fail(
                f"'{name}' has the extent {to_text(due)} where '{iname}' runs over another range",
                f"a part goes from 0 to the extent: [{iname}] with 0 <= {iname} < {to_text(due)}",
            )

    def check_assumptions(self) -> None:
        """What the function assumes of its sizes holds for what they are."""
        due = self.function.kernel.assumptions.set
        sizes = [s for s in self.function.kernel.sizes if _sets.involves(due, s)]
        if any(not _sets.is_affine(self.values[s]) for s in sizes):
            raise self.fail("it assumes something of sizes that are no expressions of sizes")
        where = self.owner.known
        names = {n for s in sizes for n in variable_names(self.values[s])}
        for iname in sorted(names & self.owner.home.keys()):
            where = where & self.owner.home[iname].set
        for size in sizes:
            where = where & _sets.equality(hidden("size", size), self.values[size])
        due = _sets.rename(due, {s: hidden("size", s) for s in sizes})
        if not where.is_subset(due):
            text = to_text(_sets.conditions(self.function.kernel.assumptions.set))
            raise self.fail(
                f"it assumes {text}, which does not follow",
                f"assumptions= can say so for {', '.join(to_text(self.values[s]) for s in sizes)}",
            )

    # {{{ what stands in its place

    def items(self) -> Iterator[RawItem]:
        """The items of the function, in the names of the caller."""
        owner, item, function = self.owner, self.item, self.function
        prefix = item.id
        if prefix is None:
            prefix = next(n for n in candidates(function.name) if n not in owner.ids)
            owner.ids.add(prefix)
        else:
            owner.prefixes[prefix] = prefix
        rules = {rule.name for rule in function.items if isinstance(rule, RawSubstitution)}
        temporaries = {t.name for t in function.kernel.temporaries if t.accumulates is None}
        names = {
            name: owner.fresh(f"{function.name}_{name}")
            for name in sorted(set(function.domains.inames) | temporaries | rules)
        }
        names |= {table.name: owner.table(function, table) for table in function.tables}
        self.bring_domains(names)
        for temporary in function.temporaries:
            name, shape = (
                names[temporary.name],
                [substitute(e, self.values) for e in temporary.shape],
            )
            owner.given.temporaries[name] = replace(temporary, name=name, shape=tuple(shape))
        parts = Parts(self.arrays, self.values, names)
        around = self.scope_around()
        blocks: dict[tuple[str, int], int] = {}
        waiting = dict(self.declared)
        for one in function.items:
            found = in_names_of_caller(one, parts, owner.fresh)
            if isinstance(found, RawStatement):
                found = self.placed(found, prefix, names, around, blocks)
            if isinstance(found, RawAssignment) and isinstance(one, RawAssignment):
                found = _declaring(found, one, waiting)
            yield found

    def bring_domains(self, names: Mapping[str, str]) -> None:
        """Add the domains of the function, over the caller's sizes."""
        made_up = {p: hidden("size", p) for p in self.values}
        for domain in self.function.domains.domains:
            set_ = _sets.rename(domain.set, {**made_up, **names})
            for size, expr in self.values.items():
                if _sets.involves(set_, made_up[size]):
                    set_ = set_ & _sets.equality(made_up[size], expr)
            set_ = _sets.project_out(set_, [*made_up.values()])
            self.owner.domains.append(Domain(tuple(names[i] for i in domain.inames), set_))

    def scope_around(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """The loops that a call is in: those of its text, and of the inames that it uses."""
        used = variable_names_of(self.item) | (self.item.inames or frozenset())
        more = [i for i in self.owner.home if i in used - self.swept - self.around]
        if not more:
            return self.item.scopes
        return (*self.item.scopes, (next(self.owner.numbers), tuple(more)))

    def placed(
        self,
        one: Any,
        prefix: str,
        names: Mapping[str, str],
        around: tuple[tuple[int, tuple[str, ...]], ...],
        blocks: dict[tuple[str, int], int],
    ) -> Any:
        """A statement of the function at the place of the call, with the options of the call."""
        call = self.item

        def number(old: int, of: str) -> int:
            return blocks.setdefault((of, old), next(self.owner.numbers))

        own_scopes = tuple(
            (number(at, "scope"), tuple(names.get(i, i) for i in inames))
            for at, inames in one.scopes
        )
        own = tuple(number(b, "if") if b else 0 for b in one.predicate_blocks)
        given = tuple(b or number(-1 - n, "call") for n, b in enumerate(call.predicate_blocks))
        is_named = one.id is not None
        return replace(
            one,
            id=f"{prefix}_{one.id}" if is_named else None,
            id_prefix=None if is_named else f"{prefix}_{one.id_prefix or _kind(one)}",
            depends_on=(*(f"{prefix}_{d}" for d in one.depends_on), *call.depends_on),
            tags=tuple(dict.fromkeys((*one.tags, *call.tags, tag_of(self.function.name)))),
            inames=None
            if one.inames is None
            else frozenset(names.get(i, i) for i in one.inames) | {i for _, s in around for i in s},
            scopes=(*around, *own_scopes),
            predicates=(*call.predicates, *one.predicates),
            predicate_blocks=(*given, *own),
            text=call.text,
            position=call.position,
        )

    # }}}


def _kind(item: RawStatement) -> str:
    return item.word if isinstance(item, RawNop) else "insn"


def variable_names_of(item: RawAssignment) -> frozenset[str]:
    """The names in a call, and in its conditions."""
    given = (item.lhs, *item.rhs.parameters, *item.predicates)
    return frozenset().union(*map(variable_names, given))


def _declaring(found: RawAssignment, one: RawAssignment, waiting: dict[str, Any]) -> RawAssignment:
    """An assignment that declares what the call declares, where it is the first to write that."""
    names = one.written
    if not waiting.keys() & {*names}:
        return found
    declared = [waiting.pop(name, old) for name, (_, old) in zip(names, one.targets, strict=True)]
    is_record = isinstance(found.lhs, Record)
    return replace(found, declared=tuple(declared) if is_record else declared[0])
