"""Scripts in Loopy's style run with their import changed."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import loopkit as lk
import loopkit.loopy as lp
from loopkit.loopy._same import NAMES, UNCHANGED
from loopkit.loopy._unit import OPTIONS

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.host
@pytest.mark.parametrize("script", [pytest.param(s, id=s.stem) for s in SCRIPTS])
def test_script(script: Path) -> None:
    """It runs, and imports alone would have to be others for Loopy."""
    lines = script.read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if "loopkit" in line]
    assert "import loopkit.loopy as lp" in named
    assert all(
        re.match(r"import loopkit\.loopy|from loopkit\.loopy[\w.]* import", n) for n in named
    )
    runpy.run_path(str(script))


def unit(**more: object) -> lp.TranslationUnit:
    return lp.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 2*x[i]", name="twice", **more)


def typed() -> lp.TranslationUnit:
    return lp.add_dtypes(unit(), {"x, y": np.float64})  # type: ignore[no-any-return]


def test_units_hold_kernels() -> None:
    knl = unit(target=lp.CTarget(), lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)
    assert knl == unit() and isinstance(knl.kernel, lk.Kernel) and knl["twice"] == knl
    assert knl.default_entrypoint.name == "twice" and knl.entrypoints == {"twice"}
    assert knl.all_inames() == {"i"} and set(knl.arg_dict) == {"n", "x", "y"}
    assert [s.id for s in knl.instructions] == [*knl.id_to_insn] and not knl.temporary_variables
    assert knl.copy(target=None) == knl == knl.with_kernel(knl.kernel)
    split = knl.split_iname("i", 4)
    assert isinstance(split, lp.TranslationUnit) and split == lp.split_iname(knl, "i", 4)
    assert str(split) == str(split.kernel)
    with pytest.raises(lk.UnknownNameError):
        knl["other"]
    with pytest.raises(lk.InvalidArgumentError, match="another instructions"):
        knl.copy(instructions=[])


@pytest.mark.host
def test_calls(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(5.0)
    knl = typed()
    for evt, (y,) in (knl(None, x=x), knl(x=x, out_host=False), knl.executor(None)(None, x=x)):
        assert evt.wait() is None
        assert np.array_equal(y, 2 * x)
    options = lp.set_options(knl, "write_code,return_dict=True")
    assert options == knl and [*options(None, x=x)[1]] == ["y"]
    assert "twice(" in capsys.readouterr().out
    assert [*lp.split_iname(options, "i", 4)(None, x=x)[1]] == ["y"]
    capsys.readouterr()
    _, (y,) = lp.set_options(options, write_code=False, return_dict=False)(None, x=x)
    assert np.array_equal(y, 2 * x) and not capsys.readouterr().out


def test_what_changes_nothing() -> None:
    knl = typed()
    for name, why in UNCHANGED.items():
        assert why and getattr(lp, name)(knl, 1, other=2) == knl
        with pytest.raises(lk.InvalidArgumentError):
            getattr(lp, name)(3)
    for option, why in OPTIONS.items():
        assert why and lp.set_options(knl, **{option: True}) == knl
    with pytest.raises(lk.UnknownNameError, match="return_dict"):
        lp.set_options(knl, return_dicts=True)
    with lp.CacheMode(False):
        lp.set_caching_enabled(True)
    assert lp.has_schedulable_iname_nesting(knl)
    assert [*lp.get_iname_duplication_options(knl)] == []
    assert lp.clear_in_mem_caches() is None


def test_what_is_drawn_and_printed() -> None:
    knl = lp.make_kernel("{ [i]: 0 <= i < n }", "<> t = 2*x[i] {id=a}\ny[i] = t {id=b}")
    knl = lp.add_dtypes(knl, {"x": "float32"})
    assert lp.generate_body(knl) == lp.generate_code_v2(knl).device_code() == str(knl.cuda())
    assert '"a" -> "b";' in lp.get_dot_dependency_graph(knl)
    assert lp.split_arg_axis.__doc__


def test_names_lead_to_loopkits() -> None:
    for name, its in NAMES.items():
        assert name in dir(lp) and getattr(lp, name).__name__ == its
    for name in lk.__all__:
        assert getattr(lp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lp.nothing  # noqa: B018
    assert lp.ValueArg is lk.ValueArg and lp.LoopyError is lk.LoopkitError


def test_functions_of_its_own() -> None:
    knl = typed()
    code, implemented = lp.generate_code(knl)
    assert code == lp.generate_code_v2(knl).device_code() and implemented is None
    assert lp.generate_code_v2(knl).host_code() == ""
    assert ".split_iname('i', 4)" in lp.t_unit_to_python(lp.split_iname(knl, "i", 4))
    assert lp.for_each_kernel(lambda k: k.split_iname("i", 4))(knl) == lp.split_iname(knl, "i", 4)
    turned = lp.make_copy_kernel("N0,N1", "N1,N0")
    assert turned.arg_dict["output"].dim_tags != turned.arg_dict["input"].dim_tags
    rows = lp.make_kernel(
        "{ [i]: 0 <= i < 8 }",
        "for i\n<> t[i] = x[i]\ny[i] = t[i]\nend",
        [lp.GlobalArg("x, y", np.float32), ...],
    )
    assert lp.split_array_axis(rows, "t", 0, 4).temporary_variables["t"].shape == (2, 4)
    ruled = lp.make_kernel("{ [i]: 0 <= i < n }", "f(x) := 2*x\ng(x) := 3*x\ny[i] = f(i) + g(i)")
    assert lp.find_rules_matching(ruled, "*") == ["f", "g"]
    assert lp.find_one_rule_matching(ruled, "f*") == "f"
    with pytest.raises(lk.InvalidArgumentError, match="fits 2 rules: f, g"):
        lp.find_one_rule_matching(ruled, "?")
    with pytest.raises(lk.InvalidArgumentError, match="'l' or 'g'"):
        lp.find_unused_axis_tag(knl, "x")
