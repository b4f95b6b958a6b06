"""One request to memory: which threads of a warp, or of a block, touch which cells at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, storage_shape
from loopkit._budget import in_turn
from loopkit._costs.accesses import (
    Access,
    AddressMap,
    accesses_of,
    address_map,
    space_of,
    text_of,
)
from loopkit._costs.sizes import check_sizes
from loopkit._costs.warps import turns_of_touches
from loopkit._errors import InvalidArgumentError, LoopkitError, UnknownNameError
from loopkit._expression import evaluate, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import is_hidden
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._pictures.instances import At, restricted
from loopkit._points import smallest_point
from loopkit._poly.integer_points import enumerated, systems
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import index_name
from loopkit._spelling import shown
from loopkit._target import CUDA
from loopkit.codegen.hardware import find_hardware
from loopkit.codegen.prepare import prepare

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "shared"}


@dataclass(frozen=True)
class Touch:
    """One thread and the cell that it touches: its index in its block, and on x, y and z.

    ``address`` is in bytes from the array's first element.
    """

    thread: int
    index: tuple[int, int, int]
    cell: tuple[int, ...]
    address: int


@dataclass(frozen=True)
class Request:
    """What threads of one block touch in one execution of one access.

    ``when`` are the values of blocks and loops, ``text`` is the access; the statement makes
    ``others`` further accesses to the array.
    """

    kernel: str
    statement: str
    position: int
    text: str
    array: str
    space: str
    shape: tuple[int, ...]
    itemsize: int
    is_write: bool
    sizes: tuple[tuple[str, int], ...]
    when: tuple[tuple[str, int], ...]
    warp: int | None
    threads: int
    others: tuple[str, ...]
    touches: tuple[Touch, ...]

    @property
    def title(self) -> str:
        """What is shown, in one line."""
        verb = "write" if self.is_write else "read"
        who = "all warps" if self.warp is None else f"warp {self.warp}"
        return f"{self.kernel}: {who} {verb}{'s' * (self.warp is not None)} {self.text}"

    @property
    def subtitle(self) -> str:
        """Where and when, in one line."""
        return ", ".join(f"{n} = {v}" for n, v in (*self.sizes, *self.when))

    @property
    def turns(self) -> int:
        """In how many turns shared memory serves its warp."""
        lanes = {touch.thread % CUDA.warp: touch.address for touch in self.touches}
        return turns_of_touches(lanes, self.itemsize, self.is_write)

    def notes(self) -> Iterator[str]:
        """What is to be said below every picture of it."""
        if self.others:
            rest = ", ..." if len(self.others) > 6 else ""
            yield f"Other accesses: {', '.join(self.others[:6])}{rest}"


@in_turn
def request_of(
    kernel: Kernel,
    array: str,
    statement: str | None,
    *,
    access: int | str | None,
    block: Sequence[int] | int | None,
    warp: int | None,
    at: At | None,
    sizes: Mapping[str, int],
    asked: str,
) -> Request:
    """One request; of what is left open, the first access, block and iterations that there are."""
    check_sizes(kernel, sizes, asked)
    kernel.array(array)
    if statement is not None and statement not in kernel.statement_by_id:
        raise UnknownNameError("statement", str(statement), kernel.statement_by_id)
    model = model_of(prepare(kernel))
    found = _accesses(model, array, statement)
    candidates = found if access is None else [_chosen(found, access)]
    extents = find_hardware(model.kernel).block
    threads = extents[0] * extents[1] * extents[2]
    if warp is not None and not (isinstance(warp, int) and 0 <= warp <= (threads - 1) // CUDA.warp):
        raise InvalidArgumentError(
            f"a block of '{kernel.name}' has {threads} threads: there is no warp {shown(warp)}",
            instead=f"0 to {(threads - 1) // CUDA.warp}, or None for all",
        )
    for chosen in candidates:
        try:
            where = address_map(model, chosen, sizes)
        except NotAffineError:
            continue
        known = {n: prim.Variable(n) for n in model.statement[chosen.statement].inames}
        if access is None and not known.keys() >= set(at or {}):
            continue
        left = restricted(_sets.at_values(where.domain, sizes), known, at or {})
        left = in_block(left, model, chosen.statement, block)
        left = _in_warp(left, where, extents, warp)
        point = smallest_point(left, _order(model, chosen, where))
        if point is not None:
            break
    else:
        raise _nobody(model, candidates, warp, at or {}, sizes)
    when = {name: point[name] for name in where.requests}
    others = tuple(text_of(a) for a in found if a is not chosen)
    touches = _touches(left, where, chosen, when, extents, sizes, model)
    declared = model.array(array)
    assert declared.dtype is not None  # all types are inferred by now
    return Request(
        kernel=kernel.name,
        statement=chosen.statement,
        position=[s.id for s in kernel.statements].index(chosen.statement),
        text=text_of(chosen),
        array=array,
        space=SPACES.get(space_of(model.kernel, array), "private"),
        shape=tuple(_sets.value_at(extent, sizes) for extent in storage_shape(declared)),
        itemsize=declared.dtype.itemsize,
        is_write=chosen.is_write,
        sizes=tuple(sorted(sizes.items())),
        when=tuple(_named(model, chosen, when)),
        warp=warp,
        threads=threads,
        others=others,
        touches=touches,
    )


def _accesses(model: Model, array: str, statement: str | None) -> list[Access]:
    """The accesses to an array that a statement makes, or all statements."""
    users = [a for a in accesses_of(model.kernel) if a.array == array]
    found = [a for a in users if statement in (None, a.statement)]
    if not found:
        who = "no statement accesses" if statement is None else f"'{statement}' does not access"
        raise InvalidArgumentError(
            f"{who} '{array}' by subscripts",
            instead=f"these do: {', '.join(dict.fromkeys(a.statement for a in users))}"
            if users
            else "",
        )
    return found


def _chosen(found: Sequence[Access], access: int | str) -> Access:
    """The access that is meant, by its number or its text."""
    texts = [text_of(a) for a in found]
    if isinstance(access, str):
        plain = [text.replace(" ", "") for text in texts]
        if access.replace(" ", "") not in plain:
            raise UnknownNameError("access", access, texts)
        return found[plain.index(access.replace(" ", ""))]
    if isinstance(access, int) and not isinstance(access, bool) and 0 <= access < len(found):
        return found[access]
    raise InvalidArgumentError(
        f"access says which one is meant: 0 to {len(found) - 1}, or its text, not {shown(access)}",
        instead=", ".join(texts[:8]),
    )


def _nobody(
    model: Model,
    candidates: Sequence[Access],
    warp: int | None,
    at: At,
    sizes: Mapping[str, int],
) -> LoopkitError:
    """Why there is no request."""
    first = candidates[0]
    names = {n for a in candidates for n in model.statement[a.statement].inames}
    for name in at:
        if name not in names:
            return UnknownNameError("iname", str(name), names)
    try:
        address_map(model, first, sizes)
    except NotAffineError:
        return InvalidArgumentError(
            f"data decide which cells of '{first.array}' the threads of '{first.statement}' touch"
        )
    who = "no thread" if warp is None else f"no thread of warp {warp}"
    return InvalidArgumentError(f"{who} makes the access {text_of(first)} there")


def in_block(
    where: isl.Set, model: Model, statement: str, block: Sequence[int] | int | None
) -> isl.Set:
    """What of a statement runs in a block, whose indices on x, y and z are given."""
    if block is None:
        return where
    indices = (block,) if isinstance(block, int) else tuple(block)
    if not 1 <= len(indices) <= 3 or not all(isinstance(i, int) for i in indices):
        raise InvalidArgumentError(f"a block has up to three indices, not {shown(block)}")
    at = Instance(statement, "")
    for axis, index in enumerate((*indices, 0, 0)[:3]):
        value = model.coordinate(at, ("g", axis)) if ("g", axis) in model.axes else 0
        if value is None:
            value = prim.Variable(index_name(("g", axis), at))
        where = where & _sets.condition_set(prim.Comparison(value, "==", index))
    return where


def _in_warp(
    where: isl.Set, access: AddressMap, extents: tuple[int, int, int], warp: int | None
) -> isl.Set:
    if warp is None:
        return where
    thread = prim.Sum(
        tuple(
            prim.Product((step, prim.Sum((prim.Variable(lane[0]), -lane[1]))))
            for lane, step in zip(access.lanes, _steps(extents), strict=True)
            if lane is not None
        )
        or (0,)
    )
    low = prim.Comparison(thread, ">=", warp * CUDA.warp)
    high = prim.Comparison(thread, "<", (warp + 1) * CUDA.warp)
    return where & _sets.condition_set(prim.LogicalAnd((low, high)))


def _steps(extents: tuple[int, int, int]) -> tuple[int, int, int]:
    """By how much an index on x, y and z moves a thread's place in its block."""
    return 1, extents[0], extents[0] * extents[1]


def _order(model: Model, access: Access, where: AddressMap) -> list[str]:
    """Names that tell requests apart: blocks, z first, then loops, outermost first."""
    loops = [iname for iname, _ in model.order.place(access.statement)[1]]
    blocks = sorted(
        (n for n in where.requests if n not in loops),
        key=lambda n: (-_axis_number(model, access, n), n),
    )
    return [*blocks, *(n for n in loops if n in where.requests)]


def _axis_number(model: Model, access: Access, name: str) -> int:
    at = Instance(access.statement, "")
    for axis in model.axes:
        if index_name(axis, at) == name or model.axis_of(name) == axis:
            return axis[1] if isinstance(axis[1], int) else 0
    return 0


def _named(model: Model, access: Access, when: Mapping[str, int]) -> list[tuple[str, int]]:
    """The values of blocks and loops, under names that a person knows."""
    return [
        (CUDA.index("g", _axis_number(model, access, n)) if is_hidden(n) else n, v)
        for n, v in when.items()
    ]


def _touches(
    left: isl.Set,
    where: AddressMap,
    access: Access,
    when: Mapping[str, int],
    extents: tuple[int, int, int],
    sizes: Mapping[str, int],
    model: Model,
) -> tuple[Touch, ...]:
    """What each thread touches, threads in order."""
    dtype = model.array(access.array).dtype
    assert dtype is not None
    lanes = [lane[0] for lane in where.lanes if lane is not None]
    names = (*lanes, *where.others)
    indices = [substitute(index, sizes) for index in access.indices]
    found = []
    for system in systems(_sets.at_values(left, when), names, {}):
        for row in enumerated(system)[:, : len(names)].tolist():
            point = {**when, **dict(zip(names, row, strict=True))}
            x, y, z = (point[lane[0]] - lane[1] if lane else 0 for lane in where.lanes)
            index = x, y, z
            thread = sum(i * step for i, step in zip(index, _steps(extents), strict=True))
            cell = tuple(
                int(evaluate(i, {n: point[n] for n in variable_names(i)})) for i in indices
            )
            terms = where.address.terms.items()
            place = where.address.constant + sum(c * point[v.name] for v, c in terms)
            found.append(Touch(thread, index, cell, place * dtype.itemsize))
    return tuple(sorted(found, key=lambda touch: touch.thread))
