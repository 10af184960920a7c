#include "bindings/cli/interrupt.h"

#include <csignal>
#include <cstddef>

namespace stoker::cli {

namespace {

// A signal handler gets nothing but the signal's number, so its state must be global.
volatile std::sig_atomic_t signal_noted = 0;

void Note(int signal) { signal_noted = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  signal_noted = 0;
  struct sigaction noting {};
  noting.sa_handler = &Note;
  noting.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&noting.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &noting, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptGuard::interrupted() const { return signal_noted != 0; }

int InterruptedExitCode() { return 128 + (signal_noted == 0 ? SIGINT : int{signal_noted}); }

}  // namespace stoker::cli
