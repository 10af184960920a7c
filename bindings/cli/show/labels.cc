#include "bindings/cli/show/labels.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "core/result/utf8.h"
#include "io/source/field.h"

namespace stoker {

namespace {

std::string ClassText(int64_t number, std::span<const std::string> classes) {
  const bool named = number >= 0 && static_cast<uint64_t>(number) < classes.size();
  return named ? Printable(classes[static_cast<size_t>(number)]) : std::to_string(number);
}

std::string MixedText(std::span<const float> weights, std::span<const std::string> classes) {
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    if (!text.empty()) text += " + ";
    text += ClassText(static_cast<int64_t>(i), classes);
    if (weights[i] != 1) text += fmt::format(" {:.2f}", weights[i]);
  }
  return text;
}

}  // namespace

std::vector<std::string> LabelTexts(const Column& labels, std::span<const std::string> classes) {
  std::vector<std::string> texts;
  const auto rows = static_cast<size_t>(labels.shape[0]);
  const Field field{.name = labels.name,
                    .dtype = labels.dtype,
                    .row_shape = {labels.shape.begin() + 1, labels.shape.end()}};
  if (!IsString(field.dtype) && field.is_class_number()) {
    const auto* const data = static_cast<const uint8_t*>(labels.data);
    for (size_t row = 0; row < rows; ++row) {
      texts.push_back(ClassText(field.ClassNumberIn(data + row * field.row_bytes()), classes));
    }
  } else if (labels.dtype == DType::kF32 && labels.shape.size() == 2) {
    const auto width = static_cast<size_t>(labels.shape[1]);
    for (size_t row = 0; row < rows; ++row) {
      texts.push_back(MixedText(labels.as<float>().subspan(row * width, width), classes));
    }
  }
  return texts;
}

}  // namespace stoker
