"""Sizes of launches: any whole number, and names that options have, too."""

from __future__ import annotations

import numpy as np
import pytest

import loopkit as lk


def kernel(size: str) -> lk.Kernel:
    knl = lk.make_kernel(
        f"{{ [i]: 0 <= i < {size} }}", "b[i] = a[i]", dtypes={"a, b": "float32"}, name="copy"
    )
    return knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").add_prefetch("a", ["i_inner"])


@pytest.mark.parametrize("one", [np.int64(100), np.uint8(100), np.array(100), 100])
def test_any_whole_number_is_a_size(one: int) -> None:
    knl = kernel("n")
    costs = knl.costs(n=one)
    assert costs == knl.costs(n=100) and type(dict(costs.sizes)["n"]) is int
    assert knl.plot_access("b", n=one).request == knl.plot_access("b", n=100).request
    assert knl.plot_domain(n=one).figure() == knl.plot_domain(n=100).figure()
    ((_, instances), *_) = knl.costs().instances
    assert isinstance(instances, lk._costs.polynomial.QuasiPolynomial)  # type: ignore[attr-defined]
    assert instances(n=one) == instances(n=100)


@pytest.mark.parametrize("wrong", [True, 1.5, "8", None, np.bool_(True), np.float32(2)])
def test_what_is_no_whole_number(wrong: object) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="'n' is a whole number"):
        kernel("n").costs(n=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "size", ["device", "arch", "block", "warp", "access", "at", "sizes", "more", "self", "measured"]
)
def test_a_size_may_be_called_like_an_option(size: str) -> None:
    knl, plain = kernel(size), kernel("n")
    given = {size: 100}
    costs = knl.costs(sizes=given, device="A100")
    assert costs.sizes == ((size, 100),) and costs.device.name.startswith("A100")
    assert costs.accesses == plain.costs(n=100).accesses
    request = knl.plot_access("b", block=1, warp=0, sizes=given).request
    assert request.touches == plain.plot_access("b", block=1, warp=0, n=100).request.touches
    assert knl.plot_banks("a_s", sizes=given).wavefronts == 1
    assert knl.plot_domain(sizes=given).figure() is not None
    assert knl.plot_footprint("a", block=0, sizes=given).figure() is not None
    assert knl.plot_roofline(device="A100", sizes=given).roofline == costs.roofline
    ((_, instances), *_) = knl.costs().instances
    assert instances(**given) == 100  # type: ignore[operator]


def test_what_is_passed_wrongly_is_told() -> None:
    knl = kernel("block")
    with pytest.raises(lk.InvalidArgumentError) as caught:
        knl.plot_access("b", block=100)
    assert "sizes={'block': ...}" in str(caught.value)
    with pytest.raises(lk.InvalidArgumentError, match="passed twice"):
        kernel("n").costs(n=3, sizes={"n": 3})
    with pytest.raises(lk.InvalidArgumentError, match="numbers by name"):
        kernel("n").costs(sizes=3)  # type: ignore[arg-type]
    with pytest.raises(lk.UnknownNameError, match="'m'"):
        kernel("n").costs(sizes={"m": 3})
