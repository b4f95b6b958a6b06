"""precompute of rules whose arguments are not affine: what uses have in common is in the value."""

import re

import numpy as np
import pytest
from conftest import Golden
from data_kernels import global_args

import loopkit as lk


def rows(uses: str = "f(i*m + j) + i*f(i*m + j + 1)", **more) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        f"f(x) := sin(a[x])\nout[i, j] = {uses}",
        [*global_args("a", "n*m + 65"), lk.GlobalArg("place", np.int32, "n + 8"), ...],
        dtypes={"out": "float32"},
        assumptions="n >= 1 and m >= 9",
        name="rows",
        **more,
    )


def tiled(uses: str = "f(i*m + j) + i*f(i*m + j + 1)") -> lk.Kernel:
    return rows(uses).split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")


PLACES = "f(place[i] + j) + i*f(j + 2 + place[i])"
SCHEDULES = {
    "one row": (lambda: rows().precompute("f", "j", default_tag=None), (9,)),
    "a row a thread": (lambda: tiled().precompute("f", "j", default_tag="unr"), (9,)),
    "rows of a tile": (lambda: tiled().precompute("f", "i_inner, j"), (4, 9)),
    "squares": (
        lambda: rows("f(j*j) + i*f(j*j + 1)").precompute("f", "j", default_tag=None),
        (2, 8),
    ),
    "places": (
        lambda: tiled("f(place[i] + j) + i*f(j + 2 + place[i])").precompute(
            "f", "j", default_tag=None
        ),
        (10,),
    ),
    "one argument": (lambda: tiled("f(j*m) + i*f(j*m)").precompute("f", "j"), (8,)),
    "one invocation": (lambda: rows().precompute("f(i*m + j)", "j", default_tag=None), (8,)),
    "both of them": (
        lambda: tiled().precompute(["f(i*m + j)", "f(i*m + j + 1)"], "i_inner, j"),
        (4, 9),
    ),
    "a range": (lambda: tiled().precompute("f(i*m:i*m + 9)", "i_inner"), (4, 9)),
    "beside others": (
        lambda: tiled("f(i*m + j) + i*f(i*i) + f(3*j)").precompute("f(i*m + j)", "i_inner, j"),
        (4, 8),
    ),
    "one, and then others": (
        lambda: (
            tiled("f(i*m + j) + i*f(i*i) + f(3*j)")
            .precompute("f(i*i)", "i_inner")
            .precompute("f(i*m + j)", "j", default_tag=None)
            .precompute("f", "j", default_tag=None)
        ),
        (4,),
    ),
    "a place": (
        lambda: tiled("f(place[i] + j) + i*f(j)").precompute(
            "f(place[i] + j)", "j", default_tag="unr"
        ),
        (8,),
    ),
    "no argument is left": (
        lambda: rows("f(i*i) + f(j)").split_iname("i", 4).precompute("f(i*i)", default_tag=None),
        (),
    ),
    "tagged": (
        lambda: rows("f$one(i*m + j) + i*f(i*m + j)").precompute(
            "f$one(i*m + j)", "j", default_tag=None
        ),
        (8,),
    ),
}


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_it_runs(name: str) -> None:
    make, shape = SCHEDULES[name]
    knl = make()
    assert shape in [copy.shape for copy in knl.temporaries]
    assert knl.prove().ok
    for n, m in ((1, 9), (4, 9), (5, 17), (11, 10)):
        generator = np.random.default_rng(n)
        given = {"a": generator.random(n * m + 65, np.float32), "n": n, "m": m}
        if "place" in knl.arg_by_name:
            given["place"] = generator.integers(0, n * m, n + 8).astype(np.int32)
        want = knl.executor("reference")(**given)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order, seed=1)(**given)
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_generated_texts(golden: Golden) -> None:
    texts = [f"{(knl := make())}\n\n{knl.cuda()}" for make, _ in SCHEDULES.values()]
    golden("precompute_not_affine.txt", "\n\n".join(texts))


@pytest.mark.parametrize(
    "uses, why",
    [
        ("f(i*m + j) + f(i*i)", r"f\(i\*m \+ j\) and f\(i\*i\) do not differ by a constant"),
        ("f(i*i*j) + f(i*i)", "where what is not affine is one term in all of them"),
    ],
)
def test_refused(uses: str, why: str) -> None:
    with pytest.raises(lk.IllegalTransformError, match=why):
        rows(uses).precompute("f", "j", default_tag=None)


@pytest.mark.parametrize(
    "uses, invocation, why",
    [
        ("f(3*j)", "f(i*m + j)", r"no access lies in the footprint.*\naccesses are f\(3\*j\)"),
        ("f(i*m + j)", "f(i*m + j + 30)", r"accesses are f\(i\*m \+ j\)"),
        ("f(i*m + j)", "f(i*m + j, j)", "has 2 indices"),
        ("f(i*m + j) + f(i*i)", ["f(i*m + j)", "f(i*i)"], "do not differ by a constant"),
        ("f(i*m + j)", "f(i*m + 0:8)", "has no constant length"),
    ],
)
def test_invocations_refused(uses: str, invocation: str, why: str) -> None:
    with pytest.raises(lk.LoopkitError, match=why):
        rows(uses).precompute(invocation, "j", default_tag=None)


def test_other_uses_stay_as_they_were() -> None:
    knl = tiled("f(i*m + j) + f(i*m + j + 20)").precompute("f(i*m + j)", "j", default_tag=None)
    assert "f_r[j] + f((4*i_outer + i_inner)*m + j + 20)" in str(knl)
    assert [rule.name for rule in knl.substitutions] == ["f"]


@pytest.mark.parametrize(
    "uses",
    [
        "if(place[i] >= 0, f(place[i] + j), 0)",
        "if(i*m + j >= 5, f(i*m + j - 5), 0)",
        "if(place[i] >= 5, f(place[i]) + f(place[i] - 5), 0)",
    ],
)
def test_what_may_lie_outside_is_read_under_its_conditions(uses: str) -> None:
    with pytest.raises(lk.UndecidedError, match=r"'compute_f.*' .* might access a"):
        rows(uses).precompute("f", "j", default_tag=None)


def test_what_nobody_surely_uses_is_not_read() -> None:
    """Between two uses an index array may hold what is no place of the array."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(x) := a[place[x]]\nout[i] = f(0) + f(2) + f(5)",
        [*global_args("a", "m"), lk.GlobalArg("place", np.int32, 6), ...],
        dtypes={"out": "float32"},
        assumptions="n, m >= 1",
    )
    given = {"a": np.ones(3, np.float32), "place": np.array([0, 99, 1, 99, 99, 2], np.int32)}
    staged = knl.precompute("f", default_tag=None)
    assert (staged.executor("reference")(**given, n=2) == 3).all()
    with pytest.raises(lk.UndecidedError, match=r"might access a\[place\[1\]\]"):
        knl.precompute("f", default_tag=None, fetch_bounding_box=True)
    inside = knl.assume_within("place", 0, "m")
    whole = inside.precompute("f", default_tag=None, fetch_bounding_box=True)
    assert "if" not in str(whole)


def test_conditions_on_data_where_assertions_tell_places() -> None:
    knl = rows("if(place[i + 1] > 5, f(place[i]), 0)").assume_within("place", 0, "n*m")
    assert knl.precompute("f", "j", default_tag=None).prove().ok


@pytest.mark.host
@pytest.mark.parametrize("rule", ["a[place[x]]", "sum(k, a[place[x]] * k)"])
def test_what_a_condition_leaves_alone_is_not_read(rule: str) -> None:
    """Neither are the terms of a sum that is made anew in front of the condition."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        f"f(x) := {rule}\nout[i] = f(i) {{if=used[i] > 0}}",
        [*global_args("a", "m"), lk.GlobalArg("place, used", np.int32, "n"), ...],
        dtypes={"out": "float32"},
        assumptions="n, m >= 1",
    )
    settled = re.escape("assume_within('place', 0, 'm')")
    with pytest.raises(lk.UndecidedError, match=settled) as refused:
        knl.precompute("f", default_tag=None)
    assert refused.value.witness is not None
    assert refused.value.witness.array == "a"
    assert knl.assume_within("place", 0, "m").precompute("f", default_tag=None).prove().ok


def test_copies_of_what_is_surely_read() -> None:
    """The reader may be a copy in turn, places may be staged, threads may share the work."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(x) := a[place[x]] if used[x] > 0 else 0\nout[i] = f(i)",
        [*global_args("a", "m"), lk.GlobalArg("place, used", np.int32, "n"), ...],
        dtypes={"out": "float32"},
        assumptions="n, m >= 1",
    ).split_iname("i", 16)
    staged = knl.add_prefetch("place", "i_inner", default_tag=None)
    alone = staged.precompute("f", "i_inner", default_tag=None)
    twice = alone.add_prefetch("f_r", "i_inner", default_tag=None)
    tagged = knl.tag_inames("i_inner: l.0, i_outer: g.0").precompute("f", "i_inner")
    for one in (alone, twice, tagged):
        assert one.history[-1].verdict == "proven"


def test_a_condition_of_its_own_may_stand_anywhere() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(x) := a[place[x]] if place[x] >= 0 and place[x] < m else 0\n"
        "out[i] = f(i) {if=used[i] > 0}",
        [*global_args("a", "m"), lk.GlobalArg("place, used", np.int32, "n"), ...],
        dtypes={"out": "float32"},
        assumptions="n, m >= 1",
    )
    assert knl.precompute("f", default_tag=None).history[-1].verdict == "proven"
