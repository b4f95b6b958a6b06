"""A step of gradient descent with momentum: two kernels, which were written apart, as one.

A weight of 1 at rest, with a gradient of 2, is 0.8 after a step of a tenth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def momentum() -> lk.Kernel:
    """The velocity keeps a share of what it was."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "velocity[i] = friction*velocity[i] + gradient[i]",
        name="momentum",
        dtypes={"velocity, gradient, friction": "float32"},
        assumptions="n >= 1",
    )


def descent() -> lk.Kernel:
    """Weights follow the velocity."""
    return lk.make_kernel(
        "{ [j]: 0 <= j < n }",
        "weight[j] = weight[j] - step*velocity[j]",
        name="descent",
        dtypes={"weight, velocity, step": "float32"},
        assumptions="n >= 1",
    )


def plain() -> lk.Kernel:
    """One after the other, in one launch."""
    return lk.fuse_kernels([momentum(), descent()], data_flow=[("velocity", 0, 1)])


def fused() -> lk.Kernel:
    """Their loops as one: an iname of one name, in one place, is one loop."""
    return plain().rename_iname("j", "i", existing_ok=True)


def threads(size: int = 256) -> lk.Kernel:
    """A thread for each weight; the velocity is loaded once, and stored once."""
    return (
        fused()
        .split_iname("i", size, outer_tag="g.0", inner_tag="l.0")
        .buffer_array("velocity", [], default_tag=None)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "threads": threads()}


def inputs(n: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Random weights, on their way."""
    rng = np.random.default_rng(seed)
    arrays = ("velocity", "gradient", "weight")
    given: dict[str, Any] = {a: rng.uniform(-1, 1, n).astype(np.float32) for a in arrays}
    return {**given, "friction": np.float32(0.9), "step": np.float32(0.1)}


def expected(velocity: Any, gradient: Any, weight: Any, friction: Any, step: Any) -> Any:
    """The same by NumPy: velocity and weights."""
    velocity = friction * velocity + gradient
    return velocity, weight - step * velocity


def small() -> float:
    """The weight of the example after a step, rounded: 0.8."""
    weight, rest, gradient = (np.full(1, v, np.float32) for v in (1, 0, 2))
    _, after = threads()(weight=weight, velocity=rest, gradient=gradient, friction=0.9, step=0.1)
    return round(float(after[0]), 4)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
