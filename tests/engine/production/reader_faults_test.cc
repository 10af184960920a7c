// Faults of the readers' system calls do nothing to a loader if they pass; otherwise they are the
// one error of the sample concerned. Uses real photographs, in files of their own and packed into
// large ones, read by pread and by a ring whose kernel is tests/testing/storage/fake_ring.h.
//
// A failing case names its seed; the same seed gives the same faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/result/sample_fault.h"
#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/ranges/path_source.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/packed_files.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_ring.h"
#include "tests/testing/storage/faulty_disk.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::stoker::testing::DiskFaults;
using ::stoker::testing::Effort;
using ::stoker::testing::FakeRings;
using ::stoker::testing::FaultyDisk;
using ::stoker::testing::PackedFiles;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RingFaults;
using ::stoker::testing::TempFolder;
using ::testing::HasSubstr;

constexpr size_t kFaultPhotos = 61;
constexpr uint32_t kFaultBatch = 8;

// Copies photographs into the folder: those of the tests, or generated ones if they are too few.
std::shared_ptr<const SampleSource> CopyPhotos(const TempFolder& folder) {
  std::vector<std::filesystem::path> photos = testing::Photos();
  if (photos.size() < kFaultPhotos) photos.clear();
  const PhotoFolder made(photos.empty() ? static_cast<int>(kFaultPhotos) : 0, 1);
  if (photos.empty()) {
    for (uint64_t id = 0; id < kFaultPhotos; ++id) photos.emplace_back(made.FileOf(id));
  }
  PathTable paths;
  for (size_t i = 0; i < kFaultPhotos; ++i) {
    const std::string copy = folder.Path(std::to_string(i) + ".jpg");
    std::filesystem::copy_file(photos[i], copy);
    paths.Add(copy);
  }
  return Files(std::move(paths)).value();
}

// What an epoch gave for each batch: a fingerprint, or an error.
struct Epoch {
  std::vector<uint64_t> prints;  // 0: an error
  std::vector<Error> errors;
};

// The reader, and whether the photographs are packed into large files.
using Case = std::tuple<ReaderKind, bool>;

class ReaderFaults : public ::testing::TestWithParam<Case> {
 protected:
  ReaderFaults() {
    if (!is_packed()) return;
    std::filesystem::create_directory(folder.Path("packed"));
    source = std::make_shared<PackedFiles>(source, folder.Path("packed"), 3);
  }

  static bool is_packed() { return std::get<1>(GetParam()); }
  static bool is_ring() { return std::get<0>(GetParam()) == ReaderKind::kUring; }

  LoaderOptions Options(std::shared_ptr<Runtime> runtime) const {
    LoaderOptions options;
    options.source = source;
    options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = kFaultBatch;
    options.shuffle = true;
    options.seed = 7;
    options.depth = depth;
    options.runtime = std::move(runtime);
    return options;
  }

  // A Runtime without faults.
  static std::shared_ptr<Runtime> Sound() {
    return Runtime::Create(
               {.threads = 2, .reader = ReaderKind::kPread, .executor = ExecutorKind::kThreads})
        .value();
  }

  std::shared_ptr<Runtime> Faulty(FaultyDisk& disk) const {
    const RuntimeOptions options{.threads = 2, .executor = ExecutorKind::kThreads};
    const auto make = [&disk, limit = limit, reads = reads]() -> Result<std::unique_ptr<Reader>> {
      constexpr uint32_t kFiles = 2;
      if (is_ring()) return MakeUringReader(reads, kFiles, disk.Calls(), limit);
      return MakePreadReader(reads, kFiles, disk.Calls());
    };
    return RuntimeWithReaders(options, make).value();
  }

  Epoch Take(Producer& producer, const Interrupt& interrupt = {}) const {
    Epoch epoch;
    while (true) {
      const Result<Batch> batch = producer.Next(interrupt);
      if (batch.ok() && !*batch) return epoch;
      epoch.prints.push_back(batch.ok() ? testing::Fingerprint(*batch) : 0);
      if (batch.ok()) continue;
      epoch.errors.push_back(batch.error());
      on_error();
      if (batch.error().file.empty()) {  // the error does not concern a sample
        ADD_FAILURE() << batch.error().ToString();
        return epoch;
      }
    }
  }

  // Runs an epoch of a loader with these faults, which leaves no file, ring, thread or byte behind.
  Epoch Run(DiskFaults disk_faults, RingFaults ring_faults, const Interrupt& interrupt = {}) {
    const int threads = testing::LiveThreads();
    rings.reset();  // one at a time
    disk = std::make_unique<FaultyDisk>(std::move(disk_faults));
    rings = std::make_unique<FakeRings>(std::move(ring_faults), [this] { return disk->Calls(); });
    std::shared_ptr<Runtime> runtime = Faulty(*disk);
    auto producer = Producer::Open(Options(runtime)).value();
    Epoch epoch = Take(*producer, interrupt);
    producer.reset();
    bytes_left = runtime->budget().used();
    at_end(runtime->budget());
    EXPECT_TRUE(bytes_left == 0 || rings->faults().loses || !rings->faults().cancels);
    runtime.reset();
    EXPECT_EQ(disk->open_files(), 0);
    EXPECT_EQ(rings->open_rings(), 0);
    EXPECT_EQ(folder.OpenFiles(), 0u);
    // A joined thread is listed until the kernel has taken it down.
    while (testing::LiveThreads() > threads) std::this_thread::yield();
    return epoch;
  }

  std::vector<uint64_t> Expected() const {
    return Take(*Producer::Open(Options(Sound())).value()).prints;
  }

  // Returns the file of the sample in row `row` of the batch, and where the sample begins in it.
  std::pair<std::string, ByteRange> SampleOf(size_t batch, size_t row) const {
    auto producer = Producer::Open(Options(Sound())).value();
    (void)testing::Take(*producer, batch);
    const uint64_t id = producer->Next().value().sample_ids()[row];
    std::pair<std::string, ByteRange> found{"", source->RangeOf(id)};
    source->PathOf(found.second.file, found.first);
    if (!is_packed()) found.second.length = std::filesystem::file_size(found.first);
    return found;
  }

  const TempFolder folder;
  std::shared_ptr<const SampleSource> source = CopyPhotos(folder);
  std::unique_ptr<FaultyDisk> disk;
  std::unique_ptr<FakeRings> rings;
  uint32_t reads = 16;                     // in flight
  std::chrono::nanoseconds limit{0};       // for each read of a ring
  int depth = 0;                           // LoaderOptions::depth
  std::function<void()> on_error = [] {};  // called for each batch that fails
  uint64_t bytes_left = 0;                 // of the budget, when the loader had ended
  std::function<void(const MemoryBudget&)> at_end = [](const auto&) {};  // called then
};

TEST_P(ReaderFaults, ThatPassChangeNothing) {
  const std::vector<uint64_t> expected = Expected();
  ASSERT_GT(expected.size(), 5u);
  uint64_t interrupted = 0, would_block = 0, shorter = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(Effort(20)); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Epoch epoch = Run({.seed = seed, .interrupted = 0.2, .would_block = 0.2, .shorter = 0.4},
                            {.seed = seed, .late = 0.5, .refused = 0.1, .partly = 0.2});
    EXPECT_EQ(epoch.prints, expected);
    for (const Error& error : epoch.errors) ADD_FAILURE() << error.ToString();
    interrupted += disk->counts().interrupted;
    would_block += disk->counts().would_block;
    shorter += disk->counts().shorter;
    if (!is_ring()) continue;
    EXPECT_GT(rings->counts().late, 0u);
    EXPECT_GT(rings->counts().refused, 0u);
  }
  EXPECT_GT(interrupted, 0u);
  EXPECT_GT(would_block, 0u);
  EXPECT_GT(shorter, 0u);
}

TEST_P(ReaderFaults, AnErrorInTheMiddleOfASampleFailsItsBatchAlone) {
  const std::vector<uint64_t> expected = Expected();
  const auto [path, range] = SampleOf(2, 5);
  // In a packed file, the samples behind it fail, too.
  const uint64_t bad_from = range.offset + range.length / 2;
  const Epoch epoch = Run({.bad_file = path, .bad_from = bad_from}, {.late = 0.5});
  ASSERT_EQ(epoch.prints.size(), expected.size());
  EXPECT_EQ(epoch.prints[2], 0u);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (epoch.prints[i] != 0) {
      EXPECT_EQ(epoch.prints[i], expected[i]);
    }
  }
  if (!is_packed()) {
    EXPECT_EQ(epoch.errors.size(), 1u);
  }
  size_t here = 0;
  for (const Error& error : epoch.errors) {
    EXPECT_EQ(error.code, Code::kUnavailable) << error.ToString();
    EXPECT_EQ(FaultOf(error), SampleFault::kUnreadable);
    EXPECT_EQ(error.file, path);
    ASSERT_TRUE(error.offset);
    EXPECT_GE(*error.offset, bad_from);
    here += *error.offset == bad_from ? 1 : 0;
  }
  EXPECT_EQ(here, 1u);
}

TEST_P(ReaderFaults, WithoutDescriptorsSamplesFailAndOthersDoNot) {
  const std::vector<uint64_t> expected = Expected();
  const Epoch epoch = Run({.seed = 3, .no_descriptor = 0.5}, {});
  ASSERT_EQ(epoch.prints.size(), expected.size());
  EXPECT_GT(disk->counts().no_descriptor, 0u);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (epoch.prints[i] != 0) {
      EXPECT_EQ(epoch.prints[i], expected[i]);
    }
  }
  for (const Error& error : epoch.errors) {
    EXPECT_EQ(error.code, Code::kResourceExhausted) << error.ToString();
    EXPECT_EQ(FaultOf(error), std::nullopt) << "the sample may be good";
    EXPECT_THAT(error.file, HasSubstr(folder.path()));
    EXPECT_THAT(error.advice, HasSubstr("limit of open files"));
  }
}

TEST_P(ReaderFaults, AFileThatShrinksWhileItIsReadIsTruncated) {
  const auto sample = SampleOf(2, 5);
  const auto& path = sample.first;
  const auto& range = sample.second;
  std::atomic<bool> shrunk = false;
  const auto shrink = [&](const std::string& read, uint64_t offset) {
    if (read != path || offset != range.offset || shrunk.exchange(true)) return;
    std::filesystem::resize_file(path, range.offset + range.length / 2);
  };
  const std::vector<uint64_t> expected = Expected();
  const Epoch epoch = Run({.before_read = shrink}, {.late = 0.5});
  ASSERT_EQ(epoch.prints.size(), expected.size());
  EXPECT_EQ(epoch.prints[2], 0u);
  EXPECT_FALSE(epoch.errors.empty());
  for (const Error& error : epoch.errors) {
    EXPECT_EQ(FaultOf(error), SampleFault::kTruncated) << error.ToString();
    EXPECT_EQ(error.file, path);
    EXPECT_TRUE(error.offset) << error.ToString();
  }
}

// The consumer's interrupts are the test's clock: they come as long as nothing does.
TEST_P(ReaderFaults, ADiskThatHangsDelaysOnly) {
  const std::vector<uint64_t> expected = Expected();
  const std::string path = SampleOf(2, 5).first;
  std::atomic<bool> hangs = true;
  std::mutex mutex;
  std::condition_variable released;
  int interrupts = 0;
  const auto go_on_later = [&] {
    if (++interrupts < 5) return false;
    const std::lock_guard lock(mutex);
    hangs = false;
    released.notify_all();
    return false;
  };
  DiskFaults faults;
  if (!is_ring()) {
    faults.before_read = [&](const std::string& read, uint64_t) {
      std::unique_lock lock(mutex);
      if (read == path) released.wait(lock, [&] { return !hangs; });
    };
  }
  const Epoch epoch =
      Run(faults, {.hangs = [&](const std::string& read) { return hangs && read == path; }},
          go_on_later);
  EXPECT_EQ(epoch.prints, expected);
  EXPECT_FALSE(hangs) << "nothing hung";
}

class BrokenRing : public ReaderFaults {};

TEST_P(BrokenRing, IsReplacedByPlainReads) {
  const std::vector<uint64_t> expected = Expected();
  for (const int64_t lives : {0, 1, 2, 3, 5, 8, 13}) {
    SCOPED_TRACE("after " + std::to_string(lives) + " entries");
    const auto seed = static_cast<uint64_t>(lives);
    const Epoch epoch = Run({}, {.seed = seed, .late = 0.7, .lives = lives});
    EXPECT_EQ(epoch.prints, expected);
    EXPECT_GT(rings->counts().dead, 0u);
    EXPECT_LT(rings->counts().entries, 300u) << "it is not asked again and again";
  }
}

// Reads that it holds never complete: the kernel may still write to their buffers.
TEST_P(BrokenRing, DoesNotKeepTheReadsThatItLoses) {
  const std::vector<uint64_t> expected = Expected();
  const Epoch epoch = Run({}, {.late = 0.9, .lives = 3, .loses = true});
  EXPECT_EQ(epoch.prints, expected);
  EXPECT_GT(rings->lost(), 0);
  EXPECT_GT(bytes_left, 0u) << "their buffers belong to the kernel";
}

class LateReads : public ReaderFaults {
 protected:
  LateReads() { limit = std::chrono::milliseconds(1); }

  // Runs an epoch during which reads of the file hang. Its samples are errors, and others are not.
  void ExpectOnlyErrorsOf(const std::string& file, bool cancels, DiskFaults disk_faults = {}) {
    const std::vector<uint64_t> expected = Expected();
    const auto hang = [&](const std::string& path) { return hangs && path == file; };
    const Epoch epoch = Run(std::move(disk_faults), {.hangs = hang, .cancels = cancels});
    ASSERT_EQ(epoch.prints.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (epoch.prints[i] != 0) {
        EXPECT_EQ(epoch.prints[i], expected[i]);
      }
    }
    EXPECT_FALSE(epoch.errors.empty());
    for (const Error& error : epoch.errors) {
      EXPECT_EQ(error.file, file) << error.ToString();
      EXPECT_EQ(error.code, Code::kUnavailable);
      EXPECT_EQ(FaultOf(error), SampleFault::kUnreadable);
      EXPECT_TRUE(error.offset);
      EXPECT_THAT(error.ToString(), HasSubstr("the read has not ended within 0.001 s"));
    }
  }

  std::atomic<bool> hangs = true;
};

TEST_P(LateReads, AreCancelled) {
  ExpectOnlyErrorsOf(SampleOf(2, 5).first, /*cancels=*/true);
  EXPECT_GT(rings->counts().cancelled, 0u);
  EXPECT_EQ(rings->lost(), 0);
}

// The completions arrive after all, and refer to memory that was given up with the reads.
TEST_P(LateReads, ThatCannotBeCancelledEndLater) {
  depth = 1;
  on_error = [this] { hangs = false; };
  ExpectOnlyErrorsOf(SampleOf(2, 5).first, /*cancels=*/false);
  EXPECT_FALSE(hangs);
  EXPECT_EQ(rings->lost(), 0);
  EXPECT_EQ(bytes_left, 0u);
}

// Only for separate files: of each packed file more samples would hang than may be in flight.
class LateReadsOfFiles : public LateReads {};

// Nothing is read any more: the reader's thread sleeps when they end.
TEST_P(LateReadsOfFiles, ThatEndWhenTheLoaderHasGiveTheirMemoryBack) {
  at_end = [this](const MemoryBudget& budget) {
    EXPECT_GT(budget.used(), 0u);
    hangs = false;
    while (budget.used() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  ExpectOnlyErrorsOf(SampleOf(2, 5).first, /*cancels=*/false);
  EXPECT_GT(bytes_left, 0u);
  EXPECT_EQ(rings->lost(), 0);
}

TEST_P(LateReadsOfFiles, ThatCannotBeCancelledAreLeftToTheKernel) {
  const std::string file = SampleOf(2, 5).first;
  for (const uint32_t most : {2u, 16u}) {
    SCOPED_TRACE(std::to_string(most) + " reads in flight");
    reads = most;
    ExpectOnlyErrorsOf(file, /*cancels=*/false);
    EXPECT_GT(rings->lost(), 0);
    EXPECT_GT(bytes_left, 0u);
  }
}

// Each read takes longer than the limit, but the other place becomes free again and again.
TEST_P(LateReadsOfFiles, LetOthersWaitForAFlight) {
  reads = 2;
  depth = 1;
  const auto slow = [](const std::string&, uint64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  ExpectOnlyErrorsOf(SampleOf(0, 5).first, /*cancels=*/false, {.before_read = slow});
  EXPECT_GT(rings->lost(), 0);
}

TEST_P(LateReadsOfFiles, BlameNoOtherFile) {
  reads = 1;
  depth = 1;
  const std::string file = SampleOf(2, 5).first;
  const std::vector<uint64_t> expected = Expected();
  const auto hang = [&](const std::string& path) { return path == file; };
  const Epoch epoch = Run({}, {.hangs = hang, .cancels = false});
  ASSERT_EQ(epoch.prints.size(), expected.size());
  EXPECT_EQ(epoch.prints[0], expected[0]);
  EXPECT_EQ(epoch.prints.back(), 0u);
  for (const Error& error : epoch.errors) {
    EXPECT_EQ(error.code, Code::kUnavailable);
    if (error.file == file) continue;
    EXPECT_EQ(FaultOf(error), std::nullopt) << "nobody has tried to read it";
    EXPECT_THAT(error.ToString(),
                HasSubstr("could not begin within 0.001 s: all 1 reads in flight hang"));
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) {
  const auto [reader, packed] = info.param;
  return std::string(reader == ReaderKind::kPread ? "pread" : "uring") +
         (packed ? "_ranges" : "_files");
}

const auto kPlainReader = ::testing::Values(ReaderKind::kPread);
const auto kRing = ::testing::Values(ReaderKind::kUring);
const auto kFilesAndRanges = ::testing::Bool();

INSTANTIATE_TEST_SUITE_P(Plain, ReaderFaults, ::testing::Combine(kPlainReader, kFilesAndRanges),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Ring, ReaderFaults, ::testing::Combine(kRing, kFilesAndRanges),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Ring, LateReads, ::testing::Combine(kRing, kFilesAndRanges), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Ring, LateReadsOfFiles,
                         ::testing::Combine(kRing, ::testing::Values(false)), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Ring, BrokenRing, ::testing::Combine(kRing, kFilesAndRanges), NameOfCase);

}  // namespace
}  // namespace stoker
