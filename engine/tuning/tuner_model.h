// What the tuner remembers of the last batches, and what they would have cost with other settings.
//
// Three servers in a row. With `q` reads in flight storage does one row each latency / q (Little
// 1961); n workers do one each work / n; the consumer asks when its step is over. Batch k is opened
// when batch k − depth is taken. Followed batch by batch (Lindley 1952), in fluid form: a server
// with c places that are held for a time t each, empty at first, has done c rows at t, and from
// there on one each t / c; so a batch's last row is there at max(opened + t, busy until), and the
// slowest of its rows counts for itself: one huge photograph, or one slow read, holds a batch
// alone.
//
// Times and durations are nanoseconds, as doubles. No allocation after the making.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/loader/batch_record.h"
#include "engine/tuning/tuner.h"

namespace stoker {

// How the latency of reads depends on how many there are at a time: measured, never guessed beyond
// what was seen but for one step.
class ReadCurve {
 public:
  void Clear() { *this = {}; }
  // A batch's reads took `latency` in the mean, with `in_flight` of them at a time. Says whether
  // storage is not what it was: what was measured before does not hold any more.
  bool Add(double in_flight, double latency, double reads);
  // With so many at a time. As measured, or between; below: as the least that was measured.
  // Above: the same, but where the last doubling brought nothing: as much longer as they are more.
  double Latency(double in_flight) const;
  // More than so many make each read slower, and no more of them; 0: not seen yet.
  double knee() const { return knee_; }
  double most_seen() const { return most_seen_; }
  // Nobody has measured with clearly fewer.
  bool OnlyKnows(double in_flight) const;

 private:
  struct Point {
    int batches = 0;    // seen
    int64_t last = 0;   // when
    double weight = 0;  // reads, fading
    double in_flight = 0;
    double latency = 0;
  };
  void Sum();
  bool Contradicted() const;
  bool Usable(const Point& point) const { return point.batches >= sure_; }

  std::array<Point, 24> seen_{};  // by half octaves
  int sure_ = 1;                  // batches that a point needs
  int64_t batches_ = 0;
  int unlike_ = 0;  // batches in a row: slower than their point (> 0), or faster (< 0)
  double knee_ = 0;
  double most_seen_ = 0;
};

class TunerModel {
 public:
  static constexpr int kWindow = 512;  // batches; a power of two

  TunerModel();

  // Says whether storage is not what it was.
  bool Add(const BatchRecord& batch);
  // All but the last `keep`.
  void Forget(int keep);

  int count() const { return count_; }
  bool reads_anything() const { return reads_anything_; }
  const ReadCurve& curve() const { return curve_; }

  // What the batches' time would have been, and the part of it that the consumer would have
  // waited; of the last batches. Precondition: count() > 0.
  struct Replayed {
    double total = 0;
    double waited = 0;
    double for_storage = 0;  // of that; only what was observed
  };
  Replayed Replay(const TunerSettings& settings, int last = kWindow) const;

  // What was: of the last `batches`.
  Replayed Observed(int batches) const;

  // The longest row of the last batches, to read and to decode.
  double Longest(int batches) const;

  // The last batches are unlike those before: work, the consumer's step or reads have changed for
  // good. How many of them there are, then; else 0.
  int Change() const;

  // Medians and means, for words.
  double MedianWork() const;
  double MedianGap() const;
  double MeanLatency() const;

 private:
  struct Cost {
    double gap = 0;      // the consumer's, before it asked for this batch
    double work = 0;     // of workers
    double longest = 0;  // of one row
    double mix = 0;
    double read = 0;  // summed
    double longest_read = 0;
    double rows = 0, reads = 0;
    double in_flight = 0;  // mean
    double pause = 0;      // production had stopped so long after the batch before was taken
    double waited = 0;
    double waited_for_storage = 0;  // of that
  };

  // 0: the newest.
  const Cost& Back(int i) const {
    return costs_[(next_ - 1 - static_cast<uint64_t>(i)) & (kWindow - 1)];
  }
  double LongestGap() const;
  double Worked(double batches) const;
  template <typename Value>
  bool Differs(int recent, Value value) const;

  std::array<Cost, kWindow> costs_{};
  uint64_t next_ = 0;
  int count_ = 0;
  uint64_t last_taken_ = 0;
  bool reads_anything_ = false;
  ReadCurve curve_;
  mutable std::vector<double> taken_, worked_;  // scratch of Replay
  mutable std::vector<double> scratch_;         // of medians
  mutable double longest_gap_ = 0;              // that counts; of the batches until longest_gap_of_
  mutable uint64_t longest_gap_of_ = 0;
};

}  // namespace stoker
