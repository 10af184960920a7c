#include "engine/order/sampler.h"
#include "core/numbers/permutation.h"
#include "io/select/combine.h"
#include "io/select/weighted.h"
#include "tests/testing/samples/numbered_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stoker {
namespace {

using ::testing::HasSubstr;

Sampler Make(const SamplerOptions& options) {
  Result<Sampler> order = Sampler::Make(options);
  EXPECT_TRUE(order.ok()) << (order.ok() ? "" : order.error().ToString());
  return *std::move(order);
}

std::string ErrorOf(const SamplerOptions& options) {
  Result<Sampler> order = Sampler::Make(options);
  if (order.ok()) return "";
  EXPECT_EQ(order.error().code, Code::kInvalidArgument);
  return order.error().ToString();
}

// The definition, implemented literally: the positions of the epoch in order, dealt out step by
// step, row by row, rank by rank. Sampler is compared with it.
struct Dealt {
  std::vector<std::vector<std::vector<SamplerEntry>>> ranks;  // [rank][step][row]
};

Dealt Deal(const SamplerOptions& options, uint64_t epoch) {
  const uint64_t n = options.samples, world = options.world;
  uint64_t positions = n;
  if (options.remainder == Remainder::kDrop) positions = n / world * world;
  if (options.remainder == Remainder::kPad) {
    while (positions % world != 0) ++positions;
  }
  const Permutation permutation(n, options.seed, epoch);
  Dealt dealt;
  dealt.ranks.resize(world);
  uint64_t g = 0;
  for (uint64_t step = 0; g < positions; ++step) {
    if (options.drop_remainder && positions - g < world * options.batch_size) break;
    for (uint32_t row = 0; row < options.batch_size && g < positions; ++row) {
      for (uint64_t rank = 0; rank < world && g < positions; ++rank, ++g) {
        std::vector<std::vector<SamplerEntry>>& steps = dealt.ranks[rank];
        if (row == 0) steps.emplace_back();
        const uint64_t index = g < n ? g : g - n < n ? g - n : (g - n) % n;
        steps[step].push_back({g, options.shuffle ? permutation(index) : index});
      }
    }
  }
  return dealt;
}

class SamplerRanks : public ::testing::TestWithParam<uint32_t> {};

TEST_P(SamplerRanks, MatchesTheDefinition) {
  const uint32_t world = GetParam();
  for (uint64_t n : {1, 2, 3, 7, 8, 9, 23, 24, 25, 63, 64, 65, 101}) {
    for (uint32_t batch : {1u, 2u, 3u, 5u, 8u, 64u, 1000u}) {
      for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
        for (int flags = 0; flags < 4; ++flags) {
          SamplerOptions options{.samples = n,
                                 .shuffle = (flags & 1) != 0,
                                 .seed = 5,
                                 .batch_size = batch,
                                 .world = world,
                                 .remainder = remainder,
                                 .drop_remainder = (flags & 2) != 0};
          const Dealt dealt = Deal(options, 4);
          for (options.rank = 0; options.rank < world; ++options.rank) {
            const auto& steps = dealt.ranks[options.rank];
            if (steps.empty()) {
              EXPECT_FALSE(Sampler::Make(options).ok());
              continue;
            }
            const Sampler order = Make(options);
            ASSERT_EQ(order.batches_per_epoch(), steps.size());
            for (uint64_t step = 0; step < steps.size(); ++step) {
              ASSERT_EQ(order.RowsIn({0, step}), steps[step].size());
              for (uint32_t row = 0; row < steps[step].size(); ++row) {
                const SamplerEntry entry = order.At({4, step}, row);
                ASSERT_EQ(entry.position, steps[step][row].position);
                ASSERT_EQ(entry.sample, steps[step][row].sample);
              }
            }
          }
        }
      }
    }
  }
}

// The rest of an epoch is dealt out as an epoch of as many samples, with the positions and samples
// of the whole one.
TEST_P(SamplerRanks, TheRestOfAnEpochMatchesTheDefinition) {
  for (uint64_t n : {1, 7, 25, 64, 101}) {
    for (uint64_t start = 0; start <= n; ++start) {
      for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
        for (bool drop : {false, true}) {
          SamplerOptions options{.samples = n,
                                 .shuffle = true,
                                 .seed = 5,
                                 .batch_size = 3,
                                 .world = GetParam(),
                                 .remainder = remainder,
                                 .drop_remainder = drop};
          SamplerOptions rest = options;
          rest.samples = n - start;
          rest.shuffle = false;
          const Dealt dealt = start < n ? Deal(rest, 4) : Dealt{};
          const Permutation permutation(n, options.seed, 4);
          for (options.rank = 0; options.rank < options.world; ++options.rank) {
            const Result<Sampler> order = Sampler::Make(options);
            if (!order.ok()) continue;
            const auto steps =
                start < n ? dealt.ranks[options.rank] : std::vector<std::vector<SamplerEntry>>();
            ASSERT_EQ(order->batches_from(start), steps.size());
            for (uint64_t step = 0; step < steps.size(); ++step) {
              const BatchName batch{4, step, start};
              ASSERT_EQ(order->RowsIn(batch), steps[step].size());
              for (uint32_t row = 0; row < steps[step].size(); ++row) {
                const uint64_t g = start + steps[step][row].position;
                ASSERT_EQ(order->At(batch, row).position, g);
                ASSERT_EQ(order->At(batch, row).sample, permutation(g % n));
              }
            }
          }
        }
      }
    }
  }
}

// Counts how often each sample comes in an epoch, and collects each position, over all ranks.
struct Epoch {
  std::vector<int> count;
  std::map<uint64_t, uint64_t> sample_at;
  std::vector<uint64_t> rows;  // by rank
};

Epoch Collect(SamplerOptions options, uint64_t epoch) {
  Epoch all{.count = std::vector<int>(options.samples), .sample_at = {}, .rows = {}};
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    const Sampler order = Make(options);
    uint64_t rows = 0;
    for (uint64_t step = 0; step < order.batches_per_epoch(); ++step) {
      EXPECT_GT(order.RowsIn({0, step}), 0u);
      for (uint32_t row = 0; row < order.RowsIn({0, step}); ++row, ++rows) {
        const SamplerEntry entry = order.At({epoch, step}, row);
        ++all.count[entry.sample];
        EXPECT_TRUE(all.sample_at.emplace(entry.position, entry.sample).second);
      }
    }
    all.rows.push_back(rows);
  }
  return all;
}

TEST_P(SamplerRanks, UnevenDeliversEverySampleOnce) {
  for (uint32_t batch : {1u, 7u, 33u}) {
    const Epoch all = Collect(
        {.samples = 1009, .shuffle = true, .seed = 1, .batch_size = batch, .world = GetParam()}, 2);
    EXPECT_THAT(all.count, ::testing::Each(1));
  }
}

TEST_P(SamplerRanks, DropAndPadGiveAllRanksEquallyMany) {
  for (uint64_t n : {1009, 1016, 9}) {
    SamplerOptions options{
        .samples = n, .shuffle = true, .seed = 1, .batch_size = 7, .world = GetParam()};
    options.remainder = Remainder::kDrop;
    const Epoch dropped = Collect(options, 0);
    EXPECT_THAT(dropped.rows, ::testing::Each(n / GetParam()));
    EXPECT_THAT(dropped.count, ::testing::Each(::testing::Le(1)));

    options.remainder = Remainder::kPad;
    const Epoch padded = Collect(options, 0);
    EXPECT_THAT(padded.rows, ::testing::Each((n + GetParam() - 1) / GetParam()));
    EXPECT_THAT(padded.count, ::testing::Each(::testing::Ge(1)));
    for (uint64_t g = n; g < padded.sample_at.size(); ++g) {
      EXPECT_EQ(padded.sample_at.at(g), padded.sample_at.at(g - n));
    }
  }
}

TEST_P(SamplerRanks, RanksTogetherEqualOneRank) {
  for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop}) {
    const SamplerOptions one{.samples = 1009, .shuffle = true, .seed = 8, .batch_size = 24};
    SamplerOptions many = one;
    many.world = GetParam();
    many.batch_size = 5;
    many.remainder = remainder;
    const Epoch alone = Collect(one, 3);
    for (const auto& [position, sample] : Collect(many, 3).sample_at) {
      EXPECT_EQ(alone.sample_at.at(position), sample);
    }
  }
}

TEST_P(SamplerRanks, DropRemainderKeepsRanksInStep) {
  SamplerOptions options{.samples = 1009, .batch_size = 10, .world = GetParam()};
  options.drop_remainder = true;
  for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
    options.remainder = remainder;
    for (options.rank = 0; options.rank < options.world; ++options.rank) {
      const Sampler order = Make(options);
      EXPECT_EQ(order.RowsIn({0, order.batches_per_epoch() - 1}), 10u);
      const uint64_t share =
          (1009 + (remainder == Remainder::kPad ? options.world - 1 : 0)) / options.world;
      EXPECT_EQ(order.batches_per_epoch(), share / 10);
    }
  }
}

// Sources with an order of their own: all ranks together have the positions of one rank, which are
// those of the order, whatever the sequence of queries.
TEST_P(SamplerRanks, RanksTogetherHaveTheSourcesOrder) {
  using Source = std::shared_ptr<const SampleSource>;
  const auto numbers = [](uint64_t size) -> Source {
    return std::make_shared<testing::NumberedSource>(size);
  };
  std::vector<double> weights(400, 1.0);
  weights[3] = 50;
  const std::vector<double> shares{3, 1};
  for (const Source& source :
       {Weighted(numbers(400), weights, 1009).value(), Balanced(numbers(400)).value(),
        Balanced(numbers(30), {.samples = 1009}).value(),
        Combine({numbers(10), numbers(700)}, shares, 1009).value(),
        Repeated(numbers(1009), 3).value()}) {
    const SampleOrder& order = *source->order();
    SamplerOptions options{.samples = order.positions(), .order = &order, .seed = 8};
    options.world = GetParam();
    options.batch_size = 5;
    for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
      options.remainder = remainder;
      std::map<uint64_t, uint64_t> sample_at;
      for (options.rank = 0; options.rank < options.world; ++options.rank) {
        const Sampler sampler = Make(options);
        for (uint64_t step = sampler.batches_per_epoch(); step-- > 0;) {  // backwards
          for (uint32_t row = 0; row < sampler.RowsIn({0, step}); ++row) {
            const SamplerEntry entry = sampler.At({3, step}, row);
            EXPECT_TRUE(sample_at.emplace(entry.position, entry.sample).second);
          }
        }
      }
      const uint64_t left = order.positions() % options.world;
      const uint64_t positions = order.positions() + (remainder == Remainder::kUneven ? 0
                                                      : remainder == Remainder::kDrop ? -left
                                                      : left == 0                     ? 0
                                                                  : options.world - left);
      ASSERT_EQ(sample_at.size(), positions);
      for (const auto& [position, sample] : sample_at) {
        EXPECT_EQ(sample, order.At(8, 3, position % order.positions()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, SamplerRanks, ::testing::Values(1u, 2u, 3u, 8u));

TEST(Sampler, IsSequentialWhenNotShuffling) {
  const Sampler order = Make({.samples = 10, .batch_size = 4});
  ASSERT_EQ(order.batches_per_epoch(), 3u);
  EXPECT_EQ(order.RowsIn({0, 2}), 2u);
  EXPECT_EQ(order.At({0, 1}, 2).sample, 6u);
  EXPECT_EQ(order.At({99, 1}, 2).sample, 6u);
}

TEST(Sampler, ShufflesEachEpochDifferently) {
  const Sampler order = Make({.samples = 1000, .shuffle = true, .seed = 1, .batch_size = 1000});
  int same = 0;
  for (uint32_t row = 0; row < 1000; ++row) {
    same += order.At({0, 0}, row).sample == order.At({1, 0}, row).sample;
  }
  EXPECT_LE(same, 8);
}

TEST(Sampler, PadRepeatsSamplesForRanksWithoutAny) {
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const Sampler order =
        Make({.samples = 3, .rank = rank, .world = 8, .remainder = Remainder::kPad});
    EXPECT_EQ(order.At({0, 0}, 0).position, rank);
    EXPECT_EQ(order.At({0, 0}, 0).sample, rank % 3);
  }
}

TEST(Sampler, HugeOptionsDoNotOverflow) {
  SamplerOptions options{.samples = uint64_t{1} << 62, .shuffle = true, .batch_size = ~0u};
  options.world = ~0u;
  options.rank = options.world - 1;
  for (Remainder remainder : {Remainder::kUneven, Remainder::kDrop, Remainder::kPad}) {
    options.remainder = remainder;
    const Sampler order = Make(options);
    EXPECT_EQ(order.batches_per_epoch(), 1u);
    const SamplerEntry last = order.At({0, 0}, order.RowsIn({0, 0}) - 1);
    EXPECT_LT(last.position, options.samples + options.world);
    EXPECT_GT(last.position, options.samples - 2 * uint64_t{options.world});
    EXPECT_LT(last.sample, options.samples);
  }
}

TEST(Sampler, ErrorsNameTheOption) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("samples"));
  EXPECT_THAT(ErrorOf({.samples = (uint64_t{1} << 62) + 1}), HasSubstr("samples"));
  EXPECT_THAT(ErrorOf({.samples = 5, .batch_size = 0}), HasSubstr("batch_size"));
  EXPECT_THAT(ErrorOf({.samples = 5, .world = 0}), HasSubstr("world"));
  EXPECT_THAT(ErrorOf({.samples = 5, .rank = 2, .world = 2}), HasSubstr("rank is 2"));
  EXPECT_THAT(ErrorOf({.samples = 5, .rank = 6, .world = 8}), HasSubstr("rank 6 has no sample"));
  EXPECT_THAT(ErrorOf({.samples = 5, .batch_size = 6, .drop_remainder = true}),
              HasSubstr("batches of 6"));
  EXPECT_THAT(ErrorOf({.samples = 5, .world = 8, .remainder = Remainder::kDrop}),
              HasSubstr("no sample"));
}

}  // namespace
}  // namespace stoker
