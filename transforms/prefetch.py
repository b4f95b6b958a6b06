"""add_prefetch: reads of an array become reads of a staged copy of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loopkit import _arguments as kind
from loopkit._arrays import AddressSpace
from loopkit._change import Change
from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import to_text
from loopkit._footprint import Axis, Use, iname_ranges, is_inside
from loopkit._kernel import Kernel
from loopkit._match import Match, matching
from loopkit._tags import parse_tag
from loopkit._transform import transform
from loopkit.transforms import _staging
from loopkit.transforms._common import inames_in, new_name
from loopkit.transforms._rule_uses import expand_rules_that_use
from loopkit.transforms._staging import Indices, Staging, element


@transform
def add_prefetch(
    kernel: Kernel,
    var_name: kind.Name,
    sweep_inames: kind.MaybeNames = (),
    dim_arg_names: kind.MaybeNames = None,
    default_tag: kind.TagLike = "l.auto",
    *,
    temporary_name: kind.NewName = None,
    temporary_address_space: kind.Space = None,
    footprint_subscripts: kind.Subscripts = None,
    fetch_bounding_box: kind.Flag = False,
    fetch_outer_inames: kind.MaybeNames = None,
    prefetch_insn_id: kind.NewName = None,
    within: kind.Within = None,
    unchecked: bool = False,
) -> Change:
    """Stage the cells of ``var_name`` that a tile reads, and read the copy instead.

    Before::

        for k_outer
            for k_inner
                acc += a[16*i_outer + i_inner, 16*k_outer + k_inner] * ...

    After ``add_prefetch("a", ["i_inner", "k_inner"])``::

        for k_outer
            a_s[a_dim_0, a_dim_1] = a[16*i_outer + a_dim_0, 16*k_outer + a_dim_1]
            for k_inner
                acc += a_s[i_inner, k_inner] * ...

    The copy holds all cells that are read while ``sweep_inames`` run over their
    full constant ranges and all other inames stand still: one axis per axis of
    the array that moves, with a halo where reads are shifted against each other,
    without the cells between where they are strided.  Subscripts may be clamped
    (``a[max(i - 1, 0)]``) or chosen (``a[if(i < 4, i, 7 - i)]``) while they stay
    near to one that is not.  Cells that nobody reads, at a ragged edge for
    instance, are not fetched.

    The fetch stands inside the loops that the footprint depends on, and no
    deeper.  ``fetch_outer_inames`` puts it inside further loops.

    ``default_tag`` says how the fetch runs: ``"l.auto"`` lays it over all threads
    of the block, neighbouring threads along the array's fastest axis, once it is known
    which there are; ``None`` and ``"unr"`` give a plain and an unrolled loop per axis,
    named ``dim_arg_names``.

    The copy is in shared memory where threads fill it or read it together
    (``default_tag`` or a swept iname is a thread axis), else in private memory,
    unless ``temporary_address_space`` says which.  Where it does not, later tags count, too:
    a copy that threads come to fill or read together moves to shared memory.  Private
    memory is filled by its own thread: ``"l.auto"`` then means ``None``.

    ``footprint_subscripts``, a subscript or a list of them, replaces the accesses
    as what spans the footprint; accesses outside it stay.  ``fetch_bounding_box``
    fetches all of the box that is inside the array.  ``within`` selects
    statements; without it, all but those that earlier steps made to copy
    ``var_name``.

    ``temporary_name`` names the copy, ``prefetch_insn_id`` the statement that fills it.

    :raises IllegalTransformError: where the footprint has no constant size, no place is
        before all readers, nothing would be replaced, or the copy would be out of date.
    """
    array = kernel.array(var_name)
    swept = inames_in(kernel, sweep_inames)
    tag = parse_tag(default_tag)
    selected = matching(kernel, within)
    expanded = expand_rules_that_use(kernel, var_name, selected)
    readers = [s for s in expanded.statements if s.id in selected]
    if within is None:
        # A statement that was made to copy the array goes on copying the array.
        readers = [s for s in readers if s.kind != "move"]
    found = [use for s in readers for use in _staging.reads_of(expanded, s, var_name)]
    if not found:
        raise _nothing_to_replace(kernel, var_name, within)
    what = f"the prefetch of '{var_name}'"
    box, uses = _footprint(expanded, found, swept, footprint_subscripts, var_name)
    space = _staging.choose_space(kernel, temporary_address_space, swept, [tag])
    suffix = "s" if space is AddressSpace.LOCAL else "r"
    copy = new_name(kernel, temporary_name, f"{var_name}_{suffix}")
    statement = new_name(kernel, prefetch_insn_id, f"fetch_{var_name}", [copy])
    staging = Staging(
        made_by=f"add_prefetch('{var_name}')",
        what=what,
        base=var_name,
        name=copy,
        dtype=array.dtype,
        box=box,
        swept=swept,
        space=space,
        tags=_staging.axis_tags(dict.fromkeys(range(len(box)), tag), space, what),
        sources=[var_name],
        array=array,
        outer=fetch_outer_inames,
        axis_names=dim_arg_names,
        axis_argument="dim_arg_names",
        whole_box=fetch_bounding_box,
        may_move=temporary_address_space is None,
    )
    value = partial(element, var_name)
    return _staging.stage(expanded, staging, uses, value, statement, "move")


def _nothing_to_replace(
    kernel: Kernel, name: str, within: str | Match | None
) -> IllegalTransformError:
    readers = [s.id for s in kernel.readers.get(name, ())]
    where = "" if within is None else f" that `within` ('{within}') selects"
    if readers:
        instead = f"'{name}' is read by {', '.join(readers)}"
    else:
        read = sorted(n for n in kernel.readers if kernel.is_array(n))
        instead = f"no statement reads '{name}' at all; read are {', '.join(read) or 'no arrays'}"
    return IllegalTransformError(
        f"the prefetch would replace nothing: no statement{where} reads '{name}'", instead=instead
    )


def _footprint(
    kernel: Kernel,
    found: Sequence[Use],
    swept: Sequence[str],
    subscripts: list[Indices] | None,
    name: str,
) -> tuple[tuple[Axis, ...], Sequence[Use]]:
    """The box that uses span, or ``footprint_subscripts``, and those of the uses inside."""
    what = f"the prefetch of '{name}'"
    if subscripts is None:
        return _staging.find_box(kernel, found, swept, what), found
    if not subscripts:
        raise InvalidArgumentError(
            "footprint_subscripts: a list of none spans nothing",
            instead="leave it out, or name a subscript, as in footprint_subscripts='i, j'",
        )
    first, rank = found[0].statement, len(found[0].indices)
    for indices in subscripts:
        if len(indices) != rank:
            raise InvalidArgumentError(
                f"footprint_subscripts: {to_text(element(name, indices))} has {len(indices)} "
                f"indices, but '{name}' has {rank} axes"
            )
    spanning = _staging.uses_of(kernel, first, name, [(i, ()) for i in subscripts])
    box = _staging.find_box(kernel, spanning, swept, what)
    ranges = iname_ranges(kernel, swept)
    inside = [use for use in found if is_inside(use, box, ranges)]
    if not inside:
        raise IllegalTransformError(
            f"{what} would replace nothing: no access lies in the footprint of "
            "footprint_subscripts",
            instead="accesses are " + ", ".join(dict.fromkeys(use.text for use in found)),
        )
    return box, inside
