"""Steps that are tested elsewhere by what they compute: how they look, before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Golden

import loopkit as lk


def through() -> lk.Kernel:
    """A value of every point that two others read."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<> t = 2*a[i]\nb[i] = t*t + t",
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
        name="through",
    )


def nested() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, spare]: 0 <= i < n and 0 <= j < m and 0 <= spare < n }",
        "b[i, j] = a[j, i]",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        name="nested",
    )


def two_loops() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "b[i] = 2*a[i]\nc[j] = b[j] + a[j]",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
        name="two_loops",
    )


def untyped() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "<> t = x[i]/2\ny[i] = t + k", assumptions="n >= 1", name="untyped"
    )


def tile() -> lk.Kernel:
    """A tile of 8 rows and 8 columns, through memory of a block."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 8 }",
        "b[i, j] = a[j, i]",
        dtypes={"a, b": "float32"},
        name="tile",
    )
    return knl.add_prefetch("a", "i, j", temporary_address_space="shared", default_tag=None)


def ruled() -> lk.Kernel:
    """A rule that two statements use."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(x) := a[x] + a[x + 1]\nb[i] = 2*f(i)\nc[i] = f(i)*f(i + 1)",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
        name="ruled",
    )


def row_sums() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        "b[i] = sum(k, a[i, k]*a[i, k])",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        name="row_sums",
    )


def two_launches() -> lk.Kernel:
    """Two loops over blocks in launches of their own, which need none."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "b[i] = 2*a[i] {id=first}\nc[j] = a[j] + 1 {id=then}",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
        name="two_launches",
    )
    return knl.tag_inames("i: g.0, j: g.0").add_barrier("id:first", "id:then")


def doubled_columns() -> lk.Kernel:
    """A text that calls a function, and the function."""
    columns = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "[i]: b[i, j] = twice([i]: a[i, j])",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
        name="doubled_columns",
    )
    twice = lk.make_function("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", ["x", ...], name="twice")
    return lk.merge([columns, twice])


STEPS: dict[str, tuple[Callable[[], lk.Kernel], Callable[[lk.Kernel], lk.Kernel]]] = {
    "assignment_to_subst": (through, lambda knl: knl.assignment_to_subst("t")),
    "remove_unused_inames": (nested, lambda knl: knl.remove_unused_inames()),
    "rename_inames": (two_loops, lambda knl: knl.rename_inames(["i", "j"], "k")),
    "add_and_infer_dtypes": (
        untyped,
        lambda knl: lk.add_and_infer_dtypes(knl, {"x": "float32", "k": "float64"}),
    ),
    "add_dtypes": (
        lambda: lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i]", name="untyped"),
        lambda knl: knl.add_dtypes({"x, y": "float32"}),
    ),
    "rename_iname": (two_loops, lambda knl: knl.rename_iname("j", "row")),
    "duplicate_inames": (ruled, lambda knl: knl.duplicate_inames("i", "writes:c")),
    "map_domain": (
        nested,
        lambda knl: knl.map_domain("{ [i, j] -> [w, j]: w = i + j }", within="writes:b"),
    ),
    "affine_map_inames": (
        nested,
        lambda knl: knl.affine_map_inames("i, j", "u, v", ["u = i + 2*j", "v = j"]),
    ),
    "peel_iname": (two_loops, lambda knl: knl.peel_iname("i", first=1)),
    "untag_inames": (
        lambda: two_loops().fix_parameters(n=32).tag_inames("i: l.0"),
        lambda knl: knl.untag_inames("i"),
    ),
    "privatize_temporaries_with_inames": (
        lambda: through().fix_parameters(n=8),
        lambda knl: knl.privatize_temporaries_with_inames("i"),
    ),
    "add_padding": (tile, lambda knl: knl.add_padding("a_s", 0, 48)),
    "tag_array_axes": (tile, lambda knl: knl.tag_array_axes("a_s", "N0, N1")),
    "expand_subst": (ruled, lambda knl: knl.expand_subst("writes:c")),
    "extract_subst": (
        row_sums,
        lambda knl: knl.extract_subst("square", "a[x, y]*a[x, y]", "x, y"),
    ),
    "reduction_arg_to_subst_rule": (
        row_sums,
        lambda knl: knl.reduction_arg_to_subst_rule("k", subst_rule_name="term"),
    ),
    "tag_instructions": (through, lambda knl: knl.tag_instructions("load", "reads:a")),
    "replace_instruction_ids": (
        two_loops,
        lambda knl: knl.replace_instruction_ids({"insn": "first", "insn_0": "then"}),
    ),
    "remove_barrier": (two_launches, lambda knl: knl.remove_barrier("gbarrier")),
    "inline_callable_kernel": (
        doubled_columns,
        lambda knl: knl.inline_callable_kernel("twice"),
    ),
    "to_batched": (through, lambda knl: lk.to_batched(knl.split_iname("i", 4), 3, "a, b")),
}


@pytest.mark.parametrize("name", STEPS)
def test_generated_texts(name: str, golden: Golden) -> None:
    make, step = STEPS[name]
    before = make()
    after = step(before)
    assert after.prove(text=True).ok
    golden(f"step_{name}.txt", f"{before}\n\n{after}\n\n{after.cuda()}")


def test_einsum(golden: Golden) -> None:
    knl = lk.make_einsum("bij,bjk->bik", "a, b", dtypes={"a, b, out": "float32"})
    golden("einsum_text.txt", f"{knl}\n\n{knl.cuda()}")


def test_statistics(golden: Golden) -> None:
    """What is counted of a product of matrices by tiles: accesses, operations, barriers."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 16 and n mod 16 = 0",
        name="product",
    )
    knl = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.1")
    knl = knl.split_iname("j", 16, outer_tag="g.1", inner_tag="l.0").split_iname("k", 16)
    knl = knl.add_prefetch("a", "i_inner, k_inner").add_prefetch("b", "k_inner, j_inner")
    found = (lk.get_op_map(knl), lk.get_mem_access_map(knl), lk.get_synchronization_map(knl))
    golden("statistics.txt", "\n\n".join(map(str, (knl, *found))))
