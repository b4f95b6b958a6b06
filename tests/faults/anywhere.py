"""Faults that any transform may have: what it should leave alone comes out changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from seams import Domain, Unroll, build, flatten
from seams import sets as _sets

from faults import kernels
from faults.making import RENAME, changed, statement, var
from faults.planting import Patch, fault
from loopkit import Kernel

# {{{ statements

fault(
    "any: a condition is dropped",
    kernels.conditional,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, predicates=())),
    sizes={"n": 5},
)
fault(
    "any: a condition on data is dropped",
    kernels.conditional_on_data,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, predicates=())),
    sizes={"n": 5},
)
fault(
    "any: a condition is added",
    kernels.added,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(s, predicates=(prim.Comparison(var("row"), "<", 16),)),
    ),
    sizes={"n": 18},
)
fault(
    "any: < becomes <= in a condition",
    kernels.conditional,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s,
            predicates=tuple(
                dataclasses.replace(p, operator={"<": "<=", ">": ">="}.get(p.operator, p.operator))
                for p in s.predicates
            ),
        ),
    ),
    sizes={"n": 4},
)
fault(
    "any: an operand is lost",
    kernels.handed_on,
    RENAME,
    statement("t", lambda s: dataclasses.replace(s, rhs=s.rhs.children[0])),
    sizes={"n": 3},
)
fault(
    "any: a constant changes",
    kernels.handed_on,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, rhs=prim.Product((3, s.rhs.children[1])))),
    sizes={"n": 3},
)
fault(
    "any: a statement writes another array",
    kernels.handed_on,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, lhs=prim.Subscript(var("c"), s.write[1]))),
    sizes={"n": 3},
)
fault(
    "any: a sum becomes a maximum",
    kernels.row_sums,
    RENAME,
    statement("s_update", lambda s: dataclasses.replace(s, operation="max")),
    sizes={"n": 3},
)
fault(
    "any: a sum starts from one",
    kernels.row_sums,
    RENAME,
    statement("s_init", lambda s: dataclasses.replace(s, rhs=np.float32(1))),
    sizes={"n": 3},
)
fault(
    "any: an update becomes an assignment",
    kernels.row_sums,
    RENAME,
    statement("s_update", lambda s: dataclasses.replace(s, operation=None)),
    sizes={"n": 3},
)

# }}}

# {{{ the tree


def _tree(change: Callable[[Any], Any]) -> Patch:
    def apply(kernel: Kernel) -> Kernel:
        tree = change(kernel.tree)
        order = {id_: number for number, (id_, _) in enumerate(flatten(tree))}
        return kernel.with_(
            tree=tree, statements=tuple(sorted(kernel.statements, key=lambda s: order[s.id]))
        )

    return changed(apply)


def _reversed_body(tree: Any) -> Any:
    """The statements of the first loop in reverse order."""
    loop, *rest = tree
    return (dataclasses.replace(loop, body=tuple(reversed(loop.body))), *rest)


fault(
    "any: statements of a loop change places",
    kernels.handed_on,
    RENAME,
    _tree(_reversed_body),
    sizes={"n": 3},
)
fault(
    "any: a sum starts again in each iteration",
    kernels.row_sums,
    RENAME,
    changed(lambda kernel: _restarted(kernel)),
    sizes={"n": 3},
)


def _restarted(kernel: Kernel) -> Kernel:
    """What starts a sum moves into the loop of the sum."""
    paths = dict(flatten(kernel.tree))
    entries = [(id_, paths["s_update"] if id_ == "s_init" else path) for id_, path in paths.items()]
    return kernel.with_(
        tree=build(entries),
        statements=tuple(
            dataclasses.replace(s, inames=s.inames | {"k"}) if s.id == "s_init" else s
            for s in kernel.statements
        ),
    )


fault(
    "any: a sum is used before it is complete",
    kernels.row_sums,
    RENAME,
    changed(lambda kernel: _used_early(kernel)),
    sizes={"n": 3},
)


def _used_early(kernel: Kernel) -> Kernel:
    """The statement that uses a sum stands in front of the sum's loop."""
    first, update, use = flatten(kernel.tree)
    order = (first, use, update)
    by_id = kernel.statement_by_id
    return kernel.with_(tree=build(order), statements=tuple(by_id[id_] for id_, _ in order))


# }}}

# {{{ data


def _temporary(**changes: Any) -> Patch:
    return changed(
        lambda kernel: kernel.with_(
            temporaries=tuple(dataclasses.replace(t, **changes) for t in kernel.temporaries)
        )
    )


fault(
    "any: a temporary gets a narrower type",
    kernels.through_scalar,
    RENAME,
    _temporary(dtype=np.dtype("int8")),
    by_running=True,
)
fault(
    "any: a temporary gets a shorter axis",
    kernels.squares,
    RENAME,
    _temporary(shape=(4, 3)),
)
fault(
    "any: an argument gets an offset",
    kernels.added,
    RENAME,
    changed(
        lambda kernel: kernel.with_(
            args=tuple(
                dataclasses.replace(a, offset=1) if a.name == "a" else a for a in kernel.args
            )
        )
    ),
    sizes={"n": 5},
    sanitize=True,
    by_running=True,
)
fault(
    "any: a substitution rule changes",
    kernels.rules,
    RENAME,
    changed(
        lambda kernel: kernel.with_(
            substitutions=tuple(
                dataclasses.replace(r, arguments=tuple(reversed(r.arguments)))
                for r in kernel.substitutions
            )
        )
    ),
    sizes={"n": 3},
)
fault(
    "any: another loop becomes parallel",
    kernels.recurrence,
    RENAME,
    changed(
        lambda kernel: kernel.with_(
            tags=(*kernel.tags, ("j", Unroll())),
            domains=tuple(
                Domain(d.inames, d.set & _sets.condition_set(prim.Comparison(var("j"), "<", 7)))
                for d in kernel.domains
            ),
        )
    ),
)

# }}}
