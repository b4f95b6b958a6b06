"""A kernel as Loopy's scripts hold it: a translation unit, which is called with a queue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import wraps
from typing import Any

from loopkit._arrays import Argument, TemporaryVariable
from loopkit._errors import InvalidArgumentError, NothingToDoError, UnknownNameError
from loopkit._executors import types_of
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._match import Match, parse_match
from loopkit._spelling import shown
from loopkit.loopy._looks import Looks
from loopkit.transforms import add_dtypes

OPTIONS: Mapping[str, str] = {
    "return_dict": "results come back in a dictionary",
    "write_code": "each call prints the source",
    "write_cl": "an older name of write_code",
    **dict.fromkeys(
        (
            *("allow_fp_reordering", "allow_terminal_colors", "annotate_inames", "build_options"),
            *("check_dep_resolution", "cl_build_options", "cl_exec_manage_array_events"),
            *("disable_global_barriers", "edit_code", "edit_cl", "enforce_array_accesses_within"),
            *("enforce_variable_access_ordered", "highlight_code", "highlight_cl"),
            *("highlight_wrapper", "ignore_boostable_into", "insert_gbarriers", "no_numpy"),
            *("skip_arg_checks", "trace_assignment_values", "trace_assignments"),
            *("write_wrapper", "allow_non_reduction_inames"),
        ),
        "nothing here depends on it",
    ),
}
"""Options that scripts may set, each with what it does."""

CALL_OPTIONS = frozenset(
    ("allocator", "entrypoint", "no_numpy", "out_host", "queue", "wait_for", "warn_numpy")
)
"""Named arguments of a call that are no arguments of the kernel."""


OLDER: Mapping[str, Mapping[str, str]] = {
    "add_prefetch": {"temporary_scope": "temporary_address_space"},
    "buffer_array": {"temporary_address_space": "temporary_scope"},
    "precompute": {"temporary_scope": "temporary_address_space"},
}
"""Arguments that functions have under another name, too."""


LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "realize_reduction": ("automagic_scans_ok", "unknown_types_ok"),
    "rename_argument": ("existing_ok",),
    "split_array_dim": ("auto_split_inames",),
}
"""Arguments that change nothing: loops are split by steps of their own, scans asked for."""
FETCHED: Mapping[str, str] = {
    "temporary_name": "{}_fetch",
    "prefetch_insn_id": "{}_fetch_rule",
}
"""Names that Loopy's add_prefetch makes up, which scripts count on."""
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
    here are looked up there.  ``options`` are those of :func:`set_options`.
    """

    kernel: Kernel
    options: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Event, Any]:
        """Run the kernel; a queue in front of the arguments is left out.

        Returns an event, and the results: a tuple in the order of the arguments, or a dictionary
        by name with the option ``return_dict``.
        """
        chosen = dict(self.options)
        names = self.kernel.arg_by_name
        given = {n: v for n, v in kwargs.items() if n in names or n not in CALL_OPTIONS}
        if chosen.get("write_code") or chosen.get("write_cl"):
            types = types_of(self.kernel, given)
            print((add_dtypes(self.kernel, types) if types else self.kernel).cuda())
        positional = args if args and hasattr(args[0], "shape") else args[1:]
        result = self.kernel(*positional, **given)
        outputs = [a.name for a in self.kernel.args if a.name in self.kernel.writers]
        values = (result,) if len(outputs) == 1 else tuple(result or ())
        if chosen.get("return_dict"):
            return Event(), dict(zip(outputs, values, strict=True))
        return Event(), values

    def executor(self, *context: Any, **options: Any) -> Callable[..., tuple[Event, Any]]:
        """What runs the kernel: called as the unit is; the context is left out."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "kernel":
            raise AttributeError(name)
        found = getattr(self.kernel, name)
        return wrapped(found, self) if callable(found) and hasattr(found, "__self__") else found

    def __getitem__(self, name: str) -> TranslationUnit:
        """The kernel of this name, which is the only one."""
        if name != self.kernel.name:
            raise UnknownNameError("kernel", str(name), [self.kernel.name])
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

    def copy(self, **changes: Any) -> TranslationUnit:
        """The same; a target may be given, and changes nothing."""
        if changes.keys() - {"target"}:
            raise InvalidArgumentError(
                f"a kernel cannot be given another {', '.join(sorted(changes))}",
                instead="transforms make other kernels of it",
            )
        return self

    # What Loopy calls what a kernel holds.

    @property
    def instructions(self) -> tuple[Statement, ...]:
        """The statements, in order."""
        return self.kernel.statements

    @property
    def id_to_insn(self) -> Mapping[str, Statement]:
        """Statements by id."""
        return self.kernel.statement_by_id

    @property
    def arg_dict(self) -> Mapping[str, Argument]:
        """Arguments by name."""
        return self.kernel.arg_by_name

    @property
    def temporary_variables(self) -> Mapping[str, TemporaryVariable]:
        """Temporaries by name."""
        return self.kernel.temporary_by_name

    def all_inames(self) -> frozenset[str]:
        """The names of all inames."""
        return frozenset(self.kernel.all_inames)


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

    @wraps(function)
    def of_units(*args: Any, **kwargs: Any) -> Any:
        units = [unit] if unit is not None else []
        units += [v for v in _values((*args, *kwargs.values())) if isinstance(v, TranslationUnit)]
        newer = OLDER.get(function.__name__, {})
        unused = LEFT_OUT.get(function.__name__, ())
        named = {newer.get(n, n): unwrapped(v) for n, v in kwargs.items() if n not in unused}
        if units and named.get("within") is not None:
            named["within"] = with_reductions(units[0].kernel, named["within"])
        if re.fullmatch(r"\w+", str(named.get("insn_id_filter", ""))):
            named["insn_id_filter"] = f"id:{named['insn_id_filter']}"
        if units and function.__name__ == "add_prefetch":
            said = [v for v in args if not isinstance(v, TranslationUnit)]
            named |= _fetched(units[0].kernel, (*args, *kwargs.values()), named)
            if _sweeps_nothing(said, named):
                named.setdefault("default_tag", None)
        others = (v for v in (*args, *kwargs.values()) if not isinstance(v, TranslationUnit))
        says = any(v is not None and v != {} for v in others)
        if units and function.__name__ in MAY_SAY_NOTHING and not says:
            return units[0]
        try:
            result = function(*map(unwrapped, args), **named)
        except NothingToDoError:
            return units[0]
        if not isinstance(result, Kernel):
            return result
        return TranslationUnit(result, units[0].options if units else ())

    return of_units


def _sweeps_nothing(positional: list[Any], named: Mapping[str, Any]) -> bool:
    """Whether a prefetch is of one element, which is its thread's own."""
    ranges = named.get("footprint_subscripts") or "[" in str(positional[:1])[1:-1]
    sweep = positional[1] if len(positional) > 1 else named.get("sweep_inames")
    return not (sweep or ranges or len(positional) > 3)


def _fetched(kernel: Kernel, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, str]:
    """What Loopy calls a copy and the statement that fills it, where the caller says nothing."""
    use = re.match(r"\w+", next((one for one in given if isinstance(one, str)), ""))
    taken = {s.id for s in kernel.statements}
    return {
        argument: kernel.fresh_name(form.format(use[0]), taken)
        for argument, form in FETCHED.items()
        if use is not None and named.get(argument) is None
    }


def with_reductions(kernel: Kernel, match: str | Match) -> str | Match:
    """What also matches the parts of the reductions that statements hold: in Loopy they are one.

    What matches nothing stays as it is.
    """
    parsed = parse_match(match)
    found = [s for s in kernel.statements if parsed(kernel, s)]
    ids = {s.id for s in found}
    parts: dict[str, None] = {}
    for statement in found:
        for name, _ in statement.reads:
            temporary = kernel.temporary_by_name.get(name)
            if temporary is not None and temporary.accumulates:
                made = [w for w in kernel.writers[name] if w.id not in ids]
                parts |= dict.fromkeys(w.id for w in made)
                ids |= {w.id for w in made}
                found += made
    return " or ".join([f"({parsed})", *(f"id:{id_}" for id_ in parts)]) if parts else match


def _values(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def with_options(unit: TranslationUnit, given: Mapping[str, Any]) -> TranslationUnit:
    """A unit with more options; raises :class:`UnknownNameError` for one that there is not."""
    for name in given:
        if name not in OPTIONS:
            raise UnknownNameError("option", shown(name), OPTIONS)
    return replace(unit, options=tuple({**dict(unit.options), **given}.items()))
