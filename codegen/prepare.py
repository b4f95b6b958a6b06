"""Preparation of a kernel for lowering: rules are expanded, types and address spaces inferred."""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._cached import memoised
from loopkit._combined import with_combinations
from loopkit._deal_out import deal_out
from loopkit._errors import IllegalTransformError
from loopkit._expression import replace_accesses, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._make.segments import with_segments
from loopkit._make.type_inference import infer_types
from loopkit._nodes import Expression
from loopkit._places import decide_address_spaces, drop_own_axes, one_loop_per_statement, space_of
from loopkit._rules import expand_rules
from loopkit._simplify import simplify_indices
from loopkit._spelling import check_names
from loopkit._tags import InstructionParallel


@memoised
def prepare(kernel: Kernel) -> Kernel:
    """The kernel with all that lowering needs: types, address spaces, ``ilp`` copies (memoised).

    The history in the result is that of the first kernel asked about, since equal kernels share
    it.
    """
    # Subscripts as they were written say where temporaries live, here as for the checks.
    placed = decide_address_spaces(deal_out(expand_rules(kernel)))
    kernel = realize_instruction_parallel(infer_types(_simplified(placed, kernel)))
    kernel = with_segments(drop_own_axes(kernel))
    kernel = with_combinations(kernel)
    # What loopkit makes up for a while is gone by now.
    check_names(kernel.all_inames, "an iname")
    return kernel


def _simplified(kernel: Kernel, source: Kernel) -> Kernel:
    """The kernel with subscripts simplified where it differs from its ``source``.

    There the arguments of rules went.
    """

    def simpler(statement: Statement) -> Statement:
        if statement is source.statement_by_id.get(statement.id):
            return statement
        return statement.map_expressions(lambda e: simplify_indices(e, kernel.integers))

    return kernel.with_(statements=tuple(map(simpler, kernel.statements)))


def realize_instruction_parallel(kernel: Kernel) -> Kernel:
    """Make each ``ilp`` iname the innermost, unrolled loop of every statement in it.

    Private temporaries written there get an axis for the iname. Shared and global temporaries are
    not copied: the schedule was proven with a single one.
    """
    for iname, tag in kernel.tags:
        if isinstance(tag, InstructionParallel):
            kernel = _expand_private(kernel, iname)
    return one_loop_per_statement(kernel)


def _expand_private(kernel: Kernel, iname: str) -> Kernel:
    values = kernel.domain_around([iname]) & kernel.assumptions.set
    found = (0, 1) if values.is_empty() else _sets.counted(values, iname, kernel.sizes)
    number, count = found or (0, 1)
    expanded: dict[str, TemporaryVariable] = {}
    for temporary in kernel.temporaries:
        writers = kernel.writers.get(temporary.name, ())
        inside = [s for s in writers if iname in s.inames]
        if not inside or any(iname in variable_names(i) for s in inside for i in s.write[1]):
            continue
        if space_of(kernel, temporary) is not AddressSpace.PRIVATE:
            continue
        if found is None:
            around = (*sorted(kernel.parents_of(iname)), *kernel.loaded_bounds([iname]))
            on = (*around, *sorted(_sets.involved_names(values) - {iname}))[0]
            raise IllegalTransformError(
                f"iname '{iname}' is tagged ilp, but the copies of '{temporary.name}' cannot be "
                f"counted: its first value depends on '{on}'",
                instead=f"tag '{iname}' unr, or shift it to begin at 0 before it is tagged: "
                "affine_map_inames or map_domain",
            )
        # What is outside of the iname has a cell of its own, behind all others.
        more = any(iname not in s.inames for s in kernel.users(temporary.name))
        expanded[temporary.name] = replace(
            temporary,
            shape=(*temporary.shape, count + more),
            dim_tags=None,
            padding=(),
            swizzles=(),
        )

    def changed(statement: Statement) -> Statement:
        at = number if iname in statement.inames else count

        def access(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            place = prim.Variable(name)
            return prim.Subscript(place, (*indices, at)) if name in expanded else None

        return statement.map_expressions(lambda e: replace_accesses(e, access))

    return kernel.with_(
        statements=tuple(map(changed, kernel.statements)),
        temporaries=tuple(expanded.get(t.name, t) for t in kernel.temporaries),
    )
