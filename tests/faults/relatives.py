"""Faults in transforms that are made of others, where they put these together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain, LaunchBarrier, substitute
from seams import sets as _sets

import loopkit as lk
from faults import kernels
from faults.making import shifted, var
from faults.planting import Patch, fault
from loopkit import Kernel

# {{{ launches


def three_steps() -> lk.Kernel:
    """Of two barriers, one is needed: the second statement reads what other blocks have written."""
    knl = kernels.make(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        """
        b[i] = 2*a[i] {id=first}
        c[j] = b[n - 1 - j] + 1 {id=mirrored}
        d[k] = 3*a[k] {id=apart}
        """,
        "a, b, c, d",
        assumptions="n >= 1",
    )
    for one, other in (("first", "mirrored"), ("mirrored", "apart")):
        knl = knl.add_barrier(f"id:{one}", f"id:{other}")
    return knl.tag_inames("i: g.0, j: g.0, k: g.0")


def _no_barrier(original: Any) -> Any:
    """With the barrier that is named, all others go."""
    return lambda entries: original([e for e in entries if not isinstance(e[0], LaunchBarrier)])


def _one_up(original: Any) -> Any:
    """The barriers that stay come to stand one statement higher."""

    def built(entries: Any) -> Any:
        moved = list(entries)
        for at in range(1, len(moved)):
            if isinstance(moved[at][0], LaunchBarrier):
                moved[at - 1 : at + 1] = moved[at], moved[at - 1]
        return original(moved)

    return built


for name, make in (
    ("all barriers go", _no_barrier),
    ("the other one moves", _one_up),
):
    fault(
        f"remove_barrier: {name}",
        three_steps,
        do("remove_barrier", "gbarrier_0"),
        Patch("transforms.statements:build", make),
        sizes={"n": 3},
    )

# }}}
# {{{ inames

AFFINE = do("affine_map_inames", "i, j", "u, v", ["u = i + j", "v = j"])


def _inverse(original: Any) -> Any:
    """The old inames are not what the equations say, in the statements as in the map."""

    def solve(*given: Any) -> Any:
        found = original(*given)
        wrong = {n: shifted(v) if n == "i" else v for n, v in found.inverse.items()}
        return dataclasses.replace(found, inverse=wrong)

    return solve


fault(
    "affine_map_inames: the inverse is one too large",
    kernels.moved,
    AFFINE,
    Patch("transforms._reindex:_solve", _inverse),
    sizes={"n": 3},
)


def _first_value(original: Any) -> Any:
    """Of the last new iname, the first value alone is left."""

    def replaced(kernel: Any, old: Any, new: Any, *rest: Any, **more: Any) -> Any:
        found = original(kernel, old, new, *rest, **more)
        first = _sets.condition_set(prim.Comparison(var(new[-1]), "==", 0))
        return tuple(Domain(d.inames, d.set & first) if new[-1] in d.inames else d for d in found)

    return replaced


fault(
    "affine_map_inames: one value of the last iname is left",
    kernels.moved,
    AFFINE,
    Patch("transforms._reindex:replace_inames", _first_value),
    sizes={"n": 3},
)


def long_and_short() -> lk.Kernel:
    """Two loops of one length, and a third, shorter one."""
    return kernels.make(
        "{ [i, j, k]: 0 <= i, j < n and 0 <= k < n - 1 }",
        """
        b[i] = 2*a[i] {id=one}
        c[j] = a[j] + 1 {id=two}
        d[k] = a[k] - 1 {id=three}
        """,
        "a, b, c, d",
        assumptions="n >= 2",
    )


def _backwards(original: Any) -> Any:
    """Statements that come to an iname that exists run through it from its end."""

    def moved(kernel: Kernel, old: str, new: str, ids: Any) -> Any:
        change = original(kernel, old, new, ids)
        (id_,) = ids
        one = change.kernel.statement_by_id[id_]
        end = prim.Sum((var("n"), -2, prim.Product((-1, var(new)))))
        again = one.map_expressions(lambda e: substitute(e, {new: end}))
        others = tuple(again if s is one else s for s in change.kernel.statements)
        return dataclasses.replace(change, kernel=change.kernel.with_(statements=others))

    return moved


fault(
    "rename_inames: the second loop runs from another end",
    long_and_short,
    do("rename_inames", "i, j", "all"),
    Patch("transforms.rename:_moved", _backwards),
    sizes={"n": 3},
)


def _first_name(original: Any) -> Any:
    """All that is renamed gets the first name, whatever its values are."""

    def in_one(kernel: Kernel, old: Any, new: str, existing_ok: bool, within: Any) -> Any:
        taken = "all" in kernel.home_domain
        return original(kernel, old, "all" if taken else new, existing_ok or taken, within)

    return in_one


fault(
    "rename_inames_in_batch: all batches get the name of the first",
    long_and_short,
    do("rename_inames_in_batch", {"all": ["i", "j"], "less": ["k"]}),
    Patch("transforms.rename:_in_one", _first_name),
    sizes={"n": 3},
)


def two_sums() -> lk.Kernel:
    """Two sums that run over one iname."""
    return kernels.make(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        "c[i] = sum(k, a[i, k]) {id=s}\nd[i] = sum(k, a[i, k]*b[k]) {id=t}",
        "a, b, c, d",
        assumptions="n >= 1",
    )


def _one_shorter(original: Any) -> Any:
    """The iname of the second sum ends one value earlier."""

    def duplicated(kernel: Kernel, names: Any, ids: Any, tags: Any) -> Any:
        change = original(kernel, names, ids, tags)
        (new,) = names.values()
        less = _sets.condition_set(prim.Comparison(var(new), "<", 3))
        domains = tuple(
            Domain(d.inames, d.set & less) if new in d.inames else d for d in change.kernel.domains
        )
        return dataclasses.replace(change, kernel=change.kernel.with_(domains=domains))

    return duplicated


fault(
    "make_reduction_inames_unique: the second sum has one term less",
    two_sums,
    do("make_reduction_inames_unique"),
    Patch("transforms.duplicate:duplicated", _one_shorter),
    sizes={"n": 3},
)

# }}}
# {{{ reductions


def boxes() -> lk.Kernel:
    """A sum over two inames for each row, of numbers that a byte does not hold."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 3 and 0 <= k < 4 }",
        "c[i] = sum([j, k], a[i, j, k]*b[j]) {id=s}",
        dtypes={"a, b, c": "int32"},
        assumptions="n >= 1",
    )


def _part(**fields: Any) -> Any:
    """The partial results are another thing, in a statement or in what holds them."""

    def make(original: Any) -> Any:
        def partial(*given: Any) -> Any:
            found = original(*given)
            changes = {
                part: dataclasses.replace(getattr(found, part), **change(found))
                for part, change in fields.items()
            }
            return dataclasses.replace(found, **changes)

        return partial

    return Patch("transforms.reductions:_partial", make)


OUTWARD = do("split_reduction_outward", "j")

fault(
    "split_reduction_outward: partial results of a narrower type",
    boxes,
    OUTWARD,
    _part(temporary=lambda found: {"dtype": np.dtype("int8")}),
    sizes={"n": 3},
    by_running=True,
    values=lambda sizes: {
        "a": np.arange(sizes["n"] * 12).reshape(-1, 3, 4) + 100,
        "b": np.arange(3) + 1,
    },
)
fault(
    "split_reduction_outward: the last partial result is the whole",
    boxes,
    OUTWARD,
    _part(taking=lambda found: {"operation": None}),
    sizes={"n": 2},
)
fault(
    "split_reduction_outward: partial results go on where the last one ended",
    boxes,
    OUTWARD,
    _part(start=lambda found: {"rhs": found.taking.lhs}),
    sizes={"n": 2},
)


def _other_order(original: Any) -> Any:
    """The rule takes its arguments in another order than it is given them."""
    return lambda name, arguments, expression: original(name, arguments[::-1], expression)


fault(
    "reduction_arg_to_subst_rule: arguments in the wrong order",
    boxes,
    do("reduction_arg_to_subst_rule", "j, k"),
    Patch("transforms.reductions:SubstitutionRule", _other_order),
    sizes={"n": 2},
)


def _first_column(original: Any) -> Any:
    """The rule says what stands for the first value of one of its arguments."""

    def rule(name: str, arguments: Any, expression: Any) -> Any:
        return original(name, arguments, substitute(expression, {arguments[-1]: 0}))

    return rule


fault(
    "reduction_arg_to_subst_rule: one term for all",
    boxes,
    do("reduction_arg_to_subst_rule", "j, k"),
    Patch("transforms.reductions:SubstitutionRule", _first_column),
    sizes={"n": 2},
)

# }}}
