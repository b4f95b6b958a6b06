"""A kernel as a translation unit of Loopy's, which is called with a queue."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import wraps
from typing import Any

from loopkit._arguments import is_integer, names_in
from loopkit._arrays import AddressSpace, parse_address_space
from loopkit._compat.gone import SAME
from loopkit._errors import (
    InvalidArgumentError,
    LoopkitWarning,
    NothingToDoError,
    UnknownNameError,
    check_known,
)
from loopkit._expression import evaluate, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._match import Match, matching, parse_match
from loopkit._places import outlives_launch
from loopkit._relations import reachable
from loopkit.loopy._looks import Looks

OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        """
        allow_fp_reordering allow_non_reduction_inames allow_terminal_colors annotate_inames
        build_options check_dep_resolution cl_build_options cl_exec_manage_array_events
        disable_global_barriers edit_cl edit_code enforce_array_accesses_within
        enforce_variable_access_ordered highlight_cl highlight_code highlight_wrapper
        ignore_boostable_into insert_gbarriers no_numpy skip_arg_checks trace_assignment_values
        trace_assignments write_wrapper
        """.split(),  # noqa: SIM905
        "nothing here depends on it",
    ),
    "return_dict": "results come back in a dictionary",
    "write_code": "each call prints the source",
    "write_cl": "an older name of write_code",
}
"""Options that scripts may set, each with what it does."""

CALL_OPTIONS = frozenset(
    ("allocator", "entrypoint", "no_numpy", "out_host", "queue", "wait_for", "warn_numpy")
)
"""Named arguments of a call that are no arguments of the kernel."""

UNUSED = "flags index_dtype lang_version seq_dependencies silenced_warnings tags target".split()  # noqa: SIM905
"""Arguments of :func:`make_kernel` that change nothing."""

LEFT_OUT: Mapping[str, list[str]] = {
    "alias_temporaries": ["synchronize_for_exclusive_use"],
    "make_function": UNUSED,
    "realize_reduction": ["automagic_scans_ok", "unknown_types_ok"],
    "rename_argument": ["existing_ok"],
    "split_array_dim": ["auto_split_inames", "split_kwargs"],
}
"""Arguments that change nothing: loops are split by steps of their own, scans asked for."""

SPELLINGS = ("temporary_scope", "temporary_address_space")
"""Names of one argument: functions have one of them, and scripts say either."""

FETCHING: Mapping[str, tuple[str, str, str, Mapping[str, str]]] = {
    "add_prefetch": (
        *("var_name", "fetch_outer_inames", "dim_arg_names"),
        {"temporary_name": "{}_fetch", "prefetch_insn_id": "{}_fetch_rule"},
    ),
    "precompute": (
        *("subst_use", "precompute_outer_inames", "precompute_inames"),
        {"temporary_name": "{}"},
    ),
}
"""What makes copies: its arguments that say of what, which loops are around it, and what its own
are called; and arguments for the names that Loopy makes up, and scripts count on."""

MAY_SAY_NOTHING = ("add_and_infer_dtypes", "add_dtypes", "fix_parameters")
"""Functions that may be given nothing beside the kernel, and leave it as it is then."""


class Event:
    """What a call returns beside its results: those are ordered on their library's stream."""

    def wait(self) -> None:
        """Nothing: whoever reads a result waits for it."""


@dataclass(frozen=True)
class TranslationUnit(Looks):
    """One kernel, under the names that Loopy's scripts look for.

    ``kernel`` is the kernel itself, with all that loopkit offers: attributes that are not found
    here are looked up there.  ``options`` are those of :func:`set_options`, and ``realized``
    the accumulators whose statements :func:`realize_reduction` has made the script's own; ``open``
    are arguments that were declared without a shape.
    """

    kernel: Kernel
    options: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    realized: frozenset[str] = field(default=frozenset(), compare=False)
    open: frozenset[str] = field(default=frozenset(), compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Event, Any]:
        """Run the kernel; a queue in front of the arguments is left out.

        Returns an event, and the results: a tuple in the order of the arguments, or a dictionary
        by name with the option ``return_dict``.
        """
        from loopkit._compare import named_results
        from loopkit._executors import types_of
        from loopkit.transforms import add_dtypes

        chosen = dict(self.options)
        names = self.kernel.arg_by_name
        given = {n: v for n, v in kwargs.items() if n in names or n not in CALL_OPTIONS}
        if chosen.get("write_code") or chosen.get("write_cl"):
            types = types_of(self.kernel, given)
            print((add_dtypes(self.kernel, types) if types else self.kernel).cuda())
        positional = args if args and hasattr(args[0], "shape") else args[1:]
        result = self.kernel(*positional, **{n: self._used(n, given) for n in given})
        named = named_results(self.kernel, result)
        named |= {n: given[n] for n in named if n in self.open and n in given}
        return Event(), named if chosen.get("return_dict") else tuple(named.values())

    def _used(self, name: str, given: Mapping[str, Any]) -> Any:
        """An argument of a call; of an array whose shape is open, what the sizes of the call say.

        Without a shape, Loopy's arrays are as long as they come.
        """
        value, array = given[name], self.kernel.arg_by_name.get(name)
        shape = getattr(array, "shape", None) if name in self.open else None
        numbers = {n: int(v) for n, v in given.items() if is_integer(v)}
        if not shape or len(getattr(value, "shape", ())) != len(shape):
            return value
        if not all(variable_names(extent) <= numbers.keys() for extent in shape):
            return value
        return value[tuple(slice(evaluate(extent, numbers)) for extent in shape)]

    def executor(self, *context: Any, **options: Any) -> Callable[..., tuple[Event, Any]]:
        """What runs the kernel: called as the unit is; the context is left out."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "kernel":
            raise AttributeError(name)
        found = getattr(self.kernel, SAME.get(name, name))
        return wrapped(found, self) if callable(found) and hasattr(found, "__self__") else found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SAME, *dir(self.kernel)]

    def __getitem__(self, name: str) -> TranslationUnit:
        """The kernel of this name, which is the only one."""
        if not isinstance(name, str) or name != self.kernel.name:
            raise UnknownNameError("kernel", name, [self.kernel.name])
        return self

    def __str__(self) -> str:
        return str(self.kernel)

    @property
    def default_entrypoint(self) -> TranslationUnit:
        """The only kernel there is."""
        return self

    @property
    def entrypoints(self) -> frozenset[str]:
        """The name of the kernel."""
        return frozenset([self.kernel.name])

    def with_entrypoints(self, entrypoints: Any) -> TranslationUnit:
        """The same: there is one kernel, with which calls begin."""
        return self

    def with_kernel(self, kernel: TranslationUnit | Kernel) -> TranslationUnit:
        """The unit with another kernel in it."""
        return replace(self, kernel=unwrapped(kernel))

    def with_options(self, given: Mapping[str, Any]) -> TranslationUnit:
        """The unit with more options; raises :class:`UnknownNameError` for unknown ones."""
        check_known("option", given, OPTIONS)
        return replace(self, options=tuple({**dict(self.options), **given}.items()))

    def copy(self, **changes: Any) -> TranslationUnit:
        """The same; a target may be given, and changes nothing."""
        if changes.keys() - {"target"}:
            raise InvalidArgumentError(
                f"a kernel cannot be given another {', '.join(sorted(changes))}",
                instead="transforms make other kernels of it",
            )
        return self


def unwrapped(value: Any) -> Any:
    """The kernel of a unit; kernels in lists and tuples too; other values as they are."""
    if isinstance(value, TranslationUnit):
        return value.kernel
    if isinstance(value, (list, tuple)) and any(isinstance(v, TranslationUnit) for v in value):
        return [unwrapped(v) for v in value]
    return value


def wrapped(
    function: Callable[..., Any], unit: TranslationUnit | None = None
) -> Callable[..., Any]:
    """A function of loopkit's that takes and returns units; options stay with them.

    ``unit`` is the one whose method it is.
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters
    places = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    unused = LEFT_OUT.get(name, ())
    older = {n: own for own in SPELLINGS if own in parameters for n in SPELLINGS}

    @wraps(function)
    def of_units(*args: Any, **kwargs: Any) -> Any:
        named = {older.get(n, n): v for n, v in kwargs.items() if n not in unused}
        if len(args) <= len(places) and named.keys().isdisjoint(places[: len(args)]):
            args, named = (), {**dict(zip(places, args, strict=False)), **named}
        given = (*args, *named.values())
        several = (one if isinstance(one, (list, tuple)) else [one] for one in (unit, *given))
        units = [v for values in several for v in values if isinstance(v, TranslationUnit)]
        if not units:
            result = function(*args, **named)
            return TranslationUnit(result) if isinstance(result, Kernel) else result
        says = [v for v in given if not isinstance(v, TranslationUnit)]
        if name in MAY_SAY_NOTHING and all(v is None or v == {} for v in says):
            return units[0]
        named = {argument: unwrapped(value) for argument, value in named.items()}
        try:
            named |= in_loopys_terms(name, units[0], named)
            if name == "realize_reduction":
                units[0] = _realized(units[0], named.get("insn_id_filter"))
            result = function(*map(unwrapped, args), **named)
        except NothingToDoError:
            return units[0]
        return units[0].with_kernel(result) if isinstance(result, Kernel) else result

    return of_units


def in_loopys_terms(name: str, unit: TranslationUnit, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a function of loopkit's for what a script says, or leaves to Loopy."""
    kernel, changed = unit.kernel, dict[str, Any]()
    if given.get("within") is not None and name != "tag_instructions":
        changed["within"] = with_reductions(unit, given["within"])
    ids = given.get("insn_id_filter")
    if isinstance(ids, str) and re.fullmatch(r"\w+", ids):
        ids = [ids]
    if isinstance(ids, (list, tuple, set, frozenset)):
        changed["insn_id_filter"] = " or ".join(f"id:{id_}" for id_ in sorted(ids))
    if hasattr(given.get("device"), "platform"):
        changed["device"] = None  # one of OpenCL's
    if name == "set_temporary_address_space":
        _check_saved(kernel, given)
    elif name == "split_array_dim":
        changed["arrays_and_axes"] = _of_temporaries(kernel, given.get("arrays_and_axes"))
    elif name == "add_padding":
        _of_temporaries(kernel, (given.get("variable"), given.get("axis")))
    elif name in FETCHING:
        changed |= _named_as_in_loopy(name, kernel, given)
    return changed


def _named_as_in_loopy(name: str, kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of what makes copies: names that scripts count on, and no tags but theirs."""
    from loopkit.transforms._common import is_parallel

    use, outer, axes, forms = FETCHING[name]
    changed: dict[str, Any] = {}
    called = re.split(r"[\[($]", str(given.get(use)))[0].strip(" '\"")
    taken = {*kernel.statement_by_id, *(v for v in given.values() if isinstance(v, str))}
    for argument, form in forms.items() if called.isidentifier() else ():
        if given.get(argument) is None:
            changed[argument] = kernel.fresh_name(form.format(called), taken)
    other = str(given.get("temporary_name"))
    if other in kernel.temporary_by_name:
        changed["temporary_name"] = kernel.fresh_name(other, taken)
        own = f"'{other}' has its values: {changed['temporary_name']} is another temporary"
        warnings.warn(own, LoopkitWarning, stacklevel=5)
    ranges = given.get("footprint_subscripts") or "[" in str(given.get("var_name"))
    if name == "precompute" or not (given.get("sweep_inames") or ranges):
        changed["default_tag"] = given.get("default_tag")  # a single element is its thread's own
    swept = {n for n in names_in(given.get("sweep_inames")) if is_parallel(kernel, n)}
    if given.get(outer) is not None and swept:
        changed[outer] = [n for n in names_in(given[outer]) if n not in swept]
    if isinstance(given.get(axes), (list, tuple)):
        numbered = enumerate(given[axes])
        changed[axes] = [n or kernel.fresh_name(f"{called}_dim_{axis}") for axis, n in numbered]
    return changed


def _check_saved(kernel: Kernel, given: Mapping[str, Any]) -> None:
    """Leave temporaries of several launches to what saves them, as scripts say the one first."""
    if parse_address_space(given.get("address_space")) is AddressSpace.GLOBAL:
        return
    names = names_in(given.get("temp_var_names"))
    if names and all(n in kernel.temporary_by_name and outlives_launch(kernel, n) for n in names):
        kept = f"{', '.join(map(repr, names))}: what outlives a launch is in global memory until "
        warnings.warn(kept + "save_and_reload_temporaries", LoopkitWarning, stacklevel=4)
        raise NothingToDoError("these temporaries outlive a launch")


def _of_temporaries(kernel: Kernel, given: Any) -> Any:
    """The axes of temporaries; arguments are, and stay, where the caller has them."""
    rows = [given] if isinstance(given, tuple) and isinstance(given[0], str) else given
    whose = [row[0] for row in rows if row[0] in kernel.arg_by_name]
    if whose:
        kept = f"{', '.join(map(repr, whose))}: an argument has the axes that its caller gives it"
        warnings.warn(kept, LoopkitWarning, stacklevel=4)
    rows = [row for row in rows if row[0] not in whose]
    if whose and not rows:
        raise NothingToDoError("only arguments are named")
    return rows


def _realized(unit: TranslationUnit, match: Any) -> TranslationUnit:
    """The unit, whose script says from now on what statements these reductions are."""
    ids = matching(unit.kernel, match)
    read = {name for s in unit.kernel.statements if s.id in ids for name, _ in s.reads}
    return replace(unit, realized=unit.realized | read)


def with_reductions(unit: TranslationUnit, match: str | Match) -> str | Match:
    """What also matches the parts of the reductions that statements hold: in Loopy they are one.

    What matches nothing stays as it is, and so do reductions that are realized.
    """
    kernel, parsed = unit.kernel, parse_match(match)
    sums = {t.name for t in kernel.temporaries if t.accumulates} - unit.realized
    of_sums = {s.id: sums.intersection(n for n, _ in s.reads) for s in kernel.statements}
    ids = {s.id for s in kernel.statements if parsed(kernel, s)}
    made = reachable(ids, lambda id_: {w.id for n in of_sums[id_] for w in kernel.writers[n]})
    parts = [s.id for s in kernel.statements if s.id in made - ids]
    return " or ".join([f"({parsed})", *(f"id:{id_}" for id_ in parts)]) if parts else match
