"""What threads do together is reached by all of them."""

from __future__ import annotations

from loopkit._collectives import COMBINE
from loopkit._errors import IllegalTransformError
from loopkit._expression import variable_names
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
                raise IllegalTransformError(
                    f"threads combine their partial results of '{statement.written}' inside of "
                    f"{where} that {listed} decides, which may differ between them: some would "
                    "wait for others that never come",
                    instead="a condition, or bounds, that sizes and sequential loops decide; or "
                    "the thread axis a sequential loop",
                )
