#include <gtest/gtest.h>

#include <cstring>

#include "engine/core/buffer.h"
#include "engine/core/memory_budget.h"
#include "engine/core/slot_pool.h"

namespace stoker {
namespace {

TEST(MemoryBudget, NeverExceedsItsLimitAndRemembersThePeak) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.TryReserve(60));
  EXPECT_FALSE(budget.TryReserve(41));
  EXPECT_TRUE(budget.TryReserve(40));
  EXPECT_FALSE(budget.TryReserve(1));
  EXPECT_FALSE(budget.TryReserve(~uint64_t{0}));
  budget.Release(100);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(Reservation, GivesBackWhatItHolds) {
  MemoryBudget budget(100);
  {
    Reservation a(budget);
    EXPECT_TRUE(a.Resize(70));
    EXPECT_FALSE(a.Resize(101));
    EXPECT_EQ(a.bytes(), 70u);
    Reservation b(std::move(a));
    EXPECT_TRUE(b.Resize(30));
    EXPECT_EQ(budget.used(), 30u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(GrowingBuffer, KeepsBytesWhenAsked) {
  MemoryBudget budget(1 << 20);
  GrowingBuffer buffer(budget);
  ASSERT_TRUE(buffer.Grow(1000).ok());
  EXPECT_GE(buffer.capacity(), 1000u);
  std::memset(buffer.data(), 7, 1000);
  ASSERT_TRUE(buffer.Grow(100000, 1000).ok());
  EXPECT_EQ(buffer.data()[999], 7);
  EXPECT_LE(budget.used(), 110000u) << "only the new memory counts once bytes are carried over";
  buffer.Free();
  EXPECT_EQ(budget.used(), 0u);
}

TEST(GrowingBuffer, RefusesWhatTheBudgetCannotHold) {
  MemoryBudget budget(64 << 10);
  GrowingBuffer buffer(budget);
  ASSERT_TRUE(buffer.Grow(8 << 10).ok());
  buffer.data()[0] = 9;
  const Status kept = buffer.Grow(60 << 10, 1);
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, Code::kResourceExhausted);
  EXPECT_EQ(buffer.data()[0], 9);
  EXPECT_FALSE(buffer.Grow(~size_t{0} - 10).ok());
  EXPECT_EQ(buffer.capacity(), 0u);
  EXPECT_TRUE(buffer.Grow(60 << 10).ok());
}

SlotPool::Options TwoColumns(int working, int lent) {
  return {.columns = {{"image", DType::kU8, {5, 7, 3}}, {"label", DType::kI64, {}}},
          .batch_size = 3,
          .working_slots = working,
          .lent_slots = lent};
}

TEST(SlotPool, LaysColumnsOutOnPagesOfTheirOwn) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(1, 1), budget).value();
  Slot* slot = pool->Acquire();
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->columns[0].shape, (std::vector<int64_t>{3, 5, 7, 3}));
  EXPECT_EQ(slot->columns[1].shape, (std::vector<int64_t>{3}));
  for (const Column& c : slot->columns) EXPECT_EQ(reinterpret_cast<uintptr_t>(c.data) % 4096, 0u);
  EXPECT_EQ(static_cast<uint8_t*>(slot->Row(0, 2)) - static_cast<uint8_t*>(slot->Row(0, 0)),
            2 * 5 * 7 * 3);
  pool->Abandon(slot);
}

TEST(SlotPool, WorkingAndLentAreSeparateAccounts) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, 3), budget).value();
  const uint64_t working = budget.used();
  EXPECT_EQ(working, 2 * pool->slot_bytes());
  std::vector<Batch> held;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool->CanLend());
    held.push_back(pool->Lend(pool->Acquire()));
  }
  EXPECT_FALSE(pool->CanLend());
  EXPECT_EQ(pool->lent(), 3);
  Slot* a = pool->Acquire();
  Slot* b = pool->Acquire();
  EXPECT_NE(a, nullptr) << "lending must not take from production";
  EXPECT_NE(b, nullptr);
  EXPECT_EQ(pool->Acquire(), nullptr);
  EXPECT_EQ(budget.used(), working);
  held.clear();
  EXPECT_EQ(pool->lent(), 0);
  pool->Abandon(a);
  pool->Abandon(b);
}

TEST(SlotPool, BatchesOutliveProductionAndPool) {
  MemoryBudget budget(1 << 20);
  Batch batch;
  {
    auto pool = SlotPool::Make(TwoColumns(2, 3), budget).value();
    Slot* slot = pool->Acquire();
    std::memset(slot->columns[0].data, 42, 3 * 5 * 7 * 3);
    slot->rows = 3;
    batch = pool->Lend(slot);
    pool->Retire();
    EXPECT_EQ(budget.used(), 0u);
  }
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.images().as<uint8_t>()[100], 42);
  Batch moved = std::move(batch);
  EXPECT_FALSE(batch);  // NOLINT(bugprone-use-after-move): an empty batch is what is promised
  EXPECT_EQ(moved.rows(), 3);
}

TEST(SlotPool, NamesWhatItNeeds) {
  MemoryBudget budget(4096);
  auto pool = SlotPool::Make(TwoColumns(2, 1), budget);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().code, Code::kResourceExhausted);
  EXPECT_NE(pool.error().cause.find("16384"), std::string::npos) << pool.error().ToString();
}

}  // namespace
}  // namespace stoker
