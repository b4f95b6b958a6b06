"""``knl.costs(n=4096)``: what a launch does, counted exactly from the kernel's sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from loopkit._budget import in_turn
from loopkit._costs.accesses import accesses_of
from loopkit._costs.counting import Counting
from loopkit._costs.devices import Device, chosen
from loopkit._costs.operations import operations_of
from loopkit._costs.sizes import check_sizes
from loopkit._costs.values import SPACES, AccessCosts, Costs, Footprint
from loopkit._kernel import Kernel
from loopkit._poly.integer_points import EndlessError, TooManyPointsError, count
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._program import Program
from loopkit._types import known_types

__all__ = ["AccessCosts", "Costs", "Footprint", "costs"]


@in_turn
def costs(
    kernel: Kernel,
    sizes: Mapping[str, int],
    device: Device | str | None = None,
    arch: str | None = None,
) -> Costs:
    """What a launch with these sizes does: operations, bytes, sectors and bank conflicts, exactly.

    Counted from the kernel's sets, without a GPU and without enumerating instances: a product
    of 4096 takes no longer than one of 64.  Operations are those of the text: arithmetic of
    subscripts, bounds and guards, which code generation adds or saves, is not among them.

    *sizes* are the kernel's integer parameters, each a number.  *device* is what ``resources``,
    ``occupancy``, ``tail`` and ``roofline`` are of (a name, such as ``"H100"``, or a
    :class:`Device`; the GPU here or else an H100 if it is left out), *arch* what its code is
    compiled for.

    Returns a :class:`Costs`, which prints as tables.  Raises
    :class:`~loopkit.InvalidArgumentError` for sizes that are missing or that no call may have,
    :class:`~loopkit.UnknownNameError` for others and for devices, and what lowering raises.
    """
    from loopkit.codegen.prepare import prepare

    check_sizes(kernel, sizes, "costs")
    launch = kernel.launch_config(**sizes)
    made: Program = kernel.program()
    model = model_of(prepare(kernel))
    statements = {s.id: _instances(model, s.id, sizes) for s in model.kernel.statements}
    counter = Counting(model, sizes, launch.block)
    accesses = [a for a in accesses_of(model.kernel) if counter.space(a) in SPACES.values()]
    return Costs(
        kernel=kernel.name,
        sizes=tuple(sorted(sizes.items())),
        grid=launch.grid,
        block=launch.block,
        shared_bytes=made.static_shared + made.dynamic_shared,
        instances=tuple((name, counted) for name, (counted, _) in statements.items()),
        operations=_operations(model, {n: c for n, (c, _) in statements.items()}),
        accesses=tuple(map(counter.costs, accesses)),
        footprints=tuple(counter.footprints(accesses)),
        source=kernel,
        at_most=tuple(name for name, (_, exact) in statements.items() if not exact),
        asked=None if device is None else chosen(device),
        arch=arch,
    )


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
