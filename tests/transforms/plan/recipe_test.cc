// Whole lists of transforms: the fused path against its plain twin, and geometry against a list of
// images that are really made, one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/core/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/make_jpeg.h"
#include "tests/testing/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/plan/geometry_of.h"
#include "transforms/draw.h"
#include "transforms/plan.h"
#include "transforms/png/reference_decoder.h"
#include "transforms/reference.h"

namespace stoker {
namespace {

using testing::Random;

Fill NextFill(Random& random) {
  if (random.OneIn(2)) return {};
  return {static_cast<uint8_t>(random.Between(0, 255)),
          static_cast<uint8_t>(random.Between(0, 255)), 7};
}
std::optional<Fill> MaybeFill(Random& random) {
  return random.OneIn(2) ? std::nullopt : std::optional<Fill>(NextFill(random));
}
Padding NextPadding(Random& random) {
  return random.OneIn(2) ? Padding::kConstant : static_cast<Padding>(random.Between(0, 3));
}
Margins NextMargins(Random& random, int most) {
  return {random.Between(0, most), random.Between(0, most), random.Between(0, most),
          random.Between(0, most)};
}

// ---- Geometry.

// An image of three planes, and what torchvision does to it, pixel by pixel.
struct Naive {
  ImageSize size;
  std::vector<uint8_t> pixels;

  // Where a place outside comes from; none: the fill.
  static int Source(int at, int length, Padding padding) {
    if (at >= 0 && at < length) return at;
    if (padding == Padding::kConstant) return -1;
    if (padding == Padding::kEdge) return at < 0 ? 0 : length - 1;
    const int twice = padding == Padding::kReflect ? 1 : 0;
    while (at < 0 || at >= length) {  // off one end, then off the other
      if (length == 1) return 0;
      at = at < 0 ? -at - 1 + twice : 2 * length - 1 - at - twice;
    }
    return at;
  }

  void Cut(const Rect& part, Padding padding, const Fill& fill) {
    Naive made{part.size(), {}};
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < part.height; ++y) {
        for (int x = 0; x < part.width; ++x) {
          const int from_x = Source(part.x + x, size.width, padding);
          const int from_y = Source(part.y + y, size.height, padding);
          made.pixels.push_back(
              from_x < 0 || from_y < 0
                  ? fill[static_cast<size_t>(c)]
                  : pixels[static_cast<size_t>((c * size.height + from_y) * size.width + from_x)]);
        }
      }
    }
    *this = std::move(made);
  }

  void Flip(bool columns) {
    for (int row = 0; row < 3 * size.height; ++row) {
      const auto begin = pixels.begin() + ptrdiff_t{row} * size.width;
      if (columns) std::reverse(begin, begin + size.width);
    }
    if (columns) return;
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < size.height / 2; ++y) {
        const auto row = [&](int r) {
          return pixels.begin() + ptrdiff_t{c * size.height + r} * size.width;
        };
        std::swap_ranges(row(y), row(y) + size.width, row(size.height - 1 - y));
      }
    }
  }
};

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

std::vector<Transform> RandomGeometry(Random& random) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(1, 40); };
  for (int n = random.Between(1, 5); n > 0; --n) {
    switch (random.Between(0, 5)) {
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
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  }
  return list;
}

Naive NoisyImage(Random& random, ImageSize size) {
  Naive image{size, {}};
  for (int i = 0; i < 3 * size.width * size.height; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(random.Between(0, 255)));
  }
  return image;
}

ImageView ViewOf(const Naive& image) {
  ImageView view{PixelLayout::kPlanar, image.size, {}, {}};
  for (size_t c = 0; c < 3; ++c) {
    view.plane[c] = image.pixels.data() + c * image.pixels.size() / 3;
    view.stride[c] = image.size.width;
  }
  return view;
}

TEST(Recipe, GeometryIsThatOfOneImageAfterTheOther) {
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
    ASSERT_TRUE(plan->Apply(ViewOf(image), key, *workspace, row.data(), times).ok());
    stepped += testing::DrawnOf(*plan, key, image.size).steps.empty() ? 0 : 1;
    for (size_t i = 0; i < list.size(); ++i) {
      std::visit(NaiveApply{image, RandomStream(key, static_cast<uint32_t>(i))}, list[i]);
    }
    ASSERT_EQ(image.size, plan->output_size());
    ASSERT_EQ(row, image.pixels) << n << ": " << plan->Describe();
    ++applied;
  }
  EXPECT_GT(applied, testing::Effort(4000) / 3);
  EXPECT_GT(stepped, applied / 10);
  EXPECT_LT(stepped, applied);
}

TEST(Recipe, WhatCanBeFusedIs) {
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

TEST(Recipe, ACropThatDoesNotFitIsAnErrorOfTheSample) {
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

// As CIPA DC-008 defines each orientation: where the row 0 and the column 0 of the file are seen.
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

// Turned by its EXIF tag, cropped, mirrored, and then a step: as if it had been stored upright.
TEST(Recipe, ATurnedFileIsAsItsUprightPixels) {
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
      ASSERT_TRUE(plan.Apply(ViewOf(seen), {1, 0, n}, *workspace, wanted.data(), times).ok());
      ASSERT_EQ(row, wanted) << "orientation " << orientation << ", sample " << n;
    }
  }
}

// ---- Everything.

std::vector<Transform> RandomRecipe(Random& random, DType dtype) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(4, 60); };
  if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(3)) list.emplace_back(Pad{NextMargins(random, 5)});
  list.emplace_back(RandomResizedCrop{side(), side(), {0.08, 1}, {0.75, 4.0 / 3}});
  for (int n = random.Between(0, 4); n > 0; --n) {
    const auto interpolation = random.OneIn(2) ? Interpolation::kNearest : Interpolation::kBilinear;
    switch (random.Between(0, 8)) {
      case 0:
        list.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}});
        break;
      case 1:
        list.emplace_back(RandomGrayscale{0.5});
        break;
      case 2:
        list.emplace_back(GaussianBlur{3, random.OneIn(2) ? 5 : 1});
        break;
      case 3:
        list.emplace_back(TrivialAugmentWide{31, interpolation, MaybeFill(random)});
        break;
      case 4:
        list.emplace_back(RandAugment{2, 9, 31, interpolation, MaybeFill(random)});
        break;
      case 5:
        list.emplace_back(AutoAugment{static_cast<AutoAugment::Policy>(random.Between(0, 2)),
                                      interpolation, MaybeFill(random)});
        break;
      case 6:
        list.emplace_back(RandomCrop{.height = 4 + random.Between(0, 20),
                                     .width = 4 + random.Between(0, 20),
                                     .padding = NextMargins(random, 4),
                                     .pad_if_needed = true,
                                     .fill = NextFill(random),
                                     .padding_mode = NextPadding(random)});
        break;
      case 7:
        list.emplace_back(RandomHorizontalFlip{});
        break;
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  }
  const bool fractions = dtype != DType::kU8;
  if (fractions && random.OneIn(2)) {
    list.emplace_back(Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
  }
  if (random.OneIn(2)) {
    list.emplace_back(
        RandomErasing{.p = 0.7, .value = {1, 0, 1}, .noise = fractions && random.OneIn(2)});
  }
  return list;
}

void AppliesAsTheReference() {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  Random random(5);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(150); ++n) {
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.read_later = random.OneIn(2);
    const Result<Plan> plan = Plan::Compile(RandomRecipe(random, options.dtype), options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    testing::JpegOptions jpeg;
    jpeg.width = random.Between(1, 90);
    jpeg.height = random.Between(1, 90);
    jpeg.orientation = random.Between(1, 8);
    jpeg.seed = static_cast<uint64_t>(n);
    std::vector<uint8_t> bytes = testing::MakeJpeg(jpeg);
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    const std::span<const uint8_t> file(bytes.data(), size);
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    std::vector<uint8_t> wanted(plan->row_bytes()), row(plan->row_bytes() + 3, 0x5a);
    StageTimes times;
    auto workspace = plan->MakeWorkspace(budget);
    ASSERT_TRUE(ApplyReference(*plan, file, key, wanted.data()).ok());
    const Status status = plan->Apply(file, key, *workspace, row.data() + 1, times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0)
        << n << ": " << plan->Describe() << " of " << jpeg.width << " × " << jpeg.height;
    ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
  }
}

// What a workspace holds after many images, beside what it holds without the tile.
TEST(Recipe, ATilesMemoryIsWhatThePlanSays) {
  Random random(6);
  const Naive image = NoisyImage(random, {300, 280});
  const RandomResizedCrop crop{256, 200};
  for (const Transform& last :
       {Transform(RandAugment{2, 9, 31, Interpolation::kBilinear}), Transform(GaussianBlur{23, 23}),
        Transform(ColorJitter{{0.5, 2}, {0.5, 2}, {0.5, 2}, {-0.5, 0.5}})}) {
    const Plan plain = Plan::Compile({crop}).value();
    const Plan with = Plan::Compile({crop, last}).value();
    uint64_t held[2] = {};
    for (const Plan* plan : {&plain, &with}) {
      MemoryBudget budget(64 << 20);
      auto workspace = plan->MakeWorkspace(budget);
      std::vector<uint8_t> row(plan->row_bytes());
      StageTimes times;
      for (uint64_t n = 0; n < 200; ++n) {
        ASSERT_TRUE(plan->Apply(ViewOf(image), {1, 0, n}, *workspace, row.data(), times).ok());
      }
      held[plan == &with] = budget.peak();
    }
    EXPECT_GT(held[1], held[0]) << with.Describe();
    EXPECT_LE(held[1] - held[0], with.tile_bytes() / 2) << with.Describe();  // one image at a time
    EXPECT_EQ(plain.tile_bytes(), 0u);
  }
}

TEST(Recipe, AppliesAsTheReference) { testing::ForEachTarget(AppliesAsTheReference); }

}  // namespace
}  // namespace stoker
