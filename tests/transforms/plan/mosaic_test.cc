// Rows of several images: as if the images were resized, put on a canvas, and a window cut out of
// it.
#include "transforms/plan/mosaic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/padded_file.h"
#include "tests/transforms/plan/random_options.h"
#include "transforms/augment/augmenter.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"
#include "transforms/plan/reference.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/plain.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::MakePng;
using testing::Naive;
using testing::NoisyImage;
using testing::PaddedFile;
using testing::Random;

constexpr uint32_t kMosaicParts = 4;
constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};

Mosaic RandomMosaic(Random& random, int most = 70) {
  return {.size = random.Between(1, most),
          .scale = 0.1 * random.Between(0, 9),
          .translate = random.OneIn(3) ? 1.0 : 0.1,
          .fill = testing::NextFill(random),
          .p = random.OneIn(2) ? 1 : 0.5};
}

Mosaic RandomTurned(Random& random, int most = 70) {
  Mosaic mosaic = RandomMosaic(random, most);
  mosaic.degrees = random.OneIn(2) ? 10 : 180;
  mosaic.shear = random.OneIn(2) ? 0 : 20;
  mosaic.perspective = random.OneIn(2) ? 0 : 0.01;
  return mosaic;
}

std::vector<Transform> RandomList(Random& random, DType dtype, int most = 70) {
  std::vector<Transform> list{RandomMosaic(random, most)};
  const RandomChoice flips{{RandomVerticalFlip{1}, RandomHorizontalFlip{1}}, {}};
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(3)) {
    list.emplace_back(ColorJitter{{0.5, 1.5}, {1, 1}, {0, 2}, {-0.5, 0.5}, 0.8});
    if (random.OneIn(2)) list.emplace_back(RandomOrder{{flips, RandomPosterize{3}}});
  }
  if (random.OneIn(4))
    list.emplace_back(RandomApply{{RandomSolarize{128, 1}, RandomInvert{}}, 0.5});
  if (random.OneIn(4)) {
    list.emplace_back(RandomPhotometricDistort{.contrast = {1, 1}});
    list.emplace_back(RandomGrayscale{0.5});
    list.emplace_back(RandomHSV{});
    list.emplace_back(RandomHorizontalFlip{});
  }
  if (dtype != DType::kU8 && random.OneIn(2)) {
    list.emplace_back(Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
  }
  return list;
}

// An image on a plane that has the row at its origin.
struct Pasted {
  Rect whole;
  Rect kept;  // what the canvas has of it
};

Pasted PastedAt(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                std::span<const ImageSize> of_row) {
  const Rect whole = PlacePlain(mosaic, drawn, part, of_row);
  if (!drawn.several) return {whole, whole};
  const Rect& canvas = drawn.canvas;
  const int left = std::max(whole.x, canvas.x), top = std::max(whole.y, canvas.y);
  const int right = std::min(whole.x + whole.width, canvas.x + canvas.width);
  const int bottom = std::min(whole.y + whole.height, canvas.y + canvas.height);
  return {whole, {left, top, std::max(0, right - left), std::max(0, bottom - top)}};
}

std::vector<ImageSize> SizesOf(const std::vector<Naive>& images) {
  std::vector<ImageSize> sizes;
  for (const Naive& image : images) sizes.push_back(image.size);
  return sizes;
}

uint32_t PartsOf(const Mosaic& mosaic, const DrawnMosaic& drawn) {
  return drawn.several ? static_cast<uint32_t>(mosaic.n) : 1;
}

// Resizes the image and puts it into the row, pixel by pixel.
void Paste(const Mosaic& mosaic, const Pasted& at, const Naive& image, Naive& row) {
  const Rect& whole = at.whole;
  std::vector<uint8_t> resized(3 * static_cast<size_t>(whole.width) *
                               static_cast<size_t>(whole.height));
  ResamplePlain(ViewOf(image),
                {.image = image.size,
                 .box = {0, 0, image.size.width, image.size.height},
                 .resized = whole.size(),
                 .window = {0, 0, whole.width, whole.height},
                 .turn = {}},
                {.row = resized.data(), .layout = Layout::kNchw});
  const int size = mosaic.size;
  for (int c = 0; c < 3; ++c) {
    for (int y = std::max(0, at.kept.y); y < std::min(size, at.kept.y + at.kept.height); ++y) {
      for (int x = std::max(0, at.kept.x); x < std::min(size, at.kept.x + at.kept.width); ++x) {
        row.pixels[static_cast<size_t>((c * size + y) * size + x)] = resized[static_cast<size_t>(
            (c * whole.height + y - whole.y) * whole.width + x - whole.x)];
      }
    }
  }
}

// The row of a plan, made of a canvas.
std::vector<uint8_t> Twin(const Plan& plan, const DrawKey& key, const std::vector<Naive>& images) {
  const auto& mosaic = std::get<Mosaic>(plan.transforms()[0]);
  RandomStream random(key, 0);
  const DrawnMosaic drawn = DrawMosaic(mosaic, random);
  const ImageSize size{mosaic.size, mosaic.size};
  Naive row{size, {}};
  for (const uint8_t value : mosaic.fill) {
    row.pixels.insert(row.pixels.end(), static_cast<size_t>(size.width * size.height), value);
  }
  for (uint32_t part = 0; part < PartsOf(mosaic, drawn); ++part) {
    Paste(mosaic, PastedAt(mosaic, drawn, part, SizesOf(images)), images[part], row);
  }
  DrawnSample after;  // what follows is the same for all parts
  EXPECT_TRUE(plan.Draw(key, images[0].size, after).ok());
  if (after.geometry.mirror_columns) row.Flip(true);
  if (after.geometry.mirror_rows) row.Flip(false);
  ImageSize whole = size;
  for (const DrawnStep& step : after.steps) ApplyStepPlain(step.step, whole, row.pixels);
  std::vector<uint8_t> written(plan.row_bytes());
  EmitRowsPlain({row.pixels.data(), size.width, ptrdiff_t{size.width} * size.height, 3, size.height,
                 size.width},
                RowFormat(plan.OutputTo(written.data(), plan.output_size()), size), written.data());
  return written;
}

std::vector<uint32_t> PartsIn(const Plan& plan, const DrawKey& key) {
  std::vector<uint32_t> numbers;
  const RowSamples samples = plan.SamplesOf(key, 7, 1000, 0);
  for (const RowPart& part : samples.all()) numbers.push_back(part.part);
  return numbers;
}

void EqualTheCanvas() {
  Random random(4);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(600); ++n) {
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.read_later = random.OneIn(2);
    std::vector<Transform> list = RandomList(random, options.dtype);
    const uint32_t count = random.OneIn(3) ? 9 : 4;
    std::get<Mosaic>(list[0]).n = static_cast<int>(count);
    const Plan plan = Plan::Compile(std::move(list), options).value();
    EXPECT_EQ(plan.parts(), count);
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    std::vector<Naive> images;
    for (uint32_t i = 0; i < count; ++i) {
      images.push_back(NoisyImage(random, {random.Between(1, 90), random.Between(1, 90)}));
    }
    std::vector<uint32_t> parts = PartsIn(plan, key);
    if (count == 4 && random.OneIn(2)) std::ranges::reverse(parts);
    if (count == 4 && random.OneIn(2)) std::swap(parts.front(), parts.back());
    std::vector<uint8_t> row(plan.row_bytes() + 3, 0x5a);
    const auto workspace = plan.MakeWorkspace(budget);
    for (const uint32_t part : parts) {
      DrawKey of_part = key;
      of_part.part = part;
      StageTimes times;
      ASSERT_TRUE(
          plan.Apply(ViewOf(images[part]), of_part, *workspace, {.row = row.data() + 1}, times)
              .ok());
    }
    const std::vector<uint8_t> wanted = Twin(plan, key, images);
    ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0)
        << n << ": " << plan.Describe();
    ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
  }
}

// Ultralytics' LetterBox begins at round((size - side) / 2 - 0.1).
TEST(Mosaic, AnImageAloneIsWhereLetterBoxPutsIt) {
  struct Case {
    int size, side, at;
  };
  for (const auto& [size, side, at] : std::vector<Case>{{320, 320, 0},
                                                        {320, 319, 0},
                                                        {320, 318, 1},
                                                        {321, 321, 0},
                                                        {321, 320, 0},
                                                        {321, 319, 1},
                                                        {321, 318, 1},
                                                        {322, 321, 0},
                                                        {322, 319, 1},
                                                        {323, 323, 0},
                                                        {323, 322, 0},
                                                        {323, 321, 1}}) {
    const Mosaic mosaic{.size = size, .scale = 0, .translate = 0, .p = 0};
    RandomStream random({}, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, random);
    EXPECT_EQ(PlaceImage(mosaic, drawn, 0, {side, size}).whole, (Rect{at, 0, side, size}));
    EXPECT_EQ(PlaceImage(mosaic, drawn, 0, {size, side}).whole, (Rect{0, at, size, side}));
  }
}

TEST(Mosaic, EqualsTheCanvas) { testing::ForEachTarget(EqualTheCanvas); }

// ---- Turned rows.

// Moves (x, y), relative to the middle, to (a x + b y, c x + d y) / (1 + g x + h y).
struct Turn {
  explicit Turn(const DrawnMosaic& drawn) {
    const double radians = drawn.degrees * kPi / 180;
    const double x_shear = std::tan(drawn.x_shear * kPi / 180);
    const double y_shear = std::tan(drawn.y_shear * kPi / 180);
    a = std::cos(radians) - x_shear * std::sin(radians);
    b = std::sin(radians) + x_shear * std::cos(radians);
    c = y_shear * std::cos(radians) - std::sin(radians);
    d = y_shear * std::sin(radians) + std::cos(radians);
    g = drawn.x_perspective;
    h = drawn.y_perspective;
  }
  std::array<double, 2> Moved(double x, double y) const {
    const double divisor = 1 + g * x + h * y;
    return {(a * x + b * y) / divisor, (c * x + d * y) / divisor};
  }
  std::array<double, 2> MovedBack(double x, double y) const {
    const double determinant = a * d - b * c;
    const double u = (d * x - b * y) / determinant, v = (a * y - c * x) / determinant;
    const double divisor = 1 - g * u - h * v;
    return {u / divisor, v / divisor};
  }
  double a, b, c, d, g, h;
};

// The row of a turned mosaic: the canvas at the window's scale, sampled in binary64. `near`: the
// pixels near a line between two images, which no image blends with the other's.
Naive TurnedTwin(const Mosaic& mosaic, const DrawKey& key, const std::vector<Naive>& images,
                 std::vector<bool>& near) {
  RandomStream random(key, 0);
  const DrawnMosaic drawn = DrawMosaic(mosaic, random);
  const int size = mosaic.size, around = 4 * size + 8, side = size + 2 * around;
  Mosaic larger = mosaic;
  larger.size = side;
  Naive canvas{{side, side}, {}}, row{{size, size}, {}};
  for (const uint8_t value : mosaic.fill) {
    canvas.pixels.insert(canvas.pixels.end(), static_cast<size_t>(side * side), value);
  }
  for (uint32_t part = 0; part < PartsOf(mosaic, drawn); ++part) {
    Pasted at = PastedAt(mosaic, drawn, part, SizesOf(images));
    for (Rect* rect : {&at.whole, &at.kept}) rect->x += around, rect->y += around;
    Paste(larger, at, images[part], canvas);
  }
  const Turn turn(drawn);
  row.pixels.resize(static_cast<size_t>(3 * size * size));
  near.resize(static_cast<size_t>(size * size));
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const auto [u, v] = turn.MovedBack(x + 0.5 - drawn.middle_x, y + 0.5 - drawn.middle_y);
      const double at_x = drawn.middle_x + u, at_y = drawn.middle_y + v;
      near[static_cast<size_t>(y * size + x)] =
          drawn.several && mosaic.n == 4 &&
          (std::abs(at_x - drawn.x) < 1 || std::abs(at_y - drawn.y) < 1);
      const double left = at_x - 0.5 + around, top = at_y - 0.5 + around;
      const auto column = static_cast<int>(std::floor(left));
      const auto line = static_cast<int>(std::floor(top));
      for (int channel = 0; channel < 3; ++channel) {
        const auto pixel = [&](int i, int j) -> double {
          if (i < 0 || j < 0 || i >= side || j >= side) {
            return mosaic.fill[static_cast<size_t>(channel)];
          }
          return canvas.pixels[static_cast<size_t>((channel * side + j) * side + i)];
        };
        const double upper = std::lerp(pixel(column, line), pixel(column + 1, line), left - column);
        const double lower =
            std::lerp(pixel(column, line + 1), pixel(column + 1, line + 1), left - column);
        row.pixels[static_cast<size_t>((channel * size + y) * size + x)] =
            static_cast<uint8_t>(std::lround(std::lerp(upper, lower, top - line)));
      }
    }
  }
  return row;
}

void ShowTheTurnedCanvas() {
  Random random(8);
  MemoryBudget budget(512 << 20);
  size_t compared = 0;
  for (int n = 0; n < testing::Effort(200); ++n) {
    Mosaic mosaic = RandomMosaic(random, 50);
    mosaic.translate = 0.1;
    mosaic.degrees = random.OneIn(3) ? 0 : random.Between(1, 180);
    mosaic.shear = mosaic.degrees > 0 && random.OneIn(2) ? 0 : random.Between(1, 30);
    mosaic.perspective = random.OneIn(2) ? 0 : 0.005;
    mosaic.n = random.OneIn(3) ? 9 : 4;  // nine are turned together
    const Layout layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    const Plan plan =
        Plan::Compile({mosaic}, {.layout = layout, .read_later = random.OneIn(2)}).value();
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    std::vector<Naive> images;
    for (uint32_t i = 0; i < plan.parts(); ++i) {
      images.push_back(NoisyImage(random, {random.Between(1, 90), random.Between(1, 90)}));
    }
    std::vector<uint8_t> row(plan.row_bytes(), 0x5a);
    const auto workspace = plan.MakeWorkspace(budget);
    for (const uint32_t part : PartsIn(plan, key)) {
      DrawKey of_part = key;
      of_part.part = part;
      StageTimes times;
      ASSERT_TRUE(
          plan.Apply(ViewOf(images[part]), of_part, *workspace, {.row = row.data()}, times).ok());
    }
    std::vector<bool> near;
    const Naive wanted = TurnedTwin(mosaic, key, images, near);
    for (size_t i = 0; i < row.size(); ++i) {
      if (near[i % near.size()]) continue;
      const size_t pixel = i % near.size(), channel = i / near.size();
      const uint8_t made = row[layout == Layout::kNchw ? i : 3 * pixel + channel];
      ASSERT_NEAR(made, wanted.pixels[i], 1) << n << " at " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u * static_cast<size_t>(testing::Effort(200)));
}

TEST(Mosaic, TurnedRowsShowTheTurnedCanvas) { testing::ForEachTarget(ShowTheTurnedCanvas); }

// All that rows show, and all of their canvas, is before the horizon.
TEST(Mosaic, ThePerspectiveIsWeakenedBeforeTheHorizon) {
  Random random(5);
  int weakened = 0;
  double least = 1;
  for (int n = 0; n < 2000; ++n) {
    const Mosaic mosaic{.size = 640,
                        .scale = 0.1 * random.Between(0, 9),
                        .translate = random.OneIn(3) ? 1.0 : 0.1,
                        .degrees = random.OneIn(2) ? 0.0 : 180.0,
                        .shear = random.OneIn(2) ? 0.0 : 30.0,
                        .perspective = random.OneIn(2) ? 0.0005 : 0.01};
    RandomStream stream({1, 2, static_cast<uint64_t>(n)}, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, stream);
    const GeometryMap turn = TurnOf(drawn), back = TurnBackOf(drawn);
    const double half = 640 * drawn.scale;
    double of_sample = 1;
    for (const double x : {-1, 1}) {
      for (const double y : {-1, 1}) {
        of_sample =
            std::min(of_sample, 1 + half * (x * drawn.x_perspective + y * drawn.y_perspective));
        const double corner_x = 320 + 320 * x, corner_y = 320 + 320 * y;
        const MapPoint from = Moved(back, corner_x, corner_y), again = Moved(turn, from.x, from.y);
        EXPECT_NEAR(again.x, corner_x, 1e-6);
        EXPECT_NEAR(again.y, corner_y, 1e-6);
        of_sample = std::min(of_sample, back[6] * corner_x + back[7] * corner_y + back[8]);
      }
    }
    ASSERT_GT(of_sample, 0.1 - 1e-9);
    weakened += of_sample < 0.1 + 1e-9;
    least = std::min(least, of_sample);
    EXPECT_LE(std::abs(drawn.x_perspective) * drawn.scale, mosaic.perspective);
    if (mosaic.perspective == 0.0005 && drawn.scale > 0.9 && mosaic.translate == 0.1 &&
        mosaic.shear == 0) {
      EXPECT_GT(of_sample, 0.1 + 1e-9);
    }
  }
  EXPECT_GT(weakened, 500);
  EXPECT_NEAR(least, 0.1, 1e-6);
}

// Compares what a workspace holds for turned rows with what it holds for others.
TEST(Mosaic, TurnedRowsNeedNoMoreMemoryThanTheySay) {
  Random random(3);
  const Naive image = NoisyImage(random, {300, 300});
  const auto peak_of = [&](const Plan& plan) {
    MemoryBudget budget(256 << 20);
    const auto workspace = plan.MakeWorkspace(budget);
    std::vector<uint8_t> row(plan.row_bytes());
    for (int n = 0; n < testing::Effort(400); ++n) {
      StageTimes times;
      DrawKey key{2, 3, static_cast<uint64_t>(n)};
      key.part = static_cast<uint32_t>(n) % kMosaicParts;
      EXPECT_TRUE(plan.Apply(ViewOf(image), key, *workspace, {.row = row.data()}, times).ok());
    }
    return budget.peak();
  };
  Mosaic mosaic{.size = 200, .scale = 0.9};
  const Plan plain = Plan::Compile({mosaic}).value();
  mosaic.degrees = 180;
  mosaic.shear = 30;
  mosaic.perspective = 0.01;
  const Plan turned = Plan::Compile({mosaic}).value();
  EXPECT_EQ(plain.extra_bytes(), 0u);
  EXPECT_GT(peak_of(turned), peak_of(plain));
  EXPECT_LE(peak_of(turned), peak_of(plain) + turned.extra_bytes() / 2);
}

TEST(Mosaic, CornersDivideARow) {
  Random random(9);
  size_t empty = 0;
  int touched = 0, all = 0;
  for (int n = 0; n < 400; ++n) {
    Mosaic mosaic = RandomTurned(random);
    mosaic.shear = random.OneIn(2) ? 1e-12 : mosaic.shear;  // pixels of a column have equal values
    if (mosaic.shear > 0 && random.OneIn(2)) mosaic.degrees = 0;
    std::vector<Transform> list{mosaic};
    if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
    if (random.OneIn(2)) list.emplace_back(RandomVerticalFlip{});
    const Plan plan = Plan::Compile(list).value();
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    const std::vector<uint32_t> parts = PartsIn(plan, key);
    std::vector<int> owners(static_cast<size_t>(mosaic.size * mosaic.size));
    for (const uint32_t part : parts) {
      DrawKey of_part = key;
      of_part.part = part;
      DrawnSample drawn;
      ASSERT_TRUE(plan.Draw(of_part, {9, 9}, drawn).ok());
      const Rect& rect = drawn.placed->part;
      ASSERT_TRUE(IsEmpty(rect) || Overlap(rect, {0, 0, mosaic.size, mosaic.size}) == rect);
      if (drawn.placed->corner) {
        ASSERT_EQ(drawn.size, rect.size());
      }
      for (int y = 0; y < rect.height; ++y) {
        const auto [begin, end] = ColumnsOf(*drawn.placed, y);
        ASSERT_TRUE(0 <= begin && begin <= end && end <= rect.width);
        const int first = (rect.y + y) * mosaic.size + rect.x;
        for (int x = begin; x < end; ++x) ++owners[static_cast<size_t>(first + x)];
      }
      touched += rect.width * rect.height;
      all += mosaic.size * mosaic.size;
    }
    empty += kMosaicParts - parts.size();
    for (const int count : owners) ASSERT_EQ(count, 1) << n;
  }
  EXPECT_GT(empty, 20u);
  EXPECT_LT(touched, all * 2 / 3);  // of those that steps touch, most are in the corners
}

// The center of pixel 1 is on the line.
TEST(Mosaic, OneCornerHasThePixelsOnALine) {
  for (const HalfPlane& side : {HalfPlane{1, 0, -1.5}, {0, 1, -1.5}, {1, -1, 0}, {1, 1, -3}}) {
    const HalfPlane other{-side[0], -side[1], -side[2]}, all{0, 0, 1};
    for (int y = 0; y < 3; ++y) {
      std::array<int, 3> owners{};
      for (const auto& corner : {std::array{side, all}, std::array{all, other}}) {
        for (const int x : {0, 1, 2}) {  // parts of one column, and of the rows from y
          Placement placed{.part = {x, y, 1, 3 - y}, .image = {}};
          placed.corner = corner;
          const auto [begin, end] = ColumnsOf(placed, 0);
          owners[static_cast<size_t>(x)] += end - begin;
        }
        Placement placed{.part = {0, 0, 3, 3}, .image = {}};
        placed.corner = corner;
        const auto [begin, end] = ColumnsOf(placed, y);
        for (int x = begin; x < end; ++x) owners[static_cast<size_t>(x)] += 10;
      }
      EXPECT_EQ(owners, (std::array{11, 11, 11})) << y;
    }
  }
}

// ---- Encoded images, and masks.

PaddedFile RandomFile(Random& random) {
  const auto seed = static_cast<uint64_t>(random.Between(0, 1 << 20));
  const int width = random.Between(1, 120), height = random.Between(1, 120);
  if (random.OneIn(3)) {
    return PaddedFile(testing::MakePng({.width = width, .height = height, .seed = seed}));
  }
  return PaddedFile(testing::MakeJpeg({.width = width, .height = height, .seed = seed}));
}

PaddedFile RandomMask(Random& random, bool deep) {
  testing::PngOptions png{.width = random.Between(1, 120),
                          .height = random.Between(1, 120),
                          .color = 0,
                          .bit_depth = deep ? 16 : 8,
                          .seed = static_cast<uint64_t>(random.Between(0, 1 << 20))};
  const std::vector<uint8_t> file = MakePng(png);
  return PaddedFile(testing::WithChunk(
      file, "IDAT",
      testing::PngChunk("eXIf", testing::OrientationTiff(random.Between(1, 8), true))));
}

// Images and masks of all parts, two interleaved, and as the reference makes them.
void MoveAsTheReference() {
  Random random(6);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(400); ++n) {
    const bool deep = random.OneIn(2);
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.decode = random.OneIn(2) ? DecodeSize::kFull : DecodeSize::kScaled;
    options.pieces = {{}, {deep ? Piece::Kind::kMask16 : Piece::Kind::kMask, 255}};
    std::vector<Transform> list = RandomList(random, options.dtype);
    if (random.OneIn(3)) list.front() = RandomTurned(random);
    const Plan plan = Plan::Compile(std::move(list), options).value();
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    std::array<std::vector<uint8_t>, 2> rows, wanted;
    for (size_t i = 0; i < 2; ++i) {
      rows[i].assign(plan.piece(i).row_bytes(), 0x5a);
      wanted[i].assign(plan.piece(i).row_bytes(), 0xa5);
    }
    std::vector<PaddedFile> files;
    std::vector<EncodedImage> images;
    for (const uint32_t part : PartsIn(plan, key)) {
      for (uint32_t field = 0; field < 2; ++field) {
        files.push_back(field == 0 ? RandomFile(random) : RandomMask(random, deep));
        EncodedImage image{.piece = static_cast<uint32_t>(images.size()),
                           .bytes = files.back().span(),
                           .key = key,
                           .to = {.row = rows[field].data()}};
        image.key.part = part;
        images.push_back(image);
        ASSERT_TRUE(
            ApplyReference(plan.piece(field), files.back().span(), image.key, wanted[field].data())
                .ok());
      }
    }
    const auto workspace = plan.MakeWorkspace(budget);
    StageTimes times;
    PlanRun run(plan, *workspace, times);
    size_t next = 0;
    const auto fill = [&] {
      while (next < images.size() && run.has_room()) run.Begin(images[next++]);
    };
    for (fill(); run.busy(); fill()) {
      const auto finished = run.Advance();
      if (!finished) continue;
      ASSERT_TRUE(finished->status.ok()) << finished->status.error().ToString();
    }
    ASSERT_EQ(rows[0], wanted[0]) << n << ": " << plan.Describe();
    ASSERT_EQ(rows[1], wanted[1]) << n << ": " << plan.Describe();
  }
}

TEST(Mosaic, MovesFilesAndMasksAsTheReference) { testing::ForEachTarget(MoveAsTheReference); }

// The canvas cuts an image and its mask at the same pixel.
TEST(Mosaic, MasksShowNoMoreThanTheirImages) {
  Random random(7);
  MemoryBudget budget(256 << 20);
  size_t outside = 0;
  for (int n = 0; n < testing::Effort(300); ++n) {
    std::vector<Transform> list{Mosaic{.size = random.Between(1, 70), .scale = 0.9, .fill = {}}};
    if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
    if (random.OneIn(2)) list.emplace_back(ColorJitter{.saturation = {0.5, 2}});
    if (random.OneIn(2)) list.emplace_back(RandomVerticalFlip{});
    const PlanOptions options{.pieces = {{}, {Piece::Kind::kMask16, 0xffff}}};
    const Plan plan = Plan::Compile(list, options).value();
    DrawKey key{2, 3, static_cast<uint64_t>(n)};
    const auto workspace = plan.MakeWorkspace(budget);
    std::vector<uint8_t> row(plan.row_bytes()), mask(plan.piece(1).row_bytes());
    for (const uint32_t part : PartsIn(plan, key)) {
      const int width = random.Between(1, 90), height = random.Between(1, 90);
      const std::vector<uint8_t> white(static_cast<size_t>(width * height), 255);
      const PaddedFile file(
          MakePng({.width = width, .height = height, .color = 0, .bit_depth = 16}));
      key.part = part;
      StageTimes times;
      const ImageView image{PixelLayout::kGray, {width, height}, {white.data()}, {width}};
      ASSERT_TRUE(plan.Apply(image, key, *workspace, {.row = row.data()}, times).ok());
      EncodedImage of_mask{.piece = 1, .bytes = file.span(), .key = key};
      of_mask.to.row = mask.data();
      ASSERT_TRUE(plan.Apply(of_mask, *workspace, times).ok());
    }
    for (size_t i = 0; i < row.size() / 3; ++i) {
      if (row[3 * i] != 0) continue;
      ASSERT_TRUE(mask[2 * i] == 0xff && mask[2 * i + 1] == 0xff) << n << " at " << i;
      ++outside;
    }
  }
  EXPECT_GT(outside, static_cast<size_t>(testing::Effort(300)));
}

// ---- Objects.

using BoxRow = std::array<float, 4>;
using PointRow = std::array<float, 6>;

struct MosaicObjects {
  std::vector<BoxRow> boxes{};
  std::vector<PointRow> points{};
  std::vector<int32_t> numbers{};
};

std::vector<ObjectField> MosaicFields() {
  return {{.kind = ObjectField::Kind::kValue, .bytes = 4},
          {.kind = ObjectField::Kind::kBoxes, .bytes = 16},
          {.kind = ObjectField::Kind::kKeypoints, .bytes = 24, .flip_pairs = {1, 0}}};
}

// Boxes lie within the image, as a rule.
MosaicObjects RandomObjects(Random& random, ImageSize size, int number) {
  MosaicObjects objects;
  for (int n = random.Between(0, 5); n > 0; --n) {
    const int beyond = random.OneIn(6) ? 20 : 0;
    const auto pair = [&](int side) {
      const int a = random.Between(-beyond, side + beyond), b = random.Between(0, side);
      return std::pair(static_cast<float>(std::min(a, b)), static_cast<float>(std::max(a, b)));
    };
    const auto [left, right] = pair(size.width);
    const auto [top, bottom] = pair(size.height);
    objects.boxes.push_back({left, top, right, bottom});
    objects.points.push_back({left, top, 2, right, bottom, random.OneIn(4) ? 0.0f : 1.0f});
    objects.numbers.push_back(number++);
  }
  return objects;
}

double Between(double value, double most) { return std::min(std::max(value, 0.0), most); }

// Whether a point is inside, 1, or outside, 0; NaN if it is on the edge but for rounding, so that
// it may be either.
double IsSeen(double x, double y, const Rect& inside) {
  const double depth = std::min(
      {x - inside.x, inside.x + inside.width - x, y - inside.y, inside.y + inside.height - y});
  return std::abs(depth) < 1e-9 ? std::nan("") : depth > 0 ? 1 : 0;
}

// Moves the objects of one image as the canvas says, turns them, and appends those that are kept.
void AddMoved(const MosaicObjects& from, const Pasted& at, ImageSize image, int size,
              const DrawnMosaic& drawn, const std::array<bool, 2>& flips, MosaicObjects& to) {
  const double sx = static_cast<double>(at.whole.width) / image.width;
  const double sy = static_cast<double>(at.whole.height) / image.height;
  const Rect& kept = at.kept;
  const Turn turn(drawn);
  const auto turned = [&](double x, double y) {
    if (!drawn.turns()) return std::array{x, y};
    const auto [u, v] = turn.Moved(x - drawn.middle_x, y - drawn.middle_y);
    return std::array{drawn.middle_x + u, drawn.middle_y + v};
  };
  for (size_t i = 0; i < from.boxes.size(); ++i) {
    const BoxRow& b = from.boxes[i];
    const auto x = [&](float v) { return v * sx + at.whole.x; };
    const auto y = [&](float v) { return v * sy + at.whole.y; };
    const auto on_canvas_x = [&](float v) { return Between(x(v) - kept.x, kept.width) + kept.x; };
    const auto on_canvas_y = [&](float v) { return Between(y(v) - kept.y, kept.height) + kept.y; };
    std::array<double, 4> box{on_canvas_x(b[0]), on_canvas_y(b[1]), on_canvas_x(b[2]),
                              on_canvas_y(b[3])};
    const double area = (box[2] - box[0]) * (box[3] - box[1]);
    const std::array corners{turned(box[0], box[1]), turned(box[2], box[1]), turned(box[0], box[3]),
                             turned(box[2], box[3])};
    for (size_t axis = 0; axis < 2; ++axis) {
      const auto along = [axis](const auto& corner) { return corner[axis]; };
      const auto [least, most] = std::ranges::minmax(corners, {}, along);
      box[axis] = Between(least[axis], size), box[2 + axis] = Between(most[axis], size);
    }
    const double width = box[2] - box[0], height = box[3] - box[1];
    if (!(width > 2 && height > 2 && width * height > 0.1 * area)) continue;
    if (!(width / height < 100 && height / width < 100)) continue;
    std::array<std::array<double, 3>, 2> points{};
    for (size_t p = 0; p < 2; ++p) {
      const double px = x(from.points[i][3 * p]), py = y(from.points[i][3 * p + 1]);
      const auto [to_x, to_y] = turned(px, py);
      const double on_canvas = IsSeen(px, py, kept),
                   in_row = IsSeen(to_x, to_y, {0, 0, size, size});
      if (from.points[i][3 * p + 2] == 0 || on_canvas == 0 || in_row == 0) continue;
      points[p] = {to_x, to_y, from.points[i][3 * p + 2]};
      if (std::isnan(on_canvas + in_row)) points[p].fill(std::nan(""));
    }
    if (flips[0]) box = {size - box[2], box[1], size - box[0], box[3]};
    if (flips[1]) box = {box[0], size - box[3], box[2], size - box[1]};
    for (auto& [px, py, v] : points) {
      if (v != 0 && flips[0]) px = size - px;
      if (v != 0 && flips[1]) py = size - py;
    }
    if (flips[0] != flips[1]) std::swap(points[0], points[1]);
    BoxRow row;
    for (size_t k = 0; k < 4; ++k) row[k] = static_cast<float>(box[k]);
    PointRow pair;
    for (size_t k = 0; k < 6; ++k) pair[k] = static_cast<float>(points[k / 3][k % 3]);
    to.boxes.push_back(row);
    to.points.push_back(pair);
    to.numbers.push_back(from.numbers[i]);
  }
}

template <typename Rows>
std::span<const uint8_t> BytesOf(const Rows& rows) {
  return {reinterpret_cast<const uint8_t*>(rows.data()), rows.size() * sizeof(rows[0])};
}

template <size_t count>
void ExpectNear(const std::vector<std::array<float, count>>& made,
                const std::vector<std::array<float, count>>& wanted) {
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) {
    for (size_t k = 0; k < count; ++k) {
      if (std::isnan(wanted[i][k])) continue;
      ASSERT_NEAR(made[i][k], wanted[i][k], 1e-3) << i << " " << k;
    }
  }
}

TEST(Mosaic, MovesObjectsAsOnTheCanvas) {
  Random random(9);
  MemoryBudget budget(256 << 20);
  size_t kept_in_all = 0, dropped = 0;
  for (int n = 0; n < testing::Effort(3000); ++n) {
    std::vector<Transform> list{random.OneIn(2) ? RandomMosaic(random, 200)
                                                : RandomTurned(random, 200)};
    if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
    if (random.OneIn(2)) list.emplace_back(RandomVerticalFlip{});
    auto& mosaic = std::get<Mosaic>(list[0]);
    const bool turns = mosaic.degrees + mosaic.shear + mosaic.perspective > 0;
    if (!turns && random.OneIn(3)) mosaic.n = 9;
    const Plan plan = Plan::Compile(list, {.objects = MosaicFields()}).value();
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    RandomStream stream(key, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, stream);
    MosaicObjects made, wanted;
    made.boxes.resize(45);
    made.points.resize(45);
    made.numbers.resize(45);
    int64_t kept = -1;
    std::vector<uint8_t> row(plan.row_bytes());
    const auto workspace = plan.MakeWorkspace(budget);
    const std::vector<uint32_t> parts = PartsIn(plan, key);
    std::vector<ImageSize> sizes;
    for (uint32_t part = 0; part < PartsOf(mosaic, drawn); ++part) {
      const ImageSize size{random.Between(1, 90), random.Between(1, 90)};
      sizes.push_back(size);
      const Naive image = NoisyImage(random, size);
      const MosaicObjects objects = RandomObjects(random, size, static_cast<int>(100 * part));
      DrawKey of_part = key;
      of_part.part = part;
      DrawnSample sample;
      ASSERT_TRUE(plan.Draw(of_part, size, sample).ok());
      std::array flips{sample.geometry.mirror_columns, sample.geometry.mirror_rows};
      for (const DrawnStep& each : sample.steps) {
        const auto* const mirror = std::get_if<Mirror>(&each.step);
        if (mirror != nullptr) flips[0] ^= mirror->columns, flips[1] ^= mirror->rows;
      }
      const bool seen = std::ranges::find(parts, part) != parts.end();
      if (seen || !drawn.turns()) {  // the box of a turned box may be in the row, without its image
        AddMoved(objects, PastedAt(mosaic, drawn, part, sizes), size, mosaic.size, drawn, flips,
                 wanted);
      }
      if (!seen) continue;
      dropped += objects.numbers.size();
      const std::array<std::span<const uint8_t>, 3> from{
          BytesOf(objects.numbers), BytesOf(objects.boxes), BytesOf(objects.points)};
      const std::array<void*, 3> to{made.numbers.data(), made.boxes.data(), made.points.data()};
      const ObjectRows rows{from, to, &kept, static_cast<uint32_t>(objects.numbers.size())};
      OutputRows output{.row = row.data()};
      output.objects = &rows;
      StageTimes times;
      ASSERT_TRUE(plan.Apply(ViewOf(image), of_part, *workspace, output, times).ok());
    }
    kept_in_all += wanted.numbers.size();
    made.numbers.resize(static_cast<size_t>(kept));
    made.boxes.resize(made.numbers.size());
    made.points.resize(made.numbers.size());
    ASSERT_EQ(made.numbers, wanted.numbers) << n;
    ExpectNear(made.boxes, wanted.boxes);
    ExpectNear(made.points, wanted.points);
  }
  EXPECT_GT(kept_in_all, dropped / 5);
  EXPECT_LT(kept_in_all, dropped * 4 / 5);
}

TEST(Mosaic, WritesSharesOfTheRow) {
  const Plan plan = Plan::Compile({Mosaic{.size = 100, .scale = 0, .translate = 0, .p = 0},
                                   ConvertBoundingBoxFormat{BoxFormat::kXywh, true}},
                                  {.objects = {{.kind = ObjectField::Kind::kBoxes, .bytes = 16}}})
                        .value();
  Random random(1);
  const Naive image = NoisyImage(random, {50, 25});  // becomes 100 × 50, in rows 25 to 75
  const std::vector<BoxRow> boxes{{0, 0, 25, 25}};
  std::vector<BoxRow> made(1);
  const std::array<std::span<const uint8_t>, 1> from{BytesOf(boxes)};
  const std::array<void*, 1> to{made.data()};
  int64_t kept = 0;
  const ObjectRows rows{from, to, &kept, 1};
  std::vector<uint8_t> row(plan.row_bytes());
  OutputRows output{.row = row.data()};
  output.objects = &rows;
  MemoryBudget budget(64 << 20);
  StageTimes times;
  ASSERT_TRUE(plan.Apply(ViewOf(image), {}, *plan.MakeWorkspace(budget), output, times).ok());
  ASSERT_EQ(kept, 1);
  EXPECT_EQ(made[0], (BoxRow{0, 0.25f, 0.5f, 0.5f}));
}

// ---- The samples of a row.

TEST(Mosaic, DrawsSamplesOfAllAndLeavesOutThoseWithoutPixels) {
  const Plan plan = Plan::Compile({Mosaic{.size = 64}}).value();
  constexpr uint64_t kSamples = 5;
  std::array<int, kSamples> times{};
  int left_out = 0, differ = 0;
  for (uint64_t position = 0; position < 2000; ++position) {
    const DrawKey key{1, 2, position};
    const RowSamples row = plan.SamplesOf(key, 77, kSamples, 0);
    const std::span<const RowPart> parts = row.all();
    ASSERT_FALSE(parts.empty());
    EXPECT_EQ(parts[0].part, 0u);
    EXPECT_EQ(parts[0].sample, 77u);
    for (size_t i = 1; i < parts.size(); ++i) {
      EXPECT_GT(parts[i].part, parts[i - 1].part);
      ++times[parts[i].sample];
    }
    left_out += static_cast<int>(kMosaicParts - parts.size());
    for (uint32_t part = 1; part < kMosaicParts; ++part) {  // those without pixels, and no other
      DrawKey of_part = key;
      of_part.part = part;
      DrawnSample drawn;
      ASSERT_TRUE(plan.Draw(of_part, {9, 9}, drawn).ok());
      EXPECT_EQ(std::ranges::find(parts, part, &RowPart::part) == parts.end(),
                IsEmpty(drawn.placed->part));
    }
    const RowSamples again = plan.SamplesOf(key, 77, kSamples, 1);
    ASSERT_EQ(again.count, row.count);
    differ += !std::ranges::equal(parts, again.all(), {}, &RowPart::sample, &RowPart::sample);
  }
  for (const int count : times) EXPECT_NEAR(count, (6000 - left_out) / 5, 150);
  EXPECT_GT(left_out, 200);
  EXPECT_GT(differ, 1900);
}

TEST(Mosaic, OfNineHasNineSamples) {
  const Plan plan = Plan::Compile({Mosaic{.size = 64, .p = 0.5, .n = 9}}).value();
  constexpr uint64_t kSamples = 5;
  std::array<int, kSamples> times{};
  int several = 0;
  for (uint64_t position = 0; position < 2000; ++position) {
    const RowSamples row = plan.SamplesOf({1, 2, position}, 77, kSamples, 0);
    EXPECT_TRUE(row.count == 1 || row.count == 9);
    several += row.count == 9;
    for (uint32_t i = 1; i < row.count; ++i) {
      EXPECT_EQ(row.parts[i].part, i);
      ++times[row.parts[i].sample];
    }
  }
  EXPECT_NEAR(several, 1000, 80);
  for (const int count : times) EXPECT_NEAR(count, several * 8 / 5, 200);
}

// The images cover each pixel of the row once, for any sizes.
TEST(Mosaic, NineImagesDivideARow) {
  Random random(4);
  for (int n = 0; n < 2000; ++n) {
    Mosaic mosaic = RandomMosaic(random);
    mosaic.n = 9;
    RandomStream stream({1, 2, static_cast<uint64_t>(n)}, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, stream);
    std::vector<int> owners(static_cast<size_t>(mosaic.size * mosaic.size));
    std::vector<ImageSize> sizes;
    for (uint32_t part = 0; part < PartsOf(mosaic, drawn); ++part) {
      const ImageSize size{random.Between(1, 90), random.Between(1, 90)};
      const PlacedImage at = PlaceImage(mosaic, drawn, part, size, false, sizes);
      sizes.push_back(size);
      EXPECT_EQ(at.whole, PastedAt(mosaic, drawn, part, sizes).whole);
      const Rect row{0, 0, mosaic.size, mosaic.size};
      EXPECT_EQ(drawn.several ? Overlap(at.whole, at.part) : Overlap(at.whole, row),
                Overlap(at.whole, row));
      ASSERT_TRUE(IsEmpty(at.part) || Overlap(at.part, row) == at.part);
      for (int y = at.part.y; y < at.part.y + at.part.height; ++y) {
        for (int x = at.part.x; x < at.part.x + at.part.width; ++x) {
          ++owners[static_cast<size_t>(y * mosaic.size + x)];
        }
      }
    }
    for (const int count : owners) ASSERT_EQ(count, 1) << n;
  }
}

TEST(Mosaic, IsLeftOutWithItsProbability) {
  const Plan plan = Plan::Compile({Mosaic{.size = 64, .p = 0.25}}).value();
  int alone = 0;
  for (uint64_t position = 0; position < 2000; ++position) {
    alone += plan.SamplesOf({1, 2, position}, 3, 9, 0).count == 1;
  }
  EXPECT_NEAR(alone, 1500, 80);
}

// ---- What is refused.

std::string RefusalOf(std::vector<Transform> list, const PlanOptions& options = {}) {
  const Result<Plan> plan = Plan::Compile(std::move(list), options);
  return plan.ok() ? std::string() : plan.error().ToString();
}

TEST(Mosaic, RefusesWhatCannotFollowIt) {
  const Mosaic mosaic{.size = 64};
  EXPECT_EQ(RefusalOf({mosaic, ColorJitter{.brightness = {0.5, 1.5}}}), "");
  EXPECT_THAT(RefusalOf({mosaic, ColorJitter{.contrast = {0.5, 1.5}}}), HasSubstr("contrast"));
  EXPECT_THAT(RefusalOf({mosaic, RandomPhotometricDistort{}}), HasSubstr("(1, 1)"));
  const std::vector<Transform> others{Resize{.height = 9, .width = 9},
                                      CenterCrop{9, 9},
                                      RandomCrop{9, 9},
                                      Pad{{1, 1, 1, 1}},
                                      RandomResizedCrop{9, 9},
                                      PadTo{90, 90},
                                      RandomErasing{},
                                      GaussianBlur{3, 3},
                                      RandomEqualize{},
                                      RandomAutocontrast{},
                                      RandomAffine{},
                                      RandAugment{},
                                      RandomAdjustSharpness{2, 1},
                                      RandomZoomOut{},
                                      RandomApply{{RandomEqualize{}}, 0.5}};
  for (const Transform& other : others) {
    EXPECT_THAT(RefusalOf({mosaic, other}), HasSubstr("transforms[1]")) << NameOf(other);
  }
  EXPECT_THAT(RefusalOf({RandomHorizontalFlip{}, mosaic}), HasSubstr("Put it first"));
  EXPECT_THAT(RefusalOf({mosaic, mosaic}), HasSubstr("transforms[1]"));
  EXPECT_THAT(RefusalOf({Mosaic{.size = 64, .n = 5}}), HasSubstr("Give n as 4 or 9"));
  EXPECT_THAT(RefusalOf({Mosaic{.size = 64, .n = 3}}), HasSubstr("Give n as 4 or 9"));
  EXPECT_EQ(RefusalOf({Mosaic{.size = 64, .degrees = 9, .n = 9}}), "");
  EXPECT_THAT(RefusalOf({Mosaic{.size = 64, .degrees = 9, .n = 9}},
                        {.pieces = {{}, {Piece::Kind::kMask, 0}}}),
              HasSubstr("degrees"));
  EXPECT_THAT(RefusalOf({mosaic}, {.geometry = true}), HasSubstr("geometry"));
  EXPECT_THAT(RefusalOf({mosaic}, {.defer_to_device = true}), HasSubstr("device"));
  const PlanOptions keypoints{.objects = {{.kind = ObjectField::Kind::kKeypoints, .bytes = 12}}};
  EXPECT_THAT(RefusalOf({mosaic}, keypoints), HasSubstr("no boxes"));
  const Result<Plan> views = Plan::CompileViews({{mosaic}, {mosaic}});
  ASSERT_FALSE(views.ok());
  EXPECT_THAT(views.error().cause, HasSubstr("several views"));
}

}  // namespace
}  // namespace stoker
