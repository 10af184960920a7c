// Ctrl-C and kill(1) end a command in order: what it knows is still printed, and no temporary file
// is left.
#pragma once

#include <signal.h>

#include <array>

namespace stoker::cli {

// While one lives, the first SIGINT, SIGTERM or SIGHUP is only noted; a second one of the same kind
// ends the process at once, as without it. What is ignored (nohup) stays so. One at a time in a
// process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// What a command that was interrupted exits with: 128 and the signal's number, as shells report it.
// Without a signal that of SIGINT.
int InterruptedExitCode();

}  // namespace stoker::cli
