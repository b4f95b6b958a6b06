"""All exceptions that loopkit raises.

Each class is one kind of mistake.  An error stores its facts as data, and renders the message only
when it is read: first the request, then the reason why it was refused, then what would allow it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Self
from unicodedata import combining, east_asian_width

from loopkit._frozen import dataclass

if TYPE_CHECKING:
    from loopkit._check.instance_maps import Lineage
    from loopkit._kernel import Kernel
    from loopkit._pictures.witness import WitnessPicture


INDENT = "    "
"""What stands in front of a line of the user's in a message."""


_LINES = 8
"""As many lines of a long statement are shown."""


def _columns(text: str) -> int:
    """How wide a terminal shows a text: some letters take two columns, accents none."""
    return sum(1 + (east_asian_width(c) in "WF") for c in text if not combining(c))


@dataclass(frozen=True)
class SourcePosition:
    """A place in a text that the user wrote: ``line`` and ``column`` count from 1."""

    text: str
    line: int
    column: int
    length: int = 1

    def caret(self) -> str:
        """The lines with carets under the place, indented by four blanks; a tab is one blank."""
        lines = self.text.replace("\t", " ").splitlines() or [""]
        begin, left = self.column - 1, max(1, self.length)
        shown: list[str] = []
        for line in lines[min(self.line, len(lines)) - 1 :][:_LINES]:
            end = begin + left
            if shown:  # a line that goes on with what the one above began
                begin = len(line) - len(line.lstrip())
            marker = " " * _columns(line[:begin]) + "^" * max(1, _columns(line[begin:end]))
            shown += [f"{INDENT}{line}", f"{INDENT}{marker}"]
            begin, left = 0, end - len(line) - 1
            if left <= 0:
                break
        return "\n".join(shown)

    def shown_with(self, why: str) -> str:
        """What is wrong at the place, and the line with a caret."""
        return f"line {self.line}, column {self.column}: {why}\n{self.caret()}"


def caret_at(position: SourcePosition | None) -> str:
    """The source line with a caret under a place; empty where the place is not known."""
    return "" if position is None else position.caret()


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The names like one that does not exist, as a proposal; ``otherwise`` if there are none."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?" if near else otherwise


def shown(value: object) -> str:
    """``value`` in a message: on one line, of bounded length, whatever its ``repr`` does."""
    try:
        text = ascii(value) if isinstance(value, (str, bytes)) else repr(value)
    except Exception:  # a value from outside may do anything
        text = f"an object of type {type(value).__name__}"
    if not isinstance(value, str):
        first, *more = text.encode("ascii", "backslashreplace").decode().strip().split("\n")
        text = " ".join(first.split()) + ("..." if more else "")
    return text if len(text) <= 80 else text[:77] + "..."


def counted(number: int | str, noun: str, several: str = "") -> str:
    """``1 block``, ``1,024 blocks``, ``n axes``"""
    text = number if isinstance(number, str) else f"{number:,}"
    return f"{text} {noun if text == '1' else several or noun + 's'}"


@dataclass(frozen=True)
class Instance:
    """One execution of a statement: its id and the value of each of its inames."""

    statement: str
    inames: Mapping[str, int]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.inames.items())
        return f"{self.statement}[{values}]" if values else self.statement


@dataclass(frozen=True)
class Witness:
    """A counterexample: sizes and two statement instances for which a schedule is wrong.

    ``source`` and ``sink`` are the two statement instances, ``cell`` the index
    they share in ``array``, ``parameters`` the sizes for which it happens.
    ``suggestions`` say what would be legal; they may be found only when they are read.
    ``refused`` is, of a step, the lineage and the kernel that it would have given: what
    ``picture()`` is drawn from.
    """

    if TYPE_CHECKING:

        def picture(self) -> WitnessPicture:
            """The two instances, the order they have and the one they would get."""

    kind: str
    array: str | None = None
    cell: tuple[int, ...] | None = None
    source: Instance | None = None
    sink: Instance | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)
    suggestions: Sequence[str] = field(default=(), compare=False, repr=False)
    refused: tuple[Lineage, Kernel] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        where = ", ".join(map(str, filter(None, (self.source, self.sink))))
        cell = f"[{', '.join(map(str, self.cell))}]" if self.cell else ""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        parts = (
            self.kind,
            f" at {self.array}{cell}" if self.array is not None else "",
            f": {where}" if where else "",
            f", for example for {sizes}" if sizes else "",
        )
        return "".join(parts)

    @property
    def suggestion(self) -> str | None:
        """The suggestions, one a line; None where there are none."""
        return "\n".join(self.suggestions) or None


class LoopkitWarning(UserWarning):
    """A kernel may compute something else than its text suggests; given when it is made."""


class LoopkitError(Exception):
    """The base of all errors of loopkit.

    ``asked`` says what was asked (or is empty), ``why`` why it cannot be, at what ``position`` of
    a text if it is one, ``instead`` what would make it possible (or is empty).  ``step`` names
    the transform that failed, once one is known.
    """

    def __init__(
        self,
        why: str,
        *,
        position: SourcePosition | None = None,
        asked: str = "",
        instead: str = "",
    ) -> None:
        super().__init__(why)
        self.why = why
        self.position = position
        self.asked = asked
        self.instead = instead
        self.step: str | None = None

    def __str__(self) -> str:
        parts = (self.asked, self._reason(), self.instead)
        if self.asked.startswith(INDENT):
            # A traceback puts the name of the error in front of the first line, and would move it
            # away from its caret.
            parts = (self._reason(), self.asked, self.instead)
        text = "\n".join(filter(None, parts))
        # What no terminal can write, half of a surrogate pair, is spelled out.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def _reason(self) -> str:
        if self.position is not None:
            return self.position.shown_with(self.why)
        named = self.step and not self.asked.startswith(self.step)
        return f"{self.step}: {self.why}" if named else self.why


class ParseError(LoopkitError):
    """The text of a kernel, expression, domain or match string is malformed."""


class UnknownNameError(LoopkitError):
    """A name (iname, array, statement, tag, argument, ...) does not exist."""

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        position: SourcePosition | None = None,
        asked: str = "",
    ) -> None:
        self.kind = kind
        # What is no name at all is none that exists.
        self.name = name = name if isinstance(name, str) else shown(name)
        self.known = tuple(sorted({*known}))
        self.near = tuple(difflib.get_close_matches(name, self.known, n=3))
        instead = f"this kernel has no {kind} at all"
        if self.known:
            some = ", ".join(self.known[:12]) + (", ..." if len(self.known) > 12 else "")
            several = f"{kind[:-1]}ies" if kind.endswith("ry") else f"{kind}s"
            several = "names" if " or " in kind else several
            instead = nearest(name, self.known, f"{several} that exist: {some}")
        why = f"there is no {kind} '{name}'"
        super().__init__(why, position=position, asked=asked, instead=instead)


def check_known(kind: str, names: Iterable[Any], known: Collection[str]) -> None:
    """Raise :class:`UnknownNameError` for the first of some names that there is not."""
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownNameError(kind, name, known)


class InvalidArgumentError(LoopkitError, ValueError):
    """An argument of a call has a value or a type that it cannot have."""


class NotThereError(LoopkitError, AttributeError):
    """An attribute that does not exist: the error says what to write in its place."""


class TypeInferenceError(LoopkitError):
    """The type of a variable cannot be found, or two uses of it disagree."""


_TOLD = ("why", "instead", "witness")
"""What an error says that is told later."""


class WitnessError(LoopkitError):
    """The base of errors that show one concrete case in ``witness``.

    ``suggestions`` are changes that were tried and are legal.  They are looked for
    when somebody first reads them or the message; so is the case, where it is :meth:`told_by`.
    ``refused`` is that of the witness, and there where no case was found, too.
    """

    if TYPE_CHECKING:
        witness: Witness | None

        def picture(self) -> WitnessPicture:
            """The two instances of the witness, the order they have and the one they would get."""

    def __init__(
        self, why: str, *, witness: Witness | None = None, asked: str = "", instead: str = ""
    ) -> None:
        super().__init__(why, asked=asked, instead=instead)
        self.witness = witness
        self.suggestions: Sequence[str] = ()
        self.refused: tuple[Lineage, Kernel] | None = None

    @classmethod
    def told_by(cls, tell: Callable[[], WitnessError]) -> Self:
        """An error of this class with the contents of another, which is made when it is read."""
        error = cls("")
        for name in _TOLD:
            del error.__dict__[name]
        error.__dict__["_tell"] = tell
        return error

    def __getattr__(self, name: str) -> Any:
        """Attributes that are computed on first use: Python calls this for missing ones."""
        tell = self.__dict__.get("_tell")
        if name not in _TOLD or tell is None:
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        told = tell()
        if told.witness is not None:
            told.witness = replace(told.witness, refused=self.refused, suggestions=self.suggestions)
        for each in _TOLD:
            self.__dict__.setdefault(each, told.__dict__[each])
        self.args = (self.why,)
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.why!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {n: getattr(self, n) for n in (*_TOLD, *self.__dict__) if n != "_tell"}
        return type(self), (self.why,), values

    def refuse(self, lineage: Lineage, kernel: Kernel) -> None:
        """Record the refused step, so that the witness can be drawn."""
        self.refused = lineage, kernel
        if (known := self.__dict__.get("witness")) is not None:
            self.witness = replace(known, refused=self.refused)

    def suggest(self, suggestions: Sequence[str]) -> None:
        """Add suggestions, which may be computed when they are first read."""
        self.suggestions = suggestions
        if (known := self.__dict__.get("witness")) is not None:
            self.witness = replace(known, suggestions=suggestions)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.suggestions])


class IllegalTransformError(WitnessError):
    """A transform would change what the kernel computes, or does not apply."""


class NothingToDoError(IllegalTransformError):
    """A transform would change nothing: all is as it asks for already."""


class UndecidedError(WitnessError):
    """Whether a transform is legal could not be decided."""


class RaceError(IllegalTransformError):
    """Two unordered instances touch one cell, and one of them writes."""


class OutOfBoundsError(WitnessError):
    """An access leaves its array."""


class UninitializedReadError(WitnessError):
    """A temporary is read before it is written."""


class AssumptionError(LoopkitError):
    """A call's sizes or data break an assumption that the kernel was compiled under.

    Where it is data, ``assertion`` is what it breaks, and ``cells`` holds
    ``(array, index, value)`` of the cells that break it.
    """

    def __init__(
        self,
        why: str,
        *,
        assertion: object = None,
        cells: tuple[tuple[str, tuple[int, ...], int], ...] = (),
        asked: str = "",
        instead: str = "",
    ) -> None:
        super().__init__(why, asked=asked, instead=instead)
        self.assertion = assertion
        self.cells = cells


class ResourceError(LoopkitError):
    """The schedule needs more threads, shared memory or registers than the hardware has."""


class CompileError(LoopkitError):
    """A compiler rejected the generated source; ``source`` and ``log`` hold both texts."""

    def __init__(self, why: str, *, source: str = "", log: str = "", instead: str = "") -> None:
        super().__init__(why, instead=instead)
        self.source = source
        self.log = log

    def __str__(self) -> str:
        lines = self.source.splitlines()
        width = len(str(len(lines)))
        numbered = "\n".join(f"{i:>{width}} | {line}" for i, line in enumerate(lines, 1))
        return "\n".join(p for p in (self.why, self.log.strip(), numbered, self.instead) if p)


class LaunchError(LoopkitError):
    """A kernel cannot be launched with these arguments, or failed while it ran."""


class MissingDependencyError(LoopkitError, ImportError):
    """Something optional is not installed; the message names the command that adds it."""
