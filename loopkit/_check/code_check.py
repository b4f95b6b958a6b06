"""Whether code can be generated for a schedule that computes what the text says.

The proof of a step assumes that threads can synchronise and combine wherever one loop nest allows
it, and it knows stores of equal values from the text. Lowering is more precise: it knows the
block, loops that data end, and the values within one launch. Where the two may disagree, lowering
is tried at once, so that the step which causes the problem is refused.
"""

from __future__ import annotations

from contextlib import suppress

from loopkit._arrays import AddressSpace
from loopkit._check.race_check import unordered_writes
from loopkit._collectives import TOGETHER, combined_axes
from loopkit._combined import with_combinations
from loopkit._errors import LoopkitError, ResourceError
from loopkit._guarded import BREAK
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._open_lengths import open_lengths
from loopkit._places import decide_address_spaces, space_of
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Undecided
from loopkit._rules import expand_rules
from loopkit._slabs import settled
from loopkit._tags import InstructionParallel
from loopkit._uniform import partings, thread_inames


def check_code(kernel: Kernel) -> None:
    """Raise where no code can be made of a proven kernel, whatever later steps settle.

    What a later step may settle, such as lengths of thread axes that are no numbers yet, is left
    to lowering.  How long the arrays of a thread are does not matter here.

    :raises IllegalTransformError: where threads cannot wait for each other or combine, the first
        or last iterations of a loop cannot be set apart, or copies side by side not be counted.
    :raises RaceError: where threads store values that are not seen to be equal.
    """
    kernel = settled(kernel)
    if any(isinstance(tag, InstructionParallel) for _, tag in kernel.tags):
        from loopkit.codegen.prepare import realize_instruction_parallel

        realize_instruction_parallel(decide_address_spaces(expand_rules(kernel)))
    if not _is_doubtful(kernel):
        return
    if not all(isinstance(owed, ResourceError) for owed in open_lengths(kernel)):
        return
    from loopkit.codegen.combinations import chosen_ways
    from loopkit.codegen.hardware import find_hardware
    from loopkit.codegen.launches import parts_in, parts_of
    from loopkit.codegen.nest import nest_of
    from loopkit.codegen.prepare import prepare

    try:
        single = is_one_launch(kernel)
        parts = [kernel] if single else [p.kernel for p in parts_in(parts_of(kernel))]
        launches = {part: find_hardware(part).block for part in map(prepare, parts)}
    except LoopkitError:
        return  # a later step may settle types and axes
    for part, block in launches.items():
        for statement in part.statements:
            if statement.kind in TOGETHER:
                chosen_ways(part, statement, block)
        nest_of(part)


def _is_doubtful(kernel: Kernel) -> bool:
    """Whether lowering may refuse a schedule that the proof of a step has accepted."""
    spread, model = combined_axes(kernel), model_of(kernel)
    if any(t.combined_by is not None or (t.shape and t.name in spread) for t in kernel.temporaries):
        return True
    parted = (True for _ in partings(with_combinations(model.kernel)))
    spaces = {t.name: space_of(kernel, t) for t in kernel.temporaries}
    shared = [s for s in kernel.statements if spaces.get(s.written) is not AddressSpace.PRIVATE]
    # Steps may add statements to a loop with a break that do not depend on its flag.
    flags = (kernel.writers.get(t.name) for t in kernel.temporaries if t.made_by == BREAK)
    around = [[w.inames for w in writers] for writers in flags if writers]
    left = {i for sets in around for i in frozenset.union(*sets) - frozenset.intersection(*sets)}
    ending = (kernel.loaded_bounds(s.inames) or not left.isdisjoint(s.inames) for s in shared)
    if any(parted) or (thread_inames(kernel, None) and any(ending)):
        return True
    arrays = dict.fromkeys(s.written for s in shared)
    with suppress(Undecided):
        return any(True for array in arrays for _ in unordered_writes(model, array))
    return True
