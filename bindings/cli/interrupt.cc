#include "bindings/cli/interrupt.h"

#include <csignal>

namespace stoker::cli {

namespace {

// A signal handler is given nothing but the signal's number, so what it says must be global.
volatile std::sig_atomic_t interrupt_noted = 0;

void Note(int /*signal*/) { interrupt_noted = 1; }

void Install(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_noted = 0;
  Install(&Note, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() { Install(SIG_DFL, 0); }

bool InterruptGuard::interrupted() const { return interrupt_noted != 0; }

}  // namespace stoker::cli
