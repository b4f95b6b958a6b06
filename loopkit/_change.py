"""What a step makes of a kernel: the new one, and how its instances map to the old one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from loopkit._factored import Factored
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._renumbered import Renumbered


@dataclass(frozen=True)
class InstanceMap:
    """How instances of one new statement correspond to instances of an old one.

    ``values[iname]`` gives an old iname as an affine expression of the new
    statement's inames (and sizes); old inames that are missing kept their name.
    Of the inames in ``every``, the new instance stands for all values for which there are
    old instances.
    """

    new: str
    old: str
    values: Mapping[str, Expression] = field(default_factory=dict)
    every: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """What a transform returns: the new kernel and how old instances map to new ones.

    Statements of the new kernel that are in no map and keep an old id are
    mapped identically; those in ``moves`` only carry data.  ``fixed`` are sizes
    that became numbers.  ``assumes`` says that the step is a promise about
    sizes or data.  Each of ``wishes`` makes more of the new kernel, one after the
    other, and is granted where that can be proven.  ``arguments``, where it is given, says what
    each argument is called now, in their order; those that are missing are gone.
    A ``claim`` says what a step does, and that it does nothing else, where no map between sets
    could: such a step is read back.
    With ``parts`` the change is several, one after the other, each of which is proven.
    With ``is_text`` the new kernel, once it is proven, is what later steps are compared with: it
    makes some values in statements of its own that are those of several statements of the text.
    """

    kernel: Kernel
    instances: tuple[InstanceMap, ...] = ()
    moves: frozenset[str] = frozenset()
    fixed: Mapping[str, int] = field(default_factory=dict)
    assumes: bool = False
    wishes: tuple[Callable[[Kernel], Kernel], ...] = ()
    arguments: Mapping[str, str] | None = None
    is_text: bool = False
    claim: Renumbered | Factored | None = None
    parts: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if self.parts and self.kernel is not self.parts[-1].kernel:
            raise ValueError("a change in parts makes what the last of them makes")

    @property
    def merges(self) -> bool:
        """Whether some new instance stands for several old ones."""
        return any(m.every for m in self.instances)
