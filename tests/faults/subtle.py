"""Faults that leave most of a schedule right: statements too many, orders."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Change, Domain, InstructionParallel, LocalAxis, Loop, build, flatten
from seams import sets as _sets

from faults import kernels
from faults.making import RENAME, changed, claimed, var
from faults.planting import Patch, fault
from loopkit import Kernel

# {{{ statements that nobody asked for, and some that are lost


def _with_statement(kernel: Kernel, new: Any) -> Kernel:
    return kernel.with_(statements=(*kernel.statements, new), tree=(*kernel.tree, new.id))


def _zero(kernel: Kernel, kind: str) -> Any:
    """A statement that clears the first cell of what is only read."""
    return dataclasses.replace(
        kernel.statements[0],
        id="extra",
        lhs=prim.Subscript(var("a"), (0,)),
        rhs=np.float32(0),
        inames=frozenset(),
        kind=kind,
    )


fault(
    "any: a statement more that clears an input",
    kernels.added,
    RENAME,
    changed(lambda kernel: _with_statement(kernel, _zero(kernel, "user"))),
    sizes={"n": 3},
)
fault(
    "any: a statement that carries data clears an input",
    kernels.added,
    RENAME,
    claimed(
        lambda change: dataclasses.replace(
            change,
            kernel=_with_statement(change.kernel, _zero(change.kernel, "move")),
            moves=frozenset(["extra"]),
        )
    ),
    sizes={"n": 3},
)


def _moved_input(change: Change) -> Change:
    """A statement that carries data moves one input into another, at the end."""
    kernel = change.kernel
    extra = dataclasses.replace(
        _zero(kernel, "move"),
        lhs=prim.Subscript(var("a"), (0,)),
        rhs=prim.Subscript(var("b"), (0,)),
    )
    return dataclasses.replace(
        change, kernel=_with_statement(kernel, extra), moves=frozenset(["extra"])
    )


fault(
    "any: a copy overwrites an input when all is done",
    kernels.added,
    RENAME,
    claimed(_moved_input),
    sizes={"n": 3},
)


def _without(id_: str) -> Callable[[Kernel], Kernel]:
    def change(kernel: Kernel) -> Kernel:
        return kernel.with_(
            statements=tuple(s for s in kernel.statements if s.id != id_),
            tree=build([e for e in flatten(kernel.tree) if e[0] != id_]),
        )

    return change


fault(
    "any: a statement is lost",
    kernels.handed_on,
    RENAME,
    changed(_without("t")),
    sizes={"n": 3},
)
fault(
    "any: the start of a sum is lost",
    kernels.row_sums,
    RENAME,
    changed(_without("s_init")),
    sizes={"n": 3},
)
fault(
    "any: the last statement of three is lost",
    kernels.doubled,
    RENAME,
    changed(_without("double")),
    sizes={"n": 3},
)


def _hoisted_start(kernel: Kernel) -> Kernel:
    """A sum starts once, in front of the loop over its rows."""
    entries = [(id_, () if id_ == "s_init" else path) for id_, path in flatten(kernel.tree)]
    return kernel.with_(
        tree=build(entries),
        statements=tuple(
            dataclasses.replace(s, inames=frozenset()) if s.id == "s_init" else s
            for s in kernel.statements
        ),
    )


fault(
    "any: a sum starts only once",
    kernels.row_sums,
    RENAME,
    claimed(
        lambda change: dataclasses.replace(
            change,
            kernel=_hoisted_start(change.kernel),
            instances=tuple(
                dataclasses.replace(m, values={"i": 0}) if m.new == "s_init" else m
                for m in change.instances
            ),
        )
    ),
    sizes={"n": 3},
)


def _again(id_: str) -> Callable[[Kernel], Kernel]:
    """A statement runs twice in a row."""

    def change(kernel: Kernel) -> Kernel:
        one = _sets.condition_set(
            prim.LogicalAnd(
                (prim.Comparison(var("again"), ">=", 0), prim.Comparison(var("again"), "<=", 1))
            )
        )
        entries = [
            (i, (*path, ("again", 10**6)) if i == id_ else path) for i, path in flatten(kernel.tree)
        ]
        return kernel.with_(
            domains=(*kernel.domains, Domain(("again",), one)),
            tree=build(entries),
            statements=tuple(
                dataclasses.replace(s, inames=s.inames | {"again"}) if s.id == id_ else s
                for s in kernel.statements
            ),
        )

    return change


fault(
    "any: a temporary is doubled twice",
    kernels.doubled,
    RENAME,
    changed(_again("double")),
    sizes={"n": 3},
)

# }}}

# {{{ orders


def _loops_reversed(original: Any) -> Any:
    """Loops at the top come in reverse order."""

    def renamed(kernel: Kernel, old: str, new: str) -> Change:
        right = original(kernel, old, new)
        tree = tuple(reversed(right.kernel.tree))
        order = {id_: n for n, (id_, _) in enumerate(flatten(tree))}
        ordered = tuple(sorted(right.kernel.statements, key=lambda s: order[s.id]))
        return dataclasses.replace(right, kernel=right.kernel.with_(tree=tree, statements=ordered))

    return renamed


REVERSED = Patch("transforms.rename:_renamed", _loops_reversed)
fault(
    "order: of two loops that write the same cells, where they do",
    kernels.overlaid,
    RENAME,
    REVERSED,
    sizes={"n": 5},
)
fault(
    "order: what is overwritten later is read too late",
    kernels.kept,
    RENAME,
    REVERSED,
    sizes={"n": 3},
)
fault(
    "order: a condition reads what is computed after it",
    kernels.flagged,
    RENAME,
    REVERSED,
    sizes={"n": 4},
)
fault(
    "order: an index is read before it is computed",
    kernels.indexed,
    RENAME,
    REVERSED,
    sizes={"n": 4},
    by_running=True,
)


def _ilp(original: Any) -> Any:
    return lambda kernel, tags: original(kernel, {iname: InstructionParallel() for iname in tags})


fault(
    "tag_inames: copies side by side instead of one after the other",
    kernels.neighbours,
    do("tag_inames", "i:unr"),
    Patch("transforms.tag:_retagged", _ilp),
)


def _both_on_one_axis(original: Any) -> Any:
    """Both halves of a loop get the same thread axis."""

    def with_tags(kernel: Kernel, tags: Any) -> Kernel:
        found = original(kernel, tags)
        axis = LocalAxis(0)
        names = {n for n in found.all_inames if n.startswith("i_")}
        tree = tuple(n for node in found.tree for n in _without_loops(node, names))
        return found.with_(tree=tree, tags=tuple((n, axis) for n in sorted(names)))

    return with_tags


def _without_loops(node: Any, names: set[str]) -> list[Any]:
    if not isinstance(node, Loop):
        return [node]
    body = [n for inner in node.body for n in _without_loops(inner, names)]
    return body if node.iname in names else [Loop(node.iname, tuple(body))]


fault(
    "split_iname: both halves on one thread axis",
    kernels.added_sixteen,
    do("split_iname", "i", 4, inner_tag="l.0"),
    Patch("transforms.split:with_tags", _both_on_one_axis),
    by_running=True,
)

# }}}
