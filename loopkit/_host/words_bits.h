// Reinterpretation, conversion and integer intrinsics.
#pragma once

#define LK_REINTERPRET(name, to, from)                                                         \
  static inline to name(from value) {                                                          \
    to result;                                                                                 \
    __builtin_memcpy(&result, &value, sizeof result);                                          \
    return result;                                                                             \
  }
LK_REINTERPRET(__float_as_int, int, float)
LK_REINTERPRET(__float_as_uint, unsigned, float)
LK_REINTERPRET(__int_as_float, float, int)
LK_REINTERPRET(__uint_as_float, float, unsigned)
LK_REINTERPRET(__double_as_longlong, long long, double)
LK_REINTERPRET(__longlong_as_double, double, long long)
#undef LK_REINTERPRET

static inline int __double2hiint(double x) {
  return (int)((unsigned long long)__double_as_longlong(x) >> 32);
}
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      (long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// A conversion that leaves the target's range saturates, and a NaN gives 0, as
// on the GPU; a plain C cast leaves both undefined.
template <class To, class From>
static inline To lk_saturate(From whole, From least, From beyond, To lowest, To highest) {
  return whole != whole ? To(0) : whole < least ? lowest : whole >= beyond ? highest : (To)whole;
}
#define LK_CONVERT(from, from_name, to, to_name, least, beyond, lowest, highest)               \
  static inline to __##from_name##2##to_name##_rn(from x) {                                    \
    return lk_saturate<to, from>(rint(x), least, beyond, lowest, highest);                     \
  }                                                                                            \
  static inline to __##from_name##2##to_name##_rz(from x) {                                    \
    return lk_saturate<to, from>(trunc(x), least, beyond, lowest, highest);                    \
  }                                                                                            \
  static inline to __##from_name##2##to_name##_ru(from x) {                                    \
    return lk_saturate<to, from>(ceil(x), least, beyond, lowest, highest);                     \
  }                                                                                            \
  static inline to __##from_name##2##to_name##_rd(from x) {                                    \
    return lk_saturate<to, from>(floor(x), least, beyond, lowest, highest);                    \
  }
#define LK_CONVERT_ALL(from, name)                                                             \
  LK_CONVERT(from, name, int, int, -0x1p31, 0x1p31, -0x7fffffff - 1, 0x7fffffff)               \
  LK_CONVERT(from, name, unsigned, uint, 0, 0x1p32, 0u, 0xffffffffu)                           \
  LK_CONVERT(from, name, long long, ll, -0x1p63, 0x1p63, -0x7fffffffffffffffll - 1,            \
             0x7fffffffffffffffll)                                                             \
  LK_CONVERT(from, name, unsigned long long, ull, 0, 0x1p64, 0ull, 0xffffffffffffffffull)
LK_CONVERT_ALL(float, float)
LK_CONVERT_ALL(double, double)
#undef LK_CONVERT_ALL
#undef LK_CONVERT
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) result = result << 1 | (x >> bit & 1);
  return result;
}
static inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline int __mul24(int x, int y) {
  return (int)((unsigned)(x << 8 >> 8) * (unsigned)(y << 8 >> 8));
}
static inline unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)((unsigned long long)x * y >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
  return (long long)((__int128)x * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long const bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int place = 0; place < 4; ++place) {
    unsigned const choice = selector >> 4 * place & 15;
    unsigned byte = (unsigned)(bytes >> 8 * (choice & 7)) & 0xff;
    if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * place;
  }
  return result;
}
static inline unsigned __sad(int x, int y, unsigned sum) {
  return sum + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
static inline int __dp4a(int x, int y, int sum) {
  for (int byte = 0; byte < 4; ++byte)
    sum += (int)(signed char)(x >> 8 * byte) * (int)(signed char)(y >> 8 * byte);
  return sum;
}

template <class T>
static inline T __ldg(const T *address) { return *address; }
template <class T>
static inline T __ldcg(const T *address) { return *address; }
template <class T>
static inline T __ldca(const T *address) { return *address; }
template <class T>
static inline T __ldcs(const T *address) { return *address; }
template <class T>
static inline T __ldlu(const T *address) { return *address; }
template <class T>
static inline T __ldcv(const T *address) { return *(const volatile T *)address; }
template <class T>
static inline void __stcg(T *address, T value) { *address = value; }
template <class T>
static inline void __stcs(T *address, T value) { *address = value; }
template <class T>
static inline void __stwb(T *address, T value) { *address = value; }
template <class T>
static inline void __stwt(T *address, T value) { *address = value; }
static inline size_t __cvta_generic_to_shared(const void *address) { return (size_t)address; }
static inline size_t __cvta_generic_to_global(const void *address) { return (size_t)address; }

#ifndef __clang__
static inline __attribute__((always_inline)) void __builtin_assume(bool condition) {
  if (!condition) __builtin_unreachable();
}
#endif
#define __assume(condition) __builtin_assume(condition)

extern "C" int printf(const char *, ...);
extern "C" void *memcpy(void *, const void *, size_t) noexcept;
extern "C" void *memset(void *, int, size_t) noexcept;
