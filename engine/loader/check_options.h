// The checks that need no more than the options themselves.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "engine/loader/options.h"

namespace stoker {

// What random draws tell apart (RandomStream); with them no count of batches overflows.
inline constexpr uint64_t kMostEpochs = uint64_t{1} << 32;

// InvalidArgument names the option, its value and what it may be.
Status CheckRange(const char* option, int64_t value, int64_t low, int64_t high);
Status CheckOptions(const LoaderOptions& options);

// Samples in memory, and no transforms: a batch's rows are the source's, of whatever type.
inline bool CopiesRows(const LoaderOptions& options) {
  return options.transforms.empty() && !options.source->arrays().empty();
}

OrderOptions OrderOptionsOf(const LoaderOptions& options);

}  // namespace stoker
