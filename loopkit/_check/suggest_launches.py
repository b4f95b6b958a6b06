"""Advice that no transform carries out: several launches in the place of one.

Launches run one after the other, and the next one sees all that the last one
wrote.  The parts are made and the step is tried on each, as a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from loopkit._arrays import AddressSpace, ValueArg
from loopkit._check.suggest_calls import names, retagged, tag_slots
from loopkit._check.suggest_try import Refusal, Suggestion, Trials
from loopkit._history import Step
from loopkit._kernel import Kernel
from loopkit._make.initialized import check_initialized
from loopkit._places import decide_address_spaces
from loopkit._tree import Loop, Tree, build, flatten, statements_in


def by_launches(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
    """A launch for each part of the kernel, or for each iteration of an outer loop."""
    if not any(v.how == "blocks" for v in refusal.violations):
        return
    kernel, each = _alone(refusal.kernel), ""
    if kernel.substitutions:
        return
    for _ in range(2):
        for number in range(1, len(kernel.tree)):
            parts = _cut(kernel, number)
            if parts is not None and _are_legal(parts, refusal.step, trials):
                yield Suggestion(_two(parts, each))
                return
        one = _one_iteration(kernel, refusal.step)
        if one is None:
            return
        kernel, iname = one
        each = f"{each} and '{iname}'" if each else f"'{iname}'"
        if _are_legal([kernel], refusal.step, trials):
            yield Suggestion(f"with a launch for each {each}, which is then a size of the kernel")
            return


def _two(parts: list[Kernel], each: str) -> str:
    last = parts[0].statements[-1].id
    first = parts[1].statements[0].id
    per = f" for each {each}, which is then a size" if each else ""
    return f"as two kernels, launched in turn{per}: one up to '{last}', one from '{first}' on"


def _alone(kernel: Kernel) -> Kernel:
    """The kernel as a text of its own."""
    return kernel.with_(history=(), lineage=None)


def _with_tree(kernel: Kernel, tree: Tree) -> Kernel:
    chosen = set(statements_in(tree))
    statements = tuple(s for s in kernel.statements if s.id in chosen)
    return replace(kernel, tree=tree, statements=statements)


def _cut(kernel: Kernel, number: int) -> list[Kernel] | None:
    """The kernel in two, before one of its outermost nodes; None where temporaries cross."""
    parts = [_with_tree(kernel, kernel.tree[:number]), _with_tree(kernel, kernel.tree[number:])]
    for temporary in kernel.temporaries:
        used = [_uses(part, temporary.name) for part in parts]
        if all(used):
            return None
    return parts


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
        words |= {str(name) for name in names(value)}
    return words & set(kernel.all_inames)


def _are_legal(parts: list[Kernel], step: Step, trials: Trials) -> bool:
    """Whether the step, as far as it concerns each part, is legal there."""
    is_asked = False
    for part in parts:
        mine = _for_part(part, step)
        if mine is None:
            continue
        is_asked = True
        if trials.after(part, [mine]) is None:
            return False
    return is_asked


def _for_part(part: Kernel, step: Step) -> Step | None:
    """The step on a part: without tags of inames that it does not use."""
    used = frozenset().union(*(s.inames for s in part.statements))
    if step.transform == "tag_inames":
        gone = [slot for slot in tag_slots(step) if slot[1] not in used]
        return retagged(step, dict.fromkeys(gone)) if gone else step
    return step if _inames_of(part, step) & used else None
