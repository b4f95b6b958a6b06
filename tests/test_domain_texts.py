"""A domain's text means what Python computes for the same condition; so do kernels over it."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from domain_texts import Said, condition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_instances import points
from seams import parse_assumptions, parse_domain

import loopkit as lk
from loopkit import UndecidedError

QUICK = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(condition(("i", "j", "n")))
@QUICK
def test_a_domain_is_what_python_computes(said: Said) -> None:
    domain = parse_domain(f"{{ [i, j]: -3 <= i, j <= 4 and {said.text} }}")
    domain = domain.move_dims(
        isl.dim_type.param, domain.dim(isl.dim_type.param), isl.dim_type.set, 0, 2
    )
    for n in (-2, 0, 3):
        found = {(p["i"], p["j"]) for p in points(domain.params(), {"n": n}, ["i", "j"])}
        meant = {(i, j) for i in range(-3, 5) for j in range(-3, 5) if said.eval(i=i, j=j, n=n)}
        assert found == meant, (said, n)


@given(condition(("n", "m")))
@QUICK
def test_assumptions_are_what_python_computes(said: Said) -> None:
    known = parse_assumptions(f"-3 <= n, m <= 4 and ({said.text})")
    found = {(p["n"], p["m"]) for p in points(known, {}, ["n", "m"])}
    meant = {(n, m) for n in range(-3, 5) for m in range(-3, 5) if said.eval(n=n, m=m)}
    assert found == meant


def kernel_over(said: Said) -> lk.Kernel:
    """Marks and counts what a domain holds, in a loop over it and by a sum over it."""
    return lk.make_kernel(
        f"{{ [i, j]: 0 <= i < 8 and 0 <= j < 6 and {said.text} }}",
        """
        for i, j
            x[i, j] = x[i, j] + 1
        end
        """,
        [lk.GlobalArg("x", "int32", (8, 6)), lk.ValueArg("n", "int32")],
        assumptions="0 <= n <= 9",
    )


def meant_by(said: Said, n: int) -> np.ndarray:
    return np.array([[int(said.eval(i=i, j=j, n=n)) for j in range(6)] for i in range(8)])


@given(condition(("i", "j", "n")))
@settings(QUICK, max_examples=30)
def test_kernels_run_where_the_text_says(said: Said) -> None:
    kernel = kernel_over(said)
    assert not kernel.prove().refuted, f"{kernel.prove()}\n{kernel.cuda()}"
    for n in (0, 4):
        x = np.zeros((8, 6), np.int32)
        kernel.executor("reference")(x=x, n=n)
        assert (x == meant_by(said, n)).all(), kernel


@pytest.mark.host
@given(condition(("i", "j", "n")), st.integers(0, 5))
@settings(QUICK, max_examples=8)
def test_kernels_run_on_the_host(said: Said, way: int) -> None:
    kernel = kernel_over(said)
    try:
        if way in (1, 2):
            kernel = kernel.split_iname("i", 3, outer_tag="g.0", inner_tag="l.0")
        if way in (2, 3):
            kernel = kernel.split_iname("j", 2, inner_tag="unr")
        if way == 4:
            kernel = kernel.split_iname("j", 4, slabs=(0, 1))
    except UndecidedError:
        pass
    for n in (0, 4):
        x = np.zeros((8, 6), np.int32)
        kernel.executor("host")(x=x, n=n)
        assert (x == meant_by(said, n)).all(), kernel.cuda()
