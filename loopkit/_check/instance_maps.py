"""Lineages: which instances of the text the instances of a scheduled kernel execute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._cached import cached_property, memoised
from loopkit._expression import substitute, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._poly.pairs import Undecided
from loopkit._relations import grouped

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel


@dataclass(frozen=True)
class Image:
    """One statement of a schedule: ``statement`` executes instances of ``origin``.

    ``values`` gives inames of the origin as affine expressions of the statement's inames and
    sizes. The statement executes all instances of the origin with these values: a single one,
    unless inames are missing.
    """

    statement: str
    origin: str
    values: tuple[tuple[str, Expression], ...]

    @cached_property
    def value_of(self) -> Mapping[str, Expression]:
        """The value of each iname of the origin."""
        return dict(self.values)


Earlier: TypeAlias = tuple[tuple[str, tuple[tuple[str, Expression], ...]], ...]


@dataclass(frozen=True, eq=False)
class Lineage:
    """The relation between a scheduled kernel and the kernel that defines its meaning.

    ``root`` is the kernel of the text, or the last one accepted with ``unchecked=True``.
    Statements without an image are copies and flushes. ``fixed`` are sizes of the root that have
    become numbers. ``earlier`` maps, for statements of the root, inames of previous texts to
    expressions.
    """

    root: Kernel
    images: tuple[Image, ...]
    fixed: tuple[tuple[str, int], ...] = ()
    earlier: Earlier = ()

    def __getstate__(self) -> dict[str, Any]:
        return {n: getattr(self, n) for n in ("root", "images", "fixed", "earlier")}

    def value_of(self, statement: str) -> Mapping[str, Expression]:
        """What inames that the text has, or had, are in a statement of the schedule."""
        image = self.image_of.get(statement)
        if image is None:
            return {}
        before = dict(self.earlier).get(image.origin, ())
        told = {i: substitute(e, image.value_of) for i, e in before}
        return {**told, **image.value_of}

    @cached_property
    def image_of(self) -> Mapping[str, Image]:
        """Images by the new statement's id."""
        return {i.statement: i for i in self.images}

    @memoised
    def every(self, image: Image) -> tuple[str, ...]:
        """The inames of the origin for all of whose values an image executes it."""
        inames = self.root.statement_by_id[image.origin].inames
        return tuple(sorted(inames - image.value_of.keys()))

    @cached_property
    def images_from(self) -> Mapping[str, tuple[Image, ...]]:
        """Images by the id of their origin."""
        found = grouped((image.origin, image) for image in self.images)
        return {s.id: found.get(s.id, ()) for s in self.root.statements}

    @cached_property
    def sizes(self) -> isl.Set:
        """``{ sizes : those that were fixed have their numbers }``, exactly."""
        known = _sets.universe()
        for name, value in self.fixed:
            known = known & _sets.equality(name, value)
        return known


def own_lineage(kernel: Kernel) -> Lineage:
    """The lineage of a kernel that is its own meaning."""
    images = tuple(
        Image(s.id, s.id, tuple((i, prim.Variable(i)) for i in sorted(s.inames)))
        for s in kernel.statements
    )
    return Lineage(kernel, images)


def text_with_names(kernel: Kernel, lineage: Lineage) -> Lineage | None:
    """The lineage of a kernel that becomes a text, which knows the inames that ``lineage`` knew.

    None where there are no others than its own.
    """
    found = []
    for statement in kernel.statements:
        told = lineage.value_of(statement.id)
        values = tuple((i, e) for i, e in sorted(told.items()) if i not in statement.inames)
        if values:
            found.append((statement.id, values))
    return replace(own_lineage(kernel), earlier=tuple(found)) if found else None


def descend(lineage: Lineage, before: Kernel, change: Change) -> Lineage:
    """The lineage of a changed kernel, where ``lineage`` is that of the kernel before."""
    by_new = {m.new: m for m in change.instances}
    fixed, same_name = change.fixed, before.statement_by_id.keys() - change.moves
    images = []
    for statement in change.kernel.statements:
        step = by_new.get(statement.id)
        old = step.old if step is not None else statement.id
        earlier = lineage.image_of.get(old)
        if earlier is None or (step is None and old not in same_name):
            continue
        if step is None or not step.values:
            values = earlier.values
        else:
            values = tuple((i, substitute(e, step.values)) for i, e in earlier.values)
        if step is not None and step.every:
            values = tuple(v for v in values if not _is_free(before, earlier, v[0], step.every))
        if fixed:
            values = tuple((i, substitute(e, fixed)) for i, e in values)
        images.append(Image(statement.id, earlier.origin, values))
    root = _with_types(lineage.root, change.kernel)
    known = (*lineage.fixed, *sorted(fixed.items()))
    return Lineage(root, tuple(images), known, with_values(lineage.earlier, fixed))


def with_values(earlier: Earlier, values: Mapping[str, Any]) -> Earlier:
    """Earlier inames, with values in the place of some sizes."""
    return tuple((s, tuple((i, substitute(e, values)) for i, e in its)) for s, its in earlier)


def _is_free(before: Kernel, image: Image, iname: str, every: frozenset[str]) -> bool:
    """Whether the values of an iname of the text are all that some inames before a step had.

    Raises :class:`Undecided` where they are only some.
    """
    names = variable_names(image.value_of[iname]) & before.home_domain.keys()
    if names & every and not names <= every:
        raise Undecided(
            f"'{iname}' of the text is {to_text(image.value_of[iname])} here, and not all of its "
            f"values are those of one '{min(names - every)}'",
            f"the same step before '{iname}' is split",
        )
    return bool(names & every)


def _with_types(root: Kernel, new: Kernel) -> Kernel:
    """``root`` with the types of scalars that turn out to be data, where it left their types open.

    What has no type yet counts as a size: the text means either.
    """
    data = {
        argument.name
        for argument in root.args
        if isinstance(argument, ValueArg)
        and argument.dtype is None
        and argument.name in new.arg_by_name
        and argument.name not in new.sizes
    }
    if not data:
        return root
    return root.with_(
        args=tuple(new.arg_by_name[a.name] if a.name in data else a for a in root.args)
    )


def lineage_of(kernel: Kernel) -> Lineage:
    """Where a kernel comes from; a kernel without history is its own text."""
    return kernel.lineage if kernel.lineage is not None else own_lineage(kernel)
