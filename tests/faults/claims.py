"""Faults that any transform may have: expressions that change a little, maps that lie."""

from __future__ import annotations

import dataclasses
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Change, Domain, InstanceMap, build, flatten, substitute
from seams import sets as _sets

from faults import kernels
from faults.making import RENAME, changed, claimed, statement, var
from faults.planting import Patch, fault
from loopkit import Kernel

# {{{ maps that lie


def _said_to_move(change: Change) -> Change:
    """A statement that computes is said to carry data only, and does nothing useful."""
    kernel = change.kernel
    lazy = tuple(
        dataclasses.replace(s, rhs=s.lhs, kind="move") if s.id == "t" else s
        for s in kernel.statements
    )
    return dataclasses.replace(change, kernel=kernel.with_(statements=lazy), moves=frozenset(["t"]))


fault(
    "any: a statement is said to carry data only",
    kernels.handed_on,
    RENAME,
    claimed(_said_to_move),
    sizes={"n": 3},
)


def _stray_copy(change: Change) -> Change:
    """A statement that carries data overwrites what nobody asked it to."""
    kernel = change.kernel
    s = kernel.statement_by_id["t"]
    stray = dataclasses.replace(
        s, id="stray", lhs=s.lhs, rhs=prim.Subscript(var("a"), s.write[1]), kind="move"
    )
    [loop] = kernel.tree
    return dataclasses.replace(
        change,
        kernel=kernel.with_(
            statements=(*kernel.statements, stray),
            tree=(dataclasses.replace(loop, body=(*loop.body, "stray")),),
        ),
        moves=frozenset(["stray"]),
    )


fault(
    "any: a copy overwrites a result",
    kernels.handed_on,
    RENAME,
    claimed(_stray_copy),
    sizes={"n": 3},
)


def _reversed_map(change: Change) -> Change:
    """Instances of a statement that uses its iname nowhere are said to run in reverse."""
    [step] = change.instances
    wrong = InstanceMap(
        step.new, step.old, {"i": prim.Sum((prim.Product((-1, step.values["i"])), 9))}
    )
    kernel = change.kernel
    later = tuple(
        s.map_expressions(
            lambda e: substitute(e, {"row": prim.Sum((prim.Product((-1, var("row"))), 10))})
        )
        for s in kernel.statements
    )
    return dataclasses.replace(change, kernel=kernel.with_(statements=later), instances=(wrong,))


fault(
    "any: runs in reverse, off by one",
    kernels.added_ten,
    RENAME,
    claimed(_reversed_map),
)

# }}}

# {{{ more of what is computed

fault(
    "any: a function becomes another",
    kernels.waves,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(s, rhs=prim.Call(var("cos"), s.rhs.parameters)),
    ),
    sizes={"n": 3},
    by_running=True,
)
fault(
    "any: an integer becomes a float",
    kernels.tripled,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, rhs=prim.Product((3.0, s.rhs.children[1])))),
    sizes={"n": 3},
    by_running=True,
    values=lambda sizes: {"a": [2**60 + 1, 2**60 + 3, 7]},
)
fault(
    "any: operands of a difference change places",
    kernels.waves,
    RENAME,
    statement(
        "t", lambda s: dataclasses.replace(s, rhs=prim.Sum((s.rhs.children[1], s.rhs.children[1])))
    ),
    sizes={"n": 3},
    by_running=True,
)
fault(
    "any: a type cast is lost",
    kernels.rounded,
    RENAME,
    statement("s", lambda s: dataclasses.replace(s, rhs=s.rhs.operand)),
    sizes={"n": 3},
    by_running=True,
    values=lambda sizes: {"a": [1.5, 2.5, 3.5]},
)
fault(
    "any: a sum starts from an element",
    kernels.row_sums,
    RENAME,
    statement(
        "s_init",
        lambda s: dataclasses.replace(s, rhs=prim.Subscript(var("a"), (var("row"), 0))),
    ),
    sizes={"n": 3},
)
fault(
    "any: a scatter goes through the next element of its index array",
    kernels.scattered,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s,
            lhs=substitute(s.lhs, {"row": prim.Remainder(prim.Sum((var("row"), 1)), var("n"))}),
        ),
    ),
    sizes={"n": 4},
    by_running=True,
    values=lambda sizes: {"p": [2, 0, 3, 1]},
)
fault(
    "any: a gather goes through the next element of its index array",
    kernels.gathered,
    RENAME,
    statement(
        "s",
        lambda s: dataclasses.replace(
            s,
            rhs=substitute(s.rhs, {"row": prim.Remainder(prim.Sum((var("row"), 1)), var("n"))}),
        ),
    ),
    sizes={"n": 4},
    by_running=True,
    values=lambda sizes: {"p": [2, 0, 3, 1]},
)

# }}}

# {{{ more maps


def _longer_sum(kernel: Kernel) -> Kernel:
    """Two values of a new iname for each term of a sum."""
    twice = Domain(
        ("again",),
        _sets.condition_set(
            prim.LogicalAnd(
                (
                    prim.Comparison(var("again"), ">=", 0),
                    prim.Comparison(var("again"), "<=", 1),
                )
            )
        ),
    )
    entries = [
        (id_, (*path, ("again", 10**6)) if id_ == "s_update" else path)
        for id_, path in flatten(kernel.tree)
    ]
    return kernel.with_(
        domains=(*kernel.domains, twice),
        tree=build(entries),
        statements=tuple(
            dataclasses.replace(s, inames=s.inames | {"again"}) if s.id == "s_update" else s
            for s in kernel.statements
        ),
    )


fault(
    "any: each term of a sum counts twice",
    kernels.row_sums,
    RENAME,
    changed(_longer_sum),
    sizes={"n": 3},
)
fault(
    "any: no map at all",
    kernels.added,
    RENAME,
    claimed(
        lambda change: dataclasses.replace(
            change,
            instances=(),
            kernel=change.kernel.with_(
                statements=tuple(
                    s.map_expressions(lambda e: substitute(e, {"row": prim.Sum((var("row"), 1))}))
                    for s in change.kernel.statements
                )
            ),
        )
    ),
    sizes={"n": 3},
)
fault(
    "any: two statements are said to be one",
    kernels.handed_on,
    RENAME,
    claimed(
        lambda change: dataclasses.replace(
            change,
            instances=tuple(dataclasses.replace(m, old="t") for m in change.instances),
            kernel=change.kernel.with_(
                statements=tuple(
                    dataclasses.replace(s, lhs=t.lhs, rhs=t.rhs)
                    for t in [change.kernel.statement_by_id["t"]]
                    for s in change.kernel.statements
                )
            ),
        )
    ),
    sizes={"n": 3},
)


def _asserted(original: Any) -> Any:
    """The transform asserts of the data what nobody said."""

    def retagged(kernel: Kernel, tags: Any) -> Change:
        asserted = Kernel.assume_injective(kernel, "p")  # type: ignore[attr-defined]
        return original(kernel.with_(assertions=asserted.assertions), tags)

    return retagged


fault(
    "any: asserts of the data what nobody said",
    kernels.scattered_beside,
    do("tag_inames", "j:l.0"),
    Patch("transforms.tag:_retagged", _asserted),
    sizes={"n": 4},
    by_running=True,
    then=do("tag_inames", "i:l.0"),
    values=lambda sizes: {"p": [2, 1, 2, 1]},
)

# }}}
