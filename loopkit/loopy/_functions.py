"""Functions that Loopy's scripts call otherwise than loopkit's are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import wraps
from math import prod
from types import SimpleNamespace
from typing import Any, TypeVar

import loopkit
from loopkit._arguments import is_integer, names_in
from loopkit._arrays import ArrayArg
from loopkit._compat import names
from loopkit._compat.gone import GONE
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    TypeInferenceError,
)
from loopkit._execute import best_executor
from loopkit._kernel import Kernel, Statement
from loopkit._make.kernel_functions import MissingFunctionError
from loopkit._make.unlinked import Unlinked
from loopkit._match import Match, matching
from loopkit._sets import at, names_of, project_out
from loopkit._spelling import shown
from loopkit._syntax.domain_parser import parse_assumptions
from loopkit._tags import GroupAxis, LocalAxis, Tag
from loopkit.loopy._instructions import lines_of, without_duplicates
from loopkit.loopy._unit import OPTIONS, UNUSED, TranslationUnit, unwrapped, with_options

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS = ("preambles", "preamble_generators", "symbol_manglers", "function_manglers")
"""Arguments of :func:`make_kernel` that say what functions in C there are."""


def _unit_of(value: Any) -> TranslationUnit:
    if isinstance(value, Kernel):
        return TranslationUnit(value)
    if not isinstance(value, TranslationUnit):
        raise InvalidArgumentError(f"this takes a kernel, not {shown(value)}")
    return value


def make_kernel(
    domains: Any, instructions: Any, kernel_data: Any = None, **kwargs: Any
) -> TranslationUnit:
    """A translation unit with one kernel: see :func:`loopkit.make_kernel`.

    Targets, silenced warnings and versions of the language change nothing; ``options`` are those
    of :func:`set_options`, or loopkit's.  Bounds are proven where code is made: scripts say what
    holds of sizes later, by ``assume``.
    """
    for name in UNUSED:
        kwargs.pop(name, None)
    options = kwargs.pop("options", None)
    loopys = _options(options)
    if loopys is None:
        kwargs["options"] = options
    kwargs.setdefault("owe_bounds", True)
    kwargs.setdefault("name", "loopy_kernel")
    instructions, duplicates = without_duplicates(lines_of(instructions))
    for name in FUNCTIONS:
        if kwargs.pop(name, None):
            raise InvalidArgumentError(f"make_kernel takes no {name}", instead=GONE["PreambleInfo"])
    priorities = sorted(kwargs.pop("loop_priority", None) or ())
    if isinstance(kwargs.get("substitutions"), Mapping):
        kwargs["substitutions"] = list(kwargs["substitutions"].values())
    if kwargs.get("default_order") == loopkit.auto:
        del kwargs["default_order"]
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
    return with_options(unit, loopys or {})


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
    rest = {n: v for n, v in kwargs.items() if n not in UNUSED}
    if rest.get("default_order") == loopkit.auto:
        del rest["default_order"]
    return TranslationUnit(in_loopys_order(loopkit.make_einsum(spec, arg_names, **rest), None))


def merge(kernels: Iterable[TranslationUnit]) -> TranslationUnit:
    """See :func:`loopkit.merge`; options are those of the text that calls the others.

    Functions may come one by one: what is still missing is brought by another call.
    """
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
    declared = [name.strip() for text in names for name in text.split(",")]
    known = [name for name in declared if name in kernel.arg_by_name]
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
    return with_options(_unit_of(kernel), given)


class GeneratedCode(names.GeneratedCode):
    """What :func:`generate_code_v2` returns."""

    all_code = names.GeneratedCode.device_code

    @property
    def device_programs(self) -> list[SimpleNamespace]:
        """The source as one program, with its name."""
        return [SimpleNamespace(name=self._kernel.name, ast=self.device_code())]

    def host_code(self) -> str:
        """Nothing: launches are made by the executors."""
        return ""


def generate_code_v2(kernel: TranslationUnit) -> GeneratedCode:
    """The generated code; raises :class:`~loopkit.InvalidArgumentError` for what is no kernel."""
    return GeneratedCode(_unit_of(kernel).kernel)


def generate_code(kernel: TranslationUnit, device: Any = None) -> tuple[str, None]:
    """The CUDA C source, and None for what implements arguments."""
    return _unit_of(kernel).kernel.cuda(), None


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


def infer_unknown_types(
    kernel: TranslationUnit, expect_completion: bool = False
) -> TranslationUnit:
    """The kernel with all types that follow; others are an error with ``expect_completion``."""
    unit = _unit_of(kernel)
    data = (*unit.kernel.args, *unit.kernel.temporaries)
    known = {d.name: d.dtype for d in data if d.dtype is not None}
    if len(known) in (0, len(data)):
        return unit
    try:
        return unit.with_kernel(loopkit.add_and_infer_dtypes(unit.kernel, known))
    except TypeInferenceError:
        if expect_completion:
            raise
        return unit


def memoize_on_disk(function: F, key_builder_t: Any = None) -> F:
    """The function as it is: kernels are made anew in less time than files are read."""
    return function


def find_instructions(kernel: TranslationUnit, insn_match: str | Match) -> list[Statement]:
    """The statements that match."""
    inner = _unit_of(kernel).kernel
    ids = matching(inner, insn_match)
    return [s for s in inner.statements if s.id in ids]


def find_rules_matching(kernel: TranslationUnit, pattern: str) -> list[str]:
    """The names of the substitution rules that a pattern with wildcards fits."""
    rules = _unit_of(kernel).kernel.rule_by_name
    return [name for name in rules if fnmatchcase(name, pattern)]


def find_one_rule_matching(kernel: TranslationUnit, pattern: str) -> str:
    """The name of the one rule that a pattern fits; an error where there is none, or several."""
    found = find_rules_matching(kernel, pattern)
    if len(found) != 1:
        shown_rules = ", ".join(found) or "none"
        raise InvalidArgumentError(f"'{pattern}' fits {len(found)} rules: {shown_rules}")
    return found[0]


def find_unused_axis_tag(kernel: TranslationUnit, kind: str, insn_match: str | None = None) -> Tag:
    """The first axis, ``kind`` being ``"l"`` or ``"g"``, that no statement that matches is on."""
    inner = _unit_of(kernel).kernel
    classes = {"l": LocalAxis, "g": GroupAxis}
    if kind not in classes:
        raise InvalidArgumentError(f"kind is 'l' or 'g', not {shown(kind)}")
    ids = matching(inner, insn_match)
    inames = frozenset().union(*(inner.statement_by_id[i].inames for i in ids))
    used = {inner.iname_tags.get(i) for i in inames}
    for axis in range(3):
        if classes[kind](axis) not in used:
            return classes[kind](axis)
    raise IllegalTransformError(f"all axes {kind}.0 to {kind}.2 are used")


def split_arg_axis(*args: Any, **kwargs: Any) -> TranslationUnit:
    """An older name of :func:`split_array_axis`."""
    return split_array_axis(*args, **kwargs)


def split_array_axis(
    kernel: TranslationUnit, array_names: str, axis_nr: int, count: int, order: str = "C"
) -> TranslationUnit:
    """:func:`split_array_dim` of one axis of several arrays."""
    unit = _unit_of(kernel)
    names = array_names.split(",") if isinstance(array_names, str) else list(array_names)
    axes = [(name.strip(), axis_nr, order) for name in names]
    return unit.with_kernel(loopkit.split_array_dim(unit.kernel, axes, count))


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


def for_each_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one kernel as one of units."""

    @wraps(function)
    def of_units(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> TranslationUnit:
        unit = _unit_of(kernel)
        return unit.with_kernel(function(unit, *args, **kwargs))

    return of_units


def has_schedulable_iname_nesting(kernel: TranslationUnit) -> bool:
    """True: a kernel has its loop nest from the start."""
    return isinstance(_unit_of(kernel), TranslationUnit)


def get_iname_duplication_options(kernel: TranslationUnit) -> Iterator[Any]:
    """None: a kernel has its loop nest from the start."""
    _unit_of(kernel)
    return iter(())


def t_unit_to_python(kernel: TranslationUnit) -> str:
    """The steps that were taken, as a script."""
    return _unit_of(kernel).kernel.script()


def clear_in_mem_caches() -> None:
    """Nothing: what a kernel remembers goes with it."""


def generate_body(kernel: TranslationUnit) -> str:
    """The CUDA C source."""
    return _unit_of(kernel).kernel.cuda()


def get_dot_dependency_graph(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> str:
    """The statements in the language of Graphviz, an arrow from each to what reads its result.

    How it is to be drawn is left out.
    """
    inner = _unit_of(kernel).kernel
    lines = [f'  "{s.id}" [label="{s.id}"];' for s in inner.statements]
    lines += [
        f'  "{writer.id}" -> "{reader.id}";'
        for name in inner.temporary_by_name
        for writer in inner.writers.get(name, ())
        for reader in inner.readers.get(name, ())
    ]
    return "\n".join(["digraph {", *dict.fromkeys(lines), "}"])


def set_caching_enabled(flag: bool) -> None:
    """Nothing: binaries are cached by all that they depend on."""


class CacheMode(nullcontext[None]):
    """A context in which caching is on or off in Loopy; it changes nothing here."""

    def __init__(self, new_flag: bool) -> None:
        super().__init__()
        self.new_flag = new_flag
