"""Tests of user-defined device functions against their declared meaning."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from loopkit import _promotion as dt
from loopkit._called import warn_once
from loopkit._device_functions import DeviceFunction
from loopkit._errors import InvalidArgumentError, LoopkitError, MissingDependencyError
from loopkit._make.operation import SCALAR, ReductionOperation, operands
from loopkit._promotion import DType, dtype_name
from loopkit._types import concrete, dtype_of

DRAWS = 400
"""How many arguments a declared meaning is tested with."""
LAW_DRAWS = 60
"""How many numbers the laws of a reduction's operation are tested with."""
_SEED = 20260
_TOLERANCES = {
    dt.FLOAT16: 1e-2,
    dt.BFLOAT16: 5e-2,
    **dict.fromkeys((dt.FLOAT32, dt.COMPLEX64), 1e-4),
    **dict.fromkeys((dt.FLOAT64, dt.COMPLEX128), 1e-10),
}
_WHOLE = (0, 1, -1, 2, -2, 3, 7, -8, 31, 64, 100, -100)
_BROKEN = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-3, -1e-3, 100.0, -100.0)


def check_meaning(
    function: DeviceFunction, ranges: Mapping[str, tuple[float, float]], tolerance: float | None
) -> None:
    """Raise where the text does not compile, is not pure, or computes something else.

    ``ranges`` says which arguments there are, and ``tolerance`` how far results may be apart.
    """
    from loopkit._host.device_functions import compiled, in_process_of_its_own
    from loopkit._reference.compile_statement import evaluator

    try:
        compiled(function)
    except MissingDependencyError as error:
        warn_once("functions", f"'{function.name}' and what it means have not been tested: {error}")
        return
    if function.meaning is None:
        return
    draws = _draws(function.arguments, ranges)
    twice = [np.concatenate([d, d[::-1]]) for d in draws]
    found, ended = in_process_of_its_own(function, twice)
    columns = [*zip(*twice, strict=True)]
    if ended:
        raise _wrong(function, columns[len(found)], f"the text {ended}", "")
    evaluate = evaluator(function)
    wrong = []
    with np.errstate(all="ignore"):
        for given, of_text, later in zip(columns[:DRAWS], found, found[::-1], strict=False):
            if not _is_same(of_text, later):
                raise _wrong(function, given, f"the text gives {of_text}, and {later} later", "")
            due = evaluate(*given)
            if not _is_close(of_text, due, tolerance):
                wrong.append((given, f"the text gives {of_text}, and the meaning gives {due}"))
    if wrong:
        given, why = min(wrong, key=lambda one: max(map(_oddness, one[0])))
        instead = "allow a larger difference with tolerance=, or fewer arguments with within="
        raise _wrong(function, given, why, instead)


def check_operation(
    operation: ReductionOperation, ranges: Mapping[str, tuple[float, float]]
) -> None:
    """Raise where a reduction's operation breaks a law, with numbers for which it does.

    ``ranges`` says of each component from where to where these are.  An operation may be meant for
    whole numbers or for fractions alone: it is enough that one of the two obeys all laws.
    """
    from loopkit._reference.compile_statement import joining

    names = [v.name for side in operands(operation.components or SCALAR) for v in side]
    broken = []
    for dtype in (dt.INT64, dt.FLOAT64):
        known = dict.fromkeys(names, dtype).__getitem__
        try:
            made = [concrete(dtype_of(p, known)) for p in operation.joined(dtype)]
            if dtype == dt.INT64 and not dt.INTEGERS.issuperset({*made} - {dt.BOOL}):
                continue  # fractions come of it
            kinds = {n: k if k == dt.BOOL else dtype for n, k in zip(ranges, made, strict=True)}
            kind = dt.record_of(kinds) if operation.components else kinds["value"]
            start, join = operation.start(kind), joining(operation, kind)
            starts = start.parts if operation.components else (start,)
            neutral = tuple(k.type(x) for k, x in zip(kinds.values(), starts, strict=True))
        except (LoopkitError, OverflowError, ValueError):
            continue  # it is not meant for these
        values = [*zip(*_draws([*kinds.items()], ranges), strict=True)][:LAW_DRAWS]
        with np.errstate(all="ignore"):
            found = _broken_law(operation, join, neutral, values)
        if found is None:
            return
        broken.append(found)
    if broken:
        raise broken[0]


def _broken_law(
    operation: ReductionOperation,
    join: Callable[[Any, Any], Any],
    neutral: tuple[Any, ...],
    values: list[tuple[Any, ...]],
) -> InvalidArgumentError | None:
    """The error for the plainest values for which a law does not hold; None where all do."""

    def text(value: tuple[Any, ...]) -> str:
        return str(value[0]) if len(value) == 1 else f"({', '.join(map(str, value))})"

    def call(a: str, b: str) -> str:
        return f"combine({a}, {b})"

    wrong = []
    for a, b, c in zip(values, values[1:], values[2:], strict=False):
        x, y, z = map(text, (a, b, c))
        xy, xyz = call(call(x, y), z), call(x, call(y, z))
        laws = [
            ("is not associative", xy, join(join(a, b), c), xyz, join(a, join(b, c))),
            ("has another neutral element", call(text(neutral), x), join(neutral, a), x, a),
            ("has another neutral element", call(x, text(neutral)), join(a, neutral), x, a),
        ]
        if not operation.is_ordered:
            laws.insert(0, ("is not commutative", call(x, y), join(a, b), call(y, x), join(b, a)))
        for number, (law, one, first, other, second) in enumerate(laws):
            if not all(_is_close(p, q, 1e-6) for p, q in zip(first, second, strict=True)):
                size = max(map(_oddness, (*a, *b, *c)))
                same = "" if other == x else f", and {other} is {text(second)}"
                wrong.append((number, size, f"{law}: {one} is {text(first)}{same}"))
    if not wrong:
        return None
    _, _, why = min(wrong)
    ordered = "ordered=True keeps the order of its terms; " * ("commutative" in why)
    instead = f"{ordered}give the range of its operands with within="
    return InvalidArgumentError(f"the reduction '{operation.name}' {why}", instead=instead)


def _draws(
    arguments: Sequence[tuple[str, DType]], ranges: Mapping[str, tuple[float, float]]
) -> list[np.ndarray[Any, Any]]:
    """Arguments of all sizes, special ones among them; the same in every process."""
    generator = np.random.default_rng(_SEED)
    found = []
    for name, dtype in arguments:
        if dtype == dt.BOOL:
            values: Any = generator.integers(0, 2, DRAWS)
        elif dtype in dt.INTEGERS:
            values = _whole_numbers(name, dtype, ranges.get(name), generator)
        elif dtype in dt.COMPLEXES:
            values = np.empty(DRAWS, dtype)
            values.real = _fractions(dt.real_of(dtype), ranges.get(name), generator)
            values.imag = _fractions(dt.real_of(dtype), ranges.get(name), generator)
        else:
            values = _fractions(dtype, ranges.get(name), generator)
        found.append(np.asarray(values).astype(dtype))
    return found


def _whole_numbers(
    name: str, dtype: DType, given: tuple[float, float] | None, generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    low, high = given or (max(info.min, -100), min(info.max, 100))
    low, high = max(int(np.ceil(low)), int(info.min)), min(int(high), int(info.max))
    if low > high:
        raise InvalidArgumentError(f"no {dtype_name(dtype)} is within what '{name}' is")
    values = generator.integers(low, high, DRAWS, dtype=dtype, endpoint=True)
    ends = (low, high) if given else (info.min, info.max)
    whole = [w for w in _WHOLE if low <= w <= high]
    _mix_in(values, [*whole, *map(int, ends)], generator)
    return values


def _fractions(
    dtype: DType, given: tuple[float, float] | None, generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    low, high = given or (-100.0, 100.0)
    values = generator.uniform(low, high, DRAWS)
    small = generator.uniform(max(low, -2), min(high, 2), DRAWS) if low < 2 > -high else values
    values = np.where(generator.random(DRAWS) < 0.5, values, small)
    special = [w for w in (*_BROKEN, low, high) if low <= w <= high]
    _mix_in(values, special if given else [*special, *_extremes(dtype)], generator)
    return values


def _extremes(dtype: DType) -> list[float]:
    """The values of a type of fractions at which functions break: what is no number, too."""
    info = _limits(dtype)
    ends = [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)]
    return [math.nan, *(sign * x for x in (math.inf, *ends) for sign in (1, -1))]


def _limits(dtype: DType) -> Any:
    finfo: Callable[[DType], Any] = ml_dtypes.finfo if dtype == dt.BFLOAT16 else np.finfo
    return finfo(dtype)


def _mix_in(values: np.ndarray[Any, Any], special: list[Any], generator: Any) -> None:
    places = generator.permutation(DRAWS)[: DRAWS // 3]
    values[places] = generator.choice(np.array(special, values.dtype), len(places))


def _oddness(value: Any) -> float:
    """A sort key by which the plainest of several arguments comes first."""
    number = complex(value)
    size = math.hypot(number.real, number.imag)
    return math.inf if size != size else size


def _is_same(a: Any, b: Any) -> bool:
    """Bit for bit, but for what lies between the components of a record."""
    if a.dtype.names:
        return all(_is_same(a[name], b[name]) for name in a.dtype.names)
    return bool(a.tobytes() == b.tobytes())


def _is_close(a: Any, b: Any, tolerance: float | None) -> bool:
    if a.dtype.names:
        pairs = zip((a[name] for name in a.dtype.names), b, strict=True)
        return all(_is_close(x, y, tolerance) for x, y in pairs)
    if tolerance is None:
        tolerance = _TOLERANCES.get(a.dtype, 0.0)
    if a.dtype.kind in "biu":
        return abs(int(a) - int(b)) <= tolerance
    one, two = complex(a), complex(b)
    size = max(1.0, math.hypot(two.real, two.imag))
    if a.dtype.kind == "c" and not cmath.isfinite(one) and not cmath.isfinite(two):
        return True  # which of its parts is infinite, and which no number, is nobody's promise
    parts = ((one.real, two.real), (one.imag, two.imag))
    return all(_is_near(x, y, tolerance * size) for x, y in parts)


def _is_near(one: float, two: float, distance: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(two)):
        return one == two or (one != one and two != two)
    return abs(one - two) <= distance


def _wrong(
    function: DeviceFunction, given: tuple[Any, ...], why: str, instead: str
) -> InvalidArgumentError:
    pairs = zip(function.arguments, given, strict=True)
    listed = ", ".join(f"{name}={value}" for (name, _), value in pairs)
    return InvalidArgumentError(
        f"'{function.name}' is not what it is declared to be: for {listed} {why}", instead=instead
    )
