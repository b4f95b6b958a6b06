"""The data types of Loopy's statistics: keys, and maps from keys to counts at any sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from loopkit._arguments import is_integer
from loopkit._costs.open_sizes import polynomials
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._relations import grouped
from loopkit._spelling import shown


class CountGranularity:
    """The unit of counting: threads, warps or blocks."""

    WORKITEM = "workitem"
    SUBGROUP = "subgroup"
    WORKGROUP = "workgroup"


@dataclass(frozen=True)
class _Key:
    """Shows its fields in their order; types and strides are such as can be compared."""

    def __post_init__(self) -> None:
        for name, kept in (("dtype", _dtype), ("lid_strides", _strides), ("gid_strides", _strides)):
            if (given := getattr(self, name, None)) is not None:
                object.__setattr__(self, name, kept(given))

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


@dataclass(frozen=True)
class Sync(_Key):
    """A kind of synchronisation: *barrier_local*, *barrier_warp* or *kernel_launch*."""

    kind: str | None = None
    kernel_name: str | None = None


class Strides(dict[int, Any]):
    """Strides by axis, as a key, in the order of the axes; expressions stand as text."""

    def __init__(self, given: Mapping[int, Any]) -> None:
        if not all(map(is_integer, given)):
            raise InvalidArgumentError(f"strides are by the number of an axis, not {shown(given)}")
        steps = sorted(given.items())
        super().__init__({int(a): s if isinstance(s, int) else str(s) for a, s in steps})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _strides(given: Any) -> Any:
    return Strides(given) if isinstance(given, Mapping) else given


def _dtype(given: Any) -> Any:
    try:
        return np.dtype(given)
    except Exception:  # NumPy's own parsers raise what they like, and so do objects of others
        return given


Sizes = tuple[tuple[str, int], ...]
Times = Callable[[Sizes], int | None]
"""How often something is done at sizes; None where that is not one number."""


@dataclass(frozen=True, eq=False)
class Count:
    """A number that depends on sizes: a sum of what is counted of kernels, each times a factor.

    ``parts`` hold the kernel, the key, what counts it at sizes, and the factor.
    """

    parts: tuple[tuple[Kernel, Any, Times, int], ...] = ()

    def eval_with_dict(self, param_dict: Mapping[str, int]) -> int:
        """The number at sizes; others than the kernels' are left aside.

        Raises :class:`~loopkit.InvalidArgumentError` for sizes that are missing, or that no call
        may have, and where data decide.
        """
        if not isinstance(param_dict, Mapping):
            raise InvalidArgumentError(f"sizes are numbers by name, not {shown(param_dict)}")
        total = 0
        for kernel, parts in self._by_kernel().items():
            mine = {name: param_dict[name] for name in kernel.sizes if name in param_dict}
            sizes = tuple(sorted(check_sizes(kernel, mine, "a count").items()))
            for _, key, times, factor in parts:
                value = times(sizes)
                if value is None:
                    raise InvalidArgumentError(
                        f"how often there is {key} is not one number: data decide, or threads "
                        "differ"
                    )
                total += factor * value
        return total

    def _by_kernel(self) -> Mapping[Kernel, tuple[tuple[Kernel, Any, Times, int], ...]]:
        return grouped((part[0], part) for part in self.parts)

    def __call__(self, **sizes: int) -> int:
        return self.eval_with_dict(sizes)

    def __add__(self, other: Count) -> Count:
        return Count((*self.parts, *other.parts)) if isinstance(other, Count) else NotImplemented

    def __mul__(self, factor: int) -> Count:
        if not is_integer(factor):
            return NotImplemented
        return Count(tuple((*part, n * int(factor)) for *part, n in self.parts))

    __rmul__ = __mul__

    def __str__(self) -> str:
        of_each = (Count(parts)._polynomial() for parts in self._by_kernel().values())
        return " + ".join(of_each) or "0"

    def _polynomial(self) -> str:
        """The number of one kernel, in words; or why it has none for all sizes."""
        kernel = self.parts[0][0]
        try:
            return str(*polynomials(kernel, {}, lambda at: [self.eval_with_dict(at)], ["count"]))
        except InvalidArgumentError as error:
            return f"({error.why})"


class ToCountMap(Mapping[Any, Any]):
    """Counts by key: what Loopy's functions return.

    What it has no key for counts nothing.
    """

    def __init__(self, count_map: Mapping[Any, Any], is_open: bool = False) -> None:
        self.count_map = dict(count_map)
        self._is_open = is_open

    def _made(self, counts: Iterable[tuple[Any, Any]]) -> ToCountMap:
        """Other counts of the same kind, those of one key together."""
        found: dict[Any, Any] = {}
        for key, value in counts:
            found[key] = found[key] + value if key in found else value
        return ToCountMap(found, self._is_open)

    @property
    def _nothing(self) -> Any:
        return Count() if self._is_open else 0

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.count_map.get(key, self._nothing)
        except TypeError:
            raise InvalidArgumentError(f"{shown(key)} is no key of counts") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.count_map)

    def __len__(self) -> int:
        return len(self.count_map)

    def __contains__(self, key: object) -> bool:
        return key in self.count_map

    def __add__(self, other: ToCountMap) -> ToCountMap:
        if not isinstance(other, ToCountMap):
            return NotImplemented
        if other._is_open is not self._is_open:
            raise InvalidArgumentError(
                "counts are added to counts, and numbers to numbers", instead="eval(sizes) first"
            )
        return self._made((*self.items(), *other.items()))

    def __radd__(self, other: int) -> ToCountMap:
        """So that ``sum`` of several maps is one."""
        return self if is_integer(other) and other == 0 else NotImplemented

    def __mul__(self, factor: int) -> ToCountMap:
        if not is_integer(factor):
            return NotImplemented
        return self._made((k, v * int(factor)) for k, v in self.items())

    def copy(self) -> ToCountMap:
        """The same counts."""
        return self._made(self.items())

    def with_set_attributes(self, **kwargs: Any) -> ToCountMap:
        """The same counts of keys that have other values in some fields."""
        self._check_fields(kwargs)
        return self._made((replace(key, **kwargs), value) for key, value in self.items())

    def __repr__(self) -> str:
        return f"ToCountMap({len(self)} keys)"

    def __str__(self) -> str:
        return "\n".join(f"{key}: {value}" for key, value in self.items())

    def filter_by(self, **kwargs: str | Iterable[Any]) -> ToCountMap:
        """The counts of keys whose fields have one of the values given for them, in a list each.

        One text alone is the list of it.
        """
        self._check_fields(kwargs)
        wanted = {name: self._values(name, given) for name, given in kwargs.items()}
        return self.filter_by_func(lambda key: all(getattr(key, n) in v for n, v in wanted.items()))

    def _values(self, name: str, given: str | Iterable[Any]) -> frozenset[Any]:
        """Values of a field, as keys hold them."""
        given = [given] if isinstance(given, str) else given
        try:
            if not isinstance(given, Mapping):
                kinds = {*map(type, self)}
                return frozenset(
                    getattr(kind(**{name: value}), name) for kind in kinds for value in given
                )
        except TypeError:
            pass
        raise InvalidArgumentError(
            f"{name} is a list of the values that are wanted, not {shown(given)}",
            instead=f"filter_by({name}=[...])",
        )

    def filter_by_func(self, func: Callable[[Any], bool]) -> ToCountMap:
        """The counts of keys for which a function is true."""
        return self._made((k, v) for k, v in self.items() if func(k))

    def group_by(self, *args: str) -> ToCountMap:
        """Counts summed over keys that agree in some fields; the others are None."""
        self._check_fields(args)
        return self._made(
            (type(key)(**{name: getattr(key, name) for name in args}), value)
            for key, value in self.items()
        )

    def _check_fields(self, names: Iterable[str]) -> None:
        """An error where keys have no field of such a name; without keys, all names are good."""
        kind = next(map(type, self), None)
        known = [f.name for f in fields(kind)] if kind else []
        for name in names:
            if not isinstance(name, str) or (kind and name not in known):
                raise InvalidArgumentError(
                    f"{kind.__name__ if kind else 'a key'} has no field {shown(name)}",
                    instead=f"fields are {', '.join(known)}" if kind else "",
                )

    def to_bytes(self) -> ToCountMap:
        """Bytes instead of accesses."""
        self._check_fields(["dtype"])
        return self._made((k, v * k.dtype.itemsize) for k, v in self.items())

    def sum(self) -> Any:
        """All counts together."""
        return sum(self.values(), self._nothing)

    def eval(self, params: Mapping[str, int]) -> ToCountMap:
        """The same with a number for each count."""
        counts = [(k, v) for k, v in self.items() if isinstance(v, Count)]
        return ToCountMap({**self, **{k: v.eval_with_dict(params) for k, v in counts}})

    def eval_and_sum(self, params: Mapping[str, int] | None = None) -> int:
        """The number of all counts together, at sizes."""
        found: int = self.eval({} if params is None else params).sum()
        return found


def count_map(kernel: Kernel, counted: Iterable[tuple[Any, Times]]) -> ToCountMap:
    """The counts of keys, from what each of them counts; what has one key is counted together."""
    nothing = ToCountMap({}, is_open=True)
    return nothing._made((key, Count(((kernel, key, times, 1),))) for key, times in counted)
