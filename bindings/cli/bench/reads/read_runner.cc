#include "bindings/cli/bench/reads/read_runner.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "bindings/cli/bench/latencies.h"
#include "bindings/cli/bench/reads/fio.h"
#include "bindings/cli/bench/reads/page_cache.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"
#include "engine/production/producer_parts.h"
#include "engine/production/samples/read_queue.h"
#include "engine/runtime/read_service.h"
#include "io/source/image_numbers.h"
#include "transforms/plan/plan.h"

namespace stoker {

namespace {

constexpr uint32_t kReadsInFlight = 64;  // if none are given: a loader's most
constexpr std::chrono::milliseconds kPollEvery{100};

// The byte ranges that a loader reads for its rows.
struct SampleRanges {
  const SampleSource& source;
  const Sampler& sampler;
  std::optional<Plan> plan;  // none: samples are read as a whole
  uint64_t seed = 0;

  ByteRange Of(BatchName batch, uint32_t row) const {
    const SamplerEntry entry = sampler.At(batch, row);
    return RangeToRead(source, plan ? &*plan : nullptr, entry.sample,
                       {seed, batch.epoch, entry.position});
  }
};

// Requests the samples of one epoch after another. Pull and CompleteRead are called on the reader
// thread; the other functions on the bench's.
class ThrowAway final : public ReadClient {
 public:
  // `ranges` must outlive it.
  ThrowAway(const SampleRanges& ranges, MemoryBudget& budget, uint32_t reads)
      : ranges_(ranges), requests_(reads), begun_ns_(reads) {
    for (ReadRequest& request : requests_) {
      request.buffer = GrowingBuffer(budget);
      free_.push_back(&request);
    }
  }

  // Precondition: the reader thread does not know this client, or not any more.
  void Begin(uint64_t epoch) {
    epoch_ = epoch;
    step_ = row_ = 0;
    over_ = finished_ = false;
  }

  // Ends the epoch after the reads in flight.
  void Cancel() { cancelled_ = true; }

  // Returns whether the epoch is over, after at most kPollEvery.
  bool WaitALittle() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, kPollEvery, [this] { return finished_; });
  }

  uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_; }                  // between epochs
  const Latencies& latencies() const { return latencies_; }  // between epochs
  const Status& status() const { return status_; }           // between epochs

 private:
  // Waits, as a loader does, until half of the requests are free, so that a reader thread enters
  // the kernel once for many of them.
  size_t Pull(std::span<ReadRequest*> requests) override {
    if (cancelled_) over_ = true;
    FinishIfOver();
    if (over_ || 2 * free_.size() < requests_.size()) return 0;
    const uint64_t now = NowNanoseconds();
    size_t pulled = 0;
    while (pulled < requests.size() && !free_.empty() && !over_) {
      ReadRequest* request = free_.back();
      free_.pop_back();
      const ByteRange range = ranges_.Of({epoch_, step_}, row_);
      request->offset = range.offset;
      request->length = range.length;
      ranges_.source.PathOf(range.file, request->path);
      begun_ns_[static_cast<size_t>(request - requests_.data())] = now;
      requests[pulled++] = request;
      Advance();
    }
    return pulled;
  }

  void CompleteRead(ReadRequest& request) override {
    latencies_.Add(NowNanoseconds() - begun_ns_[static_cast<size_t>(&request - requests_.data())]);
    free_.push_back(&request);
    if (request.status.ok()) {
      bytes_ += request.size;
      samples_.fetch_add(1, std::memory_order_relaxed);
    } else if (status_.ok()) {
      status_ = request.status;
      over_ = true;
    }
    FinishIfOver();
  }

  void Advance() {
    if (++row_ < ranges_.sampler.RowsIn({epoch_, step_})) return;
    row_ = 0;
    over_ = ++step_ == ranges_.sampler.batches_per_epoch();
  }

  void FinishIfOver() {
    if (!over_ || free_.size() < requests_.size()) return;
    std::lock_guard lock(mutex_);
    finished_ = true;
    ended_.notify_all();
  }

  const SampleRanges& ranges_;
  std::vector<ReadRequest> requests_;
  std::vector<uint64_t> begun_ns_;  // by request
  std::vector<ReadRequest*> free_;
  uint64_t epoch_ = 0;
  uint64_t step_ = 0;  // the next row to request
  uint32_t row_ = 0;
  bool over_ = false;  // nothing more is requested in this epoch
  Status status_;      // the first error
  uint64_t bytes_ = 0;
  Latencies latencies_;
  std::atomic<uint64_t> samples_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool finished_ = false;  // under mutex_
};

double CpuSecondsSoFar() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t SamplesPerEpoch(const Sampler& sampler) {
  const uint64_t last = sampler.batches_per_epoch() - 1;
  return last * sampler.options().batch_size + sampler.RowsIn({0, last});
}

// Returns the first reads of a run; fewer if a file cannot be found.
std::vector<FileRange> FirstReads(const SampleRanges& ranges) {
  constexpr uint64_t kMost = 8192;
  std::vector<FileRange> reads;
  const uint64_t rows = std::min(SamplesPerEpoch(ranges.sampler), kMost);
  for (uint64_t i = 0; i < rows; ++i) {
    const uint32_t batch = ranges.sampler.options().batch_size;
    const ByteRange range = ranges.Of({0, i / batch}, static_cast<uint32_t>(i % batch));
    FileRange read{.offset = range.offset, .length = range.length};
    ranges.source.PathOf(range.file, read.path);
    read.whole = range.length == kUnknownLength;
    struct stat info {};
    if (read.whole && stat(read.path.c_str(), &info) != 0) continue;
    if (read.whole) read.length = static_cast<uint64_t>(info.st_size) - range.offset;
    if (read.length > 0) reads.push_back(std::move(read));
  }
  return reads;
}

class ReadRun {
 public:
  ReadRun(ReadReport& report, const SampleRanges& ranges, const KeepReading& keep_going)
      : report_(report),
        ranges_(ranges),
        keep_going_(keep_going),
        budget_(report.options.runtime.memory_budget != 0 ? report.options.runtime.memory_budget
                                                          : DefaultMemory()),
        client_(ranges_, budget_, report.reads_in_flight),
        reads_(
            1, [this] { return Make(); }, trace_) {}

  Status Measure() {
    const BenchOptions& options = report_.options;
    for (uint64_t epoch = 0; epoch < options.epochs && !report_.interrupted; ++epoch) {
      if (options.cold) TRY(DropFromPageCache(ranges_.source));
      if (epoch == 0) report_.cached_before = CachedShare(ranges_.source);
      TRY(Stream(epoch));
      // Short epochs end before they ask whether to continue.
      if (epoch + 1 < options.epochs && !MayGoOn(NowNanoseconds())) report_.interrupted = true;
    }
    if (!report_.interrupted) {
      if (options.cold) TRY(DropFromPageCache(ranges_.source));
      report_.fio =
          MeasureWithFio(FirstReads(ranges_), report_.reader.kind, report_.reads_in_flight);
    }
    report_.samples = client_.samples();
    report_.bytes = client_.bytes();
    report_.latency_p50_s = static_cast<double>(client_.latencies().Quantile(0.5)) * 1e-9;
    report_.latency_p99_s = static_cast<double>(client_.latencies().Quantile(0.99)) * 1e-9;
    report_.latency_p999_s = static_cast<double>(client_.latencies().Quantile(0.999)) * 1e-9;
    return {};
  }

 private:
  Status Stream(uint64_t epoch) {
    const uint64_t begun = NowNanoseconds();
    const uint64_t storage = BytesFromStorage().value_or(0);
    const double cpu = CpuSecondsSoFar();
    client_.Begin(epoch);
    TRY(reads_.Attach(&client_));
    while (!client_.WaitALittle()) {
      if (MayGoOn(begun)) continue;
      report_.interrupted = true;
      client_.Cancel();
    }
    const uint64_t ended = NowNanoseconds();
    reads_.Detach(&client_);  // from here on the reader thread sleeps
    report_.seconds += static_cast<double>(ended - begun) * 1e-9;
    report_.cpu_seconds += CpuSecondsSoFar() - cpu;
    report_.bytes_from_storage += BytesFromStorage().value_or(0) - storage;
    report_.counts = reader_->counts();
    if (!report_.interrupted) ++report_.epochs;
    return client_.status();
  }

  bool MayGoOn(uint64_t begun_ns) {
    if (!keep_going_ || report_.interrupted) return true;
    return keep_going_(
        {.samples = client_.samples(),
         .samples_total = report_.options.epochs * SamplesPerEpoch(ranges_.sampler),
         .seconds = report_.seconds + static_cast<double>(NowNanoseconds() - begun_ns) * 1e-9});
  }

  Result<std::unique_ptr<Reader>> Make() {
    Result<std::unique_ptr<Reader>> made = MakeReader(report_.reader.kind, report_.reads_in_flight);
    if (made.ok()) reader_ = made->get();
    return made;
  }

  ReadReport& report_;
  const SampleRanges& ranges_;
  const KeepReading& keep_going_;
  MemoryBudget budget_;
  ThrowAway client_;
  const Trace trace_;
  const Reader* reader_ = nullptr;  // the reader thread's
  ReadService reads_;
};

}  // namespace

Result<ReadReport> RunReadBench(const BenchOptions& options, const KeepReading& keep_going) {
  const SampleSource& source = *options.loader.source;
  if (source.in_memory()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = source.Describe() + " is in memory: there is nothing to read"};
  }
  TRY(CheckFixedImages("reading alone", source));
  if (source.pieces() > 1) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "reading samples with several images is not measured alone",
                 .advice = "Measure it for the images, or for the masks, as a folder of their own"};
  }
  ReadReport report;
  report.options = options;
  report.source = source.Describe();
  report.reads_in_flight = options.runtime.reads_in_flight;
  if (report.reads_in_flight == 0) report.reads_in_flight = kReadsInFlight;
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Make(SamplerOptionsOf(options.loader)));
  ASSIGN_OR_RETURN(report.reader, ChooseReader(options.runtime.reader, report.reads_in_flight));
  SampleRanges ranges{
      .source = source, .sampler = sampler, .plan = {}, .seed = options.loader.seed};
  if (!options.loader.transforms.empty() || !options.loader.views.empty()) {
    ASSIGN_OR_RETURN(ranges.plan, PlanOf(options.loader, {}));
  }
  TRY(ReadRun(report, ranges, keep_going).Measure());
  return report;
}

}  // namespace stoker
