#include "transforms/resize/axis_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Random;
constexpr double kPi = 3.14159265358979323846;

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
  SCOPED_TRACE(::testing::Message() << spec.in << " → " << spec.out << " [" << spec.first_out
                                    << ", +" << spec.count << ") clip " << spec.clip_begin << "…"
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
  AxisSpec spec{.in = static_cast<int>(in), .out = static_cast<int>(out)};
  spec.antialias = antialias;
  const double factor = std::ldexp(1.0, WeightShift(spec)) / static_cast<double>(sum);
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

// ---- The other filters.

double SincOf(double x) { return x == 0 ? 1 : std::sin(kPi * x) / (kPi * x); }

// Pillow's definition of a filter, by distance.
double Kernel(Interpolation interpolation, double x) {
  if (interpolation == Interpolation::kBox) return x > -0.5 && x <= 0.5 ? 1 : 0;
  x = std::abs(x);
  if (interpolation == Interpolation::kBilinear) return std::max(0.0, 1 - x);
  if (interpolation == Interpolation::kLanczos) return x < 3 ? SincOf(x) * SincOf(x / 3) : 0;
  if (x >= 2) return 0;
  return x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 : -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
}

// Returns an empty list if a sample lies on the border of a box, and may count to either side.
std::vector<double> KernelWeights(const AxisSpec& spec, int output) {
  const double scale = static_cast<double>(spec.in) / spec.out;
  const double width = spec.antialias ? std::max(scale, 1.0) : 1.0;
  std::vector<double> weights;
  double sum = 0;
  for (int x = 0; x < spec.in; ++x) {
    const double distance = (x + 0.5 - (output + 0.5) * scale) / width;
    const bool on_border = std::abs(std::abs(distance) - 0.5) < 1e-9;
    if (spec.interpolation == Interpolation::kBox && on_border) return {};
    weights.push_back(Kernel(spec.interpolation, distance));
    sum += weights.back();
  }
  for (double& w : weights) w /= sum;
  return weights;
}

// Returns the weights of all samples, including those that an output does not take.
std::vector<int> WeightsOf(const AxisFilter& filter, const AxisSpec& spec, int i) {
  const AxisTaps& taps = filter.taps();
  std::vector<int> weights(static_cast<size_t>(spec.in) + 2);
  for (int t = 0; t < 2 * taps.pairs; ++t) {
    const ptrdiff_t at = ptrdiff_t{i} * 2 * taps.pairs + t;
    const int high = taps.high != nullptr ? taps.high[at] : 0;
    weights.at(static_cast<size_t>(filter.begin() + taps.starts[i] + t)) =
        taps.weights[at] + high * (1 << kHighShift);
  }
  return weights;
}

class Kernels : public ::testing::TestWithParam<Interpolation> {};

TEST_P(Kernels, MatchPillows) {
  Random random(3);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget);
  for (int n = 0; n < 300; ++n) {
    AxisSpec spec{.in = random.Between(1, n % 10 == 0 ? 3000 : 300), .out = random.Between(1, 150)};
    spec.first_out = random.Between(0, spec.out - 1);
    spec.count = random.Between(1, spec.out - spec.first_out);
    spec.clip_end = spec.in;
    spec.antialias = !random.OneIn(4);
    spec.interpolation = GetParam();
    ASSERT_TRUE(filter.Compute(spec).ok());
    ASSERT_EQ(filter.taps().shift, kFineShift);
    ASSERT_EQ(MiddleBits(kFineShift), 0);
    const double most = (0x1p31 - (1 << (kFineShift - 1))) / 255 / (1 << kFineShift);  // of 32 bits
    for (int i = 0; i < spec.count; ++i) {
      const std::vector<double> wanted = KernelWeights(spec, spec.first_out + i);
      const std::vector<int> weights = WeightsOf(filter, spec, i);
      double size = 0;
      for (size_t x = 0; x < wanted.size(); ++x) {
        ASSERT_NEAR(weights[x], std::ldexp(wanted[x], kFineShift), 0.5 + 1e-6)
            << spec.in << " → " << spec.out << " output " << spec.first_out + i << " sample " << x;
      }
      for (const int weight : weights) size += std::abs(std::ldexp(weight, -kFineShift));
      ASSERT_LT(size, most);
    }
  }
}

TEST_P(Kernels, CountFromTheOtherEndIfReversed) {
  Random random(4);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget), other(budget);
  for (int n = 0; n < 300; ++n) {
    AxisSpec spec{.in = random.Between(1, 200), .out = random.Between(1, 100)};
    spec.first_out = random.Between(0, spec.out - 1);
    spec.count = random.Between(1, spec.out - spec.first_out);
    spec.clip_end = spec.in;
    spec.interpolation = GetParam();
    AxisSpec reversed = spec;
    reversed.reversed = true;
    reversed.first_out = spec.out - spec.first_out - spec.count;
    ASSERT_TRUE(filter.Compute(spec).ok());
    ASSERT_TRUE(other.Compute(reversed).ok());
    ASSERT_EQ(other.begin(), spec.in - filter.end());
    ASSERT_EQ(other.end(), spec.in - filter.begin());
    for (int i = 0; i < spec.count; ++i) {
      std::vector<int> weights = WeightsOf(filter, spec, i);
      weights.resize(static_cast<size_t>(spec.in));
      std::reverse(weights.begin(), weights.end());
      std::vector<int> theirs = WeightsOf(other, spec, spec.count - 1 - i);
      theirs.resize(static_cast<size_t>(spec.in));
      ASSERT_EQ(weights, theirs);
    }
  }
}

class Torchvision : public ::testing::TestWithParam<Interpolation> {};

// Weights are the exact ones, rounded to as many bits as let the largest fit; a part of the axis
// has the shift of the whole.
TEST_P(Torchvision, WeightsFitInto16Bits) {
  Random random(5);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget), whole(budget);
  int widest = 0;
  for (int n = 0; n < 300; ++n) {
    AxisSpec spec{.in = random.Between(1, n % 10 == 0 ? 3000 : 300), .out = random.Between(1, 150)};
    if (n == 0) spec = {.in = 65535, .out = 1};
    if (n % 10 == 1) spec.in = random.Between(1, 3);
    spec.count = spec.out;
    spec.clip_end = spec.in;
    spec.interpolation = GetParam();
    spec.resampler = ResampledAs::kTorchvision;
    spec.reversed = random.OneIn(2);
    ASSERT_TRUE(whole.Compute(spec).ok());
    spec.first_out = random.Between(0, spec.out - 1);
    spec.count = random.Between(1, spec.out - spec.first_out);
    ASSERT_TRUE(filter.Compute(spec).ok());
    const int shift = filter.taps().shift;
    ASSERT_EQ(shift, whole.taps().shift);
    ASSERT_EQ(filter.taps().high, nullptr);
    int largest = 0;
    for (int i = 0; i < spec.out; ++i) {
      int64_t size = 0;
      for (const int weight : WeightsOf(whole, spec, i)) {
        largest = std::max(largest, weight);
        size += std::abs(weight);
      }
      ASSERT_LT(255 * size + (1 << (shift - 1)), int64_t{1} << 31) << spec.in << " → " << spec.out;
    }
    ASSERT_TRUE(shift == kFineShift || largest >= 1 << 14) << spec.in << " → " << spec.out;
    for (int i = 0; i < spec.count; ++i) {
      const std::vector<double> wanted = KernelWeights(spec, spec.first_out + i);
      const std::vector<int> weights = WeightsOf(filter, spec, i);
      for (size_t x = 0; x < wanted.size(); ++x) {
        ASSERT_NEAR(weights[x], std::ldexp(wanted[x], shift), 0.5 + 1e-6)
            << spec.in << " → " << spec.out << " output " << spec.first_out + i << " sample " << x;
      }
    }
    widest = std::max(widest, shift);
  }
  EXPECT_EQ(widest, kFineShift);
}

INSTANTIATE_TEST_SUITE_P(AxisFilter, Torchvision,
                         ::testing::Values(Interpolation::kBilinear, Interpolation::kBicubic,
                                           Interpolation::kLanczos),
                         [](const auto& info) { return NameOf(info.param); });

INSTANTIATE_TEST_SUITE_P(AxisFilter, Kernels,
                         ::testing::Values(Interpolation::kBicubic, Interpolation::kLanczos,
                                           Interpolation::kBox),
                         [](const auto& info) { return NameOf(info.param); });

TEST(AxisFilter, NearestTakesOneSample) {
  MemoryBudget budget(1 << 20);
  AxisFilter filter(budget);
  AxisSpec spec{.in = 10, .out = 4, .count = 4, .clip_end = 10};
  spec.interpolation = Interpolation::kNearest;
  ASSERT_TRUE(filter.Compute(spec).ok());
  const int wanted[] = {1, 3, 6, 8};  // of 1.25, 3.75, 6.25, 8.75
  for (int i = 0; i < 4; ++i) {
    std::vector<int> weights(12);
    weights[static_cast<size_t>(wanted[i])] = 1 << filter.taps().shift;
    EXPECT_EQ(WeightsOf(filter, spec, i), weights);
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
  AxisSpec wide{.in = 9000, .out = 256, .count = 256, .clip_end = 9000};
  EXPECT_TRUE(filter.Compute(wide).ok());  // 72 taps
  wide.interpolation = Interpolation::kLanczos;
  EXPECT_FALSE(filter.Compute(wide).ok());  // 211 taps
}

}  // namespace
}  // namespace stoker
