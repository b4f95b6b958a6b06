// Runs one launch in a process of its own, watched by the address and undefined
// behaviour sanitizers.
//
//     driver KERNEL.so JOB
//
// JOB is a file that both sides map: 64-bit words (see Job below), the values,
// the arrays and room for an error.  Results are written back into it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "abi.h"

extern "C" void __asan_poison_memory_region(const volatile void *address, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

struct Parameter {
  uint64_t is_array, size, offset, shift, misalignment;
};

struct Job {
  uint64_t magic, order, seed, grid[3], block[3], error_offset, count;
  Parameter parameters[];
};

constexpr uint64_t magic = 0x31424f4a4b4c;  // "LKJOB1"
constexpr uint64_t page = 1 << 16;

// Where the failing thread was: Python looks for this line.
void say_where() {
  if (!lk_self) return;
  lk_index const &t = lk_self->position, &b = lk_here.block;
  fprintf(stderr, "loopkit thread %u %u %u block %u %u %u\n", t.x, t.y, t.z, b.x, b.y, b.z);
}

// An array alone in a wide empty stretch of addresses.  Its ends are exact to
// the byte (on 8-byte granules at the front), and a wild index that misses it by
// gigabytes still hits nothing else, which the red zones of a malloc would not do.
char *alone(const Parameter &parameter) {
  uint64_t const used = (parameter.misalignment + parameter.size + page - 1) / page * page;
  for (uint64_t gap = uint64_t(1) << 33; gap >= page; gap >>= 2) {
    void *memory = mmap(nullptr, used + 2 * gap, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    char *const start = static_cast<char *>(memory) + gap;
    if (used && mprotect(start, used, PROT_READ | PROT_WRITE)) return nullptr;
    return start + parameter.misalignment;
  }
  return nullptr;
}

void close_ends(const Parameter &parameter, char *begin) {
  char *const end = begin + parameter.size;
  uint64_t const used = (parameter.misalignment + parameter.size + page - 1) / page * page;
  char *const start = begin - parameter.misalignment;
  __asan_poison_memory_region(start, parameter.misalignment);
  __asan_poison_memory_region(end, static_cast<size_t>(start + used - end));
}

int fail(const char *what) {
  fprintf(stderr, "loopkit driver: %s\n", what);
  return 70;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return fail("usage: driver KERNEL.so JOB");
  void *module = dlopen(argv[1], RTLD_NOW);
  if (!module) return fail(dlerror());
  int const file = open(argv[2], O_RDWR);
  struct stat status;
  if (file < 0 || fstat(file, &status)) return fail("the job cannot be opened");
  void *mapped = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return fail("the job cannot be mapped");
  char *const base = static_cast<char *>(mapped);
  Job const &request = *reinterpret_cast<Job *>(base);
  if (request.magic != magic) return fail("the job is not one");

  std::vector<char *> begins(request.count);
  std::vector<void *> pointers(request.count), arguments(request.count);
  for (uint64_t i = 0; i < request.count; ++i) {
    Parameter const &parameter = request.parameters[i];
    if (!parameter.is_array) {
      arguments[i] = base + parameter.offset;
      continue;
    }
    begins[i] = alone(parameter);
    if (!begins[i]) return fail("no memory for the arrays");
    if (parameter.size) memcpy(begins[i], base + parameter.offset, parameter.size);
    close_ends(parameter, begins[i]);
    pointers[i] = begins[i] + parameter.shift;
    arguments[i] = &pointers[i];
    fprintf(stderr, "loopkit array %llu %llu %llu\n", static_cast<unsigned long long>(i),
            reinterpret_cast<unsigned long long>(begins[i]),
            static_cast<unsigned long long>(parameter.size));
  }

  lk_job job = {};
  job.entry = reinterpret_cast<lk_entry_function>(dlsym(module, "lk_entry"));
  job.anchor = reinterpret_cast<lk_anchor_function>(dlsym(module, "lk_anchor"));
  job.guard = reinterpret_cast<lk_guard_function>(dlsym(module, "lk_guard"));
  job.arguments = arguments.data();
  for (int axis = 0; axis < 3; ++axis) {
    job.grid[axis] = static_cast<unsigned>(request.grid[axis]);
    job.block[axis] = static_cast<unsigned>(request.block[axis]);
  }
  job.order = static_cast<int>(request.order);
  job.seed = request.seed;
  job.workers = 1;
  job.error = reinterpret_cast<lk_error *>(base + request.error_offset);
  if (!job.entry || !job.anchor || !job.guard) return fail("the kernel lacks its entry");
  __sanitizer_set_death_callback(say_where);
  if (void *const guard = job.guard()) {
    __asan_poison_memory_region(guard, lk_guard_size);
    fprintf(stderr, "loopkit guard %llu\n", reinterpret_cast<unsigned long long>(guard));
  }
  if (lk_launch(&job)) return 3;
  for (uint64_t i = 0; i < request.count; ++i) {
    Parameter const &parameter = request.parameters[i];
    if (parameter.is_array && parameter.size)
      memcpy(base + parameter.offset, begins[i], parameter.size);
  }
  fflush(stdout);
  return 0;
}
