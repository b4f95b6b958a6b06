"""Where the threads of a warp come together before they shuffle, or wait for their block.

Threads that have gone different ways through loops and guards must be together again where they
shuffle, and where they wait for all others: a warp that comes to a barrier in two parts counts
twice.  The compiler sees to that, but not always.  Where a guard or a loop stands between those
ways and the shuffle or the barrier, NVRTC (13.4, 13.5) may jump past both at once, take what is
behind them for the place where the ways meet, and let the threads come one by one.  It moves no
jump across a barrier, so the threads of a warp wait for each other in front of such a guard or
loop.
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
    """Refuse combinations that data of some threads may keep from running.

    The checker has refused them, with a witness, unless nobody asked it.
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
    """The code, in which threads that may be apart wait in front of what needs them together.

    ``shuffles`` and ``waits`` say whether threads do in a statement.
    """
    walker = _Walker(kernel, shuffles, waits)
    if not walker.need(code):
        return code
    return walker.sequence(code, frozenset(CUDA.thread_index), apart=False)[0]


class _Walker:
    """Follows the code, and whether threads of a warp may be apart.

    ``own`` are names, besides those of threads, that may differ between them.
    """

    def __init__(self, kernel: Kernel, shuffles: Does, waits: Does) -> None:
        self.kernel = kernel
        self.shuffles = shuffles
        self.waits = waits

    def sequence(
        self, nodes: tuple[Code, ...], own: frozenset[str], *, apart: bool
    ) -> tuple[tuple[Code, ...], bool]:
        """Some nodes, and whether threads may be apart behind them."""
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
        """Whether threads of a warp may go through some nodes in different ways."""
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
        """What may differ between threads in the body of a node."""
        return own | {node.iname} if isinstance(node, Let) and self.differs(node, own) else own

    def differs(self, node: Code, own: frozenset[str]) -> bool:
        """Whether what a node goes by may differ between threads of a block."""
        names = names_of(node)
        return not names.isdisjoint(own) or bool(varying(self.kernel, names))

    def need(self, nodes: tuple[Code, ...]) -> str:
        """What threads of a warp do somewhere in some nodes that needs them together, if so."""
        done = [node.statement for node in walk(nodes) if isinstance(node, Do)]
        if any(map(self.shuffles, done)):
            return "shuffle"
        barriers = (node for node in walk(nodes) if isinstance(node, Barrier))
        if any(map(self.waits, done)) or not all(barrier.of_warp for barrier in barriers):
            return "wait for the block"
        return ""


def _meet(node: Code) -> bool:
    """Whether threads are together behind a node, however they came."""
    return isinstance(node, Barrier) or (isinstance(node, Do) and node.statement.kind in TOGETHER)
