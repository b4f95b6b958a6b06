"""Kernels and schedules for the tests of data transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from seams import ArrayParam, Domain, evaluate, index_tuple, parse_domain
from seams import parse_expression as expr
from seams import sets as _sets

import loopkit as lk
from loopkit import Kernel

__all__ = ["Domain", "Kernel", "expr"]


def domain(text: str) -> Domain:
    """A domain from isl's notation."""
    parsed = parse_domain(text)
    dims = parsed.dim(_sets.isl.dim_type.set)
    inames = tuple(parsed.get_dim_name(_sets.isl.dim_type.set, i) for i in range(dims))
    n = parsed.dim(_sets.PARAM)
    return Domain(
        inames, parsed.move_dims(_sets.PARAM, n, _sets.isl.dim_type.set, 0, dims).params()
    )


def global_args(names: str, shape: str) -> list[Any]:
    """Arrays of float32 of one shape."""
    parts = index_tuple(expr(f"x[{shape}]"))
    return [lk.GlobalArg(name, np.float32, shape=parts) for name in names.split()]


# {{{ products


def matmul() -> Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
        name="matmul",
    )


def tiled_matmul() -> Kernel:
    return (
        matmul()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
    )


def staged_matmul() -> Kernel:
    return (
        tiled_matmul()
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


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


# }}}

# {{{ stencils and transposition

STAR = {0: -8.5, 1: 1.5, 2: -0.25, 3: 0.125, 4: -0.0625}


def five_point() -> Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 1 <= i < n - 1 and 1 <= j < m - 1 }",
        "o[i, j] = u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 4*u[i, j]",
        [*global_args("u o", "n, m"), ...],
        assumptions="n, m >= 3",
        name="five_point",
    )
    return knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1").split_iname(
        "j", 16, outer_tag="g.0", inner_tag="l.0"
    )


def star() -> Kernel:
    """A 25-point star, not yet scheduled."""
    terms = [f"({STAR[0]})*u[z, y, x]"]
    for r in range(1, 5):
        around = [f"u[z, y, x{s}{r}] + u[z, y{s}{r}, x] + u[z{s}{r}, y, x]" for s in "+-"]
        terms.append(f"({STAR[r]})*({' + '.join(around)})")
    return lk.make_kernel(
        "{ [z, y, x]: 4 <= z < n - 4 and 4 <= y < m - 4 and 4 <= x < l - 4 }",
        "o[z, y, x] = " + " + ".join(terms),
        [*global_args("u o", "n, m, l"), ...],
        assumptions="n, m, l >= 9",
        name="star",
    )


def star_of(u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What :func:`star` computes, zero elsewhere."""
    n, m, l = u.shape
    total = STAR[0] * u[4:-4, 4:-4, 4:-4]
    for r in range(1, 5):
        for axis in range(3):
            for s in (r, -r):
                at = [s if k == axis else 0 for k in range(3)]
                ends = zip(at, (n, m, l), strict=True)
                total = total + STAR[r] * u[tuple(slice(4 + d, e - 4 + d) for d, e in ends)]
    result = np.zeros_like(u)
    result[4:-4, 4:-4, 4:-4] = total
    return result


def transpose() -> Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "o[j, i] = a[i, j]",
        dtypes={"a, o": "float32"},
        assumptions="n, m >= 1",
        name="transpose",
    )
    return (
        knl.split_iname("i", 32, outer_tag="g.1", inner_tag="l.0")
        .split_iname("j", 32, outer_tag="g.0")
        .split_iname("j_inner", 8, outer_iname="j_step", inner_iname="j_row")
        .tag_inames({"j_row": "l.1", "j_step": "unr"})
    )


# }}}


def run_on_host(kernel, arrays, sizes, orders=("ascending", "descending", "random")):
    """The arrays after a run of the generated source on the CPU, in several thread orders.

    Arrays are changed copies; all orders must agree.
    """
    from seams import compile_host

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
