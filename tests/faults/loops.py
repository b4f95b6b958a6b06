"""Faults in the transforms of loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do

from faults import kernels
from faults.planting import Patch, fault
from loopkit import _sets
from loopkit._expression import substitute
from loopkit._kernel import Domain
from loopkit._transform import Change, InstanceMap
from loopkit._tree import flatten, rewrite_paths

Values = Mapping[str, Any]


def var(name: str) -> Any:
    return prim.Variable(name)


def total(*terms: Any) -> Any:
    return prim.Sum(terms)


# {{{ what is wrong with the values of inames


def statements_get(module: str, wrong: Callable[[Values], Values]) -> Patch:
    """Statements are rewritten with other values than the transform means."""

    def make(original: Any) -> Any:
        def rewrite(kernel: Any, ids: Any, values: Values, new: Any) -> Any:
            return original(kernel, ids, wrong(values), new)

        return rewrite

    return Patch(f"transforms.{module}:rewrite_statements", make)


def maps_say(module: str, wrong: Callable[[Values], Values]) -> Patch:
    """The transform says the same of what it did."""

    def make(original: Any) -> Any:
        return lambda kernel, ids, values: original(kernel, ids, wrong(values))

    return Patch(f"transforms.{module}:maps_for", make)


def each(change: Callable[[Any], Any]) -> Callable[[Values], Values]:
    """The same change to all values."""
    return lambda values: {name: change(value) for name, value in values.items()}


def with_both(
    name: str, module: str, wrong: Callable[[Values], Values], kernel: Any, step: Any, **more: Any
) -> None:
    """Two faults: the instance map is the right one, or as wrong as the statements."""
    statements = statements_get(module, wrong)
    fault(f"{name}, said to be right", kernel, step, statements, **more)
    fault(f"{name}, and said so", kernel, step, statements, maps_say(module, wrong), **more)


def shifted(value: Any) -> Any:
    return total(value, 1)


def shorter_tiles(value: Any) -> Any:
    """``4*outer + inner`` as ``3*outer + inner``."""
    product, inner = value.children
    return total(prim.Product((product.children[0] - 1, *product.children[1:])), inner)


# }}}

# {{{ split_iname

SPLIT = do("split_iname", "i", 4)
RAGGED = ({"n": 6}, {"n": 9})

with_both(
    "split_iname: index one too large", "split", each(shifted), kernels.added, SPLIT, sizes=RAGGED
)
with_both(
    "split_iname: tiles one too short",
    "split",
    each(shorter_tiles),
    kernels.added,
    SPLIT,
    sizes=RAGGED,
)


def _longer(original: Any) -> Any:
    return lambda low, name, high: original(low, name, high + 1)


fault(
    "split_iname: inner loop one too long",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", _longer),
    sizes=RAGGED,
)
fault(
    "split_iname: inner loop one too short",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", lambda f: lambda low, n, high: f(low, n, high - 1)),
    sizes=RAGGED,
)
fault(
    "split_iname: inner loop begins at one",
    kernels.added,
    SPLIT,
    Patch("transforms.split:_between", lambda f: lambda low, n, high: f(low + 1, n, high)),
    sizes=RAGGED,
)


def _whole_tiles(original: Any) -> Any:
    """The bound of the last, ragged tile is lost."""

    def replace(kernel: Any, old: Any, new: Any, graph: Any, box: Any, **more: Any) -> Any:
        found = original(kernel, old, new, graph, box, **more)
        return tuple(
            Domain(d.inames, _sets.project_out(d.set, [new[-1]]) & box)
            if new[-1] in d.inames
            else d
            for d in found
        )

    return replace


fault(
    "split_iname: the last tile is whole",
    kernels.added,
    SPLIT,
    Patch("transforms.split:replace_inames", _whole_tiles),
    sizes=RAGGED,
)


def _one_statement_only(original: Any) -> Any:
    """The second statement keeps the value of the inner iname alone."""

    def rewrite(kernel: Any, ids: Any, values: Values, new: Any) -> Any:
        statements, rules = original(kernel, ids, values, new)
        wrong = {new[0]: 0}
        last = statements[-1]
        return (*statements[:-1], last.map_expressions(lambda e: substitute(e, wrong))), rules

    return rewrite


fault(
    "split_iname: one statement forgets the outer index",
    kernels.handed_on,
    SPLIT,
    Patch("transforms.split:rewrite_statements", _one_statement_only),
    sizes=RAGGED,
)


def _loops_swapped(original: Any) -> Any:
    """The inner loop is put outside of the outer one."""

    def rewrite(tree: Any, function: Any) -> Any:
        def swapped(statement: str, path: Any) -> Any:
            found = list(function(statement, path))
            for at, (iname, _) in enumerate(found[:-1]):
                if iname.endswith("_outer"):
                    found[at], found[at + 1] = found[at + 1], found[at]
            return tuple(found)

        return original(tree, swapped)

    return rewrite


fault(
    "split_iname: inner loop outside of the outer one",
    kernels.recurrence,
    do("split_iname", "j", 4),
    Patch("transforms.split:rewrite_paths", _loops_swapped),
)

# }}}

# {{{ slabs and peeling

UNCHECKED = Patch("transforms.slabs:_check_copies", lambda f: lambda *_: None)


def _part(suffix: str, distance: int) -> Patch:
    """A part begins (or ends) some iterations away from where it should."""

    def make(original: Any) -> Any:
        def parts(kernel: Any, iname: str, domain: Any, first: int, last: int) -> Any:
            found = original(kernel, iname, domain, first, last)
            moved = {p.suffix: p for p in original(kernel, iname, domain, first, last)}
            if suffix == "_last":
                other = original(kernel, iname, domain, first, last + distance)
            else:
                other = original(kernel, iname, domain, first + distance, last)
            moved |= {p.suffix: p for p in other if p.suffix == suffix}
            return [moved[p.suffix] for p in found]

        return parts

    return Patch("transforms.slabs:_parts", make)


SLABS = do("split_iname", "i", 4, slabs=(1, 1))
LONG = ({"n": 14},)

for suffix, name in (("_first", "first"), ("_last", "last")):
    fault(
        f"split_iname: {name} slab one too long",
        kernels.added,
        SLABS,
        _part(suffix, 1),
        UNCHECKED,
        sizes=LONG,
    )
fault(
    "split_iname: last slab one too short",
    kernels.added,
    do("split_iname", "i", 4, slabs=(0, 2)),
    _part("_last", -1),
    UNCHECKED,
    sizes=LONG,
)
fault(
    "split_iname: slabs overlap in short loops",
    kernels.added,
    SLABS,
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda kernel, iname, domain, first, last: [
                *f(kernel, iname, domain, first, 0)[:1],
                *f(kernel, iname, domain, first, last)[1:2],
                *f(kernel, iname, domain, 0, last)[1:],
            ]
        ),
    ),
    UNCHECKED,
    sizes=({"n": 3},),
)
fault(
    "peel_iname: last iteration twice",
    kernels.added,
    do("peel_iname", "i", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=_sets.universe()) if not p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    UNCHECKED,
    sizes=({"n": 5},),
)
fault(
    "peel_iname: last iteration never",
    kernels.added,
    do("peel_iname", "i", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=isl_empty()) if p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    UNCHECKED,
    sizes=({"n": 5},),
)


def isl_empty() -> Any:
    return _sets.universe() - _sets.universe()


def _parts_swapped(original: Any) -> Any:
    """The iterations at the end run first."""
    return lambda k, i, d, first, last: list(reversed(original(k, i, d, first, last)))


fault(
    "peel_iname: last iteration runs first",
    kernels.recurrence,
    do("peel_iname", "j", last=1),
    Patch("transforms.slabs:_parts", _parts_swapped),
    UNCHECKED,
)
fault(
    "peel_iname: blocks at the edge run both copies",
    kernels.added,
    do("peel_iname", "i_outer", last=1),
    Patch(
        "transforms.slabs:_parts",
        lambda f: (
            lambda k, i, d, first, last: [
                dataclasses.replace(p, where=_sets.universe()) if not p.suffix else p
                for p in f(k, i, d, first, last)
            ]
        ),
    ),
    UNCHECKED,
    chain=(do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0"),),
    sizes=LONG,
)

# }}}

# {{{ chunk_iname

CHUNK = do("chunk_iname", "i", 3)


def _without_longer(value: Any) -> Any:
    """The start of a chunk as if all of them had the same length."""
    return total(*(c for c in value.children if not isinstance(c, prim.Min)))


with_both(
    "chunk_iname: starts ignore the longer chunks",
    "split",
    each(_without_longer),
    kernels.added_ten,
    CHUNK,
)
fault(
    "chunk_iname: all chunks are long",
    kernels.added_ten,
    CHUNK,
    Patch(
        "transforms.split:_between",
        lambda f: lambda low, n, high: f(low, n, 4 if n.endswith("inner") else high),
    ),
)
fault(
    "chunk_iname: one chunk too few",
    kernels.added_ten,
    CHUNK,
    Patch(
        "transforms.split:_between",
        lambda f: lambda low, n, high: f(low, n, high - 1 if n.endswith("outer") else high),
    ),
)

# }}}

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
    fault(f"{name}, said to be right", kernel, step, statements_get("_reindex", wrong), **more)
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
VALUES_UNCHECKED = Patch("transforms._reindex:_check_values", lambda f: lambda *_: None)


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
    VALUES_UNCHECKED,
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

    def rewrite(kernel: Any, ids: Any, values: Values, new: Any) -> Any:
        statements, rules = original(kernel, ids, values, new)
        wrong = {n: var("j") for n in new}
        return tuple(
            dataclasses.replace(s, rhs=substitute(s.rhs, wrong)) for s in statements
        ), rules

    return rewrite


fault(
    "rename_iname: what is read keeps another iname",
    kernels.turned,
    do("rename_iname", "i", "k"),
    Patch("transforms.rename:rewrite_statements", _half_renamed),
    sizes={"n": 3},
)


def _moved_to(target: str) -> Callable[[Any], Any]:
    """A statement is moved to an iname of other values."""

    def make(original: Any) -> Any:
        def move(kernel: Any, old: str, new: str, ids: Any) -> Any:
            names = {old: var(target)}
            module = __import__("loopkit.transforms.rename", fromlist=["rename"])
            statements, rules = module.rewrite_statements(kernel, ids, names, [target])

            def rename(statement: str, path: Any) -> Any:
                if statement not in ids:
                    return path
                return tuple((target if iname == old else iname, n) for iname, n in path)

            changed = kernel.with_(
                statements=statements,
                substitutions=rules,
                tree=rewrite_paths(kernel.tree, rename),
            )
            return Change(module.settled_tree(changed), module.maps_for(kernel, ids, names))

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

    def rewrite(kernel: Any, ids: Any, values: Values, new: Any) -> Any:
        statements, rules = original(kernel, ids, values, new)
        s, t = kernel.statements
        mine = {s.id: t, t.id: s}
        found = []
        for statement in statements:
            other = mine[statement.id]
            names = dict(values) if statement.id in ids else {}
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

    def maps(kernel: Any, ids: Any, values: Values) -> Any:
        s, t = (x.id for x in kernel.statements)
        other = {s: t, t: s}
        found = {m.new: m for m in original(kernel, ids, values)}
        return tuple(
            InstanceMap(id_, other[id_], found[id_].values if id_ in found else {}) for id_ in other
        )

    return maps


fault(
    "duplicate_inames: the copy does another statement's work, said to be right",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms._duplicating:rewrite_statements", _exchanged_bodies),
    sizes={"n": 3},
)
fault(
    "duplicate_inames: the copy does another statement's work, and said so",
    kernels.handed_on,
    DUPLICATE,
    Patch("transforms._duplicating:rewrite_statements", _exchanged_bodies),
    Patch("transforms._duplicating:maps_for", _exchanged_maps),
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
    Patch("transforms._duplicating:settled_tree", _backwards),
    sizes={"n": 3},
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
    Patch("transforms._duplicating:_with_duplicates", _shorter_copy),
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
    Patch("transforms.prioritize:rewrite_paths", _reversed_paths),
    sizes={"n": 5},
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


ACCUMULATORS = Patch("transforms.prioritize:expand_accumulators", lambda f: lambda old, new: new)
fault(
    "prioritize_loops: statements that shared a loop lose it",
    kernels.through_scalar,
    do("prioritize_loops", "j, i"),
    Patch("transforms.prioritize:rewrite_paths", _distributed),
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
            from loopkit._expression import replace_accesses

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
        lambda f: (
            lambda kernel, tags: f(
                kernel, {**tags, "j": __import__("loopkit._tags", fromlist=["x"]).LocalAxis(0)}
            )
        ),
    ),
)


fault(
    "untag_inames: what follows a loop comes back in front of it",
    kernels.ping_pong,
    do("untag_inames", "i"),
    Patch("transforms._nesting:_with_loop", lambda f: lambda k, e, i: f(k, list(reversed(e)), i)),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
    sizes={"T": 2},
)

# }}}
