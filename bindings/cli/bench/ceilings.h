// Measures what each part of a loader could do alone on this machine, and then the loader, for
// `stoker bench --explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bindings/cli/bench/runner.h"
#include "core/result.h"

namespace stoker {

// One part alone.
struct Ceiling {
  double images_per_second = 0;  // 0: not measured
  double bytes_per_second = 0;   // that the part moves
  std::string why_not{};         // it was not measured; empty: it was
};

struct Ceilings {
  int workers = 0;           // the number that decode, and write to memory
  uint64_t image_bytes = 0;  // of a row of a batch
  Ceiling storage;           // the samples' bytes into memory, as `--read-only` reads them
  std::optional<double> cached_before;  // the share of these that was in the page cache
  Ceiling decode;                       // decoding and transforms, from bytes in memory
  double decode_seconds = 0;            // CPU time of one image
  Ceiling memory;                       // writing rows of batches
  Ceiling copy;                         // copying batches to the device
  std::string device;                   // "cuda:0"; empty: none
  BenchReport run;                      // of all parts together
};

// Called about ten times a second with what is being measured: "storage alone"; false ends it.
using KeepExplaining = std::function<bool(const char* what)>;

// Takes a few seconds, whatever the number of samples: `epochs` is ignored. Cancelled if
// `keep_going` ends it before the run has batches; later on the run is marked as interrupted.
// Unimplemented for several views.
Result<Ceilings> MeasureCeilings(const BenchOptions& options, const KeepExplaining& keep_going);

// Do what BenchReportText and BenchReportJson do (bindings/cli/bench/report.h).
std::string CeilingsText(const Ceilings& ceilings);
std::string CeilingsJson(const Ceilings& ceilings);

}  // namespace stoker
