"""Reconvergence of the threads of a warp before shuffles and barriers.

After divergent loops and guards the threads of a warp must have reconverged before they shuffle or
execute a barrier: a warp that arrives at a barrier in two parts is counted twice. Compilers
normally ensure this, with one exception: if another guard or loop lies between the divergent code
and the shuffle or barrier, NVRTC (13.4, 13.5) may jump from the divergent code past both, place
the reconvergence point behind them, and execute the shuffle or barrier with a part of the warp. It
moves no jump across a barrier, so a warp-level barrier is generated before such a guard or loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from loopkit._collectives import TOGETHER
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel, Statement
from loopkit._target import CUDA
from loopkit._uniform import partings, varying
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Leave, Let, names_of, walk

Does = Callable[[Statement], bool]


def check_meetings(kernel: Kernel) -> None:
    """Refuse combinations that a condition on data may keep some threads from executing.

    The checker has already refused them with a witness, unless checks are switched off.
    """
    for found in partings(kernel):
        raise IllegalTransformError(
            f"threads combine their partial results of '{found.combination.written}' {found.why}: "
            "some would wait for others that never come",
            instead="a condition, or bounds, that sizes and sequential loops decide; or "
            "the thread axis a sequential loop",
        )


def converged(
    kernel: Kernel, code: tuple[Code, ...], shuffles: Does, waits: Does
) -> tuple[Code, ...]:
    """The code with warp-level barriers where a possibly divergent warp must reconverge.

    ``shuffles`` and ``waits`` say whether a statement contains a shuffle, or a barrier.
    """
    walker = _Walker(kernel, shuffles, waits)
    if not walker.need(code):
        return code
    return walker.sequence(code, frozenset(CUDA.thread_index), apart=False)[0]


class _Walker:
    """Walks the code and tracks whether the threads of a warp may have diverged.

    ``own`` are names, in addition to thread indices, whose values may differ between threads.
    """

    def __init__(self, kernel: Kernel, shuffles: Does, waits: Does) -> None:
        self.kernel = kernel
        self.shuffles = shuffles
        self.waits = waits

    def sequence(
        self, nodes: tuple[Code, ...], own: frozenset[str], *, apart: bool
    ) -> tuple[tuple[Code, ...], bool]:
        """The nodes with the needed barriers, and whether the warp may be divergent after them."""
        found: list[Code] = []
        for node in nodes:
            if isinstance(node, Let):
                body, apart = self.sequence(node.body, self.inside(node, own), apart=apart)
                found.append(replace(node, body=body))
            elif isinstance(node, (For, If)) and (need := self.need(node.body)):
                if apart:
                    found.append(Barrier(f"all together before they {need}", of_warp=True))
                body, apart = self.sequence(node.body, own, apart=False)
                if apart and isinstance(node, For):
                    # Those who come from the end of the body are apart at its start.
                    body, _ = self.sequence(node.body, own, apart=True)
                found.append(replace(node, body=body))
            else:
                apart = not _meet(node) and (apart or self.may_part((node,), own))
                found.append(node)
        return tuple(found), apart

    def may_part(self, nodes: tuple[Code, ...], own: frozenset[str]) -> bool:
        """Whether the threads of a warp may diverge in some nodes."""
        return any(
            isinstance(node, Leave)
            or (isinstance(node, (For, If)) and self.differs(node, own))
            or (
                isinstance(node, (For, If, Let))
                and self.may_part(node.body, self.inside(node, own))
            )
            for node in nodes
        )

    def inside(self, node: Code, own: frozenset[str]) -> frozenset[str]:
        """The names whose values may differ between threads in the body of a node."""
        return own | {node.iname} if isinstance(node, Let) and self.differs(node, own) else own

    def differs(self, node: Code, own: frozenset[str]) -> bool:
        """Whether the condition, bounds or value of a node may differ between threads."""
        names = names_of(node)
        return not names.isdisjoint(own) or bool(varying(self.kernel, names))

    def need(self, nodes: tuple[Code, ...]) -> str:
        """What in some nodes needs a converged warp, as text; "" if nothing does."""
        done = [node.statement for node in walk(nodes) if isinstance(node, Do)]
        if any(map(self.shuffles, done)):
            return "shuffle"
        barriers = (node for node in walk(nodes) if isinstance(node, Barrier))
        if any(map(self.waits, done)) or not all(barrier.of_warp for barrier in barriers):
            return "wait for the block"
        return ""


def _meet(node: Code) -> bool:
    """Whether a node makes the threads reconverge: a barrier or a collective statement."""
    return isinstance(node, Barrier) or (isinstance(node, Do) and node.statement.kind in TOGETHER)
