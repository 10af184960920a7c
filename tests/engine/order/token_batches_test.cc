#include "engine/order/token_batches.h"
#include "engine/options/options.h"
#include "tests/engine/order/photo_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace stoker {
namespace {

using Batches = std::vector<std::vector<uint64_t>>;

// The batches of an epoch as the table has them.
Batches BatchesOf(const TokenBatches& table, uint64_t epoch) {
  Batches all;
  const uint64_t batches = table.batches(/*full=*/false);
  for (uint64_t number = 0; number < batches; ++number) {
    const TokenBatches::Rows rows = table.RowsOf(epoch, number, batches);
    EXPECT_GE(rows.count, 1u);
    EXPECT_LE(rows.count, table.most_rows());
    all.emplace_back();
    for (uint32_t row = 0; row < rows.count; ++row) {
      all.back().push_back(table.SampleAt(epoch, rows.position + row));
    }
  }
  return all;
}

// Returns the tokens of a batch that count against the budget: their sum, or in a padded batch the
// number of rows × the largest.
uint64_t Sum(const std::vector<uint32_t>& tokens, const std::vector<uint64_t>& batch, bool padded) {
  uint64_t sum = 0, longest = 0;
  for (const uint64_t sample : batch) {
    sum += tokens[sample];
    longest = std::max<uint64_t>(longest, tokens[sample]);
  }
  return padded ? longest * batch.size() : sum;
}

// Checks the table against its plain form, and what each epoch promises.
void Check(const std::vector<uint32_t>& tokens, uint32_t budget, uint32_t most_rows = 1 << 20) {
  for (const auto& [shuffle, padded] :
       {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    const TokenBatchOptions options{tokens, budget, most_rows, /*seed=*/3, shuffle, padded};
    const TokenBatches table(options);
    uint64_t most = 0;
    std::vector<uint32_t> others(tokens.rbegin(), tokens.rend());
    const uint64_t most_others = table.MostOf(others);
    ASSERT_LE(table.MostOf(tokens), budget);
    for (const uint64_t epoch : {0u, 1u, 77u}) {
      const Batches batches = BatchesOf(table, epoch);
      const PlainTokenBatches plain(options, epoch);
      ASSERT_EQ(batches, plain.batches) << epoch << shuffle << padded;
      ASSERT_EQ(table.batches(/*full=*/true), plain.full);
      std::vector<int> times(tokens.size());
      for (const std::vector<uint64_t>& batch : batches) {
        ASSERT_LE(Sum(tokens, batch, padded), budget);
        ASSERT_LE(Sum(others, batch, padded), most_others);
        ASSERT_LE(batch.size(), most_rows);
        most = std::max<uint64_t>(most, batch.size());
        for (const uint64_t sample : batch) ++times[sample];
      }
      ASSERT_EQ(std::ranges::count(times, 1), static_cast<int64_t>(times.size()));
    }
    ASSERT_EQ(table.most_rows(), most);
    const uint64_t all = table.batches(false);
    const double sum = std::accumulate(tokens.begin(), tokens.end(), 0.0);
    ASSERT_DOUBLE_EQ(table.fill(), sum / static_cast<double>(all) / budget);
  }
}

TEST(TokenBatches, MatchThePlainFormOnRandomNumbers) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const uint32_t budget = std::uniform_int_distribution<uint32_t>(1, 3000)(random);
    std::uniform_int_distribution<uint32_t> number(0, 1 + random() % budget);
    std::vector<uint32_t> tokens(1 + random() % 900);
    for (uint32_t& one : tokens) one = std::min(number(random), budget);
    Check(tokens, budget);
    Check(tokens, budget, 1 + random() % 9);
  }
}

TEST(TokenBatches, MatchThePlainFormOnHostileNumbers) {
  const uint32_t most = (~0u) >> 1;
  const std::vector<std::vector<uint32_t>> all = {{0},
                                                  {1},
                                                  {100},
                                                  {0, 0, 0},
                                                  std::vector<uint32_t>(100, 5),
                                                  std::vector<uint32_t>(50, 100),
                                                  std::vector<uint32_t>(700, 51),
                                                  std::vector<uint32_t>(700, 0),
                                                  {100, 51, 50, 49, 1, 0, 0, 3}};
  for (const std::vector<uint32_t>& tokens : all) {
    Check(tokens, 100);
    Check(tokens, 100, 1);
    Check(tokens, 100, 2);
  }
  std::vector<uint32_t> mixed, up(300), down(300);
  for (int i = 0; i < 400; ++i)
    mixed.insert(mixed.end(), {100, 51, 50, 49, 1, 0, 0, 3, 99, 63, 64});
  std::iota(up.begin(), up.end(), 1u);
  std::iota(down.rbegin(), down.rend(), 1u);
  for (const auto& tokens : {mixed, up, down}) {
    Check(tokens, 300);
    Check(tokens, 300, 3);
  }
  Check({most, 0, most - 1, 1, most / 64 * 63, 7}, most);
  Check({most, most, 0}, ~0u);
}

// Samples with 63/64 of the tokens of the largest, and more, are one class: any of them may be in
// any of its rows.
TEST(TokenBatches, SamplesOfAClassChangePlaces) {
  std::vector<uint32_t> tokens(2000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 2 == 0 ? 64 : 63;
  const TokenBatches one({tokens, 64 * 5, 1 << 20, 1, true});
  int odd = 0;
  const Batches epoch = BatchesOf(one, 2);
  for (const std::vector<uint64_t>& batch : epoch) odd += static_cast<int>(batch[0] % 2);
  EXPECT_EQ(epoch.size(), 400u);
  EXPECT_GT(odd, 150);
  EXPECT_LT(odd, 250);
}

TEST(TokenBatches, KeepTheOrderOfTheSourceWithoutShuffling) {
  const std::vector<uint32_t> tokens = {4, 3, 9, 2, 1, 5, 5};
  EXPECT_EQ(BatchesOf(TokenBatches({tokens, 10, 1 << 20, 1, false}), 5),
            (Batches{{0, 1, 3, 4}, {2}, {5, 6}}));
}

// A golden table: a state is refused if it changes, so it must not change by accident.
TEST(TokenBatches, AreTheSameInAllVersions) {
  EXPECT_EQ(TokenBatches({kPhotoTokens, 16384, 1 << 20, 1, true}).Hash(), 1390252617891102431u);
  EXPECT_EQ(TokenBatches({kPhotoTokens, 16384, 1 << 20, 1, false}).Hash(), 5530110588516462978u);
  EXPECT_EQ(TokenBatches({kPhotoTokens, 16384, 1 << 20, 1, true, true}).Hash(),
            3532686544710618555u);
}

TEST(TokenBatches, HashCoversNumbersAndOptions) {
  std::vector<uint32_t> tokens(kPhotoTokens.begin(), kPhotoTokens.end());
  std::set<uint64_t> hashes;
  const auto add = [&](uint32_t budget, uint32_t rows, uint64_t seed, bool shuffle,
                       bool padded = false) {
    hashes.insert(TokenBatches({tokens, budget, rows, seed, shuffle, padded}).Hash());
  };
  add(16384, 1 << 20, 1, true);
  add(15000, 1 << 20, 1, true);
  add(16384, 10, 1, true);
  add(16384, 1 << 20, 2, true);
  add(16384, 1 << 20, 1, false);
  add(16384, 1 << 20, 1, true, true);
  std::swap(tokens[0], tokens[1]);
  ASSERT_NE(tokens[0], tokens[1]);
  add(16384, 1 << 20, 1, true);
  EXPECT_EQ(hashes.size(), 7u);
}

// These tables differ only in whether the smallest sample would fit in the last batch, which
// decides how an epoch permutes them.
TEST(TokenBatches, HashCoversWhetherTheLastIsFull) {
  const std::vector<uint32_t> six = {10, 6}, five = {10, 5};
  std::set<bool> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const TokenBatches full({six, 10, 1 << 20, seed, true});
    const TokenBatches open({five, 10, 1 << 20, seed, true});
    const bool same = full.batches(true) == open.batches(true);
    EXPECT_EQ(full.Hash() == open.Hash(), same) << seed;
    seen.insert(same);
  }
  EXPECT_EQ(seen.size(), 2u) << "both orders of the template occur";
}

// A lower bound of the batches: from all tokens, and from samples with more than half a budget.
uint64_t Bound(const std::vector<uint32_t>& tokens, uint32_t budget) {
  const uint64_t sum = std::accumulate(tokens.begin(), tokens.end(), uint64_t{0});
  const auto alone = std::ranges::count_if(tokens, [&](uint32_t one) { return one > budget / 2; });
  return std::max<uint64_t>((sum + budget - 1) / budget, static_cast<uint64_t>(alone));
}

void ExpectFull(const std::vector<uint32_t>& tokens, uint32_t budget, double least) {
  const TokenBatches table({tokens, budget, 1 << 20, 1, true});
  EXPECT_GE(table.fill(), least);
  EXPECT_LE(static_cast<double>(table.batches(false)),
            std::ceil(1.01 * static_cast<double>(Bound(tokens, budget))));
}

TEST(TokenBatches, AreFull) {
  const std::vector<uint32_t> photos(kPhotoTokens.begin(), kPhotoTokens.end());
  ExpectFull(photos, 16384, 0.97);  // 24 batches; the last is .6 full
  ExpectFull(photos, 65536, 0.97);
  std::mt19937 random(7);
  std::vector<uint32_t> many(20'000), web(20'000);
  for (uint32_t& one : many) one = photos[random() % photos.size()];
  ExpectFull(many, 16384, 0.99);
  ExpectFull(many, 65536, 0.99);
  // Areas of photographs of the web: log-normal, 0.4 megapixels at the median, at most 1280 · 28²
  // pixels, 14² of them a patch.
  for (uint32_t& one : web) {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += static_cast<double>(random()) / 4294967296.0;
    const double area = std::min(0.4e6 * std::exp(normal), 1280.0 * 28 * 28);
    one = std::max(16u, static_cast<uint32_t>(area / 784) * 4);
  }
  ExpectFull(web, 16384, 0.98);
  ExpectFull(web, 65536, 0.98);
}

// Neighbours in size waste little: what is left after the last row, and what others have less than
// the longest. Random batches of 16 web images would be half full.
TEST(TokenBatches, PaddedAreNearlyFull) {
  const std::vector<uint32_t> photos(kPhotoTokens.begin(), kPhotoTokens.end());
  std::mt19937 random(7);
  std::vector<uint32_t> many(20'000);
  for (uint32_t& one : many) one = photos[random() % photos.size()];
  EXPECT_GE(TokenBatches({many, 16384, 1 << 20, 1, true, true}).fill(), 0.95);
  EXPECT_GE(TokenBatches({many, 65536, 1 << 20, 1, true, true}).fill(), 0.98);
  EXPECT_GE(TokenBatches({photos, 16384, 1 << 20, 1, true, true}).fill(), 0.89);
}

// Two samples of an epoch's batch differ little, and are not the same two in the next epoch.
TEST(TokenBatches, PaddedMixWithinClasses) {
  std::vector<uint32_t> tokens(20'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = 1000 + static_cast<uint32_t>(i % 500);
  const TokenBatches table({tokens, 20'000, 1 << 20, 1, true, true});
  const Batches first = BatchesOf(table, 0), second = BatchesOf(table, 1);
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  uint64_t again = 0, all = 0;
  for (const std::vector<uint64_t>& batch : first) {
    for (const uint64_t a : batch) {
      for (const uint64_t b : batch) {
        ASSERT_LE(tokens[a], tokens[b] * 1.04);
        if (a < b) pairs.emplace(a, b);
      }
    }
  }
  for (const std::vector<uint64_t>& batch : second) {
    for (const uint64_t a : batch) {
      for (const uint64_t b : batch) {
        if (a < b) {
          ++all;
          again += pairs.count({a, b});
        }
      }
    }
  }
  EXPECT_LT(again, all / 10);
}

// A budget of four times the largest sample is advised only if it fills batches.
TEST(TokenBatches, KnowWhichBudgetFillsThem) {
  const auto fuller = [](const std::vector<uint32_t>& tokens, uint32_t budget, bool padded) {
    return TokenBatches({tokens, budget, 1 << 20, 1, true, padded}).fuller_budget();
  };
  const std::vector<uint32_t> equal(1000, 200), small(1000, 1);
  for (const bool padded : {false, true}) {
    EXPECT_EQ(fuller(equal, 399, padded), padded ? 0u : 800u);
    EXPECT_EQ(fuller(equal, 400, padded), 0u) << "they are full";
    EXPECT_EQ(fuller(equal, 999, padded), 0u) << "the budget has room for four";
    EXPECT_EQ(fuller(small, 700, padded), 0u) << "there are two batches";
  }
  const std::vector<uint32_t> photos(kPhotoTokens.begin(), kPhotoTokens.end());
  std::vector<uint32_t> many;
  int given = 0;
  for (int i = 0; i < 20; ++i) many.insert(many.end(), photos.begin(), photos.end());
  EXPECT_EQ(fuller(photos, 5'120, false), 0u) << "the larger batches would be few";
  const TokenBatches by_rows({many, 16'384, 8, 1, true, false});
  EXPECT_LT(by_rows.fill(), 0.97);
  EXPECT_EQ(by_rows.fuller_budget(), 0u) << "batch_size ends batches";
  std::mt19937 random(7);
  std::vector<uint32_t> uniform(5000);
  for (uint32_t& one : uniform) one = 1 + random() % 5000;
  const std::vector<std::pair<std::vector<uint32_t>, uint32_t>> cases = {
      {equal, 200},    {equal, 250},     {equal, 399},     {equal, 599},     {equal, 799},
      {many, 5'120},   {many, 8'000},    {many, 16'384},   {uniform, 5'000}, {uniform, 6'000},
      {photos, 5'120}, {uniform, 8'000}, {uniform, 15'000}};
  for (const auto& [tokens, budget] : cases) {
    const TokenBatches table({tokens, budget, 1 << 20, 1, true, false});
    if (table.fuller_budget() == 0) continue;
    ++given;
    const auto advised = static_cast<uint32_t>(table.fuller_budget());
    EXPECT_GT(TokenBatches({tokens, advised, 1 << 20, 1, true, false}).fill(), table.fill());
  }
  EXPECT_GE(given, 3);
  const std::vector<uint32_t> huge(200, kMostTokens / 2);
  EXPECT_EQ(fuller(huge, kMostTokens - 2, false), 0u) << "beyond the most that is possible";
}

// Nothing can fill what is left after as many equal samples as fit.
TEST(TokenBatches, OfEqualSamplesHaveAsManyAsFit) {
  const std::vector<uint32_t> equal(1000, 200);
  const TokenBatches table({equal, 999, 1 << 20, 1, true});
  EXPECT_EQ(table.batches(false), 250u);
  EXPECT_DOUBLE_EQ(table.fill(), 800.0 / 999);
}

}  // namespace
}  // namespace stoker
