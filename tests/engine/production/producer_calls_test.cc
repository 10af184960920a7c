// Samples that a source is called for become the same batches as samples in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/memory/memory_manager.h"
#include "engine/production/producer.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/called_photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::CalledPhotos;
using ::stoker::testing::GiveBytes;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::SmallBatches;
using ::stoker::testing::TakeEpoch;
using ::testing::HasSubstr;

class ProducerCalls : public ::testing::Test {
 protected:
  static constexpr int kPhotos = 37;

  LoaderOptions Calling(CalledPhotos::Call call, int threads = 3) const {
    return SmallBatches(std::make_shared<CalledPhotos>(photos_.Source(), threads, std::move(call)));
  }

  static Error ErrorOf(LoaderOptions options) {
    const auto opened = Producer::Open(std::move(options));
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error{} : opened.error();
  }

  const PhotoFolder photos_{kPhotos, 3};
};

Status CallForBytes(uint64_t /*id*/, const std::string& file, LoadedSample& loaded) {
  return GiveBytes(file, loaded);
}

Status CallForFile(uint64_t /*id*/, const std::string& file, LoadedSample& loaded) {
  return loaded.SetFile(file);
}

TEST_F(ProducerCalls, GiveTheSameBatchesAsFiles) {
  const auto wanted = TakeEpoch(*Producer::Open(SmallBatches(photos_.Source())).value());
  for (const int threads : {1, 2, 7}) {
    EXPECT_EQ(TakeEpoch(*Producer::Open(Calling(CallForBytes, threads)).value()), wanted)
        << threads;
    EXPECT_EQ(TakeEpoch(*Producer::Open(Calling(CallForFile, threads)).value()), wanted) << threads;
  }
}

TEST_F(ProducerCalls, LateCallsChangeNothing) {
  const auto wanted = TakeEpoch(*Producer::Open(SmallBatches(photos_.Source())).value());
  const auto late = [](uint64_t id, const std::string& file, LoadedSample& loaded) {
    std::this_thread::sleep_for(std::chrono::milliseconds(id % 5));
    return GiveBytes(file, loaded);
  };
  EXPECT_EQ(TakeEpoch(*Producer::Open(Calling(late)).value()), wanted);
}

TEST_F(ProducerCalls, LabelsAreMixed) {
  LoaderOptions files = SmallBatches(photos_.Source());
  LoaderOptions calls = Calling(CallForBytes);
  files.mix = calls.mix = BatchMix{.choices = {MixUp{}}};
  EXPECT_EQ(TakeEpoch(*Producer::Open(std::move(calls)).value()),
            TakeEpoch(*Producer::Open(std::move(files)).value()));
}

// A budget for few of the images, which end in zeros: calls that find no memory are made again,
// also those of a second loader.
TEST_F(ProducerCalls, MemoryMayBeShort) {
  const auto wanted = TakeEpoch(*Producer::Open(SmallBatches(photos_.Source())).value());
  std::atomic<int> calls{0};
  LoaderOptions one = Calling(
      [&calls](uint64_t, const std::string& file, LoadedSample& loaded) {
        ++calls;
        return GiveBytes(file, loaded, /*zeros=*/6 << 20);
      },
      4);
  RuntimeOptions small = RuntimeUnderTest(4);
  small.memory_budget = 32 << 20;
  one.runtime = Runtime::Create(small).value();
  one.depth = 2;
  LoaderOptions two = one;
  two.source = std::make_shared<CalledPhotos>(
      photos_.Source(), 4, [](uint64_t, const std::string& file, LoadedSample& loaded) {
        return GiveBytes(file, loaded, /*zeros=*/6 << 20);
      });
  auto first = Producer::Open(one).value();
  auto second = Producer::Open(two).value();
  std::jthread other([&second, &wanted] { EXPECT_EQ(TakeEpoch(*second), wanted); });
  EXPECT_EQ(TakeEpoch(*first), wanted);
  other.join();
  // Usually in the first epoch: it depends on how many calls are made at the same time.
  for (int tries = 0; tries < 20 && one.runtime->memory().samples_waited() == 0; ++tries) {
    const std::jthread again([&second] { (void)TakeEpoch(*second); });
    (void)TakeEpoch(*first);
  }
  EXPECT_GT(one.runtime->memory().samples_waited(), 0u);
  EXPECT_GT(calls, kPhotos);
}

// An interrupted Seek of the loader left_ leaves calls behind. Samples of other_ must not wait for
// one of its samples that nobody will read or retry.
class AnInterruptedSeek : public ProducerCalls {
 protected:
  // Three files of this size do not fit into the budget.
  static constexpr size_t kLarge = size_t{10} << 20;

  void Open(LoaderOptions left, CalledPhotos::Call call_of_other = CallForBytes) {
    RuntimeOptions small = RuntimeUnderTest(2);
    small.memory_budget = 24 << 20;
    left.runtime = runtime_ = Runtime::Create(small).value();
    left.shuffle = false;
    left.depth = 2;
    LoaderOptions other = left;
    other.source = std::make_shared<CalledPhotos>(photos_.Source(), 3, std::move(call_of_other));
    other_ = Producer::Open(other).value();
    left_ = Producer::Open(left).value();
  }

  template <class Done>
  static auto Within20Seconds(Done done) {
    return [end = std::chrono::steady_clock::now() + std::chrono::seconds(20), done] {
      return done() || std::chrono::steady_clock::now() > end;
    };
  }

  // Waits for a batch of left_, which does not come, until `done`.
  template <class Done>
  void NextUntil(Done done) {
    (void)left_->Next(Within20Seconds(done));
    ASSERT_TRUE(done());
  }

  bool HasWaited() const { return runtime_->memory().samples_waited() > 0; }

  void AwaitThatASampleWaits() const {
    const auto ends = Within20Seconds([this] { return HasWaited(); });
    while (!ends()) std::this_thread::yield();
  }

  void Interrupt() {
    const Status sought = left_->Seek({1, 0}, Schedule::kEpochs, [] { return true; });
    ASSERT_FALSE(sought.ok());
    EXPECT_EQ(sought.error().code, Code::kCancelled);
  }

  void ExpectOtherGoesOn() {
    for (int batch = 0; batch < 3; ++batch) {
      const Result<Batch> next = other_->Next(Within20Seconds([] { return false; }));
      ASSERT_TRUE(next.ok()) << next.error().ToString();
    }
  }

  // For calls of left_, which may be made until it is destroyed.
  std::latch has_given_{1}, may_ask_{1}, may_end_{1};
  std::atomic<int> asking_{0};
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<Producer> left_, other_;
};

// A call holds memory, so other samples of its loader wait for theirs. (The other loader waits for
// the call, too, if there is too little memory for both.)
TEST_F(AnInterruptedSeek, LeavesNoSampleOnTheWaitList) {
  Open(Calling([&](uint64_t id, const std::string& file, LoadedSample& loaded) {
    if (id != 0) has_given_.wait();
    const Status given = GiveBytes(file, loaded, kLarge);
    if (id == 0) {
      EXPECT_TRUE(given.ok());
      has_given_.count_down();
      may_end_.wait();
    } else if (given.ok()) {
      AwaitThatASampleWaits();
    }
    return given;
  }));
  NextUntil([&] { return HasWaited(); });
  Interrupt();
  may_end_.count_down();
  ExpectOtherGoesOn();
}

// A call that asks for memory after it keeps its sample off the list.
TEST_F(AnInterruptedSeek, LeavesNoLateSampleOnTheWaitList) {
  Open(Calling([&](uint64_t id, const std::string& file, LoadedSample& loaded) {
    if (id != 0) {
      ++asking_;
      may_ask_.wait();
    }
    const Status given = GiveBytes(file, loaded, kLarge);
    if (id == 0) {
      ++asking_;
      may_end_.wait();
    } else if (given.ok()) {
      AwaitThatASampleWaits();
    }
    return given;
  }));
  NextUntil([&] { return asking_ == 3; });
  Interrupt();
  EXPECT_FALSE(HasWaited());
  may_ask_.count_down();
  AwaitThatASampleWaits();
  EXPECT_TRUE(HasWaited());
  may_end_.count_down();
  ExpectOtherGoesOn();
}

// The only call keeps the reader thread from pulling the substitute for a bad sample. A sample of
// the other loader waits for memory, which two others hold, until nothing is in work.
TEST_F(AnInterruptedSeek, LeavesNoSubstituteInWork) {
  LoaderOptions left = Calling(
      [&](uint64_t id, const std::string& file, LoadedSample& loaded) {
        if (id == 0) return loaded.SetBytes({reinterpret_cast<const uint8_t*>("none"), 4});
        // Sample 1, or the substitute if the worker was as fast: then there is nothing to test.
        asking_ = static_cast<int>(id);
        may_end_.wait();
        return GiveBytes(file, loaded);
      },
      1);
  left.on_bad = BadPolicy::Parse("substitute").value();
  left.max_bad_fraction = 1;
  Open(std::move(left), [&](uint64_t, const std::string& file, LoadedSample& loaded) {
    const Status given = GiveBytes(file, loaded, kLarge);
    if (given.ok()) AwaitThatASampleWaits();
    return given;
  });
  NextUntil([&] { return asking_ > 0; });
  const auto found = Within20Seconds([&] { return left_->Stats().samples > 0; });
  while (!found()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until the substitute is given
  Interrupt();
  may_end_.count_down();
  ExpectOtherGoesOn();
  EXPECT_TRUE(HasWaited());
}

// `threads` says how many calls of a source run at a time, also with several loaders.
TEST_F(ProducerCalls, LoadersShareTheThreadsOfASource) {
  std::atomic<int> now{0}, most{0};
  const LoaderOptions options = Calling(
      [&now, &most](uint64_t, const std::string& file, LoadedSample& loaded) {
        const int calls = ++now;
        if (calls > most) most = calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --now;
        return GiveBytes(file, loaded);
      },
      1);
  auto first = Producer::Open(options).value();
  auto second = Producer::Open(options).value();
  std::jthread other([&second] { EXPECT_EQ(TakeEpoch(*second).size(), 5u); });
  EXPECT_EQ(TakeEpoch(*first).size(), 5u);
  other.join();
  EXPECT_EQ(most, 1);
}

TEST_F(ProducerCalls, AnErrorIsThatOfItsBatch) {
  auto loader = Producer::Open(Calling([](uint64_t id, const std::string& file,
                                          LoadedSample& loaded) -> Status {
                  if (id == 11) return Error{Code::kUnavailable, "no such row"};
                  return GiveBytes(file, loaded);
                })).value();
  int errors = 0;
  int64_t rows = 0;
  while (true) {
    const Result<Batch> batch = loader->Next();
    if (batch.ok() && !*batch) break;
    if (batch.ok()) {
      rows += batch->rows();
      continue;
    }
    ++errors;
    EXPECT_EQ(batch.error().code, Code::kUnavailable);
    EXPECT_EQ(batch.error().cause, "no such row");
    EXPECT_EQ(batch.error().file, "photo 11");
  }
  EXPECT_EQ(errors, 1);
  EXPECT_THAT(rows, ::testing::AnyOf(kPhotos - 8, kPhotos - kPhotos % 8));
}

TEST_F(ProducerCalls, ASampleWithoutAnImageIsAnError) {
  auto loader = Producer::Open(Calling([](uint64_t, const std::string&, LoadedSample&) {
                  return Status();
                })).value();
  const Result<Batch> batch = loader->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().cause, HasSubstr("the source gave no image"));
}

TEST_F(ProducerCalls, EmptyAndDamagedImagesAreErrors) {
  for (const char* content : {"", "no image"}) {
    auto loader =
        Producer::Open(Calling([content](uint64_t, const std::string&, LoadedSample& loaded) {
          return loaded.SetBytes(
              {reinterpret_cast<const uint8_t*>(content), std::char_traits<char>::length(content)});
        })).value();
    const Result<Batch> batch = loader->Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().code, Code::kDataLoss);
    EXPECT_THAT(batch.error().file, HasSubstr("photo "));
  }
}

TEST_F(ProducerCalls, AMissingFileIsNamed) {
  auto loader = Producer::Open(Calling([](uint64_t, const std::string&, LoadedSample& loaded) {
                  return loaded.SetFile("/gone.jpg");
                })).value();
  const Result<Batch> batch = loader->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kNotFound);
  EXPECT_EQ(batch.error().file, "/gone.jpg");
}

TEST_F(ProducerCalls, AreMadeOnThreadsOfTheirOwn) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> now{0}, most{0};
  auto loader =
      Producer::Open(Calling([&](uint64_t, const std::string& file, LoadedSample& loaded) {
        const int calls = ++now;
        int before = most;
        while (calls > before && !most.compare_exchange_weak(before, calls)) {
        }
        {
          const std::lock_guard lock(mutex);
          threads.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --now;
        return GiveBytes(file, loaded);
      })).value();
  (void)TakeEpoch(*loader);
  EXPECT_EQ(loader->Stats().reader, "calls");
  loader.reset();
  EXPECT_LE(most, 3);
  EXPECT_LE(threads.size(), 3u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

// Every thread is in a call at some time, however few rows the workers have ahead.
TEST_F(ProducerCalls, AreMadeOnAllThreads) {
  constexpr int kThreads = 64;
  std::latch all(kThreads);
  std::atomic<int> calls{0};
  LoaderOptions options = Calling(
      [&](uint64_t, const std::string& file, LoadedSample& loaded) {
        if (++calls <= kThreads) all.arrive_and_wait();
        return GiveBytes(file, loaded);
      },
      kThreads);
  options.depth = 2 * kThreads / 8;
  auto loader = Producer::Open(std::move(options)).value();
  EXPECT_TRUE(loader->Next().ok());
  EXPECT_EQ(loader->Stats().reads, kThreads);
}

// A loader whose calls hang does not keep another loader of the same Runtime from its samples.
TEST_F(ProducerCalls, DoNotDelayOtherLoaders) {
  std::promise<void> released;
  const std::shared_future<void> go = released.get_future().share();
  LoaderOptions hanging = Calling([go](uint64_t, const std::string& file, LoadedSample& loaded) {
    go.wait();
    return GiveBytes(file, loaded);
  });
  const std::shared_ptr<Runtime> runtime = hanging.runtime;
  auto stuck = Producer::Open(std::move(hanging)).value();
  std::jthread waiting([&stuck] { EXPECT_TRUE(stuck->Next().ok()); });
  LoaderOptions others = SmallBatches(photos_.Source());
  others.runtime = runtime;
  EXPECT_EQ(TakeEpoch(*Producer::Open(std::move(others)).value()).size(), 5u);
  released.set_value();
}

TEST_F(ProducerCalls, StopWaitsForThoseInProgress) {
  std::atomic<int> now{0};
  auto loader =
      Producer::Open(Calling([&now](uint64_t, const std::string& file, LoadedSample& loaded) {
        ++now;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const Status given = GiveBytes(file, loaded);
        --now;
        return given;
      })).value();
  EXPECT_TRUE(loader->Next().ok());
  loader->Stop();
  EXPECT_EQ(now, 0);
  EXPECT_EQ(loader->Next().error().code, Code::kCancelled);
}

TEST_F(ProducerCalls, WrongRowsAreErrors) {
  const std::vector<uint8_t> row(16);
  const auto error_of = [&](size_t field, size_t bytes) {
    auto loader = Producer::Open(Calling([&, field, bytes](uint64_t, const std::string& file,
                                                           LoadedSample& loaded) {
                    loaded.SetRow(field, std::span(row).first(bytes));
                    return GiveBytes(file, loaded);
                  })).value();
    const Result<Batch> batch = loader->Next();
    return batch.ok() ? Error{} : batch.error();
  };
  EXPECT_THAT(error_of(1, 8).cause, HasSubstr("field 'label' was given two rows"));
  EXPECT_THAT(error_of(0, 8).cause, HasSubstr("field 'image' was given a row; it is not kLoaded"));
  EXPECT_THAT(error_of(2, 8).cause, HasSubstr("the source gave a row of field 2; it has 2"));
  auto boxes = std::make_shared<CalledPhotos>(photos_.Source(), 3, CallForBytes);
  const Field box{.name = "box", .kind = Field::Kind::kLoaded, .dtype = DType::kF32};
  std::vector<Field> fields(boxes->fields().begin(), boxes->fields().end());
  fields[1] = box;
  boxes->SetFields(fields);  // a label of 8 bytes is given
  EXPECT_THAT(Producer::Open(SmallBatches(boxes)).value()->Next().error().cause,
              HasSubstr("field 'box' was given 8 bytes; it has 4"));
  fields = {fields[0], Field{.name = "label", .kind = Field::Kind::kLoaded, .dtype = DType::kI64},
            box};
  boxes->SetFields(fields);
  EXPECT_THAT(Producer::Open(SmallBatches(boxes)).value()->Next().error().cause,
              HasSubstr("the source gave no row of field 'box'"));
}

// A file that could not be read leaves neither an image nor its path behind.
TEST_F(ProducerCalls, AFileThatFailedIsForgotten) {
  auto loader = Producer::Open(Calling([](uint64_t, const std::string&, LoadedSample& loaded) {
                  EXPECT_FALSE(loaded.SetFile("/gone.jpg").ok());
                  return Status();
                })).value();
  EXPECT_THAT(loader->Next().error().cause, HasSubstr("the source gave no image"));
  loader = Producer::Open(Calling([](uint64_t, const std::string&, LoadedSample& loaded) {
             return loaded.SetFile(std::string("/gone\0.jpg", 10));
           })).value();
  EXPECT_THAT(loader->Next().error().cause, HasSubstr("the path of the image has a NUL byte"));
}

TEST_F(ProducerCalls, WrongFieldsAreRefused) {
  auto photos = std::make_shared<CalledPhotos>(photos_.Source(), 3, CallForBytes);
  photos->SetFields({{.name = "row", .dtype = DType::kU8, .row_shape = {4}}});
  LoaderOptions options = SmallBatches(photos);
  options.transforms.clear();
  EXPECT_EQ(ErrorOf(options).cause,
            "the first field of called photos is not a kImage, but the source has calls");
  photos->SetFields({{.name = "image", .kind = Field::Kind::kImage},
                     {.name = "box", .kind = Field::Kind::kLoaded, .row_shape = {4, 0}}});
  EXPECT_EQ(ErrorOf(SmallBatches(photos)).cause,
            "rows of field 'box' of called photos have a side below 1");
}

TEST_F(ProducerCalls, WrongSourcesAreRefused) {
  EXPECT_THAT(ErrorOf(Calling(CallForBytes, -1)).cause,
              HasSubstr("calls() of called photos is -1"));
  EXPECT_THAT(ErrorOf(Calling(CallForBytes, 1025)).cause, HasSubstr("is 1025"));
  EXPECT_THAT(ErrorOf(Calling(CallForBytes, 0)).cause,
              HasSubstr("field 'label' of called photos is kLoaded, but the source has no calls"));
}

}  // namespace
}  // namespace stoker
