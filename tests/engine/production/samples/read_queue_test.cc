// ReadQueue makes requests for rows in order, once each, and no more than allowed.
#include "engine/production/samples/read_queue.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "io/source/source.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker {
namespace {

class ReadQueueTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBatch = 4;

  ReadQueueTest() {
    options_.source = photos_.Source();
    options_.batch_size = kBatch;
    options_.shuffle = true;
    options_.seed = 7;
  }

  const testing::PhotoFolder photos_{20, 2};
  LoaderOptions options_;
  const Sampler order_ =
      Sampler::Make({.samples = 20, .shuffle = true, .seed = 7, .batch_size = kBatch}).value();
  MemoryBudget budget_{64 << 20};
  const std::shared_ptr<SlotPool> pool_ =
      SlotPool::Make(
          {.columns = {{"x", DType::kU8, {8}}}, .batch_size = kBatch, .working_slots = 2},
          Reservation(budget_))
          .value();
  Assembler assembler_{order_, pool_, /*depth=*/2, /*max_depth=*/2,
                       BatchSequence(Schedule::kEpochs, order_.batches_per_epoch(), {3, 1},
                                     order_.batches_per_epoch(), 9)};
  std::vector<ReadRequest*> requests_ = std::vector<ReadRequest*>(32);
};

TEST_F(ReadQueueTest, RowsBecomeRequestsInOrder) {
  SamplesInFlight samples(32, budget_, /*pieces=*/1);
  ReadQueue queue(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  ASSERT_EQ(queue.Fill(assembler_, requests_), 2 * kBatch) << "two batches are in production";
  for (uint32_t i = 0; i < 2 * kBatch; ++i) {
    const SampleInFlight& sample = samples[samples.IndexOf(*requests_[i])];
    const uint64_t index = 1 + i / kBatch;
    const SamplerEntry entry = order_.At({3, index}, i % kBatch);
    EXPECT_EQ(sample.claim.slot->index, index);
    EXPECT_EQ(sample.claim.row, i % kBatch);
    EXPECT_EQ(sample.read.sample, entry.sample);
    EXPECT_EQ(sample.read.path, photos_.FileOf(entry.sample));
    EXPECT_EQ(sample.draw.epoch, 3u);
    EXPECT_EQ(sample.draw.position, entry.position);
    EXPECT_EQ(sample.reads_in_flight, i + 1);
  }
  EXPECT_EQ(queue.Fill(assembler_, requests_), 0u) << "no row is claimed twice";
  EXPECT_EQ(samples.reading(), 2 * kBatch);
}

TEST_F(ReadQueueTest, RespectsTheSpanAndTheLimitOfReads) {
  SamplesInFlight samples(32, budget_, /*pieces=*/1);
  ReadQueue queue(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  EXPECT_EQ(queue.Fill(assembler_, std::span(requests_).first(3)), 3u);
  samples.SetLimits(/*reads=*/5, /*in_use=*/32);
  EXPECT_EQ(queue.Fill(assembler_, requests_), 2u);
  EXPECT_EQ(queue.Fill(assembler_, requests_), 0u);
  samples.EndRead();
  EXPECT_EQ(queue.Fill(assembler_, requests_), 1u);
}

TEST_F(ReadQueueTest, TakesNoSampleWithoutARow) {
  SamplesInFlight samples(32, budget_, /*pieces=*/1);
  ReadQueue queue(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  ASSERT_EQ(queue.Fill(assembler_, requests_), 2 * kBatch);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.Fill(assembler_, requests_), 0u);
  uint32_t left = 0;
  while (samples.Take()) ++left;
  EXPECT_EQ(left, 32 - 2 * kBatch);
}

TEST_F(ReadQueueTest, RunsOfRowsInMemoryEndWithTheirBatch) {
  SamplesInFlight samples(32, budget_, /*pieces=*/0);
  ReadQueue queue(options_, order_, /*plan=*/{}, samples, /*run=*/3);
  std::vector<uint32_t> sizes;
  while (const std::optional<uint32_t> run = queue.NextRun(assembler_)) {
    sizes.push_back(samples[*run].claim.rows);
  }
  EXPECT_EQ(sizes, (std::vector<uint32_t>{3, 1, 3, 1}));
  EXPECT_EQ(samples.reading(), 0u);
}

// Every second sample has row ranges; a row of pixels is a byte.
class HasSomeRanges final : public SampleSource {
 public:
  uint64_t size() const override { return 20; }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = 0, .offset = id, .length = 500}; }
  bool has_row_ranges(uint64_t id) const override { return id % 2 == 0; }
  ByteRange RangeOfRows(uint64_t id, int top, int bottom) const override {
    return {.file = 0,
            .offset = id + static_cast<uint64_t>(top),
            .length = static_cast<uint64_t>(bottom - top)};
  }
  ImageFacts FactsOf(uint64_t id) const override {
    EXPECT_TRUE(has_row_ranges(id)) << "no crop is drawn for a sample that is read as a whole";
    return {.width = 400, .height = 400};
  }
  void PathOf(uint32_t /*file*/, std::string& path) const override { path = "file"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "some ranges"; }

 private:
  const std::vector<Field> fields_{{.name = "image", .kind = Field::Kind::kImage}};
  const std::vector<std::string> classes_{};
};

TEST(RangeToRead, IsThatOfTheRowsOfTheCropWhereTheSampleHasRowRanges) {
  const HasSomeRanges source;
  const Plan plan = Plan::Compile({RandomCrop{.height = 50, .width = 50}}).value();
  for (uint64_t id = 0; id < source.size(); ++id) {
    const DrawKey draw{.seed = 7, .epoch = 3, .position = id};
    const ByteRange all = RangeToRead(source, nullptr, id, draw);
    EXPECT_EQ(all.offset, id);
    EXPECT_EQ(all.length, 500u);
    const ByteRange range = RangeToRead(source, &plan, id, draw);
    if (!source.has_row_ranges(id)) {
      EXPECT_EQ(range.offset, all.offset);
      EXPECT_EQ(range.length, all.length);
      continue;
    }
    const AxisSpan rows = plan.RowsOf(draw, {400, 400}, Orientation::kNormal).value();
    EXPECT_EQ(range.offset, id + static_cast<uint64_t>(rows.begin));
    EXPECT_EQ(range.length, static_cast<uint64_t>(rows.end - rows.begin));
  }
}

}  // namespace
}  // namespace stoker
