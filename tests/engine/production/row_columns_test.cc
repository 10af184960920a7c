// RowColumns says where a plan writes a row, and writes the other columns.
#include "engine/production/row_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/production/producer_parts.h"
#include "io/ranges/path_source.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"

namespace stoker {
namespace {

class RowColumnsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRows = 4;

  void Open(LoaderOptions options, ProducerOptions own = {}) {
    options_ = std::move(options);
    options_.batch_size = kRows;
    sampler_.emplace(
        Sampler::Make({.samples = options_.source->size(), .batch_size = kRows}).value());
    plan_ = PlanOf(options_, own).value();
    std::vector<ColumnSpec> columns = ColumnsOf(options_, plan_, nullptr).value();
    if (options_.mix) mixer_.emplace(Mixer::Make(options_, false, columns).value());
    pool_ = SlotPool::Make({.columns = columns,
                            .batch_size = kRows,
                            .working_slots = 1,
                            .one_slab = own.crops.bytes != 0,
                            .crops = own.crops},
                           Reservation(budget_))
                .value();
    slot_ = pool_->Acquire();
    slot_->rows = kRows;
    columns_.emplace(options_, *sampler_, plan_, mixer_, nullptr, columns);
  }
  ~RowColumnsTest() override {
    if (slot_ != nullptr) pool_->Abandon(slot_);
  }

  LoaderOptions Photos() const {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16}};
    return options;
  }

  OutputRows RowsOf(uint32_t row) {
    return *columns_->RowsOf(*slot_, row, /*sample=*/row, buffers_);
  }
  void* At(size_t column, uint32_t row) { return slot_->Row(column, row); }

  const testing::PhotoFolder photos_{8, 2};
  LoaderOptions options_;
  std::optional<Sampler> sampler_;
  std::optional<Plan> plan_;
  std::optional<Mixer> mixer_;
  MemoryBudget budget_{64 << 20};
  std::shared_ptr<SlotPool> pool_;
  Slot* slot_ = nullptr;
  std::optional<RowColumns> columns_;
  RowColumns::Buffers buffers_;
};

TEST_F(RowColumnsTest, APlanWritesTheFirstColumn) {
  Open(Photos());
  const OutputRows rows = RowsOf(2);
  EXPECT_EQ(rows.row, At(0, 2));
  EXPECT_TRUE(rows.other_rows.empty());
  EXPECT_EQ(rows.work, nullptr);
  EXPECT_EQ(rows.size, nullptr);
  EXPECT_EQ(rows.crops, nullptr);
  EXPECT_EQ(rows.crop_at, nullptr);
}

TEST_F(RowColumnsTest, FurtherViewsFollowTheFields) {
  LoaderOptions options = Photos();
  options.views = {options.transforms, {Resize{.height = 8, .width = 8}}, options.transforms};
  options.transforms.clear();
  Open(std::move(options));
  const OutputRows rows = RowsOf(1);
  ASSERT_EQ(rows.other_rows.size(), 2u);
  EXPECT_EQ(rows.other_rows[0], At(2, 1));
  EXPECT_EQ(rows.other_rows[1], At(3, 1));
}

TEST_F(RowColumnsTest, ImagesThatDifferInSizeHaveAColumnOfSizes) {
  LoaderOptions options = Photos();
  options.transforms = {PadTo{.height = 600, .width = 600}};
  Open(std::move(options));
  EXPECT_EQ(RowsOf(3).size, At(2, 3));
}

TEST_F(RowColumnsTest, GeometryFollowsTheFields) {
  LoaderOptions options = Photos();
  options.geometry = true;
  Open(options);
  EXPECT_EQ(RowsOf(1).geometry, At(2, 1));
  EXPECT_EQ(RowsOf(1).original_size, At(3, 1));
}

TEST_F(RowColumnsTest, GeometryFollowsTheSizes) {
  LoaderOptions options = Photos();
  options.transforms = {PadTo{.height = 600, .width = 600}};
  options.geometry = true;
  Open(options);
  EXPECT_EQ(RowsOf(3).size, At(2, 3));
  EXPECT_EQ(RowsOf(3).geometry, At(3, 3));
  EXPECT_EQ(RowsOf(3).original_size, At(4, 3));
}

TEST_F(RowColumnsTest, ADeviceHasTheLastColumns) {
  Open(Photos(), {.defer_to_device = true, .crops = {.bytes = 1 << 20, .samples = 100}});
  const size_t last = slot_->columns.size() - 1;
  const OutputRows rows = RowsOf(2);
  EXPECT_EQ(rows.work, At(last, 2));
  EXPECT_EQ(rows.crop_at, At(last - 1, 2));
  EXPECT_EQ(rows.crops, &slot_->crops[0]);
}

// A row that is mixed with one of the next device's part is decoded by a worker.
TEST_F(RowColumnsTest, NoCropIsMixedAcrossDevices) {
  LoaderOptions options = Photos();
  options.mix = BatchMix{.choices = {MixUp{}}};
  Open(std::move(options),
       {.defer_to_device = true, .crops = {.bytes = 1 << 20, .samples = 100, .regions = 2}});
  EXPECT_EQ(RowsOf(0).crops, &slot_->crops[0]);
  EXPECT_EQ(RowsOf(1).crops, nullptr);
  EXPECT_EQ(RowsOf(2).crops, &slot_->crops[1]);
}

TEST_F(RowColumnsTest, WritesTheLabelsOfTheRowsInAClaim) {
  Open(Photos());
  slot_->sample_ids.assign({5, 0, 7, 2});
  auto* const labels = static_cast<int64_t*>(At(1, 0));
  std::fill_n(labels, kRows, -7);
  StageTimes times;
  ASSERT_TRUE(columns_->Write({.row = 1, .rows = 2, .slot = slot_}, {}, times).ok());
  std::vector<int64_t> expected(2);
  options_.source->FixedRows(1, std::vector<uint64_t>{0, 7}, expected.data());
  EXPECT_EQ(labels[0], -7);
  EXPECT_EQ((std::vector<int64_t>{labels[1], labels[2]}), expected);
  EXPECT_EQ(labels[3], -7);
  EXPECT_EQ(times.map_ns, 0u);
}

TEST_F(RowColumnsTest, APieceGoesToTheColumnOfItsNumber) {
  const testing::PhotoPairs pairs(8, 2);
  LoaderOptions options = Photos();
  options.source = pairs.Source();
  options.transforms = {PadTo{.height = 100, .width = 100}};
  Open(std::move(options));
  ASSERT_EQ(slot_->columns.size(), 4u);
  EXPECT_EQ(slot_->columns[1].shape, slot_->columns[0].shape);
  EXPECT_EQ(RowsOf(2).size, At(3, 2));
  const OutputRows second = columns_->RowsOfPiece(*slot_, 2, 1, buffers_);
  EXPECT_EQ(second.row, At(1, 2));
  EXPECT_EQ(second.size, nullptr) << "the first piece's is that of all";
  slot_->sample_ids.assign({5, 0, 7, 2});
  *static_cast<uint8_t*>(second.row) = 77;
  StageTimes times;
  ASSERT_TRUE(columns_->Write({.row = 2, .slot = slot_}, {}, times).ok());
  EXPECT_EQ(*static_cast<const uint8_t*>(second.row), 77) << "it is the plan's";
  EXPECT_EQ(*static_cast<const int64_t*>(At(2, 2)), options_.source->LabelOf(7));
}

TEST_F(RowColumnsTest, ImagesAloneGetNoLabel) {
  LoaderOptions options = Photos();
  PathTable paths;
  for (uint64_t id = 0; id < kRows; ++id) paths.Add(photos_.FileOf(id));
  options.source = Files(std::move(paths)).value();
  Open(std::move(options));
  StageTimes times;
  slot_->sample_ids.assign({0, 1, 2, 3});
  ASSERT_TRUE(columns_->Write({.row = 0, .rows = kRows, .slot = slot_}, {}, times).ok());
  const auto* const labels = static_cast<const int64_t*>(At(1, 0));
  EXPECT_TRUE(std::all_of(labels, labels + kRows, [](int64_t l) { return l == kNoLabel; }));
}

}  // namespace
}  // namespace stoker
