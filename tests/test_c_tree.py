"""The tree of C: what is printed is read back as the same tree, and prints the same again."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

import gallery
import pytest
from seams import (
    Assign,
    Binary,
    Block,
    BodyLowering,
    Braces,
    Call,
    Cast,
    Choice,
    Declaration,
    Element,
    ExpressionReader,
    Function,
    Member,
    Name,
    Number,
    Parameter,
    Program,
    ReadError,
    Unary,
    Wait,
    by_comment,
    declared_in,
    depths,
    expression_text,
    printed,
    prove_program,
    read_function,
    tokens,
)
from seams import CFor as For
from seams import CIf as If
from seams import CLet as Let
from seams import check as check_c

import loopkit as lk
from tests.campaign import kernels
from tests.campaign.walk import Walk, walk


def same(a: Any, b: Any) -> bool:
    """Whether two trees are alike in everything, types and lines included."""
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def read(kernel: lk.Kernel, program: Program) -> Function:
    """What the text of one launch reads as, if comments alone name the statements."""
    known = frozenset(line.statement for line in program.lines if line.statement)
    return read_function(program.source, by_comment(known), declared_in(kernel))


def check(kernel: lk.Kernel) -> None:
    """What lowering made is what reading its text makes, and prints the same text."""
    for program in kernel.program().parts:
        function = read(kernel, program)
        assert same(program.tree, function)
        assert printed(function)[1] == program.source
        assert same(printed(function)[0], function)


# {{{ expressions

ZERO = Number(0, "int")
OPERATORS = ["||", "&&", "|", "^", "&", "==", "!=", "<", "<=", ">", ">="]
OPERATORS += ["<<", ">>", "+", "-", "*", "/", "%"]
NUMBERS = [
    Number(1, "bool"),
    Number(0, "int"),
    Number(7, "uint"),
    Number(2**40, "long"),
    Number(2**63, "ulong"),
    Number(0.5, "float"),
    Number(0.10000000149011612, "float"),
    Number(1e-05, "double"),
    Number(1e22, "double"),
]


def draw(r: random.Random, levels: int) -> Any:
    """A random tree."""
    kind = r.randrange(10) if levels else r.randrange(2)

    def part() -> Any:
        return draw(r, levels - 1)

    if kind == 0:
        return r.choice(NUMBERS)
    if kind == 1:
        return Name(r.choice(["x", "y", "threadIdx.x"]))
    if kind == 2:
        return Element("a", tuple(part() for _ in range(r.randrange(1, 3))))
    if kind == 3:
        return Call(r.choice(["f", "lk_power<3>", "lk_ipow<long long>"]), (part(), part()))
    if kind == 4:
        return Unary(r.choice("-!~"), part())
    if kind == 5:
        return Choice(part(), part(), part())
    if kind == 6:
        return Cast(r.choice(["float", "long long", "unsigned"]), part())
    if kind == 7:
        return Member(Call("f", (part(),)), r.choice(["re", "im"]))
    if kind == 8:
        return Braces("lk_complex64", (part(), part()))
    return Binary(r.choice(OPERATORS), part(), part())


def test_random_expressions() -> None:
    r = random.Random(5)
    for _ in range(3000):
        expr = draw(r, 4)
        text = expression_text(expr)
        found, _ = tokens([text], 1)
        reader = ExpressionReader(found)
        assert reader.expression() == expr, text
        assert reader.kind() == "end", text


@pytest.mark.parametrize(
    ("text", "count"),
    [("a + b + c * d", 1), ("a * (b + c)", 2), ("f(a[b + 1])", 3), ("a ? b : c ? d : e", 3)],
)
def test_depth_counts_what_stands_inside_each_other(text: str, count: int) -> None:
    found, _ = tokens([text], 1)
    assert depths(ExpressionReader(found).expression())[0] == count


def test_one_node_stands_on_both_sides() -> None:
    total, minus = Binary("+", Name("x"), Name("y")), Unary("-", Name("x"))
    assert expression_text(Binary("-", total, total)) == "x + y - (x + y)"
    assert expression_text(Binary("*", minus, minus)) == "-x * (-x)"
    assert depths(Binary("-", total, total))[0] == 2


def test_long_sums_are_no_nest() -> None:
    total: Any = Name("x")
    for _ in range(5000):
        total = Binary("+", total, Name("x"))
    assert expression_text(total) == " + ".join(["x"] * 5001)
    assert depths(total)[0] == 1


# }}}

# {{{ functions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "name"), [pytest.param(*s, id="-".join(s)) for s in gallery.SCHEDULES]
)
def test_gallery(example: str, name: str) -> None:
    check(gallery.kernels(example)[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_schedules(seed: int) -> None:
    r = random.Random(seed)
    try:
        _, kernel = kernels.draw(r)
        kernel = walk(r, Walk(kernel), 6).kernel
        kernel.program()
    except lk.LoopkitError:
        return
    check(kernel)


def test_dynamic_shared_memory_and_many_parameters() -> None:
    kernel = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 128 and 0 <= j < 128 and 0 <= k < 2 }",
        """
        <> t[i, j] = a[i, j] + first_addend[i] + second_addend[i] + third_addend[j]
        <> u[k, i] = b[k, i] {id=fill}
        <> v = b[0, 0]
        out[i, j, k] = t[127 - i, j] + u[k, 127 - i] + v
        """,
        dtypes=dict.fromkeys(
            ("a", "b", "first_addend", "second_addend", "third_addend"), "float32"
        ),
    )
    for name in "tuv":
        kernel = kernel.set_temporary_address_space(name, "local")
    source = kernel.program().source
    assert "extern __shared__" in source and "(*u)[128]" in source and "&v" in source
    check(kernel)


# }}}


# {{{ the specification


def function(*body: Any) -> Function:
    parameters = (
        Parameter("n", "int", False, True),
        Parameter("a", "float", True, False),
        Parameter("k", "int", True, True),
    )
    return printed(Function("f", parameters, body, 32))[0]


def stored(value: Any, index: Any = ZERO) -> Assign:
    return Assign(Element("a", (index,)), "=", value, "s")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ((stored(Name("x")),), "'x' is not declared"),
        ((Let("int", "n", ZERO),), "'n' is declared twice"),
        ((Let("int", "if", ZERO),), "'if' is a word of C"),
        (
            (For("int", "threadIdx", ZERO, Name("n"), False, 1, ()),),
            "'threadIdx' is a word of CUDA",
        ),
        ((Declaration("private", "float", "min", ()),), "'min' is a function"),
        ((stored(ZERO, Element("a", (ZERO,))),), "the subscripts of 'a' are none of an array"),
        ((Assign(Name("n"), "=", ZERO, "s"),), "'n' is no place in memory"),
        ((stored(Name("k")),), "'k' has no subscripts"),
        ((stored(Call("g", (ZERO,))),), "no function 'g'"),
        ((Let("int", "i", Element("a", (ZERO,))),), "a whole number is expected"),
        ((stored(Binary("%", Element("a", (ZERO,)), Number(2, "int"))),), "'%' of"),
        ((Block((Let("int", "i", ZERO),)), stored(Name("i"))), "'i' is not declared"),
        ((If(Name("threadIdx.x"), (Wait("block"),)),), "threads may disagree"),
        (
            (
                Let("int", "i", Name("threadIdx.x")),
                For("int", "j", ZERO, Name("i"), False, 1, (Wait("block"),)),
            ),
            "threads may disagree",
        ),
    ],
)
def test_what_is_no_c_is_refused(body: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ReadError, match=said):
        check_c(function(*body))


def test_what_the_specification_lets_through() -> None:
    warp = If(Name("threadIdx.x"), (Wait("warp"),))
    value = Call("lk_floordiv", (Name("n"), Number(3, "int")))
    own = For("int", "j", ZERO, Name("threadIdx.x"), False, 1, ())  # another loop's j
    inner = For("int", "m", ZERO, Name("j"), False, 1, (Wait("block"),))
    loop = For("int", "j", ZERO, Name("n"), False, 1, (inner, Wait("block")))
    assert set(check_c(function(own, loop, warp, stored(value)))) == {"lk_floordiv"}


def test_lowering_shows_what_is_no_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BodyLowering, "coordinates", lambda self: ())
    with pytest.raises(lk.CompileError, match="'i_outer' is not declared") as raised:
        tiled().program()
    assert "__global__" in raised.value.source


# }}}

# {{{ proofs


def verdicts(proof: Any) -> tuple[Any, ...]:
    return proof.findings, proof.undecided, proof.trusted


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_tree_and_its_text_are_proven_alike(seed: int) -> None:
    r = random.Random(seed)
    try:
        _, kernel = kernels.draw(r)
        kernel = walk(r, Walk(kernel), 6).kernel
        kernel.program()
    except lk.LoopkitError:
        return
    assert verdicts(kernel.prove()) == verdicts(kernel.prove(text=True))


def tiled() -> lk.Kernel:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[i] = 2*a[i] + a[n - 1 - i]", dtypes={"a, b": "float32"}
    )
    return kernel.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


def test_a_fault_in_the_tree_is_found() -> None:
    program = tiled().program()
    assert program.tree is not None
    *before, guard = program.tree.body
    assert isinstance(guard, If)
    changed = replace(program.tree, body=(*before, *guard.body))
    broken = replace(program, tree=changed, source=printed(changed)[1])
    assert "bounds" in {f.kind for f in prove_program(tiled(), broken).findings}


def test_a_source_that_its_tree_does_not_print_is_read() -> None:
    program = tiled().program()
    source = program.source.replace(" < n", " < n + 1")
    assert source != program.source
    assert not prove_program(tiled(), replace(program, source=source)).ok
    assert prove_program(tiled(), program).ok


# }}}
