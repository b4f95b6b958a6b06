// Stands in for CUDA's header of this name.
#pragma once
#include "lk_small_float.h"

struct lk_half_format {
  static constexpr int mantissa_bits = 10;
  static constexpr int exponent_bits = 5;
};
LK_SMALL_FLOAT(__half, __half2, lk_half_format, half)
typedef __half half;
typedef __half2 half2;
