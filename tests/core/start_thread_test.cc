#include "core/system/start_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include "tests/testing/process/child_process.h"
#include "tests/testing/process/process_usage.h"

namespace stoker {
namespace {

using testing::ExitCodeOfChild;
using ::testing::HasSubstr;
using testing::MemoryNow;

// Returns how `child` ends in a process whose address space may grow by at most `more`.
template <typename Function>
int WithAddressSpace(uint64_t more, Function child) {
  return ExitCodeOfChild([&] {
    const uint64_t bytes = MemoryNow().mapped + more;
    const rlimit limit{bytes, bytes};
    return setrlimit(RLIMIT_AS, &limit) == 0 ? child() : 99;
  });
}

TEST(StartThread, RunsTheFunction) {
  std::atomic<bool> ran{false};
  std::thread thread = StartThread("a thread", [&] { ran = true; }).value();
  thread.join();
  EXPECT_TRUE(ran);
  EXPECT_EQ(ThreadsToBeHad(5), 5);
  EXPECT_EQ(ThreadsToBeHad(0), 0);
}

// A scheduling policy that was chosen explicitly is kept.
TEST(StartThread, BackgroundThreadsUseTheBatchPolicy) {
  const int before = sched_getscheduler(0);
  for (const int given : {SCHED_OTHER, SCHED_IDLE}) {
    bool allowed = false;
    int became = -1;
    char name[16] = {};
    std::thread thread = StartThread("a thread", [&] {
                           const sched_param no_priority{};
                           allowed = sched_setscheduler(0, given, &no_priority) == 0;
                           BecomeBackgroundThread("stoker/test");
                           became = sched_getscheduler(0);
                           pthread_getname_np(pthread_self(), name, sizeof(name));
                         }).value();
    thread.join();
    EXPECT_STREQ(name, "stoker/test");
    if (!allowed) GTEST_SKIP() << "this sandbox does not allow another policy";
    EXPECT_EQ(became, given == SCHED_OTHER ? SCHED_BATCH : given);
  }
  EXPECT_EQ(sched_getscheduler(0), before);  // of the thread that started it
}

TEST(StartThread, ErrorNamesTheLimitThatWasHit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs address space";
#endif
  EXPECT_EQ(WithAddressSpace(1 << 20,
                             [] {
                               for (int i = 0; i < 100; ++i) {
                                 Result<std::thread> thread =
                                     StartThread("a thread", [] { pause(); });
                                 if (thread.ok()) {
                                   (*thread).detach();
                                   continue;
                                 }
                                 if (thread.error().code != Code::kResourceExhausted) return 2;
                                 const std::string& cause = thread.error().cause;
                                 if (cause.find("cannot start a thread: ") != 0) return 3;
                                 return cause.find("RLIMIT_AS") == std::string::npos ? 4 : 0;
                               }
                               return 1;
                             }),
            0);
}

// A thread's stack is 8 MiB or so, and none is smaller than this.
TEST(StartThread, StartsFewerThreadsWhenAddressSpaceIsShort) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs address space";
#endif
  constexpr uint64_t kRoom = uint64_t{100} << 20;
  EXPECT_EQ(WithAddressSpace(kRoom,
                             [] {
                               const int had = ThreadsToBeHad(100);
                               if (had < 1 || had >= 100) return 1;
                               std::atomic<int> ran{0};
                               InParallel(100, [&ran] { ++ran; });
                               return ran >= 1 ? 0 : 2;
                             }),
            0);
}

// Can be copied `copies_left` times; the next copy throws.
struct CopiedRarely {
  CopiedRarely(std::atomic<int>& copies_left, std::atomic<int>& times_run)
      : left(copies_left), ran(times_run) {}
  CopiedRarely(const CopiedRarely& other) : left(other.left), ran(other.ran) {
    if (left == 0) throw std::bad_alloc();
    --left;
  }
  void operator()() const { ++ran; }

  std::atomic<int>& left;
  std::atomic<int>& ran;
};

TEST(InParallel, RunsOnFewerThreadsWhenMemoryIsShort) {
  std::atomic<int> left{100};
  std::atomic<int> ran{0};
  const std::function<void()> loop = CopiedRarely(left, ran);
  left = 3;
  InParallel(10, loop);
  EXPECT_EQ(left, 0);
  EXPECT_GE(ran, 1);
  EXPECT_LE(ran, 4);
}

TEST(ThreadLimits, ReportsTheTightestCgroup) {
  const std::filesystem::path base =
      std::filesystem::path(::testing::TempDir()) / ("thread_limits." + std::to_string(getpid()));
  const auto write = [&base](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((base / name).parent_path());
    std::ofstream(base / name) << text;
  };
  write("proc/self/cgroup", "0::/job/rank0\n");
  write("cgroup/pids.max", "max\n");
  write("cgroup/job/pids.max", "64\n");
  write("cgroup/job/pids.current", "63\n");
  write("cgroup/job/rank0/pids.max", "1000\n");
  write("cgroup/job/rank0/pids.current", "3\n");
  EXPECT_THAT(ThreadLimits({(base / "proc").string(), (base / "cgroup").string()}),
              HasSubstr("pids.max of the cgroup is 64, 63 in use"));
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace stoker
