"""Sizes and arguments for drawn kernels, and what the text says the results are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from seams import check_data, evaluate, expand_rules, infer_types, run_reference
from seams import sets as _sets

import loopkit as lk
from loopkit import Disjoint, Increasing, Injective

from .dtypes import is_exact, small_numbers
from .variations import TABLES, chosen_of

Sizes = dict[str, int]
Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]

# Ragged, equal to each other, multiples of tiles, and single iterations.
_SHALLOW = (
    (7, 9, 5), (1, 1, 1), (8, 8, 4), (13, 5, 3), (2, 3, 17), (4, 4, 4), (16, 8, 12), (5, 13, 2),
    (12, 16, 8), (3, 2, 1), (20, 4, 6), (0, 0, 0), (9, 1, 2), (0, 1, 3), (1, 0, 1), (4, 0, 0),
)  # fmt: skip
_DEEP = (
    (5, 4, 3), (1, 1, 1), (4, 4, 4), (3, 5, 2), (2, 1, 6), (8, 4, 4), (6, 3, 5), (4, 8, 2),
    (2, 2, 2), (0, 0, 0), (7, 2, 1), (1, 0, 2), (0, 2, 1),
)  # fmt: skip
_NAMES = ("n", "m", "p")
_LARGEST = 26**3  # instances that a witness may ask for: the interpreter takes its time
_ATTEMPTS = 4  # data that are drawn until results are exact
#: For blocks of several warps, which no small size fills.
WIDE = {"n": 67, "m": 41, "p": 35}


def size_names(kernel: lk.Kernel) -> tuple[str, ...]:
    """Names for the sizes that are tried: those of the kernel in the places of others it lacks."""
    others = iter([n for n in kernel.sizes if n not in _NAMES])
    return tuple(n if n in kernel.sizes else next(others, n) for n in _NAMES)


def depth(kernel: lk.Kernel) -> int:
    """The most inames that a statement is inside of."""
    return max((len(s.inames) for s in kernel.statements), default=0)


def candidates(
    kernel: lk.Kernel, fixed: Mapping[str, int], first: Mapping[str, int] | None = None
) -> Iterator[Sizes]:
    """Sizes to try, ``first`` and slightly larger ones before all others; ``fixed`` are given."""
    seen = set()
    names = size_names(kernel)
    several = list(_DEEP if depth(kernel) > 2 else _SHALLOW)
    more = [n for n in kernel.sizes if n not in names]
    if first == WIDE and depth(kernel) <= 2:
        several.insert(0, tuple(first.values()))  # type: ignore[arg-type]
    elif first and max(first.values()) ** max(1, depth(kernel)) <= _LARGEST:
        for larger in (1, 0):
            several.insert(0, tuple(first.get(n, 3) + larger for n in names))  # type: ignore[arg-type]
    for values in several:
        sizes = dict(zip(names, values, strict=True))
        sizes |= {n: values[at % len(values)] for at, n in enumerate(more)}
        sizes = {n: fixed.get(n, v) for n, v in sizes.items() if n in kernel.sizes}
        key = tuple(sizes.values())
        if key not in seen and holds(kernel, sizes):
            seen.add(key)
            yield sizes


def holds(kernel: lk.Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether ``sizes`` meet a kernel's assumptions."""
    given = kernel.assumptions.set
    for name, value in sizes.items():
        if given.find_dim_by_name(_sets.PARAM, name) >= 0:
            given = given & _sets.equality(name, value)
    return not given.is_empty()


def arguments(
    kernel: lk.Kernel, sizes: Sizes, seed: int, *, friendly: bool, adverse: bool = False
) -> Arrays:
    """Contents for every array argument, outputs included.

    Index arrays are what assertions in `steps` may say of them where ``friendly``:
    permutations, and ranges that do not overlap.  Otherwise they collide.  With ``adverse``
    data all of their entries do, and other numbers are so large that conditions hold.  Integers
    are small, or some of them as large as they get, by sizes.
    """
    rng = np.random.default_rng(seed)
    shapes = {
        a.name: tuple(max(0, int(evaluate(s, sizes))) for s in a.shape or ())
        for a in kernel.passed
        if isinstance(a, lk.ArrayArg)
    }
    tables = [int(evaluate(chosen_of(a), sizes)) for a in kernel.passed if a.name in TABLES]
    reach = max(1, min(tables, default=1))
    found: Arrays = {}
    for argument in kernel.passed:
        if not isinstance(argument, lk.ArrayArg):
            continue
        name, shape = argument.name, shapes[argument.name]
        values = small_numbers(argument.dtype, rng, shape)
        if name == "perm" and friendly and not adverse:
            values = rng.permutation(shape[0])
        elif name in ("col", "perm"):
            values = rng.integers(0, reach, shape)
            if adverse or sum(sizes.values()) % 3 == 0:
                values[...] = rng.integers(0, reach)
        elif name == "ptr":
            values = rng.integers(0, reach + 1, shape)
            values = np.sort(values) if friendly else values
        elif argument.dtype.kind in "iu" and (seed + sum(sizes.values())) % 3 == 0:
            # Sums and products of these wrap around.
            far = np.random.default_rng([seed, len(found)]).integers(
                np.iinfo(argument.dtype).min,
                np.iinfo(argument.dtype).max,
                shape,
                dtype=argument.dtype,
                endpoint=True,
            )
            values = np.where(values % 4 == 0, far, values.astype(argument.dtype))
        if adverse and name not in ("col", "perm", "ptr") and values.dtype.kind != "b":
            values = np.abs(values.real) + 4
        # A number that is no array would not be written to.
        found[name] = np.array(values, argument.dtype)
    return found


@dataclass(frozen=True)
class Case:
    """Sizes, arguments, and the outputs that the kernel's text computes from them."""

    sizes: Sizes
    given: Arrays
    expected: Arrays


def is_allowed(schedule: lk.Kernel, case: Case) -> bool:
    """Whether the data of a case are what a schedule asserts, beyond what the text looks at."""
    try:
        check_data(schedule.name, schedule.assertions, case.given, case.sizes)
    except lk.AssumptionError:
        return False
    return True


def in_words_of(text: lk.Kernel, last: lk.Kernel) -> lk.Kernel:
    """A text whose arguments are called as they are in a schedule of it."""
    done, due = (
        [dict(s.arguments) for s in knl.history if s.transform == "rename_argument"]
        for knl in (text, last)
    )
    for arguments in due[len(done) :]:
        if arguments["old_name"] in text.arg_by_name:  # and no size that a step has made
            text = text.rename_argument(**arguments)
    return text


def reference_of(schedule: lk.Kernel, cases: Iterable[Case]) -> str:
    """What the reference executor makes of a schedule, where that is not what its text means."""
    for case in cases:
        try:
            sizes = {n: v for n, v in case.sizes.items() if n in schedule.sizes}
            found = run_reference(schedule, {**sizes, **case.given})
        except lk.LoopkitError as error:
            return f"{case.sizes}: {type(error).__name__}: {error}"
        for name, expected in case.expected.items():
            equal_nan = expected.dtype.kind in "fc"
            result = found.get(name, case.given.get(name))  # nobody may be left that writes it
            if not np.array_equal(result, expected, equal_nan=equal_nan):
                return f"{case.sizes}: {name} is\n{result}\nand not\n{expected}"
    return ""


class Truth:
    """What a kernel's text means, by the reference interpreter; runs once for each size."""

    def __init__(self, kernel: lk.Kernel, seed: int) -> None:
        self.kernel = kernel
        self.seed = seed
        self._cases: dict[tuple[int, ...], Case | None] = {}
        self._renamed: dict[tuple[str, ...], Truth] = {}
        typed = infer_types(expand_rules(kernel))
        # What is added up in another order is another sum where its type rounds.
        self._sums = {t.dtype.name for t in typed.temporaries if t.accumulates and t.dtype}

    def case(self, sizes: Sizes, friendly: bool = False, adverse: bool = False) -> Case | None:
        """The case for ``sizes``; None where the text itself has no meaning or rounds."""
        key = (int(friendly), int(adverse), *sizes.values())
        if key not in self._cases:
            self._cases[key] = self._run(sizes, friendly, adverse)
        return self._cases[key]

    def _run(self, sizes: Sizes, friendly: bool, adverse: bool) -> Case | None:
        for attempt in range(_ATTEMPTS):
            seed = self.seed + attempt
            given = arguments(self.kernel, sizes, seed, friendly=friendly, adverse=adverse)
            try:
                expected = run_reference(self.kernel, {**sizes, **given})
            except lk.LoopkitError:
                continue  # other data may have a meaning
            if all(is_exact(values, self._sums) for values in expected.values()):
                return Case(sizes, given, expected)
        return None

    def cases(
        self,
        last: lk.Kernel,
        count: int,
        fixed: Mapping[str, int],
        first: Mapping[str, int] | None = None,
        *,
        adverse: bool = False,
    ) -> list[Case]:
        """Up to ``count`` cases that what is assumed and asserted of ``last`` allows too.

        ``first`` are sizes that somebody says are interesting.  With ``adverse``, index arrays
        hold one number, if nothing is asserted but bounds, and conditions hold.
        """
        text = in_words_of(self.kernel, last)
        if text is not self.kernel:
            names = tuple(text.arg_by_name)
            truth = self._renamed.setdefault(names, Truth(text, self.seed))
            return truth.cases(last, count, fixed, first, adverse=adverse)
        friendly = bool(last.assertions)
        apart = any(isinstance(a, (Injective, Disjoint, Increasing)) for a in last.assertions)
        adverse = adverse and not apart
        found: list[Case] = []
        for sizes in candidates(self.kernel, fixed, first):
            if len(found) == count:
                break
            if not holds(last, {n: v for n, v in sizes.items() if n not in fixed}):
                continue
            case = self.case(sizes, friendly, adverse)
            if case is not None and is_allowed(last, case):
                found.append(case)
        return found
