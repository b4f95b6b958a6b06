"""Names that loopkit makes up are nobody's: what users call things changes no answer."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hostile import skewed, unwritten, written
from seams import hidden_name as hidden
from seams import instance, is_hidden, label_of, labelled, plain

import loopkit as lk

LABELS = ("b", "x", "w", "s", "e", "R", "W", "K", "Q", "1", "2", "o", "n", "m0", "i0", "earlier")


def test_words() -> None:
    """Names are told apart from users', and lead back to these."""
    assert plain(instance("i", "b")) == "i"
    assert label_of(instance("i", "b")) == "b"
    assert instance("i", "") == "i" == plain("i")
    word = instance(hidden("cell", 0), "b")
    assert (plain(word), label_of(word)) == (hidden("cell", 0), "b")
    assert (plain(hidden("cell", 0)), label_of(hidden("cell", 0))) == (hidden("cell", 0), "")
    assert len({hidden("cell"), hidden("cell", 1), instance("cell", "1"), "cell"}) == 4
    assert labelled(["i", instance("i", "b"), instance("j", "x")], "b") == [instance("i", "b")]
    for name in (word, hidden("value"), instance("i", "1")):
        assert is_hidden(name) and name.isidentifier()
    assert not is_hidden("i__b")


@pytest.mark.parametrize("name", [instance("n", "b"), hidden("cell", 0)])
def test_unspellable(name: str) -> None:
    """No text says such a name."""
    for domain, text in (
        (f"{{ [i]: 0 <= i < {name} }}", "a[i] = 1"),
        ("{ [i]: 0 <= i < n }", f"a[i] = {name}"),
        ("{ [i]: 0 <= i < n }", f"{name}[i] = 1"),
    ):
        with pytest.raises(lk.LoopkitError):
            lk.make_kernel(domain, text, dtypes={"a": "float32"})


@pytest.mark.parametrize("label", LABELS)
def test_interchange_is_refused(label: str) -> None:
    """Sizes called as the instances of an iname once were do not stand for these."""
    for sizes in ((f"i__{label}", "m"), ("n", f"j__{label}"), (f"i__{label}", f"j__{label}")):
        with pytest.raises(lk.IllegalTransformError, match="before"):
            skewed(*sizes).prioritize_loops("j, i")


def test_verify_tells_them_apart() -> None:
    """The same where two kernels are compared."""
    before = skewed("n", "i__b")
    with_fault = before.prioritize_loops("j, i", unchecked=True)
    assert not lk.verify(before, with_fault)
    assert lk.verify(before, before)


@pytest.mark.parametrize("name", ["_g0", "_g1", "_l0", "_l1", "_l0__b"])
def test_barriers_stay(name: str) -> None:
    """A size called as a hardware index once was leaves barriers where they are."""
    plain = lk.make_kernel(
        f"{{ [i, j, k]: 0 <= i < {name} and 0 <= j < m and 0 <= k < l }}",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions=f"{name}, m, l >= 1",
    )
    tiled = (
        plain.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )
    assert tiled.cuda().count("__syncthreads();") == 2


@pytest.mark.parametrize("name", ["n", "_cell0", "i__earlier", "i__W", "k__R"])
def test_what_nothing_wrote(name: str) -> None:
    """A size called as a cell or a writer once was hides no read of what nothing wrote."""
    with pytest.raises(lk.UninitializedReadError):
        unwritten(name)
    written(name)


@pytest.mark.parametrize("name", ["self", "stream", "_0", "_load", "_used", "axis_l_0", "_value"])
def test_generated_python(name: str) -> None:
    """What loopkit writes in Python has no word that an array, a size or an iname may be."""
    ones = np.ones(4, np.float32)
    array = lk.make_kernel(
        "{ [i]: 0 <= i < n }", f"b[i] = {name}[i] + a[i]", dtypes={f"a, b, {name}": "float32"}
    )
    got = array.executor("reference")(**{"a": ones, name: ones})
    assert got.tolist() == [2, 2, 2, 2]
    size = lk.make_kernel(
        f"{{ [i]: 0 <= i < {name} }}", "b[i] = a[i] + i", dtypes={"a, b": "float32"}
    )
    assert size.executor("reference")(**{"a": ones, name: 4}).tolist() == [1, 2, 3, 4]
    assert size.launch_config(**{name: 4}).block == (1, 1, 1)
    iname = lk.make_kernel(
        f"{{ [{name}]: 0 <= {name} < n }}", f"b[{name}] = a[{name}] * 2", dtypes={"a, b": "float32"}
    )
    split = iname.split_iname(name, 4, inner_tag="l.0")
    assert iname.executor("reference")(a=ones).tolist() == [2, 2, 2, 2]
    assert split.executor("reference")(a=ones).tolist() == [2, 2, 2, 2]
    assert lk.verify(iname, split)
    other = lk.make_kernel(
        f"{{ [{name}]: 0 <= {name} < n }}", f"b[{name}] = a[{name}] * 3", dtypes={"a, b": "float32"}
    )
    assert lk.verify(iname, other).answer == "different"


def test_two_names_make_no_third() -> None:
    """``a`` and ``b_c`` are not ``a_b`` and ``c``: what is made of several names keeps them."""
    assert hidden("least", "a", "b_c") != hidden("least", "a_b", "c")
    assert hidden("value", "x") != hidden("value_x")


STRIDED = ("a_stride0", "a_stride0_0", "a_stride1")


@pytest.mark.host
@pytest.mark.parametrize("name", STRIDED)
def test_strides_are_nobodys(name: str) -> None:
    """A parameter for an array's stride is called as nothing else in the kernel."""
    a = np.arange(8, dtype=np.float32)[::2]
    for domain, text, dtypes in (
        (f"{{ [i]: 0 <= i < {name} }}", "b[i] = a[i] + 1", "a, b"),
        (f"{{ [{name}]: 0 <= {name} < n }}", f"b[{name}] = a[{name}] + 1", "a, b"),
        ("{ [i]: 0 <= i < n }", f"{name}[i] = a[i] + 1", f"a, {name}"),
        ("{ [i]: 0 <= i < n }", f"<float32> {name} = a[i]\nb[i] = {name} + 1", "a, b"),
    ):
        kernel = lk.make_kernel(domain, text, dtypes={dtypes: "float32"})
        assert kernel.executor("host")(a=a).tolist() == [1, 3, 5, 7]


def _plain(**names: str) -> lk.Kernel:
    """``b[i] = sum(j, a[i, j]) + 2*c[i] + n`` under other names."""
    word = {n: names.get(n, n) for n in ["i", "j", "n", "m", "a", "b", "c", "f"]}
    return lk.make_kernel(
        "{{ [{i}, {j}]: 0 <= {i} < {n} and 0 <= {j} < {m} }}".format(**word),
        "{f}(x) := 2*{c}[x] + {n}\n{b}[{i}] = sum({j}, {a}[{i}, {j}]) + {f}({i})".format(**word),
        dtypes={"{a}, {b}, {c}".format(**word): "float32"},
        assumptions="{n}, {m} >= 1".format(**word),
    )


TAKEN = (
    *("i_outer", "i_inner", "j_outer", "acc", "acc_0", "a_s", "a_r", "a_dim_0", "fetch_a", "f_s"),
    *("compute_f", "i_0", "insn", "insn_init", "insn_update", "acc_r", "kernel_", "_", "x" * 195),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKEN)
def test_what_a_transform_makes_is_new(name: str) -> None:
    """What comes into being is called as nothing that is there, and as C allows."""
    for which in ("n", "c", "j", "f"):
        kernel = _plain(**{which: name})
        made = kernel.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
        made = made.split_iname(name if which == "j" else "j", 4)
        _, inner, _, inner_j = [n for n in made.all_inames if n not in kernel.all_inames]
        made = made.add_prefetch("a", [inner, inner_j])
        made = made.precompute(name if which == "f" else "f", [inner])
        names = [*made.all_inames, *(d.name for d in (*made.args, *made.temporaries))]
        assert len(set(names)) == len(names)
        assert made.prove()
        assert lk.verify(kernel, made)


SOURCES = [
    path
    for folder in ("loopkit", "transforms", "codegen")
    for path in sorted((Path(__file__).resolve().parents[1] / folder).rglob("*.py"))
]
NAMING = {"Variable": 0, "variable": 0, "equality": 0, "set_dim_name": 2}
"""Functions that take the name of something in a set or an expression, and where."""


LANGUAGE = ("base", "buffer", "...", "_", "isnan")
"""Words that arguments of ``buffer_array`` use, one that is only shown, one that stands for a
result that is dropped, and a function, which no array can be called like."""


def _is_spelled(node: ast.expr) -> bool:
    """Whether an argument is a text put together on the spot."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value not in LANGUAGE
    return isinstance(node, (ast.JoinedStr, ast.BinOp))


def _spelled(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        at = NAMING.get(name)
        if at is not None and len(node.args) > at and _is_spelled(node.args[at]):
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_names_in_sets_are_made_in_one_place() -> None:
    """No other module spells a name for a set or an expression."""
    found = [line for path in SOURCES for line in _spelled(path)]
    assert found == []


@pytest.mark.parametrize("word", ["mod", "exists", "floor", "ceild", "floord", "implies", "rat"])
def test_words_of_domains(word: str) -> None:
    """A size or an iname that is a word of the language of domains is refused by its name."""
    for iname, size in (("i", word), (word, "n")):
        with pytest.raises(lk.ParseError, match=f"'{word}' has a meaning in domains"):
            lk.make_kernel(
                f"{{ [{iname}]: 0 <= {iname} < {size} }}",
                f"b[{iname}] = a[{iname}]",
                dtypes={"a, b": "float32"},
            )
