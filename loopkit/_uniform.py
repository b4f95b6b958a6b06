"""Which values are equal in all threads of a block, and where threads may diverge at a barrier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopkit._arrays import AddressSpace
from loopkit._cached import memoised
from loopkit._collectives import combined_axes, is_alike_in_all, is_collective, scanned_blocks
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._tags import LocalAuto, LocalAxis
from loopkit._tree import path_inames

Axes = tuple[int, ...] | None


@memoised
def thread_inames(kernel: Kernel, axes: Axes) -> frozenset[str]:
    """The inames on thread axes, or tagged ``l.auto``; of some axes, or None for all."""
    tags = [(i, t) for i, t in kernel.iname_tags.items() if isinstance(t, (LocalAxis, LocalAuto))]
    return frozenset(i for i, t in tags if not axes or isinstance(t, LocalAuto) or t.axis in axes)


def divergent_bounds(kernel: Kernel, loops: Iterable[str]) -> tuple[str, ...]:
    """The loaded bounds of some loops that may differ between the threads of a block."""
    handed = kernel.arg_by_name.keys() - kernel.writers.keys()  # by an earlier launch
    names = kernel.loaded_bounds(loops)
    return tuple(n for n in names if n not in handed and not _is_uniform(kernel, n, ()))


def varying(kernel: Kernel, names: Iterable[str], axes: Axes = None) -> tuple[str, ...]:
    """Those of some names, in order, that may have different values in threads of a block.

    With ``axes``, in threads that differ along these axes only.
    """
    return tuple(sorted(n for n in names if not _is_fixed(kernel, n, (), axes)))


def spares(kernel: Kernel, condition: Expression, name: str) -> bool:
    """Whether a data-dependent condition diverges in a block, but not among combining threads."""
    names, axes = variable_names(condition), combined_axes(kernel)[name]
    is_open = names <= kernel.integers or not varying(kernel, names) or scanned_blocks(kernel, name)
    return not (is_open or varying(kernel, names, axes))


def _is_uniform(kernel: Kernel, name: str, users: tuple[str, ...], axes: Axes = None) -> bool:
    """Whether all threads of a block compute the same value of ``name``."""
    temporary = kernel.temporary_by_name.get(name)
    if temporary is None or temporary.address_space is not AddressSpace.PRIVATE:
        return axes is not None  # threads that are together see one value of what they share
    if name in users or _is_of_all(kernel, name, axes):
        return True
    for writer in kernel.writers.get(name, ()):
        if writer.inames & thread_inames(kernel, axes):
            return False
        for read in dict(kernel.reads_of(writer)):
            if not _is_fixed(kernel, read, (*users, name), axes):
                return False
    return True


def _is_of_all(kernel: Kernel, name: str, axes: Axes) -> bool:
    """Whether ``name`` is an accumulator that all threads of a block have combined."""
    along = combined_axes(kernel).get(name)
    if along is None or not is_alike_in_all(kernel, name):
        return False
    tags = (kernel.iname_tags[i] for i in thread_inames(kernel, axes))
    return all(isinstance(tag, LocalAxis) and tag.axis in along for tag in tags)


def _is_fixed(kernel: Kernel, name: str, users: tuple[str, ...], axes: Axes) -> bool:
    """Whether a name has one value for all threads: it is never written, or uniformly."""
    unwritten = name not in kernel.writers and name not in thread_inames(kernel, axes)
    return unwritten or _is_uniform(kernel, name, users, axes)


@dataclass(frozen=True)
class Parting:
    """A place in the nest where threads may diverge before a combination, with the reason."""

    combination: Statement
    where: str
    names: tuple[str, ...]

    @property
    def why(self) -> str:
        """The place and the names, as text."""
        listed = ", ".join(f"'{name}'" for name in self.names)
        verb = "decides" if len(self.names) == 1 else "decide"
        return f"inside of {self.where} that {listed} {verb}, which may differ between threads"


def partings(kernel: Kernel) -> Iterator[Parting]:
    """The collective statements that data may keep some threads of a block from executing.

    Inames and sizes do not: where only they decide, all threads combine, and the result is used
    only where the guards hold.  Address spaces must have been decided and combinations placed.
    """
    for statement in kernel.statements:
        if not is_collective(kernel, statement):
            continue
        data = (p for p in statement.predicates if not variable_names(p) <= kernel.integers)
        if own := varying(kernel, frozenset().union(*map(variable_names, data))):
            yield Parting(statement, "a condition on data", own)
        loops = path_inames(kernel.paths[statement.id])
        if names := divergent_bounds(kernel, loops):
            yield Parting(statement, f"the loop over '{loops[-1]}'", names)
