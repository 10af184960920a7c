#include "core/numbers/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace stoker {
namespace {

// Random123's known answers for philox4x32-10 (its file kat_vectors).
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, DependsOnEveryPartOfItsKeyAndOnNothingElse) {
  const DrawKey key{1, 2, 3};
  const double value = RandomStream(key, 0).Uniform();
  EXPECT_EQ(RandomStream(key, 0).Uniform(), value);
  EXPECT_NE(RandomStream(key, 1).Uniform(), value);
  EXPECT_NE(RandomStream(key, 0, 1).Uniform(), value);
  EXPECT_NE(RandomStream({9, 2, 3}, 0).Uniform(), value);
  EXPECT_NE(RandomStream({1, 9, 3}, 0).Uniform(), value);
  EXPECT_NE(RandomStream({1, 2, 9}, 0).Uniform(), value);
  EXPECT_NE(RandomStream({1, 2, 3, 1}, 0).Uniform(), value);
}

// The most indices, kinds and draws that a stream may have: none meets another's.
TEST(RandomStream, KindsAndIndicesShareNoNumber) {
  constexpr uint32_t kDraws = 1 << 12;
  std::vector<uint64_t> all;
  for (const uint32_t index : {0u, 1u, 255u}) {
    for (const uint32_t kind : {0u, 1u, 31u}) {
      RandomStream random({1, 2, 3, 63}, index, kind);
      for (uint32_t i = 0; i < kDraws; ++i) all.push_back(random.Bits());
    }
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(RandomStream, BelowIsUniform) {
  constexpr int kBins = 10, kDraws = 100000;
  int counts[kBins] = {};
  RandomStream random({7, 0, 0}, 0);
  for (int i = 0; i < kDraws; ++i) ++counts[random.Below(kBins)];
  double chi2 = 0;
  for (int c : counts) chi2 += std::pow(c - kDraws / kBins, 2) / (kDraws / kBins);
  EXPECT_LT(chi2, 33.7);  // 9 degrees of freedom, p = 0.0001
}

}  // namespace
}  // namespace stoker
