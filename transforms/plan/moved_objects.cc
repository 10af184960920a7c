#include "transforms/plan/moved_objects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/plan/draw.h"

namespace stoker {

namespace {

using Kind = ObjectField::Kind;

constexpr size_t kBoxBytes = 4 * sizeof(float);
constexpr size_t kPointBytes = 3 * sizeof(float);

// In this order of comparisons a NaN stays one.
double Clamped(double value, double most) { return std::min(std::max(value, 0.0), most); }

Box ClampedTo(ImageSize size, const Box& box) {
  return {Clamped(box.left, size.width), Clamped(box.top, size.height),
          Clamped(box.right, size.width), Clamped(box.bottom, size.height)};
}

Box MovedBy(double x, double y, const Box& box) {
  return {box.left + x, box.top + y, box.right + x, box.bottom + y};
}

Box MirroredIn(double width, const Box& box) {
  return {width - box.right, box.top, width - box.left, box.bottom};
}

// Returns 0 for a box whose sides are not in order, or not numbers.
double AreaOf(const Box& box) {
  const double width = box.right - box.left, height = box.bottom - box.top;
  return width > 0 && height > 0 ? width * height : 0;
}

bool IsWithin(double value, double most) { return value >= 0 && value <= most; }

Box BoxOf(const std::array<float, 4>& numbers, BoxFormat format) {
  const double a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];
  switch (format) {
    case BoxFormat::kXyxy:
      return {a, b, c, d};
    case BoxFormat::kXywh:
      return {a, b, a + c, b + d};
    case BoxFormat::kCxcywh:
      return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
  }
  return {};
}

std::array<float, 4> NumbersOf(const Box& box, BoxFormat format) {
  const auto numbers = [](double a, double b, double c, double d) {
    return std::array{static_cast<float>(a), static_cast<float>(b), static_cast<float>(c),
                      static_cast<float>(d)};
  };
  const double width = box.right - box.left, height = box.bottom - box.top;
  switch (format) {
    case BoxFormat::kXyxy:
      return numbers(box.left, box.top, box.right, box.bottom);
    case BoxFormat::kXywh:
      return numbers(box.left, box.top, width, height);
    case BoxFormat::kCxcywh:
      return numbers((box.left + box.right) / 2, (box.top + box.bottom) / 2, width, height);
  }
  return {};
}

Box FromShares(const Box& box, ImageSize size) {
  const Box inside = ClampedTo({1, 1}, box);
  return {inside.left * size.width, inside.top * size.height, inside.right * size.width,
          inside.bottom * size.height};
}

Box SharesOf(ImageSize size, const Box& box) {
  return {box.left / size.width, box.top / size.height, box.right / size.width,
          box.bottom / size.height};
}

// Returns the least and the largest number; NaN if one is.
std::pair<double, double> RangeOf(const std::array<double, 4>& numbers) {
  double least = numbers[0], most = numbers[0];
  for (const double number : numbers) {
    if (!(least <= number)) least = number < least ? number : least + number;
    if (!(most >= number)) most = number > most ? number : most + number;
  }
  return {least, most};
}

// Returns the smallest box around four moved corners.
template <typename Corner>
Box Around(const Corner& corner, const Box& box) {
  const std::array<MapPoint, 4> corners{corner(box.left, box.top), corner(box.right, box.top),
                                        corner(box.right, box.bottom),
                                        corner(box.left, box.bottom)};
  const auto range = [&](double MapPoint::*axis) {
    return RangeOf({corners[0].*axis, corners[1].*axis, corners[2].*axis, corners[3].*axis});
  };
  const auto [left, right] = range(&MapPoint::x);
  const auto [top, bottom] = range(&MapPoint::y);
  return {left, top, right, bottom};
}

bool ArePairs(std::span<const uint16_t> pairs) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] >= pairs.size() || pairs[pairs[i]] != i) return false;
  }
  return true;
}

const char* FaultOf(const ObjectField& field) {
  if (field.kind == Kind::kBoxes && field.bytes != kBoxBytes) return "a box is not 4 float32";
  if (field.kind != Kind::kKeypoints) return nullptr;
  if (field.bytes == 0 || field.bytes % kPointBytes != 0) return "a keypoint is not 3 float32";
  if (field.flip_pairs.empty()) return nullptr;
  if (field.flip_pairs.size() != field.bytes / kPointBytes) {
    return "there is not one number for each keypoint that a mirror may exchange";
  }
  return ArePairs(field.flip_pairs) ? nullptr
                                    : "the keypoints that a mirror exchanges do not form pairs";
}

}  // namespace

Status CheckObjectFields(std::span<const ObjectField> fields) {
  int with_boxes = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const char* fault = FaultOf(fields[i]);
    if (fields[i].kind == Kind::kBoxes && ++with_boxes > 1) fault = "a second field has boxes";
    if (fault == nullptr) continue;
    return Error{Code::kInvalidArgument, "objects[" + std::to_string(i) + "]: " + fault};
  }
  return {};
}

size_t MovedObjects::PointsOf(const ObjectField& field) {
  return field.kind == Kind::kKeypoints ? field.bytes / kPointBytes : 0;
}

uint64_t MovedObjects::BytesFor(std::span<const ObjectField> fields, uint64_t count) {
  uint64_t bytes = sizeof(Box) + sizeof(uint32_t);  // of an object
  for (const ObjectField& field : fields) bytes += PointsOf(field) * sizeof(Point);
  return count * bytes;
}

Status MovedObjects::Read(std::span<const ObjectField> fields, const ObjectRows& rows,
                          ImageSize image, Load load, uint32_t copies) {
  TRY(memory_.Grow(BytesFor(fields, uint64_t{copies} * rows.count)));
  fields_ = fields;
  size_ = image;
  shares_of_.reset();
  read_ = count_ = rows.count;
  aside_ = 0;
  room_ = copies * read_;
  size_t points = 0;
  for (const ObjectField& field : fields) points += PointsOf(field);
  boxes_ = reinterpret_cast<Box*>(memory_.data());
  points_ = reinterpret_cast<Point*>(boxes_ + room_);
  indices_ = reinterpret_cast<uint32_t*>(points_ + points * room_);
  std::iota(indices_, indices_ + read_, uint32_t{0});
  std::fill_n(boxes_, read_, Box());
  if (load == Load::kBoxes) points_ = nullptr;
  Point* to = points_;
  for (size_t i = 0; i < fields.size(); ++i) {
    const ObjectField& field = fields[i];
    if (field.kind == Kind::kBoxes) ReadBoxes(field, rows.from[i].data());
    if (field.kind != Kind::kKeypoints || load == Load::kBoxes) continue;
    ReadPoints(field, rows.from[i].data(), to);
    to += PointsOf(field) * room_;
  }
  return {};
}

void MovedObjects::ReadBoxes(const ObjectField& field, const uint8_t* from) {
  format_ = field.format;
  for (size_t i = 0; i < read_; ++i, from += kBoxBytes) {
    std::array<float, 4> numbers;
    std::memcpy(numbers.data(), from, kBoxBytes);
    const Box box = BoxOf(numbers, field.format);
    boxes_[i] = field.normalized ? FromShares(box, size_) : box;
  }
}

void MovedObjects::ReadPoints(const ObjectField& field, const uint8_t* from, Point* to) const {
  const double x = field.normalized ? size_.width : 1, y = field.normalized ? size_.height : 1;
  for (size_t n = PointsOf(field) * read_; n > 0; --n, from += kPointBytes) {
    std::array<float, 3> numbers;
    std::memcpy(numbers.data(), from, kPointBytes);
    *to++ = {numbers[0] * x, numbers[1] * y, numbers[2]};
  }
}

template <typename Visit>
void MovedObjects::ForEachPoint(const Visit& visit) const {
  Point* point = points_;
  for (const ObjectField& field : fields_) {
    if (point == nullptr) return;
    const size_t of_one = PointsOf(field);
    for (Point& each : std::span(point, of_one * count_)) visit(each);
    point += of_one * room_;
  }
}

// Moves each coordinate along its axis.
template <typename X, typename Y>
void MovedObjects::MoveEach(const X& x, const Y& y) const {
  for (Box& box : std::span(boxes_, count_)) {
    box = {x(box.left), y(box.top), x(box.right), y(box.bottom)};
  }
  ForEachPoint([&](Point& point) {
    point.x = x(point.x);
    point.y = y(point.y);
  });
}

void MovedObjects::Crop(const Rect& part) {
  MoveEach([&](double x) { return x - part.x; }, [&](double y) { return y - part.y; });
  size_ = part.size();
  Clamp();
}

// Multiplied first: coordinates at the edge of the image stay there.
void MovedObjects::Resize(ImageSize to) {
  if (to == size_) return;
  MoveEach([&](double x) { return x * to.width / size_.width; },
           [&](double y) { return y * to.height / size_.height; });
  size_ = to;
}

void MovedObjects::ResizePart(const Rect& from, ImageSize whole, const Rect& to,
                              ImageSize resized) {
  MoveEach([&](double x) { return (x + from.x) * resized.width / whole.width - to.x; },
           [&](double y) { return (y + from.y) * resized.height / whole.height - to.y; });
  size_ = to.size();
  Clamp();
}

void MovedObjects::Mirror(bool columns, bool rows) {
  const double width = size_.width, height = size_.height;
  for (Box& box : std::span(boxes_, count_)) {
    if (columns) box = MirroredIn(width, box);
    if (rows) box = {box.left, height - box.bottom, box.right, height - box.top};
  }
  ForEachPoint([&](Point& point) {
    if (columns) point.x = width - point.x;
    if (rows) point.y = height - point.y;
  });
  if (columns != rows) ExchangePairs();
}

void MovedObjects::ExchangePairs() const {
  Point* of_field = points_;
  for (const ObjectField& field : fields_) {
    if (of_field == nullptr) return;
    const size_t of_one = PointsOf(field);
    for (size_t object = 0; !field.flip_pairs.empty() && object < count_; ++object) {
      Point* const points = of_field + object * of_one;
      for (size_t i = 0; i < of_one; ++i) {
        if (i < field.flip_pairs[i]) std::swap(points[i], points[field.flip_pairs[i]]);
      }
    }
    of_field += of_one * room_;
  }
}

// Return where the corner of a box, and a keypoint, is moved.
template <typename Corner, typename Place>
void MovedObjects::MapEach(const Corner& corner, const Place& place) {
  for (Box& box : std::span(boxes_, count_)) box = Around(corner, box);
  ForEachPoint([&](Point& point) {
    const auto [x, y] = place(point.x, point.y);
    point = {x, y, point.visibility};
  });
  Clamp();
}

void MovedObjects::Map(const GeometryMap& map) {
  const auto moved = [&](double x, double y) { return Moved(map, x, y); };
  MapEach(moved, moved);
}

void MovedObjects::Displace(const Displacement& by) {
  const auto moved = [&](double x, double y) -> MapPoint {
    if (std::isnan(x) || std::isnan(y)) return {x + y, x + y};
    x = std::floor(Clamped(x, size_.width - 1));
    y = std::floor(Clamped(y, size_.height - 1));
    const auto pixel = static_cast<size_t>(y * size_.width + x);
    return {x - by.x[pixel], y - by.y[pixel]};
  };
  MapEach([&](double x, double y) { return moved(std::ceil(x), std::ceil(y)); }, moved);
}

void MovedObjects::Clamp() {
  const double width = size_.width, height = size_.height;
  for (Box& box : std::span(boxes_, count_)) box = ClampedTo(size_, box);
  ForEachPoint([&](Point& point) {
    if (!IsWithin(point.x, width) || !IsWithin(point.y, height)) point.visibility = 0;
  });
}

template <typename Test>
void MovedObjects::KeepIf(const Test& test) {
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (!test(boxes_[i])) continue;
    if (kept != i) Move(i, kept);
    ++kept;
  }
  count_ = kept;
}

void MovedObjects::Move(size_t from, size_t to) {
  boxes_[to] = boxes_[from];
  indices_[to] = indices_[from];
  Point* of_field = points_;
  for (const ObjectField& field : fields_) {
    if (of_field == nullptr) return;
    const size_t of_one = PointsOf(field);
    std::copy_n(of_field + from * of_one, of_one, of_field + to * of_one);
    of_field += of_one * room_;
  }
}

void MovedObjects::Sanitize(double min_size, double min_area) {
  constexpr double kRounding = 1e-3;  // of float32, and of texts with few digits
  const auto is_inside = [](double value, double most) {
    return value >= -kRounding && value <= most + kRounding;
  };
  KeepIf([&](Box& box) {
    const double width = box.right - box.left, height = box.bottom - box.top;
    if (!(width >= min_size && height >= min_size && width * height >= min_area)) return false;
    if (!is_inside(box.left, size_.width) || !is_inside(box.right, size_.width)) return false;
    if (!is_inside(box.top, size_.height) || !is_inside(box.bottom, size_.height)) return false;
    box = ClampedTo(size_, box);
    return true;
  });
}

void MovedObjects::CropToMosaic(const Rect& part, const std::optional<GeometryMap>& turn,
                                std::span<const std::optional<Box>> of_shapes) {
  constexpr double kLeastSide = 2, kLeastShare = 0.1, kLeastShareOfShape = 0.01, kMostRatio = 100;
  const auto turned = [&](double x, double y) { return Moved(*turn, x, y); };
  size_t place = 0;
  KeepIf([&](Box& box) {
    const size_t at = place++;
    const bool has_shape = at < of_shapes.size() && of_shapes[at];
    const double area = (box.right - box.left) * (box.bottom - box.top);
    const Box whole = MovedBy(-part.x, -part.y, box);
    box = has_shape ? *of_shapes[at] : ClampedTo(part.size(), turn ? Around(turned, whole) : whole);
    const double width = box.right - box.left, height = box.bottom - box.top;
    return width > kLeastSide && height > kLeastSide &&
           width * height > (has_shape ? kLeastShareOfShape : kLeastShare) * area &&
           std::max(width, height) < kMostRatio * std::min(width, height);
  });
  ForEachPoint([&](Point& point) {
    const MapPoint at{point.x - part.x, point.y - part.y};
    const auto [x, y] = turn ? Moved(*turn, at.x, at.y) : at;
    point = {x, y, point.visibility};
  });
  size_ = part.size();
  Clamp();
}

void MovedObjects::KeepCentersIn(const Rect& part) {
  KeepIf([&](const Box& box) { return HasCenterIn(part, box); });
}

void MovedObjects::SetAside(size_t count) { aside_ = std::exchange(count_, count) - count; }

std::vector<uint32_t>& MovedObjects::Choose(double p, CopyPaste::Mode mode) {
  constexpr double kMostCovered = 0.3, kLeastArea = 1e-7;  // as bbox_ioa of Ultralytics
  possible_.clear();
  const bool mirrors = mode == CopyPaste::Mode::kFlip;
  const size_t first = mirrors ? 0 : count_;
  const size_t end = mirrors || count_ == 0 ? count_ : count_ + aside_;
  for (auto i = static_cast<uint32_t>(first); i < end; ++i) {
    const Box box = mirrors ? MirroredIn(size_.width, boxes_[i]) : boxes_[i];
    double covered = AreaOf(box) > 0 ? 0 : 1;  // the most of any box
    for (size_t j = 0; j < count_ && covered < kMostCovered; ++j) {
      const Box& other = boxes_[j];
      const double area = AreaOf(other);
      if (area == 0) continue;
      const Box both{std::max(box.left, other.left), std::max(box.top, other.top),
                     std::min(box.right, other.right), std::min(box.bottom, other.bottom)};
      covered = std::max(covered, AreaOf(both) / (area + kLeastArea));
    }
    if (covered < kMostCovered) possible_.emplace_back(covered, i);
  }
  std::sort(possible_.begin(), possible_.end());
  possible_.resize(static_cast<size_t>(RoundHalfEven(p * static_cast<double>(possible_.size()))));
  chosen_.clear();
  for (const auto& [covered, object] : possible_) chosen_.push_back(object);
  std::sort(chosen_.begin(), chosen_.end());
  return chosen_;
}

void MovedObjects::PasteMirrored(std::span<const uint32_t> chosen) {
  for (const uint32_t object : chosen) {
    boxes_[count_] = MirroredIn(size_.width, boxes_[object]);
    indices_[count_] = indices_[object] | kPasted;
    Point* of_field = points_;
    for (const ObjectField& field : fields_) {
      if (of_field == nullptr) break;
      const size_t of_one = PointsOf(field);
      for (size_t i = 0; i < of_one; ++i) {
        const size_t pair = field.flip_pairs.empty() ? i : field.flip_pairs[i];
        const Point& from = of_field[object * of_one + pair];
        of_field[count_ * of_one + i] = {size_.width - from.x, from.y, from.visibility};
      }
      of_field += of_one * room_;
    }
    ++count_;
  }
}

void MovedObjects::PasteOthers(std::span<const uint32_t> chosen) {
  for (const uint32_t object : chosen) {
    if (object != count_) Move(object, count_);
    indices_[count_++] |= kPasted;
  }
  aside_ = 0;
}

void MovedObjects::WriteAs(BoxFormat format, std::optional<ImageSize> shares_of) {
  format_ = format;
  shares_of_ = shares_of;
}

void MovedObjects::Write(const ObjectRows& rows, size_t after) const {
  const Point* points = points_;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const ObjectField& field = fields_[i];
    auto* const to = static_cast<uint8_t*>(rows.to[i]) + after * field.bytes;
    if (field.kind == Kind::kBoxes) WriteBoxes(to);
    if (field.kind == Kind::kKeypoints) WritePoints(field, points, to);
    if (field.kind == Kind::kValue) WriteValues(field, rows.from[i].data(), to);
    points += PointsOf(field) * room_;
  }
  *rows.kept = static_cast<int64_t>(after + count_);
}

void MovedObjects::WriteBoxes(uint8_t* to) const {
  for (const Box& box : boxes()) {
    const std::array<float, 4> numbers =
        NumbersOf(shares_of_ ? SharesOf(*shares_of_, box) : box, format_);
    std::memcpy(to, numbers.data(), kBoxBytes);
    to += kBoxBytes;
  }
}

void MovedObjects::WritePoints(const ObjectField& field, const Point* from, uint8_t* to) const {
  for (size_t n = PointsOf(field) * count_; n > 0; --n, ++from, to += kPointBytes) {
    std::array<float, 3> numbers{};
    if (from->visibility != 0) {
      numbers = {static_cast<float>(from->x), static_cast<float>(from->y), from->visibility};
    }
    std::memcpy(to, numbers.data(), kPointBytes);
  }
}

void MovedObjects::WriteValues(const ObjectField& field, const uint8_t* from, uint8_t* to) const {
  for (const uint32_t index : std::span(indices_, count_)) {
    std::memcpy(to, from + IndexOf(index) * field.bytes, field.bytes);
    to += field.bytes;
  }
}

}  // namespace stoker
