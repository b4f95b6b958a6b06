#include "faults.h"

#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>

namespace lk {

#if defined(LK_ASAN)

// There the sanitizers report, and they say more.
struct Faults::Alternate {};
Faults::Faults() : alternate_(nullptr) {}
Faults::~Faults() = default;
int Faults::guarded(void (*body)(void *), void *context) {
  body(context);
  return 0;
}

#else

namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr int signal_count = 3;
constexpr size_t alternate_size = size_t(1) << 16;

std::mutex handlers_mutex;
int handlers_users = 0;
struct sigaction previous[signal_count];

void restore_handlers() {
  for (int i = 0; i < signal_count; ++i) sigaction(signals[i], &previous[i], nullptr);
}

// Of the threads that were launching when the process forked, the child has none.
void before_fork() { handlers_mutex.lock(); }
void after_fork_in_parent() { handlers_mutex.unlock(); }
void after_fork_in_child() {
  if (handlers_users > 0) restore_handlers();
  handlers_users = 0;
  handlers_mutex.unlock();
}
int const at_fork = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

thread_local sigjmp_buf recovery;
thread_local volatile bool armed = false;
thread_local volatile int caught = 0;

void on_fault(int number, siginfo_t *info, void *) {
  if (armed && info->si_code > 0) {
    armed = false;
    caught = number;
    siglongjmp(recovery, 1);
  }
  // Not a kernel's: what was in charge before sees it, when the instruction that
  // faulted runs again.
  for (int i = 0; i < signal_count; ++i)
    if (signals[i] == number) sigaction(number, &previous[i], nullptr);
  if (info->si_code <= 0) raise(number);
}

}  // namespace

// A stack that ran over cannot hold the handler's frame.
struct Faults::Alternate {
  stack_t before;
  char memory[alternate_size];
};

Faults::Faults() : alternate_(static_cast<Alternate *>(std::malloc(sizeof(Alternate)))) {
  if (!alternate_) throw std::bad_alloc();
  stack_t own = {};
  own.ss_sp = alternate_->memory;
  own.ss_size = alternate_size;
  sigaltstack(&own, &alternate_->before);
  std::lock_guard<std::mutex> lock(handlers_mutex);
  if (handlers_users++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < signal_count; ++i) sigaction(signals[i], &action, &previous[i]);
}

Faults::~Faults() {
  {
    std::lock_guard<std::mutex> lock(handlers_mutex);
    if (--handlers_users == 0) restore_handlers();
  }
  sigaltstack(&alternate_->before, nullptr);
  std::free(alternate_);
}

int Faults::guarded(void (*body)(void *), void *context) {
  caught = 0;
  if (sigsetjmp(recovery, 0) == 0) {
    armed = true;
    body(context);
  }
  armed = false;
  return caught;
}

#endif

}  // namespace lk
