"""The proof of a whole schedule against its text, for steps that cannot be proven alone.

Most steps can (:mod:`loopkit._check.step_proof`), so this module is imported only when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import islpy as isl

from loopkit._budget import SpentError, is_over
from loopkit._check.alias_check import check_aliases
from loopkit._check.array_check import check_bounds, check_storage
from loopkit._check.instance_check import check_axes, check_instances
from loopkit._check.instance_maps import Lineage, descend, lineage_of, own_lineage
from loopkit._check.race_check import check_carriers, check_races
from loopkit._check.schedule_check import Check, DecidedError
from loopkit._check.statement_check import StatementCheck
from loopkit._check.step_proof import ALL_TOUCHED, Obligations, Untouched
from loopkit._check.violation import Aim, Violation
from loopkit._places import shared_storage
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Undecided

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel


LastStep = tuple[Check, Sequence[str]]
"""A step seen from the kernel before it, and which statements there stand for some of the text."""


def check_obligations(
    lineage: Lineage, kernel: Kernel, obligations: Obligations, aim: Aim = Aim.TELL
) -> list[Violation]:
    """What is wrong with that part of a schedule that a step has made."""
    check = Check(lineage, model_of(kernel), aim)
    with suppress(DecidedError):
        for question in _obliged(StatementCheck(check), obligations):
            question()
            if check.is_enough:
                break
    return check.found


def _obliged(expressions: StatementCheck, obligations: Obligations) -> Iterator[Callable[[], None]]:
    """What is asked of that part."""
    check, image_of = expressions.check, expressions.check.lineage.image_of
    for array in sorted(obligations.arrays):
        yield partial(check_storage, check, array)
    for name in sorted(obligations.statements | obligations.moves):
        yield partial(check_bounds, check, name)
        yield partial(check_axes, check, name)
    for name in sorted(obligations.moves - image_of.keys()):
        yield partial(expressions.copies.check_filled, name)
    for array in sorted(obligations.arrays):
        yield partial(check_races, check, array)
    moves = (check.new.statement[m] for m in obligations.moves)
    carried = {name for move in moves for name, _ in check.new.kernel.reads_of(move)}
    for array in sorted(carried & check.new.written - obligations.arrays):
        yield partial(check_carriers, check, array)
    for name in sorted(obligations.statements & image_of.keys()):
        yield partial(expressions.statement, image_of[name], obligations.unchanged)
    yield partial(check_aliases, check)


def violations_of(
    lineage: Lineage,
    kernel: Kernel,
    aim: Aim = Aim.TELL,
    last_step: LastStep | None = None,
    untouched: Untouched = ALL_TOUCHED,
) -> list[Violation]:
    """What is wrong with ``kernel`` as a schedule of the root of its lineage.

    It stops where there is something, and isl has spent all that it is allowed.  With
    ``last_step``, the kernel before is known to execute the root's instances.  Of statements that
    read what they read before it, and of arrays that are left as they were, nothing is asked:
    they are ``untouched``.  Raises
    :class:`Undecided` where nothing is wrong that is known, and a question remains open.
    """
    new = model_of(kernel)
    check = Check(lineage, new, aim)
    step, with_image = (None, ()) if last_step is None else last_step
    open_ = ask(check, questions(StatementCheck(check), step, with_image, untouched))
    found = [*check.found, *(step.found if step is not None else ())]
    if open_ is not None and not found:
        raise open_
    return found


def ask(check: Check, asked: Iterable[Callable[[], None]]) -> Undecided | None:
    """Ask questions until enough is found wrong; gives the first one that stays open."""
    open_: Undecided | None = None
    for question in asked:
        try:
            question()
        except DecidedError:
            break
        except Undecided as undecided:
            open_ = open_ or undecided
        except RecursionError:
            open_ = open_ or Undecided("values are passed on in too many steps")
        except (SpentError, isl.Error) as error:
            # What was found wrong is wrong, whatever is not known.
            if not (check.found and is_over(error)):
                raise
            break
        if check.is_enough:
            break
    return open_


def last_step(before: Kernel, change: Change, aim: Aim = Aim.TELL) -> LastStep:
    """The kernel after a step as a schedule of the kernel before, and which of it is the text's.

    Which instances are executed is asked of one step at a time, where the sets
    are simple, and not of all steps since the text.
    """
    images = lineage_of(before).image_of
    moves = change.moves | {s.id for s in before.statements if s.id not in images}
    lineage = descend(own_lineage(before), before, replace(change, moves=moves))
    with_image = [s.id for s in before.statements if s.id in images]
    return Check(lineage, model_of(change.kernel), aim), with_image


def questions(
    expressions: StatementCheck,
    step: Check | None = None,
    with_image: Sequence[str] = (),
    untouched: Untouched = ALL_TOUCHED,
) -> Iterator[Callable[[], None]]:
    """All that is asked of a schedule.

    ``step`` is the schedule seen from the kernel before it, if there is one, of
    which the statements ``with_image`` are known to execute the text.  Of statements and arrays
    that are ``untouched`` it is known what is read and left.
    """
    check = expressions.check
    kernel = check.new.kernel
    for data in (*kernel.args, *kernel.temporaries):
        yield partial(check_storage, check, data.name)
    if step is None:
        for statement in check.root.kernel.statements:
            name = statement.id
            yield partial(check_instances, check, name)
    else:
        for name in with_image:
            yield partial(check_instances, step, name)
        # A statement may be gone, while others execute what else of the text was in its origin.
        gone = {*with_image}.difference(
            n for n, images in step.lineage.images_from.items() if images
        )
        before = lineage_of(step.lineage.root).image_of
        for origin in sorted({before[name].origin for name in gone}):
            if check.lineage.images_from[origin]:
                yield partial(check_instances, check, origin)
    for statement in kernel.statements:
        name = statement.id
        yield partial(check_bounds, check, name)
        yield partial(check_axes, check, name)
        if name not in check.lineage.image_of:
            yield partial(expressions.copies.check_filled, name)
    for array in kernel.writers:
        yield partial(check_races, check, array)
    for image in check.lineage.images:
        if image.statement not in untouched.statements:
            yield partial(expressions.statement, image)
    if shared_storage(kernel):
        yield partial(check_aliases, check)
    for array in dict.fromkeys((*check.root.kernel.writers, *kernel.writers)):
        if array in untouched.arrays:
            continue
        if array in kernel.arg_by_name:
            yield partial(expressions.ends, array)
        elif array in check.root.written and expressions.order.matters(array):
            yield partial(expressions.order.writes, array)
