// The end-to-end runner: streams epochs through a loader and measures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bindings/cli/bench/device_consumer.h"
#include "core/result.h"
#include "engine/loader/options.h"
#include "engine/runtime/runtime.h"
#include "engine/watching/stats.h"
#include "engine/watching/trace_file.h"
#include "gpu/stager.h"

namespace stoker {

// Batches go to a device, where each is used by a step that does nothing but take its time.
struct DeviceBench {
  DeviceName name;
  int buffers = DeviceOptions().buffers;
  uint64_t step_ns = 0;
};

struct BenchOptions {
  std::string transform;   // what the report calls loader.transforms: "train", "eval"
  LoaderOptions loader;    // `epochs` and `runtime` are set by the runner
  RuntimeOptions runtime;  // a Runtime of its own is made from these
  uint64_t epochs = 1;
  bool cold = false;    // drop the files from the page cache before each epoch
  bool digest = false;  // hash everything that is delivered; its CPU time counts as `rest`
  std::optional<DeviceBench> device;
  std::string trace;  // the file that the run is traced to; empty: it is not
};

struct BenchProgress {
  uint64_t batches = 0;
  uint64_t batches_total = 0;
  uint64_t images = 0;
  double seconds = 0;
  std::function<LoaderStats()> stats;  // of the loader; valid during the call
};

// Called by the thread that runs the bench, ten times a second at most, also while it waits for a
// batch; false ends the run.
using KeepGoing = std::function<bool(const BenchProgress&)>;

// Seconds of CPU by what they were spent on.
struct CpuSplit {
  double read = 0;
  double decode = 0;
  double resize = 0;
  double augment = 0;
  double mix = 0;
  double rest = 0;  // everything else in this process
};

// What is known of a period. All in seconds.
struct CpuAccount {
  double total = 0;     // CPU of the process
  double read = 0;      // CPU of the reader threads
  double consumer = 0;  // CPU of the thread that takes the batches
  double decode = 0;    // wall time inside the workers
  double resize = 0;    // wall time inside the workers
  double augment = 0;   // wall time inside the workers
  double mix = 0;       // wall time inside the workers
  double work = 0;      // wall time of the workers on samples and batches, all of these included
};

// Wall time inside a worker is CPU time as long as the worker has a core. Where workers had to wait
// for one, `work` is more than the CPU time that is left for them, total − read − consumer: then
// these parts are scaled by the ratio of the two. The parts add up to `total`.
CpuSplit SplitCpu(const CpuAccount& account);

// Nanoseconds are the device's own, by its events. Rates in bytes a second.
struct DeviceFigures {
  StagerStats staged;         // what was copied, and what the copies waited for
  double bare_copy_rate = 0;  // of a pinned copy of a batch's bytes with nothing beside it
  uint64_t copy_bytes = 0;    // those
  uint64_t bare_step_ns = 0;  // of a step with nothing beside it; 0: there are no steps
  StepTimes steps;
};

struct BenchReport {
  uint64_t epochs = 0;   // completed
  uint64_t batches = 0;  // delivered
  uint64_t images = 0;   // delivered
  uint64_t bytes_read = 0;
  uint64_t bytes_from_storage = 0;  // of those, what the page cache did not have
  bool interrupted = false;         // `keep_going` ended it

  // Measured from the moment the first batch of the run (cold: of each epoch) is asked for to the
  // last one's arrival. Dropping the page cache is not in it.
  double seconds = 0;
  double cpu_seconds = 0;  // user and system, all threads
  CpuSplit cpu;

  double time_to_first_batch_s = 0;  // from before the Runtime and the loader are opened
  double batch_latency_p50_s = 0;    // of Next(): from asking for a batch to having it
  double batch_latency_p99_s = 0;
  uint64_t peak_memory_bytes = 0;  // resident, of the whole process since its start (VmHWM)

  std::optional<std::string> digest;          // see bindings/cli/bench/digest.h
  std::optional<std::string> samples_digest;  // see bindings/cli/bench/digest.h

  std::optional<DeviceFigures> device;
  std::optional<TraceSummary> trace;
  BenchOptions options;  // as used: `runtime` has its defaults filled in
  LoaderStats loader;    // at the end
  uint64_t samples = 0;  // in the source
  uint64_t classes = 0;
  std::string source;
  std::string warning;   // of the source; empty: none
  SkippedFiles skipped;  // by the source
};

// The first error ends the run: an option (no file named), a file, the system.
Result<BenchReport> RunBench(const BenchOptions& options, const KeepGoing& keep_going = {});

}  // namespace stoker
