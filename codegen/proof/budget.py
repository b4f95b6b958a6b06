"""A limit on what isl may spend on one question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

OPERATIONS = 200_000
"""isl's own count of elementary steps for one question: seconds where it runs away.

Ordinary questions need a few hundred, the hardest of the gallery some ten thousand.
"""

ENOUGH = 20_000
"""What is still granted where several questions ran past their budget."""


class BudgetError(Exception):
    """isl ran past its budget."""


@contextmanager
def limited(operations: int = OPERATIONS) -> Iterator[None]:
    """Let isl spend at most ``operations`` inside; raises :class:`BudgetError` beyond.

    The limit that was in force before is in force again afterwards.
    """
    context = isl.DEFAULT_CONTEXT
    before = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
    except isl.Error as error:
        if "quota" in str(error) or "max_operations" in str(error) or "operations" in str(error):
            raise BudgetError from None
        raise
    finally:
        context.set_max_operations(before)
        context.reset_operations()
