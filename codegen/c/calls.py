"""Functions that generated text may call: argument and result types, and required definitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopkit import _promotion as dt
from loopkit._functions import BITS, COMPLEX_FUNCTIONS, FUNCTIONS, arity_of
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import C_TYPES, PIECES, TYPES, WHOLE, common, converts, in_registers

CONSTANTS = frozenset(("LK_INFINITY", "LK_NAN"))
"""Names of numbers; a piece of the preamble defines each."""

CONVERSIONS = {
    "__half2float": (dt.FLOAT16, dt.FLOAT32),
    "__bfloat162float": (dt.BFLOAT16, dt.FLOAT32),
    "__float2half": (dt.FLOAT32, dt.FLOAT16),
    "__float2bfloat16": (dt.FLOAT32, dt.BFLOAT16),
    "__double2half": (dt.FLOAT64, dt.FLOAT16),
    "lk_to_complex64": (dt.COMPLEX128, dt.COMPLEX64),
    "lk_to_complex128": (dt.COMPLEX64, dt.COMPLEX128),
}
"""From and to what a function converts."""

SPELLED = {"fabs": "abs", "rint": "round"}
"""Functions that C has under another name than the language."""
MATHEMATICAL = (FUNCTIONS - {"abs", "round", "sign", "real", "imag", "conj"} - BITS) | {
    "fabs",
    "rint",
}
ON_BITS = frozenset(f"lk_{name}" for name in BITS)
"""Functions of the bits of the integer type that they are made for."""
ON_COMPLEX = frozenset(
    f"lk_{n}" for n in ("abs", "conj", "isnan", "isinf", "isfinite", *COMPLEX_FUNCTIONS)
)

SHUFFLES = frozenset(("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"))
"""Functions by which the lanes of a warp exchange values."""
ADDRESSES = {kind: np.dtype((np.void, kind.itemsize)) for kind in (dt.UINT32, dt.UINT64)}
"""The type of ``&x[i]`` by that of the cell: what takes one is a function of flags."""
ON_FLAGS = {
    "lk_await": (ADDRESSES[dt.UINT32],),
    "atomicAdd": (ADDRESSES[dt.UINT32], dt.UINT32),
    "lk_await_word": (ADDRESSES[dt.UINT64],),
}
"""Functions of a cell that other blocks change, which give what stands or stood there."""

VOTES = {"__any_sync": "any", "__all_sync": "all"}
"""Functions by which the lanes of a warp all get what any, or all, of them have."""

Result = tuple[dt.DType, tuple[str, ...]]


def result_of(name: str, args: list[dt.DType]) -> Result:
    """A call's type and what must be defined for it; raises :class:`UnreadableError`."""
    for rule in _RULES:
        found = rule(name, args)
        if found is not None:
            return found
    listed = ", ".join(map(str, args))
    raise UnreadableError(f"no function '{name}' of ({listed}) is known")


def _shuffle(name: str, args: list[dt.DType]) -> Result | None:
    """An exchange between lanes: a mask of lanes, a value, and a lane or how far away it is."""
    if name in VOTES and len(args) == 2 and args[0] == dt.UINT32 and args[1] in WHOLE:
        return dt.BOOL, ()  # an int of CUDA's, which is 0 or 1
    if name not in SHUFFLES or len(args) != 3 or args[0] != dt.UINT32:
        return None
    if args[2] not in WHOLE or args[1] in dt.COMPLEXES or dt.components_of(args[1]):
        return None
    return in_registers(args[1]), ()


def _flag(name: str, args: list[dt.DType]) -> Result | None:
    """What takes the address of a cell, and gives what is in it; or what lanes say of a flag."""
    if name == "__ballot_sync" and len(args) == 2 and args[0] == dt.UINT32 and args[1] in WHOLE:
        return dt.UINT32, ()
    if ON_FLAGS.get(name) != tuple(args):
        return None
    found = dt.UINT64 if args[0] == ADDRESSES[dt.UINT64] else dt.UINT32
    return found, ((name,) if name.startswith("lk_") else ())


def has_room_for_flag(dtype: dt.DType) -> bool:
    """Whether a value and a flag fit into one word, which is stored and loaded as a whole."""
    return not dt.components_of(dtype) and dtype.itemsize <= dt.UINT32.itemsize


def _word(name: str, args: list[dt.DType]) -> Result | None:
    """``lk_flagged(flag, value)``: both in one word; ``lk_value<float>(word)``: what is in it."""
    if name == "lk_flagged" and len(args) == 2:
        fits = args[0] == dt.UINT32 and has_room_for_flag(args[1])
        return (dt.UINT64, (name,)) if fits else None
    plain, _, template = name.removesuffix(">").partition("<")
    kind = TYPES.get(template)
    if plain != "lk_value" or kind is None or args != [dt.UINT64] or not has_room_for_flag(kind):
        return None
    return kind, (plain,)


def _conversion(name: str, args: list[dt.DType]) -> Result | None:
    if name not in CONVERSIONS or len(args) != 1:
        return None
    source, target = CONVERSIONS[name]
    if not converts(args[0], source):
        return None
    own = PIECES[source if source in PIECES else target]
    return target, ("lk_complex.convert" if name.startswith("lk_") else own,)


def _of_complex(name: str, args: list[dt.DType]) -> Result | None:
    kind = _one(args)
    if kind is None or kind not in dt.COMPLEXES or (name, len(args)) not in _ON_COMPLEX:
        return None
    piece = PIECES[kind]
    if name in ("lk_abs", "lk_conj"):
        return (dt.real_of(kind) if name == "lk_abs" else kind), (piece,)
    return (dt.BOOL if name.startswith("lk_is") else kind), (piece, f"{piece}.functions")


def _divided(name: str, args: list[dt.DType]) -> Result | None:
    """The division of floating-point numbers by a helper; integer division is a plain function."""
    kind = _one(args) if name in ("lk_floordiv", "lk_mod") and len(args) == 2 else None
    if kind is None or kind not in _FLOATING:
        return None
    return kind, (f"lk_floordiv.{C_TYPES[kind]}",)


def _ordered(name: str, args: list[dt.DType]) -> Result | None:
    """One overload must suit better than the other."""
    if name != "lk_compare" or len(args) != 2 or not set(args) <= WHOLE:
        return None
    first = [args[0] == dt.INT64, args[1] == dt.UINT64]
    second = [args[0] == dt.UINT64, args[1] == dt.INT64]
    better = [a - b for a, b in zip(first, second, strict=True)]
    if not any(better) or (1 in better and -1 in better):
        return None
    return dt.INT32, ("lk_compare",)


def _templated(name: str, args: list[dt.DType]) -> Result | None:
    """``lk_power<3>(x)`` and ``lk_ipow<int>(x, n)``."""
    plain, _, template = name.removesuffix(">").partition("<")
    kind = TYPES.get(template)
    if plain == "lk_power" and template.isdigit() and len(args) == 1 and args[0] != dt.BOOL:
        return args[0], (plain,)
    if plain == "lk_ipow" and kind in dt.INTEGERS and len(args) == 2 and set(args) <= WHOLE:
        assert kind is not None
        return kind, (plain,)
    if plain in ON_BITS and kind in dt.INTEGERS and len(args) == 1 and set(args) <= WHOLE:
        assert kind is not None
        return (kind if plain == "lk_brev" else dt.INT32), (plain,)
    return None


def _plain(name: str, args: list[dt.DType]) -> Result | None:
    if name not in _PLAIN:
        return None
    count, takes, gives = _PLAIN[name]
    kind = gives(args) if len(args) == count and set(args) <= takes else None
    return None if kind is None else (kind, (name,) if name.startswith("lk_") else ())


def _mathematical(name: str, args: list[dt.DType]) -> Result | None:
    """A function of C's library: with ``f`` it converts, without it takes the type it is given."""
    is_suffixed = name.endswith("f") and name[:-1] in MATHEMATICAL and name not in MATHEMATICAL
    plain = name[:-1] if is_suffixed else name
    tests = plain.startswith("is")
    if plain not in MATHEMATICAL or len(args) != arity_of(SPELLED.get(plain, plain)):
        return None
    if is_suffixed:
        kind = dt.FLOAT32 if all(converts(a, dt.FLOAT32) for a in args) and not tests else None
    else:
        kind = _one(args)
    if kind is None or kind not in _FLOATING:
        return None
    return (dt.BOOL if tests else kind), ()


def _one(args: list[dt.DType]) -> dt.DType | None:
    """The type that all have."""
    return args[0] if len(set(args)) == 1 else None


def _one_in_registers(args: list[dt.DType]) -> dt.DType | None:
    return _one([in_registers(a) for a in args])


def _first(args: list[dt.DType]) -> dt.DType:
    return args[0]


def _common(args: list[dt.DType]) -> dt.DType:
    return common(*args)


_FLOATING = frozenset((dt.FLOAT32, dt.FLOAT64))
_ON_COMPLEX = {*((name, 1) for name in ON_COMPLEX), ("lk_pow", 2)}
_SIGNED = frozenset(t for t in WHOLE if in_registers(t) in (dt.INT32, dt.INT64))
_PLAIN: dict[str, tuple[int, frozenset[dt.DType], Callable[[list[dt.DType]], dt.DType | None]]] = {
    **dict.fromkeys(("lk_floordiv", "lk_mod"), (2, WHOLE, _common)),
    **dict.fromkeys(("min", "max"), (2, WHOLE, _one_in_registers)),
    **dict.fromkeys(("lk_min", "lk_max"), (2, _FLOATING, _one)),
    **dict.fromkeys(("lk_shl", "lk_shr"), (2, dt.INTEGERS, _first)),
    "abs": (1, _SIGNED, _one_in_registers),
    "lk_abs": (1, dt.INTEGERS, _first),
    "lk_sign": (1, dt.INTEGERS | _FLOATING, _first),
}
"""How many arguments of which types a function takes, and what it gives for them."""
_RULES = (
    *(_conversion, _of_complex, _divided, _ordered),
    *(_templated, _plain, _mathematical, _shuffle, _flag, _word),
)
