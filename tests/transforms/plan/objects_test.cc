// Boxes and keypoints move with the image.
#include "transforms/plan/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/naive_objects.h"
#include "tests/transforms/plan/random_options.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using testing::BoxNumbers;
using testing::Converted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NaiveMoves;
using testing::NaiveObjects;
using testing::NaivePoint;
using testing::NoisyImage;
using testing::Random;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Boxes, two keypoints that a mirror exchanges, and the number of the object.
std::vector<ObjectField> AllFields(BoxFormat format = BoxFormat::kXyxy, bool normalized = false) {
  return {
      {.kind = ObjectField::Kind::kBoxes, .bytes = 16, .format = format, .normalized = normalized},
      {.kind = ObjectField::Kind::kValue, .bytes = 3},
      {.kind = ObjectField::Kind::kKeypoints,
       .bytes = 24,
       .normalized = normalized,
       .flip_pairs = {1, 0}}};
}

struct Objects {
  using Points = std::array<float, 6>;
  std::vector<std::array<float, 4>> boxes{};
  std::vector<std::array<uint8_t, 3>> values{};
  std::vector<Points> points{};

  size_t count() const { return boxes.size(); }
};

// Numbers the objects; those without keypoints get hidden ones.
Objects Numbered(std::vector<std::array<float, 4>> boxes,
                 std::vector<Objects::Points> points = {}) {
  Objects objects{.boxes = std::move(boxes), .points = std::move(points)};
  objects.points.resize(objects.count());
  for (size_t i = 0; i < objects.count(); ++i) {
    objects.values.push_back({static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8), 7});
  }
  return objects;
}

template <typename T>
std::span<const uint8_t> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// Applies a plan to images, and returns what has become of their objects.
class Applied {
 public:
  explicit Applied(const Plan& plan)
      : plan_(plan), workspace_(plan.MakeWorkspace(budget_)), row_(plan.row_bytes()) {}

  // Returns nullopt if the plan refuses the image.
  std::optional<Objects> To(const Objects& in, ImageSize size, const DrawKey& key) {
    Random random(1);
    const testing::Naive image = NoisyImage(random, size);
    Objects out = in;
    std::ranges::fill(out.values, std::array<uint8_t, 3>{255, 255, 255});
    const std::array<std::span<const uint8_t>, 3> from{BytesOf(in.boxes), BytesOf(in.values),
                                                       BytesOf(in.points)};
    const std::array<void*, 3> to{out.boxes.data(), out.values.data(), out.points.data()};
    int64_t kept = -1;
    const ObjectRows rows{from, to, &kept, static_cast<uint32_t>(in.count())};
    StageTimes times;
    OutputRows output{.row = row_.data(), .geometry = geometry_.data()};
    output.objects = &rows;
    if (!plan_.Apply(ViewOf(image), key, *workspace_, output, times).ok()) return std::nullopt;
    EXPECT_EQ(Redraw(image, key, from, rows.count), geometry_) << "of a further piece";
    EXPECT_LE(kept, static_cast<int64_t>(in.count()));
    out.boxes.resize(static_cast<size_t>(kept));
    out.values.resize(out.count());
    out.points.resize(out.count());
    return out;
  }

  // MapToRow of the last image.
  const std::array<float, 6>& geometry() const { return geometry_; }

 private:
  // Returns the geometry of a piece that writes no objects.
  std::array<float, 6> Redraw(const testing::Naive& image, const DrawKey& key,
                              std::span<const std::span<const uint8_t>> from, uint32_t count) {
    const ObjectRows rows{.from = from, .count = count};
    std::array<float, 6> geometry{};
    OutputRows output{.row = row_.data(), .geometry = geometry.data()};
    output.objects = &rows;
    StageTimes times;
    EXPECT_TRUE(plan_.Apply(ViewOf(image), key, *workspace_, output, times).ok());
    return geometry;
  }

  const Plan& plan_;
  MemoryBudget budget_{256 << 20};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_;
  std::vector<uint8_t> row_;
  std::array<float, 6> geometry_{};
};

Objects Moved(std::vector<Transform> list, const Objects& objects, ImageSize size,
              std::vector<ObjectField> fields = AllFields()) {
  const Plan plan = Plan::Compile(std::move(list), {.objects = std::move(fields)}).value();
  return Applied(plan).To(objects, size, {1, 0, 0}).value();
}

// ---- Compared with the twin.

float NextNumber(Random& random, int side) {
  if (random.OneIn(30)) return kNan;
  if (random.OneIn(30)) return random.OneIn(2) ? 3e38f : -1e30f;
  if (random.OneIn(8)) return static_cast<float>(random.Between(0, 1) * side);
  return static_cast<float>(random.Between(-side / 2, 2 * side)) + 0.25f;
}

Objects NextObjects(Random& random, ImageSize size, BoxFormat format) {
  std::vector<std::array<float, 4>> boxes;
  std::vector<Objects::Points> points;
  for (int n = random.OneIn(5) ? 0 : random.Between(1, 12); n > 0; --n) {
    const auto x = [&] { return NextNumber(random, size.width); };
    const auto y = [&] { return NextNumber(random, size.height); };
    std::array<float, 4> box{x(), y(), x(), y()};
    // In other formats, torchvision adds huge numbers to small ones and loses these, and two flips
    // make a left side of a NaN width.
    const bool loses = format != BoxFormat::kXyxy && std::ranges::any_of(box, [](float number) {
                         return !(std::abs(number) <= 1e6f);
                       });
    if (loses || !random.OneIn(4)) {  // an ordinary one
      const auto left = static_cast<float>(random.Between(0, size.width - 1));
      const auto top = static_cast<float>(random.Between(0, size.height - 1));
      box = {left, top, left + static_cast<float>(random.Between(1, size.width)),
             top + static_cast<float>(random.Between(1, size.height))};
      if (format != BoxFormat::kXyxy) box[2] -= left, box[3] -= top;
      if (format == BoxFormat::kCxcywh) box[0] += box[2] / 2, box[1] += box[3] / 2;
    }
    boxes.push_back(box);
    const auto seen = [&] { return static_cast<float>(random.Between(0, 2)); };
    points.push_back({x(), y(), seen(), x(), y(), seen()});
  }
  return Numbered(std::move(boxes), std::move(points));
}

NaiveObjects NaiveOf(const Objects& objects, ImageSize size, BoxFormat format) {
  NaiveObjects naive{.format = format, .canvas = size};
  for (size_t i = 0; i < objects.count(); ++i) {
    const auto& b = objects.boxes[i];
    const auto& p = objects.points[i];
    naive.boxes.push_back({b[0], b[1], b[2], b[3]});
    naive.points.push_back({p[0], p[1], p[2]});
    naive.points.push_back({p[3], p[4], p[5]});
    naive.kept.push_back(i);
  }
  return naive;
}

// Returns transforms that move pixels.
std::vector<Transform> NextMoves(Random& random) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(20, 70); };
  const auto geometry = [&] {
    switch (random.Between(0, 4)) {
      case 0:
        list.emplace_back(Pad{testing::NextMargins(random, random.OneIn(3) ? 0 : 9)});
        break;
      case 1:
        list.emplace_back(RandomCrop{.height = side(),
                                     .width = side(),
                                     .padding = testing::NextMargins(random, 5),
                                     .pad_if_needed = true});
        break;
      case 2:
        list.emplace_back(CenterCrop{side(), side()});
        break;
      case 3:
        list.emplace_back(RandomHorizontalFlip{});
        break;
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  };
  for (int n = random.Between(0, 3); n > 0; --n) geometry();
  if (random.OneIn(4)) list.emplace_back(RandomSizeCrop{12, side(), random.OneIn(2)});
  if (random.OneIn(4)) {
    const int most = random.OneIn(3) ? 0 : 100;
    if (random.OneIn(2)) {
      list.emplace_back(RandomShortestSize{{side(), side(), side()}, most});
    } else {
      list.emplace_back(ScaleJitter{side(), side()});
    }
    list.emplace_back(RandomCrop{.height = side(), .width = side(), .pad_if_needed = true});
  } else if (random.OneIn(2)) {
    list.emplace_back(RandomResizedCrop{side(), side()});
  } else {
    list.emplace_back(Resize{.height = side(), .width = side()});
  }
  for (int n = random.Between(0, 5); n > 0; --n) {
    if (random.OneIn(4)) {
      list.emplace_back(RandomPerspective{0.5});
    } else if (random.OneIn(3)) {
      list.emplace_back(RandomRotation{.degrees = {-90, 90}});
    } else if (random.OneIn(3)) {
      list.emplace_back(RandomAffine{.degrees = {-180, 180},
                                     .translate_x = 0.3,
                                     .translate_y = 0.2,
                                     .scale = {0.5, 2},
                                     .shear_x = {-30, 30},
                                     .shear_y = {-20, 0},
                                     .center_x = 7.5});
    } else {
      geometry();
    }
  }
  const auto of_objects = [&] {
    if (random.OneIn(3)) {
      const double least = random.Between(1, 9) + 0.3;
      return Transform(SanitizeBoundingBoxes{least, least * random.Between(1, 9)});
    }
    return Transform(ClampBoundingBoxes{});
  };
  while (random.OneIn(2)) {
    list.insert(list.begin() + random.Between(0, static_cast<int>(list.size())), of_objects());
  }
  if (random.OneIn(3)) list.emplace_back(ColorJitter{.brightness = {0.5, 1.5}});
  if (random.OneIn(4)) {
    list.emplace_back(ConvertBoundingBoxFormat{static_cast<BoxFormat>(random.Between(0, 2))});
  }
  if (random.OneIn(3)) list.emplace_back(PadTo{300, 300});
  return list;
}

RandomIoUCrop NextIoUCrop(Random& random) {
  RandomIoUCrop crop;
  if (random.OneIn(2)) crop.sampler_options = {0.2, 1.0 * random.Between(0, 1)};
  if (random.OneIn(2)) crop.trials = random.Between(1, 50);
  if (random.OneIn(3)) crop.min_scale = 0.01;
  return crop;
}

void ExpectNear(double value, double wanted, const char* what) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(value)) << what << " is " << value;
    return;
  }
  if (std::abs(wanted) > std::numeric_limits<float>::max()) {
    EXPECT_TRUE(std::isinf(value)) << what << " is " << value;
    return;
  }
  EXPECT_NEAR(value, wanted, 1e-4 + 1e-6 * std::abs(wanted)) << what;
}

void ExpectSame(const Objects& moved, const NaiveObjects& wanted) {
  ASSERT_EQ(moved.count(), wanted.boxes.size());
  for (size_t i = 0; i < moved.count(); ++i) {
    EXPECT_THAT(moved.values[i], ElementsAre(wanted.kept[i] % 256, wanted.kept[i] / 256, 7));
    // The plan keeps boxes as xyxy, where a NaN on one side makes the width NaN, too.
    const BoxNumbers box = Converted(Converted(wanted.boxes[i], wanted.format, BoxFormat::kXyxy),
                                     BoxFormat::kXyxy, wanted.format);
    for (size_t c = 0; c < 4; ++c) ExpectNear(moved.boxes[i][c], box[c], "a box's number");
    for (size_t p = 0; p < 2; ++p) {
      const NaivePoint& point = wanted.points[2 * i + p];
      const float* const at = &moved.points[i][3 * p];
      if (point.from_edge < 1e-6) continue;
      EXPECT_EQ(at[2], point.visibility);
      ExpectNear(at[0], point.visibility == 0 ? 0 : point.x, "x of a point");
      ExpectNear(at[1], point.visibility == 0 ? 0 : point.y, "y of a point");
    }
  }
}

TEST(Objects, MoveAsTorchvisionMovesThem) {
  Random random(21);
  int applied = 0;
  for (int n = 0; n < testing::Effort(4000); ++n) {
    const auto format = static_cast<BoxFormat>(random.Between(0, 2));
    std::vector<Transform> list = NextMoves(random);
    if (random.OneIn(3)) list.insert(list.begin() + random.OneIn(2), NextIoUCrop(random));
    if (random.OneIn(3)) list.insert(list.begin(), RandomZoomOut{.side_range = {1, 3}});
    const Result<Plan> plan = Plan::Compile(list, {.objects = AllFields(format)});
    if (!plan.ok()) continue;  // a crop that only adds a border
    const ImageSize size{random.Between(20, 90), random.Between(20, 90)};
    const Objects objects = NextObjects(random, size, format);
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    NaiveObjects naive = NaiveOf(objects, size, format);
    NaiveMoves moves(key, naive);
    for (const Transform& transform : list) moves.Apply(transform);
    const std::optional<Objects> moved = Applied(*plan).To(objects, size, key);
    ASSERT_TRUE(moved.has_value());
    ExpectSame(*moved, naive);
    ASSERT_FALSE(HasFailure()) << n << ": " << plan->Describe();
    ++applied;
  }
  EXPECT_GT(applied, testing::Effort(4000) / 2);
}

// The place of the crop is rounded to whole pixels of the row.
TEST(Objects, AreWithinAPixelOfTwoResizes) {
  Random random(23);
  int moved = 0;
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const auto side = [&] { return random.Between(20, 70); };
    std::vector<Transform> list;
    const auto flips = [&] {
      if (random.OneIn(3)) list.emplace_back(RandomHorizontalFlip{});
      if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
    };
    flips();
    const bool coloured = random.OneIn(3);
    if (coloured) list.emplace_back(RandomZoomOut{{9, 0, 0}, {1, 3}});
    if (coloured && random.OneIn(2)) list.emplace_back(Pad{{0, 3, 9, 1}, {9, 0, 0}});
    if (!coloured) list.emplace_back(RandomShortestSize{{side(), side()}});
    flips();
    list.emplace_back(RandomSizeCrop{14, side(), random.OneIn(2)});
    flips();
    list.emplace_back(Resize{.height = side(), .width = side()});
    const ImageSize size{random.Between(20, 90), random.Between(20, 90)};
    const auto x = [&] { return static_cast<float>(random.Between(0, size.width)); };
    const auto y = [&] { return static_cast<float>(random.Between(0, size.height)); };
    const Objects objects = Numbered({{x(), y(), x(), y()}, {x(), y(), x(), y()}});
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    NaiveObjects naive = NaiveOf(objects, size, BoxFormat::kXyxy);
    NaiveMoves moves(key, naive);
    for (const Transform& transform : list) moves.Apply(transform);
    const Plan plan = Plan::Compile(list, {.objects = AllFields()}).value();
    const std::optional<Objects> made = Applied(plan).To(objects, size, key);
    ASSERT_TRUE(made.has_value());
    for (size_t i = 0; i < 2; ++i) {
      const BoxNumbers& wanted = naive.boxes[i];
      if (wanted[0] == wanted[2] || wanted[1] == wanted[3]) continue;  // it may be in the padding
      for (size_t c = 0; c < 4; ++c) {
        ASSERT_NEAR(made->boxes[i][c], wanted[c], 1.01) << n << ": " << plan.Describe();
      }
      moved += made->boxes[i] != objects.boxes[i] ? 1 : 0;
    }
  }
  EXPECT_GT(moved, testing::Effort(2000) / 2);
}

// ---- Compared with where pixels go.

std::vector<Transform> NextOfAll(Random& random) {
  std::vector<Transform> list = NextMoves(random);
  std::erase_if(list, [](const Transform& transform) {
    const ActsOn acts_on = RowOf(transform).acts_on;
    return acts_on == ActsOn::kValues || acts_on == ActsOn::kObjects;
  });
  const RandomChoice flips{{RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, {}};
  const std::vector<Transform> others{
      RandomZoom{.height_factor = {-0.2, 0.3}},
      RandomTranslation{.height_factor = {-0.1, 0.1}, .width_factor = {-0.2, 0.2}},
      RandomShear{.x_factor = {-0.3, 0.3}},
      AutoAugment{},
      RandAugment{},
      TrivialAugmentWide{},
      flips,
      RandomApply{{RandomRotation{.degrees = {-20, 20}}, flips}, 0.7},
      RandomOrder{{RandomShear{.x_factor = {0, 0.2}}, flips, RandomGrayscale{}}}};
  for (int n = random.Between(0, 4); n > 0; --n) {
    list.push_back(others[static_cast<size_t>(random.Between(0, 8))]);
  }
  if (random.OneIn(2)) {
    const RandomChoice resized{{RandomShortestSize{{30, 50}}, Resize{.height = 60, .width = 45}}};
    list.insert(list.begin(), RandomApply{{resized, flips, RandomSizeCrop{20, 60}}, 0.8});
  }
  if (random.OneIn(4)) list.insert(list.begin(), RandomZoomOut{{5, 0, 9}, {1, 2}});
  return list;
}

TEST(Objects, PointsAreWhereThePixelsAre) {
  Random random(22);
  int seen = 0;
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const Result<Plan> plan = Plan::Compile(NextOfAll(random), {.objects = AllFields()});
    if (!plan.ok()) continue;
    const ImageSize size{random.Between(40, 90), random.Between(40, 90)};
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const auto x = static_cast<float>(size.width) / 2 + 1.5f,
               y = static_cast<float>(size.height) / 2;
    const Objects objects = Numbered({{x, y, x, y}}, {{x, y, 2, x, y, 1}});
    const Objects moved = Applied(*plan).To(objects, size, key).value();
    const GeometryMap map = MapToRow(testing::DrawnOf(*plan, key, size));
    const Objects::Points& points = moved.points[0];
    if (points[2] == 0) continue;  // it was outside at some time
    const auto [at_x, at_y] = stoker::Moved(map, x, y);
    ASSERT_NEAR(points[0], at_x, 1e-3) << plan->Describe();
    ASSERT_NEAR(points[1], at_y, 1e-3) << plan->Describe();
    EXPECT_NEAR(moved.boxes[0][0], at_x, 1e-3) << "an empty box";
    EXPECT_NEAR(moved.boxes[0][3], at_y, 1e-3) << "an empty box";
    ++seen;
  }
  EXPECT_GT(seen, testing::Effort(2000) / 8);
}

// ---- One property at a time.

TEST(Objects, ClampAfterEachTransform) {
  // A box that a crop cuts is not whole again after padding.
  const Objects moved =
      Moved({CenterCrop{10, 10}, Pad{{5, 5, 5, 5}}}, Numbered({{0, 0, 20, 20}}), {20, 20});
  EXPECT_THAT(moved.boxes, ElementsAre(ElementsAre(5, 5, 15, 15)));
}

TEST(Objects, AResizeAndAFlipDoNotClamp) {
  const Objects moved = Moved({Resize{.height = 20, .width = 40}, RandomHorizontalFlip{1}},
                              Numbered({{-5, 0, 25, 30}}), {20, 20});
  EXPECT_THAT(moved.boxes, ElementsAre(ElementsAre(-10, 0, 50, 30)));
}

TEST(Objects, EdgesOfTheImageStayItsEdges) {
  for (int width = 100; width < testing::Effort(1000); ++width) {
    const ImageSize size{width, 77};
    const Objects moved = Moved({Resize{.height = 64, .width = 64}},
                                Numbered({{0, 0, static_cast<float>(width), 77}}), size);
    ASSERT_THAT(moved.boxes, ElementsAre(ElementsAre(0, 0, 64, 64))) << width;
  }
}

TEST(Objects, NormalizedOnesBecomePixels) {
  const std::vector<Transform> list{Resize{.height = 50, .width = 100}};
  Objects objects = Numbered({{0.75f, 0.5f, 0.500002f, 0.5f}}, {{0.25f, 0.5f, 2, 0, 0, 0}});
  const Objects moved = Moved(list, objects, {40, 40}, AllFields(BoxFormat::kCxcywh, true));
  // Its right edge, at 1.000001, was rounded.
  EXPECT_THAT(moved.boxes[0][0] + moved.boxes[0][2] / 2, ::testing::FloatEq(100));
  EXPECT_THAT(moved.points, ElementsAre(ElementsAre(25, 25, 2, 0, 0, 0)));
  EXPECT_FLOAT_EQ(moved.boxes[0][3], 25);
}

TEST(Objects, AMirrorExchangesPairsOfPoints) {
  const Objects objects = Numbered({{0, 0, 1, 1}}, {{1, 2, 1, 8, 2, 2}});
  const CenterCrop whole{10, 10};
  EXPECT_THAT(Moved({whole, RandomHorizontalFlip{1}}, objects, {10, 10}).points,
              ElementsAre(ElementsAre(2, 2, 2, 9, 2, 1)));
  EXPECT_THAT(Moved({whole, RandomVerticalFlip{1}}, objects, {10, 10}).points,
              ElementsAre(ElementsAre(8, 8, 2, 1, 8, 1)));
  EXPECT_THAT(
      Moved({whole, RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, objects, {10, 10}).points,
      ElementsAre(ElementsAre(9, 8, 1, 2, 8, 2)));
}

TEST(Objects, PointsOutsideAreHiddenAndStayHidden) {
  const Objects objects = Numbered({{0, 0, 1, 1}}, {{1, 2, 1, 15, 5, 2}});
  EXPECT_THAT(Moved({CenterCrop{10, 10}, Pad{{5, 5, 5, 5}}}, objects, {20, 10}).points,
              ElementsAre(ElementsAre(0, 0, 0, 15, 10, 2)));
}

// tests/python/transforms/test_torchvision_warps.py compares what is moved with torchvision's.
TEST(Objects, ElasticKeepsNanAndClampsHugeNumbers) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Objects objects =
      Numbered({{kNan, 2, 8, 8}, {-kInfinite, -kInfinite, kInfinite, kInfinite}, {0, 0, 10, 10}},
               {{1, 1, 1, kNan, 2, 2}, {-1, 1, 1, kMost, 2, 2}, {}});
  const Objects moved =
      Moved({Resize{.height = 10, .width = 10}, ElasticTransform{0, 0}}, objects, {10, 10});
  for (const float number : moved.boxes[0]) EXPECT_TRUE(std::isnan(number));
  EXPECT_THAT(moved.boxes[1], ElementsAre(0, 0, 9, 9));
  EXPECT_THAT(moved.boxes[2], ElementsAre(0, 0, 9, 9));
  EXPECT_THAT(moved.points[0], ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(moved.points[1], ElementsAre(0, 1, 1, 9, 2, 2));
}

TEST(Objects, AnElasticTransformHidesNoEarlierFailure) {
  const std::vector<Transform> held{GaussianBlur{23, 23}, ElasticTransform{}};
  const Objects one = Numbered({{1, 1, 9, 9}});
  for (const Transform& both : {Transform(RandomApply{held, 1}), Transform(RandomOrder{held})}) {
    const Plan plan = Plan::Compile({both, PadTo{30, 30}}, {.objects = AllFields()}).value();
    Applied applied(plan);
    EXPECT_TRUE(applied.To(one, {30, 30}, {}));
    for (uint64_t n = 0; n < 8; ++n) EXPECT_FALSE(applied.To(one, {10, 10}, {1, 0, n}));
  }
}

TEST(Objects, SanitizingDropsThemWithAllThatTheyHave) {
  const float nan = kNan;
  const Objects objects = Numbered({{2, 2, 8, 8},      // kept
                                    {2, 2, 2.5f, 8},   // narrow
                                    {8, 2, 2, 8},      // inverted
                                    {2, 2, 5, 4.9f},   // small
                                    {nan, 2, 8, 8},    //
                                    {1, 1, 10.5f, 9},  // outside
                                    {3, 2, 9, 8}},     // kept
                                   {{1, 1, 1, 2, 2, 2}, {}, {}, {}, {}, {}, {3, 3, 1, 4, 4, 2}});
  const Objects moved = Moved({SanitizeBoundingBoxes{1, 9}, CenterCrop{10, 10}}, objects, {10, 10});
  EXPECT_THAT(moved.boxes, ElementsAre(ElementsAre(2, 2, 8, 8), ElementsAre(3, 2, 9, 8)));
  EXPECT_THAT(moved.values, ElementsAre(ElementsAre(0, 0, 7), ElementsAre(6, 0, 7)));
  EXPECT_THAT(moved.points,
              ElementsAre(ElementsAre(1, 1, 1, 2, 2, 2), ElementsAre(3, 3, 1, 4, 4, 2)));
}

// Whether a box survives must not depend on a mirror.
TEST(Objects, SanitizingForgivesRoundingsAtEachEdge) {
  const Objects objects = Numbered(
      {{-0.0009f, -0.0009f, 10.0009f, 10.0009f}, {0, 0, 10.002f, 10}, {-0.002f, 0, 10, 10}});
  for (const double mirror : {0, 1}) {
    const Objects moved = Moved({Resize{.height = 10, .width = 10}, RandomHorizontalFlip{mirror},
                                 RandomVerticalFlip{mirror}, SanitizeBoundingBoxes{}},
                                objects, {10, 10});
    EXPECT_THAT(moved.boxes, ElementsAre(ElementsAre(0, 0, 10, 10)));
  }
}

TEST(Objects, AreWrittenInTheFormatThatIsAskedFor) {
  const Objects objects = Numbered({{2, 4, 8, 6}});
  const CenterCrop whole{10, 20};
  const PadTo pad{40, 40};
  const auto written = [&](std::vector<Transform> list) {
    return Moved(std::move(list), objects, {20, 10}).boxes[0];
  };
  using Convert = ConvertBoundingBoxFormat;
  EXPECT_THAT(written({whole, Convert{BoxFormat::kXywh}}), ElementsAre(2, 4, 6, 2));
  EXPECT_THAT(written({whole, Convert{BoxFormat::kXywh}, Convert{BoxFormat::kCxcywh}, pad}),
              ElementsAre(5, 5, 6, 2));
  EXPECT_THAT(written({whole, Convert{BoxFormat::kXyxy, true}, pad}),
              ElementsAre(0.1f, 0.4f, 0.4f, 0.6f));
  EXPECT_THAT(written({whole, pad, Convert{BoxFormat::kXywh, true}}),
              ElementsAre(0.05f, 0.1f, 0.15f, 0.05f));
  EXPECT_THAT(written({pad, Convert{BoxFormat::kXywh, true}, SanitizeBoundingBoxes{}}),
              ElementsAre(0.05f, 0.1f, 0.15f, 0.05f));
}

TEST(Objects, TransformsOfThemChangeNoDraws) {
  const std::vector<Transform> list{RandomCrop{.height = 30, .width = 30}, RandomHorizontalFlip{},
                                    RandomResizedCrop{20, 20}, RandomErasing{}};
  const std::vector<Transform> of_objects{SanitizeBoundingBoxes{}, ClampBoundingBoxes{},
                                          ConvertBoundingBoxFormat{}};
  std::vector<Transform> longer;
  for (const Transform& transform : list) {
    longer.insert(longer.end(), of_objects.begin(), of_objects.begin() + 2);
    longer.push_back(transform);
  }
  longer.push_back(of_objects[2]);
  const Plan plain = Plan::Compile(list).value();
  const Plan plan = Plan::Compile(longer, {.objects = AllFields()}).value();
  for (uint64_t n = 0; n < 20; ++n) {
    const DrawnSample a = testing::DrawnOf(plain, {1, 0, n}, {40, 50});
    const DrawnSample b = testing::DrawnOf(plan, {1, 0, n}, {40, 50});
    EXPECT_EQ(a.geometry, b.geometry);
    ASSERT_EQ(a.erasures.size(), b.erasures.size());
    if (a.erasures.empty()) continue;
    EXPECT_EQ(a.erasures[0].box, b.erasures[0].box);
  }
}

// The part that is decoded is the one to which boxes are moved.
TEST(Objects, AnIoUCropDecodesItsPart) {
  const Plan plan = Plan::Compile({RandomIoUCrop{.max_scale = 0.9, .sampler_options = {0.1}},
                                   Resize{.height = 40, .width = 50}},
                                  {.objects = AllFields()})
                        .value();
  Applied applied(plan);
  int cut = 0;
  for (uint64_t n = 0; n < 50; ++n) {
    const Objects objects = Numbered({{20, 20, 60, 60}, {70, 70, 80, 80}},
                                     {{40, 41, 2, 42, 43, 2}, {75, 75, 2, 75, 75, 2}});
    const Objects moved = applied.To(objects, {100, 90}, {1, 0, n}).value();
    const std::array<float, 6>& map = applied.geometry();
    EXPECT_GT(map[0], 50.0 / 100);
    ASSERT_GE(moved.count(), 1u);
    cut += moved.count() == 1 ? 1 : 0;
    const size_t first = moved.values[0][0];
    const Objects::Points& from = objects.points[first];
    EXPECT_NEAR(moved.points[0][0], map[0] * from[0] + map[2], 1e-3);
    EXPECT_NEAR(moved.points[0][1], map[4] * from[1] + map[5], 1e-3);
  }
  EXPECT_GT(cut, 5);
  EXPECT_LT(cut, 50);
}

TEST(Objects, AnImageWithoutThemIsNotCutByThem) {
  const Plan plan =
      Plan::Compile({RandomIoUCrop{.max_scale = 0.5}, Resize{.height = 40, .width = 50}},
                    {.objects = AllFields()})
          .value();
  Applied applied(plan);
  EXPECT_EQ(applied.To({}, {100, 80}, {})->count(), 0u);
  EXPECT_THAT(applied.geometry(), ElementsAre(0.5f, 0, 0, 0, 0.5f, 0));
  // Its center is in no part.
  const Objects far = Numbered({{200, 0, 300, 9}});
  EXPECT_EQ(applied.To(far, {100, 80}, {})->count(), 1u);
  EXPECT_THAT(applied.geometry(), ElementsAre(0.5f, 0, 0, 0, 0.5f, 0));
}

TEST(Objects, RowsThatDependOnThemAreNotKnownBefore) {
  const std::vector<Transform> list{RandomIoUCrop{}, Resize{.height = 40, .width = 50}};
  const Plan plan = Plan::Compile(list, {.objects = AllFields()}).value();
  EXPECT_EQ(plan.RowsOf({}, {100, 80}, Orientation::kNormal), std::nullopt);
  const Plan without = Plan::Compile({list[1]}, {.objects = AllFields()}).value();
  EXPECT_NE(without.RowsOf({}, {100, 80}, Orientation::kNormal), std::nullopt);
}

TEST(Objects, ASampleMayHaveNone) {
  const Plan plan = Plan::Compile({CenterCrop{8, 8}}, {.objects = AllFields()}).value();
  Applied applied(plan);
  EXPECT_EQ(applied.To({}, {20, 10}, {})->count(), 0u);
  EXPECT_EQ(applied.To(Numbered({{0, 0, 9, 9}}), {20, 10}, {})->count(), 1u);
}

TEST(Objects, MemoryIsWithinThePlan) {
  PlanOptions options{.objects = AllFields()};
  const Plan without = Plan::Compile({CenterCrop{8, 8}}, options).value();
  options.max_objects = 10000;
  const Plan with = Plan::Compile({CenterCrop{8, 8}}, options).value();
  EXPECT_GT(with.extra_bytes(), without.extra_bytes() + 2 * 10000 * (32 + 2 * 20));
}

// ---- What a plan refuses.

std::string CauseOf(std::vector<Transform> list, std::vector<ObjectField> fields = AllFields()) {
  const Result<Plan> plan = Plan::Compile(std::move(list), {.objects = std::move(fields)});
  return plan.ok() ? "" : plan.error().cause;
}

TEST(Objects, AreNotRepeatedByPadding) {
  const CenterCrop crop{9, 9};
  constexpr Padding kReflect = Padding::kReflect;
  const Pad pad{{1, 1, 1, 1}, {}, kReflect};
  const RandomCrop around{
      .height = 9, .width = 9, .padding = {1, 1, 1, 1}, .padding_mode = kReflect};
  EXPECT_THAT(CauseOf({crop, pad}), HasSubstr("would show objects again"));
  EXPECT_THAT(CauseOf({crop, around}), HasSubstr("would show objects again"));
  const std::vector<ObjectField> values{{.kind = ObjectField::Kind::kValue, .bytes = 8}};
  EXPECT_EQ(CauseOf({crop, pad}, values), "");
  EXPECT_EQ(CauseOf({crop, Pad{{}, {}, kReflect}}), "");
}

TEST(Objects, FieldsAreChecked) {
  const auto cause = [](const ObjectField& field) { return CauseOf({CenterCrop{9, 9}}, {field}); };
  using Kind = ObjectField::Kind;
  EXPECT_EQ(cause({.kind = Kind::kBoxes, .bytes = 12}), "objects[0]: a box is not 4 float32");
  EXPECT_EQ(cause({.kind = Kind::kKeypoints, .bytes = 16}),
            "objects[0]: a keypoint is not 3 float32");
  EXPECT_THAT(cause({.kind = Kind::kKeypoints, .bytes = 24, .flip_pairs = {0}}),
              HasSubstr("not one number for each keypoint"));
  EXPECT_THAT(cause({.kind = Kind::kKeypoints, .bytes = 24, .flip_pairs = {1, 1}}),
              HasSubstr("do not form pairs"));
  EXPECT_THAT(cause({.kind = Kind::kKeypoints, .bytes = 24, .flip_pairs = {0, 2}}),
              HasSubstr("do not form pairs"));
  const ObjectField boxes{.kind = Kind::kBoxes, .bytes = 16};
  EXPECT_EQ(CauseOf({CenterCrop{9, 9}}, {boxes, boxes}), "objects[1]: a second field has boxes");
}

TEST(Objects, TransformsOfBoxesNeedThem) {
  const Resize resize{.height = 9, .width = 9};
  const std::vector<ObjectField> values{{.kind = ObjectField::Kind::kValue, .bytes = 8}};
  for (const Transform& transform :
       std::vector<Transform>{SanitizeBoundingBoxes{}, ClampBoundingBoxes{}, RandomIoUCrop{}}) {
    EXPECT_EQ(CauseOf({transform, resize}), "");
    for (const auto& fields : {values, std::vector<ObjectField>{}}) {
      EXPECT_EQ(
          CauseOf({transform, resize}, fields),
          std::string("transforms[0], ") + NameOf(transform) + ": samples have no boxes here");
    }
  }
  EXPECT_THAT(CauseOf({resize, ConvertBoundingBoxFormat{}}, values), HasSubstr("have no boxes"));
}

// Images after it differ in size: padding would need a step on a photograph of any size.
TEST(Objects, AnIoUCropIsFollowedByAResize) {
  const CenterCrop center{9, 9};
  const std::string unknown =
      "images differ in size after transforms[0], RandomIoUCrop, and may be smaller";
  EXPECT_THAT(CauseOf({RandomIoUCrop{}, center}), HasSubstr(unknown));
  EXPECT_THAT(CauseOf({RandomIoUCrop{}, Pad{{1, 1, 1, 1}}, Resize{.size = 9}, center}),
              HasSubstr(unknown));
  EXPECT_THAT(
      CauseOf({RandomIoUCrop{}, RandomCrop{.height = 9, .width = 9, .pad_if_needed = true}}),
      HasSubstr(unknown));
  EXPECT_THAT(CauseOf({RandomIoUCrop{}, RandomHorizontalFlip{}}), HasSubstr("the same size"));
  EXPECT_THAT(CauseOf({RandomResizedCrop{9, 9}, RandomIoUCrop{}}), HasSubstr("the same size"));
  EXPECT_THAT(CauseOf({Resize{.height = 9, .width = 9}, RandomIoUCrop{}}),
              HasSubstr("the same size"));
  EXPECT_THAT(CauseOf({center, RandomIoUCrop{}, ColorJitter{}}), HasSubstr("differ in size here"));
  EXPECT_EQ(CauseOf({center, RandomIoUCrop{}, ColorJitter{}, PadTo{9, 9}}), "");
  EXPECT_EQ(CauseOf({RandomIoUCrop{}, RandomCrop{.height = 9, .width = 9}}), "");
}

TEST(Objects, TheirFormatComesAfterAllThatMovesThem) {
  const CenterCrop crop{9, 9};
  const ConvertBoundingBoxFormat convert;
  for (const Transform& transform : std::vector<Transform>{
           Resize{.size = 9}, RandomHorizontalFlip{}, RandomApply{{RandomVerticalFlip{}}},
           RandomRotation{.degrees = {-9, 9}}, RandAugment{}}) {
    EXPECT_EQ(CauseOf({crop, convert, transform}),
              std::string("transforms[1], ConvertBoundingBoxFormat: transforms[2], ") +
                  NameOf(transform) + " comes after it");
  }
  EXPECT_EQ(CauseOf({crop, convert, ColorJitter{}, RandomErasing{}, PadTo{9, 9}, convert}), "");
}

TEST(Objects, HaveOneView) {
  const Result<Plan> plan =
      Plan::CompileViews({{CenterCrop{9, 9}}, {CenterCrop{8, 8}}}, {.objects = AllFields()});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Code::kUnimplemented);
}

}  // namespace
}  // namespace stoker
