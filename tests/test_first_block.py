"""What only block 0 needs is computed there alone, and by whoever needs it else."""

from __future__ import annotations

import re

import loopkit as lk
from loopkit.codegen.proof.prove import prove_source


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


def guarded_by_data() -> lk.Kernel:
    """Beside blocks, a predicate that only its own statement looks at."""
    return beside_blocks(
        """
        y[i] = 2*a[i]
        if x[k] > 2
            x[k] = 1
        else
            x[k] = b[k]
        end
        """
    )


def test_guards_that_only_the_first_block_comes_to() -> None:
    """What such a guard reads is read where the operands before it hold."""
    knl = guarded_by_data()
    source = knl.cuda()
    assert guarded(source, "cond_set") and "blockIdx.x == 0 && threadIdx.x == 0 && cond)" in source
    assert knl.prove().ok


def test_operands_that_all_blocks_come_to() -> None:
    """With the operands in the other order, all blocks look at the condition."""
    knl = guarded_by_data()
    source = knl.cuda()
    first = "blockIdx.x == 0 && threadIdx.x == 0"
    wrong = source.replace(f"{first} && cond", f"cond && {first}")
    assert wrong != source
    found = prove_source(knl, wrong).findings
    assert any("'cond_set' is not executed" in f.what for f in found)


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
