"""Which memory a temporary is in, and what follows from it."""

from __future__ import annotations

from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._kernel import Kernel
from loopkit._places import space_of
from loopkit._tags import LocalAuto, LocalAxis

_SPELLINGS = {
    "private": AddressSpace.PRIVATE,
    "local": AddressSpace.LOCAL,
    "shared": AddressSpace.LOCAL,
    "global": AddressSpace.GLOBAL,
    "auto": AddressSpace.AUTO,
}


def parse_address_space(space: AddressSpace | str | None) -> AddressSpace:
    """The address space that ``"private"``, ``"shared"``, ``"local"``, ... spells."""
    if isinstance(space, AddressSpace):
        return space
    if not isinstance(space, str):
        raise InvalidArgumentError(
            f"an address space is a name, not {space!r}",
            instead="it is 'private', 'shared' (or 'local') or 'global'",
        )
    found = _SPELLINGS.get(space.lower())
    if found is None:
        raise UnknownNameError("address space", space, _SPELLINGS)
    return found


def is_thread_iname(kernel: Kernel, iname: str) -> bool:
    """Whether ``iname`` is a thread axis, or is to become one."""
    return isinstance(kernel.iname_tags.get(iname), (LocalAxis, LocalAuto))


def is_private(kernel: Kernel, temporary: TemporaryVariable) -> bool:
    """Whether each thread has its own copy of a temporary."""
    return space_of(kernel, temporary) is AddressSpace.PRIVATE
