// Writes the list of a dataset's good samples, a manifest that can be opened instead of the
// dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/cli/verify/bad_samples.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Returns the error that writing a list of this source's samples to the file `path` would return,
// whichever of them are good, except for a full disk; changes nothing. InvalidArgument for a name
// that does not end in .jsonl or .ndjson; samples that are parts of files, or have other columns;
// labels that are neither integers, nor numbers, nor bool, nor vectors of these; and values that
// JSON does not have: paths and classes that are not UTF-8, labels that are not finite numbers.
// Errors of writing name `path`.
Status CheckGoodSamples(const SampleSource& source, const std::string& path);

struct GoodSamples {
  uint64_t samples = 0;                     // in the list
  std::vector<std::string> lost_classes{};  // classes that have samples, but no good one
};

// Writes the samples that are not in `bad`, which is sorted, as a manifest (io/manifest/manifest.h)
// of JSON lines: "path", which is absolute, and "label", if there are labels: the name of the
// class, or the value. Replaces the file as a whole. If no sample is good, nothing is written,
// because an empty manifest cannot be read. Precondition: CheckGoodSamples returned success.
Result<GoodSamples> WriteGoodSamples(const SampleSource& source, const BadSampleList& bad,
                                     const std::string& path);

}  // namespace stoker
