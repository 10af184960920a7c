#include "bindings/cli/crash_report.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace stoker::cli {
namespace {

constexpr const char* kBuild = "stoker 1.2.3, GNU 12.2.0";

// Whether a sanitizer has its own handler.
bool HasHandler(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler != SIG_DFL;
}

void WriteTo(uintptr_t address) { *reinterpret_cast<volatile int*>(address) = 1; }

TEST(CrashReportDeathTest, NamesSignalAndAddress) {
  if (HasHandler(SIGSEGV)) GTEST_SKIP() << "a sanitizer handles SIGSEGV";
  EXPECT_EXIT(
      (ReportCrashes(kBuild), WriteTo(0x4c0)), ::testing::KilledBySignal(SIGSEGV),
      "stoker: crash: SIGSEGV at address 0x4c0\n  stoker 1.2.3, GNU 12.2.0\n.*open an issue");
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
