"""Kernels of several launches: their text, order, checks, code, runs and proofs."""

from __future__ import annotations

import itertools
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from _run_stand_in import Cpu
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_kernels import (
    eliminate,
    eliminated,
    every_third_or_fifth,
    every_third_or_fifth_in_blocks,
    full_sum,
    in_turn,
    jacobi,
    normalise,
    normalised,
    now_and_then,
    now_and_then_in_blocks,
    summed,
    swept,
    through_scalar,
)
from seams import CudaExecutor, LaunchBarrier, Loop, build, entries_of, prove_program

import loopkit as lk

DOMAIN = "{ [i, j, t]: 0 <= i, j < n and 0 <= t < m }"
ORDERS = ("ascending", "descending", "random")


def made(text: str, **more) -> lk.Kernel:
    return lk.make_kernel(DOMAIN, text, dtypes={"x": "int32"}, assumptions="n, m >= 0", **more)


def barriers(knl: lk.Kernel) -> list[tuple[str, tuple[str, ...]]]:
    """The barriers of a kernel, each with the loops around it."""
    return [
        (leaf.id, tuple(iname for iname, _ in path))
        for leaf, path in entries_of(knl.tree)
        if isinstance(leaf, LaunchBarrier)
    ]


# {{{ text and tree


def test_a_barrier_parts_the_tree():
    knl = made("<> t_[i] = x[i]\n... gbarrier {id=here, tags=a:b}\ny[j] = t_[j]")
    assert barriers(knl) == [("here", ())]
    first, barrier, second = knl.tree
    assert isinstance(first, Loop) and isinstance(second, Loop)
    assert barrier == LaunchBarrier("here", frozenset(("a", "b")))
    assert build(entries_of(knl.tree)) == knl.tree


def test_a_barrier_parts_a_loop_that_both_sides_share():
    knl = made("<> t_[i] = x[i]\n... gbarrier\ny[i] = t_[i]")
    assert [type(node) for node in knl.tree] == [Loop, LaunchBarrier, Loop]


def test_a_barrier_stands_in_the_loops_of_its_blocks():
    knl = made("for t\nx[i] = x[i] + t\n... gbarrier\nend")
    assert barriers(knl) == [("gbarrier", ("t",))]
    also = made("x[i] = x[i] + t {inames=i:t}\n... gbarrier {inames=t}")
    assert barriers(also) == [("gbarrier", ("t",))]


def test_dependencies_move_statements_across_a_barrier():
    text = "y[i] = x[i] {id=a, dep=b}\n... gbarrier {id=gb}\nz[j] = x[j] {id=b}"
    knl = made(text)
    assert [s.id for s in knl.statements] == ["b", "a"]
    later = made("... gbarrier {id=gb, dep=a}\ny[i] = x[i] {id=a}\nz[j] = x[j] {id=b}")
    assert [leaf if isinstance(leaf, str) else leaf.id for leaf, _ in entries_of(later.tree)] == [
        "a",
        "gb",
        "b",
    ]


def test_barriers_within_a_block_are_read_and_change_nothing():
    plain = made("<> t_[i] = x[i]\ny[j] = t_[j]")
    also = made("<> t_[i] = x[i]\n... lbarrier {id=lb, mem_kind=local}\ny[j] = t_[j] {dep=lb}")
    assert plain.tree == also.tree


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("if x[0] > 3\n... gbarrier\nend\nx[i] = 1", "it cannot know 'x', which is neither a"),
        ("... gbarrier {if=i > 3}\nx[i] = 1", "it cannot know 'i'"),
        ("<> s = x[0]\nif s > n\n... gbarrier\nend\nx[i] = 1", "it cannot know 's'"),
        ("for t\nif n > 3 and x[t] > 0\n... gbarrier\nend\nend\nx[i] = 1", "cannot know 'x'"),
        ("... gbarriers\nx[i] = 1", "expected 'gbarrier', 'lbarrier' or 'nop'"),
        ("... gbarrier now\nx[i] = 1", "only options may follow '... gbarrier'"),
        ("x[i] = 1 {id=a}\n... gbarrier {id=a}", "there are two instructions 'a'"),
        ("for k\n... gbarrier\nend\nx[i] = 1", "'k'"),
    ],
)
def test_barriers_that_no_text_can_have(text, what):
    with pytest.raises(lk.LoopkitError) as caught:
        made(text)
    assert what in str(caught.value)


def test_loops_around_launches_have_bounds_of_sizes():
    with pytest.raises(lk.LoopkitError) as caught:
        lk.make_kernel(
            ["{ [i]: 0 <= i < n }", "[end] -> { [t]: 0 <= t < end }"],
            "<> end = x[0]\nfor t\n... gbarrier\ny[i] = y[i] + 1\nend",
            dtypes={"x": "int32", "y": "int32"},
        )
    assert "its bounds cannot depend on 'end'" in str(caught.value)


def test_kernels_with_barriers_are_values():
    knl = swept()
    assert pickle.loads(pickle.dumps(knl)) == knl
    assert knl.key == swept().key
    assert knl.key != lk.make_kernel("{ [i]: 0 <= i < n }", "x[i] = 1", dtypes={"x": "int8"}).key
    other = in_turn(", tags=a")
    assert in_turn() != other and in_turn().key != other.key
    assert lk.replay(jacobi(), knl.history) == knl


# }}}
# {{{ what is shown


@pytest.mark.parametrize(
    "make",
    [
        *(summed, normalised, swept, eliminated),
        *(now_and_then_in_blocks, every_third_or_fifth_in_blocks),
    ],
)
def test_nest_and_source(golden, make):
    knl = make()
    golden(f"launches_{knl.name}.txt", f"{knl}\n\n{knl.cuda()}")


def test_launch_config_shows_all():
    assert [(c.name, c.grid, c.block) for c in summed().launch_config(m=9)] == [
        ("full_sum", (3, 1, 1), (4, 1, 1)),
        ("full_sum_2", (1, 1, 1), (1, 1, 1)),
    ]
    assert [c.grid[0] for c in swept().launch_config(steps=2, n=100)] == [4, 2, 4, 2]
    assert [c.grid for c in eliminated().launch_config(n=4)] == [(1, 3, 1)] * 3
    assert [c.name for c in summed().launch_config(m=0)] == ["full_sum_2"]


def test_the_call_tests_conditions_around_launches():
    """What all of a launch has as a condition, no thread asks again."""
    knl = now_and_then_in_blocks()
    names = ["now_and_then", *(f"now_and_then_{n}" for n in (2, 3))]
    at = [c.name for c in knl.launch_config(n=9, steps=5)]
    assert at == [names[0], *names, *names[:1] * 2, *names]
    assert {c.name for c in knl.launch_config(n=4, steps=9)} == {names[0]}
    assert "%" not in knl.cuda().split('extern "C"', 1)[1]
    (always, take, give) = knl.launches()
    assert "t" in always.sizes and "t" not in take.sizes and not give.statements[0].predicates
    other = every_third_or_fifth_in_blocks().launch_config(n=9, steps=11)
    assert len(other) == 2 * 6


def test_a_condition_of_some_statements_stays_with_them():
    knl = made("y[i] = 1\n... gbarrier\nif m > 3\nx[i] = 1\nend\nx[j] = x[j] + 1")
    assert len(knl.launch_config(n=3, m=0)) == 2 and knl.prove().ok
    (condition,) = knl.launches()[1].statements[0].predicates
    assert str(condition) == "m > 3"


def test_launches_are_kernels_of_their_own():
    first, second = normalised().launches()
    assert (first.name, second.name) == ("normalise", "normalise_2")
    assert [a.name for a in second.args] == ["n", "m", "x", "y", "top"]
    assert second.costs(n=64, m=32).grid == (2, 64, 1)
    (step,) = eliminated().launches()
    assert "k" in step.sizes


# }}}
# {{{ what is proven


def test_blocks_of_different_launches_are_ordered():
    tagged = in_turn().tag_inames("i: g.0, j: g.0")
    assert [s.verdict for s in tagged.history] == ["proven"]
    without = made("<> s[i] = x[i] {id=first}\ny[j] = s[n - 1 - j] {id=second}")
    with pytest.raises(lk.RaceError) as caught:
        without.tag_inames("i: g.0, j: g.0")
    assert "nothing orders blocks within one launch" in str(caught.value)


def test_that_launches_order_statements_says_nothing_of_others_in_the_same_loops() -> None:
    """What saves a temporary in one launch does so in the next, whose blocks have all loaded it."""
    knl = lk.make_kernel(
        "{ [i, p]: 0 <= i < n and 0 <= p < 4 }",
        """
        for i
            <> t = b[i]                      {id=first}
            t = t + b[i]                     {id=again}
            x[i, p] = t                      {id=out}
            u[i] = t                         {id=last}
        end
        """,
        dtypes={"b, x, u": "int32"},
    )
    knl = knl.add_barrier("id:first", "id:again")
    knl = knl.save_and_reload_temporaries("id:out", "id:last")
    with pytest.raises(lk.RaceError, match="nothing orders blocks within one launch"):
        knl.tag_inames("p: g.0")
    assert knl.tag_inames("p: l.0").prove().ok


def test_a_loop_without_an_end_of_launches_orders_nothing():
    """One barrier before a loop does not order the loop's iterations."""
    text = "... gbarrier\nfor t\nx[i] = x[n - 1 - i] + t {id=s}\nend"
    with pytest.raises(lk.RaceError):
        made(text).tag_inames("i: g.0")


def test_iterations_around_launches_are_ordered():
    knl = lk.make_kernel(
        "{ [t, i]: 0 <= t < m and 0 <= i < n }",
        "for t\n... gbarrier\nx[t + 1, i] = x[t, n - 1 - i] {id=s}\nend",
        dtypes={"x": "int32"},
        assumptions="n, m >= 1",
    )
    assert knl.tag_inames("i: g.0").history[-1].verdict == "proven"
    with pytest.raises(lk.RaceError):
        knl.tag_inames("t: g.0, i: l.0")


@pytest.mark.parametrize("space", ["private", "local"])
def test_private_and_shared_values_do_not_outlive_a_launch(space):
    knl = in_turn()
    with pytest.raises(lk.IllegalTransformError) as caught:
        knl.set_temporary_address_space("t", space)
    assert "each launch has its own 't'" in str(caught.value)
    witness = caught.value.witness
    assert witness is not None and witness.array == "t"
    assert witness.source.statement == "first" and witness.sink.statement == "second"


def test_private_values_do_not_outlive_an_iteration_around_launches():
    knl = made("<> s = 0 {id=start}\nfor t\ns = s + t {id=add}\n... gbarrier\nend\nx[0] = s")
    with pytest.raises(lk.IllegalTransformError, match="each launch has its own 's'"):
        knl.set_temporary_address_space("s", "private")


def test_temporaries_within_launches_stay_in_registers():
    knl = made(
        "for i\n<> a = x[i]\ny[i] = a + 1\nend\n... gbarrier\nfor j\n<> b = y[j]\nz[j] = b\nend"
    )
    assert "global" not in str(knl)
    assert knl.prove().ok


def test_axes_of_launches_have_lengths_of_their_own():
    knl = swept()
    assert [p.block for p in knl.program().parts] == [(32, 1, 1), (64, 1, 1)]
    one = made("x[i] = 1\n... gbarrier\ny[j] = 2\nz[t] = 3")
    assert one.tag_inames("i: g.0, j: g.0, t: g.0").prove().ok
    assert one.tag_inames("i: g.0, j: g.0").prove().ok


def test_loops_around_launches_have_no_tags():
    fixed = jacobi().fix_parameters(steps=4)
    with pytest.raises(lk.LoopkitError, match=r"contains launches.*; unroll\('t'\) writes"):
        fixed.tag_inames("t: unr")
    assert len(fixed.unroll("t").program().parts) == 5
    with pytest.raises(lk.RaceError):
        jacobi().tag_inames("t: g.0")


def test_barriers_follow_their_loops():
    assert barriers(swept().split_iname("t", 4)) == [("gbarrier", ("t_outer", "t_inner"))]
    assert barriers(swept().rename_iname("t", "time")) == [("gbarrier", ("time",))]
    assert barriers(eliminated().untag_inames("j")) == [("gbarrier", ("k",))]


def test_a_staged_copy_belongs_to_one_launch():
    knl = normalised()
    both = made("y[i] = x[0] {id=a}\n... gbarrier\nz[j] = x[0] {id=b}")
    assert "global" in str(both.add_prefetch("x", [], default_tag=None))
    with pytest.raises(lk.IllegalTransformError, match="would read x_r, which nothing has"):
        both.add_prefetch("x", [], default_tag=None, temporary_address_space="private")
    staged = knl.add_prefetch("top", [], within="id:scale", temporary_address_space="private")
    assert staged.prove().ok


# }}}
# {{{ steps


def test_a_barrier_is_added_and_removed():
    plain = made("<> s[i] = x[i] {id=first}\ny[j] = s[n - 1 - j] {id=second}")
    with pytest.raises(lk.RaceError) as caught:
        plain.tag_inames("i: g.0, j: g.0")
    (advice,) = [line for line in caught.value.suggestions if "launches" in line]
    assert advice == (
        "legal in two launches: .add_barrier(insn_before='id:first', insn_after='id:second')"
        ".tag_inames('i: g.0, j: g.0')"
    )
    parted = plain.add_barrier("id:first", "id:second", "end", "here")
    assert barriers(parted) == [("end", ())] and "==== launch 2" in str(parted)
    tagged = parted.tag_inames("i: g.0, j: g.0")
    assert [s.verdict for s in tagged.history] == ["proven", "proven"]
    assert tagged.prove().ok
    with pytest.raises(lk.RaceError, match="nothing orders blocks within one launch"):
        tagged.remove_barrier("end")
    assert parted.remove_barrier("end").tree == plain.tree
    assert lk.replay(plain, tagged.history) == tagged


def test_a_barrier_stands_where_its_arguments_say():
    text = (
        "for t\nx[i] = x[i] + t {id=a}\ny[j] = x[j] + y[j] {id=b}\nend\nz[0] = sum(i, y[i]) {id=c}"
    )
    knl = made(text)
    assert barriers(knl.add_barrier("id:a", "id:b")) == [("gbarrier", ("t",))]
    assert barriers(knl.add_barrier("id:b", "id:c")) == [("gbarrier", ())]
    assert barriers(knl.add_barrier("id:b", within_inames="t")) == [("gbarrier", ("t",))]
    last = knl.add_barrier(insn_after="id:c")
    ids = [leaf if isinstance(leaf, str) else "====" for leaf, _ in entries_of(last.tree)]
    assert ids == ["a", "b", "====", "c_init", "c_update", "c"]
    again = last.add_barrier(insn_before="id:a", insn_after="id:b")
    assert [b for b, _ in barriers(again)] == ["gbarrier_0", "gbarrier"]


def test_a_loop_around_launches_is_none_without_its_barrier():
    knl = eliminate().split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")
    with pytest.raises(lk.RaceError, match="nothing orders blocks within one launch"):
        knl.remove_barrier("gbarrier")


def test_blocks_do_not_share_one_value():
    knl = through_scalar().tag_inames("i: g.0")
    with pytest.raises(lk.RaceError):
        knl.set_temporary_address_space("s", "global")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "needs a statement before or after it"),
        ({"insn_before": "id:second", "insn_after": "id:first"}, "'first' comes before 'second'"),
        ({"insn_before": "id:first", "synchronization_kind": "local"}, "there is none to add"),
        ({"insn_before": "id:first", "synchronization_kind": "all"}, "is 'global' or 'local'"),
        ({"insn_before": "id:first", "within_inames": "j"}, "no loops over j are around"),
        ({"insn_before": "id:first", "within_inames": "k"}, "there is no iname 'k'"),
        ({"insn_before": "id:nobody"}, "no statement matches"),
    ],
)
def test_barriers_that_cannot_be_added(arguments, what):
    plain = made("<> s[i] = x[i] {id=first}\ny[j] = s[j] {id=second}")
    with pytest.raises(lk.LoopkitError) as caught:
        plain.add_barrier(**arguments)
    assert what in str(caught.value)


def test_a_barrier_parts_no_loop_that_needs_its_order():
    knl = made("<> s = x[i] {id=first}\ny[i] = s {id=second}")
    with pytest.raises(lk.IllegalTransformError, match="would overwrite s before"):
        knl.add_barrier("id:first", "id:second", within_inames=())
    assert knl.add_barrier("id:first", "id:second").prove().ok


# }}}
# {{{ what runs

CASES = {
    "full_sum": (full_sum, summed, [{"m": m} for m in (0, 1, 4, 5, 9)]),
    "normalise": (normalise, normalised, [{"n": n, "m": m} for n, m in ((1, 1), (33, 17), (0, 5))]),
    "jacobi": (jacobi, swept, [{"n": n, "steps": s} for n, s in ((3, 0), (3, 1), (70, 3))]),
    "eliminate": (eliminate, eliminated, [{"n": n} for n in (1, 2, 9, 12)]),
    "now_and_then": (
        now_and_then,
        now_and_then_in_blocks,
        [{"n": n, "steps": s} for n, s in ((1, 5), (4, 3), (5, 2), (37, 8), (9, 0))],
    ),
    "every_third_or_fifth": (
        every_third_or_fifth,
        every_third_or_fifth_in_blocks,
        [{"n": n, "steps": s} for n, s in ((0, 4), (1, 1), (21, 11))],
    ),
}


def data(knl: lk.Kernel, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    found = {}
    for a in knl.args:
        if isinstance(a, lk.ArrayArg) and a.is_input:
            shape = [eval(str(e), dict(sizes)) for e in a.shape]
            found[a.name] = rng.integers(-8, 8, shape).astype(a.dtype)
    return found


@pytest.mark.host
@pytest.mark.parametrize(("name", "order"), [*itertools.product(CASES, ORDERS)])
def test_runs_are_right_at_ragged_sizes(name, order):
    plain, scheduled, cases = CASES[name]
    for sizes in cases:
        arrays = data(plain(), sizes)
        due = plain().executor("reference")(**{n: a.copy() for n, a in arrays.items()}, **sizes)
        for knl in (plain(), scheduled()):
            run = knl.executor("host", order=order, seed=3)
            found = run(**{n: a.copy() for n, a in arrays.items()}, **sizes)
            for one, other in zip(np.atleast_1d(due), np.atleast_1d(found), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.host
def test_bound_calls_run_all_launches():
    knl = swept().executor("host")
    u, v = np.zeros(20, "float32"), np.arange(20, dtype="float32") ** 2
    bound = knl.bind(u=u, v=v, steps=2)
    due = [a.copy() for a in (u, v)]
    bound()
    swept().executor("reference")(u=due[0], v=due[1], steps=2)
    np.testing.assert_allclose(u, due[0], rtol=1e-6)
    np.testing.assert_allclose(v, due[1], rtol=1e-6)


@pytest.mark.host
def test_arrays_with_strides():
    x = np.random.default_rng(1).random((17, 60), dtype="float32")[:, ::2]
    y = normalised().executor("host")(x=x)
    np.testing.assert_allclose(y, x / np.abs(x).max(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.host
@pytest.mark.parametrize("name", CASES)
def test_calls_of_the_driver(name, monkeypatch):
    """The executor for GPUs launches all, in order, with memory of its own between them."""
    cpu = Cpu()
    cpu.install(monkeypatch)
    plain, scheduled, cases = CASES[name]
    knl = scheduled()
    run = CudaExecutor(knl.program)
    for sizes in cases:
        arrays = data(plain(), sizes)
        due = plain().executor("reference")(**{n: a.copy() for n, a in arrays.items()}, **sizes)
        cpu.calls.clear()
        found = run(**{n: a.copy() for n, a in arrays.items()}, **sizes)
        np.testing.assert_allclose(found, due, rtol=1e-6)
        assert cpu.calls.count("launch") == len(knl.launch_config(**sizes))
        assert cpu.is_empty


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_one_binary_holds_all_launches(arch):
    knl = swept()
    ptx = knl.ptx(arch)
    assert ".entry jacobi(" in ptx and ".entry jacobi_2(" in ptx
    assert [r.threads for r in knl.resources(arch)] == [32, 64]


# }}}
# {{{ proofs of programs


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("make", [*(c[0] for c in CASES.values()), *(c[1] for c in CASES.values())])
def test_programs_are_proven(make, text):
    proof = make().prove(text=text)
    assert proof.ok, proof


def test_programs_with_other_launches_are_refuted():
    """Launches that are missing, run twice or in another order are findings, not crashes."""
    program = (knl := full_sum()).program()
    first, second = program.launches
    for launches in ((first,), (second,), (second, first), (first, first, second), ()):
        assert prove_program(knl, replace(program, launches=launches)).findings


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
def test_any_lengths(first, second, steps):
    knl = (
        jacobi()
        .split_iname("i", first, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", second, outer_tag="g.0", inner_tag="l.0")
        .split_iname("t", steps)
    )
    assert knl.prove().ok


# }}}


def test_a_bound_that_an_earlier_launch_loaded() -> None:
    """A loop's bound is read where the loop runs: in the next launch nobody has it."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        """
        for i
            <> lo = ptr[i]              {id=low}
            <> hi = ptr[i + 1]          {id=high}
            w[i] = sum(r, g[r])
        end
        """,
        [lk.GlobalArg("g", "float32", shape="p"), ...],
        dtypes={"ptr": "int32", "w": "float32"},
        assumptions="n, p >= 1",
    ).split_iname("i", 3, inner_tag="l.0", outer_tag="g.0")
    with pytest.raises(lk.RaceError, match="both write lo"):
        knl.add_barrier("id:low", "id:high")


def test_peeled_iterations_stay_in_their_launches():
    """A loop around launches is copied with its barriers; what a barrier parts stays parted."""
    knl = made("for t\nx[i] = x[i] + t\n... gbarrier\ny[i] = y[i] + x[n - 1 - i]\nend").assume(
        "m >= 1"
    )
    assert [b for b, _ in barriers(knl.peel_iname("t", last=1))] == ["gbarrier", "gbarrier_last"]
    blocks = knl.tag_inames({"i": "g.0"}).peel_iname("i", first=1)
    assert barriers(blocks) == [("gbarrier", ("t",))]
    x, y = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)
    expected = knl.executor("reference")(x=x.copy(), y=y.copy(), m=3)
    for other, order in itertools.product((knl.peel_iname("t", last=1), blocks), ORDERS):
        found = other.executor("host", order=order)(x=x.copy(), y=y.copy(), m=3)
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_value_that_was_loaded_again_does_not_pass_on_to_a_further_launch() -> None:
    """A temporary that several launches have, each its own, is one more with one launch more."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = x[i]  {id=load}
            z[i] = 1     {id=other}
            y[i] = t     {id=store}
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    ).save_and_reload_temporaries("id:load", "id:other")
    with pytest.raises(lk.IllegalTransformError, match="each launch has its own 't'") as caught:
        knl.add_barrier("id:reload_t", "id:store")
    assert caught.value.witness is not None and caught.value.witness.array == "t"
    assert not knl.add_barrier("id:reload_t", "id:store", unchecked=True).prove().ok
    assert knl.add_barrier("id:other", "id:reload_t").prove().ok


@pytest.mark.host
def test_threads_may_bound_a_loop_around_launches():
    """What holds of a loop for some threads alone, the launches test, not the call."""
    knl = lk.make_kernel(
        ["{ [j]: 0 <= j < m }", "{ [k]: 0 <= k < p and k <= 2*j + 1 }"],
        """
        for j, k
            f[j, k] = k - j  {id=one}
            ... gbarrier
            g[k, j] = f[j, k] + 4  {id=other}
        end
        """,
        [lk.GlobalArg("f", shape="m, p"), lk.GlobalArg("g", shape="p, m"), ...],
        dtypes={"f, g": "int32"},
    ).split_iname("j", 5, inner_tag="l.0")
    knl = knl.prioritize_loops("j_outer, k")
    assert knl.cuda().count("k <= 2 * j_inner") == 2
    assert knl.prove().ok and knl.prove(text=True).ok
    for m, p in ((3, 4), (12, 30), (7, 1), (0, 3)):
        blank = {"f": np.zeros((m, p), np.int32), "g": np.zeros((p, m), np.int32)}
        due = knl.executor("reference")(**{name: a.copy() for name, a in blank.items()})
        for order in ("ascending", "descending", "random"):
            given = {name: a.copy() for name, a in blank.items()}
            knl.executor("host", order=order, seed=1)(**given)
            for name, values in given.items():
                np.testing.assert_array_equal(values, getattr(due, name))


def loaded(text: str) -> lk.Kernel:
    """A kernel whose loops are bounded by what is loaded from ``cnt``, or from ``w``."""
    names = [name for name in ("cnt", "out", "w") if name in text]
    args = [lk.GlobalArg(name, "int32", shape=9 if name == "w" else 3) for name in names]
    domains = ["{ [r, q]: 0 <= r, q < 3 }", "{ [t]: 0 <= t < c }", "{ [s]: 0 <= s < d }"]
    domains = domains[: 1 + ("for t" in text) + ("for s" in text)]
    return lk.make_kernel(domains, text, [*args, lk.GlobalArg("res", "int32", shape=(3, 9)), ...])


def runs_right(knl: lk.Kernel, root: lk.Kernel) -> None:
    """Host, in three orders, and reference give what the text means; the program is proven."""
    given_ = {"cnt": [5, 7, 1], "w": range(9), "res": np.ones((3, 9)), "out": [0, 0, 0]}
    given_ = {n: np.array(a, "i4") for n, a in given_.items() if n in root.arg_by_name}
    first = root.executor("reference")
    rest = [knl.executor("reference"), *(knl.executor("host", order=order) for order in ORDERS)]
    expected, *found = (run(**{n: a.copy() for n, a in given_.items()}) for run in (first, *rest))
    for results in found:
        assert np.all([np.array_equal(*both) for both in zip(results, expected, strict=True)])
    assert knl.prove().ok


FROM_A_LAUNCH = "<int32> c = cnt[1]\n... gbarrier\nfor t\nres[0, t] = w[t]\nend"
READ_IN_BOTH = "<int32> c = cnt[1]\nfor t\nres[0, t] = w[t]\nend\n... gbarrier\nout[0] = c"
IN_A_LOOP = "for r\n<int32> c = cnt[r]\n... gbarrier\nfor t\nres[r, t] = w[t]\nend\nend"
GUARDED = "for r\nif cnt[r] > 4\n<int32> c = cnt[r]\nfor t\nres[r, t] = w[t]\nend\nend\nend"
INNER = (
    "for r\n<int32> c = cnt[r]\nfor t\n<int32> d = w[t]\nfor s\nres[r, s] = res[r, s] + t\n"
    "end\nend\nend"
)
BY_THREADS = {"t": {"inner_tag": "l.0"}}
BY_BLOCKS = {"t": {"inner_tag": "g.0"}}


@pytest.mark.parametrize(
    ("text", "split"),
    [
        *((text, BY_THREADS) for text in (FROM_A_LAUNCH, READ_IN_BOTH, IN_A_LOOP)),
        *((text, BY_BLOCKS) for text in (FROM_A_LAUNCH, IN_A_LOOP)),
        *((text, {"r": {"inner_tag": "l.0"}}) for text in (GUARDED, INNER)),
        *((GUARDED, split) for split in (BY_THREADS, BY_BLOCKS)),
        (INNER, {"s": {"inner_tag": "l.0"}, "r": {"outer_tag": "g.0"}}),
    ],
)
def test_bounds_are_read(text: str, split: dict[str, dict[str, str]]) -> None:
    """Who comes to a loop reads its bounds, of this launch or of an earlier one."""
    knl = root = loaded(text)
    for iname, tags in split.items():
        knl = knl.split_iname(iname, 4, **tags)
    runs_right(knl, root)


@pytest.mark.parametrize("space", ["shared", "global"])
def test_bounds_that_all_threads_share(space: str) -> None:
    """One thread loads them, and the others wait for it before the loop, and it for them behind."""
    root = loaded("for r\n<int32> c = cnt[r]\nfor t\nres[r, t] = w[t]\nend\nend")
    knl = root.set_temporary_address_space("c", space).split_iname("t", 4, inner_tag="l.0")
    assert knl.cuda().count("__syncwarp();") == 2
    runs_right(knl, root)


def test_bounds_that_one_block_writes_and_others_read() -> None:
    """Nothing orders the two within a launch."""
    with pytest.raises(lk.LoopkitError, match="may read c"):
        loaded(READ_IN_BOTH).split_iname("t", 4, inner_tag="g.0")
    with pytest.raises(lk.UninitializedReadError, match="for r=0"):
        loaded("for r\nif r > 0\n<int32> c = cnt[r]\nend\nfor t\nres[r, t] = w[t]\nend\nend")


@pytest.mark.parametrize("operation", ["sum(q, cnt[q])", "reduce(segmented(sum), q, cnt[q], w[q])"])
def test_accumulators_that_launches_hand_on(operation: str) -> None:
    """What is in global memory in a loop around launches is passed to each of them."""
    knl = loaded(f"for r\nout[r] = {operation}\n... gbarrier\nres[r, 0] = out[r] + 1\nend")
    runs_right(knl.set_temporary_address_space("acc", "global"), knl)


def test_launches_in_a_loop_that_never_runs():
    """A call of no launches is one that does nothing; what is written stays an output."""
    knl = lk.make_kernel(
        "{ [t, i]: 0 <= t < m and 0 <= i < n }",
        "for t\n x[i] = 2*x[i]\n ... gbarrier\n y[i] = x[n - 1 - i] + y[i]\nend",
        [lk.GlobalArg("x, y", "int32", shape="n"), ...],
        assumptions="n, m >= 0",
    )
    knl = knl.tag_inames("i: g.0").fix_parameters(m=0)
    assert knl.prove().ok
    x, y = np.arange(4, dtype="int32"), np.arange(4, dtype="int32") + 1
    got = knl.executor("host")(x=x.copy(), y=y.copy())
    np.testing.assert_array_equal(got.x, x)
    np.testing.assert_array_equal(got.y, y)


@pytest.mark.parametrize("tag", ["", "$near"])
def test_a_call_and_its_launches_agree_where_a_copy_lives(tag: str) -> None:
    """Also where the condition of a read is simplified, as another line tags an access."""
    knl = lk.make_kernel(
        "{ [j]: 0 <= j < n }",
        f"""
        for j
            if j + j < n
                v[j] = j + b[n - 1 - j]
            end
            ... gbarrier
            w{tag}[j] = a[j]
        end
        """,
        dtypes={"a, b, v, w": "int32"},
    ).add_prefetch("b", [], default_tag=None)
    assert knl.prove().ok
    b = np.arange(5, dtype="int32")
    for executor in ("reference", "host"):
        found = knl.executor(executor)(a=b, b=b)
        assert found.v.tolist() == [4, 4, 4] and found.w.tolist() == b.tolist()


def test_a_rule_reads_what_an_earlier_launch_has_written() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        f(x) := x + t
        <> t = a[0]
        o[i] = t
        ... gbarrier
        p[j] = f(j)
        """,
        dtypes={"a, o, p": "int32"},
    )
    assert re.search(r"\n +t +global int32\n", str(knl))
