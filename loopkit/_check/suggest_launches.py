"""Advice that no transform carries out: several launches in the place of one.

Launches run one after the other, and the next one sees all that the last one
wrote.  The parts are made and the step is tried on each, as a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from loopkit._arguments import names_in
from loopkit._arrays import AddressSpace, ValueArg
from loopkit._check.suggest_calls import retagged, tag_slots
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._make.check_initialized import check_initialized
from loopkit._places import decide_address_spaces
from loopkit._tree import Loop, Tree, build, flatten, statements_in

MOST = 8
"""Outermost loops of a kernel that is looked at."""


def by_launches(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A launch for each part of the kernel, or for each iteration of an outer loop."""
    if not any(v.how == "blocks" for v in refusal.violations) or refusal.kernel.substitutions:
        return
    kernel, each = _alone(refusal.kernel), ""
    for _ in range(2):
        parts = _parts(kernel, refusal.step, trials)
        if parts is not None and (each or len(parts) > 1):
            yield Suggestion(_words(parts, each))
            return
        one = _one_iteration(kernel, refusal.step)
        if one is None:
            return
        kernel, iname = one
        each = f"{each} and '{iname}'" if each else f"'{iname}'"


_NUMBERS = {2: "two", 3: "three", 4: "four"}


def _words(parts: Sequence[Kernel], each: str) -> str:
    if len(parts) == 1:
        return f"with a launch for each {each}, which is then a size of the kernel"
    number = _NUMBERS.get(len(parts), str(len(parts)))
    per = f" for each {each}, which is then a size" if each else ""
    ends = [f"up to '{part.statements[-1].id}'" for part in parts[:-1]]
    rest = f"from '{parts[-1].statements[0].id}' on"
    return f"as {number} kernels, launched in turn{per}: {', '.join(ends)}, and {rest}"


def _parts(kernel: Kernel, step: Step, trials: Trials) -> list[Kernel] | None:
    """The fewest parts, in order, on each of which the step is legal; None if there are none."""
    parts: list[Kernel] = []
    start, count = 0, len(kernel.tree)
    if count > MOST:
        return None
    while start < count:
        legal = None
        for end in range(start + 1, count + 1):
            part = _with_tree(kernel, kernel.tree[start:end])
            if not _is_legal(part, step, trials):
                break
            legal, after = part, end
        if legal is None:
            return None
        parts.append(legal)
        start = after
    for temporary in kernel.temporaries:
        if sum(_uses(part, temporary.name) for part in parts) > 1:
            return None
    return parts


def _alone(kernel: Kernel) -> Kernel:
    """The kernel as a text of its own."""
    return kernel.with_(history=(), lineage=None)


def _with_tree(kernel: Kernel, tree: Tree) -> Kernel:
    chosen = set(statements_in(tree))
    statements = tuple(s for s in kernel.statements if s.id in chosen)
    return replace(kernel, tree=tree, statements=statements)


def _uses(kernel: Kernel, name: str) -> bool:
    return name in kernel.writers or name in kernel.readers


def _one_iteration(kernel: Kernel, step: Step) -> tuple[Kernel, str] | None:
    """The body of the outermost loop, if all is in one, with its iname as a size."""
    if len(kernel.tree) != 1 or not isinstance(kernel.tree[0], Loop):
        return None
    loop = kernel.tree[0]
    iname = loop.iname
    if iname in _inames_of(kernel, step) or iname in kernel.iname_tags:
        return None
    spaces = decide_address_spaces(kernel).temporaries
    if any(t.address_space is AddressSpace.GLOBAL for t in spaces):
        return None
    entries = [(statement, path[1:]) for statement, path in flatten(kernel.tree)]
    domains = tuple(
        replace(d, inames=tuple(i for i in d.inames if i != iname)) for d in kernel.domains
    )
    statements = tuple(replace(s, inames=s.inames - {iname}) for s in kernel.statements)
    body = replace(
        kernel,
        domains=tuple(d for d in domains if d.inames),
        statements=statements,
        tree=build(entries),
        args=(*kernel.args, ValueArg(iname, np.dtype("int32"))),
    )
    check_initialized(body)
    return body, iname


def _inames_of(kernel: Kernel, step: Step) -> set[str]:
    """The inames that a step names."""
    words = {slot[1] for slot in tag_slots(step)}
    for _, value in step.arguments:
        words |= {str(n) for n in names_in(value if isinstance(value, Iterable) else ())}
    return words & set(kernel.all_inames)


def _is_legal(part: Kernel, step: Step, trials: Trials) -> bool:
    """Whether the step is legal on a part, as far as it concerns the part."""
    mine = _for_part(part, step)
    return mine is None or trials.after(part, [mine]) is not None


def _for_part(part: Kernel, step: Step) -> Step | None:
    """The step on a part: without tags of inames that it does not use."""
    used = frozenset().union(*(s.inames for s in part.statements))
    if step.transform == "tag_inames":
        gone = [slot for slot in tag_slots(step) if slot[1] not in used]
        return retagged(step, dict.fromkeys(gone)) if gone else step
    return step if _inames_of(part, step) & used else None
