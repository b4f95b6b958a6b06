"""The proof of what data get: values written before they are read, room, types."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest
from proof_kernels import dynamic, matmul, peeled_over_blocks, reversed_rows
from seams import Proof, prove, prove_program, prove_source

import loopkit as lk


def kinds(proof: Proof) -> set[str]:
    return {f.kind for f in proof.findings}


# {{{ written before read


def test_copies_in_one_block_for_all() -> None:
    """A copy that one block alone fetches, and all blocks read."""
    knl = peeled_over_blocks().add_prefetch(
        "a",
        ["k_inner_first_inner", "k_inner"],
        temporary_address_space="shared",
        unchecked=True,
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    [line] = [t for t in source.splitlines() if "// fetch_a" in t]
    faulty = source.replace(line, f"if (blockIdx.y == 0 && blockIdx.x == 0) {line.strip()}")
    proof = prove_source(knl, faulty)
    assert "unwritten" in kinds(proof)
    assert any(f.array == "a_s" and "for this block" in f.what for f in proof.findings)


def test_copies_of_what_is_not_yet_written_are_overwritten() -> None:
    """A copy in the loop that fills an array: the last iteration finds all of it written."""
    knl = lk.make_kernel(
        "{ [i, k, h]: 0 <= i < n and 0 <= k, h < 8 }",
        "<> s[k] = c[i, 7 - k] + c[i, k]\nx[i, h] = s[7 - h] {id=use}",
        dtypes={"c, x": "int32"},
    )
    saved = knl.save_and_reload_temporaries(insn_before="id:insn", within_inames=["i"])
    assert saved.add_inames_to_insn("k", "id:save_s").prove().ok
    fetched = knl.add_prefetch("s", ["h"], default_tag=None)
    fetched = fetched.add_inames_to_insn("k", "id:fetch_s")
    assert fetched.prove().ok
    lines = fetched.cuda().splitlines()
    (first,) = (n for n, line in enumerate(lines) if "// insn" in line)
    (last,) = (n for n, line in enumerate(lines) if "// use" in line)
    early = [*lines[:first], *lines[first + 1 : first + 3], lines[first], *lines[first + 3 :]]
    inside = [*lines[: first + 3], *lines[last - 1 : last + 1], *lines[first + 3 : last - 1]]
    for wrong in (early, [*inside, *lines[last + 1 :]]):
        proof = prove_source(fetched, "\n".join(wrong))
        assert "unwritten" in kinds(proof), str(proof)


def test_private_where_threads_exchange() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 64 }", "{ [j]: 0 <= j < 64 }"],
        """
        <> t[i] = a[i] {id=fill}
        b[j] = t[63 - j] {id=drain}
        """,
        dtypes={"a, b": "float32"},
    ).set_temporary_address_space("t", "private")
    assert prove(knl).ok
    [finding] = prove(knl.tag_inames("i:l.0, j:l.0", unchecked=True)).findings
    assert finding.kind == "unwritten"
    assert (finding.array, finding.cell) == ("t", (63,))
    assert "for this thread" in finding.what
    assert "drain[j=0] on thread 0" in str(finding)


def test_written_in_the_iteration_before() -> None:
    """What one iteration hands to the next; the first one gets it from before the loop."""
    ring = lk.TemporaryVariable("s", "float32", shape=(64,), address_space=lk.AddressSpace.LOCAL)
    knl = lk.make_kernel(
        ["{ [h]: 0 <= h < 64 }", "{ [t, i, j]: 0 <= t < n and 0 <= i, j < 64 }"],
        """
        s[h] = a[0, h] {id=first}
        for t
            b[t, j] = s[63 - j] {id=get}
            s[i] = a[t + 1, i] {id=put}
        end
        """,
        [ring, ...],
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
    )
    tagged = knl.tag_inames("h:l.0, i:l.0, j:l.0")
    assert prove(tagged).ok, str(prove(tagged))
    # Without the first rows only later iterations find something.
    source = tagged.cuda()
    [line] = [text for text in source.splitlines() if text.rstrip().endswith("// first")]
    proof = prove_source(tagged, source.replace(line, ""))
    unwritten = [f for f in proof.findings if f.kind == "unwritten"]
    assert [f.first.values["t"] for f in unwritten if f.first is not None] == [0]


def test_written_in_two_parts() -> None:
    """Two statements fill an array; each leaves out what the other writes."""
    text = """
    <> t[i] = a[i] {id=left}
    t[j] = 2*a[j] {id=right}
    b[k] = t[15 - k] {id=all}
    """
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < m }", "{ [j]: m <= j < 16 }", "{ [k]: 0 <= k < 16 }"],
        text,
        [lk.TemporaryVariable("t", "float32", shape=(16,)), lk.GlobalArg("a", shape="16"), ...],
        dtypes={"a, b": "float32"},
        assumptions="0 <= m <= 16",
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    faulty = source.replace("int j = m;", "int j = m + 1;")
    assert faulty != source
    assert "unwritten" in kinds(prove_source(knl, faulty))


def test_what_nothing_uses_may_be_anything() -> None:
    """A result that goes nowhere may be computed from what nothing wrote."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 8 }", "{ [j]: 1 <= j < n }"],
        "<> s[i] = sum(j, 2*c[i, j - 1])",
        dtypes={"c": "int32"},
        assumptions="n >= 1",
    ).buffer_array("acc", ["i"], init_expression="0", store_expression="base + buffer")
    assert "acc = (unsigned long long)acc + acc_buf" in knl.cuda()
    assert prove(knl).ok


@pytest.mark.parametrize("inner_tag", [None, "l.0"])
def test_cells_of_a_box_that_nothing_reads_may_hold_anything(inner_tag: str | None) -> None:
    """A box is copied whole, of which but the cells that are read have been written."""
    knl = (
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "o[i] = a[i] - b[i]",
            dtypes={"a, b, o": "float32"},
            assumptions="n >= 2",
        )
        .split_iname("i", 8, outer_tag="g.0", inner_tag=inner_tag)
        .add_prefetch("b", ["i_inner"], default_tag=None, temporary_address_space="shared")
        .add_prefetch(
            "b_s",
            ["i_inner"],
            default_tag=None,
            fetch_bounding_box=True,
            temporary_address_space="shared",
        )
    )
    source = knl.cuda()
    [guard] = re.findall(r"b_dim_0 < (min\(8, n - 8 \* i_outer\))", source)
    assert "b_s_s[b_s_dim_0] = b_s[b_s_dim_0];" in source
    assert prove(knl).ok, str(prove(knl))
    for old, new in (
        (f"b_dim_0 < {guard}", f"b_dim_0 < {guard} - 1"),
        ("b_s_s[i_inner]", "b_s_s[7 - i_inner]"),
    ):
        assert source.count(old) == 1
        assert "unwritten" in kinds(prove_source(knl, source.replace(old, new)))


def test_cells_of_a_box_are_those_of_the_iteration_that_copies_it() -> None:
    """What the next iteration reads of the box is copied anew in it."""
    knl = (
        lk.make_kernel(
            "{ [i]: 2 <= i < n }", "u[i] = a[i] + i", dtypes={"a, u": "int32"}, assumptions="n >= 2"
        )
        .split_iname("i", 4, inner_tag="l.1")
        .add_prefetch("a", ["i_inner"], temporary_address_space="shared")
        .add_prefetch(
            "a_s",
            ["i_inner"],
            default_tag="unr",
            fetch_bounding_box=True,
            temporary_address_space="global",
        )
    )
    source = knl.cuda()
    assert prove(knl).ok, str(prove(knl))
    for old, new in (
        ("if (a_dim_0 + 4 * i_outer >= 2 &&", "if (a_dim_0 + 4 * i_outer >= 3 &&"),
        ("a_s_r[i_inner]", "a_s_r[3 - i_inner]"),
        ("a_s_r[a_s_dim_0] = a_s[a_s_dim_0]", "a_s_r[a_s_dim_0] = a_s[3 - a_s_dim_0]"),
    ):
        assert source.count(old) == 1
        assert "unwritten" in kinds(prove_source(knl, source.replace(old, new)))


def test_what_data_may_have_written_is_open() -> None:
    """A copy of cells that were written where data say so: no fault, and no proof."""
    knl = (
        lk.make_kernel(
            ["{ [i]: 0 <= i < 5 }", "{ [k]: 0 <= k < n }"],
            "if a[i + 2] > 3\n x[i] = product(k, e[k, i])\nend",
            dtypes={"a, e, x": "int32"},
            assumptions="n >= 1",
        )
        .prioritize_loops(["k", "i"])
        .extract_subst("rule", "acc[i]", ["i"])
        .precompute("rule", ["i"], default_tag="unr", temporary_address_space="shared")
    )
    source = knl.cuda()
    assert "= acc[rule_dim_0];" in source
    found = prove(knl)
    assert not found.findings and [one.kind for one in found.undecided] == ["unwritten"]
    outside = source.replace("= acc[rule_dim_0];", "= acc[4 - rule_dim_0];")
    assert not prove_source(knl, outside).ok
    # No data make shorter loops write the last cell, which the last line reads.
    shorter = source.replace("i < 5;", "i < 4;", 2)
    assert "unwritten" in kinds(prove_source(knl, shorter)), str(prove_source(knl, shorter))


def test_what_is_overwritten_unseen_may_be_anything() -> None:
    """A copy of what nothing wrote is overwritten before it is used; or it is not."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 3 and 0 <= j < m and 0 <= k < m }",
        "w[i] = product((j, k), c[j, k])",
        dtypes={"c": "int32", "w": "int64"},
        assumptions="m >= 2",
    )
    knl = knl.split_iname("j", 2)
    knl = knl.buffer_array("acc", ["j_inner"], default_tag=None, init_expression="2*base")
    source = knl.cuda()
    assert "acc_buf = 2 * (unsigned long long)acc;" in source
    assert prove(knl).ok, str(prove(knl))
    [line] = [t for t in source.splitlines() if t.rstrip().endswith("// insn_init")]
    assert "unwritten" in kinds(prove_source(knl, source.replace(line, "")))


def test_what_runs_too_often_behind_all_reads_is_unseen() -> None:
    """Accumulators of the other threads' tiles are started, and combined, after these are read."""
    knl = lk.make_kernel(
        "{ [i, v, w, q, k]: 0 <= i < n and 0 <= v, q, k < 8 and 0 <= w <= v }",
        """
        for i
            <> s[q] = c[i, q]
            <> t[v] = max(w, s[w])
            x[i, k] = t[k]
        end
        """,
        dtypes={"c": "int32"},
    )
    knl = knl.tag_inames("w: l.0, q: l.0, k: l.0").split_iname(
        "v", 2, inner_tag="ilp", slabs=(1, 0)
    )
    knl = knl.tag_inames("v_outer: l.1")
    assert prove(knl).ok
    # Where the first tile's are started but once, what runs too often is read.
    start = re.compile(r"( +#pragma unroll\n.*\n.*// insn_0_init_first\n)")
    source = knl.program().source
    (lines,) = start.findall(source)
    loop = source.index("    for (int i = 0")
    once = source[:loop] + lines + source[loop:].replace(lines, "", 1)
    assert "instances" in kinds(prove_source(knl, once))


def test_what_is_overwritten_unseen_in_memory_that_threads_share() -> None:
    """The same of a scratch copy in global and in shared memory, but not of an output."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        "<> s[j] = d[i, j] + i  {id=first}\ny[i, j] = s[j]",
        dtypes={"d, y": "int32"},
    ).buffer_array("s", ["j"], default_tag=None, init_expression="2*base")
    for space in ("private", "shared", "global"):
        moved = knl.set_temporary_address_space("s_buf", space)
        source = moved.cuda()
        assert "// init_s" in source
        assert prove(moved).ok, str(prove(moved))
        # The last cell is read as it was loaded.
        [line] = [t for t in source.splitlines() if t.rstrip().endswith("// first")]
        faulty = source.replace(line, f"if (j < 4) {line.strip()}")
        assert "unwritten" in kinds(prove_source(moved, faulty))


def test_threads_without_work_may_read_what_is_unwritten() -> None:
    """A thread's private result that this thread does not use; or that it uses."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n and i < m }", "{ [j]: 0 <= j < 3 }", "{ [k]: 0 <= k < m }"],
        """
        u[i] = min(j, d[i, j])
        x[k, i] = 2147483647
        """,
        dtypes={"d, u, x": "int32"},
        assumptions="n, m >= 1",
    )
    knl = knl.extract_subst("rule", "2147483647", [])
    knl = knl.split_iname("k", 4, outer_tag="g.1", inner_tag="l.1").precompute("rule")
    source = knl.cuda()
    assert "acc = rule_r;" in source
    assert prove(knl).ok, str(prove(knl))
    [line] = [t for t in source.splitlines() if "// compute_rule" in t]
    source = source.replace(line, f"if (4 * k_outer + k_inner < m) {line.strip()}")
    assert "unwritten" not in kinds(prove_source(knl, source))
    last = source.replace("threadIdx.y == 0)\n            u[", "threadIdx.y == 3)\n            u[")
    assert last != source
    assert "unwritten" in kinds(prove_source(knl, last))


@pytest.mark.parametrize("value", ["g[s]", "s + 1"])
def test_subscripts_are_looked_at_even_if_results_are_not(value: str) -> None:
    """Dead results may come from anywhere, but only from cells that exist."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"<> s = col[0]  {{id=first}}\n<> r = {value}\ny[i] = a[i]",
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"a, col, y": "int32"},
    )
    source = knl.cuda()
    [line] = [t for t in source.splitlines() if t.rstrip().endswith("// first")]
    assert ("unwritten" in kinds(prove_source(knl, source.replace(line, "")))) == (value == "g[s]")


@pytest.mark.parametrize("value", ["g[s]", "s + 1"])
def test_subscripts_are_looked_at_on_all_threads(value: str) -> None:
    """The same of threads whose result is dead."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"<> s = col[0]  {{id=first}}\n<> r = {value}\nx[0] = r\ny[i] = a[i]",
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"a, col, x, y": "int32"},
        assumptions="n >= 1",
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    source = knl.cuda()
    [line] = [t for t in source.splitlines() if t.rstrip().endswith("// first")]
    faulty = source.replace(line, f"if (threadIdx.x == 0) {line.strip()}")
    assert ("unwritten" in kinds(prove_source(knl, faulty))) == (value == "g[s]")


def test_the_same_data_by_other_names() -> None:
    """Lines that data may leave out, in loops of their own, ask for the same."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 4 }", "{ [j]: i <= j < n }"],
        """
        for i
            if u[i] > 2
                v[i] = sum(j, c[i, j]) {id=total}
            end
        end
        """,
        dtypes={"c, v": "float32", "u": "int32"},
        assumptions="n >= 4",
    ).duplicate_inames(["i", "j"], "id:total_update")
    assert prove(knl).ok, str(prove(knl))
    split = knl.split_iname("i", 2)
    assert prove(split).ok, str(prove(split))
    source = knl.cuda()
    for old, new in (("u[i] > 2", "u[i] > 3"), ("u[i] > 2", "u[i + 0*n] > 2 && u[i + 1] > 2")):
        assert old in source
        proof = prove_source(knl, source.replace(old, new, 1))
        assert "unwritten" in {u.kind for u in proof.undecided}


def test_guards_read_too() -> None:
    """Private values that decide whether lines run are followed, and lie in their arrays."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 4 }", "{ [j]: 0 <= j < 4 }"],
        """
        for i
            <> t[k] = a[i, k] {id=load}
            b[i, j] = 1 {id=store, if=t[3 - j] > 0}
        end
        """,
        dtypes={"a, b": "float32"},
        assumptions="n >= 1",
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    faulty = source.replace("k < 4", "k < 3")
    assert faulty != source
    assert "unwritten" in kinds(prove_source(knl, faulty))


def test_guards_read_data_last() -> None:
    """A loaded bound has no value where nothing loads it: other conditions are tested first."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < n }",
        """
        <> hi = ptr[i + 1] {id=load}
        x[k, i] = k {id=between}
        u[i] = 1 {id=last, if=hi > lo}
        """,
        [lk.ValueArg("lo", "int32"), ...],
        dtypes={"u, x": "float64", "ptr": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 32, inner_tag="l.0", outer_tag="g.0")
    proof = prove(knl)
    assert proof.ok, str(proof)
    source = knl.cuda()
    [guard] = [t for t in source.splitlines() if "if (" in t and "hi > lo" in t]
    first, second = guard.strip()[4:-1].split(" && ")
    assert second == "hi > lo"
    faulty = source.replace(f"{first} && {second}", f"{second} && {first}")
    found = prove_source(knl, faulty)
    assert [f.array for f in found.findings if f.kind == "unwritten"] == ["hi"]


def test_loops_ask_data_where_they_were_written() -> None:
    """Threads that load no bound run no loop, also where a stride alone keeps them from it."""
    knl = (
        lk.make_kernel(
            ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
            """
            <> hi = ptr[i + 1]
            y[i] = y[i] + g[r]
            """,
            [lk.GlobalArg("g", shape="n + 2"), ...],
            dtypes={"g, y": "float64", "ptr": "int32"},
            assumptions="n >= 1",
        )
        .map_domain("{ [i] -> [wide]: wide = 3*i }")
        .split_iname("wide", 4, outer_tag="g.0", inner_tag="l.0")
    )
    source = knl.cuda()
    proof = prove(knl)
    assert proof.ok, str(proof)
    [loop] = [number for number, line in enumerate(source.splitlines()) if "r < hi" in line]
    assert " % 3 == 0" in source.splitlines()[loop - 1]
    [stride] = re.findall(r"\(wide_outer \+ wide_inner\) % 3 == 0 && ", source)
    found = prove_source(knl, source.replace(stride, ""))
    assert [f.array for f in found.findings if f.kind == "unwritten"] == ["hi"]


def test_a_value_is_taken_from_data_where_they_were_written() -> None:
    """The first slab's one index comes from a bound that threads without work never load."""
    knl = (
        lk.make_kernel(
            ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
            """
            <> lo = ptr[i]
            x[i] = sum(r, g[r])
            """,
            [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
            dtypes={"g, ptr, x": "int32"},
            assumptions="n >= 1",
        )
        .split_iname("i", 5, inner_tag="l.0", outer_tag="g.0")
        .split_iname("r", 3, slabs=(1, 0))
    )
    assert prove(knl).ok, str(prove(knl))
    source = knl.cuda()
    lines = source.splitlines()
    [guard] = [number for number, line in enumerate(lines) if line.startswith("    if (5 *")]
    [let] = [number for number, line in enumerate(lines) if "r_outer_first = lk_floor" in line]
    early = [*lines[:guard], lines[let], *lines[guard:let], *lines[let + 1 :]]
    found = prove_source(knl, "\n".join(early))
    assert ("unwritten", "lo") in {(f.kind, f.array) for f in found.findings}


# }}}

# {{{ room


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("shared_memory + 0", "shared_memory + 64", "memory"),
        ("__align__(16) unsigned", "__align__(2) unsigned", "memory"),
        ("float (*a_s)[256] = (float (*)[256])", "int (*a_s)[256] = (int (*)[256])", "type"),
    ],
)
def test_dynamic_shared_memory(old: str, new: str, kind: str) -> None:
    source = dynamic().cuda()
    assert old in source
    assert kind in kinds(prove_source(dynamic(), source.replace(old, new)))


def test_static_shared_memory() -> None:
    program = matmul().program()
    short = dataclasses.replace(program, static_shared=program.static_shared - 4)
    [finding] = prove_program(matmul(), short).findings
    assert finding.kind == "memory"
    assert "2048 bytes" in finding.what


def test_shared_in_each_thread() -> None:
    source = reversed_rows(64).cuda()
    proof = prove_source(
        reversed_rows(64), source.replace("__shared__ __align__(16) float s", "float s")
    )
    assert {"memory", "unwritten"} <= kinds(proof)


def test_padding_is_not_allocated() -> None:
    """Rows lie apart by more than they hold; behind the last one nothing is needed."""
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i < n and 0 <= j < m }", "{ [k, l]: 0 <= k < n and 0 <= l < m }"],
        """
        <> t[i, j] = a[i, j]
        b[k, l] = t[k, l]
        """,
        dtypes={"a, b": "float64"},
        assumptions="n, m >= 1",
    )
    knl = knl.set_temporary_address_space("t", "global").pad_temporary("t", 1, 3)
    assert prove(knl).ok, str(prove(knl))


# }}}

# {{{ types


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float a_s[16]", "double a_s[16]"),
        ("float acc", "double acc"),
        ("int const i_inner", "short const i_inner"),
        ("for (int k_inner", "for (unsigned short k_inner"),
        ("a_s[i_inner][k_inner]", "a_s[(signed char)i_inner][k_inner]"),
        ("a_s[i_inner][k_inner]", "a_s[(int)(float)i_inner][k_inner]"),
        ("float const *__restrict__ a", "double const *__restrict__ a"),
    ],
)
def test_types(old: str, new: str) -> None:
    source = matmul().cuda()
    assert old in source
    assert "type" in kinds(prove_source(matmul(), source.replace(old, new, 1)))


# }}}


def test_staged_reads_under_guards_on_data_are_open() -> None:
    """Only where the guard holds must the cell be written: the data that decide that are named."""
    knl = (
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "y[i] = x[i - 1] if flag[i] > 0 else 0",
            [
                *(lk.GlobalArg(name, "float32", ("n",)) for name in "xy"),
                lk.GlobalArg("flag", "int32", ("n",)),
                lk.ValueArg("n", "int32"),
            ],
            assumptions="n >= 1",
        )
        .split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("x", ["i_inner"], default_tag="l.auto")
    )
    found = prove(knl)
    assert not found.findings and [one.kind for one in found.undecided] == ["unwritten"]
    assert "data decide whether '0 < flag[" in found.undecided[0].what


def test_what_data_decide_is_said_as_a_text_says_it() -> None:
    """Numbers with a fraction, functions and operations as people write them."""
    kept = lk.TemporaryVariable("A", dtype="float64", shape=3)
    knl = lk.make_kernel(
        "{ [b, r, i]: 0 <= b < n and 0 <= r < 2 and 0 <= i < 3 }",
        """
        for b
            <> A[i] = x[b, i]
            for r
                <> p = 0 if r < 1 else 1
                <> t = A[p + 1] if abs(A[p])*2 > 1e-30 else 0
                A[p] = t
            end
            y[b] = A[0]
        end
        """,
        dtypes={"x, y": "float64"},
        temporary_variables=[kept],
    ).split_iname("b", 32, outer_tag="g.0", inner_tag="l.0")
    text = str(prove(knl))
    assert " at 0x" not in text
    assert "1e-30 < abs(A[p])*2.0" in text or prove(knl).ok, text


def test_barrier_under_a_guard_on_a_variable() -> None:
    """Whether a barrier is executed that a loaded value decides, one for all threads, is open."""
    shared = lk.TemporaryVariable("s", "float32", shape=(64,), address_space=lk.AddressSpace.LOCAL)
    knl = lk.make_kernel(
        "{ [t, u]: 0 <= t, u < 64 }",
        """
        <int32> c = flag[0]
        s[t] = a[t]
        b[u] = s[63 - u]
        """,
        [shared, ...],
        dtypes={"a, b": "float32", "flag": "int32"},
    ).tag_inames({"t": "l.0", "u": "l.0"})
    source = knl.cuda()
    guarded = source.replace("__syncthreads();", "if (c > 0) {\n        __syncthreads();\n    }")
    assert prove(knl).ok and guarded != source
    assert kinds(prove_source(knl, guarded)) == {"barrier"}


def own_cells_of_one_storage() -> lk.Kernel:
    return (
        lk.make_kernel(
            "{ [b, i, j, p]: 0 <= b < n and 0 <= i, j, p < 16 }",
            "for b\n<int32> t[i] = 2*x[b, i]\n<int32> r[j] = t[j] + 1\ny[b, p] = r[15 - p]\nend",
            [lk.GlobalArg("x, y", "int32", shape="n, 16"), ...],
            assumptions="n >= 0",
        )
        .set_temporary_address_space("t, r", "shared")
        .alias_temporaries("t, r")
        .tag_inames("j: l.0")
    )


def one_value_by_temporaries() -> lk.Kernel:
    text = "for i, j\n<> t = x[j] + 1\n<> u = 2*t\ny[j] = u + t\nend"
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        text,
        dtypes={"x, y": "int32"},
        assumptions="n, m >= 0",
    ).split_iname("i", 2, inner_tag="l.0")


def sums_of_peeled_threads() -> lk.Kernel:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 3 }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, w[j])",
        dtypes={"w": "int32", "y": "int64"},
    )
    return knl.tag_inames("i: l.1").peel_iname("i", first=2).tag_inames("j: l.0")


def loop_that_never_runs() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "for i\n<> s = 0\nfor j\ns = s + x[i, j]\nbreak if s > 6\nend\ny[i] = s\nend",
        [lk.GlobalArg("x", "int32", shape="n, m"), lk.GlobalArg("y", "int32", shape="n"), ...],
        assumptions="n, m >= 0",
    ).fix_parameters(m=0)


def loaded_bounds() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [b]: 0 <= b < nb }", "{ [t]: t0 <= t < t1 }"],
        "for b\n<int32> t0 = ts[b]\n<int32> t1 = ts[b + 1]\nfor t\nres[t] = x[t]\nend\nend",
        [
            lk.GlobalArg("ts", "int32", shape="nb + 1"),
            lk.GlobalArg("x, res", "int32", shape="nt"),
            ...,
        ],
        assumptions="nb >= 0",
    ).assume_increasing("ts")


@pytest.mark.parametrize(
    ("knl", "old", "new"),
    [
        (own_cells_of_one_storage, "r[j] = (unsigned)t[j]", "r[15 - j] = (unsigned)t[j]"),
        (one_value_by_temporaries, "u = 2 * (unsigned)t", "u = i_inner * (unsigned)t"),
        (one_value_by_temporaries, "t = (unsigned)x[j]", "if (i_inner < 1) t = (unsigned)x[j]"),
        (sums_of_peeled_threads, "    acc = 0; // insn_init\n", ""),
        (loop_that_never_runs, "s = 0; // insn\n", "// insn\n"),
        (
            lambda: loaded_bounds().split_iname("t", 3).peel_iname("t_outer", first=1),
            "t_outer < lk_floordiv((long long)t1 + 2, 3)",
            "t_outer <= lk_floordiv((long long)t1 + 2, 3)",
        ),
        (
            lambda: loaded_bounds().affine_map_inames("t", "r", "r = 2*t + nb"),
            "r < ",
            "r <= ",
        ),
    ],
)
def test_right_programs_have_no_finding(knl: Callable[[], lk.Kernel], old: str, new: str) -> None:
    """And those with a small change have one."""
    kernel = knl()
    assert prove(kernel).ok, str(prove(kernel))
    source = re.sub(" +//", " //", str(kernel.cuda()))
    assert old in source, source
    assert prove_source(kernel, source.replace(old, new, 1)).findings


# {{{ bounds that types, operands and earlier statements decide

BINS = {
    "its type": ("uint8", "", "c[i]", 256),
    "a quotient": ("uint8", "", "c[i]//4", 64),
    "a mask": ("int32", "", "c[i] & 15", 16),
    "a remainder": ("int32", "", "c[i] % 16", 16),
    "a shift": ("uint32", "", "c[i] >> 28", 16),
    "a clamp": ("int32", "", "min(max(c[i], 0), 255)", 256),
    "a choice": ("int32", "", "3 if c[i] > 2 else 5", 6),
    "a temporary": ("int32", "<> t = c[i] & 15", "t", 16),
    "one of another": ("int32", "<> u = c[i] % 8\n<> t = u + 8", "t", 16),
    "an array": ("int32", "<> t[i] = c[i] & 15", "t[i]", 16),
    "what a float becomes": ("float32", "<> t = min(max(int32(c[i]), 0), 15)", "t", 16),
    "no overflow": ("uint8", "<> t = c[i]//2 + 120", "t", 248),
    "the largest": ("int32", "<int32> t = max(k, c[k] & 15)", "t", 16),
    "where it is": ("float32", "<> best, <> t = argmax(k, c[k], int32(k))", "t", 64),
}
STEPS = {
    "as it is": lambda k: k.tag_inames("i: l.0, b: l.0"),
    "peeled": lambda k: k.split_iname("i", 16).tag_inames("b: l.0").peel_iname("i_outer", first=1),
    "fetched": lambda k: k.tag_inames("i: l.0").add_prefetch("c", "i", default_tag="l.auto"),
}


def histogram(dtype: str, before: str, index: str, bins: int) -> lk.Kernel:
    h = lk.TemporaryVariable("h", "int32", bins, address_space=lk.AddressSpace.LOCAL)
    return lk.make_kernel(
        f"{{ [i, k, b, v]: 0 <= i, k < 64 and 0 <= b, v < {bins} }}",
        f"h[b] = 0\n{before}\nh[{index}] = h[{index}] + 1 {{atomic}}\nout[v] = h[v]",
        dtypes={"c": dtype, "out": "int32"},
        temporary_variables=[h],
    )


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", BINS)
def test_bins_that_hold_whatever_data_are(name: str, steps: str) -> None:
    if steps != "as it is" and "k" in BINS[name][1]:
        return  # it is not for each of 'i'
    proof = STEPS[steps](histogram(*BINS[name])).prove()
    assert proof.ok, proof


@pytest.mark.parametrize("name", BINS)
def test_one_bin_too_few_is_not_proven(name: str) -> None:
    *rest, bins = BINS[name]
    assert not STEPS["as it is"](histogram(*rest, bins - 1)).prove().ok


@pytest.mark.parametrize(
    ("before", "bins"),
    [("<> t = c[i] + 100", 255), ("<> best, <> t = argmax(k, float32(c[k]), int32(k))", 63)],
)
def test_what_wraps_around_or_may_be_no_element_is_not_proven(before: str, bins: int) -> None:
    assert not STEPS["as it is"](histogram("uint8", before, "t", bins)).prove().ok


# }}}


@pytest.mark.parametrize("place", ["1", "-1"])
def test_a_scalar_in_memory_has_one_cell(place: str) -> None:
    """A bound that an earlier launch loaded is an array of one element in the source."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: 0 <= r < end }"],
        """
        for i
            <> end = p[i]
            ... gbarrier
            z[i] = sum(r, g[r])
        end
        """,
        [lk.GlobalArg("g", shape="m"), ...],
        dtypes={"p": "int32", "g, z": "int64"},
        assumptions="n, m >= 1",
    )
    source = knl.cuda()
    assert not prove_source(knl, source).findings
    assert "bounds" in kinds(prove_source(knl, source.replace("r < end[0]", f"r < end[{place}]")))


@pytest.mark.parametrize("space", ["local", "private"])
@pytest.mark.parametrize(
    ("guard", "is_enough"),
    [
        ("16*(t // m) + x < n", True),
        ("n > x + 16*(t // m)", True),
        ("16*(t // m) + x < n - 1", False),
        ("15*(t // m) + x < n", False),
        ("16*(t // (m + 1)) + x < n", False),
        ("16*(t // m) + x < n and x < 15", False),
        ("16*(t // m) + 15 - x < n", False),
        ("16*(t // m) + 2*x < n", False),
    ],
)
def test_a_copy_under_a_guard_of_its_own_names(space: str, guard: str, is_enough: bool) -> None:
    """What is not affine in two guards must be alike, and the rest of both the same number."""
    knl = lk.make_kernel(
        "{ [t, i, x]: 0 <= t < l and 0 <= i < 16 and 0 <= x < 16 }",
        f"""
        for t
            for x
                s[x] = a[16*(t // m) + x] {{if={guard}}}
            end
            for i
                b[t, i] = s[i] {{if=i + 16*(t // m) < n}}
            end
        end
        """,
        [
            lk.GlobalArg("a", "float32", "n"),
            lk.TemporaryVariable("s", "float32", shape=(16,), address_space=space),
            ...,
        ],
        dtypes={"b": "float32"},
        assumptions="n, m, l >= 1",
    )
    tags = "t: g.0, i: l.0, x: l.0" if space == "local" else "t: g.0"
    assert knl.tag_inames(tags, unchecked=True).prove().ok is is_enough


@pytest.mark.parametrize("new", ["6LL * i + j", "5LL * i - 1 + j", "(j + 1) % 1"])
def test_an_offset_that_is_in_no_row(new: str) -> None:
    """Other lines name a row and a column of the same array."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        "x[i, j] = a[i] {id=first}\nx[i, 4 - j] = a[i] + 1 {id=second,dep=first}",
        dtypes={"a, x": "float32"},
        assumptions="n >= 1",
    ).tag_inames("i:g.0")
    source = knl.cuda()
    assert prove_source(knl, source).ok
    changed = source.replace("x[5LL * i + j]", f"x[{new}]")
    assert changed != source
    proof = prove_source(knl, changed)
    assert proof.findings, str(proof)
