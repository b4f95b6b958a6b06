"""Creation takes time in proportion to the text; limits are generous, for busy machines."""

from __future__ import annotations

from pace import seconds

from loopkit._make import make_kernel


def creation(domain: str, text: str) -> float:
    """The seconds that a kernel takes."""
    return seconds(lambda: make_kernel(domain, text, dtypes={"a": "float32"}))


def many_statements(count: int) -> tuple[str, str]:
    lines = ["<> t0 = a[i]"]
    lines += [f"<> t{s} = t{s - 1} * t{s // 2} + {s}" for s in range(1, count - 1)]
    return "{ [i]: 0 <= i < n }", "\n".join([*lines, f"b[i] = t{count - 2}"])


def chain(count: int) -> tuple[str, str]:
    inames = [f"j{s}" for s in range(count)]
    lines = ["<> t0[j0] = a[i, j0]"]
    lines += [f"<> t{s}[j{s}] = 2 * t{s - 1}[j{s}] + 1" for s in range(1, count - 1)]
    lines += [f"b[i, j{count - 1}] = t{count - 2}[j{count - 1}]"]
    bounds = " and ".join(f"0 <= {iname} < 8" for iname in inames)
    return f"{{ [i, {', '.join(inames)}]: 0 <= i < n and {bounds} }}", "\n".join(lines)


def test_many_statements() -> None:
    assert creation(*many_statements(200)) < 0.3
    assert creation(*many_statements(400)) < 4 * creation(*many_statements(100)) * 2.5


def test_a_chain_of_loops() -> None:
    assert creation(*chain(160)) < 0.6
    assert creation(*chain(160)) < 4 * creation(*chain(40)) * 2.5
