"""The check of the spelling of names, which all names from outside pass.

Names appear in C, in generated Python and in printed texts.  So a name must be an ASCII identifier
of limited length, and no reserved word of C, C++, CUDA or Python.  Ids and tags, which appear in
comments, consist of letters, digits and a few signs.  The classes that hold names apply the check
in their constructors.  ``tests/test_reserved_words.py`` compares the lists of words with the
compilers: every identifier of CUDA's headers is either here or compiles as a name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields
from functools import cache, lru_cache
from keyword import iskeyword
from typing import Any, cast

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError
from loopkit._errors import shown as shown
from loopkit._hidden import is_hidden
from loopkit._nodes import (
    Component,
    Expression,
    Record,
    Reduction,
    TaggedVariable,
    TypeCast,
    TypeName,
    segments_of,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq
""")
"""Keywords of C and C++, alternative spellings of operators among them."""

CUDA = _words("""
    NULL blockDim blockIdx dim3 gridDim half shared_memory threadIdx uint3 warpSize
""")
"""What CUDA declares and generated code relies on, macros of its headers, and our own words."""

CALLED = _words("""
    abs acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf atanh atanhf
    atomicAdd atomicAnd atomicMax atomicMin atomicOr atomicXor cbrt cbrtf ceil ceilf copysign
    copysignf cos cosf cosh coshf erf erfc erfcf erff exp exp2 exp2f expf expm1 expm1f fabs fabsf
    floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf hypot hypotf isfinite isinf isnan lgamma
    lgammaf log log10 log10f log1p log1pf log2 log2f logf max min pow powf rint rintf rsqrt rsqrtf
    sin sinf sinh sinhf sqrt sqrtf tan tanf tanh tanhf tgamma tgammaf trunc truncf
""")
"""Functions that generated code calls: a variable of that name would hide them."""

_RESERVED = re.compile(r"__|_[A-Z]|lk_|LK_|LOOPKIT_|cuda[A-Z]|CUDA|CU_|NV_")


LIBRARY = _words("""
    CUdevResourceDesc_st CUuuid MAJOR_VERSION MINOR_VERSION PATCH_LEVEL abort calloc clock clock64
    clock_t cospi cospif cyl_bessel_i0 cyl_bessel_i0f cyl_bessel_i1 cyl_bessel_i1f double4_16a
    double4_32a erfcinv erfcinvf erfcx erfcxf erfinv erfinvf exit exp10 exp10f fdim fdimf fdivide
    fdividef free frexp frexpf half2 ilogb ilogbf j0 j0f j1 j1f jn jnf labs ldexp ldexpf
    libraryPropertyType llabs llmax llmin llrint llrintf llround llroundf logb logbf longlong4_16a
    longlong4_32a lrint lrintf lround lroundf main make_char1 make_char2 make_char3 make_char4
    make_double1 make_double2 make_double3 make_double4 make_float1 make_float2 make_float3
    make_float4 make_int1 make_int2 make_int3 make_int4 make_long1 make_long2 make_long3 make_long4
    make_longlong1 make_longlong2 make_longlong3 make_longlong4 malloc memcpy memset modf modff nan
    nanf nearbyint nearbyintf nextafter nextafterf norm norm3d norm3df norm4d norm4df normcdf
    normcdff normcdfinv normcdfinvf normf nv_bfloat16 nv_bfloat162 nv_half nv_half2 printf ptrdiff_t
    rcbrt rcbrtf realloc remainder remainderf remquo remquof rhypot rhypotf rnorm rnorm3d rnorm3df
    rnorm4d rnorm4df rnormf round roundf scalbln scalblnf scalbn scalbnf sincos sincosf sincospi
    sincospif sinpi sinpif size_t std ullmax ullmin umax umin va_arg va_copy va_end va_list va_start
    y0 y0f y1 y1f yn ynf
""")
"""What headers and compilers declare beside functions, so that no kernel has the name."""


def meaning(name: str) -> str:
    """What a word that no variable may be called means already; empty for any other."""
    if name in KEYWORDS:
        return "a word of C++"
    if iskeyword(name):
        return "a word of Python, and no argument can be passed by such a name"
    if name in CUDA:
        return "a word of CUDA C"
    if name in CALLED:
        return "a function that generated code calls"
    if _RESERVED.match(name):
        return "reserved: names that begin so belong to compilers and to generated code"
    return ""


LONGEST = 200
"""Characters that a name may have."""
MOST = 10**6
"""As many names may begin alike."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAG = re.compile(r"[A-Za-z0-9_.$-]+")
_NOTE = re.compile(r"[ -\[\]-~]*")


def is_name(name: object) -> bool:
    """Whether ``name`` is an ASCII identifier."""
    return isinstance(name, str) and len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def check_name(name: object, what: str = "a name") -> str:
    """``name``, if an iname, an array, a size or a rule may be called so."""
    word = check_identifier(name, what)
    if taken := meaning(word):
        raise InvalidArgumentError(
            f"'{word}' cannot be {what}: it is {taken}", instead="another name is free"
        )
    return word


def check_kernel_name(name: object) -> str:
    """``name``, if a kernel may be called so: its function shares a scope with C's library."""
    return _check_global(name, "the name of a kernel", "_kernel")


def check_function_name(name: object) -> str:
    """``name``, if a user's function may be called so: it, too, shares that scope."""
    return _check_global(name, "the name of a function", "_of_mine")


def _check_global(name: object, what: str, ending: str) -> str:
    word = check_name(name, what)
    if word in LIBRARY or word == "_":
        why = "a letter must be in it" if word == "_" else "CUDA's headers declare it"
        raise InvalidArgumentError(
            f"'{word}' cannot be {what}: {why}", instead=f"for example '{word.strip('_')}{ending}'"
        )
    return word


def check_identifier(name: object, what: str) -> str:
    """``name``, if it is an ASCII identifier: what ids of statements and operations are."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{what} is text, not {shown(name)}")
    if not is_name(name):
        long = len(name) > LONGEST
        length = f": it has {len(name)} characters" if long else ""
        raise InvalidArgumentError(
            f"{shown(name)} cannot be {what}{length}",
            instead=f"at most {LONGEST} are possible"
            if long
            else "it is made of the letters a to z, digits and '_', and begins with no digit",
        )
    return str(name)


def check_declared(names: object, what: str) -> str:
    """What a declaration declares: a name, or several with commas between, none of them twice."""
    if not isinstance(names, str) or "," not in names:
        return check_name(names, what)
    several = [
        check_name(name.strip(), what) for name in names.strip().removesuffix(",").split(",")
    ]
    for place, name in enumerate(several):
        if name in several[:place]:
            raise InvalidArgumentError(f"{shown(names)} declares '{name}' twice")
    return ", ".join(several)


def check_component(name: object) -> str:
    """``name``, if a component of a record may be called so: C names types by them."""
    word = check_name(name, "a component")
    if "_" in word:
        raise InvalidArgumentError(
            f"{shown(word)} cannot be a component: it is made of letters and digits alone"
        )
    return word


def check_names(names: object, what: str) -> None:
    """Every one of several names, which stand in a tuple or a frozenset."""
    for name in _items(names, what):
        check_name(name, what)


def check_inside(name: object, what: str) -> None:
    """A name inside of a value: from outside, or one that loopkit made up for a while.

    What loopkit makes up is no name from outside (:mod:`loopkit._hidden`), and is as harmless.
    """
    if not _is_made_up(name):
        check_name(name, what)


def _is_made_up(name: object) -> bool:
    return isinstance(name, str) and is_hidden(name) and name.isidentifier()


def candidates(base: str) -> Iterator[str]:
    """``base``, ``base_0``, ``base_1``, ...: names that C takes, for what loopkit adds to a kernel.

    The one place that makes such names; whoever asks takes the first that nobody else has.
    """
    if base.startswith("__"):
        base = "_" + base.lstrip("_")
    room = LONGEST - len(f"own__{MOST}")
    if len(base) > room:  # what tells names apart stands at their ends
        base = base[: room // 2] + base[-(room - room // 2) :]
    stem = "" if base == "_" else base  # two at the beginning are not for anybody
    if meaning(f"{stem}_0"):  # the beginning is reserved, as that of lk_0 is
        stem = f"own_{stem}"
    numbered = (f"{stem}_{n}" for n in range(MOST))
    for name in itertools.chain([base, stem or base], numbered):
        if not meaning(name):
            yield name


def check_tags(tags: object, what: str = "a tag") -> None:
    """Tags of a statement: letters, digits, and ``. $ - _``."""
    for tag in _items(tags, what):
        if not isinstance(tag, str) or len(tag) > LONGEST or not _TAG.fullmatch(tag):
            raise InvalidArgumentError(
                f"{shown(tag)} cannot be {what}",
                instead="it is made of the letters a to z, digits and '_', '.', '$', '-'",
            )


def check_note(note: object, what: str) -> None:
    """Text that may stand in a comment of one line, or None."""
    if note is None or (isinstance(note, str) and _NOTE.fullmatch(note)):
        return
    raise InvalidArgumentError(
        f"{shown(note)} cannot be {what}", instead="it is one line of plain ASCII without '\\'"
    )


def check_flag(value: object, what: str) -> None:
    """A choice of two: True or False, and no other value that Python takes for one of them."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{what} is True or False, not {shown(value)}")


def _items(names: object, what: str) -> Iterable[object]:
    if not isinstance(names, (tuple, frozenset)):
        raise InvalidArgumentError(
            f"names are given as a tuple or a frozenset, not as {shown(names)}"
        )
    return names


_NODES = (
    *(prim.Variable, prim.Subscript, prim.Call, prim.Sum, prim.Product, prim.Quotient),
    *(prim.FloorDiv, prim.Remainder, prim.Power, prim.Comparison, prim.LogicalAnd),
    *(prim.LogicalOr, prim.LogicalNot, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor),
    *(prim.BitwiseNot, prim.LeftShift, prim.RightShift, prim.If, prim.Min, prim.Max),
    *(Reduction, TypeCast, TypeName, Record, Component),
)
_CONSTANTS = (int, float, complex, bool, np.number, np.bool_)
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def check_expression(expr: object, what: str = "an expression") -> Expression:
    """``expr``, if it is made of the nodes that :mod:`loopkit._nodes` lists, and of good names."""
    if isinstance(expr, _CONSTANTS):
        return expr
    if not isinstance(expr, prim.ExpressionNode):
        raise InvalidArgumentError(f"{shown(expr)} cannot be {what}")
    try:
        _check_tree(expr)
    except (TypeError, AttributeError):  # what it holds has no hash, or is no part of a tree
        raise InvalidArgumentError(f"{what} holds what no expression can") from None
    except RecursionError:
        raise InvalidArgumentError(f"{what} is nested too deeply") from None
    return expr


@lru_cache(maxsize=1 << 14)
def _check_tree(expr: Expression) -> None:
    waiting: list[Any] = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _CONSTANTS):
            continue
        if isinstance(node, tuple):
            waiting += node
            continue
        if not isinstance(node, _NODES):
            raise InvalidArgumentError(f"{shown(node)} cannot be part of an expression")
        if isinstance(node, prim.Variable):
            if not _is_made_up(node.name):
                check_identifier(node.name, "a name in an expression")
            if isinstance(node, TaggedVariable):
                check_identifier(node.tag, "the tag of a use")
            continue
        if isinstance(node, prim.Comparison) and node.operator not in _COMPARISONS:
            raise InvalidArgumentError(f"{shown(node.operator)} compares nothing")
        if isinstance(node, TypeName):
            continue
        if isinstance(node, Reduction):
            check_identifier(segments_of(node.operation) or node.operation, "a reduction")
            for iname in _items(node.inames, "an iname"):
                check_inside(iname, "an iname")
            waiting.append(node.operand)
        elif isinstance(node, Record):
            for name in _items(node.names, "a component"):
                check_component(name)
            waiting += node.parts
        elif isinstance(node, Component):
            check_component(node.name)
            waiting.append(node.operand)
        elif isinstance(node, TypeCast):
            waiting.append(node.operand)
        elif isinstance(node, (prim.Subscript, prim.Call)):
            head = node.aggregate if isinstance(node, prim.Subscript) else node.function
            if not isinstance(head, prim.Variable):
                raise InvalidArgumentError("only a name is called, or has subscripts")
            if isinstance(node, prim.Call) and (whole := segments_of(head.name)) is not None:
                head = prim.Variable(whole)  # a segmented reduction of a text
            waiting += [head, node.index if isinstance(node, prim.Subscript) else node.parameters]
        else:
            waiting += [getattr(node, field) for field in _fields(cast(Hashable, type(node)))]


@cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, kind)) if f.name != "operator")
