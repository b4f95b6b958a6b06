"""Expressions of the text as typed terms, by C's rules of conversion."""

from __future__ import annotations

import math
from collections.abc import Callable

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
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.syntax import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    CExpression,
    Choice,
    Declaration,
    Element,
    For,
    Function,
    If,
    Let,
    Member,
    Name,
    Node,
    Number,
    Unary,
)
from loopkit.codegen.proof.syntax import Block as CBlock
from loopkit.codegen.proof.terms import Read, Term

TYPES: dict[str, DType] = {
    "bool": BOOL,
    "signed char": INT8,
    "unsigned char": UINT8,
    "short": INT16,
    "unsigned short": UINT16,
    "int": INT32,
    "unsigned int": UINT32,
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

_LITERALS = {
    "int": INT32,
    "uint": UINT32,
    "long": INT64,
    "ulong": UINT64,
    "float": FLOAT32,
    "double": FLOAT64,
}
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
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_BITS = {"&": "and", "|": "or", "^": "xor"}
_ARITHMETIC: dict[str, Callable[[DType, Term, Term], Term]] = {
    "+": terms.add,
    "-": terms.subtract,
    "*": terms.multiply,
}


class UnreadableError(Exception):
    """An expression of the text whose value is not understood."""


def exact_types(function: Function) -> dict[str, frozenset[DType]]:
    """The types that the text gives each name; loops of one name may differ."""
    found: dict[str, set[DType]] = {}

    def note(name: str, ctype: str) -> None:
        if ctype in TYPES:
            found.setdefault(name, set()).add(TYPES[ctype])

    def visit(nodes: tuple[Node, ...] | list[Node]) -> None:
        for node in nodes:
            if isinstance(node, (Declaration, Let, For)):
                note(node.name, node.ctype)
            if isinstance(node, (For, If, CBlock)):
                visit(node.body)

    for parameter in function.parameters:
        note(parameter.name, parameter.ctype)
    visit(function.body)
    return {name: frozenset(kinds) for name, kinds in found.items()}


class TextValues:
    """Translates what stands at one point of the text.

    ``at_least`` proves of an integer expression that it is never below a bound there.
    """

    def __init__(
        self,
        names: Names,
        types: dict[str, frozenset[DType]],
        scope: Scope,
        at_least: Callable[[CExpression, int], bool],
    ) -> None:
        self.names = names
        self.types = types
        self.scope = scope
        self.at_least = at_least

    # {{{ statements

    def assigned(self, node: Assign) -> Term:
        """What an assignment leaves in its target."""
        target = self.value(node.target)
        if node.operator == "=":
            return self.converted(target.dtype, self.value(node.value))
        if node.operator in ("max=", "min="):
            value = self.converted(target.dtype, self.value(node.value))
            return terms.extremum(node.operator[:3], target.dtype, target, value)
        whole = self.binary(Binary(node.operator[:-1], node.target, node.value))
        return self.converted(target.dtype, whole)

    # }}}

    # {{{ types

    def type_of_name(self, name: str) -> DType:
        """The type of a variable, or of an array's elements."""
        kinds = self.types.get(name)
        if not kinds:
            if "." in name:
                return UINT32  # threadIdx.x and the like
            raise UnreadableError(f"the type of '{name}' is not understood")
        if len(kinds) > 1:
            for scope in self.scope.chain():
                node = scope.node
                if isinstance(node, (For, Let)) and node.name == name:
                    return TYPES[node.ctype]
            raise UnreadableError(f"'{name}' has several types")
        return next(iter(kinds))

    def converted(self, dtype: DType, x: Term) -> Term:
        """What C converts without being asked."""
        source = x.dtype
        own = SMALL_FLOATS | COMPLEXES
        if source != dtype and (source in own or dtype in own):
            raise UnreadableError(f"C has no conversion from {source} to {dtype} of its own")
        return terms.cast(dtype, x)

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

    # }}}

    def value(self, expr: CExpression) -> Term:
        """An expression as a term; raises :class:`UnreadableError`."""
        if isinstance(expr, Number):
            return terms.const(expr.value, _LITERALS[expr.ctype])
        if isinstance(expr, Name):
            return self.name(expr.name)
        if isinstance(expr, Element):
            read = Read(expr.array, expr.indices, True)
            return Term("read", self.type_of_name(expr.array), (), read)
        if isinstance(expr, Binary):
            return self.binary(expr)
        if isinstance(expr, Unary):
            return self.unary(expr)
        if isinstance(expr, Cast):
            return self.cast(expr)
        if isinstance(expr, Choice):
            condition = self.condition(expr.condition)
            then, other = self.value(expr.then), self.value(expr.other)
            kind = then.dtype
            if kind != other.dtype:
                kind = self.common(then.dtype, other.dtype)
            sides = (self.converted(kind, then), self.converted(kind, other))
            return terms.choice(condition, *sides, asked=expr.condition)
        if isinstance(expr, Call):
            return self.call(expr.function, [self.value(a) for a in expr.arguments])
        if isinstance(expr, Member):
            inner = self.value(expr.operand)
            if inner.dtype not in COMPLEXES or expr.name not in ("re", "im"):
                raise UnreadableError(f"'.{expr.name}' is not understood")
            return terms.part(inner, expr.name)
        if isinstance(expr, Braces) and TYPES.get(expr.ctype) in COMPLEXES and len(expr.parts) == 2:
            re, im = (self.value(p) for p in expr.parts)
            return terms.complex_of(TYPES[expr.ctype], re, im)
        raise UnreadableError("an expression is not understood")

    def name(self, name: str) -> Term:
        if name == "LK_INFINITY":
            return terms.const(math.inf, FLOAT32)
        if name == "LK_NAN":
            return terms.const(math.nan, FLOAT32)
        if self.names.places.get(name, "value") != "value":
            return Term("read", self.type_of_name(name), (), Read(name, (), True))
        return Term("name", self.type_of_name(name), (), name)

    def condition(self, expr: CExpression) -> Term:
        """An expression as a condition."""
        value = self.value(expr)
        if value.dtype in COMPLEXES or value.dtype in SMALL_FLOATS:
            raise UnreadableError(f"C takes no {value.dtype} for a condition")
        return terms.truth(value)

    # {{{ operators

    def unary(self, expr: Unary) -> Term:
        if expr.operator == "!":
            return terms.negation(self.condition(expr.operand))
        x = self.value(expr.operand)
        kind = terms.in_registers(x.dtype)
        x = terms.cast(kind, x)
        if expr.operator == "-":
            return terms.neg(kind, x)
        if expr.operator == "~" and kind in INTEGERS:
            return terms.invert(kind, x)
        raise UnreadableError(f"'{expr.operator}' is not understood")

    def binary(self, expr: Binary) -> Term:
        operator = expr.operator
        if operator in ("&&", "||"):
            sides = [self.condition(expr.left), self.condition(expr.right)]
            word = "all" if operator == "&&" else "any"
            return terms.logic(word, sides, [expr.left, expr.right])
        if operator in _COMPARISONS:
            return self.comparison(expr)
        a, b = self.value(expr.left), self.value(expr.right)
        if operator in ("<<", ">>"):
            kind = terms.in_registers(a.dtype)
            count = terms.value_of(b)
            if kind not in INTEGERS or count.op != "const":
                raise UnreadableError(f"'{operator}' by what is no constant is not understood")
            word = "shl" if operator == "<<" else "shr"
            return terms.shift(word, kind, terms.cast(kind, a), count)
        kind = self.common(a.dtype, b.dtype)
        if operator in _BITS:
            if kind not in INTEGERS:
                raise UnreadableError(f"'{operator}' of {kind}")
            return terms.bits(_BITS[operator], kind, terms.cast(kind, a), terms.cast(kind, b))
        if operator in ("/", "%") and kind in INTEGERS:
            return self.quotient(expr, kind, a, b)
        if operator not in _ARITHMETIC and operator != "/":
            raise UnreadableError(f"'{operator}' of {kind}")
        a, b = self._beside(kind, a), self._beside(kind, b)
        if operator == "/":
            return terms.divide(kind, a, b)
        return _ARITHMETIC[operator](kind, a, b)

    def _beside(self, kind: DType, x: Term) -> Term:
        """An operand in the operation's type; a real number beside a complex one stays real."""
        if kind in COMPLEXES and x.dtype not in COMPLEXES:
            return terms.cast(real_of(kind), x)
        return terms.cast(kind, x)

    def quotient(self, expr: Binary, kind: DType, a: Term, b: Term) -> Term:
        """C's division: it rounds down where nothing is negative, and no divisor is 0."""
        a, b = terms.cast(kind, a), terms.cast(kind, b)
        known = terms.numbers_in(b)
        positive = all(n > 0 for n in known) if known else self.at_least(expr.right, 1)
        if positive and (kind.kind == "u" or _is_unsigned(a) or self.at_least(expr.left, 0)):
            return terms.quotient("fdiv" if expr.operator == "/" else "mod", kind, a, b)
        return terms.call("tdiv" if expr.operator == "/" else "tmod", kind, a, b)

    def comparison(self, expr: Binary) -> Term:
        left = expr.left
        if isinstance(left, Call) and left.function == "lk_compare" and len(left.arguments) == 2:
            if expr.right != Number(0, "int"):
                raise UnreadableError("'lk_compare' is compared with something else than 0")
            a, b = (self.value(x) for x in left.arguments)
            if not all(x.dtype in INTEGERS for x in (a, b)):
                raise UnreadableError("'lk_compare' of what are no integers")
            return terms.compare(expr.operator, a, b)
        a, b = self.value(left), self.value(expr.right)
        kind = a.dtype if a.dtype == b.dtype else self.common(a.dtype, b.dtype)
        if kind in COMPLEXES:
            if a.dtype != b.dtype or expr.operator not in ("==", "!="):
                raise UnreadableError("complex numbers have no order")
            return terms.compare(expr.operator, a, b)
        return terms.compare(expr.operator, terms.cast(kind, a), terms.cast(kind, b))

    def cast(self, expr: Cast) -> Term:
        dtype = TYPES.get(expr.ctype)
        x = self.value(expr.operand)
        if dtype is None:
            raise UnreadableError(f"the type '{expr.ctype}' is not understood")
        if x.dtype == dtype:
            return x
        return self.converted(dtype, x)

    # }}}

    # {{{ functions

    def call(self, name: str, args: list[Term]) -> Term:
        """A function of CUDA's, or one of the preamble's."""
        known = _CONVERSIONS.get(name)
        if known is not None and len(args) == 1:
            return terms.cast(known[1], self.converted(known[0], args[0]))
        plain, _, template = name.partition("<")
        template = template.rstrip(">")
        if plain == "lk_power" and len(args) == 1 and template.isdigit() and int(template) > 0:
            return terms.power(args[0].dtype, args[0], int(template))
        if plain == "lk_ipow" and len(args) == 2 and template in TYPES:
            kind = TYPES[template]
            return terms.call("ipow", kind, *(self.converted(kind, a) for a in args))
        if name in ("lk_floordiv", "lk_mod") and len(args) == 2:
            return self._divided("fdiv" if name == "lk_floordiv" else "mod", args)
        if name in ("lk_shl", "lk_shr") and len(args) == 2:
            return terms.shift(name[3:], args[0].dtype, *args)
        if name in ("min", "max", "lk_min", "lk_max") and len(args) == 2:
            return self._extremum(name, args)
        if name == "abs" and len(args) == 1 and args[0].dtype in INTEGERS:
            kind = terms.in_registers(args[0].dtype)
            return terms.call("abs", kind, terms.cast(kind, args[0]))
        if name == "lk_sign" and len(args) == 1:
            return terms.call("sign", args[0].dtype, args[0])
        if (name in _ON_COMPLEX or name == "lk_pow") and args and args[0].dtype in COMPLEXES:
            return self._of_complex(name, args)
        return self._mathematical(name, args)

    def _divided(self, word: str, args: list[Term]) -> Term:
        kind = self.common(args[0].dtype, args[1].dtype)
        sides = [self.converted(kind, a) for a in args]
        if kind in INTEGERS:
            return terms.quotient(word, kind, *sides)
        if kind not in (FLOAT32, FLOAT64):
            raise UnreadableError(f"a quotient of {kind}")
        return terms.call(word, kind, *sides)

    def _extremum(self, name: str, args: list[Term]) -> Term:
        a, b = (terms.cast(terms.in_registers(x.dtype), x) for x in args)
        floating = name.startswith("lk_")
        allowed = (FLOAT32, FLOAT64) if floating else INTEGERS
        if a.dtype != b.dtype or a.dtype not in allowed:
            raise UnreadableError(f"'{name}' of {a.dtype} and {b.dtype}")
        return terms.extremum(name.removeprefix("lk_"), a.dtype, a, b)

    def _of_complex(self, name: str, args: list[Term]) -> Term:
        kind = args[0].dtype
        word = name.removeprefix("lk_")
        if any(a.dtype != kind for a in args):
            raise UnreadableError(f"'{name}' of several types")
        if word.startswith("is"):
            return terms.call(word, BOOL, *args)
        return terms.call(word, real_of(kind) if word == "abs" else kind, *args)

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
        sides = [terms.cast(kind, a) for a in args]
        return terms.call(word, BOOL if word.startswith("is") else kind, *sides)

    # }}}


def _is_unsigned(x: Term) -> bool:
    """Whether a value is never negative, whatever the data."""
    numbers = terms.numbers_in(x)
    if numbers is not None:
        return all(n >= 0 for n in numbers)
    return terms.value_of(x).dtype.kind in "ub"
