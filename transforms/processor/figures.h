// The arrays of integers that a processor of Hugging Face returns next to the pixels of images.
#pragma once

#include <vector>

#include "core/batch/batch.h"
#include "transforms/processor/recipe.h"

namespace stoker {

// Their names, types and row shapes; a row is an image's.
std::vector<ColumnSpec> FigureColumns(const ProcessorRecipe& recipe);

// Writes an image's row of the column at this index.
void WriteFigures(const ProcessorRecipe& recipe, const ImagePlan& image, size_t column, void* row);

}  // namespace stoker
