"""alias_temporaries: arrays in shared memory that lie over each other."""

from __future__ import annotations

from dataclasses import replace

from loopkit import _arguments as kind
from loopkit._arrays import AddressSpace
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._kernel import Kernel
from loopkit._places import space_of
from loopkit._transform import transform
from loopkit.transforms._common import temporary_of, with_arrays


@transform
def alias_temporaries(
    kernel: Kernel,
    names: kind.Names,
    base_name_prefix: kind.NewName = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Lay shared temporaries over each other, whose values are not needed at the same time.

    Before: ``a_s[32, 32]`` and ``w_s[512]``, 6 KiB.  After ``alias_temporaries("a_s, w_s")``:
    4 KiB, both at their beginning, with barriers between uses of one and writes of the other.

    :arg names: names of temporaries in shared memory, ``"a_s, w_s"`` or a sequence, two at least.
    :arg base_name_prefix: what the storage is called; such a name is made up without it.
    :raises IllegalTransformError: where one of them is in other memory, or a value would be
        overwritten before it was read for the last time.
    """
    chosen = kind.names_in(names)
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise InvalidArgumentError(
            f"names has {', '.join(map(repr, chosen)) or 'no name'}, and it takes two different "
            "temporaries, or more, to share a storage"
        )
    found = [temporary_of(kernel, name) for name in chosen]
    for temporary in found:
        space = space_of(kernel, temporary)
        if space is not AddressSpace.LOCAL:
            why = "; of registers, the compiler sees to it" if space is AddressSpace.PRIVATE else ""
            raise IllegalTransformError(
                f"'{temporary.name}' is in {space.word} memory, and only arrays in shared memory "
                f"can be laid over each other{why}",
                instead=f"set_temporary_address_space('{temporary.name}', 'shared')",
            )
        if temporary.base_storage is not None:
            raise IllegalTransformError(
                f"'{temporary.name}' already lies in the storage '{temporary.base_storage}'",
                instead="name all that are to share one storage in one call",
            )
    taken = {t.base_storage for t in kernel.temporaries if t.base_storage is not None}
    wanted = base_name_prefix or f"{chosen[0]}_storage"
    base = kernel.fresh_name(wanted, taken)
    laid = [replace(t, base_storage=base, address_space=AddressSpace.LOCAL) for t in found]
    return Change(with_arrays(kernel, {t.name: t for t in laid}))
