"""Kernels for the tests of data transforms, put together from their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg
from loopkit._expression import index_tuple, variable_names
from loopkit._kernel import Domain, Kernel, Statement
from loopkit._syntax.domains import parse_assumptions, parse_domain
from loopkit._syntax.expressions import parse_expression
from loopkit._tree import build
from loopkit.transforms.prefetch import add_prefetch  # noqa: F401
from loopkit.transforms.prioritize import prioritize_loops  # noqa: F401
from loopkit.transforms.split import split_iname  # noqa: F401
from loopkit.transforms.tag import tag_inames  # noqa: F401

F32 = np.dtype(np.float32)


def expr(text):
    return parse_expression(text)


def domain(text: str) -> Domain:
    parsed = parse_domain(text)
    dims = parsed.dim(_sets.isl.dim_type.set)
    inames = tuple(parsed.get_dim_name(_sets.isl.dim_type.set, i) for i in range(dims))
    n = parsed.dim(_sets.PARAM)
    return Domain(
        inames, parsed.move_dims(_sets.PARAM, n, _sets.isl.dim_type.set, 0, dims).params()
    )


def make(
    domains: Sequence[str],
    statements: Iterable[tuple[str, str, str]],
    *,
    arrays: Mapping[str, str],
    temporaries: Sequence[TemporaryVariable] = (),
    assumptions: str = "",
    substitutions=(),
    predicates=None,
    name: str = "test",
) -> Kernel:
    """``statements`` are ``(id, "loop, loop", "lhs = rhs" or "lhs += rhs")``, in order.

    Loops of the same iname are shared by neighbours; ``iname#2`` starts another.
    """
    made = tuple(domain(d) for d in domains)
    all_inames = {i for d in made for i in d.inames}
    entries, result = [], []
    sizes: dict[str, None] = {}
    for d in made:
        for p in sorted(d.parameters):
            sizes[p] = None
    for id_, loops, text in statements:
        operation = "sum" if "+=" in text else None
        left, right = text.split("+=") if operation else text.split("=", 1)
        path = []
        for loop in filter(None, (x.strip() for x in loops.split(","))):
            iname, _, number = loop.partition("#")
            path.append((iname, int(number or 0)))
        lhs, rhs = expr(left), expr(right)
        inames = {i for i, _ in path}
        inames |= (variable_names(lhs) | variable_names(rhs)) & all_inames
        kind = "update" if operation else "init" if id_.startswith("init") else "user"
        given = tuple(expr(p) for p in (predicates or {}).get(id_, ()))
        result.append(
            Statement(id_, lhs, rhs, frozenset(inames), given, operation=operation, kind=kind)
        )
        entries.append((id_, tuple(path)))
    args = []
    for array, shape in arrays.items():
        dims = index_tuple(expr(f"x[{shape}]")) if shape else ()
        for d in dims:
            for p in variable_names(d):
                sizes[p] = None
        args.append(ArrayArg(array, F32, dims))
    names = {t.name for t in temporaries}
    args += [
        ValueArg(s, np.dtype(np.int32))
        for s in sizes
        if s not in all_inames and s not in names and s not in arrays
    ]
    assumed = parse_assumptions(assumptions) if assumptions else _sets.universe()
    return Kernel(
        name,
        made,
        tuple(result),
        tuple(args),
        tuple(temporaries),
        build(entries),
        assumptions=Domain((), assumed),
        substitutions=tuple(substitutions),
    )


def matmul() -> Kernel:
    acc = TemporaryVariable("acc", F32, address_space=AddressSpace.PRIVATE, accumulates="sum")
    return make(
        ["{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }"],
        [
            ("init", "i, j", "acc = 0.0"),
            ("update", "i, j, k", "acc += a[i, k] * b[k, j]"),
            ("store", "i, j", "c[i, j] = acc"),
        ],
        arrays={"a": "n, l", "b": "l, m", "c": "n, m"},
        temporaries=[acc],
        assumptions="n >= 1 and m >= 1 and l >= 1",
        name="matmul",
    )


def tiled_matmul() -> Kernel:
    return (
        matmul()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
    )


def v(name):
    return prim.Variable(name)


def register_tiled(tile_i: int = 128, tile_j: int = 128, tile_k: int = 8, per: int = 8) -> Kernel:
    """The product with ``per`` by ``per`` results a thread, not yet staged."""
    return (
        matmul()
        .split_iname("i", tile_i, outer_tag="g.1", inner_iname="i_tile")
        .split_iname("j", tile_j, outer_tag="g.0", inner_iname="j_tile")
        .split_iname("i_tile", per, outer_iname="i_t", inner_iname="i_reg")
        .split_iname("j_tile", per, outer_iname="j_t", inner_iname="j_reg")
        .tag_inames({"i_t": "l.1", "j_t": "l.0", "i_reg": "unr", "j_reg": "unr"})
        .split_iname("k", tile_k)
        .prioritize_loops("k_outer,k_inner,i_reg,j_reg")
    )


def sgemm(tile_i: int = 128, tile_j: int = 128, tile_k: int = 8, per: int = 8) -> Kernel:
    return (
        register_tiled(tile_i, tile_j, tile_k, per)
        .add_prefetch("a", ["i_t", "i_reg", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_t", "j_reg"], default_tag="l.auto")
        .add_prefetch("a_s", ["i_reg"], default_tag="unr")
        .add_prefetch("b_s", ["j_reg"], default_tag="unr")
    )


def run_on_host(kernel: Kernel, arrays, sizes, orders=("ascending", "descending", "random")):
    """The arrays after a run of the generated source on the CPU, in several thread orders.

    Arrays are changed copies; all orders must agree.
    """
    from loopkit._expression import evaluate
    from loopkit._host import compile_host
    from loopkit._program import ArrayParam

    program = kernel.program()
    module = compile_host(program)
    grid = tuple(int(evaluate(g, sizes)) for g in program.grid)
    results = []
    for order in orders:
        copies = {name: np.array(value, copy=True) for name, value in arrays.items()}
        values = [
            copies[p.name] if isinstance(p, ArrayParam) else sizes[p.name] for p in program.params
        ]
        module.launch(values, grid, order=order, seed=7)
        results.append(copies)
    for other in results[1:]:
        for name, value in other.items():
            np.testing.assert_array_equal(value, results[0][name], err_msg=name)
    return results[0]
