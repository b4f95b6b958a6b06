"""Each kind of suggestion, with what it says."""

from __future__ import annotations

import pytest
from refusals.case import do
from refusals.everything import CASES
from suggestion_kernels import (
    BLOCKS,
    applied,
    changed_between,
    corner,
    deep_grid,
    grid,
    making,
    recurrence,
    refusal,
    shift_by,
    stencil,
    summed,
    three_loops,
    tile,
    two_loops,
    values_in_turn,
)

FAMILIES = {
    "fewer tags": (
        corner,
        do("tag_inames", "i:g.0, j:g.1"),
        "legal with 'i' and 'j' sequential (leave the tags out)",
    ),
    "one tag less": (
        lambda: stencil(),
        do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
        "legal with 'i_outer' sequential: .split_iname('i', 8, inner_tag='l.0')",
    ),
    "a shorter tile": (
        lambda: recurrence(5),
        do("split_iname", "i", 8, inner_tag="l.0"),
        "legal with inner_length 5: .split_iname('i', 5, inner_tag='l.0')",
    ),
    "another memory": (
        tile,
        do("tag_inames", "i:l.0, j:l.0"),
        (
            "legal if 't' is shared by the threads of a block: "
            ".set_temporary_address_space('t', 'shared').tag_inames('i:l.0, j:l.0')"
        ),
    ),
    "an axis": (
        values_in_turn,
        do("prioritize_loops", "j, i"),
        (
            "legal if 't' has an axis for 'i': "
            ".privatize_temporaries_with_inames('i', only_var_names='t').prioritize_loops('j, i')"
        ),
    ),
    "an axis for a strip": (
        lambda: values_in_turn("m"),
        do("prioritize_loops", "j, i"),
        (
            "legal in strips, if 't' has an axis for 'i_inner': .split_iname('i', 16)"
            ".privatize_temporaries_with_inames('i_inner', only_var_names='t')"
            ".prioritize_loops('i_outer, j, i_inner')"
        ),
    ),
    "a copy for one reader": (
        changed_between,
        do("add_prefetch", "a", "p, r", default_tag=None),
        (
            "legal for 'use' alone: "
            ".add_prefetch('a', sweep_inames='p, r', default_tag=None, within='id:use')"
        ),
    ),
    "everywhere": (
        lambda: making(
            "{ [i]: 1 <= i < n }",
            """
            for i
                a[i] = b[i - 1] {id=one}
                b[i] = 2*a[i] {id=two}
            end
            """,
            "a, b",
        ),
        do("split_iname", "i", 4, within="id:two"),
        "legal around all statements: .split_iname('i', 4)",
    ),
    "another order": (
        deep_grid,
        do("prioritize_loops", "k, j, i"),
        "legal in the order k, i, j: .prioritize_loops('k, i, j')",
    ),
    "skewing strips": (
        lambda: grid().split_iname("j", 4),
        do("prioritize_loops", "j_outer, j_inner, i"),
        (
            "legal after skewing 'j_outer' by 'i': "
            ".map_domain('{ [i, j_outer] -> [w, i]: w = j_outer + i }')"
            ".prioritize_loops('w, j_inner, i')"
        ),
    ),
    "skewing": (
        grid,
        do("prioritize_loops", "j, i"),
        "legal after skewing 'j' by 'i': .map_domain('{ [i, j] -> [w, i]: w = j + i }')",
    ),
    "the other order in a map": (
        recurrence,
        do("map_domain", "{ [i] -> [r, q]: i = 4*q + r and 0 <= r < 4 }"),
        "legal in the order q, r: .map_domain('{ [i] -> [q, r]: i = 4*q + r and 0 <= r < 4 }')",
    ),
    "the other loop of a map": (
        stencil,
        do("map_domain", "{ [t, i] -> [t', i]: t' = -t }"),
        (
            "legal with the loops exchanged in the map: "
            """.map_domain("{ [t, i] -> [t, i']: i' = -i }")"""
        ),
    ),
    "another skew": (
        corner,
        do("map_domain", "{ [i, j] -> [w, i]: w = i - j }"),
        "legal with w = i + j: .map_domain('{ [i, j] -> [w, i]: w = i + j }')",
    ),
    "threads, not blocks": (
        two_loops,
        do("tag_inames", "i:g.0"),
        (
            "legal on threads of one block, which can wait for each other: "
            ".split_iname('i', 32, inner_tag='l.0')"
        ),
    ),
    "another loop": (
        summed,
        do("tag_inames", "i:g.0"),
        "legal along 'j' instead: .tag_inames('j:g.0')",
    ),
    "a wavefront": (
        corner,
        do("split_iname", "i", 16, inner_tag="l.0"),
        (
            "legal as a wavefront over 'i' and 'j': .map_domain('{ [i, j] -> [w, j]: w = i + j }')"
            ".split_iname('j', 16, inner_tag='l.0')"
        ),
    ),
    "sizes": (
        shift_by,
        BLOCKS,
        "legal for n <= d: .assume('n <= d').split_iname('i', 8, outer_tag='g.0', inner_tag='l.0')",
    ),
    "small sizes": (
        recurrence,
        do("tag_inames", "i:g.0"),
        "legal for n <= 2: .assume('n <= 2').tag_inames('i:g.0')",
    ),
    "two launches": (
        two_loops,
        BLOCKS,
        (
            "legal in two launches: .add_barrier(insn_before='id:make', insn_after='id:use')"
            ".split_iname('i', 8, outer_tag='g.0', inner_tag='l.0')"
        ),
    ),
    "three launches": (
        three_loops,
        do("tag_inames", "i:g.0, j:g.0, k:g.0"),
        (
            "legal in three launches: .add_barrier(insn_before='id:first', insn_after='id:second')"
            ".add_barrier(insn_before='id:second', insn_after='id:third')"
            ".tag_inames('i:g.0, j:g.0, k:g.0')"
        ),
    ),
    "a launch for each step of time": (
        stencil,
        BLOCKS,
        (
            "legal with a launch for each 't': .add_barrier(insn_before='id:s', within_inames='t')"
            ".split_iname('i', 8, outer_tag='g.0', inner_tag='l.0')"
        ),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_family(name: str) -> None:
    make, step, expected = FAMILIES[name]
    kernel = make()
    error = refusal(kernel, step)
    assert expected in error.suggestions, str(error)
    assert str(error).endswith("\n".join(error.suggestions))
    for line in error.suggestions:
        applied(kernel, line)


def test_several_assertions() -> None:
    """Assertions of which one alone is not enough."""
    case = CASES["a scatter through two arrays over threads"]
    error = refusal(case.kernel(), case.illegal)
    [found] = [line for line in error.suggestions if "data" in line]
    assert found.startswith("legal if the data allows it: .assume_")
    assert all(f"assume_injective('{name}')" in found for name in "pq")
    applied(case.kernel(), found)
