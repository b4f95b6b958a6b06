"""Instances that no barrier can order: what is refused, in which words, and what is not."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim
import pytest
from barrier_kernels import V, at, make, plus
from barrier_oracle import Launch, meetings
from seams import GroupAxis, LocalAxis, Loop, make_nest, prove_program

import loopkit as lk
from loopkit import Kernel, RaceError, Statement

G, I, T = V("g"), V("i"), V("t")
WHOLE = plus(prim.Product((16, G)), T)


def blocks(
    statements: list[tuple[str, Any, Any, str]],
    tree: Any,
    *,
    assume: str = "n >= 1",
    shared: dict[str, int] | None = None,
    tags: dict[str, Any] | None = None,
) -> Kernel:
    """Blocks ``g`` of 16 threads ``t``, which together run over ``0 <= 16*g + t < n``."""
    domains = [
        ("g", "[n, g, t] -> { : 0 <= 16g + t < n and 0 <= t < 16 }"),
        ("t", "[t] -> { : 0 <= t < 16 }"),
        ("i", "[n, i] -> { : 0 <= i < n }"),
    ]
    made = [Statement(i, lhs, rhs, frozenset(inames)) for i, lhs, rhs, inames in statements]
    names = {s.written for s in made} | {name for s in made for name, _ in s.reads}
    return make(
        domains,
        made,
        tree,
        {"g": GroupAxis(0), "t": LocalAxis(0)} if tags is None else tags,
        shared or {},
        private=("x",),
        outputs=tuple(sorted(names & {"a", "b", "c"})),
        assume=assume,
    )


def between_blocks(**more: Any) -> Kernel:
    return blocks(
        [("put", at("b", WHOLE), 1, "gt"), ("get", at("c", WHOLE), at("b", plus(WHOLE, 1)), "gt")],
        ("put", "get"),
        **more,
    )


def around_a_loop() -> Kernel:
    return blocks(
        [("step", at("a", plus(I, 1), WHOLE), at("a", I, plus(WHOLE, 1)), "git")],
        (Loop("i", ("step",)),),
    )


def within_one_statement() -> Kernel:
    return blocks([("move", at("b", WHOLE), at("b", plus(WHOLE, 1)), "gt")], ("move",))


def all_write_one_cell() -> Kernel:
    return blocks([("set", at("b", 0), WHOLE, "gt")], ("set",))


def one_block_writes_what_all_read() -> Kernel:
    return blocks(
        [("one", at("b", 0), 1, ""), ("all", at("c", WHOLE), at("b", 0), "gt")], ("one", "all")
    )


def two_threads_update() -> Kernel:
    return blocks([("add", at("s", 0), 1, "gt")], ("add",), shared={"s": 1}).with_(
        statements=(Statement("add", at("s", 0), 1, frozenset("gt"), operation="sum"),)
    )


def a_neighbour_reads() -> Kernel:
    return blocks([("move", at("s", T), at("s", plus(T, 1)), "gt")], ("move",), shared={"s": 1})


RACES = {
    "between blocks": between_blocks,
    "around a loop": around_a_loop,
    "within one statement": within_one_statement,
    "all write one cell": all_write_one_cell,
    "one block writes what all read": one_block_writes_what_all_read,
    "two threads update": two_threads_update,
    "a neighbour reads": a_neighbour_reads,
}


def test_messages(golden):
    texts = []
    for name, case in RACES.items():
        with pytest.raises(RaceError) as caught:
            make_nest(case())
        texts.append(f"{name}\n{caught.value}\n")
    golden("races.txt", "\n".join(texts))


@pytest.mark.parametrize("case", RACES)
def test_the_witness_is_real_and_the_smallest(case):
    kernel = RACES[case]()
    with pytest.raises(RaceError) as caught:
        make_nest(kernel)
    witness = caught.value.witness
    assert witness.kind == "race"
    size = witness.parameters.get("n", 1)
    for n in range(1, size + 1):
        launch = Launch(kernel, {"n": n})
        _, hopeless = meetings(launch)
        assert (hopeless or launch.crosses_blocks()) == (n == size)
    for instance in (witness.source, witness.sink):
        statement = kernel.statement_by_id[instance.statement]
        assert dict(instance.inames) in list(launch.runs(statement))
        touched = [cell for cell, _ in launch.cells(statement, dict(instance.inames))]
        assert (witness.array, witness.cell) in touched


def test_blocks_that_keep_to_their_cells():
    k = blocks(
        [("put", at("b", WHOLE), 1, "gt"), ("get", at("c", WHOLE), at("b", WHOLE), "gt")],
        ("put", "get"),
    )
    make_nest(k)


def test_one_block_has_nobody_to_race_with():
    k = blocks(
        [("put", at("b", T), 1, "t"), ("get", at("c", T), at("b", plus(T, 1)), "t")],
        ("put", "get"),
        tags={"t": LocalAxis(0)},
    )
    make_nest(k)


def test_sizes_that_leave_one_block():
    make_nest(between_blocks(assume="1 <= n <= 16"))


def test_each_block_has_its_own_shared_memory():
    k = blocks(
        [("put", at("s", T), 1, "gt"), ("get", at("c", WHOLE), at("s", plus(T, 1)), "gt")],
        ("put", "get"),
        shared={"s": 1},
    )
    make_nest(k)


def test_where_data_decides_who_runs():
    """Such kernels were asked for assertions, and none of those is looked at again."""
    k = blocks([("set", at("s", 0), 1, "gt")], ("set",), shared={"s": 1})
    (statement,) = k.statements
    condition = prim.Comparison(at("a", WHOLE), ">", 0)
    make_nest(k.with_(statements=(replace(statement, predicates=(condition,)),)))


def test_a_schedule_that_nobody_checked():
    """What a transform would refuse is refused by the code generator, too."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        ["b[i] = a[i]", "c[i] = b[i + 1]"],
        [lk.GlobalArg("b", "float32", shape=("n + 1",)), ...],
        dtypes={"a, c": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 64, unchecked=True)
    knl = knl.tag_inames("i_outer:g.0, i_inner:l.0", unchecked=True)
    with pytest.raises(
        RaceError, match=r"i_outer=1, i_inner=0\] and .*i_outer=0, i_inner=63\] touch b\[64\]"
    ):
        knl.cuda()


def copies_of_statements(r: random.Random) -> Kernel:
    """Statements written out that touch cells of one array, on threads and mostly on blocks."""
    count, threads = r.randint(2, 6), r.choice([8, 64])
    cells = []
    for number in range(4):
        rows = r.choice([0, 1, 2, 8, 16, threads])
        index = f"{r.choice([1, 1, 1, -1, 2])}*t + {rows}*i + {r.randint(70, 74)}"
        if number % 2 and r.random() < 0.3:
            index = f"({index}) // {r.randint(2, 3)}"
        block = r.choice([0, 3, threads, *[rows * count + threads] * 3])
        cells.append(f"{index} + {block}*b")
    rows = r.choice(["", "", "i, ", "2*i, "])
    guards = ["", "", f"if=t + {threads // 8}*i < {threads - 2}", f"if=t < {threads // 2}"]
    text = "\n".join(
        f"<> v{n} = z[{rows}{cells[n + 1]}] {{{guard}}}\nz[{rows}{cells[n]}] = v{n} + 1 {{{guard}}}"
        for n, guard in ((0, r.choice(guards)), (2, r.choice(guards)))
    )
    knl = lk.make_kernel(
        f"{{ [b, t, i]: 0 <= b < m and 0 <= t < {threads} and 0 <= i < {count} }}",
        text.replace(" {}", ""),
        dtypes={"z": "float32"},
        assumptions="m >= 1",
    )
    tags = {"t": "l.0", **({"b": "g.0"} if r.random() < 0.3 else {})}
    return (
        knl.prioritize_loops("b,i,t", unchecked=True).unroll("i").tag_inames(tags, unchecked=True)
    )


@pytest.mark.share(5)
@pytest.mark.parametrize("first", range(0, 24, 8))
def test_one_question_tells_what_many_do(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pairs one by one, and of families of them, in lowering and in the proof of its code.

    Barriers are taken out of the code: then threads meet in many cells.
    """
    outcomes = []
    for seed in range(first, first + 8):
        found = []
        for many in (0, 10**9):
            for module in ("codegen.conflicts", "codegen.proof.conflict_check"):
                monkeypatch.setattr(f"loopkit.{module}._MANY", many)
            knl = copies_of_statements(random.Random(seed))
            try:
                nest = str(make_nest(knl))
            except RaceError as error:
                found.append(str(error))
                continue
            program = knl.program()
            bare = replace(program, source=re.sub(r"__sync\w+\(\);", "", program.source), lines=())
            proofs = [prove_program(knl, each) for each in (program, bare)]
            assert proofs[0].ok
            places = [(f.kind, f.lines, f.array) for f in proofs[1].findings]
            found.append((nest, places, proofs[1].undecided))
        assert found[0] == found[1], seed
        outcomes.append(found[0])
    assert any(isinstance(found, str) for found in outcomes)
    assert any(not isinstance(found, str) and found[1] for found in outcomes)
