"""Terms: immutable nodes; equal terms are one object (hash consing).

A term is an operation on terms in a sort: ``Z``, the unbounded integers, ``B``, truth values, or a
floating-point type (:data:`SORTS`). There is no sort for ``int32``: a number of that type is an
integer with a known range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, final
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np

INF: Final = float("inf")


class UnreadableError(Exception):
    """An expression that has no term, or one that is too large."""


SORTS: Final = {
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
    "C64": np.dtype(np.complex64),
    "C128": np.dtype(np.complex128),
}
"""The types of floating-point numbers, each of which is a sort; those with ``C`` are complex."""


@final
class Term:
    """``op`` applied to ``args``; ``data`` is the operation's further parameter.

    ``key`` orders terms in a way that does not depend on the process.
    """

    __slots__ = ("__weakref__", "args", "data", "key", "op", "sort")

    op: str
    sort: str
    args: tuple[Term, ...]
    data: Any
    key: tuple[Any, ...]

    def __repr__(self) -> str:
        inside = [*map(repr, self.args), *([] if self.data is None else [repr(self.data)])]
        return f"{self.op}({', '.join(inside)})"


_NODES: WeakValueDictionary[tuple[Any, ...], Term] = WeakValueDictionary()
_RANKS = {"constant": 0, "name": 1}


def node(op: str, sort: str, args: Iterable[Term] = (), data: Any = None) -> Term:
    """The node itself, without applying rules."""
    args = tuple(args)
    kind = type(data)
    known = (op, sort, args, kind, _bits_of(data) if kind in (float, complex) else data)
    found = _NODES.get(known)
    if found is None:
        found = Term()
        found.op, found.sort, found.args, found.data = op, sort, args, data
        found.key = (_RANKS.get(op, 2), op, sort, str(data), tuple(a.key for a in args))
        _NODES[known] = found
    return found


def _bits_of(data: Any) -> Any:
    """A key of data in which ``0.0`` and ``-0.0`` differ, and all NaNs are equal."""
    if isinstance(data, float):
        return data.hex() if data == data else "nan"
    return (*map(_bits_of, (data.real, data.imag)),) if isinstance(data, complex) else data


def constant(value: Any, sort: str) -> Term:
    """A constant, rounded to a floating-point sort."""
    with np.errstate(all="ignore"):
        rounded = np.asarray(value).astype(SORTS[sort])[()]
    return node("constant", sort, (), complex(rounded) if sort[0] == "C" else float(rounded))


@lru_cache(1 << 12)
def number(value: int) -> Term:
    """An integer constant."""
    return node("constant", "Z", (), int(value))


def truth(value: bool) -> Term:
    """A constant truth value."""
    return node("constant", "B", (), bool(value))


@lru_cache(1 << 12)
def name(text: str, low: float = -INF, high: float = INF) -> Term:
    """An integer variable between two bounds, both included."""
    return node("name", "Z", (), (text, low, high))


TRUE, FALSE = truth(True), truth(False)
ZERO, ONE = number(0), number(1)


def is_constant(term: Term) -> bool:
    """Whether the value of a term is known."""
    return term.op == "constant"


def subterms(*terms: Term) -> Iterator[Term]:
    """The distinct nodes of some terms."""
    waiting, seen = [*terms], set[Term]()
    while waiting:
        term = waiting.pop()
        if term not in seen:
            seen.add(term)
            yield term
            waiting += term.args


def names_in(*terms: Term) -> dict[str, Term]:
    """The names that occur in terms, in the order of the alphabet."""
    found = {t.data[0]: t for t in subterms(*terms) if t.op == "name"}
    return dict(sorted(found.items()))
