#include "transforms/processor/figures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stoker {

std::vector<ColumnSpec> FigureColumns(const ProcessorRecipe& recipe) {
  switch (recipe.family) {
    case ProcessorFamily::kPlain:
      return {};
    case ProcessorFamily::kQwen:
      return {{"image_grid_thw", DType::kI64, {3}}};
    case ProcessorFamily::kNaFlex:
      return {{"pixel_attention_mask", DType::kI32, {recipe.padded_rows}},
              {"spatial_shapes", DType::kI64, {2}}};
    case ProcessorFamily::kLlavaNext:
      return {{"image_sizes", DType::kI64, {2}}};
    case ProcessorFamily::kLlavaOnevision:
      return {{"image_sizes", DType::kI64, {2}}, {"batch_num_images", DType::kI64, {}}};
    case ProcessorFamily::kTiled:
      return {{"num_patches", DType::kI64, {}}};
  }
  return {};
}

void WriteFigures(const ProcessorRecipe& recipe, const ImagePlan& image, size_t column, void* row) {
  const auto [width, height] = image.Grid(image.canvases[0]);
  const auto write = [row](const auto&... values) {
    const std::array all{static_cast<int64_t>(values)...};
    std::memcpy(row, all.data(), sizeof all);
  };
  switch (recipe.family) {
    case ProcessorFamily::kPlain:
      return;
    case ProcessorFamily::kQwen:
      return write(1, height, width);
    case ProcessorFamily::kNaFlex:
      if (column == 1) return write(height, width);
      for (int64_t i = 0; i < recipe.padded_rows; ++i) {
        static_cast<int32_t*>(row)[i] = i < image.rows ? 1 : 0;
      }
      return;
    case ProcessorFamily::kLlavaNext:
    case ProcessorFamily::kLlavaOnevision:
      return column == 1 ? write(1) : write(image.image.height, image.image.width);
    case ProcessorFamily::kTiled:
      return write(image.rows);
  }
}

}  // namespace stoker
