"""Functions that the text may call: the types that each takes and gives, and what it needs."""

from __future__ import annotations

from collections.abc import Callable

from loopkit import _promotion as dt
from loopkit.codegen.c.arithmetic import common, converts, in_registers
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import PIECES, TYPES

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
MATHEMATICAL = (dt.FUNCTIONS - {"abs", "round", "sign", "real", "imag", "conj"}) | {"fabs", "rint"}
ON_COMPLEX = frozenset(
    f"lk_{n}"
    for n in ("abs", "conj", "exp", "log", "sqrt", "sin", "cos", "isnan", "isinf", "isfinite")
)
_WHOLE = dt.INTEGERS | {dt.BOOL}

Result = tuple[dt.DType, tuple[str, ...]]


def result_of(name: str, args: list[dt.DType]) -> Result:
    """A call's type and what must be defined for it; raises :class:`UnreadableError`."""
    plain, _, template = name.partition("<")
    rule = _RULES.get(plain)
    if name in CONVERSIONS and len(args) == 1:
        return _conversion(name, args[0])
    if name in ON_COMPLEX and len(args) == 1 and args[0] in dt.COMPLEXES:
        return _of_complex(name, args[0])
    found = rule(args, template.rstrip(">")) if rule is not None else _mathematical(name, args)
    if found is None:
        listed = ", ".join(map(str, args))
        raise UnreadableError(f"no function '{name}' of ({listed}) is known")
    return found


def _conversion(name: str, given: dt.DType) -> Result:
    source, target = CONVERSIONS[name]
    if not converts(given, source):
        raise UnreadableError(f"'{name}' takes {source}, not {given}")
    if name.startswith("lk_"):
        return target, ("lk_complex.convert",)
    return target, (PIECES[source if source in PIECES else target],)


def _of_complex(name: str, kind: dt.DType) -> Result:
    piece = PIECES[kind]
    if name in ("lk_abs", "lk_conj"):
        return (dt.real_of(kind) if name == "lk_abs" else kind), (piece,)
    return (dt.BOOL if name.startswith("lk_is") else kind), (piece, f"{piece}.functions")


def _divided(word: str) -> Callable[[list[dt.DType], str], Result | None]:
    def rule(args: list[dt.DType], template: str) -> Result | None:
        if len(args) != 2 or template:
            return None
        if set(args) <= _WHOLE:
            return common(*args), (word,)
        for kind, spelled in ((dt.FLOAT32, "float"), (dt.FLOAT64, "double")):
            if args == [kind, kind]:
                return kind, (f"lk_floordiv.{spelled}",)
        return None

    return rule


def _extremum(args: list[dt.DType], template: str) -> Result | None:
    kinds = {in_registers(a) for a in args}
    if len(args) != 2 or len(kinds) != 1 or not kinds <= dt.INTEGERS or template:
        return None
    return kinds.pop(), ()


def _floating(word: str) -> Callable[[list[dt.DType], str], Result | None]:
    def rule(args: list[dt.DType], template: str) -> Result | None:
        if template or args not in ([dt.FLOAT32] * 2, [dt.FLOAT64] * 2):
            return None
        return args[0], (word,)

    return rule


def _shifted(word: str) -> Callable[[list[dt.DType], str], Result | None]:
    def rule(args: list[dt.DType], template: str) -> Result | None:
        if len(args) != 2 or template or not set(args) <= dt.INTEGERS:
            return None
        return args[0], (word,)

    return rule


def _power(args: list[dt.DType], template: str) -> Result | None:
    if len(args) != 1 or not template.isdigit() or args[0] == dt.BOOL:
        return None
    return args[0], ("lk_power",)


def _whole_power(args: list[dt.DType], template: str) -> Result | None:
    kind = TYPES.get(template)
    if len(args) != 2 or kind not in dt.INTEGERS or not set(args) <= _WHOLE:
        return None
    assert kind is not None
    return kind, ("lk_ipow",)


def _magnitude(args: list[dt.DType], template: str) -> Result | None:
    """C's own, of which there is none for unsigned integers."""
    if len(args) != 1 or template or in_registers(args[0]) not in (dt.INT32, dt.INT64):
        return None
    return in_registers(args[0]), ()


def _own_magnitude(args: list[dt.DType], template: str) -> Result | None:
    if len(args) != 1 or template or args[0] not in dt.INTEGERS:
        return None
    return args[0], ("lk_abs",)


def _sign(args: list[dt.DType], template: str) -> Result | None:
    known = dt.INTEGERS | {dt.FLOAT32, dt.FLOAT64}
    return (args[0], ("lk_sign",)) if len(args) == 1 and args[0] in known and not template else None


def _ordered(args: list[dt.DType], template: str) -> Result | None:
    """One overload must suit better than the other."""
    if len(args) != 2 or template or not set(args) <= _WHOLE:
        return None
    first = [args[0] == dt.INT64, args[1] == dt.UINT64]
    second = [args[0] == dt.UINT64, args[1] == dt.INT64]
    better = [a - b for a, b in zip(first, second, strict=True)]
    if not any(better) or (1 in better and -1 in better):
        return None
    return dt.INT32, ("lk_compare",)


def _complex_power(args: list[dt.DType], template: str) -> Result | None:
    if len(args) != 2 or template or args[0] != args[1] or args[0] not in dt.COMPLEXES:
        return None
    piece = PIECES[args[0]]
    return args[0], (piece, f"{piece}.functions")


def _mathematical(name: str, args: list[dt.DType]) -> Result | None:
    """A function of C's library: with ``f`` it converts, without it takes the type it is given."""
    suffixed = name.endswith("f") and name[:-1] in MATHEMATICAL
    plain = name[:-1] if suffixed and name not in MATHEMATICAL else name
    if plain not in MATHEMATICAL or len(args) != dt.arity_of(SPELLED.get(plain, plain)):
        return None
    if suffixed and plain.startswith("is"):
        return None
    if plain != name:
        kind = dt.FLOAT32 if all(converts(a, dt.FLOAT32) for a in args) else None
    else:
        kind = args[0] if set(args) in ({dt.FLOAT32}, {dt.FLOAT64}) else None
    if kind is None:
        return None
    return (dt.BOOL if plain.startswith("is") else kind), ()


_RULES: dict[str, Callable[[list[dt.DType], str], Result | None]] = {
    "lk_floordiv": _divided("lk_floordiv"),
    "lk_mod": _divided("lk_mod"),
    "min": _extremum,
    "max": _extremum,
    "lk_min": _floating("lk_min"),
    "lk_max": _floating("lk_max"),
    "lk_shl": _shifted("lk_shl"),
    "lk_shr": _shifted("lk_shr"),
    "lk_power": _power,
    "lk_ipow": _whole_power,
    "abs": _magnitude,
    "lk_abs": _own_magnitude,
    "lk_sign": _sign,
    "lk_compare": _ordered,
    "lk_pow": _complex_power,
}
