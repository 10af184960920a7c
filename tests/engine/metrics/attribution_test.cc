// The cause of waits in jobs whose cause is known because the test injects it: the largest cause is
// the true one, and the advice begins with it. The injected delay is many times as long as
// everything else, and mostly sleep, so that a busy machine changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/slow_reader.h"
#include "engine/loader/loader.h"
#include "engine/metrics/stats.h"
#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/memory/arrays.h"
#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::MakeJpeg;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Duration = std::chrono::nanoseconds;

constexpr uint32_t kBatch = 8;
constexpr int kPhotos = 64;

// A source whose samples take a worker longer.
class SlowSamples final : public SampleSource {
 public:
  using Slow = std::function<Duration(uint64_t id)>;
  SlowSamples(std::shared_ptr<const SampleSource> inner, Slow slow)
      : inner_(std::move(inner)), slow_(std::move(slow)) {}

  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override {
    std::this_thread::sleep_for(slow_(id));  // a worker asks, for each sample
    return inner_->ReadCropIndex(id, most, memory);
  }
  uint64_t size() const override { return inner_->size(); }
  std::span<const Field> fields() const override { return inner_->fields(); }
  ByteRange RangeOf(uint64_t id) const override { return inner_->RangeOf(id); }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    inner_->FixedRows(field, ids, rows);
  }
  void PathOf(uint32_t file, std::string& path) const override { inner_->PathOf(file, path); }
  const std::vector<std::string>& classes() const override { return inner_->classes(); }
  uint64_t memory_bytes() const override { return inner_->memory_bytes(); }
  std::string Describe() const override { return inner_->Describe(); }

 private:
  const std::shared_ptr<const SampleSource> inner_;
  const Slow slow_;
};

// One slow sample in each batch.
bool IsChosen(uint64_t id) { return id % kBatch == 3; }

class Attribution : public ::testing::Test {
 protected:
  struct Job {
    SlowStorage storage{};
    uint32_t reads = 0;           // 0: tuned
    SlowSamples::Slow samples{};  // null: as quick as they are
    int depth = 2;
    // The consumer's use of a batch.
    std::function<Duration(int batch)> step = [](int) { return 40ms; };
    int batches = 12;
    std::shared_ptr<Device> device{};
  };

  LoaderOptions Options(const Job& job) const {
    RuntimeOptions runtime = RuntimeUnderTest(2);
    runtime.reads_in_flight = job.reads;
    const auto disk = std::make_shared<SlowDisk>(job.storage);
    const auto make_reader = [disk, reads = job.reads == 0 ? 32 : job.reads] {
      return SlowReader::Make(MakePreadReader(reads), disk);
    };
    LoaderOptions options;
    options.source = photos_.Source();
    if (job.samples) options.source = std::make_shared<SlowSamples>(options.source, job.samples);
    options.transforms = {RandomResizedCrop{.height = 32, .width = 32}};
    options.batch_size = kBatch;
    options.depth = job.depth;
    options.runtime = RuntimeWithReaders(runtime, make_reader).value();
    return options;
  }

  // The first batches, for which nothing was prefetched, are left out.
  static LoaderStats Run(const LoaderOptions& options, const Job& job) {
    const std::shared_ptr<Loader> loader = Loader::Open(options).value();
    std::unique_ptr<Iterator> iterator = loader->Iterate();
    // Takes a batch and runs its step while holding the batch; returns false at an epoch's end.
    const auto step = [&job](int i, const auto& batch) {
      if (batch) std::this_thread::sleep_for(job.step(i));
      return static_cast<bool>(batch);
    };
    LoaderStats before;
    for (int i = 0; i < job.batches;) {
      if (i == 3) before = loader->Stats();
      if (options.to_device ? step(i, iterator->NextOnDevice().value())
                            : step(i, iterator->Next().value())) {
        ++i;
      } else {
        iterator = loader->Iterate();  // the next epoch
      }
    }
    return Since(before, loader->Stats());
  }

  LoaderStats Run(const Job& job) const {
    LoaderOptions options = Options(job);
    if (job.device != nullptr) options.to_device = {.devices = {job.device}, .buffers = 2};
    return Run(options, job);
  }

  static LoaderStats Since(const LoaderStats& before, LoaderStats stats) {
    stats.samples -= before.samples;
    stats.batches -= before.batches;
    stats.bytes_read -= before.bytes_read;
    stats.work_ns -= before.work_ns;
    stats.wait_ns -= before.wait_ns;
    stats.consumer_ns -= before.consumer_ns;
    stats.waited.storage_ns -= before.waited.storage_ns;
    stats.waited.decode_ns -= before.waited.decode_ns;
    stats.waited.copy_ns -= before.waited.copy_ns;
    stats.waited.other_ns -= before.waited.other_ns;
    EXPECT_EQ(stats.waited.sum(), stats.wait_ns);
    return stats;
  }

  // The cause is larger than all others together.
  static void ExpectCause(const LoaderStats& stats, uint64_t WaitCauses::*cause,
                          const std::string& words) {
    const WaitCauses& waited = stats.waited;
    EXPECT_GT(static_cast<double>(waited.*cause), 0.5 * static_cast<double>(waited.sum()))
        << "storage " << waited.storage_ns << ", decode " << waited.decode_ns << ", copy "
        << waited.copy_ns << ", other " << waited.other_ns;
    EXPECT_THAT(Advice(stats), HasSubstr(words));
  }

  const PhotoFolder photos_{kPhotos, 4};
};

constexpr auto kStorage = &WaitCauses::storage_ns;
constexpr auto kDecode = &WaitCauses::decode_ns;
constexpr auto kCopy = &WaitCauses::copy_ns;

TEST_F(Attribution, BlamesStorageForLongLatencyWithFewReads) {
  const LoaderStats stats = Run({.storage = {.latency = 20ms}, .reads = 2});
  ExpectCause(stats, kStorage, ": storage brings ");
  EXPECT_THAT(Advice(stats), HasSubstr("allow more reads at a time (now 2)"));
  EXPECT_TRUE(stats.depth_given && stats.workers_given && stats.reads_given);
}

TEST_F(Attribution, BlamesStorageForStalls) {
  ExpectCause(Run({.storage = {.stall = 300ms, .stall_every = 400ms}, .batches = 20}), kStorage,
              ": storage ");
}

TEST_F(Attribution, BlamesStorageForLowThroughput) {
  const Job job{.storage = {.bytes_per_second = 200'000}};
  ExpectCause(Run(job), kStorage, ": storage brings ");
}

TEST_F(Attribution, BlamesStorageForOneSlowFileInEachBatch) {
  std::vector<std::string> slow;
  for (uint64_t id = 0; id < kPhotos; ++id) {
    if (IsChosen(id)) slow.push_back(photos_.FileOf(id));
  }
  Job job;
  job.storage.extra = [slow](const std::string& path) -> Duration {
    return std::ranges::find(slow, path) != slow.end() ? 150ms : 0ms;
  };
  ExpectCause(Run(job), kStorage, ": storage ");
}

// A batch takes 160 ms of workers' time, in a step of 40 ms. They sleep: nobody else has
// their cores.
TEST_F(Attribution, BlamesDecodingForTooFewWorkers) {
  const LoaderStats stats = Run({.samples = [](uint64_t) { return 20ms; }});
  ExpectCause(stats, kDecode, ": decoding needs ");
  EXPECT_EQ(stats.clocked.wall_ns, 0u) << "each stretch has a sleep";
  EXPECT_THAT(Advice(stats), HasSubstr(" and has 2. Add cores, pack the images"));
}

// Each takes 60 ms, most of which passes while other samples are decoded.
TEST_F(Attribution, BlamesDecodingWhenSlowReadsOverlapIt) {
  ExpectCause(Run({.storage = {.latency = 60ms},
                   .reads = 24,
                   .samples = [](uint64_t) { return 20ms; },
                   .depth = 8,
                   .batches = 20}),
              kDecode, ": decoding needs ");
}

TEST_F(Attribution, BlamesDecodingForOneSlowWorker) {
  ExpectCause(Run({.samples = [](uint64_t id) -> Duration { return IsChosen(id) ? 150ms : 0ms; }}),
              kDecode, ": decoding needs ");
}

TEST_F(Attribution, BlamesDecodingForHugePhotographs) {
  const std::vector<uint8_t> huge =
      MakeJpeg({.width = 3600, .height = 2700, .scans = testing::JpegScans::kProgressive});
  for (uint64_t id = 0; id < kPhotos; ++id) {
    if (IsChosen(id)) photos_.Overwrite(id, {huge.begin(), huge.end()});
  }
  ExpectCause(Run({.step = [](int) { return 500us; }}), kDecode, "Decoding is the limit, at ");
}

TEST_F(Attribution, NamesASlowConsumerAsTheLimit) {
  const LoaderStats stats = Run({.depth = 4, .step = [](int) { return 50ms; }});
  EXPECT_THAT(Advice(stats), StartsWith("The consumer is the limit"));
  EXPECT_TRUE(stats.depth_given && !stats.reads_given);
}

// The consumer takes five batches at once, of which two are ready; there is time to make all of
// them.
TEST_F(Attribution, BlamesDecodingForABurstyConsumer) {
  const LoaderStats stats =
      Run({.samples = [](uint64_t) { return 20ms; },
           .step = [](int batch) -> Duration { return batch % 5 == 4 ? 700ms : 0ms; },
           .batches = 18});
  ExpectCause(stats, kDecode,
              ", but needs more at times. Allow more batches in production (depth, now 2");
}

TEST_F(Attribution, BlamesDecodingForAConsumerThatOnlyTakesBatches) {
  const LoaderStats stats =
      Run({.samples = [](uint64_t) { return 20ms; }, .step = [](int) { return 0ms; }});
  ExpectCause(stats, kDecode, "Decoding is the limit, at ");
}

// The same row, sixteen times.
LoaderOptions InMemory(ArrayColumn row) {
  static const int64_t label = 1;
  row.name = "image";
  row.samples = 16;
  row.row_stride = 0;
  const ArrayColumn labels{.name = "label",
                           .dtype = DType::kI64,
                           .row_shape = {},
                           .data = &label,
                           .samples = 16,
                           .row_stride = 0};
  LoaderOptions options;
  options.source = Arrays({row, labels}, nullptr).value();
  options.batch_size = 16;
  options.depth = 1;
  options.runtime = Runtime::Create(RuntimeUnderTest(2)).value();
  return options;
}

TEST_F(Attribution, BlamesTransformsForImagesInMemory) {
  // Decoding takes far longer than threads take to wake up on a busy machine.
  constexpr int kSide = 2400;
  const std::vector<uint8_t> pixels(size_t{3} * kSide * kSide, 100);
  LoaderOptions options =
      InMemory({.name = {}, .row_shape = {kSide, kSide, 3}, .data = pixels.data()});
  options.transforms = {Resize{.height = kSide / 2, .width = kSide / 2},
                        GaussianBlur{.kernel_height = 23, .kernel_width = 23}};
  const Job job{.step = [](int) { return 0ms; }};
  ExpectCause(Run(options, job), kDecode, " is the limit, at ");
}

// Restricts the calling thread, and threads that it starts, to one core for a while.
class OnOneCore {
 public:
  OnOneCore() {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    int core = 0;
    while (CPU_ISSET(core, &before_) == 0) ++core;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OnOneCore() { (void)sched_setaffinity(0, sizeof(before_), &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_;
};

TEST_F(Attribution, SaysWhenWorkersShareTheirCore) {
  const OnOneCore pinned;
  std::atomic<bool> done{false};
  std::vector<std::thread> others(4);
  for (std::thread& other : others) {
    other = std::thread([&done] {
      while (!done) continue;
    });
  }
  // The first task, of up to eight images, is measured, perhaps no other: it must take several
  // times as long as a thread that has slept may have a core without a break.
  const int side = 1600;
  const std::vector<uint8_t> pixels(static_cast<size_t>(side * side * 3), 100);
  LoaderOptions options =
      InMemory({.name = {}, .row_shape = {side, side, 3}, .data = pixels.data()});
  options.transforms = {Resize{.height = side / 2, .width = side / 2},
                        GaussianBlur{.kernel_height = 23, .kernel_width = 23}};
  options.runtime = Runtime::Create({.threads = 1, .executor = ExecutorKind::kThreads}).value();
  const LoaderStats stats = Run(options, {.step = [](int) { return 0ms; }, .batches = 6});
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_LT(stats.clocked.share(), 0.6) << "one of five";
  EXPECT_THAT(Advice(stats), HasSubstr("% of the time, and with a core "));
  EXPECT_THAT(Advice(stats), HasSubstr("Keep other programs off the loader's cores"));
}

TEST_F(Attribution, BlamesMixing) {
  const std::vector<float> values(1 << 20, 0.5F);
  LoaderOptions options =
      InMemory({.name = {}, .dtype = DType::kF32, .row_shape = {1 << 20}, .data = values.data()});
  options.mix = BatchMix{.choices = {MixUp{}}, .num_classes = 2};
  const Job job{.step = [](int) { return 0ms; }};
  const LoaderStats stats = Run(options, job);
  // Workers mix here and do not sleep, so other programs may leave them too little of the cores.
  ExpectCause(stats, kDecode, "% of the time");
  EXPECT_THAT(Advice(stats),
              AnyOf(HasSubstr("Mixing is the limit, at "), HasSubstr(": mixing needs ")));
}

std::shared_ptr<Device> HostDevice(HookedDevice::Hook hook = {}) {
  return std::make_shared<HookedDevice>(Device::Open({.kind = DeviceName::Kind::kHost}).value(),
                                        std::move(hook));
}

TEST_F(Attribution, BlamesCopiesToADevice) {
  Job job;
  job.device = HostDevice([](DeviceCall call) -> Status {
    if (call == DeviceCall::kCopy) std::this_thread::sleep_for(50ms);
    return {};
  });
  ExpectCause(Run(job), kCopy, ": batches were on their way to the device");
}

TEST_F(Attribution, BlamesDecodingBehindADevice) {
  Job job{.samples = [](uint64_t) { return 20ms; }};
  job.device = HostDevice();
  ExpectCause(Run(job), kDecode, ": decoding needs ");
}

TEST_F(Attribution, BlamesStorageBehindADevice) {
  Job job{.storage = {.latency = 20ms}, .reads = 2};
  job.device = HostDevice();
  ExpectCause(Run(job), kStorage, ": storage brings ");
}

// Slow storage or workers change no byte.
TEST_F(Attribution, SlowStorageChangesNoBatch) {
  const auto ids = [&](const Job& job) {
    std::vector<std::vector<uint8_t>> rows;
    const auto loader = Producer::Open(Options(job)).value();
    while (const Batch batch = loader->Next().value()) {
      const auto* data = static_cast<const uint8_t*>(batch.images().data);
      rows.emplace_back(data, data + batch.images().bytes());
    }
    return rows;
  };
  const auto quick = ids({});
  EXPECT_EQ(ids({.storage = {.latency = 3ms, .stall = 5ms, .stall_every = 12ms}}), quick);
  EXPECT_EQ(ids({.storage = {.bytes_per_second = 2'000'000}, .reads = 3}), quick);
}

}  // namespace
}  // namespace stoker
