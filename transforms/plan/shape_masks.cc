#include "transforms/plan/shape_masks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "transforms/plan/keep_motion.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/moved_objects.h"
#include "transforms/plan/resampling.h"

namespace stoker {

namespace {

size_t PixelsOf(ImageSize size) {
  return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

Rect Union(const Rect& one, const Rect& other) {
  if (one.width == 0) return other;
  if (other.width == 0) return one;
  const int x = std::min(one.x, other.x), y = std::min(one.y, other.y);
  return {x, y, std::max(one.x + one.width, other.x + other.width) - x,
          std::max(one.y + one.height, other.y + other.height) - y};
}

Error WrongSize(ImageSize runs, ImageSize image) {
  const bool turned = runs.height == image.width && runs.width == image.height;
  return {.code = Code::kInvalidArgument,
          .cause = RunsOfOtherSize("an object", runs, image),
          .advice = turned ? "If the image was annotated without its EXIF orientation, set "
                             "exif_orientation to False"
                           : "Annotations belong to the image in its own size"};
}

Status CheckNumbers(const ShapeMask& mask, size_t objects) {
  const bool is_small = mask.values.empty() && mask.bytes == 1;
  const size_t most = is_small ? UINT8_MAX : UINT16_MAX;
  if (objects <= most) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "the row has " + std::to_string(objects) + " objects, and " +
                        (is_small ? "a mask of uint8" : "a mask") + " can tell " +
                        std::to_string(most) + " apart",
               .advice = is_small ? "Ask for masks of uint16, or leave the sample out"
                                  : "Leave the sample out"};
}

// The runs inside an object, in pixels of the image, down one column after another.
class Runs {
 public:
  explicit Runs(const ShapePart& part) : part_(&part) {}
  // Goes to the next one that is not empty; false after the last one.
  bool Next() {
    for (; at_ + 1 < part_->words(); at_ += 2) {
      begin_ = end_ + part_->Word(at_);
      end_ = begin_ + part_->Word(at_ + 1);
      if (begin_ == end_) continue;
      at_ += 2;
      return true;
    }
    return false;
  }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }

 private:
  const ShapePart* part_;
  size_t at_ = 2;  // the next word, after height and width
  uint64_t begin_ = 0, end_ = 0;
};

template <typename T>
T* TakeArray(uint8_t*& at, size_t count) {
  auto* const array = reinterpret_cast<T*>(at);
  at += count * sizeof(T);
  return array;
}

// Writes the pixels of a row from `begin` to `count`, and then the background up to `all`.
template <typename Pixel, typename ValueOf>
void WritePixels(int begin, int count, int all, uint16_t background, const ValueOf& value_of,
                 uint8_t* to) {
  const auto put = [to](int x, uint16_t value) {
    const auto pixel = static_cast<Pixel>(value);
    std::memcpy(to + static_cast<size_t>(x) * sizeof(Pixel), &pixel, sizeof(Pixel));
  };
  for (int x = begin; x < count; ++x) put(x, value_of(x));
  for (int x = count; x < all; ++x) put(x, background);
}

// Returns how many of the objects are the image's and come first: copies, or none.
size_t CountOf(const ShapeMasks::Image& image, std::span<const uint32_t> objects) {
  const auto is_other = [&](uint32_t index) {
    return MovedObjects::IndexOf(index) - image.first >= image.count ||
           MovedObjects::IsPasted(index) != MovedObjects::IsPasted(objects.front());
  };
  return static_cast<size_t>(std::ranges::find_if(objects, is_other) - objects.begin());
}

// The box of the part of a polygon that is in a row.
class BoxInRow {
 public:
  explicit BoxInRow(ImageSize row) : width_(row.width), height_(row.height) {}

  // Cuts the edge to the row by itself (Liang and Barsky), so that the box is exact for any
  // polygon.
  void AddEdge(const MapPoint& from, const MapPoint& to) {
    const double x = to.x - from.x, y = to.y - from.y;
    double begin = 0, end = 1;
    const auto cut = [&](double inside, double step) {  // to inside + t step >= 0
      if (step > 0) begin = std::max(begin, -inside / step);
      if (step < 0) end = std::min(end, -inside / step);
      if (step == 0 && inside < 0) end = -1;
    };
    cut(from.x, x), cut(width_ - from.x, -x), cut(from.y, y), cut(height_ - from.y, -y);
    if (begin <= end) {
      Extend(from.x + begin * x, from.y + begin * y);
      Extend(from.x + end * x, from.y + end * y);
    }
    for (size_t i = 0; i < inside_.size(); ++i) {
      const double corner_x = CornerX(i), corner_y = CornerY(i);
      if ((from.y > corner_y) == (to.y > corner_y)) continue;
      if (from.x + (corner_y - from.y) / y * x > corner_x) inside_[i] = !inside_[i];
    }
  }
  // Adds the corners of the row that are in the polygon whose edges were added.
  void ClosePolygon() {
    for (size_t i = 0; i < inside_.size(); ++i) {
      if (std::exchange(inside_[i], false)) Extend(CornerX(i), CornerY(i));
    }
  }
  const Box& box() const { return box_; }

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  // Corner i of the row, 0 to 3.
  double CornerX(size_t i) const { return i % 2 == 0 ? 0 : width_; }
  double CornerY(size_t i) const { return i < 2 ? 0 : height_; }
  void Extend(double x, double y) {
    x = std::clamp(x, 0.0, width_), y = std::clamp(y, 0.0, height_);
    box_ = {std::min(box_.left, x), std::min(box_.top, y), std::max(box_.right, x),
            std::max(box_.bottom, y)};
  }

  double width_, height_;
  Box box_{kFar, kFar, -kFar, -kFar};
  std::array<bool, 4> inside_{};  // corners of the row: whether an odd number of edges is right
};

// Visits the points after `from` of an edge that is clamped along an axis: where it is bent, and
// its end.
template <typename Visit>
void ClampEdge(double MapPoint::*axis, double MapPoint::*other, double least, double most,
               const MapPoint& from, const MapPoint& to, const Visit& visit) {
  const double begin = from.*axis, end = to.*axis;
  for (const double line : {begin < end ? least : most, begin < end ? most : least}) {
    if (!(std::min(begin, end) < line && line < std::max(begin, end))) continue;
    MapPoint at;
    at.*axis = line;
    at.*other = from.*other + (line - begin) / (end - begin) * (to.*other - from.*other);
    visit(at);
  }
  MapPoint at = to;
  at.*axis = std::clamp(end, least, most);
  visit(at);
}

// Visits the edges of a polygon in the row. It is clamped to the canvas before it is turned, so
// that a polygon that the canvas cuts keeps its height there, as Ultralytics clamps its points.
template <typename Visit>
void VisitEdges(std::span<const MapPoint> corners, const MosaicPlace& at, bool mirrored,
                const Visit& visit) {
  const Rect& canvas = at.canvas;
  const double left = canvas.x, right = left + canvas.width;
  const double top = canvas.y, bottom = top + canvas.height;
  const auto place = [&](const MapPoint& point) {
    const double x = mirrored ? left + right - point.x : point.x;
    return at.turn ? Moved(*at.turn, x, point.y) : MapPoint{x, point.y};
  };
  MapPoint corner = corners.back();
  MapPoint clamped{std::clamp(corner.x, left, right), corner.y};  // along x
  MapPoint placed = place({clamped.x, std::clamp(clamped.y, top, bottom)});
  for (const MapPoint& next : corners) {
    ClampEdge(&MapPoint::x, &MapPoint::y, left, right, corner, next, [&](const MapPoint& by_x) {
      ClampEdge(&MapPoint::y, &MapPoint::x, top, bottom, clamped, by_x, [&](const MapPoint& both) {
        const MapPoint to = place(both);
        visit(placed, to);
        placed = to;
      });
      clamped = by_x;
    });
    corner = next;
  }
}

}  // namespace

uint32_t ShapeMasks::Image::PlaceOf(uint32_t object) const {
  const uint32_t index = MovedObjects::IndexOf(object) - first;
  return kept.empty() ? index : kept[index];
}

size_t ShapeMasks::FindBoxes(const Image& image, std::span<const uint32_t> objects,
                             const MosaicPlace& at, std::span<std::optional<Box>> boxes) {
  const size_t count = CountOf(image, objects);
  const Rect& whole = at.whole;
  const ShapeMask& mask = image.masks.front();
  const double width = mask.normalized ? 1 : image.size.width;
  const double height = mask.normalized ? 1 : image.size.height;
  ShapeReader reader(mask.shapes);
  uint32_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    BoxInRow in_row(at.row);
    bool has_corners = false, are_polygons = true;
    for (; next <= image.PlaceOf(objects[i]); ++next) are_polygons = reader.NextObject();
    while (const std::optional<ShapePart> part = reader.NextPart()) {
      are_polygons = are_polygons && !part->has_runs;
      polygon_.clear();
      for (size_t k = 0; are_polygons && k + 1 < part->words(); k += 2) {
        const double x = whole.x + part->Number(k) / width * whole.width;
        const double y = whole.y + part->Number(k + 1) / height * whole.height;
        are_polygons = std::isfinite(x) && std::isfinite(y);
        polygon_.push_back({x, y});
      }
      if (!are_polygons || polygon_.empty()) continue;
      has_corners = true;
      VisitEdges(polygon_, at, MovedObjects::IsPasted(objects[i]),
                 [&](const MapPoint& from, const MapPoint& to) { in_row.AddEdge(from, to); });
      in_row.ClosePolygon();
    }
    boxes[i] = has_corners && are_polygons ? std::optional(in_row.box()) : std::nullopt;
  }
  return count;
}

uint64_t ShapeMasks::BytesFor(ImageSize row, uint32_t objects) {
  const uint64_t of_pixel = sizeof(uint16_t) + 2, of_object = sizeof(uint32_t) + sizeof(uint16_t);
  const auto width = static_cast<uint64_t>(row.width), height = static_cast<uint64_t>(row.height);
  return GrowingBuffer::MappedBytes(PixelsOf(row) * of_pixel + width + height * sizeof(Columns) +
                                    (uint64_t{objects} + 1) * of_object);
}

Status ShapeMasks::Draw(std::span<const Image> images, std::span<const uint32_t> kept,
                        const Target& target, Augmenter& augmenter) {
  const auto copies = static_cast<size_t>(std::ranges::count_if(kept, &MovedObjects::IsPasted));
  const size_t own = kept.size() - copies;
  for (size_t i = 0; i < images.front().masks.size(); ++i) {
    const ShapeMask& mask = images.front().masks[i];
    TRY(CheckNumbers(mask, target.after + kept.size()));
    TRY(Start(kept.size(), target));
    values_[0] = mask.background;
    TRY(DrawImages(images, i, kept.first(own), 0, target.after, augmenter));
    TRY(DrawImages(images, i, kept.subspan(own), own, target.after, augmenter));
    Write(mask, target);
  }
  return {};
}

Result<const uint8_t*> ShapeMasks::DrawInside(std::span<const Image> images,
                                              std::span<const uint32_t> kept, const Target& target,
                                              Augmenter& augmenter, std::vector<uint32_t>& chosen) {
  indices_.clear();
  for (const uint32_t object : chosen) indices_.push_back(kept[object]);
  TRY(Start(indices_.size(), target));
  TRY(DrawImages(images, 0, indices_, 0, 0, augmenter));
  TRY(inside_.Grow(PixelsOf(size_)));
  for (size_t i = 0; i < PixelsOf(size_); ++i) inside_.data()[i] = owners_[i] != 0 ? 1 : 0;
  size_t seen = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (areas_[i + 1] != 0) chosen[seen++] = chosen[i];
  }
  chosen.resize(seen);
  return inside_.data();
}

Status ShapeMasks::Start(size_t objects, const Target& target) {
  size_ = target.size;
  TRY(memory_.Grow(BytesFor(size_, static_cast<uint32_t>(objects))));
  const size_t pixels = PixelsOf(size_), numbers = objects + 1;
  uint8_t* at = memory_.data();
  areas_ = TakeArray<uint32_t>(at, numbers);
  columns_ = TakeArray<Columns>(at, static_cast<size_t>(size_.height));
  values_ = TakeArray<uint16_t>(at, numbers);
  uint8_t* const zeros = at;
  owners_ = TakeArray<uint16_t>(at, pixels);
  object_ = {TakeArray<uint8_t>(at, pixels), size_};
  scratch_ = TakeArray<uint8_t>(at, PolygonFill::ScratchBytes(size_));
  std::memset(zeros, 0, static_cast<size_t>(at - zeros));
  areas_[0] = UINT32_MAX;
  return {};
}

// Draws objects that are all copies, or none is. `below`: how many were drawn before, which are
// below these. `after`: how many are in the row before all of them.
Status ShapeMasks::DrawImages(std::span<const Image> images, size_t mask,
                              std::span<const uint32_t> kept, size_t below, size_t after,
                              Augmenter& augmenter) {
  size_t number = below;
  for (size_t i = 0; i < images.size(); ++i) {
    Image image = images[i];
    const size_t count = CountOf(image, kept);
    if (count == 0) continue;
    if (MovedObjects::IsPasted(kept[0])) {
      copies_ = *image.drawn;
      for (DrawnStep& step : copies_.steps) {
        const auto* const paste = std::get_if<Paste>(&step.step);
        if (paste != nullptr && paste->other == nullptr) step.step = Mirror{.columns = true};
      }
      image.drawn = &copies_;
    }
    FindImage(image);
    touched_ = 0;
    most_touched_ =
        (uint64_t{1} << 26) +
        1024 * uint64_t{std::max(PixelsOf(size_), PixelsOf(image.drawn->geometry.window.size()))};
    const ShapeMask& of_image = image.masks[mask];
    for (size_t k = 0; k < count; ++k) {
      values_[number + k + 1] = of_image.values.empty()
                                    ? static_cast<uint16_t>(after + number + k + 1)
                                    : of_image.values[image.PlaceOf(kept[k])];
    }
    Status drawn = DrawObjects(image, of_image, kept.first(count), number, below, augmenter);
    if (!drawn.ok()) {
      failed_ = i;
      return drawn;
    }
    kept = kept.subspan(count);
    number += count;
  }
  return {};
}

void ShapeMasks::FindImage(const Image& image) {
  has_places_ = false;
  FindImageIn(*image.drawn, image.size, corners_);
  FindHorizons(*image.drawn, horizons_);
  FindColumns();
}

// Finds the pixels whose centers are in the image's part of the row.
void ShapeMasks::FindColumns() {
  constexpr double kRounding = 1e-6;
  const double most = size_.width;
  for (int row = 0; row < size_.height; ++row) {
    const double y = row + 0.5;
    double left = std::numeric_limits<double>::infinity(), right = -left;
    for (size_t i = 0; i < corners_.size(); ++i) {
      const MapPoint &from = corners_[i], &to = corners_[(i + 1) % corners_.size()];
      if (!(std::min(from.y, to.y) <= y && y <= std::max(from.y, to.y))) continue;
      const double part = from.y == to.y ? 0 : (y - from.y) / (to.y - from.y);
      const double x = from.x + part * (to.x - from.x);
      left = std::min(left, x);
      right = std::max(right, x);
    }
    columns_[row] = {};
    if (!(left <= right)) continue;
    columns_[row] = {static_cast<int>(std::clamp(std::ceil(left - 0.5 - kRounding), 0.0, most)),
                     static_cast<int>(std::clamp(std::floor(right + 0.5 + kRounding), 0.0, most))};
  }
}

// `number`: how many were drawn before; the first `below` of them are covered by these.
Status ShapeMasks::DrawObjects(const Image& image, const ShapeMask& mask,
                               std::span<const uint32_t> kept, size_t number, size_t below,
                               Augmenter& augmenter) {
  const GeometryMap map = MapToRow(*image.drawn);
  const double width = mask.normalized ? image.size.width : 1;
  const double height = mask.normalized ? image.size.height : 1;
  ShapeReader reader(mask.shapes);
  uint32_t next = 0;  // the object that the reader goes to
  for (const uint32_t object : kept) {
    for (; next <= image.PlaceOf(object); ++next) {
      if (reader.NextObject()) continue;
      return Error{Code::kDataLoss, "the source has shapes of " + std::to_string(next) +
                                        " objects, and there are more"};
    }
    Rect bounds;
    while (const std::optional<ShapePart> part = reader.NextPart()) {
      ASSIGN_OR_RETURN(const Rect of_part, part->has_runs ? DrawRuns(*part, image, augmenter)
                                                          : DrawPolygon(*part, map, width, height));
      TRY(Touch(PixelsOf(of_part.size())));
      bounds = Union(bounds, of_part);
    }
    TRY(Touch(PixelsOf(bounds.size())));
    Paint(++number, below, bounds);
  }
  return {};
}

// Returns the bounds of what it may have set.
Result<Rect> ShapeMasks::DrawPolygon(const ShapePart& part, const GeometryMap& map, double width,
                                     double height) {
  PolygonFill fill(object_, scratch_);
  uint64_t changes = 0;
  polygon_.clear();
  for (size_t i = 0; i + 1 < part.words(); i += 2) {
    polygon_.push_back({part.Number(i) * width, part.Number(i + 1) * height});
  }
  for (const HalfPlane& horizon : horizons_) CutTo(horizon, polygon_);
  for (const MapPoint& corner : polygon_) {
    const auto [x, y] = Moved(map, corner.x, corner.y);
    fill.Add(x, y);
    TRY(Touch(fill.changes() - changes));
    changes = fill.changes();
  }
  const Rect bounds = fill.Close();
  if (bounds.width == 0 && changes != 0) TRY(Touch(PixelsOf(size_)));  // a corner was NaN
  return bounds;
}

// Counts pixels, or as much work. The memory of the row is zeroed by the next Start.
Status ShapeMasks::Touch(uint64_t pixels) {
  touched_ += pixels;
  if (touched_ <= most_touched_) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "the shapes of the objects have more than " +
                        std::to_string(most_touched_) +
                        " pixels in the row, summed over all objects",
               .advice = "Remove objects that occur many times, or leave the sample out"};
}

// Finds where the pixels of the image are before the steps that have to be done on a tile.
Status ShapeMasks::FindPlaces(const Image& image, Augmenter& augmenter) {
  motion_ = *image.drawn;
  KeepMotion(motion_, {});
  const Geometry& geometry = motion_.geometry;
  TRY(augmenter.Start(geometry.window.size(), /*channels=*/1));
  const NearestOutput output{augmenter.tile().pixels, augmenter.tile().size.width};
  image_ = image.size;
  ASSIGN_OR_RETURN(region_,
                   nearest_.Start(ResamplingOf(geometry, image_, Orientation::kNormal), output));
  if (region_.width != 0) places_ = nearest_.PlacesIn(output);
  if (!motion_.steps.empty()) {
    const size_t bytes = PolygonFill::ScratchBytes(geometry.window.size());
    TRY(changes_.Grow(bytes));
    std::memset(changes_.data(), 0, bytes);
  }
  has_places_ = true;
  return {};
}

// Returns the bounds of what it may have set.
Result<Rect> ShapeMasks::DrawRuns(const ShapePart& part, const Image& image, Augmenter& augmenter) {
  const size_t words = part.words();
  const ImageSize size{words < 2 ? 0 : static_cast<int>(part.Word(1)),
                       words < 2 ? 0 : static_cast<int>(part.Word(0))};
  if (size != image.size) return WrongSize(size, image.size);
  if (!Runs(part).Next()) return Rect{};
  if (!has_places_) TRY(FindPlaces(image, augmenter));
  if (region_.width == 0) return Rect{};
  if (motion_.steps.empty()) return FillRuns(part, object_, scratch_);
  TRY(augmenter.Start(motion_.geometry.window.size(), /*channels=*/1));
  const size_t pixels = PixelsOf(augmenter.tile().size);
  TRY(Touch(pixels));
  std::memset(augmenter.tile().pixels, 0, pixels);
  TRY(FillRuns(part, {augmenter.tile().pixels, augmenter.tile().size}, changes_.data()));
  for (const DrawnStep& step : motion_.steps) TRY(augmenter.Apply(step.step));
  const Tile& tile = augmenter.tile();
  for (size_t i = 0; i < PixelsOf(size_); ++i) object_.pixels[i] |= tile.pixels[i];
  return Rect{0, 0, size_.width, size_.height};
}

// Sets the pixels that show a pixel inside to 1. Returns their bounds.
Result<Rect> ShapeMasks::FillRuns(const ShapePart& part, const BytePlane& to, uint8_t* scratch) {
  const BytePlane changes{scratch, to.size};
  const std::span<const int32_t> columns = places_.columns, rows = places_.rows;
  const bool descends = columns.front() > columns.back();
  const auto row_of = [&](uint64_t row) {
    return static_cast<int>(std::ranges::lower_bound(rows, static_cast<int32_t>(row)) -
                            rows.begin());
  };
  int left = to.size.width, right = 0;
  int top = to.size.height, bottom = 0;
  Runs runs(part);
  bool more = runs.Next();
  for (size_t i = 0; more && i < columns.size(); ++i) {
    const size_t column = descends ? columns.size() - 1 - i : i;
    const uint64_t begin =
        static_cast<uint64_t>(region_.x + columns[column]) * static_cast<uint64_t>(image_.height) +
        static_cast<uint64_t>(region_.y);
    const uint64_t end = begin + static_cast<uint64_t>(region_.height);
    while (more && runs.end() <= begin) more = runs.Next();
    uint64_t passed = 1;
    Runs here = runs;
    for (bool any = more; any && here.begin() < end; any = here.Next(), ++passed) {
      const int first = row_of(std::max(here.begin(), begin) - begin);
      const int last = row_of(std::min(here.end(), end) - begin);
      if (first == last) continue;
      const int x = places_.x + static_cast<int>(column);
      const int y = places_.upwards ? places_.y - last + 1 : places_.y + first;
      left = std::min(left, x), right = std::max(right, x + 1);
      top = std::min(top, y), bottom = std::max(bottom, y + last - first);
      changes.row(y)[x] ^= 1;
      changes.row(y + last - first)[x] ^= 1;
    }
    TRY(Touch(passed));
  }
  if (left >= right) return Rect{};
  const Rect bounds{left, top, right - left, bottom - top};
  FillChanges(changes, bounds, to);
  return bounds;
}

// Counts the pixels of the object, and takes those that no smaller one has, except those below.
void ShapeMasks::Paint(size_t number, size_t below, const Rect& bounds) {
  const auto for_each_row = [&](const auto& visit) {
    for (int y = bounds.y; y < bounds.y + bounds.height; ++y) {
      const int begin = std::max(bounds.x, columns_[y].begin);
      const int end = std::min(bounds.x + bounds.width, columns_[y].end);
      if (begin >= end) continue;
      visit(object_.row(y) + begin, owners_ + (object_.row(y) - object_.pixels) + begin,
            end - begin);
    }
  };
  uint32_t area = 0;
  for_each_row([&](const uint8_t* inside, const uint16_t*, int count) {
    for (int x = 0; x < count; ++x) area += inside[x];
  });
  areas_[number] = area;
  for_each_row([&](const uint8_t* inside, uint16_t* owners, int count) {
    for (int x = 0; x < count; ++x) {
      if (inside[x] == 0 || (owners[x] > below && areas_[owners[x]] < area)) continue;
      owners[x] = static_cast<uint16_t>(number);
    }
  });
  for (int y = bounds.y; y < bounds.y + bounds.height; ++y) {
    std::memset(object_.row(y) + bounds.x, 0, static_cast<size_t>(bounds.width));
  }
}

void ShapeMasks::Write(const ShapeMask& mask, const Target& target) {
  const bool are_numbers = mask.values.empty() && mask.background == 0 && target.after == 0;
  const ImageSize row = target.row;
  const Placement* const placed = target.placed;
  const Rect part = placed != nullptr ? placed->part : Rect{0, 0, row.width, row.height};
  auto* to =
      static_cast<uint8_t*>(mask.row) +
      (static_cast<size_t>(part.y) * static_cast<size_t>(row.width) + static_cast<size_t>(part.x)) *
          mask.bytes;
  for (int y = 0; y < part.height; ++y) {
    const auto [begin, end] = placed != nullptr ? ColumnsOf(*placed, y) : AxisSpan{0, part.width};
    const int count = y < size_.height ? size_.width : 0;
    const uint16_t* const owners = owners_ + ptrdiff_t{y} * count;
    const auto number = [owners](int x) { return owners[x]; };
    const auto value = [owners, values = values_](int x) { return values[owners[x]]; };
    const auto write = [&, first = begin, all = end](const auto& value_of) {
      const int last = std::min(count, all);
      mask.bytes == 1 ? WritePixels<uint8_t>(first, last, all, mask.background, value_of, to)
                      : WritePixels<uint16_t>(first, last, all, mask.background, value_of, to);
    };
    are_numbers ? write(number) : write(value);
    to += static_cast<size_t>(row.width) * mask.bytes;
  }
}

}  // namespace stoker
