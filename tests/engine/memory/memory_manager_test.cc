#include "engine/memory/memory_manager.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::Random;

// Half of the budget is for batches, half for samples, with any number of loaders.
constexpr uint64_t kBudget = 20'000'000;
constexpr uint64_t kHalf = kBudget / 2;
constexpr MemoryNeeds kLoader{.slot_bytes = 1'000'000, .first_depth = 2, .max_depth = 64};

// Counts how often readers are woken, and lets threads wait for that.
class Readers {
 public:
  void Wake() {
    std::lock_guard lock(mutex_);
    ++wakes_;
    woken_.notify_all();
  }
  uint64_t wakes() {
    std::lock_guard lock(mutex_);
    return wakes_;
  }
  void AwaitMoreThan(uint64_t wakes) {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return wakes_ > wakes; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  uint64_t wakes_ = 0;
};

class MemoryManagerTest : public ::testing::Test {
 protected:
  std::unique_ptr<MemoryLease> Lease(double weight = 1) {
    return manager_.Lease(kLoader, weight).value();
  }

  Readers readers_;
  MemoryManager manager_{kBudget, 8, [this] { readers_.Wake(); }};
};

// ---- Shares

TEST_F(MemoryManagerTest, ALeaseReservesItsFirstBatchesAndReleasesThem) {
  {
    const auto lease = Lease();
    EXPECT_EQ(lease->plan().depth, 2);
    EXPECT_EQ(manager_.budget().used(), 2 * kLoader.slot_bytes);
    EXPECT_EQ(lease->samples().limit(), kHalf);
    Reservation batches = lease->TakeBatches();
    EXPECT_EQ(batches.bytes(), 2 * kLoader.slot_bytes);
    EXPECT_TRUE(batches.Resize(kHalf));
    EXPECT_FALSE(batches.Resize(kHalf + 1));
    MemoryNeeds pinned = kLoader;
    pinned.at_once = true;
    pinned.max_depth = 2;
    EXPECT_EQ(manager_.Lease(pinned, 1).value()->TakeBatches().bytes(), 2 * kLoader.slot_bytes);
  }
  EXPECT_EQ(manager_.budget().used(), 0u);
  MemoryNeeds large = kLoader;
  large.slot_bytes = kBudget;
  EXPECT_EQ(manager_.Lease(large, 1).error().code, Code::kResourceExhausted);
  EXPECT_EQ(manager_.budget().used(), 0u);
}

TEST_F(MemoryManagerTest, LoadersShareByNeedAndWeightAndReturnTheirSurplus) {
  constexpr uint64_t kUnit = kHalf / 1000;  // a loader always has 100 of them
  const auto train = Lease(1);
  EXPECT_FALSE(train->shared());
  EXPECT_EQ(train->workers(), 8) << "what nobody needs is there to grow into";
  EXPECT_EQ(train->batch_bytes(), 1000 * kUnit);
  train->SetNeed({8, 2000 * kUnit}, 1);
  EXPECT_EQ(train->workers(), 8);
  EXPECT_EQ(train->batch_bytes(), 1000 * kUnit);
  auto validation = Lease(3);
  EXPECT_TRUE(train->shared());
  EXPECT_TRUE(validation->shared());
  EXPECT_EQ(train->workers(), 7);
  EXPECT_EQ(train->batch_bytes(), 900 * kUnit);
  validation->SetNeed({8, 2000 * kUnit}, 1);
  EXPECT_EQ(train->workers(), 2);
  EXPECT_EQ(validation->workers(), 6);
  EXPECT_EQ(train->batch_bytes(), 250 * kUnit);
  EXPECT_EQ(validation->batch_bytes(), 750 * kUnit);
  validation->SetNeed({0, 0}, 1);  // a loader without needs keeps what it began with
  EXPECT_EQ(validation->workers(), 1);
  EXPECT_EQ(train->workers(), 7);
  train->SetNeed({2, 200 * kUnit}, 1);  // 5 and 700 are left, and go by weight
  EXPECT_EQ(train->workers(), 2 + 1);
  EXPECT_EQ(validation->workers(), 1 + 4);
  EXPECT_EQ(train->batch_bytes(), (200 + 175) * kUnit);
  EXPECT_EQ(validation->batch_bytes(), (100 + 525) * kUnit);
  validation.reset();
  EXPECT_EQ(train->workers(), 8);
  EXPECT_EQ(train->batch_bytes(), 1000 * kUnit);
  EXPECT_FALSE(train->shared());
}

TEST_F(MemoryManagerTest, AnIdleLoaderNeedsNoWorkersButKeepsItsMemory) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const auto train = Lease();
  const auto validation = Lease();
  for (uint64_t at = 1; at <= 3; ++at) {
    train->SetNeed({8, kHalf}, at * kSecond);
    validation->SetNeed({8, kHalf}, at * kSecond);
  }
  EXPECT_EQ(train->workers(), 4);
  train->SetNeed({8, kHalf}, 12 * kSecond);
  EXPECT_EQ(train->workers(), 4) << "one that asked each second may take its time";
  train->SetNeed({8, kHalf}, 14 * kSecond);
  EXPECT_EQ(train->workers(), 7);
  EXPECT_EQ(validation->workers(), 1);
  EXPECT_EQ(train->batch_bytes(), kHalf / 2);
  EXPECT_EQ(validation->batch_bytes(), kHalf / 2);
  validation->SetNeed({8, kHalf}, 15 * kSecond);
  EXPECT_EQ(train->workers(), 4);
}

TEST_F(MemoryManagerTest, LoadersComeAndGoOnManyThreads) {
  const auto stays = Lease(2);
  stays->SetNeed({8, kHalf}, 1);
  const uint64_t held = manager_.budget().used();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int round = 0; round < Effort(200); ++round) {
        const auto one = Lease(random.Between(1, 4));
        for (int change = 0; change < 4; ++change) {
          one->SetNeed({static_cast<uint64_t>(random.Between(0, 9)),
                        static_cast<uint64_t>(random.Between(0, kBudget))},
                       1);
          EXPECT_GE(one->workers(), 1);
          EXPECT_GE(one->batch_bytes(), kLoader.slot_bytes);
          EXPECT_GE(stays->workers(), 1);
          EXPECT_LE(stays->workers(), 8);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stays->workers(), 8);
  EXPECT_EQ(stays->batch_bytes(), kHalf);
  EXPECT_EQ(manager_.budget().used(), held);
  EXPECT_LE(manager_.budget().peak(), kBudget);
}

// ---- Work in progress

TEST_F(MemoryManagerTest, AMovedTokenCountsUntilItsEnd) {
  const auto lease = Lease();
  WorkToken first = lease->TryBegin();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first.alone());
  WorkToken second = lease->Begin();
  lease->JoinWaitList(7, std::move(second));
  EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_FALSE(lease->TakeRetry()) << "the first is in work";
  WorkToken moved = std::move(first);
  std::move(moved).Release();
  EXPECT_FALSE(moved);  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_FALSE(lease->TakeRetry()) << "released is not ended";
  { const WorkToken adopted = lease->Adopt(); }
  EXPECT_EQ(readers_.wakes(), 1u) << "by the end of the last one, since a sample waits";
  auto retry = lease->TakeRetry();
  ASSERT_TRUE(retry);
  retry->work = WorkToken();
  EXPECT_TRUE(lease->TryBegin());
}

TEST_F(MemoryManagerTest, DrainWaitsForTheLoadersOwnWork) {
  const auto lease = Lease();
  const auto other = Lease();
  const WorkToken others = other->Begin();
  lease->Drain();  // none of its own work is in progress
  for (int round = 0; round < Effort(300); ++round) {
    std::atomic<int> ended{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < 3; ++i) {
      workers.emplace_back([&ended, work = lease->Begin()]() mutable {
        ++ended;
        work = WorkToken();
      });
    }
    lease->Drain();
    EXPECT_EQ(ended.load(), 3);
    for (std::thread& worker : workers) worker.join();
  }
}

// ---- The wait list

TEST_F(MemoryManagerTest, SamplesWaitInOrderAndAreRetriedAlone) {
  const auto a = Lease();
  const auto b = Lease();
  WorkToken other = b->Begin();
  a->JoinWaitList(1, a->Begin());
  b->JoinWaitList(2, b->Begin());
  a->JoinWaitList(3, a->Begin());
  EXPECT_EQ(manager_.samples_waited(), 3u);
  EXPECT_FALSE(a->TryBegin()) << "while one waits nobody begins";
  EXPECT_FALSE(b->TryBegin());
  EXPECT_FALSE(a->TakeRetry()) << "not before all that is in work has ended";
  EXPECT_EQ(readers_.wakes(), 0u);
  other = WorkToken();
  EXPECT_EQ(readers_.wakes(), 1u);

  const std::array<std::pair<MemoryLease*, uint32_t>, 3> order = {
      {{a.get(), 1}, {b.get(), 2}, {a.get(), 3}}};
  for (const auto& [lease, sample] : order) {
    EXPECT_FALSE((lease == a.get() ? b : a)->TakeRetry()) << "it is not its turn";
    auto retry = lease->TakeRetry();
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->sample, sample);
    EXPECT_TRUE(retry->work.alone());
    EXPECT_FALSE(a->TryBegin());
    EXPECT_FALSE(a->TakeRetry() || b->TakeRetry()) << "one at a time";
    WorkToken task = lease->Begin();
    const uint64_t wakes = readers_.wakes();
    retry->work = WorkToken();
    EXPECT_EQ(readers_.wakes(), wakes + (sample == 3 ? 1 : 0)) << "after the last all may begin";
    EXPECT_FALSE(a->TakeRetry() || b->TakeRetry()) << "the task is in work";
    task = WorkToken();
    EXPECT_EQ(readers_.wakes(), wakes + 1);
  }
  EXPECT_TRUE(a->TryBegin());
  EXPECT_TRUE(b->TryBegin());
}

TEST_F(MemoryManagerTest, AStoppingLoaderLeavesTheWaitList) {
  const auto a = Lease();
  const auto b = Lease();
  a->JoinWaitList(1, a->Begin());
  b->JoinWaitList(2, b->Begin());
  a->JoinWaitList(3, a->Begin());
  const uint64_t wakes = readers_.wakes();
  a->Drain();
  EXPECT_EQ(a->LeaveWaitList(), (std::vector<uint32_t>{1, 3}));
  EXPECT_GT(readers_.wakes(), wakes) << "it is another one's turn";
  EXPECT_TRUE(a->LeaveWaitList().empty());
  EXPECT_FALSE(a->TryBegin()) << "one of the other's waits";
  EXPECT_EQ(b->TakeRetry()->sample, 2u);
  EXPECT_TRUE(a->TryBegin());
}

// A loader that an interrupted Seek leaves may have work in progress.
TEST_F(MemoryManagerTest, ALoaderWithWorkInProgressLeavesTheWaitList) {
  const auto a = Lease();
  const auto b = Lease();
  WorkToken call = a->Begin();
  a->JoinWaitList(1, a->Begin());
  b->JoinWaitList(2, b->Begin());
  EXPECT_EQ(a->LeaveWaitList(), std::vector<uint32_t>{1});
  EXPECT_FALSE(b->TakeRetry()) << "the call is in work";
  call = WorkToken();
  auto retry = b->TakeRetry();
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->sample, 2u);
  call = a->Begin();
  a->JoinWaitList(3, std::move(call));
  EXPECT_EQ(a->LeaveWaitList(), std::vector<uint32_t>{3}) << "while another one's is retried";
  retry->work = WorkToken();
  EXPECT_TRUE(a->TryBegin());
  EXPECT_TRUE(b->TryBegin());
}

TEST_F(MemoryManagerTest, AnIdleLoaderReturnsSampleMemory) {
  auto idle = Lease();
  const auto lease = Lease();
  Reservation kept(idle->samples());
  idle->OnShortage([&] { (void)kept.Resize(0); });
  ASSERT_TRUE(kept.Resize(kHalf - 100));
  EXPECT_TRUE(idle->scarce());

  Reservation needed(lease->samples());
  WorkToken work = lease->TryBegin();
  EXPECT_FALSE(needed.Resize(kHalf));
  lease->JoinWaitList(0, std::move(work));
  auto retry = lease->TakeRetry();
  ASSERT_TRUE(retry);
  EXPECT_EQ(kept.bytes(), 0u);
  EXPECT_TRUE(needed.Resize(kHalf)) << "all of the samples' share";
  EXPECT_FALSE(needed.Resize(kHalf + 1));
  retry->work = WorkToken();

  (void)needed.Resize(0);
  ASSERT_TRUE(kept.Resize(kHalf));
  EXPECT_FALSE(needed.Resize(1));
  idle.reset();
  EXPECT_TRUE(needed.Resize(kHalf)) << "one that goes frees it first";
}

TEST_F(MemoryManagerTest, ARefusalNamesASufficientBudget) {
  const auto lease = Lease();
  constexpr uint64_t kNeeded = kHalf + 1000;
  Reservation first(lease->samples());
  ASSERT_TRUE(first.Resize(600));
  const Error refusal = lease->Refusal(
      {.code = Code::kResourceExhausted, .cause = "no room", .wanted_bytes = kNeeded - 700}, 100);
  EXPECT_EQ(refusal.code, Code::kResourceExhausted);
  EXPECT_EQ(refusal.cause,
            "this sample needs 10001000 bytes of working memory, and of the budget "
            "of 20000000 bytes at most 10000000 are left after the batches "
            "(no room)");
  ASSERT_EQ(refusal.changes.size(), 1u);
  const uint64_t named = refusal.changes[0].least;
  MemoryManager enough(named, 1, [] {});
  EXPECT_GE(enough.Lease(kLoader, 1).value()->samples().limit(), kNeeded);
  MemoryManager less(named - 1, 1, [] {});
  EXPECT_LT(less.Lease(kLoader, 1).value()->samples().limit(), kNeeded);
}

// Another loader's batches and samples hold all the memory, so the first batches of a new loader
// find no room.
TEST_F(MemoryManagerTest, ANewLoaderWaitsForOtherLoadersSamples) {
  const auto first = Lease();
  Reservation batches = first->TakeBatches();
  Reservation sample(first->samples());
  first->OnShortage([&] { (void)sample.Resize(0); });
  ASSERT_TRUE(batches.Resize(kHalf));
  WorkToken work = first->TryBegin();
  ASSERT_TRUE(sample.Resize(kHalf));

  std::vector<std::unique_ptr<MemoryLease>> made(2);
  std::vector<std::thread> openers;
  for (auto& lease : made) openers.emplace_back([&] { lease = Lease(); });
  while (first->TryBegin()) std::this_thread::yield();  // until one thread waits
  EXPECT_EQ(sample.bytes(), kHalf) << "nothing that is in work is taken";
  work = WorkToken();
  for (std::thread& opener : openers) opener.join();
  for (const auto& lease : made) EXPECT_EQ(lease->TakeBatches().bytes(), kLoader.slot_bytes);
  EXPECT_EQ(sample.bytes(), 0u);
  EXPECT_EQ(readers_.wakes(), 2u) << "at the end of the work, and when loaders may begin again";
  EXPECT_TRUE(first->TryBegin());
  first->OnShortage([] {});  // the lease, which may call it at its end, outlives `sample`
}

// ---- All together

// A loader without batches: its threads take samples of given needs, each into a buffer that the
// thread keeps, and are woken as reader threads are.
class SmallLoader {
 public:
  SmallLoader(MemoryManager& manager, Readers& readers, std::vector<uint64_t> needs, size_t threads)
      : manager_(manager),
        readers_(readers),
        needs_(std::move(needs)),
        refused_(needs_.size()),
        buffers_(threads),
        lease_(manager.Lease(kLoader, 1).value()) {
    for (Reservation& buffer : buffers_) buffer = Reservation(lease_->samples());
    lease_->OnShortage([this] {
      for (Reservation& buffer : buffers_) (void)buffer.Resize(0);
    });
  }

  // On the thread of `buffer`, until all samples have ended.
  void Run(size_t buffer) {
    while (ended_ < needs_.size()) {
      const uint64_t wakes = readers_.wakes();
      if (!Step(buffer) && ended_ < needs_.size()) readers_.AwaitMoreThan(wakes);
      EXPECT_LE(manager_.budget().used(), kBudget);
    }
  }

  // The reference tries each sample alone and refuses it if it needs more than there is.
  void ExpectRefusalsOfTheReference() const {
    for (size_t i = 0; i < needs_.size(); ++i) {
      EXPECT_EQ(refused_[i].load(), needs_[i] > kHalf) << "sample " << i;
    }
  }

 private:
  bool Step(size_t buffer) {
    if (WorkToken work = lease_->TryBegin()) {
      const size_t sample = next_.fetch_add(1);
      if (sample >= needs_.size()) return false;
      Try(static_cast<uint32_t>(sample), std::move(work), buffers_[buffer]);
      return true;
    }
    auto retry = lease_->TakeRetry();
    if (retry) Try(retry->sample, std::move(retry->work), buffers_[buffer]);
    return retry.has_value();
  }

  void Try(uint32_t sample, WorkToken work, Reservation& buffer) {
    const uint64_t need = needs_[sample];
    if (buffer.bytes() < need && !buffer.Resize(need)) {
      if (!work.alone()) {
        (void)buffer.Resize(0);
        return lease_->JoinWaitList(sample, std::move(work));
      }
      refused_[sample] = true;
    }
    if (++ended_ >= needs_.size()) readers_.Wake();  // its other threads
  }

  MemoryManager& manager_;
  Readers& readers_;
  const std::vector<uint64_t> needs_;
  std::vector<std::atomic<bool>> refused_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> ended_{0};
  std::vector<Reservation> buffers_;
  const std::unique_ptr<MemoryLease> lease_;
};

// Returns mostly small needs, sometimes a good part of the samples' share, or more than it.
std::vector<uint64_t> DrawNeeds(Random& random, int samples) {
  std::vector<uint64_t> needs;
  for (int i = 0; i < samples; ++i) {
    const int most = random.OneIn(8) ? kHalf + kHalf / 4 : kHalf / 20;
    needs.push_back(static_cast<uint64_t>(random.Between(1, most)));
  }
  return needs;
}

TEST(MemoryManagerUnderLoad, RefusesTheSameSamplesAsTheReference) {
  uint64_t waited = 0;
  const auto least = static_cast<uint32_t>(Effort(40));
  for (uint32_t seed = 0; seed < least || (waited == 0 && seed < 40); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Readers readers;
    MemoryManager manager(kBudget, 4, [&] { readers.Wake(); });
    std::vector<std::unique_ptr<SmallLoader>> loaders;
    std::vector<std::thread> threads;
    const int count = random.Between(1, 3);
    for (int i = 0; i < count; ++i) {
      const auto workers = static_cast<size_t>(random.Between(1, 3));
      loaders.push_back(
          std::make_unique<SmallLoader>(manager, readers, DrawNeeds(random, 200), workers));
      for (size_t w = 0; w < workers; ++w) {
        threads.emplace_back([w, loader = loaders.back().get()] { loader->Run(w); });
      }
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& loader : loaders) loader->ExpectRefusalsOfTheReference();
    waited += manager.samples_waited();
    loaders.clear();
    EXPECT_EQ(manager.budget().used(), 0u);
    EXPECT_LE(manager.budget().peak(), kBudget);
  }
  EXPECT_GT(waited, 0u);
}

// Other loaders open, put samples on the wait list, and close before these have their turn.
TEST(MemoryManagerUnderLoad, LoadersGoWhileTheirSamplesWait) {
  for (uint32_t seed = 0; seed < static_cast<uint32_t>(Effort(20)); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Readers readers;
    MemoryManager manager(kBudget, 4, [&] { readers.Wake(); });
    SmallLoader stays(manager, readers, DrawNeeds(random, 200), 2);
    std::thread first([&] { stays.Run(0); });
    std::thread second([&] { stays.Run(1); });
    for (int gone = 0; gone < 20;) {
      const auto goes = manager.Lease(kLoader, 1).value();
      WorkToken work = goes->TryBegin();
      if (!work) continue;  // a sample of another loader waits: try later
      goes->JoinWaitList(0, goes->Begin());
      goes->JoinWaitList(1, std::move(work));
      goes->Drain();
      EXPECT_EQ(goes->LeaveWaitList(), (std::vector<uint32_t>{0, 1}));
      ++gone;
    }
    first.join();
    second.join();
    stays.ExpectRefusalsOfTheReference();
    EXPECT_LE(manager.budget().peak(), kBudget);
  }
}

}  // namespace
}  // namespace stoker
