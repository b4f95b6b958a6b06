"""Loops that end when data say so."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from conftest import Golden
from gallery import load
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import prove_source, step_from_json

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def mandelbrot() -> lk.Kernel:
    """How many iterations each point takes to leave the circle."""
    return lk.make_kernel(
        "{ [i, j, it]: 0 <= i < h and 0 <= j < w and 0 <= it < limit }",
        """
        for i, j
            <> re = float32(0)
            <> im = float32(0)
            <int32> n = 0
            for it while re*re + im*im <= 4
                <> t = re*re - im*im + x[j]
                im = 2*re*im + y[i]
                re = t
                n = n + 1
            end
            count[i, j] = n
        end
        """,
        dtypes={"x, y": "float32", "count": "int32"},
        assumptions="h, w >= 1 and limit >= 0",
        name="mandelbrot",
    )


def newton() -> lk.Kernel:
    """Square roots: each element takes as many steps as it needs."""
    return lk.make_kernel(
        "{ [i, it]: 0 <= i < n and 0 <= it < limit }",
        """
        for i
            <> r = a[i]
            for it
                <> next = 0.5*(r + a[i]/r)
                <> change = abs(next - r)
                r = next
                break if change <= 1e-12*r {id=settled}
            end
            root[i] = r
        end
        """,
        dtypes={"a, root": "float64"},
        assumptions="n, limit >= 1",
        name="newton",
    )


def searched() -> lk.Kernel:
    """A break inside of an `if`, one loop that ends inside of another, statements behind each."""
    return lk.make_kernel(
        "{ [r, i, j]: 0 <= r < n and 0 <= i < m and 0 <= j < l }",
        """
        for r
            <int32> seen = 0
            <int32> where = -1
            for i
                <int32> row = 0
                for j
                    if x[r, i, j] < 0
                        row = row + 100
                        break {id=negative}
                        row = 1000
                    end
                    row = row + 1
                    break if x[r, i, j] == 7
                    seen = seen + 1
                end
                best[r, i] = row
                if row >= 100
                    where = i
                    break {id=found}
                else
                    seen = seen + 10
                end
                seen = seen + 1
            end
            out[r] = seen
            place[r] = where
        end
        """,
        dtypes={"x": "float32", "best, out, place": "int32"},
        assumptions="n, m, l >= 1",
        name="searched",
    )


def searched_rows(x: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same in Python."""
    n, m, l = x.shape
    best = best.copy()
    out, place = np.zeros(n, np.int32), np.zeros(n, np.int32)
    for r in range(n):
        seen, where = 0, -1
        for i in range(m):
            row = 0
            for j in range(l):
                if x[r, i, j] < 0:
                    row += 100
                    break
                row += 1
                if x[r, i, j] == 7:
                    break
                seen += 1
            best[r, i] = row
            if row >= 100:
                where = i
                break
            seen += 11
        out[r], place[r] = seen, where
    return best, out, place


def sums() -> lk.Kernel:
    """A reduction, whose bounds are loaded, in a loop that ends."""
    return lk.make_kernel(
        ["{ [i, it]: 0 <= i < n and 0 <= it < limit }", "{ [k]: first <= k < last }"],
        """
        for i
            for it
                <> first = start[it]
                <> last = start[it + 1]
                <> s = sum(k, a[k]*b[i])
                y[i, it] = s
                break if s > 10 {id=enough}
                z[i, it] = s + max(k, a[k])
            end
        end
        """,
        [
            lk.GlobalArg("a", shape="m"),
            lk.GlobalArg("start", shape="limit + 1"),
            ...,
        ],
        dtypes={"a, b, y, z": "float64", "start": "int32"},
        assumptions="n, limit >= 1",
        name="sums",
    )


def on_threads(knl: lk.Kernel, iname: str) -> lk.Kernel:
    return knl.split_iname(iname, 32, outer_tag="g.0", inner_tag="l.0")


def rng_data(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers, few of them negative or seven."""
    found = np.random.default_rng(seed).integers(-1, 40, shape)
    return found.astype(np.float32)


def test_generated_texts(golden: Golden) -> None:
    kernels = [
        mandelbrot(),
        on_threads(mandelbrot(), "j").tag_inames("i: g.1"),
        on_threads(newton(), "i").split_iname("it", 4),
        searched().tag_inames("r: g.0"),
        sums().tag_inames("i: g.0"),
    ]
    golden("breaks.txt", "\n\n".join(f"{knl}\n\n{knl.cuda()}" for knl in kernels))


@pytest.mark.host
@pytest.mark.parametrize(("h", "w", "limit"), [(1, 1, 0), (3, 5, 1), (5, 33, 17)])
def test_mandelbrot_counts(h: int, w: int, limit: int) -> None:
    y, x = np.linspace(-1.2, 1.2, h, dtype="f4"), np.linspace(-2, 0.6, w, dtype="f4")
    want = np.zeros((h, w), np.int32)
    for i, j in np.ndindex(h, w):
        re = im = np.float32(0)
        while want[i, j] < limit and re * re + im * im <= 4:
            re, im = re * re - im * im + x[j], np.float32(2) * re * im + y[i]
            want[i, j] += 1
    for knl in (mandelbrot(), on_threads(mandelbrot(), "j").tag_inames("i: g.1")):
        assert knl.prove().ok
        assert knl.prove(text=True).ok
        given = {"x": x, "y": y, "limit": limit}
        np.testing.assert_array_equal(knl.executor("reference")(**given), want)
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=1)(**given)
            np.testing.assert_array_equal(found, want)


@pytest.mark.host
def test_each_element_takes_the_steps_that_it_needs() -> None:
    a = np.random.default_rng(1).uniform(0.1, 1e6, 45)
    base = newton()
    for knl in (
        base,
        on_threads(base, "i"),
        on_threads(base, "i").split_iname("it", 4),
        on_threads(base, "i").split_iname("it", 4, inner_tag="unr"),
        on_threads(base, "i").split_iname("it", 2).unroll("it_inner"),
        on_threads(base, "i").split_iname("it", 4, slabs=(0, 1)),
        on_threads(base, "i").split_iname("it", 8).split_iname("it_inner", 2),
        on_threads(base, "i").rename_iname("it", "step"),
        on_threads(base, "i").affine_map_inames("it", "step", "step = it + 3"),
        on_threads(base, "i").fix_parameters(limit=30),
    ):
        assert knl.prove(text=True).ok
        sizes = {} if "limit" not in knl.arg_by_name else {"limit": 30}
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=1)(a=a, **sizes)
            np.testing.assert_allclose(found, np.sqrt(a), rtol=1e-15)


@pytest.mark.host
def test_what_never_runs_costs_nothing() -> None:
    """Loops of any length, one of them at the top of the tree, one in another."""
    a, limit = np.array([2.0, 1e4, 9.0]), 2_000_000_000
    for knl in (newton(), on_threads(newton(), "i").split_iname("it", 4)):
        for run in (knl.executor("reference"), knl.executor("host")):
            np.testing.assert_allclose(run(a=a, limit=limit), np.sqrt(a))
    first = lk.make_kernel(
        "{ [it, k]: 0 <= it, k < limit }",
        """
        <> at = 0
        for it
            <> low = 0
            for k while k < 3
                low = low + it
            end
            place[0] = it + low
            break if x[0] < it*it
        end
        """,
        dtypes={"x": "float32", "place": "int64", "at": "int64", "low": "int64"},
        assumptions="limit >= 1",
    )
    for run in (first.executor("reference"), first.executor("host")):
        found = run(x=np.float32([170]), place=np.zeros(1, np.int64), limit=limit)
        assert found[0] == 14 + 3 * 14


@pytest.mark.host
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 4, 3), (7, 1, 30), (33, 6, 5)])
def test_loops_in_loops_end_each_for_itself(sizes: tuple[int, int, int]) -> None:
    x = rng_data(sum(sizes), sizes)
    best = np.full(sizes[:2], -1, np.int32)
    want = searched_rows(x, best)
    for knl in (
        searched(),
        searched().tag_inames("r: g.0"),
        on_threads(searched(), "r"),
        on_threads(searched(), "r").split_iname("j", 2).split_iname("i", 3),
    ):
        assert knl.prove().ok
        runs = [knl.executor("host", order=order, seed=1) for order in ORDERS]
        for run in (knl.executor("reference"), *runs):
            for name, due in zip(("best", "out", "place"), want, strict=True):
                found = run(x=x, best=best.copy())
                np.testing.assert_array_equal(getattr(found, name), due)


@pytest.mark.host
def test_reductions_and_loaded_bounds_stand_in_loops_that_end() -> None:
    rng = np.random.default_rng(3)
    start = np.array([0, 2, 2, 5, 9], np.int32)
    a, b = rng.uniform(0, 9, 9), rng.uniform(0, 1, 35)
    given = {"a": a, "b": b, "start": start}
    empty = {"y": np.zeros((35, 4)), "z": np.zeros((35, 4))}
    want = sums().executor("reference")(**given, **{n: v.copy() for n, v in empty.items()})
    for knl in (sums(), on_threads(sums(), "i"), sums().split_iname("it", 3)):
        assert not knl.prove().findings
        for order in ORDERS:
            run = knl.executor("host", order=order, seed=1)
            found = run(**given, **{n: v.copy() for n, v in empty.items()})
            np.testing.assert_allclose(found.y, want.y)
            np.testing.assert_allclose(found.z, want.z)


def test_the_loop_that_ends_stays_in_its_order() -> None:
    for tag in ("l.0", "g.0"):
        with pytest.raises(lk.IllegalTransformError) as refused:
            newton().tag_inames({"it": tag})
        witness = refused.value.witness
        assert witness is not None
        assert witness.array in ("it_goes_on", "r", "next", "change")
    with pytest.raises(lk.IllegalTransformError):
        newton().prioritize_loops("it, i")


def test_nobody_waits_in_a_loop_that_ends() -> None:
    knl = lk.make_kernel(
        "{ [i, j, it]: 0 <= i, j < 128 and 0 <= it < limit }",
        """
        for it
            <> t[i] = x[it, i] {id=fill}
            y[it, j] = t[127 - j] {id=use}
            break if x[it, 0] > 0 {id=stop}
        end
        """,
        dtypes={"x, y": "float32"},
    )
    with pytest.raises(lk.IllegalTransformError, match="'stop' ends the loop") as refused:
        knl.tag_inames("i: l.0, j: l.0").cuda()
    assert "between 'fill' and 'use'" in str(refused.value)


@pytest.mark.parametrize(
    "steps",
    [
        lambda k: k.add_inames_to_insn("it", "id:fill"),
        lambda k: k.rename_iname("r", "it", existing_ok=True),
        lambda k: k.add_prefetch("c", "q", temporary_address_space="shared"),
        lambda k: k.add_prefetch("c", "q", default_tag=None).tag_inames("c_dim_1: l.0"),
    ],
)
def test_steps_that_add_exchanges_to_a_loop_that_ends_are_refused(
    steps: Callable[[lk.Kernel], lk.Kernel],
) -> None:
    knl = lk.make_kernel(
        "{ [i, j, it, r, q]: 0 <= i < n and 0 <= j, it, r, q < 8 }",
        """
        for i
            <> s[j] = 2*b[i] + j {id=fill}
            for r
                <> t[j] = b[i]*r {id=other}
                <> z[r] = t[7 - r] {id=turn}
            end
            <> v = b[i]
            for it
                break if b[i] > it {id=stop}
                v = v + s[7 - it] + z[it] + sum(q, c[it, q]) {id=use}
            end
            x[i] = v
        end
        """,
        [lk.GlobalArg("c", shape="8, 8"), ...],
        dtypes={"b, c, x": "float32"},
    ).tag_inames("j: l.0")
    assert "__sync" in knl.cuda()
    with pytest.raises(lk.IllegalTransformError, match="'stop' ends the loop") as refused:
        steps(knl)
    assert "gives a kernel for which no code can be generated" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("break", "this 'break' is in no loop"),
        ("for i\n  break if\nend", "needs a condition"),
        ("for i\n  break 2 if x[i] > 0\nend", "leaves the innermost 'for'"),
        ("for i\n  break i\nend", "leaves the innermost 'for'"),
        ("for i while\nend", "expected a condition"),
        ("while x[0] > 0\n  x[0] = 1\nend", "no 'while' without a 'for'"),
        ("for i\n  continue if x[i] > 0\n  x[i] = 1\nend", "there is no 'continue'"),
        ("for i\n  x[i] = 1\n  ... gbarrier\n  break if x[i] > 1\nend", "a launch cannot end"),
    ],
)
def test_what_is_no_loop_that_ends(text: str, why: str) -> None:
    with pytest.raises(lk.ParseError, match=why):
        lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"x": "float32"})


def jumps(knl: lk.Kernel, change: Callable[[str], str]) -> list[str]:
    """What the proof finds, or leaves open, in another text of a kernel."""
    proof = prove_source(knl, change(knl.cuda()))
    return [f.kind for f in (*proof.findings, *proof.undecided)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("goto after_it_outer;", "break;"),
        ("goto after_it_outer;  ", "goto elsewhere;  "),
        ("after_it_outer:;", ""),
        ("    after_it_outer:;", "    elsewhere:;"),
        ("// settled", ""),
        ("// settled", "// insn_2"),
        ("change <= 1e-12 * r", "change < 1e-12 * r"),
        ("change <= 1e-12 * r", "!(change <= 1e-12 * r)"),
        ("double change;", "double change;\n    bool it_goes_on;"),
        ("it_outer < (limit + 3) / 4", "it_outer < limit / 4"),
    ],
)
def test_a_jump_of_another_kind_is_found(old: str, new: str) -> None:
    knl = on_threads(newton(), "i").split_iname("it", 4)
    assert old in knl.cuda()
    assert jumps(knl, lambda text: text) == []
    assert jumps(knl, lambda text: text.replace(old, new))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("if (!(re * re + im * im <= 4.0f))\n                    break;", ""),
        ("stop\n", "stop\n                n = n + 1;"),
        ("break;  ", "n = n;  "),
        ("re = t;  ", "if (re < 0.0f) re = t;  "),
    ],
)
def test_what_a_loop_does_behind_its_end_is_found(first: str, second: str) -> None:
    knl = mandelbrot()
    text = knl.cuda()
    assert first in text
    assert jumps(knl, lambda text: text.replace(first, second))
    moved = text.replace("re = t;", "XX").replace("im = 2.0f * re * im + y[i];", "re = t;")
    assert jumps(knl, lambda _: moved.replace("XX", "im = 2.0f * re * im + y[i];"))


def test_lines_change_places_with_the_end_in_vain() -> None:
    """A line that stood behind the end, before it; and the other way round."""
    text = newton().cuda().split("\n")
    at = next(n for n, line in enumerate(text) if "break;" in line)
    early = [*text[: at - 2], text[at - 1], text[at], text[at - 2], *text[at + 1 :]]
    assert prove_source(newton(), "\n".join(early)).findings
    text = mandelbrot().cuda().split("\n")
    at = next(n for n, line in enumerate(text) if "break;" in line)
    late = [*text[: at - 1], text[at + 1], text[at - 1], text[at], *text[at + 2 :]]
    assert prove_source(mandelbrot(), "\n".join(late)).findings


def test_the_example(golden: Golden) -> None:
    """The Mandelbrot set of the gallery: nests, sources, costs, all proven."""
    texts = []
    for knl in load("mandelbrot").make().values():
        assert knl.prove().ok
        assert knl.prove(text=True).ok
        assert all(step.verdict == "proven" for step in knl.history)
        texts.append(f"{knl}\n\n{knl.cuda()}\n{knl.costs(h=21, w=70, limit=10)}")
    golden("breaks_mandelbrot.txt", "\n\n".join(texts))


@pytest.mark.host
@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_flag_in_other_memory_stays_a_variable(space: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\n break {if=x[i] > 5}\n y[i] = 2*x[i]\n end",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).set_temporary_address_space("i_goes_on", space)
    assert "break;" not in knl.cuda()
    assert knl.prove().ok
    x = np.float32([1, 2, 7, 3])
    found = knl.executor("host")(x=x, y=np.zeros(4, np.float32))
    assert found.tolist() == [2, 4, 0, 0]


def test_a_guard_that_a_line_changes_is_looked_at_again() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\n break\n y[i] = 2\n end",
        dtypes={"y": "float32"},
        assumptions="n >= 1",
    ).set_temporary_address_space("i_goes_on", "shared")
    text = knl.cuda()
    assert text.count("if (i_goes_on)") == 2 and knl.prove().ok
    first, second, rest = text.split("if (i_goes_on)")
    assert jumps(knl, lambda _: f"{first}if (i_goes_on) {{{second}{rest.replace(';', '; }', 1)}")


def test_steps_between_what_sets_a_flag_and_its_loop() -> None:
    """A prefetch in front of the loop, and a guard that asks for sizes."""
    fetched = lk.make_kernel(
        "{ [i]: 0 <= i < 8 }",
        "for i\n break if x[i] > 5\n y[i] = p[i]\n end",
        dtypes={"x, y, p": "float32"},
    ).add_prefetch("p", ["i"], fetch_bounding_box=True)
    guarded = (
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "for i\n y[i] = 1\n break if x[i] > 5\n end",
            dtypes={"x, y": "float32"},
        )
        .split_iname("i", 4, inner_tag="unr")
        .prioritize_loops("i_inner, i_outer", unchecked=True)
    )
    assert "goto" in guarded.cuda() and "break;" in fetched.cuda()
    assert fetched.prove().ok


def test_a_loop_that_ends_in_a_loop_that_only_its_lines_leave() -> None:
    """A copy that is made in any case keeps the outer loop going, for which lines have its flag."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        """
        for i
            break if b[i] > 5
            for k
                break if x[k, i] > 3
                y[k, i] = a[i]
            end
        end
        """,
        dtypes={"a, b, x, y": "float32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("k", 2).add_prefetch("a", ["k_inner"])
    assert knl.prove().ok and knl.prove(text=True).ok
    assert jumps(knl, lambda text: text) == []
    for old, new in (
        ("if (i_goes_on)\n                    y", "y"),
        ("if (i_goes_on && x", "if (x"),
        ("i_goes_on && x[", "i_goes_on || x["),
        ("i_goes_on = false", "i_goes_on = true"),
    ):
        assert old in knl.cuda()
        assert jumps(knl, lambda text, old=old, new=new: text.replace(old, new))


def test_a_loop_that_ends_in_another_launch_than_the_one_around_it() -> None:
    """The outer flag lies in global memory, where each line of the inner loop looks for it."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < m }",
        """
        for i
            break if b[i] > 5           {id=stop}
            for k
                break if x[k, i] > 3
                y[k, i] = a[i]          {id=put}
            end
            z[i] = y[0, i]              {id=last}
        end
        """,
        dtypes={"a, b, x, y, z": "float32"},
        assumptions="n, m >= 1",
    ).add_barrier("id:put", "id:last")
    assert knl.prove().ok and knl.prove(text=True).ok
    assert "i_goes_on[0] && x[" in knl.cuda()


def test_a_loop_that_ends_asks_for_flags_of_two_other_launches() -> None:
    """The flag of the third loop is set under those of the two around it, which lie in memory."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j < n and i <= k < i + 3 }",
        """
        for i
            break if i % 2 == 1
            for j
                break if v[i + 1] > 2         {id=stop}
                for k
                    break if w[k] > 3         {id=last}
                    x[i, j, k] = v[i]
                end
            end
        end
        """,
        dtypes={"v, w, x": "int32"},
        assumptions="n >= 1",
    ).add_barrier("id:stop", "id:start_1")
    assert jumps(knl, lambda text: text) == []
    for old, new in (
        ("if (i_goes_on[0] && j_goes_on[0] && w", "if (j_goes_on[0] && w"),
        ("if (i_goes_on[0] && j_goes_on[0] && w", "if (i_goes_on[0] && w"),
        ("if (i_goes_on[0] && j_goes_on[0] && w", "if (w"),
        ("if (i_goes_on[0] && j_goes_on[0])", "if (i_goes_on[0])"),
        ("if (i_goes_on[0] && j_goes_on[0])", "if (j_goes_on[0])"),
        ("if (i_goes_on[0] && j_goes_on[0])", "if (i_goes_on[0] || j_goes_on[0])"),
        ("j_goes_on[0] = false", "j_goes_on[0] = true"),
    ):
        assert old in knl.cuda()
        assert jumps(knl, lambda text, old=old, new=new: text.replace(old, new)), new


def test_a_flag_that_is_saved_is_looked_at_where_it_was_reloaded() -> None:
    """A flag inside is set for all sizes; nothing depends on what it is for those without loops."""
    knl = lk.make_kernel(
        "{ [i, j]: 1 <= i < m and 0 <= j < n }",
        """
        for i
            for j
                break if i % 2 == 0
                w[i, j] = g[i]
            end
            v[i] = g[i]
            break if i > 0
        end
        """,
        dtypes={"g, v, w": "int32"},
        assumptions="n, m >= 1",
    )
    knl = knl.peel_iname("i", first=0, last=1)
    knl = knl.add_barrier(insn_before="id:start_0", within_inames=[])
    knl = knl.save_and_reload_temporaries("id:start", within_inames=[])
    assert jumps(knl, lambda text: text) == []
    for old, new in (
        ("if (m >= 2)\n        i_goes_on = i", "if (m >= 3)\n        i_goes_on = i"),
        ("if (m >= 2)\n            for (int j", "for (int j"),
        ("i_goes_on = true;", "i_goes_on = i_goes_on;"),
        ("if (m >= 2 && i_goes_on)", "if (i_goes_on)"),
        ("if (i_last % 2 == 0 && i_goes_on)", "if (i_last % 2 == 0)"),
    ):
        assert old in knl.cuda(), old
        assert jumps(knl, lambda text, old=old, new=new: text.replace(old, new)), new


def test_a_loop_that_ends_is_kept_in_every_record() -> None:
    for base in (mandelbrot(), newton(), searched(), sums()):
        for knl in (base, base.split_iname(base.statements[-1].write[1][0].name, 4)):
            again = pickle.loads(pickle.dumps(knl))
            assert again == knl and again.key == knl.key and again.cuda() == knl.cuda()
            steps = json.loads(json.dumps([step.to_json() for step in knl.history]))
            again = lk.replay(base, [step_from_json(step) for step in steps])
            assert again.cuda() == knl.cuda()


PLACES = st.integers(0, 2)
STEPS = st.sampled_from(["none", "threads", "split", "slabs", "unroll", "blocks", "reversed"])


@pytest.mark.host
@settings(max_examples=8, deadline=None)
@given(PLACES, st.booleans(), STEPS, st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_loops_end_where_python_does(
    place: int, late: bool, step: str, n: int, m: int, seed: int
) -> None:
    """A `break` at any place of a body, by what is read or was computed, on any schedule."""
    lines = ["s = s + x[i, it]", "y[i, it] = s + it"]
    lines.insert(place, f"break if {'s' if late else 'x[i, it]'} > 3")
    knl = lk.make_kernel(
        "{ [i, it]: 0 <= i < n and 0 <= it < m }",
        "\n".join(["for i", "<> s = 0", "for it", *lines, "end", "z[i] = s", "end"]),
        dtypes={"x, y, z, s": "int32"},
        assumptions="n, m >= 1",
    )
    made = {
        "none": lambda: knl,
        "threads": lambda: knl.split_iname("i", 4, inner_tag="l.0"),
        "split": lambda: knl.split_iname("it", 3).tag_inames("i: g.0"),
        "slabs": lambda: knl.split_iname("it", 4, slabs=(0, 1)),
        "unroll": lambda: knl.split_iname("it", 2).unroll("it_inner"),
        "blocks": lambda: knl.split_iname("i", 2, outer_tag="g.0"),
        "reversed": lambda: knl.affine_map_inames("i", "r", "r = 0 - i"),
    }[step]()
    x = np.random.default_rng(seed).integers(-3, 6, (n, m), np.int32)
    y, z = np.full((n, m), -9, np.int32), np.zeros(n, np.int32)
    for i in range(n):
        total = 0
        for it in range(m):
            ends = []
            for line in lines:
                if line.startswith("break"):
                    ends.append((total if late else x[i, it]) > 3)
                    if ends[-1]:
                        break
                elif line.startswith("s"):
                    total += x[i, it]
                else:
                    y[i, it] = total + it
            if any(ends):
                break
        z[i] = total
    assert made.prove().ok
    for order in ORDERS:
        found = made.executor("host", order=order, seed=1)(x=x, y=np.full((n, m), -9, np.int32))
        np.testing.assert_array_equal(found.y, y)
        np.testing.assert_array_equal(found.z, z)


@pytest.mark.parametrize(
    ("body", "answers"),
    [
        ("break if x[i, it] > 0\ns = s + x[i, it]", {"equal"}),
        ("s = s + x[i, it]\nbreak if x[i, it] > 0", {"different", "undecided"}),
        ("break if x[i, it] >= 0\ns = s + x[i, it]", {"different", "undecided"}),
        ("s = s + x[i, it]", {"different", "undecided"}),
    ],
)
def test_verify_never_takes_one_end_for_another(body: str, answers: set[str]) -> None:
    first, second = (
        lk.make_kernel(
            "{ [i, it]: 0 <= i < n and 0 <= it < m }",
            f"for i\n<> s = 0*x[i, 0]\nfor it\n{lines}\nend\ny[i] = s\nend",
            dtypes={"x, y": "float32"},
            assumptions="n, m >= 1",
        )
        for lines in ("break if x[i, it] > 0\ns = s + x[i, it]", body)
    )
    assert lk.verify(first, second).answer in answers
    assert lk.verify(second, first).answer in answers
    assert lk.verify(second, second.split_iname("i", 8, inner_tag="l.0")).answer == "equal"


def in_loaded_rows(kind: str) -> lk.Kernel:
    """A loop that ends inside one whose length is loaded, or around it."""
    inner = """
        for s
            <> lo = 0
            for it
                break if lo > a[i] + s
                lo = lo + 2
            end
            total = total + lo
        end
    """
    outer = """
        for it
            break if total > a[i] + 9
            for s
                total = total + s + 1
            end
        end
    """
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [s]: 0 <= s < count }", "{ [it]: 0 <= it < limit }"],
        f"""
        for i
            <> count = num[i]
            <> total = 0
            {inner if kind == "inner" else outer}
            y[i] = total
        end
        """,
        dtypes={"num": "int32", "a, y": "int64"},
        assumptions="n, limit >= 0",
    )


def rows_by_hand(kind: str, num: np.ndarray, a: np.ndarray, limit: int) -> np.ndarray:
    """The same in Python."""
    y = np.zeros(len(num), np.int64)
    for i in range(len(num)):
        if kind == "inner":
            for s in range(num[i]):
                lo = 0
                for _ in range(limit):
                    if lo > a[i] + s:
                        break
                    lo += 2
                y[i] += lo
        else:
            for _ in range(limit):
                if y[i] > a[i] + 9:
                    break
                y[i] += sum(range(1, num[i] + 1))
    return y


@pytest.mark.parametrize("kind", ["inner", "outer"])
@pytest.mark.parametrize("limit", [0, 3, 500, 2**30])
def test_loops_that_end_within_loaded_bounds(kind: str, limit: int) -> None:
    """The reference executor takes iterations by pieces, of loops whose bounds data say, too."""
    if kind == "outer" and limit == 2**30:
        limit = 700  # one row has nothing to add, and goes on to the end
    num = np.array([1, 3, 0, 2], np.int32)
    a = np.array([150, -7, 3, 600], np.int64)
    knl = in_loaded_rows(kind)
    split = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").split_iname("it", 3)
    want = rows_by_hand(kind, num, a, limit)
    for one in (knl, split):
        for executor in ("reference", "host"):
            assert np.array_equal(one.executor(executor)(num=num, a=a, limit=limit), want)


def test_no_executor_runs_a_loop_without_bounds() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i }", "for i\nbreak if x[0] > 0\nx[0] = x[0] + 1\nend", dtypes={"x": "float32"}
    )
    for executor in ("reference", "host"):
        with pytest.raises(lk.LoopkitError, match="the loop over 'i' has no end"):
            knl.executor(executor)(x=np.array([-3], np.float32))


@pytest.mark.host
def test_what_is_staged_in_front_of_a_loop_that_ends() -> None:
    """The copy and its barrier stand between where the flag is set and the loop."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < limit }",
        """
        f(e) := 2*x[e]
        for i
            <> s = 0.0
            for j
                s = s + f(i) + f(i + 1)
                break if s > most
            end
            y[i] = s
        end
        """,
        [lk.GlobalArg("x", shape="n + 1"), ...],
        dtypes={"x, y, most": "float32"},
        assumptions="n >= 1 and limit >= 0",
    )
    x = np.linspace(-0.5, 3, 68, dtype=np.float32)
    want = np.zeros(67, np.float32)
    for i in range(67):
        for _ in range(5):
            want[i] += 2 * x[i] + 2 * x[i + 1]
            if want[i] > 20:
                break
    warp = on_threads(knl, "i")
    for staged in (
        warp.precompute("f", "i_inner"),
        warp.add_prefetch("x", "i_inner"),
        warp.add_prefetch("x", "i_inner").split_iname("j", 2),
        warp.split_iname("j", 2).precompute("f", "i_inner"),
        knl.split_iname("i", 64, inner_tag="l.0").precompute("f", "i_inner"),
    ):
        assert staged.prove(text=True).ok
        for order in ORDERS:
            run = staged.executor("host", order=order, seed=1)
            np.testing.assert_allclose(run(x=x, most=20, limit=5), want, rtol=1e-6)


@pytest.mark.host
def test_what_a_loop_computes_ahead_ends_with_it() -> None:
    """Values that each iteration computes once do not keep the loop from being left."""
    knl = lk.make_kernel(
        "{ [i, it]: 0 <= i < n and 0 <= it < 60 }",
        """
        f(t, c) := t*t*t - c
        for i
            <> low = 0.0
            <> high = 8.0
            for it while high - low > eps
                <> mid = 0.5*(low + high)
                if f(mid, a[i]) > 0
                    high = mid
                else
                    low = mid
                end
            end
            root[i] = low
        end
        """,
        dtypes={"a, root, eps": "float64"},
    )
    a = np.linspace(0, 300, 41)
    for base in (on_threads(knl, "i"), on_threads(knl, "i").split_iname("it", 4, inner_tag="unr")):
        ahead = base.precompute("f", [], default_tag=None)
        assert "it_goes_on" not in ahead.cuda()
        assert ahead.prove(text=True).ok
        for eps in (1e-9, 10.0):  # the second ends before `mid` is anything
            want = knl.executor("reference")(a=a, eps=eps)
            np.testing.assert_array_equal(ahead.executor("reference")(a=a, eps=eps), want)
            for order in ORDERS:
                found = ahead.executor("host", order=order, seed=1)(a=a, eps=eps)
                np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("lane", ["ilp", "unr"])
def test_what_copies_side_by_side_compute_before_they_end(lane: str) -> None:
    """The flags are an array then: what held when a value was computed still held before."""
    knl = lk.make_kernel(
        "{ [i, it]: 0 <= i < n and 0 <= it < 40 }",
        """
        for i
            <> t = 0*o[i]
            for it
                <int32> at = (7*it + q[i]) % 8
                <> d = sqrt(o[i]**2 + (t - 5)**2) - 1
                break if d < 1e-3 or table[at] > 6
                t = t + d
            end
            z[i] = t
        end
        """,
        [lk.GlobalArg("table", "int32", shape=8), ...],
        dtypes={"o, z": "float32", "q": "int32"},
        assumptions="n >= 1",
    ).split_iname("i", 4, inner_tag=lane)
    assert knl.prove().ok, knl.prove()
    rng = np.random.default_rng(1)
    data = {
        "o": rng.uniform(-2, 2, 13).astype("f4"),
        "q": rng.integers(0, 50, 13).astype("i4"),
        "table": np.array([0, 3, 5, 6, 7, 1, 2, 0], "i4"),
    }
    due = knl.executor("reference")(**data)
    for order in ORDERS:
        np.testing.assert_allclose(knl.executor("host", order=order)(**data), due, rtol=1e-6)
    if lane == "ilp":
        again = knl.cuda().replace("it_goes_on[i_inner] = false;", "it_goes_on[i_inner] = true;")
        assert again != knl.cuda()
        assert not prove_source(knl, again).ok


@pytest.mark.parametrize("condition", ["d[i, j] > 6", "j > 0", "d[i, j] + i > 9"])
def test_loops_that_end_inside_of_one_with_gaps(condition: str) -> None:
    """Between the parts of a domain the inner loop is entered too, and does nothing there."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 2 or 4 <= i < n }", "{ [j]: 0 <= j < 3 }"],
        f"""
        for i
            for j
                x[i, j] = d[i, j] + j
                break if {condition}
            end
            break if u[i] > 7
        end
        """,
        dtypes={"d, u, x": "int32"},
        assumptions="n >= 1",
    )
    assert knl.prove().ok, knl.prove()
    rng = np.random.default_rng(2)
    for n in (1, 5, 9):
        d, u = rng.integers(0, 10, (9, 3), dtype="i4"), rng.integers(0, 9, 9, dtype="i4")
        d, u = (a[: max(n, 2)] for a in (d, u))
        left = []
        for executor in ("reference", "host"):
            left.append(np.full_like(d, -1))
            knl.executor(executor)(d=d, u=u, x=left[-1], n=n)
        np.testing.assert_array_equal(*left)
    source, gap = str(knl.cuda()), "(i <= 1 || (i >= 4 && i < n))"
    assert source.count(gap) >= 2
    changes = {
        f"if {gap}\n": "if (i < n)\n",
        "break;": ";",
        "u[i] > 7": "u[i] > 6",
        "j < 3": "j < 2",
    }
    for old, new in changes.items():
        assert old in source and not prove_source(knl, source.replace(old, new)).ok


@pytest.mark.parametrize("split", [False, True])
def test_loops_that_end_one_after_another(split: bool) -> None:
    """One guard is around all of them, and the flag of each is set whatever that says."""
    knl = lk.make_kernel(
        "{ [a, s]: 1 <= a < k and 2 <= s < k }",
        """
        for a
            break if d[a] > 5
        end
        for a
            x[a] = d[a] + 1
            break if d[a] > 6
            break if d[a] + a > 9
        end
        for a
            y[a] = d[a] - 1
            break if a % 4 == 0
        end
        """,
        dtypes={"d, x, y": "int32"},
    )
    if split:
        knl = knl.split_iname("a", 3)
    assert knl.prove().ok, knl.prove()
    source = str(knl.cuda())
    for old, new in {"+ 1;": "+ 2;", "d[a] > 6": "d[a] > 7", "% 4": "% 2"}.items():
        old = old.replace("[a]", "[3 * a_outer + a_inner]") if split else old
        assert old in source and not prove_source(knl, source.replace(old, new)).ok


CHANGED_BELOW = """
for i
    for k
        break if v[i] > k {id=stop}
        v[i] = v[i] + c[k] {id=change}
    end
    for h
        x[i, h] = c[h]
    end
end
"""
CHANGED_ABOVE = """
for i
    for k
        v[i] = v[i] + c[k] {id=change}
        break if v[i] > 5 {id=stop}
    end
    for h
        x[i, h] = c[h]
    end
end
"""


@pytest.mark.parametrize("text", [CHANGED_BELOW, CHANGED_ABOVE], ids=["below", "above"])
def test_a_break_that_runs_again_finds_its_loop_left(text: str) -> None:
    """It ran for the same iteration: what it reads is what it read, and nothing is left to do."""
    domains = ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 4 }", "{ [h]: 0 <= h < 3 }"]
    plain = lk.make_kernel(domains, text, dtypes={"c, v, x": "int32"}, assumptions="n >= 1")
    knl = plain.add_inames_to_insn("h", "id:stop")
    assert knl.prove().ok
    rng = np.random.default_rng(3)
    c, v = (rng.integers(-3, 6, size).astype("int32") for size in (4, 9))
    want = plain.executor("reference")(c=c, v=v.copy())
    for order in ORDERS:
        for mine, its in zip(knl.executor("host", order=order)(c=c, v=v.copy()), want, strict=True):
            np.testing.assert_array_equal(mine, its)
    with pytest.raises(lk.IllegalTransformError, match="would overwrite"):
        plain.add_inames_to_insn("h", "id:stop or id:change")


@pytest.mark.parametrize("threads", [False, True])
def test_a_loop_without_iterations_needs_no_flag(threads: bool) -> None:
    """A guard leaves out rows without iterations, where the kernel sets the flag all the same."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: i < j < k }", "{ [l]: i + j < l < n + k }"],
        """
        for i
            <> s = 0
            for j
                break if x[i, j] > 3
                s = s + 1
                for l
                    break if x[i, l] > s
                    y[i, l] = s
                end
            end
            z[i] = s
        end
        """,
        dtypes={"x, y, z": "int32"},
        assumptions="n, k >= 1",
    )
    tags = {"outer_tag": "g.0", "inner_tag": "l.0"} if threads else {}
    knl = knl.split_iname("i", 4, **tags).split_iname("j", 5).split_iname("l", 3)
    assert knl.prove().ok and knl.prove(text=True).ok
    text, guard = knl.cuda(), "4 * i_outer + i_inner + 1 < k)"
    assert text.count(guard) == 1
    for wrong in ("+ 2 < k", "+ 1 < n"):
        assert prove_source(knl, text.replace(guard, guard.replace("+ 1 < k", wrong))).refuted
