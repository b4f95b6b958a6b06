"""Where temporaries live that nobody gave a place."""

from __future__ import annotations

from dataclasses import replace

from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._tags import GroupAxis, LocalAxis


def decide_address_spaces(kernel: Kernel) -> Kernel:
    """Replace ``AUTO`` by what the writes' subscripts say.

    A temporary whose subscript has a block iname lives in global memory, one
    with a thread iname in shared memory, all others in private memory.
    """
    if all(t.address_space is not AddressSpace.AUTO for t in kernel.temporaries):
        return kernel
    decided = []
    for temporary in kernel.temporaries:
        if temporary.address_space is AddressSpace.AUTO:
            temporary = replace(temporary, address_space=_space_of(kernel, temporary))
        decided.append(temporary)
    return kernel.with_(temporaries=tuple(decided))


def _space_of(kernel: Kernel, temporary: TemporaryVariable) -> AddressSpace:
    space = AddressSpace.PRIVATE
    for statement in kernel.writers.get(temporary.name, ()):
        for index in statement.write[1]:
            for name in variable_names(index):
                tag = kernel.iname_tags.get(name)
                if isinstance(tag, GroupAxis):
                    return AddressSpace.GLOBAL
                if isinstance(tag, LocalAxis):
                    space = AddressSpace.LOCAL
    return space
