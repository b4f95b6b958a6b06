"""Results that are computed once for a frozen value, and stored with it.

A result may depend only on the fields of the value that take part in comparisons: two kernels that
differ in their histories share results.  Results are neither pickled nor compared.

A result is stored as a whole or not at all, even if the caller's budget runs out meanwhile.  The
computation is not charged to that budget (:func:`loopkit._budget.kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, TypeVarTuple, cast

from loopkit._budget import kept

V = TypeVar("V")
Ts = TypeVarTuple("Ts")
R = TypeVar("R")
K = TypeVar("K")
P = ParamSpec("P")

ANSWERS = "_loopkit_answers"
"""The attribute that holds a value's answers."""


def answers_of(value: Any) -> dict[Hashable, Any]:
    """All results that are stored with a value, by question."""
    held: dict[str, Any] = value.__dict__
    found: dict[Hashable, Any] | None = held.get(ANSWERS)
    return held.setdefault(ANSWERS, {}) if found is None else found


def memoised(function: Callable[[V, *Ts], R]) -> Callable[[V, *Ts], R]:
    """Store the results of ``function`` with its first argument, by the other arguments.

    The first argument is a frozen value, and the others are hashable.
    """

    @wraps(function)
    def ask(value: V, *arguments: *Ts) -> R:
        answers = answers_of(value)
        question = (function, *arguments)
        try:
            return cast(R, answers[question])
        except KeyError:
            pass  # an error of the function is not raised while this one is handled
        # Two threads may both get here; all take the answer that was there first.
        return cast(R, answers.setdefault(question, kept(function, value, *arguments)))

    return ask


def once(
    known: MutableMapping[K, R], key: K, find: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """The stored result for ``key``; computed by ``find`` and stored if there is none."""
    try:
        return known[key]
    except KeyError:
        pass
    found = known[key] = kept(find, *args, **kwargs)
    return found


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """``functools.cached_property`` as it is from Python 3.12 on: without a lock.

        Until then one lock serves all objects of a class, held while a value is computed:
        two threads that compute values which need each other wait for ever.  Here both may
        compute, and all take the value that was there first.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.name in values:
                return values[self.name]
            return values.setdefault(self.name, kept(self.function, instance))
