// CopyPaste against plain copies of pixels, objects and masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/object_shapes.h"
#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/naive_image.h"
#include "transforms/plan/plan.h"
#include "transforms/shapes/polygon_fill.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::Naive;
using testing::NoisyImage;
using testing::Random;

using BoxRow = std::array<float, 4>;
using PairOfPoints = std::array<float, 6>;
using Points = std::vector<PlanePoint>;
using Bytes = std::vector<uint8_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

size_t PixelsIn(ImageSize size) {
  return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

// An object is a polygon, or the pixels of a rectangle as runs, or nothing.
struct Shape {
  Points polygon{};
  std::optional<Rect> runs{};
};

struct Sample {
  ImageSize size;
  std::vector<BoxRow> boxes{};
  std::vector<PairOfPoints> points{};  // which a mirror exchanges
  std::vector<int32_t> numbers{};
  std::vector<Shape> shapes{};

  void Add(const BoxRow& box, Shape shape) {
    boxes.push_back(box);
    points.push_back({box[0], box[1], 2, box[2], box[3], 1});
    numbers.push_back(static_cast<int32_t>(10 * numbers.size()));
    shapes.push_back(std::move(shape));
  }
  void AddRectangle(const BoxRow& b) {
    Add(b, {.polygon = {{b[0], b[1]}, {b[2], b[1]}, {b[2], b[3]}, {b[0], b[3]}}});
  }
};

// The runs of the pixels of a rectangle, down one column after another.
std::vector<uint32_t> RunsOf(const Rect& inside, ImageSize size) {
  std::vector<uint32_t> runs{0};
  for (int x = 0; x < size.width; ++x) {
    for (int y = 0; y < size.height; ++y) {
      const bool in = x >= inside.x && x < inside.x + inside.width && y >= inside.y &&
                      y < inside.y + inside.height;
      if (in != (runs.size() % 2 == 0)) runs.push_back(0);
      ++runs.back();
    }
  }
  return runs;
}

ObjectShapes WordsOf(const Sample& in) {
  ObjectShapes words;
  for (const Shape& shape : in.shapes) {
    words.BeginObject();
    std::vector<float> numbers;
    for (const PlanePoint& point : shape.polygon) {
      numbers.push_back(static_cast<float>(point.x));
      numbers.push_back(static_cast<float>(point.y));
    }
    if (!numbers.empty()) words.AddPolygon(numbers);
    if (!shape.runs) continue;
    words.AddRuns(static_cast<uint32_t>(in.size.height), static_cast<uint32_t>(in.size.width),
                  RunsOf(*shape.runs, in.size));
  }
  return words;
}

// ---- By a plan.

struct Made {
  Status status;
  Bytes pixels;  // three planes
  Bytes mask;
  std::vector<BoxRow> boxes{};
  std::vector<PairOfPoints> points{};
  std::vector<int32_t> numbers{};
};

PlanOptions Options() {
  return {.layout = Layout::kNchw,
          .objects = {{.kind = ObjectField::Kind::kValue, .bytes = 4},
                      {.kind = ObjectField::Kind::kBoxes, .bytes = 16},
                      {.kind = ObjectField::Kind::kKeypoints, .bytes = 24, .flip_pairs = {1, 0}}},
          .draws_shapes = true};
}

template <typename Rows>
std::span<const uint8_t> BytesOf(const Rows& rows) {
  return {reinterpret_cast<const uint8_t*>(rows.data()), rows.size() * sizeof(rows[0])};
}

Made MadeBy(const Plan& plan, const Sample& in, const Naive& image, Workspace& workspace,
            const DrawKey& key = {}) {
  Made made{.status = {}, .pixels = Bytes(plan.row_bytes()), .mask = {}};
  const size_t room = plan.times_objects() * in.boxes.size();
  made.mask.resize(PixelsIn(plan.output_size()));
  made.boxes.resize(room);
  made.points.resize(room);
  made.numbers.resize(room);
  const ObjectShapes shapes = WordsOf(in);
  const std::array masks{ShapeMask{.shapes = BytesOf(shapes.words()), .row = made.mask.data()}};
  const std::array<std::span<const uint8_t>, 3> from{BytesOf(in.numbers), BytesOf(in.boxes),
                                                     BytesOf(in.points)};
  const std::array<void*, 3> to{made.numbers.data(), made.boxes.data(), made.points.data()};
  int64_t kept = 0;
  const ObjectRows rows{from, to, &kept, static_cast<uint32_t>(in.boxes.size()), masks};
  OutputRows output{.row = made.pixels.data()};
  output.objects = &rows;
  StageTimes times;
  made.status = plan.Apply(ViewOf(image), key, workspace, output, times);
  made.boxes.resize(static_cast<size_t>(kept));
  made.points.resize(made.boxes.size());
  made.numbers.resize(made.boxes.size());
  return made;
}

Made MadeBy(const Plan& plan, const Sample& in) {
  Random random(1);
  MemoryBudget budget(256 << 20);
  return MadeBy(plan, in, NoisyImage(random, in.size), *plan.MakeWorkspace(budget));
}

Plan PlanOf(ImageSize size, double p, std::vector<Transform> after = {}) {
  std::vector<Transform> list{CenterCrop{.height = size.height, .width = size.width}, CopyPaste{p}};
  list.insert(list.end(), after.begin(), after.end());
  return Plan::Compile(std::move(list), Options()).value();
}

// ---- The plain twin.

// The pixels of a shape, in its image as it is mirrored.
Bytes Filled(const Shape& shape, ImageSize size, bool columns, bool rows) {
  Bytes inside(PixelsIn(size));
  Points points = shape.polygon;
  for (PlanePoint& point : points) {
    if (columns) point.x = size.width - point.x;
    if (rows) point.y = size.height - point.y;
  }
  if (!points.empty()) FillPolygonPlain(points, size, inside);
  if (!shape.runs) return inside;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const int from_x = columns ? size.width - 1 - x : x, from_y = rows ? size.height - 1 - y : y;
      const Rect& r = *shape.runs;
      if (from_x < r.x || from_x >= r.x + r.width || from_y < r.y || from_y >= r.y + r.height) {
        continue;
      }
      inside[static_cast<size_t>(y * size.width + x)] = 1;
    }
  }
  return inside;
}

// Ultralytics' choice, as its NumPy code says, without objects that have no area.
std::vector<size_t> Chosen(const Sample& in, double p) {
  std::vector<std::pair<double, size_t>> can;
  const auto area = [](const BoxRow& b) { return (b[2] - b[0]) * (b[3] - b[1]); };
  const auto has_area = [](const BoxRow& b) { return b[2] > b[0] && b[3] > b[1]; };
  for (size_t i = 0; i < in.boxes.size(); ++i) {
    if (!has_area(in.boxes[i])) continue;
    const auto width = static_cast<float>(in.size.width);
    const BoxRow& b = in.boxes[i];
    const BoxRow mirrored{width - b[2], b[1], width - b[0], b[3]};
    double most = 0;
    for (const BoxRow& other : in.boxes) {
      if (!has_area(other)) continue;
      const double w = std::min(mirrored[2], other[2]) - std::max(mirrored[0], other[0]);
      const double h = std::min(mirrored[3], other[3]) - std::max(mirrored[1], other[1]);
      most = std::max(most, std::max(w, 0.0) * std::max(h, 0.0) / (area(other) + 1e-7));
    }
    if (most < 0.3) can.emplace_back(most, i);
  }
  std::stable_sort(can.begin(), can.end());
  std::vector<size_t> chosen;
  const double count = p * static_cast<double>(can.size());
  for (size_t i = 0; i < static_cast<size_t>(std::nearbyint(count)); ++i) {
    chosen.push_back(can[i].second);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void Exchange(PairOfPoints& pair) {
  for (size_t i = 0; i < 3; ++i) std::swap(pair[i], pair[3 + i]);
}

// Takes the pixels of objects that are not below, from `first` on, that no smaller one of these
// has.
void Paint(const std::vector<Bytes>& objects, size_t first, Bytes& mask) {
  const auto area = [&](size_t i) {
    return std::accumulate(objects[i].begin(), objects[i].end(), 0);
  };
  for (size_t at = 0; at < mask.size(); ++at) {
    std::optional<size_t> owner;
    for (size_t i = first; i < objects.size(); ++i) {
      if (objects[i][at] != 0 && (!owner || area(*owner) >= area(i))) owner = i;
    }
    if (owner) mask[at] = static_cast<uint8_t>(*owner + 1);
  }
}

// `columns`, `rows`: mirrors after CopyPaste.
Made Twin(const Sample& in, const Naive& image, double p, bool columns, bool rows) {
  const ImageSize size = in.size;
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  Naive row = image, mirrored = image;
  mirrored.Flip(true);
  Made made{.status = {}, .pixels = {}, .mask = Bytes(PixelsIn(size)), .boxes = in.boxes};
  made.points = in.points, made.numbers = in.numbers;
  std::vector<Bytes> own, all;
  for (const Shape& shape : in.shapes) own.push_back(Filled(shape, size, columns, rows));
  all = own;
  for (const size_t i : Chosen(in, p)) {
    const Bytes inside = Filled(in.shapes[i], size, true, false);
    if (std::ranges::count(inside, 1) == 0) continue;
    for (size_t at = 0; at < row.pixels.size(); ++at) {
      if (inside[at % inside.size()] != 0) row.pixels[at] = mirrored.pixels[at];
    }
    const BoxRow& b = in.boxes[i];
    PairOfPoints pair = in.points[i];
    Exchange(pair);
    pair[0] = width - pair[0], pair[3] = width - pair[3];
    made.boxes.push_back({width - b[2], b[1], width - b[0], b[3]});
    made.points.push_back(pair);
    made.numbers.push_back(in.numbers[i]);
    all.push_back(Filled(in.shapes[i], size, !columns, rows));
  }
  Paint(own, 0, made.mask);
  Paint(all, own.size(), made.mask);
  if (columns) row.Flip(true);
  if (rows) row.Flip(false);
  made.pixels = row.pixels;
  for (size_t i = 0; i < made.boxes.size(); ++i) {
    BoxRow& b = made.boxes[i];
    PairOfPoints& pair = made.points[i];
    if (columns) b = {width - b[2], b[1], width - b[0], b[3]};
    if (rows) b = {b[0], height - b[3], b[2], height - b[1]};
    for (const size_t at : {size_t{0}, size_t{3}}) {
      if (columns) pair[at] = width - pair[at];
      if (rows) pair[at + 1] = height - pair[at + 1];
    }
    if (columns != rows) Exchange(pair);
  }
  return made;
}

Sample NextSample(Random& random) {
  Sample in{.size = {random.Between(1, 60), random.Between(1, 60)}};
  for (int n = random.Between(0, 7); n > 0; --n) {
    const auto pair = [&](int side) {
      const int a = random.Between(0, side), b = random.Between(0, std::min(side, a + 12));
      return std::pair(std::min(a, b), std::max(a, b));
    };
    const auto [left, right] = pair(in.size.width);
    const auto [top, bottom] = pair(in.size.height);
    const BoxRow box{static_cast<float>(left), static_cast<float>(top), static_cast<float>(right),
                     static_cast<float>(bottom)};
    const Rect rect{left, top, right - left, bottom - top};
    switch (random.Between(0, 4)) {
      case 0:
        in.Add(box, {});
        break;
      case 1:
        in.Add(box, {.runs = rect});
        break;
      default:
        Points points;
        for (int corner = random.Between(3, 7); corner > 0; --corner) {
          points.push_back({left + random.Between(0, 16) * rect.width / 16.0,
                            top + random.Between(0, 16) * rect.height / 16.0});
        }
        in.Add(box, {.polygon = points});
    }
  }
  return in;
}

TEST(CopyPaste, PastesMirroredObjects) {
  Random random(3);
  MemoryBudget budget(256 << 20);
  size_t pasted = 0, hidden = 0;
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const Sample in = NextSample(random);
    const Naive image = NoisyImage(random, in.size);
    const bool columns = random.OneIn(3), rows = random.OneIn(3);
    std::vector<Transform> after;
    if (columns) after.emplace_back(RandomHorizontalFlip{1});
    if (rows) after.emplace_back(RandomVerticalFlip{1});
    const double p = random.OneIn(2) ? 1 : 0.25 * random.Between(0, 4);
    const Plan plan = PlanOf(in.size, p, after);
    const Made made = MadeBy(plan, in, image, *plan.MakeWorkspace(budget));
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    const Made wanted = Twin(in, image, p, columns, rows);
    ASSERT_EQ(made.numbers, wanted.numbers) << n;
    ASSERT_EQ(made.boxes, wanted.boxes) << n;
    ASSERT_EQ(made.points, wanted.points) << n;
    ASSERT_EQ(made.mask, wanted.mask) << n;
    ASSERT_EQ(made.pixels, wanted.pixels) << n;
    pasted += made.numbers.size() - in.numbers.size();
    hidden += Chosen(in, p).size();
  }
  EXPECT_GT(pasted, static_cast<size_t>(testing::Effort(1000)));
  EXPECT_GT(hidden, pasted);
}

// A crop after it cuts pasted objects as it does others, and drops their boxes.
TEST(CopyPaste, LaterTransformsMovePastedObjects) {
  Sample in{.size = {40, 10}};
  in.AddRectangle({0, 0, 8, 10});
  in.AddRectangle({12, 2, 18, 6});  // pasted at 22 to 28
  const Plan plan = PlanOf(
      in.size, 1,
      {CenterCrop{.height = 10, .width = 20}, SanitizeBoundingBoxes{}, RandomHorizontalFlip{1}});
  const Made made = MadeBy(plan, in);
  ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
  // The crop shows the columns from 10 to 30, mirrored.
  EXPECT_THAT(made.numbers, ::testing::ElementsAre(10, 10));
  EXPECT_THAT(made.boxes, ::testing::ElementsAre(BoxRow{12, 2, 18, 6}, BoxRow{2, 2, 8, 6}));
  for (int x = 0; x < 20; ++x) {
    const int wanted = x >= 12 && x < 18 ? 1 : x >= 2 && x < 8 ? 2 : 0;
    EXPECT_EQ(made.mask[static_cast<size_t>(4 * 20 + x)], wanted) << x;
  }
}

TEST(CopyPaste, BoxesWithoutAnAreaAreLeftOut) {
  Sample in{.size = {40, 10}};
  in.AddRectangle({2, 2, 8, 6});
  in.AddRectangle({5, 2, 5, 6});
  in.Add({kNan, 2, 8, 6}, {.polygon = {{2, 2}, {8, 2}, {8, 6}}});
  in.Add({8, 2, 2, 6}, {.polygon = {{2, 2}, {8, 2}, {8, 6}}});
  const Made made = MadeBy(PlanOf(in.size, 1), in);
  ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
  EXPECT_THAT(made.numbers, ::testing::ElementsAre(0, 10, 20, 30, 0));
}

TEST(CopyPaste, RefusesMoreObjectsThanItCanCompare) {
  Sample in{.size = {4, 4}};
  for (int i = 0; i < 100000; ++i) in.Add({0, 0, 1, 1}, {});
  Plan plan = Plan::Compile({CenterCrop{4, 4}, CopyPaste{1}}, Options()).value();
  Made made = MadeBy(plan, in);
  ASSERT_FALSE(made.status.ok());
  EXPECT_EQ(made.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.status.error().ToString(), HasSubstr("100000 objects"));
}

TEST(CopyPaste, RefusesShapesThatDoNotFit) {
  Sample in{.size = {40, 10}};
  in.AddRectangle({2, 2, 8, 6});
  in.shapes.clear();
  EXPECT_EQ(MadeBy(PlanOf(in.size, 1), in).status.error().code, Code::kDataLoss);
}

TEST(CopyPaste, AnImageWithoutObjectsIsLeftAlone) {
  const Sample in{.size = {9, 9}};
  Random random(1);
  const Made made = MadeBy(PlanOf(in.size, 1), in);
  ASSERT_TRUE(made.status.ok());
  EXPECT_EQ(made.pixels, NoisyImage(random, in.size).pixels);
}

TEST(CopyPaste, NeedsNoMoreMemoryThanItSays) {
  constexpr ImageSize kSize{300, 200};
  Sample in{.size = kSize};
  for (int i = 0; i < 100; ++i) {
    const auto x = static_cast<float>(i % 10 * 14), y = static_cast<float>(i / 10 * 20);
    in.AddRectangle({x, y, x + 9, y + 9});
  }
  PlanOptions options = Options(), without = options;
  options.max_objects = without.max_objects = 100;
  const auto plan = [&](std::vector<Transform> list, const PlanOptions& of) {
    return Plan::Compile(std::move(list), of).value();
  };
  const Plan pastes =
      plan({CenterCrop{.height = kSize.height, .width = kSize.width}, CopyPaste{1}}, options);
  without.draws_shapes = false;
  without.objects.clear();
  const Plan alone = plan({CenterCrop{.height = kSize.height, .width = kSize.width}}, without);
  Random random(1);
  const Naive image = NoisyImage(random, kSize);
  MemoryBudget budget(256 << 20);
  const auto used = [&](const Plan& of) {
    const auto workspace = of.MakeWorkspace(budget);
    EXPECT_TRUE(MadeBy(of, in, image, *workspace).status.ok());
    return MemoryOf(*workspace);
  };
  // One of the two samples that a workspace interleaves.
  EXPECT_LE(used(pastes), used(alone) + pastes.extra_bytes() / 2);
  EXPECT_GT(2 * used(pastes), used(alone) + pastes.extra_bytes() / 2);
}

// ---- What is refused.

std::string RefusalOf(std::vector<Transform> list, const PlanOptions& options = Options()) {
  const Result<Plan> plan = Plan::Compile(std::move(list), options);
  return plan.ok() ? std::string() : plan.error().ToString();
}

TEST(CopyPaste, IsRefusedWithoutWhatItNeeds) {
  const CenterCrop crop{9, 9};
  EXPECT_EQ(RefusalOf({crop, RandomApply{{CopyPaste{}}, 0.5}}), "");
  EXPECT_EQ(RefusalOf({crop, RandomChoice{{CopyPaste{0.2}, CopyPaste{1}}, {}}}), "");
  EXPECT_THAT(RefusalOf({crop, CopyPaste{}, CopyPaste{}}), HasSubstr("Remove one"));
  EXPECT_THAT(RefusalOf({crop, RandomApply{{CopyPaste{}}, 0.5}, CopyPaste{}}),
              HasSubstr("Remove one"));
  EXPECT_THAT(RefusalOf({CopyPaste{}, RandomResizedCrop{9, 9}}), HasSubstr("transforms[0]"));
  EXPECT_THAT(RefusalOf({Mosaic{.size = 9}, CopyPaste{}}), HasSubstr("all pixels of a row"));
  PlanOptions options = Options();
  options.draws_shapes = false;
  EXPECT_THAT(RefusalOf({crop, CopyPaste{}}, options), HasSubstr("no shapes"));
  options = Options();
  options.objects.clear();
  EXPECT_THAT(RefusalOf({crop, CopyPaste{}}, options), HasSubstr("no boxes"));
  options = Options();
  options.pieces.push_back({Piece::Kind::kMask, 0});
  EXPECT_THAT(RefusalOf({crop, CopyPaste{}}, options), HasSubstr("more than one image"));
}

}  // namespace
}  // namespace stoker
