// Functions of the program's own, of rows and of batches, after the transforms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/hash/hash.h"
#include "engine/loader/loader.h"
#include "engine/production/producer.h"
#include "io/memory/arrays.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::TakeEpoch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowFunction final : public MapFunction {
 public:
  explicit RowFunction(std::function<Status(const MappedRow&)> function)
      : function_(std::move(function)) {}
  std::string Describe() const override { return "of_rows"; }
  Status MapRow(const MappedRow& row) const override { return function_(row); }

 private:
  const std::function<Status(const MappedRow&)> function_;
};

class BatchFunction final : public MapFunction {
 public:
  BatchFunction(int calls, std::function<Status(const Batch&)> function)
      : calls_(calls), function_(std::move(function)) {}
  std::string Describe() const override { return "of_batches"; }
  int calls() const override { return calls_; }
  Status MapBatch(const Batch& batch) const override { return function_(batch); }

 private:
  const int calls_;
  const std::function<Status(const Batch&)> function_;
};

std::shared_ptr<const MapFunction> OfRows(std::function<Status(const MappedRow&)> function) {
  return std::make_shared<RowFunction>(std::move(function));
}
std::shared_ptr<const MapFunction> OfBatches(int calls,
                                             std::function<Status(const Batch&)> function) {
  return std::make_shared<BatchFunction>(calls, std::move(function));
}

// Inverts the pixels of a row, and marks its label with sample and epoch.
Status InvertRow(const MappedRow& row) {
  for (uint8_t& value : row.as<uint8_t>(0)) value = static_cast<uint8_t>(255 - value);
  row.as<int64_t>(1)[0] = static_cast<int64_t>(1000 * row.sample() + row.batch().epoch);
  return {};
}

// Does the same to a batch.
Status InvertBatch(const Batch& batch) {
  for (uint8_t& value : batch.images().as<uint8_t>()) value = static_cast<uint8_t>(255 - value);
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const auto r = static_cast<size_t>(row);
    batch.labels().as<int64_t>()[r] =
        static_cast<int64_t>(1000 * batch.sample_ids()[r] + batch.epoch());
  }
  return {};
}

class ProducerMap : public ::testing::Test {
 protected:
  static constexpr int kPhotos = 37;

  LoaderOptions Options(std::shared_ptr<const MapFunction> map, int threads = 2) const {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = 8;
    options.shuffle = true;
    options.seed = 5;
    options.map = std::move(map);
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }

  static std::unique_ptr<Producer> Open(LoaderOptions options) {
    return Producer::Open(std::move(options)).value();
  }

  const PhotoFolder photos_{kPhotos, 3};
};

TEST_F(ProducerMap, ChangesEachRowOnce) {
  auto plain = Open(Options(nullptr)), mapped = Open(Options(OfRows(InvertRow)));
  for (int batches = 0; batches < 12; ++batches) {
    const Batch before = plain->Next().value(), after = mapped->Next().value();
    ASSERT_EQ(static_cast<bool>(before), static_cast<bool>(after));
    if (!before) continue;
    ASSERT_TRUE(InvertBatch(before).ok());
    EXPECT_TRUE(std::ranges::equal(before.images().as<uint8_t>(), after.images().as<uint8_t>()));
    EXPECT_TRUE(std::ranges::equal(before.labels().as<int64_t>(), after.labels().as<int64_t>()));
  }
}

TEST_F(ProducerMap, RowsAndBatchesAndThreadsGiveTheSame) {
  const auto wanted = TakeEpoch(*Open(Options(OfRows(InvertRow))));
  EXPECT_NE(wanted, TakeEpoch(*Open(Options(nullptr))));
  for (const int calls : {1, 2, 7}) {
    EXPECT_EQ(TakeEpoch(*Open(Options(OfBatches(calls, InvertBatch)))), wanted) << calls;
  }
  LoaderOptions deep = Options(OfBatches(3, InvertBatch), 1);
  deep.depth = 7;
  EXPECT_EQ(TakeEpoch(*Open(std::move(deep))), wanted);
}

TEST_F(ProducerMap, RowsOfArrays) {
  std::vector<uint8_t> values(20 * 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i);
  LoaderOptions options = Options(OfRows([](const MappedRow& row) -> Status {
    EXPECT_EQ(row.columns()[0].row_shape, (std::vector<int64_t>{2, 3}));
    for (uint8_t& value : row.as<uint8_t>(0)) value = static_cast<uint8_t>(value / 6);
    return {};
  }));
  options.source = Arrays({{"image", DType::kU8, {2, 3}, values.data(), 20}}, nullptr).value();
  options.transforms.clear();
  auto producer = Open(std::move(options));
  uint64_t rows = 0;
  while (const Batch batch = producer->Next().value()) {
    for (size_t i = 0; i < batch.images().values(); ++i) {
      ASSERT_EQ(batch.images().as<uint8_t>()[i], batch.sample_ids()[i / 6]);
    }
    rows += static_cast<uint64_t>(batch.rows());
  }
  EXPECT_EQ(rows, 20u);
}

// Rows are mapped before they are mixed, batches afterwards.
TEST_F(ProducerMap, RowsBeforeAndBatchesAfterMixing) {
  const BatchMix mix{.choices = {MixUp{}}};
  std::atomic<int> ones{0}, rows{0};
  LoaderOptions options = Options(OfRows([&](const MappedRow& row) -> Status {
    const std::span<float> label = row.as<float>(1);
    ones += static_cast<int>(std::ranges::count(label, 1.0F));
    ++rows;
    return {};
  }));
  options.mix = mix;
  (void)TakeEpoch(*Open(std::move(options)));
  EXPECT_EQ(ones, rows);

  std::atomic<bool> soft{false};
  options = Options(OfBatches(1, [&](const Batch& batch) -> Status {
    for (const float value : batch.labels().as<float>()) {
      if (value != 0 && value != 1) soft = true;
    }
    return {};
  }));
  options.mix = mix;
  (void)TakeEpoch(*Open(std::move(options)));
  EXPECT_TRUE(soft);
}

TEST_F(ProducerMap, OneThreadCallsInOrder) {
  std::mutex mutex;
  std::vector<uint64_t> order;
  LoaderOptions options = Options(OfBatches(1, [&](const Batch& batch) -> Status {
    const std::lock_guard lock(mutex);
    order.push_back(10 * batch.epoch() + batch.index());
    return {};
  }));
  options.depth = 4;
  options.epochs = 3;
  auto producer = Open(std::move(options));
  for (int epoch = 0; epoch < 3; ++epoch) (void)TakeEpoch(*producer);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24));
}

TEST_F(ProducerMap, AsManyThreadsAsWereAskedFor) {
  std::latch meeting(4);
  std::atomic<int> calls{0};
  LoaderOptions options = Options(OfBatches(4, [&](const Batch&) -> Status {
    if (++calls <= 4) meeting.arrive_and_wait();  // passed only if four calls are made at a time
    return {};
  }));
  options.depth = 5;
  EXPECT_EQ(TakeEpoch(*Open(std::move(options))).size(), 5u);
}

TEST_F(ProducerMap, ErrorsNameFunctionAndSampleOrBatch) {
  LoaderOptions options = Options(OfRows([](const MappedRow& row) -> Status {
    if (row.sample() == 17) return Error{Code::kDataLoss, "too dark"};
    return {};
  }));
  options.shuffle = false;
  auto producer = Open(std::move(options));
  for (const uint64_t index : {0u, 1u, 2u, 3u, 4u}) {
    const Result<Batch> batch = producer->Next();
    ASSERT_EQ(batch.ok(), index != 2) << index;
    if (batch.ok()) continue;
    EXPECT_THAT(batch.error().ToString(), HasSubstr("of_rows of sample 17: too dark"));
    EXPECT_THAT(batch.error().file, HasSubstr(".jpg"));
  }

  producer = Open(Options(OfBatches(2, [](const Batch& batch) -> Status {
    if (batch.index() == 3) throw std::runtime_error("too bright");
    return {};
  })));
  for (const uint64_t index : {0u, 1u, 2u, 3u, 4u}) {
    const Result<Batch> batch = producer->Next();
    ASSERT_EQ(batch.ok(), index != 3) << index;
    if (batch.ok()) continue;
    EXPECT_EQ(batch.error().ToString(), "UNAVAILABLE: of_batches: batch 3 of epoch 0: too bright.");
  }
}

TEST_F(ProducerMap, WrongNumbersOfThreadsAreRefused) {
  for (const int calls : {-1, 257}) {
    const auto opened = Producer::Open(Options(OfBatches(calls, InvertBatch)));
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().cause, HasSubstr("calls() of of_batches is"));
  }
}

// A batch whose samples failed is not mapped; those behind it are.
TEST_F(ProducerMap, BadSamplesAreNotMapped) {
  const PhotoFolder photos(kPhotos, 3);
  photos.Overwrite(9, "no image");
  std::atomic<int> calls{0};
  LoaderOptions options = Options(OfBatches(1, [&](const Batch& batch) -> Status {
    EXPECT_NE(batch.index(), 1u);
    ++calls;
    return {};
  }));
  options.source = photos.Source();
  options.shuffle = false;
  options.epochs = 1;
  auto producer = Open(std::move(options));
  int errors = 0;
  for (int batch = 0; batch < 5; ++batch) errors += !producer->Next().ok();
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(calls, 4);
}

// Memory that a function keeps stays valid and unchanged, whether its batch is delivered or not.
TEST_F(ProducerMap, MemoryMayBeKept) {
  struct Kept {
    std::shared_ptr<void> owner;
    std::span<const uint8_t> pixels;
    uint64_t hash;
  };
  std::vector<Kept> kept;
  const auto hash = [](std::span<const uint8_t> pixels) { return Hash64(pixels); };
  LoaderOptions options = Options(OfBatches(1, [&](const Batch& batch) -> Status {
    const auto pixels = batch.images().as<uint8_t>();
    if (kept.size() < 8) {
      kept.push_back({batch.Owner(0), pixels, hash(pixels)});
      if (kept.size() % 2 == 0) return Error{Code::kDataLoss, "refused"};
    }
    return {};
  }));
  options.lent_batches = 0;
  auto producer = Open(std::move(options));
  for (int batch = 0; batch < 40; ++batch) (void)producer->Next();
  EXPECT_GE(producer->Stats().lent_batches, 8);
  producer.reset();
  ASSERT_EQ(kept.size(), 8u);
  for (const Kept& one : kept) EXPECT_EQ(hash(one.pixels), one.hash);
}

TEST_F(ProducerMap, SeekingAndStoppingDropWhatWaits) {
  std::latch entered(1);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<bool> first{true};
  LoaderOptions options = Options(OfBatches(1, [&](const Batch&) -> Status {
    if (first.exchange(false)) {
      entered.count_down();
      gone.wait();
    }
    return {};
  }));
  options.depth = 4;
  auto producer = Open(std::move(options));
  std::jthread asking([&] {
    const auto asked = std::chrono::steady_clock::now();
    const Result<Batch> batch = producer->Next(
        [&] { return std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(100); });
    EXPECT_FALSE(batch.ok());
  });
  entered.wait();
  asking.join();
  std::jthread releasing([&] { go.set_value(); });
  ASSERT_TRUE(producer->Seek({1, 2}).ok());
  const Batch batch = producer->Next().value();
  EXPECT_EQ(batch.epoch(), 1u);
  EXPECT_EQ(batch.index(), 2u);
  producer->Stop();
  EXPECT_FALSE(producer->Next().ok());
}

// Stop cancels all iterations, and then waits for the calls in progress.
TEST_F(ProducerMap, StoppingALoaderBeginsNoFurtherCalls) {
  std::counting_semaphore<> entered(0);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> calls{0};
  LoaderOptions options = Options(OfBatches(1, [&](const Batch&) -> Status {
    ++calls;
    entered.release();
    gone.wait();
    return {};
  }));
  options.depth = 4;
  auto loader = Loader::Open(std::move(options)).value();
  const auto begin = [&](Iterator& batches) {
    EXPECT_FALSE(batches.Next([] { return true; }).ok());
    entered.acquire();
  };
  const auto take = [](Iterator& batches, const Interrupt& interrupt) {
    const Result<Batch> batch = batches.Next(interrupt);
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().code, Code::kCancelled);
  };
  auto moved = loader->Iterate(9);
  begin(*moved);
  ASSERT_TRUE(moved->Seek({11, 0}).ok());
  std::promise<void> asked;
  std::jthread moving([&] {  // its engine waits for the call, and is the first that Stop finds
    take(*moved, [&, first = true]() mutable {
      if (std::exchange(first, false)) asked.set_value();
      return false;
    });
  });
  asked.get_future().wait();
  auto first = loader->Iterate(0), second = loader->Iterate(1), abandoned = loader->Iterate(7);
  for (Iterator* batches : {first.get(), second.get(), abandoned.get()}) begin(*batches);
  abandoned.reset();  // its engine is idle from here on, in a call
  std::jthread one([&] { take(*first, {}); }), other([&] { take(*second, {}); });
  std::jthread stopping([&] { loader->Stop(); });
  one.join();
  other.join();  // although the calls are in progress
  moving.join();
  EXPECT_EQ(calls, 4);
  go.set_value();
  stopping.join();
  EXPECT_EQ(calls, 4);
}

// A loader keeps two engines that no iterator uses.
TEST_F(ProducerMap, SurplusEnginesInACallAreNotWaitedFor) {
  std::counting_semaphore<> entered(0);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> ended{0};
  auto loader = Loader::Open(Options(OfBatches(1, [&](const Batch&) -> Status {
                  entered.release();
                  gone.wait();
                  ++ended;
                  return {};
                }))).value();
  std::vector<std::unique_ptr<Iterator>> iterators;
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    iterators.push_back(loader->Iterate(epoch));
    EXPECT_FALSE(iterators.back()->Next([] { return true; }).ok());
    entered.acquire();
  }
  iterators.clear();  // would wait forever
  std::jthread stopping([&] { loader->Stop(); });
  go.set_value();
  stopping.join();
  EXPECT_GE(ended, 4);  // idle engines may have begun others
}

TEST_F(ProducerMap, IterationsPreferEnginesThatAreInNoCall) {
  std::counting_semaphore<> entered(0);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<bool> hangs{true};
  auto loader = Loader::Open(Options(OfBatches(1, [&](const Batch& batch) -> Status {
                  if (batch.epoch() != 7 || !hangs.exchange(false)) return {};
                  entered.release();
                  gone.wait();
                  return {};
                }))).value();
  const auto interrupted = [] { return true; };
  auto hanging = loader->Iterate(7), other = loader->Iterate(8);
  EXPECT_FALSE(hanging->Next(interrupted).ok());
  entered.acquire();
  EXPECT_TRUE(other->Next().ok());
  hanging.reset();
  other.reset();
  EXPECT_FALSE(loader->Iterate(20)->Next(interrupted).ok());  // moves the engine in the call
  auto after = loader->Iterate(8);
  ASSERT_TRUE(after->Seek({8, 1}).ok());
  EXPECT_TRUE(after->Next().ok());  // another one, which was used last
  after.reset();
  for (const uint64_t epoch : {uint64_t{7}, uint64_t{30}}) {
    const Result<Batch> batch = loader->Iterate(epoch)->Next();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->epoch(), epoch);
  }
  go.set_value();
}

TEST_F(ProducerMap, StatsCountTheFunction) {
  auto rows = Open(Options(OfRows(InvertRow)));
  (void)TakeEpoch(*rows);
  EXPECT_GT(rows->Stats().stages.map_ns, 0u);
  EXPECT_EQ(rows->Stats().map, "of_rows");
  EXPECT_THAT(rows->Stats().plan, HasSubstr("rows: of_rows"));
  EXPECT_EQ(rows->Stats().map_threads, 0);

  auto batches = Open(Options(OfBatches(2, InvertBatch)));
  (void)TakeEpoch(*batches);
  EXPECT_GT(batches->Stats().stages.map_ns, 0u);
  EXPECT_THAT(batches->Stats().plan, HasSubstr("then batches: of_batches"));
  EXPECT_EQ(batches->Stats().map_threads, 2);
  EXPECT_GE(batches->Stats().map_calls, 5u);
}

}  // namespace
}  // namespace stoker
