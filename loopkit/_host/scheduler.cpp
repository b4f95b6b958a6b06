#include "scheduler.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
LK_FAST_TLS lk_thread *lk_self = nullptr;
LK_FAST_TLS lk_place lk_here = {};
}

namespace lk {

namespace {

#if defined(LK_ASAN)
constexpr size_t stack_size = size_t(1) << 20;
#else
constexpr size_t stack_size = size_t(1) << 18;
#endif
constexpr size_t guard_size = size_t(1) << 16;  // one page, of whatever size

}  // namespace

Stacks::~Stacks() {
  if (memory_) munmap(memory_, count_ * stack_size);
}

bool Stacks::reserve(unsigned count) {
  if (count <= count_) return true;
  void *memory = mmap(nullptr, count * stack_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
#if defined(MADV_NOHUGEPAGE)
  madvise(memory, count * stack_size, MADV_NOHUGEPAGE);
#endif
  if (memory_) munmap(memory_, count_ * stack_size);
  memory_ = static_cast<char *>(memory);
  count_ = count;
  for (unsigned i = 0; i < count; ++i)
    mprotect(memory_ + i * stack_size, guard_size, PROT_NONE);
  return true;
}

char *Stacks::bottom(unsigned i) const { return memory_ + i * stack_size + guard_size; }

// All stacks at one offset would share the same few cache sets.
char *Stacks::top(unsigned i) const {
  return memory_ + (i + 1) * stack_size - (i % 61) * 320;
}

Block::Block(const lk_job *job, Stacks *stacks)
    : job_(job),
      stacks_(stacks),
      count_(job->block[0] * job->block[1] * job->block[2]),
      random_(0),
      fibres_(count_),
      states_(count_),
      turns_(count_) {
  unsigned i = 0;
  for (unsigned z = 0; z < job->block[2]; ++z)
    for (unsigned y = 0; y < job->block[1]; ++y)
      for (unsigned x = 0; x < job->block[0]; ++x, ++i) {
        fibres_[i].position = {x, y, z};
        fibres_[i].block = this;
        fibres_[i].index = i;
        turns_[i] = static_cast<uint16_t>(job->order == LK_DESCENDING ? count_ - 1 - i : i);
      }
#if defined(LK_ASAN)
  pthread_attr_t attributes;
  void *bottom;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &bottom, &main_.size);
  pthread_attr_destroy(&attributes);
  main_.bottom = bottom;
  main_.fake_stack = nullptr;
#endif
}

bool Block::run(uint64_t number, lk_error *error) {
  error_ = error;
  error_->failure = LK_OK;
  random_ = Random(job_->seed * 0xd1342543de82ef95ull + number);
  for (unsigned i = 0; i < count_; ++i) {
    lk_prepare(&fibres_[i].context, stacks_->bottom(i), stacks_->top(i));
    states_[i] = LK_READY;
  }
  for (unsigned w = 0; 32 * w < count_; ++w) {
    unsigned const lanes = count_ - 32 * w;
    present_[w] = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    waiting_[w] = 0;
  }
  returned_ = at_barrier_ = 0;
  barriers_differ_ = false;
  votes_ = 0;
  start_pass();
  Fibre *first = pick();
  lk_self = first;
  lk_switch(&main_, &first->context);
  return error_->failure == LK_OK;
}

void Block::start_pass() {
  cursor_ = 0;
  if (job_->order == LK_RANDOM) random_.shuffle(turns_.data(), count_);
}

inline Fibre *Block::pick() {
  while (cursor_ < count_) {
    unsigned const i = turns_[cursor_++];
    if (states_[i] == LK_READY) return &fibres_[i];
  }
  return next_pass();
}

// Everybody has run as far as they can.  Finds who may go on; null when the
// block is complete, or stuck.
Fibre *Block::next_pass() {
  if (at_barrier_ == count_ && !barriers_differ_) {
    release_barrier();
    start_pass();
    return pick();
  }
  if (returned_ == count_) return nullptr;
  unsigned ready = 0, at_warp = 0;
  int stuck = -1;
  for (unsigned i = 0; i < count_; ++i) {
    // A warp operation may have been waiting for a lane that has since returned.
    if (states_[i] == LK_AT_WARP) complete_warp(i / 32, i % 32);
  }
  for (unsigned i = 0; i < count_; ++i) {
    ready += states_[i] == LK_READY;
    if (states_[i] == LK_AT_WARP && at_warp++ == 0) stuck = static_cast<int>(i);
  }
  if (ready) {
    start_pass();
    return pick();
  }
  if (at_warp)
    fail(LK_WARP_DEADLOCK, stuck, fibres_[static_cast<unsigned>(stuck)].line);
  else if (barriers_differ_)
    fail(LK_DIVERGENT_BARRIER, -1, barrier_line_);
  else
    fail(LK_BARRIER_AFTER_RETURN, -1, barrier_line_);
  return nullptr;
}

// Hands the OS thread to whoever is next.
inline void Block::leave(Fibre *me, bool last) {
  Fibre *next = pick();
  if (next == me) return;
  lk_self = next;
  lk_switch(&me->context, next ? &next->context : &main_, last);
}

void Block::finish(Fibre *me) {
  states_[me->index] = LK_RETURNED;
  present_[me->index / 32] &= ~(1u << me->index % 32);
  ++returned_;
  leave(me, true);
  __builtin_unreachable();
}

void Block::yield(Fibre *me) { leave(me); }

int Block::barrier(Fibre *me, int line, int vote, int value) {
  states_[me->index] = LK_AT_BARRIER;
  me->line = line;
  if (at_barrier_++ == 0) {
    barrier_line_ = line;
    votes_ = vote == LK_VOTE_AND;
  } else {
    barriers_differ_ |= line != barrier_line_;
  }
  if (vote == LK_VOTE_COUNT)
    votes_ += static_cast<unsigned>(value);
  else if (vote == LK_VOTE_AND)
    votes_ &= static_cast<unsigned>(value);
  else if (vote == LK_VOTE_OR)
    votes_ |= static_cast<unsigned>(value);
  leave(me);
  return static_cast<int>(votes_result_);
}

// The result cannot be overwritten early: the next barrier needs every thread.
void Block::release_barrier() {
  votes_result_ = votes_;
  at_barrier_ = 0;
  __builtin_memset(states_.data(), LK_READY, count_);
}

uint64_t Block::warp(Fibre *me, int line, const Request &request) {
  unsigned const w = me->index / 32, lane = me->index % 32;
  me->line = line;
  me->request = request;
  if (!(request.mask >> lane & 1)) stop(me, LK_LANE_NOT_IN_MASK, line);
  states_[me->index] = LK_AT_WARP;
  waiting_[w] |= 1u << lane;
  if (!complete_warp(w, lane)) leave(me);
  return me->result;
}

// Performs the warp operation that `lane` waits at, if all lanes that its mask
// names have come to it.  Each lane gets its own result: some may be far ahead
// before others run again.
bool Block::complete_warp(unsigned w, unsigned lane) {
  Fibre *const lanes = &fibres_[32 * w];
  Request const &mine = lanes[lane].request;
  unsigned const needed = mine.mask & present_[w];
  if ((waiting_[w] & needed) != needed) return false;
  unsigned ballot = 0;
  bool first = true;
  uint32_t sum = 0;
  for (unsigned rest = needed; rest; rest &= rest - 1) {
    unsigned const i = static_cast<unsigned>(__builtin_ctz(rest));
    Request const &other = lanes[i].request;
    if (other.operation != mine.operation || other.mask != mine.mask ||
        lanes[i].line != lanes[lane].line)
      return false;
    uint32_t const value = static_cast<uint32_t>(other.value);
    ballot |= (value & 1u) << i;
    if (first) {
      sum = value;
      first = false;
      continue;
    }
    int32_t const signed_sum = static_cast<int32_t>(sum), signed_value = static_cast<int32_t>(value);
    switch (mine.operation) {
      case LK_WARP_ADD: sum += value; break;
      case LK_WARP_MIN_SIGNED: sum = signed_value < signed_sum ? value : sum; break;
      case LK_WARP_MAX_SIGNED: sum = signed_value > signed_sum ? value : sum; break;
      case LK_WARP_MIN: sum = value < sum ? value : sum; break;
      case LK_WARP_MAX: sum = value > sum ? value : sum; break;
      case LK_WARP_AND: sum &= value; break;
      case LK_WARP_OR: sum |= value; break;
      case LK_WARP_XOR: sum ^= value; break;
      default: break;
    }
  }
  for (unsigned rest = needed; rest; rest &= rest - 1) {
    unsigned const i = static_cast<unsigned>(__builtin_ctz(rest));
    Fibre &fibre = lanes[i];
    states_[32 * w + i] = LK_READY;
    switch (mine.operation) {
      case LK_WARP_SYNC: break;
      case LK_WARP_SHUFFLE: {
        // What a lane that takes no part would give is undefined: poison.
        unsigned const source = fibre.request.source;
        fibre.result = source < 32 && (needed >> source & 1) ? lanes[source].request.value : poison;
        break;
      }
      case LK_WARP_BALLOT:
        fibre.result = static_cast<uint64_t>(needed) << 32 | ballot;
        break;
      case LK_WARP_MATCH: {
        fibre.result = 0;
        for (unsigned others = needed; others; others &= others - 1) {
          unsigned const j = static_cast<unsigned>(__builtin_ctz(others));
          fibre.result |= uint64_t(lanes[j].request.value == fibre.request.value) << j;
        }
        break;
      }
      default: fibre.result = sum; break;
    }
  }
  waiting_[w] &= ~needed;
  return true;
}

void Block::fail(int failure, int thread, int line) {
  lk_error &error = *error_;
  error.failure = failure;
  error.block[0] = lk_here.block.x;
  error.block[1] = lk_here.block.y;
  error.block[2] = lk_here.block.z;
  error.thread = thread;
  error.line = line;
  error.count = count_;
  for (unsigned i = 0; i < count_; ++i) {
    error.state[i] = states_[i];
    error.at_line[i] = fibres_[i].line;
    error.mask[i] = fibres_[i].request.mask;
  }
}

// Gives up on the block: kernels own nothing that would need unwinding, so
// their stacks are simply left.
void Block::stop(Fibre *me, int failure, int line) {
  me->line = line;
  fail(failure, static_cast<int>(me->index), line);
  lk_self = nullptr;
  lk_switch(&me->context, &main_, true);
  __builtin_unreachable();
}

}  // namespace lk

extern "C" void lk_fibre_main() {
  lk::Fibre *me = static_cast<lk::Fibre *>(lk_self);
#if defined(LK_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  me->block->enter();
  me->block->finish(me);
}

extern "C" int lk_rt_barrier(int line, int vote, int value) {
  lk::Fibre *me = static_cast<lk::Fibre *>(lk_self);
  return me->block->barrier(me, line, vote, value);
}

extern "C" unsigned long long lk_rt_warp(int line, int operation, unsigned mask,
                                         unsigned long long value, unsigned source) {
  lk::Fibre *me = static_cast<lk::Fibre *>(lk_self);
  return me->block->warp(me, line, {operation, mask, source, value});
}

extern "C" void lk_rt_yield() {
  lk::Fibre *me = static_cast<lk::Fibre *>(lk_self);
  me->block->yield(me);
}

extern "C" void lk_rt_trap(int line) {
  lk::Fibre *me = static_cast<lk::Fibre *>(lk_self);
  me->block->stop(me, LK_TRAP, line);
}
