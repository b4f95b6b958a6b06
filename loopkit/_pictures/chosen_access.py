"""Selection of the memory request that a picture shows: by array, statement and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._budget import in_turn
from loopkit._costs.accesses import Access, accesses_of, address_map, in_calls, text_of
from loopkit._costs.launch_counts import launch_with, launched
from loopkit._costs.requests import Request, request_in
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError, LoopkitError, UnknownNameError, counted
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._pictures.shown_instances import At, restricted
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import index_name
from loopkit._spelling import shown
from loopkit._target import CUDA
from loopkit.codegen.hardware import find_hardware


@in_turn
def chosen_request(
    kernel: Kernel,
    array: str,
    statement: str | None,
    access: int | str | None,
    block: Sequence[int] | int | None,
    warp: int | None,
    at: At | None,
    sizes: Mapping[str, int],
    asked: str,
) -> Request:
    """One request; of what is left open, the first access, block and iterations that there are."""
    sizes = check_sizes(kernel, sizes, asked)
    kernel.array(array)
    if statement is not None:
        kernel.statement(statement)
    every = launched(kernel)
    users = [a for one in every for a in accesses_of(one.model.kernel) if a.array == array]
    found = _accesses(users, array, statement)
    candidates = found if access is None else [_chosen(found, access)]
    for chosen in candidates:
        one = launch_with(kernel, chosen.statement)
        model, threads = one.model, prod(find_hardware(one.model.kernel).block)
        last = (threads - 1) // CUDA.warp
        if warp is not None and not (isinstance(warp, int) and 0 <= warp <= last):
            raise InvalidArgumentError(
                f"a block of '{one.kernel.name}' has {counted(threads, 'thread')}: there is no "
                f"warp {shown(warp)}",
                instead=f"0 to {last}, or None for all",
            )
        try:
            where = in_calls(address_map(model, chosen, sizes), one.calls)
        except NotAffineError:
            continue
        inames = (*model.statement[chosen.statement].inames, *one.calls.loops)
        known = {n: prim.Variable(n) for n in inames}
        if access is None and not known.keys() >= set(at or {}):
            continue
        left = restricted(_sets.at_values(where.domain, sizes), known, at or {})
        left = in_block(left, model, chosen.statement, block)
        made = request_in(left, kernel, model, chosen, where, sizes, warp)
        if made is not None:
            return replace(made, others=tuple(text_of(a) for a in found if a is not chosen))
    raise _nobody(kernel, candidates, warp, at or {}, sizes)


def _accesses(users: Sequence[Access], array: str, statement: str | None) -> list[Access]:
    """The accesses to an array that a statement makes, or all statements."""
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
    """The access with the given number or text."""
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
    kernel: Kernel,
    candidates: Sequence[Access],
    warp: int | None,
    at: At,
    sizes: Mapping[str, int],
) -> LoopkitError:
    """The error where no thread makes a matching request."""
    first, names = candidates[0], set[str]()
    for access in candidates:
        one = launch_with(kernel, access.statement)
        names |= {*one.model.statement[access.statement].inames, *one.calls.loops}
    for name in at:
        if name not in names:
            return UnknownNameError("iname", str(name), names)
    try:
        address_map(launch_with(kernel, first.statement).model, first, sizes)
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
