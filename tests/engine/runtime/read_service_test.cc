#include "engine/runtime/read_service.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/storage/fake_reader.h"

namespace stoker {
namespace {

// Always pulls as many reads as it has free requests.
class Hungry final : public ReadClient {
 public:
  Hungry(MemoryBudget& budget, size_t requests) : requests_(requests) {
    for (ReadRequest& request : requests_) {
      request.path = "file";
      request.buffer = GrowingBuffer(budget);
      free_.push_back(&request);
    }
  }

  size_t Pull(std::span<ReadRequest*> requests) override {
    std::lock_guard lock(mutex_);
    size_t pulled = 0;
    while (pulled < requests.size() && !free_.empty() && !full_) {
      requests[pulled++] = free_.back();
      free_.pop_back();
    }
    return pulled;
  }

  void CompleteRead(ReadRequest& request) override {
    std::lock_guard lock(mutex_);
    free_.push_back(&request);
    ++read_;
  }

  int read() {
    std::lock_guard lock(mutex_);
    return read_;
  }

  // Stops requesting reads; returns whether all of its requests have come back.
  bool Full() {
    std::lock_guard lock(mutex_);
    full_ = true;
    return free_.size() == requests_.size();
  }

 private:
  std::vector<ReadRequest> requests_;
  std::mutex mutex_;
  std::vector<ReadRequest*> free_;
  int read_ = 0;
  bool full_ = false;
};

// The ring is nearly always full and has room for one read at a time: it must not always be the
// same loader's.
TEST(ReadService, SharesReadsEquallyBetweenLoaders) {
  auto disk = std::make_shared<testing::FakeDisk>();
  disk->files["file"] = std::vector<uint8_t>(64);
  MemoryBudget budget(64 << 20);
  const Trace trace;
  ReadService reads(
      1,
      [&]() -> Result<std::unique_ptr<Reader>> {
        return std::unique_ptr<Reader>(std::make_unique<testing::FakeReader>(disk, 4, 1));
      },
      trace);
  Hungry one(budget, 8), other(budget, 8);
  ASSERT_TRUE(reads.Attach(&one).ok());
  ASSERT_TRUE(reads.Attach(&other).ok());
  const int reads_wanted = std::max(2000, testing::Effort(4000));
  const int one_before = one.read(), other_before = other.read();
  while (one.read() + other.read() < one_before + other_before + reads_wanted) {
  }
  const int of_one = one.read() - one_before, of_other = other.read() - other_before;
  EXPECT_GT(of_one, of_other / 2);
  EXPECT_GT(of_other, of_one / 2);
  reads.Detach(&one);
  reads.Detach(&other);
  while (!one.Full() || !other.Full()) {
  }
}

// A reader under SCHED_BATCH would wait for a tick of the scheduler while workers keep all cores
// busy, and the workers would run out of samples meanwhile.
TEST(ReadService, ReaderThreadsKeepTheSchedulingPolicy) {
  int policy = -1;
  MemoryBudget budget(64 << 20);
  const Trace trace;
  ReadService reads(
      1,
      [&]() -> Result<std::unique_ptr<Reader>> {
        policy = sched_getscheduler(0);
        auto disk = std::make_shared<testing::FakeDisk>();
        return std::unique_ptr<Reader>(std::make_unique<testing::FakeReader>(disk, 4, 1));
      },
      trace);
  Hungry client(budget, 0);
  ASSERT_TRUE(reads.Attach(&client).ok());
  reads.Detach(&client);
  EXPECT_EQ(policy, sched_getscheduler(0));
}

}  // namespace
}  // namespace stoker
