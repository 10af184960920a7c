// Measures a loader, and then each of its parts alone on this machine, for `stoker bench
// --explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bindings/cli/bench/runner.h"
#include "bindings/cli/text/text_layout.h"
#include "core/result/result.h"

namespace stoker {

// One part alone.
struct Ceiling {
  double images_per_second = 0;  // 0 if not measured
  double bytes_per_second = 0;   // that the part moves
  std::string why_not{};         // why it was not measured; empty if it was
};

struct Ceilings {
  // The threads that decode, and write to memory: the loader's workers, at most the allotted cores,
  // because with more threads a core's time would count several times.
  int workers = 0;
  uint64_t image_bytes = 0;      // of a row of a batch
  Ceiling storage;               // the samples' bytes into memory, as `--read-only` does
  std::optional<double> cached;  // the share of these that came from the page cache
  Ceiling decode;                // decoding and transforms, from bytes in memory
  double decode_seconds = 0;     // CPU time of one image
  Ceiling memory;                // writing rows of batches
  Ceiling copy;                  // copying batches to the device
  std::string device;            // "cuda:0"; empty means none
  BenchReport run;               // of all parts together
  bool interrupted = false;      // `keep_going` ended it
};

// The run's images per second, without the time for its first batch (cold: for the first of each
// epoch); nullopt if there were so few batches that many of them were in production by then.
std::optional<double> RunRate(const BenchReport& run);

// Called with what is being measured, "storage alone", before each read of an image and several
// times a second while nothing is read; false ends it.
using KeepExplaining = std::function<bool(const char* what)>;

// Takes a few seconds, for any number of samples: `epochs` is ignored. The run comes first, so that
// no other part has brought its files into the page cache, and its errors end the measurement. A
// part that fails has a `why_not`. Cancelled if `keep_going` ends it before the run has batches;
// after that, missing parts are marked. Unimplemented for several views.
Result<Ceilings> MeasureCeilings(const BenchOptions& options, const KeepExplaining& keep_going);

// Do what BenchReportText and BenchReportJson do (bindings/cli/bench/report.h).
std::string CeilingsText(const Ceilings& ceilings, const cli::PageWidth& width = {});
std::string CeilingsJson(const Ceilings& ceilings);

}  // namespace stoker
