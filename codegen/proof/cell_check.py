"""Proof that each line accesses the cells of its statement, and updates them in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._algebra.polynomials import minus, times
from loopkit._algebra.terms import ZERO, number
from loopkit._arrays import ArrayArg, Strided, TemporaryVariable, swizzles_of
from loopkit._cached import memoised
from loopkit._errors import InvalidArgumentError
from loopkit._expression import Access, accesses
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._points import TooManyPointsError, points_of
from loopkit.codegen.c.tree import Assign
from loopkit.codegen.proof.forms import (
    Form,
    NotAffineError,
    has_digits,
    is_affine,
    names_of,
    value_at,
)
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import unequal, values_in
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf, Touch
from loopkit.codegen.proof.value_check import ValueCheck

_OPERATORS = {
    "sum": {"+="},
    "product": {"*="},
    "bit_and": {"&="},
    "bit_or": {"|="},
    "bit_xor": {"^="},
}
_ATOMIC = {
    "sum": {"+=", "|="},
    "product": {"*=", "&="},
    "max": {"max=", "|="},
    "min": {"min=", "&="},
    "bit_and": {"&="},
    "bit_or": {"|="},
    "bit_xor": {"^="},
    "any": {"|="},
    "all": {"&="},
}
"""How a line may combine for an operation; bits of truth values are disjunctions and the like."""

_TRIED = 4096
"""At how many points two subscripts are computed."""


class CellCheck(Check):
    """Matches each access of the text with an access of the kernel."""

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        super().__init__(subject, recorder)
        self.values = ValueCheck(subject, recorder, self.is_zero)

    def run(self) -> None:
        """Compare all lines, and name the cells that they touch."""
        guards: dict[tuple[str, Form], Access] = {}
        for statement in self.subject.kernel.statements:
            for name, indices in chain.from_iterable(map(accesses, statement.predicates)):
                if self.subject.kernel.is_array(name):
                    key = (name, self.subject.meaning.offset(name, indices))
                    guards[key] = (name, indices)
        for leaf in self.subject.leaves:
            own = self.subject.statement_of(leaf)
            what = f"which cells line {leaf.line} touches"
            with self.recorder.question("access", what, leaf):
                if isinstance(leaf.node, Assign):
                    if own is None:
                        what = "the line belongs to no statement"
                        self.recorder.wrong("text", what, leaf.line)
                    else:
                        self.statement(leaf, own)
                else:
                    for touch in leaf.touches:
                        self.name(touch, self.asked(touch, guards))

    def asked(self, touch: Touch, guards: Mapping[tuple[str, Form], Access]) -> Access | None:
        """The access of a kernel's predicate that corresponds to an access of a guard."""
        found = guards.get((touch.array, touch.offset))
        return found or next((a for a in guards.values() if self.is_same(touch, a)), None)

    def is_same(self, touch: Touch, access: Access) -> bool:
        """Whether two accesses of the text and the kernel are equal wherever the text executes."""
        name, indices = access
        return name == touch.array and self.is_zero(
            touch.scope, minus(touch.offset, self.subject.meaning.offset(name, indices))
        )

    def statement(self, leaf: Leaf, statement: Statement) -> None:
        """Match a line's accesses with its statement's."""
        subject = self.subject
        assert isinstance(leaf.node, Assign)
        self.operator(leaf, statement)
        wanted: dict[tuple[str, Form, bool], Access] = {}
        for name, indices, is_write in _accesses(statement):
            if subject.kernel.is_array(name):
                offset = subject.meaning.offset(name, indices)
                wanted[name, offset, is_write] = (name, indices)
        missing = dict(wanted)
        undecided: set[tuple[str, bool]] = set()
        for touch in leaf.touches:
            key = (touch.array, touch.offset, touch.is_write)
            if key not in wanted:
                same = (k for k, a in wanted.items() if k[2] == key[2] and self.is_same(touch, a))
                found = next(same, None)
                if found is None:
                    if not self.is_wrong(leaf, touch, statement, wanted):
                        undecided.add((touch.array, touch.is_write))
                    self.name(touch, None)
                    continue
                key = found
            missing.pop(key, None)
            self.name(touch, wanted[key])
        is_same = self.values.statement(leaf, statement)
        for name, offset, is_write in missing:
            if (name, is_write) in undecided:
                continue  # it may be the one that was asked about
            verb = "writes" if is_write else "reads"
            what = f"'{statement.id}' {verb} {name}[{shown(offset)}], the line does not"
            if is_write or (statement.operation is not None and name == statement.written):
                self.recorder.wrong("access", what, leaf.line, statement.id)
            elif not is_same:
                # Where the value is the same, folding constants has taken the read away.
                self.recorder.open("access", what, [leaf])

    def operator(self, leaf: Leaf, statement: Statement) -> None:
        """Check that updates, and only they, update, and that atomic updates are atomic."""
        assert isinstance(leaf.node, Assign)
        operation = statement.operation or ""
        is_shared = self.subject.place_of(statement.written) != "private"
        if bool(leaf.node.atomic) is not (statement.is_atomic and is_shared):
            what = "the line is atomic" if leaf.node.atomic else "the line is not atomic"
            what += f", '{statement.id}' is" + " not" * bool(leaf.node.atomic)
            self.recorder.wrong("access", what, leaf.line, statement.id)
        allowed = {"=", *_OPERATORS.get(operation, ())}
        if leaf.node.atomic:
            allowed = _ATOMIC.get(operation, set())
        if leaf.node.operator not in allowed:
            what = f"the line combines by '{leaf.node.operator}', '{statement.id}' does not"
            self.recorder.wrong("access", what, leaf.line, statement.id)

    @memoised
    def is_zero(self, scope: Scope, form: Form) -> bool:
        """Whether a form is zero at all points of a scope (memoised)."""
        if has_digits(form):
            if (values := values_in(scope.set, (form,), _TRIED)) is not None:
                return not np.any(values)
            if self.tried(scope.set, [form]) is not None:
                return False
        parts = self.subject.coefficients(form).values()
        with suppress(NotAffineError):  # of names that the scope does not have nothing is known
            return all(is_affine(p) for p in parts) and all(
                (scope.set & scope.space.where(unequal(p, ZERO))).is_empty() for p in parts
            )
        return False

    def is_wrong(
        self,
        leaf: Leaf,
        touch: Touch,
        statement: Statement,
        wanted: Mapping[tuple[str, Form, bool], Access],
    ) -> bool:
        """Report a line that accesses a cell its statement does not; False if that is undecided."""
        subject = self.subject
        verb = "writes" if touch.is_write else "reads"
        candidates = [
            subject.meaning.offset(name, indices)
            for key, (name, indices) in wanted.items()
            if name == touch.array and key[2] == touch.is_write
        ]
        what = f"the line {verb} {touch.array}, which '{statement.id}' does not"
        point = self.difference(touch, candidates)
        if candidates:
            what = f"the line {verb} another cell of {touch.array} than '{statement.id}' does"
            if point is None:
                self.recorder.open("access", f"whether {what}", [leaf])
                return False
        self.found("access", what, leaf, point or {}, array=touch.array)
        return True

    def difference(self, touch: Touch, candidates: list[Form]) -> dict[str, int] | None:
        """A point at which an access equals none of the candidates."""
        subject, space = self.subject, self.subject.space
        where = touch.scope.set
        differences = [minus(touch.offset, c) for c in candidates]
        if any(has_digits(d) for d in differences):
            return self.tried(where, differences)
        for difference in differences:
            # If a coefficient of a product of sizes is not zero, large sizes give a difference.
            for part in self.subject.coefficients(difference).values():
                there = where & space.where(unequal(part, ZERO)) if is_affine(part) else None
                if there is not None and not there.is_empty():
                    where = there
                    break
            else:
                return None
        for there in subject.with_larger_sizes(where):
            point = self.point(there, *subject.kernel.all_inames)
            try:
                if all(value_at(d, point) for d in differences):
                    return point
            except KeyError:
                return None
        return None

    def tried(self, where: isl.Set, differences: list[Form]) -> dict[str, int] | None:
        """A point, of a few that are tried, at which all differences are nonzero.

        This avoids sets where exclusive ors would need a name per binary digit.
        """
        subject = self.subject
        names = {name for d in differences for name in names_of(d)}.difference(subject.sizes)
        order = sorted(names)
        for there in subject.with_larger_sizes(where):
            sizes = subject.sizes_at(self.point(there))
            small = _sets.project_onto(_sets.at_values(there, sizes), order)
            with suppress(TooManyPointsError, InvalidArgumentError, KeyError):
                for row in points_of(small, order, {}, _TRIED):
                    point = {**sizes, **dict(zip(order, map(int, row), strict=True))}
                    if all(value_at(d, point) for d in differences):
                        return self.point(there & _sets.at(point), *subject.kernel.all_inames)
        return None

    def name(self, touch: Touch, access: Access | None) -> None:
        """Record the indices and extents by which accesses of an array are compared."""
        touch.origin = access[1] if access is not None else None
        held, meaning = self.subject.held(touch.array), self.subject.meaning
        flat = (touch.offset,) if is_affine(touch.offset) else None
        if touch.array in self.subject.names.dimensions:
            touch.cell, touch.extents = touch.indices, self.declared_extents(touch.array)
            if held is not None and swizzles_of(held):
                # Each cell has a place of its own: cells are compared, which are simpler.
                touch.dimensions = touch.extents
                touch.cell = None if access is None else tuple(map(meaning.form, access[1]))
                touch.extents = tuple(map(meaning.form, held.shape or ()))
        elif held is not None and held.shape == () and touch.offset is ZERO:
            touch.cell, touch.extents = (), ()
        elif held is None or access is None or held.shape == ():
            touch.cell, touch.extents = flat, self.flat_extent(held)
        elif isinstance(held, ArrayArg) and _overlaps(held):
            # Different indices may be one element: compare offsets.
            touch.cell, touch.extents = flat, (None,)
        else:
            touch.cell = tuple(map(meaning.form, access[1]))
            touch.extents = tuple(map(meaning.form, held.shape or ()))

    @memoised
    def declared_extents(self, array: str) -> tuple[Form | None, ...]:
        """The dimensions of a shared or private array, as the text declares them."""
        shape = self.subject.names.dimensions[array]
        known = (self.dynamic_extent(array) if extent is None else extent for extent in shape)
        return tuple(None if extent is None else number(extent) for extent in known)

    def dynamic_extent(self, array: str) -> int | None:
        """The extent of an array in dynamic shared memory, up to the start of the next one."""
        names, program = self.subject.names, self.subject.program
        own = names.declarations[array]
        held = self.subject.held(array)
        if own.offset is None or held is None:
            return None
        offsets = [d.offset for d in names.declarations.values() if d.offset is not None]
        end = min([o for o in offsets if o > own.offset], default=program.dynamic_shared)
        row = (held.dtype or np.dtype(np.float32)).itemsize
        for extent in own.dimensions[1:]:
            row *= extent or 1
        return (end - own.offset) // row

    def flat_extent(self, held: ArrayArg | TemporaryVariable | None) -> tuple[Form | None, ...]:
        """The number of elements of an array without gaps."""
        if held is None or held.dim_tags is not None or held.shape is None:
            return (None,)
        total = number(1)
        for extent in held.shape:
            total = times(total, self.subject.meaning.form(extent))
        return (total if is_affine(total) else None,)


def _accesses(statement: Statement) -> list[tuple[str, tuple[Expression, ...], bool]]:
    """The accesses of a statement's own line; those of its predicates belong to guards."""
    found = [(name, indices, False) for name, indices in accesses(statement.rhs)]
    found += [(n, i, False) for index in statement.write[1] for n, i in accesses(index)]
    if statement.operation is not None:
        found.append((*statement.write, False))
    found.append((*statement.write, True))
    return found


def _overlaps(array: ArrayArg) -> bool:
    """Whether strides that no call checks may give two elements one address.

    If a stride is a size, or passed by the call, each call checks that written arrays do not
    overlap themselves.
    """
    strides = [t.stride for t in array.dim_tags or () if isinstance(t, Strided)]
    return bool(strides) and all(isinstance(s, (int, np.integer)) for s in strides)
