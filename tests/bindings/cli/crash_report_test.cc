#include "bindings/cli/crash_report.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stoker::cli {
namespace {

constexpr const char* kBuild = "stoker 1.2.3, GNU 12.2.0";

// Whether a sanitizer has its own handler.
bool HasHandler(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler != SIG_DFL;
}

// Calls itself until the stack is used up, which happens long before `depth` is.
// NOLINTNEXTLINE(misc-no-recursion): that is what it is for
int UseUpTheStack(int depth) {
  volatile char page[4096];  // NOLINT(modernize-avoid-c-arrays)
  page[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : UseUpTheStack(depth - 1) + page[0];
}

void OverflowTheStack() {
  const rlimit small{.rlim_cur = rlim_t{1} << 20, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_STACK, &small);
  _exit(UseUpTheStack(1'000'000));
}

// Crashes on several threads at the same time.
void CrashTogether() {
  constexpr int kThreads = 8;
  std::atomic<int> ready{0};
  const auto crash = [&](uintptr_t address) {
    for (++ready; ready < kThreads;) {
    }
    *reinterpret_cast<volatile int*>(address) = 1;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(crash, 0x4c0);
  for (std::thread& thread : threads) thread.join();
}

void WriteTo(uintptr_t address) { *reinterpret_cast<volatile int*>(address) = 1; }

TEST(CrashReportDeathTest, NamesSignalAndAddress) {
  if (HasHandler(SIGSEGV)) GTEST_SKIP() << "a sanitizer handles SIGSEGV";
  EXPECT_EXIT(
      (ReportCrashes(kBuild), WriteTo(0x4c0)), ::testing::KilledBySignal(SIGSEGV),
      "stoker: crash: SIGSEGV at address 0x4c0\n  stoker 1.2.3, GNU 12.2.0\n.*open an issue");
}

TEST(CrashReportDeathTest, TellsOfAStackThatIsUsedUp) {
  if (HasHandler(SIGSEGV)) GTEST_SKIP() << "a sanitizer handles SIGSEGV";
  EXPECT_EXIT((ReportCrashes(kBuild), OverflowTheStack()), ::testing::KilledBySignal(SIGSEGV),
              "stoker: crash: SIGSEGV at address 0x[0-9a-f]+\n  stoker 1.2.3");
}

TEST(CrashReportDeathTest, ReportsOneOfSeveralThreads) {
  if (HasHandler(SIGSEGV)) GTEST_SKIP() << "a sanitizer handles SIGSEGV";
  EXPECT_EXIT((ReportCrashes(kBuild), CrashTogether()), ::testing::KilledBySignal(SIGSEGV),
              "^stoker: crash: SIGSEGV at address 0x4c0\n[^:]*Please[^:]*$");
}

TEST(CrashReportDeathTest, ASignalThatWasSentEndsTheProcess) {
  if (HasHandler(SIGSEGV)) GTEST_SKIP() << "a sanitizer handles SIGSEGV";
  EXPECT_EXIT((ReportCrashes(kBuild), kill(getpid(), SIGSEGV)), ::testing::KilledBySignal(SIGSEGV),
              "stoker: crash: SIGSEGV\n  stoker 1.2.3");
}

TEST(CrashReportDeathTest, AbortHasNoAddress) {
  EXPECT_EXIT((ReportCrashes(kBuild), std::abort()), ::testing::KilledBySignal(SIGABRT),
              "stoker: crash: SIGABRT\n  stoker 1.2.3");
}

TEST(CrashReportDeathTest, AnExceptionThatNobodyCatchesIsPrinted) {
  EXPECT_EXIT((ReportCrashes(kBuild),
               std::thread([] { throw std::runtime_error("the thread is lost"); }).join()),
              ::testing::KilledBySignal(SIGABRT), "the thread is lost\nstoker: crash: SIGABRT\n");
}

TEST(CrashReportDeathTest, KeepsHandlersThatAreThere) {
  EXPECT_EXIT((signal(SIGABRT, [](int) { _exit(7); }), ReportCrashes(kBuild), std::abort()),
              ::testing::ExitedWithCode(7), "^$");
}

TEST(CrashReportDeathTest, CutsALongText) {
  EXPECT_EXIT((ReportCrashes(std::string(5000, 'x')), std::abort()),
              ::testing::KilledBySignal(SIGABRT), "\n  x{200}\n  This is an error");
}

}  // namespace
}  // namespace stoker::cli
