#include "core/batch/index_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace stoker {
namespace {

TEST(IndexSet, TakesEachNumberOnce) {
  for (uint32_t count : {1u, 63u, 64u, 65u, 130u}) {
    IndexSet set(count, IndexSet::Begin::kFull);
    EXPECT_EQ(set.available(), count);
    std::set<uint32_t> taken;
    while (auto index = set.Take()) taken.insert(*index);
    EXPECT_EQ(taken.size(), count);
    EXPECT_EQ(*taken.rbegin(), count - 1);
    set.Give(count - 1);
    EXPECT_EQ(set.Take(), count - 1);
    EXPECT_EQ(set.Take(), std::nullopt);
  }
}

TEST(IndexSet, TakeThisTakesAnAvailableNumber) {
  IndexSet set(130, IndexSet::Begin::kEmpty);
  EXPECT_EQ(set.available(), 0u);
  EXPECT_EQ(set.Take(), std::nullopt);
  set.Give(3);
  set.Give(129);
  EXPECT_FALSE(set.TakeThis(4));
  EXPECT_TRUE(set.TakeThis(129));
  EXPECT_FALSE(set.TakeThis(129));
  EXPECT_EQ(set.Take(), 3u);
}

TEST(IndexSet, ForEachVisitsAvailableNumbers) {
  IndexSet set(130, IndexSet::Begin::kEmpty);
  for (uint32_t index : {129u, 0u, 64u, 63u}) set.Give(index);
  std::vector<uint32_t> seen;
  set.ForEach([&](uint32_t index) { seen.push_back(index); });
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 63, 64, 129}));
}

TEST(IndexSet, ThreadsNeverHoldTheSameNumber) {
  IndexSet set(70, IndexSet::Begin::kFull);
  std::vector<std::atomic<int>> held(70);
  std::atomic<bool> twice{false};
  auto worker = [&] {
    for (int i = 0; i < 20000; ++i) {
      // Takes a given number, or any.
      const auto wanted = static_cast<uint32_t>(i % 70);
      auto index = i % 2 == 0 ? set.Take() : std::nullopt;
      if (i % 2 != 0 && set.TakeThis(wanted)) index = wanted;
      if (index) {
        if (held[*index].fetch_add(1) != 0) twice = true;
        held[*index].fetch_sub(1);
        set.Give(*index);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(worker);
  for (auto& t : threads) t.join();
  EXPECT_FALSE(twice);
  EXPECT_EQ(set.available(), 70u);
}

}  // namespace
}  // namespace stoker
