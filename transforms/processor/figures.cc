#include "transforms/processor/figures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace stoker {

namespace {

std::vector<ColumnSpec> ColumnsOf(ProcessorFamily family) {
  switch (family) {
    case ProcessorFamily::kPlain:
      return {};
    case ProcessorFamily::kQwen:
      return {{"image_grid_thw", DType::kI64, {3}}};
    case ProcessorFamily::kNaFlex:
      return {{"spatial_shapes", DType::kI64, {2}}};
    case ProcessorFamily::kLlavaNext:
      return {{"image_sizes", DType::kI64, {2}}};
    case ProcessorFamily::kLlavaOnevision:
      return {{"image_sizes", DType::kI64, {2}}, {"batch_num_images", DType::kI64, {}}};
    case ProcessorFamily::kTiled:
      return {{"num_patches", DType::kI64, {}}};
  }
  return {};
}

}  // namespace

std::vector<ColumnSpec> FigureColumns(const ProcessorRecipe& recipe, bool masked) {
  std::vector<ColumnSpec> columns = ColumnsOf(recipe.family);
  if (masked) columns.insert(columns.begin(), {kMaskColumn, DType::kI32, {recipe.padded_rows}});
  return columns;
}

void WriteFigures(const ProcessorRecipe& recipe, const ImagePlan& image, const std::string& column,
                  std::span<uint8_t> row) {
  const auto [width, height] = image.Grid(image.canvases[0]);
  const auto write = [row](const auto&... values) {
    const std::array all{static_cast<int64_t>(values)...};
    std::memcpy(row.data(), all.data(), sizeof all);
  };
  if (column == kMaskColumn) {
    auto* const mask = reinterpret_cast<int32_t*>(row.data());
    const size_t length = row.size() / sizeof(int32_t);
    const size_t own = std::min(length, static_cast<size_t>(image.rows));
    std::fill_n(std::fill_n(mask, own, 1), length - own, 0);
    return;
  }
  switch (recipe.family) {
    case ProcessorFamily::kPlain:
      return;
    case ProcessorFamily::kQwen:
      return write(1, height, width);
    case ProcessorFamily::kNaFlex:
      return write(height, width);
    case ProcessorFamily::kLlavaNext:
    case ProcessorFamily::kLlavaOnevision:
      if (column != "image_sizes") return write(1);
      return write(image.image.height, image.image.width);
    case ProcessorFamily::kTiled:
      return write(image.rows);
  }
}

}  // namespace stoker
