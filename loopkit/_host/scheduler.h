// The threads of one block as fibres, and the order in which they run.
#pragma once
#include <cstdint>
#include <vector>

#include "abi.h"
#include "fibre.h"

namespace lk {

// The pattern is a NaN as float16, bfloat16, float32 and float64, and far out of
// any range as an integer: what reads a cell that nobody wrote in this block
// cannot pass for right.
constexpr uint64_t poison = 0x7ff77ff77ff77ff7ull;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  template <class T>
  void shuffle(T *items, size_t count) {
    for (size_t i = count; i > 1; --i) {
      size_t const j = static_cast<size_t>(next() % i);
      T const kept = items[i - 1];
      items[i - 1] = items[j];
      items[j] = kept;
    }
  }

 private:
  uint64_t state_;
};

// Memory for the stacks of a block, kept between launches.
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;
  ~Stacks();
  bool reserve(unsigned count);
  char *bottom(unsigned i) const;
  char *top(unsigned i) const;

 private:
  char *memory_ = nullptr;
  unsigned count_ = 0;
};

struct Request {
  int operation;
  unsigned mask;
  unsigned source;
  uint64_t value;
};

class Block;

struct Fibre : lk_thread {
  lk_stack_context context;
  Block *block;
  unsigned index;
  int line;  // of the barrier or warp operation it waits at
  Request request;
  uint64_t result;
};

class Block {
 public:
  Block(const lk_job *job, Stacks *stacks);
  // Runs all threads of the block at lk_here.block; false when it failed.
  bool run(uint64_t number, lk_error *error);

  int barrier(Fibre *me, int line, int vote, int value);
  uint64_t warp(Fibre *me, int line, const Request &request);
  void yield(Fibre *me);
  [[noreturn]] void stop(Fibre *me, int failure, int line);
  [[noreturn]] void finish(Fibre *me);
  void enter() { job_->entry(job_->arguments); }

 private:
  void leave(Fibre *me, bool last = false);
  Fibre *pick();
  Fibre *next_pass();
  void start_pass();
  void release_barrier();
  bool complete_warp(unsigned warp, unsigned lane);
  void fail(int failure, int thread, int line);

  const lk_job *job_;
  Stacks *stacks_;
  unsigned count_;
  Random random_;
  std::vector<Fibre> fibres_;
  std::vector<uint8_t> states_;
  std::vector<uint16_t> turns_;
  unsigned cursor_ = 0;
  unsigned returned_ = 0, at_barrier_ = 0;
  int barrier_line_ = 0;
  bool barriers_differ_ = false;
  unsigned votes_ = 0, votes_result_ = 0;
  unsigned present_[lk_max_threads / 32];  // lanes that have not returned
  unsigned waiting_[lk_max_threads / 32];  // lanes inside a warp operation
  lk_stack_context main_;
  lk_error *error_ = nullptr;
};

}  // namespace lk
