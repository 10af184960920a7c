// The times of a sample and of the samples before it in its request: the input for explaining
// waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

// Nanoseconds of the monotonic clock (NowNanoseconds); 0 means not reached yet.
struct SampleTimes {
  uint64_t claimed_ns = 0;  // its row was claimed and its read handed to the reader
  uint64_t read_ns = 0;     // its bytes had arrived; samples in memory: claimed_ns
  uint64_t begun_ns = 0;    // a worker began it
  uint64_t done_ns = 0;     // its row was written, or the sample failed

  // From this time to done_ns the sample waited for workers: see WorkerPace.
  uint64_t workers_since_ns = 0;
  // It was claimed as soon as a request was free, and workers held most of the others.
  bool behind_workers = false;
};

// Tracks how long a worker has been busy with a loader's samples without a pause. One per worker,
// on its own cache line.
//
// A worker that is idle when a sample arrives has waited for it since its read began. If the worker
// is busy, and has been since before that read, the read delayed nothing: the sample could not have
// been decoded earlier even if it had arrived at once. If the worker became busy later, it had time
// for the sample, and the read was late.
class alignas(64) WorkerPace {
 public:
  // The worker begins a sample whose bytes arrived at `read_ns`; it may have others in progress.
  void Begin(SampleTimes& sample, uint64_t now_ns);
  // The sample's row is written, or the sample failed, or was given up before it was begun.
  void End(SampleTimes& sample, uint64_t now_ns);

 private:
  uint64_t busy_since_ns_ = 0;  // except for `idle_ns_`, at most an eighth of that time
  uint64_t idle_ns_ = 0;
  uint64_t done_ns_ = 0;  // of the last sample
  uint32_t in_hand_ = 0;
};

// The history of a request: its current sample and those before it, how long each one occupied it,
// and why. Recent samples are kept one by one, older ones in groups of doubling size. It is written
// by the thread that owns the request, and not read after the request is free again.
class SamplePath {
 public:
  // One or more consecutive samples; a segment ends where the next newer one begins.
  struct Segment {
    uint64_t from_ns = 0;
    uint64_t decode_ns = 0;  // time for decoding; the rest is storage
    uint32_t samples = 0;
  };
  static constexpr size_t kSegments = 8;

  // Begins the next sample. Samples in memory always wait for workers.
  void Claim(uint64_t now_ns, bool behind_workers);
  SampleTimes& times() { return times_; }
  const SampleTimes& times() const { return times_; }

  // The segments before before_ns(), newest first; samples == 0 marks the end.
  const std::array<Segment, kSegments>& before() const { return before_; }
  uint64_t before_ns() const { return before_ns_; }  // 0 if there is no earlier sample

 private:
  void Remember();

  SampleTimes times_;
  uint64_t before_ns_ = 0;
  std::array<Segment, kSegments> before_;
};

}  // namespace stoker
