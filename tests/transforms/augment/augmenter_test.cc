#include "transforms/augment/augmenter.h"
#include "transforms/plan/drawn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/geometry/border.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::ForEachTarget;

constexpr uint64_t kBudget = uint64_t{1} << 30;

constexpr Padding kPaddings[] = {Padding::kConstant, Padding::kEdge, Padding::kReflect,
                                 Padding::kSymmetric, Padding::kWrap};

enum class Content { kRandom, kZero, kFull, kOneValueEach, kSmooth };

std::vector<uint8_t> MakePixels(ImageSize size, Content content, unsigned seed) {
  std::mt19937 random(seed);
  const size_t plane = Tile{nullptr, size}.plane_bytes();
  std::vector<uint8_t> pixels(3 * plane, content == Content::kFull ? 255 : 0);
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (content == Content::kRandom) pixels[i] = static_cast<uint8_t>(random());
    if (content == Content::kOneValueEach) pixels[i] = static_cast<uint8_t>(90 + 70 * (i / plane));
    if (content == Content::kSmooth) pixels[i] = static_cast<uint8_t>(i * 7 / 5 + random() % 3);
  }
  return pixels;
}

std::vector<uint8_t> Applied(Augmenter& augmenter, const Step& step, ImageSize size,
                             const std::vector<uint8_t>& pixels) {
  EXPECT_TRUE(augmenter.Start(size).ok());
  std::ranges::copy(pixels, augmenter.tile().pixels);
  EXPECT_TRUE(augmenter.Apply(step).ok());
  const Tile& tile = augmenter.tile();
  return {tile.pixels, tile.pixels + 3 * tile.plane_bytes()};
}

void ExpectSameAsPlain(Augmenter& augmenter, const Step& step, ImageSize size, Content content) {
  SCOPED_TRACE(std::string(NameOf(step)) + " of " + std::to_string(size.width) + " x " +
               std::to_string(size.height) + " content " + std::to_string(int(content)));
  std::vector<uint8_t> pixels = MakePixels(size, content, 3);
  const std::vector<uint8_t> got = Applied(augmenter, step, size, pixels);
  ImageSize plain_size = size;
  ApplyStepPlain(step, plain_size, pixels);
  ASSERT_EQ(augmenter.tile().size, plain_size);
  ASSERT_EQ(got.size(), pixels.size());
  const auto differs = std::ranges::mismatch(got, pixels);
  ASSERT_EQ(differs.in1, got.end()) << "at " << differs.in1 - got.begin() << ": "
                                    << int(*differs.in1) << ", plain " << int(*differs.in2);
}

// Returns each kind of step with usual parameters and with those at the ends of their ranges.
std::vector<Step> Steps() {
  std::vector<Step> steps = {Grayscale{}, Invert{}, AutoContrast{}, Equalize{}};
  for (const float factor : {0.0F, 0.1F, 0.5F, 1.0F, 1.37F, 2.0F, 19.0F, 1e20F, 3e38F}) {
    steps.insert(steps.end(), {AdjustBrightness{factor}, AdjustContrast{factor},
                               AdjustSaturation{factor}, AdjustSharpness{factor}});
  }
  for (const float shift : {-0.5F, -0.3F, -1e-9F, 0.0F, 0.02F, 1.0F / 6, 0.5F}) {
    steps.push_back(AdjustHue{shift});
    for (const float factor : {0.0F, 0.3F, 1.0F, 1.4F, 3e38F}) {
      steps.insert(steps.end(), {AdjustHsv{shift, factor, 0.9F}, AdjustHsv{shift, 1.2F, factor}});
    }
  }
  std::array<uint8_t, 3> from{0, 1, 2};
  do {
    steps.push_back(PermuteChannels{from});
  } while (std::ranges::next_permutation(from).found);
  for (int bits = 0; bits <= 8; ++bits) steps.push_back(Posterize{bits});
  for (const float threshold : {-1.0F, 0.0F, 100.5F, 128.0F, 255.0F}) {
    steps.push_back(Solarize{threshold});
  }
  for (const ImageSize taps : {ImageSize{1, 1}, {3, 3}, {9, 5}, {23, 23}, {51, 1}, {1, 31}}) {
    for (const double sigma : {1e-300, 0.1, 2.0, 1e300}) {
      steps.push_back(Blur{taps, sigma, sigma * 1.5});
    }
  }
  return steps;
}

// Mixes of such steps as chains have.
std::vector<Step> MixSteps() {
  Mix mix{0.25F, {}};
  std::vector<Step> steps{Mix{}, mix};
  const Affine turned{{0.8, -0.6, 3.25, 0.6, 0.8, -7.5}, Interpolation::kBilinear, {1, 2, 3}, true};
  mix.chains.push_back({0.1F, {{Equalize{}}, {turned}, {AdjustSharpness{2}}}});
  mix.chains.push_back({0.3F, {}});
  mix.chains.push_back({0.35F, {{Invert{}}, {turned}}});
  steps.push_back(mix);
  mix.weight = 0x1p-149F;
  mix.chains.back().weight = 0.6F;
  steps.push_back(mix);
  return steps;
}

std::vector<Step> GeometrySteps() {
  std::vector<Step> steps;
  for (const Interpolation how : {Interpolation::kNearest, Interpolation::kBilinear}) {
    const Fill fill{7, 130, 255};
    steps.insert(
        steps.end(),
        {Affine{{1, 0, 0, 0, 1, 0}, how, fill},
         Affine{{0.8, -0.6, 3.25, 0.6, 0.8, -7.5}, how, fill},
         Affine{{0, 1, 0, -1, 0, 0}, how, fill}, Affine{{0.5, 0, 0.25, 0, 0.5, 0.25}, how, fill},
         Affine{{1, 0.3, 0, 0, 1, 0}, how, fill}, Affine{{1, 0, 1e6, 0, 1, 0}, how, fill},
         Affine{{0, 0, 0, 0, 0, 0}, how, fill},
         Affine{{1e300, -1e300, 0, 1e9, 1e9, -1e300}, how, fill},
         Affine{{1, 0, 0.5, 0, 1, -0.5}, how, fill}});
  }
  steps.push_back(
      Affine{{0.8, -0.6, 3.25, 0.6, 0.8, -7.5}, Interpolation::kBilinear, {7, 130, 255}, true});
  steps.push_back(Affine{{1, 0, 0.5, 0, 1, -0.5}, Interpolation::kBilinear, {7, 130, 255}, true});
  for (const auto& divisor : std::initializer_list<std::array<double, 2>>{
           {0.01, -0.02}, {2, 0}, {1, 1}, {-0.5, 0.25}, {1e300, -1e300}, {1e-300, 0}}) {
    for (const bool fade : {false, true}) {
      Affine projective{{0.8, -0.6, 0, 0.6, 0.8, 0}, Interpolation::kBilinear, {7, 130, 255}, fade};
      projective.divisor = divisor;
      steps.push_back(projective);
      projective.interpolation = Interpolation::kNearest;
      projective.matrix = {0, 0, 0, 1e300, -1e300, 0};
      steps.push_back(projective);
    }
  }
  for (const ElasticNoise& noise :
       std::initializer_list<ElasticNoise>{{5, 50, 2}, {6, 1e5, 0}, {7, 0, 1}, {8, 900, 20}}) {
    for (const Interpolation how : {Interpolation::kNearest, Interpolation::kBilinear}) {
      for (const bool fade : {false, true}) {
        Affine elastic{{1, 0, 0, 0, 1, 0}, how, {7, 130, 255}, fade};
        elastic.noise = noise;
        steps.push_back(elastic);
      }
    }
  }
  for (const Padding padding : kPaddings) {
    for (const auto& matrix :
         std::initializer_list<std::array<double, 6>>{{0.8, -0.6, 3.25, 0.6, 0.8, -7.5},
                                                      {2, 0, 500.25, 0, -3, 1000},
                                                      {1e300, -1e300, 0, 1e9, 1e9, -1e300}}) {
      steps.push_back(Affine{matrix, Interpolation::kBilinear, {1, 2, 3}, true, padding});
      steps.push_back(Affine{matrix, Interpolation::kNearest, {1, 2, 3}, true, padding});
    }
  }
  for (const Padding padding :
       {Padding::kConstant, Padding::kEdge, Padding::kReflect, Padding::kSymmetric}) {
    const Fill fill{1, 2, 3};
    for (const Rect& window : {Rect{0, 0, 1, 1},
                               {-4, -4, 40, 40},
                               {3, 2, 17, 19},
                               {-100, 5, 301, 7},
                               {1000, -2000, 5, 70},
                               {-1, 3, 224, 224}}) {
      steps.push_back(Reframe{window, padding, fill});
    }
  }
  for (const int kind : {0, 1, 2, 3}) steps.push_back(Mirror{kind % 2 == 1, kind / 2 == 1});
  for (const ImageSize size : {ImageSize{1, 1}, {40, 9}, {300, 2}}) {
    Affine sized{{0.8, -0.6, 3.25, 0.6, 0.8, -7.5}, Interpolation::kBilinear, {7, 130, 255}};
    sized.size = size;
    steps.push_back(sized);
    sized.padding = Padding::kReflect;
    steps.push_back(sized);
  }
  static const std::vector<uint8_t> mask_of_all_sizes = [] {  // of any of the sizes
    std::vector<uint8_t> inside(size_t{1} << 16);
    std::mt19937 random(2);
    for (uint8_t& pixel : inside) pixel = random() % 3 == 0 ? 1 : 0;
    return inside;
  }();
  static const std::vector<uint8_t> other = [] {
    std::vector<uint8_t> pixels(3 * mask_of_all_sizes.size());
    std::mt19937 random(3);
    for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random());
    return pixels;
  }();
  steps.push_back(Paste{mask_of_all_sizes.data()});
  steps.push_back(Paste{mask_of_all_sizes.data(), other.data()});
  steps.push_back(Paste{});
  return steps;
}

std::vector<ImageSize> Sizes() {
  std::vector<ImageSize> sizes = {{1, 1},  {1, 7},  {7, 1},   {2, 2},   {3, 3},
                                  {5, 31}, {64, 3}, {65, 33}, {129, 17}};
  if (Effort(10) == 10) sizes.insert(sizes.end(), {{16, 16}, {31, 65}, {127, 64}, {224, 224}});
  return sizes;
}

// If Effort is less than full: a fifth of the steps, and one kind of those that are not random,
// another one for the next size.
TEST(Augmenter, EveryStepMatchesTheReference) {
  std::vector<Step> steps = Steps();
  const std::vector<Step> geometry = GeometrySteps();
  steps.insert(steps.end(), geometry.begin(), geometry.end());
  const std::vector<Step> mixes = MixSteps();
  steps.insert(steps.end(), mixes.begin(), mixes.end());
  const auto stride = static_cast<size_t>(10 / Effort(10));
  size_t first = 0;  // where not every step is taken, others with the next instruction set
  ForEachTarget([&] {
    MemoryBudget budget(kBudget);
    Displacements displacements(budget);
    Augmenter augmenter(budget, &displacements);
    for (size_t i = first++ % stride; i < steps.size(); i += stride) {
      const Step& step = steps[i];
      for (const ImageSize size : Sizes()) {
        ExpectSameAsPlain(augmenter, step, size, Content::kRandom);
        if (size.width > 65) continue;
        for (int k = 0; k < Effort(4); ++k) {
          constexpr Content kContents[] = {Content::kZero, Content::kFull, Content::kOneValueEach,
                                           Content::kSmooth};
          const size_t turn = i / stride + static_cast<size_t>(size.width + k);
          ExpectSameAsPlain(augmenter, step, size, kContents[turn % 4]);
        }
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST(Augmenter, LongestSidesMatchTheReference) {
  MemoryBudget budget(kBudget);
  Displacements displacements(budget);
  Augmenter augmenter(budget, &displacements);
  std::vector<Step> steps = {
      AdjustContrast{0.4F}, AdjustSaturation{0.4F}, AdjustSharpness{0.4F}, AdjustHue{0.1F},
      Equalize{},           AutoContrast{},         Blur{{3, 3}, 1, 1},    Mirror{true, true}};
  const std::vector<Step> geometry = GeometrySteps();
  steps.insert(steps.end(), geometry.begin(), geometry.end());
  for (size_t i = 0; i < steps.size(); i += static_cast<size_t>(10 / Effort(10))) {
    for (const ImageSize size : {ImageSize{kMaxSidePixels, 1}, {1, kMaxSidePixels}}) {
      ExpectSameAsPlain(augmenter, steps[i], size, Content::kRandom);
    }
  }
}

// Half of the only column comes from outside.
TEST(Augmenter, AffineBlendsEdgesWithTheFill) {
  MemoryBudget budget(kBudget);
  Displacements displacements(budget);
  Augmenter augmenter(budget, &displacements);
  const std::vector<uint8_t> pixels = {100, 100, 200, 200, 0, 0};
  Affine half{{1, 0, 0.5, 0, 1, 0}, Interpolation::kBilinear, {0, 100, 200}};
  EXPECT_EQ(Applied(augmenter, half, {1, 2}, pixels),
            (std::vector<uint8_t>{50, 50, 150, 150, 100, 100}));
  half.fade = true;
  EXPECT_EQ(Applied(augmenter, half, {1, 2}, pixels),
            (std::vector<uint8_t>{25, 25, 100, 100, 100, 100}));
}

// A move by whole pixels is a crop of the padded image; one by a quarter more is three parts of
// that and one of the next.
TEST(Augmenter, AffineSamplesThePaddedImage) {
  MemoryBudget budget(kBudget);
  Displacements displacements(budget);
  Augmenter augmenter(budget, &displacements);
  for (const ImageSize size : {ImageSize{1, 1}, {2, 3}, {7, 5}, {31, 20}}) {
    const std::vector<uint8_t> pixels = MakePixels(size, Content::kRandom, 5);
    const auto crop = [&](int x, int y, Padding padding) {
      return Applied(augmenter, Reframe{{x, y, size.width, size.height}, padding, {1, 2, 3}}, size,
                     pixels);
    };
    for (int at = -100; at <= 100; ++at) {
      for (const Padding padding : kPaddings) {
        SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(size.width) + " x " +
                     std::to_string(size.height) + ", " +
                     std::to_string(static_cast<int>(padding)));
        const auto moved = [&](double x, double y, Interpolation how) {
          return Applied(augmenter, Affine{{1, 0, x, 0, 1, y}, how, {1, 2, 3}, false, padding},
                         size, pixels);
        };
        const int y = at / 3;
        const std::vector<uint8_t> wanted = crop(at, y, padding);
        ASSERT_EQ(moved(at, y, Interpolation::kNearest), wanted);
        ASSERT_EQ(moved(at, y, Interpolation::kBilinear), wanted);
        const auto with_a_quarter_of = [&](std::vector<uint8_t> next) {
          for (size_t i = 0; i < wanted.size(); ++i) {
            next[i] = static_cast<uint8_t>(std::lrint(0.75 * wanted[i] + 0.25 * next[i]));
          }
          return next;
        };
        ASSERT_EQ(moved(at, y + 0.25, Interpolation::kBilinear),
                  with_a_quarter_of(crop(at, y + 1, padding)));
        ASSERT_EQ(moved(at + 0.25, y, Interpolation::kBilinear),
                  with_a_quarter_of(crop(at + 1, y, padding)));
      }
    }
  }
}

// Samples one channel at a position that is not mapped into the image: indices are, by Padded.
struct PaddedImage {
  const Tile& tile;
  size_t channel;
  const Affine& affine;

  double At(double x, double y) const {
    const int64_t column = Padded(static_cast<int64_t>(x), tile.size.width, affine.padding);
    const int64_t row = Padded(static_cast<int64_t>(y), tile.size.height, affine.padding);
    if (column < 0 || row < 0) return affine.fill[channel];
    return tile.row(channel, static_cast<int>(row))[column];
  }
  double Sampled(double x, double y) const {
    if (affine.interpolation == Interpolation::kNearest) return At(std::rint(x), std::rint(y));
    const double left = std::floor(x), top = std::floor(y);
    return std::lerp(std::lerp(At(left, top), At(left + 1, top), x - left),
                     std::lerp(At(left, top + 1), At(left + 1, top + 1), x - left), y - top);
  }
};

// Rounding decides which of two pixels is nearest.
bool IsBetweenPixels(double at) { return std::abs(at - std::floor(at) - 0.5) < 1e-3; }

void ExpectSampled(Augmenter& augmenter, const Affine& affine, ImageSize size) {
  std::vector<uint8_t> pixels = MakePixels(size, Content::kRandom, 11);
  std::vector<uint8_t> got = Applied(augmenter, affine, size, pixels);
  const Tile from{pixels.data(), size}, to{got.data(), size};
  const auto& m = affine.matrix;
  const double middle_x = (size.width - 1) / 2.0, middle_y = (size.height - 1) / 2.0;
  const bool nearest = affine.interpolation == Interpolation::kNearest;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const double dx = x - middle_x, dy = y - middle_y;
      const double divisor = affine.divisor[0] * dx + affine.divisor[1] * dy + 1;
      if (std::abs(divisor) < 0.2) continue;  // what is near is far off, and badly rounded
      const double at_x = (m[0] * dx + m[1] * dy + m[2]) / divisor + middle_x;
      const double at_y = (m[3] * dx + m[4] * dy + m[5]) / divisor + middle_y;
      if (nearest && (IsBetweenPixels(at_x) || IsBetweenPixels(at_y))) continue;
      for (size_t c = 0; c < 3; ++c) {
        const double wanted = PaddedImage{from, c, affine}.Sampled(at_x, at_y);
        ASSERT_NEAR(to.row(c, y)[x], wanted, nearest ? 0 : 0.55)
            << c << ": " << x << ", " << y << " from " << at_x << ", " << at_y;
      }
    }
  }
}

TEST(Augmenter, AffineSamplesWherePositionsAreInBinary64) {
  MemoryBudget budget(kBudget);
  Displacements displacements(budget);
  Augmenter augmenter(budget, &displacements);
  std::mt19937 random(17);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int n = Effort(200); n > 0; --n) {
    const ImageSize size{1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 40)};
    const double angle = between(-7, 7), across = between(0.1, 4), down = between(0.1, 4);
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const std::array<double, 6> matrix{across * cosine, -across * sine, between(-90, 90),
                                       down * sine,     down * cosine,  between(-90, 90)};
    for (const Padding padding : kPaddings) {
      for (const Interpolation how : {Interpolation::kNearest, Interpolation::kBilinear}) {
        SCOPED_TRACE(std::to_string(n) + ": " + std::to_string(size.width) + " x " +
                     std::to_string(size.height) + ", " +
                     std::to_string(static_cast<int>(padding)));
        Affine affine{matrix, how, {1, 130, 255}, false, padding};
        ExpectSampled(augmenter, affine, size);
        if (padding == Padding::kConstant) {
          affine.divisor = {between(-0.05, 0.05), between(-0.05, 0.05)};
          ExpectSampled(augmenter, affine, size);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Augmenter, StepsCompose) {
  const ImageSize size{61, 47};
  const std::vector<Step> steps = {Mirror{true, false},
                                   AdjustContrast{1.4F},
                                   Reframe{{-3, 2, 80, 33}, Padding::kReflect},
                                   Blur{{5, 7}, 1, 2},
                                   Affine{{0.9, 0.1, 2, -0.1, 0.9, 0}, Interpolation::kBilinear},
                                   AdjustSharpness{2},
                                   Equalize{}};
  MemoryBudget budget(kBudget);
  Displacements displacements(budget);
  Augmenter augmenter(budget, &displacements);
  std::vector<uint8_t> plain = MakePixels(size, Content::kSmooth, 1);
  ASSERT_TRUE(augmenter.Start(size).ok());
  std::ranges::copy(plain, augmenter.tile().pixels);
  ImageSize plain_size = size;
  for (const Step& step : steps) {
    ASSERT_TRUE(augmenter.Apply(step).ok());
    ApplyStepPlain(step, plain_size, plain);
  }
  const Tile& tile = augmenter.tile();
  ASSERT_EQ(tile.size, (ImageSize{80, 33}));
  EXPECT_TRUE(std::ranges::equal(plain, std::span(tile.pixels, 3 * tile.plane_bytes())));
}

TEST(Augmenter, AllocatesWhatStepsNeedAndNoMore) {
  MemoryBudget budget(kBudget);
  {
    Displacements displacements(budget);
    Augmenter augmenter(budget, &displacements);
    EXPECT_EQ(budget.used(), 0);
    ASSERT_TRUE(augmenter.Start({224, 224}).ok());
    const uint64_t one = budget.used();
    EXPECT_LT(one, 3 * 224 * 224 + 4096 * 2);
    ASSERT_TRUE(augmenter.Apply(Invert{}).ok());
    EXPECT_EQ(budget.used(), one);  // in place
    ASSERT_TRUE(augmenter.Apply(Mirror{true, false}).ok());
    EXPECT_EQ(budget.used(), 2 * one);
    ASSERT_TRUE(augmenter.Apply(Blur{{23, 23}, 2, 2}).ok());
    const uint64_t most = budget.used();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(augmenter.Start({224, 224}).ok());
      ASSERT_TRUE(augmenter.Apply(Blur{{23, 23}, 2, 2}).ok());
      ASSERT_TRUE(augmenter.Apply(Mirror{true, false}).ok());
    }
    EXPECT_EQ(budget.used(), most);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(Augmenter, ExceedingTheBudgetIsAnError) {
  constexpr ImageSize kSize{224, 224};
  for (const Step& step :
       {Step(Mirror{}), Step(Reframe{{0, 0, 65535, 65535}}), Step(Blur{{65535, 65535}, 1e9, 1e9}),
        Step(Affine{}), Step(AdjustSharpness{2})}) {
    MemoryBudget budget(160 << 10);  // for one tile
    Displacements displacements(budget);
    Augmenter augmenter(budget, &displacements);
    ASSERT_TRUE(augmenter.Start(kSize).ok());
    const std::vector<uint8_t> pixels = MakePixels(kSize, Content::kRandom, 1);
    std::ranges::copy(pixels, augmenter.tile().pixels);
    const Status status = augmenter.Apply(step);
    ASSERT_FALSE(status.ok()) << NameOf(step);
    EXPECT_EQ(status.error().code, Code::kResourceExhausted);
    const Tile& tile = augmenter.tile();  // untouched
    EXPECT_EQ(tile.size, kSize);
    EXPECT_TRUE(std::ranges::equal(pixels, std::span(tile.pixels, 3 * tile.plane_bytes())));
  }
  MemoryBudget budget(1 << 10);
  EXPECT_EQ(Augmenter(budget).Start(kSize).error().code, Code::kResourceExhausted);
  EXPECT_EQ(AffineScratchBytes({65535, 65535}).error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace stoker
