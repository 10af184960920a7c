// Workers are kept for the next calls, for a forked child too, and give way when memory is missing.
#include "engine/arrays/idle_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "tests/testing/process/child_process.h"

namespace stoker {
namespace {

struct Counted {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  ~Counted() { --alive; }
  uint64_t memory() const { return bytes; }

  int& alive;
  uint64_t bytes = 0;
};

struct Plain {
  uint64_t memory() const { return 0; }
};

TEST(IdleWorkers, AreKeptUpToALimit) {
  int alive = 0;
  {
    IdleWorkers<Counted> idle([&] { return std::make_unique<Counted>(alive); });
    Counted* const first = &*idle.Lend();
    EXPECT_EQ(&*idle.Lend(), first);
    idle.Lend()->bytes = IdleWorkers<Counted>::kKeptBytes + 1;
    EXPECT_EQ(alive, 0) << "a large one is freed";
    {
      std::vector<std::unique_ptr<IdleWorkers<Counted>::Borrowed>> many;
      std::set<Counted*> different;
      for (size_t i = 0; i < IdleWorkers<Counted>::kMostKept + 3; ++i) {
        many.push_back(std::make_unique<IdleWorkers<Counted>::Borrowed>(idle));
        different.insert(&**many.back());
      }
      EXPECT_EQ(different.size(), many.size());
    }
    EXPECT_EQ(alive, static_cast<int>(IdleWorkers<Counted>::kMostKept));
  }
  EXPECT_EQ(alive, 0);
}

// A call without room has one other try, with a new worker as the only one.
TEST(IdleWorkers, AreFreedForACallWithoutRoom) {
  int alive = 0;
  IdleWorkers<Counted> idle([&] { return std::make_unique<Counted>(alive); });
  for (const auto& [wanted_bytes, calls_wanted] : {std::pair{uint64_t{1}, 2}, {uint64_t{0}, 1}}) {
    const uint64_t wanted = wanted_bytes;
    { const auto a = idle.Lend(), b = idle.Lend(); }
    int calls = 0;
    const Status status = idle.Run([&](Counted& worker) -> Status {
      EXPECT_EQ(alive, calls == 0 ? 2 : 1);
      EXPECT_EQ(worker.bytes, 0U);
      worker.bytes = 1;
      ++calls;
      return Error{.cause = "failed", .wanted_bytes = wanted};
    });
    EXPECT_EQ(status.error().wanted_bytes, wanted);
    EXPECT_EQ(calls, calls_wanted);
    idle.Lend()->bytes = 0;
  }
}

TEST(IdleWorkers, WorkInAChildForkedDuringCalls) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends children of processes with threads";
#endif
  IdleWorkers<Plain> idle([] { return std::make_unique<Plain>(); });
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) idle.Lend();
    });
  }
  for (int i = 0; i < 50; ++i) {
    const int code =
        testing::ExitCodeOfChild([&] { return static_cast<int>(idle.Lend()->memory()); });
    EXPECT_EQ(code, 0) << "a child hangs";
    if (code != 0) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stoker
