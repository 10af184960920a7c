#include "engine/metrics/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace stoker {
namespace {

constexpr uint64_t kUs = 1'000, kMs = 1'000'000;

// Returns the times of a sample in milliseconds; `busy`: since when its worker was busy.
SamplePath PathOf(uint64_t claimed, uint64_t read, uint64_t workers_since, uint64_t done,
                  bool behind_workers = false) {
  SamplePath path;
  path.Claim(claimed * kMs, behind_workers);
  path.times().read_ns = read * kMs;
  path.times().workers_since_ns = workers_since * kMs;
  path.times().done_ns = done * kMs;
  return path;
}

WaitCauses InMs(WaitCauses causes) {
  return {.storage_ns = causes.storage_ns / kMs,
          .decode_ns = causes.decode_ns / kMs,
          .map_ns = causes.map_ns / kMs,
          .copy_ns = causes.copy_ns / kMs,
          .other_ns = causes.other_ns / kMs};
}

TEST(WaitCauses, FollowTheLastSamplesPath) {
  const CriticalPath path{PathOf(100, 140, 140, 150), 50 * kMs, 153 * kMs};
  const WaitCauses causes = InMs(CausesOf(path, 110 * kMs, 155 * kMs));
  EXPECT_EQ(causes.other_ns, 2);    // 153 … 155
  EXPECT_EQ(causes.decode_ns, 13);  // 140 … 153
  EXPECT_EQ(causes.storage_ns, 30);
  EXPECT_EQ(causes.copy_ns, 0);
}

TEST(WaitCauses, TimeAtTheProgramsFunctionIsMap) {
  const CriticalPath path{PathOf(100, 140, 140, 150), 50 * kMs, 183 * kMs, 153 * kMs};
  const WaitCauses causes = InMs(CausesOf(path, 110 * kMs, 185 * kMs));
  EXPECT_EQ(causes.other_ns, 2);
  EXPECT_EQ(causes.map_ns, 30);
  EXPECT_EQ(causes.decode_ns, 13);
  EXPECT_EQ(causes.storage_ns, 30);
}

TEST(WaitCauses, TimeBeforeTheClaimBelongsToThePreviousSample) {
  SamplePath path = PathOf(100, 190, 190, 200);
  path.Claim(204 * kMs, true);
  path.times().read_ns = path.times().workers_since_ns = 206 * kMs;
  path.times().done_ns = 209 * kMs;
  // 206 … 209 decode, 204 … 206 storage, 200 … 204 decode, 100 … 200 one tenth decode.
  const WaitCauses causes = InMs(CausesOf({path, 1, 209 * kMs}, 150 * kMs, 209 * kMs));
  EXPECT_EQ(causes.decode_ns, 3 + 4 + 5);
  EXPECT_EQ(causes.storage_ns, 2 + 45);
  EXPECT_EQ(causes.other_ns, 0);
}

TEST(WaitCauses, TimeBeforeTheKnownPathIsDividedInProportion) {
  const CriticalPath path{PathOf(100, 130, 130, 140), 1, 140 * kMs};
  const WaitCauses causes = InMs(CausesOf(path, 60 * kMs, 140 * kMs));
  EXPECT_EQ(causes.decode_ns, 20);
  EXPECT_EQ(causes.storage_ns, 60);
}

TEST(WaitCauses, UnknownTimeIsOther) {
  const WaitCauses causes = CausesOf({}, 10 * kMs, 30 * kMs);
  EXPECT_EQ(causes.other_ns, 20 * kMs);
  EXPECT_EQ(causes.sum(), causes.other_ns);
}

TEST(WaitCauses, TimeBeforeTheBatchOpenedIsOther) {
  const CriticalPath path{PathOf(100, 130, 130, 140), 80 * kMs, 140 * kMs};
  const WaitCauses causes = InMs(CausesOf(path, 50 * kMs, 140 * kMs));
  EXPECT_EQ(causes.other_ns, 30);
  EXPECT_EQ(causes.decode_ns, 15);
  EXPECT_EQ(causes.storage_ns, 45);
}

TEST(WaitCauses, WaitingAfterTheBatchIsCompleteIsOther) {
  const CriticalPath path{PathOf(100, 130, 130, 140), 80 * kMs, 140 * kMs};
  EXPECT_EQ(CausesOf(path, 150 * kMs, 151 * kMs).other_ns, kMs);
  EXPECT_EQ(CausesOf(path, 150 * kMs, 150 * kMs).sum(), 0);
}

TEST(WaitCauses, AlwaysAddUp) {
  std::mt19937_64 random(1);
  const auto some = [&]() -> uint64_t {
    switch (random() % 8) {
      case 0:
        return 0;
      case 1:
        return random();
      case 2:
        return std::numeric_limits<uint64_t>::max();
      default:
        return random() % 100;
    }
  };
  for (int round = 0; round < 20'000; ++round) {
    SamplePath path;
    WorkerPace pace;
    for (int sample = 0; sample < 12; ++sample) {
      path.Claim(some(), random() % 2 == 0);
      path.times().read_ns = some();
      if (random() % 4 != 0) pace.Begin(path.times(), some());
      if (random() % 4 == 0) path.times().workers_since_ns = some();
      pace.End(path.times(), some());
    }
    const uint64_t asked = some();
    const uint64_t taken = std::max(asked, some());
    EXPECT_EQ(CausesOf({path, some(), some()}, asked, taken).sum(), taken - asked);
  }
}

TEST(SamplePath, MergesOldSegmentsWithoutLosingTime) {
  SamplePath path;
  for (uint64_t i = 1; i <= 30; ++i) {
    path.Claim(i * 10 * kMs, false);
    path.times().read_ns = path.times().workers_since_ns = (i * 10 + 6) * kMs;
    path.times().done_ns = (i * 10 + 10) * kMs;
  }
  path.Claim(310 * kMs, false);
  EXPECT_EQ(path.before_ns(), 310 * kMs);
  uint64_t until = path.before_ns();
  uint32_t samples = 0;
  uint32_t larger = 1;
  for (const SamplePath::Segment& segment : path.before()) {
    if (segment.samples == 0) break;
    EXPECT_GE(segment.samples, larger);
    larger = segment.samples;
    samples += segment.samples;
    EXPECT_EQ(until - segment.from_ns, segment.samples * 10 * kMs);
    EXPECT_EQ(segment.decode_ns, segment.samples * 4 * kMs);
    until = segment.from_ns;
  }
  EXPECT_GE(samples, 15);  // of the 30
}

TEST(WorkerPace, ASampleReadEarlyWaitsForItsWorkerOnly) {
  WorkerPace pace;
  SampleTimes first{.claimed_ns = 10, .read_ns = 20};
  pace.Begin(first, 21);
  EXPECT_EQ(first.workers_since_ns, 20);
  pace.End(first, 100);
  SampleTimes claimed_later{.claimed_ns = 30, .read_ns = 90};
  pace.Begin(claimed_later, 100);
  EXPECT_EQ(claimed_later.workers_since_ns, 20);  // at work ever since
  pace.End(claimed_later, 200);
  SampleTimes claimed_before{.claimed_ns = 15, .read_ns = 150};
  pace.Begin(claimed_before, 200);
  EXPECT_EQ(claimed_before.workers_since_ns, 150);  // the worker was idle, it was on its way
  pace.End(claimed_before, 300);
  SampleTimes after_a_pause{.claimed_ns = 250, .read_ns = 400};
  pace.Begin(after_a_pause, 400);
  EXPECT_EQ(after_a_pause.workers_since_ns, 400);
}

// A simulated loader with requests, readers, workers and a consumer, in simulated time.
struct Job {
  int requests = 16;
  int workers = 2;
  uint64_t batch_size = 32;
  uint64_t depth = 4;
  uint64_t batches = 60;
  std::function<uint64_t(uint64_t)> read = [](uint64_t) { return 100 * kUs; };  // by sample
  bool one_read_at_a_time = false;
  std::function<uint64_t(uint64_t)> decode = [](uint64_t) { return 300 * kUs; };
  std::function<uint64_t(uint64_t)> step = [](uint64_t) { return uint64_t{0}; };  // by batch
};

class Miniature {
 public:
  explicit Miniature(Job job)
      : job_(std::move(job)),
        paths_(static_cast<size_t>(job_.requests)),
        samples_(paths_.size()),
        paces_(static_cast<size_t>(job_.workers)),
        missing_(job_.batches, job_.batch_size),
        complete_(job_.batches) {
    for (size_t i = 0; i < paths_.size(); ++i) free_.push_back(i);
    for (size_t w = 0; w < paces_.size(); ++w) idle_.push_back(w);
  }

  WaitCauses Run() {
    Ask();
    while (delivered_ < job_.batches) {
      Claim();
      BeginWork();
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (event.kind == Kind::kRead) {
        paths_[event.request].times().read_ns = now_;
        --reading_;
        ready_.push_back(event.request);
      } else if (event.kind == Kind::kDone) {
        CompleteRead(event.request, event.worker);
      } else {
        Ask();
      }
    }
    return causes_;
  }

 private:
  enum class Kind { kRead, kDone, kAsk };
  struct Event {
    uint64_t at;
    Kind kind;
    size_t request = 0, worker = 0;
    bool operator>(const Event& other) const { return at > other.at; }
  };
  static constexpr uint64_t kBegin = 1'000 * kMs;

  void Claim() {
    const uint64_t end = std::min(delivered_ + job_.depth, job_.batches) * job_.batch_size;
    if (claimed_ >= end) return;
    if (free_.size() < (paths_.size() + 1) / 2) {
      waiting_ = true;
      return;
    }
    const bool behind = waiting_ && paths_.size() - free_.size() >= 2 * reading_;
    waiting_ = false;
    while (!free_.empty() && claimed_ < end) {
      const size_t request = free_.front();
      free_.pop_front();
      paths_[request].Claim(now_, behind);
      samples_[request] = claimed_;
      disk_ = std::max(job_.one_read_at_a_time ? disk_ : now_, now_) + job_.read(claimed_);
      events_.push({disk_, Kind::kRead, request});
      ++reading_;
      ++claimed_;
    }
  }

  void BeginWork() {
    while (!ready_.empty() && !idle_.empty()) {
      const size_t worker = idle_.back();
      idle_.pop_back();
      const size_t request = ready_.front();
      ready_.pop_front();
      paces_[worker].Begin(paths_[request].times(), now_);
      events_.push({now_ + job_.decode(samples_[request]), Kind::kDone, request, worker});
    }
  }

  void CompleteRead(size_t request, size_t worker) {
    paces_[worker].End(paths_[request].times(), now_);
    idle_.push_back(worker);
    free_.push_back(request);
    const uint64_t batch = samples_[request] / job_.batch_size;
    if (--missing_[batch] > 0) return;
    complete_[batch] = {paths_[request], kBegin, now_};
    if (batch == delivered_ && asked_ != 0) Deliver();
  }

  void Ask() {
    asked_ = now_;
    if (complete_[delivered_].complete_ns != 0) Deliver();
  }

  void Deliver() {
    // The first batches find an empty pipeline.
    if (delivered_ > job_.batches / 4) causes_ += CausesOf(complete_[delivered_], asked_, now_);
    asked_ = 0;
    events_.push({now_ + job_.step(delivered_), Kind::kAsk});
    ++delivered_;
  }

  const Job job_;
  uint64_t now_ = kBegin, disk_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<SamplePath> paths_;
  std::vector<uint64_t> samples_;  // by request
  std::vector<WorkerPace> paces_;
  std::deque<size_t> free_, ready_, idle_;
  std::vector<uint64_t> missing_;
  std::vector<CriticalPath> complete_;
  size_t reading_ = 0;
  bool waiting_ = false;
  uint64_t claimed_ = 0, delivered_ = 0, asked_ = 0;
  WaitCauses causes_;
};

// The share of storage among the causes.
double StorageShare(const Job& job) {
  Miniature miniature(job);
  const WaitCauses causes = miniature.Run();
  EXPECT_GT(causes.sum(), 0);
  EXPECT_EQ(causes.other_ns, 0);
  return static_cast<double>(causes.storage_ns) / static_cast<double>(causes.sum());
}

// Exponentially distributed, the same each time.
std::function<uint64_t(uint64_t)> About(uint64_t mean_ns) {
  return [mean_ns](uint64_t sample) {
    std::mt19937_64 random(sample);
    return static_cast<uint64_t>(
        std::exponential_distribution<>(1 / static_cast<double>(mean_ns))(random));
  };
}

std::function<uint64_t(uint64_t)> Always(uint64_t ns) {
  return [ns](uint64_t) { return ns; };
}

// Returns a different value now and then.
std::function<uint64_t(uint64_t)> OneOf(uint64_t samples, uint64_t ns, uint64_t else_ns) {
  return [=](uint64_t sample) { return sample % samples == samples / 2 ? ns : else_ns; };
}

// Makes batches of this size, with so many requests: 4,000 samples.
class NamedCause : public ::testing::TestWithParam<std::pair<uint64_t, int>> {
 protected:
  const uint64_t size_ = GetParam().first;
  const int requests_ = GetParam().second;
  // A sample each 150 µs is what two workers do.
  const uint64_t cycle_ns_ = static_cast<uint64_t>(requests_) * 150 * kUs;

  Job job() const { return {.requests = requests_, .batch_size = size_, .batches = 4000 / size_}; }
};

INSTANTIATE_TEST_SUITE_P(Sizes, NamedCause,
                         ::testing::Values(std::pair{4, 8}, std::pair{4, 64}, std::pair{32, 8},
                                           std::pair{32, 16}, std::pair{32, 64}, std::pair{256, 8},
                                           std::pair{256, 64}));

TEST_P(NamedCause, IsDecodingWhenWorkersAreNeverIdle) {
  Job job = this->job();
  EXPECT_EQ(StorageShare(job), 0);
  job.decode = About(300 * kUs);
  EXPECT_LT(StorageShare(job), 0.01);
}

// Reads take most of a request's time, but more concurrent reads would not help.
TEST_P(NamedCause, IsDecodingWhenSlowReadsOverlapBusyWorkers) {
  Job job = this->job();
  job.one_read_at_a_time = true;
  job.read = About(140 * kUs);
  EXPECT_LT(StorageShare(job), 0.15);
}

TEST_P(NamedCause, IsStorageForTooFewReads) {
  Job job = this->job();
  job.read = About(2 * cycle_ns_);
  EXPECT_GT(StorageShare(job), 0.85);
  job.read = Always(10 * cycle_ns_);  // they come together, and then wait for each other
  EXPECT_GT(StorageShare(job), 0.88);
}

TEST_P(NamedCause, IsStorageForASlowDisk) {
  Job job = this->job();
  job.one_read_at_a_time = true;
  job.read = About(600 * kUs);  // workers are busy for a quarter of the time
  EXPECT_GT(StorageShare(job), 0.85);
}

TEST_P(NamedCause, IsStorageForOneSlowRead) {
  Job job = this->job();
  // Longer than what it takes to make all batches of the window.
  job.read = OneOf(size_, 5 * job.depth * size_ * 150 * kUs, 100 * kUs);
  EXPECT_GT(StorageShare(job), 0.85);
  // While the consumer is at its steps, workers catch up, and are busy when it waits again.
  job.read = OneOf(size_ * 3, 2000 * kMs, 100 * kUs);
  job.step = Always(size_ * 300 * kUs);
  EXPECT_GT(StorageShare(job), 0.95);
}

TEST_P(NamedCause, IsStorageForAStallOfAllReads) {
  Job job = this->job();
  job.one_read_at_a_time = true;
  job.read = OneOf(size_ * 5, 2000 * kMs, 10 * kUs);
  EXPECT_GT(StorageShare(job), 0.8);
}

TEST_P(NamedCause, IsDecodingForHugePhotographs) {
  Job job = this->job();
  job.decode = OneOf(size_ * 3, 2000 * kMs, 100 * kUs);
  job.step = Always(size_ * 300 * kUs);
  EXPECT_LT(StorageShare(job), 0.05);
}

}  // namespace
}  // namespace stoker
