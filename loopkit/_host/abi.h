// What a compiled kernel, the runtime and the Python side agree on.
//
// Kept free of any system header, so that every kernel can include it at no cost.
#pragma once

struct lk_index {
  unsigned x, y, z;
};

// One CUDA thread, as far as the kernel can see it.
struct lk_thread {
  lk_index position;
};

// What all threads of a block have in common.
struct lk_place {
  lk_index block, block_extent, grid_extent;
};

// The running thread and its block.  Fibres never move between OS threads, so
// plain thread-local storage is right; initial-exec makes an access one load.
#define LK_FAST_TLS __thread __attribute__((tls_model("initial-exec"), visibility("default")))
extern "C" LK_FAST_TLS lk_thread *lk_self;
extern "C" LK_FAST_TLS lk_place lk_here;

enum lk_order { LK_ASCENDING = 0, LK_DESCENDING = 1, LK_RANDOM = 2 };

enum lk_warp_operation {
  LK_WARP_SYNC,
  LK_WARP_SHUFFLE,
  LK_WARP_BALLOT,
  LK_WARP_MATCH,
  LK_WARP_ADD,
  LK_WARP_MIN_SIGNED,
  LK_WARP_MAX_SIGNED,
  LK_WARP_MIN,
  LK_WARP_MAX,
  LK_WARP_AND,
  LK_WARP_OR,
  LK_WARP_XOR
};

enum lk_block_vote { LK_VOTE_NONE, LK_VOTE_COUNT, LK_VOTE_AND, LK_VOTE_OR };

// What stopped a launch.  The same numbers stand in report.py.
enum lk_failure {
  LK_OK = 0,
  LK_DIVERGENT_BARRIER = 1,
  LK_BARRIER_AFTER_RETURN = 2,
  LK_WARP_DEADLOCK = 3,
  LK_LANE_NOT_IN_MASK = 4,
  LK_TRAP = 5,
  LK_NO_MEMORY = 6,
  LK_FAULT = 7,
};

// What a thread was doing when the launch stopped.
enum lk_state { LK_READY = 0, LK_AT_BARRIER = 1, LK_AT_WARP = 2, LK_RETURNED = 3 };

constexpr unsigned lk_max_threads = 1024;

struct lk_error {
  int failure;
  unsigned block[3];
  int thread;  // linear index of the thread that failed, or -1
  int line;    // of the generated source, or 0
  int signal;  // for LK_FAULT
  unsigned count;
  int state[lk_max_threads];
  int at_line[lk_max_threads];
  unsigned mask[lk_max_threads];
};

// The functions that a compiled kernel exports.
typedef void (*lk_entry_function)(void **arguments);
typedef void (*lk_plain_function)(void **arguments, lk_thread *self, const lk_index *turns,
                                  unsigned count);
typedef void *(*lk_anchor_function)();
typedef void *(*lk_guard_function)();

// Behind dynamic shared memory lies this much that nothing may touch.
constexpr unsigned lk_guard_size = 4096;

struct lk_job {
  lk_entry_function entry;
  lk_plain_function plain;  // set when the kernel has no barrier and no warp operation
  lk_anchor_function anchor;  // an address inside the calling OS thread's shared arrays
  lk_guard_function guard;    // the guard zone behind dynamic shared memory, if it has any
  void **arguments;
  unsigned grid[3], block[3];
  int order;
  int workers;
  unsigned long long seed;
  lk_error *error;
};

extern "C" {
__attribute__((visibility("default"))) int lk_launch(const lk_job *job);
// Called by kernels; `line` is the line of the generated source.
__attribute__((visibility("default"))) int lk_rt_barrier(int line, int vote, int value);
__attribute__((visibility("default"))) unsigned long long lk_rt_warp(int line, int operation,
                                                                    unsigned mask,
                                                                    unsigned long long value,
                                                                    unsigned source);
__attribute__((visibility("default"))) void lk_rt_yield();
__attribute__((visibility("default"), noreturn)) void lk_rt_trap(int line);
}
