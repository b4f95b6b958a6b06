// A kernel that reads where nothing is, or divides an integer by zero, ends its
// launch and not the process.
#pragma once
#include <csetjmp>

namespace lk {

// Catches faults of this OS thread while it exists, and only inside `guarded`.
class Faults {
 public:
  Faults();
  ~Faults();
  Faults(const Faults &) = delete;
  Faults &operator=(const Faults &) = delete;

  // Calls `body(context)`; the signal that ended it, or 0 when it returned.  What
  // the body was doing is abandoned as it stands: nothing is unwound.
  int guarded(void (*body)(void *), void *context);

 private:
  struct Alternate;
  Alternate *alternate_;
};

}  // namespace lk
