// Slots that are pinned for a device.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/slot_pool.h"

namespace stoker {
namespace {

// Records the pinned memory.
class Notes final : public Pinning {
 public:
  Status Pin(void* data, size_t bytes) override {
    ++calls;
    if (fail) return Error{Code::kUnavailable, "no more memory can be locked"};
    pinned[data] = bytes;
    return {};
  }
  void Unpin(void* data) override { EXPECT_EQ(pinned.erase(data), 1u); }
  int numa_node() const override { return 0; }

  std::map<void*, size_t> pinned;
  int calls = 0;
  bool fail = false;
};

SlotPool::Options Pinned(std::shared_ptr<Pinning> pinning) {
  return {.columns = {{"image", DType::kU8, {50, 70, 3}}, {"label", DType::kI64, {}}},
          .batch_size = 3,
          .working_slots = 2,
          .lent_slots = 0,
          .pinning = std::move(pinning),
          .pinned_lent_slots = 3,
          .one_slab = true};
}

TEST(PinnedSlots, AreOneRegionPinnedOnceFromTheStart) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  auto pool = SlotPool::Make(Pinned(notes), Reservation(budget)).value();
  ASSERT_EQ(notes->pinned.size(), 1u);
  EXPECT_EQ(notes->pinned.begin()->second, 5 * pool->slot_bytes());
  EXPECT_EQ(pool->pinned_bytes(), 5 * pool->slot_bytes());
  EXPECT_EQ(pool->mapped(), 5);
  EXPECT_EQ(budget.used(), 2 * pool->slot_bytes()) << "those in production";

  const auto* begin = static_cast<uint8_t*>(notes->pinned.begin()->first);
  const uint8_t* end = begin + notes->pinned.begin()->second;
  std::vector<Batch> held;
  std::set<const void*> places;
  for (int i = 0; i < 5; ++i) {
    Slot* slot = pool->Acquire();
    ASSERT_NE(slot, nullptr);
    EXPECT_TRUE(slot->pinned);
    slot->rows = 3;
    const auto* images = static_cast<uint8_t*>(slot->columns[0].data);
    const auto* labels = static_cast<uint8_t*>(slot->columns[1].data);
    EXPECT_GE(images, begin);
    EXPECT_EQ(labels, images + 32'768) << "in the same slab, on a page of its own";
    EXPECT_LE(labels + 3 * sizeof(int64_t), end);
    std::memset(slot->columns[0].data, i, 3 * 50 * 70 * 3);
    places.insert(images);
    held.push_back(pool->Lend(slot));
  }
  EXPECT_EQ(places.size(), 5u);

  Slot* sixth = pool->Acquire();
  ASSERT_NE(sixth, nullptr) << "who holds more gets memory that is not pinned";
  EXPECT_FALSE(sixth->pinned);
  pool->Abandon(sixth);
  EXPECT_EQ(pool->mapped(), 5) << "and it goes again";
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i].images().as<uint8_t>()[5], i);
  held.clear();
  for (int i = 0; i < 50; ++i) {
    Slot* slot = pool->Acquire();
    EXPECT_TRUE(slot->pinned);
    EXPECT_TRUE(places.contains(slot->columns[0].data));
    pool->Abandon(slot);
  }
  EXPECT_EQ(notes->calls, 1) << "never again";
}

TEST(PinnedSlots, AreUnpinnedWhenTheLastIsReturned) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  auto pool = SlotPool::Make(Pinned(notes), Reservation(budget)).value();
  Slot* slot = pool->Acquire();
  slot->rows = 3;
  std::memset(slot->columns[0].data, 42, 3 * 50 * 70 * 3);
  Batch batch = pool->Lend(slot);
  pool->Retire();
  pool.reset();
  EXPECT_EQ(notes->pinned.size(), 1u);
  EXPECT_EQ(batch.images().as<uint8_t>()[7], 42);
  batch.Release();
  EXPECT_TRUE(notes->pinned.empty());
}

TEST(PinnedSlots, FailureToPinIsAnErrorThatReservesNothing) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  notes->fail = true;
  const auto pool = SlotPool::Make(Pinned(notes), Reservation(budget));
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().cause, "no more memory can be locked");
  EXPECT_EQ(budget.used(), 0u);
}

TEST(PinnedSlots, SmallColumnsMayLieOutsideTheSlab) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  SlotPool::Options options = Pinned(notes);
  options.one_slab = false;
  auto pool = SlotPool::Make(options, Reservation(budget)).value();
  Slot* slot = pool->Acquire();
  slot->rows = 3;
  Batch batch = pool->Lend(slot);
  const std::shared_ptr<void> labels = batch.Owner(1);
  batch.Release();
  EXPECT_EQ(pool->lent(), 0) << "who keeps labels keeps no images";
}

}  // namespace
}  // namespace stoker
