"""What threads do together is reached by all of them."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._collectives import COMBINE
from loopkit._errors import IllegalTransformError, Instance, Witness
from loopkit._expression import variable_names
from loopkit._hidden import ONE, TWO, instance, instances, variable
from loopkit._kernel import Kernel, Statement
from loopkit._points import smallest_point
from loopkit._tags import LocalAxis
from loopkit.codegen.conflicts import Conflicts
from loopkit.codegen.loop_bodies import Bodies


def check_meetings(conflicts: Conflicts) -> None:
    """Refuse combinations that data of some threads may keep from running.

    Inames and sizes do not: where those decide, all threads combine, and what comes of it is
    used where they say.
    """
    kernel = conflicts.kernel
    combinations = [s for s in kernel.statements if s.kind == COMBINE]
    bodies = Bodies(conflicts) if combinations else None
    for statement in combinations:
        assert bodies is not None
        body, _ = bodies.of_statement[statement.id]
        data = (p for p in statement.predicates if not variable_names(p) <= kernel.integers)
        own = frozenset().union(*map(variable_names, data))
        inside = f"the loop over '{body.loops[-1]}'" if body.loops else ""
        for where, varying in (
            ("a condition", bodies.varying(own)),
            (inside, bodies.divergent_names(body)),
        ):
            if varying:
                listed = ", ".join(f"'{name}'" for name in varying)
                witness = _two_threads(kernel, statement)
                example = _in_words(witness) if witness is not None else ""
                raise IllegalTransformError(
                    f"threads combine their partial results of '{statement.written}' inside of "
                    f"{where} that {listed} decides, which may differ between them: some would "
                    f"wait for others that never come{example}",
                    witness=witness,
                    instead="a condition, or bounds, that sizes and sequential loops decide; or "
                    "the thread axis a sequential loop",
                )


def _two_threads(kernel: Kernel, statement: Statement) -> Witness | None:
    """Two threads of a block of which one may stay away: their instances of an update."""
    tags = kernel.iname_tags
    update = next(s for s in kernel.writers[statement.written] if s.operation is not None)
    threads = [i for i in sorted(update.inames) if isinstance(tags.get(i), LocalAxis)]
    domain = kernel.domain_around(update.inames) & kernel.assumptions.set
    inames = sorted(update.inames & {*_sets.names_of(domain)})
    both = _sets.rename(domain, instances(inames, ONE)) & _sets.rename(
        domain, instances(inames, TWO)
    )
    for iname in {*inames} - {*threads}:
        both = both & _sets.equality(instance(iname, ONE), variable(iname, TWO))
    # Those that combine with each other differ on the axes of the reduction alone.
    for iname in sorted(threads, key=lambda i: i not in statement.inames):
        apart = prim.Comparison(variable(iname, ONE), "<", variable(iname, TWO))
        order = [*kernel.sizes, *(instance(i, label) for label in (ONE, TWO) for i in inames)]
        differ = _sets.project_onto(both & _sets.condition_set(apart), order)
        point = None if differ.is_empty() else smallest_point(differ, order)
        if point is not None:
            one, two = (
                Instance(update.id, {i: point[instance(i, label)] for i in inames})
                for label in (ONE, TWO)
            )
            sizes = {name: point[name] for name in kernel.sizes}
            return Witness("divergent", statement.written, None, one, two, sizes)
    return None


def _in_words(witness: Witness) -> str:
    """The lines of a message."""
    one, two = (
        f"'{at.statement}' ({', '.join(f'{i}={v}' for i, v in at.inames.items())})"
        for at in (witness.source, witness.sink)
        if at is not None
    )
    sizes = ", ".join(f"{name} = {value}" for name, value in witness.parameters.items())
    return f"\n  {one} may come, and {two} not" + (f"\n  for example: {sizes}" if sizes else "")
