"""The words that C, C++, CUDA and Python take for themselves: no kernel may use them as names.

One rule holds for all names: a word of this module is refused where it comes in, in a text, an
argument or a history, and the error names it.  ``tests/test_words.py`` compares the lists with the
compilers: every identifier of CUDA's headers is either here or compiles as a name.
"""

from __future__ import annotations

import re
from keyword import iskeyword


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
