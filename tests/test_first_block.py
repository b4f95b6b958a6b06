"""What only block 0 needs is computed there alone, and by whoever needs it else."""

from __future__ import annotations

import re

import pytest
from seams import prove_source

import loopkit as lk


def beside_blocks(text: str) -> lk.Kernel:
    """Statements without a coordinate beside one in blocks of 32 threads."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 8 }"],
        text,
        [*(lk.GlobalArg(x, "float32") for x in "abxy" if f"{x}[" in text), ...],
        assumptions="n >= 1",
    )
    return knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


def guarded(source: str, statement: str) -> bool:
    """Whether a statement's line stands behind a test of the block."""
    lines = source.splitlines()
    at = next(n for n, line in enumerate(lines) if f"// {statement}" in line)
    return "blockIdx.x == 0" in lines[at - 1] or "blockIdx.x == 0" in lines[at - 2]


def test_chain_to_a_store() -> None:
    knl = beside_blocks(
        """
        y[i] = 2*a[i]
        <> t = x[k] + 1     {id=first}
        <> u = t*t          {id=second}
        x[k] = u            {id=store}
        """
    )
    source = knl.cuda()
    assert all(guarded(source, s) for s in ("first", "second", "store"))
    assert knl.prove().ok


def test_needed_in_all_blocks() -> None:
    knl = beside_blocks(
        """
        <> t = b[0] + 1     {id=first}
        <> u = t*t          {id=second}
        x[k] = u            {id=store}
        y[i] = u*a[i]
        """
    )
    source = knl.cuda()
    assert not guarded(source, "first") and not guarded(source, "second")
    assert guarded(source, "store")
    assert knl.prove().ok


def test_sums_in_the_first_block() -> None:
    knl = beside_blocks("y[i] = a[i]\nx[0] = sum(k, b[k])")
    source = knl.cuda()
    assert source.count("blockIdx.x == 0") == 3
    assert knl.prove().ok


def test_bounds_of_loops_are_known_to_all_blocks() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < m }"],
        """
        y[i] = a[i]
        <> m = ptr[0]       {id=bound}
        x[k] = 1            {id=inside}
        """,
        [lk.GlobalArg("x", "float32", shape="n"), ...],
        dtypes={"a, y": "float32", "ptr": "int32"},
        assumptions="n >= 1",
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    source = knl.cuda()
    assert not guarded(source, "bound") and guarded(source, "inside")


def test_the_proof_sees_blocks_that_were_left_out() -> None:
    """A guard around what all blocks read is refuted."""
    knl = beside_blocks(
        """
        <> t = b[0] + 1     {id=first}
        y[i] = t*a[i]
        """
    )
    source = knl.cuda()
    wrong = re.sub(r"( +)(t = .*// first)", r"\1if (blockIdx.x == 0)\n\1    \2", source)
    assert wrong != source
    assert prove_source(knl, wrong).refuted


def test_no_block_loads_what_another_stores() -> None:
    knl = beside_blocks("y[i] = a[i]\nx[k] = x[k] + 1").buffer_array("x", ["k"])
    assert all(guarded(knl.cuda(), s) for s in ("load_x", "store_x"))


FIRST = "blockIdx.x == 0 && threadIdx.x == 0"
CHAINED = """
    y[i] = 2*a[i]
    if x[k] > 2
        x[k] = 1
    end
    if x[k] > 3
        x[k] = b[k]
    end
    """
BRANCHES = """
    y[i] = 2*a[i]
    if x[k] > 2
        x[k] = 1
    else
        x[k] = b[k]
    end
    """
"""Beside blocks, predicates that only their own statements look at."""


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (CHAINED, f"        if ({FIRST} && cond)\n            x[k] = 1.0f;"),
        (BRANCHES, f"        if ({FIRST}) {{\n            if (cond)\n                x[k] = 1.0f;"),
    ],
)
def test_guards_that_only_the_first_block_comes_to(text: str, asked: str) -> None:
    """What such a guard reads is read where the operands before it hold."""
    knl = beside_blocks(text)
    source = knl.cuda()
    assert guarded(source, "cond_set") and asked in source
    assert knl.prove().ok and knl.prove(text=True).ok


def test_operands_that_all_blocks_come_to() -> None:
    """With the operands in the other order, all blocks look at the condition."""
    knl = beside_blocks(CHAINED)
    refuted(knl, knl.cuda().replace(f"{FIRST} && cond)", f"cond && {FIRST})"))


def test_branches_that_all_blocks_come_to() -> None:
    """With the guards the other way around, too, before an else and behind it."""
    knl = beside_blocks(BRANCHES)
    source = knl.cuda()
    begun = f"        if ({FIRST}) {{\n            if (cond)\n"
    turned = f"        if (cond) {{\n            if ({FIRST})\n"
    behind = f"        }} else {{\n            if ({FIRST})\n"
    assert source.count("            else\n") == 1
    refuted(knl, source.replace(begun, turned).replace("            else\n", behind))


def refuted(knl: lk.Kernel, wrong: str) -> None:
    """All blocks look at the condition, which only the first one has."""
    assert wrong != knl.cuda()
    found = prove_source(knl, wrong).findings
    assert any("'cond_set' is not executed" in f.what for f in found)
    assert any("reads 'cond' where nothing" in f.what for f in found)


def test_temporaries_that_nothing_reads() -> None:
    """Their conditions, and what is fetched for these, are computed in the first block."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 4 }", "{ [k]: 0 <= k < 4 }"],
        """
        if a[i] > 3
            <> s[i] = c[i, i]
        else
            a[i] = 0
        end
        u[k + 1] = c[k + 2, 2*k + 1] - k
        """,
        dtypes={"a, c, u": "int32"},
    ).tag_inames({"k": "g.0"})
    assert guarded(knl.cuda(), "cond_set")
    assert knl.prove().ok
    fetched = beside_blocks(
        """
        y[i] = 2*a[i]
        if x[k] > 3
            <> s[k] = b[k]
        end
        """
    ).add_prefetch("x", ["k"], default_tag="unr")
    assert guarded(fetched.cuda(), "insn_0") and "blockIdx.x == 0 && x_r" in fetched.cuda()
    assert fetched.prove().ok


def test_copies_for_users_outside_the_blocks() -> None:
    """A thread without a share of the blocks' work has the copy that it reads, too."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 8 }", "{ [k]: 0 <= k < m }"],
        """
        <> t = g[col[0]]
        u[i] = t
        x[k] = g[col[0]]
        """,
        [lk.GlobalArg("g", "int32", shape="m + 2"), ...],
        dtypes={"u, x, col": "int32"},
        assumptions="m >= 1",
    )
    knl = knl.extract_subst("rule", "col[0]", []).split_iname(
        "k", 4, outer_tag="g.0", inner_tag="l.0"
    )
    knl = knl.precompute("rule")
    assert not knl.statement_by_id["compute_rule"].inames
    assert "if" not in knl.cuda().split("rule_r = col[0]")[0]
    assert knl.prove().ok
