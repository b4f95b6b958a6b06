"""A bounded piece of the random campaign, and that it finds what it looks for.

``python -m tests.campaign`` runs as much of it as one likes.
"""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from campaign import device, kernels, steps, together
from campaign.batch import Batches, Limits
from campaign.brute_force import UnsupportedError, try_to_break
from campaign.compiled import compile_all, first_wrong
from campaign.data import Truth, reference_of
from campaign.kernels import Block, Drawn, Line
from campaign.shrink import Reproducer, shrunk
from campaign.steps import Call
from campaign.tally import Bucket, Tally
from campaign.walk import Walk, attempt, walk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seams import combined_axes, thread_scans
from seams import registered_transforms as transforms

import loopkit as lk

pytestmark = pytest.mark.host


def randoms() -> st.SearchStrategy[random.Random]:
    """Sources of choices that hypothesis can make smaller."""
    return st.randoms(use_true_random=False, note_method_calls=False)


# {{{ the campaign


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_is_accepted_goes_wrong(seed):
    limits = Limits(kernels=4, sequences=5, steps=8, sizes=3, refusals=0, pages=1)
    tally = Batches(limits).run(1000 + seed)
    serious = [f.text() for f in tally.findings if f.kind != "late"]
    assert not serious, "\n\n".join(serious)
    assert tally.runs > 20


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(randoms())
def test_drawn_kernels_mean_their_text(r):
    """Before any transform: the generated source computes what the interpreter does."""
    drawn = kernels.draw_text(r)
    try:
        kernel = drawn.make()
        program = kernel.program()
    except lk.LoopkitError:
        return
    (binary,) = compile_all([program])
    _, wrong = first_wrong(binary, Truth(kernel, 1).cases(kernel, 3, {}), 1)
    assert wrong is None, drawn.source()


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_schedules_picked_for_a_device(executor):
    """What ``python -m tests.campaign.device`` runs, by the executors that people use."""
    for picked in itertools.islice(device.pick(40), 60 if executor == "cuda" else 6):
        assert not device.difference(picked, executor), picked.source()


# }}}
# {{{ it finds what it looks for


RECURRENCE = Drawn(
    ("{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"),
    (
        Block("for i", (Line("u[i + 1] = u[i] + a[i]"),)),
        Block("for j", (Line("v[j] = 2*a[j]"),)),
    ),
    (("a", "int32"), ("u", "int32"), ("v", "int32")),
)


def unchecked(drawn: Drawn, *calls: Call) -> tuple[Truth, lk.Kernel]:
    """A kernel transformed without any proof, and the truth about it."""
    plain = drawn.make()
    kernel = plain
    for call in calls:
        kernel = call.apply(kernel, unchecked=True)
    return Truth(plain, 3), kernel


def test_sizes_of_a_witness_are_tried_first():
    truth = Truth(RECURRENCE.make(), 3)
    tried = [case.sizes["n"] for case in truth.cases(truth.kernel, 3, {}, {"n": 11})]
    assert tried[:2] == [11, 12]


def test_without_the_checker_results_go_wrong(monkeypatch):
    """What the campaign is for: of the same steps, unproven, many change the results."""
    monkeypatch.setattr("loopkit._transform._proven", lambda kernel, change, step: None)
    limits = Limits(kernels=6, sequences=4, steps=8, sizes=2, refusals=0, pages=0, proofs=0.0)
    tally = Batches(limits).run(1)
    assert tally.total("wrong") + tally.total("late") + tally.total("schedule") > 3


def test_each_launch_finds_its_memory_cleared():
    """The tickets of a scan across blocks begin anew in each launch of a loop, not of a call."""
    text = """
    for i
        <> t = sum(k, c[i, k])
        ... gbarrier
        x[i, q] = t + sum(v, c[i, v])
    end
    """
    domains = [
        "{ [i, k]: 0 <= i < n and 0 <= k < 8 }",
        "{ [q]: 0 <= q < 8 }",
        "{ [v]: 0 <= v <= q }",
    ]
    text_kernel = lk.make_kernel(domains, text, dtypes={"c": "int32"})
    kernel = text_kernel.realize_reduction(force_scan=True, by="lookback").split_iname(
        "q", 4, outer_tag="g.0", inner_tag="l.0"
    )
    (binary,) = compile_all([kernel.program()])
    _, wrong = first_wrong(binary, Truth(text_kernel, 1).cases(kernel, 2, {}), 1)
    assert wrong is None, str(wrong)


def test_a_reversed_recurrence_runs_wrong():
    reverse = Call("map_domain", {"transform_map": "{ [i] -> [r]: r = -i }"})
    truth, kernel = unchecked(RECURRENCE, reverse)
    (binary,) = compile_all([kernel.program()])
    _, wrong = first_wrong(binary, truth.cases(kernel, 2, {}), 1)
    assert wrong is not None and wrong.what.startswith("u: element")
    assert try_to_break(kernel, truth.cases(kernel, 2, {}), 1) is not None


def test_the_share_of_needless_refusals_counts_those_that_were_not_tried():
    """Of 90 refusals that are right ten were tried, and all of ten others: two are needless."""
    tally = Tally()
    assert tally.needless_share() == 0
    tally.refusals["right"] = Bucket(count=90, tried=10, broken=10)
    tally.refusals["mixed"] = Bucket(count=10, tried=10, broken=8, needless=2)
    tally.refusals["impossible"] = Bucket(count=500, tried=25, impossible=25)
    tally.refusals["never tried"] = Bucket(count=3)
    assert tally.needless_share() == 0.02


def test_brute_force_counts_what_each_block_repeats():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j < n and 0 <= k < 2 }",
        "<> t = max(k, b[0])\ny[i, j] = t",
        dtypes={"b, y": "float64"},
    ).tag_inames({"i": "g.0", "j": "g.1"})
    (case,) = (c for c in Truth(knl, 3).cases(knl, 9, {}) if c.sizes == {"n": 7})
    with mock.patch("campaign.brute_force._MOST_INSTANCES", 1500):  # each of 49 blocks executes 5
        with pytest.raises(UnsupportedError, match="1,500 instances"):
            try_to_break(knl, [case], 1, text=knl)
        # One way is run where all are too many; what is right by chance has time of its own.
        wrong = knl.tag_inames({"k": "g.2"}, unchecked=True)
        assert "by chance" in try_to_break(wrong, [case], 1, text=knl).what


@pytest.mark.parametrize("value", ["t + h", "t"])
def test_brute_force_leaves_loops_in_each_block_by_its_own_values(value):
    knl = lk.make_kernel(
        "{ [i, k, h]: 0 <= i < n and 0 <= k < 5 and 0 <= h < 5 }",
        "for i\n<> t = b[i]\nfor k\nt = t + c[i, k]\nbreak if b[i] > k\nend\n"
        f"x[i, h] = {value}\nend",
        dtypes={"b, c, x": "int32"},
        assumptions="n >= 1",
    )
    fast = knl.split_iname("h", 4, outer_tag="g.0", inner_tag="l.0")
    assert try_to_break(fast, Truth(knl, 3).cases(knl, 4, {}), 1, text=knl) is None


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("u[i + 1] = u[i] + a[i]", "l.0"),  # a recurrence
        ("u[i] = u[i + 1] + a[i]", "l.0"),  # a shift in place
        ("u[0] = u[0] + a[i]", "l.0"),  # updates that are lost
        ("u[0] = u[0] + a[i]", "g.0"),
        ("u[i] = a[i]\nv[i + 1] = u[0]", "g.0"),  # blocks wait for nobody
        ("u[0] = a[i]", "g.0"),  # the last one wins
    ],
)
def test_brute_force_breaks_races(text, tag):
    body = tuple(Line(line) for line in text.split("\n"))
    types = (("a", "int32"), ("u", "int32"), ("v", "int32"))
    drawn = Drawn(("{ [i]: 0 <= i < n }",), body, types)
    split = {"split_iname": "i", "inner_length": 32, "inner_tag": tag}
    if tag == "g.0":
        split = {"split_iname": "i", "inner_length": 1, "outer_tag": tag}
    truth, kernel = unchecked(drawn, Call("split_iname", split))
    assert try_to_break(kernel, truth.cases(kernel, 4, {}), 1) is not None


@pytest.mark.parametrize("cell", ["[j]", ""])
@pytest.mark.parametrize("is_early", [True, False])
def test_brute_force_breaks_storage_that_is_needed(is_early, cell):
    """Of two arrays in one place, the second is filled before the first is read, or after that."""
    fill, read = f"<int32> t{cell} = a{cell or '[0]'} + 1", "u[j2] = s[1 - j2]"
    lines = [fill, read] if is_early else [read, fill]
    drawn = Drawn(
        (*(f"{{ [{j}]: 0 <= {j} < 2 }}" for j in ("j0", "j", "j2", "j3")),),
        (Line("<int32> s[j0] = a[j0]"), *map(Line, lines), Line(f"v[j3] = t{cell and '[1 - j3]'}")),
        (("a", "int32"), ("u", "int32"), ("v", "int32")),
    )
    space = Call(
        "set_temporary_address_space", {"temp_var_names": "s, t", "address_space": "shared"}
    )
    truth, kernel = unchecked(drawn, space, Call("alias_temporaries", {"names": ["s", "t"]}))
    broken = try_to_break(kernel, truth.cases(kernel, 2, {}), 1, text=truth.kernel)
    assert (broken is not None) == is_early


def test_data_are_what_a_schedule_asserts():
    """Also those that the text does not look at, since it stops before."""
    text = "for i\nq[perm[i]] = x[i]\nbreak if x[i] > 2\nend"
    arrays = [lk.GlobalArg("q", "int32", shape="m"), lk.GlobalArg("perm", "int32", shape="n"), ...]
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, arrays, dtypes={"x": "int32"})
    schedule = knl.assume_within("perm", 0, "m")
    truths = [Truth(knl, seed) for seed in range(9)]
    cases = [case for truth in truths for case in truth.cases(schedule, 4, {})]
    assert len(cases) == 36 and not reference_of(schedule, cases)


def test_brute_force_gives_each_block_its_copies():
    """Blocks of one axis use an array, and blocks of another axis one in the same storage."""
    text = "<> s[k] = b[k]\nu[k] = s[k]\n<> t[p] = b[p]\nv[p] = t[p]"
    domains = ("{ [k, p]: 0 <= k < 6 and 0 <= p < 2 }",)
    types = tuple((name, "int32") for name in "buv")
    drawn = Drawn(domains, tuple(map(Line, text.split("\n"))), types)
    space = {"temp_var_names": "s, t", "address_space": "shared"}
    splits = [
        {"split_iname": i, "inner_length": 2, "inner_tag": f"l.{a}", "outer_tag": f"g.{a}"}
        for a, i in enumerate("kp")
    ]
    truth, kernel = unchecked(
        drawn,
        Call("set_temporary_address_space", space),
        Call("alias_temporaries", {"names": ["s", "t"]}),
        *(Call("split_iname", split) for split in splits),
    )
    assert try_to_break(kernel, truth.cases(kernel, 2, {}), 1, text=truth.kernel) is None


def test_brute_force_writes_to_numbers():
    knl = lk.make_einsum("ij->", "c", dtypes={"c": "float64", "out": "float64"})
    cases = Truth(knl, 3).cases(knl, 2, {}, adverse=True)
    assert cases and try_to_break(knl, cases, 1, text=knl) is None


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("u[i] = u[i] + a[i]", "l.0"),
        ("u[i] = a[i]\nv[i + 1] = u[0]", "l.0"),  # a barrier can stand between
        ("<> t = a[i]\nt = t + a[i + 1]\nu[i] = t", "g.0"),
    ],
)
def test_brute_force_breaks_nothing_that_is_legal(text, tag):
    body = tuple(Line(line) for line in text.split("\n"))
    types = (("a", "int32"), ("u", "int32"), ("v", "int32"))
    drawn = Drawn(("{ [i]: 0 <= i < n }",), body, types)
    split = {"split_iname": "i", "inner_length": 32, "inner_tag": tag}
    if tag == "g.0":
        split = {"split_iname": "i", "inner_length": 1, "outer_tag": tag}
    truth, kernel = unchecked(drawn, Call("split_iname", split))
    assert try_to_break(kernel, truth.cases(kernel, 4, {}), 1) is None


@pytest.mark.parametrize(
    ("body", "calls", "why"),
    [
        # Blocks have sums of their own, and the largest is found in the first one.
        ("u[0] = max(i, 2)", [("tag_inames", {"iname_to_tag": {"i": "g.0"}})], "by chance"),
        ("u[0] = a[i] - a[i]", [("tag_inames", {"iname_to_tag": {"i": "g.0"}})], "by chance"),
        (
            "u[0] = if(a[i] > 3, 2, 2)",
            [("tag_inames", {"iname_to_tag": {"i": "g.0"}})],
            "by chance",
        ),
        (
            "<> t = 2*a[i]\nu[i] = t",
            [
                ("set_temporary_address_space", {"temp_var_names": "t", "address_space": "local"}),
                ("add_barrier", {"insn_before": "writes:t", "insn_after": "writes:u"}),
            ],
            "u[0] is",
        ),
        (
            "<> t[i % 4] = a[i]\nu[i] = t[i % 4]",
            [("tag_array_axes", {"ary_names": "t", "dim_tags": "stride:0"})],
            "two cells of 't' lie in one place",
        ),
    ],
)
def test_brute_force_is_not_misled_by_numbers(body, calls, why):
    """What is right by chance, or in memory that is gone or taken, is wrong."""
    types = (("a", "int32"), ("u", "int32"))
    lines = tuple(Line(line) for line in body.split("\n"))
    drawn = Drawn(("{ [i]: 0 <= i < n }",), lines, types, assumptions="n >= 1")
    truth, kernel = unchecked(drawn, *(Call(name, given) for name, given in calls))
    broken = try_to_break(kernel, truth.cases(kernel, 4, {}), 1, text=truth.kernel)
    assert broken is not None and why in broken.what


def test_brute_force_counts_what_runs_beside_the_text():
    """A loop that has ended in the text goes on in threads that each have a flag of their own."""
    text = "for i\nbreak if i > 0\nu[i] = a[i]\nend"
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"a": "int32"})
    with pytest.raises(lk.IllegalTransformError) as refused:
        knl.tag_inames("i: l.0")
    kernel = knl.tag_inames("i: l.0", unchecked=True)
    cases = Truth(knl, 1).cases(kernel, 4, {})
    assert try_to_break(kernel, cases, 1, text=knl) is None
    broken = try_to_break(kernel, cases, 1, text=knl, lineage=refused.value.refused[0])
    assert broken is not None and "which the text does not" in broken.what


def test_formal_values_are_those_of_the_text():
    """Whatever legal steps do: the order of a sum, copies, partial sums, names of inames."""
    drawn = Drawn(
        ("{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < n }"),
        (Block("for i", (Line("u[i] = sum(k, c[i, k]*a[k]) + i"),)),),
        (("a", "int32"), ("c", "int32"), ("u", "int32")),
        assumptions="n >= 1",
    )
    calls = (
        Call("split_iname", {"split_iname": "k", "inner_length": 3, "inner_tag": "l.0"}),
        Call("split_iname", {"split_iname": "i", "inner_length": 2, "outer_tag": "g.0"}),
        Call("add_prefetch", {"var_name": "a", "sweep_inames": ["k_inner"]}),
        Call("prioritize_loops", {"loop_priority": ["k_outer", "i_inner"]}),
    )
    truth, kernel = unchecked(drawn, *calls[:3])
    cases = truth.cases(kernel, 4, {})
    assert try_to_break(kernel, cases, 1, text=truth.kernel) is None


def test_what_lowering_refuses_has_no_results(monkeypatch):
    """It cannot be wrong beside ``verify``, which speaks of what a kernel means."""
    body = Block("for k", (Line("<> s[k] = a[k]"), Line("u[i] = s[k] + a[i]")))
    domains = ("{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }")
    drawn = Drawn(domains, (Block("for i", (body,)),), (("a", "int32"), ("u", "int32")))
    shared = {"temp_var_names": "s", "address_space": "local"}
    split = {"split_iname": "i", "inner_length": 4, "inner_tag": "ilp"}
    calls = Call("set_temporary_address_space", shared), Call("split_iname", split)
    truth, kernel = unchecked(drawn, *calls)

    def refuse(_):
        raise lk.IllegalTransformError("no code can be made of this")

    monkeypatch.setattr("campaign.brute_force.realize_instruction_parallel", refuse)
    broken = try_to_break(kernel, truth.cases(kernel, 2, {}), 1)
    assert broken is not None and not broken.runs
    assert lk.verify(truth.kernel, kernel)


def test_accesses_outside_of_arrays_show():
    drawn = Drawn(
        ("{ [i]: 0 <= i < n }",), (Line("u[i] = a[i]"),), (("a", "int32"), ("u", "int32"))
    )
    plain = drawn.make()
    program = plain.program()
    source = program.source.replace("u[i]", "u[i + 1]")
    assert source != program.source
    (binary,) = compile_all([replace(program, source=source)])
    _, wrong = first_wrong(binary, Truth(plain, 3).cases(plain, 1, {}), 1)
    assert wrong is not None and wrong.what.startswith("u: ")


def test_what_is_found_becomes_small(monkeypatch):
    """Of two steps on two nests, those are left that show what was found."""

    def shows(candidate, seed):
        transforms = [c.transform for c in candidate.calls]
        return "u" if "u[i" in candidate.drawn.text and "peel_iname" in transforms else ""

    monkeypatch.setattr("campaign.shrink.shows", shows)
    calls = (Call("split_iname", {}), Call("peel_iname", {}), Call("assume", {}))
    small = shrunk(Reproducer(RECURRENCE, calls, "wrong", "", ""), 3, 10.0)
    assert small.calls == (calls[1],)
    assert small.drawn.text == "u[i + 1] = u[i] + a[i]"


# }}}
# {{{ what is drawn


def test_every_transform_is_drawn():
    assert steps.DRAWERS.keys() | steps.NOT_DRAWN.keys() == transforms.keys()


def test_all_kinds_of_accesses_are_drawn():
    text = "\n".join(kernels.draw_text(random.Random(seed)).text for seed in range(300))
    for piece in (
        "sum(",
        "max(",
        "argmin(",
        "<>_",
        "perm[",
        "col[",
        "ptr[",
        "if ",
        "else",
        "<> t",
        "<> s",
        " // 2",
    ):
        assert piece in text, piece


@pytest.mark.slow
@pytest.mark.slow
def test_rules_within_rules_are_drawn():
    """Of two rules one uses the other, in sums or beside them; either is computed ahead first."""
    text, firsts = "", set()
    for seed in range(24):
        r = random.Random(seed)
        drawn, kernel = kernels.draw(r, text=kernels.draw_rules)
        found, text = Walk(kernel), text + drawn.text
        for _ in range(5):
            arguments = steps.precompute(r, found.kernel)
            if arguments is not None:
                attempt(found, Call("precompute", arguments))
        assert not found.crashes
        if found.calls and len(kernel.substitutions) == 2:
            names = [rule.name for rule in kernel.substitutions]
            firsts.add(names.index(re.split(r"\W", found.calls[0].arguments["subst_use"])[0]))
        try:
            program = found.kernel.program()
        except lk.LoopkitError:
            continue
        (binary,) = compile_all([program])
        _, wrong = first_wrong(binary, Truth(kernel, 1).cases(found.kernel, 2, found.fixed), 1)
        assert wrong is None, (drawn.source(), found.calls)
    assert "sum(" in text and firsts == {0, 1}


def test_what_threads_do_together_is_drawn():
    """Collectives, launches, atomic updates and storage that is shared, in kernels that run."""
    text, accepted = "", set()
    for seed in range(48):
        r = random.Random(seed)
        drawn, kernel = kernels.draw(r, text=together.draw_text)
        found = walk(r, Walk(kernel), 6, together=True)
        text += drawn.text
        accepted |= {call.transform for call in found.calls}
        accepted |= {"combined"} & {"combined" for _ in combined_axes(found.kernel)}
        accepted |= {"scanned" for _ in thread_scans(found.kernel)}
    for piece in ("gbarrier", "{atomic}", "sum(", "<> s", "if "):
        assert piece in text, piece
    for step in ("tag_inames", "set_temporary_address_space", "add_barrier", "combined", "scanned"):
        assert step in accepted, step


@pytest.mark.slow
def test_programs_of_several_launches_are_run():
    limits = Limits(kernels=6, sequences=3, steps=5, sizes=2, refusals=0, pages=1, together=1.0)
    batches = Batches(limits)
    ran = set()

    def first(binary, cases, seed):
        ran.add(len(binary.program.parts) > 1)
        return first_wrong(binary, cases, seed)

    with mock.patch("campaign.batch.first_wrong", first):
        tally = batches.run(3)
    assert ran == {False, True} and not tally.total("wrong")


def test_text_that_is_printed_makes_the_same_kernel():
    drawn, kernel = kernels.draw(random.Random(5))
    space = {"lk": lk}
    exec(drawn.source(), space)
    assert space["knl"].key == kernel.key


def test_the_same_seed_draws_the_same():
    limits = Limits(kernels=1, sequences=4, sizes=1, refusals=0, pages=0)
    one, two = (Batches(limits).run(17) for _ in range(2))
    assert one.steps == two.steps and one.runs == two.runs


def test_tallies_add_up():
    one, two = Tally(sequences=2), Tally(sequences=3)
    one.bucket("a").count = 1
    two.bucket("a").count = 2
    two.bucket("b").needless = 1
    two.seconds["split_iname"] = [0.5]
    one.add(two)
    assert one.sequences == 5 and one.bucket("a").count == 3 and one.bucket("b").needless == 1
    assert one.to_json()["seconds"]["split_iname"]["max"] == 500.0


def test_data_of_index_arrays_collide_unless_promised():
    drawn = Drawn(
        ("{ [i]: 0 <= i < n }",),
        (Line("o[perm[i]] = a[i]"),),
        (("a", "int32"), ("o", "int32"), ("perm", "int32")),
        (("o", "n"), ("perm", "n")),
    )
    plain = drawn.make()
    promised = Call("assume_injective", {"array": "perm"}).apply(plain)
    truth = Truth(plain, 3)
    (hostile,) = truth.cases(plain, 1, {})
    (friendly,) = truth.cases(promised, 1, {})
    assert len(np.unique(hostile.given["perm"])) < len(hostile.given["perm"])
    assert len(np.unique(friendly.given["perm"])) == len(friendly.given["perm"])


def test_sizes_that_are_computed_come_with_a_case():
    drawn = Drawn(
        ("{ [i, j]: 0 <= i < n and 0 <= j < m }",),
        (Line("o[i, j] = 2*a[i, j]"),),
        (("a", "int32"), ("o", "int32")),
        (),
    )
    plain = drawn.make()
    joined = Call("join_inames", {"inames": ["i", "j"]}).apply(plain)
    assert joined.computed_sizes
    cases = Truth(plain, 3).cases(joined, 2, {})
    assert cases and try_to_break(joined, cases, 1) is None


# }}}
