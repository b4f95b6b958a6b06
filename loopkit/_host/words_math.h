// The mathematical functions, in CUDA's spellings: sqrtf(float), sqrt(double)
// and sqrt(float) as an overload.
#pragma once

#define LK_UNARY(name)                                                                         \
  extern "C" float name##f(float) noexcept;                                                    \
  extern "C" double name(double) noexcept;                                                     \
  static inline float name(float x) { return name##f(x); }
LK_UNARY(sqrt) LK_UNARY(cbrt) LK_UNARY(exp) LK_UNARY(exp2) LK_UNARY(expm1) LK_UNARY(log)
LK_UNARY(log2) LK_UNARY(log10) LK_UNARY(log1p) LK_UNARY(sin) LK_UNARY(cos) LK_UNARY(tan)
LK_UNARY(asin) LK_UNARY(acos) LK_UNARY(atan) LK_UNARY(sinh) LK_UNARY(cosh) LK_UNARY(tanh)
LK_UNARY(asinh) LK_UNARY(acosh) LK_UNARY(atanh) LK_UNARY(ceil) LK_UNARY(floor) LK_UNARY(trunc)
LK_UNARY(round) LK_UNARY(rint) LK_UNARY(nearbyint) LK_UNARY(fabs) LK_UNARY(erf) LK_UNARY(erfc)
LK_UNARY(tgamma) LK_UNARY(lgamma) LK_UNARY(logb) LK_UNARY(j0) LK_UNARY(j1) LK_UNARY(y0)
LK_UNARY(y1)
#undef LK_UNARY

#define LK_BINARY(name)                                                                        \
  extern "C" float name##f(float, float) noexcept;                                             \
  extern "C" double name(double, double) noexcept;                                             \
  static inline float name(float x, float y) { return name##f(x, y); }                         \
  static inline double name(float x, double y) { return name((double)x, y); }                  \
  static inline double name(double x, float y) { return name(x, (double)y); }
LK_BINARY(pow) LK_BINARY(atan2) LK_BINARY(fmod) LK_BINARY(copysign) LK_BINARY(hypot)
LK_BINARY(fdim) LK_BINARY(remainder) LK_BINARY(nextafter)
#undef LK_BINARY

static inline float pow(float x, int y) { return powf(x, (float)y); }
static inline double pow(double x, int y) { return pow(x, (double)y); }

extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }

extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
static inline float ldexp(float x, int e) { return ldexpf(x, e); }
extern "C" float scalbnf(float, int) noexcept;
extern "C" double scalbn(double, int) noexcept;
static inline float scalbn(float x, int e) { return scalbnf(x, e); }
extern "C" float frexpf(float, int *) noexcept;
extern "C" double frexp(double, int *) noexcept;
static inline float frexp(float x, int *e) { return frexpf(x, e); }
extern "C" float modff(float, float *) noexcept;
extern "C" double modf(double, double *) noexcept;
static inline float modf(float x, float *whole) { return modff(x, whole); }
extern "C" int ilogbf(float) noexcept;
extern "C" int ilogb(double) noexcept;
extern "C" long lrintf(float) noexcept;
extern "C" long lrint(double) noexcept;
extern "C" long lroundf(float) noexcept;
extern "C" long lround(double) noexcept;
extern "C" long long llrintf(float) noexcept;
extern "C" long long llrint(double) noexcept;
extern "C" long long llroundf(float) noexcept;
extern "C" long long llround(double) noexcept;

// A NaN loses against a number, as fmin and fmax have it; written out because
// the library's are calls.
#define LK_EXTREMES(type, suffix)                                                              \
  static inline type lk_least(type x, type y) {                                                \
    return x != x ? y : y != y ? x : x < y ? x : y;                                            \
  }                                                                                            \
  static inline type lk_greatest(type x, type y) {                                             \
    return x != x ? y : y != y ? x : x > y ? x : y;                                            \
  }
LK_EXTREMES(float, f)
LK_EXTREMES(double, )
#undef LK_EXTREMES
#define fminf(x, y) lk_least((float)(x), (float)(y))
#define fmaxf(x, y) lk_greatest((float)(x), (float)(y))
static inline float fmin(float x, float y) { return lk_least(x, y); }
static inline double fmin(double x, double y) { return lk_least(x, y); }
static inline double fmin(float x, double y) { return lk_least((double)x, y); }
static inline double fmin(double x, float y) { return lk_least(x, (double)y); }
static inline float fmax(float x, float y) { return lk_greatest(x, y); }
static inline double fmax(double x, double y) { return lk_greatest(x, y); }
static inline double fmax(float x, double y) { return lk_greatest((double)x, y); }
static inline double fmax(double x, float y) { return lk_greatest(x, (double)y); }

#define LK_MIN_MAX(result, first, second)                                                      \
  static inline result min(first x, second y) {                                                \
    return (result)x < (result)y ? (result)x : (result)y;                                      \
  }                                                                                            \
  static inline result max(first x, second y) {                                                \
    return (result)x > (result)y ? (result)x : (result)y;                                      \
  }
LK_MIN_MAX(int, int, int)
LK_MIN_MAX(unsigned, unsigned, unsigned)
LK_MIN_MAX(unsigned, int, unsigned)
LK_MIN_MAX(unsigned, unsigned, int)
LK_MIN_MAX(long, long, long)
LK_MIN_MAX(unsigned long, unsigned long, unsigned long)
LK_MIN_MAX(unsigned long, long, unsigned long)
LK_MIN_MAX(unsigned long, unsigned long, long)
LK_MIN_MAX(long long, long long, long long)
LK_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
LK_MIN_MAX(unsigned long long, long long, unsigned long long)
LK_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef LK_MIN_MAX
static inline float min(float x, float y) { return lk_least(x, y); }
static inline double min(double x, double y) { return lk_least(x, y); }
static inline double min(float x, double y) { return lk_least((double)x, y); }
static inline double min(double x, float y) { return lk_least(x, (double)y); }
static inline float max(float x, float y) { return lk_greatest(x, y); }
static inline double max(double x, double y) { return lk_greatest(x, y); }
static inline double max(float x, double y) { return lk_greatest((double)x, y); }
static inline double max(double x, float y) { return lk_greatest(x, (double)y); }
static inline unsigned umin(unsigned x, unsigned y) { return min(x, y); }
static inline unsigned umax(unsigned x, unsigned y) { return max(x, y); }
static inline long long llmin(long long x, long long y) { return min(x, y); }
static inline long long llmax(long long x, long long y) { return max(x, y); }
static inline unsigned long long ullmin(unsigned long long x, unsigned long long y) {
  return min(x, y);
}
static inline unsigned long long ullmax(unsigned long long x, unsigned long long y) {
  return max(x, y);
}

extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
static inline long abs(long x) { return labs(x); }
static inline long long abs(long long x) { return llabs(x); }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }

#define LK_PREDICATES(type)                                                                    \
  static inline bool isnan(type x) { return __builtin_isnan(x); }                              \
  static inline bool isinf(type x) { return __builtin_isinf(x); }                              \
  static inline bool isfinite(type x) { return __builtin_isfinite(x); }                        \
  static inline bool signbit(type x) { return __builtin_signbit(x) != 0; }
LK_PREDICATES(float)
LK_PREDICATES(double)
#undef LK_PREDICATES

// What CUDA has and the C library lacks.
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float rcbrt(float x) { return 1.0f / cbrtf(x); }
static inline double exp10(double x) { return pow(10.0, x); }
static inline float exp10f(float x) { return (float)pow(10.0, (double)x); }
static inline float exp10(float x) { return exp10f(x); }

// Reduced by the exact remainder first, so that integers give exact zeros.
static inline double sinpi(double x) {
  double const r = remainder(x, 2.0);
  double const folded = r > 0.5 ? 1.0 - r : r < -0.5 ? -1.0 - r : r;
  return sin(3.14159265358979323846 * folded);
}
static inline double cospi(double x) {
  double const r = fabs(remainder(x, 2.0));
  return r <= 0.25   ? cos(3.14159265358979323846 * r)
         : r <= 0.75 ? sin(3.14159265358979323846 * (0.5 - r))
                     : -cos(3.14159265358979323846 * (1.0 - r));
}
static inline float sinpif(float x) { return (float)sinpi((double)x); }
static inline float cospif(float x) { return (float)cospi((double)x); }
static inline float sinpi(float x) { return sinpif(x); }
static inline float cospi(float x) { return cospif(x); }
static inline void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
static inline void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
static inline void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
static inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
static inline void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline float normcdff(float x) { return (float)normcdf((double)x); }
static inline float norm3df(float x, float y, float z) {
  return (float)sqrt((double)x * x + (double)y * y + (double)z * z);
}
static inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }

// Fast and explicitly rounded variants.  Nothing is contracted here, so that a
// product rounded on request stays rounded.
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline double __drcp_rn(double x) { return 1.0 / x; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
