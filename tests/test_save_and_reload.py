"""save_and_reload_temporaries: which values outlive a launch, and where they are kept."""

from __future__ import annotations

import numpy as np
import pytest
import save_kernels as k

import loopkit as lk
from loopkit import AddressSpace

ORDERS = ("ascending", "descending", "random")
BEHIND = {"insn_before": "id:first", "insn_after": "id:second"}


def threads(knl: lk.Kernel) -> lk.Kernel:
    return knl.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")


def saved(knl: lk.Kernel, **more) -> lk.Kernel:
    return knl.save_and_reload_temporaries(**BEHIND, **more)


SCHEDULES = {
    "threads": lambda: saved(threads(k.power())),
    "a parted loop": lambda: saved(k.power(), within_inames=()),
    "a parted loop of threads": lambda: threads(saved(k.power(), within_inames=())),
    "side by side": lambda: saved(k.power().split_iname("i", 4, inner_tag="ilp")),
    "private array": lambda: saved(threads(k.tiles())),
    "shared array": lambda: saved(k.exchange()),
    "a sum of threads": lambda: saved(k.centred().tag_inames("i: g.0")),
    "what data add to": lambda: saved(threads(k.chosen())),
    "what data add to, a parted loop": lambda: saved(k.chosen(), within_inames=()),
    "a loop that data end": lambda: k.ended().save_and_reload_temporaries("id:stop", "id:first"),
    "a loop of threads that data end": lambda: threads(k.ended()).save_and_reload_temporaries(
        "id:stop", "id:first"
    ),
    "what data decide": lambda: saved(threads(k.some())),
    "one of two values": lambda: saved(k.either()),
    "what a loop holds until data end it": lambda: saved(k.broken_off()),
    "what a loop of threads holds until data end it": lambda: saved(
        k.broken_off().tag_inames("i: g.0")
    ),
    "two barriers": lambda: saved(threads(k.power())).save_and_reload_temporaries(
        "id:square", "id:first"
    ),
    "launches in a loop": lambda: k.stepped().tag_inames("i: l.0").save_and_reload_temporaries(),
    "a launch for each iteration": lambda: (
        k.power().add_barrier(**BEHIND).save_and_reload_temporaries()
    ),
}


def shown(knl: lk.Kernel) -> str:
    return f"{knl}\n\n{knl.cuda()}"


@pytest.mark.parametrize("name", ["threads", "private array", "shared array", "launches in a loop"])
def test_nest_and_source(name, golden):
    golden(f"save_{name.replace(' ', '_')}.txt", shown(SCHEDULES[name]()))


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_runs_are_right_and_proven(name):
    knl = SCHEDULES[name]()
    assert all(step.verdict == "proven" for step in knl.history)
    rng = np.random.default_rng(3)
    for n in (0, 1, 13):
        sizes = {"n": n, "m": 37}
        arrays = {}
        for a in knl.args:
            if isinstance(a, lk.ArrayArg) and a.is_input:
                shape = [eval(str(e), dict(sizes)) for e in a.shape]
                arrays[a.name] = rng.integers(-8, 8, shape).astype(a.dtype)
        given = {s: sizes[s] for s in knl.sizes}
        due = knl.executor("reference")(**{n: a.copy() for n, a in arrays.items()}, **given)
        for order in ORDERS:
            run = knl.executor("host", order=order, seed=2)
            found = run(**{n: a.copy() for n, a in arrays.items()}, **given)
            for one, other in zip(due, found, strict=True):
                np.testing.assert_array_equal(one, other)
    for text in (False, True):
        proof = knl.prove(text=text)
        assert proof.ok, str(proof)


def test_a_barrier_alone_is_refused_and_names_what_would_be_legal():
    with pytest.raises(lk.RaceError, match="both write v") as error:
        threads(k.power()).add_barrier(**BEHIND)
    assert any("save_and_reload_temporaries" in s for s in error.value.suggestions)


def test_only_what_a_later_launch_reads_is_saved():
    knl = saved(threads(k.tiles()))
    assert {s.id for s in knl.statements if s.kind == "move"} == {"save_t", "reload_t"}
    assert knl.range_of("save_t_dim_0") == knl.range_of("reload_t_dim_0") == (1, 2)


def test_neighbouring_threads_save_side_by_side():
    slot = saved(threads(k.tiles())).temporary_by_name["t_save"]
    assert slot.shape[1:] == (4, 8) and slot.address_space is AddressSpace.GLOBAL


def test_a_launch_that_does_not_use_a_value_does_not_load_it():
    knl = k.made(
        """
        for i
            <> v = x[i]           {id=load}
            y[i] = v              {id=first}
            w[i] = y[i]           {id=between}
            z[i] = v              {id=second}
        end
        """
    )
    knl = threads(knl).save_and_reload_temporaries("id:first", "id:between")
    knl = knl.add_barrier("id:between")
    assert [s.id for s in knl.statements] == [
        *("load", "save_v", "first", "between", "reload_v", "second")
    ]


def test_a_value_used_by_a_rule_is_kept():
    knl = k.made(
        """
        f(a) := t*a
        for i
            <> t = x[i]     {id=load}
            y[i] = t        {id=first}
            z[i] = f(2)     {id=second}
        end
        """
    )
    assert "t_save" in saved(knl, within_inames=()).temporary_by_name


def test_names_that_are_taken():
    knl = k.made(
        """
        for i
            <> v = x[i] + v_save[i]*save_v {id=square}
            y[i] = v                       {id=first}
            z[i] = v                       {id=reload_v}
        end
        """,
        dtypes={"v_save, save_v": "float32"},
    )
    knl = knl.save_and_reload_temporaries("id:first", "id:reload_v", within_inames=())
    assert "v_save_0" in knl.temporary_by_name
    assert {"save_v_0", "reload_v_0"} <= knl.statement_by_id.keys()
    assert knl.prove().ok


@pytest.mark.parametrize(
    ("call", "kind", "what"),
    [
        (lambda knl: knl.save_and_reload_temporaries(), lk.IllegalTransformError, "is one launch"),
        (
            lambda knl: knl.save_and_reload_temporaries("id:square", only_var_names="w"),
            lk.UnknownNameError,
            "no temporary 'w'",
        ),
        (
            lambda knl: knl.save_and_reload_temporaries(tags="a"),
            lk.InvalidArgumentError,
            "no barrier is added",
        ),
        (
            lambda knl: saved(knl, within_inames=(), only_var_names=()),
            lk.IllegalTransformError,
            "outlives a launch",
        ),
    ],
)
def test_calls_that_are_refused(call, kind, what):
    with pytest.raises(kind, match=what):
        call(k.power())


def test_a_loop_that_needs_its_order_is_not_parted():
    knl = k.made(
        """
        for i
            <> v = x[i]           {id=load}
            y[i] = v              {id=first}
            x[i + 1] = v + y[i]   {id=second}
        end
        """
    )
    with pytest.raises(lk.IllegalTransformError, match="would read x"):
        saved(knl, within_inames=())


def test_what_a_launch_adds_to_stays_in_global_memory():
    knl = lk.make_kernel(
        "{ [s, j]: 0 <= s < n and 0 <= j < m }",
        """
        <> t = 0.0
        for s
            t = t + sum(j, x[s, j])
            ... gbarrier
            y[s] = t
        end
        """,
        dtypes={"x, t": "float32"},
        assumptions="n, m >= 0",
    )
    kept = knl.save_and_reload_temporaries()
    assert kept.temporary_by_name["t"].address_space is AddressSpace.PRIVATE
    assert kept.prove().ok


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_copy_is_of_what_was_written_until_then(place: int):
    """A value is saved behind the write that data decide, and before nothing else changes it."""
    lines = ["<> t = x[i]", "if x[i] > 0\n t = t + 3\nend", "y[i] = 2", "z[i] = t"]
    args = [lk.GlobalArg("x, y, z", "float32", shape="n"), ...]
    knl, copied = (
        lk.make_kernel("{ [i]: 0 <= i < n }", "\n".join(("for i", *text, "end")), args)
        for text in (lines, [*lines[:place], "<> s = t", *lines[place:3], "t = s", lines[3]])
    )
    assert lk.verify(knl, copied).answer == ("different" if place == 1 else "equal")


def test_a_condition_that_changes_says_nothing_of_a_copy():
    """The second store runs under another value of the condition than the copy."""
    knl = k.made(
        """
        for i
            <> t = x[i]               {id=load}
            y[i] = 3                  {id=first}
            if c[i] > 0
                z[i] = t              {id=second}
            end
            c[i] = d[i]               {id=change}
            if c[i] > 0
                w[i] = t              {id=third}
            end
        end
        """,
        dtypes={"c, d": "int32"},
    )
    assert saved(knl, within_inames=()).statement_by_id["reload_t"].predicates == ()


def test_history_goes_to_text_and_back():
    knl = saved(threads(k.tiles()))
    assert lk.replay(k.tiles(), knl.history) == knl
    assert "save_and_reload_temporaries" in knl.script()


@pytest.mark.host
def test_what_is_saved_may_be_padded() -> None:
    """The memory that a call allocates is as large as that which the launches take."""
    knl = lk.make_kernel(
        "{ [i, k, h]: 0 <= i < n and 0 <= k, h < 8 }",
        """
        for i
            <> t[k] = b[i] + c[i, (k + 1) % 8]    {id=make}
            x[i, h] = t[(h + 1) % 8]              {id=use}
        end
        """,
        [lk.GlobalArg("c", "int32", shape="n, 8"), ...],
        dtypes={"b, x": "int32"},
    )
    knl = (
        knl.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1")
        .save_and_reload_temporaries("id:make", within_inames=[])
        .pad_temporary("t_save", axis=2, elements=3)
    )
    assert knl.prove().ok
    c, b = np.arange(104, dtype="int32").reshape(13, 8), np.arange(13, dtype="int32")
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order, seed=1)(c=c, b=b)
        np.testing.assert_array_equal(found, b[:, None] + np.roll(c, -2, axis=1))
