// A launch: all blocks of a grid, in the order asked for, on one or more OS threads.
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "faults.h"
#include "scheduler.h"

namespace {

struct Memory {
  char *begin;
  size_t size;
};

struct Search {
  const char *anchor;
  Memory found;
};

int look_at_module(dl_phdr_info *info, size_t, void *data) {
  Search *search = static_cast<Search *>(data);
  char *begin = static_cast<char *>(info->dlpi_tls_data);
  if (!begin) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    ElfW(Phdr) const &header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS) continue;
    if (search->anchor >= begin && search->anchor < begin + header.p_memsz) {
      search->found = {begin, header.p_memsz};
      return 1;
    }
  }
  return 0;
}

// This OS thread's copy of the kernel's shared arrays: its whole thread-local
// block, which holds nothing else.
Memory shared_arrays(const lk_job &job) {
  Search search = {static_cast<const char *>(job.anchor()), {nullptr, 0}};
  dl_iterate_phdr(look_at_module, &search);
  return search.found;
}

// Not memset, and no call that a sanitizer would watch: the guard zone behind
// dynamic shared memory lies in here.
void fill_with_poison(Memory memory) {
  uint64_t pattern = lk::poison;
  size_t i = 0;
  for (; i + 8 <= memory.size; i += 8) __builtin_memcpy(memory.begin + i, &pattern, 8);
  for (; i < memory.size; ++i) memory.begin[i] = reinterpret_cast<char *>(&pattern)[i % 8];
}

// Stacks outlive launches: mapping and touching them anew costs more than most
// launches.
std::mutex idle_mutex;
std::vector<std::unique_ptr<lk::Stacks>> idle_stacks;

// Another thread must not be in the midst of it when the process forks: the child has
// no thread that would come out of it.
void before_fork() { idle_mutex.lock(); }
void after_fork() { idle_mutex.unlock(); }
int const at_fork = pthread_atfork(before_fork, after_fork, after_fork);

std::unique_ptr<lk::Stacks> take_stacks() {
  std::lock_guard<std::mutex> lock(idle_mutex);
  if (idle_stacks.empty()) return std::make_unique<lk::Stacks>();
  std::unique_ptr<lk::Stacks> stacks = std::move(idle_stacks.back());
  idle_stacks.pop_back();
  return stacks;
}

void give_stacks(std::unique_ptr<lk::Stacks> stacks) {
  std::lock_guard<std::mutex> lock(idle_mutex);
  idle_stacks.push_back(std::move(stacks));
}

// A permutation of [0, count) that needs no table: a Feistel network on the
// next power of four, walked until it falls inside.
class BlockOrder {
 public:
  BlockOrder(int order, uint64_t count, uint64_t seed) : order_(order), count_(count) {
    while ((uint64_t(1) << 2 * half_) < count) ++half_;
    lk::Random random(seed);
    for (uint64_t &key : keys_) key = random.next();
  }
  uint64_t operator[](uint64_t i) const {
    if (order_ == LK_ASCENDING) return i;
    if (order_ == LK_DESCENDING) return count_ - 1 - i;
    do i = scramble(i);
    while (i >= count_);
    return i;
  }

 private:
  uint64_t scramble(uint64_t i) const {
    uint64_t const mask = (uint64_t(1) << half_) - 1;
    uint64_t left = i >> half_, right = i & mask;
    for (uint64_t key : keys_) {
      uint64_t const mixed = (lk::Random(right ^ key).next() >> 7) & mask;
      uint64_t const kept = right;
      right = left ^ mixed;
      left = kept;
    }
    return left << half_ | right;
  }
  int order_;
  uint64_t count_;
  int half_ = 1;
  uint64_t keys_[4];
};

class Launch {
 public:
  explicit Launch(const lk_job &job)
      : job_(job),
        blocks_(uint64_t(job.grid[0]) * job.grid[1] * job.grid[2]),
        order_(job.order, blocks_, job.seed) {
    job.error->failure = LK_OK;
  }

  int run() {
    uint64_t workers = job_.workers > 1 ? static_cast<uint64_t>(job_.workers) : 1;
    if (workers > blocks_) workers = blocks_;
    chunk_ = workers > 1 ? blocks_ / (workers * 16) + 1 : blocks_;
    std::vector<std::thread> helpers;
    for (uint64_t i = 1; i < workers; ++i) {
      try {
        helpers.emplace_back([this] { work(); });
      } catch (const std::exception &) {
        break;  // fewer threads than hoped for: the work is shared all the same
      }
    }
    work();
    for (std::thread &helper : helpers) helper.join();
    return job_.error->failure;
  }

 private:
  void work() {
    try {
      work_unguarded();
    } catch (const std::bad_alloc &) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!stopped_) job_.error->failure = LK_NO_MEMORY;
      stopped_ = true;
    }
  }

  // What one OS thread needs to run blocks.
  struct Worker {
    const lk_job *job;
    Memory shared;
    std::vector<lk_index> turns;  // of a kernel that never waits
    lk_thread thread;
    lk::Block *block;  // of one that does
    uint64_t number;
    lk_error *error;
  };

  void work_unguarded() {
    lk::Faults faults;
    lk_here.block_extent = {job_.block[0], job_.block[1], job_.block[2]};
    lk_here.grid_extent = {job_.grid[0], job_.grid[1], job_.grid[2]};
    std::unique_ptr<lk::Stacks> stacks;
    std::unique_ptr<lk::Block> block;
    auto error = std::make_unique<lk_error>();
    Worker worker = {&job_, shared_arrays(job_), {}, {}, nullptr, 0, error.get()};
    if (job_.plain) {
      worker.turns = plain_turns();
    } else {
      stacks = take_stacks();
      if (!stacks->reserve(job_.block[0] * job_.block[1] * job_.block[2])) throw std::bad_alloc();
      block = std::make_unique<lk::Block>(&job_, stacks.get());
      worker.block = block.get();
    }
    for (uint64_t next; !stopped_ && (next = next_.fetch_add(chunk_)) < blocks_;) {
      uint64_t const end = next + chunk_ < blocks_ ? next + chunk_ : blocks_;
      for (uint64_t i = next; i < end && !stopped_; ++i) {
        worker.number = order_[i];
        place(worker.number);
        if (int const signal = faults.guarded(run_block, &worker)) note_fault(*error, signal);
        if (error->failure != LK_OK) {
          std::lock_guard<std::mutex> lock(mutex_);
          if (!stopped_) std::memcpy(job_.error, error.get(), sizeof *error);
          stopped_ = true;
        }
      }
    }
    lk_self = nullptr;
    block.reset();
    if (stacks) give_stacks(std::move(stacks));
  }

  static void run_block(void *context) {
    Worker &worker = *static_cast<Worker *>(context);
    lk_job const &job = *worker.job;
    fill_with_poison(worker.shared);
    worker.error->failure = LK_OK;
    if (worker.block) {
      worker.block->run(worker.number, worker.error);
      return;
    }
    if (job.order == LK_RANDOM)
      lk::Random(job.seed + worker.number).shuffle(worker.turns.data(), worker.turns.size());
    lk_self = &worker.thread;
    job.plain(job.arguments, &worker.thread, worker.turns.data(),
              static_cast<unsigned>(worker.turns.size()));
  }

  void note_fault(lk_error &error, int signal) {
    error.failure = LK_FAULT;
    error.signal = signal;
    error.block[0] = lk_here.block.x;
    error.block[1] = lk_here.block.y;
    error.block[2] = lk_here.block.z;
    error.line = 0;
    error.thread = -1;
    if (lk_self) {
      lk_index const &t = lk_self->position;
      error.thread = static_cast<int>(t.x + job_.block[0] * (t.y + job_.block[1] * t.z));
    }
  }

  void place(uint64_t number) {
    lk_here.block.x = static_cast<unsigned>(number % job_.grid[0]);
    lk_here.block.y = static_cast<unsigned>(number / job_.grid[0] % job_.grid[1]);
    lk_here.block.z = static_cast<unsigned>(number / job_.grid[0] / job_.grid[1]);
  }

  std::vector<lk_index> plain_turns() const {
    std::vector<lk_index> turns;
    for (unsigned z = 0; z < job_.block[2]; ++z)
      for (unsigned y = 0; y < job_.block[1]; ++y)
        for (unsigned x = 0; x < job_.block[0]; ++x) turns.push_back({x, y, z});
    if (job_.order == LK_DESCENDING)
      for (size_t i = 0, j = turns.size() - 1; i < j; ++i, --j) std::swap(turns[i], turns[j]);
    return turns;
  }

  const lk_job &job_;
  uint64_t blocks_;
  uint64_t chunk_ = 1;
  BlockOrder order_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
};

}  // namespace

extern "C" int lk_launch(const lk_job *job) {
  try {
    return Launch(*job).run();
  } catch (const std::exception &) {
    return job->error->failure = LK_NO_MEMORY;
  }
}
