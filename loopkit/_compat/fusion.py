"""Which loops may be one, as Loopy's users ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from loopkit._arguments import checked_kernel, names, names_in
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UndecidedError
from loopkit._kernel import Kernel
from loopkit._registry import transform_named
from loopkit._spelling import check_name, shown
from loopkit._tree import Path


@fitting
@in_turn
def get_kennedy_unweighted_fusion_candidates(
    kernel: Kernel,
    candidates: str | Iterable[str],
    *,
    prefix: str = "ifused",
    force_infusible: Callable[[str, str], bool] | None = None,
) -> Mapping[str, frozenset[str]]:
    """Which of some loops can be one, for :func:`rename_inames_in_batch`.

    Each loop, in the order of the text, joins the first of the loops before it, inside the same
    outer loops and of the same values and tag, with which it can be proven to be one: the greedy
    algorithm of Kennedy and McKinley, "Maximizing Loop Parallelism and Improving Data Locality via
    Loop Fusion and Distribution", LCPC 1993, without weights.

    :arg candidates: inames, as ``"i, j"`` or a collection.
    :arg prefix: what the names of the fused inames begin with.
    :arg force_infusible: whether two inames are to stay apart although they could be one.
    :returns: the inames that are to have each new name; every candidate is in one of them.
    :raises InvalidArgumentError: where one candidate stands inside another one.
    """
    checked_kernel(kernel)
    if force_infusible is not None and not callable(force_infusible):
        raise InvalidArgumentError(
            f"force_infusible is a function of two inames, not {shown(force_infusible)}"
        )
    check_name(prefix)
    first = {i: n for n, s in reversed([*enumerate(kernel.statements)]) for i in s.inames}
    inames = [
        kernel.check_iname(i) for i in dict.fromkeys(names_in(names("candidates", candidates)))
    ]
    _check_apart(kernel, inames)
    groups: list[tuple[Kernel, list[str]]] = []
    for iname in sorted(inames, key=lambda i: first.get(i, 0)):
        for number, (fused, members) in enumerate(groups):
            if force_infusible and any(force_infusible(one, iname) for one in members):
                continue
            with_iname = _fused(kernel, fused, members[0], iname)
            if with_iname is not None:
                groups[number] = with_iname, [*members, iname]
                break
        else:
            groups.append((kernel, [iname]))
    result: dict[str, frozenset[str]] = {}
    for _, members in groups:
        result[kernel.fresh_name(prefix, result)] = frozenset(members)
    return result


def _check_apart(kernel: Kernel, inames: Sequence[str]) -> None:
    for statement in kernel.statements:
        both = [i for i in inames if i in statement.inames]
        if len(both) > 1:
            raise InvalidArgumentError(
                f"'{both[0]}' and '{both[1]}' are both around statement '{statement.id}'",
                instead="candidates stand beside each other: ask for those of each depth alone",
            )


def _fused(kernel: Kernel, fused: Kernel, target: str, iname: str) -> Kernel | None:
    """``fused``, with the loop over ``iname`` a part of that over ``target``, if that is legal."""
    if kernel.iname_tags.get(iname) != kernel.iname_tags.get(target):
        return None
    try:
        new = transform_named("rename_iname")(fused, iname, target, existing_ok=True)
    except (IllegalTransformError, UndecidedError):
        return None
    # Of a hardware coordinate there are none.
    places = {_place(path, target) for path in new.paths.values()} - {None}
    return new if len(places) <= 1 else None


def _place(path: Path, iname: str) -> Path | None:
    """The loops down to that over ``iname``."""
    return next((path[: n + 1] for n, (name, _) in enumerate(path) if name == iname), None)
