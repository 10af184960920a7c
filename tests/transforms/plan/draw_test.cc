#include "transforms/plan/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/transforms/plan/geometry_of.h"
#include "transforms/augment/geometry/draw_affine.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using testing::GeometryOf;

TEST(Exp, MatchesStdExp) {
  for (double x = -700; x <= 700; x += 0.0917) {
    EXPECT_NEAR(Exp(x) / std::exp(x), 1.0, 1e-15) << x;
  }
  for (double x = -2; x <= 2; x += 0.000173) EXPECT_NEAR(Exp(x) / std::exp(x), 1.0, 1e-15) << x;
  EXPECT_EQ(Exp(0), 1.0);
}

TEST(Sin, MatchesStdSin) {
  for (double x = -100; x <= 100; x += 0.00173) EXPECT_NEAR(Sin(x), std::sin(x), 1e-15) << x;
  EXPECT_EQ(Sin(0), 0.0);
}

// The inverse, which moves boxes, is finite even if three of the corners are drawn on a line.
TEST(DrawAffine, PerspectivesHaveAnInverse) {
  int unmoved = 0;
  for (int width = 1; width <= 16; ++width) {
    for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(5000)); ++n) {
      RandomStream random({1, 0, n}, 0, 0);
      const ImageSize size{width, 1 + static_cast<int>(n % 16)};
      const Affine step = DrawAffine(RandomPerspective{1, 1}, size, random);
      for (const double number : MapOf(step, size)) {
        ASSERT_TRUE(std::isfinite(number)) << width << " × " << size.height << ", " << n;
      }
      unmoved += step.matrix == kNoMotion ? 1 : 0;
    }
  }
  EXPECT_GT(unmoved, 0);
}

TEST(RoundHalfEven, MatchesPython) {
  const std::pair<double, double> cases[] = {{0.5, 0},  {1.5, 2},   {2.5, 2},   {2.4999, 2},
                                             {-0.5, 0}, {-1.5, -2}, {-2.6, -3}, {7, 7}};
  for (auto [value, wanted] : cases) EXPECT_EQ(RoundHalfEven(value), wanted) << value;
}

TEST(Draw, ResizesWithTheFilterOfTheTransform) {
  constexpr ResampledAs kTorchvision = ResampledAs::kTorchvision;
  constexpr Interpolation kBicubic = Interpolation::kBicubic;
  RandomResizedCrop crop{20, 30};
  crop.interpolation = kBicubic;
  crop.resampler = kTorchvision;
  const std::vector<Transform> resizes = {
      Resize{.height = 9, .width = 8, .interpolation = kBicubic, .resampler = kTorchvision}, crop,
      RandomShortestSize{{30}, 90, kBicubic, true, kTorchvision},
      ScaleJitter{30, 30, {0.5, 1}, kBicubic, true, kTorchvision}};
  for (const Transform& resize : resizes) {
    SCOPED_TRACE(NameOf(resize));
    const Plan plan = Plan::Compile({RandomHorizontalFlip{1}, resize, PadTo{90, 90}}).value();
    const Geometry geometry = GeometryOf(plan, {1, 0, 0}, {60, 50});
    EXPECT_EQ(geometry.resampler, kTorchvision);
    EXPECT_EQ(geometry.interpolation, kBicubic);
    EXPECT_TRUE(geometry.antialias);
  }
}

TEST(SizeAfter, TruncatesTheLongerSide) {
  const Resize to_256{.size = 256};
  EXPECT_EQ(SizeAfter(to_256, {500, 375}), (ImageSize{341, 256}));
  EXPECT_EQ(SizeAfter(to_256, {375, 500}), (ImageSize{256, 341}));
  EXPECT_EQ(SizeAfter(to_256, {100, 100}), (ImageSize{256, 256}));
  EXPECT_EQ(SizeAfter({.size = 65535}, {65535, 1}), (ImageSize{kMaxDrawnSide, 65535}));
}

// Values of torchvision's _compute_resized_output_size.
TEST(DrawScaledSize, FitsTheTargetTimesAFactor) {
  const auto size = [](const ScaleJitter& jitter, ImageSize image, uint64_t n = 0) {
    RandomStream random({1, 0, n}, 0, 0);
    return DrawScaledSize(jitter, image, random);
  };
  EXPECT_EQ(size({1024, 1024, {1, 1}}, {640, 480}), (ImageSize{1024, 768}));
  EXPECT_EQ(size({100, 50, {1, 1}}, {100, 100}), (ImageSize{50, 50}));
  EXPECT_EQ(size({50, 100, {1, 1}}, {100, 100}), (ImageSize{50, 50}));
  EXPECT_EQ(size({200, 100, {2, 2}}, {100, 10}), (ImageSize{400, 40}));
  EXPECT_EQ(size({9, 9, {0.1, 0.1}}, {100, 1}), (ImageSize{1, 1}));
  EXPECT_EQ(size({65535, 65535, {100, 100}}, {65535, 65535}), (ImageSize{6553500, 6553500}));
  EXPECT_EQ(size({65535, 65535, {100, 100}}, {1, 1}), (ImageSize{6553500, 6553500}));
  std::set<int> widths;
  for (uint64_t n = 0; n < 2000; ++n) widths.insert(size({100, 900}, {50, 50}, n).width);
  EXPECT_EQ(*widths.begin(), 10);
  EXPECT_EQ(*widths.rbegin(), 199);
}

TEST(DrawShortestSize, IsOneOfTheSizesWithinTheLongestSide) {
  const auto sizes = [](const RandomShortestSize& resize, ImageSize image) {
    std::set<std::pair<int, int>> found;
    for (uint64_t n = 0; n < 100; ++n) {
      RandomStream random({1, 0, n}, 0, 0);
      const ImageSize size = DrawShortestSize(resize, image, random);
      found.insert({size.width, size.height});
    }
    return found;
  };
  using Sizes = std::set<std::pair<int, int>>;
  EXPECT_EQ(sizes({{800}}, {640, 480}), (Sizes{{1066, 800}}));
  EXPECT_EQ(sizes({{480, 512, 800}, 1000}, {480, 640}),
            (Sizes{{480, 640}, {512, 682}, {750, 1000}}));
  EXPECT_EQ(sizes({{800}, 1333}, {500, 333}), (Sizes{{1201, 800}}));
  EXPECT_EQ(sizes({{49}}, {147, 49}), (Sizes{{147, 49}}));
  EXPECT_EQ(sizes({{9}, 3}, {1, 65535}), (Sizes{{1, 3}}));
  EXPECT_EQ(sizes({{65535}}, {65535, 1}), (Sizes{{kMaxDrawnSide, 65535}}));
}

TEST(SizeAfter, HasALongestSide) {
  const Resize coco{.size = 800, .max_size = 1333};
  EXPECT_EQ(SizeAfter(coco, {640, 480}), (ImageSize{1066, 800}));
  EXPECT_EQ(SizeAfter(coco, {640, 360}), (ImageSize{1333, 749}));
  EXPECT_EQ(SizeAfter(coco, {360, 640}), (ImageSize{749, 1333}));
  EXPECT_EQ(SizeAfter({.max_size = 512}, {640, 427}), (ImageSize{512, 341}));
  EXPECT_EQ(SizeAfter({.max_size = 512}, {100, 50}), (ImageSize{512, 256}));
  EXPECT_EQ(SizeAfter({.size = 2, .max_size = 3}, {1, 65535}), (ImageSize{1, 3}));
  EXPECT_EQ(SizeAfter({.size = 30000, .max_size = 65535}, {65535, 1}), (ImageSize{65535, 1}));
}

// 256 transforms at the most pad the longest side.
TEST(SizeAfter, LeavesRoomForPadding) {
  std::vector<Transform> list{Resize{.size = 65535}};
  for (size_t i = 0; i < kMaxTransforms - 2; ++i) {
    list.emplace_back(Pad{.padding = {65535, 65535, 65535, 65535}});
  }
  list.emplace_back(CenterCrop{.height = 8, .width = 8});
  const Plan plan = Plan::Compile(list).value();
  DrawnSample drawn;
  ASSERT_TRUE(plan.Draw({}, {65535, 1}, drawn).ok());
  const Geometry& geometry = drawn.geometry;
  EXPECT_EQ(geometry.resized, (ImageSize{kMaxDrawnSide, 65535}));
  EXPECT_EQ(geometry.window, (Rect{kMaxDrawnSide / 2 - 4, 32764, 8, 8}));
}

// torchvision's center_crop, padding included, along one axis.
int TorchvisionOffset(int crop, int image) {
  const int padding = crop > image ? (crop - image) / 2 : 0;
  const int padded = crop > image ? crop : image;
  return static_cast<int>(std::nearbyint((padded - crop) / 2.0)) - padding;
}

TEST(CenterBox, MatchesTorchvision) {
  for (int crop = 1; crop < 12; ++crop) {
    for (int image = 1; image < 12; ++image) {
      const Rect box = CenterBox({crop, 3}, {image, 10});
      EXPECT_EQ(box, (Rect{TorchvisionOffset(crop, image), TorchvisionOffset(3, 10), crop, 3}));
    }
  }
}

// torchvision's get_params as written there, on another generator.
Rect Independent(const RandomResizedCrop& t, ImageSize image, std::mt19937_64& engine) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  };
  const auto integer = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  for (int i = 0; i < 10; ++i) {
    const double area = image.width * image.height * uniform(t.scale[0], t.scale[1]);
    const double ratio = std::exp(uniform(std::log(t.ratio[0]), std::log(t.ratio[1])));
    const int w = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
    if (0 < w && w <= image.width && 0 < h && h <= image.height) {
      const int y = integer(image.height - h + 1), x = integer(image.width - w + 1);
      return {x, y, w, h};
    }
  }
  const double in_ratio = static_cast<double>(image.width) / image.height;
  int w = image.width, h = image.height;
  if (in_ratio < t.ratio[0]) {
    h = static_cast<int>(std::nearbyint(w / t.ratio[0]));
  } else if (in_ratio > t.ratio[1]) {
    w = static_cast<int>(std::nearbyint(h * t.ratio[1]));
  }
  return {(image.width - w) / 2, (image.height - h) / 2, w, h};
}

// Returns chi-square of two samples of equal size over bins with edges at the quantiles of both.
double TwoSampleChi2(std::vector<double> a, std::vector<double> b, int bins) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  std::vector<double> edges;
  for (int i = 1; i < bins; ++i)
    edges.push_back(all[all.size() * static_cast<size_t>(i) / static_cast<size_t>(bins)]);
  std::vector<double> counts[2];
  for (int s = 0; s < 2; ++s) {
    counts[s].assign(static_cast<size_t>(bins), 0);
    for (double v : s == 0 ? a : b) {
      ++counts[s][static_cast<size_t>(std::upper_bound(edges.begin(), edges.end(), v) -
                                      edges.begin())];
    }
  }
  double chi2 = 0;
  for (size_t i = 0; i < static_cast<size_t>(bins); ++i) {
    const double sum = counts[0][i] + counts[1][i], difference = counts[0][i] - counts[1][i];
    if (sum > 0) chi2 += difference * difference / sum;
  }
  return chi2;
}

TEST(DrawResizedBox, HasTorchvisionsDistribution) {
  constexpr int kBins = 20;
  const auto samples = static_cast<uint64_t>(std::max(10'000, testing::Effort(40'000)));
  constexpr double kLimit = 50.8;  // 19 degrees of freedom, p = 0.0001
  const std::function<double(const Rect&, ImageSize)> measures[] = {
      [](const Rect& b, ImageSize s) {
        return 1.0 * b.width * b.height / (1.0 * s.width * s.height);
      },
      [](const Rect& b, ImageSize) { return std::log(1.0 * b.width / b.height); },
      [](const Rect& b, ImageSize) { return 1.0 * b.x; },
      [](const Rect& b, ImageSize) { return 1.0 * b.y; },
      [](const Rect& b, ImageSize s) { return (b.x + 0.5) / (s.width - b.width + 1); },
      [](const Rect& b, ImageSize s) { return (b.y + 0.5) / (s.height - b.height + 1); },
      [](const Rect& b, ImageSize s) { return 1.0 * b.x / s.width + 3.0 * b.width / s.width; },
  };
  RandomResizedCrop crop{224, 224};
  for (ImageSize image : {ImageSize{500, 375}, ImageSize{333, 500}, ImageSize{900, 150}}) {
    for (double lowest : {0.08, 0.5}) {
      crop.scale[0] = lowest;
      std::vector<Rect> ours, theirs;
      std::mt19937_64 engine(5);
      for (uint64_t n = 0; n < samples; ++n) {
        RandomStream random({11, 3, n}, 0);
        ours.push_back(DrawResizedBox(crop, image, random));
        theirs.push_back(Independent(crop, image, engine));
      }
      for (size_t m = 0; m < std::size(measures); ++m) {
        std::vector<double> a, b;
        for (const Rect& box : ours) a.push_back(measures[m](box, image));
        for (const Rect& box : theirs) b.push_back(measures[m](box, image));
        EXPECT_LT(TwoSampleChi2(a, b, kBins), kLimit)
            << "measure " << m << " of " << image.width << " × " << image.height << " from "
            << lowest;
      }
    }
  }
}

TEST(DrawResizedBox, FallsBackToTheCentre) {
  RandomResizedCrop crop{10, 10, {1, 1}, {3.0 / 4.0, 4.0 / 3.0}, true};
  RandomStream random({1, 1, 1}, 0);
  EXPECT_EQ(DrawResizedBox(crop, {1000, 100}, random), (Rect{433, 0, 133, 100}));
  EXPECT_EQ(DrawResizedBox(crop, {100, 1000}, random), (Rect{0, 433, 100, 133}));
  crop.ratio = {1e-4, 2e-4};
  const Rect box = DrawResizedBox(crop, {3, 3}, random);  // torchvision would ask for width 0
  EXPECT_EQ(box, (Rect{1, 0, 1, 3}));
}

TEST(DrawResizedBox, LiesInsideImagesOfAnySize) {
  for (uint64_t n = 0; n < 20000; ++n) {
    RandomStream random({2, 2, n}, 0);
    const ImageSize image{1 + static_cast<int>(random.Below(n % 2 ? 9 : 65535)),
                          1 + static_cast<int>(random.Below(n % 3 ? 9 : 65535))};
    const Rect box = DrawResizedBox({5, 5}, image, random);
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 &&
                box.x + box.width <= image.width && box.y + box.height <= image.height);
  }
}

Plan TrainPlan() {
  return Plan::Compile({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}}).value();
}

// Each entry, or function of entries, of what is drawn for an image of 200 × 100.
TEST(DrawAffine, IsUniformInItsRanges) {
  using Matrix = std::array<double, 6>;
  const auto expect = [](const char* what, const auto& transform, double low, double high,
                         double (*of)(const Matrix&)) {
    double least = 1e9, most = -1e9, sum = 0;
    constexpr int kDraws = 4000;
    for (uint64_t n = 0; n < kDraws; ++n) {
      RandomStream random(DrawKey{.seed = 7, .position = n}, 0, 9);
      const double value = of(DrawAffine(transform, {200, 100}, random).matrix);
      least = std::min(least, value);
      most = std::max(most, value);
      sum += value;
    }
    const double range = high - low, tolerance = 1e-9;
    EXPECT_GE(least, low - tolerance) << what;
    EXPECT_LE(most, high + tolerance) << what;
    EXPECT_LE(least, low + range / 100 + tolerance) << what;
    EXPECT_GE(most, high - range / 100 - tolerance) << what;
    EXPECT_NEAR(sum / kDraws, (low + high) / 2, range / 50 + tolerance) << what;
  };
  expect("rotation", RandomRotation{.degrees = {-20, 30}}, -20, 30,
         [](const Matrix& m) { return std::atan2(m[3], m[0]) * 180 / kPi; });
  expect("rotation about a corner", RandomRotation{{-90, -90}, {}, {}, 0.0, 0.0}, -50, -50,
         [](const Matrix& m) { return m[2]; });
  expect("affine", RandomAffine{.degrees = {-20, 30}}, -30, 20,
         [](const Matrix& m) { return std::atan2(m[3], m[0]) * 180 / kPi; });
  expect("scale", RandomAffine{.scale = {0.5, 2}}, 0.5, 2,
         [](const Matrix& m) { return 1 / m[0]; });
  expect("whole pixels", RandomAffine{.translate_x = 0.2, .translate_y = 0.3}, 0, 0,
         [](const Matrix& m) { return m[2] - std::round(m[2]) + m[5] - std::round(m[5]); });
  expect("pixels across", RandomAffine{.translate_x = 0.2}, -40, 40,
         [](const Matrix& m) { return m[2]; });
  expect("zoom of the height", RandomZoom{{-0.3, 0.2}, {{0, 0.5}}}, 0.7, 1.2,
         [](const Matrix& m) { return m[4]; });
  expect("zoom of the width", RandomZoom{{-0.3, 0.2}, {{0, 0.5}}}, 1, 1.5,
         [](const Matrix& m) { return m[0]; });
  expect("one zoom", RandomZoom{{-0.3, 0.2}}, 0, 0, [](const Matrix& m) { return m[0] - m[4]; });
  expect("down", RandomTranslation{{-0.1, 0.2}, {0, 0.3}}, -20, 10,
         [](const Matrix& m) { return m[5]; });
  expect("right", RandomTranslation{{-0.1, 0.2}, {0, 0.3}}, -60, 0,
         [](const Matrix& m) { return m[2]; });
  expect("shear", RandomShear{{0, 0.5}, {0.1, 0.1}}, -0.5, 0.5,
         [](const Matrix& m) { return m[1]; });
  expect("one sign of both", RandomShear{{0, 0.5}, {0.1, 0.1}}, 0, 0.5,
         [](const Matrix& m) { return m[1] * m[3] * 10; });
}

TEST(Draw, DependsOnTheKeyAlone) {
  const Plan plan = TrainPlan();
  const ImageSize image{500, 375};
  const Geometry geometry = GeometryOf(plan, {1, 2, 3}, image);
  EXPECT_EQ(GeometryOf(plan, {1, 2, 3}, image), geometry);
  EXPECT_NE(GeometryOf(plan, {9, 2, 3}, image), geometry);
  EXPECT_NE(GeometryOf(plan, {1, 9, 3}, image), geometry);
  EXPECT_NE(GeometryOf(plan, {1, 2, 9}, image), geometry);
}

// The boxes of 1,000 keys have the same hash on every machine, compiler and build.
TEST(Draw, IsTheSameEverywhere) {
  const Plan plan = TrainPlan();
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t n = 0; n < 1000; ++n) {
    const Geometry g = GeometryOf(plan, {42, n % 7, n}, {500 - static_cast<int>(n % 100), 375});
    for (int value : {g.box.x, g.box.y, g.box.width, g.box.height, g.mirror_columns ? 1 : 0}) {
      hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    }
  }
  EXPECT_EQ(hash, 6743338633912837554u);
}

// Every list without transforms of pixels draws what it drew in the first version, by its places.
TEST(Draw, IsByPlaceWithoutTransformsOfPixels) {
  const auto hash_of = [](std::vector<Transform> list) {
    const Plan plan = Plan::Compile(std::move(list)).value();
    uint64_t hash = 0xcbf29ce484222325;
    for (uint64_t n = 0; n < 100; ++n) {
      const DrawnSample drawn = testing::DrawnOf(plan, {7, n % 3, n, 2}, {400, 300});
      const Geometry& g = drawn.geometry;
      std::vector<int> values{g.box.x,    g.box.y,          g.window.x,
                              g.window.y, g.mirror_columns, g.mirror_rows};
      for (const Erasure& e : drawn.erasures) values.insert(values.end(), {e.box.x, e.box.y});
      for (int value : values) hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    }
    return hash;
  };
  const RandomHorizontalFlip flip;
  const RandomCrop crop{.height = 224, .width = 224};
  EXPECT_EQ(hash_of({Resize{.size = 256}, crop, flip, RandomErasing{}}), 11620378195101809118u);
  EXPECT_EQ(hash_of({RandomVerticalFlip{}, RandomResizedCrop{64, 64}, flip, flip}),
            12836408197859906032u);
}

// So the list of masks needs each Resize, CenterCrop and Pad that the list of images has.
TEST(Draw, OfGeometryCountsTransformsThatDrawNothing) {
  const auto flips_of = [](std::vector<Transform> list) {
    const Plan plan = Plan::Compile(std::move(list)).value();
    std::vector<bool> flips;
    for (uint64_t n = 0; n < 100; ++n) {
      flips.push_back(testing::DrawnOf(plan, {7, 0, n}, {400, 300}).geometry.mirror_columns);
    }
    return flips;
  };
  const RandomHorizontalFlip flip;
  const RandomCrop crop{.height = 224, .width = 224};
  EXPECT_EQ(flips_of({Resize{.size = 256}, crop, flip}), flips_of({Pad{}, crop, flip}));
  EXPECT_NE(flips_of({Resize{.size = 256}, crop, flip}), flips_of({crop, flip}));
  EXPECT_EQ(flips_of({crop, flip, CenterCrop{8, 8}}), flips_of({crop, flip}));
}

// The factors of brightness of 20 images.
std::vector<float> FactorsOf(std::vector<Transform> list) {
  list.insert(list.begin(), CenterCrop{40, 40});
  const Plan plan = Plan::Compile(std::move(list)).value();
  std::vector<float> factors;
  for (uint64_t n = 0; n < 20; ++n) {
    for (const DrawnStep& drawn : testing::DrawnOf(plan, {7, 0, n}, {50, 50}).steps) {
      const auto* step = std::get_if<AdjustBrightness>(&drawn.step);
      if (step != nullptr) factors.push_back(step->factor);
    }
  }
  return factors;
}

TEST(Draw, OfPixelsIsByKindAndCount) {
  const ColorJitter jitter{.brightness = {0.5, 1.5}};
  const RandAugment none{.num_ops = 0};
  const RandomHorizontalFlip flip;
  const std::vector<float> one = FactorsOf({jitter}), two = FactorsOf({jitter, jitter});
  ASSERT_EQ(one.size(), 20u);
  EXPECT_EQ(FactorsOf({flip, none, RandomGrayscale{0}, none, jitter, flip}), one);
  ASSERT_EQ(two.size(), 40u);
  for (size_t n = 0; n < one.size(); ++n) {
    EXPECT_EQ(two[2 * n], one[n]);
    EXPECT_NE(two[2 * n + 1], one[n]) << "the second of a kind has draws of its own";
  }
}

// Whether it is applied is drawn once for all of its transforms, and changes no other draw.
TEST(Draw, RandomApplyAppliesAllOrNone) {
  const ColorJitter jitter{.brightness = {0.5, 1.5}};
  const RandomApply half{{jitter, RandomSolarize{9, 1}}, 0.5};
  const Plan plan = Plan::Compile({CenterCrop{40, 40}, half, jitter}).value();
  const Plan flat = Plan::Compile({CenterCrop{40, 40}, jitter, jitter}).value();
  int applied = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    const std::vector<DrawnStep> steps = testing::DrawnOf(plan, {7, 0, n}, {50, 50}).steps;
    const std::vector<DrawnStep> wanted = testing::DrawnOf(flat, {7, 0, n}, {50, 50}).steps;
    ASSERT_TRUE(steps.size() == 1 || steps.size() == 3);
    const auto factor = [](const DrawnStep& drawn) {
      return std::get<AdjustBrightness>(drawn.step).factor;
    };
    EXPECT_EQ(factor(steps.back()), factor(wanted[1]));
    if (steps.size() == 1) continue;
    ++applied;
    EXPECT_EQ(factor(steps[0]), factor(wanted[0]));
    EXPECT_EQ(std::get<Solarize>(steps[1].step).threshold, 9);
    EXPECT_EQ(steps[1].transform, 1u);
  }
  EXPECT_NEAR(applied, 500, 4 * std::sqrt(250));
}

// A solarization tells by its threshold which transform it is.
std::vector<double> ThresholdsOf(const DrawnSample& drawn) {
  std::vector<double> thresholds;
  for (const DrawnStep& step : drawn.steps) {
    if (const auto* s = std::get_if<Solarize>(&step.step)) thresholds.push_back(s->threshold);
  }
  return thresholds;
}

std::vector<Transform> Solarizations(int count) {
  std::vector<Transform> list;
  for (int i = 0; i < count; ++i) list.emplace_back(RandomSolarize{1.0 * i, 1});
  return list;
}

TEST(Draw, RandomChoiceChoosesByWeight) {
  constexpr int kSamples = 20000;
  const auto counts_of = [](std::vector<double> p) {
    const Plan plan =
        Plan::Compile({CenterCrop{4, 4}, RandomChoice{Solarizations(4), std::move(p)}}).value();
    std::array<int, 4> counts{};
    for (uint64_t n = 0; n < kSamples; ++n) {
      const std::vector<double> chosen = ThresholdsOf(testing::DrawnOf(plan, {5, 0, n}, {9, 9}));
      EXPECT_EQ(chosen.size(), 1u);
      ++counts[static_cast<size_t>(chosen.at(0))];
    }
    return counts;
  };
  const auto expect_shares = [](const std::array<int, 4>& counts, std::array<double, 4> shares) {
    for (size_t i = 0; i < 4; ++i) {
      const double p = shares[i];
      EXPECT_NEAR(counts[i], p * kSamples, 4 * std::sqrt(p * (1 - p) * kSamples)) << i;
    }
  };
  expect_shares(counts_of({}), {0.25, 0.25, 0.25, 0.25});
  expect_shares(counts_of({1, 0, 5, 4}), {0.1, 0, 0.5, 0.4});
  EXPECT_EQ(counts_of({5e299, 0, 5e299, 4e299}), counts_of({5, 0, 5, 4}));
}

TEST(Draw, RandomOrderHasAllOrders) {
  constexpr int kSamples = 24000;
  const Plan plan = Plan::Compile({CenterCrop{4, 4}, RandomOrder{Solarizations(4)}}).value();
  std::map<std::vector<double>, int> counts;
  for (uint64_t n = 0; n < kSamples; ++n) {
    ++counts[ThresholdsOf(testing::DrawnOf(plan, {5, 0, n}, {9, 9}))];
  }
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, kSamples / 24, 4 * std::sqrt(kSamples / 24.0)) << order[0] << order[1];
  }
}

// In any tree, a transform draws what it draws at its position in the flat list. Neither the choice
// nor the order of the transforms that are applied changes that.
TEST(Draw, OfHeldTransformsIsByPlaceInTheTree) {
  const auto jitter = [](double least) { return ColorJitter{.brightness = {least, least + 0.5}}; };
  const RandomApply half{{jitter(1), jitter(2)}, 0.5};
  const RandomOrder order{{half, jitter(3), RandomChoice{{jitter(4), half}}, RandomOrder{}}};
  const Plan tree = Plan::Compile({CenterCrop{40, 40}, order, jitter(7)}).value();
  const Plan flat = Plan::Compile({CenterCrop{40, 40}, jitter(1), jitter(2), jitter(3), jitter(4),
                                   jitter(1), jitter(2), jitter(7)})
                        .value();
  const auto factors_of = [](const Plan& plan, uint64_t n) {
    std::vector<float> factors;
    for (const DrawnStep& drawn : testing::DrawnOf(plan, {7, 0, n}, {50, 50}).steps) {
      factors.push_back(std::get<AdjustBrightness>(drawn.step).factor);
    }
    return factors;
  };
  std::map<size_t, int> lengths;
  for (uint64_t n = 0; n < 2000; ++n) {
    const std::vector<float> wanted = factors_of(flat, n), made = factors_of(tree, n);
    ASSERT_EQ(wanted.size(), 7u);
    EXPECT_EQ(made.back(), wanted.back()) << "not of what came before";
    const std::set<float> all(wanted.begin(), wanted.end());
    for (const float factor : made) EXPECT_TRUE(all.contains(factor)) << factor;
    EXPECT_TRUE(std::ranges::count(made, wanted[2]) == 1) << "RandomOrder applies each once";
    EXPECT_EQ(std::ranges::count(made, wanted[0]), std::ranges::count(made, wanted[1]));
    ++lengths[made.size()];
  }
  // Two are always applied; RandomApply adds two or none, the choice two, one or none.
  EXPECT_EQ(lengths.size(), 5u);
  for (const auto& [length, count] : lengths) EXPECT_TRUE(length >= 2 && length <= 6) << count;
}

// So the list of masks needs each transform that holds flips, without those that change pixels.
TEST(Draw, OfTransformsThatHoldFlipsIsThatOfGeometry) {
  const auto flips_of = [](std::vector<Transform> list) {
    list.insert(list.begin(), CenterCrop{40, 40});
    const Plan plan = Plan::Compile(std::move(list)).value();
    std::vector<std::pair<bool, bool>> flips;
    for (uint64_t n = 0; n < 200; ++n) {
      const DrawnSample drawn = testing::DrawnOf(plan, {7, 0, n}, {50, 50});
      bool columns = drawn.geometry.mirror_columns, rows = drawn.geometry.mirror_rows;
      for (const DrawnStep& step : drawn.steps) {
        const auto* mirror = std::get_if<Mirror>(&step.step);
        if (mirror == nullptr) continue;
        columns ^= mirror->columns, rows ^= mirror->rows;
      }
      flips.emplace_back(columns, rows);
    }
    return flips;
  };
  const RandomHorizontalFlip flip;
  const RandomVerticalFlip vertical;
  const RandomSolarize pixels{9, 0.5};
  const RandomChoice either{{flip, vertical}};
  const RandomApply of_pixels{{pixels, RandomChoice{{pixels}}}};
  const auto masks = flips_of({RandomApply{{flip}}, either, RandomOrder{{either, vertical}}, flip});
  EXPECT_EQ(
      flips_of({of_pixels, RandomApply{{of_pixels, flip, pixels}}, pixels, RandomChoice{{pixels}},
                either, RandomOrder{{pixels, either, vertical}}, flip}),
      masks);
  EXPECT_NE(flips_of({RandomApply{{flip}}, either, flip}), masks);
}

TEST(Draw, OfTreesIsTheSameEverywhere) {
  const RandomChoice flips{{RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, {1, 2}};
  const Plan plan =
      Plan::Compile({CenterCrop{40, 40},
                     RandomOrder{{RandomApply{{flips, RandomSolarize{1, 0.5}}, 0.75},
                                  RandomSolarize{2, 1}, RandomChoice{Solarizations(5)}}},
                     flips, RandomHorizontalFlip{}})
          .value();
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](double value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3;
  };
  for (uint64_t n = 0; n < 1000; ++n) {
    const DrawnSample drawn = testing::DrawnOf(plan, {42, n % 7, n}, {50, 60});
    add(drawn.geometry.mirror_columns ? 1 : 0);
    add(drawn.geometry.mirror_rows ? 1 : 0);
    for (const DrawnStep& step : drawn.steps) {
      const auto* mirror = std::get_if<Mirror>(&step.step);
      add(mirror == nullptr ? 10 + std::get<Solarize>(step.step).threshold
                            : (mirror->columns ? 2 : 3));
    }
  }
  EXPECT_EQ(hash, 6555149962173277136u);
}

TEST(Draw, FlipsWithItsProbabilityAndIndependently) {
  constexpr int kSamples = 40000;
  const Plan plan = Plan::Compile({CenterCrop{4, 4}, RandomHorizontalFlip{0.3}}).value();
  int flips = 0, pairs = 0;
  bool before = false;
  for (uint64_t n = 0; n < kSamples; ++n) {
    const bool flip = GeometryOf(plan, {5, 0, n}, {10, 10}).mirror_columns;
    flips += flip;
    pairs += flip && before;
    before = flip;
  }
  EXPECT_NEAR(flips, 0.3 * kSamples, 4 * std::sqrt(0.3 * 0.7 * kSamples));
  EXPECT_NEAR(pairs, 0.09 * kSamples, 4 * std::sqrt(0.09 * kSamples));
}

TEST(Draw, FlipProbabilitiesOfZeroAndOneAreExact) {
  for (int n = 0; n < 100; ++n) {
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const auto flip = [&](std::vector<Transform> t) {
      return GeometryOf(Plan::Compile(std::move(t)).value(), key, {9, 9}).mirror_columns;
    };
    EXPECT_FALSE(flip({CenterCrop{4, 4}, RandomHorizontalFlip{0}}));
    EXPECT_TRUE(flip({CenterCrop{4, 4}, RandomHorizontalFlip{1}}));
    EXPECT_FALSE(flip({RandomHorizontalFlip{1}, CenterCrop{4, 4}, RandomHorizontalFlip{1}}));
  }
}

TEST(Draw, EvaluationResizesAndCropsTheCentre) {
  const Plan plan = Plan::Compile({Resize{256}, CenterCrop{224, 224}}).value();
  const Geometry g = GeometryOf(plan, {}, {500, 375});
  EXPECT_EQ(g.box, (Rect{0, 0, 500, 375}));
  EXPECT_EQ(g.resized, (ImageSize{341, 256}));
  EXPECT_EQ(g.window, (Rect{58, 16, 224, 224}));
  EXPECT_FALSE(g.mirror_columns);
}

// The whole image is resized, so that the part has its size.
TEST(Draw, AResizeAfterACropResizesAllOfTheImage) {
  const Resize first{.height = 300, .width = 400}, last{.height = 50, .width = 64};
  const Plan plan = Plan::Compile({first, CenterCrop{100, 100}, last}).value();
  const Geometry g = GeometryOf(plan, {}, {4000, 3000});
  EXPECT_EQ(g.box, (Rect{0, 0, 4000, 3000}));
  EXPECT_EQ(g.resized, (ImageSize{256, 150}));
  EXPECT_EQ(g.window, (Rect{96, 50, 64, 50}));

  const Pad pad{{100, 0, 0, 50}, {0, 0, 9}};
  const DrawnSample padded = testing::DrawnOf(Plan::Compile({pad, last}).value(), {}, {300, 150});
  EXPECT_EQ(padded.geometry.resized, (ImageSize{48, 38}));  // of 400 × 200 to 64 × 50
  ASSERT_EQ(padded.steps.size(), 1u);
  EXPECT_EQ(std::get<Reframe>(padded.steps[0].step).window, (Rect{-16, 0, 64, 50}));
  EXPECT_EQ(std::get<Reframe>(padded.steps[0].step).fill, pad.fill);
}

TEST(Draw, APartThatIsTooSmallToBeResizedIsAnErrorOfTheSample) {
  const Resize huge{.height = 65535, .width = 65535};
  const Plan plan = Plan::Compile({huge, CenterCrop{1, 1}, huge}).value();
  DrawnSample drawn;
  EXPECT_THAT(plan.Draw({}, {9, 9}, drawn).error().cause,
              ::testing::HasSubstr("an image of 1 × 1 pixels is too small to be resized to the "
                                   "65535 × 65535 of transforms[2], Resize"));
}

TEST(Draw, ASizeCropHasAllSizesAndPlaces) {
  const auto parts = [](const RandomSizeCrop& crop, ImageSize image) {
    const Plan plan = Plan::Compile({crop, PadTo{99, 99}}).value();
    std::set<std::array<int, 4>> found;
    for (uint64_t n = 0; n < 2000; ++n) {
      const Rect box = GeometryOf(plan, {1, 2, n}, image).box;
      EXPECT_TRUE(Contains({0, 0, image.width, image.height}, box));
      found.insert({box.x, box.y, box.width, box.height});
    }
    return found;
  };
  using Parts = std::set<std::array<int, 4>>;
  EXPECT_EQ(parts({5, 6}, {6, 5}), (Parts{{0, 0, 5, 5}, {1, 0, 5, 5}, {0, 0, 6, 5}}));
  EXPECT_EQ(parts({5, 6, true}, {7, 6}).size(), 6u + 2u);
  EXPECT_EQ(parts({5, 6}, {7, 6}).size(), 6u + 3u + 4u + 2u);
  EXPECT_EQ(parts({20, 30}, {4, 3}), (Parts{{0, 0, 4, 3}}));
  EXPECT_EQ(parts({20, 30, true}, {4, 3}), (Parts{{0, 0, 3, 3}, {1, 0, 3, 3}}));
}

// Crops and flips one after the other, on the numbers of the columns; -1 is padding.
std::vector<int> Columns(const std::vector<Transform>& transforms, int width) {
  std::vector<int> columns;
  for (int x = 0; x < width; ++x) columns.push_back(x);
  for (const Transform& t : transforms) {
    if (const auto* crop = std::get_if<CenterCrop>(&t)) {
      const int from = TorchvisionOffset(crop->width, static_cast<int>(columns.size()));
      std::vector<int> cut;
      for (int x = from; x < from + crop->width; ++x) {
        const bool inside = x >= 0 && x < static_cast<int>(columns.size());
        cut.push_back(inside ? columns[static_cast<size_t>(x)] : -1);
      }
      columns = cut;
    } else {
      std::reverse(columns.begin(), columns.end());  // flips of p = 1
    }
  }
  return columns;
}

TEST(Draw, CropsAndFlipsCompose) {
  const RandomHorizontalFlip flip{1};
  const std::vector<std::vector<Transform>> lists = {
      {CenterCrop{5, 6}},
      {flip, CenterCrop{5, 6}},
      {CenterCrop{5, 9}, flip, CenterCrop{5, 6}},
      {flip, CenterCrop{5, 9}, flip, CenterCrop{5, 6}, flip, CenterCrop{5, 3}},
  };
  for (const auto& list : lists) {
    for (int width = 1; width < 15; ++width) {
      const Geometry g = GeometryOf(Plan::Compile(list).value(), {}, {width, 5});
      std::vector<int> ours;
      for (int x = g.box.x; x < g.box.x + g.box.width; ++x) {
        ours.push_back(x >= 0 && x < width ? x : -1);
      }
      if (g.mirror_columns) std::reverse(ours.begin(), ours.end());
      EXPECT_EQ(ours, Columns(list, width)) << width;
      EXPECT_EQ(g.resized, g.box.size());
      EXPECT_EQ(g.window, (Rect{0, 0, g.box.width, g.box.height}));
    }
  }
}

}  // namespace
}  // namespace stoker
