"""Reading CUDA C back: expressions, statements, and the forms that sets are made of."""

from __future__ import annotations

import functools
import itertools

import pytest
from proof_scopes import anywhere, translator
from seams import (
    Assign,
    Binary,
    Choice,
    Declaration,
    Element,
    Function,
    Names,
    ReadError,
    Space,
    Wait,
    by_comment,
    forms,
    is_known,
    negated,
    read_function,
    shown,
    statement_text,
)
from seams import CFor as For
from seams import CIf as If
from seams import CLet as Let
from seams import condition_conjuncts as conjuncts

X, Y, N = forms.variable("x"), forms.variable("y"), forms.variable("n")


def read(body: str) -> Function:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    head = 'extern "C" __global__ void __launch_bounds__(4)\nf(int const n, float *__restrict__ a)'
    return read_function(f"{head}\n{{\n{lines}\n}}\n", by_comment(frozenset(["s"])))


def value_of(text: str) -> object:
    [node] = read(f"a[0] = {text};").body
    assert isinstance(node, Assign)
    return node.value


# {{{ statements


def test_statements() -> None:
    nodes = read(
        """
        __shared__ __align__(16) float t[4][8];
        float acc;
        int const i = threadIdx.x;
        for (int j = 0; j < n; j += 2) {
            if (i + j < n && a[i] > 0.5f)
                t[i][j] = a[i * n + j];  // s: sum over j
            __syncthreads();             // why
        }
        """
    ).body
    shared, acc, let, loop = nodes
    assert isinstance(shared, Declaration) and shared.dimensions == (4, 8)
    assert isinstance(acc, Declaration) and (acc.space, acc.dimensions) == ("private", ())
    assert isinstance(let, Let) and let.name == "i"
    assert isinstance(loop, For) and (loop.step, loop.inclusive) == (2, False)
    guard, barrier = loop.body
    assert isinstance(guard, If) and isinstance(guard.body[0], Assign)
    assert guard.body[0].statement == "s"
    assert isinstance(barrier, Wait) and barrier.scope == "block"
    assert barrier.line == 10


def test_dynamic_shared_memory() -> None:
    nodes = read(
        """
        extern __shared__ __align__(16) unsigned char shared_memory[];
        float (*t)[4][8] = (float (*)[4][8])(shared_memory + 0);
        long long *u = (long long *)(shared_memory + 128);
        float &v = *(float *)(shared_memory + 256);
        """
    ).body
    found = [(d.name, d.dimensions, d.offset) for d in nodes if isinstance(d, Declaration)]
    assert found == [("t", (None, 4, 8), 0), ("u", (None,), 128), ("v", (), 256)]


def test_atomics() -> None:
    [node] = read("atomicAdd(&a[n - 1], 2.0f);").body
    assert isinstance(node, Assign)
    assert node.atomic and node.operator == "+=" and isinstance(node.target, Element)


@pytest.mark.parametrize(
    "body",
    [
        "while (n) a[0] = 1;",
        "a[0] = 1",
        "a[0] ? 1;",
        "for (int j = 0; j > n; ++j) a[j] = 1;",
        "for (int j = 0; j < n; --j) a[j] = 1;",
        "for (int j = 0; j < n | 1; ++j) a[j] = 1;",
        "for (int j = 0; j < n && n; ++j) a[j] = 1;",
        "for (int j = 0; j < n ? 1 : 2; ++j) a[j] = 1;",
        "__syncwarp(15);",
        "continue;",
        "goto 1;",
        "if (n < 1) { extern __shared__ __align__(16) unsigned char shared_memory[]; }",
        "a[0] = 'x';",
    ],
)
def test_what_is_not_printed_is_not_understood(body: str) -> None:
    with pytest.raises(ReadError):
        read(body)


@pytest.mark.parametrize("upper", ["n | 1", "n ? 1 : 2", "n == 2", "n + 1", "n << 1"])
def test_the_end_of_a_loop_is_read_as_it_is_printed(upper: str) -> None:
    [node] = read(f"for (int j = 0; j < ({upper}); ++j) a[j] = 1;").body
    assert isinstance(node, For)
    [again] = read(f"{statement_text(node)} a[j] = 1;").body
    assert isinstance(again, For) and again.upper == node.upper


# }}}

# {{{ expressions


def test_precedence() -> None:
    value = value_of("n - 1 - 2 * n % 3 < 4 && n == 2 ? -n : n << 1")
    assert isinstance(value, Choice)
    condition = value.condition
    assert isinstance(condition, Binary) and condition.operator == "&&"
    less = condition.left
    assert isinstance(less, Binary) and less.operator == "<"
    assert isinstance(less.left, Binary) and less.left.operator == "-"
    assert isinstance(less.left.left, Binary) and less.left.left.operator == "-"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n + 1", "int32"),
        ("n + 1LL", "int64"),
        ("(long long)n * n", "int64"),
        ("n * 3000000000LL", "int64"),
        ("n + 1u", "uint32"),
        ("lk_floordiv(n, 2LL)", "int64"),
        ("n < 2LL", "int32"),
        ("a[0] + n", "float32"),
        ("n * 0.5", "float64"),
        ("(int)a[0]", "int32"),
        ("n ? 1 : 2LL", "int64"),
    ],
)
def test_types(text: str, kind: str) -> None:
    function = read(f"a[0] = {text};")
    [node] = function.body
    assert isinstance(node, Assign)
    assert Names(function).computed_in(node.value) == kind


@pytest.mark.parametrize(
    "text",
    [
        "7 * n - 3",
        "n / 5",
        "n % 5",
        "(n - 9) / 4 + (n - 9) % 4",
        "-n / 3 + -n % 3",
        "lk_floordiv(n - 9, 4) * lk_mod(3 - n, 5)",
        "(n - 9) >> 2",
        "(n - 9) & 7",
        "min(n, 4) - max(n - 9, min(3, 2 - n))",
        "(n + 1) * (n - 2) * 3 << 1",
    ],
)
def test_forms_compute_what_c_does(text: str) -> None:
    function = read(f"a[0] = {text};")
    [node] = function.body
    assert isinstance(node, Assign)
    form = translator(function).form(node.value, anywhere())
    for n in range(-20, 21):
        assert forms.value_at(form, {"n": n}) == _as_c(text, n)


def _as_c(text: str, n: int) -> int:
    """The value of a text by Python, in which C's quotients are spelled out."""

    class Int(int):
        def __truediv__(self, by: int) -> Int:
            return Int(abs(self) // by * (1 if self >= 0 else -1))

        def __mod__(self, by: int) -> Int:
            return Int(self - by * (self / by))

        def __neg__(self) -> Int:
            return Int(-int(self))

        __add__ = lambda a, b: Int(int(a) + int(b))  # noqa: E731
        __sub__ = lambda a, b: Int(int(a) - int(b))  # noqa: E731
        __rsub__ = lambda a, b: Int(int(b) - int(a))  # noqa: E731
        __mul__ = lambda a, b: Int(int(a) * int(b))  # noqa: E731

    names = {
        "n": Int(n),
        "lk_floordiv": lambda a, b: Int(int(a) // int(b)),
        "lk_mod": lambda a, b: Int(int(a) % int(b)),
    }
    return int(eval(text, {"min": min, "max": max}, names))


# }}}

# {{{ forms and sets


def test_forms_are_canonical() -> None:
    plus, minus, scaled = forms.plus, forms.minus, forms.scaled
    times = functools.partial(forms.make_term, "mul")
    assert times(plus(X, Y), minus(X, Y)) is minus(times(X, X), times(Y, Y))
    assert forms.floor(plus(scaled(X, 16), Y, forms.number(20)), 8) is plus(
        scaled(X, 2), forms.floor(plus(Y, forms.number(4)), 8), forms.number(2)
    )
    assert forms.make_term("min", X, forms.make_term("min", Y, X)) is forms.make_term("min", Y, X)
    assert shown(minus(scaled(X, 3), plus(Y, forms.number(2)))) == "3*x - y - 2"


def test_large_products_stay_whole() -> None:
    many = forms.number(0)
    for k in range(40):
        many = forms.plus(many, forms.variable(f"v{k}"))
    assert not forms.is_affine(forms.make_term("mul", many, many))
    assert len(forms.polynomial(forms.make_term("mul", many, many))) == 1


CONDITIONS = (
    "x < y",
    "x <= 3 && y != x",
    "x / 2 == y",
    "x % 3 == 1 || !(y < x)",
    "min(x, y) > 1 && max(x, 2) <= 3",
    "!(x - y < 2 && (x == 3 || y >= 0))",
    "(x + max(y, 1)) / 2 == 2",
)


@pytest.mark.parametrize("text", CONDITIONS)
def test_sets_hold_what_conditions_do(text: str) -> None:
    """isl's sets, point by point, against Python."""
    function = read(f"if ({text})\n    a[0] = 1;")
    [guard] = function.body
    assert isinstance(guard, If)
    translated = translator(function, x="int", y="int")
    condition = translated.condition(guard.condition, anywhere())
    assert all(is_known(c) for c in conjuncts(condition))
    space = Space(["x", "y"])
    holds, fails = space.where(condition), space.where(negated(condition))
    python = text.replace("&&", "and").replace("||", "or").replace("!(", "not (")
    for x, y in itertools.product(range(-5, 6), repeat=2):
        point = space.all_of(
            [translated.condition(Binary("==", *sides), anywhere()) for sides in _fixed(x, y)]
        )
        c_like = python.replace(" / 2", " // 2") if min(x, y) >= 0 else None
        if c_like is None and ("/" in text or "%" in text):
            continue  # C rounds otherwise; forms are compared with that above
        expected = bool(eval(c_like or python, {"min": min, "max": max}, {"x": x, "y": y}))
        assert (not (point & holds).is_empty()) == expected
        assert (not (point & fails).is_empty()) == (not expected)


def _fixed(x: int, y: int) -> list[tuple[object, object]]:
    from seams import Name, Number

    return [(Name("x"), Number(x, "int")), (Name("y"), Number(y, "int"))]


# }}}
