"""Functions whose calling convention differs between Loopy and loopkit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import wraps
from math import prod
from typing import Any, TypeVar

import loopkit
from loopkit._arguments import checked_kernel, is_integer, names_in
from loopkit._arrays import ArrayArg
from loopkit._compat.gone import GONE, UNCHANGED
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    TypeInferenceError,
)
from loopkit._execute import best_executor
from loopkit._kernel import Kernel, Statement
from loopkit._match import Match, matching
from loopkit._sets import at, names_of, project_out
from loopkit._spelling import shown
from loopkit._syntax.domain_parser import parse_assumptions
from loopkit._tags import GroupAxis, LocalAxis, Tag
from loopkit.loopy._instructions import lines_of, without_duplicates
from loopkit.loopy._unit import OPTIONS, UNUSED, TranslationUnit, unwrapped

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS = ("preambles", "preamble_generators", "symbol_manglers", "function_manglers")
"""Arguments of :func:`make_kernel` that say what functions in C there are."""


def _unit_of(value: Any) -> TranslationUnit:
    if isinstance(value, TranslationUnit):
        return value
    return TranslationUnit(checked_kernel(value))


def unchanged(name: str) -> Callable[..., TranslationUnit]:
    """A function that takes a unit, and whatever else, and returns the unit."""

    def same(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> TranslationUnit:
        return _unit_of(kernel)

    same.__name__ = same.__qualname__ = name
    same.__doc__ = f"The kernel as it is: {UNCHANGED[name]}."
    return same


def of_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a kernel as one of units; what it returns that is no kernel stays as it is."""

    @wraps(function)
    def of_units(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> Any:
        unit = _unit_of(kernel)
        result = function(unit.kernel, *args, **kwargs)
        return unit.with_kernel(result) if isinstance(result, Kernel) else result

    return of_units


def for_each_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one kernel as one of units."""

    @of_kernel
    @wraps(function)
    def of_one(kernel: Kernel, *args: Any, **kwargs: Any) -> Any:
        return unwrapped(function(TranslationUnit(kernel), *args, **kwargs))

    return of_one


def _without_unused(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, less those that change nothing."""
    is_open = given.get("default_order") == loopkit.auto
    return {
        n: v for n, v in given.items() if n not in UNUSED and not (n == "default_order" and is_open)
    }


def make_kernel(
    domains: Any, instructions: Any, kernel_data: Any = None, **kwargs: Any
) -> TranslationUnit:
    """A translation unit with one kernel: see :func:`loopkit.make_kernel`.

    Targets, silenced warnings and versions of the language change nothing; ``options`` are those
    of :func:`set_options`, or loopkit's.  Bounds are proven where code is made: scripts say what
    holds of sizes later, by ``assume``.
    """
    kwargs = {"owe_bounds": True, "name": "loopy_kernel", **_without_unused(kwargs)}
    options = _options(kwargs.get("options"))
    if options is not None:
        kwargs.pop("options", None)
    instructions, duplicates = without_duplicates(lines_of(instructions))
    for name in FUNCTIONS:
        if kwargs.pop(name, None):
            raise InvalidArgumentError(f"make_kernel takes no {name}", instead=GONE["PreambleInfo"])
    priorities = sorted(kwargs.pop("loop_priority", None) or ())
    if isinstance(kwargs.get("substitutions"), Mapping):
        kwargs["substitutions"] = list(kwargs["substitutions"].values())
    if kwargs.get("assumptions") is not None:
        kwargs["assumptions"] = _about_sizes(kwargs["assumptions"], instructions)
    kernel = loopkit.make_kernel(domains, instructions, kernel_data, **kwargs)
    data = [kernel_data] if isinstance(kernel_data, (str, ArrayArg)) else kernel_data or ()
    bare = [d.name for d in data if isinstance(d, ArrayArg) and d.shape is None]
    unit = TranslationUnit(
        in_loopys_order(kernel, kernel_data), open=frozenset(names_in(",".join(bare)))
    )
    for inames in priorities:
        unit = unit.prioritize_loops(inames)
    for id_, iname, new in duplicates:
        unit = unit.duplicate_inames(iname, within=f"id:{id_}", new_inames=new)
    return unit.with_options(options or {})


def _about_sizes(assumptions: Any, instructions: Any) -> Any:
    """Assumptions without what they say of temporaries: data that is computed is not promised."""
    text = instructions if isinstance(instructions, str) else "\n".join(map(str, instructions))
    loaded = set(re.findall(r"<[^<>\n]*>\s*(\w+)\s*=[^=]", text))
    if not isinstance(assumptions, str) or loaded.isdisjoint(re.findall(r"\w+", assumptions)):
        return assumptions
    known = parse_assumptions(assumptions)
    return project_out(known, sorted(loaded.intersection(names_of(known))))


def make_einsum(spec: str, arg_names: Any, **kwargs: Any) -> TranslationUnit:
    """See :func:`loopkit.make_einsum`; what :func:`make_kernel` leaves out is left out."""
    made = loopkit.make_einsum(spec, arg_names, **_without_unused(kwargs))
    return TranslationUnit(in_loopys_order(made, None))


def merge(kernels: Iterable[TranslationUnit]) -> TranslationUnit:
    """See :func:`loopkit.merge`; options are those of the text that calls the others.

    Functions may come one by one: what is still missing is brought by another call.
    """
    from loopkit._make.called_kernels import Unlinked
    from loopkit._make.kernel_functions import MissingFunctionError

    units = list(kernels)
    called = [unit for unit in units if isinstance(unit, TranslationUnit)]
    text: Any = called[0].kernel if len(called) == 1 else None
    if not isinstance(text, Unlinked):
        return TranslationUnit(loopkit.merge([unwrapped(unit) for unit in units]))
    known = (*text.kwargs.get("functions", ()), *(u for u in units if u is not called[0]))
    try:
        alone = replace(text, kwargs={**text.kwargs, "functions": ()})
        kernel = loopkit.merge([alone, *known])
    except MissingFunctionError as error:  # which further calls may bring
        more: Any = replace(text, kwargs={**text.kwargs, "functions": known}, error=error)
        return replace(called[0], kernel=more)
    return called[0].with_kernel(in_loopys_order(kernel, text.args[2]))


def in_loopys_order(kernel: Any, kernel_data: Any) -> Any:
    """A new kernel whose arguments are those that are declared, then all others by name."""
    if not isinstance(kernel, Kernel):  # what it calls has still to come
        return kernel
    given = [kernel_data] if isinstance(kernel_data, str) else kernel_data or ()
    names = [one if isinstance(one, str) else getattr(one, "name", "") for one in given]
    known = [name for name in names_in(",".join(names)) if name in kernel.arg_by_name]
    others = sorted(kernel.arg_by_name.keys() - known)
    return replace(kernel, args=tuple(kernel.arg_by_name[name] for name in (*known, *others)))


def _options(given: Any) -> dict[str, Any] | None:
    """Options by name, from a mapping or a text as ``"write_code,return_dict=True"``."""
    if isinstance(given, Mapping) and not given.keys() - OPTIONS.keys():
        return dict(given)
    if not isinstance(given, str):
        return {} if given is None else None
    found: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in given.split(","))):
        name, equals, value = part.partition("=")
        found[name.strip()] = value.strip() not in ("False", "0", "false") if equals else True
    return found


def set_options(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> TranslationUnit:
    """The kernel with options: ``return_dict`` and ``write_code``; the others change nothing.

    Given by name, or as one text.  Raises :class:`~loopkit.UnknownNameError` for others.
    """
    given = _options(args[0]) if len(args) == 1 and not kwargs else dict(kwargs)
    if given is None or len(args) > 1 or (args and kwargs):
        raise InvalidArgumentError("set_options takes options by name, or one text")
    return _unit_of(kernel).with_options(given)


generate_code_v2 = of_kernel(loopkit.generate_code_v2)


@of_kernel
def generate_code(kernel: Kernel, device: Any = None) -> tuple[str, None]:
    """The CUDA C source, and None for what implements arguments."""
    return kernel.cuda(), None


@of_kernel
def generate_body(kernel: Kernel) -> str:
    """The CUDA C source."""
    return kernel.cuda()


@of_kernel
def t_unit_to_python(kernel: Kernel) -> str:
    """The steps that were taken, as a script."""
    return kernel.script()


def auto_test_vs_ref(ref_knl: TranslationUnit, *args: Any, **kwargs: Any) -> Any:
    """Run two kernels on the same random data, and compare: ``(ref_knl, ctx, test_knl, ...)``.

    A context, counts and labels of operations, what to print, and parameters that neither kernel
    has, are left out; ``parameters`` and loopkit's own arguments count.  Where the reference would
    have more to interpret than a user would wait for, its generated code runs in its place.
    See :func:`loopkit.auto_test_vs_ref`.
    """
    units = [a for a in args if isinstance(a, (TranslationUnit, Kernel))]
    test = kwargs.pop("test_knl", units[0] if units else None)
    known = ("parameters", "executor_name", "ref_executor", "seed", "tolerance")
    named = {name: value for name, value in kwargs.items() if name in known}
    positional = [a for a in args if isinstance(a, Mapping)]
    if positional:
        named.setdefault("parameters", positional[0])
    ref, tested = unwrapped(ref_knl), unwrapped(ref_knl if test is None else test)
    if isinstance(named.get("parameters"), Mapping) and isinstance(ref, Kernel):
        names = {a.name for k in (ref, tested) if isinstance(k, Kernel) for a in k.args}
        given = {name: value for name, value in named["parameters"].items() if name in names}
        named["parameters"] = given
        if _is_too_long(ref, given):
            named.setdefault("ref_executor", best_executor())
    return loopkit.auto_test_vs_ref(ref, tested, **named)


_MOST_INTERPRETED = 2_000_000


def _is_too_long(kernel: Kernel, parameters: Mapping[str, Any]) -> bool:
    """Whether statements may run too often to be interpreted; what data decide does not count."""
    sizes = {name: parameters[name] for name in kernel.sizes if name in parameters}
    if not all(map(is_integer, sizes.values())):  # auto_test_vs_ref says what is wrong
        return False
    limits = kernel.assumptions.set & at(sizes)

    def length(iname: str) -> int:
        first, last = kernel.domains[kernel.home_domain[iname]].range_of(iname, limits)
        return 1 if first is None or last is None else max(last - first + 1, 0)

    lengths = {iname: length(iname) for iname in kernel.all_inames}
    times = (prod(lengths[iname] for iname in s.inames) for s in kernel.statements)
    return sum(times) > _MOST_INTERPRETED


@of_kernel
def infer_unknown_types(kernel: Kernel, expect_completion: bool = False) -> Kernel:
    """The kernel with all types that follow; others are an error with ``expect_completion``."""
    data = (*kernel.args, *kernel.temporaries)
    known = {d.name: d.dtype for d in data if d.dtype is not None}
    if len(known) in (0, len(data)):
        return kernel
    try:
        return loopkit.add_and_infer_dtypes(kernel, known)
    except TypeInferenceError:
        if expect_completion:
            raise
        return kernel


def memoize_on_disk(function: F, key_builder_t: Any = None) -> F:
    """The function as it is: kernels are made anew in less time than files are read."""
    return function


@of_kernel
def find_instructions(kernel: Kernel, insn_match: str | Match) -> list[Statement]:
    """The statements that match."""
    ids = matching(kernel, insn_match)
    return [s for s in kernel.statements if s.id in ids]


@of_kernel
def find_rules_matching(kernel: Kernel, pattern: str) -> list[str]:
    """The names of the substitution rules that a pattern with wildcards fits."""
    return [name for name in kernel.rule_by_name if fnmatchcase(name, pattern)]


def find_one_rule_matching(kernel: TranslationUnit, pattern: str) -> str:
    """The name of the one rule that a pattern fits; an error where there is none, or several."""
    found = find_rules_matching(kernel, pattern)
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise InvalidArgumentError(f"'{pattern}' fits {len(found)} rules: {names}")
    return str(found[0])


@of_kernel
def find_unused_axis_tag(kernel: Kernel, kind: str, insn_match: str | None = None) -> Tag:
    """The first axis, ``kind`` being ``"l"`` or ``"g"``, that no statement that matches is on."""
    classes = {"l": LocalAxis, "g": GroupAxis}
    if kind not in classes:
        raise InvalidArgumentError(f"kind is 'l' or 'g', not {shown(kind)}")
    ids = matching(kernel, insn_match)
    inames = frozenset().union(*(kernel.statement_by_id[i].inames for i in ids))
    used = {kernel.iname_tags.get(i) for i in inames}
    for tag in map(classes[kind], range(3)):
        if tag not in used:
            return tag
    raise IllegalTransformError(f"all axes {kind}.0 to {kind}.2 are used")


@of_kernel
def split_array_axis(
    kernel: Kernel, array_names: str, axis_nr: int, count: int, order: str = "C"
) -> Kernel:
    """:func:`split_array_dim` of one axis of several arrays."""
    axes = [(name, axis_nr, order) for name in names_in(array_names)]
    return loopkit.split_array_dim(kernel, axes, count)


split_arg_axis = split_array_axis


def make_copy_kernel(new_dim_tags: Any, old_dim_tags: Any = None) -> TranslationUnit:
    """A kernel that copies ``input`` to ``output``, which have these axis tags."""
    tags = [new_dim_tags, old_dim_tags]
    counts = [len(t.split(",") if isinstance(t, str) else t) for t in tags if t is not None]
    names = [f"i{axis}" for axis in range(counts[0])]
    sizes = [f"n{axis}" for axis in range(counts[0])]
    bounds = " and ".join(f"0 <= {i} < {n}" for i, n in zip(names, sizes, strict=True))
    shown_names = ", ".join(names)
    knl = loopkit.make_kernel(
        f"{{ [{shown_names}]: {bounds} }}",
        f"output[{shown_names}] = input[{shown_names}]",
        [loopkit.GlobalArg("input", shape=sizes), loopkit.GlobalArg("output", shape=sizes), ...],
        name="copy",
    )
    for array, given in (("output", new_dim_tags), ("input", old_dim_tags)):
        if given is not None:
            knl = loopkit.tag_array_axes(knl, array, given)
    return TranslationUnit(knl)


@of_kernel
def has_schedulable_iname_nesting(kernel: Kernel) -> bool:
    """True: a kernel has its loop nest from the start."""
    return True


@of_kernel
def get_iname_duplication_options(kernel: Kernel) -> Iterator[Any]:
    """None: a kernel has its loop nest from the start."""
    return iter(())


def clear_in_mem_caches() -> None:
    """Nothing: what a kernel remembers goes with it."""


@of_kernel
def get_dot_dependency_graph(kernel: Kernel, *args: Any, **kwargs: Any) -> str:
    """The statements in the language of Graphviz, an arrow from each to what reads its result.

    How it is to be drawn is left out.
    """
    lines = [f'  "{s.id}" [label="{s.id}"];' for s in kernel.statements]
    lines += [
        f'  "{writer.id}" -> "{reader.id}";'
        for name in kernel.temporary_by_name
        for writer in kernel.writers.get(name, ())
        for reader in kernel.readers.get(name, ())
    ]
    return "\n".join(["digraph {", *dict.fromkeys(lines), "}"])


def set_caching_enabled(flag: bool) -> None:
    """Nothing: binaries are cached by all that they depend on."""


class CacheMode(nullcontext[None]):
    """A context in which caching is on or off in Loopy; it changes nothing here."""

    def __init__(self, new_flag: bool) -> None:
        super().__init__()
        self.new_flag = new_flag
