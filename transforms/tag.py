"""Mapping inames to blocks, threads and unrolled loops, and the order in which loops nest."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from loopkit import _arguments as kind
from loopkit._called import frames_inside
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    LoopkitWarning,
    NothingToDoError,
    UnknownNameError,
)
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._relations import grouped
from loopkit._tags import InstructionParallel, LocalAuto, LocalAxis, Tag, Unroll, parse_tag
from loopkit._transform import transform
from loopkit.transforms import _loop_nests
from loopkit.transforms._expand import in_order, settled


def _fitting(kernel: Kernel, pattern: str, ignore_nonexistent: bool = False) -> list[str]:
    """The inames that a pattern fits."""
    if pattern in kernel.home_domain:
        return [pattern]
    inames = [i for i in kernel.all_inames if fnmatchcase(i, pattern)]
    if not inames and not ignore_nonexistent:
        raise UnknownNameError("iname", pattern, kernel.all_inames)
    return inames


@transform
def tag_inames(
    kernel: Kernel,
    iname_to_tag: kind.TagRequest,
    force: kind.Flag = False,
    ignore_nonexistent: kind.Flag = False,
    *,
    unchecked: bool = False,
) -> Change:
    """Map inames to blocks, threads or unrolled loops.

    Before: for i: S(i)        After (``"i:l.0"``): S(threadIdx.x), and no loop.

    Tags are ``g.N`` (block axis N), ``l.N`` (thread axis N), ``l.auto`` (the
    lowest thread axis that is free around the iname), ``unr`` (unrolled loop),
    ``ilp`` (copies of each statement side by side) and ``for`` (a plain loop).

    :arg iname_to_tag: a dict, a list of pairs, or a string such as
        ``"i:l.0, j:g.1"``; inames may be globs.
    :arg force: replace tags that inames already have.
    :arg ignore_nonexistent: skip inames that do not exist.
    :raises IllegalTransformError: where the hardware cannot carry an iname so tagged.
    :raises RaceError: where threads or blocks would meet in a cell in no order.
    """
    tags: dict[str, Tag | None] = {}
    for pattern, tag in kind.tag_pairs(iname_to_tag):
        fitting = _fitting(kernel, pattern, ignore_nonexistent)
        tags |= dict.fromkeys(fitting, parse_tag(tag))
    for iname, new in tags.items():
        existing = kernel.iname_tags.get(iname)
        is_open = existing is None or isinstance(existing, LocalAuto)
        if not is_open and existing != new and not force:
            raise IllegalTransformError(
                f"iname '{iname}' is already tagged {existing}",
                instead=f"force=True replaces that by {new or 'for'}",
            )
    return _retagged(kernel, tags)


@transform
def untag_inames(
    kernel: Kernel,
    iname_to_untag: kind.Patterns,
    tag_type: kind.TagType = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Remove the tags of inames, which become sequential loops.

    Before: S(threadIdx.x)     After: for i: S(i)

    The loop goes as far out as the order of the domains says, inside the loops
    that its bounds need and those that it shares with statements outside it.

    :arg iname_to_untag: names of inames, ``"i, j"`` or a sequence; globs.
    :arg tag_type: only where the tag is this one (a spelling or a class).
    :raises IllegalTransformError: where nothing is so tagged, or the loop has no place.
    """
    patterns = kind.names_in(iname_to_untag)
    chosen: dict[str, Tag | None] = {}
    for pattern in patterns:
        inames = _fitting(kernel, pattern)
        chosen |= {i: None for i in inames if _has_tag(kernel.iname_tags.get(i), tag_type)}
    if not chosen:
        raise NothingToDoError(
            f"none of these inames has such a tag: {', '.join(patterns)}",
            instead="tagged are: " + (", ".join(f"{i}:{t}" for i, t in kernel.tags) or "none"),
        )
    return _retagged(kernel, chosen)


def _has_tag(tag: Tag | None, wanted: str | type[Tag] | Tag | None) -> bool:
    if tag is None or wanted is None:
        return tag is not None
    return isinstance(tag, wanted) if isinstance(wanted, type) else tag == parse_tag(wanted)


def _retagged(kernel: Kernel, tags: Mapping[str, Tag | None]) -> Change:
    return settled(kernel, Change(with_tags(kernel, tags)))


@transform
def prioritize_loops(
    kernel: Kernel, loop_priority: kind.Names, *, unchecked: bool = False
) -> Change:
    """Nest loops in the given order, outermost first.

    Before: for i: for k: S(i, k)      After (``"k, i"``): for k: for i: S(i, k)

    The named loops are put into the places that they hold now; other loops stay
    where they are, and so do parallel inames, which are no loops: one loop alone, or an
    iname that there is not (yet), changes nothing.  Bounds follow: in
    ``{ [i, j]: 0 <= j <= i < n }`` either loop may be the outer one.  A loop that
    holds other statements beside is cut in two.  An accumulator that loses its
    common loop by that gets an axis for it; a temporary of the person's own
    needs ``privatize_temporaries_with_inames`` first.

    :arg loop_priority: ``"i, j, k"`` or a sequence.
    :raises IllegalTransformError: where loaded bounds forbid the order, a temporary would have to
        hold several values, or a result would change.
    """
    wanted = kind.names_in(loop_priority)
    if len(set(wanted)) < len(wanted):
        raise InvalidArgumentError(f"an iname is named twice in {', '.join(wanted)}")
    for iname in wanted:
        if iname not in kernel.home_domain:
            near = UnknownNameError("iname", iname, kernel.all_inames)
            warnings.warn(LoopkitWarning(f"prioritize_loops: {near}"), stacklevel=frames_inside())
    return in_order(kernel, wanted)


def with_tags(kernel: Kernel, tags: Mapping[str, Tag | None]) -> Kernel:
    """The kernel with tags set (None removes one), checked, and loops adjusted."""
    merged = {**kernel.iname_tags, **{i: t for i, t in tags.items() if t is not None}}
    for iname, tag in tags.items():
        if tag is None:
            merged.pop(iname, None)
        elif isinstance(tag, LocalAuto):
            merged[iname] = _free_axis(kernel, iname, merged)
    new = kernel.with_(tags=tuple(merged.items()))
    _check_tags(new, [i for i, t in tags.items() if t is not None])
    return _loop_nests.settled_tree(new)


def _free_axis(kernel: Kernel, iname: str, tags: Mapping[str, Tag]) -> Tag:
    """The lowest thread axis that no iname beside ``iname`` has."""
    beside = {i for s in kernel.statements if iname in s.inames for i in s.inames} - {iname}
    taken = {t.axis for i in beside if isinstance(t := tags.get(i), LocalAxis)}
    for axis in range(3):
        if axis not in taken:
            return LocalAxis(axis)
    why = "all three thread axes are taken around it"
    raise _untaggable(iname, "l.auto", why, "join inames first: join_inames")


def _untaggable(iname: str, tag: Tag | str, why: str, instead: str) -> IllegalTransformError:
    return IllegalTransformError(f"iname '{iname}' cannot be tagged {tag}: {why}", instead=instead)


def _check_tags(kernel: Kernel, inames: Iterable[str]) -> None:
    alike = grouped((tag, iname) for iname, tag in kernel.tags)
    for iname in inames:
        tag = kernel.iname_tags[iname]
        if tag.is_parallel:
            _check_axis_bounds(kernel, iname, tag)
            check_clashes(kernel, iname, tag, alike[tag])
        elif isinstance(tag, (Unroll, InstructionParallel)):
            _check_constant_length(kernel, iname, tag)
        if isinstance(tag, InstructionParallel):
            _check_loaded_bounds(kernel, iname)


def _check_axis_bounds(kernel: Kernel, iname: str, tag: Tag) -> None:
    domain = _loop_nests.hull(kernel, iname)
    if not kernel.parents_of(iname) and _loop_nests.is_bounded(domain, iname):
        return
    if domain.is_empty() or _loop_nests.extent(kernel, iname) is not None:
        return
    loaded = kernel.loaded_bounds([iname])
    if not loaded:
        raise _untaggable(
            iname,
            tag,
            "it has no bounds",
            "give its domain a lower and an upper bound that depend on sizes alone",
        )
    raise _untaggable(
        iname,
        tag,
        f"its length depends on data ('{loaded[0]}'), and the number of threads is fixed when a "
        "kernel starts",
        f"bound it by a size as well, or split it: split_iname('{iname}', 32, inner_tag='{tag}')",
    )


def check_clashes(kernel: Kernel, iname: str, tag: Tag, same: Sequence[str]) -> None:
    """Refuse an iname that cannot share its axis with the others that are tagged the ``same``."""
    if len(same) == 1:
        return
    for statement in kernel.statements:
        if iname not in statement.inames:
            continue
        for other in same:
            if other != iname and other in statement.inames:
                raise IllegalTransformError(
                    f"inames '{other}' and '{iname}' cannot both be tagged {tag}: "
                    f"statement '{statement.id}' is inside both",
                    instead=f"use another axis, or join them: join_inames(['{other}', '{iname}'])",
                )


def _check_loaded_bounds(kernel: Kernel, iname: str) -> None:
    """Copies side by side cannot each have a bound of their own for one loop."""
    for domain in kernel.domains:
        for name in sorted(domain.parameters & kernel.temporary_by_name.keys()):
            if any(iname in w.inames for w in kernel.writers.get(name, ())):
                raise _untaggable(
                    iname,
                    "ilp",
                    f"each of its copies would have a separate '{name}', and '{name}' bounds the "
                    f"loop over '{domain.inames[0]}', which all copies share",
                    f"tag '{iname}' unr: its copies then follow each other",
                )


def _check_constant_length(kernel: Kernel, iname: str, tag: Tag) -> None:
    if _loop_nests.longest_run(kernel, iname) is None:
        found = _loop_nests.extent(kernel, iname)
        what = f"has {to_text(found[1])} iterations" if found else "has no bounds"
        raise _untaggable(
            iname,
            tag,
            f"it {what}, and only a constant number of copies can be written out",
            f"split it: split_iname('{iname}', 4, inner_tag='{tag}')",
        )
