"""Random chains of loop transforms keep what a kernel computes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_instances import check_change, results

import loopkit.transforms as tr
from loopkit import IllegalTransformError, Kernel, LoopkitError, make_kernel

SIZES = {"n": 5, "m": 3, "l": 4}


def product() -> Kernel:
    return make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j]) + i",
        dtypes={"a, b, c": "int64"},
        assumptions="n, m, l >= 1",
    )


def triangle() -> Kernel:
    return make_kernel(
        ["{ [i]: 2 <= i < n + 2 }", "{ [j, k]: 0 <= j <= i and j <= k < l + 1 }"],
        """
        for i
            a[i] = i*i
            for j, k
                c[i, j, k] = a[i] + j - k {id=inner}
            end
            d[i] = a[i] + 1
        end
        """,
        dtypes={"a, c, d": "int64"},
        assumptions="n, l >= 1",
    )


def nest() -> Kernel:
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <> t = x[i] * 2
            for j
                y[i, j] = t + x[j] {id=w}
            end
            z[i] = t {id=last}
        end
        """,
        dtypes={"x, y, z": "int64"},
        assumptions="n, m >= 1",
    )


KERNELS = {"product": product(), "triangle": triangle(), "nest": nest()}


@st.composite
def step(draw: st.DrawFn, kernel: Kernel) -> tuple[object, tuple[object, ...], dict[str, object]]:
    used = [i for i in kernel.all_inames if any(i in s.inames for s in kernel.statements)]
    iname = draw(st.sampled_from(used))
    ids = [s.id for s in kernel.statements]
    within = draw(st.sampled_from([None, None, f"id:{draw(st.sampled_from(ids))}"]))
    kind = draw(
        st.sampled_from(
            [
                "split",
                "split",
                "slabs",
                "join",
                "rename",
                "duplicate",
                "map",
                "order",
                "order",
                "fission",
                "unroll",
                "fuse",
            ]
        )
    )
    if kind == "split":
        return tr.split_iname, (iname, draw(st.integers(1, 4))), {"within": within}
    if kind == "slabs":
        slabs = draw(st.sampled_from([(0, 1), (1, 0), (1, 1)]))
        return tr.split_iname, (iname, draw(st.integers(1, 3))), {"slabs": slabs}
    if kind == "rename":
        return tr.rename_iname, (iname, kernel.fresh_name("r")), {"within": within}
    if kind == "duplicate":
        return tr.duplicate_inames, (iname, f"id:{draw(st.sampled_from(ids))}"), {}
    if kind == "fission":
        return tr.fission, (iname, f"id:{draw(st.sampled_from(ids))}"), {}
    if kind == "unroll":
        return tr.unroll, (iname,), {}
    if kind == "fuse":
        return tr.fuse_loops, (iname,), {}
    if kind == "map":
        other = draw(st.sampled_from(used))
        if other == iname:
            text = f"{{ [{iname}] -> [{iname}']: {iname}' = 3 - {iname} }}"
        else:
            new = kernel.fresh_name("q")
            text = f"{{ [{iname}, {other}] -> [{iname}, {new}]: {new} = {other} + 2*{iname} }}"
        return tr.map_domain, (text,), {"within": within}
    order = draw(st.permutations(used))[: draw(st.integers(2, 4))]
    if kind == "join":
        return tr.join_inames, (order[:2],), {"within": within}
    return tr.prioritize_loops, (order,), {}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_chains_keep_instances_and_results(name: str, data: st.DataObject) -> None:
    kernel = KERNELS[name]
    expected = results(kernel, SIZES)
    for _ in range(data.draw(st.integers(1, 4))):
        function, args, kwargs = data.draw(step(kernel))
        try:
            function(kernel, *args, **kwargs)
            kernel = check_change(function, kernel, *args, sizes=SIZES, **kwargs)
        except IllegalTransformError as error:
            assert str(error)
            continue
        except LoopkitError as error:
            pytest.fail(f"{type(error).__name__}: {error}")
    assert results(kernel, SIZES) == expected
