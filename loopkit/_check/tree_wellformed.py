"""Whether a kernel hangs together: its tree holds each statement once, in the loops it needs.

All that is proven of instances and their order takes this for granted.
"""

from __future__ import annotations

from loopkit._kernel import Kernel
from loopkit._tags import InstructionParallel
from loopkit._tree import flatten


def broken_structure(kernel: Kernel) -> str:
    """How the loop tree contradicts the statements and domains; empty where all is well."""
    entries = flatten(kernel.tree)
    if [name for name, _ in entries] != [s.id for s in kernel.statements]:
        return "the loop tree would hold other statements"
    if len(kernel.statement_by_id) != len(entries):
        return "the loop tree would hold a statement twice"
    if len(kernel.home_domain) != len(kernel.all_inames):
        return "an iname would belong to two domains"
    tags = kernel.iname_tags
    parallel = {i for i, tag in tags.items() if tag.is_parallel}
    # Copies side by side are no iterations, wherever their loop stands.
    side = {i for i, tag in tags.items() if isinstance(tag, InstructionParallel)}
    for name, path in entries:
        inames = kernel.statement_by_id[name].inames
        loops = [iname for iname, _ in path]
        if len(set(loops)) != len(loops):
            return f"'{name}' would be in two loops over one iname"
        unknown = inames - kernel.home_domain.keys()
        if unknown:
            return f"'{name}' would be inside '{min(unknown)}', which no domain has"
        differ = (set(loops) ^ (inames - parallel)) - side
        if differ:
            return f"'{name}' and the loops around it would differ in '{min(differ)}'"
    return ""
