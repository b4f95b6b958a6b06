"""The kernels of `compile_time.py`: domains and instructions that Loopy and loopkit both read."""

from __future__ import annotations

STATEMENTS = (50, 100, 200)
CHAINS = (40, 80, 160)

VECTOR_ADD = ("{ [i]: 0 <= i < n }", "c[i] = a[i] + b[i]")

SGEMM = (
    "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
    "c[i, j] = sum(k, a[i, k] * b[k, j])",
)
FULL_TILES = "n mod 128 = 0 and m mod 128 = 0 and l mod 8 = 0 and n >= 128 and m >= 128 and l >= 8"


def _stencil_text() -> str:
    def at(x: int = 4, y: int = 4, z: int = 4) -> str:
        return f"u[i + {x}, j + {y}, k + {z}]"

    rings = [
        f"c{d} * ({at(x=4 - d)} + {at(x=4 + d)} + {at(y=4 - d)} + {at(y=4 + d)}"
        f" + {at(z=4 - d)} + {at(z=4 + d)})"
        for d in range(1, 5)
    ]
    return "v[i, j, k] = " + " + ".join([f"c0 * {at()}", *rings])


STENCIL = ("{ [i, j, k]: 0 <= i, j, k < n }", _stencil_text())

DG_GRADIENT = (
    "{ [e, i, j, x, y, z]: 0 <= e < ne and 0 <= i, j < 20 and 0 <= x, y, z < 3 }",
    """
    for e, i
        <> r[x] = sum(j, D[x, i, j] * u[e, j])  {id=r}
        g[y, e, i] = sum(z, G[y, z, e] * r[z])  {id=g, dep=r}
    end
    """,
)


def many_statements(count: int) -> tuple[str, str]:
    """One loop with ``count`` statements, each of which reads two of those before it."""
    lines = ["<> t0 = a[i]"]
    lines += [f"<> t{s} = t{s - 1} * t{s // 2} + {s}" for s in range(1, count - 1)]
    lines += [f"b[i] = t{count - 2}"]
    return "{ [i]: 0 <= i < n }", "\n".join(lines)


def chain_of_loops(count: int) -> tuple[str, str]:
    """``count`` loops, each over a private array that the one before filled; one domain."""
    inames = [f"j{s}" for s in range(count)]
    lines = ["<> t0[j0] = a[i, j0]"]
    lines += [f"<> t{s}[j{s}] = 2 * t{s - 1}[j{s}] + 1" for s in range(1, count - 1)]
    lines += [f"b[i, j{count - 1}] = t{count - 2}[j{count - 1}]"]
    bounds = " and ".join(f"0 <= {iname} < 8" for iname in inames)
    return f"{{ [i, {', '.join(inames)}]: 0 <= i < n and {bounds} }}", "\n".join(lines)
