// Writes a folder of synthetic photographs (bindings/cli/synth/photograph.h) in image_folder's
// structure: DIR/class07/photo_000027.jpg, photograph i in class i mod classes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result/result.h"

namespace stoker {

struct SynthOptions {
  uint64_t count = 0;  // photographs
  int classes = 0;     // at most `count`; 0 means the smaller of 20 and `count`
  uint64_t seed = 0;
  int threads = 0;         // 0 means the cores allotted
  bool overwrite = false;  // see below
};

struct SynthSummary {
  uint64_t written = 0;  // files
  uint64_t kept = 0;     // files from an earlier run
  uint64_t bytes = 0;    // of both
  int classes = 0;
};

// Called after each file, from one thread at a time; `false` ends the work with Cancelled.
using SynthProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Writes the photographs, creating `directory` if it is missing. A file appears under its name only
// when it is complete; after an error or cancellation the complete files stay, and nothing else.
//
// stoker leaves a hidden file, .stoker-synth, that describes its output. If that file has the same
// seed and classes, existing photographs are kept, missing ones written and those past `count`
// removed: running again continues, and costs nothing when everything exists. Any other folder that
// is not empty is refused with InvalidArgument, unless `overwrite`: then photographs that stoker
// made earlier are removed first, and all other files stay.
//
// Other errors name the file: ResourceExhausted (disk full), PermissionDenied, …
Result<SynthSummary> WritePhotographs(const std::string& directory, const SynthOptions& options,
                                      const SynthProgress& progress = {});

}  // namespace stoker
