"""Names, ids and tags from outside: what cannot be spelled in C, or could leave a comment."""

import json

import islpy as isl
import pymbolic.primitives as prim
import pytest
from seams import step_from_json

import loopkit as lk

DOMAIN = "{ [i, j]: 0 <= i < n and 0 <= j < n }"
HOSTILE = [
    'x\nsystem("true");//',
    "x\\",
    "x;y",
    "x y",
    "",
    "1x",
    "\u00b5",
    "x" * 300,
    "x\u00b7b",
    5,
    None,
]

MADE_UP = "x\u00b7b"
"""Spelled like what loopkit makes up for a while: it may stand inside of a kernel."""


@pytest.mark.parametrize("kind", [isl.dim_type.param, isl.dim_type.set])
def test_names_in_isl_sets_are_checked(kind):
    domain = isl.Set("[n] -> { [i]: 0 <= i < n }").set_dim_name(kind, 0, MADE_UP)
    with pytest.raises(lk.InvalidArgumentError, match="cannot be an iname or a size"):
        lk.make_kernel(domain, "c[0] = 1")


def kernel():
    made = lk.make_kernel(DOMAIN, "c[i, j] = a[j, i]", dtypes={"a, c": "float32"})
    return made.split_iname("j", 4).tag_inames("i:g.0")


class _Odd(prim.Comparison):
    """A comparison whose operator is code."""

    def __post_init__(self):
        object.__setattr__(self, "operator", "if True else")


def rule_kernel():
    return lk.make_kernel(DOMAIN, "f(x) := a[x]*2\nc[i, j] = f(j)", dtypes={"a, c": "float32"})


@pytest.mark.parametrize("name", [n for n in HOSTILE if n])
@pytest.mark.parametrize("argument", ["prefetch_insn_id", "temporary_name"])
def test_names_given_to_a_prefetch_are_checked(name, argument):
    with pytest.raises(lk.InvalidArgumentError):
        kernel().add_prefetch("a", "j_inner", default_tag=None, **{argument: name})


@pytest.mark.parametrize("name", [n for n in HOSTILE if n])
@pytest.mark.parametrize("argument", ["compute_insn_id", "temporary_name", "precompute_inames"])
def test_names_given_to_a_precomputation_are_checked(name, argument):
    with pytest.raises(lk.LoopkitError):
        rule_kernel().precompute("f", "j", **{argument: name})


def test_a_history_cannot_write_code():
    good = (
        kernel()
        .add_prefetch("a", "j_inner", default_tag=None, prefetch_insn_id="fetch")
        .history[-1]
    )
    data = json.loads(json.dumps(good.to_json()))
    data["arguments"]["prefetch_insn_id"] = 'fetch\n    system("true"); //'
    with pytest.raises(lk.InvalidArgumentError, match="cannot be"):
        lk.replay(kernel(), (step_from_json(data),))


@pytest.mark.parametrize("name", HOSTILE)
def test_values_that_hold_names_check_them(name):
    for make in (
        lambda: lk.GlobalArg(name),
        lambda: lk.ValueArg(name),
        lambda: lk.TemporaryVariable(name),
        lambda: lk.SubstitutionRule(name, (), 1),
        lambda: lk.SubstitutionRule("f", (name,), 1),
        lambda: lk.Statement(name, prim.Variable("a"), 1),
        lambda: lk.Statement("s", prim.Variable(name), 1),
        lambda: lk.Statement("s", prim.Variable("a"), prim.Variable(name)),
        lambda: lk.Statement("s", prim.Variable("a"), 1, inames=frozenset([name])),
        lambda: lk.Statement("s", prim.Variable("a"), 1, tags=frozenset([f"{name}\n"])),
        lambda: lk.Statement("s", prim.Variable("a"), 1, made_by=f"{name}\n"),
        lambda: kernel().with_(name=name),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", name=name),
    ):
        if name == MADE_UP and "Statement" in make.__code__.co_names:
            continue
        with pytest.raises(lk.InvalidArgumentError):
            make()


def test_an_expression_is_made_of_names_not_of_code():
    size = prim.Variable("__import__('os').system('true')")
    with pytest.raises(lk.InvalidArgumentError, match="name in an expression"):
        lk.GlobalArg("a", "float32", shape=(size,))
    with pytest.raises(lk.InvalidArgumentError, match="name in an expression"):
        lk.GlobalArg("a", "float32", shape="n", offset=size)
    with pytest.raises(lk.InvalidArgumentError, match="name in an expression"):
        lk.GlobalArg("a", "float32", strides=(size,))
    with pytest.raises(lk.InvalidArgumentError, match="compares nothing"):
        lk.SubstitutionRule("f", (), _Odd(1, "<", 2))


@pytest.mark.parametrize(
    "word", ["asm", "xor", "NULL", "nullptr", "warpSize", "uint3", "__half", "__LINE__", "_Complex"]
)
def test_words_of_c_are_no_names(word):
    texts = (f"{word}[i, j] = 1", f"c[i, j] = {word}", f"<float32> {word} = 1\nc[i, j] = {word}")
    for text in texts:
        if word in ("xor",):
            continue
        with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be"):
            lk.make_kernel(DOMAIN, text)
    with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be"):
        lk.make_kernel(f"{{ [{word}]: 0 <= {word} < n }}", f"c[{word}] = 1")
    with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be"):
        lk.make_kernel(f"{{ [i]: 0 <= i < {word} }}", "c[i] = 1")
    with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be"):
        kernel().split_iname("j_inner", 2, inner_iname=word)


@pytest.mark.parametrize("word", ["main", "std", "expf", "sqrt", "abs", "printf", "malloc", "j0"])
def test_a_kernel_is_not_called_like_a_function_of_the_library(word):
    with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be the name of a kernel"):
        lk.make_kernel(DOMAIN, "c[i, j] = 1", name=word)
