#include "bindings/cli/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace stoker::cli {

namespace {

constexpr std::array<std::pair<int, std::string_view>, 5> kCrashes{{{SIGSEGV, "SIGSEGV"},
                                                                    {SIGBUS, "SIGBUS"},
                                                                    {SIGFPE, "SIGFPE"},
                                                                    {SIGILL, "SIGILL"},
                                                                    {SIGABRT, "SIGABRT"}}};

// A signal handler gets nothing but the signal, so its text must be global. It is written before
// the handler is installed.
std::array<char, 200> build_text;
size_t build_bytes = 0;

std::atomic_flag reporting_begun = ATOMIC_FLAG_INIT;

// The handler's stack. It has room for what the kernel saves of the widest registers.
std::array<char, size_t{64} << 10> alternate_stack;

// Lines for stderr. Allocates nothing and takes no lock: the crash may have been inside of malloc.
class Lines {
 public:
  void Add(std::string_view text) {
    const size_t fits = std::min(text.size(), text_.size() - size_);
    std::copy_n(text.begin(), fits, text_.begin() + static_cast<ptrdiff_t>(size_));
    size_ += fits;
  }
  void AddHex(uintptr_t number) {
    std::array<char, 2 * sizeof number> digits{};
    size_t at = digits.size();
    do {
      digits[--at] = "0123456789abcdef"[number % 16];
      number /= 16;
    } while (number != 0);
    Add("0x");
    Add({digits.data() + at, digits.size() - at});
  }
  void Write() const { (void)!write(STDERR_FILENO, text_.data(), size_); }

 private:
  std::array<char, 1024> text_{};
  size_t size_ = 0;
};

void Report(int signal, siginfo_t* info, void* /*context*/) {
  while (reporting_begun.test_and_set()) pause();  // another thread reports and ends the process
  Lines lines;
  lines.Add("stoker: crash: ");
  for (const auto& [number, name] : kCrashes) {
    if (number == signal) lines.Add(name);
  }
  const bool from_kernel = info->si_code > 0;  // and not by kill(2)
  if (from_kernel && signal != SIGABRT) {
    lines.Add(" at address ");
    lines.AddHex(reinterpret_cast<uintptr_t>(info->si_addr));
  }
  lines.Add("\n  ");
  lines.Add({build_text.data(), build_bytes});
  lines.Add("\n");
  if (signal == SIGBUS) {
    lines.Add(
        "  If a file became shorter while stoker used it, its disk has an I/O error or its file "
        "system\n"
        "  is full (/dev/shm, too), this is the cause. Otherwise:\n");
  }
  lines.Add(
      "  This is an error in stoker. Please open an issue, with these lines, the command line, "
      "the\n"
      "  output of `stoker doctor --json` and, if you may share it, the image or archive at "
      "which\n"
      "  it happens. If somebody could do harm with such a file, read SECURITY.md first.\n");
  lines.Write();
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  // After a fault the instruction is repeated, and fails again. A signal that was sent is not.
  if (!from_kernel) (void)raise(signal);
}

void ProvideStack() {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {.ss_sp = alternate_stack.data(), .ss_flags = 0, .ss_size = alternate_stack.size()};
  sigaltstack(&stack, nullptr);
}

}  // namespace

void ReportCrashes(const std::string& build) {
  build_bytes = std::min(build.size(), build_text.size());
  std::copy_n(build.begin(), build_bytes, build_text.begin());
  ProvideStack();
  struct sigaction reporting {};
  reporting.sa_sigaction = &Report;
  reporting.sa_flags = SA_SIGINFO | SA_ONSTACK;
  // A fault of the handler itself ends the process, because its signal is blocked.
  sigemptyset(&reporting.sa_mask);
  for (const auto& [signal, name] : kCrashes) sigaddset(&reporting.sa_mask, signal);
  for (const auto& [signal, name] : kCrashes) {
    struct sigaction before {};
    const bool free = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL;
    if (free) sigaction(signal, &reporting, nullptr);
  }
}

}  // namespace stoker::cli
