"""add_prefetch of arrays that lie flat: rows of any length are an axis of the copy."""

import itertools
import re

import numpy as np
import pytest
from conftest import Golden
from refusals.running import arguments

import loopkit as lk


def flat(domain: str, text: str, assumptions: str, **shapes: str) -> lk.Kernel:
    arrays = [lk.GlobalArg(name, "float32", shape=shape) for name, shape in shapes.items()]
    return lk.make_kernel(domain, text, [*arrays, ...], assumptions=assumptions, name="flat")


def product() -> lk.Kernel:
    knl = flat(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < p and 0 <= k < m }",
        "c[i*p + j] = sum(k, a[i*m + k]*b[k*p + j])",
        "n, m, p >= 1",
        a="n*m",
        b="m*p",
        c="n*p",
    )
    knl = knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.1")
    return knl.split_iname("j", 8, outer_tag="g.1", inner_tag="l.0").split_iname("k", 8)


def neighbours() -> lk.Kernel:
    knl = flat(
        "{ [i, j]: 1 <= i < n - 1 and 1 <= j < m - 1 }",
        "b[i*m + j] = a[(i - 1)*m + j] + a[i*m + j - 1] - 4*a[i*m + j] + a[i*m + j + 1] "
        "+ a[(i + 1)*m + j]",
        "n, m >= 3",
        a="n*m",
        b="n*m",
    )
    knl = knl.split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
    return knl.split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")


def three_axes() -> lk.Kernel:
    return flat(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < p }",
        "b[(i*m + j)*p + k] = a[(i*m + j)*p + k] + a[(i*m + j)*p + p - 1 - k]",
        "n, m, p >= 1",
        a="n*m*p",
        b="n*m*p",
    )


def first_fastest() -> lk.Kernel:
    knl = flat(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i*m + j] = a[i + j*n]",
        "n, m >= 1",
        a="n*m",
        b="n*m",
    )
    knl = knl.split_iname("i", 8, outer_tag="g.0", inner_tag="l.1")
    return knl.split_iname("j", 8, outer_tag="g.1", inner_tag="l.0")


def of_rules() -> lk.Kernel:
    knl = flat(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "at(r, c) := a[r*m + c]\nb[i, j] = at(i, j)*at(i, 7 - j)",
        "n >= 1 and m >= 8",
        a="n*m",
        b="n, 8",
    )
    return knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")


def row_that_data_choose() -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "b[i, j] = a[place[i]*8 + j]*a[place[i]*8 + 7 - j]",
        [
            lk.GlobalArg("a", "float32", shape="8*m"),
            lk.GlobalArg("place", "int32", shape="n"),
            lk.GlobalArg("b", "float32", shape="n, 8"),
            ...,
        ],
        assumptions="n, m >= 1",
        name="flat",
    )
    return knl.assume_within("place", 0, "m").split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")


SCHEDULES = {
    "both operands of a product": (
        lambda: (
            product().add_prefetch("a", "i_inner, k_inner").add_prefetch("b", "k_inner, j_inner")
        ),
        {"a_s": (4, 8), "b_s": (8, 8)},
    ),
    "a tile with its neighbours": (
        lambda: neighbours().add_prefetch("a", "i_inner, j_inner"),
        {"a_s": (6, 10)},
    ),
    "a row of three axes": (
        lambda: (
            three_axes()
            .split_iname("j", 2)
            .prioritize_loops("k, j_inner")
            .add_prefetch("a[(i*m + j)*p + k]", "j_inner")
        ),
        {"a_s": (2,)},
    ),
    "planes": (
        lambda: (
            three_axes()
            .fix_parameters(n=2)
            .split_iname("j", 2)
            .prioritize_loops("j_outer, k, i, j_inner")
            .add_prefetch("a[(i*m + j)*p + k]", "i, j_inner", default_tag=None)
        ),
        {"a_r": (2, 2)},
    ),
    "a transposition": (
        lambda: first_fastest().add_prefetch("a", "i_inner, j_inner"),
        {"a_s": (8, 8)},
    ),
    "of rules, which stay": (
        lambda: of_rules().add_prefetch("a", "i_inner, j", default_tag="l.auto"),
        {"a_s": (4, 8)},
    ),
    "a range": (
        lambda: of_rules().add_prefetch("a[i*m:i*m + 8]", "i_inner"),
        {"a_s": (4, 8)},
    ),
    "a row that data choose": (
        lambda: row_that_data_choose().add_prefetch("a", "j", default_tag=None),
        {"a_r": (8,)},
    ),
}


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_it_runs(name: str) -> None:
    make, shapes = SCHEDULES[name]
    knl = make()
    found = {t.name: t.shape for t in knl.temporaries if t.name in shapes}
    assert found == shapes
    assert knl.prove().ok
    for n, m, p in ((3, 8, 1), (4, 9, 7), (5, 17, 9), (9, 11, 10)):
        sizes = {s: v for s, v in {"n": n, "m": m, "p": p}.items() if s in knl.sizes}
        place = np.random.default_rng(n).integers(0, m, n)
        given = sizes | arguments(
            knl, sizes, {"place": place} if "place" in knl.arg_by_name else {}
        )
        want = knl.executor("reference")(**given)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order, seed=1)(**given)
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_generated_texts(golden: Golden) -> None:
    texts = [f"{(knl := make())}\n\n{knl.cuda()}" for make, _ in SCHEDULES.values()]
    golden("prefetch_rows.txt", "\n\n".join(texts))


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_any_order_of_the_steps(order: tuple[int, ...]) -> None:
    steps = [
        lambda knl: knl.add_prefetch("a", "i_inner, k_inner"),
        lambda knl: knl.add_prefetch("b", "k_inner, j_inner"),
        lambda knl: knl.tag_inames("k_inner:unr"),
    ]
    knl = product()
    for number in order:
        knl = steps[number](knl)
    assert {t.name: t.shape for t in knl.temporaries if t.shape} == {"a_s": (4, 8), "b_s": (8, 8)}
    assert knl.prove().ok


def test_cells_at_the_edge_are_all_that_is_read() -> None:
    """The copy of a tile with its neighbours is filled where the array is, and nowhere else."""
    fetch = neighbours().add_prefetch("a", "i_inner, j_inner").cuda()
    condition = re.search(r"if \((.*)\)\n\s*a_s\[", fetch)
    assert condition is not None
    # Four ends of rows and columns: no corner is left out, since it lies in the array.
    assert condition[1].count("&&") <= 4


@pytest.mark.parametrize(
    "text, sweep, why",
    [
        ("b[i, j] = a[i*m + j] + a[j*m + i]", "j", "do not differ by a constant"),
        ("b[i, j] = a[i*m + j] + a[i*i + j]", "j", "do not differ by a constant"),
        ("b[i, j] = a[i*j + j] + a[i*j*j]", "j", "is not affine in inames and sizes"),
        ("b[i, j] = a[i*m + j]", "i", "iname 'i' has no constant length"),
    ],
)
def test_refused(text: str, sweep: str, why: str) -> None:
    knl = flat(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }", text, "n, m >= 8", a="8*n*m + 64*n*n", b="n, 8"
    )
    with pytest.raises(lk.IllegalTransformError, match=why) as found:
        knl.add_prefetch("a", sweep, default_tag=None)
    assert "'a'" in str(found.value)
    assert "a_0" not in str(found.value)
    assert "f(" not in str(found.value).split("\n")[0]


def test_a_write_in_between_is_seen() -> None:
    """The rows that are copied change before they are read again."""
    knl = flat(
        "{ [i, j]: 1 <= i < 4 and 0 <= j < 8 }",
        "for i\n a[i*m + j] = 2*a[(i - 1)*m + j]\nend",
        "m >= 8",
        a="4*m",
    )
    with pytest.raises(lk.IllegalTransformError, match=r"would read a.* has written it"):
        knl.add_prefetch("a", "i, j", default_tag=None)
