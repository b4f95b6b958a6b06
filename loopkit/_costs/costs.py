"""``knl.costs(n=4096)``: what a launch does, counted exactly from the kernel's sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._budget import in_turn
from loopkit._cached import cached_property
from loopkit._costs.accesses import Access, accesses_of, address_map, space_of
from loopkit._costs.devices import Device, chosen
from loopkit._costs.on_device import OnDevice
from loopkit._costs.operations import operations_of
from loopkit._costs.warps import GLOBAL, SECTOR, SHARED, WarpCosts, warp_costs
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._expression import substitute, to_text
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._poly.integer_points import EndlessError, TooManyPointsError, count
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._program import Program
from loopkit._target import CUDA
from loopkit._types import known_types

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "shared"}


@dataclass(frozen=True)
class AccessCosts:
    """One access of a statement to global or shared memory, all threads together.

    ``requests`` are those of warps, ``threads`` single ones; a request touches ``sectors`` of 32
    bytes of global memory, or takes ``wavefronts`` of shared memory: ``pieces``, of which
    ``least_pieces`` would do if the elements of each request lay beside each other.
    ``bytes_used`` are those of different elements in each request.  Where data decide, or there
    are too many cases, ``counts`` is None, and ``why`` says so.
    """

    statement: str
    text: str
    array: str
    space: str
    is_write: bool
    itemsize: int
    counts: WarpCosts | None
    why: str = ""

    @property
    def bytes_used(self) -> int | None:
        """Bytes of different elements, summed over requests."""
        return None if self.counts is None else self.counts.elements * self.itemsize


@dataclass(frozen=True)
class Footprint:
    """The bytes of an array that a launch touches at all: so many must be moved."""

    array: str
    read: int | None
    written: int | None


@dataclass(frozen=True)
class Costs(OnDevice):
    """What a launch does.

    ``operations`` counts by kind and type, such as ``("add", "float32")``; ``instances`` says how
    often each statement runs.  All numbers are exact, but where ``at_most`` says for which
    statements data decide: they are counted as if conditions on data held.

    ``resources``, ``occupancy``, ``tail`` and ``roofline`` are of ``device``, and are found when
    they are first asked for: see :class:`OnDevice`.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    instances: tuple[tuple[str, int | None], ...]
    operations: tuple[tuple[tuple[str, str], int], ...]
    accesses: tuple[AccessCosts, ...]
    footprints: tuple[Footprint, ...]
    source: Kernel = field(compare=False, repr=False)
    at_most: tuple[str, ...] = ()
    asked: Device | None = None
    arch: str | None = None

    @property
    def blocks(self) -> int:
        """The blocks of the grid."""
        return prod(self.grid)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(self.block)

    @cached_property
    def moved(self) -> Mapping[str, int | None]:
        """Bytes of the sectors that all requests to each array in global memory touch."""
        found: dict[str, int | None] = {}
        for access in self.accesses:
            if access.space == "global":
                before = found.get(access.array, 0)
                counts = access.counts
                known = before is not None and counts is not None
                found[access.array] = before + counts.pieces * SECTOR if known else None  # type: ignore[operator, union-attr]
        return found

    def __str__(self) -> str:
        from loopkit._costs.table import as_text

        return as_text(self)


@in_turn
def costs(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> Costs:
    """What a launch with these sizes does: operations, bytes, sectors and bank conflicts, exactly.

    Counted from the kernel's sets, without a GPU and without enumerating instances: a product
    of 4096 takes no longer than one of 64.

    *sizes* are the kernel's integer parameters, each a number.  *device* is what ``resources``,
    ``occupancy``, ``tail`` and ``roofline`` are of (a name, such as ``"H100"``, or a
    :class:`Device`; the GPU here or else an H100 if it is left out), *arch* what its code is
    compiled for.

    Returns a :class:`Costs`, which prints as tables.  Raises
    :class:`~loopkit.InvalidArgumentError` for sizes that are missing or that no call may have,
    :class:`~loopkit.UnknownNameError` for others and for devices, and what lowering raises.
    """
    from loopkit.codegen.prepare import prepare

    _check_sizes(kernel, sizes)
    launch = kernel.launch_config(**sizes)
    made: Program = kernel.program()
    model = model_of(prepare(kernel))
    statements = {s.id: _instances(model, s.id, sizes) for s in model.kernel.statements}
    accesses = [a for a in accesses_of(model.kernel) if space_of(model.kernel, a.array) in SPACES]
    return Costs(
        kernel=kernel.name,
        sizes=tuple(sorted(sizes.items())),
        grid=launch.grid,
        block=launch.block,
        shared_bytes=made.static_shared + made.dynamic_shared,
        instances=tuple((name, counted) for name, (counted, _) in statements.items()),
        operations=_operations(model, {n: c for n, (c, _) in statements.items()}),
        accesses=tuple(_access_costs(model, a, sizes, launch.block) for a in accesses),
        footprints=tuple(_footprints(model, accesses, sizes)),
        source=kernel,
        at_most=tuple(name for name, (_, exact) in statements.items() if not exact),
        asked=None if device is None else chosen(device),
        arch=arch,
    )


def _check_sizes(kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """Refuse sizes that no call could have."""
    for name in sizes:
        if name not in kernel.sizes:
            raise UnknownNameError("size", name, kernel.sizes)
    if missing := [name for name in kernel.sizes if name not in sizes]:
        raise InvalidArgumentError(
            f"costs needs the sizes {', '.join(missing)}",
            instead=f"costs({', '.join(f'{m}=...' for m in (*sizes, *missing))})",
        )
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidArgumentError(f"the size '{name}' is a whole number, not {value!r}")
    if _at(kernel.assumptions.set, sizes).is_empty():
        shown = ", ".join(f"{n} = {v}" for n, v in sizes.items())
        raise InvalidArgumentError(
            f"no launch of '{kernel.name}' has {shown}: it assumes {kernel.assumptions.text}"
        )


def _at(domain: isl.Set, sizes: Mapping[str, int]) -> isl.Set:
    for name, value in sizes.items():
        domain = domain & _sets.equality(name, value)
    return domain


def _instances(model: Model, statement: str, sizes: Mapping[str, int]) -> tuple[int | None, bool]:
    """How many threads run a statement, each time counted; and whether data do not matter."""
    at = Instance(statement, "")
    bounds, everywhere = model.everywhere(at)
    names = (*model.statement[statement].inames, *(v.name for v in everywhere.values()))
    exact = not model.depends_on_data(model.statement[statement])
    if model.bounds_from_data(statement):
        return None, False
    try:
        return count(model.domain(at) & bounds, names, sizes), exact
    except (TooManyPointsError, EndlessError):
        return None, False


def _operations(
    model: Model, instances: Mapping[str, int | None]
) -> tuple[tuple[tuple[str, str], int], ...]:
    types = known_types(model.kernel)
    total: Counter[tuple[str, str]] = Counter()
    for statement in model.kernel.statements:
        for operation in operations_of(statement, types.__getitem__):
            times = instances[statement.id]
            total[operation.kind, operation.dtype] += operation.times * (times or 0)
    return tuple(sorted(total.items()))


def _access_costs(
    model: Model, access: Access, sizes: Mapping[str, int], block: tuple[int, int, int]
) -> AccessCosts:
    space = SPACES[space_of(model.kernel, access.array)]
    itemsize = _itemsize(model, access.array)
    text = f"{access.array}[{', '.join(map(to_text, access.indices))}]"
    memory = SHARED if space == "shared" else GLOBAL
    counts, why = None, ""
    try:
        where = address_map(model, access, sizes)
        counts = warp_costs(where, sizes, block, itemsize, CUDA.warp, memory)
    except NotAffineError:
        why = "data decide"
    except TooManyPointsError:
        why = "too many cases"
    return AccessCosts(
        access.statement, text, access.array, space, access.is_write, itemsize, counts, why
    )


def _itemsize(model: Model, array: str) -> int:
    dtype = model.array(array).dtype
    assert dtype is not None  # all types are inferred by now
    return dtype.itemsize


def _footprints(
    model: Model, accesses: Iterable[Access], sizes: Mapping[str, int]
) -> Iterable[Footprint]:
    by_array: dict[str, tuple[list[Access], list[Access]]] = {}
    for access in accesses:
        if SPACES[space_of(model.kernel, access.array)] == "global":
            by_array.setdefault(access.array, ([], []))[access.is_write].append(access)
    for name, both in by_array.items():
        read, written = (_bytes(model, name, of, sizes) for of in both)
        yield Footprint(name, read, written)


def _bytes(
    model: Model, array: str, accesses: Iterable[Access], sizes: Mapping[str, int]
) -> int | None:
    """The bytes of the elements that accesses touch, each once; None where that is not known."""
    cells = None
    names: tuple[str, ...] = ()
    for access in accesses:
        names = tuple(hidden("cell", n) for n in range(len(access.indices)))
        try:
            where = address_map(model, access, sizes).domain
        except NotAffineError:
            return None
        where = _at(where, sizes)
        for name, index in zip(names, access.indices, strict=True):
            value = substitute(index, sizes)
            where = where & _sets.affine_equality(prim.Variable(name), value)
        image = _sets.project_onto(where, names)
        cells = image if cells is None else (cells | image).coalesce()
    if cells is None:
        return 0
    try:
        return count(cells, names, {}) * _itemsize(model, array)
    except (TooManyPointsError, EndlessError):
        return None
