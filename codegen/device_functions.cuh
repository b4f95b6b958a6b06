// The device functions that generated code may call; codegen/preamble.py reads this file.
//
// Each is plain C++17 that NVRTC and a host compiler understand alike. A line "//@ name needs"
// begins a piece: its name, with a dot that of more overloads of what stands before the dot, and
// the pieces that it needs. INLINE stands for __device__ __forceinline__. A line "//@for" says
// what the words in capitals stand for in the pieces behind it, once for each of several cases.
//@for
//@ cuda_fp16.h
#include <cuda_fp16.h>
//@ cuda_bf16.h
#include <cuda_bf16.h>
//@ LK_INFINITY
#define LK_INFINITY __int_as_float(0x7f800000)
//@ LK_NAN
#define LK_NAN __int_as_float(0x7fc00000)
//@ lk_floordiv
// Division of integers that rounds down, as in Python; 0 where the divisor is 0, as in NumPy.
template <typename A, typename B> INLINE auto lk_floordiv(A a, B b) -> decltype(a / b) {
    using T = decltype(a / b);
    T const n = a, d = b;
    if (d == 0) return 0;
    if (T(-1) < T(0) && d == T(-1)) return T(0ull - (unsigned long long)n);
    return n / d - T(n % d != 0 && (n < 0) != (d < 0));
}
//@ lk_mod
// The remainder of lk_floordiv: it has the divisor's sign.
template <typename A, typename B> INLINE auto lk_mod(A a, B b) -> decltype(a % b) {
    using T = decltype(a % b);
    T const n = a, d = b;
    if (d == 0 || (T(-1) < T(0) && d == T(-1))) return 0;
    T const r = n % d;
    return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}
//@for TYPE=float SUFFIX=f | TYPE=double SUFFIX=
//@ lk_floordiv.TYPE
// Floor division and its remainder in TYPE.
INLINE TYPE lk_mod(TYPE a, TYPE b) {
    TYPE r = fmodSUFFIX(a, b);
    if (b == 0 || r != r) return r;
    if (r == 0) return copysignSUFFIX(TYPE(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
}
INLINE TYPE lk_floordiv(TYPE a, TYPE b) {
    if (b == 0) return a / b;
    TYPE const r = fmodSUFFIX(a, b);
    TYPE q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0) return copysignSUFFIX(TYPE(0), a / b);
    TYPE const f = floorSUFFIX(q);
    return q - f > TYPE(0.5) ? f + 1 : f;
}
//@for
//@ lk_shl
// Shifts as NumPy has them: by as many bits as there are, or more, leaves the sign alone.
template <typename T, typename N> INLINE T lk_shl(T a, N n) {
    return (unsigned long long)n < 8 * sizeof(T) ? T((unsigned long long)a << n) : T(0);
}
//@ lk_shr
template <typename T, typename N> INLINE T lk_shr(T a, N n) {
    return (unsigned long long)n < 8 * sizeof(T) ? T(a >> n) : a < 0 ? T(-1) : T(0);
}
//@ lk_ipow
// An integer power by repeated squaring; it wraps around.
template <typename T> INLINE T lk_ipow(T a, T n) {
    unsigned long long power = n < 0 ? 0 : 1, square = a;
    for (; n > 0; n >>= 1) {
        if (n & 1) power *= square;
        square *= square;
    }
    return T(power);
}
//@ lk_popcount
// How many bits of a T are set.
template <typename T> INLINE int lk_popcount(T a) {
    unsigned long long const bits = (unsigned long long)a & (~0ull >> (64 - 8 * sizeof(T)));
    return sizeof(T) == 8 ? __popcll(bits) : __popc((unsigned)bits);
}
//@ lk_clz
// How many bits of a T stand above the highest one that is set.
template <typename T> INLINE int lk_clz(T a) {
    unsigned long long const bits = (unsigned long long)a & (~0ull >> (64 - 8 * sizeof(T)));
    return sizeof(T) == 8 ? __clzll((long long)bits) : __clz((int)bits) - 32 + 8 * (int)sizeof(T);
}
//@ lk_ffs
// The place of the lowest bit that is set, counted from 1; 0 where none is.
template <typename T> INLINE int lk_ffs(T a) {
    return sizeof(T) == 8 ? __ffsll((long long)a) : __ffs((int)a);
}
//@ lk_brev
// The bits of a T in the other order.
template <typename T> INLINE T lk_brev(T a) {
    return T(__brevll((unsigned long long)a) >> (64 - 8 * sizeof(T)));
}
//@ lk_power
// x to the power of a constant, by multiplications.
template <int N, typename T> INLINE T lk_power(T x) {
    if constexpr (N == 1) return x;
    else if constexpr (N % 2 == 0) return lk_power<N / 2>(T(x * x));
    else return T(x * lk_power<N - 1>(x));
}
//@ lk_abs
// The absolute value; the smallest integer has none and stays itself, as in NumPy.
template <typename T> INLINE T lk_abs(T a) { return a < 0 ? T(0ull - (unsigned long long)a) : a; }
//@ lk_sign
// 1, -1 or 0; a NaN stays one.
template <typename T> INLINE T lk_sign(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
}
//@ lk_compare
// Negative, zero or positive as a is less than, equal to or greater than b.
INLINE int lk_compare(long long a, unsigned long long b) {
    return a < 0 || (unsigned long long)a < b ? -1 : (unsigned long long)a > b;
}
INLINE int lk_compare(unsigned long long a, long long b) { return -lk_compare(b, a); }
//@for NAME=max WORD=larger OP=> | NAME=min WORD=smaller OP=<
//@ lk_NAME
// The WORD of two numbers; a NaN if either is one, as in NumPy.
INLINE float lk_NAME(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;
    asm("NAME.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a OP b || a != a ? a : b;
#endif
}
INLINE double lk_NAME(double a, double b) { return a OP b || a != a ? a : b; }
//@for COMPLEX=lk_complex64 REAL=float SUFFIX=f | COMPLEX=lk_complex128 REAL=double SUFFIX=
//@ COMPLEX
// Complex numbers of two REALs.
struct alignas(2 * sizeof(REAL)) COMPLEX { REAL re, im; };
INLINE COMPLEX operator+(COMPLEX a, COMPLEX b) { return {a.re + b.re, a.im + b.im}; }
INLINE COMPLEX operator+(COMPLEX a, REAL b) { return {a.re + b, a.im}; }
INLINE COMPLEX operator+(REAL a, COMPLEX b) { return {a + b.re, b.im}; }
INLINE COMPLEX operator-(COMPLEX a, COMPLEX b) { return {a.re - b.re, a.im - b.im}; }
INLINE COMPLEX operator-(COMPLEX a, REAL b) { return {a.re - b, a.im}; }
INLINE COMPLEX operator-(REAL a, COMPLEX b) { return {a - b.re, -b.im}; }
INLINE COMPLEX operator-(COMPLEX a) { return {-a.re, -a.im}; }
INLINE COMPLEX operator*(COMPLEX a, COMPLEX b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
INLINE COMPLEX operator*(COMPLEX a, REAL b) { return {a.re * b, a.im * b}; }
INLINE COMPLEX operator*(REAL a, COMPLEX b) { return {a * b.re, a * b.im}; }
INLINE COMPLEX operator/(COMPLEX a, REAL b) { return {a.re / b, a.im / b}; }
// Smith's division: it does not overflow where the quotient does not.
INLINE COMPLEX operator/(COMPLEX a, COMPLEX b) {
    if (fabsSUFFIX(b.re) >= fabsSUFFIX(b.im)) {
        if (b.re == 0 && b.im == 0) return {a.re / fabsSUFFIX(b.re), a.im / fabsSUFFIX(b.re)};
        REAL const ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    REAL const ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
INLINE COMPLEX operator/(REAL a, COMPLEX b) { return COMPLEX{a, 0} / b; }
INLINE COMPLEX &operator+=(COMPLEX &a, COMPLEX b) { return a = a + b; }
INLINE COMPLEX &operator*=(COMPLEX &a, COMPLEX b) { return a = a * b; }
INLINE bool operator==(COMPLEX a, COMPLEX b) { return a.re == b.re && a.im == b.im; }
INLINE bool operator!=(COMPLEX a, COMPLEX b) { return a.re != b.re || a.im != b.im; }
INLINE COMPLEX lk_conj(COMPLEX a) { return {a.re, -a.im}; }
INLINE REAL lk_abs(COMPLEX a) { return hypotSUFFIX(a.re, a.im); }
//@ COMPLEX.functions COMPLEX
// Functions of complex numbers of two REALs.
INLINE bool lk_isnan(COMPLEX a) { return isnan(a.re) || isnan(a.im); }
INLINE bool lk_isinf(COMPLEX a) { return isinf(a.re) || isinf(a.im); }
INLINE bool lk_isfinite(COMPLEX a) { return isfinite(a.re) && isfinite(a.im); }
INLINE COMPLEX lk_exp(COMPLEX a) {
    REAL const r = expSUFFIX(a.re);
    return {r * cosSUFFIX(a.im), r * sinSUFFIX(a.im)};
}
INLINE COMPLEX lk_log(COMPLEX a) { return {logSUFFIX(lk_abs(a)), atan2SUFFIX(a.im, a.re)}; }
INLINE COMPLEX lk_log2(COMPLEX a) { return lk_log(a) * REAL(1.4426950408889634); }
INLINE COMPLEX lk_log10(COMPLEX a) { return lk_log(a) * REAL(0.4342944819032518); }
INLINE COMPLEX lk_sqrt(COMPLEX a) {
    if (a.re == 0 && a.im == 0) return {0, a.im};
    REAL const t = sqrtSUFFIX((fabsSUFFIX(a.re) + lk_abs(a)) / 2);
    if (a.re >= 0) return {t, a.im / (2 * t)};
    return {fabsSUFFIX(a.im) / (2 * t), copysignSUFFIX(t, a.im)};
}
INLINE COMPLEX lk_sin(COMPLEX a) {
    return {sinSUFFIX(a.re) * coshSUFFIX(a.im), cosSUFFIX(a.re) * sinhSUFFIX(a.im)};
}
INLINE COMPLEX lk_cos(COMPLEX a) {
    return {cosSUFFIX(a.re) * coshSUFFIX(a.im), -sinSUFFIX(a.re) * sinhSUFFIX(a.im)};
}
INLINE COMPLEX lk_sinh(COMPLEX a) {
    return {sinhSUFFIX(a.re) * cosSUFFIX(a.im), coshSUFFIX(a.re) * sinSUFFIX(a.im)};
}
INLINE COMPLEX lk_cosh(COMPLEX a) {
    return {coshSUFFIX(a.re) * cosSUFFIX(a.im), sinhSUFFIX(a.re) * sinSUFFIX(a.im)};
}
// Kahan's formula; far from the imaginary axis the real part is 1.
INLINE COMPLEX lk_tanh(COMPLEX a) {
    REAL const s = sinhSUFFIX(a.re), t = tanSUFFIX(a.im), scale = 1 + t * t;
    if (fabsSUFFIX(a.re) > 20) {
        REAL const rest = 4 * sinSUFFIX(a.im) * cosSUFFIX(a.im) * expSUFFIX(-2 * fabsSUFFIX(a.re));
        return {copysignSUFFIX(REAL(1), a.re), rest};
    }
    REAL const below = 1 + scale * s * s;
    return {scale * sqrtSUFFIX(1 + s * s) * s / below, t / below};
}
INLINE COMPLEX lk_tan(COMPLEX a) {
    COMPLEX const turned = lk_tanh(COMPLEX{-a.im, a.re});
    return {turned.im, -turned.re};
}
INLINE COMPLEX lk_pow(COMPLEX a, COMPLEX b) {
    if (b.re == 0 && b.im == 0) return {1, 0};
    if (a.re == 0 && a.im == 0) {
        REAL const none = b.re > 0 ? 0 : a.re / a.re;
        return {none, none};
    }
    return lk_exp(b * lk_log(a));
}
//@for
//@ lk_complex.convert lk_complex64 lk_complex128
INLINE lk_complex64 lk_to_complex64(lk_complex128 a) { return {(float)a.re, (float)a.im}; }
INLINE lk_complex128 lk_to_complex128(lk_complex64 a) { return {a.re, a.im}; }
//@for
//@ lk_atomic
// Replaces *address by change(*address), again until nobody else has written there in between.
template <int size> struct lk_word { using type = unsigned short; };  // a byte with its neighbour
template <> struct lk_word<4> { using type = unsigned; };
template <> struct lk_word<8> { using type = unsigned long long; };
template <typename T, typename Change>
INLINE void lk_atomic(T *address, Change change) {
#if defined(__CUDA_ARCH__)
    using Word = typename lk_word<sizeof(T)>::type;
    int const at = sizeof(T) == 1 ? (unsigned long long)address % 2 : 0;
    Word *const word = (Word *)((char *)address - at);
    Word seen = *(Word volatile *)word, old, next;
    do {
        T value;
        next = old = seen;
        memcpy(&value, (char *)&old + at, sizeof(T));
        value = change(value);
        memcpy((char *)&next + at, &value, sizeof(T));
        seen = atomicCAS(word, old, next);
    } while (seen != old);
#else
    lk_update(address, change);
#endif
}
//@ lk_publish
// Sets a flag: who sees it in lk_await sees all that this thread has written before.
INLINE void lk_publish(unsigned int *flag, unsigned int value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
#else
    __threadfence();
    *(unsigned int volatile *)flag = value;
#endif
}
//@ lk_await
// Waits until a flag is not 0, which another block sets.
INLINE unsigned int lk_await(unsigned int *flag) {
    unsigned int value;
    do {
#if defined(__CUDA_ARCH__)
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
#else
        value = *(unsigned int volatile *)flag;
        __threadfence();
        if (value == 0) __nanosleep(0);
#endif
    } while (value == 0);
    return value;
}
//@ lk_flagged
// A flag and a value of at most 32 bits in one word.
template <typename T> INLINE unsigned long long lk_flagged(unsigned int flag, T value) {
    unsigned int bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return (unsigned long long)flag << 32 | bits;
}
//@ lk_value
// The value in a word of lk_flagged.
template <typename T> INLINE T lk_value(unsigned long long word) {
    unsigned int const bits = (unsigned int)word;
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}
//@ lk_publish_word
// Stores a word, for others to see as a whole.
INLINE void lk_publish_word(unsigned long long *place, unsigned long long word) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(place), "l"(word) : "memory");
#else
    *(unsigned long long volatile *)place = word;
#endif
}
//@ lk_await_word
// Waits for a word whose flag is not 0, which another block stores.
INLINE unsigned long long lk_await_word(unsigned long long *place) {
    unsigned long long word;
    do {
#if defined(__CUDA_ARCH__)
        asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(word) : "l"(place) : "memory");
#else
        word = *(unsigned long long volatile *)place;
        if (word >> 32 == 0) __nanosleep(0);
#endif
    } while (word >> 32 == 0);
    return word;
}
//@ lk_atomic_add lk_atomic
template <typename T, typename V>
INLINE void lk_atomic_add(T *address, V value) {
    using Bits = unsigned long long;
    if constexpr (sizeof(T) == 8) atomicAdd((Bits *)address, (Bits)value);
    else lk_atomic(address, [=](T old) { return T(old + T(value)); });
}
//@ lk_atomic_add_parts
// A complex sum, each part by itself.
template <typename T>
INLINE void lk_atomic_add_parts(T *address, T value) {
    atomicAdd(&address->re, value.re);
    atomicAdd(&address->im, value.im);
}
//@ lk_atomic_mul lk_atomic
template <typename T, typename V>
INLINE void lk_atomic_mul(T *address, V value) {
    lk_atomic(address, [=](T old) { return T(1ull * old * T(value)); });
}
//@ lk_atomic_mul_half lk_atomic
template <typename T>
INLINE void lk_atomic_mul_half(T *address, T value) {
    lk_atomic(address, [=](T old) { return T(float(old) * float(value)); });
}
//@for NAME=max OP=> | NAME=min OP=<
//@ lk_atomic_NAME lk_atomic
template <typename T, typename V>
INLINE void lk_atomic_NAME(T *address, V value) {
    lk_atomic(address, [=](T old) { return old OP T(value) ? old : T(value); });
}
//@ lk_atomic_NAME_real lk_atomic lk_NAME
template <typename T, typename V>
INLINE void lk_atomic_NAME_real(T *address, V value) {
    lk_atomic(address, [=](T old) { return lk_NAME(old, T(value)); });
}
//@ lk_atomic_NAME_half lk_atomic lk_NAME
template <typename T>
INLINE void lk_atomic_NAME_half(T *address, T value) {
    lk_atomic(address, [=](T old) { return T(lk_NAME(float(old), float(value))); });
}
//@for NAME=and WORD=And OP=& | NAME=or WORD=Or OP=| | NAME=xor WORD=Xor OP=^
//@ lk_atomic_NAME lk_atomic
template <typename T, typename V>
INLINE void lk_atomic_NAME(T *address, V value) {
    using Bits = unsigned long long;
    if constexpr (sizeof(T) == 8) atomicWORD((Bits *)address, (Bits)value);
    else lk_atomic(address, [=](T old) { return T(old OP T(value)); });
}
