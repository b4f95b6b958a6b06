"""Faults in precompute and buffer_array."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import substitute

import loopkit as lk
from faults import kernels
from faults.planting import Patch, fault
from faults.staging import (
    box_becomes,
    cells_lack,
    no_writers,
    one_loop_out,
    without_first,
    without_last,
)

# {{{ precompute

RULE = do("precompute", "f", "j", default_tag=None)

for end, change in (("last", without_last), ("first", without_first)):
    fault(
        f"precompute: footprint lacks its {end} cell",
        kernels.ruled_row,
        RULE,
        box_becomes(change),
        sizes={"n": 3},
    )
    fault(
        f"precompute: the {end} value is not computed",
        kernels.ruled_row,
        RULE,
        cells_lack(end),
        sizes={"n": 3},
    )


def _wrong_argument(original: Any) -> Any:
    """The rule's body is computed for the next argument."""
    return lambda expr, values: original(
        expr, {name: prim.Sum((value, 1)) for name, value in values.items()}
    )


fault(
    "precompute: computed for the next argument",
    kernels.ruled_row,
    RULE,
    Patch("transforms._computed_ahead:substitute", _wrong_argument),
    sizes={"n": 3},
)


def _exchanged_arguments(original: Any) -> Any:
    def substituted(expr: Any, values: Any) -> Any:
        return original(expr, dict(zip(values, reversed(list(values.values())), strict=True)))

    return substituted


fault(
    "precompute: a loop that exists begins one value late",
    kernels.loops_in_front,
    do("precompute", "f", "j", default_tag=None, precompute_inames="q"),
    Patch("transforms._transfer_loops:along", lambda f: lambda *a: f(*a) + 1),
    Patch("transforms._transfer_loops:_check_reused", lambda f: lambda *_: None),
    sizes={"n": 3},
)
fault(
    "precompute: in the loop that writes what the rule reads",
    kernels.loops_in_front,
    do("precompute", "g", "j", default_tag=None, precompute_inames="q"),
    Patch("transforms._transfer_loops:_writes_in", lambda f: lambda *_: False),
    sizes={"n": 3},
)
fault(
    "precompute: arguments exchanged",
    kernels.rules_of_four,
    do("precompute", "f", ["i", "j"], default_tag=None),
    Patch("transforms._computed_ahead:substitute", _exchanged_arguments),
)
fault(
    "precompute: sweeps over too few inames",
    kernels.ruled_row,
    RULE,
    Patch("transforms._staging:with_nest", lambda f: one_loop_out(f)),
    sizes={"n": 3},
)


def _shifted_rules(original: Any) -> Any:
    """What a rule uses of the copy is the cell beside."""

    def replaced(kernel: Any, name: str, users: Any, new: Any, *rest: Any) -> Any:
        def beside(found: str, indices: Any, rule: Any) -> Any:
            return new(found, tuple(prim.Sum((i, 1)) for i in indices) if rule else indices, rule)

        return original(kernel, name, users, beside, *rest)

    return replaced


fault(
    "precompute: rules read the cell beside",
    kernels.rule_in_a_rule,
    RULE,
    Patch("transforms._staging:replaced_within_rules", _shifted_rules),
    sizes={"n": 3},
)


def _at_zero(kernel: Any, rule: Any) -> Any:
    """The rule's last argument is 0 wherever it is used."""
    return kernel, dataclasses.replace(
        rule, expression=substitute(rule.expression, {rule.arguments[-1]: 0})
    )


def _of_the_first(original: Any) -> Any:
    """What data decide of a rule's value is that of the first iteration."""
    return lambda name, arguments, value: original(name, arguments, substitute(value, {"j": 0}))


fault(
    "precompute: what data choose is the first of it",
    kernels.ruled_by_data,
    do("precompute", "f", "j", default_tag=None),
    Patch("transforms._rule_arguments:SubstitutionRule", _of_the_first),
    sizes={"n": 3},
    by_running=True,
    values=lambda sizes: {"p": [2, 0, 1, 2]},
)
fault(
    "precompute: what is affine in an argument is one more",
    partial(kernels.ruled_by_product, "i*i"),
    do("precompute", "f", "j", default_tag=None),
    Patch(
        "transforms._rule_arguments:_apart",
        lambda original: lambda value, base: prim.Sum((original(value, base), 1)),
    ),
    sizes={"n": 3, "m": 6},
)
for rule in ("a[place[x]]", "sum(k, a[place[x]] * k)"):
    fault(
        f"precompute: what lies between values of {rule} is read, too",
        partial(kernels.ruled_by_some_places, rule),
        do("precompute", "f", default_tag=None),
        Patch("transforms._placement:limits_left", lambda original: lambda *_, **__: ()),
        sizes={"n": 2, "m": 3},
        values=lambda sizes: {"place": [0, 1 << 20, 1, -(1 << 20), 1 << 20, 2]},
        by_running=True,
        sanitize=True,
    )
fault(
    "precompute: an invocation's own part is one more",
    partial(kernels.ruled_by_product, "i*i"),
    do("precompute", "f(i*i + j)", "j", default_tag=None),
    Patch(
        "transforms._rule_arguments:_apart",
        lambda original: lambda value, base: prim.Sum((original(value, base), 1)),
    ),
    sizes={"n": 3, "m": 6},
)


def _one_more(number: int) -> Any:
    """A part of an index that counts through rows is one more."""

    def change(original: Any) -> Any:
        def apart(self: Any, value: Any) -> Any:
            found = original(self, value)
            if found is None or len(found) == 1:
                return found
            parts = list(found)
            parts[number] = prim.Sum((parts[number], 1))
            return tuple(parts)

        return apart

    return change


for number, part in enumerate(("row", "column")):
    fault(
        f"precompute: another {part}",
        kernels.ruled_by_product,
        RULE,
        Patch("transforms._rows:Rows.apart", _one_more(number)),
        sizes={"n": 2, "m": 6},
    )
    fault(
        f"add_prefetch: another {part} of what lies flat",
        kernels.flat_rows,
        do("add_prefetch", "a", ["i", "j"], default_tag=None),
        Patch("transforms._rows:Rows.apart", _one_more(number)),
        sizes={"m": 6},
    )
fault(
    "add_prefetch: rows of another length",
    kernels.flat_rows,
    do("add_prefetch", "a", ["i", "j"], default_tag=None),
    Patch(
        "transforms._rows:Rows.together",
        lambda f: lambda self, parts: prim.Sum((f(self, parts), parts[0])),
    ),
    sizes={"m": 6},
)
fault(
    "precompute: uses that stay get another argument",
    kernels.ruled_by_product,
    do("precompute", "f(i*m + j)", "j", default_tag=None),
    Patch(
        "transforms._rule_arguments:Bound.arguments",
        lambda original: lambda self, now: (prim.Sum((original(self, now)[0], -1)),),
    ),
    sizes={"n": 3, "m": 6},
)
fault(
    "precompute: a free iname is forgotten",
    kernels.rule_with_free_iname,
    do("precompute", "f", ["i", "j"], default_tag=None),
    Patch(
        "transforms._computed_ahead:with_free_inames",
        lambda f: lambda kernel, rule, wanted: _at_zero(*f(kernel, rule, wanted)),
    ),
    sizes={"m": 2},
)

# }}}

# {{{ buffer_array

BUFFER = do("buffer_array", "c", "j", default_tag=None)
TWO = {"n": 2}

fault(
    "buffer_array: not loaded",
    kernels.updated,
    BUFFER,
    Patch("transforms.buffer:_reads_follow_writes", lambda f: lambda *_: True),
    sizes=TWO,
)


def _no(verb: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def transfer(kernel: Any, staging: Any, place: Any, what: str, *rest: Any) -> Any:
            if what == verb:
                return kernel, "nothing"
            return original(kernel, staging, place, what, *rest)

        return transfer

    return make


def _placed(verb: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The statement that loads or stores stands elsewhere."""

    def make(original: Any) -> Any:
        def transfer(kernel: Any, staging: Any, place: Any, what: str, *rest: Any) -> Any:
            there = change(place) if what == verb else place
            return original(kernel, staging, there, what, *rest)

        return transfer

    return make


fault(
    "buffer_array: not stored",
    kernels.updated,
    BUFFER,
    Patch("transforms.buffer:_with_transfer", _no("store")),
    sizes=TWO,
)
fault(
    "buffer_array: stored before the last update",
    kernels.updated,
    BUFFER,
    Patch(
        "transforms.buffer:_with_transfer",
        _placed("store", lambda p: dataclasses.replace(p, last=p.first - 1)),
    ),
    sizes=TWO,
)
fault(
    "buffer_array: loaded after the last update",
    kernels.updated,
    BUFFER,
    Patch(
        "transforms.buffer:_with_transfer",
        _placed("init", lambda p: dataclasses.replace(p, first=p.last + 1)),
    ),
    sizes=TWO,
)
fault(
    "buffer_array: the last cell is not moved",
    kernels.updated,
    BUFFER,
    cells_lack("last"),
    sizes=TWO,
)
for end, change in (("last", without_last), ("first", without_first)):
    fault(
        f"buffer_array: footprint lacks its {end} cell",
        kernels.updated,
        BUFFER,
        box_becomes(change, 1),
        sizes=TWO,
    )


def _store_only_lacks(original: Any) -> Any:
    """Loads all, stores all but one."""
    lacking = cells_lack("first").make(original)

    def cells(*arguments: Any, exact: bool = False, **more: Any) -> Any:
        chosen = lacking if exact else original
        return chosen(*arguments, exact=exact, **more)

    return cells


fault(
    "buffer_array: one cell is not stored",
    kernels.updated,
    BUFFER,
    Patch("transforms._placement:cells_in_use", _store_only_lacks),
    sizes=TWO,
)
WITHIN = do("buffer_array", "c", "j", default_tag=None, within="id:add")
fault(
    "buffer_array: used again in the next iteration, not loaded again",
    kernels.scaled_in_place,
    WITHIN,
    Patch("transforms._staging:find_place", no_writers),
    sizes={"T": 2},
)


def _without_outer(place: Any) -> Any:
    return dataclasses.replace(place, path=(), first=0)


fault(
    "buffer_array: loaded before the loop, stored inside it",
    kernels.scaled_in_place,
    WITHIN,
    Patch("transforms.buffer:_with_transfer", _placed("init", _without_outer)),
    sizes={"T": 2},
)


def _writes_shifted(original: Any) -> Any:
    """What is written goes to the next cell of the buffer."""

    def on_copy(statement: Any, name: str, copy: Any) -> Any:
        found = original(statement, name, copy)
        if statement.written != name:
            return found
        *rest, last = found.lhs.index_tuple
        index = (*rest, prim.Remainder(prim.Sum((last, 1)), copy.temporary.shape[-1]))
        return dataclasses.replace(found, lhs=prim.Subscript(found.lhs.aggregate, index))

    return on_copy


fault(
    "buffer_array: writes go to the next cell",
    kernels.updated,
    BUFFER,
    Patch("transforms.buffer:_on_copy", _writes_shifted),
    sizes=TWO,
)


def _reads_stay(original: Any) -> Any:
    """What is read comes from the array still, and is old."""

    def on_copy(statement: Any, name: str, copy: Any) -> Any:
        return dataclasses.replace(original(statement, name, copy), rhs=statement.rhs)

    return on_copy


fault(
    "buffer_array: reads still see the array",
    kernels.updated,
    BUFFER,
    Patch("transforms.buffer:_on_copy", _reads_stay),
    sizes=TWO,
)


def _reads_alone(original: Any) -> Any:
    return lambda kernel, given, **_: original(kernel, given)


fault(
    "buffer_array: of uses with a tag only reads go to the buffer",
    kernels.updated_tagged,
    do("buffer_array", "c$sums", "j", default_tag=None),
    Patch("transforms.buffer:uses_of_array", _reads_alone),
    sizes=TWO,
)


def _of_another(original: Any) -> Any:
    """The copy is filled from ``b``."""

    def select(kernel: Any, given: str) -> Any:
        found = original(kernel, given)
        return dataclasses.replace(found, of="b")

    return select


fault(
    "add_prefetch: uses with a tag are copied from another array",
    kernels.tagged_stencil,
    do("add_prefetch", "a$near", "i_inner", default_tag=None),
    Patch("transforms.prefetch:uses_of_array", _of_another),
    chain=(do("split_iname", "i", 4),),
    sizes=({"n": 7}, {"n": 10}),
)

# }}}

# {{{ what is stored has been written, and statements that wait for threads


def squares() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 7 }",
        "y[i] = x[i] - i*i",
        [lk.GlobalArg("x, y", "float32", shape="n"), ...],
        assumptions="0 <= n <= 60",
    )


fault(
    "add_prefetch: what waits for threads is in the loop of another statement that does",
    squares,
    None,
    Patch("_deal_out:_passed_on", lambda _: lambda *_: "y_buf"),
    Patch("_deal_out:_may_share_loops", lambda _: lambda *_: True),
    chain=(
        do("split_iname", "i", 33),
        do("buffer_array", "y", ["i_outer", "i_inner"]),
        do("add_inames_to_insn", ["y_store_dim_0", "j"], "id:insn"),
        do("add_prefetch", "x", ["y_store_dim_0"]),
    ),
    sizes={"n": 5},
)

# }}}
