"""Loops that are left early: ``break`` in place of a flag.

A flag (:mod:`loopkit._guarded`) is a predicate of all statements in its loop. Where these
statements are exactly one loop of the nest, in the body that sets the flag, clearing the flag has
the same effect as leaving the loop, so no flag is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace
from loopkit._cached import cached_property
from loopkit._frozen import dataclass
from loopkit._guarded import Flag, flags_of
from loopkit._kernel import Kernel, Statement
from loopkit.codegen.barriers import GuardedLoop, Placed, leaves


@dataclass(frozen=True)
class Exits:
    """The flags that need no code, and the loops that are left instead.

    ``loops`` maps the id of a loop node to its flags.
    """

    flags: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    loops: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def conditions(self) -> frozenset[prim.Variable]:
        """The conditions that hold in every iteration, since the loop has not been left."""
        return frozenset(map(prim.Variable, self.flags))


def exits_of(kernel: Kernel, placed: Placed, is_everywhere: Callable[[Statement], bool]) -> Exits:
    """The loops of a nest that are left early.

    ``is_everywhere`` says whether all threads execute a statement.
    """
    found: dict[int, tuple[str, ...]] = {}
    taken: list[Flag] = []
    flags = {flag.start.id: flag for flag in flags_of(kernel).values()}
    for body in _bodies(placed) if flags else ():
        for number, node in enumerate(body):
            flag = flags.get(node) if isinstance(node, str) else None
            if flag is None or not is_everywhere(flag.start):
                continue
            if kernel.temporary_by_name[flag.name].address_space is not AddressSpace.PRIVATE:
                continue
            users = {s.id for s in kernel.users(flag.name)} - {flag.start.id}
            loop = next((n for n in body[number:] if users & set(leaves(n))), None)
            if not isinstance(loop, GuardedLoop):
                continue
            inside = set(leaves(loop))
            if users == inside and all(flag.guards(kernel.statement_by_id[s]) for s in users):
                found[id(loop)] = (*found.get(id(loop), ()), flag.name)
                taken.append(flag)
    names = frozenset(flag.name for flag in taken)
    return Exits(names, frozenset(flag.start.id for flag in taken), found)


def _bodies(nodes: Placed) -> Iterator[Placed]:
    yield nodes
    for node in nodes:
        if isinstance(node, GuardedLoop):
            yield from _bodies(node.body)
