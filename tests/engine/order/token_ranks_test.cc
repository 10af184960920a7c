// How ranks share batches of a number of tokens.
#include "engine/order/sampler.h"
#include "engine/order/token_batches.h"
#include "tests/engine/order/photo_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace stoker {
namespace {

SamplerOptions Shared(const TokenBatches& table, uint32_t world, Remainder remainder,
                      bool drop = false) {
  return {.samples = table.batches(drop),
          .tokens = &table,
          .seed = 3,
          .world = world,
          .remainder = remainder,
          .drop_remainder = drop};
}

// Checks that the ranks share the batches of an epoch, or of what is left of it.
void CheckPlan(const TokenBatches& table, const std::vector<uint32_t>& tokens, uint32_t world) {
  for (const Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
    for (const uint64_t start : {uint64_t{0}, uint64_t{5}}) {
      std::vector<int> times(tokens.size()), wanted(tokens.size());
      std::set<uint64_t> positions;
      uint64_t rows = 0;
      SamplerOptions options = Shared(table, world, remainder);
      const uint64_t left = options.samples - start;
      const uint64_t dealt = remainder == Remainder::kUneven ? left
                             : remainder == Remainder::kDrop ? left / world * world
                                                             : (left + world - 1) / world * world;
      for (uint64_t number = start; number < start + dealt; ++number) {
        const TokenBatches::Rows batch = table.RowsOf(4, number, options.samples);
        for (uint32_t row = 0; row < batch.count; ++row) {
          ++wanted[table.SampleAt(4, batch.position + row)];
        }
      }
      for (options.rank = 0; options.rank < world; ++options.rank) {
        const Sampler order = Sampler::Make(options).value();
        ASSERT_EQ(order.batches_from(start), (dealt + world - 1 - options.rank) / world);
        for (uint64_t index = 0; index < order.batches_from(start); ++index) {
          const BatchName batch{4, index, start};
          uint64_t sum = 0;
          for (uint32_t row = 0; row < order.RowsIn(batch); ++row, ++rows) {
            const SamplerEntry entry = order.At(batch, row);
            ASSERT_EQ(entry.position, order.PositionOf(batch, row));
            positions.insert(entry.position);
            ++times[entry.sample];
            sum += tokens[entry.sample];
          }
          ASSERT_LE(sum, 16384u);
        }
      }
      EXPECT_EQ(positions.size(), rows) << "rows of one position have the same random draws";
      EXPECT_EQ(times, wanted);
      EXPECT_LE(*std::ranges::max_element(times), remainder == Remainder::kPad ? 2 : 1);
    }
  }
}

class TokenRanks : public ::testing::TestWithParam<uint32_t> {};

TEST_P(TokenRanks, HaveTheBatchesOfThePlan) {
  const std::vector<uint32_t> tokens(kPhotoTokens.begin(), kPhotoTokens.end());
  const TokenBatches packed({tokens, 16384, 1 << 20, 3, true});
  const TokenBatches padded({tokens, 16384, 1 << 20, 3, true, /*padded=*/true});
  CheckPlan(packed, tokens, GetParam());
  CheckPlan(padded, tokens, GetParam());
}

// A sample has the same random draws for any number of ranks.
TEST_P(TokenRanks, HaveThePositionsOfOneRank) {
  const TokenBatches table({kPhotoTokens, 16384, 1 << 20, 3, true});
  const Sampler one = Sampler::Make(Shared(table, 1, Remainder::kUneven)).value();
  SamplerOptions options = Shared(table, GetParam(), Remainder::kUneven);
  for (uint64_t number = 0; number < table.batches(false); ++number) {
    options.rank = static_cast<uint32_t>(number % options.world);
    const Sampler order = Sampler::Make(options).value();
    const BatchName batch{2, number / options.world};
    ASSERT_EQ(order.RowsIn(batch), one.RowsIn({2, number}));
    for (uint32_t row = 0; row < order.RowsIn(batch); ++row) {
      ASSERT_EQ(order.At(batch, row).sample, one.At({2, number}, row).sample);
      ASSERT_EQ(order.At(batch, row).position, one.At({2, number}, row).position);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, TokenRanks, ::testing::Values(1u, 2u, 3u, 8u));

// Substitutes never make a batch larger than the budget.
TEST(TokenSampler, SubstitutesFit) {
  const std::vector<uint32_t> tokens(kPhotoTokens.begin(), kPhotoTokens.end());
  const TokenBatches table({tokens, 16384, 1 << 20, 3, true});
  const Sampler order = Sampler::Make(Shared(table, 1, Remainder::kPad)).value();
  std::set<uint64_t> substitutes;
  for (uint64_t index = 0; index < order.batches_per_epoch(); ++index) {
    for (uint32_t attempt = 0; attempt < 16; ++attempt) {
      uint64_t sum = 0;
      for (uint32_t row = 0; row < order.RowsIn({1, index}); ++row) {
        const uint64_t position = order.PositionOf({1, index}, row);
        const uint64_t substitute = order.SubstituteFor(1, position, attempt);
        const uint64_t bad = order.At({1, index}, row).sample;
        // The smallest photograph has 80 tokens, and no other is of its class.
        ASSERT_EQ(substitute == bad, tokens[bad] == 80);
        ASSERT_EQ(substitute, order.SubstituteFor(1, position, attempt));
        substitutes.insert(substitute);
        sum += tokens[substitute];
      }
      ASSERT_LE(sum, 16384u);
    }
  }
  EXPECT_GT(substitutes.size(), tokens.size() * 3 / 4);
}

TEST(TokenSampler, LeavesOutALastBatchWithRoom) {
  const std::vector<uint32_t> tokens(21, 10);  // two batches of 10, and one of 1
  const TokenBatches table({tokens, 100, 1 << 20, 3, true});
  EXPECT_EQ(table.batches(false), 3u);
  const Sampler order = Sampler::Make(Shared(table, 1, Remainder::kUneven, /*drop=*/true)).value();
  ASSERT_EQ(order.batches_per_epoch(), 2u);
  EXPECT_EQ(order.RowsIn({0, 0}) + order.RowsIn({0, 1}), 20u);
  const std::vector<uint32_t> twenty(20, 10);
  EXPECT_EQ(TokenBatches({twenty, 100, 1 << 20, 3, true}).batches(true), 2u) << "it is full";
}

std::string ErrorOf(const SamplerOptions& options) {
  const Result<Sampler> order = Sampler::Make(options);
  return order.ok() ? "" : order.error().Message();
}

TEST(TokenSampler, ErrorsNameBatches) {
  const std::vector<uint32_t> tokens(5, 10);
  const TokenBatches table({tokens, 20, 1 << 20, 3, true});
  SamplerOptions options = Shared(table, 8, Remainder::kUneven);
  options.rank = 6;
  EXPECT_EQ(ErrorOf(options),
            "rank 6 has no batch: batch_tokens makes 3 batches for world 8. Use fewer ranks, or "
            "remainder = pad, or lower batch_tokens.");
  options.remainder = Remainder::kPad;
  EXPECT_EQ(ErrorOf(options), "");
  const TokenBatches short_one({tokens, 60, 1 << 20, 3, true});
  EXPECT_EQ(
      ErrorOf(Shared(short_one, 1, Remainder::kUneven, true)),
      "the only batch is not full, and drop_remainder leaves it out. Lower batch_tokens, or leave "
      "out drop_remainder.");
  options = Shared(table, 8, Remainder::kUneven, true);
  EXPECT_EQ(ErrorOf(options),
            "rank 0 has no batch: batch_tokens makes 2 full batches for world 8. Use fewer ranks, "
            "or lower batch_tokens, or leave out drop_remainder.");
}

}  // namespace
}  // namespace stoker
