"""Repairs that keep the step, with another argument or for fewer sizes or data."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Strided, storage_shape, strides_of, swizzles_of
from loopkit._check.suggest_calls import call, requires, with_arguments, without
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._check.violation import Violation
from loopkit._expression import divisions_in, to_text
from loopkit._guarded import conjuncts
from loopkit._history import Step

_EXTRA = {
    "within": "around all statements",
    "init_expression": "with the values that the array has",
    "store_expression": "with what the buffer holds",
    "precompute_outer_inames": "inside of the loops that it needs",
    "fetch_outer_inames": "inside of the loops that it needs",
    "temporary_address_space": "in memory that its readers share",
    "temporary_scope": "in memory that its readers share",
}


_ROUNDS = 3
"""As often are sizes left out for which something else is wrong."""
_ASSERTIONS = 4
"""As many assertions together at most."""


def by_arguments(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The same step without something that was asked for in particular, or with more of it."""
    step, ids = refusal.step, [s.id for s in refusal.statements]
    for name, what in _EXTRA.items():
        if refusal.given.get(name) is None:
            continue
        if not requires(step, name):
            yield Suggestion(what, (without(step, name),))
        elif name == "within" and len(ids) > 1:
            other = with_arguments(step, within=" or ".join(f"id:{i}" for i in ids))
            yield Suggestion("around " + " and ".join(f"'{i}'" for i in ids), (other,))
    if step.transform == "tag_array_axes":
        yield from _strides(refusal)
    if step.transform == "swizzle_array":
        yield from _swizzles(refusal)
    if step.transform == "add_dependency":
        swapped = {
            one: refusal.given[other]
            for one, other in (("insn_match", "depends_on"), ("depends_on", "insn_match"))
        }
        yield Suggestion("the other way round", (with_arguments(step, **swapped),))
    if step.transform == "unprivatize_temporaries_with_inames":
        for temporary in refusal.kernel.temporaries:
            if temporary.shape:
                other = with_arguments(step, only_var_names=temporary.name)
                yield Suggestion(f"for '{temporary.name}'", (other,))
    if step.transform == "remove_instructions":
        idle = [
            s.id
            for s in refusal.kernel.statements
            if s.written in refusal.kernel.temporary_by_name
            and not refusal.kernel.readers.get(s.written)
        ]
        if idle:
            other = with_arguments(step, insn_ids=", ".join(idle))
            yield Suggestion("for what nobody needs", (other,))
    if refusal.given.get("existing_ok"):
        name = refusal.kernel.fresh_name(str(refusal.given["new_iname"]))
        other = without(with_arguments(step, new_iname=name), "existing_ok")
        yield Suggestion("under a different name", (other,))


def _strides(refusal: Refusal) -> Iterator[Suggestion]:
    """Strides that leave room for the axes that vary faster."""
    if refusal.change is None or len(refusal.arrays) != 1:
        return
    array = refusal.change.kernel.array(refusal.arrays[0])
    shape, tags = array.shape or (), array.dim_tags or ()
    if not all(isinstance(n, int) for n in shape) or not all(isinstance(t, Strided) for t in tags):
        return
    strides = list(strides_of(array))
    if not all(isinstance(s, int) for s in strides):
        return
    needed = 1
    for axis in sorted(range(len(shape)), key=lambda a: (strides[a], -a)):
        strides[axis] = max(strides[axis], needed)
        needed = strides[axis] * shape[axis]
    other = with_arguments(refusal.step, dim_tags=", ".join(f"stride:{s}" for s in strides))
    yield Suggestion("with room for each cell", (other,))


def _swizzles(refusal: Refusal) -> Iterator[Suggestion]:
    """Room for all places that a swizzle has, or fewer bits."""
    if refusal.change is None or len(refusal.arrays) != 1:
        return
    if not all(v.kind == "outside" for v in refusal.violations):
        return
    yield Suggestion("with room for all places", (with_arguments(refusal.step, pad=True),))
    array = refusal.change.kernel.array(refusal.arrays[0])
    for swizzle in swizzles_of(array):
        extent = storage_shape(array)[swizzle.axis]
        if isinstance(extent, int):
            # What divides the axis divides it into blocks that stay.
            bits = (extent & -extent).bit_length() - 1 - swizzle.base
            if 0 < bits < swizzle.bits:
                yield Suggestion("with fewer bits", (with_arguments(refusal.step, bits=bits),))


def by_numbers(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A tile that is short enough to hold no two iterations that need each other."""
    if refusal.step.transform != "split_iname":
        return
    iname = str(refusal.given["split_iname"])
    distances = (d for v in refusal.violations for d in _distances(refusal, v, iname))
    shortest = min(distances, default=0)
    if 2 <= shortest < refusal.given["inner_length"]:
        power_of_two = 1 << (shortest.bit_length() - 1)
        for shorter in dict.fromkeys((shortest, power_of_two)):
            other = with_arguments(refusal.step, inner_length=shorter)
            yield Suggestion(f"with inner_length {shorter}", (other,))


def _distances(refusal: Refusal, violation: Violation, iname: str) -> Iterator[int]:
    """The fewest iterations between two instances of a violation, in either order."""
    first = violation.source or violation.other
    if first is None:
        return
    one, two = refusal.value(first, iname), refusal.value(violation.sink, iname)
    if one is None or two is None:
        return
    for a, b in ((one, two), (two, one)):
        ahead = violation.where & _sets.condition_set(prim.Comparison(a, "<", b))
        least = _sets.minimum_value(ahead, prim.Sum((b, prim.Product((-1, a)))))
        if least is not None:
            yield least


def by_sizes(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """The complement of the sizes for which there is a violation, if it is simple."""
    kernel = refusal.kernel
    if refusal.is_open or refusal.step.transform == "fix_parameters":
        return
    known = left = kernel.assumptions.set
    near = refusal.statements or kernel.statements
    now: Refusal = refusal
    for _ in range(_ROUNDS):
        if not now.violations:
            return
        for violation in now.violations:
            left = left - _sets.project_onto(violation.where, kernel.sizes)
        left = left.coalesce()
        said = _simple(left, known)
        if said is None or all((kernel.statement_domain(s) & left).is_empty() for s in near):
            return
        steps = (call("assume", said), refusal.step)
        found = trials.found(kernel, steps)
        if not isinstance(found, Refusal):
            if trials.is_emitted(kernel, found):
                # Only small values are left of all sizes that conditions are about.
                names = _sets.involved_names(left.gist(known))
                largest = [_sets.maximum_value(left, prim.Variable(n)) for n in names]
                is_special = None not in largest
                yield Suggestion(f"for {said}", steps, is_special=is_special, is_tried=True)
            return
        now = found


def _simple(left: isl.Set, known: isl.Set) -> str | None:
    """Conditions of a set of sizes beyond what is known, as text; None if they are not simple."""
    if left.is_empty():
        return None
    beyond = left.gist(known).compute_divs().coalesce()
    if len(beyond.get_basic_sets()) != 1:
        return None
    condition = _sets.conditions(beyond)
    parts = conjuncts(condition)
    if len(parts) > 2 or not all(isinstance(p, prim.Comparison) for p in parts):
        return None
    if divisions_in(condition):
        return None
    return " and ".join(to_text(part).replace("==", "=") for part in parts)


def by_assertions(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """What would have to hold of index arrays, where one assertion alone is not enough.

    One that is enough is named in the message already.
    """
    said: list[Step] = []
    now = refusal
    while now.is_open and len(said) < _ASSERTIONS:
        settling = next((a for v in now.violations for a in v.settling), None)
        if settling is None:
            return
        said.append(settling.step)
        found = trials.found(refusal.kernel, [*said, refusal.step])
        if not isinstance(found, Refusal):
            if len(said) > 1:
                yield Suggestion("if the data allows it", (*said, refusal.step), is_tried=True)
            return
        if found.step != refusal.step:
            return
        now = found
