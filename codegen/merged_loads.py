"""Arrays that must not be ``__restrict__``, because of how compilers merge loads.

``a ? x[i] : y[j]`` may be compiled to one load from either address. NVRTC (13.5, for 8.0 and 9.0)
treats this load as one of read-only memory if ``y`` is ``const *__restrict__``, even if the kernel
writes ``x``, and moves it ahead of stores and barriers that must precede it. Without
``__restrict__`` it remains an ordinary load in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, pairwise, product

import numpy as np

from loopkit._program import ArrayParam, ValueParam
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.branches import is_else


def mistaken_arrays(
    body: tuple[c.Node, ...], params: Iterable[ValueParam | ArrayParam]
) -> frozenset[str]:
    """Read-only arrays whose loads may be merged with loads of an array that the kernel writes."""
    arrays = [p for p in params if isinstance(p, ArrayParam)]
    sizes = {p.name: np.dtype(p.dtype).itemsize for p in arrays}
    written = {p.name for p in arrays if p.is_written}
    found: set[str] = set()
    for one, two in _alternatives(body):
        for mine, other in _loads(one, two):
            if (mine in written) != (other in written):
                read = other if mine in written else mine
                if sizes.get(mine) == sizes.get(other):
                    found.add(read)
    return frozenset(found)


def _alternatives(body: tuple[c.Node, ...]) -> Iterator[tuple[c.CExpression, c.CExpression]]:
    """Pairs of alternative values: of a choice, of two branches, or of one variable."""
    values: dict[str, dict[object, c.CExpression]] = {}
    bodies = [body]
    for node in c.statements(body):
        if isinstance(node, (c.For, c.If, c.Block, c.Combine)):
            bodies.append(node.body)
        for part in chain.from_iterable(map(c.walk, c.expressions(node))):
            if isinstance(part, c.Choice):
                yield part.then, part.other
        if not (isinstance(node, c.Assign) and isinstance(node.target, c.Name)):
            continue
        if node.operator == "=" and _has_load(node.value):
            values.setdefault(node.target.name, {})[_form(node.value)] = node.value
    for first, second in chain.from_iterable(map(pairwise, bodies)):
        if isinstance(first, c.If) and isinstance(second, c.If) and is_else(first, second):
            yield from product(_assigned(first.body), _assigned(second.body))
    for some in values.values():
        yield from combinations(some.values(), 2)


def _assigned(nodes: tuple[c.Node, ...]) -> list[c.CExpression]:
    return [node.value for node in c.statements(nodes) if isinstance(node, c.Assign)]


def _loads(one: c.CExpression, two: c.CExpression) -> Iterator[tuple[str, str]]:
    """The arrays of two loads that are at the same position in two values of one form."""
    while isinstance(one, c.Cast):
        one = one.operand
    while isinstance(two, c.Cast):
        two = two.operand
    if isinstance(one, c.Element) and isinstance(two, c.Element):
        yield one.array, two.array
    for mine, other in ((one, two), (two, one)):
        if isinstance(mine, c.Choice):
            yield from _loads(mine.then, other)
            yield from _loads(mine.other, other)
    if type(one) is type(two) and _word(one) == _word(two):
        # A compiler puts what is loaded before what is not.
        for pair in zip(*(filter(_has_load, c.children(e)) for e in (one, two)), strict=False):
            yield from _loads(*pair)


def _word(expr: c.CExpression) -> object:
    return getattr(expr, "operator", None) or getattr(expr, "function", None)


def _form(expr: c.CExpression) -> object:
    """A key that is equal for values that differ only in subscripts, such as unrolled copies."""
    return tuple((type(part), getattr(part, "array", "")) for part in c.walk(expr))


def _has_load(expr: c.CExpression) -> bool:
    return any(isinstance(part, c.Element) for part in c.walk(expr))
