"""Loops written out."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Golden
from pace import seconds, timed
from seams import Loop

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def product() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j < n and 0 <= k < 4 }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        dtypes={"a, b, c": "float64"},
        name="product",
    )


def triangle() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 4 and 0 <= j <= i and j < n }",
        "c[i, j] = c[i, j] + 10*i + j",
        dtypes={"c": "int64"},
        name="triangle",
    )


def test_generated_texts(golden: Golden) -> None:
    """A sum's loop, a tile's loop inside of blocks and threads, and a ragged one."""
    tiles = product().split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").unroll("k")
    rows = product().split_iname("i", 2).unroll("i_inner").unroll("k")
    ragged = triangle().unroll("j")
    golden("unroll.txt", "\n\n".join(f"{k}\n\n{k.cuda()}" for k in (tiles, rows, ragged)))


@pytest.mark.host
@pytest.mark.parametrize("n", [1, 2, 3, 5, 33])
def test_written_out_loops_run(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(size=(n, 4)), rng.uniform(size=(4, n))
    for knl in (
        product().unroll("k"),
        product().split_iname("k", 2).unroll("k_outer").unroll("k_inner"),
        product().split_iname("i", 3).unroll("i_inner"),
        product()
        .split_iname("j", 3, outer_tag="g.0")
        .split_iname("i", 4, inner_tag="l.0")
        .unroll("j_inner"),
    ):
        assert knl.prove().ok
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=1)(a=a, b=b)
            np.testing.assert_allclose(found, a @ b, rtol=1e-12)
    i, j = np.ogrid[:4, : min(n, 4)]
    want = np.where(j <= i, 10 * i + j, 0)
    for knl in (triangle().unroll("i"), triangle().unroll("j"), triangle().unroll("j").unroll("i")):
        c = np.zeros(want.shape, "int64")
        knl.executor("host")(c=c, n=n)
        np.testing.assert_array_equal(c, want)


def test_loops_inside_and_scalars() -> None:
    """Loops inside get inames of their own only where they depend on the one that is gone."""
    knl = lk.make_kernel(
        "{ [t, i]: 0 <= t < 3 and 0 <= i < n }",
        """
        for t
            for i
                <> v = 2*x[i] + t   {id=v}
                y[t, i] = v         {id=y}
            end
            z[t] = t                {id=z}
        end
        """,
        dtypes={"x, y, z": "float64"},
    )
    new = knl.unroll("t")
    assert new.all_inames == ("i",)
    assert [n.iname if isinstance(n, Loop) else n for n in new.tree] == [
        "i",
        "z",
        "i",
        "z_1",
        "i",
        "z_2",
    ]
    assert new.prove().ok


def test_what_follows() -> None:
    """The copies are statements, which a step may choose."""
    knl = product().split_iname("k", 2).unroll("k_outer")
    updates = [s.id for s in knl.statements if s.operation]
    assert updates == ["insn_update", "insn_update_1"]
    assert lk.replay(product(), knl.history) == knl


def test_steps_of_time() -> None:
    """A loop that carries values is written out in its order."""
    heat = lk.make_kernel(
        "{ [t, i]: 0 <= t < 2 and 0 < i < n - 1 }",
        "for t, i\n u[t + 1, i] = u[t, i - 1] + u[t, i + 1]\nend",
        [lk.GlobalArg("u", "float64", (3, "n")), ...],
        assumptions="n >= 3",
    )
    assert heat.unroll("t").prove().ok


@pytest.mark.parametrize(
    ("iname", "why"),
    [
        ("i", "has no constant number of iterations but n"),
        ("q", "there is no iname 'q'"),
        ("far", "has 4,000 iterations"),
        ("b", "is tagged g.0, and is no loop"),
        ("unused", "no statement is inside 'unused'"),
        ("open", "has no constant number of iterations"),
    ],
)
def test_refusals(iname: str, why: str) -> None:
    knl = lk.make_kernel(
        [
            "{ [i, b]: 0 <= i, b < n }",
            "{ [far]: 0 <= far < 4000 }",
            "{ [unused]: 0 <= unused < 4 }",
            "{ [open]: 0 <= open < p0 and open < n }",
        ],
        """
        <> p0 = p[0]
        x[i] = 1
        y[b] = 1
        z[far] = 1
        w[open] = 1
        """,
        dtypes={"x, y, z, w": "float64", "p": "int32"},
    ).tag_inames("b: g.0")
    with pytest.raises(lk.LoopkitError) as refused:
        knl.unroll(iname)
    assert why in str(refused.value)


def test_loops_whose_length_others_bound() -> None:
    """A loop is as long as the loops around let it be, whatever its own domain leaves open."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 8 }", "[i] -> { [j]: 0 <= j and 4*j + i < 20 }"],
        "y[4*j + i] = 2*x[4*j + i]",
        dtypes={"x, y": "float32"},
    ).tag_inames("j: unr")
    assert "for (int j = 0; j < 5; ++j)" in knl.cuda()
    x = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(knl.executor("host")(x=x), 2 * x)
    assert knl.prove().ok


@pytest.mark.parametrize("length", [4, 8])
@pytest.mark.parametrize("tagged_first", [False, True])
def test_copies_with_scalars_of_their_own_and_a_rest_on_threads(
    length: int, tagged_first: bool
) -> None:
    """Each copy reads what it has made itself, whatever the others make: that is decided."""
    plain = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> u = a[i] + b[i]
            <> v = u*u
            c[i] = v + u
            if v > 4
                d[i] = u
            else
                d[i] = -v
            end
        end
        """,
        dtypes={"a, b, c, d": "float32"},
        assumptions="n >= 0",
    )
    knl = plain.split_iname("i", length, slabs=(0, 1))
    if tagged_first:
        knl = knl.split_iname("i_outer", 32, outer_tag="g.0", inner_tag="l.0").unroll("i_inner")
    else:
        knl = knl.unroll("i_inner").split_iname("i_outer", 32)
        knl = knl.tag_inames("i_outer_outer: g.0, i_outer_inner: l.0")
    assert knl.prove().ok
    a, b = np.arange(37, dtype=np.float32) % 5, np.arange(37, dtype=np.float32) % 3 - 2
    for n in (0, 1, 37):
        expected = plain.executor("reference")(a=a[:n], b=b[:n])
        for got, wanted in zip(knl.executor("host")(a=a[:n], b=b[:n]), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_threads_whose_range_the_loop_bounds() -> None:
    """A thread axis keeps its length, each copy its condition, whichever domain holds the axis."""
    for domains in (
        ["{ [i]: 0 <= i < 4 }", "[i] -> { [j]: 0 <= j <= i }"],
        ["{ [i, j]: 0 <= i < 4 and 0 <= j <= i }"],
    ):
        knl = lk.make_kernel(domains, "c[i, j] = c[i, j] + 10*i + j", dtypes={"c": "int64"})
        new = knl.tag_inames("j: l.0").unroll("i")
        assert new.prove().ok
        i, j = np.ogrid[:4, :4]
        c = new.executor("host")(c=np.zeros((4, 4), "int64"))
        np.testing.assert_array_equal(c, np.where(j <= i, 10 * i + j, 0))


def test_rules_of_copies() -> None:
    """A rule that speaks of the iname has a copy for each statement that is written out."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 3 }",
        "f(x) := a[i]*x\ng(x) := f(x) + x\nb[i] = g(2)\nc[i] = f(3)",
        dtypes={"a, b, c": "float64"},
    )
    new = knl.unroll("i")
    assert new.prove().ok
    a = np.arange(3.0) + 1
    b, c = new.executor("host")(a=a)
    np.testing.assert_array_equal((b, c), (2 * a + 2, 3 * a))


def test_many_copies_take_little_time() -> None:
    """Time is in proportion to the copies, with sums of their own and scalars, too."""

    def copies(count: int) -> float:
        knl = lk.make_kernel(
            f"{{ [i, j]: 0 <= i < {count} and 0 <= j < n }}",
            "<> t = 2*a[i]\nb[i] = t + sum(j, a[j])",
            dtypes={"a, b": "float32"},
        )
        return seconds(lambda: knl.unroll("i"))

    assert copies(800) < 4
    assert copies(800) < 4 * copies(200) * 2.5


@pytest.mark.parametrize("target", ["b[k, i]", "b[{count}*k + i]", "b[k, 2*i + 1]"])
@pytest.mark.parametrize("value", ["a[i]", "sum(j, a[j])", "if(a[k] > 0, a[i], c[k])"])
def test_many_copies_of_threads_take_little_time(target: str, value: str) -> None:
    """No copy is compared with each other one by one, where all run in many blocks, too."""

    def copies(count: int) -> float:
        where = f"0 <= i < {count} and 0 <= j < n and 0 <= k < m"
        knl = lk.make_kernel(
            f"{{ [i, j, k]: {where} }}",
            f"<> t = 2*a[i]\n{target.format(count=count)} = t + {value}",
            dtypes=dict.fromkeys("abc" if "c[" in value else "ab", "float32"),
        )
        knl = knl.split_iname("k", 128, outer_tag="g.0", inner_tag="l.0")
        return timed(lambda: knl.unroll("i"))[1]

    copies(10)
    assert copies(400) < 4 * copies(100) * 2.5


COPIES = {
    "on blocks": ("2*y[i, j] + j", "x[i, j]", "0 <= i < m and 0 <= j < {count}"),
    "in rows": ("2*y[{count}*i + j] + j", "x[{count}*i + j]", "0 <= i < m and 0 <= j < {count}"),
    "in place": ("2*x[i + 128*j]", "x[i + 128*j]", "0 <= i < 128 and 0 <= j < {count}"),
    "a stencil": ("y[i, j] + y[i + 1, j]", "x[i, j]", "0 <= i < m and 0 <= j < {count}"),
    "steps": ("x[j, i] + x[j, i + 2]", "x[j + 1, i + 1]", "0 <= i < 128 and 0 <= j < {count}"),
}
"""What is written out, a value and where it is stored: no two copies touch one cell, or few do."""


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_asked_about_at_once(name: str) -> None:
    """Code, and its proof, take time in proportion to the copies."""

    def taken(count: int) -> tuple[float, float]:
        value, target, domain = (text.format(count=count) for text in COPIES[name])
        types = {name: "float32" for name in "xy" if name in target + value}
        knl = lk.make_kernel(f"{{ [j, i]: {domain} }}", f"{target} = {value}", dtypes=types)
        threads = "l.0" if "128" in domain else "g.0"
        knl = knl.tag_inames({"i": threads}).unroll("j")
        code = timed(knl.cuda)[1]
        proof, proving = timed(knl.prove)
        assert proof.ok
        return code, proving

    taken(10)
    assert all(each < 2 for each in taken(800))


def test_a_tile_of_many_copies() -> None:
    """Copies that meet others, behind a barrier, in one tile of shared memory."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 25600*m }", "x[i] = y[i] + y[i + 1]", dtypes={"x, y": "float32"}
    )
    knl = knl.split_iname("i", 25600, outer_tag="g.0").split_iname("i_inner", 32, inner_tag="l.0")
    inner = ["i_inner_outer", "i_inner_inner"]
    knl = knl.add_prefetch("y", inner, default_tag="l.auto").unroll("i_inner_outer")
    assert timed(knl.cuda)[1] < 2
    proof, proving = timed(knl.prove)
    assert proof.ok and proving < 3


def test_many_statements_of_a_buffer_are_decided_soon() -> None:
    """Where numbers tell the cells of statements apart, no two of them are compared."""

    def buffered(count: int) -> float:
        text = "\n".join(f"b[i, {k}] = a[i, {k}]" for k in range(count))
        knl = lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"a, b": "float32"})
        knl = knl.split_iname("i", 32, outer_tag="g.0")
        return seconds(lambda: knl.buffer_array("b", ["i_inner"]))

    assert buffered(160) < 5
    assert buffered(160) < 4 * buffered(40) * 2.5
