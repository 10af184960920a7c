#include "engine/memory/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Random;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

uint64_t Sum(const std::vector<uint64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), uint64_t{0});
}

// The reference: hands out units one by one, each to the claim that has the least for its weight.
std::vector<uint64_t> OneByOne(uint64_t total, const std::vector<FairClaim>& claims) {
  std::vector<uint64_t> shares;
  for (const FairClaim& claim : claims) shares.push_back(claim.minimum);
  for (uint64_t left = total - std::min(total, Sum(shares)); left > 0; --left) {
    size_t poorest = claims.size();
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < claims.size(); ++i) {
      const double has = static_cast<double>(shares[i] + 1) / claims[i].weight;
      if (shares[i] >= claims[i].need || has >= least) continue;
      poorest = i;
      least = has;
    }
    if (poorest == claims.size()) break;
    ++shares[poorest];
  }
  return shares;
}

TEST(FairShares, GrantsAllNeedsWhenThereIsEnough) {
  const std::vector<FairClaim> claims{{1, 1, 3}, {4, 0, 2}, {1, 1, 0}};
  EXPECT_EQ(FairShares(100, claims), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_EQ(FairShares(kMax, claims), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(FairShares, GrantsSmallNeedsAndDividesTheRestByWeight) {
  const std::vector<FairClaim> claims{{1, 1, 2}, {1, 1, 100}, {3, 1, 100}};
  EXPECT_EQ(FairShares(22, claims), (std::vector<uint64_t>{2, 5, 15}));
}

TEST(FairShares, RemainderGoesToTheFirst) {
  const std::vector<FairClaim> claims{{1, 1, 9}, {1, 1, 9}, {1, 1, 9}};
  EXPECT_EQ(FairShares(8, claims), (std::vector<uint64_t>{3, 3, 2}));
}

TEST(FairShares, MinimaAreAlwaysGranted) {
  const std::vector<FairClaim> claims{{1, 5, 9}, {1, 7, 9}};
  EXPECT_EQ(FairShares(3, claims), (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(FairShares(0, claims), (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(FairShares(13, claims), (std::vector<uint64_t>{6, 7}));
}

TEST(FairShares, NoClaimsGiveNoShares) { EXPECT_TRUE(FairShares(10, {}).empty()); }

TEST(FairShares, HugeNumbersDoNotWrap) {
  const std::vector<FairClaim> claims{{1e-9, 1, kMax}, {1e9, 1, kMax}, {1, 1, kMax}};
  for (const uint64_t total : {uint64_t{3}, uint64_t{1} << 40, kMax / 2, kMax}) {
    uint64_t left = total;
    for (const uint64_t share : FairShares(total, claims)) {
      ASSERT_LE(share, left);
      left -= share;
    }
    EXPECT_LE(left, total >> 40) << total;  // the precision of doubles
  }
}

TEST(FairShares, MatchHandingOutOneByOne) {
  Random random(7);
  for (int round = 0; round < testing::Effort(2000); ++round) {
    std::vector<FairClaim> claims(static_cast<size_t>(random.Between(1, 9)));
    for (FairClaim& claim : claims) {
      claim = {.weight = random.OneIn(3) ? 0.25 * random.Between(1, 20) : 1.0,
               .minimum = static_cast<uint64_t>(random.Between(0, 5)),
               .need = static_cast<uint64_t>(random.Between(0, random.OneIn(3) ? 1000 : 50))};
    }
    const auto total = static_cast<uint64_t>(random.Between(0, random.OneIn(2) ? 3000 : 60));
    const std::vector<uint64_t> shares = FairShares(total, claims);
    const std::vector<uint64_t> expected = OneByOne(total, claims);
    ASSERT_EQ(Sum(shares), Sum(expected));
    for (size_t i = 0; i < claims.size(); ++i) {
      ASSERT_GE(shares[i], claims[i].minimum);
      ASSERT_LE(shares[i], std::max(claims[i].minimum, claims[i].need));
      // Units are not divided, and there may be one too few for each of the others.
      const double tolerance =
          1 + claims[i].weight * static_cast<double>(claims.size()) /
                  std::min_element(claims.begin(), claims.end(), [](auto& a, auto& b) {
                    return a.weight < b.weight;
                  })->weight;
      ASSERT_NEAR(static_cast<double>(shares[i]), static_cast<double>(expected[i]), tolerance);
    }
  }
}

// FairSharesWithRoom also divides the rest that no claim needs.
TEST(FairSharesWithRoom, DividesTheSurplusByWeight) {
  const std::vector<FairClaim> claims{{1, 1, 2}, {3, 1, 0}};
  EXPECT_EQ(FairSharesWithRoom(3, claims), (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(FairSharesWithRoom(7, claims), (std::vector<uint64_t>{2 + 1, 1 + 3}));
  EXPECT_EQ(FairSharesWithRoom(1, claims), (std::vector<uint64_t>{1, 1})) << "the minima";
}

TEST(FairSharesWithRoom, GrantsTheWholeTotal) {
  Random random(11);
  for (int round = 0; round < testing::Effort(500); ++round) {
    std::vector<FairClaim> claims(static_cast<size_t>(random.Between(1, 9)));
    uint64_t minima = 0;
    for (FairClaim& claim : claims) {
      claim = {.weight = 0.5 * random.Between(1, 9),
               .minimum = static_cast<uint64_t>(random.Between(0, 5)),
               .need = static_cast<uint64_t>(random.Between(0, 50))};
      minima += claim.minimum;
    }
    const auto total = static_cast<uint64_t>(random.Between(0, 500));
    const std::vector<uint64_t> shares = FairSharesWithRoom(total, claims);
    EXPECT_EQ(Sum(shares), std::max(total, minima));
    const std::vector<uint64_t> needed = FairShares(total, claims);
    for (size_t i = 0; i < claims.size(); ++i) EXPECT_GE(shares[i], needed[i]);
  }
}

}  // namespace
}  // namespace stoker
