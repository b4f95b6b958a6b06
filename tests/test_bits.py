"""Operations on bits in subscripts and conditions: whole numbers, which sets know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pace import timed
from seams import arithmetic, cells, evaluate, forms, linear, parse_expression, prove_source
from seams import sets as _sets

import loopkit as lk

X = prim.Variable("x")
OPERATORS = {"&": prim.BitwiseAnd, "|": prim.BitwiseOr, "^": prim.BitwiseXor}


@given(st.sampled_from(sorted(OPERATORS)), st.integers(-5000, 5000), st.integers(-5000, 5000))
def test_masks(operator: str, value: int, mask: int) -> None:
    expr = OPERATORS[operator]((X, mask))
    expected = evaluate(expr, {"x": value})
    said = arithmetic(expr)
    assert said is not None
    assert evaluate(said, {"x": value}) == expected
    assert _sets.value_at(linear(expr).expression, {"x": value}) == expected
    form = forms.bitwise(operator, forms.variable("x"), forms.number(mask))
    assert form is not None
    assert forms.value_at(form, {"x": value}) == expected


@given(st.integers(-5000, 5000), st.integers(0, 12))
def test_shifts(value: int, count: int) -> None:
    for text, expected in (("x >> s", value >> count), ("x << s", value << count)):
        expr = parse_expression(text.replace("s", str(count)))
        assert evaluate(expr, {"x": value}) == expected
        assert _sets.value_at(expr, {"x": value}) == expected
        assert _sets.sample(_sets.equality("y", expr) & _sets.equality("x", value))["y"] == expected
    assert evaluate(parse_expression("~x"), {"x": value}) == ~value


@pytest.mark.parametrize("text", ["x & y", "x >> y", "x << -1", "x >> 64", "x ^ 1.5", "3 & 5"])
def test_what_is_no_affine_operation(text: str) -> None:
    assert not _sets.is_affine(parse_expression(text)) or text == "3 & 5"


def exchanged() -> lk.Kernel:
    """Neighbours at a distance of four change places; every other row of eight is left alone."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < 8*n }",
        "y[i ^ 4] = x[i] + y[i ^ 4] {if=(i & 8) == 0}",
        [*(lk.GlobalArg(a, "float32", shape="8*n") for a in "xy"), ...],
    )


def test_a_schedule_is_proven_and_right() -> None:
    knl = exchanged().split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert knl.history[-1].verdict == "proven"
    assert "^ 4" in knl.cuda()
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    x = np.arange(40, dtype=np.float32)
    for order in ("ascending", "descending", "random"):
        y = np.ones(40, np.float32)
        knl.executor("host", order=order, seed=1)(x=x, y=y)
        i = np.arange(40)
        expected = np.where(i & 8, 1, x[i ^ 4] + 1)
        assert (y == expected).all()
        reference = np.ones(40, np.float32)
        exchanged().executor("reference")(x=x, y=reference)
        assert (y == reference).all()


def test_a_witness_names_the_cell() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 8*n }",
        "x[i] = x[i ^ 4] {id=move}",
        [lk.GlobalArg("x", "float32", shape="8*n"), ...],
    )
    with pytest.raises(lk.RaceError) as caught:
        knl.tag_inames("i: l.0")
    witness = caught.value.witness
    assert witness is not None
    assert {witness.source.inames["i"], witness.sink.inames["i"]} == {0, 4}


def test_outside_of_the_array_is_seen() -> None:
    with pytest.raises(lk.OutOfBoundsError):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "y[i] = x[i ^ 4]",
            [*(lk.GlobalArg(a, "float32", shape="n") for a in "xy"), ...],
        )


REVERSED = [
    ("y[(i & 1) << 2 | i & 2 | i >> 2] = x[i]", 8, lambda i: (i & 1) << 2 | i & 2 | i >> 2),
    ("y[(i & 1)*4 ^ i & 2 ^ i // 4] = x[i]", 8, lambda i: (i & 1) << 2 | i & 2 | i >> 2),
    ("y[(i >> 2) << 3 | i & 3] = x[i]", 32, lambda i: i >> 2 << 3 | i & 3),
    ("y[i % 4 * 8 | i // 4] = x[i]", 32, lambda i: i % 4 * 8 | i // 4),
]


@pytest.mark.parametrize(("text", "count", "place"), REVERSED)
def test_operands_without_common_bits_add_up(text: str, count: int, place: Any) -> None:
    knl = lk.make_kernel(
        f"{{ [i]: 0 <= i < {count} }}",
        text,
        [lk.GlobalArg("y", shape=64), ...],
        dtypes={"x, y": "float32"},
    ).tag_inames("i: l.0")
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    assert knl.prove(text=True).ok
    x = np.arange(count, dtype="f4")
    due = np.zeros(64, "f4")
    due[[place(i) for i in range(count)]] = x
    for executor in ("host", "reference"):
        np.testing.assert_array_equal(knl.executor(executor)(x=x, y=np.zeros(64, "f4")), due)


@given(st.integers(0, 7), st.integers(0, 31), st.sampled_from("|^"))
def test_sums_of_bits_are_the_bits(i: int, j: int, operator: str) -> None:
    text = f"y[0] = ((i & 5) {operator} (j >> 2 << 3) {operator} 0) + (i {operator} j)"
    knl = lk.make_kernel(
        f"{{ [i, j]: {i} <= i <= {i} and {j} <= j <= {j} }}", text, dtypes={"y": "int64"}
    )
    fold = {"|": int.__or__, "^": int.__xor__}[operator]
    assert knl.executor("reference")()[0] == fold(i & 5, j >> 2 << 3) + fold(i, j)


def test_operands_with_common_bits_stay() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = (i & 3) | (i & 6) | (k[i] & 8)", dtypes={"k, y": "int32"}
    )
    assert "i & 3 | i & 6" in str(knl)


#: Masks with gaps, so that each has a quotient for each end of its runs.
GAPS = ("(j & 5) != 1", "(j & 21) != 5", "(j & 85) != 17", "(j & 85) == 17")


@pytest.mark.parametrize("where", ["condition", "domain"])
@pytest.mark.parametrize("condition", GAPS)
def test_masks_with_gaps_are_decided_soon(where: str, condition: str) -> None:
    """How far ``j ^ 21`` reaches is a number, however many parts the set of it has."""
    said = condition.replace("==", "=")
    inside = f" and {said}" if where == "domain" else ""
    line = "y[j] = x[j ^ 21]"
    text = f"if {condition}\n{line}\nend" if where == "condition" else line

    def scheduled() -> lk.Kernel:
        domain = f"{{ [j]: 0 <= j < 256{inside} }}"
        knl = lk.make_kernel(domain, text, dtypes={"x, y": "float32"})
        return knl.split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")

    knl, taken = timed(scheduled)
    assert taken < 0.5
    assert knl.prove().ok
    ran = [j for j in range(256) if eval(condition, {"j": j})]
    assert knl.arg_by_name["x"].shape == (1 + max(j ^ 21 for j in ran),)
    x = np.arange(256, dtype="f4")[: knl.arg_by_name["x"].shape[0]]
    y = np.zeros(knl.arg_by_name["y"].shape, "f4")
    due = y.copy()
    due[ran] = [j ^ 21 for j in ran]
    np.testing.assert_array_equal(knl.executor("reference")(x=x, y=y), due)


@pytest.mark.parametrize(
    "text", ["i ^ j", "i | j", "i & j", "i ^ i >> 1", "(i ^ j) + (j | 3)", "~i & j"]
)
def test_bits_of_several_unknowns_are_proven(text: str) -> None:
    """What the source computes of two inames is what the kernel says, and nothing else."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 16 and 0 <= j < 11 }",
        f"y[i, {text}] = x[i, j]",
        [lk.GlobalArg("y", shape=(16, 48)), ...],
        dtypes={"x, y": "float32"},
    )
    assert knl.prove(text=True).ok
    source = str(knl.cuda())
    line = next(line for line in source.splitlines() if "// insn" in line)
    operator = next(o for o in "^|&" if o in line)
    for other in "^|&".replace(operator, ""):
        found = prove_source(knl, source.replace(line, line.replace(operator, other, 1)))
        assert "access" in {f.kind for f in found.findings}, str(found)


@pytest.mark.parametrize(
    ("index", "domain", "cell"),
    [
        ("i ^ j", "0 <= i, j < 20", 20),
        ("i | j", "0 <= i, j < 20", 20),
        ("i ^ j", "0 <= i, j < n", 20),
        ("i*j", "0 <= i, j < 20", 20),
        ("i**2", "0 <= i < 20 and j = 0", 25),
        ("n*i", "0 <= i < n and j = 0", 20),
        ("1 << i", "0 <= i < 6 and j = 0", 32),
        ("i % (j + 1)", "0 <= i, j < 30", 20),
    ],
)
def test_what_no_set_knows_leaves_an_array_of_numbers(index: str, domain: str, cell: int) -> None:
    with pytest.raises(lk.OutOfBoundsError) as refused:
        lk.make_kernel(
            f"{{ [i, j]: {domain} }}",
            f"y[{index}] = 1",
            [lk.GlobalArg("y", shape=20), ...],
            dtypes={"y": "float32"},
        )
    assert refused.value.witness is not None
    assert refused.value.witness.cell == (cell,)


def test_what_is_not_understood_is_open() -> None:
    """Shifts by inames have no form in the proof: nothing is said to be wrong."""
    arrays = [lk.GlobalArg("y", "float32", 17), ...]
    knl = lk.make_kernel("{ [i]: 0 <= i < 5 }", "y[1 << i] = 1", arrays)
    assert not knl.prove().findings


@pytest.mark.parametrize(
    ("place", "legal"),
    [
        ("i, i ^ j", True),
        ("i ^ 3 ^ j, i", True),
        ("(3*i + 1) ^ j, i", True),
        ("i, j ^ 3*j", False),  # 3 ^ 9 and 1 ^ 3 differ, which nothing here knows
        ("i, (i ^ j) // 2", False),
        ("i ^ j, 0", False),
    ],
)
def test_an_exclusive_or_with_what_is_known_tells_the_rest(place: str, legal: bool) -> None:
    knl = lk.make_kernel(
        "{ [b, i, j]: 0 <= b < n and 0 <= i, j < 16 }",
        f"y[b, {place}] = x[b, i, j]",
        [lk.GlobalArg("y", shape="n, 64, 64"), ...],
        dtypes={"x, y": "float32"},
    )
    if not legal:
        with pytest.raises((lk.RaceError, lk.UndecidedError)):
            knl.tag_inames("b: g.0, i: l.1, j: l.0")
        return
    block = knl.tag_inames("b: g.0, i: l.1, j: l.0")
    assert block.prove(text=True).ok
    x, y = np.arange(512, dtype=np.float32).reshape(2, 16, 16), np.zeros((2, 64, 64), np.float32)
    want = knl.executor("reference")(x=x, y=y.copy())
    assert np.array_equal(np.sort(want[want > 0]), x[x > 0])
    for order in ("ascending", "descending"):
        assert np.array_equal(block.executor("host", order=order)(x=x, y=y.copy()), want)


PERMUTATIONS: dict[str, Callable[[int], int]] = {
    "i ^ i >> 1": lambda i: i ^ i >> 1,
    "i ^ (i & 7) << 3": lambda i: i ^ (i & 7) << 3,
    "i % 8 ^ i // 8 | i // 8 << 3": lambda i: i % 8 ^ i // 8 | i // 8 << 3,
    "i & ~7 | 7 - (i & 7)": lambda i: i & ~7 | 7 - (i & 7),
    "i ^ (i >> 2 & 1)*3": lambda i: i ^ (i >> 2 & 1) * 3,
    "(i*13 ^ 21) & 63": lambda i: (i * 13 ^ 21) & 63,
    "(i & 1) | (i & 8) >> 2 | (i & 2) << 1 | (i & 16) >> 1 | (i & 4) << 2 | i & 32": lambda i: (
        (i & 1) | (i & 8) >> 2 | (i & 2) << 1 | (i & 16) >> 1 | (i & 4) << 2 | i & 32
    ),
}


@pytest.mark.parametrize("text", PERMUTATIONS)
def test_permutations_go_to_threads(text: str) -> None:
    """Gray codes, swizzles, Morton order: no set need know them, of 64 points all are looked at."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 64 }",
        f"y[{text}] = x[i]",
        [lk.GlobalArg("y", shape=64), ...],
        dtypes={"x, y": "float32"},
    )
    x = np.arange(64, dtype="f4")
    due = np.zeros(64, "f4")
    due[[PERMUTATIONS[text](i) for i in range(64)]] = x
    for scheduled in (
        knl.tag_inames("i: l.0"),
        knl.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0"),
        knl.split_iname("i", 5, outer_tag="l.0", inner_tag="unr"),
    ):
        proof, took = timed(scheduled.prove)
        assert proof.ok, proof
        assert took < 1.5
        for order in ("ascending", "random"):
            found = scheduled.executor("host", order=order)(x=x, y=np.zeros(64, "f4"))
            np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("text", ["(i ^ i >> 1) & 62", "i ^ i >> 1 | 1", "(i ^ 3*i) & 63"])
def test_what_is_no_permutation_does_not(text: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 64 }",
        f"y[{text}] = x[i]",
        [lk.GlobalArg("y", shape=64), ...],
        dtypes={"x, y": "float32"},
    )
    with pytest.raises((lk.RaceError, lk.UndecidedError)):
        knl.tag_inames("i: l.0")
    assert not knl.tag_inames("i: l.0", unchecked=True).prove().ok


def test_two_indices_tell_together_what_neither_does() -> None:
    """A swizzled row: which row it is says what the exclusive or is with."""
    knl = lk.make_kernel(
        "{ [b, i]: 0 <= b < n and 0 <= i < 64 }",
        "y[b, i // 8, i % 8 ^ i // 8] = x[b, i]",
        [lk.GlobalArg("y", shape="n, 8, 8"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).tag_inames("b: g.0, i: l.0")
    assert knl.prove().ok, knl.prove()


@pytest.mark.host
def test_code_is_made_for_morton_order() -> None:
    """Bits of two numbers in turns: 32 x 32 cells, each of a thread of its own."""
    bits = (f"{4**t}*(i // {2**t} % 2) + {2 * 4**t}*(j // {2**t} % 2)" for t in range(5))
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 32 }",
        f"a[{' + '.join(bits)}] = b[i, j]",
        [lk.GlobalArg("a", "float32", "1024"), lk.GlobalArg("b", "float32", "32, 32")],
    ).tag_inames("i: g.0, j: l.0")
    assert knl.prove().ok
    b = np.random.default_rng(0).random((32, 32), dtype=np.float32)
    a = np.zeros(1024, np.float32)
    knl.executor("host")(a=a, b=b)
    assert a[0b1011] == b[0b01, 0b11]
    assert sorted(a) == sorted(b.ravel())


def test_permutations_of_any_size_go_to_blocks() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i ^ i >> 1] = x[i]",
        [lk.GlobalArg("y", shape="2*n"), ...],
        dtypes={"x, y": "float32"},
    )
    assert knl.tag_inames("i: g.0").fix_parameters(n=100).prove().ok


def test_what_would_decide_a_question_of_bits_is_told() -> None:
    """An odd factor of any size permutes the numbers of 16 bits, and nothing here knows that."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 65536 }",
        "y[i*(2*m + 1) % 65536] = x[i]",
        [lk.GlobalArg("y", shape="65536"), ...],
        dtypes={"x, y": "float32"},
        assumptions="m >= 0",
    )
    with pytest.raises(lk.UndecidedError, match="makes a size a number"):
        knl.tag_inames("i: g.0")
    assert knl.fix_parameters(m=3).tag_inames("i: g.0")


@pytest.mark.parametrize("kind", ["int8", "uint32", "int64", "bool"])
@pytest.mark.parametrize("name", ["bit_and", "bit_or", "bit_xor"])
def test_reductions_of_bits_are_proven(name: str, kind: str) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 40 }", f"y[i] = {name}(j, z[i, j])", dtypes={"z": kind}
    )
    rng = np.random.default_rng(3)
    z = rng.integers(0, 2 if kind == "bool" else 100, (3, 40)).astype(kind)
    due = getattr(np, name.replace("bit_", "bitwise_")).reduce(z, axis=1)
    for scheduled in (
        knl,
        knl.split_iname("j", 8, inner_tag="unr").tag_inames("i: g.0"),
        knl.split_iname("j", 32, inner_tag="l.0").tag_inames("i: g.0"),
    ):
        proof = scheduled.prove()
        assert proof.ok, proof
        np.testing.assert_array_equal(scheduled.executor("host")(z=z), due)
    symbol = {"bit_and": "&=", "bit_or": "|=", "bit_xor": "^="}[name]
    other = knl.cuda().replace(symbol, "|=" if symbol != "|=" else "^=")
    assert other != knl.cuda()
    assert not prove_source(knl, other).ok


@pytest.mark.parametrize("kind", ["int8", "uint16", "uint32", "int32", "int64"])
def test_shifts_by_whole_numbers(kind: str) -> None:
    """Counts without a type are those of the value's own: here and in the reference."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        a[i] = z[i] >> (32 - r)
        b[i] = z[i] << (r - 3)
        c[i] = z[i] >> (i*r)
        """,
        dtypes={"z": kind, "r": "int32"},
    )
    assert knl.prove().ok, knl.prove()
    z = np.array([1, 2, 100, 77, 64, 3], kind)
    for r in (0, 1, 3, 20, 31, 40, 257, 2**31 - 2**20, -5):
        found, due = (knl.executor(e)(z=z, r=r) for e in ("host", "reference"))
        for one, two in zip(found, due, strict=True):
            np.testing.assert_array_equal(one, two)


def _put_and_taken() -> lk.Kernel:
    """A thread more than put something into places that bits say, and others take it out."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 32 and 0 <= j < 33 }",
        """
        s[(i ^ i >> 1) % 48] = x[i]
        y[j] = 2*s[j - j // 32]
        """,
        [lk.TemporaryVariable("s", "float32", "48", address_space="local"), ...],
        dtypes={"x, y": "float32"},
    ).tag_inames("i: l.0, j: l.0")


@pytest.mark.host
def test_what_bits_are_of_is_narrowed_by_a_guard() -> None:
    """``i`` has five bits where the kernel has it, and six in the text, under ``if (i <= 31)``."""
    knl = _put_and_taken()
    assert not any(open_.kind == "access" for open_ in knl.prove().undecided)
    assert not knl.prove().findings
    x = np.arange(32, dtype="f4")
    want = knl.executor("reference")(x=x)
    for order in ("ascending", "random"):
        np.testing.assert_array_equal(knl.executor("host", order=order)(x=x), want)


def test_what_lines_write_somewhere_is_not_found_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is open which cells a line writes, it is open whether a cell was written."""
    monkeypatch.setattr(cells, "_TRIED", 0)
    proof = _put_and_taken().prove()
    assert {open_.kind for open_ in proof.undecided} >= {"access", "unwritten"}
    assert not proof.findings, proof
