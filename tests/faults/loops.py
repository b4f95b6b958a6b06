"""Faults in the transforms that exchange, rename and order loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import (
    Change,
    Domain,
    InstanceMap,
    LocalAxis,
    flatten,
    settled_tree,
    substitute,
    with_fused_loops,
    with_names,
)
from seams import sets as _sets
from seams import with_one_domain as _with_one_domain

from faults import kernels
from faults.making import Values, statements_get, total, var
from faults.planting import Patch, fault

# {{{ join_inames, map_domain

JOIN = do("join_inames", ["i", "j"])


def _inverse(wrong: Callable[[Values], Values]) -> Patch:
    """Statements and map use a wrong inverse."""

    def make(original: Any) -> Any:
        def solve(kernel: Any, r: Any, verb: str, inverse: Any) -> Any:
            found = original(kernel, r, verb, inverse)
            return dataclasses.replace(found, inverse=wrong(found.inverse))

        return solve

    return Patch("transforms._reindex:_solve", make)


def both_inverses(
    name: str, wrong: Callable[[Values], Values], kernel: Any, step: Any, **more: Any
) -> None:
    fault(f"{name}, said to be right", kernel, step, statements_get(wrong), **more)
    fault(f"{name}, and said so", kernel, step, _inverse(wrong), **more)


def _exchanged(values: Values) -> Values:
    (a, x), (b, y) = values.items()
    return {a: y, b: x}


both_inverses(
    "join_inames: quotient and remainder exchanged", _exchanged, kernels.moved, JOIN, sizes={"n": 3}
)
both_inverses(
    "join_inames: wrong length of the inner loop",
    lambda values: {
        name: prim.FloorDiv(value.numerator, 5) if isinstance(value, prim.FloorDiv) else value
        for name, value in values.items()
    },
    kernels.moved,
    JOIN,
    sizes={"n": 6},
)
SKEW = do("map_domain", "{ [i, j] -> [w, j]: w = i + j }")
both_inverses(
    "map_domain: inverse one too large",
    lambda values: {n: total(v, 1) if n == "i" else v for n, v in values.items()},
    kernels.moved,
    SKEW,
    sizes={"n": 3},
)
both_inverses(
    "map_domain: wrong sign in the inverse",
    lambda values: {
        n: substitute(v, {"j": prim.Product((-1, var("j")))}) if n == "i" else v
        for n, v in values.items()
    },
    kernels.moved,
    SKEW,
    sizes={"n": 6},
)


def _bound_lost(original: Any) -> Any:
    """Of the new domain, only its bounding box is left."""

    def replace(kernel: Any, old: Any, new: Any, graph: Any, *rest: Any, **more: Any) -> Any:
        found = []
        for domain in original(kernel, old, new, graph, *rest, **more):
            if set(new) <= set(domain.inames):
                box = domain.set
                for mark in new:
                    others = [n for n in new if n != mark]
                    alone = _sets.project_out(domain.set, others)
                    box = alone if mark == new[0] else box & alone
                domain = Domain(domain.inames, box)
            found.append(domain)
        return tuple(found)

    return replace


fault(
    "map_domain: a constraint is lost",
    kernels.moved,
    SKEW,
    Patch("transforms._reindex:replace_inames", _bound_lost),
    sizes={"n": 4},
)


def _new_order_reversed(original: Any) -> Any:
    def call(self: Any, id_: str, path: Any) -> Any:
        return tuple(reversed(original(self, id_, path)))

    return call


fault(
    "map_domain: new loops in the wrong order",
    kernels.antidiagonal,
    do("map_domain", "{ [i, j] -> [u, w]: u = i and w = j }"),
    Patch("transforms._reindex:_Paths.__call__", _new_order_reversed),
    sizes={"n": 5},
)

# }}}

# {{{ rename_iname, duplicate_inames


def _half_renamed(original: Any) -> Any:
    """In what is read, the new name stands for another loop."""

    def renamed(kernel: Any, new: Any) -> Any:
        found = original(kernel, new)
        wrong = {n: var("j") for n in new.names.values()}
        statements = (
            dataclasses.replace(s, rhs=substitute(s.rhs, wrong)) for s in found.statements
        )
        return found.with_(statements=tuple(statements))

    return renamed


fault(
    "rename_iname: what is read keeps another iname",
    kernels.turned,
    do("rename_iname", "i", "k"),
    Patch("transforms.rename:renamed", _half_renamed),
    sizes={"n": 3},
)


def _moved_to(target: str) -> Callable[[Any], Any]:
    """A statement is moved to an iname of other values."""

    def make(original: Any) -> Any:
        def move(kernel: Any, old: str, new: str, ids: Any) -> Any:
            change = with_names(kernel, ids, {old: target})
            return dataclasses.replace(change, kernel=settled_tree(change.kernel))

        return move

    return make


fault(
    "rename_iname: to an iname of other values",
    kernels.apart,
    do("rename_iname", "k", "i", existing_ok=True),
    Patch("transforms.rename:_moved", _moved_to("j")),
    sizes=({"n": 2, "m": 3}, {"n": 3, "m": 2}),
)
DUPLICATE = do("duplicate_inames", "i", "id:t")


def _exchanged_bodies(original: Any) -> Any:
    """The copy of a statement does what the other statement did."""

    def rewrite(kernel: Any, values: Any, *rest: Any) -> Any:
        statements, rules = original(kernel, values, *rest)
        s, t = kernel.statements
        mine = {s.id: t, t.id: s}
        found = []
        for statement in statements:
            other = mine[statement.id]
            names = values.get(statement.id, {})
            found.append(
                dataclasses.replace(
                    statement,
                    lhs=substitute(other.lhs, names),
                    rhs=substitute(other.rhs, names),
                )
            )
        return tuple(found), rules

    return rewrite


def _exchanged_maps(original: Any) -> Any:
    """The map, too, takes each of the two for the other."""

    def maps(kernel: Any, values: Any) -> Any:
        s, t = (x.id for x in kernel.statements)
        other = {s: t, t: s}
        found = {m.new: m for m in original(kernel, values)}
        return tuple(
            InstanceMap(id_, other[id_], found[id_].values if id_ in found else {}) for id_ in other
        )

    return maps


fault(
    "duplicate_inames: the copy does another statement's work, said to be right",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms._common:rewrite_statements", _exchanged_bodies),
    sizes={"n": 3},
)
fault(
    "duplicate_inames: the copy does another statement's work, and said so",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms._common:rewrite_statements", _exchanged_bodies),
    Patch("transforms._common:maps_for", _exchanged_maps),
    sizes={"n": 3},
)


def _backwards(original: Any) -> Any:
    """The new loop stands before what it must follow."""

    def settle(kernel: Any) -> Any:
        found = original(kernel)
        return found.with_(
            tree=tuple(reversed(found.tree)), statements=tuple(reversed(found.statements))
        )

    return settle


fault(
    "duplicate_inames: the copy's loop stands in front",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms.duplicate:settled_tree", _backwards),
    sizes={"n": 3},
)


def _last_value_twice(original: Any) -> Any:
    """The last iteration is written out twice, and one before it never."""
    return lambda kernel, iname: [*(v := original(kernel, iname))[:-2], v[-1], v[-1]]


fault(
    "unroll: an iteration too many, another one missing",
    kernels.short_rows,
    do("unroll", "j"),
    Patch("transforms.duplicate:_values_taken", _last_value_twice),
    sizes={"n": 3},
)


def _unguarded(original: Any) -> Any:
    """What an iteration of a ragged loop does is done always."""
    return lambda old, new, copies, values: {}


fault(
    "unroll: no guard where the loop was shorter",
    kernels.short_rows,
    do("unroll", "j"),
    Patch("transforms.slabs:_guarded", _unguarded),
    sizes={"n": 3},
)


def _cut_backwards(original: Any) -> Any:
    """The parts of a loop stand in the wrong order."""
    return lambda *given: original(*given)[::-1]


fault(
    "fission: what comes later stands in front",
    kernels.handed_on,
    do("fission", "i", "id:t"),
    Patch("transforms.fusion:_parted", _cut_backwards),
    sizes={"n": 3},
)


def _unneeded(original: Any) -> Any:
    """What a later loop needs is left behind."""
    return lambda *_: False


fault(
    "fuse_loops: what a later loop needs comes after it",
    kernels.between,
    do("fuse_loops", "i"),
    Patch("transforms.fusion:_needs", _unneeded),
    sizes={"n": 3},
)


def _granted(original: Any) -> Any:
    """What is only wished for is done."""

    def fused(change: Any, iname: str) -> Any:
        ids = {m.new for m in change.instances}
        return dataclasses.replace(change, kernel=with_fused_loops(change.kernel, iname, ids))

    return fused


fault(
    "rename_iname: loops are one although they read ahead",
    kernels.ahead,
    do("rename_iname", "j", "i", existing_ok=True),
    Patch("transforms.rename:fused_where_legal", _granted),
    sizes={"n": 5},
)


def _shorter_copy(original: Any) -> Any:
    """The new iname has one value less."""

    def copies(kernel: Any, domain: Any, names: Any, ids: Any) -> Any:
        return [
            Domain(
                d.inames,
                d.set & _sets.condition_set(prim.Comparison(var(d.inames[0]), ">=", 1)),
            )
            if set(d.inames) & set(names.values())
            else d
            for d in original(kernel, domain, names, ids)
        ]

    return copies


fault(
    "duplicate_inames: the copy's loop begins at one",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms.duplicate:_with_duplicates", _shorter_copy),
    sizes={"n": 3},
)

# }}}

# {{{ prioritize_loops, tag_inames, untag_inames


def _reversed_paths(original: Any) -> Any:
    return lambda tree, function: original(
        tree, lambda statement, path: tuple(reversed(function(statement, path)))
    )


fault(
    "prioritize_loops: the other order than asked for",
    kernels.antidiagonal,
    do("prioritize_loops", "i, j"),
    Patch("transforms._expand:rewrite_paths", _reversed_paths),
    sizes={"n": 5},
)


fault(
    "prioritize_loops: what stands beside turned loops loses iterations",
    kernels.beside_a_triangle,
    do("prioritize_loops", "j, k"),
    Patch(
        "transforms._expand:freely_nested",
        lambda f: (
            lambda kernel: Change(
                kernel.with_(domains=_with_one_domain(kernel, frozenset("jk"), frozenset(), {}))
            )
        ),
    ),
    sizes={"n": 3},
)


def _distributed(original: Any) -> Any:
    """Every statement gets loops of its own."""

    def rewrite(tree: Any, function: Any) -> Any:
        number = {statement: 1000 * i for i, (statement, _) in enumerate(flatten(tree))}
        return original(
            tree,
            lambda s, path: tuple((iname, n + number[s]) for iname, n in function(s, path)),
        )

    return rewrite


ACCUMULATORS = Patch("transforms._expand:settled", lambda f: lambda old, new: new)
fault(
    "prioritize_loops: statements that shared a loop lose it",
    kernels.through_scalar,
    do("prioritize_loops", "j, i"),
    Patch("transforms._expand:rewrite_paths", _distributed),
    ACCUMULATORS,
)
fault(
    "prioritize_loops: the accumulator gets no axis",
    kernels.row_sums,
    do("prioritize_loops", "k, i"),
    ACCUMULATORS,
    sizes={"n": 3},
)


def _same_cell(original: Any) -> Any:
    """All values of the iname share one cell of the new axis."""

    def expanded(old: Any, new: Any, temporary: Any, uses: Any, lost: Any) -> Any:
        found = original(old, new, temporary, uses, lost)
        name = temporary.name

        def access(expr: Any) -> Any:
            from seams import replace_accesses

            return replace_accesses(
                expr,
                lambda n, _: prim.Subscript(var(name), (0,)) if n == name else None,
            )

        return found.with_(statements=tuple(s.map_expressions(access) for s in found.statements))

    return expanded


fault(
    "prioritize_loops: the accumulator's axis is not used",
    kernels.row_sums,
    do("prioritize_loops", "k, i"),
    Patch("transforms._expand:_expanded", _same_cell),
    sizes={"n": 3},
)


def _other_iname(first: str, second: str) -> Callable[[Any], Any]:
    return lambda f: (
        lambda kernel, tags: f(
            kernel, {{first: second}.get(iname, iname): tag for iname, tag in tags.items()}
        )
    )


fault(
    "tag_inames: another loop than asked for",
    kernels.recurrence,
    do("tag_inames", "i:l.0"),
    Patch("transforms.tag:_retagged", _other_iname("i", "j")),
)
fault(
    "tag_inames: all loops instead of one",
    kernels.recurrence,
    do("tag_inames", "i:g.0"),
    Patch(
        "transforms.tag:_retagged",
        lambda f: lambda kernel, tags: f(kernel, {**tags, "j": LocalAxis(0)}),
    ),
)


fault(
    "untag_inames: what follows a loop comes back in front of it",
    kernels.ping_pong,
    do("untag_inames", "i"),
    Patch(
        "transforms._loop_nests:_with_loop", lambda f: lambda k, e, i: f(k, list(reversed(e)), i)
    ),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
    sizes={"T": 2},
)

# }}}
