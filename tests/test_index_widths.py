"""Index arithmetic where 32 bits end: sums, products and extents are each proven to fit, or wide.

The texts are computed here as C does it, 32-bit integers wrapping around, at the largest sizes.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from seams import largest_size, prove, prove_source

import loopkit as lk

LARGEST = largest_size(np.dtype("int32"))


class Int:
    """An ``int`` or ``long long`` of C; an ``int`` that overflows shows."""

    def __init__(self, value: int, is_long: bool = False) -> None:
        self.value = value
        self.is_long = is_long or not -(2**31) <= value < 2**31

    def combine(self, other: Int, value: int) -> Int:
        is_long = self.is_long or other.is_long
        if not is_long and not -(2**31) <= value < 2**31:
            raise OverflowError(f"{value} is no int")
        return Int(value, is_long)


def c_value(text: str, names: dict[str, int]) -> int:
    """The value of ``+``, ``-``, ``*``, ``/`` and casts over nonnegative numbers, as C has it."""
    text = text.replace("(long long)", "~").replace("/", "//")
    text = re.sub(r"(\d+)LL", r"~\1", text)

    def visit(node: ast.expr) -> Int:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return Int(node.value)
        if isinstance(node, ast.Name):
            return Int(names[node.id])
        if isinstance(node, ast.UnaryOp):
            operand = visit(node.operand)
            if isinstance(node.op, ast.Invert):
                return Int(operand.value, True)
            return operand.combine(operand, -operand.value)
        assert isinstance(node, ast.BinOp)
        left, right = visit(node.left), visit(node.right)
        a, b = left.value, right.value
        values = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b, ast.FloorDiv: a // b if b else 0}
        return left.combine(right, values[type(node.op)])

    return visit(ast.parse(text.strip(), mode="eval").body).value


def index(source: str, array: str) -> str:
    """The first subscript of an array in a source."""
    body = source[source.index("{") :]
    start = body.index(f"{array}[") + len(array) + 1
    depth, end = 1, start
    while depth:
        depth += {"[": 1, "]": -1}.get(body[end], 0)
        end += 1
    return body[start : end - 1]


def kernel(domain: str, text: str, assumptions: str = "", dtype: str = "int8") -> lk.Kernel:
    return lk.make_kernel(domain, text, dtypes={"x, y": dtype}, assumptions=assumptions)


ROWS = "{ [i, k]: 0 <= i < m and 0 <= k < 2 }"
BOX = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


@pytest.mark.parametrize(
    ("domain", "text", "names", "expected"),
    [
        # Each term fits; their sum does not.
        (ROWS, "x[k, i] = y[k, i]", {"m": LARGEST, "k": 1, "i": LARGEST - 1}, 2 * LARGEST - 1),
        (BOX, "x[i + j] = y[i + j]", {"n": 1, "i": LARGEST, "j": LARGEST}, 2 * LARGEST),
        # An extent that does not fit, as a stride.
        (
            "{ [i, j]: 0 <= i, j < n }",
            "x[j, i + j] = y[j, i + j]",
            {"n": 2**30 + 1, "i": 0, "j": 1},
            2 * (2**30 + 1) - 1 + 1,
        ),
        (
            "{ [i, j]: 0 <= i < n and 0 <= j < 3 }",
            "x[2*i + j, j] = y[2*i + j, j]",
            {"n": LARGEST, "i": LARGEST - 1, "j": 2},
            3 * (2 * (LARGEST - 1) + 2) + 2,
        ),
        # Partial sums do not fit, the whole does.
        (BOX, "x[i + j - min(i, j)] = y[i + j]", {"n": 1, "i": LARGEST, "j": LARGEST}, None),
    ],
)
def test_nothing_overflows(
    domain: str, text: str, names: dict[str, int], expected: int | None
) -> None:
    knl = kernel(domain, text)
    found = index(knl.cuda(), "y")
    if expected is None:
        expected = names["i"] + names["j"]
    assert c_value(found, names) == expected
    assert prove(knl).ok


def test_products_of_extents_that_do_not_fit() -> None:
    """``(long long)(2*n - 1) * k`` computes its first factor in 32 bits."""
    source = kernel("{ [h, k]: 0 <= h, k < n }", "x[h, k] = y[k, h + k]").cuda()
    assert "y[(2LL * n - 1) * k + h + k]" in source
    assert "x[(long long)n * h + k]" in source


@pytest.mark.parametrize(
    ("domain", "text", "assumptions", "expected"),
    [
        # The last row is the one that still fits: 3*715827541 + 2.
        (
            "{ [i, j]: 0 <= i < n and 0 <= j < 3 }",
            "x[i, j] = y[i, j]",
            "n <= 715827541",
            "y[3 * i + j]",
        ),
        (ROWS, "x[k, i] = y[k, i]", "m <= 1073741824", "y[m * k + i]"),
        # Terms add up to more, but an index stays in its axis.
        ("{ [i]: 0 <= i < n }", "x[i] = y[n - 1 - i]", "", "y[n - 1 - i]"),
        (BOX, "x[i, j] = y[i, j]", "n, m <= 46340", "y[m * i + j]"),
    ],
)
def test_32_bits_where_they_suffice(
    domain: str, text: str, assumptions: str, expected: str
) -> None:
    knl = kernel(domain, text, assumptions)
    source = knl.cuda()
    assert expected in source
    assert "long long" not in source
    assert prove(knl).ok


def test_tiles_stay_narrow() -> None:
    """Rounding up to whole tiles does not overflow: sizes stay below the largest integers."""
    knl = kernel("{ [i]: 0 <= i < n }", "x[i] = y[i]")
    for length in (16, 256, 1024, 65536):
        assert "long long" not in knl.split_iname("i", length).cuda()
    long_tiles = knl.split_iname("i", 131072).cuda()
    assert "i_outer < ((long long)n + 131071) / 131072" in long_tiles
    assert "y[131072 * i_outer + i_inner]" in long_tiles


def test_elements_of_index_arrays() -> None:
    """What data says lies inside of its axis; rows of it may not fit."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "x[i, j] = y[col[i] + 1, j]",
        [lk.GlobalArg("y", shape="n + 1, m"), ...],
        dtypes={"x, y": "int8", "col": "int32"},
    )
    assert "y[(long long)m * (col[i] + 1) + j]" in knl.cuda()


def test_negative_strides() -> None:
    knl = kernel("{ [i, j]: 0 <= i < n and 0 <= j < 2 }", "x[n - 1 - i, 1 - j] = y[i, j]", "n >= 1")
    text = index(knl.cuda(), "x")
    for i in (0, 2**30, LARGEST - 1):
        assert c_value(text, {"n": LARGEST, "i": i, "j": 0}) == 2 * (LARGEST - 1 - i) + 1


def test_coordinates_of_64_bits_that_begin_below_zero() -> None:
    """``blockIdx.x - 3`` is unsigned, and no long long."""
    knl = lk.make_kernel(
        "{ [i]: -3 <= i < n }", "x[i + 3] = 7*i", dtypes={"x": "int32", "n": "int64"}
    ).tag_inames("i:g.0")
    assert "long long const i = (long long)blockIdx.x - 3;" in knl.cuda()
    assert knl.executor("host")(n=4).tolist() == [7 * i for i in range(-3, 4)]
    assert prove(knl.assume("n <= 1099511627776")).ok


def test_counters_hold_what_loops_pass() -> None:
    """A loop may pass far more than its domain, with a guard inside."""
    knl = lk.make_kernel(
        [
            "{ [k2]: 0 <= k2 < 2 }",
            "{ [h2]: 0 <= h2 < n and h2 <= 2*k2 + 1 }",
        ],
        "z[k2, h2] = c[k2] + h2",
        dtypes={"c, z": "float64"},
        assumptions="n >= 1",
    ).join_inames(["h2", "k2"])
    assert "for (long long k2_and_h2 = 0; k2_and_h2 < 2LL * n; ++k2_and_h2)" in knl.cuda()
    assert prove(knl).ok


BEYOND = [
    # What ends a loop: its end, or a step beyond its last value.
    (["{ [i]: 0 <= i < n + 65537 }"], "x[i] = y[i]", "i", ""),
    (["{ [i]: 0 <= i < n and i mod 131072 = 0 }"], "x[i] = y[i]", "i", ""),
    # A first value that is beyond the end: the loop is empty, and its counter is set all the same.
    (["{ [i]: 0 <= i < n }", "{ [j]: 2*i <= j < m }"], "x[i, j] = y[j]", "j", "i:g.0"),
    (["{ [i]: 0 <= i < n }", "{ [j]: 2*i, i + 5 <= j < m }"], "x[i, j] = y[j]", "j", "i:g.0"),
    (["{ [i]: 0 <= i < n }", "{ [j]: -3*i <= j < m - 5*i }"], "x[j + 3*i] = y[i]", "j", ""),
    # The one value of a loop, with a guard inside.
    (["{ [i]: 0 <= i < n }", "{ [j]: j = 2*i and j < m }"], "x[i, j] = y[j]", "j", "i:g.0"),
    # A block that runs, though the domain is empty.
    (["{ [i]: 3000000000 <= i < n }"], "x[i] = y[i]\nx[0] = y[0]", "i", "i:g.0"),
]


@pytest.mark.parametrize(("domains", "text", "name", "tags"), BEYOND)
def test_variables_beyond_their_domains(
    domains: list[str], text: str, name: str, tags: str
) -> None:
    knl = lk.make_kernel(domains, text, dtypes={"x, y": "int8"})
    if tags:
        knl = knl.tag_inames(tags)
    source = knl.cuda()
    assert re.search(rf"long long (const )?{name} = ", source), source
    assert len(re.findall(r"long long (?:const )?\w+ = ", source)) == 1, source
    assert prove(knl).ok, str(prove(knl))
    narrow = re.sub(rf"long long ((const )?{name} = )", r"int \1", source)
    proof = prove_source(knl, narrow)
    assert any(f.kind == "width" for f in proof.findings), str(proof)


@pytest.mark.parametrize(
    ("domains", "text", "tags", "assumptions"),
    [
        (["{ [i]: 0 <= i < n + 1024 }"], "x[i] = y[i]", "", ""),
        (["{ [i]: 0 <= i < n and i mod 1024 = 0 }"], "x[i] = y[i]", "", ""),
        # The outer loop or an assumption leaves nothing that would not fit.
        (["{ [i]: 0 <= i < n }", "{ [j]: 2*i <= j < m }"], "x[i, j] = y[j]", "", ""),
        (
            ["{ [i]: 0 <= i < n }", "{ [j]: 2*i <= j < m }"],
            "x[i, j] = y[j]",
            "i:g.0",
            "n <= 1073741824",
        ),
        (
            ["{ [i]: 0 <= i < n }", "{ [j]: j = 2*i and j < m }"],
            "x[i, j] = y[j]",
            "i:g.0",
            "n <= 1073741824",
        ),
        # Three loops inside each other: the innermost is bounded by the outermost.
        (
            ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < i }", "{ [k]: 0 <= k < j }"],
            "x[i, j, k] = y[k]",
            "",
            "",
        ),
        (["{ [i]: -n <= i < n }"], "x[i + n] = y[i + n]", "", "n >= 0"),
    ],
)
def test_variables_of_32_bits_where_they_suffice(
    domains: list[str], text: str, tags: str, assumptions: str
) -> None:
    knl = lk.make_kernel(domains, text, dtypes={"x, y": "int8"}, assumptions=assumptions)
    if tags:
        knl = knl.tag_inames(tags)
    assert not re.search(r"long long (const )?\w+ = ", knl.cuda()), knl.cuda()
    assert prove(knl).ok, str(prove(knl))


def test_counters_whose_first_value_is_a_maximum() -> None:
    """The map of a triangle: where blocks have nothing to do, first values are beyond all else."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < m }", "{ [j]: 0 <= j < i }", "{ [k]: 0 <= k < j }"],
        "f[i, j, k] = e[j, i, k]",
        dtypes={"e, f": "int32"},
        assumptions="m >= 1",
    )
    knl = (
        knl.split_iname("i", 8, slabs=(0, 1))
        .split_iname("k", 3, inner_tag="l.0", outer_tag="g.0")
        .split_iname("i_outer", 4, inner_tag="l.1", outer_tag="g.1")
        .map_domain("{ [i_inner, j] -> [_x, jj]: _x = i_inner + j and jj = j }")
    )
    assert "for (long long _x = max(" in knl.cuda()
    assert prove(knl).ok, str(prove(knl))


@pytest.mark.parametrize(
    ("subscript", "dtype", "printed"),
    [
        ("(t[i] + 1) % 8", "int8", "x[lk_mod(t[i] + 1, 8)]"),
        ("(2*t[i] + 1) % 8", "uint8", "x[lk_mod(2 * t[i] + 1, 8)]"),
        ("(t[i] + 1) % 8", "int32", "x[lk_mod((long long)t[i] + 1, 8)]"),
        ("(t[i] >> 1) % 8", "int8", "x[lk_mod(t[i] >> 1, 8)]"),
    ],
)
def test_data_are_as_large_as_their_type_lets_them(
    subscript: str, dtype: str, printed: str
) -> None:
    arrays = [lk.GlobalArg("x", "float32", (8,)), lk.GlobalArg("t", dtype, ("n",))]
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", f"y[i] = x[{subscript}]", [*arrays, ...])
    assert printed in knl.cuda()
    assert prove(knl).ok, str(prove(knl))


@pytest.mark.parametrize("narrow", ["uint8", "uint16"])
def test_narrow_data_that_meets_wider_unsigned_data_in_a_subscript(narrow: str) -> None:
    """C widens it to an int on the way, which is not negative: a table-driven checksum."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <uint32> c = 0xFFFFFFFF {id=start}
            for j
                c = table[(c ^ d[i, j]) & 0xFF] ^ (c >> 8)
            end
            y[i] = c ^ 0xFFFFFFFF
        end
        """,
        [lk.GlobalArg("table", "uint32", shape=256), ...],
        dtypes={"d": narrow, "y": "uint32"},
        assumptions="n, m >= 1",
    )
    assert knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0").prove().ok
