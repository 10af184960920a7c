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
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/object_shapes.h"
#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/naive_image.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/shape_masks.h"
#include "transforms/shapes/polygon_fill.h"
#include "transforms/spec/transform_table.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Naive;
using testing::NoisyImage;
using ::testing::Not;
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
  bool fits = true;  // otherwise the runs are of a larger image
};

struct Sample {
  ImageSize size;
  std::vector<BoxRow> boxes{};
  std::vector<PairOfPoints> points{};  // which a mirror exchanges
  std::vector<int32_t> numbers{};
  std::vector<Shape> shapes{};
  std::vector<uint16_t> values{};  // in the mask; none: those of numbers

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
    const ImageSize size{in.size.width + (shape.fits ? 0 : 1), in.size.height};
    words.AddRuns(static_cast<uint32_t>(size.height), static_cast<uint32_t>(size.width),
                  RunsOf(*shape.runs, size));
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

// `of_row`: the samples of the row, by DrawKey::part.
Made MadeBy(const Plan& plan, std::span<const Sample> of_row, std::span<const Naive> images,
            Workspace& workspace, DrawKey key = {}) {
  Made made{.status = {}, .pixels = Bytes(plan.row_bytes()), .mask = {}};
  size_t room = 0;
  for (const Sample& in : of_row) room = std::max(room, plan.times_objects() * in.boxes.size());
  made.mask.resize(PixelsIn(plan.output_size()));
  made.boxes.resize(room);
  made.points.resize(room);
  made.numbers.resize(room);
  int64_t kept = 0;
  std::vector<ObjectShapes> shapes_of;
  for (const Sample& in : of_row) shapes_of.push_back(WordsOf(in));
  for (; key.part < of_row.size() && made.status.ok(); ++key.part) {
    const Sample& in = of_row[key.part];
    const ObjectShapes& shapes = shapes_of[key.part];
    const std::array masks{
        ShapeMask{.shapes = BytesOf(shapes.words()), .values = in.values, .row = made.mask.data()}};
    const std::array<std::span<const uint8_t>, 3> from{BytesOf(in.numbers), BytesOf(in.boxes),
                                                       BytesOf(in.points)};
    const std::array<void*, 3> to{made.numbers.data(), made.boxes.data(), made.points.data()};
    const ObjectRows rows{from, to, &kept, static_cast<uint32_t>(in.boxes.size()), masks};
    OutputRows output{.row = made.pixels.data()};
    output.objects = &rows;
    StageTimes times;
    made.status = plan.Apply(ViewOf(images[key.part]), key, workspace, output, times);
  }
  made.boxes.resize(static_cast<size_t>(kept));
  made.points.resize(made.boxes.size());
  made.numbers.resize(made.boxes.size());
  return made;
}

Made MadeBy(const Plan& plan, const Sample& in, const Naive& image, Workspace& workspace,
            const DrawKey& key = {}) {
  return MadeBy(plan, std::span(&in, 1), std::span(&image, 1), workspace, key);
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

// Ultralytics' choice among objects that may be pasted, as it is observed to choose, without
// objects that have no area. `in`: the image that they are pasted onto.
std::vector<size_t> Chosen(const Sample& in, const Sample& from, double p) {
  std::vector<std::pair<double, size_t>> can;
  const auto area = [](const BoxRow& b) { return (b[2] - b[0]) * (b[3] - b[1]); };
  const auto has_area = [](const BoxRow& b) { return b[2] > b[0] && b[3] > b[1]; };
  for (size_t i = 0; i < from.boxes.size(); ++i) {
    const BoxRow& box = from.boxes[i];
    if (!has_area(box)) continue;
    double most = 0;
    for (const BoxRow& other : in.boxes) {
      if (!has_area(other)) continue;
      const double w = std::min(box[2], other[2]) - std::max(box[0], other[0]);
      const double h = std::min(box[3], other[3]) - std::max(box[1], other[1]);
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

Sample MirroredOf(Sample in) {
  const auto width = static_cast<float>(in.size.width);
  for (BoxRow& b : in.boxes) b = {width - b[2], b[1], width - b[0], b[3]};
  for (PairOfPoints& pair : in.points) {
    Exchange(pair);
    pair[0] = width - pair[0], pair[3] = width - pair[3];
  }
  for (Shape& shape : in.shapes) {
    for (PlanePoint& point : shape.polygon) point.x = in.size.width - point.x;
    if (shape.runs) shape.runs->x = in.size.width - shape.runs->x - shape.runs->width;
  }
  return in;
}

Naive MirroredOf(Naive image) {
  image.Flip(true);
  return image;
}

// Pastes objects of `from`. `columns`, `rows`: mirrors after CopyPaste.
Made Twin(const Sample& in, const Naive& image, const Sample& from, const Naive& from_image,
          double p, bool columns, bool rows) {
  const ImageSize size = in.size;
  const std::vector<size_t> chosen = in.boxes.empty() ? std::vector<size_t>() : Chosen(in, from, p);
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  Naive row = image;
  Made made{.status = {}, .pixels = {}, .mask = Bytes(PixelsIn(size)), .boxes = in.boxes};
  made.points = in.points, made.numbers = in.numbers;
  std::vector<Bytes> own, all;
  for (const Shape& shape : in.shapes) own.push_back(Filled(shape, size, columns, rows));
  all = own;
  for (const size_t i : chosen) {
    const Bytes inside = Filled(from.shapes[i], size, false, false);
    if (std::ranges::count(inside, 1) == 0) continue;
    for (size_t at = 0; at < row.pixels.size(); ++at) {
      if (inside[at % inside.size()] != 0) row.pixels[at] = from_image.pixels[at];
    }
    made.boxes.push_back(from.boxes[i]);
    made.points.push_back(from.points[i]);
    made.numbers.push_back(from.numbers[i]);
    all.push_back(Filled(from.shapes[i], size, columns, rows));
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
    for (const size_t at : {size_t{0}, size_t{3}}) {
      if (pair[at + 2] == 0) pair[at] = pair[at + 1] = 0;
    }
  }
  return made;
}

void ExpectEqual(const Made& made, const Made& wanted, int n) {
  ASSERT_EQ(made.numbers, wanted.numbers) << n;
  ASSERT_EQ(made.boxes, wanted.boxes) << n;
  ASSERT_EQ(made.points, wanted.points) << n;
  ASSERT_EQ(made.mask, wanted.mask) << n;
  ASSERT_EQ(made.pixels, wanted.pixels) << n;
}

Sample NextSample(Random& random, ImageSize size) {
  Sample in{.size = size};
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
    const Sample in = NextSample(random, {random.Between(1, 60), random.Between(1, 60)});
    const Naive image = NoisyImage(random, in.size);
    const bool columns = random.OneIn(3), rows = random.OneIn(3);
    std::vector<Transform> after;
    if (columns) after.emplace_back(RandomHorizontalFlip{1});
    if (rows) after.emplace_back(RandomVerticalFlip{1});
    const double p = random.OneIn(2) ? 1 : 0.25 * random.Between(0, 4);
    const Plan plan = PlanOf(in.size, p, after);
    const Made made = MadeBy(plan, in, image, *plan.MakeWorkspace(budget));
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    const Sample mirrored = MirroredOf(in);
    ExpectEqual(made, Twin(in, image, mirrored, MirroredOf(image), p, columns, rows), n);
    if (HasFatalFailure()) return;
    pasted += made.numbers.size() - in.numbers.size();
    hidden += Chosen(in, mirrored, p).size();
  }
  EXPECT_GT(pasted, static_cast<size_t>(testing::Effort(1000)));
  EXPECT_GT(hidden, pasted);
}

// ---- Of another image.

constexpr CopyPaste::Mode kMixup = CopyPaste::Mode::kMixup;

// A sample as CenterCrop, RandomHorizontalFlip, RandomInvert and SanitizeBoundingBoxes change it.
struct Changed {
  Sample sample;
  Naive image;

  void Crop(ImageSize size) {
    const Rect part = CenterBox(size, sample.size);
    image.Cut(part, Padding::kConstant, {});
    const auto x = static_cast<float>(part.x), y = static_cast<float>(part.y);
    const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
    for (BoxRow& b : sample.boxes) {
      b = {std::clamp(b[0] - x, 0.0f, width), std::clamp(b[1] - y, 0.0f, height),
           std::clamp(b[2] - x, 0.0f, width), std::clamp(b[3] - y, 0.0f, height)};
    }
    for (PairOfPoints& pair : sample.points) {
      for (const size_t k : {size_t{0}, size_t{3}}) {
        pair[k] -= x, pair[k + 1] -= y;
        const bool is_seen =
            pair[k] >= 0 && pair[k + 1] >= 0 && pair[k] <= width && pair[k + 1] <= height;
        if (!is_seen) pair[k + 2] = 0;
      }
    }
    for (Shape& shape : sample.shapes) {
      for (PlanePoint& point : shape.polygon) point.x -= part.x, point.y -= part.y;
      if (shape.runs) shape.runs->x -= part.x, shape.runs->y -= part.y;
    }
    sample.size = size;
  }
  void Mirror() {
    sample = MirroredOf(std::move(sample));
    image.Flip(true);
  }
  void Invert() {
    for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(255 - value);
  }
  void Sanitize() {
    Sample kept{.size = sample.size};
    for (size_t i = 0; i < sample.boxes.size(); ++i) {
      const BoxRow& b = sample.boxes[i];
      if (b[2] - b[0] < 1 || b[3] - b[1] < 1) continue;
      kept.Add(b, sample.shapes[i]);
      kept.points.back() = sample.points[i];
      kept.numbers.back() = sample.numbers[i];
    }
    sample = kept;
  }
};

// Both images, of any sizes, are changed before objects are pasted, each with draws of its own.
TEST(CopyPaste, PastesObjectsOfAnotherImage) {
  Random random(5);
  MemoryBudget budget(256 << 20);
  size_t pasted = 0, without = 0;
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const ImageSize size{random.Between(1, 60), random.Between(1, 60)};
    std::vector<Transform> list{CenterCrop{.height = size.height, .width = size.width},
                                RandomHorizontalFlip{}};
    const bool inverts = random.OneIn(2), sanitizes = random.OneIn(3);
    if (inverts) list.emplace_back(RandomInvert{});
    if (sanitizes) list.emplace_back(SanitizeBoundingBoxes{});
    const double p = random.OneIn(2) ? 1 : 0.25 * random.Between(0, 4);
    const bool never = random.OneIn(8), columns = random.OneIn(3), rows = random.OneIn(3);
    const CopyPaste paste{p, kMixup};
    list.push_back(never ? Transform(RandomApply{{paste}, 0}) : Transform(paste));
    if (columns) list.emplace_back(RandomHorizontalFlip{1});
    if (rows) list.emplace_back(RandomVerticalFlip{1});
    const Plan plan = Plan::Compile(list, Options()).value();
    EXPECT_EQ(plan.parts(), 2u);
    EXPECT_EQ(plan.times_objects(), 2u);
    const auto any_size = [&]() -> ImageSize {
      return random.OneIn(2) ? size : ImageSize{random.Between(1, 60), random.Between(1, 60)};
    };
    std::array<Sample, 2> of_row{NextSample(random, any_size()), NextSample(random, any_size())};
    for (int32_t& number : of_row[1].numbers) number += 1000;
    const std::array images{NoisyImage(random, of_row[0].size), NoisyImage(random, of_row[1].size)};
    std::vector<Changed> changed;
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    for (uint32_t part = 0; part < 2; ++part) {
      changed.push_back({of_row[part], images[part]});
      changed[part].Crop(size);
      DrawKey of_part = key;
      of_part.view = part;
      if (RandomStream(of_part, 1).Uniform() < 0.5) changed[part].Mirror();  // after the crop
      RandomStream of_invert(of_part, 0, DrawsOf(RandomInvert{}));
      if (inverts && of_invert.Uniform() < 0.5) changed[part].Invert();
      if (sanitizes) changed[part].Sanitize();
    }
    const Made made = MadeBy(plan, of_row, images, *plan.MakeWorkspace(budget), key);
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    const auto& [own, other] = std::pair(changed[0], changed[1]);
    ExpectEqual(
        made, Twin(own.sample, own.image, other.sample, other.image, never ? 0 : p, columns, rows),
        n);
    if (HasFatalFailure()) return;
    pasted += made.numbers.size() - own.sample.numbers.size();
    without += made.numbers.size() == own.sample.numbers.size();
  }
  EXPECT_GT(pasted, static_cast<size_t>(testing::Effort(1000)));
  EXPECT_GT(without, static_cast<size_t>(testing::Effort(200)));
}

TEST(CopyPaste, AnErrorOfAnotherImageIsThatOfTheRow) {
  Sample own{.size = {40, 10}}, other = own;
  own.AddRectangle({2, 2, 8, 6});
  other.AddRectangle({20, 2, 28, 6});
  Sample bad = other;
  bad.shapes.clear();
  const Plan plan = Plan::Compile({CenterCrop{10, 40}, CopyPaste{1, kMixup}}, Options()).value();
  Random random(1);
  MemoryBudget budget(256 << 20);
  const std::array images{NoisyImage(random, own.size), NoisyImage(random, own.size)};
  const auto workspace = plan.MakeWorkspace(budget);
  const Made made = MadeBy(plan, std::array{own, bad}, images, *workspace);
  ASSERT_FALSE(made.status.ok());
  EXPECT_EQ(made.status.error().code, Code::kDataLoss);
  // The workspace can be used again.
  EXPECT_EQ(MadeBy(plan, std::array{own, other}, images, *workspace).numbers.size(), 2u);
}

// Makes a row of two images of 40 × 10.
Made MadeOfTwo(const Sample& own, const Sample& other, std::vector<Transform> before = {}) {
  before.insert(before.begin(), CenterCrop{10, 40});
  before.emplace_back(CopyPaste{1, kMixup});
  const Plan plan = Plan::Compile(before, Options()).value();
  Random random(1);
  MemoryBudget budget(256 << 20);
  const std::array images{NoisyImage(random, own.size), NoisyImage(random, own.size)};
  return MadeBy(plan, std::array{own, other}, images, *plan.MakeWorkspace(budget));
}

TEST(CopyPaste, NoneOfAnotherImageIsPastedOntoOneWithoutObjects) {
  const Sample none{.size = {40, 10}};
  Sample other = none;
  other.AddRectangle({20, 2, 28, 6});
  Random random(1);
  const Naive image = NoisyImage(random, none.size);
  for (const auto& [own, from] : {std::pair(none, other), std::pair(other, none)}) {
    const Made made = MadeOfTwo(own, from);
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    EXPECT_EQ(made.numbers, own.numbers);
    EXPECT_EQ(made.pixels, image.pixels);
  }
}

TEST(CopyPaste, MasksOfValuesHaveThoseOfObjectsThatAreNotDropped) {
  Sample own{.size = {40, 10}}, other = own;
  own.AddRectangle({9, 2, 9, 6});
  own.AddRectangle({2, 2, 8, 6});
  own.values = {7, 8};
  other.AddRectangle({30, 2, 30, 6});
  other.AddRectangle({20, 2, 28, 6});
  other.AddRectangle({0, 0, 9, 9});  // covers the other image's
  other.values = {9, 11, 12};
  const Made made = MadeOfTwo(own, other, {SanitizeBoundingBoxes{}});
  ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
  ASSERT_EQ(made.boxes, (std::vector<BoxRow>{{2, 2, 8, 6}, {20, 2, 28, 6}}));
  for (int x = 0; x < 40; ++x) {
    const int wanted = x >= 2 && x < 8 ? 8 : x >= 20 && x < 28 ? 11 : 0;
    EXPECT_EQ(made.mask[static_cast<size_t>(4 * 40 + x)], wanted) << x;
  }
}

TEST(CopyPaste, ObjectsOfAnotherImageMayBeWrong) {
  Sample own{.size = {40, 10}};
  own.AddRectangle({2, 2, 8, 6});
  own.Add({kNan, 2, 8, 6}, {.polygon = {{2, 2}, {8, 2}, {8, 6}}});
  own.Add({38, 2, 12, 6}, {.polygon = {{2, 2}, {8, 2}, {8, 6}}});
  Sample other = own;
  other.AddRectangle({20, 2, 28, 6});
  other.Add({2, 2, 9, 6}, {.runs = Rect{2, 2, 7, 4}, .fits = false});  // not chosen
  Made made = MadeOfTwo(own, other);
  ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
  EXPECT_THAT(made.numbers, ::testing::ElementsAre(0, 10, 20, 30));
  other.Add({30, 2, 36, 6}, {.runs = Rect{30, 2, 6, 4}, .fits = false});
  made = MadeOfTwo(own, other);
  ASSERT_FALSE(made.status.ok());
  EXPECT_THAT(made.status.error().ToString(), HasSubstr("its own size"));
}

TEST(CopyPaste, RefusesMoreObjectsOfTwoImagesThanItCanCompare) {
  Sample own{.size = {40, 10}};
  for (int i = 0; i < 4096; ++i) own.Add({0, 0, 1, 1}, {});
  Sample other = own;
  // Its mask cannot tell them apart.
  EXPECT_THAT(MadeOfTwo(own, other).status.error().ToString(), HasSubstr("uint16"));
  other.Add({0, 0, 1, 1}, {});
  const Made made = MadeOfTwo(own, other);
  ASSERT_FALSE(made.status.ok());
  EXPECT_EQ(made.status.error().code, Code::kInvalidArgument);
  EXPECT_THAT(made.status.error().ToString(), HasSubstr("the two images have 8193 objects"));
}

TEST(CopyPaste, OtherSamplesAreDrawn) {
  const Plan plan = Plan::Compile({CenterCrop{9, 9}, CopyPaste{1, kMixup}}, Options()).value();
  constexpr uint64_t kSamples = 20;
  std::array<int, kSamples> drawn{};
  int differ = 0;
  for (uint64_t n = 0; n < 2000; ++n) {
    const RowSamples row = plan.SamplesOf({1, 2, n}, 3, kSamples, 0);
    ASSERT_EQ(row.count, 2u);
    EXPECT_EQ(row.parts[0].sample, 3u);
    EXPECT_EQ(row.parts[1].part, 1u);
    ++drawn[row.parts[1].sample];
    differ += plan.SamplesOf({1, 2, n}, 3, kSamples, 1).parts[1].sample != row.parts[1].sample;
  }
  for (const int times : drawn) EXPECT_NEAR(times, 100, 50);
  EXPECT_NEAR(differ, 1900, 50);
}

// ---- On the canvas of a Mosaic.

// Adds a sample at (x, y) of a canvas, where its part `shown` is seen.
void PutOnCanvas(const Sample& in, const Naive& image, int x, int y, const Rect& shown,
                 Sample& canvas, Naive& pixels, std::vector<Rect>& shown_of) {
  const size_t side = PixelsIn(canvas.size), of_image = PixelsIn(in.size);
  for (int at_y = shown.y; at_y < shown.y + shown.height; ++at_y) {
    for (int at_x = shown.x; at_x < shown.x + shown.width; ++at_x) {
      const auto to = static_cast<size_t>(at_y * canvas.size.width + at_x);
      const auto from = static_cast<size_t>((at_y - y) * in.size.width + at_x - x);
      for (size_t c = 0; c < 3; ++c) {
        pixels.pixels[c * side + to] = image.pixels[c * of_image + from];
      }
    }
  }
  const auto clamped = [](float v, int least, int count) {
    return std::clamp(v, static_cast<float>(least), static_cast<float>(least + count));
  };
  for (size_t i = 0; i < in.boxes.size(); ++i) {
    BoxRow b = in.boxes[i];
    PairOfPoints pair = in.points[i];
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const int by = k == 0 ? x : y, least = k == 0 ? shown.x : shown.y;
      const int count = k == 0 ? shown.width : shown.height;
      for (const size_t at : {k, k + 2}) {
        b[at] = clamped(b[at] + static_cast<float>(by), least, count);
      }
      for (const size_t at : {k, k + 3}) {
        pair[at] += static_cast<float>(by);
        if (pair[at] != clamped(pair[at], least, count)) pair[at < 3 ? 2 : 5] = 0;
      }
    }
    Shape shape = in.shapes[i];
    for (PlanePoint& point : shape.polygon) point.x += x, point.y += y;
    if (shape.runs) shape.runs->x += x, shape.runs->y += y;
    canvas.boxes.push_back(b);
    canvas.points.push_back(pair);
    canvas.numbers.push_back(in.numbers[i]);
    canvas.shapes.push_back(shape);
    shown_of.push_back(shown);
  }
}

// The pixels of a shape that are in a rectangle.
Bytes FilledIn(const Rect& inside, const Shape& shape, ImageSize size, bool mirrored) {
  Bytes filled = Filled(shape, size, mirrored, false);
  for (size_t i = 0; i < filled.size(); ++i) {
    const int y = static_cast<int>(i) / size.width, column = static_cast<int>(i) % size.width;
    const int x = mirrored ? size.width - 1 - column : column;
    if (x < inside.x || x >= inside.x + inside.width || y < inside.y ||
        y >= inside.y + inside.height) {
      filled[i] = 0;
    }
  }
  return filled;
}

Bytes CutFrom(const Bytes& plane, ImageSize size, const Rect& window) {
  Bytes cut;
  for (int y = window.y; y < window.y + window.height; ++y) {
    for (int x = window.x; x < window.x + window.width; ++x) {
      cut.push_back(plane[static_cast<size_t>(y * size.width + x)]);
    }
  }
  return cut;
}

// Returns the box of an object in a window of the canvas. A polygon is a rectangle here, which the
// canvas and the window cut.
std::optional<BoxRow> BoxIn(const Rect& window, const Sample& canvas, size_t object,
                            bool mirrored) {
  const Points& polygon = canvas.shapes[object].polygon;
  const auto width = static_cast<double>(canvas.size.width);
  const BoxRow& b = canvas.boxes[object];
  double left = b[0], top = b[1], right = b[2], bottom = b[3];
  if (!polygon.empty()) {
    left = std::clamp(polygon[0].x, 0.0, width), right = std::clamp(polygon[2].x, 0.0, width);
    top = std::clamp<double>(polygon[0].y, 0, canvas.size.height);
    bottom = std::clamp<double>(polygon[2].y, 0, canvas.size.height);
  }
  if (mirrored) left = width - std::exchange(right, width - left);
  left = std::max<double>(left, window.x), right = std::min<double>(right, window.x + window.width);
  top = std::max<double>(top, window.y);
  bottom = std::min<double>(bottom, window.y + window.height);
  const double w = right - left, h = bottom - top, area = (b[2] - b[0]) * (b[3] - b[1]);
  if (!(w > 2 && h > 2 && w * h > (polygon.empty() ? 0.1 : 0.01) * area && w < 100 * h &&
        h < 100 * w)) {
    return std::nullopt;
  }
  return BoxRow{static_cast<float>(left - window.x), static_cast<float>(top - window.y),
                static_cast<float>(right - window.x), static_cast<float>(bottom - window.y)};
}

// A shape, a rectangle and a window of a canvas that is turned by 90 degrees: (x, y) becomes
// (y, width - x).
Rect TurnedOf(const Rect& r, ImageSize size) {
  return {r.y, size.width - r.x - r.width, r.height, r.width};
}
Shape TurnedOf(Shape shape, ImageSize size) {
  for (PlanePoint& point : shape.polygon) point = {point.y, size.width - point.x};
  if (shape.runs) shape.runs = TurnedOf(*shape.runs, size);
  return shape;
}

// Turns a row by 90 degrees, but for its mask.
void Turn(int side, Made& made) {
  const auto size = static_cast<float>(side);
  for (BoxRow& b : made.boxes) b = {b[1], size - b[2], b[3], size - b[0]};
  for (PairOfPoints& pair : made.points) {
    for (const size_t k : {size_t{0}, size_t{3}}) {
      if (pair[k + 2] == 0) continue;
      const float x = pair[k];
      pair[k] = pair[k + 1], pair[k + 1] = size - x;
    }
  }
  const Bytes before = made.pixels;
  for (int i = 0; i < 3 * side * side; ++i) {
    const int y = i / side % side, x = i % side, plane = i - i % (side * side);
    made.pixels[static_cast<size_t>(plane + (side - 1 - x) * side + y)] =
        before[static_cast<size_t>(i)];
  }
}

// The row of a Mosaic whose images have the size that they get on the canvas. `turned`: by 90
// degrees.
Made TwinOnCanvas(const Mosaic& mosaic, const DrawnMosaic& drawn, std::span<const Sample> of_row,
                  std::span<const Naive> images, double p, bool turned = false) {
  Rect all = drawn.canvas;
  Sample canvas;
  Naive pixels;
  std::vector<Rect> shown_of;
  std::vector<ImageSize> sizes;
  for (uint32_t part = 0; part < of_row.size(); ++part) {
    const PlacedImage at = PlaceImage(mosaic, drawn, part, of_row[part].size, false, sizes);
    sizes.push_back(of_row[part].size);
    EXPECT_EQ(at.whole.size(), of_row[part].size);
    if (!drawn.several) all = at.whole;
    if (part == 0) {
      canvas.size = pixels.size = all.size();
      for (const uint8_t value : mosaic.fill) {
        pixels.pixels.insert(pixels.pixels.end(), PixelsIn(all.size()), value);
      }
    }
    PutOnCanvas(of_row[part], images[part], at.whole.x - all.x, at.whole.y - all.y,
                RelativeTo(all, Overlap(at.whole, all)), canvas, pixels, shown_of);
  }
  const ImageSize size = canvas.size;
  const Naive before = pixels;
  std::vector<std::pair<size_t, bool>> objects;
  for (size_t i = 0; i < canvas.boxes.size(); ++i) objects.emplace_back(i, false);
  for (const size_t i : Chosen(canvas, MirroredOf(canvas), p)) {
    const Bytes inside = FilledIn(shown_of[i], canvas.shapes[i], size, true);
    // Pixels outside of the tile cannot be found.
    const Rect tile = RelativeTo(all, PlaceImage(mosaic, drawn, 0, of_row[0].size).canvas.tile);
    if (std::ranges::count(CutFrom(inside, size, tile), 1) == 0) continue;
    objects.emplace_back(i, true);
    Naive mirrored = before;
    mirrored.Flip(true);
    for (size_t at = 0; at < pixels.pixels.size(); ++at) {
      if (inside[at % inside.size()] != 0) pixels.pixels[at] = mirrored.pixels[at];
    }
  }
  const Rect window{-all.x, -all.y, mosaic.size, mosaic.size};
  Made made;
  // The canvas may not cover the row.
  const auto pixel = [&](size_t c, int x, int y) -> uint8_t {
    if (x < 0 || y < 0 || x >= size.width || y >= size.height) return mosaic.fill[c];
    return pixels.pixels[c * PixelsIn(size) + static_cast<size_t>(y * size.width + x)];
  };
  for (size_t c = 0; c < 3; ++c) {
    for (int y = window.y; y < window.y + window.height; ++y) {
      for (int x = window.x; x < window.x + window.width; ++x) {
        made.pixels.push_back(pixel(c, x, y));
      }
    }
  }
  std::vector<Bytes> own, all_planes;
  for (const auto& [i, pasted] : objects) {
    const std::optional<BoxRow> box = BoxIn(window, canvas, i, pasted);
    if (!box) continue;
    made.boxes.push_back(*box);
    made.numbers.push_back(canvas.numbers[i]);
    PairOfPoints pair = canvas.points[i];
    if (pasted) {
      Exchange(pair);
      for (const size_t k : {size_t{0}, size_t{3}}) {
        pair[k] = static_cast<float>(size.width) - pair[k];
      }
    }
    for (const size_t k : {size_t{0}, size_t{3}}) {
      pair[k] -= static_cast<float>(window.x), pair[k + 1] -= static_cast<float>(window.y);
      const bool is_seen = pair[k] >= 0 && pair[k + 1] >= 0 &&
                           pair[k] <= static_cast<float>(mosaic.size) &&
                           pair[k + 1] <= static_cast<float>(mosaic.size);
      if (!is_seen || pair[k + 2] == 0) pair[k] = pair[k + 1] = pair[k + 2] = 0;
    }
    made.points.push_back(pair);
    Bytes filled = FilledIn(shown_of[i], canvas.shapes[i], size, pasted);
    ImageSize of_filled = size;
    Rect seen = window;
    if (turned) {  // a polygon that is turned may not be filled as the one that is not
      Sample whole{.size = size, .shapes = {canvas.shapes[i], {.runs = shown_of[i]}}};
      if (pasted) whole = MirroredOf(whole);
      of_filled = {size.height, size.width};
      seen = TurnedOf(window, size);
      filled = FilledIn(*TurnedOf(whole.shapes[1], size).runs, TurnedOf(whole.shapes[0], size),
                        of_filled, false);
    }
    Bytes in_row;
    for (int y = seen.y; y < seen.y + seen.height; ++y) {
      for (int x = seen.x; x < seen.x + seen.width; ++x) {
        const bool is_there = x >= 0 && y >= 0 && x < of_filled.width && y < of_filled.height;
        in_row.push_back(is_there ? filled[static_cast<size_t>(y * of_filled.width + x)] : 0);
      }
    }
    all_planes.push_back(in_row);
    if (!pasted) own.push_back(in_row);
  }
  made.mask.resize(PixelsIn(window.size()));
  Paint(own, 0, made.mask);
  Paint(all_planes, own.size(), made.mask);
  if (turned) Turn(mosaic.size, made);
  return made;
}

TEST(CopyPaste, PastesOntoTheCanvasOfAMosaic) {
  Random random(7);
  MemoryBudget budget(256 << 20);
  size_t pasted = 0, kept = 0;
  for (int n = 0; n < testing::Effort(1000); ++n) {
    const Mosaic mosaic{.size = random.Between(20, 70),
                        .scale = 0,
                        .translate = random.OneIn(3) ? 1.0 : 0.1,
                        .p = random.OneIn(4) ? 0.0 : 1.0,
                        .n = random.OneIn(3) ? 9 : 4};
    const double p = random.OneIn(2) ? 1 : 0.25 * random.Between(0, 4);
    const Plan plan = Plan::Compile({mosaic, CopyPaste{p}}, Options()).value();
    const DrawKey key{2, 3, static_cast<uint64_t>(n)};
    RandomStream stream(key, 0);
    const DrawnMosaic drawn = DrawMosaic(mosaic, stream);
    std::vector<Sample> of_row;
    std::vector<Naive> images;
    for (uint32_t part = 0; part < (drawn.several ? plan.parts() : 1); ++part) {
      ImageSize size{mosaic.size, random.Between(1, mosaic.size)};
      if (random.OneIn(2)) std::swap(size.width, size.height);
      of_row.push_back(NextSample(random, size));
      for (int32_t& number : of_row.back().numbers) number += static_cast<int32_t>(1000 * part);
      // Fractions are rounded in the tile, whose corner is not that of the canvas.
      for (size_t i = 0; i < of_row.back().shapes.size(); ++i) {
        const auto [left, top, right, bottom] = of_row.back().boxes[i];
        Points& points = of_row.back().shapes[i].polygon;
        if (!points.empty()) points = {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
      }
      images.push_back(NoisyImage(random, size));
    }
    EXPECT_EQ(plan.SamplesOf(key, 1, 9, 0).count, of_row.size());
    const Made made = MadeBy(plan, of_row, images, *plan.MakeWorkspace(budget), key);
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    const Made wanted = TwinOnCanvas(mosaic, drawn, of_row, images, p);
    ASSERT_EQ(made.numbers, wanted.numbers) << n;
    for (size_t i = 0; i < made.boxes.size(); ++i) {
      for (size_t k = 0; k < 4; ++k) ASSERT_NEAR(made.boxes[i][k], wanted.boxes[i][k], 1e-4) << n;
    }
    ASSERT_EQ(made.points, wanted.points) << n;
    ASSERT_EQ(made.pixels, wanted.pixels) << n;
    ASSERT_EQ(made.mask, wanted.mask) << n;
    kept += made.numbers.size();
    pasted += made.numbers.size() - std::set(made.numbers.begin(), made.numbers.end()).size();
  }
  EXPECT_GT(kept, static_cast<size_t>(testing::Effort(1000)));
  EXPECT_GT(pasted, static_cast<size_t>(testing::Effort(200)));
}

// The draws turn rows by 90 degrees, but for the last thousandths of one.
TEST(CopyPaste, PastesOntoATurnedCanvas) {
  constexpr double kLacks = 0.003;  // degrees: a corner of the row is less than 0.004 pixels off
  Random random(8);
  MemoryBudget budget(256 << 20);
  size_t pasted = 0;
  uint64_t position = 0;
  for (int n = 0; n < testing::Effort(60); ++n) {
    const Mosaic mosaic{.size = random.Between(20, 70),
                        .scale = 0,
                        .translate = 0,
                        .p = random.OneIn(4) ? 0.0 : 1.0,
                        .degrees = 90};
    DrawnMosaic drawn;
    for (; drawn.degrees < 90 - kLacks; ++position) {
      RandomStream stream({2, 3, position}, 0);
      drawn = DrawMosaic(mosaic, stream);
    }
    const Plan plan = Plan::Compile({mosaic, CopyPaste{1}}, Options()).value();
    std::vector<Sample> of_row;
    std::vector<Naive> images;
    for (uint32_t part = 0; part < (drawn.several ? plan.parts() : 1); ++part) {
      ImageSize size{mosaic.size, random.Between(1, mosaic.size)};
      if (random.OneIn(2)) std::swap(size.width, size.height);
      Sample in{.size = size};
      // No side is nearly 2 pixels, no corner nearly between two fifths of a pixel.
      for (int k = random.Between(2, 9); k > 0; --k) {
        const auto x = static_cast<float>(random.Between(0, size.width - 1));
        const auto y = static_cast<float>(random.Between(0, size.height - 1));
        const auto w = static_cast<float>(random.Between(0, 12));
        const auto h = static_cast<float>(random.Between(0, 12));
        in.AddRectangle({x + 0.25f, y + 0.25f, x + w + 0.65f, y + h + 0.65f});
        if (random.OneIn(3)) in.shapes.back() = {};
      }
      for (int32_t& number : in.numbers) number += static_cast<int32_t>(1000 * part);
      of_row.push_back(in);
      images.push_back(NoisyImage(random, size));
    }
    const Made made =
        MadeBy(plan, of_row, images, *plan.MakeWorkspace(budget), {2, 3, position - 1});
    ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
    const Made wanted = TwinOnCanvas(mosaic, drawn, of_row, images, 1, /*turned=*/true);
    ASSERT_EQ(made.numbers, wanted.numbers) << n;
    for (size_t i = 0; i < made.boxes.size(); ++i) {
      for (size_t k = 0; k < 4; ++k) ASSERT_NEAR(made.boxes[i][k], wanted.boxes[i][k], 0.01) << n;
      for (size_t k = 0; k < 6; ++k) ASSERT_NEAR(made.points[i][k], wanted.points[i][k], 0.01) << n;
    }
    for (size_t i = 0; i < made.pixels.size(); ++i) {
      ASSERT_NEAR(made.pixels[i], wanted.pixels[i], 1) << n << " at " << i;
    }
    ASSERT_EQ(made.mask, wanted.mask) << n;
    pasted += made.numbers.size() - std::set(made.numbers.begin(), made.numbers.end()).size();
  }
  EXPECT_GT(pasted, static_cast<size_t>(testing::Effort(100)));
}

// An object with such a polygon keeps the box that the source gives.
TEST(CopyPaste, PolygonsOnAMosaicMayHaveAnyNumbers) {
  constexpr double kHuge = 1e30;
  Sample in{.size = {40, 20}};
  in.Add({2, 2, 12, 8}, {.polygon = {{2, 2}, {kNan, 2}, {12, 8}}});
  in.Add({2, 2, 12, 8}, {});
  in.Add({2, 2, 12, 8}, {.polygon = {{-kHuge, 4}, {kHuge, 4}, {12, 8}, {-kHuge, 8}}});
  in.Add({2, 2, 12, 8}, {.polygon = {{3, 3}}});
  const Mosaic mosaic{.size = 40, .scale = 0, .translate = 0, .p = 0};
  const Made made = MadeBy(Plan::Compile({mosaic, CopyPaste{0}}, Options()).value(), in);
  ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
  EXPECT_THAT(made.numbers, ::testing::ElementsAre(0, 10, 20));
  EXPECT_THAT(made.boxes, ::testing::ElementsAre(BoxRow{2, 12, 12, 18}, BoxRow{2, 12, 12, 18},
                                                 BoxRow{0, 14, 40, 18}));
}

// Twin of ShapeMasks::FindBoxes: many points of each edge, clamped one by one, as Ultralytics does.
Box BoxByPoints(const Points& polygon, const MosaicPlace& at, bool mirrored) {
  constexpr int kPoints = 4000;
  const Rect& all = at.canvas;
  std::vector<MapPoint> points;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const PlanePoint &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    for (int k = 0; k < kPoints; ++k) {
      double x = at.whole.x + from.x + (to.x - from.x) * k / kPoints;
      double y = at.whole.y + from.y + (to.y - from.y) * k / kPoints;
      x = std::clamp<double>(x, all.x, all.x + all.width);
      y = std::clamp<double>(y, all.y, all.y + all.height);
      if (mirrored) x = 2 * all.x + all.width - x;
      points.push_back(at.turn ? Moved(*at.turn, x, y) : MapPoint{x, y});
    }
  }
  const double width = at.row.width, height = at.row.height;
  Box box{1e9, 1e9, -1e9, -1e9};
  const auto extend = [&](double x, double y) {
    box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x),
           std::max(box.bottom, y)};
  };
  for (const auto& [x, y] : points) {
    if (x >= 0 && y >= 0 && x <= width && y <= height) extend(x, y);
  }
  for (const double x : {0.0, width}) {
    for (const double y : {0.0, height}) {
      bool inside = false;
      for (size_t i = 0; i < points.size(); ++i) {
        const MapPoint &from = points[i], &to = points[(i + 1) % points.size()];
        if ((from.y > y) == (to.y > y)) continue;
        if (from.x + (y - from.y) / (to.y - from.y) * (to.x - from.x) > x) inside = !inside;
      }
      if (inside) extend(x, y);
    }
  }
  return box;
}

// The image is not resized.
std::optional<Box> BoxFound(const Points& polygon, const MosaicPlace& at, bool mirrored = false) {
  Sample in{.size = at.whole.size()};
  in.Add({}, {.polygon = polygon});
  const ObjectShapes words = WordsOf(in);
  const std::array masks{ShapeMask{.shapes = BytesOf(words.words())}};
  const uint32_t object = mirrored ? MovedObjects::kPasted : 0;
  MemoryBudget budget(1 << 20);
  std::array<std::optional<Box>, 1> boxes;
  EXPECT_EQ(ShapeMasks(budget).FindBoxes({.size = in.size, .masks = masks, .count = 1},
                                         std::span(&object, 1), at, boxes),
            1u);
  return boxes[0];
}

TEST(CopyPaste, BoxesAreThoseOfPolygonsInTheRow) {
  Random random(8);
  int in_row = 0;
  for (int n = 0; n < testing::Effort(300); ++n) {
    MosaicPlace at{.whole = {random.Between(-60, 60), random.Between(-60, 60), 120, 90},
                   .canvas = {random.Between(-80, 0), random.Between(-80, 0), 160, 150},
                   .turn = std::nullopt,
                   .row = {100, 80}};
    if (!random.OneIn(3)) {
      at.turn = TurnOf({.canvas = {},
                        .middle_x = 50,
                        .middle_y = 40,
                        .degrees = 1.0 * random.Between(-180, 180),
                        .x_shear = random.OneIn(2) ? 0.0 : 15.0,
                        .x_perspective = random.OneIn(2) ? 0 : 0.001});
    }
    const int reach = random.OneIn(2) ? 300 : 90;
    Points polygon;
    for (int corner = random.Between(3, 8); corner > 0; --corner) {
      polygon.push_back({static_cast<double>(random.Between(-reach, reach)),
                         static_cast<double>(random.Between(-reach, reach))});
    }
    const bool mirrored = random.OneIn(2);
    const Box wanted = BoxByPoints(polygon, at, mirrored);
    const Box made = BoxFound(polygon, at, mirrored).value();
    if (wanted.right - wanted.left < 2 || wanted.bottom - wanted.top < 2) continue;
    ++in_row;
    for (const auto side : {&Box::left, &Box::top, &Box::right, &Box::bottom}) {
      ASSERT_NEAR(made.*side, wanted.*side, 0.5) << n;
    }
  }
  EXPECT_GT(in_row, testing::Effort(100));
}

// Around each corner of the row, which is not in it.
TEST(CopyPaste, BoxesOfConcavePolygonsEndWhereTheseDo) {
  const MosaicPlace at{
      .whole = {0, 0, 100, 100}, .canvas = {-200, -200, 500, 500}, .turn = {}, .row = {100, 100}};
  const Points around{{30, 40},  {30, 60},  {-20, 60},  {-20, -60},
                      {30, -60}, {30, -40}, {-10, -40}, {-10, 40}};
  for (const bool right : {false, true}) {
    for (const bool below : {false, true}) {
      Points polygon = around;
      for (PlanePoint& point : polygon) {
        if (right) point.x = 100 - point.x;
        if (below) point.y = 100 - point.y;
      }
      const Box wanted{right ? 70.0 : 0, 40, right ? 100.0 : 30, 60};
      EXPECT_EQ(BoxFound(polygon, at).value(), wanted) << right << below;
    }
  }
  // All of the row.
  EXPECT_EQ(BoxFound({{-9, -9}, {120, -9}, {120, 120}, {-9, 120}}, at).value(),
            (Box{0, 0, 100, 100}));
  EXPECT_FALSE(BoxFound({}, at));
}

// A Mosaic takes them without a CopyPaste, too, if it has shapes.
TEST(CopyPaste, AMosaicAloneTakesTheBoxesOfPolygons) {
  Sample in{.size = {40, 40}};
  in.Add({0, 0, 40, 40}, {.polygon = {{10, 12}, {30, 12}, {30, 20}}});
  in.Add({5, 6, 25, 26}, {});
  const Mosaic mosaic{.size = 40, .scale = 0, .translate = 0, .p = 0};
  PlanOptions options = Options();
  EXPECT_THAT(MadeBy(Plan::Compile({mosaic}, options).value(), in).boxes,
              ::testing::ElementsAre(BoxRow{10, 12, 30, 20}, BoxRow{5, 6, 25, 26}));
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

// `of_two`: with objects of another image; otherwise with those on a Mosaic's canvas.
void ExpectMemory(bool of_two) {
  constexpr ImageSize kSize{300, 200};
  for (const bool turns : {false, true}) {
    for (const bool runs : {false, true}) {
      Sample in{.size = kSize};
      for (int i = 0; i < 30; ++i) {
        const auto x = static_cast<float>(i % 10 * 14), y = static_cast<float>(i / 10 * 20);
        in.AddRectangle({x, y, x + 9, y + 9});
        if (runs) in.shapes.back() = {.runs = Rect{i % 10 * 14, i / 10 * 20, 9, 9}};
      }
      PlanOptions options = Options(), without;
      options.max_objects = 30;
      without.layout = options.layout;
      const Mosaic mosaic{.size = 300, .translate = 0.5, .degrees = turns ? 45.0 : 0};
      std::vector<Transform> list{mosaic, CopyPaste{1}};
      if (of_two) list = {CenterCrop{200, 300}, CopyPaste{1, kMixup}};
      if (of_two && turns) list.insert(list.begin() + 1, RandomRotation{{-30, 30}});
      const Plan plan = Plan::Compile(list, options).value();
      const Plan alone = Plan::Compile({CenterCrop{200, 300}}, without).value();
      Random random(1);
      const Naive image = NoisyImage(random, kSize);
      MemoryBudget budget(256 << 20);
      const auto base = alone.MakeWorkspace(budget), workspace = plan.MakeWorkspace(budget);
      EXPECT_TRUE(MadeBy(alone, in, image, *base).status.ok());
      const std::vector<Sample> of_row(plan.parts(), in);
      const std::vector<Naive> images(plan.parts(), image);
      for (uint64_t n = 0; n < 20; ++n) {
        const Made made = MadeBy(plan, of_row, images, *workspace, {2, 3, n});
        ASSERT_TRUE(made.status.ok()) << made.status.error().ToString();
      }
      EXPECT_LE(MemoryOf(*workspace), MemoryOf(*base) + plan.extra_bytes()) << turns << runs;
    }
  }
}

TEST(CopyPaste, ACanvasNeedsNoMoreMemoryThanItSays) { ExpectMemory(/*of_two=*/false); }
TEST(CopyPaste, ObjectsOfAnotherImageNeedNoMoreMemoryThanTheySay) { ExpectMemory(/*of_two=*/true); }

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
  const Mosaic mosaic{.size = 9};
  EXPECT_EQ(RefusalOf({mosaic, RandomApply{{CopyPaste{}}, 0.5}, RandomHorizontalFlip{}}), "");
  EXPECT_THAT(RefusalOf({mosaic, RandomInvert{1}, CopyPaste{}}), HasSubstr("directly after"));
  EXPECT_THAT(RefusalOf({mosaic, RandomChoice{{CopyPaste{}, RandomInvert{1}}, {}}}),
              HasSubstr("directly after"));
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

TEST(CopyPaste, OfAnotherImageIsRefusedWithoutWhatItNeeds) {
  const CenterCrop crop{9, 9};
  const CopyPaste paste{1, kMixup};
  const RandomChoice either{{paste, CopyPaste{0.2, kMixup}}, {}};
  EXPECT_EQ(RefusalOf({crop, RandomApply{{paste}, 0.5}, RandomErasing{}}), "");
  EXPECT_EQ(RefusalOf({RandomResizedCrop{9, 9}, either, CenterCrop{5, 5}}), "");
  EXPECT_THAT(RefusalOf({Mosaic{.size = 9}, paste}), HasSubstr("two Mosaics"));
  EXPECT_THAT(RefusalOf({Mosaic{.size = 9}, RandomInvert{}, RandomApply{{paste}, 0.5}}),
              HasSubstr("two Mosaics"));
  EXPECT_THAT(RefusalOf({crop, RandomApply{{RandomInvert{}, paste}, 0.5}}), HasSubstr("alone"));
  EXPECT_THAT(RefusalOf({crop, RandomChoice{{CopyPaste{}, paste}, {}}}), HasSubstr("alone"));
  EXPECT_THAT(RefusalOf({crop, ConvertBoundingBoxFormat{BoxFormat::kXyxy}, paste}),
              HasSubstr("Move ConvertBoundingBoxFormat after CopyPaste"));
  for (const bool pads : {false, true}) {
    std::vector<Transform> list{Resize{.size = 9, .max_size = 20}, paste};
    if (pads) list.emplace_back(PadTo{20, 20});
    EXPECT_THAT(RefusalOf(list),
                AllOf(HasSubstr("must have the same one"), Not(HasSubstr("PadTo"))));
  }
  EXPECT_THAT(RefusalOf({crop, paste, PadTo{20, 20}}), HasSubstr("Use Pad"));
  PlanOptions options = Options();
  options.geometry = true;
  EXPECT_THAT(RefusalOf({crop, paste}, options), HasSubstr("geometry"));
  options = Options();
  options.defer_to_device = true;
  EXPECT_THAT(RefusalOf({crop, paste}, options), HasSubstr("several images"));
}

}  // namespace
}  // namespace stoker
