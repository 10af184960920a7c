#include "engine/metrics/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/result/try.h"
#include "core/system/output_file.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/metrics/trace_json.h"
#include "engine/metrics/trace_recorder.h"
#include "engine/runtime/runtime.h"

namespace stoker {

namespace {

constexpr uint64_t kMinMemory = uint64_t{1} << 20;

uint64_t UnixNanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::Start(std::shared_ptr<Runtime> runtime,
                                                    std::string path,
                                                    const TraceFileOptions& options) {
  TRY(runtime->CheckProcess());
  if (options.memory < kMinMemory) {
    return Error{Code::kInvalidArgument, "a trace's memory is " + std::to_string(options.memory) +
                                             " bytes; it must be at least " +
                                             std::to_string(kMinMemory)};
  }
  std::error_code error;
  std::string absolute_path = std::filesystem::absolute(path, error);
  if (error) return SystemError(error.value(), "cannot write", path);
  if (Status s = CheckCanWrite(absolute_path); !s.ok()) return std::move(s).error().WithFile(path);
  std::unique_ptr<TraceFile> made(
      new TraceFile(std::move(runtime), std::move(path), std::move(absolute_path), options.memory));
  if (made->runtime_->trace().Listen(made.get(), made->recorder_)) return made;
  made->recorder_ = nullptr;
  return Error{
      .code = Code::kResourceExhausted,
      .cause = "too many listeners to this Runtime's trace: " + std::to_string(Trace::kMax),
      .advice = "Stop a trace first"};
}

TraceFile::TraceFile(std::shared_ptr<Runtime> runtime, std::string path, std::string absolute_path,
                     uint64_t memory)
    : runtime_(std::move(runtime)),
      path_(std::move(path)),
      absolute_path_(std::move(absolute_path)),
      recorder_(std::make_shared<TraceRecorder>(memory)),
      begin_ns_(NowNanoseconds()),
      begin_unix_ns_(UnixNanoseconds()) {}

TraceFile::~TraceFile() {
  if (recorder_ != nullptr) (void)Stop();
}

Result<TraceSummary> TraceFile::Stop() {
  TRY(runtime_->CheckProcess());
  const std::shared_ptr<TraceRecorder> recorder = std::exchange(recorder_, nullptr);
  if (recorder == nullptr) {
    return Error{Code::kFailedPrecondition, "this trace was already stopped"};
  }
  (void)runtime_->trace().Listen(this, nullptr);
  return Write(*recorder, NowNanoseconds());
}

Result<TraceSummary> TraceFile::Write(const TraceRecorder& recorder, uint64_t end_ns) {
  TraceSummary summary{.path = path_};
  Result<OutputFile> file = OutputFile::Open(absolute_path_);
  if (!file.ok()) return std::move(file).error().WithFile(path_);
  const int descriptor = fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 0);
  std::FILE* stream = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (stream == nullptr) {
    const int error_number = errno;
    if (descriptor >= 0) close(descriptor);
    return CannotWrite(error_number, absolute_path_).WithFile(path_);
  }
  errno = 0;
  summary.events = WriteTraceJson(recorder, {begin_ns_, end_ns, begin_unix_ns_}, stream);
  summary.dropped = recorder.dropped().events;
  const long bytes = std::ftell(stream);
  summary.bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  const bool written = std::ferror(stream) == 0;
  if (std::fclose(stream) != 0 || !written)
    return CannotWrite(errno, absolute_path_).WithFile(path_);
  if (Status s = file->Commit(OutputFile::Sync::kToDisk); !s.ok())
    return std::move(s).error().WithFile(path_);
  return summary;
}

}  // namespace stoker
