// Stands in for CUDA's header of this name.
#pragma once
#include "lk_small_float.h"

struct lk_bfloat16_format {
  static constexpr int mantissa_bits = 7;
  static constexpr int exponent_bits = 8;
};
LK_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, lk_bfloat16_format, bfloat16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
