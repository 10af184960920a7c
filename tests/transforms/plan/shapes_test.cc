// Masks are drawn from the shapes of objects, as their images are moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include "core/batch/object_shapes.h"
#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/padded_file.h"
#include "tests/transforms/plan/random_options.h"
#include "tests/transforms/shapes/golden_polygons.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/plan.h"
#include "transforms/shapes/polygon_fill.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::NoisyImage;
using testing::Random;

using Pixels = std::vector<uint8_t>;
using Points = std::vector<PlanePoint>;

size_t AreaOf(ImageSize size) {
  return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

Pixels PlainOf(const Points& points, ImageSize size) {
  Pixels pixels(AreaOf(size));
  FillPolygonPlain(points, size, pixels);
  return pixels;
}

// ---- Polygons in an image.

// Fills polygons into one plane, and checks what Close returns and leaves.
class Filled {
 public:
  explicit Filled(ImageSize size)
      : size_(size), scratch_(PolygonFill::ScratchBytes(size)), pixels_(AreaOf(size)) {}

  const Pixels& Add(const Points& points) {
    const Pixels before = pixels_;
    PolygonFill fill({pixels_.data(), size_}, scratch_.data());
    for (const PlanePoint& point : points) fill.Add(point.x, point.y);
    const Rect bounds = fill.Close();
    for (int y = 0; y < size_.height; ++y) {
      for (int x = 0; x < size_.width; ++x) {
        const auto at = static_cast<size_t>(y * size_.width + x);
        const bool within = x >= bounds.x && x < bounds.x + bounds.width && y >= bounds.y &&
                            y < bounds.y + bounds.height;
        EXPECT_TRUE(within || pixels_[at] == before[at]) << "outside of the bounds";
      }
    }
    EXPECT_EQ(std::ranges::count(scratch_, 0), static_cast<ptrdiff_t>(scratch_.size()));
    return pixels_;
  }

 private:
  ImageSize size_;
  Pixels scratch_;
  Pixels pixels_;
};

TEST(PolygonFill, DoesWhatPycocotoolsDoes) {
  std::istringstream lines(testing::kGoldenPolygons);
  ImageSize size;
  int polygons = 0;
  while (lines >> size.height >> size.width) {
    size_t count = 0;
    lines >> count;
    Points points(count / 2);
    for (PlanePoint& point : points) lines >> point.x >> point.y;
    lines >> count;
    Pixels wanted(AreaOf(size));
    size_t at = 0;
    for (size_t i = 0, run = 0; i < count; ++i) {
      lines >> run;
      for (; run > 0; --run, ++at) {
        const size_t height = static_cast<size_t>(size.height);
        wanted[at % height * static_cast<size_t>(size.width) + at / height] = i % 2;
      }
    }
    ASSERT_EQ(at, wanted.size());
    EXPECT_EQ(PlainOf(points, size), wanted) << polygons;
    EXPECT_EQ(Filled(size).Add(points), wanted) << polygons;
    ++polygons;
  }
  EXPECT_EQ(polygons, 120);
}

Points NextPolygon(Random& random, ImageSize size) {
  Points points;
  const int kind = random.Between(0, 3);
  for (int n = random.OneIn(10) ? random.Between(0, 2) : random.Between(3, 20); n > 0; --n) {
    const auto next = [&](int side) -> double {
      if (kind == 0) return random.Between(0, 2 * side) / 2.0;
      if (kind == 1) return random.Between(-20 * side, 40 * side) / 10.0;
      if (kind == 2) return random.Between(-1000, 1500);
      return random.Between(0, 1000 * side) / 1000.0;
    };
    points.push_back({next(size.width), next(size.height)});
    if (random.OneIn(8)) points.push_back(points.back());
  }
  return points;
}

TEST(PolygonFill, DoesWhatTheReferenceDoes) {
  Random random(1);
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const ImageSize size{random.Between(1, 60), random.Between(1, 60)};
    Filled filled(size);
    Pixels wanted(AreaOf(size));
    for (int i = random.Between(1, 3); i > 0; --i) {
      const Points points = NextPolygon(random, size);
      FillPolygonPlain(points, size, wanted);
      ASSERT_EQ(filled.Add(points), wanted) << n;
    }
  }
}

TEST(PolygonFill, TakesAnyNumbers) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const ImageSize size{20, 10};
  EXPECT_EQ(Filled(size).Add({{1, 1}, {9, kNan}, {9, 9}}), Pixels(200)) << "NaN fills nothing";
  EXPECT_EQ(Filled(size).Add({{kNan, 1}}), Pixels(200));
  EXPECT_EQ(Filled(size).Add({{-kInf, -kInf}, {1e300, -1e300}, {kInf, kInf}, {-kInf, 1e30}}),
            Pixels(200, 1));
  Filled filled(size);
  filled.Add({{1, 1}, {9, kNan}, {9, 9}});
  EXPECT_EQ(filled.Add({{0, 0}, {20, 0}, {20, 10}, {0, 10}}), Pixels(200, 1)) << "the next one";
}

// ---- Objects in a row.

std::span<const uint8_t> WordsOf(const ObjectShapes& shapes) {
  return {reinterpret_cast<const uint8_t*>(shapes.words().data()), shapes.words().size() * 4};
}

using Box = std::array<float, 4>;
const std::vector<ObjectField> kBoxesOnly{{.kind = ObjectField::Kind::kBoxes, .bytes = 16}};

PlanOptions Options() { return {.objects = kBoxesOnly, .draws_shapes = true}; }

// The result of a plan for a sample.
struct Rows {
  Status status;
  int64_t kept = -1;
  std::vector<uint16_t> mask;
};

struct Input {
  ImageSize size;
  std::vector<Box> boxes{};
  ObjectShapes shapes{};
  std::vector<uint16_t> values{};  // of a semantic mask
  uint16_t background = 0;
  size_t bytes = 1;
  bool normalized = false;
  uint64_t budget = 256 << 20;

  void Add(const std::vector<Points>& polygons) {
    boxes.push_back({0, 0, static_cast<float>(size.width), static_cast<float>(size.height)});
    shapes.BeginObject();
    for (const Points& polygon : polygons) {
      std::vector<float> numbers;
      for (const PlanePoint& point : polygon) {
        numbers.push_back(static_cast<float>(point.x));
        numbers.push_back(static_cast<float>(point.y));
      }
      shapes.AddPolygon(numbers);
    }
  }
  void AddRuns(const std::vector<uint32_t>& runs) {
    Add({});
    shapes.AddRuns(static_cast<uint32_t>(size.height), static_cast<uint32_t>(size.width), runs);
  }
};

Rows DrawnBy(const Plan& plan, const Input& in, const DrawKey& key = {1, 0, 0}) {
  Random random(1);
  const testing::Naive image = NoisyImage(random, in.size);
  MemoryBudget budget(in.budget);
  Pixels row(plan.row_bytes());
  std::vector<Box> boxes = in.boxes;
  const std::array<std::span<const uint8_t>, 1> from{
      std::span(reinterpret_cast<const uint8_t*>(in.boxes.data()), in.boxes.size() * sizeof(Box))};
  const std::array<void*, 1> to{boxes.data()};
  const size_t pixels = AreaOf(plan.output_size());
  Pixels mask(pixels * in.bytes + 2, 0x5a);
  const std::array<ShapeMask, 1> masks{ShapeMask{.shapes = WordsOf(in.shapes),
                                                 .normalized = in.normalized,
                                                 .values = in.values,
                                                 .background = in.background,
                                                 .bytes = in.bytes,
                                                 .row = mask.data() + 1}};
  Rows rows;
  const ObjectRows objects{from, to, &rows.kept, static_cast<uint32_t>(in.boxes.size()), masks};
  OutputRows output{.row = row.data()};
  output.objects = &objects;
  StageTimes times;
  rows.status = plan.Apply(ViewOf(image), key, *plan.MakeWorkspace(budget), output, times);
  EXPECT_TRUE(mask.front() == 0x5a && mask.back() == 0x5a);
  rows.mask.resize(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    std::memcpy(&rows.mask[i], mask.data() + 1 + i * in.bytes, in.bytes);
  }
  return rows;
}

// ---- Compared with the twin.

// Whether the center of a pixel of the image in its row shows a part of the image. It goes through
// the steps backwards. nullopt: it is at an edge.
class Backwards {
 public:
  Backwards(const DrawnSample& drawn, ImageSize image) : drawn_(drawn), image_(image) {
    sizes_.push_back(drawn.geometry.window.size());
    for (const DrawnStep& step : drawn.steps) {
      const auto* reframe = std::get_if<Reframe>(&step.step);
      sizes_.push_back(reframe == nullptr ? sizes_.back() : reframe->window.size());
    }
  }

  std::optional<bool> Shows(int column, int row) {
    at_ = {column + 0.5, row + 0.5};
    least_ = 1;
    Check({0, 0}, sizes_.back());
    for (size_t i = drawn_.steps.size(); i-- > 0;) {
      std::visit([&](const auto& step) { Undo(step, sizes_[i]); }, drawn_.steps[i].step);
      Check({0, 0}, sizes_[i]);
    }
    const Geometry& geometry = drawn_.geometry;
    const Rect &box = geometry.box, &window = geometry.window;
    Undo(Mirror{geometry.mirror_columns, geometry.mirror_rows}, window.size());
    at_.x = (at_.x + window.x) * box.width / geometry.resized.width;
    at_.y = (at_.y + window.y) * box.height / geometry.resized.height;
    Check({0, 0}, box.size());
    at_ = {at_.x + box.x, at_.y + box.y};
    Check({0, 0}, image_);
    if (std::abs(least_) < 1e-4) return std::nullopt;
    return least_ > 0;
  }
  // Returns the place in the image that the last pixel shows.
  PlanePoint place() const { return at_; }

 private:
  void Check(PlanePoint begin, ImageSize size) {
    for (const double margin :
         {at_.x - begin.x, at_.y - begin.y, size.width - at_.x, size.height - at_.y}) {
      if (least_ > -1e-4) least_ = std::min(least_, margin);
    }
  }
  void Undo(const Affine& step, ImageSize size) {
    const auto& m = step.matrix;
    const double x = at_.x - size.width / 2.0, y = at_.y - size.height / 2.0;
    const double divisor = step.divisor[0] * x + step.divisor[1] * y + 1;
    at_ = {(m[0] * x + m[1] * y + m[2]) / divisor + size.width / 2.0,
           (m[3] * x + m[4] * y + m[5]) / divisor + size.height / 2.0};
  }
  void Undo(const Reframe& step, ImageSize) { at_.x += step.window.x, at_.y += step.window.y; }
  void Undo(const Mirror& step, ImageSize size) {
    if (step.columns) at_.x = size.width - at_.x;
    if (step.rows) at_.y = size.height - at_.y;
  }
  template <typename Colour>
  void Undo(const Colour&, ImageSize) {}

  const DrawnSample& drawn_;
  const ImageSize image_;
  std::vector<ImageSize> sizes_;  // before each step, and after all
  PlanePoint at_;
  double least_ = 0;  // from an edge; negative outside
};

std::vector<Transform> MovesOfShapes(Random& random) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(10, 60); };
  const auto move = [&] {
    const int kind = random.Between(0, 8);
    if (kind == 0) list.emplace_back(Pad{testing::NextMargins(random, 9)});
    if (kind == 1) list.emplace_back(RandomCrop{side(), side(), {}, true});
    if (kind == 2) list.emplace_back(CenterCrop{side(), side()});
    if (kind == 3) list.emplace_back(RandomHorizontalFlip{});
    if (kind == 4) list.emplace_back(RandomVerticalFlip{});
    if (kind == 5) list.emplace_back(RandomZoomOut{.side_range = {1, 2}});
    if (kind == 6) list.emplace_back(ColorJitter{.brightness = {0.5, 1.5}});
  };
  for (int n = random.Between(0, 3); n > 0; --n) move();
  if (random.OneIn(2)) {
    list.emplace_back(RandomResizedCrop{side(), side()});
  } else {
    list.emplace_back(Resize{.height = side(), .width = side()});
  }
  for (int n = random.Between(0, 4); n > 0; --n) {
    const int kind = random.Between(0, 6);
    if (kind == 0) list.emplace_back(RandomRotation{.degrees = {-70, 80}});
    if (kind == 1) list.emplace_back(RandomShear{.x_factor = {-0.3, 0.3}});
    if (kind == 2) list.emplace_back(TrivialAugmentWide{});
    if (kind == 3) list.emplace_back(RandomPerspective{0.5});
    if (kind > 3) move();
  }
  if (random.OneIn(3)) list.emplace_back(PadTo{200, 210});
  return list;
}

// Draws each object plainly, and then pixel by pixel. nullopt: a pixel is at an edge, or a corner
// beyond a horizon.
std::optional<std::vector<uint16_t>> TwinOf(const Plan& plan, const DrawKey& key, const Input& in,
                                            const std::vector<std::vector<Points>>& objects) {
  const DrawnSample drawn = testing::DrawnOf(plan, key, in.size);
  const GeometryMap map = MapToRow(drawn);
  std::vector<HalfPlane> horizons;
  FindHorizons(drawn, horizons);
  const ImageSize size = drawn.size, row = plan.output_size();
  Pixels shown(AreaOf(size));
  Backwards backwards(drawn, in.size);
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto [y, x] = std::div(static_cast<int>(i), size.width);
    const std::optional<bool> shows = backwards.Shows(x, y);
    if (!shows) return std::nullopt;
    shown[i] = *shows ? 1 : 0;
  }
  std::vector<Pixels> drawn_objects;
  std::vector<ptrdiff_t> areas;
  for (const std::vector<Points>& polygons : objects) {
    Pixels pixels(AreaOf(size));
    for (Points points : polygons) {
      for (PlanePoint& point : points) {
        const double x = static_cast<float>(point.x), y = static_cast<float>(point.y);
        for (const HalfPlane& side : horizons) {
          if (side[0] * x + side[1] * y + side[2] < 0) return std::nullopt;
        }
        const MapPoint moved = stoker::Moved(map, x, y);
        point = {moved.x, moved.y};
      }
      FillPolygonPlain(points, size, pixels);
    }
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] &= shown[i];
    areas.push_back(std::ranges::count(pixels, 1));
    drawn_objects.push_back(std::move(pixels));
  }
  std::vector<uint16_t> mask(AreaOf(row), in.background);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      ptrdiff_t least = PTRDIFF_MAX;
      for (size_t i = 0; i < objects.size(); ++i) {
        if (drawn_objects[i][static_cast<size_t>(y * size.width + x)] == 0) continue;
        if (areas[i] > least) continue;
        least = areas[i];
        mask[static_cast<size_t>(y * row.width + x)] =
            in.values.empty() ? static_cast<uint16_t>(i + 1) : in.values[i];
      }
    }
  }
  return mask;
}

TEST(ShapeMasks, AreWhereTheTwinDrawsThem) {
  Random random(3);
  int compared = 0;
  for (int n = 0; n < testing::Effort(1500); ++n) {
    const Result<Plan> plan = Plan::Compile(MovesOfShapes(random), Options());
    if (!plan.ok()) continue;
    Input in{.size = {random.Between(10, 70), random.Between(10, 70)}};
    in.bytes = static_cast<size_t>(random.Between(1, 2));
    in.background = static_cast<uint16_t>(random.OneIn(2) ? 0 : 255);
    std::vector<std::vector<Points>> objects(static_cast<size_t>(random.Between(0, 5)));
    const bool semantic = random.OneIn(2);
    for (std::vector<Points>& polygons : objects) {
      for (int i = random.Between(0, 2); i > 0; --i) {
        polygons.push_back(NextPolygon(random, in.size));
        if (polygons.back().size() < 2) polygons.pop_back();
      }
      in.Add(polygons);
      if (semantic) in.values.push_back(static_cast<uint16_t>(random.Between(0, 200)));
    }
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const auto wanted = TwinOf(*plan, key, in, objects);
    if (!wanted) continue;
    const Rows rows = DrawnBy(*plan, in, key);
    ASSERT_TRUE(rows.status.ok()) << rows.status.error().ToString();
    ASSERT_EQ(rows.mask, *wanted) << n << ": " << plan->Describe();
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(1500) / 2);
}

// Runs move as the mask of a file does.
TEST(ShapeMasks, RunsMoveAsMasksDo) {
  constexpr Piece kMask{Piece::Kind::kMask, 0};
  Random random(4);
  int compared = 0;
  for (int n = 0; n < testing::Effort(1000); ++n) {
    testing::PngOptions png{.color = 0, .seed = static_cast<uint64_t>(n)};
    png.width = random.Between(1, 60), png.height = random.Between(1, 60);
    const testing::PaddedFile file(testing::MakePng(png));
    PlanOptions options = Options();
    options.pieces.push_back(kMask);
    std::vector<Transform> list = MovesOfShapes(random);
    const bool turns = std::ranges::any_of(list, [](const Transform& t) {
      return std::holds_alternative<RandomRotation>(t) || std::holds_alternative<RandomShear>(t) ||
             std::holds_alternative<RandomPerspective>(t) ||
             std::holds_alternative<TrivialAugmentWide>(t);
    });
    const Result<Plan> plan = Plan::Compile(list, options);
    if (!plan.ok()) continue;
    MemoryBudget budget(64 << 20);
    const auto mask_of = [&](const Plan& of, const DrawKey& key) {
      Pixels values(of.piece(1).row_bytes());
      StageTimes times;
      EXPECT_TRUE(
          of.Apply(
                EncodedImage{
                    .piece = 1, .bytes = file.span(), .key = key, .to = {.row = values.data()}},
                *of.MakeWorkspace(budget), times)
              .ok());
      return values;
    };
    const auto number_of = [](uint8_t value) { return value / 64; };  // 0 has no object
    Input in{.size = {png.width, png.height}};
    const Plan whole =
        Plan::Compile({CenterCrop{.height = png.height, .width = png.width}}, options).value();
    const Pixels stored = mask_of(whole, {});
    for (int number = 1; number < 4; ++number) {
      std::vector<uint32_t> runs{0};
      for (int x = 0; x < png.width; ++x) {
        for (int y = 0; y < png.height; ++y) {
          const bool inside = number_of(stored[static_cast<size_t>(y * png.width + x)]) == number;
          if (random.OneIn(20)) runs.insert(runs.end(), 2, 0);
          if (inside != (runs.size() % 2 == 0)) runs.push_back(0);
          ++runs.back();
        }
      }
      in.AddRuns(runs);
    }
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const Rows rows = DrawnBy(*plan, in, key);
    ASSERT_TRUE(rows.status.ok()) << rows.status.error().ToString();
    const Pixels moved = mask_of(*plan, key);
    const DrawnSample drawn = testing::DrawnOf(*plan, key, in.size);
    Backwards backwards(drawn, in.size);
    for (size_t i = 0; i < moved.size(); ++i) {
      // A mask of a file has pixels at edges that are turned whose centers are outside of the
      // image.
      const auto [y, x] = std::div(static_cast<int>(i), plan->output_size().width);
      const bool in_image = x < drawn.size.width && y < drawn.size.height;
      if (turns && in_image && rows.mask[i] == 0 && backwards.Shows(x, y) != true) continue;
      ASSERT_EQ(rows.mask[i], number_of(moved[i])) << n << ": " << plan->Describe();
    }
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(1000) / 2);
}

// ---- Of several samples.

constexpr uint16_t kUnset = 0x5a5a;

// The instances of a row of several samples, which each one adds to.
struct MosaicMask {
  MosaicMask(const Plan& plan, const DrawKey& key)
      : of_plan(plan), of_row(key), pixels(AreaOf(plan.output_size()), kUnset) {}

  // Returns the numbers of the sample's objects that are kept.
  std::vector<int32_t> Add(uint32_t part, const Input& in) {
    Random random(1);
    const testing::Naive image = NoisyImage(random, in.size);
    std::vector<int32_t> numbers(in.boxes.size()), written(in.boxes.size() + 100);
    std::vector<Box> boxes(written.size());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
    const std::array<std::span<const uint8_t>, 2> from{
        std::span(reinterpret_cast<const uint8_t*>(in.boxes.data()), in.boxes.size() * sizeof(Box)),
        std::span(reinterpret_cast<const uint8_t*>(numbers.data()), 4 * numbers.size())};
    const std::array<void*, 2> to{boxes.data(), written.data()};
    const std::array masks{ShapeMask{.shapes = WordsOf(in.shapes),
                                     .values = in.values,
                                     .background = in.background,
                                     .bytes = 2,
                                     .row = pixels.data()}};
    const auto before = static_cast<ptrdiff_t>(part == 0 ? 0 : kept);
    const ObjectRows objects{from, to, &kept, static_cast<uint32_t>(numbers.size()), masks};
    Pixels row(of_plan.row_bytes());
    OutputRows output{.row = row.data()};
    output.objects = &objects;
    StageTimes times;
    const Status status = of_plan.Apply(ViewOf(image), KeyOf(part), *workspace, output, times);
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    return {written.begin() + before, written.begin() + static_cast<ptrdiff_t>(kept)};
  }

  DrawKey KeyOf(uint32_t part) const {
    DrawKey key = of_row;
    key.part = part;
    return key;
  }

  const Plan& of_plan;
  const DrawKey of_row;
  std::vector<uint16_t> pixels;
  int64_t kept = 0;
  MemoryBudget budget{64 << 20};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace = of_plan.MakeWorkspace(budget);
};

PlanOptions MosaicOptions() {
  PlanOptions options = Options();
  options.objects.push_back({.kind = ObjectField::Kind::kValue, .bytes = 4});
  options.pieces.push_back({Piece::Kind::kMask, 0});
  return options;
}

// Colours make steps, after which flips do not change the geometry.
std::vector<Transform> NextMosaic(Random& random, std::array<bool, 2> flips) {
  std::vector<Transform> list{Mosaic{.size = random.Between(4, 70),
                                     .scale = 0.1 * random.Between(0, 9),
                                     .translate = random.OneIn(3) ? 1.0 : 0.1,
                                     .p = random.OneIn(4) ? 0.5 : 1}};
  if (flips[0]) list.emplace_back(RandomHorizontalFlip{1});
  if (random.OneIn(2)) list.emplace_back(RandomInvert{1});
  if (flips[1]) list.emplace_back(RandomVerticalFlip{1});
  return list;
}

// Each object is filled plainly in the part of its image, and seen where the image is.
TEST(ShapeMasks, OfAMosaicAreInTheirParts) {
  Random random(5);
  size_t drawn_objects = 0;
  for (int n = 0; n < testing::Effort(1000); ++n) {
    const std::array<bool, 2> flips{random.OneIn(2), random.OneIn(2)};
    std::vector<Transform> list = NextMosaic(random, flips);
    std::get<Mosaic>(list[0]).n = random.OneIn(3) ? 9 : 4;
    const Plan plan = Plan::Compile(list, MosaicOptions()).value();
    const auto& mosaic = std::get<Mosaic>(list[0]);
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    RandomStream stream(key, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, stream);
    const auto flipped = [&](Rect rect) {
      if (flips[0]) rect.x = mosaic.size - rect.x - rect.width;
      if (flips[1]) rect.y = mosaic.size - rect.y - rect.height;
      return rect;
    };
    const bool semantic = random.OneIn(2);
    const uint16_t background = semantic ? 255 : 0;
    MosaicMask made(plan, key);
    std::vector<uint16_t> wanted(made.pixels.size(), background);
    const RowSamples samples = plan.SamplesOf(key, 7, 1000, 0);
    std::vector<ImageSize> sizes;
    for (const auto& [part, sample] : samples.all()) {
      Input in{.size = {random.Between(3, 90), random.Between(3, 90)}, .background = background};
      std::vector<Points> polygons(static_cast<size_t>(random.Between(0, 4)));
      for (size_t i = 0; i < polygons.size(); ++i) {
        Box box{1e9f, 1e9f, -1e9f, -1e9f};
        for (int corner = random.Between(3, 6); corner > 0; --corner) {
          // Not at a fifth of a pixel of the row, where corners are rounded: the twin's arithmetic
          // is not the plan's.
          const auto x = static_cast<float>((random.Between(0, 999) + .377) * in.size.width / 1e3);
          const auto y = static_cast<float>((random.Between(0, 999) + .377) * in.size.height / 1e3);
          polygons[i].push_back({x, y});
          box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x),
                 std::max(box[3], y)};
        }
        in.Add({polygons[i]});
        in.boxes.back() = box;
        if (semantic) in.values.push_back(static_cast<uint16_t>(random.Between(0, 200)));
      }
      const auto before = static_cast<size_t>(part == 0 ? 0 : made.kept);
      const std::vector<int32_t> kept = made.Add(part, in);
      const PlacedImage at = PlaceImage(mosaic, drawn, part, in.size, false, sizes);
      sizes.push_back(in.size);
      const Rect place = flipped(at.part), seen = flipped(Overlap(at.shown, at.part));
      if (IsEmpty(at.part) || IsEmpty(Overlap(at.shown, at.part))) continue;
      std::vector<Pixels> planes;
      std::vector<ptrdiff_t> areas;
      for (const int32_t number : kept) {
        Points points = polygons[static_cast<size_t>(number)];
        for (PlanePoint& point : points) {
          const double x = point.x * at.whole.width / in.size.width + at.whole.x;
          const double y = point.y * at.whole.height / in.size.height + at.whole.y;
          point = {(flips[0] ? mosaic.size - x : x) - place.x,
                   (flips[1] ? mosaic.size - y : y) - place.y};
        }
        planes.push_back(PlainOf(points, place.size()));
        for (int i = 0; i < place.width * place.height; ++i) {
          const auto [y, x] = std::div(i, place.width);
          const Rect pixel{place.x + x, place.y + y, 1, 1};
          if (IsEmpty(Overlap(pixel, seen))) planes.back()[static_cast<size_t>(i)] = 0;
        }
        areas.push_back(std::ranges::count(planes.back(), 1));
        ++drawn_objects;
      }
      for (int i = 0; i < place.width * place.height; ++i) {
        const auto [y, x] = std::div(i, place.width);
        ptrdiff_t least = PTRDIFF_MAX;
        for (size_t object = 0; object < planes.size(); ++object) {
          if (planes[object][static_cast<size_t>(i)] == 0 || areas[object] > least) continue;
          least = areas[object];
          wanted[static_cast<size_t>((place.y + y) * mosaic.size + place.x + x)] =
              semantic ? in.values[static_cast<size_t>(kept[object])]
                       : static_cast<uint16_t>(before + object + 1);
        }
      }
    }
    ASSERT_EQ(made.pixels, wanted) << n << ": " << plan.Describe();
  }
  EXPECT_GT(drawn_objects, static_cast<size_t>(testing::Effort(1000)));
}

TEST(ShapeMasks, RunsOfAMosaicMoveAsMasksDo) {
  Random random(6);
  int shown = 0;
  for (int n = 0; n < testing::Effort(400); ++n) {
    std::vector<Transform> list = NextMosaic(random, {random.OneIn(2), random.OneIn(2)});
    if (random.OneIn(2)) std::get<Mosaic>(list[0]).degrees = 180;
    if (random.OneIn(2)) std::get<Mosaic>(list[0]).shear = 20;
    const Plan plan = Plan::Compile(std::move(list), MosaicOptions()).value();
    MosaicMask made(plan, {3, 1, static_cast<uint64_t>(n)});
    Pixels moved(plan.piece(1).row_bytes());
    std::vector<uint16_t> wanted(made.pixels.size());
    const RowSamples samples = plan.SamplesOf(made.of_row, 7, 1000, 0);
    for (const auto& [part, sample] : samples.all()) {
      testing::PngOptions png{.color = 0, .seed = static_cast<uint64_t>(n) + part};
      png.width = random.Between(1, 60), png.height = random.Between(1, 60);
      Pixels values(static_cast<size_t>(png.width * png.height));
      const auto inside = [](uint8_t value) { return value >= 64; };
      const testing::PaddedFile file(testing::MakePng(png));
      const PlanOptions options = MosaicOptions();
      const Plan whole =
          Plan::Compile({CenterCrop{.height = png.height, .width = png.width}}, options).value();
      StageTimes times;
      EncodedImage image{.piece = 1, .bytes = file.span(), .to = {.row = values.data()}};
      ASSERT_TRUE(whole.Apply(image, *whole.MakeWorkspace(made.budget), times).ok());
      image.key = made.KeyOf(part);
      image.to.row = moved.data();
      std::ranges::fill(moved, 0);
      ASSERT_TRUE(plan.Apply(image, *made.workspace, times).ok());
      Input in{.size = {png.width, png.height}};
      std::vector<uint32_t> runs{0};
      for (int i = 0; i < png.width * png.height; ++i) {
        const auto [x, y] = std::div(i, png.height);
        const bool in_run = runs.size() % 2 == 0;
        if (inside(values[static_cast<size_t>(y * png.width + x)]) != in_run) runs.push_back(0);
        ++runs.back();
      }
      in.AddRuns(runs);
      const auto number = static_cast<uint16_t>(part == 0 ? 1 : made.kept + 1);
      if (made.Add(part, in).empty()) continue;
      const DrawnSample drawn = testing::DrawnOf(plan, image.key, in.size);
      const Rect& place = drawn.placed->part;
      for (int i = 0; i < place.width * place.height; ++i) {
        const auto [y, x] = std::div(i, place.width);
        const auto at = static_cast<size_t>((place.y + y) * plan.output_size().width + place.x + x);
        if (inside(moved[at])) wanted[at] = number;
      }
      ++shown;
    }
    ASSERT_EQ(made.pixels, wanted) << n << ": " << plan.Describe();
  }
  EXPECT_GT(shown, testing::Effort(400));
}

// A large polygon with an edge across the row is where the pixels come from its inside.
TEST(ShapeMasks, ReachBeyondTheHorizon) {
  Random random(9);
  int checked = 0;
  for (int n = 0; n < testing::Effort(300); ++n) {
    std::vector<Transform> list;
    if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
    list.emplace_back(RandomCrop{random.Between(20, 60), random.Between(20, 60), {}, true});
    if (random.OneIn(3)) list.emplace_back(RandomRotation{.degrees = {-30, 30}});
    for (int i = random.Between(1, 3); i > 0; --i) {
      list.emplace_back(RandomPerspective{0.5, 1});
      if (random.OneIn(3)) list.emplace_back(RandomCrop{30, 30, {}, true});
    }
    const Plan plan = Plan::Compile(list, Options()).value();
    Input in{.size = {random.Between(40, 600), random.Between(40, 600)}};
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const DrawnSample drawn = testing::DrawnOf(plan, key, in.size);
    Backwards backwards(drawn, in.size);
    const auto [width, height] = drawn.size;
    (void)backwards.Shows(random.Between(0, width - 1), random.Between(0, height - 1));
    const PlanePoint at = backwards.place();
    const double angle = random.Between(0, 628) / 100.0, cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const double far = random.OneIn(2) ? 700 : 7000;
    const auto point = [&](double along, double across) -> PlanePoint {
      return {at.x + far * (along * cosine - across * sine),
              at.y + far * (along * sine + across * cosine)};
    };
    const bool covers = random.OneIn(3);
    in.Add({{point(-1, covers ? -1 : 0), point(1, covers ? -1 : 0), point(1, 1), point(-1, 1)}});
    const Rows rows = DrawnBy(plan, in, key);
    ASSERT_TRUE(rows.status.ok()) << rows.status.error().ToString();
    const auto wanted = [&](int x, int y) -> std::optional<bool> {
      const std::optional<bool> shows = backwards.Shows(x, y);
      if (covers || shows != true) return shows;
      const auto [from_x, from_y] = backwards.place();
      return (from_y - at.y) * cosine - (from_x - at.x) * sine > 0;
    };
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const std::optional<bool> here = wanted(x, y);
        bool clear = here.has_value();
        for (int i = 0; !covers && i < 9; ++i) {
          clear = clear && wanted(x + i % 3 - 1, y + i / 3 - 1) == here;
        }
        if (!clear) continue;
        ASSERT_EQ(rows.mask[static_cast<size_t>(y * width + x)], *here ? 1 : 0)
            << n << ": " << plan.Describe() << " " << x << ", " << y;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, testing::Effort(300) * 100);
}

// ---- One property at a time.

Points BoxOf(double left, double top, double right, double bottom) {
  return {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
}

Plan WholeOf(ImageSize size) {
  return Plan::Compile({CenterCrop{.height = size.height, .width = size.width}}, Options()).value();
}

TEST(ShapeMasks, SmallerObjectsAreOnTop) {
  Input in{.size = {4, 1}};
  in.Add({BoxOf(1, 0, 2, 1)});
  in.Add({BoxOf(0, 0, 4, 1)});
  in.Add({BoxOf(2, 0, 3, 1)});
  in.Add({BoxOf(2, 0, 3, 1)});
  EXPECT_THAT(DrawnBy(WholeOf(in.size), in).mask, ::testing::ElementsAre(2, 1, 4, 2));
  in.values = {7, 0, 8, 255};
  in.background = 9;
  EXPECT_THAT(DrawnBy(WholeOf(in.size), in).mask, ::testing::ElementsAre(0, 7, 255, 0));
}

TEST(ShapeMasks, DroppedObjectsAreNotDrawn) {
  Input in{.size = {6, 1}};
  in.Add({BoxOf(0, 0, 2, 1)});
  in.Add({BoxOf(2, 0, 4, 1)});
  in.boxes[0] = {0, 0, 0, 0};
  const Plan plan =
      Plan::Compile({CenterCrop{.height = 1, .width = 6}, SanitizeBoundingBoxes{}}, Options())
          .value();
  const Rows rows = DrawnBy(plan, in);
  EXPECT_EQ(rows.kept, 1);
  EXPECT_THAT(rows.mask, ::testing::ElementsAre(0, 0, 1, 1, 0, 0));
  in.values = {5, 6};
  EXPECT_THAT(DrawnBy(plan, in).mask, ::testing::ElementsAre(0, 0, 6, 6, 0, 0));
}

TEST(ShapeMasks, WhatACropCutsDoesNotComeBack) {
  Input in{.size = {6, 1}};
  in.Add({BoxOf(0, 0, 6, 1)});
  const Plan plan =
      Plan::Compile({CenterCrop{.height = 1, .width = 2}, Pad{{2, 0, 2, 0}}}, Options()).value();
  EXPECT_THAT(DrawnBy(plan, in).mask, ::testing::ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(ShapeMasks, NormalizedPolygonsAreSharesOfTheImage) {
  Input in{.size = {8, 2}, .normalized = true};
  in.Add({BoxOf(0.25, 0, 0.5, 1)});
  EXPECT_THAT(DrawnBy(WholeOf(in.size), in).mask,
              ::testing::ElementsAre(0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0));
}

TEST(ShapeMasks, RefuseMoreObjectsThanTheyTellApart) {
  Input in{.size = {4, 4}};
  for (int i = 0; i < 255; ++i) in.Add({BoxOf(0, 0, 2, 2)});
  EXPECT_EQ(DrawnBy(WholeOf(in.size), in).mask[0], 255);
  in.Add({BoxOf(0, 0, 1, 1)});
  const Rows rows = DrawnBy(WholeOf(in.size), in);
  ASSERT_FALSE(rows.status.ok());
  EXPECT_EQ(rows.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(rows.status.error().ToString(), HasSubstr("256 objects"));
  EXPECT_THAT(rows.status.error().advice, HasSubstr("uint16"));
  in.bytes = 2;
  EXPECT_EQ(DrawnBy(WholeOf(in.size), in).mask[0], 256);
  Input many{.size = {4, 4}, .bytes = 2};
  for (int i = 0; i < 65536; ++i) many.Add({});
  many.values.resize(65536);
  EXPECT_THAT(DrawnBy(WholeOf(many.size), many).status.error().ToString(), HasSubstr("65535"));
}

TEST(ShapeMasks, RefuseRunsOfAnotherImage) {
  Input in{.size = {4, 3}};
  in.Add({});
  in.shapes.AddRuns(4, 3, std::array<uint32_t, 1>{12});
  const Rows rows = DrawnBy(WholeOf(in.size), in);
  ASSERT_FALSE(rows.status.ok());
  EXPECT_THAT(rows.status.error().ToString(), HasSubstr("4 × 3"));
  EXPECT_THAT(rows.status.error().advice, HasSubstr("exif_orientation"));
}

TEST(ShapeMasks, RunsOfNoPixelsDrawNothing) {
  Input in{.size = {4, 3}};
  for (const std::vector<uint32_t>& runs :
       {std::vector<uint32_t>{}, {12}, {12, 0}, {0, 0, 12}, {0, 0, 5, 0, 7}, {3, 0, 0, 0}}) {
    in.AddRuns(runs);
  }
  in.AddRuns({0, 0, 11, 0, 0, 1});
  EXPECT_THAT(DrawnBy(WholeOf(in.size), in).mask,
              ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7));
}

std::string ErrorOf(Input in, int objects) {
  in.bytes = 2;
  for (int i = 1; i < objects; ++i) in.boxes.push_back(in.boxes[0]);
  const ObjectShapes one = in.shapes;
  const std::span<const uint32_t> words = one.words();
  ShapeReader reader(WordsOf(one));
  reader.NextObject();
  const ShapePart part = reader.NextPart().value();
  std::vector<float> corners;
  std::vector<uint32_t> runs;
  for (size_t i = 0; i < part.words(); ++i) {
    corners.push_back(part.Number(i));
    if (i >= 2) runs.push_back(part.Word(i));
  }
  for (int i = 1; i < objects; ++i) {
    in.shapes.BeginObject();
    if (part.has_runs) in.shapes.AddRuns(words[2], words[3], runs);
    if (!part.has_runs) in.shapes.AddPolygon(corners);
  }
  const Rows rows = DrawnBy(WholeOf(in.size), in);
  return rows.status.ok() ? "none" : rows.status.error().ToString();
}

// The limit of 64 × 64 pixels is 71,303,168.
TEST(ShapeMasks, RefuseMorePixelsThanTheRowIsWorth) {
  const ImageSize size{64, 64};
  Input polygon{.size = size}, runs{.size = size}, empty{.size = size}, lines{.size = size};
  polygon.Add({BoxOf(0, 0, 64, 64)});
  runs.AddRuns({0, 64 * 64});
  empty.AddRuns({64 * 64, 0});
  EXPECT_EQ(ErrorOf(polygon, 5000), "none");
  EXPECT_THAT(ErrorOf(polygon, 20000), HasSubstr("more than 71303168 pixels in the row"));
  EXPECT_EQ(ErrorOf(runs, 5000), "none");
  EXPECT_THAT(ErrorOf(runs, 20000), HasSubstr("Remove objects that occur many times"));
  EXPECT_EQ(ErrorOf(empty, 65535), "none");
  Points zigzag;
  for (int i = 0; i < 10000; ++i) zigzag.push_back({i % 2 == 0 ? 0.0 : 64.0, i % 64 + 0.5});
  lines.Add({zigzag});
  EXPECT_EQ(ErrorOf(lines, 10), "none");
  EXPECT_THAT(ErrorOf(lines, 200), HasSubstr("71303168 pixels"));
}

TEST(ShapeMasks, AnyWordsAreSafe) {
  Random random(5);
  const ImageSize size{9, 7};
  for (int n = 0; n < testing::Effort(5000); ++n) {
    Input in{.size = size};
    for (int i = random.Between(1, 3); i > 0; --i) {
      in.Add({BoxOf(0, 0, 3, 3)});
      if (random.OneIn(2)) in.AddRuns({3, 60});
    }
    auto* const words = const_cast<uint32_t*>(in.shapes.words().data());
    for (int i = random.Between(1, 3); i > 0; --i) {
      const int at = random.Between(0, static_cast<int>(in.shapes.words().size()) - 1);
      words[at] = random.OneIn(2) ? UINT32_MAX - static_cast<uint32_t>(random.Between(0, 3))
                                  : static_cast<uint32_t>(random.Between(0, 30));
    }
    const Rows rows = DrawnBy(WholeOf(size), in);
    if (rows.status.ok()) continue;
    EXPECT_TRUE(rows.status.error().code == Code::kDataLoss ||
                rows.status.error().code == Code::kInvalidArgument);
  }
}

TEST(ShapeMasks, WaitForMemory) {
  Input in{.size = {400, 400}, .budget = 500 << 10};
  in.Add({BoxOf(0, 0, 400, 400)});
  const Rows rows = DrawnBy(WholeOf(in.size), in);
  ASSERT_FALSE(rows.status.ok());
  EXPECT_EQ(rows.status.error().code, Code::kResourceExhausted);
  EXPECT_GT(rows.status.error().wanted_bytes, 0u);
}

TEST(ShapeMasks, RefusePaddingThatShowsObjectsAgain) {
  const Result<Plan> plan = Plan::Compile(
      {Pad{.padding = {1, 1, 1, 1}, .padding_mode = Padding::kReflect}, CenterCrop{8, 8}},
      {.objects = {{.kind = ObjectField::Kind::kValue, .bytes = 1}}, .draws_shapes = true});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().advice, HasSubstr("constant"));
}

}  // namespace
}  // namespace stoker
