"""Typed expressions and assignments as C text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, TypeCast
from loopkit._types import WeakType, dtype_of
from loopkit.codegen.widths import Ranges

_C = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}


def c_type(dtype: Any) -> str:
    return _C[np.dtype(dtype).name]


class ValuePrinter:
    def __init__(self, kernel: Kernel, ranges: Ranges, access: Callable[..., str]) -> None:
        self.kernel, self.ranges, self.access = kernel, ranges, access
        self.helpers: set[str] = set()
        self.includes: set[str] = set()

    def integer(self, expr: Expression) -> str:
        return self.rec(expr, np.dtype("int32"))

    def env(self, name: str) -> Any:
        t = self.kernel.temporary_by_name.get(name) or self.kernel.arg_by_name.get(name)
        return t.dtype if t is not None else self.ranges.dtype_of(name)

    def assignment(self, s: Statement) -> str:
        name, idx = s.write
        lhs = self.access(name, idx)
        dt = self.env(name)
        if s.operation is None:
            return f"{lhs} = {self.rec(s.rhs, dt)};"
        if s.operation in ("sum", "product"):
            return f"{lhs} {'+' if s.operation == 'sum' else '*'}= {self.rec(s.rhs, dt)};"
        if s.operation in ("max", "min"):
            return f"{lhs} = {s.operation}({lhs}, {self.rec(s.rhs, dt)});"
        return f"{lhs} = {lhs} {'||' if s.operation == 'any' else '&&'} {self.rec(s.rhs, dt)};"

    def rec(self, e: Expression, dt: Any) -> str:
        if isinstance(e, (bool, np.bool_)):
            return str(bool(e)).lower()
        if isinstance(e, (int, float, np.number)):
            if np.dtype(dt).kind == "f":
                t = repr(float(e))
                if t in ("inf", "-inf"):
                    t = t.replace("inf", "__builtin_inf()")
                    return t
                return t + ("f" if np.dtype(dt) == np.float32 else "")
            return str(int(e))
        if isinstance(e, prim.Variable):
            return self.access(e.name, ()) if self.kernel.is_array(e.name) else e.name
        if isinstance(e, prim.Subscript):
            return self.access(e.aggregate.name, e.index)
        if isinstance(e, prim.Sum):
            return "(" + " + ".join(self.rec(c, dt) for c in e.children) + ")"
        if isinstance(e, prim.Product):
            return "(" + " * ".join(self.rec(c, dt) for c in e.children) + ")"
        if isinstance(e, prim.Quotient):
            return f"({self.rec(e.numerator, dt)} / {self.rec(e.denominator, dt)})"
        if isinstance(e, (prim.Max, prim.Min)):
            n = "max" if isinstance(e, prim.Max) else "min"
            r = self.rec(e.children[0], dt)
            for c in e.children[1:]:
                r = f"{n}({r}, {self.rec(c, dt)})"
            return r
        if isinstance(e, prim.If):
            return (
                f"({self.rec(e.condition, dt)} ? {self.rec(e.then, dt)} : {self.rec(e.else_, dt)})"
            )
        if isinstance(e, prim.Comparison):
            d = dtype_of(prim.Sum((e.left, e.right)), self.env)
            d = np.dtype("int32") if isinstance(d, WeakType) else d
            return f"({self.rec(e.left, d)} {e.operator} {self.rec(e.right, d)})"
        if isinstance(e, prim.LogicalAnd):
            return "(" + " && ".join(self.rec(c, dt) for c in e.children) + ")"
        if isinstance(e, prim.LogicalOr):
            return "(" + " || ".join(self.rec(c, dt) for c in e.children) + ")"
        if isinstance(e, prim.LogicalNot):
            return "!" + self.rec(e.child, dt)
        if isinstance(e, TypeCast):
            return f"({c_type(e.dtype)})" + self.rec(e.operand, e.dtype)
        if isinstance(e, prim.FloorDiv):
            return f"({self.rec(e.numerator, dt)} / {self.rec(e.denominator, dt)})"
        if isinstance(e, prim.Remainder):
            return f"({self.rec(e.numerator, dt)} % {self.rec(e.denominator, dt)})"
        if isinstance(e, prim.Power):
            return f"pow({self.rec(e.base, dt)}, {self.rec(e.exponent, dt)})"
        if isinstance(e, prim.Call):
            sfx = "f" if np.dtype(dt) == np.float32 else ""
            return (
                f"{e.function.name}{sfx}(" + ", ".join(self.rec(p, dt) for p in e.parameters) + ")"
            )
        raise TypeError(type(e))


def preamble(helpers: set[str], includes: set[str], kernel: Kernel) -> list[str]:
    return []
