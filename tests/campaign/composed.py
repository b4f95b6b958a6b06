"""Kernels that are no text of their own: several made one, and sums in Einstein's notation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

import loopkit as lk

from .drawn import Drawn
from .dtypes import draw_theme
from .naming import Renaming
from .variations import FILLED

_SPECS = (
    ("ij,jk->ik", "c, d"),
    ("ij,j", "c, a"),
    ("ii->i", "c"),
    ("ij->ji", "c"),
    ("ij->", "c"),
    ("bij,bjk->bik", "e, e1"),
    (",i->i", "s, a"),
    ("i,j->ij", "a, a"),
    ("ij,ij->j", "c, d"),
)


@dataclass(frozen=True)
class Composed:
    """Kernels that are made one: texts, or a specification of a sum with its operands and types.

    It may be solved several times: ``batch`` says how often, and for which arrays.
    """

    parts: tuple[Drawn | tuple[str, str, tuple[tuple[str, str], ...]], ...]
    apart: bool = False
    batch: tuple[int | str, tuple[str, ...]] | None = None

    @property
    def text(self) -> str:
        """The texts of all parts."""
        return "\n".join(p.text if isinstance(p, Drawn) else f"{p}" for p in self.parts)

    def make(self) -> lk.Kernel:
        """The kernel."""
        scope = {"lk": lk, "np": np}
        exec(self.source(), scope)
        made = scope["knl"]
        assert isinstance(made, lk.Kernel)
        return made

    def source(self) -> str:
        """Python source that makes the kernel."""
        lines, names = [], []
        for number, part in enumerate(self.parts):
            if isinstance(part, Drawn):
                lines.append(part.source())
            else:
                spec, operands, types = part
                lines.append(
                    f"knl = lk.make_einsum({spec!r}, {operands!r}, dtypes={dict(types)!r})"
                )
            names.append(f"part_{number}")
            lines.append(f"{names[-1]} = knl")
        if len(names) > 1:
            more = ", separate_launches=True" if self.apart else ""
            lines.append(f"knl = lk.fuse_kernels([{', '.join(names)}]{more})")
        if self.batch is not None:
            count, varying = self.batch
            lines.append(f"knl = lk.to_batched(knl, {count!r}, {', '.join(varying)!r})")
        return "\n".join(lines)

    def smaller(self, *, dissolve: bool = True) -> Iterator[Composed | Drawn]:
        """Copies with a part, or something of one, left out; or solved once."""
        if self.batch is not None:
            yield replace(self, batch=None)
        for at, part in enumerate(self.parts):
            before, after = self.parts[:at], self.parts[at + 1 :]
            if len(self.parts) > 1:
                yield replace(self, parts=(*before, *after))
            if isinstance(part, Drawn):
                for small in part.smaller(dissolve=dissolve):
                    yield replace(self, parts=(*before, small, *after))


def draw_composed(r: random.Random, draw: Callable[[], Drawn]) -> Composed:
    """A sum in Einstein's notation, two kernels as one, or one of each."""
    parts: list[Drawn | tuple[str, str, tuple[tuple[str, str], ...]]] = []
    kind = r.random()
    if kind < 0.5:
        theme = draw_theme(r)
        spec, operands = r.choice(_SPECS)
        types = [(name, r.choice(theme.read)) for name in dict.fromkeys(operands.split(", "))]
        parts.append((spec, operands, (*types, ("out", r.choice(theme.written)))))
    if kind > 0.3:
        first = replace(draw(), assumptions=None)
        parts.append(first)
        if kind > 0.5:
            second = draw()
            known = dict(first.types)
            types_of = tuple((n, known.get(n, t)) for n, t in second.types)
            second = replace(second, types=types_of, assumptions=None)
            inames = re.findall(r"\w+", "".join(re.findall(r"\{ \[(.*?)\]", str(second.domains))))
            apart = r.random() < 0.7
            parts.append(second.renamed(Renaming({i: f"{i}x" for i in inames if apart})))
    found = Composed(tuple(parts), r.random() < 0.3)
    return found if r.random() < 0.7 else replace(found, batch=_batch(r, found))


def _batch(r: random.Random, composed: Composed) -> tuple[int | str, tuple[str, ...]]:
    """How many problems there are, and arrays of which each has its own: all that are written."""
    texts = [part for part in composed.parts if isinstance(part, Drawn)]
    sums = [part for part in composed.parts if not isinstance(part, Drawn)]
    names = {name: None for part in texts for name, _ in part.types if name not in FILLED}
    names |= {name: None for _, _, types in sums for name, _ in types}
    read = {*"abcde", "e1", "s"}
    varying = [name for name in names if name not in read or r.random() < 0.4]
    return r.choice((2, 3, "n", "nb")), tuple(varying)
