"""Scripts in Loopy's style run with their import changed."""

from __future__ import annotations

import pickle
import pydoc
import re
import runpy
import time
from importlib import import_module
from pathlib import Path

import islpy as isl
import numpy as np
import pytest
from pymbolic import parse
from pymbolic.primitives import Variable
from seams import GONE, NAMES, OPTIONS, UNCHANGED

import loopkit as lk
import loopkit.loopy as lp
from loopkit.loopy import match
from loopkit.loopy.kernel.data import GroupInameTag, LocalInameTag
from loopkit.loopy.target.c import CTarget, ExecutableCTarget

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
    assert [*options.split_iname("i", 4)(None, x=x)[1]] == ["y"]
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


@pytest.mark.host
def test_the_order_of_arguments_is_loopys() -> None:
    text = "zz[i] = b[i] + cc\nyy[i] = a[i] + s\nq[i] = 1"
    b = lp.GlobalArg("b", np.float64, shape="n")
    for data, first in ((None, "a b"), (["...", b], "b a"), ([b, "cc", ...], "b cc a")):
        knl = lp.make_kernel("{ [i]: 0 <= i < n }", text, data)
        rest = sorted({"a", "b", "cc", "n", "q", "s", "yy", "zz"} - {*first.split()})
        assert [a.name for a in knl.args] == [*first.split(), *rest]
    knl = lp.add_dtypes(knl, {"a, q, s, cc": np.float64})
    x = np.arange(3.0)
    _, (q, yy, zz) = knl(None, a=x, b=2 * x, cc=1.0, s=5.0)
    assert q[0] == 1 and np.array_equal(yy, x + 5) and np.array_equal(zz, 2 * x + 1)
    assert [a.name for a in lp.make_einsum("ij,jk->ik", ["b", "a"]).args][-3:] == ["a", "b", "out"]
    twice = lp.make_function("{ [i]: 0 <= i < 4 }", "to[i] = 2*of[i]", name="twice")
    calls = lp.make_kernel("{ [i]: 0 <= i < 4 }", "[i]: z[i] = twice([i]: y[i])\nc[i] = y[i]")
    assert [a.name for a in lp.merge([twice, calls]).args] == ["c", "y", "z"]


def test_names_that_are_made_up_are_loopys() -> None:
    knl = lp.make_kernel(
        "{ [i, j]: 0 <= i, j < 8 }",
        "y[i] = sum(j, a[i, j]*b[j]) {id=s}",
        dtypes={"a, b": np.float64},
    )
    staged = lp.add_prefetch(knl, "a[:, j]")
    assert "a_fetch" in staged.temporary_variables and "a_fetch_rule" in staged.id_to_insn
    both = staged.add_prefetch("b", "j")
    assert {"a_fetch", "b_fetch"} < both.temporary_variables.keys()
    own = lp.add_prefetch(knl, "a", "i, j", temporary_name="t", prefetch_insn_id="fill")
    assert "t" in own.temporary_variables and "fill" in own.id_to_insn
    parts = set(own.id_to_insn) - {"fill"}
    assert parts == set(knl.id_to_insn)


def test_names_that_there_are_not() -> None:
    for name, instead in GONE.items():
        assert not hasattr(lp, name) and not hasattr(lk, name)
        with pytest.raises(lk.LoopkitError) as caught:
            getattr(lp, name)
        assert name in str(caught.value) and instead in str(caught.value)
    with pytest.raises(lk.InvalidArgumentError, match=r"no preambles\n.*register_callable"):
        unit(preambles=[("00_two", "#define TWO 2")])
    assert unit(preambles=[], index_dtype=np.int64) == unit()


def test_instructions_have_copies_and_kinds() -> None:
    line = lp.Assignment("y[i]", "x[i]", id="a", temp_var_type=lp.Optional())
    assert line.copy(expression="2*x[i]") == "y[i] = 2*x[i] {id=a}"
    assert pickle.loads(pickle.dumps(line)).copy(id="b") == "y[i] = x[i] {id=b}"
    assert lp.NoOpInstruction(id="n").copy(id="m") == "... nop {id=m}"
    assert all(isinstance(insn, lp.MultiAssignmentBase) for insn in unit().instructions)
    assert not any(insn.no_sync_with or insn.happens_after for insn in unit().instructions)
    assert not isinstance(unit().instructions[0], lp.CallInstruction)
    assert not isinstance("y[i] = x[i]", lp.Assignment)


def test_instructions_are_lines() -> None:
    assert lp.Assignment("y[i]", "x[i]") == "y[i] = x[i]"
    more = lp.Assignment(
        *("t", "2*x[i]"),
        id="a",
        depends_on=frozenset("cb"),
        within_inames="i, j",
        predicates=["i > 2"],
        tags=["near"],
        temp_var_type=lp.Optional(np.float32),
        priority=10,
        atomicity=("update",),
    )
    options = "{id=a, dep=b:c, inames=+i:j, if=i > 2, tags=near, atomic}"
    assert more == f"<float32> t = 2*x[i] {options}"
    for given in (lp.Optional(None), lp.auto):
        assert lp.Assignment("t", "1", temp_var_type=given) == "<> t = 1"
    assert lp.Assignment("t", "1", temp_var_type=lp.Optional()) == "t = 1"
    two = lp.CallInstruction(["v", "w[i]"], "f(i)", temp_var_types=[lp.auto, None])
    assert two == "<> v, w[i] = f(i)"
    assert lp.BarrierInstruction(synchronization_kind="local") == "... lbarrier"
    assert lp.NoOpInstruction(id="here") == "... nop {id=here}"
    rule = lp.SubstitutionRule("f", ("v",), parse("2*v"))
    assert lp.make_kernel("{ [i]: 0 <= i < n }", [rule, "y[i] = f(i)"]).substitutions.keys() == {
        "f"
    }
    cast = lp.TypeCast(np.float32, lp.Reduction("sum", "j, k", parse("a[j, k]")))
    assert str(cast) == "float32(reduce(sum, (j, k), a[j, k]))"
    for wrong in (
        lambda: lp.Assignment("t", "1", prioriti=3),
        lambda: lp.CallInstruction("v, w", "f(i)", temp_var_types=[None, None]),
        lambda: lp.BarrierInstruction(synchronization_kind="warp"),
        lambda: lp.Optional().value,
    ):
        with pytest.raises(lk.InvalidArgumentError):
            wrong()


def test_instructions_with_inames_of_their_own() -> None:
    text = """
        <> t[i] = x[i]         {dup=i, id=fill}
        y[i, j, k] = t[i] + w[j, k]  {dup=j->jj:k->kk, if=i > 2}
        z[i, j, k] = y[i, j, k]  # {dup=i}
        v[i, j] = w[i, j]      {tags=duplicated_0, dup=i:j->again}
    """
    knl = lp.make_kernel("{ [i, j, k]: 0 <= i, j, k < 9 }", text)
    assert knl.id_to_insn["fill"].inames == {"i_0"}
    others = [s.inames for s in knl.instructions if s.written in "yz"]
    assert others == [{"i", "jj", "kk"}, {"i", "j", "k"}]
    last = knl.instructions[-1].inames
    assert len(last) == 2 and "again" in last and last.isdisjoint("ij")
    assert [s.id for s in knl.instructions] == ["fill", "duplicated_1", "insn", "duplicated_2"]
    with pytest.raises(lk.UnknownNameError, match="no iname 'q'"):
        lp.make_kernel("{ [i]: 0 <= i < 9 }", "x[i] = 1 {dup=q}")


def test_what_make_kernel_takes() -> None:
    rule = lp.SubstitutionRule("f", ("v",), parse("2*v"))
    knl = lp.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "y[i, j] = f(x[i, j])",
        [lp.GlobalArg("x", float, ("n", "n"), "C", tags=frozenset()), ...],
        substitutions={"f": rule},
        loop_priority=frozenset([("j", "i")]),
        default_order=lp.auto,
    )
    assert str(knl).index("for j") < str(knl).index("for i")
    assert knl.outer_params() == {"n"} and knl.get_instruction_id_generator()("z") == "z"
    for module, name in (("diagnostic", "LoopyError"), ("translation_unit", "TranslationUnit")):
        assert getattr(import_module(f"loopkit.loopy.{module}"), name) is getattr(lp, name)


def test_conditions_are_objects() -> None:
    knl = lp.make_kernel("{ [i]: 0 <= i < n }", "<> t = x[i] {id=a, tags=in}\ny[i] = t {id=b}")
    for condition, ids in (
        (match.Id("a"), "a"),
        (match.Not(match.Reads("x")), "b"),
        (match.Or((match.Tagged("in"), match.Writes("y"))), "ab"),
        (match.And((match.Iname("i"), match.Id("b"))), "b"),
        (match.All(), "ab"),
        (match.InKernel("*"), "ab"),
        (match.parse_match("id:a or writes:y"), "ab"),
    ):
        assert [s.id for s in lp.find_instructions(knl, condition)] == [*ids]


def test_a_reduction_is_part_of_its_instruction() -> None:
    knl = lp.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < 8 }",
        "y[i] = sum(j, x[j]*max(k, a[j, k])) {id=s}\nz[i] = x[i] {id=t}",
    )
    knl = lp.add_dtypes(knl, {"x, a": np.float64})
    staged = lp.add_prefetch(knl, "a", "j, k", within="id:s")
    assert str(staged) == str(knl.add_prefetch("a", "j, k", within=match.Id("s")))
    assert (8, 8) in {t.shape for t in staged.temporary_variables.values()}
    parts = ("s_init", "s_update", "s_init_0", "s_update_0")
    assert set(parts) < set(knl.id_to_insn)
    with pytest.raises(lk.IllegalTransformError, match="replace nothing"):
        lp.add_prefetch(knl, "a", "j, k", within="id:t")


STEPS = {
    "add_and_infer_dtypes": ({},),
    "add_dependency": ("id:b", "id:a"),
    "add_dtypes": ({},),
    "add_inames_for_unused_hw_axes": (),
    "add_inames_to_insn": ("i", "id:b"),
    "expand_subst": (),
    "fix_parameters": (),
    "make_reduction_inames_unique": (),
    "privatize_temporaries_with_inames": ("i", frozenset()),
    "realize_reduction": (),
    "remove_unused_arguments": (),
    "remove_unused_inames": (),
    "save_and_reload_temporaries": (),
    "set_argument_order": ("x, n, y, z",),
    "tag_inames": ({"i": frozenset([GroupInameTag(0)])},),
    "tag_instructions": ("mine", "id:a"),
    "untag_inames": ("j", LocalInameTag),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_that_are_taken_already(step: str) -> None:
    text = "y[i] = sum(j, x[j]) {id=a, tags=mine}\nz[i] = y[i] {id=b, dep=a}"
    knl = lp.make_kernel(
        "{ [i, j]: 0 <= i, j < n }", text, [lp.GlobalArg("y", is_input=False), ...]
    )
    knl = lp.tag_inames(lp.set_argument_order(knl, "x, n, y, z"), "i: g.0")
    for taken in (getattr(lp, step)(knl, *STEPS[step]), getattr(knl, step)(*STEPS[step])):
        assert taken == knl and isinstance(taken, lp.TranslationUnit)


def test_arguments_that_are_left_out() -> None:
    knl = lp.make_kernel("{ [i]: 0 <= i < 8 }", "for i\n<> t[i] = x[i]\ny[i] = t[i]\nend")
    assert lp.realize_reduction(knl, unknown_types_ok=False) == knl
    summed = lp.make_kernel("{ [i]: 0 <= i < 8 }", "y = sum(i, x[i]) {id=s}")
    assert lp.realize_reduction(summed, insn_id_filter="s") == summed
    assert lp.split_array_dim(knl, ("t", 0), 4, auto_split_inames=False) == knl.split_array_dim(
        ("t", 0), 4
    )
    typed = lp.infer_unknown_types(lp.add_dtypes(knl, {"x": np.float32}), expect_completion=True)
    assert typed.arg_dict["y"].dtype == np.float32
    mixed = lp.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i] + w[i]")
    with pytest.raises(lk.TypeInferenceError):
        lp.infer_unknown_types(lp.add_dtypes(mixed, {"x": np.float32}), expect_completion=True)


def test_copies_are_named_and_tagged_as_in_loopy() -> None:
    text = "f(x) := 2*a[x]\ng(x) := 3*a[x]\ny[i] = f(i)\nz[i] = g(i)"
    knl = lp.make_kernel("{ [i]: 0 <= i < 64 }", text, [lp.GlobalArg("a", np.float32), ...])
    knl = lp.split_iname(knl, "i", 16, outer_tag="g.0", inner_tag="l.0")
    knl = lp.precompute(knl, "f", ["i_inner"], precompute_inames=[None])
    assert knl.temporary_variables.keys() == {"f_0"}
    knl = lp.tag_inames(knl, "f_dim_0:l.0")
    knl = lp.precompute(
        *(knl, "g(i)", "i_inner"),
        precompute_outer_inames=frozenset({"i_outer", "i_inner"}),
        precompute_inames=("p",),
    )
    assert knl.iname_tags("p") == frozenset() and "g_0" in knl.temporary_variables
    knl = lp.alias_temporaries(lp.tag_inames(knl, "p:l.0"), ["f_0", "g_0"])
    assert knl.kernel.prove().ok


@pytest.mark.host
def test_arrays_without_a_shape_are_as_long_as_they_come() -> None:
    data = [lp.ValueArg("k, n", np.int32), lp.GlobalArg("a", np.int32)]
    knl = lp.assume(lp.make_kernel("{ [i]: k <= i < n }", "a[i] = a[i] + 1", data), "0 <= k <= n")
    a = np.zeros(8, np.int32)
    _, (found,) = lp.set_options(knl, return_dict=False)(None, a=a, k=1, n=5)
    assert found is a and np.array_equal(a, [0, 1, 1, 1, 1, 0, 0, 0])
    rows = lp.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < length }"],
        "<> start = starts[i]\n<> length = starts[i + 1] - start\ny[i] = sum(j, x[[start + j]])",
        [lp.GlobalArg("starts", np.int32), lp.GlobalArg("x", np.float64, strides=(1,)), ...],
        assumptions="n >= 1 and length >= 1",
    )
    _, (y,) = rows(None, starts=np.array([0, 2, 5], np.int32), x=np.arange(5.0), n=2)
    assert np.array_equal(y, [1, 9])


def test_what_sets_of_isl_say_is_taken() -> None:
    knl = lp.assume(unit(), isl.BasicSet("[n] -> { : n >= 16 }"))
    knl = lp.map_domain(knl, isl.BasicMap("{ [i] -> [io, ii]: i = 4*io + ii and 0 <= ii < 4 }"))
    assert knl.all_inames() == {"io", "ii"}


def test_realized_reductions_are_matched_one_by_one() -> None:
    knl = lp.make_kernel("{ [i, j]: 0 <= i, j < 8 }", "out[i] = sum(j, a[i, j]) {id=s}")
    whole = lp.duplicate_inames(knl, "i", within="id:s", new_inames="ii")
    assert all("ii" in insn.within_inames for insn in whole.instructions)
    knl = lp.realize_reduction(knl)
    (acc,) = knl.temporary_variables
    knl = lp.privatize_temporaries_with_inames(knl, "i", only_var_names={acc})
    within = f"reads:{acc} and not writes:{acc}"
    knl = lp.duplicate_inames(knl, "i", within=within, new_inames="ii")
    assert [insn.id for insn in knl.instructions if "ii" in insn.within_inames] == ["s"]


def test_functions_that_call_functions_are_merged() -> None:
    first = lp.make_function("{ [i]: 0 <= i < 4 }", "c[i] = 2*a[i]", name="first")
    then = lp.make_function("{ [i]: 0 <= i < 4 }", "[i]: g[i] = first([i]: e[i])", name="then")
    text = "[i]: z[k, i] = then([i]: x[k, i])"
    data = [lp.GlobalArg("x", np.float64, shape=(4, 4)), ...]
    knl = lp.make_kernel("{ [i, k]: 0 <= i, k < 4 }", text, data)
    assert lp.merge([first, then, knl]).kernel.args[0].name == "x"


def test_functions_are_merged_one_by_one() -> None:
    first = lp.make_function("{ [i]: 0 <= i < 4 }", "c[i] = 2*a[i]", name="first", lang_version=1)
    then = lp.make_function("{ [i]: 0 <= i < 4 }", "c[i] = 3*a[i]", name="then")
    text = "[i]: y[i] = first([i]: x[i])\n[i]: z[i] = then([i]: x[i])"
    data = [lp.GlobalArg("x", np.float64, shape=4), ...]
    knl = lp.merge([lp.make_kernel("{ [i]: 0 <= i < 4 }", text, data), first])
    with pytest.raises(lk.ParseError, match="no function 'then'"):
        knl.kernel.cuda()
    assert {*lp.merge([knl, then]).arg_dict} == {"x", "y", "z"}


@pytest.mark.host
def test_what_outlives_a_launch_gets_its_memory_when_it_is_saved() -> None:
    text = "for i\nfor j\n<> t[j] = 3*j\nend\n... gbarrier\nfor k\nout[i, k] = t[k]\nend\nend"
    knl = lp.make_kernel("{ [i, j, k]: 0 <= i, j, k < 8 }", text)
    knl = lp.tag_inames(knl, "i:g.0")
    with pytest.warns(lp.LoopyWarning, match="save_and_reload_temporaries"):
        assert lp.set_temporary_address_space(knl, "t", "private") == knl
    knl = lp.save_and_reload_temporaries(knl)
    assert "private" in str(knl.temporary_variables["t"])
    _, (out,) = knl(None)
    assert np.array_equal(out, np.tile(3 * np.arange(8), (8, 1)))


def test_a_copy_under_a_name_that_is_taken_is_another_one() -> None:
    text = "y[i] = sum(j, a[j])\nz[i] = sum(k, a[k] + 1)"
    data = [lp.GlobalArg("a", np.float64), ...]
    knl = lp.make_kernel("{ [i, j, k]: 0 <= i < n and 0 <= j, k < 8 }", text, data)
    knl = lp.add_prefetch(knl, "a", "j", within="writes:y", prefetch_insn_id="a_fetch")
    assert knl.temporary_variables.keys() >= {"a_fetch_0"}
    with pytest.warns(lp.LoopyWarning, match="a_fetch_0_0 is another"):
        knl = lp.add_prefetch(knl, "a", "k", within="writes:z", temporary_name="a_fetch_0")
    assert knl.kernel.prove().ok


def test_arguments_keep_their_axes() -> None:
    with pytest.warns(lp.LoopyWarning, match="'y', 'x'"):
        assert lp.split_array_dim(unit(), [("y", 0), ("x", 0)], 4, split_kwargs={}) == unit()
    with pytest.warns(lp.LoopyWarning, match="'y': an argument"):
        assert lp.add_padding(unit(), "y", 0, 64) == unit()


def test_what_kernels_say_of_themselves() -> None:
    knl = lp.make_kernel(
        "{ [i, j]: 0 <= i < n and 2 <= j < 16 }",
        "f(v) := 2*v\n<> t = f(x[i, j]) {id=a}\ny[i, j] = t {id=b}",
    )
    top = lp.tag_inames(knl, "i: g.0").default_entrypoint
    assert top.name == "loopy_kernel" and set(top.callables_table) == {"loopy_kernel"}
    assert top.get_constant_iname_length("j") == 14
    with pytest.raises(lk.InvalidArgumentError, match="sizes say"):
        top.get_constant_iname_length("i")
    assert top.iname_tags("i") == {GroupInameTag(0)} and not top.iname_tags("j")
    assert not top.iname_tags_of_type("i", LocalInameTag)
    assert top.reader_map() == {"x": {"a"}, "t": {"b"}}
    assert top.get_read_variables() == {"x", "t"} and top.get_written_variables() == {"t", "y"}
    assert top.all_variable_names() == {"x", "y", "t", "n"} and top.substitutions["f"].arguments
    fresh = top.get_var_name_generator()
    assert len({fresh("t"), fresh("t"), fresh("t"), "t"}) == 4
    assert top.inames["i"].name == "i" and top.inames["i"].tags == {GroupInameTag(0)}
    typed = lp.add_dtypes(knl.split_iname("j", 8, inner_tag="l.0"), {"x": "float64"})
    assert lp.tag_inames(typed, "i:g.0").get_grid_size_upper_bounds(None) == (
        (Variable("n"),),
        (8,),
    )
    (code,) = lp.generate_code_v2(typed).device_programs
    assert code.name == "loopy_kernel" and code.ast == str(typed.cuda())
    assert top.stringify() == str(top) and top.insn_inames(top.instructions[0]) == {"i", "j"}


def test_targets_and_options() -> None:
    assert issubclass(ExecutableCTarget, CTarget) and issubclass(lp.CTarget, lp.target.TargetBase)
    for module, name in (
        ("cuda", "CudaTarget"),
        ("opencl", "OpenCLTarget"),
        ("pyopencl", "PyOpenCLTarget"),
        ("ispc", "ISPCTarget"),
    ):
        found = import_module(f"loopkit.loopy.target.{module}")
        assert getattr(found, name) is getattr(lp, name)
    assert unit(options=lp.Options(return_dict=True)).options == (("return_dict", True),)
    assert unit(options=lp.Options(fast_math=True)).kernel.options.fast_math
    assert lp.kernel.LoopKernel is lp.LoopKernel and lp.NumpyType(np.int32) == np.int32
    assert lp.kernel.instruction.Assignment is lp.Assignment


def test_names_are_imported_from_where_loopy_has_them() -> None:
    for module, names in {
        "transform.data": "add_prefetch reduction_arg_to_subst_rule rename_argument",
        "transform.iname": "split_iname tag_inames affine_map_inames",
        "transform.save": "save_and_reload_temporaries",
        "transform.fusion": "fuse_kernels",
        "transform.padding": "split_array_dim find_padding_multiple",
        "statistics": "get_op_map CountGranularity MemAccess",
        "schedule": "linearize",
        "kernel.array": "ArrayArg",
        "kernel.creation": "make_kernel",
        "auto_test": "auto_test_vs_ref",
        "preprocess": "preprocess_kernel",
        "type_inference": "infer_unknown_types",
    }.items():
        found = import_module(f"loopkit.loopy.{module}")
        for name in names.split():
            assert getattr(found, name) is getattr(lp, name)
        with pytest.raises(AttributeError, match=f"'loopkit.loopy.{module}' has no .* 'nothing'"):
            found.nothing  # noqa: B018
    assert lp.transform.data.add_prefetch is lp.add_prefetch
    with pytest.raises(AttributeError, match=r"instead: costs\(n="):
        lp.statistics.gather_access_footprints  # noqa: B018


def test_modules_without_a_file_are_modules() -> None:
    package = import_module("loopkit.loopy.transform")
    assert "add_prefetch" in dir(package) and package.iname is lp.transform.iname
    assert "loopy.kernel.data" in pydoc.render_doc("loopkit.loopy.kernel.data")
    tag = import_module("loopkit.loopy.kernel.data").LocalInameTag
    assert pickle.loads(pickle.dumps(tag(1))) == tag(1)
    assert {"split_iname", "make_kernel", "LoopKernel"} <= {*lp.__all__}
    operation = lp.library.reduction.ArgMinReductionOperation()
    assert str(lp.Reduction(operation, (Variable("j"),), 1)) == "reduce(argmin, j, 1)"
    assert lp.tools.LoopyKeyBuilder()(unit()) == lp.tools.LoopyKeyBuilder()(unit())
    assert lp.memoize_on_disk(unit) is unit


def test_loopys_errors_are_loopkits() -> None:
    for name in lp.diagnostic.__all__:
        base = Warning if "Warning" in name or "Advisory" in name else lk.LoopkitError
        assert issubclass(getattr(lp.diagnostic, name), base)
    with pytest.raises(lp.diagnostic.LoopyIndexError):
        lk.make_kernel("{ [i]: 0 <= i < 9 }", "y[i] = x[i + 1]", [lp.GlobalArg("x", shape=9), ...])
    with pytest.raises(lp.diagnostic.MissingDefinitionError):
        lp.make_kernel("{ [i]: 0 <= i < 9 }", "<> t[i] = 2\ny[i] = t[i + 1]")


@pytest.mark.host
def test_large_references_run_as_code() -> None:
    """And parameters that were fixed, or that no kernel has, are left out."""
    text = "y[i] = sum(j, a[i, j]*x[j]) + 2.5f"
    knl = lp.make_kernel("{ [i, j]: 0 <= i < n and 0 <= j < m }", text)
    knl = lp.fix_parameters(lp.add_dtypes(knl, {"a, x": np.float32}), m=2000)
    split = lp.split_iname(knl, "i", 64, outer_tag="g.0", inner_tag="l.0")
    sizes = {"n": 2500, "m": 2000, "nothing": 3}
    start = time.perf_counter()
    assert lp.auto_test_vs_ref(knl, None, split, parameters=sizes).executor
    assert time.perf_counter() - start < 30


@pytest.mark.host
def test_sizes_may_be_fixed_at_zero_and_sources_printed_for_types_of_a_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lp.fix_parameters(unit(), n=0).kernel.sizes == ()
    assert lp.fix_parameters(unit()) == unit() == lp.add_dtypes(unit(), {})
    _, (y,) = lp.set_options(unit(), write_code=True)(None, x=np.ones(3, np.float32))
    assert y.dtype == np.float32 and "float *__restrict__ y" in capsys.readouterr().out


@pytest.mark.host
def test_a_prefetch_of_one_element_is_its_threads_own() -> None:
    data = [lp.GlobalArg("a", np.float32, shape=(100,)), ...]
    knl = lp.make_kernel("{ [i]: 0 <= i < 100 }", "z[i] = a[i] + a[i]**2", data)
    knl = lp.split_iname(knl, "i", 16, inner_tag="l.0")
    for fetched in (
        lp.add_prefetch(knl, "a", []),
        knl.add_prefetch("a"),
        lp.add_prefetch(knl, "a"),
    ):
        copy = fetched.temporary_variables["a_fetch"]
        assert copy.address_space != lp.AddressSpace.LOCAL and copy.shape == ()
    a = np.arange(100, dtype=np.float32)
    _, (z,) = fetched(None, a=a)
    np.testing.assert_allclose(z, a + a**2)


def test_the_order_of_einsums_may_be_left_open() -> None:
    assert lp.make_einsum("ij,j->i", "a, x", default_order=lp.auto) == lp.make_einsum(
        "ij,j->i", "a, x"
    )
