// Restores the files of a packed set, for `stoker unpack`.
#pragma once

#include <cstdint>
#include <string>

#include "bindings/cli/for_each_sample.h"
#include "bindings/cli/pack/restore_file.h"
#include "core/result/result.h"

namespace stoker {

struct UnpackReport {
  std::string source;  // "packed(OUT)"
  std::string out;
  uint64_t samples = 0;
  uint64_t files = 0, bytes = 0;  // that were written
  EqualPngs equal;
  double seconds = 0;
};

// Writes every photograph of the packed set in `folder` below `out`, a folder that is new or empty,
// under its original path and with its original bytes (see FileRestorer for PNGs); if samples have
// several images, below a folder for each field, with its name. Nothing is written outside of
// `out`, for any index. A file appears as a whole or not at all; after an error or an interruption
// the files written so far stay.
//
// Errors: those of opening the set, DataLoss (a photograph is not what was packed),
// InvalidArgument (`out` is not empty), the system's on writing, Cancelled.
Result<UnpackReport> UnpackSet(const std::string& folder, const std::string& out, int threads = 0,
                               const SampleProgress& progress = {});

}  // namespace stoker
