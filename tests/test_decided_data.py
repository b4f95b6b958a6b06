"""Cells and bounds that data decide: gathers, scatters and sparse rows at the checker's speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import sparse_kernels as sparse
from pace import timed
from seams import Change, check_change, parse_expression, prove_source

import loopkit as lk


def scatter(text: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        [lk.GlobalArg("y", "float32", shape="m"), lk.GlobalArg("x", "float32", shape="m"), ...],
        dtypes={"p": "int32", "q": "int32"} if "q" in text else {"p": "int32"},
        assumptions="n <= m",
    )


SCATTERS = ["y[p[i]] = x[i]", "<> k = p[i]\ny[k] = x[i]", "y[p[i]] = y[p[i]] + x[q[i]]"]


@pytest.mark.parametrize("text", SCATTERS)
def test_a_scatter_is_proven_to_the_end(text: str) -> None:
    knl = scatter(text).assume_injective("p")
    knl = knl.split_iname("i", 128).tag_inames({"i_outer": "g.0", "i_inner": "l.0"})
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    again = scatter(text).assume_injective("p").split_iname("i", 128)
    again = again.tag_inames("i_inner: l.0").tag_inames("i_outer: g.0")
    assert again.cuda() == knl.cuda()


def test_two_loads_into_one_integer_are_not_taken_for_one() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<int32> k = p[i]\ny[k] = x[i] {id=first}\nk = q[i]\ny[k] = x[i] {id=second}",
        [lk.GlobalArg("y", "float32", shape="m"), ...],
        dtypes={"x": "float32", "p": "int32", "q": "int32"},
    )
    knl = knl.assume_injective("p").assume_injective("q")
    knl = knl.tag_inames("i: l.0", unchecked=True)
    try:
        proof = knl.prove()
    except lk.LoopkitError:
        return
    assert not proof.ok


@pytest.mark.parametrize("name", sparse.ROWS)
def test_loops_with_loaded_bounds_take_milliseconds(name: str) -> None:
    knl = sparse.kernel(name)
    outer = "e" if name == "coo" else "i"
    steps = [
        lambda k: k.split_iname(outer, 128),
        lambda k: k.tag_inames({f"{outer}_outer": "g.0", f"{outer}_inner": "l.0"}),
    ]
    if name != "coo":
        steps += [
            lambda k: k.split_iname("j", 4),
            lambda k: k.tag_inames("j_inner: unr"),
            lambda k: k.rename_iname("j_outer", "jo"),
            lambda k: k.split_iname("jo", 8),
        ]
    times = []
    for step in steps:
        knl, taken = timed(partial(step, knl))
        times.append(taken)
        assert knl.history[-1].verdict == "proven"
    assert sorted(times)[len(times) // 2] < 0.2
    assert knl.prove().ok


PEELED: dict[str, Callable[[lk.Kernel], lk.Kernel]] = {
    "the first": lambda k: k.peel_iname("r", first=1, last=0),
    "the last": lambda k: k.peel_iname("r", first=0, last=1),
    "two and one": lambda k: k.peel_iname("r", first=2, last=1),
    "a first slab": lambda k: k.split_iname("r", 4, slabs=(1, 0)),
    "both slabs": lambda k: k.split_iname("r", 4, slabs=(1, 1)),
    "a first slab of tiles": lambda k: k.split_iname("r", 4).split_iname(
        "r_outer", 4, slabs=(1, 0)
    ),
}


@pytest.mark.host
@pytest.mark.parametrize("how", PEELED)
def test_iterations_of_a_loop_whose_bounds_are_loaded_stand_apart(how: str) -> None:
    """Both parts run from the bound that was loaded for the row, so one comes after the other."""
    text = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        """
        for i
            <> lo = ptr[i]
            for r
                v[i] = 2*v[i] + g[r]
            end
        end
        """,
        [lk.GlobalArg("g", "float64", shape="hi"), ...],
        dtypes={"v": "float64", "ptr": "int32"},
        assumptions="n >= 1 and hi >= 1",
    )
    knl = PEELED[how](text)
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    ptr, g = np.array([0, 3, 7, 20, 21, 22], np.int32), np.arange(21.0)
    want = np.zeros(6)
    for row, low in enumerate(ptr):
        for r in range(low, 21):
            want[row] = 2 * want[row] + g[r]
    for order in ("ascending", "descending", "random"):
        v = np.zeros(6)
        knl.executor("host", order=order)(g=g, ptr=ptr, v=v, hi=21)
        assert (v == want).all()


def test_a_sparse_product_is_right() -> None:
    knl = (
        sparse.kernel("csr")
        .split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", 4)
    )
    rng = np.random.default_rng(6)
    lengths = rng.integers(0, 7, 70)
    start = np.r_[0, lengths.cumsum()].astype(np.int32)
    column = rng.integers(0, 9, start[-1]).astype(np.int32)
    value = rng.integers(-3, 3, start[-1]).astype(np.float32)
    x = rng.integers(-3, 3, 9).astype(np.float32)
    expected = np.array([(value[a:b] * x[column[a:b]]).sum() for a, b in pairwise(start)])
    for order in ("ascending", "descending", "random"):
        y = knl.executor("host", order=order, seed=7)(start=start, column=column, value=value, x=x)
        assert (np.asarray(y) == expected).all()


# {{{ writes that are replaced for certain

REPLACED = "for j, k, h\n    y[p[j]] = d[k, h] + j\nend"
NEVER_READ = {
    "the inner loops": lambda k: k.prioritize_loops("h, k"),
    "all loops": lambda k: k.prioritize_loops("k, j"),
}
SEEN = {
    "what is left is another one": (REPLACED, lambda k: k.map_domain("{ [k] -> [l]: l = -k }")),
    "rows the other way round": (REPLACED, lambda k: k.map_domain("{ [j] -> [l]: l = -j }")),
    "a last tile": (
        REPLACED,
        lambda k: k.split_iname("k", 4).prioritize_loops("k_inner, k_outer"),
    ),
    "threads": (REPLACED, lambda k: k.tag_inames("k: g.0")),
    "read meanwhile": (
        REPLACED.replace("end", "    z[j, k, h] = y[j]\nend"),
        lambda k: k.prioritize_loops("h, k"),
    ),
    "only where data say": (
        REPLACED.replace("    y", "    if d[k, h] > 0\n    y").replace("end", "end\nend"),
        lambda k: k.prioritize_loops("h, k"),
    ),
}


def replacing(text: str) -> lk.Kernel:
    arrays = [lk.GlobalArg(name, "int32", shape="n") for name in "yp"]
    return lk.make_kernel(
        "{ [j, k, h]: 0 <= j < n and 0 <= k < m and 0 <= h < 8 }",
        text,
        [*arrays, ...],
        dtypes={"d": "int32", **({"z": "int32"} if "z" in text else {})},
        assumptions="n, m >= 1",
    )


@pytest.mark.host
@pytest.mark.parametrize("name", NEVER_READ)
def test_what_is_replaced_needs_no_order(name: str) -> None:
    knl = replacing(REPLACED)
    other = NEVER_READ[name](knl)
    assert other.history[-1].verdict == "proven" and other.prove().ok
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (7, 5), (13, 4)):
        p, d = rng.integers(0, n, n, dtype=np.int32), rng.integers(-9, 9, (m, 8), dtype=np.int32)
        expected = knl.executor("reference")(p=p, d=d, y=np.zeros(n, np.int32))
        found = other.executor("host")(p=p, d=d, y=np.zeros(n, np.int32))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", SEEN)
def test_what_can_be_seen_needs_one(name: str) -> None:
    text, step = SEEN[name]
    with pytest.raises(lk.UndecidedError) as caught:
        step(replacing(text))
    assert caught.value.witness is not None


# }}}
# {{{ subscripts of data and inames


@pytest.mark.parametrize(
    ("index", "length"),
    [("c[i] + i", 7), ("(c[i] + i) % 7", 7), ("(c[i] + i) % 7", 14), ("i + c[i] + c[i + 1]", 5)],
)
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_a_gather_beside_an_iname_is_split(index: str, length: int, dtype: str) -> None:
    """Subscripts are whole numbers: their terms are added in any order."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = x[{index}]",
        [lk.GlobalArg("x", shape="n + 400"), lk.GlobalArg("c", shape="n + 1"), ...],
        dtypes={"x, y": "int32", "c": dtype},
        assumptions="n >= 1",
    )
    split = knl.split_iname("i", length)
    fast = split.tag_inames("i_outer: g.0, i_inner: l.0")
    assert {step.verdict for step in fast.history} == {"proven"} and fast.prove().ok
    x, c = np.arange(460, dtype="int32"), (np.arange(61) * 7 % 200).astype(dtype)
    np.testing.assert_array_equal(
        fast.executor("host", order="random")(x=x, c=c, n=60),
        knl.executor("reference")(x=x, c=c, n=60),
    )


@pytest.mark.parametrize(
    "index", ["c[i] + i + 1", "i - c[i]", "(c[i] + i) % 8", "c[i]", "c[i + 1] + i"]
)
def test_another_subscript_beside_data_is_refuted(index: str) -> None:
    """What a step makes of a subscript is looked at, whatever data stand in it."""

    def gather(index: str) -> lk.Kernel:
        return lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            f"y[i] = x[{index}]",
            [lk.GlobalArg("x", shape="n + 400"), lk.GlobalArg("c", shape="n + 1"), ...],
            dtypes={"x, y, c": "int32"},
            assumptions="n >= 1",
        )

    knl = gather("c[i] + i")
    with pytest.raises(lk.IllegalTransformError, match="would compute something else"):
        check_change(knl, Change(knl.with_(statements=gather(index).statements)))


@pytest.mark.parametrize(
    ("index", "shape", "is_inside"),
    [
        ("c[i] % 8", 8, True),
        ("c[i] % 8", 7, False),
        ("c[i] % 8 + 3", 11, True),
        ("c[i] % 8 + 3", 10, False),
        ("7 - c[i] % 8", 8, True),
        ("8*(c[i] % 4) + c[i] % 8", 32, True),
        ("c[i] // 8", 8, False),
        ("c[i] & 7", 8, True),
    ],
)
def test_a_remainder_of_data_lies_in_its_array(index: str, shape: int, is_inside: bool) -> None:
    """Without any assertion: in a buffer, too, of which the text says nothing."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"h[{index}] = h[{index}] + 1 {{atomic}}",
        [lk.GlobalArg("h", shape=shape), ...],
        dtypes={"h, c": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 16).buffer_array("h", ["i_inner"], partial=True)
    assert knl.tag_inames("i_outer: g.0").prove().ok == is_inside


@pytest.mark.parametrize("update", ["t // 2 + 100", "t*t - 3", "min(t, 9) + t % 5", "-t", "t + 1"])
def test_values_that_are_computed_from_themselves_have_bounds(update: str) -> None:
    """Bounds that grow are looked at a few times; then they are those of the type."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"for i\n<> t = 5\nfor j\nt = {update}\nend\ny[i] = x[t % 8]\nend",
        [lk.GlobalArg("x", shape=8), ...],
        dtypes={"x": "float32", "t": "int32"},
    )
    fast = knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    assert fast.history[-1].verdict == "proven" and fast.prove().ok


# }}}


BRANCHES = {
    "else": "if x[i] > 0\n<> m = x[i]\nelse\nm = -2*x[i]\nend\ny[i] = m",
    "elif": "if x[i] > 0\n<> m = x[i]\nelif x[i] < -4\nm = 1\nelse\nm = 2\nend\ny[i] = m",
    "nested": "if x[i] > 0 and x[i] < 9\nif x[i] < 3\n<> m = x[i]\nelse\nm = 4\nend\n"
    "elif x[i] < -4 or x[i] > 100\nm = 1\nelse\nm = 2\nend\ny[i] = m",
    "two ifs": "if x[i] > 0\n<> m = x[i]\nend\nif not (x[i] > 0)\nm = 3\nend\n"
    "if x[i] > 0\ny[i] = m + 1\nelse\ny[i] = m\nend",
    "by a branch": "if i % 2 == 0\n<> c = x[i]\nelse\nc = x[i] - 2\nend\n"
    "if c > 1\n<> m = 1\nelse\nm = c\nend\ny[i] = c + m",
    "by nested branches": "if x[i] > 0\n<> c = x[i]\nelif x[i] < -2\nc = 2\nelse\nc = -x[i]\nend\n"
    "if c > 1\n<> m = 1\nelse\nm = c\nend\nif m > 0\n<> q = m\nelse\nq = c\nend\ny[i] = q",
    "by what a loop leaves": "<> c = x[i]\nfor j\nc = c + x[i] - j\nend\n"
    "if c > 1\n<> m = 1\nelse\nm = c\nend\ny[i] = m",
    "never": "if x[i] > 0\n<> m = x[i]\nelif x[i] > 2\nm = 1\nelse\nm = 2\nend\ny[i] = m",
    "loops": "if x[i] > 0\n<> t[j] = x[i] {inames=+j}\nelse\nt[k] = 3 {inames=+k}\nend\n"
    "y[i] = sum(l, t[l])",
    "inside": "<> s = 0\nfor j\n<> q = x[i] - j\nif q > 0\n<> m = q\nelse\nm = 1\nend\n"
    "s = s + m\nend\ny[i] = s",
}


def branches(text: str, **options: object) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j, k, l < 5 }",
        f"for i\n{text}\nend",
        [lk.GlobalArg("x, y", "float32", shape="n"), ...],
        **options,
    )


@pytest.mark.parametrize("name", BRANCHES)
def test_what_all_branches_write_is_a_threads_own(name: str) -> None:
    knl = branches(BRANCHES[name])
    fast = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert fast.history[-1].verdict == "proven"
    assert knl.prove().ok
    assert fast.prove().ok
    x = np.array([1, -1, 2, -3, 0, -7, 200], "f4")
    assert np.array_equal(fast.executor("host")(x=x), knl.executor("reference")(x=x))


NOT_ALL = {
    "other data": "if x[i] > 0\nm = x[i]\nend\nif not (z[i] > 0)\nm = 3\nend",
    "another element": "if x[i] > 0\nm = x[i]\nend\nif not (x[i + 1] > 0)\nm = 3\nend",
    "what changed": "<> c = x[i] > 0\nif c\nm = 1\nend\nc = z[i] > 0\nif not c\nm = 3\nend",
    "what may have changed": "<> c = x[i] > 0\nif c\nm = 1\nend\n"
    "if z[i] > 0\nc = x[i] > -5\nend\nif not c\nm = 3\nend",
    "twice the same": "if x[i] > 0\nm = x[i]\nend\nif x[i] > 0\nm = 3\nend",
    "two of three": "if x[i] > 0\nm = x[i]\nelif x[i] < -3\nm = 3\nend",
    "what a loop changes": "for j\n<> c = x[i] if j < 2 else z[i]\nif j < 2 and c > 0\nm = 1\nend\n"
    "end\nif not (c > 0)\nm = 3\nend",
}


@pytest.mark.parametrize("name", NOT_ALL)
def test_a_branch_that_is_missing_leaves_what_was_there(name: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 5 }",
        f"<> m = 0\nfor i\n{NOT_ALL[name]}\ny[i] = m\nend",
        [lk.GlobalArg("x, y, z", "float32", shape="n + 1"), ...],
        dtypes={"m": "float32"},
    )
    with pytest.raises(lk.IllegalTransformError):
        knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


@pytest.mark.parametrize("condition", ["x[i] > 2", "x[i] > 2 and i % 2 == 0"])
def test_a_write_does_not_happen_where_its_condition_does_not_hold(condition: str) -> None:
    """What is read in an iteration of all loops was not written in an earlier one of some."""
    knl = lk.make_kernel(
        "{ [time, i, k]: 0 <= time < m and 0 <= i < n and 0 <= k < 4 }",
        f"for time, i\n<> s[k] = x[i]*k\nif {condition}\n<> t = x[i]\nend\n"
        "y[i] = t + s[0] {id=last}\nend",
        [lk.GlobalArg("x", "float32", shape="n"), ...],
    )
    for step in (
        lambda knl: knl.set_temporary_address_space("s", "shared"),
        lambda knl: knl.add_barrier(insn_before="writes:s", insn_after="id:last"),
    ):
        assert step(knl).history[-1].verdict == "proven"
    with pytest.raises(lk.IllegalTransformError):
        knl.prioritize_loops("i, time")


@pytest.mark.parametrize("start", ["for i\n<> t = x[i]", "<> t = x[0]\nfor i"])
def test_writes_that_no_read_sees_together_need_no_order(start: str) -> None:
    """Where each iteration begins with a value of its own, the iterations may turn round."""
    text = f"{start}\nfor j\nt = t + x[i]\nbreak if t > 9\nend\ny[i] = t {{id=last}}\nend"
    knl = lk.make_kernel("{ [i, j]: 0 <= i < n and 0 <= j < 5 }", text, dtypes={"x": "float32"})
    knl = knl.add_barrier("id:stop", "id:last")
    if start.startswith("for"):
        back = knl.map_domain("{ [i] -> [r]: r = -i }")
        assert back.history[-1].verdict == "proven"
        x = np.array([1, -1, 2, 12, 0, -7, 200], "f4")
        assert np.array_equal(back.executor("host")(x=x), knl.executor("reference")(x=x))
    else:
        with pytest.raises(lk.IllegalTransformError):
            knl.map_domain("{ [i] -> [r]: r = -i }")


def test_a_branch_is_proven_written_only_if_its_condition_holds_until_then() -> None:
    fast = branches(BRANCHES["else"]).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    source = str(fast.cuda())
    assert prove_source(fast, source).ok
    for old, new in (
        ("else\n", "if (x[32 * i_outer + i_inner] < 5.0f)\n"),
        ("else\n", "if (x[32 * i_outer + i_inner] > 0.0f)\n"),
    ):
        assert not prove_source(fast, source.replace(old, new)).ok


CELLS = [
    "max(0, iy - 1) <= cy <= min(ny - 1, iy + 1) and max(0, ix - 1) <= cx <= min(nx - 1, ix + 1)",
    "iy - 1 <= cy <= iy + 1 and ix - 1 <= cx <= ix + 1",
]


@pytest.mark.parametrize("box", CELLS)
def test_what_a_box_around_loaded_cells_writes_first_is_its_own(box: str) -> None:
    knl = lk.make_kernel(
        [
            "{ [i, d]: 0 <= i < n and 0 <= d < 2 }",
            f"{{ [cy, cx]: {box} }}",
            "{ [j]: j0 <= j < j1 }",
        ],
        """
        for i
            <> ix = cellx[i]
            <> iy = celly[i]
            <> r = 0
            for cy, cx
                <> j0 = first[cy, cx]
                <> j1 = last[cy, cx]
                for j
                    <> t[d] = px[j, d] - px[i, d] {inames=+d}
                    r = r + t[0]*t[1]
                end
            end
            rho[i] = r
        end
        """,
        [lk.GlobalArg("px", shape="n, 2"), lk.GlobalArg("first, last", shape="ny, nx"), ...],
        dtypes={"px, rho, r": "float32", "cellx, celly, first, last": "int32"},
        owe_bounds=True,
    )
    fast = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert fast.history[-1].verdict == "proven"


@pytest.mark.parametrize("value", ["1", "col[0]"])
def test_equal_stores_may_come_in_another_order(value: str) -> None:
    """What is left is one value, whichever comes last; a read in between sees if there was one."""
    args = [lk.GlobalArg("y, z", "int32", shape="n"), lk.GlobalArg("col", "int32", shape="n"), ...]
    text = f"if col[i] > 2\ny[0] = {value}\nend"
    for more, is_legal in (("", True), ("\nz[i] = y[0]", False)):
        knl = lk.make_kernel("{ [i]: 0 <= i < n }", text + more, args)
        if is_legal:
            knl = knl.map_domain("{ [i] -> [r]: r = -i }")
            assert knl.history[-1].verdict == "proven"
        else:
            with pytest.raises(lk.IllegalTransformError):
                knl.map_domain("{ [i] -> [r]: r = -i }")
    other = lk.make_kernel("{ [i]: 0 <= i < n }", text.replace(f"= {value}", "= i"), args)
    with pytest.raises(lk.IllegalTransformError):
        other.map_domain("{ [i] -> [r]: r = -i }")


def test_subscripts_of_open_types_are_whole_numbers() -> None:
    knl = lk.make_kernel(
        "{ [e, i, j]: 0 <= e < ne and 0 <= i < nt and 0 <= j < ns }",
        "r[to[e]*nt + i, fr[e]*ns + j] = mat[i, j]",
        [lk.GlobalArg("r", shape="n, m"), lk.ValueArg("n, m"), ...],
        owe_bounds=True,
    )
    knl = knl.split_iname("i", 32, inner_tag="l.0")
    assert knl.history[-1].verdict == "proven"
    with pytest.raises(lk.TypeInferenceError):
        knl.add_dtypes({"to, fr, mat, r": "float32"}).cuda()


def counted(condition: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        f"""
        for i
            <> t = b[i]
            for k
                t = t + c[i, k] {{id=up, if={condition}}}
                x[i, k] = t {{id=out}}
            end
            u[i] = t {{id=last}}
        end
        """,
        dtypes={"b, c, u, x": "int32"},
        assumptions="n >= 1",
    )


@pytest.mark.parametrize("condition", ["c[i, k] > 2", "t < 9", "k > 0 and b[i] > k and t > 2"])
def test_copies_of_what_data_leave_as_it_was(condition: str) -> None:
    """A copy holds what the text reads, whether or not what is copied was changed since."""
    knl = counted(condition)
    for step in (
        lambda k: k.buffer_array("t", "k"),
        lambda k: k.tag_inames("i: g.0").buffer_array("t", "k", within="id:up or id:out"),
        lambda k: k.save_and_reload_temporaries(insn_before="id:out", within_inames=["i", "k"]),
    ):
        fast = step(knl)
        assert fast.history[-1].verdict == "proven"
        assert fast.prove().ok
    for within in ("id:up", "id:out"):  # a part of what uses it
        with pytest.raises(lk.IllegalTransformError, match=r"would (not find|read)"):
            knl.buffer_array("t", "k", within=within)


def either(more: str = "") -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        f"""
        for i
            if b[i] > 2
                <> t = b[i]
            else
                t = 1
            end
            for k
                t = t + c[i, k] {{id=up, if=c[i, k] > t}}
                {more}
            end
            u[i] = t {{id=last}}
        end
        """,
        dtypes={"b, c, u": "int32"},
        assumptions="n >= 1",
    )


def test_copies_of_what_is_written_in_one_of_two_ways() -> None:
    """What was there before data choose who writes it, nobody looks at."""
    for tag in ("i: g.0", "i: l.0, k: unr", ""):
        knl = either().assume("n <= 64").fix_parameters(n=9).tag_inames(tag) if tag else either()
        for step in (
            lambda k: k.buffer_array("t", "k", default_tag=None),
            lambda k: k.buffer_array("t", "k", within="id:up or id:last", default_tag=None),
            lambda k: k.save_and_reload_temporaries("id:up", "id:last"),
            lambda k: k.save_and_reload_temporaries("id:insn", "id:insn_0", within_inames=()),
        ):
            fast = step(knl)
            assert fast.history[-1].verdict == "proven"


@pytest.mark.parametrize("more", ["t = 3 {if=b[i] > 7}", "<> s = t {if=b[i] > 7}"])
def test_copies_that_miss_a_write_or_a_read(more: str) -> None:
    """What is buffered is not what others write and read."""
    for within in ("id:up", "id:up or id:last"):
        with pytest.raises(lk.LoopkitError):
            either(more).buffer_array("t", "k", within=within, default_tag=None)


def scattered(late: str = "", *, atomic: bool = True) -> lk.Kernel:
    update = "h[col[i]] = h[col[i]] + x[i] {atomic}" if atomic else "h[col[i]] = x[i]"
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j < n and 0 <= k < 4 }",
        f"""
        for i
            {update}
        end
        ... gbarrier
        for j
            y[j, k] = h[j] + k
            {late}
        end
        """,
        [lk.GlobalArg("h", shape="n"), ...],
        dtypes={"h, x, y": "float32", "col": "int32"},
        assumptions="n >= 1",
    )


def threads(knl: lk.Kernel) -> lk.Kernel:
    for iname in "ij":
        knl = knl.split_iname(iname, 8, outer_tag="g.0", inner_tag="l.0")
    return knl


def test_copies_of_cells_that_data_chose() -> None:
    """A copy that is made when the reader reads, of the cell that it reads, holds what it sees."""
    for knl in (
        threads(scattered()).add_prefetch("h", "j_inner"),
        threads(scattered()).add_prefetch("h", [], default_tag=None),
        scattered(atomic=False).split_iname("j", 8).add_prefetch("h", "j_inner", default_tag=None),
        scattered("h[j] = 0").add_prefetch("h", [], default_tag=None),
    ):
        assert knl.history[-1].verdict == "proven"
        assert knl.prove().ok


@pytest.mark.parametrize("late", ["h[j] = 0", "h[col[j]] = 0"])
def test_copies_of_cells_that_data_choose_later(late: str) -> None:
    """Between a copy and its readers nothing may be written to the cells that it holds."""
    knl = scattered(late).split_iname("j", 8)
    if late == "h[j] = 0":  # which its reader has read, and no other
        assert knl.add_prefetch("h", "j_inner", default_tag=None).history[-1].verdict == "proven"
        return
    with pytest.raises(lk.LoopkitError, match="might read"):
        knl.add_prefetch("h", "j_inner", default_tag=None)
    with pytest.raises(lk.LoopkitError):
        threads(scattered(late)).add_prefetch("h", "j_inner")


@pytest.mark.parametrize("index", ["0", "8*j_outer + h_dim_0 + 1", "col[8*j_outer + h_dim_0]"])
def test_copies_of_other_cells_than_data_chose(index: str) -> None:
    """The copy of a cell beside the one that is read is another value."""
    knl = scattered(atomic=False).split_iname("j", 8)
    fast = knl.add_prefetch("h", "j_inner", default_tag=None)
    copy = next(s for s in fast.statements if s.kind == "move")
    other = replace(copy, rhs=parse_expression(f"h[{index}]"))
    wrong = fast.with_(statements=tuple(other if s is copy else s for s in fast.statements))
    check_change(knl, Change(fast, (), moves=frozenset([copy.id])))
    with pytest.raises(lk.LoopkitError):
        check_change(knl, Change(wrong, (), moves=frozenset([copy.id])))


CELLS = ("j, k", "k, j", "k + 1, j", "j, k + 1", "j, 0", "2, k", "j + k, k")
GUARDS = (("if c[j, k] > 0", ""), ("", "if c[j, k] > 0"), ("if c[j, k] > 0", "if c[k, j] > 0"))


@pytest.mark.parametrize("second", CELLS)
@pytest.mark.parametrize("guards", GUARDS, ids=["first", "second", "both"])
def test_the_order_of_writes_under_conditions_on_data(guards: tuple[str, str], second: str) -> None:
    """Which of two writes comes last is kept, whether data let one happen or not."""
    size = 5
    tables = [lk.GlobalArg("s", shape="2, 5, 5"), lk.GlobalArg("c", shape="5, 5")]
    rng = np.random.default_rng(7)
    s, c = rng.integers(0, 99, (2, size, size)), rng.integers(0, 2, (size, size))
    accepted = 0
    for first in CELLS:
        lines = (
            f"{g}\n o[{at}] = s[{n}, j, k]\n{'end' if g else ''}"
            for n, (g, at) in enumerate(zip(guards, (first, second), strict=True))
        )
        knl = lk.make_kernel(
            f"{{ [j, k]: 0 <= j < {size} and 0 <= k < 3 }}",
            "for j, k\n" + "\n".join(lines) + "\nend",
            [lk.GlobalArg("o", shape="8, 8"), *tables, ...],
            dtypes={"o, s, c": "int32"},
        )
        steps = (
            {"tag_inames": ["k: l.0"]},
            {"tag_inames": ["j: l.0"]},
            {"prioritize_loops": ["k, j"]},
        )
        for name, arguments in (next(iter(step.items())) for step in steps):
            try:
                moved = getattr(knl, name)(*arguments)
            except lk.LoopkitError:
                continue
            accepted += 1
            given = {"s": s.astype("int32"), "c": c.astype("int32")}
            of = [
                k.executor("reference")(o=np.zeros((8, 8), "int32"), **given) for k in (knl, moved)
            ]
            assert np.array_equal(*of), (first, name)
    assert accepted


def test_chunks_of_a_scatter_beside_blocks() -> None:
    """Values that are asked to be equal need not be equal where their subscripts are."""
    knl = lk.make_kernel(
        "{ [i, k]: -2 <= i < n and 0 <= k < n + 2 }",
        "o[p[i + 2]] = d[i + 2]\nx[k] = 2*d[k]",
        [lk.GlobalArg("o", "int32", shape="n + 2"), ...],
        dtypes={"d": "int32", "p": "int64"},
        assumptions="n >= 0",
    )
    knl = knl.split_iname("k", 4, outer_tag="g.0", inner_tag="l.0").chunk_iname("i", 4)
    assert knl.prove().ok
    p, d = np.array([3, 0, 6, 3, 1, 5, 2]), np.arange(7, dtype="int32") + 1
    found = knl.executor("reference")(p=p, d=d, o=np.zeros(7, "int32"))
    expected = np.zeros(7, "int32")
    expected[p] = d
    assert found.o.tolist() == expected.tolist()
    assert found.x.tolist() == (2 * d).tolist()
