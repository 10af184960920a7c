// Checks of loader options that need only the options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"

namespace stoker {

// The number of epochs that random draws can distinguish (RandomStream); within it no batch count
// overflows.
inline constexpr uint64_t kMaxEpochs = uint64_t{1} << 32;

// The column of the images' sizes, (height, width). It follows the columns of the source's fields.
// Batches have it if there is a PadTo.
inline constexpr const char* kSizeColumn = "image_size";

// The columns of LoaderOptions::geometry.
inline constexpr const char* kGeometryColumn = "geometry";
inline constexpr const char* kOriginalSizeColumn = "original_size";

// The column of a further view of the images, from 1 on. These follow the columns of the source's
// fields.
std::string ViewColumn(const SampleSource& source, size_t view);

// InvalidArgument names the option, its value and the allowed range.
Status CheckOptions(const LoaderOptions& options);

// Whether batches are copies of the source's rows, of any type: samples in memory without
// transforms.
inline bool CopiesRows(const LoaderOptions& options) {
  return options.transforms.empty() && options.views.empty() && options.source->in_memory();
}

// The columns of integers that the options' processor makes; the mask of padded rows is the first.
std::vector<ColumnSpec> FiguresOf(const LoaderOptions& options);

// The most rows of a batch. Precondition: `token_batches` is set if there are batch_tokens.
uint32_t MostRows(const LoaderOptions& options);

// Whether samples have images after the first one, or clips. A device changes and decodes only the
// image of a row that has one.
bool HasFurtherImages(const SampleSource& source);

SamplerOptions SamplerOptionsOf(const LoaderOptions& options);

}  // namespace stoker
