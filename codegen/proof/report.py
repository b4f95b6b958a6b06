"""The result of a proof: findings with concrete instances, and open questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loopkit._printed import Printed

KINDS = (
    "instances",
    "order",
    "access",
    "value",
    "unwritten",
    "barrier",
    "divergent barrier",
    "combination",
    "cross-block",
    "bounds",
    "memory",
    "type",
    "width",
    "call",
    "text",
)
"""Kinds of findings, in the order in which reports list them.

``instances``: a statement runs for other instances than its domain has.
``order``: statements stand in other loops, or in another order, than in the kernel's tree.
``access``: a line touches another cell than its statement.
``value``: a line computes something else of its cells than its statement.
``unwritten``: a line reads what nothing before it has written for its thread or block.
``barrier``: two threads of a block meet in a cell with no barrier between.
``divergent barrier``: some threads of a block (or warp) do not reach a barrier.
``combination``: threads that combine partial results do not all get the whole.
``cross-block``: two blocks meet in a cell.
``bounds``: an access lies outside of its array.
``memory``: data lie in another kind of memory, overlap, or have too little room.
``type``: a name has another type than its data in the kernel, or an index one that is too narrow.
``width``: a 32-bit integer overflows.
``call``: a call passes something else than the text takes, or lets through what it must not.
``text``: the text is not a kernel that loopkit prints.
"""


@dataclass(frozen=True)
class Place:
    """One execution of a line: its statement, the values of names, and the thread."""

    line: int
    statement: str | None = None
    values: Mapping[str, int] = field(default_factory=dict)
    block: tuple[int, ...] | None = None
    thread: tuple[int, ...] | None = None

    def __str__(self) -> str:
        values = ", ".join(f"{n}={v}" for n, v in self.values.items())
        text = self.statement or f"line {self.line}"
        if self.statement or values:
            text += f"[{values}]"
        where = []
        if self.thread is not None:
            where.append(f"thread {_axes(self.thread)}")
        if self.block is not None:
            where.append(f"block {_axes(self.block)}")
        return f"{text} on {' of '.join(where)}" if where else text


@dataclass(frozen=True)
class Finding:
    """An error in the text, with one concrete case.

    ``first`` and ``second`` are the instances, ``second`` only if two conflict; ``sizes`` are the
    smallest for which it happens.
    """

    kind: str
    what: str
    first: Place | None = None
    second: Place | None = None
    array: str | None = None
    cell: tuple[int, ...] | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the source that are to blame."""
        return tuple(dict.fromkeys(p.line for p in (self.first, self.second) if p is not None))

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements involved."""
        places = (self.first, self.second)
        found = (p.statement for p in places if p is not None and p.statement is not None)
        return tuple(dict.fromkeys(found))

    def __str__(self) -> str:
        parts = [f"{self.kind}: {self.what}"]
        if self.array is not None and self.cell is not None:
            shown = f"[{', '.join(map(str, self.cell))}]" if self.cell else ""
            parts.append(f"  cell {self.array}{shown}")
        parts += [f"  {p}" for p in (self.first, self.second) if p is not None]
        if self.sizes:
            parts.append(
                "  for example when " + ", ".join(f"{n}={v}" for n, v in self.sizes.items())
            )
        if self.lines:
            lines = ", ".join(map(str, self.lines))
            parts.append(f"  line{'s' if len(self.lines) > 1 else ''} {lines}")
        return "\n".join(parts)


@dataclass(frozen=True)
class Undecided:
    """What could not be proven, why, and where."""

    kind: str
    what: str
    lines: tuple[int, ...] = ()
    statements: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" (line {', '.join(map(str, self.lines))})" if self.lines else ""
        return f"{self.kind}, undecided: {self.what}{where}"


@dataclass(frozen=True)
class Trusted:
    """An assumption about data that the kernel's own text makes, and the program with it.

    The program relies on it for the same instances as the kernel, and so fails only where the
    kernel does. ``data`` are the arrays concerned; assertions about them (such as
    ``assume_within``) remove the entry.
    """

    what: str
    data: tuple[str, ...]
    lines: tuple[int, ...] = ()
    statements: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" (line {', '.join(map(str, self.lines))})" if self.lines else ""
        names = ", ".join(f"'{n}'" for n in self.data)
        why = f": no assertion about {names} says so" if names else ""
        return f"{self.what}{why}{where}"


@dataclass(frozen=True)
class Proof(Printed):
    """The outcome for one program: proven, refuted by findings, or undecided in part.

    ``trusted`` is what the proof takes from the kernel's text, which only data decides.
    """

    kernel: str
    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    trusted: tuple[Trusted, ...] = ()
    seconds: float = field(compare=False, default=0.0)
    source: str = field(compare=False, repr=False, default="")

    @property
    def ok(self) -> bool:
        """Whether the program does what the kernel says: nothing was found, nothing stayed open."""
        return not self.findings and not self.undecided

    def __bool__(self) -> bool:
        return self.ok

    @property
    def refuted(self) -> bool:
        """Whether something was found that is wrong for certain."""
        return bool(self.findings)

    def __str__(self) -> str:
        took = f"{1e3 * self.seconds:.0f} ms"
        if self.ok and self.trusted:
            parts = [
                f"{self.kernel}: proven ({took}), if the data is as the kernel's text needs it:"
            ]
            return "\n".join([*parts, *(f"  {entry}" for entry in self.trusted)])
        if self.ok:
            return f"{self.kernel}: proven ({took})"
        head = (
            f"{self.kernel}: {len(self.findings)} found, {len(self.undecided)} undecided ({took})"
        )
        lines = self.source.split("\n")
        parts = [head]
        entries: tuple[Finding | Undecided, ...] = (*self.findings, *self.undecided)
        for entry in entries:
            parts.append(str(entry))
            for number in entry.lines:
                if 0 < number <= len(lines):
                    parts.append(f"    {number:4} | {lines[number - 1].strip()}")
        return "\n".join(parts)

    def _html(self) -> Any:
        from loopkit._display.answers import proof_html

        return proof_html(self)


def _axes(values: tuple[int, ...]) -> str:
    used = values if values[2] else values[:2] if values[1] else values[:1]
    return str(used[0]) if len(used) == 1 else f"({', '.join(map(str, used))})"
