"""Loopy's targets, types, options and instruction objects, which become lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, ClassVar, Self

import numpy as np
import pymbolic.primitives as prim

import loopkit
from loopkit._arguments import names_in
from loopkit._errors import InvalidArgumentError
from loopkit._kernel import Statement, SubstitutionRule
from loopkit._promotion import as_dtype, dtype_name
from loopkit._spelling import shown

_NOTHING = object()

UNUSED = (
    *("conflicts_with_groups", "depends_on_is_final", "groups", "mem_kind", "no_sync_with"),
    *("priority", "within_inames_is_final"),
)
"""Arguments that say something of Loopy's scheduler, and change nothing."""


class Optional:
    """A value, or none: ``Optional()`` is none, ``Optional(None)`` a value that is to be found."""

    def __init__(self, value: Any = _NOTHING) -> None:
        self.has_value = value is not _NOTHING
        self._value = value

    @property
    def value(self) -> Any:
        """The value; an error where there is none."""
        if not self.has_value:
            raise InvalidArgumentError("an Optional without a value has none")
        return self._value


class _Kind(type):
    """What counts as an instruction of a kind: lines that are one, and what kernels hold."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, cls.held)  # type: ignore[attr-defined]


class Line(str, metaclass=_Kind):
    """A line of the language, which remembers the arguments that it was ``given``."""

    held: ClassVar[tuple[type, ...]] = ()
    given: dict[str, Any]

    @classmethod
    def of(cls, text: str, given: Mapping[str, Any]) -> Self:
        """The line ``text {id=...}`` with the options among the arguments."""
        rest = {n: v for n, v in given.items() if n not in NO_OPTIONS}
        line = str.__new__(cls, f"{text}{_options(rest)}")
        line.given = dict(given)
        return line

    def copy(self, **changes: Any) -> Self:
        """The line with some other arguments."""
        return type(self)(**{**self.given, **changes})

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), self.given


NO_OPTIONS = (
    *("assignee", "assignees", "expression", "synchronization_kind"),
    *("temp_var_type", "temp_var_types"),
)
"""Arguments of instructions that are no options of a line."""


class Assignment(Line):
    """The line ``assignee = expression {id=...}``; with a ``temp_var_type`` it declares."""

    held = (Statement,)

    def __new__(cls, assignee: Any, expression: Any, **rest: Any) -> Self:
        declared = _declared(rest.get("temp_var_type"))
        given = {"assignee": assignee, "expression": expression, **rest}
        return cls.of(f"{declared}{assignee} = {expression}", given)


class CallInstruction(Line):
    """The line ``assignee, assignee = f(...) {id=...}``."""

    def __new__(cls, assignees: Any, expression: Any, **rest: Any) -> Self:
        targets = [assignees] if isinstance(assignees, str) else list(assignees)
        types = rest.get("temp_var_types")
        types = [None] * len(targets) if types is None else list(types)
        if len(types) != len(targets):
            raise InvalidArgumentError("temp_var_types has an entry for each assignee")
        left = ", ".join(f"{_declared(t)}{a}" for a, t in zip(targets, types, strict=True))
        given = {"assignees": assignees, "expression": expression, **rest}
        return cls.of(f"{left} = {expression}", given)


class NoOpInstruction(Line):
    """The line ``... nop {id=...}``."""

    def __new__(cls, **rest: Any) -> Self:
        return cls.of("... nop", rest)


class BarrierInstruction(Line):
    """The line ``... gbarrier {id=...}``, or ``... lbarrier``."""

    def __new__(cls, **rest: Any) -> Self:
        kind = rest.get("synchronization_kind", "global")
        words = {"global": "gbarrier", "local": "lbarrier"}
        if kind not in words:
            raise InvalidArgumentError(f"a barrier is 'global' or 'local', not {shown(kind)}")
        return cls.of(f"... {words[kind]}", rest)


def lines_of(instructions: Any) -> Any:
    """Instructions as :func:`loopkit.make_kernel` takes them: rules are lines, too."""
    if isinstance(instructions, str) or not isinstance(instructions, Iterable):
        return instructions
    return [_rule(one) if isinstance(one, SubstitutionRule) else one for one in instructions]


Duplicates = list[tuple[str, str, str | None]]
"""Ids of instructions, an iname that each is to have of its own, and what that is called."""


def without_duplicates(instructions: Any) -> tuple[Any, Duplicates]:
    """Instructions without the option ``dup``, and what it asks for.

    Such an instruction gets an id, if it has none.
    """
    found: Duplicates = []
    is_text = isinstance(instructions, str)
    lines = [instructions] if is_text else instructions
    whole = "\n".join(map(str, lines))
    free = (id_ for id_ in map("duplicated_{}".format, count()) if id_ not in whole)

    def taken(match: re.Match[str]) -> str:
        options = [part.strip() for part in match[2].split(",") if part.strip()]
        asked = [part for part in options if re.match(r"dup\s*=", part)]
        if not asked:
            return match[0]
        rest = [part for part in options if part not in asked]
        ids = [part.partition("=")[2].strip() for part in rest if re.match(r"id\s*=", part)]
        id_ = ids[0] if ids else next(free)
        for pair in asked[0].partition("=")[2].split(":"):
            old, arrow, new = pair.partition("->")
            found.append((id_, old.strip(), new.strip() if arrow else None))
        return match[1] + "{" + ", ".join(rest if ids else [f"id={id_}", *rest]) + "}"

    behind_a_line = r"(?m)^([^#\n{}]*)\{([^{}]*)\}"
    plain = [re.sub(behind_a_line, taken, one) if isinstance(one, str) else one for one in lines]
    return (plain[0] if is_text else plain), found


def _rule(rule: SubstitutionRule) -> str:
    return f"{rule.name}({', '.join(rule.arguments)}) := {rule.expression}"


def _declared(given: Any) -> str:
    """``<float32>`` in front of what is declared, ``<>`` for a type that is to be found."""
    if isinstance(given, Optional):
        if not given.has_value:
            return ""
        given = given.value if given.value is not None else "auto"
    if given is None:
        return ""
    is_open = isinstance(given, str) and given == "auto"
    return "<> " if is_open else f"<{dtype_name(as_dtype(given))}> "


def _options(rest: dict[str, Any]) -> str:
    """The options of a line, from arguments by name."""
    atomic = rest.pop("atomicity", ())
    depends_on = rest.pop("depends_on", None) or rest.pop("happens_after", None)
    options = [
        ("id", rest.pop("id", None)),
        ("dep", _joined(depends_on)),
        ("inames", _joined(rest.pop("within_inames", None), "+")),
        ("if", _joined(rest.pop("predicates", None))),
        ("tags", _joined(rest.pop("tags", None))),
    ]
    unknown = sorted(rest.keys() - {*UNUSED, "happens_after"})
    if unknown:
        raise InvalidArgumentError(
            f"an instruction has no '{unknown[0]}'", instead="the language has options for it"
        )
    parts = [f"{name}={value}" for name, value in options if value]
    parts += ["atomic"] if atomic else []
    return f" {{{', '.join(parts)}}}" if parts else ""


def _joined(names: Any, start: str = "") -> str:
    """Names as an option has them; sets in the order of the alphabet."""
    if isinstance(names, str):
        names = names_in(names.replace(":", ","))
    texts = [str(one) for one in names or ()]
    ordered = sorted(texts) if isinstance(names, (set, frozenset)) else texts
    return start + ":".join(ordered) if texts else ""


class TargetBase:
    """A target, whatever it was made with: the code is CUDA C in any case."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class CudaTarget(TargetBase):
    """CUDA C, which is what there is."""


class OpenCLTarget(TargetBase):
    """OpenCL in Loopy; CUDA C here."""


class PyOpenCLTarget(OpenCLTarget):
    """OpenCL in Loopy; CUDA C here."""


class CTarget(TargetBase):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ExecutableCTarget(CTarget):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ISPCTarget(TargetBase):
    """ISPC in Loopy; CUDA C here."""


_REDUCE = "reduce"  # a word of the language, and no name


def Reduction(operation: str, inames: Any, expr: Any, allow_simultaneous: bool = False) -> Any:
    """``reduce(operation, inames, expr)``."""
    names = inames.split(",") if isinstance(inames, str) else list(inames)
    over = tuple(prim.Variable(str(name).strip()) for name in names)
    swept = over[0] if len(over) == 1 else over
    terms = expr if isinstance(expr, tuple) else (expr,)
    return prim.Variable(_REDUCE)(prim.Variable(operation), swept, *terms)


def TypeCast(dtype: Any, child: Any) -> Any:
    """``float32(child)``."""
    return prim.Variable(dtype_name(as_dtype(dtype)))(child)


def to_loopy_type(dtype: Any, *args: Any, **kwargs: Any) -> np.dtype[Any]:
    """NumPy's type."""
    return as_dtype(dtype)


def Options(**given: Any) -> Any:
    """Options for :func:`make_kernel` and :func:`set_options`: Loopy's, or loopkit's own."""
    own = loopkit.Options.__dataclass_fields__
    return loopkit.Options(**given) if given and given.keys() <= own.keys() else dict(given)


VERSION = (2025, 2)
"""The version of Loopy whose interface this follows."""
MOST_RECENT_LANGUAGE_VERSION = (2018, 2)
"""The version of the language, of which there is one here."""
