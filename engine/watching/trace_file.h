// TraceFile: what a Runtime's loaders do, as a file for ui.perfetto.dev or chrome://tracing.
//
//   auto trace = TraceFile::Start(*runtime, "trace.json").value();
//   …                                  // all loaders of the Runtime are seen
//   TraceSummary told = trace->Stop().value();
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/trace.h"
#include "engine/runtime/runtime.h"
#include "engine/watching/trace_json.h"
#include "engine/watching/trace_recorder.h"

namespace stoker {

struct TraceFileOptions {
  // Bytes that events are kept in until the file is written, beside the Runtime's budget: about
  // 60 for each. 1 MiB at least.
  uint64_t memory = uint64_t{64} << 20;
};

struct TraceSummary {
  std::string path;
  uint64_t events = 0;   // in the file
  uint64_t dropped = 0;  // that were not, because the memory was full; the file says from when on
  uint64_t bytes = 0;    // of the file
};

// One thread at a time.
class TraceFile {
 public:
  // Listens from now on; the file is replaced by Stop (core/output_file.h), whatever becomes
  // of the process' current folder. Errors: the file cannot be written; ResourceExhausted where too
  // many listen; InvalidArgument for the options.
  static Result<std::unique_ptr<TraceFile>> Start(std::shared_ptr<Runtime> runtime,
                                                  std::string path,
                                                  const TraceFileOptions& options = {});
  ~TraceFile();  // as Stop, where that was not called; errors are lost
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Listens no more, and writes the file; what goes on at this moment is cut. Waits for no thread.
  // FailedPrecondition when it was called before, and in a forked child, which writes nothing.
  Result<TraceSummary> Stop();

 private:
  TraceFile(std::shared_ptr<Runtime> runtime, std::string path, std::string place, uint64_t memory);
  Result<TraceSummary> Write(const TraceRecorder& recorder);

  const std::shared_ptr<Runtime> runtime_;
  const std::string path_;                   // as it was given
  const std::string place_;                  // absolute
  std::shared_ptr<TraceRecorder> recorder_;  // null: stopped
  TracePeriod period_;
};

}  // namespace stoker
