"""Expressions: precedence against Python itself, nodes, messages, speed."""

from __future__ import annotations

import operator
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pace import seconds
from pymbolic.primitives import Call, Product, Sum, Variable
from seams import Reduction, TypeCast, parse_expression, resolve_reductions

from loopkit import ParseError

a, b, c, i, j, k, x, y = map(Variable, "abcijkxy")

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def value(expr: Any, env: dict[str, int]) -> Any:
    """What an expression of Python's own numbers evaluates to."""

    def rec(e: Any) -> Any:
        return value(e, env)

    match expr:
        case prim.Variable():
            return env[expr.name]
        case prim.Sum():
            return reduce(operator.add, map(rec, expr.children))
        case prim.Product():
            return reduce(operator.mul, map(rec, expr.children))
        case prim.FloorDiv():
            return rec(expr.numerator) // rec(expr.denominator)
        case prim.Remainder():
            return rec(expr.numerator) % rec(expr.denominator)
        case prim.Quotient():
            return rec(expr.numerator) / rec(expr.denominator)
        case prim.Power():
            return rec(expr.base) ** rec(expr.exponent)
        case prim.Comparison():
            return COMPARE[expr.operator](rec(expr.left), rec(expr.right))
        case prim.LogicalAnd():
            return all(map(rec, expr.children))
        case prim.LogicalOr():
            return any(map(rec, expr.children))
        case prim.LogicalNot():
            return not rec(expr.child)
        case prim.BitwiseAnd():
            return reduce(operator.and_, map(rec, expr.children))
        case prim.BitwiseOr():
            return reduce(operator.or_, map(rec, expr.children))
        case prim.BitwiseXor():
            return reduce(operator.xor, map(rec, expr.children))
        case prim.BitwiseNot():
            return ~rec(expr.child)
        case prim.LeftShift():
            return rec(expr.shiftee) << rec(expr.shift)
        case prim.RightShift():
            return rec(expr.shiftee) >> rec(expr.shift)
        case prim.If():
            return rec(expr.then) if rec(expr.condition) else rec(expr.else_)
        case prim.Min():
            return min(map(rec, expr.children))
        case prim.Max():
            return max(map(rec, expr.children))
        case _:
            return expr


INFIX = ["+", "-", "*", "//", "%", "&", "|", "^", " + ", " - "]


def arithmetic(random: Random, depth: int) -> str:
    def inner() -> str:
        return arithmetic(random, depth - 1)

    kind = random.randrange(9) if depth > 0 else 0
    if kind == 0:
        return random.choice(["a", "b", "c", "0", "1", "2", "3", "0x1F", "1_0"])
    if kind < 4:
        text = f"{inner()}{random.choice(INFIX)}{inner()}"
        return f"({text})" if kind == 3 else text
    if kind == 4:
        return f"({inner()}){random.choice(['<<', '>>', '**'])}{random.choice('0123')}"
    if kind == 5:
        return f"{random.choice('abc123')}**{random.choice('012')}"
    if kind == 6:
        return random.choice("-~+") + inner()
    return f"{random.choice(['max', 'min'])}({inner()}, {inner()})"


def logical(random: Random, depth: int) -> str:
    def inner() -> str:
        return logical(random, depth - 1)

    kind = random.randrange(7) if depth > 0 else 0
    if kind == 0:
        text = arithmetic(random, 2)
        for _ in range(random.randrange(1, 3)):
            text += f" {random.choice(list(COMPARE))} {arithmetic(random, 2)}"
        return random.choice([text, text, text, "True", "False"])
    if kind < 4:
        return f"{inner()} {random.choice(['and', 'or'])} {inner()}"
    if kind == 4:
        return f"not {inner()}"
    if kind == 5:
        return f"({inner()} if ({inner()}) else {inner()})"
    return f"({inner()})"


@given(
    random=st.randoms(use_true_random=False),
    is_logical=st.booleans(),
    env=st.tuples(*[st.integers(-9, 9)] * 3),
)
def test_means_what_python_means(
    random: Random, is_logical: bool, env: tuple[int, int, int]
) -> None:
    text = logical(random, 3) if is_logical else arithmetic(random, 5)
    names = dict(zip("abc", env, strict=True))
    try:
        expected = eval(text, {"__builtins__": {"max": max, "min": min}}, names)
    except (ZeroDivisionError, OverflowError, ValueError):
        parse_expression(text)
        return
    assert value(parse_expression(text), names) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[i, j]", prim.Subscript(a, (i, j))),
        ("a[i]", prim.Subscript(a, (i,))),
        ("a[i,]", prim.Subscript(a, (i,))),
        ("a[()]", prim.Subscript(a, ())),
        ("a[b[i], 2*j]", prim.Subscript(a, (prim.Subscript(b, (i,)), Product((2, j))))),
        ("a - b - c", Sum((a, Product((-1, b)), Product((-1, c))))),
        ("a - (b - c)", Sum((a, Product((-1, Sum((b, Product((-1, c))))))))),
        ("a + (b + c)", Sum((a, Sum((b, c))))),
        ("i - 2", Sum((i, -2))),
        ("a/b*c", Product((prim.Quotient(a, b), c))),
        ("-x**2", Product((-1, prim.Power(x, 2)))),
        ("2**-1", prim.Power(2, -1)),
        ("a**b**c", prim.Power(a, prim.Power(b, c))),
        ("if(a < b, x, y)", prim.If(prim.Comparison(a, "<", b), x, y)),
        ("x if a < b else y", prim.If(prim.Comparison(a, "<", b), x, y)),
        (
            "0 <= i < a",
            prim.LogicalAnd((prim.Comparison(0, "<=", i), prim.Comparison(i, "<", a))),
        ),
        ("max(a, b, c)", prim.Max((a, b, c))),
        ("float32(x + 1)", TypeCast(np.dtype("float32"), Sum((x, 1)))),
        ("cast(int8, x)", TypeCast(np.dtype("int8"), x)),
        ("np.uint8(x)", TypeCast(np.dtype("uint8"), x)),
        ("sqrt(x)", Call(Variable("sqrt"), (x,))),
        ("sum(k, a[k])", Call(Variable("sum"), (k, prim.Subscript(a, (k,))))),
        ("sum((i, k), x)", Call(Variable("sum"), ((i, k), x))),
        ("sum([i, k], x)", Call(Variable("sum"), ((i, k), x))),
        ("reduce(sum, (i, k), x)", Call(Variable("sum"), ((i, k), x))),
        ("reduce(max, k, x)", Call(Variable("max"), ((k,), x))),
        ("reduce(sum, [i, k], x)", Call(Variable("sum"), ((i, k), x))),
        ("simul_reduce(sum, k, x)", Call(Variable("sum"), ((k,), x))),
        ("end + for_", Sum((Variable("end"), Variable("for_")))),
    ],
)
def test_tree(text: str, expected: Any) -> None:
    assert parse_expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.", 1.0),
        (".5", 0.5),
        ("1e-3", 1e-3),
        ("2.5E+10", 2.5e10),
        ("-3", -3),
        ("0xff", 255),
        ("0b11", 3),
        ("0x1p-3", 0.125),
        ("0X.8P+2", 2.0),
        ("-0xA.p0", -10.0),
        ("0x0p9", 0.0),
        ("0x1p-1074", 5e-324),
        ("2j", 2j),
        ("1.5e3j", 1.5e3j),
        ("True", True),
    ],
)
def test_literal(text: str, expected: Any) -> None:
    parsed = parse_expression(text)
    assert type(parsed) is type(expected)
    assert parsed == expected


def test_hexadecimal_digits_with_an_e_have_no_exponent() -> None:
    assert parse_expression("0x1e-3") == Sum((30, -3))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_hexadecimal_fractions_are_read_exactly(number: float) -> None:
    parsed = parse_expression(number.hex())
    assert parsed.hex() == number.hex()


def test_bfloat16_is_a_type() -> None:
    import ml_dtypes

    assert parse_expression("bfloat16(x)").dtype == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("2.0f", "float32(2.0)"),
        (".5f", "float32(0.5)"),
        ("5f", "float32(5.0)"),
        ("x - 1e-3f*y", "x - float32(0.001)*y"),
        ("2.0d", "float64(2.0)"),
        ("-5jf", "-complex64(5j)"),
        ("2.5jd", "complex128(2.5j)"),
    ],
)
def test_numbers_may_say_their_type(text: str, long: str) -> None:
    assert parse_expression(text) == parse_expression(long)


ERRORS = {
    "suffix": "a + 1.0F",
    "letters": "2x + 1",
    "hexadecimal_dot": "0x1.8",
    "hexadecimal_digits": "x + 0x1.00000000000001p0",
    "hexadecimal_tiny": "0x1p-1075",
    "hexadecimal_large": "0x1p1024",
    "hexadecimal_suffix": "0x1p3f",
    "hexadecimal_no_digits": "0xp3",
    "bracket": "a[i + (j - 1)",
    "wrong_bracket": "a[i)",
    "extra_bracket": "a + b)",
    "no_operator": "a b",
    "no_operand": "a +",
    "empty": "",
    "star": "a + * b",
    "empty_subscript": "a[]",
    "two_subscripts": "a[i][j]",
    "subscript_of_sum": "(a + b)[i]",
    "call_of_call": "f(x)(y)",
    "and": "a && b",
    "assignment": "a = b",
    "named_argument": "f(x=1)",
    "ternary": "a ? b : c",
    "no_else": "a if b",
    "slice": "a[i:j]",
    "attribute": "a.shape",
    "tagged": "a$ near[i]",
    "tagged_where_nothing_is_used": "2*a$near[i]",
    "dotted": "np.pi * x",
    "string": "f('x')",
    "lambda": "lambda x",
    "tuple": "2*(i, j)",
    "tuple_as_second_argument": "f(x, (i, j))",
    "comma": "a, b",
    "if_arguments": "if(a, b)",
    "max_arguments": "max(a)",
    "cast_arguments": "float32(a, b)",
    "cast_type": "cast(flot32, x)",
    "reduce_iname": "reduce(sum, 3, x)",
    "reduce_name": "reduce(3, k, x)",
    "second_line": "a[i]\n  + (b\n  * c",
}


def test_errors_point_at_the_mistake(golden: Any) -> None:
    report = []
    for name, text in ERRORS.items():
        with pytest.raises(ParseError) as caught:
            parse_expression(text)
        assert caught.value.position is not None
        report.append(f"--- {name}: {text!r}\n{caught.value}\n")
    golden("syntax/expression_errors.txt", "\n".join(report))


def test_nesting_too_deep_is_an_error() -> None:
    with pytest.raises(ParseError, match="operations deep"):
        parse_expression("(" * 20000 + "x" + ")" * 20000)


class TestReductions:
    @staticmethod
    def resolve(text: str) -> Any:
        return resolve_reductions(parse_expression(text), lambda name: name in ("k", "l"))

    def test_by_iname(self) -> None:
        assert self.resolve("2*sum(k, a[k])") == Product(
            (2, Reduction("sum", ("k",), prim.Subscript(a, (k,))))
        )

    def test_tuple(self) -> None:
        assert self.resolve("sum((k, l), x)") == Reduction("sum", ("k", "l"), x)

    def test_nested(self) -> None:
        assert self.resolve("sum(k, max(l, x))") == Reduction(
            "sum", ("k",), Reduction("max", ("l",), x)
        )

    def test_max_of_an_iname_and_a_value(self) -> None:
        assert self.resolve("max(i, x)") == prim.Max((i, x))
        assert self.resolve("max(k, x)") == Reduction("max", ("k",), x)
        assert self.resolve("max(k, x, y)") == prim.Max((k, x, y))

    def test_inside_its_own_reduction_an_iname_is_a_value(self) -> None:
        assert self.resolve("sum(k, max(k, x))") == Reduction("sum", ("k",), prim.Max((k, x)))

    def test_registered_name(self) -> None:
        expr = parse_expression("norm2(k, a[k]) + other(k, x)")
        resolved = resolve_reductions(expr, lambda name: name == "k", reductions={"norm2": ()})
        assert resolved == Sum(
            (
                Reduction("norm2", ("k",), prim.Subscript(a, (k,))),
                Call(Variable("other"), (k, x)),
            )
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("sum(q, x)", "cannot reduce over 'q'"),
            ("sum(k, sum(k, x))", "inside a reduction over 'k'"),
            ("sum(a[k], x)", "'a[k]' is not an iname"),
            ("sum(x)", "takes an iname"),
            ("sum((k, k), x)", "names an iname twice"),
            ("f((k, l), x)", "'f' is not a reduction"),
            ("reduce(max, i, x)", "cannot reduce over 'i'"),
        ],
    )
    def test_errors(self, text: str, message: str) -> None:
        with pytest.raises(ParseError) as caught:
            self.resolve(text)
        assert message in str(caught.value)


def test_is_fast() -> None:
    text = "a[i,k]*b[k,j] + 2*x"
    parse_expression(text)

    def a_hundred() -> None:
        for _ in range(100):
            parse_expression(text)

    assert seconds(a_hundred, runs=5, enough=0.01) < 100 * 100e-6


@pytest.mark.parametrize("text", ["1_000", "1_000.5", "1_0.2_5", "1_0e3", "2_5.e-2"])
def test_numbers_have_underscores_where_those_of_python_have_them(text: str) -> None:
    assert parse_expression(text) == float(text)
