// When a sample got how far, and what its request was held up by before: what a wait for its batch
// is explained by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

// Nanoseconds of the monotonic clock (NowNanoseconds); 0: has not got there.
struct SampleTimes {
  uint64_t claimed_ns = 0;  // its row was claimed, and its read handed to the reader
  uint64_t read_ns = 0;     // its bytes were there; samples in memory: claimed_ns
  uint64_t begun_ns = 0;    // a worker took it
  uint64_t done_ns = 0;     // its row was written, or it failed

  // From then to done_ns the workers were what it waited for: see WorkerPace.
  uint64_t workers_since_ns = 0;
  // It was claimed as soon as a request was free, and workers had most of those that were not.
  bool behind_workers = false;
};

// How long a worker has been at a loader's samples without a pause. Its own, as its cache line.
//
// A sample that finds its worker idle was waited for since its read began. One that finds it busy
// was not, if that worker has been busy since before that read: it could not have been done earlier
// had it been there at once. If the worker began later, it had time, and its read is what was late.
class alignas(64) WorkerPace {
 public:
  // A sample is taken whose bytes are there since `read_ns`. It may have others in hand.
  void Begin(SampleTimes& sample, uint64_t now_ns);
  // Its row is written, or it failed, or it is given up without having been begun.
  void End(SampleTimes& sample, uint64_t now_ns);

 private:
  uint64_t busy_since_ns_ = 0;  // but for `idle_ns_` of that time, an eighth of it at most
  uint64_t idle_ns_ = 0;
  uint64_t done_ns_ = 0;  // the last one
  uint32_t in_hand_ = 0;
};

// A request's way: the sample that it is used for, and those before it, for how long each kept it,
// and what for. Recent ones one by one, older ones in groups that double. Whoever has the request
// in hand writes it, and nobody looks at it any more once the request is free again.
class SamplePath {
 public:
  // A stretch of the way, which ends where the next one begins.
  struct Stretch {
    uint64_t from_ns = 0;
    uint64_t decode_ns = 0;  // of it; the rest is storage
    uint32_t samples = 0;
  };
  static constexpr size_t kStretches = 8;

  // The next sample. Samples in memory are behind workers, whatever they waited for.
  void Claim(uint64_t now_ns, bool behind_workers);
  SampleTimes& times() { return times_; }
  const SampleTimes& times() const { return times_; }

  // Until before_ns(); newest first, samples == 0 where there are no more.
  const std::array<Stretch, kStretches>& before() const { return before_; }
  uint64_t before_ns() const { return before_ns_; }  // 0: there is none

 private:
  void Remember();

  SampleTimes times_;
  uint64_t before_ns_ = 0;
  std::array<Stretch, kStretches> before_;
};

}  // namespace stoker
