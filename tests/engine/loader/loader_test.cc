// Iterations that share a loader: their epochs, their beginnings and ends, and prefetching.
#include "engine/loader/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Fingerprint;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::TakeEpoch;
using Prints = std::vector<uint64_t>;

class LoaderTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPerEpoch = 6;
  static constexpr uint64_t kPhotos = 41;

  LoaderOptions Options() {
    RuntimeOptions runtime = testing::RuntimeUnderTest(2);
    runtime.memory_budget = 64 << 20;
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16}};
    options.batch_size = 7;
    options.shuffle = true;
    options.depth = 2;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  std::shared_ptr<Loader> Open() { return Loader::Open(Options()).value(); }

  // Fingerprints of the first epochs, from a separate loader.
  std::vector<Prints> Epochs(int count) {
    auto loader = Producer::Open(Options()).value();
    std::vector<Prints> epochs;
    for (int e = 0; e < count; ++e) epochs.push_back(TakeEpoch(*loader));
    return epochs;
  }

  static Prints Rest(Iterator& iterator) {
    Prints prints;
    while (Batch batch = iterator.Next().value()) prints.push_back(Fingerprint(batch));
    return prints;
  }

  PhotoFolder photos_{kPhotos, 3};
};

TEST_F(LoaderTest, EachIterationTakesTheNextEpoch) {
  const auto epochs = Epochs(3);
  auto loader = Open();
  auto unused = loader->Iterate();
  EXPECT_EQ(unused->position(), std::nullopt) << "no epoch is taken before the first batch is";
  for (int e = 0; e < 3; ++e) {
    auto iterator = loader->Iterate();
    EXPECT_EQ(Rest(*iterator), epochs[static_cast<size_t>(e)]);
    EXPECT_FALSE(iterator->Next().value()) << "the end is where it was";
    EXPECT_EQ(iterator->position(), (BatchName{static_cast<uint64_t>(e), kPerEpoch}));
  }
  EXPECT_EQ(loader->epochs().next(), 3u);
}

TEST_F(LoaderTest, PaddedBatchesHaveTheSizesOfTheirImages) {
  LoaderOptions options = Options();
  options.transforms = {Resize{.size = 20, .max_size = 25}, PadTo{25, 30, {1, 1, 1}}};
  auto loader = Loader::Open(options).value();
  ASSERT_EQ(loader->columns().size(), 3u);
  EXPECT_EQ(loader->columns()[2].name, "image_size");
  auto iterator = loader->Iterate();
  while (Batch batch = iterator->Next().value()) {
    const auto pixels = batch.images().as<uint8_t>();
    const auto sizes = batch.columns()[2].as<int32_t>();
    ASSERT_EQ(sizes.size(), static_cast<size_t>(2 * batch.rows()));
    for (size_t row = 0; row < sizes.size() / 2; ++row) {
      const int height = sizes[2 * row], width = sizes[2 * row + 1];
      EXPECT_LE(std::min(height, width), 20);
      EXPECT_LE(std::max(height, width), 25);
      for (int y = 0; y < 25; ++y) {
        for (int x = y < height ? width : 0; x < 30; ++x) {
          const size_t pixel = (row * 25 + static_cast<size_t>(y)) * 30 + static_cast<size_t>(x);
          ASSERT_EQ(pixels[3 * pixel], 1) << "row " << row << ": " << y << ", " << x;
        }
      }
    }
  }
}

TEST_F(LoaderTest, TheNextEpochIsPrefetchedWhenTheLastOneEnds) {
  auto loader = Open();
  (void)Rest(*loader->Iterate());
  // Both batches of the depth are made without being requested.
  for (int i = 0; i < 2000 && loader->Stats().samples < kPhotos + 14; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(loader->Stats().samples, kPhotos + 14);
  (void)Rest(*loader->Iterate());
  for (int i = 0; i < 2000 && loader->Stats().samples < 2 * kPhotos + 14; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(loader->Stats().samples, 2 * kPhotos + 14) << "and none of it was made twice";
}

TEST_F(LoaderTest, APinnedEpochIsPrefetchedAgain) {
  const auto epochs = Epochs(2);
  auto loader = Open();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Rest(*loader->Iterate(1, /*repeat=*/true)), epochs[1]);
  EXPECT_LE(loader->Stats().samples, 3 * kPhotos + 14);
  EXPECT_EQ(loader->epochs().next(), 0u) << "a pinned epoch is not taken";
}

TEST_F(LoaderTest, InterleavedIterationsAreIndependent) {
  const auto epochs = Epochs(2);
  auto loader = Open();
  auto first = loader->Iterate(), second = loader->Iterate();
  Prints prints[2];
  for (uint64_t i = 0; i < kPerEpoch; ++i) {
    prints[0].push_back(Fingerprint(first->Next().value()));
    prints[1].push_back(Fingerprint(second->Next().value()));
  }
  EXPECT_EQ(prints[0], epochs[0]);
  EXPECT_EQ(prints[1], epochs[1]);
}

TEST_F(LoaderTest, IterationsOnManyThreadsTakeDifferentEpochs) {
  const auto epochs = Epochs(8);
  auto loader = Open();
  std::vector<Prints> taken(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2; ++i) {
        auto iterator = loader->Iterate();
        const Prints prints = Rest(*iterator);
        taken[iterator->position()->epoch] = prints;
        (void)loader->Stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, epochs);
}

TEST_F(LoaderTest, AbandonedIterationsDisturbNoOther) {
  const auto epochs = Epochs(6);
  auto loader = Open();
  for (uint64_t e = 0; e < 6; ++e) {
    auto iterator = loader->Iterate();
    for (uint64_t i = 0; i <= e; ++i) {
      EXPECT_EQ(Fingerprint(iterator->Next().value()), epochs[e][i]);
    }
  }
}

TEST_F(LoaderTest, SeekResumesWithoutReplay) {
  const auto epochs = Epochs(3);
  auto loader = Open();
  auto iterator = loader->Iterate();
  ASSERT_TRUE(iterator->Seek({1, 4}).ok());
  EXPECT_EQ(loader->Stats().samples, 0u) << "nothing is replayed";
  EXPECT_EQ(Rest(*iterator), Prints(epochs[1].begin() + 4, epochs[1].end()));
  EXPECT_EQ(loader->epochs().next(), 0u) << "the counter is the caller's to restore";
  loader->epochs().set_next(2);
  EXPECT_EQ(Rest(*loader->Iterate()), epochs[2]);
  ASSERT_TRUE(iterator->Seek({0, kPerEpoch}).ok());
  EXPECT_FALSE(iterator->Next().value()) << "saved at the end";
  EXPECT_EQ(iterator->Seek({0, kPerEpoch + 1}).error().code, Code::kInvalidArgument);
}

TEST_F(LoaderTest, ARestoredStateGoesOnWithTheSameBatches) {
  const auto epochs = Epochs(2);
  auto loader = Open();
  std::string state;
  {
    auto first = loader->Iterate();
    EXPECT_EQ(first->state(), loader->StateAt({0, 0}));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(*first->Next());
    state = first->state();
  }
  auto other = Open();
  auto restored = other->Iterate();
  ASSERT_TRUE(restored->Restore(state).ok());
  EXPECT_EQ(restored->state(), state);
  EXPECT_EQ(Rest(*restored), Prints(epochs[0].begin() + 2, epochs[0].end()));
  EXPECT_EQ(Rest(*other->Iterate()), epochs[1]);
  EXPECT_EQ(restored->state(), other->StateAt({1, 0})) << "after an epoch's end";
  ASSERT_TRUE(restored->Restore(restored->state()).ok());
  EXPECT_EQ(Rest(*restored), epochs[1]);
  const Status refused = restored->Restore("{}");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
}

// Batches of 7 up to photograph 14, of 3 ranks from there, and whole epochs of these ranks after
// it; by iterating, by name and by appending.
TEST_F(LoaderTest, OtherRanksFinishAnEpochThatOneBegan) {
  const auto row_prints = [](const Batch& batch, std::vector<std::pair<uint64_t, uint64_t>>& all) {
    const Column& images = batch.images();
    const size_t bytes = images.bytes() / static_cast<size_t>(batch.rows());
    for (size_t row = 0; row < batch.sample_ids().size(); ++row) {
      const std::span<uint8_t> pixels = images.as<uint8_t>().subspan(row * bytes, bytes);
      all.emplace_back(batch.sample_ids()[row],
                       std::hash<std::string>()(std::string(pixels.begin(), pixels.end())));
    }
  };
  auto alone = Open();
  std::vector<std::pair<uint64_t, uint64_t>> whole, rest;
  std::string state;
  for (uint64_t index = 0; index < kPerEpoch; ++index) {
    row_prints(alone->BatchAt({1, index}).value(), index < 2 ? rest : whole);
  }
  rest.clear();
  state = alone->StateAt({1, 2});
  for (uint32_t rank = 0; rank < 3; ++rank) {
    LoaderOptions options = Options();
    options.world = 3;
    options.rank = rank;
    options.batch_size = 4;
    auto loader = Loader::Open(options).value();
    auto batches = loader->Iterate();
    ASSERT_TRUE(batches->Restore(state).ok());
    const BatchName first = *batches->position();
    EXPECT_EQ(first, (BatchName{1, 0, 14}));
    EXPECT_EQ(loader->batches_from(first.start), 3u);
    Prints prints;
    while (Batch batch = batches->Next().value()) {
      EXPECT_EQ(batch.name(), (BatchName{1, prints.size(), 14}));
      EXPECT_EQ(batch.position(), 14 + prints.size() * 12 + rank);
      row_prints(batch, rest);
      prints.push_back(Fingerprint(batch));
    }
    EXPECT_EQ(batches->position(), (BatchName{1, 3, 14}));
    for (uint64_t index = 0; index < 3; ++index) {
      EXPECT_EQ(Fingerprint(loader->BatchAt({1, index, 14}).value()), prints[index]);
      ASSERT_TRUE(batches->Append({1, index, 14}).ok());
    }
    EXPECT_EQ(Rest(*batches), prints);
    EXPECT_FALSE(loader->BatchAt({1, 3, 14}).ok());
    auto again = loader->Iterate(1, /*repeat=*/true);
    ASSERT_TRUE(again->Restore(state).ok());
    EXPECT_EQ(Rest(*again), prints);
    EXPECT_EQ(Rest(*loader->Iterate(1, /*repeat=*/true)).size(), loader->batches_per_epoch());
    auto next = loader->Iterate();
    EXPECT_EQ(next->Next().value().epoch(), 2u);
    EXPECT_EQ(Rest(*next).size() + 1, loader->batches_per_epoch());
  }
  std::ranges::sort(whole);
  std::ranges::sort(rest);
  EXPECT_EQ(rest, whole);
}

TEST_F(LoaderTest, AppendDeliversTheNamedBatches) {
  const auto epochs = Epochs(2);
  auto loader = Open();
  auto iterator = loader->Iterate();
  for (const BatchName name : {BatchName{1, 5}, BatchName{0, 2}, BatchName{1, 0}}) {
    ASSERT_TRUE(iterator->Append(name).ok());
  }
  EXPECT_EQ(Rest(*iterator), (Prints{epochs[1][5], epochs[0][2], epochs[1][0]}));
  EXPECT_EQ(iterator->passed(), 3u);
  EXPECT_EQ(iterator->position(), std::nullopt);
  ASSERT_TRUE(iterator->Append({0, 5}).ok());
  EXPECT_EQ(Rest(*iterator), Prints{epochs[0][5]});
  EXPECT_EQ(Rest(*loader->Iterate()), epochs[0]) << "appending takes no epoch";
}

TEST_F(LoaderTest, BatchAtDeliversTheNamedBatch) {
  const auto epochs = Epochs(3);
  auto loader = Open();
  for (uint64_t e = 0; e < 2; ++e) {
    for (uint64_t i = 0; i < kPerEpoch; ++i) {
      EXPECT_EQ(Fingerprint(loader->BatchAt({e, i}).value()), epochs[e][i]);
    }
  }
  EXPECT_LE(loader->Stats().samples, 2 * kPhotos + 14) << "read ahead of, and nothing twice";
  const uint64_t before = loader->Stats().samples;
  for (uint64_t i : {1, 5, 3}) {
    EXPECT_EQ(Fingerprint(loader->BatchAt({0, i}).value()), epochs[0][i]);
  }
  EXPECT_LE(loader->Stats().samples, before + 14 + 7 + 6 + 7) << "elsewhere: that batch only";
  for (uint64_t i = 0; i < kPerEpoch; ++i) {  // two sequences in turns
    EXPECT_EQ(Fingerprint(loader->BatchAt({1, i}).value()), epochs[1][i]);
    EXPECT_EQ(Fingerprint(loader->BatchAt({2, i}).value()), epochs[2][i]);
  }
  EXPECT_EQ(loader->BatchAt({0, kPerEpoch}).error().code, Code::kInvalidArgument);
}

TEST_F(LoaderTest, HeldBatchesCountAcrossIterations) {
  LoaderOptions options = Options();
  options.lent_batches = 3;
  auto loader = Loader::Open(options).value();
  std::vector<Batch> held;
  {
    auto iterators = {loader->Iterate(), loader->Iterate(), loader->Iterate()};  // three engines
    for (const auto& iterator : iterators) held.push_back(iterator->Next().value());
    for (const auto& iterator : iterators) {
      EXPECT_EQ(iterator->Next().error().code, Code::kResourceExhausted);
    }
  }  // one engine more than stay idle: it is gone
  EXPECT_EQ(loader->Stats().lent_batches, 3);
  EXPECT_EQ(loader->Stats().lent_bytes, 3 * loader->Stats().slot_bytes);
  held.clear();
  EXPECT_EQ(loader->Stats().lent_batches, 0);
  EXPECT_EQ(loader->Stats().lent_bytes, 0u);
  EXPECT_TRUE(loader->Iterate()->Next().ok());
}

TEST_F(LoaderTest, WarnsOnceWhenHeldBatchesExceedTheBudget) {
  LoaderOptions options = Options();
  options.lent_batches = 0;
  RuntimeOptions runtime = options.runtime->options();
  runtime.memory_budget = 8 << 20;
  options.runtime = Runtime::Create(runtime).value();
  options.transforms = {RandomResizedCrop{.height = 128, .width = 128}};
  options.depth = 1;
  auto loader = Loader::Open(options).value();
  std::vector<Batch> held;
  int said = 0;
  for (int e = 0; e < 6; ++e) {
    auto iterator = loader->Iterate();
    while (Batch batch = iterator->Next().value()) {
      held.push_back(std::move(batch));
      const bool past = loader->Stats().lent_bytes > (8u << 20);
      const auto warning = loader->TakeWarning();
      if (warning) ++said;
      EXPECT_EQ(said, past ? 1 : 0);
    }
  }
  EXPECT_EQ(said, 1);
}

TEST_F(LoaderTest, AnEpochThatDeliveredNothingIsNotTaken) {
  LoaderOptions options = Options();
  options.lent_batches = 1;
  auto loader = Loader::Open(options).value();
  Batch held = loader->Iterate(7)->Next().value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(loader->Iterate()->Next().error().code, Code::kResourceExhausted);
  }
  held.Release();
  EXPECT_EQ(Rest(*loader->Iterate()), Epochs(1)[0]);
  EXPECT_EQ(loader->epochs().next(), 1u);
}

TEST_F(LoaderTest, ARestoredPlaceIsKeptUntilItsFirstBatchWasDelivered) {
  const auto epochs = Epochs(2);
  auto loader = Open();
  auto saved = loader->Iterate(0);
  for (int i = 0; i < 4; ++i) (void)saved->Next().value();
  const std::string state = saved->state();
  ASSERT_TRUE(loader->Iterate()->Restore(state).ok());
  (void)loader->Iterate();
  {
    auto fetched = loader->Iterate();
    EXPECT_EQ(Fingerprint(fetched->Fetch({}).value()), epochs[0][4]);  // not accepted
  }
  auto failed = loader->Iterate();
  Batch not_delivered = failed->Fetch({}).value();
  failed->Postpone();
  EXPECT_EQ(failed->position(), std::nullopt);
  auto rest = loader->Iterate();
  EXPECT_EQ(Fingerprint(rest->Next().value()), epochs[0][4]);
  EXPECT_FALSE(failed->Resume()) << "another iteration has the place";
  EXPECT_EQ(Fingerprint(failed->Next().value()), epochs[1][0]);
  rest->TakeBack();
  EXPECT_EQ(loader->epochs().restored(), (BatchName{0, 4}));
  EXPECT_EQ(Rest(*loader->Iterate()), Prints(epochs[0].begin() + 4, epochs[0].end()));
  EXPECT_EQ(loader->epochs().next(), 2u);
}

TEST_F(LoaderTest, InterruptsLoseNoBatch) {
  auto loader = Open(), wanted = Open();
  int interrupted = 0;
  std::mt19937 random;  // NOLINT: the same numbers each time
  for (uint64_t epoch = 0; interrupted < testing::Effort(200); ++epoch) {
    auto iterator = loader->Iterate();
    Prints got;
    for (bool end = false; !end;) {
      const std::string state = iterator->state();
      Result<Batch> batch = iterator->Fetch([&] { return random() % 2 == 0; });
      ASSERT_EQ(iterator->state(), state) << "nothing was delivered";
      if (batch.ok() && random() % 2 == 0) {
        const Prints kept = *batch ? Prints{Fingerprint(*batch)} : Prints{};
        iterator->Postpone();
        ASSERT_EQ(iterator->state(), state);
        ++interrupted;
        ASSERT_TRUE(iterator->Resume());
        iterator->Accept();
        got.insert(got.end(), kept.begin(), kept.end());
        end = !*batch;
      } else if (batch.ok()) {
        iterator->Accept();
        if (*batch) got.push_back(Fingerprint(*batch));
        end = !*batch;
      } else {
        ++interrupted;
      }
    }
    ASSERT_EQ(got, Rest(*wanted->Iterate(epoch)));
  }
}

TEST_F(LoaderTest, WhatWasFetchedIsForgottenWhereAnIterationMoves) {
  const auto epochs = Epochs(1);
  auto loader = Open();
  auto iterator = loader->Iterate();
  EXPECT_EQ(Fingerprint(iterator->Next().value()), epochs[0][0]);
  EXPECT_EQ(Fingerprint(iterator->Fetch({}).value()), epochs[0][1]);
  EXPECT_TRUE(iterator->Resume());
  iterator->TakeBack();
  EXPECT_FALSE(iterator->Resume());
  EXPECT_EQ(Fingerprint(iterator->Fetch({}).value()), epochs[0][0]);
  iterator->Postpone();
  ASSERT_TRUE(iterator->Append({0, 5}).ok());
  EXPECT_FALSE(iterator->Resume());
  EXPECT_EQ(loader->epochs().next(), 0u) << "the place is free";
  EXPECT_EQ(Fingerprint(iterator->Fetch({}).value()), epochs[0][5]);
  ASSERT_TRUE(iterator->Append({0, 2}).ok());
  EXPECT_TRUE(iterator->Resume()) << "it is still the next one";
  iterator->Accept();
  iterator->TakeBack();  // does nothing
  EXPECT_EQ(Fingerprint(iterator->Next().value()), epochs[0][2]);
}

TEST_F(LoaderTest, StopWakesBlockedConsumers) {
  for (int round = 0; round < 10; ++round) {
    auto loader = Open();
    std::vector<std::thread> consumers;
    for (int t = 0; t < 3; ++t) {
      consumers.emplace_back([&loader, t] {
        auto iterator = loader->Iterate();
        Result<Batch> batch = Batch();
        do {
          batch = t == 0 ? loader->BatchAt({0, 0}) : iterator->Next();
          if (batch.ok() && !*batch) iterator = loader->Iterate();
        } while (batch.ok());
        EXPECT_EQ(batch.error().code, Code::kCancelled) << batch.error().ToString();
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    loader->Stop();
    for (std::thread& consumer : consumers) consumer.join();
  }
}

TEST_F(LoaderTest, BatchAtWorksOnManyThreads) {
  const auto epochs = Epochs(3);
  auto loader = Open();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2 * kPerEpoch; ++i) {
        const uint64_t index = (i * (t + 1)) % kPerEpoch;
        EXPECT_EQ(Fingerprint(loader->BatchAt({t, index}).value()), epochs[t][index]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LoaderTest, StopEndsCurrentAndLaterIterations) {
  auto loader = Open();
  auto running = loader->Iterate();
  (void)running->Next().value();
  loader->Stop();
  EXPECT_EQ(running->Next().error().code, Code::kCancelled);
  EXPECT_EQ(loader->Iterate()->Next().error().code, Code::kCancelled);
  EXPECT_EQ(loader->BatchAt({0, 0}).error().code, Code::kCancelled);
  EXPECT_GE(loader->Stats().batches, 1u);
}

TEST_F(LoaderTest, OpenChecksOptions) {
  LoaderOptions options = Options();
  options.transforms.clear();
  EXPECT_EQ(Loader::Open(options).error().code, Code::kInvalidArgument);
}

TEST_F(LoaderTest, ReleaseIdleFreesMemory) {
  auto loader = Open();
  EXPECT_GT(loader->Stats().memory_used, 0u);
  loader->ReleaseIdle();
  EXPECT_EQ(loader->Stats().memory_used, 0u);
  auto iterator = loader->Iterate();
  EXPECT_TRUE(iterator->Next().value()) << "another is opened when it is wanted";
  loader->ReleaseIdle();
  EXPECT_TRUE(iterator->Next().value()) << "one that is in use stays";
  EXPECT_GE(loader->Stats().batches, 2u);
}

}  // namespace
}  // namespace stoker
