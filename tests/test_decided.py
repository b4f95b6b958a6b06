"""Steps that take isl long, found at random: each has an answer within the budget of a step."""

from __future__ import annotations

import pytest

import loopkit as lk
from loopkit import _budget


def two_parts() -> lk.Kernel:
    """A domain in two parts, and a statement that reads what others write elsewhere."""
    return lk.make_kernel(
        ["{ [i, k]: 0 <= i < n and 0 <= k < n }", "{ [j]: 0 <= j < 2 or 4 <= j < n }"],
        """
        for i
            for j
                y[j, i] = product(k, a[i])
                <> t1 = a[i] + if(j >= 1, v[j - 1], a[j]) + i + j
                y[j, i] = t1 + y[i, j + i]
            end
        end
        """,
        dtypes={"a, v, y": "float64"},
        assumptions="n >= 1",
    )


def three_writers() -> lk.Kernel:
    """One array that three nests write, split four times."""
    knl = lk.make_kernel(
        ["{ [i]: 1 <= i <= n }", "{ [j]: 1 <= j < n }", "{ [k]: -2 <= k < n }"],
        """
        for i
            v[i] = g[col[i]]
        end
        for j
            q[col[j + 1]] = 1 - q[col[j + 1]]
            v[j] = v[j + 1] + a[2*j + 1]
        end
        for k
            for j
                <> t1 = v[k + 2] + k
                v[2*j + 1] = t1 + d[j - 1, k + 2]
            end
        end
        """,
        [lk.GlobalArg("g", "int32", shape="n + 2"), lk.GlobalArg("q", "int32", shape="n + 2"), ...],
        dtypes={"a, col, d, g, q, v": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 5).split_iname("i_outer", 2).peel_iname("i_inner", first=2, last=0)
    return knl.split_iname("i_outer_inner", 5, inner_tag="l.0", outer_tag="g.0")


def by_data() -> lk.Kernel:
    """Updates of cells that data choose, in a domain in two parts, beside a condition on data."""
    knl = lk.make_kernel(
        [
            "{ [i]: 0 <= i < m }",
            "{ [j]: 0 <= j <= i or i + 2 <= j < m }",
            "{ [k]: 0 <= k < n and k mod 2 = 0 }",
        ],
        """
        for i
            for j
                for k
                    q[col[j]] = c[k, i] - q[col[j]] + i + k
                    if d[0, i] > 3
                        x[k, 2*j + 1] = x[2*j + 1, k] + e[i, k + 2, 2*j + 0] + i
                    else
                        <> t1 = c[k + i, i + 1] + i + j + k
                    end
                end
            end
        end
        """,
        [lk.GlobalArg("q", "uint32", shape="n + 2"), ...],
        dtypes={"c": "uint8", "col, x": "int8", "d": "uint16", "e": "int16", "q": "uint32"},
        assumptions="n, m >= 2",
    )
    return knl.split_iname("j", 3, inner_tag="unr")


def test_a_read_in_two_parts_is_refused() -> None:
    with pytest.raises(lk.IllegalTransformError, match=r"before 'insn_1' .* has read it"):
        two_parts().split_iname("i", 16, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))


def test_a_race_of_three_writers_is_refused() -> None:
    with pytest.raises(lk.RaceError, match="nothing orders the two"):
        three_writers().split_iname("j", 2, outer_tag="g.1", inner_tag="l.1", slabs=(1, 0))


def test_updates_by_data_are_proven() -> None:
    assert by_data().split_iname("i", 8, slabs=(1, 0)).history[-1].verdict == "proven"


def test_what_was_found_wrong_is_told_though_isl_did_not_end() -> None:
    """Half of what it takes to ask everything is enough for the first violation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_budget, "STEP", 200_000)
        with pytest.raises(lk.IllegalTransformError):
            two_parts().split_iname("i", 16, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))
