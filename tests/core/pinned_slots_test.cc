// Slots that are pinned for a device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/slot_pool.h"

namespace stoker {
namespace {

// Records the pinned memory.
class Notes final : public Pinning {
 public:
  Status Pin(void* data, size_t bytes) override {
    ++calls;
    if (fail) return Error{*fail, "no more memory can be locked"};
    pinned[data] = bytes;
    return {};
  }
  void Unpin(void* data) override { EXPECT_EQ(pinned.erase(data), 1u); }
  Result<void*> Allocate(size_t bytes) override {
    ++calls;
    if (!allocates) return Error{Code::kResourceExhausted, "nor allocated"};
    void* const data = std::aligned_alloc(4096, bytes);
    allocated[data] = bytes;
    return data;
  }
  void Free(void* data) override {
    EXPECT_EQ(allocated.erase(data), 1u);
    std::free(data);
  }
  int numa_node() const override { return 0; }

  std::map<void*, size_t> pinned, allocated;
  int calls = 0;
  std::optional<Code> fail{};  // of Pin
  bool allocates = true;
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
  EXPECT_GT(pool->pinning_ns(), 0u);
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

// Fills a slot and lends it.
Batch LendOne(SlotPool& pool, uint8_t value) {
  Slot* const slot = pool.Acquire();
  EXPECT_NE(slot, nullptr);
  slot->rows = 3;
  std::memset(slot->columns[0].data, value, 3 * 50 * 70 * 3);
  return pool.Lend(slot);
}

// Some systems pin only memory that the device's driver allocates.
TEST(PinnedSlots, FallBackToMemoryThatThePinningAllocates) {
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted}) {
    MemoryBudget budget(10 << 20);
    auto notes = std::make_shared<Notes>();
    notes->fail = code;
    auto pool = SlotPool::Make(Pinned(notes), Reservation(budget)).value();
    EXPECT_TRUE(notes->pinned.empty());
    ASSERT_EQ(notes->allocated.size(), 1u);
    EXPECT_EQ(notes->allocated.begin()->second, 5 * pool->slot_bytes());
    EXPECT_EQ(pool->pinned_bytes(), 5 * pool->slot_bytes());
    EXPECT_EQ(pool->not_pinned(), "");
    Batch batch = LendOne(*pool, 42);
    EXPECT_TRUE(batch.pinned(0));
    pool.reset();
    EXPECT_EQ(batch.images().as<uint8_t>()[7], 42);
    EXPECT_EQ(notes->allocated.size(), 1u);
    batch.Release();
    EXPECT_TRUE(notes->allocated.empty());
  }
}

TEST(PinnedSlots, FallBackToPageableMemory) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  notes->fail = Code::kUnavailable;
  notes->allocates = false;
  auto pool = SlotPool::Make(Pinned(notes), Reservation(budget)).value();
  EXPECT_EQ(pool->not_pinned(), "no more memory can be locked; nor allocated");
  EXPECT_EQ(pool->pinned_bytes(), 0u);
  EXPECT_EQ(pool->mapped(), 0) << "mapped when they are needed, as without a Pinning";
  EXPECT_EQ(budget.used(), 2 * pool->slot_bytes());
  std::set<const void*> places;
  for (uint8_t i = 0; i < 50; ++i) {
    const Batch batch = LendOne(*pool, i);
    EXPECT_FALSE(batch.pinned(0));
    EXPECT_EQ(batch.images().as<uint8_t>()[5], i);
    places.insert(batch.images().data);
  }
  EXPECT_EQ(places.size(), 1u) << "the memory is reused";
  EXPECT_EQ(pool->mapped(), 1);
  EXPECT_TRUE(pool->SetWorkingSlots(1));
  EXPECT_EQ(budget.used(), pool->slot_bytes());
  EXPECT_EQ(notes->calls, 2) << "never again";
}

TEST(PinnedSlots, MoreThanIsAvailableIsNotPinned) {
  MemoryBudget budget(uint64_t{1} << 62);
  auto notes = std::make_shared<Notes>();
  SlotPool::Options options = Pinned(notes);
  options.columns[0].row_shape = {1 << 20, 1 << 20, 3};
  auto pool = SlotPool::Make(options, Reservation(budget)).value();
  EXPECT_EQ(notes->calls, 0);
  EXPECT_NE(pool->not_pinned().find(std::to_string(5 * pool->slot_bytes()) +
                                    " bytes would be pinned, and "),
            std::string::npos);
}

TEST(PinnedSlots, AProcessThatMayNotUseTheDeviceGetsAnError) {
  MemoryBudget budget(10 << 20);
  auto notes = std::make_shared<Notes>();
  notes->fail = Code::kFailedPrecondition;
  const auto pool = SlotPool::Make(Pinned(notes), Reservation(budget));
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().cause, "no more memory can be locked");
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(notes->calls, 1);
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
