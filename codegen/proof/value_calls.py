"""C's conversions, and calls in the text, as typed terms."""

from __future__ import annotations

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    INTEGERS,
    SMALL_FLOATS,
    DType,
    real_of,
)
from loopkit.codegen.c.calls import CONVERSIONS, MATHEMATICAL, ON_COMPLEX, SPELLED
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import TYPES, common, converts, in_registers
from loopkit.codegen.proof import operations as ops
from loopkit.codegen.proof.terms import Term


class Calls:
    """Translates calls whose arguments are translated."""

    def converted(self, dtype: DType, x: Term) -> Term:
        """What C converts without being asked."""
        if not converts(x.dtype, dtype):
            raise UnreadableError(f"C has no conversion from {x.dtype} to {dtype} of its own")
        return ops.cast(dtype, x)

    def call(self, name: str, args: list[Term]) -> Term:
        """A function of CUDA's, or one of the preamble's."""
        known = CONVERSIONS.get(name)
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
            dtype = args[0].dtype
            kind = in_registers(dtype)
            size = ops.call("abs", kind, ops.cast(kind, args[0]))
            return size if name == "abs" else ops.cast(dtype, size)
        if name == "lk_sign" and len(args) == 1:
            return ops.call("sign", args[0].dtype, args[0])
        if (name in ON_COMPLEX or name == "lk_pow") and args and args[0].dtype in COMPLEXES:
            return self._of_complex(name, args)
        return self._mathematical(name, args)

    def _divided(self, word: str, args: list[Term]) -> Term:
        kind = common(args[0].dtype, args[1].dtype)
        sides = [self.converted(kind, a) for a in args]
        if kind in INTEGERS:
            return ops.quotient(word, kind, *sides)
        if kind not in (FLOAT32, FLOAT64):
            raise UnreadableError(f"a quotient of {kind}")
        return ops.call(word, kind, *sides)

    def _extremum(self, name: str, args: list[Term]) -> Term:
        a, b = (ops.cast(in_registers(x.dtype), x) for x in args)
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
        if name in MATHEMATICAL:
            single = all(a.dtype == FLOAT32 for a in args)
            kind = FLOAT32 if single else FLOAT64
        elif name.endswith("f") and name[:-1] in MATHEMATICAL:
            name, kind = name[:-1], FLOAT32
        else:
            raise UnreadableError(f"the function '{name}' is not known")
        word = SPELLED.get(name, name)
        sides = [ops.cast(kind, a) for a in args]
        return ops.call(word, BOOL if word.startswith("is") else kind, *sides)
