"""Loopy's scripts: what is accepted for them, all of it, and that it changes nothing."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from seams import IGNORED, IGNORED_OPTIONS, names

import loopkit as lk
from loopkit import Statement


def kernel(text: str = "c[i, j] = 2*a[i, j]", **more: Any) -> lk.Kernel:
    domain = "{ [i, j]: 0 <= i < n and 0 <= j < n }"
    return lk.make_kernel(domain, text, dtypes={"a, c": "float32"}, **more)


CALLS: dict[str, tuple[Any, ...]] = {
    "add_and_infer_dtypes": ({"a": "float32"},),
    "add_barrier": ("id:first", "id:second"),
    "add_prefetch": ("a", "j", None, None),
    "assignment_to_subst": ("t",),
    "chunk_iname": ("i", 2),
    "rename_iname": ("i", "k"),
    "rename_inames": ("i", "k"),
    "split_iname": ("i", 4),
}


def made(function: str, **more: Any) -> lk.Kernel:
    if function == "make_kernel":
        return kernel(**more)
    text = {
        "add_barrier": "a[i, j] = 2 {id=first}\n... nop\nc[i, j] = 3 {id=second}",
        "assignment_to_subst": "<float32> t = 2*a[i, j]\nc[i, j] = t",
    }.get(function)
    knl = (kernel(text) if text else kernel()).fix_parameters(n=8)
    result = getattr(knl, function)(*CALLS[function], **more)
    assert isinstance(result, lk.Kernel)
    return result


DATA = ("ArrayArg", "GlobalArg", "TemporaryVariable", "ValueArg")
STATISTICS = ("get_mem_access_map", "get_op_map", "get_synchronization_map")


@pytest.mark.parametrize("name", DATA)
def test_ignored_arguments_of_data(name: str) -> None:
    made = getattr(lk, name)
    for argument, why in IGNORED[name].items():
        assert why
        assert made("x", "float32", **{argument: True}) == made("x", "float32")
        assert argument not in inspect.signature(made).parameters


@pytest.mark.parametrize("function", sorted(IGNORED.keys() - {*DATA, *STATISTICS}))
def test_ignored_arguments_change_nothing(function: str) -> None:
    for argument, why in IGNORED[function].items():
        assert why
        plain, given = made(function), made(function, **{argument: True})
        assert given == plain
        assert [s.call() for s in given.history] == [s.call() for s in plain.history]
        assert argument not in inspect.signature(getattr(lk, function)).parameters


@pytest.mark.parametrize("function", STATISTICS)
def test_ignored_arguments_of_statistics(function: str) -> None:
    counted = getattr(lk, function)
    for argument, why in IGNORED[function].items():
        assert why
        assert str(counted(kernel(), **{argument: True})) == str(counted(kernel()))
        assert argument not in inspect.signature(counted).parameters


def test_what_is_ignored() -> None:
    assert {f: sorted(arguments) for f, arguments in IGNORED.items()} == {
        "ArrayArg": ["address_space", "alignment", "for_atomic", "tags", "target"],
        "GlobalArg": ["alignment", "for_atomic", "tags", "target"],
        "TemporaryVariable": ["alignment", "for_atomic", "tags", "target"],
        "ValueArg": ["approximately", "is_input", "is_output", "tags", "target"],
        "add_and_infer_dtypes": ["expect_completion"],
        "add_barrier": ["mem_kind"],
        "add_prefetch": ["rule_name"],
        "assignment_to_subst": ["force_retain_argument"],
        "chunk_iname": ["do_tagged_check"],
        "get_mem_access_map": ["entrypoint"],
        "get_op_map": ["count_within_subscripts", "entrypoint"],
        "get_synchronization_map": ["entrypoint"],
        "make_kernel": ["lang_version", "seq_dependencies"],
        "rename_iname": ["raise_on_domain_mismatch"],
        "rename_inames": ["raise_on_domain_mismatch"],
        "split_iname": ["do_tagged_check"],
    }
    assert (
        *("conflicts", "conflicts_grp", "groups", "mem_kind", "nosync", "nosync_query"),
        "priority",
    ) == IGNORED_OPTIONS


def test_other_arguments_are_refused_as_ever() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="has no argument 'lang_versio'"):
        kernel(lang_versio=3, seq_dependencies=True)
    with pytest.raises(lk.InvalidArgumentError, match="do_check"):
        kernel().split_iname("i", 4, do_check=True, do_tagged_check=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("option", IGNORED_OPTIONS)
def test_options_of_loopys_scheduler_change_nothing(option: str) -> None:
    assert kernel(f"c[i, j] = 2*a[i, j] {{id=s, {option}=x@local:y}}") == kernel(
        "c[i, j] = 2*a[i, j] {id=s}"
    )
    with pytest.raises(lk.ParseError, match=f"the option '{option}' needs a value"):
        kernel(f"c[i, j] = 2*a[i, j] {{{option}=}}")


def test_older_names_do_the_same_and_are_recorded_by_the_newer() -> None:
    knl = kernel()
    older = knl.set_loop_priority("j, i")
    assert older == lk.set_loop_priority(knl, "j, i") == knl.prioritize_loops("j, i")
    assert [s.transform for s in older.history] == ["prioritize_loops"]
    staged = kernel("<float32> t = 2*a[i, j]\nc[i, j] = t")
    scoped = staged.set_temporary_scope("t", scope="private")
    assert scoped == staged.set_temporary_address_space("t", "private")
    assert [s.transform for s in scoped.history] == ["set_temporary_address_space"]
    assert lk.generate_code_v2(knl).device_code() == knl.cuda()
    first: Any = knl.statements[0]
    assert first.within_inames == first.inames and first.assignee_var_names() == ("c",)
    assert (first.assignee, first.expression) == (first.lhs, first.rhs)
    assert first.dependency_names() == {"a", "c", "i", "j"} and first.assignees == (first.lhs,)
    assert first.read_dependency_names() == {"a", "i", "j"}


def test_all_names_are_here() -> None:
    functions = {n for n, f in vars(names).items() if inspect.isfunction(f) and n[0] != "_"}
    functions = {n for n in functions if vars(names)[n].__module__ == names.__name__}
    assert functions == {"generate_code_v2", "set_loop_priority", "set_temporary_scope"}
    assert functions <= set(lk.__all__)
    assert "within_inames" in vars(Statement)


def test_what_no_type_and_no_unit_of_memory_is_gets_an_answer() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i] + 1", dtypes={"x": "float32"})
    for dtype in (",", "\ud800"):
        assert not lk.get_op_map(knl).filter_by(dtype=dtype)
    with pytest.raises(lk.InvalidArgumentError, match="a page has 2,097,152"):
        lk.find_padding_multiple(knl, "x", 0, 2**31 - 1)
    with pytest.raises(lk.InvalidArgumentError, match="do not combine"):
        lk.TemporaryVariable("t", combined_by=lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 1"))
