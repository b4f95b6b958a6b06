// The 16-bit floating types: stored as 16 bits, computed in float.
//
// A sum, product, quotient or root of two such numbers, computed in float and
// rounded once more, is correctly rounded: float has more than twice the digits.
#pragma once

template <class Format>
static inline float lk_widen(unsigned short bits) {
  constexpr int m = Format::mantissa_bits, e = Format::exponent_bits;
  constexpr unsigned top = (1u << e) - 1;
  unsigned const sign = (unsigned)(bits >> 15) << 31;
  unsigned const exponent = bits >> m & top, mantissa = bits & ((1u << m) - 1);
  if (e == 8) return __uint_as_float((unsigned)bits << 16);
  if (exponent == top) return __uint_as_float(sign | 0x7f800000u | mantissa << (23 - m));
  if (exponent == 0) {
    float const magnitude = (float)mantissa * __uint_as_float((127u - (1u << (e - 1)) + 2 - m) << 23);
    return sign ? -magnitude : magnitude;
  }
  return __uint_as_float(sign | (exponent + 128 - (1u << (e - 1))) << 23 | mantissa << (23 - m));
}

enum lk_rounding { LK_TO_NEAREST, LK_TO_ZERO, LK_DOWN, LK_UP };

// From double, so that float and double both round once only.
template <class Format>
static inline unsigned short lk_narrow(double value, lk_rounding rounding = LK_TO_NEAREST) {
  constexpr int m = Format::mantissa_bits, e = Format::exponent_bits;
  constexpr int bias = (1 << (e - 1)) - 1, top = (1 << e) - 1;
  unsigned long long const bits = (unsigned long long)__double_as_longlong(value);
  unsigned const sign = (unsigned)(bits >> 63) << 15;
  int const exponent = (int)(bits >> 52 & 0x7ff);
  unsigned long long mantissa = bits & 0xfffffffffffffull;
  if (exponent == 0x7ff)
    return (unsigned short)(mantissa ? 0x7fff : sign | (unsigned)top << m);
  int target = exponent - 1023 + bias;
  int shift = 52 - m;
  if (exponent) mantissa |= 1ull << 52;
  if (target <= 0) {  // a subnormal of the narrow type
    shift += 1 - target;
    target = 0;
    if (shift > 62) {
      mantissa = mantissa ? 1 : 0;
      shift = 62;
    }
  }
  unsigned long long kept = mantissa >> shift;
  unsigned long long const lost = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  bool away = false;
  if (rounding == LK_TO_NEAREST) away = lost > half || (lost == half && (kept & 1));
  if (rounding == LK_UP) away = lost && !sign;
  if (rounding == LK_DOWN) away = lost && sign;
  kept += away;
  // A carry out of the mantissa is the next exponent, as the format has it.
  unsigned long long const packed =
      target == 0 ? kept : kept + ((unsigned long long)(target - 1) << m);
  if (packed >= (unsigned long long)top << m) {
    bool const infinite = rounding == LK_TO_NEAREST || (rounding == LK_UP && !sign) ||
                          (rounding == LK_DOWN && sign);
    return (unsigned short)(sign | (((unsigned)top << m) - !infinite));
  }
  return (unsigned short)(sign | (unsigned)packed);
}

#define LK_SMALL_FLOAT(type, pair, format, name)                                               \
  struct type##_raw {                                                                          \
    unsigned short x;                                                                          \
  };                                                                                           \
  struct type {                                                                                \
    unsigned short bits;                                                                       \
    type() = default;                                                                          \
    constexpr type(type##_raw raw) : bits(raw.x) {}                                            \
    type(float x) : bits(lk_narrow<format>(x)) {}                                              \
    type(double x) : bits(lk_narrow<format>(x)) {}                                             \
    type(short x) : bits(lk_narrow<format>(x)) {}                                              \
    type(unsigned short x) : bits(lk_narrow<format>(x)) {}                                     \
    type(int x) : bits(lk_narrow<format>(x)) {}                                                \
    type(unsigned x) : bits(lk_narrow<format>(x)) {}                                           \
    type(long long x) : bits(lk_narrow<format>((double)x)) {}                                  \
    type(unsigned long long x) : bits(lk_narrow<format>((double)x)) {}                         \
    operator float() const { return lk_widen<format>(bits); }                                  \
    type &operator+=(const type &y) { return *this = type((float)*this + (float)y); }          \
    type &operator-=(const type &y) { return *this = type((float)*this - (float)y); }          \
    type &operator*=(const type &y) { return *this = type((float)*this * (float)y); }          \
    type &operator/=(const type &y) { return *this = type((float)*this / (float)y); }          \
    type &operator++() { return *this = type((float)*this + 1.0f); }                           \
    type &operator--() { return *this = type((float)*this - 1.0f); }                           \
  };                                                                                           \
  static inline type operator+(const type &x, const type &y) { return (float)x + (float)y; }   \
  static inline type operator-(const type &x, const type &y) { return (float)x - (float)y; }   \
  static inline type operator*(const type &x, const type &y) { return (float)x * (float)y; }   \
  static inline type operator/(const type &x, const type &y) { return (float)x / (float)y; }   \
  static inline type operator+(const type &x) { return x; }                                    \
  static inline type operator-(const type &x) { return -(float)x; }                            \
  LK_SMALL_COMPARE(type, ==)                                                                   \
  LK_SMALL_COMPARE(type, !=)                                                                   \
  LK_SMALL_COMPARE(type, <)                                                                    \
  LK_SMALL_COMPARE(type, <=)                                                                   \
  LK_SMALL_COMPARE(type, >)                                                                    \
  LK_SMALL_COMPARE(type, >=)                                                                   \
  static inline float __##name##2float(type x) { return x; }                                   \
  static inline type __float2##name(float x) { return x; }                                     \
  static inline type __double2##name(double x) { return x; }                                   \
  LK_SMALL_FROM(type, format, name, rn, LK_TO_NEAREST)                                         \
  LK_SMALL_FROM(type, format, name, rz, LK_TO_ZERO)                                            \
  LK_SMALL_FROM(type, format, name, rd, LK_DOWN)                                               \
  LK_SMALL_FROM(type, format, name, ru, LK_UP)                                                 \
  LK_SMALL_TO(type, name, rn)                                                                  \
  LK_SMALL_TO(type, name, rz)                                                                  \
  LK_SMALL_TO(type, name, rd)                                                                  \
  LK_SMALL_TO(type, name, ru)                                                                  \
  static inline unsigned short __##name##_as_ushort(type x) { return x.bits; }                 \
  static inline short __##name##_as_short(type x) { return (short)x.bits; }                    \
  static inline type __ushort_as_##name(unsigned short bits) {                                 \
    type x;                                                                                    \
    x.bits = bits;                                                                             \
    return x;                                                                                  \
  }                                                                                            \
  static inline type __short_as_##name(short bits) {                                           \
    return __ushort_as_##name((unsigned short)bits);                                           \
  }                                                                                            \
  static inline type __hadd(type x, type y) { return x + y; }                                  \
  static inline type __hsub(type x, type y) { return x - y; }                                  \
  static inline type __hmul(type x, type y) { return x * y; }                                  \
  static inline type __hdiv(type x, type y) { return x / y; }                                  \
  static inline type __hneg(type x) { return -x; }                                             \
  static inline type __habs(type x) {                                                          \
    return __ushort_as_##name((unsigned short)(x.bits & 0x7fff));                              \
  }                                                                                            \
  static inline type __hfma(type x, type y, type z) {                                          \
    return (double)(float)x * (double)(float)y + (double)(float)z;                             \
  }                                                                                            \
  static inline type __hmin(type x, type y) { return lk_least((float)x, (float)y); }           \
  static inline type __hmax(type x, type y) { return lk_greatest((float)x, (float)y); }        \
  static inline bool __heq(type x, type y) { return x == y; }                                  \
  static inline bool __hne(type x, type y) { return x != y; }                                  \
  static inline bool __hlt(type x, type y) { return x < y; }                                   \
  static inline bool __hle(type x, type y) { return x <= y; }                                  \
  static inline bool __hgt(type x, type y) { return x > y; }                                   \
  static inline bool __hge(type x, type y) { return x >= y; }                                  \
  static inline bool __hisnan(type x) { return isnan((float)x); }                              \
  LK_SMALL_MATH(type, hsqrt, sqrtf)                                                            \
  LK_SMALL_MATH(type, hrsqrt, rsqrtf)                                                          \
  LK_SMALL_MATH(type, hrcp, __frcp_rn)                                                         \
  LK_SMALL_MATH(type, hexp, expf)                                                              \
  LK_SMALL_MATH(type, hexp2, exp2f)                                                            \
  LK_SMALL_MATH(type, hexp10, exp10f)                                                          \
  LK_SMALL_MATH(type, hlog, logf)                                                              \
  LK_SMALL_MATH(type, hlog2, log2f)                                                            \
  LK_SMALL_MATH(type, hlog10, log10f)                                                          \
  LK_SMALL_MATH(type, hsin, sinf)                                                              \
  LK_SMALL_MATH(type, hcos, cosf)                                                              \
  LK_SMALL_MATH(type, htanh, tanhf)                                                            \
  LK_SMALL_MATH(type, hceil, ceilf)                                                            \
  LK_SMALL_MATH(type, hfloor, floorf)                                                          \
  LK_SMALL_MATH(type, htrunc, truncf)                                                          \
  LK_SMALL_MATH(type, hrint, rintf)                                                            \
  static inline type atomicAdd(type *address, type value) {                                    \
    return __ushort_as_##name(                                                                 \
        lk_update(&address->bits, [=](unsigned short old) -> unsigned short {                  \
          return (__ushort_as_##name(old) + value).bits;                                       \
        }));                                                                                   \
  }                                                                                            \
  LK_SMALL_PAIR(type, pair, name)

#define LK_SMALL_COMPARE(type, operation)                                                      \
  static inline bool operator operation(const type &x, const type &y) {                        \
    return (float)x operation(float) y;                                                        \
  }
#define LK_SMALL_MATH(type, name, function)                                                    \
  static inline type name(type x) { return function((float)x); }
#define LK_SMALL_FROM_ONE(type, format, name, from, from_name, suffix, rounding)               \
  static inline type __##from_name##2##name##_##suffix(from x) {                               \
    return __ushort_as_##name(lk_narrow<format>((double)x, rounding));                         \
  }
#define LK_SMALL_FROM(type, format, name, suffix, rounding)                                    \
  static inline type __ushort_as_##name(unsigned short);                                       \
  LK_SMALL_FROM_ONE(type, format, name, float, float, suffix, rounding)                        \
  LK_SMALL_FROM_ONE(type, format, name, int, int, suffix, rounding)                            \
  LK_SMALL_FROM_ONE(type, format, name, unsigned, uint, suffix, rounding)                      \
  LK_SMALL_FROM_ONE(type, format, name, short, short, suffix, rounding)                        \
  LK_SMALL_FROM_ONE(type, format, name, unsigned short, ushort, suffix, rounding)              \
  LK_SMALL_FROM_ONE(type, format, name, long long, ll, suffix, rounding)                       \
  LK_SMALL_FROM_ONE(type, format, name, unsigned long long, ull, suffix, rounding)
#define LK_SMALL_TO(type, name, suffix)                                                        \
  static inline int __##name##2int_##suffix(type x) { return __float2int_##suffix(x); }        \
  static inline unsigned __##name##2uint_##suffix(type x) { return __float2uint_##suffix(x); } \
  static inline long long __##name##2ll_##suffix(type x) { return __float2ll_##suffix(x); }

#define LK_SMALL_PAIR(type, pair, name)                                                        \
  struct __attribute__((aligned(4))) pair {                                                    \
    type x, y;                                                                                 \
    pair() = default;                                                                          \
    pair(type x_, type y_) : x(x_), y(y_) {}                                                   \
  };                                                                                           \
  static inline pair make_##name##2(type x, type y) { return pair(x, y); }                     \
  static inline pair __halves2##name##2(type x, type y) { return pair(x, y); }                 \
  static inline pair __##name##2##name##2(type x) { return pair(x, x); }                       \
  static inline type __low2##name(pair p) { return p.x; }                                      \
  static inline type __high2##name(pair p) { return p.y; }                                     \
  static inline float __low2float(pair p) { return p.x; }                                      \
  static inline float __high2float(pair p) { return p.y; }                                     \
  static inline float2 __##name##22float2(pair p) { return make_float2(p.x, p.y); }            \
  static inline pair __floats2##name##2_rn(float x, float y) { return pair(x, y); }            \
  static inline pair __float2##name##2_rn(float x) { return pair(x, x); }                      \
  static inline pair __float22##name##2_rn(float2 v) { return pair(v.x, v.y); }                \
  LK_SMALL_PAIRWISE(pair, __hadd2, +)                                                          \
  LK_SMALL_PAIRWISE(pair, __hsub2, -)                                                          \
  LK_SMALL_PAIRWISE(pair, __hmul2, *)                                                          \
  LK_SMALL_PAIRWISE(pair, __h2div, /)                                                          \
  static inline pair __hneg2(pair p) { return pair(-p.x, -p.y); }                              \
  static inline pair operator-(pair p) { return __hneg2(p); }                                  \
  static inline pair __hfma2(pair a, pair b, pair c) {                                         \
    return pair(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                 \
  }                                                                                            \
  static inline pair __hmax2(pair a, pair b) { return pair(__hmax(a.x, b.x), __hmax(a.y, b.y)); } \
  static inline pair __hmin2(pair a, pair b) { return pair(__hmin(a.x, b.x), __hmin(a.y, b.y)); } \
  static inline pair atomicAdd(pair *address, pair value) {                                    \
    return pair(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y));             \
  }
#define LK_SMALL_PAIRWISE(pair, function, operation)                                           \
  static inline pair function(pair a, pair b) {                                                \
    return pair(a.x operation b.x, a.y operation b.y);                                         \
  }                                                                                            \
  static inline pair operator operation(pair a, pair b) { return function(a, b); }             \
  static inline pair &operator operation##=(pair &a, pair b) { return a = function(a, b); }
