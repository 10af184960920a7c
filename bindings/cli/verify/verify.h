// Reads and decodes every sample of a dataset, and finds the samples that cannot be used, for
// `stoker verify`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bindings/cli/text/text_layout.h"
#include "bindings/cli/verify/bad_samples.h"
#include "core/result/result.h"
#include "io/source/source.h"
#include "transforms/decode/image_info.h"

namespace stoker {

struct VerifyOptions {
  int threads = 0;        // 0 means the cores allotted
  DecodeLimits limits{};  // a sample that exceeds them is bad
  // As for a loader: sizes are compared, and boxes clipped, after the EXIF tag turned the image.
  bool exif_orientation = true;
};

struct VerifyReport {
  uint64_t checked = 0;      // samples
  bool interrupted = false;  // not all samples were checked
  // At this file the machine had no memory or descriptors left. The error says nothing about the
  // file's sample, which is not in `bad`.
  std::optional<Error> error{};
  BadSampleList bad;                // by id, of the checked samples
  uint64_t no_end_marker = 0;       // JPEGs without an end marker, which are decoded all the same
  uint64_t accepted_truncated = 0;  // JPEGs that lack data, if the limits accept that
  uint64_t boxes_without_area = 0;  // in their images, of objects; they are read all the same
  uint64_t first_without_area = ~uint64_t{0};  // the first sample that has one
  double seconds = 0;
};

// Called after each sample, from one thread at a time; `false` ends the work.
using VerifyProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Decodes each image completely, not just a crop; of a sample with masks or other further images
// all of them, whose sizes must be equal, of clips within each. An image must have the size in
// which its objects were annotated. A bad sample does not make Verify fail. Errors: InvalidArgument
// for wrong options, or a source whose samples are not encoded images in files. If the machine has
// no memory or no descriptors left, the report ends there and has the error. Memory:
// WorkingMemory(limits) for each thread, and the bad samples. The report does not depend on the
// number of threads, except for `seconds` and where it is interrupted.
Result<VerifyReport> Verify(const SampleSource& source, const VerifyOptions& options = {},
                            const VerifyProgress& progress = {});

// Returns text for people; names at most `most_listed` bad samples.
std::string VerifyText(const SampleSource& source, const VerifyReport& report, size_t most_listed,
                       const cli::PageWidth& width = {});

// Writes one JSON object (docs/cli.md) piece by piece, because it has a line for each bad sample.
// The first error of `write` ends it.
using TextWriter = std::function<Status(std::string_view piece)>;
Status WriteVerifyJson(const SampleSource& source, const VerifyReport& report,
                       const TextWriter& write);

}  // namespace stoker
