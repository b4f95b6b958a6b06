"""Statements: tagged, taken away, moved behind others, and put inside more inames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden
from seams import Loop

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def tables() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        """
        <> scale = 2*s[0]                   {id=scale}
        <> shift = s[1] + scale             {id=shift}
        for i
            <> row = scale*x[i]             {id=row}
            <> idle = row + 1               {id=idle}
            y[i, j] = row*w[j] + shift      {id=out}
        end
        """,
        dtypes={"s, x, w, y": "float64"},
        assumptions="n >= 1",
        name="tables",
    )


def check(knl: lk.Kernel, sizes: tuple[int, ...] = (1, 2, 37)) -> None:
    assert knl.prove().ok
    rng = np.random.default_rng(0)
    for n in sizes:
        s, x, w = rng.uniform(size=2), rng.uniform(size=n), rng.uniform(size=5)
        want = tables().executor("reference")(s=s, x=x, w=w)
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=n)(s=s, x=x, w=w)
            np.testing.assert_allclose(found, want, rtol=1e-14)


def lean() -> lk.Kernel:
    return tables().remove_instructions("idle")


def threads() -> lk.Kernel:
    return lean().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0").tag_inames("j: l.1")


SCHEDULES = {
    "in the loop": lambda: lean().add_inames_to_insn("i", "id:scale or id:shift"),
    "in both loops": lambda: lean().add_inames_to_insn("i, j", "not id:out"),
    "threads": lambda: threads().add_inames_for_unused_hw_axes(),
    "in shared memory": lambda: (
        threads()
        .set_temporary_address_space("scale, shift", "shared")
        .add_inames_for_unused_hw_axes("id:scale or id:shift")
    ),
    "threads, one by one": lambda: threads().add_inames_to_insn("j", "id:row"),
    "out of the loop": lambda: (
        lean()
        .add_inames_to_insn("i", "id:scale or id:shift")
        .remove_inames_from_insn("i", "id:scale")
    ),
    "out of both": lambda: (
        lean()
        .add_inames_to_insn("i, j", "not id:out")
        .remove_inames_from_insn("i, j", "id:scale or id:shift")
        .remove_inames_from_insn("j", "id:row")
    ),
    "behind": lambda: lean().add_inames_to_insn("i", "id:shift").add_dependency("shift", "row"),
}


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_run(name: str) -> None:
    check(SCHEDULES[name]())


def test_generated_texts(golden: Golden) -> None:
    shown = [f"{name}\n\n{make()}\n\n{make().cuda()}" for name, make in SCHEDULES.items()]
    golden("statements.txt", "\n\n".join(shown))


def test_tags_are_found() -> None:
    knl = tables().tag_instructions("load", "reads:s")
    assert {s.id for s in knl.statements if "load" in s.tags} == {"scale", "shift"}
    assert lk.replay(tables(), knl.history) == knl
    inside = knl.add_inames_to_insn("i", "tag:load")
    assert [s.id for s in inside.statements if "i" not in s.inames] == []


def test_what_goes_and_what_stays() -> None:
    knl = lean()
    assert "idle" not in knl.temporary_by_name and "idle" not in knl.statement_by_id
    chain = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        <> p = 1                 {id=p}
        <> q = 2                 {id=q, dep=p}
        y[i] = 3                 {id=y, dep=q}
        """,
        dtypes={"y": "float32"},
    )
    assert chain.remove_instructions("q").statement_by_id["y"].depends_on == {"p"}
    assert chain.remove_instructions(["p", "q"]).statement_by_id["y"].depends_on == frozenset()


def test_moves_out_of_loops_that_are_not_shared() -> None:
    """The loops of what it comes behind stay whole, those of its own are cut."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        """
        for i
            a[i] = 1                {id=first}
            b[i] = 2                {id=second}
            for j
                c[i, j] = 3         {id=third}
                d[i, j] = 4         {id=fourth}
            end
        end
        e[k] = 5                    {id=fifth}
        """,
        dtypes={"a, b, c, d, e": "float32"},
        seq_dependencies=True,
    )
    inside = knl.add_dependency("first", "third")
    assert [s.id for s in inside.statements] == ["second", "third", "fourth", "first", "fifth"]
    assert isinstance(inside.tree[0], Loop) and len(inside.tree) == 2
    behind = knl.add_dependency("id:first or id:second", "fifth")
    assert [s.id for s in behind.statements] == ["third", "fourth", "fifth", "first", "second"]
    assert [n.iname for n in behind.tree if isinstance(n, Loop)] == ["i", "k", "i"]
    assert behind.prove().ok and inside.prove().ok
    there = knl.add_dependency("fifth", "first")
    assert there.tree == knl.tree and there.statement_by_id["fifth"].depends_on == {"first"}


@pytest.mark.host
def test_what_stores_the_same_may_run_more_often() -> None:
    """Also in arguments, on one thread or on many; but not what reads what it stores."""
    text = "b[i] = 2*x[i] {id=put}\nc[i, j] = i + j"
    data = [lk.GlobalArg("c", "float32"), ...]
    knl = lk.make_kernel("{ [i, j]: 0 <= i, j < 6 }", text, data, dtypes={"x": "float32"})
    x = np.arange(6, dtype=np.float32)
    for tags in ("", "j:l.0", "j:g.0", "i:g.0, j:l.0"):
        new = (knl.tag_inames(tags) if tags else knl).add_inames_to_insn("j", "id:put")
        assert "j" in new.statement_by_id["put"].inames and new.prove().ok
        assert np.array_equal(new(x=x).b, 2 * x)
    for other, why in (
        ("b[i] = 2*b[i] {id=put}", "would overwrite"),
        ("b[i] = b[i] + x[i] {id=put}", "would be executed more than once|would overwrite"),
        ("b[i] = x[i] {id=put}\nx[i] = b[i] + c[i, 0] {id=behind}", ""),
    ):
        again = lk.make_kernel(
            "{ [i, j]: 0 <= i, j < 6 }", f"{other}\nd[i, j] = i", dtypes={"b": "float32"}
        )
        if why:
            with pytest.raises(lk.IllegalTransformError, match=why):
                again.add_inames_to_insn("j", "id:put")
        else:
            assert (
                again.add_inames_to_insn("j", "id:put").add_dtypes({"x, c": "float32"}).prove().ok
            )


def test_what_ends_a_launch_has_an_id() -> None:
    text = "f[j] = 2*j {id=set}\n... gbarrier {id=bar}\ny[i] = f[i] {id=get}"
    knl = lk.make_kernel("{ [j, i]: 0 <= i, j < 256 }", text, dtypes={"f, y": "float32"})
    for later, earlier in (("id:get", "id:bar"), ("bar", "set")):
        with pytest.raises(lk.IllegalTransformError, match="depend on those already"):
            knl.add_dependency(later, earlier)
    apart = lk.make_kernel("{ [j, i]: 0 <= i, j < 256 }", text.replace("f[i]", "i"))
    apart = apart.add_dtypes({"f": "float32"}).add_dependency("id:set", "id:bar")
    assert [s.id for s in apart.statements] == ["set", "get"] and apart.prove().ok
    with pytest.raises(lk.IllegalTransformError, match="would read"):
        knl.add_dependency("set", "bar").add_dependency("set", "get")


def test_an_overwritten_copy_is_not_enough() -> None:
    """One of several executions serves a read only if nothing else writes the cell behind it."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        <> t = x[0]                 {id=t}
        for i
            y[i] = t                {id=use}
            z[i] = t + 1            {id=more}
        end
        <float32> u = 5             {id=u}
        w[0] = t + u                {id=last}
        """,
        dtypes={"x, y, z, w": "float32"},
        assumptions="n >= 1",
    )
    fine = knl.add_inames_to_insn("i", "id:t")
    assert fine.prove().ok
    with pytest.raises(lk.LoopkitError):
        fine.add_dependency("t", "more")
    shared = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        <> t = x[0]                 {id=t}
        y[0] = t                    {id=use}
        t = x[1]                    {id=again}
        z[i] = t                    {id=late}
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    )
    both = shared.add_inames_to_insn("i", "id:again")
    assert both.prove().ok
    with pytest.raises(lk.IllegalTransformError) as refused:
        both.add_inames_to_insn("i", "id:t").add_dependency("again", "late")
    assert refused.value.witness.array == "t"


def test_other_ids_are_used_by_all_that_named_the_old_ones() -> None:
    knl = tables().add_dependency("out", "row")
    new = knl.replace_instruction_ids({"row": "line", "out": ("result",)})
    assert new.statement_by_id["result"].depends_on >= {"line"}
    assert "row" not in {d for s in new.statements for d in s.depends_on}
    assert [s.rhs for s in new.statements] == [s.rhs for s in knl.statements]
    assert lk.replay(tables(), new.history) == new
    assert "// result" in new.cuda()
    check(new)


REFUSED: list[tuple[Any, str]] = [
    (lambda k: k.tag_instructions("not a tag"), "cannot be a tag"),
    (lambda k: k.tag_instructions("a", "id:nothing"), "no statement matches"),
    (lambda k: k.tag_instructions("a").tag_instructions("a"), "all statements have the tag 'a'"),
    (lambda k: k.remove_instructions("nothing"), "there is no statement 'nothing'"),
    (lambda k: k.remove_instructions(""), "names no statement"),
    (lambda k: k.remove_instructions("row"), "'idle' (i=0) would read row, which nothing"),
    (lambda k: k.remove_instructions("out"), "what 'out' (i=0, j=0) leaves in y[0, 0]"),
    (lambda k: k.replace_instruction_ids({"nothing": "a"}), "there is no statement 'nothing'"),
    (lambda k: k.replace_instruction_ids({"out": "out"}), "'out' would keep its id"),
    (lambda k: k.replace_instruction_ids({"out": "row"}), "the name 'row' is taken"),
    (lambda k: k.replace_instruction_ids({"out": "a", "row": "a"}), "the name 'a' is taken"),
    (lambda k: k.replace_instruction_ids({"out": ("a", "b")}), "which has one id"),
    (lambda k: k.replace_instruction_ids({"out": "int"}), "'int'"),
    (lambda k: k.replace_instruction_ids({}), "names no statement"),
    (lambda k: k.add_dependency("out", "out"), "cannot come after itself"),
    (lambda k: k.add_dependency("scale", "shift"), "before 'scale' has written it"),
    (lambda k: k.add_dependency("out", "row").add_dependency("row", "out"), "cannot come after it"),
    (lambda k: k.add_dependency("out", "row").add_dependency("out", "row"), "already"),
    (lambda k: k.add_inames_to_insn("i", "id:out"), "is inside of 'i' already"),
    (lambda k: k.add_inames_to_insn("", "id:out"), "names no iname"),
    (lambda k: k.remove_inames_from_insn("j", "id:row"), "'row' is not inside of 'j'"),
    (lambda k: k.remove_inames_from_insn("i", "id:row"), "'row' uses 'i', and computes something"),
    (lambda k: k.remove_inames_from_insn("", "id:row"), "names no iname"),
    (
        lambda k: (
            k.duplicate_inames("j", "id:out", new_inames="k")
            .tag_inames("j: l.0, k: l.0")
            .add_inames_to_insn("j, k", "id:row", unchecked=True)
        ),
        "cannot both be tagged l.0: statement 'row' is inside both",
    ),
    (lambda k: k.add_inames_for_unused_hw_axes(), "no statement that sets a temporary lacks"),
]


@pytest.mark.parametrize(("step", "why"), REFUSED)
def test_refusals(step: Any, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        step(tables())
    assert why in str(refused.value)


def test_each_thread_has_an_accumulator_of_its_own() -> None:
    """What every thread starts for itself, some threads use: it is the start in their own copy."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 8 and 0 <= k < m }",
        """
        for i
            z[i, j] = x[i, j]
            y[i] = sum(k, x[i, k]) {id=row}
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1 and 0 <= m <= 8",
    ).tag_inames("j: l.0")
    assert knl.add_inames_to_insn("j", "id:row_init").prove().ok
    # One thread alone starts what another one reads.
    with pytest.raises(lk.IllegalTransformError, match="each thread has its own 'acc'"):
        knl.duplicate_inames("i", "id:row_init").tag_inames("i_0: l.0")


def test_bounds_need_their_parents() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        "<> t = x[0] {id=t}\ny[i, j] = t",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    split = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "<> t = x[0] {id=t}\ny[i, j] = t",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    assert knl.add_inames_to_insn("i, j", "id:t").prove().ok
    with pytest.raises(lk.IllegalTransformError, match="the bounds of that depend on 'i'"):
        split.add_inames_to_insn("j", "id:t")
    bounded = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }"],
        "for i\n<> m = c[i] {id=m}\nfor j\ny[j] = 1 {id=y}\nend\nend",
        [lk.GlobalArg("y", shape="n"), ...],
        dtypes={"y": "float32", "c": "int32"},
    )
    with pytest.raises(lk.IllegalTransformError, match="which bounds the loop over 'j'"):
        bounded.remove_instructions("m")


def test_what_a_loop_may_not_run_is_not_run_beside_it() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\nz[0] = 2*x[0] {id=z}\ny[i] = z[0]*a[i] {id=y}\nend",
        dtypes={"a, x, y, z": "float32"},
        assumptions="n >= 0",
    )
    new = knl.remove_inames_from_insn("i", "id:z")
    assert "if n >= 1" in str(new)
    for n in (0, 1, 5):
        given = {"a": np.ones(n, np.float32), "x": np.full(1, 3, np.float32), "n": n}
        want = knl.executor("reference")(**given, z=np.full(1, 7, np.float32))
        found = new.executor("host")(**given, z=np.full(1, 7, np.float32))
        assert [w.tolist() for w in want] == [f.tolist() for f in found]
    assert new.prove().ok
    assert "if n >= 1" not in str(knl.assume("n >= 1").remove_inames_from_insn("i", "id:z"))


@pytest.mark.parametrize("update", ["z[0] = z[0] + x[0]", "z[0] = z[0] + x[0] {atomic}"])
def test_updates_run_for_each_value(update: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"for i\n{update}\ny[i] = a[i]\nend",
        dtypes={"a, x, y, z": "float32"},
        assumptions="n >= 1",
    )
    with pytest.raises(lk.LoopkitError) as refused:
        knl.remove_inames_from_insn("i", "writes:z")
    assert refused.value.witness.parameters == {"n": 2}
    total = lk.make_kernel(
        "{ [i, k]: 0 <= i, k < n }", "y[i] = sum(k, a[i])", dtypes={"a, y": "float32"}
    ).assume("n >= 1")
    with pytest.raises(lk.IllegalTransformError, match="would be one update, and be added once"):
        total.remove_inames_from_insn("k", "id:insn_update")


def test_bounds_that_need_what_is_left() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        "for i, j\nz[j] = x[j] {id=z}\ny[i, j] = z[j]\nend",
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    )
    new = knl.remove_inames_from_insn("i", "id:z")
    assert new.prove().ok
    given = [
        {"x": np.arange(5, dtype=np.float32), "y": np.zeros((5, 5), np.float32)} for _ in range(2)
    ]
    found = new.executor("host")(**given[0])
    for one, two in zip(found, knl.executor("reference")(**given[1]), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("reduction", "result"),
    [("sum(k, x[k])", 10), ("max(k, 4 - x[k])", 4), ("product(k, x[k] + 1)", 120)],
)
def test_an_accumulator_is_not_set_again_between_its_updates(reduction: str, result: int) -> None:
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i, k < n }",
        f"y[i] = {reduction}",
        dtypes={"x, y": "int32"},
        assumptions="n >= 1",
    ).tag_inames("i: g.0")
    more = knl.add_inames_to_insn("k", "id:insn_init")
    assert [*map(type, more.tree)] == [Loop, Loop, str]
    x = np.arange(5, dtype=np.int32)
    assert more.executor("host")(x=x).tolist() == [result] * 5
    with pytest.raises(lk.IllegalTransformError):
        more.fuse_loops("k")


def test_what_data_may_leave_out_stays_outside() -> None:
    """A loop with loaded bounds may be empty: what must happen does not happen in it."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: first <= j < last }"],
        """
        for i
            <> first = start[i]
            <> last = start[i + 1]
            <> w = x[i] {id=w}
            c[i] = max(j, w*x[j]) {id=keep}
        end
        """,
        [lk.GlobalArg("start", "int32", shape="n + 1"), lk.GlobalArg("x", "int32", "n"), ...],
        dtypes={"c": "int32"},
        assumptions="n >= 1",
    ).assume_within("start", 0, "n + 1")
    for some in (knl, knl.assume_increasing("start")):
        for name in ("keep_init", "keep", "w"):
            with pytest.raises(lk.IllegalTransformError, match=f"'{name}' .i=0. would not be exec"):
                some.add_inames_to_insn("j", f"id:{name}")
    full = knl.assume_increasing("start", strictly=True)
    start, x = np.arange(6, dtype=np.int32), np.array([3, -1, 4, 1, -5], np.int32)
    for name in ("keep_init", "w"):
        inside = full.add_inames_to_insn("j", f"id:{name}").tag_inames("i: l.0")
        found = inside.fix_parameters(n=5).executor("host")(start=start, x=x)
        np.testing.assert_array_equal(found, x * x)


@pytest.mark.parametrize("text", ["v[i] = sum(j, b[j + 1])", "v[i], w[i] = argmin(j, b[j + 1], j)"])
def test_an_accumulator_starts_for_each_value_of_the_loops_around(text: str) -> None:
    """Its start cannot leave a loop: an array of accumulators would start in no loop over it."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 5 and 0 <= j < 4 }",
        text,
        dtypes={name: "float32" for name in "bvw" if f"{name}[" in text},
    )
    with pytest.raises(lk.IllegalTransformError, match=r"\(i=1\) would read from acc"):
        knl.remove_inames_from_insn("i", "id:insn_init")
    apart = knl.duplicate_inames("i", "id:insn_init")
    assert "acc[i_" in apart.cuda()
