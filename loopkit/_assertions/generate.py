"""Random data that obeys assertions, for comparisons and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit._assertions.values import Assertion, Facts, Injective, facts_of
from loopkit._errors import AssumptionError
from loopkit._expression import evaluate

Array = np.ndarray[Any, np.dtype[Any]]

# Beyond that many values, a part of a range stands for all of it.
_MOST = 1 << 20
# An array may take values that another one cannot do without.
_ATTEMPTS = 20


def obeying_data(
    assertions: tuple[Assertion, ...],
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Values for those of ``arrays``, ``(shape, dtype)`` by name, that assertions are about.

    Raises :class:`AssumptionError` where none are found.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _draw(assertions, arrays, sizes, rng)
        except AssumptionError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError


def _draw(
    assertions: tuple[Assertion, ...],
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    # What differs where a condition holds may differ everywhere.
    assertions = tuple(Injective(a.array) if isinstance(a, Injective) else a for a in assertions)
    facts = facts_of(assertions)
    about = {name for a in assertions for name in a.arrays} & arrays.keys()
    counts = {name: int(np.prod(arrays[name][0], dtype=object)) for name in about}
    # Those that need the most of what they may have choose first.
    order = sorted(about, key=lambda name: (name not in facts.injective, -counts[name], name))
    found: dict[str, Array] = {}
    for position, name in enumerate(order):
        shape, dtype = arrays[name]
        pool = _pool(name, facts, counts[name], dtype, sizes)
        for other in facts.apart.get(name, frozenset()) & found.keys():
            pool = pool[~np.isin(pool, found[other].ravel())]
        later = len(facts.apart.get(name, frozenset()) & set(order[position + 1 :]))
        values = _choose(name, facts, counts[name], pool, later, rng)
        if name in facts.increasing:
            values = np.sort(values)
        found[name] = values.reshape(shape).astype(dtype)
    return found


def _pool(
    name: str, facts: Facts, count: int, dtype: np.dtype[Any], sizes: Mapping[str, int]
) -> Array:
    """The values that an array may have."""
    limits = np.iinfo(dtype)
    bounds = facts.bounds.get(name, ())
    lower = max((int(evaluate(low, sizes)) for low, _ in bounds), default=0)
    upper = min((int(evaluate(up, sizes)) for _, up in bounds), default=max(lower, 0) + 2 * count)
    if not bounds:
        upper = max(upper, 100)
    lower, upper = max(lower, int(limits.min)), min(upper, int(limits.max) + 1)
    return np.arange(lower, min(upper, lower + max(_MOST, 4 * count)))


def _choose(
    name: str, facts: Facts, count: int, pool: Array, later: int, rng: np.random.Generator
) -> Array:
    if pool.size < (count if name in facts.injective else min(count, 1)):
        raise AssumptionError(f"no data for '{name}' obeys all that is assumed of it")
    if name in facts.injective:
        return rng.choice(pool, count, replace=False)
    if later:  # others must find values that this array does not have
        pool = rng.choice(pool, max(1, pool.size // (later + 1)), replace=False)
    return rng.choice(pool, count) if count else pool[:0]
