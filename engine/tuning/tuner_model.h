// The tuner's record of the last batches, and what they would have cost with other settings.
//
// Three servers in a row: with `reads` in flight storage delivers a row each latency / reads
// (Little 1961), n workers finish one each work / n, and the consumer asks when its step is over.
// The program's own function, if it has whole batches, is a fourth server before the consumer.
// Batch k is opened when batch k − depth is taken. Replay follows the remembered batches one by one
// (Lindley 1952, with a finite buffer), so bursts and heavy tails need no theory: they are in the
// record. Within a batch rows flow like a fluid, except for its slowest row, which counts for
// itself.
//
// Times and durations are nanoseconds, as doubles. Allocates nothing after its construction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/tuning/batch_record.h"
#include "engine/tuning/tuner.h"

namespace stoker {

// The mean latency of a read as a function of how many are in flight, as measured.
class ReadLatency {
 public:
  // Returns the ratio of `latency` to that known for that many in flight; 1 while too little is
  // known.
  double Add(double in_flight, double latency);
  // Interpolates linearly between measured points. Below them all it is the lowest, because fewer
  // in flight may be no faster. Above them all it grows as it grew over the last doubling that was
  // measured, so that more reads seem worth trying until a doubling has brought nothing.
  double At(double in_flight) const;
  // The fewest reads that bring nearly the highest rate, and a quarter more; further reads only
  // wait in line. At most twice as many as were seen, because beyond that the latency is a guess.
  int Useful() const;

 private:
  struct Point {
    int batches = 0;
    double in_flight = 0, latency = 0;  // means, fading
  };
  std::array<Point, 24> points_{};  // by half octaves of in_flight: up to 4096
  int sure_ = 1;                    // batches that a point needs to count
  double max_seen_ = 0;
};

class TunerModel {
 public:
  // In batches; a power of two. Eight times the deepest prefetch of usual batches, 64: no depth can
  // bridge delays that recur less often.
  static constexpr int kWindow = 512;

  TunerModel();

  void Add(const BatchRecord& batch);
  // Forgets all but the last `keep` batches.
  void Forget(int keep);
  int count() const { return count_; }
  const ReadLatency& read_latency() const { return read_latency_; }

  // The number of last batches that differ for good from those before, in the consumer's step, the
  // work for a row, or the latency of reads; 0 where none do.
  int CountSinceChange() const;

  struct Time {
    double total = 0;
    double waited = 0;  // by the consumer, of that
    double work = 0;    // of workers; only observed
  };
  // Observed returns the time that the last `batches` batches took, Replay the time that all
  // remembered batches would have taken. Precondition of Replay: count() > 0.
  Time Observed(int batches) const;
  Time Replay(const TunerSettings& settings) const;

 private:
  struct Cost {
    double gap = 0;      // the consumer's, before it asked for this batch
    double waited = 0;   // by the consumer
    double work = 0;     // of workers
    double longest = 0;  // of one row
    double mix = 0;      // after the last row
    double map = 0;      // the program's function, after mixing, on threads of its own
    int map_calls = 0;   // calls of it at a time
    double read = 0;     // summed over reads
    double longest_read = 0;
    double reads = 0;
    double slowdown = 1;   // of its reads against what was known
    double in_flight = 0;  // reads, mean
    double rows = 1;
    double stopped = 0;  // production stood still so long after the batch before was taken
  };

  const Cost& CostBack(int i) const {  // 0: the newest
    return costs_[(next_ - 1 - static_cast<uint64_t>(i)) & (kWindow - 1)];
  }
  template <typename Value>
  double* SortedOf(int from, int count, Value value) const;
  double LongestGap() const;
  double MeanWork(double batches) const;

  std::array<Cost, kWindow> costs_{};
  uint64_t next_ = 0, last_taken_ = 0;
  int count_ = 0;
  ReadLatency read_latency_;
  mutable std::vector<double> taken_, worked_, mapped_, sorted_;  // scratch
};

}  // namespace stoker
