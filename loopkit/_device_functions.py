"""User-defined device functions: declared types, the C++ definition, and the meaning.

A call is a :class:`pymbolic.primitives.Call` whose function is an :class:`OwnFunction`.  That
object holds the whole declaration, so that code that meets the expression needs nothing else.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._errors import InvalidArgumentError, TypeInferenceError
from loopkit._expression import is_constant, nodes_of
from loopkit._frozen import dataclass
from loopkit._nodes import Expression, Node
from loopkit._promotion import DType, Typed, dtype_name
from loopkit._same import Exact


@dataclass(frozen=True, eq=False)
class DeviceFunction(Exact):
    """A pure function that CUDA C computes: equal arguments give equal values.

    ``arguments`` are names and types, in order; ``result`` is a type, of several results a record;
    ``c_name`` is what C calls it, and ``texts`` the definitions above the kernel that it needs,
    each there once.  ``meaning`` is a function of NumPy's scalars, an expression of its arguments,
    or None where only the text says it.
    """

    name: str
    arguments: tuple[tuple[str, DType], ...]
    result: DType
    c_name: str
    texts: tuple[str, ...] = ()
    meaning: Any = None

    @property
    def types(self) -> tuple[DType, ...]:
        """The types of the arguments."""
        return tuple(dtype for _, dtype in self.arguments)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of several results; none where there is one."""
        return tuple(dt.components_of(self.result))

    @property
    def signature(self) -> str:
        """``f(x: float32, k: int32) -> float32``."""
        listed = ", ".join(f"{name}: {dtype_name(dtype)}" for name, dtype in self.arguments)
        results = (f"{n}: {dtype_name(t)}" for n, t in dt.components_of(self.result).items())
        result = f"({', '.join(results)})" if self.results else dtype_name(self.result)
        return f"{self.name}({listed}) -> {result}"

    def __copy__(self) -> DeviceFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceFunction:
        return self

    def __getstate__(self) -> dict[str, Any]:
        try:
            pickle.dumps(self.meaning)
        except Exception as error:  # whatever an object of the caller's raises
            raise InvalidArgumentError(
                f"the meaning of '{self.name}' cannot be pickled, so a kernel that calls it cannot "
                f"either: {error}",
                instead="a meaning that is a function of a module, or the text of an expression, "
                "as in meaning='x*x', can",
            ) from None
        return super().__getstate__()


@dataclass(frozen=True)
class OwnFunction(prim.Variable):  # type: ignore[misc]
    """The function of a call of a user-defined function: its name and its overloads."""

    name: str
    overloads: tuple[DeviceFunction, ...] = ()

    __getstate__ = Node.__getstate__
    __setstate__ = Node.__setstate__

    def overload(self, given: Sequence[Typed], asked: Callable[[], str]) -> DeviceFunction:
        """The overload for arguments of some types: of these, or else the first that holds them.

        Raises :class:`TypeInferenceError` where there is none.
        """
        self.check_count(len(given), asked)
        fitting = [o for o in self.overloads if len(o.types) == len(given)]
        for fits in (_is, _holds):
            for one in fitting:
                if all(map(fits, one.types, given)):
                    return one
        kinds = ", ".join(dtype_name(k) if isinstance(k, np.dtype) else str(k) for k in given)
        raise TypeInferenceError(
            f"'{self.name}' is not declared for arguments of the types ({kinds})",
            asked=asked(),
            instead="declared: " + "; ".join(o.signature for o in fitting) + "; a cast as in "
            f"{dtype_name(fitting[0].types[0])}(x) says where a value is rounded"
            if fitting[0].types
            else "",
        )

    @property
    def results(self) -> tuple[str, ...]:
        """The names of several results, which all overloads have; none where there is one."""
        return self.overloads[0].results

    def check_count(self, count: int, asked: Callable[[], str]) -> None:
        """Raise where no overload takes so many arguments."""
        counts = sorted({len(o.types) for o in self.overloads})
        if count not in counts:
            listed = " or ".join(map(str, counts))
            raise TypeInferenceError(
                f"'{self.name}' takes {listed} argument{'s' * (counts != [1])}, not {count}",
                asked=asked(),
            )


def _is(dtype: DType, given: Typed) -> bool:
    return isinstance(given, np.dtype) and given == dtype


def _holds(dtype: DType, given: Typed) -> bool:
    """Whether a type can represent every value of another one; an untyped number fits any type."""
    if isinstance(given, np.dtype) and given.itemsize == 8 and given.kind in "iu":
        return given == dtype  # NumPy's double has not all of them
    return dt.promote(given, dtype) == dtype


def own_functions(given: Iterable[DeviceFunction]) -> tuple[OwnFunction, ...]:
    """Functions by name; those of one name are its overloads.

    Raises :class:`InvalidArgumentError` where two are one for C.
    """
    found: dict[str, list[DeviceFunction]] = {}
    in_c: dict[tuple[str, tuple[DType, ...]], DeviceFunction] = {}
    for one in given:
        other = in_c.setdefault((one.c_name, one.types), one)
        if other is one:
            found.setdefault(one.name, []).append(one)
        elif other != one:
            raise InvalidArgumentError(
                f"'{one.signature}' and '{other.signature}' are the same C function, declared "
                "twice",
                instead="overloads differ in the types of their arguments",
            )
    for several in found.values():
        for one in several:
            if one.results != several[0].results:
                raise InvalidArgumentError(
                    f"'{one.signature}' and '{several[0].signature}' have other results",
                    instead="overloads differ in the types of their results, not in their names",
                )
    _check_apart([o for several in found.values() for o in several])
    return tuple(OwnFunction(name, tuple(several)) for name, several in found.items())


def _check_apart(functions: Sequence[DeviceFunction]) -> None:
    """Raise where a definition would change the meaning of another function's definitions."""
    from loopkit._preamble_text import defined, words  # patterns, which take a while to compile

    for one in functions:
        for text in one.texts:
            names = defined(text)
            for other in functions:
                if text in other.texts:
                    continue
                met = frozenset[str]().union(*map(words, other.texts)) & names
                met -= {one.c_name} & {other.c_name}  # overloads, which types tell apart
                if met:
                    raise InvalidArgumentError(
                        f"the definitions of '{other.signature}' hold the word '{min(met)}', "
                        f"which those of '{one.signature}' define",
                        instead="another name is free; what both need is one preamble of both",
                    )


def joined_functions(several: Iterable[Sequence[OwnFunction]]) -> tuple[OwnFunction, ...]:
    """The functions of several kernels together, where all mean the same by a name."""
    found: dict[str, OwnFunction] = {}
    for function in (f for functions in several for f in functions):
        if found.setdefault(function.name, function) != function:
            raise InvalidArgumentError(f"two kernels have different functions '{function.name}'")
    own_functions(o for f in found.values() for o in f.overloads)
    return tuple(found.values())


def definitions_of(functions: Iterable[DeviceFunction]) -> list[str]:
    """The definitions that functions need, each once, in order; below them their macros end."""
    from loopkit._preamble_text import macros

    texts = list(dict.fromkeys(text for f in functions for text in f.texts))
    ends = ("\n".join(f"#undef {name}" for name in macros(text)) for text in texts)
    return [*texts, *filter(None, ends)]


def own_calls(expr: Expression) -> Iterator[prim.Call]:
    """The calls of users' functions in an expression."""
    if not is_constant(expr):
        for node in nodes_of(expr):
            if isinstance(node, prim.Call) and isinstance(node.function, OwnFunction):
                yield node


def names_of(functions: Iterable[OwnFunction]) -> frozenset[str]:
    """The names that functions have here and in C."""
    return frozenset(n for f in functions for o in f.overloads for n in (o.name, o.c_name))


def by_name(functions: Iterable[OwnFunction]) -> Mapping[str, OwnFunction]:
    """Functions by their names."""
    return {f.name: f for f in functions}


_CALL = "call."


def tag_of(function: str) -> str:
    """The tag of the statements that were inlined from calls of a kernel."""
    return f"{_CALL}{function}"


def called_by(tags: Iterable[str]) -> list[str]:
    """The kernels from whose calls a statement with these tags was inlined."""
    return sorted(tag.removeprefix(_CALL) for tag in tags if tag.startswith(_CALL))
