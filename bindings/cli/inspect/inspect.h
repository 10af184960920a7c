// Examines a dataset by the headers of its files, for `stoker inspect`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/inspect/inspect_file.h"
#include "bindings/cli/inspect/packing_gain.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct InspectOptions {
  int threads = 0;           // 0 means the cores allotted
  size_t list_broken = 100;  // the number of broken files to list in the report
};

// The distribution of one number over the files. All zero if no file has it.
struct Distribution {
  uint64_t count = 0;
  double min = 0, p5 = 0, p25 = 0, median = 0, p75 = 0, p95 = 0, max = 0;
  double mean = 0;
};

struct ClassCount {
  std::string name;
  uint64_t samples = 0;
};

struct DatasetReport {
  std::string source;  // "image_folder(photos/train)"
  uint64_t samples = 0;
  uint64_t list_bytes = 0;  // memory of the list of samples
  std::vector<ClassCount> classes;

  SkippedFiles skipped;  // image files that are not samples, because of their extensions

  std::map<std::string, uint64_t> extensions;  // of the name, in lower case, with the dot
  std::map<std::string, uint64_t> formats;     // by content: "JPEG", "PNG", …; "unknown", "empty"
  uint64_t sixteen_bits = 0;                   // files of 16 bits a channel
  uint64_t several_frames = 0;                 // files of several frames or pages
  std::optional<PackingGain> packing;          // nullopt unless it was measured
  uint64_t undecodable = 0;                    // sound files of formats that stoker does not decode
  uint64_t total_bytes = 0;
  Distribution bytes;  // of a file

  // Over the JPEG files whose header could be read:
  std::map<std::string, uint64_t> chroma;  // "4:4:4", "4:2:0", "gray", "CMYK", …
  std::map<int, uint64_t> orientations;    // EXIF, 1 to 8
  uint64_t progressive = 0;
  uint64_t arithmetic = 0;
  uint64_t restart_markers = 0;  // files with each feature

  // Over all files that stoker decodes whose header could be read:
  Distribution width, height, megapixels;  // as stored
  Distribution bits_per_pixel;             // of the whole file

  uint64_t broken = 0;
  std::vector<Error> broken_files;  // the first of them in the source's order; each has its file
  double seconds = 0;               // not those of measuring `packing`
};

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using InspectProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Examines the file of a sample, and sets `path` to its path below the folder, or to another name.
// Used by one thread.
using InspectSample = std::function<FileFacts(uint64_t id, std::string& path)>;

// Opens every file of `source` once. A file counts as broken if it cannot be opened, is empty or
// not an image, or is of a format that stoker decodes and its header cannot be read. Damage and
// truncation after the header are found by Verify (bindings/cli/verify/verify.h).
//
// A broken file does not make Inspect fail; InvalidArgument and Cancelled do. The report does not
// depend on the number of threads, except for `seconds`.
Result<DatasetReport> Inspect(const SampleSource& source, const InspectOptions& options = {},
                              const InspectProgress& progress = {});

// The same for other files: each thread calls `make_inspect` once, and the result for each sample.
Result<DatasetReport> Inspect(const SampleSource& source, const InspectOptions& options,
                              const InspectProgress& progress,
                              const std::function<InspectSample()>& make_inspect);

}  // namespace stoker
