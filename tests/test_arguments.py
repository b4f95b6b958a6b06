"""What arguments can be: wrong ones are named, normal forms are handed on, plain ones recorded."""

import inspect

import numpy as np
import pytest
from seams import kinds_of, step_from_json, transform
from seams import registered_transforms as transforms

import loopkit as lk

DOMAIN = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


def kernel():
    return lk.make_kernel(DOMAIN, "c[i, j] = a[i, j]", dtypes={"a, c": "float32"})


def raises(*words):
    return pytest.raises(lk.InvalidArgumentError, match=".*".join(words))


@pytest.mark.parametrize("name", sorted(transforms))
def test_signatures_say_what_comes_back(name):
    signature = inspect.signature(transforms[name])
    assert signature.return_annotation == "Kernel"
    assert "unchecked" in signature.parameters


@pytest.mark.parametrize("name", sorted(transforms))
def test_every_argument_has_a_kind(name):
    arguments = inspect.signature(transforms[name]).parameters.keys() - {"kernel", "unchecked"}
    assert kinds_of(inspect.unwrap(transforms[name])).keys() == arguments


def test_transforms_declare_unchecked():
    with pytest.raises(TypeError, match="does not declare 'unchecked'"):
        transform(lambda kernel, iname: None)


def test_wrong_arguments_are_named():
    with raises("split_iname", "inner_length must be an integer, not 1.5"):
        kernel().split_iname("i", 1.5)
    with raises("inner_length must be an integer, not True"):
        kernel().split_iname("i", True)
    with raises("split_iname is a name, not 5"):
        kernel().split_iname(5, 4)
    with raises("within is a match string"):
        kernel().split_iname("i", 4, within=3)
    with raises("outer_tag is a tag"):
        kernel().split_iname("i", 4, outer_tag=[1])
    with raises("existing_ok is True or False, not 'yes'"):
        kernel().rename_iname("i", "k", existing_ok="yes")
    with raises("unchecked is True or False, not 'yes'"):
        kernel().split_iname("i", 4, unchecked="yes")
    with raises("inames is names"):
        kernel().join_inames([["i"], "j"])
    with raises("the size 'n' must be an integer"):
        kernel().fix_parameters(n=4.0)
    with raises("the size 'n' is of type int32"):
        kernel().fix_parameters(n=2**31)
    with raises("None is not a type|no type"):
        kernel().add_dtypes({"a": None})


def test_values_are_normalised_and_recorded_plainly():
    a = kernel().split_iname("i", np.int64(4), slabs=[np.int32(0), 1])
    assert dict(a.history[-1].arguments)["inner_length"] == 4
    assert type(dict(a.history[-1].arguments)["inner_length"]) is int
    b = lk.replay(kernel(), (step_from_json(a.history[-1].to_json()),))
    assert a == b
    c = kernel().prioritize_loops(name for name in ("j", "i"))
    assert lk.replay(kernel(), c.history) == c


@pytest.mark.parametrize(
    "make",
    [
        lambda: lk.make_kernel(5, "c[0] = 1"),
        lambda: lk.make_kernel(DOMAIN, 5),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", dtypes=["float32"]),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", dtypes={"c": "f4", "c, n": "float64"}),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", fixed_parameters={"n": "4"}),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = a[i]", fixed_parameters={"a": 4}),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", default_offset=np.array(1)),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", substitutions=["f"]),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", kernel_data=3),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", options={"fast_math": "no"}),
        lambda: lk.GlobalArg("a", "float32", shape=(3.5,)),
        lambda: lk.GlobalArg("a", object(), shape="n"),
        lambda: lk.register_reduction("own", 0, 1, 2),
        lambda: kernel().with_(statements=[1]),
        lambda: lk.verify(kernel(), 3),
        lambda: lk.auto_test_vs_ref(kernel(), 3),
        lambda: lk.auto_test_vs_ref(kernel(), kernel(), parameters=[4]),
        lambda: lk.auto_test_vs_ref(kernel(), kernel(), parameters={"n": "4"}),
        lambda: lk.replay(kernel(), 3),
        lambda: lk.replay(kernel(), [{}]),
        lambda: step_from_json([]),
        lambda: step_from_json({"transform": "split_iname"}),
        lambda: step_from_json({"transform": "x\n", "arguments": {}}),
        lambda: step_from_json({"transform": "tag_inames", "arguments": {}, "verdict": "true"}),
        lambda: step_from_json({"transform": "tag_inames", "arguments": {}, "seconds": "1"}),
    ],
)
def test_wrong_values_are_refused(make):
    with pytest.raises(lk.InvalidArgumentError) as caught:
        make()
    assert str(caught.value)


@pytest.mark.parametrize("text", ["(" * 500, "not " * 500 + "id:x", "(not " * 60 + "id:x"])
def test_match_strings_are_not_nested_without_end(text):
    with pytest.raises(lk.ParseError, match="nested more than"):
        kernel().split_iname("i", 4, within=text)


class NoRepr:
    def __repr__(self):
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    "make",
    [
        lambda: lk.make_kernel(DOMAIN, "<"),
        lambda: lk.make_kernel("{ [i]: 0mod <= i < n }", "c[i] = 1"),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", assumptions="n >= 1exists"),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", default_offset="c[0, 0]"),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", [lk.TemporaryVariable("i"), ...]),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = 1", [lk.TemporaryVariable("t", NoRepr()), ...]),
        lambda: kernel().executor(NoRepr()),
        lambda: kernel().executor("host", order=NoRepr()),
        lambda: kernel().executor("host", seed=NoRepr()),
        lambda: kernel().tag_inames(NoRepr()),
        lambda: lk.make_kernel(DOMAIN, "c[i, j] = reduce(sum, i, "),
        lambda: kernel().precompute(NoRepr()),
        lambda: lk.TemporaryVariable("t", read_only=NoRepr()),
        lambda: lk.TemporaryVariable("t", is_running="yes"),
        lambda: lk.TemporaryVariable("t", shape=(4,), padding=3),
        lambda: lk.TemporaryVariable("t", shape=(4,), padding=(-1,)),
        lambda: lk.TemporaryVariable("t", shape=(4,), padding=(1, 1)),
        lambda: lk.GlobalArg("a", is_input="yes"),
    ],
)
def test_what_a_search_with_hostile_calls_found(make):
    with pytest.raises(lk.LoopkitError) as caught:
        make()
    assert str(caught.value)


def test_what_a_kernel_or_a_step_cannot_take_is_named() -> None:
    kernel = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})
    for words, call in (
        ("'insn', which is none of the statements", lambda: kernel.with_(statements=())),
        ("subst_name is text, not None", lambda: kernel.extract_subst(None, "f(x)")),
        ("the size 'n' is an integer, not {}", lambda: kernel.fix_parameters(n={})),
        ("the size 'n' is an integer, not {'n': 3}", lambda: kernel.fix_parameters(n={"n": 3})),
    ):
        with pytest.raises(lk.InvalidArgumentError, match=words):
            call()


def test_words_that_a_call_does_not_take_are_named() -> None:
    for words, call in (
        ("TemporaryVariable has no argument 'unknown'", lambda: lk.TemporaryVariable(unknown=1)),
        ("did you mean 'shape'", lambda: lk.TemporaryVariable("t", shap=1)),
        ("GlobalArg has no argument 'shap'", lambda: lk.GlobalArg("a", shap=1)),
        ("ConstantArg: missing a required", lambda: lk.ConstantArg()),
        ("did you mean 'dtype'", lambda: lk.ValueArg("n", dtpe=1)),
        ("did you mean 'fast_math'", lambda: lk.Options(fastmath=True)),
        ("did you mean 'dtypes'", lambda: lk.make_kernel("{ [i]: i = 0 }", "b[i] = 1", dtype=1)),
        ("make_kernel: missing a required argument: 'domains'", lambda: lk.make_kernel()),
    ):
        with pytest.raises(lk.InvalidArgumentError, match=words):
            call()
    assert "kernel_data" in inspect.signature(lk.make_kernel).parameters
    assert [*inspect.signature(lk.TemporaryVariable).parameters][:3] == ["name", "dtype", "shape"]
