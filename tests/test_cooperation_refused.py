"""What threads cannot do together is refused, with a case in which it goes wrong.

Scans are in `test_scans.py`, more of atomic updates in `test_atomics_refused.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seams import prove_source

import loopkit as lk

Refused = Callable[[], Any]


def rows(text: str, **more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, p]: 0 <= i < n and 0 <= j < m and 0 <= p < m }",
        text,
        dtypes={", ".join(name for name in "xyh" if f"{name}[" in text): "float32", **more},
        assumptions="n, m >= 1",
    )


def over_blocks() -> lk.Kernel:
    return rows("y[i] = sum(j, x[i, j]) {id=store}").tag_inames("j: g.0")


def tree(length: int, steps: str) -> lk.Kernel:
    """A tree of 16 cells of each row, whose first steps are given."""
    return lk.make_kernel(
        [
            "{ [i, p, q, r]: 0 <= i < n and 0 <= p < 16 and 0 <= q < 8 and 0 <= r < 4 }",
            f"{{ [t]: 0 <= t < {length} }}",
        ],
        f"""
        for i
            <> a[p] = x[i, p]                  {{id=fill}}
            {steps}
            y[i] = a[0]                        {{id=store}}
        end
        """,
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).set_temporary_address_space("a", "shared")


def in_one_step() -> lk.Kernel:
    """What one thread adds another one has changed: no barrier stands inside a statement."""
    knl = tree(12, "a[t] = a[t] + a[t + 4] {id=step}")
    return knl.tag_inames("i: g.0, p: l.0, t: l.0")


def plain_read() -> lk.Kernel:
    text = "h[0] = h[0] + x[i, 0] {atomic, id=add}\ny[j] = h[0] {id=look}"
    return rows(text).tag_inames("i: g.0, j: g.0")


def live_temporaries() -> lk.Kernel:
    knl = rows(
        """
        for i
            <> s[j] = x[i, j]       {id=fill}
            <> t[p] = s[m - 1 - p]  {id=turn}
            y[i, j] = t[j] + s[j]   {id=use}
        end
        """
    )
    return (
        knl.fix_parameters(m=8)
        .set_temporary_address_space("s, t", "shared")
        .alias_temporaries("s, t")
    )


def lost_private_value() -> lk.Kernel:
    knl = rows("for i\n<> t = x[i, 0] {id=load}\ny[i] = t {id=store}\nend")
    return knl.set_temporary_address_space("t", "private").add_barrier("id:load", "id:store")


def in_a_loop_of_some() -> str:
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i < n and 0 <= j < m }", "{ [k]: 0 <= k < count }"],
        "for i\n<> count = h[i]\nfor k\ny[i, k] = sum(j, x[i, j])\nend\nend",
        [lk.GlobalArg("y", "float32", shape="n, n"), ...],
        dtypes={"x": "float32", "h": "int32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("j", 32, inner_tag="l.0").split_iname("i", 4, inner_tag="l.1")
    return knl.cuda()


CASES: dict[str, tuple[Refused, str, str, str, str, dict[str, int]]] = {
    "a reduction over blocks": (
        over_blocks, "race", "acc", "store_update", "store_update", {"n": 1, "m": 2},
    ),
    "a tree without barriers": (in_one_step, "race", "a", "step", "step", {"n": 1}),
    "an atomic update beside a plain read": (
        plain_read, "race", "h", "add", "look", {"n": 2, "m": 1},
    ),
    "storage of values that are needed": (
        live_temporaries, "aliased", "s", "turn", "use", {"n": 1, "m": 8},
    ),
    "a private value and the end of a launch": (
        lost_private_value, "place", "t", "load", "store", {"n": 1, "m": 1},
    ),
    "threads combine in a loop of some": (
        in_a_loop_of_some, "divergent", "acc", "insn_0_update", "insn_0_update", {"n": 2, "m": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused_with_a_witness(name: str) -> None:
    refused, kind, array, source, sink, sizes = CASES[name]
    with pytest.raises(lk.LoopkitError) as caught:
        refused()
    assert isinstance(caught.value, (lk.IllegalTransformError, lk.RaceError))
    witness = caught.value.witness
    assert witness is not None and (witness.kind, witness.array) == (kind, array)
    assert witness.source is not None and witness.sink is not None
    assert {witness.source.statement, witness.sink.statement} == {source, sink}
    assert witness.parameters == sizes
    said = str(caught.value)
    assert all(f"{size} = {value}" in said for size, value in sizes.items())
    assert f"'{source}'" in said and f"'{sink}'" in said


def test_a_tree_whose_text_lost_a_barrier() -> None:
    steps = "a[q] = a[q] + a[q + 8] {id=first}\na[r] = a[r] + a[r + 4] {id=second}"
    knl = tree(1, steps).tag_inames("i: g.0, p: l.0, q: l.0, r: l.0")
    source = knl.cuda()
    assert knl.prove().ok and source.count("__sync") >= 2
    lines = source.split("\n")
    for at in [number for number, line in enumerate(lines) if "__sync" in line]:
        (finding, *_) = prove_source(knl, "\n".join(lines[:at] + lines[at + 1 :])).findings
        assert finding.kind == "barrier" and finding.second is not None
