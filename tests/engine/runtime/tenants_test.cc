#include "engine/runtime/tenants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Random;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

uint64_t Sum(const std::vector<uint64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), uint64_t{0});
}

// The twin: what is left is handed out one by one, to the one that has least for its weight.
std::vector<uint64_t> OneByOne(uint64_t total, const std::vector<FairClaim>& claims) {
  std::vector<uint64_t> shares;
  for (const FairClaim& claim : claims) shares.push_back(claim.least);
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

TEST(FairShares, EnoughForAllIsWhatTheyNeed) {
  const std::vector<FairClaim> claims{{1, 1, 3}, {4, 0, 2}, {1, 1, 0}};
  EXPECT_EQ(FairShares(100, claims), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_EQ(FairShares(kMost, claims), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(FairShares, WhoNeedsLittleGetsItAndTheRestIsDividedByWeight) {
  const std::vector<FairClaim> claims{{1, 1, 2}, {1, 1, 100}, {3, 1, 100}};
  EXPECT_EQ(FairShares(22, claims), (std::vector<uint64_t>{2, 5, 15}));
}

TEST(FairShares, WhatIsLeftOverGoesToTheFirst) {
  const std::vector<FairClaim> claims{{1, 1, 9}, {1, 1, 9}, {1, 1, 9}};
  EXPECT_EQ(FairShares(8, claims), (std::vector<uint64_t>{3, 3, 2}));
}

TEST(FairShares, TheLeastIsKeptWhateverThereIs) {
  const std::vector<FairClaim> claims{{1, 5, 9}, {1, 7, 9}};
  EXPECT_EQ(FairShares(3, claims), (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(FairShares(0, claims), (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(FairShares(13, claims), (std::vector<uint64_t>{6, 7}));
}

TEST(FairShares, NobodyIsThere) { EXPECT_TRUE(FairShares(10, {}).empty()); }

TEST(FairShares, HugeNumbersDoNotWrap) {
  const std::vector<FairClaim> claims{{1e-9, 1, kMost}, {1e9, 1, kMost}, {1, 1, kMost}};
  for (const uint64_t total : {uint64_t{3}, uint64_t{1} << 40, kMost / 2, kMost}) {
    uint64_t left = total;
    for (const uint64_t share : FairShares(total, claims)) {
      ASSERT_LE(share, left);
      left -= share;
    }
    EXPECT_LE(left, total >> 40) << total;  // doubles end there
  }
}

TEST(FairShares, AreThoseOfHandingOutOneByOne) {
  Random random(7);
  for (int round = 0; round < testing::Effort(2000); ++round) {
    std::vector<FairClaim> claims(static_cast<size_t>(random.Between(1, 9)));
    for (FairClaim& claim : claims) {
      claim = {.weight = random.OneIn(3) ? 0.25 * random.Between(1, 20) : 1.0,
               .least = static_cast<uint64_t>(random.Between(0, 5)),
               .need = static_cast<uint64_t>(random.Between(0, random.OneIn(3) ? 1000 : 50))};
    }
    const auto total = static_cast<uint64_t>(random.Between(0, random.OneIn(2) ? 3000 : 60));
    const std::vector<uint64_t> shares = FairShares(total, claims);
    const std::vector<uint64_t> twin = OneByOne(total, claims);
    ASSERT_EQ(Sum(shares), Sum(twin));
    for (size_t i = 0; i < claims.size(); ++i) {
      ASSERT_GE(shares[i], claims[i].least);
      ASSERT_LE(shares[i], std::max(claims[i].least, claims[i].need));
      // Units are not divided, and there may be one too few for each of the others.
      const double tolerance =
          1 + claims[i].weight * static_cast<double>(claims.size()) /
                  std::min_element(claims.begin(), claims.end(), [](auto& a, auto& b) {
                    return a.weight < b.weight;
                  })->weight;
      ASSERT_NEAR(static_cast<double>(shares[i]), static_cast<double>(twin[i]), tolerance);
    }
  }
}

TEST(Tenants, ShareByNeedAndWeightAndGiveBackWhatTheyDoNotNeed) {
  Tenants tenants(8, [] { return uint64_t{1000}; });
  const auto train = tenants.Join(1, {1, 100});
  EXPECT_EQ(train->workers(), 8) << "what nobody needs is there to grow into";
  EXPECT_EQ(train->batch_bytes(), 1000);
  train->Ask({8, 2000}, 1);
  EXPECT_EQ(train->workers(), 8);
  EXPECT_EQ(train->batch_bytes(), 1000);
  auto validation = tenants.Join(3, {1, 100});
  EXPECT_EQ(train->workers(), 7);
  EXPECT_EQ(train->batch_bytes(), 900);
  validation->Ask({8, 2000}, 1);
  EXPECT_EQ(train->workers(), 2);
  EXPECT_EQ(validation->workers(), 6);
  EXPECT_EQ(train->batch_bytes(), 250);
  EXPECT_EQ(validation->batch_bytes(), 750);
  validation->Ask({0, 0}, 1);  // an idle one keeps what it joined with
  EXPECT_EQ(validation->workers(), 1);
  EXPECT_EQ(train->workers(), 7);
  train->Ask({2, 200}, 1);  // 5 and 700 are left, and go by weight
  EXPECT_EQ(train->workers(), 2 + 1);
  EXPECT_EQ(validation->workers(), 1 + 4);
  EXPECT_EQ(train->batch_bytes(), 200 + 175);
  EXPECT_EQ(validation->batch_bytes(), 100 + 525);
  validation.reset();
  EXPECT_EQ(train->workers(), 8);
  EXPECT_EQ(train->batch_bytes(), 1000);
}

TEST(Tenants, AnIdleOneNeedsNoWorkersButKeepsItsMemory) {
  constexpr uint64_t kSecond = 1'000'000'000;
  Tenants tenants(8, [] { return uint64_t{1000}; });
  const auto train = tenants.Join(1, {1, 100});
  const auto validation = tenants.Join(1, {1, 100});
  for (uint64_t at = 1; at <= 3; ++at) {
    train->Ask({8, 900}, at * kSecond);
    validation->Ask({8, 900}, at * kSecond);
  }
  EXPECT_EQ(train->workers(), 4);
  train->Ask({8, 900}, 12 * kSecond);
  EXPECT_EQ(train->workers(), 4) << "one that asked each second may take its time";
  train->Ask({8, 900}, 14 * kSecond);
  EXPECT_EQ(train->workers(), 7);
  EXPECT_EQ(validation->workers(), 1);
  EXPECT_EQ(train->batch_bytes(), 500);
  EXPECT_EQ(validation->batch_bytes(), 500);
  validation->Ask({8, 900}, 15 * kSecond);
  EXPECT_EQ(train->workers(), 4);
}

TEST(Tenants, ComeAskAndGoOnManyThreads) {
  Tenants tenants(4, [] { return uint64_t{1 << 20}; });
  const auto stays = tenants.Join(2, {1, 1 << 10});
  stays->Ask({4, 1 << 20}, 1);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int round = 0; round < testing::Effort(200); ++round) {
        const auto one = tenants.Join(random.Between(1, 4), {1, 1 << 10});
        for (int asks = 0; asks < 4; ++asks) {
          one->Ask({static_cast<uint64_t>(random.Between(0, 9)),
                    static_cast<uint64_t>(random.Between(0, 1 << 21))},
                   1);
          EXPECT_GE(one->workers(), 1);
          EXPECT_GE(one->batch_bytes(), 1 << 10);
          EXPECT_GE(stays->workers(), 1);
          EXPECT_LE(stays->workers(), 4);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stays->workers(), 4);
  EXPECT_EQ(stays->batch_bytes(), 1 << 20);
}

}  // namespace
}  // namespace stoker
