#include "engine/runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::MakeShuffledExecutor;
using testing::TestedExecutor;

std::unique_ptr<Executor> Make(TestedExecutor kind, int threads) {
  switch (kind) {
    case TestedExecutor::kTbb:
      return MakeTbbExecutor(threads);
    case TestedExecutor::kThreads:
      return MakeThreadsExecutor(threads).value();
    case TestedExecutor::kShuffled:
      break;
  }
  return MakeShuffledExecutor(threads, 7).value();
}

class ExecutorTest : public ::testing::TestWithParam<TestedExecutor> {};

struct Log {
  std::vector<std::atomic<int>> runs = std::vector<std::atomic<int>>(1000);
  std::vector<std::atomic<int>> inside = std::vector<std::atomic<int>>(16);
  std::atomic<int> shared_worker{0};
  std::atomic<int> highest_worker{0};  // races are harmless: any value out of range will do
  std::vector<uint32_t> order;         // only used with one worker at a time
};

void Note(void* context, uint32_t argument, int worker) {
  auto& log = *static_cast<Log*>(context);
  if (log.inside[static_cast<size_t>(worker)].fetch_add(1) != 0) ++log.shared_worker;
  if (worker > log.highest_worker) log.highest_worker = worker;
  ++log.runs[argument];
  log.inside[static_cast<size_t>(worker)].fetch_sub(1);
}

TEST_P(ExecutorTest, RunsEveryTaskOnceWithDistinctWorkerNumbers) {
  for (int threads : {1, 2, 8}) {
    Log log;
    {
      auto executor = Make(GetParam(), threads);
      EXPECT_EQ(executor->concurrency(), threads);
      for (uint32_t i = 0; i < 1000; ++i) executor->Submit({Note, &log, i});
    }  // the destructor waits
    for (auto& runs : log.runs) EXPECT_EQ(runs, 1);
    EXPECT_EQ(log.shared_worker, 0);
    EXPECT_LT(log.highest_worker, threads);
  }
}

// Waits until `wanted` threads are inside at once, or for a long time.
struct Meeting {
  int wanted = 0;
  std::atomic<int> here{0};
};

void Meet(void* context, uint32_t, int) {
  auto& meeting = *static_cast<Meeting*>(context);
  ++meeting.here;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (meeting.here < meeting.wanted && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

TEST_P(ExecutorTest, RunsTasksOnAllThreads) {
  if (GetParam() == TestedExecutor::kShuffled) GTEST_SKIP() << "runs on one thread by design";
  for (int threads : {1, 2, 8}) {
    Meeting meeting{threads};
    auto executor = Make(GetParam(), threads);
    for (int i = 0; i < threads; ++i) executor->Submit({Meet, &meeting, 0});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (meeting.here < threads && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(executor->threads_seen(), threads);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExecutorTest,
                         ::testing::ValuesIn(stoker::testing::ExecutorsUnderTest()),
                         [](const auto& info) { return Make(info.param, 1)->name(); });

void Append(void* context, uint32_t argument, int) {
  static_cast<Log*>(context)->order.push_back(argument);
}

TEST(ShuffledExecutor, ShufflesByItsSeed) {
  Log log;
  {
    auto executor = MakeShuffledExecutor(4, 1).value();
    for (uint32_t i = 0; i < 200; ++i) executor->Submit({Append, &log, i});
  }
  std::vector<uint32_t> sorted = log.order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted.size(), 200u);
  EXPECT_NE(log.order, sorted);
}

}  // namespace
}  // namespace stoker
