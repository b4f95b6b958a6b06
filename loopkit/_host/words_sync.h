// Barriers, fences and what the lanes of a warp do together.
//
// Each is a macro, for the line of the generated source that it stands on: that
// is how the runtime tells one barrier from another and names it in an error.
#pragma once

#define __syncthreads() ((void)lk_rt_barrier(__LINE__, LK_VOTE_NONE, 0))
#define __syncthreads_count(value) lk_rt_barrier(__LINE__, LK_VOTE_COUNT, (value) != 0)
#define __syncthreads_and(value) lk_rt_barrier(__LINE__, LK_VOTE_AND, (value) != 0)
#define __syncthreads_or(value) lk_rt_barrier(__LINE__, LK_VOTE_OR, (value) != 0)

#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_system() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#define __nanosleep(nanoseconds) ((void)(nanoseconds), lk_rt_yield())
#define __trap() lk_rt_trap(__LINE__)
#define __brkpt() lk_rt_trap(__LINE__)

static inline unsigned lk_lane() {
  lk_index const &t = lk_self->position, &extent = lk_here.block_extent;
  return (t.x + extent.x * (t.y + extent.y * t.z)) & 31;
}

// CUDA promises no more than that the caller is in it: lanes are never assumed
// to be converged, and code that relies on it shows here.
static inline unsigned __activemask() { return 1u << lk_lane(); }

// Called as __syncwarp() or __syncwarp(mask): a macro with arguments could not tell the two apart.
struct lk_syncwarp {
  int line;
  void operator()(unsigned mask = 0xffffffffu) const {
    lk_rt_warp(line, LK_WARP_SYNC, mask, 0, 0);
  }
};
#define __syncwarp (lk_syncwarp{__LINE__})

template <class T>
static inline T lk_exchange(int line, unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = lk_rt_warp(line, LK_WARP_SHUFFLE, mask, bits, source);
  T result = value;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}
// CUDA moves bool as int: of a lane that takes no part it may be anything.
static inline int lk_exchange(int line, unsigned mask, bool value, unsigned source) {
  return lk_exchange<int>(line, mask, value, source);
}
template <class T>
static inline T lk_shfl(int line, unsigned mask, T value, int source, int width = 32) {
  unsigned const lane = lk_lane(), segment = lane & ~((unsigned)width - 1);
  return lk_exchange(line, mask, value, segment | ((unsigned)source & ((unsigned)width - 1)));
}
template <class T>
static inline T lk_shfl_up(int line, unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned const lane = lk_lane(), within = lane & ((unsigned)width - 1);
  return lk_exchange(line, mask, value, within >= delta ? lane - delta : lane);
}
template <class T>
static inline T lk_shfl_down(int line, unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned const lane = lk_lane(), within = lane & ((unsigned)width - 1);
  return lk_exchange(line, mask, value, within + delta < (unsigned)width ? lane + delta : lane);
}
template <class T>
static inline T lk_shfl_xor(int line, unsigned mask, T value, int bits, int width = 32) {
  unsigned const lane = lk_lane(), source = lane ^ (unsigned)bits;
  unsigned const end = (lane & ~((unsigned)width - 1)) + (unsigned)width;
  return lk_exchange(line, mask, value, source < end ? source : lane);
}
#define __shfl_sync(...) lk_shfl(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) lk_shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) lk_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) lk_shfl_xor(__LINE__, __VA_ARGS__)

// The votes: all are read off the ballot, whose upper half is who took part.
static inline unsigned long long lk_ballot(int line, unsigned mask, bool value) {
  return lk_rt_warp(line, LK_WARP_BALLOT, mask, value, 0);
}
static inline int lk_all(int line, unsigned mask, bool value) {
  unsigned long long const votes = lk_ballot(line, mask, value);
  return (unsigned)votes == (unsigned)(votes >> 32);
}
#define __ballot_sync(mask, value) ((unsigned)lk_ballot(__LINE__, mask, (value) != 0))
#define __any_sync(mask, value) ((int)((unsigned)lk_ballot(__LINE__, mask, (value) != 0) != 0))
#define __all_sync(mask, value) lk_all(__LINE__, mask, (value) != 0)

template <class T>
static inline unsigned lk_match_any(int line, unsigned mask, T value) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return (unsigned)lk_rt_warp(line, LK_WARP_MATCH, mask, bits, 0);
}
#define __match_any_sync(...) lk_match_any(__LINE__, __VA_ARGS__)

#define LK_REDUCE(name, type, operation)                                                       \
  static inline type name(int line, unsigned mask, type value) {                               \
    return (type)lk_rt_warp(line, operation, mask, (unsigned)value, 0);                        \
  }
LK_REDUCE(lk_reduce_add, int, LK_WARP_ADD)
LK_REDUCE(lk_reduce_add, unsigned, LK_WARP_ADD)
LK_REDUCE(lk_reduce_min, int, LK_WARP_MIN_SIGNED)
LK_REDUCE(lk_reduce_min, unsigned, LK_WARP_MIN)
LK_REDUCE(lk_reduce_max, int, LK_WARP_MAX_SIGNED)
LK_REDUCE(lk_reduce_max, unsigned, LK_WARP_MAX)
LK_REDUCE(lk_reduce_and, unsigned, LK_WARP_AND)
LK_REDUCE(lk_reduce_or, unsigned, LK_WARP_OR)
LK_REDUCE(lk_reduce_xor, unsigned, LK_WARP_XOR)
#undef LK_REDUCE
#define __reduce_add_sync(mask, value) lk_reduce_add(__LINE__, mask, value)
#define __reduce_min_sync(mask, value) lk_reduce_min(__LINE__, mask, value)
#define __reduce_max_sync(mask, value) lk_reduce_max(__LINE__, mask, value)
#define __reduce_and_sync(mask, value) lk_reduce_and(__LINE__, mask, value)
#define __reduce_or_sync(mask, value) lk_reduce_or(__LINE__, mask, value)
#define __reduce_xor_sync(mask, value) lk_reduce_xor(__LINE__, mask, value)
