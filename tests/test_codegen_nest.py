"""Bounds, guards and barriers of hand-made kernels, read as text."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import (
    Barrier,
    Do,
    Domain,
    GroupAxis,
    LocalAxis,
    Loop,
    Unroll,
    guard,
    loop_bounds,
    make_nest,
    to_text,
)
from seams import IrFor as For
from seams import IrIf as If
from seams import IrLet as Let
from seams import sets as _sets

import loopkit as lk
from loopkit import (
    AddressSpace,
    ArrayArg,
    IllegalTransformError,
    Kernel,
    ResourceError,
    Statement,
    TemporaryVariable,
    ValueArg,
)

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
V = prim.Variable


def at(name: str, *indices: object) -> prim.Subscript:
    return prim.Subscript(V(name), tuple(indices))


def text(nodes: tuple[Any, ...], depth: int = 0) -> list[str]:
    lines = []
    for node in nodes:
        pad = "  " * depth
        if isinstance(node, For):
            step = f" step {node.step}" if node.step != 1 else ""
            head = f"{pad}for {node.iname} in {to_text(node.lower)}..{to_text(node.upper)}{step}"
            lines += [head, *text(node.body, depth + 1)]
        elif isinstance(node, Let):
            lines += [f"{pad}let {node.iname} = {to_text(node.value)}", *text(node.body, depth)]
        elif isinstance(node, If):
            lines += [f"{pad}if {to_text(node.condition)}", *text(node.body, depth + 1)]
        elif isinstance(node, Barrier):
            lines.append(f"{pad}barrier")
        elif isinstance(node, Do):
            lines.append(pad + node.statement.id)
    return lines


def kernel(domains, statements, temporaries=(), tree=(), tags=None, assume="n >= 1"):
    names = {n for d in domains for n in _sets.names_of(d[1])} - {i for d in domains for i in d[0]}
    sizes = sorted(names | {"n"})
    arrays = ["a", "b", "c"]
    return Kernel(
        "test",
        tuple(Domain(inames, domain) for inames, domain in domains),
        tuple(statements),
        (*(ValueArg(s, I32) for s in sizes), *(ArrayArg(a, F32, (V("n"),)) for a in arrays)),
        tuple(temporaries),
        tree,
        tags=tuple(sorted((tags or {}).items())),
        assumptions=Domain((), isl.Set(f"[n] -> {{ : {assume} }}")),
    )


def stage(shift: int = 0, *, back: bool = False) -> Kernel:
    """Each thread writes a cell of shared memory, and reads a neighbour's."""
    domain = isl.Set("[n, i, t] -> { : 0 <= i < 32 and 0 <= t < n }")
    index = prim.Sum((V("i"), shift)) if shift else V("i")
    where = prim.Max((index, 0)) if shift < 0 else index
    statements = [
        Statement("put", at("s", V("i")), at("a", V("i")), frozenset("it")),
        Statement("get", at("b", V("i")), at("s", where), frozenset("it")),
    ]
    tree = (Loop("t", ("put", "get")),) if back else ("put", "get")
    if not back:
        statements = [Statement(s.id, s.lhs, s.rhs, frozenset("i")) for s in statements]
    shared = TemporaryVariable("s", F32, (33,), AddressSpace.LOCAL)
    factors = [
        (("i",), _sets.project_out(domain, ["t"])),
        (("t",), _sets.project_out(domain, ["i"])),
    ]
    return kernel(factors, statements, (shared,), tree, {"i": LocalAxis(0)})


def test_no_barrier_where_threads_keep_to_their_cells():
    assert text(make_nest(stage(0)).code) == ["put", "get"]


def test_barrier_where_a_neighbour_reads():
    assert text(make_nest(stage(-1)).code) == ["put", "barrier", "get"]


def test_barrier_at_the_back_edge():
    lines = text(make_nest(stage(-1, back=True)).code)
    assert lines == ["for t in 0..n", "  put", "  barrier", "  get", "  barrier"]


def test_dropping_a_barrier_is_seen_by_the_text():
    # The same data through private memory needs none.
    k = stage(0, back=True)
    assert "  barrier" not in text(make_nest(k).code)


def test_guard_of_the_ragged_edge_is_hoisted_out_of_the_loop():
    d = isl.Set("[n, o, i] -> { : 0 <= 128o + i < n and 0 <= i < 128 }")
    j = isl.Set("[n, j] -> { : 0 <= j < n }")
    x = prim.Sum((prim.Product((128, V("o"))), V("i")))
    s = Statement("s", at("c", x), prim.Sum((at("a", x), at("b", V("j")))), frozenset("oij"))
    tags = {"o": GroupAxis(0), "i": LocalAxis(0)}
    k = kernel([(("o", "i"), d), (("j",), j)], [s], tree=(Loop("j", ("s",)),), tags=tags)
    assert text(make_nest(k).code) == ["if 128*o + i < n", "  for j in 0..n", "    s"]


def test_no_guard_where_the_assumptions_imply_it():
    d = isl.Set("[n, o, i] -> { : 0 <= 128o + i < n and 0 <= i < 128 }")
    x = prim.Sum((prim.Product((128, V("o"))), V("i")))
    s = Statement("s", at("c", x), at("a", x), frozenset("oi"))
    tags = {"o": GroupAxis(0), "i": LocalAxis(0)}
    assume = "n >= 1 and n mod 128 = 0"
    k = kernel([(("o", "i"), d)], [s], tree=("s",), tags=tags, assume=assume)
    assert text(make_nest(k).code) == ["s"]


def test_private_work_runs_without_a_guard():
    d = isl.Set("[n, o, i, r] -> { : 0 <= 64o + 8i + r < n and 0 <= r < 8 and 0 <= i < 8 }")
    x = prim.Sum((prim.Product((64, V("o"))), prim.Product((8, V("i"))), V("r")))
    statements = [
        Statement("init", at("acc", V("r")), 0, frozenset("oir"), kind="init"),
        Statement("more", at("acc", V("r")), 1.0, frozenset("oirk"), operation="sum"),
        Statement("store", at("c", x), at("acc", V("r")), frozenset("oir")),
    ]
    tree = (Loop("r", ("init",)), Loop("k", (Loop("r", ("more",)),)), Loop("r", ("store",)))
    tags = {"o": GroupAxis(0), "i": LocalAxis(0), "r": Unroll()}
    acc = TemporaryVariable("acc", F32, (8,), AddressSpace.PRIVATE)
    k = isl.Set("[n, k] -> { : 0 <= k < n }")
    made = kernel([(("o", "i", "r"), d), (("k",), k)], statements, (acc,), tree, tags)
    assert text(make_nest(made).code) == [
        "for r in 0..8",
        "  init",
        "for k in 0..n",
        "  for r in 0..8",
        "    more",
        "if 64*o + 8*i < n",
        "  for r in 0..8",
        "    if r + 64*o + 8*i < n",
        "      store",
    ]


def test_triangles_and_strides():
    i = isl.Set("[n, i] -> { : 0 <= i < n }")
    j = isl.Set("[i, j] -> { : 0 <= j <= i and j mod 3 = 1 }")
    s = Statement("s", at("c", V("j")), at("a", V("i")), frozenset("ij"))
    k = kernel([(("i",), i), (("j",), j)], [s], tree=(Loop("i", (Loop("j", ("s",)),)),))
    assert text(make_nest(k).code) == ["for i in 1..n", "  for j in 1..i + 1 step 3", "    s"]


def test_one_thread_is_chosen_where_a_statement_has_no_coordinate():
    i = isl.Set("[n, i] -> { : 0 <= i < 32 }")
    statements = [
        Statement("all", at("c", V("i")), at("a", V("i")), frozenset("i")),
        Statement("one", at("b", 0), 1.0, frozenset()),
    ]
    made = kernel([(("i",), i)], statements, tree=("all", "one"), tags={"i": LocalAxis(0)})
    assert text(make_nest(made).code) == ["all", "if threadIdx.x == 0", "  one"]


def test_an_axis_is_as_long_as_its_longest_iname():
    i = isl.Set("[i] -> { : 0 <= i < 32 }")
    j = isl.Set("[j] -> { : 0 <= j < 16 }")
    statements = [
        Statement("s", at("c", V("i")), at("a", V("i")), frozenset("i")),
        Statement("t", at("b", V("j")), at("a", V("j")), frozenset("j")),
    ]
    tags = {"i": LocalAxis(0), "j": LocalAxis(0)}
    made = kernel([(("i",), i), (("j",), j)], statements, tree=("s", "t"), tags=tags)
    nest = make_nest(made)
    assert nest.hardware.block == (32, 1, 1)
    assert text(nest.code) == ["s", "if j <= 15", "  t"]


def test_a_block_of_2048_threads_is_refused():
    i = isl.Set("[i] -> { : 0 <= i < 2048 }")
    s = Statement("s", at("c", V("i")), at("a", V("i")), frozenset("i"))
    made = kernel([(("i",), i)], [s], tree=("s",), tags={"i": LocalAxis(0)})
    with pytest.raises(ResourceError, match="2048 threads"):
        make_nest(made)


def test_a_thread_axis_without_constant_length_is_refused():
    i = isl.Set("[n, i] -> { : 0 <= i < n }")
    s = Statement("s", at("c", V("i")), at("a", V("i")), frozenset("i"))
    made = kernel([(("i",), i)], [s], tree=("s",), tags={"i": LocalAxis(0)})
    with pytest.raises(IllegalTransformError, match="no constant length"):
        make_nest(made)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("[n, k] -> { : 0 <= k < n }", (0, "n")),
        ("[n, k] -> { : 0 <= 16k < n }", (0, "(n + 15) // 16")),
        ("[n, k, i] -> { : i <= 2k and 3k <= n }", ("(i + 1) // 2", "(n + 3) // 3")),
        ("[n, k] -> { : 0 <= k < n and k < 16 }", (0, "min(16, n)")),
    ],
)
def test_loop_bounds(domain, expected):
    bounds = loop_bounds(isl.Set(domain), "k", _sets.universe())
    low, high = bounds.lower, to_text(bounds.upper)
    assert (
        low if isinstance(low, int) else to_text(low),
        high.replace("n, 16", "16, n"),
    ) == expected


def test_guard_asks_only_what_is_open():
    domain = isl.Set("[n, i] -> { : 0 <= i < n and i < 100 }")
    context = isl.Set("[n, i] -> { : 0 <= i < 50 }")
    condition, _ = guard(domain, context)
    assert to_text(condition) == "i < n"


@pytest.mark.parametrize(
    ("hole", "test"),
    [("d != 0", "if (d != 0)"), ("d < 1 or d > 1", "if (d != 1)"), ("d mod 2 = 1", None)],
)
def test_a_loop_with_one_value_left_out_says_which(hole, test):
    knl = lk.make_kernel(
        f"{{ [i, d]: 0 <= i < n and -2 <= d <= 2 and ({hole}) }}",
        "y[i] = sum(d, x[i + d + 2])",
        [lk.GlobalArg("x", "float32", shape="n + 4"), lk.GlobalArg("y", "float32"), ...],
    )
    assert (test in knl.cuda()) if test else "!=" not in knl.cuda()
    assert knl.prove(text=True).ok


def test_private_values_between_guarded_lines_stand_behind_the_same_guard():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <> s = sum(j, x[i, j])
            <> t = max(j, x[i, j])
            <> u = s*2
            y[i] = u if s > t else t
            z[i] = u
        end
        """,
        dtypes={"x, y, z": "float32"},
    ).split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    assert knl.cuda().count("if (128 * i_outer + i_inner < n)") == 1
    assert knl.prove(text=True).ok
    # What all threads combine is prepared by all of them.
    rows = knl.split_iname("j", 4, inner_tag="l.1")
    assert "acc = 0.0f" in rows.cuda() and rows.prove(text=True).ok


def test_the_place_in_a_tile_is_computed_and_not_searched():
    """A tile of three axes that two of threads fill, cut off at sizes along two of them."""
    knl = lk.make_kernel(
        "{ [o, t, c, k]: 0 <= o < O and 0 <= t < T and 0 <= c < C and 0 <= k < 4 }",
        """
        f(c_, t_, k_) := d[c_, 2*t_ + k_] - d[c_, 2*t_ + 3 - k_]
        for o, t
            <> m[k] = sum(c, f(c, t, k)*g[o, c, k])
            y[o, t] = m[0] + m[1] + m[2] + m[3]
        end
        """,
        dtypes={"d, g, y": "float32"},
        assumptions="O, T, C >= 1",
    )
    knl = knl.split_iname("o", 16, outer_tag="g.1", inner_tag="l.1").split_iname("c", 8)
    knl = knl.split_iname("t", 32, outer_tag="g.0", inner_tag="l.0").tag_inames("k: ilp")
    knl = knl.precompute("f", ["c_inner", "t_inner", "k"], default_tag="l.auto")
    assert "int const f_dim_0 = " in knl.cuda() and "lk_floordiv" not in knl.cuda()
    assert knl.prove(text=True).ok


def test_tiles_of_threads_that_divide_a_size_are_counted_by_it():
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < K }",
        "y[i] = sum(k, a[i, k])",
        dtypes={"a": "float32"},
        assumptions="K mod 32 = 0 and K >= 32",
    ).split_iname("k", 32, inner_tag="l.0")
    assert "k_outer < K / 32;" in knl.cuda() and knl.prove(text=True).ok
