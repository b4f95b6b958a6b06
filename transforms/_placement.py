"""Where a statement that moves data can stand in the loop tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from loopkit._arrays import AddressSpace
from loopkit._errors import IllegalTransformError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis, Tag
from loopkit._tree import Entry, Path, common_prefix, entries_of, path_inames

AXES: Mapping[AddressSpace, tuple[type[Tag], ...]] = {
    AddressSpace.GLOBAL: (),
    AddressSpace.LOCAL: (GroupAxis,),
    AddressSpace.PRIVATE: (GroupAxis, LocalAxis),
}
"""Along which axes memory exists several times."""


def is_thread_iname(kernel: Kernel, iname: str) -> bool:
    """Whether ``iname`` is a thread axis, or is to become one."""
    return isinstance(kernel.iname_tags.get(iname), (LocalAxis, LocalAuto))


@dataclass(frozen=True)
class Place:
    """A place in the loop tree: inside ``path``, before entry ``first``.

    All users stand between the entries ``first`` and ``last`` (inclusive).
    ``coordinates`` are the parallel inames that a statement there has.
    """

    path: Path
    first: int
    last: int
    coordinates: frozenset[str]

    @property
    def inames(self) -> frozenset[str]:
        """All inames of a statement at this place."""
        return frozenset(path_inames(self.path)) | self.coordinates


def find_place(
    kernel: Kernel,
    users: Sequence[Statement],
    *,
    what: str,
    swept: Collection[str],
    needed: Collection[str],
    writers: Iterable[Statement],
    space: AddressSpace,
    outer: Collection[str] | None = None,
) -> Place:
    """The outermost place before all ``users`` where the inames in ``needed`` are known.

    It is inside every loop around users that holds one of ``writers``, so that
    what they write is there, and inside no loop over a ``swept`` iname.  With
    ``outer``, the place is inside exactly the shared loops over these inames.
    """
    entries = entries_of(kernel.tree)
    paths = kernel.paths
    shared = common_prefix([paths[u.id] for u in users])
    free = tuple(takewhile(lambda key: key[0] not in swept, shared))
    parallel = coordinates(kernel, users, swept, needed, space)
    for name in sorted(needed):
        if name not in path_inames(free) and name not in parallel:
            raise _out_of_reach(kernel, what, name, users, shared, swept, space)
    written_by = {writer.id for writer in writers}
    holding = {key for id_ in written_by for key in paths[id_]}
    depth = 0
    for number, key in enumerate(free, 1):
        wanted = key[0] in outer if outer is not None else key[0] in needed
        if wanted or key in holding:
            depth = number
    place = free[:depth]
    if outer is not None:
        _check_outer(what, place, needed, outer, parallel)
    first, last = span(entries, {u.id for u in users}, place)
    first = _in_front_of_sharing(kernel, entries, first, len(place), written_by)
    return Place(place, first, last, parallel)


def _in_front_of_sharing(
    kernel: Kernel, entries: Sequence[Entry], first: int, depth: int, writers: Collection[str]
) -> int:
    """The entry in front of those that wait for threads together with entry ``first``.

    A sum and what reads it are dealt out to threads as one, while nothing stands between them.
    None of the statements passed is one of ``writers``, or outside of the loops at ``depth``.
    """
    path = entries[first][1][:depth]
    while first > 0:
        (leaf, around), own = entries[first - 1], entries[first][0]
        if not isinstance(leaf, str) or not isinstance(own, str) or leaf in writers:
            break
        both = kernel.statement_by_id[leaf].inames & kernel.statement_by_id[own].inames
        waits = any(isinstance(kernel.iname_tags.get(iname), LocalAuto) for iname in both)
        if not waits or around[:depth] != path:
            break
        first -= 1
    return first


def coordinates(
    kernel: Kernel,
    users: Sequence[Statement],
    swept: Collection[str],
    needed: Collection[str],
    space: AddressSpace,
) -> frozenset[str]:
    """The parallel inames of a statement that fills memory in ``space`` for ``users``.

    Every block fills its own shared memory, every thread its private memory.  A user
    without an iname on an axis runs everywhere along it, so that it is filled there, too.
    """
    chosen: dict[object, str] = {}
    common: set[Tag | None] | None = None
    for user in users:
        tags = {kernel.iname_tags.get(iname) for iname in user.inames}
        common = tags if common is None else common & tags
        for iname in sorted(user.inames, key=lambda i: (i not in needed, i)):
            tag = kernel.iname_tags.get(iname)
            if isinstance(tag, AXES[space]) and iname not in swept:
                chosen.setdefault(tag, iname)
    return frozenset(i for tag, i in chosen.items() if i in needed or tag in (common or ()))


def _out_of_reach(
    kernel: Kernel,
    what: str,
    name: str,
    users: Sequence[Statement],
    shared: Path,
    swept: Collection[str],
    space: AddressSpace,
) -> IllegalTransformError:
    tag, path = kernel.iname_tags.get(name), path_inames(shared)
    without = next((u.id for u in users if name not in u.inames), None)
    if is_thread_iname(kernel, name):
        why = f" ({tag}), but shared memory exists once for all threads of a block"
        instead = (
            f"sweep '{name}' too, or give each thread a copy of its own "
            "(temporary_address_space='private')"
        )
    elif isinstance(tag, GroupAxis):
        why = f" ({tag}), but global memory exists once for all blocks"
        instead = "stage in shared or private memory"
    elif name in path:
        front = [i for i in path[: path.index(name) + 1] if i not in swept]
        order = ",".join([*front, *(i for i in path if i not in front)])
        around = next(i for i in path if i in swept)
        why = f", which is a loop inside the swept loop '{around}'"
        instead = f"prioritize_loops('{order}') moves '{name}' out; or sweep '{name}', too"
    elif without is not None:
        why = f", but statement '{without}' that uses it is outside of that loop"
        instead = f"sweep '{name}', too, or select statements by `within`"
    else:
        why = f", but its users do not share one loop over '{name}'"
        instead = f"sweep '{name}', too, or select one of the users by `within`"
    return IllegalTransformError(f"{what} depends on '{name}'{why}", instead=instead)


def _check_outer(
    what: str,
    path: Path,
    needed: Collection[str],
    outer: Collection[str],
    parallel: Collection[str],
) -> None:
    for name in sorted(needed):
        if name not in outer and name not in parallel:
            raise IllegalTransformError(
                f"{what} depends on '{name}', which is not among fetch_outer_inames",
                instead=f"add '{name}' there, or sweep it",
            )
    inames = path_inames(path)
    for number, name in enumerate(inames):
        if name in outer:
            continue
        within = [other for other in inames[number + 1 :] if other in outer]
        if within:
            raise IllegalTransformError(
                f"{what} is to be filled inside of loop '{within[0]}', which stands inside of "
                f"loop '{name}'; but fetch_outer_inames does not name '{name}'",
                instead=f"add '{name}' there, or move the loop by prioritize_loops",
            )
        raise IllegalTransformError(
            f"what is copied is written inside of loop '{name}', so {what} must be filled there, "
            f"too; but fetch_outer_inames does not name '{name}'",
            instead=f"add '{name}' there",
        )


def span(entries: Sequence[Entry], users: Collection[str], place: Path) -> tuple[int, int]:
    """The entries of the first and the last user, widened to whole loops inside ``place``."""
    numbers = [i for i, (statement, _) in enumerate(entries) if statement in users]
    first, last = min(numbers), max(numbers)
    depth = len(place)

    def together(a: int, b: int) -> bool:
        left, right = entries[a][1][: depth + 1], entries[b][1][: depth + 1]
        return len(left) > depth and left == right

    while first > 0 and together(first - 1, first):
        first -= 1
    while last + 1 < len(entries) and together(last, last + 1):
        last += 1
    return first, last
