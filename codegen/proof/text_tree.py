"""The text as a tree of loops, guards and leaves, every point with its scope."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from loopkit._algebra.polynomials import minus, scaled
from loopkit._algebra.terms import ZERO
from loopkit._cached import cached_property
from loopkit._nodes import Expression
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.branches import negation
from loopkit.codegen.proof.forms import Form, floor, variable
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.proof_conditions import negated, split
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space, at_most, equal, less
from loopkit.codegen.proof.translate import TextTranslator

Barriers = tuple[int, int]
"""How many barriers there are for a block, and for a warp."""


@dataclass(eq=False)
class Group:
    """A loop, a guard, or braces; ``scope`` is what holds inside.

    ``span`` are the positions of the first and the last of the leaves in it.
    """

    node: c.For | c.If | c.Block | None
    scope: Scope
    parent: Group | None
    index: int
    children: list[Group | Leaf] = field(default_factory=list)
    span: tuple[int, int] = (0, -1)

    @cached_property
    def barriers(self) -> list[Barriers]:
        """The number of barriers certainly executed before each child, and before the end."""
        found = [(0, 0)]
        for child in self.children:
            more = (0, 0)
            if isinstance(child, Leaf):
                more = int(child.barrier == "block"), int(child.barrier == "warp")
            elif isinstance(child.node, c.Block):
                more = child.barriers[-1]
            found.append((found[-1][0] + more[0], found[-1][1] + more[1]))
        return found


@dataclass(eq=False)
class Touch:
    """One access of a leaf: the element's place in its array, as the text computes it.

    ``indices`` are those of the text, one per dimension of a declared array.
    ``scope`` is where it happens: inside of ``c ? x[i] : y[i]``, more holds than around.
    ``cell`` and ``extents`` name the element by its array's axes, once the access
    is known to be one of its statement's; ``origin`` are that access's subscripts.  Where an
    array is swizzled, ``dimensions`` are those of the text, in which the ``indices`` lie.
    """

    leaf: Leaf
    array: str
    indices: tuple[Form, ...]
    offset: Form
    scope: Scope
    is_write: bool
    atomic: str = ""
    """The operator of the atomic update that it is part of."""
    cell: tuple[Form, ...] | None = None
    extents: tuple[Form | None, ...] = ()
    origin: tuple[Expression, ...] | None = None
    dimensions: tuple[Form | None, ...] = ()


@dataclass(eq=False)
class Leaf:
    """An assignment, a barrier, a combination, or the reads of a guard, loop bounds or a constant.

    ``position`` counts the leaves of the text, ``index`` the children of the parent.
    """

    node: c.Assign | c.Wait | c.Combine | c.If | c.For | c.Let
    scope: Scope
    parent: Group
    index: int
    position: int
    found: dict[tuple[object, ...], Touch] = field(default_factory=dict)

    @property
    def touches(self) -> Collection[Touch]:
        """The distinct accesses."""
        return self.found.values()

    @property
    def span(self) -> tuple[int, int]:
        """That of a group of this leaf alone."""
        return self.position, self.position

    @property
    def line(self) -> int:
        """The line in the source."""
        return self.node.line

    @property
    def statement(self) -> str | None:
        """The statement that an assignment or a combination belongs to."""
        return self.node.statement if isinstance(self.node, (c.Assign, c.Combine)) else None

    @property
    def barrier(self) -> str | None:
        """The scope of a barrier: ``block`` or ``warp``; None for other leaves."""
        return self.node.scope if isinstance(self.node, c.Wait) else None

    @property
    def meets(self) -> str | None:
        """Who comes to a barrier or a combination together; None for other leaves."""
        return "block" if isinstance(self.node, c.Combine) else self.barrier


@dataclass(frozen=True)
class Site:
    """An integer expression of the text and where it is computed.

    ``ctype`` holds its value; ``axis`` is the array and the axis whose subscript it is.
    """

    expr: c.CExpression
    scope: Scope
    line: int
    ctype: str | None = None
    is_guard: bool = False
    axis: tuple[str, int] | None = None


class TreeBuilder:
    """Builds the tree of a function's body."""

    def __init__(
        self,
        space: Space,
        names: Names,
        translator: TextTranslator,
        inames_of: Callable[[str], frozenset[str]],
    ) -> None:
        self.space = space
        self.names = names
        self.translate = translator
        self.inames_of = inames_of
        self.leaves: list[Leaf] = []
        self.sites: list[Site] = []
        self.loops: list[tuple[c.For, Scope]] = []

    def build(self, body: tuple[c.Node, ...], scope: Scope) -> None:
        """Collect a body's loops, computations and leaves, which know the groups around."""
        self._fill(Group(None, scope, None, 0), body, scope)

    def _fill(self, group: Group, nodes: tuple[c.Node, ...], scope: Scope) -> None:
        lets = Constants(scope, self.names, nodes)
        for node in nodes:
            if isinstance(node, c.Let):
                lets.add(self._let(group, node, lets.scope))
                continue
            scope = lets.scope_for(self._names_in(node)) if lets else lets.scope
            if isinstance(node, c.Block):
                self._fill(self._group(group, node, scope), node.body, scope)
            elif isinstance(node, c.For):
                self._loop(group, node, scope)
            elif isinstance(node, c.If):
                self._guard(group, node, scope)
            elif not isinstance(node, (c.Declaration, c.Break)):
                leaf = self._add(self._leaf(group, node, scope))
                if isinstance(node, c.Assign):
                    self._assign(leaf, node)
                elif isinstance(node, c.Combine):
                    self._touch(node.target, scope, leaf)
                    self._touch(node.target, scope, leaf, is_write=True)
        group.span = group.span[0], len(self.leaves) - 1

    def _names_in(self, node: c.Node) -> frozenset[str] | None:
        """The names that a node and those inside speak of; None where that may be any."""
        found: set[str] = set()
        for inner in c.statements((node,)):
            if isinstance(inner, c.Combine):
                return None
            for expr in c.expressions(inner):
                found |= self.names.used(expr)
            if isinstance(inner, c.Assign) and inner.statement is not None:
                found |= self.inames_of(inner.statement)
        return frozenset(found)

    def _group(self, parent: Group, node: c.For | c.If | c.Block, scope: Scope) -> Group:
        made = Group(node, scope, parent, len(parent.children), span=(len(self.leaves), 0))
        parent.children.append(made)
        return made

    def _leaf(
        self,
        parent: Group,
        node: c.Assign | c.Wait | c.Combine | c.If | c.For | c.Let,
        scope: Scope,
    ) -> Leaf:
        return Leaf(node, scope, parent, len(parent.children), len(self.leaves))

    def _add(self, leaf: Leaf) -> Leaf:
        leaf.parent.children.append(leaf)
        self.leaves.append(leaf)
        return leaf

    def _reads(
        self, group: Group, node: c.If | c.For | c.Let, scope: Scope, *parts: c.CExpression
    ) -> Leaf | None:
        """A leaf for what a guard, bounds or a constant reads of memory, if that is anything."""
        leaf = self._leaf(group, node, scope)
        for part in parts:
            self._collect(part, scope, leaf)
        return self._add(leaf) if leaf.found else None

    def _again(self, reads: Leaf, group: Group, scope: Scope) -> None:
        """A leaf that reads the same in another place."""
        leaf = self._add(self._leaf(group, reads.node, scope))
        leaf.found = {key: replace(touch, leaf=leaf) for key, touch in reads.found.items()}

    def _let(self, group: Group, node: c.Let, scope: Scope) -> Scope:
        self._reads(group, node, scope, node.value)
        self.sites.append(Site(node.value, scope, node.line, node.ctype))
        value = self.translate.form(node.value, scope)
        holds, unknown = split(equal(variable(node.name), value))
        ranges = {node.name: scope.range_of(value)}
        return Scope(self.space, scope, node, holds, unknown, ranges)

    def _loop(self, group: Group, node: c.For, scope: Scope) -> None:
        self.loops.append((node, scope))
        self.sites.append(Site(node.lower, scope, node.line, node.ctype))
        lower = self.translate.form(node.lower, scope)
        upper = self.translate.form(node.upper, scope)
        reads = self._reads(group, node, scope, node.lower, node.upper)
        own = variable(node.name)
        end = at_most(own, upper) if node.inclusive else less(own, upper)
        parts = [at_most(lower, own), end]
        if node.step > 1:
            steps = scaled(floor(minus(own, lower), node.step), node.step)
            parts.append(equal(minus(own, lower), steps))
        holds, unknown = split(*parts)
        low, high = scope.range_of(lower)[0], scope.range_of(upper)[1]
        ranges = {node.name: (low, high if node.inclusive else high - 1)}
        inner = Scope(self.space, scope, node, holds, unknown, ranges)
        self.sites.append(Site(node.upper, scope, node.line))
        body = self._group(group, node, inner)
        if reads is not None:
            self._again(reads, body, inner)
        self._fill(body, node.body, inner)
        if reads is not None:
            self._again(reads, group, scope)

    def _guard(self, group: Group, node: c.If, scope: Scope) -> None:
        inner = scope
        for part in and_parts(node.condition):
            self._reads(group, node, inner, part)
            self.sites.append(Site(part, inner, node.line, is_guard=True))
            inner = narrowed(self.translate, inner, part, node)
        self._fill(self._group(group, node, inner), node.body, inner)

    def _assign(self, leaf: Leaf, node: c.Assign) -> None:
        scope, target = leaf.scope, node.target
        atomic = node.operator if node.atomic else ""
        if node.operator != "=":
            self._touch(target, scope, leaf, atomic=atomic)
        self._touch(target, scope, leaf, is_write=True, atomic=atomic)
        if isinstance(target, c.Element):
            self._subscripts(target, scope, leaf)
        self._collect(node.value, scope, leaf)

    def _subscripts(self, expr: c.Element, scope: Scope, leaf: Leaf) -> None:
        for axis, index in enumerate(expr.indices):
            self._collect(index, scope, leaf)
            self.sites.append(Site(index, scope, leaf.line, axis=(expr.array, axis)))

    def _collect(self, expr: c.CExpression, scope: Scope, leaf: Leaf) -> None:
        """All reads in an expression; operands that C may skip are under its conditions."""
        if isinstance(expr, c.Name):
            if self.names.places.get(expr.name, "value") != "value":
                self._touch(expr, scope, leaf)
        elif isinstance(expr, c.Element):
            self._touch(expr, scope, leaf)
            self._subscripts(expr, scope, leaf)
        elif isinstance(expr, c.Choice):
            self._collect(expr.condition, scope, leaf)
            for branch, holds in ((expr.then, True), (expr.other, False)):
                inner = narrowed(self.translate, scope, expr.condition, holds=holds)
                self._collect(branch, inner, leaf)
        elif isinstance(expr, c.Binary) and expr.operator in ("&&", "||"):
            self._collect(expr.left, scope, leaf)
            inner = narrowed(self.translate, scope, expr.left, holds=expr.operator == "&&")
            self._collect(expr.right, inner, leaf)
        else:
            spine: list[c.CExpression] = [expr]  # long sums lean to the left
            while isinstance(expr, c.Binary) and expr.operator not in ("&&", "||"):
                spine.append(expr := expr.left)
            if len(spine) > 1:
                self._collect(spine.pop(), scope, leaf)
            for whole in reversed(spine):
                for child in c.children(whole)[1 if isinstance(whole, c.Binary) else 0 :]:
                    self._collect(child, scope, leaf)

    def _touch(
        self,
        expr: c.Name | c.Element,
        scope: Scope,
        leaf: Leaf,
        *,
        is_write: bool = False,
        atomic: str = "",
    ) -> None:
        indices: tuple[Form, ...] = ()
        if isinstance(expr, c.Name):
            name, offset = expr.name, ZERO
        else:
            name = expr.array
            indices = tuple(self.translate.form(i, scope) for i in expr.indices)
            offset = self.translate.offset_of(expr.array, indices)
        key = (name, offset, is_write, id(scope), atomic)
        if key not in leaf.found:
            leaf.found[key] = Touch(leaf, name, indices, offset, scope, is_write, atomic)


class Constants:
    """The constants of one body, and the scopes of what stands behind them.

    What a node does not speak of is left out of its scope: the sets then link fewer names.
    Constants that are loaded stay, and what these are made of.
    """

    def __init__(self, outer: Scope, names: Names, body: tuple[c.Node, ...]) -> None:
        self.names = names
        self.scope = outer
        if any(isinstance(node, c.Let) for node in body):
            # One scope around all of the body: elsewhere, other constants may have these names.
            self.scope = Scope(outer.space, outer, None, ())
        self.found: list[Scope] = []
        self._made: dict[tuple[int, ...], Scope] = {(): self.scope}

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, scope: Scope) -> None:
        """One more constant, whose scope follows that of the last one."""
        self.scope = scope
        self.found.append(scope)

    def scope_for(self, names: frozenset[str] | None) -> Scope:
        """The scope of a node that speaks of some names; None for all."""
        if names is None:
            return self.scope
        loaded = self._closed({n for n, s in enumerate(self.found) if self._is_loaded(s)})
        wanted = {n for n, s in enumerate(self.found) if _let(s).name in names}
        chosen = self._closed(wanted) - loaded
        if len(loaded) + len(chosen) == len(self.found):
            return self.scope
        return self._chain((*sorted(loaded), *sorted(chosen)))

    def _is_loaded(self, scope: Scope) -> bool:
        return bool(scope.own_unknown) or self.names.reads_memory(_let(scope).value)

    def _closed(self, wanted: set[int]) -> set[int]:
        """Some constants, and those that their values are made of."""
        names: set[str] = set()
        found: set[int] = set()
        for number in reversed(range(len(self.found))):
            let = _let(self.found[number])
            if number in wanted or let.name in names:
                found.add(number)
                names |= self.names.used(let.value)
        return found

    def _chain(self, numbers: tuple[int, ...]) -> Scope:
        if numbers not in self._made:
            last, outer = self.found[numbers[-1]], self._chain(numbers[:-1])
            name = _let(last).name
            own = {name: last.ranges[name]}
            self._made[numbers] = Scope(
                last.space, outer, last.node, last.conditions, last.own_unknown, own
            )
        return self._made[numbers]


def _let(scope: Scope) -> c.Let:
    assert isinstance(scope.node, c.Let)
    return scope.node


def and_parts(expr: c.CExpression) -> list[c.CExpression]:
    """The operands of ``a && b && c``, in the order in which C looks at them.

    ``!(a || b)`` is ``!a && !b``.
    """
    if isinstance(expr, c.Binary) and expr.operator == "&&":
        return [*and_parts(expr.left), *and_parts(expr.right)]
    if isinstance(expr, c.Unary) and expr.operator == "!":
        match expr.operand:
            case c.Binary(operator="||") as either:
                sides = (negation(either.left), negation(either.right))
                return [part for side in sides for part in and_parts(side)]
            case c.Unary(operator="!") as twice:
                return and_parts(twice.operand)
    return [expr]


def narrowed(
    translator: TextTranslator,
    scope: Scope,
    expr: c.CExpression,
    node: c.If | None = None,
    *,
    holds: bool = True,
) -> Scope:
    """The scope in which a condition is true, or false."""
    condition = translator.condition(expr, scope)
    known, unknown = split(condition if holds else negated(condition))
    return Scope(scope.space, scope, node, known, unknown)
