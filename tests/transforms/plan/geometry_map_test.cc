// A point of the image is in the row where MapToRow says.
#include "transforms/plan/geometry_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using testing::DrawnOf;
using ::testing::ElementsAre;
using testing::Random;

constexpr double kSigma = 4;  // of a spot, in pixels

struct Point {
  double x = 0, y = 0;
};

Point Apply(const GeometryMap& map, Point p) {
  const double divisor = map[6] * p.x + map[7] * p.y + map[8];
  return {(map[0] * p.x + map[1] * p.y + map[2]) / divisor,
          (map[3] * p.x + map[4] * p.y + map[5]) / divisor};
}

// A black image with a soft white spot.
struct Spot {
  Spot(ImageSize of, Point at) : size(of), center(at) {
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        const double dx = x + 0.5 - center.x, dy = y + 0.5 - center.y;
        const double value = 255 * std::exp(-(dx * dx + dy * dy) / (2 * kSigma * kSigma));
        pixels.push_back(static_cast<uint8_t>(std::lround(value)));
      }
    }
  }
  ImageView view() const {
    return {.layout = PixelLayout::kGray,
            .size = size,
            .plane = {pixels.data()},
            .stride = {size.width}};
  }
  // Whether no step cuts off a part of it.
  bool StaysInside(const DrawnSample& drawn) const {
    DrawnSample part;
    part.geometry = drawn.geometry;
    ImageSize now = drawn.geometry.window.size();
    if (!IsInside(MapToRow(part), now)) return false;
    for (const DrawnStep& step : drawn.steps) {
      part.steps.push_back(step);
      if (const auto* reframe = std::get_if<Reframe>(&step.step)) now = reframe->window.size();
      if (!IsInside(MapToRow(part), now)) return false;
    }
    return true;
  }
  // Whether all of it is visible in an image of this size.
  bool IsInside(const GeometryMap& map, ImageSize row) const {
    for (int corner = 0; corner < 4; ++corner) {
      const double reach = 4 * kSigma;
      const Point p = Apply(map, {center.x + (corner % 2 == 0 ? -reach : reach),
                                  center.y + (corner / 2 == 0 ? -reach : reach)});
      if (p.x < 0 || p.y < 0 || p.x > row.width || p.y > row.height) return false;
    }
    return true;
  }

  ImageSize size;
  Point center;
  std::vector<uint8_t> pixels;
};

// Returns the center of mass of a row's first channel.
Point CenterOf(const std::vector<uint8_t>& row, ImageSize size) {
  Point sum;
  double mass = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const double value = row[static_cast<size_t>(3 * (y * size.width + x))];
      sum.x += value * (x + 0.5);
      sum.y += value * (y + 0.5);
      mass += value;
    }
  }
  return {sum.x / mass, sum.y / mass};
}

// Returns transforms that move pixels, and nothing else.
std::vector<Transform> NextMoves(Random& random) {
  constexpr Interpolation kBilinear = Interpolation::kBilinear;
  std::vector<Transform> list;
  const Fill fill{0, static_cast<uint8_t>(random.Between(0, 1)), 9};
  if (random.OneIn(2)) list.emplace_back(Pad{{3, random.Between(0, 9), 0, 5}, fill});
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(2)) {
    list.emplace_back(RandomCrop{.height = 90, .width = 100, .pad_if_needed = true, .fill = fill});
  }
  if (random.OneIn(2)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(2)) {
    list.emplace_back(RandomResizedCrop{.height = 96, .width = 80, .scale = {0.5, 1}});
  } else {
    list.emplace_back(Resize{.height = 70, .width = 120});
  }
  if (random.OneIn(3)) {
    list.emplace_back(RandomSizeCrop{60, 100, random.OneIn(2)});
    if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
    list.emplace_back(Resize{.height = 100, .width = 90});
  }
  for (int i = random.Between(0, 4); i > 0; --i) {
    switch (random.Between(0, 5)) {
      case 0:
        list.emplace_back(RandomAffine{.degrees = {-180, 180},
                                       .translate_x = 0.2,
                                       .translate_y = 0.1,
                                       .scale = {0.7, 1.4},
                                       .shear_x = {-20, 20},
                                       .shear_y = {-10, 0},
                                       .interpolation = kBilinear});
        break;
      case 1:
        list.emplace_back(RandomRotation{
            .degrees = {-30, 30}, .interpolation = kBilinear, .center_x = 20, .center_y = 31.5});
        break;
      case 2:
        list.emplace_back(RandomZoom{.height_factor = {-0.2, 0.3},
                                     .padding_mode = Padding::kConstant,
                                     .interpolation = kBilinear});
        break;
      case 3:
        list.emplace_back(CenterCrop{58, 62});
        break;
      case 4:
        list.emplace_back(RandomChoice{{RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, {}});
        break;
      default:
        list.emplace_back(RandomCrop{.height = 60, .width = 64, .pad_if_needed = true});
        break;
    }
  }
  if (random.OneIn(3)) list.emplace_back(PadTo{130, 140});
  return list;
}

TEST(GeometryMap, FollowsASpotThroughRandomTransforms) {
  Random random(7);
  int seen = 0;
  for (int n = 0; n < testing::Effort(400); ++n) {
    const Plan plan = Plan::Compile(NextMoves(random), {.geometry = true}).value();
    const Spot spot({random.Between(90, 160), random.Between(90, 160)},
                    {random.Between(30, 60) + 0.3, random.Between(30, 60) + 0.8});
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    const DrawnSample drawn = DrawnOf(plan, key, spot.size);
    const GeometryMap map = MapToRow(drawn);
    if (!spot.StaysInside(drawn)) continue;

    MemoryBudget budget(MemoryBudget::kNoLimit);
    const auto workspace = plan.MakeWorkspace(budget);
    std::vector<uint8_t> row(plan.row_bytes());
    std::array<float, 6> geometry{};
    std::array<int32_t, 2> original_size{};
    StageTimes times;
    ASSERT_TRUE(plan.Apply(spot.view(), key, *workspace,
                           {.row = row.data(),
                            .geometry = geometry.data(),
                            .original_size = original_size.data()},
                           times)
                    .ok());
    const Point at = Apply(map, spot.center), center = CenterOf(row, plan.output_size());
    EXPECT_NEAR(center.x, at.x, 0.35) << plan.Describe();
    EXPECT_NEAR(center.y, at.y, 0.35) << plan.Describe();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(geometry[i], static_cast<float>(map[i]));
    EXPECT_THAT(original_size, ElementsAre(spot.size.height, spot.size.width));
    ++seen;
  }
  EXPECT_GE(seen, testing::Effort(400) / 8);
}

TEST(GeometryMap, ScalesShiftsAndMirrors) {
  const Plan plan = Plan::Compile({Resize{.height = 50, .width = 100}, CenterCrop{40, 40},
                                   RandomHorizontalFlip{1}})
                        .value();
  const GeometryMap map = MapToRow(DrawnOf(plan, {1, 0, 0}, {200, 200}));
  // x / 2 − 30, mirrored in a width of 40; y / 4 − 5.
  EXPECT_THAT(map, ElementsAre(-0.5, 0, 70, 0, 0.25, -5, 0, 0, 1));
}

TEST(GeometryMap, OfAPerspectiveIsRefusedAsAColumn) {
  const std::vector<Transform> list{Resize{.height = 60, .width = 60},
                                    RandomApply{{RandomPerspective{}}, 0.5}};
  EXPECT_TRUE(Plan::Compile(list).ok());
  EXPECT_THAT(Plan::Compile(list, {.geometry = true}).error().cause,
              ::testing::HasSubstr("its map is a projective one"));
}

TEST(GeometryMap, OfAnElasticTransformIsRefused) {
  const std::vector<Transform> list{Resize{.height = 60, .width = 60}, ElasticTransform{}};
  EXPECT_TRUE(Plan::Compile(list).ok());
  EXPECT_THAT(Plan::Compile(list, {.geometry = true}).error().cause,
              ::testing::HasSubstr("each pixel differently"));
  PlanOptions shapes{.objects = {{.kind = ObjectField::Kind::kBoxes, .bytes = 16}}};
  EXPECT_TRUE(Plan::Compile(list, shapes).ok());
  shapes.draws_shapes = true;
  EXPECT_THAT(Plan::Compile(list, shapes).error().cause, ::testing::HasSubstr("straight"));
}

TEST(GeometryMap, IsUnchangedByColours) {
  const std::vector<Transform> moves{Resize{.height = 60, .width = 60},
                                     RandomRotation{.degrees = {30, 30}}};
  std::vector<Transform> all = moves;
  all.insert(all.begin() + 1, ColorJitter{.brightness = {0.5, 1.5}});
  all.emplace_back(GaussianBlur{3, 3});
  const auto map_of = [](const std::vector<Transform>& list) {
    return MapToRow(DrawnOf(Plan::Compile(list).value(), {1, 0, 0}, {90, 80}));
  };
  EXPECT_EQ(map_of(moves), map_of(all));
}

TEST(GeometryMap, IsNoNumberIfTheRowShowsALine) {
  DrawnSample drawn;
  drawn.geometry = {.box = {0, 0, 8, 8}, .resized = {8, 8}, .window = {0, 0, 8, 8}};
  drawn.steps.push_back({Affine{.matrix = {0, 0, 1, 0, 1, 0}}, 0});
  for (const double value : MapToRow(drawn)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace stoker
