// When nothing moves, the log and the statistics say which work has not ended. The line in the log
// releases the work that hangs: without the line these tests would not end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/faulty_disk.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::FaultyDisk;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::TakeEpoch;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Hangs until a line in the log has these words.
class Hang {
 public:
  explicit Hang(std::string until) : until_(std::move(until)) {}

  void Wait() {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !hangs_; });
  }
  void Log(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    if (line.find(until_) == std::string::npos) return;
    hangs_ = false;
    released_.notify_all();
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  const std::string until_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool hangs_ = true;
  std::vector<std::string> lines_;
};

// Does nothing, after a delay.
class HangingFunction final : public MapFunction {
 public:
  HangingFunction(Hang& hang, int calls) : hang_(hang), calls_(calls) {}
  std::string Describe() const override { return "hanging"; }
  int calls() const override { return calls_; }
  Status MapRow(const MappedRow&) const override {
    hang_.Wait();
    return {};
  }
  Status MapBatch(const Batch&) const override {
    hang_.Wait();
    return {};
  }

 private:
  Hang& hang_;
  const int calls_;
};

RuntimeOptions Impatient(Hang& hang) {
  RuntimeOptions options = RuntimeUnderTest(2);
  options.stall_seconds = 0.1;
  options.log = [&hang](const std::string& line) { hang.Log(line); };
  return options;
}

LoaderOptions OptionsOfStall(const PhotoFolder& photos, std::shared_ptr<Runtime> runtime) {
  LoaderOptions options;
  options.source = photos.Source();
  options.transforms = {RandomResizedCrop{.height = 32, .width = 24}};
  options.batch_size = 8;
  options.runtime = std::move(runtime);
  return options;
}

TEST(ProducerStall, NamesTheReadThatHangs) {
  const PhotoFolder photos(40, 2);
  const auto expected = TakeEpoch(
      *Producer::Open(OptionsOfStall(photos, Runtime::Create(RuntimeUnderTest(2)).value()))
           .value());
  const std::string file = photos.FileOf(19);
  Hang hang("read has not ended (" + file);
  FaultyDisk disk({.before_read = [&](const std::string& path, uint64_t) {
    if (path == file) hang.Wait();
  }});
  // One read at a time, so that nothing else is in flight.
  auto loader =
      Producer::Open(
          OptionsOfStall(photos, RuntimeWithReaders(Impatient(hang),
                                                    [&] {
                                                      return Result<std::unique_ptr<Reader>>(
                                                          MakePreadReader(1, 0, disk.Calls()));
                                                    })
                                     .value()))
          .value();
  EXPECT_EQ(TakeEpoch(*loader), expected);
  EXPECT_GE(loader->Stats().stalls, 1u);
  EXPECT_THAT(hang.lines(),
              Contains(AllOf(HasSubstr(" of epoch 0 is awaited, and nothing has moved for 0.1 s: "),
                             HasSubstr("1 read has not ended (" + file + ")"))));
}

TEST(ProducerStall, NamesTheSamplesOfAWorkerThatHangs) {
  const PhotoFolder photos(40, 2);
  Hang hang("being decoded, or in hanging (" + photos.path());
  LoaderOptions options = OptionsOfStall(photos, Runtime::Create(Impatient(hang)).value());
  options.map = std::make_shared<HangingFunction>(hang, 0);
  auto loader = Producer::Open(options).value();
  EXPECT_EQ(TakeEpoch(*loader).size(), 5u);
  EXPECT_GE(loader->Stats().stalls, 1u);
  EXPECT_THAT(loader->Stats().stall, HasSubstr("hanging"));
}

TEST(ProducerStall, NamesTheFunctionThatHangs) {
  const PhotoFolder photos(40, 2);
  Hang hang("1 call of hanging has not ended");
  LoaderOptions options = OptionsOfStall(photos, Runtime::Create(Impatient(hang)).value());
  options.map = std::make_shared<HangingFunction>(hang, 1);
  auto loader = Producer::Open(options).value();
  EXPECT_EQ(TakeEpoch(*loader).size(), 5u);
  EXPECT_GE(loader->Stats().stalls, 1u);
}

TEST(ProducerStall, SecondsAreChecked) {
  for (const double seconds : {-1.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    RuntimeOptions options = RuntimeUnderTest(1);
    options.stall_seconds = seconds;
    const auto made = Runtime::Create(options);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().cause, HasSubstr("stall_seconds"));
  }
}

}  // namespace
}  // namespace stoker
