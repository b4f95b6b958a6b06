"""Loopy's statistics, on the counts of costs: operations, memory accesses, synchronisation.

Counts are of single threads (*work items*) everywhere, and exact at any sizes: a count prints as
a polynomial of the sizes where it is one.  Arithmetic of subscripts is not counted, and an element
that a statement names twice is read once.
Of several launches each has keys of its own, with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import strides_of, swizzles_of
from loopkit._budget import in_turn
from loopkit._cached import memoised
from loopkit._costs.accesses import Access, accesses_of, address_map, in_calls, space_of
from loopkit._costs.barrier_counts import barriers_of, kinds_of_barriers
from loopkit._costs.costs import instances_at, kinds_of_operations, operations_at
from loopkit._costs.launched import Launched, launched
from loopkit._costs.on_demand import Part, part
from loopkit._costs.open_sizes import polynomials
from loopkit._costs.sizes import check_sizes
from loopkit._costs.values import SPACES
from loopkit._errors import InvalidArgumentError
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError, linear, linear_sum
from loopkit._nodes import Expression
from loopkit._poly.integer_points import EndlessError, TooManyPointsError, count
from loopkit._poly.model import Model


class CountGranularity:
    """Who is counted: each thread, warp or block that executes something once."""

    WORKITEM = "workitem"
    SUBGROUP = "subgroup"
    WORKGROUP = "workgroup"


@dataclass(frozen=True)
class _Key:
    """Shows its fields in their order."""

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(str(getattr(self, f.name)) for f in fields(self))})"
        )


@dataclass(frozen=True)
class Op(_Key):
    """A kind of operation: ``name`` is *add*, *mul*, *div*, *bw*, *maxmin*, *func:exp*, ..."""

    dtype: Any = None
    name: str | None = None
    count_granularity: str | None = None
    kernel_name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _dtype(self.dtype))


@dataclass(frozen=True)
class MemAccess(_Key):
    """A kind of memory access.

    ``mtype`` is *global* or *local* (shared), ``direction`` *load* or *store*; ``lid_strides`` and
    ``gid_strides`` say by how many elements the index of a thread, of a block, moves the address,
    by axis.
    """

    mtype: str | None = None
    dtype: Any = None
    lid_strides: Any = None
    gid_strides: Any = None
    direction: str | None = None
    variable: str | None = None
    variable_tags: Any = None
    count_granularity: str | None = None
    kernel_name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _dtype(self.dtype))
        for name in ("lid_strides", "gid_strides"):
            given = getattr(self, name)
            if isinstance(given, Mapping):
                object.__setattr__(self, name, Strides(given))


@dataclass(frozen=True)
class Sync(_Key):
    """A kind of synchronisation: *barrier_local*, *barrier_warp* or *kernel_launch*."""

    kind: str | None = None
    kernel_name: str | None = None


class Strides(dict[int, Any]):
    """Strides by axis, as a key; expressions stand as text."""

    def __init__(self, given: Mapping[int, Any]) -> None:
        super().__init__({a: s if isinstance(s, int) else str(s) for a, s in given.items()})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _dtype(given: Any) -> Any:
    try:
        return None if given is None else np.dtype(given)
    except TypeError:
        return given


Counted = Mapping[Any, int | None]


@dataclass(frozen=True, eq=False)
class _Counter:
    """What a map counts: all of its numbers, at sizes."""

    kernel: Kernel
    count: Callable[[Kernel, tuple[tuple[str, int], ...]], Counted]

    def at(self, sizes: Mapping[str, int]) -> Counted:
        """All counts at sizes; others than the kernel's are left aside."""
        mine = {name: int(sizes[name]) for name in self.kernel.sizes if name in sizes}
        check_sizes(self.kernel, mine, "a count")
        return self.count(self.kernel, tuple(sorted(mine.items())))


@dataclass(frozen=True, eq=False)
class Count:
    """A number that depends on sizes: a sum of what keys stand for, each times a factor."""

    counter: _Counter
    parts: tuple[tuple[Any, int], ...]

    def eval_with_dict(self, param_dict: Mapping[str, int]) -> int:
        """The number at sizes.

        Raises :class:`~loopkit.InvalidArgumentError` for sizes that are missing, or that no call
        may have, and where data decide.
        """
        counted = self.counter.at(param_dict)
        total = 0
        for key, factor in self.parts:
            value = counted[key]
            if value is None:
                raise InvalidArgumentError(
                    f"how often there is {key} is not one number: data decide, or threads differ"
                )
            total += factor * value
        return total

    def __call__(self, **sizes: int) -> int:
        return self.eval_with_dict(sizes)

    def __add__(self, other: Count) -> Count:
        return Count(self.counter, (*self.parts, *other.parts))

    def __mul__(self, factor: int) -> Count:
        return Count(self.counter, tuple((key, n * factor) for key, n in self.parts))

    __rmul__ = __mul__

    def __str__(self) -> str:
        def parts(sizes: Mapping[str, int]) -> Iterator[Part]:
            yield part(lambda change: change("count", self.eval_with_dict(sizes)))

        return str(polynomials(self.counter.kernel, {}, parts)[1][0])


class ToCountMap(Mapping[Any, Any]):
    """Counts by key: what Loopy's functions return.

    What it has no key for counts nothing.
    """

    def __init__(self, count_map: Mapping[Any, Any], counter: _Counter | None = None) -> None:
        self.count_map = dict(count_map)
        self._counter = counter

    def __getitem__(self, key: Any) -> Any:
        if key not in self.count_map and self._counter is not None:
            return Count(self._counter, ())
        return self.count_map.get(key, 0)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.count_map)

    def __len__(self) -> int:
        return len(self.count_map)

    def __contains__(self, key: object) -> bool:
        return key in self.count_map

    def __add__(self, other: ToCountMap) -> ToCountMap:
        both = dict(self.count_map)
        for key, value in other.items():
            both[key] = both[key] + value if key in both else value
        return ToCountMap(both, self._counter)

    def __repr__(self) -> str:
        return f"ToCountMap({len(self)} keys)"

    def __str__(self) -> str:
        return "\n".join(f"{key}: {value}" for key, value in self.items())

    def filter_by(self, **kwargs: Iterable[Any]) -> ToCountMap:
        """The counts of keys whose fields have one of the values given for them."""
        wanted = {
            name: [_dtype(v) if name == "dtype" else v for v in values]
            for name, values in kwargs.items()
        }
        self._check_fields(wanted)
        return self.filter_by_func(lambda key: all(getattr(key, n) in v for n, v in wanted.items()))

    def filter_by_func(self, func: Callable[[Any], bool]) -> ToCountMap:
        """The counts of keys for which a function is true."""
        return ToCountMap({k: v for k, v in self.items() if func(k)}, self._counter)

    def group_by(self, *args: str) -> ToCountMap:
        """Counts summed over keys that agree in some fields; the others are None."""
        self._check_fields(args)
        found: dict[Any, Any] = {}
        for key, value in self.items():
            short = type(key)(**{name: getattr(key, name) for name in args})
            found[short] = found[short] + value if short in found else value
        return ToCountMap(found, self._counter)

    def _check_fields(self, names: Iterable[str]) -> None:
        for key in self:
            known = [f.name for f in fields(key)]
            for name in names:
                if name not in known:
                    raise InvalidArgumentError(
                        f"{type(key).__name__} has no field '{name}'",
                        instead=f"fields are {', '.join(known)}",
                    )

    def to_bytes(self) -> ToCountMap:
        """Bytes instead of accesses."""
        self._check_fields(["dtype"])
        return ToCountMap({k: v * k.dtype.itemsize for k, v in self.items()}, self._counter)

    def sum(self) -> Any:
        """All counts together."""
        empty = 0 if self._counter is None else Count(self._counter, ())
        total: Any = empty
        for value in self.values():
            total = total + value
        return total

    def eval(self, params: Mapping[str, int]) -> ToCountMap:
        """The same with a number for each count."""
        return ToCountMap({k: _number(v, params) for k, v in self.items()})

    def eval_and_sum(self, params: Mapping[str, int] | None = None) -> int:
        """The number of all counts together, at sizes."""
        return sum(_number(value, params or {}) for value in self.values())


def _number(value: Any, params: Mapping[str, int]) -> int:
    return value.eval_with_dict(params) if isinstance(value, Count) else value


def _map(kernel: Kernel, counter: Callable[..., Counted], keys: Iterable[Any]) -> ToCountMap:
    made = _Counter(kernel, counter)
    return ToCountMap({key: Count(made, ((key, 1),)) for key in keys}, made)


_NAMES = {"bitwise": "bw", "min": "maxmin", "max": "maxmin"}
_PLAIN = {"add", "mul", "div", "floordiv", "mod", "pow", "shift", "bw", "maxmin"} | {
    "compare",
    "select",
    "logical",
    "cast",
}


def _op_key(kernel: Kernel, kind: str, dtype: str) -> Op:
    name = _NAMES.get(kind, kind)
    name = name if name in _PLAIN else f"func:{name}"
    return Op(dtype, name, CountGranularity.WORKITEM, kernel.name)


@memoised
def _operations(kernel: Kernel, sizes: tuple[tuple[str, int], ...]) -> Counted:
    found: dict[Any, int | None] = {}
    for one in launched(kernel):
        model, at = one.model, dict(sizes)
        ids = (s.id for s in model.kernel.statements)
        known = {name: instances_at(model, name, at, (), one.calls)[0] for name in ids}
        for (kind, dtype), times in operations_at(model, known, at, one.calls):
            key = _op_key(one.kernel, kind, dtype)
            before = found.get(key, 0)
            found[key] = None if before is None or times is None else before + times
    return found


@in_turn
def get_op_map(
    kernel: Kernel, count_redundant_work: bool = False, subgroup_size: int | None = None
) -> ToCountMap:
    """How often threads do which operations: a map from :class:`Op` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  Raises what lowering raises.
    """
    keys = (
        _op_key(one.kernel, *kind)
        for one in launched(kernel)
        for kind in kinds_of_operations(one.model)
    )
    return _map(kernel, _operations, dict.fromkeys(keys))


@memoised
def _memory(kernel: Kernel, sizes: tuple[tuple[str, int], ...]) -> Counted:
    found: dict[Any, int | None] = {}
    for one, access in _accesses(kernel):
        key = _access_key(one.model, access)
        before = found.get(key, 0)
        try:
            where = in_calls(address_map(one.model, access, dict(sizes)), one.calls)
            times = count(where.domain, where.names, dict(sizes))
            found[key] = None if before is None else before + times
        except (NotAffineError, TooManyPointsError, EndlessError):
            found[key] = None
    return found


def _accesses(kernel: Kernel) -> list[tuple[Launched, Access]]:
    return [
        (one, access)
        for one in launched(kernel)
        for access in accesses_of(one.model.kernel)
        if space_of(one.model.kernel, access.array) in SPACES
    ]


def _access_key(model: Model, access: Access) -> MemAccess:
    space = SPACES[space_of(model.kernel, access.array)]
    array = model.array(access.array)
    strides: dict[str, dict[int, Any]] = {"l": {}, "g": {}}
    for iname in model.statement[access.statement].inames:
        axis = model.axis_of(iname)
        if axis is not None and axis[0] in strides and isinstance(axis[1], int):
            # Along an axis that is swizzled no step is constant.
            moved = {swizzle.axis for swizzle in swizzles_of(array)}
            by_axis = (0 if n in moved else s for n, s in enumerate(strides_of(array)))
            step = _step(access.indices, tuple(by_axis), iname)
            if step != 0:
                strides[axis[0]][axis[1]] = step if isinstance(step, int) else to_text(step)
    return MemAccess(
        "local" if space == "shared" else "global",
        array.dtype,
        strides["l"],
        strides["g"],
        "store" if access.is_write else "load",
        access.array,
        None,
        CountGranularity.WORKITEM,
        model.kernel.name,
    )


def _step(
    indices: tuple[Expression, ...], strides: tuple[Expression, ...], iname: str
) -> Expression:
    """By how many elements an iname moves the address; 0 where that is no constant of sizes."""
    constant = 0
    terms: list[tuple[int, Expression]] = []
    for index, stride in zip(indices, strides, strict=True):
        try:
            coefficient = linear(index).terms.get(prim.Variable(iname), 0)
        except NotAffineError:
            continue
        if isinstance(stride, (int, np.integer)):
            constant += coefficient * int(stride)
        elif coefficient:
            terms.append((coefficient, stride))
    return linear_sum(terms, constant) if terms else constant


@in_turn
def get_mem_access_map(
    kernel: Kernel, count_redundant_work: bool = False, subgroup_size: int | None = None
) -> ToCountMap:
    """How often threads access which arrays: a map from :class:`MemAccess` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  ``knl.costs()`` says what warps make of that.  Raises what lowering raises.
    """
    keys = (_access_key(one.model, access) for one, access in _accesses(kernel))
    return _map(kernel, _memory, dict.fromkeys(keys))


@memoised
def _synchronisation(kernel: Kernel, sizes: tuple[tuple[str, int], ...]) -> Counted:
    found: dict[Any, int | None] = {}
    for one in launched(kernel):
        made, at = one.kernel.program(), dict(sizes)
        times = one.calls.counted(made.grid, at)[0] if one.calls.loops else 1
        found[Sync("kernel_launch", one.kernel.name)] = times
        for barrier in barriers_of(one.kernel, at, made.grid, made.block, one.calls):
            key = _sync_key(one.kernel, of_warp=barrier.of_warp)
            before, each = found.get(key, 0), barrier.per_thread
            found[key] = None if before is None or each is None else before + each * times
    return found


def _sync_key(kernel: Kernel, *, of_warp: bool) -> Sync:
    return Sync("barrier_warp" if of_warp else "barrier_local", kernel.name)


@in_turn
def get_synchronization_map(kernel: Kernel, subgroup_size: int | None = None) -> ToCountMap:
    """How often a thread waits: a map from :class:`Sync` to counts.

    Barriers are counted as one thread passes them; where threads pass different numbers, none is
    given, and ``knl.costs().barriers`` counts all.  *subgroup_size* changes nothing.  Raises what
    lowering raises.
    """
    keys: list[Sync] = []
    for one in launched(kernel):
        waits = kinds_of_barriers(one.kernel)
        keys += [_sync_key(one.kernel, of_warp=of_warp) for of_warp in waits]
        keys.append(Sync("kernel_launch", one.kernel.name))
    return _map(kernel, _synchronisation, dict.fromkeys(keys))
