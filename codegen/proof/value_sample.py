"""Evaluation of terms for concrete values, to show that two computations differ."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg, strides_of, swizzles_of
from loopkit._cached import once
from loopkit._promotion import BOOL, COMPARE, COMPLEXES, INTEGERS, DType, components_of
from loopkit._reference import scalar_functions as functions
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.term_makers import OWN
from loopkit.codegen.proof.typed_computations import Read, Term, without_end

Cell = tuple[str, int]

_PLAIN = (1.5, -2.0, 3.0, 0.5, -1.25, 4.0, 2.5, -0.75)
_WHOLE = (2, -3, 5, 7, -1, 4, 11, -6)
SEEDS = range(12)
_COMPARED, _ENDS = range(2, 6), range(9, 12)
TIED = range(12, 100)
"""What seeds give values that are often equal."""


class Sample:
    """Values of names and array elements, invented as they are needed.

    ``translate`` turns subscripts into terms: those of the text if its second argument is true,
    else those of the kernel. ``numbers`` are values worth trying, such as constants in
    comparisons. With ``has_ties``, equal values are frequent, because operations on records depend
    on which is first.
    """

    def __init__(
        self,
        subject: Subject,
        names: Mapping[str, int],
        translate: Callable[[Any, bool], Term],
        seed: int,
        numbers: Sequence[float] = (),
        *,
        has_ties: bool = False,
    ) -> None:
        self.has_ties = has_ties
        self.subject = subject
        self.names = names
        self.translate = translate
        self.seed = seed
        self.numbers = tuple(dict.fromkeys(numbers))
        self.cells: dict[Cell, Any] = {}
        self.own: dict[tuple[Any, ...], Any] = {}
        self.random = random.Random(seed)

    def value(self, term: Term) -> Any:
        """A term's value as a NumPy scalar; raises what computing it raises."""
        if term.op == "const":
            return _scalar(term.data, term.dtype)
        if term.op in ("name", "read"):
            # A loop variable, a size, or what is made up.
            name, at = self.cell(term.data) if term.op == "read" else (term.data, 0)
            if name in self.names and not (term.op == "read" and term.data.indices):
                return _scalar(self.names[name], term.dtype)
            found = once(self.cells, (name, at), self.invented, term.dtype)
            if isinstance(found, tuple):
                return found
            return _converted(found, found.dtype, term.dtype)
        if term.op == "choice":
            condition, then, other = term.args
            side = then if self.value(condition) else other
            return _converted(self.value(side), side.dtype, term.dtype)
        if term.op in ("all", "any"):
            word = all if term.op == "all" else any
            return np.bool_(word(bool(self.value(a)) for a in term.args))
        # Long sums lean to the left.
        spine = []
        while term.op in _OPERATIONS:
            spine.append(term)
            term = term.args[0]
        result = self.value(term)
        for whole in reversed(spine):
            parts = [result, *(self.value(a) for a in whole.args[1:])]
            if whole.op == "call" and whole.data.startswith(OWN):
                result = self.of_own(whole, parts)
                continue
            result = _OPERATIONS[whole.op](whole, parts)
        return result

    def of_own(self, term: Term, parts: list[Any]) -> Any:
        """What a function of the user's gives: anything, and the same for the same arguments."""
        given = tuple((part.dtype, part.tobytes()) for part in parts)
        return once(self.own, (term.data, given), self.invented, term.dtype)

    def cell(self, read: Read) -> Cell:
        """The element that is read."""
        if not read.indices:
            return read.array, 0
        values = [self.index(self.translate(i, read.of_text)) for i in read.indices]
        if read.of_text:
            shape = self.subject.names.dimensions.get(read.array, (None,))
            offset = values[0]
            for value, extent in zip(values[1:], shape[1:], strict=True):
                offset = offset * (extent or 0) + value
            return read.array, offset
        held = self.subject.kernel.array(read.array)
        start = held.offset if isinstance(held, ArrayArg) else 0
        offset = int(self.value(self.translate(start, False)))
        places = list(values)
        for swizzle in swizzles_of(held):
            places[swizzle.axis] ^= swizzle.changed(values[swizzle.by])
        for stride, value in zip(strides_of(held), places, strict=True):
            offset += int(self.value(self.translate(stride, False))) * value
        return read.array, offset

    def index(self, term: Term) -> int:
        """A subscript; raises :class:`OverflowError` where its data leave their types.

        That is not what a subscript is of them, which is an integer of any size.
        """
        found = int(self.value(term))
        if found != int(self.value(without_end(term))):
            raise OverflowError(term)
        return found

    def invented(self, dtype: DType) -> Any:
        """A value of some type: plain ones first, then those compared with, random ones, ends."""
        if components_of(dtype):
            return tuple(self.invented(kind) for kind in components_of(dtype).values())
        if self.has_ties and self.seed in TIED:
            if dtype in INTEGERS:
                near = self.random.choice((0, self.random.choice((0, *self.names.values()))))
                return _scalar(near + self.random.randint(-2, 2), dtype)
            return _scalar(self.random.choice((math.nan, 1)), dtype)
        number = len(self.cells) + 3 * self.seed
        if dtype == BOOL:
            return np.bool_((number + self.seed) % 2)
        if dtype in INTEGERS:
            return _scalar(self._whole(number, dtype), dtype)
        value = self._broken(number)
        if dtype in COMPLEXES:
            return _scalar(complex(value, _PLAIN[(number + 3) % 8]), dtype)
        return _scalar(value, dtype)

    def _compares(self) -> bool:
        """Whether the next value is one of the numbers."""
        return self.seed in _COMPARED and bool(self.numbers) and self.random.random() < 0.5

    def _whole(self, number: int, dtype: DType) -> int:
        if self._compares():
            value = int(self.random.choice(self.numbers)) + self.random.randint(-1, 1)
        elif self.seed in _ENDS:
            info = np.iinfo(dtype)
            return int(self.random.choice((info.max, info.min, info.max - 1, info.max // 2, 1)))
        elif self.seed >= 2:
            size = 10 ** self.random.randint(1, 4)
            value = self.random.randint(-size, size)
        else:
            value = _WHOLE[number % 8]
        return abs(value) if dtype.kind == "u" else value

    def _broken(self, number: int) -> float:
        if self._compares():
            return self.random.choice(self.numbers)
        return _PLAIN[number % 8] if self.seed < 2 else self.random.uniform(-4, 4)


def numbers_of(term: Term) -> list[float]:
    """The finite constants in a computation: around them comparisons change their minds."""
    found, pending = [], [term]
    while pending:
        part = pending.pop()
        if part.op != "const":
            pending.extend(reversed(part.args))
        elif not isinstance(part.data, complex) and math.isfinite(part.data):
            found.append(part.data)
    return found


def differ(a: Any, b: Any) -> bool:
    """Whether two results are different for certain: not only in the sign of a zero."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return type(a) is not type(b) or len(a) != len(b) or any(map(differ, a, b))
    return not (a != a and b != b) and not bool(a == b)


def _scalar(value: Any, dtype: DType) -> Any:
    if dtype in INTEGERS:
        return np.asarray(int(value) & ((1 << 64) - 1), np.uint64).astype(dtype)[()]
    return dtype.type(value)


def _converted(x: Any, source: DType, target: DType) -> Any:
    return x if source == target else functions.converter(source, target)(x)


def _compared(term: Term, parts: list[Any]) -> Any:
    a, b = (_exact(x) for x in parts)
    return np.bool_(COMPARE[term.data](a, b))


def _exact(x: Any) -> Any:
    """A number of Python's with the same value."""
    if x.dtype in COMPLEXES:
        return complex(x)
    return int(x) if x.dtype in INTEGERS or x.dtype == BOOL else float(x)


def _folded(function: Callable[[Any, Any], Any]) -> Callable[[Term, list[Any]], Any]:
    def apply(term: Term, parts: list[Any]) -> Any:
        if term.dtype not in COMPLEXES:
            parts = [
                _converted(part, a.dtype, term.dtype)
                for part, a in zip(parts, term.args, strict=True)
            ]
        result = parts[0]
        for other in parts[1:]:
            result = function(result, other)
        return term.dtype.type(result)

    return apply


def _power(term: Term, parts: list[Any]) -> Any:
    (x,) = parts

    def raised(n: int) -> Any:
        if n == 1:
            return x
        if n % 2:
            return term.dtype.type(x * raised(n - 1))
        half = raised(n // 2)
        return term.dtype.type(half * half)

    return raised(term.data)


def _called(term: Term, parts: list[Any]) -> Any:
    if term.data in ("tdiv", "tmod"):
        a, b = (int(p) for p in parts)
        result = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return _scalar(result if term.data == "tdiv" else a - b * result, term.dtype)
    return term.dtype.type(_FUNCTIONS[term.data](*parts))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **functions.FUNCTIONS,
    "fdiv": np.floor_divide,
    "mod": np.remainder,
    **dict.fromkeys(("pow", "ipow"), functions.power),
}


def _shifted(term: Term, parts: list[Any]) -> Any:
    x, by = int(parts[0]), int(parts[1])
    if not 0 <= by < 8 * term.dtype.itemsize:
        return _scalar(-1 if term.op == "shr" and x < 0 else 0, term.dtype)
    return _scalar(x << by if term.op == "shl" else x >> by, term.dtype)


def _part(term: Term, parts: list[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return parts[0][[*components_of(term.args[0].dtype)].index(term.data)]
    return parts[0].real if term.data == "re" else parts[0].imag


_OPERATIONS: dict[str, Callable[[Term, list[Any]], Any]] = {
    "neg": lambda term, parts: term.dtype.type(-parts[0]),
    "add": _folded(lambda a, b: a + b),
    "mul": _folded(lambda a, b: a * b),
    "div": _folded(lambda a, b: a / b),
    "power": _power,
    "fdiv": _folded(np.floor_divide),
    "mod": _folded(np.remainder),
    "and": _folded(lambda a, b: a & b),
    "or": _folded(lambda a, b: a | b),
    "xor": _folded(lambda a, b: a ^ b),
    "inv": lambda term, parts: ~parts[0],
    "shl": _shifted,
    "shr": _shifted,
    "min": _folded(functions.minimum),
    "max": _folded(functions.maximum),
    "cast": lambda term, parts: _converted(parts[0], term.args[0].dtype, term.dtype),
    "complex": lambda term, parts: term.dtype.type(complex(*map(float, parts))),
    "record": lambda term, parts: tuple(parts),
    "part": _part,
    "cmp": _compared,
    "not": lambda term, parts: np.bool_(not parts[0]),
    "call": _called,
}
