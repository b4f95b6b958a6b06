"""Faults where rules that hold sums are used within others, and where copies have strides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import build, entries_of, linear

import loopkit as lk
from faults.planting import Patch, fault

# {{{ the kernels


def _made(domain: str, text: str, **arrays: str) -> lk.Kernel:
    return lk.make_kernel(
        domain,
        text,
        [*(lk.GlobalArg(name, "float32", shape) for name, shape in arrays.items()), ...],
        assumptions="n >= 1",
    )


def chain() -> lk.Kernel:
    """Three rules in a row, and two statements that use them."""
    return _made(
        "{ [e, b, a, q]: 0 <= e < n and 0 <= a, b, q < 3 }",
        """
        ur(e, a) := sum(q, D[a, q]*u[e, q])
        fr(e, a) := G[e, a]*ur(e, a)
        hr(e, a) := 2*fr(e, a) + ur(e, a + 1)
        out[e, b] = sum(a, D[a, b]*fr(e, a)) {id=one}
        more[e, b] = hr(e, b)                {id=two}
        """,
        D="4, 3",
        u="n, 3",
        G="n, 3",
        out="n, 3",
        more="n, 3",
    )


def nested() -> lk.Kernel:
    """The sum of a rule is one of another rule's values, which are sums."""
    return _made(
        "{ [e, b, a, q]: 0 <= e < n and 0 <= a, b, q < 3 }",
        """
        ur(e, a) := sum(q, D[a, q]*u[e, q])
        fr(e, c) := sum(a, D[a, c]*ur(e, a))
        out[e, b] = 2*fr(e, b) {id=one}
        more[e, b] = fr(e, b)  {id=two}
        """,
        D="3, 3",
        u="n, 3",
        out="n, 3",
        more="n, 3",
    )


def named_as_a_loop() -> lk.Kernel:
    """An argument has the name that a loop gets when another one is split."""
    return _made(
        "{ [e, b, q]: 0 <= e < n and 0 <= b, q < 3 }",
        """
        ur(e, a) := sum(q, D[a, q]*u[e, q])
        fr(e_outer, c) := 2*ur(e_outer, c)
        out[e, b] = fr(e, b)
        """,
        D="3, 3",
        u="n, 3",
        out="n, 3",
    )


def strided() -> lk.Kernel:
    """A rule is used at every third of its arguments, by another one."""
    return _made(
        "{ [e, b, r, q]: 0 <= e < n and 0 <= b < 2 and 0 <= r < 3 and 0 <= q < 4 }",
        """
        ur(e, a) := sum(q, D[a, q]*u[e, q])
        fr(e, a) := G[e, a]*ur(e, a)
        out[e, b] = sum(r, D[r, b]*fr(e, 3*r + 4))
        """,
        D="11, 4",
        u="n, 4",
        G="n, 11",
        out="n, 2",
    )


def between() -> lk.Kernel:
    """A rule is used at every third of its arguments, and beside these."""
    return _made(
        "{ [e, b, r]: 0 <= e < n and 0 <= b < 2 and 0 <= r < 3 }",
        """
        f(x) := 2*u[e, x]
        out[e, b] = sum(r, (b + 1)*f(3*r) - f(3*r + 2))
        """,
        u="n, 9",
        out="n, 2",
    )


def shared() -> lk.Kernel:
    """Two statements use one rule, which uses another, for different arguments."""
    return _made(
        "{ [e, b]: 0 <= e < n and 0 <= b < 3 }",
        """
        f(x) := 2*u[e, x]
        g(x) := f(x) + 1
        out[e, b] = g(b)      {id=one}
        more[e, b] = g(b + 1) {id=two}
        """,
        u="n, 4",
        out="n, 3",
        more="n, 3",
    )


def triangle() -> lk.Kernel:
    """Sums that are as long as a loop around says, which is no argument."""
    return lk.make_kernel(
        ["{ [e, b]: 0 <= e < n and 0 <= b < 3 }", "{ [q]: 0 <= q <= e }"],
        """
        ur(a) := sum(q, D[a, q])
        out[e, b] = 2*ur(b)
        """,
        [lk.GlobalArg("D", "float32", "3, n"), lk.GlobalArg("out", "float32", "n, 3"), ...],
        assumptions="n >= 1",
    )


def ahead(rule: str, sweep: str, **options: Any) -> Any:
    return do("precompute", rule, sweep, default_tag=None, **options)


SIZES = {"n": 3}

# }}}

# {{{ what rules say of others that are computed ahead


def _of_all(original: Any) -> Any:
    """All statements use the new rules, not only those that were chosen."""
    return lambda kernel, name, users, *rest: original(
        kernel, name, {s.id for s in kernel.statements}, *rest
    )


def _beside(original: Any) -> Any:
    """What a rule's sum reads of the copy is the cell beside."""

    def with_operands(kernel: Any, names: Any, ids: Any, new: Any, *rest: Any) -> Any:
        def other(name: str, indices: Any, rule: Any) -> Any:
            found = new(name, indices, rule)
            *first, last = found.index_tuple
            last = prim.Remainder(prim.Sum((last, 1)), 3)
            return prim.Subscript(found.aggregate, (*first, last))

        return original(kernel, names, ids, other, *rest)

    return with_operands


def _first_result(original: Any) -> Any:
    """Of what holds the results of a use, the first stays for whichever is left."""

    def fewer(expr: Any, left: Any) -> Any:
        wrong = {
            name: tuple(min(n, 2) if n >= 2 else n for n in numbers)
            for name, numbers in left.items()
        }
        return original(expr, wrong)

    return fewer


def _as_called(original: Any) -> Any:
    """Nobody asks how the arguments of a rule are called."""
    return lambda kernel, rule, names: rule


def _first_given(original: Any) -> Any:
    """What holds the results of uses that are left is what held those of the first of all."""

    def together(self: Any, kernel: Any) -> Any:
        first = next(iter(self.given.values()))
        return original(dataclasses.replace(self, given=dict.fromkeys(self.given, first)), kernel)

    return together


fault(
    "precompute: other statements use the values computed ahead, too",
    shared,
    ahead("f", "b", within="id:one"),
    Patch("transforms._staging:replaced_within_rules", _of_all),
    sizes=SIZES,
)
fault(
    "precompute: a rule whose argument is called as a loop is",
    named_as_a_loop,
    ahead("ur", "e_inner, b"),
    Patch("transforms._rule_exchange:_clear_of", _as_called),
    chain=(do("split_iname", "e", 2),),
    sizes=SIZES,
)

fault(
    "precompute: a rule's sum reads the cell beside",
    nested,
    ahead("ur", "a"),
    Patch("transforms._staging:with_operands", _beside),
    then=ahead("fr", "b"),
    sizes=SIZES,
)
fault(
    "precompute: of two results of a rule the other one is left",
    chain,
    ahead("fr", "a, b"),
    Patch("transforms._rule_exchange:with_parameters", _first_result),
    sizes=SIZES,
)
fault(
    "precompute: uses that are left say what holds the results of others",
    chain,
    ahead("ur(e, b + 1)", "b"),
    Patch("transforms._rule_results:Apart.together", _first_given),
    sizes=SIZES,
)

# }}}

# {{{ what computes a rule's sums


def _no_bounds(original: Any) -> Any:
    """How long a sum is depends on nothing but the arguments."""
    return lambda kernel, rule: frozenset()


def _all_gone(original: Any) -> Any:
    """All accumulators of a rule go, whoever reads them."""

    def without(kernel: Any, accumulators: Any) -> Any:
        gone = {*accumulators}
        writers = {s.id for n in gone for s in kernel.writers.get(n, ())}
        left = tuple(s for s in kernel.statements if s.id not in writers)
        entries = [e for e in entries_of(kernel.tree) if e[0] not in writers]
        return kernel.with_(
            tree=build(entries),
            statements=tuple(
                dataclasses.replace(s, depends_on=s.depends_on - writers) for s in left
            ),
        )

    return without


def _started_once(original: Any) -> Any:
    """What starts a sum stands in front of all loops of what the sum is computed for."""

    def with_loops(kernel: Any, id_: str, held: Any, taken: Any) -> Any:
        new, made = original(kernel, id_, held, taken)
        entries = entries_of(new.tree)
        inits = [n for n, (leaf, _) in enumerate(entries) if leaf in made and "init" in str(leaf)]
        at = inits[0]
        leaf, path = entries[at]
        entries[at] = (leaf, path[:-1])
        statements = tuple(
            dataclasses.replace(s, inames=s.inames - {path[-1][0]}) if s.id == leaf else s
            for s in new.statements
        )
        return new.with_(tree=build(entries), statements=statements), made

    return with_loops


fault(
    "precompute: sums as long as a loop around says are computed outside of it",
    triangle,
    ahead("ur", "b"),
    Patch("transforms._computed_ahead:names_of_bounds", _no_bounds),
    sizes=SIZES,
)
fault(
    "precompute: sums that others read are gone",
    chain,
    ahead("ur(e, b + 1)", "b"),
    Patch("transforms._rule_results:without_unread", _all_gone),
    sizes=SIZES,
)
fault(
    "precompute: sums of a rule start once",
    chain,
    ahead("ur", "a, b"),
    Patch("transforms._rule_results:with_loops", _started_once),
    sizes=SIZES,
)

# }}}

# {{{ strides


def _located(change: Callable[[Any, Any], Any]) -> Patch:
    """Cells of a copy that is strided are in other places of it."""

    def make(original: Any) -> Any:
        def local(self: Any, index: Any) -> Any:
            return original(self, index) if self.stride == 1 else change(self, index)

        return local

    return Patch("_footprint:Axis.local", make)


def _stride_of_each(original: Any) -> Any:
    """How far apart accesses begin does not count for the stride."""

    def axis(number: int, uses: Any, ranges: Any) -> Any:
        found = original(number, uses, ranges)
        step = math.gcd(*(c for u in uses for c in _coefficients(u.cells[number])))
        extent = (found.extent - 1) * found.stride // max(step, 1) + 1
        return dataclasses.replace(found, stride=max(step, 1), extent=extent)

    return axis


def _coefficients(index: Any) -> list[int]:
    return [c for a, c in linear(index).terms.items() if str(a) == "r"]


def _divided(by: Callable[[Any], Any], from_first: bool) -> Callable[[Any, Any], Any]:
    def local(axis: Any, index: Any) -> Any:
        first = (axis.lower * -1).expression if from_first else 0
        return prim.FloorDiv(prim.Sum((index, first)), by(axis))

    return local


for what, change in (
    ("begin with the first of all cells", _divided(lambda axis: axis.stride, from_first=False)),
    ("are closer together", _divided(lambda axis: axis.stride + 1, from_first=True)),
    ("are not divided", _divided(lambda axis: 1, from_first=True)),
):
    fault(
        f"precompute: places of a copy with a stride {what}",
        strided,
        ahead("ur", "r"),
        _located(change),
        sizes=SIZES,
    )
fault(
    "precompute: what lies between cells with a stride is the cell before",
    between,
    ahead("f", "r"),
    Patch("_footprint:_axis", _stride_of_each),
    sizes=SIZES,
)

# }}}
