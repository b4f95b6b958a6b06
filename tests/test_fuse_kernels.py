"""Several kernels as one."""

from __future__ import annotations

import pickle
import re
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
FLOATS = "x, a, b, c, d"


def make(text: str, domain: str = "{ [i, j]: 0 <= i, j < n }", **more: Any) -> lk.Kernel:
    names = set(re.findall(r"\w+", text)) & set(FLOATS.split(", "))
    return lk.make_kernel(domain, text, dtypes=dict.fromkeys(names, "float64"), **more)


def twice() -> lk.Kernel:
    return make(
        """
        for i
            <> t = 2*x[i]   {id=load}
            a[i] = t        {id=store}
        end
        """,
        name="twice",
    )


def more() -> lk.Kernel:
    return make(
        """
        f(k) := a[k] + 1
        for i
            <> t = f(i)     {id=load}
            b[i] = t        {id=store}
        end
        """,
        name="more",
    )


def mirrored() -> lk.Kernel:
    return make("b[i] = a[n - 1 - i]", name="mirrored")


def total() -> lk.Kernel:
    return make("c[0] = sum(j, b[j])", "{ [j]: 0 <= j < n }", name="total")


def on_threads(knl: lk.Kernel) -> lk.Kernel:
    return knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")


def test_a_pair(golden: Golden) -> None:
    """A producer and its user, made one loop, in which the value stays in a register."""
    knl = lk.fuse_kernels([twice(), more()])
    assert knl.name == "twice_and_more"
    assert not knl.history
    assert lk.fuse_kernels([more(), twice()], data_flow=[("a", 1, 0)]).tree == knl.tree
    one = knl.fuse_loops("i")
    assert one.prove().ok
    scheduled = lk.fuse_kernels([on_threads(twice()), on_threads(more())])
    assert scheduled.prove().ok
    golden("fuse_kernels.txt", f"{knl}\n\n{one}\n\n{scheduled}\n\n{scheduled.cuda()}")


def test_suffixes() -> None:
    knl = lk.fuse_kernels([twice(), more()], suffixes=["_first", "_then"])
    assert list(knl.temporary_by_name) == ["t_first", "t_then"]
    alike = make("<> t_x = x[i] {id=s}\na[i] = t_x {id=u}")
    taken = lk.fuse_kernels([alike, twice()], suffixes=["", "_x"])
    assert list(taken.temporary_by_name) == ["t_x", "t_x_0"]


MAKERS = (twice, more, mirrored, total)


@pytest.mark.host
@pytest.mark.parametrize("chosen", [*permutations(range(4), 2), (0, 1, 2, 3), (0, 0, 2, 3)])
@pytest.mark.parametrize("n", [1, 17])
def test_one_after_the_other(chosen: tuple[int, ...], n: int) -> None:
    """One call does what the calls of all do, in one launch or in several."""
    rng = np.random.default_rng(n)
    start = {name: rng.integers(-9, 9, n).astype("float64") for name in FLOATS.split(", ")}
    start["c"] = start["c"][:1]
    want = {name: array.copy() for name, array in start.items()}
    kernels = [MAKERS[c]() for c in chosen]
    for knl in kernels:
        knl.executor("reference")(**{a.name: want[a.name] for a in knl.args if a.name in want})
    scheduled = [on_threads(k) if "c" not in k.arg_by_name else k for k in kernels]
    for parts, apart in product((kernels, scheduled), (False, True)):
        if parts is scheduled and not apart:
            continue
        knl = lk.fuse_kernels(parts, separate_launches=apart)
        for order in ORDERS:
            found = {name: start[name].copy() for name in knl.arg_by_name if name in start}
            knl.executor("host", order=order, seed=1)(**found)
            for name, array in found.items():
                np.testing.assert_array_equal(array, want[name])


def test_steps_follow() -> None:
    """What comes out is a kernel like any other: it is proven to be what the texts are."""
    knl = lk.fuse_kernels([on_threads(twice()), on_threads(more())])
    then = knl.add_prefetch("x", "i_inner").assume("n mod 16 = 0")
    assert then.prove().ok
    assert pickle.loads(pickle.dumps(then)) == then
    assert lk.replay(knl, then.history) == then
    with pytest.raises(lk.IllegalTransformError):
        lk.fuse_kernels([twice(), mirrored()]).fuse_loops("i")


def test_schedules_that_do_not_fit() -> None:
    with pytest.raises(lk.RaceError) as refused:
        lk.fuse_kernels([on_threads(twice()), on_threads(mirrored())])
    assert refused.value.witness is not None
    assert "the schedules of these kernels do not fit" in str(refused.value)
    assert "separate_launches=True" in str(refused.value)
    apart = lk.fuse_kernels([on_threads(twice()), on_threads(mirrored())], separate_launches=True)
    assert len(apart.launches()) == 2
    assert apart.prove().ok


def test_unchecked_steps_are_what_a_kernel_means() -> None:
    """Who vouches for a step says what the kernel is from there on."""
    carried = make("a[i + 1] = a[i]", "{ [i]: 0 <= i < 31 }", name="carried")
    vouched = carried.tag_inames("i: l.0", unchecked=True)
    knl = lk.fuse_kernels([total(), vouched], separate_launches=True)
    assert str(knl.iname_tags["i"]) == "l.0"


def test_declarations_are_compared_as_integers() -> None:
    """n + 2 is 2 + n, in shapes and in strides."""
    one, other = (
        make(f"{name}[i, j] = x[i, j]", kernel_data=[lk.GlobalArg("x", **how), ...])
        for name, how in (
            ("y", {"shape": "n + 2, 2*n", "strides": "2*n + 4, 1"}),
            ("z", {"shape": "2 + n, n + n", "strides": "2*(2 + n), 1"}),
        )
    )
    assert lk.fuse_kernels([one, other]).arg_by_name["x"] == one.arg_by_name["x"]
    wider = make("z[i, j] = x[i, j]", kernel_data=[lk.GlobalArg("x", shape="n + 3, 2*n"), ...])
    with pytest.raises(lk.InvalidArgumentError, match=r"shape of 'x' is \(n \+ 2, 2\*n\)"):
        lk.fuse_kernels([one, wider])


def test_data_flow_of_what_is_written_anew() -> None:
    first, then = make("y[i, j] = i", name="first"), make("y[i, j] = j", name="then")
    for flows, order in (([("y", 0, 1)], (0, 1)), ([("y", 1, 0)], (1, 0))):
        fused = lk.fuse_kernels([first, then], data_flow=flows)
        assert fused.name == "_and_".join(("first", "then")[n] for n in order)
    with pytest.raises(lk.InvalidArgumentError, match="kernel 1 uses no argument 'z'"):
        lk.fuse_kernels([make("z[i, j] = i"), then], data_flow=[("z", 0, 1)])


def test_loaded_bounds_and_rules() -> None:
    """Temporaries that bound loops, rules and their arguments have names of their own."""
    rows = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: start <= j < end }"],
        """
        g(t) := 3*t
        for i
            <> start = p[i]       {id=start}
            <> end = p[i + 1]     {id=end}
            y[i] = sum(j, g(v[j]))  {id=sum}
        end
        """,
        [lk.GlobalArg("p", "int32", ("n + 1",)), lk.GlobalArg("v", "float64", ("m",)), ...],
        dtypes={"y": "float64"},
        name="rows",
    )
    clash = lk.make_kernel(
        "{ [k]: 0 <= k < m }",
        """
        g(end) := end + 1
        <> start = g(v[k])
        v[k] = start
        """,
        dtypes={"v": "float64"},
        name="clash",
    )
    knl = lk.fuse_kernels([clash, rows], separate_launches=True)
    assert set(knl.rule_by_name) == {"g", "g_0"}
    p, v = np.array([0, 2, 2, 5]), np.arange(5.0)
    found = knl.executor("reference")(p=p.astype("int32"), v=v.copy(), y=np.zeros(3))
    want = [3 * (v + 1)[a:b].sum() for a, b in pairwise(p)]
    np.testing.assert_array_equal(found[-1], want)


def test_sizes_that_are_fixed() -> None:
    fixed = twice().fix_parameters(n=40)
    knl = lk.fuse_kernels([on_threads(fixed), on_threads(more().fix_parameters(n=40))])
    assert knl.sizes == ()
    assert knl.prove().ok
    with pytest.raises(lk.InvalidArgumentError, match="size 'n' is 40 in one kernel, and open"):
        lk.fuse_kernels([fixed, more().rename_iname("i", "k")])
    with pytest.raises(lk.InvalidArgumentError, match="size 'n' is 40 in one kernel, and 41 in"):
        lk.fuse_kernels([more().fix_parameters(n=41), fixed])


@pytest.mark.parametrize(
    ("kernels", "more", "why"),
    [
        ([], {}, "at least one kernel"),
        ([twice], {"suffixes": ["a", "b"]}, "1 kernel, but 2 suffixes"),
        ([twice], {"suffixes": ["-"]}, "suffix"),
        ([twice, more], {"data_flow": [("b", 0, 1)]}, "kernel 0 writes no argument 'b'"),
        ([twice, more], {"data_flow": [("a", 0, 2)]}, "the kernels are numbers 0 to 1"),
        ([twice, more], {"data_flow": ["a"]}, "data_flow"),
        (
            [lambda: make("a[i] = b[i]"), lambda: make("b[i] = a[i]")],
            {"data_flow": [("a", 0, 1), ("b", 1, 0)]},
            "has a cycle",
        ),
        (
            [twice, lambda: make("b[i] = a[i]", "{ [i]: 0 <= i < n - 1 }")],
            {},
            "iname 'i' has other values in one kernel",
        ),
        (
            [twice, lambda: make("b[j] = a[j, 0]", "{ [j]: 0 <= j < n }")],
            {},
            "the shape of 'a' is",
        ),
        (
            [
                twice,
                lambda: lk.make_kernel(
                    "{ [j]: 0 <= j < n }", "b[j] = a[j]", dtypes={"a, b": "float32"}
                ),
            ],
            {},
            "the dtype of 'a' is float64 and float32",
        ),
        (
            [twice, lambda: make("b[j] = a", "{ [j]: 0 <= j < n }")],
            {},
            "an array in one kernel, and a number in another",
        ),
        (
            [lambda: on_threads(twice()), lambda: more().split_iname("i", 16)],
            {},
            "is tagged g.0 in one kernel, and nothing in another",
        ),
    ],
)
def test_refusals(kernels: list[Any], more: dict[str, Any], why: str) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        lk.fuse_kernels([k() for k in kernels], **more)
    assert why in str(refused.value)


def test_not_kernels() -> None:
    for given in (3, "ab", [twice(), "more"], None):
        with pytest.raises(lk.InvalidArgumentError):
            lk.fuse_kernels(given)  # type: ignore[arg-type]


@pytest.mark.host
def test_what_is_handed_on_no_call_need_pass() -> None:
    types = {"x": "float64"}
    one = lk.make_kernel("{ [i]: 0 <= i < n }", "t[i] = 2*x[i]", dtypes=types)
    two = lk.make_kernel("{ [j]: 0 <= j < n }", "y[j] = t[n - 1 - j]", dtypes={"t": "float64"})
    x = np.arange(4.0)
    both = lk.fuse_kernels([one, two], data_flow=[("t", 0, 1)])
    for found in (both(x=x), both(x=x, t=np.zeros(4))):
        assert np.array_equal(found.y, 2 * x[::-1])
    # Where a part may be missing, it comes from the caller.
    some = lk.make_kernel("{ [i]: 0 <= i < n }", "t[i] = x[i] {if=x[i] > 1}", dtypes=types)
    half = lk.make_kernel(
        "{ [i]: 0 <= 2*i < n }", "t[2*i] = x[i]", [lk.GlobalArg("t", shape="n"), ...], dtypes=types
    )
    for first in (some, half):
        assert lk.fuse_kernels([first, two]).arg_by_name["t"].is_input
    assert lk.fuse_kernels([two, one]).arg_by_name["t"].is_input
