"""Whole kernels to CUDA C: texts that a person reads, widths, memory, determinism."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from pace import timed
from seams import prove_source

import loopkit as lk

MATMUL = "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }"


def matmul() -> lk.Kernel:
    return lk.make_kernel(
        MATMUL,
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        name="matmul",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def tiled(knl: lk.Kernel, size: int = 16) -> lk.Kernel:
    return (
        knl.split_iname("i", size, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", size, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", size)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def register_tiled(knl: lk.Kernel) -> lk.Kernel:
    return (
        knl.split_iname("i", 128, outer_tag="g.1")
        .split_iname("i_inner", 8, outer_tag="l.1", outer_iname="it", inner_iname="ir")
        .split_iname("j", 128, outer_tag="g.0")
        .split_iname("j_inner", 8, outer_tag="l.0", outer_iname="jt", inner_iname="jr")
        .tag_inames("ir:unr, jr:unr")
        .split_iname("k", 8)
        .prioritize_loops("k_outer, k_inner, ir, jr")
        .add_prefetch("a", ["it", "ir", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["jt", "jr", "k_inner"], default_tag="l.auto")
        .add_prefetch("a_s", ["ir"], default_tag="unr", temporary_address_space="private")
        .add_prefetch("b_s", ["jr"], default_tag="unr", temporary_address_space="private")
    )


def shown(knl: lk.Kernel) -> str:
    return f"{knl}\n\n{knl.cuda()}"


def test_plain_matmul(golden):
    golden("lower_matmul_plain.txt", shown(matmul()))


def test_tiled_matmul(golden):
    golden("lower_matmul_tiled.txt", shown(tiled(matmul())))


def test_full_tiles_need_no_guard(golden):
    whole = matmul().assume("n mod 16 = 0 and m mod 16 = 0 and l mod 16 = 0")
    text = shown(tiled(whole))
    assert "if (" not in text
    golden("lower_matmul_full_tiles.txt", text)


def test_register_tiled_matmul(golden):
    golden("lower_matmul_registers.txt", shown(register_tiled(matmul())))


def test_barriers_are_outside_of_divergent_control_flow():
    for line in register_tiled(matmul()).cuda().splitlines():
        if "__syncthreads" in line:
            assert line.index("__syncthreads") <= 8


def test_the_same_bytes_under_every_hash_seed():
    script = (
        "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
        "from test_lower import *\n"
        "print(hashlib.sha256(shown(register_tiled(matmul())).encode()).hexdigest())\n"
        "print(register_tiled(matmul()).key)\n"
    )
    here = os.path.dirname(__file__)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, here, os.path.dirname(here)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1


def copy_kernel(assume: str, **dtypes: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = a[i, j]",
        dtypes={"a": "float32", "b": "float32", **dtypes},
        assumptions=assume,
    )


def test_wide_indices_where_32_bits_do_not_suffice():
    wide = copy_kernel("1 <= n <= 65536 and 1 <= m <= 65536").cuda()
    assert "b[(long long)m * i + j] = a[(long long)m * i + j];" in wide


def test_narrow_indices_where_32_bits_do():
    narrow = copy_kernel("1 <= n <= 16384 and 1 <= m <= 16384").cuda()
    assert "b[m * i + j] = a[m * i + j];" in narrow
    assert "long long" not in narrow


def test_a_vector_never_needs_wide_indices():
    knl = lk.make_kernel("{[i]: 0 <= i < n}", "b[i] = a[i]", dtypes={"a, b": "float32"})
    assert "long long" not in knl.split_iname("i", 256, outer_tag="g.0", inner_tag="l.0").cuda()


def test_sizes_of_64_bits():
    source = copy_kernel("n, m >= 1", n="int64", m="int64").cuda()
    assert "long long const n" in source
    assert "for (long long i = 0; i < n; ++i)" in source


def staged(rows: int) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 256 }",
        "b[i, j] = a[i, 255 - j]",
        dtypes={"a, b": "float32"},
    )
    return (
        knl.split_iname("i", rows, outer_tag="g.0")
        .tag_inames("j:l.0")
        .add_prefetch("a", ["i_inner", "j"], default_tag="l.auto")
    )


def test_shared_memory_beyond_48_kib_is_dynamic():
    program = staged(64).program()
    assert program.static_shared == 0
    assert program.dynamic_shared == 64 * 256 * 4
    assert "extern __shared__" in program.source


def test_300_kib_of_shared_memory_are_refused():
    with pytest.raises(lk.ResourceError, match=r"300\.0 KiB of shared memory.*a_s 300x256"):
        staged(300).cuda()


def test_const_and_restrict_where_true():
    knl = lk.make_kernel(
        "{[i]: 0 <= i < n}", "y[i] = a*x[i] + y[i]", dtypes={"x, y": "float32", "a": "float32"}
    )
    source = knl.cuda()
    assert "float const *__restrict__ x" in source
    assert "float *__restrict__ y" in source


def test_what_threads_exchange_is_not_restricted():
    """The compiler would keep what a thread has read of ``u`` across the barrier."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }"],
        """
        for i
            u[i + 1] = a[i]
            for k
                u[k] = g[i] - u[k]
            end
        end
        """,
        dtypes={"a, g, u": "int32"},
        assumptions="n >= 2",
    ).tag_inames({"k": "l.0"})
    source = knl.cuda()
    assert "__syncwarp();" in source and "int *u" in source
    assert "int const *__restrict__ a" in source
    assert prove_source(knl, source).ok
    found = prove_source(knl, source.replace("int *u", "int *__restrict__ u"))
    assert any("'u' is declared __restrict__" in f.what for f in found.findings)


def test_lines_know_their_statements():
    program = tiled(matmul()).program()
    lines = program.source.splitlines()
    found = {o.statement: (o.step, line) for o, line in zip(program.lines, lines, strict=True)}
    assert found["fetch_a"][0] == "add_prefetch('a')"
    assert "a_s[" in found["fetch_a"][1]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_every_architecture_compiles(arch):
    used = register_tiled(matmul()).resources(arch)
    assert used.registers > 64
    assert used.spill_stores == used.spill_loads == 0


def test_bounds_divide_what_loops_pass_beside_the_domain():
    """Where a loop passes more than the domain, the loops inside of it must still be empty."""
    knl = (
        lk.make_kernel("{ [i]: 0 <= i < n }", "v[i] = i", dtypes={"v": "int32"})
        .assume("n >= 1")
        .split_iname("i", 2, inner_tag="l.0")
        .map_domain("{ [i_outer] -> [ii]: ii = i_outer + -2 }")
        .split_iname("ii", 3, slabs=(0, 1))
        .peel_iname("ii_outer")
        .map_domain(
            "{ [ii_inner_last, ii_outer_last] -> [ii, ii_outer_last']: "
            "ii = ii_inner_last + ii_outer_last and ii_outer_last' = ii_outer_last }"
        )
    )
    # For n = 1 the loop over ii passes 1, where the one inside of it would begin at (-2) / 4.
    assert "lk_floordiv(n - i_inner_last - 2 * ii - 1, 4)" in knl.cuda()
    run = knl.executor("host", sanitize=True)
    for n in range(1, 15):
        assert run(n=n).tolist() == list(range(n))


def test_strided_loops_split_by_any_length():
    """What bounds the outer loop is known through a quotient only."""
    knl = lk.make_kernel(
        "{ [j]: 0 <= j < n and j mod 3 = 1 }", "u[j] = j", dtypes={"u": "int32"}
    ).split_iname("j", 4)
    source = knl.cuda()
    assert "for (int j_outer = 0; j_outer < (n + 3) / 4; ++j_outer)" in source
    assert "for (int j_inner = lk_mod(-j_outer + 1, 3);" in source
    run = knl.executor("host", sanitize=True)
    for n in (0, 1, 2, 9, 14):
        found = run(n=n)
        assert found[1::3].tolist() == list(range(1, n, 3))


def test_an_axis_without_values_has_one_block_for_the_others():
    knl = (
        lk.make_kernel(
            "{ [i, k]: 0 <= i < 5 and 0 <= k < n }",
            "u[i] = 2*i\nx[k] = 1",
            dtypes={"u, x": "int32"},
            assumptions="n >= 2",
        )
        .split_iname("k", 40, slabs=(1, 0))
        .peel_iname("k_outer")
        .duplicate_inames("k_inner", within="id:insn_0", tags={"k_inner": "g.0"})
    )
    for fixed in (knl, knl.fix_parameters(n=13)):
        sizes = {"n": 13} if fixed is knl else {}
        assert fixed.launch_config(**sizes).grid == (1, 1, 1)
        u, x = fixed.executor("host")(**sizes)
        assert u.tolist() == [0, 2, 4, 6, 8]
        assert x.tolist() == [1] * 13
    assert knl.launch_config(n=41).grid == (1, 1, 1)
    assert knl.launch_config(n=10**6).grid == (40, 1, 1)


def test_guards_of_loops_use_names_from_outside():
    """A guard that the loop's own iname would make shorter is said without it."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        u[i] = 1 {if=i < n - 1}
        u[i] = 2 {if=not i < n - 1, id=last}
        """,
        dtypes={"u": "int32"},
        assumptions="n >= 1",
    ).split_iname("i", 2, inner_tag="l.0", slabs=(1, 1), within="id:last")
    assert "    if (i_inner_last + 2 < n)\n        for (int i_outer_last" in knl.cuda()
    for n in range(1, 8):
        assert knl.executor("host")(n=n).tolist() == [1] * (n - 1) + [2]


def test_loops_whose_parts_are_bounded_by_threads_of_their_own():
    """Two statements around a barrier bound the loop by one thread index each, of two names."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n and i mod 2 = 0 }",
        "z[2*i, i] = b[i] + i",
        dtypes={"b, z": "int32"},
        assumptions="n >= 1",
    )
    new = (
        knl.split_iname("i", 2, inner_tag="l.1")
        .split_iname("i_outer", 4, inner_tag="l.0")
        .buffer_array("z", ["i_inner", "i_outer_inner"])
        .split_iname("i_outer_outer", 3, slabs=(1, 1))
    )
    for n in (1, 2, 24, 25, 51, 74):
        b = np.arange(2 * ((n - 1) // 2) + 1, dtype=np.int32)
        shape = (4 * ((n - 1) // 2) + 1, 2 * ((n - 1) // 2) + 1)
        expected, found = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        knl.executor("reference")(n=n, b=b, z=expected)
        new.executor("host", sanitize=True)(n=n, b=b, z=found)
        assert (found == expected).all()


def test_grids_of_inames_inside_several_others():
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 3 }", "{ [j]: 0 <= 2*j <= i }"], "y[j, i] = i", dtypes={"y": "int32"}
    )
    knl = knl.split_iname("j", 3, inner_tag="l.1", outer_tag="g.1").split_iname("i", 4)
    assert knl.launch_config().grid == (1, 1, 1)
    assert knl.launch_config().block == (1, 2, 1)


def test_many_bounds_on_one_axis() -> None:
    """A grid as long as the least of twelve sizes: no case for each order of them."""
    bounds = " and ".join(f"i < n{k}" for k in range(12))
    knl = lk.make_kernel(
        f"{{ [i]: 0 <= i and {bounds} }}",
        "y[i] = 2*i",
        [lk.GlobalArg("y", "int32", shape="n0"), ...],
    ).split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    program, taken = timed(knl.program)
    assert taken < 3.0
    assert len(program.grid[0].children) == 12
    assert all(f"< n{k}" in program.source for k in range(12))


def test_a_staged_box_lowers_quickly() -> None:
    """Boxes laid over threads by division and remainder stand behind loops of few conditions."""
    shifts = ("0,0,0", "-1,0,0", "1,0,0", "0,-1,0", "0,1,0", "0,0,-1", "0,0,1")
    reads = [tuple(int(s) + 1 for s in shift.split(",")) for shift in shifts]
    terms = " + ".join(f"u[z + {a}, y + {b}, x + {c}]" for a, b, c in reads)
    knl = (
        lk.make_kernel(
            "{ [z, y, x]: 0 <= z, y, x < n }",
            f"v[z, y, x] = {terms}",
            [lk.GlobalArg("u", "float32", shape="n + 2, n + 2, n + 2"), ...],
            dtypes={"v": "float32"},
            assumptions="n >= 1",
        )
        .split_iname("y", 8, outer_tag="g.1", inner_tag="l.1")
        .split_iname("x", 32, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("u", ["y_inner", "x_inner"])
    )
    source, taken = timed(knl.cuda)
    assert taken < 2.0
    assert "for (int u_round = 0; u_round < 4; ++u_round)" in source


def test_lowering_that_isl_does_not_end_is_a_named_error(monkeypatch: pytest.MonkeyPatch) -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = i").split_iname("i", 16)
    monkeypatch.setattr("loopkit._budget.LOWERING", 20)
    with pytest.raises(lk.UndecidedError, match="within 20 operations"):
        knl.cuda()
    monkeypatch.undo()
    assert "i_outer" in knl.cuda()


@pytest.mark.parametrize("domain", ["0 <= i < n and i mod 3 = 1", "0 <= i < 2 or 4 <= i < n"])
def test_a_grid_that_takes_too_long_to_find_is_longer(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopkit._budget.GRID", 1)
    plain = lk.make_kernel(
        f"{{ [i]: {domain} }}",
        "y[i] = i",
        [lk.GlobalArg("y", "int32", shape="n + 2"), ...],
        assumptions="n >= 1",
    )
    knl = plain.split_iname("i", 5, outer_tag="g.0", inner_tag="l.0")
    assert knl.prove().ok
    for n in (1, 4, 5, 17):
        made, meant = (np.full(n + 2, -1, np.int32) for _ in range(2))
        knl.executor("host")(y=made, n=n)
        plain.executor("reference")(y=meant, n=n)
        np.testing.assert_array_equal(made, meant)


@pytest.mark.host
@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_shared_accumulator_takes_all_values_of_an_ilp_iname(space: str) -> None:
    text = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "for i\n<> t = sum(j, x[i, j])\ny[i] = t\nend",
        dtypes={"x, y": "int32"},
    )
    knl = text.set_temporary_address_space("acc", space).tag_inames("j: ilp")
    x = np.arange(12, dtype="i4").reshape(3, 4)
    assert knl.prove().ok and knl.executor("host")(x=x).tolist() == x.sum(1).tolist()


@pytest.mark.host
@pytest.mark.parametrize(("length", "slabs"), [(1, (1, 0)), (2, (0, 1)), (4, (1, 1))])
def test_slabs_of_an_ilp_iname_have_copies_of_their_own(
    length: int, slabs: tuple[int, int]
) -> None:
    text = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\n<> t = 2*x[i]\ny[i] = t + 1\nend",
        dtypes={"x, y": "int32"},
        assumptions="n >= 3",
    )
    knl = text.split_iname("i", length, inner_tag="ilp", slabs=slabs)
    x = np.arange(9, dtype="i4")
    assert knl.prove().ok and knl.executor("host")(x=x).tolist() == (2 * x + 1).tolist()


@pytest.mark.host
def test_a_loop_of_three_iterations_wherever_it_begins_is_unrolled() -> None:
    text = lk.make_kernel(
        ["{ [h]: 0 <= h < m }", "{ [i]: h <= i < h + 3 }"],
        "<> t = 2*x[i]\ny[h, i] = t*t",
        dtypes={"x, y": "int32"},
        assumptions="m >= 1",
    )
    knl = text.tag_inames("i: unr")
    assert (
        "#pragma unroll\n        for (int i = h; i < h + 3; ++i)" in knl.cuda() and knl.prove().ok
    )
    with pytest.raises(lk.IllegalTransformError, match="first value depends on 'h'"):
        text.tag_inames("i: ilp")


def test_subscripts_as_they_were_written_say_where_a_temporary_lives() -> None:
    """Where arguments of a rule cancel in one, and the rest of the line uses rules or not."""
    for value in ("a[i]", "f(a[i])"):
        knl = lk.make_kernel(
            "{ [i, j, m]: 0 <= i < n and 0 <= j, m < 4 }",
            f"""
            f(x) := x
            g(x, y) := x + y - y
            for i
                <> t[g(0, m)] = {value} {{if=m == 0}}
                o[i, j] = t[0] + b[j]
            end
            """,
            dtypes={"a, b, o": "int32"},
        ).tag_inames({"i": "g.0", "j": "l.0", "m": "l.0"})
        assert knl.prove().ok and "__shared__" in knl.cuda()
