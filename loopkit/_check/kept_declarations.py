"""Whether a step preserves what callers and data rely on, and its kernel is consistent.

The proofs about instances and their order rely on this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loopkit import _sets
from loopkit._arrays import AddressSpace, Argument, ArrayArg, D, ValueArg, with_expressions
from loopkit._errors import Witness
from loopkit._expression import substitute, to_text
from loopkit._launches import broken_launches
from loopkit._places import space_of
from loopkit._same import same
from loopkit._simplify import simplify
from loopkit._tags import InstructionParallel
from loopkit._tree import flatten

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel


def broken_declaration(before: Kernel, change: Change) -> str:
    """The forbidden change that a step makes to a declaration; empty if there is none.

    Arguments keep their names, order, types, shapes and offsets (sizes that became numbers
    disappear), temporaries their types, and only steps for that purpose add assumptions on sizes
    or data.
    """
    after = change.kernel
    kept = [a for a in before.args if a.name not in change.fixed]
    if [a.name for a in kept] != [a.name for a in after.args]:
        return "the arguments would be others"
    for old, new in zip(kept, after.args, strict=True):
        if (old is not new or change.fixed) and (why := _changed(old, new, change)):
            return why
    for temporary in before.temporaries:
        its = after.temporary_by_name.get(temporary.name)
        if its is not None and temporary.dtype is not None and its.dtype != temporary.dtype:
            return f"'{its.name}' would hold {its.dtype} instead of {temporary.dtype}"
    for field, what in _KEPT_BY_KERNELS.items():
        if getattr(after, field) != getattr(before, field):
            return f"{what} would be others"
    if change.assumes:
        return ""
    known = _sets.at_values(before.assumptions.set, change.fixed)
    if not (known & after.computed_facts).is_subset(after.assumptions.set):
        return "sizes would be assumed that nobody promised"
    if not change.fixed and not set(after.assertions) <= set(before.assertions):
        return "something would be assumed of the data that nobody promised"
    return ""


_KEPT_BY_KERNELS = {
    "options": "the options",
    "reductions": "the operations of its reductions",
    "functions": "the functions that it calls",
}


def _changed(old: Argument, new: Argument, change: Change) -> str:
    if type(old) is not type(new):
        return f"'{old.name}' would be another kind of argument"
    if old.dtype is not None and old.dtype != new.dtype:
        return f"'{old.name}' would be {new.dtype} instead of {old.dtype}"
    mine, its = (with_sizes(data, change.fixed) for data in (old, new))
    for field, why in _KEPT.items():
        if not same(getattr(mine, field, None), getattr(its, field, None)):
            return f"'{old.name}' would {why}"
    if isinstance(mine, ValueArg) or isinstance(its, ValueArg) or mine.shape == its.shape:
        return ""
    if mine.shape is None or its.shape is None:
        return "" if mine.shape is None else f"'{old.name}' would lose its shape"
    shown = (f"[{', '.join(map(to_text, getattr(a, 'shape', ())))}]" for a in (old, new))
    return (
        f"'{old.name}' is an argument, whose memory layout the caller decides, and would have "
        f"another shape: {' becomes '.join(shown)}"
    )


_KEPT = {
    "default": "have another default",
    "offset": "have another offset",
    "contents": "hold other constants",
}
"""What an argument keeps, and what to say where it does not."""


def with_sizes(data: D, numbers: Mapping[str, int]) -> D:
    """A declaration with numbers for some sizes, its expressions as short as they can be."""
    return with_expressions(data, lambda expr: simplify(substitute(expr, dict(numbers))))


def moved_cell(before: Kernel, after: Kernel) -> Witness | None:
    """The first cell of an argument whose address a changed shape would change; None if none."""
    for old in before.args:
        new = after.arg_by_name.get(old.name)
        shapes = [a.shape for a in (old, new) if isinstance(a, ArrayArg) and a.shape is not None]
        if len(shapes) == 2 and len(shapes[0]) != len(shapes[1]):
            return Witness("layout", old.name, (0,) * len(shapes[0]))
    return None


def broken_structure(kernel: Kernel) -> str:
    """How the loop tree contradicts the statements and domains; empty if it does not.

    Or which temporary has an impossible address space.
    """
    broken = broken_launches(kernel)
    if broken:
        return broken
    for temporary in kernel.temporaries:
        if temporary.swizzles and space_of(kernel, temporary) is AddressSpace.GLOBAL:
            return (
                f"'{temporary.name}' is swizzled, and would lie in global memory, which has no "
                f"banks; swizzle_array('{temporary.name}', bits=0) takes the swizzle away"
            )
    entries = flatten(kernel.tree)
    if [name for name, _ in entries] != [s.id for s in kernel.statements]:
        return "the loop tree would hold other statements"
    if len(kernel.statement_by_id) != len(entries):
        return "the loop tree would hold a statement twice"
    if len(kernel.home_domain) != len(kernel.all_inames):
        return "an iname would belong to two domains"
    tags = kernel.iname_tags
    # Copies side by side have a loop, wherever it stands.
    side = {i for i, tag in tags.items() if isinstance(tag, InstructionParallel)}
    parallel = {i for i, tag in tags.items() if tag.is_parallel} - side
    for name, path in entries:
        statement = kernel.statement_by_id[name]
        inames = statement.inames
        if outside := (statement.names & kernel.home_domain.keys()) - inames:
            return f"'{name}' would use '{min(outside)}' outside of its loop"
        loops = [iname for iname, _ in path]
        if len(set(loops)) != len(loops):
            return f"'{name}' would be in two loops over one iname"
        if unknown := inames - kernel.home_domain.keys():
            return f"'{name}' would be inside '{min(unknown)}', which no domain has"
        differ = set(loops) ^ (inames - parallel)
        if differ:
            return f"'{name}' and the loops around it would differ in '{min(differ)}'"
    return ""
