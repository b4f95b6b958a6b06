"""Facts about data that follow from assertions, for questions that depend on data."""

from __future__ import annotations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.asserted_cells import data_of, equal_cells, index_range, maybe_outside
from loopkit._assertions.follow import asserted
from loopkit._expression import accesses, substitute
from loopkit._nodes import Expression
from loopkit.codegen.proof.forms import Form, is_affine, names_of
from loopkit.codegen.proof.proof_conditions import names_in
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import Space, copy_of
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf, Touch


class DataFacts:
    """The kernel's assertions, applied to accesses of the text."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.kernel = subject.kernel

    def followed(self, leaf: Leaf, index: Expression) -> Expression:
        """An index of a line's statement over the arrays that it comes from."""
        statement = self.subject.statement_of(leaf)
        return index if statement is None else asserted(self.kernel, statement, index)

    def is_inside(self, touch: Touch, axis: int) -> bool:
        """Whether assertions, or bounds of products, show that an index is in range."""
        held = self.subject.held(touch.array)
        shape = held.shape if held is not None else None
        if touch.origin is None or not shape:
            return False
        index = self.followed(touch.leaf, touch.origin[axis])
        where = touch.scope.set & self.ranges(touch.leaf)
        known = self.kernel.assertions, index, shape[axis], data_of(self.kernel)
        statement = self.subject.statement_of(touch.leaf)
        given = [self.followed(touch.leaf, p) for p in statement.predicates] if statement else []
        return bool(maybe_outside(where, *known, given).is_empty())

    def ranges(self, leaf: Leaf) -> isl.Set:
        """What is known of the private integers that a line depends on."""
        space = self.subject.space
        result = space.everything
        if not self.kernel.assertions:
            return result
        for name in sorted(self.names_of(leaf)):
            source = self.followed(leaf, prim.Variable(name))
            if isinstance(source, prim.Variable):
                continue
            known = index_range(self.kernel.assertions, source, name, data_of(self.kernel))
            result = result & space.aligned(known)
        return result

    def chosen(self, touch: Touch, axis: int, name: str, space: Space) -> isl.Set:
        """The assertions about an index that depends on data, as a condition on ``name``."""
        if touch.origin is None:
            return space.everything
        index = self.followed(touch.leaf, touch.origin[axis])
        known = index_range(self.kernel.assertions, index, name, data_of(self.kernel))
        if any(n not in space.position for n in _sets.involved_names(known)):
            return space.everything
        return space.aligned(known)

    def names_of(self, leaf: Leaf) -> frozenset[str]:
        """The private integers that decide whether a line runs, and what it touches."""
        if not self.subject.data_names:
            return frozenset()
        names = frozenset().union(*(names_in(c) for c in leaf.scope.all_conditions))
        for touch in leaf.touches:
            names = names.union(*(names_of(i) for i in touch.indices))
        return names & self.subject.data_names

    def arrays_around(self, touch: Touch) -> list[str]:
        """The arrays whose values decide whether and where a line runs."""
        found: dict[str, None] = {}
        statement = self.subject.statement_of(touch.leaf)
        if statement is not None and touch.scope.unknown:
            for predicate in statement.predicates:
                found.update((n, None) for n, _ in accesses(predicate) if self.kernel.is_array(n))
        for name in sorted(self.names_of(touch.leaf)):
            source = self.followed(touch.leaf, prim.Variable(name))
            found.update((n, None) for n, _ in accesses(source) if self.kernel.is_array(n))
        return list(found)

    def names_around(self, touch: Touch) -> str:
        """The data that decide whether and where a line executes, as text for messages."""
        found = dict.fromkeys(shown(u) for u in touch.scope.unknown)
        found.update(dict.fromkeys(sorted(self.names_of(touch.leaf))))
        return ", ".join(found)

    def decides(self, cell: tuple[Form, ...] | None) -> bool:
        """Whether a cell depends on elements of arrays, or on integers that were loaded."""
        return is_open(cell) or any(names_of(form) & self.subject.data_names for form in cell or ())

    def loaded(self, space: Space, first: Touch, second: Touch) -> isl.Set:
        """What is asserted of the private integers that two accesses depend on."""
        if not self.kernel.assertions:
            return space.everything
        names: dict[str, str] = {}  # what data changes has no value of its own: those here have
        values: dict[str, Expression] = {}
        for touch, renamed in ((first, {}), (second, self._copies(space))):
            for name in sorted(self.names_of(touch.leaf)):
                source = self.followed(touch.leaf, prim.Variable(name))
                if not isinstance(source, prim.Variable):
                    own = renamed.get(name, prim.Variable(name)).name
                    names[copy_of(own, 2)] = own
                    values[copy_of(own, 2)] = substitute(source, renamed)
        if not names:
            return space.everything
        named, held = tuple(map(prim.Variable, names)), tuple(values.values())
        found = equal_cells(self.kernel.assertions, named, held, data_of(self.kernel))
        return space.aligned(_sets.rename(found, names))

    def _copies(self, space: Space) -> dict[str, prim.Variable]:
        """What a second access calls names that it has for itself."""
        return {
            n: prim.Variable(copy_of(n, 1))
            for n in self.subject.space.names
            if copy_of(n, 1) in space.position
        }

    def one_cell(self, space: Space, first: Touch, second: Touch) -> isl.Set:
        """The pairs for which two accesses may touch one cell; the second has renamed names."""
        one, two = first.origin, second.origin
        if one is None or two is None:
            return space.everything
        copies = self._copies(space)
        left = [self.followed(first.leaf, i) for i in one]
        right = [substitute(self.followed(second.leaf, i), copies) for i in two]
        found = equal_cells(self.kernel.assertions, left, right, data_of(self.kernel))
        return space.aligned(found)


def is_open(cell: tuple[Form, ...] | None) -> bool:
    """Whether an access's cell depends on data."""
    return cell is None or not all(is_affine(c) for c in cell)
