// TraceFile: records the activity of a Runtime's loaders into a file for ui.perfetto.dev or
// chrome://tracing.
//
// auto trace = TraceFile::Start(*runtime, "trace.json").value(); …
// // all loaders of the Runtime are recorded
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "core/result/result.h"

namespace stoker {

class Runtime;

struct TraceFileOptions {
  // Memory for events until the file is written, in addition to the Runtime's budget: about 60
  // bytes per event. At least 1 MiB.
  uint64_t memory = uint64_t{64} << 20;
};

struct TraceSummary {
  std::string path;
  uint64_t events = 0;   // in the file
  uint64_t dropped = 0;  // lost because the memory was full; the file notes the time of the first
                         // one
  uint64_t bytes = 0;    // of the file
};

// Not thread-safe.
class TraceFile {
 public:
  // Starts recording. Stop replaces the file (core/system/output_file.h), even if the process has
  // changed its current folder. Errors: the file cannot be written; ResourceExhausted if there are
  // too many listeners; InvalidArgument for the options.
  static Result<std::unique_ptr<TraceFile>> Start(std::shared_ptr<Runtime> runtime,
                                                  std::string path,
                                                  const TraceFileOptions& options = {});
  ~TraceFile();  // calls Stop if necessary; errors are lost
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Stops recording and writes the file; spans that have not ended are cut. Waits for no thread.
  // FailedPrecondition when it was called before, and in a forked child, where nothing is written.
  Result<TraceSummary> Stop();

 private:
  class Recorder;

  TraceFile(std::shared_ptr<Runtime> runtime, std::string path, std::string absolute_path,
            uint64_t memory);
  Result<TraceSummary> Write(const Recorder& recorder, uint64_t end_ns);
  void WriteJson(const Recorder& recorder, uint64_t end_ns, std::FILE* stream,
                 TraceSummary& summary) const;

  const std::shared_ptr<Runtime> runtime_;
  const std::string path_;              // as given
  const std::string absolute_path_;     // absolute
  std::shared_ptr<Recorder> recorder_;  // null: stopped
  const uint64_t begin_ns_, begin_unix_ns_;
};

}  // namespace stoker
