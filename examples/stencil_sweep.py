"""The Laplacian of seven points, plane by plane: what lies above and below is in registers.

Of x*x + y*y + z*z it is 6 everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """A column at a time: its points are behind, here and in front, in turn."""
    return lk.make_kernel(
        "{ [z, y, x]: 0 <= z < l and 0 <= y < n and 0 <= x < m }",
        """
        for y, x
            <> behind = u[0, y + 1, x + 1] {id=first}
            <> here = u[1, y + 1, x + 1] {id=second}
            for z
                <> front = u[z + 2, y + 1, x + 1] {id=load}
                <> row = u[z + 1, y + 1, x] + u[z + 1, y + 1, x + 2] {id=row}
                <> column = u[z + 1, y, x + 1] + u[z + 1, y + 2, x + 1] {id=column}
                v[z, y, x] = behind + front + row + column - 6*here {id=store}
                behind = here {id=rotate}
                here = front {id=advance}
            end
        end
        """,
        [lk.GlobalArg("u", shape="l + 2, n + 2, m + 2"), ...],
        name="sweep",
        dtypes={"u, v": "float32"},
        assumptions="l, n, m >= 1",
    )


def registers(height: int = 8, width: int = 32) -> lk.Kernel:
    """A thread for each column: three registers rotate along it."""
    return (
        plain()
        .split_iname("x", width, outer_tag="g.0", inner_tag="l.0")
        .split_iname("y", height, outer_tag="g.1", inner_tag="l.1")
    )


def planes(height: int = 8, width: int = 32) -> lk.Kernel:
    """The same, and a plane with its halo in shared memory: neighbours read it together."""
    rows = f"{height}*y_outer : {height}*y_outer + {height + 2}"
    cells = f"{width}*x_outer : {width}*x_outer + {width + 2}"
    return registers(height, width).add_prefetch(
        f"u[z + 1, {rows}, {cells}]", within="id:row or id:column", fetch_bounding_box=True
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "registers": registers(), "planes": planes()}


def inputs(l: int = 20, n: int = 40, m: int = 70, seed: int = 0) -> dict[str, Any]:
    """A random field."""
    rng = np.random.default_rng(seed)
    return {"u": rng.uniform(-1, 1, (l + 2, n + 2, m + 2)).astype(np.float32)}


def expected(u: Any) -> Any:
    """The same by NumPy."""
    inner = slice(1, -1)
    around = u[:-2, inner, inner] + u[2:, inner, inner] + u[inner, :-2, inner]
    around = around + u[inner, 2:, inner] + u[inner, inner, :-2] + u[inner, inner, 2:]
    return around - 6 * u[inner, inner, inner]


def small() -> list[float]:
    """The Laplacian of x*x + y*y + z*z at two points: 6, twice."""
    z, y, x = np.mgrid[0:3, 0:3, 0:4]
    found: list[float] = planes()(u=(x * x + y * y + z * z).astype(np.float32)).ravel().tolist()
    return found


if __name__ == "__main__":
    from _gallery import present

    given = inputs()
    present(make(), given, expected(**given))
    print(small())
