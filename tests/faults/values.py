"""Faults in what a line computes of its cells, and in what a call passes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do

import loopkit as lk
from faults import kernels
from faults.kernels import make
from faults.making import RENAME, changed, statement
from faults.planting import Patch, fault
from faults.printing import text
from faults.rewording import reworded_expression

# {{{ kernels


def subtracted() -> lk.Kernel:
    """A difference: its operands must not change places."""
    return make("{ [i]: 0 <= i < n }", "b[i] = b[i] - 2*a[i] {id=s}", "a, b", assumptions="n >= 1")


def largest() -> lk.Kernel:
    """The largest of each row."""
    return make(
        "{ [i, j]: 0 <= i, j < n }", "b[i] = max(j, a[i, j]) {id=s}", "a, b", assumptions="n >= 1"
    )


def positive() -> lk.Kernel:
    """A statement under a condition on data, and a choice between values."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        b[i] = a[i] if a[i] < 0 else 3*a[i] {id=s}
        c[i] = 1 {id=t, if=a[i] > 0}
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def narrow() -> lk.Kernel:
    """Integers of eight bits, whose sum wraps around before it is widened."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[i] + c[i] {id=s}",
        dtypes={"a, c": "int8", "b": "int32"},
        assumptions="n >= 1",
    )


def thirds() -> lk.Kernel:
    """A quotient of negative integers, which rounds down."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[i]//3 {id=s}",
        dtypes={"a, b": "int32"},
        assumptions="n >= 1",
    )


def tenths() -> lk.Kernel:
    """A comparison with what is no single precision number."""
    return make(
        "{ [i]: 0 <= i < n }", "b[i] = 1 if a[i] > 0.1 else 2 {id=s}", "a, b", assumptions="n >= 1"
    )


def double_tenths() -> lk.Kernel:
    """The same in double precision: the literal has the type of what it is compared with."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = 1 if a[i] > 0.1 else 2 {id=s}",
        dtypes={"a, b": "float64"},
        assumptions="n >= 1",
    )


def totals() -> lk.Kernel:
    """A sum of integers of 32 bits, which is computed in 64."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        "b[i] = sum(k, a[i, k]) {id=s}",
        dtypes={"a": "int32", "b": "int64"},
        assumptions="n >= 1",
    )


def half_totals() -> lk.Kernel:
    """A sum of halves, which is computed in single precision."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        "b[i] = sum(k, a[i, k]) {id=s}",
        dtypes={"a": "float16", "b": "float32"},
        assumptions="n >= 1",
    )


def mixed() -> lk.Kernel:
    """A product in double precision of single precision numbers."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = float64(a[i])*c[i] - 16777217 {id=s}",
        dtypes={"a, c": "float32", "b": "float64"},
        assumptions="n >= 1",
    )


def strided_copies() -> lk.Kernel:
    """A private value for each of four instances side by side."""
    return make(
        "{ [i, j]: 0 <= i < 8 and 0 <= j < 4 }",
        """
        <> t = 2*a[i, j] {id=first}
        b[i, j] = t + 1 {id=second}
        """,
        "a, b",
    )


# }}}


def filled(dtype: str, **rows: list[float]) -> Callable[[Any], Mapping[str, Any]]:
    """The given values for arrays, over and over."""

    def values(sizes: Mapping[str, int]) -> Mapping[str, Any]:
        return {name: np.resize(np.array(row, dtype), sizes["n"]) for name, row in rows.items()}

    return values


fault(
    "values: operands of a difference change places",
    subtracted,
    None,
    text(r"= (\S+) - (.+);", r"= \2 - \1;"),
    sizes={"n": 3},
)
fault(
    "values: a largest is printed as a smallest",
    largest,
    None,
    text("lk_max", "lk_min"),
    sizes={"n": 3},
)
fault(
    "values: branches of a choice change places",
    positive,
    None,
    text(r"\? (.+) : (.+);", r"? \2 : \1;"),
    sizes={"n": 4},
)
fault(
    "values: a condition on data takes in what is equal",
    positive,
    None,
    Patch(
        "codegen.expressions:ExpressionLowering.truth",
        lambda f: (
            lambda self, expr: reworded_expression(
                f(self, expr), lambda text: text.replace("> 0", ">= 0")
            )
        ),
    ),
    sizes={"n": 4},
    values=filled("f4", a=[0, 1, -1, 2]),
)
fault(
    "values: a narrow sum is not reduced",
    narrow,
    None,
    text(r"\(signed char\)", ""),
    sizes={"n": 4},
    values=filled("i1", a=[100, 1, -100, 5], c=[100, 2, -100, 6]),
)
fault(
    "values: a quotient rounds towards zero",
    thirds,
    None,
    text(r"lk_floordiv\((.+), (.+)\)", r"\1 / \2"),
    sizes={"n": 4},
    values=filled("i4", a=[-1, -3, -4, 7]),
)
fault(
    "values: a constant of single precision is printed in double",
    tenths,
    None,
    text(r"0\.1f", "0.1"),
    sizes={"n": 4},
    values=filled("f4", a=[0.1, 0.2, 0.05, -1]),
)
fault(
    "values: a literal of double precision is printed in single",
    double_tenths,
    None,
    text(r"> 0\.1 ", "> 0.1f "),
    sizes={"n": 4},
    values=filled("f8", a=[0.1000000005, 0.2, 0.05, -1]),
)
fault(
    "values: a conversion comes too late",
    mixed,
    None,
    text(r"\(double\)(\S+) \* (\S+)", r"(double)(\1 * \2)"),
    sizes={"n": 2},
    values=filled("f4", a=[4097, 1], c=[4097, 3]),
)


def _helper(old: str, new: str) -> Patch:
    """A helper that the text brings computes something else."""
    return Patch("codegen.lower:preamble", lambda f: lambda needed: f(needed).replace(old, new))


fault(
    "values: a helper rounds towards zero",
    thirds,
    None,
    _helper("return n / d - T(n % d != 0 && (n < 0) != (d < 0));", "return n / d;"),
    sizes={"n": 4},
    values=filled("i4", a=[-1, -3, -4, 7]),
)


def accumulated_in(dtype: str) -> Patch:
    """Accumulators have another type where code is made."""

    def make(original: Any) -> Any:
        def infer(kernel: Any) -> Any:
            found = original(kernel)
            return found.with_(
                temporaries=tuple(
                    dataclasses.replace(t, dtype=np.dtype(dtype)) if t.accumulates else t
                    for t in found.temporaries
                )
            )

        return infer

    return Patch("codegen.prepare:infer_types", make)


def rows(dtype: str, *row: float) -> Callable[[Any], Mapping[str, Any]]:
    """The same values in each row of what is summed."""
    return lambda sizes: {"a": np.tile(np.array(row, dtype), (sizes["n"], 1))}


fault(
    "values: integers are summed in 32 bits",
    totals,
    None,
    accumulated_in("int32"),
    sizes={"n": 2},
    values=rows("i4", 2**30, 2**30, 2**30, 7),
)
fault(
    "values: halves are summed in halves",
    half_totals,
    None,
    accumulated_in("float16"),
    sizes={"n": 2},
    values=rows("f2", 2048, 1, 1, 1),
)


def _with_typed_literals(statement: Any) -> Any:
    """The literals of a comparison as NumPy's numbers, which have a type."""

    def typed(expr: Any) -> Any:
        return np.float64(expr) if type(expr) is float else expr

    asked = statement.rhs.condition
    asked = prim.Comparison(typed(asked.left), asked.operator, typed(asked.right))
    return dataclasses.replace(statement, rhs=dataclasses.replace(statement.rhs, condition=asked))


fault(
    "values: a literal gets a type of its own",
    tenths,
    RENAME,
    statement("s", _with_typed_literals),
    sizes={"n": 4},
    by_running=True,
    values=filled("f4", a=[0.1, 0.2, 0.05, -1]),
)
fault(
    "values: an accumulator becomes narrower",
    totals,
    RENAME,
    changed(
        lambda kernel: kernel.with_(
            temporaries=tuple(
                dataclasses.replace(t, dtype=np.dtype("int32")) for t in kernel.temporaries
            )
        )
    ),
    sizes={"n": 2},
    by_running=True,
    values=rows("i4", 2**30, 2**30, 2**30, 7),
)


def _one_copy(original: Any) -> Any:
    """All values of an ilp iname share the copy of the first one."""

    def expand(kernel: Any, iname: str) -> Any:
        found = original(kernel, iname)
        made = {t.name for t in found.temporaries if t.shape} - {
            t.name for t in kernel.temporaries if t.shape
        }

        def access(name: str, indices: Any) -> Any:
            import pymbolic.primitives as prim

            if name not in made:
                return None
            return prim.Subscript(prim.Variable(name), (*indices[:-1], 0))

        from seams import replace_accesses

        return found.with_(
            statements=tuple(
                s.map_expressions(lambda e: replace_accesses(e, access)) for s in found.statements
            )
        )

    return expand


fault(
    "values: values of an ilp iname share one copy",
    strided_copies,
    None,
    Patch("codegen.prepare:_expand_private", _one_copy),
    chain=(do("tag_inames", "j:ilp"),),
)
fault(
    "values: values of an ilp iname have copies of what threads share",
    lambda: make(
        "{ [i, j, k]: 0 <= i < 8 and 0 <= j < 4 and 0 <= k < 8 }",
        "<> t[i] = a[i] {id=first}\nb[k] = t[7 - k] + 1 {id=second}",
        "a, b",
    ),
    None,
    Patch("codegen.prepare:space_of", lambda original: lambda *_: lk.AddressSpace.PRIVATE),
    chain=(
        do("tag_inames", "i:l.0, k:l.0"),
        do("add_inames_to_insn", "j", "id:first"),
        do("tag_inames", "j:ilp"),
    ),
)

# {{{ calls


def _changed(change: Callable[[Any], Any]) -> Patch:
    """The program is another one in something beside its text."""
    return Patch("codegen.lower:Program", lambda f: lambda **parts: f(**change(parts)))


def _modulo_unchecked(parts: dict[str, Any]) -> dict[str, Any]:
    return {**parts, "checks": tuple(c for c in parts["checks"] if "%" not in c.text)}


def _runs(kernel: Any, n: int) -> str | None:
    a, b = np.ones(n, "f4"), np.ones(n, "f4")
    try:
        kernel.executor("host")(a=a, b=b)
    except lk.AssumptionError:
        return None
    return f"it runs for n = {n}"


def fours() -> lk.Kernel:
    """As many elements as fours."""
    return make(
        "{ [i]: 0 <= i < n }",
        "b[i] = b[i] + a[i] {id=s}",
        "a, b",
        assumptions="n >= 1 and n mod 4 = 0",
    )


fault(
    "calls: one of several assumptions is not checked",
    fours,
    None,
    _changed(_modulo_unchecked),
    sizes={"n": 8},
    evidence=lambda kernel: _runs(kernel, 6),
)


def _by_position(kernel: Any) -> str | None:
    """What a call makes of arguments without names."""
    a, b = np.zeros(3, "f4"), np.ones(3, "f4")
    names = [x.name for x in kernel.args]
    given = {"a": a, "b": b, "n": 3}
    kernel.executor("host")(*(given[name] for name in names))
    return None if np.all(b == 1) and np.all(a == 0) else "it writes into the wrong array"


def _turned_round(parts: dict[str, Any]) -> dict[str, Any]:
    a, b = (parts["arguments"].index(name) for name in "ab")
    order = list(parts["arguments"])
    order[a], order[b] = order[b], order[a]
    return {**parts, "arguments": tuple(order)}


fault(
    "calls: arguments by position in another order",
    kernels.added,
    None,
    _changed(_turned_round),
    sizes={"n": 3},
    evidence=_by_position,
)


def _taken_for_unchanged(parts: dict[str, Any]) -> dict[str, Any]:
    params = tuple(
        dataclasses.replace(p, is_written=False) if p.name == "b" else p for p in parts["params"]
    )
    return {**parts, "params": params}


def _nothing_comes_out(kernel: Any) -> str | None:
    made = kernel.executor("host")(a=np.ones(3, "f4"), b=np.ones(3, "f4"))
    return "the call returns nothing" if made is None or len(np.shape(made)) != 1 else None


fault(
    "calls: an array that is written is taken for unchanged",
    kernels.added,
    None,
    _changed(_taken_for_unchanged),
    sizes={"n": 3},
    evidence=_nothing_comes_out,
)


def _too_few(original: Any) -> Any:
    """The text promises fewer threads than are launched."""
    return lambda **parts: original(**{**parts, "threads": parts["threads"] // 2})


def _unlaunchable(kernel: Any) -> str | None:
    program = kernel.program()
    found = re.search(r"__launch_bounds__\((\d+)\)", program.source)
    threads = int(np.prod(program.block))
    if found is None or int(found[1]) >= threads:
        return None
    return f"no GPU launches {threads} threads where {found[1]} are promised"


fault(
    "calls: fewer threads are promised than launched",
    kernels.added,
    None,
    Patch("codegen.lower:Function", _too_few),
    chain=(do("split_iname", "i", 4, inner_tag="l.0", outer_tag="g.0"),),
    sizes={"n": 8},
    evidence=_unlaunchable,
)


def _fast(kernel: Any) -> str | None:
    options = kernel.program().options
    return f"compiled with {', '.join(options)}" if options else None


fault(
    "calls: compiled with fast math that nobody asked for",
    kernels.added,
    None,
    _changed(lambda parts: {**parts, "options": ("--use_fast_math",)}),
    sizes={"n": 3},
    evidence=_fast,
)

# }}}

# {{{ types


def halves() -> lk.Kernel:
    """A copy of 16-bit numbers: nothing but the declarations names their type."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[i] = a[i] {id=s}", dtypes={"a": "float16"}, assumptions="n >= 1"
    )


fault(
    "values: a header that only declarations need is dropped",
    halves,
    None,
    Patch("codegen.lower:preamble", lambda f: lambda needs: f({*needs} - {"cuda_fp16.h"})),
    sizes={"n": 3},
)

# }}}
