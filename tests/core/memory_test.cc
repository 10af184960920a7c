#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"

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

TEST(Reservation, ReleasesWhatItHolds) {
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

TEST(GrowingBuffer, GrowKeepsTheBytesAskedFor) {
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

TEST(GrowingBuffer, RefusesToExceedTheBudget) {
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

TEST(SlotPool, LargeColumnsArePageAlignedAndSmallOnesLieElsewhere) {
  MemoryBudget budget(10 << 20);
  SlotPool::Options options = TwoColumns(1, 1);
  options.columns.push_back({"mask", DType::kF32, {100, 100}});  // 117 KiB for the batch
  auto pool = SlotPool::Make(options, Reservation(budget)).value();
  Slot* slot = pool->Acquire();
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->columns[0].shape, (std::vector<int64_t>{3, 5, 7, 3}));
  EXPECT_EQ(slot->columns[1].shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(slot->columns[2].shape, (std::vector<int64_t>{3, 100, 100}));
  const auto address = [&](size_t c) { return reinterpret_cast<uintptr_t>(slot->columns[c].data); };
  EXPECT_EQ(address(0) % 4096, 0u);
  EXPECT_EQ(address(2) - address(0), 4096u);
  EXPECT_EQ(address(1) % 64, 0u);
  EXPECT_EQ(pool->slot_bytes(), 4096u + 64 + 122'880);
  EXPECT_EQ(static_cast<uint8_t*>(slot->Row(0, 2)) - static_cast<uint8_t*>(slot->Row(0, 0)),
            2 * 5 * 7 * 3);
  for (size_t c = 0; c < 3; ++c) {  // whole rows, as far as the sanitizer sees
    std::memset(slot->Row(c, 2), 1, options.columns[c].row_bytes());
  }
  pool->Abandon(slot);
}

TEST(SlotPool, ColumnsAreSmallByTheirBytesExceptTheFirst) {
  const auto small = [](int64_t image, int64_t label, int64_t rows) {
    return SlotPool::IsSmall({{"image", DType::kU8, {image}}, {"label", DType::kU8, {label}}}, 1,
                             rows);
  };
  EXPECT_FALSE(SlotPool::IsSmall({{"image", DType::kU8, {1}}}, 0, 1));
  EXPECT_TRUE(small(1, 64, 1024));
  EXPECT_FALSE(small(1, 65, 1024));
  EXPECT_TRUE(small(160, 10, 1 << 20));
  EXPECT_FALSE(small(159, 10, 1 << 20));
}

TEST(SlotPool, AccountsForWorkingAndLentSlotsSeparately) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, 3), Reservation(budget)).value();
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

TEST(SlotPool, BatchesOutliveThePool) {
  MemoryBudget budget(1 << 20);
  Batch batch;
  {
    auto pool = SlotPool::Make(TwoColumns(2, 3), Reservation(budget)).value();
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

// Returns a batch with the number `n` in every byte of its image and label columns.
Batch Lend(SlotPool& pool, int n) {
  Slot* slot = pool.Acquire();
  if (slot == nullptr) return {};
  slot->rows = 3;
  std::memset(slot->columns[0].data, n, 3 * 5 * 7 * 3);
  std::memset(slot->columns[1].data, n, 3 * 8);
  return pool.Lend(slot);
}

TEST(SlotPool, HoldingLabelsDoesNotHoldImages) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, 1), Reservation(budget)).value();
  std::vector<std::pair<const uint8_t*, std::shared_ptr<void>>> labels;
  for (int n = 0; n < 200; ++n) {
    ASSERT_TRUE(pool->CanLend()) << n;
    const Batch batch = Lend(*pool, n);
    labels.emplace_back(static_cast<const uint8_t*>(batch.labels().data), batch.Owner(1));
    EXPECT_EQ(batch.Owner(1).get(), batch.labels().data);
  }
  EXPECT_EQ(pool->lent(), 0);
  EXPECT_EQ(pool->mapped(), 1) << "one slab, used again and again";
  pool.reset();
  for (int n = 0; n < 200; ++n) EXPECT_EQ(labels[static_cast<size_t>(n)].first[23], n);
}

TEST(SlotPool, ImageOwnersHoldTheSlotUntilTheLastIsReleased) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, 2), Reservation(budget)).value();
  Batch batch = Lend(*pool, 7);
  const uint8_t* pixels = batch.images().as<uint8_t>().data();
  std::shared_ptr<void> owner = batch.Owner(0);
  std::shared_ptr<void> second = batch.Owner(0);
  batch.Release();
  EXPECT_FALSE(batch);
  batch.Release();  // releasing an empty batch does nothing
  EXPECT_EQ(pool->lent(), 1);
  owner.reset();
  EXPECT_EQ(pool->lent(), 1);
  const Batch other = Lend(*pool, 8);
  EXPECT_NE(other.images().data, pixels);
  EXPECT_EQ(pixels[100], 7);
  pool->Retire();
  EXPECT_EQ(pixels[100], 7);
  EXPECT_EQ(pool->mapped(), 2);
  second.reset();
  EXPECT_EQ(pool->lent(), 1);
  EXPECT_EQ(pool->mapped(), 1);
}

TEST(SlotPool, UnmapsSlotsBeyondTheSpareOnes) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, /*lent=*/0), Reservation(budget)).value();
  std::vector<Batch> held;
  for (int n = 0; n < 100; ++n) {
    ASSERT_TRUE(pool->CanLend());
    held.push_back(Lend(*pool, n));
  }
  EXPECT_EQ(pool->mapped(), 100);
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(held[static_cast<size_t>(n)].images().as<uint8_t>()[5], n);
  }
  held.clear();
  EXPECT_EQ(pool->lent(), 0);
  EXPECT_EQ(pool->mapped(), 2 + SlotPool::kSpareSlots);
  for (int n = 0; n < 100; ++n) (void)Lend(*pool, n);
  EXPECT_EQ(pool->mapped(), 2 + SlotPool::kSpareSlots);
  pool->Retire();
  EXPECT_EQ(pool->mapped(), 0);
}

TEST(SlotPool, OwnersMayBeReleasedOnAnyThread) {
  MemoryBudget budget(1 << 20);
  auto pool = SlotPool::Make(TwoColumns(2, 0), Reservation(budget)).value();
  std::vector<std::thread> consumers;
  for (int n = 0; n < 64; ++n) {
    Batch batch = Lend(*pool, n);
    consumers.emplace_back([n, image = batch.Owner(0), label = batch.Owner(1)]() mutable {
      EXPECT_EQ(static_cast<const uint8_t*>(label.get())[7], n);
      label.reset();
      image.reset();
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(pool->lent(), 0);
  EXPECT_LE(pool->mapped(), 2 + SlotPool::kSpareSlots);
}

TEST(SlotPool, ErrorNamesTheBytesNeeded) {
  MemoryBudget budget(4096);
  auto pool = SlotPool::Make(TwoColumns(2, 1), Reservation(budget));
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().code, Code::kResourceExhausted);
  EXPECT_NE(pool.error().cause.find("8320"), std::string::npos) << pool.error().ToString();
  EXPECT_EQ(pool.error().Advice(), "Raise memory_budget, or lower depth or batch_size");
  SlotPool::Options with_crops = TwoColumns(2, 1);
  with_crops.one_slab = true;
  with_crops.crops = {.bytes = 4096, .samples = 512};
  pool = SlotPool::Make(with_crops, Reservation(budget));
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().Advice(), "Raise memory_budget, or lower depth, batch_size or crop_bytes");
}

}  // namespace
}  // namespace stoker
