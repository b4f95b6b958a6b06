"""What a kernel executes, instance by instance, for small sizes: an oracle for transforms.

Works on the kernel value alone: parallel coordinates of a statement are run
through in ascending order inside the loops of its path.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import islpy as isl
import numpy as np
import pymbolic.primitives as prim
from seams import (
    Change,
    Component,
    LaunchBarrier,
    Loop,
    OwnFunction,
    Record,
    Renumbered,
    TypeCast,
    expand_rules,
    index_tuple,
    normal,
    operands,
    statements_in,
)
from seams import sets as _sets

from loopkit import Kernel, Statement

Point = dict[str, int]


@dataclass(frozen=True)
class Parts:
    """The value of a record."""

    names: tuple[str, ...]
    values: tuple[Any, ...]

    def of(self, name: str) -> Any:
        """One component."""
        return self.values[self.names.index(name)]


def joined(operation: Any, old: Parts, new: Parts) -> Parts:
    """What an operation makes of two records."""
    if operation.name in ("argmin", "argmax"):
        sign = 1 if operation.name == "argmin" else -1
        return min(old, new, key=lambda one: (sign * one.values[0], one.values[1]))
    names = (v.name for side in operands(old.names) for v in side)
    env = dict(zip(names, (*old.values, *new.values), strict=True))
    return Parts(old.names, tuple(value(e, env, {}) for e in operation.joined(np.dtype("float64"))))


def points(domain: isl.Set, sizes: Point, names: list[str]) -> list[Point]:
    """All values of ``names`` in ``domain``."""
    for name, value in sizes.items():
        position = domain.find_dim_by_name(_sets.PARAM, name)
        if position >= 0:
            domain = domain.fix_val(_sets.PARAM, position, isl.Val(value))
    domain = _sets.project_onto(domain, names)
    assert set(_sets.names_of(domain)) >= set(names), (names, domain)
    found: list[Point] = []

    def visit(point: isl.Point) -> None:
        values = {}
        for position in range(domain.dim(_sets.PARAM)):
            name = domain.get_dim_name(_sets.PARAM, position)
            values[name] = int(point.get_coordinate_val(_sets.PARAM, position).to_python())
        found.append(values)

    domain.foreach_point(visit)
    return found


def value(expr: Any, env: Point, memory: dict[str, dict[tuple[int, ...], Any]]) -> Any:
    """The value of an expression."""

    def rec(e: Any) -> Any:
        return value(e, env, memory)

    if isinstance(expr, (int, float, np.generic)):
        return expr
    if isinstance(expr, prim.Variable):
        return env[expr.name] if expr.name in env else memory[expr.name][()]
    if isinstance(expr, prim.Subscript):
        return memory[expr.aggregate.name][tuple(int(rec(i)) for i in index_tuple(expr))]
    if isinstance(expr, prim.Sum):
        return sum(map(rec, expr.children))
    if isinstance(expr, prim.Product):
        return int(np.prod([rec(c) for c in expr.children], dtype=object))
    if isinstance(expr, prim.FloorDiv):
        return rec(expr.numerator) // rec(expr.denominator)
    if isinstance(expr, prim.Remainder):
        return rec(expr.numerator) % rec(expr.denominator)
    if isinstance(expr, (prim.Min, prim.Max)):
        return (min if isinstance(expr, prim.Min) else max)(map(rec, expr.children))
    if isinstance(expr, TypeCast):
        return rec(expr.operand)
    if isinstance(expr, Record):
        return Parts(expr.names, tuple(map(rec, expr.parts)))
    if isinstance(expr, Component):
        return rec(expr.operand).of(expr.name)
    if isinstance(expr, prim.LogicalAnd):
        return all(map(rec, expr.children))
    if isinstance(expr, prim.LogicalOr):
        return any(map(rec, expr.children))
    if isinstance(expr, prim.LogicalNot):
        return not rec(expr.child)
    if isinstance(expr, prim.If):
        return rec(expr.then if rec(expr.condition) else expr.else_)
    if isinstance(expr, prim.Comparison):
        return bool(eval(f"a {expr.operator} b", {"a": rec(expr.left), "b": rec(expr.right)}))
    if isinstance(expr, prim.Call) and isinstance(expr.function, OwnFunction):
        # Any function of its text and its arguments.
        texts = [overload.texts for overload in expr.function.overloads]
        return crc32(repr((texts, [float(rec(p)) for p in expr.parameters])).encode()) % 1009
    raise TypeError(type(expr))


def places(tree: Any) -> dict[str, tuple[int | str, ...]]:
    """For each statement its position among its siblings and the loops around it, in turn."""
    found: dict[str, tuple[int | str, ...]] = {}

    def visit(nodes: Any, before: tuple[int | str, ...]) -> None:
        for number, node in enumerate(nodes):
            if isinstance(node, Loop):
                visit(node.body, (*before, number, node.iname))
            elif isinstance(node, str):
                found[node] = (*before, number)

    visit(tree, ())
    return found


def launches(tree: Any) -> dict[str, tuple[int | str, ...]]:
    """For each statement its launch: places between barriers, and the loops around launches."""
    found: dict[str, tuple[int | str, ...]] = {}

    def parted(node: Any) -> bool:
        return isinstance(node, Loop) and any(
            isinstance(n, LaunchBarrier) or parted(n) for n in node.body
        )

    def visit(nodes: Any, before: tuple[int | str, ...]) -> None:
        number = 0
        for node in nodes:
            if isinstance(node, Loop) and parted(node):
                visit(node.body, (*before, number + 1, node.iname))
                number += 2
            elif isinstance(node, LaunchBarrier):
                number += 1
            else:
                found.update(dict.fromkeys(statements_in(node), (*before, number)))

    visit(tree, ())
    return found


def executed(kernel: Kernel, sizes: Point) -> list[tuple[Statement, Point]]:
    """All instances in the order in which the tree executes them."""
    where, sizes = places(kernel.tree), kernel.with_computed(sizes)
    result = []
    for statement in kernel.statements:
        place = where[statement.id]
        names = sorted(statement.inames)
        in_path = [p for p in place if isinstance(p, str)]
        parallel = sorted(statement.inames - set(in_path))
        assert len(set(in_path)) == len(in_path)
        assert set(in_path) <= statement.inames
        for point in points(kernel.statement_domain(statement), sizes, names):
            env = {**sizes, **point}
            if not all(value(p, env, {}) for p in statement.predicates):
                continue
            time = tuple(point[p] if isinstance(p, str) else p for p in place)
            result.append((time, tuple(point[p] for p in parallel), statement, point))
    result.sort(key=lambda r: (r[0], r[1]))
    return [(statement, point) for _, _, statement, point in result]


_UPDATES = {"sum": lambda a, b: a + b, "max": max}


class _Inputs(dict[tuple[int, ...], int]):
    """Cells that nobody wrote hold a number that depends on where they are."""

    def __init__(self, name: str, is_temporary: bool) -> None:
        super().__init__()
        self.name = name
        self.is_temporary = is_temporary

    def __missing__(self, cell: tuple[int, ...]) -> int:
        if self.is_temporary:
            raise AssertionError(f"{self.name}{list(cell)} is read before it is written")
        number = sum(ord(c) for c in self.name)
        for axis, index in enumerate(cell):
            number = (number * 31 + (index + 7) * (axis + 3)) % 1009
        return number


def results(kernel: Kernel, sizes: Point) -> dict[str, dict[tuple[int, ...], Any]]:
    """What is left in the argument arrays."""
    sizes = kernel.with_computed(sizes)
    kernel = expand_rules(kernel)
    temporaries = kernel.temporary_by_name.keys()
    computed = kernel.computed_sizes
    names = [*temporaries, *(a.name for a in kernel.args if a.name not in computed)]
    memory = {name: _Inputs(name, name in temporaries) for name in names}
    shapes = {t.name: t.shape for t in kernel.temporaries}
    known = {a.name for a in kernel.args} & sizes.keys()
    for statement, point in executed(kernel, sizes):
        env = {**{n: sizes[n] for n in known}, **point}
        name, indices = statement.write
        cell = tuple(int(value(i, env, memory)) for i in indices)
        if name in shapes:
            limits = [value(s, sizes, {}) for s in shapes[name]]
            assert len(limits) == len(cell), (name, cell)
            assert all(0 <= c < limit for c, limit in zip(cell, limits, strict=True)), (name, cell)
        new = value(statement.rhs, env, memory)
        if statement.operation is not None:
            new = _UPDATES[statement.operation](memory[name][cell], new)
        memory[name][cell] = new
    return {n: dict(m) for n, m in memory.items() if n not in temporaries}


def old_instances(kernel: Kernel, sizes: Point) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """All instances of a kernel, sorted."""
    return sorted((s.id, tuple(sorted(p.items()))) for s, p in executed(kernel, sizes))


def change_of(function: Any, kernel: Kernel, *args: Any, **options: Any) -> Change:
    """What a transform does, and how old instances map to new ones; no check."""
    bare = function.__wrapped__
    bound = inspect.signature(bare).bind(kernel, *args, **options)
    change: Change = bare(kernel, **normal(bare, dict(list(bound.arguments.items())[1:])))
    return change


def check_change(function: Any, kernel: Kernel, *args: Any, sizes: Point, **kwargs: Any) -> Kernel:
    """Apply a transform; check that its instance maps hit every old instance exactly once.

    Checks also that each new instance writes the cell that its old one wrote,
    where what is written is an argument.
    """
    change = change_of(function, kernel, *args, **kwargs)
    for part in change.parts or (change,):
        _check_part(kernel, part, sizes)
        kernel = part.kernel
    return change.kernel


def _check_part(kernel: Kernel, change: Change, given: Point) -> None:
    maps = {m.new: m for m in change.instances}
    before, sizes = kernel.with_computed(given), change.kernel.with_computed(given)
    found = []
    for statement, point in executed(change.kernel, sizes):
        step = maps.get(statement.id)
        old = kernel.statement_by_id[step.old if step else statement.id]
        env = {**sizes, **point}
        values = dict(step.values) if step else {}
        if isinstance(change.claim, Renumbered):
            values = {n: e for n, e in change.claim.values.items() if n in old.inames}
        image = {
            i: value(values[i], env, {}) if i in values else point[i] for i in sorted(old.inames)
        }
        found.append((old.id, tuple(sorted(image.items()))))
        if old.written in kernel.arg_by_name:
            mine = [value(i, env, {}) for i in statement.write[1]]
            its = [value(i, {**before, **image}, {}) for i in old.write[1]]
            assert mine == its
    assert sorted(found) == old_instances(kernel, before)


def all_sizes(names: list[str], values: list[int]) -> list[Point]:
    """Every combination of ``values`` for ``names``."""
    return [
        dict(zip(names, combination, strict=True))
        for combination in itertools.product(values, repeat=len(names))
    ]
