// The fused geometry matches images that are made one step after the other.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/random_options.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/plan.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using testing::Naive;
using testing::NextFill;
using testing::NextMargins;
using testing::NextPadding;
using testing::NoisyImage;
using testing::Random;
using testing::ViewOf;

struct NaiveApply {
  Naive& image;
  RandomStream random;

  void operator()(const Pad& t) {
    image.Cut({-t.padding.left, -t.padding.top, image.size.width + t.padding.left + t.padding.right,
               image.size.height + t.padding.top + t.padding.bottom},
              t.padding_mode, t.fill);
  }
  void operator()(const RandomCrop& t) {
    Margins p = t.padding;
    const int lacks_x = t.width - image.size.width - p.left - p.right;
    const int lacks_y = t.height - image.size.height - p.top - p.bottom;
    if (lacks_x > 0) p.left += lacks_x, p.right += lacks_x;
    if (lacks_y > 0) p.top += lacks_y, p.bottom += lacks_y;
    (*this)(Pad{p, t.fill, t.padding_mode});
    const auto offset = [&](int room) {
      return static_cast<int>(random.Below(static_cast<uint64_t>(room + 1)));
    };
    const int y = offset(image.size.height - t.height), x = offset(image.size.width - t.width);
    image.Cut({x, y, t.width, t.height}, Padding::kConstant, {});
  }
  void operator()(const RandomZoomOut& t) {
    if (random.Uniform() >= t.p) return;
    const double times = random.Uniform(t.side_range[0], t.side_range[1]);
    const int width = static_cast<int>(image.size.width * times);
    const int height = static_cast<int>(image.size.height * times);
    const int left = static_cast<int>((width - image.size.width) * random.Uniform());
    const int top = static_cast<int>((height - image.size.height) * random.Uniform());
    image.Cut({-left, -top, width, height}, Padding::kConstant, t.fill);
  }
  void operator()(const CenterCrop& t) {
    image.Cut(CenterBox({t.width, t.height}, image.size), Padding::kConstant, {});
  }
  void operator()(const RandomHorizontalFlip& t) {
    if (random.Uniform() < t.p) image.Flip(true);
  }
  void operator()(const RandomVerticalFlip& t) {
    if (random.Uniform() < t.p) image.Flip(false);
  }
  template <typename T>
  void operator()(const T&) {
    ADD_FAILURE() << "no geometry";
  }
};

const std::vector<Transform>* HeldIn(const Transform& transform) {
  if (const auto* apply = std::get_if<RandomApply>(&transform)) return &apply->transforms;
  if (const auto* choice = std::get_if<RandomChoice>(&transform)) return &choice->transforms;
  const auto* order = std::get_if<RandomOrder>(&transform);
  return order != nullptr ? &order->transforms : nullptr;
}

// Applies a transform, the `index`-th of the tree. Returns the index of the next one, which does
// not depend on what is applied.
uint32_t ApplyNaively(const Transform& transform, uint32_t index, const DrawKey& key,
                      Naive* image) {
  RandomStream random(key, index++);
  const std::vector<Transform>* const held = HeldIn(transform);
  if (held == nullptr) {
    if (image != nullptr) std::visit(NaiveApply{*image, random}, transform);
    return index;
  }
  std::vector<uint32_t> indices;
  for (const Transform& each : *held) {
    indices.push_back(index);
    index = ApplyNaively(each, index, key, nullptr);
  }
  if (image == nullptr) return index;
  std::vector<size_t> applied(held->size());
  std::iota(applied.begin(), applied.end(), 0);
  if (const auto* apply = std::get_if<RandomApply>(&transform)) {
    if (random.Uniform() >= apply->p) applied.clear();
  } else if (std::holds_alternative<RandomChoice>(transform)) {
    const auto n = static_cast<double>(held->size());
    applied = {static_cast<size_t>(random.Uniform() * n)};
  } else {
    for (size_t i = held->size(); i > 1; --i) std::swap(applied[i - 1], applied[random.Below(i)]);
  }
  for (const size_t i : applied) ApplyNaively((*held)[i], indices[i], key, image);
  return index;
}

// Returns a transform that holds flips, and others that do.
Transform RandomTree(Random& random, int levels) {
  if (levels == 0 || random.OneIn(3)) {
    if (random.OneIn(2)) return RandomHorizontalFlip{};
    return RandomVerticalFlip{};
  }
  std::vector<Transform> held;
  for (int n = random.Between(1, 4); n > 0; --n) held.push_back(RandomTree(random, levels - 1));
  if (random.OneIn(3)) return RandomApply{std::move(held), 0.7};
  if (random.OneIn(2)) return RandomChoice{std::move(held), {}};
  return RandomOrder{std::move(held)};
}

std::vector<Transform> RandomGeometry(Random& random) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(1, 40); };
  for (int n = random.Between(1, 5); n > 0; --n) {
    switch (random.Between(0, 7)) {
      case 7:
        list.emplace_back(RandomZoomOut{NextFill(random), {1, 1.0 * random.Between(1, 3)}, 0.8});
        break;
      case 0:
        list.emplace_back(Pad{NextMargins(random, 12), NextFill(random), NextPadding(random)});
        break;
      case 1:
      case 2:
        list.emplace_back(RandomCrop{.height = side(),
                                     .width = side(),
                                     .padding = NextMargins(random, random.OneIn(2) ? 6 : 0),
                                     .pad_if_needed = true,
                                     .fill = NextFill(random),
                                     .padding_mode = NextPadding(random)});
        break;
      case 3:
        list.emplace_back(CenterCrop{side(), side()});
        break;
      case 4:
        list.emplace_back(RandomHorizontalFlip{});
        break;
      case 5:
        list.push_back(RandomTree(random, 3));
        break;
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  }
  return list;
}

TEST(Geometry, MatchesOneStepAfterTheOther) {
  Random random(11);
  MemoryBudget budget(64 << 20);
  int applied = 0, stepped = 0;
  for (int n = 0; n < testing::Effort(4000); ++n) {
    const std::vector<Transform> list = RandomGeometry(random);
    const Result<Plan> plan = Plan::Compile(list, {.layout = Layout::kNchw});
    if (!plan.ok()) continue;  // no size, or a crop that only adds a border
    Naive image = NoisyImage(random, {random.Between(1, 40), random.Between(1, 40)});
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    auto workspace = plan->MakeWorkspace(budget);
    std::vector<uint8_t> row(plan->row_bytes());
    StageTimes times;
    ASSERT_TRUE(plan->Apply(ViewOf(image), key, *workspace, {.row = row.data()}, times).ok());
    stepped += testing::DrawnOf(*plan, key, image.size).steps.empty() ? 0 : 1;
    uint32_t index = 0;
    for (const Transform& transform : list) index = ApplyNaively(transform, index, key, &image);
    ASSERT_EQ(image.size, plan->output_size());
    ASSERT_EQ(row, image.pixels) << n << ": " << plan->Describe();
    ++applied;
  }
  EXPECT_GT(applied, testing::Effort(4000) / 3);
  EXPECT_GT(stepped, applied / 10);
  EXPECT_LT(stepped, applied);
}

// Transforms of pixels that draw random numbers and then change nothing.
std::vector<Transform> WithoutEffect() {
  return {ColorJitter{},
          RandomPhotometricDistort{.p = 0},
          RandomGrayscale{0},
          RandomSolarize{.p = 0},
          RandomInvert{0},
          RandomPosterize{.p = 0},
          RandomAdjustSharpness{.p = 0},
          RandomAutocontrast{0},
          RandomEqualize{0},
          GaussianBlur{1, 1},
          RandAugment{.num_ops = 0},
          RandomApply{.transforms = {RandomSolarize{.p = 1}}, .p = 0},
          RandomChoice{{RandomGrayscale{0}, RandomOrder{{RandomSolarize{.p = 0}}}}, {}}};
}

// Transforms that change pixels may stand anywhere in the list of images, and be missing in that of
// masks.
TEST(Geometry, IsThatOfTheListWithoutTransformsOfPixels) {
  Random random(12);
  MemoryBudget budget(64 << 20);
  const std::vector<Transform> without_effect = WithoutEffect();
  const auto last = static_cast<int>(without_effect.size()) - 1;
  int applied = 0, moved = 0;
  for (int n = 0; n < testing::Effort(2000); ++n) {
    std::vector<Transform> list = RandomGeometry(random);
    if (random.OneIn(2)) list.emplace_back(RandomErasing{.p = 0.7, .value = {1, 2, 3}});
    std::vector<Transform> longer;
    for (const Transform& transform : list) {
      while (random.OneIn(2)) {
        longer.push_back(without_effect[static_cast<size_t>(random.Between(0, last))]);
      }
      longer.push_back(transform);
    }
    const Result<Plan> plans[] = {Plan::Compile(list), Plan::Compile(longer)};
    if (!plans[0].ok() || !plans[1].ok()) continue;  // transforms of pixels need images of one size
    const Naive image = NoisyImage(random, {random.Between(1, 40), random.Between(1, 40)});
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    std::vector<uint8_t> rows[2];
    for (size_t i = 0; i < 2; ++i) {
      auto workspace = plans[i]->MakeWorkspace(budget);
      rows[i].resize(plans[i]->row_bytes());
      StageTimes times;
      ASSERT_TRUE(
          plans[i]->Apply(ViewOf(image), key, *workspace, {.row = rows[i].data()}, times).ok());
    }
    ASSERT_EQ(rows[0], rows[1]) << n << ": " << plans[1]->Describe();
    ++applied;
    moved += longer.size() > list.size() ? 1 : 0;
  }
  EXPECT_GT(moved, testing::Effort(2000) / 20);
  EXPECT_GT(applied, moved);
}

TEST(Geometry, FusesWhatItCan) {
  const auto steps = [](std::vector<Transform> list) {
    const Plan plan = Plan::Compile(std::move(list)).value();
    return testing::DrawnOf(plan, {}, {32, 32}).steps.size();
  };
  const RandomHorizontalFlip flip{1};
  EXPECT_EQ(steps({RandomCrop{.height = 32, .width = 32, .padding = {4, 4, 4, 4}}, flip}), 0u);
  EXPECT_EQ(steps({Pad{{4, 4, 4, 4}}, RandomCrop{.height = 32, .width = 32}, flip}), 0u);
  EXPECT_EQ(
      steps({RandomResizedCrop{24, 24}, Pad{{4, 4, 4, 4}}, RandomCrop{.height = 24, .width = 24}}),
      0u);
  EXPECT_EQ(steps({RandomResizedCrop{24, 24}, flip, RandomVerticalFlip{1}}), 0u);
  EXPECT_EQ(steps({CenterCrop{20, 20}, Pad{{0, 2, 0, 2}}}), 1u);
}

TEST(Geometry, ZoomingOutStopsAtTheLargestImage) {
  const Plan plan = Plan::Compile({RandomZoomOut{.side_range = {3, 3}, .p = 1},
                                   RandomZoomOut{.side_range = {3, 3}, .p = 1},
                                   Resize{.height = 30, .width = 30}})
                        .value();
  const Rect small = testing::DrawnOf(plan, {}, {100, 9}).geometry.box;
  EXPECT_EQ(small.size(), (ImageSize{900, 81}));
  const Rect large = testing::DrawnOf(plan, {}, {kMaxSidePixels, 9000}).geometry.box;
  EXPECT_EQ(large.size(), (ImageSize{kMaxSidePixels, kMaxSidePixels}));
  EXPECT_EQ(large.x, 0);
}

TEST(Geometry, ACropThatDoesNotFitIsAnErrorOfTheSample) {
  const Plan plan =
      Plan::Compile({RandomCrop{.height = 32, .width = 30, .padding = {1, 1, 1, 1}}}).value();
  DrawnSample drawn;
  EXPECT_TRUE(plan.Draw({}, {28, 30}, drawn).ok());
  const Status status = plan.Draw({}, {28, 29}, drawn);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().cause,
            "an image of 31 × 30 pixels, padding included, is smaller than the 32 × 30 of "
            "transforms[0], RandomCrop");
}

// CIPA DC-008 defines each orientation by where the row 0 and the column 0 of the file are seen.
Naive Upright(const Naive& stored, int orientation) {
  const bool transposed = orientation >= 5;
  const bool columns = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool rows = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const ImageSize from = stored.size;
  Naive seen{transposed ? ImageSize{from.height, from.width} : from, {}};
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < seen.size.height; ++y) {
      for (int x = 0; x < seen.size.width; ++x) {
        const int across = columns ? seen.size.width - 1 - x : x;
        const int down = rows ? seen.size.height - 1 - y : y;
        const int at_x = transposed ? down : across, at_y = transposed ? across : down;
        seen.pixels.push_back(
            stored.pixels[static_cast<size_t>((c * from.height + at_y) * from.width + at_x)]);
      }
    }
  }
  return seen;
}

// A file that is rotated by its EXIF tag, cropped, mirrored and augmented gives what it would give
// if it were stored upright.
TEST(Geometry, RotatedFilesMatchTheirUprightPixels) {
  const Plan plan = Plan::Compile({RandomCrop{.height = 20, .width = 16, .padding = {3, 1, 0, 2}},
                                   RandomHorizontalFlip{}, RandomVerticalFlip{},
                                   RandomGrayscale{0.7}, RandomVerticalFlip{}},
                                  {.layout = Layout::kNchw})
                        .value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  const std::vector<uint8_t> png = testing::MakePng({.width = 33, .height = 29});
  std::vector<uint8_t> upright = png;
  upright.resize(png.size() + kBufferPadding);
  const WholeImage whole = DecodeWholePng({upright.data(), png.size()}).value();
  Naive stored{whole.size, {}};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = c; i < whole.pixels.size(); i += 3) stored.pixels.push_back(whole.pixels[i]);
  }
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Naive seen = Upright(stored, orientation);
    std::vector<uint8_t> file = testing::WithChunk(
        png, "IEND", testing::PngChunk("eXIf", testing::OrientationTiff(orientation, true)));
    const size_t size = file.size();
    file.resize(size + kBufferPadding);
    for (uint64_t n = 0; n < 40; ++n) {
      std::vector<uint8_t> row(plan.row_bytes()), wanted(plan.row_bytes());
      StageTimes times;
      ASSERT_TRUE(plan.Apply({file.data(), size}, {1, 0, n}, *workspace, row.data(), times).ok());
      ASSERT_TRUE(
          plan.Apply(ViewOf(seen), {1, 0, n}, *workspace, {.row = wanted.data()}, times).ok());
      ASSERT_EQ(row, wanted) << "orientation " << orientation << ", sample " << n;
    }
  }
}

}  // namespace
}  // namespace stoker
