// RowRandom: random numbers for a program's function of rows or batches.
#pragma once

#include <cstdint>

#include "core/numbers/random.h"

namespace stoker {

// A generator for the distributions of <random>. Its numbers depend on seed, epoch and position
// alone: they are the same on every thread and in every run, and independent of those of the
// transforms. A value type without heap memory. The distributions of <random> differ between
// standard libraries; Uniform and Below do not.
class RowRandom {
 public:
  using result_type = uint64_t;  // NOLINT(readability-identifier-naming): of the standard

  // `epoch`: below 2^32. `position`: in the epoch's order, over all ranks.
  RowRandom(uint64_t seed, uint64_t epoch, uint64_t position)
      : stream_({.seed = seed ^ kOfFunctions, .epoch = epoch, .position = position}, 0) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  // 64 uniform bits. They repeat after 2^33 calls.
  uint64_t operator()() { return stream_.Bits(); }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return stream_.Uniform(); }

  // Uniform in [0, n), without modulo bias beyond 2^-64 · n. Precondition: n > 0.
  uint64_t Below(uint64_t n) { return stream_.Below(n); }

 private:
  // Makes the key differ from that of the transforms, so that the stream has the whole counter: its
  // draws are not limited to 2^12.
  static constexpr uint64_t kOfFunctions = 0x9D2C568000000000;

  RandomStream stream_;
};

}  // namespace stoker
