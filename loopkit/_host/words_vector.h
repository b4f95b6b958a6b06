// Vector types, with the alignment that CUDA gives them.
#pragma once

#define LK_VECTORS(type, scalar, align2, align4)                                               \
  struct type##1 { scalar x; };                                                                \
  struct __attribute__((aligned(align2))) type##2 { scalar x, y; };                            \
  struct type##3 { scalar x, y, z; };                                                          \
  struct __attribute__((aligned(align4))) type##4 { scalar x, y, z, w; };                      \
  static inline type##1 make_##type##1(scalar x) { return {x}; }                               \
  static inline type##2 make_##type##2(scalar x, scalar y) { return {x, y}; }                  \
  static inline type##3 make_##type##3(scalar x, scalar y, scalar z) { return {x, y, z}; }     \
  static inline type##4 make_##type##4(scalar x, scalar y, scalar z, scalar w) {               \
    return {x, y, z, w};                                                                       \
  }

LK_VECTORS(char, signed char, 2, 4)
LK_VECTORS(uchar, unsigned char, 2, 4)
LK_VECTORS(short, short, 4, 8)
LK_VECTORS(ushort, unsigned short, 4, 8)
LK_VECTORS(int, int, 8, 16)
LK_VECTORS(uint, unsigned, 8, 16)
LK_VECTORS(long, long, 16, 16)
LK_VECTORS(ulong, unsigned long, 16, 16)
LK_VECTORS(longlong, long long, 16, 16)
LK_VECTORS(ulonglong, unsigned long long, 16, 16)
LK_VECTORS(float, float, 8, 16)
LK_VECTORS(double, double, 16, 16)
#undef LK_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
