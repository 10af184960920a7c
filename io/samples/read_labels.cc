#include "io/samples/read_labels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "io/samples/sample_reads.h"

namespace stoker {

namespace {

// Reads records one after another. Used by one thread.
class RecordLabels {
 public:
  RecordLabels(const SampleSource& source, size_t label)
      : source_(source),
        reads_(source),
        rows_(LoadedBytes(source.fields())),
        begin_(LoadedBytes(source.fields().first(label))),
        bytes_(source.fields()[label].row_bytes()) {
    request_.buffer = GrowingBuffer(budget_);
  }

  Status Read(uint64_t id, uint8_t* row) {
    reads_.Read(id, request_);
    Status status = std::move(request_.status);
    request_.status = {};
    if (status.ok()) status = Unpack(id);
    if (!status.ok()) {
      return NamedError(source_, id, std::move(status).error().WithFile(request_.path));
    }
    std::memcpy(row, rows_.data() + begin_, bytes_);
    return {};
  }

 private:
  Status Unpack(uint64_t id) {
    TRY(source_.Unpack(id, {request_.buffer.data(), request_.size}, rows_));
    return {};
  }

  const SampleSource& source_;
  SampleReads reads_;
  MemoryBudget budget_{MemoryBudget::kNoLimit};  // a buffer for the largest record
  ReadRequest request_;
  std::vector<uint8_t> rows_;   // of the kLoaded fields
  const size_t begin_, bytes_;  // of the label in `rows_`
};

// Divides the reads among threads.
class ReadsOfLabels {
 public:
  ReadsOfLabels(const SampleSource& source, std::span<const uint64_t> ids, uint8_t* rows,
                const Interrupt& interrupt)
      : source_(source), ids_(ids), rows_(rows), interrupt_(interrupt) {}

  // The body of each thread.
  void Run() {
    try {
      ReadAll();
    } catch (const std::bad_alloc&) {
      Stop(Error{Code::kResourceExhausted, "out of memory for labels", source_.Describe()});
    }
  }

  // After all threads have left Run.
  Status Finish() { return std::move(first_error_); }

 private:
  void ReadAll() {
    constexpr size_t kTogether = 64;  // records that follow each other in a file
    const size_t label = *source_.label();
    const size_t bytes = source_.fields()[label].row_bytes();
    RecordLabels records(source_, label);
    for (size_t begin = 0; !stopped_ && (begin = next_.fetch_add(kTogether)) < ids_.size();) {
      const size_t end = std::min(begin + kTogether, ids_.size());
      for (size_t i = begin; i < end && !stopped_; ++i) {
        if (Status status = records.Read(ids_[i], rows_ + i * bytes); !status.ok()) {
          Stop(std::move(status));
        }
        PollInterrupt();
      }
    }
  }

  void PollInterrupt() {
    if (!interrupt_ || std::this_thread::get_id() != caller_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_poll_) return;
    next_poll_ = now + kInterruptInterval;
    if (interrupt_()) Stop(Error{Code::kCancelled, "reading labels was interrupted"});
  }

  void Stop(Status status) {
    stopped_ = true;
    const std::lock_guard lock(mutex_);
    if (first_error_.ok()) first_error_ = std::move(status);
  }

  const SampleSource& source_;
  const std::span<const uint64_t> ids_;
  uint8_t* const rows_;
  const Interrupt& interrupt_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point next_poll_{};  // of the calling thread
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  Status first_error_;  // under mutex_
};

// Threads that wait for a server need no core.
int ThreadsFor(const SampleSource& source) {
  constexpr int kForObjects = 16;
  const int cores = AllottedCores();
  return source.objects() == nullptr ? cores : std::max(cores, kForObjects);
}

}  // namespace

Status ReadLabels(const SampleSource& source, std::span<const uint64_t> ids, uint8_t* rows,
                  const Interrupt& interrupt) {
  if (ids.empty()) return {};
  const size_t label = *source.label();
  if (source.fields()[label].kind == Field::Kind::kFixed) {
    source.FixedRows(label, ids, rows);
    return {};
  }
  if (!source.has_records() || source.fields()[label].kind != Field::Kind::kLoaded) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the labels of " + source.Describe() + " come with the images only"};
  }
  ReadsOfLabels reads(source, ids, rows, interrupt);
  InParallel(ThreadsFor(source), [&reads] { reads.Run(); });
  return reads.Finish();
}

}  // namespace stoker
