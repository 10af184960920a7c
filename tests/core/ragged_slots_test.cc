// Ragged columns: rows are written in any order, and a batch has their objects together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/batch/slot_pool.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

constexpr uint32_t kMost = 5;
constexpr size_t kBoxes = 1, kIds = 2;

std::shared_ptr<SlotPool> PoolOf(MemoryBudget& budget, int64_t batch_size, bool one_slab = false) {
  SlotPool::Options options;
  options.columns = {
      {.name = "image", .dtype = DType::kU8, .row_shape = {4, 4, 3}},
      {.name = "boxes", .dtype = DType::kF32, .row_shape = {4}, .max_objects = kMost},
      {.name = "ids", .dtype = DType::kU8, .row_shape = {}, .max_objects = kMost}};
  options.batch_size = batch_size;
  options.working_slots = 2;
  options.one_slab = one_slab;
  return *SlotPool::Make(std::move(options), Reservation(budget));
}

// Gives a row objects that name it.
void Fill(const Slot& slot, int64_t row, int64_t count) {
  auto* const boxes = static_cast<float*>(slot.Row(kBoxes, row));
  auto* const ids = static_cast<uint8_t*>(slot.Row(kIds, row));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t side = 0; side < 4; ++side) {
      boxes[i * 4 + side] = static_cast<float>(row * 100 + i * 10 + side);
    }
    ids[i] = static_cast<uint8_t>(row * 10 + i);
  }
  slot.Objects(kBoxes, row) = slot.Objects(kIds, row) = count;
}

void ExpectRow(const Batch& batch, int64_t row, int64_t filled_as, int64_t count) {
  const std::span<const float> boxes = batch.columns()[kBoxes].objects<const float>(row);
  const std::span<const uint8_t> ids = batch.columns()[kIds].objects<const uint8_t>(row);
  ASSERT_EQ(boxes.size(), static_cast<size_t>(count) * 4) << row;
  ASSERT_EQ(ids.size(), static_cast<size_t>(count)) << row;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(ids[static_cast<size_t>(i)], filled_as * 10 + i);
    EXPECT_EQ(boxes[static_cast<size_t>(i) * 4 + 3],
              static_cast<float>(filled_as * 100 + i * 10 + 3));
  }
}

TEST(RaggedSlots, HaveTheObjectsOfAllRowsTogether) {
  for (const bool one_slab : {false, true}) {
    MemoryBudget budget(10 << 20);
    const auto pool = PoolOf(budget, 6, one_slab);
    testing::Random random(3);
    for (int round = 0; round < 200; ++round) {
      Slot* const slot = pool->Acquire();
      ASSERT_NE(slot, nullptr);
      slot->SetRows(random.Between(1, 6));
      std::vector<int64_t> counts(static_cast<size_t>(slot->rows)), order(counts.size());
      for (int64_t& count : counts) count = random.Between(0, kMost);
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1],
                  order[static_cast<size_t>(random.Between(0, static_cast<int>(i) - 1))]);
      };
      for (const int64_t row : order) Fill(*slot, row, counts[static_cast<size_t>(row)]);
      slot->Compact();
      const Batch batch = pool->Lend(slot);
      const int64_t objects = std::accumulate(counts.begin(), counts.end(), int64_t{0});
      EXPECT_EQ(batch.columns()[kBoxes].shape, (std::vector<int64_t>{objects, 4}));
      EXPECT_EQ(batch.columns()[kIds].shape, (std::vector<int64_t>{objects}));
      EXPECT_EQ(batch.columns()[kBoxes].offsets[0], 0);
      EXPECT_EQ(batch.columns()[kBoxes].offsets[batch.rows()], objects);
      for (int64_t row = 0; row < batch.rows(); ++row) {
        ExpectRow(batch, row, row, counts[static_cast<size_t>(row)]);
      }
    }
  }
}

TEST(RaggedSlots, DropTheObjectsOfDroppedRows) {
  MemoryBudget budget(10 << 20);
  const auto pool = PoolOf(budget, 4);
  Slot* const slot = pool->Acquire();
  slot->SetRows(4);
  for (int64_t row = 0; row < 4; ++row) Fill(*slot, row, row + 1);
  slot->DropRows({2, 0});
  slot->Compact();
  const Batch batch = pool->Lend(slot);
  ASSERT_EQ(batch.rows(), 2);
  ExpectRow(batch, 0, 1, 2);
  ExpectRow(batch, 1, 3, 4);
  EXPECT_EQ(batch.columns()[kIds].shape, (std::vector<int64_t>{6}));
}

TEST(RaggedSlots, KeepObjectsAndOffsetsWithTheirOwner) {
  MemoryBudget budget(10 << 20);
  Column boxes;
  std::shared_ptr<void> owner;
  {
    const auto pool = PoolOf(budget, 2);
    Slot* const slot = pool->Acquire();
    slot->SetRows(2);
    Fill(*slot, 0, 0);
    Fill(*slot, 1, 3);
    slot->Compact();
    const Batch batch = pool->Lend(slot);
    boxes = batch.columns()[kBoxes];
    owner = batch.Owner(kBoxes);
  }
  EXPECT_EQ(boxes.offsets[1], 0);
  EXPECT_EQ(boxes.offsets[2], 3);
  EXPECT_EQ(boxes.objects<float>(1).back(), 123.0f);
}

TEST(RaggedSlots, CountAgainstTheBudget) {
  const auto bytes = [](uint32_t most) {
    return SlotPool::SlotBytes(
        {{.name = "image", .dtype = DType::kU8, .row_shape = {4}},
         {.name = "boxes", .dtype = DType::kF32, .row_shape = {4}, .max_objects = most}},
        64);
  };
  EXPECT_GE(bytes(1000), uint64_t{64} * 1000 * 16 + 65 * 8);
  EXPECT_GE(bytes(1000) - bytes(500), uint64_t{64} * 500 * 16);
}

// ---- Rows with places of their own sizes

constexpr size_t kPatches = 0, kNames = 1;

std::shared_ptr<SlotPool> PlacedPool(MemoryBudget& budget, int64_t batch_size, uint64_t room,
                                     bool one_slab = false) {
  SlotPool::Options options;
  options.columns = {{.name = "patches",
                      .dtype = DType::kU16,
                      .row_shape = {3},
                      .max_objects = kMost,
                      .room = room},
                     {.name = "ids", .dtype = DType::kU8, .row_shape = {}, .max_objects = kMost},
                     {.name = "label", .dtype = DType::kI64, .row_shape = {}}};
  options.batch_size = batch_size;
  options.working_slots = 1;
  options.one_slab = one_slab;
  return *SlotPool::Make(std::move(options), Reservation(budget));
}

// Random rows, some of which fill their places, some do not, and some are dropped: a batch has the
// values of the others in their order, and no byte after the room is written.
TEST(PlacedSlots, HaveTheObjectsOfRowsThatAreNotDropped) {
  testing::Random random(7);
  for (int round = 0; round < 500; ++round) {
    const int64_t rows = random.Between(1, 9);
    std::vector<uint64_t> places(static_cast<size_t>(rows)), counts(places.size());
    std::vector<uint32_t> dropped;
    std::vector<uint16_t> wanted;
    std::vector<int64_t> labels, offsets{0};
    const bool full = random.Between(0, 1) == 0;
    for (size_t row = 0; row < places.size(); ++row) {
      places[row] = static_cast<uint64_t>(random.Between(0, kMost));
      counts[row] = full ? places[row]
                         : static_cast<uint64_t>(random.Between(0, static_cast<int>(places[row])));
      if (random.Between(0, 3) == 0) {
        dropped.push_back(static_cast<uint32_t>(row));
        continue;
      }
      for (uint64_t i = 0; i < counts[row] * 3; ++i) {
        wanted.push_back(static_cast<uint16_t>(row * 1000 + i));
      }
      labels.push_back(static_cast<int64_t>(row));
      offsets.push_back(offsets.back() + static_cast<int64_t>(counts[row]));
    }
    const uint64_t room =
        std::max<uint64_t>(std::accumulate(places.begin(), places.end(), uint64_t{0}), 1);
    MemoryBudget budget(10 << 20);
    const auto pool = PlacedPool(budget, rows, room, round % 2 == 0);
    Slot* const slot = pool->Acquire();
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(slot->placed, kPatches);
    slot->SetRows(rows);
    slot->starts.assign(1, 0);
    for (const uint64_t place : places) slot->starts.push_back(slot->starts.back() + place);
    for (int64_t row = rows; row-- > 0;) {
      const auto index = static_cast<size_t>(row);
      ASSERT_EQ(slot->RoomOf(row), places[index]);
      auto* const patches = static_cast<uint16_t*>(slot->Placed(kPatches, row));
      for (uint64_t i = 0; i < counts[index] * 3; ++i) {
        patches[i] = static_cast<uint16_t>(index * 1000 + i);
      }
      auto* const ids = static_cast<uint8_t*>(slot->Placed(kNames, row));
      ASSERT_EQ(ids, slot->Row(kNames, row)) << "a column without places";
      for (uint64_t i = 0; i < counts[index]; ++i) ids[i] = static_cast<uint8_t>(row * 10);
      *static_cast<int64_t*>(slot->Row(2, row)) = row;
      slot->Objects(kPatches, row) = slot->Objects(kNames, row) =
          static_cast<int64_t>(counts[index]);
    }
    const void* const data = slot->columns[kPatches].data;
    if (!dropped.empty()) slot->DropRows(dropped);
    slot->Compact();

    Column patches;
    std::shared_ptr<void> owner;
    {
      const Batch batch = pool->Lend(slot);
      ASSERT_EQ(batch.rows(), static_cast<int64_t>(labels.size()));
      const Column& ids = batch.columns()[1];
      for (int64_t row = 0; row < batch.rows(); ++row) {
        EXPECT_EQ(batch.columns()[2].as<int64_t>()[static_cast<size_t>(row)],
                  labels[static_cast<size_t>(row)]);
        for (const uint8_t id : ids.objects<uint8_t>(row)) {
          EXPECT_EQ(id, labels[static_cast<size_t>(row)] * 10);
        }
      }
      patches = batch.columns()[kPatches];
      owner = batch.Owner(kPatches);
    }
    EXPECT_EQ(patches.data, data);
    EXPECT_EQ(patches.shape, (std::vector<int64_t>{offsets.back(), 3}));
    EXPECT_TRUE(std::ranges::equal(std::span(patches.offsets, offsets.size()), offsets));
    EXPECT_TRUE(std::ranges::equal(patches.as<uint16_t>(), wanted));
  }
}

// The memory of a batch is that of the room, not of batch_size times the largest row.
TEST(PlacedSlots, ReserveTheRoomOfAllRows) {
  const std::vector<ColumnSpec> columns = {{.name = "patches",
                                            .dtype = DType::kF32,
                                            .row_shape = {1024},
                                            .max_objects = 500,
                                            .room = 700}};
  EXPECT_EQ(SlotPool::SlotBytes(columns, 64), 700 * 4096 + 4096);  // and a page of offsets
}

}  // namespace
}  // namespace stoker
