"""Mapping inames to blocks, threads and unrolled loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from loopkit import _arguments as kind
from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError
from loopkit._kernel import Kernel
from loopkit._tags import Tag, parse_tag
from loopkit._transform import transform
from loopkit.transforms._expand import expand_accumulators
from loopkit.transforms._loop_nests import check_nesting
from loopkit.transforms._tagging import describe, with_tags

TagRequest = str | Mapping[str, str | Tag | None] | Iterable[str | tuple[str, str | Tag | None]]


def _pairs(request: TagRequest) -> list[tuple[str, str | Tag | None]]:
    if isinstance(request, str):
        request = names_in(request)
    if isinstance(request, Mapping):
        return list(request.items())
    result: list[tuple[str, str | Tag | None]] = []
    for item in request:
        if isinstance(item, str):
            iname, colon, tag = item.partition(":")
            if not colon:
                raise InvalidArgumentError(
                    f"'{item}' names no tag", instead="write 'iname:tag', for example 'i:l.0'"
                )
            result.append((iname.strip(), tag.strip()))
        else:
            iname, new = item
            result.append((iname, new))
    return result


def _resolve(
    kernel: Kernel, request: TagRequest, ignore_nonexistent: bool
) -> dict[str, Tag | None]:
    found: dict[str, Tag | None] = {}
    for pattern, tag in _pairs(request):
        parsed = parse_tag(tag)
        inames = [i for i in kernel.all_inames if fnmatchcase(i, pattern)]
        if not inames and not ignore_nonexistent:
            raise UnknownNameError("iname", pattern, kernel.all_inames)
        for iname in inames:
            found[iname] = parsed
    return found


@transform
def tag_inames(
    kernel: Kernel,
    iname_to_tag: kind.TagRequest,
    force: kind.Flag = False,
    ignore_nonexistent: kind.Flag = False,
    *,
    unchecked: bool = False,
) -> Change:
    """Say what inames are mapped to.

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
    tags = _resolve(kernel, iname_to_tag, ignore_nonexistent)
    for iname, tag in tags.items():
        existing = kernel.iname_tags.get(iname)
        if existing is not None and existing != tag and not force:
            raise IllegalTransformError(
                f"iname '{iname}' is already tagged {existing}",
                instead=f"force=True replaces that by {describe(tag)}",
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
    """Make tagged inames plain loops again.

    Before: S(threadIdx.x)     After: for i: S(i)

    The loop goes as far out as the order of the domains says, inside the loops
    that its bounds need and those that it shares with statements outside it.

    :arg iname_to_untag: names of inames, ``"i, j"`` or a sequence; globs.
    :arg tag_type: only where the tag is this one (a spelling or a class).
    :raises IllegalTransformError: where nothing is so tagged, or the loop has no place.
    """
    patterns = names_in(iname_to_untag)
    chosen: dict[str, Tag | None] = {}
    for pattern in patterns:
        inames = [i for i in kernel.all_inames if fnmatchcase(i, pattern)]
        if not inames:
            raise UnknownNameError("iname", pattern, kernel.all_inames)
        chosen |= {i: None for i in inames if _has_tag(kernel.iname_tags.get(i), tag_type)}
    if not chosen:
        raise IllegalTransformError(
            f"none of these inames has such a tag: {', '.join(patterns)}",
            instead="tagged are: " + (", ".join(f"{i}:{t}" for i, t in kernel.tags) or "none"),
        )
    return _retagged(kernel, chosen)


def _has_tag(tag: Tag | None, wanted: str | type[Tag] | Tag | None) -> bool:
    if tag is None or wanted is None:
        return tag is not None
    return isinstance(tag, wanted) if isinstance(wanted, type) else tag == parse_tag(wanted)


def _retagged(kernel: Kernel, tags: Mapping[str, Tag | None]) -> Change:
    new = with_tags(kernel, tags)
    check_nesting(new)
    return expand_accumulators(kernel, Change(new))
