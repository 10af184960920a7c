#include "io/memory/record_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/result/try.h"

namespace stoker {
namespace {

// Takes the text before the first `separator` off the front of `rest`; all of it if there is none.
std::string_view TakeUntil(std::string_view& rest, std::string_view separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + separator.size());
  return taken;
}

std::optional<DType> DTypeOf(std::string_view name) {
  for (int i = static_cast<int>(DType::kBool); i <= static_cast<int>(DType::kF64); ++i) {
    if (name == NameOf(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  return std::nullopt;
}

Error RefuseField(size_t index, const std::string& cause) {
  return {.code = Code::kInvalidArgument,
          .cause = "record: field " + std::to_string(index) + " " + cause,
          .advice = "Give fields as \"NAME TYPE DIMENSION …\", separated by a comma and a space"};
}

Result<Field> ParseField(size_t index, std::string_view text) {
  const std::string_view name = TakeUntil(text, " ");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (name.empty() || std::ranges::any_of(name, is_control)) {
    return RefuseField(index, "has no name");
  }
  const std::optional<DType> dtype = DTypeOf(TakeUntil(text, " "));
  if (!dtype) return RefuseField(index, "has a type that NumPy has no name for");
  Field field{.name = std::string(name), .dtype = *dtype};
  while (!text.empty()) {
    const std::string_view digits = TakeUntil(text, " ");
    int64_t dimension = 0;
    const auto [behind, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), dimension);
    if (error != std::errc() || behind != digits.data() + digits.size() || dimension < 0) {
      return RefuseField(index, "has a dimension that is not a number");
    }
    field.row_shape.push_back(dimension);
  }
  return field;
}

}  // namespace

Result<std::vector<Field>> ParseRecord(std::string_view text) {
  std::vector<Field> record;
  do {
    ASSIGN_OR_RETURN(Field field, ParseField(record.size(), TakeUntil(text, ", ")));
    record.push_back(std::move(field));
  } while (!text.empty());
  return record;
}

std::string RecordText(std::span<const Field> record) {
  std::string text;
  for (const Field& field : record) {
    if (!text.empty()) text += ", ";
    text += field.name + " " + NameOf(field.dtype);
    for (const int64_t dimension : field.row_shape) text += " " + std::to_string(dimension);
  }
  return text;
}

}  // namespace stoker
