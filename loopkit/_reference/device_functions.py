"""What users' functions mean, on NumPy's scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._device_functions import DeviceFunction
from loopkit._errors import InvalidArgumentError, LoopkitError, MissingDependencyError
from loopkit._expression import is_constant
from loopkit._promotion import COMPLEXES, DTYPES, DType, components_of, dtype_name
from loopkit._reference import scalar_functions as functions
from loopkit._reference.memory import code_of
from loopkit._reference.python_source import Names, Translator
from loopkit._same import remembered
from loopkit._spelling import shown


@remembered(1 << 8)
def evaluator(function: DeviceFunction) -> Callable[..., Any]:
    """The function, of scalars of its declared types: its meaning, or else what its text computes.

    Raises :class:`MissingDependencyError` where it has no meaning and nothing compiles its text.
    """
    if function.meaning is None:
        return _of_text(function)
    if is_constant(function.meaning) or isinstance(function.meaning, prim.ExpressionNode):
        return _of_expression(function)
    return _of_python(function)


def _of_text(function: DeviceFunction) -> Callable[..., Any]:
    from loopkit._host.device_functions import on_scalars  # a compiler, which few need here

    try:
        return on_scalars(function)
    except MissingDependencyError as error:
        raise MissingDependencyError(
            f"the reference executor does not know what '{function.name}' means, and cannot "
            f"compile its text: {error}",
            instead="register_callable(..., meaning=...) says it in Python",
        ) from None


def _of_python(function: DeviceFunction) -> Callable[..., Any]:
    name, meaning, result = function.name, function.meaning, function.result
    kinds = [*components_of(result).values()]

    def call(*given: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                found = meaning(*given)
        except LoopkitError:
            raise
        except Exception as error:
            listed = ", ".join(map(str, given))
            raise InvalidArgumentError(
                f"the meaning of '{name}' raised {type(error).__name__} for ({listed}): {error}"
            ) from error
        if not kinds:
            return _as_type(found, result, name)
        if not isinstance(found, (tuple, list)) or len(found) != len(kinds):
            raise InvalidArgumentError(
                f"the meaning of '{name}' gives {shown(found)}, and no tuple of "
                f"{len(kinds)} numbers"
            )
        return tuple(_as_type(x, kind, name) for x, kind in zip(found, kinds, strict=True))

    return call


def _as_type(found: Any, dtype: DType, name: str) -> Any:
    """What a user's function gave, as a value of a type."""
    if isinstance(found, np.ndarray) and found.ndim == 0:
        found = found[()]
    source = getattr(found, "dtype", None)
    if np.iscomplexobj(found) and dtype not in COMPLEXES:
        raise InvalidArgumentError(
            f"the meaning of '{name}' gives {shown(found)}, and its result is {dtype_name(dtype)}"
        )
    if isinstance(source, np.dtype) and source in DTYPES.values() and np.ndim(found) == 0:
        return found if source == dtype else functions.converter(source, dtype)(found)
    if isinstance(found, (bool, int, float, complex)):
        return functions.converter(None, dtype)(found)
    raise InvalidArgumentError(f"the meaning of '{name}' gives {shown(found)}, and no number")


def _of_expression(function: DeviceFunction) -> Callable[..., Any]:
    types = dict(function.arguments)
    translator = Translator(Names(frozenset(), {}, types, lambda name, _: name))
    source = translator.stored(function.meaning, function.result)
    space = dict(translator.space)
    text = f"def call({', '.join(types)}):\n    return {source}"
    exec(code_of(text, f"<{function.name}>"), space)
    found: Callable[..., Any] = space["call"]
    return found
