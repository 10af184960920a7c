// Batches in buckets: each step of all ranks has rows of one length.
#include "engine/order/sampler.h"
#include "engine/order/token_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace stoker {
namespace {

constexpr uint32_t kNoLimit = 1 << 20;

const Buckets kOfTimm{.all = {{128}, {256}, {576}, {784}, {1024}}};

TokenBatchOptions BucketOptions(const std::vector<uint32_t>& samples, const Buckets& buckets,
                                uint32_t world, uint32_t budget = 16384,
                                uint32_t most_rows = kNoLimit, bool shuffle = true,
                                uint64_t seed = 3) {
  return {.tokens = samples,
          .budget = budget,
          .most_rows = most_rows,
          .seed = seed,
          .shuffle = shuffle,
          .buckets = &buckets,
          .run = world};
}

// Checks the table against its plain form, and that each epoch has each sample once.
void CheckBuckets(uint32_t samples, const Buckets& buckets, uint32_t world, uint32_t budget,
                  uint32_t most_rows) {
  const std::vector<uint32_t> tokens(samples, 1);
  for (const bool shuffle : {false, true}) {
    const auto options = BucketOptions(tokens, buckets, world, budget, most_rows, shuffle);
    const TokenBatches table(options);
    const uint64_t count = table.batches(/*full=*/false), whole = table.batches(/*full=*/true);
    ASSERT_EQ(whole % world, 0u);
    ASSERT_LE(whole, count);
    ASSERT_LE(count, whole + world);
    uint64_t most_rows_seen = 0, most_places = 0, places = 0;
    for (const uint64_t epoch : {0u, 1u, 77u}) {
      const PlainBucketBatches plain(options, epoch);
      ASSERT_EQ(plain.batches.size(), count);
      ASSERT_EQ(plain.full, whole);
      std::vector<int> times(samples);
      places = 0;
      for (uint64_t number = 0; number < count; ++number) {
        const TokenBatches::Rows rows = table.RowsOf(epoch, number, count);
        ASSERT_EQ(rows.length, plain.lengths[number]);
        ASSERT_EQ(rows.count, plain.batches[number].size());
        for (uint32_t row = 0; row < rows.count; ++row) {
          const uint64_t sample = table.SampleAt(epoch, rows.position + row);
          ASSERT_EQ(sample, plain.batches[number][row]);
          ++times[sample];
        }
        ASSERT_EQ(rows.length, table.RowsOf(epoch, number / world * world, count).length);
        ASSERT_TRUE(number >= whole || rows.count % buckets.multiple == 0);
        ASSERT_LE(rows.count, most_rows);
        const uint64_t its_places = uint64_t{rows.count} * rows.length;
        ASSERT_LE(its_places, budget);
        most_places = std::max(most_places, its_places);
        most_rows_seen = std::max<uint64_t>(most_rows_seen, rows.count);
        places += its_places;
      }
      ASSERT_EQ(std::ranges::count(times, 1), static_cast<int64_t>(samples));
    }
    ASSERT_EQ(table.MostOf({}), most_places);
    ASSERT_EQ(table.most_rows(), most_rows_seen);
    ASSERT_EQ(table.fuller_budget(), 0u);
    ASSERT_DOUBLE_EQ(table.fill(),
                     static_cast<double>(places) / static_cast<double>(count) / budget);
  }
}

TEST(BucketBatches, MatchThePlainFormOnRandomNumbers) {
  std::mt19937 random(5);
  const auto from = [&random](uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    Buckets buckets;
    buckets.multiple = from(1, 4);
    for (uint32_t i = from(1, 5); i > 0; --i)
      buckets.all.push_back({from(1, 300), from(1, 9) / 3.});
    const uint32_t budget = buckets.longest() * buckets.multiple * from(1, 4);
    const uint32_t most_rows = from(0, 1) == 0 ? kNoLimit : buckets.multiple + from(0, 20);
    CheckBuckets(from(1, 1500), buckets, from(1, 9), budget, most_rows);
  }
}

TEST(BucketBatches, MatchThePlainFormOnHostileNumbers) {
  const Buckets one{.all = {{1}}}, longest{.all = {{kNoLimit}}, .multiple = 2047};
  const Buckets uneven{.all = {{7, 1e-9}, {5, 1e9}, {7, 0}}, .multiple = 3};
  for (const uint32_t world : {1u, 2u, 3u, 8u, kNoLimit}) {
    for (const uint32_t samples : {1u, 2u, 3u, 7u, 8u, 9u, 500u}) {
      CheckBuckets(samples, one, world, 1, 1);
      CheckBuckets(samples, one, world, 3, kNoLimit);
      CheckBuckets(samples, longest, world, (~0u) >> 1, kNoLimit);
      CheckBuckets(samples, uneven, world, 21, kNoLimit);
      CheckBuckets(samples, uneven, world, 400, 3);
    }
  }
}

class BucketRanks : public ::testing::TestWithParam<uint32_t> {};

// The samples that the ranks have in an epoch, and that all have rows of one length in each step.
TEST_P(BucketRanks, HaveEachSampleOnce) {
  const uint32_t world = GetParam();
  for (uint32_t samples = 1; samples < 700; samples += 23) {
    const std::vector<uint32_t> tokens(samples, 1);
    const TokenBatches table(BucketOptions(tokens, kOfTimm, world, 4096));
    for (const auto& [remainder, drop] : {std::pair(Remainder::kUneven, false),
                                          {Remainder::kDrop, false},
                                          {Remainder::kPad, false},
                                          {Remainder::kUneven, true},
                                          {Remainder::kPad, true}}) {
      SamplerOptions options{.samples = table.batches(drop),
                             .tokens = &table,
                             .seed = 3,
                             .world = world,
                             .remainder = remainder,
                             .drop_remainder = drop};
      std::vector<int> times(samples);
      std::map<uint64_t, uint32_t> lengths;  // by step
      std::set<uint64_t> positions, steps;   // how many steps each rank has
      uint64_t rows = 0;
      for (options.rank = 0; options.rank < world; ++options.rank) {
        const Result<Sampler> made = Sampler::Make(options);
        steps.insert(made.ok() ? made->batches_per_epoch() : 0);
        for (uint64_t index = 0; made.ok() && index < made->batches_per_epoch(); ++index) {
          const BatchName batch{6, index, 0};
          const uint32_t length = made->LengthOf(batch);
          ASSERT_EQ(lengths.emplace(index, length).first->second, length) << "one for each step";
          ASSERT_LE(made->RowsIn(batch) * length, table.MostOf({}));
          for (uint32_t row = 0; row < made->RowsIn(batch); ++row, ++rows) {
            ++times[made->At(batch, row).sample];
            positions.insert(made->At(batch, row).position);
          }
        }
      }
      ASSERT_EQ(positions.size(), rows) << "rows of one position have the same random draws";
      const uint64_t left = table.batches(false) % world;  // batches of a last run with too few
      const auto once = static_cast<uint64_t>(std::ranges::count(times, 1));
      if (drop) {
        ASSERT_EQ(once, rows);
        ASSERT_EQ(steps.size(), 1u);
      } else if (remainder == Remainder::kUneven) {
        ASSERT_EQ(once, samples);
        ASSERT_EQ(steps.size(), left == 0 ? 1u : 2u);
      } else if (remainder == Remainder::kDrop) {
        ASSERT_EQ(once, samples - left) << "each of these batches has one row";
        ASSERT_EQ(steps.size(), 1u);
      } else {
        ASSERT_EQ(std::ranges::count(times, 0), 0);
        ASSERT_EQ(rows, samples + (left == 0 ? 0 : world - left));
        ASSERT_EQ(steps.size(), 1u);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, BucketRanks, ::testing::Values(1, 2, 3, 8));

TEST(BucketBatches, LengthsAreDrawnByWeight) {
  const std::vector<uint32_t> tokens(100'000, 1);
  const Buckets buckets{.all = {{10, 3}, {20, 1}}};
  const TokenBatches table(BucketOptions(tokens, buckets, 2, 100));
  const uint64_t batches = table.batches(false);
  double shorter = 0;
  for (uint64_t i = 0; i < batches; ++i)
    shorter += table.RowsOf(0, i, batches).length == 10 ? 1 : 0;
  EXPECT_NEAR(shorter / static_cast<double>(batches), 0.75, 0.02);
}

TEST(BucketBatches, EpochsPermuteRunsAndSamples) {
  const std::vector<uint32_t> tokens(20'000, 1);
  const TokenBatches table(BucketOptions(tokens, kOfTimm, 2));
  const uint64_t batches = table.batches(false);
  int same_length = 0, same_sample = 0;
  for (uint64_t i = 0; i < batches; ++i) {
    const TokenBatches::Rows one = table.RowsOf(0, i, batches), other = table.RowsOf(1, i, batches);
    same_length += one.length == other.length ? 1 : 0;
    same_sample += table.SampleAt(0, one.position) == table.SampleAt(1, other.position) ? 1 : 0;
  }
  EXPECT_LT(same_length, static_cast<int>(batches / 2));
  EXPECT_LT(same_sample, 3);
}

TEST(BucketBatches, LengthsOfWeightZeroAreNotDrawn) {
  const Buckets buckets{.all = {{30, 0}, {10}, {20, 0}, {15}, {40, 0}}};
  CheckBuckets(5000, buckets, 2, 100, kNoLimit);
  const std::vector<uint32_t> tokens(5000, 1);
  const TokenBatches table(BucketOptions(tokens, buckets, 2, 100));
  const uint64_t batches = table.batches(false);
  std::set<uint32_t> lengths;
  for (uint64_t i = 0; i < batches; ++i) lengths.insert(table.RowsOf(0, i, batches).length);
  EXPECT_EQ(lengths, (std::set<uint32_t>{10, 15}));
}

TEST(BucketBatches, ErrorsNameSamplesAndSteps) {
  const std::vector<uint32_t> tokens(5, 1);
  const Buckets buckets{.all = {{10}}};
  const TokenBatches table(BucketOptions(tokens, buckets, 8, 100));
  SamplerOptions options{.samples = table.batches(false), .tokens = &table, .rank = 6, .world = 8};
  EXPECT_EQ(Sampler::Make(options).error().Message(),
            "rank 6 has no sample: 5 samples for world 8. Use fewer ranks, or remainder = pad.");
  options.remainder = Remainder::kPad;
  EXPECT_TRUE(Sampler::Make(options).ok());
  options.samples = table.batches(true);
  options.drop_remainder = true;
  EXPECT_EQ(Sampler::Make(options).error().Message(),
            "no step is full, and drop_remainder leaves the last one out. Lower batch_tokens, or "
            "leave out drop_remainder.");
}

// A golden table: a state is refused if it changes, so it must not change by accident.
TEST(BucketBatches, AreTheSameInAllVersions) {
  const std::vector<uint32_t> tokens(400, 1);
  EXPECT_EQ(TokenBatches(BucketOptions(tokens, kOfTimm, 2)).Hash(), 1491634492724148546u);
}

TEST(BucketBatches, HashCoversOptions) {
  const std::vector<uint32_t> tokens(400, 1), more(401, 1);
  const Buckets weighted{.all = {{128, 9}, {256}, {576}, {784}, {1024}}};
  const Buckets multiple{.all = kOfTimm.all, .multiple = 8}, shorter{.all = {{127}}};
  std::set<uint64_t> hashes;
  for (const auto& options :
       {BucketOptions(tokens, kOfTimm, 2), BucketOptions(more, kOfTimm, 2),
        BucketOptions(tokens, weighted, 2), BucketOptions(tokens, multiple, 2),
        BucketOptions(tokens, shorter, 2), BucketOptions(tokens, kOfTimm, 3),
        BucketOptions(tokens, kOfTimm, 2, 8192), BucketOptions(tokens, kOfTimm, 2, 16384, 9),
        BucketOptions(tokens, kOfTimm, 2, 16384, kNoLimit, true, 4)}) {
    hashes.insert(TokenBatches(options).Hash());
  }
  EXPECT_EQ(hashes.size(), 9u);
}

}  // namespace
}  // namespace stoker
