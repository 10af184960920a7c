#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/mix/draw_mix.h"

namespace stoker {
namespace {

// The distribution function of Beta(a, a): for x ≤ ½ by the series
// x^a (1 − x)^a / (a B(a, a)) · Σ (2a)_k / (a + 1)_k · x^k, all of whose terms are positive.
double BetaBelow(double a, double x) {
  if (x <= 0) return 0;
  if (x > 0.5) return 1 - BetaBelow(a, 1 - x);
  const double log_b = 2 * std::lgamma(a) - std::lgamma(2 * a);
  double term = 1, sum = 0;
  for (int k = 0; term > 1e-17 * sum; ++k) {
    sum += term;
    term *= (2 * a + k) / (a + 1 + k) * x;
  }
  return sum * std::exp(a * (std::log(x) + std::log1p(-x)) - log_b) / a;
}

// Returns the largest distance between the samples' distribution function and Beta(a, a)'s. Values
// next to 1 are left out, because doubles are too far apart there for a small a; next to 0 they are
// not.
double Distance(const std::vector<double>& sorted, double a) {
  const auto n = static_cast<double>(sorted.size());
  double distance = 0;
  for (size_t i = 0; i < sorted.size() && sorted[i] < 1 - 1e-9; ++i) {
    const double below = BetaBelow(a, sorted[i]);
    distance = std::max({distance, std::fabs(below - static_cast<double>(i) / n),
                         std::fabs(below - static_cast<double>(i + 1) / n)});
  }
  return distance;
}

std::vector<double> Draws(double alpha, uint64_t count) {
  std::vector<double> draws;
  for (uint64_t position = 0; position < count; ++position) {
    draws.push_back(DrawMix({.choices = {MixUp{alpha}}}, {11, 3, position}, {1, 1}).lam);
  }
  std::sort(draws.begin(), draws.end());
  return draws;
}

// Kolmogorov and Smirnov's test of 100,000 draws. A right sampler exceeds 1.95 / √n = 0.0062 for
// one seed in a thousand (this seed is fixed). One whose distribution function is 0.0124 away
// anywhere is found with a probability above 0.998 (Dvoretzky, Kiefer, Wolfowitz, Massart); that
// the alphas given as `wrong` are so far away is checked, too.
TEST(DrawBeta, IsBetaDistributed) {
  constexpr uint64_t kDraws = 100'000;
  const double critical = 1.95 / std::sqrt(static_cast<double>(kDraws));
  struct Case {
    double alpha, wrong;
  };
  for (const Case& c : {Case{0.01, 0.012}, Case{0.2, 0.23}, Case{0.8, 0.92}, Case{1, 1.15},
                        Case{1.5, 1.75}, Case{5, 5.8}, Case{100, 120}}) {
    const std::vector<double> draws = Draws(c.alpha, kDraws);
    EXPECT_GE(draws.front(), 0);
    EXPECT_LE(draws.back(), 1);
    EXPECT_LT(Distance(draws, c.alpha), critical) << "alpha " << c.alpha;
    EXPECT_GT(Distance(draws, c.wrong), critical) << "the test is blind to alpha " << c.wrong;
  }
}

TEST(DrawBeta, BetaBelowMatchesClosedForms) {
  EXPECT_NEAR(BetaBelow(1, 0.3), 0.3, 1e-14);
  EXPECT_NEAR(BetaBelow(2, 0.3), 0.3 * 0.3 * (3 - 2 * 0.3), 1e-14);
  EXPECT_NEAR(BetaBelow(0.5, 0.9), 2 / M_PI * std::asin(std::sqrt(0.9)), 1e-14);
}

// Successive numbers do not depend on each other: the correlation of 100,000 pairs of neighbours
// has a standard deviation of 0.0032; one of 0.02 is found with a probability above 0.99.
TEST(DrawBeta, NeighboursAreIndependent) {
  constexpr uint64_t kDraws = 100'000;
  const auto draw = [](const DrawKey& key) {
    return DrawMix({.choices = {MixUp{1}}}, key, {1, 1}).lam - 0.5;
  };
  double positions = 0, epochs = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double lam = draw({1, 0, i});
    positions += lam * draw({1, 0, i + 1}) * 12 / kDraws;
    epochs += lam * draw({1, 1, i}) * 12 / kDraws;
  }
  EXPECT_LT(std::fabs(positions), 0.0128);
  EXPECT_LT(std::fabs(epochs), 0.0128);
}

TEST(DrawBeta, ExtremeAlphasStayInRange) {
  for (const double alpha : {kMinAlpha, 1e-3, kMaxAlpha}) {
    double sum = 0;
    for (uint64_t position = 0; position < 1000; ++position) {
      RandomStream random({4, 0, position}, 0);
      const double lam = DrawBeta(alpha, random);
      ASSERT_TRUE(lam >= 0 && lam <= 1) << lam;
      if (alpha > 1) {
        ASSERT_NEAR(lam, 0.5, 0.01);
      } else if (alpha == kMinAlpha) {
        ASSERT_LT(std::min(lam, 1 - lam), 1e-9);
      }
      sum += lam;
    }
    EXPECT_NEAR(sum, 500, 80);  // five standard deviations
  }
}

// The boxes are those of torchvision 0.29's v2.CutMix with its draws replaced by these numbers.
TEST(CutMix, BoxesMatchTorchvision) {
  struct Case {
    double lam;
    ImageSize image;
    int x, y;
    Rect box;
    double adjusted;
  };
  const Case cases[] = {
      {0.0, {224, 224}, 60, 151, {0, 39, 172, 185}, 0.36583227040816324},
      {0.0, {5, 7}, 4, 1, {2, 0, 3, 4}, 0.6571428571428571},
      {0.0, {1, 1}, 0, 0, {0, 0, 0, 0}, 1.0},
      {0.0, {200, 33}, 160, 4, {60, 0, 140, 20}, 0.5757575757575757},
      {1.0, {224, 224}, 155, 3, {155, 3, 0, 0}, 1.0},
      {1.0, {5, 7}, 3, 2, {3, 2, 0, 0}, 1.0},
      {1.0, {1, 1}, 0, 0, {0, 0, 0, 0}, 1.0},
      {1.0, {200, 33}, 183, 30, {183, 30, 0, 0}, 1.0},
      {0.3, {224, 224}, 138, 214, {45, 121, 179, 103}, 0.632553411989796},
      {0.3, {5, 7}, 4, 3, {2, 1, 3, 4}, 0.6571428571428571},
      {0.3, {1, 1}, 0, 0, {0, 0, 0, 0}, 1.0},
      {0.3, {200, 33}, 59, 9, {0, 0, 142, 22}, 0.5266666666666666},
      {0.9371, {224, 224}, 222, 133, {194, 105, 30, 56}, 0.9665178571428571},
      {0.9371, {5, 7}, 3, 5, {3, 5, 0, 0}, 1.0},
      {0.9371, {1, 1}, 0, 0, {0, 0, 0, 0}, 1.0},
      {0.9371, {200, 33}, 40, 2, {15, 0, 50, 6}, 0.9545454545454546},
      {0.62, {224, 224}, 77, 199, {8, 130, 138, 94}, 0.741470025510204},
      {0.62, {5, 7}, 0, 6, {0, 4, 1, 3}, 0.9142857142857143},
      {0.62, {1, 1}, 0, 0, {0, 0, 0, 0}, 1.0},
      {0.62, {200, 33}, 152, 24, {91, 14, 109, 19}, 0.6862121212121213},
  };
  for (const Case& c : cases) {
    const DrawnMix cut = CutAround(c.x, c.y, c.lam, c.image);
    EXPECT_TRUE(cut.cut);
    EXPECT_EQ(cut.box, c.box) << c.lam << " at " << c.x << ", " << c.y;
    EXPECT_EQ(cut.lam, c.adjusted);
  }
}

// Compares the mean of the share that a row keeps, over all centres and a fine grid of lam, with
// 20,000 draws: the standard deviation of their mean is below 0.0018, so an error of 0.016 is found
// with a probability above 0.9999.
TEST(CutMix, KeptShareHasTheRightMean) {
  constexpr int kSide = 32, kLams = 2000, kDraws = 20'000;
  double expected = 0;
  for (int l = 0; l < kLams; ++l) {
    const int half = static_cast<int>(0.5 * std::sqrt(1 - (l + 0.5) / kLams) * kSide);
    double side = 0;
    for (int x = 0; x < kSide; ++x) {
      side += static_cast<double>(std::min(x + half, kSide) - std::max(x - half, 0)) / kSide;
    }
    expected += (1 - side * side / kSide / kSide) / kLams;
  }
  double mean = 0;
  for (uint64_t position = 0; position < kDraws; ++position) {
    mean += DrawMix({.choices = {CutMix{1}}}, {2, 0, position}, {kSide, kSide}).lam / kDraws;
  }
  EXPECT_NEAR(mean, expected, 0.008);
}

// 20,000 draws: a share has a standard deviation below 0.0036.
TEST(DrawMix, ChoicesHaveTheirProbabilities) {
  const auto share_of_cuts = [](std::vector<double> p) {
    const BatchMix mix{.choices = {MixUp{1}, CutMix{1}}, .p = std::move(p)};
    double cuts = 0;
    for (uint64_t position = 0; position < 20'000; ++position) {
      cuts += DrawMix(mix, {5, 1, position}, {8, 8}).cut ? 1 : 0;
    }
    return cuts / 20'000;
  };
  EXPECT_NEAR(share_of_cuts({}), 0.5, 0.015);
  EXPECT_NEAR(share_of_cuts({0.5, 0.5}), 0.5, 0.015);
  EXPECT_NEAR(share_of_cuts({30, 10}), 0.25, 0.015);
  EXPECT_EQ(share_of_cuts({0, 3}), 1);
  EXPECT_EQ(share_of_cuts({1e300, 0}), 0);
}

TEST(DrawMix, ASingleChoiceIsAlwaysTaken) {
  for (uint64_t position = 0; position < 100; ++position) {
    const DrawKey key{6, 2, position};
    const DrawnMix alone = DrawMix({.choices = {CutMix{0.4}}}, key, {50, 40});
    EXPECT_EQ(alone, DrawMix({.choices = {CutMix{0.4}}, .p = {7}}, key, {50, 40}));
    EXPECT_EQ(alone, DrawMix({.choices = {MixUp{2}, CutMix{0.4}}, .p = {0, 1}}, key, {50, 40}));
  }
}

// Draws are the same on every machine, with every compiler and on every day, so that a saved run
// continues as it began.
TEST(DrawMix, DrawsNeverChange) {
  const BatchMix mix{.choices = {MixUp{0.2}, CutMix{1}}, .p = {0.5, 0.5}};
  EXPECT_EQ(DrawMix(mix, {1, 2, 0}, {224, 160}),
            (DrawnMix{false, 0x1.ffffffe9664a2p-1, {0, 0, 0, 0}}));
  EXPECT_EQ(DrawMix(mix, {1, 2, 64}, {224, 160}),
            (DrawnMix{true, 0x1.02f8af8af8af8p-1, {101, 10, 123, 144}}));
  EXPECT_EQ(DrawMix(mix, {1, 2, 128}, {224, 160}),
            (DrawnMix{false, 0x1.a1c9f5756e3e6p-1, {0, 0, 0, 0}}));
  EXPECT_EQ(DrawMix(mix, {1, 2, 1099511627776}, {224, 160}),
            (DrawnMix{false, 0x1.fa9cd5b43d1e1p-1, {0, 0, 0, 0}}));
}

TEST(CheckMix, ErrorsNameTransformAndOption) {
  const auto cause = [](const BatchMix& mix) {
    const Status status = CheckMix(mix);
    return status.ok() ? "" : status.error().cause;
  };
  EXPECT_EQ(cause({.choices = {MixUp{}}}), "");
  EXPECT_EQ(cause({.choices = {MixUp{0.2}, CutMix{}}, .p = {1, 0}, .num_classes = 7}), "");
  EXPECT_EQ(cause({.choices = {MixUp{0}}}), "MixUp.alpha is 0; it must be between 1e-06 and 1e+06");
  EXPECT_EQ(cause({.choices = {MixUp{}, CutMix{-1}}}),
            "CutMix.alpha is -1; it must be between 1e-06 and 1e+06");
  EXPECT_EQ(cause({.choices = {CutMix{NAN}}}),
            "CutMix.alpha is nan; it must be between 1e-06 and 1e+06");
  EXPECT_EQ(cause({}), "RandomChoice has 0 transforms; it must have between 1 and 16");
  EXPECT_EQ(cause({.choices = {MixUp{}, CutMix{}}, .p = {1}}),
            "RandomChoice.p has 1 element; it must have 2, one for each transform");
  EXPECT_EQ(cause({.choices = {MixUp{}, CutMix{}}, .p = {1, -2}}),
            "RandomChoice.p[1] is -2; it must be a finite number from 0 on");
  EXPECT_EQ(cause({.choices = {MixUp{}, CutMix{}}, .p = {INFINITY, 1}}),
            "RandomChoice.p[0] is inf; it must be a finite number from 0 on");
  EXPECT_EQ(cause({.choices = {MixUp{}, CutMix{}}, .p = {0, 0}}),
            "RandomChoice.p is 0 for every transform; one must be positive");
  EXPECT_EQ(cause({.choices = {CutMix{}}, .num_classes = -5}),
            "CutMix.num_classes is -5; it must be between 1 and 16777216, or 0 for as many as the "
            "source has");
}

}  // namespace
}  // namespace stoker
