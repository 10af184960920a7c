// ReadFeed makes requests for rows in order, once each, and no more than allowed.
#include "engine/loader/read_feed.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/photo_folder.h"

namespace stoker {
namespace {

class ReadFeedTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBatch = 4;

  ReadFeedTest() {
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

TEST_F(ReadFeedTest, RowsBecomeRequestsInOrder) {
  SamplesInFlight samples(32, budget_, /*in_memory=*/false);
  ReadFeed feed(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  ASSERT_EQ(feed.Fill(assembler_, requests_), 2 * kBatch) << "two batches are in production";
  for (uint32_t i = 0; i < 2 * kBatch; ++i) {
    const SampleInFlight& sample = samples[samples.IndexOf(*requests_[i])];
    const uint64_t index = 1 + i / kBatch;
    const SamplerEntry entry = order_.At({3, index}, i % kBatch);
    EXPECT_EQ(sample.ticket.slot->index, index);
    EXPECT_EQ(sample.ticket.row, i % kBatch);
    EXPECT_EQ(sample.read.sample, entry.sample);
    EXPECT_EQ(sample.read.path, photos_.FileOf(entry.sample));
    EXPECT_EQ(sample.draw.epoch, 3u);
    EXPECT_EQ(sample.draw.position, entry.position);
    EXPECT_EQ(sample.reads_in_flight, i + 1);
  }
  EXPECT_EQ(feed.Fill(assembler_, requests_), 0u) << "no row is claimed twice";
  EXPECT_EQ(samples.reading(), 2 * kBatch);
}

TEST_F(ReadFeedTest, RespectsTheSpanAndTheLimitOfReads) {
  SamplesInFlight samples(32, budget_, /*in_memory=*/false);
  ReadFeed feed(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  EXPECT_EQ(feed.Fill(assembler_, std::span(requests_).first(3)), 3u);
  samples.SetLimits(/*reads=*/5, /*in_use=*/32);
  EXPECT_EQ(feed.Fill(assembler_, requests_), 2u);
  EXPECT_EQ(feed.Fill(assembler_, requests_), 0u);
  samples.EndRead();
  EXPECT_EQ(feed.Fill(assembler_, requests_), 1u);
}

TEST_F(ReadFeedTest, TakesNoSampleWithoutARow) {
  SamplesInFlight samples(32, budget_, /*in_memory=*/false);
  ReadFeed feed(options_, order_, /*plan=*/{}, samples, /*run=*/1);
  ASSERT_EQ(feed.Fill(assembler_, requests_), 2 * kBatch);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(feed.Fill(assembler_, requests_), 0u);
  uint32_t left = 0;
  while (samples.Take()) ++left;
  EXPECT_EQ(left, 32 - 2 * kBatch);
}

TEST_F(ReadFeedTest, RunsOfRowsInMemoryEndWithTheirBatch) {
  SamplesInFlight samples(32, budget_, /*in_memory=*/true);
  ReadFeed feed(options_, order_, /*plan=*/{}, samples, /*run=*/3);
  std::vector<uint32_t> sizes;
  while (const std::optional<uint32_t> run = feed.NextRun(assembler_)) {
    sizes.push_back(samples[*run].ticket.rows);
  }
  EXPECT_EQ(sizes, (std::vector<uint32_t>{3, 1, 3, 1}));
  EXPECT_EQ(samples.reading(), 0u);
}

}  // namespace
}  // namespace stoker
