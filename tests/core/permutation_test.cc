#include "core/numbers/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

std::vector<uint64_t> Table(uint64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<uint64_t> table(n);
  for (uint64_t i = 0; i < n; ++i) table[i] = permutation(i);
  return table;
}

bool IsPermutation(const std::vector<uint64_t>& table) {
  std::vector<bool> seen(table.size());
  for (uint64_t value : table) {
    if (value >= table.size() || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

// Returns chi-square of `counts` against equal ones, as a standard normal deviate (Wilson and
// Hilferty, PNAS 1931).
double Deviate(const std::vector<uint64_t>& counts) {
  const double total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0ull));
  const double expected = total / static_cast<double>(counts.size());
  double chi2 = 0;
  for (uint64_t c : counts) {
    const double d = static_cast<double>(c) - expected;
    chi2 += d * d / expected;
  }
  const double k = static_cast<double>(counts.size()) - 1, v = 2 / (9 * k);
  return (std::cbrt(chi2 / k) - (1 - v)) / std::sqrt(v);
}

constexpr double kP1e4 = 3.719;  // a deviate above it, or below its negative, has p < 1e-4

// The counts are neither too uneven nor too even for chance.
bool Uniform(const std::vector<uint64_t>& counts) { return std::abs(Deviate(counts)) < kP1e4; }

// Returns the rank of a permutation among all of its length.
uint64_t Lehmer(const std::vector<uint64_t>& table) {
  uint64_t code = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto smaller = std::count_if(table.begin() + static_cast<std::ptrdiff_t>(i), table.end(),
                                       [&](uint64_t v) { return v < table[i]; });
    code = code * (table.size() - i) + static_cast<uint64_t>(smaller);
  }
  return code;
}

TEST(Permutation, IsABijectionForEveryLengthUpTo2000) {
  for (uint64_t n = 1; n <= 2000; ++n) {
    for (uint64_t epoch : {0ull, 1ull, ~0ull}) {
      ASSERT_TRUE(IsPermutation(Table(n, n * 31, epoch))) << n << " " << epoch;
    }
  }
}

TEST(Permutation, IsABijectionForLargeLengths) {
  for (uint64_t n : {65535ull, 65536ull, 65537ull, 1281167ull, 4194305ull}) {
    EXPECT_TRUE(IsPermutation(Table(n, 5, 3))) << n;
  }
}

TEST(Permutation, IsInRangeAndInjectiveForHugeLengths) {
  for (uint64_t n : {(uint64_t{1} << 32) + 1, (uint64_t{1} << 62) + 12345, ~uint64_t{0},
                     ~uint64_t{0} - (uint64_t{1} << 33) + 2}) {
    const Permutation permutation(n, 11, 2);
    RandomStream random({1, 2, 3}, 0);
    std::unordered_set<uint64_t> positions, values;
    for (int i = 0; i < testing::Effort(200'000); ++i) {
      // Neighbours, both ends and places from all over.
      uint64_t position = random.Below(n);
      if (i % 3 == 0) position = static_cast<uint64_t>(i);
      if (i % 3 == 1) position = n - 1 - static_cast<uint64_t>(i);
      if (!positions.insert(position).second) continue;
      const uint64_t value = permutation(position);
      ASSERT_LT(value, n);
      ASSERT_TRUE(values.insert(value).second);
    }
  }
}

TEST(Permutation, IsTheSameOnEveryMachine) {
  // Written down once from this code: changing them changes what users' runs reproduce.
  const std::vector<uint64_t> ten = Table(10, 1, 0);
  EXPECT_EQ(ten, (std::vector<uint64_t>{3, 1, 8, 4, 0, 5, 2, 9, 7, 6}));
  EXPECT_EQ(Permutation(1281167, 1, 0)(0), 902162u);
  EXPECT_EQ(Permutation(~uint64_t{0}, 1, 0)(7), 4047296176503597059u);
}

// 1500 of each length; 300 if Effort is less than full.
TEST(Permutation, AllOrdersOfShortLengthsAreEquallyLikely) {
  for (uint64_t n : {2, 3, 4, 5}) {
    uint64_t orders = 1;
    for (uint64_t i = 2; i <= n; ++i) orders *= i;
    std::vector<uint64_t> by_epoch(orders), by_seed(orders);
    for (uint64_t i = 0; i < orders * static_cast<uint64_t>(testing::Effort(1500)); ++i) {
      ++by_epoch[Lehmer(Table(n, 42, i))];
      ++by_seed[Lehmer(Table(n, i, 0))];
    }
    EXPECT_TRUE(Uniform(by_epoch)) << n;
    EXPECT_TRUE(Uniform(by_seed)) << n;
  }
}

TEST(Permutation, EveryPositionGetsEverySampleEquallyOften) {
  for (uint64_t n : {63, 64, 65, 256, 257, 1000}) {
    std::vector<uint64_t> counts(n * 8);
    for (uint64_t epoch = 0; epoch < n * 400; ++epoch) {
      const Permutation permutation(n, 7, epoch);
      for (uint64_t k = 0; k < 8; ++k) ++counts[k * n + permutation(k * (n - 1) / 7)];
    }
    // One test for each place: their sum over samples is fixed.
    for (uint64_t k = 0; k < 8; ++k) {
      const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(k * n);
      EXPECT_TRUE(Uniform({begin, begin + static_cast<std::ptrdiff_t>(n)})) << n << " " << k;
    }
  }
}

// 300 of each length; 60 if Effort is less than full.
TEST(Permutation, NeighboursAreUnrelated) {
  for (uint64_t n : {64, 257, 1000, 1281167}) {
    const uint64_t bins = std::min<uint64_t>(n - 1, 1000);
    for (uint64_t gap : {uint64_t{1}, uint64_t{2}, n / 2}) {
      std::vector<uint64_t> counts(bins);
      for (uint64_t i = 0; i < static_cast<uint64_t>(testing::Effort(300000)); ++i) {
        const Permutation permutation(n, 3, i / 16);
        const uint64_t position = i * 7919 % (n - gap);
        // The difference of two different samples modulo n: any of 1 … n - 1, equally often.
        const uint64_t d = (permutation(position + gap) + n - permutation(position)) % n;
        ++counts[(d - 1) * bins / (n - 1)];
      }
      EXPECT_TRUE(Uniform(counts)) << n << " " << gap;
    }
  }
}

TEST(Permutation, NeighboursGetAllPairsOfSamplesEquallyOften) {
  constexpr uint64_t kN = 16;
  std::vector<uint64_t> counts(kN * (kN - 1));
  for (uint64_t epoch = 0; epoch < 400000; ++epoch) {
    const Permutation permutation(kN, 9, epoch);
    const uint64_t a = permutation(3), b = permutation(4);
    ++counts[a * (kN - 1) + (b > a ? b - 1 : b)];
  }
  EXPECT_TRUE(Uniform(counts));
}

TEST(Permutation, EpochsAndSeedsAreUnrelated) {
  constexpr uint64_t kN = 10007;
  const auto same = [](const Permutation& a, const Permutation& b) {
    int n = 0;
    for (uint64_t i = 0; i < kN; ++i) n += a(i) == b(i);
    return n;
  };
  for (uint64_t k = 0; k < 64; ++k) {  // one is expected; P(more than 8) is about 1e-6
    const uint64_t bit = uint64_t{1} << k;
    EXPECT_LE(same({kN, 1, 0}, {kN, 1 ^ bit, 0}), 8) << k;
    EXPECT_LE(same({kN, 1, 0}, {kN, 1, bit}), 8) << k;
    EXPECT_LE(same({kN, bit, 1}, {kN, 1, bit}), k == 0 ? static_cast<int>(kN) : 8) << k;
  }
}

}  // namespace
}  // namespace stoker
