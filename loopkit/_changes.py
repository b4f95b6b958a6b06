"""The differences between two kernels: names added, removed or changed, and a diff of the texts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from loopkit import _sets
from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, storage_shape, swizzled_text
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._places import space_of
from loopkit._printed import Printed
from loopkit._relations import grouped
from loopkit._tree import LaunchBarrier, entries_of, flatten

SIGNS = {"new": "+", "changed": "~", "gone": "-"}

CONTEXT = 2
"""Lines that stay as they are and are shown around each change."""


@dataclass(frozen=True)
class Change:
    """What became of one name.

    ``kind`` is ``"iname"``, ``"array"``, ``"size"``, ``"statement"``, ``"rule"``,
    ``"assumption"`` or ``"loops"``; it is ``"new"``, ``"gone"`` or ``"changed"``, and ``detail``
    says how it is now.
    """

    kind: str
    what: str
    name: str
    detail: str = ""


def changes(before: Kernel, after: Kernel) -> tuple[Change, ...]:
    """All that differs between two kernels, by name; no sets are computed."""
    return tuple(_changes(before, after))


def in_words(found: Iterable[Change]) -> list[str]:
    """Changes as lines of text: ``+ inames i_outer (g.0), i_inner (l.0)``."""
    lines = []
    for (what, kind), group in grouped(((c.what, c.kind), c) for c in found).items():
        names = ", ".join(f"{c.name} {c.detail}".replace(" [", "[").rstrip() for c in group)
        lines.append(f"{SIGNS[what]} {kind_word(kind, len(group))} {names}")
    return lines


def kind_word(kind: str, count: int) -> str:
    """The word for so many things of a kind."""
    return kind + "s" * (count > 1)


def _changes(before: Kernel, after: Kernel) -> Iterator[Change]:
    old, new = before, after
    yield from _named("iname", _inames(old), _inames(new), str)
    yield from _named("array", _arrays(old), _arrays(new), str)
    yield from _named("size", dict.fromkeys(old.sizes), dict.fromkeys(new.sizes))
    yield from _named("statement", old.statement_by_id, new.statement_by_id)
    yield from _named("rule", old.rule_by_name, new.rule_by_name)
    yield from _named("assumption", _assumptions(old), _assumptions(new))
    yield from _named("barrier", _barriers(old), _barriers(new))
    same_names = _inames(old).keys() == _inames(new).keys()
    if (
        same_names
        and flatten(old.tree) != flatten(new.tree)
        and old.statement_by_id.keys() == set(new.paths)
    ):
        yield Change("loops", "changed", "their order")


def _named(
    kind: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    detail: Callable[[Any], str] = lambda value: "",
) -> Iterator[Change]:
    yield from (Change(kind, "new", n, detail(new[n])) for n in new if n not in old)
    for name in new:
        if name in old and old[name] != new[name]:
            yield Change(kind, "changed", name, detail(new[name]))
    yield from (Change(kind, "gone", name) for name in old if name not in new)


def _inames(kernel: Kernel) -> dict[str, str]:
    tags = kernel.iname_tags
    slabs = {i: f"slabs={first, last}" for i, first, last in kernel.slabs}
    words = {i: (str(tags.get(i, "")), slabs.get(i, "")) for i in kernel.all_inames}
    return {i: f"({', '.join(filter(None, w))})" if any(w) else "" for i, w in words.items()}


def _arrays(kernel: Kernel) -> dict[str, str]:
    arguments = {a.name: _array(kernel, a) for a in kernel.args if isinstance(a, ArrayArg)}
    return arguments | {t.name: _array(kernel, t) for t in kernel.temporaries}


def _array(kernel: Kernel, array: ArrayArg | TemporaryVariable) -> str:
    space = AddressSpace.GLOBAL if isinstance(array, ArrayArg) else space_of(kernel, array)
    shape = "?" if array.shape is None else ", ".join(map(to_text, storage_shape(array)))
    tags = f"dim_tags='{','.join(map(str, array.dim_tags))}'" if array.dim_tags else ""
    text = swizzled_text(array)
    swizzled = f"swizzled to {text}" if text else ""
    base = getattr(array, "base_storage", None)
    storage = f"base_storage='{base}'" if base else ""
    called = f"axes {', '.join(array.dim_names)}" if array.dim_names else ""
    words = (f"[{shape}]", space.word, str(array.dtype or ""), tags, swizzled, storage, called)
    return " ".join(filter(None, words))


def _barriers(kernel: Kernel) -> dict[str, None]:
    found = (leaf for leaf, _ in entries_of(kernel.tree))
    return dict.fromkeys(leaf.id for leaf in found if isinstance(leaf, LaunchBarrier))


def _assumptions(kernel: Kernel) -> dict[str, None]:
    condition = _sets.conditions(kernel.assumptions.set)
    texts = [] if condition is True else [to_text(condition)]
    return dict.fromkeys([*texts, *(a.text for a in kernel.assertions)])


@dataclass(frozen=True)
class Diff(Printed):
    """Two texts of a kernel, its ``what`` (``"nest"`` or ``"source"``) before and after.

    Prints as a unified diff.  ``names`` are what the two are called.
    """

    what: str
    before: str
    after: str
    names: tuple[str, str] = ("before", "after")

    def __bool__(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        if not self:
            return f"the {self.what} stays as it is"
        old, new = self.before.splitlines(), self.after.splitlines()
        return "\n".join(difflib.unified_diff(old, new, *self.names, lineterm="", n=CONTEXT))

    def hunks(self, indented: bool = True) -> list[list[tuple[str, list[str], list[str]]]]:
        """Groups of ``(tag, old lines, new lines)``, as :mod:`difflib` has them, with context.

        Without ``indented``, lines are equal that only moved to the left or to the right.
        """
        old, new = self.before.splitlines(), self.after.splitlines()
        one, other = (list(map(str.strip, s)) if not indented else s for s in (old, new))
        matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
        return [
            [(tag, old[a:b], new[c:d]) for tag, a, b, c, d in group]
            for group in matcher.get_grouped_opcodes(CONTEXT)
        ]

    def _html(self) -> Any:
        from loopkit._display.diff import diff_html

        return diff_html(self)


def nest_diff(before: Kernel, after: Kernel, names: tuple[str, str]) -> Diff:
    """What differs between the nests of two kernels."""
    return Diff("nest", str(before), str(after), names)


def source_diff(before: Kernel, after: Kernel, names: tuple[str, str]) -> Diff:
    """What differs between the CUDA C of two kernels; raises what lowering raises."""
    return Diff("source", before.program().source, after.program().source, names)
