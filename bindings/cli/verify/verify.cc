#include "bindings/cli/verify/verify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>

#include "bindings/cli/verify/discard_rows.h"
#include "bindings/cli/working_memory.h"
#include "core/machine.h"
#include "core/memory_budget.h"
#include "core/start_thread.h"
#include "core/try.h"
#include "io/readers/plain_read.h"
#include "io/readers/reader.h"
#include "transforms/decode/image_decoder.h"

namespace stoker {
namespace {

constexpr uint64_t kSamplesAtATime = 16;  // that a thread takes

// Keeps buffers and a decoder for the next sample. One thread at a time.
class SampleChecker {
 public:
  SampleChecker(const SampleSource& source, const DecodeLimits& limits)
      : source_(source),
        budget_(WorkingMemory(limits)),
        decoder_(limits, &budget_),
        discard_(budget_) {
    request_.buffer = GrowingBuffer(budget_);
    request_.rows.resize(LoadedBytes(source.fields()));
  }

  Status Check(uint64_t id) {
    const ByteRange range = source_.RangeOf(id);
    source_.PathOf(range.file, request_.path);
    request_.offset = range.offset;
    request_.length = range.length;
    Status status = ReadAndDecode(id);
    if (!status.ok()) return std::move(status).error().WithFile(request_.path);
    return status;
  }

  uint64_t no_end_marker() const { return decoder_.paths().no_end_marker; }

 private:
  Status ReadAndDecode(uint64_t id) {
    ReadPlainly(request_);
    TRY(request_.status);
    std::span<const uint8_t> image(request_.buffer.data(), request_.size);
    if (source_.packed()) {
      ASSIGN_OR_RETURN(image, source_.Unpack(id, image, request_.rows));
    }
    Status status = Decode(image);
    if (!status.ok() && request_.length != kUnknownLength) {
      // The decoder's offset is the image's.
      Error error = std::move(status).error();
      const auto at = static_cast<uint64_t>(image.data() - request_.buffer.data());
      error.offset = request_.offset + at + error.offset.value_or(0);
      return error;
    }
    return status;
  }

  Status Decode(std::span<const uint8_t> image) {
    ASSIGN_OR_RETURN(ImageInfo info, decoder_.Open(image));
    return decoder_.Decode({0, 0, info.size.width, info.size.height}, discard_);
  }

  const SampleSource& source_;
  MemoryBudget budget_;
  ReadRequest request_;
  ImageDecoder decoder_;
  DiscardRows discard_;
};

class Verification {
 public:
  Verification(const SampleSource& source, const VerifyOptions& options,
               const VerifyProgress& progress)
      : source_(source), options_(options), progress_(progress) {}

  // The body of each thread.
  void Run() {
    SampleChecker checker(source_, options_.limits);
    std::vector<BadSample> bad;
    while (!cancelled_) {
      const uint64_t first = next_.fetch_add(kSamplesAtATime);
      if (first >= source_.size()) break;
      const uint64_t end = std::min(first + kSamplesAtATime, source_.size());
      for (uint64_t id = first; id < end; ++id) {
        Status status = checker.Check(id);
        if (status.ok()) continue;
        Error error = std::move(status).error();
        bad.push_back({id, FaultOf(error), std::move(error)});
      }
      Report(end - first);
    }
    const std::lock_guard lock(mutex_);
    no_end_marker_ += checker.no_end_marker();
    std::ranges::move(bad, std::back_inserter(bad_));
  }

  bool cancelled() const { return cancelled_; }

  // After all threads have left Run.
  void Fill(VerifyReport& report) {
    std::ranges::sort(bad_, {}, &BadSample::id);
    report.bad = std::move(bad_);
    report.no_end_marker = no_end_marker_;
  }

 private:
  void Report(uint64_t samples) {
    const std::lock_guard lock(mutex_);
    done_ += samples;
    if (progress_ && !progress_(done_, source_.size())) cancelled_ = true;
  }

  const SampleSource& source_;
  const VerifyOptions& options_;
  const VerifyProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  uint64_t done_ = 0;  // this and the following: under mutex_
  uint64_t no_end_marker_ = 0;
  std::vector<BadSample> bad_;
};

}  // namespace

Result<VerifyReport> Verify(const SampleSource& source, const VerifyOptions& options,
                            const VerifyProgress& progress) {
  TRY(CheckThreads(options.threads));
  if (source.fields()[0].kind != Field::Kind::kImage || source.calls() > 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = source.Describe() + " has no encoded images in files"};
  }
  const auto start = std::chrono::steady_clock::now();
  Verification verification(source, options, progress);
  InParallel(options.threads, [&verification] { verification.Run(); });
  if (verification.cancelled()) {
    return Error{Code::kCancelled, "stopped before all samples were checked", source.Describe()};
  }
  VerifyReport report;
  report.source = source.Describe();
  report.checked = source.size();
  report.skipped = source.Skipped();
  verification.Fill(report);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
