#include "io/annotations/keyed_column.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/annotations/drawn_masks.h"
#include "io/files/text_file.h"
#include "io/manifest/csv_reader.h"
#include "io/manifest/number_text.h"

namespace stoker {

namespace {

constexpr std::array<std::pair<std::string_view, Field::Kind>, 5> kKeyedKinds = {
    {{"mask", Field::Kind::kMask},
     {"value", Field::Kind::kFixed},
     {"boxes", Field::Kind::kBoxes},
     {"keypoints", Field::Kind::kKeypoints},
     {"object", Field::Kind::kObject}}};

constexpr std::array kKeyedTypes = {DType::kBool, DType::kU8,  DType::kI8,  DType::kU16,
                                    DType::kI16,  DType::kU32, DType::kI32, DType::kU64,
                                    DType::kI64,  DType::kF32, DType::kF64};

template <typename Named>
std::optional<Named> FindNamed(std::span<const Named> all, std::string_view name) {
  const auto found = std::ranges::find_if(
      all, [name](Named one) { return std::string_view(NameOf(one)) == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

bool SetMaskOption(std::string_view option, Field& field) {
  if (option == "uint8" || option == "uint16") {
    field.dtype = option == "uint8" ? DType::kU8 : DType::kU16;
    return true;
  }
  const std::optional<uint16_t> fill = SmallNumberOf(option);
  field.fill = fill.value_or(0);
  return fill.has_value();
}

bool SetBoxesOption(std::string_view option, Field& field) {
  constexpr std::array kFormats = {BoxFormat::kXyxy, BoxFormat::kXywh, BoxFormat::kCxcywh};
  if (option == "normalized") return field.normalized = true;
  const auto format = FindNamed<BoxFormat>(kFormats, option);
  field.box_format = format.value_or(field.box_format);
  return format.has_value();
}

bool SetKeypointsOption(std::string_view option, KeyedColumn& column) {
  if (option == "normalized") return column.field.normalized = true;
  const size_t colon = option.find(':');
  if (colon == std::string_view::npos) return false;
  const std::optional<uint16_t> left = SmallNumberOf(option.substr(0, colon));
  const std::optional<uint16_t> right = SmallNumberOf(option.substr(colon + 1));
  if (!left || !right || *left == *right) return false;
  for (const auto& [one, other] : column.flip_pairs) {
    if (one == *left || one == *right || other == *left || other == *right) return false;
  }
  column.flip_pairs.emplace_back(*left, *right);
  return true;
}

bool SetKeyedOption(std::string_view option, KeyedColumn& column) {
  switch (column.field.kind) {
    case Field::Kind::kMask:
      return SetMaskOption(option, column.field);
    case Field::Kind::kBoxes:
      return SetBoxesOption(option, column.field);
    case Field::Kind::kKeypoints:
      return SetKeypointsOption(option, column);
    case Field::Kind::kObject:
      column.dtype = FindNamed<DType>(kKeyedTypes, option);
      return column.dtype.has_value();
    default:
      return false;
  }
}

Error WrongKeyed(const std::string& what) {
  return {.code = Code::kInvalidArgument, .cause = "keyed_columns: " + what};
}

Result<KeyedColumn> ParseKeyedColumn(std::span<const std::string_view> record) {
  if (record.size() < 3 || record[0].empty() || record[2].empty()) {
    return WrongKeyed("a record must have a name, a kind, a key, and options");
  }
  const std::string named = "'" + Printable(record[0]) + "'";
  if (!IsColumnName(record[0]) || !IsColumnName(record[2])) {
    return WrongKeyed(named + " or its key is too long, not UTF-8, or has control characters");
  }
  const auto* const kind =
      std::ranges::find(kKeyedKinds, record[1], &std::pair<std::string_view, Field::Kind>::first);
  if (kind == kKeyedKinds.end()) return WrongKeyed(named + " has an unknown kind");
  if (record[0] == "image" || record[0] == "label") {
    return WrongKeyed(named + " is the name of another column");
  }
  KeyedColumn column{.field = {.name = std::string(record[0]), .kind = kind->second},
                     .key = std::string(record[2])};
  for (const std::string_view option : record.subspan(3)) {
    if (SetKeyedOption(option, column)) continue;
    return WrongKeyed(named + " has the option '" + Printable(option) +
                      "', which is unknown, or is not possible here");
  }
  if (column.is_mask() && column.field.fill > MostOfMask(column.field.dtype)) {
    return WrongKeyed(named + " has the fill " + std::to_string(column.field.fill) +
                      "; masks of uint8 have values up to 255");
  }
  return column;
}

}  // namespace

Result<std::vector<KeyedColumn>> ParseKeyedColumns(std::string_view text) {
  CsvReader reader(TextFile("keyed_columns", std::string(text)), ',');
  std::vector<KeyedColumn> columns;
  std::vector<std::string_view> record;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(record));
    if (!more) return columns;
    ASSIGN_OR_RETURN(KeyedColumn column, ParseKeyedColumn(record));
    const auto is_same = [&](const KeyedColumn& other) {
      return other.field.name == column.field.name;
    };
    if (std::ranges::any_of(columns, is_same)) {
      return WrongKeyed("'" + Printable(column.field.name) + "' occurs twice");
    }
    columns.push_back(std::move(column));
  }
}

}  // namespace stoker
