"""What threads do together is reached by all of them."""

from __future__ import annotations

from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel
from loopkit._uniform import partings


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
