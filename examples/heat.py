"""Heat in a plane: four steps in time by one launch, each block on tiles that overlap.

The middle of a plane that is cold but for one spot keeps what four steps leave of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import loopkit as lk

STEPS = 4


def _step(u: str) -> str:
    """One step in time at ``(i, j)``, from ``u`` before it."""
    around = " + ".join(f"{u}({at})" for at in ("i - 1, j", "i + 1, j", "i, j - 1", "i, j + 1"))
    return f"{u}(i, j) + rate*({around} - 4*{u}(i, j))"


def plain() -> lk.Kernel:
    """What is left after four steps: of ``start``, with a rim of four cells that are no result."""
    rules = ["u0(i, j) := start[i, j]"]
    rules += [f"u{t}(i, j) := {_step(f'u{t - 1}')}" for t in range(1, STEPS)]
    return lk.make_kernel(
        f"{{ [i, j]: {STEPS} <= i < n + {STEPS} and {STEPS} <= j < m + {STEPS} }}",
        "\n".join([*rules, f"left[i - {STEPS}, j - {STEPS}] = {_step(f'u{STEPS - 1}')}"]),
        [lk.GlobalArg("start", shape=f"n + {2 * STEPS}, m + {2 * STEPS}"), ...],
        name="heat",
        dtypes={"start, left, rate": "float32"},
        assumptions="n, m >= 1",
    )


def tiled(order: Sequence[int] = (0, 1, 2, 3)) -> lk.Kernel:
    """Blocks of 16 by 16; each step in time once, for what the later ones read of it.

    The steps in time may be staged in any ``order``: tiles get a cell wider on each side from
    one to the one before.
    """
    kernel = (
        plain()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    )
    staged: list[int] = []
    for time in order:
        later = min((t for t in staged if t > time), default=None)
        swept = "i_inner, j_inner" if later is None else f"u{later}_dim_0, u{later}_dim_1"
        kernel = kernel.precompute(f"u{time}", swept)
        staged.append(time)
    return kernel


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "four steps": tiled()}


def inputs(n: int = 300, m: int = 200, seed: int = 0) -> dict[str, Any]:
    """A plane of any temperatures."""
    rng = np.random.default_rng(seed)
    shape = n + 2 * STEPS, m + 2 * STEPS
    return {"start": rng.uniform(0, 1, shape).astype(np.float32), "rate": np.float32(0.2)}


def expected(start: Any, rate: Any) -> Any:
    """The same by NumPy, a step at a time."""
    u = start
    for _ in range(STEPS):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = u[1:-1, 1:-1] + rate * (around - 4 * u[1:-1, 1:-1])
    return u


def small() -> float:
    """What is left of a spot of 625 after four steps at a rate of one fifth: 61."""
    start = np.zeros((2 * STEPS + 1, 2 * STEPS + 1), np.float32)
    start[STEPS, STEPS] = 625
    return round(float(tiled()(start=start, rate=0.2)[0, 0]))


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
