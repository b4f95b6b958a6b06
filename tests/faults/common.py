"""Faults in what lowering and the proof both use: each makes a function wrong for both.

What is wrong for one side alone shows by comparison.  A function that both import may be wrong in
the code and in what the code is compared with, so that something else has to find it: the checker
or another part of the proof, or a run, which the reference does not agree with.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest import mock

import islpy as isl
import launch_kernels
import numpy as np
import pymbolic.primitives as prim
from refusals.case import do, schedule
from refusals.running import arguments
from seams import own_axes as _own_axes
from seams import prove

import loopkit as lk
from faults import (
    aliasing,
    calls,
    collectives,
    kernels,
    launches,
    lookback,
    memory,
    programs,
    thread_scans,
    values,
)
from faults.barriers import ODD, TILED
from faults.evidence import wrong_run
from faults.planting import Sizes
from loopkit import AddressSpace

REFUSED, PROOF, TEXT = "a refusal", "the proof", "the proof of the text"
RUN, NUMPY, NOBODY = "a run", "NumPy", "nobody: the code stays as it is"
FINDERS = (REFUSED, PROOF, TEXT, RUN, NUMPY, NOBODY)


@dataclass(frozen=True)
class CommonFault:
    """What stands in the place of a function (``make`` gets that one), and where it matters.

    ``text`` makes a kernel, ``schedule`` what is done to it; the run is at ``sizes``.
    ``found_by`` is what finds it, if nothing does before; ``by_hand`` computes the same with NumPy.
    A decorator has done its work when the fault comes: that is ``planted_in`` what it calls.
    """

    found_by: str
    make: Callable[[Any], Any]
    text: Callable[[], lk.Kernel]
    schedule: Callable[[lk.Kernel], lk.Kernel] = lambda kernel: kernel
    sizes: Sizes | None = None
    values: Callable[[Sizes], Mapping[str, Any]] | None = None
    by_hand: Callable[[Mapping[str, Any]], Any] | None = None
    planted_in: str = ""

    def code(self) -> str:
        """The program, without comments."""
        return re.sub("//.*", "", str(self.schedule(self.text()).cuda()))

    def finder(self) -> str | None:
        """Who finds the fault, while it is planted."""
        try:
            text = self.text()
            kernel = self.schedule(text)
            kernel.program()
        except Exception:
            return REFUSED
        for by_text, name in ((False, PROOF), (True, TEXT)):
            if prove(kernel, text=by_text).findings:
                return name
        try:
            wrong = wrong_run(text, kernel, self.sizes or {}, self.values)
        except Exception as error:
            wrong = str(error)
        if wrong:
            return RUN
        if self.by_hand is None:
            return None
        given = arguments(text, self.sizes or {}, {})
        due = self.by_hand({name: np.copy(value) for name, value in given.items()})
        found = kernel.executor("host")(**given)
        return (
            None
            if np.allclose(found[-1] if isinstance(found, tuple) else found, due, rtol=1e-4)
            else NUMPY
        )


@contextmanager
def planted_everywhere(function: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """``function``, as in ``_simplify.simplify``, is another one wherever it is imported."""
    _load_all()
    module, _, name = function.rpartition(".")
    original = getattr(sys.modules[f"loopkit.{module}"], name)
    faulty = make(original)
    changes = [
        mock.patch.object(holder, attribute, faulty)
        for key, holder in [*sys.modules.items()]
        if key.startswith("loopkit.")
        for attribute, value in [*vars(holder).items()]
        if value is original
    ]
    assert changes, function
    _forget()
    for change in changes:
        change.start()
    try:
        yield
    finally:
        for change in changes:
            change.stop()
        _forget()


@cache
def _load_all() -> None:
    """Import all of the product: what is imported later would get, and keep, the faulty one."""
    for module in pkgutil.walk_packages(lk.__path__, "loopkit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _forget() -> None:
    """What was remembered before, or while a fault was there, is forgotten."""
    for key, holder in [*sys.modules.items()]:
        if key.startswith("loopkit.") and "._host" not in key and "._run" not in key:
            for value in [*vars(holder).values()]:
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _steps(*steps: Any) -> Callable[[lk.Kernel], lk.Kernel]:
    return lambda kernel: schedule(kernel, steps)


def _temporaries(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pass that leaves other temporaries."""

    def make(original: Any) -> Any:
        def passed(kernel: Any) -> Any:
            found = original(kernel)
            return found.with_(temporaries=tuple(map(change, found.temporaries)))

        return passed

    return make


def _narrow(temporary: Any) -> Any:
    """An accumulator of half the width."""
    return replace(temporary, dtype=np.dtype("float16")) if temporary.accumulates else temporary


def _private(temporary: Any) -> Any:
    return replace(temporary, address_space=AddressSpace.PRIVATE)


def _unchanged(original: Any) -> Any:
    """A pass that does nothing."""
    return lambda kernel: kernel


def _nothing(original: Any) -> Any:
    return lambda *_: ()


def _never(original: Any) -> Any:
    return lambda *_, **__: False


def _always(original: Any) -> Any:
    return lambda *_, **__: True


def _reversed(original: Any) -> Any:
    return lambda *a: tuple(reversed([*original(*a)]))


def _without_last(original: Any) -> Any:
    return lambda *a: [*original(*a)][:-1]


def _own_in_any_case(original: Any) -> Any:
    """All axes of private arrays are dropped."""

    def drop(kernel: Any) -> Any:
        with mock.patch.object(_own_axes, "_is_own", lambda *_: True):
            return original(kernel)

    return drop


def _without_slab(original: Any) -> Any:
    """The last slab is lost."""

    def peeled(kernel: Any) -> Any:
        found = original(kernel)
        never = prim.Comparison(prim.Variable("n"), "<", 0)
        last = found.statements[-1]
        return found.with_(statements=(*found.statements[:-1], replace(last, predicates=(never,))))

    return peeled


class _Forgetful(dict[Any, Any]):
    """Answers by function alone, whatever was asked of it."""

    def __init__(self, answers: dict[Any, Any]) -> None:
        super().__init__()
        self.answers = answers

    def __getitem__(self, key: Any) -> Any:
        return self.answers[key[0]]

    def setdefault(self, key: Any, value: Any = None) -> Any:
        return self.answers.setdefault(key[0], value)


def _folded() -> lk.Kernel:
    """A call of constants."""
    return kernels.make("{ [i]: 0 <= i < n }", "b[i] = a[i] + sqrt(4)", "a, b")


def _halved_places() -> lk.Kernel:
    """Two instances write to each place."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<> q = p[i]//2\nb[q] = a[i]",
        [lk.GlobalArg("b", shape="n"), ...],
        dtypes={"a, b": "float32", "p": "int32"},
        assumptions="n >= 1",
    )


def _without_quotient(original: Any) -> Any:
    """What was made of an index array is taken for what it holds."""

    def asserted(kernel: Any, statement: Any, index: Any) -> Any:
        outer = prim.Sum((prim.Product((8, prim.Variable("i_outer"))), prim.Variable("i_inner")))
        inside = outer if "i_outer" in statement.inames else prim.Variable("i")
        is_temporary = index == prim.Variable("q")
        return prim.Subscript(prim.Variable("p"), (inside,)) if is_temporary else index

    return asserted


def _exponentials() -> lk.Kernel:
    """What no float32 holds."""
    text = "b[i] = exp(a[i] + 100)"
    return lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"a, b": "float64"})


def _quotients() -> lk.Kernel:
    """Operands that do not change places."""
    return kernels.make("{ [i]: 0 <= i < n }", "b[i] = a[i]/c[i] + (-2)*a[i]", "a, b, c")


def _bytes() -> lk.Kernel:
    """Differences of bytes."""
    text = "b[i] = a[i] - c[i]"
    types = {"a, c": "uint8", "b": "int64"}
    return lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes=types, assumptions="n >= 0")


def _mixed() -> lk.Kernel:
    """What C would compute in float."""
    types = {"a": "int32", "c": "float32", "b": "float64"}
    return lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i] - c[i]", dtypes=types)


def _in_double(original: Any) -> Any:
    """C is taken to compute in double with int and float."""
    kinds = {np.dtype("int32"), np.dtype("float32")}
    return lambda a, b: np.dtype("float64") if {a, b} == kinds else original(a, b)


def _guarded() -> lk.Kernel:
    """A guard that is no index arithmetic."""
    text = "if sqrt(i) < 2\nb[i] = 1\nend"
    return kernels.make("{ [i]: 0 <= i < n }", text, "b", assumptions="n >= 0")


def _first_cell(original: Any) -> Any:
    """Accesses that get one more index get 0."""

    def replaced(expr: Any, access: Any) -> Any:
        def first(name: str, indices: Any) -> Any:
            found = access(name, indices)
            if not isinstance(found, prim.Subscript) or len(found.index_tuple) == len(indices):
                return found
            return prim.Subscript(found.aggregate, (*found.index_tuple[:-1], 0))

        return original(expr, first)

    return replaced


def _largest() -> lk.Kernel:
    """The largest number of each row."""
    return kernels.make(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i] = max(j, x[i, j])",
        "x, y",
        assumptions="n, m >= 1",
    )


def _places() -> lk.Kernel:
    """Where the least number of each row is."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[i], k[i] = argmin(j, x[i, j], j)",
        dtypes={"x, y": "float32", "k": "int32"},
        assumptions="n, m >= 1",
    )


PRODUCT = (kernels.product, _steps(*TILED), ODD)
SUMS = (collectives.rows, _steps(*collectives.BLOCK), collectives.SIZES)
TWO = (launch_kernels.full_sum, _steps(*launches.SUM), launches.NINE)

EIGHTS = _steps(do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"))

COMMON: dict[str, CommonFault] = {
    "_assertions.asserted_cells.data_of": CommonFault(
        REFUSED,
        lambda f: lambda k: replace(f(k), integers=frozenset(), varying=frozenset(k.arg_by_name)),
        kernels.scattered,
        lambda kernel: EIGHTS(kernel.assume_injective("p")),
        {"n": 9},
        lambda sizes: {"p": np.arange(9)},
    ),
    "_assertions.asserted_cells.equal_cells": CommonFault(
        RUN,
        lambda f: lambda *_: isl.Set("{ : 1 = 0 }"),
        kernels.scattered,
        EIGHTS,
        {"n": 9},
        lambda sizes: {"p": np.zeros(9)},
    ),
    "_assertions.follow.asserted": CommonFault(
        RUN,
        _without_quotient,
        _halved_places,
        lambda kernel: EIGHTS(kernel.assume_injective("p")),
        {"n": 9},
        lambda sizes: {"p": np.arange(9)},
    ),
    "_collectives.combined_axes": CommonFault(
        RUN, lambda f: lambda k: dict.fromkeys(f(k), ()), *SUMS
    ),
    "_errors.counted": CommonFault(NOBODY, lambda f: lambda *a: "", *PRODUCT),
    "_expression.nodes_of": CommonFault(
        REFUSED, lambda f: lambda *a, **k: [*f(*a, **k)][:1], *PRODUCT
    ),
    "_functions.fold_call": CommonFault(
        NUMPY,
        lambda f: lambda name, given, asked: given[0],
        _folded,
        sizes={"n": 3},
        by_hand=lambda given: given["a"] + 2,
    ),
    "_arrays.last_fastest": CommonFault(
        PROOF, lambda f: lambda rank: tuple(reversed(f(rank))), *PRODUCT
    ),
    "_arrays.storage_shape": CommonFault(REFUSED, lambda f: lambda a: (*f(a)[:-1], 1), *PRODUCT),
    "_arrays.strides_of": CommonFault(PROOF, _reversed, *PRODUCT),
    "_arrays.swizzles_of": CommonFault(
        REFUSED,
        lambda f: lambda a: tuple(replace(s, base=s.base + 1) for s in f(a)),
        kernels.squares,
        _steps(*memory.SQUARE),
    ),
    "_budget.in_turn": CommonFault(NOBODY, lambda f: f, *PRODUCT),
    "_cached.memoised": CommonFault(
        REFUSED,
        lambda f: lambda value: _Forgetful(f(value)),
        *PRODUCT,
        planted_in="_cached.answers_of",
    ),
    "_cached.once": CommonFault(
        PROOF,
        lambda f: (
            lambda known, key, find, *a, **k: (
                next(iter(known.values())) if known else f(known, key, find, *a, **k)
            )
        ),
        *PRODUCT,
    ),
    "_collectives.scanned_blocks": CommonFault(
        REFUSED, _nothing, thread_scans.prefix, _steps(*lookback.CHAIN), {"n": 200}
    ),
    "_combined.with_combinations": CommonFault(PROOF, _unchanged, *SUMS),
    "_device_functions.own_calls": CommonFault(
        REFUSED, _nothing, calls.calling, _steps(), {"n": 5}
    ),
    "_expression.is_integer_arithmetic": CommonFault(REFUSED, _always, _guarded, sizes={"n": 5}),
    "_expression.parts_of": CommonFault(
        RUN, lambda f: lambda e: f(e)[::-1], _quotients, sizes={"n": 5}
    ),
    "_expression.replace_accesses": CommonFault(
        RUN, _first_cell, values.strided_copies, _steps(do("tag_inames", "j:ilp"))
    ),
    "_expression.substitute": CommonFault(REFUSED, lambda f: lambda e, v: e, *PRODUCT),
    "_expression.to_text": CommonFault(NOBODY, lambda f: lambda *a, **k: "0", *PRODUCT),
    "_expression.variable_names": CommonFault(
        REFUSED, lambda f: lambda e: frozenset(sorted(f(e))[:1]), *PRODUCT
    ),
    "_functions.call_type": CommonFault(
        NUMPY,
        lambda f: lambda *a: np.dtype("float32"),
        _exponentials,
        sizes={"n": 2},
        by_hand=lambda given: np.exp(given["a"] + 100),
    ),
    "_hidden.instance": CommonFault(RUN, lambda f: lambda name, label: name, *PRODUCT),
    "_hidden.hidden": CommonFault(RUN, lambda f: lambda word, *which: word, *PRODUCT),
    "_intervals.contains": CommonFault(PROOF, _always, programs.wide, _steps(), {"n": 3, "m": 3}),
    "_launches.is_one_launch": CommonFault(REFUSED, _always, *TWO),
    "_launches.launch_of": CommonFault(
        REFUSED, lambda f: lambda k: dict.fromkeys(f(k), next(iter(f(k).values()))), *TWO
    ),
    "_launches.launches_in": CommonFault(REFUSED, _without_last, *TWO),
    "_launches.launches_of": CommonFault(PROOF, _reversed, *TWO),
    "_make.operation.operands": CommonFault(
        RUN,
        lambda f: lambda c: f(c)[:1] * 2,
        _places,
        _steps(*collectives.BLOCK),
        collectives.SIZES,
        by_hand=lambda given: given["x"].argmin(1),
    ),
    "_make.reduction_operations.operations_of": CommonFault(
        NUMPY,
        lambda f: lambda r: {**f(r), "sum": f(r)["max"]},
        *SUMS,
        by_hand=lambda given: given["x"].sum(1),
    ),
    "_make.segments.with_segments": CommonFault(
        PROOF, _unchanged, thread_scans.segments, _steps(*thread_scans.threads(32)), {"n": 100}
    ),
    "_make.type_inference.infer_types": CommonFault(PROOF, _temporaries(_narrow), *SUMS),
    "_nodes.subtrahend": CommonFault(
        NUMPY,
        lambda f: lambda t: t.children[-1] if isinstance(t, prim.Product) else f(t),
        _quotients,
        sizes={"n": 5},
        by_hand=lambda given: given["a"] / given["c"] - 2 * given["a"],
    ),
    "_places.drop_own_axes": CommonFault(RUN, _own_in_any_case, programs.rolling, sizes={"T": 3}),
    "_places.decide_address_spaces": CommonFault(
        REFUSED,
        _temporaries(_private),
        programs.staged_anywhere,
        _steps(do("tag_inames", "i:l.0, j:l.0")),
    ),
    "_places.shared_storage": CommonFault(
        PROOF,
        lambda f: lambda k: {t.name: tuple(t.name for t in k.temporaries) for t in k.temporaries},
        kernels.stages,
        _steps(aliasing.SHARED, aliasing.THREADS, aliasing.TWO),
        {"n": 2},
    ),
    "_points.smallest_point": CommonFault(NOBODY, lambda f: lambda *a: None, *PRODUCT),
    "_promotion.dtype_name": CommonFault(NOBODY, lambda f: lambda d: "int32", *PRODUCT),
    "_relations.grouped": CommonFault(
        RUN, lambda f: lambda pairs: {k: v[:1] for k, v in f(pairs).items()}, *PRODUCT
    ),
    "_relations.reachable": CommonFault(
        PROOF,
        lambda f: lambda start, following: frozenset(start),
        _largest,
        _steps(*collectives.BLOCK, do("realize_reduction", by="atomic")),
        collectives.SIZES,
    ),
    "_rules.expand_rules": CommonFault(
        NUMPY,
        lambda f: (
            lambda k: f(
                k.with_(
                    substitutions=tuple(
                        replace(r, arguments=r.arguments[::-1]) for r in k.substitutions
                    )
                )
            )
        ),
        kernels.rules,
        _steps(),
        {"n": 4},
        by_hand=lambda given: given["a"] + 2 * np.arange(4)[:, None],
    ),
    "_same.key_of": CommonFault(REFUSED, lambda f: lambda v: "", *PRODUCT),
    "_slabs.settled": CommonFault(
        RUN,
        _without_slab,
        kernels.added,
        _steps(do("split_iname", "i", 4, slabs=(0, 1))),
        {"n": 10},
    ),
    "_tree.build": CommonFault(REFUSED, _without_last, *TWO),
    "_tree.flatten": CommonFault(REFUSED, _without_last, *TWO),
    "_tree.statements_in": CommonFault(REFUSED, _without_last, *TWO),
    "codegen.c.printer.printed": CommonFault(
        TEXT, lambda f: lambda t: (f(t)[0], f(t)[1].replace(" < ", " <= ")), *PRODUCT
    ),
    "codegen.c.renamed.renamed": CommonFault(
        PROOF,
        lambda f: lambda nodes, names: nodes,
        thread_scans.prefix,
        _steps(*lookback.CHAIN),
        {"n": 200},
    ),
    "codegen.c.spec.needs_of": CommonFault(RUN, lambda f: lambda t: {}, programs.below_zero),
    "codegen.c.types.common": CommonFault(
        RUN,
        _in_double,
        _mixed,
        sizes={"n": 2},
        values=lambda sizes: {"a": [16777217, 33554435], "c": [16777216, 33554432]},
    ),
    "codegen.c.types.in_registers": CommonFault(
        REFUSED, lambda f: lambda d: d, _bytes, sizes={"n": 4}
    ),
    "codegen.joined.joined": CommonFault(
        TEXT, lambda f: lambda *a: (f(*a)[0].replace(" < ", " <= "), f(*a)[1]), *TWO
    ),
    "codegen.launches.parts_of": CommonFault(PROOF, _reversed, *TWO),
    "codegen.own_functions.declared_in": CommonFault(
        REFUSED, _nothing, calls.calling, _steps(), {"n": 5}
    ),
    "codegen.own_functions.lines_above": CommonFault(
        PROOF, lambda f: lambda k: [], calls.calling, _steps(), {"n": 5}
    ),
}
"""For each function that lowering and the proof both import a fault."""
