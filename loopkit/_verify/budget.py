"""What isl may spend: a computation that grows too large ends, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

BUDGET = 3_000_000
"""Operations that isl may spend on proving one kernel a schedule of the other: a few seconds."""

EXAMPLES = 2_000_000
"""Operations that isl may spend on running both kernels at small sizes."""

WITNESS = 300_000
"""Operations that isl may spend on the sizes at which a correspondence fails; or on its words."""


class ExhaustedError(Exception):
    """isl was given all the operations that it may spend."""


@contextmanager
def budget(operations: int) -> Iterator[None]:
    """A limit on what isl does inside; raises :class:`ExhaustedError`.

    One budget does not go inside another: isl counts for all together.
    """
    isl.DEFAULT_CONTEXT.reset_operations()
    isl.DEFAULT_CONTEXT.set_max_operations(operations)
    try:
        yield
    except isl.Error as error:
        if "operations exceeded" not in str(error):
            raise
        raise ExhaustedError from None
    finally:
        isl.DEFAULT_CONTEXT.set_max_operations(0)
