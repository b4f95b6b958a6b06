// CUDA C's words for a C++ compiler on a CPU: included before every kernel.
//
// It pulls in no system header: a kernel then compiles in a fraction of a
// second, and what NVRTC does not declare is not declared here either.
#pragma once
#include "abi.h"

#define LOOPKIT_HOST 1
#define __CUDACC_RTC__ 1

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict __restrict__

// A shared array is one per block, and a block runs on one OS thread at a time.
// Alone among storage classes, thread_local also composes with `extern` (dynamic
// shared memory) and implies `static` inside a function.  The runtime finds the
// whole of a kernel's thread-local block and poisons it before every block.
#define __shared__ thread_local

#include "words_vector.h"

#define threadIdx (reinterpret_cast<const uint3 &>(lk_self->position))
#define blockIdx (reinterpret_cast<const uint3 &>(lk_here.block))
#define blockDim (reinterpret_cast<const dim3 &>(lk_here.block_extent))
#define gridDim (reinterpret_cast<const dim3 &>(lk_here.grid_extent))
#define warpSize 32

#include "words_math.h"
#include "words_bits.h"
#include "words_sync.h"
#include "words_atomic.h"
#include "words_entry.h"
