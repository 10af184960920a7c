#include "io/annotations/object_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker {

namespace {

constexpr char kOneTypeOfObjects[] = "Write one type for all objects; or leave the column out";

// Converts a number; returns nullopt if the type cannot hold it. Fractions are rounded by floats
// only.
template <typename To>
std::optional<To> Held(int64_t value) {
  if constexpr (std::is_same_v<To, bool>) {
    if (value != 0 && value != 1) return std::nullopt;
  } else if constexpr (std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) return std::nullopt;
  }
  return static_cast<To>(value);
}

template <typename To>
std::optional<To> Held(double value) {
  if constexpr (std::is_floating_point_v<To>) {
    const auto rounded = static_cast<To>(value);
    if (std::isfinite(value) && !std::isfinite(rounded)) return std::nullopt;
    return rounded;
  } else {
    const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const double begin = std::is_signed_v<To> ? -end : 0.0;
    const bool holds = value >= begin && value < end && value == std::trunc(value);
    if (!holds) return std::nullopt;
    return static_cast<To>(value);
  }
}

template <typename To, typename Value>
bool AppendAs(Value value, std::vector<uint8_t>& bytes) {
  const std::optional<To> held = Held<To>(value);
  if (!held) return false;
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(To));
  std::memcpy(bytes.data() + at, &*held, sizeof(To));
  return true;
}

std::string ShownNumber(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}
std::string ShownNumber(int64_t value) { return std::to_string(value); }

}  // namespace

ObjectValues::ObjectValues(KeyedColumn column)
    : column_(std::move(column)),
      dtype_(column_.field.kind == Field::Kind::kObject ? column_.dtype : DType::kF32),
      values_(column_.field.name) {}

Error ObjectValues::Refuse(const std::string& cause, std::string advice) const {
  return {.code = Code::kInvalidArgument,
          .cause = "'" + column_.field.name + "' " + cause,
          .advice = std::move(advice)};
}

// Returns whether the dtype holds the value, and appends it. Precondition: there is a dtype.
template <typename Value>
bool ObjectValues::Append(Value value) {
  switch (*dtype_) {
    case DType::kBool:
      return AppendAs<bool>(value, bytes_);
    case DType::kU8:
      return AppendAs<uint8_t>(value, bytes_);
    case DType::kI8:
      return AppendAs<int8_t>(value, bytes_);
    case DType::kU16:
      return AppendAs<uint16_t>(value, bytes_);
    case DType::kI16:
      return AppendAs<int16_t>(value, bytes_);
    case DType::kU32:
      return AppendAs<uint32_t>(value, bytes_);
    case DType::kI32:
      return AppendAs<int32_t>(value, bytes_);
    case DType::kU64:
      return AppendAs<uint64_t>(value, bytes_);
    case DType::kI64:
      return AppendAs<int64_t>(value, bytes_);
    case DType::kF64:
      return AppendAs<double>(value, bytes_);
    default:
      return AppendAs<float>(value, bytes_);
  }
}

template <typename Value>
Status ObjectValues::AddTyped(Value value) {
  if (!in_list_ && column_.field.kind != Field::Kind::kObject) {
    return Refuse("has a number, not a list of numbers, for an object");
  }
  if (!in_list_) list_begin_ = bytes_.size();
  if (!Append(value)) {
    return Refuse("has " + ShownNumber(value) + ", which " + NameOf(*dtype_) + " cannot hold");
  }
  return in_list_ ? Status() : EndTyped();
}

// Checks the box or the points that are last in bytes_.
Status ObjectValues::CheckCoordinates() const {
  const auto number = [this](size_t i) {
    float value = 0;
    std::memcpy(&value, bytes_.data() + list_begin_ + i * sizeof(value), sizeof(value));
    return value;
  };
  for (size_t i = 0; list_begin_ + i * sizeof(float) < bytes_.size(); ++i) {
    if (std::isfinite(number(i))) continue;
    return Refuse("has the coordinate " + ShownNumber(number(i)), "Correct or remove the object");
  }
  if (column_.field.kind != Field::Kind::kBoxes) return {};
  const bool has_ends = column_.field.box_format == BoxFormat::kXyxy;
  const bool is_good = has_ends ? number(0) <= number(2) && number(1) <= number(3)
                                : number(2) >= 0 && number(3) >= 0;
  if (is_good) return {};
  return Refuse(
      has_ends ? "has a box that ends before it begins" : "has a box of negative width or height",
      std::string("Boxes are ") + NameOf(column_.field.box_format) +
          " here: give their format if they are not; leave out padding boxes" +
          (has_ends ? "" : ", such as [-1, -1, -1, -1]") + "; otherwise correct the box");
}

// Ends an object whose numbers are in bytes_.
Status ObjectValues::EndTyped() {
  const size_t width = (bytes_.size() - list_begin_) / SizeOf(*dtype_);
  const auto has = [width](const std::string& what) {
    return "has " + what + " of " + std::to_string(width) + Plural(width, " number", " numbers");
  };
  if (column_.field.kind == Field::Kind::kBoxes && width != 4) {
    return Refuse(has("a box"), "A box has four numbers");
  }
  if (column_.field.kind == Field::Kind::kKeypoints && (width == 0 || width % 3 != 0)) {
    return Refuse(has("points"), "Each point has three numbers: x, y and visibility");
  }
  if (width == 0) return Refuse("has an empty list for an object", kOneTypeOfObjects);
  if (column_.field.kind != Field::Kind::kObject) TRY(CheckCoordinates());
  if (width_ && *width_ != width) {
    return Refuse(has("an object") + "; those before it have " + std::to_string(*width_));
  }
  if (objects_ != 0 && are_lists_ != in_list_) {
    return Refuse("has lists and single numbers for objects", kOneTypeOfObjects);
  }
  width_ = width;
  are_lists_ = in_list_;
  ++objects_;
  return {};
}

Status ObjectValues::AddUntyped(bool added, const char* what) {
  if (!added) {
    const std::string before =
        objects_ == 0 ? "" : "; the objects before it have " + values_.DescribeRow();
    return Refuse(std::string("has ") + what + (in_list_ ? " in a list" : "") + before,
                  kOneTypeOfObjects);
  }
  if (!in_list_) ++objects_;
  return {};
}

Status ObjectValues::AddInteger(int64_t value) {
  return dtype_ ? AddTyped(value) : AddUntyped(values_.AddInteger(value), "a number");
}

Status ObjectValues::AddNumber(double value) {
  return dtype_ ? AddTyped(value) : AddUntyped(values_.AddNumber(value), "a number");
}

Status ObjectValues::AddBoolean(bool value) {
  if (!dtype_) return AddUntyped(values_.AddBoolean(value), "true or false");
  if (column_.field.kind == Field::Kind::kObject) return AddTyped(int64_t{value});
  return Refuse("has true or false, not a number");
}

Status ObjectValues::AddText(std::string_view text) {
  if (dtype_ || in_list_ || column_.field.name != "labels") {
    return Refuse("has text, not a number", "Only 'labels' may be text, the names of classes");
  }
  return AddUntyped(values_.AddText(text), "text");
}

Status ObjectValues::BeginList() {
  if (in_list_) return Refuse("has lists in a list for an object", kOneTypeOfObjects);
  if (!dtype_ && !values_.BeginVector()) return AddUntyped(false, "a list");
  in_list_ = true;
  list_begin_ = bytes_.size();
  return {};
}

Status ObjectValues::EndList() {
  Status ended;
  if (dtype_) {
    ended = EndTyped();
  } else if (values_.EndVector()) {
    ++objects_;
  } else {
    ended = Refuse("has a list of " + std::to_string(values_.elements()) + " for an object" +
                       (objects_ == 0 ? "" : "; those before it have " + values_.DescribeRow()),
                   kOneTypeOfObjects);
  }
  in_list_ = false;
  return ended;
}

// Returns the number of points of each object.
size_t ObjectValues::points() const {
  if (width_) return *width_ / 3;
  size_t points = 1;  // no sample has an object
  for (const auto& [left, right] : column_.flip_pairs) {
    points = std::max<size_t>(points, std::max(left, right) + 1);
  }
  return points;
}

Status ObjectValues::Finish() {
  if (column_.flip_pairs.empty()) return {};
  if (points() > UINT16_MAX) {
    return Refuse("has " + std::to_string(points()) +
                  " points for an object; flip_pairs takes at most 65535");
  }
  for (const auto& [left, right] : column_.flip_pairs) {
    if (std::max(left, right) < points()) continue;
    return Refuse("has " + std::to_string(points()) + Plural(points(), " point", " points") +
                      " for an object, and a pair (" + std::to_string(left) + ", " +
                      std::to_string(right) + ") in flip_pairs",
                  "Points are numbered from 0");
  }
  return {};
}

ArrayColumn ObjectValues::View() const {
  const Field& field = column_.field;
  ArrayColumn view = values_.View();
  if (dtype_) {
    view.dtype = *dtype_;
    view.data = bytes_.data();
    if (are_lists_) view.row_shape = {static_cast<int64_t>(*width_)};
  }
  view.samples = samples();
  view.offsets = offsets_.data();
  view.kind = field.kind;
  view.box_format = field.box_format;
  view.normalized = field.normalized;
  if (field.kind == Field::Kind::kBoxes) view.row_shape = {4};
  if (field.kind == Field::Kind::kKeypoints) view.row_shape = {static_cast<int64_t>(points()), 3};
  if (column_.flip_pairs.empty()) return view;
  view.flip_pairs.resize(points());
  std::iota(view.flip_pairs.begin(), view.flip_pairs.end(), uint16_t{0});
  for (const auto& [left, right] : column_.flip_pairs) {
    std::swap(view.flip_pairs[left], view.flip_pairs[right]);
  }
  return view;
}

}  // namespace stoker
