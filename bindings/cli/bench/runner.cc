#include "bindings/cli/bench/runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/cli/bench/digest.h"
#include "bindings/cli/bench/reads/page_cache.h"
#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "engine/arrays/processor.h"
#include "engine/loader/loader.h"
#include "engine/order/patch_counts.h"
#include "transforms/processor/figures.h"

namespace stoker {

namespace {

constexpr uint64_t kReportEvery = 100'000'000;  // nanoseconds

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// Returns user and system time; `who`: RUSAGE_SELF, the process, or RUSAGE_THREAD, the calling
// thread.
uint64_t CpuNanoseconds(decltype(RUSAGE_SELF) who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto nanoseconds = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1'000;
  };
  return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

uint64_t PeakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

// Returns the value that a `share` of all values do not exceed. Reorders the values.
double Quantile(std::vector<uint64_t>& nanoseconds, double share) {
  if (nanoseconds.empty()) return 0;
  const auto last = static_cast<double>(nanoseconds.size() - 1);
  const auto at = nanoseconds.begin() + static_cast<ptrdiff_t>(share * last + 0.5);
  std::nth_element(nanoseconds.begin(), at, nanoseconds.end());
  return Seconds(*at);
}

// Resources used so far; the difference of two is a measured period.
struct Meter {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t consumer_cpu_ns = 0;
  uint64_t read_cpu_ns = 0;
  uint64_t storage_bytes = 0;

  static Meter Now(const Loader& loader) {
    return {NowNanoseconds(), CpuNanoseconds(RUSAGE_SELF), CpuNanoseconds(RUSAGE_THREAD),
            loader.Stats().read_cpu_ns, BytesFromStorage().value_or(0)};
  }
  void AddPeriod(const Meter& from, const Meter& to) {
    wall_ns += to.wall_ns - from.wall_ns;
    cpu_ns += to.cpu_ns - from.cpu_ns;
    consumer_cpu_ns += to.consumer_cpu_ns - from.consumer_cpu_ns;
    read_cpu_ns += to.read_cpu_ns - from.read_cpu_ns;
    storage_bytes += to.storage_bytes - from.storage_bytes;
  }
};

// Returns the patches or tiles of a processor's batch, without padding; 0 if each row is an image.
uint64_t PatchesOf(const LoaderOptions& loader, const Batch& batch) {
  if (loader.padding == RowPadding::kNone && loader.processor->recipe().padded_rows == 0) {
    return PlacesAreImages(loader) ? 0 : static_cast<uint64_t>(batch.images().shape[0]);
  }
  const std::span<const int32_t> mask = batch.column(kMaskColumn)->as<const int32_t>();
  return static_cast<uint64_t>(std::ranges::count(mask, 1));
}

class Run {
 public:
  Run(const BenchOptions& options, const KeepGoing& keep_going)
      : options_(options), keep_going_(keep_going), begun_ns_(NowNanoseconds()) {}

  Result<BenchReport> Measure();

 private:
  Status OpenDevice();
  Status Stream(uint64_t first_epoch, uint64_t end_epoch);
  Status StreamThrough(Loader& loader, uint64_t first_epoch, uint64_t end_epoch);
  Status TakeEpochs(Loader& loader, uint64_t first_epoch, uint64_t end_epoch);
  template <typename AnyBatch>
  Result<bool> Take(const Loader& loader, uint64_t asked_ns, Result<AnyBatch> batch);
  template <typename AnyBatch>
  void Count(const AnyBatch& batch, uint64_t asked_ns, uint64_t got_ns);
  bool MayGoOn(const Loader& loader, uint64_t now_ns);
  Status Use(Batch batch);
  Status Use(DeviceBatch batch);
  Status MeasureBare(const Loader& loader);
  void Account(const LoaderStats& stats);
  BenchReport TakeReport();

  BenchOptions options_;
  const KeepGoing& keep_going_;
  uint64_t begun_ns_;
  uint64_t next_report_ns_ = 0;
  uint64_t first_got_ns_ = 0;  // when this loader's first batch arrived; 0 means it has not
  uint64_t last_got_ns_ = 0;   // when its last batch after the first arrived
  std::vector<uint64_t> latencies_ns_;
  BatchDigest digest_;
  Meter used_;
  StageTimes stages_;
  uint64_t work_ns_ = 0;
  std::shared_ptr<Device> device_;  // null: batches stay on the host
  std::unique_ptr<DeviceConsumer> consumer_;
  BenchReport report_;
};

Result<BenchReport> Run::Measure() {
  ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, Runtime::Create(options_.runtime));
  options_.loader.runtime = runtime;
  options_.runtime = runtime->options();
  TRY(OpenDevice());
  std::unique_ptr<TraceFile> trace;  // also of a run that fails
  if (!options_.trace.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<TraceFile> started, TraceFile::Start(runtime, options_.trace));
    trace = std::move(started);
  }
  // A loader prefetches across the end of an epoch. A cold epoch must not begin before its files
  // are dropped, so each has its own loader.
  const uint64_t together = options_.cold ? 1 : options_.epochs;
  for (uint64_t epoch = 0; epoch < options_.epochs && !report_.interrupted; epoch += together) {
    TRY(Stream(epoch, epoch + together));
  }
  if (trace != nullptr) {
    ASSIGN_OR_RETURN(TraceSummary written, trace->Stop());
    report_.trace = std::move(written);
  }
  return TakeReport();
}

// Runs epochs [first_epoch, end_epoch) through a loader of their own.
Status Run::Stream(uint64_t first_epoch, uint64_t end_epoch) {
  if (options_.cold && options_.loader.source != nullptr) {
    const uint64_t before_drop = NowNanoseconds();
    TRY(DropFromPageCache(*options_.loader.source));
    begun_ns_ += NowNanoseconds() - before_drop;  // preparation is not part of the run
  }
  LoaderOptions options = options_.loader;
  options.epochs = end_epoch;
  if (device_ != nullptr) {
    options.to_device = options_.device->options;
    options.to_device->devices = {device_};
    options.to_device->timed = true;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Loader> loader, Loader::Open(std::move(options)));
  if (device_ == nullptr) return StreamThrough(*loader, first_epoch, end_epoch);
  TRY(MeasureBare(*loader));
  Status s = StreamThrough(*loader, first_epoch, end_epoch);
  report_.device->copies += loader->CopyStats();
  report_.device->copies.device_bytes = loader->CopyStats().device_bytes;
  return s;
}

Status Run::OpenDevice() {
  if (!options_.device) return {};
  ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::Open(options_.device->name));
  device_ = std::move(device);
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceConsumer> consumer,
                   DeviceConsumer::Make(device_, options_.device->step_ns));
  consumer_ = std::move(consumer);
  report_.device.emplace();
  return {};
}

// Measures the device alone. The loader has been opened and has not begun.
Status Run::MeasureBare(const Loader& loader) {
  DeviceFigures& figures = *report_.device;
  if (figures.copy_bytes != 0) return {};
  const uint64_t before = NowNanoseconds();
  figures.copy_bytes = loader.Stats().slot_bytes;
  ASSIGN_OR_RETURN(figures.bare_copy_rate, BareCopyRate(*device_, figures.copy_bytes));
  if (options_.device->step_ns > 0) {
    ASSIGN_OR_RETURN(figures.bare_step_ns, BareStep(*device_, options_.device->step_ns));
  }
  begun_ns_ += NowNanoseconds() - before;  // not part of the run
  return {};
}

Status Run::StreamThrough(Loader& loader, uint64_t first_epoch, uint64_t end_epoch) {
  const Meter before = Meter::Now(loader);
  first_got_ns_ = last_got_ns_ = 0;
  TRY(TakeEpochs(loader, first_epoch, end_epoch));
  if (last_got_ns_ != 0) report_.seconds_after_first += Seconds(last_got_ns_ - first_got_ns_);
  if (consumer_ != nullptr) {
    ASSIGN_OR_RETURN(report_.device->steps, consumer_->Drain());
  }
  used_.AddPeriod(before, Meter::Now(loader));
  while (std::optional<std::string> warning = loader.TakeWarning()) {
    report_.memory_warnings.push_back(*std::move(warning));
  }
  Account(loader.Stats());
  return {};
}

Status Run::TakeEpochs(Loader& loader, uint64_t first_epoch, uint64_t end_epoch) {
  Interrupt interrupt;
  if (keep_going_) interrupt = [&] { return !MayGoOn(loader, NowNanoseconds()); };
  for (uint64_t epoch = first_epoch; epoch < end_epoch && !report_.interrupted; ++epoch) {
    const std::unique_ptr<Iterator> iterator = loader.Iterate(epoch);
    for (bool more = true; more;) {
      const uint64_t asked = NowNanoseconds();
      ASSIGN_OR_RETURN(more, device_ != nullptr
                                 ? Take(loader, asked, iterator->NextOnDevice(interrupt))
                                 : Take(loader, asked, iterator->Next(interrupt)));
    }
  }
  return {};
}

// Returns whether to take another batch of this epoch.
template <typename AnyBatch>
Result<bool> Run::Take(const Loader& loader, uint64_t asked_ns, Result<AnyBatch> batch) {
  if (report_.interrupted && report_.batches == 0) {
    return Error{Code::kCancelled, "interrupted before the first batch"};
  }
  if (report_.interrupted) return false;
  if (!batch.ok()) return std::move(batch).error();
  if (!*batch) {
    ++report_.epochs;
    return false;
  }
  const uint64_t got = NowNanoseconds();
  Count(*batch, asked_ns, got);
  TRY(Use(*std::move(batch)));
  return MayGoOn(loader, got);
}

template <typename AnyBatch>
void Run::Count(const AnyBatch& batch, uint64_t asked_ns, uint64_t got_ns) {
  if (report_.batches == 0) {
    report_.time_to_first_batch_s = Seconds(got_ns - begun_ns_);
  }
  if (first_got_ns_ == 0) {
    first_got_ns_ = got_ns;
  } else {
    ++report_.batches_after_first;
    report_.images_after_first += static_cast<uint64_t>(batch.rows());
    last_got_ns_ = got_ns;
  }
  latencies_ns_.push_back(got_ns - asked_ns);
  ++report_.batches;
  report_.images += static_cast<uint64_t>(batch.rows());
}

Status Run::Use(Batch batch) {
  if (options_.loader.processor != nullptr) report_.patches += PatchesOf(options_.loader, batch);
  if (options_.digest) digest_.Add(batch);
  return {};
}

Status Run::Use(DeviceBatch batch) {
  if (options_.digest) {
    ASSIGN_OR_RETURN(HostCopy copy, CopyToHost(batch));
    digest_.Add(batch.epoch(), batch.index(), batch.sample_ids(), copy.columns);
  }
  return consumer_->Step(std::move(batch));
}

// Returns false if the run is interrupted.
bool Run::MayGoOn(const Loader& loader, uint64_t now_ns) {
  if (!keep_going_ || now_ns < next_report_ns_) return true;
  next_report_ns_ = now_ns + kReportEvery;
  report_.interrupted = !keep_going_({.batches = report_.batches,
                                      .batches_total = options_.epochs * loader.batches_per_epoch(),
                                      .images = report_.images,
                                      .epochs = report_.epochs,
                                      .seconds = Seconds(now_ns - begun_ns_),
                                      .stats = [&loader] { return loader.Stats(); }});
  return !report_.interrupted;
}

void Run::Account(const LoaderStats& stats) {
  report_.bytes_read += stats.bytes_read;
  stages_ += stats.stages;
  work_ns_ += stats.work_ns;
  report_.loader.pinned_bytes = 0;  // because those slots have been returned
  AddStats(report_.loader, stats);
}

BenchReport Run::TakeReport() {
  report_.seconds = Seconds(used_.wall_ns);
  report_.cpu_seconds = Seconds(used_.cpu_ns);
  report_.cpu = SplitCpu({.total = Seconds(used_.cpu_ns),
                          .read = Seconds(used_.read_cpu_ns),
                          .consumer = Seconds(used_.consumer_cpu_ns),
                          .decode = Seconds(stages_.decode_ns),
                          .resize = Seconds(stages_.resize_ns),
                          .augment = Seconds(stages_.augment_ns),
                          .mix = Seconds(stages_.mix_ns),
                          .work = Seconds(work_ns_)});
  report_.bytes_from_storage = used_.storage_bytes;
  report_.batch_latency_p50_s = Quantile(latencies_ns_, 0.50);
  report_.batch_latency_p99_s = Quantile(latencies_ns_, 0.99);
  report_.peak_memory_bytes = PeakMemoryBytes();
  if (options_.digest) {
    report_.digest = digest_.order_and_pixels();
    report_.samples_digest = digest_.samples();
  }
  const SampleSource& source = *options_.loader.source;
  report_.samples = source.size();
  report_.classes = source.classes().size();
  report_.source = source.Describe();
  report_.warning = source.Warning();
  report_.skipped = source.Skipped();
  options_.loader.runtime = nullptr;  // a report holds no threads
  report_.options = std::move(options_);
  return std::move(report_);
}

}  // namespace

CpuSplit SplitCpu(const CpuAccount& account) {
  CpuSplit split;
  split.read = std::min(account.read, account.total);
  const double others = account.total - split.read;
  const double workers = std::max(0.0, others - account.consumer);
  const double scale = account.work > workers ? workers / account.work : 1;
  split.decode = account.decode * scale;
  split.resize = account.resize * scale;
  split.augment = account.augment * scale;
  split.mix = account.mix * scale;
  split.rest = std::max(0.0, others - split.decode - split.resize - split.augment - split.mix);
  return split;
}

Result<BenchReport> RunBench(const BenchOptions& options, const KeepGoing& keep_going) {
  if (options.epochs == 0)
    return Error{Code::kInvalidArgument, "epochs is 0; it must be at least 1"};
  return Run(options, keep_going).Measure();
}

}  // namespace stoker
