#include "engine/runtime/turnstile.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/testing/effort.h"

namespace stoker {
namespace {

TEST(Turnstile, LetsInAsManyAsTheLimit) {
  Turnstile turnstile(2);
  EXPECT_TRUE(turnstile.Enter());
  EXPECT_TRUE(turnstile.Enter());
  EXPECT_FALSE(turnstile.Enter());
  EXPECT_FALSE(turnstile.Enter());
  EXPECT_TRUE(turnstile.Leave()) << "in the place of the first who was turned away";
  EXPECT_TRUE(turnstile.Enter());
  EXPECT_TRUE(turnstile.Leave());
  EXPECT_FALSE(turnstile.Leave()) << "both have been sent for";
}

TEST(Turnstile, AHigherLimitSendsForThoseTurnedAway) {
  Turnstile turnstile(1);
  ASSERT_TRUE(turnstile.Enter());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(turnstile.Enter());
  EXPECT_EQ(turnstile.SetLimit(3), 2u);
  EXPECT_EQ(turnstile.SetLimit(8), 1u);
  EXPECT_EQ(turnstile.limit(), 8u);
}

TEST(Turnstile, ALowerLimitIsReachedByLeaving) {
  Turnstile turnstile(3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(turnstile.Enter());
  EXPECT_EQ(turnstile.SetLimit(1), 0u);
  EXPECT_FALSE(turnstile.Enter());
  EXPECT_FALSE(turnstile.Leave());
  EXPECT_FALSE(turnstile.Leave());
  EXPECT_TRUE(turnstile.Leave()) << "now there is room for the one who was turned away";
}

// For each piece of work a worker is sent, which takes one piece if it may enter. No work may be
// left over, whatever the limit is meanwhile.
TEST(Turnstile, NobodyIsForgotten) {
  Turnstile turnstile(2);
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
      if (!turnstile.Enter()) continue;
      const int now = ++inside;
      most = std::max(most.load(), now);
      lock.lock();
      if (heap > 0) {
        --heap;
        ++done;
      }
      lock.unlock();
      --inside;
      if (turnstile.Leave()) send(1);
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
    if (i % 7 == 0) send(static_cast<int>(turnstile.SetLimit(static_cast<uint32_t>(i) % 3 + 1)));
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(done, pieces);
  EXPECT_LE(most, 3);
}

}  // namespace
}  // namespace stoker
