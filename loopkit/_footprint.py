"""Footprints: which cells of an array a tile of a loop nest accesses.

A footprint is a box.  Along each axis it has a lower bound that is affine in the inames that stay
fixed, a constant extent, and a stride.  It covers the *full* tile: the swept inames range over all
values that they ever take, also where the last tile of a loop is partial.
:func:`touched_cells` gives the cells of the box that are really accessed, and is exact for
partial tiles too.

Subscripts are quasi-affine, or combine quasi-affine expressions by ``min``, ``max`` and ``if``:
``x[max(i - 1, 0)]`` reads a halo that is clamped at the edge.  For such a subscript, isl computes
the largest distance from a quasi-affine part of it over the iteration domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._linear import Linear, linear, variable
from loopkit._nodes import Expression
from loopkit._poly.pairs import between
from loopkit._poly.projection import project_onto
from loopkit._simplify import simplify


class FootprintError(Exception):
    """A footprint has no constant extent; ``why`` says which access is to blame."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


@dataclass(frozen=True, eq=False)
class Range:
    """Values of a swept iname, or of an index: ``lower + (0 .. span)`` in multiples of ``step``."""

    lower: Linear
    span: int
    step: int = 1
    swept: bool = True


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a box: the cells ``lower + stride*d`` for ``0 <= d < extent``.

    ``swept`` tells whether a swept iname moves along the axis.
    """

    lower: Linear
    extent: int
    stride: int
    swept: bool

    @property
    def is_kept(self) -> bool:
        """Whether a copy of the box needs this axis."""
        return self.swept or self.extent > 1

    def local(self, index: Expression) -> Expression:
        """The position in the box of the cell ``index``."""
        if isinstance(index, (prim.Min, prim.Max)):
            return type(index)(tuple(self.local(child) for child in index.children))
        if isinstance(index, prim.If):
            return prim.If(index.condition, self.local(index.then), self.local(index.else_))
        extreme = _sets.extreme_of(index)
        if extreme is not None:
            is_least, parts = extreme
            return self.local((prim.Min if is_least else prim.Max)(parts))
        if _is_linear(index):
            whole, rest = (linear(index) - self.lower).split(self.stride)
            if not rest.terms:
                return whole.expression
        distance = prim.Sum((index, (self.lower * -1).expression))
        return simplify(prim.FloorDiv(distance, self.stride))

    def cell(self, position: Linear) -> Linear:
        """The cell at a position in the box."""
        return self.lower + position * self.stride

    def cell_at(self, name: str) -> Expression:
        """The cell at the position called ``name``."""
        return self.cell(variable(name)).expression


@dataclass(frozen=True, eq=False)
class Use:
    """One place in a statement's text where an array (or a rule) is used, and when that happens.

    ``domain`` holds the instances for which it does, ``around`` all of the statement where those
    are more.  With ``by_data`` data decide which of these they are, or which cell that is:
    ``chosen`` has, by axis, a name for such an index, bounded by the domain, and how far it runs.
    """

    statement: Statement
    indices: tuple[Expression, ...]
    text: str
    domain: isl.Set
    around: isl.Set | None = None
    by_data: bool = False
    chosen: Mapping[int, tuple[str, Range]] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[Expression, ...]:
        """The indices, with names in place of those that data choose."""
        names = {axis: prim.Variable(name) for axis, (name, _) in self.chosen.items()}
        return tuple(names.get(axis, index) for axis, index in enumerate(self.indices))


def ranges_of(uses: Iterable[Use]) -> dict[str, Range]:
    """How far the indices run that data choose."""
    return dict(pair for use in uses for pair in use.chosen.values())


def iname_ranges(kernel: Kernel, inames: Sequence[str]) -> dict[str, Range]:
    """How far each swept iname runs: between constants, or relative to other inames.

    Raises :class:`FootprintError` for inames without constant length, alone or together.
    """
    ranges = {iname: _range(kernel, iname) for iname in inames}
    left = dict(ranges)
    while left:
        first = [i for i, r in left.items() if not r.lower.names & left.keys()]
        if not first:
            # Each is as long as another lets it be: together they have no end.
            raise _endless(min(left), f"; {', '.join(sorted(left))} bound each other")
        for iname in first:
            del left[iname]
    return ranges


def _endless(iname: str, why: str = "") -> FootprintError:
    return FootprintError(
        f"iname '{iname}' has no constant length{why}",
        f"split_iname('{iname}', 16) makes '{iname}_inner', which has, and can be swept",
    )


def _range(kernel: Kernel, iname: str) -> Range:
    low, high = kernel.range_of(iname)
    if low is not None and high is not None:
        return Range(Linear({}, low), high - low)
    own = kernel.domain_of([iname]) & kernel.assumptions.set
    home = kernel.domains[kernel.home_domain[iname]]
    relative = relative_range(own, iname) or relative_range(home.set, iname)
    if relative is None:
        raise _endless(iname)
    return relative


def relative_range(domain: isl.Set, iname: str) -> Range | None:
    """Bounds ``lower <= iname <= lower + span`` among the constraints; the closest such."""
    basics = domain.coalesce().compute_divs().get_basic_sets()
    if len(basics) != 1:
        return None
    lowers: list[Linear] = []
    uppers: list[Linear] = []
    target = prim.Variable(iname)
    for constraint in basics[0].get_constraints():
        form = _sets.form_of(constraint)
        own = form.terms.get(target, 0)
        rest = Linear({a: c for a, c in form.terms.items() if a != target}, form.constant)
        if abs(own) != 1 or iname in rest.names:
            continue
        if constraint.is_equality():
            lowers.append(rest * -own)
            uppers.append(rest * -own)
        elif own == 1:
            lowers.append(rest * -1)
        else:
            uppers.append(rest)
    ranges = [
        Range(lower, max(upper.constant - lower.constant, 0))
        for lower in lowers
        for upper in uppers
        if lower.same_terms(upper)
    ]
    return min(ranges, key=lambda found: found.span, default=None)


def _hull(form: Linear, ranges: Mapping[str, Range]) -> Range:
    """All values of ``form`` while swept inames run."""
    span, step, swept = 0, 0, False
    while True:
        names = form.names & ranges.keys()
        if not names:
            return Range(form, span, step, swept)
        swept = True
        # An iname whose bounds mention others goes first: the others may cancel.
        name = min(names, key=lambda n: (not (ranges[n].lower.names & names), n))
        inside = [a for a in _quotients(form) if name in variable_names(a)]
        atom = inside[0] if inside else prim.Variable(name)
        part = _quotient_hull(atom, ranges) if inside else ranges[name]
        coefficient = form.terms[atom]
        without = Linear({a: c for a, c in form.terms.items() if a != atom}, form.constant)
        first = part.lower if coefficient > 0 else part.lower + part.span
        form = without + first * coefficient
        span += part.span * abs(coefficient)
        if part.span:
            step = math.gcd(step, coefficient)


def _are_tied(form: Linear, ranges: Mapping[str, Range]) -> bool:
    """Whether what a form is made of may not take all values together.

    A name and a quotient of it do not (``i % 4``), nor do two loops that share a bound, such as
    those into which a loop was split whose length is no multiple.
    """
    if any(variable_names(atom) & ranges.keys() for atom in _quotients(form)):
        return True
    return sum(name in ranges and ranges[name].span > 0 for name in form.names) > 1


def _quotients(form: Linear) -> list[Expression]:
    return [atom for atom in form.terms if not isinstance(atom, prim.Variable)]


def _quotient_hull(atom: prim.FloorDiv, ranges: Mapping[str, Range]) -> Range:
    inner = _hull(linear(atom.numerator), ranges)
    lower = inner.lower.floor_div(atom.denominator)
    if not inner.lower.terms:
        last = (inner.lower.constant + inner.span) // atom.denominator
        return Range(lower, last - lower.constant)
    # floor((x + y)/m) exceeds floor(x/m) by ceil(y/m) at most.
    return Range(lower, -(-inner.span // atom.denominator))


def bounding_box(uses: Sequence[Use], ranges: Mapping[str, Range]) -> tuple[Axis, ...]:
    """The box around all ``uses`` while the inames in ``ranges`` run.

    Raises :class:`FootprintError` where an index is not affine, or where two
    accesses are not a constant apart.
    """
    ranges = {**ranges, **ranges_of(uses)}
    return tuple(_axis(number, uses, ranges) for number in range(len(uses[0].indices)))


def _axis(number: int, uses: Sequence[Use], ranges: Mapping[str, Range]) -> Axis:
    indices = [use.cells[number] for use in uses]
    affine = {i: _hull(linear(i), ranges) for i in dict.fromkeys(indices) if _is_linear(i)}
    hulls: list[Range] = []
    for use, index in zip(uses, indices, strict=True):
        near = affine.get(index)
        if near is None:
            near = _clamped_hull(index, use, ranges, list(affine.values()))
        elif _are_tied(linear(index), ranges):
            exact = _relative_hull(index, near.lower, use, ranges)
            if exact is not None and exact.span <= near.span:
                near = replace(exact, step=near.step)
        if near is None:
            raise FootprintError(
                f"index {to_text(index)} of {use.text} is not affine in inames and sizes, nor "
                "near to what is",
                "uses of a rule go together where what is not affine is one term in all of them, "
                "as in f(i*n + j) and f(i*n + j + 1); `within` can leave this access out",
            )
        hulls.append(near)
    first = hulls[0]
    if not all(first.lower.same_terms(hull.lower) for hull in hulls):
        around = (_covered(uses, indices, hulls, hull, ranges) for hull in hulls)
        hulls = next((found for found in around if found is not None), hulls)
        first = hulls[0]
    for use, hull in zip(uses, hulls, strict=True):
        if not first.lower.same_terms(hull.lower):
            raise FootprintError(
                f"accesses {uses[0].text} and {use.text} do not differ by a constant: along axis "
                f"{number} one begins at {to_text(first.lower.expression)}, the other at "
                f"{to_text(hull.lower.expression)}",
                "sweep the inames in which they differ, or select one of them: by `within`, or by "
                "its indices, as in 'x[i, 0:8]' or 'f(i, 0:8)'",
            )
    low = min(h.lower.constant for h in hulls)
    high = max(h.lower.constant + h.span for h in hulls)
    step = math.gcd(*(h.step for h in hulls), *(h.lower.constant - low for h in hulls)) or 1
    lower = Linear(first.lower.terms, low)
    return Axis(lower, (high - low) // step + 1, step, any(h.swept for h in hulls))


def _covered(
    uses: Sequence[Use],
    indices: Sequence[Expression],
    hulls: Sequence[Range],
    around: Range,
    ranges: Mapping[str, Range],
) -> list[Range] | None:
    """All hulls from where ``around`` begins, if what that spans covers them; else None."""
    found = []
    for use, index, hull in zip(uses, indices, hulls, strict=True):
        whole: Range | None = hull
        if not hull.lower.same_terms(around.lower):
            whole = _relative_hull(index, around.lower, use, ranges)
        if whole is None:
            return None
        found.append(whole)
    first, last = around.lower.constant, around.lower.constant + around.span
    if all(first <= h.lower.constant and h.lower.constant + h.span <= last for h in found):
        return found
    return None


def _clamped_hull(
    index: Expression, use: Use, ranges: Mapping[str, Range], near: Sequence[Range]
) -> Range | None:
    """The values of an index of several affine pieces, next to where affine indices begin.

    These are those of ``near``, or else the pieces of the index itself, of which that
    counts which gives the fewest cells.  None where each is arbitrarily far away.
    """
    if not _sets.is_pw_affine(index):
        return None
    pieces = [_sets.from_affine(aff, floor=True) for _, aff in _sets.pw_affine(index).get_pieces()]
    found = [_relative_hull(index, h.lower, use, ranges) for h in near]
    found += [_relative_hull(index, _hull(linear(p), ranges).lower, use, ranges) for p in pieces]
    # Of equals the first: what begins where other accesses begin.
    return min((h for h in found if h is not None), key=lambda h: h.span, default=None)


def _relative_hull(
    index: Expression, lower: Linear, use: Use, ranges: Mapping[str, Range]
) -> Range | None:
    """The values of an index as ``lower`` and a constant number of cells from there, if so."""
    distance = prim.Sum((index, (lower * -1).expression))
    low, high = _sets.value_range(use.domain, distance)
    if low is None or high is None:
        return None
    return Range(lower + low, high - low, 1, bool(variable_names(index) & ranges.keys()))


def is_inside(access: Use, box: Sequence[Axis], ranges: Mapping[str, Range]) -> bool:
    """Whether an access stays among the cells of the box while the inames in ``ranges`` run."""
    ranges = {**ranges, **ranges_of([access])}
    for index, axis in zip(access.cells, box, strict=True):
        gap = _hull(linear(index) - axis.lower, ranges) if _is_linear(index) else None
        if gap is None and not _sets.is_pw_affine(index):
            return False
        if gap is None or gap.lower.terms:
            distance = prim.Sum((index, (axis.lower * -1).expression))
            gap = _relative_hull(distance, Linear({}), access, ranges)
        if gap is None:
            return False
        first = gap.lower.constant
        if gap.lower.terms or first % axis.stride or gap.step % axis.stride:
            return False
        if first < 0 or first + gap.span > (axis.extent - 1) * axis.stride:
            return False
    return True


def outer_names(box: Sequence[Axis]) -> frozenset[str]:
    """The names that the box moves with."""
    return frozenset().union(*(axis.lower.names for axis in box))


def box_set(names: Sequence[str], extents: Sequence[int]) -> isl.Set:
    """``{ 0 <= name < extent for all names }``."""
    ends = zip(names, extents, strict=True)
    return _sets.intersection(between(name, 0, extent - 1) for name, extent in ends)


def touched_cells(
    uses: Sequence[Use],
    box: Sequence[Axis],
    names: Sequence[str | None],
    keep: Iterable[str],
    *,
    exact: bool = False,
) -> isl.Set:
    """The positions that some instance touches, over ``names`` and the names in ``keep``.

    Accesses that differ by constants are taken together, and what lies between
    them is counted as touched, unless ``exact``.  ``names[i]`` is None for an
    axis of one cell.
    """
    groups: dict[tuple[object, ...], list[Use]] = {}
    forms = {id(use): [_form(i) for i in use.cells] for use in uses}
    for use in uses:
        shape: tuple[object, ...] = tuple(frozenset(f.terms.items()) for f in forms[id(use)])
        if exact:
            shape += tuple(f.constant for f in forms[id(use)])
        whole = use.domain if exact or use.around is None else use.around
        groups.setdefault((id(whole), shape), []).append(use)
    kept = {*keep, *(n for n in names if n is not None)}
    found: list[isl.Set] = []
    for group in groups.values():
        domain = _any_domain(group)
        for number, (axis, name) in enumerate(zip(box, names, strict=True)):
            if name is None:
                continue
            values = [forms[id(use)][number] for use in group]
            constants = [v.constant for v in values]
            # lower + stride*d - (terms + c) = 0 for some c between the least and the greatest
            gap = axis.cell(variable(name)) - Linear(values[0].terms)
            for rest in (gap - min(constants), gap * -1 + max(constants)):
                domain = domain & _sets.pw_affine(rest.expression).nonneg_set()
        found.append(project_onto(domain, kept))
    return reduce(isl.Set.union, found)


def _is_linear(index: Expression) -> bool:
    """Whether :func:`linear` takes an index."""
    return _sets.is_taken_by(linear, index)


def _form(index: Expression) -> Linear:
    """An index as a linear form, of which one that has several affine pieces is an atom."""
    return linear(index) if _is_linear(index) else Linear({index: 1})


def _any_domain(uses: Sequence[Use]) -> isl.Set:
    """The instances for which some of the uses happen."""
    domains = {id(use.domain): use.domain for use in uses}
    everything = uses[0].around
    if len(domains) > 1 and everything is not None and id(everything) in domains:
        return everything
    whole = reduce(isl.Set.union, domains.values())
    return whole.coalesce() if len(domains) > 1 else whole


def hull(cells: isl.Set) -> isl.Set:
    """One convex set around ``cells``, from their own constraints."""
    cells = cells.coalesce()
    if cells.n_basic_set() <= 1:
        return cells
    return cells.simple_hull().to_set()
