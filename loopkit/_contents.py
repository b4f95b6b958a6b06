"""The elements of an array of constants, as an immutable value."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._cached import cached_property
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._promotion import COMPLEXES, DTYPES, FLOATS, as_dtype, dtype_name
from loopkit._spelling import shown

MOST_BYTES = 1 << 20
"""What of it may stand in a source; larger arrays are arguments."""


@dataclass(frozen=True)
class Contents:
    """The elements of an array: ``data`` are their bytes, the last axis fastest."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: bytes

    @cached_property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only NumPy array."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


def contents_of(given: Any, name: str, dtype: Any = None) -> Contents:
    """The elements of ``given``, an array or nested lists, in ``dtype`` if that can represent them.

    Fractions are rounded like literals; all other numbers must be represented exactly.
    Raises :class:`InvalidArgumentError` for what is no array of numbers, is empty or too large.
    """
    if isinstance(given, Contents) and dtype in (None, given.dtype):
        return given
    try:
        array = np.asarray(given.array if isinstance(given, Contents) else given)
    except Exception as error:  # whatever somebody else's object does
        raise _unfit(name, given) from error
    if isinstance(given, np.ma.MaskedArray) or not isinstance(array, np.ndarray):
        raise _unfit(name, given)
    own = array.dtype.newbyteorder("=")
    if own not in DTYPES.values():
        raise _unfit(name, given)
    if array.size == 0:
        raise InvalidArgumentError(f"the table '{name}' has no elements")
    wanted = own if dtype is None else as_dtype(dtype)
    with np.errstate(all="ignore"):
        made = np.ascontiguousarray(array.astype(wanted)).reshape(array.shape)
        if wanted in FLOATS | COMPLEXES and (wanted in COMPLEXES or own not in COMPLEXES):
            kept = np.isfinite(made) == np.isfinite(array)
        else:
            kept = made.astype(own) == array
    if not bool(np.all(kept)):
        place = tuple(int(i) for i in np.argwhere(~kept)[0])
        raise InvalidArgumentError(
            f"the table '{name}' is declared {dtype_name(wanted)}, which does not hold "
            f"{array[place]}, its element at {list(place)}",
            instead=f"convert the array first, or declare it {dtype_name(own)}",
        )
    if made.nbytes > MOST_BYTES:
        raise InvalidArgumentError(
            f"the table '{name}' has {made.nbytes} bytes; a source holds at most {MOST_BYTES}",
            instead=f"GlobalArg('{name}') makes an argument of it",
        )
    return Contents(wanted, made.shape, made.tobytes())


def _unfit(name: str, given: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the initializer of '{name}' is {shown(given)}",
        instead="it is an array of numbers, on the host",
    )
