"""Small kernels whose refusals suggest something, and suggestions taken by their word."""

from __future__ import annotations

import numpy as np
import pytest
from refusals.case import Step, do
from seams import WitnessError

import loopkit as lk

FLOAT = np.dtype("float32")
BLOCKS = do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0")


def refusal(kernel: lk.Kernel, step: Step) -> WitnessError:
    """The error of a step that is refused."""
    with pytest.raises(WitnessError) as caught:
        step.apply(kernel)
    return caught.value


def applied(kernel: lk.Kernel, line: str) -> lk.Kernel:
    """The kernel after what a suggestion says, as one who copies it would write it."""
    what, colon, calls = line.partition(": .")
    assert what.startswith("legal ")
    if not colon:
        return kernel
    found = eval(f"kernel.{calls}", {"kernel": kernel})
    assert isinstance(found, lk.Kernel)
    assert all(step.verdict in ("proven", "assumed") for step in found.history)
    return found


def making(domain: str, text: str, floats: str, assumptions: str = "n >= 1") -> lk.Kernel:
    return lk.make_kernel(domain, text, dtypes={floats: FLOAT}, assumptions=assumptions)


def recurrence(distance: int = 1) -> lk.Kernel:
    domain = f"{{ [i]: {distance} <= i < n }}"
    return making(domain, f"a[i] = a[i-{distance}] + b[i] {{id=s}}", "a, b")


def grid() -> lk.Kernel:
    """Values that need their neighbours above and to the right."""
    domain = "{ [i, j]: 1 <= i < n and 0 <= j < n }"
    return making(domain, "a[i, j] = a[i-1, j+1] + 1 {id=s}", "a")


def deep_grid() -> lk.Kernel:
    """:func:`grid` in many layers."""
    domain = "{ [i, j, k]: 1 <= i < n and 0 <= j, k < n }"
    return making(domain, "a[i, j, k] = a[i-1, j+1, k] + 1 {id=s}", "a")


def corner() -> lk.Kernel:
    """Values that need their neighbours above and to the left."""
    domain = "{ [i, j]: 1 <= i < n and 1 <= j < n }"
    return making(domain, "a[i, j] = a[i-1, j] + a[i, j-1] {id=s}", "a")


def two_loops() -> lk.Kernel:
    return making(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            a[i] = 2*x[i] {id=make}
        end
        for j
            b[j] = a[j + 1] {id=use}
        end
        """,
        "a, b, x",
    )


def stencil() -> lk.Kernel:
    domain = "{ [t, i]: 0 <= t < steps and 1 <= i < n }"
    text = "u[t+1, i] = u[t, i-1] + u[t, i+1] {id=s}"
    return making(domain, text, "u", "n, steps >= 1")


def values_in_turn(length: str = "16") -> lk.Kernel:
    """A value that is used twice, in two loops."""
    return making(
        f"{{ [i, j]: 0 <= i < {length} and 0 <= j < n }}",
        """
        for i
            <> t = 2*x[i] {id=make}
            for j
                y[i, j] = t*z[j] {id=use}
            end
        end
        """,
        "x, y, z",
        "n >= 1" if length == "16" else "n, m >= 1",
    )


def tile() -> lk.Kernel:
    """A tile that is read in another order than it is written in."""
    text = """
        for i
            t[i] = x[i] {id=load}
        end
        for j
            y[j] = t[15 - j] {id=use}
        end
        """
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 16 }",
        text,
        [lk.TemporaryVariable("t", FLOAT, ("16",), lk.AddressSpace.PRIVATE), ...],
        dtypes={"x, y": FLOAT},
    )


def summed() -> lk.Kernel:
    domain = "{ [i, j]: 0 <= i < n and 0 <= j < n }"
    return making(domain, "c[j] = 2*c[j] + a[i, j] {id=s}", "a, c")


def changed_between() -> lk.Kernel:
    return making(
        "{ [p, q, r]: 0 <= p, q, r < 16 }",
        """
        for p
            b[p] = a[p] {id=use}
        end
        for q
            a[q] = 2*x[q] {id=change}
        end
        for r
            c[r] = a[r] + 1 {id=again}
        end
        """,
        "a, b, c, x",
        "",
    )


def shift_by() -> lk.Kernel:
    return making("{ [i]: 0 <= i < n }", "a[i] = a[i + d] {id=s}", "a", "n, d >= 1")


def three_loops() -> lk.Kernel:
    """Three loops, each of which reads all that the one before wrote."""
    return making(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        """
        for i
            a[i] = 2*x[i] {id=first}
        end
        for j
            b[j] = a[n - 1 - j] {id=second}
        end
        for k
            c[k] = b[n - 1 - k] {id=third}
        end
        """,
        "a, b, c, x",
    )
