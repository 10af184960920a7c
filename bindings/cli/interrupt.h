// Ctrl-C ends a command in order: what it knows is still printed.
#pragma once

namespace stoker::cli {

// While one lives, the first SIGINT is only noted; a second one ends the process at once, as
// without it. One at a time in a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

}  // namespace stoker::cli
