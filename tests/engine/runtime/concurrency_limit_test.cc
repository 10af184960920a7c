#include "engine/runtime/concurrency_limit.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/testing/effort.h"

namespace stoker {
namespace {

TEST(ConcurrencyLimit, AdmitsUpToTheLimit) {
  ConcurrencyLimit concurrency_limit(2);
  EXPECT_TRUE(concurrency_limit.Enter());
  EXPECT_TRUE(concurrency_limit.Enter());
  EXPECT_FALSE(concurrency_limit.Enter());
  EXPECT_FALSE(concurrency_limit.Enter());
  EXPECT_TRUE(concurrency_limit.Leave()) << "in the place of the first who was turned away";
  EXPECT_TRUE(concurrency_limit.Enter());
  EXPECT_TRUE(concurrency_limit.Leave());
  EXPECT_FALSE(concurrency_limit.Leave()) << "both have been sent for";
}

TEST(ConcurrencyLimit, RaisingTheLimitRecallsThoseTurnedAway) {
  ConcurrencyLimit concurrency_limit(1);
  ASSERT_TRUE(concurrency_limit.Enter());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(concurrency_limit.Enter());
  EXPECT_EQ(concurrency_limit.SetLimit(3), 2u);
  EXPECT_EQ(concurrency_limit.SetLimit(8), 1u);
  EXPECT_EQ(concurrency_limit.limit(), 8u);
}

TEST(ConcurrencyLimit, LoweringTheLimitTakesEffectAsWorkersLeave) {
  ConcurrencyLimit concurrency_limit(3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(concurrency_limit.Enter());
  EXPECT_EQ(concurrency_limit.SetLimit(1), 0u);
  EXPECT_FALSE(concurrency_limit.Enter());
  EXPECT_FALSE(concurrency_limit.Leave());
  EXPECT_FALSE(concurrency_limit.Leave());
  EXPECT_TRUE(concurrency_limit.Leave()) << "now there is room for the one who was turned away";
}

// For each piece of work a worker is sent, which takes one piece if it may enter. No work may be
// left over, for any limit in between.
TEST(ConcurrencyLimit, LeavesNoWorkBehind) {
  ConcurrencyLimit concurrency_limit(2);
  std::mutex mutex;
  std::condition_variable changed;
  int sent = 0;  // workers on their way
  int heap = 0;  // pieces of work
  int done = 0;
  const int pieces = testing::Effort(20'000);
  std::atomic<int> inside{0}, most{0};
  const auto send = [&](int workers) {
    std::lock_guard lock(mutex);
    sent += workers;
    changed.notify_all();
  };
  const auto work = [&] {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return sent > 0 || done == pieces; });
      if (sent == 0) return;
      --sent;
      lock.unlock();
      if (!concurrency_limit.Enter()) continue;
      const int now = ++inside;
      most = std::max(most.load(), now);
      lock.lock();
      if (heap > 0) {
        --heap;
        ++done;
      }
      lock.unlock();
      --inside;
      if (concurrency_limit.Leave()) send(1);
      changed.notify_all();
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back(work);
  for (int i = 0; i < pieces; ++i) {
    {
      std::lock_guard lock(mutex);
      ++heap;
    }
    send(1);
    if (i % 7 == 0)
      send(static_cast<int>(concurrency_limit.SetLimit(static_cast<uint32_t>(i) % 3 + 1)));
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(done, pieces);
  EXPECT_LE(most, 3);
}

}  // namespace
}  // namespace stoker
