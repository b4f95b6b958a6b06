"""Steps that take isl long, found at random: each has an answer within the budget of a step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from seams import budget as _budget

import loopkit as lk


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
    with pytest.raises(lk.RaceError, match="nothing orders the two"):
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


def queue_of_planes() -> lk.Kernel:
    """Planes in a queue of three: the last one is loaded while its neighbours are used."""
    return lk.make_kernel(
        [
            "{ [z, y, x]: 0 <= z < l and 0 <= y < 6 and 0 <= x < 30 }",
            "{ [z0, y0, x0]: 0 <= z0 < 2 and 0 <= y0 < 8 and 0 <= x0 < 32 }",
            "{ [y1, x1]: 0 <= y1 < 8 and 0 <= x1 < 32 }",
        ],
        """
        for z0, y0, x0
            q[z0, y0, x0] = u[z0, y0, x0] {id=first}
        end
        for z
            for y1, x1
                q[(z + 2) % 3, y1, x1] = u[z + 2, y1, x1] {id=next}
            end
            for y, x
                <> ends = q[z % 3, y + 1, x + 1] + q[(z + 2) % 3, y + 1, x + 1]
                v[z, y, x] = ends + q[(z + 1) % 3, y, x + 1] + q[(z + 1) % 3, y + 1, x + 2] {id=s}
            end
        end
        """,
        [lk.GlobalArg("u", "float32", "l + 2, 8, 32"), ...],
        temporary_variables={"q": lk.TemporaryVariable("q", "float32", (3, 8, 32))},
        dtypes={"v": "float32"},
        assumptions="l >= 1",
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_queue_of_planes_in_any_order_of_steps(order: tuple[int, ...]) -> None:
    knl = queue_of_planes()
    for number in order:
        if number == 3:
            knl = knl.set_temporary_address_space("q", "shared")
        else:
            suffix = ("", "0", "1")[number]
            knl = knl.tag_inames(f"y{suffix}: l.1, x{suffix}: l.0")
    assert knl.prove().ok


@pytest.mark.host
@pytest.mark.parametrize("outer", [None, "g.0"])
def test_threads_that_come_around_a_fetch(outer: str | None) -> None:
    """A fetch that is inside of what becomes threads is a loop on each of them."""
    knl = lk.make_kernel(
        [
            "{ [i]: 0 <= i < n }",
            "{ [b]: 0 <= 16*b < m }",
            "{ [q]: 0 <= q < 16 and q < m - 16*b }",
        ],
        """
        for i, b
            y[i, b] = sum(q, x[i]*v[16*b + q])
        end
        """,
        dtypes={"x, y, v": "float32"},
        assumptions="n, m >= 1",
    )
    late = knl.add_prefetch("v[16*b : 16*b + 16]", default_tag="l.auto")
    late = late.split_iname("i", 128, outer_tag=outer, inner_tag="l.0")
    assert late.prove().ok
    for n, m in ((1, 20), (130, 21)):
        x, v = np.arange(1, n + 1, dtype=np.float32), np.arange(1, m + 1, dtype=np.float32)
        want = np.outer(x, np.add.reduceat(v, range(0, m, 16)))
        for order in ("ascending", "descending", "random"):
            np.testing.assert_array_equal(
                late.executor("host", order=order, seed=1)(x=x, v=v), want
            )
