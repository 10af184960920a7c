// The end-to-end runner: streams epochs through a loader and measures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/bench/device_consumer.h"
#include "core/result/result.h"
#include "engine/metrics/stats.h"
#include "engine/metrics/trace_file.h"
#include "engine/options/options.h"
#include "engine/runtime/runtime.h"
#include "gpu/staging/device_copier.h"

namespace stoker {

// Copies batches to a device, where a step of fixed duration uses each.
struct DeviceBench {
  DeviceName name;
  DeviceOptions options;  // `devices` and `timed` are set by the runner
  uint64_t step_ns = 0;
};

struct BenchOptions {
  std::string transform;   // the report's name for loader.transforms: "train", "eval"
  LoaderOptions loader;    // `epochs` and `runtime` are set by the runner
  RuntimeOptions runtime;  // options of the run's own Runtime
  uint64_t epochs = 1;
  bool cold = false;    // drop the files from the page cache before each epoch
  bool digest = false;  // hash everything delivered; its CPU time counts as `rest`
  std::optional<DeviceBench> device;
  std::string trace;  // the trace file; empty means none
};

struct BenchProgress {
  uint64_t batches = 0;
  uint64_t batches_total = 0;
  uint64_t images = 0;
  uint64_t epochs = 0;  // completed
  double seconds = 0;
  std::function<LoaderStats()> stats;  // of the loader; valid during the call
};

// Called on the thread that runs the bench, at most ten times a second, even while it waits for a
// batch; false ends the run.
using KeepGoing = std::function<bool(const BenchProgress&)>;

// Seconds of CPU by stage.
struct CpuSplit {
  double read = 0;
  double decode = 0;
  double resize = 0;
  double augment = 0;
  double mix = 0;
  double rest = 0;  // everything else in this process
};

// Measurements of a period, in seconds.
struct CpuAccount {
  double total = 0;     // CPU of the process
  double read = 0;      // CPU of the reader threads
  double consumer = 0;  // CPU of the thread that takes the batches
  double decode = 0;    // wall time inside the workers
  double resize = 0;    // wall time inside the workers
  double augment = 0;   // wall time inside the workers
  double mix = 0;       // wall time inside the workers
  double work = 0;      // wall time of the workers on samples and batches, including all of these
};

// Splits the CPU time by stage. Wall time inside a worker is CPU time as long as the worker has a
// core. If workers had to wait for a core, `work` exceeds the CPU time that remains for them, total
// − read − consumer: then the stages are scaled by the ratio of the two. The parts add up to
// `total`.
CpuSplit SplitCpu(const CpuAccount& account);

// Nanoseconds are measured by the device's events. Rates are in bytes per second.
struct DeviceFigures {
  DeviceCopyStats copies;     // amount and waits of the copies
  double bare_copy_rate = 0;  // of a pinned copy of a batch's bytes alone
  uint64_t copy_bytes = 0;    // the size of that copy
  uint64_t bare_step_ns = 0;  // of a step alone; 0 means there are no steps
  StepTimes steps;
};

struct BenchReport {
  uint64_t epochs = 0;   // completed
  uint64_t batches = 0;  // delivered
  uint64_t images = 0;   // delivered
  uint64_t patches = 0;  // of these images, or tiles, without padding; 0 without a processor
  uint64_t bytes_read = 0;
  uint64_t bytes_from_storage = 0;  // bytes that were not in the page cache
  bool interrupted = false;         // `keep_going` ended it

  // From the request for the run's first batch (cold: of each epoch) to the last one's arrival,
  // without dropping the page cache.
  double seconds = 0;
  double cpu_seconds = 0;  // user and system, all threads
  CpuSplit cpu;

  // After the run's first batch (cold: after that of each epoch), so without the time in which the
  // first batches are made, until the last one's arrival.
  uint64_t batches_after_first = 0;
  uint64_t images_after_first = 0;
  double seconds_after_first = 0;

  double time_to_first_batch_s = 0;  // from before the Runtime and the loader are opened
  double batch_latency_p50_s = 0;    // durations of Next()
  double batch_latency_p99_s = 0;
  uint64_t peak_memory_bytes = 0;  // resident, of the whole process since its start (VmHWM)

  std::optional<std::string> digest;          // see bindings/cli/bench/digest.h
  std::optional<std::string> samples_digest;  // see bindings/cli/bench/digest.h

  std::optional<DeviceFigures> device;
  std::optional<TraceSummary> trace;
  BenchOptions options;  // as used, with defaults filled in
  LoaderStats loader;    // at the end
  uint64_t samples = 0;  // in the source
  uint64_t classes = 0;
  std::string source;
  std::string warning;                         // of the source; empty means none
  std::vector<std::string> memory_warnings{};  // Loader::TakeWarning
  SkippedFiles skipped;                        // by the source
};

// The first error ends the run: an option (without a file), a file, or the system.
Result<BenchReport> RunBench(const BenchOptions& options, const KeepGoing& keep_going = {});

}  // namespace stoker
