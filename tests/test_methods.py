"""What one does with a kernel: methods and free functions are the same thing, and tools see it."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from seams import Methods
from seams import registered_transforms as registered

import loopkit as lk
from loopkit import Kernel, transforms

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
import loopkit as lk

knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]")
split = knl.split_iname("i", 4, unchecked=True)
reveal_type(split)
reveal_type(lk.tag_inames(split, "i_inner:l.0"))
reveal_type(split.cuda())
knl.split_iname("i", "four")
knl.split_the_iname("i", 4)
"""


def kernel() -> lk.Kernel:
    return lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", dtypes={"a, b": "float32"})


def test_every_transform_is_a_function_a_method_and_in_the_table() -> None:
    assert all(getattr(transforms, name) is found for name, found in registered.items())
    listed = re.findall(r"(\w+) = transforms\.(\w+)$", inspect.getsource(Methods), re.MULTILINE)
    assert {name for name, same in listed if name == same} == registered.keys()
    for name, function in registered.items():
        assert getattr(lk, name) is getattr(Kernel, name) is function


def test_no_file_bears_the_name_of_a_transform() -> None:
    """Importing the file would put it in the place of the function."""
    files = {path.stem for path in (ROOT / "transforms").glob("*.py")}
    assert not files & registered.keys()


def test_a_method_shows_its_signature_and_what_comes_out() -> None:
    signature = inspect.signature(kernel().split_iname)
    assert list(signature.parameters)[:2] == ["split_iname", "inner_length"]
    assert signature.parameters["unchecked"].default is False
    assert signature.return_annotation == "Kernel"
    for name, function in registered.items():
        assert function.__annotations__["return"] == "Kernel", name


def test_help_shows_the_transforms() -> None:
    text = pydoc.plain(pydoc.render_doc(lk.Kernel))
    for name in registered:
        assert f" {name}(" in text, name
    assert "Split a loop in two." in pydoc.plain(pydoc.render_doc(kernel().split_iname))


def test_completion_offers_what_a_person_uses() -> None:
    knl = kernel().split_iname("i", 4)
    assert knl.cuda() and knl.key and knl.all_names  # all is remembered somewhere
    offered = {name for name in dir(knl) if not name.startswith("__")}
    assert offered >= registered.keys() | {"cuda", "prove", "executor", "domains", "history"}
    assert not [name for name in offered if name.startswith("_")]
    assert not offered & {"fresh_name", "check_iname", "domain_around", "lineage", "recorded"}


ASKED = {n: getattr(lk, n) for n in lk.__all__ if inspect.isfunction(getattr(lk, n))}
ASKED |= {
    f"Kernel.{n}": getattr(kernel(), n)
    for n, method in vars(Methods).items()
    if n[0] != "_" and inspect.isfunction(method)
}


@pytest.mark.parametrize("name", ASKED)
def test_calls_that_do_not_fit_say_what_is_taken(name: str) -> None:
    """Whatever is called: the error is one of loopkit's, and names what there is to give."""
    for given, named in (((), {"zzz": 1}), (tuple(range(40)), {})):
        with pytest.raises((lk.InvalidArgumentError, lk.UnknownNameError)) as refused:
            ASKED[name](*given, **named)
        assert re.search(r"it takes|takes at most|that exist|no size", str(refused.value))


def test_an_argument_that_is_missing_is_what_the_error_names() -> None:
    """Also where others are handed on by name: those are not the mistake."""
    with pytest.raises(lk.InvalidArgumentError, match="missing a required argument: 'arg_names'"):
        lk.make_einsum("ij->i", dtypes={"a": "float32"})  # type: ignore[call-arg]
    with pytest.raises(lk.InvalidArgumentError, match="missing a required argument: 'kernel'"):
        lk.measure(n=3)  # type: ignore[call-arg]


@pytest.mark.slow
def test_type_checkers_see_the_methods(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert said == [
        'note: Revealed type is "loopkit._kernel.Kernel"',
        'note: Revealed type is "loopkit._kernel.Kernel"',
        'note: Revealed type is "str"',
        'error: Argument 2 has incompatible type "str"; expected "int"  [arg-type]',
        'error: "Kernel" has no attribute "split_the_iname"  [attr-defined]',
    ], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (lk, "make_kernal", "did you mean 'make_kernel'"),
        (transforms, "split_inames", "did you mean 'split_iname'"),
        (kernel(), "split_inames", "did you mean 'split_iname'"),
        (lk, "ScalarArg", "instead: ValueArg"),
        (lk, "set_options", "instead: loopkit.loopy.set_options"),
        (lk, "CInstruction", "register_callable"),
        (lk, "preprocess_kernel", "a kernel is whole from the start"),
        (kernel(), "instructions", "instead: knl.statements"),
        (kernel(), "verify", "instead: loopkit.verify"),
    ],
)
def test_a_name_that_does_not_exist_is_answered_with_one_that_does(
    owner: object, name: str, said: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert isinstance(caught.value, lk.LoopkitError) and said in str(caught.value)
    assert not hasattr(owner, name) and not hasattr(owner, "_repr_png_")


def test_signatures_show_ordinary_types() -> None:
    for name, function in registered.items():
        shown = str(inspect.signature(function))
        assert "kind." not in shown and "'Kernel'" not in shown, name
    assert "split_iname: str, inner_length: int, *, outer_iname: str | None = None" in str(
        inspect.signature(lk.split_iname)
    )
    assert "inner_length: int" in pydoc.render_doc(lk.split_iname)


@pytest.mark.parametrize("wrong", [None, {}, [[]], 3, "no_such_name"])
def test_what_is_looked_up_by_no_name_is_refused(wrong: object) -> None:
    knl = kernel()
    looks = [knl.array, knl.check_iname, knl.domain_of, knl.domain_around, knl.parents_of]
    looks += [knl.range_of, knl.range_around, knl.statement, knl.statement_domain]
    if not isinstance(wrong, str):
        looks += [knl.users, knl.fresh_name, knl.with_computed]
    if wrong == {}:  # no inames, and no sizes
        looks = [look for look in looks if look not in (knl.domain_of, knl.domain_around)]
        looks.remove(knl.with_computed)
    for look in looks:
        with pytest.raises(lk.LoopkitError):
            look(wrong)
    assert not knl.is_array(wrong)
