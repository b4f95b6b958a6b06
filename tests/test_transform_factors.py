"""collect_common_factors_on_increment: a sum is multiplied once, where it is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import Change, Factored, Unroll, added_by, check_change, to_text

import loopkit as lk
from loopkit import collect_common_factors_on_increment as collect


def sums(text: str = "sum(j, c[i]*x[j]*3, dtype=int32)", dtype: str = "int32", **more) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"y[i] = {text} {{id=y}}",
        dtypes=dict.fromkeys([name for name in "cxy" if f"{name}[" in f"y[{text}"], dtype),
        assumptions="n, m >= 1",
        **more,
    )


FAST = {"dtype": "float32", "options": lk.Options(fast_math=True)}


def tabled(**more) -> lk.Kernel:
    """Sums in a table, of terms with factors of several kinds."""
    return lk.make_kernel(
        "{ [i, j, l]: 0 <= i < n and 0 <= j < m and 0 <= l < 6 }",
        """
        for i
            <int32> t[l] = 0 {id=zero}
            t[l] = t[l] + w[l]*x[j, l]*2*c[i] + 4*z[j]*w[l]*c[i] {id=add}
            y[i, l] = t[l] - 7*t[5 - l] {id=use}
        end
        """,
        dtypes={"w, x, c, z, y": "int32"},
        assumptions="n, m >= 1",
        **more,
    )


def terms(kernel: lk.Kernel, name: str) -> list[str]:
    found = (added_by(s) for s in kernel.statements if s.written == name)
    return [to_text(term) for term in found if term is not None]


def test_the_text(golden) -> None:
    knl = tabled().collect_common_factors_on_increment("t", [0])
    golden("factors.txt", f"{tabled()}\n\n{knl}\n\n{knl.cuda()}")


@pytest.mark.parametrize(
    ("kernel", "axes", "left"),
    [
        (sums, (), "x[j]"),
        (lambda: sums("sum(j, x[j]*c[i] + 2*c[i], dtype=int32)"), (), "x[j] + 2"),
        (lambda: sums("sum(j, -c[i]*x[j]*c[i], dtype=int32)"), (), "-x[j]"),
        (lambda: sums("sum(j, 6*x[j] - 4*j, dtype=int32)"), (), "3*x[j] - 2*j"),
        (lambda: sums("sum(j, n*x[j], dtype=int32)"), (), "x[j]"),
        (lambda: sums("sum(j, sin(c[i])*x[j])", **FAST), (), "x[j]"),
        (lambda: sums("sum(j, 0.5*x[j])", **FAST), (), "x[j]"),
        (tabled, (), "w[l]*x[j, l] + 2*z[j]*w[l]"),
        (tabled, (0,), "x[j, l] + 2*z[j]"),
    ],
)
def test_factors(kernel, axes: tuple[int, ...], left: str) -> None:
    knl = kernel()
    name = knl.temporaries[0].name
    new = knl.collect_common_factors_on_increment(name, axes)
    assert terms(new, name) == [left]
    assert new.prove().ok
    r = np.random.default_rng(0)
    sizes = {"n": 3, "m": 5}
    arrays = {}
    for argument in knl.passed:
        if isinstance(argument, lk.ArrayArg) and argument.name not in knl.writers:
            shape = [eval(str(e), {}, sizes) for e in argument.shape]
            drawn = r.integers(-(2**31), 2**31, shape, endpoint=False)
            whole = np.dtype(argument.dtype).kind == "i"
            arrays[argument.name] = drawn.astype("i4") if whole else r.random(shape).astype("f4")
    want = knl.executor("reference")(**arrays, **sizes)
    for how in ("reference", "host"):
        found = new.executor(how)(**arrays, **sizes)
        if want.dtype.kind == "i":
            np.testing.assert_array_equal(found, want)
        else:
            np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (lambda: sums("sum(j, c[i]*x[j])", dtype="float32"), "acc", "would round in another way"),
        (lambda: sums("sum(j, c[i]*x[j]) // 2"), "acc", "computed in another type than int64"),
        (lambda: sums("sum(j, c[i] + x[j], dtype=int32)"), "acc", "no factor is common"),
        (lambda: sums("sum(j, x[j]*j, dtype=int32)"), "acc", "no factor is common"),
        (lambda: sums("max(j, c[i]*x[j])"), "acc", "nothing is added to it"),
        (sums, "y", "it is an argument"),
    ],
)
def test_refusals(make, name: str, why: str) -> None:
    with pytest.raises(lk.IllegalTransformError, match=why):
        make().collect_common_factors_on_increment(name)


def test_what_changes_in_between() -> None:
    """A factor that is another number where the sum is read is no common one."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <int32> t = 0 {id=zero}
            t = t + y[i]*x[j] {id=add}
            y[i] = 1 {id=set}
            y[i] = y[i] + t {id=use}
        end
        """,
        dtypes={"x, y": "int32"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="no factor is common"):
        knl.collect_common_factors_on_increment("t")


def test_a_sum_that_outlives_a_loop() -> None:
    """What is read after the loop was added for all of its values."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        "<int32> t = 0 {id=zero}\nt = t + c[i]*3 {id=add}\ny[j] = t {id=use}",
        dtypes={"c, y": "int32"},
        assumptions="n >= 1",
    )
    new = knl.collect_common_factors_on_increment("t")
    assert terms(new, "t") == ["c[i]"]


def test_a_start_that_is_no_zero() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "for i\n<int32> t = c[i] {id=s}\nt = t + c[i]*x[j] {id=add}\ny[i] = t {id=use}\nend",
        dtypes={"c, x, y": "int32"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="'s' sets it to something else than 0"):
        knl.collect_common_factors_on_increment("t")


def test_a_bound() -> None:
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i < n and 0 <= j < m }", "{ [k]: 0 <= k < t }"],
        "for i\n<int32> t = 0\nt = t + c[i]*x[j]\nfor k\ny[i] = k\nend\nend",
        dtypes={"c, x, y": "int32"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="it bounds a loop"):
        knl.collect_common_factors_on_increment("t")


def test_schedules_go_on() -> None:
    """Threads add up what is left; later steps are proven from the text with the factor outside."""
    knl = sums().collect_common_factors_on_increment("acc")
    knl = knl.split_iname("j", 32, inner_tag="l.0").tag_inames("i: g.0")
    assert knl.prove().ok
    x, c = np.arange(-40, 60, dtype="i4"), np.array([3, -7, 2**30], "i4")
    np.testing.assert_array_equal(
        knl.executor("host")(c=c, x=x), sums().executor("reference")(c=c, x=x)
    )


def test_what_is_claimed_is_read_back() -> None:
    knl = tabled()
    change: Change = collect.__wrapped__(knl, "t", (0,))
    check_change(knl, change)
    claim = change.claim
    assert isinstance(claim, Factored)
    by_id = change.kernel.statement_by_id

    def with_(id_: str, **parts) -> Change:
        changed = replace(by_id[id_], **parts)
        all_of = tuple(changed if s.id == id_ else s for s in change.kernel.statements)
        return replace(change, kernel=change.kernel.with_(statements=all_of))

    wrong = [
        replace(change, kernel=knl),
        replace(change, claim=replace(claim, factor=2)),
        replace(change, claim=replace(claim, axes=())),
        with_("use", rhs=knl.statement_by_id["use"].rhs),
        with_("zero", rhs=1),
        with_("add", rhs=prim.Sum((by_id["add"].lhs, 1))),
        with_("add", predicates=(prim.Comparison(prim.Variable("j"), ">", 0),)),
        replace(change, kernel=change.kernel.with_(tags=(("i", Unroll()),))),
    ]
    for one in wrong:
        with pytest.raises(lk.IllegalTransformError):
            check_change(knl, one)
