"""Whether one kernel comes from another as by a step of a schedule: statements have their names.

Then it is enough that the step leaves what it was given (:mod:`loopkit._check.step_proof`), and
nobody has to follow values, not even those that data decide.
"""

from __future__ import annotations

from loopkit._change import Change, InstanceMap
from loopkit._check.checker import obligations_of
from loopkit._check.instance_maps import Lineage
from loopkit._collectives import combined_axes
from loopkit._kernel import Kernel
from loopkit._places import shared_storage
from loopkit._poly.model import model_of


def may_be_step(root: Kernel, new: Kernel) -> bool:
    """Whether two kernels have the same statements, by name and order, and the same temporaries."""
    ids = [[s.id for s in kernel.statements] for kernel in (root, new)]
    return ids[0] == ids[1] and root.temporaries == new.temporaries


def is_step(lineage: Lineage, new: Kernel) -> bool:
    """Whether ``new`` computes what the root of a correspondence does, as a step would leave it."""
    if lineage.fixed or any(map(lineage.every, lineage.images)) or shared_storage(new):
        return False
    if combined_axes(model_of(new).kernel):
        return False  # who comes to where threads combine is asked elsewhere
    maps = tuple(InstanceMap(i.statement, i.origin, i.value_of) for i in lineage.images)
    found = obligations_of(lineage.root, Change(new, maps), lineage)
    return found is not None and found.is_empty
