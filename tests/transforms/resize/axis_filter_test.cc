#include "transforms/resize/axis_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

namespace stoker {
namespace {

// Pillow's definition in doubles: the weight of every sample of the box for one output.
std::vector<double> Triangle(int in, int out, int output, bool antialias) {
  const double scale = static_cast<double>(in) / out;
  const double support = antialias ? std::max(scale, 1.0) : 1.0;
  const double centre = (output + 0.5) * scale;
  std::vector<double> weights;
  double sum = 0;
  for (int x = 0; x < in; ++x) {
    weights.push_back(std::max(0.0, 1.0 - std::abs(x + 0.5 - centre) / support));
    sum += weights.back();
  }
  for (double& w : weights) w /= sum;
  return weights;
}

void ExpectTriangle(const AxisSpec& spec) {
  SCOPED_TRACE(testing::Message() << spec.in << " → " << spec.out << " [" << spec.first_out << ", +"
                                  << spec.count << ") clip " << spec.clip_begin << "…"
                                  << spec.clip_end << " antialias " << spec.antialias);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget);
  ASSERT_TRUE(filter.Compute(spec).ok());
  ASSERT_LT(filter.begin(), filter.end());
  const AxisTaps& taps = filter.taps();
  const int used = filter.end() - filter.begin();
  int before = 0;
  for (int i = 0; i < spec.count; ++i) {
    const int start = taps.starts[i];
    ASSERT_GE(start, before);
    before = start;
    ASSERT_LE(start + 2 * taps.pairs, std::max(used, used + used % 2));
    std::vector<double> wanted = Triangle(spec.in, spec.out, spec.first_out + i, spec.antialias);
    int sum = 0;
    for (int t = 0; t < 2 * taps.pairs; ++t) {
      const int weight = taps.weights[i * 2 * taps.pairs + t], x = filter.begin() + start + t;
      sum += weight;
      ASSERT_GE(weight, 0);
      if (weight == 0) continue;
      ASSERT_TRUE(x >= spec.clip_begin && x < spec.clip_end && x < spec.in);
      ASSERT_NEAR(std::ldexp(wanted[static_cast<size_t>(x)], taps.shift), weight, 1.001);
      wanted[static_cast<size_t>(x)] = 0;
    }
    double left_out = 0;  // weights that are not there must be nearly zero, or of no sample
    for (int x = spec.clip_begin; x < std::min(spec.in, spec.clip_end); ++x) {
      if (x >= 0) left_out = std::max(left_out, wanted[static_cast<size_t>(x)]);
    }
    ASSERT_LE(std::ldexp(left_out, taps.shift), 1.001);
    if (spec.clip_begin <= 0 && spec.clip_end >= spec.in) {
      ASSERT_EQ(sum, 1 << taps.shift);
    }
  }
}

TEST(AxisFilter, MatchesPillowsTriangle) {
  std::mt19937 random(1);
  for (int n = 0; n < 400; ++n) {
    const int in = 1 + static_cast<int>(random() % (n % 10 == 0 ? 5000 : 400));
    const int out = 1 + static_cast<int>(random() % 300);
    const int first = static_cast<int>(random() % static_cast<unsigned>(out));
    const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(out - first));
    ExpectTriangle({in, out, first, count, 0, in, random() % 2 == 0});
  }
}

// The definition in integers, for every sample of the box.
std::vector<int> RoundedSteps(int64_t in, int64_t out, int64_t output, bool antialias) {
  const int64_t support = 2 * (antialias ? std::max(in, out) : out);
  std::vector<int64_t> running;
  int64_t sum = 0;
  for (int64_t x = 0; x < in; ++x) {
    sum += std::max<int64_t>(0, support - std::abs((2 * x + 1) * out - (2 * output + 1) * in));
    running.push_back(sum);
  }
  const double factor =
      std::ldexp(1.0, WeightShift(static_cast<int>(in), static_cast<int>(out), antialias)) /
      static_cast<double>(sum);
  std::vector<int> weights;
  int before = 0;
  for (int64_t value : running) {
    const int after = static_cast<int>(static_cast<double>(value) * factor + 0.5);
    weights.push_back(after - before);
    before = after;
  }
  return weights;
}

TEST(AxisFilter, WeightsMatchTheRoundedRunningSumExactly) {
  std::mt19937 random(2);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget);
  for (int n = 0; n < 300; ++n) {
    const int out = 1 + static_cast<int>(random() % 120);
    const int in = 1 + static_cast<int>(random() % static_cast<unsigned>(n % 10 == 0 ? 3000 : 500));
    AxisSpec spec{in, out, 0, out, 0, in, random() % 4 != 0};
    if (random() % 3 == 0) {  // samples that do not exist
      spec.clip_begin = static_cast<int>(random() % static_cast<unsigned>(in));
      spec.clip_end = spec.clip_begin + 1 + static_cast<int>(random() % static_cast<unsigned>(in));
    }
    ASSERT_TRUE(filter.Compute(spec).ok());
    if (filter.begin() == filter.end()) continue;
    const AxisTaps& taps = filter.taps();
    for (int i = 0; i < out; ++i) {
      std::vector<int> wanted = RoundedSteps(in, out, i, spec.antialias);
      for (int x = 0; x < in; ++x) {
        const int t = x - filter.begin() - taps.starts[i];
        const bool there =
            x >= spec.clip_begin && x < spec.clip_end && t >= 0 && t < 2 * taps.pairs;
        const int weight = there ? taps.weights[i * 2 * taps.pairs + t] : 0;
        const bool exists = x >= spec.clip_begin && x < spec.clip_end;
        ASSERT_EQ(weight, exists ? wanted[static_cast<size_t>(x)] : 0)
            << in << " → " << out << " output " << i << " sample " << x;
      }
    }
  }
}

TEST(AxisFilter, IgnoresSamplesOutsideTheImage) {
  for (int begin : {-5, 0, 3, 60}) {
    for (int end : {61, 90, 100, 130}) {
      ExpectTriangle({100, 40, 0, 40, begin, end, true});
      ExpectTriangle({100, 7, 0, 7, begin, end, true});
      ExpectTriangle({100, 260, 100, 160, begin, end, false});
    }
  }
}

TEST(AxisFilter, IdentityHasOneTap) {
  MemoryBudget budget(1 << 20);
  AxisFilter filter(budget);
  ASSERT_TRUE(filter.Compute({50, 50, 10, 20, 0, 50, true}).ok());
  EXPECT_EQ(filter.begin(), 10);
  EXPECT_EQ(filter.end(), 30);
  for (int i = 0; i < 20; ++i) {
    const int16_t* weights = filter.taps().weights + 2 * i;
    const int at = i - filter.taps().starts[i];
    EXPECT_EQ(weights[at], 1 << 14);
    EXPECT_EQ(weights[1 - at], 0);
  }
}

TEST(AxisFilter, IsEmptyWithoutVisibleSamples) {
  MemoryBudget budget(1 << 20);
  AxisFilter filter(budget);
  ASSERT_TRUE(filter.Compute({100, 10, 0, 3, 70, 100, true}).ok());
  EXPECT_EQ(filter.begin(), filter.end());
}

TEST(AxisFilter, StaysInsideTheBudget) {
  MemoryBudget budget(64 << 10);
  AxisFilter filter(budget);
  const Status status = filter.Compute({65535, 256, 0, 256, 0, 65535, true});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(filter.Compute({500, 256, 0, 256, 0, 500, true}).ok());
}

}  // namespace
}  // namespace stoker
