"""Whether a schedule executes the instances of the text, each once."""

from __future__ import annotations

from itertools import pairwise

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.instance_maps import Image
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Side, Violation
from loopkit._hidden import ONE, TWO, WRITER, labelled, variable
from loopkit._poly.dataflow import is_update
from loopkit._poly.pairs import Instance, Undecided, ahead, parts_in, without


def check_instances(check: Check, origin: str) -> None:
    """Check that the images of a statement execute all its instances, no others, each once.

    An instance may execute repeatedly if it is not an update: each execution stores the same
    value, or another check reports it.
    """
    root, new, lineage = check.root, check.new, check.lineage
    at = Instance(origin, WRITER)
    context = new.kernel.assumptions.set & lineage.sizes
    wanted = root.domain(at) & context
    images = lineage.images_from[origin]
    mine = {i: variable(i, WRITER) for i in root.statement[origin].inames}
    side = Side(None, origin, mine)
    if not images:
        if root.statement[origin].written in root.kernel.temporary_by_name or wanted.is_empty():
            return
        check.report(Violation("dropped", wanted, side, text=root))
    same = len(images) == 1 and _is_same(check, images[0])
    if same and wanted.is_equal(new.domain(Instance(images[0].statement, WRITER)) & context):
        return
    # What is executed beside the domain shows without asking what is executed in all.
    run = [check.instances(image, ONE, WRITER) for image in images]
    for extra in parts_in(root.domain(at).complement() & context, run):
        check.report(Violation("extra", extra, side, text=root))
    for image in images:
        check_stands(check, image)
    for image, instances in zip(images, run, strict=True):
        wanted = _left(check, image, instances, wanted)
        if wanted.is_empty():
            break
    if not wanted.is_empty():
        check.report(Violation("dropped", wanted, side, text=root))
    check_once(check, images)


def _left(check: Check, image: Image, instances: isl.Set, wanted: isl.Set) -> isl.Set:
    """The instances in ``wanted`` that an image does not execute, or not for all data.

    A loop that the text does not have around the statement executes if its loaded bounds allow it.
    """
    free = {*check.new.bounds_from_data(image.statement)} - {*check.bounds_from_data(image)}
    if not free:
        return wanted - without(instances, ONE)
    at = Instance(image.statement, ONE)
    marked = {variable(name, ONE).name for name in free}

    def of_data(relation: isl.Set) -> isl.Set:
        gone = [n for n in labelled(_sets.names_of(relation), ONE) if n not in marked]
        return _sets.project_out(relation, gone)

    possible = wanted & check.image_relation(image, ONE, WRITER)
    facts = check.new.facts(at)
    possible = possible if facts is None else possible & facts
    return without(of_data(possible) - of_data(instances), ONE)


def check_stands(check: Check, image: Image) -> None:
    """Report instances of a schedule that execute no instance of the text, if they may do harm.

    Setting a temporary needlessly is allowed: its readers are checked for what they see.
    """
    new = check.new
    own = new.statement[image.statement]
    is_harmless = own.written in new.kernel.temporary_by_name and not is_update(own)
    is_harmless = is_harmless and not new.data & dict(new.kernel.reads_of(own)).keys()
    if is_harmless or not check.lineage.every(image):
        return
    bounds = check.root.bounds_from_data(image.origin)
    if len(check.bounds_from_data(image)) < len(bounds):
        raise Undecided(f"data decide how many instances of '{image.origin}' were merged into one")
    at = Instance(own.id, ONE)
    idle = new.domain(at) - without(check.instances(image, ONE, WRITER), WRITER)
    idle = idle & check.lineage.sizes
    if not idle.is_empty():
        check.report(Violation("extra", idle, Side(at, None)))


def check_axes(check: Check, statement: str) -> None:
    """Report a statement two of whose inames would be one hardware index."""
    new = check.new
    at = Instance(statement, ONE)
    for inames in new.inames_on.values():
        mine = [i for i in inames if i in new.statement[statement].inames]
        for first, second in pairwise(mine):
            one, two = (prim.Sum((variable(i, ONE), -new.lower(i))) for i in (first, second))
            differ = _sets.condition_set(prim.Comparison(one, "!=", two))
            lost = new.domain(at) & differ
            if not lost.is_empty():
                check.report(Violation("dropped", lost, check.side_of(at)))


def check_once(check: Check, images: tuple[Image, ...]) -> None:
    """Check that no instance is executed twice if that has an effect."""
    new = check.new
    for number, first in enumerate(images):
        for second in images[number:]:
            statement = new.statement[first.statement]
            if not is_update(statement):
                continue
            stays = statement.written in new.kernel.temporary_by_name
            one, two = Instance(first.statement, ONE), Instance(second.statement, TWO)
            both = check.instances(first, ONE, WRITER) & check.instances(second, TWO, WRITER)
            both = both & check.lineage.sizes
            if stays and statement.written == new.statement[second.statement].written:
                both = both & new.same_cell(new.write_cell(one), new.write_cell(two))
            elif stays:
                continue
            # Of each two mirror images of a pair, one.
            pieces = [_sets.universe()]
            if first is second:
                pieces = ahead(statement.inames, ONE, TWO)
            for bad in parts_in(both, pieces):
                sides = check.origin_side(second, two), check.origin_side(first, one)
                check.report(Violation("repeated", bad, *sides, text=check.root))


def _is_same(check: Check, image: Image) -> bool:
    """Whether an image has the inames of its origin, and no others."""
    inames = check.new.statement[image.statement].inames
    plain = all(isinstance(v, prim.Variable) and v.name == i for i, v in image.values)
    return plain and inames == image.value_of.keys() == check.root.statement[image.origin].inames
