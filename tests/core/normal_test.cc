#include "core/numbers/normal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr auto kRoot = [](double x) { return std::sqrt(x); };

TEST(Log, MatchesStdLog) {
  for (double x = 1e-5; x < 1e5; x *= 1.00037) {
    const double wanted = std::log(x);
    EXPECT_NEAR(Log(x), wanted, 1e-15 * std::max(1.0, std::abs(wanted))) << x;
  }
  EXPECT_EQ(Log(1), 0.0);
}

// Returns the distribution function of the normal distribution, by the C library.
double NormalShare(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  EXPECT_EQ(NormalQuantile(0.5, kRoot), 0.0);
  for (double u = 0x1p-34; u < 0.5; u *= 1.01) {
    EXPECT_NEAR(NormalShare(NormalQuantile(u, kRoot)) / u, 1.0, 1e-13) << u;
  }
  for (double u = 0.01; u < 1; u += 0.001) {
    EXPECT_NEAR(NormalShare(NormalQuantile(u, kRoot)), u, 1e-15) << u;
  }
}

// Erasing and the kernel rely on this: they count the numbers in different ways.
TEST(NormalNumber, MatchesItsBlock) {
  for (const uint64_t key : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{4}, uint64_t{1} << 34}) {
      const PhiloxBlock block = NormalBlock(key, first / 4);
      for (uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(NormalNumber(key, first + i, kRoot), NormalOf(block[i], kRoot));
      }
    }
  }
}

}  // namespace
}  // namespace stoker
