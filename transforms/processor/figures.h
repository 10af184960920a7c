// The arrays of integers that a processor of Hugging Face returns next to the pixels of images.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "transforms/processor/recipe.h"

namespace stoker {

inline constexpr const char* kMaskColumn = "pixel_attention_mask";

// Their names, types and row shapes; a row is an image's. `masked`: the first one is the mask of
// padded rows, int32 (recipe.padded_rows).
std::vector<ColumnSpec> FigureColumns(const ProcessorRecipe& recipe, bool masked);

// Writes an image's row of the column with this name: of a mask, ones for the image's rows, and
// zeros.
void WriteFigures(const ProcessorRecipe& recipe, const ImagePlan& image, const std::string& column,
                  std::span<uint8_t> row);

}  // namespace stoker
