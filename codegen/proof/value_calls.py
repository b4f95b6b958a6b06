"""C's conversions, and calls in the text, as typed terms."""

from __future__ import annotations

from loopkit._promotion import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    COMPLEXES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS,
    FUNCTIONS,
    INT8,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    SMALL_FLOATS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    real_of,
)
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.terms import Term

TYPES: dict[str, DType] = {
    "bool": BOOL,
    "signed char": INT8,
    "unsigned char": UINT8,
    "short": INT16,
    "unsigned short": UINT16,
    "int": INT32,
    "unsigned int": UINT32,
    "unsigned": UINT32,
    "long long": INT64,
    "unsigned long long": UINT64,
    "__half": FLOAT16,
    "__nv_bfloat16": BFLOAT16,
    "float": FLOAT32,
    "double": FLOAT64,
    "lk_complex64": COMPLEX64,
    "lk_complex128": COMPLEX128,
}
"""What C's types are; ``char`` and ``long``, which differ between systems, are not printed."""

_CONVERSIONS = {
    "__half2float": (FLOAT16, FLOAT32),
    "__bfloat162float": (BFLOAT16, FLOAT32),
    "__float2half": (FLOAT32, FLOAT16),
    "__float2bfloat16": (FLOAT32, BFLOAT16),
    "__double2half": (FLOAT64, FLOAT16),
    "lk_to_complex64": (COMPLEX128, COMPLEX64),
    "lk_to_complex128": (COMPLEX64, COMPLEX128),
}
_SPELLED = {"fabs": "abs", "rint": "round"}
_MATHEMATICAL = (FUNCTIONS - {"abs", "round", "sign", "real", "imag", "conj"}) | {"fabs", "rint"}
_ON_COMPLEX = frozenset(
    f"lk_{n}"
    for n in ("abs", "conj", "exp", "log", "sqrt", "sin", "cos", "isnan", "isinf", "isfinite")
)


class UnreadableError(Exception):
    """An expression of the text whose value is not understood."""


class Calls:
    """Translates calls whose arguments are translated."""

    def converted(self, dtype: DType, x: Term) -> Term:
        """What C converts without being asked."""
        source = x.dtype
        own = SMALL_FLOATS | COMPLEXES
        if source != dtype and (source in own or dtype in own):
            raise UnreadableError(f"C has no conversion from {source} to {dtype} of its own")
        return ops.cast(dtype, x)

    def common(self, a: DType, b: DType) -> DType:
        """The type in which C computes with two operands."""
        if a == b and (a in FLOATS or a in COMPLEXES):
            return a
        for kind in (a, b):
            if kind in SMALL_FLOATS:
                raise UnreadableError(f"{a} and {b} do not meet in C")
        if a in COMPLEXES or b in COMPLEXES:
            if a in COMPLEXES and b in COMPLEXES:
                raise UnreadableError(f"{a} and {b} do not meet in C")
            return a if a in COMPLEXES else b
        for kind in (FLOAT64, FLOAT32):
            if kind in (a, b):
                return kind
        a, b = terms.in_registers(a), terms.in_registers(b)
        if UINT64 in (a, b):
            return UINT64
        if INT64 in (a, b):
            return INT64
        return UINT32 if UINT32 in (a, b) else INT32

    def call(self, name: str, args: list[Term]) -> Term:
        """A function of CUDA's, or one of the preamble's."""
        known = _CONVERSIONS.get(name)
        if known is not None and len(args) == 1:
            return ops.cast(known[1], self.converted(known[0], args[0]))
        plain, _, template = name.partition("<")
        template = template.rstrip(">")
        if plain == "lk_power" and len(args) == 1 and template.isdigit() and int(template) > 0:
            return ops.power(args[0].dtype, args[0], int(template))
        if plain == "lk_ipow" and len(args) == 2 and template in TYPES:
            kind = TYPES[template]
            return ops.call("ipow", kind, *(self.converted(kind, a) for a in args))
        if name in ("lk_floordiv", "lk_mod") and len(args) == 2:
            return self._divided("fdiv" if name == "lk_floordiv" else "mod", args)
        if name in ("lk_shl", "lk_shr") and len(args) == 2:
            return ops.shift(name[3:], args[0].dtype, *args)
        if name in ("min", "max", "lk_min", "lk_max") and len(args) == 2:
            return self._extremum(name, args)
        if name in ("abs", "lk_abs") and len(args) == 1 and args[0].dtype in INTEGERS:
            kind = terms.in_registers(args[0].dtype)
            return ops.call("abs", kind, ops.cast(kind, args[0]))
        if name == "lk_sign" and len(args) == 1:
            return ops.call("sign", args[0].dtype, args[0])
        if (name in _ON_COMPLEX or name == "lk_pow") and args and args[0].dtype in COMPLEXES:
            return self._of_complex(name, args)
        return self._mathematical(name, args)

    def _divided(self, word: str, args: list[Term]) -> Term:
        kind = self.common(args[0].dtype, args[1].dtype)
        sides = [self.converted(kind, a) for a in args]
        if kind in INTEGERS:
            return ops.quotient(word, kind, *sides)
        if kind not in (FLOAT32, FLOAT64):
            raise UnreadableError(f"a quotient of {kind}")
        return ops.call(word, kind, *sides)

    def _extremum(self, name: str, args: list[Term]) -> Term:
        a, b = (ops.cast(terms.in_registers(x.dtype), x) for x in args)
        floating = name.startswith("lk_")
        allowed = (FLOAT32, FLOAT64) if floating else INTEGERS
        if a.dtype != b.dtype or a.dtype not in allowed:
            raise UnreadableError(f"'{name}' of {a.dtype} and {b.dtype}")
        return ops.extremum(name.removeprefix("lk_"), a.dtype, a, b)

    def _of_complex(self, name: str, args: list[Term]) -> Term:
        kind = args[0].dtype
        word = name.removeprefix("lk_")
        if any(a.dtype != kind for a in args):
            raise UnreadableError(f"'{name}' of several types")
        if word.startswith("is"):
            return ops.call(word, BOOL, *args)
        return ops.call(word, real_of(kind) if word == "abs" else kind, *args)

    def _mathematical(self, name: str, args: list[Term]) -> Term:
        """A function of C's library; without ``f`` it takes the type of its arguments."""
        if any(a.dtype in SMALL_FLOATS or a.dtype in COMPLEXES for a in args):
            raise UnreadableError(f"'{name}' of half precision or complex numbers")
        if name in _MATHEMATICAL:
            single = all(a.dtype == FLOAT32 for a in args)
            kind = FLOAT32 if single else FLOAT64
        elif name.endswith("f") and name[:-1] in _MATHEMATICAL:
            name, kind = name[:-1], FLOAT32
        else:
            raise UnreadableError(f"the function '{name}' is not known")
        word = _SPELLED.get(name, name)
        sides = [ops.cast(kind, a) for a in args]
        return ops.call(word, BOOL if word.startswith("is") else kind, *sides)
