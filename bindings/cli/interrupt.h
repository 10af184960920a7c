// Ends a command in an orderly way on Ctrl-C and kill(1): results so far are printed, and no
// temporary file is left.
#pragma once

#include <signal.h>

#include <array>

namespace stoker::cli {

// While one exists, the first SIGINT, SIGTERM or SIGHUP is only recorded; a second one of the same
// kind ends the process at once, as without a guard. Ignored signals (nohup) stay ignored. One at a
// time per process.
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

// Returns the exit code of an interrupted command: 128 plus the signal's number, as shells report
// it; without a signal, SIGINT's.
int InterruptedExitCode();

}  // namespace stoker::cli
