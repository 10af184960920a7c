#include "engine/pipeline/trace_file.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "engine/core/stage_times.h"

namespace stoker {

namespace {

constexpr uint64_t kLeastMemory = uint64_t{1} << 20;

uint64_t UnixNanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::Start(std::shared_ptr<Runtime> runtime,
                                                    std::string path,
                                                    const TraceFileOptions& options) {
  if (Status s = runtime->CheckProcess(); !s.ok()) return std::move(s).error();
  if (options.memory < kLeastMemory) {
    return Error{Code::kInvalidArgument, "a trace's memory is " + std::to_string(options.memory) +
                                             " bytes; it must be at least " +
                                             std::to_string(kLeastMemory)};
  }
  File file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) return SystemError(errno, "cannot write the trace", path);
  std::unique_ptr<TraceFile> made(
      new TraceFile(std::move(runtime), std::move(path), std::move(file), options.memory));
  if (made->runtime_->trace().Listen(made.get(), made->recorder_)) return made;
  made->recorder_ = nullptr;
  return Error{.code = Code::kResourceExhausted,
               .cause = "too many listen to this Runtime's trace: " + std::to_string(Trace::kMost),
               .advice = "Stop a trace first"};
}

TraceFile::TraceFile(std::shared_ptr<Runtime> runtime, std::string path, File file, uint64_t memory)
    : runtime_(std::move(runtime)),
      path_(std::move(path)),
      file_(std::move(file)),
      recorder_(std::make_shared<TraceRecorder>(memory)),
      period_{NowNanoseconds(), 0, UnixNanoseconds()} {}

TraceFile::~TraceFile() {
  if (recorder_ != nullptr) (void)Stop();
}

Result<TraceSummary> TraceFile::Stop() {
  if (Status s = runtime_->CheckProcess(); !s.ok()) return std::move(s).error();
  const std::shared_ptr<TraceRecorder> recorder = std::exchange(recorder_, nullptr);
  if (recorder == nullptr) {
    return Error{Code::kFailedPrecondition, "this trace was stopped before"};
  }
  (void)runtime_->trace().Listen(this, nullptr);
  period_.end_ns = NowNanoseconds();
  return Write(*recorder);
}

Result<TraceSummary> TraceFile::Write(const TraceRecorder& recorder) {
  TraceSummary summary{.path = path_};
  errno = 0;
  summary.events = WriteTraceJson(recorder, period_, file_.get());
  summary.dropped = recorder.dropped().events;
  const long bytes = std::ftell(file_.get());
  summary.bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  const bool written = std::ferror(file_.get()) == 0;
  if (std::fclose(file_.release()) != 0 || !written) {
    return SystemError(errno, "cannot write the trace", path_);
  }
  return summary;
}

}  // namespace stoker
