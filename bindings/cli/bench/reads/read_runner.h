// Measures reading alone: reads the same bytes of the source's samples as a loader, in its order,
// as its reader thread does, and discards them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bindings/cli/bench/reads/fio.h"
#include "bindings/cli/bench/runner.h"
#include "bindings/cli/text/text_layout.h"
#include "core/result/result.h"
#include "io/readers/reader.h"

namespace stoker {

struct ReadProgress {
  uint64_t samples = 0;
  uint64_t samples_total = 0;
  double seconds = 0;
};

// Called on the thread that runs the bench, about ten times a second; false ends the run.
using KeepReading = std::function<bool(const ReadProgress&)>;

struct ReadReport {
  uint64_t epochs = 0;              // completed
  uint64_t samples = 0;             // read
  uint64_t bytes = 0;               // read
  uint64_t bytes_from_storage = 0;  // bytes that were not in the page cache, and read-ahead
  // The share of the samples' bytes that was in the page cache before the first epoch, and after
  // dropping them; nullopt if unknown.
  std::optional<double> cached_before;
  bool interrupted = false;  // `keep_going` ended it

  double seconds = 0;      // of the epochs, without dropping the page cache
  double cpu_seconds = 0;  // user and system, all threads

  // Latencies from pulling a request to its completion; at most 3 % too small. Reads of pread that
  // are pulled together are made one after the other, so they wait for each other.
  double latency_p50_s = 0;
  double latency_p99_s = 0;
  double latency_p999_s = 0;

  std::optional<FioFigure> fio;  // for the first reads of the run, if fio is installed
  ReaderCounts counts;
  ReaderChoice reader;
  uint32_t reads_in_flight = 0;
  BenchOptions options;
  std::string source;
};

// Uses the source, the order and the epochs of `options`, its reader, its reads in flight and its
// memory budget, and the transforms to know which bytes a sample's crop needs. The first error ends
// the run; InvalidArgument if the source is in memory.
Result<ReadReport> RunReadBench(const BenchOptions& options, const KeepReading& keep_going = {});

// Do what BenchReportText and BenchReportJson do (bindings/cli/bench/report.h).
std::string ReadReportText(const ReadReport& report, const cli::PageWidth& width = {});
std::string ReadReportJson(const ReadReport& report);

}  // namespace stoker
