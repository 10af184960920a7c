// Reads and decodes every sample of a dataset, and finds those that cannot be used, for
// `stoker verify`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/sample_fault.h"
#include "io/sources/source.h"
#include "transforms/decode/image_info.h"

namespace stoker {

struct VerifyOptions {
  int threads = 0;        // 0: the cores allotted
  DecodeLimits limits{};  // a sample beyond them is bad
};

struct BadSample {
  uint64_t id = 0;
  SampleFault fault = SampleFault::kUndecodable;
  Error error;  // with its file
};

struct VerifyReport {
  std::string source;          // "image_folder(photos/train)"
  uint64_t checked = 0;        // samples
  std::vector<BadSample> bad;  // by id
  uint64_t no_end_marker = 0;  // JPEGs without one, that are decoded all the same
  SkippedFiles skipped;        // files that are no samples, because of their extensions
  double seconds = 0;
};

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using VerifyProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Decodes each image completely, as no crop does: a loader refuses no sample that is not bad here.
// A bad sample does not make Verify fail; Cancelled does, and InvalidArgument: wrong options, or a
// source whose samples are not encoded images in files. The report does not depend on the number of
// threads, except for `seconds`.
Result<VerifyReport> Verify(const SampleSource& source, const VerifyOptions& options = {},
                            const VerifyProgress& progress = {});

// Writes the samples that are not bad as a manifest (io/sources/manifest.h), JSON lines with
// "path", which is absolute, and "label", if there are labels: the class' name, or its number.
// Replaces the file as a whole. InvalidArgument for samples that are parts of files, or have other
// columns.
Status WriteGoodSamples(const SampleSource& source, const VerifyReport& report,
                        const std::string& path);

// For people, and as one JSON object (docs/cli.md).
std::string VerifyText(const VerifyReport& report, size_t most_listed);
std::string VerifyJson(const VerifyReport& report);

}  // namespace stoker
