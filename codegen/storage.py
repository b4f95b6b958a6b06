"""The storage of temporaries, and the layout of shared memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from loopkit._arrays import AddressSpace, Nested, TemporaryVariable, strides_of
from loopkit._errors import ResourceError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._open_lengths import constant_shape
from loopkit._places import shared_storage
from loopkit._target import CUDA

ALIGNMENT = 16


@dataclass(frozen=True)
class Declared:
    """How one temporary is declared: C dimensions in storage order, and its bytes.

    ``order[i]`` is the axis that C dimension ``i`` holds; None where an
    explicit stride makes the temporary one flat array.
    """

    temporary: TemporaryVariable
    dimensions: tuple[int, ...]
    order: tuple[int, ...] | None
    size: int
    offset: int | None = None


@dataclass(frozen=True)
class Storage:
    """All temporaries of a kernel, and the shared memory that a block needs."""

    declared: dict[str, Declared]
    static_shared: int
    dynamic_shared: int


def _declare(temporary: TemporaryVariable) -> Declared:
    shape = constant_shape(temporary)
    item = (temporary.dtype or np.dtype(np.float32)).itemsize
    tags = temporary.dim_tags
    if tags is None:
        return Declared(temporary, shape, tuple(range(len(shape))), prod(shape) * item)
    if all(isinstance(t, Nested) for t in tags):
        levels = [t.level for t in tags if isinstance(t, Nested)]
        order = tuple(sorted(range(len(shape)), key=lambda axis: -levels[axis]))
        return Declared(temporary, tuple(shape[a] for a in order), order, prod(shape) * item)
    strides = [int(s) for s in strides_of(temporary)]
    count = 1 + sum((e - 1) * s for e, s in zip(shape, strides, strict=True))
    return Declared(temporary, (count,), None, count * item)


def lay_out(kernel: Kernel, reserved: int = 0) -> Storage:
    """Declarations of all private and shared temporaries.

    ``reserved`` bytes of static shared memory are for others.  Shared memory beyond 48 KiB a
    block is taken dynamically; beyond 227 KiB raises :class:`ResourceError`.
    """
    declared = {
        t.name: _declare(t)
        for t in kernel.temporaries
        if t.address_space in (AddressSpace.PRIVATE, AddressSpace.LOCAL)
    }
    shared = [d for d in declared.values() if d.temporary.address_space is AddressSpace.LOCAL]
    together = shared_storage(kernel)
    offset = 0
    begins: dict[object, int] = {}
    placed = []
    for declaration in shared:
        name = declaration.temporary.name
        storage = together.get(name, name)
        if storage not in begins:
            begins[storage] = offset = -(-offset // ALIGNMENT) * ALIGNMENT
            offset += max(declared[other].size for other in together.get(name, (name,)))
        placed.append(replace(declaration, offset=begins[storage]))
    if offset + reserved > CUDA.shared:
        listed = ", ".join(
            f"{d.temporary.name} {'x'.join(map(str, d.dimensions))} "
            f"{d.temporary.dtype} ({d.size / 1024:.1f} KiB)"
            for d in shared
        )
        raise ResourceError(
            f"a block needs {(offset + reserved) / 1024:.1f} KiB of shared memory, but no GPU has "
            f"more than {CUDA.shared // 1024} KiB a block: {listed}",
            instead="make the tiles smaller, or keep some of the data in private memory",
        )
    # Arrays that C declares have places of their own.
    if offset + reserved <= CUDA.static_shared and not together:
        return Storage(declared, offset + reserved, 0)
    declared.update({d.temporary.name: d for d in placed})
    return Storage(declared, reserved, offset)


def global_temporaries(kernel: Kernel) -> list[TemporaryVariable]:
    """Temporaries in global memory, which the executor allocates."""
    return [t for t in kernel.temporaries if t.address_space is AddressSpace.GLOBAL]
