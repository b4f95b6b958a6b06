import itertools

import pytest
from data_kernels import domain, expr, global_args
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import (
    FootprintError,
    Linear,
    Range,
    Use,
    bounding_box,
    evaluate,
    hull,
    iname_ranges,
    linear,
    to_text,
    touched_cells,
)
from seams import linear_variable as variable
from seams import sets as _sets

import loopkit as lk
from loopkit import Statement


def use(text: str, where=None) -> Use:
    indices = expr(f"x[{text}]").index
    indices = indices if isinstance(indices, tuple) else (indices,)
    statement = Statement("s", expr("y"), expr(f"x[{text}]"))
    return Use(statement, indices, text, where if where is not None else _sets.universe())


def box(*texts: str, **spans: int):
    ranges = {name: Range(Linear({}), extent - 1) for name, extent in spans.items()}
    return bounding_box([use(t) for t in texts], ranges)


def shown(axes):
    return [(to_text(a.lower.expression), a.extent, a.stride) for a in axes]


def copy_kernel(where: str, index: str):
    return lk.make_kernel(
        where,
        f"for {', '.join(domain(where).inames)}\n b[{index}] = a[{index}]\n end",
        [*global_args("a b", "n"), ...],
    )


# {{{ boxes


def test_tile():
    axes = box("16*io + ii, 16*ko + ki", ii=16, ki=16)
    assert shown(axes) == [("16*io", 16, 1), ("16*ko", 16, 1)]
    indices = use("16*io + ii, 16*ko + ki").indices
    local = [to_text(a.local(i)) for a, i in zip(axes, indices, strict=True)]
    assert local == ["ii", "ki"]


def test_halo():
    axes = box("16*io + ii - 1, j", "16*io + ii + 1, j", "16*io + ii, j", ii=16)
    assert shown(axes) == [("16*io - 1", 18, 1), ("j", 1, 1)]
    assert [a.is_kept for a in axes] == [True, False]
    assert to_text(axes[0].local(expr("16*io + ii"))) == "ii + 1"


def test_unswept_axes_with_a_halo_are_kept():
    (axis,) = box("i - 1", "i + 1")
    assert (axis.extent, axis.stride, axis.is_kept) == (2, 2, True)
    assert to_text(axis.local(expr("i + 1"))) == "1"


def test_stride_is_compressed():
    (axis,) = box("2*i + 6*k + 3", i=4, k=2)
    assert (to_text(axis.lower.expression), axis.extent, axis.stride) == ("3", 7, 2)
    assert to_text(axis.local(expr("2*i + 6*k + 3"))) == "i + 3*k"


def test_odd_offset_breaks_the_stride():
    (axis,) = box("2*i", "2*i + 1", i=4)
    assert (axis.extent, axis.stride) == (8, 1)


def test_reversed_axis():
    (axis,) = box("n - 1 - i", i=8)
    assert shown([axis]) == [("n - 8", 8, 1)]
    assert to_text(axis.local(expr("n - 1 - i"))) == "-i + 7" or to_text(
        axis.local(expr("n - 1 - i"))
    ) in ("7 - i",)


def test_quotient_of_a_swept_iname():
    (axis,) = box("8*io + ii//2", ii=16)
    assert shown([axis]) == [("8*io", 8, 1)]
    (axis,) = box("(16*io + ii)//2", ii=16)
    assert shown([axis]) == [("8*io", 8, 1)]


def test_remainder_of_a_swept_iname():
    (axis,) = box("i % 4", i=16)
    assert axis.extent >= 4


def test_not_affine_index_is_named():
    with pytest.raises(FootprintError, match=r"i\*j"):
        box("i*j", i=4)


def test_accesses_that_drift_apart_are_named():
    with pytest.raises(FootprintError, match="do not differ by a constant"):
        box("io + i", "2*io + i", i=4)


# }}}

# {{{ ranges of swept inames


def test_range_of_split_iname_is_constant_for_ragged_sizes():
    knl = copy_kernel("{[io, ii]: 0 <= ii < 16 and 0 <= 16*io + ii < n}", "16*io + ii")
    found = iname_ranges(knl, ["ii"])["ii"]
    assert (found.lower.constant, found.lower.terms, found.span) == (0, {}, 15)


def test_range_relative_to_an_outer_iname():
    knl = copy_kernel("{[io, i]: 0 <= i < n and 16*io <= i < 16*io + 16}", "i")
    found = iname_ranges(knl, ["i"])["i"]
    assert (to_text(found.lower.expression), found.span) == ("16*io", 15)


def test_skewed_inames_cancel():
    ranges = {
        "i": Range(Linear({}), 7),
        "j": Range(variable("i") * -1, 3),
    }
    (axis,) = bounding_box([use("i + j")], ranges)
    assert shown([axis]) == [("0", 4, 1)]


def test_unbounded_iname():
    knl = copy_kernel("{[i]: 0 <= i < n}", "i")
    with pytest.raises(FootprintError, match="no constant length") as info:
        iname_ranges(knl, ["i"])
    assert "split_iname('i', 16)" in info.value.instead


# }}}

# {{{ cells


def test_triangle_touches_a_triangle():
    where = domain("{[i, j]: 0 <= i < 4 and 0 <= j <= i}").set
    uses = [use("i, j", where)]
    axes = bounding_box(uses, {n: Range(Linear({}), 3) for n in "ij"})
    assert [a.extent for a in axes] == [4, 4]
    cells = touched_cells(uses, axes, ["d0", "d1"], [])
    assert cells.is_equal(domain("{[d0, d1]: 0 <= d0 < 4 and 0 <= d1 <= d0}").set)


def test_ragged_end_is_exact():
    where = domain("{[io, ii]: 0 <= ii < 16 and 0 <= 16*io + ii < n}").set
    uses = [use("16*io + ii", where)]
    axes = bounding_box(uses, {"ii": Range(Linear({}), 15)})
    cells = touched_cells(uses, axes, ["d"], ["io", "n"])
    expected = domain("{[io, d]: io >= 0 and 0 <= d < 16 and 16*io + d < n}").set
    assert cells.is_equal(expected)


coefficients = st.integers(-3, 3)


@st.composite
def accesses_2d(draw):
    """Two or three shifted accesses with common coefficients in i, j (swept) and o (not)."""
    rows = [(draw(coefficients), draw(coefficients), draw(st.integers(-4, 4))) for _ in range(2)]
    shifts = draw(
        st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=3)
    )
    texts = []
    for shift in shifts:
        axes = [
            f"({a})*i + ({b})*j + ({c})*o + ({s})" for (a, b, c), s in zip(rows, shift, strict=True)
        ]
        texts.append(", ".join(axes))
    return texts


@given(accesses_2d(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 6))
@settings(max_examples=60)
def test_against_enumeration(texts, ni, nj, n):
    where = domain(
        f"{{[o, i, j]: 0 <= i < {ni} and 0 <= j < {nj} and 0 <= o < 2 and {ni}*o + i < n}}"
    ).set
    uses = [use(t, where) for t in texts]
    ranges = {"i": Range(Linear({}), ni - 1), "j": Range(Linear({}), nj - 1)}
    axes = bounding_box(uses, ranges)
    exact = touched_cells(uses, axes, ["d0", "d1"], ["o", "n"], exact=True)
    loose = hull(touched_cells(uses, axes, ["d0", "d1"], ["o", "n"]))
    for o in range(2):
        full: set[tuple[int, ...]] = set()
        touched: set[tuple[int, ...]] = set()
        for i, j in itertools.product(range(ni), range(nj)):
            values = {"o": o, "i": i, "j": j}
            for u in uses:
                place = tuple(
                    evaluate(a.local(x), values) for a, x in zip(axes, u.indices, strict=True)
                )
                cell = tuple(evaluate(x, values) for x in u.indices)
                back = tuple(
                    evaluate(a.cell(Linear({}, p)).expression, values)
                    for a, p in zip(axes, place, strict=True)
                )
                assert cell == back
                full.add(place)
                if ni * o + i < n:
                    touched.add(place)
        # The box is that of the full tile, and tight.
        for k, axis in enumerate(axes):
            assert min(p[k] for p in full) == 0
            assert max(p[k] for p in full) == axis.extent - 1
        at = {"o": o, "n": n}
        for d in itertools.product(*(range(a.extent) for a in axes)):
            point = exact
            around = loose
            for name, value in {**at, "d0": d[0], "d1": d[1]}.items():
                point = point & _sets.equality(name, value)
                around = around & _sets.equality(name, value)
            assert (not point.is_empty()) == (d in touched)
            assert not (d in touched and around.is_empty())


# }}}

# {{{ linear forms


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.sampled_from("xyz")), min_size=1, max_size=3),
    st.integers(-50, 50),
    st.integers(1, 24),
    st.integers(1, 9),
)
@settings(max_examples=100)
def test_quotients_and_remainders(terms, constant, divisor, second):
    form = Linear({}, constant)
    for coefficient, name in terms:
        form = form + variable(name) * coefficient
    ranges = {"x": (0, 3), "y": (0, 7), "z": (0, 1)}
    quotient = form.floor_div(divisor, ranges)
    again = quotient.remainder(second, ranges)
    for x, y, z in itertools.product(range(4), range(8), range(2)):
        values = {"x": x, "y": y, "z": z}
        number = evaluate(form.expression, values)
        assert evaluate(quotient.expression, values) == number // divisor
        assert evaluate(again.expression, values) == number // divisor % second
        assert evaluate(linear(again.expression).expression, values) == number // divisor % second


# }}}
